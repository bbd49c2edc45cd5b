/* Answers that look right and are not, as a client of Gmail meets them, and that the truth
 * is back when the rule is gone. */
#include "gmail_world.h"

#include "cloudbox/gate/faults.h"

enum { MESSAGES = 8 };

static char ids[MESSAGES][BOX_ID_TEXT_BYTES];
static char history[128]; /* the path of what changed since the mailbox was empty */

static void start(struct world *world)
{
    world_init(world);
    (void)snprintf(
        history, sizeof history, "/history?startHistoryId=%llu",
        (unsigned long long)box_mailbox_history_id(mailbox_of(world, "alice@example.com")));
    assert_int_equal(call(world, "GET", history, NULL), 200);
    for (int i = 0; i < MESSAGES; i++) {
        char raw[200];
        (void)snprintf(raw, sizeof raw,
                       "From: a@x.org\r\nMessage-ID: <%d@x>\r\n\r\n%0100d body\r\n", i, i);
        insert(world, tide_text_of(raw), ",\"labelIds\":[\"INBOX\"]", ids[i]);
    }
}

static void truth(struct world *world)
{
    assert_true(box_faults_remove(box_cloud_faults(world->cloud), 0));
}

static size_t list(struct world *world, const char *path, const char *entries)
{
    assert_int_equal(call(world, "GET", path, NULL), 200);
    return json_array_size(at(world, entries));
}

TEST(a_listing_is_empty_while_the_profile_counts_all)
{
    auto_world world;
    start(&world);
    add_fault(world.cloud, "{\"method\":\"gmail.users.messages.list\",\"fault\":\"list-empty\"}");
    assert_int_equal(list(&world, "/messages?maxResults=3", "messages"), 0);
    assert_null(at(&world, "messages"));
    assert_null(at(&world, "nextPageToken"));
    assert_int_equal(json_integer_value(at(&world, "resultSizeEstimate")), 0);
    assert_int_equal(call(&world, "GET", "/profile", NULL), 200);
    assert_int_equal(json_integer_value(at(&world, "messagesTotal")), MESSAGES);
    truth(&world);
    assert_int_equal(list(&world, "/messages", "messages"), MESSAGES);
}

TEST(a_listing_ends_early)
{
    auto_world world;
    start(&world);
    add_fault(world.cloud, "{\"fault\":\"list-short\"}");
    assert_int_equal(list(&world, "/messages?maxResults=6", "messages"), 3);
    assert_string_equal(text_at(&world, "messages.0.id"), ids[MESSAGES - 1]);
    assert_null(at(&world, "nextPageToken"));
    assert_int_equal(list(&world, history, "history"), MESSAGES / 2);
}

TEST(a_list_that_lies_is_all_that_is_counted)
{
    auto_world world;
    start(&world);
    add_fault(world.cloud, "{\"count\":1,\"fault\":\"list-empty\"}");
    assert_int_equal(call(&world, "GET", PATH("/messages/%s", ids[0]), NULL), 200);
    assert_int_equal(list(&world, "/messages", "messages"), 0);
    assert_int_equal(list(&world, "/messages", "messages"), MESSAGES);
}

/* The bytes that format=raw gives, and what the answer says of their number. */
static size_t raw_bytes(struct world *world, const char *id, size_t *said_out)
{
    tide_auto_buf bytes = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    get_raw(world, id, &bytes);
    *said_out = (size_t)json_integer_value(at(world, "sizeEstimate"));
    return bytes.bytes;
}

TEST(a_body_is_cut_or_empty_and_its_size_is_not)
{
    auto_world world;
    start(&world);
    size_t whole = 0, said = 0;
    const size_t given = raw_bytes(&world, ids[0], &whole);
    assert_int_equal(given, whole);
    add_fault(world.cloud, "{\"count\":1,\"fault\":\"raw-half\"}");
    add_fault(world.cloud, "{\"fault\":\"raw-empty\"}");
    const size_t half = raw_bytes(&world, ids[0], &said);
    assert_in_range(half, whole / 2 - 3, whole / 2 + 3);
    assert_int_equal(said, whole);
    assert_int_equal(raw_bytes(&world, ids[0], &said), 0);
    assert_int_equal(said, whole);
    assert_int_equal(call(&world, "GET", PATH("/messages/%s?format=metadata", ids[0]), NULL), 200);
    assert_string_equal(text_at(&world, "payload.headers.0.value"), "a@x.org");
}

TEST(a_history_id_is_no_number_or_never_was)
{
    auto_world world;
    start(&world);
    add_fault(world.cloud, "{\"count\":3,\"fault\":\"history-garbled\"}");
    add_fault(world.cloud, "{\"fault\":\"history-ahead\"}");
    const char *const paths[] = {"/profile", history, PATH("/messages/%s?format=raw", ids[1])};
    char next[128];
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(call(&world, "GET", paths[i], NULL), 200);
            uint64_t number = 0;
            assert_int_equal(tide_text_to_u64(tide_text_of(text_at(&world, "historyId")), &number),
                             round == 1);
            (void)snprintf(next, sizeof next, "/history?startHistoryId=%s",
                           text_at(&world, "historyId"));
        }
    assert_int_equal(call(&world, "GET", next, NULL), 404);
}

TEST(a_listed_id_cannot_be)
{
    auto_world world;
    start(&world);
    add_fault(world.cloud, "{\"fault\":\"id-garbled\"}");
    const char *const paths[] = {"/messages", history};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(call(&world, "GET", paths[i], NULL), 200);
        size_t wrong = 0;
        for (size_t n = 0; n < MESSAGES; n++) {
            char path[64];
            if (i == 0)
                (void)snprintf(path, sizeof path, "messages.%zu.id", n);
            else
                (void)snprintf(path, sizeof path, "history.%zu.messagesAdded.0.message.id", n);
            const tide_text id = tide_text_of(text_at(&world, path));
            wrong += box_mailbox_find(mailbox_of(&world, "alice@example.com"), id) == BOX_SLOT_NONE;
        }
        assert_int_equal(wrong, 1);
    }
}

TEST(a_hidden_message_is_denied_everywhere_and_returns)
{
    auto_world world;
    start(&world);
    char rule[128];
    (void)snprintf(rule, sizeof rule, "{\"fault\":\"hidden\",\"id\":\"%s\"}", ids[2]);
    add_fault(world.cloud, rule);
    assert_int_equal(call(&world, "GET", PATH("/messages/%s", ids[2]), NULL), 404);
    assert_int_equal(call(&world, "GET", PATH("/messages/%s", ids[3]), NULL), 200);
    assert_int_equal(list(&world, "/messages", "messages"), MESSAGES - 1);
    assert_null(strstr(tide_buf_cstr(&world.answer.body), ids[2]));
    assert_int_equal(list(&world, history, "history"), MESSAGES - 1);
    truth(&world);
    assert_int_equal(call(&world, "GET", PATH("/messages/%s", ids[2]), NULL), 200);
    assert_int_equal(list(&world, "/messages", "messages"), MESSAGES);
    add_fault(world.cloud, "{\"fault\":\"hidden\"}");
    assert_int_equal(list(&world, "/messages", "messages"), 0);
}

TEST(hiding_is_drawn_by_id_and_not_by_call)
{
    auto_world world;
    start(&world);
    add_fault(world.cloud, "{\"fault\":\"hidden\",\"rate\":0.5}");
    const size_t listed = list(&world, "/messages", "messages");
    for (int round = 0; round < 3; round++) {
        size_t found = 0;
        for (int i = 0; i < MESSAGES; i++)
            found += call(&world, "GET", PATH("/messages/%s", ids[i]), NULL) == 200;
        assert_int_equal(found, listed);
    }
    assert_in_range(listed, 1, MESSAGES - 1); /* of this seed */
}

TEST(a_token_leads_back_to_the_first_page)
{
    auto_world world;
    start(&world);
    add_fault(world.cloud, "{\"after\":1,\"fault\":\"page-restart\"}");
    (void)snprintf(history + strlen(history), 32, "&maxResults=3");
    const char *const paths[] = {"/messages?maxResults=3", history};
    static const char *const firsts[] = {"messages.0.id", "history.0.id"};
    for (size_t i = 0; i < 2; i++) {
        char first[64], next[256];
        assert_int_equal(call(&world, "GET", paths[i], NULL), 200);
        (void)snprintf(first, sizeof first, "%s", text_at(&world, firsts[i]));
        for (int page = 0; page < 2; page++) {
            (void)snprintf(next, sizeof next, "%s&pageToken=%s", paths[i],
                           text_at(&world, "nextPageToken"));
            assert_int_equal(call(&world, "GET", next, NULL), 200);
        }
        assert_string_equal(text_at(&world, firsts[i]), first);
    }
}

TEST(a_refusal_asks_for_any_wait)
{
    auto_world world;
    start(&world);
    add_fault(world.cloud, "{\"fault\":\"429\",\"retry_after\":999999999}");
    assert_int_equal(call(&world, "GET", "/messages", NULL), 429);
    assert_int_equal(world.answer.headers_count, 1);
    assert_string_equal(world.answer.headers[0].name, "Retry-After");
    assert_string_equal(world.answer.headers[0].value, "999999999");
    tide_error err = {0};
    assert_int_equal(
        box_cloud_add_fault(world.cloud, TIDE_TEXT("{\"fault\":\"404\",\"retry_after\":1}"), &err),
        TIDE_INVALID);
    assert_non_null(strstr(err.text, "\"retry_after\" means nothing to fault \"404\""));
}

TEST(an_error_is_left_as_it_is)
{
    auto_world world;
    start(&world);
    add_fault(world.cloud, "{\"fault\":\"list-empty\"}");
    add_fault(world.cloud, "{\"fault\":\"raw-empty\"}");
    assert_int_equal(call(&world, "GET", "/messages?labelIds=nonsense", NULL), 400);
    assert_int_equal(call(&world, "GET", "/messages/1234?format=raw", NULL), 404);
    assert_string_equal(text_at(&world, "error.message"), "Requested entity was not found.");
}

TEST(an_account_may_not_send_more_for_a_while)
{
    auto_world world;
    start(&world);
    add_fault(world.cloud, "{\"fault\":\"send-limit\",\"count\":1,\"ms\":5000}");
    assert_int_equal(call(&world, "GET", "/profile", NULL), 200); /* sending only */
    assert_int_equal(call(&world, "POST", "/drafts/send", "{\"id\":\"r1\"}"), 429);
    assert_non_null(strstr(text_at(&world, "error.message"), "Z (Mail sending)"));
    truth(&world);
    world.now_ms += 5001;
    assert_int_equal(call(&world, "POST", "/drafts/send", "{\"id\":\"r1\"}"), 404);
}
