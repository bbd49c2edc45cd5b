/* person.h - a person with several mailboxes, the real commands, and a server that lies.
 *
 * The commands of the program (src/cli) run in the simulated world, unchanged: a person
 * adds accounts, runs `mail sync` again and again, looks at `mail status` and `mail
 * verify`, and removes mail with `mail archive`.  Nobody resumes an account, retries a job
 * or does anything else that the program did not ask for (PER12).  The seed decides which
 * troubles come: answers of the server that look right and are not, an account that
 * cannot be reached or signed in to, files of the archive that are lost, cut, old or
 * another account's, kills.  Then the troubles end, and a few more syncs must set all right.
 *
 * What is checked (the numbers are in the reports):
 *   PER1  said done, is not: when `mail sync` ends with 0, every message that the server had when
 *         it began is stored with its bytes, or named by `mail status` or in the registry of bad
 *         items.
 *   PER2  nothing that the server has is recorded as gone when a sync ends with 0.
 *   PER3  what is removed from the server was stored here, byte for byte.
 *   PER4  an account without troubles is complete after every sync, whatever the others do.
 *   PER5  after damage `mail verify` does not end with 0, and `mail status` does not say that all
 *         is well.
 *   PER6  once the troubles are over, at most six more syncs set all right, and end with 0; one of
 *         them is a `mail heal` where a sync, `mail status` or `mail verify` ask for it, one is a
 *         `mail sync --force` where `mail status` asks for it, and a file is moved away only where
 *         a sync asks for it. What was lost and is not on the server any more is named.
 *   PER7  no mail of one account is in the archive of another.
 *   PER8  a few messages that always fail hold up no others for long.
 *   PER9  commands end when they are interrupted, and never need a person to give up.
 *   PER10 no command makes thousands of calls for a hundred messages.
 *   PER11 once all is right `mail status` calls the last sync done.
 *   PER12 an account is halted only when its server refused all its messages.  Then, and only
 *       when a sync named the command, a person resumes it once the troubles are over.
 */
#ifndef TIDE_SIM_PERSON_H
#define TIDE_SIM_PERSON_H

#include "base/check.h"
#include "mail/archive/archive.h"
#include "sim.h"
#include "sim_mail.h"

#include <jansson.h>

#define PERSON_HOME "/sim"

enum {
    PERSON_ACCOUNTS_MAX = 3,
    PERSON_MESSAGES_MAX = 200,
    PERSON_PATIENCE_MS = 600000, /* then a person presses Ctrl-C */
    PERSON_POISON_MS = 300000,   /* then messages that always fail are decided (PER8) */
    PERSON_CALLS_MAX = 4000,     /* of one command, for a hundred messages (PER10) */
};

/* What can go wrong; `--troubles` names them.  person_troubles[] has the words. */
enum person_trouble {
    /* of the server, for one account */
    PERSON_LIST_EMPTY,
    PERSON_LIST_SHORT,
    PERSON_LIST_FAILS,
    PERSON_LIST_LOOPS,
    PERSON_LIST_RESTARTS,
    PERSON_HISTORY_FAILS,
    PERSON_HISTORY_LOOPS,
    PERSON_HISTORY_GARBLED,
    PERSON_HISTORY_AHEAD,
    PERSON_ID_GARBLED,
    PERSON_GET_403,
    PERSON_GET_404,
    PERSON_RAW_HALF,
    PERSON_RAW_EMPTY,
    PERSON_HIDDEN,
    PERSON_POISON,
    PERSON_RETRY_AFTER,
    PERSON_SIGN_IN,
    PERSON_UNREACHABLE,
    PERSON_OTHER_MAILBOX,
    PERSON_ALL_403,
    /* of the disk, for one account, between two commands */
    PERSON_SHARD_LOST,
    PERSON_SHARD_EMPTY,
    PERSON_SHARD_CUT,
    PERSON_SHARD_OLD,
    PERSON_SHARD_ANCIENT, /* from many syncs ago */
    PERSON_SHARD_FOREIGN,
    PERSON_ARCHIVE_LOST,
    PERSON_DAMAGE,
    /* of the person and the machine */
    PERSON_REMOVES,
    PERSON_KILLS,
    PERSON_TROUBLES,
};
extern const char *const person_troubles[PERSON_TROUBLES];

struct person_plan {
    uint64_t seed;
    uint64_t rules; /* bits of PER1, PER2, ...: what else is broken is passed over */
    struct tide_sim_options sim;
    uint32_t accounts;
    uint32_t messages[PERSON_ACCOUNTS_MAX];
    uint64_t troubles[PERSON_ACCOUNTS_MAX]; /* bits of person_trouble; of account 0 none */
    bool settled_first;                     /* the server's troubles begin after a first sync */
    bool kills;
    uint32_t days; /* with troubles */
};
/* `allowed`: bits of the troubles that may be drawn. */
struct person_plan person_plan_seeded(uint64_t seed, uint64_t allowed);

struct person_fact {
    uint64_t arrived_ms;
    uint64_t hash;
    bool hashed;
    bool deleted; /* by another client: not by our archiver */
    bool checked; /* its removal by us was looked at (PER3) */
    bool poison;
    bool stored; /* byte for byte, before the disk's troubles */
};

struct person_account {
    char email[40];
    char token[16];
    box_mailbox *mailbox;
    struct person_fact facts[PERSON_MESSAGES_MAX];
    bool added;
    uint64_t troubles; /* that are on, of the server */
    bool damaged;      /* the archive is not what a sync left */
    bool spoilt;       /* a message of it is */
    char damaged_path[200];
    bool lost_for_good;  /* something that the server no longer has was lost */
    bool told_to_resume; /* it was halted, and a sync named the command */
    bool told_to_heal;   /* by the last sync */
    bool told_to_move;   /* by the last sync: a file that is no shard of this archive */
    bool removes;        /* our archiver has removed mail */
    bool blind;          /* a history expired: which labels changed is not knowable */
};

/* Numbers only: sums, then from syncs_to_converge_max on the largest (seeds_totals). */
struct person_totals {
    uint64_t simulated_us;
    uint64_t steps;
    uint64_t commands;
    uint64_t syncs;
    uint64_t interrupts;
    uint64_t kills;
    uint64_t calls;
    uint64_t messages;
    uint64_t troubles[PERSON_TROUBLES]; /* in how many worlds */
    uint64_t syncs_to_converge_max;
    uint64_t trace_hash;
};

/* What a command said. */
struct person_said {
    int code;    /* of the exit */
    bool killed; /* it has no code */
    bool interrupted;
    json_t *json; /* owned by the caller; NULL: none */
};

struct person {
    struct person_plan plan;
    tide_sim *sim;
    tide_world *world;
    tide_sim_cloud *cloud;
    tide_rng rng;
    struct person_account accounts[PERSON_ACCOUNTS_MAX];
    uint64_t calls;     /* of this command */
    uint64_t began_ms;  /* this command, on the monotonic clock */
    tide_buf old_shard; /* a copy that comes back later */
    char old_path[200];
    struct person_totals totals;
};

/* ---- person.c: one seed, start to end ---- */
struct person_totals person_run(const struct person_plan *plan);

/* ---- person_cli.c ---- */
/* Runs `tidemark WORDS... --home /sim --quiet --json`; the last word is NULL. */
struct person_said person_command(struct person *self, const char *const *words);
void person_said_done(struct person_said *said);

/* ---- person_cloud.c ---- */
void person_cloud_make(struct person *self);
void person_cloud_trouble(struct person *self, struct person_account *account,
                          uint64_t troubles); /* begins these, ends others */
void person_cloud_news(struct person *self, struct person_account *account);

/* ---- person_disk.c ---- */
/* Does one of the troubles of the disk; false: there was nothing to do it to. */
bool person_disk_trouble(struct person *self, struct person_account *account,
                         enum person_trouble trouble);
/* A person moves the file away that was damaged last. */
void person_disk_away(struct person *self, struct person_account *account);
void person_disk_copy(struct person *self, struct person_account *account);

/* ---- person_check.c ---- */
/* Ends the simulation, unless the rule that the text begins with is passed over. */
void person_broken(struct person *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void person_check_hash(struct person_account *account, uint32_t slot);
/* What the server had at `began_ms` is due. */
void person_check_sync(struct person *self, const struct person_said *said, uint64_t began_ms);
void person_check_removed(struct person *self, struct person_account *account);
/* Remembers what is stored, before the disk's troubles. */
void person_check_stored(struct person *self, struct person_account *account);
void person_check_damage(struct person *self, struct person_account *account,
                         enum person_trouble trouble);
/* Whether `mail status` counts copies that are not the server's bytes. */
bool person_check_doubted(struct person *self, struct person_account *account);
/* Whether it says that the server counts messages which it did not list. */
bool person_check_unlisted(struct person *self, struct person_account *account);
/* Whether all is right; else `why` says what is not. */
bool person_check_right(struct person *self, char *why, size_t why_bytes);

#endif
