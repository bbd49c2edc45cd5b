/* scenario.h - what the killed program does, and what must be true afterwards.
 *
 * A scenario is a run of the real engine on a real directory that can be started
 * again after any kill and continues to the same end.  What it wants done is
 * planned in one transaction with a mark, so that a restart neither forgets nor
 * plans twice.  Every handler leaves one row per key in a table without a unique
 * key: an effect that was doubled shows as two rows, a lost one as none.
 *
 * Order is the order of those rows: they are written with the job's `done`.
 */
#ifndef TIDE_TESTS_KILL_SCENARIO_H
#define TIDE_TESTS_KILL_SCENARIO_H

#include "settings/settings.h"
#include "tidemark.h"
#include "world/world.h"

#include <sqlite3.h>

enum { CALLS_LOGGED_MAX = 1 << 16, KEY_BYTES = 64, PATH_BYTES = 1024 };

/* Shared by all processes of one directory, so that a kill cannot unsay it. */
struct witness {
    uint64_t handler_runs; /* atomic */
    uint64_t calls_count;  /* atomic; what the provider of `governor` saw */
    uint64_t calls_us[CALLS_LOGGED_MAX];
    uint64_t opened_us; /* of the last run: from the start until the engine ran */
    uint64_t ops;       /* of the last run that ended by itself */
    uint64_t ops_live;  /* atomic; of the run that is under way */
};

struct stage {
    const struct scenario *scenario;
    char dir[PATH_BYTES];
    struct witness *witness;
    tide_world *world;
    tide_settings *settings;
    tide_engine *engine;
    sqlite3 *db; /* verify: state.db, while no engine runs */
    sqlite3 *shard;
    tide_lock *shard_lock;
    uint32_t kind, other_kind, items_kind;
    uint32_t account;
    uint64_t stream;
    tide_error err;
};

typedef tide_status plan_fn(tide_transaction *transaction, struct stage *stage, tide_error *err);

struct scenario {
    const char *name;
    const char *const *settings; /* "name=value", NULL at the end; NULL: none */
    /* NULL: defines a kind of that name with `handler`, plans once, and waits for the end. */
    void (*run)(struct stage *stage);
    tide_handler *handler;
    plan_fn *plan;
    void (*verify)(struct stage *stage);
    /* Holds at every moment, also right after a kill; may be NULL. */
    void (*midway)(struct stage *stage);
    bool slow; /* lives by the clock: fewer points are tried */
};

extern const struct scenario scenarios[];
extern const size_t scenarios_count;
const struct scenario *scenario_named(const char *name); /* NULL: none */

/* One start of the program in `dir`, until all is done.  Does not return on a
 * failure: prints it and ends the process with 1. */
void scenario_run(const struct scenario *scenario, const char *dir, struct witness *witness);
void scenario_verify(const struct scenario *scenario, const char *dir, struct witness *witness);
/* After a kill, before the next start. */
void scenario_midway(const struct scenario *scenario, const char *dir, struct witness *witness);

/* ---- for the scenarios' own files ---- */

_Noreturn void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
void must(struct stage *stage, tide_status rc, const char *what);
int64_t number_of(sqlite3 *db, const char *sql);
void expect(sqlite3 *db, const char *sql, int64_t expected);
sqlite3 *database_open(const char *dir, const char *name, bool plain);
void path_of(const struct stage *stage, const char *name, char path_out[PATH_BYTES]);

/* The handler of most: its effect is a row with payload.key. */
tide_status effect_handler(tide_job *job, void *context, tide_error *err);
tide_status effect_leave(tide_job *job, const char *key, tide_error *err);
void key_of(tide_job *job, const char *field, char key_out[KEY_BYTES]);
void kind_define(struct stage *stage, const char *name, tide_handler *handler, uint32_t *kind_out);
void kind_define_as(struct stage *stage, struct tide_kind kind, uint32_t *kind_out);

/* Runs `plan` once in the life of the directory, with its mark. */
void plan_once(struct stage *stage, const char *mark, plan_fn *plan);
bool mark_is_set(struct stage *stage, const char *mark);
void mark_set(struct stage *stage, const char *mark);
/* `count` jobs with the keys PREFIX-0, PREFIX-1, ... */
tide_status numbered(tide_transaction *transaction, const struct tide_spec *spec,
                     const char *prefix, int count, tide_error *err);
tide_status hopeless_handler(tide_job *job, void *context, tide_error *err); /* TIDE_PERMANENT */
void engine_start(struct stage *stage);
void engine_wait(struct stage *stage);
/* Exactly these many keys, each once. */
void expect_effects(struct stage *stage, int64_t count);

void run_streams(struct stage *stage);
void verify_streams(struct stage *stage);
void run_split(struct stage *stage);
void verify_split(struct stage *stage);
void run_schedule(struct stage *stage);
void verify_schedule(struct stage *stage);
void run_commands(struct stage *stage);
void verify_commands(struct stage *stage);
void run_purge(struct stage *stage);
void verify_purge(struct stage *stage);
void run_governor(struct stage *stage);
void verify_governor(struct stage *stage);
void run_backup(struct stage *stage);
void verify_backup(struct stage *stage);
void run_config(struct stage *stage);
void verify_config(struct stage *stage);
void midway_config(struct stage *stage);
tide_status provider_call(tide_world *world, const struct tide_request *request,
                          struct tide_response *response, const tide_cancel *cancel,
                          tide_error *err);
extern struct witness *provider_witness; /* what the fake provider of this process writes to */

#endif
