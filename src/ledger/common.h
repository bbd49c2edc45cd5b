/* common.h - private to this folder: one statement of an operation that is written once for all
 * stores, over db/rows.h (records.c, read.c). */
#ifndef TIDE_LEDGER_COMMON_H
#define TIDE_LEDGER_COMMON_H

#include "ledger/ops.h"

/* Begins an operation with its statement and values.  The caller ends it in any case. */
#define tide_ledger_ask(ledger, stmt_out, err, ...)                                                \
    tide_ledger_ask_with(ledger, stmt_out, err, TIDE_VALUES(__VA_ARGS__))
tide_status tide_ledger_ask_with(tide_ledger *ledger, tide_rows_stmt *stmt_out, tide_error *err,
                                 const tide_value *values, size_t count);
tide_status tide_ledger_end_rows(tide_ledger *ledger, tide_rows_stmt *stmt, tide_status rc);

#endif
