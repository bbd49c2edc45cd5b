/* Folders, names, places, times, deletions, subscriptions. */
#include "onedrive_fixture.h"

#define CONFLICT "@microsoft.graph.conflictBehavior"
#define NONE     TIDE_TEXT("")

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

CASE(a_folder_is_created_only_where_its_name_is_free)
{
    answers(f, 201, "{\"id\":\"F1\",\"name\":\"n\",\"folder\":{}}");
    EXPECT(tide_onedrive_folder_create(f->onedrive, NULL, NONE, NONE, TIDE_TEXT("a \"\xc3\xa9\""),
                                       &f->item, &f->err),
           TIDE_OK);
    assert_asked(f, "POST", "/v1.0/me/drive/root/children");
    assert_true(has_header(f, "Content-Type: application/json"));
    json_t *body = body_of(f);
    assert_string_equal(text_at(body, "name"), "a \"\xc3\xa9\"");
    assert_string_equal(text_at(body, CONFLICT), "fail");
    assert_true(json_is_object(json_object_get(body, "folder")));
    assert_int_equal(json_object_size(body), 3);
    json_decref(body);
    assert_int_equal(f->item.item.kind, TIDE_ONEDRIVE_FOLDER);

    answers(f, 409, "{\"error\":{\"code\":\"nameAlreadyExists\"}}");
    EXPECT(tide_onedrive_folder_create(f->onedrive, NULL, TIDE_TEXT("D"), TIDE_TEXT("P"),
                                       TIDE_TEXT("n"), &f->item, &f->err),
           TIDE_EXISTS);
    assert_asked(f, "POST", "/v1.0/drives/D/items/P/children");
    assert_int_equal(tide_graph_reason_of(&f->err), TIDE_GRAPH_NAME_TAKEN);
    /* Without an answer it is not known whether it exists. */
    answers(f, 201, "");
    f->reset = true;
    EXPECT(tide_onedrive_folder_create(f->onedrive, NULL, NONE, NONE, TIDE_TEXT("n"), &f->item,
                                       &f->err),
           TIDE_UNKNOWN);
}

CASE(an_update_says_only_what_changes)
{
    static const struct {
        struct tide_onedrive_update update;
        const char *body;
        bool guarded;
    } rows[] = {
        {{.name = TIDE_TEXT("new")}, "{\"name\":\"new\",\"" CONFLICT "\":\"fail\"}", false},
        {{.parent_id = TIDE_TEXT("P"), .if_match = TIDE_TEXT("\"e1\"")},
         "{\"parentReference\":{\"id\":\"P\"},\"" CONFLICT "\":\"fail\"}",
         true},
        {{.name = TIDE_TEXT("n"), .parent_id = TIDE_TEXT("P"), .if_match = TIDE_TEXT("\"e1\"")},
         "{\"name\":\"n\",\"parentReference\":{\"id\":\"P\"},\"" CONFLICT "\":\"fail\"}",
         true},
        {{.modified_unix_ms = UINT64_C(1777863721000)},
         "{\"fileSystemInfo\":{\"lastModifiedDateTime\":\"2026-05-04T03:02:01.000Z\"}}",
         false},
        {{.created_unix_ms = UINT64_C(1777863720000), .modified_unix_ms = UINT64_C(1777863721000)},
         "{\"fileSystemInfo\":{\"createdDateTime\":\"2026-05-04T03:02:00.000Z\","
         "\"lastModifiedDateTime\":\"2026-05-04T03:02:01.000Z\"}}",
         false},
    };
    answers(f, 200, ITEM);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT(tide_onedrive_update(f->onedrive, NULL, NONE, TIDE_TEXT("A"), &rows[i].update,
                                    &f->item, &f->err),
               TIDE_OK);
        assert_asked(f, "PATCH", "/v1.0/me/drive/items/A");
        assert_int_equal(has_header(f, "If-Match: \"e1\"\n"), rows[i].guarded);
        assert_int_equal(has_header(f, "If-Match"), rows[i].guarded);
        json_t *body = body_of(f);
        json_t *expected = NULL;
        OK(tide_json_parse(tide_text_of(rows[i].body), &expected, NULL));
        assert_true(json_equal(body, expected));
        json_decref(expected);
        json_decref(body);
    }
    answers(f, 412, "{\"error\":{\"code\":\"resourceModified\"}}");
    EXPECT(tide_onedrive_update(f->onedrive, NULL, NONE, TIDE_TEXT("A"), &rows[0].update, &f->item,
                                &f->err),
           TIDE_SUPERSEDED);
    assert_null(f->item.value);
}

CASE(a_deletion_is_guarded_by_a_tag)
{
    answers(f, 204, "");
    EXPECT(tide_onedrive_delete(f->onedrive, NULL, TIDE_TEXT("D"), TIDE_TEXT("A!1"),
                                TIDE_TEXT("\"{E},1\""), &f->err),
           TIDE_OK);
    assert_asked(f, "DELETE", "/v1.0/drives/D/items/A%211");
    assert_true(has_header(f, "If-Match: \"{E},1\"\n"));
    EXPECT(tide_onedrive_delete(f->onedrive, NULL, NONE, TIDE_TEXT("A"), NONE, &f->err), TIDE_OK);
    assert_false(has_header(f, "If-Match"));
    static const struct {
        int http;
        const char *code;
        tide_status expected;
    } rows[] = {{412, "resourceModified", TIDE_SUPERSEDED},
                {404, "itemNotFound", TIDE_GONE},
                {423, "resourceLocked", TIDE_BUSY},
                {403, "accessDenied", TIDE_PERMANENT}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        answers(f, rows[i].http, textf("{\"error\":{\"code\":\"%s\"}}", rows[i].code));
        EXPECT(tide_onedrive_delete(f->onedrive, NULL, NONE, TIDE_TEXT("A"), NONE, &f->err),
               rows[i].expected);
    }
}

CASE(a_subscription_is_made_renewed_and_removed)
{
    struct tide_onedrive_watch watch;
    const uint64_t until = UINT64_C(1777863721000);
    answers(f, 201, "{\"id\":\"s-1\",\"expirationDateTime\":\"2026-05-04T03:02:01.0000000Z\"}");
    EXPECT(tide_onedrive_watch_create(f->onedrive, NULL, NONE, "https://me.example/hook",
                                      TIDE_TEXT("s3cret"), until, &watch, &f->err),
           TIDE_OK);
    assert_asked(f, "POST", "/v1.0/subscriptions");
    json_t *body = body_of(f);
    assert_string_equal(text_at(body, "changeType"), "updated");
    assert_string_equal(text_at(body, "notificationUrl"), "https://me.example/hook");
    assert_string_equal(text_at(body, "resource"), "/me/drive/root");
    assert_string_equal(text_at(body, "expirationDateTime"), "2026-05-04T03:02:01.000Z");
    assert_string_equal(text_at(body, "clientState"), "s3cret");
    json_decref(body);
    assert_string_equal(watch.id, "s-1");
    assert_int_equal(watch.expires_unix_ms, until);
    EXPECT(tide_onedrive_watch_create(f->onedrive, NULL, TIDE_TEXT("b!d"), "https://me.example/h",
                                      TIDE_TEXT("s"), until, &watch, &f->err),
           TIDE_OK);
    body = body_of(f);
    assert_string_equal(text_at(body, "resource"), "/drives/b!d/root");
    json_decref(body);
    answers(f, 200, "{\"id\":\"s-1\",\"expirationDateTime\":\"2026-05-04T03:02:02Z\"}");
    EXPECT(tide_onedrive_watch_renew(f->onedrive, NULL, TIDE_TEXT("s-1"), until + 1000, &watch,
                                     &f->err),
           TIDE_OK);
    assert_asked(f, "PATCH", "/v1.0/subscriptions/s-1");
    assert_int_equal(watch.expires_unix_ms, until + 1000);
    answers(f, 204, "");
    EXPECT(tide_onedrive_watch_remove(f->onedrive, NULL, TIDE_TEXT("s-1"), &f->err), TIDE_OK);
    assert_asked(f, "DELETE", "/v1.0/subscriptions/s-1");
    answers(f, 404, "{\"error\":{\"code\":\"ResourceNotFound\"}}");
    EXPECT(tide_onedrive_watch_remove(f->onedrive, NULL, TIDE_TEXT("s-1"), &f->err), TIDE_OK);
    static const char *const bad[] = {"{}", "{\"id\":\"x\"}",
                                      "{\"id\":7,\"expirationDateTime\":\"2026-05-04T03:02:02Z\"}",
                                      "{\"expirationDateTime\":\"2026-05-04T03:02:02Z\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        answers(f, 200, bad[i]);
        EXPECT(tide_onedrive_watch_renew(f->onedrive, NULL, TIDE_TEXT("s"), until, &watch, &f->err),
               TIDE_SERVER);
    }
}
