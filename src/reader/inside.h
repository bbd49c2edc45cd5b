/* inside.h - shared by the files of reader.h and the handlers. */
#ifndef TIDE_READER_INSIDE_H
#define TIDE_READER_INSIDE_H

#include "cloud/gmail.h"
#include "mail/archive/archive.h"
#include "mail/archive/shelf.h"
#include "reader/cache/cache.h"
#include "reader/reader.h"
#include "tidemark_inside.h"
#include "world/desktop/metered.h"

#define TIDE_READER_POLL    "@poll" /* instead of a label: what changed since the last time */
#define TIDE_READER_SEND    "send"  /* actions that have a draft */
#define TIDE_READER_DISCARD "discard"

enum { TIDE_READER_IDLE_MAX = 2, TIDE_READER_USERS_MAX = 256, TIDE_READER_PAYLOAD_BYTES = 9000 };

/* An account that was used; lives until the reader is closed. */
struct tide_reader_user {
    uint32_t account;
    char email[256];
    char endpoint[512];
    tide_tokens *tokens;
    tide_gmail *gmail;
    bool known; /* the server confirmed whose mailbox it is; of the one job that runs */
    /* Under the lock. */
    tide_cache *idle[TIDE_READER_IDLE_MAX]; /* connections that nobody uses */
    size_t idle_count;
    struct tide_pace pace;
    uint64_t window_ms; /* the chosen one, as of the last look */
    bool people_asked;  /* they are completed: reader.people is wanted */
    uint64_t people_ms; /* when it was wanted last; 0: never */
    bool begun;         /* KR7 */
    json_t *loose;      /* files of drafts that no row listed at loose_ms: names; NULL: not known */
    uint64_t loose_ms;
};

struct tide_reader {
    tide_mem *mem;
    struct tide_reader_options options;
    char archive_dir[4096], cache_dir[4096];
    uint32_t kinds[TIDE_READER_KINDS];
    tide_shelf *shelf;
    tide_metered *metered; /* NULL: not asked */
    tide_lock *lock;
    tide_cond *news;
    tide_thread *thread;

    /* Under the lock. */
    struct tide_reader_user *users[TIDE_READER_USERS_MAX];
    size_t users_count;
    bool watched, stopping;
    bool asked; /* a user's people_asked is set */
};

/* ---- users.c ---- */

/* The account, opened at its first use; borrowed until the reader is closed. */
tide_status tide_reader_user(tide_reader *reader, uint32_t account,
                             struct tide_reader_user **user_out, tide_error *err);
/* The same with a connection to its cache, to write; to be given back. */
tide_status tide_reader_cache_take(tide_reader *reader, uint32_t account,
                                   struct tide_reader_user **user_out, tide_cache **cache_out,
                                   tide_error *err);
void tide_reader_cache_give(tide_reader *reader, struct tide_reader_user *user,
                            tide_cache *cache); /* NULL is fine */
/* Asks the server once whose mailbox this is (mail.h, M19a). */
tide_status tide_reader_identify(struct tide_reader_user *user, tide_job *job, tide_error *err);
/* Whether the cache of an account exists (KR7). */
bool tide_reader_has_cache(tide_reader *reader, const char *email);
void tide_reader_users_done(tide_reader *reader);
/* Calls `visit` for each mail account. */
tide_status tide_reader_accounts(tide_reader *reader,
                                 void (*visit)(uint32_t account, const char *email, void *arg),
                                 void *arg, tide_error *err);

/* The archive of an account, to read; NULL: it has none.  Given back with tide_shelf_give(). */
tide_archive *tide_reader_archive(tide_reader *reader, const struct tide_reader_user *user);
/* Whether the archive has the bytes of a message (KR5); `stored` is filled. */
bool tide_reader_archived(tide_archive *archive, tide_text id, struct tide_stored *stored);
/* A row in the cache for a message that only the archive has, with its labels there.  In a transaction
 * of the cache.  TIDE_NOT_FOUND: neither has it. */
tide_status tide_reader_shadow(tide_cache *cache, tide_archive *archive, tide_text id,
                               tide_error *err);

/* Where the mirror is in the history: the archive has what changed until then; "": nowhere. */
tide_status tide_reader_mirror_place(tide_reader *reader, uint32_t account, char history_id_out[64],
                                     tide_error *err);

/* ---- reader.c ---- */

/* Enqueues a job of a kind; `key` names what it is for ("" for none) and is the only field of its
 * payload, under the name `field`. */
struct tide_reader_job {
    tide_reader_kind kind;
    uint32_t account;
    const char *field, *key;
    uint64_t delay_ms;
};
tide_status tide_reader_enqueue(tide_reader *reader, const struct tide_reader_job *wanted,
                                uint64_t *id_out, tide_error *err);
/* The same as a child of a job. */
tide_status tide_reader_follow(tide_reader *reader, tide_job *job,
                               const struct tide_reader_job *wanted, tide_error *err);
/* The text of that field in the payload of a job; "": none. */
tide_status tide_reader_key(tide_job *job, const char *field, tide_buf *out, tide_error *err);
/* Whether level 4 is to be rare now (PCE3). */
bool tide_reader_saving(tide_reader *reader, uint32_t account);
/* The window is listed. */
void tide_reader_listed(tide_reader *reader, struct tide_reader_user *user);

/* ---- wishes.c, drafts.c ---- */

/* Enqueues the upload of an action, in its transaction. */
tide_status tide_reader_upload(tide_reader *reader, tide_transaction *transaction,
                               const struct tide_reader_action *action, uint64_t now_ms,
                               tide_error *err);
/* The payload of a reader.action that copies drafts, and its dedupe key while it waits. */
#define TIDE_READER_COPY "drafts"
/* Enqueues a look at what is to be copied, in the transaction that made it so (DRF8). */
tide_status tide_reader_copy_later(tide_reader *reader, tide_transaction *transaction,
                                   uint32_t account, uint64_t delay_ms, tide_error *err);
/* The same after `reader.quiet`. */
tide_status tide_reader_copy_quiet(tide_reader *reader, tide_transaction *transaction,
                                   uint32_t account, tide_error *err);
/* Removes files of drafts that no row lists, and none listed an hour ago. */
tide_status tide_reader_files_sweep(tide_reader *reader, uint32_t account, tide_error *err);

/* ---- handlers ---- */

tide_handler tide_reader_body_run, tide_reader_page_run, tide_reader_refresh_run,
    tide_reader_search_run, tide_reader_action_run, tide_reader_offline_run,
    tide_reader_headers_run, tide_reader_folders_run, tide_reader_evict_run, tide_reader_people_run;

#endif
