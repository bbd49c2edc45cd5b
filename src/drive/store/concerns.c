#include "drive/store/concerns.h"

#include "drive/store/store_inside.h"

static tide_status oldest(tide_rows db, struct tide_drive_concerns *concerns, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc =
        tide_rows_first(db, TIDE_DRIVE_ROWS, &stmt, err,
                        "SELECT since_ms, CAST(name AS TEXT) || ': ' || error FROM drive_@_owed"
                        " WHERE loop < 2 AND since_ms > 0 ORDER BY since_ms, item, row LIMIT 1");
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    concerns->oldest_ms = tide_rows_get_u64(&stmt, 0);
    tide_rows_get_copy(&stmt, 1, concerns->oldest, sizeof concerns->oldest);
    return TIDE_OK;
}

tide_status tide_drive_concerns(tide_rows db, uint64_t owed_since,
                                struct tide_drive_concerns *concerns_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_drive_concerns concerns = {.conflicts = 0};
    TIDE_TRY(tide_rows_first(
        db, TIDE_DRIVE_ROWS, &stmt, err,
        "SELECT (SELECT count(*) FROM drive_@_conflict WHERE notice IN (1, 2, 6, 8)),"
        " (SELECT count(*) FROM drive_@_deletion), (SELECT count(*) FROM drive_@_owed WHERE loop"
        " < 2), (SELECT count(*) FROM drive_@_owed WHERE loop < 2 AND bad = 1),"
        " (SELECT count(*) FROM drive_@_owed WHERE loop < 2 AND since_ms BETWEEN 1 AND ?1), "
        "trouble,"
        " (SELECT count(*) FROM " TIDE_DRIVE_HIDDEN " AND g.gone_ms BETWEEN 1 AND ?1)"
        " FROM drive_@_state WHERE id = 1",
        owed_since));
    concerns.conflicts = tide_rows_get_u64(&stmt, 0);
    concerns.deletions = tide_rows_get_u64(&stmt, 1);
    concerns.owed = tide_rows_get_u64(&stmt, 2);
    concerns.bad = tide_rows_get_u64(&stmt, 3);
    concerns.old = tide_rows_get_u64(&stmt, 4);
    tide_rows_get_copy(&stmt, 5, concerns.trouble, sizeof concerns.trouble);
    concerns.hidden = tide_rows_get_u64(&stmt, 6);
    if (concerns.owed > 0)
        TIDE_TRY(oldest(db, &concerns, err));
    *concerns_out = concerns;
    return TIDE_OK;
}

tide_status tide_drive_trouble_set(tide_rows db, const char *text, tide_error *err)
{
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "UPDATE drive_@_state SET trouble = ?1 WHERE id = 1 AND trouble <> ?1",
                        text);
}
