/* engine_control_test.c - the engine seen and ruled from outside: snapshot, the
 * control socket, alerts, purge, settings that change while it runs. */
#include "engine_fixture.h"

#include "engine/control/control.h"
#include "engine/control/metrics.h"
#include "tidemark_inside.h"
#include "world/socket.h"
#include "support/heap.h"

#include <sched.h>

/* ---- asking -------------------------------------------------------------------------- */

static tide_status take_line(void *arg, tide_text line)
{
    json_t **answer = arg;
    json_decref(*answer);
    *answer = json_loadb(line.data, line.bytes, 0, NULL);
    return *answer == NULL ? TIDE_INVALID : TIDE_OK;
}

/* The answer to a request; the caller owns it. */
__attribute__((format(printf, 2, 3))) static json_t *ask(struct fixture *f, const char *format, ...)
{
    char request[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(request, sizeof request, format, args);
    va_end(args);
    const char *path = textf("%s/" TIDE_CONTROL_SOCKET, f->dir);
    json_t *answer = NULL;
    OK(tide_socket_ask(f->world, tide_mem_heap(), path, tide_text_of(request), TEST_WAIT_MS, NULL,
                       take_line, &answer, err));
    assert_non_null(answer);
    return answer;
}

static void answer_is(json_t *answer, tide_status status)
{
    tide_error told = {TIDE_OK, 0, ""};
    tide_status rc = tide_control_answer(answer, &told);
    if (rc != status)
        fail_msg("%s instead of %s: %s", tide_status_name(rc), tide_status_name(status), told.text);
}

static uint64_t number_of(json_t *answer, const char *field)
{
    assert_true(json_is_integer(json_object_get(answer, field)));
    return (uint64_t)json_integer_value(json_object_get(answer, field));
}

/* Asks, expects success, and gives one number of the answer. */
#define ASK_COUNT(f, ...)                                                                          \
    __extension__({                                                                                \
        json_t *counted = ask(f, __VA_ARGS__);                                                     \
        answer_is(counted, TIDE_OK);                                                               \
        uint64_t count = number_of(counted, "count");                                              \
        json_decref(counted);                                                                      \
        count;                                                                                     \
    })

static void ask_status(struct fixture *f, const char *request, tide_status status)
{
    json_t *answer = ask(f, "%s", request);
    answer_is(answer, status);
    json_decref(answer);
}

/* ---- a world to look at ------------------------------------------------------------------ */

struct world_seen {
    struct gate gate;
    uint64_t fail; /* while it is not zero */
};

static tide_status work_handler(tide_job *job, void *context, tide_error *err)
{
    struct world_seen *seen = context;
    (void)job;
    if (get(&seen->fail) != 0)
        return tide_error_set(err, TIDE_PERMANENT, "as told");
    return gate_pass(&seen->gate, job);
}

static tide_status item_handler(tide_job *job, void *context, tide_error *err)
{
    struct world_seen *seen = context;
    (void)err;
    for (size_t i = 0; i < tide_job_items(job); i++) {
        bool bad = strncmp(tide_job_item(job, i).data, "bad", 3) == 0 && get(&seen->fail) != 0;
        if (bad)
            tide_job_item_failed(job, i, TIDE_PERMANENT, "cannot be stored");
        else
            tide_job_item_done(job, i);
    }
    return TIDE_OK;
}

/* ---- the snapshot (E9.1) ------------------------------------------------------------------- */

static const char *const engine_fields[] = {
    "run",   "lanes", "window",   "tracker_bytes", "done",    "failed",      "retried",
    "split", "bad",   "accounts", "window_left_s", "streams", "transactions"};
static const char *const account_fields[] = {
    "account", "state",          "running", "waiting",          "blocked",           "delayed",
    "parked",  "bytes",          "tokens",  "rate_units_per_s", "window_used_units", "workers",
    "calls",   "calls_by_class", "methods", "in_flight",        "failing_items",     "failed",
    "retried", "split",          "bad"};
static const char *const cycle_fields[] = {"ordinal", "start", "end",         "total",
                                           "done",    "bad",   "outstanding", "last_beat_ms_ago"};

#define HAS_ALL(object, fields)                                                                    \
    for (size_t field = 0; field < sizeof(fields) / sizeof(fields)[0]; field++)                    \
        if (json_object_get(object, (fields)[field]) == NULL)                                      \
            fail_msg("no field %s", (fields)[field]);

static json_t *snapshot(struct fixture *f)
{
    tide_buf text = heap_buf(1 << 20);
    OK(tide_engine_snapshot(f->engine, &text, err));
    json_t *json = json_loadb(text.data, text.bytes, 0, NULL);
    assert_non_null(json);
    tide_buf_done(&text);
    return json;
}

OPENED(one_look_shows_everything)
{
    struct world_seen seen = {{0}, 0};
    uint32_t kind = DEFINE(f, "work", work_handler, .context = &seen);
    uint64_t stream = 0;
    uint32_t account = new_account(f, "a@example.org", "default");
    OK(tide_stream_open(f->engine, account, "history", NULL, &stream, err));
    struct tide_spec work = {.kind = kind, .account = account, .size_bytes = 5};
    struct tide_spec later = {.kind = kind, .account = account, .delay_ms = 60000};
    OK(tide_cycle_open(f->engine, stream, "a", "b", &work, 1, NULL, err));
    OK(tide_cycle_open(f->engine, stream, "b", "c", &later, 1, NULL, err));
    start(f);
    UNTIL(get(&seen.gate.arrived) == 1);
    uint64_t writes = progress(f).ledger_writes;
    json_t *json = snapshot(f);
    assert_int_equal(progress(f).ledger_writes, writes); /* no database work */
    HAS_ALL(json, engine_fields);
    json_t *first = json_array_get(json_object_get(json, "accounts"), 0);
    HAS_ALL(first, account_fields);
    assert_string_equal(json_string_value(json_object_get(first, "account")), "a@example.org");
    assert_int_equal(number_of(first, "running"), 1);
    assert_int_equal(number_of(first, "delayed"), 1);
    assert_int_equal(number_of(first, "bytes"), 5);
    json_t *line = json_array_get(json_object_get(json, "streams"), 0);
    json_t *open = json_object_get(line, "open");
    assert_int_equal(json_array_size(open), 2);
    HAS_ALL(json_array_get(open, 0), cycle_fields);
    assert_string_equal(json_string_value(json_object_get(json_array_get(open, 1), "end")), "c");
    assert_string_equal(json_string_value(json_object_get(line, "tidemark")), "");
    json_decref(json);
    gate_open(&seen.gate);
    UNTIL(sql(f, "SELECT ordinal FROM stream") == 1);
    json_t *after = snapshot(f);
    line = json_array_get(json_object_get(after, "streams"), 0);
    assert_string_equal(json_string_value(json_object_get(line, "tidemark")), "b");
    json_decref(after);
}

/* ---- commands -------------------------------------------------------------------------------- */

OPENED(it_answers_who_it_is_and_refuses_nonsense)
{
    json_t *pong = ask(f, "{\"op\":\"ping\"}");
    answer_is(pong, TIDE_OK);
    assert_int_equal(number_of(pong, "pid"), getpid());
    assert_true(json_is_string(json_object_get(pong, "run")));
    assert_true(number_of(pong, "since") > 1600000000000u);
    json_decref(pong);
    start(f);
    ask_status(f, "{\"op\":\"dance\"}", TIDE_INVALID);
    ask_status(f, "{\"po\":1}", TIDE_INVALID);
    ask_status(f, "not json", TIDE_INVALID);
    ask_status(f, "{\"op\":\"retry\",\"filter\":{\"kind\":\"nobody\"}}", TIDE_NOT_FOUND);
    ask_status(f, "{\"op\":\"retry\",\"filter\":{\"colour\":1}}", TIDE_INVALID);
    ask_status(f, "{\"op\":\"retry\",\"filter\":{\"id\":12}}", TIDE_NOT_FOUND);
    ask_status(f, "{\"op\":\"cancel\",\"filter\":{\"id\":12}}", TIDE_NOT_FOUND);
    ask_status(f, "{\"op\":\"pause\"}", TIDE_INVALID);
    ask_status(f, "{\"op\":\"halt\",\"account\":\"nobody\"}", TIDE_NOT_FOUND);
    ask_status(f, "{\"op\":\"halt\"}", TIDE_INVALID);
}

OPENED(retry_cancel_and_accept_take_filters)
{
    struct world_seen seen = {{0}, 1};
    uint32_t kind = DEFINE(f, "work", work_handler, .context = &seen);
    uint64_t stream = 0;
    OK(tide_stream_open(f->engine, 0, "history", NULL, &stream, err));
    gate_open(&seen.gate);
    start(f);
    enum { COUNT = 1100 }; /* more than two slices */
    static struct tide_spec specs[COUNT];
    for (int i = 0; i < COUNT; i++)
        specs[i] = (struct tide_spec){.kind = kind};
    OK(tide_enqueue(f->engine, specs, COUNT, NULL, err));
    OK(tide_cycle_open(f->engine, stream, "", "b", specs, 1, NULL, err));
    finish(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 3"), COUNT + 1);
    /* Accepting the failed job closes the gap of its cycle (E5.2). */
    assert_int_equal(ASK_COUNT(f, "{\"op\":\"accept\",\"filter\":{\"id\":%d}}", COUNT + 1), 1);
    struct tide_stream_state at = {0};
    UNTIL(tide_stream_state(f->engine, stream, &at, NULL) == TIDE_OK && at.cycles_finished == 1);
    assert_string_equal(at.cursor, "b");
    assert_int_equal(ASK_COUNT(f, "{\"op\":\"retry\",\"filter\":{\"id\":1}}"), 1);
    finish(f);
    assert_int_equal(row_state(f, 1), 3); /* failed again */
    (void)add(&seen.fail, UINT64_MAX);
    assert_int_equal(
        ASK_COUNT(f, "{\"op\":\"retry\",\"filter\":{\"kind\":\"work\",\"state\":\"failed\"}}"),
        COUNT);
    finish(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 2"), COUNT + 1);
    for (int i = 0; i < COUNT; i++)
        specs[i].delay_ms = 60000;
    OK(tide_enqueue(f->engine, specs, COUNT, NULL, err));
    assert_int_equal(ASK_COUNT(f, "{\"op\":\"cancel\",\"filter\":{\"state\":\"pending\"}}"), COUNT);
    finish(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 4"), COUNT);
}

OPENED(a_running_job_is_named_when_it_is_canceled)
{
    struct world_seen seen = {{0}, 0};
    uint32_t kind = DEFINE(f, "work", work_handler, .context = &seen);
    uint64_t id = ENQUEUE(f, .kind = kind);
    start(f);
    UNTIL(get(&seen.gate.arrived) == 1);
    json_t *answer = ask(f, "{\"op\":\"cancel\",\"filter\":{\"id\":%" PRIu64 "}}", id);
    answer_is(answer, TIDE_OK);
    json_t *running = json_object_get(answer, "running");
    assert_int_equal(json_array_size(running), 1);
    assert_int_equal(json_integer_value(json_array_get(running, 0)), id);
    json_decref(answer);
    finish(f);
    assert_int_equal(row_state(f, id), 4);
}

CASE(pause_and_halt_hold_jobs_back_and_explain_says_so)
{
    struct world_seen seen = {{0}, 0};
    gate_open(&seen.gate);
    fixture_open(f);
    uint32_t kind = DEFINE(f, "work", work_handler, .context = &seen);
    uint32_t account = new_account(f, "a@example.org", "default");
    start(f);
    static const char *const holds[][2] = {
        {"{\"op\":\"pause\",\"kind\":\"work\"}", "{\"op\":\"resume\",\"kind\":\"work\"}"},
        {"{\"op\":\"pause\",\"account\":\"a@example.org\"}",
         "{\"op\":\"resume\",\"account\":\"a@example.org\"}"},
        {"{\"op\":\"halt\",\"account\":\"a@example.org\",\"reason\":\"tea\"}",
         "{\"op\":\"account_resume\",\"account\":\"a@example.org\"}"},
    };
    for (size_t i = 0; i < sizeof holds / sizeof holds[0]; i++) {
        ask_status(f, holds[i][0], TIDE_OK);
        uint64_t id = ENQUEUE(f, .kind = kind, .account = account);
        finish(f); /* what is held is not waited for */
        assert_int_equal(row_state(f, id), 0);
        json_t *why = ask(f, "{\"op\":\"explain\",\"id\":%" PRIu64 "}", id);
        answer_is(why, TIDE_OK);
        assert_true(json_string_length(json_object_get(why, "text")) > 5);
        json_decref(why);
        ask_status(f, holds[i][1], TIDE_OK);
        UNTIL(row_state(f, id) == 2);
    }
    uint64_t later = ENQUEUE(f, .kind = kind, .delay_ms = 60000);
    json_t *why = ask(f, "{\"op\":\"explain\",\"id\":%" PRIu64 "}", later);
    assert_string_equal(json_string_value(json_object_get(why, "why")), TIDE_CONTROL_WHY_BACKOFF);
    assert_true(number_of(why, "until") > 1600000000000u);
    json_decref(why);
}

OPENED(bad_items_are_retried_and_accepted_by_command)
{
    struct world_seen seen = {{0}, 1};
    struct tide_kind items = {
        .name = "items", .handler = item_handler, .context = &seen, .items = true};
    uint32_t kind = define(f, &items);
    uint32_t account = new_account(f, "a@example.org", "default");
    start(f);
    for (int i = 0; i < 4; i++) {
        const char *payload = textf("{\"items\":[\"x%d\",\"bad%d\",\"y%d\"]}", i, i, i);
        ENQUEUE(f, .kind = kind, .account = account, .payload = payload);
        finish(f);
    }
    UNTIL(sql(f, "SELECT count(*) FROM bad") == 4);
    assert_int_equal(ASK_COUNT(f, "{\"op\":\"bad_accept\",\"item\":\"bad0\"}"), 1);
    (void)add(&seen.fail, UINT64_MAX);
    assert_int_equal(ASK_COUNT(f, "{\"op\":\"bad_retry\",\"item\":\"bad1\"}"), 1);
    finish(f);
    assert_int_equal(ASK_COUNT(f, "{\"op\":\"bad_retry\",\"account\":\"a@example.org\","
                                  "\"kind\":\"items\"}") >= 2,
                     1);
    finish(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM bad WHERE item IN ('bad1','bad2','bad3')"), 0);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state <> 2"), 0);
}

/* A command marked them while no engine ran: all of them are tried, not one slice. */
OPENED(every_item_marked_for_a_retry_is_retried_at_the_start)
{
    struct world_seen seen = {{0}, 0};
    const struct tide_kind items = {
        .name = "items", .handler = item_handler, .context = &seen, .items = true};
    uint32_t kind = define(f, &items);
    uint32_t account = new_account(f, "a@example.org", "default");
    (void)sql(
        f,
        "INSERT INTO bad (account, kind, item, state, first_seen, last_tried, retries, reason)"
        " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1203)"
        " SELECT %" PRIu32 ", %" PRIu32 ", 'item ' || i, 4, 1, 1, 0, 'because' FROM n",
        account, kind);
    fixture_close(f);
    fixture_open(f);
    (void)define(f, &items);
    run_all(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM bad"), 0);
}

struct early_ask {
    struct fixture *f;
    json_t *answer;
};

static void ask_early(void *arg)
{
    struct early_ask *early = arg;
    early->answer = ask(early->f, "{\"op\":\"enqueue\",\"kind\":\"work\"}");
}

/* Kinds are defined after the socket is there: a command that comes in between waits for them. */
CASE(a_command_that_comes_before_the_kinds_waits_for_them)
{
    struct world_seen seen = {{0}, 0};
    struct early_ask early = {.f = f};
    tide_thread *thread = NULL;
    gate_open(&seen.gate);
    fixture_open(f);
    OK(tide_world_thread(f->world, "early", ask_early, &early, &thread, err));
    json_t *ping = ask(f, "{\"op\":\"ping\"}"); /* who it is can be asked at any time */
    answer_is(ping, TIDE_OK);
    json_decref(ping);
    (void)DEFINE(f, "work", work_handler, .context = &seen);
    start(f);
    tide_world_join(f->world, thread);
    answer_is(early.answer, TIDE_OK);
    json_decref(early.answer);
}

CASE(purge_removes_finished_jobs_only)
{
    struct world_seen seen = {{0}, 0};
    gate_open(&seen.gate);
    fixture_open(f);
    uint32_t kind = DEFINE(f, "work", work_handler, .context = &seen);
    start(f);
    for (int i = 0; i < 10; i++)
        ENQUEUE(f, .kind = kind);
    ENQUEUE(f, .kind = kind, .delay_ms = 60000);
    UNTIL(sql(f, "SELECT count(*) FROM job WHERE state = 2") == 10);
    assert_int_equal(ASK_COUNT(f, "{\"op\":\"purge\",\"older_than_ms\":3600000}"), 0);
    uint64_t later_ms = test_now_ms() + 3;
    UNTIL(test_now_ms() > later_ms);
    assert_int_equal(ASK_COUNT(f, "{\"op\":\"purge\",\"older_than_ms\":0}"), 10);
    assert_int_equal(sql(f, "SELECT count(*) FROM job"), 1);
}

OPENED(many_bad_items_raise_an_alert_that_outlives_the_engine)
{
    struct world_seen seen = {{0}, 1};
    uint32_t kind = DEFINE(f, "items", item_handler, .context = &seen, .items = true);
    uint32_t account = new_account(f, "a@example.org", "default");
    start(f);
    for (int i = 0; i < 8; i++) {
        char payload[128];
        (void)snprintf(payload, sizeof payload,
                       "{\"items\":[\"a%d\",\"b%d\",\"c%d\",\"bad%d\",\"d%d\"]}", i, i, i, i, i);
        ENQUEUE(f, .kind = kind, .account = account, .payload = payload);
        finish(f);
    }
    UNTIL(sql(f, "SELECT count(*) FROM alert WHERE level > 0") >= 1);
    json_t *answer = ask(f, "{\"op\":\"alerts\"}");
    answer_is(answer, TIDE_OK);
    json_t *alert = json_array_get(json_object_get(answer, "alerts"), 0);
    assert_string_equal(json_string_value(json_object_get(alert, "account")), "a@example.org");
    assert_true(json_string_length(json_object_get(alert, "text")) > 5);
    json_decref(answer);
    fixture_close(f);
    fixture_open(f);
    assert_true(sql(f, "SELECT count(*) FROM alert WHERE level > 0") >= 1);
}

static tide_status end_alerts(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_transaction_alerts_end(transaction, *(const uint32_t *)arg, err);
}

static bool metrics_have(struct fixture *f, const char *line)
{
    tide_auto_buf text = tide_buf_heap(4 << 20);
    OK(tide_metrics_text(f->engine, &text, err));
    return strstr(tide_buf_cstr(&text), line) != NULL;
}

/* Those of the engine and those of systems go; the ones of another account stay.  A restart does not bring
 * them back, though what they followed from was saved. */
OPENED(alerts_end_with_their_account)
{
    static const char of_a[] = "SELECT count(*) FROM alert a JOIN account c ON c.id = a.account"
                               " WHERE c.name = 'a@example.org'";
    struct world_seen seen = {{0}, 1};
    uint32_t kind = DEFINE(f, "items", item_handler, .context = &seen, .items = true);
    uint32_t account = new_account(f, "a@example.org", "default");
    const uint32_t other = new_account(f, "b@example.org", "default");
    start(f);
    OK(tide_engine_alert(f->engine, account, "drive_stopped", 2, "One: gone", err));
    OK(tide_engine_alert(f->engine, other, "drive_owed", 1, "Two: one is owed", err));
    for (int i = 0; i < 8; i++) {
        char payload[64];
        (void)snprintf(payload, sizeof payload, "{\"items\":[\"a%d\",\"bad%d\"]}", i, i);
        ENQUEUE(f, .kind = kind, .account = account, .payload = payload);
        finish(f);
    }
    UNTIL(sql(f, of_a) >= 2);
    assert_true(metrics_have(f, "condition=\"drive_stopped\""));
    assert_true(metrics_have(f, "condition=\"bad_rate\""));
    OK(tide_transact(f->engine, end_alerts, &account, err));
    tide_engine_alerts_forget(f->engine, account);
    assert_int_equal(sql(f, of_a), 0);
    assert_false(metrics_have(f, "condition=\"drive_stopped\""));
    assert_false(metrics_have(f, "condition=\"bad_rate\""));
    assert_true(metrics_have(f, "condition=\"drive_owed\""));
    fixture_close(f);
    fixture_open(f);
    kind = DEFINE(f, "items", item_handler, .context = &seen, .items = true);
    account = new_account(f, "a@example.org", "default");
    start(f);
    ENQUEUE(f, .kind = kind, .account = account, .payload = "{\"items\":[\"x\"]}");
    finish(f);
    assert_int_equal(sql(f, of_a), 0);
    assert_int_equal(sql(f, "SELECT count(*) FROM alert"), 1);
}

struct batch_text {
    char text[16384];
};

/* The payload of a job with `good` good items and `bad` bad ones, named after `round`. */
static const char *items_payload(struct batch_text *to, int round, int good, int bad)
{
    size_t at = (size_t)snprintf(to->text, sizeof to->text, "{\"items\":[");
    for (int i = 0; i < good + bad; i++)
        at += (size_t)snprintf(to->text + at, sizeof to->text - at, "%s\"%s%d.%d\"",
                               i == 0 ? "" : ",", i < good ? "a" : "bad", round, i);
    (void)snprintf(to->text + at, sizeof to->text - at, "]}");
    return to->text;
}

static void run_items(struct fixture *f, struct world_seen *seen, int round, int good, int bad)
{
    static struct batch_text text;
    fixture_open(f);
    uint32_t kind = DEFINE(f, "items", item_handler, .context = seen, .items = true);
    uint32_t account = new_account(f, "a@example.org", "default");
    start(f);
    ENQUEUE(f, .kind = kind, .account = account, .payload = items_payload(&text, round, good, bad));
    finish(f);
    fixture_close(f);
}

static int64_t look_afterwards(struct fixture *f, const char *query)
{
    fixture_open(f);
    const int64_t number = sql(f, "%s", query);
    fixture_close(f);
    return number;
}

/* E6.4: windows belong to the home, not to a process.  One bad item in each of two runs is two
 * of a thousand; and what a later run makes good is no longer shown. */
CASE(alerts_count_over_runs_and_the_next_run_clears_them)
{
    struct world_seen seen = {{0}, 1};
    const char *raised = "SELECT count(*) FROM alert WHERE condition = 'bad_rate'";
    run_items(f, &seen, 0, 5, 1);
    assert_int_equal(look_afterwards(f, raised), 0);
    run_items(f, &seen, 1, 5, 1);
    assert_int_equal(look_afterwards(f, raised), 1);
    for (int round = 2; round < 5; round++)
        run_items(f, &seen, round, 500, 0);
    assert_int_equal(look_afterwards(f, raised), 0);
    assert_int_equal(look_afterwards(f, "SELECT count(*) FROM note WHERE key LIKE 'totals:%'"
                                        " AND value LIKE '% 2'"), /* bad items in all runs */
                     1);
}

/* Bad items whose reasons have so many bytes, as of a process that ended. */
static void remember(struct fixture *f, uint32_t bytes)
{
    fixture_open(f);
    uint32_t account = new_account(f, "a@example.org", "default");
    (void)sql(f, "DELETE FROM bad");
    (void)sql(
        f,
        "INSERT INTO bad (account, kind, item, state, first_seen, last_tried, retries, reason)"
        " VALUES (%" PRIu32 ", 1, 'item', 1, 1, 1, 0, printf('%%.*c', %" PRIu32 ", 'x'))",
        account, bytes);
    fixture_close(f);
}

/* E6.4: warns at half of the budget, is critical at four fifths, and ends with its cause. */
CASE(what_is_remembered_of_an_account_has_a_budget)
{
    static const uint32_t bytes[] = {45000, 55000, 85000, 500};
    static const int levels[] = {0, 1, 2, 0};
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        fixture_settings(f, "alerts.metadata_budget=100000");
        remember(f, bytes[i]);
        fixture_open(f);
        start(f);
        UNTIL(sql(f, "SELECT coalesce(max(level), 0) FROM alert WHERE condition = 'metadata'") ==
              levels[i]);
        fixture_close(f);
    }
}

/* ---- settings that change (E11) --------------------------------------------------------------- */

static void write_config(struct fixture *f, const char *yaml)
{
    const char *path = textf("%s/config.yaml", f->dir);
    OK(tide_file_replace(f->world, path, tide_text_of(yaml), 0600, err));
}

/* Settings of a file that can change, under the short pauses of the tests. */
static void open_with_config(struct fixture *f, const char *yaml)
{
    const char *path = textf("%s/config.yaml", f->dir);
    write_config(f, yaml);
    OK(tide_settings_load(f->world,
                          &(struct tide_settings_sources){
                              .file = path, .flags = short_flags, .flags_count = SHORT_FLAGS},
                          tide_mem_heap(), &f->settings, err));
    fixture_open(f);
}

CASE(a_reload_changes_the_number_of_workers_while_it_runs)
{
    struct world_seen seen = {{0}, 0};
    open_with_config(f, "workers.count: 2\nworkers.reserved_interactive: 0\n"
                        "workers.reserved_bulk: 0\n");
    uint32_t kind = DEFINE(f, "work", work_handler, .context = &seen);
    for (int i = 0; i < 20; i++)
        ENQUEUE(f, .kind = kind);
    start(f);
    UNTIL(get(&seen.gate.arrived) == 2);
    /* The engine looks at the file every two seconds; where it was first, there is nothing left
     * for the command to load. */
    for (unsigned window = 200, changed = 0; changed == 0; window++) {
        char yaml[200];
        assert_true(window < 220);
        (void)snprintf(yaml, sizeof yaml,
                       "workers.count: %u\nworkers.reserved_interactive: 0\n"
                       "workers.reserved_bulk: 0\ntracker.window_jobs: %u\n",
                       6 + window % 2, window);
        write_config(f, yaml);
        json_t *answer = ask(f, "{\"op\":\"reload\"}");
        answer_is(answer, TIDE_OK);
        changed = (unsigned)json_array_size(json_object_get(answer, "changed"));
        /* A fixed setting waits for the next start, whether the file was loaded before or not. */
        assert_int_equal(json_array_size(json_object_get(answer, "restart")), 1);
        json_decref(answer);
    }
    write_config(f, "workers.count: 7\nworkers.reserved_interactive: 0\nworkers.reserved_bulk: 0\n"
                    "tracker.window_jobs: 200\n");
    json_t *answer = ask(f, "{\"op\":\"reload\"}");
    json_decref(answer);
    UNTIL(get(&seen.gate.arrived) == 7);
    write_config(f, "workers.count: many\n");
    answer = ask(f, "{\"op\":\"reload\"}");
    tide_error told = {TIDE_OK, 0, ""};
    assert_int_not_equal(tide_control_answer(answer, &told), TIDE_OK);
    assert_non_null(strstr(told.text, "config.yaml"));
    json_decref(answer);
    write_config(f, "workers.count: 1\n");
    ask_status(f, "{\"op\":\"reload\"}", TIDE_OK);
    gate_open(&seen.gate);
    finish(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 2"), 20);
}

OPENED(a_stop_by_command_is_answered_first)
{
    start(f);
    ask_status(f, "{\"op\":\"stop\"}", TIDE_OK);
    REFUSED(tide_engine_wait(f->engine, TEST_WAIT_MS, err), TIDE_STOPPED);
}

/* Everything that may be asked, from several threads, while jobs run: for the
 * thread sanitizer, which sees what a simulated order of threads hides. */
struct crowd {
    struct fixture *f;
    uint64_t leave;
    uint64_t asked;
};

static void *crowd_main(void *arg)
{
    struct crowd *crowd = arg;
    struct fixture *f = crowd->f;
    static const char *const requests[] = {
        "{\"op\":\"snapshot\"}",
        "{\"op\":\"retry\",\"filter\":{\"state\":\"failed\"}}",
        "{\"op\":\"pause\",\"account\":\"a@example.org\"}",
        "{\"op\":\"resume\",\"account\":\"a@example.org\"}",
        "{\"op\":\"explain\",\"id\":5}",
        "{\"op\":\"alerts\"}",
        "{\"op\":\"reload\"}",
        "{\"op\":\"halt\",\"account\":\"a@example.org\"}",
        "{\"op\":\"account_resume\",\"account\":\"a@example.org\"}",
        "{\"op\":\"pause\",\"kind\":\"work\"}",
        "{\"op\":\"resume\",\"kind\":\"work\"}",
        "{\"op\":\"purge\",\"older_than_ms\":100000}",
        "{\"op\":\"cancel\",\"filter\":{\"id\":7}}",
    };
    char path[128];
    (void)snprintf(path, sizeof path, "%s/" TIDE_CONTROL_SOCKET, f->dir);
    for (unsigned i = 0; get(&crowd->leave) == 0; i++) {
        json_t *answer = NULL;
        write_config(f, i % 2 == 0 ? "workers.count: 5\nbandwidth.down: 1GiB\n"
                                   : "workers.count: 9\nlanes.interactive_below: 5\n");
        const char *request = requests[i % (sizeof requests / sizeof requests[0])];
        (void)tide_socket_ask(f->world, tide_mem_heap(), path, tide_text_of(request), TEST_WAIT_MS,
                              NULL, take_line, &answer, NULL);
        json_decref(answer);
        (void)add(&crowd->asked, 1);
        uint32_t account = 0;
        const char *name = textf("account %u", i % 500);
        (void)tide_engine_account(f->engine, name, "default", &account, NULL);
        uint64_t stream = 0;
        (void)tide_stream_open(f->engine, account, "line", NULL, &stream, NULL);
        (void)progress(f);
    }
    return NULL;
}

CASE(a_crowd_may_ask_while_jobs_run)
{
    struct world_seen seen = {{0}, 0};
    gate_open(&seen.gate);
    open_with_config(f, "workers.count: 5\n");
    uint32_t kind = DEFINE(f, "work", work_handler, .context = &seen);
    uint32_t account = new_account(f, "a@example.org", "default");
    start(f);
    struct crowd crowd = {.f = f};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_main, &crowd), 0);
    /* A refused call looks at everything and does not wait: many of them meet
     * the writer at its work. */
    struct tide_spec wrong[64];
    for (int i = 0; i < 64; i++)
        wrong[i] = (struct tide_spec){.kind = i < 63 ? kind : 4711, .account = account};
    size_t jobs = scaled(400);
    for (size_t i = 0; i < jobs; i++) {
        ENQUEUE(f, .kind = kind, .account = i % 2 == 0 ? account : 0, .size_bytes = i);
        for (int j = 0; j < 50; j++)
            assert_int_equal(tide_enqueue(f->engine, wrong, 64, NULL, NULL), TIDE_INVALID);
    }
    UNTIL(get(&crowd.asked) > 60);
    (void)add(&crowd.leave, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    ask_status(f, "{\"op\":\"resume\",\"account\":\"a@example.org\"}", TIDE_OK);
    ask_status(f, "{\"op\":\"account_resume\",\"account\":\"a@example.org\"}", TIDE_OK);
    ask_status(f, "{\"op\":\"resume\",\"kind\":\"work\"}", TIDE_OK);
    finish(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state NOT IN (2, 4)"), 0);
}

static void *look_main(void *arg)
{
    struct crowd *crowd = arg;
    char path[128];
    (void)snprintf(path, sizeof path, "%s/" TIDE_CONTROL_SOCKET, crowd->f->dir);
    while (get(&crowd->leave) == 0) {
        json_t *answer = NULL;
        (void)tide_socket_ask(crowd->f->world, tide_mem_heap(), path,
                              tide_text_of("{\"op\":\"snapshot\"}"), TEST_WAIT_MS, NULL, take_line,
                              &answer, NULL);
        json_decref(answer);
        (void)add(&crowd->asked, 1);
    }
    return NULL;
}

static void show_nothing(json_t *object, void *arg)
{
    (void)object;
    (void)arg;
}

/* The socket answers from the engine's first moment; systems open after that. */
CASE(a_look_may_come_while_systems_open)
{
    f->workers = 0;
    fixture_open(f);
    struct crowd crowd = {.f = f};
    pthread_t looking;
    assert_int_equal(pthread_create(&looking, NULL, look_main, &crowd), 0);
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const uint64_t asked = get(&crowd.asked);
        UNTIL(get(&crowd.asked) > asked + 2);
        tide_engine_workers_want(f->engine, 17 + (uint32_t)i);
        OK(tide_engine_snapshot_add(f->engine, names[i], show_nothing, NULL, err));
    }
    const uint64_t asked = get(&crowd.asked);
    UNTIL(get(&crowd.asked) > asked + 2);
    (void)add(&crowd.leave, 1);
    assert_int_equal(pthread_join(looking, NULL), 0);
    json_t *json = snapshot(f);
    assert_int_equal(json_object_size(json_object_get(json, "systems")), 4);
    json_decref(json);
}

/* ---- work that is handed over (decision 10) ------------------------------------------------ */

struct handed {
    struct gate gate;
    char payload[256];
    uint64_t refuse; /* sign-ins, while it is not zero */
};

static tide_status handed_handler(tide_job *job, void *context, tide_error *err)
{
    struct handed *handed = context;
    if (get(&handed->refuse) != 0)
        return tide_error_set(err, TIDE_AUTH, "sign in again");
    (void)snprintf(handed->payload, sizeof handed->payload, "%s", tide_job_payload(job).data);
    return gate_pass(&handed->gate, job);
}

static uint64_t handed_id(struct fixture *f, const char *request)
{
    json_t *answer = ask(f, "%s", request);
    answer_is(answer, TIDE_OK);
    const uint64_t id = number_of(answer, "id");
    json_decref(answer);
    return id;
}

OPENED(a_command_hands_its_work_over)
{
    struct handed handed = {{0}, "", 0};
    (void)DEFINE(f, "work", handed_handler, .context = &handed, .payload_bytes_max = 100,
                 .dedupe_running = true);
    (void)new_account(f, "a@example.org", "default");
    start(f);
    const char *request = "{\"op\":\"enqueue\",\"kind\":\"work\",\"account\":\"a@example.org\","
                          "\"dedupe\":\"plan/1\",\"payload\":{\"force\":true}}";
    const uint64_t id = handed_id(f, request);
    UNTIL(get(&handed.gate.arrived) == 1);
    assert_int_equal(handed_id(f, request), id); /* a second one joins the first */
    assert_string_equal(handed.payload, "{\"force\":true}");
    gate_open(&handed.gate);
    finish(f);
    assert_int_equal(progress(f).done, 1);
}

OPENED(what_cannot_be_done_is_not_taken_over)
{
    struct handed handed = {{0}, "", 0};
    (void)DEFINE(f, "work", handed_handler, .context = &handed, .payload_bytes_max = 20);
    start(f);
    ask_status(f, "{\"op\":\"enqueue\"}", TIDE_INVALID);
    ask_status(f, "{\"op\":\"enqueue\",\"kind\":7}", TIDE_INVALID);
    ask_status(f, "{\"op\":\"enqueue\",\"kind\":\"\"}", TIDE_NOT_FOUND);
    ask_status(f, "{\"op\":\"enqueue\",\"kind\":\"mail.plan\"}", TIDE_NOT_FOUND);
    ask_status(f, "{\"op\":\"enqueue\",\"kind\":\"work\",\"account\":\"nobody\"}", TIDE_NOT_FOUND);
    ask_status(f, "{\"op\":\"enqueue\",\"kind\":\"work\",\"account\":3}", TIDE_INVALID);
    ask_status(f, "{\"op\":\"enqueue\",\"kind\":\"work\",\"payload\":[]}", TIDE_INVALID);
    ask_status(f, "{\"op\":\"enqueue\",\"kind\":\"work\",\"dedupe\":1}", TIDE_INVALID);
    ask_status(f, "{\"op\":\"enqueue\",\"kind\":\"work\",\"force\":\"yes\"}", TIDE_INVALID);
    ask_status(f,
               "{\"op\":\"enqueue\",\"kind\":\"work\","
               "\"payload\":{\"much\":\"longer than twenty bytes\"}}",
               TIDE_INVALID);
    char request[1024];
    char key[TIDE_DEDUPE_BYTES_MAX + 2];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    (void)snprintf(request, sizeof request,
                   "{\"op\":\"enqueue\",\"kind\":\"work\",\"dedupe\":\"%s\"}", key);
    ask_status(f, request, TIDE_INVALID);
    assert_int_equal(progress(f).window, 0);
    json_t *answer = ask(f, "{\"op\":\"enqueue\",\"kind\":\"mail.plan\"}");
    const char *who = textf("process %d", (int)getpid());
    assert_non_null(strstr(json_string_value(json_object_get(answer, "error")), who));
    json_decref(answer);
}

OPENED(a_pause_for_a_sign_in_ends_with_the_news_of_one)
{
    struct handed handed = {{0}, "", 1};
    gate_open(&handed.gate);
    uint32_t kind = DEFINE(f, "work", handed_handler, .context = &handed);
    uint32_t account = new_account(f, "a@example.org", "default");
    start(f);
    const char *request = "{\"op\":\"signed_in\",\"account\":\"a@example.org\"}";
    json_t *answer = ask(f, "%s", request);
    assert_false(json_is_true(json_object_get(answer, "lifted"))); /* there was no pause */
    json_decref(answer);
    OK(tide_enqueue(f->engine, &(struct tide_spec){.kind = kind, .account = account}, 1, NULL,
                    err));
    for (bool refused = false; !refused;) {
        json_t *look = snapshot(f);
        json_t *first = json_array_get(json_object_get(look, "accounts"), 0);
        const char *why = json_string_value(json_object_get(first, "reason"));
        refused = why != NULL && strcmp(why, "auth") == 0;
        json_decref(look);
    }
    assert_int_equal(tide_engine_wait(f->engine, 50, NULL), TIDE_TIMEOUT);
    assert_int_equal(progress(f).done, 0);
    __atomic_store_n(&handed.refuse, 0, __ATOMIC_SEQ_CST);
    answer = ask(f, "%s", request);
    assert_true(json_is_true(json_object_get(answer, "lifted")));
    json_decref(answer);
    finish(f); /* not after five minutes */
    assert_int_equal(progress(f).done, 1);
    ask_status(f, "{\"op\":\"signed_in\",\"account\":\"nobody\"}", TIDE_NOT_FOUND);
    ask_status(f, "{\"op\":\"signed_in\"}", TIDE_INVALID);
}

/* ---- a process that stays ---------------------------------------------------------------- */

struct host {
    struct gate gate;
    uint64_t asked;
};

static tide_status host_answer(void *arg, const json_t *request, tide_json *answer, tide_error *err)
{
    struct host *host = arg;
    (void)add(&host->asked, 1);
    if (json_is_true(json_object_get(request, "wait")))
        while (get(&host->gate.opened) == 0)
            (void)sched_yield();
    if (json_is_true(json_object_get(request, "refuse")))
        return tide_error_set(err, TIDE_FULL, "not now");
    tide_json_set_cstr(answer, "said", "hello");
    return TIDE_OK;
}

struct removal {
    struct fixture *f;
    uint64_t over;
};

static void *remove_ops(void *arg)
{
    struct removal *removal = arg;
    tide_control_remove_added(removal->f->engine);
    (void)add(&removal->over, 1);
    return NULL;
}

static void *ask_and_wait(void *arg)
{
    return ask(arg, "{\"op\":\"greet\",\"wait\":true}");
}

static bool ping_is_the_engines(struct fixture *f)
{
    json_t *pong = ask(f, "{\"op\":\"ping\"}");
    const bool own = json_object_get(pong, "run") != NULL;
    json_decref(pong);
    return own;
}

CASE(a_program_adds_ops_and_takes_them_back)
{
    struct host host = {0};
    struct removal removal = {f, 0};
    pthread_t asking, removing;
    void *answer = NULL;
    fixture_open(f);
    start(f);
    ask_status(f, "{\"op\":\"greet\"}", TIDE_INVALID);
    OK(tide_control_add(f->engine, "greet", host_answer, &host, err));
    ask_status(f, "{\"op\":\"greet\"}", TIDE_OK);
    ask_status(f, "{\"op\":\"greet\",\"refuse\":true}", TIDE_FULL);
    ask_status(f, "{\"op\":\"ping\"}", TIDE_OK);
    /* One of the engine's can be replaced. */
    OK(tide_control_add(f->engine, "ping", host_answer, &host, err));
    json_t *pong = ask(f, "{\"op\":\"ping\"}");
    assert_string_equal(json_string_value(json_object_get(pong, "said")), "hello");
    json_decref(pong);
    /* Taking them back waits for the one that runs. */
    assert_int_equal(pthread_create(&asking, NULL, ask_and_wait, f), 0);
    UNTIL(get(&host.asked) == 4);
    assert_int_equal(pthread_create(&removing, NULL, remove_ops, &removal), 0);
    UNTIL(ping_is_the_engines(f));
    assert_int_equal(get(&removal.over), 0);
    gate_open(&host.gate);
    assert_int_equal(pthread_join(removing, NULL), 0);
    assert_int_equal(pthread_join(asking, &answer), 0);
    answer_is(answer, TIDE_OK);
    json_decref(answer);
    ask_status(f, "{\"op\":\"greet\"}", TIDE_INVALID);
}

static void count_change(void *arg)
{
    (void)add(arg, 1);
}

CASE(a_watcher_hears_of_work_and_of_rest)
{
    struct gate gate = {0};
    uint64_t changes = 0;
    struct tide_progress progress;
    fixture_open(f);
    uint32_t gated =
        define(f, &(struct tide_kind){.name = "gated", .handler = gate_handler, .context = &gate});
    tide_engine_watch(f->engine, count_change, &changes);
    start(f);
    UNTIL((tide_engine_progress(f->engine, &progress), progress.idle));
    const uint64_t rested = get(&changes);
    (void)enqueue(f, (struct tide_spec){.kind = gated});
    UNTIL(get(&gate.arrived) == 1);
    const uint64_t worked = get(&changes);
    assert_true(worked > rested);
    gate_open(&gate);
    UNTIL(get(&changes) > worked);
    UNTIL((tide_engine_progress(f->engine, &progress), progress.idle));
    const uint64_t before = get(&changes);
    tide_engine_stop(f->engine);
    assert_true(get(&changes) > before);
    fixture_close(f); /* until then it counts */
}

CASE(metrics_are_the_numbers_of_the_snapshot)
{
    struct world_seen seen = {0};
    fixture_open(f);
    uint32_t account = 0;
    OK(tide_engine_account(f->engine, "an\"na", "gmail", &account, err));
    uint32_t kind =
        define(f, &(struct tide_kind){.name = "work", .handler = work_handler, .context = &seen});
    gate_open(&seen.gate);
    start(f);
    (void)enqueue(f, (struct tide_spec){.kind = kind});
    finish(f);
    json_t *answer = ask(f, "{\"op\":\"metrics\"}");
    answer_is(answer, TIDE_OK);
    const char *text = json_string_value(json_object_get(answer, "text"));
    assert_non_null(text);
    const char *const lines[] = {
        "\ntidemark_jobs_finished_total{system=\"work\",outcome=\"done\"} 1\n",
        "\ntidemark_jobs{system=\"work\",state=\"running\"} 0\n",
        "\ntidemark_job_duration_seconds_count{system=\"work\"} 1\n",
        "\ntidemark_lane_jobs{lane=\"bulk\",state=\"running\"} 0\n",
        "\ntidemark_account_state{account=\"an\\\"na\",state=\"running\"} 1\n",
        "\n# TYPE tidemark_quota_used_ratio gauge\ntidemark_quota_used_ratio{account=",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (strstr(text, lines[i]) == NULL)
            fail_msg("no %s in %s", lines[i], text);
    json_decref(answer);
}
