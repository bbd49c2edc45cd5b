#include "assistant/store/inside.h"

#include "base/check.h"

#include <inttypes.h>

#define WHAT TIDE_ASSISTANT_WHAT

tide_status tide_assistant_draft_read(const tide_rows_stmt *stmt,
                                      struct tide_assistant_draft *draft, tide_error *err)
{
    const int64_t state = tide_rows_get_i64(stmt, 3);
    tide_rows_get_copy(stmt, 0, draft->token, sizeof draft->token);
    draft->account = tide_rows_get_u32(stmt, 1);
    tide_rows_get_copy(stmt, 2, draft->thread_id, sizeof draft->thread_id);
    tide_rows_get_copy(stmt, 4, draft->draft_id, sizeof draft->draft_id);
    tide_rows_get_copy(stmt, 5, draft->message_id, sizeof draft->message_id);
    draft->made_ms = tide_rows_get_u64(stmt, 6);
    draft->begun_ms = tide_rows_get_u64(stmt, 7);
    /* Callers index tables by it: the other half of what the statements below write. */
    if (state < TIDE_ASSISTANT_DRAFT_MAKING || state > TIDE_ASSISTANT_DRAFT_GONE)
        return tide_error_set(err, TIDE_CORRUPT,
                              "draft %.60s of thread %.60s has the state %" PRId64
                              ", which is none of a draft",
                              draft->token, draft->thread_id, state);
    draft->state = (tide_assistant_draft_state)state;
    return TIDE_OK;
}

tide_status tide_assistant_draft_stale(tide_rows db, uint32_t account, const char *thread_id,
                                       tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "UPDATE assistant_draft SET state = 2"
                        " WHERE account = ?1 AND thread_id = ?2 AND state < 2",
                        account, thread_id);
}

tide_status tide_assistant_draft_begin(tide_rows db, uint32_t account, const char *thread_id,
                                       const char *token, uint64_t now_ms, tide_error *err)
{
    uint64_t known = 0;
    TIDE_ASSERT(token[0] != '\0');
    TIDE_TRY(tide_rows_number(db, WHAT, &known, err,
                              "SELECT count(*) FROM assistant_draft WHERE token = ?1", token));
    if (known > 0)
        return TIDE_OK;
    /* One that was being made may exist: it is looked for by its token before it is forgotten. */
    TIDE_TRY(tide_assistant_draft_stale(db, account, thread_id, err));
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO assistant_draft(token, account, thread_id, state, draft_id,"
                        " message_id, begun_ms, made_ms) VALUES(?1, ?2, ?3, 0, '', '', ?4, 0)",
                        token, account, thread_id, now_ms);
}

tide_status tide_assistant_draft_named(tide_rows db, const char *token, const char *draft_id,
                                       const char *message_id, uint64_t now_ms, tide_error *err)
{
    TIDE_ASSERT(draft_id[0] != '\0');
    return tide_rows_do(db, WHAT, err,
                        "UPDATE assistant_draft SET draft_id = ?2, message_id = ?3, made_ms = ?4"
                        " WHERE token = ?1",
                        token, draft_id, message_id, now_ms);
}

tide_status tide_assistant_draft_known(tide_rows db, uint32_t account, const char *thread_id,
                                       const char *draft_id, bool *known_out, tide_error *err)
{
    uint64_t count = 0;
    TIDE_TRY(tide_rows_number(db, WHAT, &count, err,
                              "SELECT count(*) FROM assistant_draft WHERE account = ?1"
                              " AND thread_id = ?2 AND draft_id = ?3",
                              account, thread_id, draft_id));
    *known_out = count > 0;
    return TIDE_OK;
}

tide_status tide_assistant_draft_made(tide_rows db, const char *token, const char *draft_id,
                                      const char *message_id, uint64_t now_ms, tide_error *err)
{
    uint64_t state = 0;
    TIDE_ASSERT(draft_id[0] != '\0');
    const tide_status rc = tide_rows_number(
        db, WHAT, &state, err, "SELECT state FROM assistant_draft WHERE token = ?1", token);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "no draft was begun with the token %.60s", token);
    TIDE_TRY(rc);
    TIDE_TRY(tide_rows_do(db, WHAT, err,
                          "UPDATE assistant_draft SET draft_id = ?2, message_id = ?3,"
                          " made_ms = CASE WHEN made_ms = 0 THEN ?4 ELSE made_ms END,"
                          " state = CASE WHEN state = 0 THEN 1 ELSE state END WHERE token = ?1",
                          token, draft_id, message_id, now_ms));
    return state < TIDE_ASSISTANT_DRAFT_STALE
               ? TIDE_OK
               : tide_error_set(err, TIDE_SUPERSEDED,
                                "the draft %.60s became stale while it was made", token);
}

tide_status tide_assistant_draft_gone(tide_rows db, const char *token, tide_error *err)
{
    return tide_rows_do(db, WHAT, err, "UPDATE assistant_draft SET state = 3 WHERE token = ?1",
                        token);
}

tide_status tide_assistant_draft_get(tide_rows db, uint32_t account, const char *thread_id,
                                     tide_assistant_draft_state state,
                                     struct tide_assistant_draft *draft_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc = tide_rows_first(db, WHAT, &stmt, err,
                                           TIDE_ASSISTANT_DRAFT_COLUMNS
                                           " WHERE account = ?1 AND thread_id = ?2 AND state = ?3"
                                           " ORDER BY begun_ms, token LIMIT 1",
                                           account, thread_id, (int)state);
    return rc == TIDE_OK ? tide_assistant_draft_read(&stmt, draft_out, err) : rc;
}

tide_status tide_assistant_drafts_left(tide_rows db, uint32_t account, uint64_t until_ms,
                                       size_t count,
                                       void (*visit)(const char *thread_id, void *arg), void *arg,
                                       tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(db, WHAT, &stmt, err,
                                   "SELECT DISTINCT thread_id FROM assistant_draft"
                                   " WHERE account = ?1 AND state IN (0, 2) AND begun_ms <= ?2"
                                   " ORDER BY thread_id LIMIT ?3",
                                   account, until_ms, (uint64_t)count);
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_assistant_text_of(&stmt, 0), arg);
    return rc;
}
