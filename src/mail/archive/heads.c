/* heads.c - headers as the index read them: of one message, and who the messages of a shard are from and
 * to. */
#include "db/rows.h"
#include "mail/archive/inside.h"

#define WHAT "the archive"

tide_status tide_archive_head(tide_archive *archive, const struct tide_stored *stored,
                              void (*visit)(const struct tide_head *head, void *arg), void *arg,
                              tide_error *err)
{
    tide_auto_reader *reader = NULL;
    struct tide_shard *shard = NULL;
    TIDE_TRY(tide_reader_take_at(archive, stored->shard, &reader, &shard, err));
    const tide_rows rows = {.sqlite = shard->db.handle};
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc =
        tide_rows_first(rows, WHAT, &stmt, err,
                        "SELECT \"from\", \"to\", cc, subject, message_id, files FROM head"
                        " WHERE id = ?1",
                        stored->rowid);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    const struct tide_head head = {.from = tide_rows_get_text(&stmt, 0),
                                   .to = tide_rows_get_text(&stmt, 1),
                                   .cc = tide_rows_get_text(&stmt, 2),
                                   .subject = tide_rows_get_text(&stmt, 3),
                                   .message_id = tide_rows_get_text(&stmt, 4),
                                   .files = tide_rows_get_u64(&stmt, 5)};
    visit(&head, arg);
    return TIDE_OK;
}

static bool has(tide_text labels, const char *label)
{
    while (labels.bytes > 0)
        if (tide_text_equal(tide_text_word(&labels), tide_text_of(label)))
            return true;
    return false;
}

static void parties_read(sqlite3_stmt *row, struct tide_parties *parties)
{
    const tide_text labels = tide_column_text(row, 7);
    *parties = (struct tide_parties){.rowid = sqlite3_column_int64(row, 0),
                                     .internal_ms = sqlite3_column_int64(row, 1),
                                     .ready = sqlite3_column_int64(row, 2) >= 2,
                                     .sent = has(labels, "SENT"),
                                     .draft = has(labels, "DRAFT"),
                                     .junk = has(labels, "SPAM") || has(labels, "TRASH"),
                                     .from = tide_column_text(row, 3),
                                     .to = tide_column_text(row, 4),
                                     .cc = tide_column_text(row, 5),
                                     .bcc = tide_column_text(row, 6)};
}

tide_status tide_archive_parties(tide_archive *archive, uint32_t shard, int64_t rowid,
                                 bool (*visit)(const struct tide_parties *parties, void *arg),
                                 void *arg, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    struct tide_shard *found = NULL;
    tide_status rc = TIDE_OK;
    TIDE_TRY(tide_reader_take_at(archive, shard, &reader, &found, err));
    tide_auto_stmt *row = tide_db_ask(&found->db, TIDE_SHARD_HEADS, rowid);
    bool on = true;
    while (on && tide_db_next(&found->db, row, &rc, err)) {
        struct tide_parties parties;
        parties_read(row, &parties);
        on = visit(&parties, arg);
    }
    return rc;
}

tide_status tide_archive_ready(tide_archive *archive, uint32_t shard, uint64_t *count_out,
                               tide_error *err)
{
    tide_auto_reader *reader = NULL;
    struct tide_shard *found = NULL;
    bool there = false;
    TIDE_TRY(tide_reader_take_at(archive, shard, &reader, &found, err));
    tide_auto_stmt *row = tide_db_stmt(&found->db, TIDE_SHARD_READY);
    TIDE_TRY(tide_db_step(&found->db, row, &there, err));
    if (there)
        *count_out = tide_column_u64(row, 0);
    return TIDE_OK;
}
