#include "assistant/store/look.h"

#include "assistant/store/inside.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WHAT TIDE_ASSISTANT_WHAT

static tide_status is_there(tide_rows db, bool *there_out, tide_error *err)
{
    return tide_rows_has(db, "assistant_email", WHAT, there_out, err);
}

/* ---- counts ---- */

/* From the tally (STO9): counting a hundred thousand records takes a tenth of a second. */
static tide_status count_records(tide_rows db, uint32_t account,
                                 struct tide_assistant_counts *counts, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(db, WHAT, &stmt, err,
                                   "SELECT status, category, records FROM assistant_tally"
                                   " WHERE account = ?1",
                                   account);
    while (tide_rows_next(&stmt, &rc, err)) {
        const uint64_t count = tide_rows_get_u64(&stmt, 2);
        counts->by_status[tide_assistant_status_of(tide_rows_get_text(&stmt, 0))] += count;
        counts->by_category[tide_assistant_category_of(tide_rows_get_text(&stmt, 1))] += count;
        counts->records += count;
    }
    return rc;
}

static tide_status count_given_up(tide_rows db, uint32_t account, uint64_t *count_out,
                                  tide_error *err)
{
    bool there = false; /* a ledger of an earlier version has none until an engine opens it */
    TIDE_TRY(tide_rows_has(db, "assistant_failure", WHAT, &there, err));
    return there ? tide_rows_number(db, WHAT, count_out, err,
                                    "SELECT count(*) FROM assistant_failure"
                                    " WHERE account = ?1 AND failures >= ?2",
                                    account, (uint64_t)TIDE_ASSISTANT_FAILURES_MAX)
                 : TIDE_OK;
}

tide_status tide_assistant_counts(tide_rows db, uint32_t account, uint64_t since_ms,
                                  struct tide_assistant_counts *counts_out, tide_error *err)
{
    struct tide_assistant_counts counts;
    tide_auto_rows calls = {.what = NULL};
    bool there = false;
    memset(&counts, 0, sizeof counts);
    TIDE_TRY(is_there(db, &there, err));
    if (there) {
        TIDE_TRY(count_records(db, account, &counts, err));
        TIDE_TRY(tide_assistant_sync_get(db, account, &counts.sync, err));
        TIDE_TRY(tide_assistant_pushed_get(db, account, &counts.pushed_ms, err));
        TIDE_TRY(tide_rows_first(db, WHAT, &calls, err,
                                 "SELECT count(*), CAST(coalesce(sum(tokens_in), 0) AS bigint),"
                                 " CAST(coalesce(sum(tokens_out), 0) AS bigint)"
                                 " FROM assistant_call WHERE account = ?1 AND begun_ms >= ?2",
                                 account, since_ms));
        counts.calls = tide_rows_get_u64(&calls, 0);
        counts.tokens_in = tide_rows_get_u64(&calls, 1);
        counts.tokens_out = tide_rows_get_u64(&calls, 2);
        TIDE_TRY(count_given_up(db, account, &counts.given_up, err));
    }
    *counts_out = counts;
    return TIDE_OK;
}

/* ---- lists ---- */

void tide_assistant_cursor_text(const struct tide_assistant_cursor *cursor,
                                char text_out[TIDE_ASSISTANT_CURSOR_BYTES])
{
    text_out[0] = '\0';
    if (cursor->id > 0)
        (void)snprintf(text_out, TIDE_ASSISTANT_CURSOR_BYTES, "%" PRIu64 ".%" PRIu64,
                       cursor->updated_ms, cursor->id);
}

bool tide_assistant_cursor_of(tide_text text, struct tide_assistant_cursor *cursor_out)
{
    struct tide_assistant_cursor cursor = {.id = 0};
    if (text.bytes > 0) {
        const char *dot = memchr(text.data, '.', text.bytes);
        const size_t before = dot == NULL ? 0 : (size_t)(dot - text.data);
        if (dot == NULL || !tide_text_to_u64((tide_text){text.data, before}, &cursor.updated_ms) ||
            !tide_text_to_u64((tide_text){dot + 1, text.bytes - before - 1}, &cursor.id) ||
            cursor.id == 0 || cursor.id > INT64_MAX || cursor.updated_ms > INT64_MAX)
            return false;
    }
    *cursor_out = cursor;
    return true;
}

/* Conditions that hold always are left out, so that the database sees which index fits. */
static void list_sql(const struct tide_assistant_filter *filter, bool from, char *sql, size_t room)
{
    const char *order = filter->oldest_first ? "ASC" : "DESC";
    const int bytes =
        snprintf(sql, room, "%s WHERE 1 = 1%s%s%s%s%s ORDER BY e.updated_ms %s, e.id %s LIMIT ?7",
                 TIDE_ASSISTANT_EMAIL_COLUMNS, filter->account > 0 ? " AND e.account = ?1" : "",
                 filter->status != TIDE_ASSISTANT_NO_STATUS ? " AND e.status = ?2" : "",
                 filter->category != TIDE_ASSISTANT_NO_CATEGORY ? " AND e.category = ?3" : "",
                 filter->sender != NULL ? " AND e.sender = ?4" : "",
                 !from                  ? ""
                 : filter->oldest_first ? " AND (e.updated_ms, e.id) > (?5, ?6)"
                                        : " AND (e.updated_ms, e.id) < (?5, ?6)",
                 order, order);
    TIDE_ASSERT(bytes > 0 && (size_t)bytes < room);
}

tide_status tide_assistant_emails(tide_rows db, const struct tide_assistant_filter *filter,
                                  struct tide_assistant_cursor *cursor, size_t count,
                                  void (*visit)(const struct tide_assistant_email *email,
                                                void *arg),
                                  void *arg, bool *more_out, tide_error *err)
{
    TIDE_ASSERT(count > 0 && count <= TIDE_ASSISTANT_PAGE_MAX);
    char sql[2048];
    tide_auto_rows stmt = {.what = NULL};
    struct tide_assistant_email email;
    bool there = false;
    *more_out = false;
    TIDE_TRY(is_there(db, &there, err));
    if (!there)
        return TIDE_OK;
    list_sql(filter, cursor->id > 0, sql, sizeof sql);
    TIDE_TRY(tide_rows_prepare(db, sql, WHAT, &stmt, err));
    tide_rows_u64(&stmt, 1, filter->account);
    tide_rows_text(&stmt, 2, tide_text_of(tide_assistant_status_name(filter->status)));
    tide_rows_text(&stmt, 3, tide_text_of(tide_assistant_category_name(filter->category)));
    tide_rows_text(&stmt, 4, tide_text_of(filter->sender == NULL ? "" : filter->sender));
    tide_rows_u64(&stmt, 5, cursor->updated_ms);
    tide_rows_u64(&stmt, 6, cursor->id);
    tide_rows_u64(&stmt, 7, count + 1);
    tide_status rc = TIDE_OK;
    for (size_t seen = 0; tide_rows_next(&stmt, &rc, err); seen++) {
        if (seen == count) {
            *more_out = true;
            break;
        }
        tide_assistant_email_read(&stmt, &email);
        *cursor = (struct tide_assistant_cursor){email.updated_ms, email.id};
        visit(&email, arg);
    }
    return rc;
}

tide_status tide_assistant_emails_total(tide_rows db, const struct tide_assistant_filter *filter,
                                        uint64_t *total_out, tide_error *err)
{
    bool there = false;
    uint64_t total = 0;
    TIDE_TRY(is_there(db, &there, err));
    if (there)
        TIDE_TRY(tide_rows_number(db, WHAT, &total, err,
                                  "SELECT CAST(coalesce(sum(records), 0) AS bigint)"
                                  " FROM assistant_tally WHERE (?1 = 0 OR account = ?1)"
                                  " AND (?2 = '' OR status = ?2) AND (?3 = '' OR category = ?3)",
                                  filter->account, tide_assistant_status_name(filter->status),
                                  tide_assistant_category_name(filter->category)));
    *total_out = total;
    return TIDE_OK;
}

/* ---- events, calls, runs ---- */

#define EVENT_COLUMNS "SELECT id, account, thread_id, kind, detail, job, at_ms FROM assistant_event"

static void event_read(const tide_rows_stmt *stmt, struct tide_assistant_event *event)
{
    *event = (struct tide_assistant_event){
        .id = tide_rows_get_u64(stmt, 0),
        .account = tide_rows_get_u32(stmt, 1),
        .thread_id = tide_assistant_text_of(stmt, 2),
        .kind = tide_assistant_text_of(stmt, 3),
        .detail = tide_assistant_text_of(stmt, 4),
        .job = tide_rows_get_u64(stmt, 5),
        .at_ms = tide_rows_get_u64(stmt, 6),
    };
}

/* Conditions of call_outcomes are written out, so that the database sees which index fits. */
static const char *const call_outcomes[] = {
    [TIDE_ASSISTANT_ANY] = "",
    [TIDE_ASSISTANT_ANSWERED] = " AND ended_ms > 0 AND error = ''",
    [TIDE_ASSISTANT_CALL_FAILED] = " AND error <> ''",
    [TIDE_ASSISTANT_WAITS] = " AND ended_ms = 0",
};

/* Begins a list; it has one row more than the page.  `kind` is a condition on ?3. */
static tide_status log_ask(tide_rows db, const struct tide_assistant_log *log, const char *columns,
                           const char *kind, tide_rows_stmt *stmt, bool *there_out, tide_error *err)
{
    TIDE_ASSERT(log->count > 0 && log->count <= TIDE_ASSISTANT_PAGE_MAX);
    char sql[1024];
    TIDE_TRY(is_there(db, there_out, err));
    if (!*there_out)
        return TIDE_OK;
    const int bytes = snprintf(sql, sizeof sql, "%s WHERE 1 = 1%s%s%s%s%s ORDER BY id %s LIMIT ?5",
                               columns, log->account > 0 ? " AND account = ?1" : "",
                               log->thread_id != NULL ? " AND thread_id = ?2" : "",
                               log->kind != NULL ? kind : "", call_outcomes[log->outcome],
                               log->after == 0     ? ""
                               : log->oldest_first ? " AND id > ?4"
                                                   : " AND id < ?4",
                               log->oldest_first ? "ASC" : "DESC");
    TIDE_ASSERT(bytes > 0 && (size_t)bytes < sizeof sql);
    TIDE_TRY(tide_rows_prepare(db, sql, WHAT, stmt, err));
    tide_rows_u64(stmt, 1, log->account);
    tide_rows_text(stmt, 2, tide_text_of(log->thread_id == NULL ? "" : log->thread_id));
    tide_rows_text(stmt, 3, tide_text_of(log->kind == NULL ? "" : log->kind));
    tide_rows_u64(stmt, 4, log->after);
    tide_rows_u64(stmt, 5, log->count + 1);
    return TIDE_OK;
}

/* The next row of the page; the one behind it sets *more. */
static bool log_next(tide_rows_stmt *stmt, const struct tide_assistant_log *log, size_t *seen,
                     bool *more, tide_status *rc, tide_error *err)
{
    if (!tide_rows_next(stmt, rc, err))
        return false;
    *more = (*seen)++ == log->count;
    return !*more;
}

tide_status tide_assistant_events(tide_rows db, const struct tide_assistant_log *log,
                                  void (*visit)(const struct tide_assistant_event *one, void *arg),
                                  void *arg, bool *more_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_assistant_event one;
    bool there = false;
    size_t seen = 0;
    TIDE_ASSERT(log->outcome == TIDE_ASSISTANT_ANY);
    *more_out = false;
    tide_status rc = log_ask(db, log, EVENT_COLUMNS, " AND kind = ?3", &stmt, &there, err);
    while (there && log_next(&stmt, log, &seen, more_out, &rc, err)) {
        event_read(&stmt, &one);
        visit(&one, arg);
    }
    return rc;
}

tide_status tide_assistant_calls(tide_rows db, const struct tide_assistant_log *log,
                                 void (*visit)(const struct tide_assistant_call *one, void *arg),
                                 void *arg, bool *more_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_assistant_call one;
    bool there = false;
    size_t seen = 0;
    *more_out = false;
    tide_status rc =
        log_ask(db, log, TIDE_ASSISTANT_CALL_HEAD, " AND kind = ?3", &stmt, &there, err);
    while (there && log_next(&stmt, log, &seen, more_out, &rc, err)) {
        tide_assistant_call_read(&stmt, &one);
        visit(&one, arg);
    }
    return rc;
}

tide_status tide_assistant_runs(tide_rows db, const struct tide_assistant_log *log,
                                void (*visit)(const struct tide_assistant_run *one, void *arg),
                                void *arg, bool *more_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_assistant_run one;
    bool there = false;
    size_t seen = 0;
    TIDE_ASSERT(log->outcome == TIDE_ASSISTANT_ANY);
    *more_out = false;
    tide_status rc =
        log_ask(db, log, TIDE_ASSISTANT_RUN_HEAD, " AND status = ?3", &stmt, &there, err);
    while (there && log_next(&stmt, log, &seen, more_out, &rc, err)) {
        tide_assistant_run_read(&stmt, &one);
        visit(&one, arg);
    }
    return rc;
}

tide_status tide_assistant_call_look(tide_rows db, uint64_t id,
                                     void (*visit)(const struct tide_assistant_call *one,
                                                   void *arg),
                                     void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_assistant_call one;
    bool there = false;
    TIDE_TRY(is_there(db, &there, err));
    const tide_status rc = !there
                               ? TIDE_NOT_FOUND
                               : tide_rows_first(db, WHAT, &stmt, err,
                                                 TIDE_ASSISTANT_CALL_COLUMNS " WHERE id = ?1", id);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "there is no model call %" PRIu64, id);
    if (rc != TIDE_OK)
        return rc;
    tide_assistant_call_read(&stmt, &one);
    visit(&one, arg);
    return TIDE_OK;
}

tide_status tide_assistant_run_look(tide_rows db, uint64_t id,
                                    void (*visit)(const struct tide_assistant_run *one, void *arg),
                                    void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_assistant_run one;
    bool there = false;
    TIDE_TRY(is_there(db, &there, err));
    const tide_status rc = !there
                               ? TIDE_NOT_FOUND
                               : tide_rows_first(db, WHAT, &stmt, err,
                                                 TIDE_ASSISTANT_RUN_COLUMNS " WHERE id = ?1", id);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "there is no run %" PRIu64, id);
    if (rc != TIDE_OK)
        return rc;
    tide_assistant_run_read(&stmt, &one);
    visit(&one, arg);
    return TIDE_OK;
}

/* ---- one thread ---- */

#define OF_THREAD " WHERE account = ?1 AND thread_id = ?2 ORDER BY id"

static tide_status explain_events(tide_rows db, uint32_t account, const char *thread_id,
                                  const struct tide_assistant_explain *explain, uint64_t *seen,
                                  tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_assistant_event event;
    tide_status rc =
        tide_rows_ask(db, WHAT, &stmt, err, EVENT_COLUMNS OF_THREAD, account, thread_id);
    for (; tide_rows_next(&stmt, &rc, err); ++*seen) {
        event_read(&stmt, &event);
        if (explain->event != NULL)
            explain->event(&event, explain->arg);
    }
    return rc;
}

static tide_status explain_model(tide_rows db, uint32_t account, const char *thread_id,
                                 const struct tide_assistant_explain *explain, uint64_t *seen,
                                 tide_error *err)
{
    tide_auto_rows calls = {.what = NULL};
    tide_auto_rows runs = {.what = NULL};
    struct tide_assistant_call call;
    struct tide_assistant_run run;
    tide_status rc = tide_rows_ask(db, WHAT, &calls, err, TIDE_ASSISTANT_CALL_HEAD OF_THREAD,
                                   account, thread_id);
    for (; tide_rows_next(&calls, &rc, err); ++*seen) {
        tide_assistant_call_read(&calls, &call);
        if (explain->call != NULL)
            explain->call(&call, explain->arg);
    }
    if (rc == TIDE_OK)
        rc = tide_rows_ask(db, WHAT, &runs, err, TIDE_ASSISTANT_RUN_HEAD OF_THREAD, account,
                           thread_id);
    for (; tide_rows_next(&runs, &rc, err); ++*seen) {
        tide_assistant_run_read(&runs, &run);
        if (explain->run != NULL)
            explain->run(&run, explain->arg);
    }
    return rc;
}

static tide_status explain_drafts(tide_rows db, uint32_t account, const char *thread_id,
                                  const struct tide_assistant_explain *explain, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_assistant_draft draft;
    tide_status rc =
        tide_rows_ask(db, WHAT, &stmt, err,
                      TIDE_ASSISTANT_DRAFT_COLUMNS " WHERE account = ?1 AND thread_id = ?2"
                                                   " ORDER BY begun_ms, token",
                      account, thread_id);
    while (tide_rows_next(&stmt, &rc, err)) {
        TIDE_TRY(tide_assistant_draft_read(&stmt, &draft, err));
        if (explain->draft != NULL)
            explain->draft(&draft, explain->arg);
    }
    return rc;
}

tide_status tide_assistant_explain(tide_rows db, uint32_t account, const char *thread_id,
                                   const struct tide_assistant_explain *explain, tide_error *err)
{
    struct tide_assistant_email email;
    uint64_t seen = 0;
    bool there = false;
    TIDE_TRY(is_there(db, &there, err));
    tide_status rc =
        there ? tide_assistant_email_get(db, account, thread_id, &email, err) : TIDE_NOT_FOUND;
    if (rc == TIDE_OK) {
        seen++;
        if (explain->email != NULL)
            explain->email(&email, explain->arg);
    } else if (rc != TIDE_NOT_FOUND) {
        return rc;
    }
    if (there) {
        TIDE_TRY(explain_events(db, account, thread_id, explain, &seen, err));
        TIDE_TRY(explain_model(db, account, thread_id, explain, &seen, err));
        TIDE_TRY(explain_drafts(db, account, thread_id, explain, err));
    }
    if (seen > 0)
        return TIDE_OK;
    return tide_error_set(err, TIDE_NOT_FOUND, "nothing is known of thread %.60s", thread_id);
}
