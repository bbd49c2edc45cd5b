/* Drives, items, lists and changes. */
#include "onedrive_fixture.h"

CASE(a_drive_says_whose_it_is_and_how_full)
{
    struct tide_onedrive_drive drive;
    answers(f, 200,
            "{\"id\":\"b!d\",\"driveType\":\"business\",\"owner\":{\"user\":{\"displayName\":"
            "\"Ada\",\"email\":\"ada@example.com\"}},\"quota\":{\"total\":100,\"remaining\":40}}");
    EXPECT(tide_onedrive_drive_get(f->onedrive, NULL, TIDE_TEXT(""), NULL, &drive, &f->err),
           TIDE_OK);
    assert_asked(f, "GET", "/v1.0/me/drive");
    assert_string_equal(drive.id, "b!d");
    assert_string_equal(drive.type, "business");
    assert_string_equal(drive.owner, "Ada");
    assert_string_equal(drive.email, "ada@example.com");
    assert_true(drive.quota_known && drive.total_bytes == 100 && drive.left_bytes == 40);
    answers(f, 200, "{\"id\":\"b!e\"}");
    EXPECT(tide_onedrive_drive_get(f->onedrive, NULL, TIDE_TEXT("b!e"), NULL, &drive, &f->err),
           TIDE_OK);
    assert_asked(f, "GET", "/v1.0/drives/b%21e");
    assert_false(drive.quota_known);
    assert_string_equal(drive.owner, "");
    static const char *const bad[] = {"{}", "[]", "<html>", "{\"id\":7}",
                                      "{\"id\":\"1\",\"quota\":{\"total\":-1}}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        answers(f, 200, bad[i]);
        EXPECT(tide_onedrive_drive_get(f->onedrive, NULL, TIDE_TEXT(""), NULL, &drive, &f->err),
               TIDE_SERVER);
    }
}

CASE(an_item_is_found_by_id_and_by_path)
{
    answers(f, 200, ITEM);
    EXPECT(tide_onedrive_get(f->onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT("A!1"), &f->item, &f->err),
           TIDE_OK);
    assert_asked(f, "GET", "/v1.0/me/drive/items/A%211");
    assert_true(tide_text_equal(f->item.item.id, TIDE_TEXT("01ABC")));
    EXPECT(tide_onedrive_get(f->onedrive, NULL, TIDE_TEXT("D"), TIDE_TEXT(""), &f->item, &f->err),
           TIDE_OK);
    assert_asked(f, "GET", "/v1.0/drives/D/root");
    EXPECT(tide_onedrive_get_at(f->onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT(""),
                                TIDE_TEXT("a b/c#%.txt"), &f->item, &f->err),
           TIDE_OK);
    assert_asked(f, "GET", "/v1.0/me/drive/root:/a%20b/c%23%25.txt:");
    EXPECT(tide_onedrive_get_at(f->onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT("P"),
                                TIDE_TEXT("\xc3\xa9?x"), &f->item, &f->err),
           TIDE_OK);
    assert_asked(f, "GET", "/v1.0/me/drive/items/P:/%C3%A9%3Fx:");

    answers(f, 404, "{\"error\":{\"code\":\"itemNotFound\",\"message\":\"x\"}}");
    EXPECT(tide_onedrive_get(f->onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT("A"), &f->item, &f->err),
           TIDE_GONE);
    assert_int_equal(tide_graph_reason_of(&f->err), TIDE_GRAPH_NOT_FOUND);
    assert_null(f->item.value);
    answers(f, 404, "<html>proxy</html>");
    EXPECT(tide_onedrive_get(f->onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT("A"), &f->item, &f->err),
           TIDE_SERVER);
}

/* ---- lists ---- */

struct seen {
    char names[256];
    unsigned restarts;
    tide_status refuse;
};

static tide_status see(const struct tide_onedrive_item *item, void *arg)
{
    struct seen *seen = arg;
    const size_t bytes = strlen(seen->names);
    (void)snprintf(seen->names + bytes, sizeof seen->names - bytes, "%.*s%s,", (int)item->id.bytes,
                   item->id.data, item->deleted ? "-" : "");
    return seen->refuse;
}

static void see_restart(void *arg)
{
    struct seen *seen = arg;
    seen->names[0] = '\0';
    seen->restarts++;
}

struct listed {
    struct seen seen;
    struct tide_onedrive_page page;
};

static tide_status delta(struct fixture *f, struct listed *listed, const char *link)
{
    const struct tide_onedrive_sink sink = {see, see_restart, &listed->seen};
    return tide_onedrive_delta(f->onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT(""), link, &sink,
                               &listed->page, &f->err);
}

static tide_status children(struct fixture *f, struct listed *listed, const char *link)
{
    const struct tide_onedrive_sink sink = {see, see_restart, &listed->seen};
    return tide_onedrive_children(f->onedrive, NULL, TIDE_TEXT("D"), TIDE_TEXT("P"), link, &sink,
                                  &listed->page, &f->err);
}

#define SELECTED                                                                                   \
    "?$select=id,name,size,eTag,cTag,file,folder,package,bundle,deleted,root,remoteItem,malware,"  \
    "pendingOperations,parentReference,fileSystemInfo,lastModifiedDateTime&$top=1000"

CASE(changes_come_page_by_page)
{
    struct listed listed = {.seen = {.restarts = 0}};
    tide_onedrive_page_init(&listed.page, f->mem);
    answers(f, 200,
            "{\"@odata.context\":\"x\",\"value\":[{\"id\":\"1\",\"root\":{},\"folder\":{}},{\"id\":"
            "\"2\",\"deleted\":{}},{\"id\":\"2\"}],\"@odata.nextLink\":\"" ORIGIN
            "/v1.0/me/drive/root/delta?token='1;%20x'\"}");
    EXPECT(delta(f, &listed, ""), TIDE_OK);
    assert_asked(f, "GET", "/v1.0/me/drive/root/delta" SELECTED);
    assert_true(has_header(f, "Prefer: Include-Feature=AddToOneDrive\n"));
    assert_string_equal(listed.seen.names, "1,2-,2,");
    assert_int_equal(listed.seen.restarts, 1);
    assert_int_equal(listed.page.items, 3);
    assert_int_equal(listed.page.delta.bytes, 0);
    char link[512];
    (void)snprintf(link, sizeof link, "%s", tide_buf_cstr(&listed.page.next));

    /* The link is followed as it is; a page may be empty. */
    answers(f, 200, "{\"value\":[],\"@odata.deltaLink\":\"" ORIGIN "/v1.0/d?t=2\"}");
    EXPECT(delta(f, &listed, link), TIDE_OK);
    assert_asked(f, "GET", "/v1.0/me/drive/root/delta?token='1;%20x'");
    assert_string_equal(listed.seen.names, "");
    assert_int_equal(listed.page.next.bytes, 0);
    assert_string_equal(tide_buf_cstr(&listed.page.delta), ORIGIN "/v1.0/d?t=2");
    /* Of a folder that another user shares. */
    const struct tide_onedrive_sink sink = {see, see_restart, &listed.seen};
    EXPECT(tide_onedrive_delta(f->onedrive, NULL, TIDE_TEXT("b!d"), TIDE_TEXT("F"), "", &sink,
                               &listed.page, &f->err),
           TIDE_OK);
    assert_asked(f, "GET", "/v1.0/drives/b%21d/items/F/delta" SELECTED);
    tide_onedrive_page_done(&listed.page);
}

CASE(children_are_listed_below_their_folder)
{
    struct listed listed = {.seen = {.restarts = 0}};
    tide_onedrive_page_init(&listed.page, f->mem);
    answers(f, 200, "{\"value\":[" ITEM "],\"@odata.nextLink\":\"" ORIGIN "/v1.0/next\"}");
    EXPECT(children(f, &listed, ""), TIDE_OK);
    assert_asked(f, "GET", "/v1.0/drives/D/items/P/children" SELECTED);
    assert_string_equal(listed.seen.names, "01ABC,");
    assert_string_equal(tide_buf_cstr(&listed.page.next), ORIGIN "/v1.0/next");
    answers(f, 200, "{\"value\":[]}"); /* the last page has no link at all */
    EXPECT(children(f, &listed, ORIGIN "/v1.0/next"), TIDE_OK);
    assert_asked(f, "GET", "/v1.0/next");
    assert_int_equal(listed.page.next.bytes, 0);
    tide_onedrive_page_done(&listed.page);
}

/* A page that is not whole must not look like one: the token would run ahead (D31). */
CASE(a_page_that_lies_is_no_page)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"value\":[]}", /* neither link */
        "{\"value\":[],\"@odata.nextLink\":null}",
        "{\"value\":[],\"@odata.nextLink\":\"\"}",
        "{\"value\":[],\"@odata.nextLink\":7}",
        "{\"@odata.deltaLink\":\"" ORIGIN "/d\"}",
        "{\"value\":null,\"@odata.deltaLink\":\"" ORIGIN "/d\"}",
        "{\"value\":[{}],\"@odata.deltaLink\":\"" ORIGIN "/d\"}",
        "{\"value\":[{\"id\":\"1\",\"size\":\"x\"}],\"@odata.deltaLink\":\"" ORIGIN "/d\"}",
        "{\"value\":[{\"id\":\"1\"}],\"@odata.deltaLink\":\"" ORIGIN "/d\"",
        "{\"value\":[],\"@odata.nextLink\":\"" ORIGIN "/n\",\"@odata.deltaLink\":\"" ORIGIN "/d\"}",
        /* A link elsewhere would get the token (ODR3). */
        "{\"value\":[],\"@odata.deltaLink\":\"https://evil.example/d\"}",
        "{\"value\":[],\"@odata.deltaLink\":\"" ORIGIN "@evil.example/d\"}",
        "{\"value\":[],\"@odata.nextLink\":\"/v1.0/relative\"}",
    };
    struct listed listed = {.seen = {.restarts = 0}};
    tide_onedrive_page_init(&listed.page, f->mem);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        answers(f, 200, bad[i]);
        const tide_status rc = delta(f, &listed, "");
        if (rc != TIDE_SERVER)
            fail_msg("%s: %s", bad[i], tide_status_name(rc));
        assert_int_equal(f->err.status, TIDE_SERVER);
        assert_memory_equal(f->err.text, "items.delta: ", 13);
    }
    /* Cut off on the way. */
    answers(f, 200, "{\"value\":[{\"id\":\"1\"}],\"@odata.deltaLink\":\"" ORIGIN "/d\"}");
    f->truncate_from = 30;
    EXPECT(delta(f, &listed, ""), TIDE_SERVER);
    /* A stored link is checked again before the token goes there. */
    const unsigned before = f->requests;
    EXPECT(delta(f, &listed, "https://evil.example/d"), TIDE_SERVER);
    assert_int_equal(f->requests, before);
    tide_onedrive_page_done(&listed.page);
}

CASE(the_sinks_refusal_is_the_outcome)
{
    struct listed listed = {.seen = {.refuse = TIDE_DISK_FULL}};
    tide_onedrive_page_init(&listed.page, f->mem);
    answers(f, 200, "{\"value\":[" ITEM "],\"@odata.deltaLink\":\"" ORIGIN "/d\"}");
    EXPECT(delta(f, &listed, ""), TIDE_DISK_FULL);
    assert_int_equal(listed.page.delta.bytes, 0);
    tide_onedrive_page_done(&listed.page);
}

CASE(an_expired_token_names_the_kind_of_resync_and_where_it_begins)
{
    static const struct {
        const char *inner, *location;
        tide_graph_reason reason;
        const char *resync;
    } rows[] = {
        {"resyncChangesApplyDifferences", ORIGIN "/v1.0/fresh", TIDE_GRAPH_RESYNC_APPLY,
         ORIGIN "/v1.0/fresh"},
        {"resyncChangesUploadDifferences", ORIGIN "/v1.0/f2", TIDE_GRAPH_RESYNC_UPLOAD,
         ORIGIN "/v1.0/f2"},
        {"x", NULL, TIDE_GRAPH_RESYNC, ""},
        {"x", "https://evil.example/f", TIDE_GRAPH_RESYNC, ""},
    };
    struct listed listed = {.seen = {.restarts = 0}};
    tide_onedrive_page_init(&listed.page, f->mem);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        answers(f, 410,
                textf("{\"error\":{\"code\":\"resyncRequired\",\"message\":\"x\",\"innerError\":{"
                      "\"code\":\"%s\"}}}",
                      rows[i].inner));
        f->header = rows[i].location == NULL ? NULL : "Location";
        f->value = rows[i].location;
        EXPECT(delta(f, &listed, ORIGIN "/v1.0/old"), TIDE_GONE);
        assert_int_equal(tide_graph_reason_of(&f->err), rows[i].reason);
        assert_string_equal(tide_buf_cstr(&listed.page.resync), rows[i].resync);
        assert_string_equal(listed.seen.names, "");
    }
    tide_onedrive_page_done(&listed.page);
}

/* A page of ten thousand items costs the memory of one (LST4, ODR4). */
TEST(a_long_page_costs_little_memory)
{
    enum { ITEMS = 10000 };
    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, UINT64_MAX);
    struct fixture *f = begin_in(&mem.base);
    const struct tide_onedrive_options options = {
        .endpoint = ORIGIN, .bearer = TIDE_TEXT("bearer-1"), .world = f->world};
    OK(tide_onedrive_open(&options, f->mem, &f->onedrive, &f->err));
    tide_buf text = heap_buf(16 << 20);
    OK(tide_buf_add_text(&text, "{\"value\":["));
    for (int i = 0; i < ITEMS; i++)
        OK(tide_buf_print(&text, "%s" ITEM, i == 0 ? "" : ","));
    OK(tide_buf_add_text(&text, "],\"@odata.deltaLink\":\"" ORIGIN "/d\"}"));
    answers(f, 200, tide_buf_cstr(&text));
    struct listed listed = {.seen = {.restarts = 0}};
    tide_onedrive_page_init(&listed.page, f->mem);
    EXPECT(delta(f, &listed, ""), TIDE_OK);
    assert_int_equal(listed.page.items, ITEMS);
    assert_true(text.bytes > 2000000);
    assert_true(mem.bytes_peak < 300000);
    tide_onedrive_page_done(&listed.page);
    tide_buf_done(&text);
    finish(f);
    assert_int_equal(mem.bytes_live, 0);
}
