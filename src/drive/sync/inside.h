/* inside.h - what the files of the drive's jobs share. */
#ifndef TIDE_DRIVE_SYNC_INSIDE_H
#define TIDE_DRIVE_SYNC_INSIDE_H

#include "base/map.h"
#include "cloud/onedrive/onedrive.h"
#include "db/db.h"
#include "drive/act/act.h"
#include "drive/ignore/ignore.h"
#include "drive/local/scan.h"
#include "drive/store/look.h"
#include "drive/sync/sync.h"
#include "drive/watch/dirty.h"
#include "ledger/rows.h"

enum {
    TIDE_DRIVE_NEWS_MAX = 5000,      /* new items in one plan (D8) */
    TIDE_DRIVE_WORKERS = 32,         /* as many calls at once as the governor's profile allows */
    TIDE_DRIVE_ATTEMPTS = 4,         /* of an action; then it is owed (D4) */
    TIDE_DRIVE_SUPERSEDED_MAX = 5,   /* in a row, of an item; then it is owed */
    TIDE_DRIVE_RUNNING_MAX = 256,    /* actions at once, in all drives */
    TIDE_DRIVE_DISPLACED_MS = 10000, /* D42 */
    TIDE_DRIVE_COPIES_MAX = 50,      /* of a file in one second */
};

/* A sign-in. */
struct tide_drive_user {
    uint32_t account;
    tide_tokens *tokens;
    tide_onedrive *client;
    uint64_t
        full_until_ms; /* a drive of it had no room: no upload is tried before (D37); of `lock` */
};

/* A connection that only reads, beside the ledger's writer. */
struct tide_drive_reader {
    struct tide_drive_reader *next;
    tide_db db;
    struct tide_rows_kept kept;
};

/* An action that was enqueued and has not ended. */
struct tide_drive_open_act {
    uint64_t job, bytes;
    uint32_t drive;
    uint8_t verb;
    bool running;
};

/* An action that a worker carries out now. */
struct tide_drive_running {
    uint32_t drive;
    uint64_t item, row, job;
    uint64_t local; /* mark of the file that was planned */
    bool sends;     /* it sends that file, and has not come to the end */
};

/* What OneDrive tells of a drive (subscribe.c). */
struct tide_drive_heard {
    uint32_t number;
    char id[TIDE_ONEDRIVE_ID_BYTES_MAX + 1]; /* "": there is no subscription */
    char secret[72], url[256];
    uint64_t expires_ms;
    uint64_t again_ms;  /* not tried before; 0: at any time */
    bool told;          /* a notification came: the way here works */
    uint64_t polled_ms; /* when it was looked at last without being told */
};

/* A drive of which this process ran a job. */
struct tide_drive_seat {
    uint32_t number;
    uint64_t observing, planning; /* jobs: one sync and one plan at a time; 0: none */
    bool swept;                   /* leftovers were looked for */
    uint64_t emptied_day;         /* on which the trash was */
    struct tide_drive_state state;
    /* As the last look of alerts.c found them. */
    bool judged, listed;
    uint32_t account;
    char name[TIDE_DRIVE_NAME_BYTES];
    uint64_t conflicts, deletions, owed, bad;
    uint64_t tidemark_ms;      /* of the last complete round; 0: none */
    uint64_t tidemark_seen_ms; /* when this process saw it first, by the clock that does not jump */
};

struct tide_drive {
    tide_mem *mem;
    struct tide_drive_options options;
    char state_path[4096];
    char host[64];
    uint32_t sync_kind, plan_kind, act_kind, displaced_kind, concern_kind;
    tide_lock *lock; /* guards everything below */
    struct tide_drive_user *users[TIDE_DRIVES_OPEN_MAX];
    size_t users_count;
    struct tide_drive_seat seats[TIDE_DRIVES_OPEN_MAX];
    size_t seats_count;
    struct tide_drive_reader *idle;
    struct tide_drive_open_act *acts; /* by `act_at` */
    size_t acts_count, acts_room;
    tide_map act_at; /* job -> index */
    struct tide_drive_running running[TIDE_DRIVE_RUNNING_MAX];
    size_t running_count;
    tide_map superseded;                     /* key of item and row -> how often in a row */
    uint32_t to_judge[TIDE_DRIVES_OPEN_MAX]; /* accounts whose alerts may have changed */
    size_t to_judge_count;
    bool judging;                         /* a thread looks at them */
    tide_drive_dirty *dirty;              /* has a lock of its own */
    struct tide_drive_watching *watching; /* NULL: nothing is */
    const char *hear_url;                 /* NULL: no notification reaches this process */
    struct tide_drive_heard heard[TIDE_DRIVES_OPEN_MAX];
    size_t heard_count;
};

/* ---- open.c ---- */

/* The drive of a job and its sign-in; *row_out is a copy.  TIDE_NOT_FOUND: it was removed. */
tide_status tide_drive_use(tide_drive *drive, uint32_t number, struct tide_drive_row *row_out,
                           struct tide_drive_user **user_out, tide_error *err);
/* The same with rows of a reader that the job has. */
tide_status tide_drive_use_by(tide_drive *drive, tide_rows rows, uint32_t number,
                              struct tide_drive_row *row_out, struct tide_drive_user **user_out,
                              tide_error *err);
/* Given back with tide_drive_reader_give(), also NULL. */
tide_status tide_drive_reader_take(tide_drive *drive, struct tide_drive_reader **reader_out,
                                   tide_error *err);
void tide_drive_reader_give(tide_drive *drive, struct tide_drive_reader *reader);
tide_rows tide_drive_reader_rows(struct tide_drive_reader *reader, uint32_t number);
/* Takes a turn at a drive's seat; false: another job has it. */
typedef enum tide_drive_turn { TIDE_DRIVE_OBSERVING, TIDE_DRIVE_PLANNING } tide_drive_turn;
bool tide_drive_turn_take(tide_drive *drive, uint32_t number, tide_drive_turn turn,
                          const tide_job *job);
void tide_drive_turn_give(tide_drive *drive, uint32_t number, tide_drive_turn turn);
/* Whether leftovers must be looked for: once in each process, and after tide_drive_sweep_soon(). */
bool tide_drive_sweep_is_due(tide_drive *drive, uint32_t number);
void tide_drive_sweep_soon(tide_drive *drive, uint32_t number);
/* Under the lock; NULL: there are too many drives. */
struct tide_drive_seat *tide_drive_seat_of(tide_drive *drive, uint32_t number);
/* True once for each drive, process and day. */
bool tide_drive_first_of_day(tide_drive *drive, uint32_t number, uint64_t now_ms);

/* Actions on their way. */
void tide_drive_acts_add(tide_drive *drive, uint32_t number, uint64_t job, tide_drive_verb verb,
                         uint64_t bytes);
void tide_drive_acts_drop(tide_drive *drive, uint64_t job);
size_t tide_drive_acts_open(tide_drive *drive, uint32_t number);
/* One running action for each item and row (I10): false, another one has it.  */
struct tide_drive_order;
bool tide_drive_run_begin(tide_drive *drive, uint64_t job, const struct tide_drive_order *order);
void tide_drive_run_end(tide_drive *drive, uint64_t job);
bool tide_drive_is_running(tide_drive *drive, uint32_t number, uint64_t item, uint64_t row);
/* How often in a row the actions of an item were superseded, this one included. */
uint32_t tide_drive_superseded_count(tide_drive *drive, const struct tide_drive_order *order);
void tide_drive_superseded_end(tide_drive *drive, const struct tide_drive_order *order);
void tide_drive_transferred(tide_drive *drive, uint32_t number, bool down, uint64_t bytes);

/* ---- unwanted.c ---- */

/* Rows of files here were written: uploads of what they were before are restarted (D5). */
tide_status tide_drive_stale_uploads(tide_drive *drive, uint32_t number, tide_error *err);
/* The upload sends its last fragment next, and is not restarted from now on; false: it was. */
bool tide_drive_run_closes(tide_drive *drive, tide_job *job);
/* The status of a job of a drive: TIDE_OK, if it failed because its drive was removed. */
tide_status tide_drive_unless_removed(tide_drive *drive, tide_job *job, tide_status rc,
                                      tide_error *err);

/* The job's payload: {"drive":N,...}. */
tide_status tide_drive_payload(tide_job *job, json_t **payload_out, uint32_t *number_out,
                               tide_error *err);

/* Enqueues a sync of what changed here, and of what is online; joins one that waits. */
tide_status tide_drive_sync_changed(tide_drive *drive, const struct tide_drive_row *row,
                                    tide_error *err);
/* Adds the rules of a drive, one a line (observe.c). */
tide_status tide_drive_rules_text(tide_rows db, uint32_t number, tide_buf *text, tide_error *err);

/* ---- seen.c ---- */

/* What rows keep of an item, with the texts in it. */
struct tide_drive_item {
    struct tide_drive_seen seen;
    char id[TIDE_DRIVE_LOOK_ID_BYTES], parent_id[TIDE_DRIVE_LOOK_ID_BYTES];
    char name[TIDE_DRIVE_LOOK_NAME_BYTES];
    char etag[TIDE_DRIVE_LOOK_TAG_BYTES], ctag[TIDE_DRIVE_LOOK_TAG_BYTES];
    char target_drive[TIDE_DRIVE_LOOK_ID_BYTES], target_id[TIDE_DRIVE_LOOK_ID_BYTES];
    bool is_root;
};
/* `page`: of a list, where fields may be missing and names misspelt (D32).  The texts are in
 * `out`. */
void tide_drive_item_of_answer(const struct tide_onedrive_item *item, bool page,
                               struct tide_drive_item *out);

/* ---- observers ---- */

struct tide_drive_looking {
    tide_drive *drive;
    tide_job *job;
    const struct tide_drive_row *row;
    struct tide_drive_user *user;
    const tide_ignore *ignore; /* NULL: nothing is */
    bool full;
    bool changed; /* the watcher asks: only folders that changed, of a drive that is watched */
};
/* TIDE_GONE, of a shared folder: its target is refused (D16). */
tide_status tide_drive_feed(const struct tide_drive_looking *looking, tide_error *err);
tide_status tide_drive_look_here(const struct tide_drive_looking *looking, tide_error *err);

/* ---- mounts.c: shared folders (D16, D35) ---- */

/* After the list of changes was read, before the scan: attaches the shared folders that are new in it, moves
 * those whose shortcuts were moved, detaches those that are not here any more.  *wait_out: one of them is
 * in a folder that is not here yet. */
tide_status tide_drive_mounts(const struct tide_drive_looking *looking, bool *wait_out,
                              tide_error *err);
/* Looks at the shared folders again when what the drive's plan has to do is done; no later than
 * `until_ms`. */
tide_status tide_drive_mounts_later(tide_drive *drive, const struct tide_drive_row *row,
                                    uint64_t until_ms, tide_error *err);
/* Of a drive that is a shared folder: whether its folder has its marker.  If not, the drive around it
 * looks why. */
tide_status tide_drive_mount_is_here(tide_drive *drive, const struct tide_drive_row *row,
                                     bool *here_out, tide_error *err);
/* Its target answered 400, 403 or 404; or, without a reason, it answers again. */
tide_status tide_drive_mount_refused(tide_drive *drive, const struct tide_drive_row *row,
                                     const char *why, tide_error *err);
/* D38: overwriting uploads without an answer; before a scan is stored and before a plan. */
tide_status tide_drive_doubts(tide_drive *drive, tide_job *job, const struct tide_drive_row *row,
                              struct tide_drive_user *user, tide_error *err);

/* Makes or renews the subscription of the drive, if notifications reach this process (subscribe.c). */
tide_status tide_drive_subscribe(const struct tide_drive_looking *looking, tide_error *err);
/* OneDrive tells of this drive, and it was looked at lately: there is no need to ask. */
bool tide_drive_is_heard(tide_drive *drive, uint32_t number);
/* Tells of trouble, if somebody watches (watch.c). */
void tide_drive_tell(tide_drive *drive, const char *name, const char *text);

/* Whether this process watches its folder. */
bool tide_drive_is_watched(tide_drive *drive, const struct tide_drive_row *row);

/* ---- alerts.c ---- */

/* Raises and clears the alerts of an account's drives.  Any thread, without locks. */
void tide_drive_alerts(tide_drive *drive, uint32_t account);
/* The same for the accounts of drives that were judged and are gone. */
void tide_drive_alerts_removed(tide_drive *drive);
/* A sync ended so, or another job of the drive failed: why a drive stopped is kept, and that it goes on. */
void tide_drive_sync_ended(tide_drive *drive, tide_job *job, tide_status rc, const tide_error *why);

/* ---- order.c: an action as the payload of its job ---- */

struct tide_drive_order {
    uint32_t drive;
    uint64_t item, row, was_item, copy_of, parent_item, parent_row;
    char name[TIDE_DRIVE_LOOK_NAME_BYTES];
    tide_drive_verb verb;
    tide_drive_kind kind;
    tide_drive_notice notice;
    bool compare, step_aside;
    /* What was planned with; 0: there is no such row.  Of a copy without an item of its own, the
     * remote ones are of the item that it is a copy of. */
    uint64_t remote_content, remote_place, local_content, local_place;
    uint64_t base_row; /* the row that the item's baseline had; 0: none */
    uint64_t row_item; /* the item whose baseline had the row; 0: none */
};
/* Whether item and row still belong together as the plan saw it: a plan reads its rows before it
 * writes its jobs, and an action that ends in between may pair them with others. */
tide_status tide_drive_order_pairs(tide_rows db, const struct tide_drive_order *order,
                                   bool *same_out, tide_error *err);
/* `owners`: from rows to indexes of trees->bases. */
tide_status tide_drive_order_of(uint32_t number, const struct tide_drive_action *action,
                                const struct tide_drive_trees *trees, const tide_map *owners,
                                struct tide_drive_order *order_out, tide_error *err);
tide_status tide_drive_order_write(const struct tide_drive_order *order, tide_buf *out);
tide_status tide_drive_order_read(tide_text payload, struct tide_drive_order *order_out,
                                  tide_error *err);
/* The same numbers of rows as they are now. */
uint64_t tide_drive_mark_remote(const struct tide_drive_remote_look *look);
uint64_t tide_drive_mark_remote_place(const struct tide_drive_remote_look *look);
uint64_t tide_drive_mark_local(const struct tide_drive_local_look *look);
uint64_t tide_drive_mark_local_place(const struct tide_drive_local_look *look);

/* ---- enqueue.c ---- */

/* What a plan comes to, written slice by slice. */
struct tide_drive_planned {
    tide_drive *drive;
    tide_job *job;
    const struct tide_drive_row *row;
    const struct tide_drive_plan *plan;
    const struct tide_drive_loaded *loaded;
    uint64_t changed; /* of the state that was planned, by the first slice of it */
    bool again;       /* something that was loaded is left for another plan */
    size_t actions;   /* became jobs */
    uint64_t now_ms;
};
tide_status tide_drive_plan_write(struct tide_drive_planned *planned, tide_error *err);
uint64_t tide_drive_key_of(uint64_t item, uint64_t row); /* for maps */

/* ---- acting ---- */

/* An action at work.  Lives in the job's memory, because its effect is written after the handler
 * returned. */
struct tide_drive_task {
    tide_drive *drive;
    tide_job *job;
    struct tide_drive_row row;
    struct tide_drive_user *user;
    struct tide_drive_order order;
    struct tide_drive_act act;
    struct tide_drive_reader *reader;
    tide_rows db;  /* of the reader, until tide_drive_rows_end() */
    bool snapshot; /* all of `db` is as it was when the job began */
    bool has_remote, has_local, has_base;
    struct tide_drive_remote_look remote;
    struct tide_drive_local_look local;
    struct tide_drive_base_look base;

    /* What it came to. */
    bool was_done;       /* by a job of an earlier plan */
    tide_status outcome; /* TIDE_OK, TIDE_SUPERSEDED, or why it is owed */
    tide_error why;
    bool has_live;
    struct tide_drive_item live; /* as it is online */
    bool live_gone;              /* it is no longer online */
    bool has_found;
    struct tide_drive_found found; /* as it is here now; name and parent below */
    uint64_t found_parent;
    char found_name[TIDE_DRIVE_NAME_BYTES_MAX + 1];
    bool rewritten;
    uint64_t now_ms;
    char displaced[TIDE_DRIVE_TEMPORARY_BYTES];
    struct tide_entry displaced_entry;
    uint64_t owed_attempts, owed_wait_ms;
    bool closed; /* the item, or the folder it goes to, is read-only online (D37) */
    bool bad;    /* it is refused for what it is, and not because of where or when (D41) */
};

/* transfer.c: until when no upload of the account is tried; 0: they are. */
void tide_drive_full_until(tide_drive *drive, struct tide_drive_user *user, uint64_t until_ms);
/* One for each verb (transfer.c, here.c, online.c); statuses as in act.h. */
tide_status tide_drive_do_up(struct tide_drive_task *task, tide_error *err);
tide_status tide_drive_do_new(struct tide_drive_task *task, tide_error *err);
tide_status tide_drive_do_down(struct tide_drive_task *task, tide_error *err);
tide_status tide_drive_do_mkdir_remote(struct tide_drive_task *task, tide_error *err);
tide_status tide_drive_do_mkdir_local(struct tide_drive_task *task, tide_error *err);
tide_status tide_drive_do_move_remote(struct tide_drive_task *task, tide_error *err);
tide_status tide_drive_do_move_local(struct tide_drive_task *task, tide_error *err);
tide_status tide_drive_do_del_remote(struct tide_drive_task *task, tide_error *err);
tide_status tide_drive_do_del_local(struct tide_drive_task *task, tide_error *err);

/* Helpers of these. */
void tide_drive_rows_end(struct tide_drive_task *task);    /* `db` is not read any more */
void tide_drive_look_online(struct tide_drive_task *task); /* GET: its row is renewed (online.c) */
tide_status tide_drive_other_plan(tide_error *err);        /* TIDE_SUPERSEDED: rows changed */
/* tide_drive_deletion_begins(), durable when it returns. */
tide_status tide_drive_deletion_intent(struct tide_drive_task *task, bool online, tide_error *err);
/* The folder here, and its row, that the item goes to. */
tide_status tide_drive_target_here(struct tide_drive_task *task, tide_buf *path, uint64_t *row_out,
                                   tide_error *err);
/* The id of the folder online that the item goes to. */
tide_status tide_drive_target_online(struct tide_drive_task *task,
                                     char id_out[TIDE_DRIVE_LOOK_ID_BYTES], tide_error *err);
void tide_drive_entry_of(const struct tide_drive_local_look *look, struct tide_entry *entry_out);
void tide_drive_online_of(const struct tide_drive_remote_look *look, struct tide_drive_online *out);
void tide_drive_live_is(struct tide_drive_task *task, const struct tide_onedrive_answer *answer);
void tide_drive_found_is(struct tide_drive_task *task, uint64_t parent, tide_text name,
                         const struct tide_entry *entry, const struct tide_drive_content *content);

/* Writes what came of an action; run with its `done`.  The argument is the task. */
tide_transact_fn tide_drive_settle;

/* Handlers; context is the tide_drive. */
tide_handler tide_drive_sync_job;      /* observe.c */
tide_handler tide_drive_plan_job;      /* plan.c */
tide_handler tide_drive_act_job;       /* act.c */
tide_handler tide_drive_displaced_job; /* displaced.c */
tide_handler tide_drive_concern_job;   /* alerts.c */
/* Enqueues it as a child, if what came of the action may raise or clear an alert. */
tide_status tide_drive_concern_add(struct tide_drive_task *task, tide_error *err);
/* Enqueues it as a child. */
tide_status tide_drive_displaced_add(struct tide_drive_task *task, uint64_t parent_row,
                                     tide_error *err);
/* Files of ours that no action has any more (D42); before a scan, when it is due. */
bool tide_drive_is_leftover(tide_text name);
tide_status tide_drive_sweep(const struct tide_drive_looking *looking, tide_error *err);

#endif
