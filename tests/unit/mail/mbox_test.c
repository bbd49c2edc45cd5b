/* Mailboxes in one file (M17): others' in all their forms, our own byte for byte. */
#include "mail/files/mbox.h"

#include "base/rng.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"

#define DATE "Mon Jan  5 10:00:00 2026"

/* ---- a file in memory ---- */

static tide_status from_memory(void *arg, uint64_t at, char *bytes, size_t room, size_t *count_out,
                               tide_error *err)
{
    const tide_text *file = arg;
    (void)err;
    const size_t left = at >= file->bytes ? 0 : file->bytes - (size_t)at;
    *count_out = left < room ? left : room;
    if (*count_out > 0)
        memcpy(bytes, file->data + at, *count_out);
    return TIDE_OK;
}

static tide_status to_memory(void *arg, const char *bytes, size_t count, tide_error *err)
{
    (void)err;
    return tide_buf_add(arg, bytes, count);
}

static tide_mbox *opened(tide_text *file)
{
    tide_mbox *mbox = NULL;
    tide_error err;
    OK(tide_mbox_new(from_memory, file, 0, tide_mem_heap(), &mbox, &err));
    return mbox;
}

/* ---- a file that can only be read forward ---- */

struct stream {
    tide_text file;
    uint64_t next; /* that may be asked for */
};

static tide_status from_stream(void *arg, uint64_t at, char *bytes, size_t room, size_t *count_out,
                               tide_error *err)
{
    struct stream *stream = arg;
    assert_int_equal(at, stream->next);
    const tide_status rc = from_memory(&stream->file, at, bytes, room, count_out, err);
    stream->next += *count_out;
    return rc;
}

/* ---- what others write ---- */

enum { MESSAGES = 4 };

static const struct sample {
    const char *what;
    const char *file;
    const char *messages[MESSAGES];
} samples[] = {
    {"nothing", "", {NULL}},
    {"blank lines", "\n\r\n\n", {NULL}},
    {"two",
     "From a " DATE "\nS: 1\n\none\n\nFrom b " DATE "\nS: 2\n\ntwo\n",
     {"S: 1\n\none\n", "S: 2\n\ntwo\n"}},
    {"CR LF",
     "From a " DATE "\r\nS: 1\r\n\r\none\r\n\r\nFrom b " DATE "\r\nS: 2\r\n\r\ntwo\r\n\r\n",
     {"S: 1\r\n\r\none\r\n", "S: 2\r\n\r\ntwo\r\n"}},
    {"no blank line between",
     "From a " DATE "\nS: 1\n\none\nFrom b " DATE "\nS: 2\n\ntwo\n",
     {"S: 1\n\none\n", "S: 2\n\ntwo\n"}},
    {"From in a body",
     "From a " DATE "\nS: 1\n\nFrom the start\nfrom\n\nFrom here on\nx: y\n",
     {"S: 1\n\nFrom the start\nfrom\n\nFrom here on\nx: y\n"}},
    {"a date in the middle of a paragraph",
     "From a " DATE "\nS: 1\n\nHe wrote:\nFrom x " DATE "\nand no header follows\n",
     {"S: 1\n\nHe wrote:\nFrom x " DATE "\nand no header follows\n"}},
    {"quoted lines",
     "From a " DATE "\nS: 1\n\n>From x\n>>From y\n>from z\n> From\n",
     {"S: 1\n\nFrom x\n>From y\n>from z\n> From\n"}},
    {"a quoted line first", "From a " DATE "\n>From b\nS: 1\n\nx\n", {"From b\nS: 1\n\nx\n"}},
    {"no end", "From a " DATE "\nS: 1\n\ncut of", {"S: 1\n\ncut of"}},
    {"no body", "From a " DATE "\nS: 1\n\nFrom b " DATE "\nS: 2\n", {"S: 1\n", "S: 2\n"}},
    {"empty ones", "From a " DATE "\n\nFrom b " DATE "\n\n", {"", ""}},
    {"only its first line", "From a " DATE, {""}},
    {"no dates at all",
     "From a\nS: 1\n\none\n\nFrom b\nS: 2\n\nFrom c\n",
     {"S: 1\n\none\n", "S: 2\n\nFrom c\n"}},
    {"not a mailbox", "S: 1\n\none\n", {"S: 1\n\none\n"}},
    {"a length",
     "From a " DATE "\nContent-Length: 38\n\nFrom x " DATE "\nS: 2\n\n\nFrom b " DATE
     "\nS: 3\n\n>From z\n",
     {"Content-Length: 38\n\nFrom x " DATE "\nS: 2\n\n", "S: 3\n\nFrom z\n"}},
    {"a length to the end",
     "From a " DATE "\nContent-Length: 5\n\n>From",
     {"Content-Length: 5\n\n>From"}},
    {"a length that is wrong",
     "From a " DATE "\nContent-Length: 6\n\none\n\nFrom b " DATE "\nS: 2\n\ntwo\n",
     {"Content-Length: 6\n\none\n", "S: 2\n\ntwo\n"}},
    {"a length that is mad",
     "From a " DATE "\nContent-Length: 99999999999999\n\none\n",
     {"Content-Length: 99999999999999\n\none\n"}},
    {"Takeout",
     "From 15@xxx Mon Nov 06 04:42:58 +0000 2017\r\nX-GM-THRID: 15\r\n\r\nx\r\n\r\n"
     "From 16@xxx Mon Nov 06 04:42:58 +0000 2017\r\nS: 2\r\n\r\ny\r\n",
     {"X-GM-THRID: 15\r\n\r\nx\r\n", "S: 2\r\n\r\ny\r\n"}},
};

TEST(mailboxes_of_all_kinds_are_read)
{
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        tide_text file = tide_text_of(samples[i].file);
        tide_mbox *mbox = opened(&file);
        struct tide_mbox_message message;
        tide_error err;
        size_t count = 0;
        while (tide_mbox_next(mbox, &message, &err) == TIDE_OK) {
            if (count == MESSAGES || samples[i].messages[count] == NULL)
                fail_msg("%s: one more: \"%s\"", samples[i].what, tide_buf_cstr(message.raw));
            const tide_text wanted = tide_text_of(samples[i].messages[count++]);
            if (!tide_text_equal(tide_buf_text(message.raw), wanted))
                fail_msg("%s: message %zu is \"%s\"", samples[i].what, count,
                         tide_buf_cstr(message.raw));
            assert_int_equal(message.bytes, wanted.bytes);
        }
        if (count < MESSAGES && samples[i].messages[count] != NULL)
            fail_msg("%s: only %zu messages", samples[i].what, count);
        assert_int_equal(tide_mbox_at(mbox), file.bytes);
        tide_mbox_free(mbox);
    }
}

/* A packed mailbox cannot be looked at ahead: lengths are not followed, all else is the same. */
TEST(a_mailbox_that_is_read_forward_is_read_once)
{
    static const char file[] = "From a " DATE "\nContent-Length: 0\n\none\n\n"
                               "From b " DATE "\nContent-Length: 999\nS: 2\n\n>From two\n";
    static const char *const wanted[] = {"Content-Length: 0\n\none\n",
                                         "Content-Length: 999\nS: 2\n\nFrom two\n"};
    struct stream stream = {.file = {file, sizeof file - 1}};
    struct tide_mbox_message message;
    tide_mbox *mbox = NULL;
    tide_error err;
    OK(tide_mbox_new(from_stream, &stream, 0, tide_mem_heap(), &mbox, &err));
    tide_mbox_forward(mbox);
    for (size_t i = 0; i < 2; i++) {
        OK(tide_mbox_next(mbox, &message, &err));
        assert_string_equal(tide_buf_cstr(message.raw), wanted[i]);
    }
    assert_int_equal(tide_mbox_next(mbox, &message, &err), TIDE_NOT_FOUND);
    tide_mbox_free(mbox);
}

TEST(dates_of_from_lines_are_read_in_their_forms)
{
    static const struct {
        const char *line;
        int64_t ms; /* 0: none */
    } lines[] = {
        {"a@b.c Mon Nov  6 04:42:58 2017", 1509943378000},
        {"15@xxx Mon Nov 06 04:42:58 +0000 2017", 1509943378000},
        {"a Mon Nov 06 05:42:58 2017 +0100", 1509943378000},
        {"a Mon Nov  6 04:42 2017", 1509943320000},
        {"- Mon, 06 Nov 2017 04:42:58 +0000", 1509943378000},
        {"a b c Mon Nov  6 04:42:58 UTC 2017", 1509943378000},
        {"a Thu Feb 29 00:00:00 2024", 1709164800000},
        {"a Wed Dec 31 23:59:59 1969", -1000},
        {"the march of 2017", 0},
        {"a Mon Nov 99 04:42:58 2017", 0},
        {"a Mon Nov  6 44:42:58 2017", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        int64_t ms = 0;
        const bool found = tide_mbox_date(tide_text_of(lines[i].line), &ms);
        if (found != (lines[i].ms != 0) || ms != lines[i].ms)
            fail_msg("\"%s\" is %lld", lines[i].line, (long long)ms);
    }
}

/* ---- our own ---- */

static void random_message(tide_rng *rng, tide_buf *out)
{
    static const char *const pieces[] = {"From ",
                                         ">From ",
                                         ">>From ",
                                         "\n",
                                         "\r\n",
                                         "\n\n",
                                         ">",
                                         "From a " DATE "\n",
                                         "a: b\n",
                                         " ",
                                         "\r",
                                         "x",
                                         "\n\nFrom ",
                                         "X-Tidemark: ",
                                         ".",
                                         "Status: O\n",
                                         "Content-Length: 3\n",
                                         "\n>"};
    const uint64_t count = tide_rng_below(rng, 40);
    tide_buf_clear(out);
    for (uint64_t i = 0; i < count; i++) {
        if (tide_rng_chance(rng, 1, 8)) {
            const char any = (char)tide_rng_below(rng, 256);
            OK(tide_buf_add(out, &any, 1));
        } else if (tide_rng_chance(rng, 1, 60)) {
            for (int k = 0; k < 3000; k++)
                OK(tide_buf_add_text(out, ">"));
        } else {
            const char *piece = pieces[tide_rng_below(rng, sizeof pieces / sizeof pieces[0])];
            OK(tide_buf_add_text(out, piece));
        }
    }
}

TEST(what_we_write_comes_back_byte_for_byte)
{
    enum { COUNT = 8 };
    const unsigned rounds = (unsigned)scaled(4000);
    for (unsigned seed = 0; seed < rounds; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        tide_buf raws[COUNT];
        tide_error err;
        tide_buf file = heap_buf(64 << 20);
        tide_buf scratch = heap_buf(1 << 16);
        for (size_t i = 0; i < COUNT; i++) {
            tide_buf_init(&raws[i], tide_mem_heap(), 1 << 20);
            random_message(&rng, &raws[i]);
            struct tide_mbox_entry entry = {
                .raw = tide_buf_text(&raws[i]),
                .sender = TIDE_TEXT("a b\n@x"),
                .is_read = tide_rng_chance(&rng, 1, 2),
                .is_starred = tide_rng_chance(&rng, 1, 2),
                .note = {.id = TIDE_TEXT("i;d"),
                         .thread = TIDE_TEXT("th"),
                         .internal_ms = (int64_t)tide_rng_below(&rng, 4000000000) * 1000 - 99999000,
                         .labels = TIDE_TEXT("INBOX,Label_1:a%2c")}};
            entry.note.hash[3] = (uint8_t)i;
            OK(tide_mbox_write(&entry, &scratch, to_memory, &file, &err));
        }
        tide_text bytes = tide_buf_text(&file);
        tide_mbox *mbox = opened(&bytes);
        struct tide_mbox_message message;
        for (size_t i = 0; i < COUNT; i++) {
            struct tide_mbox_note note;
            tide_text rest;
            if (tide_mbox_next(mbox, &message, &err) != TIDE_OK ||
                !tide_mbox_note_read(tide_buf_text(message.raw), &note, &rest))
                fail_msg("seed %u: message %zu is lost", seed, i);
            assert_true(message.has_date);
            assert_int_equal(message.date_ms, note.internal_ms);
            assert_true(tide_text_equal(message.sender, TIDE_TEXT("ab@x")));
            assert_int_equal(note.bytes, raws[i].bytes);
            assert_int_equal(note.hash[3], i);
            assert_true(rest.bytes - note.bytes <= 1);
            rest.bytes = (size_t)note.bytes;
            if (!tide_text_equal(rest, tide_buf_text(&raws[i])))
                fail_msg("seed %u: message %zu differs", seed, i);
            tide_buf_done(&raws[i]);
        }
        assert_int_equal(tide_mbox_next(mbox, &message, &err), TIDE_NOT_FOUND);
        tide_mbox_free(mbox);
        tide_buf_done(&file);
        tide_buf_done(&scratch);
    }
}

TEST(a_name_survives_its_encoding)
{
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    tide_buf text = heap_buf(4096);
    tide_buf back = heap_buf(4096);
    OK(tide_mbox_encode((tide_text){all, sizeof all}, &text));
    assert_null(strpbrk(tide_buf_cstr(&text), ",:; \n\r"));
    OK(tide_mbox_decode(tide_buf_text(&text), &back));
    assert_true(tide_text_equal(tide_buf_text(&back), (tide_text){all, sizeof all}));
    tide_buf_done(&text);
    tide_buf_done(&back);
}

/* ---- size ---- */

/* A file that is never in memory as a whole: a mailbox with one message of so many bytes in one line,
 * and a small one behind it. */
struct long_file {
    uint64_t line_bytes;
};

static const char long_head[] = "From a " DATE "\nS: 1\n\n";
static const char long_tail[] = "\n\nFrom b " DATE "\nS: 2\n\ntwo\n";

static tide_status from_long(void *arg, uint64_t at, char *bytes, size_t room, size_t *count_out,
                             tide_error *err)
{
    const struct long_file *file = arg;
    const uint64_t head = sizeof long_head - 1;
    const uint64_t tail = head + file->line_bytes;
    (void)err;
    size_t count = 0;
    for (; count < room && at < tail + sizeof long_tail - 1; count++, at++) {
        if (at >= head && at < tail) {
            const uint64_t some = tail - at < room - count ? tail - at : room - count;
            memset(bytes + count, '>', (size_t)some);
            count += (size_t)some - 1;
            at += some - 1;
            continue;
        }
        bytes[count] = at < head ? long_head[at] : long_tail[at - tail];
    }
    *count_out = count;
    return TIDE_OK;
}

TEST(a_line_of_a_hundred_megabytes_is_a_line)
{
    struct long_file file = {.line_bytes = scaled(100) * UINT64_C(1000000)};
    struct tide_mbox_message message;
    struct tide_mem_faulty mem;
    tide_mbox *mbox = NULL;
    tide_error err;
    tide_mem_faulty_once(&mem, UINT64_MAX);
    OK(tide_mbox_new(from_long, &file, 0, &mem.base, &mbox, &err));
    OK(tide_mbox_next(mbox, &message, &err));
    assert_int_equal(message.bytes, file.line_bytes + sizeof "S: 1\n\n");
    OK(tide_mbox_next(mbox, &message, &err));
    assert_string_equal(tide_buf_cstr(message.raw), "S: 2\n\ntwo\n");
    tide_mbox_free(mbox);
    assert_int_equal(mem.bytes_live, 0);
}

TEST(a_message_beyond_the_ceiling_is_skipped_in_little_memory)
{
    struct long_file file = {.line_bytes = UINT64_C(50000000)};
    struct tide_mbox_message message;
    struct tide_mem_faulty mem;
    tide_mbox *mbox = NULL;
    tide_error err;
    tide_mem_faulty_once(&mem, UINT64_MAX);
    OK(tide_mbox_new(from_long, &file, 1 << 20, &mem.base, &mbox, &err));
    OK(tide_mbox_next(mbox, &message, &err));
    assert_true(message.too_long);
    assert_int_equal(message.raw->bytes, 0);
    assert_true(message.bytes > file.line_bytes);
    OK(tide_mbox_next(mbox, &message, &err));
    assert_false(message.too_long);
    assert_string_equal(tide_buf_cstr(message.raw), "S: 2\n\ntwo\n");
    tide_mbox_free(mbox);
    assert_in_range(mem.bytes_peak, 1, 4 << 20);
}

/* ---- faults ---- */

TEST(every_allocation_may_fail)
{
    tide_text file = TIDE_TEXT("From a " DATE "\nS: 1\n\none\n\nFrom b " DATE "\nS: 2\n\ntwo\n");
    bool fired = true;
    for (uint64_t at = 0; fired; at++) {
        struct tide_mem_faulty mem;
        struct tide_mbox_message message;
        tide_mbox *mbox = NULL;
        tide_error err;
        tide_mem_faulty_once(&mem, at);
        tide_status rc = tide_mbox_new(from_memory, &file, 0, &mem.base, &mbox, &err);
        while (rc == TIDE_OK)
            rc = tide_mbox_next(mbox, &message, &err);
        fired = mem.fired;
        assert_int_equal(rc, fired ? TIDE_NO_MEMORY : TIDE_NOT_FOUND);
        tide_mbox_free(mbox);
        assert_int_equal(mem.bytes_live, 0);
    }
}

static tide_status from_broken(void *arg, uint64_t at, char *bytes, size_t room, size_t *count_out,
                               tide_error *err)
{
    (void)arg;
    (void)at;
    (void)bytes;
    (void)room;
    (void)count_out;
    return tide_error_set(err, TIDE_IO, "broken");
}

TEST(a_file_that_cannot_be_read_is_said_to_be_so)
{
    tide_mbox *mbox = NULL;
    struct tide_mbox_message message;
    tide_error err;
    OK(tide_mbox_new(from_broken, NULL, 0, tide_mem_heap(), &mbox, &err));
    assert_int_equal(tide_mbox_next(mbox, &message, &err), TIDE_IO);
    assert_string_equal(err.text, "broken");
    tide_mbox_free(mbox);
}
