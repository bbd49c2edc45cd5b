/* SRC1: what is found is what matching every message finds, naively. */
#include "search_fixture.h"
#include "support/scale.h"
#include "support/heap.h"

enum {
    MAILS = 420,
    UNINDEXED = 12, /* stored last, and not indexed */
    NODES_MAX = 64,
};

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
    char sign; /* '+' exact, '"' exact, '*' prefix; 0: plain */
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

/* How it is written; a prefix loses its last letter where that leaves two. */
static void sign_draw(struct tree *tree, tide_rng *rng)
{
    static const char signs[] = {0, 0, 0, '+', '"', '*'};
    const size_t bytes = strlen(tree->text);
    tree->sign = strchr(tree->text, ' ') != NULL ? '"'
                 : strcmp(tree->text, "me") == 0 ? 0
                                                 : signs[tide_rng_below(rng, sizeof signs)];
    if (tree->sign == '*' && bytes > 2 && (unsigned char)tree->text[bytes - 1] < 0x80)
        tree->text[bytes - 1] = '\0';
}

static void words_make(struct tree *tree, tide_rng *rng)
{
    const size_t field = tide_rng_chance(rng, 1, 2) ? 0 : 1 + tide_rng_below(rng, 6);
    tree->field = (int)field;
    if (field >= 1 && field <= 4) {
        if (field == 1 && tide_rng_chance(rng, 1, 6))
            (void)snprintf(tree->text, sizeof tree->text, "me");
        else if (tide_rng_chance(rng, 1, 3))
            (void)snprintf(tree->text, sizeof tree->text, "%s@%s.example", person(rng),
                           person(rng));
        else
            (void)snprintf(tree->text, sizeof tree->text, "%s", person(rng));
    } else if (field == 6) {
        (void)snprintf(tree->text, sizeof tree->text, "%s%s",
                       tide_rng_chance(rng, 1, 2) ? "alice." : "",
                       tide_rng_chance(rng, 1, 2) ? "pdf" : "txt");
    } else {
        words_write(rng, tide_rng_chance(rng, 1, 4) ? 2 : 1, tree->text, sizeof tree->text);
    }
    sign_draw(tree, rng);
    tokens_add(&tree->tokens,
               field == 1 && strcmp(tree->text, "me") == 0 ? "me@example.com" : tree->text);
    tree->tokens.prefix = tree->sign == '*';
    tree->tokens.forms = tree->sign == 0 && (field == 0 || field == 5) && tree->tokens.count == 1;
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
        (void)tide_buf_print(out, "%s%s%s%s%s", tree->sign == '+' ? "+" : "", fields[tree->field],
                             tree->sign == '"' ? "\"" : "", tree->text,
                             tree->sign == '"'   ? "\""
                             : tree->sign == '*' ? "*"
                                                 : "");
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

static bool leaf_match(const struct mail *mail, const struct tree *tree)
{
    char id[48];
    switch (tree->kind) {
    case KIND_WORDS:
        return mail_has(mail, tree->field, &tree->tokens);
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

/* ---- SRC1 ---- */

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
                                          .slow = (int)tide_rng_below(rng, 3),
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
    tide_buf text = heap_buf(1 << 16);
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

CASE(what_is_found_is_what_matching_every_message_finds)
{
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
