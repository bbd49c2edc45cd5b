/* archive.c - opens and closes an archive and lists its shards. */
#include "mail/archive/inside.h"
#include "base/check.h"
#include "base/limits.h"
#include "mail/mime/message.h"
#include "mail/search/search.h"

#include <stdio.h>

/* ---- closing ------------------------------------------------------------------------ */

static void writer_free(tide_archive *archive)
{
    struct tide_writer *writer = archive->writer;
    if (writer == NULL)
        return;
    TIDE_ASSERT(writer->queue.count == 0);
    TIDE_ASSERT(writer->group.count == 0);
    tide_recent_done(archive);
    tide_shards_done(&writer->shards);
    tide_packer_free(writer->packer);
    tide_buf_done(&writer->scratch);
    tide_buf_done(&writer->piece);
    for (size_t i = 0; i < writer->labels_count; i++)
        tide_mem_free(archive->mem, writer->labels[i].room, writer->labels[i].room_bytes);
    tide_mem_free(archive->mem, writer->labels, writer->labels_capacity * sizeof writer->labels[0]);
    tide_mem_free(archive->mem, writer->cuts, TIDE_CUTS_MAX * sizeof writer->cuts[0]);
    if (writer->work != NULL)
        tide_cond_free(archive->world, writer->work);
    if (writer->news != NULL)
        tide_cond_free(archive->world, writer->news);
    if (writer->file_lock != NULL)
        tide_file_lock_drop(archive->world, writer->file_lock);
    tide_mem_free(archive->mem, writer, sizeof *writer);
}

static void archive_free(tide_archive *archive)
{
    writer_free(archive);
    tide_readers_close(archive);
    if (archive->lock != NULL)
        tide_lock_free(archive->world, archive->lock);
    tide_mem_free(archive->mem, archive->texts, archive->texts_bytes);
    tide_mem_free(archive->mem, archive, sizeof *archive);
}

tide_status tide_archive_close(tide_archive *archive, tide_error *err)
{
    if (archive == NULL)
        return TIDE_OK;
    struct tide_writer *writer = archive->writer;
    tide_status rc = TIDE_OK;
    if (writer != NULL) {
        /* The indexer first: it sends work to the writer. */
        tide_lock_take(archive->world, archive->lock);
        writer->index_stop = true;
        tide_cond_wake_all(archive->world, writer->news);
        tide_lock_drop(archive->world, archive->lock);
        tide_world_join(archive->world, writer->indexer);
        tide_lock_take(archive->world, archive->lock);
        writer->closing = true;
        tide_cond_wake_all(archive->world, writer->work);
        tide_cond_wake_all(archive->world, writer->news);
        tide_lock_drop(archive->world, archive->lock);
        tide_world_join(archive->world, writer->thread);
        if (writer->broken) {
            rc = writer->failure.status;
            if (err != NULL)
                *err = writer->failure;
        }
    }
    archive_free(archive);
    return rc;
}

/* ---- opening ------------------------------------------------------------------------- */

static tide_status no_memory(const struct tide_archive_options *options, tide_error *err)
{
    return tide_error_set(err, TIDE_NO_MEMORY, "%s: no memory to open the archive", options->dir);
}

static const struct tide_indexer default_indexer = {tide_message_parse, tide_search_fold};

/* Copies the options and their texts. */
static tide_status keep_options(tide_archive *archive, const struct tide_archive_options *options,
                                tide_error *err)
{
    size_t dir_bytes = strlen(options->dir) + 1;
    size_t account_bytes = strlen(options->account) + 1;
    if (account_bytes == 1 || account_bytes > TIDE_NAME_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "an account's name has 1 to %d bytes",
                              TIDE_NAME_BYTES_MAX - 1);
    archive->texts_bytes = dir_bytes + account_bytes;
    archive->texts = tide_mem_new(archive->mem, archive->texts_bytes);
    if (archive->texts == NULL)
        return no_memory(options, err);
    memcpy(archive->texts, options->dir, dir_bytes);
    memcpy(archive->texts + dir_bytes, options->account, account_bytes);
    archive->options = *options;
    archive->options.dir = archive->texts;
    archive->options.account = archive->texts + dir_bytes;
    if (options->shard_bytes_max == 0)
        archive->options.shard_bytes_max = (uint64_t)4 << 30;
    if (options->level == 0)
        archive->options.level = 3;
    if (options->indexer == NULL)
        archive->options.indexer = &default_indexer;
    return TIDE_OK;
}

/* Two writers would each trust their own counts (M7). */
static tide_status lock_directory(tide_archive *archive, tide_error *err)
{
    char path[TIDE_SHARD_PATH_BYTES];
    int count = snprintf(path, sizeof path, "%s/writer.lock", archive->options.dir);
    if (count < 0 || (size_t)count >= sizeof path)
        return tide_error_set(err, TIDE_INVALID, "path too long: %.100s...", archive->options.dir);
    tide_error held = {0};
    tide_status rc = tide_file_lock_take(archive->world, path, TIDE_TEXT("tidemark"),
                                         &archive->writer->file_lock, &held);
    if (rc == TIDE_BUSY)
        return tide_error_set(err, TIDE_BUSY,
                              "%s: another program writes to this archive (%.100s); let it finish",
                              archive->options.dir, held.text);
    if (rc != TIDE_OK && err != NULL)
        *err = held;
    return rc;
}

static tide_status writer_open(tide_archive *archive, tide_error *err)
{
    struct tide_writer *writer = tide_mem_new(archive->mem, sizeof *writer);
    if (writer == NULL)
        return no_memory(&archive->options, err);
    archive->writer = writer;
    tide_shards_init(&writer->shards, &archive->options, archive->mem);
    tide_buf_init(&writer->scratch, archive->mem, TIDE_MESSAGE_BYTES_MAX);
    tide_buf_init(&writer->piece, archive->mem, TIDE_MESSAGE_BYTES_MAX);
    writer->cuts = tide_mem_array(archive->mem, TIDE_CUTS_MAX, sizeof writer->cuts[0]);
    if (writer->cuts == NULL ||
        (!archive->options.index_later && tide_recent_init(archive) != TIDE_OK))
        return no_memory(&archive->options, err);
    TIDE_TRY(tide_packer_new(archive->mem, archive->options.level, &writer->packer, err));
    if (tide_cond_new(archive->world, &writer->work) != TIDE_OK ||
        tide_cond_new(archive->world, &writer->news) != TIDE_OK)
        return no_memory(&archive->options, err);
    TIDE_TRY(tide_dir_make(archive->world, archive->options.dir, err));
    TIDE_TRY(lock_directory(archive, err));
    return tide_shards_look(&writer->shards, err);
}

/* Checks the account where it costs nothing: on the newest shard.  The others are checked when they
 * are opened. */
static tide_status check_account(tide_archive *archive, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    tide_status strange = TIDE_OK;
    bool found = false;
    tide_status rc = tide_reader_take(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         rc == TIDE_OK && !found &&
         (shard = tide_shards_next(&reader->shards, TIDE_NEWEST_FIRST, shard)) != NULL;) {
        rc = tide_shards_open(&reader->shards, shard, err);
        found = rc == TIDE_OK;
        if (rc == TIDE_NOT_FOUND)
            rc = TIDE_OK; /* not completely created (SHD3), or skipped (SHD5) */
        if (shard->broken[0] != '\0' && shard->broken_rc != TIDE_CORRUPT)
            strange = shard->broken_rc;
    }
    /* Only foreign files or files of a newer version: this is not our archive. */
    return rc == TIDE_OK && !found ? strange : rc;
}

static tide_status threads_start(tide_archive *archive, tide_error *err)
{
    struct tide_writer *writer = archive->writer;
    TIDE_TRY(tide_world_thread(archive->world, "archive", tide_archive_writer_run, archive,
                               &writer->thread, err));
    writer->index_all = true; /* messages left by an earlier process */
    if (!archive->options.index_later)
        TIDE_TRY(tide_world_thread(archive->world, "archive-index", tide_archive_indexer_run,
                                   archive, &writer->indexer, err));
    return TIDE_OK;
}

tide_status tide_archive_open(const struct tide_archive_options *options, tide_mem *mem,
                              tide_archive **archive_out, tide_error *err)
{
    TIDE_ASSERT(options->dir != NULL);
    TIDE_ASSERT(options->account != NULL);
    TIDE_ASSERT(options->world != NULL);
    tide_archive *archive = tide_mem_new(mem, sizeof *archive);
    if (archive == NULL)
        return no_memory(options, err);
    archive->mem = mem;
    archive->world = options->world;
    tide_status rc = keep_options(archive, options, err);
    if (rc == TIDE_OK)
        rc = tide_lock_new(archive->world, &archive->lock);
    if (rc == TIDE_NO_MEMORY)
        rc = no_memory(options, err);
    if (rc == TIDE_OK && !options->read_only)
        rc = writer_open(archive, err);
    if (rc == TIDE_OK)
        rc = check_account(archive, err);
    if (rc != TIDE_OK) {
        archive_free(archive);
        return rc;
    }
    if (!options->read_only)
        rc = threads_start(archive, err);
    if (rc != TIDE_OK) {
        (void)tide_archive_close(archive, NULL);
        return rc;
    }
    *archive_out = archive;
    return TIDE_OK;
}

tide_status tide_archive_open_next(const struct tide_archive_options *options, tide_mem *mem,
                                   tide_archive **archive_out, tide_error *err)
{
    enum { WAIT_US = 5000000, STEP_US = 50000 };
    tide_world *world = options->world;
    const uint64_t until_us = tide_world_now_us(world) + WAIT_US;
    for (;;) {
        const tide_status rc = tide_archive_open(options, mem, archive_out, err);
        const uint64_t now_us = tide_world_now_us(world);
        if (rc != TIDE_BUSY || now_us >= until_us ||
            tide_world_sleep_until(world, now_us + STEP_US, NULL) != TIDE_OK)
            return rc;
    }
}

/* ---- shards --------------------------------------------------------------------------- */

/* Finds the shard number `wanted`; *count_out is the number of shards before it.  Those that are
 * not completely created do not count. */
static tide_status shard_number(struct tide_reader *reader, size_t wanted, size_t *count_out,
                                struct tide_shard **shard_out, tide_error *err)
{
    struct tide_shard *shard = NULL;
    *count_out = 0;
    while ((shard = tide_shards_next(&reader->shards, TIDE_OLDEST_FIRST, shard)) != NULL) {
        const tide_status rc = tide_shards_open(&reader->shards, shard, err);
        if (rc == TIDE_NOT_FOUND)
            continue;
        *shard_out = shard;
        if (*count_out == wanted)
            return rc;
        ++*count_out;
    }
    return tide_error_set(err, TIDE_NOT_FOUND, "%s: no shard number %zu", reader->shards.dir,
                          wanted);
}

size_t tide_archive_shards(tide_archive *archive)
{
    tide_auto_reader *reader = NULL;
    struct tide_shard *last = NULL;
    size_t count = 0;
    (void)tide_reader_take_all(archive, &reader, NULL); /* on failure use the known ones */
    if (reader != NULL)
        (void)shard_number(reader, SIZE_MAX, &count, &last, NULL);
    return count;
}

/* Damage that other calls found while they read. */
static void broken_gather(tide_archive *archive, struct tide_reader *reader)
{
    tide_lock_take(archive->world, archive->lock);
    for (size_t i = 0; i < TIDE_READERS_IDLE; i++)
        for (size_t at = 0; archive->idle[i] != NULL && at < archive->idle[i]->shards.count; at++) {
            const struct tide_shard *theirs = archive->idle[i]->shards.list[at];
            struct tide_shard *ours = tide_shards_get(&reader->shards, theirs->key);
            if (theirs->broken[0] == '\0' || ours == NULL || ours->broken[0] != '\0')
                continue;
            ours->broken_rc = theirs->broken_rc;
            memcpy(ours->broken, theirs->broken, sizeof ours->broken);
        }
    tide_lock_drop(archive->world, archive->lock);
}

static tide_status broken_visit(tide_archive *archive, bool open, tide_broken_visit *visit,
                                void *arg, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    if (rc == TIDE_OK)
        broken_gather(archive, reader);
    for (struct tide_shard *shard = NULL;
         rc == TIDE_OK &&
         (shard = tide_shards_next(&reader->shards, TIDE_OLDEST_FIRST, shard)) != NULL;) {
        rc = open ? tide_shards_open(&reader->shards, shard, err) : TIDE_OK;
        if (rc == TIDE_NOT_FOUND)
            rc = TIDE_OK;
        if (shard->broken[0] != '\0')
            visit(shard->name, shard->broken_rc, shard->broken, arg);
    }
    return rc;
}

tide_status tide_archive_broken(tide_archive *archive, tide_broken_visit *visit, void *arg,
                                tide_error *err)
{
    return broken_visit(archive, true, visit, arg, err);
}

tide_status tide_archive_broken_met(tide_archive *archive, tide_broken_visit *visit, void *arg,
                                    tide_error *err)
{
    return broken_visit(archive, false, visit, arg, err);
}

static tide_status shard_state(struct tide_shard *shard, struct tide_shard_state *state_out,
                               tide_error *err)
{
    uint64_t bytes = 0;
    TIDE_TRY(tide_shard_state_load(shard, err));
    TIDE_TRY(tide_shard_bytes(shard, &bytes, err));
    sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_SPAN);
    bool there = false;
    tide_status rc = tide_db_step(&shard->db, row, &there, err);
    const int64_t oldest_ms = there ? sqlite3_column_int64(row, 0) : 0;
    const int64_t newest_ms = there ? sqlite3_column_int64(row, 1) : 0;
    const uint64_t gone = there ? tide_column_u64(row, 2) : 0;
    const uint64_t gone_sum = there ? tide_column_u64(row, 3) : 0;
    tide_db_end(row);
    if (rc != TIDE_OK)
        return rc;
    *state_out = (struct tide_shard_state){
        .key = shard->key,
        .generation = shard->generation,
        .messages = shard->messages,
        .bytes = bytes,
        .raw_bytes = shard->raw_bytes,
        .oldest_ms = oldest_ms,
        .newest_ms = newest_ms,
        .made_ms = shard->made_ms,
        .gone = gone,
        .gone_sum = gone_sum,
    };
    (void)snprintf(state_out->name, sizeof state_out->name, "%s", shard->name);
    (void)snprintf(state_out->id, sizeof state_out->id, "%s", shard->id);
    return TIDE_OK;
}

tide_status tide_archive_states(tide_archive *archive,
                                void (*visit)(const struct tide_shard_state *shard, void *arg),
                                void *arg, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         rc == TIDE_OK && tide_reader_next(reader, TIDE_OLDEST_FIRST, &shard, &rc, err);) {
        struct tide_shard_state state;
        rc = shard_state(shard, &state, err);
        if (rc == TIDE_OK)
            visit(&state, arg);
    }
    return rc;
}

tide_status tide_archive_shard(tide_archive *archive, size_t index,
                               struct tide_shard_state *state_out, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    struct tide_shard *shard = NULL;
    size_t before = 0;
    TIDE_TRY(tide_reader_take_all(archive, &reader, err));
    TIDE_TRY(shard_number(reader, index, &before, &shard, err));
    return shard_state(shard, state_out, err);
}

tide_status tide_archive_look(tide_archive *archive, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    return tide_reader_take_all(archive, &reader, err);
}

bool tide_archive_is_sound(tide_archive *archive, size_t *open_out)
{
    bool sound = true;
    *open_out = 0;
    tide_lock_take(archive->world, archive->lock);
    for (size_t i = 0; i < TIDE_READERS_IDLE; i++)
        for (size_t at = 0; archive->idle[i] != NULL && at < archive->idle[i]->shards.count; at++) {
            const struct tide_shard *shard = archive->idle[i]->shards.list[at];
            sound = sound && shard->broken[0] == '\0';
            *open_out += shard->open;
        }
    tide_lock_drop(archive->world, archive->lock);
    return sound;
}
