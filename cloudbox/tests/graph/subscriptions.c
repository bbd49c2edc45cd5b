/* Subscriptions: the handshake, notifications, repeats, expiry. */
#include "graph_fixture.h"

#define SOON "2026-10-01T00:00:00Z"

static int subscribe(struct world *world, const char *more)
{
    return call_with(world, "POST", "/v1.0/subscriptions", NULL,
                     tide_text_of(printed("{\"changeType\":\"updated\",\"resource\":"
                                          "\"/me/drive/root\",\"notificationUrl\":"
                                          "\"https://a.example/hook\"%s}",
                                          more)));
}

/* The next post, answered; its address, and its body in world->json.  NULL: there is none. */
static const char *answer_next(struct world *world, int status, const char *body)
{
    struct box_delivery delivery = {0};
    if (!box_cloud_next_delivery(world->cloud, world->now_ms, &delivery))
        return NULL;
    const char *url = kept(delivery.url);
    json_decref(world->json);
    world->json = json_loadb(tide_buf_cstr(&delivery.body), delivery.body.bytes, 0, NULL);
    tide_buf_done(&delivery.body);
    box_cloud_delivered(world->cloud, delivery.id, status, tide_text_of(body), world->now_ms);
    return url;
}

/* Gives the token back, as an address must. */
static void validate(struct world *world)
{
    struct box_delivery delivery = {0};
    assert_true(box_cloud_next_delivery(world->cloud, world->now_ms, &delivery));
    const char *token = strstr(delivery.url, "?validationToken=Validation%3A%20");
    assert_non_null(token);
    assert_int_equal(delivery.body.bytes, 0);
    tide_buf_done(&delivery.body);
    const char *text =
        printed("Validation: %s", token + strlen("?validationToken=Validation%3A%20"));
    box_cloud_delivered(world->cloud, delivery.id, 200, tide_text_of(text), world->now_ms);
}

#define GOOD ",\"clientState\":\"secret\",\"expirationDateTime\":\"" SOON "\""

TEST(a_change_is_told_once_to_an_address_that_proved_itself)
{
    WORLD(world, 0);
    assert_int_equal(subscribe(&world, GOOD), 201);
    const char *id = kept(text_at(&world, "id"));
    validate(&world);
    assert_null(answer_next(&world, 202, ""));
    put_file(&world, "a.txt", "x");
    put_file(&world, "b.txt", "x");
    assert_int_equal(box_cloud_wake_at_ms(world.cloud, world.now_ms), world.now_ms);
    assert_string_equal(answer_next(&world, 202, ""), "https://a.example/hook");
    assert_string_equal(text_at(&world, "value.0.subscriptionId"), id);
    assert_string_equal(text_at(&world, "value.0.clientState"), "secret");
    assert_null(answer_next(&world, 202, ""));
    assert_true(box_cloud_wake_at_ms(world.cloud, world.now_ms) == UINT64_MAX);
    call(&world, "GET", "/root/children", NULL); /* changes nothing */
    assert_null(answer_next(&world, 202, ""));
}

TEST(an_address_that_does_not_give_the_token_back_is_forgotten)
{
    WORLD(world, 0);
    subscribe(&world, GOOD);
    const char *path = printed("/v1.0/subscriptions/%s", text_at(&world, "id"));
    assert_int_equal(call_with(&world, "GET", path, NULL, TIDE_TEXT_NONE), 200);
    assert_non_null(answer_next(&world, 200, "something else"));
    assert_int_equal(call_with(&world, "GET", path, NULL, TIDE_TEXT_NONE), 404);
    put_file(&world, "a.txt", "x");
    assert_null(answer_next(&world, 200, ""));
}

TEST(a_notification_is_repeated_with_pauses_and_given_up)
{
    WORLD(world, 0);
    subscribe(&world, GOOD);
    validate(&world);
    put_file(&world, "a.txt", "x");
    static const uint64_t pauses_s[] = {1, 2, 4, 8, 16, 32, 60, 60};
    for (size_t i = 0; i < sizeof pauses_s / sizeof pauses_s[0]; i++) {
        assert_non_null(answer_next(&world, 500, ""));
        world.now_ms += pauses_s[i] * 1000 - 1;
        assert_null(answer_next(&world, 500, ""));
        world.now_ms += 1;
    }
    for (int i = 0; i < 20 && answer_next(&world, 0, "") != NULL; i++)
        world.now_ms += 60000;
    assert_null(answer_next(&world, 0, ""));
    put_file(&world, "b.txt", "x"); /* a new change is told again */
    assert_non_null(answer_next(&world, 202, ""));
}

TEST(subscriptions_are_listed_renewed_deleted_and_expire)
{
    WORLD(world, 0);
    subscribe(&world, GOOD);
    validate(&world);
    call_with(&world, "GET", "/v1.0/subscriptions", NULL, TIDE_TEXT_NONE);
    const char *path = printed("/v1.0/subscriptions/%s", text_at(&world, "value.0.id"));
    assert_int_equal(call_with(&world, "PATCH", path, NULL,
                               TIDE_TEXT("{\"expirationDateTime\":\"2026-10-10T00:00:00Z\"}")),
                     200);
    assert_string_equal(text_at(&world, "expirationDateTime"), "2026-10-10T00:00:00Z");
    world.token = "bob-token";
    assert_int_equal(call_with(&world, "DELETE", path, NULL, TIDE_TEXT_NONE), 404);
    world.token = "alice-token";
    world.now_ms += UINT64_C(20) * 86400 * 1000;
    assert_int_equal(call_with(&world, "GET", path, NULL, TIDE_TEXT_NONE), 404);
    put_file(&world, "a.txt", "x");
    assert_null(answer_next(&world, 202, ""));
    subscribe(&world, ",\"expirationDateTime\":\"2026-10-12T00:00:00Z\"");
    path = printed("/v1.0/subscriptions/%s", text_at(&world, "id"));
    assert_int_equal(call_with(&world, "DELETE", path, NULL, TIDE_TEXT_NONE), 204);
    assert_null(answer_next(&world, 202, ""));
}

TEST(subscriptions_that_cannot_be_are_refused)
{
    WORLD(world, 0);
    static const char *const bad[] = {
        "",
        ",\"expirationDateTime\":\"2020-01-01T00:00:00Z\"",
        ",\"expirationDateTime\":\"2027-01-01T00:00:00Z\"",
        ",\"expirationDateTime\":\"soon\"",
        ",\"expirationDateTime\":\"" SOON "\",\"clientState\":5",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        subscribe(&world, bad[i]);
        assert_refused(&world, 400, "invalidRequest", "");
    }
    call_with(&world, "POST", "/v1.0/subscriptions", NULL,
              TIDE_TEXT("{\"changeType\":\"deleted\",\"resource\":\"/me/drive/root\","
                        "\"notificationUrl\":\"https://a.example/\",\"expirationDateTime\":\"" SOON
                        "\"}"));
    assert_refused(&world, 400, "invalidRequest", "");
    assert_null(answer_next(&world, 200, ""));
}
