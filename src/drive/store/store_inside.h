/* store_inside.h - what the files of the store share. */
#ifndef TIDE_DRIVE_STORE_STORE_INSIDE_H
#define TIDE_DRIVE_STORE_STORE_INSIDE_H

#include "drive/store/store.h"

#define TIDE_DRIVE_ROWS "the rows of a drive"
/* Items that are missing here and not deleted online, because something here could not be read (plan.h
 * DPL6); those that wait for consent are told with these. */
#define TIDE_DRIVE_HIDDEN                                                                          \
    "drive_@_local AS g JOIN drive_@_base AS b ON b.row = g.row WHERE g.state = 4 AND EXISTS"      \
    " (SELECT 1 FROM drive_@_local AS u WHERE u.state = 5) AND NOT EXISTS"                         \
    " (SELECT 1 FROM drive_@_deletion AS d WHERE d.item = b.item)"

static inline tide_value tide_drive_qxh_value(const struct tide_drive_content *content)
{
    return content->has_qxh ? tide_value_bytes(content->qxh, sizeof content->qxh)
                            : tide_value_or_null(TIDE_TEXT_NONE);
}
static inline tide_value tide_drive_strong_value(const struct tide_drive_content *content)
{
    return content->has_strong ? tide_value_bytes(content->strong, sizeof content->strong)
                               : tide_value_or_null(TIDE_TEXT_NONE);
}
static inline tide_value tide_drive_bytes_value(tide_text text) /* a name: any bytes */
{
    return tide_value_bytes(text.bytes == 0 ? "" : text.data, text.bytes);
}
/* Raises `changed` if any of `rows` was written (DST7). */
tide_status tide_drive_changed(tide_rows db, uint64_t rows, tide_error *err);
/* Counts a transfer of a file, or a copy that a conflict made (S11); holds the item if it loops. */
tide_status tide_drive_note_transfer(tide_rows db, uint64_t item, uint64_t row,
                                     tide_drive_verb verb, uint64_t now_ms, tide_error *err);
tide_status tide_drive_note_copy(tide_rows db, uint64_t item, tide_text name, uint64_t now_ms,
                                 tide_error *err);
/* Reads hashes of the right length; any other length is no hash. */
void tide_drive_content_read(const tide_rows_stmt *stmt, int bytes_at, int qxh_at, int strong_at,
                             struct tide_drive_content *content_out);

#endif
