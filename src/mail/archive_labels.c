/* archive_labels.c - what labels are called, for showing. */
#include "mail/archive_inside.h"

static tide_status names_of(struct tide_shard *shard,
                            void (*visit)(const char *id, const char *name, void *arg), void *arg,
                            tide_error *err)
{
    sqlite3_stmt *row = NULL;
    int code = sqlite3_prepare_v2(
        shard->db.handle, "SELECT label, name FROM label WHERE name IS NOT NULL", -1, &row, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(row);
        if (code == SQLITE_ROW)
            visit((const char *)sqlite3_column_text(row, 0),
                  (const char *)sqlite3_column_text(row, 1), arg);
    }
    (void)sqlite3_finalize(row);
    return code == SQLITE_DONE ? TIDE_OK : tide_db_failed(&shard->db, code, "read the labels", err);
}

tide_status tide_archive_label_names(tide_archive *archive,
                                     void (*visit)(const char *id, const char *name, void *arg),
                                     void *arg, tide_error *err)
{
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_shards_look(&archive->reads, err);
    for (size_t i = 0; rc == TIDE_OK && i < archive->reads.count; i++) {
        struct tide_shard *shard = archive->reads.list[i];
        rc = tide_shards_open(&archive->reads, shard, err);
        if (rc == TIDE_OK)
            rc = names_of(shard, visit, arg, err);
        if (rc == TIDE_NOT_FOUND)
            rc = TIDE_OK; /* not wholly made (H3) */
    }
    tide_archive_turn_drop(archive);
    return rc;
}
