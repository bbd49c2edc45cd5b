/* engine_writer_test.c - what one transaction of the writer holds together, and what becomes
 * of it when a part is refused: late jobs of a cycle, effects, cancellations, the log. */
#include "engine_fixture.h"

#include "engine/engine.h"
#include "support/heap.h"

#include <sys/stat.h>

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
OPENED(a_job_that_comes_with_the_last_end_of_its_cycle_holds_the_cursor)
{
    struct gate gate = {0};
    struct gate late_gate = {0};
    uint64_t ran = 0;
    uint64_t stream = 0;
    uint32_t kind = DEFINE(f, "gate", gate_handler, .context = &gate);
    uint32_t late = DEFINE(f, "late", gate_handler, .context = &late_gate);
    uint32_t other = DEFINE(f, "count", count_handler, .context = &ran);
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

    /* Other jobs run; the cursor stays. */
    UNTIL(get(&late_gate.arrived) == 1);
    (void)ENQUEUE(f, .kind = other);
    UNTIL(get(&ran) == 1);
    struct tide_stream_state seen;
    OK(tide_stream_state(f->engine, stream, &seen, err));
    assert_string_equal(seen.cursor, "");
    gate_open(&late_gate);
    finish(f);
    OK(tide_stream_state(f->engine, stream, &seen, err));
    assert_string_equal(seen.cursor, "day 2");
}

/* ---- what is always refused ----------------------------------------------------------------- */

struct lines {
    uint64_t not_written;
    uint64_t refused;
};

static void count_lines(void *arg, const char *line, size_t bytes)
{
    struct lines *lines = arg;
    if (memmem(line, bytes, "ledger not written", 18) != NULL)
        (void)add(&lines->not_written, 1);
    if (memmem(line, bytes, "not today", 9) != NULL)
        (void)add(&lines->refused, 1);
}

static void open_with_log(struct fixture *f, struct lines *lines)
{
    OK(tide_engine_open(&(struct tide_engine_options){.state_dir = f->dir,
                                                      .world = f->world,
                                                      .settings = f->settings,
                                                      .log_line = count_lines,
                                                      .log_arg = lines},
                        &f->engine, err));
}

/* A transaction that can never be written stops the engine, and the log has the reason:
 * everything that waits for the writer would wait forever. */
CASE(a_transaction_that_is_always_refused_stops_the_engine_with_a_reason)
{
    uint64_t ran = 0;
    struct lines lines = {0};
    fixture_settings(f, NULL);
    open_with_log(f, &lines);
    uint32_t kind = DEFINE(f, "count", count_handler, .context = &ran);
    start(f);
    (void)sql(f, "CREATE TRIGGER never BEFORE UPDATE OF state ON job WHEN new.state = 2"
                 " BEGIN SELECT RAISE(ABORT, 'not this one'); END");
    (void)ENQUEUE(f, .kind = kind);
    tide_error why = {TIDE_OK, 0, ""};
    assert_int_equal(tide_engine_wait(f->engine, TEST_WAIT_MS, &why), TIDE_BUG);
    assert_non_null(strstr(why.text, "not this one"));
    assert_true(get(&lines.not_written) > 0);
    fixture_close(f);
}

/* ---- effects (E1.4) ----------------------------------------------------------------------------- */

struct effect {
    const char *sql;   /* run by the effect; NULL: none */
    tide_status says;  /* and what it says then */
    const char *item;  /* only where the job has this item; NULL: always */
    uint64_t runs;     /* of the handler */
    struct gate *gate; /* which the handler passes first; NULL: none */
};

static tide_status effect_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct effect *effect = arg;
    if (effect->sql != NULL)
        (void)sqlite3_exec(tide_transaction_sqlite(transaction), effect->sql, NULL, NULL, NULL);
    if (effect->says != TIDE_OK)
        return tide_error_set(err, effect->says, "not today");
    return TIDE_OK;
}

static tide_status effect_handler(tide_job *job, void *context, tide_error *err)
{
    struct effect *effect = context;
    (void)add(&effect->runs, 1);
    bool wanted = effect->item == NULL;
    for (size_t i = 0; !wanted && i < tide_job_items(job); i++)
        wanted = strcmp(tide_job_item(job, i).data, effect->item) == 0;
    if (effect->gate != NULL && gate_pass(effect->gate, job) != TIDE_OK)
        return TIDE_CANCELED;
    return wanted ? tide_job_effect(job, effect_run, effect, err) : TIDE_OK;
}

/* Whatever an effect does to the transaction, nothing of it is stored in part: the others that
 * were written with it are written again without it, and its job is not done. */
OPENED(an_effect_that_ends_the_transaction_harms_no_other_job)
{
    static const char *const statements[] = {
        "ROLLBACK",
        "INSERT INTO mark VALUES (1); COMMIT",
        "ROLLBACK; INSERT INTO mark VALUES (2)",
        "ROLLBACK; BEGIN; INSERT INTO mark VALUES (3)",
        "INSERT OR ROLLBACK INTO mark VALUES (0)",
    };
    struct gate gates[2] = {{0}, {0}};
    struct effect evil = {.gate = &gates[0]};
    struct effect good = {.gate = &gates[1]};
    uint64_t ran = 0;
    uint32_t bad = DEFINE(f, "bad", effect_handler, .context = &evil, .attempts_max = 1);
    uint32_t well = DEFINE(f, "well", effect_handler, .context = &good);
    uint32_t other = DEFINE(f, "count", count_handler, .context = &ran);
    start(f);
    (void)sql(f, "CREATE TABLE mark (n INTEGER PRIMARY KEY)");
    (void)sql(f, "INSERT INTO mark VALUES (0)");
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        gates[0] = gates[1] = (struct gate){0};
        evil.sql = statements[i];
        uint64_t ids[2] = {ENQUEUE(f, .kind = well), ENQUEUE(f, .kind = bad)};
        UNTIL(get(&gates[0].arrived) + get(&gates[1].arrived) == 2);
        struct hold hold;
        hold_writer(&hold, f);
        gate_open(&gates[1]);
        UNTIL(ends_waiting(f) == 1);
        gate_open(&gates[0]);
        UNTIL(ends_waiting(f) == 2);
        struct caller caller = {.f = f, .spec = {.kind = other}};
        call(&caller);
        release_writer(&hold);
        called(&caller);
        assert_int_equal(caller.rc, TIDE_OK);
        finish(f);
        assert_int_equal(row_state(f, ids[0]), 2);
        assert_int_equal(row_state(f, ids[1]), 3);
        assert_int_equal(row_state(f, caller.id), 2);
        assert_int_equal(sql(f, "SELECT count(*) FROM mark"), 1);
        assert_int_equal(sql(f, "SELECT count(*) FROM claim"), 0);
    }
}

static tide_status end_it(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)err;
    (void)sqlite3_exec(tide_transaction_sqlite(transaction), arg, NULL, NULL, NULL);
    return TIDE_OK;
}

/* The same of a caller's transaction: the caller gets an error and the engine keeps running. */
OPENED(a_callback_that_ends_the_transaction_is_refused_alone)
{
    uint64_t ran = 0;
    uint32_t kind = DEFINE(f, "count", count_handler, .context = &ran);
    start(f);
    char rollback[] = "ROLLBACK";
    char commit[] = "CREATE TABLE mark (n); COMMIT";
    REFUSED(tide_transact(f->engine, end_it, rollback, err), TIDE_INVALID);
    REFUSED(tide_transact(f->engine, end_it, commit, err), TIDE_INVALID);
    assert_int_equal(sql(f, "SELECT count(*) FROM sqlite_schema WHERE name = 'mark'"), 0);
    (void)ENQUEUE(f, .kind = kind);
    finish(f);
    assert_int_equal(get(&ran), 1);
}

/* E7.2: a refused end is a failure like any other: it waits, is logged and not counted as
 * done. */
CASE(a_refused_effect_waits_and_is_not_counted_as_done)
{
    struct effect effect = {.says = TIDE_SERVER};
    struct lines lines = {0};
    fixture_settings(f, "retry.backoff_max=2h;retry.backoff_start=1h;log.level=warn");
    open_with_log(f, &lines);
    uint32_t kind = DEFINE(f, "refused", effect_handler, .context = &effect);
    uint64_t id = ENQUEUE(f, .kind = kind);
    start(f);
    /* In this order: before its first run the row is pending too. */
    UNTIL(get(&effect.runs) > 1 || (get(&effect.runs) == 1 && row_state(f, id) == 0));
    assert_int_equal(get(&effect.runs), 1);
    assert_int_equal(sql(f, "SELECT attempts FROM job WHERE id = %" PRIu64, id), 1);
    assert_true(sql(f, "SELECT not_before - created FROM job WHERE id = %" PRIu64, id) >
                29 * 60 * 1000);
    struct tide_progress seen = progress(f);
    assert_int_equal(seen.done, 0);
    assert_int_equal(seen.retried, 1);
    assert_true(get(&lines.refused) > 0);
}

/* E6.1: a batch whose end is refused is split down to the item that is at fault. */
OPENED(a_batch_whose_effect_is_refused_is_split)
{
    struct effect effect = {.says = TIDE_SERVER, .item = "b"};
    uint32_t kind =
        DEFINE(f, "refused", effect_handler, .context = &effect, .attempts_max = 2, .items = true);
    (void)ENQUEUE(f, .kind = kind, .payload = "{\"items\":[\"a\",\"b\",\"c\",\"d\"]}");
    run_all(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state <> 2"), 0);
    assert_int_equal(sql(f, "SELECT count(*) FROM bad"), 1);
    assert_int_equal(sql(f, "SELECT count(*) FROM bad WHERE item = 'b'"), 1);
    assert_int_equal(progress(f).bad, 1);
}

/* ---- a command's cancellation (E7.3) --------------------------------------------------------------- */

/* Waits for its gate whatever it is canceled for; then it has failed, or was canceled. */
struct deaf {
    struct gate gate;
    tide_status says;
};

static tide_status deaf_handler(tide_job *job, void *context, tide_error *err)
{
    struct deaf *deaf = context;
    (void)add(&deaf->gate.arrived, 1);
    while (get(&deaf->gate.opened) == 0)
        test_pause();
    if (deaf->says == TIDE_CANCELED && !tide_job_canceled(job))
        return TIDE_OK;
    return tide_error_set(err, deaf->says, "ended by the test");
}

static bool job_is_canceled(struct fixture *f, uint64_t id, tide_cancel_reason reason)
{
    tide_lock_take(f->world, f->engine->lock);
    const struct tide_tracked *tracked = tide_tracker_find(f->engine->tracker, id);
    const tide_job *job = tracked == NULL ? NULL : tracked->body;
    bool canceled = job != NULL && tide_canceled(&job->cancel) == reason;
    tide_lock_drop(f->world, f->engine->lock);
    return canceled;
}

/* Whatever else a job was canceled for, a command that comes later ends it for good. */
OPENED(a_cancel_after_a_halt_is_kept)
{
    struct deaf deaf = {.says = TIDE_CANCELED};
    uint32_t kind = DEFINE(f, "deaf", deaf_handler, .context = &deaf);
    uint32_t account = new_account(f, "a", "default");
    start(f);
    uint64_t id = ENQUEUE(f, .kind = kind, .account = account);
    UNTIL(get(&deaf.gate.arrived) == 1);
    OK(tide_engine_halt(f->engine, account, "enough", err));
    UNTIL(job_is_canceled(f, id, TIDE_CANCEL_HALT));
    OK(tide_cancel_job(f->engine, id, err));
    gate_open(&deaf.gate);
    UNTIL(row_state(f, id) != 1);
    assert_int_equal(row_state(f, id), 4);
    OK(tide_engine_resume(f->engine, account, err));
    finish(f);
    assert_int_equal(get(&deaf.gate.arrived), 1);
    assert_int_equal(row_state(f, id), 4);
}

static uint64_t preempted(struct fixture *f, const uint64_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (job_is_canceled(f, ids[i], TIDE_CANCEL_PREEMPT))
            return ids[i];
    return 0;
}

CASE(a_cancel_after_a_preemption_is_kept)
{
    struct deaf deaf = {.says = TIDE_CANCELED};
    uint64_t clicks = 0;
    fixture_settings(f, "workers.reserved_interactive=1;workers.reserved_bulk=1;workers.count=3");
    fixture_open(f);
    uint32_t kind = DEFINE(f, "deaf", deaf_handler, .context = &deaf);
    uint32_t click =
        DEFINE(f, "click", count_handler, .context = &clicks, .lane = TIDE_KIND_INTERACTIVE);
    uint64_t ids[3];
    for (int i = 0; i < 3; i++)
        ids[i] = ENQUEUE(f, .kind = kind);
    start(f);
    UNTIL(get(&deaf.gate.arrived) == 3);
    (void)ENQUEUE(f, .kind = click);
    uint64_t id = 0;
    UNTIL((id = preempted(f, ids, 3)) != 0);
    OK(tide_cancel_job(f->engine, id, err));
    gate_open(&deaf.gate);
    finish(f);
    assert_int_equal(row_state(f, id), 4);
    assert_int_equal(get(&deaf.gate.arrived), 3);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 2"), 3);
}

/* The command is written while the job ends, and would be tried again. */
OPENED(a_cancel_at_the_end_of_a_job_is_kept)
{
    struct deaf deaf = {.says = TIDE_SERVER};
    uint32_t kind = DEFINE(f, "deaf", deaf_handler, .context = &deaf);
    uint64_t id = ENQUEUE(f, .kind = kind);
    start(f);
    UNTIL(get(&deaf.gate.arrived) == 1);
    struct hold before;
    struct hold with;
    hold_writer(&before, f);
    struct caller caller = {.f = f, .cancel = id};
    call(&caller);
    with = (struct hold){.f = f};
    assert_int_equal(pthread_create(&with.thread, NULL, hold_main, &with), 0);
    UNTIL(callers_waiting(f) == 2);
    release_writer(&before);
    UNTIL(get(&with.gate.arrived) == 1); /* in one transaction with the cancellation */
    gate_open(&deaf.gate);
    UNTIL(ends_waiting(f) == 1);
    release_writer(&with);
    called(&caller);
    assert_int_equal(caller.rc, TIDE_OK);
    finish(f);
    assert_int_equal(row_state(f, id), 4);
    assert_int_equal(get(&deaf.gate.arrived), 1);
}

/* ---- the log file (E2.5) ------------------------------------------------------------------------- */

static off_t log_bytes(struct fixture *f)
{
    struct stat seen;
    const char *path = textf("%s/state.db-wal", f->dir);
    return stat(path, &seen) == 0 ? seen.st_size : 0;
}

/* SQLite's log never shrinks, so its size is the most there ever was in it.  Jobs of 60 KB come
 * before the start and while nothing else is written: the log is copied back all the same. */
OPENED(the_log_file_has_a_bound_before_the_start_too)
{
    enum { JOBS = 20, CALLS = 60 };
    uint64_t ran = 0;
    char payload[60000];
    (void)memset(payload, 'x', sizeof payload);
    (void)memcpy(payload, "{\"a\":\"", 6);
    (void)memcpy(payload + sizeof payload - 3, "\"}", 3);
    struct tide_spec specs[JOBS];
    uint32_t kind = DEFINE(f, "count", count_handler, .context = &ran);
    for (int i = 0; i < JOBS; i++)
        specs[i] = (struct tide_spec){.kind = kind, .payload = payload};
    for (int i = 0; i < CALLS; i++)
        OK(tide_enqueue(f->engine, specs, JOBS, NULL, err));
    print_message("a log of %lld bytes for %d of jobs\n", (long long)log_bytes(f),
                  JOBS * CALLS * (int)sizeof payload);
    assert_true(log_bytes(f) < 32 << 20);
}

/* ---- one transaction for a click (K15) --------------------------------------------------------------- */

/* An account whose backfill fills its lane, and more of it waits. */
struct backfill {
    struct gate gate, clicked;
    uint32_t account, click;
};

enum { BACKFILL_RUNS = 14 }; /* of 16 workers, two of them being reserved */

static void backfill_begin(struct fixture *f, struct backfill *backfill)
{
    enum { JOBS = 40 };
    struct tide_spec specs[JOBS];
    f->workers = BACKFILL_RUNS + 2;
    fixture_open(f);
    const uint32_t bulk =
        DEFINE(f, "bulk", gate_handler, .context = &backfill->gate, .not_preemptible = true);
    backfill->click =
        DEFINE(f, "click", gate_handler, .context = &backfill->clicked,
               .lane = TIDE_KIND_INTERACTIVE, .level = 1, .priority = 95, .one_per_account = true);
    backfill->account = new_account(f, "a@example.org", "onedrive"); /* admits 16 jobs */
    for (int i = 0; i < JOBS; i++)
        specs[i] = (struct tide_spec){.kind = bulk, .account = backfill->account};
    OK(tide_enqueue(f->engine, specs, JOBS, NULL, err));
    start(f);
    UNTIL(get(&backfill->gate.arrived) == BACKFILL_RUNS);
    (void)sql(f, "SELECT 0"); /* after this transaction the writer has nothing to do */
}

CASE(a_click_beside_a_backfill_is_added_and_claimed_in_one_transaction)
{
    struct backfill backfill = {{0, 0}, {0, 0}, 0, 0};
    backfill_begin(f, &backfill);
    const uint64_t writes = progress(f).ledger_writes;
    const uint64_t id = ENQUEUE(f, .kind = backfill.click, .account = backfill.account);
    UNTIL(get(&backfill.clicked.arrived) == 1);
    assert_int_equal(progress(f).ledger_writes, writes + 1);
    assert_int_equal(row_state(f, id), 1);
    /* Of the account one such job runs at a time: the next one waits as ever. */
    const uint64_t next = ENQUEUE(f, .kind = backfill.click, .account = backfill.account);
    assert_int_equal(row_state(f, next), 0);
    gate_open(&backfill.clicked);
    UNTIL(row_state(f, next) == 2);
    gate_open(&backfill.gate);
    finish(f);
}

/* Nothing of it stays in memory: the same click works as soon as it can be written. */
CASE(a_click_whose_transaction_fails_leaves_nothing_behind)
{
    struct backfill backfill = {{0, 0}, {0, 0}, 0, 0};
    tide_error err = {TIDE_OK, 0, ""};
    struct tide_spec click = {0};
    backfill_begin(f, &backfill);
    click.kind = backfill.click;
    click.account = backfill.account;
    gate_open(&backfill.clicked);
    (void)sql(f,
              "CREATE TRIGGER never BEFORE INSERT ON claim"
              " WHEN (SELECT kind FROM job WHERE id = new.job) = %u"
              " BEGIN SELECT RAISE(ABORT, 'not today'); END",
              backfill.click);
    assert_int_not_equal(tide_enqueue(f->engine, &click, 1, NULL, &err), TIDE_OK);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE kind = %u", backfill.click), 0);
    tide_lock_take(f->world, f->engine->lock);
    assert_true(tide_engine_check(f->engine));
    assert_int_equal(tide_lanes_running(f->engine->lanes, TIDE_LANE_INTERACTIVE), 0);
    tide_lock_drop(f->world, f->engine->lock);
    (void)sql(f, "DROP TRIGGER never");
    const uint64_t id = enqueue(f, click);
    UNTIL(row_state(f, id) == 2);
    gate_open(&backfill.gate);
    finish(f);
}

/* ---- payloads in memory ---------------------------------------------------------------------------- */

/* Passes while the gate is open. */
static tide_status swing_handler(tide_job *job, void *context, tide_error *err)
{
    struct gate *gate = context;
    (void)err;
    while (get(&gate->opened) == 0)
        if (tide_job_sleep(job, 1) != TIDE_OK)
            return TIDE_CANCELED;
    return TIDE_OK;
}

static size_t claimed(struct fixture *f)
{
    return (size_t)sql(f, "SELECT count(*) FROM job WHERE state = 1");
}

/* The more jobs end in one transaction, the more are claimed ahead: up to 256 at once.  Payloads
 * of a kind that may have 1 MiB are claimed 128 MiB at a time, and no more wait in memory. */
CASE(claimed_payloads_have_a_byte_budget)
{
    enum { JOBS = 700, WORKERS = 8, BUDGET = 128 };
    struct gate gate = {0, 0};
    static struct tide_spec specs[JOBS];
    f->workers = WORKERS;
    fixture_open(f);
    uint32_t kind =
        DEFINE(f, "large", swing_handler, .context = &gate, .payload_bytes_max = 1 << 20);
    for (int i = 0; i < JOBS; i++)
        specs[i] = (struct tide_spec){.kind = kind, .payload = "{}"};
    OK(tide_enqueue(f->engine, specs, JOBS, NULL, err));
    start(f);
    size_t count = 0;
    UNTIL((count = claimed(f)) >= WORKERS / 2);
    while (count < BUDGET) {
        struct hold hold;
        hold_writer(&hold, f);
        gate_open(&gate);
        UNTIL(ends_waiting(f) == count); /* all that are claimed, for one transaction */
        __atomic_store_n(&gate.opened, 0, __ATOMIC_SEQ_CST);
        release_writer(&hold);
        size_t wanted = count * 2 < BUDGET ? count * 2 : BUDGET;
        UNTIL((count = claimed(f)) >= wanted);
    }
    print_message("%zu jobs are claimed\n", count);
    assert_true(count <= BUDGET + WORKERS);
    gate_open(&gate);
    finish(f);
}
