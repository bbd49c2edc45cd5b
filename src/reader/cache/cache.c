#include "reader/cache/inside.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BUSY_MS = 5000, VACUUM_PAGES = 2000 };

static const char tag[] = "Signature: 8a477f597d28d172789f06886806bc55\n"
                          "# This directory holds copies that tidemark can fetch again.\n"
                          "# https://bford.info/cachedir/\n";

/* ---- files ---- */

/* An account is the name of a file: nothing that leads elsewhere is one. */
static tide_status path_of(const char *dir, const char *account, char out[TIDE_CACHE_PATH_BYTES],
                           tide_error *err)
{
    if (account[0] == '.' || account[0] == '\0' || strchr(account, '/') != NULL ||
        (size_t)snprintf(out, TIDE_CACHE_PATH_BYTES, "%s/%s.db", dir, account) >=
            TIDE_CACHE_PATH_BYTES - 8)
        return tide_error_set(err, TIDE_INVALID, "there can be no cache of \"%.100s\"", account);
    return TIDE_OK;
}

static tide_status files_remove(tide_world *world, const char *path, tide_error *err)
{
    static const char *const ends[] = {"-wal", "-shm", ""};
    char file[TIDE_CACHE_PATH_BYTES + 8];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        (void)snprintf(file, sizeof file, "%s%s", path, ends[i]);
        const tide_status rc = tide_file_remove(world, file, err);
        if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
            return rc;
    }
    return TIDE_OK;
}

tide_status tide_cache_exists(tide_world *world, const char *dir, const char *account,
                              bool *exists_out, tide_error *err)
{
    char path[TIDE_CACHE_PATH_BYTES];
    TIDE_TRY(path_of(dir, account, path, err));
    return tide_db_exists(path, tide_world_vfs(world), exists_out, err);
}

tide_status tide_cache_remove(tide_world *world, const char *dir, const char *account,
                              tide_error *err)
{
    char path[TIDE_CACHE_PATH_BYTES];
    TIDE_TRY(path_of(dir, account, path, err));
    return files_remove(world, path, err);
}

/* K13: programs that make backups know this file. */
static tide_status dir_prepare(tide_world *world, const char *dir, tide_error *err)
{
    char path[TIDE_CACHE_PATH_BYTES];
    tide_auto_buf there = tide_buf_heap(4096);
    TIDE_TRY(tide_dir_make(world, dir, err));
    if ((size_t)snprintf(path, sizeof path, "%s/CACHEDIR.TAG", dir) >= sizeof path)
        return tide_error_set(err, TIDE_INVALID, "the path is too long: %.100s", dir);
    if (tide_file_read(world, path, 4096, &there, NULL) == TIDE_OK)
        return TIDE_OK;
    return tide_file_replace(world, path, TIDE_TEXT(tag), 0644, err);
}

/* ---- opening ---- */

static tide_status db_open(tide_cache *cache, bool read_only, tide_error *err)
{
    const struct tide_db_options options = {.path = cache->path,
                                            .vfs = tide_world_vfs(cache->world),
                                            .read_only = read_only,
                                            .must_exist = read_only,
                                            .busy_timeout_ms = BUSY_MS};
    uint32_t version = 0;
    TIDE_TRY(tide_db_open(&options, cache->mem, &cache->db, err));
    tide_status rc = tide_migrate_look(&cache->db, &tide_cache_schema, &version, err);
    if (rc == TIDE_OK && version > 0 && version != tide_cache_schema.steps_count)
        rc = tide_error_set(err, TIDE_INVALID, "the cache is of an earlier version");
    if (rc == TIDE_OK && read_only && version == 0)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "the cache is being made");
    if (rc == TIDE_OK && !read_only && version == 0) /* before its first table */
        rc = tide_db_exec(&cache->db, "PRAGMA auto_vacuum = INCREMENTAL", err);
    if (rc == TIDE_OK && !read_only)
        rc = tide_db_wal(&cache->db, err);
    if (rc == TIDE_OK && !read_only)
        rc = tide_migrate(&cache->db, &tide_cache_schema, version, err);
    if (rc != TIDE_OK)
        tide_db_close(&cache->db);
    return rc;
}

static tide_status open_to_read(tide_cache *cache, tide_error *err)
{
    bool exists = false;
    TIDE_TRY(tide_db_exists(cache->path, tide_world_vfs(cache->world), &exists, err));
    if (!exists)
        return tide_error_set(err, TIDE_NOT_FOUND, "nothing of this mailbox is cached");
    const tide_status rc = db_open(cache, true, err);
    /* What cannot be read is deleted by the next job that writes. */
    return rc == TIDE_CORRUPT || rc == TIDE_NEWER || rc == TIDE_INVALID ? TIDE_NOT_FOUND : rc;
}

static tide_status open_to_write(tide_cache *cache, const char *dir, tide_error *err)
{
    TIDE_TRY(dir_prepare(cache->world, dir, err));
    tide_status rc = db_open(cache, false, err);
    if (rc != TIDE_CORRUPT && rc != TIDE_NEWER && rc != TIDE_INVALID)
        return rc;
    TIDE_TRY(files_remove(cache->world, cache->path, err));
    return db_open(cache, false, err);
}

tide_status tide_cache_open(const struct tide_cache_options *options, tide_mem *mem,
                            tide_cache **cache_out, tide_error *err)
{
    tide_cache *cache = tide_mem_new(mem, sizeof *cache);
    if (cache == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a cache");
    cache->mem = mem;
    cache->world = options->world;
    cache->read_only = options->read_only;
    tide_status rc = path_of(options->dir, options->account, cache->path, err);
    if (rc == TIDE_OK)
        rc =
            options->read_only ? open_to_read(cache, err) : open_to_write(cache, options->dir, err);
    if (rc != TIDE_OK) {
        tide_cache_close(cache);
        return rc;
    }
    cache->rows = (tide_rows){.sqlite = cache->db.handle, .kept = &cache->kept};
    *cache_out = cache;
    return TIDE_OK;
}

void tide_cache_close(tide_cache *cache)
{
    if (cache == NULL)
        return;
    TIDE_ASSERT(!cache->in_tx);
    tide_rows_kept_done(&cache->kept);
    tide_db_close(&cache->db);
    tide_packer_free(cache->packer);
    tide_mem_free(cache->mem, cache, sizeof *cache);
}

bool tide_cache_moved(tide_cache *cache)
{
    int moved = 0;
    return sqlite3_file_control(cache->db.handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved) ==
               SQLITE_OK &&
           moved != 0;
}

/* ---- transactions ---- */

tide_status tide_cache_begin(tide_cache *cache, tide_error *err)
{
    TIDE_ASSERT(!cache->read_only);
    TIDE_ASSERT(!cache->in_tx);
    const tide_status rc = tide_db_exec(&cache->db, "BEGIN IMMEDIATE", err);
    cache->in_tx = rc == TIDE_OK;
    return rc;
}

tide_status tide_cache_end(tide_cache *cache, tide_status rc, tide_error *err)
{
    TIDE_ASSERT(cache->in_tx);
    if (rc == TIDE_OK)
        rc = tide_db_exec(&cache->db, "COMMIT", err);
    /* SQLite rolls back by itself after some failures. */
    if (rc != TIDE_OK && !sqlite3_get_autocommit(cache->db.handle))
        (void)tide_db_exec(&cache->db, "ROLLBACK", NULL);
    cache->in_tx = false;
    return rc;
}

/* ---- values ---- */

tide_status tide_cache_set(tide_cache *cache, const char *name, tide_text value, tide_error *err)
{
    return tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                        "INSERT INTO value (name, value) VALUES (?1, ?2)"
                        " ON CONFLICT (name) DO UPDATE SET value = ?2",
                        name, value);
}

tide_status tide_cache_set_u64(tide_cache *cache, const char *name, uint64_t value, tide_error *err)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    return tide_cache_set(cache, name, tide_text_of(text), err);
}

tide_status tide_cache_get(tide_cache *cache, const char *name, char *out, size_t out_bytes,
                           tide_error *err)
{
    const tide_status rc = tide_rows_copy(cache->rows, TIDE_CACHE_WHAT, out, out_bytes, err,
                                          "SELECT value FROM value WHERE name = ?1", name);
    if (rc == TIDE_NOT_FOUND)
        out[0] = '\0';
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

tide_status tide_cache_get_u64(tide_cache *cache, const char *name, uint64_t *value_out,
                               tide_error *err)
{
    char text[24];
    TIDE_TRY(tide_cache_get(cache, name, text, sizeof text, err));
    if (!tide_text_to_u64(tide_text_of(text), value_out))
        *value_out = 0;
    return TIDE_OK;
}

int tide_history_compare(tide_text a, tide_text b)
{
    if (a.bytes != b.bytes)
        return a.bytes < b.bytes ? -1 : 1;
    return a.bytes == 0 ? 0 : memcmp(a.data, b.data, a.bytes);
}
