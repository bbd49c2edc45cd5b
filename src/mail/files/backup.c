#include "mail/files/backup.h"

#include "base/check.h"
#include "db/copy.h"
#include "engine/accounts/archive_id.h"
#include "world/free_space.h"
#include "mail/archive/archive.h"
#include "mail/archive/shard.h"
#include "world/userfile.h"

#include <stdio.h>

struct copying {
    tide_world *world;
    const struct tide_system_copy *wanted;
    tide_archive *source;
    tide_archive *target; /* NULL: there is no copy yet */
    struct tide_system_copied *done;
    tide_error *err;
};

/* Whether the copy has exactly the same state of a shard. */
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

static tide_status copy_shard(struct copying *copying, const struct tide_shard_state *state)
{
    char from[TIDE_SHARD_PATH_BYTES];
    char to[TIDE_SHARD_PATH_BYTES];
    char partial[TIDE_SHARD_PATH_BYTES];
    char beside[TIDE_SHARD_PATH_BYTES + 8];
    const struct tide_system_copy *wanted = copying->wanted;
    if ((size_t)snprintf(from, sizeof from, "%s/%s.db", wanted->from, state->name) >= sizeof from ||
        (size_t)snprintf(to, sizeof to, "%s/%s.db", wanted->to, state->name) >= sizeof to ||
        (size_t)snprintf(partial, sizeof partial, "%s/%s.partial", wanted->to, state->name) >=
            sizeof partial)
        return tide_error_set(copying->err, TIDE_INVALID, "path too long: %.100s...", wanted->to);
    if (wanted->free_min_bytes > 0)
        TIDE_TRY(tide_room_check(copying->world, wanted->to, wanted->free_min_bytes + state->bytes,
                                 copying->err));
    if (wanted->progress != NULL)
        wanted->progress(state->name, state->bytes, wanted->progress_arg);
    TIDE_TRY(tide_db_copy(copying->world, from, partial, wanted->mem, copying->err));
    /* Remove what a user's sqlite3 left next to the old copy: it does not belong to the new one. */
    (void)snprintf(beside, sizeof beside, "%s-wal", to);
    (void)tide_file_remove(copying->world, beside, NULL);
    (void)snprintf(beside, sizeof beside, "%s-shm", to);
    (void)tide_file_remove(copying->world, beside, NULL);
    tide_status rc = tide_userfile_replace(partial, to, copying->err);
    copying->done->files += rc == TIDE_OK;
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
        copying->done->units += state.messages;
        if (is_same(copying, &state))
            copying->done->same++;
        else
            rc = copy_shard(copying, &state);
    }
    return rc;
}

tide_status tide_backup_archive(const struct tide_system_copy *wanted,
                                struct tide_system_copied *done, tide_error *err)
{
    tide_world *world = wanted->world;
    tide_mem *mem = wanted->mem;
    struct copying copying = {.world = world, .wanted = wanted, .done = done, .err = err};
    struct tide_archive_options options = {
        .dir = wanted->from, .account = wanted->name, .world = world, .read_only = true};
    tide_status rc = tide_archive_open(&options, mem, &copying.source, err);
    if (rc == TIDE_OK)
        rc = tide_dir_make(world, wanted->to, err);
    options.dir = wanted->to;
    /* A target that is unreadable, or of another account, must not be overwritten. */
    if (rc == TIDE_OK)
        rc = tide_archive_open(&options, mem, &copying.target, err);
    if (rc == TIDE_OK)
        rc = copy_all(&copying);
    if (rc == TIDE_OK)
        rc = tide_archive_id_copy(world, wanted->from, wanted->to, err);
    (void)tide_archive_close(copying.target, NULL);
    (void)tide_archive_close(copying.source, NULL);
    return rc;
}
