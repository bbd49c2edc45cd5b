/* copy.c - copies archive/NAME for systems without a backup of their own (M17).
 *
 * Databases (*.db) are copied as one snapshot while they are being written, other files byte by byte;
 * each gets its name when it is complete.  Nothing is ever removed from a copy. */
#include "system/system.h"

#include "db/copy.h"
#include "engine/accounts/archive_id.h"
#include "world/free_space.h"
#include "world/userfile.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 + 2048, CHUNK_BYTES = 16 << 10 };

struct walk {
    const struct tide_system *system;
    const struct tide_system_copy *copy;
    struct tide_system_copied *done; /* NULL: reads the copy back */
    tide_status rc;
    tide_error *err;
};

static bool ends_with(const char *name, const char *end)
{
    const size_t bytes = strlen(name);
    return bytes > strlen(end) && strcmp(name + bytes - strlen(end), end) == 0;
}

/* Logs of SQLite, locks and what an interrupted copy left are no data; the id is copied last. */
static bool is_data(const char *name)
{
    return !ends_with(name, "-wal") && !ends_with(name, "-shm") && !ends_with(name, ".partial") &&
           strcmp(name, "lock") != 0 && strcmp(name, TIDE_ARCHIVE_ID_FILE) != 0;
}

static tide_status copy_database(const struct walk *walk, const char *from, const char *to)
{
    tide_world *world = walk->copy->world;
    char partial[PATH_BYTES + 16];
    char beside[PATH_BYTES + 16];
    (void)snprintf(partial, sizeof partial, "%s.partial", to);
    const tide_status rc = tide_db_copy(world, from, partial, walk->copy->mem, walk->err);
    if (rc != TIDE_OK)
        return rc;
    /* A log that was left next to the old copy would be applied to the new one: it goes first. */
    (void)snprintf(beside, sizeof beside, "%s-wal", to);
    (void)tide_file_remove(world, beside, NULL);
    (void)snprintf(beside, sizeof beside, "%s-shm", to);
    (void)tide_file_remove(world, beside, NULL);
    return tide_userfile_replace(partial, to, walk->err);
}

static tide_status copy_bytes(const struct walk *walk, const char *from, const char *to)
{
    char chunk[CHUNK_BYTES];
    tide_reading *reading = NULL;
    tide_writing *writing = NULL;
    size_t count = sizeof chunk;
    bool same = false;
    tide_status rc = tide_reading_open(walk->copy->mem, from, &reading, walk->err);
    if (rc == TIDE_OK)
        rc = tide_writing_open(walk->copy->mem, to, &writing, walk->err);
    for (uint64_t at = 0; rc == TIDE_OK && count == sizeof chunk; at += count) {
        rc = tide_reading_at(reading, at, chunk, sizeof chunk, &count, walk->err);
        if (rc == TIDE_OK)
            rc = tide_writing_add(writing, chunk, count, walk->err);
    }
    tide_reading_close(reading);
    if (rc == TIDE_OK)
        return tide_writing_end(writing, INT64_MIN, &same, walk->err);
    tide_writing_drop(writing);
    return rc;
}

static tide_status units_of(const struct walk *walk, const char *path, bool check)
{
    uint64_t units = 0;
    tide_status rc = TIDE_OK;
    if (walk->system->file_units != NULL)
        rc = walk->system->file_units(walk->copy, path, check, &units, walk->err);
    if (rc == TIDE_OK && walk->done != NULL)
        walk->done->units += units;
    return rc;
}

static tide_status copy_file(const struct walk *walk, const char *name, const char *to)
{
    const struct tide_system_copy *copy = walk->copy;
    char from[PATH_BYTES];
    struct tide_path_info info;
    if ((size_t)snprintf(from, sizeof from, "%s/%s", copy->from, name) >= sizeof from)
        return tide_error_set(walk->err, TIDE_INVALID, "path too long: %.100s...", name);
    tide_status rc = tide_path_look(from, &info, walk->err);
    if (rc != TIDE_OK || info.kind != TIDE_PATH_FILE)
        return rc;
    if (copy->free_min_bytes > 0)
        rc = tide_room_check(copy->world, copy->to, copy->free_min_bytes + info.bytes, walk->err);
    if (rc == TIDE_OK && copy->progress != NULL)
        copy->progress(name, info.bytes, copy->progress_arg);
    if (rc == TIDE_OK)
        rc = ends_with(name, ".db") ? copy_database(walk, from, to) : copy_bytes(walk, from, to);
    if (rc != TIDE_OK)
        return rc;
    walk->done->files++;
    walk->done->bytes += info.bytes;
    return units_of(walk, to, false);
}

static tide_status check_file(const struct walk *walk, const char *name, const char *path)
{
    const struct tide_system_copy *copy = walk->copy;
    const tide_status rc =
        ends_with(name, ".db") ? tide_db_whole(copy->world, path, copy->mem, walk->err) : TIDE_OK;
    return rc == TIDE_OK ? units_of(walk, path, true) : rc;
}

static void visit(const char *name, void *arg)
{
    struct walk *walk = arg;
    char to[PATH_BYTES];
    if (walk->rc != TIDE_OK || !is_data(name))
        return;
    if ((size_t)snprintf(to, sizeof to, "%s/%s", walk->copy->to, name) >= sizeof to)
        walk->rc = tide_error_set(walk->err, TIDE_INVALID, "path too long: %.100s...", name);
    else if (walk->copy->cancel != NULL && tide_canceled(walk->copy->cancel) != TIDE_CANCEL_NONE)
        walk->rc = tide_error_set(walk->err, TIDE_CANCELED, "interrupted");
    else
        walk->rc = walk->done != NULL ? copy_file(walk, name, to) : check_file(walk, name, to);
}

tide_status tide_system_backup(const struct tide_system *system,
                               const struct tide_system_copy *copy, struct tide_system_copied *done,
                               tide_error *err)
{
    struct walk walk = {.system = system, .copy = copy, .done = done, .err = err};
    if (system->backup != NULL)
        return system->backup(copy, done, err);
    tide_status rc = tide_dir_make(copy->world, copy->to, err);
    if (rc == TIDE_OK)
        rc = tide_dir_list(copy->world, copy->from, visit, &walk, err);
    if (rc == TIDE_OK)
        rc = walk.rc;
    if (rc == TIDE_OK)
        rc = tide_userfile_settle(copy->to, err);
    return rc == TIDE_OK ? tide_archive_id_copy(copy->world, copy->from, copy->to, err) : rc;
}

tide_status tide_system_backup_check(const struct tide_system *system,
                                     const struct tide_system_copy *copy, tide_error *err)
{
    struct walk walk = {.system = system, .copy = copy, .err = err};
    if (system->backup_check != NULL)
        return system->backup_check(copy, err);
    const tide_status rc = tide_dir_list(copy->world, copy->to, visit, &walk, err);
    return rc == TIDE_OK ? walk.rc : rc;
}
