#include "console/store.h"

#include "base/check.h"
#include "base/encode.h"
#include "console/store_inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    BUSY_MS = 5000, /* to wait for a user's sqlite3 on the same file */
    CACHE_KIB = 32 << 10,
    PATH_BYTES = 4096,
    PAGE_TEXT_BYTES_MAX = 64 << 20,
};

/* ---- opening ---- */

/* "https://www.example.com/" is "https%3A%2F%2Fwww.example.com%2F.db". */
static tide_status path_of(const struct tide_console_store_options *options, char path[PATH_BYTES],
                           tide_error *err)
{
    int used = snprintf(path, PATH_BYTES, "%s/", options->dir);
    for (const char *at = options->site; used > 0 && used < PATH_BYTES - 8 && *at != '\0'; at++) {
        const unsigned char byte = (unsigned char)*at;
        const bool plain = tide_is_plain(*at, at == options->site ? "-_" : "-_.");
        used += snprintf(path + used, (size_t)(PATH_BYTES - used), plain ? "%c" : "%%%02X", byte);
    }
    if (used <= 0 || used >= PATH_BYTES - 8)
        return tide_error_set(err, TIDE_INVALID, "the path of %.100s is too long", options->site);
    memcpy(path + used, ".db", 4);
    return TIDE_OK;
}

static tide_status first_row(tide_console_store *store, tide_error *err)
{
    int64_t count = 0;
    TIDE_TRY(tide_db_number(&store->db, "SELECT count(*) FROM property", &count, err));
    if (count > 0)
        return TIDE_OK;
    tide_auto_prepared *stmt = NULL;
    if (sqlite3_prepare_v2(store->db.handle,
                           "INSERT INTO property(site, made_ms, made_by) VALUES(?1, ?2, ?3)", -1,
                           &stmt, NULL) != SQLITE_OK)
        return tide_db_failed(&store->db, sqlite3_errcode(store->db.handle),
                              "create the file of a site", err);
    tide_bind_text(stmt, 1, tide_text_of(store->site));
    tide_bind_u64(stmt, 2, tide_world_now_unix_ms(store->world));
    tide_bind_text(stmt, 3, TIDE_TEXT("tidemark " TIDE_VERSION));
    return tide_db_run(&store->db, stmt, err);
}

/* A file with the name of another site is rejected. */
static tide_status check_site(tide_console_store *store, tide_error *err)
{
    tide_auto_prepared *stmt = NULL;
    if (sqlite3_prepare_v2(store->db.handle, "SELECT site FROM property", -1, &stmt, NULL) !=
        SQLITE_OK)
        return tide_db_failed(&store->db, sqlite3_errcode(store->db.handle),
                              "read the site of the file", err);
    if (sqlite3_step(stmt) == SQLITE_ROW &&
        strcmp((const char *)sqlite3_column_text(stmt, 0), store->site) != 0)
        return tide_error_set(err, TIDE_INVALID, "%s holds the data of another site: %.200s",
                              store->db.path, (const char *)sqlite3_column_text(stmt, 0));
    return TIDE_OK;
}

static tide_status open_file(tide_console_store *store, const char *path, tide_error *err)
{
    const struct tide_db_options options = {.path = path,
                                            .vfs = tide_world_vfs(store->world),
                                            .read_only = store->read_only,
                                            .must_exist = store->read_only,
                                            .busy_timeout_ms = BUSY_MS,
                                            .cache_kib = CACHE_KIB};
    uint32_t version = 0;
    tide_status rc = tide_db_open(&options, store->mem, &store->db, err);
    if (rc == TIDE_OK)
        rc = tide_migrate_look(&store->db, &tide_console_schema, &version, err);
    if (rc == TIDE_OK && !store->read_only) {
        rc = tide_db_wal(&store->db, err);
        if (rc == TIDE_OK)
            rc = tide_migrate(&store->db, &tide_console_schema, version, err);
        if (rc == TIDE_OK)
            rc = first_row(store, err);
    }
    if (rc == TIDE_OK)
        rc = check_site(store, err);
    const char *sql[TIDE_CONSOLE_SQL];
    memcpy(sql, tide_console_sql, sizeof sql);
    if (store->read_only && version < 2)
        sql[TIDE_CONSOLE_DAYS] = tide_console_sql_days_1;
    if (rc == TIDE_OK)
        rc = tide_db_statements(&store->db, sql,
                                store->read_only ? TIDE_CONSOLE_READ_SQL : TIDE_CONSOLE_SQL, err);
    return rc;
}

tide_status tide_console_store_open(const struct tide_console_store_options *options, tide_mem *mem,
                                    tide_console_store **store_out, tide_error *err)
{
    char path[PATH_BYTES];
    bool exists = false;
    TIDE_TRY(path_of(options, path, err));
    if (options->read_only)
        TIDE_TRY(tide_db_exists(path, tide_world_vfs(options->world), &exists, err));
    if (options->read_only && !exists)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no data of %.200s yet", options->site);
    if (!options->read_only)
        TIDE_TRY(tide_dir_make(options->world, options->dir, err));
    tide_console_store *store = tide_mem_new(mem, sizeof *store);
    if (store == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a store");
    store->mem = mem;
    store->world = options->world;
    store->read_only = options->read_only;
    (void)snprintf(store->site, sizeof store->site, "%s", options->site);
    for (int i = 0; i < TIDE_CONSOLE_NAMED; i++)
        tide_names_init(&store->names[i], tide_world_random_u64(store->world), mem);
    tide_status rc = tide_lock_new(store->world, &store->lock);
    if (rc == TIDE_OK)
        rc = open_file(store, path, err);
    if (rc != TIDE_OK) {
        (void)tide_console_store_close(store, NULL);
        return rc;
    }
    *store_out = store;
    return TIDE_OK;
}

tide_status tide_console_store_close(tide_console_store *store, tide_error *err)
{
    (void)err;
    if (store == NULL)
        return TIDE_OK;
    tide_db_close(&store->db);
    for (int i = 0; i < TIDE_CONSOLE_NAMED; i++)
        tide_names_done(&store->names[i]);
    if (store->lock != NULL)
        tide_lock_free(store->world, store->lock);
    tide_mem_free(store->mem, store, sizeof *store);
    return TIDE_OK;
}

/* ---- series ---- */

static void dimensions_text(uint32_t bits, char out[128])
{
    size_t used = 0;
    out[0] = '\0';
    for (unsigned d = TIDE_SC_QUERY; d < TIDE_SC_DIMENSIONS; d++)
        if ((bits >> d & 1u) != 0)
            used += (size_t)snprintf(out + used, 128 - used, "%s%s", used > 0 ? "," : "",
                                     tide_sc_dimension_name((tide_sc_dimension)d));
}

tide_status tide_console_series(tide_console_store *store, const struct tide_console_set *set,
                                bool make, uint64_t *series_out, tide_error *err)
{
    char dimensions[128];
    bool row = false;
    dimensions_text(set->dimensions, dimensions);
    sqlite3_stmt *find = tide_db_ask(&store->db, TIDE_CONSOLE_SERIES_FIND,
                                     tide_text_of(tide_sc_type_name(set->type)), dimensions);
    TIDE_TRY(tide_db_step(&store->db, find, &row, err));
    *series_out = row ? tide_column_u64(find, 0) : 0;
    tide_db_end(find);
    if (row || !make)
        return TIDE_OK;
    TIDE_TRY(tide_db_do(&store->db, err, TIDE_CONSOLE_SERIES_ADD,
                        tide_text_of(tide_sc_type_name(set->type)), dimensions));
    *series_out = (uint64_t)sqlite3_last_insert_rowid(store->db.handle);
    return TIDE_OK;
}

/* ---- pages ---- */

tide_status tide_console_page_new(tide_console_store *store, tide_console_page **page_out,
                                  tide_error *err)
{
    tide_console_page *page = tide_mem_new(store->mem, sizeof *page);
    if (page == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a page");
    page->mem = store->mem;
    tide_buf_init(&page->texts, store->mem, PAGE_TEXT_BYTES_MAX);
    *page_out = page;
    return TIDE_OK;
}

void tide_console_page_free(tide_console_page *page)
{
    if (page == NULL)
        return;
    tide_buf_done(&page->texts);
    tide_mem_free(page->mem, page->lines, page->capacity * sizeof *page->lines);
    tide_mem_free(page->mem, page, sizeof *page);
}

void tide_console_page_clear(tide_console_page *page)
{
    tide_buf_clear(&page->texts);
    page->count = 0;
}

tide_status tide_console_page_add(tide_console_page *page, const struct tide_sc_row *row)
{
    if (!TIDE_GROW_IN(page->mem, page->lines, page->capacity, page->count + 1, TIDE_SC_ROWS_MAX))
        return TIDE_NO_MEMORY;
    struct tide_console_line *line = &page->lines[page->count];
    *line = (struct tide_console_line){
        .clicks = row->clicks, .impressions = row->impressions, .position = row->position};
    for (unsigned k = 0; k < TIDE_CONSOLE_NAMED; k++) {
        const tide_text key = row->keys[k + TIDE_SC_QUERY];
        line->at[k] = (uint32_t)page->texts.bytes;
        line->bytes[k] = (uint32_t)key.bytes;
        TIDE_TRY(tide_buf_add(&page->texts, key.data, key.bytes));
    }
    page->count++;
    return TIDE_OK;
}
