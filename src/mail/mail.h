/* mail.h - the Gmail mirror on the engine: its kinds of jobs and its own rows.
 *
 * A run of an account begins with one job, mail.plan, which looks where the
 * account stands and opens cycles of its stream:
 *
 *   first run      a cycle per slice of time, oldest first, each beginning with a mail.list;
 *                  the history id that was read before is noted with the last one
 *   later runs     one cycle with a mail.history; when the id has expired, with a
 *                  complete listing instead: a mail.list for every slice, then mail.absent
 *                  and mail.confirm for what is stored and was not named
 *   a loss         a new stream with a cycle per slice from the lost year on (M4)
 *
 * mail.list makes mail.fetch jobs of the ids that are not stored; mail.fetch
 * gets them raw, puts them into the archive and waits for the disk before an id
 * counts as done.  The stream's cursor is the watermark (M4): a cycle's end is
 * the time up to which everything is stored or recorded as bad, once it and all
 * before it are finished.  The history id is used from the last finished cycle that
 * has one, so it is adopted when everything listed is durable, and not before (M6a).
 *
 * Invariants:
 *   W1  every message with internalDate in [since, watermark) is in the archive, in the
 *       registry of bad items, or gone from the server.
 *   W2  an id counts as done only after the archive synced it.
 *   W3  the archive proves itself before a run (M4): a shard that is missing, another one
 *       or older than the ledger remembers lets the watermark fall back to the
 *       beginning of its year.  The loss is noted before anything new is put.
 *   W4  a message is called gone only after a complete listing did not name it and a
 *       get found nothing, or because the history says so.
 */
#ifndef TIDE_MAIL_MAIL_H
#define TIDE_MAIL_MAIL_H

#include "cloud/gmail.h"
#include "mail/archive/archive.h"
#include "net/secrets.h"
#include "tidemark.h"
#include "world/world.h"

typedef struct tide_mail tide_mail;

enum {
    TIDE_MAIL_ACCOUNTS_MAX = 256,
    TIDE_MAIL_EVERYTHING = 1, /* a time before all mail */
};

struct tide_mail_options {
    tide_engine *engine;     /* borrowed; not started yet */
    tide_world *world;       /* borrowed */
    tide_secrets *secrets;   /* borrowed */
    const char *archive_dir; /* each account has a folder in it */
    uint64_t window_units;   /* quota: so many units in so many milliseconds; 0: no limit */
    uint64_t window_ms;      /* 0: Gmail's own quota */
    bool archiver;       /* this process removes mail (mail/remove/remove.h); no other one does */
    bool no_sync;        /* no handlers for syncing: its jobs stay in the ledger */
    uint32_t remove_ids; /* of one removing call; 0: TIDE_REMOVE_IDS, and never more */
};
/* Defines the kinds mail.* and makes the mail system's tables. */
tide_status tide_mail_open(const struct tide_mail_options *options, tide_mem *mem,
                           tide_mail **mail_out, tide_error *err);
/* After the engine is closed.  Commits and closes the archives. */
tide_status tide_mail_close(tide_mail *mail, tide_error *err); /* NULL is fine */

/* ---- accounts ---- */

/* An account of the mail system; its grant is the secret of its name.  Its archive is in our
 * directory from now on (engine/accounts/archive_id.h).  TIDE_INVALID: a shared ledger says that it is
 * elsewhere. */
tide_status tide_mail_account_add(tide_mail *mail, const char *email, const char *endpoint,
                                  tide_error *err);
/* Whether the archive of an account that the ledger names is in this directory: only then
 * may a process take the account (tide_engine_options.may_take). */
bool tide_mail_is_here(tide_world *world, const char *archive_dir, const char *email,
                       const char *archive);
void tide_mail_dir(const char *archive_dir, const char *email, char *dir_out, size_t dir_bytes);
/* Forgets it, not its archive.  TIDE_NOT_FOUND. */
tide_status tide_mail_account_remove(tide_mail *mail, const char *email, tide_error *err);
/* The name of the secret that holds its grant. */
void tide_mail_secret_name(const char *email, char name_out[TIDE_SECRET_NAME_BYTES_MAX]);
/* Visits all of them; the texts are borrowed for the call. */
tide_status tide_mail_accounts(tide_mail *mail,
                               void (*visit)(const char *email, const char *endpoint, void *arg),
                               void *arg, tide_error *err);

/* ---- running ---- */

/* What a healing run did about damaged files. */
struct tide_mail_aside {
    char shards[160];     /* "2019.db, 2020.db": set aside by this run; "": none was */
    char dir[4096 + 300]; /* where they are now */
    uint64_t copied;      /* messages that were read in files set aside, and stored anew */
    uint64_t unreadable;  /* messages of such files that are known and could not be read */
};
struct tide_mail_run {
    const char *email;
    bool force;          /* the whole account again; what is stored is not fetched again */
    bool heal;           /* everything is read back, and what is damaged fetched again (M19) */
    bool newest_first;   /* slices by their age; the watermark stays honest */
    uint32_t slice_days; /* 0: chosen from the number of messages */
    /* Nothing older is wanted, or TIDE_MAIL_EVERYTHING; 0: as before.  More than an
     * earlier run wanted is fetched, less changes nothing. */
    uint64_t since_ms;
    uint64_t messages_max;         /* fetched by this process from now on; 0: no limit */
    struct tide_mail_aside *aside; /* filled by a healing run; NULL: nobody wants to know */
    bool elsewhere; /* on a shared ledger: another process has its archive, and does it */
};
/* What such a run asks of the engine, also of another process's: a job of this kind
 * with this payload and key. */
#define TIDE_MAIL_PLAN_KIND "mail.plan"
/* Reads messages again that could not be read; without a payload. */
#define TIDE_MAIL_INDEX_KIND "mail.index"
/* The same without a job, for a process that has the directory. */
tide_status tide_mail_lost_accepted(tide_mail *mail, const char *email, tide_error *err);
/* What exists nowhere else and is lost is accepted as lost; without a payload. */
#define TIDE_MAIL_ACCEPT_KIND "mail.accept"
/* Adds an account: payload.email and payload.endpoint. */
#define TIDE_MAIL_ACCOUNT_KIND "mail.account"
struct tide_mail_request {
    char payload[256]; /* a JSON object */
    char dedupe[64];
};
void tide_mail_request(const struct tide_mail_run *run, uint32_t account,
                       struct tide_mail_request *request_out);
/* Enqueues the plan; one run of an account at a time, a second one joins it. */
tide_status tide_mail_run(tide_mail *mail, const struct tide_mail_run *run, tide_error *err);

/* Makes messages findable that are stored and not indexed yet, of the accounts
 * that this process has used: a group of them, or the rest of it.  *done_out: how many; 0:
 * none is left. */
tide_status tide_mail_index(tide_mail *mail, uint64_t *done_out, tide_error *err);
/* Closes the archives of accounts that this process no longer holds, so that another one may
 * have them.  For a process that works on a shared ledger, every second or so. */
tide_status tide_mail_rest(tide_mail *mail, tide_error *err);
/* Whether a run has fetched messages_max and wants more: what is left waits for the
 * next one.  The caller ends the engine. */
bool tide_mail_spent(tide_mail *mail);

/* Whether this account needs its owner to sign in again; the text says why.  Its work waits
 * meanwhile. */
bool tide_mail_signed_out(tide_mail *mail, const char *email, char text_out[400]);

/* Whether both addresses are of one mailbox. */
bool tide_mail_same_mailbox(const char *a, const char *b);
/* Holds what the server says against the account's name (M19a).  TIDE_AUTH: it is another
 * mailbox. */
tide_status tide_mail_compare(const char *email, const struct tide_gmail_profile *profile,
                              tide_error *err);

/* Whether a mailbox that is said to hold `messages`, and of which only `named` are known, was
 * listed by a server that leaves things out. */
bool tide_mail_is_short(uint64_t named, uint64_t messages);
/* How many the server counts beyond those that are known here; 0 where that is what comes and goes
 * meanwhile.  Too few for tide_mail_is_short(): people are told, and decide. */
uint64_t tide_mail_unlisted(uint64_t known, uint64_t messages);

struct tide_mail_state {
    uint64_t watermark_ms;   /* 0: none yet */
    uint64_t since_ms;       /* it covers [since, watermark); 0: from the beginning */
    char notice[400];        /* what people should know: that the archive lost something; "" */
    uint64_t cycles_open;    /* opened and not behind the watermark */
    uint64_t cycles;         /* in all */
    char history_id[64];     /* the adopted one; "" */
    uint64_t messages_total; /* as the server said at the last plan; 0: unknown */
    uint64_t stored;         /* in the archive */
    uint64_t raw_bytes;
    uint64_t archive_bytes;
    size_t shards;
    uint64_t fetched; /* by this process */
    uint64_t last_run_ms;
};
tide_status tide_mail_state(tide_mail *mail, const char *email, struct tide_mail_state *state_out,
                            tide_error *err);

#endif
