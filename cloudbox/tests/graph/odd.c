/* Odd items: notebooks, malware, hashes that are not final, shortcuts to what others share; old states in delta; the
 * recycle bin. */
#include "graph_fixture.h"

static int control(struct world *world, const char *what, const char *body)
{
    return call_with(world, "POST", printed("/_cloud/drive/%s", what), NULL, tide_text_of(body));
}

#define ALICE "\"user\":\"alice@example.com\""

/* ---- marks ---- */

TEST(a_notebook_is_neither_file_nor_folder)
{
    WORLD(world, 0);
    make_folder(&world, "/root", "Notes");
    put_file(&world, "Notes/section.one", "x");
    call(&world, "GET", "/root:/Notes", NULL);
    const char *etag = kept(text_at(&world, "eTag"));
    assert_int_equal(control(&world, "mark", "{" ALICE ",\"path\":\"Notes\",\"as\":\"package\"}"),
                     200);
    call(&world, "GET", "/root:/Notes", NULL);
    assert_string_equal(text_at(&world, "package.type"), "oneNote");
    assert_null(at(&world, "folder"));
    assert_string_not_equal(text_at(&world, "eTag"), etag);
    call(&world, "GET", "/root:/Notes/section.one", NULL);
    assert_int_equal(world.answer.status, 200);
    assert_int_equal(control(&world, "mark", "{" ALICE ",\"path\":\"Notes\",\"as\":\"malware\"}"),
                     400);
    assert_int_equal(control(&world, "mark", "{" ALICE ",\"path\":\"Notes\",\"as\":\"shortcut\"}"),
                     400);
    assert_int_equal(control(&world, "mark", "{" ALICE ",\"path\":\"Notes\",\"as\":\"none\"}"),
                     200);
    call(&world, "GET", "/root:/Notes", NULL);
    assert_int_equal(number_at(&world, "folder.childCount"), 1);
}

TEST(malware_has_a_facet_and_no_bytes)
{
    WORLD(world, 0);
    put_file(&world, "bad.exe", "evil");
    call(&world, "GET", "/root:/bad.exe", NULL);
    const char *url = kept(text_at(&world, "@microsoft.graph.downloadUrl"));
    control(&world, "mark", "{" ALICE ",\"path\":\"bad.exe\",\"as\":\"malware\"}");
    call(&world, "GET", "/root/delta", NULL);
    assert_non_null(at(&world, "value.1.malware"));
    call(&world, "GET", "/root:/bad.exe:/content", NULL);
    assert_refused(&world, 403, "malwareDetected", "virusSuspicious");
    call_with(&world, "GET", url, NULL, TIDE_TEXT_NONE);
    assert_refused(&world, 403, "malwareDetected", "virusSuspicious");
}

TEST(a_pending_file_has_a_hash_that_changes_when_it_is_done)
{
    WORLD(world, 0);
    put_file(&world, "a.docx", "text");
    const char *hash = kept(text_at(&world, "file.hashes.quickXorHash"));
    control(&world, "mark", "{" ALICE ",\"path\":\"a.docx\",\"as\":\"pending\"}");
    call(&world, "GET", "/root:/a.docx?$select=name,file,pendingOperations", NULL);
    assert_non_null(at(&world, "pendingOperations.pendingContentUpdate"));
    assert_string_not_equal(text_at(&world, "file.hashes.quickXorHash"), hash);
    assert_int_equal(strlen(text_at(&world, "file.hashes.quickXorHash")), 28);
    control(&world, "mark", "{" ALICE ",\"path\":\"a.docx\",\"as\":\"none\"}");
    call(&world, "GET", "/root:/a.docx", NULL);
    assert_string_equal(text_at(&world, "file.hashes.quickXorHash"), hash);
    assert_null(at(&world, "pendingOperations"));
}

/* ---- shortcuts ---- */

/* Bob has Plans/deep/b.txt and secret.txt; Alice has a shortcut to Plans. */
static void share(struct world *world)
{
    static const char *const files[] = {"Plans/deep/b.txt", "secret.txt"};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(control(world, "put",
                                 printed("{\"user\":\"bob@example.com\",\"path\":\"%s\","
                                         "\"content\":\"of bob\"}",
                                         files[i])),
                         200);
    assert_int_equal(control(world, "shortcut",
                             "{" ALICE ",\"path\":\"Shared\",\"to\":{\"user\":\"bob@example.com\","
                             "\"path\":\"Plans\"}}"),
                     200);
}

TEST(a_shortcut_leads_into_another_drive_and_no_further)
{
    WORLD(world, 0);
    share(&world);
    call(&world, "GET", "/root/delta", NULL);
    assert_string_equal(text_at(&world, "value.1.name"), "Shared");
    assert_null(at(&world, "value.1.folder"));
    assert_non_null(at(&world, "value.1.remoteItem.folder"));
    const char *drive = kept(text_at(&world, "value.1.remoteItem.parentReference.driveId"));
    const char *item = kept(text_at(&world, "value.1.remoteItem.id"));
    const char *there = printed("/v1.0/drives/%s/items/%s", drive, item);
    assert_int_equal(call_with(&world, "GET", printed("%s/delta", there), NULL, TIDE_TEXT_NONE),
                     200);
    assert_int_equal(json_array_size(at(&world, "value")), 3);
    assert_non_null(at(&world, "@odata.deltaLink"));
    assert_int_equal(
        call_with(&world, "GET", printed("%s:/deep/b.txt", there), NULL, TIDE_TEXT_NONE), 200);
    const char *url = kept(text_at(&world, "@microsoft.graph.downloadUrl"));
    call_with(&world, "GET", url, NULL, TIDE_TEXT_NONE);
    assert_string_equal(tide_buf_cstr(&world.bytes), "of bob");
    assert_int_equal(call_with(&world, "PUT", printed("%s:/new.txt:/content", there),
                               HEADERS("Content-Type", "text/plain"), TIDE_TEXT("of alice")),
                     201);
    call_with(&world, "GET", "/_cloud/drive?user=bob@example.com", NULL, TIDE_TEXT_NONE);
    assert_non_null(strstr(tide_buf_cstr(&world.bytes), " Plans/new.txt\n"));

    /* Beside it, above it, and into the shortcut itself. */
    static const char *const others[] = {"root:/secret.txt", "root", "root/children"};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(call_with(&world, "GET", printed("/v1.0/drives/%s/%s", drive, others[i]),
                                   NULL, TIDE_TEXT_NONE),
                         403);
    call_with(&world, "PUT", "/v1.0/me/drive/root:/Shared/x.txt:/content",
              HEADERS("Content-Type", "text/plain"), TIDE_TEXT("x"));
    assert_refused(&world, 400, "invalidRequest", "");
    world.token = "bob-token"; /* whose drive it is; he has no shortcut to Alice's */
    char own[BOX_ITEM_ID_BYTES];
    box_drive_own_id(drive_of(&world), own);
    assert_int_equal(
        call_with(&world, "GET", printed("/v1.0/drives/%s/root", own), NULL, TIDE_TEXT_NONE), 403);
}

TEST(a_share_can_be_lost_and_a_wrong_one_is_refused)
{
    WORLD(world, 0);
    share(&world);
    call(&world, "GET", "/root:/Shared", NULL);
    const char *there =
        printed("/v1.0/drives/%s/items/%s", text_at(&world, "remoteItem.parentReference.driveId"),
                text_at(&world, "remoteItem.id"));
    assert_int_equal(call_with(&world, "GET", there, NULL, TIDE_TEXT_NONE), 200);
    assert_int_equal(control(&world, "shortcut", "{" ALICE ",\"path\":\"Shared\",\"lost\":true}"),
                     200);
    assert_int_equal(call_with(&world, "GET", there, NULL, TIDE_TEXT_NONE), 403);
    assert_int_equal(call(&world, "GET", "/root:/Shared", NULL), 200);
    /* Shared again, but only to be read. */
    assert_int_equal(control(&world, "shortcut",
                             "{" ALICE ",\"path\":\"Shared\",\"lost\":false,\"role\":\"read\"}"),
                     200);
    assert_int_equal(call_with(&world, "GET", there, NULL, TIDE_TEXT_NONE), 200);
    assert_int_equal(call_with(&world, "PUT", printed("%s:/new.txt:/content", there),
                               HEADERS("Content-Type", "text/plain"), TIDE_TEXT("of alice")),
                     403);
    assert_int_equal(
        control(&world, "shortcut", "{" ALICE ",\"path\":\"Shared\",\"role\":\"own\"}"), 400);
    assert_int_equal(control(&world, "shortcut", "{" ALICE ",\"path\":\"None\",\"lost\":true}"),
                     400);
    assert_int_equal(control(&world, "shortcut",
                             "{" ALICE ",\"path\":\"More\",\"to\":{\"user\":\"bob@example.com\","
                             "\"path\":\"nothing\"}}"),
                     400);
    assert_int_equal(control(&world, "shortcut",
                             "{" ALICE ",\"path\":\"Shared\",\"to\":{\"user\":\"bob@example.com\","
                             "\"path\":\"Plans\"}}"),
                     400);
}

/* ---- old states ---- */

TEST(delta_can_tell_an_old_state_before_the_true_one)
{
    WORLD(world, 0);
    put_file(&world, "a.txt", "old");
    call(&world, "GET", "/root/delta", NULL);
    const char *link = kept(text_at(&world, "@odata.deltaLink"));
    const char *etag = kept(text_at(&world, "value.1.eTag"));
    const char *hash = kept(text_at(&world, "value.1.file.hashes.quickXorHash"));
    put_file(&world, "a.txt", "newer");
    add_fault(world.cloud,
              "{\"method\":\"graph.drive.delta\",\"fault\":\"delta-old\",\"count\":1}");
    call_with(&world, "GET", link, NULL, TIDE_TEXT_NONE);
    assert_string_equal(text_at(&world, "value.1.eTag"), etag);
    assert_string_equal(text_at(&world, "value.1.file.hashes.quickXorHash"), hash);
    assert_int_equal(number_at(&world, "value.1.size"), 3);
    call_with(&world, "GET", kept(text_at(&world, "@odata.nextLink")), NULL, TIDE_TEXT_NONE);
    assert_int_equal(number_at(&world, "value.1.size"), 5);
    assert_string_not_equal(text_at(&world, "value.1.eTag"), etag);
    link = kept(text_at(&world, "@odata.deltaLink"));

    /* A name of before, and an item that is gone. */
    call(&world, "PATCH", "/root:/a.txt", "{\"name\":\"b.txt\"}");
    add_fault(world.cloud,
              "{\"method\":\"graph.drive.delta\",\"fault\":\"delta-old\",\"count\":1}");
    call_with(&world, "GET", link, NULL, TIDE_TEXT_NONE);
    assert_string_equal(text_at(&world, "value.1.name"), "a.txt");
    call(&world, "DELETE", "/root:/b.txt", NULL);
    add_fault(world.cloud,
              "{\"method\":\"graph.drive.delta\",\"fault\":\"delta-old\",\"count\":1}");
    call_with(&world, "GET", link, NULL, TIDE_TEXT_NONE);
    assert_string_equal(text_at(&world, "value.1.name"), "b.txt");
    assert_null(at(&world, "value.1.deleted"));
    call_with(&world, "GET", kept(text_at(&world, "@odata.nextLink")), NULL, TIDE_TEXT_NONE);
    assert_non_null(at(&world, "value.1.deleted"));
}

/* ---- batches as a whole ---- */

TEST(a_batch_can_fail_as_a_whole_and_lose_or_turn_its_answers)
{
    static const char body[] =
        "{\"requests\":[{\"id\":\"1\",\"method\":\"GET\",\"url\":\"/me/drive\"},"
        "{\"id\":\"2\",\"method\":\"POST\",\"url\":\"/me/drive/root/children\",\"headers\":"
        "{\"Content-Type\":\"application/json\"},\"body\":{\"name\":\"F\",\"folder\":{}}}]}";
    WORLD(world, 0);
    add_fault(world.cloud,
              "{\"method\":\"batch\",\"fault\":\"503\",\"retry_after\":7,\"count\":1}");
    assert_int_equal(call_with(&world, "POST", "/v1.0/$batch", NULL, tide_text_of(body)), 503);
    assert_string_equal(header_of(&world, "Retry-After"), "7");
    assert_string_not_equal(text_at(&world, "error.code"), "");
    assert_int_equal(call(&world, "GET", "/root:/F", NULL), 404); /* no part ran */
    add_fault(world.cloud, "{\"method\":\"batch\",\"fault\":\"batch-missing\",\"count\":1}");
    assert_int_equal(call_with(&world, "POST", "/v1.0/$batch", NULL, tide_text_of(body)), 200);
    assert_int_equal(json_array_size(at(&world, "responses")), 1);
    assert_int_equal(call(&world, "GET", "/root:/F", NULL), 200); /* it ran */
    add_fault(world.cloud, "{\"method\":\"batch\",\"fault\":\"batch-reorder\",\"count\":1}");
    call_with(&world, "POST", "/v1.0/$batch", NULL, tide_text_of(body));
    assert_string_equal(text_at(&world, "responses.0.id"), "2");
    add_fault(world.cloud, "{\"method\":\"batch\",\"fault\":\"batch-extra\",\"count\":1}");
    call_with(&world, "POST", "/v1.0/$batch", NULL, tide_text_of(body));
    assert_string_equal(text_at(&world, "responses.2.id"), "never-asked");
    add_fault(world.cloud, "{\"method\":\"batch\",\"fault\":\"truncate\",\"count\":1}");
    call_with(&world, "POST", "/v1.0/$batch", NULL, tide_text_of(body));
    assert_int_not_equal(world.answer.plan.fate, BOX_FATE_WHOLE);
    add_fault(world.cloud, "{\"method\":\"*\",\"fault\":\"503\"}"); /* the parts */
    assert_int_equal(call_with(&world, "POST", "/v1.0/$batch", NULL, tide_text_of(body)), 200);
    assert_int_equal(number_at(&world, "responses.0.status"), 503);
}

/* ---- the recycle bin ---- */

TEST(the_bin_says_how_well_a_client_knew_what_it_removed)
{
    WORLD(world, 0);
    put_file(&world, "F.txt", "x");
    make_folder(&world, "/root", "F");
    put_file(&world, "F/got.txt", "0123456789");
    put_file(&world, "F/seen.txt", "x");
    control(&world, "put", "{" ALICE ",\"path\":\"F/elsewhere.txt\",\"content\":\"y\"}");
    get_bytes(&world, "/root:/F/got.txt:");
    assert_int_equal(call(&world, "DELETE", "/root:/F", NULL), 204);
    call_with(&world, "GET", "/_cloud/drive/bin?user=alice@example.com", NULL, TIDE_TEXT_NONE);
    const char *bin = kept(tide_buf_cstr(&world.bytes));
    assert_non_null(strstr(bin, "folder 0 - shown F\n"));
    assert_non_null(strstr(bin, " fetched F/got.txt\n"));
    assert_non_null(strstr(bin, " shown F/seen.txt\n"));
    assert_non_null(strstr(bin, " unseen F/elsewhere.txt\n"));
    assert_null(strstr(bin, "F.txt\n"));
}

/* ---- state ---- */

static void keep(void *arg, tide_text line)
{
    box_add(arg, line.data, line.bytes);
    box_add(arg, "\n", 1);
}

TEST(marks_and_shortcuts_are_kept)
{
    tide_auto_buf lines = tide_buf_heap(1 << 20);
    const char *before = NULL;
    {
        WORLD(world, .keep = keep, .keep_arg = &lines);
        share(&world);
        put_file(&world, "bad.exe", "evil");
        control(&world, "mark", "{" ALICE ",\"path\":\"bad.exe\",\"as\":\"malware\"}");
        control(&world, "shortcut", "{" ALICE ",\"path\":\"Shared\",\"lost\":true}");
        call(&world, "GET", "/root/delta", NULL);
        before = kept(tide_buf_cstr(&world.bytes));
    }
    WORLD(again, .empty = true);
    for (const char *at = tide_buf_cstr(&lines); *at != '\0'; at = strchr(at, '\n') + 1)
        assert_ok(
            box_cloud_replay(again.cloud, (tide_text){at, (size_t)(strchr(at, '\n') - at)}, NULL));
    call(&again, "GET", "/root/delta", NULL);
    assert_string_equal(tide_buf_cstr(&again.bytes), before);
    assert_non_null(strstr(before, "\"malware\""));
    assert_non_null(strstr(before, "\"remoteItem\""));
}

/* ---- what a service should never say ---- */

TEST(hostile_names_are_the_same_wherever_an_item_is_shown)
{
    WORLD(world, .files = 300, .file_bytes = 1);
    call_with(&world, "POST", "/_cloud/faults", NULL,
              TIDE_TEXT("{\"method\":\"graph.*\",\"rate\":1,\"fault\":\"hostile-names\"}"));
    assert_int_equal(call(&world, "GET", "/root/delta?$top=1000", NULL), 200);
    const char *ids[300];
    const char *names[300];
    size_t count = 0, slashes = 0, longest = 0;
    json_t *item = NULL;
    size_t i = 0;
    json_array_foreach(at(&world, "value"), i, item)
    {
        if (json_object_get(item, "file") == NULL || count == 300)
            continue;
        ids[count] = kept(json_string_value(json_object_get(item, "id")));
        names[count] = kept(json_string_value(json_object_get(item, "name")));
        slashes += strchr(names[count], '/') != NULL;
        longest = strlen(names[count]) > longest ? strlen(names[count]) : longest;
        count++;
    }
    assert_int_equal(count, 300);
    assert_in_range(slashes, 30, 270);
    assert_int_equal(longest, 1500);
    for (i = 0; i < count; i += 7) {
        call(&world, "GET", printed("/items/%s", ids[i]), NULL);
        assert_string_equal(text_at(&world, "name"), names[i]);
    }
}

TEST(odd_times_are_none)
{
    WORLD(world, .files = 20, .file_bytes = 1);
    call_with(&world, "POST", "/_cloud/faults", NULL,
              TIDE_TEXT("{\"method\":\"graph.*\",\"rate\":1,\"fault\":\"odd-times\"}"));
    call(&world, "GET", "/root/delta", NULL);
    size_t i = 0, nulls = 0, far = 0;
    json_t *item = NULL;
    json_array_foreach(at(&world, "value"), i, item)
    {
        const json_t *times = json_object_get(item, "fileSystemInfo");
        const char *text = json_string_value(json_object_get(times, "lastModifiedDateTime"));
        nulls += json_is_null(times);
        far += text != NULL && strcmp(text, "9999-12-31T23:59:59Z") == 0;
    }
    assert_true(nulls > 0 && far > 0);
}
