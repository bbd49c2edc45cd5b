/* Goal: a search finds what matching every stored message would find (S1), in
 * order, and pages join without gap or repetition (S2).  Method: an archive is
 * filled through its own interface with messages made from a seed, over several
 * years and parts; random queries are written from random trees, and the same
 * trees are matched naively against the texts from which the messages were
 * made. */
#include "mail/message.h"
#include "mail/search_plan.h"

#include "base/rng.h"

#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    MAILS = 420,
    MAILS_MAX = 1000,
    UNINDEXED = 12, /* stored last, and not indexed */
    LABELS = 8,
    TOKENS_MAX = 128,
    TOKEN_BYTES = 16,
    NODES_MAX = 64,
};

static const int64_t start_ms = 1514764800000; /* 2018 */
static const int64_t span_ms = (int64_t)3 * 365 * 86400 * 1000;

static uint64_t scaled(uint64_t count)
{
    const char *percent = getenv("TIDE_TEST_SCALE");
    uint64_t scale = 100;
    if (percent != NULL && !tide_text_to_u64(tide_text_of(percent), &scale))
        scale = 100;
    return count * scale / 100 + 1;
}

/* ---- words, naively ---- */

struct tokens {
    char list[TOKENS_MAX][TOKEN_BYTES];
    size_t count;
};

/* Letters and digits of ASCII without case, e for its accented forms, each
 * character of three bytes on its own; the rest is between words. */
static void tokens_add(struct tokens *tokens, const char *text)
{
    size_t bytes = 0;
    for (const unsigned char *at = (const unsigned char *)text;; at++) {
        char *token = tokens->list[tokens->count];
        const bool lower = (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9');
        const bool upper = *at >= 'A' && *at <= 'Z';
        const bool accented = at[0] == 0xc3 && (at[1] == 0xa9 || at[1] == 0x89);
        if (lower || upper || accented) {
            token[bytes++] = (char)(accented ? 'e' : upper ? *at + 32 : *at);
            at += accented;
            continue;
        }
        if (bytes > 0) {
            token[bytes] = '\0';
            tokens->count++;
            bytes = 0;
        }
        if (*at >= 0xe0) {
            memcpy(tokens->list[tokens->count], at, 3);
            tokens->list[tokens->count++][3] = '\0';
            at += 2;
        }
        assert_true(tokens->count + 1 < TOKENS_MAX);
        if (*at == '\0')
            return;
    }
}

static bool tokens_contain(const struct tokens *tokens, const struct tokens *part)
{
    for (size_t i = 0; part->count > 0 && i + part->count <= tokens->count; i++) {
        size_t same = 0;
        while (same < part->count && strcmp(tokens->list[i + same], part->list[same]) == 0)
            same++;
        if (same == part->count)
            return true;
    }
    return false;
}

/* ---- mail, naively ---- */

struct mail {
    char id[32];
    char message_id[48];
    char from[80], to[80], cc[80], bcc[80], subject[120], text[400], file[40];
    struct tokens in_from, in_to, in_cc, in_bcc, in_subject, in_text, in_files;
    bool labels[LABELS];
    bool indexed;
    int64_t ms;
    size_t bytes;
};

static const char *const label_ids[LABELS] = {"INBOX", "UNREAD",  "SPAM",    "TRASH",
                                              "SENT",  "STARRED", "Label_1", "Label_2"};

struct fixture {
    tide_world *world;
    char dir[64];
    tide_archive *archive;
    tide_shards shards; /* beside the archive */
    struct mail *mails;
    size_t count;
    tide_rng rng;
    tide_error err;
};

static const struct tide_indexer indexer = {.parse = tide_message_parse, .fold = tide_search_fold};

#define OK(call) assert_int_equal((call), TIDE_OK)

static const char *const words[] = {
    "alpha",
    "beta",
    "gamma",
    "delta",
    "omega",
    "caf\xc3\xa9",
    "cafe",
    "Alpha",
    "x7",
    "\xe6\x97\xa5\xe6\x9c\xac",
    "\xe6\x9c\xac\xe8\xaa\x9e",
    "\xe0\xb9\x84\xe0\xb8\x97\xe0\xb8\xa2",
    "zeta",
    "OMEGA",
    "the",
    "the",
};
enum { WORDS = sizeof words / sizeof words[0] };
static const char *const people[] = {"alice", "bob", "carol", "dave"};

static const char *word(tide_rng *rng)
{
    return words[tide_rng_below(rng, WORDS)];
}

static void words_write(tide_rng *rng, size_t count, char *room, size_t room_bytes)
{
    size_t at = 0;
    room[0] = '\0';
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(room + at, room_bytes - at, i == 0 ? "%s" : " %s", word(rng));
}

static void person_write(tide_rng *rng, char *room, size_t room_bytes)
{
    const char *name = people[tide_rng_below(rng, 4)];
    const char *host = people[tide_rng_below(rng, 4)];
    (void)snprintf(room, room_bytes, "%s %s <%s@%s.example>", name,
                   word(rng) == words[0] ? "x" : "y", name, host);
}

static void mail_make(tide_rng *rng, size_t number, struct mail *mail)
{
    *mail = (struct mail){.indexed = true};
    (void)snprintf(mail->id, sizeof mail->id, "m%04zu", number);
    (void)snprintf(mail->message_id, sizeof mail->message_id, "%zu@id.example", number / 2);
    if (tide_rng_chance(rng, 1, 8))
        (void)snprintf(mail->from, sizeof mail->from, "me@example.com");
    else
        person_write(rng, mail->from, sizeof mail->from);
    person_write(rng, mail->to, sizeof mail->to);
    if (tide_rng_chance(rng, 1, 3))
        person_write(rng, mail->cc, sizeof mail->cc);
    if (tide_rng_chance(rng, 1, 5))
        person_write(rng, mail->bcc, sizeof mail->bcc);
    words_write(rng, 1 + tide_rng_below(rng, 4), mail->subject, sizeof mail->subject);
    words_write(rng, 1 + tide_rng_below(rng, 20), mail->text, sizeof mail->text);
    if (tide_rng_chance(rng, 1, 4))
        (void)snprintf(mail->file, sizeof mail->file, "%s.%s", people[tide_rng_below(rng, 4)],
                       tide_rng_chance(rng, 1, 2) ? "pdf" : "txt");
    for (size_t i = 0; i < LABELS; i++)
        mail->labels[i] = tide_rng_chance(rng, i == 0 ? 5 : 1, 10);
    /* A few share their millisecond. */
    mail->ms = start_ms + (int64_t)tide_rng_below(rng, (uint64_t)span_ms / 8640000) * 8640000;
    tokens_add(&mail->in_from, mail->from);
    tokens_add(&mail->in_to, mail->to);
    tokens_add(&mail->in_cc, mail->cc);
    tokens_add(&mail->in_bcc, mail->bcc);
    tokens_add(&mail->in_subject, mail->subject);
    tokens_add(&mail->in_text, mail->text);
    tokens_add(&mail->in_files, mail->file);
}

static void mail_write(const struct mail *mail, tide_buf *out)
{
    const bool multipart = mail->file[0] != '\0';
    tide_buf_clear(out);
    (void)tide_buf_print(out, "From: %s\r\nTo: %s\r\n", mail->from, mail->to);
    if (mail->cc[0] != '\0')
        (void)tide_buf_print(out, "Cc: %s\r\n", mail->cc);
    if (mail->bcc[0] != '\0')
        (void)tide_buf_print(out, "Bcc: %s\r\n", mail->bcc);
    (void)tide_buf_print(out, "Subject: %s\r\nMessage-ID: <%s>\r\nMIME-Version: 1.0\r\n",
                         mail->subject, mail->message_id);
    if (multipart)
        (void)tide_buf_add_text(out, "Content-Type: multipart/mixed; boundary=bb\r\n\r\n--bb\r\n");
    (void)tide_buf_print(out,
                         "Content-Type: text/plain; charset=utf-8\r\n"
                         "Content-Transfer-Encoding: 8bit\r\n\r\n%s\r\n",
                         mail->text);
    if (multipart)
        (void)tide_buf_print(out,
                             "--bb\r\nContent-Type: application/octet-stream; name=\"%s\"\r\n"
                             "Content-Disposition: attachment; filename=\"%s\"\r\n\r\nbytes\r\n"
                             "--bb--\r\n",
                             mail->file, mail->file);
}

static void mail_put(struct fixture *f, struct mail *mail)
{
    tide_buf raw;
    tide_text labels[LABELS];
    size_t count = 0;
    tide_buf_init(&raw, tide_mem_heap(), 1 << 20);
    mail_write(mail, &raw);
    mail->bytes = raw.bytes;
    for (size_t i = 0; i < LABELS; i++)
        if (mail->labels[i])
            labels[count++] = tide_text_of(label_ids[i]);
    const struct tide_incoming incoming = {
        .gmail_id = tide_text_of(mail->id),
        .thread_id = TIDE_TEXT("t"),
        .history_id = TIDE_TEXT("1"),
        .internal_ms = mail->ms,
        .labels = labels,
        .labels_count = count,
        .raw = tide_buf_text(&raw),
    };
    OK(tide_archive_put(f->archive, &incoming, NULL, NULL, &f->err));
    tide_buf_done(&raw);
}

static void sync_all(struct fixture *f)
{
    uint64_t ticket = 0;
    OK(tide_archive_label_name(f->archive, TIDE_TEXT("Label_1"), TIDE_TEXT("My Label/sub"),
                               TIDE_TEXT("user"), &ticket, &f->err));
    OK(tide_archive_label_name(f->archive, TIDE_TEXT("Label_2"), TIDE_TEXT("Work"),
                               TIDE_TEXT("user"), &ticket, &f->err));
    OK(tide_archive_sync(f->archive, ticket, NULL, &f->err));
}

static void index_all(struct fixture *f)
{
    uint64_t done = 0;
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
}

static void archive_open(struct fixture *f, bool read_only, uint64_t shard_bytes_max)
{
    const struct tide_archive_options options = {
        .dir = f->dir,
        .account = "me@example.com",
        .world = f->world,
        .read_only = read_only,
        .index_later = true,
        .shard_bytes_max = shard_bytes_max,
        .indexer = &indexer,
    };
    tide_status rc = tide_archive_open(&options, tide_mem_heap(), &f->archive, &f->err);
    if (rc != TIDE_OK)
        fail_msg("%s", f->err.text);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    tide_message_start();
    f->mails = calloc(MAILS_MAX, sizeof *f->mails);
    assert_non_null(f->mails);
    f->rng = tide_rng_seeded(0x736561726368);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tide-search-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    OK(tide_world_real_new(tide_mem_heap(), &f->world, &f->err));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->archive != NULL)
        OK(tide_archive_close(f->archive, &f->err));
    DIR *dir = opendir(f->dir);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", f->dir, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(dir);
    (void)rmdir(f->dir);
    tide_world_real_free(f->world);
    free(f->mails);
    free(f);
    return 0;
}

/* An archive whose years have parts that overlap. */
static void fill(struct fixture *f, size_t count, size_t unindexed)
{
    archive_open(f, false, 150 << 10);
    for (size_t i = 0; i < count; i++) {
        mail_make(&f->rng, i, &f->mails[i]);
        mail_put(f, &f->mails[i]);
        if (i + unindexed + 1 == count || (i % 60 == 59 && i + unindexed < count)) {
            sync_all(f);
            index_all(f);
        }
        f->mails[i].indexed = i + unindexed < count;
    }
    sync_all(f);
    f->count = count;
    OK(tide_archive_close(f->archive, &f->err));
    archive_open(f, true, 0);
}

/* ---- queries, naively ---- */

typedef enum kind {
    KIND_ALL_OF,
    KIND_ANY_OF,
    KIND_NOT,
    KIND_WORDS,
    KIND_LABEL,
    KIND_ATTACHMENT,
    KIND_LARGER,
    KIND_SMALLER,
    KIND_AFTER,
    KIND_BEFORE,
    KIND_ID,
    KIND_ANYWHERE,
} kind;

struct tree {
    kind kind;
    int field; /* 0 any, else an operator */
    char text[64];
    struct tokens tokens;
    size_t label;
    int64_t number;
    size_t children[4], count;
};

struct forest {
    struct tree nodes[NODES_MAX];
    size_t count;
    bool words_only; /* all of it can be one expression of the index */
    const struct fixture *f;
};

static const char *const fields[] = {"", "from:", "to:", "cc:", "bcc:", "subject:", "filename:"};

static size_t tree_make(struct forest *forest, tide_rng *rng, unsigned deep);

static void words_make(struct tree *tree, tide_rng *rng)
{
    const size_t field = tide_rng_chance(rng, 1, 2) ? 0 : 1 + tide_rng_below(rng, 6);
    tree->field = (int)field;
    if (field >= 1 && field <= 4) {
        if (field == 1 && tide_rng_chance(rng, 1, 6))
            (void)snprintf(tree->text, sizeof tree->text, "me");
        else if (tide_rng_chance(rng, 1, 3))
            (void)snprintf(tree->text, sizeof tree->text, "%s@%s.example",
                           people[tide_rng_below(rng, 4)], people[tide_rng_below(rng, 4)]);
        else
            (void)snprintf(tree->text, sizeof tree->text, "%s", people[tide_rng_below(rng, 4)]);
    } else if (field == 6) {
        (void)snprintf(tree->text, sizeof tree->text, "%s%s",
                       tide_rng_chance(rng, 1, 2) ? "alice." : "",
                       tide_rng_chance(rng, 1, 2) ? "pdf" : "txt");
    } else {
        words_write(rng, tide_rng_chance(rng, 1, 4) ? 2 : 1, tree->text, sizeof tree->text);
    }
    tokens_add(&tree->tokens,
               field == 1 && strcmp(tree->text, "me") == 0 ? "me@example.com" : tree->text);
}

static void leaf_make(const struct forest *forest, struct tree *tree, tide_rng *rng)
{
    static const kind kinds[] = {KIND_WORDS, KIND_WORDS,      KIND_WORDS,  KIND_WORDS,
                                 KIND_LABEL, KIND_ATTACHMENT, KIND_LARGER, KIND_SMALLER,
                                 KIND_AFTER, KIND_BEFORE,     KIND_ID,     KIND_ANYWHERE,
                                 KIND_LABEL, KIND_WORDS,      KIND_LABEL,  KIND_WORDS};
    tree->kind = forest->words_only ? KIND_WORDS : kinds[tide_rng_below(rng, 16)];
    tree->label = tide_rng_below(rng, LABELS);
    if (tree->kind == KIND_WORDS)
        words_make(tree, rng);
    else if (tree->kind == KIND_AFTER || tree->kind == KIND_BEFORE) /* the very time of one */
        tree->number = forest->f->mails[tide_rng_below(rng, forest->f->count)].ms / 1000;
    else if (tree->kind == KIND_ID)
        tree->number = (int64_t)tide_rng_below(rng, MAILS / 2);
    else
        tree->number = 200 + (int64_t)tide_rng_below(rng, 700);
}

static size_t tree_make(struct forest *forest, tide_rng *rng, unsigned deep)
{
    const size_t index = forest->count++;
    struct tree *tree = &forest->nodes[index];
    *tree = (struct tree){.kind = KIND_WORDS};
    const uint64_t drawn = tide_rng_below(rng, 10);
    if (deep == 0 || drawn < 4 || forest->count + 8 > NODES_MAX) {
        leaf_make(forest, tree, rng);
        return index;
    }
    tree->kind = drawn < 6 ? KIND_NOT : drawn < 8 ? KIND_ALL_OF : KIND_ANY_OF;
    const size_t count = tree->kind == KIND_NOT ? 1 : 2 + tide_rng_below(rng, 2);
    for (size_t i = 0; i < count; i++)
        tree->children[tree->count++] = tree_make(forest, rng, deep - 1);
    return index;
}

static void leaf_write(const struct tree *tree, tide_rng *rng, tide_buf *out)
{
    static const char *const labels[LABELS][3] = {
        {"in:inbox", "label:INBOX", "is:inbox"},
        {"is:unread", "label:unread", "-is:read"},
        {"in:spam", "label:Spam", "is:spam"},
        {"in:trash", "in:bin", "label:trash"},
        {"in:sent", "label:SENT", "is:sent"},
        {"is:starred", "label:starred", "in:starred"},
        {"label:my-label-sub", "label:\"My Label/sub\"", "label:Label_1"},
        {"label:work", "in:Work", "label:label_2"},
    };
    switch (tree->kind) {
    case KIND_WORDS:
        (void)tide_buf_print(out, strchr(tree->text, ' ') == NULL ? "%s%s" : "%s\"%s\"",
                             fields[tree->field], tree->text);
        return;
    case KIND_LABEL:
        (void)tide_buf_add_text(out, labels[tree->label][tide_rng_below(rng, 3)]);
        return;
    case KIND_ATTACHMENT:
        (void)tide_buf_add_text(out, "has:attachment");
        return;
    case KIND_ANYWHERE:
        (void)tide_buf_add_text(out, "in:anywhere");
        return;
    case KIND_ID:
        (void)tide_buf_print(out, "rfc822msgid:<%" PRId64 "@id.example>", tree->number);
        return;
    case KIND_LARGER:
    case KIND_SMALLER:
        (void)tide_buf_print(out, "%s:%" PRId64, tree->kind == KIND_LARGER ? "larger" : "smaller",
                             tree->number);
        return;
    case KIND_AFTER:
    case KIND_BEFORE:
        (void)tide_buf_print(out, "%s:%" PRId64, tree->kind == KIND_AFTER ? "after" : "before",
                             tree->number);
        return;
    case KIND_ALL_OF:
    case KIND_ANY_OF:
    case KIND_NOT:
        break;
    }
    fail();
}

static void tree_write(const struct forest *forest, size_t index, tide_rng *rng, tide_buf *out)
{
    const struct tree *tree = &forest->nodes[index];
    if (tree->count == 0) {
        leaf_write(tree, rng, out);
        return;
    }
    const bool braces = tree->kind == KIND_ANY_OF && tide_rng_chance(rng, 1, 2);
    (void)tide_buf_add_text(out, tree->kind == KIND_NOT ? "-(" : braces ? "{" : "(");
    for (size_t i = 0; i < tree->count; i++) {
        if (i > 0)
            (void)tide_buf_add_text(out, tree->kind == KIND_ALL_OF || braces ? " " : " OR ");
        tree_write(forest, tree->children[i], rng, out);
    }
    (void)tide_buf_add_text(out, braces ? "}" : ")");
}

static bool words_match(const struct mail *mail, const struct tree *tree)
{
    struct tokens to = mail->in_to; /* the index has all who receive it in one field */
    for (size_t i = 0; i < mail->in_cc.count; i++)
        memcpy(to.list[to.count++], mail->in_cc.list[i], TOKEN_BYTES);
    for (size_t i = 0; i < mail->in_bcc.count; i++)
        memcpy(to.list[to.count++], mail->in_bcc.list[i], TOKEN_BYTES);
    const struct tokens *const places[] = {
        &mail->in_from,  &to,           &mail->in_cc, &mail->in_bcc, &mail->in_subject,
        &mail->in_files, &mail->in_text};
    if (!mail->indexed)
        return false;
    if (tree->field != 0)
        return tokens_contain(places[tree->field - 1], &tree->tokens);
    for (size_t i = 0; i < 7; i++)
        if (i != 2 && i != 3 && tokens_contain(places[i], &tree->tokens))
            return true;
    return false;
}

static bool leaf_match(const struct mail *mail, const struct tree *tree)
{
    char id[48];
    switch (tree->kind) {
    case KIND_WORDS:
        return words_match(mail, tree);
    case KIND_LABEL:
        return mail->labels[tree->label];
    case KIND_ATTACHMENT:
        return mail->indexed && mail->file[0] != '\0';
    case KIND_LARGER:
        return (int64_t)mail->bytes > tree->number;
    case KIND_SMALLER:
        return (int64_t)mail->bytes < tree->number;
    case KIND_AFTER:
        return mail->ms >= tree->number * 1000;
    case KIND_BEFORE:
        return mail->ms < tree->number * 1000;
    case KIND_ID:
        (void)snprintf(id, sizeof id, "%" PRId64 "@id.example", tree->number);
        return mail->indexed && strcmp(id, mail->message_id) == 0;
    case KIND_ANYWHERE:
        return true;
    case KIND_ALL_OF:
    case KIND_ANY_OF:
    case KIND_NOT:
        break;
    }
    return false;
}

static bool tree_match(const struct forest *forest, size_t index, const struct mail *mail)
{
    const struct tree *tree = &forest->nodes[index];
    if (tree->count == 0)
        return leaf_match(mail, tree);
    if (tree->kind == KIND_NOT)
        return !tree_match(forest, tree->children[0], mail);
    for (size_t i = 0; i < tree->count; i++)
        if (tree_match(forest, tree->children[i], mail) == (tree->kind == KIND_ANY_OF))
            return tree->kind == KIND_ANY_OF;
    return tree->kind == KIND_ALL_OF;
}

/* Whether spam and trash are asked for, somewhere not under a negation. */
static bool tree_asks(const struct forest *forest, size_t index, bool negated)
{
    const struct tree *tree = &forest->nodes[index];
    if (tree->kind == KIND_ANYWHERE ||
        (tree->kind == KIND_LABEL && (tree->label == 2 || tree->label == 3)))
        return !negated;
    for (size_t i = 0; i < tree->count; i++)
        if (tree_asks(forest, tree->children[i], negated != (tree->kind == KIND_NOT)))
            return true;
    return false;
}

static bool wanted(const struct forest *forest, const struct mail *mail)
{
    const bool hidden = mail->labels[2] || mail->labels[3];
    return (!hidden || tree_asks(forest, 0, false)) && tree_match(forest, 0, mail);
}

/* ---- searching ---- */

struct seen {
    struct fixture *f;
    size_t list[MAILS_MAX]; /* numbers of mails in the order in which they came */
    size_t count;
    uint64_t bytes;
    double rank_last;
    char snippet[1024];
};

static bool see(const struct tide_found *found, void *arg)
{
    struct seen *seen = arg;
    uint64_t number = 0;
    assert_true(tide_text_to_u64(tide_text_of(found->stored.gmail_id + 1), &number));
    assert_true(number < seen->f->count);
    const struct mail *mail = &seen->f->mails[number];
    assert_int_equal(found->stored.internal_ms, mail->ms);
    assert_int_equal(found->stored.bytes, mail->bytes);
    assert_int_equal(found->stored.indexed, mail->indexed);
    if (mail->indexed)
        assert_true(tide_text_equal(found->subject, tide_text_of(mail->subject)));
    (void)snprintf(seen->snippet, sizeof seen->snippet, "%.*s", (int)found->snippet.bytes,
                   found->snippet.data);
    seen->rank_last = found->rank;
    seen->bytes += found->stored.bytes;
    seen->list[seen->count++] = number;
    return true;
}

static tide_query *parse(struct fixture *f, const char *text)
{
    tide_query *query = NULL;
    tide_status rc = tide_query_parse(tide_text_of(text), start_ms + span_ms, 0, tide_mem_heap(),
                                      &query, &f->err);
    if (rc != TIDE_OK)
        fail_msg("%s: %s", text, f->err.text);
    return query;
}

/* All pages of a search, of `limit` each. */
static void search_all(struct fixture *f, struct tide_search search, struct seen *seen)
{
    tide_buf token, next;
    bool more = true;
    tide_buf_init(&token, tide_mem_heap(), 4096);
    tide_buf_init(&next, tide_mem_heap(), 4096);
    *seen = (struct seen){.f = f};
    while (more) {
        const size_t before = seen->count;
        search.after = tide_buf_text(&token);
        tide_status rc = tide_search_run(f->archive, &search, see, seen, &next, &more, &f->err);
        if (rc != TIDE_OK)
            fail_msg("%s", f->err.text);
        assert_true(seen->count - before <= search.limit);
        assert_true(!more || seen->count - before == search.limit);
        tide_buf_clear(&token);
        OK(tide_buf_add(&token, next.data == NULL ? "" : next.data, next.bytes));
    }
    tide_buf_done(&token);
    tide_buf_done(&next);
}

static void search_text(struct fixture *f, const char *text, struct seen *seen)
{
    tide_query *query = parse(f, text);
    search_all(f, (struct tide_search){.query = query, .limit = 100}, seen);
    tide_query_free(query);
}

/* Each once, in order of time unless `ordered` is 0, and just these. */
static void seen_check(const struct seen *seen, const bool *expected, int ordered,
                       const char *about)
{
    bool got[MAILS_MAX] = {false};
    for (size_t i = 0; i < seen->count; i++) {
        const struct mail *mails = seen->f->mails;
        if (got[seen->list[i]])
            fail_msg("%s: %s twice", about, mails[seen->list[i]].id);
        got[seen->list[i]] = true;
        if (!expected[seen->list[i]])
            fail_msg("%s: %s is found", about, mails[seen->list[i]].id);
        if (i > 0 && ordered != 0) {
            const int64_t before = mails[seen->list[i - 1]].ms, here = mails[seen->list[i]].ms;
            if (ordered > 0 ? here > before : here < before)
                fail_msg("%s: %s out of order", about, mails[seen->list[i]].id);
        }
    }
    for (size_t i = 0; i < seen->f->count; i++)
        if (expected[i] && !got[i])
            fail_msg("%s: %s is not found", about, seen->f->mails[i].id);
}

/* ---- S1 ---- */

/* The walk itself, with flows that lose patience at once: every way of catching
 * up is taken in a small archive too. */
static bool see_place(void *arg, const struct tide_place *place)
{
    struct seen *seen = arg;
    struct tide_shard *shard = tide_shards_get(&seen->f->shards, place->shard);
    sqlite3_stmt *stmt = tide_db_stmt(&shard->db, TIDE_SHARD_AT);
    struct tide_stored stored;
    uint64_t number = 0;
    bool row = false;
    (void)sqlite3_bind_int64(stmt, 1, place->id);
    OK(tide_db_step(&shard->db, stmt, &row, NULL));
    assert_true(row);
    tide_shard_stored(shard, stmt, &stored);
    tide_db_end(stmt);
    assert_true(tide_text_to_u64(tide_text_of(stored.gmail_id + 1), &number));
    seen->list[seen->count++] = number;
    return true;
}

static void walk_leaping(struct fixture *f, const tide_query *query, tide_rng *rng,
                         const bool *expected, const char *about)
{
    static struct seen seen;
    struct tide_searching searching;
    const struct tide_start start = {.given = false};
    seen = (struct seen){.f = f};
    OK(tide_searching_init(&searching, &f->shards, tide_mem_heap(), &f->err));
    searching.steps = (struct tide_steps){.words = (int)tide_rng_below(rng, 3),
                                          .probe = (int)tide_rng_below(rng, 2),
                                          .rows = (int)tide_rng_below(rng, 3),
                                          .set = tide_rng_below(rng, 2) * 5};
    searching.descending = tide_rng_chance(rng, 1, 2);
    OK(tide_plan_make(&searching, query));
    OK(tide_search_walk(&searching, searching.plan.root, &start, see_place, &seen));
    seen_check(&seen, expected, searching.descending ? 1 : -1, about);
    tide_searching_done(&searching);
}

static void one_random_query(struct fixture *f, uint64_t seed)
{
    tide_rng rng = tide_rng_seeded(seed);
    static struct forest forest;
    forest.count = 0;
    forest.f = f;
    forest.words_only = tide_rng_chance(&rng, 1, 3);
    (void)tree_make(&forest, &rng, 1 + (unsigned)tide_rng_below(&rng, 4));
    tide_buf text;
    tide_buf_init(&text, tide_mem_heap(), 1 << 16);
    tree_write(&forest, 0, &rng, &text);
    char about[1200];
    (void)snprintf(about, sizeof about, "seed %" PRIu64 ": %s", seed, tide_buf_cstr(&text));

    bool expected[MAILS_MAX] = {false};
    uint64_t count_expected = 0, bytes_expected = 0, count = 0, bytes = 0;
    for (size_t i = 0; i < f->count; i++) {
        expected[i] = wanted(&forest, &f->mails[i]);
        count_expected += expected[i];
        bytes_expected += expected[i] ? f->mails[i].bytes : 0;
    }
    tide_query *query = parse(f, tide_buf_cstr(&text));
    tide_query_check(query);
    static struct seen seen;
    const uint32_t limit =
        1 + (uint32_t)tide_rng_below(&rng, tide_rng_chance(&rng, 9, 10) ? 300 : 12);
    if (tide_rng_chance(&rng, 1, 3))
        walk_leaping(f, query, &rng, expected, about);
    switch (tide_rng_below(&rng, 4)) {
    case 0:
        search_all(f, (struct tide_search){.query = query, .limit = limit, .oldest_first = true},
                   &seen);
        seen_check(&seen, expected, -1, about);
        break;
    case 1:
        search_all(f, (struct tide_search){.query = query, .limit = limit + 20, .ranked = true},
                   &seen);
        seen_check(&seen, expected, 0, about);
        break;
    default:
        search_all(f, (struct tide_search){.query = query, .limit = limit}, &seen);
        seen_check(&seen, expected, 1, about);
        OK(tide_search_count(f->archive, query, &count, &bytes, &f->err));
        if (count != count_expected || bytes != bytes_expected)
            fail_msg("%s: counts %" PRIu64 " of %" PRIu64, about, count, count_expected);
        break;
    }
    tide_query_free(query);
    tide_buf_done(&text);
}

static void what_is_found_is_what_matching_every_message_finds(void **state)
{
    struct fixture *f = *state;
    fill(f, MAILS, UNINDEXED);
    const size_t shards = tide_archive_shards(f->archive);
    if (shards < 5) /* three years, and parts of them */
        fail_msg("%zu shards are not enough for this test", shards);
    const struct tide_archive_options options = {
        .dir = f->dir, .account = "me@example.com", .world = f->world, .read_only = true};
    tide_shards_init(&f->shards, &options, tide_mem_heap());
    OK(tide_shards_look(&f->shards, &f->err));
    const uint64_t rounds = scaled(300);
    for (uint64_t seed = 1; seed <= rounds; seed++)
        one_random_query(f, seed);
    tide_shards_done(&f->shards);
}

/* ---- S2 ---- */

/* Pages of three while mail is added in front of, behind and inside of them. */
static void a_page_goes_on_behind_the_one_before_while_mail_is_added(void **state)
{
    struct fixture *f = *state;
    fill(f, 120, 0);
    OK(tide_archive_close(f->archive, &f->err));
    archive_open(f, false, 150 << 10);
    tide_query *query = parse(f, "in:anywhere the");
    tide_buf token, next;
    tide_buf_init(&token, tide_mem_heap(), 4096);
    tide_buf_init(&next, tide_mem_heap(), 4096);
    static struct seen seen;
    seen = (struct seen){.f = f};
    bool more = true;
    size_t added_seen = 0;
    for (size_t page = 0; more; page++) {
        const struct tide_search search = {
            .query = query, .limit = 3, .after = tide_buf_text(&token)};
        OK(tide_search_run(f->archive, &search, see, &seen, &next, &more, &f->err));
        tide_buf_clear(&token);
        OK(tide_buf_add(&token, next.data == NULL ? "" : next.data, next.bytes));
        if (f->count < 200) {
            struct mail *mail = &f->mails[f->count];
            mail_make(&f->rng, f->count, mail);
            (void)snprintf(mail->text, sizeof mail->text, "the");
            f->count++;
            mail_put(f, mail);
            sync_all(f);
            index_all(f);
        }
    }
    for (size_t i = 0; i < seen.count; i++) {
        added_seen += seen.list[i] >= 120;
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(seen.list[i], seen.list[j]);
        if (i > 0)
            assert_true(f->mails[seen.list[i]].ms <= f->mails[seen.list[i - 1]].ms);
    }
    const struct tree the = {.kind = KIND_WORDS, .tokens = {.list = {"the"}, .count = 1}};
    for (size_t i = 0; i < 120; i++) {
        bool found = false;
        for (size_t j = 0; j < seen.count; j++)
            found = found || seen.list[j] == i;
        assert_int_equal(found, words_match(&f->mails[i], &the));
    }
    assert_true(added_seen > 0);
    tide_query_free(query);
    tide_buf_done(&token);
    tide_buf_done(&next);
}

static void a_token_of_another_search_is_refused(void **state)
{
    struct fixture *f = *state;
    fill(f, 30, 0);
    static const char *const bad[] = {
        "x",
        "n",
        "n:2019",
        "o:2019:5",
        "r:2019:5:1",
        "n:2019:",
        "n:2019:x",
        "n:2019-0:5",
        "n:x:5",
        "n:2019:5:5",
        "n:99999:5",
        "n:2019-5000:1",
        "n:2019:99999999999999999999",
        "n:2019:-5",
        "n:2019-:5 ",
        ":::",
    };
    static struct seen seen;
    seen = (struct seen){.f = f};
    bool more = false;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct tide_search search = {.after = tide_text_of(bad[i])};
        tide_status rc = tide_search_run(f->archive, &search, see, &seen, NULL, &more, &f->err);
        if (rc != TIDE_INVALID)
            fail_msg("%s is taken", bad[i]);
    }
    const struct tide_search large = {.limit = TIDE_SEARCH_PAGE_MAX + 1};
    assert_int_equal(tide_search_run(f->archive, &large, see, &seen, NULL, &more, &f->err),
                     TIDE_INVALID);
    const struct tide_search both = {.ranked = true, .oldest_first = true};
    assert_int_equal(tide_search_run(f->archive, &both, see, &seen, NULL, &more, &f->err),
                     TIDE_INVALID);
    assert_int_equal(seen.count, 0);
    /* A shard that is not there divides the others all the same. */
    const struct tide_search early = {.after = TIDE_TEXT("n:2000-3:5")};
    OK(tide_search_run(f->archive, &early, see, &seen, NULL, &more, &f->err));
    assert_int_equal(seen.count, 0);
    const struct tide_search late = {.after = TIDE_TEXT("n:2050:5"), .limit = 5};
    OK(tide_search_run(f->archive, &late, see, &seen, NULL, &more, &f->err));
    assert_int_equal(seen.count, 5);
}

/* ---- what is said ---- */

static tide_status search_status(struct fixture *f, const char *text)
{
    static struct seen seen;
    seen = (struct seen){.f = f};
    bool more = false;
    tide_query *query = parse(f, text);
    const struct tide_search search = {.query = query};
    tide_status rc = tide_search_run(f->archive, &search, see, &seen, NULL, &more, &f->err);
    tide_query_free(query);
    return rc;
}

static void a_label_that_does_not_exist_is_an_error_with_the_nearest_one(void **state)
{
    struct fixture *f = *state;
    fill(f, 60, 0);
    assert_int_equal(search_status(f, "a label:wrok"), TIDE_INVALID);
    assert_non_null(strstr(f->err.text, "\"wrok\""));
    assert_non_null(strstr(f->err.text, "character 3"));
    assert_non_null(strstr(f->err.text, "\"Work\""));
    assert_int_equal(search_status(f, "-label:nothing-like-it"), TIDE_INVALID);
    assert_null(strstr(f->err.text, "did you mean"));
    OK(search_status(f, "label:important")); /* Gmail's own, on no message */
    OK(search_status(f, "category:social"));
}

static void a_query_without_words_is_an_error(void **state)
{
    struct fixture *f = *state;
    fill(f, 10, 0);
    assert_int_equal(search_status(f, "\xf0\x9f\x8e\x89"), TIDE_INVALID); /* a party popper */
    assert_int_equal(search_status(f, "subject:\xe2\x80\xa6"), TIDE_INVALID);
    assert_non_null(strstr(f->err.text, "character 1"));
    OK(search_status(f, "the \xf0\x9f\x8e\x89"));
    OK(search_status(f, "the OR \xf0\x9f\x8e\x89"));
}

static void an_archive_without_mail_has_nothing(void **state)
{
    struct fixture *f = *state;
    archive_open(f, false, 0);
    uint64_t count = 7, bytes = 7;
    OK(search_status(f, "from:alice has:attachment -x"));
    OK(tide_search_count(f->archive, NULL, &count, &bytes, &f->err));
    assert_int_equal(count, 0);
    assert_int_equal(bytes, 0);
    static struct seen seen;
    search_all(f, (struct tide_search){.ranked = true, .limit = 5}, &seen);
    assert_int_equal(seen.count, 0);
}

/* ---- deep and wide ---- */

/* Alternating ANDs and ORs as deep as a query may be: more than one expression of
 * the index takes. */
static void the_deepest_query_is_answered(void **state)
{
    struct fixture *f = *state;
    fill(f, 60, 0);
    tide_buf text;
    tide_buf_init(&text, tide_mem_heap(), 1 << 16);
    for (int i = 0; i < TIDE_QUERY_DEEP; i++)
        (void)tide_buf_add_text(&text, i % 2 == 0 ? "{nowhere " : "(the ");
    (void)tide_buf_add_text(&text, "the");
    for (int i = TIDE_QUERY_DEEP; i > 0; i--)
        (void)tide_buf_add_text(&text, i % 2 == 1 ? "}" : ")");
    static struct seen deep, plain;
    search_text(f, tide_buf_cstr(&text), &deep);
    search_text(f, "the", &plain);
    assert_true(plain.count > 0);
    assert_int_equal(deep.count, plain.count);
    assert_memory_equal(deep.list, plain.list, plain.count * sizeof plain.list[0]);

    tide_buf_clear(&text);
    for (int i = 0; i < 500; i++)
        (void)tide_buf_print(&text, "%s-n%d", i == 0 ? "the " : " ", i);
    search_text(f, tide_buf_cstr(&text), &deep);
    assert_int_equal(deep.count, plain.count);
    tide_buf_clear(&text);
    for (int i = 0; i < 250; i++)
        (void)tide_buf_print(&text, "%sn%d OR larger:%d", i == 0 ? "the OR " : " OR ", i,
                             9000000 + i);
    search_text(f, tide_buf_cstr(&text), &deep);
    assert_int_equal(deep.count, plain.count);
    tide_buf_done(&text);
}

/* Where many messages have one date, their ids lie among those of later ones
 * (archive.h A4); what a span of dates finds must not show it. */
static void dates_are_exact_beside_a_crowd(void **state)
{
    struct fixture *f = *state;
    enum { CROWD = 400, SECONDS = 90, FIRST_S = 1000 };
    archive_open(f, false, 0);
    for (size_t i = 0; i < CROWD + SECONDS; i++) {
        struct mail *mail = &f->mails[i];
        mail_make(&f->rng, i, mail);
        memset(mail->labels, 0, sizeof mail->labels);
        const int64_t at_s = i < CROWD ? FIRST_S + 20 : FIRST_S + (int64_t)(i - CROWD);
        mail->ms = start_ms + at_s * 1000 + (i < CROWD ? 3 : 0);
        (void)snprintf(mail->text, sizeof mail->text, i % 3 == 0 ? "zebra" : "the other");
        (void)snprintf(mail->subject, sizeof mail->subject, "nothing");
        mail_put(f, mail);
    }
    sync_all(f);
    index_all(f);
    const int64_t zero_s = start_ms / 1000 + FIRST_S;
    for (int64_t from = -1; from <= SECONDS; from += 7)
        for (int64_t to = from + 1; to <= SECONDS + 1; to += 5) {
            uint64_t all = 0, zebras = 0, outside = 0;
            for (size_t i = 0; i < CROWD + SECONDS; i++) {
                const int64_t ms = f->mails[i].ms - zero_s * 1000;
                const bool inside = ms >= from * 1000 && ms < to * 1000;
                all += inside;
                zebras += inside && i % 3 == 0;
                outside += !inside && i % 3 == 0;
            }
            const char *const forms[][2] = {
                {"", ""}, {"", " zebra"}, {"-(", ") zebra"}, {"(zebra ", ") OR larger:1000000"}};
            const uint64_t wanted[] = {all, zebras, outside, zebras};
            for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
                char text[200];
                uint64_t count = 0, bytes = 0;
                (void)snprintf(text, sizeof text, "%safter:%lld before:%lld%s", forms[i][0],
                               (long long)(zero_s + from), (long long)(zero_s + to), forms[i][1]);
                tide_query *query = parse(f, text);
                OK(tide_search_count(f->archive, query, &count, &bytes, &f->err));
                if (count != wanted[i])
                    fail_msg("%s: %d instead of %d", text, (int)count, (int)wanted[i]);
                tide_query_free(query);
            }
        }
}

/* ---- ranking ---- */

static void the_best_come_first_and_pages_of_them_are_apart(void **state)
{
    struct fixture *f = *state;
    archive_open(f, false, 0);
    static const char *const subjects[] = {"the plan", "budget the", "the the", "budget"};
    for (size_t i = 0; i < 200; i++) {
        struct mail *mail = &f->mails[i];
        mail_make(&f->rng, i, mail);
        memset(mail->labels, 0, sizeof mail->labels);
        (void)snprintf(mail->from, sizeof mail->from, "a@b.example");
        (void)snprintf(mail->to, sizeof mail->to, "c@d.example");
        mail->cc[0] = mail->bcc[0] = mail->file[0] = '\0';
        mail->ms = start_ms + (int64_t)i * 1000;
        (void)snprintf(mail->subject, sizeof mail->subject, "%s",
                       i < 4 ? subjects[i] : "nothing of it");
        (void)snprintf(mail->text, sizeof mail->text, "%s",
                       i % 10 == 5 ? "the budget and more" : "the other");
        mail->indexed = true;
        mail_put(f, mail);
    }
    f->count = 200;
    sync_all(f);
    index_all(f);
    static struct seen seen;
    tide_query *query = parse(f, "budget");
    search_all(f, (struct tide_search){.query = query, .ranked = true, .limit = 7}, &seen);
    assert_int_equal(seen.count, 22);
    assert_int_equal(seen.list[0] + seen.list[1], 1 + 3); /* in the subject */
    for (size_t i = 0; i < seen.count; i++)
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(seen.list[i], seen.list[j]);
    for (size_t i = 3; i < seen.count; i++) /* equal ones: the newest first */
        assert_true(seen.list[i] < seen.list[i - 1]);
    tide_query_free(query);
    /* A word that is everywhere says little, however often it is there. */
    query = parse(f, "the OR budget");
    search_all(f, (struct tide_search){.query = query, .ranked = true, .limit = 50}, &seen);
    assert_int_equal(seen.count, 200);
    bool among_first = false;
    for (size_t i = 0; i < 3; i++)
        among_first = among_first || seen.list[i] == 1;
    assert_true(among_first);
    size_t plain_at = 0, budget_at = 0;
    for (size_t i = 0; i < seen.count; i++) {
        plain_at = seen.list[i] == 2 ? i : plain_at;
        budget_at = seen.list[i] == 15 ? i : budget_at;
    }
    assert_true(budget_at < plain_at);
    tide_query_free(query);
}

/* ---- snippets ---- */

static void snippet_is(struct fixture *f, const char *query_text, const char *text,
                       const char *expected)
{
    tide_shards shards = {.mem = tide_mem_heap(), .account = "me@example.com"};
    struct tide_searching searching;
    tide_query *query = parse(f, query_text);
    tide_buf out;
    tide_buf_init(&out, tide_mem_heap(), 1 << 16);
    OK(tide_searching_init(&searching, &shards, tide_mem_heap(), &f->err));
    OK(tide_plan_make(&searching, query));
    OK(tide_search_snippet(&searching, tide_text_of(text), &out));
    char shown[2048];
    size_t at = 0;
    for (const char *c = tide_buf_cstr(&out); *c != '\0'; c++)
        shown[at++] = *c == '\x01' ? '[' : *c == '\x02' ? ']' : *c;
    shown[at] = '\0';
    if (strcmp(shown, expected) != 0)
        fail_msg("%s in %s:\n is  %s\n not %s", query_text, text, shown, expected);
    tide_searching_done(&searching);
    tide_query_free(query);
    tide_buf_done(&out);
}

static void a_snippet_marks_what_was_found(void **state)
{
    struct fixture *f = *state;
    snippet_is(f, "world", "hello world again", "hello [world] again");
    snippet_is(f, "world", "", "");
    snippet_is(f, "nowhere", "hello world", "hello world");
    snippet_is(f, "cafe", "One CAF\xc3\x89, please", "One [CAF\xc3\x89], please");
    snippet_is(f, "\"a b\"", "a a b b a", "a [a b] b a");
    snippet_is(f, "a b", "a a b b c", "[a] [a] [b] [b] c");
    snippet_is(f, "-a b", "a b", "a [b]");
    snippet_is(f, "foo.bar", "see foo-bar here", "see [foo-bar] here");
    snippet_is(f, "\xe6\x9c\xac\xe8\xaa\x9e", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x80\x82",
               "\xe6\x97\xa5[\xe6\x9c\xac\xe8\xaa\x9e]\xe3\x80\x82");
    snippet_is(f, "b", "a\n\n\tb\x01  c\x02", "a [b] c");
    snippet_is(f, "needle",
               "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
               "needle sixteen",
               "\xe2\x80\xa6"
               "ten eleven twelve thirteen fourteen [needle] sixteen");
    /* Where both are is better than where one is first. */
    snippet_is(f, "p q",
               "p and very much of another text that has nothing to do with it goes on and on here "
               "for a while, longer than any snippet could be, even if it were somewhat longer, "
               "then p with q.",
               "\xe2\x80\xa6"
               "even if it were somewhat longer, then [p] with [q].");
}

static void a_long_text_is_cut_at_words(void **state)
{
    struct fixture *f = *state;
    tide_shards shards = {.mem = tide_mem_heap(), .account = "me@example.com"};
    struct tide_searching searching;
    tide_query *query = parse(f, "\"\xe6\x97\xa5\xe6\x9c\xac\" needle");
    OK(tide_searching_init(&searching, &shards, tide_mem_heap(), &f->err));
    OK(tide_plan_make(&searching, query));
    tide_buf text, out;
    tide_buf_init(&text, tide_mem_heap(), 1 << 24);
    tide_buf_init(&out, tide_mem_heap(), 1 << 16);
    for (size_t i = 0; i < 400000; i++)
        (void)tide_buf_add_text(&text, i % 3 == 0   ? "\xe6\x97\xa5"
                                       : i % 7 == 0 ? " "
                                                    : "\xe6\x9c\xac");
    OK(tide_search_snippet(&searching, tide_buf_text(&text), &out));
    assert_true(out.bytes > 50);
    assert_true(out.bytes < 4 * TIDE_SNIPPET_BYTES);
    for (size_t at = 0; at < out.bytes;) {
        const size_t bytes = (unsigned char)out.data[at] < 0x80 ? 1 : 3;
        assert_true(bytes == 1 || ((unsigned char)out.data[at] & 0xf0) == 0xe0);
        at += bytes;
    }
    assert_non_null(memchr(out.data, '\x01', out.bytes));
    tide_searching_done(&searching);
    tide_query_free(query);
    tide_buf_done(&text);
    tide_buf_done(&out);
}

static void a_page_has_snippets_from_the_messages_themselves(void **state)
{
    struct fixture *f = *state;
    fill(f, 40, 0);
    static struct seen seen;
    tide_query *query = parse(f, "in:anywhere the");
    bool more = false;
    seen = (struct seen){.f = f};
    const struct tide_search search = {.query = query, .limit = 1, .snippets = true};
    OK(tide_search_run(f->archive, &search, see, &seen, NULL, &more, &f->err));
    assert_int_equal(seen.count, 1);
    assert_true(seen.snippet[0] != '\0');
    const struct mail *mail = &f->mails[seen.list[0]];
    assert_int_equal(strstr(seen.snippet, "\x01the\x02") != NULL,
                     strstr(mail->text, "the") != NULL);
    tide_query_free(query);
}

/* ---- plans ---- */

/* Every flow walks an index in order: nothing is sorted. */
static void no_flow_sorts(void **state)
{
    struct fixture *f = *state;
    fill(f, 20, 0);
    static const char *const queries[] = {"the",        "label:work",      "has:attachment",
                                          "larger:300", "rfc822msgid:x",   "",
                                          "-the",       "after:2019/01/01"};
    tide_shards shards;
    const struct tide_archive_options options = {
        .dir = f->dir, .account = "me@example.com", .world = f->world, .read_only = true};
    tide_shards_init(&shards, &options, tide_mem_heap());
    OK(tide_shards_look(&shards, &f->err));
    for (size_t i = 0; i < 2 * sizeof queries / sizeof queries[0]; i++) {
        struct tide_searching searching;
        struct tide_walk walk;
        tide_flow *flow = NULL;
        tide_query *query = parse(f, queries[i / 2]);
        OK(tide_searching_init(&searching, &shards, tide_mem_heap(), &f->err));
        searching.descending = i % 2 == 0;
        OK(tide_plan_make(&searching, query));
        OK(tide_walk_open(&walk, &searching, shards.list[0]));
        OK(tide_flow_open(&walk, searching.plan.root, 0, INT64_MAX - 1, &flow));
        OK(tide_flow_seek(&walk, flow, TIDE_KEY_FIRST));
        for (sqlite3_stmt *stmt = sqlite3_next_stmt(walk.shard->db.handle, NULL); stmt != NULL;
             stmt = sqlite3_next_stmt(walk.shard->db.handle, stmt))
            assert_int_equal(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_SORT, 0), 0);
        tide_walk_close(&walk);
        tide_searching_done(&searching);
        tide_query_free(query);
    }
    tide_shards_done(&shards);
}

/* ---- memory ---- */

static tide_status search_with(struct fixture *f, tide_mem *mem)
{
    const struct tide_archive_options options = {
        .dir = f->dir, .account = "me@example.com", .world = f->world, .read_only = true};
    tide_archive *archive = NULL;
    tide_query *query = parse(f, "{the (from:alice -cc:bob) larger:500} -label:work");
    static struct seen seen;
    seen = (struct seen){.f = f};
    tide_buf next;
    bool more = false;
    uint64_t count = 0, bytes = 0;
    tide_buf_init(&next, mem, 4096);
    tide_status rc = tide_archive_open(&options, mem, &archive, &f->err);
    struct tide_search search = {.query = query, .limit = 3, .snippets = true};
    if (rc == TIDE_OK)
        rc = tide_search_run(archive, &search, see, &seen, &next, &more, &f->err);
    search.ranked = true;
    if (rc == TIDE_OK)
        rc = tide_search_run(archive, &search, see, &seen, &next, &more, &f->err);
    if (rc == TIDE_OK)
        rc = tide_search_count(archive, query, &count, &bytes, &f->err);
    tide_buf_done(&next);
    assert_int_equal(tide_archive_close(archive, NULL), TIDE_OK);
    tide_query_free(query);
    return rc;
}

static void every_failed_allocation_is_reported(void **state)
{
    struct fixture *f = *state;
    fill(f, 30, 0);
    for (uint64_t fail_at = 0;; fail_at++) {
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        tide_status rc = search_with(f, &mem.base);
        assert_int_equal(mem.bytes_live, 0);
        if (!mem.fired) {
            OK(rc);
            return;
        }
        if (rc != TIDE_NO_MEMORY)
            fail_msg("allocation %" PRIu64 ": %d", fail_at, rc);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_found_is_what_matching_every_message_finds),
        TEST(a_page_goes_on_behind_the_one_before_while_mail_is_added),
        TEST(a_token_of_another_search_is_refused),
        TEST(a_label_that_does_not_exist_is_an_error_with_the_nearest_one),
        TEST(a_query_without_words_is_an_error),
        TEST(an_archive_without_mail_has_nothing),
        TEST(the_deepest_query_is_answered),
        TEST(dates_are_exact_beside_a_crowd),
        TEST(the_best_come_first_and_pages_of_them_are_apart),
        TEST(a_snippet_marks_what_was_found),
        TEST(a_long_text_is_cut_at_words),
        TEST(a_page_has_snippets_from_the_messages_themselves),
        TEST(no_flow_sorts),
        TEST(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
