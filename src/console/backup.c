#include "console/backup.h"

#include "db/copy.h"
#include "engine/accounts/archive_id.h"
#include "world/userfile.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 + 2048 };

struct copying {
    tide_world *world;
    tide_mem *mem;
    const struct tide_console_backup *wanted;
    struct tide_console_backed_up *done;
    tide_status rc;
    tide_error *err;
};

static bool is_property(const char *name)
{
    const size_t bytes = strlen(name);
    return bytes > 3 && strcmp(name + bytes - 3, ".db") == 0;
}

/* Reads the one number of a query. */
static tide_status ask(tide_db *db, const char *sql, uint64_t *number_out, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        *number_out = (uint64_t)sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return code == SQLITE_ROW ? TIDE_OK : tide_db_failed(db, code, "count rows", err);
}

static tide_status count_rows(tide_world *world, const char *path, bool compare, tide_mem *mem,
                              uint64_t *rows_out, tide_error *err)
{
    tide_db db = {0};
    const struct tide_db_options options = {
        .path = path, .vfs = tide_world_vfs(world), .read_only = true, .must_exist = true};
    uint64_t facts = 0;
    tide_status rc = tide_db_open(&options, mem, &db, err);
    if (rc == TIDE_OK)
        rc = ask(&db, "SELECT coalesce(sum(rows), 0) FROM day", rows_out, err);
    if (rc == TIDE_OK && compare)
        rc = ask(&db, "SELECT count(*) FROM fact", &facts, err);
    tide_db_close(&db);
    if (rc == TIDE_OK && compare && facts != *rows_out)
        return tide_error_set(err, TIDE_CORRUPT, "%.250s lacks rows of some days", path);
    return rc;
}

static tide_status check_room(struct copying *copying, uint64_t bytes)
{
    uint64_t free_bytes = 0;
    const tide_status rc =
        tide_disk_free(copying->world, copying->wanted->to_dir, &free_bytes, copying->err);
    if (rc == TIDE_OK && free_bytes < copying->wanted->free_min_bytes + bytes)
        return tide_error_set(copying->err, TIDE_DISK_FULL,
                              "the disk of %.200s has too little free space (disk.free_min)",
                              copying->wanted->to_dir);
    return rc;
}

static tide_status copy_property(struct copying *copying, const char *name)
{
    const struct tide_console_backup *wanted = copying->wanted;
    char from[PATH_BYTES];
    char to[PATH_BYTES];
    char partial[PATH_BYTES];
    struct tide_path_info info;
    uint64_t rows = 0;
    if ((size_t)snprintf(from, sizeof from, "%s/%s", wanted->from_dir, name) >= sizeof from ||
        (size_t)snprintf(to, sizeof to, "%s/%s", wanted->to_dir, name) >= sizeof to ||
        (size_t)snprintf(partial, sizeof partial, "%s/%s.partial", wanted->to_dir, name) >=
            sizeof partial)
        return tide_error_set(copying->err, TIDE_INVALID, "path too long: %.100s...", name);
    tide_status rc = tide_path_look(from, &info, copying->err);
    if (rc == TIDE_OK && wanted->free_min_bytes > 0)
        rc = check_room(copying, info.bytes);
    if (rc == TIDE_OK && wanted->progress != NULL)
        wanted->progress(name, info.bytes, wanted->progress_arg);
    if (rc == TIDE_OK)
        rc = tide_db_copy(copying->world, from, partial, copying->mem, copying->err);
    if (rc == TIDE_OK)
        rc = count_rows(copying->world, partial, false, copying->mem, &rows, copying->err);
    if (rc == TIDE_OK)
        rc = tide_userfile_replace(partial, to, copying->err);
    copying->done->files += rc == TIDE_OK;
    copying->done->rows += rc == TIDE_OK ? rows : 0;
    copying->done->bytes += rc == TIDE_OK ? info.bytes : 0;
    return rc;
}

static void copy_one(const char *name, void *arg)
{
    struct copying *copying = arg;
    if (copying->rc != TIDE_OK || !is_property(name))
        return;
    copying->rc = copying->wanted->cancel != NULL &&
                          tide_canceled(copying->wanted->cancel) != TIDE_CANCEL_NONE
                      ? tide_error_set(copying->err, TIDE_CANCELED, "interrupted")
                      : copy_property(copying, name);
}

tide_status tide_console_backup(tide_world *world, const struct tide_console_backup *wanted,
                                tide_mem *mem, struct tide_console_backed_up *done, tide_error *err)
{
    struct copying copying = {
        .world = world, .mem = mem, .wanted = wanted, .done = done, .err = err};
    tide_status rc = tide_dir_make(world, wanted->to_dir, err);
    if (rc == TIDE_OK)
        rc = tide_dir_list(world, wanted->from_dir, copy_one, &copying, err);
    if (rc == TIDE_OK)
        rc = copying.rc;
    return rc == TIDE_OK ? tide_archive_id_copy(world, wanted->from_dir, wanted->to_dir, err) : rc;
}

/* ---- checking ---- */

struct checking {
    tide_world *world;
    tide_mem *mem;
    const char *dir;
    tide_status rc;
    tide_error *err;
};

static void check_one(const char *name, void *arg)
{
    struct checking *checking = arg;
    char path[PATH_BYTES];
    uint64_t rows = 0;
    if (checking->rc != TIDE_OK || !is_property(name))
        return;
    (void)snprintf(path, sizeof path, "%s/%s", checking->dir, name);
    checking->rc = tide_db_whole(checking->world, path, checking->mem, checking->err);
    if (checking->rc == TIDE_OK)
        checking->rc = count_rows(checking->world, path, true, checking->mem, &rows, checking->err);
}

tide_status tide_console_backup_check(tide_world *world, const char *dir, tide_mem *mem,
                                      tide_error *err)
{
    struct checking checking = {.world = world, .mem = mem, .dir = dir, .err = err};
    const tide_status rc = tide_dir_list(world, dir, check_one, &checking, err);
    return rc == TIDE_OK ? checking.rc : rc;
}
