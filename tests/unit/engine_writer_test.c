/* engine_writer_test.c - what one transaction of the writer holds together, and what becomes
 * of it when a part is refused: late jobs of a cycle, effects, cancellations, the log. */
#include "engine_fixture.h"

#include "engine/engine.h"

/* ---- holding the writer ------------------------------------------------------------------ */

/* A caller's transaction that stands in the writer until the test lets it go: what comes
 * meanwhile is written together. */
struct hold {
    struct fixture *f;
    struct gate gate;
    pthread_t thread;
};

static tide_status hold_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct hold *hold = arg;
    (void)transaction;
    (void)err;
    (void)add(&hold->gate.arrived, 1);
    while (get(&hold->gate.opened) == 0)
        test_pause();
    return TIDE_OK;
}

static void *hold_main(void *arg)
{
    struct hold *hold = arg;
    OK(tide_transact(hold->f->engine, hold_run, hold, err));
    return NULL;
}

static void hold_writer(struct hold *hold, struct fixture *f)
{
    *hold = (struct hold){.f = f};
    assert_int_equal(pthread_create(&hold->thread, NULL, hold_main, hold), 0);
    UNTIL(get(&hold->gate.arrived) == 1);
}

static void release_writer(struct hold *hold)
{
    gate_open(&hold->gate);
    assert_int_equal(pthread_join(hold->thread, NULL), 0);
}

/* How many jobs and callers wait for the writer. */
static size_t ends_waiting(struct fixture *f)
{
    tide_lock_take(f->world, f->engine->lock);
    size_t count = f->engine->ended_count;
    tide_lock_drop(f->world, f->engine->lock);
    return count;
}

static size_t callers_waiting(struct fixture *f)
{
    size_t count = 0;
    tide_lock_take(f->world, f->engine->lock);
    for (const struct tide_write *at = f->engine->writes_first; at != NULL; at = at->next)
        count++;
    tide_lock_drop(f->world, f->engine->lock);
    return count;
}

/* A call that waits for the writer, in a thread of its own. */
struct caller {
    struct fixture *f;
    struct tide_spec spec;
    uint64_t cancel; /* this job, instead of enqueueing `spec` */
    uint64_t id;
    tide_status rc;
    pthread_t thread;
};

static void *caller_main(void *arg)
{
    struct caller *caller = arg;
    tide_error err = {TIDE_OK, 0, ""};
    caller->rc = caller->cancel != 0
                     ? tide_cancel_job(caller->f->engine, caller->cancel, &err)
                     : tide_enqueue(caller->f->engine, &caller->spec, 1, &caller->id, &err);
    return NULL;
}

static void call(struct caller *caller)
{
    size_t before = callers_waiting(caller->f);
    assert_int_equal(pthread_create(&caller->thread, NULL, caller_main, caller), 0);
    UNTIL(callers_waiting(caller->f) == before + 1);
}

static void called(struct caller *caller)
{
    assert_int_equal(pthread_join(caller->thread, NULL), 0);
}

/* ---- late jobs of a cycle (E5.1, E5.2) ------------------------------------------------------ */

/* A job that comes into a cycle in the transaction that ends its last one keeps the cycle
 * open: the cursor waits for it, and nothing else does. */
static void a_job_that_comes_with_the_last_end_of_its_cycle_holds_the_cursor(void **state)
{
    struct fixture *f = *state;
    struct gate gate = {0};
    struct gate late_gate = {0};
    uint64_t ran = 0;
    uint64_t stream = 0;
    fixture_open(f);
    uint32_t kind = define(f, &(struct tide_kind){"gate", gate_handler, .context = &gate});
    uint32_t late = define(f, &(struct tide_kind){"late", gate_handler, .context = &late_gate});
    uint32_t other = define(f, &(struct tide_kind){"count", count_handler, .context = &ran});
    OK(tide_stream_open(f->engine, 0, "history", "", &stream, err));
    start(f);
    OK(tide_cycle_open(f->engine, stream, "", "day 1", &(struct tide_spec){.kind = kind}, 1, NULL,
                       err));
    OK(tide_cycle_open(f->engine, stream, "day 1", "day 2", NULL, 0, NULL, err));
    uint64_t cycle = (uint64_t)sql(f, "SELECT min(id) FROM cycle");
    UNTIL(get(&gate.arrived) == 1);

    struct hold hold;
    hold_writer(&hold, f);
    gate_open(&gate);
    UNTIL(ends_waiting(f) == 1);
    struct caller caller = {.f = f, .spec = {.kind = late, .cycle = cycle}};
    call(&caller);
    release_writer(&hold);
    called(&caller);
    assert_int_equal(caller.rc, TIDE_OK);

    /* Others go on, and the cursor does not. */
    UNTIL(get(&late_gate.arrived) == 1);
    (void)enqueue(f, (struct tide_spec){.kind = other});
    UNTIL(get(&ran) == 1);
    struct tide_stream_state seen;
    OK(tide_stream_state(f->engine, stream, &seen, err));
    assert_string_equal(seen.cursor, "");
    gate_open(&late_gate);
    finish(f);
    OK(tide_stream_state(f->engine, stream, &seen, err));
    assert_string_equal(seen.cursor, "day 2");
}

/* ---- what is refused for ever ----------------------------------------------------------------- */

struct lines {
    uint64_t not_written;
};

static void count_lines(void *arg, const char *line, size_t bytes)
{
    struct lines *lines = arg;
    if (memmem(line, bytes, "ledger not written", 18) != NULL)
        (void)add(&lines->not_written, 1);
}

/* A transaction that can never be written stops the engine, and the log has the reason:
 * everything that waits for the writer would wait for ever. */
static void a_transaction_that_is_always_refused_stops_the_engine_with_a_reason(void **state)
{
    struct fixture *f = *state;
    uint64_t ran = 0;
    struct lines lines = {0};
    fixture_settings(f, NULL);
    OK(tide_engine_open(&(struct tide_engine_options){.state_dir = f->dir,
                                                      .world = f->world,
                                                      .settings = f->settings,
                                                      .log_line = count_lines,
                                                      .log_arg = &lines},
                        &f->engine, err));
    uint32_t kind = define(f, &(struct tide_kind){"count", count_handler, .context = &ran});
    start(f);
    (void)sql(f, "CREATE TRIGGER never BEFORE UPDATE OF state ON job WHEN new.state = 2"
                 " BEGIN SELECT RAISE(ABORT, 'not this one'); END");
    (void)enqueue(f, (struct tide_spec){.kind = kind});
    tide_error why = {TIDE_OK, 0, ""};
    assert_int_equal(tide_engine_wait(f->engine, TEST_WAIT_MS, &why), TIDE_BUG);
    assert_non_null(strstr(why.text, "not this one"));
    assert_true(get(&lines.not_written) > 0);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_job_that_comes_with_the_last_end_of_its_cycle_holds_the_cursor),
        TEST(a_transaction_that_is_always_refused_stops_the_engine_with_a_reason),
    };
    return cmocka_run_group_tests_name("engine_writer", tests, NULL, NULL);
}
