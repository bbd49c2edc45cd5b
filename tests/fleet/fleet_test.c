/* Goal: several engines on one shared ledger are one: each job runs once, each account
 * has one holder, each tick of a schedule fires once, and a command to one reaches all.
 * Method: two engines in this process, each with a state directory of its own, on a
 * fresh database.  They look often; the lease is so long that no process is declared dead
 * because the machine is busy. */
#include "base/check.h"
#include "settings/settings.h"
#include "support/pg_test.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "tidemark.h"
#include "world/real.h"

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
            (void)fprintf(stderr, "%s: %s\n", #call, f->err.text);                                 \
        assert_int_equal(ok_rc, TIDE_OK);                                                          \
    } while (0)

struct fixture;

/* One process of the fleet, as far as one address space can have two. */
struct process {
    struct fixture *f;
    tide_engine *engine;
    uint32_t kind;
    uint32_t slow;
    atomic_uint ran;
    atomic_uint canceled;
    char dir[80];
    atomic_bool deaf;  /* takes no account */
    const char *alone; /* takes only the account of this name; NULL: any */
    /* A kind that no other process runs; NULL: the two of all. */
    const char *only;
    atomic_bool forever; /* each job of that kind makes the next */
};

struct fixture {
    char url[PG_TEST_URL_BYTES];
    char dir[64];
    struct process p[2];
    tide_error err;
};

static tide_status count_run(tide_job *job, void *context, tide_error *err)
{
    (void)job;
    (void)err;
    struct process *process = context;
    atomic_fetch_add(&process->ran, 1);
    return TIDE_OK;
}

/* While `forever` is set, each job enqueues the next of its kind. */
static tide_status run_only(tide_job *job, void *context, tide_error *err)
{
    struct process *process = context;
    atomic_fetch_add(&process->ran, 1);
    struct tide_spec next = {.kind = process->kind};
    return atomic_load(&process->forever) ? tide_job_enqueue(job, &next, err) : TIDE_OK;
}

/* Runs until it is ended. */
static tide_status run_long(tide_job *job, void *context, tide_error *err)
{
    (void)err;
    struct process *process = context;
    atomic_fetch_add(&process->ran, 1);
    tide_status rc = tide_job_sleep(job, 60000);
    if (rc == TIDE_CANCELED)
        atomic_fetch_add(&process->canceled, 1);
    return rc;
}

static bool takes(void *arg, const char *account, const char *provider, const char *archive)
{
    const struct process *process = arg;
    (void)provider;
    (void)archive;
    return !atomic_load(&process->deaf) &&
           (process->alone == NULL || strcmp(process->alone, account) == 0);
}

static void open_process(struct fixture *f, int which)
{
    struct process *process = &f->p[which];
    process->f = f;
    (void)snprintf(process->dir, sizeof process->dir, "%s/%d", f->dir, which);
    struct tide_engine_options options = {.state_dir = process->dir,
                                          .ledger = f->url,
                                          .workers = 4,
                                          .may_take = takes,
                                          .may_take_arg = process};
    OK(tide_engine_open(&options, &process->engine, &f->err));
    if (process->only != NULL) {
        struct tide_kind only = {.name = process->only, .handler = run_only, .context = process};
        OK(tide_engine_kind(process->engine, &only, &process->kind, &f->err));
        return;
    }
    struct tide_kind quick = {.name = "quick", .handler = count_run, .context = process};
    struct tide_kind slow = {.name = "slow", .handler = run_long, .context = process};
    OK(tide_engine_kind(process->engine, &quick, &process->kind, &f->err));
    OK(tide_engine_kind(process->engine, &slow, &process->slow, &f->err));
}

static void start(struct fixture *f, int which)
{
    OK(tide_engine_start(f->p[which].engine, &f->err));
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    (void)setenv("TIDEMARK_FLEET_LEASE", "2m", 1);
    (void)setenv("TIDEMARK_FLEET_LOOK", "300ms", 1);
    (void)unsetenv("TIDEMARK_FLEET_POLL");
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tide-fleet-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    pg_test_create(NULL, f->url, sizeof f->url);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++)
        (void)tide_engine_close(f->p[i].engine);
    pg_test_drop(f->url);
    assert_int_equal(temp_dir_remove(f->dir), 0);
    free(f);
    return 0;
}

enum { UNTIL_TRIES = 800, UNTIL_PAUSE_US = 50000 }; /* 40 s and more */

/* Until a question to the database has that answer. */
static void until(struct fixture *f, const char *sql, long long expected)
{
    long long value = -1;
    for (int i = 0; i < UNTIL_TRIES && value != expected; i++) {
        value = pg_test_exec(f->url, sql);
        if (value != expected)
            (void)usleep(UNTIL_PAUSE_US);
    }
    if (value != expected)
        (void)fprintf(stderr, "%s: %lld, not %lld\n", sql, value, expected);
    assert_true(value == expected);
}

static void until_ran(struct fixture *f, unsigned expected)
{
    for (int i = 0;
         i < UNTIL_TRIES && atomic_load(&f->p[0].ran) + atomic_load(&f->p[1].ran) < expected; i++)
        (void)usleep(UNTIL_PAUSE_US);
    assert_int_equal(atomic_load(&f->p[0].ran) + atomic_load(&f->p[1].ran), expected);
}

static void enqueue(struct fixture *f, int which, uint32_t kind, uint32_t account, size_t count,
                    uint64_t *ids_out)
{
    struct tide_spec *specs = calloc(count, sizeof *specs);
    for (size_t i = 0; i < count; i++)
        specs[i] = (struct tide_spec){.kind = kind, .account = account};
    OK(tide_enqueue(f->p[which].engine, specs, count, ids_out, &f->err));
    free(specs);
}

/* ---- jobs of no account ------------------------------------------------------------- */

#define CASE(name) TEST_ON(name, struct fixture *f, set_up, tear_down)

CASE(jobs_of_no_account_run_once_in_either_process)
{
    open_process(f, 0);
    open_process(f, 1);
    enqueue(f, 0, f->p[0].kind, 0, 3000, NULL);
    start(f, 0);
    start(f, 1);
    OK(tide_engine_wait(f->p[0].engine, 30000, &f->err));
    OK(tide_engine_wait(f->p[1].engine, 30000, &f->err));
    until(f, "SELECT count(*) FROM tidemark.job", 0);
    until(f,
          "SELECT count(*) FROM tidemark.job_done WHERE kind = (SELECT id FROM tidemark.kind"
          " WHERE name = 'quick')",
          3000);
    assert_int_equal(atomic_load(&f->p[0].ran) + atomic_load(&f->p[1].ran), 3000);
}

/* A look would find the job in four minutes, a poll in one: what runs it before the test
 * gives up is the hint. */
CASE(a_hint_wakes_another_process)
{
    (void)setenv("TIDEMARK_FLEET_LEASE", "10m", 1);
    (void)setenv("TIDEMARK_FLEET_LOOK", "4m", 1);
    (void)setenv("TIDEMARK_FLEET_POLL", "1m", 1);
    open_process(f, 0);
    open_process(f, 1);
    start(f, 1); /* the first only enqueues */
    OK(tide_engine_wait(f->p[1].engine, 30000, &f->err));
    enqueue(f, 0, f->p[0].kind, 0, 1, NULL);
    until_ran(f, 1);
    assert_int_equal(atomic_load(&f->p[1].ran), 1);
}

/* ---- accounts -------------------------------------------------------------------------- */

static const char held[] = "SELECT count(*) FROM tidemark.account a JOIN tidemark.member m"
                           " ON m.owner = a.owner AND NOT m.dead";

CASE(an_account_has_one_holder_and_a_clean_end_gives_it_up)
{
    uint32_t account = 0;
    open_process(f, 0);
    open_process(f, 1);
    OK(tide_engine_account(f->p[0].engine, "ada", NULL, &account, &f->err));
    OK(tide_engine_account(f->p[1].engine, "ada", NULL, &account, &f->err));
    atomic_store(&f->p[1].deaf, true);
    start(f, 0);
    start(f, 1);
    enqueue(f, 1, f->p[1].kind, account, 50, NULL);
    until_ran(f, 50);
    assert_int_equal(atomic_load(&f->p[1].ran), 0);
    until(f, held, 1);
    OK(tide_engine_close(f->p[0].engine));
    f->p[0].engine = NULL;
    until(f, held, 0);
    atomic_store(&f->p[1].deaf, false);
    enqueue(f, 1, f->p[1].kind, account, 50, NULL);
    until_ran(f, 100);
    assert_int_equal(atomic_load(&f->p[1].ran), 50);
}

/* Only a process that made the quota knows what the account may use. */
/* A job waits in the window of one process for a job of an account that the other one has: its end there must
 * be noticed here. */
CASE(what_a_job_needed_may_end_in_another_process)
{
    uint32_t ada = 0, model = 0;
    const uint32_t first = 0;
    f->p[0].alone = "ada";
    f->p[1].alone = "model";
    for (int i = 0; i < 2; i++) {
        open_process(f, i);
        OK(tide_engine_account(f->p[i].engine, "ada", NULL, &ada, &f->err));
        OK(tide_engine_account(f->p[i].engine, "model", NULL, &model, &f->err));
    }
    start(f, 0);
    start(f, 1);
    enqueue(f, 0, f->p[0].kind, ada, 1, NULL);
    enqueue(f, 0, f->p[0].kind, model, 1, NULL);
    until_ran(f, 2); /* both accounts have their holders */
    const struct tide_spec specs[2] = {
        {.kind = f->p[0].kind, .account = model, .delay_ms = 1000},
        {.kind = f->p[0].kind, .account = ada, .needs_index = &first, .needs_index_count = 1}};
    OK(tide_enqueue(f->p[0].engine, specs, 2, NULL, &f->err));
    until_ran(f, 4);
    assert_int_equal(atomic_load(&f->p[0].ran), 2);
}

CASE(an_account_of_an_unknown_quota_is_left_to_others)
{
    const struct tide_quota quota = {.name = "weather"};
    uint32_t plain = 0, quoted = 0;
    open_process(f, 0);
    open_process(f, 1);
    OK(tide_engine_quota(f->p[1].engine, &quota, &f->err));
    OK(tide_engine_account(f->p[1].engine, "quoted", "weather", &quoted, &f->err));
    OK(tide_engine_account(f->p[1].engine, "plain", NULL, &plain, &f->err));
    enqueue(f, 1, f->p[1].kind, quoted, 1, NULL);
    enqueue(f, 1, f->p[1].kind, plain, 1, NULL);
    start(f, 0);
    until_ran(f, 1);
    OK(tide_engine_wait(f->p[0].engine, 30000, &f->err));
    assert_int_equal(atomic_load(&f->p[0].ran), 1);
    start(f, 1);
    until_ran(f, 2);
    assert_int_equal(atomic_load(&f->p[1].ran), 1);
}

/* The first is declared dead while its jobs run: they run in the second, and what the first
 * still says about them changes nothing (E1.8). */
CASE(a_member_that_was_declared_dead_starts_anew)
{
    uint32_t account = 0;
    open_process(f, 0);
    OK(tide_engine_account(f->p[0].engine, "ada", NULL, &account, &f->err));
    enqueue(f, 0, f->p[0].slow, account, 1, NULL);
    enqueue(f, 0, f->p[0].slow, 0, 2, NULL);
    start(f, 0);
    until_ran(f, 3);
    (void)pg_test_exec(f->url, "UPDATE tidemark.member SET dead = true");
    /* It lost all three, joins again, buries itself, and has them again. */
    until_ran(f, 6);
    assert_int_equal(atomic_load(&f->p[0].canceled), 3);
    until(f, "SELECT count(*) FROM tidemark.job WHERE state = 1", 3);
    until(f, "SELECT count(*) FROM tidemark.member WHERE NOT dead", 1);
    until(f,
          "SELECT count(*) FROM tidemark.job j JOIN tidemark.member m ON m.owner = j.owner"
          " WHERE m.dead",
          0);
}

/* An offer lasts as long as the time between two looks of the one that makes it, and one that no
 * process takes is repeated after two leases: the poor one looks ten times during an offer. */
CASE(accounts_are_shared_out)
{
    (void)setenv("TIDEMARK_FLEET_LEASE", "30s", 1);
    (void)setenv("TIDEMARK_FLEET_LOOK", "2s", 1);
    open_process(f, 0);
    (void)setenv("TIDEMARK_FLEET_LOOK", "200ms", 1);
    open_process(f, 1);
    uint32_t accounts[8] = {0};
    for (int i = 0; i < 8; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "account-%d", i);
        OK(tide_engine_account(f->p[0].engine, name, NULL, &accounts[i], &f->err));
        enqueue(f, 0, f->p[0].slow, accounts[i], 1, NULL);
    }
    start(f, 0);
    until(f, held, 8);
    start(f, 1);
    /* The poor one is given some, as soon as what runs there has ended. */
    OK(tide_cancel_kind(f->p[0].engine, "slow", &f->err));
    /* An account is only taken for work, so there has to be some while they are shared out. */
    static const char poorest[] =
        "SELECT min(n) FROM (SELECT count(a.id) AS n FROM tidemark.member m"
        " LEFT JOIN tidemark.account a ON a.owner = m.owner WHERE NOT m.dead GROUP BY m.owner) c";
    for (int round = 0; round < 1500 && pg_test_exec(f->url, poorest) < 3; round++) {
        for (int i = 0; i < 8; i++)
            enqueue(f, 0, f->p[0].kind, accounts[i], 20, NULL);
        (void)usleep(100000);
    }
    assert_true(pg_test_exec(f->url, poorest) >= 3);
    until(f, "SELECT count(*) FROM tidemark.job WHERE state < 2", 0);
}

/* ---- kinds that different processes run ---------------------------------------------------- */

static uint32_t open_with_kinds(struct fixture *f)
{
    uint32_t account = 0;
    f->p[0].only = "hammer";
    f->p[1].only = "saw";
    for (int i = 0; i < 2; i++) {
        open_process(f, i);
        OK(tide_engine_account(f->p[i].engine, "ada", NULL, &account, &f->err));
    }
    return account;
}

static void until_one_ran(struct fixture *f, int which, unsigned least)
{
    for (int i = 0; i < UNTIL_TRIES && atomic_load(&f->p[which].ran) < least; i++)
        (void)usleep(UNTIL_PAUSE_US);
    assert_true(atomic_load(&f->p[which].ran) >= least);
}

CASE(an_account_with_work_of_other_kinds_is_left_to_others)
{
    uint32_t account = open_with_kinds(f);
    uint32_t later = 0;
    OK(tide_engine_account(f->p[0].engine, "bob", NULL, &later, &f->err));
    enqueue(f, 1, f->p[1].kind, account, 20, NULL);
    start(f, 0);
    OK(tide_engine_wait(f->p[0].engine, 20000, &f->err));
    /* It has looked, and looks again for this one. */
    enqueue(f, 0, f->p[0].kind, later, 1, NULL);
    until_one_ran(f, 0, 1);
    until(f, held, 1);
    until(f, "SELECT count(*) FROM tidemark.account WHERE name = 'ada' AND owner IS NULL", 1);
    start(f, 1);
    until_one_ran(f, 1, 20);
    assert_int_equal(atomic_load(&f->p[0].ran), 1);
}

CASE(an_account_moves_to_the_process_that_runs_what_is_left)
{
    uint32_t account = open_with_kinds(f);
    start(f, 0);
    start(f, 1);
    for (unsigned round = 1; round <= 3; round++) {
        enqueue(f, 0, f->p[0].kind, account, 30, NULL);
        enqueue(f, 1, f->p[1].kind, account, 30, NULL);
        until_one_ran(f, 0, 30 * round);
        until_one_ran(f, 1, 30 * round);
        until(f, "SELECT count(*) FROM tidemark.job WHERE state < 2", 0);
    }
    assert_int_equal(atomic_load(&f->p[0].ran) + atomic_load(&f->p[1].ran), 180);
}

/* An account with work of ours is offered to the others after two leases.  The tests of
 * that need a short one; being declared dead in between does them no harm. */
static void short_lease(void)
{
    (void)setenv("TIDEMARK_FLEET_LEASE", "2s", 1);
}

/* Neither starves, although both always have something to do. */
CASE(an_account_is_not_kept_from_others_by_work_without_end)
{
    short_lease();
    uint32_t account = open_with_kinds(f);
    for (int i = 0; i < 2; i++) {
        atomic_store(&f->p[i].forever, true);
        start(f, i);
        enqueue(f, i, f->p[i].kind, account, 1, NULL);
    }
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 2; i++)
            until_one_ran(f, i, atomic_load(&f->p[i].ran) + 1);
    for (int i = 0; i < 2; i++)
        atomic_store(&f->p[i].forever, false);
    until(f, "SELECT count(*) FROM tidemark.job WHERE state < 2", 0);
}

/* The other process lives but may not hold the account: the first one continues. */
CASE(an_offer_that_no_process_wants_is_taken_back)
{
    short_lease();
    uint32_t account = open_with_kinds(f);
    atomic_store(&f->p[1].deaf, true);
    atomic_store(&f->p[0].forever, true);
    start(f, 0);
    start(f, 1);
    enqueue(f, 1, f->p[1].kind, account, 1, NULL);
    enqueue(f, 0, f->p[0].kind, account, 1, NULL);
    until_one_ran(f, 0, 1);
    (void)pg_test_exec(f->url, "CREATE TABLE given_up (account int)");
    (void)pg_test_exec(f->url, "CREATE FUNCTION note_it() RETURNS trigger LANGUAGE plpgsql AS"
                               " $$BEGIN INSERT INTO given_up VALUES (new.id); RETURN new; END$$");
    (void)pg_test_exec(f->url, "CREATE TRIGGER note_it AFTER UPDATE ON tidemark.account"
                               " FOR EACH ROW WHEN (old.owner IS NOT NULL AND new.owner IS NULL)"
                               " EXECUTE FUNCTION note_it()");
    until(f, "SELECT (count(*) > 0)::int FROM given_up", 1);
    until_one_ran(f, 0, atomic_load(&f->p[0].ran) + 1);
    until(f, held, 1);
    atomic_store(&f->p[0].forever, false);
    OK(tide_engine_wait(f->p[0].engine, 20000, &f->err));
    until(f, "SELECT count(*) FROM tidemark.job WHERE state < 2", 1);
    atomic_store(&f->p[1].deaf, false);
    until_one_ran(f, 1, 1);
}

/* ---- commands reach all processes ------------------------------------------------------------- */

CASE(a_cancel_reaches_a_job_of_another_process)
{
    uint64_t id = 0;
    open_process(f, 0);
    open_process(f, 1);
    start(f, 1);
    enqueue(f, 0, f->p[0].slow, 0, 1, &id);
    until_ran(f, 1);
    OK(tide_cancel_job(f->p[0].engine, id, &f->err));
    until(f, "SELECT count(*) FROM tidemark.job WHERE state = 4", 1);
    assert_int_equal(atomic_load(&f->p[1].canceled), 1);
}

CASE(a_halt_reaches_the_holder_of_the_account)
{
    uint32_t account = 0;
    open_process(f, 0);
    open_process(f, 1);
    OK(tide_engine_account(f->p[0].engine, "ada", NULL, &account, &f->err));
    start(f, 1);
    enqueue(f, 0, f->p[0].slow, account, 1, NULL);
    until_ran(f, 1);
    OK(tide_engine_halt(f->p[0].engine, account, "by a person", &f->err));
    until(f, "SELECT count(*) FROM tidemark.job WHERE state = 0", 1);
    assert_int_equal(atomic_load(&f->p[1].canceled), 1);
    OK(tide_engine_resume(f->p[0].engine, account, &f->err));
    until_ran(f, 2);
}

/* ---- looking ------------------------------------------------------------------------------- */

static bool shows(struct fixture *f, int which, const char *text)
{
    tide_buf json;
    tide_buf_init(&json, tide_mem_heap(), 1 << 20);
    OK(tide_engine_snapshot(f->p[which].engine, &json, &f->err));
    bool found = strstr(tide_buf_cstr(&json), text) != NULL;
    tide_buf_done(&json);
    return found;
}

static void until_shows(struct fixture *f, int which, const char *text)
{
    for (int i = 0; i < UNTIL_TRIES && !shows(f, which, text); i++)
        (void)usleep(UNTIL_PAUSE_US);
    assert_true(shows(f, which, text));
}

/* ---- schedules, batches, streams ------------------------------------------------------------ */

CASE(a_schedule_fires_once_for_a_tick_on_two_machines)
{
    for (int i = 0; i < 2; i++) {
        open_process(f, i);
        struct tide_schedule schedule = {.name = "tick", .kind = f->p[i].kind, .period_ms = 500};
        OK(tide_engine_schedule(f->p[i].engine, &schedule, &f->err));
    }
    start(f, 0);
    start(f, 1);
    until(f,
          "SELECT (count(*) >= 6)::int FROM tidemark.job_done d JOIN tidemark.kind k"
          " ON k.id = d.kind WHERE k.name = 'quick'",
          1);
    /* As many as ticks have passed: not one more.  The first may be late, by less than a period: later it
     * is left to the next tick. */
    assert_int_equal(
        pg_test_exec(f->url,
                     "SELECT (count(*) <= (max(d.created) - min(d.created)) / 500.0 + 2)::int"
                     " FROM tidemark.job_done d JOIN tidemark.kind k ON k.id = d.kind"
                     " WHERE k.name = 'quick'"),
        1);
}

CASE(an_enqueue_with_a_name_happens_once)
{
    open_process(f, 0);
    open_process(f, 1);
    struct tide_spec specs[3] = {
        {.kind = f->p[0].kind}, {.kind = f->p[0].kind}, {.kind = f->p[0].kind}};
    uint64_t first[3];
    uint64_t second[3];
    OK(tide_enqueue_once(f->p[0].engine, "order 7", specs, 3, first, &f->err));
    OK(tide_enqueue_once(f->p[1].engine, "order 7", specs, 3, second, &f->err));
    assert_memory_equal(first, second, sizeof first);
    assert_int_equal(tide_enqueue_once(f->p[1].engine, "order 7", specs, 2, second, &f->err),
                     TIDE_INVALID);
    until(f, "SELECT count(*) FROM tidemark.job", 3);
}

CASE(a_cursor_moves_over_cycles_that_two_processes_finish)
{
    uint64_t stream = 0;
    open_process(f, 0);
    open_process(f, 1);
    OK(tide_stream_open(f->p[0].engine, 0, "days", NULL, &stream, &f->err));
    struct tide_spec specs[40];
    for (int i = 0; i < 40; i++)
        specs[i] = (struct tide_spec){.kind = f->p[0].kind};
    for (int day = 0; day < 25; day++) {
        char end[16];
        (void)snprintf(end, sizeof end, "day %d", day + 1);
        /* An empty one is finished at once. */
        OK(tide_cycle_open(f->p[day % 2].engine, stream, NULL, end, specs, day % 5 == 4 ? 0 : 40,
                           NULL, &f->err));
    }
    start(f, 0);
    start(f, 1);
    until(f, "SELECT ordinal FROM tidemark.stream", 25);
    struct tide_stream_state at;
    OK(tide_stream_state(f->p[1].engine, stream, &at, &f->err));
    assert_string_equal(at.cursor, "day 25");
}

/* A watcher of a process sees the streams of what it holds, as the ledger has them,
 * no matter which process finishes their cycles. */
CASE(streams_show_in_a_snapshot)
{
    uint64_t streams[2] = {0};
    uint32_t account = 0;
    open_process(f, 0);
    open_process(f, 1);
    f->p[0].deaf = true;
    OK(tide_engine_account(f->p[1].engine, "ada", NULL, &account, &f->err));
    OK(tide_stream_open(f->p[1].engine, 0, "days", NULL, &streams[0], &f->err));
    OK(tide_stream_open(f->p[1].engine, account, "nights", NULL, &streams[1], &f->err));
    struct tide_spec quick = {.kind = f->p[1].kind};
    struct tide_spec slow = {.kind = f->p[1].slow, .account = account};
    OK(tide_cycle_open(f->p[1].engine, streams[0], "a", "b", &quick, 1, NULL, &f->err));
    OK(tide_cycle_open(f->p[1].engine, streams[1], "c", "d", &slow, 1, NULL, &f->err));
    start(f, 0);
    start(f, 1);
    until(f, "SELECT sum(ordinal) FROM tidemark.stream", 1);
    until(f, "SELECT count(*) FROM tidemark.job WHERE state = 1", 1);
    until_shows(f, 0, "\"tidemark\":\"b\",\"cycles_finished\":1,\"cycles_open\":0");
    until_shows(f, 1, "\"name\":\"days\"");
    until_shows(f, 1,
                "\"ordinal\":0,\"start\":\"c\",\"end\":\"d\",\"total\":1,"
                "\"outstanding\":1,\"failed\":0,\"bad\":0,\"done\":0");
    assert_false(shows(f, 0, "nights")); /* it does not hold the account */
    OK(tide_cancel_kind(f->p[1].engine, "slow", &f->err));
    until_shows(f, 1, "\"outstanding\":0,\"failed\":1");
}

/* The process that finished its last cycle died before it could move the cursor; and very many others
 * are unfinished. */
CASE(a_cursor_that_was_left_behind_is_moved_however_many_there_are)
{
    open_process(f, 0);
    (void)pg_test_exec(f->url, "INSERT INTO tidemark.stream (account, name, ordinal_next)"
                               " SELECT 0, 'days ' || i, 1 FROM generate_series(1, 200) i");
    (void)pg_test_exec(f->url,
                       "INSERT INTO tidemark.cycle (stream, ordinal, start, \"end\", opened, total,"
                       " outstanding) SELECT id, 0, 'a', 'b', 1, 1, (name <> 'days 200')::int"
                       " FROM tidemark.stream");
    start(f, 0);
    until(f, "SELECT ordinal FROM tidemark.stream WHERE name = 'days 200'", 1);
    until(f, "SELECT sum(ordinal) FROM tidemark.stream", 1);
}

/* More accounts than a process can hold: each continues with what it has, and keeps its lease. */
CASE(too_many_accounts_take_no_lease_away)
{
    open_process(f, 0);
    (void)pg_test_exec(f->url,
                       "INSERT INTO tidemark.account (name, provider)"
                       " SELECT 'account ' || i, 'default' FROM generate_series(1, 4200) i");
    start(f, 0);
    /* Looks renew the lease in their own transaction: one that fails leaves it where it was. */
    const long long lease = pg_test_exec(f->url, "SELECT max(until) FROM tidemark.member");
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT (max(until) > %lld)::int FROM tidemark.member", lease);
    until(f, sql, 1);
    enqueue(f, 0, f->p[0].kind, 0, 3, NULL);
    until_ran(f, 3);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return pg_tests_run();
}
