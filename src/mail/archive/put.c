/* put.c - the bounded queue between the fetching threads and the writer: storing, tickets,
 * waiting. */
#include "mail/archive/inside.h"
#include "base/check.h"

/* ---- entries -------------------------------------------------------------------- */

/* An entry and room for its texts in one allocation. */
static struct tide_entry *entry_new(tide_archive *archive, tide_entry_kind kind, size_t room)
{
    size_t bytes = sizeof(struct tide_entry) + room;
    struct tide_entry *entry = tide_mem_new(archive->mem, bytes);
    if (entry == NULL)
        return NULL;
    entry->kind = kind;
    entry->self_bytes = bytes;
    entry->bytes = bytes;
    return entry;
}

void tide_entry_free(tide_archive *archive, struct tide_entry *entry)
{
    if (entry == NULL)
        return;
    if (entry->kind == TIDE_ENTRY_MESSAGE || entry->kind == TIDE_ENTRY_BACK)
        tide_buf_done(&entry->as.message.raw);
    tide_mem_free(archive->mem, entry, entry->self_bytes);
}

/* Copies a text into the room after an entry. */
static tide_text keep(char **room, tide_text text)
{
    char *to = *room;
    if (text.bytes > 0)
        memcpy(to, text.data, text.bytes);
    *room += text.bytes;
    return (tide_text){to, text.bytes};
}

static tide_status check_text(tide_text text, const char *what, size_t least, size_t most,
                              tide_error *err)
{
    /* A NUL would truncate it for every reader that uses sqlite3. */
    if (text.bytes >= least && text.bytes <= most &&
        (text.bytes == 0 || memchr(text.data, '\0', text.bytes) == NULL))
        return TIDE_OK;
    return tide_error_set(err, TIDE_INVALID, "%s of %zu bytes; allowed are %zu to %zu", what,
                          text.bytes, least, most);
}

static tide_status check_incoming(const struct tide_incoming *message, tide_error *err)
{
    size_t raw_bytes = message->take != NULL ? message->take->bytes : message->raw.bytes;
    TIDE_TRY(check_text(message->gmail_id, "a message id", 1, TIDE_GMAIL_ID_BYTES_MAX, err));
    TIDE_TRY(check_text(message->thread_id, "a thread id", 0, TIDE_GMAIL_ID_BYTES_MAX, err));
    TIDE_TRY(
        check_text(message->history_id, "a history id", 0, TIDE_ARCHIVE_HISTORY_BYTES_MAX, err));
    if (message->labels_count > TIDE_ARCHIVE_LABELS_MAX)
        return tide_error_set(err, TIDE_INVALID, "a message with %zu labels",
                              message->labels_count);
    for (size_t i = 0; i < message->labels_count; i++)
        TIDE_TRY(check_text(message->labels[i], "a label", 1, TIDE_ARCHIVE_LABEL_BYTES_MAX, err));
    if (raw_bytes > TIDE_MESSAGE_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "a message of %zu bytes", raw_bytes);
    if (message->internal_ms < tide_shard_year_ms(1) ||
        message->internal_ms >= tide_shard_year_ms(TIDE_SHARD_YEAR_MAX + 1))
        return tide_error_set(err, TIDE_INVALID,
                              "a message with a date outside of the supported years");
    return TIDE_OK;
}

static tide_status message_entry(tide_archive *archive, tide_entry_kind kind,
                                 const struct tide_incoming *message, struct tide_entry **entry_out,
                                 tide_error *err)
{
    size_t room = message->gmail_id.bytes + message->thread_id.bytes + message->history_id.bytes +
                  message->labels_count * sizeof(tide_text);
    for (size_t i = 0; i < message->labels_count; i++)
        room += message->labels[i].bytes;
    struct tide_entry *entry = entry_new(archive, kind, room);
    if (entry == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to queue a message");
    tide_text *labels = (tide_text *)(entry + 1);
    char *text = (char *)(labels + message->labels_count);
    struct tide_incoming *kept = &entry->as.message.incoming;
    kept->gmail_id = keep(&text, message->gmail_id);
    kept->thread_id = keep(&text, message->thread_id);
    kept->history_id = keep(&text, message->history_id);
    kept->internal_ms = message->internal_ms;
    kept->said_bytes = message->said_bytes;
    kept->held = message->held;
    for (size_t i = 0; i < message->labels_count; i++)
        labels[i] = keep(&text, message->labels[i]);
    kept->labels = labels;
    kept->labels_count = message->labels_count;
    tide_buf_init(&entry->as.message.raw, archive->mem, TIDE_MESSAGE_BYTES_MAX);
    if (message->take == NULL &&
        tide_buf_add(&entry->as.message.raw, message->raw.data, message->raw.bytes) != TIDE_OK) {
        tide_entry_free(archive, entry);
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to queue a message of %zu bytes",
                              message->raw.bytes);
    }
    entry->bytes += message->take != NULL ? message->take->bytes : message->raw.bytes;
    *entry_out = entry;
    return TIDE_OK;
}

/* ---- waiting -------------------------------------------------------------------- */

static tide_status tell(const struct tide_writer *writer, tide_error *err)
{
    if (err != NULL)
        *err = writer->failure;
    return writer->failure.status;
}

/* Waits for news, with the lock.  TIDE_OK: check again. */
static tide_status wait_news(tide_archive *archive, const tide_cancel *cancel, tide_error *err)
{
    uint64_t deadline_us = TIDE_NEVER;
    if (cancel != NULL) {
        if (tide_canceled(cancel) != TIDE_CANCEL_NONE)
            return tide_error_set(err, TIDE_CANCELED, "canceled while waiting for the archive");
        /* A cancellation wakes sleepers and calls, not conditions. */
        deadline_us = tide_world_now_us(archive->world) + TIDE_ARCHIVE_POLL_MS * 1000u;
    }
    tide_status rc =
        tide_cond_wait(archive->world, archive->writer->news, archive->lock, deadline_us);
    if (rc == TIDE_STOPPED)
        return tide_error_set(err, TIDE_STOPPED, "the world stopped");
    return TIDE_OK;
}

/* With the lock.  A message larger than the whole queue may pass when the queue is empty. */
static tide_status wait_room(tide_archive *archive, size_t bytes, const tide_cancel *cancel,
                             tide_error *err)
{
    struct tide_writer *writer = archive->writer;
    const uint64_t failures = writer->failures;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && !writer->broken && !writer->closing && writer->bytes > 0 &&
           writer->bytes + bytes > TIDE_ARCHIVE_QUEUE_BYTES) {
        TIDE_SEEN("archive: the queue is full");
        if (writer->failures != failures)
            return tell(writer, err);
        writer->room_waiters++;
        tide_cond_wake_one(archive->world, writer->work);
        rc = wait_news(archive, cancel, err);
        writer->room_waiters--;
    }
    if (rc == TIDE_OK && writer->broken)
        return tell(writer, err);
    if (rc == TIDE_OK && writer->closing)
        return tide_error_set(err, TIDE_STOPPED, "the archive is being closed");
    return rc;
}

/* Takes over the entry on success; frees it on failure. */
static tide_status enqueue(tide_archive *archive, struct tide_entry *entry, tide_buf *take,
                           const tide_cancel *cancel, uint64_t *ticket_out, tide_error *err)
{
    struct tide_writer *writer = archive->writer;
    tide_lock_take(archive->world, archive->lock);
    tide_status rc = wait_room(archive, entry->bytes, cancel, err);
    if (rc == TIDE_OK) {
        if (take != NULL) {
            /* Give the caller an empty buffer to fill again. */
            entry->as.message.raw = *take;
            tide_buf_init(take, take->mem, take->bytes_max);
        }
        entry->ticket = ++writer->ticket_last;
        entry->next = NULL;
        if (writer->queue.last == NULL)
            writer->queue.first = entry;
        else
            writer->queue.last->next = entry;
        writer->queue.last = entry;
        writer->queue.count++;
        writer->bytes += entry->bytes;
        if (ticket_out != NULL)
            *ticket_out = entry->ticket;
        tide_cond_wake_one(archive->world, writer->work);
    }
    tide_lock_drop(archive->world, archive->lock);
    if (rc != TIDE_OK)
        tide_entry_free(archive, entry);
    return rc;
}

/* ---- the interface ---------------------------------------------------------------- */

static tide_status check_writable(const tide_archive *archive, tide_error *err)
{
    return archive->writer != NULL
               ? TIDE_OK
               : tide_error_set(err, TIDE_INVALID, "%s: opened read-only", archive->options.dir);
}

tide_status tide_archive_put(tide_archive *archive, const struct tide_incoming *message,
                             const tide_cancel *cancel, uint64_t *ticket_out, tide_error *err)
{
    struct tide_entry *entry = NULL;
    TIDE_TRY(check_writable(archive, err));
    TIDE_TRY(check_incoming(message, err));
    TIDE_TRY(message_entry(archive, TIDE_ENTRY_MESSAGE, message, &entry, err));
    return enqueue(archive, entry, message->take, cancel, ticket_out, err);
}

tide_status tide_archive_labels(tide_archive *archive, const struct tide_label_change *changes,
                                size_t count, uint64_t *ticket_out, tide_error *err)
{
    size_t room = count * sizeof *changes;
    TIDE_TRY(check_writable(archive, err));
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(check_text(changes[i].gmail_id, "a message id", 1, TIDE_GMAIL_ID_BYTES_MAX, err));
        TIDE_TRY(check_text(changes[i].label, "a label", 1, TIDE_ARCHIVE_LABEL_BYTES_MAX, err));
        TIDE_TRY(check_text(changes[i].history_id, "a history id", 0,
                            TIDE_ARCHIVE_HISTORY_BYTES_MAX, err));
        room += changes[i].gmail_id.bytes + changes[i].label.bytes + changes[i].history_id.bytes;
    }
    struct tide_entry *entry = entry_new(archive, TIDE_ENTRY_LABELS, room);
    if (entry == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to queue %zu labels", count);
    struct tide_label_change *kept = (struct tide_label_change *)(entry + 1);
    char *text = (char *)(kept + count);
    for (size_t i = 0; i < count; i++) {
        kept[i] = changes[i];
        kept[i].gmail_id = keep(&text, changes[i].gmail_id);
        kept[i].label = keep(&text, changes[i].label);
        kept[i].history_id = keep(&text, changes[i].history_id);
    }
    entry->as.labels.changes = kept;
    entry->as.labels.count = count;
    return enqueue(archive, entry, NULL, NULL, ticket_out, err);
}

static tide_status tell_of(tide_archive *archive, tide_entry_kind kind, tide_text gmail_id,
                           int64_t at_ms, uint64_t *ticket_out, tide_error *err)
{
    TIDE_TRY(check_writable(archive, err));
    TIDE_TRY(check_text(gmail_id, "a message id", 1, TIDE_GMAIL_ID_BYTES_MAX, err));
    struct tide_entry *entry = entry_new(archive, kind, gmail_id.bytes);
    if (entry == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to queue a change");
    char *text = (char *)(entry + 1);
    entry->as.gone.gmail_id = keep(&text, gmail_id);
    entry->as.gone.at_ms = at_ms;
    return enqueue(archive, entry, NULL, NULL, ticket_out, err);
}

tide_status tide_archive_gone(tide_archive *archive, tide_text gmail_id, int64_t at_ms,
                              uint64_t *ticket_out, tide_error *err)
{
    return tell_of(archive, TIDE_ENTRY_GONE, gmail_id, at_ms, ticket_out, err);
}

tide_status tide_archive_doubt(tide_archive *archive, tide_text gmail_id, uint64_t *ticket_out,
                               tide_error *err)
{
    const int64_t now_ms = (int64_t)tide_world_now_unix_ms(archive->world);
    return tell_of(archive, TIDE_ENTRY_DOUBT, gmail_id, now_ms, ticket_out, err);
}

tide_status tide_archive_back(tide_archive *archive, const struct tide_incoming *message,
                              uint64_t *ticket_out, tide_error *err)
{
    struct tide_entry *entry = NULL;
    struct tide_incoming told = *message;
    told.raw = TIDE_TEXT_NONE;
    told.take = NULL;
    TIDE_TRY(check_writable(archive, err));
    TIDE_TRY(check_incoming(&told, err));
    TIDE_TRY(message_entry(archive, TIDE_ENTRY_BACK, &told, &entry, err));
    return enqueue(archive, entry, NULL, NULL, ticket_out, err);
}

static tide_status check_renaming(const struct tide_renaming *renaming, tide_error *err)
{
    TIDE_TRY(check_text(renaming->old_id, "a message id", 1, TIDE_GMAIL_ID_BYTES_MAX, err));
    TIDE_TRY(check_text(renaming->new_id, "a message id", 1, TIDE_GMAIL_ID_BYTES_MAX, err));
    TIDE_TRY(check_text(renaming->thread_id, "a thread id", 0, TIDE_GMAIL_ID_BYTES_MAX, err));
    if (renaming->labels_count > TIDE_ARCHIVE_LABELS_MAX)
        return tide_error_set(err, TIDE_INVALID, "a message with %zu labels",
                              renaming->labels_count);
    for (size_t i = 0; i < renaming->labels_count; i++)
        TIDE_TRY(check_text(renaming->labels[i], "a label", 1, TIDE_ARCHIVE_LABEL_BYTES_MAX, err));
    return TIDE_OK;
}

tide_status tide_archive_rename(tide_archive *archive, const struct tide_renaming *renaming,
                                uint64_t *ticket_out, tide_error *err)
{
    TIDE_TRY(check_writable(archive, err));
    TIDE_TRY(check_renaming(renaming, err));
    size_t room = renaming->old_id.bytes + renaming->new_id.bytes + renaming->thread_id.bytes +
                  renaming->labels_count * sizeof(tide_text);
    for (size_t i = 0; i < renaming->labels_count; i++)
        room += renaming->labels[i].bytes;
    struct tide_entry *entry = entry_new(archive, TIDE_ENTRY_RENAME, room);
    if (entry == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to queue a new id");
    tide_text *labels = (tide_text *)(entry + 1);
    char *text = (char *)(labels + renaming->labels_count);
    entry->as.renaming = (struct tide_renaming){.old_id = keep(&text, renaming->old_id),
                                                .labels = labels,
                                                .labels_count = renaming->labels_count,
                                                .at_ms = renaming->at_ms};
    entry->as.renaming.new_id = keep(&text, renaming->new_id);
    entry->as.renaming.thread_id = keep(&text, renaming->thread_id);
    for (size_t i = 0; i < renaming->labels_count; i++)
        labels[i] = keep(&text, renaming->labels[i]);
    return enqueue(archive, entry, NULL, NULL, ticket_out, err);
}

tide_status tide_archive_label_name(tide_archive *archive, tide_text id, tide_text name,
                                    tide_text type, uint64_t *ticket_out, tide_error *err)
{
    TIDE_TRY(check_writable(archive, err));
    TIDE_TRY(check_text(id, "a label", 1, TIDE_ARCHIVE_LABEL_BYTES_MAX, err));
    TIDE_TRY(check_text(name, "a label's name", 0, TIDE_ARCHIVE_LABEL_BYTES_MAX, err));
    TIDE_TRY(check_text(type, "a label's type", 0, TIDE_ARCHIVE_LABEL_BYTES_MAX, err));
    struct tide_entry *entry =
        entry_new(archive, TIDE_ENTRY_NAME, id.bytes + name.bytes + type.bytes);
    if (entry == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to queue a label");
    char *text = (char *)(entry + 1);
    entry->as.name.id = keep(&text, id);
    entry->as.name.name = keep(&text, name);
    entry->as.name.type = keep(&text, type);
    return enqueue(archive, entry, NULL, NULL, ticket_out, err);
}

tide_status tide_archive_sync(tide_archive *archive, uint64_t ticket, const tide_cancel *cancel,
                              tide_error *err)
{
    struct tide_writer *writer = archive->writer;
    TIDE_TRY(check_writable(archive, err));
    tide_lock_take(archive->world, archive->lock);
    TIDE_ASSERT(ticket <= writer->ticket_last);
    const uint64_t failures = writer->failures;
    if (ticket > writer->ticket_hurry) {
        writer->ticket_hurry = ticket;
        tide_cond_wake_one(archive->world, writer->work);
    }
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && writer->ticket_done < ticket) {
        if (writer->broken || writer->failures != failures)
            rc = tell(writer, err);
        else if (writer->ended)
            rc = tide_error_set(err, TIDE_STOPPED, "the archive is closed");
        else
            rc = wait_news(archive, cancel, err);
    }
    tide_lock_drop(archive->world, archive->lock);
    return rc;
}

/* ---- work ------------------------------------------------------------------------ */

tide_status tide_archive_work(tide_archive *archive, struct tide_work *work,
                              const tide_cancel *cancel, tide_error *err)
{
    struct tide_writer *writer = archive->writer;
    struct tide_entry *entry = entry_new(archive, TIDE_ENTRY_WORK, 0);
    uint64_t ticket = 0;
    if (entry == NULL) {
        work->free(work);
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to queue work for the writer");
    }
    entry->as.work = work;
    tide_status rc = enqueue(archive, entry, NULL, cancel, &ticket, err);
    if (rc != TIDE_OK) {
        work->free(work);
        return rc;
    }
    tide_lock_take(archive->world, archive->lock);
    if (ticket > writer->ticket_hurry) {
        writer->ticket_hurry = ticket;
        tide_cond_wake_one(archive->world, writer->work);
    }
    while (rc == TIDE_OK && !work->done)
        rc = wait_news(archive, cancel, err);
    const bool done = work->done;
    if (!done)
        work->abandoned = true; /* the writer may be using it, and frees it */
    else
        rc = work->rc;
    if (done && rc != TIDE_OK && err != NULL)
        *err = work->err;
    tide_lock_drop(archive->world, archive->lock);
    if (done && rc != TIDE_OK)
        work->free(work);
    return rc;
}

struct each_work {
    struct tide_work work;
    tide_mem *mem;
    tide_shard_work *one;
};

static void each_free(struct tide_work *work)
{
    struct each_work *each = (struct each_work *)work;
    tide_mem_free(each->mem, each, sizeof *each);
}

static tide_status each_run(tide_archive *archive, struct tide_work *work, tide_error *err)
{
    const struct each_work *each = (const struct each_work *)work;
    tide_shards *shards = &archive->writer->shards;
    for (size_t i = 0; i < shards->count; i++) {
        TIDE_TRY(tide_shards_open(shards, shards->list[i], err));
        TIDE_TRY(each->one(archive, shards->list[i], err));
    }
    return TIDE_OK;
}

tide_status tide_archive_each(tide_archive *archive, tide_shard_work *one, bool alone,
                              const tide_cancel *cancel, tide_error *err)
{
    TIDE_TRY(check_writable(archive, err));
    struct each_work *each = tide_mem_new(archive->mem, sizeof *each);
    if (each == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to queue work for the writer");
    *each = (struct each_work){.work = {.run = each_run, .free = each_free, .alone = alone},
                               .mem = archive->mem,
                               .one = one};
    TIDE_TRY(tide_archive_work(archive, &each->work, cancel, err));
    each_free(&each->work);
    return TIDE_OK;
}
