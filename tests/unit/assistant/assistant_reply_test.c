/* The message of a draft or reply (RPL1 to RPL4 of assistant/text/reply.h; J11).
 *
 * Goal: the right people, one Re:, the thread's ids, our tag; and no header but ours.
 * Method: messages that are answered, and the result read back by the mail parser; random bytes in
 * every place that a stranger can fill. */
#include "assistant/text/marker.h"
#include "assistant/text/reply.h"
#include "base/rng.h"
#include "support/heap.h"
#include "support/scale.h"
#include "support/sweep.h"
#include "letters.h"

static const char *raw_reply(const struct tide_letter *answered, bool everyone, const char *body)
{
    static char out[1 << 20];
    tide_auto_buf mime = tide_buf_heap(sizeof out - 1);
    tide_error err = {TIDE_OK, 0, ""};
    const struct tide_reply reply = {.answered = answered,
                                     .self = TIDE_TEXT("me@home.cz"),
                                     .token = TIDE_TEXT("tok-EN_1"),
                                     .body = tide_text_of(body),
                                     .everyone = everyone};
    OK(tide_reply_add(&reply, &mime, &err));
    memcpy(out, mime.data, mime.bytes + 1);
    return out;
}

TEST(a_reply_is_written_whole)
{
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    const struct tide_letter letter =
        letter_of(&arena, "From: Jan \"J\" <jan@x.cz>\r\nTo: me@home.cz, Bob <bob@x.cz>\r\n"
                          "Cc: eve@x.cz\r\nSubject: RE: Re[2]: re : Faktura\r\n"
                          "Message-ID: <two@x.cz>\r\nReferences: <one@x.cz>\r\n\r\nHi\r\n");
    assert_string_equal(raw_reply(&letter, true, TIDE_MARKER "\n\nAhoj\n"),
                        "From: <me@home.cz>\r\n"
                        "To: \"Jan J\" <jan@x.cz>\r\n"
                        "Cc: \"Bob\" <bob@x.cz>,\r\n <eve@x.cz>\r\n"
                        "Subject: Re: Faktura\r\n"
                        "In-Reply-To: <two@x.cz>\r\n"
                        "References: <one@x.cz>\r\n <two@x.cz>\r\n"
                        "X-Tidemark-Draft: tok-EN_1\r\n"
                        "MIME-Version: 1.0\r\n"
                        "Content-Type: text/plain; charset=utf-8\r\n"
                        "Content-Transfer-Encoding: base64\r\n"
                        "\r\n"
                        "4pyC77iPDQoNCkFob2oNCg==\r\n");
}

TEST(the_recipients_follow_from_the_headers)
{
    static const struct {
        const char *raw;
        bool everyone;
        const char *to, *cc;
    } cases[] = {
        {"From: a@x.cz\r\n\r\n", true, "a@x.cz", ""},
        {"From: a@x.cz\r\nReply-To: b@x.cz\r\n\r\n", true, "b@x.cz", ""},
        {"From: a@x.cz\r\nReply-To: ME@home.cz\r\n\r\n", true, "a@x.cz", ""},
        {"From: a@x.cz\r\nReply-To: garbage\r\n\r\n", true, "a@x.cz", ""},
        {"From: a@x.cz\r\nTo: b@x.cz, me@home.cz\r\nCc: A@x.cz, c@x.cz\r\n\r\n", true, "a@x.cz",
         "b@x.cz c@x.cz"},
        {"From: a@x.cz\r\nTo: b@x.cz\r\nCc: c@x.cz\r\n\r\n", false, "a@x.cz", ""},
        {"From: a@x.cz\r\nReply-To: b@x.cz, c@x.cz\r\n\r\n", true, "b@x.cz c@x.cz", ""},
        {"From: a@x.cz\r\nReply-To: b@x.cz, c@x.cz\r\n\r\n", false, "b@x.cz", ""},
        /* The user wrote last: a reply goes on to whom they wrote. */
        {"From: Me <me@home.cz>\r\nTo: a@x.cz, b@x.cz\r\nCc: c@x.cz\r\n\r\n", true, "a@x.cz b@x.cz",
         "c@x.cz"},
        {"From: me@home.cz\r\nTo: me@home.cz\r\n\r\n", true, "me@home.cz", ""},
        {"From: me@home.cz\r\nReply-To: evil@x.cz\r\nTo: a@x.cz\r\n\r\n", true, "a@x.cz", ""},
        {"From: nobody\r\n\r\nwrite to evil@x.cz\r\n", true, "", ""},
        {"\r\n", true, "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_auto_arena arena = tide_arena_heap(1 << 20);
        const struct tide_letter letter = letter_of(&arena, cases[i].raw);
        struct tide_recipients people;
        tide_reply_recipients(&letter, TIDE_TEXT("me@home.cz"), cases[i].everyone, &people);
        tide_auto_buf to = tide_buf_heap(1000), cc = tide_buf_heap(1000);
        for (size_t j = 0; j < people.to_count; j++)
            OK(tide_buf_print(&to, "%s%.*s", j == 0 ? "" : " ", (int)people.to[j].address.bytes,
                              people.to[j].address.data));
        for (size_t j = 0; j < people.cc_count; j++)
            OK(tide_buf_print(&cc, "%s%.*s", j == 0 ? "" : " ", (int)people.cc[j].address.bytes,
                              people.cc[j].address.data));
        assert_string_equal(tide_buf_cstr(&to), cases[i].to);
        assert_string_equal(tide_buf_cstr(&cc), cases[i].cc);
    }
}

static const char *subject_of(const char *subject)
{
    static char out[4096];
    tide_auto_buf text = tide_buf_heap(sizeof out - 1);
    OK(tide_answer_subject(tide_text_of(subject), false, &text));
    (void)snprintf(out, sizeof out, "%s", tide_buf_cstr(&text));
    return out;
}

TEST(a_subject_gets_one_re)
{
    assert_string_equal(subject_of("Hello"), "Re: Hello");
    assert_string_equal(subject_of("re:re: RE[12]:Hello"), "Re: Hello");
    assert_string_equal(subject_of("Odp: AW: Sv: Hello"), "Re: Hello");
    assert_string_equal(subject_of("Regarding: x"), "Re: Regarding: x");
    assert_string_equal(subject_of("Fwd: x"), "Re: Fwd: x");
    assert_string_equal(subject_of("Re[x]: y"), "Re: Re[x]: y");
    assert_string_equal(subject_of(""), "Re: ");
    assert_string_equal(subject_of("a\r\nBcc: evil@x.cz"), "Re: a Bcc: evil@x.cz");
    char large[4000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    assert_int_equal(strlen(subject_of(large)), 4 + TIDE_ANSWER_SUBJECT_BYTES_MAX);
}

TEST(a_long_thread_keeps_its_first_and_its_last_ids)
{
    tide_auto_buf raw = tide_buf_heap(64 << 10);
    OK(tide_buf_print(&raw, "From: a@x.cz\r\nMessage-ID: <own@x>\r\nReferences:"));
    for (int i = 0; i < 100; i++)
        OK(tide_buf_print(&raw, "\r\n <id%d@x>", i));
    OK(tide_buf_print(&raw, "\r\n <own@x> <%0300d@x>\r\n\r\n", 1)); /* twice; too long */
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    const struct tide_letter letter = letter_of(&arena, tide_buf_cstr(&raw));
    const char *mime = raw_reply(&letter, true, "x");
    const char *references = strstr(mime, "References: <id0@x>\r\n <id82@x>");
    assert_non_null(references);
    assert_non_null(strstr(mime, "<id99@x>\r\n <own@x>\r\nX-Tidemark-Draft"));
    size_t ids = 0;
    for (const char *at = references; at < strstr(mime, "X-Tidemark-Draft"); at++)
        ids += *at == '<';
    assert_int_equal(ids, TIDE_COMPOSE_REFERENCES_MAX);
}

TEST(what_is_ours_must_be_right)
{
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    const struct tide_letter letter = letter_of(&arena, "From: a@x.cz\r\n\r\n");
    tide_auto_buf mime = tide_buf_heap(1 << 20);
    tide_error err = {TIDE_OK, 0, ""};
    struct tide_reply reply = {.answered = &letter, .self = TIDE_TEXT("me@x.cz\r\nBcc: e@x.cz")};
    assert_int_equal(tide_reply_add(&reply, &mime, &err), TIDE_INVALID);
    reply.self = TIDE_TEXT("me@x.cz");
    reply.token = TIDE_TEXT("a\r\nBcc: e@x.cz");
    assert_int_equal(tide_reply_add(&reply, &mime, &err), TIDE_INVALID);
    reply.token = TIDE_TEXT("");
    OK(tide_reply_add(&reply, &mime, &err));
    assert_null(strstr(tide_buf_cstr(&mime), "X-Tidemark-Draft"));
}

/* RPL2: read by our own eyes, not by a parser that might be as wrong as the writer. */
static void assert_headers(const char *mime)
{
    static const char *const known[] = {"From",
                                        "To",
                                        "Cc",
                                        "Subject",
                                        "In-Reply-To",
                                        "References",
                                        "X-Tidemark-Draft",
                                        "MIME-Version",
                                        "Content-Type",
                                        "Content-Transfer-Encoding"};
    size_t last = 0;
    bool first = true;
    while (strncmp(mime, "\r\n", 2) != 0) {
        const size_t bytes = strcspn(mime, "\r\n");
        assert_true(bytes > 0 && bytes <= 998);
        assert_memory_equal(mime + bytes, "\r\n", 2);
        for (size_t i = 0; i < bytes; i++)
            assert_true(mime[i] >= ' ' && mime[i] < 0x7f);
        if (mime[0] != ' ') {
            const size_t name = strcspn(mime, ":");
            size_t i = first ? 0 : last + 1; /* in this order, so none twice */
            while (i < 10 && (strlen(known[i]) != name || strncmp(mime, known[i], name) != 0))
                i++;
            if (i == 10)
                fail_msg("a header \"%.60s\"", mime);
            last = i;
            first = false;
        }
        mime += bytes + 2;
    }
    for (mime += 2; *mime != '\0'; mime++) /* RPL4 */
        assert_true(strchr("\r\n+/=", *mime) != NULL || (*mime >= 'a' && *mime <= 'z') ||
                    (*mime >= 'A' && *mime <= 'Z') || (*mime >= '0' && *mime <= '9'));
}

TEST(no_bytes_of_a_stranger_become_a_header)
{
    static const char *const pieces[] = {"a@x.cz",
                                         "\r\n",
                                         "\n",
                                         "\r",
                                         "Bcc: e@evil.org",
                                         "<",
                                         ">",
                                         ",",
                                         "\"",
                                         ":",
                                         " ",
                                         ";",
                                         "\\",
                                         "\xc5\x99",
                                         "\xff",
                                         "\0",
                                         "(",
                                         ")",
                                         "=?utf-8?Q?=0D=0ABcc:_e?=",
                                         "=?utf-8?B?DQpCY2M6IGVAZXZpbC5vcmc=?=",
                                         "\xe2\x80\xa8",
                                         "\x0b",
                                         "\x85",
                                         "Re: ",
                                         "me@home.cz"};
    tide_rng rng = tide_rng_seeded(29);
    static const char *const names[] = {"From",    "Reply-To",   "To",        "Cc",
                                        "Subject", "Message-ID", "References"};
    for (uint64_t round = 0; round < scaled(5000); round++) {
        struct tide_letter_header headers[7];
        tide_buf values[7];
        for (size_t i = 0; i < 7; i++) {
            values[i] = heap_buf(4096);
            for (uint64_t count = tide_rng_below(&rng, 8); count > 0; count--) {
                const size_t piece = tide_rng_below(&rng, sizeof pieces / sizeof pieces[0]);
                const size_t bytes = pieces[piece][0] == '\0' ? 1 : strlen(pieces[piece]);
                OK(tide_buf_add(&values[i], pieces[piece], bytes));
            }
            headers[i] =
                (struct tide_letter_header){tide_text_of(names[i]), tide_buf_text(&values[i])};
        }
        tide_auto_arena arena = tide_arena_heap(1 << 20);
        struct tide_letter letter;
        OK(tide_letter_make(headers, 7, tide_buf_text(&values[4]), &arena, &letter));
        const char *mime = raw_reply(&letter, true, "x\r\n\r\nBcc: e@evil.org\r\n.\r\n");
        assert_headers(mime);
        struct tide_letter back;
        OK(tide_letter_read(tide_text_of(mime), &arena, &back));
        size_t cursor = 0;
        tide_text value = TIDE_TEXT_NONE;
        assert_false(tide_letter_header(&back, "Bcc", &cursor, &value));
        assert_int_equal(back.headers_count <= 10, true);
        assert_says(tide_letter_sender(&back), "me@home.cz");
        assert_memory_equal(back.subject.data, "Re:", 3);
        assert_says(back.message_id, "");
        for (size_t i = 0; i < 7; i++)
            tide_buf_done(&values[i]);
    }
}

/* What display names and subjects say survives the way there and back. */
TEST(names_and_subjects_are_read_back_as_they_were)
{
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    const struct tide_letter letter = letter_of(
        &arena, "From: =?utf-8?Q?Nov=C3=A1k=2C_Jan_=22J=22?= <jan@x.cz>\r\nSubject: "
                "=?utf-8?Q?P=C5=99=C3=ADli=C5=A1_=C5=BElu=C5=A5ou=C4=8Dk=C3=BD_k=C5=AF=C5=88_"
                "=C3=BAp=C4=9Bl_=C4=8F=C3=A1belsk=C3=A9_=C3=B3dy?=\r\n\r\n");
    struct tide_letter back;
    OK(tide_letter_read(tide_text_of(raw_reply(&letter, true, "d\xc3\xadky\n")), &arena, &back));
    assert_says(back.to, "\"Nov\xc3\xa1k, Jan \\\"J\\\"\" <jan@x.cz>");
    assert_says(back.subject, textf("Re: %.*s", (int)letter.subject.bytes, letter.subject.data));
    assert_says(back.text, "d\xc3\xadky\n");
}

/* A name or subject that says "=?utf-8?Q?hidden?=" once it is decoded must not be decoded again. */
TEST(what_looks_like_an_encoded_word_stays_what_it_is)
{
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    const struct tide_letter letter =
        letter_of(&arena, "From: =?utf-8?B?PT91dGYtOD9RP2hpZGRlbj89?= <jan@x.cz>\r\n"
                          "Subject: =?utf-8?B?PT91dGYtOD9RP2hpZGRlbj89?=\r\n\r\n");
    assert_says(letter.subject, "=?utf-8?Q?hidden?=");
    struct tide_letter back;
    OK(tide_letter_read(tide_text_of(raw_reply(&letter, true, "x\n")), &arena, &back));
    assert_says(back.subject, "Re: =?utf-8?Q?hidden?=");
    assert_says(back.to, "=?utf-8?Q?hidden?= <jan@x.cz>");
}

static tide_status one_reply(tide_mem *mem)
{
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    const struct tide_letter letter =
        letter_of(&arena, "From: =?utf-8?Q?J=C3=A1n?= <a@x.cz>\r\nSubject: x\r\n\r\n");
    tide_auto_buf mime = tide_buf_in(mem, 1 << 20);
    const struct tide_reply reply = {
        .answered = &letter, .self = TIDE_TEXT("me@x.cz"), .body = TIDE_TEXT("x")};
    return tide_reply_add(&reply, &mime, NULL);
}

TEST(a_reply_survives_every_failed_allocation)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        const tide_status rc = one_reply(&mem.base);
        assert_swept(mem, rc);
    }
}
