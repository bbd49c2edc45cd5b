/* find.c - lookups other than by id: content, conversations, labels. */
#include "mail/archive/inside.h"
#include "base/check.h"

tide_status tide_archive_has(tide_archive *archive, const uint8_t hash[TIDE_CONTENT_HASH_BYTES],
                             bool *has_out, tide_error *err)
{
    bool has = false;
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    for (size_t left = archive->reads.count; rc == TIDE_OK && !has && left > 0; left--) {
        struct tide_shard *shard = archive->reads.list[left - 1];
        rc = tide_shards_open(&archive->reads, shard, err);
        if (rc == TIDE_NOT_FOUND) { /* not completely created (H3) */
            rc = TIDE_OK;
            continue;
        }
        if (rc != TIDE_OK)
            break;
        sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_HASH);
        (void)sqlite3_bind_blob(row, 1, hash, TIDE_CONTENT_HASH_BYTES, SQLITE_STATIC);
        rc = tide_db_step(&shard->db, row, &has, err);
        tide_db_end(row);
    }
    tide_archive_turn_drop(archive);
    if (rc == TIDE_OK)
        *has_out = has;
    return rc;
}

/* ---- conversations -------------------------------------------------------------------- */

/* The next message in a shard; drops the turn while `visit` runs. */
static tide_status thread_next(tide_archive *archive, size_t at, tide_text thread_id, int64_t after,
                               bool *there_out, struct tide_stored *stored, tide_error *err)
{
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    *there_out = false;
    struct tide_shard *shard = archive->reads.list[at];
    rc = tide_shards_open(&archive->reads, shard, err);
    if (rc == TIDE_OK) {
        sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_THREAD);
        tide_bind_text(row, 1, thread_id);
        (void)sqlite3_bind_int64(row, 2, after);
        rc = tide_db_step(&shard->db, row, there_out, err);
        if (rc == TIDE_OK && *there_out)
            tide_shard_stored(shard, row, stored);
        tide_db_end(row);
    }
    tide_archive_turn_drop(archive);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

tide_status tide_archive_thread(tide_archive *archive, tide_text thread_id,
                                bool (*visit)(const struct tide_stored *stored, void *arg),
                                void *arg, tide_error *err)
{
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_shards_look(&archive->reads, err);
    const size_t count = archive->reads.count;
    tide_archive_turn_drop(archive);
    /* Years in order; parts of a year one after the other, which is the order of time except for
     * the few late messages. */
    bool go_on = true;
    for (size_t i = 0; rc == TIDE_OK && go_on && i < count; i++) {
        bool there = true;
        for (int64_t after = -1; rc == TIDE_OK && go_on && there;) {
            struct tide_stored stored;
            rc = thread_next(archive, i, thread_id, after, &there, &stored, err);
            if (rc != TIDE_OK || !there)
                break;
            after = stored.rowid;
            go_on = visit(&stored, arg);
        }
    }
    return rc;
}

/* ---- labels --------------------------------------------------------------------------- */

/* Visits all rows of a bound statement. */
static tide_status label_walk(struct tide_shard *shard, sqlite3_stmt *row, tide_label_visit *visit,
                              void *arg, tide_error *err)
{
    bool there = false;
    tide_status rc = tide_db_step(&shard->db, row, &there, err);
    while (rc == TIDE_OK && there) {
        const struct tide_label_row label = {.id = tide_column_text(row, 0),
                                             .name = tide_column_text(row, 1),
                                             .type = tide_column_text(row, 2)};
        visit(&label, arg);
        rc = tide_db_step(&shard->db, row, &there, err);
    }
    tide_db_end(row);
    return rc;
}

tide_status tide_archive_label_rows(tide_archive *archive, const struct tide_stored *stored,
                                    tide_label_visit *visit, void *arg, tide_error *err)
{
    struct tide_shard *shard = NULL;
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_archive_reads_open(archive, stored->shard, &shard, err);
    if (rc == TIDE_OK) {
        sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_LABEL_ROWS);
        (void)sqlite3_bind_int64(row, 1, stored->rowid);
        rc = label_walk(shard, row, visit, arg, err);
    }
    tide_archive_turn_drop(archive);
    return rc;
}

tide_status tide_archive_labels_all(tide_archive *archive, tide_label_visit *visit, void *arg,
                                    tide_error *err)
{
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_shards_look(&archive->reads, err);
    for (size_t i = 0; rc == TIDE_OK && i < archive->reads.count; i++) {
        struct tide_shard *shard = archive->reads.list[i];
        rc = tide_shards_open(&archive->reads, shard, err);
        if (rc == TIDE_OK)
            rc =
                label_walk(shard, tide_db_stmt(&shard->db, TIDE_SHARD_LABELS_ALL), visit, arg, err);
        else if (rc == TIDE_NOT_FOUND)
            rc = TIDE_OK; /* not completely created (H3) */
    }
    tide_archive_turn_drop(archive);
    return rc;
}

/* ---- gone ----------------------------------------------------------------------------- */

tide_status tide_archive_gone_ids(tide_archive *archive, uint32_t shard,
                                  void (*visit)(const char *gmail_id, void *arg), void *arg,
                                  tide_error *err)
{
    struct tide_shard *found = NULL;
    bool there = false;
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_archive_reads_open(archive, shard, &found, err);
    if (rc == TIDE_OK) {
        sqlite3_stmt *row = tide_db_stmt(&found->db, TIDE_SHARD_GONE_IDS);
        while ((rc = tide_db_step(&found->db, row, &there, err)) == TIDE_OK && there) {
            char id[TIDE_GMAIL_ID_BYTES_MAX + 1];
            tide_column_copy(row, 0, id, sizeof id);
            visit(id, arg);
        }
        tide_db_end(row);
    }
    tide_archive_turn_drop(archive);
    return rc;
}
