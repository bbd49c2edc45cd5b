/* Words are found once they are indexed, whenever and by whomever that is done. */
#include "archive_fixture.h"
#include "support/heap.h"

CASE(what_is_indexed_is_found_by_its_words)
{
    uint64_t done = 0;
    f->options.indexer = &simple_indexer;
    open_archive(f);
    put_text(f, "a", year_2019 + 7, letter);
    put_text(f, "b", year_2019 + 8, "Subject: nothing\n\nDanube\n");
    put_text(f, "c", year_2020, "unreadable");
    put_text(f, "d", year_2020, "partly\nSubject: half\n\n");
    sync_all(f);
    parsed_count = 0;
    OK(tide_archive_index(f->archive, 1, &done, &f->err));
    assert_int_equal(done, 1);
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    assert_int_equal(done, 3);
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    assert_int_equal(done, 0);
    assert_int_equal(parsed_count, 4);
    struct tide_stored stored;
    OK(tide_archive_find(f->archive, TIDE_TEXT("a"), &stored, &f->err));
    assert_true(stored.indexed);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM words WHERE words MATCH 'danube'"), 2);
    assert_int_equal(ask(f, "2019",
                         "SELECT m.internal_ms FROM words JOIN message m ON m.id = words.rowid"
                         " WHERE words MATCH 'text:\"flows through ten\" AND from:anna AND"
                         " to:carla AND files:map AND subject:rivers'"),
                     year_2019 + 7);
    assert_int_equal(ask(f, "2019",
                         "SELECT count(*) FROM words WHERE words MATCH"
                         " '\"through flows\"'"),
                     0);
    assert_int_equal(ask(f, "2019", "SELECT files FROM head WHERE message_id = 'm1@x'"), 1);
    /* Without an id it gets one from its bytes (M8). */
    assert_int_equal(ask(f, "2019",
                         "SELECT count(*) FROM head h JOIN message m ON m.id = h.id"
                         " JOIN content c ON c.id = m.content WHERE h.message_id ="
                         " 'sha256:' || lower(hex(c.hash))"),
                     1);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM mail WHERE subject LIKE 'Rivers%'"), 1);
    assert_int_equal(ask(f, "2020", "SELECT count(*) FROM message WHERE mark = 3"), 1);
    OK(tide_archive_find(f->archive, TIDE_TEXT("c"), &stored, &f->err));
    assert_false(stored.indexed);
    assert_raw(f, "c", TIDE_TEXT("unreadable"));
    assert_sound(f, 4);
}

static void note_problem(const struct tide_stored *stored, const char *problem, void *arg)
{
    tide_buf *notes = arg;
    OK(tide_buf_print(notes, "%s: %s\n", stored->gmail_id, problem));
}

CASE(what_could_not_be_read_is_named_and_tried_again_on_request)
{
    uint64_t done = 0;
    tide_buf notes = heap_buf(1000);
    f->options.indexer = &simple_indexer;
    open_archive(f);
    put_text(f, "a", year_2019, "unreadable 1");
    put_text(f, "b", year_2019 + 1, "partly\n\n");
    put_text(f, "c", year_2019 + 2, "unreadable 2");
    put_text(f, "d", year_2019 + 3, "whole\n\n");
    put_text(f, "e", year_2020, "unreadable 3");
    sync_all(f);
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    OK(tide_archive_unreadable(f->archive, note_problem, &notes, &f->err));
    assert_string_equal(tide_buf_cstr(&notes),
                        "e: it says so itself\na: it says so itself\nb: too many parts\n"
                        "c: it says so itself\n");
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    assert_int_equal(done, 0);
    OK(tide_archive_index_again(f->archive, NULL, &f->err));
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    assert_int_equal(done, 3);
    tide_buf_done(&notes);
}

/* The thread inside does it by itself. */
CASE(new_mail_is_indexed_without_being_asked)
{
    f->options.index_later = false;
    f->options.indexer = &simple_indexer;
    open_archive(f);
    for (int i = 0; i < 500; i++) {
        const char *id = textf("id%d", i);
        put_text(f, id, year_2019 + i * 1000, letter);
    }
    sync_all(f);
    /* Whatever it has left when we ask, the rest is done when we are answered. */
    uint64_t done = 0;
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM message WHERE mark = 2"), 500);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM words WHERE words MATCH 'danube'"), 500);
    reopen(f);
}

/* Until the thread has nothing left to index. */
static void index_all_soon(struct fixture *f)
{
    const uint64_t until_ms = tide_world_now_ms(f->options.world) + 60000;
    bool left = true;
    while (left && tide_world_now_ms(f->options.world) < until_ms)
        OK(tide_archive_index_soon(f->archive, &left, &f->err));
    assert_false(left);
}

CASE(mail_is_indexed_at_once_when_someone_asks)
{
    bool left = true;
    f->options.index_later = false;
    f->options.indexer = &simple_indexer;
    open_archive(f);
    index_all_soon(f);
    put_text(f, "a", year_2019, letter);
    sync_all(f);
    OK(tide_archive_index_soon(f->archive, &left, &f->err));
    assert_true(left || ask(f, "2019", "SELECT count(*) FROM message WHERE mark = 2") == 1);
    index_all_soon(f);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM message WHERE mark = 2"), 1);
}

/* What came shortly before is found by the next one who searches. */
CASE(closing_indexes_what_came)
{
    f->options.index_later = false;
    f->options.indexer = &simple_indexer;
    for (int i = 0; i < 3; i++) {
        char id[16];
        open_archive(f);
        for (int j = 0; j < 50; j++) {
            (void)snprintf(id, sizeof id, "id%d-%d", i, j);
            put_text(f, id, year_2019 + i * 1000, letter);
        }
        sync_all(f);
        close_archive(f);
        assert_int_equal(ask(f, "2019", "SELECT count(*) FROM message WHERE mark = 2"),
                         50 * (i + 1));
    }
}

/* Its bytes come from memory or from its shard: more than memory keeps, larger than
 * what it keeps, and two shards with the same numbers. */
CASE(every_message_is_indexed_with_its_own_words)
{
    enum { COUNT = 2500, PADDING = 8000 };
    static char raw[2 << 20];
    f->options.index_later = false;
    f->options.indexer = &simple_indexer;
    open_archive(f);
    for (int i = 0; i < COUNT; i++) {
        const char *id = textf("id%d", i);
        int bytes = snprintf(raw, sizeof raw, "Subject: own%d\n\ndanube text%d ", i, i);
        const int end = bytes + (i % 500 == 7 ? 1500000 : PADDING);
        memset(raw + bytes, '.', (size_t)(end - bytes));
        raw[end] = '\0';
        put_text(f, id, (i % 2 == 0 ? year_2019 : year_2020) + i * 1000, raw);
    }
    sync_all(f);
    uint64_t done = 0;
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    close_archive(f);
    for (int year = 2019; year <= 2020; year++) {
        char name[8];
        (void)snprintf(name, sizeof name, "%d", year);
        assert_int_equal(ask(f, name, "SELECT count(*) FROM words WHERE words MATCH 'danube'"),
                         COUNT / 2);
        assert_int_equal(ask(f, name, "SELECT count(*) FROM message WHERE mark = 2"), COUNT / 2);
        for (int i = year - 2019; i < COUNT; i += 2) {
            char sql[200];
            (void)snprintf(sql, sizeof sql,
                           "SELECT count(*) FROM words JOIN message ON message.id = words.rowid"
                           " WHERE words MATCH 'subject:own%d text:text%d' AND gmail_id = 'id%d'",
                           i, i, i);
            if (i % 97 < 2 || i % 500 == 7)
                assert_int_equal(ask(f, name, sql), 1);
        }
    }
}
