/* A message arrives byte for byte, both ways, for the memory of one copy. */
#include "gmail_client_fixture.h"
#include "support/heap.h"

CASE(a_message_arrives_as_it_is_stored, 40)
{
    look(f, 40);
    const uint64_t before = units(f);
    char ids[40][64];
    for (size_t i = 0; i < 40; i++)
        (void)snprintf(ids[i], sizeof ids[i], "%.*s", (int)f->ids[i].bytes, f->ids[i].data);
    for (size_t i = 0; i < 40; i++) {
        memcpy(f->id, ids[i], sizeof f->id);
        run_ok(f, play_get);
        assert_true(tide_text_equal(f->message.id, tide_text_of(f->id)));
        assert_stored(f, f->message.id, tide_buf_text(&f->message.raw));
        const uint32_t slot = box_mailbox_find(mailbox_of(f), f->message.id);
        const struct box_message *stored = box_mailbox_at(mailbox_of(f), slot);
        assert_int_equal(f->message.internal_ms, stored->date_ms);
        assert_true(f->message.thread_id.bytes > 0 && f->message.history_id.bytes > 0);
        for (size_t k = 0; k < json_array_size(f->message.labels); k++)
            assert_true(has_label(f, f->message.id,
                                  json_string_value(json_array_get(f->message.labels, k))));
        assert_null(json_object_get(f->message.fields, "raw"));
        assert_null(json_object_get(f->message.fields, "snippet")); /* not asked for */

        run_ok(f, play_minimal);
        assert_int_equal(f->message.raw.bytes, 0);
        assert_int_equal(f->message.internal_ms, stored->date_ms);
    }
    assert_int_equal(units(f) - before, 40 * 40);
    assert_string_equal(f->encoding, "identity");
    (void)snprintf(f->id, sizeof f->id, "ffffffffffffff");
    assert_int_equal(run(f, play_get), TIDE_GONE);
    assert_int_equal(f->err.code, 404);
    assert_null(f->message.fields);
    assert_int_equal(run(f, play_minimal), TIDE_GONE);
}

CASE(every_byte_value_survives_both_ways, 0)
{
    char bytes[256 * 3];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i / 3 + i % 3 * 85);
    for (size_t cut = 0; cut < 4; cut++) {
        f->id[0] = '\0';
        f->text = (tide_text){bytes, sizeof bytes - cut};
        run_ok(f, play_insert);
        assert_stored(f, tide_buf_text(&f->new_id), f->text);
        (void)snprintf(f->id, sizeof f->id, "%s", tide_buf_cstr(&f->new_id));
        run_ok(f, play_get);
        assert_int_equal(f->message.raw.bytes, f->text.bytes);
        assert_memory_equal(f->message.raw.data, bytes, f->text.bytes);
    }
}

/* M3: streamed both ways, one copy at a time. */
CASE(a_large_message_costs_one_copy, 0)
{
    const size_t bytes = 30000001;
    char *large = malloc(bytes);
    assert_non_null(large);
    tide_rng rng = tide_rng_seeded(5);
    for (size_t i = 0; i < bytes; i++)
        large[i] = (char)tide_rng_next(&rng);
    /* Lines that look like the end of what it is wrapped in. */
    memcpy(large, "Subject: x\r\n\r\n--tidemark_part_0--\r\n--tidemark_part_1", 50);
    f->text = (tide_text){large, bytes};
    f->mem.bytes_peak = f->mem.bytes_live;
    run_ok(f, play_insert);
    assert_true(f->mem.bytes_peak < 1u << 20);
    assert_non_null(strstr(f->url, "/upload/"));
    assert_stored(f, tide_buf_text(&f->new_id), f->text);

    (void)snprintf(f->id, sizeof f->id, "%s", tide_buf_cstr(&f->new_id));
    f->mem.bytes_peak = f->mem.bytes_live;
    run_ok(f, play_get);
    assert_int_equal(f->message.raw.bytes, bytes);
    assert_memory_equal(f->message.raw.data, large, bytes);
    print_message("30 MB: peak %.3f of the message\n", (double)f->mem.bytes_peak / (double)bytes);
    assert_true(f->mem.bytes_peak <= bytes + bytes / 2 + (2u << 20));
    run_ok(f, play_get); /* never two of them */
    assert_true(f->mem.bytes_peak <= bytes + bytes / 2 + (2u << 20));
    free(large);
}

CASE(an_inserted_message_has_its_labels_date_and_thread, 0)
{
    static const char first[] = "Message-ID: <a@x>\r\nSubject: s\r\n"
                                "Date: Wed, 01 Jan 2020 00:00:00 +0000\r\n\r\nhello\r\n";
    f->text = TIDE_TEXT(first);
    const uint64_t before = units(f);
    run_ok(f, play_insert);
    assert_int_equal(units(f) - before, 25);
    assert_true(has_label(f, tide_buf_text(&f->new_id), "INBOX"));
    assert_true(has_label(f, tide_buf_text(&f->new_id), "STARRED"));
    (void)snprintf(f->id, sizeof f->id, "%s", tide_buf_cstr(&f->new_id));
    run_ok(f, play_get);
    assert_int_equal(f->message.internal_ms, INT64_C(1577836800000));

    /* The reply goes into its thread. */
    static const char second[] = "Message-ID: <b@x>\r\nIn-Reply-To: <a@x>\r\nReferences: <a@x>\r\n"
                                 "Subject: Re: s\r\n\r\nhello\r\n";
    (void)snprintf(f->id, sizeof f->id, "%.*s", (int)f->message.thread_id.bytes,
                   f->message.thread_id.data);
    f->text = TIDE_TEXT(second);
    const char *thread = textf("%s", f->id);
    run_ok(f, play_insert);
    (void)snprintf(f->id, sizeof f->id, "%s", tide_buf_cstr(&f->new_id));
    run_ok(f, play_minimal);
    assert_true(tide_text_equal(f->message.thread_id, tide_text_of(thread)));
}
