/* drive_sim.h - a drive in the simulated world: planner, store, two trees, two users, crashes.
 *
 * The two trees are in memory (support/drive/world.h); the state is SQLite on a disk that forgets.
 * A life opens the state, reads the feed, scans, plans, and carries actions out one by one, each
 * with its gates (S10) and one transaction; users go on meanwhile.  It may die at any step.  A last,
 * calm life comes to rest.  Rules, by the invariants of the spec:
 *
 *   DRI1  content that a user made and none deleted or replaced is on both sides in the end (I1).
 *   DRI2  both trees are equal (I2).
 *   DRI3  the baseline has what both have, and no more (I3, I8).
 *   DRI5  no deletion over the guard without consent (I5).
 *   DRI16  no temporary name at rest, and no new name but conflict names (I15, I16).
 *   DRI20  it comes to rest, and then a plan is empty (I11, I20).
 */
#ifndef TIDE_TESTS_SIM_DRIVE_SIM_H
#define TIDE_TESTS_SIM_DRIVE_SIM_H

#include "db/db.h"
#include "drive/store/store.h"
#include "sim.h"
#include "support/drive/world.h"

/* Bugs on purpose, each found by a rule. */
enum plant {
    PLANT_NONE,
    PLANT_TOKEN_FIRST,     /* the token is committed before its items */
    PLANT_INCOMPLETE_SCAN, /* a scan that broke off counts as complete */
    PLANT_NO_DIRECTORY_SYNC,
    PLANT_ASIDE_UNRECORDED, /* a step aside is not recorded first */
    PLANT_UPLOAD_TWICE,     /* an upload without an answer is repeated under another name */
    PLANT_DELETE_UNCHECKED, /* a local delete without the hash gate */
    PLANT_OVERWRITE_BY_NAME,
    PLANT_PLACE_UNCHECKED, /* a download over a file that changed since it was planned */
    PLANT_EMPTY_TOKEN,     /* an empty round moves the token */
    PLANT_BASE_OF_LATER,   /* the baseline has bytes that came after the upload */
    PLANT_RECURSIVE_DELETE,
    PLANT_GUARD_IGNORED,
    PLANT_MOVE_ONTO, /* a move replaces what has the name */
    PLANTS
};
extern const char *const drive_plant_names[PLANTS];
extern const char *const drive_plant_rules[PLANTS]; /* which rule must find it */

enum fault {
    F1_BETWEEN_PAGES,
    F2_BEFORE_PLANNING,
    F3_PLACED_NOT_COMMITTED,
    F5_ANSWERED_NOT_COMMITTED,
    F6_ASIDE_NO_DOWNLOAD,
    F7_MID_SWAP,
    F9_DELETED_NOT_COMMITTED,
    F10_MID_MOVE,
    F11_UNSYNCED_DIRECTORY,
    F12_UNMOUNTED_MID_SCAN,
    F14_UNREADABLE,
    F17_CHANGED_WHILE_UPLOADING,
    F18_CHANGED_WHILE_PLACING,
    F19_EDITOR_RENAME,
    F25_ONE_500,
    F27_GONE_TOKEN,
    F28_REORDERED,
    F29_TOMBSTONE_LOST,
    F30_CREATED_AGAIN,
    F31_ECHO,
    F32_TAG_ALONE,
    F40_CONSENT,
    FAULTS
};
extern const char *const drive_fault_names[FAULTS];

struct drive_totals {
    uint64_t faults[FAULTS];
    uint64_t lives, plans, actions, superseded, transfers;
};

struct drive_stage {
    uint64_t seed;
    enum plant plant;
    tide_rng rng;
    tide_sim *sim;
    struct drive_world *world;
    tide_db db;
    bool is_open;
    bool calm;
    struct drive_totals totals;

    /* feed.c */
    struct drive_item *shadow;   /* as the feed last showed them */
    struct drive_item *previous; /* and before that */
    uint64_t *versions;
    size_t shadow_count, shadow_capacity;
    uint64_t feed_clock;
    bool lost_tombstone; /* only a full listing can tell what is there */

    /* rows of the store and of the world */
    uint64_t (*rows)[2];
    size_t rows_count, rows_capacity;

    bool *made;                    /* by content: by a user */
    bool *replaced;                /* by content: a user deleted or replaced it */
    uint64_t unconsented, largest; /* deletions, and the baseline (I5) */
    /* The job of an upload that overwrites: it is in the ledger, and runs again after a crash (D38). */
    struct tide_drive_action upload;
    uint64_t upload_content; /* 0: none */
    struct drive_item undo;  /* a local effect that is not durable yet */
    bool undo_pending, undo_is_new;
};

static inline tide_rows drive_db(struct drive_stage *stage)
{
    return (tide_rows){.sqlite = stage->db.handle};
}
/* The world may die here; counted.  true: it did. */
bool drive_may_die(struct drive_stage *stage, enum fault fault);
bool drive_happens(struct drive_stage *stage, enum fault fault, uint32_t one_in);
void drive_user(struct drive_stage *stage, struct drive_side *side);
void drive_user_edits(struct drive_stage *stage, struct drive_side *side, uint64_t id);
uint64_t drive_world_row(struct drive_stage *stage, uint64_t row); /* of the store's; 0 */
void drive_note_row(struct drive_stage *stage, uint64_t row, uint64_t world_row);

/* feed.c */
void drive_feed_look(struct drive_stage *stage); /* after every change online */
tide_status drive_observe_online(struct drive_stage *stage, tide_error *err);
void drive_seen_of(struct drive_stage *stage, const struct drive_item *item,
                   struct tide_drive_seen *seen_out, char texts[2][32]);
/* scan.c */
tide_status drive_observe_here(struct drive_stage *stage, tide_error *err);
tide_status drive_put_row(struct drive_stage *stage, uint64_t scan, uint64_t parent,
                          const struct drive_item *item, uint64_t *row_out, tide_error *err);
/* exec.c */
tide_status drive_finish_upload(struct drive_stage *stage, tide_error *err);
tide_status drive_carry_out(struct drive_stage *stage, const struct tide_drive_action *action,
                            const struct tide_drive_trees *trees, tide_error *err);

#endif
