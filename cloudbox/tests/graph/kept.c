/* A drive from what a state file keeps: the same tree, the same ids, the same delta links. */
#include "graph_fixture.h"

static void keep(void *arg, tide_text line)
{
    box_add(arg, line.data, line.bytes);
    box_add(arg, "\n", 1);
}

static void replay(box_cloud *cloud, const char *lines)
{
    while (*lines != '\0') {
        const char *end = strchr(lines, '\n');
        tide_error err = {0};
        if (box_cloud_replay(cloud, (tide_text){lines, (size_t)(end - lines)}, &err) != TIDE_OK)
            fail_msg("replay of %.*s: %s", (int)(end - lines), lines, err.text);
        lines = end + 1;
    }
}

static const char *tree(struct world *world)
{
    call_with(world, "GET", "/_cloud/drive?user=alice@example.com", NULL, TIDE_TEXT_NONE);
    return kept(tide_buf_cstr(&world->bytes));
}

TEST(a_drive_is_the_same_after_a_restart)
{
    tide_auto_buf lines = tide_buf_heap(64 << 20);
    const char *before = NULL, *link = NULL, *after = NULL;
    {
        WORLD(world, .keep = keep, .keep_arg = &lines);
        call_with(&world, "POST", "/_cloud/drive/fill", NULL,
                  TIDE_TEXT("{\"user\":\"alice@example.com\",\"files\":70}"));
        make_folder(&world, "/root", "F");
        put_file(&world, "F/a #1.txt", "hello");
        call(&world, "GET", "/root/delta?token=latest", NULL);
        link = kept(text_at(&world, "@odata.deltaLink"));
        put_file(&world, "F/b.txt", "gone soon");
        call(&world, "PATCH", "/root:/F/b.txt",
             "{\"name\":\"c.txt\",\"fileSystemInfo\":{\"lastModifiedDateTime\":"
             "\"2002-03-04T05:06:07Z\"}}");
        call(&world, "DELETE", "/root:/folder-0000001", NULL);
        call(&world, "POST", "/root:/F:/copy", "{\"name\":\"G\"}");
        call_with(&world, "GET", link, NULL, TIDE_TEXT_NONE);
        after = kept(tide_buf_cstr(&world.bytes));
        before = tree(&world);
    }
    WORLD(again, .empty = true);
    replay(again.cloud, tide_buf_cstr(&lines));
    assert_string_equal(tree(&again), before);
    call_with(&again, "GET", link, NULL, TIDE_TEXT_NONE);
    assert_string_equal(tide_buf_cstr(&again.bytes), after);
    assert_string_equal(get_bytes(&again, "/root:/G/a %231.txt:"), "hello");
}
