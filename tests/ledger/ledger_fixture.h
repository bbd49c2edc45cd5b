/* ledger_fixture.h - what every file of the conformance suite needs.
 *
 * The suite holds an engine of ledger/ledger.h to its contract.  It goes through that header
 * alone, so that SQLite in a real file, SQLite on the simulated disk and PostgreSQL run
 * the same tests; what is true of one store only is in a file that says so
 * (sqlite_file.c).  The engine is chosen on the command line:
 *
 *     ledger_test sqlite|simulated|postgres [PART OF A FILE'S NAME]
 *
 * Each test begins with an empty ledger of its own. */
#ifndef TIDE_TESTS_LEDGER_FIXTURE_H
#define TIDE_TESTS_LEDGER_FIXTURE_H

#include "base/check.h"
#include "base/limits.h"
#include "base/rng.h"
#include "ledger/ledger.h"
#include "sim.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW      1790000000000u
#define OK(call) assert_int_equal((call), TIDE_OK)

/* ---- stores ------------------------------------------------------------------------- */

enum { STORE_PATH_BYTES = 400 };

/* A place for one ledger, and the world it lives in. */
struct store {
    const struct store_kind *kind;
    tide_world *world;
    tide_sim *sim; /* simulated only */
    char dir[64];  /* SQLite in a real file only */
    char path[STORE_PATH_BYTES];
};

struct store_kind {
    const char *name;
    void (*make)(struct store *store, uint64_t seed);
    void (*destroy)(struct store *store);
    void (*crash)(struct store *store); /* the machine dies; NULL: cannot be had */
};

/* NULL: there is none of that name. */
const struct store_kind *store_kind_find(const char *name);
/* Once before the first and after the last store of a kind. */
bool store_kind_begin(const struct store_kind *kind); /* false: it cannot run here */
void store_kind_end(const struct store_kind *kind);

void store_make(struct store *store, const struct store_kind *kind, uint64_t seed);
void store_destroy(struct store *store);
tide_ledger *store_open(struct store *store, const char *run_id, bool read_only);

/* ---- the fixture ---------------------------------------------------------------------- */

/* What most tests need: an open ledger with two kinds, an account and changes. */
struct fixture {
    struct store store;
    tide_ledger *ledger;
    tide_tx *tx;
    uint32_t once;  /* scope: pending */
    uint32_t alone; /* scope: pending and running */
    uint32_t account;
    uint64_t token;
    struct tide_changes changes;
    tide_error err;
};

extern const struct store_kind *fixture_kind; /* of the tests that run now */

int set_up(void **state);
int tear_down(void **state);
#define CASE(name) TEST_ON(name, struct fixture *f, set_up, tear_down)

void begin(struct fixture *f);
void undo(struct fixture *f);
void commit(struct fixture *f); /* and tests every invariant */
void check(struct fixture *f, tide_ledger *ledger);
/* The process ends and starts again.  Unclean: with all that was in flight; where the
 * store can, the machine loses its power. */
void reopen(struct fixture *f, bool clean);

/* ---- shorthand: each in a transaction of its own ----------------------------------------- */

struct tide_job_new job_of(const struct fixture *f, const char *key);
struct tide_enqueued add(struct fixture *f, const struct tide_job_new *job);
uint64_t add_plain(struct fixture *f);
uint64_t add_free(struct fixture *f); /* of no account */
uint64_t add_needing(struct fixture *f, const uint64_t *needs, size_t count);
/* The token, or 0 where the job could not be had. */
uint64_t claim_as(struct fixture *f, uint64_t id, uint64_t owner);
uint64_t claim(struct fixture *f, uint64_t id); /* as 7 */
bool finish(struct fixture *f, const struct tide_finish *finish);
bool end_as(struct fixture *f, uint64_t id, uint64_t token, tide_row_state state);
void run_to(struct fixture *f, uint64_t id, tide_row_state state);
size_t retry(struct fixture *f, uint64_t id);
/* *running_out may be NULL. */
size_t cancel(struct fixture *f, uint64_t id, bool *running_out);
size_t reclaim(struct fixture *f, uint64_t owner, uint64_t now_unix_ms);

/* ---- looking ------------------------------------------------------------------------------ */

struct seen_job {
    struct tide_job_row row;
    char payload[64], resume[64], error[64], key[64], run[32], account_name[64], kind_name[64];
    size_t count;
};
struct seen_job look(struct fixture *f, uint64_t id);
void assert_state(struct fixture *f, uint64_t id, tide_row_state state);
void keep(char *room, size_t room_bytes, tide_text text);

size_t refill(struct fixture *f, uint32_t account, struct tide_brief *briefs, size_t max);
size_t list(struct fixture *f, struct tide_job_filter filter);
bool note_is(struct fixture *f, const char *key, const char *value);
/* The account's row without its borrowed text. */
struct tide_account_row account_row(struct fixture *f, uint32_t account);

/* ---- cycles --------------------------------------------------------------------------------- */

/* Inside a transaction. */
uint64_t stream_of(struct fixture *f, const char *name);
uint64_t cycle_with_jobs(struct fixture *f, uint64_t stream, const char *to, size_t count,
                         uint64_t *ids);

struct seen_cycles {
    struct tide_cycle_row rows[8];
    size_t count;
};
struct seen_cycles cycles_of(struct fixture *f, uint64_t stream);
tide_status move_cursor(struct fixture *f, uint64_t stream, uint64_t from, uint64_t to);

#endif
