/* find.c - lookups other than by id: content, conversations, labels. */
#include "mail/archive/inside.h"
#include "base/check.h"

tide_status tide_archive_has(tide_archive *archive, const uint8_t hash[TIDE_CONTENT_HASH_BYTES],
                             bool *has_out, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    bool has = false;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         !has && tide_reader_next(reader, TIDE_NEWEST_FIRST, &shard, &rc, err);) {
        sqlite3_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_HASH,
                                        tide_value_bytes(hash, TIDE_CONTENT_HASH_BYTES));
        rc = tide_db_step(&shard->db, row, &has, err);
        tide_db_end(row);
    }
    if (rc == TIDE_OK)
        *has_out = has;
    return rc;
}

/* ---- conversations -------------------------------------------------------------------- */

/* The next message after a row; no statement stays open, because `visit` may take long. */
static tide_status thread_next(struct tide_shard *shard, tide_text thread_id, bool *there_out,
                               struct tide_stored *stored, tide_error *err)
{
    tide_auto_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_THREAD, thread_id, stored->rowid);
    TIDE_TRY(tide_db_step(&shard->db, row, there_out, err));
    if (*there_out)
        tide_shard_stored(shard, row, stored);
    return TIDE_OK;
}

tide_status tide_archive_thread(tide_archive *archive, tide_text thread_id,
                                bool (*visit)(const struct tide_stored *stored, void *arg),
                                void *arg, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    /* Years in order; parts of a year one after the other, which is the order of time except for
     * the few late messages. */
    bool go_on = true;
    for (struct tide_shard *shard = NULL;
         go_on && tide_reader_next(reader, TIDE_OLDEST_FIRST, &shard, &rc, err);) {
        struct tide_stored stored = {.rowid = -1};
        for (bool there = true; rc == TIDE_OK && go_on && there;) {
            rc = thread_next(shard, thread_id, &there, &stored, err);
            if (rc == TIDE_OK && there)
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
    tide_status rc = TIDE_OK;
    while (tide_db_next(&shard->db, row, &rc, err)) {
        const struct tide_label_row label = {.id = tide_column_text(row, 0),
                                             .name = tide_column_text(row, 1),
                                             .type = tide_column_text(row, 2)};
        visit(&label, arg);
    }
    return rc;
}

tide_status tide_archive_label_rows(tide_archive *archive, const struct tide_stored *stored,
                                    tide_label_visit *visit, void *arg, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    struct tide_shard *shard = NULL;
    TIDE_TRY(tide_reader_take_at(archive, stored->shard, &reader, &shard, err));
    sqlite3_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_LABEL_ROWS, stored->rowid);
    return label_walk(shard, row, visit, arg, err);
}

tide_status tide_archive_labels_all(tide_archive *archive, tide_label_visit *visit, void *arg,
                                    tide_error *err)
{
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         tide_reader_next(reader, TIDE_OLDEST_FIRST, &shard, &rc, err);)
        rc = label_walk(shard, tide_db_stmt(&shard->db, TIDE_SHARD_LABELS_ALL), visit, arg, err);
    return rc;
}

static tide_status label_sums_in(struct tide_shard *shard,
                                 void (*visit)(const struct tide_label_sums *sums, void *arg),
                                 void *arg, tide_error *err)
{
    tide_status rc = TIDE_OK;
    tide_auto_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_LABEL_SUMS);
    while (tide_db_next(&shard->db, row, &rc, err)) {
        const struct tide_label_sums sums = {.label = {.id = tide_column_text(row, 0),
                                                       .name = tide_column_text(row, 1),
                                                       .type = tide_column_text(row, 2)},
                                             .messages = tide_column_u64(row, 3),
                                             .bytes = tide_column_u64(row, 4),
                                             .in_gmail = tide_column_u64(row, 5),
                                             .in_gmail_bytes = tide_column_u64(row, 6),
                                             .unread = tide_column_u64(row, 7),
                                             .oldest_ms = sqlite3_column_int64(row, 8),
                                             .newest_ms = sqlite3_column_int64(row, 9)};
        visit(&sums, arg);
    }
    return rc;
}

tide_status tide_archive_label_sums(tide_archive *archive,
                                    void (*visit)(const struct tide_label_sums *sums, void *arg),
                                    void *arg, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         tide_reader_next(reader, TIDE_OLDEST_FIRST, &shard, &rc, err);)
        rc = label_sums_in(shard, visit, arg, err);
    return rc;
}

struct labeled_walk {
    tide_text label;
    const struct tide_labeled *after;
    bool (*visit)(const struct tide_labeled *labeled, void *arg);
    void *arg;
    bool stopped;
};

static tide_status labeled_in(struct tide_shard *shard, struct labeled_walk *walk, tide_error *err)
{
    const struct tide_labeled *after = walk->after;
    const int64_t from = after != NULL && after->shard == shard->key ? after->rowid : -1;
    tide_auto_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_LABELED, walk->label, from);
    tide_status rc = TIDE_OK;
    while (!walk->stopped && tide_db_next(&shard->db, row, &rc, err)) {
        struct tide_labeled labeled = {.shard = shard->key,
                                       .rowid = sqlite3_column_int64(row, 0),
                                       .internal_ms = sqlite3_column_int64(row, 2)};
        tide_column_copy(row, 1, labeled.gmail_id, sizeof labeled.gmail_id);
        tide_column_copy(row, 3, labeled.history_id, sizeof labeled.history_id);
        walk->stopped = !walk->visit(&labeled, walk->arg);
    }
    return rc;
}

tide_status tide_archive_labeled(tide_archive *archive, tide_text label,
                                 const struct tide_labeled *after,
                                 bool (*visit)(const struct tide_labeled *labeled, void *arg),
                                 void *arg, tide_error *err)
{
    struct labeled_walk walk = {.label = label, .after = after, .visit = visit, .arg = arg};
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         !walk.stopped && tide_reader_next(reader, TIDE_OLDEST_FIRST, &shard, &rc, err);)
        if (after == NULL || shard->key >= after->shard)
            rc = labeled_in(shard, &walk, err);
    return rc;
}

/* ---- gone ----------------------------------------------------------------------------- */

tide_status tide_archive_gone_ids(tide_archive *archive, uint32_t shard,
                                  void (*visit)(const char *gmail_id, void *arg), void *arg,
                                  tide_error *err)
{
    tide_auto_reader *reader = NULL;
    struct tide_shard *found = NULL;
    tide_status rc = tide_reader_take_at(archive, shard, &reader, &found, err);
    if (rc == TIDE_OK) {
        sqlite3_stmt *row = tide_db_stmt(&found->db, TIDE_SHARD_GONE_IDS);
        while (tide_db_next(&found->db, row, &rc, err)) {
            char id[TIDE_GMAIL_ID_BYTES_MAX + 1];
            tide_column_copy(row, 0, id, sizeof id);
            visit(id, arg);
        }
    }
    return rc;
}
