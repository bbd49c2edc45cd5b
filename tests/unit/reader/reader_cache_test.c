/* The reader's cache: labels of messages, lists, tokens, bodies and which of them go (K9, K10, K12, K13;
 * cache.h CCH1 to CCH5). */
#include "reader/cache/cache.h"

#include "support/heap.h"
#include "support/temp_dir.h"
#include "support/test.h"

#include <unistd.h>

struct fixture {
    tide_world *world;
    tide_cache *cache;
    char dir[64];
    char path[128];
};

#define OK(call)                                                                                   \
    do {                                                                                           \
        tide_error oops = {TIDE_OK, 0, ""};                                                        \
        tide_error *err = &oops;                                                                   \
        if ((call) != TIDE_OK)                                                                     \
            fail_msg("%s: %s", #call, oops.text);                                                  \
        (void)err;                                                                                 \
    } while (0)

/* Runs a call in a transaction of its own. */
#define WRITE(f, call)                                                                             \
    do {                                                                                           \
        OK(tide_cache_begin((f)->cache, err));                                                     \
        OK(tide_cache_end((f)->cache, (call), err));                                               \
    } while (0)

static tide_cache *open_it(struct fixture *f, bool read_only)
{
    const struct tide_cache_options options = {
        .dir = f->dir, .account = "ada@example.com", .world = f->world, .read_only = read_only};
    tide_cache *cache = NULL;
    OK(tide_cache_open(&options, tide_mem_heap(), &cache, err));
    return cache;
}

static struct fixture *begin(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    OK(tide_world_real_new(tide_mem_heap(), &f->world, err));
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tide-reader-cache-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof f->path, "%s/ada@example.com.db", f->dir);
    f->cache = open_it(f, false);
    return f;
}

static void finish(struct fixture *f)
{
    tide_cache_close(f->cache);
    tide_world_real_free(f->world);
    assert_int_equal(temp_dir_remove(f->dir), 0);
    free(f);
}

#define CASE(name) TEST_OF(name, struct fixture *f, begin(), finish)

static tide_status put(struct fixture *f, const char *id, int64_t ms, const char *labels,
                       const char *history, tide_error *err)
{
    tide_text list[8];
    size_t count = 0;
    for (const char *at = labels; *at != '\0'; at += strspn(at, " ")) {
        const size_t bytes = strcspn(at, " ");
        list[count++] = (tide_text){at, bytes};
        at += bytes;
    }
    const struct tide_cache_message message = {.id = tide_text_of(id),
                                               .thread = TIDE_TEXT("t1"),
                                               .history_id = tide_text_of(history),
                                               .internal_ms = ms,
                                               .bytes = 1000,
                                               .labels = list,
                                               .labels_count = count,
                                               .headers = true,
                                               .from = TIDE_TEXT("Ben <ben@example.com>"),
                                               .to = TIDE_TEXT(""),
                                               .cc = TIDE_TEXT(""),
                                               .subject = tide_text_of(id),
                                               .snippet = TIDE_TEXT("a piece"),
                                               .message_id = TIDE_TEXT("")};
    return tide_cache_put(f->cache, &message, err);
}

static bool note(const struct tide_cached *cached, void *arg)
{
    char *text = arg;
    (void)snprintf(text + strlen(text), 300 - strlen(text), "%s ", cached->id);
    return true;
}

static const char *list(struct fixture *f, const char *label)
{
    static char text[300];
    text[0] = '\0';
    OK(tide_cache_list(f->cache, tide_text_of(label), TIDE_CACHE_TOP, 100, note, text, err));
    return text;
}

CASE(a_message_is_in_the_lists_of_all_its_labels)
{
    WRITE(f, put(f, "a", 100, "INBOX UNREAD", "5", err));
    WRITE(f, put(f, "b", 200, "INBOX", "5", err));
    WRITE(f, put(f, "c", 200, "SENT", "5", err));
    assert_string_equal(list(f, "INBOX"), "b a ");
    assert_string_equal(list(f, "UNREAD"), "a ");
    assert_string_equal(list(f, "ALL"), "c b a ");
    assert_string_equal(list(f, "nothing"), "");
    uint64_t total = 0, unread = 0;
    OK(tide_cache_count(f->cache, TIDE_TEXT("INBOX"), &total, &unread, err));
    assert_int_equal(total, 2);
    assert_int_equal(unread, 1);
}

struct counted {
    tide_cache *cache;
    unsigned labels;
};

static void compare(tide_text label, uint64_t count, uint64_t unread, void *arg)
{
    struct counted *counted = arg;
    uint64_t total_now = 0, unread_now = 0;
    OK(tide_cache_count(counted->cache, label, &total_now, &unread_now, err));
    assert_int_equal(count, total_now);
    assert_int_equal(unread, unread_now);
    counted->labels++;
}

static void counts_hold(struct fixture *f, unsigned labels)
{
    struct counted counted = {f->cache, 0};
    OK(tide_cache_counts(f->cache, compare, &counted, err));
    assert_int_equal(counted.labels, labels);
}

/* Whatever happens to labels, what is kept of each is what a count would find; a thousand unread
 * messages and more are no reason to stop counting. */
CASE(counts_are_kept_with_every_change_of_a_label)
{
    static const char *const labels[] = {"INBOX", "UNREAD", "TRASH", "Label_1", "SENT"};
    uint64_t seed = 7, total = 0, unread = 0;
    char id[16];
    OK(tide_cache_begin(f->cache, err));
    for (unsigned i = 0; i < 3000; i++) {
        (void)snprintf(id, sizeof id, "m%u", i);
        OK(put(f, id, 100 + i, i % 10 == 0 ? "INBOX" : "INBOX UNREAD Label_1", "5", err));
    }
    OK(tide_cache_end(f->cache, TIDE_OK, err));
    OK(tide_cache_count(f->cache, TIDE_TEXT("INBOX"), &total, &unread, err));
    assert_int_equal(unread, 2700);
    counts_hold(f, 4); /* and ALL */
    OK(tide_cache_begin(f->cache, err));
    for (unsigned i = 0; i < 2000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        const char *label = labels[(seed >> 33) % 5];
        (void)snprintf(id, sizeof id, "m%u", (unsigned)((seed >> 40) % 3000));
        if ((seed >> 36) % 8 == 0)
            OK(tide_cache_gone(f->cache, tide_text_of(id), err));
        else if ((seed >> 36) % 8 == 1)
            OK(put(f, id, 100 + i, "INBOX UNREAD SENT", "6", err));
        else
            OK(tide_cache_label(f->cache, tide_text_of(id), tide_text_of(label),
                                (seed >> 39) % 2 == 0, TIDE_TEXT(""), err));
    }
    for (int64_t row = 1; row < 500; row++)
        OK(tide_cache_drop(f->cache, row, err));
    OK(tide_cache_end(f->cache, TIDE_OK, err));
    counts_hold(f, 6);
}

CASE(all_mail_has_no_spam_no_trash_and_nothing_that_is_gone)
{
    WRITE(f, put(f, "a", 100, "INBOX", "5", err));
    WRITE(f, tide_cache_label(f->cache, TIDE_TEXT("a"), TIDE_TEXT("TRASH"), true, TIDE_TEXT("6"),
                              err));
    assert_string_equal(list(f, "ALL"), "");
    assert_string_equal(list(f, "TRASH"), "a ");
    WRITE(f, tide_cache_label(f->cache, TIDE_TEXT("a"), TIDE_TEXT("TRASH"), false, TIDE_TEXT("7"),
                              err));
    assert_string_equal(list(f, "ALL"), "a ");
    WRITE(f, tide_cache_gone(f->cache, TIDE_TEXT("a"), err));
    assert_string_equal(list(f, "ALL"), "");
    assert_string_equal(list(f, "INBOX"), "");
}

CASE(an_answer_that_is_older_than_the_row_changes_no_labels)
{
    WRITE(f, put(f, "a", 100, "INBOX", "99", err));
    WRITE(f, tide_cache_label(f->cache, TIDE_TEXT("a"), TIDE_TEXT("INBOX"), false, TIDE_TEXT("100"),
                              err));
    WRITE(f, put(f, "a", 100, "INBOX UNREAD", "99", err)); /* asked before the change */
    assert_string_equal(list(f, "INBOX"), "");
    WRITE(f, tide_cache_label(f->cache, TIDE_TEXT("a"), TIDE_TEXT("STARRED"), true, TIDE_TEXT("98"),
                              err)); /* replayed */
    assert_string_equal(list(f, "STARRED"), "");
    WRITE(f, put(f, "a", 100, "STARRED", "101", err));
    assert_string_equal(list(f, "STARRED"), "a ");
}

CASE(a_list_continues_exactly_after_a_place)
{
    char text[300] = "";
    struct tide_cache_place place = TIDE_CACHE_TOP;
    for (int i = 0; i < 6; i++)
        WRITE(f, put(f, textf("m%d", i), 100 + i / 2, "INBOX", "5", err));
    for (int page = 0; page < 3; page++) {
        char before[300];
        memcpy(before, text, sizeof before);
        OK(tide_cache_list(f->cache, TIDE_TEXT("INBOX"), place, 2, note, text, err));
        place = (struct tide_cache_place){102 - page, 5 - 2 * page};
    }
    assert_string_equal(text, "m5 m4 m3 m2 m1 m0 ");
}

CASE(tokens_and_floors_survive_and_are_forgotten_with_the_history)
{
    struct tide_cache_folder folder;
    OK(tide_cache_folder_get(f->cache, TIDE_TEXT("INBOX"), &folder, err));
    assert_false(folder.known);
    folder.floor_ms = 500;
    (void)snprintf(folder.token, sizeof folder.token, "17 next");
    WRITE(f, tide_cache_folder_put(f->cache, TIDE_TEXT("INBOX"), &folder, err));
    tide_cache_close(f->cache);
    f->cache = open_it(f, false);
    OK(tide_cache_folder_get(f->cache, TIDE_TEXT("INBOX"), &folder, err));
    assert_true(folder.known);
    assert_int_equal(folder.floor_ms, 500);
    assert_string_equal(folder.token, "17 next");
    WRITE(f, put(f, "a", 600, "INBOX", "5", err));
    WRITE(f, tide_cache_folders_reset(f->cache, err));
    OK(tide_cache_folder_get(f->cache, TIDE_TEXT("INBOX"), &folder, err));
    assert_false(folder.known);
    assert_int_equal(folder.shown_ms, 500); /* the list is not blanked */
    assert_string_equal(list(f, "INBOX"), "a ");
    char stale[300] = "";
    OK(tide_cache_stale(f->cache, 0, 10, note, stale, err));
    assert_string_equal(stale, "a ");
    WRITE(f, put(f, "a", 600, "INBOX", "6", err));
    stale[0] = '\0';
    OK(tide_cache_stale(f->cache, 0, 10, note, stale, err));
    assert_string_equal(stale, "");
}

static void note_id(tide_text id, void *arg)
{
    char *text = arg;
    (void)snprintf(text + strlen(text), 300 - strlen(text), "%.*s ", (int)id.bytes, id.data);
}

CASE(changes_since_a_version_are_told_once_each)
{
    uint64_t version = 0;
    char text[300] = "";
    bool whole = false;
    WRITE(f, put(f, "a", 100, "INBOX", "5", err));
    WRITE(f, put(f, "b", 200, "INBOX", "5", err));
    OK(tide_cache_version(f->cache, &version, err));
    for (int on = 1; on >= 0; on--)
        WRITE(f, tide_cache_label(f->cache, TIDE_TEXT("a"), TIDE_TEXT("STARRED"), on == 1,
                                  TIDE_TEXT(""), err));
    OK(tide_cache_changes(f->cache, version, note_id, text, &whole, err));
    assert_true(whole);
    assert_string_equal(text, "a ");
    OK(tide_cache_changes(f->cache, 1000000, note_id, text, &whole, err));
    assert_false(whole); /* a version of another file */
}

/* ---- bodies ---- */

static const char *body(char letter)
{
    static char text[64 << 10];
    uint32_t random = (uint32_t)letter;
    for (size_t i = 0; i + 1 < sizeof text; i++) { /* packs badly */
        random = random * 1664525u + 1013904223u;
        text[i] = (char)(33 + (random >> 16) % 90);
    }
    return text;
}

static tide_status body_put(struct fixture *f, const char *id, uint64_t now_ms, tide_error *err)
{
    return tide_cache_body_put(f->cache, tide_text_of(id), tide_text_of(body(id[0])), now_ms, err);
}

static bool has_body(struct fixture *f, const char *id)
{
    tide_auto_buf out = tide_buf_heap(1 << 20);
    return tide_cache_body_get(f->cache, tide_text_of(id), &out, NULL) == TIDE_OK;
}

CASE(a_body_is_read_back_byte_for_byte)
{
    tide_auto_buf out = tide_buf_heap(1 << 20);
    WRITE(f, put(f, "a", 100, "INBOX", "5", err));
    WRITE(f, body_put(f, "a", 1000, err));
    OK(tide_cache_body_get(f->cache, TIDE_TEXT("a"), &out, err));
    assert_int_equal(out.bytes, strlen(body('a')));
    assert_memory_equal(out.data, body('a'), out.bytes);
    assert_int_equal(tide_cache_body_get(f->cache, TIDE_TEXT("b"), &out, NULL), TIDE_NOT_FOUND);
}

static bool spare_s(tide_text id, void *arg)
{
    (void)arg;
    return id.data[0] == 's';
}

CASE(the_bodies_used_longest_ago_go_first_and_some_never)
{
    const char *const ids[] = {"a", "p", "s", "b", "c", "d"};
    const uint64_t hour = 3600000;
    uint64_t bytes = 0;
    struct tide_cache_evicted told;
    for (int i = 0; i < 6; i++) {
        WRITE(f, put(f, ids[i], 100 + i, "INBOX", "5", err));
        WRITE(f, body_put(f, ids[i], hour + (uint64_t)i, err));
    }
    WRITE(f, tide_cache_pin(f->cache, TIDE_TEXT("p"), true, err));
    WRITE(f, tide_cache_opened(f->cache, TIDE_TEXT("b"), hour + 50, err));
    OK(tide_cache_size(f->cache, &bytes, err));
    struct tide_cache_evict evict = {.limit = bytes - 1, .count_max = 1, .spare = spare_s};
    OK(tide_cache_evict(f->cache, &evict, 2 * hour, &told, err));
    assert_int_equal(told.done, 1);
    assert_int_equal(told.later_ms, 0); /* it is small enough */
    assert_false(has_body(f, "a"));
    evict.limit = 0;
    evict.count_max = 100;
    OK(tide_cache_evict(f->cache, &evict, hour + 40000, &told, err));
    assert_int_equal(told.done, 0);                    /* all were used in this minute */
    assert_int_equal(told.later_ms, hour + 4 + 60000); /* that of c is over first */
    OK(tide_cache_evict(f->cache, &evict, 2 * hour, &told, err));
    assert_int_equal(told.done, 3);
    assert_false(told.more); /* nothing is left that may go */
    assert_int_equal(told.later_ms, 0);
    assert_true(has_body(f, "p") && has_body(f, "s"));
    assert_false(has_body(f, "b"));
    assert_string_equal(list(f, "INBOX"), "d c b s p a "); /* headers stay */
    uint64_t after = 0;
    OK(tide_cache_size(f->cache, &after, err));
    assert_true(after < bytes * 2 / 3); /* the file shrinks: two of six bodies are left */
}

CASE(what_was_evicted_is_not_fetched_until_a_person_opens_it)
{
    char text[300] = "";
    struct tide_cache_evicted told;
    const struct tide_cache_evict evict = {.limit = 0, .count_max = 10};
    WRITE(f, put(f, "a", 100, "INBOX", "5", err));
    WRITE(f, put(f, "b", 200, "INBOX", "5", err));
    WRITE(f, body_put(f, "a", 1000, err));
    OK(tide_cache_evict(f->cache, &evict, 3600000, &told, err));
    OK(tide_cache_bodyless(f->cache, 0, 10, note, text, err));
    assert_string_equal(text, "b ");
    WRITE(f, tide_cache_opened(f->cache, TIDE_TEXT("a"), 4000000, err));
    text[0] = '\0';
    OK(tide_cache_bodyless(f->cache, 0, 10, note, text, err));
    assert_string_equal(text, "b a ");
}

/* Their times lie ahead: it must get back to its limit all the same. */
CASE(bodies_used_before_the_clock_was_set_back_can_be_evicted)
{
    const char *const ids[] = {"a", "b", "c"};
    const uint64_t hour = 3600000;
    struct tide_cache_evicted told;
    for (int i = 0; i < 3; i++) {
        WRITE(f, put(f, ids[i], 100 + i, "INBOX", "5", err));
        WRITE(f, body_put(f, ids[i], 9 * hour + (uint64_t)i, err));
    }
    WRITE(f, tide_cache_opened(f->cache, TIDE_TEXT("b"), hour - 1000, err)); /* by the new clock */
    const struct tide_cache_evict evict = {.limit = 0, .count_max = 10};
    OK(tide_cache_evict(f->cache, &evict, hour, &told, err));
    assert_int_equal(told.done, 2);
    assert_true(has_body(f, "b")); /* on somebody's screen */
}

/* ---- files ---- */

CASE(backup_programs_are_told_to_leave_it_out)
{
    tide_auto_buf text = tide_buf_heap(4096);
    OK(tide_file_read(f->world, textf("%s/CACHEDIR.TAG", f->dir), 4096, &text, err));
    assert_int_equal(
        strncmp(tide_buf_cstr(&text), "Signature: 8a477f597d28d172789f06886806bc55\n", 44), 0);
}

CASE(a_cache_that_vanishes_is_noticed)
{
    assert_false(tide_cache_moved(f->cache));
    assert_int_equal(unlink(f->path), 0);
    assert_true(tide_cache_moved(f->cache));
}

CASE(a_damaged_cache_is_begun_anew)
{
    WRITE(f, put(f, "a", 100, "INBOX", "5", err));
    tide_cache_close(f->cache);
    FILE *file = fopen(f->path, "r+b");
    assert_non_null(file);
    for (int i = 0; i < 8192; i++)
        (void)fputc('x', file);
    assert_int_equal(fclose(file), 0);
    f->cache = open_it(f, false);
    assert_string_equal(list(f, "INBOX"), "");
    WRITE(f, put(f, "b", 100, "INBOX", "5", err));
    assert_string_equal(list(f, "INBOX"), "b ");
}

CASE(readers_see_what_was_committed_and_none_is_made_for_them)
{
    struct tide_cache_options options = {
        .dir = f->dir, .account = "ada@example.com", .world = f->world, .read_only = true};
    tide_cache *other = NULL;
    bool has = false;
    OK(tide_cache_open(&options, tide_mem_heap(), &other, err));
    OK(tide_cache_begin(f->cache, err));
    OK(put(f, "a", 100, "INBOX", "5", err));
    OK(tide_cache_has(other, TIDE_TEXT("a"), &has, err));
    assert_false(has);
    OK(tide_cache_end(f->cache, TIDE_OK, err));
    OK(tide_cache_has(other, TIDE_TEXT("a"), &has, err));
    assert_true(has);
    tide_cache_close(other);
    options.account = "ben@example.com";
    assert_int_equal(tide_cache_open(&options, tide_mem_heap(), &other, NULL), TIDE_NOT_FOUND);
    options.account = "../ben";
    assert_int_equal(tide_cache_open(&options, tide_mem_heap(), &other, NULL), TIDE_INVALID);
}

CASE(a_transaction_that_fails_leaves_nothing)
{
    OK(tide_cache_begin(f->cache, err));
    OK(put(f, "a", 100, "INBOX", "5", err));
    assert_int_equal(tide_cache_end(f->cache, TIDE_CANCELED, NULL), TIDE_CANCELED);
    assert_string_equal(list(f, "ALL"), "");
}

TEST(history_ids_compare_as_numbers)
{
    assert_true(tide_history_compare(TIDE_TEXT("9"), TIDE_TEXT("10")) < 0);
    assert_true(tide_history_compare(TIDE_TEXT("11"), TIDE_TEXT("10")) > 0);
    assert_int_equal(tide_history_compare(TIDE_TEXT("10"), TIDE_TEXT("10")), 0);
    assert_true(tide_history_compare(TIDE_TEXT(""), TIDE_TEXT("1")) < 0);
}
