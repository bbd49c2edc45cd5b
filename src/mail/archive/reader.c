/* reader.c - readers of an archive: each has connections of its own, so that none waits for
 * another. */
#include "mail/archive/inside.h"
#include "base/check.h"

#include <stdio.h>

/* ---- opening and closing --------------------------------------------------------------- */

static void reader_close(struct tide_reader *reader)
{
    tide_archive *archive = reader->archive;
    tide_shards_done(&reader->shards);
    tide_packer_free(reader->packer);
    tide_mem_free(archive->mem, reader, sizeof *reader);
    tide_lock_take(archive->world, archive->lock);
    archive->readers--;
    tide_lock_drop(archive->world, archive->lock);
}

static tide_status reader_open(tide_archive *archive, struct tide_reader **reader_out,
                               tide_error *err)
{
    struct tide_archive_options reading = archive->options;
    struct tide_reader *reader = tide_mem_new(archive->mem, sizeof *reader);
    if (reader == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "%s: no memory to read the archive",
                              archive->options.dir);
    tide_lock_take(archive->world, archive->lock);
    reader->first = archive->readers++ == 0;
    tide_lock_drop(archive->world, archive->lock);
    reader->archive = archive;
    reading.read_only = true;
    tide_shards_init(&reader->shards, &reading, archive->mem);
    reader->shards.tolerant = archive->options.read_only;
    if (!reader->first)
        reader->shards.open_max = TIDE_READER_OPEN_MAX;
    if (!reading.lean && (!reader->first || !archive->options.read_only))
        reader->shards.cache_kib = TIDE_SHARD_BESIDE_CACHE_KIB;
    tide_status rc = tide_packer_new(archive->mem, archive->options.level, &reader->packer, err);
    if (rc == TIDE_OK)
        rc = tide_shards_look(&reader->shards, err);
    if (rc == TIDE_OK)
        *reader_out = reader;
    else
        reader_close(reader);
    return rc;
}

void tide_readers_close(tide_archive *archive)
{
    for (size_t i = 0; i < TIDE_READERS_IDLE; i++)
        if (archive->idle[i] != NULL)
            reader_close(archive->idle[i]);
    TIDE_ASSERT(archive->readers == 0);
}

/* ---- taking and giving back ------------------------------------------------------------ */

tide_status tide_reader_take(tide_archive *archive, struct tide_reader **reader_out,
                             tide_error *err)
{
    struct tide_reader *reader = NULL;
    tide_lock_take(archive->world, archive->lock);
    const uint64_t forgets = archive->forgets;
    for (size_t i = 0; reader == NULL && i < TIDE_READERS_IDLE; i++) {
        reader = archive->idle[i];
        archive->idle[i] = NULL;
    }
    tide_lock_drop(archive->world, archive->lock);
    if (reader == NULL)
        TIDE_TRY(reader_open(archive, &reader, err));
    for (size_t i = 0; reader->forgets != forgets && i < reader->shards.count; i++)
        tide_shards_close(&reader->shards, reader->shards.list[i]); /* ARC8 */
    reader->forgets = forgets;
    *reader_out = reader;
    return TIDE_OK;
}

tide_status tide_reader_take_all(tide_archive *archive, struct tide_reader **reader_out,
                                 tide_error *err)
{
    TIDE_TRY(tide_reader_take(archive, reader_out, err));
    return tide_shards_look(&(*reader_out)->shards, err);
}

tide_status tide_reader_take_at(tide_archive *archive, uint32_t key,
                                struct tide_reader **reader_out, struct tide_shard **shard_out,
                                tide_error *err)
{
    TIDE_TRY(tide_reader_take(archive, reader_out, err));
    return tide_reader_at(*reader_out, key, shard_out, err);
}

void tide_reader_drop(struct tide_reader *reader)
{
    if (reader == NULL)
        return;
    tide_archive *archive = reader->archive;
    tide_lock_take(archive->world, archive->lock);
    size_t at = reader->first ? 0 : 1; /* the place of the first one stays free for it */
    while (at < TIDE_READERS_IDLE && archive->idle[at] != NULL)
        at++;
    if (at < TIDE_READERS_IDLE)
        archive->idle[at] = reader;
    tide_lock_drop(archive->world, archive->lock);
    if (at == TIDE_READERS_IDLE)
        reader_close(reader);
}

/* ---- shards ---------------------------------------------------------------------------- */

tide_status tide_reader_at(struct tide_reader *reader, uint32_t key, struct tide_shard **shard_out,
                           tide_error *err)
{
    struct tide_shard *shard = tide_shards_get(&reader->shards, key);
    tide_status rc = TIDE_OK;
    if (shard == NULL) {
        rc = tide_shards_look(&reader->shards, err);
        shard = tide_shards_get(&reader->shards, key);
    }
    if (rc == TIDE_OK && shard == NULL)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "%s: there is no shard %u-%u", reader->shards.dir,
                            key / TIDE_SHARD_PARTS_MAX, key % TIDE_SHARD_PARTS_MAX);
    TIDE_TRY(rc);
    TIDE_TRY(tide_shards_open(&reader->shards, shard, err));
    *shard_out = shard;
    return TIDE_OK;
}

bool tide_reader_next(struct tide_reader *reader, tide_order order, struct tide_shard **shard,
                      tide_status *rc, tide_error *err)
{
    while (*rc == TIDE_OK && (*shard = tide_shards_next(&reader->shards, order, *shard)) != NULL) {
        *rc = tide_shards_open(&reader->shards, *shard, err);
        if (*rc == TIDE_OK)
            return true;
        if (*rc == TIDE_NOT_FOUND) /* not completely created (SHD3), or skipped (SHD5) */
            *rc = TIDE_OK;
    }
    return false;
}

/* ---- letting go of files --------------------------------------------------------------- */

static void close_outdated(tide_shards *shards)
{
    for (size_t i = 0; i < shards->count; i++)
        if (tide_shard_outdated(shards->list[i]))
            tide_shards_close(shards, shards->list[i]);
}

tide_status tide_archive_let_go(tide_archive *archive, tide_error *err)
{
    struct tide_reader *readers[TIDE_READERS_IDLE];
    tide_status rc = TIDE_OK;
    tide_lock_take(archive->world, archive->lock);
    memcpy(readers, archive->idle, sizeof readers);
    memset(archive->idle, 0, sizeof archive->idle);
    tide_lock_drop(archive->world, archive->lock);
    for (size_t i = 0; i < TIDE_READERS_IDLE; i++) {
        if (readers[i] == NULL)
            continue;
        if (rc == TIDE_OK)
            rc = tide_shards_look(&readers[i]->shards, err);
        close_outdated(&readers[i]->shards);
        tide_reader_drop(readers[i]);
    }
    return rc;
}

/* ---- forgetting ------------------------------------------------------------------------ */

tide_status tide_archive_forget(tide_archive *archive, uint32_t shard, tide_error *err)
{
    static const char *const ends[] = {".db", ".db-wal"};
    struct tide_reader *reader = NULL;
    char path[TIDE_SHARD_PATH_BYTES];
    char name[32] = "";
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    const struct tide_shard *found = rc == TIDE_OK ? tide_shards_get(&reader->shards, shard) : NULL;
    if (found != NULL)
        (void)snprintf(name, sizeof name, "%s", found->name);
    else if (rc == TIDE_OK)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "there is no such shard");
    tide_reader_drop(reader);
    for (size_t i = 0; rc == TIDE_OK && i < sizeof ends / sizeof ends[0]; i++) {
        if ((size_t)snprintf(path, sizeof path, "%s/%s%s", archive->options.dir, name, ends[i]) >=
            sizeof path)
            return tide_error_set(err, TIDE_INVALID, "the path of shard %s is too long", name);
        rc = tide_file_forget(archive->world, path, err);
        if (rc == TIDE_NOT_FOUND && i > 0)
            rc = TIDE_OK; /* everything is in the file */
    }
    tide_lock_take(archive->world, archive->lock);
    archive->forgets++;
    tide_lock_drop(archive->world, archive->lock);
    return rc;
}
