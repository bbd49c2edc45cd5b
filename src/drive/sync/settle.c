/* settle.c - what came of an action becomes durable with its job's `done` (D3, I3).
 *
 * The rows are set to what the action saw and made, the baseline is written from them, and then rows
 * that an observer wrote since the action began are put back (look.h). */
#include "base/check.h"
#include "drive/sync/inside.h"

#include <string.h>

struct settling {
    const struct tide_drive_task *task;
    tide_rows db;
    uint64_t item, row;
    bool remote_is_later, local_is_later;
    bool consented; /* of a deletion */
    struct tide_drive_remote_look later_remote;
    struct tide_drive_local_look later_local;
};

/* ---- the remote row ---- */

/* Whether the row was written since the action read it, with something else than `live`. */
static bool is_later(const struct tide_drive_task *task, const struct tide_drive_remote_look *now)
{
    const bool same_as_read = task->has_remote && now->item == task->remote.item &&
                              now->state == task->remote.state &&
                              strcmp(now->etag, task->remote.etag) == 0;
    /* A tombstone keeps the tag of the item that it ends. */
    return !same_as_read &&
           (now->state == TIDE_DRIVE_REMOTE_GONE || strcmp(now->etag, task->live.etag) != 0);
}

static tide_status put_live(struct settling *s, tide_error *err)
{
    const struct tide_drive_task *task = s->task;
    s->item = task->order.item != 0 || !task->has_remote ? task->order.item : task->remote.item;
    if (task->live_gone && task->has_remote) {
        struct tide_drive_remote_look now;
        const struct tide_drive_seen gone = {.id = tide_text_of(task->remote.id),
                                             .state = TIDE_DRIVE_REMOTE_GONE};
        const tide_status rc = tide_drive_look_remote(s->db, s->item, &now, err);
        return rc == TIDE_NOT_FOUND ? TIDE_OK
               : rc != TIDE_OK      ? rc
                                    : tide_drive_remote_put(s->db, &gone, &s->item, err);
    }
    if (!task->has_live)
        return TIDE_OK;
    tide_status rc = tide_drive_item_of(s->db, task->live.seen.id, &s->item, err);
    if (rc == TIDE_OK)
        rc = tide_drive_look_remote(s->db, s->item, &s->later_remote, err);
    s->remote_is_later = rc == TIDE_OK && is_later(task, &s->later_remote);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    return tide_drive_remote_put(s->db, &task->live.seen, &s->item, err);
}

/* ---- the local row ---- */

static tide_status put_found(struct settling *s, tide_error *err)
{
    const struct tide_drive_task *task = s->task;
    struct tide_drive_found found = task->found;
    const tide_text name = tide_text_of(task->found_name);
    const tide_status rc =
        tide_drive_look_at(s->db, task->found_parent, name, &s->later_local, err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    s->local_is_later = rc == TIDE_OK && s->later_local.state == TIDE_DRIVE_LOCAL_LIVE &&
                        s->later_local.ctime_ns > found.ctime_ns;
    found.parent = task->found_parent;
    found.name = name;
    return tide_drive_scan_put(s->db, &found, &s->row, err);
}

/* The file that was sent, as it was then. */
static tide_status put_sent(struct settling *s, tide_error *err)
{
    const struct tide_drive_task *task = s->task;
    s->row = task->order.row;
    const tide_status rc = tide_drive_look_local(s->db, s->row, &s->later_local, err);
    if (rc != TIDE_OK) /* another action took its row: there is nothing to record */
        return rc == TIDE_NOT_FOUND ? TIDE_SUPERSEDED : rc;
    s->local_is_later =
        tide_drive_mark_local(&s->later_local) != tide_drive_mark_local(&task->local);
    return s->local_is_later ? tide_drive_local_facts(s->db, &task->local, err) : TIDE_OK;
}

static tide_status put_back(struct settling *s, tide_error *err)
{
    if (s->remote_is_later)
        TIDE_TRY(tide_drive_remote_again(s->db, &s->later_remote, err));
    return s->local_is_later ? tide_drive_local_facts(s->db, &s->later_local, err) : TIDE_OK;
}

/* ---- outcomes ---- */

static tide_status commit(struct settling *s, uint64_t was_item, tide_error *err)
{
    const struct tide_drive_task *task = s->task;
    const struct tide_drive_outcome outcome = {.verb = task->order.verb,
                                               .item = s->item,
                                               .row = s->row,
                                               .was_item = was_item == s->item ? 0 : was_item,
                                               .rewritten = task->rewritten,
                                               .consented = s->consented,
                                               .now_ms = task->now_ms};
    return tide_drive_commit(s->db, &outcome, err);
}

static tide_status settle_sent(struct settling *s, uint64_t was_item, tide_error *err)
{
    TIDE_TRY(put_live(s, err));
    tide_status rc = put_sent(s, err);
    if (rc == TIDE_OK)
        rc = commit(s, was_item, err);
    if (rc != TIDE_OK && rc != TIDE_SUPERSEDED)
        return rc;
    return put_back(s, err);
}

/* An earlier run placed the file and died: what is here is the version that the action read.  A later
 * one that was seen since is put back afterwards, else it would count as synced and never come. */
static tide_status put_read(struct settling *s, tide_error *err)
{
    const struct tide_drive_task *task = s->task;
    const tide_status rc = tide_drive_look_remote(s->db, task->remote.item, &s->later_remote, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    s->remote_is_later = is_later(task, &s->later_remote);
    return s->remote_is_later ? tide_drive_remote_again(s->db, &task->remote, err) : TIDE_OK;
}

static tide_status settle_made(struct settling *s, tide_error *err)
{
    const bool placed_before = s->task->order.verb == TIDE_DRIVE_DOWN && !s->task->has_live &&
                               !s->task->live_gone && s->task->has_remote;
    TIDE_TRY(placed_before ? put_read(s, err) : put_live(s, err));
    s->item = s->task->order.item;
    tide_status rc = put_found(s, err);
    if (rc == TIDE_OK)
        rc = commit(s, s->task->order.was_item, err);
    if (rc != TIDE_OK && rc != TIDE_SUPERSEDED)
        return rc;
    if (s->task->displaced[0] != '\0')
        TIDE_TRY(tide_drive_displaced_put(s->db, &s->task->local.content, s->task->now_ms, err));
    return put_back(s, err);
}

static tide_status settle_move_remote(struct settling *s, tide_error *err)
{
    const struct tide_drive_order *order = &s->task->order;
    TIDE_TRY(put_live(s, err));
    s->row = order->row;
    if (!order->step_aside) {
        TIDE_TRY(tide_drive_aside_remote(s->db, order->item, TIDE_TEXT_NONE, err));
        TIDE_TRY(commit(s, 0, err));
    }
    return put_back(s, err);
}

/* The copy of a conflict has its name: it is no longer the item, which comes here anew.  With the
 * baseline a crash before that would make it a file that the user had renamed (F6). */
static tide_status settle_copy(struct settling *s, tide_error *err)
{
    const struct tide_drive_order *order = &s->task->order;
    uint64_t row = 0;
    const tide_status rc = tide_drive_row_of_item(s->db, order->copy_of, &row, err);
    if (rc != TIDE_OK || row != order->row)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    const struct tide_drive_outcome outcome = {
        .verb = TIDE_DRIVE_DROP, .item = order->copy_of, .now_ms = s->task->now_ms};
    return tide_drive_commit(s->db, &outcome, err);
}

static tide_status settle_move_local(struct settling *s, tide_error *err)
{
    const struct tide_drive_task *task = s->task;
    const struct tide_drive_order *order = &task->order;
    struct tide_drive_local_look now;
    tide_status rc = tide_drive_look_local(s->db, order->row, &now, err);
    if (rc != TIDE_OK) /* a scan saw it at its new place, under another row */
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    rc = tide_drive_local_moved(s->db, order->row, task->found_parent, tide_text_of(order->name),
                                err);
    if (rc != TIDE_OK)
        return rc == TIDE_SUPERSEDED ? TIDE_OK : rc;
    now.identity = task->found.identity;
    now.mtime_ns = task->found.mtime_ns;
    now.ctime_ns = task->found.ctime_ns;
    now.state = TIDE_DRIVE_LOCAL_LIVE;
    now.gone_ms = 0;
    TIDE_TRY(tide_drive_local_facts(s->db, &now, err));
    if (order->step_aside)
        return tide_drive_aside_local(
            s->db, order->row,
            tide_text_of(task->local.aside[0] != '\0' ? task->local.aside : task->local.name), err);
    s->item = order->item;
    s->row = order->row;
    if (order->item != 0)
        return commit(s, 0, err);
    return order->copy_of != 0 ? settle_copy(s, err) : TIDE_OK;
}

static tide_status settle_deleted(struct settling *s, tide_error *err)
{
    const struct tide_drive_order *order = &s->task->order;
    TIDE_TRY(tide_drive_is_consented(s->db, order->item, s->task->now_ms, &s->consented, err));
    s->item = order->item;
    s->row = order->row;
    const tide_status rc = order->verb == TIDE_DRIVE_DEL_REMOTE
                               ? put_live(s, err)
                               : tide_drive_local_removed(s->db, order->row, err);
    return rc == TIDE_OK ? commit(s, 0, err) : rc;
}

static tide_status settle_record(struct settling *s, tide_error *err)
{
    const struct tide_drive_order *order = &s->task->order;
    const bool drop = order->verb == TIDE_DRIVE_DROP;
    struct tide_drive_remote_look remote;
    struct tide_drive_local_look local;
    s->item = order->item;
    s->row = drop ? 0 : order->row;
    if (!drop && (tide_drive_look_remote(s->db, order->item, &remote, NULL) != TIDE_OK ||
                  tide_drive_look_local(s->db, order->row, &local, NULL) != TIDE_OK ||
                  tide_drive_mark_remote(&remote) != order->remote_content ||
                  tide_drive_mark_local(&local) != order->local_content))
        return TIDE_OK; /* the next plan sees it */
    const tide_status rc = commit(s, drop ? 0 : order->was_item, err);
    return rc == TIDE_SUPERSEDED ? TIDE_OK : rc;
}

static tide_status settle_done(struct settling *s, tide_error *err)
{
    switch (s->task->order.verb) {
    case TIDE_DRIVE_UP:
        return settle_sent(s, s->task->order.was_item, err);
    case TIDE_DRIVE_NEW:
    case TIDE_DRIVE_MKDIR_REMOTE:
        return settle_sent(s, s->task->order.item, err);
    case TIDE_DRIVE_DOWN:
    case TIDE_DRIVE_MKDIR_LOCAL:
        return settle_made(s, err);
    case TIDE_DRIVE_MOVE_REMOTE:
        return settle_move_remote(s, err);
    case TIDE_DRIVE_MOVE_LOCAL:
        return settle_move_local(s, err);
    case TIDE_DRIVE_DEL_REMOTE:
    case TIDE_DRIVE_DEL_LOCAL:
        return settle_deleted(s, err);
    case TIDE_DRIVE_BASE:
    case TIDE_DRIVE_DROP:
        return settle_record(s, err);
    }
    return TIDE_BUG;
}

/* D21: shown when it is done; once for an item, whatever number of actions it takes. */
static tide_status note_conflict(const struct settling *s, tide_error *err)
{
    const struct tide_drive_task *task = s->task;
    const struct tide_drive_order *order = &task->order;
    if (order->notice == TIDE_DRIVE_QUIET || order->step_aside)
        return TIDE_OK;
    const bool copy =
        order->copy_of != 0 || order->notice == TIDE_DRIVE_K6 || order->notice == TIDE_DRIVE_K8;
    /* A copy is noted by the move that gives it its name, not by its transfer. */
    if (copy && order->verb != TIDE_DRIVE_MOVE_LOCAL && order->verb != TIDE_DRIVE_MOVE_REMOTE)
        return TIDE_OK;
    const char *name = copy && task->has_local    ? task->local.name
                       : copy && task->has_remote ? task->remote.name
                                                  : order->name;
    const struct tide_drive_conflict conflict = {
        .notice = order->notice,
        .item = order->copy_of != 0 ? order->copy_of : s->item,
        .name = tide_text_of(name),
        .copy = copy ? tide_text_of(order->name) : TIDE_TEXT_NONE,
        .at_ms = task->now_ms};
    return tide_drive_conflict_once(s->db, &conflict, err);
}

/* D28: hard links are separate files online, so new content of one of them is that of one name here, too.
 * A link that was made after the file had been looked at would have superseded the download: its ctime
 * is another one. */
static tide_status note_parted(const struct settling *s, tide_error *err)
{
    const struct tide_drive_task *task = s->task;
    if (task->displaced[0] == '\0' || task->displaced_entry.nlink < 2)
        return TIDE_OK;
    const struct tide_drive_conflict parted = {.notice = TIDE_DRIVE_PARTED,
                                               .item = s->item,
                                               .name = tide_text_of(task->found_name),
                                               .copy = TIDE_TEXT_NONE,
                                               .at_ms = task->now_ms};
    return tide_drive_conflict_once(s->db, &parted, err);
}

/* The folder for what was to be made in it, else the item itself: nothing is written to it, nor beneath
 * it, for a day (D37). */
static tide_status settle_closed(const struct settling *s, tide_error *err)
{
    const struct tide_drive_task *task = s->task;
    const struct tide_drive_order *order = &task->order;
    const bool makes = order->verb == TIDE_DRIVE_NEW || order->verb == TIDE_DRIVE_MKDIR_REMOTE;
    struct tide_drive_owed closed = {.item = makes ? order->parent_item : order->item,
                                     .verb = order->verb,
                                     .error = tide_text_of(task->why.text),
                                     .name = tide_text_of(makes ? "" : order->name),
                                     .attempts = 1,
                                     .next_ms = task->now_ms + TIDE_DRIVE_DAY_MS,
                                     .now_ms = task->now_ms,
                                     .closed = true};
    if (closed.item == 0) {
        const tide_status rc = tide_drive_item_of_row(s->db, order->parent_row, &closed.item, err);
        if (rc != TIDE_OK)
            return rc == TIDE_NOT_FOUND ? TIDE_OK : rc; /* its folder went: the next plan */
    }
    TIDE_TRY(tide_drive_owe(s->db, &closed, err));
    return tide_drive_owed_paid(s->db, order->item, order->row, err);
}

static tide_status settle_owed(const struct settling *s, tide_error *err)
{
    const struct tide_drive_task *task = s->task;
    const struct tide_drive_owed owed = {.item = task->order.item,
                                         .row = task->order.row,
                                         .verb = task->order.verb,
                                         .name = tide_text_of(task->order.name),
                                         .error = tide_text_of(task->why.text),
                                         .attempts = (uint32_t)task->owed_attempts,
                                         .next_ms = task->now_ms + task->owed_wait_ms,
                                         .now_ms = task->now_ms,
                                         .bad = task->bad};
    return tide_drive_owe(s->db, &owed, err);
}

tide_status tide_drive_settle(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct tide_drive_task *task = arg;
    const tide_rows db =
        tide_drives_rows(tide_transaction_rows_often(transaction), task->order.drive);
    struct settling s = {.task = task, .db = db};
    bool there = false;
    TIDE_TRY(tide_drives_has(db, task->order.drive, &there, err));
    if (!there) /* it was removed meanwhile */
        return TIDE_OK;
    /* An upload that did not end well may have in an earlier run: it stays in doubt until it is looked
     * up. */
    if (task->outcome == TIDE_OK && task->order.verb == TIDE_DRIVE_UP)
        TIDE_TRY(tide_drive_doubt_end(db, task->order.item, err));
    if (task->outcome == TIDE_OK && task->order.verb == TIDE_DRIVE_NEW)
        TIDE_TRY(tide_drive_doubt_end(db, tide_drive_doubt_of_new(task->order.row), err));
    if (task->outcome == TIDE_OK) {
        TIDE_TRY(settle_done(&s, err));
        TIDE_TRY(note_conflict(&s, err));
        TIDE_TRY(note_parted(&s, err));
        return tide_drive_owed_paid(db, task->order.item, task->order.row, err);
    }
    TIDE_TRY(tide_drive_undone(db, tide_job_id(task->job), err));
    TIDE_TRY(put_live(&s, err));
    TIDE_TRY(put_back(&s, err));
    /* Planned again, also if what stood in its way is in no row, like a file of ours in a folder; and what
     * is to be done now may have been planned while this one had its place (D5). */
    if (task->outcome == TIDE_SUPERSEDED)
        return tide_drive_changed(db, 1, err);
    return task->closed ? settle_closed(&s, err) : settle_owed(&s, err);
}
