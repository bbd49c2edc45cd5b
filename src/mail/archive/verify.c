/* verify.c - reads everything again and checks it (ARC2). */
#include "mail/archive/inside.h"
#include "base/check.h"

#include <assert.h>
#include <stdio.h>

/* The number of inconsistencies in a shard's row and in the order of its rows. */
static const char wrong_sql[] =
    "SELECT (messages != (SELECT count(*) FROM message))"
    " + (raw_bytes != (SELECT coalesce(sum(bytes), 0) FROM message))"
    " + (SELECT count(*) FROM message WHERE id - (internal_ms - shard.start_ms) / 125"
    " NOT BETWEEN 0 AND shard.late)"
    " FROM shard";
static_assert(TIDE_SHARD_UNIT_MS == 125, "the number in wrong_sql");

struct verifying {
    struct tide_reader *reader;
    uint32_t sample; /* one message in this many */
    void (*damaged)(const struct tide_damage *damage, void *arg);
    void *arg;
    uint64_t seen;
    uint64_t checked;
    tide_buf raw;
    tide_status rc; /* why it stopped; not damage */
    tide_error *err;
};

static void report(struct verifying *verifying, const char *shard, const char *gmail_id,
                   const char *what)
{
    struct tide_damage damage = {.shard = shard};
    (void)snprintf(damage.gmail_id, sizeof damage.gmail_id, "%s", gmail_id);
    (void)snprintf(damage.what, sizeof damage.what, "%.*s", (int)sizeof damage.what - 1, what);
    verifying->damaged(&damage, verifying->arg);
}

/* Damage is reported and the walk continues; lack of memory or a stopped world ends it. */
static bool is_damage(tide_status rc)
{
    return rc == TIDE_CORRUPT || rc == TIDE_IO || rc == TIDE_INVALID || rc == TIDE_NEWER;
}

static bool check_message(struct verifying *verifying, const char *shard,
                          const struct tide_stored *stored)
{
    tide_error err = {0};
    tide_buf_clear(&verifying->raw);
    tide_status rc = tide_reader_raw(verifying->reader, stored, &verifying->raw, &err);
    verifying->checked += rc == TIDE_OK;
    if (rc == TIDE_OK && verifying->raw.bytes != stored->bytes)
        report(verifying, shard, stored->gmail_id, "its length differs from its row");
    else if (is_damage(rc))
        report(verifying, shard, stored->gmail_id, err.text);
    else if (rc != TIDE_OK) {
        verifying->rc = rc;
        if (verifying->err != NULL)
            *verifying->err = err;
        return false;
    }
    return true;
}

/* Reads one page: messages from row *next on, or replaced contents from the *next-th on. */
static tide_status page_read(struct verifying *verifying, struct tide_shard *shard, bool replaced,
                             int64_t *next, struct tide_stored *page, size_t room,
                             size_t *count_out, tide_error *err)
{
    *count_out = 0;
    TIDE_TRY(tide_shards_open(&verifying->reader->shards, shard, err));
    tide_auto_stmt *row = tide_db_ask(&shard->db, replaced ? TIDE_SHARD_REPLACED : TIDE_SHARD_WALK,
                                      *next, INT64_MAX / 2, (sqlite3_int64)room);
    if (!replaced) {
        (void)sqlite3_bind_int64(row, 4, INT64_MIN);
        (void)sqlite3_bind_int64(row, 5, INT64_MAX);
    }
    tide_status rc = TIDE_OK;
    while (*count_out < room && tide_db_next(&shard->db, row, &rc, err))
        tide_shard_stored(shard, row, &page[(*count_out)++]);
    if (*count_out > 0)
        *next = replaced ? *next + (int64_t)*count_out : page[*count_out - 1].rowid + 1;
    return rc;
}

/* SQLite's own check, and the numbers in the shard's row (ARC4, ARC5). */
static tide_status check_file(struct verifying *verifying, struct tide_shard *shard,
                              tide_error *err)
{
    int64_t wrong = 0;
    tide_auto_buf problems = tide_buf_in(verifying->raw.mem, 8 << 10);
    TIDE_TRY(tide_shards_open(&verifying->reader->shards, shard, err));
    TIDE_TRY(tide_db_quick_check(&shard->db, &problems, err));
    TIDE_TRY(tide_db_number(&shard->db, wrong_sql, &wrong, err));
    if (problems.bytes > 0)
        report(verifying, shard->name, "", tide_buf_cstr(&problems));
    if (wrong != 0)
        report(verifying, shard->name, "", "its counts or the order of its rows are wrong");
    return TIDE_OK;
}

static tide_status check_rows(struct verifying *verifying, struct tide_shard *shard, bool replaced,
                              tide_error *err)
{
    enum { PAGE = 64 };
    struct tide_stored page[PAGE];
    size_t count = 0;
    int64_t next = 0;
    tide_status rc = TIDE_OK;
    do {
        rc = page_read(verifying, shard, replaced, &next, page, PAGE, &count, err);
        for (size_t i = 0; i < count; i++) {
            if (verifying->sample > 1 && verifying->seen++ % verifying->sample != 0)
                continue;
            if (!check_message(verifying, shard->name, &page[i]))
                return verifying->rc;
        }
    } while (rc == TIDE_OK && count == PAGE);
    return rc;
}

static tide_status check_shard(struct verifying *verifying, struct tide_shard *shard,
                               tide_error *err)
{
    tide_status rc = verifying->sample <= 1 ? check_file(verifying, shard, err) : TIDE_OK;
    if (rc == TIDE_CORRUPT) { /* its messages may still be read */
        report(verifying, shard->name, "", err->text);
        rc = TIDE_OK;
    }
    if (rc == TIDE_OK)
        rc = check_rows(verifying, shard, false, err);
    return rc == TIDE_OK ? check_rows(verifying, shard, true, err) : rc;
}

tide_status tide_archive_check(tide_archive *archive,
                               void (*visit)(const char *shard, tide_status rc, const char *why,
                                             void *arg),
                               void *arg, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         rc == TIDE_OK &&
         (shard = tide_shards_next(&reader->shards, TIDE_OLDEST_FIRST, shard)) != NULL;) {
        tide_buf problems;
        tide_error own = {TIDE_OK, 0, ""};
        tide_buf_init(&problems, archive->mem, 8 << 10);
        rc = tide_shards_open(&reader->shards, shard, &own);
        if (rc == TIDE_OK)
            rc = tide_db_quick_check(&shard->db, &problems, &own);
        if (rc == TIDE_CORRUPT || (rc == TIDE_OK && problems.bytes > 0))
            visit(shard->name, TIDE_CORRUPT, rc == TIDE_OK ? tide_buf_cstr(&problems) : own.text,
                  arg);
        else if (rc != TIDE_OK && rc != TIDE_NOT_FOUND && err != NULL)
            *err = own;
        rc = rc == TIDE_CORRUPT || rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
        tide_buf_done(&problems);
    }
    return rc;
}

tide_status tide_archive_verify(tide_archive *archive, uint32_t sample,
                                void (*damaged)(const struct tide_damage *damage, void *arg),
                                void *arg, uint64_t *checked_out, tide_error *err)
{
    TIDE_ASSERT(damaged != NULL);
    struct verifying verifying = {.sample = sample, .damaged = damaged, .arg = arg, .err = err};
    tide_buf_init(&verifying.raw, archive->mem, TIDE_MESSAGE_BYTES_MAX);
    tide_status rc = tide_reader_take_all(archive, &verifying.reader, err);
    for (struct tide_shard *shard = NULL;
         rc == TIDE_OK &&
         (shard = tide_shards_next(&verifying.reader->shards, TIDE_OLDEST_FIRST, shard)) != NULL;) {
        tide_error own = {0};
        rc = check_shard(&verifying, shard, &own);
        if (is_damage(rc) || (rc == TIDE_NOT_FOUND && shard->broken[0] != '\0')) {
            report(&verifying, shard->name, "", own.text); /* all other code skips it (SHD5) */
            rc = TIDE_OK;
        } else if (rc == TIDE_NOT_FOUND) {
            rc = TIDE_OK; /* not completely created (SHD3): it is empty */
        } else if (rc != TIDE_OK && verifying.rc == TIDE_OK && err != NULL) {
            *err = own;
        }
    }
    tide_reader_drop(verifying.reader);
    tide_buf_done(&verifying.raw);
    if (rc == TIDE_OK && checked_out != NULL)
        *checked_out = verifying.checked;
    return rc;
}
