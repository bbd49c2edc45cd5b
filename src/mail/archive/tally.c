/* tally.c - counts messages that are gone, not indexed, or unreadable. */
#include "mail/archive/inside.h"

tide_status tide_archive_tally(tide_archive *archive, struct tide_archive_tally *tally_out,
                               tide_error *err)
{
    struct tide_archive_tally tally = {0};
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_shards_look(&archive->reads, err);
    for (size_t i = 0; rc == TIDE_OK && i < archive->reads.count; i++) {
        struct tide_shard *shard = archive->reads.list[i];
        bool there = false;
        rc = tide_shards_open(&archive->reads, shard, err);
        if (rc == TIDE_NOT_FOUND) { /* not completely created (H3) */
            rc = TIDE_OK;
            continue;
        }
        if (rc != TIDE_OK)
            break;
        sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_TALLY);
        rc = tide_db_step(&shard->db, row, &there, err);
        if (rc == TIDE_OK && there) {
            tally.gone += tide_column_u64(row, 0);
            tally.unindexed += tide_column_u64(row, 1);
            tally.unreadable += tide_column_u64(row, 2);
            tally.partly += tide_column_u64(row, 3);
            for (int copy = TIDE_COPY_HELD; copy < TIDE_COPIES; copy++)
                tally.copies[copy] += tide_column_u64(row, 3 + copy);
        }
        tide_db_end(row);
    }
    tide_archive_turn_drop(archive);
    if (rc == TIDE_OK)
        *tally_out = tally;
    return rc;
}
