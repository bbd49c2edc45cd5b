/* Goal: what a program's callbacks say and do in a transaction of the ledger hurts no one
 * but themselves: the engine lives, others' transactions continue, nothing of theirs is kept.
 * Method: one engine on a file or on a fresh database; callbacks that name every status a
 * broken store has, or whose statements fail on the server without a word.  A hang ends the
 * program by an alarm. */
#include "base/check.h"
#include "support/pg_test.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "tidemark.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        tide_status ok_rc = (call);                                                                \
        if (ok_rc != TIDE_OK)                                                                      \
            print_error("%s: %s\n", #call, f->err.text);                                           \
        assert_int_equal(ok_rc, TIDE_OK);                                                          \
    } while (0)

enum { HANG_S = 60 };

struct fixture {
    char url[PG_TEST_URL_BYTES];
    char dir[64];
    tide_engine *engine;
    uint32_t kind, effect_kind;
    atomic_uint ran, woke;
    tide_transact_fn *effect;
    atomic_uint denied; /* lines of the log that say so */
    tide_error err;
};

static tide_status count_run(tide_job *job, void *context, tide_error *err)
{
    (void)job;
    (void)err;
    atomic_fetch_add(&((struct fixture *)context)->ran, 1);
    return TIDE_OK;
}

static tide_status effect_run(tide_job *job, void *context, tide_error *err)
{
    return tide_job_effect(job, ((struct fixture *)context)->effect, NULL, err);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tide-hostile-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)alarm(HANG_S);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    (void)tide_engine_close(f->engine);
    (void)alarm(0);
    if (f->url[0] != '\0')
        pg_test_drop(f->url);
    assert_int_equal(temp_dir_remove(f->dir), 0);
    free(f);
    return 0;
}

static void hear(void *arg, const char *line, size_t bytes)
{
    struct fixture *f = arg;
    if (memmem(line, bytes, "permission denied", 17) != NULL)
        atomic_fetch_add(&f->denied, 1);
}

static void open_engine(struct fixture *f, bool shared)
{
    struct tide_engine_options options = {
        .state_dir = f->dir,
        .ledger = shared ? f->url : NULL,
        .workers = 2,
        .log_line = hear,
        .log_arg = f,
        .set = (const char *const[]){"retry.backoff_start=1ms", NULL}};
    OK(tide_engine_open(&options, &f->engine, &f->err));
    struct tide_kind plain = {.name = "plain", .handler = count_run, .context = f};
    struct tide_kind effect = {
        .name = "effect", .handler = effect_run, .context = f, .attempts_max = 2};
    OK(tide_engine_kind(f->engine, &plain, &f->kind, &f->err));
    OK(tide_engine_kind(f->engine, &effect, &f->effect_kind, &f->err));
}

static void start(struct fixture *f, bool shared)
{
    if (shared)
        pg_test_create(NULL, f->url, sizeof f->url);
    open_engine(f, shared);
    OK(tide_engine_start(f->engine, &f->err));
}

static uint64_t enqueue(struct fixture *f, uint32_t kind)
{
    struct tide_spec spec = {.kind = kind};
    uint64_t id = 0;
    OK(tide_enqueue(f->engine, &spec, 1, &id, &f->err));
    return id;
}

static tide_status ended(struct fixture *f, uint64_t id)
{
    tide_status rc = TIDE_TIMEOUT;
    for (int i = 0; i < 400 && rc == TIDE_TIMEOUT; i++) {
        rc = tide_job_ended(f->engine, id, &f->err);
        if (rc == TIDE_TIMEOUT)
            (void)usleep(20000);
    }
    return rc;
}

static void assert_lives(struct fixture *f)
{
    OK(ended(f, enqueue(f, f->kind)));
}

/* ---- what a callback says ------------------------------------------------------------- */

static tide_status say(tide_transaction *transaction, void *arg, tide_error *err)
{
    const tide_status *status = arg;
    uint32_t kind = 1;
    struct tide_spec spec = {.kind = kind};
    tide_status rc = tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
    return rc == TIDE_OK ? tide_error_set(err, *status, "for reasons of its own") : rc;
}

static void assert_returned(struct fixture *f, const tide_status *says, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tide_status status = says[i];
        assert_int_equal(tide_transact(f->engine, say, &status, &f->err), status);
        assert_non_null(strstr(f->err.text, "reasons of its own"));
        assert_lives(f);
    }
    assert_int_equal(atomic_load(&f->ran), count);
}

#define CASE(name) TEST_ON(name, struct fixture *f, set_up, tear_down)

CASE(a_callback_on_a_shared_ledger_may_say_anything)
{
    static const tide_status says[] = {TIDE_NETWORK,   TIDE_BUSY,      TIDE_IO,   TIDE_CORRUPT,
                                       TIDE_DISK_FULL, TIDE_NO_MEMORY, TIDE_STALE};
    start(f, true);
    assert_returned(f, says, sizeof says / sizeof says[0]);
}

CASE(a_callback_on_a_file_may_fail_for_reasons_of_its_own)
{
    static const tide_status says[] = {TIDE_NETWORK, TIDE_BUSY, TIDE_IO, TIDE_STALE};
    start(f, false);
    assert_returned(f, says, sizeof says / sizeof says[0]);
}

/* ---- what its statements do ------------------------------------------------------------ */

static void fail_on_server(tide_transaction *transaction)
{
    PGconn *conn = tide_transaction_postgres(transaction);
    PGresult *result = PQexec(conn, "CREATE TABLE IF NOT EXISTS public.mine (id int)");
    PQclear(result);
    result = PQexec(conn, "SELECT 1 / 0");
    assert_int_equal(PQresultStatus(result), PGRES_FATAL_ERROR);
    PQclear(result);
}

static tide_status fail_silently(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)arg;
    (void)err;
    fail_on_server(transaction);
    return TIDE_OK;
}

static tide_status fail_and_enqueue(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct tide_spec spec = {.kind = *(const uint32_t *)arg};
    fail_on_server(transaction);
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

static tide_status fail_as_io(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)arg;
    fail_on_server(transaction);
    return tide_error_set(err, TIDE_IO, "my statement failed");
}

CASE(a_statement_that_fails_silently_is_undone_and_told)
{
    start(f, true);
    assert_int_equal(tide_transact(f->engine, fail_silently, NULL, &f->err), TIDE_INVALID);
    assert_lives(f);
    assert_int_equal(tide_transact(f->engine, fail_and_enqueue, &f->kind, &f->err), TIDE_INVALID);
    assert_lives(f);
    assert_int_equal(tide_transact(f->engine, fail_as_io, NULL, &f->err), TIDE_IO);
    assert_lives(f);
    assert_int_equal(atomic_load(&f->ran), 3);
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM pg_class WHERE relname = 'mine'"),
                     0);
}

/* A job whose effect does so fails; it takes no process with it, and so not one after the
 * other. */
CASE(an_effect_whose_statement_fails_silently_fails_its_job_alone)
{
    f->effect = fail_silently;
    start(f, true);
    uint64_t id = enqueue(f, f->effect_kind);
    assert_int_equal(ended(f, id), TIDE_INVALID);
    assert_lives(f);
    f->effect = fail_as_io;
    id = enqueue(f, f->effect_kind);
    assert_int_equal(ended(f, id), TIDE_IO);
    assert_lives(f);
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM pg_class WHERE relname = 'mine'"),
                     0);
}

/* ---- a clock that was wrong --------------------------------------------------------------- */

CASE(a_tick_that_fired_years_ahead_stops_no_later_start)
{
    start(f, true);
    struct tide_schedule schedule = {.name = "often", .kind = f->kind, .period_ms = 50};
    OK(tide_engine_schedule(f->engine, &schedule, &f->err));
    OK(tide_engine_close(f->engine));
    f->engine = NULL;
    (void)pg_test_exec(f->url, "UPDATE tidemark.schedule SET slot_last = 1999999999999");
    atomic_store(&f->ran, 0);
    open_engine(f, true);
    OK(tide_engine_schedule(f->engine, &schedule, &f->err));
    OK(tide_engine_start(f->engine, &f->err));
    for (int i = 0; i < 500 && atomic_load(&f->ran) < 3; i++)
        (void)usleep(20000);
    assert_true(atomic_load(&f->ran) >= 3);
}

/* ---- a right that is taken away ---------------------------------------------------------- */

CASE(a_right_that_is_missing_is_told_and_waited_for)
{
    char role[80];
    char sql[400];
    start(f, true);
    OK(tide_engine_close(f->engine));
    f->engine = NULL;
    (void)snprintf(role, sizeof role, "hostile_%ld", (long)getpid());
    (void)snprintf(sql, sizeof sql, "CREATE ROLE %s LOGIN; SELECT tidemark.grant_worker('%s')",
                   role, role);
    (void)pg_test_exec(f->url, sql);
    char *user = strstr(f->url, "user=postgres");
    assert_non_null(user);
    (void)snprintf(user, sizeof f->url - (size_t)(user - f->url), "user=%s", role);
    open_engine(f, true);
    OK(tide_engine_start(f->engine, &f->err));
    assert_lives(f);
    (void)snprintf(user, sizeof f->url - (size_t)(user - f->url), "user=postgres");
    (void)snprintf(sql, sizeof sql, "REVOKE UPDATE ON tidemark.member FROM %s", role);
    (void)pg_test_exec(f->url, sql);
    for (int i = 0; i < 500 && atomic_load(&f->denied) == 0; i++)
        (void)usleep(20000);
    assert_true(atomic_load(&f->denied) > 0);
    (void)snprintf(sql, sizeof sql, "GRANT UPDATE ON tidemark.member TO %s", role);
    (void)pg_test_exec(f->url, sql);
    assert_lives(f);
    OK(tide_engine_close(f->engine));
    f->engine = NULL;
    (void)snprintf(sql, sizeof sql, "DROP OWNED BY %s; DROP ROLE %s", role, role);
    (void)pg_test_exec(f->url, sql);
}

/* ---- times beyond all bounds --------------------------------------------------------------- */

static tide_status sleep_for_ever(tide_job *job, void *context, tide_error *err)
{
    (void)err;
    atomic_fetch_add(&((struct fixture *)context)->ran, 1);
    tide_status rc = tide_job_sleep(job, TIDE_WAIT_FOREVER);
    atomic_fetch_add(&((struct fixture *)context)->woke, 1);
    return rc;
}

static tide_status again_never(tide_job *job, void *context, tide_error *err)
{
    (void)err;
    atomic_fetch_add(&((struct fixture *)context)->ran, 1);
    return tide_job_again(job, UINT64_MAX);
}

/* now + forever does not overflow into the past. */
CASE(a_delay_or_a_sleep_for_ever_does_not_end_at_once)
{
    uint32_t kind = 0;
    uint32_t never = 0;
    uint64_t id = 0;
    open_engine(f, false);
    struct tide_kind sleeper = {.name = "sleeper", .handler = sleep_for_ever, .context = f};
    struct tide_kind again = {.name = "again", .handler = again_never, .context = f};
    OK(tide_engine_kind(f->engine, &sleeper, &kind, &f->err));
    OK(tide_engine_kind(f->engine, &again, &never, &f->err));
    OK(tide_engine_start(f->engine, &f->err));
    struct tide_spec spec = {.kind = f->kind, .delay_ms = UINT64_MAX};
    assert_int_equal(tide_enqueue(f->engine, &spec, 1, &id, &f->err), TIDE_INVALID);
    id = enqueue(f, kind);
    while (atomic_load(&f->ran) == 0)
        (void)usleep(1000);
    (void)usleep(100000); /* it would have come back by now */
    assert_int_equal(atomic_load(&f->woke), 0);
    OK(tide_cancel_job(f->engine, id, &f->err));
    assert_int_equal(ended(f, id), TIDE_CANCELED);
    atomic_store(&f->ran, 0);
    id = enqueue(f, never);
    while (atomic_load(&f->ran) == 0)
        (void)usleep(1000);
    (void)usleep(100000); /* it would have come back by now, many times */
    assert_int_equal(atomic_load(&f->ran), 1);
}

/* ---- items that cannot be told apart -------------------------------------------------------- */

/* The first time all of the job's memory is gone when its end is planned. */
static tide_status run_items(tide_job *job, void *context, tide_error *err)
{
    struct fixture *f = context;
    (void)err;
    bool first = atomic_fetch_add(&f->ran, 1) == 0;
    for (size_t bytes = 1 << 20; first && bytes > 0; bytes /= 2)
        while (tide_job_memory(job, bytes) != NULL)
            ;
    for (size_t i = 0; i < tide_job_items(job); i++) {
        if (first && i == 1)
            tide_job_item_failed(job, i, TIDE_SERVER, "not now");
        else
            tide_job_item_done(job, i);
    }
    return TIDE_OK;
}

static uint32_t open_with_items(struct fixture *f, bool shared)
{
    uint32_t kind = 0;
    struct tide_kind items = {.name = "items", .handler = run_items, .context = f, .items = true};
    if (shared)
        pg_test_create(NULL, f->url, sizeof f->url);
    open_engine(f, shared);
    OK(tide_engine_kind(f->engine, &items, &kind, &f->err));
    OK(tide_engine_start(f->engine, &f->err));
    return kind;
}

/* One that failed is tried again, though there was no memory to say so. */
CASE(no_item_is_lost_with_the_memory)
{
    uint64_t id = 0;
    struct tide_spec spec = {.kind = open_with_items(f, false),
                             .payload = "{\"items\":[\"a\",\"b\",\"c\"]}"};
    OK(tide_enqueue(f->engine, &spec, 1, &id, &f->err));
    OK(ended(f, id));
    assert_int_equal(atomic_load(&f->ran), 2);
}

/* Jobs of another program: no one checked their payloads. */
CASE(items_of_another_program_are_all_there_or_the_job_fails)
{
    static const char *const payloads[] = {
        "{}",
        "{\"items\":[]}",
        "{\"items\":[\"a\",1,\"b\"]}",
        "{\"items\":{\"0\":\"a\"}}",
        "{\"items\":[\"a\\u0000b\"]}",
    };
    (void)open_with_items(f, true);
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++) {
        char sql[200];
        (void)snprintf(sql, sizeof sql, "SELECT tidemark.add_job('items', '%s')", payloads[i]);
        uint64_t id = (uint64_t)pg_test_exec(f->url, sql);
        assert_int_equal(ended(f, id), TIDE_INVALID);
    }
    assert_int_equal(atomic_load(&f->ran), 0);
    assert_lives(f);
}

/* ---- callbacks that stand still --------------------------------------------------------------- */

static tide_status stand_still(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)transaction;
    (void)arg;
    (void)err;
    (void)usleep(6500000); /* longer than the server waits for a transaction */
    return TIDE_OK;
}

/* The server ends its transaction.  It is not retried forever, which would block all others. */
CASE(a_callback_that_stands_still_is_refused)
{
    f->effect = stand_still;
    start(f, true);
    assert_int_equal(tide_transact(f->engine, stand_still, NULL, &f->err), TIDE_TIMEOUT);
    assert_lives(f);
    uint64_t id = enqueue(f, f->effect_kind);
    tide_status rc = TIDE_TIMEOUT;
    for (int i = 0; i < 5 && rc == TIDE_TIMEOUT && f->err.text[0] != 'i'; i++) {
        f->err.text[0] = '\0';
        rc = ended(f, id);
    }
    assert_non_null(strstr(f->err.text, "its effects take more than"));
    assert_lives(f);
}

int main(void)
{
    return pg_tests_run();
}
