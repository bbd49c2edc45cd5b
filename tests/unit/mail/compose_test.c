/* Messages that are written from fields (mail/compose:  WRT1 to WRT3, CMP1 to CMP3, AWR1 to AWR3;
 * K11).
 *
 * Goal: what a person wrote is what our own parser reads back, byte for byte; nothing in a field
 * can become a header, a part or another text; answers and forwards follow the rules.  Method:
 * tables; random fields from a seed; every message of the corpus answered, forwarded and attached,
 * and read again. */
#include "base/rng.h"
#include "mail/compose/answer.h"
#include "mail/compose/written.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/sweep.h"
#include "message_fixture.h"

#define ME "me@home.cz"

static const struct tide_mailbox ann = {{"Ann", 3}, {"ann@x.cz", 8}};

static struct tide_compose simple(void)
{
    return (struct tide_compose){.from = {TIDE_TEXT("Me"), TIDE_TEXT(ME)},
                                 .to = &ann,
                                 .to_count = 1,
                                 .subject = TIDE_TEXT("Plan"),
                                 .text = TIDE_TEXT("Hello\n"),
                                 .message_id = TIDE_TEXT("1@home.cz")};
}

/* WRT1 over the whole message; CMP1 over its headers, by our own eyes. */
static void assert_shape(tide_text mime)
{
    static const char *const known[] = {"Date",
                                        "From",
                                        "To",
                                        "Cc",
                                        "Bcc",
                                        "Subject",
                                        "Message-ID",
                                        "In-Reply-To",
                                        "References",
                                        "X-Tidemark-Draft",
                                        "MIME-Version",
                                        "Content-Type",
                                        "Content-Transfer-Encoding"};
    enum { KNOWN = sizeof known / sizeof known[0] };
    bool head = true;
    size_t next = 0;
    while (mime.bytes > 0) {
        /* Not over all that is left: the thread sanitizer marks what memmem was given. */
        const size_t most = (head ? 998 : 78) + 2;
        const char *end = memmem(mime.data, mime.bytes < most ? mime.bytes : most, "\r\n", 2);
        assert_non_null(end);
        const size_t bytes = (size_t)(end - mime.data);
        for (size_t i = 0; i < bytes; i++)
            assert_true((mime.data[i] >= ' ' && mime.data[i] < 0x7f) ||
                        (!head && mime.data[i] == '\t'));
        head = head && bytes > 0;
        if (head && mime.data[0] != ' ') {
            const char *colon = memchr(mime.data, ':', bytes);
            assert_non_null(colon);
            const size_t name = (size_t)(colon - mime.data);
            while (next < KNOWN &&
                   (strlen(known[next]) != name || memcmp(mime.data, known[next], name) != 0))
                next++;
            if (next == KNOWN)
                fail_msg("a header \"%.*s\"", (int)bytes, mime.data);
            next++; /* in this order, so none twice */
        }
        mime = (tide_text){end + 2, mime.bytes - bytes - 2};
    }
}

static void write_to(const struct tide_compose *compose, tide_buf *out)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_buf_clear(out);
    const tide_status rc = tide_compose_add(compose, out, &err);
    if (rc != TIDE_OK)
        fail_msg("%s: %s", tide_status_name(rc), err.text);
    assert_shape(tide_buf_text(out));
}

static const char *written(const struct tide_compose *compose)
{
    static char text[1 << 16];
    tide_auto_buf out = tide_buf_heap(sizeof text - 1);
    write_to(compose, &out);
    memcpy(text, tide_buf_cstr(&out), out.bytes + 1);
    return text;
}

/* ---- the shape ---- */

TEST(a_message_is_written_whole)
{
    const struct tide_mailbox people[] = {{TIDE_TEXT("Bob \"B\""), TIDE_TEXT("bob@x.cz")},
                                          {TIDE_TEXT(""), TIDE_TEXT("eve@x.cz")}};
    const tide_text ids[] = {TIDE_TEXT("a@x"), TIDE_TEXT("b@x")};
    const struct tide_compose_file file = {TIDE_TEXT("a.txt"), TIDE_TEXT("text/plain"),
                                           TIDE_TEXT("abc")};
    struct tide_compose compose = simple();
    compose.cc = people;
    compose.cc_count = 1;
    compose.bcc = &people[1];
    compose.bcc_count = 1;
    compose.in_reply_to = ids[1];
    compose.references = ids;
    compose.references_count = 2;
    compose.dated = true;
    compose.date_unix_ms = INT64_C(1795030200000);
    compose.zone_minutes = -90;
    compose.files = &file;
    compose.files_count = 1;
    assert_string_equal(written(&compose), "Date: Wed, 18 Nov 2026 18:00:00 -0130\r\n"
                                           "From: \"Me\" <me@home.cz>\r\n"
                                           "To: \"Ann\" <ann@x.cz>\r\n"
                                           "Cc: \"Bob \\\"B\\\"\" <bob@x.cz>\r\n"
                                           "Bcc: <eve@x.cz>\r\n"
                                           "Subject: Plan\r\n"
                                           "Message-ID: <1@home.cz>\r\n"
                                           "In-Reply-To: <b@x>\r\n"
                                           "References: <a@x>\r\n <b@x>\r\n"
                                           "MIME-Version: 1.0\r\n"
                                           "Content-Type: multipart/mixed;\r\n"
                                           " boundary=\"=_tidemark_1f12057ca49251c2\"\r\n"
                                           "\r\n"
                                           "--=_tidemark_1f12057ca49251c2\r\n"
                                           "Content-Type: text/plain; charset=utf-8\r\n"
                                           "Content-Transfer-Encoding: 7bit\r\n"
                                           "\r\n"
                                           "Hello\r\n"
                                           "\r\n"
                                           "--=_tidemark_1f12057ca49251c2\r\n"
                                           "Content-Type: text/plain\r\n"
                                           "Content-Transfer-Encoding: base64\r\n"
                                           "Content-Disposition: attachment;\r\n"
                                           " filename=\"a.txt\"\r\n"
                                           "\r\n"
                                           "YWJj\r\n"
                                           "\r\n"
                                           "--=_tidemark_1f12057ca49251c2--\r\n");
}

/* The body of a message without files, after its headers. */
static const char *body_of(const char *text)
{
    struct tide_compose compose = simple();
    compose.text = tide_text_of(text);
    return strstr(written(&compose), "Content-Transfer-Encoding: ") + 27;
}

TEST(a_text_is_encoded_as_it_needs)
{
    assert_string_equal(body_of("a\nb"), "7bit\r\n\r\na\r\nb\r\n");
    assert_string_equal(body_of("a = b\n"), "7bit\r\n\r\na = b\r\n");
    assert_string_equal(
        body_of("From here\nFrom there \n.\nx=_y\n"),
        "quoted-printable\r\n\r\n=46rom here\r\n=46rom there=20\r\n=2E\r\nx=3D_y\r\n");
    assert_string_equal(body_of("P\xc5\x99\xc3\xadklad a hodn\xc4\x9b jineho textu okolo toho\n"),
                        "quoted-printable\r\n\r\nP=C5=99=C3=ADklad a hodn=C4=9B jineho textu "
                        "okolo toho\r\n");
    assert_string_equal(body_of("\xe6\x97\xa5\xe6\x9c\xac"), "base64\r\n\r\n5pel5pysDQo=\r\n");
    assert_string_equal(body_of(""), "7bit\r\n\r\n");
    /* Long lines, broken softly, with room for the sign. */
    char line[200];
    memset(line, 'a', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    const char *body = body_of(line);
    assert_non_null(strstr(body, "quoted-printable\r\n\r\n"));
    assert_int_equal(strcspn(strstr(body, "\r\n\r\n") + 4, "\r"), 76);
}

/* ---- what is refused ---- */

static void assert_refused(const struct tide_compose *compose, tide_status expected,
                           const char *why)
{
    tide_auto_buf out = tide_buf_heap(TIDE_COMPOSE_BYTES_MAX);
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc = tide_compose_add(compose, &out, &err);
    if (rc != expected || strstr(err.text, why) == NULL)
        fail_msg("%s: \"%s\" instead of \"%s\"", tide_status_name(rc), err.text, why);
}

TEST(a_field_that_would_be_a_header_is_refused)
{
    struct tide_mailbox evil = {TIDE_TEXT("x\r\nBcc: e@evil.org"), TIDE_TEXT("a@x.cz")};
    struct tide_compose compose = simple();
    compose.subject = TIDE_TEXT("a\r\nBcc: e@evil.org");
    assert_refused(&compose, TIDE_INVALID, "the subject has a line end");
    compose = simple();
    compose.to = &evil;
    assert_refused(&compose, TIDE_INVALID, "a name has a line end");
    evil = (struct tide_mailbox){TIDE_TEXT(""), TIDE_TEXT("a@x.cz\r\nBcc: e@evil.org")};
    assert_refused(&compose, TIDE_INVALID, "To: \"a@x.cz");
    evil.address = TIDE_TEXT("nobody");
    assert_refused(&compose, TIDE_INVALID, "To: \"nobody\" is not an address");
    compose = simple();
    compose.message_id = TIDE_TEXT("a@b>\r\nBcc: e");
    assert_refused(&compose, TIDE_INVALID, "the id of a message");
    compose = simple();
    compose.in_reply_to = TIDE_TEXT("a b");
    assert_refused(&compose, TIDE_INVALID, "the id of a message");
    compose = simple();
    compose.token = TIDE_TEXT("a:b");
    assert_refused(&compose, TIDE_INVALID, "the tag of a draft");
    compose = simple();
    const struct tide_compose_file file = {TIDE_TEXT("a\r\n\r\nb"), TIDE_TEXT(""), TIDE_TEXT("x")};
    compose.files = &file;
    compose.files_count = 1;
    assert_refused(&compose, TIDE_INVALID, "the name of a file");
    compose = simple();
    compose.from.address = TIDE_TEXT("");
    assert_refused(&compose, TIDE_INVALID, "From: \"\" is not an address");
}

TEST(what_is_larger_than_gmail_takes_is_refused)
{
    struct tide_mailbox many[TIDE_COMPOSE_RECIPIENTS_MAX + 1];
    struct tide_compose compose = simple();
    for (size_t i = 0; i < TIDE_COMPOSE_RECIPIENTS_MAX + 1; i++)
        many[i] = ann;
    compose.bcc = many;
    compose.bcc_count = TIDE_COMPOSE_RECIPIENTS_MAX;
    assert_refused(&compose, TIDE_FULL, "501 recipients");
    compose = simple();
    tide_auto_buf large = tide_buf_heap(64 << 20);
    char *room = tide_buf_reserve(&large, 27000000);
    memset(room, 7, 27000000);
    large.bytes = 27000000;
    struct tide_compose_file file = {TIDE_TEXT("a"), TIDE_TEXT(""), tide_buf_text(&large)};
    compose.files = &file;
    compose.files_count = 1;
    assert_refused(&compose, TIDE_FULL, "25 MB");
    file.bytes.bytes = 25 << 20; /* what the page takes fits, with the base64 around it */
    tide_auto_buf out = tide_buf_heap(TIDE_COMPOSE_BYTES_MAX);
    write_to(&compose, &out);
    compose.files = NULL;
    compose.files_count = 0;
    compose.text = (tide_text){large.data, TIDE_COMPOSE_TEXT_BYTES_MAX + 1};
    assert_refused(&compose, TIDE_FULL, "the text is longer");
}

/* ---- read back (CMP3) ---- */

static tide_text clean_line(tide_text text, tide_buf *out)
{
    OK(tide_clean_add(text, TIDE_CLEAN_LINE, out));
    return tide_text_trimmed(tide_buf_text(out));
}

static void assert_same(const char *what, tide_text got, tide_text expected)
{
    if (!tide_text_equal(got, expected))
        fail_msg("%s: got \"%.*s\" (%zu)\nexpected \"%.*s\" (%zu)", what, (int)got.bytes, got.data,
                 got.bytes, (int)expected.bytes, expected.data, expected.bytes);
}

static void assert_files(const struct tide_compose *compose, tide_text mime,
                         const struct tide_message *message)
{
    assert_int_equal(message->attachments_count, compose->files_count);
    for (size_t i = 0; i < compose->files_count; i++) {
        const struct tide_attachment *file = &message->attachments[i];
        tide_auto_buf bytes = tide_buf_heap(64 << 20);
        tide_error err = {TIDE_OK, 0, ""};
        OK(tide_attachment_decode(mime, file, &bytes, &err));
        assert_same("a file", tide_buf_text(&bytes), compose->files[i].bytes);
        assert_false(file->inlined);
    }
}

static void assert_read_back(const struct tide_compose *compose)
{
    tide_auto_buf mime = tide_buf_heap(64 << 20);
    write_to(compose, &mime);
    struct parsed parsed;
    parse(tide_buf_text(&mime), &parsed);
    const struct tide_message *message = &parsed.message;
    assert_int_equal(message->parsed, TIDE_PARSED_WHOLE);
    tide_auto_buf subject = tide_buf_heap(1 << 16), text = tide_buf_heap(8 << 20);
    assert_same("subject", message->subject, clean_line(compose->subject, &subject));
    OK(tide_clean_add(compose->text, TIDE_CLEAN_TEXT, &text));
    if (text.bytes > 0 && text.data[text.bytes - 1] != '\n')
        OK(tide_buf_add(&text, "\n", 1));
    assert_same("text", tide_text_trimmed(message->text), tide_text_trimmed(tide_buf_text(&text)));
    assert_same("id", message->message_id, compose->message_id);
    struct tide_mailbox people[TIDE_MAILBOXES_MAX];
    assert_int_equal(tide_mailboxes_read(message->to, people, TIDE_MAILBOXES_MAX),
                     compose->to_count);
    for (size_t i = 0; i < compose->to_count; i++)
        assert_same("to", people[i].address, compose->to[i].address);
    assert_files(compose, tide_buf_text(&mime), message);
    parsed_done(&parsed);
}

TEST(names_of_files_are_read_back_as_they_were)
{
    static const char *const names[] = {
        "a.pdf",
        "P\xc5\x99\xc3\xadloha \xc4\x8d. 1.pdf",
        ("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe3\x83\x95\xe3\x82\xa1\xe3\x82\xa4\xe3"
         "\x83"
         "\xab\xe5\x90\x8d\xe3\x81\x8c\xe3\x81\xa8\xe3\x81\xa6\xe3\x82\x82\xe9\x95\xb7\xe3\x81\x84."
         "txt"),
        "a \"quoted\" one.txt",
        "it's 100% =?utf-8?Q?a?=; name=b.txt",
        ("a very long name of a file in plain ASCII that does not fit in one line of a header at "
         "all, whatever one does with it.docx"),
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct tide_compose_file file = {tide_text_of(names[i]), TIDE_TEXT("text/csv"),
                                               TIDE_TEXT("1,2")};
        struct tide_compose compose = simple();
        compose.files = &file;
        compose.files_count = 1;
        tide_auto_buf mime = tide_buf_heap(1 << 20);
        write_to(&compose, &mime);
        struct parsed parsed;
        parse(tide_buf_text(&mime), &parsed);
        assert_int_equal(parsed.message.attachments_count, 1);
        assert_text(parsed.message.attachments[0].name, names[i]);
        assert_text(parsed.message.attachments[0].type, "text/csv");
        parsed_done(&parsed);
    }
}

TEST(the_type_of_a_file_is_a_type_of_a_file)
{
    static const struct {
        const char *said, *written;
    } cases[] = {{"application/pdf", "application/pdf"},
                 {"", "application/octet-stream"},
                 {"text", "application/octet-stream"},
                 {"text/", "application/octet-stream"},
                 {"text/plain; charset=x", "application/octet-stream"},
                 {"message/rfc822", "application/octet-stream"},
                 {"Multipart/mixed", "application/octet-stream"},
                 {"a/b\r\nX: y", "application/octet-stream"},
                 {"image/svg+xml", "image/svg+xml"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tide_compose_file file = {TIDE_TEXT(""), tide_text_of(cases[i].said),
                                               TIDE_TEXT("x")};
        struct tide_compose compose = simple();
        compose.files = &file;
        compose.files_count = 1;
        const char *second = strstr(strstr(written(&compose), "7bit"), "Content-Type: ");
        assert_memory_equal(second + 14, cases[i].written, strlen(cases[i].written));
        assert_memory_equal(second + 14 + strlen(cases[i].written), "\r\n", 2);
    }
}

/* Texts made of what is dangerous in a message. */
static void fill(tide_rng *rng, tide_buf *out, bool lines)
{
    static const char *const pieces[] = {
        "a",
        "word ",
        " ",
        "=",
        "=?utf-8?Q?a?=",
        "=_tidemark_",
        "--",
        "From ",
        ".",
        "\xc5\x99",
        "\xe6\x97\xa5",
        "\xf0\x9f\x99\x82",
        "\"",
        "\\",
        ";",
        "%",
        "'",
        "\t",
        "< >",
        ",",
        "0123456789012345678901234567890123456789012345678901234567890123456789"};
    tide_buf_clear(out);
    for (uint64_t count = tide_rng_below(rng, 30); count > 0; count--) {
        const char *piece = pieces[tide_rng_below(rng, sizeof pieces / sizeof pieces[0])];
        if (!lines && piece[0] == '\t')
            continue;
        OK(tide_buf_add_text(out, piece));
        if (lines && tide_rng_below(rng, 6) == 0)
            OK(tide_buf_add_text(out, "\n"));
    }
}

TEST(random_messages_are_read_back)
{
    tide_rng rng = tide_rng_seeded(17);
    for (uint64_t round = 0; round < scaled(3000); round++) {
        tide_auto_buf subject = tide_buf_heap(1 << 16), text = tide_buf_heap(1 << 16),
                      name = tide_buf_heap(1 << 16), bytes = tide_buf_heap(1 << 16);
        struct tide_compose compose = simple();
        fill(&rng, &subject, false);
        fill(&rng, &text, true);
        fill(&rng, &name, false);
        for (uint64_t count = tide_rng_below(&rng, 200); count > 0; count--) {
            const char byte = (char)tide_rng_below(&rng, 256);
            OK(tide_buf_add(&bytes, &byte, 1));
        }
        const struct tide_compose_file files[] = {
            {tide_utf8_cut(tide_buf_text(&name), 200), TIDE_TEXT("application/x"),
             tide_buf_text(&bytes)},
            {TIDE_TEXT("b"), TIDE_TEXT(""), tide_buf_text(&text)}};
        compose.subject = tide_buf_text(&subject);
        compose.text = tide_buf_text(&text);
        compose.opaque = tide_rng_below(&rng, 4) == 0;
        compose.files = files;
        compose.files_count = tide_rng_below(&rng, 3);
        assert_read_back(&compose);
    }
}

/* ---- answers ---- */

static struct tide_answered answered_of(const struct tide_message *message)
{
    return (struct tide_answered){.from = message->from,
                                  .to = message->to,
                                  .cc = message->cc,
                                  .reply_to = message->reply_to,
                                  .subject = message->subject,
                                  .message_id = message->message_id,
                                  .references = message->references,
                                  .has_date = message->has_date,
                                  .date_unix_ms = message->date_ms,
                                  .text = message->text};
}

static const char *names_of(const struct tide_mailbox *people, size_t count)
{
    static char text[2][4096];
    static unsigned turn;
    char *out = text[turn++ % 2];
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(out + at, sizeof text[0] - at, "%s%.*s", i == 0 ? "" : " ",
                               (int)people[i].address.bytes, people[i].address.data);
    return out;
}

TEST(an_answer_goes_to_whom_it_should)
{
    static const struct {
        struct tide_answered answered;
        tide_answer_to whom;
        const char *to, *cc;
    } cases[] = {
        {{.from = {"a@x.cz", 6}, .reply_to = {"b@x.cz, c@x.cz", 14}},
         TIDE_ANSWER_ONE,
         "b@x.cz",
         ""},
        {{.from = {"a@x.cz", 6}, .reply_to = {"b@x.cz, c@x.cz", 14}},
         TIDE_ANSWER_SENDER,
         "b@x.cz c@x.cz",
         ""},
        {{.from = {"a@x.cz", 6},
          .to = {"ME@home.cz, b@x.cz", 18},
          .cc = {"alias@home.cz, A@x.cz", 21}},
         TIDE_ANSWER_EVERYONE,
         "a@x.cz",
         "b@x.cz"},
        {{.from = {"alias@home.cz", 13}, .to = {"a@x.cz", 6}}, TIDE_ANSWER_SENDER, "a@x.cz", ""},
        {{.from = {"alias@home.cz", 13}, .to = {"me@home.cz", 10}}, TIDE_ANSWER_SENDER, ME, ""},
        {{.from = {"nobody", 6}}, TIDE_ANSWER_EVERYONE, "", ""},
    };
    const tide_text selves[] = {TIDE_TEXT(ME), TIDE_TEXT("alias@home.cz")};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tide_recipients people;
        tide_answer_recipients(&cases[i].answered, selves, 2, cases[i].whom, &people);
        assert_string_equal(names_of(people.to, people.to_count), cases[i].to);
        assert_string_equal(names_of(people.cc, people.cc_count), cases[i].cc);
    }
}

TEST(a_forward_says_fwd_once_and_what_it_repeats)
{
    static const struct {
        const char *subject, *forwarded;
    } subjects[] = {{"Plan", "Fwd: Plan"},
                    {"FW: fwd: WG: Plan", "Fwd: Plan"},
                    {"Re: Plan", "Fwd: Re: Plan"},
                    {"", "Fwd: "}};
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        tide_auto_buf out = tide_buf_heap(1000);
        OK(tide_answer_subject(tide_text_of(subjects[i].subject), true, &out));
        assert_string_equal(tide_buf_cstr(&out), subjects[i].forwarded);
    }
    const struct tide_answered answered = {.from = TIDE_TEXT("Ann <a@x.cz>"),
                                           .to = TIDE_TEXT(ME),
                                           .subject = TIDE_TEXT("Plan"),
                                           .has_date = true,
                                           .date_unix_ms = INT64_C(1795030200000),
                                           .text = TIDE_TEXT("One\ntwo\n")};
    tide_auto_buf out = tide_buf_heap(1000);
    OK(tide_answer_forward(&answered, 100, &out));
    assert_string_equal(tide_buf_cstr(&out), "---------- Forwarded message ---------\n"
                                             "From: Ann <a@x.cz>\nDate: 18 November 2026\n"
                                             "Subject: Plan\nTo: " ME "\n\nOne\ntwo\n");
    tide_buf_clear(&out);
    OK(tide_answer_forward(&answered, 5, &out));
    assert_non_null(strstr(tide_buf_cstr(&out), "One\nt\n[...]\n"));
}

TEST(typed_recipients_are_taken_whole_or_refused)
{
    static const struct {
        const char *typed;
        size_t count;
        const char *wrong;
    } cases[] = {
        {"", 0, ""},
        {"a@x.cz", 1, ""},
        {"a@x.cz, ", 1, ""},
        {"Ann Lee <a@x.cz>, \"B, C\" <b@x.cz>,c@x.cz", 3, ""},
        {"a@x.cz, ann", 1, "ann"},
        {"a@x.cz b@x.cz", 0, "a@x.cz b@x.cz"},
        {"<a@x.cz", 0, "<a@x.cz"},
        {"a@x.cz, b@x.cz, c@x.cz, d@x.cz", 4, "d@x.cz"}, /* no room for more */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tide_mailbox people[4];
        size_t count = 0;
        tide_text wrong;
        const bool good =
            tide_mailboxes_typed(tide_text_of(cases[i].typed), people, 4, &count, &wrong);
        assert_int_equal(good, cases[i].wrong[0] == '\0');
        assert_text(wrong, cases[i].wrong);
        if (good)
            assert_int_equal(count, cases[i].count);
    }
}

/* ---- what a page keeps ---- */

static const char *written_as(const char *json, bool sending, tide_status expected)
{
    static char out[4096];
    tide_auto_buf mime = tide_buf_heap(sizeof out - 1);
    tide_error err = {TIDE_OK, 0, ""};
    const struct tide_written page = {.json = tide_text_of(json),
                                      .from = {TIDE_TEXT(""), TIDE_TEXT(ME)},
                                      .message_id = TIDE_TEXT("1@home.cz"),
                                      .sending = sending};
    const tide_status rc = tide_written_add(&page, &mime, &err);
    if (rc != expected)
        fail_msg("%s: %s", tide_status_name(rc), err.text);
    (void)snprintf(out, sizeof out, "%s", rc == TIDE_OK ? tide_buf_cstr(&mime) : err.text);
    return out;
}

TEST(what_a_page_keeps_is_sent_or_refused_by_its_field)
{
    assert_string_equal(
        written_as("{\"to\":\"Ann <ann@x.cz>, bob@x.cz\",\"bcc\":\"eve@x.cz\",\"subject\":\"Re: "
                   "Plan\",\"text\":\"Hello\",\"in_reply_to\":\"<b@x>\",\"references\":\"a@x  "
                   "<b@x>\",\"thread\":\"t1\"}",
                   true, TIDE_OK),
        "From: <me@home.cz>\r\nTo: \"Ann\" <ann@x.cz>,\r\n <bob@x.cz>\r\nBcc: <eve@x.cz>\r\n"
        "Subject: Re: Plan\r\nMessage-ID: <1@home.cz>\r\nIn-Reply-To: <b@x>\r\n"
        "References: <a@x>\r\n <b@x>\r\nMIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n"
        "Hello\r\n");
    assert_string_equal(written_as("{\"to\":\"ann\"}", true, TIDE_INVALID),
                        "to: \"ann\" is not an address");
    assert_string_equal(written_as("{\"to\":\" \"}", true, TIDE_INVALID),
                        "the message has no recipient");
    assert_non_null(strstr(
        written_as("{\"to\":\"a@x.cz\",\"subject\":\"a\\nBcc: e@x.cz\"}", true, TIDE_INVALID),
        "the subject has a line end"));
    (void)written_as("{\"to\":7}", true, TIDE_INVALID);
    (void)written_as("[]", true, TIDE_INVALID);
    (void)written_as("{", true, TIDE_INVALID);
}

TEST(a_draft_may_be_half_typed)
{
    const char *draft =
        written_as("{\"to\":\"ann@x.cz, bo\",\"subject\":\"a\\nBcc: e@x.cz\"}", false, TIDE_OK);
    assert_non_null(strstr(draft, "To: <ann@x.cz>\r\nSubject: a Bcc: e@x.cz\r\nMessage-ID"));
    assert_non_null(strstr(written_as("{}", false, TIDE_OK), "From: <me@home.cz>\r\nMessage-ID"));
}

/* ---- the corpus ---- */

/* Answers a message, forwards it with its files, and reads both again. */
static void answer_and_forward(const struct tide_message *message, tide_text raw)
{
    const struct tide_answered answered = answered_of(message);
    const tide_text self = TIDE_TEXT(ME);
    struct tide_recipients people;
    tide_text ids[TIDE_COMPOSE_REFERENCES_MAX];
    tide_auto_buf subject = tide_buf_heap(1000), text = tide_buf_heap(TIDE_COMPOSE_TEXT_BYTES_MAX);
    tide_answer_recipients(&answered, &self, 1, TIDE_ANSWER_EVERYONE, &people);
    OK(tide_answer_subject(answered.subject, false, &subject));
    OK(tide_answer_quote(&answered, 100000, &text));
    struct tide_compose compose = simple();
    compose.to = people.to;
    compose.to_count = people.to_count;
    compose.cc = people.cc;
    compose.cc_count = people.cc_count;
    compose.subject = tide_buf_text(&subject);
    compose.text = tide_buf_text(&text);
    compose.references = ids;
    compose.references_count = tide_answer_references(&answered, ids);
    compose.in_reply_to =
        tide_compose_is_id(answered.message_id) ? answered.message_id : TIDE_TEXT("");
    assert_read_back(&compose);
    tide_buf_clear(&subject);
    tide_buf_clear(&text);
    OK(tide_answer_subject(answered.subject, true, &subject));
    OK(tide_answer_forward(&answered, 100000, &text));
    const struct tide_compose_file file = {TIDE_TEXT("message.eml"), TIDE_TEXT("message/rfc822"),
                                           raw};
    compose.subject = tide_buf_text(&subject);
    compose.text = tide_buf_text(&text);
    compose.files = &file;
    compose.files_count = 1;
    assert_read_back(&compose);
}

TEST(every_message_of_the_corpus_is_answered_and_forwarded)
{
    struct corpus *corpus = corpus_open();
    if (corpus == NULL)
        print_message("the corpus is missing: nothing of it was answered\n");
    for (size_t i = 0; corpus != NULL && i < corpus->count; i++) {
        struct parsed parsed;
        parse(corpus->files[i], &parsed);
        answer_and_forward(&parsed.message, corpus->files[i]);
        parsed_done(&parsed);
    }
    if (corpus != NULL)
        corpus_close(corpus);
}

static tide_status one_message(tide_mem *mem)
{
    const struct tide_compose_file file = {TIDE_TEXT("P\xc5\x99\xc3\xadloha.pdf"), TIDE_TEXT(""),
                                           TIDE_TEXT("x")};
    struct tide_compose compose = simple();
    compose.subject = TIDE_TEXT("P\xc5\x99\xc3\xadklad");
    compose.text = TIDE_TEXT("d\xc3\xadky moc a tak d\xc3\xa1le\n");
    compose.files = &file;
    compose.files_count = 1;
    tide_auto_buf mime = tide_buf_in(mem, 1 << 20);
    return tide_compose_add(&compose, &mime, NULL);
}

TEST(a_message_survives_every_failed_allocation)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        const tide_status rc = one_message(&mem.base);
        assert_swept(mem, rc);
    }
}
