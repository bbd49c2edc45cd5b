/* Labels, removals and gaps follow the server, and nothing is forgotten. */
#include "archive_fixture.h"

static void change(struct fixture *f, const char *id, const char *label, bool added,
                   const char *history)
{
    struct tide_label_change one = {.gmail_id = tide_text_of(id),
                                    .label = tide_text_of(label),
                                    .added = added,
                                    .at_ms = 77,
                                    .history_id = tide_text_of(history)};
    OK(tide_archive_labels(f->archive, &one, 1, NULL, &f->err));
}

OPENED(labels_follow_the_server_and_their_history_stays)
{
    const tide_text labels[] = {TIDE_TEXT("INBOX"), TIDE_TEXT("UNREAD")};
    struct tide_incoming incoming = mail("a", year_2019, TIDE_TEXT("x"));
    incoming.labels = labels;
    incoming.labels_count = 2;
    OK(tide_archive_label_name(f->archive, TIDE_TEXT("Label_7"), TIDE_TEXT("Trips"),
                               TIDE_TEXT("user"), NULL, &f->err));
    put(f, &incoming);
    sync_all(f);
    assert_labels(f, "a", "INBOX\nUNREAD\n");
    change(f, "a", "UNREAD", false, "101");
    change(f, "a", "Label_7", true, "102");
    change(f, "unknown", "Label_7", true, "103");
    sync_all(f);
    assert_labels(f, "a", "INBOX\nLabel_7\n");
    /* The same history again, and one from before the message was stored. */
    change(f, "a", "UNREAD", false, "101");
    change(f, "a", "Label_7", true, "102");
    change(f, "a", "INBOX", false, "99");
    change(f, "a", "Label_7", false, "1000");
    change(f, "a", "Label_7", true, "102");
    sync_all(f);
    assert_labels(f, "a", "INBOX\n");
    put(f, &incoming); /* stored at 100: older than what we know */
    sync_all(f);
    assert_labels(f, "a", "INBOX\n");
    incoming.history_id = TIDE_TEXT("2000");
    incoming.labels_count = 0;
    put(f, &incoming);
    sync_all(f);
    assert_labels(f, "a", "");
    close_archive(f);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM label_change"), 5);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM label WHERE name = 'Trips'"), 1);
    open_archive(f);
    OK(tide_archive_label_name(f->archive, TIDE_TEXT("Label_7"), TIDE_TEXT("Journeys"),
                               TIDE_TEXT("user"), NULL, &f->err));
    sync_all(f);
    close_archive(f);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM label WHERE name = 'Journeys'"), 1);
}

OPENED(what_is_gone_from_the_server_stays_here)
{
    struct tide_stored stored;
    put_text(f, "a", year_2019, "x");
    OK(tide_archive_gone(f->archive, TIDE_TEXT("a"), 5, NULL, &f->err));
    OK(tide_archive_gone(f->archive, TIDE_TEXT("a"), 6, NULL, &f->err));
    sync_all(f);
    OK(tide_archive_find(f->archive, TIDE_TEXT("a"), &stored, &f->err));
    assert_true(stored.gone);
    assert_raw(f, "a", TIDE_TEXT("x"));
    assert_int_equal(ask(f, "2019", "SELECT gone_ms FROM message"), 5);
    put_text(f, "a", year_2019, "x"); /* it was there after all */
    sync_all(f);
    OK(tide_archive_find(f->archive, TIDE_TEXT("a"), &stored, &f->err));
    assert_false(stored.gone);
}

OPENED(what_is_missing_is_named)
{
    const tide_text ids[] = {TIDE_TEXT("a"), TIDE_TEXT("b"), TIDE_TEXT("c"), TIDE_TEXT("d")};
    bool missing[4] = {false, false, false, false};
    OK(tide_archive_missing(f->archive, ids, 4, missing, &f->err));
    for (int i = 0; i < 4; i++)
        assert_true(missing[i]);
    put_text(f, "b", year_2019, "x");
    put_text(f, "d", year_2020, "x");
    sync_all(f);
    OK(tide_archive_missing(f->archive, ids, 4, missing, &f->err));
    assert_true(missing[0]);
    assert_false(missing[1]);
    assert_true(missing[2]);
    assert_false(missing[3]);
}
