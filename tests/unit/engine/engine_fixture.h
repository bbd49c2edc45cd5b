/* engine_fixture.h - what the tests of the running engine share.
 *
 * A fixture is a fresh state directory with an engine on the real world.  Tests
 * never sleep to let something happen: they wait for a condition (UNTIL) that
 * fails the test when it does not come true in TEST_WAIT_MS, or for a gate that
 * a handler passes. */
#ifndef TEST_UNIT_ENGINE_FIXTURE_H
#define TEST_UNIT_ENGINE_FIXTURE_H

#include "base/limits.h"
#include "settings/settings.h"
#include "support/test.h"
#include "tidemark.h"
#include "world/world.h"
#include "support/scale.h"

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <sqlite3.h>

enum { TEST_WAIT_MS = 120000, TEST_FLAGS_MAX = 16 };

struct fixture {
    char dir[64];
    tide_world *world;
    tide_settings *settings;
    tide_engine *engine;
    uint32_t workers; /* 0: the setting */
};

/* Runs what must succeed and shows why it did not. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        tide_error ok_err = {TIDE_OK, 0, ""};                                                      \
        tide_error *err = &ok_err;                                                                 \
        tide_status ok_status = (call);                                                            \
        if (ok_status != TIDE_OK)                                                                  \
            fail_msg("%s: %s: %s", #call, tide_status_name(ok_status), ok_err.text);               \
        (void)err;                                                                                 \
    } while (0)

#define REFUSED(call, status)                                                                      \
    do {                                                                                           \
        tide_error ok_err = {TIDE_OK, 0, ""};                                                      \
        tide_error *err = &ok_err;                                                                 \
        tide_status ok_status = (call);                                                            \
        if (ok_status != (status))                                                                 \
            fail_msg("%s: %s instead of %s: %s", #call, tide_status_name(ok_status),               \
                     tide_status_name(status), ok_err.text);                                       \
        if (ok_err.text[0] == '\0')                                                                \
            fail_msg("%s: refused without a word", #call);                                         \
        (void)err;                                                                                 \
    } while (0)

uint64_t test_now_ms(void);
void test_pause(void);

/* Waits for a condition, looking every millisecond. */
#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        uint64_t until_ms = test_now_ms() + TEST_WAIT_MS;                                          \
        while (!(condition)) {                                                                     \
            if (test_now_ms() > until_ms)                                                          \
                fail_msg("%s:%d: never: %s", __FILE__, __LINE__, #condition);                      \
            test_pause();                                                                          \
        }                                                                                          \
    } while (0)

/* Counters that handlers raise and tests read. */
uint64_t add(uint64_t *counter, uint64_t by);
uint64_t get(uint64_t *counter);

/* ---- life --------------------------------------------------------------------- */

enum { SHORT_FLAGS = 4 };
extern const char *const short_flags[SHORT_FLAGS]; /* short pauses */
/* Settings with short_flags, and the test's own on top ("a=1;b=2"; NULL: none). */
void fixture_settings(struct fixture *f, const char *more);
tide_status fixture_try_open(struct fixture *f, tide_error *err);
void fixture_open(struct fixture *f);
void fixture_close(struct fixture *f);
int set_up(void **state);
int set_up_opened(void **state);
int tear_down(void **state);

#define CASE(name) TEST_ON(name, struct fixture *f, set_up, tear_down)
#define OPENED(name)                                                                               \
    TEST_ON(name, struct fixture *f, set_up_opened, tear_down) /* an engine with short_flags */

/* ---- short forms ------------------------------------------------------------------ */

uint32_t define(struct fixture *f, const struct tide_kind *kind);
uint64_t enqueue(struct fixture *f, struct tide_spec spec);
#define DEFINE(f, ...)  define(f, &(struct tide_kind){__VA_ARGS__})
#define ENQUEUE(f, ...) enqueue(f, (struct tide_spec){__VA_ARGS__})
uint32_t new_account(struct fixture *f, const char *name, const char *provider);
void start(struct fixture *f);

/* Waits for the end of all work; shows what the engine is at when it does not come. */
void finish(struct fixture *f);
void run_all(struct fixture *f); /* start() and finish() */
struct tide_progress progress(struct fixture *f);

/* One value of the ledger, read by the writer itself. */
struct sql_ask {
    const char *sql;
    int64_t number;
    char text[256];
};

tide_status sql_run(tide_transaction *transaction, void *arg, tide_error *err);
__attribute__((format(printf, 2, 3))) int64_t sql(struct fixture *f, const char *format, ...);

/* The state of a row: 0 pending, 1 running, 2 done, 3 failed, 4 canceled. */
int64_t row_state(struct fixture *f, uint64_t id);

/* ---- gates: a handler stands at one until the test opens it -------------------------- */

struct gate {
    uint64_t arrived;
    uint64_t opened;
};

void gate_open(struct gate *gate);

/* TIDE_CANCELED when the job should end. */
tide_status gate_pass(struct gate *gate, tide_job *job);
tide_status gate_handler(tide_job *job, void *context, tide_error *err);
tide_status count_handler(tide_job *job, void *context, tide_error *err);

#endif
