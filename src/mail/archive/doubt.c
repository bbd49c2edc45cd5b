/* doubt.c - marks and lists copies that are not exact (ARC6, M19a).
 *
 * A server states the size of a message (Gmail's sizeEstimate) before it sends the bytes.  The size
 * is an estimate: it may count line ends as one byte or as two, and may be that much too large.
 * With lines of sixteen bytes that is a sixteenth; mail has longer ones.  A copy that is even
 * shorter was truncated on its way.  It is stored, because it may be all there is, and marked.
 *
 * Gmail and tidemark-cloud count the bytes of the message.  npm's emulate (seen in 0.11.2) counts
 * the characters of the base64 that it sends, which is a third more: all of its messages would be
 * short.  So a copy is also complete if its base64, with or without padding, has exactly the stated
 * length.  A wider rule would accept copies that lost a quarter. */
#include "base/check.h"
#include "mail/archive/inside.h"

const char *tide_copy_name(tide_copy copy)
{
    static const char *const names[] = {"exact", "held", "short", "damaged"};
    TIDE_ASSERT((size_t)copy < sizeof names / sizeof names[0]);
    return names[copy];
}

static bool is_base64_of(uint64_t said_bytes, uint64_t bytes)
{
    const uint64_t padded = (bytes + 2) / 3 * 4;
    const uint64_t plain = (bytes * 4 + 2) / 3;
    return said_bytes == padded || said_bytes == plain;
}

static bool is_short(uint64_t said_bytes, uint64_t bytes)
{
    return bytes == 0 || (bytes < said_bytes - said_bytes / 16 && !is_base64_of(said_bytes, bytes));
}

bool tide_doubt_is_better(const struct tide_stored *stored, uint64_t said_bytes, uint64_t bytes)
{
    if (!is_short(said_bytes, bytes) || stored->copy == TIDE_COPY_DAMAGED)
        return true;
    return stored->copy == TIDE_COPY_SHORT && bytes > stored->bytes;
}

static tide_status doubt_put(struct tide_shard *shard, int64_t message, tide_copy copy,
                             uint64_t said_bytes, int64_t now_ms, tide_error *err)
{
    return tide_db_do(&shard->db, err, TIDE_SHARD_DOUBT_PUT, message, (int)copy, said_bytes,
                      now_ms);
}

tide_status tide_doubt_new(struct tide_shard *shard, int64_t message, uint64_t said_bytes,
                           uint64_t bytes, int64_t now_ms, tide_error *err)
{
    if (!is_short(said_bytes, bytes))
        return TIDE_OK;
    TIDE_SEEN("archive: a message is shorter than the server said");
    return doubt_put(shard, message, TIDE_COPY_SHORT, said_bytes, now_ms, err);
}

tide_status tide_doubt_again(struct tide_shard *shard, const struct tide_stored *stored,
                             uint64_t said_bytes, uint64_t bytes, int64_t now_ms, tide_error *err)
{
    if (!is_short(said_bytes, bytes))
        return tide_db_do(&shard->db, err, TIDE_SHARD_DOUBT_DROP, stored->rowid);
    if (stored->copy == TIDE_COPY_EXACT)
        return TIDE_OK; /* the stored copy is better, and stays */
    /* So does a held one, which is whole. */
    const tide_copy copy = stored->copy == TIDE_COPY_HELD ? TIDE_COPY_HELD : TIDE_COPY_SHORT;
    TIDE_TRY(doubt_put(shard, stored->rowid, copy, said_bytes, now_ms, err));
    return tide_db_do(&shard->db, err, TIDE_SHARD_DOUBT_TRIED, stored->rowid, now_ms);
}

tide_status tide_doubt_held(struct tide_shard *shard, int64_t message, int64_t now_ms,
                            tide_error *err)
{
    return doubt_put(shard, message, TIDE_COPY_HELD, 0, now_ms, err);
}

tide_status tide_doubt_damaged(struct tide_shard *shard, int64_t message, int64_t now_ms,
                               tide_error *err)
{
    return doubt_put(shard, message, TIDE_COPY_DAMAGED, 0, now_ms, err);
}

/* ---- listing ------------------------------------------------------------------------- */

static tide_status visit_shard(struct tide_shard *shard,
                               bool (*visit)(const struct tide_doubted *doubted, void *arg),
                               void *arg, bool *go_on, tide_error *err)
{
    tide_auto_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_DOUBTED);
    bool there = false;
    TIDE_TRY(tide_db_step(&shard->db, row, &there, err));
    while (there && *go_on) {
        const int copy = sqlite3_column_int(row, 1);
        struct tide_doubted doubted = {
            .copy = copy > 0 && copy < TIDE_COPIES ? (tide_copy)copy : TIDE_COPY_DAMAGED,
            .gone = sqlite3_column_type(row, 2) != SQLITE_NULL,
            .bytes = tide_column_u64(row, 3),
            .said_bytes = tide_column_u64(row, 4),
            .tries = tide_column_u64(row, 5),
            .next_ms = tide_column_u64(row, 6),
        };
        tide_column_copy(row, 0, doubted.gmail_id, sizeof doubted.gmail_id);
        *go_on = visit(&doubted, arg);
        TIDE_TRY(tide_db_step(&shard->db, row, &there, err));
    }
    return TIDE_OK;
}

tide_status tide_archive_doubted(tide_archive *archive,
                                 bool (*visit)(const struct tide_doubted *doubted, void *arg),
                                 void *arg, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    bool go_on = true;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         go_on && tide_reader_next(reader, TIDE_NEWEST_FIRST, &shard, &rc, err);)
        rc = visit_shard(shard, visit, arg, &go_on, err);
    return rc;
}

/* ---- held copies ------------------------------------------------------------------------ */

struct visiting_held {
    const struct tide_held *after;
    uint64_t now_ms;
    bool (*visit)(const struct tide_held *held, void *arg);
    void *arg;
    bool stopped;
};

static tide_status visit_held(struct tide_shard *shard, struct visiting_held *visiting,
                              tide_error *err)
{
    const struct tide_held *after = visiting->after;
    const int64_t before = after != NULL && after->shard == shard->key ? after->rowid : INT64_MAX;
    tide_auto_stmt *row =
        tide_db_ask(&shard->db, TIDE_SHARD_HELD, before, (int64_t)visiting->now_ms);
    bool there = false;
    TIDE_TRY(tide_db_step(&shard->db, row, &there, err));
    while (there && !visiting->stopped) {
        struct tide_held held = {.shard = shard->key, .rowid = sqlite3_column_int64(row, 0)};
        tide_column_copy(row, 1, held.gmail_id, sizeof held.gmail_id);
        visiting->stopped = !visiting->visit(&held, visiting->arg);
        TIDE_TRY(tide_db_step(&shard->db, row, &there, err));
    }
    return TIDE_OK;
}

tide_status tide_archive_held(tide_archive *archive, const struct tide_held *after, uint64_t now_ms,
                              bool (*visit)(const struct tide_held *held, void *arg), void *arg,
                              tide_error *err)
{
    struct visiting_held visiting = {
        .after = after, .now_ms = now_ms, .visit = visit, .arg = arg, .stopped = false};
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         !visiting.stopped && tide_reader_next(reader, TIDE_NEWEST_FIRST, &shard, &rc, err);)
        if (after == NULL || shard->key <= after->shard)
            rc = visit_held(shard, &visiting, err);
    return rc;
}

tide_status tide_archive_some_exact(tide_archive *archive,
                                    char gmail_id_out[TIDE_GMAIL_ID_BYTES_MAX + 1], tide_error *err)
{
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    gmail_id_out[0] = '\0';
    for (struct tide_shard *shard = NULL;
         gmail_id_out[0] == '\0' &&
         tide_reader_next(reader, TIDE_NEWEST_FIRST, &shard, &rc, err);) {
        bool there = false;
        sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_SOME_EXACT);
        rc = tide_db_step(&shard->db, row, &there, err);
        if (rc == TIDE_OK && there)
            tide_column_copy(row, 0, gmail_id_out, TIDE_GMAIL_ID_BYTES_MAX + 1);
        tide_db_end(row);
    }
    return rc;
}

tide_status tide_archive_held_span(tide_archive *archive, int64_t *newest_ms_out,
                                   int64_t *oldest_ms_out, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    int64_t newest_ms = 0;
    int64_t oldest_ms = 0;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         tide_reader_next(reader, TIDE_NEWEST_FIRST, &shard, &rc, err);) {
        bool there = false;
        sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_HELD_SPAN);
        rc = tide_db_step(&shard->db, row, &there, err);
        if (rc == TIDE_OK && there && sqlite3_column_type(row, 0) != SQLITE_NULL) {
            if (newest_ms == 0)
                newest_ms = sqlite3_column_int64(row, 0);
            oldest_ms = sqlite3_column_int64(row, 1);
        }
        tide_db_end(row);
    }
    if (rc == TIDE_OK) {
        *newest_ms_out = newest_ms;
        *oldest_ms_out = oldest_ms;
    }
    return rc;
}

/* Writes nothing where nothing is unused.  Cuts first: they are found by the bodies. */
static tide_status sweep_shard(tide_archive *archive, struct tide_shard *shard, tide_error *err)
{
    sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_UNUSED);
    bool there = false;
    const tide_status rc = tide_db_step(&shard->db, row, &there, err);
    tide_db_end(row);
    if (rc != TIDE_OK || !there)
        return rc;
    TIDE_TRY(tide_writer_begin(archive, shard, err));
    TIDE_TRY(tide_db_do(&shard->db, err, TIDE_SHARD_CUTS_SWEEP));
    return tide_db_do(&shard->db, err, TIDE_SHARD_CONTENT_SWEEP);
}

tide_status tide_archive_sweep(tide_archive *archive, const tide_cancel *cancel, tide_error *err)
{
    return tide_archive_each(archive, sweep_shard, false, cancel, err);
}

/* ---- earlier bytes that no source has --------------------------------------------------- */

/* Deletes the n-th of the earlier bytes if they cannot be read; *there_out false: there are no
 * more. */
static tide_status tidy_one(tide_archive *archive, struct tide_shard *shard, int64_t *at,
                            bool *there_out, tide_error *err)
{
    struct tide_stored stored;
    bool readable = false;
    sqlite3_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_REPLACED, *at, 0, 1);
    tide_status rc = tide_db_step(&shard->db, row, there_out, err);
    if (rc == TIDE_OK && *there_out)
        tide_shard_stored(shard, row, &stored);
    tide_db_end(row);
    if (rc != TIDE_OK || !*there_out)
        return rc;
    rc = tide_shard_content_adds(shard, archive->writer->packer, stored.content, TIDE_TEXT_NONE,
                                 &readable, err);
    if (rc != TIDE_OK || readable) {
        ++*at;
        return rc;
    }
    sqlite3_stmt *stmt = tide_db_stmt(&shard->db, TIDE_SHARD_EARLIER_DROP);
    rc = tide_writer_begin(archive, shard, err);
    (void)sqlite3_bind_int64(stmt, 1, stored.rowid);
    (void)sqlite3_bind_int64(stmt, 2, stored.content);
    return rc == TIDE_OK ? tide_db_run(&shard->db, stmt, err) : rc;
}

static tide_status tidy_shard(tide_archive *archive, struct tide_shard *shard, tide_error *err)
{
    int64_t at = 0;
    for (bool there = true; there;)
        TIDE_TRY(tidy_one(archive, shard, &at, &there, err));
    return TIDE_OK;
}

tide_status tide_archive_tidy(tide_archive *archive, const tide_cancel *cancel, tide_error *err)
{
    return tide_archive_each(archive, tidy_shard, false, cancel, err);
}
