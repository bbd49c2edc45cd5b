#include "assistant/store/inside.h"

#include "base/check.h"

#define WHAT TIDE_ASSISTANT_WHAT

enum { SHOWN_MS = 60000, KEPT_MS = 3600000 };

tide_status tide_assistant_mark_put(tide_rows db, uint32_t account, const char *message_id,
                                    const char *label_id, uint64_t job, uint64_t now_ms,
                                    tide_error *err)
{
    TIDE_ASSERT(message_id[0] != '\0');
    TIDE_ASSERT(label_id[0] != '\0');
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO assistant_mark(account, message_id, label_id, job, begun_ms,"
                        " done_ms) VALUES(?1, ?2, ?3, ?4, ?5, 0)"
                        " ON CONFLICT(account, message_id, label_id, job) DO NOTHING",
                        account, message_id, label_id, job, now_ms);
}

tide_status tide_assistant_marks_done(tide_rows db, uint32_t account, uint64_t job, uint64_t now_ms,
                                      tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "UPDATE assistant_mark SET done_ms = ?3 WHERE account = ?1 AND job = ?2"
                        " AND done_ms = 0",
                        account, job, now_ms);
}

tide_status tide_assistant_mark_take(tide_rows db, uint32_t account, const char *message_id,
                                     const char *label_id, bool *ours_out, tide_error *err)
{
    uint64_t changed = 0;
    TIDE_TRY(tide_rows_change(db, WHAT, &changed, err,
                              "DELETE FROM assistant_mark WHERE account = ?1 AND message_id = ?2"
                              " AND label_id = ?3 AND job = (SELECT min(job) FROM assistant_mark"
                              " WHERE account = ?1 AND message_id = ?2 AND label_id = ?3)",
                              account, message_id, label_id));
    *ours_out = changed > 0;
    return TIDE_OK;
}

tide_status tide_assistant_mark_open(tide_rows db, uint32_t account, const char *message_id,
                                     const char *label_id, bool *open_out, tide_error *err)
{
    uint64_t count = 0;
    TIDE_TRY(tide_rows_number(db, WHAT, &count, err,
                              "SELECT count(*) FROM assistant_mark WHERE account = ?1"
                              " AND message_id = ?2 AND label_id = ?3 AND done_ms = 0",
                              account, message_id, label_id));
    *open_out = count > 0;
    return TIDE_OK;
}

tide_status tide_assistant_marks_prune(tide_rows db, uint32_t account, uint64_t begun_ms,
                                       bool skipped, tide_error *err)
{
    const uint64_t shown_ms = skipped ? begun_ms : begun_ms > SHOWN_MS ? begun_ms - SHOWN_MS : 0;
    const uint64_t kept_ms = begun_ms > KEPT_MS ? begun_ms - KEPT_MS : 0;
    return tide_rows_do(db, WHAT, err,
                        "DELETE FROM assistant_mark WHERE account = ?1"
                        " AND ((done_ms > 0 AND done_ms < ?2) OR (done_ms = 0 AND begun_ms < ?3))",
                        account, shown_ms, kept_ms);
}
