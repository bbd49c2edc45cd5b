/* forget.c - drops cached pages of a shard, so that a later read proves what is on disk (M13). */
#include "mail/archive/inside.h"

#include <stdio.h>

tide_status tide_archive_forget(tide_archive *archive, uint32_t shard, tide_error *err)
{
    char path[TIDE_SHARD_PATH_BYTES];
    char name[32] = "";
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_shards_look(&archive->reads, err);
    const struct tide_shard *found = tide_shards_get(&archive->reads, shard);
    if (rc == TIDE_OK && found != NULL)
        (void)snprintf(name, sizeof name, "%s", found->name);
    tide_archive_turn_drop(archive); /* a sync may take long */
    if (rc == TIDE_OK && name[0] == '\0')
        rc = tide_error_set(err, TIDE_NOT_FOUND, "there is no such shard");
    static const char *const ends[] = {".db", ".db-wal"};
    for (size_t i = 0; rc == TIDE_OK && i < sizeof ends / sizeof ends[0]; i++) {
        if ((size_t)snprintf(path, sizeof path, "%s/%s%s", archive->options.dir, name, ends[i]) >=
            sizeof path)
            return tide_error_set(err, TIDE_INVALID, "the path of shard %s is too long", name);
        rc = tide_file_forget(archive->world, path, err);
        if (rc == TIDE_NOT_FOUND && i > 0)
            rc = TIDE_OK; /* everything is in the file */
    }
    return rc;
}
