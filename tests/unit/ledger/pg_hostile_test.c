/* pg_hostile_test.c - a ledger on PostgreSQL among enemies.
 *
 * Goal: nothing that others do to the server, or that happens to the way there, makes a
 * ledger lie, hang, or run another role's code.
 * Method: each test has a database of its own, and does the harm itself: functions with
 * our names, a server process that is killed in the middle of a COMMIT, a process that
 * stands still in the middle of a COPY, a clock that is wrong. */
#include "db/pg.h"
#include "ledger/ledger.h"
#include "support/pg_test.h"
#include "support/heap.h"
#include "support/test.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#define LEASE_MS 15000u
#define OK(call)                                                                                   \
    do {                                                                                           \
        tide_status ok_rc = (call);                                                                \
        if (ok_rc != TIDE_OK)                                                                      \
            print_error("%s: %s\n", #call, f->err.text);                                           \
        assert_int_equal(ok_rc, TIDE_OK);                                                          \
    } while (0)

struct fixture {
    char url[PG_TEST_URL_BYTES];
    tide_world *world;
    tide_ledger *ledger;
    tide_tx *tx;
    uint32_t kind, account;
    tide_error err;
};

static uint64_t now_ms(const struct fixture *f)
{
    return tide_world_now_unix_ms(f->world);
}

static tide_ledger *open_ledger(struct fixture *f, bool read_only)
{
    struct tide_ledger_options options = {.path = f->url,
                                          .run_id = "run",
                                          .now_unix_ms = now_ms(f),
                                          .read_only = read_only,
                                          .database_clock = true};
    tide_ledger *ledger = NULL;
    OK(tide_ledger_open(f->world, &options, &ledger, &f->err));
    return ledger;
}

static void begin(struct fixture *f)
{
    OK(tide_tx_begin(f->ledger, &f->tx, &f->err));
}

static void commit(struct fixture *f)
{
    OK(tide_tx_commit(f->tx, &f->err));
}

static void join(struct fixture *f, tide_ledger *ledger, uint64_t owner)
{
    struct tide_member member = {.owner = owner, .name = "somebody", .version = "1"};
    OK(tide_ledger_member_join(ledger, &member, LEASE_MS, now_ms(f), &f->err));
}

static void open_with_names(struct fixture *f)
{
    f->ledger = open_ledger(f, false);
    begin(f);
    OK(tide_ledger_kind(f->tx, "fetch", TIDE_DEDUPE_PENDING, &f->kind, &f->err));
    OK(tide_ledger_account(f->tx, "ann", "gmail", &f->account, &f->err));
    commit(f);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL || tide_world_real_new(tide_mem_heap(), &f->world, &f->err) != TIDE_OK)
        return -1;
    pg_test_create(NULL, f->url, sizeof f->url);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->ledger != NULL)
        tide_ledger_close(f->ledger, true);
    pg_test_drop(f->url);
    tide_world_real_free(f->world);
    free(f);
    return 0;
}

static void add(struct fixture *f, size_t count, uint64_t *ids_out)
{
    struct tide_job_new jobs[64];
    struct tide_enqueued enqueued[64];
    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++)
        jobs[i] = (struct tide_job_new){
            .kind = f->kind, .payload = TIDE_TEXT("{}"), .attempts_max = 3, .lane = 1, .level = 4};
    OK(tide_ledger_enqueue(f->tx, jobs, count, now_ms(f), enqueued, &f->err));
    for (size_t i = 0; ids_out != NULL && i < count; i++)
        ids_out[i] = enqueued[i].id;
}

/* ---- functions of other roles -------------------------------------------------------- */

/* Any role that may create in a schema of our search_path can offer a function that fits a
 * call better than the server's own: a text where that one takes a regclass, an array of
 * numbers where it takes any.  It would run with our rights. */
static const char functions_of_others[] =
    "CREATE FUNCTION public.trap() RETURNS void LANGUAGE plpgsql AS $$"
    " BEGIN RAISE EXCEPTION 'a function of somebody else ran'; END $$;"
    "CREATE FUNCTION public.nextval(text) RETURNS bigint LANGUAGE sql AS"
    " $$ SELECT public.trap(); SELECT 1::bigint $$;"
    "CREATE FUNCTION public.setval(text, bigint, boolean) RETURNS bigint LANGUAGE sql AS"
    " $$ SELECT public.trap(); SELECT 1::bigint $$;"
    "CREATE FUNCTION public.unnest(bigint[]) RETURNS SETOF bigint LANGUAGE sql AS"
    " $$ SELECT public.trap(); SELECT 1::bigint $$;"
    "CREATE FUNCTION public.unnest(int[]) RETURNS SETOF int LANGUAGE sql AS"
    " $$ SELECT public.trap(); SELECT 1 $$;"
    "CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text LANGUAGE sql AS"
    " $$ SELECT public.trap(); SELECT '' $$;"
    "CREATE FUNCTION public.format(text, bigint, bigint) RETURNS text LANGUAGE sql AS"
    " $$ SELECT public.trap(); SELECT '' $$;"
    "CREATE FUNCTION public.format(text, text, text, text) RETURNS text LANGUAGE sql AS"
    " $$ SELECT public.trap(); SELECT '' $$;"
    "CREATE FUNCTION public.step(bigint, bigint) RETURNS bigint LANGUAGE sql AS"
    " $$ SELECT public.trap(); SELECT 1::bigint $$;"
    "CREATE AGGREGATE public.lead(bigint) (SFUNC = public.step, STYPE = bigint, INITCOND = '0');"
    "CREATE AGGREGATE public.count(bigint) (SFUNC = public.step, STYPE = bigint, INITCOND = '0')";

static bool see_symptom(const struct tide_symptom *symptom, void *arg)
{
    (void)symptom;
    ++*(int *)arg;
    return true;
}

#define CASE(name) TEST_ON(name, struct fixture *f, set_up, tear_down)

CASE(functions_of_other_people_are_never_called)
{
    uint64_t ids[40];
    uint64_t kept[40];
    size_t count = 0;
    bool taken = false;
    bool applied = false;
    int symptoms = 0;
    struct tide_changes changes;
    struct tide_job_body *body = NULL;
    (void)pg_test_exec(f->url, functions_of_others);
    open_with_names(f);
    join(f, f->ledger, 7);
    tide_changes_init(&changes, tide_mem_heap());
    begin(f);
    add(f, 1, NULL);
    add(f, 40, ids);
    OK(tide_ledger_batch_put(f->tx, TIDE_TEXT("order 1"), ids, 40, now_ms(f), &f->err));
    OK(tide_ledger_accounts_take(f->tx, &f->account, 1, 7, &taken, now_ms(f), &f->err));
    OK(tide_ledger_reclaim(f->tx, 7, 100, now_ms(f), &count, &changes, &f->err));
    OK(tide_ledger_claim(f->tx, ids, 1, 7, 100, now_ms(f), tide_mem_heap(), &body, &f->err));
    /* A part, and a reader that waits for the whole. */
    struct tide_job_new waits = {.kind = f->kind,
                                 .payload = TIDE_TEXT("{}"),
                                 .attempts_max = 3,
                                 .lane = 1,
                                 .needs = ids,
                                 .needs_count = 1};
    struct tide_enqueued enqueued;
    OK(tide_ledger_enqueue(f->tx, &waits, 1, now_ms(f), &enqueued, &f->err));
    struct tide_job_new part = {
        .kind = f->kind, .payload = TIDE_TEXT("{}"), .attempts_max = 3, .lane = 1, .part = true};
    struct tide_finish finish = {
        .id = ids[0], .token = 100, .state = TIDE_ROW_DONE, .children = &part, .children_count = 1};
    OK(tide_ledger_finish(f->tx, &finish, 1, now_ms(f), &applied, &changes, &f->err));
    assert_true(taken && applied);
    commit(f);
    tide_job_body_free(tide_mem_heap(), body);
    tide_changes_done(&changes);
    OK(tide_ledger_batch_get(f->ledger, TIDE_TEXT("order 1"), kept, 40, &count, &f->err));
    assert_memory_equal(ids, kept, sizeof ids);
    OK(tide_ledger_doctor(f->ledger, now_ms(f), see_symptom, &symptoms, &f->err));
    assert_true(symptoms > 10);
    /* The default of a column was written down when the table was made. */
    assert_true(pg_test_exec(f->url, "SELECT tidemark.add_job('fetch')") > 40);
}

/* ---- a server that crashes during COMMIT ------------------------------------------------ */

struct committing {
    struct fixture *f;
    tide_status rc;
};

static void *commit_main(void *arg)
{
    struct committing *committing = arg;
    tide_error err;
    committing->rc = tide_tx_commit(committing->f->tx, &err);
    return NULL;
}

/* Until one question has an answer other than 0; the server may be away meanwhile. */
static void until(const struct fixture *f, const char *sql)
{
    for (int i = 0; i < 600; i++) {
        PGconn *conn = PQconnectdb(f->url);
        PGresult *result = PQstatus(conn) == CONNECTION_OK ? PQexec(conn, sql) : NULL;
        bool yes = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0 &&
                   strtoll(PQgetvalue(result, 0, 0), NULL, 10) != 0;
        PQclear(result);
        PQfinish(conn);
        if (yes)
            return;
        (void)usleep(50000);
    }
    fail_msg("%s: in vain", sql);
}

/* The number of a transaction that never reached the disk is given to another one after
 * a crash, and that one commits: no process may take it for its own. */
CASE(a_number_that_a_crashed_server_gives_again_is_not_ours)
{
    pthread_t thread;
    struct committing committing = {f, TIDE_OK};
    open_with_names(f);
    (void)pg_test_exec(f->url,
                       "CREATE FUNCTION public.stand() RETURNS trigger LANGUAGE plpgsql AS $$"
                       " BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END $$;"
                       "CREATE CONSTRAINT TRIGGER stand AFTER INSERT ON tidemark.note DEFERRABLE"
                       " INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.stand()");
    PGconn *holder = PQconnectdb(f->url);
    PQclear(PQexec(holder, "SELECT pg_advisory_lock(42)"));
    begin(f);
    OK(tide_ledger_note(f->tx, "lost", TIDE_TEXT("x"), &f->err));
    int pid = PQbackendPID(tide_tx_postgres(f->tx));
    assert_int_equal(pthread_create(&thread, NULL, commit_main, &committing), 0);
    until(f, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted");
    assert_int_equal(kill(pid, SIGKILL), 0);
    for (int i = 0; i < 3; i++)
        until(f, "SELECT pg_current_xact_id()::text::bigint");
    assert_int_equal(pthread_join(thread, NULL), 0);
    PQfinish(holder);
    assert_int_equal(committing.rc, TIDE_NETWORK);
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM tidemark.note"), 0);
    /* And it still works. */
    (void)pg_test_exec(f->url, "DROP TRIGGER IF EXISTS stand ON tidemark.note");
    begin(f);
    OK(tide_ledger_note(f->tx, "kept", TIDE_TEXT("x"), &f->err));
    commit(f);
}

/* ---- a machine whose clock is wrong ----------------------------------------------------- */

static uint64_t (*right_now_unix_ms)(tide_world *world);

static uint64_t wrong_now_unix_ms(tide_world *world)
{
    return right_now_unix_ms(world) + (uint64_t)4 * 365 * 24 * 3600 * 1000;
}

static size_t purge(struct fixture *f, tide_status expected)
{
    size_t count = 0;
    size_t all = 0;
    tide_status rc = TIDE_OK;
    do {
        begin(f);
        rc = tide_ledger_purge(f->tx, now_ms(f) - 1000, 1000, &count, &f->err);
        commit(f);
        all += rc == TIDE_OK ? count : 0;
    } while (rc == TIDE_OK && tide_ledger_purge_more(f->ledger));
    assert_int_equal(rc, expected);
    return all;
}

/* It may be years ahead: nothing that was finished just now is purged, and the others' ticks
 * go on. */
CASE(a_clock_that_is_years_ahead_takes_nothing_from_the_others)
{
    uint64_t schedule = 0;
    open_with_names(f);
    (void)pg_test_exec(f->url,
                       "INSERT INTO tidemark.job_done (id, account, kind, priority, lane, level,"
                       " attempts, attempts_max, preemptible, force, created, finished, payload)"
                       " SELECT 900, 0, 1, 50, 1, 4, 0, 3, true, false, t, t, '{}' FROM (SELECT"
                       " (extract(epoch FROM now()) * 1000)::bigint - 10000 AS t) n");
    struct tide_schedule_row row = {.kind = f->kind,
                                    .period_ms = 60000,
                                    .anchor_unix_ms = now_ms(f),
                                    .name = TIDE_TEXT("every minute"),
                                    .payload = TIDE_TEXT("{}")};
    begin(f);
    OK(tide_ledger_schedule(f->tx, &row, &schedule, &f->err));
    commit(f);

    struct tide_world_ops wrong = *f->world->ops;
    const struct tide_world_ops *right = f->world->ops;
    right_now_unix_ms = right->now_unix_ms;
    wrong.now_unix_ms = wrong_now_unix_ms;
    f->world->ops = &wrong;
    (void)purge(f, TIDE_INVALID);
    begin(f);
    assert_int_equal(tide_ledger_schedule_fire(f->tx, schedule, now_ms(f), now_ms(f), &f->err),
                     TIDE_INVALID);
    commit(f);
    f->world->ops = right;
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM tidemark.job_done"), 1);

    /* One that did fire so, before this was checked, is no obstacle; nor is it a reason to
     * fire twice. */
    (void)pg_test_exec(f->url, "UPDATE tidemark.schedule SET slot_last = 1999999999999");
    uint64_t slot = now_ms(f);
    begin(f);
    OK(tide_ledger_schedule_fire(f->tx, schedule, slot, slot, &f->err));
    assert_int_equal(tide_ledger_schedule_fire(f->tx, schedule, slot, slot, &f->err), TIDE_EXISTS);
    commit(f);
}

/* ---- a process that stands still while it sends ------------------------------------------ */

static size_t reclaim_as(struct fixture *f, uint64_t owner)
{
    struct tide_changes changes;
    size_t count = 0;
    tide_changes_init(&changes, tide_mem_heap());
    begin(f);
    OK(tide_ledger_reclaim(f->tx, owner, 100, now_ms(f), &count, &changes, &f->err));
    commit(f);
    tide_changes_done(&changes);
    return count;
}

/* The server waits for the rest of its rows, whatever its time-outs are, and keeps the
 * member's row locked: no process could ever declare it dead. */
CASE(a_process_that_stands_still_in_a_copy_is_declared_dead)
{
    struct tide_member still = {.owner = 8, .name = "still", .version = "1"};
    tide_tx *tx = NULL;
    uint64_t id = 0;
    struct tide_job_body *body = NULL;
    open_with_names(f);
    tide_ledger *other = open_ledger(f, false);
    begin(f);
    add(f, 1, &id);
    commit(f);
    OK(tide_ledger_member_join(other, &still, 1, now_ms(f), &f->err));
    OK(tide_tx_begin(other, &tx, &f->err));
    OK(tide_ledger_claim(tx, &id, 1, 8, 100, now_ms(f), tide_mem_heap(), &body, &f->err));
    OK(tide_tx_commit(tx, &f->err));
    tide_job_body_free(tide_mem_heap(), body);
    OK(tide_tx_begin(other, &tx, &f->err));
    PGresult *result = PQexec(tide_tx_postgres(tx), "COPY tidemark.job (id) FROM STDIN");
    assert_int_equal(PQresultStatus(result), PGRES_COPY_IN);
    PQclear(result);
    join(f, f->ledger, 7);
    /* A statement of ours may last a second, not a minute. */
    PQclear(PQexec(tide_ledger_postgres(f->ledger), "SET statement_timeout = 1000"));
    size_t reclaimed = 0;
    for (int i = 0; i < 200 && reclaimed == 0; i++) {
        reclaimed = reclaim_as(f, 7);
        if (reclaimed == 0)
            (void)usleep(50000);
    }
    assert_int_equal(reclaimed, 1);
    tide_tx_rollback(tx);
    assert_int_equal(tide_tx_begin(other, &tx, &f->err), TIDE_STALE);
    tide_ledger_close(other, true);
}

/* ---- a database of another encoding ------------------------------------------------------ */

/* There an error of a provider's that has one odd letter could never be written, and all that
 * ended with it neither. */
CASE(a_database_that_cannot_keep_every_text_is_refused)
{
    char name[PG_TEST_NAME_BYTES];
    char sql[200];
    char url[PG_TEST_URL_BYTES];
    tide_ledger *ledger = NULL;
    (void)snprintf(name, sizeof name, "latin_%ld", (long)getpid());
    (void)snprintf(sql, sizeof sql,
                   "CREATE DATABASE %s ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
                   " TEMPLATE template0",
                   name);
    (void)pg_test_exec(f->url, sql);
    pg_test_url(name, url, sizeof url);
    struct tide_ledger_options options = {.path = url, .run_id = "run", .now_unix_ms = now_ms(f)};
    assert_int_equal(tide_ledger_open(f->world, &options, &ledger, &f->err), TIDE_INVALID);
    assert_non_null(strstr(f->err.text, "ENCODING 'UTF8'"));
    assert_int_equal(
        pg_test_exec(url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'tidemark'"), 0);
    (void)snprintf(sql, sizeof sql, "DROP DATABASE %s", name);
    (void)pg_test_exec(f->url, sql);
}

/* ---- one effect that two jobs want to have ------------------------------------------------- */

struct intending {
    struct fixture *f;
    tide_ledger *ledger;
    tide_status found, made;
};

static void *intend_main(void *arg)
{
    struct intending *intending = arg;
    tide_intent_state state = TIDE_INTENT_DONE;
    tide_error err;
    tide_tx *tx = NULL;
    tide_buf outcome = heap_buf(1 << 10);
    if (tide_tx_begin(intending->ledger, &tx, &err) != TIDE_OK)
        return NULL;
    intending->found =
        tide_ledger_intent_find(intending->ledger, TIDE_TEXT("send 1"), &state, &outcome, &err);
    intending->made =
        tide_ledger_intent(tx, 2, TIDE_TEXT("send 1"), TIDE_TEXT_NONE, 1, &state, &outcome, &err);
    tide_tx_rollback(tx);
    tide_buf_done(&outcome);
    return NULL;
}

/* The second looked for the intent before the first one's was there: it must not be told that
 * it made it. */
CASE(an_intent_that_two_make_at_once_is_one_s_alone)
{
    pthread_t thread;
    tide_intent_state intent = TIDE_INTENT_DONE;
    open_with_names(f);
    struct intending intending = {f, open_ledger(f, false), TIDE_OK, TIDE_OK};
    begin(f);
    OK(tide_ledger_intent(f->tx, 1, TIDE_TEXT("send 1"), TIDE_TEXT_NONE, 1, &intent, NULL,
                          &f->err));
    assert_int_equal(pthread_create(&thread, NULL, intend_main, &intending), 0);
    until(f, "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted");
    commit(f);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(intending.found, TIDE_NOT_FOUND);
    assert_int_equal(intending.made, TIDE_BUSY);
    /* Again: now it is there. */
    (void)intend_main(&intending);
    assert_int_equal(intending.found, TIDE_OK);
    assert_int_equal(intending.made, TIDE_OK);
    tide_ledger_close(intending.ledger, true);
}

/* ---- no room for hints ---------------------------------------------------------------------- */

/* As the server says it when the queue of NOTIFYs is full, the first time only. */
CASE(a_full_queue_of_hints_stops_no_process)
{
    open_with_names(f);
    (void)pg_test_exec(
        f->url, "CREATE SEQUENCE public.times;"
                "CREATE FUNCTION public.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                " IF nextval('public.times') = 1 THEN RAISE EXCEPTION 'too many notifications in"
                " the NOTIFY queue' USING ERRCODE = '54000'; END IF; RETURN NULL; END $$;"
                "CREATE CONSTRAINT TRIGGER full_queue AFTER INSERT ON tidemark.note DEFERRABLE"
                " INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.full()");
    begin(f);
    OK(tide_ledger_note(f->tx, "told", TIDE_TEXT("x"), &f->err));
    OK(tide_tx_hint(f->tx, TIDE_HINT_CONTROL, 0, &f->err));
    assert_int_equal(tide_tx_commit(f->tx, &f->err), TIDE_BUSY);
    PGconn *listener = PQconnectdb(f->url);
    PQclear(PQexec(listener, "LISTEN tidemark"));
    begin(f);
    OK(tide_ledger_note(f->tx, "told", TIDE_TEXT("x"), &f->err));
    OK(tide_tx_hint(f->tx, TIDE_HINT_CONTROL, 0, &f->err));
    commit(f);
    PQclear(PQexec(listener, "SELECT 1"));
    assert_null(PQnotifies(listener)); /* it went without */
    PQfinish(listener);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Two names that differ only in bytes that are not UTF-8 must not become one account. */
CASE(names_that_are_not_utf8_stay_apart)
{
    static const char *const names[] = {"ann\xff", "ann\xfe"};
    uint32_t id = 0;
    bool paused = false;
    open_with_names(f);
    for (size_t i = 0; i < 2; i++) {
        begin(f);
        assert_int_equal(tide_ledger_account(f->tx, names[i], "gmail", &id, &f->err), TIDE_INVALID);
        assert_non_null(strstr(f->err.text, "not UTF-8"));
        assert_int_equal(tide_ledger_kind(f->tx, names[i], TIDE_DEDUPE_PENDING, &id, &f->err),
                         TIDE_INVALID);
        /* One that has the replacement in its name is another one. */
        OK(tide_ledger_account(f->tx, "ann\xef\xbf\xbd", "gmail", &id, &f->err));
        OK(tide_ledger_kind(f->tx, "ann\xef\xbf\xbd", TIDE_DEDUPE_PENDING, &id, &f->err));
        commit(f);
        assert_int_equal(tide_ledger_account_find(f->ledger, names[i], &id, &f->err),
                         TIDE_NOT_FOUND);
        assert_int_equal(tide_ledger_kind_find(f->ledger, names[i], &id, &paused, &f->err),
                         TIDE_NOT_FOUND);
    }
}

int main(void)
{
    return pg_tests_run();
}
