/* What every call goes through, and the page from which the cloud is steered. */
#include "gate_support.h"

#include "cloudbox/control/read.h"
#include "cloudbox/signin/jwt.h"

static const struct box_options plain = {.seed = 5};

static json_t *post(box_cloud *cloud, uint64_t now_ms, int status, const char *target,
                    const char *body)
{
    return ask_json(cloud, now_ms, status,
                    &(struct ask){.verb = BOX_POST, .target = target, .body = body});
}

static void post_only(box_cloud *cloud, uint64_t now_ms, int status, const char *target,
                      const char *body)
{
    json_decref(post(cloud, now_ms, status, target, body));
}

/* ---- the gate ---- */

TEST(a_call_is_routed_and_its_caller_known)
{
    static const struct {
        struct ask ask;
        int status;
    } cases[] = {
        {{.target = "/gmail/v1/users/me/messages", .token = "a"}, 200},
        {{.target = "/gmail/v1/users/A%40x.org/messages", .token = "a"}, 200},
        {{.target = "/gmail/v1/users/b@x.org/messages", .token = "a"}, 403},
        {{.target = "/gmail/v1/users/me/messages"}, 401},
        {{.target = "/gmail/v1/users/me/messages", .token = "zzz"}, 401},
        {{.target = "/gmail/v1/users/me/messages?access_token=a"}, 200},
        {{.target = "/gmail/v1/users/me/nothing", .token = "a"}, 404},
        {{.verb = BOX_DELETE, .target = "/gmail/v1/users/me/messages", .token = "a"}, 405},
        {{.target = "/gmail/v1/users/me/messages/", .token = "a"}, 404},
        {{.target = "/%zz", .token = "a"}, 400},
        {{.target = "", .token = "a"}, 400},
    };
    auto_cloud *cloud = cloud_with(&plain);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int status = ask_status(cloud, START_MS, &cases[i].ask);
        if (status != cases[i].status)
            fail_msg("%s: %d", cases[i].ask.target, status);
    }
}

/* BCLD1: one seed, one answer, whatever chance had a hand in it. */
TEST(the_same_calls_give_the_same_answers)
{
    tide_buf answers[2];
    for (int c = 0; c < 2; c++) {
        tide_buf_init(&answers[c], tide_mem_heap(), 8 << 20);
        auto_cloud *cloud = cloud_with(&(struct box_options){
            .seed = 77, .quota = BOX_QUOTA_2026, .latency_ms = 5, .jitter_ms = 50});
        add_fault(cloud, "{\"method\":\"*\",\"rate\":0.2,\"fault\":\"503\"}");
        add_fault(cloud, "{\"method\":\"*\",\"rate\":0.1,\"fault\":\"garbage\"}");
        add_fault(cloud, "{\"rate\":0.3,\"fault\":\"batch-reorder\"}");
        for (uint64_t i = 0; i < 700; i++) {
            auto_answer answer;
            const struct ask get = {.target = "/gmail/v1/users/me/messages/m", .token = "a"};
            const struct ask batch = {
                .verb = BOX_POST,
                .target = "/batch",
                .token = "b",
                .type = "multipart/mixed; boundary=b",
                .body = "--b\r\n\r\nGET /gmail/v1/users/me/messages/1\r\n\r\n"
                        "--b\r\n\r\nGET /gmail/v1/users/me/messages/2\r\n\r\n--b--"};
            (void)ask(cloud, START_MS + i * 50, i % 3 == 0 ? &batch : &get, &answer);
            box_print(&answers[c], "%d %u %s ", answer.status, answer.plan.delay_ms, answer.type);
            if (answer.body.bytes > 0)
                box_add(&answers[c], answer.body.data, answer.body.bytes);
            box_cloud_finished(cloud, &answer.ticket, START_MS + i * 50);
        }
    }
    assert_int_equal(answers[0].bytes, answers[1].bytes);
    assert_memory_equal(answers[0].data, answers[1].data, answers[0].bytes);
    tide_buf_done(&answers[0]);
    tide_buf_done(&answers[1]);
}

/* ---- who may use /_cloud ---- */

TEST(pages_of_other_origins_may_not_steer)
{
    static const struct {
        struct box_header header;
        int status;
    } cases[] = {
        {{TIDE_TEXT_NONE, TIDE_TEXT_NONE}, 200},
        {{TIDE_TEXT("Origin"), TIDE_TEXT("http://127.0.0.1:4443")}, 200},
        {{TIDE_TEXT("Origin"), TIDE_TEXT("http://evil.example")}, 403},
        {{TIDE_TEXT("origin"), TIDE_TEXT("null")}, 403},
        {{TIDE_TEXT("Sec-Fetch-Site"), TIDE_TEXT("cross-site")}, 403},
        {{TIDE_TEXT("Sec-Fetch-Site"), TIDE_TEXT("same-site")}, 403},
        {{TIDE_TEXT("Sec-Fetch-Site"), TIDE_TEXT("same-origin")}, 200},
        {{TIDE_TEXT("Sec-Fetch-Site"), TIDE_TEXT("none")}, 200},
    };
    auto_cloud *cloud = cloud_with(&plain);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct ask reset = {
            .verb = BOX_POST, .target = "/_cloud/stats/reset", .extra = cases[i].header};
        const struct ask stats = {.target = "/_cloud/stats", .extra = cases[i].header};
        assert_int_equal(ask_status(cloud, START_MS, &reset), cases[i].status);
        assert_int_equal(ask_status(cloud, START_MS, &stats), cases[i].status);
    }
}

TEST(the_index_names_what_is_there)
{
    auto_cloud *cloud = cloud_with(&plain);
    auto_answer answer;
    assert_int_equal(ask(cloud, START_MS, &(struct ask){.target = "/"}, &answer), 200);
    assert_string_equal(answer.type, "text/html; charset=utf-8");
    assert_non_null(strstr(tide_buf_cstr(&answer.body), "/_cloud/mail/delete"));
    assert_non_null(strstr(tide_buf_cstr(&answer.body), "/gmail/v1/users/{userId}/history"));
}

/* ---- steering ---- */

TEST(bad_input_is_named)
{
    static const struct {
        const char *target;
        const char *body;
        const char *text;
    } cases[] = {
        {"/_cloud/mail", "{", "Invalid JSON"},
        {"/_cloud/mail", "[]", "Invalid JSON"},
        {"/_cloud/mail", "{\"user\":\"a@x.org\"}", "\\\"raw\\\" is missing"},
        {"/_cloud/mail", "{\"user\":\"c@x.org\",\"raw\":\"YQ==\"}", "there is no user c@x.org"},
        {"/_cloud/mail", "{\"user\":\"a@x.org\",\"raw\":\"***\"}", "not base64"},
        {"/_cloud/mail", "{\"user\":\"a@x.org\",\"raw\":\"YQ==\",\"lables\":[]}",
         "did you mean \\\"labels\\\"?"},
        {"/_cloud/mail", "{\"user\":\"a@x.org\",\"raw\":\"YQ==\",\"labels\":[\"Nix\"]}",
         "there is no label Nix"},
        {"/_cloud/mail", "{\"user\":\"a@x.org\",\"raw\":\"YQ==\",\"labels\":\"INBOX\"}",
         "must be a list"},
        {"/_cloud/mail", "{\"user\":\"a@x.org\",\"raw\":\"YQ==\",\"date\":-1}", "\\\"date\\\""},
        {"/_cloud/mail?user=a@x.org", "", "1 to"},
        {"/_cloud/mail?user=a@x.org&labels=Nix", "x", "there is no label Nix"},
        {"/_cloud/mail/delete", "{\"user\":\"a@x.org\",\"ids\":[]}", "\\\"ids\\\" must be"},
        {"/_cloud/mail/delete", "{\"user\":\"a@x.org\",\"ids\":[\"77\"]}",
         "there is no message 77"},
        {"/_cloud/mail/delete", "{\"user\":\"a@x.org\",\"ids\":[7]}", "there is no message"},
        {"/_cloud/mail/label", "{\"user\":\"a@x.org\",\"ids\":7}", "\\\"ids\\\" must be"},
        {"/_cloud/history/expire", "{}", "\\\"user\\\" is missing"},
        {"/_cloud/token/expire", "{\"user\":7}", "\\\"user\\\" must be a text"},
        {"/_cloud/token/revoke", "{\"user\":\"x\"}", "there is no user x"},
        {"/_cloud/watch/expire", "{\"usr\":\"x\"}", "did you mean"},
        {"/_cloud/clock", "{\"set\":1}", "\\\"set\\\" must be a whole number"},
        {"/_cloud/clock", "{\"advance\":\"soon\"}", "must be a duration"},
        {"/_cloud/clock", "{\"advance\":60}", "must be a duration"},
        {"/_cloud/clock", "{\"speed\":-1}", "\\\"speed\\\" must be"},
        {"/_cloud/clock", "{\"set\":1900000000000,\"advance\":\"1h\"}", "either"},
        {"/_cloud/quota", "{\"rules\":\"2025\"}", "must be \\\"off\\\""},
        {"/_cloud/quota", "{\"rules\":1}", "must be \\\"off\\\""},
        {"/_cloud/quota", "{\"concurrency_max\":0}", "whole number from 1"},
        {"/_cloud/faults", "{\"fault\":\"5O3\"}", "did you mean"},
        {"/_cloud/faults", "[{\"fault\":\"503\"},{\"fault\":\"x\"}]", "rule 2: unknown fault"},
        {"/_cloud/faults", "", ""},
        {"/_cloud/users", "{\"email\":\"nobody\"}", "not an e-mail address"},
        {"/_cloud/users", "{\"email\":\"c@x.org\",\"messages\":-5}", "whole number"},
        {"/_cloud/sites", "{\"site\":\"what\",\"user\":\"a@x.org\"}", ""},
        {"/_cloud/token", "{\"user\":\"a@x.org\"}", "\\\"token\\\" is missing"},
        {"/_cloud/topics", "{\"topic\":\"x\"}", "\\\"url\\\" is missing"},
        {"/_cloud/auth", "{}", "give one of"},
        {"/_cloud/auth", "{\"testing\":true,\"password_changed\":\"a@x.org\"}", "give one of"},
        {"/_cloud/auth", "{\"test\":true}", "did you mean \\\"testing\\\"?"},
        {"/_cloud/auth", "{\"testing\":1}", "must be true or false"},
        {"/_cloud/auth", "{\"password_changed\":7}", "must be an address"},
        {"/_cloud/auth", "{\"password_changed\":\"c@x.org\"}", "there is no user c@x.org"},
        {"/_cloud/auth", "{\"client\":\"x\"}", "\\\"client\\\" must be an object"},
        {"/_cloud/auth", "{\"client\":{\"secret\":\"s\"}}", "\\\"id\\\" is missing"},
        {"/_cloud/auth", "{\"client\":{\"id\":\"x\",\"secret\":7}}", "must be a text"},
        {"/_cloud/auth", "{\"client\":{\"id\":\"x\",\"secrets\":\"s\"}}", "did you mean"},
        {"/_cloud/auth", "{\"client\":{\"id\":\"\\u0001\"}}", "cannot be registered"},
        {"/_cloud/auth", "{\"delegate\":{\"account\":\"r@p\",\"user\":\"a@x.org\"}}",
         "\\\"scope\\\" is missing"},
        {"/_cloud/auth",
         "{\"delegate\":{\"account\":\"r@p\",\"user\":\"a@x.org\",\"scope\":\"openid nix\"}}",
         "there is no scope nix"},
        {"/_cloud/auth",
         "{\"delegate\":{\"account\":\"r@p\",\"user\":\"a@x.org\",\"scope\":\"openid\"}}",
         "there is no service account r@p"},
    };
    auto_cloud *cloud = cloud_with(&plain);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        auto_answer answer;
        const struct ask what = {
            .verb = BOX_POST, .target = cases[i].target, .body = cases[i].body};
        const int status = ask(cloud, START_MS, &what, &answer);
        if (status != 400 || strstr(tide_buf_cstr(&answer.body), cases[i].text) == NULL)
            fail_msg("%s %s: %d %s", cases[i].target, cases[i].body, status,
                     tide_buf_cstr(&answer.body));
    }
    assert_int_equal(ask_status(cloud, START_MS, &(struct ask){.target = "/_cloud/stats?user=c"}),
                     400);
    /* Nothing of it had an effect. */
    json_auto_t *faults = ask_json(cloud, START_MS, 200, &(struct ask){.target = "/_cloud/faults"});
    assert_int_equal(json_array_size(json_object_get(faults, "faults")), 0);
    struct box_user *user = box_cloud_user(cloud, TIDE_TEXT("a@x.org"));
    assert_int_equal(box_mailbox_messages(box_user_mailbox(user)), 0);
    assert_int_equal(box_cloud_now(cloud), START_MS);
}

TEST(mail_arrives_is_sorted_and_deleted)
{
    auto_cloud *cloud = cloud_with(&plain);
    struct box_user *user = box_cloud_user(cloud, TIDE_TEXT("a@x.org"));
    /* "Subject: x\r\n\r\nhello\r\n" */
    json_auto_t *one = post(cloud, START_MS, 200, "/_cloud/mail",
                            "{\"user\":\"a@x.org\",\"raw\":\"U3ViamVjdDogeA0KDQpoZWxsbw0K\"}");
    json_auto_t *two =
        post(cloud, START_MS, 200, "/_cloud/mail?user=a@x.org&labels=STARRED&date=1000",
             "Subject: y\r\n\r\nthere\r\n");
    const char *id_one = json_string_value(json_object_get(one, "id"));
    assert_true(json_is_string(json_object_get(one, "historyId")));
    const char *id_two = json_string_value(json_object_get(two, "id"));
    const uint32_t slot_one = box_mailbox_find(box_user_mailbox(user), tide_text_of(id_one));
    const uint32_t slot_two = box_mailbox_find(box_user_mailbox(user), tide_text_of(id_two));
    assert_true(box_mailbox_has_label(box_user_mailbox(user), slot_one, BOX_LABEL_INBOX));
    assert_true(box_mailbox_has_label(box_user_mailbox(user), slot_one, BOX_LABEL_UNREAD));
    assert_int_equal(box_mailbox_at(box_user_mailbox(user), slot_one)->bytes, 21);
    assert_int_equal(box_mailbox_at(box_user_mailbox(user), slot_one)->date_ms, START_MS);
    assert_true(box_mailbox_has_label(box_user_mailbox(user), slot_two, BOX_LABEL_STARRED));
    assert_false(box_mailbox_has_label(box_user_mailbox(user), slot_two, BOX_LABEL_INBOX));
    assert_int_equal(box_mailbox_at(box_user_mailbox(user), slot_two)->date_ms, 1000);

    char body[256];
    const uint64_t before = box_mailbox_history_id(box_user_mailbox(user));
    (void)snprintf(body, sizeof body,
                   "{\"user\":\"a@x.org\",\"ids\":[\"%s\",\"%s\"],\"add\":[\"TRASH\"],"
                   "\"remove\":[\"UNREAD\"]}",
                   id_one, id_two);
    post_only(cloud, START_MS, 200, "/_cloud/mail/label", body);
    assert_true(box_mailbox_has_label(box_user_mailbox(user), slot_two, BOX_LABEL_TRASH));
    assert_false(box_mailbox_has_label(box_user_mailbox(user), slot_one, BOX_LABEL_UNREAD));
    assert_true(box_mailbox_history_id(box_user_mailbox(user)) > before);

    (void)snprintf(body, sizeof body, "{\"user\":\"a@x.org\",\"ids\":[\"%s\",\"%s\"]}", id_one,
                   id_one);
    json_auto_t *deleted = post(cloud, START_MS, 200, "/_cloud/mail/delete", body);
    assert_int_equal(json_integer_value(json_object_get(deleted, "deleted")), 1);
    assert_int_equal(box_mailbox_messages(box_user_mailbox(user)), 1);
    post_only(cloud, START_MS, 400, "/_cloud/mail/delete", body);

    const uint64_t history = box_mailbox_history_oldest(box_user_mailbox(user));
    post_only(cloud, START_MS, 200, "/_cloud/history/expire", "{\"user\":\"a@x.org\"}");
    assert_true(box_mailbox_history_oldest(box_user_mailbox(user)) > history);
}

TEST(time_goes_forward_as_told)
{
    auto_cloud *cloud = cloud_with(&plain);
    json_auto_t *clock = post(cloud, START_MS, 200, "/_cloud/clock", "{\"advance\":\"1d12h\"}");
    assert_int_equal(json_integer_value(json_object_get(clock, "now")), START_MS + 129600000);
    json_decref(clock);
    clock = post(cloud, START_MS, 200, "/_cloud/clock", "{\"speed\":60}");
    json_decref(clock);
    clock = ask_json(cloud, START_MS + 1000, 200, &(struct ask){.target = "/_cloud/clock"});
    assert_int_equal(json_integer_value(json_object_get(clock, "now")),
                     START_MS + 129600000 + 60000);
    assert_int_equal(json_integer_value(json_object_get(clock, "outside")), START_MS + 1000);
    assert_true(json_real_value(json_object_get(clock, "speed")) == 60.0);
    json_decref(clock);
    clock = post(cloud, START_MS + 1000, 200, "/_cloud/clock", "{\"set\":1900000000000}");
    assert_int_equal(json_integer_value(json_object_get(clock, "now")), 1900000000000);
}

TEST(a_minute_of_quota_passes_when_the_clock_is_moved)
{
    auto_cloud *cloud = cloud_with(&(struct box_options){.quota = BOX_QUOTA_2026});
    for (int i = 0; i < 300; i++)
        assert_int_equal(get_message(cloud, START_MS, "1"), 200);
    post_only(cloud, START_MS, 200, "/_cloud/clock", "{\"advance\":\"60s\"}");
    assert_int_equal(get_message(cloud, START_MS, "1"), 200);
}

TEST(limits_are_read_and_changed)
{
    auto_cloud *cloud = cloud_with(&plain);
    json_auto_t *quota =
        post(cloud, START_MS, 200, "/_cloud/quota", "{\"rules\":\"legacy\",\"concurrency_max\":4}");
    assert_string_equal(json_string_value(json_object_get(quota, "rules")), "legacy");
    json_decref(quota);
    quota = ask_json(cloud, START_MS, 200, &(struct ask){.target = "/_cloud/quota"});
    assert_int_equal(json_integer_value(json_object_get(quota, "user_units_per_minute")), 15000);
    assert_int_equal(json_integer_value(json_object_get(quota, "concurrency_max")), 4);
    json_decref(quota);
    quota = post(cloud, START_MS, 200, "/_cloud/quota", "{\"user_units_per_minute\":77}");
    assert_string_equal(json_string_value(json_object_get(quota, "rules")), "legacy");
    assert_int_equal(json_integer_value(json_object_get(quota, "user_units_per_minute")), 77);
}

TEST(rules_come_and_go)
{
    auto_cloud *cloud = cloud_with(&plain);
    json_auto_t *added =
        post(cloud, START_MS, 200, "/_cloud/faults", "[{\"fault\":\"503\"},{\"fault\":\"500\"}]");
    assert_int_equal(json_array_size(json_object_get(added, "rules")), 2);
    assert_int_equal(get_message(cloud, START_MS, "1"), 503);
    const struct ask remove = {.verb = BOX_DELETE, .target = "/_cloud/faults/1"};
    assert_int_equal(ask_status(cloud, START_MS, &remove), 200);
    assert_int_equal(ask_status(cloud, START_MS, &remove), 404);
    assert_int_equal(get_message(cloud, START_MS, "1"), 500);
    assert_int_equal(ask_status(cloud, START_MS,
                                &(struct ask){.verb = BOX_DELETE, .target = "/_cloud/faults/x"}),
                     400);
    assert_int_equal(
        ask_status(cloud, START_MS, &(struct ask){.verb = BOX_DELETE, .target = "/_cloud/faults"}),
        200);
    assert_int_equal(get_message(cloud, START_MS, "1"), 200);
}

TEST(users_tokens_and_sites_can_be_added)
{
    auto_cloud *cloud = cloud_with(&plain);
    post_only(cloud, START_MS, 200, "/_cloud/users", "{\"email\":\"C@x.org\"}");
    post_only(cloud, START_MS, 409, "/_cloud/users", "{\"email\":\"c@x.org\"}");
    post_only(cloud, START_MS, 200, "/_cloud/token", "{\"user\":\"c@x.org\",\"token\":\"ccc\"}");
    post_only(cloud, START_MS, 400, "/_cloud/token", "{\"user\":\"c@x.org\",\"token\":\"a\"}");
    const struct ask list = {.target = "/gmail/v1/users/me/messages", .token = "ccc"};
    assert_int_equal(ask_status(cloud, START_MS, &list), 200);
    post_only(cloud, START_MS, 200, "/_cloud/sites",
              "{\"site\":\"sc-domain:x.org\",\"user\":\"c@x.org\",\"rows_per_day\":5}");
    assert_int_equal(box_sites_number(box_cloud_sites(cloud), TIDE_TEXT("sc-domain:x.org")), 1);
    json_auto_t *users = ask_json(cloud, START_MS, 200, &(struct ask){.target = "/_cloud/users"});
    assert_int_equal(json_array_size(json_object_get(users, "users")), 3);
    post_only(cloud, START_MS, 200, "/_cloud/token/revoke", "{\"user\":\"c@x.org\"}");
    assert_int_equal(ask_status(cloud, START_MS, &list), 401);
}

static void keep_line(void *arg, tide_text line)
{
    tide_buf *kept = arg;
    box_add(kept, line.data, line.bytes);
    box_add(kept, "\n", 1);
}

/* What the control page adds is there again after a restart, also when an option
 * names it a second time. */
TEST(a_kept_site_comes_back)
{
    tide_auto_buf kept = tide_buf_heap(1 << 20);
    struct box_options keeping = plain;
    keeping.keep = keep_line;
    keeping.keep_arg = &kept;
    box_cloud *cloud = cloud_with(&keeping);
    tide_buf_clear(&kept); /* the options' own users and tokens */
    post_only(cloud, START_MS, 200, "/_cloud/sites",
              "{\"site\":\"sc-domain:x.org\",\"user\":\"a@x.org\",\"rows_per_day\":5}");
    post_only(cloud, START_MS, 409, "/_cloud/sites",
              "{\"site\":\"sc-domain:x.org\",\"user\":\"a@x.org\"}");
    box_cloud_free(cloud);
    assert_true(kept.bytes > 0);
    const tide_text line = {kept.data, kept.bytes - 1}; /* one */
    assert_null(memchr(line.data, '\n', line.bytes));

    cloud = cloud_with(&plain);
    tide_error err = {0};
    for (int i = 0; i < 2; i++)
        assert_ok(box_cloud_replay(cloud, line, &err));
    assert_int_equal(box_sites_number(box_cloud_sites(cloud), TIDE_TEXT("sc-domain:x.org")), 1);
    box_cloud_free(cloud);
}

/* However a mailbox is asked for: options, the control page, a kept line. */
TEST(a_mailbox_has_at_most_as_many_messages_as_the_cloud_allows)
{
    static const struct {
        uint32_t allowed, at_most;
    } limits[] = {{0, BOX_MAILBOX_MESSAGES_MAX}, {20, 20}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct box_options options = plain;
        options.mailbox_messages_max = limits[i].allowed;
        box_cloud *cloud = cloud_with(&options);
        tide_error err = {0};
        char line[160];
        const struct box_mailbox_options more = {.messages = limits[i].at_most + 1};
        assert_int_equal(box_cloud_add_mailbox(cloud, TIDE_TEXT("c@x.org"), &more, &err),
                         TIDE_INVALID);
        assert_non_null(strstr(err.text, "\"messages\" of a mailbox cannot be "));
        (void)snprintf(line, sizeof line, "{\"email\":\"c@x.org\",\"messages\":%u}", more.messages);
        post_only(cloud, START_MS, 400, "/_cloud/users", line);
        (void)snprintf(line, sizeof line,
                       "{\"op\":\"user\",\"email\":\"c@x.org\",\"messages\":%u,\"now\":1}",
                       more.messages);
        assert_int_equal(box_cloud_replay(cloud, tide_text_of(line), &err), TIDE_INVALID);
        assert_null(box_cloud_user(cloud, TIDE_TEXT("c@x.org")));
        const struct box_mailbox_options few = {.messages = 20};
        assert_ok(box_cloud_add_mailbox(cloud, TIDE_TEXT("c@x.org"), &few, &err));
        box_cloud_free(cloud);
    }
}

/* ---- what an administrator does ---- */

/* A user signed in to `client` for Gmail and has a refresh token. */
static void sign_in(box_cloud *cloud, const char *client, uint64_t now_ms, struct box_issue *issue)
{
    struct box_auth *auth = box_cloud_auth(cloud);
    struct box_ask asked = {.client = box_auth_client(auth, tide_text_of(client)),
                            .scopes = BOX_SCOPE_READONLY};
    (void)snprintf(asked.redirect_uri, sizeof asked.redirect_uri, "http://127.0.0.1:9/");
    assert_int_not_equal(asked.client, 0);
    const char *code =
        box_auth_code(auth, &asked, box_cloud_user(cloud, TIDE_TEXT("a@x.org")), ~0u, now_ms);
    assert_non_null(code);
    const struct box_redeem redeem = {.code = tide_text_of(code),
                                      .redirect_uri = tide_text_of(asked.redirect_uri),
                                      .client = asked.client};
    struct box_oauth_error error;
    assert_true(box_auth_redeem(auth, &redeem, now_ms, issue, &error));
    assert_non_null(issue->refresh);
}

static bool refreshes(box_cloud *cloud, const char *client, const char *refresh, uint64_t now_ms)
{
    struct box_auth *auth = box_cloud_auth(cloud);
    struct box_issue issue;
    struct box_oauth_error error;
    return box_auth_refresh(auth, box_auth_client(auth, tide_text_of(client)),
                            tide_text_of(refresh), TIDE_TEXT_NONE, now_ms, &issue, &error);
}

TEST(grants_die_of_testing_and_of_a_new_password)
{
    const uint64_t day_ms = UINT64_C(86400000);
    auto_cloud *cloud = cloud_with(&plain);
    struct box_issue issue;
    char refresh[512];
    post_only(cloud, START_MS, 200, "/_cloud/auth", "{\"testing\":true}");
    sign_in(cloud, "app", START_MS, &issue);
    assert_int_equal(issue.refresh_expires_in_s, 7 * 86400);
    (void)snprintf(refresh, sizeof refresh, "%s", issue.refresh);
    assert_true(refreshes(cloud, "app", refresh, START_MS + 6 * day_ms));
    post_only(cloud, START_MS + 6 * day_ms, 200, "/_cloud/auth", "{\"testing\":false}");
    /* What was granted in testing keeps its end, what comes now has none. */
    assert_false(refreshes(cloud, "app", refresh, START_MS + 7 * day_ms));
    sign_in(cloud, "app", START_MS + 8 * day_ms, &issue);
    assert_int_equal(issue.refresh_expires_in_s, 0);
    (void)snprintf(refresh, sizeof refresh, "%s", issue.refresh);
    post_only(cloud, START_MS + 8 * day_ms, 200, "/_cloud/auth",
              "{\"password_changed\":\"b@x.org\"}");
    assert_true(refreshes(cloud, "app", refresh, START_MS + 8 * day_ms));
    post_only(cloud, START_MS + 8 * day_ms, 200, "/_cloud/auth",
              "{\"password_changed\":\"A@x.org\"}");
    assert_false(refreshes(cloud, "app", refresh, START_MS + 8 * day_ms));
}

TEST(a_registered_client_shuts_the_others_out)
{
    auto_cloud *cloud = cloud_with(&plain);
    struct box_auth *auth = box_cloud_auth(cloud);
    const uint32_t before = box_auth_client(auth, TIDE_TEXT("anybody"));
    assert_int_not_equal(before, 0);
    post_only(cloud, START_MS, 200, "/_cloud/auth",
              "{\"client\":{\"id\":\"app\",\"secret\":\"s3\"}}");
    post_only(cloud, START_MS, 200, "/_cloud/auth", "{\"client\":{\"id\":\"desktop\"}}");
    assert_int_equal(box_auth_client(auth, TIDE_TEXT("anybody")), 0);
    const uint32_t app = box_auth_client(auth, TIDE_TEXT("app"));
    const uint32_t desktop = box_auth_client(auth, TIDE_TEXT("desktop"));
    assert_int_not_equal(app, 0);
    assert_true(box_auth_client_proves(auth, app, TIDE_TEXT("s3")));
    assert_false(box_auth_client_proves(auth, app, TIDE_TEXT("s4")));
    assert_false(box_auth_client_proves(auth, app, TIDE_TEXT_NONE));
    assert_true(box_auth_client_proves(auth, desktop, TIDE_TEXT_NONE));
    assert_false(box_auth_client_proves(auth, desktop, TIDE_TEXT("s3")));
}

static bool acts_for(box_cloud *cloud, const box_key *key, const char *user, const char *scope)
{
    const json_int_t now_s = (json_int_t)(START_MS / 1000);
    tide_auto_buf token = tide_buf_heap(64 << 10);
    box_jwt_sign(key,
                 json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "iss", "robot@p.example", "sub", user,
                           "scope", scope, "aud", "https://oauth2.googleapis.com/token", "iat",
                           now_s, "exp", now_s + 3600),
                 &token);
    struct box_issue issue;
    struct box_oauth_error error;
    return box_auth_assert(box_cloud_auth(cloud), tide_buf_text(&token), TIDE_TEXT_NONE, START_MS,
                           &issue, &error);
}

TEST(a_service_account_acts_for_whom_it_was_told)
{
    static const char readonly[] = "https://www.googleapis.com/auth/gmail.readonly";
    static const char modify[] = "https://www.googleapis.com/auth/gmail.modify";
    auto_cloud *cloud = cloud_with(&plain);
    json_auto_t *file = NULL;
    assert_ok(
        box_auth_make_service_account(box_cloud_auth(cloud), TIDE_TEXT("robot@p.example"), &file));
    box_key *key =
        box_key_from_pem(tide_text_of(json_string_value(json_object_get(file, "private_key"))));
    assert_non_null(key);
    assert_true(acts_for(cloud, key, "b@x.org", modify));
    post_only(cloud, START_MS, 200, "/_cloud/auth",
              "{\"delegate\":{\"account\":\"robot@p.example\",\"user\":\"a@x.org\",\"scope\":"
              "\"https://www.googleapis.com/auth/gmail.readonly openid\"}}");
    assert_true(acts_for(cloud, key, "a@x.org", readonly));
    assert_false(acts_for(cloud, key, "a@x.org", modify));
    assert_false(acts_for(cloud, key, "b@x.org", readonly));
    box_key_free(key);
}

TEST(the_record_is_served_and_reset)
{
    auto_cloud *cloud = cloud_with(&plain);
    (void)get_message(cloud, START_MS, "1");
    json_t *stats = ask_json(cloud, START_MS, 200,
                             &(struct ask){.target = "/_cloud/stats?user=a@x.org&fetched=1"});
    assert_int_equal(json_integer_value(inside(stats, "users", "a@x.org", "calls", NULL)), 1);
    assert_int_equal(json_integer_value(inside(stats, "since", NULL)), START_MS);
    json_decref(stats);
    post_only(cloud, START_MS, 200, "/_cloud/stats/reset", "");
    stats = ask_json(cloud, START_MS, 200, &(struct ask){.target = "/_cloud/stats"});
    assert_null(inside(stats, "users", "a@x.org", NULL));
    json_decref(stats);
}

TEST(durations_are_read_exactly)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } good[] = {{"250ms", 250},       {"90s", 90000},     {"1m", 60000}, {"1h", 3600000},
                {"1d12h", 129600000}, {"2w", 1209600000}, {"0s", 0}};
    static const char *const bad[] = {"",          "1",   "h",   "1 h",  "-1h",
                                      "1x",        "1hh", "1h1", "1.5h", "99999999999999999999d",
                                      "400000000w"};
    uint64_t ms = 0;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(box_control_duration(tide_text_of(good[i].text), &ms));
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(box_control_duration(tide_text_of(bad[i]), &ms));
}
