#include "assistant/store/inside.h"

#include "base/check.h"

#define WHAT TIDE_ASSISTANT_WHAT

void tide_assistant_call_read(const tide_rows_stmt *stmt, struct tide_assistant_call *call)
{
    *call = (struct tide_assistant_call){
        .id = tide_rows_get_u64(stmt, 0),
        .account = tide_rows_get_u32(stmt, 1),
        .thread_id = tide_assistant_text_of(stmt, 2),
        .key = tide_assistant_text_of(stmt, 3),
        .kind = tide_assistant_text_of(stmt, 4),
        .model = tide_assistant_text_of(stmt, 5),
        .system = tide_rows_get_text(stmt, 6),
        .prompt = tide_rows_get_text(stmt, 7),
        .job = tide_rows_get_u64(stmt, 8),
        .begun_ms = tide_rows_get_u64(stmt, 9),
        .ended_ms = tide_rows_get_u64(stmt, 10),
        .ended = tide_rows_get_u64(stmt, 10) > 0,
        .answer = tide_rows_get_text(stmt, 11),
        .error = tide_assistant_text_of(stmt, 12),
        .tokens_in = tide_rows_get_u64(stmt, 13),
        .tokens_out = tide_rows_get_u64(stmt, 14),
        .latency_ms = tide_rows_get_u64(stmt, 15),
    };
}

tide_status tide_assistant_call_begin(tide_rows db, const struct tide_assistant_call *call,
                                      uint64_t *id_out, bool *ended_out, tide_error *err)
{
    TIDE_ASSERT(call->key[0] != '\0');
    if (call->system.bytes > TIDE_ASSISTANT_TEXT_BYTES_MAX ||
        call->prompt.bytes > TIDE_ASSISTANT_TALK_BYTES_MAX)
        return tide_error_set(err, TIDE_FULL, "a prompt of more than %d bytes",
                              TIDE_ASSISTANT_TALK_BYTES_MAX);
    TIDE_TRY(tide_rows_do(
        db, WHAT, err,
        "INSERT INTO assistant_call(account, thread_id, key, kind, model, system, prompt, job,"
        " begun_ms, ended_ms, answer, error, tokens_in, tokens_out, latency_ms)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, '', '', 0, 0, 0)"
        " ON CONFLICT(key) DO NOTHING",
        call->account, call->thread_id, call->key, call->kind, call->model, call->system,
        call->prompt, call->job, call->begun_ms));
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(db, WHAT, &stmt, err,
                             "SELECT id, ended_ms FROM assistant_call WHERE key = ?1", call->key));
    *id_out = tide_rows_get_u64(&stmt, 0);
    *ended_out = tide_rows_get_u64(&stmt, 1) > 0;
    return TIDE_OK;
}

tide_status tide_assistant_call_end(tide_rows db, const struct tide_assistant_call *call,
                                    tide_error *err)
{
    uint64_t changed = 0;
    TIDE_ASSERT(call->ended_ms > 0);
    if (call->answer.bytes > TIDE_ASSISTANT_TALK_BYTES_MAX)
        return tide_error_set(err, TIDE_FULL, "an answer of more than %d bytes",
                              TIDE_ASSISTANT_TALK_BYTES_MAX);
    TIDE_TRY(tide_rows_change(
        db, WHAT, &changed, err,
        "UPDATE assistant_call SET ended_ms = ?2, answer = ?3, error = ?4, tokens_in = ?5,"
        " tokens_out = ?6, latency_ms = ?7 WHERE id = ?1",
        call->id, call->ended_ms, call->answer, call->error == NULL ? "" : call->error,
        call->tokens_in, call->tokens_out, call->latency_ms));
    return changed == 1 ? TIDE_OK
                        : tide_error_set(err, TIDE_NOT_FOUND, "there is no model call %llu",
                                         (unsigned long long)call->id);
}

tide_status tide_assistant_call_get(tide_rows db, const char *key,
                                    void (*visit)(const struct tide_assistant_call *call,
                                                  void *arg),
                                    void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_assistant_call call;
    TIDE_TRY(
        tide_rows_first(db, WHAT, &stmt, err, TIDE_ASSISTANT_CALL_COLUMNS " WHERE key = ?1", key));
    tide_assistant_call_read(&stmt, &call);
    visit(&call, arg);
    return TIDE_OK;
}

tide_status tide_assistant_call_open(tide_rows db, uint32_t account, const char *thread_id,
                                     uint64_t since_ms, bool *open_out, tide_error *err)
{
    uint64_t count = 0;
    TIDE_TRY(tide_rows_number(db, WHAT, &count, err,
                              "SELECT count(*) FROM assistant_call WHERE account = ?1"
                              " AND thread_id = ?2 AND ended_ms = 0 AND begun_ms >= ?3",
                              account, thread_id, since_ms));
    *open_out = count > 0;
    return TIDE_OK;
}
