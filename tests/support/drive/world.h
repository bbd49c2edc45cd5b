/* world.h - a drive in memory: items online, files here, a baseline, and an executor of plans.
 *
 * Contents are numbers; their size and hashes follow from them.  The executor does what a plan's
 * action says, one at a time, with the gates of S10: an action whose rows are no longer as planned
 * is superseded and changes nothing.  It writes the baseline as the store does. */
#ifndef TIDE_TESTS_SUPPORT_DRIVE_WORLD_H
#define TIDE_TESTS_SUPPORT_DRIVE_WORLD_H

#include "base/rng.h"
#include "drive/plan/plan.h"

enum { DRIVE_NAME_BYTES = 96, DRIVE_SEED_NAMES = 6 };

struct drive_item {
    uint64_t id, parent;
    char name[DRIVE_NAME_BYTES];
    char was_name[DRIVE_NAME_BYTES]; /* while stepped aside */
    uint64_t content;
    uint64_t birth; /* of local rows: with id, the identity; an edit by rename makes a new one */
    uint64_t inode; /* of local rows; 0: the number of its birth */
    uint64_t mtime_ns, ctime_ns;
    tide_drive_kind kind;
    bool alive, stepped, unsure, skipped, forgotten, no_hash;
};

struct drive_record {
    uint64_t item, parent, row, birth, content;
    char name[DRIVE_NAME_BYTES], local_name[DRIVE_NAME_BYTES];
    tide_drive_kind kind;
    bool alive;
};

struct drive_side {
    struct drive_item *items;
    size_t count, capacity;
};

struct drive_world {
    struct drive_side online, here;
    struct drive_record *records;
    size_t records_count, records_capacity;
    uint64_t next_id, next_content, now_ms;
    bool scan_incomplete; /* nothing missing here is proved */
    uint64_t uploads, downloads, deletions;
    /* rows for the planner */
    struct tide_drive_trees trees;
    struct tide_drive_remote *remotes;
    struct tide_drive_local *locals;
    struct tide_drive_base *bases;
};

struct drive_world *drive_world_new(void);
void drive_world_free(struct drive_world *world);

/* ---- users ---- */

struct drive_item *drive_add(struct drive_world *world, struct drive_side *side, uint64_t parent,
                             const char *name, tide_drive_kind kind, uint64_t content);
struct drive_item *drive_find(struct drive_side *side, uint64_t id); /* alive; NULL */
struct drive_item *drive_child(struct drive_side *side, uint64_t parent, const char *name);
void drive_delete(struct drive_side *side, uint64_t id); /* with all beneath */
/* false: it would be beneath itself, or the name is taken. */
bool drive_move(struct drive_side *side, uint64_t id, uint64_t parent, const char *name);
void drive_edit(struct drive_world *world, struct drive_side *side, uint64_t id, bool by_rename);
/* One random act of a user. */
void drive_act(struct drive_world *world, struct drive_side *side, tide_rng *rng);

/* ---- plans ---- */

/* The rows as the store would give them. */
const struct tide_drive_trees *drive_rows(struct drive_world *world);
struct tide_drive_plan_options drive_options(const struct drive_world *world);
/* false: superseded. */
bool drive_apply(struct drive_world *world, const struct tide_drive_action *action);
/* Carries out READY actions in a random order that keeps the edges, at most `most`. */
size_t drive_run(struct drive_world *world, const struct tide_drive_plan *plan, tide_rng *rng,
                 size_t most);
/* Plans and runs until nothing is left; the number of rounds, or 0: it does not end. */
unsigned drive_sync(struct drive_world *world, tide_rng *rng);
struct drive_record *drive_record_of(struct drive_world *world, uint64_t item);

/* ---- checks ---- */

/* NULL: both sides are one tree, and the baseline says so (I2, I3); else what differs. */
const char *drive_differs(struct drive_world *world);
bool drive_has_content(const struct drive_side *side, uint64_t content);
void drive_print(struct drive_world *world, const struct tide_drive_plan *plan);

#endif
