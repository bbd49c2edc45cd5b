#include "db/db.h"
#include "base/check.h"

#include <stdio.h>
#include <string.h>

static tide_status status_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return TIDE_NO_MEMORY;
    case SQLITE_FULL:
        return TIDE_DISK_FULL;
    case SQLITE_CORRUPT:
        return TIDE_CORRUPT;
    case SQLITE_NOTADB:
        return TIDE_INVALID;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return TIDE_BUSY;
    case SQLITE_IOERR:
        return code == SQLITE_IOERR_NOMEM ? TIDE_NO_MEMORY : TIDE_IO;
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_PROTOCOL:
        return TIDE_IO;
    case SQLITE_TOOBIG:
        return TIDE_INVALID;
    default:
        return TIDE_BUG;
    }
}

static const char *advice_for(int code)
{
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return "free some memory";
    case SQLITE_FULL:
        return "make room on its disk";
    case SQLITE_CORRUPT:
        return "the file is damaged: restore it from a backup";
    case SQLITE_NOTADB:
        return "the file is not a database: name another file or move this one away";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "another program is writing to it: wait, or close that program";
    case SQLITE_CANTOPEN:
        return "check that its directory exists and may be written to, and that it is a file";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return "check the permissions of the file and of its directory";
    case SQLITE_IOERR:
        return "check the disk, then start again";
    default:
        return "this should not happen: please report it";
    }
}

tide_status tide_db_failed(tide_db *db, int code, const char *what, tide_error *err)
{
    tide_status status = status_of(code);
    int os = db->handle != NULL ? sqlite3_system_errno(db->handle) : 0;
    const char *reason = db->handle != NULL && sqlite3_extended_errcode(db->handle) == code
                             ? sqlite3_errmsg(db->handle)
                             : sqlite3_errstr(code);
    bool tell_os = os != 0 && ((code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN);
    (void)tide_error_set(err, status, "%s: %.60s: %.120s%s%.60s; %s",
                         db->path == NULL ? "database" : db->path, what, reason,
                         tell_os ? ": " : "", tell_os ? strerror(os) : "", advice_for(code));
    if (err != NULL)
        err->code = code;
    return status;
}

void tide_db_tune_process(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static tide_status set_up(tide_db *db, const struct tide_db_options *options, tide_error *err)
{
    (void)sqlite3_extended_result_codes(db->handle, 1);
    (void)sqlite3_busy_timeout(db->handle, (int)options->busy_timeout_ms);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_FKEY, 0, NULL);
    /* Double-quoted strings hide misspelled columns. */
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);

    char pragmas[256];
    (void)snprintf(pragmas, sizeof pragmas,
                   "PRAGMA cache_size = -%u; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0;"
                   "PRAGMA page_size = 4096; PRAGMA synchronous = FULL;"
                   "PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = OFF",
                   options->cache_kib == 0 ? 4096u : options->cache_kib);
    return tide_db_exec(db, pragmas, err);
}

tide_status tide_db_exists(const char *path, const char *vfs, bool *exists_out, tide_error *err)
{
    sqlite3_vfs *found = sqlite3_vfs_find(vfs);
    int exists = 0;
    if (found == NULL)
        return tide_error_set(err, TIDE_BUG, "no SQLite VFS named %s", vfs == NULL ? "" : vfs);
    if (found->xAccess(found, path, SQLITE_ACCESS_EXISTS, &exists) != SQLITE_OK)
        return tide_error_set(err, TIDE_IO, "%s: cannot be accessed; check its directory", path);
    *exists_out = exists != 0;
    return TIDE_OK;
}

tide_status tide_db_open(const struct tide_db_options *options, tide_mem *mem, tide_db *db_out,
                         tide_error *err)
{
    TIDE_ASSERT(options->path != NULL);
    tide_db db = {.mem = mem, .path_bytes = strlen(options->path) + 1};
    db.path = tide_mem_new(mem, db.path_bytes);
    if (db.path == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "%s: no memory to open it", options->path);
    memcpy(db.path, options->path, db.path_bytes);

    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    flags |= options->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    if (!options->read_only && !options->must_exist)
        flags |= SQLITE_OPEN_CREATE;

    tide_status rc = TIDE_OK;
    int code = sqlite3_open_v2(options->path, &db.handle, flags, options->vfs);
    if (code != SQLITE_OK)
        rc = tide_db_failed(&db, code, "open", err);
    if (rc == TIDE_OK)
        rc = set_up(&db, options, err);
    /* SQLite falls back to read-only when it may not write; report that now, not at the
     * first job. */
    if (rc == TIDE_OK && !options->read_only && sqlite3_db_readonly(db.handle, "main") == 1)
        rc = tide_error_set(err, TIDE_IO, "%s: may be read but not written; check its permissions",
                            options->path);
    if (rc != TIDE_OK) {
        tide_db_close(&db);
        return rc;
    }
    *db_out = db;
    return TIDE_OK;
}

/* "PRAGMA journal_mode = WAL".  It names the mode before it commits the file's header, so only its
 * end tells whether the file is in that mode. */
static tide_status switch_to_wal(tide_db *db, tide_error *err)
{
    tide_auto_prepared *stmt = NULL;
    bool wal = false;
    int code = sqlite3_prepare_v2(db->handle, "PRAGMA journal_mode = WAL", -1, &stmt, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(stmt);
    if (code == SQLITE_ROW) {
        wal = tide_text_equal(tide_column_text(stmt, 0), TIDE_TEXT("wal"));
        code = sqlite3_step(stmt);
    }
    if (code != SQLITE_DONE)
        return tide_db_failed(db, code, "switch to a write-ahead log", err);
    else if (!wal)
        return tide_error_set(
            err, TIDE_IO, "%s: its disk cannot hold a write-ahead log; use a local disk", db->path);
    return TIDE_OK;
}

/* The first page of a new file is written with a rollback journal, whose removal has to be durable
 * (EXTRA syncs the directory): after a power loss it could be back, and would undo everything
 * that was stored since. */
tide_status tide_db_wal(tide_db *db, tide_error *err)
{
    TIDE_TRY(tide_db_exec(db, "PRAGMA synchronous = EXTRA", err));
    TIDE_TRY(switch_to_wal(db, err));
    return tide_db_exec(db, "PRAGMA synchronous = FULL", err);
}

void tide_db_close(tide_db *db)
{
    for (size_t i = 0; db->stmts != NULL && i < db->stmts_count; i++)
        (void)sqlite3_finalize(db->stmts[i]);
    if (db->stmts != NULL)
        tide_mem_free(db->mem, db->stmts, db->stmts_count * sizeof db->stmts[0]);
    if (db->sql != NULL)
        tide_mem_free(db->mem, db->sql, db->stmts_count * sizeof db->sql[0]);
    if (db->handle != NULL)
        (void)sqlite3_close_v2(db->handle);
    if (db->path != NULL)
        tide_mem_free(db->mem, db->path, db->path_bytes);
    memset(db, 0, sizeof *db);
}

tide_status tide_db_statements(tide_db *db, const char *const *sql, size_t count, tide_error *err)
{
    TIDE_ASSERT(db->stmts == NULL);
    db->stmts_count = count;
    db->stmts = tide_mem_array(db->mem, count, sizeof db->stmts[0]);
    db->sql = tide_mem_array(db->mem, count, sizeof db->sql[0]);
    if (db->stmts == NULL || db->sql == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "%s: no memory for statements", db->path);
    memcpy(db->sql, sql, count * sizeof sql[0]);
    return TIDE_OK;
}

sqlite3_stmt *tide_db_prepare(tide_db *db, size_t number)
{
    TIDE_ASSERT(number < db->stmts_count && db->sql[number] != NULL);
    const int code = sqlite3_prepare_v3(db->handle, db->sql[number], -1, SQLITE_PREPARE_PERSISTENT,
                                        &db->stmts[number], NULL);
    if (code != SQLITE_OK)
        db->unprepared = code;
    return db->stmts[number];
}

/* The code of sqlite3_step(), or why the statement could not be prepared (DB4). */
static int step(tide_db *db, sqlite3_stmt *stmt)
{
    return stmt != NULL ? sqlite3_step(stmt) : db->unprepared;
}

static const char *text_of(sqlite3_stmt *stmt)
{
    return stmt != NULL ? sqlite3_sql(stmt) : "prepare a statement";
}

tide_status tide_db_exec(tide_db *db, const char *sql, tide_error *err)
{
    int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? TIDE_OK : tide_db_failed(db, code, sql, err);
}

tide_status tide_db_number(tide_db *db, const char *sql, int64_t *number_out, tide_error *err)
{
    tide_auto_prepared *stmt = NULL;
    int code = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    if (code != SQLITE_OK)
        return tide_db_failed(db, code, sql, err);
    code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        *number_out = sqlite3_column_int64(stmt, 0);
    else
        TIDE_TRY(code == SQLITE_DONE ? tide_error_set(err, TIDE_NOT_FOUND, "%s: no row", sql)
                                     : tide_db_failed(db, code, sql, err));
    return TIDE_OK;
}

tide_status tide_db_quick_check(tide_db *db, tide_buf *problems, tide_error *err)
{
    tide_auto_prepared *stmt = NULL;
    int code = sqlite3_prepare_v2(db->handle, "PRAGMA quick_check(20)", -1, &stmt, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(stmt);
        if (code != SQLITE_ROW)
            break;
        const char *line = (const char *)sqlite3_column_text(stmt, 0);
        if (line != NULL && strcmp(line, "ok") != 0)
            (void)tide_buf_print(problems, "file: %s\n", line);
    }
    return code == SQLITE_DONE ? TIDE_OK : tide_db_failed(db, code, "check the file", err);
}

tide_status tide_db_step(tide_db *db, sqlite3_stmt *stmt, bool *row_out, tide_error *err)
{
    int code = step(db, stmt);
    if (code == SQLITE_ROW) {
        *row_out = true;
        return TIDE_OK;
    }
    tide_status rc = TIDE_OK;
    if (code != SQLITE_DONE)
        rc = tide_db_failed(db, code, text_of(stmt), err);
    else
        *row_out = false;
    (void)sqlite3_reset(stmt);
    return rc;
}

sqlite3_stmt *tide_db_ask_with(tide_db *db, const tide_value *values, size_t count)
{
    sqlite3_stmt *stmt = tide_db_stmt(db, (size_t)values[0].number);
    for (int i = 1; i < (int)count; i++) {
        const tide_text text = values[i].text;
        if (values[i].type == TIDE_VALUE_NUMBER)
            (void)sqlite3_bind_int64(stmt, i, values[i].number);
        else if (values[i].type == TIDE_VALUE_TEXT)
            tide_bind_text(stmt, i, text);
        else if (values[i].type == TIDE_VALUE_BLOB)
            (void)sqlite3_bind_blob64(stmt, i, text.bytes == 0 ? "" : text.data, text.bytes,
                                      SQLITE_STATIC);
        else
            (void)sqlite3_bind_null(stmt, i);
    }
    return stmt;
}

tide_status tide_db_do_with(tide_db *db, tide_error *err, const tide_value *values, size_t count)
{
    return tide_db_run(db, tide_db_ask_with(db, values, count), err);
}

tide_status tide_db_run(tide_db *db, sqlite3_stmt *stmt, tide_error *err)
{
    int code = step(db, stmt);
    TIDE_ASSERT(code != SQLITE_ROW);
    tide_status rc = TIDE_OK;
    if (code != SQLITE_DONE)
        rc = tide_db_failed(db, code, text_of(stmt), err);
    (void)sqlite3_reset(stmt);
    return rc;
}

tide_status tide_db_try(tide_db *db, sqlite3_stmt *stmt, bool *conflict_out, tide_error *err)
{
    int code = step(db, stmt);
    TIDE_ASSERT(code != SQLITE_ROW);
    *conflict_out = code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY;
    tide_status rc = TIDE_OK;
    if (code != SQLITE_DONE && !*conflict_out)
        rc = tide_db_failed(db, code, text_of(stmt), err);
    (void)sqlite3_reset(stmt);
    return rc;
}

void tide_column_copy(sqlite3_stmt *stmt, int at, char *room, size_t room_bytes)
{
    TIDE_ASSERT(room_bytes > 0);
    tide_text text = tide_column_text(stmt, at);
    size_t bytes = text.bytes < room_bytes - 1 ? text.bytes : room_bytes - 1;
    if (bytes > 0)
        memcpy(room, text.data, bytes);
    room[bytes] = '\0';
}
