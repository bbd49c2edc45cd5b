/* What is put is there, once, in its shard, whatever was put. */
#include "archive_fixture.h"
#include "support/heap.h"

OPENED(a_stored_message_is_read_back_byte_for_byte)
{
    const tide_text raw = TIDE_TEXT("Subject: hello\r\n\r\nbody \0 with everything \xff\r\n");
    struct tide_incoming incoming = mail("17f0", year_2019 + 12345, raw);
    uint64_t ticket = 0;
    OK(tide_archive_put(f->archive, &incoming, NULL, &ticket, &f->err));
    assert_int_equal(ticket, 1);
    OK(tide_archive_sync(f->archive, ticket, NULL, &f->err));
    assert_raw(f, "17f0", raw);
    struct tide_stored stored;
    OK(tide_archive_find(f->archive, TIDE_TEXT("17f0"), &stored, &f->err));
    assert_string_equal(stored.gmail_id, "17f0");
    assert_string_equal(stored.thread_id, "t1");
    assert_string_equal(stored.history_id, "100");
    assert_int_equal(stored.internal_ms, year_2019 + 12345);
    assert_int_equal(stored.rowid, 12345 / TIDE_SHARD_UNIT_MS);
    assert_false(stored.indexed);
    assert_false(stored.gone);
    assert_int_equal(tide_archive_find(f->archive, TIDE_TEXT("17f1"), &stored, &f->err),
                     TIDE_NOT_FOUND);
    reopen_to_read(f);
    assert_raw(f, "17f0", raw);
    assert_sound(f, 1);
    close_archive(f);
    assert_int_equal(ask(f, "2019", "PRAGMA application_id"), 0x74696465);
    assert_int_equal(ask(f, "2019", "PRAGMA user_version"), 2);
    assert_int_equal(ask(f, "2019", "SELECT messages FROM shard"), 1);
}

OPENED(years_go_into_their_own_shards)
{
    put_text(f, "a", year_2020 - 1, "last of 2019");
    put_text(f, "b", year_2020, "first of 2020");
    put_text(f, "c", -1, "last of 1969");
    put_text(f, "d", 951782400000, "29 February 2000");
    sync_all(f);
    assert_int_equal(tide_archive_shards(f->archive), 4);
    static const char *const names[] = {"1969", "2000", "2019", "2020"};
    for (size_t i = 0; i < 4; i++) {
        struct tide_shard_state shard;
        OK(tide_archive_shard(f->archive, i, &shard, &f->err));
        assert_string_equal(shard.name, names[i]);
        assert_int_equal(shard.messages, 1);
        assert_int_equal(strlen(shard.id), 32);
        assert_int_equal(shard.oldest_ms, shard.newest_ms);
    }
    assert_raw(f, "c", TIDE_TEXT("last of 1969"));
    assert_sound(f, 4);
    for (int32_t year = 1; year < 9999; year++) {
        int64_t start_ms = tide_shard_year_ms(year);
        assert_int_equal(tide_shard_year(start_ms), year);
        assert_int_equal(tide_shard_year(start_ms - 1), year - 1);
    }
}

OPENED(what_cannot_be_stored_is_refused)
{
    char long_id[100];
    memset(long_id, 'x', sizeof long_id);
    long_id[sizeof long_id - 1] = '\0';
    struct tide_incoming incoming = mail("", year_2019, TIDE_TEXT("x"));
    assert_int_equal(tide_archive_put(f->archive, &incoming, NULL, NULL, &f->err), TIDE_INVALID);
    incoming = mail(long_id, year_2019, TIDE_TEXT("x"));
    assert_int_equal(tide_archive_put(f->archive, &incoming, NULL, NULL, &f->err), TIDE_INVALID);
    incoming = mail("a", INT64_MAX, TIDE_TEXT("x"));
    assert_int_equal(tide_archive_put(f->archive, &incoming, NULL, NULL, &f->err), TIDE_INVALID);
    incoming = mail("a", INT64_MIN, TIDE_TEXT("x"));
    assert_int_equal(tide_archive_put(f->archive, &incoming, NULL, NULL, &f->err), TIDE_INVALID);
    incoming = mail("a", year_2019, TIDE_TEXT(""));
    put(f, &incoming); /* an empty message is a message */
    sync_all(f);
    assert_raw(f, "a", TIDE_TEXT(""));
}

OPENED(putting_twice_is_harmless)
{
    put_text(f, "a", year_2019, "one");
    put_text(f, "a", year_2019, "one");
    sync_all(f);
    put_text(f, "a", year_2019, "one");
    /* A server that changes its mind about the date changes nothing here (ARC3). */
    put_text(f, "a", year_2020, "one");
    put_text(f, "a", year_2019 + 1, "one");
    sync_all(f);
    assert_int_equal(tide_archive_shards(f->archive), 1);
    assert_sound(f, 1);
    reopen(f); /* and so it is for the next process */
    put_text(f, "a", year_2020, "one");
    put_text(f, "b", year_2020, "two");
    put_text(f, "b", year_2019, "two");
    sync_all(f);
    assert_sound(f, 2);
    close_archive(f);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM message"), 1);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM content"), 1);
    assert_int_equal(ask(f, "2020", "SELECT count(*) FROM message"), 1);
}

/* Ids in no order at all, so that every shard may have each of them. */
OPENED(an_id_is_stored_once_over_all_shards)
{
    enum { IDS = 200 };
    int64_t first_ms[IDS] = {0};
    tide_rng rng = tide_rng_seeded(11);
    uint64_t distinct = 0;
    for (uint64_t i = 0; i < scaled(3000); i++) {
        size_t which = (size_t)tide_rng_below(&rng, IDS);
        int64_t ms = year_2019 + (int64_t)tide_rng_below(&rng, 8) * 31557600000;
        char raw[32];
        const char *id = textf("%zx", which * 0x9e3779b9u % 0xfffff);
        (void)snprintf(raw, sizeof raw, "message %zu", which);
        put_text(f, id, ms, raw);
        if (first_ms[which] == 0) {
            first_ms[which] = ms;
            distinct++;
        }
    }
    sync_all(f);
    for (size_t which = 0; which < IDS; which++) {
        struct tide_stored stored;
        const char *id = textf("%zx", which * 0x9e3779b9u % 0xfffff);
        if (first_ms[which] == 0)
            continue;
        OK(tide_archive_find(f->archive, tide_text_of(id), &stored, &f->err));
        assert_int_equal(stored.internal_ms, first_ms[which]);
    }
    assert_sound(f, distinct);
}

OPENED(other_bytes_replace_and_the_earlier_ones_stay)
{
    put_text(f, "a", year_2019, "cut off");
    sync_all(f);
    put_text(f, "a", year_2019, "cut off no longer");
    sync_all(f);
    assert_raw(f, "a", TIDE_TEXT("cut off no longer"));
    assert_sound(f, 2); /* both are checked */
    close_archive(f);
    assert_int_equal(ask(f, "2019",
                         "SELECT count(*) FROM earlier e JOIN content c"
                         " ON c.id = e.content AND c.bytes = 7"),
                     1);
    assert_int_equal(ask(f, "2019", "SELECT raw_bytes FROM shard"), 17);
}

OPENED(equal_bytes_are_stored_once)
{
    for (int i = 0; i < 50; i++) {
        const char *id = textf("id%d", i);
        put_text(f, id, year_2019 + i, "the same newsletter");
    }
    sync_all(f);
    assert_sound(f, 50);
    close_archive(f);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM message"), 50);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM content"), 1);
}

OPENED(an_attachment_is_stored_once_for_all_messages)
{
    static uint8_t bytes[100000];
    tide_rng rng = tide_rng_seeded(3);
    random_bytes(&rng, bytes, sizeof bytes);
    tide_buf raw[20];
    for (size_t i = 0; i < 20; i++) {
        const char *id = textf("id%zu", i);
        tide_buf_init(&raw[i], tide_mem_heap(), 1 << 20);
        OK(tide_buf_print(&raw[i], "Subject: %zu\r\n\r\n", i));
        /* The same file, sent by different mailers. */
        add_base64(&raw[i], bytes, sizeof bytes, i % 2 == 0 ? 76 : 72, i % 3 == 0 ? "\n" : "\r\n");
        OK(tide_buf_add_text(&raw[i], "\r\n--end--\r\n"));
        struct tide_incoming incoming = mail(id, year_2019, tide_buf_text(&raw[i]));
        put(f, &incoming);
    }
    sync_all(f);
    for (size_t i = 0; i < 20; i++) {
        const char *id = textf("id%zu", i);
        assert_raw(f, id, tide_buf_text(&raw[i]));
        tide_buf_done(&raw[i]);
    }
    assert_sound(f, 20);
    OK(tide_archive_checkpoint(f->archive, NULL, &f->err));
    struct tide_shard_state shard;
    OK(tide_archive_shard(f->archive, 0, &shard, &f->err));
    assert_true(shard.bytes < 8 * sizeof bytes);
    assert_true(shard.raw_bytes > 20 * sizeof bytes);
    close_archive(f);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM piece"), 1);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM cut"), 20);
}

OPENED(a_buffer_may_be_handed_over)
{
    tide_buf raw = heap_buf(1 << 20);
    OK(tide_buf_add_text(&raw, "Subject: mine\n\n"));
    struct tide_incoming incoming = mail("a", year_2019, TIDE_TEXT_NONE);
    incoming.take = &raw;
    put(f, &incoming);
    assert_int_equal(raw.bytes, 0);
    OK(tide_buf_add_text(&raw, "something else"));
    sync_all(f);
    assert_raw(f, "a", TIDE_TEXT("Subject: mine\n\n"));
    tide_buf_done(&raw);
}
