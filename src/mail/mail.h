/* mail.h - the Gmail mirror: its job kinds and its tables on top of the engine.
 *
 * A run of an account starts with one job, mail.plan, which reads the account's state and opens
 * cycles of its stream:
 *
 *   first run      a cycle per slice of time, each starting with a mail.list; where the quota makes
 *                  it slow the newest are listed and fetched first;
 *                  the history id that was read first is recorded with the last one
 *   later runs     one cycle with a mail.history; when the id has expired, with a
 *                  complete listing instead: a mail.list for every slice, then mail.absent
 *                  and mail.confirm for stored messages that were not listed
 *   a loss         a new stream with a cycle per slice from the lost year on (M4)
 *
 * Copies that are held (M18) are replaced behind all this, outside of cycles: mail.held chooses them,
 * newest first, and mail.exact fetches them.
 *
 * mail.list creates mail.fetch jobs for ids that are not stored; mail.fetch
 * gets them raw, puts them into the archive and waits for the disk before an id
 * counts as done.  The stream's cursor is the tidemark (M4): a cycle's end is
 * the time up to which everything is stored or recorded as bad, once it and all
 * before it are finished.  The history id is used from the last finished cycle that
 * has one, so it is adopted only when everything listed is durable (M6a).
 *
 * Invariants:
 *   MAIL1  every message with internalDate in [since, tidemark) is in the archive, in the registry
 *          of bad items, or gone from the server.
 *   MAIL2  an id counts as done only after the archive synced it.
 *   MAIL3  the archive is checked before a run (M4): a shard that is missing, replaced or older
 *          than the ledger recorded moves the tidemark back to the beginning of its year.  The loss
 *          is recorded before anything new is stored.
 *   MAIL4  a message counts as gone only after a complete listing omitted it and a get did not find
 *          it, or because the history says so.  A copy of a Takeout (M18) of which the server never
 *          said anything also if two gets did not find it while the server returned another
 *          message.
 */
#ifndef TIDE_MAIL_MAIL_H
#define TIDE_MAIL_MAIL_H

#include "cloud/gmail.h"
#include "db/rows.h"
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
    const char *archive_dir; /* each account has a folder there */
    bool archiver;           /* on a shared ledger: has the handlers of removals and restores */
    bool no_sync;            /* no sync handlers: sync jobs stay in the ledger */
};
/* Defines the kinds mail.* and creates the mail system's tables. */
tide_status tide_mail_open(const struct tide_mail_options *options, tide_mem *mem,
                           tide_mail **mail_out, tide_error *err);
/* After the engine is closed.  Commits and closes the archives. */
tide_status tide_mail_close(tide_mail *mail, tide_error *err); /* NULL is fine */

/* ---- accounts ---- */

/* Writes the row of an account that is added (system/system.h); its grant is the secret named after
 * it. */
struct tide_account_request;
tide_status tide_mail_account_put(tide_rows db, uint32_t account,
                                  const struct tide_account_request *request, tide_error *err);
void tide_mail_dir(const char *archive_dir, const char *email, char *dir_out, size_t dir_bytes);
/* The name of the secret that holds its grant. */
void tide_mail_secret_name(const char *email, char name_out[TIDE_SECRET_NAME_BYTES_MAX]);
/* Its tokens; for every client of this mailbox. */
tide_status tide_mail_tokens(tide_world *world, tide_secrets *secrets, const char *email,
                             tide_mem *mem, tide_tokens **tokens_out, tide_error *err);
/* ---- running ---- */

/* What a healing run did with damaged files. */
struct tide_mail_aside {
    char shards[160];     /* "2019.db, 2020.db": set aside by this run; "": none was */
    char dir[4096 + 300]; /* where they are now */
    uint64_t copied;      /* messages read from files set aside, and stored again */
    uint64_t unreadable;  /* known messages of such files that could not be read */
};
/* How many messages the accounts of one command may fetch together. */
struct tide_mail_budget {
    uint64_t left; /* guarded by the mail system's lock, as is the next one */
    bool spent;    /* it is used up, and more is needed: the rest waits for the next run */
};
/* Which slices a run lists and fetches first.  The tidemark covers only what is complete either
 * way. */
typedef enum tide_mail_order {
    TIDE_MAIL_BY_QUOTA = 0, /* the newest where the quota makes it slow, else the oldest */
    TIDE_MAIL_NEWEST,
    TIDE_MAIL_OLDEST,
} tide_mail_order;
struct tide_mail_run {
    const char *email;
    bool force;   /* list the whole account again; stored messages are not fetched again */
    bool heal;    /* verify everything, and fetch damaged messages again (M19) */
    bool inexact; /* leave held copies as they are (M18) */
    tide_mail_order order;
    uint32_t slice_days; /* 0: chosen from the number of messages */
    /* Skip older mail; TIDE_MAIL_EVERYTHING: none; 0: as before.  An earlier time than in the last
     * run fetches more, a later one changes nothing. */
    uint64_t since_ms;
    struct tide_mail_budget *budget; /* outlives the engine; NULL: no limit */
    struct tide_mail_aside *aside;   /* filled by a healing run; may be NULL */
    bool elsewhere; /* on a shared ledger: another process has the archive and runs it */
};
/* Such a run as a job of this kind with this payload and key; also for the engine of another
 * process. */
#define TIDE_MAIL_PLAN_KIND "mail.plan"
/* Parses again messages that could not be parsed; no payload. */
#define TIDE_MAIL_INDEX_KIND "mail.index"
/* The same without a job, for a process that has the directory. */
tide_status tide_mail_lost_accepted(tide_mail *mail, const char *email, tide_error *err);
/* Accepts the loss of messages that existed only in the archive; no payload. */
#define TIDE_MAIL_ACCEPT_KIND "mail.accept"
/* Choose what to remove, remove a batch of it (mail/remove/remove.h), restore (mail/restore/restore.h).
 * Such a job names the start of the engine that was asked for it, and does nothing in another one
 * (cli/run/ask.h). */
#define TIDE_MAIL_CHOOSE  "mail.choose"
#define TIDE_MAIL_REMOVE  "mail.remove"
#define TIDE_MAIL_RESTORE "mail.restore"
/* Imports files (mail/files/import.h); likewise.  Not on a shared ledger. */
#define TIDE_MAIL_IMPORT "mail.import"
struct tide_mail_request {
    char payload[256]; /* a JSON object */
    char dedupe[64];
};
void tide_mail_request(const struct tide_mail_run *run, uint32_t account,
                       struct tide_mail_request *request_out);
/* Enqueues the plan.  An account has one run at a time; a second call joins it. */
tide_status tide_mail_run(tide_mail *mail, const struct tide_mail_run *run, tide_error *err);

/* Enqueues the plan of the account with this mailbox, whichever process has its archive; `whole`:
 * list all of it.  TIDE_NOT_FOUND: there is none. */
tide_status tide_mail_changed(tide_mail *mail, const char *email, bool whole, tide_error *err);

/* Indexes one group of stored messages that are not indexed yet, of the accounts that this process
 * has used.  *done_out: how many; 0: none is left. */
tide_status tide_mail_index(tide_mail *mail, uint64_t *done_out, tide_error *err);
/* Has the threads of these archives index now what is stored, and does not wait for them.  *left_out:
 * not all of it is indexed yet. */
tide_status tide_mail_index_soon(tide_mail *mail, bool *left_out, tide_error *err);
/* Closes the archives of accounts that this process no longer leases, so that another process can
 * open them.  A process on a shared ledger calls it about every second. */
tide_status tide_mail_rest(tide_mail *mail, tide_error *err);
/* Whether a mail.import runs: a command that ends waits for it, because it would have to read all files
 * again. */
bool tide_mail_imports(tide_mail *mail);
/* The caller stops the engine then. */
bool tide_mail_spent(tide_mail *mail, const struct tide_mail_budget *budget);

/* Whether the user must sign in again to this account; the text says why.  Its jobs wait until
 * then. */
bool tide_mail_signed_out(tide_mail *mail, const char *email, char text_out[400]);

/* Whether both addresses name the same mailbox. */
bool tide_mail_same_mailbox(const char *a, const char *b);
/* Compares the server's answer with the account's name (M19a).  TIDE_AUTH: it is another
 * mailbox. */
tide_status tide_mail_compare(const char *email, const struct tide_gmail_profile *profile,
                              tide_error *err);

/* Whether the listing of a mailbox that reports `messages` and listed only `named` must be
 * incomplete. */
bool tide_mail_is_short(uint64_t named, uint64_t messages);
/* How many messages the server counted beyond those known here.  Imported messages, and those that are
 * gone from the server, do not count as known: one that was deleted between the server's count and the reading of
 * its history is reported until the next run. */
struct tide_mail_count {
    tide_archive *archive; /* NULL: there is none */
    uint64_t stored;       /* messages in the archive */
    uint64_t recorded;     /* messages recorded as bad or owed, not those recorded as gone */
    uint64_t total;        /* the server's number, read when the last run began */
};
tide_status tide_mail_missing(const struct tide_mail_count *count, uint64_t *missing_out,
                              tide_error *err);
/* What to report of them.  In a large mailbox up to one in a hundred is not: a server's own count
 * is not that exact. */
uint64_t tide_mail_unlisted(uint64_t missing, uint64_t messages);

struct tide_mail_state {
    uint64_t tidemark_ms;    /* 0: none yet */
    uint64_t since_ms;       /* the tidemark covers [since, tidemark_ms); 0: from the beginning */
    char notice[400];        /* warning for the user, such as a loss in the archive; "" */
    uint64_t cycles_open;    /* opened and not behind the tidemark */
    uint64_t cycles;         /* total */
    char history_id[64];     /* the adopted one; "" */
    uint64_t messages_total; /* as the server reported at the last plan; 0: unknown */
    uint64_t stored;         /* in the archive */
    uint64_t raw_bytes;
    uint64_t archive_bytes;
    size_t shards;
    uint64_t last_run_ms;
};
tide_status tide_mail_state(tide_mail *mail, const char *email, struct tide_mail_state *state_out,
                            tide_error *err);

#endif
