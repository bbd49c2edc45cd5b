/* engine_accounts_test.c - one engine, several accounts: whom it works for, what their calls came
 * to, and how long one header of a server may hold one back (E4.3, E9.1). */
#include "engine_fixture.h"

#include "engine/control/control.h"
#include "engine/engine.h"
#include "ledger/outcome.h"
#include "support/http_server.h"
#include "tidemark_inside.h"
#include "world/socket.h"
#include "support/heap.h"

#include <jansson.h>

struct counted {
    const char *url; /* NULL: no call */
    uint64_t runs;
};

static tide_status counted_handler(tide_job *job, void *context, tide_error *err)
{
    struct counted *counted = context;
    struct tide_response response;
    tide_status rc = TIDE_OK;
    (void)add(&counted->runs, 1);
    if (counted->url == NULL)
        return TIDE_OK;
    tide_response_init(&response, tide_mem_heap());
    const struct tide_request request = {.method = "GET", .url = counted->url, .repeatable = true};
    rc = tide_job_call(job, 1, 0, NULL, &request, &response, err);
    tide_response_done(&response);
    return rc;
}

static json_t *account_named(struct fixture *f, const char *name, json_t **snapshot_out)
{
    tide_buf text = heap_buf(1 << 20);
    OK(tide_engine_snapshot(f->engine, &text, err));
    *snapshot_out = json_loadb(text.data, text.bytes, 0, NULL);
    tide_buf_done(&text);
    json_t *accounts = json_object_get(*snapshot_out, "accounts");
    for (size_t i = 0; i < json_array_size(accounts); i++) {
        json_t *account = json_array_get(accounts, i);
        if (strcmp(json_string_value(json_object_get(account, "account")), name) == 0)
            return account;
    }
    fail_msg("no account %s", name);
    return NULL;
}

OPENED(a_process_for_one_account_leaves_the_others_alone)
{
    struct counted counted = {.url = NULL};
    uint32_t ada = 0;
    const char *only[] = {"ada"};
    const uint32_t kind = DEFINE(f, "work", counted_handler, .context = &counted);
    OK(tide_engine_account(f->engine, "ada", "default", &ada, err));
    uint32_t bob = new_account(f, "bob", "default");
    for (int i = 0; i < 3; i++) {
        ENQUEUE(f, .kind = kind, .account = ada);
        ENQUEUE(f, .kind = kind, .account = bob);
    }
    OK(tide_engine_only(f->engine, only, 1, err));
    run_all(f); /* bob's jobs are not waited for */
    assert_int_equal(get(&counted.runs), 3);

    /* Who comes later is not among the named, either. */
    uint32_t eve = new_account(f, "eve", "default");
    ENQUEUE(f, .kind = kind, .account = eve);
    finish(f);
    assert_int_equal(get(&counted.runs), 3);
    fixture_close(f);

    /* The next process works for no particular account. */
    fixture_open(f);
    (void)DEFINE(f, "work", counted_handler, .context = &counted);
    run_all(f);
    assert_int_equal(get(&counted.runs), 7);
}

static tide_status take_line(void *arg, tide_text line)
{
    (void)line;
    (*(int *)arg)++;
    return TIDE_OK;
}

OPENED(a_command_may_ask_it_for_another_account)
{
    struct counted counted = {.url = NULL};
    uint32_t ada = 0;
    const char *only[] = {"ada"};
    char path[128];
    int lines = 0;
    const uint32_t kind = DEFINE(f, "work", counted_handler, .context = &counted);
    OK(tide_engine_account(f->engine, "ada", "default", &ada, err));
    uint32_t bob = new_account(f, "bob", "default");
    ENQUEUE(f, .kind = kind, .account = bob);
    OK(tide_engine_only(f->engine, only, 1, err));
    run_all(f);
    assert_int_equal(get(&counted.runs), 0);
    (void)snprintf(path, sizeof path, "%s/" TIDE_CONTROL_SOCKET, f->dir);
    OK(tide_socket_ask(f->world, tide_mem_heap(), path,
                       TIDE_TEXT("{\"op\":\"enqueue\",\"kind\":\"work\",\"account\":\"bob\"}"),
                       15000, NULL, take_line, &lines, err));
    assert_int_equal(lines, 1);
    UNTIL(get(&counted.runs) == 2); /* what waited, and what was asked for */
}

CASE(one_header_holds_an_account_for_an_hour_at_most)
{
    test_http *server = test_http_start();
    struct counted counted = {.url = test_http_url(server, "/status?code=429&after=999999999")};
    fixture_settings(f, "governor.retry_after_max=20m");
    fixture_open(f);
    const uint32_t kind = DEFINE(f, "work", counted_handler, .context = &counted);
    uint32_t account = new_account(f, "ada", "default");
    ENQUEUE(f, .kind = kind, .account = account);
    start(f);
    UNTIL(test_http_requests(server) == 1);
    json_t *snapshot = NULL;
    json_int_t wait_ms = 0;
    for (bool waits = false; !waits; test_pause()) {
        json_decref(snapshot);
        json_t *ada = account_named(f, "ada", &snapshot);
        wait_ms = json_integer_value(json_object_get(ada, "for_ms"));
        waits = wait_ms > 0;
    }
    assert_in_range(wait_ms, 19 * 60000, 20 * 60000);
    json_decref(snapshot);
    fixture_close(f);
    test_http_stop(server);
}

OPENED(what_calls_came_to_is_seen_and_outlives_the_engine)
{
    struct counted counted = {.url = "http://127.0.0.1:1/x"};
    json_t *snapshot = NULL;
    uint32_t kind = DEFINE(f, "work", counted_handler, .context = &counted);
    uint32_t account = new_account(f, "ada", "default");
    ENQUEUE(f, .kind = kind, .account = account);
    start(f);
    for (bool failed = false; !failed; test_pause()) {
        json_t *ada = account_named(f, "ada", &snapshot);
        const char *text = json_string_value(json_object_get(ada, "last_failure"));
        failed = text != NULL;
        if (failed) {
            assert_non_null(strstr(text, "127.0.0.1:1"));
            assert_true(json_integer_value(json_object_get(ada, "last_failed_unix_ms")) > 0);
            assert_int_equal(json_integer_value(json_object_get(ada, "last_ok_unix_ms")), 0);
        }
        json_decref(snapshot);
    }
    fixture_close(f);

    test_http *server = test_http_start();
    counted.url = test_http_url(server, "/plain");
    fixture_open(f);
    kind = DEFINE(f, "work", counted_handler, .context = &counted);
    json_t *ada = account_named(f, "ada", &snapshot);
    assert_non_null(json_object_get(ada, "last_failure")); /* of the run before */
    assert_true(json_integer_value(json_object_get(ada, "failing_since_unix_ms")) > 0);
    json_decref(snapshot);
    run_all(f);
    ada = account_named(f, "ada", &snapshot);
    const json_int_t ok_ms = json_integer_value(json_object_get(ada, "last_ok_unix_ms"));
    assert_true(ok_ms > json_integer_value(json_object_get(ada, "last_failed_unix_ms")));
    json_decref(snapshot);
    fixture_close(f);
    /* The last word is in the ledger, however short ago it was spoken. */
    fixture_open(f);
    ada = account_named(f, "ada", &snapshot);
    assert_int_equal(json_integer_value(json_object_get(ada, "last_ok_unix_ms")), ok_ms);
    json_decref(snapshot);
    test_http_stop(server);
}

/* ---- counts for display (E9.1, meters.h) ---------------------------------------------- */

static const char *method_name(uint32_t method)
{
    return method == 0 ? "things.get" : NULL;
}

static json_int_t calls_of(const json_t *account, const char *method, const char *class)
{
    const json_t *methods = json_object_get(account, "calls_by_method");
    return json_integer_value(json_object_get(json_object_get(methods, method), class));
}

static json_int_t jobs_done(const json_t *snapshot, const char *system)
{
    const json_t *work = json_object_get(snapshot, "work");
    for (size_t i = 0; i < json_array_size(work); i++) {
        const json_t *one = json_array_get(work, i);
        if (strcmp(json_string_value(json_object_get(one, "system")), system) == 0)
            return json_integer_value(json_object_get(one, "done"));
    }
    fail_msg("no system %s", system);
    return 0;
}

OPENED(calls_are_counted_by_method_and_never_go_back)
{
    test_http *server = test_http_start();
    struct counted counted = {.url = test_http_url(server, "/plain")};
    json_t *snapshot = NULL;
    const uint32_t kind = DEFINE(f, "shop.work", counted_handler, .context = &counted);
    const uint32_t account = new_account(f, "ada", "default");
    OK(tide_engine_methods(f->engine, "default", method_name, err));
    for (int i = 0; i < 3; i++)
        ENQUEUE(f, .kind = kind, .account = account);
    run_all(f);
    json_t *ada = account_named(f, "ada", &snapshot);
    assert_int_equal(calls_of(ada, "default.things.get", "ok"), 3);
    assert_int_equal(json_integer_value(json_object_get(ada, "units")), 3);
    assert_true(json_integer_value(json_object_get(ada, "bytes_down")) > 0);
    assert_int_equal(json_integer_value(json_object_get(ada, "bytes_up")), 0);
    assert_int_equal(jobs_done(snapshot, "shop"), 3);
    json_decref(snapshot);

    /* As when another process had the account meanwhile: its governor is a new one (MTR1). */
    tide_lock_take(f->world, f->engine->lock);
    const tide_status rc =
        tide_account_retune(f->engine, tide_engine_account_of(f->engine, account), TIDE_TEXT_NONE,
                            tide_world_now_ms(f->world));
    tide_lock_drop(f->world, f->engine->lock);
    assert_int_equal(rc, TIDE_OK);
    ada = account_named(f, "ada", &snapshot);
    assert_int_equal(json_integer_value(json_object_get(ada, "calls")), 0); /* the governor's own */
    assert_int_equal(calls_of(ada, "default.things.get", "ok"), 3);
    json_decref(snapshot);
    fixture_close(f);
    test_http_stop(server);
}

static json_int_t errors_of(struct fixture *f, const char *code)
{
    json_t *snapshot = NULL;
    const json_t *ada = account_named(f, "ada", &snapshot);
    const json_int_t count =
        json_integer_value(json_object_get(json_object_get(ada, "errors_by_code"), code));
    json_decref(snapshot);
    return count;
}

/* MTR2: a server may answer with any number; those that are not usual are counted by their hundred. */
OPENED(failed_calls_are_counted_by_code)
{
    static const struct {
        tide_status status;
        int http;
        uint32_t calls;
        const char *code; /* NULL: no error */
    } answers[] = {
        {TIDE_OK, 200, 0, NULL},
        {TIDE_THROTTLED, 429, 0, "429"},
        {TIDE_SERVER, 503, 3, "503"},
        {TIDE_GONE, 404, 0, "404"},
        {TIDE_PERMANENT, 418, 0, "4xx"},
        {TIDE_PERMANENT, 499, 0, "4xx"},
        {TIDE_SERVER, 599, 0, "5xx"},
        {TIDE_PERMANENT, 302, 0, "3xx"},
        {TIDE_SERVER, 204, 0, "2xx"},
        {TIDE_PERMANENT, 999, 0, "other"},
        {TIDE_PERMANENT, -7, 0, "other"},
        {TIDE_NETWORK, 0, 0, "none"},
        {TIDE_CANCELED, 0, 0, NULL},
        {TIDE_THROTTLED, 200, 9, NULL}, /* its parts are counted */
    };
    const uint32_t account = new_account(f, "ada", "default");
    struct tide_account *ada = tide_engine_account_of(f->engine, account);
    tide_lock_take(f->world, f->engine->lock);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        const struct tide_answer answer = {
            .status = answers[i].status, .http = answers[i].http, .calls = answers[i].calls};
        tide_meters_called(f->engine, ada, &answer, 0, 0);
    }
    tide_meters_part_failed(f->engine, ada, 429);
    tide_lock_drop(f->world, f->engine->lock);
    assert_int_equal(errors_of(f, "429"), 2);
    assert_int_equal(errors_of(f, "503"), 3); /* a batch of three */
    assert_int_equal(errors_of(f, "404"), 1);
    assert_int_equal(errors_of(f, "4xx"), 2);
    assert_int_equal(errors_of(f, "5xx"), 1);
    assert_int_equal(errors_of(f, "3xx"), 1);
    assert_int_equal(errors_of(f, "2xx"), 1);
    assert_int_equal(errors_of(f, "other"), 2);
    assert_int_equal(errors_of(f, "none"), 1);
    assert_int_equal(errors_of(f, "200"), 0);
}

/* The whole way, from an answer to the snapshot. */
OPENED(a_call_that_fails_has_its_code_in_the_snapshot)
{
    test_http *server = test_http_start();
    struct counted counted = {.url = test_http_url(server, "/status?code=403")};
    const uint32_t kind = DEFINE(f, "work", counted_handler, .context = &counted);
    const uint32_t account = new_account(f, "ada", "default");
    ENQUEUE(f, .kind = kind, .account = account);
    run_all(f);
    assert_int_equal(errors_of(f, "403"), get(&counted.runs));
    fixture_close(f);
    test_http_stop(server);
}

static json_int_t blocked_ms(struct fixture *f, const char *reason)
{
    json_t *snapshot = NULL;
    const json_t *ada = account_named(f, "ada", &snapshot);
    const json_int_t ms =
        json_integer_value(json_object_get(json_object_get(ada, "blocked_ms"), reason));
    json_decref(snapshot);
    return ms;
}

OPENED(time_without_calls_is_counted_by_reason)
{
    struct counted counted = {.url = NULL};
    (void)DEFINE(f, "work", counted_handler, .context = &counted);
    (void)new_account(f, "ada", "default");
    start(f);
    assert_int_equal(blocked_ms(f, "paused"), 0);
    OK(tide_engine_pause(f->engine, NULL, "ada", true, err));
    UNTIL(blocked_ms(f, "paused") > 0);
    OK(tide_engine_pause(f->engine, NULL, "ada", false, err));
    const json_int_t once = blocked_ms(f, "paused");
    test_pause();
    test_pause();
    assert_int_equal(blocked_ms(f, "paused"), once);
    assert_int_equal(blocked_ms(f, "throttled"), 0);
}

/* A pause that has an end counts to that end, however late the next look is. */
OPENED(a_pause_is_counted_to_its_end_and_not_beyond)
{
    struct counted counted = {.url = NULL};
    (void)DEFINE(f, "work", counted_handler, .context = &counted);
    const uint32_t id = new_account(f, "ada", "default");
    tide_lock_take(f->world, f->engine->lock);
    struct tide_account *account = tide_engine_account_of(f->engine, id);
    const uint64_t now_ms = tide_world_now_ms(f->world);
    tide_governor_pause(account->governor, now_ms + 700, TIDE_THROTTLED);
    tide_meters_blocked(account, now_ms);
    tide_meters_blocked(account, now_ms + 500);
    assert_int_equal(account->meters.blocked_ms[TIDE_BLOCKED_THROTTLED], 500);
    tide_meters_blocked(account, now_ms + 90000);
    assert_int_equal(account->meters.blocked_ms[TIDE_BLOCKED_THROTTLED], 700);
    tide_lock_drop(f->world, f->engine->lock);
}

TEST(systems_beyond_the_bound_are_one)
{
    static struct tide_meters meters;
    for (int i = 0; i < TIDE_METER_SYSTEMS_MAX + 9; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "system%d.sync", i);
        const uint8_t at = tide_meters_system(&meters, name);
        assert_int_equal(at, i < TIDE_METER_SYSTEMS_MAX ? i : TIDE_METER_SYSTEMS_MAX - 1);
        assert_int_equal(tide_meters_system(&meters, name), at);
    }
    assert_string_equal(meters.systems[0].name, "system0");
    assert_string_equal(meters.systems[TIDE_METER_SYSTEMS_MAX - 1].name, "other");
}

TEST(an_outcome_is_written_when_fortune_turns)
{
    struct tide_outcome outcome = {.ok_unix_ms = 0};
    const tide_text host = TIDE_TEXT("mail.example.org");
    assert_true(tide_outcome_add(&outcome, TIDE_OK, host, "", 1000));
    outcome.saved_unix_ms = 1000;
    assert_false(tide_outcome_add(&outcome, TIDE_OK, host, "", 30000));
    assert_true(tide_outcome_add(&outcome, TIDE_NETWORK, host, "no route", 40000));
    assert_string_equal(outcome.text, "mail.example.org: no route");
    assert_true(tide_outcome_is_bad(&outcome));
    outcome.saved_unix_ms = 40000;
    assert_false(tide_outcome_add(&outcome, TIDE_OK, host, "", 40500)); /* it flaps */
    assert_false(tide_outcome_is_bad(&outcome));
    assert_true(outcome.unsaved);
    assert_true(tide_outcome_add(&outcome, TIDE_OK, host, "", 100001));
    /* What says nothing about the remote changes nothing. */
    static const tide_status silent[] = {TIDE_CANCELED, TIDE_STOPPED, TIDE_AGAIN, TIDE_NO_MEMORY,
                                         TIDE_GONE};
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++)
        assert_false(tide_outcome_add(&outcome, silent[i], host, "x", 900000));
    assert_int_equal(outcome.ok_unix_ms, 100001);
    assert_int_equal(outcome.failed_unix_ms, 40000);
    /* An outage has begun with its first failure; an answer that is an error ends it. */
    (void)tide_outcome_add(&outcome, TIDE_NETWORK, host, "no route", 200000);
    (void)tide_outcome_add(&outcome, TIDE_TIMEOUT, host, "no answer", 300000);
    assert_int_equal(tide_outcome_offline_ms(&outcome), 200000);
    (void)tide_outcome_add(&outcome, TIDE_SERVER, host, "503", 400000);
    assert_int_equal(tide_outcome_offline_ms(&outcome), 0);
    (void)tide_outcome_add(&outcome, TIDE_NETWORK, host, "no route", 500000);
    assert_int_equal(tide_outcome_offline_ms(&outcome), 500000);
    (void)tide_outcome_add(&outcome, TIDE_OK, host, "", 600000);
    assert_int_equal(tide_outcome_offline_ms(&outcome), 0);
    /* A text that names the host is not given it twice. */
    (void)tide_outcome_add(&outcome, TIDE_SERVER, host, "GET mail.example.org/x: 500", 900000);
    assert_string_equal(outcome.text, "GET mail.example.org/x: 500");
}

/* "Offline since": the beginning, whatever is tried again; also over a restart. */
TEST(an_outage_keeps_its_beginning)
{
    struct tide_outcome outcome = {.ok_unix_ms = 0};
    const tide_text host = TIDE_TEXT("mail.example.org");
    tide_auto_buf line = tide_buf_heap(4096);
    (void)tide_outcome_add(&outcome, TIDE_OK, host, "", 1000);
    (void)tide_outcome_add(&outcome, TIDE_NETWORK, host, "no route", 40000);
    (void)tide_outcome_add(&outcome, TIDE_NETWORK, host, "no route", 50000);
    assert_int_equal(outcome.since_unix_ms, 40000);
    assert_int_equal(outcome.failed_unix_ms, 50000);
    OK(tide_outcome_write(&outcome, &line));
    assert_non_null(strstr(tide_buf_text(&line).data, "\"since\":40000"));
    (void)tide_outcome_add(&outcome, TIDE_OK, host, "", 60000);
    (void)tide_outcome_add(&outcome, TIDE_NETWORK, host, "no route", 70000);
    assert_int_equal(outcome.since_unix_ms, 70000);
}

/* ---- quotas of a program (E4.1) ------------------------------------------------------- */

OPENED(two_accounts_of_a_quota_share_its_limit)
{
    test_http *server = test_http_start();
    struct counted counted = {.url = test_http_url(server, "/plain")};
    uint32_t accounts[2] = {0, 0};
    const char *const names[2] = {"ada", "bob"};
    OK(tide_engine_quota(f->engine,
                         &(struct tide_quota){.name = "weather",
                                              .in_flight_max = 8,
                                              .rate_start = 1000,
                                              .rate_max = 1000,
                                              .shared_units = 6,
                                              .shared_window_ms = 1000},
                         err));
    const uint32_t kind = DEFINE(f, "work", counted_handler, .context = &counted);
    for (int i = 0; i < 20; i++) {
        OK(tide_engine_account(f->engine, names[i % 2], "weather", &accounts[i % 2], err));
        ENQUEUE(f, .kind = kind, .account = accounts[i % 2]);
    }
    const uint64_t from_ms = test_now_ms();
    run_all(f);
    assert_int_equal(test_http_requests(server), 20);
    assert_true(test_now_ms() - from_ms >= 3000); /* six in any second, of both together */
    test_http_stop(server);
}

/* E11.2: with one project the last ten calls would wait for another minute. */
CASE(accounts_of_two_projects_share_nothing)
{
    enum { CALLS = 10 };
    test_http *server = test_http_start();
    struct counted counted = {.url = test_http_url(server, "/plain")};
    const char *const names[2] = {"ada", "bob"};
    fixture_settings(f, "accounts.bob.governor.project=other");
    fixture_open(f);
    OK(tide_engine_quota(f->engine,
                         &(struct tide_quota){.name = "weather",
                                              .in_flight_max = 8,
                                              .rate_start = 1000,
                                              .rate_max = 1000,
                                              .shared_units = CALLS,
                                              .shared_window_ms = 60000},
                         err));
    const uint32_t kind = DEFINE(f, "work", counted_handler, .context = &counted);
    for (int i = 0; i < 2 * CALLS; i++) {
        const uint32_t account = new_account(f, names[i % 2], "weather");
        ENQUEUE(f, .kind = kind, .account = account);
    }
    const uint64_t from_ms = test_now_ms();
    run_all(f);
    assert_int_equal(test_http_requests(server), 2 * CALLS);
    assert_true(test_now_ms() - from_ms < 60000);
    tide_lock_take(f->world, f->engine->lock);
    size_t used = 0;
    for (size_t i = 0; i < f->engine->limits_count; i++) {
        const struct tide_common_limit *common = &f->engine->limits[i];
        if (strcmp(common->key, "weather") == 0 || strcmp(common->key, "weather/other") == 0)
            used += tide_window_used(&common->limit.window, tide_world_now_ms(f->world)) == CALLS;
    }
    tide_lock_drop(f->world, f->engine->lock);
    assert_int_equal(used, 2);
    test_http_stop(server);
}

OPENED(a_quota_holds_for_accounts_of_an_earlier_start)
{
    test_http *server = test_http_start();
    struct counted counted = {.url = test_http_url(server, "/plain")};
    const struct tide_quota quota = {.name = "weather", .window_units = 6000, .window_ms = 60000};
    OK(tide_engine_quota(f->engine, &quota, err));
    const uint32_t kind = DEFINE(f, "work", counted_handler, .context = &counted);
    uint32_t account = new_account(f, "ada", "weather");
    for (int i = 0; i < 5; i++)
        ENQUEUE(f, .kind = kind, .account = account);
    run_all(f);
    fixture_close(f);
    fixture_open(f);
    json_t *snapshot = NULL;
    json_t *ada = account_named(f, "ada", &snapshot);
    assert_int_equal(json_integer_value(json_object_get(ada, "window_max_units")), 0);
    json_decref(snapshot);
    OK(tide_engine_quota(f->engine, &quota, err));
    ada = account_named(f, "ada", &snapshot);
    assert_true(json_integer_value(json_object_get(ada, "window_max_units")) > 5000);
    assert_true(json_integer_value(json_object_get(ada, "window_used_units")) >= 5);
    json_decref(snapshot);
    test_http_stop(server);
}

OPENED(a_quota_that_contradicts_itself_is_refused)
{
    uint32_t account = 0;
    static const struct tide_quota wrong[] = {
        {.name = NULL},
        {.name = ""},
        {.name = "a name of more than thirty-two bytes"},
        {.name = "a", .window_ms = 60000},
        {.name = "a", .window_units = 10},
        {.name = "a", .window_ms = 60000, .window_units = 10, .call_units = 11},
        {.name = "a", .shared_units = 10},
        {.name = "a", .shared_window_ms = 60000},
        {.name = "a", .shared_units = 10, .shared_window_ms = 60000, .call_units = 11},
        {.name = "a", .rate_max = -1},
        {.name = "a", .reserved = {1}},
        {.name = "a", .reserved_flags = {1}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        REFUSED(tide_engine_quota(f->engine, &wrong[i], err), TIDE_INVALID);
    REFUSED(tide_engine_quota(f->engine, &(struct tide_quota){.name = "gmail"}, err), TIDE_EXISTS);
    REFUSED(tide_engine_account(f->engine, "ada", "a", &account, err), TIDE_INVALID);
    OK(tide_engine_quota(f->engine, &(struct tide_quota){.name = "a"}, err));
    OK(tide_engine_account(f->engine, "ada", "a", &account, err));
    REFUSED(tide_engine_quota(f->engine, &(struct tide_quota){.name = "a"}, err), TIDE_EXISTS);
    start(f);
    REFUSED(tide_engine_quota(f->engine, &(struct tide_quota){.name = "b"}, err), TIDE_INVALID);
    finish(f);
}
