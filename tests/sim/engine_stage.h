/* engine_stage.h - an engine in the simulated world, with one kind and one account. */
#ifndef TIDE_TESTS_SIM_ENGINE_STAGE_H
#define TIDE_TESTS_SIM_ENGINE_STAGE_H

#include "engine/engine.h"
#include "sim.h"
#include "support/test.h"

struct engine_stage {
    tide_sim *sim;
    tide_world *world;
    tide_settings *settings;
    tide_engine *engine;
    uint32_t kind, account; /* a@example.org */
};

struct found_alerts {
    unsigned count;
    struct tide_alert_row row; /* the last one */
};

void engine_stage_open(struct engine_stage *stage, const struct tide_kind *kind); /* not started */
/* The same in two steps, with settings; the second again after a reboot of the world. */
void engine_stage_world(struct engine_stage *stage, uint64_t seed, const char *const *flags,
                        size_t flags_count);
void engine_stage_engine(struct engine_stage *stage, const struct tide_kind *kind);
void engine_stage_start(struct engine_stage *stage);
void engine_stage_add(struct engine_stage *stage, const char *payload); /* a job of the account */
void engine_stage_close(struct engine_stage *stage); /* after all jobs have ended */
void engine_stage_free(struct engine_stage *stage);  /* the engine is closed */

void engine_stage_pass(const struct engine_stage *stage, uint64_t seconds);
/* Reads the alerts; `found` is a struct found_alerts. */
tide_status engine_stage_look(tide_transaction *transaction, void *found, tide_error *err);
struct found_alerts engine_stage_alerts_after(struct engine_stage *stage, uint64_t seconds);

#endif
