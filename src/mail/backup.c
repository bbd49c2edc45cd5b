#include "mail/backup.h"

#include "base/check.h"
#include "db/db.h"
#include "engine/archive_id.h"
#include "mail/room.h"
#include "mail/shard.h"
#include "world/userfile.h"

#include <stdio.h>

struct copying {
    tide_world *world;
    tide_mem *mem;
    const struct tide_backup *wanted;
    tide_archive *source;
    tide_archive *target; /* NULL: there is no copy yet */
    struct tide_backed_up *done;
    tide_error *err;
};

/* Whether the copy has the very same state of a shard. */
static bool is_same(struct copying *copying, const struct tide_shard_state *state)
{
    const size_t count = copying->target == NULL ? 0 : tide_archive_shards(copying->target);
    for (size_t i = 0; i < count; i++) {
        struct tide_shard_state there;
        if (tide_archive_shard(copying->target, i, &there, NULL) == TIDE_OK &&
            there.key == state->key)
            return strcmp(there.id, state->id) == 0 && there.generation == state->generation &&
                   there.messages == state->messages;
    }
    return false;
}

static tide_status copy_pages(tide_db *source, tide_db *target, tide_error *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(target->handle, "main", source->handle, "main");
    if (backup == NULL)
        return tide_db_failed(target, sqlite3_extended_errcode(target->handle), "begin the copy",
                              err);
    /* All pages in one step: one snapshot, which no writer can restart. */
    const int code = sqlite3_backup_step(backup, -1);
    const int end = sqlite3_backup_finish(backup);
    if (code != SQLITE_DONE)
        return tide_db_failed(target, end == SQLITE_OK ? code : end, "copy", err);
    /* A copy lies still: without a log it is one file, and a medium that cannot be written
     * to will do.  The first writer after a restore turns the log on again. */
    return tide_db_exec(target, "PRAGMA journal_mode = DELETE", err);
}

static tide_status copy_file(struct copying *copying, const char *from, const char *partial)
{
    tide_db source = {0};
    tide_db target = {0};
    struct tide_db_options options = {.path = from,
                                      .vfs = tide_world_vfs(copying->world),
                                      .read_only = true,
                                      .must_exist = true,
                                      .busy_timeout_ms = TIDE_SHARD_BUSY_MS};
    (void)tide_file_remove(copying->world, partial, NULL); /* left by a crash */
    tide_status rc = tide_db_open(&options, copying->mem, &source, copying->err);
    options.path = partial;
    options.read_only = false;
    options.must_exist = false;
    if (rc == TIDE_OK)
        rc = tide_db_open(&options, copying->mem, &target, copying->err);
    if (rc == TIDE_OK)
        rc = copy_pages(&source, &target, copying->err);
    tide_db_close(&target);
    tide_db_close(&source);
    return rc;
}

static tide_status copy_shard(struct copying *copying, const struct tide_shard_state *state)
{
    char from[TIDE_SHARD_PATH_BYTES];
    char to[TIDE_SHARD_PATH_BYTES];
    char partial[TIDE_SHARD_PATH_BYTES];
    char beside[TIDE_SHARD_PATH_BYTES + 8];
    const struct tide_backup *wanted = copying->wanted;
    if ((size_t)snprintf(from, sizeof from, "%s/%s.db", wanted->from_dir, state->name) >=
            sizeof from ||
        (size_t)snprintf(to, sizeof to, "%s/%s.db", wanted->to_dir, state->name) >= sizeof to ||
        (size_t)snprintf(partial, sizeof partial, "%s/%s.partial", wanted->to_dir, state->name) >=
            sizeof partial)
        return tide_error_set(copying->err, TIDE_INVALID, "path too long: %.100s...",
                              wanted->to_dir);
    tide_status rc = TIDE_OK;
    if (wanted->free_min_bytes > 0)
        rc = tide_room_check(copying->world, wanted->to_dir, wanted->free_min_bytes + state->bytes,
                             copying->err);
    if (rc == TIDE_OK && wanted->progress != NULL)
        wanted->progress(state->name, state->bytes, wanted->progress_arg);
    if (rc == TIDE_OK)
        rc = copy_file(copying, from, partial);
    if (rc != TIDE_OK) {
        (void)tide_file_remove(copying->world, partial, NULL);
        return rc;
    }
    /* What somebody's sqlite3 left beside the old copy does not belong to the new one. */
    (void)snprintf(beside, sizeof beside, "%s-wal", to);
    (void)tide_file_remove(copying->world, beside, NULL);
    (void)snprintf(beside, sizeof beside, "%s-shm", to);
    (void)tide_file_remove(copying->world, beside, NULL);
    rc = tide_userfile_replace(partial, to, copying->err);
    copying->done->copied += rc == TIDE_OK;
    copying->done->bytes += rc == TIDE_OK ? state->bytes : 0;
    return rc;
}

static tide_status copy_all(struct copying *copying)
{
    tide_status rc = TIDE_OK;
    const size_t count = tide_archive_shards(copying->source);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        struct tide_shard_state state;
        if (copying->wanted->cancel != NULL &&
            tide_canceled(copying->wanted->cancel) != TIDE_CANCEL_NONE)
            return tide_error_set(copying->err, TIDE_CANCELED, "interrupted");
        rc = tide_archive_shard(copying->source, i, &state, copying->err);
        if (rc != TIDE_OK)
            break;
        copying->done->messages += state.messages;
        if (is_same(copying, &state))
            copying->done->same++;
        else
            rc = copy_shard(copying, &state);
    }
    return rc;
}

/* What is restored from a copy is the same archive: its account goes on with it. */
static tide_status copy_id(struct copying *copying)
{
    char id[TIDE_ARCHIVE_ID_BYTES];
    char there[TIDE_ARCHIVE_ID_BYTES];
    char path[TIDE_SHARD_PATH_BYTES];
    char line[TIDE_ARCHIVE_ID_BYTES + 1];
    const struct tide_backup *wanted = copying->wanted;
    tide_status rc = tide_archive_id_read(copying->world, wanted->from_dir, id, NULL);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK; /* of a version that gave none */
    if (rc == TIDE_OK &&
        tide_archive_id_read(copying->world, wanted->to_dir, there, NULL) == TIDE_OK &&
        strcmp(id, there) == 0)
        return TIDE_OK;
    if (rc != TIDE_OK)
        return tide_archive_id_read(copying->world, wanted->from_dir, id, copying->err);
    (void)snprintf(line, sizeof line, "%s\n", id);
    if ((size_t)snprintf(path, sizeof path, "%s/" TIDE_ARCHIVE_ID_FILE, wanted->to_dir) >=
        sizeof path)
        return tide_error_set(copying->err, TIDE_INVALID, "the path is too long");
    return tide_file_replace(copying->world, path, tide_text_of(line), 0600, copying->err);
}

tide_status tide_backup_archive(tide_world *world, const struct tide_backup *wanted, tide_mem *mem,
                                struct tide_backed_up *done, tide_error *err)
{
    struct copying copying = {
        .world = world, .mem = mem, .wanted = wanted, .done = done, .err = err};
    struct tide_archive_options options = {
        .dir = wanted->from_dir, .account = wanted->account, .world = world, .read_only = true};
    tide_status rc = tide_archive_open(&options, mem, &copying.source, err);
    if (rc == TIDE_OK)
        rc = tide_dir_make(world, wanted->to_dir, err);
    options.dir = wanted->to_dir;
    /* A target that is not readable, or another account's, must not be overwritten. */
    if (rc == TIDE_OK)
        rc = tide_archive_open(&options, mem, &copying.target, err);
    if (rc == TIDE_OK)
        rc = copy_all(&copying);
    if (rc == TIDE_OK)
        rc = copy_id(&copying);
    (void)tide_archive_close(copying.target, NULL);
    (void)tide_archive_close(copying.source, NULL);
    return rc;
}
