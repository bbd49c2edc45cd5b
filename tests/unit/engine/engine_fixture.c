#include "engine_fixture.h"
#include "support/heap.h"

const char *const short_flags[SHORT_FLAGS] = {"retry.backoff_start=1ms", "retry.backoff_max=4ms",
                                              "workers.stop_grace=5s", "log.level=error"};

uint64_t test_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void test_pause(void)
{
    (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
}

uint64_t add(uint64_t *counter, uint64_t by)
{
    return __atomic_add_fetch(counter, by, __ATOMIC_SEQ_CST);
}

uint64_t get(uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

void fixture_settings(struct fixture *f, const char *more)
{
    tide_settings_free(f->settings);
    f->settings = NULL;
    OK(tide_settings_new(tide_mem_heap(), &f->settings));
    for (size_t i = 0; i < SHORT_FLAGS; i++)
        OK(tide_settings_add_flag(f->settings, short_flags[i], err));
    char copy[1024];
    (void)snprintf(copy, sizeof copy, "%s", more == NULL ? "" : more);
    char *next = copy;
    while (next[0] != '\0') {
        char *end = strchr(next, ';');
        if (end != NULL)
            *end = '\0';
        OK(tide_settings_add_flag(f->settings, next, err));
        next = end == NULL ? next + strlen(next) : end + 1;
    }
    OK(tide_settings_check(f->settings, err));
}

tide_status fixture_try_open(struct fixture *f, tide_error *err)
{
    return tide_engine_open(
        &(struct tide_engine_options){
            .state_dir = f->dir, .world = f->world, .settings = f->settings, .workers = f->workers},
        &f->engine, err);
}

void fixture_open(struct fixture *f)
{
    if (f->settings == NULL)
        fixture_settings(f, NULL);
    OK(fixture_try_open(f, err));
}

void fixture_close(struct fixture *f)
{
    OK(tide_engine_close(f->engine));
    f->engine = NULL;
}

int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tidemark-engine-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    OK(tide_world_real_new(tide_mem_heap(), &f->world, err));
    *state = f;
    return 0;
}

int set_up_opened(void **state)
{
    (void)set_up(state);
    fixture_open(*state);
    return 0;
}

int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->engine != NULL && tide_engine_close(f->engine) != TIDE_OK)
        return 1;
    tide_settings_free(f->settings);
    tide_world_real_free(f->world);
    static const char *const names[] = {"state.db",    "state.db-wal", "state.db-shm",
                                        "engine.lock", "engine.sock",  "config.yaml"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", f->dir, names[i]);
        (void)unlink(path);
    }
    int rc = rmdir(f->dir);
    free(f);
    return rc;
}

uint32_t define(struct fixture *f, const struct tide_kind *kind)
{
    uint32_t id = 0;
    OK(tide_engine_kind(f->engine, kind, &id, err));
    assert_int_not_equal(id, 0);
    return id;
}

uint64_t enqueue(struct fixture *f, struct tide_spec spec)
{
    uint64_t id = 0;
    OK(tide_enqueue(f->engine, &spec, 1, &id, err));
    assert_int_not_equal(id, 0);
    return id;
}

uint32_t new_account(struct fixture *f, const char *name, const char *provider)
{
    uint32_t id = 0;
    OK(tide_engine_account(f->engine, name, provider, &id, err));
    return id;
}

void start(struct fixture *f)
{
    OK(tide_engine_start(f->engine, err));
}

void finish(struct fixture *f)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = tide_engine_wait(f->engine, TEST_WAIT_MS, &err);
    if (rc == TIDE_OK)
        return;
    tide_buf json = heap_buf(1 << 20);
    (void)tide_engine_snapshot(f->engine, &json, NULL);
    print_message("%.*s\n", (int)json.bytes, json.data);
    tide_buf_done(&json);
    fail_msg("waiting for the end: %s: %s", tide_status_name(rc), err.text);
}

void run_all(struct fixture *f)
{
    start(f);
    finish(f);
}

struct tide_progress progress(struct fixture *f)
{
    struct tide_progress seen;
    tide_engine_progress(f->engine, &seen);
    return seen;
}

tide_status sql_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct sql_ask *ask = arg;
    sqlite3_stmt *stmt = NULL;
    sqlite3 *db = tide_transaction_sqlite(transaction);
    if (sqlite3_prepare_v2(db, ask->sql, -1, &stmt, NULL) != SQLITE_OK)
        return tide_error_set(err, TIDE_INVALID, "%s: %s", ask->sql, sqlite3_errmsg(db));
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW) {
        ask->number = sqlite3_column_int64(stmt, 0);
        const char *text = (const char *)sqlite3_column_text(stmt, 0);
        (void)snprintf(ask->text, sizeof ask->text, "%s", text == NULL ? "" : text);
    }
    (void)sqlite3_finalize(stmt);
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        return tide_error_set(err, TIDE_INVALID, "%s: %s", ask->sql, sqlite3_errmsg(db));
    return TIDE_OK;
}

int64_t sql(struct fixture *f, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct sql_ask ask = {.sql = text, .number = -1};
    OK(tide_transact(f->engine, sql_run, &ask, err));
    return ask.number;
}

int64_t row_state(struct fixture *f, uint64_t id)
{
    return sql(f, "SELECT state FROM job WHERE id = %" PRIu64, id);
}

void gate_open(struct gate *gate)
{
    (void)add(&gate->opened, 1);
}

tide_status gate_pass(struct gate *gate, tide_job *job)
{
    (void)add(&gate->arrived, 1);
    while (get(&gate->opened) == 0)
        if (tide_job_sleep(job, 2) != TIDE_OK)
            return TIDE_CANCELED;
    return TIDE_OK;
}

tide_status gate_handler(tide_job *job, void *context, tide_error *err)
{
    (void)err;
    return gate_pass(context, job);
}

tide_status count_handler(tide_job *job, void *context, tide_error *err)
{
    (void)job;
    (void)err;
    (void)add(context, 1);
    return TIDE_OK;
}
