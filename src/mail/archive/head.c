#include "mail/archive/head.h"

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
