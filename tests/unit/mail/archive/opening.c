/* Who may open an archive, what a reader sees, and how damage is reported. */
#include "archive_fixture.h"
#include "support/heap.h"

OPENED(a_reader_sees_what_is_committed_and_new_shards)
{
    put_text(f, "a", year_2019, "one");
    sync_all(f);
    tide_archive *writer = f->archive;
    f->options.read_only = true;
    open_archive(f);
    tide_archive *reader = f->archive;
    assert_raw(f, "a", TIDE_TEXT("one"));
    f->archive = writer;
    put_text(f, "b", year_2019 + 5, "two");
    put_text(f, "c", year_2020, "three");
    sync_all(f);
    f->archive = reader;
    assert_raw(f, "b", TIDE_TEXT("two"));
    assert_raw(f, "c", TIDE_TEXT("three"));
    assert_int_equal(tide_archive_shards(reader), 2);
    assert_int_equal(walk(f, INT64_MIN, INT64_MAX, 0), 3);
    struct tide_incoming incoming = mail("x", year_2019, TIDE_TEXT("x"));
    assert_int_equal(tide_archive_put(reader, &incoming, NULL, NULL, &f->err), TIDE_INVALID);
    assert_int_equal(tide_archive_sync(reader, 0, NULL, &f->err), TIDE_INVALID);
    close_archive(f);
    f->archive = writer;
    close_archive(f);
    /* A shard that was taken away is no longer counted. */
    const char *path = textf("%s/2019.db", f->dir);
    assert_int_equal(unlink(path), 0);
    open_archive(f);
    assert_int_equal(tide_archive_shards(f->archive), 1);
}

struct states {
    size_t count;
    struct tide_shard_state list[4];
};

static void state_seen(const struct tide_shard_state *shard, void *arg)
{
    struct states *states = arg;
    assert_true(states->count < sizeof states->list / sizeof states->list[0]);
    states->list[states->count++] = *shard;
}

static struct states states_of(struct fixture *f)
{
    struct states states = {.count = 0};
    OK(tide_archive_states(f->archive, state_seen, &states, &f->err));
    return states;
}

OPENED(the_states_of_all_shards_are_those_of_each)
{
    assert_int_equal(states_of(f).count, 0);
    put_text(f, "c", year_2020, "three");
    put_text(f, "a", year_2019, "one");
    sync_all(f);
    assert_int_equal(states_of(f).count, 2); /* found though they are new */
    put_text(f, "b", year_2019 + 5, "two");
    sync_all(f);
    const struct states states = states_of(f);
    assert_int_equal(states.count, 2);
    assert_string_equal(states.list[0].name, "2019");
    assert_int_equal(states.list[0].messages, 2);
    assert_string_equal(states.list[1].name, "2020");
    for (size_t i = 0; i < states.count; i++) {
        struct tide_shard_state one;
        OK(tide_archive_shard(f->archive, i, &one, &f->err));
        assert_string_equal(states.list[i].id, one.id);
        assert_int_equal(states.list[i].key, one.key);
        assert_int_equal(states.list[i].generation, one.generation);
        assert_int_equal(states.list[i].messages, one.messages);
        assert_int_equal(states.list[i].raw_bytes, one.raw_bytes);
        assert_int_equal(states.list[i].oldest_ms, one.oldest_ms);
        assert_int_equal(states.list[i].newest_ms, one.newest_ms);
    }
    close_archive(f);
    assert_int_equal(unlink(textf("%s/2019.db", f->dir)), 0);
    open_archive(f);
    const struct states left = states_of(f);
    assert_int_equal(left.count, 1);
    assert_string_equal(left.list[0].name, "2020");
}

OPENED(generations_grow_and_tell_an_older_copy)
{
    struct tide_shard_state before;
    struct tide_shard_state after;
    put_text(f, "a", year_2019, "one");
    sync_all(f);
    OK(tide_archive_shard(f->archive, 0, &before, &f->err));
    put_text(f, "b", year_2019 + 9, "two");
    sync_all(f);
    OK(tide_archive_shard(f->archive, 0, &after, &f->err));
    assert_string_equal(before.id, after.id);
    assert_true(after.generation > before.generation);
    assert_int_equal(after.messages, 2);
    assert_int_equal(after.raw_bytes, 6);
    assert_int_equal(after.newest_ms, year_2019 + 9);
    assert_int_equal(tide_archive_shard(f->archive, 1, &after, &f->err), TIDE_NOT_FOUND);
}

static uint64_t version(struct fixture *f)
{
    uint64_t number = 0;
    OK(tide_archive_version(f->archive, &number, &f->err));
    return number;
}

OPENED(what_is_stored_or_taken_away_is_another_version)
{
    char path[128];
    put_text(f, "a", year_2019, "one");
    sync_all(f);
    const uint64_t first = version(f);
    assert_int_equal(version(f), first);
    put_text(f, "b", year_2019 + 9, "two");
    sync_all(f);
    const uint64_t second = version(f);
    assert_int_not_equal(second, first);
    put_text(f, "c", year_2020, "three");
    sync_all(f);
    const uint64_t third = version(f);
    assert_int_not_equal(third, second);
    reopen_to_read(f);
    assert_int_equal(version(f), third); /* whoever asks */
    (void)snprintf(path, sizeof path, "%s/2019.db", f->dir);
    assert_int_equal(unlink(path), 0);
    assert_int_not_equal(version(f), third);
}

OPENED(a_second_writer_and_foreign_files_are_refused)
{
    tide_archive *other = NULL;
    put_text(f, "a", year_2019, "one");
    sync_all(f);
    assert_int_equal(tide_archive_open(&f->options, tide_mem_heap(), &other, &f->err), TIDE_BUSY);
    close_archive(f);
    struct tide_archive_options options = f->options;
    options.account = "you@example.com";
    assert_int_equal(tide_archive_open(&options, tide_mem_heap(), &other, &f->err), TIDE_INVALID);
    assert_non_null(strstr(f->err.text, "me@example.com"));
    options.read_only = true;
    assert_int_equal(tide_archive_open(&options, tide_mem_heap(), &other, &f->err), TIDE_INVALID);
    sqlite3 *handle = NULL;
    const char *path = textf("%s/2019.db", f->dir);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    assert_int_equal(tide_archive_open(&f->options, tide_mem_heap(), &other, &f->err), TIDE_NEWER);
    options = f->options;
    options.dir = "/nowhere/at/all";
    options.read_only = true;
    assert_int_equal(tide_archive_open(&options, tide_mem_heap(), &other, &f->err), TIDE_NOT_FOUND);
}

/* ---- damage ---------------------------------------------------------------------------------- */

OPENED(damage_is_reported_by_name)
{
    char path[200];
    sqlite3 *handle = NULL;
    put_text(f, "good", year_2019, "a message that stays well");
    put_text(f, "bad", year_2019 + 1, "a message that will be changed behind our back");
    put_text(f, "worse", year_2019 + 2, "a message whose bytes vanish");
    sync_all(f);
    close_archive(f);
    (void)snprintf(path, sizeof path, "%s/2019.db", f->dir);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(handle,
                     "UPDATE content SET body = CAST('a message that will be changed BEHIND our"
                     " back' AS BLOB), codec = 0 WHERE id ="
                     " (SELECT content FROM message WHERE gmail_id = 'bad');"
                     "UPDATE message SET content = 99 WHERE gmail_id = 'worse';"
                     "UPDATE shard SET messages = 4",
                     NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    open_archive(f);
    struct tide_stored stored;
    tide_buf raw = heap_buf(1000);
    OK(tide_archive_find(f->archive, TIDE_TEXT("bad"), &stored, &f->err));
    assert_int_equal(tide_archive_raw(f->archive, &stored, &raw, &f->err), TIDE_CORRUPT);
    assert_non_null(strstr(f->err.text, "bad"));
    assert_non_null(strstr(f->err.text, "2019"));
    assert_int_equal(raw.bytes, 0);
    tide_buf_done(&raw);
    uint64_t checked = 0;
    damages = 0;
    OK(tide_archive_verify(f->archive, 0, count_damage, NULL, &checked, &f->err));
    assert_int_equal(damages, 3); /* both messages, and the count */
    assert_int_equal(checked, 1);
    assert_raw(f, "good", TIDE_TEXT("a message that stays well"));
    OK(tide_archive_verify(f->archive, 2, count_damage, NULL, &checked, &f->err));
}
