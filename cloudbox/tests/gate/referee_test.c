/* The record of what was asked. */
#include "gate_support.h"

static const struct box_options rules = {.seed = 5, .quota = BOX_QUOTA_2026};

static json_t *stats_of(box_cloud *cloud)
{
    return box_cloud_stats(cloud, NULL, false);
}

static json_int_t number(const json_t *value)
{
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static const json_t *violation_of(const json_t *stats, const char *kind)
{
    size_t i = 0;
    json_t *entry = NULL;
    json_array_foreach(json_object_get(stats, "violations"), i, entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "kind")), kind) == 0)
            return entry;
    }
    return NULL;
}

TEST(every_call_is_counted_once_by_method_user_and_status)
{
    auto_cloud *cloud = cloud_with(&rules);
    add_fault(cloud, "{\"method\":\"gmail.users.messages.get\",\"count\":2,\"fault\":\"404\"}");
    for (int i = 0; i < 7; i++)
        (void)get_message(cloud, START_MS, "1");
    for (int i = 0; i < 3; i++)
        (void)ask_status(cloud, START_MS,
                         &(struct ask){.target = "/gmail/v1/users/me/messages", .token = "b"});
    (void)ask_status(cloud, START_MS, &(struct ask){.target = "/gmail/v1/users/me/messages"});
    (void)ask_status(cloud, START_MS,
                     &(struct ask){.target = "/gmail/v1/users/b@x.org/messages", .token = "a"});
    (void)ask_status(cloud, START_MS, &(struct ask){.target = "/nowhere", .token = "a"});

    json_auto_t *stats = stats_of(cloud);
    const json_t *a = inside(stats, "users", "a@x.org", NULL);
    const json_t *get = inside(a, "methods", "gmail.users.messages.get", NULL);
    assert_int_equal(number(json_object_get(a, "calls")), 8);
    assert_int_equal(number(json_object_get(a, "units")), 140);
    assert_int_equal(number(json_object_get(get, "calls")), 7);
    assert_int_equal(number(json_object_get(get, "units")), 140);
    assert_int_equal(number(inside(get, "status", "200", NULL)), 5);
    assert_int_equal(number(inside(get, "status", "404", NULL)), 2);
    assert_int_equal(
        number(inside(a, "methods", "gmail.users.messages.list", "status", "403", NULL)), 1);
    assert_int_equal(number(inside(stats, "users", "b@x.org", "calls", NULL)), 3);
    assert_int_equal(number(inside(stats, "nobody", "calls", NULL)), 1);
    assert_int_equal(number(inside(stats, "strays", "404", NULL)), 1);
    assert_int_equal(number(json_object_get(a, "granted_units_highest_in_60s")), 140);
}

/* Goal: the highest windows of a random load are those a list of all calls gives,
 * and offered is above the limit exactly when something was refused (BREF2). */
TEST(the_highest_windows_are_the_true_ones)
{
    enum { CALLS = 1500 };
    static struct {
        uint64_t at_ms;
        bool granted;
    } calls[CALLS];
    for (uint64_t seed = 1; seed <= 6; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        auto_cloud *cloud = cloud_with(&rules);
        uint64_t now_ms = START_MS;
        uint64_t highest[2] = {0, 0};
        bool refused = false;
        const uint64_t pause_ms = 100 + seed * 60;
        for (size_t i = 0; i < CALLS; i++) {
            now_ms += tide_rng_below(&rng, pause_ms);
            calls[i].at_ms = now_ms;
            calls[i].granted = get_message(cloud, now_ms, "1") == 200;
            refused = refused || !calls[i].granted;
            uint64_t sums[2] = {0, 0};
            for (size_t j = i + 1; j-- > 0 && calls[j].at_ms + 60000 > now_ms;) {
                sums[0] += 20;
                sums[1] += calls[j].granted ? 20 : 0;
            }
            for (int k = 0; k < 2; k++)
                highest[k] = sums[k] > highest[k] ? sums[k] : highest[k];
        }
        json_auto_t *stats = stats_of(cloud);
        const json_t *a = inside(stats, "users", "a@x.org", NULL);
        const uint64_t offered =
            (uint64_t)number(json_object_get(a, "offered_units_highest_in_60s"));
        const uint64_t granted =
            (uint64_t)number(json_object_get(a, "granted_units_highest_in_60s"));
        if (offered != highest[0] || granted != highest[1])
            fail_msg("seed %lu: %lu %lu", (unsigned long)seed, (unsigned long)offered,
                     (unsigned long)granted);
        assert_true(granted <= 6000);
        assert_int_equal(refused, offered > 6000);
    }
}

TEST(refusals_are_violations_with_time_and_method)
{
    auto_cloud *cloud = cloud_with(&rules);
    for (int i = 0; i < 300; i++)
        (void)get_message(cloud, START_MS, "1");
    for (int i = 0; i < 30; i++)
        (void)get_message(cloud, START_MS + 5, "1");
    json_auto_t *stats = stats_of(cloud);
    const json_t *over = violation_of(stats, "user-minute");
    assert_int_equal(number(json_object_get(over, "count")), 30);
    assert_int_equal(json_array_size(json_object_get(over, "first")), 20);
    const json_t *first = json_array_get(json_object_get(over, "first"), 0);
    assert_int_equal(number(json_object_get(first, "at")), START_MS + 5);
    assert_string_equal(json_string_value(json_object_get(first, "user")), "a@x.org");
    assert_string_equal(json_string_value(json_object_get(first, "detail")),
                        "gmail.users.messages.get");
    assert_int_equal(number(inside(stats, "users", "a@x.org", "refused", "user-minute", NULL)), 30);
    assert_int_equal(number(inside(stats, "users", "a@x.org", "violations", NULL)), 30);
}

TEST(fetches_are_counted_per_message)
{
    auto_cloud *cloud = cloud_with(&rules);
    struct box_user *user = box_cloud_user(cloud, TIDE_TEXT("a@x.org"));
    assert_int_equal(get_message(cloud, START_MS, "1"), 200);
    const uint32_t slots[] = {
        box_mailbox_insert(
            box_user_mailbox(user),
            &(struct box_insert){.raw = TIDE_TEXT("A: 1\r\n\r\n1"), .date_ms = START_MS}),
        box_mailbox_insert(
            box_user_mailbox(user),
            &(struct box_insert){.raw = TIDE_TEXT("A: 2\r\n\r\n2"), .date_ms = START_MS}),
        box_mailbox_insert(
            box_user_mailbox(user),
            &(struct box_insert){.raw = TIDE_TEXT("A: 3\r\n\r\n3"), .date_ms = START_MS})};
    box_mail_fetched(user, slots[2]);
    box_mail_fetched(user, slots[0]);
    for (int i = 0; i < 300; i++)
        box_mail_fetched(user, slots[0]);
    json_auto_t *stats = box_cloud_stats(cloud, user, true);
    const json_t *fetched = inside(stats, "users", "a@x.org", "fetched", NULL);
    assert_int_equal(number(json_object_get(fetched, "messages")), 2);
    assert_int_equal(number(json_object_get(fetched, "most")), 255); /* saturates (BREF3) */
    assert_int_equal(number(json_object_get(fetched, "total")), 256);
    char id[BOX_ID_TEXT_BYTES];
    box_id_text(box_mailbox_at(box_user_mailbox(user), slots[2])->id, id);
    assert_int_equal(number(inside(fetched, "ids", id, NULL)), 1);
}

TEST(a_dead_token_is_forgiven_once)
{
    auto_cloud *cloud = cloud_with(&rules);
    const struct ask dead = {.target = "/gmail/v1/users/me/messages", .token = "gone"};
    for (uint64_t ms = 0; ms < 1900; ms += 100)
        assert_int_equal(ask_status(cloud, START_MS + ms, &dead), 401);
    json_t *stats = stats_of(cloud);
    assert_null(violation_of(stats, "dead-token"));
    json_decref(stats);
    assert_int_equal(ask_status(cloud, START_MS + 2500, &dead), 401);
    stats = stats_of(cloud);
    assert_int_equal(number(json_object_get(violation_of(stats, "dead-token"), "count")), 1);
    json_decref(stats);
}

TEST(sites_have_a_record_of_their_own)
{
    auto_cloud *cloud = cloud_with(&rules);
    tide_error err = {0};
    assert_ok(
        box_cloud_add_site(cloud, TIDE_TEXT("https://x.org/"), TIDE_TEXT("a@x.org"), 10, &err));
    const struct ask query = {
        .verb = BOX_POST,
        .target = "/webmasters/v3/sites/https%3A%2F%2Fx.org%2F/searchAnalytics/query",
        .token = "a",
        .body = "{}"};
    for (int i = 0; i < 4; i++)
        assert_int_equal(ask_status(cloud, START_MS, &query), 200);
    json_auto_t *stats = stats_of(cloud);
    const json_t *site = inside(stats, "sites", "https://x.org/", NULL);
    assert_int_equal(number(json_object_get(site, "calls")), 4);
    assert_int_equal(number(json_object_get(site, "granted_calls_highest_in_60s")), 4);
}

TEST(bodies_are_counted_both_ways)
{
    auto_cloud *cloud = cloud_with(&rules);
    auto_answer answer;
    assert_int_equal(ask(cloud, START_MS,
                         &(struct ask){.verb = BOX_POST,
                                       .target = "/gmail/v1/users/me/messages/1/modify",
                                       .token = "a",
                                       .body = "{\"addLabelIds\":[]}"},
                         &answer),
                     200);
    json_auto_t *stats = stats_of(cloud);
    const json_t *a = inside(stats, "users", "a@x.org", NULL);
    assert_int_equal(number(json_object_get(a, "bytes_in")), 18);
    assert_int_equal(number(json_object_get(a, "bytes_out")), answer.body.bytes);
}

TEST(a_reset_forgets_everything_but_the_time)
{
    auto_cloud *cloud = cloud_with(&rules);
    for (int i = 0; i < 310; i++)
        (void)get_message(cloud, START_MS + 9, "1");
    box_cloud_stats_reset(cloud);
    json_auto_t *stats = stats_of(cloud);
    assert_int_equal(json_object_size(json_object_get(stats, "users")), 0);
    assert_int_equal(json_array_size(json_object_get(stats, "violations")), 0);
    assert_int_equal(number(json_object_get(stats, "since")), START_MS + 9);
    /* The quota is not the record: the minute is still full. */
    assert_int_not_equal(get_message(cloud, START_MS + 9, "1"), 200);
}

TEST(many_users_have_records_apart)
{
    enum { USERS = 200 };
    auto_cloud *cloud = cloud_with(&rules);
    tide_error err = {0};
    for (int i = 0; i < USERS; i++) {
        char email[32];
        char token[16];
        (void)snprintf(email, sizeof email, "user%d@y.org", i);
        (void)snprintf(token, sizeof token, "t%d", i);
        assert_ok(box_cloud_add_token(cloud, tide_text_of(token), tide_text_of(email), &err));
        for (int n = 0; n <= i % 7; n++)
            assert_int_equal(
                ask_status(cloud, START_MS,
                           &(struct ask){.target = "/gmail/v1/users/me/messages", .token = token}),
                200);
    }
    json_auto_t *stats = stats_of(cloud);
    for (int i = 0; i < USERS; i++) {
        char email[32];
        (void)snprintf(email, sizeof email, "user%d@y.org", i);
        assert_int_equal(number(inside(stats, "users", email, "calls", NULL)), i % 7 + 1);
    }
}
