/* tally.c - counts messages that are gone, not indexed, or unreadable. */
#include "mail/archive/inside.h"

tide_status tide_archive_tally(tide_archive *archive, struct tide_archive_tally *tally_out,
                               tide_error *err)
{
    tide_auto_reader *reader = NULL;
    struct tide_archive_tally tally = {0};
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         tide_reader_next(reader, TIDE_OLDEST_FIRST, &shard, &rc, err);) {
        bool there = false;
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
    if (rc == TIDE_OK)
        *tally_out = tally;
    return rc;
}
