/* mail_status_test.c - where an account stands, read from a ledger beside its writer: gaps
 * by name, what is left of each, and what is covered beyond the tidemark (M6b). */
#include "mail/status.h"

#include "mail/rows.h"
#include "support/test.h"
#include "system/system.h"
#include "world/real.h"
#include "support/heap.h"

#include <unistd.h>

#define DAY  86400000ull
#define NOW  (20000 * DAY)
#define USER "ada@example.com"

struct fixture {
    char dir[64];
    char path[96];
    tide_world *world;
    tide_ledger *writer, *reader;
    tide_tx *tx;
    uint32_t account, list, fetch, history, plan, other;
    uint64_t stream;
    tide_error err;
};

#define OK(call)                                                                                   \
    do {                                                                                           \
        tide_status ok_rc = (call);                                                                \
        if (ok_rc != TIDE_OK)                                                                      \
            fail_msg("%s: %s", tide_status_name(ok_rc), f->err.text);                              \
    } while (0)

static tide_ledger *ledger_open(struct fixture *f, bool read_only)
{
    tide_ledger *ledger = NULL;
    const struct tide_ledger_options options = {.path = f->path,
                                                .run_id = "test",
                                                .now_unix_ms = NOW,
                                                .read_only = read_only,
                                                .must_exist = read_only};
    OK(tide_ledger_open(f->world, &options, &ledger, &f->err));
    return ledger;
}

static void begin(struct fixture *f)
{
    OK(tide_tx_begin(f->writer, &f->tx, &f->err));
}

static void commit(struct fixture *f)
{
    OK(tide_tx_commit(f->tx, &f->err));
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/mail_look.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof f->path, "%s/state.db", f->dir);
    OK(tide_world_real_new(tide_mem_heap(), &f->world, &f->err));
    f->writer = ledger_open(f, false);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tide_ledger_close(f->reader, false);
    tide_ledger_close(f->writer, true);
    tide_world_real_free(f->world);
    const char *command = textf("rm -rf '%s'", f->dir);
    FILE *rm = popen(command, "r");
    if (rm != NULL)
        (void)pclose(rm);
    free(f);
    return 0;
}

/* An account of the mail system with its stream and kinds. */
static void make_account(struct fixture *f)
{
    struct tide_mail_row row = {.epoch = 3, .messages_total = 1000, .last_run_ms = NOW - 5000};
    struct tide_stream_row stream;
    (void)snprintf(row.email, sizeof row.email, USER);
    (void)snprintf(row.endpoint, sizeof row.endpoint, "http://127.0.0.1:1");
    begin(f);
    OK(tide_ledger_account(f->tx, USER, "gmail", &f->account, &f->err));
    row.account = f->account;
    OK(tide_mail_tables(tide_tx_rows(f->tx), &f->err));
    OK(tide_mail_row_put(tide_tx_rows(f->tx), &row, &f->err));
    const struct {
        const char *name;
        uint32_t *kind;
    } kinds[] = {{"mail.list", &f->list},
                 {"mail.fetch", &f->fetch},
                 {"mail.history", &f->history},
                 {"mail.plan", &f->plan},
                 {"drive.fetch", &f->other}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        OK(tide_ledger_kind(f->tx, kinds[i].name, TIDE_DEDUPE_PENDING, kinds[i].kind, &f->err));
    /* An earlier epoch's stream is not looked at. */
    OK(tide_ledger_stream(f->tx, f->account, "mail.2", TIDE_TEXT("0"), &stream, &f->err));
    OK(tide_ledger_stream(f->tx, f->account, "mail.3", TIDE_TEXT("0"), &stream, &f->err));
    f->stream = stream.id;
    commit(f);
    f->reader = ledger_open(f, true);
}

static uint64_t add_cycle(struct fixture *f, uint64_t from_ms, uint64_t to_ms)
{
    struct tide_cycle_row row;
    char to[32];
    const char *from = textf("%" PRIu64, from_ms);
    (void)snprintf(to, sizeof to, "%" PRIu64, to_ms);
    OK(tide_ledger_cycle(f->tx, f->stream, tide_text_of(from), tide_text_of(to), NOW, &row,
                         &f->err));
    return row.id;
}

static uint64_t add_job(struct fixture *f, uint32_t kind, uint64_t cycle, const char *payload)
{
    const struct tide_job_new job = {.account = f->account,
                                     .kind = kind,
                                     .cycle = cycle,
                                     .payload = tide_text_of(payload),
                                     .attempts_max = 3,
                                     .priority = 50,
                                     .lane = TIDE_LANE_BULK,
                                     .level = 4};
    struct tide_enqueued enqueued;
    OK(tide_ledger_enqueue(f->tx, &job, 1, NOW, &enqueued, &f->err));
    return enqueued.id;
}

static void end_job(struct fixture *f, uint64_t id, tide_row_state state, const char *bad)
{
    struct tide_job_body *body = NULL;
    struct tide_changes changes;
    bool applied = false;
    const struct tide_item_report item = {tide_text_of(bad), TIDE_TEXT("broken"), TIDE_PERMANENT};
    tide_changes_init(&changes, tide_mem_heap());
    begin(f);
    OK(tide_ledger_claim(f->tx, &id, 1, 1, id * 10, NOW, tide_mem_heap(), &body, &f->err));
    const struct tide_finish finish = {.id = id,
                                       .token = body->token,
                                       .state = state,
                                       .status = state == TIDE_ROW_DONE ? TIDE_OK : TIDE_PERMANENT,
                                       .items = &item,
                                       .items_count = bad == NULL ? 0 : 1};
    OK(tide_ledger_finish(f->tx, &finish, 1, NOW, &applied, &changes, &f->err));
    assert_true(applied);
    commit(f);
    tide_job_body_free(tide_mem_heap(), body);
    tide_changes_done(&changes);
}

static struct tide_mail_look look(struct fixture *f)
{
    struct tide_mail_look seen;
    tide_mail_look_init(&seen, tide_mem_heap());
    OK(tide_mail_look(f->reader, USER, true, &seen, &f->err));
    assert_true(tide_mail_look_check(&seen));
    return seen;
}

static const struct tide_system mail = {.name = "mail", .provider = "gmail"};

static void note_name(const char *email, void *arg)
{
    char *names = arg;
    (void)snprintf(names + strlen(names), 100 - strlen(names), "%s;", email);
}

/* ---- tests ---- */

#define CASE(name) TEST_ON(name, struct fixture *f, set_up, tear_down)

CASE(without_the_mail_system_there_are_no_accounts)
{
    char names[100] = "";
    struct tide_mail_look seen;
    OK(tide_system_accounts(&mail, f->writer, note_name, names, &f->err));
    assert_string_equal(names, "");
    tide_mail_look_init(&seen, tide_mem_heap());
    assert_int_equal(tide_mail_look(f->writer, USER, true, &seen, &f->err), TIDE_NOT_FOUND);
    tide_mail_look_done(&seen);
}

CASE(an_account_that_never_ran_has_no_mark_and_no_gap)
{
    char names[100] = "";
    make_account(f);
    char endpoint[TIDE_ENDPOINT_BYTES];
    OK(tide_system_accounts(&mail, f->reader, note_name, names, &f->err));
    assert_string_equal(names, USER ";");
    OK(tide_system_account_look(&mail, f->reader, USER, endpoint, &f->err));
    assert_string_equal(endpoint, "http://127.0.0.1:1");
    assert_int_equal(tide_system_account_look(&mail, f->reader, "bob@example.com", endpoint, NULL),
                     TIDE_NOT_FOUND);
    struct tide_mail_look seen = look(f);
    assert_int_equal(seen.account, f->account);
    assert_int_equal(seen.tidemark_ms, 0);
    assert_int_equal(seen.spans_count, 0);
    assert_int_equal(seen.messages_total, 1000);
    assert_false(seen.listing);
    tide_mail_look_done(&seen);
    assert_int_equal(tide_mail_look(f->reader, "bob@example.com", true, &seen, &f->err),
                     TIDE_NOT_FOUND);
}

CASE(a_plan_that_waits_means_that_nothing_is_known_yet)
{
    make_account(f);
    begin(f);
    (void)add_job(f, f->plan, 0, "{}");
    commit(f);
    struct tide_mail_look seen = look(f);
    assert_true(seen.listing);
    assert_int_equal(seen.jobs_left, 1);
    tide_mail_look_done(&seen);
}

CASE(every_gap_has_its_name_and_what_is_left_of_it)
{
    make_account(f);
    begin(f);
    const uint64_t done = add_cycle(f, 0, 10 * DAY);
    const uint64_t fetching = add_cycle(f, 10 * DAY, 20 * DAY);
    const uint64_t covered = add_cycle(f, 20 * DAY, 30 * DAY);
    const uint64_t listing = add_cycle(f, 30 * DAY, 40 * DAY);
    const uint64_t failed = add_cycle(f, 40 * DAY, 50 * DAY);
    const uint64_t changes = add_cycle(f, 50 * DAY, 60 * DAY);
    const uint64_t first = add_job(f, f->list, done, "{}");
    (void)add_job(f, f->fetch, fetching, "{\"items\":[\"a\",\"b\",\"c\"]}");
    (void)add_job(f, f->fetch, fetching, "{\"items\":[\"d\"]}");
    const uint64_t with_bad = add_job(f, f->fetch, fetching, "{\"items\":[\"e\"]}");
    const uint64_t third = add_job(f, f->list, covered, "{}");
    (void)add_job(f, f->list, listing, "{}");
    (void)add_job(f, f->fetch, listing, "{\"items\":[\"f\",\"g\"]}");
    const uint64_t fifth = add_job(f, f->list, failed, "{}");
    (void)add_job(f, f->history, changes, "{}");
    (void)add_job(f, f->other, 0, "{\"items\":[\"not\",\"mail\"]}");
    OK(tide_mail_mark_put(tide_tx_rows(f->tx), f->stream, 0, TIDE_TEXT("4711"), &f->err));
    commit(f);
    end_job(f, first, TIDE_ROW_DONE, NULL);
    end_job(f, with_bad, TIDE_ROW_DONE, "e");
    end_job(f, third, TIDE_ROW_DONE, NULL);
    end_job(f, fifth, TIDE_ROW_FAILED, NULL);
    begin(f);
    OK(tide_ledger_cursor_move(f->tx, f->stream, 0, 1, NOW, NULL, &f->err));
    commit(f);

    struct tide_mail_look seen = look(f);
    assert_int_equal(seen.tidemark_ms, 10 * DAY);
    assert_int_equal(seen.since_ms, 0);
    assert_int_equal(seen.moved_ms, NOW);
    assert_string_equal(seen.history_id, "4711");
    assert_int_equal(seen.spans_count, 5); /* the one behind the mark is none (MST2) */
    const struct {
        uint64_t from, to;
        tide_span_state state;
        uint64_t jobs, messages, failed, bad;
    } expected[] = {
        {10 * DAY, 20 * DAY, TIDE_SPAN_FETCHING, 2, 4, 0, 1},
        {20 * DAY, 30 * DAY, TIDE_SPAN_COVERED, 0, 0, 0, 0},
        {30 * DAY, 40 * DAY, TIDE_SPAN_LISTING, 2, 2, 0, 0},
        {40 * DAY, 50 * DAY, TIDE_SPAN_FAILED, 0, 0, 1, 0},
        {50 * DAY, 60 * DAY, TIDE_SPAN_CHANGES, 1, 0, 0, 0},
    };
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(seen.spans[i].from_ms, expected[i].from);
        assert_int_equal(seen.spans[i].to_ms, expected[i].to);
        assert_int_equal(seen.spans[i].state, expected[i].state);
        assert_int_equal(seen.spans[i].jobs_left, expected[i].jobs);
        assert_int_equal(seen.spans[i].messages_left, expected[i].messages);
        assert_int_equal(seen.spans[i].failed, expected[i].failed);
        assert_int_equal(seen.spans[i].bad, expected[i].bad);
    }
    assert_int_equal(seen.jobs_left, 5); /* not those of other systems */
    assert_int_equal(seen.messages_left, 6);
    assert_int_equal(seen.jobs_failed, 1);
    assert_int_equal(seen.bad, 1);
    assert_true(seen.listing);

    /* A quick look keeps what it does not read. */
    OK(tide_mail_look(f->reader, USER, false, &seen, &f->err));
    assert_int_equal(seen.spans_count, 5);
    assert_int_equal(seen.messages_left, 6);
    tide_mail_look_done(&seen);
}

CASE(a_run_waits_for_what_it_heals_and_not_for_what_is_owed)
{
    struct tide_mail_look look = {.cycles_open = 0};
    assert_true(tide_mail_look_settled(&look));
    look.jobs_healing = 1;
    assert_false(tide_mail_look_settled(&look));
    look.owed = 1; /* that is its job */
    assert_true(tide_mail_look_settled(&look));
    look.jobs_healing = 2;
    assert_false(tide_mail_look_settled(&look));
}

/* Otherwise it says that parts are not synced, and begins no second pass. */
CASE(a_run_waits_until_the_tidemark_is_moved)
{
    make_account(f);
    begin(f);
    const uint64_t first = add_job(f, f->list, add_cycle(f, 0, 10 * DAY), "{}");
    const uint64_t second = add_job(f, f->list, add_cycle(f, 10 * DAY, 20 * DAY), "{}");
    commit(f);
    end_job(f, second, TIDE_ROW_FAILED, NULL);
    end_job(f, first, TIDE_ROW_DONE, NULL);
    struct tide_mail_look seen = look(f);
    assert_int_equal(seen.jobs_left, 0);
    assert_false(tide_mail_look_settled(&seen));
    tide_mail_look_done(&seen);
    begin(f);
    OK(tide_ledger_cursor_move(f->tx, f->stream, 0, 1, NOW, NULL, &f->err));
    commit(f);
    seen = look(f);
    assert_true(tide_mail_look_settled(&seen)); /* the failed one is for the next run */
    assert_int_equal(seen.cycles_open, 1);
    tide_mail_look_done(&seen);
}

CASE(halts_and_refused_sign_ins_are_told)
{
    make_account(f);
    struct tide_mail_look seen = look(f);
    assert_false(seen.halted || seen.paused || seen.signed_out);
    begin(f);
    OK(tide_ledger_account_halt(f->tx, f->account, true, "by me", NOW, &f->err));
    OK(tide_ledger_account_pause(f->tx, f->account, true, &f->err));
    commit(f);
    OK(tide_mail_look(f->reader, USER, false, &seen, &f->err));
    assert_true(seen.halted && seen.paused);
    assert_string_equal(seen.halt_reason, "by me");
    tide_mail_look_done(&seen);
}

CASE(the_archive_tells_what_it_keeps)
{
    tide_archive *archive = NULL;
    struct tide_mail_kept kept;
    struct tide_archive_tally tally;
    uint64_t ticket = 0;
    const char *dir = textf("%s/" USER, f->dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = USER, .world = f->world, .index_later = true};
    OK(tide_archive_open(&options, tide_mem_heap(), &archive, &f->err));
    OK(tide_mail_kept(archive, &kept, &f->err));
    assert_int_equal(kept.stored + kept.shards + (uint64_t)kept.oldest_ms, 0);
    static const char raw[] = "Subject: x\r\n\r\nbody\r\n";
    for (uint64_t i = 0; i < 4; i++) {
        const char *id = textf("m%" PRIu64, i);
        const struct tide_incoming message = {.gmail_id = tide_text_of(id),
                                              .thread_id = TIDE_TEXT("t"),
                                              .history_id = TIDE_TEXT("1"),
                                              .internal_ms = (int64_t)(i * 300 * DAY + 1),
                                              .raw = tide_text_of(raw)};
        OK(tide_archive_put(archive, &message, NULL, &ticket, &f->err));
    }
    OK(tide_archive_gone(archive, TIDE_TEXT("m2"), 5, &ticket, &f->err));
    OK(tide_archive_sync(archive, ticket, NULL, &f->err));
    OK(tide_mail_kept(archive, &kept, &f->err));
    assert_int_equal(kept.stored, 4);
    assert_int_equal(kept.shards, 3);
    assert_int_equal(kept.raw_bytes, 4 * (sizeof raw - 1));
    assert_int_equal(kept.oldest_ms, 1);
    assert_int_equal(kept.newest_ms, 900 * DAY + 1);
    OK(tide_archive_tally(archive, &tally, &f->err));
    assert_int_equal(tally.gone, 1);
    assert_int_equal(tally.unindexed, 4);
    assert_int_equal(tally.unreadable + tally.partly, 0);
    OK(tide_archive_index(archive, UINT64_MAX, NULL, &f->err));
    OK(tide_archive_tally(archive, &tally, &f->err));
    assert_int_equal(tally.unindexed, 0);
    OK(tide_archive_close(archive, &f->err));
}

/* States of spans of a day each: c covered, f fetching; a blank is a day of no span. */
static uint64_t complete_since(const char *days)
{
    struct tide_mail_span spans[16];
    struct tide_mail_look look = {.spans = spans};
    for (size_t i = 0; days[i] != '\0'; i++)
        if (days[i] != ' ')
            spans[look.spans_count++] = (struct tide_mail_span){
                .ordinal = i,
                .from_ms = (10 + i) * DAY,
                .to_ms = (11 + i) * DAY,
                .state = days[i] == 'c' ? TIDE_SPAN_COVERED : TIDE_SPAN_FETCHING};
    return tide_mail_look_complete_since(&look) / DAY;
}

TEST(the_newest_mail_is_complete_as_far_back_as_no_gap_comes)
{
    assert_int_equal(complete_since(""), 0);
    assert_int_equal(complete_since("ff"), 0);
    assert_int_equal(complete_since("ffcc"), 12);
    assert_int_equal(complete_since("fcfc"), 13);
    assert_int_equal(complete_since("fccf"), 0); /* something new is missing */
    assert_int_equal(complete_since("cc"), 0);   /* the tidemark is about to pass them */
    assert_int_equal(complete_since("fc cc"), 13);
}
