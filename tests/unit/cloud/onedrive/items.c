/* Items as Graph writes them, and as it must not (ODR1). */
#include "onedrive_fixture.h"

static tide_status read_text(const char *text, struct tide_onedrive_item *item, json_t **value_out,
                             tide_error *err)
{
    assert_int_equal(tide_json_parse(tide_text_of(text), value_out, NULL), TIDE_OK);
    return tide_onedrive_item_read(*value_out, item, err);
}

#define SAME(text, expected) assert_true(tide_text_equal(text, TIDE_TEXT(expected)))

TEST(a_file_is_read_with_everything_that_decides)
{
    struct tide_onedrive_item item;
    tide_error err = {0};
    json_t *value = NULL;
    OK(read_text("{\"id\":\"01ABC!7\",\"name\":\"a b.txt\",\"size\":11,\"eTag\":\"\\\"{E},1\\\"\","
                 "\"cTag\":\"\\\"c:{E},1\\\"\",\"lastModifiedDateTime\":\"2026-05-05T00:00:00Z\","
                 "\"file\":{\"mimeType\":\"text/plain\",\"hashes\":{\"quickXorHash\":"
                 "\"aCgDG9jwBhDc4Q1yawMZAAAAAAA=\",\"sha1Hash\":"
                 "\"2AAE6C35C94FCFB415DBE95F408B9CE91EE846ED\"}},\"parentReference\":{\"driveId\":"
                 "\"b!d\",\"id\":\"01ROOT\",\"path\":\"/drive/root:\"},\"fileSystemInfo\":{"
                 "\"createdDateTime\":\"2026-05-04T03:02:00Z\",\"lastModifiedDateTime\":"
                 "\"2026-05-04T03:02:01.9999999Z\"},\"@microsoft.graph.downloadUrl\":"
                 "\"https://x.example/y\",\"unknown\":{\"deleted\":{}}}",
                 &item, &value, &err));
    SAME(item.id, "01ABC!7");
    SAME(item.name, "a b.txt");
    SAME(item.etag, "\"{E},1\"");
    SAME(item.ctag, "\"c:{E},1\"");
    SAME(item.drive_id, "b!d");
    SAME(item.parent_id, "01ROOT");
    SAME(item.download_url, "https://x.example/y");
    assert_int_equal(item.kind, TIDE_ONEDRIVE_FILE);
    assert_true(item.has_size && item.size == 11);
    assert_true(item.has_hash && item.has_sha1);
    static const unsigned char hash[] = {0x68, 0x28, 0x03, 0x1b};
    static const unsigned char sha1[] = {0x2a, 0xae, 0x6c, 0x35};
    assert_memory_equal(item.hash, hash, sizeof hash);
    assert_memory_equal(item.sha1, sha1, sizeof sha1);
    assert_int_equal(item.modified_unix_ms, UINT64_C(1777863721000)); /* whole seconds (D43) */
    assert_int_equal(item.created_unix_ms, UINT64_C(1777863720000));
    assert_int_equal(item.changed_unix_ms, UINT64_C(1777939200000));
    assert_false(item.deleted || item.root || item.remote || item.malware || item.pending ||
                 item.name_unsafe);
    json_decref(value);
}

struct facet {
    const char *fields;
    tide_onedrive_kind kind;
    const char *
        flags; /* d(eleted) r(oot) R(emote) F(older there) m(alware) p(ending) u(nsafe) h(ash) s(ize) */
};

static const struct facet facets[] = {
    {"\"folder\":{\"childCount\":3},\"size\":7", TIDE_ONEDRIVE_FOLDER, "s"},
    {"\"folder\":{},\"root\":{}", TIDE_ONEDRIVE_FOLDER, "r"},
    {"\"file\":{}", TIDE_ONEDRIVE_FILE, ""},
    {"\"file\":{\"hashes\":null},\"size\":0", TIDE_ONEDRIVE_FILE, "s"},
    {"\"file\":null,\"folder\":{}", TIDE_ONEDRIVE_FOLDER, ""},
    {"\"package\":{\"type\":\"oneNote\"}", TIDE_ONEDRIVE_OTHER, ""},
    {"\"package\":{\"type\":\"oneNote\"},\"folder\":{}", TIDE_ONEDRIVE_OTHER, ""},
    {"\"bundle\":{},\"folder\":{}", TIDE_ONEDRIVE_OTHER, ""},
    {"\"file\":{},\"folder\":{}", TIDE_ONEDRIVE_OTHER, ""},
    {"\"x\":1", TIDE_ONEDRIVE_OTHER, ""},
    {"\"deleted\":{\"state\":\"deleted\"}", TIDE_ONEDRIVE_OTHER, "d"},
    {"\"deleted\":null,\"file\":{}", TIDE_ONEDRIVE_FILE, ""},
    /* Hashes of deleted items are false. */
    {"\"deleted\":{},\"file\":{\"hashes\":{\"quickXorHash\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}}",
     TIDE_ONEDRIVE_FILE, "d"},
    {"\"file\":{\"hashes\":{\"quickXorHash\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}}",
     TIDE_ONEDRIVE_FILE, "h"},
    {"\"file\":{\"hashes\":{\"quickXorHash\":\"AAAA\"}}", TIDE_ONEDRIVE_FILE, ""},
    {"\"file\":{\"hashes\":{\"quickXorHash\":\"!\",\"sha1Hash\":\"zz\"}}", TIDE_ONEDRIVE_FILE, ""},
    {"\"remoteItem\":{\"id\":\"R\",\"folder\":{},\"parentReference\":{\"driveId\":\"D\"}}",
     TIDE_ONEDRIVE_OTHER, "RF"},
    {"\"remoteItem\":{\"id\":\"R\",\"file\":{}}", TIDE_ONEDRIVE_OTHER, "R"},
    {"\"file\":{},\"malware\":{\"description\":\"x\"}", TIDE_ONEDRIVE_FILE, "m"},
    {"\"file\":{},\"pendingOperations\":{\"pendingContentUpdate\":{}}", TIDE_ONEDRIVE_FILE, "p"},
    {"\"file\":{},\"name\":\"..\"", TIDE_ONEDRIVE_FILE, "u"},
    {"\"file\":{},\"name\":\".\"", TIDE_ONEDRIVE_FILE, "u"},
    {"\"file\":{},\"name\":\"a/../b\"", TIDE_ONEDRIVE_FILE, "u"},
    {"\"file\":{},\"name\":\"...\"", TIDE_ONEDRIVE_FILE, ""},
};

TEST(facets_decide_the_kind)
{
    for (size_t i = 0; i < sizeof facets / sizeof facets[0]; i++) {
        struct tide_onedrive_item item;
        tide_error err = {0};
        json_t *value = NULL;
        char flags[16];
        OK(read_text(textf("{\"id\":\"1\",%s}", facets[i].fields), &item, &value, &err));
        (void)snprintf(flags, sizeof flags, "%s%s%s%s%s%s%s%s%s", item.deleted ? "d" : "",
                       item.root ? "r" : "", item.remote ? "R" : "", item.remote_folder ? "F" : "",
                       item.malware ? "m" : "", item.pending ? "p" : "",
                       item.name_unsafe ? "u" : "", item.has_hash ? "h" : "",
                       item.has_size ? "s" : "");
        if (item.kind != facets[i].kind || strcmp(flags, facets[i].flags) != 0)
            fail_msg("%s: kind %d, %s", facets[i].fields, (int)item.kind, flags);
        if (item.remote_folder) {
            SAME(item.remote_id, "R");
            SAME(item.remote_drive_id, "D");
        }
        json_decref(value);
    }
}

TEST(times_that_cannot_be_meant_are_unknown)
{
    static const char *const times[] = {"null",
                                        "\"\"",
                                        "\"0001-01-01T00:00:00Z\"",
                                        "\"yesterday\"",
                                        "\"2026-05-04T03:02:01\"",
                                        "\"2026-05-04T03:02:01+02:00\"",
                                        "\"2026-13-04T03:02:01Z\""};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        struct tide_onedrive_item item;
        tide_error err = {0};
        json_t *value = NULL;
        OK(read_text(
            textf("{\"id\":\"1\",\"fileSystemInfo\":{\"lastModifiedDateTime\":%s}}", times[i]),
            &item, &value, &err));
        assert_int_equal(item.modified_unix_ms, 0);
        json_decref(value);
    }
}

TEST(a_field_of_another_type_or_without_end_is_the_servers_fault)
{
    static const char *const bad[] = {
        "{}",
        "{\"id\":\"\"}",
        "{\"id\":7}",
        "{\"id\":null}",
        "{\"id\":\"1\",\"name\":7}",
        "{\"id\":\"1\",\"size\":-1}",
        "{\"id\":\"1\",\"size\":\"11\"}",
        "{\"id\":\"1\",\"size\":1.5}",
        "{\"id\":\"1\",\"deleted\":true}",
        "{\"id\":\"1\",\"file\":[]}",
        "{\"id\":\"1\",\"folder\":1}",
        "{\"id\":\"1\",\"package\":\"x\"}",
        "{\"id\":\"1\",\"remoteItem\":\"x\"}",
        "{\"id\":\"1\",\"remoteItem\":{\"id\":7}}",
        "{\"id\":\"1\",\"remoteItem\":{\"parentReference\":7}}",
        "{\"id\":\"1\",\"parentReference\":[]}",
        "{\"id\":\"1\",\"parentReference\":{\"id\":7}}",
        "{\"id\":\"1\",\"file\":{\"hashes\":7}}",
        "{\"id\":\"1\",\"file\":{\"hashes\":{\"quickXorHash\":7}}}",
        "{\"id\":\"1\",\"fileSystemInfo\":\"x\"}",
        "{\"id\":\"1\",\"fileSystemInfo\":{\"lastModifiedDateTime\":7}}",
        "{\"id\":\"1\",\"eTag\":{}}",
        "{\"id\":\"1\",\"malware\":false}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tide_onedrive_item item;
        tide_error err = {0};
        json_t *value = NULL;
        if (read_text(bad[i], &item, &value, &err) != TIDE_SERVER)
            fail_msg("%s", bad[i]);
        assert_int_equal(err.status, TIDE_SERVER);
        json_decref(value);
    }
    static const struct {
        const char *key;
        int bytes_max;
    } bounds[] = {{"id", TIDE_ONEDRIVE_ID_BYTES_MAX},
                  {"eTag", TIDE_ONEDRIVE_TAG_BYTES_MAX},
                  {"cTag", TIDE_ONEDRIVE_TAG_BYTES_MAX},
                  {"@microsoft.graph.downloadUrl", TIDE_ONEDRIVE_LINK_BYTES_MAX}};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        for (int over = 0; over < 2; over++) {
            struct tide_onedrive_item item;
            json_t *value = json_object();
            char *text = malloc((size_t)bounds[i].bytes_max + 2);
            assert_non_null(text);
            memset(text, 'x', (size_t)(bounds[i].bytes_max + over));
            text[bounds[i].bytes_max + over] = '\0';
            assert_int_equal(json_object_set_new(value, "id", json_string("1")), 0);
            assert_int_equal(json_object_set_new(value, bounds[i].key, json_string(text)), 0);
            assert_int_equal(tide_onedrive_item_read(value, &item, NULL),
                             over == 0 ? TIDE_OK : TIDE_SERVER);
            free(text);
            json_decref(value);
        }
    }
}

/* One such item must not make a page of others unreadable (I13). */
TEST(a_name_that_is_too_long_is_cut_and_unsafe)
{
    static const char *const letters[] = {"x", "\xe2\x82\xac"};
    for (size_t i = 0; i < 2; i++) {
        const size_t letter = strlen(letters[i]);
        char text[3 * TIDE_ONEDRIVE_NAME_BYTES_MAX] = "";
        for (size_t at = 0; at + letter < sizeof text; at += letter)
            memcpy(text + at, letters[i], letter + 1);
        struct tide_onedrive_item item;
        json_t *value = json_pack("{s:s,s:s}", "id", "1", "name", text);
        assert_int_equal(tide_onedrive_item_read(value, &item, NULL), TIDE_OK);
        assert_true(item.name_unsafe);
        assert_true(item.name.bytes > 1000 && item.name.bytes <= TIDE_ONEDRIVE_NAME_BYTES_MAX);
        assert_int_equal(item.name.bytes % letter, 0);
        json_decref(value);
    }
}
