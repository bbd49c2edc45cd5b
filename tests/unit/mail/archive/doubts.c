/* What is known about a copy is kept with it, and only better bytes take its place (ARC6, M19a);
 * what was damaged is written again (M19); what returns is no longer gone (M21). */
#include "archive_fixture.h"
#include "mail/mail.h"
#include "support/heap.h"

static const char whole[] = "Subject: whole\r\n\r\nall of the text that the server has\r\n";
static const char half[] = "Subject: whole\r\n\r\nall of";

/* Changes a shard behind the archive's back. */
static void spoil(struct fixture *f, const char *shard, const char *sql)
{
    sqlite3 *handle = NULL;
    const char *path = textf("%s/%s.db", f->dir, shard);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    if (sqlite3_exec(handle, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(handle));
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

static void put_said(struct fixture *f, const char *id, const char *raw, uint64_t said_bytes)
{
    struct tide_incoming incoming = mail(id, year_2019, tide_text_of(raw));
    incoming.said_bytes = said_bytes;
    put(f, &incoming);
    sync_all(f);
}

static tide_copy copy_of(struct fixture *f, const char *id)
{
    struct tide_stored stored;
    OK(tide_archive_find(f->archive, tide_text_of(id), &stored, &f->err));
    return stored.copy;
}

static bool is_missing(struct fixture *f, const char *id)
{
    const tide_text text = tide_text_of(id);
    bool missing = false;
    OK(tide_archive_missing(f->archive, &text, 1, &missing, &f->err));
    return missing;
}

static bool keep_doubt(const struct tide_doubted *doubted, void *arg)
{
    *(struct tide_doubted *)arg = *doubted;
    return true;
}

OPENED(a_copy_shorter_than_said_is_kept_and_fetched_again)
{
    struct tide_archive_tally tally;
    struct tide_doubted doubted = {.tries = 7};
    put_said(f, "a", half, sizeof whole - 1);
    put_said(f, "b", "", 0);
    put_said(f, "c", whole, sizeof whole - 1);
    put_said(f, "d", whole, sizeof whole + 1); /* line ends may be counted otherwise */
    put_said(f, "e", whole, 0);
    assert_int_equal(copy_of(f, "a"), TIDE_COPY_SHORT);
    assert_int_equal(copy_of(f, "b"), TIDE_COPY_SHORT);
    assert_int_equal(copy_of(f, "c"), TIDE_COPY_EXACT);
    assert_int_equal(copy_of(f, "d"), TIDE_COPY_EXACT);
    assert_int_equal(copy_of(f, "e"), TIDE_COPY_EXACT);
    assert_raw(f, "a", tide_text_of(half)); /* it may be all there is */
    assert_true(is_missing(f, "a"));
    assert_true(is_missing(f, "b"));
    assert_false(is_missing(f, "c"));
    OK(tide_archive_tally(f->archive, &tally, &f->err));
    assert_int_equal(tally.copies[TIDE_COPY_SHORT], 2);
    assert_int_equal(tally.copies[TIDE_COPY_DAMAGED], 0);
    OK(tide_archive_doubted(f->archive, keep_doubt, &doubted, &f->err));
    assert_string_equal(doubted.gmail_id, "a");
    assert_int_equal(doubted.said_bytes, sizeof whole - 1);
    assert_int_equal(doubted.tries, 0);
    const uint64_t at_once_ms = doubted.next_ms;
    put_said(f, "a", half, sizeof whole - 1); /* no better, so it waits longer */
    OK(tide_archive_doubted(f->archive, keep_doubt, &doubted, &f->err));
    assert_int_equal(doubted.tries, 1);
    assert_true(doubted.next_ms >= at_once_ms + 3600000);
    put_said(f, "a", whole, sizeof whole - 1);
    put_said(f, "b", whole, sizeof whole - 1);
    assert_int_equal(copy_of(f, "a"), TIDE_COPY_EXACT);
    assert_false(is_missing(f, "a"));
    assert_raw(f, "a", tide_text_of(whole));
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM doubt"), 0);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM earlier"), 0); /* only their beginning */
    assert_sound(f, 5);
}

/* npm's emulate says how long the base64 is; one character off is another size. */
OPENED(a_size_that_counts_base64_is_taken_only_if_it_is_exact)
{
    const uint64_t bytes = sizeof whole - 1;
    const uint64_t padded = (bytes + 2) / 3 * 4, plain = (bytes * 4 + 2) / 3;
    put_said(f, "a", whole, padded);
    put_said(f, "b", whole, plain);
    put_said(f, "c", whole, padded + 1);
    put_said(f, "d", whole, plain - 1);
    put_said(f, "e", half, padded);
    assert_int_equal(copy_of(f, "a"), TIDE_COPY_EXACT);
    assert_int_equal(copy_of(f, "b"), TIDE_COPY_EXACT);
    assert_int_equal(copy_of(f, "c"), TIDE_COPY_SHORT);
    assert_int_equal(copy_of(f, "d"), TIDE_COPY_SHORT);
    assert_int_equal(copy_of(f, "e"), TIDE_COPY_SHORT);
}

OPENED(a_shorter_copy_never_takes_the_place_of_a_longer_one)
{
    put_said(f, "a", whole, sizeof whole - 1);
    put_said(f, "a", half, sizeof whole - 1);
    assert_raw(f, "a", tide_text_of(whole));
    assert_int_equal(copy_of(f, "a"), TIDE_COPY_EXACT);
    put_said(f, "b", half, sizeof whole - 1);
    put_said(f, "b", "", sizeof whole - 1);
    assert_raw(f, "b", tide_text_of(half));
    put_said(f, "b", "Subject: whole\r\n\r\nall of the text", sizeof whole - 1);
    assert_raw(f, "b", TIDE_TEXT("Subject: whole\r\n\r\nall of the text"));
    assert_int_equal(copy_of(f, "b"), TIDE_COPY_SHORT);
    /* Bytes of another text stay beside the new ones, until they can no longer be read. */
    put_said(f, "b", "Subject: other\r\n\r\nquite another text, and as long\r\n", 50);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM earlier"), 1);
    assert_sound(f, 3);
    close_archive(f);
    spoil(f, "2019",
          "UPDATE content SET body = zeroblob(length(body)) WHERE id IN"
          " (SELECT content FROM earlier)");
    open_archive(f);
    OK(tide_archive_tidy(f->archive, NULL, &f->err));
    assert_sound(f, 2);
}

/* Mail with an attachment, which is cut out and stored once. */
static void with_attachment(tide_buf *out, const char *subject)
{
    uint8_t bytes[9000];
    tide_rng rng = tide_rng_seeded(5);
    random_bytes(&rng, bytes, sizeof bytes);
    OK(tide_buf_print(out, "Subject: %s\r\n\r\n", subject));
    add_base64(out, bytes, sizeof bytes, 76, "\r\n");
}

CASE(damaged_bytes_are_written_again)
{
    static const char *const harms[] = {
        "UPDATE content SET body = zeroblob(length(body))",
        "UPDATE piece SET body = zeroblob(length(body))",
        "DELETE FROM piece",
        "DELETE FROM cut",
        ("UPDATE content SET hash = zeroblob(32) WHERE id = (SELECT content FROM message"
         " WHERE gmail_id = 'a')"),
        "UPDATE content SET body_bytes = body_bytes - 1",
    };
    tide_buf one = heap_buf(1 << 20);
    tide_buf two = heap_buf(1 << 20);
    with_attachment(&one, "one");
    with_attachment(&two, "two");
    const struct tide_incoming first = mail("a", year_2019, tide_buf_text(&one));
    const struct tide_incoming second = mail("b", year_2019, tide_buf_text(&two));
    for (size_t i = 0; i < sizeof harms / sizeof harms[0]; i++) {
        open_archive(f);
        put(f, &first);
        sync_all(f);
        close_archive(f);
        spoil(f, "2019", harms[i]);
        open_archive(f);
        OK(tide_archive_doubt(f->archive, TIDE_TEXT("a"), NULL, &f->err));
        sync_all(f);
        assert_int_equal(copy_of(f, "a"), TIDE_COPY_DAMAGED);
        assert_true(is_missing(f, "a"));
        put(f, &second); /* refers to nothing that is damaged */
        sync_all(f);
        assert_raw(f, "b", tide_buf_text(&two));
        put(f, &first);
        sync_all(f);
        assert_int_equal(copy_of(f, "a"), TIDE_COPY_EXACT);
        assert_false(is_missing(f, "a"));
        assert_raw(f, "a", tide_buf_text(&one));
        assert_sound(f, 2);
        close_archive(f);
    }
    tide_buf_done(&one);
    tide_buf_done(&two);
}

/* The server's count knows nothing of imported mail, which must not make up for what is missing. */
OPENED(imported_mail_hides_no_missing_message)
{
    static const char text[] = "Subject: x\r\n\r\ny\r\n";
    const char *const ids[] = {"18c0ffee01", "import-0011", "import-0022"};
    struct tide_archive_tally tally;
    struct tide_mail_count count = {.archive = f->archive, .stored = 3, .total = 2};
    uint64_t missing = 0;
    for (size_t i = 0; i < 3; i++) {
        const struct tide_incoming incoming = mail(ids[i], year_2019, TIDE_TEXT(text));
        put(f, &incoming);
    }
    OK(tide_archive_doubt(f->archive, TIDE_TEXT("import-0022"), NULL, &f->err));
    sync_all(f);
    OK(tide_archive_tally(f->archive, &tally, &f->err));
    assert_int_equal(tally.imported, 2);
    assert_int_equal(tally.imported_damaged, 1);
    assert_int_equal(tally.copies[TIDE_COPY_DAMAGED], 1);
    OK(tide_mail_missing(&count, &missing, &f->err));
    assert_int_equal(missing, 1);
    count.total = 1;
    OK(tide_mail_missing(&count, &missing, &f->err));
    assert_int_equal(missing, 0);
}

/* A file takes no labels from a message that it makes whole: another file may have given them. */
OPENED(an_import_that_replaces_damaged_bytes_takes_no_label)
{
    static const char text[] = "Subject: x\r\n\r\ny\r\n";
    struct tide_incoming incoming = mail("import-0011", year_2019, TIDE_TEXT(text));
    incoming.history_id = TIDE_TEXT("");
    const struct tide_label_change kept = {
        .gmail_id = incoming.gmail_id, .label = TIDE_TEXT("Kept"), .added = true, .at_ms = 1};
    uint64_t ticket = 0;
    struct tide_archive_tally tally;
    put(f, &incoming);
    OK(tide_archive_labels(f->archive, &kept, 1, &ticket, &f->err));
    OK(tide_archive_doubt(f->archive, incoming.gmail_id, NULL, &f->err));
    sync_all(f);
    put(f, &incoming);
    sync_all(f);
    OK(tide_archive_tally(f->archive, &tally, &f->err));
    assert_int_equal(tally.copies[TIDE_COPY_DAMAGED], 0);
    assert_labels(f, "import-0011", "Kept\n");
}

OPENED(a_shard_of_version_1_is_read_and_brought_up_to_date)
{
    put_said(f, "a", whole, sizeof whole - 1);
    put_said(f, "b", "", 0);
    close_archive(f);
    spoil(f, "2019", "DROP TABLE doubt; PRAGMA user_version = 1");
    f->options.read_only = true;
    open_archive(f);
    assert_int_equal(copy_of(f, "b"), TIDE_COPY_EXACT); /* not checked yet */
    assert_raw(f, "a", tide_text_of(whole));
    assert_sound(f, 2);
    tide_archive *reader = f->archive;
    f->options.read_only = false;
    open_archive(f);
    put_said(f, "c", half, sizeof whole - 1);
    assert_int_equal(ask(f, "2019", "PRAGMA user_version"), 2);
    assert_int_equal(copy_of(f, "b"), TIDE_COPY_SHORT);
    tide_archive *writer = f->archive;
    f->archive = reader; /* it opened the file when it was older */
    assert_int_equal(copy_of(f, "b"), TIDE_COPY_SHORT);
    assert_int_equal(copy_of(f, "c"), TIDE_COPY_SHORT);
    close_archive(f);
    f->archive = writer;
}

static bool is_gone(struct fixture *f, const char *id)
{
    struct tide_stored stored;
    OK(tide_archive_find(f->archive, tide_text_of(id), &stored, &f->err));
    return stored.gone;
}

static void go(struct fixture *f, const char *id)
{
    OK(tide_archive_gone(f->archive, tide_text_of(id), 5, NULL, &f->err));
    sync_all(f);
    assert_true(is_gone(f, id));
}

OPENED(what_returns_is_no_longer_gone)
{
    const tide_text inbox = TIDE_TEXT("INBOX");
    put_text(f, "a", year_2019, "x");
    go(f, "a");
    assert_true(is_missing(f, "a")); /* who names it is asked for it */
    struct tide_incoming again = mail("a", year_2019, TIDE_TEXT("x"));
    again.history_id = TIDE_TEXT("1"); /* older than what is known: it is there all the same */
    put(f, &again);
    sync_all(f);
    assert_false(is_gone(f, "a"));
    assert_false(is_missing(f, "a"));
    go(f, "a");
    struct tide_label_change change = {.gmail_id = TIDE_TEXT("a"),
                                       .label = TIDE_TEXT("STARRED"),
                                       .added = true,
                                       .at_ms = 6,
                                       .history_id = TIDE_TEXT("200")};
    OK(tide_archive_labels(f->archive, &change, 1, NULL, &f->err));
    sync_all(f);
    assert_false(is_gone(f, "a"));
    go(f, "a"); /* a history that is read again changes nothing */
    OK(tide_archive_labels(f->archive, &change, 1, NULL, &f->err));
    sync_all(f);
    assert_true(is_gone(f, "a"));
    /* A listing of a label that was made before it was found to be gone. */
    change = (struct tide_label_change){.gmail_id = TIDE_TEXT("a"),
                                        .label = TIDE_TEXT("STARRED"),
                                        .unlisted = true,
                                        .at_ms = 7,
                                        .history_id = TIDE_TEXT("250")};
    OK(tide_archive_labels(f->archive, &change, 1, NULL, &f->err));
    sync_all(f);
    assert_true(is_gone(f, "a"));
    assert_labels(f, "a", "STARRED\n");
    again.history_id = TIDE_TEXT("300");
    again.labels = &inbox;
    again.labels_count = 1;
    OK(tide_archive_back(f->archive, &again, NULL, &f->err));
    sync_all(f);
    assert_false(is_gone(f, "a"));
    assert_labels(f, "a", "INBOX\n");
    assert_sound(f, 1);
}
