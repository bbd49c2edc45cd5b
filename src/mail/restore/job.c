/* job.c - restores some entries of a manifest (restore.h).
 *
 * It gets only the ids of entries, and reads the rest from the manifest and the archive whenever it
 * starts or resumes after a wait, so that finished entries are recognized and skipped.  Each message
 * is recorded as soon as it is restored.  The job waits for
 * units between two calls: if it started over instead, its first calls would spend what the last
 * one waited for, forever (tide_mail_wait()).  After a failure the job retries message by
 * message, and never fails as a whole: a message that cannot be restored is refused by name and
 * stays removed. */
#include "mail/restore/inside.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { AGAIN_MS = 2000 };

struct work {
    tide_restore *restore;
    tide_job *job;
    struct tide_piece *pieces;
    size_t count;
};

/* ---- recording ---- */

struct note {
    const tide_restore *restore;
    const struct tide_piece *const *pieces;
    size_t count;
    const char *new_id; /* of the only piece; NULL: all keep their ids */
    uint64_t now_ms;
};

static void tag_of(const tide_restore *restore, const char *gmail_id, char tag_out[128])
{
    /* By message and not by manifest: two manifests may name the same message, and the second must
     * not start an insert that the first has started (RST2). */
    (void)snprintf(tag_out, 128, "restore/%" PRIu32 "/%s", restore->account, gmail_id);
}

static tide_status note_intent(tide_transaction *transaction, const tide_restore *restore,
                               const char *gmail_id, const char *new_id, tide_error *err)
{
    char tag[128];
    tag_of(restore, gmail_id, tag);
    const tide_status rc = tide_transaction_intent_end(transaction, tag, TIDE_OK, new_id, err);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* It has a new id: every entry that names it becomes restored. */
static tide_status note_inserted(tide_transaction *transaction, const struct note *note,
                                 tide_error *err)
{
    const struct tide_piece *piece = note->pieces[0];
    const uint32_t account = note->restore->account;
    const char *ids[] = {piece->removal.gmail_id,
                         piece->stored_known ? piece->stored.gmail_id : ""};
    for (size_t i = 0; i < 2; i++) {
        if (ids[i][0] == '\0' || strcmp(ids[i], note->new_id) == 0)
            continue;
        TIDE_TRY(tide_removal_restored(tide_transaction_rows(transaction), account,
                                       tide_text_of(ids[i]), tide_text_of(note->new_id),
                                       note->now_ms, err));
        TIDE_TRY(note_intent(transaction, note->restore, ids[i], note->new_id, err));
    }
    return TIDE_OK;
}

static tide_status note_one(tide_rows db, uint64_t entry, const char *id, uint64_t now_ms,
                            tide_error *err)
{
    const tide_status rc = tide_removal_move(db, entry, TIDE_REMOVAL_RESTORED, id, now_ms, err);
    return rc == TIDE_STALE ? TIDE_OK : rc; /* it is already restored */
}

static tide_status note_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct note *note = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    if (note->new_id != NULL && strcmp(note->new_id, note->pieces[0]->removal.gmail_id) != 0)
        return note_inserted(transaction, note, err);
    for (size_t i = 0; i < note->count; i++) {
        const struct tide_piece *piece = note->pieces[i];
        TIDE_TRY(note_one(db, piece->removal.id, piece->removal.gmail_id, note->now_ms, err));
        if (piece->origin != 0)
            TIDE_TRY(note_one(db, piece->origin, piece->removal.gmail_id, note->now_ms, err));
    }
    return TIDE_OK;
}

/* Durable when it returns (RST3: the archive was synced before). */
static tide_status note_restored(struct work *work, struct tide_piece *const *pieces, size_t count,
                                 const char *new_id, tide_error *err)
{
    tide_restore *restore = work->restore;
    struct note note = {.restore = restore,
                        .pieces = (const struct tide_piece *const *)pieces,
                        .count = count,
                        .new_id = new_id,
                        .now_ms = tide_world_now_unix_ms(restore->world)};
    if (count == 0)
        return TIDE_OK;
    TIDE_TRY(tide_transact(restore->mail->engine, note_run, &note, err));
    for (size_t i = 0; i < count; i++) {
        pieces[i]->over = true;
        tide_restore_count(restore, pieces[i]->deed, pieces[i]->removal.bytes);
    }
    return TIDE_OK;
}

/* ---- failures ---- */

static void refuse(struct work *work, struct tide_piece *piece, const char *reason)
{
    piece->over = true;
    tide_restore_refuse(work->restore, piece->removal.id, piece->removal.gmail_id,
                        piece->removal.bytes, reason);
}

/* Whether the sign-in does not permit it: then every message fails. */
static bool is_denied(tide_status rc, const tide_error *err)
{
    return rc == TIDE_PERMANENT && err->code == 403;
}

/* Handles a failure with `piece`: TIDE_OK: continue with the next one; any other status ends this
 * attempt. */
static tide_status failed(struct work *work, struct tide_piece *piece, tide_status rc,
                          const tide_error *err)
{
    tide_restore *restore = work->restore;
    restore->denied = is_denied(rc, err);
    if (restore->denied)
        return rc;
    switch (tide_status_class(rc)) {
    case TIDE_CLASS_OK:
        return TIDE_OK;
    case TIDE_CLASS_THROTTLED:
    case TIDE_CLASS_AUTH:
    case TIDE_CLASS_NETWORK:
    case TIDE_CLASS_DISK:
    case TIDE_CLASS_CANCELED:
        return rc; /* the account waits, not the message */
    case TIDE_CLASS_RETRY:
        if (restore->trying != piece->removal.id) {
            restore->trying = piece->removal.id;
            restore->tries = 0;
        }
        if (++restore->tries < TIDE_RESTORE_TRIES_MAX)
            return tide_job_again(work->job, tide_job_now_ms(work->job) +
                                                 ((uint64_t)AGAIN_MS << (restore->tries - 1)));
        break;
    case TIDE_CLASS_GONE:
    case TIDE_CLASS_PERMANENT:
        break;
    case TIDE_CLASS_BUG:
        return rc;
    }
    refuse(work, piece, err->text);
    return TIDE_OK;
}

/* ---- labels ---- */

#define LABELS_ROOM 200

/* The labels to add and remove, in the client's form; texts in `room`. */
struct relabel {
    const char *add[LABELS_ROOM];
    const char *take[2];
    char room[LABELS_ROOM * 32];
};

static tide_status relabel_of(struct work *work, const struct tide_piece *piece,
                              struct relabel *relabel, tide_error *err)
{
    tide_text labels[TIDE_RESTORE_LABELS_MAX];
    size_t count = 0;
    size_t used = 0;
    relabel->take[0] = NULL;
    if (piece->deed == TIDE_DEED_INBOX) {
        relabel->add[0] = "INBOX";
        relabel->add[1] = NULL;
        return TIDE_OK;
    }
    relabel->take[0] = "TRASH";
    relabel->take[1] = NULL;
    const tide_status rc = tide_restore_labels(work->restore, work->job, piece->removal.labels,
                                               false, labels, &count, err);
    size_t kept = 0;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        if (used + labels[i].bytes + 1 > sizeof relabel->room)
            break;
        memcpy(relabel->room + used, labels[i].data, labels[i].bytes);
        relabel->room[used + labels[i].bytes] = '\0';
        relabel->add[kept++] = relabel->room + used;
        used += labels[i].bytes + 1;
    }
    relabel->add[kept] = NULL;
    return rc;
}

/* Relabels one message.  One that is gone must be inserted. */
static tide_status relabel_one(struct work *work, struct tide_piece *piece,
                               const struct relabel *relabel, tide_error *err)
{
    tide_status rc = TIDE_OK;
    do
        rc = tide_gmail_modify_one(work->restore->user->gmail, work->job,
                                   tide_text_of(piece->removal.gmail_id), relabel->add,
                                   relabel->take, err);
    while (tide_mail_wait(work->job, rc, TIDE_MAIL_WAIT_WINDOW_MS));
    if (rc != TIDE_GONE)
        return rc == TIDE_OK ? note_restored(work, &piece, 1, NULL, err) : rc;
    TIDE_SEEN("restore: the server has emptied its trash");
    piece->deed = TIDE_DEED_INSERT;
    if (!piece->stored_known)
        refuse(work, piece, "neither Gmail nor the archive has it");
    return TIDE_OK;
}

/* Relabels many messages at once.  The call does not report missing ones, so a listing shows which
 * are in place; the others are relabeled one by one, which reports it. */
static tide_status relabel_many(struct work *work, struct tide_piece **group, size_t count,
                                const struct relabel *relabel, tide_error *err)
{
    tide_text ids[TIDE_RESTORE_LABELED];
    bool seen[TIDE_RESTORE_LABELED];
    struct tide_piece *there[TIDE_RESTORE_LABELED];
    size_t there_count = 0;
    TIDE_ASSERT(count <= TIDE_RESTORE_LABELED);
    for (size_t i = 0; i < count; i++)
        ids[i] = tide_text_of(group[i]->removal.gmail_id);
    tide_status rc = TIDE_OK;
    do
        rc = tide_gmail_modify(work->restore->user->gmail, work->job, ids, count, relabel->add,
                               relabel->take, err);
    while (tide_mail_wait(work->job, rc, TIDE_MAIL_WAIT_WINDOW_MS));
    if (rc == TIDE_OK)
        rc = tide_restore_seen(work->restore, work->job, group, count, group[0]->deed, seen, err);
    if (rc != TIDE_OK)
        return rc;
    for (size_t i = 0; i < count; i++)
        if (seen[i])
            there[there_count++] = group[i];
    return note_restored(work, there, there_count, NULL, err);
}

static bool same_change(const struct tide_piece *a, const struct tide_piece *b)
{
    return a->deed == b->deed &&
           (a->deed == TIDE_DEED_INBOX || strcmp(a->removal.labels, b->removal.labels) == 0);
}

/* The first one left, and all that need the same change. */
static tide_status relabel_next(struct work *work, struct tide_piece *first, tide_error *err)
{
    struct tide_piece *group[TIDE_RESTORE_LABELED];
    struct relabel relabel;
    size_t count = 0;
    for (struct tide_piece *piece = first; piece < work->pieces + work->count; piece++)
        if (!piece->over && count < TIDE_RESTORE_LABELED && same_change(first, piece))
            group[count++] = piece;
    TIDE_TRY(relabel_of(work, first, &relabel, err));
    if (count > 1)
        TIDE_TRY(relabel_many(work, group, count, &relabel, err));
    for (size_t i = 0; i < count; i++) {
        if (!group[i]->over)
            TIDE_TRY(relabel_one(work, group[i], &relabel, err));
    }
    return TIDE_OK;
}

/* ---- inserts ---- */

/* Records the new id in the archive, then in the manifest. */
static tide_status adopt(struct work *work, struct tide_piece *piece,
                         const struct tide_found_again *as, const tide_text *labels,
                         size_t labels_count, tide_error *err)
{
    tide_archive *archive = work->restore->archive;
    const struct tide_renaming renaming = {
        .old_id = tide_text_of(piece->stored.gmail_id),
        .new_id = tide_text_of(as->id),
        .thread_id = tide_text_of(as->thread_id),
        .labels = labels,
        .labels_count = labels_count,
        .at_ms = (int64_t)tide_world_now_unix_ms(work->restore->world),
    };
    struct tide_stored now;
    uint64_t ticket = 0;
    tide_status rc = tide_archive_rename(archive, &renaming, &ticket, err);
    if (rc == TIDE_OK)
        rc = tide_archive_sync(archive, ticket, tide_job_cancellation(work->job), err);
    if (rc == TIDE_OK)
        rc = tide_archive_find(archive, renaming.new_id, &now, err);
    if (rc == TIDE_NOT_FOUND)
        rc = tide_error_set(err, TIDE_BUG, "the archive did not record the id %s", as->id);
    if (rc != TIDE_OK)
        return rc;
    const bool twice = now.shard != piece->stored.shard || now.rowid != piece->stored.rowid;
    TIDE_TRY(note_restored(work, &piece, 1, as->id, err));
    if (twice)
        work->restore->state.twice++;
    return TIDE_OK;
}

/* Whether a failed insert certainly did not happen: it was not sent, or it was refused. */
static bool is_unsent(tide_status rc)
{
    return rc == TIDE_AGAIN || rc == TIDE_THROTTLED || rc == TIDE_AUTH || rc == TIDE_GONE ||
           rc == TIDE_PERMANENT || rc == TIDE_INVALID || rc == TIDE_NO_MEMORY;
}

/* Sends the insert, and again without the thread if the server no longer has that. */
static tide_status insert_call(struct work *work, struct tide_piece *piece, tide_text raw,
                               const tide_text *labels, size_t labels_count,
                               struct tide_found_again *as_out, tide_error *err)
{
    tide_restore *restore = work->restore;
    char thread_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
    TIDE_TRY(tide_archive_thread_now(restore->archive, tide_text_of(piece->removal.thread_id),
                                     thread_id, err));
    tide_auto_buf id = tide_buf_in(restore->mem, TIDE_GMAIL_ID_BYTES_MAX);
    tide_auto_buf thread = tide_buf_in(restore->mem, TIDE_GMAIL_ID_BYTES_MAX);
    restore->unsent = 0; /* cleared until the outcome is known */
    tide_status rc = TIDE_OK;
    do
        rc = tide_gmail_insert(restore->user->gmail, work->job, raw, labels, labels_count,
                               tide_text_of(thread_id), &id, &thread, err);
    while (tide_mail_wait(work->job, rc, TIDE_MAIL_WAIT_WINDOW_MS));
    if (rc == TIDE_GONE && thread_id[0] != '\0') {
        TIDE_SEEN("restore: the thread is gone");
        do
            rc = tide_gmail_insert(restore->user->gmail, work->job, raw, labels, labels_count,
                                   TIDE_TEXT_NONE, &id, &thread, err);
        while (tide_mail_wait(work->job, rc, TIDE_MAIL_WAIT_WINDOW_MS));
    }
    if (is_unsent(rc))
        restore->unsent = piece->removal.id;
    if (rc == TIDE_OK) {
        (void)snprintf(as_out->id, sizeof as_out->id, "%s", tide_buf_cstr(&id));
        (void)snprintf(as_out->thread_id, sizeof as_out->thread_id, "%s", tide_buf_cstr(&thread));
    }
    return rc;
}

static tide_status insert_raw(struct work *work, struct tide_piece *piece, tide_text raw,
                              tide_error *err)
{
    tide_restore *restore = work->restore;
    tide_text labels[TIDE_RESTORE_LABELS_MAX];
    size_t count = 0;
    struct tide_found_again as = {.id = ""};
    char tag[128];
    tag_of(restore, piece->stored.gmail_id, tag);
    TIDE_TRY(
        tide_restore_labels(restore, work->job, piece->removal.labels, true, labels, &count, err));
    tide_status rc = tide_job_intent(work->job, tag, piece->removal.gmail_id, err);
    if (rc == TIDE_EXISTS && restore->unsent != piece->removal.id) {
        rc = tide_restore_look(restore, work->job, piece, raw, &as, err);
        if (rc == TIDE_OK) {
            TIDE_SEEN("restore: an insert whose answer was lost is found again");
            return adopt(work, piece, &as, labels, count, err);
        }
        if (rc != TIDE_NOT_FOUND)
            return rc;
    } else if (rc != TIDE_OK && rc != TIDE_EXISTS) {
        return rc;
    }
    TIDE_TRY(insert_call(work, piece, raw, labels, count, &as, err));
    return adopt(work, piece, &as, labels, count, err);
}

/* Whether Gmail has it after all: it came back by itself, or was never gone (M21).  Records that in
 * the archive. */
static tide_status look_for(struct work *work, struct tide_piece *piece, tide_error *err)
{
    tide_restore *restore = work->restore;
    tide_archive *archive = restore->archive;
    struct tide_gmail_message message;
    uint64_t ticket = 0;
    piece->looked = true;
    tide_gmail_message_init(&message, restore->mem);
    tide_status rc = TIDE_OK;
    do
        rc = tide_gmail_get_minimal(restore->user->gmail, work->job,
                                    tide_text_of(piece->stored.gmail_id), &message, err);
    while (tide_mail_wait(work->job, rc, TIDE_MAIL_WAIT_WINDOW_MS));
    if (rc == TIDE_OK) {
        TIDE_SEEN("restore: a message is at the server after all");
        tide_text labels[500];
        const struct tide_incoming back = {
            .gmail_id = tide_text_of(piece->stored.gmail_id),
            .thread_id = message.thread_id,
            .history_id = message.history_id,
            .internal_ms = piece->stored.internal_ms,
            .labels = labels,
            .labels_count = tide_mail_labels(message.labels, labels, 500),
        };
        piece->deed = TIDE_DEED_THERE;
        for (size_t i = 0; i < back.labels_count; i++)
            if (tide_text_equal(labels[i], TIDE_TEXT("TRASH")))
                piece->deed = TIDE_DEED_TRASH;
        rc = tide_archive_back(archive, &back, &ticket, err);
    }
    tide_gmail_message_done(&message);
    if (rc == TIDE_OK)
        rc = tide_archive_sync(archive, ticket, tide_job_cancellation(work->job), err);
    return rc == TIDE_GONE ? TIDE_OK : rc;
}

static tide_status insert(struct work *work, struct tide_piece *piece, tide_error *err)
{
    if (!piece->looked) {
        const tide_status rc = look_for(work, piece, err);
        if (rc != TIDE_OK || piece->deed != TIDE_DEED_INSERT)
            return rc;
    }
    tide_auto_buf raw = tide_buf_in(work->restore->mem, TIDE_RESTORE_RAW_BYTES_MAX);
    tide_status rc = tide_piece_raw(work->restore, piece, &raw, err);
    if (rc == TIDE_CORRUPT || rc == TIDE_NEWER || rc == TIDE_INVALID || rc == TIDE_FULL) {
        refuse(work, piece, err->text);
        rc = TIDE_OK;
    } else if (rc == TIDE_OK)
        rc = insert_raw(work, piece, tide_buf_text(&raw), err);
    return rc;
}

/* ---- the job ---- */

static tide_status do_piece(struct work *work, struct tide_piece *piece, tide_error *err)
{
    switch (piece->deed) {
    case TIDE_DEED_THERE:
        return note_restored(work, &piece, 1, piece->stored.gmail_id, err);
    case TIDE_DEED_INBOX:
    case TIDE_DEED_TRASH:
        return relabel_next(work, piece, err);
    case TIDE_DEED_INSERT:
        return insert(work, piece, err);
    case TIDE_DEED_REFUSE:
    case TIDE_DEEDS:
        break;
    }
    return tide_error_set(err, TIDE_BUG, "no action for message %s", piece->removal.gmail_id);
}

static tide_status do_pieces(struct work *work, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < work->count;) {
        struct tide_piece *piece = &work->pieces[i];
        if (piece->over) {
            i++;
            continue;
        }
        if (tide_job_canceled(work->job))
            return tide_error_set(err, TIDE_CANCELED, "canceled");
        *err = (tide_error){TIDE_OK, 0, ""};
        rc = do_piece(work, piece, err);
        if (rc != TIDE_OK)
            rc = failed(work, piece, rc, err);
        tide_job_beat(work->job, (uint64_t)i);
    }
    return rc;
}

static tide_status decide_all(struct work *work, tide_error *err)
{
    for (size_t i = 0; i < work->count; i++) {
        struct tide_piece *piece = &work->pieces[i];
        char reason[256] = "";
        piece->over = tide_restore_was_refused(work->restore, piece->removal.id);
        if (piece->over)
            continue;
        TIDE_TRY(tide_piece_decide(work->restore, piece, reason, err));
        if (piece->deed == TIDE_DEED_REFUSE)
            refuse(work, piece, reason);
    }
    return TIDE_OK;
}

struct reading {
    struct work *work;
    const uint64_t *entries;
    size_t count;
};

static tide_status read_pieces(tide_rows db, void *arg, tide_error *err)
{
    struct reading *reading = arg;
    struct work *work = reading->work;
    work->count = 0;
    for (size_t i = 0; i < reading->count; i++) {
        struct tide_piece *piece = &work->pieces[work->count];
        struct tide_removal origin;
        *piece = (struct tide_piece){.mode = work->restore->state.mode};
        TIDE_TRY(tide_removal_get(db, reading->entries[i], &piece->removal, err));
        if (piece->removal.state != TIDE_REMOVAL_REMOVED)
            continue;
        work->count++;
        if (piece->mode != TIDE_REMOVE_NOTHING)
            continue;
        tide_status rc =
            tide_removal_origin(db, work->restore->account, tide_text_of(piece->removal.gmail_id),
                                &origin, &piece->origin_mode, err);
        piece->origin = rc == TIDE_OK ? origin.id : 0;
        if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
            return rc;
    }
    return TIDE_OK;
}

tide_status tide_restore_entries(tide_restore *restore, tide_job *job, const uint64_t *entries,
                                 size_t count, tide_error *err)
{
    struct work work = {.restore = restore, .job = job};
    struct reading reading = {&work, entries, count};
    work.pieces = tide_mem_array(restore->mem, count, sizeof *work.pieces);
    if (work.pieces == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu messages", count);
    tide_status rc = tide_restore_read(restore, read_pieces, &reading, err);
    if (rc == TIDE_OK)
        rc = decide_all(&work, err);
    if (rc == TIDE_OK)
        rc = do_pieces(&work, err);
    tide_mem_free(restore->mem, work.pieces, count * sizeof *work.pieces);
    return rc;
}
