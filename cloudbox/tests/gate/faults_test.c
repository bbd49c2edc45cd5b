/* Every fault as a client meets it, and the rules that call for them. */
#include "gate_support.h"

static const struct box_options plain = {.seed = 5};
static const struct ask get_one = {.target = "/gmail/v1/users/me/messages/m1", .token = "a"};

/* ---- what each does ---- */

TEST(a_fault_before_the_effect_answers_instead_of_the_handler)
{
    static const struct {
        const char *fault;
        int status;
        const char *reason;
        const char *text;
    } cases[] = {
        {"401", 401, "authError", "Invalid Credentials"},
        {"403", 403, "insufficientPermissions", "insufficient authentication scopes"},
        {"403-rate", 403, "rateLimitExceeded", "Quota exceeded for quota metric"},
        {"403-user-rate", 403, "userRateLimitExceeded", "User Rate Limit Exceeded"},
        {"403-daily", 403, "dailyLimitExceeded", "Daily Limit Exceeded"},
        {"404", 404, "notFound", "Requested entity was not found."},
        {"429", 429, "rateLimitExceeded", "Resource has been exhausted"},
        {"429-time", 429, "rateLimitExceeded", "exceeded.  Retry after 2026-09-21T14:13:30.000Z"},
        {"500", 500, "backendError", "Backend Error"},
        {"502", 502, "backendError", "Backend Error"},
        {"503", 503, "backendError", "currently unavailable"},
        {"504", 504, "backendError", "Deadline"},
        {"poison", 500, "backendError", "Backend Error"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        auto_cloud *cloud = cloud_with(&plain);
        char rule[128];
        (void)snprintf(rule, sizeof rule, "{\"fault\":\"%s\"}", cases[i].fault);
        add_fault(cloud, rule);
        auto_answer answer;
        assert_int_equal(ask(cloud, START_MS, &get_one, &answer), cases[i].status);
        assert_int_equal(handled, 0);
        const char *body = tide_buf_cstr(&answer.body);
        if (strstr(body, cases[i].text) == NULL || strstr(body, cases[i].reason) == NULL)
            fail_msg("%s: %s", cases[i].fault, body);
        /* What it cost is on the record, as for any failed call. */
        assert_int_equal(answer.ticket.slots, 1);
        box_cloud_finished(cloud, &answer.ticket, START_MS);
    }
}

TEST(faults_of_the_wire_leave_their_plan)
{
    static const struct {
        const char *rule;
        int handled;
        struct box_plan plan;
        bool anywhere;
    } cases[] = {
        {"{\"fault\":\"reset-before\"}", 0, {.fate = BOX_FATE_RESET, .fate_at = BOX_AT_START}, 0},
        {"{\"fault\":\"reset-after\"}", 1, {.fate = BOX_FATE_RESET}, true},
        {"{\"fault\":\"stall-start\",\"ms\":7}",
         1,
         {.fate = BOX_FATE_STALL, .fate_at = BOX_AT_START, .stall_ms = 7},
         0},
        {"{\"fault\":\"stall-head\"}",
         1,
         {.fate = BOX_FATE_STALL, .fate_at = BOX_IN_HEAD, .stall_ms = 30000},
         0},
        {"{\"fault\":\"stall-body\"}",
         1,
         {.fate = BOX_FATE_STALL, .fate_at = BOX_IN_BODY, .stall_ms = 30000},
         0},
        {"{\"fault\":\"truncate\"}", 1, {.fate = BOX_FATE_TRUNCATE, .fate_at = BOX_IN_BODY}, 0},
        {"{\"fault\":\"slow\",\"bytes_per_s\":100}", 1, {.bytes_per_s = 100}, 0},
        {"{\"fault\":\"latency\",\"ms\":250}", 1, {.delay_ms = 250}, 0},
        {"{\"fault\":\"held\"}", 1, {.held_by = 1}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        auto_cloud *cloud = cloud_with(&plain);
        add_fault(cloud, cases[i].rule);
        auto_answer answer;
        (void)ask(cloud, START_MS, &get_one, &answer);
        assert_int_equal(handled, cases[i].handled);
        assert_int_equal(answer.plan.fate, cases[i].plan.fate);
        if (!cases[i].anywhere)
            assert_int_equal(answer.plan.fate_at, cases[i].plan.fate_at);
        assert_int_equal(answer.plan.stall_ms, cases[i].plan.stall_ms);
        assert_int_equal(answer.plan.bytes_per_s, cases[i].plan.bytes_per_s);
        assert_int_equal(answer.plan.delay_ms, cases[i].plan.delay_ms);
        assert_int_equal(answer.plan.held_by, cases[i].plan.held_by);
    }
}

TEST(garbage_keeps_status_and_type_and_nothing_else)
{
    auto_cloud *cloud = cloud_with(&plain);
    auto_answer whole;
    auto_answer spoilt;
    assert_int_equal(ask(cloud, START_MS, &get_one, &whole), 200);
    add_fault(cloud, "{\"fault\":\"garbage\"}");
    assert_int_equal(ask(cloud, START_MS, &get_one, &spoilt), 200);
    assert_int_equal(handled, 2);
    assert_string_equal(spoilt.type, whole.type);
    assert_int_equal(spoilt.body.bytes, whole.body.bytes);
    assert_null(json_loadb(spoilt.body.data, spoilt.body.bytes, 0, NULL));
}

TEST(a_front_end_in_trouble_speaks_html)
{
    auto_cloud *cloud = cloud_with(&plain);
    add_fault(cloud, "{\"fault\":\"html\"}");
    auto_answer answer;
    assert_int_equal(ask(cloud, START_MS, &get_one, &answer), 502);
    assert_string_equal(answer.type, "text/html; charset=UTF-8");
    assert_memory_equal(answer.body.data, "<!DOCTYPE html>", 15);
}

TEST(chat_faults_speak_the_dialect_of_the_path)
{
    auto_cloud *cloud = cloud_with(&plain);
    add_fault(cloud, "{\"fault\":\"429\"}");
    json_auto_t *body = ask_json(
        cloud, START_MS, 429,
        &(struct ask){
            .verb = BOX_POST, .target = "/v1/chat/completions", .token = "a", .body = "{}"});
    assert_string_equal(json_string_value(inside(body, "error", "type", NULL)), "requests");
    json_decref(body);
    body = ask_json(
        cloud, START_MS, 429,
        &(struct ask){.verb = BOX_POST, .target = "/v1/messages", .token = "a", .body = "{}"});
    assert_string_equal(json_string_value(inside(body, "error", "type", NULL)), "rate_limit_error");
}

/* ---- whom they strike ---- */

TEST(a_rule_names_methods_users_and_messages)
{
    auto_cloud *cloud = cloud_with(&plain);
    add_fault(cloud, "{\"method\":\"gmail.users.messages.*\",\"user\":\"A@x.org\",\"id\":\"m2\","
                     "\"fault\":\"503\"}");
    add_fault(cloud, "{\"method\":\"gmail.users.history.list\",\"fault\":\"500\"}");
    add_fault(cloud, "{\"fault\":\"history-expired\"}");
    assert_int_equal(get_message(cloud, START_MS, "m1"), 200);
    assert_int_equal(get_message(cloud, START_MS, "m2"), 503);
    assert_int_equal(
        ask_status(cloud, START_MS,
                   &(struct ask){.target = "/gmail/v1/users/me/messages/m2", .token = "b"}),
        200);
    assert_int_equal(
        ask_status(cloud, START_MS,
                   &(struct ask){.target = "/gmail/v1/users/me/history", .token = "b"}),
        500);
    assert_true(box_faults_remove(box_cloud_faults(cloud), 2));
    assert_false(box_faults_remove(box_cloud_faults(cloud), 2));
    assert_int_equal(
        ask_status(cloud, START_MS,
                   &(struct ask){.target = "/gmail/v1/users/me/history", .token = "b"}),
        404);
}

TEST(count_and_after_are_exact)
{
    auto_cloud *cloud = cloud_with(&plain);
    add_fault(cloud, "{\"after\":2,\"count\":3,\"fault\":\"503\"}");
    for (int i = 0; i < 10; i++)
        assert_int_equal(get_message(cloud, START_MS, "1"), i >= 2 && i < 5 ? 503 : 200);
    json_auto_t *list = box_faults_list(box_cloud_faults(cloud));
    const json_t *rule = json_array_get(list, 0);
    assert_int_equal(json_integer_value(json_object_get(rule, "struck")), 3);
    assert_int_equal(json_integer_value(json_object_get(rule, "count_left")), 0);
}

/* Goal: BFLT1.  Method: two clouds of one seed see the same, one of another does not;
 * and the share that is struck is the rate. */
TEST(chance_comes_from_the_seed)
{
    enum { CALLS = 4000 };
    static char struck[3][CALLS];
    static const uint64_t seeds[] = {8, 8, 9};
    for (int c = 0; c < 3; c++) {
        auto_cloud *cloud = cloud_with(&(struct box_options){.seed = seeds[c]});
        add_fault(cloud, "{\"rate\":0.1,\"fault\":\"503\"}");
        int count = 0;
        for (int i = 0; i < CALLS; i++) {
            struck[c][i] = get_message(cloud, START_MS, "1") == 503;
            count += struck[c][i];
        }
        assert_in_range(count, CALLS / 10 - 120, CALLS / 10 + 120); /* six sigma */
    }
    assert_memory_equal(struck[0], struck[1], CALLS);
    assert_memory_not_equal(struck[0], struck[2], CALLS);
}

TEST(one_more_rule_moves_no_other)
{
    enum { CALLS = 500 };
    static char struck[2][CALLS];
    for (int c = 0; c < 2; c++) {
        auto_cloud *cloud = cloud_with(&plain);
        add_fault(cloud, "{\"rate\":0.3,\"fault\":\"503\"}");
        if (c == 1)
            add_fault(cloud, "{\"rate\":0.5,\"fault\":\"500\"}");
        for (int i = 0; i < CALLS; i++)
            struck[c][i] = get_message(cloud, START_MS, "1") == 503;
    }
    assert_memory_equal(struck[0], struck[1], CALLS);
}

TEST(the_first_rule_that_strikes_wins_and_latency_adds_up)
{
    auto_cloud *cloud = cloud_with(&plain);
    add_fault(cloud, "{\"fault\":\"latency\",\"ms\":10}");
    add_fault(cloud, "{\"fault\":\"truncate\",\"count\":1}");
    add_fault(cloud, "{\"fault\":\"503\"}");
    add_fault(cloud, "{\"fault\":\"latency\",\"ms\":20,\"jitter_ms\":5}");
    struct box_answer answer;
    assert_int_equal(ask(cloud, START_MS, &get_one, &answer), 200);
    assert_int_equal(answer.plan.fate, BOX_FATE_TRUNCATE);
    assert_in_range(answer.plan.delay_ms, 30, 34);
    box_cloud_finished(cloud, &answer.ticket, START_MS);
    box_answer_done(&answer);
    assert_int_equal(ask(cloud, START_MS, &get_one, &answer), 503);
    assert_int_equal(answer.plan.fate, BOX_FATE_WHOLE);
    assert_in_range(answer.plan.delay_ms, 30, 34);
    box_answer_done(&answer);
}

TEST(poison_stays_with_its_messages)
{
    enum { MESSAGES = 1000 };
    static char bad[MESSAGES];
    auto_cloud *cloud = cloud_with(&plain);
    add_fault(cloud,
              "{\"method\":\"gmail.users.messages.get\",\"rate\":0.05,\"fault\":\"poison\"}");
    int count = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MESSAGES; i++) {
            char id[24];
            (void)snprintf(id, sizeof id, "%016x", (unsigned)i * 77);
            const bool failed = get_message(cloud, START_MS, id) == 500;
            if (round == 0)
                bad[i] = failed;
            assert_int_equal(bad[i], failed);
            count += failed;
        }
    }
    assert_in_range(count / 3, 20, 90);
}

TEST(handlers_ask_for_their_own_faults)
{
    auto_cloud *cloud = cloud_with(&plain);
    const struct ask paged = {.target = "/gmail/v1/users/me/messages?page=2", .token = "a"};
    add_fault(cloud,
              "{\"method\":\"gmail.users.messages.list\",\"count\":1,\"fault\":\"page-loop\"}");
    json_auto_t *first = ask_json(cloud, START_MS, 200, &paged);
    json_auto_t *second = ask_json(cloud, START_MS, 200, &paged);
    assert_true(json_is_true(json_object_get(first, "loop")));
    assert_null(json_object_get(second, "loop"));
}

TEST(the_control_page_is_never_struck)
{
    auto_cloud *cloud = cloud_with(&plain);
    add_fault(cloud, "{\"method\":\"*\",\"fault\":\"503\"}");
    assert_int_equal(get_message(cloud, START_MS, "1"), 503);
    assert_int_equal(
        ask_status(cloud, START_MS, &(struct ask){.verb = BOX_DELETE, .target = "/_cloud/faults"}),
        200);
    assert_int_equal(get_message(cloud, START_MS, "1"), 200);
}

/* ---- rules that make no sense ---- */

TEST(what_a_rule_gets_wrong_is_named)
{
    static const struct {
        const char *rule;
        const char *text;
    } cases[] = {
        {"{}", "needs \"fault\""},
        {"[]", "must be a JSON object"},
        {"{\"fault\":\"5O3\"}", "unknown fault \"5O3\", did you mean \"503\"?"},
        {"{\"fault\":\"trunkate\"}", "did you mean \"truncate\"?"},
        {"{\"fault\":\"something quite different\"}", "unknown fault \"something quite"},
        {"{\"fault\":3}", "\"fault\" must be a text"},
        {"{\"fault\":\"503\",\"metod\":\"*\"}",
         "unknown field \"metod\", did you mean \"method\"?"},
        {"{\"fault\":\"503\",\"method\":\"a*b\"}", "only at its end"},
        {"{\"fault\":\"503\",\"method\":\"\"}", "\"method\" must have"},
        {"{\"fault\":\"503\",\"rate\":1.5}", "\"rate\" must be a number from 0 to 1"},
        {"{\"fault\":\"503\",\"rate\":\"often\"}", "\"rate\" must be"},
        {"{\"fault\":\"503\",\"count\":0}", "\"count\" must be a whole number from 1"},
        {"{\"fault\":\"503\",\"count\":-1}", "\"count\" must be"},
        {"{\"fault\":\"503\",\"after\":0.5}", "\"after\" must be"},
        {"{\"fault\":\"503\",\"ms\":5}", "\"ms\" means nothing to fault \"503\""},
        {"{\"fault\":\"truncate\",\"jitter_ms\":5}", "\"jitter_ms\" means nothing"},
        {"{\"fault\":\"latency\"}", "needs \"ms\""},
        {"{\"fault\":\"slow\"}", "needs \"bytes_per_s\""},
        {"{\"fault\":\"latency\",\"ms\":5,\"bytes_per_s\":1}", "\"bytes_per_s\" means nothing"},
        {"{\"fault\":\"503\",\"user\":7}", "\"user\" must be a text"},
        {"{\"fault\":\"503\",\"id\":[\"x\"]}", "\"id\" must be a text"},
    };
    auto_cloud *cloud = cloud_with(&plain);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_error err = {0};
        assert_int_equal(box_cloud_add_fault(cloud, tide_text_of(cases[i].rule), &err),
                         TIDE_INVALID);
        if (strstr(err.text, cases[i].text) == NULL)
            fail_msg("%s: %s", cases[i].rule, err.text);
    }
    json_auto_t *list = box_faults_list(box_cloud_faults(cloud));
    assert_int_equal(json_array_size(list), 0);
}

TEST(there_is_room_for_a_thousand_rules)
{
    struct box_faults *faults = box_faults_new(1, NULL);
    json_auto_t *rule = json_pack("{s:s}", "fault", "503");
    uint32_t number = 0;
    tide_error err = {0};
    for (int i = 0; i < 1000; i++)
        assert_ok(box_faults_add(faults, rule, &number, &err));
    assert_int_equal(number, 1000);
    assert_int_equal(box_faults_add(faults, rule, &number, &err), TIDE_FULL);
    assert_true(box_faults_remove(faults, 0));
    assert_ok(box_faults_add(faults, rule, &number, &err));
    box_faults_free(faults);
}
