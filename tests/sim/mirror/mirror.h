/* mirror.h - a miniature mirror on the real engine, for the simulated world (E10.2).
 *
 * Two accounts at two stand-in providers are copied into an archive shard of
 * its own (a second SQLite file), exactly as the real systems will do it: time
 * slices are cycles of a stream; `list` pages a slice and enqueues `fetch` jobs
 * of ids in the same cycle; `fetch` stores, syncs, and then says done (E1.4); a
 * scheduled `changes` follows the feed; `note` posts under an intent (E1.9);
 * `step` jobs form diamonds and chains; `click` is a person who waits.  An
 * operator thread halts, resumes, pauses, cancels, retries and watches.
 *
 * Everything a world consists of is drawn from one seed (struct mirror_plan).
 * A checker that finds a broken rule ends in tide_sim_fail(), which prints the
 * seed and the trace.
 *
 * What is checked, and where:
 *   SIM1  no job is done twice: each end inserts its id once   (handlers, effects)
 *   SIM2  a dependent never starts before its needs are done    (step handler)
 *   SIM3  the tracker is a subset of the ledger, every claim of ours is in it, tokens agree (ENG1)
 *         (audits, operator)
 *   SIM4  what a job called stored is in the shard after every crash (E1.4)
 *   SIM5  a cursor never goes back and never passes an item that is neither stored nor recorded as
 *         bad, gone or owed (E5.1)       (after each life)
 *   SIM6  the provider's own count of units stays below its limit (E4.3)
 *   SIM7  a halt stops an account within 5 s, a stop the engine (E4.6, E7.4)
 *   SIM8  a click starts within a bound of its turn, and while it waits for units nothing lower of
 *         its account starts (E3.2, E3.3)                     (mirror_click.c)
 *   SIM9  G1..G7 of the ledger                                  (after each life)
 *   SIM10 in the end the mirror equals the provider item by item, what is bad or
 *       owed is exactly what was planted, and no note was posted twice
 *   SIM11 once the world is calm, nothing is halted, fails or is canceled: a person
 *       clears up once and from then on only runs the command again
 *   SIM12 no thread spins: a world makes a bounded number of steps
 */
#ifndef TIDE_SIM_MIRROR_H
#define TIDE_SIM_MIRROR_H

#include "base/check.h"
#include "engine/engine.h"
#include "sim.h"
#include "sim_ledger.h"

enum { MIRROR_ACCOUNTS = 2, MIRROR_SHARDS_MAX = 32, MIRROR_SLICES_MAX = 16 };

/* Behaviours broken on purpose, to see that a checker notices (sim_campaign --plants; one of
 * them in any run: TIDE_PLANT=NUMBER). */
enum mirror_plant {
    PLANT_NONE = 0,
    PLANT_STORE_UNSYNCED,  /* done before the shard is synced */
    PLANT_CURSOR_EARLY,    /* a cursor moves over unfinished work */
    PLANT_QUOTA_IGNORED,   /* calls past the governor */
    PLANT_INTENT_IGNORED,  /* a note is posted again without looking */
    PLANT_DONE_TWICE,      /* a done row becomes pending again */
    PLANT_NEEDS_IGNORED,   /* a blocked job is released too early */
    PLANT_PAGE_LOST,       /* a page of a listing is skipped after a pause */
    PLANT_CLAIM_FORGOTTEN, /* a claim the window knows nothing of */
    PLANT_CANCEL_IGNORED,  /* handlers of a halted account continue */
    PLANT_FENCE_GONE,      /* a stale claim is taken for a valid one */
    PLANT_UNITS_TAKEN,     /* a click that waits for units holds no lower job back */
    PLANTS,
};

struct mirror_plan {
    uint64_t seed;
    enum mirror_plant plant;
    struct tide_sim_options sim;
    struct tide_sim_provider_options provider[MIRROR_ACCOUNTS];
    uint32_t slices;
    uint32_t lives; /* with faults; one more without */
    uint32_t workers;
    uint32_t window_jobs;
    uint32_t batch;
    uint32_t page;
    uint32_t crash_steps_max;
    bool whole_batches; /* errors do not name their item: batches fail as a whole */
    bool impatient;     /* a fetch without a beat for 15 s counts as stalled (E7.1) */
    bool slow_spell;    /* the providers are slow for a while */
    bool rescues;       /* another machine takes our claims away (E1.8) */
    bool stubborn;      /* some handlers ignore their cancellation */
    bool strict_quota;  /* nothing in this world lets the provider count what we cannot know */
    bool calm;          /* times can be checked: no thread or process stands still */
};
struct mirror_plan mirror_plan_seeded(uint64_t seed);

struct mirror_account {
    const char *name;
    const char *profile;
    const char *host;
    tide_sim_provider *provider;
    uint32_t id;
    uint64_t stream;
    uint64_t cursor_seen; /* SIM5, over all lives */
    uint64_t ordinal_seen;
    uint32_t running;            /* handlers of this life */
    struct mirror_click *clicks; /* of this life */
};

struct mirror_kinds {
    uint32_t list, fetch, changes, note, step, click, stubborn;
};

/* Memory that lives as long as this life of the engine. */
struct mirror_scrap {
    struct mirror_scrap *next;
    char bytes[];
};

/* Numbers only: sums, then from click_wait_ms_max on the largest (seeds_totals). */
struct mirror_totals {
    uint64_t simulated_us;
    uint64_t steps;
    uint64_t crashes;
    uint64_t lives;
    uint64_t calls;
    uint64_t jobs_done;
    uint64_t audits;
    uint64_t halts_checked;
    uint64_t stops_checked;
    uint64_t clicks;
    uint64_t strict_quotas;
    uint64_t rescues;
    uint64_t click_wait_ms_max; /* from its turn on */
    uint64_t stop_ms_max;
    uint64_t halt_ms_max;
    uint64_t quota_permille_max; /* of the limit, by the provider's count */
};

struct mirror {
    struct mirror_plan plan;
    tide_sim *sim;
    tide_world *world;
    tide_rng rng;
    struct mirror_account accounts[MIRROR_ACCOUNTS];
    struct mirror_kinds kinds;

    /* this life */
    tide_engine *engine;
    struct tide_settings *settings;
    tide_thread *operator_thread;
    tide_cancel operator_cancel;
    bool operator_ends;
    bool faults;
    bool store_lost; /* a sync of the shard failed: this store must not be trusted (E1.10) */
    struct sqlite3 *shards[MIRROR_SHARDS_MAX];
    size_t shards_count;
    struct mirror_scrap *scraps;
    uint64_t disturbed_ms; /* a process stood still at this time: no times are checked */

    uint64_t groups_made;
    uint64_t notes_made;
    uint64_t clicks_made;
    struct mirror_totals totals;
};

/* ---- mirror.c: handlers and lives ---- */
struct mirror *mirror_new(const struct mirror_plan *plan);
void mirror_free(struct mirror *mirror);
/* Opens and starts an engine on what the disk holds.  Any status is possible in
 * a world with faults; the caller closes in every case. */
tide_status mirror_open(struct mirror *mirror, tide_error *err);
void mirror_close(struct mirror *mirror);
struct mirror_account *mirror_account_of(struct mirror *mirror, uint32_t id);
void *mirror_scrap(struct mirror *mirror, size_t bytes); /* zeroed, freed with this life */
/* A read or write of our own tables on the writer's thread. */
tide_status mirror_sql(struct mirror *mirror, const char *sql, uint64_t *number_out);
/* A connection to the shard; TIDE_OK or why not.  Given back with its fate. */
tide_status mirror_shard_take(struct mirror *mirror, struct sqlite3 **shard_out, tide_error *err);
void mirror_shard_give(struct mirror *mirror, struct sqlite3 *shard, bool good);

/* ---- mirror_operator.c ---- */
void mirror_operator_main(void *arg);
tide_status mirror_audit(struct mirror *mirror); /* SIM3 */
tide_status mirror_pause(struct mirror *mirror, const char *account, const char *kind, bool paused);

/* ---- mirror_click.c: SIM8 ---- */
void mirror_click_starts(struct mirror *mirror, tide_job *job);
void mirror_click_ends(struct mirror *mirror, tide_job *job, tide_status status);
void mirror_lower_starts(struct mirror *mirror, tide_job *job); /* a job of no click */

/* ---- mirror_check.c ---- */
void mirror_check_at_rest(struct mirror *mirror); /* no engine runs; SIM4, SIM5, SIM6, SIM9 */
void mirror_check_end(struct mirror *mirror);     /* SIM10 */

/* ---- one seed, start to end ---- */
struct mirror_totals mirror_run(const struct mirror_plan *plan);

#endif
