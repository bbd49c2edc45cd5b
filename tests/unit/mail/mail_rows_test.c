/* The mail system's rows: what is kept, what gives way to what (M4, M5, M6a). */
#include "mail/sync/lost.h"
#include "mail/rows.h"
#include "mail/manifest.h"

#include "unit/db/rows_fixture.h"
#include "support/heap.h"

static int setup(void **state)
{
    const int failed = rows_setup(state);
    OK(tide_mail_tables(rows_now, err));
    OK(tide_mail_tables(rows_now, err)); /* twice is harmless */
    return failed;
}

static struct tide_shard_state shard(const char *name, const char *id, uint64_t generation,
                                     uint64_t messages)
{
    struct tide_shard_state one = {.generation = generation, .messages = messages};
    (void)snprintf(one.name, sizeof one.name, "%s", name);
    (void)snprintf(one.id, sizeof one.id, "%s", id);
    return one;
}

#define CASE(name) TEST_ON(name, const tide_rows *rows, setup, rows_teardown)

CASE(a_row_comes_back_as_it_was_put)
{
    struct tide_mail_row row = {.account = 3,
                                .email = "a@example.com",
                                .endpoint = "http://127.0.0.1:1",
                                .epoch = 2,
                                .messages_total = 5,
                                .last_run_ms = 6,
                                .since_ms = 7,
                                .floor_ms = 8,
                                .notice = "look"};
    struct tide_mail_row back;
    OK(tide_mail_row_put(*rows, &row, err));
    OK(tide_mail_row_get(*rows, 3, &back, err));
    assert_string_equal(back.email, row.email);
    assert_string_equal(back.endpoint, row.endpoint);
    assert_string_equal(back.notice, row.notice);
    assert_int_equal(back.epoch, 2);
    assert_int_equal(back.messages_total, 5);
    assert_int_equal(back.last_run_ms, 6);
    assert_int_equal(back.since_ms, 7);
    assert_int_equal(back.floor_ms, 8);
    assert_false(back.lost);
    row.lost = true; /* the beginning of time is a loss too */
    OK(tide_mail_row_put(*rows, &row, err));
    OK(tide_mail_row_get(*rows, 3, &back, err));
    assert_true(back.lost);
    assert_int_equal(back.lost_ms, 0);
    assert_int_equal(tide_mail_row_get(*rows, 4, &back, NULL), TIDE_NOT_FOUND);
}

CASE(the_earliest_loss_counts)
{
    const struct tide_mail_row row = {.account = 1, .email = "a@example.com"};
    struct tide_mail_row back;
    const struct {
        uint64_t lost_ms, rewind_ms, lost_is_ms, rewind_is_ms;
    } steps[] = {{500, 0, 500, 0},
                 {700, 90, 500, 90},
                 {300, 0, 300, 90},
                 {400, 80, 300, 80},
                 {400, 85, 300, 80}};
    OK(tide_mail_row_put(*rows, &row, err));
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        OK(tide_mail_lost_put(*rows, 1, steps[i].lost_ms, steps[i].rewind_ms, "lost", err));
        OK(tide_mail_row_get(*rows, 1, &back, err));
        assert_true(back.lost);
        assert_int_equal(back.lost_ms, steps[i].lost_is_ms);
        assert_int_equal(back.rewind_ms, steps[i].rewind_is_ms);
    }
}

CASE(an_account_that_comes_back_has_a_new_stream)
{
    const struct tide_mail_row row = {.account = 1, .email = "a@example.com", .epoch = 4};
    const struct tide_shard_state one = shard("2019", "x", 1, 1);
    const struct tide_mail_listing listing = {.id = 9, .account = 1, .left = 1};
    uint32_t epoch = 7;
    bool open = true;
    OK(tide_mail_epoch_get(*rows, 1, &epoch, err));
    assert_int_equal(epoch, 0);
    OK(tide_mail_row_put(*rows, &row, err));
    OK(tide_mail_shard_put(*rows, 1, &one, err));
    OK(tide_mail_listing_put(*rows, &listing, err));
    OK(tide_mail_row_remove(*rows, 1, err));
    OK(tide_mail_epoch_get(*rows, 1, &epoch, err));
    assert_int_equal(epoch, 5);
    OK(tide_mail_listing_open(*rows, 1, &open, err));
    assert_false(open);
}

CASE(the_adopted_mark_and_those_above_stay)
{
    char id[64] = "";
    for (uint64_t i = 0; i < 10; i++) {
        const char *text = textf("h%u", (unsigned)i);
        OK(tide_mail_mark_put(*rows, 1, i * 2, tide_text_of(text), err));
    }
    assert_int_equal(tide_mail_mark_get(*rows, 1, 0, id, NULL), TIDE_NOT_FOUND);
    OK(tide_mail_mark_first(*rows, 1, id, err));
    assert_string_equal(id, "h0");
    OK(tide_mail_mark_prune(*rows, 1, 9, err)); /* cycles 0 to 8 are finished */
    OK(tide_mail_mark_first(*rows, 1, id, err));
    assert_string_equal(id, "h4");
    OK(tide_mail_mark_get(*rows, 1, 9, id, err));
    assert_string_equal(id, "h4");
    OK(tide_mail_mark_get(*rows, 1, 100, id, err));
    assert_string_equal(id, "h9");
    OK(tide_mail_mark_prune(*rows, 1, UINT64_MAX, err));
    assert_int_equal(tide_mail_mark_first(*rows, 1, id, NULL), TIDE_NOT_FOUND);
}

static void one_shard(const struct tide_shard_state *shard, void *arg)
{
    *(struct tide_shard_state *)arg = *shard;
}

CASE(a_note_never_hides_a_loss)
{
    struct tide_shard_state back;
    const struct {
        struct tide_shard_state note;
        uint64_t generation; /* that is remembered then */
    } steps[] = {
        {shard("2019", "x", 5, 50), 5}, {shard("2019", "x", 7, 60), 7},
        {shard("2019", "x", 6, 55), 7}, /* came late */
        {shard("2019", "y", 9, 99), 7}, /* another file */
        {shard("2019", "x", 8, 61), 8},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        OK(tide_mail_shard_note(*rows, 1, &steps[i].note, err));
        OK(tide_mail_shards(*rows, 1, one_shard, &back, err));
        assert_int_equal(back.generation, steps[i].generation);
        assert_string_equal(back.id, "x");
    }
    OK(tide_mail_shard_forget(*rows, 1, "2019", err));
    back.generation = 0;
    OK(tide_mail_shards(*rows, 1, one_shard, &back, err));
    assert_int_equal(back.generation, 0);
}

CASE(a_copy_is_as_whole_as_the_last_proof_before_it)
{
    uint64_t at_ms = 0;
    char id[64] = "";
    for (uint64_t g = 10; g <= 1000; g += 10) {
        const struct tide_shard_state one = shard("2019", "x", g, g);
        const char *text = textf("h%u", (unsigned)g);
        OK(tide_mail_proof_put(*rows, 1, &one, g * 100, tide_text_of(text), err));
    }
    const struct tide_shard_state copy = shard("2019", "x", 755, 1);
    OK(tide_mail_proof_get(*rows, 1, &copy, &at_ms, err));
    assert_int_equal(at_ms, 75000);
    OK(tide_mail_proof_history(*rows, 1, at_ms, id, err));
    assert_string_equal(id, "h750");
    /* Of one day sixty-four are kept; what the copy never had is forgotten when it is proven. */
    const struct tide_shard_state old = shard("2019", "x", 350, 1);
    assert_int_equal(tide_mail_proof_get(*rows, 1, &old, &at_ms, NULL), TIDE_NOT_FOUND);
    OK(tide_mail_proof_put(*rows, 1, &copy, 200000, TIDE_TEXT("now"), err));
    const struct tide_shard_state later = shard("2019", "x", 2000, 1);
    OK(tide_mail_proof_get(*rows, 1, &later, &at_ms, err));
    assert_int_equal(at_ms, 200000);
}

/* A copy from last month still finds a proof of its own time. */
CASE(the_last_proof_of_each_day_stays)
{
    enum { DAYS = 40, A_DAY = 12, DAY_MS = 86400000 };
    uint64_t at_ms = 0;
    for (uint64_t day = 0; day < DAYS; day++) {
        for (uint64_t i = 0; i < A_DAY; i++) {
            const struct tide_shard_state one = shard("2019", "x", day * 100 + i, 1);
            OK(tide_mail_proof_put(*rows, 1, &one, day * DAY_MS + i * 1000, TIDE_TEXT("h"), err));
        }
    }
    for (uint64_t day = 0; day < DAYS; day++) {
        const struct tide_shard_state copy = shard("2019", "x", day * 100 + 99, 1);
        OK(tide_mail_proof_get(*rows, 1, &copy, &at_ms, err));
        assert_int_equal(at_ms, day * DAY_MS + (A_DAY - 1) * 1000);
    }
    /* And no more than that: 64, and one for each earlier day. */
    tide_rows_stmt stmt;
    OK(tide_rows_prepare(*rows, "SELECT count(*) FROM mail_proof", "test", &stmt, err));
    OK(tide_rows_one(&stmt, err));
    assert_true(tide_rows_get_u64(&stmt, 0) <= 64 + DAYS);
    tide_rows_end(&stmt);
}

static struct tide_mail_lost lost_now(tide_rows rows)
{
    const struct tide_lost_ask ask = {.db = rows, .account = 1, .mem = tide_mem_heap()};
    struct tide_mail_lost lost = {.shards = 99};
    OK(tide_mail_lost(&ask, NULL, NULL, &lost, err));
    return lost;
}

static void run_sql(tide_rows rows, const char *sql)
{
    tide_rows_stmt stmt;
    OK(tide_rows_prepare(rows, sql, "test", &stmt, err));
    OK(tide_rows_run(&stmt, err));
}

/* Without an archive everything that is known is lost. */
CASE(what_is_lost_is_reported_until_it_is_accepted)
{
    const struct tide_shard_state one = shard("2019", "x", 5, 4);
    const struct tide_lost_ask ask = {
        .db = *rows, .account = 1, .thorough = true, .mem = tide_mem_heap()};
    struct tide_manifest manifest = {
        .account = 1, .mode = TIDE_REMOVE_FOR_GOOD, .query = "q", .made_ms = 100};
    OK(tide_manifest_tables(*rows, err));
    OK(tide_mail_shard_put(*rows, 1, &one, err));
    struct tide_mail_lost lost = lost_now(*rows);
    assert_int_equal(lost.shards, 1);
    assert_int_equal(lost.messages + lost.others, 0);
    /* A sync saw it: the loss is kept when the shard is forgotten. */
    OK(tide_mail_loss_put(*rows, 1, "2019", 4, 100, err));
    OK(tide_mail_loss_put(*rows, 1, "2019", 2, 200, err)); /* a second loss makes it no smaller */
    OK(tide_mail_shard_forget(*rows, 1, "2019", err));
    lost = lost_now(*rows);
    assert_int_equal(lost.shards, 0);
    assert_int_equal(lost.others, 4);
    /* Two of them are known by name: one was gone from the server, one the archiver deleted. */
    run_sql(*rows, "INSERT INTO mail_only(account, gmail_id, shard, accepted_ms)"
                   " VALUES(1, 'a', '2019', 0)");
    OK(tide_manifest_add(*rows, &manifest, err));
    struct tide_removal entry = {.manifest = manifest.id,
                                 .gmail_id = "b",
                                 .internal_ms = 1546300800000,
                                 .state = TIDE_REMOVAL_REMOVED};
    OK(tide_removal_add(*rows, &entry, err));
    lost = lost_now(*rows);
    assert_int_equal(lost.messages, 2);
    assert_int_equal(lost.others, 2);
    OK(tide_mail_lost_settle(&ask, err)); /* nothing is healed */
    assert_int_equal(lost_now(*rows).messages, 2);
    OK(tide_mail_lost_accept(&ask, 300, err));
    lost = lost_now(*rows);
    assert_int_equal(lost.shards + lost.messages + lost.others, 0);
}

CASE(a_listing_ends_with_its_last_span)
{
    const struct tide_mail_listing listing = {
        .id = 4, .account = 1, .from_ms = 5, .begun_ms = 6, .left = 2};
    struct tide_mail_listing back;
    uint64_t left = 0;
    bool open = false;
    OK(tide_mail_listing_put(*rows, &listing, err));
    OK(tide_mail_listing_get(*rows, 4, &back, err));
    assert_int_equal(back.account, 1);
    assert_int_equal(back.from_ms, 5);
    assert_int_equal(back.begun_ms, 6);
    assert_int_equal(back.left, 2);
    OK(tide_mail_listing_step(*rows, 4, 2, &left, err)); /* one became two */
    assert_int_equal(left, 3);
    for (uint64_t i = 0; i < 3; i++)
        OK(tide_mail_listing_step(*rows, 4, 0, &left, err));
    assert_int_equal(left, 0);
    assert_int_equal(tide_mail_listing_step(*rows, 4, 0, &left, NULL), TIDE_NOT_FOUND);
    OK(tide_mail_listing_open(*rows, 1, &open, err));
    assert_true(open);
}

CASE(what_was_seen_is_forgotten_in_pieces)
{
    const struct tide_mail_listing listing = {.id = 4, .account = 1};
    const tide_text ids[] = {TIDE_TEXT("a"), TIDE_TEXT("b"), TIDE_TEXT("a"), TIDE_TEXT("c")};
    const tide_text asked[] = {TIDE_TEXT("c"), TIDE_TEXT("d"), TIDE_TEXT("a")};
    bool seen[3];
    bool empty = true;
    struct tide_mail_listing back;
    OK(tide_mail_listing_put(*rows, &listing, err));
    OK(tide_mail_seen_add(*rows, 4, ids, 4, err));
    OK(tide_mail_seen_add(*rows, 5, asked, 3, err)); /* of another one */
    OK(tide_mail_seen_get(*rows, 4, asked, 3, seen, err));
    assert_true(seen[0]);
    assert_false(seen[1]);
    assert_true(seen[2]);
    OK(tide_mail_seen_forget(*rows, 4, 2, &empty, err));
    assert_false(empty);
    OK(tide_mail_listing_get(*rows, 4, &back, err));
    OK(tide_mail_seen_forget(*rows, 4, 2, &empty, err));
    assert_true(empty);
    assert_int_equal(tide_mail_listing_get(*rows, 4, &back, NULL), TIDE_NOT_FOUND);
    OK(tide_mail_seen_get(*rows, 5, asked, 3, seen, err));
    assert_true(seen[0] && seen[1] && seen[2]);
}

CASE(a_listing_with_labels_is_open_until_they_are_read)
{
    struct tide_mail_label_pass pass = {.listing = 4,
                                        .account = 1,
                                        .history_id = "123",
                                        .from_ms = 5,
                                        .begun_ms = 77,
                                        .dates = true};
    struct tide_mail_label_pass back;
    bool open = true;
    OK(tide_mail_listing_open(*rows, 1, &open, err));
    assert_false(open);
    assert_int_equal(tide_mail_pass_get(*rows, 4, &back, NULL), TIDE_NOT_FOUND);
    OK(tide_mail_pass_put(*rows, &pass, err));
    OK(tide_mail_listing_open(*rows, 1, &open, err));
    assert_true(open);
    OK(tide_mail_listing_open(*rows, 2, &open, err));
    assert_false(open);
    (void)snprintf(pass.label, sizeof pass.label, "Label_7");
    pass.refused = pass.unsure = true;
    OK(tide_mail_pass_put(*rows, &pass, err));
    OK(tide_mail_pass_get(*rows, 4, &back, err));
    assert_string_equal(back.label, "Label_7");
    assert_string_equal(back.history_id, "123");
    assert_true(back.refused && back.unsure && back.dates);
    assert_int_equal(back.account, 1);
    assert_int_equal(back.from_ms, 5);
    assert_int_equal(back.begun_ms, 77);
    OK(tide_mail_pass_end(*rows, 4, err));
    OK(tide_mail_listing_open(*rows, 1, &open, err));
    assert_false(open);
}

CASE(whether_held_copies_stay_is_known_of_each_account)
{
    const struct tide_mail_row row = {.account = 1, .email = "a@example.com"};
    const struct tide_mail_label_pass pass = {.listing = 4, .account = 1};
    bool inexact = true;
    bool open = true;
    OK(tide_mail_inexact_get(*rows, 1, &inexact, err));
    assert_false(inexact);
    OK(tide_mail_row_put(*rows, &row, err));
    OK(tide_mail_pass_put(*rows, &pass, err));
    for (int i = 0; i < 2; i++)
        OK(tide_mail_inexact_put(*rows, 1, true, err));
    OK(tide_mail_inexact_get(*rows, 1, &inexact, err));
    assert_true(inexact);
    OK(tide_mail_inexact_get(*rows, 2, &inexact, err));
    assert_false(inexact);
    OK(tide_mail_inexact_put(*rows, 1, false, err));
    OK(tide_mail_inexact_get(*rows, 1, &inexact, err));
    assert_false(inexact);
    OK(tide_mail_inexact_put(*rows, 1, true, err));
    OK(tide_mail_row_remove(*rows, 1, err)); /* what was asked is forgotten with the account */
    OK(tide_mail_inexact_get(*rows, 1, &inexact, err));
    assert_false(inexact);
    OK(tide_mail_listing_open(*rows, 1, &open, err));
    assert_false(open);
}

int main(void)
{
    return rows_tests_run();
}
