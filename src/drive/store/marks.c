#include "drive/store/marks.h"

#include "drive/store/store_inside.h"

/* Of statements in triggers.  The upsert clause holds in whatever statement a trigger runs for; OR IGNORE
 * would not: the outer statement's own way with conflicts goes before it. */
#define ONCE                " ON CONFLICT DO NOTHING; "
#define UNMARK              "DELETE FROM drive_@_mark WHERE class = "
#define UNMARK_ONLINE(item) UNMARK TIDE_DRIVE_MARK_ONLINE " AND number = " item "; "
#define UNMARK_HERE(row)    UNMARK TIDE_DRIVE_MARK_HERE " AND number = " row "; "
#define MARK                "INSERT INTO drive_@_mark SELECT "
#define MARK_BASE(where)    MARK TIDE_DRIVE_MARK_BASE ", item FROM drive_@_base WHERE " where ONCE
/* As long as no baseline has it. */
#define MARK_ONLINE(item)                                                                          \
    MARK TIDE_DRIVE_MARK_ONLINE ", item FROM drive_@_remote WHERE item = " item                    \
                                " AND NOT EXISTS (SELECT 1 FROM drive_@_base WHERE item = " item   \
                                ")" ONCE
#define MARK_HERE(row)                                                                             \
    MARK TIDE_DRIVE_MARK_HERE ", row FROM drive_@_local WHERE row = " row                          \
                              " AND NOT EXISTS (SELECT 1 FROM drive_@_base WHERE row = " row       \
                              ")" ONCE
/* Children are compared with the row of their folder. */
#define MARK_CHILDREN(item) MARK_BASE("parent = " item)
#define ON(name, when, does)                                                                       \
    "CREATE TRIGGER IF NOT EXISTS drive_@_" name " AFTER " when " BEGIN " does "END;"

/* clang-format off */
const char tide_drive_mark_tables[] =
    "CREATE TABLE IF NOT EXISTS drive_@_mark("
    " class INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY(class, number)"
    ") STRICT, WITHOUT ROWID;"

    ON("remote_new", "INSERT ON drive_@_remote",
       MARK_BASE("item = new.item") MARK_ONLINE("new.item"))
    ON("remote_written",
       "UPDATE OF parent, name, kind, state, bytes, qxh, ctag, mtime_s, aside ON drive_@_remote",
       MARK_BASE("item = new.item"))
    ON("remote_removed", "DELETE ON drive_@_remote",
       MARK_BASE("item = old.item") UNMARK_ONLINE("old.item"))

    ON("local_new", "INSERT ON drive_@_local", MARK_BASE("row = new.row") MARK_HERE("new.row"))
    ON("local_written",
       "UPDATE OF parent, name, kind, state, bytes, strong, dev, inode, aside ON drive_@_local",
       MARK_BASE("row = new.row"))
    ON("local_removed", "DELETE ON drive_@_local",
       MARK_BASE("row = old.row") UNMARK_HERE("old.row"))

    ON("base_new", "INSERT ON drive_@_base",
       MARK_BASE("item = new.item") MARK_CHILDREN("new.item")
       UNMARK_ONLINE("new.item") UNMARK_HERE("new.row"))
    ON("base_written", "UPDATE ON drive_@_base", MARK_BASE("item = new.item"))
    ON("base_row_written", "UPDATE OF row ON drive_@_base WHEN old.row <> new.row",
       MARK_CHILDREN("new.item") UNMARK_HERE("new.row") MARK_HERE("old.row"))
    ON("base_removed", "DELETE ON drive_@_base",
       UNMARK TIDE_DRIVE_MARK_BASE " AND number = old.item; " MARK_CHILDREN("old.item")
       MARK_ONLINE("old.item") MARK_HERE("old.row"));
/* clang-format on */

tide_status tide_drive_unmark(tide_rows db, const uint64_t *items, size_t count, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_prepare(db,
                               UNMARK TIDE_DRIVE_MARK_BASE
                               " AND number = ?1 AND NOT EXISTS (SELECT 1 FROM drive_@_base AS"
                               " b" TIDE_DRIVE_SIDES " WHERE b.item = ?1 AND " TIDE_DRIVE_DIFFERS
                               ")",
                               TIDE_DRIVE_ROWS, &stmt, err));
    for (size_t i = 0; i < count; i++) {
        bool row = false;
        tide_rows_u64(&stmt, 1, items[i]);
        TIDE_TRY(tide_rows_step(&stmt, &row, err));
        tide_rows_again(&stmt);
    }
    return TIDE_OK;
}
