/* plan.h - what to do so that both sides become one tree: a pure function of three trees.
 *
 * Rows of the three trees come in, actions with their order go out; nothing is read or changed.
 * How it decides:
 *
 *   claim.c   which local row is which item of the baseline (D22)
 *   nodes.c   rows become nodes: an item with its remote, local and baseline row (D19, D26)
 *   judge.c   what changed on each side; whether the item is to exist, and whose bytes (D17, D18)
 *   place.c   where it is to be: moves, folders that must live on, names wanted twice (D24)
 *   act.c     what each side lacks to look like that
 *   edges.c   what waits for what (D23), and who steps aside in a circle
 *   guard.c   deletions that need consent (S15), writes that the mode forbids (D20), what is owed
 *
 * So the matrix is nowhere as a table: a target tree is decided first, and actions are the
 * difference between it and each side.  tests/unit/drive/drive_matrix_test.c has the table.
 *
 * Not all rows need to be given.  The working set is: every row that differs between the trees, all
 * ancestors of these, and every row of any tree that has the place (parent and name key) that one of
 * these has or had.  Rows that are the same in all trees then need not be in memory
 * (docs/decisions.md, 59).
 *
 * Invariants (tests/unit/drive/drive_plan_test.c):
 *   DPL1  same rows and options, same plan; a plan for trees that agree is empty (I11).
 *   DPL2  only an item with a baseline and proof of its absence is deleted, moved or dropped, and
 *         none beneath an item that is unsure (I4).
 *   DPL3  the edges have no circle (I12), and an action that must wait makes all wait that come
 *         after it.
 *   DPL4  at most one action of a verb for each item and row; one taker for each name; all actions of
 *         one item have an order (I10).
 *   DPL5  no action writes to a side that the mode forbids (I17).
 *   DPL6  while something here could not be read, nothing is deleted online: what is missing may have been
 *         moved there, and a deletion would end its history.  All else goes on, and the deletions with the
 *         first plan after everything could be read, or after it was removed or is ignored.
 */
#ifndef TIDE_DRIVE_PLAN_PLAN_H
#define TIDE_DRIVE_PLAN_PLAN_H

#include "base/mem.h"
#include "base/status.h"
#include "drive/names/conflict.h"
#include "drive/rows.h"

enum { TIDE_DRIVE_PLAN_ROWS_MAX = 1 << 24 }; /* of each tree, in one call */

/* Sorted by item or row, which are unique; the texts outlive the plan. */
struct tide_drive_trees {
    const struct tide_drive_remote *remotes;
    size_t remotes_count;
    const struct tide_drive_local *locals;
    size_t locals_count;
    const struct tide_drive_base *bases;
    size_t bases_count;
    /* What is owed and not to be tried yet (D4): items and rows, each sorted. */
    const uint64_t *owed_items, *owed_rows;
    size_t owed_items_count, owed_rows_count;
    /* Nothing is written online to these and beneath them (D37); sorted. */
    const uint64_t *closed_items;
    size_t closed_items_count;
    bool unread_here; /* a folder or an entry, anywhere here (DPL6) */
};

typedef enum tide_drive_mode {
    TIDE_DRIVE_TWO_WAY,
    TIDE_DRIVE_DOWNLOAD_ONLY,
    TIDE_DRIVE_UPLOAD_ONLY,
} tide_drive_mode;

/* The big-delete guard (S15).  T is the largest baseline of the last 24 hours. */
struct tide_drive_guard {
    uint64_t done_24h; /* deletions of both sides, those with consent not counted */
    uint64_t largest_24h;
    const uint64_t *consented; /* items, sorted */
    size_t consented_count;
};

struct tide_drive_plan_options {
    tide_drive_mode mode;
    struct tide_drive_guard guard;
    struct tide_drive_stamp stamp; /* for conflict names */
};

typedef enum tide_drive_verb {
    TIDE_DRIVE_UP,           /* overwrite by id */
    TIDE_DRIVE_NEW,          /* create a file online */
    TIDE_DRIVE_DOWN,         /* create or overwrite here */
    TIDE_DRIVE_MKDIR_REMOTE, /* */
    TIDE_DRIVE_MKDIR_LOCAL,  /* */
    TIDE_DRIVE_MOVE_REMOTE,  /* */
    TIDE_DRIVE_MOVE_LOCAL,   /* */
    TIDE_DRIVE_DEL_REMOTE,   /* to the recycle bin; a folder when it is empty (S18) */
    TIDE_DRIVE_DEL_LOCAL,    /* to the trash, after its strong hash was compared (S4) */
    TIDE_DRIVE_BASE,         /* both sides agree: write the baseline */
    TIDE_DRIVE_DROP,         /* both sides lost it: remove the baseline */
} tide_drive_verb;

/* D21.  From TIDE_DRIVE_K3 on the text says what was done; the others are conflicts. */
typedef enum tide_drive_notice {
    TIDE_DRIVE_QUIET = 0,
    TIDE_DRIVE_K1 = 1, /* edited on both sides: both kept */
    TIDE_DRIVE_K2 = 2, /* created on both sides: both kept */
    TIDE_DRIVE_K3 = 3, /* kept: changed there, deleted here */
    TIDE_DRIVE_K4 = 4, /* kept: moved here, deleted online */
    TIDE_DRIVE_K5 = 5, /* kept: moved online, deleted here */
    TIDE_DRIVE_K6 = 6, /* a file and a folder want one name */
    TIDE_DRIVE_K7 = 7, /* moved on both sides: the place online is used */
    TIDE_DRIVE_K8 = 8, /* two items want one name */
    /* A download replaced one of several names of a file: no plan decides it, a placement finds it (D28). */
    TIDE_DRIVE_PARTED = 9,
} tide_drive_notice;

typedef enum tide_drive_action_state {
    TIDE_DRIVE_READY,
    TIDE_DRIVE_WAITS_CONSENT, /* S15 */
    TIDE_DRIVE_HELD_MODE,     /* D20 */
    TIDE_DRIVE_HELD_NAME,     /* its name is taken by what is not synced, or twice (D16, D30) */
    TIDE_DRIVE_HELD_OTHER,    /* waits for an action that is held or waits */
    TIDE_DRIVE_HELD_OWED,     /* it failed, and waits for its next try (D4) */
    TIDE_DRIVE_HELD_UNREAD,   /* it may be where something could not be read (DPL6) */
} tide_drive_action_state;

struct tide_drive_action {
    uint64_t item;        /* 0: it has none yet */
    uint64_t row;         /* local; 0: it has none yet */
    uint64_t was_item;    /* of its baseline, where that is another one (D26); else 0 */
    uint64_t copy_of;     /* k1, k2: the item whose other version this is; else 0 */
    uint64_t parent_item; /* of its place afterwards; 0: that folder is not online yet */
    uint64_t parent_row;  /* the same here */
    tide_text name;       /* afterwards */
    uint64_t bytes;       /* to transfer */
    tide_drive_verb verb;
    tide_drive_kind kind;
    tide_drive_notice notice;
    tide_drive_action_state state;
    bool compare; /* DOWN: there is no hash; place it only if it differs from the file here (D19) */
    bool step_aside; /* MOVE_*: only to free its name (D24) */
};

struct tide_drive_edge {
    uint32_t before, after; /* actions */
};

struct tide_drive_plan {
    tide_arena arena; /* new names */
    tide_mem *mem;
    struct tide_drive_action *actions;
    size_t actions_count, actions_capacity;
    struct tide_drive_edge *edges;
    size_t edges_count, edges_capacity;
    uint64_t deletions; /* what the guard counted, with those done in 24 h */
    bool guarded;       /* deletions wait for consent */
};

/* The caller frees the plan, also after a failure.  TIDE_NO_MEMORY, TIDE_FULL. */
tide_status tide_drive_plan(const struct tide_drive_trees *trees,
                            const struct tide_drive_plan_options *options, tide_mem *mem,
                            struct tide_drive_plan *plan_out, tide_error *err);
void tide_drive_plan_done(struct tide_drive_plan *plan); /* a zeroed one is fine */

bool tide_drive_verb_is_remote(tide_drive_verb verb); /* it writes online */
bool tide_drive_verb_is_local(tide_drive_verb verb);
const char *tide_drive_verb_name(tide_drive_verb verb);

#endif
