/* Watches and the notifications they cause, with a fake receiver. */
#include "cloudbox/tests/signin/signin_help.h"

#include "cloudbox/gate/faults.h"
#include "cloudbox/push/queue.h"

#define TOPIC "projects/proj/topics/mail"
#define URL   "https://receiver.example/push?token=1"
#define WATCH "/gmail/v1/users/me/watch"
#define STOP  "/gmail/v1/users/me/stop"

static struct box_push *push_of(const struct help *help)
{
    return box_cloud_push(help->cloud);
}

static struct box_user *start(struct help *help, uint64_t seed)
{
    help_start(help, seed, false);
    struct box_user *anna = help_user(help, "anna@example.com");
    assert_ok(box_cloud_add_token(help->cloud, TIDE_TEXT("t"), tide_text_of(anna->email), NULL));
    assert_ok(box_cloud_add_topic(help->cloud, TIDE_TEXT(TOPIC), TIDE_TEXT(URL), NULL));
    help->token = "t";
    help->type = "application/json";
    return anna;
}

static uint64_t stat_of(const struct help *help, const char *name)
{
    json_auto_t *stats = box_cloud_stats(help->cloud, NULL, false);
    const json_t *value = json_object_get(json_object_get(stats, "push"), name);
    assert_non_null(value);
    return (uint64_t)json_integer_value(value);
}

/* What a receiver sees of one delivery. */
struct seen {
    uint64_t id;
    uint64_t message_id;
    uint64_t history_id;
    char email[64];
    char subscription[128];
    char bearer[2048];
};

static uint64_t u64_of(const json_t *object, const char *key)
{
    uint64_t number = 0;
    assert_true(tide_text_to_u64(tide_text_of(help_text(object, key)), &number));
    return number;
}

static bool receive(struct help *help, struct seen *seen)
{
    struct box_delivery delivery = {0};
    if (!box_cloud_next_delivery(help->cloud, help->now_ms, &delivery))
        return false;
    *seen = (struct seen){.id = delivery.id};
    assert_string_equal(delivery.url, URL);
    (void)snprintf(seen->bearer, sizeof seen->bearer, "%s", delivery.bearer);
    json_auto_t *body = json_loads(tide_buf_cstr(&delivery.body), 0, NULL);
    tide_buf_done(&delivery.body);
    assert_non_null(body);
    assert_int_equal(json_object_size(body), 2);
    (void)snprintf(seen->subscription, sizeof seen->subscription, "%s",
                   help_text(body, "subscription"));
    const json_t *message = json_object_get(body, "message");
    assert_int_equal(json_object_size(message), 5);
    assert_string_equal(help_text(message, "messageId"), help_text(message, "message_id"));
    assert_int_equal(strlen(help_text(message, "publishTime")), 24);
    assert_int_equal(json_object_size(json_object_get(message, "attributes")), 0);
    seen->message_id = u64_of(message, "messageId");
    tide_auto_buf data = tide_buf_heap(4096);
    assert_true(box_base64_decode(tide_text_of(help_text(message, "data")), &data));
    json_auto_t *news = json_loads(tide_buf_cstr(&data), 0, NULL);
    assert_non_null(news);
    (void)snprintf(seen->email, sizeof seen->email, "%s", help_text(news, "emailAddress"));
    seen->history_id = u64_of(news, "historyId");
    return true;
}

static void answer(struct help *help, const struct seen *seen, int status)
{
    box_cloud_delivered(help->cloud, seen->id, status, TIDE_TEXT_NONE, help->now_ms);
}

/* Takes and acknowledges everything that is due; how many there were. */
static size_t drain(struct help *help)
{
    struct seen seen;
    size_t count = 0;
    while (receive(help, &seen)) {
        answer(help, &seen, 204);
        count++;
    }
    return count;
}

static uint32_t insert(struct help *help, struct box_user *user, uint16_t label)
{
    const struct box_insert insert = {.raw = TIDE_TEXT("Subject: x\r\n\r\ny"),
                                      .date_ms = help->now_ms,
                                      .labels = &label,
                                      .labels_count = 1};
    return box_mailbox_insert(box_user_mailbox(user), &insert);
}

/* As the gate does after a request. */
static void push_changed(struct help *help, struct box_user *user)
{
    box_cloud_tell_time(help->cloud, help->now_ms);
    box_pubsub.changed(help->cloud, user);
}

/* A message arrives, and push gets the change. */
static uint32_t arrive(struct help *help, struct box_user *user, uint16_t label)
{
    const uint32_t slot = insert(help, user, label);
    push_changed(help, user);
    return slot;
}

static void watch(struct help *help, const char *body)
{
    if (help_post(help, WATCH, body) != 200)
        fail_msg("%s", help_body(help));
}

/* ---- watch and stop ---- */

TEST(a_watch_says_where_history_stands_and_when_it_ends)
{
    auto_help help;
    struct box_user *anna = start(&help, 1);
    (void)insert(&help, anna, BOX_LABEL_INBOX);
    watch(&help, "{\"topicName\":\"" TOPIC "\"}");
    json_auto_t *reply = help_json(&help);
    assert_int_equal(json_object_size(reply), 2);
    assert_int_equal(u64_of(reply, "historyId"), box_mailbox_history_id(box_user_mailbox(anna)));
    assert_int_equal(u64_of(reply, "expiration"), help.now_ms + 7 * DAY_MS);

    struct seen seen; /* the first notification comes at once */
    assert_true(receive(&help, &seen));
    assert_string_equal(seen.email, "anna@example.com");
    assert_string_equal(seen.subscription, "projects/proj/subscriptions/mail-push");
    assert_int_equal(seen.history_id, box_mailbox_history_id(box_user_mailbox(anna)));
    assert_int_equal(help_get(&help, "/oauth2/v3/certs"), 200);
    json_auto_t *jwks = help_json(&help);
    json_auto_t *claims = help_claims(jwks, seen.bearer);
    assert_string_equal(help_text(claims, "iss"), "https://accounts.google.com");
    assert_string_equal(help_text(claims, "aud"), URL);
    assert_non_null(strstr(help_text(claims, "email"), ".gserviceaccount.com"));
    assert_true(json_is_true(json_object_get(claims, "email_verified")));
    assert_int_equal(json_integer_value(json_object_get(claims, "exp")) -
                         json_integer_value(json_object_get(claims, "iat")),
                     3600);
    answer(&help, &seen, 102);
    assert_false(receive(&help, &seen));
    assert_int_equal(stat_of(&help, "acknowledged"), 1);
    assert_true(box_cloud_wake_at_ms(help.cloud, help.now_ms) == UINT64_MAX);
}

TEST(a_wrong_watch_is_refused_in_googles_words)
{
    auto_help help;
    (void)start(&help, 2);
    static const struct {
        const char *body;
        int status;
        const char *message;
    } bad[] = {
        {"{}", 400, "topicName required"},
        {"{\"topicName\":7}", 400, "topicName required"},
        {"{\"topicName\":\"mail\"}", 400, "Invalid topicName does not match projects/"},
        {"{\"topicName\":\"projects//topics/x\"}", 400, "Invalid topicName does not match"},
        {"{\"topicName\":\"projects/p/topics/\"}", 400, "Invalid topicName does not match"},
        {"{\"topicName\":\"projects/p/topics/a/b\"}", 400, "Invalid topicName does not match"},
        {"{\"topicName\":\"projects/p/things/a\"}", 400, "Invalid topicName does not match"},
        {"{\"topicName\":\"projects/p/topics/a b\"}", 400, "Invalid topicName does not match"},
        {"{\"topicName\":\"projects/proj/topics/none\"}", 404,
         "Error sending test message to Cloud PubSub projects/proj/topics/none : Resource not "
         "found (resource=none)."},
        {"{\"topicName\":\"" TOPIC "\",\"labelIds\":[\"NOPE\"]}", 400, "Invalid label: NOPE"},
        {"{\"topicName\":\"" TOPIC "\",\"labelIds\":[7]}", 400, "Invalid label: "},
        {"{\"topicName\":\"" TOPIC "\",\"labelIds\":\"INBOX\"}", 400, "label_ids"},
        {"{\"topicName\":\"" TOPIC "\",\"labelFilterBehavior\":\"maybe\"}", 400,
         "label_filter_behavior"},
        {"{\"topicName\":\"" TOPIC "\",\"labelFilterAction\":1}", 400, "label_filter_action"},
        {"{", 400, "Invalid JSON payload"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(help_post(&help, WATCH, bad[i].body), bad[i].status);
        json_auto_t *reply = help_json(&help);
        const char *message = help_text(json_object_get(reply, "error"), "message");
        if (strstr(message, bad[i].message) == NULL)
            fail_msg("%s: %s", bad[i].body, message);
    }
    assert_int_equal(stat_of(&help, "watches"), 0);
    assert_int_equal(drain(&help), 0);
}

TEST(a_topic_is_a_name_and_a_web_address)
{
    auto_help help;
    (void)start(&help, 3);
    static const char *const bad[][2] = {
        {"mail", URL}, {TOPIC, "ftp://x/"}, {TOPIC, "http://"}, {TOPIC, "http://a b"}, {TOPIC, ""}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tide_error err = {0};
        assert_int_equal(box_push_add_topic(push_of(&help), tide_text_of(bad[i][0]),
                                            tide_text_of(bad[i][1]), &err),
                         TIDE_INVALID);
        assert_true(err.text[0] != '\0');
    }
    /* The same again changes nothing; another address is one more subscription. */
    assert_ok(box_push_add_topic(push_of(&help), TIDE_TEXT(TOPIC), TIDE_TEXT(URL), NULL));
    watch(&help, "{\"topicName\":\"" TOPIC "\"}");
    assert_int_equal(drain(&help), 1);
}

TEST(every_subscription_of_a_topic_gets_its_own_delivery)
{
    auto_help help;
    (void)start(&help, 4);
    assert_ok(box_push_add_topic(push_of(&help), TIDE_TEXT(TOPIC), TIDE_TEXT("http://two.example"),
                                 NULL));
    watch(&help, "{\"topicName\":\"" TOPIC "\"}");
    struct box_delivery one = {0}, two = {0};
    assert_true(box_cloud_next_delivery(help.cloud, help.now_ms, &one));
    assert_true(box_cloud_next_delivery(help.cloud, help.now_ms, &two));
    assert_string_equal(one.url, URL);
    assert_string_equal(two.url, "http://two.example");
    assert_non_null(strstr(tide_buf_cstr(&two.body), "projects/proj/subscriptions/mail-push-2"));
    tide_buf_done(&one.body);
    tide_buf_done(&two.body);
}

TEST(after_stop_and_expiry_nothing_is_sent)
{
    auto_help help;
    struct box_user *anna = start(&help, 5);
    watch(&help, "{\"topicName\":\"" TOPIC "\"}");
    assert_int_equal(drain(&help), 1);
    help.now_ms += 1000;
    assert_int_equal(help_post(&help, STOP, ""), 204);
    (void)arrive(&help, anna, BOX_LABEL_INBOX);
    assert_int_equal(drain(&help), 0);
    assert_int_equal(help_post(&help, STOP, ""), 204); /* twice is harmless */
    help.now_ms += 1000;

    watch(&help, "{\"topicName\":\"" TOPIC "\"}");
    assert_int_equal(drain(&help), 1);
    help.now_ms += 7 * DAY_MS - 1;
    (void)arrive(&help, anna, BOX_LABEL_INBOX);
    assert_int_equal(drain(&help), 1);
    help.now_ms += 1000;
    (void)arrive(&help, anna, BOX_LABEL_INBOX);
    assert_int_equal(drain(&help), 0);

    watch(&help, "{\"topicName\":\"" TOPIC "\"}");
    assert_int_equal(drain(&help), 1);
    box_push_expire(push_of(&help), anna);
    help.now_ms += 1000;
    (void)arrive(&help, anna, BOX_LABEL_INBOX);
    assert_int_equal(drain(&help), 0);
}

TEST(one_project_has_one_watch_and_a_user_not_too_many)
{
    auto_help help;
    struct box_user *anna = start(&help, 6);
    for (int i = 0; i < 9; i++) {
        char topic[64], body[128];
        (void)snprintf(topic, sizeof topic, "projects/p%d/topics/t", i);
        assert_ok(box_push_add_topic(push_of(&help), tide_text_of(topic), TIDE_TEXT(URL), NULL));
        (void)snprintf(body, sizeof body, "{\"topicName\":\"%s\"}", topic);
        assert_int_equal(help_post(&help, WATCH, body), i < 8 ? 200 : 400);
    }
    assert_int_equal(drain(&help), 8);
    assert_int_equal(stat_of(&help, "watches"), 8);
    assert_ok(box_push_add_topic(push_of(&help), TIDE_TEXT("projects/p3/topics/other"),
                                 TIDE_TEXT(URL), NULL));
    help.now_ms += 1000;
    watch(&help, "{\"topicName\":\"projects/p3/topics/other\"}");
    assert_int_equal(stat_of(&help, "watches"), 8);
    help.now_ms += 1000;
    assert_int_equal(drain(&help), 1);
    (void)arrive(&help, anna, BOX_LABEL_INBOX);
    assert_int_equal(drain(&help), 8);
    help.now_ms += 7 * DAY_MS; /* an expired watch is replaced */
    watch(&help, "{\"topicName\":\"projects/p8/topics/t\"}");
}

/* ---- filters and rate ---- */

TEST(labels_decide_what_is_news)
{
    auto_help help;
    struct box_user *anna = start(&help, 7);
    const uint16_t starred = BOX_LABEL_STARRED;
    static const struct {
        const char *body;
        bool inbox, sent, star; /* a message arrives there; one in SENT is starred */
    } filters[] = {
        {"{\"topicName\":\"" TOPIC "\"}", true, true, true},
        {"{\"topicName\":\"" TOPIC "\",\"labelIds\":[\"INBOX\"]}", true, false, false},
        {"{\"topicName\":\"" TOPIC "\",\"labelIds\":[\"INBOX\",\"STARRED\"],"
         "\"labelFilterBehavior\":\"INCLUDE\"}",
         true, false, true},
        {"{\"topicName\":\"" TOPIC "\",\"labelIds\":[\"INBOX\"],\"labelFilterBehavior\":"
         "\"exclude\"}",
         false, true, true},
        {"{\"topicName\":\"" TOPIC "\",\"labelIds\":[\"SENT\"],\"labelFilterAction\":"
         "\"exclude\"}",
         true, false, false},
        {"{\"topicName\":\"" TOPIC "\",\"labelIds\":[\"SENT\"],\"labelFilterAction\":"
         "\"exclude\",\"labelFilterBehavior\":\"include\"}",
         false, true, true},
    };
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        help.now_ms += 10000;
        watch(&help, filters[i].body);
        assert_int_equal(drain(&help), 1);
        help.now_ms += 1000;
        (void)arrive(&help, anna, BOX_LABEL_INBOX);
        assert_int_equal(drain(&help), filters[i].inbox);
        help.now_ms += 1000;
        const uint32_t slot = arrive(&help, anna, BOX_LABEL_SENT);
        assert_int_equal(drain(&help), filters[i].sent);
        help.now_ms += 1000;
        box_mailbox_relabel(box_user_mailbox(anna), slot, &starred, 1, NULL, 0);
        push_changed(&help, anna);
        assert_int_equal(drain(&help), filters[i].star);
        help.now_ms += 1000;
        push_changed(&help, anna); /* nothing happened */
        assert_int_equal(drain(&help), 0);
    }
}

TEST(a_call_that_changes_the_mailbox_notifies_by_itself)
{
    auto_help help;
    struct box_user *anna = start(&help, 8);
    const uint32_t slot = insert(&help, anna, BOX_LABEL_INBOX);
    char id[BOX_ID_TEXT_BYTES], target[128];
    box_id_text(box_mailbox_at(box_user_mailbox(anna), slot)->id, id);
    (void)snprintf(target, sizeof target, "/gmail/v1/users/me/messages/%s/modify", id);
    watch(&help, "{\"topicName\":\"" TOPIC "\"}");
    assert_int_equal(drain(&help), 1);
    help.now_ms += 1000;
    assert_int_equal(help_post(&help, target, "{\"addLabelIds\":[\"STARRED\"]}"), 200);
    struct seen seen;
    assert_true(receive(&help, &seen));
    assert_int_equal(seen.history_id, box_mailbox_history_id(box_user_mailbox(anna)));
}

TEST(more_than_one_a_second_is_dropped)
{
    auto_help help;
    struct box_user *anna = start(&help, 9);
    watch(&help, "{\"topicName\":\"" TOPIC "\"}");
    for (int i = 0; i < 10; i++) {
        help.now_ms += 400;
        (void)arrive(&help, anna, BOX_LABEL_INBOX);
    }
    assert_int_equal(drain(&help), 4); /* at 0, 1200, 2400 and 3600 ms */
    assert_int_equal(stat_of(&help, "limited"), 7);
    watch(&help, "{\"topicName\":\"" TOPIC "\"}"); /* BPSH1 holds across watches */
    assert_int_equal(drain(&help), 0);
}

TEST(faults_lose_and_double_notifications)
{
    auto_help help;
    struct box_user *anna = start(&help, 10);
    add_fault(help.cloud, "{\"method\":\"gmail.users.watch\",\"count\":1,\"fault\":\"push-loss\"}");
    watch(&help, "{\"topicName\":\"" TOPIC "\"}");
    assert_int_equal(drain(&help), 0);
    assert_int_equal(stat_of(&help, "lost"), 1);
    add_fault(help.cloud, "{\"method\":\"*\",\"count\":1,\"fault\":\"push-duplicate\"}");
    help.now_ms += 1000;
    (void)arrive(&help, anna, BOX_LABEL_INBOX);
    struct seen one, two;
    assert_true(receive(&help, &one));
    assert_true(receive(&help, &two));
    assert_int_not_equal(one.id, two.id);
    assert_int_equal(one.message_id, two.message_id);
    answer(&help, &one, 200);
    answer(&help, &two, 200);
    assert_int_equal(stat_of(&help, "duplicated"), 1);
    help.now_ms += 1000;
    (void)arrive(&help, anna, BOX_LABEL_INBOX);
    assert_int_equal(drain(&help), 1);
}

/* ---- deliveries ---- */

TEST(what_is_not_acknowledged_comes_again_for_seven_days)
{
    auto_help help;
    (void)start(&help, 11);
    const uint64_t made_ms = help.now_ms;
    watch(&help, "{\"topicName\":\"" TOPIC "\"}");
    static const uint64_t pauses_s[] = {1, 2, 4, 8, 16, 32, 60, 60};
    struct seen first, seen;
    assert_true(receive(&help, &first));
    assert_false(receive(&help, &seen)); /* in flight: not twice at once */
    assert_true(box_cloud_wake_at_ms(help.cloud, help.now_ms) == UINT64_MAX);
    answer(&help, &first, 500);
    for (size_t i = 0; i < sizeof pauses_s / sizeof pauses_s[0]; i++) {
        help.now_ms += pauses_s[i] * 1000 - 1;
        assert_false(receive(&help, &seen));
        assert_int_equal(box_cloud_wake_at_ms(help.cloud, help.now_ms), help.now_ms + 1);
        help.now_ms += 1;
        assert_true(receive(&help, &seen));
        assert_int_equal(seen.message_id, first.message_id);
        static const int statuses[] = {0, 100, 300, 404, 429, 503, 199, 400};
        answer(&help, &seen, statuses[i]);
        answer(&help, &seen, 200); /* a late answer to what is not in flight */
    }
    help.now_ms = made_ms + 7 * DAY_MS - 1;
    assert_true(receive(&help, &seen));
    answer(&help, &seen, 0);
    help.now_ms += 60000;
    assert_true(receive(&help, &seen));
    answer(&help, &seen, 0);
    help.now_ms += DAY_MS;
    assert_false(receive(&help, &seen));
    assert_int_equal(stat_of(&help, "given_up"), 1);
    assert_int_equal(stat_of(&help, "waiting"), 0);
}

TEST(the_oldest_gives_way_when_too_many_wait)
{
    struct box_push_queue queue;
    box_push_queue_init(&queue);
    for (uint64_t i = 1; i <= BOX_DELIVERIES_WAITING_MAX + 500; i++)
        box_push_queue_add(&queue, &(struct box_push_item){.message_id = i, .due_ms = i});
    assert_int_equal(queue.count, BOX_DELIVERIES_WAITING_MAX);
    assert_int_equal(queue.dropped, 500);
    assert_null(box_push_queue_check(&queue));
    assert_int_equal(box_push_queue_next(&queue, UINT64_MAX)->message_id, 501);
    box_push_queue_done(&queue);
}

/* Any order of adding, taking and answering against a plain list. */
TEST(the_queue_gives_what_a_plain_list_would_give)
{
    const uint64_t seed = 99;
    tide_rng rng = tide_rng_seeded(seed);
    struct box_push_queue queue;
    box_push_queue_init(&queue);
    enum { LIST = 300 };
    struct {
        uint64_t id, due_ms, made_ms;
        uint32_t tries;
        bool in_flight;
    } list[LIST];
    size_t count = 0;
    uint64_t now_ms = 1, next_id = 1;
    const int steps = (int)scaled(400000);
    for (int step = 0; step < steps; step++) {
        const uint64_t what = tide_rng_below(&rng, 4);
        if (what == 0 && count < LIST) {
            const uint64_t due_ms = now_ms + tide_rng_below(&rng, 3000);
            box_push_queue_add(&queue,
                               &(struct box_push_item){.made_ms = now_ms, .due_ms = due_ms});
            list[count].id = next_id++;
            list[count].due_ms = due_ms;
            list[count].made_ms = now_ms;
            list[count].tries = 0;
            list[count++].in_flight = false;
        } else if (what == 1) {
            now_ms += tide_rng_below(&rng, tide_rng_chance(&rng, 1, 2000) ? 9 * DAY_MS : 500);
        } else if (what == 2) {
            size_t best = LIST;
            for (size_t i = 0; i < count; i++)
                if (!list[i].in_flight && list[i].due_ms <= now_ms &&
                    (best == LIST || list[i].due_ms < list[best].due_ms ||
                     (list[i].due_ms == list[best].due_ms && list[i].id < list[best].id)))
                    best = i;
            const struct box_push_item *item = box_push_queue_next(&queue, now_ms);
            assert_int_equal(item == NULL, best == LIST);
            if (item != NULL) {
                assert_int_equal(item->id, list[best].id);
                list[best].in_flight = true;
                list[best].tries++;
            }
        } else if (count > 0) {
            const size_t i = (size_t)tide_rng_below(&rng, count);
            const bool good = tide_rng_chance(&rng, 1, 2);
            box_push_queue_ended(&queue, list[i].id, good, now_ms);
            if (list[i].in_flight && (good || now_ms >= list[i].made_ms + 7 * DAY_MS)) {
                list[i] = list[--count];
            } else if (list[i].in_flight) {
                uint64_t pause_ms = 1000;
                for (uint32_t tries = 1; tries < list[i].tries && pause_ms < 60000; tries++)
                    pause_ms *= 2;
                list[i].in_flight = false;
                list[i].due_ms = now_ms + (pause_ms > 60000 ? 60000 : pause_ms);
            }
        }
        assert_int_equal(queue.count, count);
        if (step % 500 == 0 && box_push_queue_check(&queue) != NULL)
            fail_msg("seed %llu: %s", (unsigned long long)seed, box_push_queue_check(&queue));
    }
    box_push_queue_done(&queue);
}

/* BPSH1, BPSH2 and BPSH3 under chance: changes at any pace, watches that come and go,
 * losses and duplicates, and a receiver that often does not answer. */
static void random_watching(uint64_t seed)
{
    auto_help help;
    struct box_user *anna = start(&help, seed);
    tide_rng rng = tide_rng_seeded(seed);
    add_fault(help.cloud, "{\"method\":\"*\",\"rate\":0.1,\"fault\":\"push-loss\"}");
    add_fault(help.cloud, "{\"method\":\"*\",\"rate\":0.1,\"fault\":\"push-duplicate\"}");
    uint64_t watch_ends_ms = 0, made_ms = 0, made = 0;
    uint64_t acknowledged = 0;
    for (int step = 0; step < 3000; step++) {
        help.now_ms += tide_rng_below(&rng, tide_rng_chance(&rng, 1, 200) ? 3 * DAY_MS : 900);
        const uint64_t what = tide_rng_below(&rng, 100);
        if (what == 0) {
            assert_int_equal(help_post(&help, STOP, ""), 204);
            watch_ends_ms = 0;
        } else if (what == 1) {
            box_push_expire(push_of(&help), anna);
            watch_ends_ms = 0;
        } else if (what < 6) {
            watch(&help, "{\"topicName\":\"" TOPIC "\"}");
            watch_ends_ms = help.now_ms + 7 * DAY_MS;
        } else if (what < 70) {
            (void)arrive(&help, anna, BOX_LABEL_INBOX);
        }
        const uint64_t now_made = stat_of(&help, "born");
        assert_in_range(now_made - made, 0, 1);
        if (now_made != made) {
            assert_true(help.now_ms < watch_ends_ms); /* BPSH2 */
            if (made_ms != 0 && help.now_ms < made_ms + 1000)
                fail_msg("BPSH1 with seed %llu", (unsigned long long)seed);
            made_ms = help.now_ms;
        }
        made = now_made;
        struct seen seen;
        while (tide_rng_chance(&rng, 1, 2) && receive(&help, &seen)) {
            const bool good = tide_rng_chance(&rng, 2, 3);
            answer(&help, &seen, good ? 200 : 503);
            acknowledged += good;
        }
    }
    struct seen seen; /* BPSH3: whatever is left comes in the end */
    for (int i = 0; i < 10000 && stat_of(&help, "waiting") > 0; i++) {
        const uint64_t wake_ms = box_cloud_wake_at_ms(help.cloud, help.now_ms);
        help.now_ms = wake_ms > help.now_ms ? wake_ms : help.now_ms;
        assert_true(receive(&help, &seen));
        answer(&help, &seen, 200);
        acknowledged++;
    }
    assert_int_equal(stat_of(&help, "waiting"), 0);
    assert_int_equal(stat_of(&help, "acknowledged"), acknowledged);
    assert_int_equal(acknowledged + stat_of(&help, "given_up") + stat_of(&help, "lost"),
                     made + stat_of(&help, "duplicated"));
    assert_true(stat_of(&help, "lost") > 0 && stat_of(&help, "duplicated") > 0);
}

TEST(the_promises_hold_whatever_happens)
{
    const int runs = (int)scaled(12);
    for (int i = 0; i < runs; i++)
        random_watching(500 + (uint64_t)i);
}

TEST(watches_and_topics_survive_and_deliveries_do_not)
{
    auto_help help, again;
    struct box_user *anna = start(&help, 12);
    struct box_user *ben = help_user(&help, "ben@example.com");
    watch(&help, "{\"topicName\":\"" TOPIC "\",\"labelIds\":[\"INBOX\"]}");
    box_push_expire(push_of(&help), ben); /* has no watch: harmless */
    help_replay(&again, &help, 12);
    assert_int_equal(stat_of(&again, "watches"), 1);
    assert_int_equal(drain(&again), 0);
    struct box_user *same = help_user(&again, anna->email);
    again.now_ms += 1000;
    (void)arrive(&again, same, BOX_LABEL_SENT);
    assert_int_equal(drain(&again), 0);
    (void)arrive(&again, same, BOX_LABEL_INBOX);
    assert_int_equal(drain(&again), 1);
    again.now_ms += 7 * DAY_MS;
    (void)arrive(&again, same, BOX_LABEL_INBOX);
    assert_int_equal(drain(&again), 0);
    help_stop(&again);

    help.token = "t";
    assert_int_equal(help_post(&help, STOP, ""), 204);
    help_replay(&again, &help, 12);
    assert_int_equal(stat_of(&again, "watches"), 0);
    static const char *const broken[] = {
        "{\"op\":\"push-nothing\",\"email\":\"anna@example.com\"}",
        "{\"op\":\"push-stop\",\"email\":\"nobody@example.com\"}",
        "{\"op\":\"push-topic\",\"topic\":\"x\",\"url\":\"y\"}",
        "{\"op\":\"push-watch\",\"email\":\"anna@example.com\"}",
        ("{\"op\":\"push-watch\",\"email\":\"anna@example.com\",\"topic\":\"x\",\"labels\":[],"
         "\"exclude\":false,\"expires\":1}"),
    };
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        assert_int_not_equal(box_cloud_replay(again.cloud, tide_text_of(broken[i]), NULL), TIDE_OK);
}
