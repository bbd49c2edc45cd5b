/* act.c - drive.act: one action of a plan, from its rows to its outcome (S10, D3, D4). */
#include "base/check.h"
#include "base/json.h"
#include "drive/sync/inside.h"
#include "net/judge_graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    TURN_MS = 250,             /* another action of the item runs */
    LOOK_AGAIN_MS = 1000,      /* after an action was superseded */
    FREE_MIN_BYTES = 64 << 20, /* that stay free on the disk (S6) */
    OWED_FIRST_MS = 60000,
    OWED_MOST_MS = 3600000,
    NOT_MOUNTED = -1,
};

/* ---- rows ---- */

tide_status tide_drive_other_plan(tide_error *err)
{
    return tide_error_set(err, TIDE_SUPERSEDED, "it changed after it was planned");
}

struct deletion {
    const struct tide_drive_order *order;
    bool online;
};

static tide_status begin_deletion(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct deletion *deletion = arg;
    return tide_drive_deletion_begins(
        tide_drives_rows(tide_transaction_rows(transaction), deletion->order->drive),
        deletion->order->item, deletion->online, err);
}

tide_status tide_drive_deletion_intent(struct tide_drive_task *task, bool online, tide_error *err)
{
    struct deletion deletion = {&task->order, online};
    return tide_transact(task->drive->options.engine, begin_deletion, &deletion, err);
}

static tide_status or_none(tide_status rc, bool *has_out)
{
    *has_out = rc == TIDE_OK;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

static tide_status read_rows(struct tide_drive_task *task, tide_error *err)
{
    const struct tide_drive_order *order = &task->order;
    const uint64_t base = order->was_item != 0 ? order->was_item : order->item;
    if (order->item != 0)
        TIDE_TRY(or_none(tide_drive_look_remote(task->db, order->item, &task->remote, err),
                         &task->has_remote));
    if (order->row != 0)
        TIDE_TRY(or_none(tide_drive_look_local(task->db, order->row, &task->local, err),
                         &task->has_local));
    if (base != 0)
        TIDE_TRY(or_none(tide_drive_look_base(task->db, base, &task->base, err), &task->has_base));
    bool same = false;
    TIDE_TRY(tide_drive_order_pairs(task->db, order, &same, err));
    return same ? TIDE_OK : tide_drive_other_plan(err);
}

void tide_drive_entry_of(const struct tide_drive_local_look *look, struct tide_entry *entry_out)
{
    *entry_out = (struct tide_entry){.kind = look->kind == TIDE_DRIVE_FOLDER ? TIDE_ENTRY_FOLDER
                                                                             : TIDE_ENTRY_FILE,
                                     .bytes = look->content.bytes,
                                     .mtime_ns = look->mtime_ns,
                                     .ctime_ns = look->ctime_ns,
                                     .dev = look->identity.dev,
                                     .inode = look->identity.inode,
                                     .birth_ns = look->identity.birth_ns,
                                     .nlink = look->nlink,
                                     .mode = look->mode};
}

/* Whether the folder at the path is the one that the row is of.  Nothing is put into another one: what a
 * mount inside of the root leaves behind would no longer be empty, and so be taken for a folder from
 * which a user removed all (S13, F13). */
static tide_status is_that_folder(const struct tide_drive_task *task, uint64_t row, tide_text path,
                                  tide_error *err)
{
    struct tide_drive_local_look known;
    struct tide_entry is;
    int dir = -1;
    if (row == TIDE_DRIVE_ROOT) /* the marker says that */
        return TIDE_OK;
    TIDE_TRY(tide_drive_look_local(task->db, row, &known, err));
    TIDE_TRY(tide_folder_enter(task->act.root, path, &dir, err));
    const tide_status rc = tide_folder_look_self(dir, &is, err);
    tide_folder_close(dir);
    return rc == TIDE_OK && tide_drive_is_other_folder(&known.identity, &is) ? TIDE_NOT_FOUND : rc;
}

tide_status tide_drive_target_here(struct tide_drive_task *task, tide_buf *path, uint64_t *row_out,
                                   tide_error *err)
{
    const struct tide_drive_order *order = &task->order;
    uint64_t row = order->parent_row;
    tide_status rc = TIDE_OK;
    if (row == 0) /* another action made it: its baseline says which */
        rc = order->parent_item == 0
                 ? TIDE_NOT_FOUND
                 : tide_drive_row_of_item(task->db, order->parent_item, &row, err);
    if (rc == TIDE_OK)
        rc = tide_drive_path_of_row(task->db, row, path, err);
    if (rc == TIDE_OK)
        rc = is_that_folder(task, row, tide_buf_text(path), err);
    if (rc == TIDE_NOT_FOUND || rc == TIDE_STALE)
        return tide_error_set(err, TIDE_SUPERSEDED, "its folder is not here");
    *row_out = row;
    return rc;
}

tide_status tide_drive_target_online(struct tide_drive_task *task,
                                     char id_out[TIDE_DRIVE_LOOK_ID_BYTES], tide_error *err)
{
    const struct tide_drive_order *order = &task->order;
    uint64_t item = order->parent_item;
    tide_status rc = TIDE_OK;
    if (item == 0)
        rc = order->parent_row == 0
                 ? TIDE_NOT_FOUND
                 : tide_drive_item_of_row(task->db, order->parent_row, &item, err);
    if (rc == TIDE_OK)
        rc = tide_drive_id_of(task->db, item, id_out, err);
    return rc == TIDE_NOT_FOUND ? tide_error_set(err, TIDE_SUPERSEDED, "its folder is not online")
                                : rc;
}

/* ---- outcomes ---- */

void tide_drive_live_is(struct tide_drive_task *task, const struct tide_onedrive_answer *answer)
{
    task->has_live = answer->value != NULL;
    if (task->has_live)
        tide_drive_item_of_answer(&answer->item, false, &task->live);
}

void tide_drive_found_is(struct tide_drive_task *task, uint64_t parent, tide_text name,
                         const struct tide_entry *entry, const struct tide_drive_content *content)
{
    task->has_found = true;
    task->found_parent = parent;
    (void)snprintf(task->found_name, sizeof task->found_name, "%.*s", (int)name.bytes, name.data);
    task->found = (struct tide_drive_found){
        .identity = {entry->dev, entry->inode, entry->birth_ns},
        .mtime_ns = entry->mtime_ns,
        .ctime_ns = entry->ctime_ns,
        .nlink = entry->nlink,
        .mode = entry->mode,
        .kind = entry->kind == TIDE_ENTRY_FOLDER ? TIDE_DRIVE_FOLDER : TIDE_DRIVE_FILE,
        .state = TIDE_DRIVE_LOCAL_LIVE};
    if (content != NULL) {
        task->found.content = *content;
        task->found.hashed_ns = tide_world_now_unix_ms(task->drive->options.world) * 1000000u;
    }
}

/* ---- what act/ calls ---- */

static tide_status save(void *arg, tide_text resume, tide_error *err)
{
    return tide_job_save(((struct tide_drive_task *)arg)->job, resume, err);
}

static tide_status sleep_ms(void *arg, uint64_t wait_ms)
{
    return tide_job_sleep(((struct tide_drive_task *)arg)->job, wait_ms);
}

/* The folder, if it is the right one (S14). */
static tide_status open_root(struct tide_drive_task *task, tide_error *err)
{
    TIDE_TRY(tide_folder_open(task->row.dir, &task->act.root, err));
    return tide_drive_marker_check(task->act.root, task->row.marker, err);
}

static bool closes(void *arg)
{
    struct tide_drive_task *task = arg;
    return tide_drive_run_closes(task->drive, task->job);
}

/* One snapshot: a commit of the writer between two statements makes SQLite read all pages again. */
static tide_status rows_begin(struct tide_drive_task *task, tide_error *err)
{
    TIDE_TRY(tide_drive_reader_take(task->drive, &task->reader, err));
    task->db = tide_drive_reader_rows(task->reader, task->order.drive);
    return tide_rows_snapshot(task->db, "the rows of a drive", &task->snapshot, err);
}

/* From now on `db` has what is committed: a snapshot must not be held during calls, because the ledger's
 * log cannot start over meanwhile, and what is looked at later must be seen as it is then. */
static void snapshot_end(struct tide_drive_task *task)
{
    tide_rows_snapshot_end(task->db, task->snapshot);
    task->snapshot = false;
}

/* Before calls and waits for the disk: a connection serves many actions that wait. */
void tide_drive_rows_end(struct tide_drive_task *task)
{
    snapshot_end(task);
    tide_drive_reader_give(task->drive, task->reader);
    task->reader = NULL;
    task->db = (tide_rows){.sqlite = NULL};
}

static void fill_act(struct tide_drive_task *task)
{
    task->act = (struct tide_drive_act){
        .onedrive = task->user->client,
        .job = task->job,
        .drive = tide_text_of(task->row.drive_id),
        .root = NOT_MOUNTED,
        .free_min_bytes = FREE_MIN_BYTES,
        .mem = task->drive->mem,
        .path = task->row.dir,
        .desktop = task->drive->options.desktop,
        .now_unix_ms = task->now_ms,
        .resume = tide_job_resume(task->job),
        .save = save,
        .sleep = sleep_ms,
        .closes = closes,
        .arg = task,
    };
}

/* Recorded by settle.c, if the rows are still those of the plan. */
static tide_status check_record(const struct tide_drive_task *task, tide_error *err)
{
    const struct tide_drive_order *order = &task->order;
    if (order->verb == TIDE_DRIVE_DROP)
        return TIDE_OK;
    if (!task->has_remote || !task->has_local ||
        tide_drive_mark_remote(&task->remote) != order->remote_content ||
        tide_drive_mark_local(&task->local) != order->local_content)
        return tide_drive_other_plan(err);
    return TIDE_OK;
}

static tide_status carry_out(struct tide_drive_task *task, tide_error *err)
{
    switch (task->order.verb) {
    case TIDE_DRIVE_UP:
        return tide_drive_do_up(task, err);
    case TIDE_DRIVE_NEW:
        return tide_drive_do_new(task, err);
    case TIDE_DRIVE_DOWN:
        return tide_drive_do_down(task, err);
    case TIDE_DRIVE_MKDIR_REMOTE:
        return tide_drive_do_mkdir_remote(task, err);
    case TIDE_DRIVE_MKDIR_LOCAL:
        return tide_drive_do_mkdir_local(task, err);
    case TIDE_DRIVE_MOVE_REMOTE:
        return tide_drive_do_move_remote(task, err);
    case TIDE_DRIVE_MOVE_LOCAL:
        return tide_drive_do_move_local(task, err);
    case TIDE_DRIVE_DEL_REMOTE:
        return tide_drive_do_del_remote(task, err);
    case TIDE_DRIVE_DEL_LOCAL:
        return tide_drive_do_del_local(task, err);
    case TIDE_DRIVE_BASE:
    case TIDE_DRIVE_DROP:
        return check_record(task, err);
    }
    return TIDE_BUG;
}

/* A plan reads its rows before it writes its jobs.  An action that ended in between is planned once
 * more: then both sides have the item, and that is recorded. */
static tide_status find_done(struct tide_drive_task *task, tide_error *err)
{
    const struct tide_drive_order *order = &task->order;
    switch (order->verb) {
    case TIDE_DRIVE_NEW:
    case TIDE_DRIVE_MKDIR_REMOTE:
        return order->item != 0
                   ? TIDE_OK
                   : tide_drive_is_synced(task->db, 0, order->row, &task->was_done, err);
    case TIDE_DRIVE_DOWN:
    case TIDE_DRIVE_MKDIR_LOCAL:
        return order->row != 0 || order->was_item != 0
                   ? TIDE_OK
                   : tide_drive_is_synced(task->db, order->item, 0, &task->was_done, err);
    default:
        return TIDE_OK;
    }
}

static tide_status run(struct tide_drive_task *task, tide_error *err)
{
    fill_act(task);
    tide_status rc = find_done(task, err);
    if (rc == TIDE_OK && !task->was_done)
        rc = read_rows(task, err);
    /* These two read their rows at once, and say when they have. */
    if (task->order.verb != TIDE_DRIVE_DOWN && task->order.verb != TIDE_DRIVE_MKDIR_LOCAL)
        snapshot_end(task);
    if (rc == TIDE_OK && !task->was_done)
        rc = open_root(task, err);
    if (rc == TIDE_OK && !task->was_done)
        rc = carry_out(task, err);
    tide_folder_close(task->act.root);
    return rc;
}

/* ---- the end ---- */

/* Whether the job ends with this, and as what; else the engine knows what to do. */
static bool is_end(struct tide_drive_task *task, tide_status rc)
{
    task->outcome = rc == TIDE_GONE || rc == TIDE_EXISTS ? TIDE_SUPERSEDED : rc;
    if (task->outcome == TIDE_SUPERSEDED &&
        tide_drive_superseded_count(task->drive, &task->order) > TIDE_DRIVE_SUPERSEDED_MAX)
        task->outcome = TIDE_PERMANENT; /* it changes all the time, or rows are wrong: later */
    switch (tide_status_class(task->outcome)) {
    case TIDE_CLASS_OK:
    case TIDE_CLASS_PERMANENT:
    case TIDE_CLASS_DISK: /* other files may fit, and the other direction goes on */
        return true;
    case TIDE_CLASS_RETRY: /* a call that was canceled may fail in any way */
        return tide_job_attempt(task->job) >= TIDE_DRIVE_ATTEMPTS && !tide_job_canceled(task->job);
    default:
        return task->outcome == TIDE_SUPERSEDED;
    }
}

/* The entry is looked at again, then planned anew. */
static tide_status look_again(struct tide_drive_task *task, tide_error *err)
{
    char payload[64], dedupe[64];
    (void)snprintf(payload, sizeof payload, "{\"drive\":%" PRIu32 ",\"here\":true}",
                   task->order.drive);
    (void)snprintf(dedupe, sizeof dedupe, "drive:%" PRIu32 ":look", task->order.drive);
    const struct tide_spec spec = {.kind = task->drive->sync_kind,
                                   .account = task->row.account,
                                   .payload = payload,
                                   .dedupe = dedupe,
                                   .delay_ms = LOOK_AGAIN_MS};
    return tide_job_enqueue(task->job, &spec, err);
}

static void owed_so_far(const struct tide_drive_owed *owed, void *arg)
{
    struct tide_drive_task *task = arg;
    if (owed->item == task->order.item && owed->row == task->order.row)
        task->owed_attempts = owed->attempts;
}

static tide_status owe(struct tide_drive_task *task, tide_error *err)
{
    struct tide_drive_reader *reader = NULL;
    TIDE_TRY(tide_drive_reader_take(task->drive, &reader, err));
    const tide_status rc = tide_drive_owed_each(tide_drive_reader_rows(reader, task->order.drive),
                                                owed_so_far, task, err);
    tide_drive_reader_give(task->drive, reader);
    const uint64_t doubled =
        task->owed_attempts < 6 ? (uint64_t)OWED_FIRST_MS << task->owed_attempts : OWED_MOST_MS;
    task->owed_attempts++;
    task->owed_wait_ms = doubled < OWED_MOST_MS ? doubled : OWED_MOST_MS;
    return rc;
}

/* What a refusal means to a user (D37). */
static void explain(struct tide_drive_task *task, tide_status rc)
{
    const tide_error why = task->why;
    const tide_graph_reason reason = tide_graph_reason_of(&why);
    task->closed = reason == TIDE_GRAPH_DENIED && tide_drive_verb_is_remote(task->order.verb);
    const char *said = reason == TIDE_GRAPH_LOCKED ? "it is open elsewhere"
                       : reason == TIDE_GRAPH_FULL ? "there is no room in this OneDrive"
                       : task->closed              ? "it is read-only online"
                                                   : NULL;
    task->bad = said == NULL && rc == TIDE_PERMANENT;
    if (said != NULL)
        (void)snprintf(task->why.text, sizeof task->why.text, "%s: %.300s", said, why.text);
}

static tide_status finish(struct tide_drive_task *task, tide_error *err)
{
    if (task->outcome == TIDE_SUPERSEDED) {
        tide_drive_sweep_soon(task->drive, task->order.drive); /* it may have begun a download */
        TIDE_TRY(look_again(task, err));
    } else if (task->outcome != TIDE_OK)
        TIDE_TRY(owe(task, err));
    if (task->outcome == TIDE_OK) {
        tide_drive_superseded_end(task->drive, &task->order);
        if (task->displaced[0] != '\0')
            TIDE_TRY(tide_drive_displaced_add(task, task->found_parent, err));
    }
    TIDE_TRY(tide_drive_concern_add(task, err));
    return tide_job_effect(task->job, tide_drive_settle, task, err);
}

static tide_status run_and_finish(struct tide_drive_task *task, tide_error *err)
{
    tide_status rc = run(task, &task->why);
    tide_drive_rows_end(task);
    explain(task, rc);
    if (is_end(task, rc)) {
        rc = task->was_done ? TIDE_OK : finish(task, err);
        if (rc == TIDE_OK)
            tide_drive_acts_drop(task->drive, tide_job_id(task->job));
    } else if (err != NULL) {
        *err = task->why;
    }
    return rc;
}

static tide_status act_job(tide_job *job, tide_drive *drive, tide_error *err)
{
    struct tide_drive_task *task = tide_job_memory(job, sizeof *task);
    if (task == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for an action");
    task->drive = drive;
    task->job = job;
    task->now_ms = tide_world_now_unix_ms(drive->options.world);
    TIDE_TRY(tide_drive_order_read(tide_job_payload(job), &task->order, err));
    /* Before the snapshot, which must not be older than the turn (I10). */
    if (!tide_drive_run_begin(drive, tide_job_id(job), &task->order))
        return tide_job_again(job, tide_job_now_ms(job) + TURN_MS);
    tide_status rc = rows_begin(task, err);
    if (rc == TIDE_OK)
        rc = tide_drive_use_by(drive, task->db, task->order.drive, &task->row, &task->user, err);
    /* The drive was removed, or is a shared folder that has no place now (mounts.c). */
    if (rc == TIDE_NOT_FOUND || (rc == TIDE_OK && !tide_drive_row_syncs(&task->row))) {
        tide_drive_acts_drop(drive, tide_job_id(job));
        rc = TIDE_OK;
    } else if (rc == TIDE_OK) {
        rc = run_and_finish(task, err);
    }
    tide_drive_rows_end(task);
    tide_drive_run_end(drive, tide_job_id(job));
    return rc;
}

tide_status tide_drive_act_job(tide_job *job, void *context, tide_error *err)
{
    const tide_status rc = tide_drive_unless_removed(context, job, act_job(job, context, err), err);
    if (tide_status_class(rc) == TIDE_CLASS_AUTH) /* then no sync may run that finds it out */
        tide_drive_sync_ended(context, job, rc, err);
    return rc;
}
