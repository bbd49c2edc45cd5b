/* shards.c - the set of shards that one thread uses. */
#include "mail/archive/shard.h"
#include "base/check.h"

#include <stdio.h>

void tide_shards_init(tide_shards *shards, const struct tide_archive_options *options,
                      tide_mem *mem)
{
    *shards = (tide_shards){
        .mem = mem,
        .world = options->world,
        .dir = options->dir,
        .account = options->account,
        .read_only = options->read_only,
        .bytes_max = options->shard_bytes_max,
        .open_max = TIDE_SHARDS_OPEN_MAX,
        .cache_kib = !options->lean       ? 0
                     : options->read_only ? 256
                                          : 2048,
    };
}

void tide_shards_done(tide_shards *shards)
{
    for (size_t i = 0; i < shards->count; i++) {
        tide_shard_close(shards->list[i]);
        tide_mem_free(shards->mem, shards->list[i], sizeof *shards->list[i]);
    }
    tide_mem_free(shards->mem, shards->list, shards->capacity * sizeof shards->list[0]);
    memset(shards, 0, sizeof *shards);
}

/* The index of a shard with that key, or where it would be inserted. */
static size_t place_of(const tide_shards *shards, uint32_t key)
{
    size_t low = 0;
    size_t high = shards->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (shards->list[middle]->key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct tide_shard *tide_shards_get(tide_shards *shards, uint32_t key)
{
    size_t at = place_of(shards, key);
    return at < shards->count && shards->list[at]->key == key ? shards->list[at] : NULL;
}

struct tide_shard *tide_shards_next(const tide_shards *shards, tide_order order,
                                    const struct tide_shard *shard)
{
    size_t at = order == TIDE_OLDEST_FIRST ? 0 : shards->count;
    if (shard != NULL)
        at = place_of(shards, shard->key) + (order == TIDE_OLDEST_FIRST);
    if (order == TIDE_NEWEST_FIRST)
        at--; /* from 0 to SIZE_MAX, which is no place */
    return at < shards->count ? shards->list[at] : NULL;
}

static tide_status add(tide_shards *shards, int32_t year, uint32_t part,
                       struct tide_shard **shard_out, tide_error *err)
{
    uint32_t key = tide_shard_key(year, part);
    size_t at = place_of(shards, key);
    TIDE_ASSERT(at == shards->count || shards->list[at]->key != key); /* SHD1 */
    if (shards->count == TIDE_ARCHIVE_SHARDS_MAX)
        return tide_error_set(err, TIDE_FULL, "%s: more than %d shards", shards->dir,
                              TIDE_ARCHIVE_SHARDS_MAX);
    if (!tide_mem_grow(shards->mem, (void **)&shards->list, &shards->capacity, shards->count + 1,
                       TIDE_ARCHIVE_SHARDS_MAX, sizeof shards->list[0]))
        return tide_error_set(err, TIDE_NO_MEMORY, "%s: no memory for a shard", shards->dir);
    struct tide_shard *shard = tide_mem_new(shards->mem, sizeof *shard);
    if (shard == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "%s: no memory for a shard", shards->dir);
    shard->key = key;
    shard->year = year;
    shard->part = part;
    shard->start_ms = tide_shard_year_ms(year);
    shard->end_ms = tide_shard_year_ms(year + 1);
    if (part == 1)
        (void)snprintf(shard->name, sizeof shard->name, "%04d", year);
    else
        (void)snprintf(shard->name, sizeof shard->name, "%04d-%u", year, part);
    memmove(shards->list + at + 1, shards->list + at,
            (shards->count - at) * sizeof shards->list[0]);
    shards->list[at] = shard;
    shards->count++;
    *shard_out = shard;
    return TIDE_OK;
}

/* ---- scanning ------------------------------------------------------------------ */

/* "2019.db" or "2019-2.db", exactly as we write them. */
static bool name_read(const char *name, int32_t *year_out, uint32_t *part_out)
{
    size_t bytes = strlen(name);
    if (bytes < 7 || strcmp(name + bytes - 3, ".db") != 0)
        return false;
    uint64_t year = 0;
    uint64_t part = 1;
    if (!tide_text_to_u64((tide_text){name, 4}, &year) || year == 0 || year > TIDE_SHARD_YEAR_MAX)
        return false;
    if (bytes > 7 && (name[4] != '-' || name[5] == '0' ||
                      !tide_text_to_u64((tide_text){name + 5, bytes - 8}, &part) || part < 2 ||
                      part >= TIDE_SHARD_PARTS_MAX))
        return false;
    *year_out = (int32_t)year;
    *part_out = (uint32_t)part;
    return true;
}

struct look {
    tide_shards *shards;
    tide_status rc;
    tide_error *err;
};

static void name_seen(const char *name, void *arg)
{
    struct look *look = arg;
    int32_t year = 0;
    uint32_t part = 0;
    if (look->rc != TIDE_OK || !name_read(name, &year, &part))
        return;
    struct tide_shard *shard = tide_shards_get(look->shards, tide_shard_key(year, part));
    if (shard == NULL)
        look->rc = add(look->shards, year, part, &shard, look->err);
    if (look->rc == TIDE_OK)
        shard->seen = true;
}

static void forget_unseen(tide_shards *shards)
{
    size_t kept = 0;
    for (size_t i = 0; i < shards->count; i++) {
        struct tide_shard *shard = shards->list[i];
        if (!shard->seen)
            tide_shards_close(shards, shard);
        if (shard->seen || shard->open)
            shards->list[kept++] = shard;
        else
            tide_mem_free(shards->mem, shard, sizeof *shard);
    }
    shards->count = kept;
}

tide_status tide_shards_look(tide_shards *shards, tide_error *err)
{
    struct look look = {.shards = shards, .err = err};
    for (size_t i = 0; i < shards->count; i++)
        shards->list[i]->seen = false;
    tide_status rc = tide_dir_list(shards->world, shards->dir, name_seen, &look, err);
    if (rc == TIDE_OK)
        rc = look.rc;
    if (rc == TIDE_OK)
        forget_unseen(shards);
    return rc;
}

/* ---- opening ------------------------------------------------------------------- */

void tide_shards_close(tide_shards *shards, struct tide_shard *shard)
{
    if (!shard->open || shard->pins > 0 || shard->in_tx)
        return;
    tide_shard_close(shard);
    shards->open_count--;
    shards->warm_count -= shard->warm;
    shard->warm = false;
}

/* Makes room for one more (SHD2). */
static void close_oldest(tide_shards *shards)
{
    if (shards->open_count < shards->open_max)
        return;
    struct tide_shard *oldest = NULL;
    for (size_t i = 0; i < shards->count; i++) {
        struct tide_shard *shard = shards->list[i];
        if (shard->open && shard->pins == 0 && !shard->in_tx &&
            (oldest == NULL || shard->used < oldest->used))
            oldest = shard;
    }
    if (oldest != NULL)
        tide_shards_close(shards, oldest);
}

/* A mirror fills one year after the other: cached pages of earlier years would be most of its
 * memory and are not used.  Readers use all shards all the time, and have small caches instead. */
static void warm(tide_shards *shards, struct tide_shard *shard)
{
    if (shard->warm || shards->read_only)
        return;
    shard->warm = true;
    if (++shards->warm_count <= TIDE_SHARDS_WARM_MAX)
        return;
    struct tide_shard *oldest = NULL;
    for (size_t i = 0; i < shards->count; i++) {
        struct tide_shard *other = shards->list[i];
        if (other->warm && !other->in_tx && (oldest == NULL || other->used < oldest->used))
            oldest = other;
    }
    if (oldest == NULL || oldest == shard)
        return; /* all are being written: try again next time */
    (void)sqlite3_db_release_memory(oldest->db.handle);
    oldest->warm = false;
    shards->warm_count--;
}

tide_status tide_shards_pass(const tide_shards *shards, struct tide_shard *shard, tide_status rc,
                             const tide_error *err)
{
    if (!shards->tolerant || (rc != TIDE_CORRUPT && rc != TIDE_INVALID && rc != TIDE_NEWER))
        return rc;
    TIDE_SEEN("shard: a damaged one was passed over");
    shard->broken_rc = rc;
    (void)snprintf(shard->broken, sizeof shard->broken, "%.*s", (int)sizeof shard->broken - 1,
                   err == NULL || err->text[0] == '\0' ? "damaged" : err->text);
    return TIDE_OK;
}

static tide_status open_one(tide_shards *shards, struct tide_shard *shard, tide_error *err)
{
    tide_error own = {TIDE_OK, 0, ""};
    close_oldest(shards);
    const tide_status rc = tide_shard_open(shards, shard, &own);
    if (rc == TIDE_OK)
        shards->open_count++;
    else if (err != NULL)
        *err = own;
    return rc != TIDE_OK && tide_shards_pass(shards, shard, rc, &own) == TIDE_OK ? TIDE_NOT_FOUND
                                                                                 : rc;
}

tide_status tide_shards_open(tide_shards *shards, struct tide_shard *shard, tide_error *err)
{
    shard->used = ++shards->uses;
    if (shards->read_only && shard->pins == 0 && tide_shard_outdated(shard)) {
        tide_shards_close(shards, shard);
        shard->broken[0] = '\0';
    }
    if (shard->broken[0] != '\0')
        return tide_error_set(err, TIDE_NOT_FOUND, "%s", shard->broken);
    if (!shard->open)
        TIDE_TRY(open_one(shards, shard, err));
    warm(shards, shard);
    return TIDE_OK;
}

tide_status tide_shards_make(tide_shards *shards, int32_t year, uint32_t part,
                             struct tide_shard **shard_out, tide_error *err)
{
    TIDE_ASSERT(!shards->read_only);
    struct tide_shard *shard = tide_shards_get(shards, tide_shard_key(year, part));
    if (part >= TIDE_SHARD_PARTS_MAX)
        return tide_error_set(err, TIDE_FULL, "%s: more than %d parts of %d", shards->dir,
                              TIDE_SHARD_PARTS_MAX - 1, year);
    if (shard == NULL)
        TIDE_TRY(add(shards, year, part, &shard, err));
    TIDE_TRY(tide_shards_open(shards, shard, err));
    *shard_out = shard;
    return TIDE_OK;
}
