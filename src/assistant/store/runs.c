#include "assistant/store/inside.h"

#include "base/check.h"

#define WHAT TIDE_ASSISTANT_WHAT

/* ---- runs ---- */

void tide_assistant_run_read(const tide_rows_stmt *stmt, struct tide_assistant_run *run)
{
    *run = (struct tide_assistant_run){
        .id = tide_rows_get_u64(stmt, 0),
        .account = tide_rows_get_u32(stmt, 1),
        .thread_id = tide_assistant_text_of(stmt, 2),
        .message_id = tide_assistant_text_of(stmt, 3),
        .key = tide_assistant_text_of(stmt, 4),
        .profile = tide_assistant_text_of(stmt, 5),
        .rule = tide_assistant_text_of(stmt, 6),
        .status = tide_assistant_text_of(stmt, 7),
        .tools = tide_rows_get_text(stmt, 8),
        .iterations = tide_rows_get_u32(stmt, 9),
        .final = tide_rows_get_text(stmt, 10),
        .error = tide_assistant_text_of(stmt, 11),
        .begun_ms = tide_rows_get_u64(stmt, 12),
        .ended_ms = tide_rows_get_u64(stmt, 13),
    };
}

tide_status tide_assistant_run_begin(tide_rows db, const struct tide_assistant_run *run,
                                     uint64_t *id_out, tide_error *err)
{
    TIDE_ASSERT(run->key[0] != '\0');
    TIDE_TRY(tide_rows_do(
        db, WHAT, err,
        "INSERT INTO assistant_run(account, thread_id, message_id, key, profile, rule, status,"
        " tools, iterations, final, error, begun_ms, ended_ms, state)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, 'running', '[]', 0, '', '', ?7, 0, '')"
        " ON CONFLICT(key) DO NOTHING",
        run->account, run->thread_id, run->message_id, run->key, run->profile, run->rule,
        run->begun_ms));
    return tide_rows_number(db, WHAT, id_out, err, "SELECT id FROM assistant_run WHERE key = ?1",
                            run->key);
}

tide_status tide_assistant_run_put(tide_rows db, const struct tide_assistant_run *run,
                                   tide_error *err)
{
    uint64_t changed = 0;
    TIDE_TRY(tide_rows_change(db, WHAT, &changed, err,
                              "UPDATE assistant_run SET status = ?2, tools = ?3, iterations = ?4,"
                              " final = ?5, error = ?6, ended_ms = ?7 WHERE id = ?1",
                              run->id, run->status, run->tools, run->iterations, run->final,
                              run->error == NULL ? "" : run->error, run->ended_ms));
    return changed == 1 ? TIDE_OK
                        : tide_error_set(err, TIDE_NOT_FOUND, "there is no run %llu",
                                         (unsigned long long)run->id);
}

tide_status tide_assistant_run_get(tide_rows db, const char *key,
                                   void (*visit)(const struct tide_assistant_run *run, void *arg),
                                   void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_assistant_run run;
    TIDE_TRY(
        tide_rows_first(db, WHAT, &stmt, err, TIDE_ASSISTANT_RUN_COLUMNS " WHERE key = ?1", key));
    tide_assistant_run_read(&stmt, &run);
    visit(&run, arg);
    return TIDE_OK;
}

tide_status
tide_assistant_runs_open(tide_rows db, uint32_t account, uint64_t until_ms, size_t count,
                         void (*visit)(const char *thread_id, const char *message_id, void *arg),
                         void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(db, WHAT, &stmt, err,
                                   "SELECT thread_id, message_id FROM assistant_run"
                                   " WHERE account = ?1 AND ended_ms = 0 AND begun_ms <= ?2"
                                   " ORDER BY id LIMIT ?3",
                                   account, until_ms, (uint64_t)count);
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_assistant_text_of(&stmt, 0), tide_assistant_text_of(&stmt, 1), arg);
    return rc;
}

/* ---- their states ---- */

tide_status tide_assistant_run_state_put(tide_rows db, uint64_t id, tide_text state,
                                         tide_error *err)
{
    uint64_t changed = 0;
    if (state.bytes > TIDE_ASSISTANT_STATE_BYTES_MAX)
        return tide_error_set(err, TIDE_FULL, "a run of more than %d bytes",
                              TIDE_ASSISTANT_STATE_BYTES_MAX);
    TIDE_TRY(tide_rows_change(db, WHAT, &changed, err,
                              "UPDATE assistant_run SET state = ?2 WHERE id = ?1", id, state));
    return changed == 1 ? TIDE_OK
                        : tide_error_set(err, TIDE_NOT_FOUND, "there is no run %llu",
                                         (unsigned long long)id);
}

tide_status tide_assistant_run_state_get(tide_rows db, uint64_t id, tide_buf *state_out,
                                         tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(
        tide_rows_first(db, WHAT, &stmt, err, "SELECT state FROM assistant_run WHERE id = ?1", id));
    const tide_text state = tide_rows_get_text(&stmt, 0);
    const tide_status rc = tide_buf_add(state_out, state.bytes > 0 ? state.data : "", state.bytes);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no memory for a run");
}

/* ---- replies ---- */

tide_status tide_assistant_reply_get(tide_rows db, uint64_t run,
                                     struct tide_assistant_reply *reply_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(db, WHAT, &stmt, err,
                             "SELECT run, call, message_id, sent_ms FROM assistant_reply"
                             " WHERE run = ?1",
                             run));
    reply_out->run = tide_rows_get_u64(&stmt, 0);
    reply_out->call = tide_rows_get_u32(&stmt, 1);
    tide_rows_get_copy(&stmt, 2, reply_out->message_id, sizeof reply_out->message_id);
    reply_out->sent = tide_rows_get_u64(&stmt, 3) > 0;
    return TIDE_OK;
}

tide_status tide_assistant_reply_begin(tide_rows db, uint32_t account,
                                       struct tide_assistant_reply *reply_io, uint64_t now_ms,
                                       bool *again_out, tide_error *err)
{
    uint64_t changed = 0;
    TIDE_ASSERT(reply_io->run > 0);
    TIDE_ASSERT(reply_io->message_id[0] != '\0');
    TIDE_TRY(tide_rows_change(
        db, WHAT, &changed, err,
        "INSERT INTO assistant_reply(run, account, call, message_id, begun_ms,"
        " sent_ms) VALUES(?1, ?2, ?3, ?4, ?5, 0) ON CONFLICT(run) DO NOTHING",
        reply_io->run, account, (uint32_t)reply_io->call, reply_io->message_id, now_ms));
    *again_out = changed == 0;
    return tide_assistant_reply_get(db, reply_io->run, reply_io, err);
}

tide_status tide_assistant_reply_sent(tide_rows db, uint64_t run, uint64_t now_ms, tide_error *err)
{
    return tide_rows_do(db, WHAT, err, "UPDATE assistant_reply SET sent_ms = ?2 WHERE run = ?1",
                        run, now_ms);
}

tide_status tide_assistant_reply_drop(tide_rows db, uint64_t run, tide_error *err)
{
    return tide_rows_do(db, WHAT, err, "DELETE FROM assistant_reply WHERE run = ?1", run);
}
