/* pg_fleet_test.c - several processes on one ledger on PostgreSQL.
 *
 * What the conformance suite cannot see, because it has one writer: members that die in
 * the middle, rows that two transactions want at once, shares of a limit against the rule
 * of the window, partitions of days.  Each test has a database of its own; a process is a
 * ledger of its own.  Time is an argument except where days are made. */
#include "ledger/ledger.h"
#include "base/rng.h"
#include "support/pg_test.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"

#include <pthread.h>
#include <time.h>

#define NOW      1790000000000u
#define LEASE_MS 15000u
#define DAY_MS   86400000

enum { PROCESSES = 3 };

struct fleet {
    char url[PG_TEST_URL_BYTES];
    tide_world *world;
    tide_ledger *ledgers[PROCESSES];
    tide_tx *txs[PROCESSES];
    struct tide_changes changes[PROCESSES];
    uint32_t kind, account;
    uint64_t token;
    tide_error err;
};

static tide_ledger *open_one(struct fleet *f, bool database_clock)
{
    struct tide_ledger_options options = {
        .path = f->url, .run_id = "run", .now_unix_ms = NOW, .database_clock = database_clock};
    tide_ledger *ledger = NULL;
    tide_status rc = tide_ledger_open(f->world, &options, &ledger, &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n", f->err.text);
    OK(rc);
    return ledger;
}

static void begin(struct fleet *f, int who)
{
    tide_status rc = tide_tx_begin(f->ledgers[who], &f->txs[who], &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n", f->err.text);
    OK(rc);
}

static void commit(struct fleet *f, int who)
{
    OK(tide_tx_commit(f->txs[who], &f->err));
}

static void check(struct fleet *f)
{
    tide_buf problems = heap_buf(1 << 16);
    tide_status rc = tide_ledger_check(f->ledgers[0], &problems, &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n%s", f->err.text, tide_buf_cstr(&problems));
    OK(rc);
    tide_buf_done(&problems);
}

static int set_up(void **state)
{
    struct fleet *f = calloc(1, sizeof *f);
    assert_non_null(f);
    OK(tide_world_real_new(tide_mem_heap(), &f->world, &f->err));
    pg_test_create(NULL, f->url, sizeof f->url);
    for (int i = 0; i < PROCESSES; i++) {
        f->ledgers[i] = open_one(f, false);
        tide_changes_init(&f->changes[i], tide_mem_heap());
    }
    begin(f, 0);
    OK(tide_ledger_kind(f->txs[0], "fetch", TIDE_DEDUPE_PENDING, &f->kind, &f->err));
    OK(tide_ledger_account(f->txs[0], "ann", "gmail", &f->account, &f->err));
    commit(f, 0);
    f->token = 1;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fleet *f = *state;
    check(f);
    for (int i = 0; i < PROCESSES; i++) {
        tide_changes_done(&f->changes[i]);
        tide_ledger_close(f->ledgers[i], true);
    }
    pg_test_drop(f->url);
    tide_world_real_free(f->world);
    free(f);
    return 0;
}

/* ---- shorthand ---------------------------------------------------------------------------- */

static void join(struct fleet *f, int who, uint64_t owner, uint64_t now)
{
    struct tide_member member = {.owner = owner, .name = "host, process", .version = "1"};
    OK(tide_ledger_member_join(f->ledgers[who], &member, LEASE_MS, now, &f->err));
}

static uint64_t add(struct fleet *f, int who, uint64_t cycle, const uint64_t *needs, size_t count)
{
    struct tide_job_new job = {.account = f->account,
                               .kind = f->kind,
                               .cycle = cycle,
                               .payload = TIDE_TEXT("{}"),
                               .needs = needs,
                               .needs_count = count,
                               .attempts_max = 5,
                               .priority = 50};
    struct tide_enqueued enqueued = {0};
    OK(tide_ledger_enqueue(f->txs[who], &job, 1, NOW, &enqueued, &f->err));
    return enqueued.id;
}

static uint64_t claim(struct fleet *f, int who, uint64_t id, uint64_t owner)
{
    struct tide_job_body *body = NULL;
    uint64_t token = ++f->token;
    OK(tide_ledger_claim(f->txs[who], &id, 1, owner, token, NOW, tide_mem_heap(), &body, &f->err));
    bool got = body != NULL;
    tide_job_body_free(tide_mem_heap(), body);
    return got ? token : 0;
}

static bool finish(struct fleet *f, int who, uint64_t id, uint64_t token, tide_row_state state)
{
    struct tide_finish end = {.id = id, .token = token, .state = state};
    bool applied = false;
    tide_changes_clear(&f->changes[who]);
    OK(tide_ledger_finish(f->txs[who], &end, 1, NOW, &applied, &f->changes[who], &f->err));
    return applied;
}

static size_t reclaim(struct fleet *f, int who, uint64_t owner, uint64_t now)
{
    size_t count = 0;
    begin(f, who);
    tide_changes_clear(&f->changes[who]);
    OK(tide_ledger_reclaim(f->txs[who], owner, 100, now, &count, &f->changes[who], &f->err));
    commit(f, who);
    return count;
}

/* A question whose text ends in a number. */
static long long ask(struct fleet *f, const char *text, uint64_t number)
{
    const char *sql = textf("%s %" PRIu64, text, number);
    return pg_test_exec(f->url, sql);
}

static long long day_do(struct fleet *f, const char *function, int64_t day)
{
    const char *sql = textf("SELECT tidemark.%s(%" PRId64 ")", function, day);
    return pg_test_exec(f->url, sql);
}

static tide_status begins(struct fleet *f, int who)
{
    tide_tx *tx = NULL;
    tide_status rc = tide_tx_begin(f->ledgers[who], &tx, &f->err);
    if (rc == TIDE_OK)
        tide_tx_rollback(tx);
    return rc;
}

/* ---- members ------------------------------------------------------------------------------ */

#define CASE(name) TEST_ON(name, struct fleet *f, set_up, tear_down)

/* A's row is locked by its own transaction: B passes it over, however late it is. */
CASE(a_member_in_a_transaction_is_left_for_the_next_look)
{
    join(f, 0, 11, NOW);
    join(f, 1, 12, NOW + 20000);
    begin(f, 0);
    (void)reclaim(f, 1, 12, NOW + 20000);
    assert_int_equal(ask(f, "SELECT dead::int FROM tidemark.member WHERE owner = ", 11), 0);
    commit(f, 0);
    (void)reclaim(f, 1, 12, NOW + 20001);
    assert_int_equal(ask(f, "SELECT dead::int FROM tidemark.member WHERE owner = ", 11), 1);
    assert_int_equal(begins(f, 0), TIDE_STALE);
}

CASE(a_member_that_beat_in_time_is_left_alone)
{
    join(f, 0, 11, NOW);
    join(f, 1, 12, NOW);
    begin(f, 0);
    uint64_t id = add(f, 0, 0, NULL, 0);
    commit(f, 0);
    begin(f, 0);
    assert_true(claim(f, 0, id, 11) != 0);
    OK(tide_ledger_member_beat(f->txs[0], LEASE_MS, NOW + 10000, &f->err));
    commit(f, 0);
    assert_int_equal(reclaim(f, 1, 12, NOW + 24999), 0);
    OK(begins(f, 0));
    assert_int_equal(reclaim(f, 1, 12, NOW + 25000), 1);
    assert_int_equal(begins(f, 0), TIDE_STALE);
}

CASE(a_paused_process_that_wakes_up_changes_nothing)
{
    bool taken = false;
    join(f, 0, 11, NOW);
    join(f, 1, 12, NOW + 20000);
    begin(f, 0);
    OK(tide_ledger_accounts_take(f->txs[0], &f->account, 1, 11, &taken, NOW, &f->err));
    assert_true(taken);
    uint64_t id = add(f, 0, 0, NULL, 0);
    commit(f, 0);
    begin(f, 0);
    assert_true(claim(f, 0, id, 11) != 0);
    commit(f, 0);

    assert_int_equal(reclaim(f, 1, 12, NOW + 20000), 1);
    assert_int_equal(ask(f, "SELECT attempts FROM tidemark.job WHERE state = 0 AND id = ", id), 1);
    begin(f, 1);
    OK(tide_ledger_accounts_take(f->txs[1], &f->account, 1, 12, &taken, NOW + 20000, &f->err));
    assert_true(taken);
    uint64_t token = claim(f, 1, id, 12);
    assert_true(token != 0);
    commit(f, 1);

    assert_int_equal(begins(f, 0), TIDE_STALE);
    begin(f, 1);
    assert_true(finish(f, 1, id, token, TIDE_ROW_DONE));
    commit(f, 1);
    assert_int_equal(ask(f, "SELECT attempts FROM tidemark.job_done WHERE id = ", id), 1);
}

/* A machine that lost its network in the middle of a transaction keeps its member's row
 * locked until the server gives it up: which must be before its lease ends. */
CASE(the_server_gives_up_a_transaction_that_stands_still)
{
    join(f, 0, 11, NOW);
    begin(f, 0);
    PGresult *result =
        PQexec(tide_tx_postgres(f->txs[0]), "SELECT setting::int FROM pg_catalog.pg_settings"
                                            " WHERE name = 'idle_in_transaction_session_timeout'");
    long timeout_ms = strtol(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    commit(f, 0);
    assert_true(timeout_ms > 0 && timeout_ms < (long)LEASE_MS);
}

/* One that does not know of its death yet, because its transaction had begun, is not dead:
 * so no token of it is ever given away under its hands. */
CASE(an_account_is_held_by_one_process_at_a_time)
{
    bool taken[3] = {false};
    uint32_t wanted[3] = {f->account, 999, f->account};
    join(f, 0, 11, NOW);
    join(f, 1, 12, NOW);
    begin(f, 0);
    OK(tide_ledger_accounts_take(f->txs[0], wanted, 3, 11, taken, NOW, &f->err));
    commit(f, 0);
    assert_true(taken[0]);
    assert_false(taken[1]); /* there is no such account */
    assert_true(taken[2]);
    begin(f, 1);
    OK(tide_ledger_accounts_take(f->txs[1], wanted, 1, 12, taken, NOW + 60000, &f->err));
    commit(f, 1);
    assert_false(taken[0]); /* its lease passed, but no member declared it dead */
    begin(f, 0);
    OK(tide_ledger_accounts_release(f->txs[0], wanted, 1, 11, &f->err));
    commit(f, 0);
    begin(f, 1);
    OK(tide_ledger_accounts_take(f->txs[1], wanted, 1, 12, taken, NOW, &f->err));
    commit(f, 1);
    assert_true(taken[0]);
}

CASE(a_member_that_leaves_frees_its_accounts_and_may_come_back)
{
    bool taken = false;
    join(f, 0, 11, NOW);
    begin(f, 0);
    OK(tide_ledger_accounts_take(f->txs[0], &f->account, 1, 11, &taken, NOW, &f->err));
    commit(f, 0);
    begin(f, 0);
    OK(tide_ledger_member_leave(f->txs[0], NOW + 1, &f->err));
    commit(f, 0);
    assert_int_equal(ask(f, "SELECT count(*) FROM tidemark.account WHERE owner = ", 11), 0);
    OK(begins(f, 0)); /* as a ledger without members */
    join(f, 0, 13, NOW + 2);
    OK(begins(f, 0));
    struct tide_member again = {.owner = 13, .name = "x", .version = "1"};
    assert_int_equal(tide_ledger_member_join(f->ledgers[1], &again, LEASE_MS, NOW, &f->err),
                     TIDE_EXISTS);
}

/* ---- two transactions on one row ------------------------------------------------------------ */

struct other {
    struct fleet *f;
    uint64_t id, token;
    bool applied;
};

static void *finish_beside(void *arg)
{
    struct other *other = arg;
    struct fleet *f = other->f;
    begin(f, 1);
    other->applied = finish(f, 1, other->id, other->token, TIDE_ROW_DONE);
    commit(f, 1);
    return NULL;
}

/* Until one server process waits for another's lock. */
static void await_lock(struct fleet *f)
{
    for (int i = 0; i < 5000; i++) {
        if (pg_test_exec(f->url,
                         "SELECT count(*) FROM pg_catalog.pg_stat_activity"
                         " WHERE datname = current_database() AND wait_event_type = 'Lock'"))
            return;
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fail_msg("no session waits");
}

/* Both finish a dependency of one job, and jobs of one cycle.  The second waits for the
 * rows of the first, and must count from what it finds then, not from what it saw before. */
CASE(counters_that_two_processes_change_at_once_add_up)
{
    struct tide_stream_row stream;
    struct tide_cycle_row cycle;
    uint64_t needs[2];
    begin(f, 0);
    OK(tide_ledger_stream(f->txs[0], f->account, "mail", TIDE_TEXT_NONE, &stream, &f->err));
    OK(tide_ledger_cycle(f->txs[0], stream.id, TIDE_TEXT("a"), TIDE_TEXT("b"), NOW, &cycle,
                         &f->err));
    needs[0] = add(f, 0, cycle.id, NULL, 0);
    needs[1] = add(f, 0, cycle.id, NULL, 0);
    uint64_t waits = add(f, 0, cycle.id, needs, 2);
    commit(f, 0);
    begin(f, 0);
    uint64_t first = claim(f, 0, needs[0], 21);
    struct other other = {.f = f, .id = needs[1], .token = claim(f, 0, needs[1], 22)};
    commit(f, 0);

    pthread_t thread;
    begin(f, 0);
    assert_true(finish(f, 0, needs[0], first, TIDE_ROW_DONE));
    assert_int_equal(pthread_create(&thread, NULL, finish_beside, &other), 0);
    await_lock(f);
    commit(f, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(other.applied);
    assert_int_equal(ask(f, "SELECT open_deps FROM tidemark.job WHERE id = ", waits), 0);
    assert_int_equal(ask(f, "SELECT outstanding FROM tidemark.cycle WHERE id = ", cycle.id), 1);
    assert_int_equal(f->changes[1].released_count, 1);
    assert_int_equal(f->changes[1].released[0].open_deps, 0);
    assert_int_equal(f->changes[1].cycles[0].outstanding, 1);
}

static uint64_t advance(struct fleet *f, int who, uint64_t stream)
{
    uint64_t ordinal = 0;
    OK(tide_ledger_cursor_advance(f->txs[who], stream, NOW, &ordinal, NULL, &f->err));
    return ordinal;
}

/* Neither sees the other's end of a cycle while it writes its own; the one that comes
 * second must move over both. */
CASE(a_cursor_misses_no_end_of_a_cycle)
{
    struct tide_stream_row stream;
    struct tide_cycle_row cycles[2];
    uint64_t ids[2];
    uint64_t tokens[2];
    begin(f, 0);
    OK(tide_ledger_stream(f->txs[0], f->account, "mail", TIDE_TEXT_NONE, &stream, &f->err));
    for (int i = 0; i < 2; i++) {
        OK(tide_ledger_cycle(f->txs[0], stream.id, TIDE_TEXT("a"), TIDE_TEXT("b"), NOW, &cycles[i],
                             &f->err));
        ids[i] = add(f, 0, cycles[i].id, NULL, 0);
    }
    commit(f, 0);
    begin(f, 0);
    for (int i = 0; i < 2; i++)
        tokens[i] = claim(f, 0, ids[i], 21);
    commit(f, 0);

    begin(f, 0);
    begin(f, 1);
    assert_true(finish(f, 0, ids[0], tokens[0], TIDE_ROW_DONE));
    assert_true(finish(f, 1, ids[1], tokens[1], TIDE_ROW_DONE));
    assert_int_equal(advance(f, 0, stream.id), 1);
    commit(f, 0);
    assert_int_equal(advance(f, 1, stream.id), 2);
    commit(f, 1);
}

struct mover {
    struct fleet *f;
    uint64_t stream;
    tide_status rc;
};

static void *advance_beside(void *arg)
{
    struct mover *mover = arg;
    tide_tx *tx = NULL;
    tide_error err;
    uint64_t ordinal = 0;
    mover->rc = tide_tx_begin(mover->f->ledgers[1], &tx, &err);
    if (mover->rc != TIDE_OK)
        return NULL;
    mover->rc = tide_ledger_cursor_advance(tx, mover->stream, NOW, &ordinal, NULL, &err);
    if (mover->rc == TIDE_OK)
        mover->rc = tide_tx_commit(tx, &err);
    else
        tide_tx_rollback(tx);
    return NULL;
}

/* LPG3: one transaction adds a job to a finished cycle and then needs the stream's row; the
 * other has that row, to move the cursor, and then needs the cycle's.  The server ends one of
 * them; it loses nothing but the time, and succeeds at its next try. */
CASE(a_cursor_and_a_new_job_that_wait_for_each_other_both_end)
{
    struct tide_stream_row stream;
    struct tide_cycle_row cycle;
    pthread_t thread;
    begin(f, 0);
    OK(tide_ledger_stream(f->txs[0], f->account, "mail", TIDE_TEXT_NONE, &stream, &f->err));
    struct mover mover = {.f = f, .stream = stream.id};
    OK(tide_ledger_cycle(f->txs[0], stream.id, TIDE_TEXT("a"), TIDE_TEXT("b"), NOW, &cycle,
                         &f->err));
    commit(f, 0);

    begin(f, 0);
    (void)add(f, 0, cycle.id, NULL, 0);
    assert_int_equal(pthread_create(&thread, NULL, advance_beside, &mover), 0);
    await_lock(f);
    tide_status rc = tide_ledger_cycle(f->txs[0], stream.id, TIDE_TEXT("b"), TIDE_TEXT("c"), NOW,
                                       &cycle, &f->err);
    if (rc == TIDE_OK)
        commit(f, 0);
    else
        tide_tx_rollback(f->txs[0]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    bool cursor_first = rc == TIDE_BUSY;
    assert_int_equal(rc, cursor_first ? TIDE_BUSY : TIDE_OK);
    assert_int_equal(mover.rc, cursor_first ? TIDE_OK : TIDE_BUSY);
    if (cursor_first) {
        begin(f, 0);
        OK(tide_ledger_cycle(f->txs[0], stream.id, TIDE_TEXT("b"), TIDE_TEXT("c"), NOW, &cycle,
                             &f->err));
        commit(f, 0);
    } else {
        (void)advance_beside(&mover);
        OK(mover.rc);
    }
    /* The cursor stands before the cycle that got the job. */
    assert_int_equal(ask(f, "SELECT ordinal FROM tidemark.stream WHERE id =", stream.id),
                     cursor_first);
    assert_int_equal(ask(f, "SELECT count(*) FROM tidemark.cycle WHERE stream =", stream.id), 2);
}

CASE(a_slot_fires_once_on_all_machines)
{
    struct tide_schedule_row row = {
        .kind = f->kind, .period_ms = 1000, .anchor_unix_ms = NOW, .name = TIDE_TEXT("nightly")};
    uint64_t id = 0;
    unsigned fired = 0;
    begin(f, 0);
    OK(tide_ledger_schedule(f->txs[0], &row, &id, &f->err));
    commit(f, 0);
    for (uint64_t slot = 1; slot <= 20; slot++)
        for (int who = 0; who < PROCESSES; who++) {
            begin(f, who);
            tide_status rc = tide_ledger_schedule_fire(f->txs[who], id, slot, NOW, &f->err);
            assert_true(rc == TIDE_OK || rc == TIDE_EXISTS);
            fired += rc == TIDE_OK;
            commit(f, who);
        }
    assert_int_equal(fired, 20);
}

CASE(a_cancel_request_reaches_the_process_that_runs_the_job)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    size_t count = 0;
    size_t running = 0;
    uint64_t ids[4];
    begin(f, 0);
    uint64_t id = add(f, 0, 0, NULL, 0);
    commit(f, 0);
    begin(f, 0);
    (void)claim(f, 0, id, 21);
    commit(f, 0);
    begin(f, 1);
    tide_changes_clear(&f->changes[1]);
    OK(tide_ledger_cancel(f->txs[1], &filter, NOW, &count, ids, 4, &running, &f->changes[1],
                          &f->err));
    commit(f, 1);
    assert_int_equal(count, 0);
    assert_int_equal(running, 1);
    OK(tide_ledger_cancels(f->ledgers[0], 21, ids, 4, &running, &f->err));
    assert_int_equal(running, 1);
    assert_int_equal(ids[0], id);
    /* Its process dies before it hears of it. */
    assert_int_equal(reclaim(f, 1, 12, NOW), 1);
    assert_int_equal(ask(f, "SELECT state FROM tidemark.job WHERE id = ", id), TIDE_ROW_CANCELED);
}

/* ---- hints ---------------------------------------------------------------------------------- */

CASE(hints_of_a_transaction_are_one_message)
{
    PGconn *conn = PQconnectdb(f->url);
    PQclear(PQexec(conn, "LISTEN tidemark"));
    begin(f, 0);
    OK(tide_tx_hint(f->txs[0], TIDE_HINT_WORK, 3, &f->err));
    tide_tx_rollback(f->txs[0]); /* news that did not happen */
    begin(f, 0);
    for (int i = 0; i < 3; i++) {
        OK(tide_tx_hint(f->txs[0], TIDE_HINT_WORK, 0, &f->err));
        OK(tide_tx_hint(f->txs[0], TIDE_HINT_WORK, 17, &f->err));
        OK(tide_tx_hint(f->txs[0], TIDE_HINT_CONTROL, 0, &f->err));
    }
    commit(f, 0);
    begin(f, 0);
    for (uint32_t i = 0; i <= TIDE_HINTS_ACCOUNTS_MAX; i++)
        OK(tide_tx_hint(f->txs[0], TIDE_HINT_WORK, i, &f->err));
    commit(f, 0);
    PQclear(PQexec(conn, "SELECT 1"));
    const char *expected[] = {"cw0,17", "a"};
    for (int i = 0; i < 2; i++) {
        PGnotify *notify = PQnotifies(conn);
        assert_non_null(notify);
        assert_string_equal(notify->extra, expected[i]);
        PQfreemem(notify);
    }
    assert_null(PQnotifies(conn));
    PQfinish(conn);
}

/* ---- shares of a limit ------------------------------------------------------------------------ */

enum { HOLDERS = 5, SPENT_MAX = 20000, UNITS = 100, WINDOW_MS = 3000 };

struct holder {
    uint64_t share, until;
    uint64_t at[SPENT_MAX]; /* each unit spent, when */
    size_t spent;
};

static size_t spent_in_window(const struct holder *holder, uint64_t now)
{
    size_t count = 0;
    for (size_t i = holder->spent; i > 0 && holder->at[i - 1] + WINDOW_MS > now; i--)
        count++;
    return count;
}

/* As a governor does: never more in the window that ends now than the share it holds. */
static void spend_greedily(struct holder *holder, uint64_t now)
{
    uint64_t share = now < holder->until ? holder->share : 0;
    for (size_t had = spent_in_window(holder, now); had < share && holder->spent < SPENT_MAX; had++)
        holder->at[holder->spent++] = now;
}

static void grant(struct fleet *f, struct holder *holder, uint64_t owner, uint64_t wanted,
                  uint64_t now)
{
    uint64_t units = UINT64_MAX;
    begin(f, 0);
    OK(tide_ledger_grant(f->txs[0], "project", owner, UNITS, wanted, WINDOW_MS, LEASE_MS, now,
                         &units, &f->err));
    commit(f, 0);
    assert_true(units <= wanted && units <= UNITS);
    holder->share = units;
    holder->until = now + LEASE_MS;
}

/* Members come, ask, give back, die without a word, all at random times, and each spends
 * all it may at every moment.  In no window do they spend more than the limit.  And they
 * get to use it: a share is not lost for good. */
CASE(shares_never_exceed_the_limit_in_any_window)
{
    uint64_t seed = 20261115;
    const int steps = (int)scaled(3000);
    struct holder *holders = calloc(HOLDERS, sizeof holders[0]);
    uint64_t now = NOW;
    uint64_t most = 0;
    tide_rng rng = tide_rng_seeded(seed);
    assert_non_null(holders);
    for (int step = 0; step < steps; step++) {
        uint64_t who = tide_rng_below(&rng, HOLDERS);
        uint64_t what = tide_rng_below(&rng, 10);
        now += tide_rng_below(&rng, what == 0 ? 20000 : 900);
        if (what < 6)
            grant(f, &holders[who], who + 1, 1 + tide_rng_below(&rng, UNITS), now);
        else if (what < 7)
            grant(f, &holders[who], who + 1, 0, now);
        uint64_t together = 0;
        for (int i = 0; i < HOLDERS; i++) {
            spend_greedily(&holders[i], now);
            together += spent_in_window(&holders[i], now);
        }
        if (together > UNITS)
            fail_msg("seed %" PRIu64 ", step %d: %" PRIu64 " units in one window", seed, step,
                     together);
        most = together > most ? together : most;
    }
    assert_true(most > UNITS / 2);
    free(holders);
}

/* Alone it gets everything; two get half each, as soon as the first makes room and a
 * window has passed. */
CASE(a_share_is_handed_over_after_one_window)
{
    struct holder a = {.share = 0};
    struct holder b = {.share = 0};
    grant(f, &a, 1, 1000, NOW);
    assert_int_equal(a.share, 100);
    grant(f, &b, 2, 1000, NOW + 1);
    assert_int_equal(b.share, 0);
    grant(f, &a, 1, 1000, NOW + 2);
    assert_int_equal(a.share, 50);
    grant(f, &b, 2, 1000, NOW + 2 + WINDOW_MS - 1);
    assert_int_equal(b.share, 0);
    grant(f, &b, 2, 1000, NOW + 2 + WINDOW_MS);
    assert_int_equal(b.share, 50);
    grant(f, &a, 1, 0, NOW + 6000);
    grant(f, &b, 2, 1000, NOW + 6000 + WINDOW_MS);
    assert_int_equal(b.share, 100);
}

/* ---- days ------------------------------------------------------------------------------------- */

static void done_row(struct fleet *f, uint64_t id, const char *cycle, int64_t finished)
{
    char sql[400];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO tidemark.job_done (id, account, kind, priority, lane, level,"
                   " attempts, attempts_max, preemptible, force, cycle, created, finished, payload)"
                   " VALUES (%" PRIu64 ", 1, 1, 50, 0, 0, 0, 5, false, false, %s, 1, %" PRId64
                   ", '{}')",
                   id, cycle, finished);
    (void)pg_test_exec(f->url, sql);
}

static int64_t today(struct fleet *f)
{
    return pg_test_exec(f->url, "SELECT (extract(epoch FROM clock_timestamp()) / 86400)::bigint");
}

static size_t purge_round(struct fleet *f, tide_ledger *ledger, uint64_t before)
{
    size_t total = 0;
    for (int i = 0; i < 100; i++) {
        size_t count = 0;
        tide_tx *tx = NULL;
        OK(tide_tx_begin(ledger, &tx, &f->err));
        tide_status rc = tide_ledger_purge(tx, before, 500, &count, &f->err);
        if (rc != TIDE_OK)
            print_error("%s\n", f->err.text);
        OK(rc);
        OK(tide_tx_commit(tx, &f->err));
        total += count;
        if (!tide_ledger_purge_more(ledger))
            return total;
    }
    fail_msg("a round of purges does not end");
    return total;
}

#define PARTITIONS                                                                                 \
    "SELECT count(*) FROM pg_catalog.pg_inherits WHERE inhparent = 'tidemark.job_done'::regclass"

CASE(an_old_day_is_dropped_whole)
{
    tide_ledger *ledger = open_one(f, true);
    int64_t day = today(f);
    assert_int_equal(pg_test_exec(f->url, PARTITIONS), 4); /* three days and the default */
    (void)day_do(f, "day_open", day - 9);
    (void)day_do(f, "day_open", day - 7);
    for (uint64_t id = 1; id <= 50; id++)
        done_row(f, id, "NULL", (day - 9) * DAY_MS + (int64_t)id);
    done_row(f, 51, "NULL", (day - 7) * DAY_MS + 5); /* in the limit's own day: later, with it */
    done_row(f, 52, "NULL", (day - 8) * DAY_MS + 5); /* of no day: by itself */
    (void)pg_test_exec(f->url, "INSERT INTO tidemark.intent (tag, job, state, made) VALUES"
                               " ('a', 3, 1, 1), ('b', 4, 3, 1), ('c', 51, 1, 1)");
    uint64_t before = (uint64_t)((day - 7) * DAY_MS + 1000);
    assert_int_equal(purge_round(f, ledger, before), 51);
    assert_int_equal(pg_test_exec(f->url, PARTITIONS), 5);
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM tidemark.job_done"), 1);
    /* One whose outcome is unknown outlives its job (E1.9). */
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM tidemark.intent"), 2);
    assert_int_equal(purge_round(f, ledger, before), 0);
    assert_int_equal(purge_round(f, ledger, (uint64_t)((day - 6) * DAY_MS)), 1);
    tide_ledger_close(ledger, true);
}

CASE(a_day_that_an_unfinished_cycle_holds_stays_for_its_rows)
{
    struct tide_stream_row stream;
    struct tide_cycle_row cycle;
    char number[24];
    tide_ledger *ledger = open_one(f, true);
    int64_t day = today(f) - 20;
    begin(f, 0);
    OK(tide_ledger_stream(f->txs[0], f->account, "mail", TIDE_TEXT_NONE, &stream, &f->err));
    OK(tide_ledger_cycle(f->txs[0], stream.id, TIDE_TEXT("a"), TIDE_TEXT("b"), NOW, &cycle,
                         &f->err));
    (void)add(f, 0, cycle.id, NULL, 0);
    commit(f, 0);
    (void)snprintf(number, sizeof number, "%" PRIu64, cycle.id);
    (void)day_do(f, "day_open", day);
    for (uint64_t id = 1000; id < 1020; id++)
        done_row(f, id, id % 2 == 0 ? number : "NULL", day * DAY_MS + (int64_t)id);
    assert_int_equal(purge_round(f, ledger, (uint64_t)((day + 2) * DAY_MS)), 10);
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM tidemark.job_done"), 10);
    assert_int_equal(pg_test_exec(f->url, PARTITIONS), 5);
    tide_ledger_close(ledger, true);
}

/* A session reads a day for long: that day waits for the next round, the others do not. */
CASE(a_long_reader_puts_a_drop_off)
{
    tide_ledger *ledger = open_one(f, true);
    int64_t day = today(f) - 20;
    (void)day_do(f, "day_open", day);
    done_row(f, 1000, "NULL", day * DAY_MS);
    PGconn *reader = PQconnectdb(f->url);
    PQclear(PQexec(reader, "BEGIN; SELECT count(*) FROM tidemark.job_done"));
    uint64_t before = (uint64_t)((day + 2) * DAY_MS);
    assert_int_equal(purge_round(f, ledger, before), 1); /* its row goes by itself */
    assert_int_equal(pg_test_exec(f->url, PARTITIONS), 5);
    PQfinish(reader);
    assert_int_equal(purge_round(f, ledger, before), 0);
    assert_int_equal(pg_test_exec(f->url, PARTITIONS), 4);
    tide_ledger_close(ledger, true);
}

/* ---- the doctor ------------------------------------------------------------------------------- */

struct finding {
    const char *what;
    int level;
};

static bool find_symptom(const struct tide_symptom *symptom, void *arg)
{
    struct finding *finding = arg;
    if (strcmp(symptom->what, finding->what) == 0)
        finding->level = symptom->level;
    return true;
}

static int level_of(struct fleet *f, tide_ledger *ledger, const char *what)
{
    struct finding finding = {what, -1};
    tide_status rc = tide_ledger_doctor(ledger, NOW, find_symptom, &finding, &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n", f->err.text);
    OK(rc);
    return finding.level;
}

CASE(the_doctor_finds_what_only_a_server_can_have)
{
    tide_ledger *ledger = open_one(f, true);
    static const char *const healthy[] = {
        "server_version",        "connections",       "old_snapshot", "missing_days",
        "prepared_transactions", "replication_slots", "autovacuum",   "overdue_days",
        "unheld_accounts",       "unhandled_kinds",   "dead_rows",    "table_bloat",
        "rows_of_no_day",        "index_bloat"};
    for (size_t i = 0; i < sizeof healthy / sizeof healthy[0]; i++)
        assert_int_equal(level_of(f, ledger, healthy[i]), 0);
    (void)day_do(f, "day_open", today(f) - 20);
    assert_true(level_of(f, ledger, "overdue_days") > 0);
    (void)day_do(f, "day_drop", today(f));
    assert_true(level_of(f, ledger, "missing_days") > 0);
    (void)pg_test_exec(f->url, "ALTER TABLE tidemark.job SET (autovacuum_enabled = false)");
    assert_int_equal(level_of(f, ledger, "autovacuum"), 2);
    (void)pg_test_exec(f->url, "INSERT INTO tidemark.job (account, kind, scope, priority, lane,"
                               " level, attempts_max, preemptible, force, created, payload)"
                               " SELECT a.id, k.id, 0, 50, 0, 0, 5, false, false, 1, '{}'"
                               " FROM tidemark.kind k CROSS JOIN (SELECT id FROM tidemark.account"
                               " UNION ALL SELECT 0) a");
    assert_true(level_of(f, ledger, "unhandled_kinds") > 0);
    assert_int_equal(level_of(f, ledger, "unheld_accounts"), 0); /* no member works at all */
    struct tide_member member = {.owner = 31, .name = "host", .version = "1"};
    OK(tide_ledger_member_join(ledger, &member, LEASE_MS, 0, &f->err));
    assert_true(level_of(f, ledger, "unheld_accounts") > 0);
    tide_ledger_close(ledger, true);
}

int main(void)
{
    return pg_tests_run();
}
