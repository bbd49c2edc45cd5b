/* ledger_random.h - one random sequence of operations, run on several stores at once.
 *
 * An operation is chosen in names of the test's own: the third job, the second cycle.
 * Each side (a store) has its own ids for them, keeps what its ledger answers as text in
 * those names, and the texts of all sides must be the same, as must be everything that
 * can be listed.  A naive model that keeps every job in an array is the referee: what all
 * sides agree on must also be right.
 *
 * A seed runs twice: with a fleet, whose members share PostgreSQL, and without one, on every
 * store, where no process joins and nothing is done that only a shared ledger has.
 *
 * A free claim takes all there are, because the order in which several processes get them
 * is approximate on a shared store; so tokens are each side's own, too.
 *
 * Names: job n is the n-th that was made and not rolled back, from 1; 0 is none.  The
 * same for cycles.  Kinds, accounts, streams and schedules are a few fixed ones. */
#ifndef TIDE_TESTS_LEDGER_RANDOM_H
#define TIDE_TESTS_LEDGER_RANDOM_H

#include "ledger/ledger_fixture.h"

enum {
    SIDES_MAX = 3,
    PROCESSES = 3, /* ledgers open on each store: a command's, and two members' */
    JOBS_MAX = 1500,
    CYCLES_MAX = 60,
    KINDS = 3,
    ACCOUNTS = 3, /* the first is none */
    STREAMS = 2,
    SCHEDULES = 3,
    MEMBERS_MAX = 64,
    KEYS = 10,
    NEEDS_MAX = 12,
    OP_JOBS = 3,
    OP_FINISHES = 4,
    OP_IDS = 6,
    FREE_MAX = 200, /* more than are ever ready: all are claimed, in whatever order */
    LEASE_MS = 15000,
};

/* ---- an operation --------------------------------------------------------------------- */

typedef enum op_kind {
    OP_ENQUEUE,
    OP_CLAIM,
    OP_CLAIM_FREE,
    OP_FINISH,
    OP_BEAT,
    OP_RECLAIM,
    OP_RETRY,
    OP_CANCEL,
    OP_ACCEPT,
    OP_PAUSE_KIND,
    OP_PAUSE_ACCOUNT,
    OP_PURGE,
    OP_CYCLE,
    OP_MOVE,
    OP_ADVANCE,
    OP_MEMBER_BEAT,
    OP_TAKE,
    OP_RELEASE,
    OP_GRANT,
    OP_BAD_STATE,
    OP_INTENT,
    OP_INTENT_END,
    OP_SCHEDULE,
    OP_FIRE,
    OP_ALERT,
    OP_NOTE,
    OP_BATCH,
    OP_ACCOUNT,
    OP_KINDS,
} op_kind;

struct job_spec {
    uint8_t account, kind, key; /* key 0: none */
    uint8_t priority, lane, level;
    uint16_t attempts, attempts_max;
    uint32_t cycle;
    uint32_t needs[3];
    uint32_t needs_count;
    bool needs_first; /* of the same call */
    bool force, preemptible, part;
    uint64_t size_bytes, not_before;
};

struct finish_spec {
    uint32_t job;
    bool stale; /* its token is another's */
    tide_row_state state;
    int16_t attempts_add;
    uint64_t not_before, bytes_done;
    tide_status status;
    uint8_t resume;  /* 0: not set, 1: cleared, else a text of that number */
    uint8_t payload; /* 0: kept */
    uint8_t item;    /* 0: none, else which */
    tide_status item_status;
    uint8_t effect; /* 0: none, 1: works, 2: fails */
    struct job_spec children[2];
    size_t children_count;
};

struct op {
    op_kind kind;
    uint64_t now, owner, token;
    struct job_spec jobs[OP_JOBS];
    struct finish_spec finishes[OP_FINISHES];
    uint32_t ids[OP_IDS]; /* jobs */
    bool stale[OP_IDS];
    size_t count; /* of whichever of these is used */
    uint32_t a, b, c;
    uint64_t number, more;
    bool flag;
};

/* What the first side answered, in names, for the model. */
struct answer {
    tide_status rc;
    uint32_t jobs[2 * FREE_MAX];
    bool flags[OP_JOBS + OP_FINISHES + OP_IDS]; /* existed, had, applied */
    uint32_t open_deps[OP_JOBS];
    size_t count, running;
    uint32_t children[2 * OP_FINISHES];
    bool children_existed[2 * OP_FINISHES];
    size_t children_count;
    uint64_t number;
};

/* ---- a side ---------------------------------------------------------------------------- */

/* What a rollback takes back besides the ledger's rows. */
struct side_marks {
    uint32_t jobs_count, cycles_count;
    uint64_t schedules[SCHEDULES];
    uint64_t tokens[JOBS_MAX + 1]; /* of a job's last claim */
};

struct side {
    struct store store;
    tide_ledger *ledgers[PROCESSES];
    tide_ledger *ledger; /* of the transaction */
    tide_tx *tx;
    struct tide_changes changes;
    tide_error err;
    uint64_t jobs[JOBS_MAX + 1]; /* ids by name */
    uint64_t cycles[CYCLES_MAX + 1];
    uint32_t kinds[KINDS], accounts[ACCOUNTS];
    uint64_t streams[STREAMS];
    struct side_marks is, before, part; /* before the transaction, before the savepoint */
    tide_buf said;
};

void side_open(struct side *side, const struct store_kind *kind, uint64_t seed);
void side_close(struct side *side);
/* All processes end and start again. */
void side_restart(struct side *side, bool clean);
void say(struct side *side, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint32_t job_name(const struct side *side, uint64_t id); /* UINT32_MAX: unknown */
uint32_t cycle_name(const struct side *side, uint64_t id);

/* Inside side->tx.  What it answered is added to side->said. */
void op_run(struct side *side, const struct op *op, struct answer *answer);
void op_run_record(struct side *side, const struct op *op, struct answer *answer);
/* Everything that can be listed. */
void state_say(struct side *side, uint64_t now);

/* ---- the model ------------------------------------------------------------------------- */

struct model_job {
    uint64_t owner, not_before, finished;
    uint32_t needs[NEEDS_MAX];
    uint32_t needs_count, cycle;
    uint16_t attempts, attempts_max;
    uint8_t account, kind, key, priority, lane;
    bool force, gone, wanted; /* wanted: to be canceled, while it runs */
    tide_row_state state;
};

struct model_member {
    uint64_t owner, until;
    bool dead;
};

/* A plain value, so that what is rolled back is a copy taken back. */
struct model {
    struct model_job jobs[JOBS_MAX + 1]; /* by name */
    uint32_t jobs_count;
    uint32_t cycle_stream[CYCLES_MAX + 1];
    uint64_t cycle_ordinal[CYCLES_MAX + 1];
    uint32_t cycles_count;
    uint64_t ordinal[STREAMS], ordinal_next[STREAMS];
    bool kind_paused[KINDS], account_paused[ACCOUNTS];
    uint64_t account_owner[ACCOUNTS];
    struct model_member members[MEMBERS_MAX];
    size_t members_count;
};

uint32_t model_open_deps(const struct model *m, uint32_t job);
bool model_ready(const struct model *m, uint32_t job);
bool model_lives(const struct model *m, uint64_t owner);
/* Unfinished or failed jobs of a cycle. */
uint64_t model_cycle_count(const struct model *m, uint32_t cycle, bool failed);
/* Whether the operation may be answered so; then it is done in the model too. */
void model_apply(struct model *m, const struct op *op, const struct answer *answer);
/* Its jobs and windows are as the side's. */
void model_compare(const struct model *m, struct side *side);

/* ---- choosing -------------------------------------------------------------------------- */

struct chooser {
    tide_rng rng;
    uint64_t now;
    uint64_t token;
    uint64_t owner; /* of the process whose transaction it is */
    bool fleet;     /* operations of a shared ledger are chosen too */
};
void op_choose(struct chooser *chooser, const struct model *m, struct op *op);

#endif
