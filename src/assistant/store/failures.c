#include "assistant/store/inside.h"

#define WHAT TIDE_ASSISTANT_WHAT

enum { DAY_MS = 86400000 };

tide_status tide_assistant_failure_add(tide_rows db, uint32_t account, const char *thread_id,
                                       const char *message_id, uint64_t failed_ms, uint64_t now_ms,
                                       uint32_t *failures_out, bool *more_out, tide_error *err)
{
    struct tide_assistant_failure failure;
    uint64_t changed = 0;
    TIDE_TRY(tide_rows_do(db, WHAT, err,
                          "INSERT INTO assistant_failure(account, thread_id, message_id, failures,"
                          " failed_ms, seen_ms) VALUES(?1, ?2, ?3, 0, 0, 0)"
                          " ON CONFLICT(account, thread_id) DO NOTHING",
                          account, thread_id, message_id));
    TIDE_TRY(tide_rows_change(db, WHAT, &changed, err,
                              "UPDATE assistant_failure SET failures = failures + 1, failed_ms = ?3"
                              " WHERE account = ?1 AND thread_id = ?2 AND failed_ms < ?3"
                              " AND failures < ?4",
                              account, thread_id, failed_ms,
                              (uint64_t)TIDE_ASSISTANT_FAILURES_MAX));
    TIDE_TRY(tide_rows_do(db, WHAT, err,
                          "UPDATE assistant_failure SET seen_ms = ?3"
                          " WHERE account = ?1 AND thread_id = ?2",
                          account, thread_id, now_ms));
    TIDE_TRY(tide_assistant_failure_get(db, account, thread_id, &failure, err));
    *failures_out = failure.failures;
    *more_out = changed > 0;
    return TIDE_OK;
}

tide_status tide_assistant_failure_reset(tide_rows db, uint32_t account, const char *thread_id,
                                         const char *message_id, tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "UPDATE assistant_failure SET failures = 0,"
                        " message_id = CASE WHEN ?3 = '' THEN message_id ELSE ?3 END"
                        " WHERE account = ?1 AND thread_id = ?2",
                        account, thread_id, message_id);
}

tide_status tide_assistant_failure_get(tide_rows db, uint32_t account, const char *thread_id,
                                       struct tide_assistant_failure *failure_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(db, WHAT, &stmt, err,
                             "SELECT message_id, failures FROM assistant_failure"
                             " WHERE account = ?1 AND thread_id = ?2",
                             account, thread_id));
    tide_rows_get_copy(&stmt, 0, failure_out->message_id, sizeof failure_out->message_id);
    failure_out->failures = tide_rows_get_u32(&stmt, 1);
    return TIDE_OK;
}

tide_status tide_assistant_failures_prune(tide_rows db, uint32_t account, uint64_t now_ms,
                                          tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "DELETE FROM assistant_failure WHERE account = ?1 AND seen_ms < ?2"
                        " AND (failures >= ?3 OR seen_ms < ?4)",
                        account, now_ms, (uint64_t)TIDE_ASSISTANT_FAILURES_MAX,
                        now_ms > DAY_MS ? now_ms - DAY_MS : 0);
}

tide_status tide_assistant_failures_drop(tide_rows db, uint32_t account, tide_error *err)
{
    bool there = false; /* a ledger of an earlier version has none until an engine opens it */
    TIDE_TRY(tide_rows_has(db, "assistant_failure", WHAT, &there, err));
    return there ? tide_rows_do(db, WHAT, err, "DELETE FROM assistant_failure WHERE account = ?1",
                                account)
                 : TIDE_OK;
}
