/* engine_test.c - opening, starting, waiting, stopping, closing, in every order;
 * kinds; what an idle engine costs. */
#include "engine_fixture.h"
#include "support/heap.h"

/* ---- orders ---------------------------------------------------------------------- */

TEST(closing_nothing_is_fine)
{
    OK(tide_engine_close(NULL));
}

OPENED(an_engine_that_never_started_closes)
{
    fixture_close(f);
    /* What was enqueued before the start is there after the next open. */
    uint64_t ran = 0;
    fixture_open(f);
    uint32_t kind = DEFINE(f, "count", count_handler, .context = &ran);
    ENQUEUE(f, .kind = kind);
    fixture_close(f);
    assert_int_equal(get(&ran), 0);
    fixture_open(f);
    DEFINE(f, "count", count_handler, .context = &ran);
    run_all(f);
    assert_int_equal(get(&ran), 1);
}

OPENED(a_stop_before_the_start_ends_it)
{
    tide_engine_stop(f->engine);
    tide_engine_stop(f->engine);
    REFUSED(tide_engine_start(f->engine, err), TIDE_INVALID);
    REFUSED(tide_engine_wait(f->engine, TIDE_WAIT_FOREVER, err), TIDE_STOPPED);
    fixture_close(f);
}

OPENED(it_starts_once)
{
    start(f);
    REFUSED(tide_engine_start(f->engine, err), TIDE_INVALID);
    finish(f);
    tide_engine_stop(f->engine);
    REFUSED(tide_engine_wait(f->engine, TIDE_WAIT_FOREVER, err), TIDE_STOPPED);
    REFUSED(tide_engine_start(f->engine, err), TIDE_INVALID);
}

CASE(it_makes_its_directory_with_those_above)
{
    char dir[128];
    (void)snprintf(dir, sizeof dir, "%s/a/b", f->dir);
    tide_engine *engine = NULL;
    OK(tide_engine_open(&(struct tide_engine_options){.state_dir = dir}, &engine, err));
    OK(tide_engine_start(engine, err)); /* its own world, settings of the environment */
    OK(tide_engine_wait(engine, TEST_WAIT_MS, err));
    OK(tide_engine_close(engine));
    char command[160];
    for (const char *const *name =
             (const char *const[]){"a/b/state.db", "a/b/engine.lock", "a/b", "a", NULL};
         *name != NULL; name++) {
        (void)snprintf(command, sizeof command, "%s/%s", f->dir, *name);
        (void)remove(command);
    }
    assert_int_not_equal(access(dir, F_OK), 0);
}

OPENED(a_second_engine_is_told_who_was_first)
{
    const char *me = textf("process %ld", (long)getpid());
    tide_error told = {TIDE_OK, 0, ""};
    tide_engine *second = NULL;
    struct tide_engine_options options = {.state_dir = f->dir, .settings = f->settings};
    assert_int_equal(tide_engine_open(&options, &second, &told), TIDE_BUSY);
    assert_null(second);
    assert_non_null(strstr(told.text, me));
    assert_non_null(strstr(told.text, f->dir));
    fixture_close(f);
    OK(tide_engine_open(&options, &second, err));
    OK(tide_engine_close(second));
}

CASE(a_directory_that_cannot_be_is_refused)
{
    tide_engine *engine = NULL;
    REFUSED(tide_engine_open(&(struct tide_engine_options){.state_dir = NULL}, &engine, err),
            TIDE_INVALID);
    struct tide_engine_options options = {.state_dir = "/dev/null/state", .world = f->world};
    tide_error told = {TIDE_OK, 0, ""};
    assert_int_not_equal(tide_engine_open(&options, &engine, &told), TIDE_OK);
    assert_string_not_equal(told.text, "");
    options = (struct tide_engine_options){.state_dir = f->dir, .workers = 65};
    REFUSED(tide_engine_open(&options, &engine, err), TIDE_INVALID);
    assert_null(engine);
}

CASE(a_file_that_is_no_ledger_is_left_alone)
{
    const char *path = textf("%s/state.db", f->dir);
    static const char text[] = "dear diary, this is not a database, it only lies in its place.";
    OK(tide_file_replace(f->world, path, TIDE_TEXT(text), 0600, err));
    fixture_settings(f, NULL);
    REFUSED(fixture_try_open(f, err), TIDE_INVALID);
    tide_buf read = heap_buf(4096);
    OK(tide_file_read(f->world, path, 4096, &read, err));
    assert_int_equal(read.bytes, sizeof text - 1);
    assert_memory_equal(read.data, text, sizeof text - 1);
    tide_buf_done(&read);
}

/* ---- stopping and going on ----------------------------------------------------------- */

OPENED(a_stop_lets_a_running_job_end)
{
    struct gate gate = {0};
    uint32_t kind = DEFINE(f, "gate", gate_handler, .context = &gate);
    uint64_t id = ENQUEUE(f, .kind = kind);
    start(f);
    UNTIL(get(&gate.arrived) == 1);
    tide_engine_stop(f->engine);
    gate_open(&gate);
    fixture_close(f);
    fixture_open(f);
    assert_int_equal(row_state(f, id), 2);
}

CASE(a_stop_cancels_what_outlives_the_grace_and_the_next_start_continues)
{
    struct gate gate = {0};
    fixture_settings(f, "workers.stop_grace=50ms");
    fixture_open(f);
    struct tide_kind kind = {"gate", gate_handler, .context = &gate};
    uint32_t id = define(f, &kind);
    for (int i = 0; i < 100; i++)
        ENQUEUE(f, .kind = id);
    start(f);
    UNTIL(get(&gate.arrived) >= 2);
    uint64_t before_ms = test_now_ms();
    fixture_close(f); /* the handlers would wait forever */
    assert_true(test_now_ms() - before_ms >= 40);
    fixture_open(f);
    /* No job ended, none is lost, and none lost an attempt (E7.2, E7.4). */
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 0"), 100);
    assert_int_equal(sql(f, "SELECT sum(attempts) FROM job"), 0);
    assert_int_equal(sql(f, "SELECT count(*) FROM claim"), 0);
    id = define(f, &kind);
    gate_open(&gate);
    run_all(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 2"), 100);
}

static tide_status quick_handler(tide_job *job, void *context, tide_error *err)
{
    (void)err;
    (void)add(&((uint64_t *)context)[tide_job_id(job) % 1000], 1);
    return TIDE_OK;
}

CASE(a_thousand_starts_and_stops_run_every_job_once)
{
    static uint64_t ran[1000];
    memset(ran, 0, sizeof ran);
    size_t rounds = scaled(250);
    fixture_settings(f, NULL);
    f->workers = 4;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    size_t enqueued = 0;
    for (size_t round = 0; round < rounds; round++) {
        fixture_open(f);
        uint32_t kind = DEFINE(f, "quick", quick_handler, .context = ran);
        unsigned jobs = (unsigned)rand_r(&seed) % 8;
        for (unsigned i = 0; i < jobs && enqueued < 900; i++, enqueued++)
            ENQUEUE(f, .kind = kind);
        if (rand_r(&seed) % 8 != 0)
            start(f);
        if (rand_r(&seed) % 4 == 0 && round > 0)
            (void)tide_engine_wait(f->engine, (uint64_t)rand_r(&seed) % 3, NULL);
        if (rand_r(&seed) % 2 == 0)
            tide_engine_stop(f->engine);
        fixture_close(f);
    }
    fixture_open(f);
    DEFINE(f, "quick", quick_handler, .context = ran);
    run_all(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 2"), enqueued);
    for (size_t i = 0; i < 1000; i++)
        assert_true(get(&ran[i]) <= 1);
}

struct caller {
    struct fixture *f;
    uint32_t kind;
    uint64_t taken;
};

static void *call_until_stopped(void *arg)
{
    struct caller *caller = arg;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK) {
        rc = tide_enqueue(caller->f->engine, &(struct tide_spec){.kind = caller->kind}, 1, NULL,
                          NULL);
        if (rc == TIDE_OK)
            (void)add(&caller->taken, 1);
        struct tide_progress seen;
        tide_engine_progress(caller->f->engine, &seen);
    }
    return rc == TIDE_STOPPED ? NULL : caller;
}

OPENED(callers_learn_that_it_stopped_and_what_they_were_told_is_kept)
{
    uint64_t ran = 0;
    struct tide_kind kind = {"count", count_handler, .context = &ran};
    struct caller caller = {.f = f, .kind = define(f, &kind)};
    start(f);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_until_stopped, &caller), 0);
    UNTIL(get(&ran) > 50);
    tide_engine_stop(f->engine);
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    fixture_close(f);
    fixture_open(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job"), get(&caller.taken));
    define(f, &kind);
    run_all(f);
    assert_int_equal(get(&ran), get(&caller.taken));
}

/* ---- waiting -------------------------------------------------------------------------- */

OPENED(a_wait_ends_in_time_when_there_is_work)
{
    struct gate gate = {0};
    uint32_t kind = DEFINE(f, "gate", gate_handler, .context = &gate);
    ENQUEUE(f, .kind = kind);
    start(f);
    REFUSED(tide_engine_wait(f->engine, 20, err), TIDE_TIMEOUT);
    REFUSED(tide_engine_wait(f->engine, 0, err), TIDE_TIMEOUT);
    gate_open(&gate);
    finish(f);
    OK(tide_engine_wait(f->engine, 0, err)); /* nothing to wait for */
}

OPENED(a_delayed_job_is_waited_for_and_a_job_of_an_unknown_kind_is_not)
{
    uint64_t ran = 0;
    uint32_t other = DEFINE(f, "other", count_handler, .context = &ran);
    ENQUEUE(f, .kind = other);
    fixture_close(f);
    fixture_open(f);
    uint32_t kind = DEFINE(f, "count", count_handler, .context = &ran);
    uint64_t before_ms = test_now_ms();
    ENQUEUE(f, .kind = kind, .delay_ms = 150);
    run_all(f);
    assert_true(test_now_ms() - before_ms >= 140);
    assert_int_equal(get(&ran), 1);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 0"), 1);
}

/* ---- kinds ------------------------------------------------------------------------------ */

OPENED(kinds_are_checked)
{
    uint64_t ran = 0;
    uint32_t id = 0;
    static char long_name[TIDE_NAME_BYTES_MAX + 2];
    memset(long_name, 'k', sizeof long_name - 1);
    struct tide_kind kind = {"count", count_handler, .context = &ran};
    struct tide_kind wrong[] = {{.handler = count_handler},
                                {.name = "", .handler = count_handler},
                                {.name = long_name, .handler = count_handler},
                                {.name = "no handler"},
                                {.name = "high", .handler = count_handler, .priority = 101},
                                {.name = "level", .handler = count_handler, .level = 5}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        REFUSED(tide_engine_kind(f->engine, &wrong[i], &id, err), TIDE_INVALID);
    assert_int_equal(id, 0);
    uint32_t first = define(f, &kind);
    REFUSED(tide_engine_kind(f->engine, &kind, &id, err), TIDE_EXISTS);
    long_name[TIDE_NAME_BYTES_MAX] = '\0';
    kind.name = long_name;
    assert_int_not_equal(define(f, &kind), first);
    kind.name = "late";
    start(f);
    REFUSED(tide_engine_kind(f->engine, &kind, &id, err), TIDE_INVALID);
    fixture_close(f);
    fixture_open(f);
    kind.name = "count";
    assert_int_equal(define(f, &kind), first); /* stored, hence stable */
}

OPENED(there_is_a_ceiling_for_kinds)
{
    char name[32];
    tide_status rc = TIDE_OK;
    int count = 0;
    for (; count < TIDE_KINDS_MAX + 1 && rc == TIDE_OK; count++) {
        (void)snprintf(name, sizeof name, "kind %d", count);
        rc = tide_engine_kind(
            f->engine, &(struct tide_kind){.name = name, .handler = count_handler}, NULL, NULL);
    }
    assert_int_equal(rc, TIDE_FULL);
    assert_true(count >= TIDE_KINDS_MAX - 2); /* the engine has a few of its own */
}

/* ---- idle --------------------------------------------------------------------------------- */

static double cpu_s(void)
{
    struct rusage use;
    (void)getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

/* E2.4: workers block, no SQL, less than 1 % of a processor.  Measured over a
 * second, with an account, a stream, and a job that is not due for a day. */
OPENED(an_idle_engine_costs_nothing)
{
    uint64_t ran = 0;
    uint32_t kind = DEFINE(f, "count", count_handler, .context = &ran);
    uint32_t account = new_account(f, "a@example.org", "gmail");
    start(f);
    for (int i = 0; i < 20; i++)
        ENQUEUE(f, .kind = kind, .account = account);
    UNTIL(get(&ran) == 20);
    ENQUEUE(f, .kind = kind, .delay_ms = 86400000);
    UNTIL(progress(f).idle);
    /* The governor's spending is saved once more after the last job, so the first seconds
     * may be busy, on a loaded machine more of them.  An engine that polls or writes by the
     * clock has no two quiet seconds in a row at all. */
    int quiet_s = 0;
    for (int second = 0; second < 20 && quiet_s < 2; second++) {
        const uint64_t writes = progress(f).ledger_writes;
        const double before_s = cpu_s();
        (void)nanosleep(&(struct timespec){1, 0}, NULL);
        const double used_s = cpu_s() - before_s;
        print_message("a second: %.2f ms of processor time\n", used_s * 1000);
        quiet_s = used_s < 0.01 && progress(f).ledger_writes == writes ? quiet_s + 1 : 0;
    }
    assert_int_equal(quiet_s, 2);
    assert_true(progress(f).idle);
}
