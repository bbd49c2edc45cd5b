/* The assistant's records on both databases: STO1 to STO8, LOK1. */
#include "assistant/store/look.h"

#include "support/heap.h"
#include "unit/db/rows_fixture.h"

static int setup(void **state)
{
    const int failed = rows_setup(state);
    OK(tide_assistant_tables(rows_now, err));
    OK(tide_assistant_tables(rows_now, err)); /* twice is harmless */
    return failed;
}

#define CASE(name) TEST_ON(name, const tide_rows *rows, setup, rows_teardown)

static struct tide_assistant_email record(const char *thread, tide_assistant_category category,
                                          uint64_t at_ms)
{
    struct tide_assistant_email email = {.account = 3,
                                         .message_id = "m1",
                                         .sender = "anna@example.com",
                                         .subject = "Offer",
                                         .category = category,
                                         .confidence = "high",
                                         .language = "cs",
                                         .style = "business",
                                         .reasoning = "she asks",
                                         .status = category == TIDE_ASSISTANT_NEEDS_RESPONSE
                                                       ? TIDE_ASSISTANT_PENDING
                                                       : TIDE_ASSISTANT_SKIPPED,
                                         .messages = 2,
                                         .updated_ms = at_ms};
    (void)snprintf(email.thread_id, sizeof email.thread_id, "%s", thread);
    return email;
}

static struct tide_assistant_event event(const char *thread, const char *kind, uint64_t at_ms)
{
    return (struct tide_assistant_event){
        .account = 3, .thread_id = thread, .kind = kind, .detail = "", .job = 9, .at_ms = at_ms};
}

static uint64_t number(const tide_rows *rows, const char *sql)
{
    uint64_t value = 0;
    OK(tide_rows_number(*rows, "test", &value, err, sql));
    return value;
}

/* STO9: the tally is what counting gives. */
static void assert_tally(const tide_rows *rows)
{
    tide_rows_stmt stmt = {.what = NULL};
    tide_error oops = {TIDE_OK, 0, ""};
    uint64_t sum = 0;
    tide_status rc = tide_rows_ask(*rows, "test", &stmt, &oops,
                                   "SELECT t.records, (SELECT count(*) FROM assistant_email e"
                                   " WHERE e.account = t.account AND e.status = t.status"
                                   " AND e.category = t.category) FROM assistant_tally t");
    while (tide_rows_next(&stmt, &rc, &oops)) {
        assert_int_equal(tide_rows_get_i64(&stmt, 0), tide_rows_get_i64(&stmt, 1));
        sum += tide_rows_get_u64(&stmt, 0);
    }
    tide_rows_end(&stmt);
    assert_int_equal(rc, TIDE_OK);
    assert_int_equal(sum, number(rows, "SELECT count(*) FROM assistant_email"));
}

/* ---- users ---- */

static void count_user(const struct tide_assistant_user *user, void *arg)
{
    *(unsigned *)arg += user->account;
}

CASE(a_user_is_found_by_number_and_by_address)
{
    struct tide_assistant_user user = {.account = 3, .email = "Me@example.org", .onboarded_ms = 7};
    struct tide_assistant_user back;
    OK(tide_assistant_user_put(*rows, &user, err));
    OK(tide_assistant_user_put(*rows, &user, err));
    OK(tide_assistant_user_named(*rows, "me@EXAMPLE.org", &back, err));
    assert_int_equal(back.account, 3);
    assert_int_equal(back.onboarded_ms, 7);
    assert_string_equal(back.email, "Me@example.org");
    OK(tide_assistant_user_get(*rows, 3, &back, err));
    assert_int_equal(tide_assistant_user_get(*rows, 4, &back, NULL), TIDE_NOT_FOUND); /* J2 */
    assert_int_equal(tide_assistant_user_named(*rows, "x@example.org", &back, NULL),
                     TIDE_NOT_FOUND);
    struct tide_assistant_user other = {.account = 5, .email = "b@example.org"};
    OK(tide_assistant_user_put(*rows, &other, err));
    unsigned sum = 0;
    OK(tide_assistant_users_each(*rows, count_user, &sum, err));
    assert_int_equal(sum, 8);
}

CASE(a_user_ends_once_and_begins_again)
{
    struct tide_assistant_user user = {.account = 3, .email = "me@example.org", .onboarded_ms = 7};
    struct tide_assistant_user back;
    struct tide_assistant_sync sync;
    OK(tide_assistant_user_put(*rows, &user, err));
    OK(tide_assistant_sync_move(*rows, 3, "", "100", false, 8, err));
    OK(tide_assistant_user_end(*rows, 3, 50, err));
    OK(tide_assistant_user_end(*rows, 3, 60, err));
    OK(tide_assistant_user_get(*rows, 3, &back, err));
    assert_int_equal(back.ended_ms, 50);
    assert_int_equal(back.onboarded_ms, 0);
    OK(tide_assistant_sync_get(*rows, 3, &sync, err));
    assert_string_equal(sync.history_id, "");
    assert_int_equal(sync.synced_ms, 8);
    OK(tide_assistant_user_put(*rows, &user, err));
    OK(tide_assistant_user_get(*rows, 3, &back, err));
    assert_int_equal(back.ended_ms, 0);
    assert_int_equal(back.onboarded_ms, 7);
    assert_int_equal(tide_assistant_user_end(*rows, 4, 50, NULL), TIDE_NOT_FOUND);
}

/* STO11 */
CASE(a_failure_of_a_thread_is_counted_once)
{
    struct tide_assistant_failure failure;
    uint32_t failures = 0;
    bool more = false;
    OK(tide_assistant_failure_reset(*rows, 3, "t", "m", err));
    assert_int_equal(tide_assistant_failure_get(*rows, 3, "t", &failure, NULL), TIDE_NOT_FOUND);
    for (uint64_t i = 1; i <= TIDE_ASSISTANT_FAILURES_MAX + 2; i++) {
        OK(tide_assistant_failure_add(*rows, 3, "t", "m", 10 * i, 1000 + i, &failures, &more, err));
        assert_int_equal(more, i <= TIDE_ASSISTANT_FAILURES_MAX);
        OK(tide_assistant_failure_add(*rows, 3, "t", "n", 10 * i, 1000 + i, &failures, &more, err));
        assert_false(more);
        assert_int_equal(failures,
                         i < TIDE_ASSISTANT_FAILURES_MAX ? i : TIDE_ASSISTANT_FAILURES_MAX);
    }
    OK(tide_assistant_failures_prune(*rows, 3, 1000 + TIDE_ASSISTANT_FAILURES_MAX + 2, err));
    OK(tide_assistant_failure_get(*rows, 3, "t", &failure, err));
    assert_string_equal(failure.message_id, "m");
    OK(tide_assistant_failure_reset(*rows, 3, "t", "", err));
    OK(tide_assistant_failures_prune(*rows, 3, 2000, err)); /* it may fail again */
    OK(tide_assistant_failure_get(*rows, 3, "t", &failure, err));
    assert_int_equal(failure.failures, 0);
    assert_string_equal(failure.message_id, "m");
    OK(tide_assistant_failures_prune(*rows, 3, 90000000, err));
    assert_int_equal(tide_assistant_failure_get(*rows, 3, "t", &failure, NULL), TIDE_NOT_FOUND);
}

CASE(labels_and_settings_are_kept_by_user)
{
    struct tide_assistant_labels labels;
    char value[32] = "";
    OK(tide_assistant_label_put(*rows, 3, TIDE_ASSISTANT_LABEL_DONE, "Label_1", err));
    OK(tide_assistant_label_put(*rows, 3, TIDE_ASSISTANT_LABEL_DONE, "Label_2", err));
    OK(tide_assistant_label_put(*rows, 4, TIDE_ASSISTANT_LABEL_FYI, "Label_3", err));
    OK(tide_assistant_labels_get(*rows, 3, &labels, err));
    assert_string_equal(labels.ids[TIDE_ASSISTANT_LABEL_DONE], "Label_2");
    assert_string_equal(labels.ids[TIDE_ASSISTANT_LABEL_FYI], "");
    OK(tide_assistant_setting_put(*rows, 3, "style", "a", err));
    OK(tide_assistant_setting_put(*rows, 3, "style", "b", err));
    OK(tide_assistant_setting_get(*rows, 3, "style", value, sizeof value, err));
    assert_string_equal(value, "b");
    assert_int_equal(tide_assistant_setting_get(*rows, 4, "style", value, sizeof value, NULL),
                     TIDE_NOT_FOUND);
}

/* STO5 */
CASE(a_history_id_moves_only_from_where_it_stands)
{
    struct tide_assistant_sync sync;
    OK(tide_assistant_sync_get(*rows, 3, &sync, err));
    assert_string_equal(sync.history_id, "");
    OK(tide_assistant_sync_move(*rows, 3, "", "100", true, 10, err));
    assert_int_equal(tide_assistant_sync_move(*rows, 3, "", "50", false, 11, NULL), TIDE_STALE);
    assert_int_equal(tide_assistant_sync_move(*rows, 3, "99", "50", false, 11, NULL), TIDE_STALE);
    OK(tide_assistant_sync_move(*rows, 3, "100", "200", false, 12, err));
    OK(tide_assistant_sync_get(*rows, 3, &sync, err));
    assert_string_equal(sync.history_id, "200");
    assert_int_equal(sync.synced_ms, 12);
    assert_int_equal(sync.full_ms, 10);
}

/* ---- records ---- */

/* STO1 and J10: one record, whose status is kept by a new classification. */
CASE(a_thread_has_one_record)
{
    struct tide_assistant_email one = record("t1", TIDE_ASSISTANT_NEEDS_RESPONSE, 100);
    struct tide_assistant_email back;
    assert_int_equal(tide_assistant_email_get(*rows, 3, "t1", &back, NULL), TIDE_NOT_FOUND);
    OK(tide_assistant_email_put(*rows, &one, "classified", 9, err));
    OK(tide_assistant_email_get(*rows, 3, "t1", &back, err));
    assert_string_equal(back.sender, one.sender);
    assert_string_equal(back.subject, one.subject);
    assert_string_equal(back.message_id, "m1");
    assert_string_equal(back.confidence, "high");
    assert_string_equal(back.language, "cs");
    assert_string_equal(back.style, "business");
    assert_string_equal(back.reasoning, "she asks");
    assert_int_equal(back.category, TIDE_ASSISTANT_NEEDS_RESPONSE);
    assert_int_equal(back.status, TIDE_ASSISTANT_PENDING);
    assert_int_equal(back.messages, 2);
    assert_int_equal(back.created_ms, 100);
    OK(tide_assistant_email_reworked(*rows, 3, "t1", 2, 150, err));
    struct tide_assistant_email again = record("t1", TIDE_ASSISTANT_FYI, 200);
    again.messages = 5;
    OK(tide_assistant_email_put(*rows, &again, "retriaged", 10, err));
    OK(tide_assistant_email_get(*rows, 3, "t1", &back, err));
    assert_int_equal(back.category, TIDE_ASSISTANT_FYI);
    assert_int_equal(back.status, TIDE_ASSISTANT_PENDING); /* kept */
    assert_int_equal(back.reworks, 2);
    assert_int_equal(back.messages, 5);
    assert_int_equal(back.created_ms, 100);
    assert_int_equal(back.updated_ms, 200);
    assert_int_equal(number(rows, "SELECT count(*) FROM assistant_email"), 1);
    assert_int_equal(number(rows, "SELECT count(*) FROM assistant_event"), 2);
    /* Another user's thread of the same id is another one. */
    again.account = 4;
    OK(tide_assistant_email_put(*rows, &again, "classified", 10, err));
    assert_int_equal(number(rows, "SELECT count(*) FROM assistant_email"), 2);
    assert_tally(rows);
}

/* STO2: every pair of statuses, through the store. */
CASE(statuses_change_as_the_matrix_says)
{
    struct tide_assistant_event moved = event("t", "moved", 300);
    assert_int_equal(tide_assistant_email_move(*rows, &moved, TIDE_ASSISTANT_SENT, NULL),
                     TIDE_NOT_FOUND);
    const struct tide_assistant_email one = record("t", TIDE_ASSISTANT_NEEDS_RESPONSE, 100);
    OK(tide_assistant_email_put(*rows, &one, "classified", 9, err));
    for (unsigned from = 1; from < TIDE_ASSISTANT_STATUSES; from++)
        for (unsigned to = 1; to < TIDE_ASSISTANT_STATUSES; to++) {
            struct tide_assistant_email back;
            const char *was = tide_assistant_status_name((tide_assistant_status)from);
            OK(tide_rows_do(*rows, "test", err, "UPDATE assistant_email SET status = ?1", was));
            OK(tide_rows_do(*rows, "test", err, "DELETE FROM assistant_tally"));
            OK(tide_rows_do(*rows, "test", err,
                            "INSERT INTO assistant_tally(account, status, category, records)"
                            " VALUES(3, ?1, 'needs_response', 1)",
                            was));
            const uint64_t events = number(rows, "SELECT count(*) FROM assistant_event");
            const bool may =
                tide_assistant_may_follow((tide_assistant_status)from, (tide_assistant_status)to);
            assert_int_equal(
                tide_assistant_email_move(*rows, &moved, (tide_assistant_status)to, NULL),
                may ? TIDE_OK : TIDE_SUPERSEDED);
            OK(tide_assistant_email_get(*rows, 3, "t", &back, err));
            assert_int_equal(back.status, may ? to : from);
            assert_int_equal(number(rows, "SELECT count(*) FROM assistant_event"),
                             events + (may && from != to));
            assert_tally(rows);
        }
}

CASE(a_status_that_no_one_knows_is_damage)
{
    const struct tide_assistant_email one = record("t", TIDE_ASSISTANT_FYI, 100);
    struct tide_assistant_email back;
    OK(tide_assistant_email_put(*rows, &one, "classified", 9, err));
    OK(tide_rows_do(*rows, "test", err, "UPDATE assistant_email SET status = 'odd'"));
    assert_int_equal(tide_assistant_email_get(*rows, 3, "t", &back, NULL), TIDE_CORRUPT);
}

CASE(an_event_is_known_by_its_job)
{
    const struct tide_assistant_email one = record("t", TIDE_ASSISTANT_NEEDS_RESPONSE, 100);
    bool known = false;
    OK(tide_assistant_email_put(*rows, &one, "manual_draft", 9, err));
    OK(tide_assistant_event_known(*rows, 3, "t", "manual_draft", 9, &known, err));
    assert_true(known);
    OK(tide_assistant_event_known(*rows, 3, "t", "manual_draft", 8, &known, err));
    assert_false(known);
    OK(tide_assistant_event_known(*rows, 3, "u", "manual_draft", 9, &known, err));
    assert_false(known);
}

/* ---- pushes ---- */

/* J6: whether pushes arrive, and when the last one did; of each user. */
CASE(the_last_push_is_known)
{
    struct tide_assistant_counts counts;
    OK(tide_assistant_counts(*rows, 3, 0, &counts, err));
    assert_int_equal(counts.pushed_ms, 0);
    OK(tide_assistant_pushed_put(*rows, 3, UINT64_C(1767225600000), err));
    OK(tide_assistant_pushed_put(*rows, 3, UINT64_C(1767225600001), err));
    OK(tide_assistant_counts(*rows, 3, 0, &counts, err));
    assert_true(counts.pushed_ms == UINT64_C(1767225600001));
    OK(tide_assistant_counts(*rows, 4, 0, &counts, err));
    assert_int_equal(counts.pushed_ms, 0);
}

/* ---- drafts ---- */

/* A row that another program, or a damaged file, made wrong is told, and its state indexes nothing. */
CASE(a_draft_with_a_wrong_state_is_told)
{
    const struct tide_assistant_email one = record("t", TIDE_ASSISTANT_NEEDS_RESPONSE, 100);
    const struct tide_assistant_explain all = {.arg = NULL};
    static const int states[] = {4, -1, 1000000};
    OK(tide_assistant_email_put(*rows, &one, "classified", 9, err));
    OK(tide_assistant_draft_begin(*rows, 3, "t", "tok1", 110, err));
    OK(tide_assistant_explain(*rows, 3, "t", &all, err));
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        tide_error why = {TIDE_OK, 0, ""};
        OK(tide_rows_do(*rows, "test", err, "UPDATE assistant_draft SET state = ?1", states[i]));
        assert_int_equal(tide_assistant_explain(*rows, 3, "t", &all, &why), TIDE_CORRUPT);
        assert_non_null(strstr(why.text, "draft tok1 of thread t has the state"));
    }
}

/* STO3, STO4 */
CASE(a_thread_has_one_draft_that_lives)
{
    struct tide_assistant_draft draft;
    struct tide_assistant_email back;
    const struct tide_assistant_email one = record("t", TIDE_ASSISTANT_NEEDS_RESPONSE, 100);
    OK(tide_assistant_email_put(*rows, &one, "classified", 9, err));
    OK(tide_assistant_draft_begin(*rows, 3, "t", "tok1", 110, err));
    OK(tide_assistant_draft_begin(*rows, 3, "t", "tok1", 111, err)); /* again: harmless */
    OK(tide_assistant_draft_get(*rows, 3, "t", TIDE_ASSISTANT_DRAFT_MAKING, &draft, err));
    assert_string_equal(draft.token, "tok1");
    assert_string_equal(draft.draft_id, "");
    /* Its id is known before its round is over. */
    bool known = true;
    OK(tide_assistant_draft_known(*rows, 3, "t", "r1", &known, err));
    assert_false(known);
    OK(tide_assistant_draft_named(*rows, "tok1", "r1", "m9", 120, err));
    OK(tide_assistant_draft_known(*rows, 3, "t", "r1", &known, err));
    assert_true(known);
    OK(tide_assistant_draft_get(*rows, 3, "t", TIDE_ASSISTANT_DRAFT_MAKING, &draft, err));
    assert_string_equal(draft.draft_id, "r1");
    OK(tide_assistant_draft_made(*rows, "tok1", "r1", "m9", 125, err));
    OK(tide_assistant_draft_made(*rows, "tok1", "r1", "m9", 126, err));
    OK(tide_assistant_email_get(*rows, 3, "t", &back, err));
    assert_string_equal(back.draft_id, "r1");
    assert_int_equal(back.draft_ms, 120);
    /* A second one makes the first stale; it stays known until it is gone. */
    OK(tide_assistant_draft_begin(*rows, 3, "t", "tok2", 130, err));
    OK(tide_assistant_email_get(*rows, 3, "t", &back, err));
    assert_string_equal(back.draft_id, "");
    OK(tide_assistant_draft_get(*rows, 3, "t", TIDE_ASSISTANT_DRAFT_STALE, &draft, err));
    assert_string_equal(draft.draft_id, "r1");
    OK(tide_assistant_draft_gone(*rows, "tok1", err));
    assert_int_equal(
        tide_assistant_draft_get(*rows, 3, "t", TIDE_ASSISTANT_DRAFT_STALE, &draft, NULL),
        TIDE_NOT_FOUND);
    /* One that became stale while it was made is recorded, and said to be so. */
    OK(tide_assistant_draft_stale(*rows, 3, "t", err));
    assert_int_equal(tide_assistant_draft_made(*rows, "tok2", "r2", "m10", 140, NULL),
                     TIDE_SUPERSEDED);
    OK(tide_assistant_draft_get(*rows, 3, "t", TIDE_ASSISTANT_DRAFT_STALE, &draft, err));
    assert_string_equal(draft.draft_id, "r2");
    assert_int_equal(tide_assistant_draft_made(*rows, "tok9", "r2", "m10", 140, NULL),
                     TIDE_NOT_FOUND);
}

/* STO3 holds also for a program with a fault: the database refuses. */
CASE(the_database_refuses_a_second_draft)
{
    OK(tide_assistant_draft_begin(*rows, 3, "t", "tok1", 110, err));
    OK(tide_assistant_draft_begin(*rows, 3, "u", "tok2", 110, err));
    assert_int_not_equal(tide_rows_do(*rows, "test", NULL,
                                      "INSERT INTO assistant_draft(token, account, thread_id,"
                                      " state, draft_id, message_id, begun_ms, made_ms)"
                                      " VALUES('tok3', 3, 't', 1, 'r', 'm', 1, 1)"),
                         TIDE_OK);
}

/* ---- marks ---- */

/* STO7 and J22: skipped once each; what history never shows is forgotten in time. */
CASE(a_mark_of_ours_is_taken_once)
{
    bool ours = true;
    OK(tide_assistant_mark_take(*rows, 3, "m1", "L", &ours, err));
    assert_false(ours);
    OK(tide_assistant_mark_put(*rows, 3, "m1", "L", 7, 100, err));
    OK(tide_assistant_mark_put(*rows, 3, "m1", "L", 7, 101, err)); /* the job again */
    OK(tide_assistant_mark_put(*rows, 3, "m1", "L", 8, 102, err)); /* another job */
    OK(tide_assistant_mark_put(*rows, 3, "m2", "L", 8, 102, err));
    for (unsigned i = 0; i < 3; i++) {
        OK(tide_assistant_mark_take(*rows, 3, "m1", "L", &ours, err));
        assert_int_equal(ours, i < 2);
    }
    OK(tide_assistant_mark_take(*rows, 4, "m2", "L", &ours, err));
    assert_false(ours);
    OK(tide_assistant_mark_take(*rows, 3, "m2", "K", &ours, err));
    assert_false(ours);
    OK(tide_assistant_mark_take(*rows, 3, "m2", "L", &ours, err));
    assert_true(ours);
}

CASE(a_mark_is_open_until_its_job_ends)
{
    bool open = true;
    OK(tide_assistant_mark_open(*rows, 3, "m1", "L", &open, err));
    assert_false(open);
    OK(tide_assistant_mark_put(*rows, 3, "m1", "L", 7, 100, err));
    for (int i = 0; i < 2; i++) { /* it is not taken */
        OK(tide_assistant_mark_open(*rows, 3, "m1", "L", &open, err));
        assert_true(open);
    }
    OK(tide_assistant_mark_open(*rows, 3, "m1", "K", &open, err));
    assert_false(open);
    OK(tide_assistant_mark_open(*rows, 4, "m1", "L", &open, err));
    assert_false(open);
    OK(tide_assistant_marks_done(*rows, 3, 7, 200, err));
    OK(tide_assistant_mark_open(*rows, 3, "m1", "L", &open, err));
    assert_false(open);
}

CASE(marks_that_history_never_shows_are_forgotten)
{
    const uint64_t day_ms = 86400000, now_ms = 10 * day_ms;
    OK(tide_assistant_mark_put(*rows, 3, "old", "L", 1, now_ms - 100000, err));
    OK(tide_assistant_marks_done(*rows, 3, 1, now_ms - 90000, err));
    OK(tide_assistant_mark_put(*rows, 3, "new", "L", 2, now_ms - 2000, err));
    OK(tide_assistant_marks_done(*rows, 3, 2, now_ms - 1000, err)); /* history may lag */
    OK(tide_assistant_mark_put(*rows, 3, "open", "L", 3, now_ms - 100000, err));
    OK(tide_assistant_mark_put(*rows, 3, "lost", "L", 4, now_ms - 2 * day_ms, err));
    OK(tide_assistant_mark_put(*rows, 4, "other", "L", 5, 1, err));
    OK(tide_assistant_marks_prune(*rows, 3, now_ms, false, err));
    static const struct {
        const char *message;
        uint32_t account;
        bool kept;
    } wanted[] = {{"old", 3, false},
                  {"new", 3, true},
                  {"open", 3, true},
                  {"lost", 3, false},
                  {"other", 4, true}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        bool ours = false;
        OK(tide_assistant_mark_take(*rows, wanted[i].account, wanted[i].message, "L", &ours, err));
        assert_int_equal(ours, wanted[i].kept);
    }
    /* History that was left out shows nothing any more. */
    OK(tide_assistant_mark_put(*rows, 3, "new", "L", 2, now_ms - 2000, err));
    OK(tide_assistant_marks_done(*rows, 3, 2, now_ms - 1000, err));
    OK(tide_assistant_marks_prune(*rows, 3, now_ms, true, err));
    bool ours = true;
    OK(tide_assistant_mark_take(*rows, 3, "new", "L", &ours, err));
    assert_false(ours);
}

/* ---- model calls and runs ---- */

struct seen {
    unsigned emails, events, calls, runs, drafts;
    uint64_t last_event, last_call;
    char text[200];
};

static void see_call(const struct tide_assistant_call *call, void *arg)
{
    struct seen *seen = arg;
    seen->calls++;
    (void)snprintf(seen->text, sizeof seen->text, "%s %s %s %.*s %.*s %d %.*s %s %d %d %d",
                   call->key, call->kind, call->model, (int)call->system.bytes, call->system.data,
                   (int)call->prompt.bytes, call->prompt.data, call->ended, (int)call->answer.bytes,
                   call->answer.data == NULL ? "" : call->answer.data, call->error,
                   (int)call->tokens_in, (int)call->tokens_out, (int)call->latency_ms);
}

/* STO8 */
CASE(a_model_call_is_recorded_once_and_ends)
{
    struct tide_assistant_call call = {.account = 3,
                                       .thread_id = "t",
                                       .key = "classify/3/t/m1",
                                       .kind = "classify",
                                       .model = "fast",
                                       .system = TIDE_TEXT("be brief"),
                                       .prompt = TIDE_TEXT("{\"mail\":1}"),
                                       .job = 7,
                                       .begun_ms = 100};
    uint64_t id = 0, again = 0;
    bool ended = true;
    OK(tide_assistant_call_begin(*rows, &call, &id, &ended, err));
    assert_false(ended);
    call.begun_ms = 200;
    OK(tide_assistant_call_begin(*rows, &call, &again, &ended, err));
    assert_int_equal(again, id);
    assert_false(ended);
    bool open = false;
    OK(tide_assistant_call_open(*rows, 3, "t", 100, &open, err));
    assert_true(open);
    OK(tide_assistant_call_open(*rows, 3, "t", 101, &open, err));
    assert_false(open);
    call.id = id;
    call.answer = TIDE_TEXT("{\"category\":\"fyi\"}");
    call.tokens_in = 11;
    call.tokens_out = 5;
    call.latency_ms = 300;
    call.ended_ms = 400;
    OK(tide_assistant_call_end(*rows, &call, err));
    OK(tide_assistant_call_begin(*rows, &call, &again, &ended, err));
    assert_true(ended);
    OK(tide_assistant_call_open(*rows, 3, "t", 0, &open, err));
    assert_false(open);
    struct seen seen = {.calls = 0};
    OK(tide_assistant_call_get(*rows, "classify/3/t/m1", see_call, &seen, err));
    assert_string_equal(seen.text, "classify/3/t/m1 classify fast be brief {\"mail\":1} 1 "
                                   "{\"category\":\"fyi\"}  11 5 300");
    assert_int_equal(tide_assistant_call_get(*rows, "x", see_call, &seen, NULL), TIDE_NOT_FOUND);
    call.id = 999;
    assert_int_equal(tide_assistant_call_end(*rows, &call, NULL), TIDE_NOT_FOUND);
}

static void see_run(const struct tide_assistant_run *run, void *arg)
{
    struct seen *seen = arg;
    seen->runs++;
    (void)snprintf(seen->text, sizeof seen->text, "%s %s %s %.*s %d %.*s %d", run->profile,
                   run->rule, run->status, (int)run->tools.bytes, run->tools.data,
                   (int)run->iterations, (int)run->final.bytes,
                   run->final.data == NULL ? "" : run->final.data, (int)run->ended_ms);
}

static void see_open(const char *thread_id, const char *message_id, void *arg)
{
    assert_string_equal(thread_id, "t");
    assert_string_equal(message_id, "m1");
    ++*(unsigned *)arg;
}

CASE(a_run_is_recorded_once_and_ends)
{
    struct tide_assistant_run run = {.account = 3,
                                     .thread_id = "t",
                                     .message_id = "m1",
                                     .key = "agent/3/m1",
                                     .profile = "helpdesk",
                                     .rule = "crisp",
                                     .begun_ms = 100};
    uint64_t id = 0, again = 0;
    struct seen seen = {.runs = 0};
    OK(tide_assistant_run_begin(*rows, &run, &id, err));
    OK(tide_assistant_run_begin(*rows, &run, &again, err));
    assert_int_equal(again, id);
    unsigned open = 0;
    OK(tide_assistant_runs_open(*rows, 3, 99, 10, see_open, &open, err));
    OK(tide_assistant_runs_open(*rows, 4, 100, 10, see_open, &open, err));
    assert_int_equal(open, 0);
    OK(tide_assistant_runs_open(*rows, 3, 100, 10, see_open, &open, err));
    assert_int_equal(open, 1);
    OK(tide_assistant_run_get(*rows, "agent/3/m1", see_run, &seen, err));
    assert_string_equal(seen.text, "helpdesk crisp running [] 0  0");
    run.id = id;
    run.status = "done";
    run.tools = TIDE_TEXT("[{\"name\":\"search\"}]");
    run.iterations = 2;
    run.final = TIDE_TEXT("bye");
    run.ended_ms = 300;
    OK(tide_assistant_run_put(*rows, &run, err));
    OK(tide_assistant_runs_open(*rows, 3, 100, 10, see_open, &open, err));
    assert_int_equal(open, 1);
    OK(tide_assistant_run_get(*rows, "agent/3/m1", see_run, &seen, err));
    assert_string_equal(seen.text, "helpdesk crisp done [{\"name\":\"search\"}] 2 bye 300");
    tide_auto_buf state = tide_buf_heap(1000);
    OK(tide_assistant_run_state_put(*rows, id, TIDE_TEXT("{\"status\":\"running\"}"), err));
    OK(tide_assistant_run_state_get(*rows, id, &state, err));
    assert_string_equal(tide_buf_cstr(&state), "{\"status\":\"running\"}");
    assert_int_equal(tide_assistant_run_state_put(*rows, id + 1, TIDE_TEXT("{}"), NULL),
                     TIDE_NOT_FOUND);
}

/* STO10 */
CASE(a_run_has_one_reply)
{
    struct tide_assistant_reply first = {.run = 7, .call = 2, .message_id = "a@b"};
    struct tide_assistant_reply second = {.run = 7, .call = 5, .message_id = "c@d"};
    bool again = true;
    OK(tide_assistant_reply_begin(*rows, 3, &first, 100, &again, err));
    assert_false(again);
    OK(tide_assistant_reply_begin(*rows, 3, &second, 200, &again, err));
    assert_true(again);
    assert_int_equal(second.call, 2);
    assert_string_equal(second.message_id, "a@b");
    assert_false(second.sent);
    OK(tide_assistant_reply_sent(*rows, 7, 300, err));
    OK(tide_assistant_reply_get(*rows, 7, &second, err));
    assert_true(second.sent);
    OK(tide_assistant_reply_drop(*rows, 7, err));
    assert_int_equal(tide_assistant_reply_get(*rows, 7, &second, NULL), TIDE_NOT_FOUND);
}

/* ---- looking ---- */

static void see_email(const struct tide_assistant_email *email, void *arg)
{
    struct seen *seen = arg;
    seen->emails++;
    const size_t bytes = strlen(seen->text);
    (void)snprintf(seen->text + bytes, sizeof seen->text - bytes, "%s ", email->thread_id);
}

static void see_event(const struct tide_assistant_event *one, void *arg)
{
    struct seen *seen = arg;
    seen->events++;
    seen->last_event = one->id;
}

static void say(struct seen *seen, const char *text)
{
    const size_t bytes = strlen(seen->text);
    (void)snprintf(seen->text + bytes, sizeof seen->text - bytes, "%s ", text);
}

static void say_event(const struct tide_assistant_event *one, void *arg)
{
    see_event(one, arg);
    say(arg, one->detail);
}

static void say_call(const struct tide_assistant_call *call, void *arg)
{
    struct seen *seen = arg;
    seen->last_call = call->id;
    assert_int_equal(call->system.bytes + call->prompt.bytes + call->answer.bytes, 0);
    say(seen, call->key);
}

static void see_texts(const struct tide_assistant_call *call, void *arg)
{
    struct seen *seen = arg;
    (void)snprintf(seen->text, sizeof seen->text, "%.*s, %.*s, %.*s", (int)call->system.bytes,
                   call->system.data, (int)call->prompt.bytes, call->prompt.data,
                   (int)call->answer.bytes, call->answer.bytes > 0 ? call->answer.data : "");
}

static void say_run(const struct tide_assistant_run *run, void *arg)
{
    char text[200];
    (void)snprintf(text, sizeof text, "%s/%s/%.*s/%.*s", run->profile, run->status,
                   (int)run->tools.bytes, run->tools.bytes > 0 ? run->tools.data : "",
                   (int)run->final.bytes, run->final.bytes > 0 ? run->final.data : "");
    say(arg, text);
}

static void see_user(const struct tide_assistant_user *user, void *arg)
{
    (void)user;
    ((struct seen *)arg)->emails++;
}

static void see_draft(const struct tide_assistant_draft *draft, void *arg)
{
    (void)draft;
    ((struct seen *)arg)->drafts++;
}

/* LOK1, with equal times across the end of a page. */
CASE(pages_show_each_record_once_the_newest_first)
{
    for (unsigned i = 0; i < 7; i++) {
        struct tide_assistant_email one =
            record(textf("t%u", i), i % 2 == 0 ? TIDE_ASSISTANT_FYI : TIDE_ASSISTANT_NEEDS_RESPONSE,
                   1000 + i / 3);
        if (i == 6)
            one.account = 4;
        if (i == 4)
            (void)snprintf(one.sender, sizeof one.sender, "b@example.com");
        OK(tide_assistant_email_put(*rows, &one, "classified", 9, err));
    }
    static const struct {
        struct tide_assistant_filter filter;
        const char *order;
    } lists[] = {
        {{.account = 0}, "t6 t5 t4 t3 t2 t1 t0 "},
        {{.account = 3}, "t5 t4 t3 t2 t1 t0 "},
        {{.account = 3, .status = TIDE_ASSISTANT_PENDING}, "t5 t3 t1 "},
        {{.account = 3, .category = TIDE_ASSISTANT_FYI}, "t4 t2 t0 "},
        {{.account = 3, .sender = "b@example.com"}, "t4 "},
        {{.status = TIDE_ASSISTANT_SKIPPED, .category = TIDE_ASSISTANT_FYI}, "t6 t4 t2 t0 "},
        {{.account = 3, .status = TIDE_ASSISTANT_SENT}, ""},
        {{.account = 3, .oldest_first = true}, "t0 t1 t2 t3 t4 t5 "},
        {{.status = TIDE_ASSISTANT_SKIPPED, .oldest_first = true}, "t0 t2 t4 t6 "},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (size_t count = 1; count <= 8; count++) {
            struct tide_assistant_cursor cursor = {.id = 0};
            struct seen seen = {.emails = 0};
            bool more = true;
            while (more) {
                /* A cursor survives its way through a link. */
                char text[TIDE_ASSISTANT_CURSOR_BYTES];
                tide_assistant_cursor_text(&cursor, text);
                assert_true(tide_assistant_cursor_of(tide_text_of(text), &cursor));
                OK(tide_assistant_emails(*rows, &lists[i].filter, &cursor, count, see_email, &seen,
                                         &more, err));
            }
            uint64_t total = 99;
            assert_string_equal(seen.text, lists[i].order);
            OK(tide_assistant_emails_total(*rows, &lists[i].filter, &total, err));
            if (lists[i].filter.sender == NULL)
                assert_int_equal(total, seen.emails);
        }
    struct tide_assistant_cursor cursor;
    static const char *const wrong[] = {"1",
                                        ".",
                                        "1.",
                                        ".1",
                                        "1.0",
                                        "a.1",
                                        "1.2.3",
                                        "1.99999999999999999999",
                                        "18446744073709551615.1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(tide_assistant_cursor_of(tide_text_of(wrong[i]), &cursor));
}

CASE(a_thread_is_explained_and_counted)
{
    struct tide_assistant_email one = record("t", TIDE_ASSISTANT_NEEDS_RESPONSE, 100);
    struct tide_assistant_counts counts;
    uint64_t id = 0;
    bool ended = false;
    struct tide_assistant_call call = {.account = 3,
                                       .thread_id = "t",
                                       .key = "k",
                                       .kind = "draft",
                                       .model = "good",
                                       .begun_ms = 500};
    OK(tide_assistant_email_put(*rows, &one, "classified", 9, err));
    OK(tide_assistant_draft_begin(*rows, 3, "t", "tok1", 110, err));
    OK(tide_assistant_call_begin(*rows, &call, &id, &ended, err));
    call.id = id;
    call.tokens_in = 20;
    call.tokens_out = 3;
    call.ended_ms = 600;
    OK(tide_assistant_call_end(*rows, &call, err));
    const struct tide_assistant_event drafted = event("t", "draft_created", 120);
    OK(tide_assistant_email_move(*rows, &drafted, TIDE_ASSISTANT_DRAFTED, err));
    struct seen seen = {.emails = 0};
    const struct tide_assistant_explain explain = {.email = see_email,
                                                   .event = see_event,
                                                   .call = see_call,
                                                   .run = see_run,
                                                   .draft = see_draft,
                                                   .arg = &seen};
    OK(tide_assistant_explain(*rows, 3, "t", &explain, err));
    assert_int_equal(seen.emails, 1);
    assert_int_equal(seen.events, 2);
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.drafts, 1);
    assert_int_equal(seen.runs, 0);
    assert_int_equal(tide_assistant_explain(*rows, 3, "u", &explain, NULL), TIDE_NOT_FOUND);
    OK(tide_assistant_counts(*rows, 3, 500, &counts, err));
    assert_int_equal(counts.records, 1);
    assert_int_equal(counts.by_status[TIDE_ASSISTANT_DRAFTED], 1);
    assert_int_equal(counts.by_category[TIDE_ASSISTANT_NEEDS_RESPONSE], 1);
    assert_int_equal(counts.calls, 1);
    assert_int_equal(counts.tokens_in, 20);
    OK(tide_assistant_counts(*rows, 3, 501, &counts, err));
    assert_int_equal(counts.calls, 0);
}

/* Walks through events by pages, and says their details in order. */
static void walk_events(const tide_rows *rows, struct tide_assistant_log log, const char *expected)
{
    for (log.count = 1; log.count <= 5; log.count++) {
        struct seen seen = {.emails = 0};
        bool more = true;
        for (log.after = 0; more; log.after = seen.last_event)
            OK(tide_assistant_events(*rows, &log, say_event, &seen, &more, err));
        assert_string_equal(seen.text, expected);
    }
}

/* LOK1 for events, under each filter and in both orders. */
CASE(events_are_listed_by_user_thread_and_kind)
{
    static const struct tide_assistant_event made[] = {
        {.account = 3, .thread_id = "t", .kind = "classified", .detail = "a", .at_ms = 9},
        {.account = 4, .thread_id = "t", .kind = "classified", .detail = "b", .at_ms = 8},
        {.account = 3, .thread_id = "u", .kind = "draft_created", .detail = "c", .at_ms = 7},
        {.account = 3, .thread_id = "t", .kind = "classified", .detail = "d", .at_ms = 6},
    };
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        OK(tide_assistant_event_add(*rows, &made[i], err));
    walk_events(rows, (struct tide_assistant_log){.account = 0}, "d c b a ");
    walk_events(rows, (struct tide_assistant_log){.oldest_first = true}, "a b c d ");
    walk_events(rows, (struct tide_assistant_log){.account = 3}, "d c a ");
    walk_events(rows, (struct tide_assistant_log){.thread_id = "t"}, "d b a ");
    walk_events(rows, (struct tide_assistant_log){.kind = "classified", .oldest_first = true},
                "a b d ");
    walk_events(rows,
                (struct tide_assistant_log){.account = 3, .thread_id = "t", .kind = "classified"},
                "d a ");
    walk_events(rows, (struct tide_assistant_log){.account = 5}, "");
}

/* LOK2, and a call by its end. */
CASE(calls_and_runs_are_listed_without_their_texts)
{
    static const struct {
        const char *key, *error;
        bool ended;
    } made[] = {{"1", "", true}, {"2", "refused", true}, {"3", "", false}};
    static const struct {
        tide_assistant_outcome outcome;
        const char *keys;
    } lists[] = {{TIDE_ASSISTANT_ANY, "3 2 1 "},
                 {TIDE_ASSISTANT_ANSWERED, "1 "},
                 {TIDE_ASSISTANT_CALL_FAILED, "2 "},
                 {TIDE_ASSISTANT_WAITS, "3 "}};
    struct seen seen = {.emails = 0};
    bool more = true, ended = false;
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        struct tide_assistant_call call = {.account = 3,
                                           .thread_id = "t",
                                           .key = made[i].key,
                                           .kind = "draft",
                                           .model = "good",
                                           .system = TIDE_TEXT("be kind"),
                                           .prompt = TIDE_TEXT("write"),
                                           .begun_ms = 500,
                                           .answer = TIDE_TEXT("written"),
                                           .error = made[i].error,
                                           .ended_ms = 600};
        OK(tide_assistant_call_begin(*rows, &call, &call.id, &ended, err));
        if (made[i].ended)
            OK(tide_assistant_call_end(*rows, &call, err));
    }
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const struct tide_assistant_log log = {
            .account = 3, .kind = "draft", .outcome = lists[i].outcome, .count = 10};
        seen = (struct seen){.emails = 0};
        OK(tide_assistant_calls(*rows, &log, say_call, &seen, &more, err));
        assert_string_equal(seen.text, lists[i].keys);
        assert_false(more);
    }
    OK(tide_assistant_call_look(*rows, seen.last_call, see_texts, &seen, err));
    assert_string_equal(seen.text, "be kind, write, ");
    assert_int_equal(tide_assistant_call_look(*rows, 99, see_texts, &seen, NULL), TIDE_NOT_FOUND);
    struct tide_assistant_run run = {.account = 3,
                                     .thread_id = "t",
                                     .message_id = "m",
                                     .key = "r",
                                     .profile = "support",
                                     .rule = "helpdesk",
                                     .begun_ms = 1,
                                     .status = "done",
                                     .tools = TIDE_TEXT("[1]"),
                                     .final = TIDE_TEXT("bye"),
                                     .ended_ms = 2};
    struct tide_assistant_log log = {.kind = "done", .count = 10};
    OK(tide_assistant_run_begin(*rows, &run, &run.id, err));
    OK(tide_assistant_run_put(*rows, &run, err));
    seen = (struct seen){.emails = 0};
    OK(tide_assistant_runs(*rows, &log, say_run, &seen, &more, err));
    assert_string_equal(seen.text, "support/done// ");
    OK(tide_assistant_run_look(*rows, run.id, say_run, &seen, err));
    assert_string_equal(seen.text, "support/done// support/done/[1]/bye ");
    log.kind = "failed";
    OK(tide_assistant_runs(*rows, &log, see_run, &seen, &more, err));
    assert_int_equal(seen.runs, 0);
}

/* STO6: a user goes with all its rows, and with no other's. */
CASE(a_user_is_removed_with_everything)
{
    static const char *const names[] = {"label", "setting", "sync", "email", "event", "tally",
                                        "draft", "mark",    "call", "run",   "reply", "user"};
    for (uint32_t account = 3; account < 5; account++) {
        struct tide_assistant_user user = {.account = account};
        struct tide_assistant_email one = record("t", TIDE_ASSISTANT_FYI, 1);
        const struct tide_assistant_call call = {.account = account,
                                                 .thread_id = "t",
                                                 .key = account == 3 ? "a" : "b",
                                                 .kind = "draft",
                                                 .model = "m",
                                                 .begun_ms = 1};
        const struct tide_assistant_run run = {.account = account,
                                               .thread_id = "t",
                                               .message_id = "m",
                                               .key = account == 3 ? "a" : "b",
                                               .profile = "p",
                                               .rule = "r",
                                               .begun_ms = 1};
        uint64_t id = 0;
        bool ended = false;
        (void)snprintf(user.email, sizeof user.email, "%u@example.org", (unsigned)account);
        one.account = account;
        OK(tide_assistant_user_put(*rows, &user, err));
        OK(tide_assistant_label_put(*rows, account, TIDE_ASSISTANT_LABEL_FYI, "L", err));
        OK(tide_assistant_setting_put(*rows, account, "a", "b", err));
        OK(tide_assistant_sync_move(*rows, account, "", "1", true, 1, err));
        OK(tide_assistant_email_put(*rows, &one, "classified", 1, err));
        OK(tide_assistant_draft_begin(*rows, account, "t", account == 3 ? "a" : "b", 1, err));
        OK(tide_assistant_mark_put(*rows, account, "m", "L", 1, 1, err));
        OK(tide_assistant_call_begin(*rows, &call, &id, &ended, err));
        OK(tide_assistant_run_begin(*rows, &run, &id, err));
        struct tide_assistant_reply reply = {.run = id, .call = 1, .message_id = "a@b"};
        OK(tide_assistant_reply_begin(*rows, account, &reply, 1, &ended, err));
    }
    OK(tide_assistant_user_remove(*rows, 3, err));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *gone = textf("SELECT count(*) FROM assistant_%s WHERE account = 3", names[i]);
        assert_int_equal(number(rows, gone), 0);
        const char *kept = textf("SELECT count(*) FROM assistant_%s WHERE account = 4", names[i]);
        assert_int_equal(number(rows, kept), 1);
    }
}

/* Readers work where the assistant never ran. */
TEST_ON(without_tables_there_is_nothing, const tide_rows *rows, rows_setup, rows_teardown)
{
    struct tide_assistant_counts counts;
    struct tide_assistant_cursor cursor = {.id = 0};
    const struct tide_assistant_filter all = {.account = 0};
    const struct tide_assistant_explain explain = {.arg = NULL};
    struct seen seen = {.emails = 0};
    bool more = true;
    OK(tide_assistant_counts(*rows, 3, 0, &counts, err));
    assert_int_equal(counts.records, 0);
    OK(tide_assistant_emails(*rows, &all, &cursor, 10, see_email, &seen, &more, err));
    assert_false(more);
    const struct tide_assistant_log log = {.count = 10};
    uint64_t total = 1;
    OK(tide_assistant_events(*rows, &log, see_event, &seen, &more, err));
    OK(tide_assistant_calls(*rows, &log, see_call, &seen, &more, err));
    OK(tide_assistant_runs(*rows, &log, see_run, &seen, &more, err));
    OK(tide_assistant_emails_total(*rows, &all, &total, err));
    assert_int_equal(total, 0);
    OK(tide_assistant_users_each(*rows, see_user, &seen, err));
    assert_int_equal(seen.emails + seen.events + seen.calls + seen.runs, 0);
    struct tide_assistant_user user;
    assert_int_equal(tide_assistant_user_named(*rows, "a@b", &user, NULL), TIDE_NOT_FOUND);
    assert_int_equal(tide_assistant_call_look(*rows, 1, see_call, &seen, NULL), TIDE_NOT_FOUND);
    assert_int_equal(tide_assistant_run_look(*rows, 1, see_run, &seen, NULL), TIDE_NOT_FOUND);
    assert_int_equal(tide_assistant_explain(*rows, 3, "t", &explain, NULL), TIDE_NOT_FOUND);
}

int main(void)
{
    return rows_tests_run();
}
