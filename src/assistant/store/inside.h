/* inside.h - shared by the files of the store. */
#ifndef TIDE_ASSISTANT_STORE_INSIDE_H
#define TIDE_ASSISTANT_STORE_INSIDE_H

#include "assistant/store/store.h"

#define TIDE_ASSISTANT_WHAT "the assistant's rows"

/* The columns of a record, of tables e and d, and the tables they are of. */
#define TIDE_ASSISTANT_EMAIL_COLUMNS                                                               \
    "SELECT e.id, e.account, e.thread_id, e.message_id, e.sender, e.subject, e.category,"          \
    " e.confidence, e.language, e.style, e.reasoning, e.status, e.messages, e.reworks,"            \
    " e.created_ms, e.updated_ms, coalesce(d.draft_id, ''), coalesce(d.made_ms, 0)"                \
    " FROM assistant_email e LEFT JOIN assistant_draft d ON d.account = e.account"                 \
    " AND d.thread_id = e.thread_id AND d.state = 1"
void tide_assistant_email_read(const tide_rows_stmt *stmt, struct tide_assistant_email *email);

#define TIDE_ASSISTANT_CALL_COLUMNS                                                                \
    "SELECT id, account, thread_id, key, kind, model, system, prompt, job, begun_ms, ended_ms,"    \
    " answer, error, tokens_in, tokens_out, latency_ms FROM assistant_call"
/* The same without its texts, which may be megabytes: for lists. */
#define TIDE_ASSISTANT_CALL_HEAD                                                                   \
    "SELECT id, account, thread_id, key, kind, model, '', '', job, begun_ms, ended_ms,"            \
    " '', error, tokens_in, tokens_out, latency_ms FROM assistant_call"
/* A text column; terminated on both databases. */
static inline const char *tide_assistant_text_of(const tide_rows_stmt *stmt, int at)
{
    const tide_text text = tide_rows_get_text(stmt, at);
    return text.bytes > 0 ? text.data : "";
}

/* Borrowed from the statement's row. */
void tide_assistant_call_read(const tide_rows_stmt *stmt, struct tide_assistant_call *call);

#define TIDE_ASSISTANT_RUN_COLUMNS                                                                 \
    "SELECT id, account, thread_id, message_id, key, profile, rule, status, tools, iterations,"    \
    " final, error, begun_ms, ended_ms FROM assistant_run"
#define TIDE_ASSISTANT_RUN_HEAD                                                                    \
    "SELECT id, account, thread_id, message_id, key, profile, rule, status, '', iterations,"       \
    " '', error, begun_ms, ended_ms FROM assistant_run"
void tide_assistant_run_read(const tide_rows_stmt *stmt, struct tide_assistant_run *run);

#define TIDE_ASSISTANT_DRAFT_COLUMNS                                                               \
    "SELECT token, account, thread_id, state, draft_id, message_id, made_ms, begun_ms"             \
    " FROM assistant_draft"
/* TIDE_CORRUPT: its state is none of ours. */
tide_status tide_assistant_draft_read(const tide_rows_stmt *stmt,
                                      struct tide_assistant_draft *draft, tide_error *err);

#endif
