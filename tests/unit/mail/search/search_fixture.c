#include "search_fixture.h"
#include "support/temp_dir.h"
#include "support/heap.h"

/* ---- words, naively ---- */

/* Letters and digits of ASCII without case, e for its accented forms, each
 * character of three bytes on its own; the rest is between words. */
void tokens_add(struct tokens *tokens, const char *text)
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

/* The stock of words has three that are forms of one. */
static bool is_report(const char *token)
{
    return strcmp(token, "report") == 0 || strcmp(token, "reports") == 0 ||
           strcmp(token, "reporting") == 0;
}

static bool token_matches(const struct tokens *wanted, size_t index, const char *token)
{
    const char *part = wanted->list[index];
    if (wanted->prefix && index + 1 == wanted->count)
        return strncmp(token, part, strlen(part)) == 0;
    return strcmp(token, part) == 0 || (wanted->forms && is_report(token) && is_report(part));
}

static bool tokens_contain(const struct tokens *tokens, const struct tokens *part)
{
    for (size_t i = 0; part->count > 0 && i + part->count <= tokens->count; i++) {
        size_t same = 0;
        while (same < part->count && token_matches(part, same, tokens->list[i + same]))
            same++;
        if (same == part->count)
            return true;
    }
    return false;
}

/* ---- mail, naively ---- */

bool mail_has(const struct mail *mail, int field, const struct tokens *wanted)
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
    if (field != 0)
        return tokens_contain(places[field - 1], wanted);
    for (size_t i = 0; i < 7; i++)
        if (i != 2 && i != 3 && tokens_contain(places[i], wanted))
            return true;
    return false;
}

static const char *const label_ids[LABELS] = {"INBOX", "UNREAD",  "SPAM",    "TRASH",
                                              "SENT",  "STARRED", "Label_1", "Label_2"};

static const struct tide_indexer indexer = {.parse = tide_message_parse, .fold = tide_search_fold};

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
    "report",
    "Reports",
    "reporting",
};
enum { WORDS = sizeof words / sizeof words[0] };

const char *word(tide_rng *rng)
{
    return words[tide_rng_below(rng, WORDS)];
}

const char *person(tide_rng *rng)
{
    static const char *const people[] = {"alice", "bob", "carol", "dave"};
    return people[tide_rng_below(rng, sizeof people / sizeof people[0])];
}

void words_write(tide_rng *rng, size_t count, char *room, size_t room_bytes)
{
    size_t at = 0;
    room[0] = '\0';
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(room + at, room_bytes - at, i == 0 ? "%s" : " %s", word(rng));
}

static void person_write(tide_rng *rng, char *room, size_t room_bytes)
{
    const char *name = person(rng);
    const char *host = person(rng);
    (void)snprintf(room, room_bytes, "%s %s <%s@%s.example>", name,
                   word(rng) == words[0] ? "x" : "y", name, host);
}

void mail_make(tide_rng *rng, size_t number, struct mail *mail)
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
        (void)snprintf(mail->file, sizeof mail->file, "%s.%s", person(rng),
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
    (void)tide_buf_print(out, "Subject: %s\r\nMessage-ID: <%s>\r\nMIME-Version: 1.0\r\n%s",
                         mail->subject, mail->message_id, mail->headers);
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

void mail_put(struct fixture *f, struct mail *mail)
{
    tide_text labels[LABELS];
    size_t count = 0;
    tide_buf raw = heap_buf(1 << 20);
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

void sync_all(struct fixture *f)
{
    uint64_t ticket = 0;
    OK(tide_archive_label_name(f->archive, TIDE_TEXT("Label_1"), TIDE_TEXT("My Label/sub"),
                               TIDE_TEXT("user"), &ticket, &f->err));
    OK(tide_archive_label_name(f->archive, TIDE_TEXT("Label_2"), TIDE_TEXT("Work"),
                               TIDE_TEXT("user"), &ticket, &f->err));
    OK(tide_archive_sync(f->archive, ticket, NULL, &f->err));
}

void index_all(struct fixture *f)
{
    uint64_t done = 0;
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
}

void archive_open(struct fixture *f, bool read_only, uint64_t shard_bytes_max)
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

int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->mails = calloc(MAILS_MAX, sizeof *f->mails);
    assert_non_null(f->mails);
    f->rng = tide_rng_seeded(0x736561726368);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tide-search-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    OK(tide_world_real_new(tide_mem_heap(), &f->world, &f->err));
    *state = f;
    return 0;
}

int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->archive != NULL)
        OK(tide_archive_close(f->archive, &f->err));
    assert_int_equal(temp_dir_remove(f->dir), 0);
    tide_world_real_free(f->world);
    free(f->mails);
    free(f);
    return 0;
}

/* An archive whose years have parts that overlap. */
void fill(struct fixture *f, size_t count, size_t unindexed)
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

/* ---- searching ---- */

bool see(const struct tide_found *found, void *arg)
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

tide_query *parse(struct fixture *f, const char *text)
{
    tide_query *query = NULL;
    tide_status rc = tide_query_parse(tide_text_of(text), start_ms + span_ms, 0, tide_mem_heap(),
                                      &query, &f->err);
    if (rc != TIDE_OK)
        fail_msg("%s: %s", text, f->err.text);
    return query;
}

/* All pages of a search, of `limit` each. */
void search_all(struct fixture *f, struct tide_search search, struct seen *seen)
{
    bool more = true;
    tide_buf token = heap_buf(4096);
    tide_buf next = heap_buf(4096);
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
