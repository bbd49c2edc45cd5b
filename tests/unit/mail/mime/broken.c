/* Messages that were damaged from a seed, cut short, or read without memory. */
#include "message_examples.h"
#include "unit/mail/message_fixture.h"

#include "base/rng.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"
#include "support/sweep.h"

/* ---- broken messages ---- */

static const char *const pieces[] = {
    "\n--=b\n",
    "\n--=b--\n",
    "=?utf-8?Q?",
    "?=",
    "\"",
    "(",
    ")",
    "<",
    ">",
    ",",
    ";",
    ":",
    "\r",
    "\n",
    "\r\n",
    "\n\n",
    "\t",
    " ",
    "=",
    "=\n",
    "boundary=",
    "name*0*=",
    "''",
    "%",
    "<!--",
    "-->",
    "<script>",
    "&#x",
    "\033$B",
    "\377\376",
    "\303",
    "\342\202",
    "base64",
    "charset=gb2312",
    "message/rfc822",
    "multipart/x",
};

/* One to eight changes: bytes, runs that are lost or doubled, and pieces that
 * mean something. */
static void mutate(tide_buf *raw, tide_rng *rng)
{
    size_t changes = 1 + (size_t)tide_rng_below(rng, 8);
    for (size_t i = 0; i < changes && raw->bytes > 0; i++) {
        size_t at = (size_t)tide_rng_below(rng, raw->bytes);
        size_t run = (size_t)tide_rng_below(rng, 40);
        run = run < raw->bytes - at ? run : raw->bytes - at;
        switch (tide_rng_below(rng, 4)) {
        case 0:
            raw->data[at] = (char)tide_rng_next(rng);
            break;
        case 1:
            memmove(raw->data + at, raw->data + at + run, raw->bytes - at - run);
            raw->bytes -= run;
            break;
        case 2:
            if (tide_buf_reserve(raw, run) != NULL) {
                memmove(raw->data + at + run, raw->data + at, raw->bytes - at);
                raw->bytes += run;
            }
            break;
        default: {
            const char *piece = pieces[tide_rng_below(rng, sizeof pieces / sizeof pieces[0])];
            size_t bytes = strlen(piece);
            bytes = bytes < raw->bytes - at ? bytes : raw->bytes - at;
            memcpy(raw->data + at, piece, bytes);
            break;
        }
        }
    }
}

static void parse_mutated(tide_text original, uint64_t seed)
{
    tide_rng rng = tide_rng_seeded(seed);
    tide_buf raw = heap_buf(original.bytes + 1000);
    OK(tide_buf_add(&raw, original.data, original.bytes));
    mutate(&raw, &rng);
    tide_text bytes = exact(tide_buf_text(&raw));
    struct parsed parsed;
    parse(bytes, &parsed);
    parsed_done(&parsed);
    exact_free(bytes);
    tide_buf_done(&raw);
}

static uint64_t seed_now; /* 0 when nothing is under way */

static int say_seed(void **state)
{
    (void)state;
    if (seed_now != 0)
        print_message("seed %" PRIu64 "\n", seed_now);
    return 0;
}

TEST_WITH(broken_messages_are_read_too, NULL, say_seed)
{
    struct corpus *corpus = corpus_open();
    size_t rounds = scaled(100000);
    for (uint64_t seed = 1; seed <= rounds; seed++) {
        tide_rng rng = tide_rng_seeded(seed * 7919);
        tide_text original =
            tide_text_of(message_examples[tide_rng_below(&rng, message_examples_count)].raw);
        if (corpus != NULL && tide_rng_chance(&rng, 1, 2))
            original = corpus->files[tide_rng_below(&rng, corpus->count)];
        if (original.bytes > 40000)
            continue;
        seed_now = seed;
        parse_mutated(original, seed);
        seed_now = 0;
    }
    corpus_close(corpus);
}

static const char all_of_it[] =
    "From: =?utf-8?Q?J=C3=BCrgen?= <j@b.de>\r\nTo: Team: a@b, \"x, y\" <c@d>;\r\n"
    "Subject: =?big5?B?wWPF6Q==?= =?gb2312?B?vPLM5Q==?=\r\nDate: Fri, 21 Nov 1997 09:55:06 "
    "-0600\r\n"
    "Message-ID: <a@b>\r\nReferences: <c@d> <e@f>\r\n"
    "Content-Type: multipart/mixed; boundary=\"=b\"\r\n\r\n--=b\r\n"
    "Content-Type: text/plain; charset=koi8-r\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    "8NLJ18XU\r\n--=b\r\nContent-Type: text/html; charset=iso-8859-1\r\n"
    "Content-Transfer-Encoding: quoted-printable\r\n\r\n<p>gr=FC=DFe &amp; more</p>\r\n"
    "--=b\r\nContent-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\ninner text\r\n"
    "--=b\r\nContent-Type: application/pdf;\r\n name*0*=utf-8''a%C3%A4; name*1=.pdf\r\n"
    "Content-Transfer-Encoding: base64\r\n\r\nQUJD\r\n--=b--\r\n";

TEST(every_beginning_of_a_message_is_a_message)
{
    for (size_t bytes = 0; bytes < sizeof all_of_it; bytes++) {
        tide_text raw = exact((tide_text){all_of_it, bytes});
        struct parsed parsed;
        parse(raw, &parsed);
        parsed_done(&parsed);
        exact_free(raw);
    }
}

TEST(every_failed_allocation_is_reported)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        tide_arena arena;
        struct tide_message message = {.date_ms = 77};
        tide_arena_init(&arena, &mem.base, 1 << 20);
        tide_status rc =
            tide_message_parse((tide_text){all_of_it, sizeof all_of_it - 1}, &arena, &message);
        if (rc == TIDE_OK)
            assert_text(message.subject, "\347\271\201\351\253\224\347\256\200\344\275\223");
        else
            assert_int_equal(message.date_ms, 77); /* untouched */
        tide_arena_done(&arena);
        assert_swept(mem, rc);
    }
}
