/* The Gmail service: what each method answers, and what each refuses. */
#include "gmail_world.h"

#include "base/rng.h"
#include "cloudbox/record/referee.h"

#define MAIL(subject, body)                                                                        \
    "From: carol@example.org\r\nTo: alice@example.com\r\nSubject: " subject                        \
    "\r\nDate: Tue, 14 Nov 2023 22:13:20 +0000\r\nMessage-ID: <" subject                           \
    "@example.org>\r\n\r\n" body

TEST(profile_counts_messages_and_threads)
{
    WORLD(world);
    char id[BOX_ID_TEXT_BYTES];
    insert(&world, TIDE_TEXT(MAIL("one", "hello")), "", id);
    insert(&world, TIDE_TEXT(MAIL("two", "hello")), "", id);
    assert_int_equal(call(&world, "GET", "/profile", NULL), 200);
    assert_string_equal(text_at(&world, "emailAddress"), "alice@example.com");
    assert_int_equal(json_integer_value(at(&world, "messagesTotal")), 2);
    assert_int_equal(json_integer_value(at(&world, "threadsTotal")), 2);
    assert_true(json_is_string(at(&world, "historyId")));
}

/* Goal: BGML1.  Method: bytes of every value and every length up to some hundred,
 * also without an empty line, without headers, and with NULs. */
TEST(raw_gives_back_the_very_bytes)
{
    WORLD(world);
    char id[BOX_ID_TEXT_BYTES], all[256 + 40];
    const size_t head = (size_t)snprintf(all, sizeof all, "Subject: x\r\n\r\n");
    for (size_t i = 0; i < 256; i++)
        all[head + i] = (char)i;
    insert(&world, (tide_text){all, head + 256}, "", id);
    assert_raw(&world, id, (tide_text){all, head + 256});
    insert(&world, TIDE_TEXT("Subject: no body\r\n\r\n"), "", id);
    assert_raw(&world, id, TIDE_TEXT("Subject: no body\r\n\r\n"));
    insert(&world, TIDE_TEXT("\0"), "", id);
    assert_raw(&world, id, TIDE_TEXT("\0"));
    tide_rng rng = tide_rng_seeded(11);
    for (size_t bytes = 1; bytes < 200; bytes++) {
        for (size_t i = 0; i < bytes; i++)
            all[i] = (char)tide_rng_next(&rng);
        insert(&world, (tide_text){all, bytes}, "", id);
        assert_raw(&world, id, (tide_text){all, bytes});
    }
}

TEST(each_format_has_its_members)
{
    WORLD(world);
    char id[BOX_ID_TEXT_BYTES];
    insert(&world, TIDE_TEXT(MAIL("formats", "some text")), ",\"labelIds\":[\"INBOX\"]", id);

    assert_int_equal(call(&world, "GET", PATH("/messages/%s", id), NULL), 200);
    assert_string_equal(text_at(&world, "payload.mimeType"), "text/plain");
    assert_null(at(&world, "raw"));
    assert_labels(at(&world, "labelIds"), "INBOX");
    assert_string_equal(text_at(&world, "snippet"), "some text");
    assert_string_equal(text_at(&world, "threadId"), id);
    assert_string_equal(text_at(&world, "internalDate"), "1790000000000");

    assert_int_equal(
        call(&world, "GET",
             PATH("/messages/%s?format=metadata&metadataHeaders=subject&metadataHeaders=To", id),
             NULL),
        200);
    assert_int_equal(json_array_size(at(&world, "payload.headers")), 2);
    assert_null(at(&world, "payload.body.data"));

    assert_int_equal(call(&world, "GET", PATH("/messages/%s?format=MINIMAL", id), NULL), 200);
    assert_null(at(&world, "payload"));
    assert_null(at(&world, "raw"));
    assert_non_null(at(&world, "historyId"));

    call(&world, "GET", PATH("/messages/%s?format=garbage", id), NULL);
    assert_refused(&world, 400, "Invalid value at 'format': \"garbage\"");
    call(&world, "GET", "/messages/00000000000000ff?format=raw", NULL);
    assert_refused(&world, 404, "Requested entity was not found.");
}

/* The quick way of writing format=raw and the one through a JSON tree must give
 * the same document, pretty or not. */
TEST(raw_is_the_same_with_and_without_a_tree)
{
    WORLD(world);
    char id[BOX_ID_TEXT_BYTES];
    for (int labels = 0; labels < 3; labels++) {
        static const char *const more[] = {"", ",\"labelIds\":[\"INBOX\"]",
                                           ",\"labelIds\":[\"INBOX\",\"UNREAD\"]"};
        insert(&world, TIDE_TEXT(MAIL("tree", "a \"quoted\" <b> & text")), more[labels], id);
        for (int i = 0; i < 10; i++) {
            /* Alone, and with a name that no quick answer knows and no message has. */
            static const char *const lists[][2] = {
                {"", "&fields=*"},
                {"&fields=raw", "&fields=raw,payload"},
                {"&fields=id,labelIds", "&fields=id,labelIds,payload"},
                {"&fields=labelIds", "&fields=labelIds,payload"},
                {"&fields=raw,internalDate,id,threadId,snippet,historyId,sizeEstimate",
                 "&fields=raw,internalDate,id,threadId,snippet,historyId,sizeEstimate,payload"},
            };
            const char *pretty = i % 2 == 0 ? "" : "&prettyPrint=false";
            call(&world, "GET", PATH("/messages/%s?format=raw%s%s", id, lists[i / 2][0], pretty),
                 NULL);
            tide_buf quick = world.answer.body;
            tide_buf_init(&world.answer.body, tide_mem_heap(), BOX_ANSWER_BYTES_MAX);
            assert_string_equal(world.answer.type, "application/json; charset=UTF-8");
            call(&world, "GET", PATH("/messages/%s?format=raw%s%s", id, lists[i / 2][1], pretty),
                 NULL);
            assert_int_equal(world.answer.status, 200);
            assert_string_equal(tide_buf_cstr(&world.answer.body), tide_buf_cstr(&quick));
            tide_buf_done(&quick);
        }
    }
}

TEST(only_bodies_count_as_fetched)
{
    WORLD(world);
    char id[BOX_ID_TEXT_BYTES];
    insert(&world, TIDE_TEXT(MAIL("fetched", "x")), "", id);
    call(&world, "GET", PATH("/messages/%s?format=raw", id), NULL);
    call(&world, "GET", PATH("/messages/%s?format=full", id), NULL);
    call(&world, "GET", PATH("/messages/%s?format=metadata", id), NULL);
    call(&world, "GET", PATH("/messages/%s?format=minimal", id), NULL);
    json_auto_t *stats = box_cloud_stats(world.cloud, NULL, true);
    auto_text *text = json_dumps(stats, JSON_COMPACT);
    char wanted[BOX_ID_TEXT_BYTES + 8];
    snprintf(wanted, sizeof wanted, "\"%s\":2", id);
    if (strstr(text, wanted) == NULL)
        fail_msg("not found: %s in %s", wanted, text);
}

TEST(metadata_scope_shows_no_body)
{
    WORLD(world);
    char id[BOX_ID_TEXT_BYTES];
    insert(&world, TIDE_TEXT(MAIL("secret", "secret")), "", id);
    const uint32_t bound[] = {BOX_SCOPE_METADATA, BOX_SCOPE_METADATA | BOX_SCOPE_READONLY};
    for (size_t i = 0; i < 2; i++) {
        world.token = token_with(&world, bound[i]);
        call(&world, "GET", PATH("/messages/%s", id), NULL);
        assert_refused(&world, 403, "Metadata scope doesn't allow format FULL");
        assert_string_equal(text_at(&world, "error.errors.0.reason"), "forbidden");
        call(&world, "GET", PATH("/messages/%s?format=raw", id), NULL);
        assert_refused(&world, 403, "Metadata scope doesn't allow format RAW");
        call(&world, "GET", PATH("/threads/%s", id), NULL);
        assert_refused(&world, 403, "Metadata scope doesn't allow format FULL");
        assert_int_equal(call(&world, "GET", PATH("/messages/%s?format=metadata", id), NULL), 200);
        assert_null(at(&world, "snippet"));
        call(&world, "GET", "/messages?q=secret", NULL);
        assert_refused(&world, 403, "Metadata scope does not support 'q' parameter");
    }
    world.token = token_with(&world, BOX_SCOPE_READONLY);
    assert_int_equal(call(&world, "GET", PATH("/messages/%s", id), NULL), 200);
}

/* Every method against every single scope, with the discovery document as the
 * judge: refused exactly when the scope is not in the method's list. */
TEST(every_method_asks_for_its_scopes)
{
    static const struct {
        const char *verb, *path;
        uint32_t scopes;
    } calls[] = {
        {"GET", "/profile",
         BOX_SCOPE_MODIFY | BOX_SCOPE_READONLY | BOX_SCOPE_METADATA | BOX_SCOPE_COMPOSE},
        {"GET", "/messages/1", BOX_SCOPE_MODIFY | BOX_SCOPE_READONLY | BOX_SCOPE_METADATA},
        {"GET", "/messages/1/attachments/2", BOX_SCOPE_MODIFY | BOX_SCOPE_READONLY},
        {"DELETE", "/messages/1", 0},
        {"POST", "/messages/batchDelete", 0},
        {"DELETE", "/threads/1", 0},
        {"POST", "/messages/batchModify", BOX_SCOPE_MODIFY},
        {"POST", "/messages/1/modify", BOX_SCOPE_MODIFY},
        {"POST", "/messages/1/trash", BOX_SCOPE_MODIFY},
        {"POST", "/threads/1/untrash", BOX_SCOPE_MODIFY},
        {"POST", "/messages", BOX_SCOPE_MODIFY | BOX_SCOPE_INSERT},
        {"POST", "/messages/import", BOX_SCOPE_MODIFY | BOX_SCOPE_INSERT},
        {"POST", "/messages/send", BOX_SCOPE_MODIFY | BOX_SCOPE_COMPOSE | BOX_SCOPE_SEND},
        {"POST", "/drafts", BOX_SCOPE_MODIFY | BOX_SCOPE_COMPOSE},
        {"POST", "/drafts/send", BOX_SCOPE_MODIFY | BOX_SCOPE_COMPOSE},
        {"GET", "/drafts/1", BOX_SCOPE_MODIFY | BOX_SCOPE_COMPOSE | BOX_SCOPE_READONLY},
        {"DELETE", "/drafts/1", BOX_SCOPE_MODIFY | BOX_SCOPE_COMPOSE},
        {"GET", "/labels",
         BOX_SCOPE_MODIFY | BOX_SCOPE_READONLY | BOX_SCOPE_METADATA | BOX_SCOPE_LABELS},
        {"POST", "/labels", BOX_SCOPE_MODIFY | BOX_SCOPE_LABELS},
        {"PATCH", "/labels/1", BOX_SCOPE_MODIFY | BOX_SCOPE_LABELS},
    };
    WORLD(world);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (uint32_t scope = 1; scope < BOX_SCOPE_ALL; scope <<= 1) {
            world.token = token_with(&world, scope);
            call(&world, calls[i].verb, calls[i].path, NULL);
            const bool allowed = ((calls[i].scopes | BOX_SCOPE_MAIL) & scope) != 0;
            const bool refused =
                strcmp(text_at(&world, "error.errors.0.reason"), "insufficientPermissions") == 0;
            if (refused == allowed)
                fail_msg("%s %s with scope bit %u", calls[i].verb, calls[i].path, scope);
        }
}

/* ---- labels on messages ---- */

TEST(modify_adds_and_takes_labels)
{
    WORLD(world);
    char id[BOX_ID_TEXT_BYTES];
    insert(&world, TIDE_TEXT(MAIL("labels", "x")), ",\"labelIds\":[\"INBOX\",\"UNREAD\"]", id);
    assert_labels(at(&world, "labelIds"), "INBOX UNREAD");
    assert_int_equal(call(&world, "POST", PATH("/messages/%s/modify", id),
                          "{\"addLabelIds\":[\"STARRED\",\"STARRED\"],"
                          "\"removeLabelIds\":[\"INBOX\",\"UNREAD\"]}"),
                     200);
    assert_labels(at(&world, "labelIds"), "STARRED");
    call(&world, "POST", PATH("/messages/%s/modify", id), "{\"removeLabelIds\":[\"STARRED\"]}");
    assert_labels(at(&world, "labelIds"), "");

    static const struct {
        const char *body, *words;
    } wrong[] = {
        {"{}", "No label add or removes specified"},
        {"{\"addLabelIds\":[\"Label_99\"]}", "Invalid label: Label_99"},
        {"{\"addLabelIds\":[\"SENT\"]}", "Invalid label: SENT"},
        {"{\"removeLabelIds\":[\"DRAFT\"]}", "Invalid label: DRAFT"},
        {"{\"addLabelIds\":[\"INBOX\"],\"removeLabelIds\":[\"INBOX\"]}",
         "Cannot both add and remove the same label"},
        {"{\"addLabelIds\":\"INBOX\"}",
         "Invalid value at 'addLabelIds': a list of strings is needed"},
        {"{\"addLabelIds\":[1]}", "Invalid value at 'addLabelIds': a list of strings is needed"},
        {"{\"labels\":[]}",
         "Invalid JSON payload received. Unknown name \"labels\": Cannot find field."},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        call(&world, "POST", PATH("/messages/%s/modify", id), wrong[i].body);
        assert_refused(&world, 400, wrong[i].words);
    }
    call(&world, "POST", "/messages/123/modify", "{\"addLabelIds\":[\"INBOX\"]}");
    assert_int_equal(world.answer.status, 404);
}

/* {"ids":[...count times id...], ...} */
static void ids_body(tide_buf *out, const char *id, size_t count, const char *more)
{
    box_add_cstr(out, "{\"ids\":[");
    for (size_t i = 0; i < count; i++)
        box_print(out, "%s\"%s\"", i > 0 ? "," : "", id);
    box_print(out, "]%s}", more);
}

TEST(batches_take_a_thousand_ids_and_no_more)
{
    WORLD(world);
    char id[BOX_ID_TEXT_BYTES], other[BOX_ID_TEXT_BYTES];
    tide_buf body;
    insert(&world, TIDE_TEXT(MAIL("batch", "x")), "", id);
    insert(&world, TIDE_TEXT(MAIL("other", "x")), "", other);
    const char *star = ",\"addLabelIds\":[\"STARRED\"]";
    static const char *const paths[] = {"/messages/batchModify", "/messages/batchDelete"};
    for (size_t i = 0; i < 2; i++) {
        tide_buf_init(&body, tide_mem_heap(), BOX_ANSWER_BYTES_MAX);
        ids_body(&body, id, 1001, i == 0 ? star : "");
        call(&world, "POST", paths[i], tide_buf_cstr(&body));
        assert_refused(&world, 400, "Number of ids cannot exceed 1000");
        tide_buf_clear(&body);
        ids_body(&body, id, 1000, i == 0 ? star : "");
        assert_int_equal(call(&world, "POST", paths[i], tide_buf_cstr(&body)), 204);
        assert_int_equal(world.answer.body.bytes, 0);
        tide_buf_clear(&body);
        ids_body(&body, "00000000000000aa", 1, i == 0 ? star : ""); /* no message has it */
        assert_int_equal(call(&world, "POST", paths[i], tide_buf_cstr(&body)), 204);
        call(&world, "POST", paths[i], i == 0 ? "{\"addLabelIds\":[\"STARRED\"]}" : "{}");
        assert_refused(&world, 400, "No message ids specified");
        call(&world, "GET", PATH("/messages/%s?format=minimal", id), NULL);
        if (i == 0)
            assert_labels(at(&world, "labelIds"), "STARRED");
        else
            assert_int_equal(world.answer.status, 404);
        tide_buf_done(&body);
    }
    assert_int_equal(call(&world, "GET", PATH("/messages/%s?format=minimal", other), NULL), 200);
}

TEST(a_call_changes_at_most_a_hundred_labels)
{
    WORLD(world);
    char id[BOX_ID_TEXT_BYTES];
    insert(&world, TIDE_TEXT(MAIL("hundred", "x")), "", id);
    tide_auto_buf body = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    box_add_cstr(&body, "{\"addLabelIds\":[\"INBOX\"");
    for (int i = 0; i < 100; i++)
        box_add_cstr(&body, ",\"INBOX\"");
    box_add_cstr(&body, "]}");
    call(&world, "POST", PATH("/messages/%s/modify", id), tide_buf_cstr(&body));
    assert_refused(&world, 400, "Number of label ids cannot exceed 100");
}

TEST(trash_comes_and_goes_and_delete_is_for_good)
{
    WORLD(world);
    char id[BOX_ID_TEXT_BYTES];
    insert(&world, TIDE_TEXT(MAIL("trash", "x")), ",\"labelIds\":[\"INBOX\"]", id);
    assert_int_equal(call(&world, "POST", PATH("/messages/%s/trash", id), NULL), 200);
    assert_labels(at(&world, "labelIds"), "INBOX TRASH");
    assert_int_equal(call(&world, "POST", PATH("/messages/%s/untrash", id), NULL), 200);
    assert_labels(at(&world, "labelIds"), "INBOX");
    assert_int_equal(call(&world, "DELETE", PATH("/messages/%s", id), NULL), 204);
    assert_int_equal(world.answer.body.bytes, 0);
    assert_int_equal(call(&world, "DELETE", PATH("/messages/%s", id), NULL), 404);
    assert_int_equal(call(&world, "POST", PATH("/messages/%s/trash", id), NULL), 404);
    assert_int_equal(call(&world, "GET", PATH("/threads/%s", id), NULL), 404);
}

/* ---- coming in ---- */

TEST(insert_and_import_differ_in_date_and_labels)
{
    WORLD(world);
    char body[600], id[BOX_ID_TEXT_BYTES];
    tide_auto_buf raw = tide_buf_heap(500);
    box_add_base64url(&raw, TIDE_TEXT(MAIL("dates", "x")));
    snprintf(body, sizeof body, "{\"raw\":\"%s\"}", tide_buf_cstr(&raw));
    static const struct {
        const char *path, *date, *labels;
    } ways[] = {
        {"/messages", "1790000000000", ""},
        {"/messages?internalDateSource=dateHeader", "1700000000000", ""},
        {"/messages/import", "1700000000000", "INBOX UNREAD"},
        {"/messages/import?internalDateSource=receivedTime", "1790000000000", "INBOX UNREAD"},
    };
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(call(&world, "POST", ways[i].path, body), 200);
        assert_labels(at(&world, "labelIds"), ways[i].labels);
        snprintf(id, sizeof id, "%s", text_at(&world, "id"));
        call(&world, "GET", PATH("/messages/%s?format=minimal", id), NULL);
        assert_string_equal(text_at(&world, "internalDate"), ways[i].date);
    }
    call(&world, "POST", "/messages?internalDateSource=never", body);
    assert_refused(&world, 400, "Invalid value at 'internalDateSource': \"never\"");
    assert_int_equal(call(&world, "POST", "/messages?deleted=true", body), 200);
    snprintf(id, sizeof id, "%s", text_at(&world, "id"));
    assert_int_equal(call(&world, "GET", PATH("/messages/%s", id), NULL), 404);
}

TEST(what_is_no_message_does_not_come_in)
{
    WORLD(world);
    const char *missing =
        "'raw' RFC822 payload message string or uploading message via /upload/* URL required";
    static const char *const paths[] = {"/messages", "/messages/import", "/messages/send"};
    for (size_t i = 0; i < 3; i++) {
        call(&world, "POST", paths[i], "{}");
        assert_refused(&world, 400, missing);
        call(&world, "POST", paths[i], "{\"raw\":\"\"}");
        assert_refused(&world, 400, missing);
        call(&world, "POST", paths[i], "{\"raw\":\"!!!!\"}");
        assert_refused(&world, 400,
                       "Invalid value at 'message.raw' (TYPE_BYTES), Base64 decoding failed");
        call(&world, "POST", paths[i], "{\"raw\":\"U3ViamVjdDogeA==\",\"threadId\":\"77\"}");
        assert_refused(&world, 404, "Requested entity was not found.");
        call(&world, "POST", paths[i], "{\"raw\":\"U3ViamVjdDogeA==\",\"subject\":\"x\"}");
        assert_int_equal(world.answer.status, 400);
        call(&world, "POST", paths[i], "{\"raw\":");
        assert_int_equal(world.answer.status, 400);
    }
    call(&world, "POST", "/messages", "{\"raw\":\"U3ViamVjdDogeA==\",\"labelIds\":[\"Nope\"]}");
    assert_refused(&world, 400, "Invalid label: Nope");
    call(&world, "POST", "/messages", "{\"raw\":\"U3ViamVjdDogeA==\",\"labelIds\":[\"DRAFT\"]}");
    assert_refused(&world, 400, "Invalid label: DRAFT");
    call(&world, "GET", "/profile", NULL); /* BGML2 */
    assert_int_equal(json_integer_value(at(&world, "messagesTotal")), 0);
    assert_int_equal(
        call(&world, "POST", "/messages", "{\"raw\":\"U3ViamVjdDogeA==\",\"labelIds\":[\"SENT\"]}"),
        200);
}

/* messages.send of a text. */
static int send_text(struct world *world, const char *raw)
{
    tide_auto_buf body = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    box_add_cstr(&body, "{\"raw\":\"");
    box_add_base64url(&body, tide_text_of(raw));
    box_add_cstr(&body, "\"}");
    return call(world, "POST", "/messages/send", tide_buf_cstr(&body));
}

TEST(sending_completes_delivers_and_hides_blind_copies)
{
    WORLD(world);
    char id[BOX_ID_TEXT_BYTES];
    assert_int_equal(send_text(&world, "To: \"alice@example.com\" <BOB@example.com>, x@y.org\r\n"
                                       "Bcc: hidden@y.org,\r\n more@y.org\r\nSubject: hi\r\n\r\n"
                                       "text"),
                     200);
    assert_labels(at(&world, "labelIds"), "SENT");
    snprintf(id, sizeof id, "%s", text_at(&world, "id"));
    call(&world, "GET", PATH("/messages/%s?format=metadata&metadataHeaders=Bcc", id), NULL);
    assert_int_equal(json_array_size(at(&world, "payload.headers")), 1);
    call(&world, "GET",
         PATH("/messages/%s?format=metadata&metadataHeaders=Date&metadataHeaders=Message-ID"
              "&metadataHeaders=From",
              id),
         NULL);
    assert_int_equal(json_array_size(at(&world, "payload.headers")), 3);
    assert_string_equal(text_at(&world, "payload.headers.0.value"),
                        "Mon, 21 Sep 2026 14:13:20 +0000");
    assert_string_equal(text_at(&world, "payload.headers.2.value"), "alice@example.com");

    world.token = "bob-token";
    call(&world, "GET", "/messages", NULL);
    assert_int_equal(json_array_size(at(&world, "messages")), 1);
    snprintf(id, sizeof id, "%s", text_at(&world, "messages.0.id"));
    call(&world, "GET", PATH("/messages/%s?format=metadata&metadataHeaders=Bcc", id), NULL);
    assert_labels(at(&world, "labelIds"), "INBOX UNREAD");
    assert_int_equal(json_array_size(at(&world, "payload.headers")), 0);

    world.token = "alice-token";
    const char *whole = "To: alice@example.com\r\nFrom: a\r\nDate: d\r\nMessage-Id: <m@x>\r\n\r\nx";
    assert_int_equal(send_text(&world, whole), 200);
    assert_labels(at(&world, "labelIds"), "INBOX UNREAD SENT");
    snprintf(id, sizeof id, "%s", text_at(&world, "id"));
    assert_raw(&world, id, tide_text_of(whole));

    send_text(&world, "Subject: nobody\r\n\r\ntext");
    assert_refused(&world, 400, "Recipient address required");
    send_text(&world, "To: undisclosed-recipients:;\r\n\r\ntext");
    assert_refused(&world, 400, "Recipient address required");
    send_text(&world, "To: a b@\r\n\r\ntext");
    assert_refused(&world, 400, "Invalid To header");
    send_text(&world, "To: bob@example.com, nobody\r\n\r\ntext");
    assert_refused(&world, 400, "Invalid To header");
    send_text(&world, "To: bob@example.com\r\nBcc: x y@z\r\n\r\ntext");
    assert_refused(&world, 400, "Invalid Bcc header");
    /* Comments, groups, folding and commas in quotes are none of that. */
    assert_int_equal(send_text(&world, "To: bob@example.com (Bob, of old), friends: x@y.org;\r\n"
                                       "Cc: \"Novak, Jan\"\r\n <jan@y.org>,\r\n\r\ntext"),
                     200);
}

static size_t violations(struct world *world, const char *kind)
{
    json_auto_t *stats = box_cloud_stats(world->cloud, NULL, false);
    const json_t *list = json_object_get(stats, "violations");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(list, i), "kind")), kind) == 0)
            return (size_t)json_integer_value(json_object_get(json_array_get(list, i), "count"));
    return 0;
}

TEST(a_message_that_is_sent_twice_is_written_down)
{
    WORLD(world);
    const char *mail = "To: bob@example.com\r\nMessage-ID: <one@x>\r\n\r\ntext";
    assert_int_equal(send_text(&world, mail), 200);
    assert_int_equal(send_text(&world, "To: bob@example.com\r\nMessage-ID: <two@x>\r\n\r\n"), 200);
    assert_int_equal(send_text(&world, "To: bob@example.com\r\n\r\n"), 200);
    assert_int_equal(send_text(&world, "To: bob@example.com\r\n\r\n"), 200);
    assert_int_equal(violations(&world, "sent-twice"), 0);
    assert_int_equal(send_text(&world, mail), 200);
    assert_int_equal(violations(&world, "sent-twice"), 1);
    /* A draft with the id of a sent message, too; being a draft is no sending. */
    tide_auto_buf body = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    box_add_cstr(&body, "{\"message\":{\"raw\":\"");
    box_add_base64url(&body, tide_text_of(mail));
    box_add_cstr(&body, "\"}}");
    assert_int_equal(call(&world, "POST", "/drafts", tide_buf_cstr(&body)), 200);
    assert_int_equal(violations(&world, "sent-twice"), 1);
    tide_buf_clear(&body);
    box_print(&body, "{\"id\":\"%s\"}", text_at(&world, "id"));
    assert_int_equal(call(&world, "POST", "/drafts/send", tide_buf_cstr(&body)), 200);
    assert_int_equal(violations(&world, "sent-twice"), 2);
}

/* ---- threads ---- */

TEST(thread_calls_reach_every_message_of_now)
{
    WORLD(world);
    char first[BOX_ID_TEXT_BYTES], second[BOX_ID_TEXT_BYTES], more[80];
    insert(&world, TIDE_TEXT(MAIL("thread", "x")), "", first);
    snprintf(more, sizeof more, ",\"threadId\":\"%s\"", first);
    insert(&world, TIDE_TEXT(MAIL("thread", "y")), more, second);
    assert_string_equal(text_at(&world, "threadId"), first);

    assert_int_equal(
        call(&world, "POST", PATH("/threads/%s/modify", first), "{\"addLabelIds\":[\"STARRED\"]}"),
        200);
    assert_int_equal(json_array_size(at(&world, "messages")), 2);
    assert_labels(at(&world, "messages.1.labelIds"), "STARRED");
    assert_int_equal(call(&world, "POST", PATH("/threads/%s/trash", first), NULL), 200);
    assert_labels(at(&world, "messages.0.labelIds"), "TRASH STARRED");
    assert_int_equal(call(&world, "POST", PATH("/threads/%s/untrash", first), NULL), 200);

    assert_int_equal(call(&world, "GET", PATH("/threads/%s?format=minimal", first), NULL), 200);
    assert_string_equal(text_at(&world, "messages.1.id"), second);
    assert_string_equal(text_at(&world, "historyId"), text_at(&world, "messages.1.historyId"));
    assert_int_equal(call(&world, "GET", PATH("/threads/%s", first), NULL), 200);
    assert_string_equal(text_at(&world, "messages.0.payload.mimeType"), "text/plain");
    call(&world, "GET", PATH("/threads/%s?format=raw", first), NULL);
    assert_refused(&world, 400, "Invalid value at 'format': \"raw\"");
    call(&world, "POST", PATH("/threads/%s/modify", first), "{\"addLabelIds\":[\"SENT\"]}");
    assert_refused(&world, 400, "Invalid label: SENT");

    insert(&world, TIDE_TEXT(MAIL("thread", "z")), more, second); /* inherits nothing */
    assert_labels(at(&world, "labelIds"), "");
    assert_int_equal(call(&world, "DELETE", PATH("/messages/%s", first), NULL), 204);
    call(&world, "GET", PATH("/threads/%s?format=minimal", first), NULL);
    assert_int_equal(json_array_size(at(&world, "messages")), 2);
    assert_int_equal(call(&world, "DELETE", PATH("/threads/%s", first), NULL), 204);
    assert_int_equal(call(&world, "GET", PATH("/threads/%s", first), NULL), 404);
    assert_int_equal(call(&world, "DELETE", PATH("/threads/%s", first), NULL), 404);
    assert_int_equal(call(&world, "GET", PATH("/messages/%s", second), NULL), 404);
}

/* ---- drafts ---- */

#define RAW_DRAFT "VG86IGJvYkBleGFtcGxlLmNvbQ0KU3ViamVjdDogZA0KDQp4" /* To: bob, Subject: d */

TEST(drafts_keep_their_id_while_their_message_changes)
{
    WORLD(world);
    char draft[BOX_ID_TEXT_BYTES], message[BOX_ID_TEXT_BYTES];
    assert_int_equal(call(&world, "POST", "/drafts", "{\"message\":{\"raw\":\"" RAW_DRAFT "\"}}"),
                     200);
    assert_labels(at(&world, "message.labelIds"), "DRAFT");
    snprintf(draft, sizeof draft, "%s", text_at(&world, "id"));
    snprintf(message, sizeof message, "%s", text_at(&world, "message.id"));
    call(&world, "POST", PATH("/messages/%s/modify", message), "{\"addLabelIds\":[\"STARRED\"]}");
    assert_refused(&world, 400, "Labels cannot be applied to drafts");

    assert_int_equal(
        call(&world, "PUT", PATH("/drafts/%s", draft), "{\"message\":{\"raw\":\"" RAW_DRAFT "\"}}"),
        200);
    assert_string_equal(text_at(&world, "id"), draft);
    assert_string_not_equal(text_at(&world, "message.id"), message);
    assert_int_equal(call(&world, "GET", PATH("/messages/%s", message), NULL), 404);
    assert_int_equal(call(&world, "GET", PATH("/drafts/%s?format=raw", draft), NULL), 200);
    assert_string_equal(text_at(&world, "message.raw"), RAW_DRAFT);
    assert_int_equal(call(&world, "GET", PATH("/drafts/%s", draft), NULL), 200);
    assert_non_null(at(&world, "message.payload"));

    call(&world, "POST", "/drafts", "{}");
    assert_refused(&world, 400, "Missing draft message");
    call(&world, "PUT", PATH("/drafts/%s", draft), "{\"message\":{}}");
    assert_int_equal(world.answer.status, 400);
    call(&world, "PUT", "/drafts/r1", "{\"message\":{\"raw\":\"" RAW_DRAFT "\"}}");
    assert_int_equal(world.answer.status, 404);
    assert_int_equal(call(&world, "GET", "/drafts/r1", NULL), 404);

    assert_int_equal(call(&world, "DELETE", PATH("/drafts/%s", draft), NULL), 204);
    assert_int_equal(call(&world, "DELETE", PATH("/drafts/%s", draft), NULL), 404);
    call(&world, "GET", "/profile", NULL);
    assert_int_equal(json_integer_value(at(&world, "messagesTotal")), 0);
}

TEST(a_sent_draft_becomes_mail)
{
    WORLD(world);
    char body[400];
    call(&world, "POST", "/drafts/send", "{}");
    assert_refused(&world, 400, "Missing draft id");
    call(&world, "POST", "/drafts/send", "{\"id\":\"r1\"}");
    assert_int_equal(world.answer.status, 404);
    for (int with_content = 0; with_content < 2; with_content++) {
        call(&world, "POST", "/drafts",
             with_content ? "{\"message\":{\"raw\":\"U3ViamVjdDogeA==\"}}"
                          : "{\"message\":{\"raw\":\"" RAW_DRAFT "\"}}");
        snprintf(body, sizeof body, "{\"id\":\"%s\"}", text_at(&world, "id"));
        if (with_content) {
            char id[BOX_ID_TEXT_BYTES];
            snprintf(id, sizeof id, "%s", text_at(&world, "id"));
            call(&world, "POST", "/drafts/send", body);
            assert_refused(&world, 400, "Recipient address required");
            snprintf(body, sizeof body, "{\"id\":\"%s\",\"message\":{\"raw\":\"" RAW_DRAFT "\"}}",
                     id);
        }
        assert_int_equal(call(&world, "POST", "/drafts/send", body), 200);
        assert_labels(at(&world, "labelIds"), "SENT");
        assert_int_equal(call(&world, "POST", "/drafts/send", body), 404);
    }
    assert_int_equal(box_mailbox_messages(mailbox_of(&world, "bob@example.com")), 2);
    assert_int_equal(box_mailbox_messages(mailbox_of(&world, "alice@example.com")), 2);
}

/* ---- attachments ---- */

TEST(attachments_come_by_their_id)
{
    WORLD(world);
    char id[BOX_ID_TEXT_BYTES], attachment[400];
    insert(&world,
           TIDE_TEXT("Subject: files\r\nMIME-Version: 1.0\r\n"
                     "Content-Type: multipart/mixed; boundary=B\r\n\r\n--B\r\n"
                     "Content-Type: text/plain\r\n\r\ntext\r\n--B\r\n"
                     "Content-Type: application/octet-stream; name=f.bin\r\n"
                     "Content-Disposition: attachment; filename=f.bin\r\n"
                     "Content-Transfer-Encoding: base64\r\n\r\nAAEC/w==\r\n--B--\r\n"),
           "", id);
    call(&world, "GET", PATH("/messages/%s", id), NULL);
    snprintf(attachment, sizeof attachment, "%s",
             text_at(&world, "payload.parts.1.body.attachmentId"));
    assert_int_equal(call(&world, "GET", PATH("/messages/%s/attachments/%s", id, attachment), NULL),
                     200);
    assert_string_equal(text_at(&world, "data"), "AAEC_w==");
    assert_int_equal(json_integer_value(at(&world, "size")), 4);
    call(&world, "GET", PATH("/messages/%s/attachments/nonsense", id), NULL);
    assert_refused(&world, 400, "Invalid attachment token");
    assert_int_equal(call(&world, "GET", "/messages/77/attachments/x", NULL), 404);
}
