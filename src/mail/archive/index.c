/* index.c - parses and indexes stored messages for search (M9).
 *
 * Bytes from outside are parsed only here, and a parser crash must not stop the archive.  So every
 * step is recorded before it is taken:
 *
 *   mark a group as begun, durably -> parse it -> write words and marks, durably
 *
 * If the process dies in between, the next run finds the group marked.  Its messages are then
 * suspects and are tried one by one, each with its own durable mark; if the process dies again, the
 * single marked message is the cause and is skipped from then on.  A harmless message that was
 * being indexed at a power loss is tried again and succeeds.
 *
 * The writer marks and writes in its transactions; the calling thread parses, so that storing
 * continues meanwhile. */
#include "mail/archive/inside.h"
#include "base/check.h"
#include "base/encode.h"
#include "mail/mime/message.h"

#include <stdio.h>

enum {
    ARENA_BYTES_MAX = 256 << 20, /* to parse one message */
    /* Per group: its bytes, folded, or one message with the longest possible text. */
    TEXTS_BYTES_MAX = 8 * TIDE_INDEX_GROUP_BYTES + 8 * TIDE_MESSAGE_TEXT_BYTES_MAX +
                      8 * TIDE_MESSAGE_HEADER_BYTES_MAX,
    FOLDED_BYTES_MAX = 4 * TIDE_MESSAGE_TEXT_BYTES_MAX,
    MESSAGE_ID_BYTES_MAX = 998, /* a header line; longer ids get a surrogate */
};

struct item {
    int64_t id;
    int64_t content;
    char gmail_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
    uint8_t hash[TIDE_CONTENT_HASH_BYTES];
    int mark; /* to be written */
    bool has_words;
    char problem[160];
    bool has_date;
    int64_t date_ms;
    size_t files;
    tide_text message_id, from, to, cc, bcc, subject;           /* unchanged, for head */
    tide_text words_subject, words_from, words_to, text, names; /* folded, for words */
};

/* A group on its way: writer (mark), parser, writer (write). */
struct batch {
    struct tide_work work;
    tide_mem *mem;
    uint32_t key; /* the shard; 0: no shard has work */
    struct item items[TIDE_INDEX_GROUP_MESSAGES];
    size_t count;
    size_t wanted; /* at most this many */
    tide_arena texts;
};

static struct batch *batch_of(struct tide_work *work)
{
    return (struct batch *)work; /* its first member */
}

static void batch_free(struct tide_work *work)
{
    struct batch *batch = batch_of(work);
    tide_arena_done(&batch->texts);
    tide_mem_free(batch->mem, batch, sizeof *batch);
}

/* ---- marking (on the writer's thread) ------------------------------------------------ */

static tide_status mark_set(struct tide_shard *shard, int64_t id, int mark, const char *problem,
                            tide_error *err)
{
    return tide_db_do(&shard->db, err, TIDE_SHARD_MARK, id, mark,
                      tide_value_or_null(tide_text_of(problem)));
}

/* Handles the marks of a run that crashed.  A message that was tried alone because of an earlier
 * crash is marked as unreadable; the others become suspects. */
static tide_status recover(tide_archive *archive, struct tide_shard *shard, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (;;) {
        sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_MARKED);
        bool there = false;
        rc = tide_db_step(&shard->db, row, &there, err);
        int64_t id = there ? sqlite3_column_int64(row, 0) : 0;
        bool suspect = there && sqlite3_column_int(row, 1) > 0;
        tide_db_end(row);
        if (rc != TIDE_OK || !there)
            break;
        TIDE_SEEN("archive: a run died while indexing");
        rc = tide_writer_begin(archive, shard, err);
        if (rc != TIDE_OK)
            return rc;
        rc = tide_db_do(
            &shard->db, err, TIDE_SHARD_DIED, id, suspect ? TIDE_MARK_UNREADABLE : TIDE_MARK_STORED,
            tide_value_or_null(suspect ? TIDE_TEXT("the program crashed twice while parsing it")
                                       : TIDE_TEXT_NONE));
        if (rc != TIDE_OK)
            return rc;
    }
    shard->recovered = rc == TIDE_OK;
    return rc;
}

/* Picks the next messages of this shard; a suspect is picked alone. */
static tide_status pick(struct tide_shard *shard, struct batch *batch, tide_error *err)
{
    tide_auto_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_TO_INDEX, batch->wanted);
    uint64_t bytes = 0;
    bool there = false;
    batch->count = 0;
    TIDE_TRY(tide_db_step(&shard->db, row, &there, err));
    while (there && batch->count < batch->wanted) {
        bool suspect = sqlite3_column_int(row, 4) > 0;
        bytes += tide_column_u64(row, 3);
        if (batch->count > 0 && (suspect || bytes > TIDE_INDEX_GROUP_BYTES))
            break;
        struct item *item = &batch->items[batch->count++];
        *item = (struct item){.id = sqlite3_column_int64(row, 0),
                              .content = sqlite3_column_int64(row, 2)};
        tide_column_copy(row, 1, item->gmail_id, sizeof item->gmail_id);
        tide_shard_hash(row, 5, item->hash);
        if (suspect)
            break;
        TIDE_TRY(tide_db_step(&shard->db, row, &there, err));
    }
    return TIDE_OK;
}

static tide_status run_mark(tide_archive *archive, struct tide_work *work, tide_error *err)
{
    struct batch *batch = batch_of(work);
    tide_shards *shards = &archive->writer->shards;
    tide_status rc = TIDE_OK;
    batch->key = 0;
    for (size_t left = shards->count; rc == TIDE_OK && left > 0 && batch->key == 0; left--) {
        struct tide_shard *shard = shards->list[left - 1];
        if (shard->indexed)
            continue;
        rc = tide_shards_open(shards, shard, err);
        if (rc == TIDE_OK && !shard->recovered)
            rc = recover(archive, shard, err);
        if (rc == TIDE_OK)
            rc = pick(shard, batch, err);
        if (rc == TIDE_OK && batch->count == 0)
            shard->indexed = true;
        if (rc != TIDE_OK || batch->count == 0)
            continue;
        batch->key = shard->key;
        rc = tide_writer_begin(archive, shard, err);
        for (size_t i = 0; rc == TIDE_OK && i < batch->count; i++)
            rc = mark_set(shard, batch->items[i].id, TIDE_MARK_BEGUN, NULL, err);
    }
    return rc;
}

/* ---- parsing (on the calling thread) -------------------------------------------------- */

static tide_status no_memory(tide_error *err)
{
    return tide_error_set(err, TIDE_NO_MEMORY, "no memory to index a message");
}

/* Copies a text so that it outlives the parse. */
static tide_status keep(struct batch *batch, tide_text text, tide_text *kept_out)
{
    if (text.bytes == 0) {
        *kept_out = TIDE_TEXT("");
        return TIDE_OK;
    }
    const char *copy = tide_arena_copy(&batch->texts, text.data, text.bytes);
    if (copy == NULL)
        return TIDE_NO_MEMORY;
    *kept_out = (tide_text){copy, text.bytes};
    return TIDE_OK;
}

static tide_status fold(tide_archive *archive, struct batch *batch, tide_buf *room,
                        const tide_text *texts, size_t count, tide_text *kept_out)
{
    tide_buf_clear(room);
    for (size_t i = 0; i < count; i++) {
        if (texts[i].bytes == 0)
            continue;
        TIDE_TRY(archive->options.indexer->fold(texts[i], room));
        TIDE_TRY(tide_buf_add(room, " ", 1));
    }
    return keep(batch, tide_buf_text(room), kept_out);
}

/* A message without an id gets one from its content: equal bytes get equal ids (M8). */
static tide_status keep_message_id(struct batch *batch, struct item *item,
                                   const struct tide_message *message)
{
    if (message->message_id.bytes > 0 && message->message_id.bytes <= MESSAGE_ID_BYTES_MAX)
        return keep(batch, message->message_id, &item->message_id);
    char surrogate[7 + 2 * TIDE_CONTENT_HASH_BYTES + 1] = "sha256:";
    tide_hex(item->hash, TIDE_CONTENT_HASH_BYTES, surrogate + 7);
    return keep(batch, tide_text_of(surrogate), &item->message_id);
}

static tide_status keep_head(struct batch *batch, struct item *item,
                             const struct tide_message *message)
{
    const tide_text *from[] = {&message->from, &message->to, &message->cc, &message->bcc,
                               &message->subject};
    tide_text *to[] = {&item->from, &item->to, &item->cc, &item->bcc, &item->subject};
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < sizeof to / sizeof to[0]; i++)
        rc = keep(batch, *from[i], to[i]);
    item->has_date = message->has_date;
    item->date_ms = message->date_ms;
    item->files = message->attachments_count;
    return rc;
}

static tide_status keep_words(tide_archive *archive, struct batch *batch, struct item *item,
                              const struct tide_message *message, tide_buf *room)
{
    const tide_text to[] = {message->to, message->cc, message->bcc};
    tide_text names[TIDE_MESSAGE_ATTACHMENTS_MAX];
    size_t count = 0;
    for (; count < message->attachments_count && count < TIDE_MESSAGE_ATTACHMENTS_MAX; count++)
        names[count] = message->attachments[count].name;
    TIDE_TRY(fold(archive, batch, room, &message->subject, 1, &item->words_subject));
    TIDE_TRY(fold(archive, batch, room, &message->from, 1, &item->words_from));
    TIDE_TRY(fold(archive, batch, room, to, 3, &item->words_to));
    TIDE_TRY(fold(archive, batch, room, &message->text, 1, &item->text));
    return fold(archive, batch, room, names, count, &item->names);
}

/* The bytes of a message, from memory if they were just stored, else from its shard; NONE and a
 * mark if the shard is damaged there. */
static tide_status bytes_of(tide_archive *archive, const struct batch *batch, struct item *item,
                            tide_buf *raw, tide_text *bytes_out, tide_error *err)
{
    tide_buf recent;
    if (tide_recent_take(archive, batch->key, item->content, &recent)) {
        tide_buf_done(raw);
        *raw = recent;
        raw->bytes_max = TIDE_MESSAGE_BYTES_MAX; /* the next one may come from its shard */
        *bytes_out = tide_buf_text(raw);
        return TIDE_OK;
    }
    struct tide_stored stored = {.shard = batch->key, .content = item->content};
    (void)snprintf(stored.gmail_id, sizeof stored.gmail_id, "%s", item->gmail_id);
    tide_error own = {0};
    tide_buf_rest(raw);
    tide_status rc = tide_archive_raw(archive, &stored, raw, &own);
    *bytes_out = rc == TIDE_OK ? tide_buf_text(raw) : TIDE_TEXT_NONE;
    if (rc == TIDE_CORRUPT || rc == TIDE_NEWER) {
        item->mark = TIDE_MARK_UNREADABLE;
        (void)snprintf(item->problem, sizeof item->problem, "%.150s", own.text);
        return TIDE_OK;
    }
    if (rc != TIDE_OK && err != NULL)
        *err = own;
    return rc;
}

/* Only lack of memory and a stopped world end the group; any other failure concerns one message and
 * is recorded with it. */
static tide_status parse(tide_archive *archive, struct batch *batch, struct item *item,
                         tide_arena *arena, tide_buf *raw, tide_buf *room, tide_error *err)
{
    tide_text bytes = TIDE_TEXT_NONE;
    tide_status rc = bytes_of(archive, batch, item, raw, &bytes, err);
    if (rc != TIDE_OK || bytes.data == NULL)
        return rc;
    struct tide_message message = {.parsed = TIDE_PARSED_NOT};
    tide_arena_reset(arena);
    rc = archive->options.indexer->parse(bytes, arena, &message);
    if (rc != TIDE_OK)
        return no_memory(err);
    item->mark = message.parsed == TIDE_PARSED_NOT ? TIDE_MARK_UNREADABLE : TIDE_MARK_INDEXED;
    if (message.parsed != TIDE_PARSED_WHOLE)
        (void)snprintf(item->problem, sizeof item->problem, "%.150s",
                       message.problem == NULL ? "it could not be parsed" : message.problem);
    if (message.parsed == TIDE_PARSED_NOT)
        return TIDE_OK;
    item->has_words = true;
    rc = keep_message_id(batch, item, &message);
    if (rc == TIDE_OK)
        rc = keep_head(batch, item, &message);
    if (rc == TIDE_OK)
        rc = keep_words(archive, batch, item, &message, room);
    return rc == TIDE_OK ? TIDE_OK : no_memory(err);
}

static tide_status parse_all(tide_archive *archive, struct batch *batch, tide_error *err)
{
    tide_auto_arena arena = tide_arena_in(archive->mem, ARENA_BYTES_MAX);
    tide_auto_buf raw = tide_buf_in(archive->mem, TIDE_MESSAGE_BYTES_MAX);
    tide_auto_buf room = tide_buf_in(archive->mem, FOLDED_BYTES_MAX);
    for (size_t i = 0; i < batch->count; i++)
        TIDE_TRY(parse(archive, batch, &batch->items[i], &arena, &raw, &room, err));
    return TIDE_OK;
}

/* ---- writing (on the writer's thread) ------------------------------------------------- */

static tide_status words_add(struct tide_shard *shard, const struct item *item, tide_error *err)
{
    tide_db *db = &shard->db;
    TIDE_TRY(tide_db_do(db, err, TIDE_SHARD_HEAD_ADD, item->id, item->message_id,
                        tide_value_if(item->has_date, (uint64_t)item->date_ms), item->from,
                        item->to, item->cc, item->bcc, item->subject, item->files));
    if (sqlite3_changes(db->handle) == 0)
        return TIDE_OK;
    shard->untidy = true;
    return tide_db_do(db, err, TIDE_SHARD_WORDS_ADD, item->id, item->text, item->words_subject,
                      item->words_from, item->words_to, item->names);
}

static tide_status run_write(tide_archive *archive, struct tide_work *work, tide_error *err)
{
    struct batch *batch = batch_of(work);
    tide_shards *shards = &archive->writer->shards;
    struct tide_shard *shard = tide_shards_get(shards, batch->key);
    TIDE_ASSERT(shard != NULL);
    TIDE_TRY(tide_shards_open(shards, shard, err));
    TIDE_TRY(tide_writer_begin(archive, shard, err));
    /* Picked newest first, written oldest first: FTS5 buffers rows in memory only while ids ascend,
     * and otherwise writes a segment per message. */
    for (size_t left = batch->count; left > 0; left--) {
        const struct item *item = &batch->items[left - 1];
        if (item->has_words)
            TIDE_TRY(words_add(shard, item, err));
        TIDE_TRY(mark_set(shard, item->id, item->mark,
                          item->problem[0] == '\0' ? NULL : item->problem, err));
    }
    return TIDE_OK;
}

/* Removes the marks: nothing crashed, the group just could not be read. */
static tide_status run_unmark(tide_archive *archive, struct tide_work *work, tide_error *err)
{
    struct batch *batch = batch_of(work);
    for (size_t i = 0; i < batch->count; i++) {
        batch->items[i].has_words = false;
        batch->items[i].mark = TIDE_MARK_STORED;
        batch->items[i].problem[0] = '\0';
    }
    return run_write(archive, work, err);
}

/* ---- the interface ---------------------------------------------------------------------- */

static tide_status ask(tide_archive *archive, struct batch *batch,
                       tide_status (*run)(tide_archive *archive, struct tide_work *work,
                                          tide_error *err),
                       tide_error *err)
{
    batch->work = (struct tide_work){.run = run, .free = batch_free};
    return tide_archive_work(archive, &batch->work, NULL, err);
}

/* Indexes one group; *count_out 0: nothing is left. */
static tide_status index_group(tide_archive *archive, size_t wanted, size_t *count_out,
                               tide_error *err)
{
    struct batch *batch = tide_mem_new(archive->mem, sizeof *batch);
    if (batch == NULL)
        return no_memory(err);
    batch->mem = archive->mem;
    batch->wanted = wanted < TIDE_INDEX_GROUP_MESSAGES ? wanted : TIDE_INDEX_GROUP_MESSAGES;
    tide_arena_init(&batch->texts, archive->mem, TEXTS_BYTES_MAX);
    tide_status rc = ask(archive, batch, run_mark, err);
    if (rc != TIDE_OK)
        return rc; /* the batch is freed */
    if (batch->key == 0) {
        *count_out = 0;
        batch_free(&batch->work);
        return TIDE_OK;
    }
    rc = parse_all(archive, batch, err);
    const size_t count = batch->count;
    if (rc != TIDE_OK) {
        TIDE_SEEN("archive: a group could not be indexed now");
        if (ask(archive, batch, run_unmark, NULL) == TIDE_OK)
            batch_free(&batch->work);
        return rc;
    }
    TIDE_TRY(ask(archive, batch, run_write, err));
    batch_free(&batch->work);
    *count_out = count;
    return TIDE_OK;
}

/* One caller at a time: with two groups marked in one shard, a crash would make too many messages
 * suspects.  Callers take turns, a group each: the indexer never keeps the others waiting, however
 * fast mail arrives. */
static tide_status index_turn(tide_archive *archive, tide_error *err)
{
    struct tide_writer *writer = archive->writer;
    tide_status rc = TIDE_OK;
    tide_lock_take(archive->world, archive->lock);
    const uint64_t turn = writer->index_turns++;
    while (writer->index_turn_of != turn && rc != TIDE_STOPPED)
        rc = tide_cond_wait(archive->world, writer->news, archive->lock, TIDE_NEVER);
    tide_lock_drop(archive->world, archive->lock);
    return rc == TIDE_STOPPED ? tide_error_set(err, rc, "the world stopped") : TIDE_OK;
}

static void index_turn_drop(tide_archive *archive)
{
    tide_lock_take(archive->world, archive->lock);
    archive->writer->index_turn_of++;
    tide_cond_wake_all(archive->world, archive->writer->news);
    tide_lock_drop(archive->world, archive->lock);
}

static bool index_stopped(tide_archive *archive)
{
    tide_lock_take(archive->world, archive->lock);
    const bool stopped = archive->writer->index_stop || archive->writer->broken;
    tide_lock_drop(archive->world, archive->lock);
    return stopped;
}

/* Indexes at most `count_max`, a group at a time, so that a caller that stops it waits for one
 * group at most, if it `may_stop`.  *left_out: it stopped before everything was indexed. */
static tide_status index_some(tide_archive *archive, uint64_t count_max, bool may_stop,
                              uint64_t *done_out, bool *left_out, tide_error *err)
{
    uint64_t done = 0;
    size_t count = 1;
    while (count > 0 && done < count_max && !(may_stop && index_stopped(archive))) {
        const uint64_t wanted = count_max - done;
        TIDE_TRY(index_turn(archive, err));
        const tide_status rc =
            index_group(archive, wanted > SIZE_MAX ? SIZE_MAX : (size_t)wanted, &count, err);
        index_turn_drop(archive);
        if (rc != TIDE_OK)
            return rc;
        done += count;
    }
    *done_out = done;
    *left_out = count > 0;
    return TIDE_OK;
}

/* ---- merging --------------------------------------------------------------------------- */

/* Each group left a segment, and some merging is still due.  When nothing is left to index, merging
 * in steps makes the index smaller and searches faster. */
struct tidying {
    struct tide_work work;
    tide_mem *mem;
    bool more;
};

static void tidying_free(struct tide_work *work)
{
    struct tidying *tidying = (struct tidying *)work;
    tide_mem_free(tidying->mem, tidying, sizeof *tidying);
}

static tide_status run_tidy(tide_archive *archive, struct tide_work *work, tide_error *err)
{
    struct tidying *tidying = (struct tidying *)work;
    tide_shards *shards = &archive->writer->shards;
    tide_status rc = TIDE_OK;
    tidying->more = false;
    for (size_t i = 0; rc == TIDE_OK && !tidying->more && i < shards->count; i++) {
        struct tide_shard *shard = shards->list[i];
        if (!shard->untidy)
            continue;
        rc = tide_shards_open(shards, shard, err);
        if (rc == TIDE_OK)
            rc = tide_writer_begin(archive, shard, err);
        if (rc != TIDE_OK)
            return rc;
        const int before = sqlite3_total_changes(shard->db.handle);
        rc = tide_db_run(&shard->db, tide_db_stmt(&shard->db, TIDE_SHARD_WORDS_MERGE), err);
        /* One change is the request itself (according to FTS5's documentation). */
        tidying->more = sqlite3_total_changes(shard->db.handle) - before >= 2;
        shard->untidy = tidying->more;
    }
    return rc;
}

static tide_status tidy_step(tide_archive *archive, bool *more_out, tide_error *err)
{
    struct tidying *tidying = tide_mem_new(archive->mem, sizeof *tidying);
    if (tidying == NULL)
        return no_memory(err);
    tidying->mem = archive->mem;
    tidying->work = (struct tide_work){.run = run_tidy, .free = tidying_free};
    TIDE_TRY(tide_archive_work(archive, &tidying->work, NULL, err));
    *more_out = tidying->more;
    tidying_free(&tidying->work);
    return TIDE_OK;
}

tide_status tide_archive_index(tide_archive *archive, uint64_t count_max, uint64_t *done_out,
                               tide_error *err)
{
    if (archive->writer == NULL)
        return tide_error_set(err, TIDE_INVALID, "%s: opened read-only", archive->options.dir);
    uint64_t done = 0;
    bool left = false;
    tide_status rc = index_some(archive, count_max, false, &done, &left, err);
    for (bool more = !left; rc == TIDE_OK && more;)
        rc = tidy_step(archive, &more, err);
    if (rc == TIDE_OK && done_out != NULL)
        *done_out = done;
    return rc;
}

/* ---- the indexer thread ------------------------------------------------------------------ */

/* With the lock: waits until a group is full or some mail has waited long enough, or for a second
 * after a failure.  A small group costs nearly as much as a large one.  false: the world stopped,
 * or the archive is broken. */
static bool wait_stored(tide_archive *archive, bool failed)
{
    struct tide_writer *writer = archive->writer;
    tide_status rc = TIDE_OK;
    uint64_t deadline_us =
        failed ? tide_world_now_us(archive->world) + TIDE_ARCHIVE_RETRY_MS * 1000u : TIDE_NEVER;
    while (rc == TIDE_OK && !writer->index_stop && !writer->broken) {
        const uint64_t come = writer->stored - writer->index_seen;
        if (!failed && (writer->index_all || come >= TIDE_INDEX_GROUP_MESSAGES ||
                        (writer->index_now && come > 0)))
            break;
        if (come > 0 && deadline_us == TIDE_NEVER)
            deadline_us = tide_world_now_us(archive->world) + TIDE_INDEX_WAIT_MS * 1000u;
        rc = tide_cond_wait(archive->world, writer->news, archive->lock, deadline_us);
    }
    return rc != TIDE_STOPPED && !writer->broken;
}

/* Merges while there is nothing to index. */
static void tidy_idle(tide_archive *archive, uint64_t seen)
{
    for (bool more = true; more;) {
        tide_lock_take(archive->world, archive->lock);
        more = !archive->writer->index_stop && !archive->writer->broken &&
               archive->writer->stored == seen;
        tide_lock_drop(archive->world, archive->lock);
        if (more && tidy_step(archive, &more, NULL) != TIDE_OK)
            more = false;
    }
}

void tide_archive_indexer_run(void *arg)
{
    tide_archive *archive = arg;
    struct tide_writer *writer = archive->writer;
    bool failed = false;
    tide_lock_take(archive->world, archive->lock);
    uint64_t waiting = 0; /* lower bound of messages stored by this process and not indexed */
    while (wait_stored(archive, failed)) {
        const bool last = writer->index_stop;
        waiting += writer->stored - writer->index_seen;
        const uint64_t seen = writer->index_seen = writer->stored;
        uint64_t wanted = writer->index_all || failed ? UINT64_MAX : waiting;
        if (last && wanted > TIDE_INDEX_LAST_MESSAGES)
            wanted = TIDE_INDEX_LAST_MESSAGES;
        writer->index_all = writer->index_now = false;
        writer->index_left = true;
        tide_error err = {TIDE_OK, 0, ""};
        uint64_t done = 0;
        bool left = true;
        tide_lock_drop(archive->world, archive->lock);
        failed = index_some(archive, wanted, !last, &done, &left, &err) != TIDE_OK;
        waiting = failed ? waiting : left && waiting > done ? waiting - done : 0;
        tide_lock_take(archive->world, archive->lock);
        writer->index_left = failed || waiting > 0;
        writer->index_error = err;
        if (last)
            break;
        tide_lock_drop(archive->world, archive->lock);
        if (!failed)
            tidy_idle(archive, seen);
        tide_lock_take(archive->world, archive->lock);
    }
    tide_lock_drop(archive->world, archive->lock);
}

tide_status tide_archive_index_soon(tide_archive *archive, bool *left_out, tide_error *err)
{
    struct tide_writer *writer = archive->writer;
    *left_out = false;
    if (writer == NULL || writer->indexer == NULL)
        return TIDE_OK;
    tide_lock_take(archive->world, archive->lock);
    *left_out = writer->index_all || writer->index_left || writer->stored != writer->index_seen;
    const tide_error failure = writer->index_error;
    if (writer->stored != writer->index_seen) {
        writer->index_now = true;
        tide_cond_wake_all(archive->world, writer->news);
    }
    tide_lock_drop(archive->world, archive->lock);
    if (failure.status != TIDE_OK && err != NULL)
        *err = failure;
    return failure.status;
}

/* ---- retries ----------------------------------------------------------------------------- */

static tide_status unmark_all(tide_archive *archive, struct tide_shard *shard, tide_error *err)
{
    shard->indexed = false;
    TIDE_TRY(tide_writer_begin(archive, shard, err));
    return tide_db_run(&shard->db, tide_db_stmt(&shard->db, TIDE_SHARD_AGAIN), err);
}

tide_status tide_archive_index_again(tide_archive *archive, const tide_cancel *cancel,
                                     tide_error *err)
{
    TIDE_TRY(tide_archive_each(archive, unmark_all, false, cancel, err));
    tide_lock_take(archive->world, archive->lock);
    archive->writer->index_all = true; /* makes the indexer look at all shards again */
    tide_cond_wake_all(archive->world, archive->writer->news);
    tide_lock_drop(archive->world, archive->lock);
    return TIDE_OK;
}
