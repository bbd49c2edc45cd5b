/* A held copy (M18) is found and shown like any other, gives way to the server's bytes, and is never
 * taken for them (ARC6). */
#include "archive_fixture.h"
#include "support/heap.h"

static const char lf[] = "Subject: held\n\nFrom another source\n";
static const char crlf[] = "Subject: held\r\n\r\nFrom another source\r\n";
static const char other[] = "Subject: held\r\n\r\nFrom the server, with more words\r\n";

static void put_held(struct fixture *f, const char *id, int64_t internal_ms, const char *raw)
{
    struct tide_incoming incoming = mail(id, internal_ms, tide_text_of(raw));
    incoming.held = true;
    incoming.history_id = TIDE_TEXT("");
    put(f, &incoming);
    sync_all(f);
}

static void put_sent(struct fixture *f, const char *id, int64_t internal_ms, const char *raw,
                     uint64_t said_bytes)
{
    struct tide_incoming incoming = mail(id, internal_ms, tide_text_of(raw));
    incoming.said_bytes = said_bytes;
    put(f, &incoming);
    sync_all(f);
}

static struct tide_stored stored_of(struct fixture *f, const char *id)
{
    struct tide_stored stored;
    OK(tide_archive_find(f->archive, tide_text_of(id), &stored, &f->err));
    return stored;
}

static bool is_missing(struct fixture *f, const char *id, bool exact)
{
    const tide_text text = tide_text_of(id);
    bool missing = false;
    OK((exact ? tide_archive_inexact : tide_archive_missing)(f->archive, &text, 1, &missing,
                                                             &f->err));
    return missing;
}

static uint64_t held_count(struct fixture *f)
{
    struct tide_archive_tally tally;
    OK(tide_archive_tally(f->archive, &tally, &f->err));
    return tally.copies[TIDE_COPY_HELD];
}

OPENED(a_held_copy_is_there_and_not_exact)
{
    put_held(f, "a", year_2019, lf);
    assert_int_equal(stored_of(f, "a").copy, TIDE_COPY_HELD);
    assert_false(is_missing(f, "a", false)); /* a listing does not fetch it ... */
    assert_true(is_missing(f, "a", true));   /* ... but its exact bytes are wanted */
    assert_raw(f, "a", tide_text_of(lf));
    assert_int_equal(held_count(f), 1);
    put_sent(f, "a", year_2019, crlf, sizeof crlf - 1);
    assert_int_equal(stored_of(f, "a").copy, TIDE_COPY_EXACT);
    assert_false(is_missing(f, "a", true));
    assert_raw(f, "a", tide_text_of(crlf));
    assert_int_equal(held_count(f), 0);
    assert_sound(f, 1);
}

OPENED(a_held_copy_changes_nothing_that_the_server_sent)
{
    const tide_text inbox = TIDE_TEXT("INBOX");
    struct tide_incoming sent = mail("a", year_2019, tide_text_of(crlf));
    sent.labels = &inbox;
    sent.labels_count = 1;
    put(f, &sent);
    sync_all(f);
    put_held(f, "a", year_2019, lf);
    assert_int_equal(stored_of(f, "a").copy, TIDE_COPY_EXACT);
    assert_raw(f, "a", tide_text_of(crlf));
    assert_labels(f, "a", "INBOX\n");
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM doubt"), 0);
    OK(tide_archive_gone(f->archive, TIDE_TEXT("a"), 5, NULL, &f->err));
    put_held(f, "a", year_2019, lf);
    assert_true(stored_of(f, "a").gone);
    assert_sound(f, 1);
}

OPENED(a_held_copy_takes_the_place_of_damaged_bytes_only)
{
    put_sent(f, "a", year_2019, crlf, 0);
    OK(tide_archive_doubt(f->archive, TIDE_TEXT("a"), NULL, &f->err));
    put_held(f, "a", year_2019, lf);
    assert_int_equal(stored_of(f, "a").copy, TIDE_COPY_HELD);
    assert_raw(f, "a", tide_text_of(lf));
    put_sent(f, "b", year_2019, "Subject: h", sizeof crlf - 1);
    put_held(f, "b", year_2019, lf);
    assert_int_equal(stored_of(f, "b").copy, TIDE_COPY_SHORT);
}

OPENED(a_short_answer_does_not_replace_a_held_copy)
{
    put_held(f, "a", year_2019, lf);
    put_sent(f, "a", year_2019, "Subject: h", sizeof crlf - 1);
    assert_int_equal(stored_of(f, "a").copy, TIDE_COPY_HELD);
    assert_raw(f, "a", tide_text_of(lf));
    assert_int_equal(ask(f, "2019", "SELECT tries FROM doubt"), 1); /* it waits before the next */
    assert_true(ask(f, "2019", "SELECT next_ms > since_ms FROM doubt") == 1);
}

/* Bytes that only line ends tell apart are dropped, others are kept and indexed. */
OPENED(what_differs_in_line_ends_is_swept)
{
    put_held(f, "a", year_2019, lf);
    put_held(f, "b", year_2019 + 1000, lf); /* the same bytes, which must not be swept with a */
    put_held(f, "c", year_2019 + 2000, "Subject: held\n\nother words\n");
    put_sent(f, "a", year_2019, crlf, 0);
    OK(tide_archive_sweep(f->archive, NULL, &f->err));
    sync_all(f);
    assert_raw(f, "b", tide_text_of(lf));
    put_sent(f, "b", year_2019 + 1000, crlf, 0);
    put_sent(f, "c", year_2019 + 2000, other, 0);
    OK(tide_archive_sweep(f->archive, NULL, &f->err));
    sync_all(f);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM content"), 3); /* two, and one earlier */
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM earlier"), 1);
    assert_raw(f, "a", tide_text_of(crlf));
    assert_raw(f, "b", tide_text_of(crlf));
    assert_raw(f, "c", tide_text_of(other));
    assert_sound(f, 4); /* with the earlier bytes of c */
    const int64_t generation = ask(f, "2019", "SELECT generation FROM shard");
    OK(tide_archive_sweep(f->archive, NULL, &f->err));
    assert_int_equal(ask(f, "2019", "SELECT generation FROM shard"), generation);
}

/* Takeout's dates end with the second; date ranges must be exact before and after (SHD4). */
OPENED(the_server_adds_the_milliseconds_of_a_date)
{
    for (int i = 0; i < 20; i++)
        put_held(f, textf("h%02d", i), year_2019 + 5000, textf("Subject: %d\n\nx\n", i));
    put_text(f, "later", year_2019 + 6000, "later");
    assert_int_equal(stored_of(f, "h00").internal_ms, year_2019 + 5000);
    assert_int_equal(walk(f, year_2019 + 5000, year_2019 + 5001, UINT64_MAX), 20);
    assert_int_equal(walk(f, year_2019 + 5001, year_2019 + 6000, UINT64_MAX), 0);
    for (int i = 0; i < 20; i++)
        put_sent(f, textf("h%02d", i), year_2019 + 5000 + 49 * i,
                 textf("Subject: %d\r\n\r\nx\r\n", i), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(stored_of(f, textf("h%02d", i)).internal_ms, year_2019 + 5000 + 49 * i);
        uint64_t count = 0;
        for (int64_t ms = year_2019 + 5000; ms < year_2019 + 6000; ms += 250)
            count += walk(f, ms, ms + 250, UINT64_MAX);
        assert_int_equal(count, 20);
    }
    /* Another second is another position. */
    put_held(f, "z", year_2019 + 9000, lf);
    put_sent(f, "z", year_2019 + 10001, crlf, 0);
    assert_int_equal(stored_of(f, "z").internal_ms, year_2019 + 9000);
    assert_sound(f, 22);
}

struct list {
    char ids[16][TIDE_GMAIL_ID_BYTES_MAX + 1];
    struct tide_held last;
    size_t count, max;
};

static bool list_add(const struct tide_held *held, void *arg)
{
    struct list *list = arg;
    memcpy(list->ids[list->count++], held->gmail_id, sizeof held->gmail_id);
    list->last = *held;
    return list->count < list->max;
}

OPENED(held_copies_are_listed_newest_first_from_any_position)
{
    int64_t newest_ms = 1;
    int64_t oldest_ms = 1;
    OK(tide_archive_held_span(f->archive, &newest_ms, &oldest_ms, &f->err));
    assert_int_equal(newest_ms, 0);
    assert_int_equal(oldest_ms, 0);
    put_held(f, "a", year_2019, "a");
    put_held(f, "b", year_2019 + 5000, "b");
    put_text(f, "exact", year_2019 + 6000, "exact");
    put_held(f, "c", year_2020, "c");
    put_held(f, "gone", year_2020 + 5000, "gone");
    OK(tide_archive_gone(f->archive, TIDE_TEXT("gone"), 5, NULL, &f->err));
    sync_all(f);
    struct list all = {.max = 16};
    OK(tide_archive_held(f->archive, NULL, INT64_MAX, list_add, &all, &f->err));
    assert_int_equal(all.count, 3);
    assert_string_equal(all.ids[0], "c");
    assert_string_equal(all.ids[1], "b");
    assert_string_equal(all.ids[2], "a");
    struct list paged = {.max = 1};
    OK(tide_archive_held(f->archive, NULL, INT64_MAX, list_add, &paged, &f->err));
    assert_string_equal(paged.ids[0], "c");
    paged.max = 2;
    const struct tide_held after = paged.last;
    OK(tide_archive_held(f->archive, &after, INT64_MAX, list_add, &paged, &f->err));
    assert_string_equal(paged.ids[1], "b");
    char exact[TIDE_GMAIL_ID_BYTES_MAX + 1];
    OK(tide_archive_some_exact(f->archive, exact, &f->err));
    assert_string_equal(exact, "exact");
    OK(tide_archive_gone(f->archive, TIDE_TEXT("exact"), 5, NULL, &f->err));
    sync_all(f);
    OK(tide_archive_some_exact(f->archive, exact, &f->err));
    assert_string_equal(exact, "");
    struct list none = {.max = 16};
    OK(tide_archive_held(f->archive, NULL, 1, list_add, &none, &f->err));
    assert_int_equal(none.count, 0); /* not due: they were stored later than that */
    OK(tide_archive_held_span(f->archive, &newest_ms, &oldest_ms, &f->err));
    assert_int_equal(newest_ms, year_2020);
    assert_int_equal(oldest_ms, year_2019);
}

/* ---- labels that are listed (M19) ---- */

static void put_labeled(struct fixture *f, const char *id, int64_t internal_ms, const char *history,
                        tide_text label)
{
    struct tide_incoming incoming = mail(id, internal_ms, tide_text_of(id));
    incoming.history_id = tide_text_of(history);
    incoming.labels = &label;
    incoming.labels_count = 1;
    put(f, &incoming);
    sync_all(f);
}

/* ---- an import beside a sync, in one process ---- */

/* The import has looked, and the sync stores the message before the import writes. */
OPENED(labels_of_a_file_count_until_the_server_says_something)
{
    uint64_t ticket = 0;
    put_held(f, "a", year_2019, lf);
    put_labeled(f, "b", year_2019 + 1, "99", TIDE_TEXT("SENT"));
    const struct tide_label_change changes[] = {
        {.gmail_id = TIDE_TEXT("a"), .label = TIDE_TEXT("Label_1"), .added = true, .offered = true},
        {.gmail_id = TIDE_TEXT("b"), .label = TIDE_TEXT("Label_1"), .added = true, .offered = true},
    };
    OK(tide_archive_labels(f->archive, changes, 2, &ticket, &f->err));
    OK(tide_archive_sync(f->archive, ticket, NULL, &f->err));
    assert_labels(f, "a", "Label_1\n");
    assert_labels(f, "b", "SENT\n");
}

OPENED(bytes_in_a_younger_shard_are_there)
{
    tide_packer *packer = NULL;
    uint8_t hash[TIDE_CONTENT_HASH_BYTES];
    bool has = true;
    OK(tide_packer_new(tide_mem_heap(), 1, &packer, &f->err));
    OK(tide_content_hash(packer, TIDE_TEXT(crlf), hash, &f->err));
    tide_packer_free(packer);
    put_text(f, "a", year_2019, lf);
    sync_all(f);
    OK(tide_archive_has(f->archive, hash, &has, &f->err)); /* a reader knows the shards of now */
    assert_false(has);
    put_text(f, "b", year_2020, crlf);
    sync_all(f);
    OK(tide_archive_has(f->archive, hash, &has, &f->err));
    assert_true(has);
}

OPENED(messages_without_a_label_are_told_from_those_that_know_better)
{
    const tide_text ids[] = {TIDE_TEXT("a"), TIDE_TEXT("b"), TIDE_TEXT("c"), TIDE_TEXT("nobody"),
                             TIDE_TEXT("d")};
    bool without[5];
    put_labeled(f, "a", year_2019, "99", TIDE_TEXT("INBOX"));
    put_labeled(f, "b", year_2019 + 1, "99", TIDE_TEXT("SENT"));
    put_labeled(f, "c", year_2020, "101", TIDE_TEXT("SENT")); /* later than what was listed */
    put_labeled(f, "d", year_2020 + 1, "", TIDE_TEXT("SENT"));
    OK(tide_archive_unlabeled(f->archive, TIDE_TEXT("INBOX"), TIDE_TEXT("100"), ids, 5, without,
                              &f->err));
    assert_false(without[0]);
    assert_true(without[1]);
    assert_false(without[2]);
    assert_false(without[3]);
    assert_true(without[4]);
    OK(tide_archive_unlabeled(f->archive, TIDE_TEXT("INBOX"), TIDE_TEXT(""), ids, 5, without,
                              &f->err));
    assert_true(without[2]);
}

struct labeled_list {
    char ids[8][TIDE_GMAIL_ID_BYTES_MAX + 1];
    struct tide_labeled last;
    size_t count, max;
};

static bool labeled_add(const struct tide_labeled *labeled, void *arg)
{
    struct labeled_list *list = arg;
    memcpy(list->ids[list->count++], labeled->gmail_id, sizeof labeled->gmail_id);
    list->last = *labeled;
    return list->count < list->max;
}

OPENED(messages_with_a_label_are_walked_from_any_position)
{
    put_labeled(f, "a", year_2019, "1", TIDE_TEXT("INBOX"));
    put_labeled(f, "x", year_2019 + 500, "1", TIDE_TEXT("SENT"));
    put_labeled(f, "b", year_2019 + 1000, "2", TIDE_TEXT("INBOX"));
    put_labeled(f, "c", year_2020, "3", TIDE_TEXT("INBOX"));
    put_labeled(f, "gone", year_2020 + 1000, "3", TIDE_TEXT("INBOX"));
    OK(tide_archive_gone(f->archive, TIDE_TEXT("gone"), 5, NULL, &f->err));
    sync_all(f);
    struct labeled_list all = {.max = 8};
    OK(tide_archive_labeled(f->archive, TIDE_TEXT("INBOX"), NULL, labeled_add, &all, &f->err));
    assert_int_equal(all.count, 3);
    assert_string_equal(all.ids[0], "a");
    assert_string_equal(all.ids[2], "c");
    assert_string_equal(all.last.history_id, "3");
    assert_int_equal(all.last.internal_ms, year_2020);
    for (size_t from = 1; from < 3; from++) {
        struct labeled_list some = {.max = from};
        OK(tide_archive_labeled(f->archive, TIDE_TEXT("INBOX"), NULL, labeled_add, &some, &f->err));
        const struct tide_labeled after = some.last;
        struct labeled_list rest = {.max = 8};
        OK(tide_archive_labeled(f->archive, TIDE_TEXT("INBOX"), &after, labeled_add, &rest,
                                &f->err));
        assert_int_equal(rest.count, 3 - from);
        assert_string_equal(rest.ids[0], all.ids[from]);
    }
}

/* An import knows a label by its name only; the server says later which one it is. */
OPENED(a_label_of_an_import_becomes_the_server_s)
{
    const struct {
        const char *name, *type;
    } made[] = {{"Work", "user"}, {"Mine", "local"}};
    for (size_t i = 0; i < 2; i++)
        OK(tide_archive_label_name(f->archive, tide_text_of(made[i].name),
                                   tide_text_of(made[i].name), tide_text_of(made[i].type), NULL,
                                   &f->err));
    put_labeled(f, "a", year_2019, "", TIDE_TEXT("Work"));
    put_labeled(f, "b", year_2020, "", TIDE_TEXT("Mine"));
    for (size_t i = 0; i < 2; i++)
        OK(tide_archive_label_name(f->archive, tide_text_of(i == 0 ? "Label_1" : "Label_2"),
                                   tide_text_of(made[i].name), TIDE_TEXT("user"), NULL, &f->err));
    sync_all(f);
    assert_labels(f, "a", "Label_1\n");
    assert_labels(f, "b", "Mine\n"); /* a label of this archive alone */
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM label"), 1);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM label_change"), 0);
}
