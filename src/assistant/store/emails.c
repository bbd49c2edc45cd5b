#include "assistant/store/inside.h"

#include "base/check.h"

#define WHAT TIDE_ASSISTANT_WHAT

/* ---- reading ---- */

void tide_assistant_email_read(const tide_rows_stmt *stmt, struct tide_assistant_email *email)
{
    email->id = tide_rows_get_u64(stmt, 0);
    email->account = tide_rows_get_u32(stmt, 1);
    tide_rows_get_copy(stmt, 2, email->thread_id, sizeof email->thread_id);
    tide_rows_get_copy(stmt, 3, email->message_id, sizeof email->message_id);
    tide_rows_get_copy(stmt, 4, email->sender, sizeof email->sender);
    tide_rows_get_copy(stmt, 5, email->subject, sizeof email->subject);
    email->category = tide_assistant_category_of(tide_rows_get_text(stmt, 6));
    tide_rows_get_copy(stmt, 7, email->confidence, sizeof email->confidence);
    tide_rows_get_copy(stmt, 8, email->language, sizeof email->language);
    tide_rows_get_copy(stmt, 9, email->style, sizeof email->style);
    tide_rows_get_copy(stmt, 10, email->reasoning, sizeof email->reasoning);
    email->status = tide_assistant_status_of(tide_rows_get_text(stmt, 11));
    email->messages = tide_rows_get_u32(stmt, 12);
    email->reworks = tide_rows_get_u32(stmt, 13);
    email->created_ms = tide_rows_get_u64(stmt, 14);
    email->updated_ms = tide_rows_get_u64(stmt, 15);
    tide_rows_get_copy(stmt, 16, email->draft_id, sizeof email->draft_id);
    email->draft_ms = tide_rows_get_u64(stmt, 17);
}

tide_status tide_assistant_email_get(tide_rows db, uint32_t account, const char *thread_id,
                                     struct tide_assistant_email *email_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc =
        tide_rows_first(db, WHAT, &stmt, err,
                        TIDE_ASSISTANT_EMAIL_COLUMNS " WHERE e.account = ?1 AND e.thread_id = ?2",
                        account, thread_id);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "there is no record of thread %.60s", thread_id);
    if (rc != TIDE_OK)
        return rc;
    tide_assistant_email_read(&stmt, email_out);
    /* The other half of what was checked when it was written (AST1). */
    if (email_out->status == TIDE_ASSISTANT_NO_STATUS)
        return tide_error_set(err, TIDE_CORRUPT, "the record of thread %.60s has no status",
                              thread_id);
    return TIDE_OK;
}

/* ---- writing ---- */

tide_status tide_assistant_event_add(tide_rows db, const struct tide_assistant_event *event,
                                     tide_error *err)
{
    TIDE_ASSERT(event->kind[0] != '\0');
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO assistant_event(account, thread_id, kind, detail, job, at_ms)"
                        " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
                        event->account, event->thread_id, event->kind, event->detail, event->job,
                        event->at_ms);
}

tide_status tide_assistant_event_known(tide_rows db, uint32_t account, const char *thread_id,
                                       const char *kind, uint64_t job, bool *known_out,
                                       tide_error *err)
{
    uint64_t count = 0;
    TIDE_TRY(tide_rows_number(db, WHAT, &count, err,
                              "SELECT count(*) FROM assistant_event WHERE account = ?1"
                              " AND thread_id = ?2 AND kind = ?3 AND job = ?4",
                              account, thread_id, kind, job));
    *known_out = count > 0;
    return TIDE_OK;
}

/* STO9.  A count that becomes 0 stays: it costs a row for each pair of words. */
static tide_status tally(tide_rows db, uint32_t account, tide_assistant_status status,
                         tide_assistant_category category, int by, tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO assistant_tally(account, status, category, records)"
                        " VALUES(?1, ?2, ?3, ?4) ON CONFLICT(account, status, category)"
                        " DO UPDATE SET records = assistant_tally.records + ?4",
                        account, tide_assistant_status_name(status),
                        tide_assistant_category_name(category), by);
}

/* A record of the old words, if there was one, has the new ones. */
static tide_status tally_move(tide_rows db, uint32_t account,
                              const struct tide_assistant_email *old, tide_assistant_status status,
                              tide_assistant_category category, tide_error *err)
{
    if (old != NULL && old->status == status && old->category == category)
        return TIDE_OK;
    if (old != NULL)
        TIDE_TRY(tally(db, account, old->status, old->category, -1, err));
    return tally(db, account, status, category, 1, err);
}

static void bind(tide_rows_stmt *stmt, const struct tide_assistant_email *email)
{
    tide_rows_u64(stmt, 1, email->account);
    tide_rows_text(stmt, 2, tide_text_of(email->thread_id));
    tide_rows_text(stmt, 3, tide_text_of(email->message_id));
    tide_rows_text(stmt, 4, tide_text_of(email->sender));
    tide_rows_text(stmt, 5, tide_text_of(email->subject));
    tide_rows_text(stmt, 6, tide_text_of(tide_assistant_category_name(email->category)));
    tide_rows_text(stmt, 7, tide_text_of(email->confidence));
    tide_rows_text(stmt, 8, tide_text_of(email->language));
    tide_rows_text(stmt, 9, tide_text_of(email->style));
    tide_rows_text(stmt, 10, tide_text_of(email->reasoning));
    tide_rows_text(stmt, 11, tide_text_of(tide_assistant_status_name(email->status)));
    tide_rows_u64(stmt, 12, email->messages);
    tide_rows_u64(stmt, 13, email->updated_ms);
}

tide_status tide_assistant_email_put(tide_rows db, const struct tide_assistant_email *email,
                                     const char *event, uint64_t job, tide_error *err)
{
    TIDE_ASSERT(email->thread_id[0] != '\0');
    TIDE_ASSERT(tide_assistant_may_follow(TIDE_ASSISTANT_NO_STATUS, email->status)); /* AST1 */
    tide_auto_rows stmt = {.what = NULL};
    struct tide_assistant_email old;
    const tide_status found =
        tide_assistant_email_get(db, email->account, email->thread_id, &old, err);
    if (found != TIDE_OK && found != TIDE_NOT_FOUND)
        return found;
    TIDE_TRY(tally_move(db, email->account, found == TIDE_OK ? &old : NULL,
                        found == TIDE_OK ? old.status : email->status, email->category, err));
    TIDE_TRY(tide_rows_prepare(
        db,
        "INSERT INTO assistant_email(account, thread_id, message_id, sender, subject, category,"
        " confidence, language, style, reasoning, status, messages, reworks, created_ms,"
        " updated_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 0, ?13, ?13)"
        " ON CONFLICT(account, thread_id) DO UPDATE SET message_id = ?3, sender = ?4,"
        " subject = ?5, category = ?6, confidence = ?7, language = ?8, style = ?9,"
        " reasoning = ?10, messages = ?12, updated_ms = ?13",
        WHAT, &stmt, err));
    bind(&stmt, email);
    TIDE_TRY(tide_rows_run(&stmt, err));
    const struct tide_assistant_event made = {.account = email->account,
                                              .thread_id = email->thread_id,
                                              .kind = event,
                                              .detail =
                                                  tide_assistant_category_name(email->category),
                                              .job = job,
                                              .at_ms = email->updated_ms};
    return tide_assistant_event_add(db, &made, err);
}

tide_status tide_assistant_email_move(tide_rows db, const struct tide_assistant_event *event,
                                      tide_assistant_status to, tide_error *err)
{
    struct tide_assistant_email email;
    uint64_t changed = 0;
    TIDE_TRY(tide_assistant_email_get(db, event->account, event->thread_id, &email, err));
    if (email.status == to)
        return TIDE_OK; /* AST2; its event was written when it came there */
    if (!tide_assistant_may_follow(email.status, to))
        return tide_error_set(err, TIDE_SUPERSEDED, "thread %.60s is %s, so it cannot become %s",
                              event->thread_id, tide_assistant_status_name(email.status),
                              tide_assistant_status_name(to));
    /* With the status that was read: on PostgreSQL another transaction may change it now. */
    TIDE_TRY(tide_rows_change(db, WHAT, &changed, err,
                              "UPDATE assistant_email SET status = ?3, updated_ms = ?4"
                              " WHERE account = ?1 AND thread_id = ?2 AND status = ?5",
                              event->account, event->thread_id, tide_assistant_status_name(to),
                              event->at_ms, tide_assistant_status_name(email.status)));
    if (changed != 1)
        return tide_error_set(err, TIDE_SUPERSEDED, "thread %.60s was changed meanwhile",
                              event->thread_id);
    TIDE_TRY(tally_move(db, event->account, &email, to, email.category, err));
    return tide_assistant_event_add(db, event, err);
}

tide_status tide_assistant_email_knows(tide_rows db, uint32_t account, const char *thread_id,
                                       const char *message_id, uint32_t messages, tide_error *err)
{
    TIDE_ASSERT(message_id[0] != '\0');
    return tide_rows_do(db, WHAT, err,
                        "UPDATE assistant_email SET message_id = ?3, messages = ?4"
                        " WHERE account = ?1 AND thread_id = ?2",
                        account, thread_id, message_id, messages);
}

tide_status tide_assistant_email_reworked(tide_rows db, uint32_t account, const char *thread_id,
                                          uint32_t reworks, uint64_t now_ms, tide_error *err)
{
    uint64_t changed = 0;
    TIDE_TRY(tide_rows_change(db, WHAT, &changed, err,
                              "UPDATE assistant_email SET reworks = ?3, updated_ms = ?4"
                              " WHERE account = ?1 AND thread_id = ?2",
                              account, thread_id, reworks, now_ms));
    return changed == 1 ? TIDE_OK
                        : tide_error_set(err, TIDE_NOT_FOUND, "there is no record of thread %.60s",
                                         thread_id);
}
