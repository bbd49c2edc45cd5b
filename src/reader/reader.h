/* reader.h - the mail reader's controller: what the network does next for a person who reads (K1).
 *
 *     reader.c   open, kinds of jobs, what happens by itself
 *     users.c    accounts: clients, caches, archives
 *     wishes.c   what a person asks for: bodies, pages, searches, actions
 *     drafts.c   messages that a person writes; taken.c: those that were begun in Gmail
 *     pace.c     when new mail is looked for; pure
 *     cache/     what is known of a mailbox beyond the archive
 *     store/     what must survive: actions, drafts
 *     jobs/      the handlers
 *     view/      archive, cache and actions as one: lists, messages
 *
 * What is shown is a base with an overlay on top.  The base is what the server has: the mail system's
 * archive, and the cache for what the archive does not have.  The overlay is what a person did and the
 * server has not confirmed (store/store.h).
 *
 * Kinds, all of the lane interactive (K2, K3); of an account one runs at a time (K4), but for evict and people:
 *
 *     reader.body     95  level 1  a message that was opened
 *     reader.page     90  level 1  the next page of a list
 *     reader.refresh  88  level 1  a list from its top
 *     reader.search   85  level 1  a search at the server
 *     reader.action   75  level 2  uploads what a person did
 *     reader.offline  65  level 3  bodies to be read without a network
 *     reader.headers  50  level 4  new mail; the window that is listed at first
 *     reader.folders  40  level 4  the names of labels
 *     reader.evict    10  level 4  makes room in the cache
 *     reader.people   10  level 4  whom recipients are completed with
 *
 * Invariants:
 *   KR1  base rows change only by what the server said.
 *   KR2  actions of an account are uploaded one at a time: the one that was begun, then by number those
 *        that are due.
 *   KR3  a refused action leaves the overlay in the transaction that records why.
 *   KR4  what a page or a history brought, and the token or history id that follows, are one
 *        transaction of the cache.
 *   KR5  a message whose bytes the archive has is never fetched (K12).
 *   KR6  an evicted body is fetched again only when a person opens it (K16).
 *   KR7  an account is looked at by itself only after a person looked at it: until then it has no cache.
 */
#ifndef TIDE_READER_READER_H
#define TIDE_READER_READER_H

#include "base/json.h"
#include "net/secrets.h"
#include "reader/cache/cache.h"
#include "reader/pace.h"
#include "reader/store/store.h"
#include "tidemark.h"
#include "world/world.h"

typedef struct tide_reader tide_reader;

typedef enum tide_reader_kind {
    TIDE_READER_BODY,
    TIDE_READER_PAGE,
    TIDE_READER_REFRESH,
    TIDE_READER_SEARCH,
    TIDE_READER_ACTION,
    TIDE_READER_OFFLINE,
    TIDE_READER_HEADERS,
    TIDE_READER_FOLDERS,
    TIDE_READER_EVICT,
    TIDE_READER_PEOPLE,
    TIDE_READER_KINDS,
} tide_reader_kind;

struct tide_reader_options {
    tide_engine *engine; /* borrowed, as the rest; not started yet */
    tide_world *world;
    tide_secrets *secrets;
    const char *archive_dir;
    const char *cache_dir; /* "~/.cache/tidemark/reader" */
    bool ask_link;         /* the system is asked whether the network is metered (K7) */
};
tide_status tide_reader_open(const struct tide_reader_options *options, tide_mem *mem,
                             tide_reader **reader_out, tide_error *err);
/* After the engine was closed. */
void tide_reader_close(tide_reader *reader); /* NULL is fine */

/* The process stays: from now on new mail is looked for (K7).  Then the end of that. */
tide_status tide_reader_watch(tide_reader *reader, tide_error *err);
void tide_reader_watch_end(tide_reader *reader);
/* A page is open, or the last one was closed; any thread, waits for nothing. */
void tide_reader_look(tide_reader *reader, bool watched);

/* ---- what a person asks for; durable when it returns ----
 *
 * TIDE_NOT_FOUND: no such account, message or action.  *job_out: the job that brings it; 0: there is
 * nothing to bring. */

/* The account number of an address. */
tide_status tide_reader_account(tide_reader *reader, const char *email, uint32_t *account_out,
                                tide_error *err);
/* From now on the account is looked at by itself (KR7). */
tide_status tide_reader_begin(tide_reader *reader, uint32_t account, tide_error *err);
tide_status tide_reader_fetch(tide_reader *reader, uint32_t account, const char *message,
                              uint64_t *job_out, tide_error *err);
tide_status tide_reader_more(tide_reader *reader, uint32_t account, const char *folder,
                             uint64_t *job_out, tide_error *err);
tide_status tide_reader_refresh(tide_reader *reader, uint32_t account, const char *folder,
                                uint64_t *job_out, tide_error *err);
tide_status tide_reader_search(tide_reader *reader, uint32_t account, const char *query,
                               uint64_t *job_out, tide_error *err);

/* Somebody completes recipients: the list of people is brought up to date soon, unless that was done just
 * before (K14).  Waits for nothing but the ledger's answer whether there is such an account. */
tide_status tide_reader_people(tide_reader *reader, uint32_t account, tide_error *err);
/* The file of that list; TIDE_INVALID: there can be none. */
tide_status tide_reader_people_path(const char *cache_dir, const char *email,
                                    char out[TIDE_CACHE_PATH_BYTES], tide_error *err);

struct tide_reader_wish {
    const char *what; /* "archive", as in wishes.c */
    const tide_text *messages;
    size_t messages_count; /* at most TIDE_ACTION_MESSAGES_MAX */
    const char *label;     /* of "label", "unlabel" and "move"; else NULL */
    const char *draft;     /* of "send" and "keep"; else NULL */
};
/* It is shown from now on, and uploaded when it is its turn (K11).  An action that changes nothing has
 * the id 0.  TIDE_INVALID: there is no such action, or something is missing. */
tide_status tide_reader_act(tide_reader *reader, uint32_t account,
                            const struct tide_reader_wish *wish,
                            struct tide_reader_action *action_out, tide_error *err);
/* Takes a waiting action back, or queues the inverse of one that is done: *inverse_out, else 0.
 * TIDE_STALE: it was refused or undone, or cannot be undone any more. */
tide_status tide_reader_undo(tide_reader *reader, uint32_t account, uint64_t action,
                             uint64_t *inverse_out, tide_error *err);

/* ---- drafts (drafts.h) ---- */

/* Adds a draft, or replaces what was typed; sets its changed_ms.  *created_out: it was added; who
 * saved it before lost its files.  TIDE_EXISTS: it is being sent. */
tide_status tide_reader_draft_put(tide_reader *reader, struct tide_draft *draft, bool *created_out,
                                  tide_error *err);
/* Nobody has it open any more: it is copied to the server at once. */
tide_status tide_reader_draft_close(tide_reader *reader, uint32_t account, const char *id,
                                    tide_error *err);
/* Throws it away, here and at the server.  *removed_out: there was one.  TIDE_EXISTS: it is being sent. */
tide_status tide_reader_draft_drop(tide_reader *reader, uint32_t account, const char *id,
                                   bool *removed_out, tide_error *err);
/* Continues a draft that was begun in Gmail, the message `message`: a draft here takes it over, the same one
 * whenever it is asked for.  id_out "": its text is not here yet, and *job_out fetches it.  TIDE_NOT_FOUND: it
 * is not there any more; TIDE_INVALID, TIDE_FULL: it is no draft, or a part of it would be lost. */
tide_status tide_reader_continue(tide_reader *reader, uint32_t account, const char *message,
                                 char id_out[TIDE_DRAFT_ID_BYTES], uint64_t *job_out,
                                 tide_error *err);
/* What a person is told of a draft, from the column `outgoing`: Gmail has it with formatting, which the first
 * change takes away; it was sent or deleted there before a change of ours. */
void tide_reader_draft_told(tide_text outgoing, bool *formatted_out, bool *removed_out);
struct tide_draft_file {
    const char *file; /* its name on the disk, below tide_draft_path(): 32 hexadecimal digits */
    const char *name; /* its name in the message; another one of this name is replaced */
    const char *type; /* "application/pdf"; "": not known */
    uint64_t bytes;
};
/* Attaches a file that is on the disk; after a failure it is removed.  TIDE_EXISTS: the draft is being
 * sent; TIDE_NOT_FOUND: there is no such draft, or no such file. */
tide_status tide_reader_attach(tide_reader *reader, uint32_t account, const char *id,
                               const struct tide_draft_file *file, tide_error *err);
tide_status tide_reader_detach(tide_reader *reader, uint32_t account, const char *id,
                               const char *name, bool *removed_out, tide_error *err);
/* 1 to 64 letters, digits, - and _. */
bool tide_draft_is_id(const char *id);
/* The path of a file of a draft of an account; "": of their directory.  false: it is too long. */
bool tide_draft_path(const char *archive_dir, const char *email, const char *file, char *out,
                     size_t out_bytes);

/* What each account does now: [{account, state, next_poll_unix_ms, watched, saving, window_ms}]. */
void tide_reader_states(tide_reader *reader, tide_json *array);
/* The level of a kind of job (K3); 0: it is none of the reader. */
unsigned tide_reader_level(tide_text kind);

#endif
