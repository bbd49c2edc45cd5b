/* transfer.h - a drive's transfers in the simulated world: src/drive/act and src/cloud/onedrive as they
 * are, a real folder, and the cloud in a box behind a network that fails.
 *
 * A seed is a few files that go up or down.  Each is tried until it is done: the process is killed
 * at calls, at writes and when a session is saved; what it saved is what the next try knows.  Users
 * change the same files on both sides.  After a while all faults end, and so must the transfer.
 * Rules, by the invariants of the spec:
 *
 *   DTR7  whatever happens, a name of a user has whole content that a user made (I7).
 *   DTR9  after a kill a transfer continues: what is sent again is one piece for each kill (I9).
 *   DTR14  a request to a pre-signed address has no Authorization (I14).
 *   DTR15  content that another user put under the name is not overwritten (I15).
 *   DTR16  no name is online that no user gave (I16).
 *   DTR18  nothing outside the root is touched, though links lead there (I18).
 *   DTR20  the transfer ends, and both sides have the same bytes (I2, I20).
 */
#ifndef TIDE_TESTS_SIM_TRANSFER_H
#define TIDE_TESTS_SIM_TRANSFER_H

#include "drive/act/act.h"
#include "sim.h"
#include "sim_cloud.h"

/* Bugs on purpose (plants.c), each found by a rule. */
enum transfer_plant {
    TPLANT_NONE,
    TPLANT_EARLY_NAME,    /* a download is written to the user's name as it comes */
    TPLANT_HASH_BELIEVED, /* what was downloaded is not compared with its hash */
    TPLANT_NOT_SAVED,     /* the session is not saved */
    TPLANT_TOKEN_SENT,    /* pre-signed addresses get the token */
    TPLANT_BY_NAME,       /* a name that is taken is overwritten */
    TPLANT_LINKS_FOLLOWED,
    TPLANT_TWICE, /* an upload whose answer is lost is sent again under another name */
    TPLANTS
};
extern const char *const transfer_plant_names[TPLANTS];
extern const char *const transfer_plant_rules[TPLANTS];

enum transfer_fault {
    T4_LAST_FRAGMENT_SENT,
    T8_SESSION_NOT_STORED,
    T16_DISK_FULL,
    T17_SOURCE_CHANGED,
    T18_TARGET_CHANGED,
    T26_THROTTLED,
    T33_REWRITTEN,
    T34_ADDRESS_DIED,
    T34_NO_RANGE,
    T35_CHANGED_ONLINE,
    T37_NEVER_FITS,
    T37_MALWARE,
    T_KILLED_AT_CALL,
    T_KILLED_AT_DISK,
    T_NAME_TAKEN,
    T_LINK,
    TFAULTS
};
extern const char *const transfer_fault_names[TFAULTS];

struct transfer_totals {
    uint64_t faults[TFAULTS];
    uint64_t tries, finished, superseded, bytes;
};

enum { TRANSFER_KNOWN_MAX = 1024, TRANSFER_NAME_BYTES = 32 };

typedef enum transfer_kind {
    TRANSFER_DOWN_NEW,
    TRANSFER_DOWN_OVER,
    TRANSFER_UP_NEW,
    TRANSFER_UP_OVER,
    TRANSFER_KINDS
} transfer_kind;

struct transfer_known {
    uint64_t bytes;
    uint8_t qxh[TIDE_QUICKXOR_BYTES];
};

struct transfer_stage {
    uint64_t seed;
    enum transfer_plant plant;
    tide_rng rng;
    tide_sim *sim;
    tide_sim_cloud *cloud;
    tide_onedrive *onedrive;
    struct tide_drive_act act;
    char dir[256], root[280], outside[280];
    struct transfer_totals totals;
    struct transfer_known known[TRANSFER_KNOWN_MAX]; /* whole contents of users */
    size_t known_count;
    uint64_t next_content;
    char saved[20000]; /* of the upload: what is durable */

    /* the transfer that is tried */
    transfer_kind kind;
    char name[TRANSFER_NAME_BYTES];
    bool quiet;                  /* the test itself calls */
    bool calm;                   /* no more faults */
    bool only_kills;             /* DTR9 */
    uint64_t kills, pieces;      /* pieces: of them while one was on its way */
    uint64_t throttled_until_ms; /* on the server's clock */
    unsigned misfits;            /* answers that will be spoiled */
    bool taken;                  /* another user has the name online */
    bool edited;                 /* the source was, while it was on its way */
    bool rewrites;               /* the server was told to change what it gets */
    bool same;                   /* both sides have the same bytes: nothing is left to do */
    bool linked;                 /* its folder is a link to the outside by now */
};

extern struct transfer_stage *transfer_now; /* of the functions that the linker puts in between */

bool transfer_happens(struct transfer_stage *stage, enum transfer_fault fault, uint32_t one_in);
/* The process is killed here; counted.  true: it is. */
bool transfer_killed(struct transfer_stage *stage, enum transfer_fault fault, uint32_t one_in);
bool transfer_dead(struct transfer_stage *stage);
bool transfer_is_up(const struct transfer_stage *stage);

/* users.c: both users, and what they have */
void transfer_note(struct transfer_stage *stage, uint64_t bytes, const uint8_t *qxh);
bool transfer_is_known(const struct transfer_stage *stage, uint64_t bytes, const uint8_t *qxh);
void transfer_put_here(struct transfer_stage *stage, const char *name, uint64_t bytes);
void transfer_put_online(struct transfer_stage *stage, const char *name, uint64_t bytes);
void transfer_make_outside(struct transfer_stage *stage);
void transfer_link_folder(struct transfer_stage *stage);
void transfer_check_disk(struct transfer_stage *stage); /* DTR7, DTR18 */

/* provide.c: the network */
void transfer_provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                      tide_rng *rng, struct tide_sim_answer *answer);
void transfer_fault_rule(struct transfer_stage *stage, const char *rule);

/* tries.c */
void transfer_run_one(struct transfer_stage *stage, unsigned number);

void transfer_sim_run(const char *dir, uint64_t seed, enum transfer_plant plant,
                      struct transfer_totals *totals_out);

#endif
