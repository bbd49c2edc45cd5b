/* The windows against a model that keeps every charge, then the quota as a
 * client meets it. */
#include "gate_support.h"

#include <inttypes.h>

/* ---- windows ---- */

enum { MODEL_MAX = 200000 };

struct model {
    struct {
        uint64_t at_ms;
        uint32_t amount;
    } charges[MODEL_MAX];
    size_t count;
    size_t first; /* older ones cannot count any more */
    uint64_t highest;
};

static uint64_t model_count(struct model *model, uint64_t now_ms, uint64_t length_ms)
{
    while (model->first < model->count && model->charges[model->first].at_ms + length_ms <= now_ms)
        model->first++;
    uint64_t sum = 0;
    for (size_t i = model->first; i < model->count; i++)
        sum += model->charges[i].amount;
    return sum;
}

static uint64_t model_fits_at(const struct model *model, uint64_t now_ms, uint64_t length_ms,
                              uint64_t limit, uint32_t amount)
{
    if (amount > limit)
        return UINT64_MAX;
    for (uint64_t at_ms = now_ms;; at_ms++) { /* ends when the last charge is old */
        uint64_t sum = amount;
        for (size_t i = model->first; i < model->count; i++)
            if (model->charges[i].at_ms + length_ms > at_ms)
                sum += model->charges[i].amount;
        if (sum <= limit)
            return at_ms;
    }
}

static void same(uint64_t seed, uint64_t have, uint64_t want)
{
    if (have != want)
        fail_msg("seed %" PRIu64 ": %" PRIu64 " instead of %" PRIu64, seed, have, want);
}

static void window_round(uint64_t seed, struct model *model)
{
    tide_rng rng = tide_rng_seeded(seed);
    const uint32_t length_ms = 1 + (uint32_t)tide_rng_below(&rng, 60);
    box_window *window = box_window_new(length_ms, 1);
    uint64_t now_ms = tide_rng_below(&rng, 1000);
    memset(model, 0, offsetof(struct model, count));
    model->count = model->first = 0;
    model->highest = 0;
    for (int i = 0; i < 400; i++) {
        if (tide_rng_chance(&rng, 1, 2))
            now_ms += tide_rng_below(&rng, tide_rng_chance(&rng, 1, 40) ? 500 : 6);
        const uint32_t amount = (uint32_t)tide_rng_below(&rng, 50);
        const uint64_t have = model_count(model, now_ms, length_ms);
        same(seed, box_window_count(window, now_ms), have);
        const uint64_t limit = tide_rng_below(&rng, 2000);
        same(seed, box_window_fits_at(window, now_ms, limit, amount),
             model_fits_at(model, now_ms, length_ms, limit, amount));
        box_window_add(window, now_ms, amount);
        model->charges[model->count].at_ms = now_ms;
        model->charges[model->count++].amount = amount;
        if (have + amount > model->highest)
            model->highest = have + amount;
        same(seed, box_window_highest(window), model->highest);
    }
    box_window_free(window);
}

TEST(a_window_agrees_with_a_list_of_all_charges)
{
    struct model *model = calloc(1, sizeof *model);
    assert_non_null(model);
    for (uint64_t seed = 1; seed <= scaled(3000); seed++)
        window_round(seed, model);
    free(model);
}

TEST(a_minute_holds_what_a_minute_held)
{
    /* Goal: exact at the real length and with many charges a millisecond.
     * Method: a running sum over an array of all milliseconds. */
    enum { MINUTE = 60000, TIME = 400000 };
    tide_rng rng = tide_rng_seeded(7);
    uint32_t *charged = calloc(TIME, sizeof *charged);
    assert_non_null(charged);
    box_window *window = box_window_new(MINUTE, 1);
    uint64_t sum = 0;
    const uint64_t last = scaled(TIME - 1) < TIME ? scaled(TIME - 1) : TIME - 1;
    for (uint64_t now_ms = 0; now_ms < last; now_ms++) {
        if (now_ms >= MINUTE)
            sum -= charged[now_ms - MINUTE];
        for (uint64_t n = tide_rng_below(&rng, 4); n > 0; n--) {
            const uint32_t amount = (uint32_t)tide_rng_below(&rng, 100);
            box_window_add(window, now_ms, amount);
            charged[now_ms] += amount;
            sum += amount;
        }
        if (tide_rng_chance(&rng, 1, 3))
            assert_int_equal(box_window_count(window, now_ms), sum);
    }
    assert_int_equal(box_window_count(window, TIME + MINUTE), 0);
    box_window_free(window);
    free(charged);
}

TEST(a_coarse_window_errs_on_the_strict_side)
{
    tide_rng rng = tide_rng_seeded(11);
    for (int i = 0; i < 1000; i++) {
        box_window *window = box_window_new(600000, 1000);
        const uint64_t at_ms = tide_rng_below(&rng, 1000000);
        box_window_add(window, at_ms, 5);
        assert_int_equal(box_window_count(window, at_ms + 599999), 5);
        assert_int_equal(box_window_count(window, at_ms + 601000), 0);
        box_window_free(window);
    }
}

/* ---- what a client meets ---- */

#define USER_MINUTE    (&box_gmail_limits[0])
#define PROJECT_MINUTE (&box_gmail_limits[1])

static const struct box_options rules_2026 = {.seed = 3, .quota = BOX_QUOTA_2026};

TEST(three_hundred_messages_a_minute_and_not_one_more)
{
    auto_cloud *cloud = cloud_with(&rules_2026);
    for (int i = 0; i < 300; i++)
        assert_int_equal(get_message(cloud, START_MS + (uint64_t)i * 199, "1"), 200);
    assert_int_not_equal(get_message(cloud, START_MS + 59999, "1"), 200);
    assert_int_equal(handled, 300);
}

TEST(the_budget_comes_back_to_the_millisecond)
{
    auto_cloud *cloud = cloud_with(&(struct box_options){.seed = 1, .quota = BOX_QUOTA_2026});
    struct box_quota *quota = box_cloud_quota(cloud);
    struct box_call call = {
        .cloud = cloud, .service = &test_gmail, .method = &test_methods[0], .now_ms = START_MS};
    call.user = box_cloud_user(cloud, TIDE_TEXT("a@x.org"));
    uint64_t retry_at_ms = 0;
    for (int i = 0; i < 300; i++) {
        call.now_ms = START_MS + (uint64_t)i;
        assert_null(box_quota_charge(quota, &call, &retry_at_ms));
    }
    assert_ptr_equal(box_quota_charge(quota, &call, &retry_at_ms), USER_MINUTE);
    assert_int_equal(retry_at_ms, START_MS + 60000);
    /* Another project of the same user has a budget of its own. */
    call.project = 1;
    assert_null(box_quota_charge(quota, &call, &retry_at_ms));
    call.project = 0;
    call.now_ms = START_MS + 59999;
    assert_ptr_equal(box_quota_charge(quota, &call, &retry_at_ms), USER_MINUTE);
    call.now_ms = START_MS + 60000;
    assert_null(box_quota_charge(quota, &call, &retry_at_ms));
    assert_ptr_equal(box_quota_charge(quota, &call, &retry_at_ms), USER_MINUTE);
}

/* Goal: BQTA1 and BQTA2 under random load of two users in one project whose own
 * limit applies too.  Method: all charges in a list, sums computed again. */
TEST(no_window_is_ever_crossed)
{
    enum { CALLS = 6000, LENGTH = 60000 };
    static struct {
        uint64_t at_ms;
        uint32_t units;
        int user;
    } granted[CALLS];
    auto_cloud *cloud = cloud_with(&rules_2026);
    struct box_quota *quota = box_cloud_quota(cloud);
    assert_true(box_quota_set(quota, "user_units_per_minute", 600));
    assert_true(box_quota_set(quota, "project_units_per_minute", 1000));
    struct box_user *users[] = {box_cloud_user(cloud, TIDE_TEXT("a@x.org")),
                                box_cloud_user(cloud, TIDE_TEXT("b@x.org"))};
    tide_rng rng = tide_rng_seeded(99);
    struct box_call call = {.cloud = cloud, .service = &test_gmail, .now_ms = START_MS};
    size_t count = 0;
    size_t refused = 0;
    for (int i = 0; i < CALLS; i++) {
        call.now_ms += tide_rng_below(&rng, 700);
        const int who = (int)tide_rng_below(&rng, 2);
        call.user = users[who];
        call.method = &test_methods[tide_rng_below(&rng, 4)];
        uint64_t mine = 0;
        uint64_t all = 0;
        for (size_t g = 0; g < count; g++) {
            if (granted[g].at_ms + LENGTH <= call.now_ms)
                continue;
            all += granted[g].units;
            mine += granted[g].user == who ? granted[g].units : 0;
        }
        uint64_t retry_at_ms = 0;
        const struct box_limit *over = box_quota_charge(quota, &call, &retry_at_ms);
        const uint32_t units = call.method->units;
        if (mine + units > 600)
            assert_ptr_equal(over, USER_MINUTE);
        else if (all + units > 1000)
            assert_ptr_equal(over, PROJECT_MINUTE);
        else
            assert_null(over);
        if (over != NULL) {
            assert_true(retry_at_ms > call.now_ms && retry_at_ms <= call.now_ms + LENGTH);
            refused++;
            continue;
        }
        granted[count].at_ms = call.now_ms;
        granted[count].units = units;
        granted[count++].user = who;
    }
    assert_true(refused > 100 && count > 100);
}

TEST(legacy_rules_have_legacy_prices)
{
    auto_cloud *cloud = cloud_with(&(struct box_options){.quota = BOX_QUOTA_LEGACY});
    for (int i = 0; i < 3000; i++) /* 15,000 / 5 */
        assert_int_equal(get_message(cloud, START_MS, "1"), 200);
    assert_int_not_equal(get_message(cloud, START_MS, "1"), 200);
}

TEST(without_rules_nothing_is_refused_but_all_is_counted)
{
    auto_cloud *cloud = cloud_with(&(struct box_options){.quota = BOX_QUOTA_OFF});
    struct box_answer answers[40];
    for (int i = 0; i < 40; i++)
        assert_int_equal(ask(cloud, START_MS,
                             &(struct ask){.target = "/gmail/v1/users/me/messages/1", .token = "a"},
                             &answers[i]),
                         200);
    for (int i = 0; i < 40; i++) {
        box_cloud_finished(cloud, &answers[i].ticket, START_MS);
        box_answer_done(&answers[i]);
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(get_message(cloud, START_MS, "1"), 200);
    json_auto_t *stats = box_cloud_stats(cloud, NULL, false);
    const json_t *user = inside(stats, "users", "a@x.org", NULL);
    assert_int_equal(json_integer_value(json_object_get(user, "offered_units_highest_in_60s")),
                     20800);
    assert_int_equal(json_integer_value(json_object_get(user, "in_flight_highest")), 40);
}

/* Fills the minute, then collects the ways in which it is refused. */
TEST(a_full_minute_is_refused_in_all_four_ways)
{
    static const char *const texts[] = {
        "Quota exceeded for quota metric 'Queries'", "User Rate Limit Exceeded",
        "User-rate limit exceeded.  Retry after 20", "Resource has been exhausted"};
    unsigned seen = 0;
    for (uint64_t seed = 1; seed < 60; seed++) {
        auto_cloud *cloud =
            cloud_with(&(struct box_options){.seed = seed, .quota = BOX_QUOTA_2026});
        for (int i = 0; i < 300; i++)
            assert_int_equal(get_message(cloud, START_MS, "1"), 200);
        auto_answer answer;
        const int status =
            ask(cloud, START_MS,
                &(struct ask){.target = "/gmail/v1/users/me/messages/1", .token = "a"}, &answer);
        assert_true(status == 403 || status == 429);
        for (unsigned i = 0; i < 4; i++) {
            if (strstr(tide_buf_cstr(&answer.body), texts[i]) == NULL)
                continue;
            seen |= 1u << i;
            assert_int_equal(status, i < 2 ? 403 : 429);
        }
        assert_non_null(strstr(tide_buf_cstr(&answer.body), "ateLimitExceeded"));
    }
    assert_int_equal(seen, 15);
}

static uint64_t violations(box_cloud *cloud, const char *kind)
{
    json_auto_t *stats = box_cloud_stats(cloud, NULL, false);
    uint64_t count = 0;
    size_t i = 0;
    json_t *entry = NULL;
    json_array_foreach(json_object_get(stats, "violations"), i, entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "kind")), kind) == 0)
            count = (uint64_t)json_integer_value(json_object_get(entry, "count"));
    }
    return count;
}

TEST(asking_before_the_told_time_moves_it)
{
    auto_cloud *cloud = cloud_with(&rules_2026);
    add_fault(cloud, "{\"method\":\"*\",\"count\":1,\"fault\":\"429-time\",\"ms\":20000}");
    assert_int_equal(get_message(cloud, START_MS, "1"), 429);
    /* What was in flight is refused and is no violation. */
    assert_int_equal(get_message(cloud, START_MS + 900, "1"), 429);
    assert_int_equal(violations(cloud, "early-retry"), 0);
    /* Too early: 5 s more, then 10 s more. */
    assert_int_equal(get_message(cloud, START_MS + 19000, "1"), 429);
    assert_int_equal(violations(cloud, "early-retry"), 1);
    auto_answer answer;
    assert_int_equal(ask(cloud, START_MS + 21000,
                         &(struct ask){.target = "/gmail/v1/users/me/messages/1", .token = "a"},
                         &answer),
                     429);
    assert_int_equal(violations(cloud, "early-retry"), 2);
    char told[BOX_TIME_TEXT_BYTES];
    box_time_text(START_MS + 35000, told);
    assert_non_null(strstr(tide_buf_cstr(&answer.body), told));
    assert_int_equal(get_message(cloud, START_MS + 34999, "1"), 429);
    assert_int_equal(get_message(cloud, START_MS + 50000, "1"), 200);
    /* Others are not concerned. */
    assert_int_equal(
        ask_status(cloud, START_MS + 50000,
                   &(struct ask){.target = "/gmail/v1/users/me/messages", .token = "b"}),
        200);
}

TEST(ten_calls_in_flight_and_not_one_more)
{
    auto_cloud *cloud = cloud_with(&rules_2026);
    const struct ask list = {.target = "/gmail/v1/users/me/messages", .token = "a"};
    struct box_answer answers[11];
    for (int i = 0; i < 11; i++)
        assert_int_equal(ask(cloud, START_MS, &list, &answers[i]), i < 10 ? 200 : 429);
    assert_non_null(
        strstr(tide_buf_cstr(&answers[10].body), "Too many concurrent requests for user"));
    assert_int_equal(answers[10].ticket.slots, 0);
    assert_int_equal(violations(cloud, "concurrency"), 1);
    for (int i = 0; i < 11; i++) {
        box_cloud_finished(cloud, &answers[i].ticket, START_MS);
        box_answer_done(&answers[i]);
    }
    assert_int_equal(ask_status(cloud, START_MS, &list), 200);
    assert_int_equal(box_quota_in_flight(box_cloud_quota(cloud), 1), 0);
}

TEST(the_console_counts_sites_users_and_load)
{
    auto_cloud *cloud = cloud_with(&rules_2026);
    tide_error err = {0};
    assert_ok(
        box_cloud_add_site(cloud, TIDE_TEXT("sc-domain:x.org"), TIDE_TEXT("a@x.org"), 10, &err));
    const struct ask other = {.target = "/webmasters/v3/sites", .token = "a"};
    for (int i = 0; i < 20; i++)
        assert_int_equal(ask_status(cloud, START_MS, &other), 200);
    assert_int_not_equal(ask_status(cloud, START_MS + 999, &other), 200);
    assert_int_equal(ask_status(cloud, START_MS + 1000, &other), 200);

    const struct ask query = {.verb = BOX_POST,
                              .target =
                                  "/webmasters/v3/sites/sc-domain%3Ax.org/searchAnalytics/query",
                              .token = "a",
                              .body = "{\"startDate\":\"2026-09-01\",\"endDate\":\"2026-09-01\"}"};
    for (int i = 0; i < 1200; i++)
        assert_int_equal(ask_status(cloud, START_MS + 2000, &query), 200);
    assert_int_not_equal(ask_status(cloud, START_MS + 2000, &query), 200);
    assert_int_equal(violations(cloud, "site-minute"), 1);

    const struct ask dear = {.verb = BOX_POST,
                             .target = query.target,
                             .token = "a",
                             .body = "{\"startDate\":\"2025-09-01\",\"endDate\":\"2026-09-01\","
                                     "\"dimensions\":[\"page\",\"query\"]}"};
    assert_true(box_quota_set(box_cloud_quota(cloud), "load_per_10_minutes", 20000));
    auto_answer answer;
    assert_int_equal(ask_status(cloud, START_MS + 70000, &dear), 200);
    assert_int_equal(ask(cloud, START_MS + 70000, &dear, &answer), 403);
    assert_non_null(strstr(tide_buf_cstr(&answer.body), "load quota exceeded"));
    assert_non_null(strstr(tide_buf_cstr(&answer.body), "quotaExceeded"));
    assert_int_equal(ask_status(cloud, START_MS + 70000 + 601000, &dear), 200);
}

/* The pace of a backfill: a property's days one by one, with every dimension. */
TEST(one_day_queries_at_full_pace_never_meet_the_load_quota)
{
    auto_cloud *cloud = cloud_with(&rules_2026);
    tide_error err = {0};
    assert_ok(
        box_cloud_add_site(cloud, TIDE_TEXT("sc-domain:x.org"), TIDE_TEXT("a@x.org"), 10, &err));
    const struct ask day = {.verb = BOX_POST,
                            .target =
                                "/webmasters/v3/sites/sc-domain%3Ax.org/searchAnalytics/query",
                            .token = "a",
                            .body = "{\"startDate\":\"2026-09-01\",\"endDate\":\"2026-09-01\","
                                    "\"dimensions\":[\"date\",\"query\",\"page\",\"country\","
                                    "\"device\"]}"};
    for (uint64_t i = 0; i < 1200 * 11; i++) {
        const int status = ask_status(cloud, START_MS + i * 50, &day);
        if (status != 200)
            fail_msg("query %llu: %d", (unsigned long long)i, status);
    }
    /* A year of the same costs 365 times as much, which the quota does notice. */
    const struct ask year = {.verb = BOX_POST,
                             .target = day.target,
                             .token = "a",
                             .body = "{\"startDate\":\"2025-09-02\",\"endDate\":\"2026-09-01\","
                                     "\"dimensions\":[\"page\",\"query\"]}"};
    const uint64_t later_ms = START_MS + UINT64_C(3600000);
    int granted = 0;
    while (granted < 100 && ask_status(cloud, later_ms, &year) == 200)
        granted++;
    assert_int_equal(granted, 1000000 / (365 * 40));
}

TEST(the_chat_refuses_in_the_dialect_it_speaks)
{
    auto_cloud *cloud = cloud_with(&rules_2026);
    assert_true(box_quota_set(box_cloud_quota(cloud), "chat_per_minute", 2));
    const struct ask openai = {
        .verb = BOX_POST, .target = "/v1/chat/completions", .token = "a", .body = "{}"};
    const struct ask anthropic = {
        .verb = BOX_POST, .target = "/v1/messages", .token = "a", .body = "{}"};
    assert_int_equal(ask_status(cloud, START_MS, &openai), 200);
    assert_int_equal(ask_status(cloud, START_MS + 500, &anthropic), 200);
    json_t *body = ask_json(cloud, START_MS + 1500, 429, &openai);
    assert_string_equal(json_string_value(inside(body, "error", "code", NULL)),
                        "rate_limit_exceeded");
    json_decref(body);
    auto_answer answer;
    assert_int_equal(ask(cloud, START_MS + 1500, &anthropic, &answer), 429);
    assert_non_null(strstr(tide_buf_cstr(&answer.body), "rate_limit_error"));
    size_t at = 0;
    while (at < answer.headers_count && strcmp(answer.headers[at].name, "retry-after") != 0)
        at++;
    assert_true(at < answer.headers_count);
    assert_string_equal(answer.headers[at].value, "59"); /* the first leaves after 58.5 s */
}

TEST(other_rules_bring_their_own_budget)
{
    fake_services();
    struct box_options options = rules_2026;
    options.services = test_services;
    struct box_quota *quota = box_quota_new(&options);
    assert_int_equal(box_quota_get(quota, "user_units_per_minute"), 6000);
    box_quota_set_rules(quota, BOX_QUOTA_LEGACY);
    assert_int_equal(box_quota_get(quota, "user_units_per_minute"), 15000);
    assert_true(box_quota_set(quota, "concurrency_max", 3));
    assert_int_equal(box_quota_get(quota, "user_units_per_minute"), 15000);
    assert_int_equal(box_quota_get(quota, "concurrency_max"), 3);
    assert_false(box_quota_set(quota, "no such setting", 3));
    assert_int_equal(box_quota_get(quota, "no such setting"), 0);
    box_quota_free(quota);
}

/* As Microsoft Graph counts: a client that does not stop stays refused. */
TEST(a_limit_may_count_refusals_too)
{
    static struct box_limit strict;
    static struct box_service service;
    static const struct box_service *const services[] = {&service, NULL};
    strict = box_gmail_limits[0];
    strict.limit = 20;
    strict.refusals_count = true;
    service = (struct box_service){.name = "strict", .limits = &strict, .limits_count = 1};
    struct box_options options = rules_2026;
    options.services = services;
    auto_cloud *cloud = box_cloud_new(&options);
    struct box_quota *quota = box_cloud_quota(cloud);
    struct box_call call = {
        .cloud = cloud, .service = &service, .method = &test_methods[0], .now_ms = START_MS};
    uint64_t retry_at_ms = 0;
    assert_null(box_quota_charge(quota, &call, &retry_at_ms));
    call.now_ms = START_MS + 59000;
    assert_ptr_equal(box_quota_charge(quota, &call, &retry_at_ms), &strict);
    call.now_ms = START_MS + 61000; /* the refused call still counts */
    assert_ptr_equal(box_quota_charge(quota, &call, &retry_at_ms), &strict);
    call.now_ms = START_MS + 61000 + 60000;
    assert_null(box_quota_charge(quota, &call, &retry_at_ms));
}

TEST(times_are_written_as_google_writes_them)
{
    char text[BOX_TIME_TEXT_BYTES];
    box_time_text(1789156800000, text);
    assert_string_equal(text, "2026-09-11T20:00:00.000Z");
    box_time_text(UINT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
}
