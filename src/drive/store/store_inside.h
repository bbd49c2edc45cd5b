/* store_inside.h - what the files of the store share. */
#ifndef TIDE_DRIVE_STORE_STORE_INSIDE_H
#define TIDE_DRIVE_STORE_STORE_INSIDE_H

#include "drive/store/store.h"

#define TIDE_DRIVE_ROWS "the rows of a drive"

/* A local row that was here and is proved absent; rows.h has no word for it, because the planner
 * sees such a row as `local_gone` of its baseline. */
enum { TIDE_DRIVE_LOCAL_GONE = 4 };

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
/* Reads hashes of the right length; any other length is no hash. */
void tide_drive_content_read(const tide_rows_stmt *stmt, int bytes_at, int qxh_at, int strong_at,
                             struct tide_drive_content *content_out);

#endif
