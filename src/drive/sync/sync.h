/* sync.h - the drives of a home as jobs on the engine (D1 to D5, D12).
 *
 *   drive.sync       observes: delta pages (feed.c), a scan of the folder (scan.c); then begins a
 *                    cycle of the drive's stream with a plan.  What it saw is durable page by page
 *   drive.plan       loads what differs, plans, records what both sides agree on already, and enqueues
 *                    the rest: each action a job, its edges the job's needs (plan.c, enqueue.c)
 *   drive.act        one action: compares its rows with those that were planned, calls act/, and
 *                    writes what came of it together with its `done` (act.c, settle.c)
 *   mounts.c         folders that others share have a drive each: drive.sync attaches and detaches them
 *   watch.c          while a process stays: changes in the folders, and a look online now and then,
 *                    become jobs of drive.sync, which scan only what changed
 *   drive.displaced  ten seconds after a download replaced a file: removes the old one, or keeps it as
 *                    a copy, if a program still wrote to it (D42)
 *
 * The stream "drive:N" has a cycle for each sync; its cursor, the drive's tidemark, is the time of the
 * last sync of which everything that it saw is also applied.
 *
 * Invariants (tests/unit/drive/sync; with kills tests/kill/drive_kill.py):
 *   DSY1  a job that is run again after a crash finds what it did, and transfers again at most what it
 *         had not finished (I9).
 *   DSY2  the baseline of an action is what the action itself made equal; rows that were observed
 *         later stay as they were observed (I3, I8; store/look.h).
 *   DSY3  an item that keeps failing is owed by name, and delays only what depends on it (D4, I13).
 *   DSY4  nothing is deleted unless the other side was looked at again (S12, S13), and no drive acts
 *         on a folder without its marker (S14).
 */
#ifndef TIDE_DRIVE_SYNC_SYNC_H
#define TIDE_DRIVE_SYNC_SYNC_H

#include "drive/drives.h"
#include "drive/watch/watcher.h"
#include "net/secrets.h"
#include "tidemark_inside.h"

typedef struct tide_drive tide_drive;

enum { TIDE_DRIVES_OPEN_MAX = 256 };

struct tide_drive_options {
    tide_engine *engine; /* borrowed; not started yet */
    tide_world *world;
    tide_secrets *secrets;
    const char *state_dir; /* of the engine: its ledger is read beside the writer */
    const char *desktop;   /* the desktop's trash; NULL: there is none */
};
/* Defines the kinds drive.* and makes the tables. */
tide_status tide_drive_open(const struct tide_drive_options *options, tide_mem *mem,
                            tide_drive **drive_out, tide_error *err);
void tide_drive_close(tide_drive *drive); /* after the engine; NULL is fine */

/* The name of a sign-in's secret. */
void tide_drive_secret_name(const char *account, char out[TIDE_SECRET_NAME_BYTES_MAX]);

/* ---- what users ask for, as jobs; also for the engine of another process ---- */

#define TIDE_DRIVE_SYNC_KIND "drive.sync"
#define TIDE_DRIVE_PLAN_KIND "drive.plan"
struct tide_drive_request {
    char payload[128];
    char dedupe[64];
};
/* A job of drive.sync.  `full`: all items are listed, and compared (S12). */
void tide_drive_request(uint32_t number, bool full, struct tide_drive_request *request_out);
/* A job of drive.sync that only looks: what it sees is stored, nothing is planned (D9). */
void tide_drive_look_request(uint32_t number, struct tide_drive_request *request_out);
/* A job of drive.plan: after a user's decision, without looking. */
void tide_drive_plan_request(uint32_t number, struct tide_drive_request *request_out);
/* Enqueues a sync; joins one that waits. */
tide_status tide_drive_sync(tide_drive *drive, const struct tide_drive_row *row, bool full,
                            tide_error *err);

/* After a drive was removed from the list: its jobs that wait become done, they could only find that it
 * is gone; those of the account's other drives stay.  The engine need not run. */
tide_status tide_drive_end_waiting(tide_engine *engine, uint32_t account, uint32_t number,
                                   tide_error *err);
/* The same for those that run: returns when none does.  TIDE_TIMEOUT: one goes on all the same;
 * TIDE_CANCELED: by `cancel`, which may be NULL. */
tide_status tide_drive_leave(tide_drive *drive, uint32_t number, const struct tide_cancel *cancel,
                             tide_error *err);

/* ---- watching (D1, D9) ---- */

struct tide_drive_watch {
    const char *const *names; /* of the drives, borrowed; without any: all */
    size_t names_count;
    bool whatever_is_set; /* also drives of accounts for which drive.watch is false */
    /* What a user should know; `trouble`: a folder cannot be watched, or not fully.  Any thread. */
    void (*tell)(void *arg, const char *drive, bool trouble, const char *text);
    void *arg;
};
/* Begins to watch the folders, on an engine that runs: what changes, here or online, is synced. */
tide_status tide_drive_watch(tide_drive *drive, const struct tide_drive_watch *as, tide_error *err);
/* Drives or their rules were changed: the watcher reads them now.  Any thread. */
void tide_drive_watch_look(tide_drive *drive);
/* Before the engine stops; fine if nothing is watched. */
void tide_drive_watch_end(tide_drive *drive);

/* ---- notifications (struct tide_system: hear, notified, changed) ---- */

tide_status tide_drive_hear(tide_drive *drive, const char *url, tide_error *err);
bool tide_drive_notified(tide_drive *drive, tide_text subscription, tide_text secret,
                         char subject_out[TIDE_SUBJECT_BYTES]);
/* Looks at the drives of an account, or at the one that was notified.  `full`: lists all items. */
tide_status tide_drive_changed_online(tide_drive *drive, const char *subject, bool full,
                                      tide_error *err);

/* The name of a drive's stream; its cursor is a time in milliseconds. */
enum { TIDE_DRIVE_STREAM_BYTES = 32 };
void tide_drive_stream_name(uint32_t number, char name_out[TIDE_DRIVE_STREAM_BYTES]);

/* ---- live state (D9); a snapshot of the engine has it, too ---- */

struct tide_drive_side_state {
    uint64_t files, bytes; /* that are transferred now: planned bytes */
};
struct tide_drive_state {
    struct tide_drive_side_state down, up;
    uint64_t waiting; /* actions that are planned and not begun */
    uint64_t downloaded_bytes, uploaded_bytes, downloaded, uploaded; /* since the start */
};
void tide_drive_state(tide_drive *drive, uint32_t number, struct tide_drive_state *state_out);

#endif
