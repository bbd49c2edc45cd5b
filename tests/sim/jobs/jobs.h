/* jobs.h - a drive as it is, its jobs on the engine, in the simulated world: a real folder, the cloud in a
 * box behind a network that fails, users on both sides, and processes that die at any step.
 *
 * A seed is a few lives.  Before and while one runs, users edit, move and delete on both sides, and the
 * server has troubles.  In the end all troubles cease, and a calm life syncs until both trees are
 * equal.  Rules, by the invariants of the spec:
 *
 *   DJO1  content that a user made and none deleted or replaced is on both sides in the end (I1).
 *   DJO2  it comes to rest: both trees are equal, nothing is owed or in doubt (I2, I20).
 *   DJO5  many deletions wait for consent, over restarts (I5).
 *   DJO7  no name of a user has bytes that no user made (I7).
 *   DJO11  at rest a sync makes no transfer, and hardly a call (I11).
 *   DJO13  what a mount inside of the folder leaves behind stays empty (S13).
 *   DJO14  a request to a pre-signed address has no Authorization (I14).
 *   DJO16  no file of ours is left, and no name is there that neither a user gave nor a conflict (I16).
 */
#ifndef TIDE_TESTS_SIM_JOBS_H
#define TIDE_TESTS_SIM_JOBS_H

#include "unit/drive/sync/drive_sync_fixture.h"

enum jobs_fault {
    J1_BETWEEN_PAGES,
    J2_BEFORE_PLANNING,
    J3_PLACED_NOT_COMMITTED,
    J4_LAST_FRAGMENT_SENT,
    J5_ANSWERED_NOT_COMMITTED,
    J6_ASIDE_NO_DOWNLOAD,
    J8_SESSION_NOT_STORED,
    J9_DELETED_NOT_COMMITTED,
    J10_MID_MOVE,
    J12_UNMOUNTED,
    J13_NESTED_GONE,
    J14_NO_PERMISSION,
    J16_DISK_FULL,
    J17_CHANGED_WHILE_UPLOADING,
    J18_CHANGED_WHILE_PLACING,
    J19_EDITOR_RENAME,
    J20_BACKUP_AND_NEW,
    J22_MTIME_PUT_BACK,
    J24_CLOCK_BACK,
    J25_ONE_500,
    J26_THROTTLED,
    J27_RESYNC_APPLY,
    J27_RESYNC_UPLOAD,
    J28_REORDERED,
    J28_REPEATED,
    J29_TOMBSTONE_LOST,
    J30_CREATED_AGAIN,
    J31_ECHO,
    J32_412,
    J33_LATE_REWRITE,
    J34_ADDRESS_DIED,
    J34_NO_RANGE,
    J35_CHANGED_WHILE_DOWNLOADING,
    J37_WRONG_HASH,
    J37_MALWARE,
    J38_INTO_EACH_OTHER,
    J39_RENAMED_WHILE_UPLOADING,
    J40_MANY_DELETED,
    JFAULTS
};
extern const char *const jobs_fault_names[JFAULTS];

/* Bugs on purpose, each found by a rule (plants.c). */
enum jobs_plant {
    JPLANT_NONE,
    JPLANT_DELETE_UNGATED, /* a file is deleted here whatever it has */
    JPLANT_TOKEN_SENT,     /* pre-signed addresses get the token */
    JPLANT_PART_PLACED,    /* a download is placed before its end */
    JPLANT_LEFT_OVER,      /* files of ours that no action has any more are not looked for */
    JPLANT_PART_NAMED,     /* a part of a download stays, under a name like a user's */
    JPLANTS
};
extern const char *const jobs_plant_names[JPLANTS];
extern const char *const jobs_plant_rules[JPLANTS];

struct jobs_totals {
    uint64_t faults[JFAULTS];
    uint64_t lives, crashes, acts, texts;
};

enum { JOBS_TEXTS_MAX = 2048, JOBS_HASH_BYTES = 32, JOBS_MANY = 64 };

/* What an action has done and not written down. */
enum jobs_open { OPEN_DOWN, OPEN_UP, OPEN_DELETE, OPEN_MOVE, OPEN_ASIDE, OPENS };

struct jobs_stage {
    struct fixture *f;
    uint64_t seed;
    enum jobs_plant plant;
    tide_rng rng;
    struct jobs_totals totals;
    bool calm;
    char hashes[JOBS_TEXTS_MAX][JOBS_HASH_BYTES]; /* of the contents that users made */
    bool replaced[JOBS_TEXTS_MAX];
    size_t texts;
    unsigned names;
    enum { MANY_NONE, MANY_DELETED, MANY_ACCEPTED } many;
    bool many_online;       /* where they were deleted */
    uint64_t clock_back_ms; /* the clock of this machine */
    const struct tide_world_ops *real_ops;
    /* of the life that runs */
    unsigned open[OPENS];
    bool in_round, seen, last_sent, session_new;
};
extern struct jobs_stage *jobs_now; /* of the functions that the linker puts in between */

bool jobs_happens(struct jobs_stage *stage, enum jobs_fault fault, uint32_t one_in);
void jobs_run(uint64_t seed, enum jobs_plant plant, struct jobs_totals *totals_out);

/* users.c */
void jobs_act(struct jobs_stage *stage);
void jobs_edit_any(struct jobs_stage *stage, bool online_side);
void jobs_trouble(struct jobs_stage *stage);
/* Many files (F40): a user makes them, deletes them all at once; how many are there. */
void jobs_many_make(struct jobs_stage *stage);
void jobs_many_delete(struct jobs_stage *stage, bool there);
unsigned jobs_many_there(struct jobs_stage *stage, bool there);
/* The server changes by itself what it has got (D40). */
void jobs_rewrite(struct jobs_stage *stage, const char *name);
bool jobs_is_known(const struct jobs_stage *stage, const char *hash);

#endif
