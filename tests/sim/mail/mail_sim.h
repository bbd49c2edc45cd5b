/* mail_sim.h - the Gmail mirror in the simulated world (M15, E10.2).
 *
 * The real mail system (src/mail on src/engine) copies a mailbox of the cloud in
 * a box (tests/sim/world/sim_cloud.h) while the seed decides what goes wrong: the server refuses
 * and fails, the network loses, stalls and cuts off, the disk forgets, the process
 * is killed or the power goes, a shard is lost; and the mailbox changes meanwhile:
 * mail arrives, also with an old date, labels change, messages go, history ids
 * expire, some messages can never be fetched.  Then the faults end, and all must
 * come to rest and be right.
 *
 * The truth is read from the box's own mailbox, past the API, so that looking at
 * it costs no units.  A checker that finds a broken rule ends in tide_sim_fail(),
 * which prints the seed and the trace.
 *
 * What is checked (the numbers are in the reports):
 *   MSIM1  the tidemark never goes back and is never ahead of the truth: every message that was on
 *          the server when the tidemark's run began, with an internal date before it, can be read
 *          from the durable archive with the server's bytes, or is held there (M18), is recorded as
 *          bad, or is gone from the server (MAIL1).
 *   MSIM2  every message of a mail.fetch that is done in the durable ledger is in the durable
 *          archive, recorded, or gone; and what was durable once stays durable and the same
 *          (MAIL2).
 *   MSIM3  in the end the archive is the mailbox, byte for byte; labels are equal; exactly what the
 *          server no longer has is marked gone; what is recorded as bad is exactly what was
 *          planted; every stored byte verifies.
 *   MSIM4  no window of the quota was crossed, by the server's count, and no time that it told was
 *          ignored (E4.3).
 *   MSIM5  messages fetched again are at most, per crash, the calls in flight and what one commit
 *          of the archive holds; per stop, the calls in flight (M6b).
 *   MSIM6  the run comes to its end within a bounded simulated time, and goes in no circle.
 *   MSIM7  a sync without news makes at most three calls (M6b).
 *   MSIM8  the tidemark starts again only after a shard was lost, and then always (MAIL3).
 *   MSIM9  the invariants of the ledger hold after each life.
 */
#ifndef TIDE_SIM_MAIL_SIM_H
#define TIDE_SIM_MAIL_SIM_H

#include "base/check.h"
#include "sim.h"
#include "sim_ledger.h"
#include "sim_mail.h"

#define MAIL_SIM_USER    "ada@example.com"
#define MAIL_SIM_ARCHIVE "/data/archive"
#define MAIL_SIM_STATE   "/state"

enum {
    MAIL_SIM_MESSAGES_MAX = 2000, /* with what arrives */
    MAIL_SIM_PLANTED_MAX = 4,
    MAIL_SIM_IN_FLIGHT = 10, /* governor.gmail.in_flight */
    MAIL_SIM_UNITS = 6000,   /* a minute */
};

/* Behaviours broken on purpose, to see that a checker notices.  They stand between
 * the mail system and what it calls (mail_plant.c). */
enum mail_plant {
    MAIL_PLANT_NONE = 0,
    MAIL_PLANT_SYNC_LIES,    /* done before the archive is synced: MSIM1, MSIM2 */
    MAIL_PLANT_PUT_DROPS,    /* one message in forty is not put: MSIM1, MSIM2, MSIM3 */
    MAIL_PLANT_PUT_SPOILS,   /* one in forty has another byte: MSIM2, MSIM3 */
    MAIL_PLANT_PAGE_LOST,    /* a page of a listing is empty: MSIM1, MSIM3 */
    MAIL_PLANT_CHEAP_GET,    /* calls are charged half their price: MSIM4 */
    MAIL_PLANT_GONE_LOST,    /* deletions are not recorded: MSIM3 */
    MAIL_PLANT_LABELS_LOST,  /* changes of labels are not recorded: MSIM3 */
    MAIL_PLANT_FETCH_AGAIN,  /* what is stored is fetched again: MSIM5 */
    MAIL_PLANT_MARK_EARLY,   /* every cycle claims the time of the run: MSIM1 */
    MAIL_PLANT_PROOF_LOST,   /* a lost shard is not noticed: MSIM8 */
    MAIL_PLANT_BAD_FORGIVEN, /* an item that failed counts as done: MSIM2, MSIM3 */
    MAIL_PLANTS,
};

struct mail_plan {
    uint64_t seed;
    enum mail_plant plant;
    struct tide_sim_options sim;
    uint32_t messages;
    uint32_t size_bytes; /* 0: a realistic spread */
    uint32_t lives;      /* with faults; one more without */
    uint32_t workers;
    uint32_t crash_steps_max;
    uint32_t news_max; /* changes of the mailbox while faults are on */
    uint32_t news_every_calls;
    uint32_t planted; /* messages that can never be fetched */
    uint32_t server_faults_permille;
    uint32_t inversions_permille;
    bool newest_first;
    bool settled_first; /* trouble begins after a first sync */
    bool shard_lost;    /* one is removed between two runs */
    bool seeded;        /* a Takeout of an earlier day filled the archive first (M18) */
    bool strict_quota;  /* nothing in this world lets the server count what we cannot know */
    bool quiet;         /* neither network nor server nor disk fails: MSIM5 is exact */
};
struct mail_plan mail_plan_seeded(uint64_t seed);
/* The same with a bug on purpose, in a world in which it can show. */
void mail_plan_plant(struct mail_plan *plan, enum mail_plant plant);

/* What the test knows of a slot of the mailbox. */
struct mail_fact {
    uint64_t arrived_ms; /* on our clock; 0: it was there before */
    uint64_t hash;
    bool hashed;
    bool planted;
    bool durable; /* it was seen in the durable archive (MSIM2) */
};

/* Numbers only: sums, then from again_per_crash_max on the largest (seeds_totals). */
struct mail_totals {
    uint64_t simulated_us;
    uint64_t steps;
    uint64_t lives;
    uint64_t crashes;
    uint64_t calls;
    uint64_t messages;
    uint64_t news;
    uint64_t expired;
    uint64_t shards_lost;
    uint64_t seeded; /* messages that were held before the first sync */
    uint64_t fetched_again;
    uint64_t quiet;
    uint64_t marks_checked;       /* messages behind a tidemark that were read */
    uint64_t asked_again;         /* runs that a person asked for because something was left */
    uint64_t again_per_crash_max; /* of quiet worlds */
    uint64_t highest_units;       /* in any minute of a strict world */
    uint64_t trace_hash;
};

struct mail_sim {
    struct mail_plan plan;
    tide_sim *sim;
    tide_world *world;
    tide_sim_cloud *cloud;
    box_mailbox *mailbox; /* the cloud's */
    tide_rng rng;
    struct mail_fact facts[MAIL_SIM_MESSAGES_MAX];

    struct tide_sim_mail life;

    bool faults;
    uint32_t news_left;
    uint64_t epoch_seen;
    uint64_t tidemark_seen;
    bool shard_missing;     /* removed, and the next plan has not noticed yet */
    uint64_t shard_lost_ms; /* what was done before is not proven by a done (MSIM2) */
    uint64_t again_seen;
    uint64_t histories; /* calls of this life for the history */
    uint64_t calls;     /* that reached the server, but for messages that always fail */
    struct mail_totals totals;
};

/* ---- mail_sim.c: one seed, start to end ---- */
struct mail_totals mail_sim_run(const struct mail_plan *plan);
/* The referee's record of our user; the caller's to json_decref, with `user_out` in it. */
json_t *mail_sim_stats(struct mail_sim *self, const json_t **user_out);

/* ---- mail_check.c: while no engine runs ---- */
void mail_check_at_rest(struct mail_sim *self); /* MSIM1, MSIM2, MSIM4, MSIM5, MSIM8, MSIM9 */
void mail_check_end(struct mail_sim *self);     /* MSIM3 */
/* Remembers what the bytes of a message are; those that arrive are forgotten by the
 * server when it deletes them. */
void mail_check_hash(struct mail_sim *self, uint32_t slot);
/* Whether the ledger remembers the shard of that year. */
bool mail_check_shard_known(struct mail_sim *self, int year);
/* Whether an item is one of those that always fail. */
bool mail_check_planted(struct mail_sim *self, const char *id);

/* ---- mail_plant.c ---- */
void mail_plant_set(enum mail_plant plant);

#endif
