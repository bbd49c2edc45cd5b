#include "db/copy.h"

enum { BUSY_MS = 10000 };

static tide_status copy_pages(tide_db *source, tide_db *target, tide_error *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(target->handle, "main", source->handle, "main");
    if (backup == NULL)
        return tide_db_failed(target, sqlite3_extended_errcode(target->handle), "begin the copy",
                              err);
    /* All pages in one step: one snapshot, and no writer can make the copy start over. */
    const int code = sqlite3_backup_step(backup, -1);
    const int end = sqlite3_backup_finish(backup);
    if (code != SQLITE_DONE)
        return tide_db_failed(target, end == SQLITE_OK ? code : end, "copy", err);
    return tide_db_exec(target, "PRAGMA journal_mode = DELETE", err);
}

tide_status tide_db_copy(tide_world *world, const char *from, const char *to, tide_mem *mem,
                         tide_error *err)
{
    tide_db source = {0};
    tide_db target = {0};
    struct tide_db_options options = {.path = from,
                                      .vfs = tide_world_vfs(world),
                                      .read_only = true,
                                      .must_exist = true,
                                      .busy_timeout_ms = BUSY_MS};
    (void)tide_file_remove(world, to, NULL); /* left by a crash */
    tide_status rc = tide_db_open(&options, mem, &source, err);
    options.path = to;
    options.read_only = false;
    options.must_exist = false;
    if (rc == TIDE_OK)
        rc = tide_db_open(&options, mem, &target, err);
    if (rc == TIDE_OK)
        rc = copy_pages(&source, &target, err);
    tide_db_close(&target);
    tide_db_close(&source);
    if (rc != TIDE_OK)
        (void)tide_file_remove(world, to, NULL);
    return rc;
}

tide_status tide_db_whole(tide_world *world, const char *path, tide_mem *mem, tide_error *err)
{
    tide_db db = {0};
    sqlite3_stmt *stmt = NULL;
    const struct tide_db_options options = {.path = path,
                                            .vfs = tide_world_vfs(world),
                                            .read_only = true,
                                            .must_exist = true,
                                            .busy_timeout_ms = BUSY_MS};
    TIDE_TRY(tide_db_open(&options, mem, &db, err));
    tide_status rc = TIDE_OK;
    if (sqlite3_prepare_v2(db.handle, "PRAGMA integrity_check(1)", -1, &stmt, NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW)
        rc = tide_error_set(err, TIDE_CORRUPT, "%.250s is damaged: %.100s", path,
                            sqlite3_errmsg(db.handle));
    else if (sqlite3_stricmp((const char *)sqlite3_column_text(stmt, 0), "ok") != 0)
        rc = tide_error_set(err, TIDE_CORRUPT, "%.250s is damaged: %.100s", path,
                            (const char *)sqlite3_column_text(stmt, 0));
    (void)sqlite3_finalize(stmt);
    tide_db_close(&db);
    return rc;
}
