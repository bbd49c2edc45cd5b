/* writer.c - the only thread that writes to the archive (M7).
 *
 *   take (lock) -> apply (no lock) -> ... -> commit (no lock) -> notify (lock)
 *
 * Entries are applied at once, in transactions that stay open until the group is full, old or a
 * caller waits for it, so that compressing overlaps with fetching. Each shard that a group touches
 * has its own transaction; they are committed one after the other.  A crash between two of them
 * leaves a part of the group on disk, which was not acknowledged and can be put again without harm
 * (ARC3).  Entries are kept until their group is durable. */
#include "mail/archive/inside.h"
#include "base/check.h"

static void push_back(struct tide_entries *entries, struct tide_entry *entry)
{
    entry->next = NULL;
    if (entries->last == NULL)
        entries->first = entry;
    else
        entries->last->next = entry;
    entries->last = entry;
    entries->count++;
}

static struct tide_entry *pop_front(struct tide_entries *entries)
{
    struct tide_entry *entry = entries->first;
    if (entry == NULL)
        return NULL;
    entries->first = entry->next;
    if (entries->first == NULL)
        entries->last = NULL;
    entries->count--;
    return entry;
}

/* ---- transactions --------------------------------------------------------------- */

tide_status tide_writer_begin(tide_archive *archive, struct tide_shard *shard, tide_error *err)
{
    (void)archive;
    return shard->in_tx ? TIDE_OK : tide_shard_begin(shard, err);
}

static void rollback_all(struct tide_writer *writer)
{
    for (size_t i = 0; i < writer->shards.count; i++)
        if (writer->shards.list[i]->in_tx)
            tide_shard_rollback(writer->shards.list[i]);
}

static tide_status commit_all(struct tide_writer *writer, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < writer->shards.count; i++)
        if (writer->shards.list[i]->in_tx)
            rc = tide_shard_commit(writer->shards.list[i], writer->shards.bytes_max, err);
    if (rc != TIDE_OK)
        rollback_all(writer);
    return rc;
}

/* Runs outside of a commit, so that no caller waits for it.  If a reader keeps the log from being
 * moved, it is moved another time; if there is no space, the next commit reports that. */
static tide_status checkpoint_some(struct tide_writer *writer, tide_error *err)
{
    for (size_t i = 0; i < writer->shards.count; i++) {
        struct tide_shard *shard = writer->shards.list[i];
        if (!shard->open || shard->wal_pages < TIDE_SHARD_WAL_PAGES)
            continue;
        tide_status rc = tide_shard_checkpoint(shard, false, err);
        if (rc == TIDE_IO || rc == TIDE_CORRUPT)
            return rc;
    }
    return TIDE_OK;
}

/* ---- notifying ------------------------------------------------------------------- */

/* With the lock.  The work has ended, successfully or not. */
static void work_end(struct tide_work *work, tide_status rc, const tide_error *err)
{
    if (work->abandoned) {
        work->free(work);
        return;
    }
    work->rc = rc;
    if (err != NULL)
        work->err = *err;
    work->done = true;
}

/* With the lock.  The group is durable. */
static void group_done(tide_archive *archive)
{
    struct tide_writer *writer = archive->writer;
    for (;;) {
        struct tide_entry *entry = pop_front(&writer->group);
        if (entry == NULL)
            break;
        TIDE_ASSERT(entry->ticket == writer->ticket_done + 1);
        writer->ticket_done = entry->ticket;
        writer->bytes -= entry->bytes;
        if (entry->kind == TIDE_ENTRY_MESSAGE) {
            writer->stored++;
            tide_recent_keep(archive, entry->as.message.shard, entry->as.message.content,
                             &entry->as.message.raw);
        }
        if (entry->kind == TIDE_ENTRY_WORK && entry->as.work != NULL)
            work_end(entry->as.work, TIDE_OK, NULL);
        tide_entry_free(archive, entry);
    }
    writer->group_bytes = 0;
    tide_cond_wake_all(archive->world, writer->news);
}

/* Failures that end by themselves or when a user frees space or a lock. */
static bool passes(tide_status status)
{
    return status == TIDE_DISK_FULL || status == TIDE_NO_MEMORY || status == TIDE_BUSY;
}

/* With the lock.  Nothing of the group is durable: puts it back at the front, in order, without its
 * work, whose owners get the error.  A permanent failure drops everything. */
static void group_failed(tide_archive *archive, const tide_error *err, uint64_t now_us)
{
    struct tide_writer *writer = archive->writer;
    struct tide_entries all = writer->group;
    if (all.last != NULL)
        all.last->next = writer->queue.first;
    else
        all.first = writer->queue.first;
    writer->group = (struct tide_entries){0};
    writer->queue = (struct tide_entries){0};
    writer->group_bytes = 0;
    writer->failures++;
    writer->failure = *err;
    writer->broken = writer->broken || !passes(err->status) || writer->closing;
    for (struct tide_entry *entry = all.first; entry != NULL;) {
        struct tide_entry *next = entry->next;
        if (entry->kind == TIDE_ENTRY_WORK && entry->as.work != NULL) {
            work_end(entry->as.work, err->status, err);
            entry->as.work = NULL; /* its ticket stays, to keep the order */
        }
        if (writer->broken) {
            writer->bytes -= entry->bytes;
            tide_entry_free(archive, entry);
        } else {
            push_back(&writer->queue, entry);
        }
        entry = next;
    }
    writer->retry_at_us = now_us + TIDE_ARCHIVE_RETRY_MS * 1000u;
    tide_cond_wake_all(archive->world, writer->news);
}

/* ---- the loop --------------------------------------------------------------------- */

/* With the lock: whether the open group must be committed now. */
static bool group_ends(const struct tide_writer *writer, uint64_t now_us)
{
    if (writer->group.count == 0)
        return false;
    const uint64_t last = writer->group.last->ticket;
    return writer->group.count >= TIDE_ARCHIVE_GROUP_MESSAGES ||
           writer->group_bytes >= TIDE_ARCHIVE_GROUP_BYTES ||
           now_us >= writer->group_since_us + TIDE_ARCHIVE_GROUP_MS * 1000u ||
           (writer->ticket_hurry > writer->ticket_done && writer->ticket_hurry <= last) ||
           (writer->queue.count == 0 && (writer->closing || writer->room_waiters > 0));
}

/* With the lock; drops it while it commits. */
static void commit_group(tide_archive *archive)
{
    struct tide_writer *writer = archive->writer;
    tide_error err = {0};
    tide_lock_drop(archive->world, archive->lock);
    tide_status rc = commit_all(writer, &err);
    uint64_t now_us = tide_world_now_us(archive->world);
    tide_lock_take(archive->world, archive->lock);
    if (rc != TIDE_OK) {
        TIDE_SEEN("archive: a commit failed");
        group_failed(archive, &err, now_us);
        return;
    }
    group_done(archive);
    tide_lock_drop(archive->world, archive->lock);
    rc = checkpoint_some(writer, &err);
    tide_lock_take(archive->world, archive->lock);
    if (rc != TIDE_OK) /* a failed sync is never retried (E1.10) */
        group_failed(archive, &err, now_us);
}

/* With the lock; drops it while it applies. */
static void apply_next(tide_archive *archive, uint64_t now_us)
{
    struct tide_writer *writer = archive->writer;
    struct tide_entry *entry = pop_front(&writer->queue);
    tide_error err = {0};
    if (entry->kind == TIDE_ENTRY_WORK && entry->as.work != NULL && entry->as.work->alone &&
        writer->group.count > 0) {
        /* Commit everything before it; then it is the first one. */
        entry->next = writer->queue.first;
        writer->queue.first = entry;
        if (writer->queue.last == NULL)
            writer->queue.last = entry;
        writer->queue.count++;
        commit_group(archive);
        return;
    }
    if (writer->group.count == 0)
        writer->group_since_us = now_us;
    push_back(&writer->group, entry);
    writer->group_bytes += entry->bytes;
    tide_lock_drop(archive->world, archive->lock);
    tide_status rc = tide_archive_apply(archive, entry, &err);
    if (rc != TIDE_OK)
        rollback_all(writer);
    now_us = tide_world_now_us(archive->world);
    tide_lock_take(archive->world, archive->lock);
    if (rc != TIDE_OK && entry->kind == TIDE_ENTRY_WORK && entry->as.work->alone && rc != TIDE_IO &&
        rc != TIDE_CORRUPT) {
        /* It wrote nothing: the error concerns only its caller. */
        work_end(entry->as.work, rc, &err);
        entry->as.work = NULL;
    } else if (rc != TIDE_OK) {
        group_failed(archive, &err, now_us);
    }
}

/* With the lock: waits until there is work.  false: stop. */
static bool wait_work(tide_archive *archive, uint64_t now_us)
{
    struct tide_writer *writer = archive->writer;
    uint64_t deadline_us = TIDE_NEVER;
    if (writer->queue.count > 0)
        deadline_us = writer->retry_at_us;
    else if (writer->group.count > 0)
        deadline_us = writer->group_since_us + TIDE_ARCHIVE_GROUP_MS * 1000u;
    if (deadline_us != TIDE_NEVER && deadline_us <= now_us)
        return true;
    return tide_cond_wait(archive->world, writer->work, archive->lock, deadline_us) != TIDE_STOPPED;
}

void tide_archive_writer_run(void *arg)
{
    tide_archive *archive = arg;
    struct tide_writer *writer = archive->writer;
    tide_lock_take(archive->world, archive->lock);
    for (;;) {
        uint64_t now_us = tide_world_now_us(archive->world);
        if (group_ends(writer, now_us))
            commit_group(archive);
        else if (writer->queue.count > 0 && (now_us >= writer->retry_at_us || writer->closing))
            apply_next(archive, now_us);
        else if (writer->closing && writer->queue.count == 0 && writer->group.count == 0)
            break;
        else if (!wait_work(archive, now_us))
            break;
    }
    writer->ended = true;
    if (!writer->closing || writer->queue.count + writer->group.count > 0) {
        tide_error stopped;
        (void)tide_error_set(&stopped, TIDE_STOPPED, "the world stopped");
        writer->broken = true; /* accept no more entries */
        group_failed(archive, &stopped, 0);
    }
    tide_cond_wake_all(archive->world, writer->news);
    tide_lock_drop(archive->world, archive->lock);
    rollback_all(writer);
    tide_shards_done(&writer->shards); /* its connections are closed on its own thread */
}

/* ---- moving logs -------------------------------------------------------------------- */

static tide_status move_log(tide_archive *archive, struct tide_shard *shard, tide_error *err)
{
    (void)archive;
    return tide_shard_checkpoint(shard, true, err);
}

/* Also shards that are not open: a crashed run may have left a log. */
tide_status tide_archive_checkpoint(tide_archive *archive, const tide_cancel *cancel,
                                    tide_error *err)
{
    return tide_archive_each(archive, move_log, true, cancel, err);
}
