/* drive_sim.h - a drive in the simulated world: planner, store, two trees, two users, crashes.
 *
 * The two trees are in memory (support/drive/world.h); the state is SQLite on a disk that forgets.
 * A life opens the state, reads the feed, scans, plans, and carries actions out one by one, each
 * with its gates (S10) and one transaction; users go on meanwhile.  It may die at any step.  The last
 * life first comes to rest with one item that cannot be transferred, then without it, then after
 * moves alone, then after a time in a one-way mode (rest.c).  Transfers themselves, with sessions,
 * addresses and partial files, are in transfers.h.  Rules, by the invariants of the spec:
 *
 *   DRI1  content that a user made and none deleted or replaced is on both sides in the end (I1).
 *   DRI2  both trees are equal (I2); a file that the server rewrote may differ from its source.
 *   DRI3  the baseline has what both have, and no more (I3, I8).
 *   DRI4  nothing is deleted on one side that is on the other, though it could not be seen (I4).
 *   DRI5  no deletion over the guard without consent (I5).
 *   DRI6  moves transfer nothing, and neither does content that both sides have (I6).
 *   DRI10  of two actions of one item, or for one name, one waits for the other (I10).
 *   DRI12  in a world that stands still no action meets something unexpected: the order of the plan
 *          is right (I12, D23).
 *   DRI13  an item that always fails keeps nothing else back (I13).
 *   DRI16  no temporary name at rest, and no new name but conflict names (I15, I16).
 *   DRI17  a mode keeps off the side it forbids, and planning alone changes nothing (I17).
 *   DRI19  a file is set aside only if both sides changed it, and differently (I19).
 *   DRI20  it comes to rest, and then a plan is empty (I11, I20).
 *   DRI21  when no plan is due, a plan is empty (store.h DST7).
 *   DRI22  all that differs is marked (marks.h DMA1, DMA2).
 */
#ifndef TIDE_TESTS_SIM_DRIVE_SIM_H
#define TIDE_TESTS_SIM_DRIVE_SIM_H

#include "db/db.h"
#include "drive/store/store.h"
#include "sim.h"
#include "support/drive/world.h"

enum { DRIVE_CONTENTS_MAX = 8192 };

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
    PLANT_MOVE_ONTO,        /* a move replaces what has the name */
    PLANT_CTIME_IGNORED,    /* a file whose mtime and size are the same is not hashed */
    PLANT_QUICK_HASH,       /* the quick hash says whether a file changed here */
    PLANT_OVERFLOW_IGNORED, /* events that were lost are not made up for by a scan */
    PLANT_MOUNT_BELIEVED,   /* a folder whose disk is gone is an empty folder */
    PLANT_LOCK_BELIEVED,    /* an item that may not be read is gone */
    PLANT_MOVE_BY_COPY,     /* a move is made by sending the bytes again */
    PLANT_ITEM_EDGES,       /* the steps of an item run in any order */
    PLANT_NO_EDGES,         /* all actions run in any order */
    PLANT_FAILURE_BLOCKS,   /* nothing is done while an item is owed */
    PLANT_MODE_IGNORED,     /* */
    PLANT_DRY_RUN_WRITES,   /* */
    PLANT_COPY_UNGATED,     /* a file is set aside without a look at the other version */
    PLANT_CHANGE_UNNOTED,   /* a scan writes rows and no plan is due */
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
    F13_NESTED_MOUNT_GONE,
    F14_UNREADABLE,
    F15_OVERFLOW,
    F16_DISK_FULL,
    F17_CHANGED_WHILE_UPLOADING,
    F18_CHANGED_WHILE_PLACING,
    F19_EDITOR_RENAME,
    F20_BACKUP_AND_NEW,
    F21_INODE_AGAIN,
    F22_MTIME_PUT_BACK,
    F23_PAGES_SWAPPED,
    F24_CLOCK_BACK,
    F25_ONE_500,
    F26_THROTTLED,
    F27_GONE_TOKEN,
    F28_REORDERED,
    F29_TOMBSTONE_LOST,
    F30_CREATED_AGAIN,
    F31_ECHO,
    F32_TAG_ALONE,
    F33_REWRITTEN,
    F36_LOCKED,
    F37_NEVER_FITS,
    F38_INTO_EACH_OTHER,
    F39_RENAMED_WHILE_UPLOADING,
    F40_CONSENT,
    FAULTS
};
extern const char *const drive_fault_names[FAULTS];

struct drive_totals {
    uint64_t faults[FAULTS];
    uint64_t lives, plans, spared, actions, superseded, transfers;
    uint64_t scans, folders; /* folders: only of those in which something happened */
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
    bool undone;    /* an action of the plan was not carried out */
    bool deathless; /* faults, but no crash */
    tide_drive_mode mode;
    struct drive_totals totals;

    /* feed.c */
    struct drive_item *shadow;   /* as the feed last showed them */
    struct drive_item *previous; /* and before that */
    uint64_t *versions;
    size_t shadow_count, shadow_capacity;
    uint64_t feed_clock;
    bool lost_tombstone; /* only a full listing can tell what is there */
    uint64_t locked;     /* a folder online that may not be read for now; 0 */
    uint64_t rewrites;   /* an item that the server rewrites before the next round; 0 */

    /* scan.c, and the watch that spares scans */
    struct drive_item *here_was;
    size_t here_count, here_capacity;
    uint64_t ticks;
    bool no_birth;        /* a file system without birth times */
    bool keep_mtime;      /* a user sets it */
    bool dirty;           /* everything must be scanned */
    bool overflowed;      /* events were lost */
    uint64_t events[256]; /* folders in which something happened */
    size_t events_count;
    uint64_t unmounted; /* a folder here whose disk is gone for now; 0 */

    /* rows of the store and of the world */
    uint64_t (*rows)[2];
    size_t rows_count, rows_capacity;

    bool *made;                    /* by content: by a user */
    bool *replaced;                /* by content: a user deleted or replaced it */
    uint64_t *quick;               /* by content: another one with the same quick hash; 0 */
    uint64_t *rewritten;           /* by content: what the server made it from; 0 */
    uint64_t bad;                  /* content that never arrives here; 0 */
    uint64_t unconsented, largest; /* deletions, and the baseline (I5) */
    /* The job of an upload that overwrites: it is in the ledger, and runs again after a crash (D38). */
    struct tide_drive_action upload;
    uint64_t upload_content; /* 0: none */
    struct drive_item undo;  /* a local effect that is not durable yet */
    bool undo_pending, undo_is_new;
};

static inline tide_rows drive_db(struct drive_stage *stage)
{
    return (tide_rows){.sqlite = stage->db.handle, .number = 1};
}
/* The world may die here; counted.  true: it did. */
bool drive_may_die(struct drive_stage *stage, enum fault fault);
bool drive_happens(struct drive_stage *stage, enum fault fault, uint32_t one_in);
uint64_t drive_world_row(struct drive_stage *stage, uint64_t row); /* of the store's; 0 */
uint64_t drive_world_item(struct drive_stage *stage, uint64_t item);
void drive_note_row(struct drive_stage *stage, uint64_t row, uint64_t world_row);
bool drive_is_beneath(struct drive_side *side, uint64_t id, uint64_t folder);    /* or is it */
uint64_t drive_ask(struct drive_stage *stage, const char *sql, uint64_t number); /* 0: none */
/* A life's steps; *actions_out: how much was planned. */
tide_status drive_open_state(struct drive_stage *stage, tide_error *err);
void drive_close_state(struct drive_stage *stage);
tide_status drive_round(struct drive_stage *stage, size_t *actions_out, tide_error *err);

/* users.c */
void drive_user(struct drive_stage *stage, struct drive_side *side);
void drive_any_user(struct drive_stage *stage);
void drive_user_edits(struct drive_stage *stage, struct drive_side *side, uint64_t id);
void drive_user_moves(struct drive_stage *stage, struct drive_side *side);
void drive_touch(struct drive_stage *stage); /* times of what changed here */
uint64_t drive_quick(const struct drive_stage *stage, uint64_t content);
struct tide_drive_content drive_content(const struct drive_stage *stage, uint64_t content,
                                        bool here);

/* feed.c */
void drive_feed_look(struct drive_stage *stage); /* after every change online */
tide_status drive_observe_online(struct drive_stage *stage, tide_error *err);
void drive_seen_of(struct drive_stage *stage, const struct drive_item *item,
                   struct tide_drive_seen *seen_out, char texts[2][32]);
/* scan.c */
tide_status drive_observe_here(struct drive_stage *stage, tide_error *err);
tide_status drive_put_row(struct drive_stage *stage, uint64_t parent, const struct drive_item *item,
                          uint64_t *row_out, tide_error *err);
/* exec.c */
tide_status drive_finish_upload(struct drive_stage *stage, tide_error *err);
tide_status drive_carry_out(struct drive_stage *stage, const struct tide_drive_action *action,
                            const struct tide_drive_trees *trees, tide_error *err);

/* rules.c */
void drive_check_plan(struct drive_stage *stage, const struct tide_drive_plan *plan);
void drive_check_rest(struct drive_stage *stage); /* all rules of a world at rest */
void drive_check_but_bad(struct drive_stage *stage);
/* Both trees, the rows and the plan, to stderr. */
void drive_explain(struct drive_stage *stage, const struct tide_drive_plan *plan);
uint64_t drive_side_hash(const struct drive_side *side);
/* rest.c */
void drive_rest(struct drive_stage *stage);

void drive_sim_run(uint64_t seed, enum plant plant, struct drive_totals *totals_out);

#endif
