/* The body of a message as it is shown: which parts, in which character set, and the limits met
 * exactly (mail/mime/body.h); the names under which attachments are saved. */
#include "mail/mime/body.h"
#include "mail/mime/file_name.h"
#include "mail/wash/wash.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/wash_scan.h"
#include "unit/mail/message_fixture.h"

struct shown {
    tide_arena arena;
    struct tide_body body;
};

static void show(tide_text raw, struct shown *shown)
{
    const tide_text bytes = exact(raw);
    tide_arena_init(&shown->arena, tide_mem_heap(), 256 << 20);
    OK(tide_body_read(bytes, &shown->arena, &shown->body));
    exact_free(bytes);
    for (size_t i = 0; i < shown->body.count; i++) {
        if (shown->body.pieces[i].text.bytes < 1 << 20)      /* longer ones are filling */
            assert_clean(shown->body.pieces[i].text, false); /* BDY2 */
        assert_true(shown->body.pieces[i].text.bytes > 0);
    }
}

static void shown_done(struct shown *shown)
{
    tide_arena_done(&shown->arena);
}

/* ---- which parts ---- */

/* A tree of parts as text: "alternative(plain html)"; a leaf "html@x" has the Content-ID x, "!html"
 * is attached, "related@x(...)" has start=x. */
static const char *leaf_type(tide_text name)
{
    static const struct {
        const char *name, *type;
    } types[] = {{"html", "text/html"},      {"plain", "text/plain"},
                 {"png", "image/png"},       {"ics", "text/calendar"},
                 {"amp", "text/x-amp-html"}, {"pdf", "application/pdf"},
                 {"rich", "text/enriched"},  {"status", "message/delivery-status"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (tide_text_equal(name, tide_text_of(types[i].name)))
            return types[i].type;
    fail_msg("no type %.*s", (int)name.bytes, name.data);
    return "";
}

struct tree {
    const char *at;
    unsigned leaves, containers;
    tide_buf raw;
};

static tide_text word(struct tree *tree)
{
    const size_t bytes = strcspn(tree->at, "@() ");
    const tide_text text = {tree->at, bytes};
    tree->at += bytes;
    return text;
}

/* Writes the headers and the body of the part at the front; recurses as deep as the test says. */
static void write_part(struct tree *tree)
{
    const bool attached = *tree->at == '!';
    tree->at += attached;
    const tide_text name = word(tree);
    tide_text id = TIDE_TEXT("");
    if (*tree->at == '@') {
        tree->at++;
        id = word(tree);
    }
    if (attached)
        OK(tide_buf_add_text(&tree->raw, "Content-Disposition: attachment\n"));
    if (*tree->at != '(') {
        if (id.bytes > 0)
            OK(tide_buf_print(&tree->raw, "Content-ID: <%.*s>\n", (int)id.bytes, id.data));
        OK(tide_buf_print(&tree->raw, "Content-Type: %s\n\n%.*s%u\n", leaf_type(name),
                          (int)name.bytes, name.data, ++tree->leaves));
        return;
    }
    tree->at++;
    if (tide_text_equal(name, TIDE_TEXT("message"))) {
        OK(tide_buf_add_text(&tree->raw, "Content-Type: message/rfc822\n\n"));
        write_part(tree);
    } else {
        const unsigned number = ++tree->containers;
        OK(tide_buf_print(&tree->raw, "Content-Type: multipart/%.*s; boundary=b%u%s%.*s%s\n\n",
                          (int)name.bytes, name.data, number, id.bytes > 0 ? "; start=\"<" : "",
                          (int)id.bytes, id.data, id.bytes > 0 ? ">\"" : ""));
        while (*tree->at != ')') {
            OK(tide_buf_print(&tree->raw, "--b%u\n", number));
            write_part(tree);
            tree->at += *tree->at == ' ';
        }
        OK(tide_buf_print(&tree->raw, "--b%u--\n", number));
    }
    assert_int_equal(*tree->at, ')');
    tree->at++;
}

static void assert_shown(const char *text, const char *expected)
{
    struct tree tree = {.at = text, .raw = heap_buf(1 << 20)};
    struct shown shown;
    struct parsed parsed;
    tide_buf got = heap_buf(1000);
    OK(tide_buf_add_text(&tree.raw, "From: a@b\n"));
    write_part(&tree);
    show(tide_buf_text(&tree.raw), &shown);
    bool html = false;
    for (size_t i = 0; i < shown.body.count; i++) {
        const tide_text piece = tide_text_trimmed(shown.body.pieces[i].text);
        OK(tide_buf_print(&got, "%s%.*s", i == 0 ? "" : " ", (int)piece.bytes, piece.data));
        html = html || shown.body.pieces[i].html;
    }
    if (strcmp(tide_buf_cstr(&got), expected) != 0)
        fail_msg("%s shows \"%s\", not \"%s\"", text, tide_buf_cstr(&got), expected);
    assert_int_equal(shown.body.html, html);
    assert_null(shown.body.problem);
    parse(tide_buf_text(&tree.raw), &parsed); /* which says the same */
    assert_int_equal(parsed.message.has_html, html);
    parsed_done(&parsed);
    shown_done(&shown);
    tide_buf_done(&got);
    tide_buf_done(&tree.raw);
}

TEST(the_shown_parts_are_those_of_a_mail_reader)
{
    assert_shown("html", "html1");
    assert_shown("plain", "plain1");
    assert_shown("pdf", "");
    assert_shown("!html", "");
    assert_shown("alternative(plain html)", "html2");
    assert_shown("alternative(html plain)", "html1");
    assert_shown("alternative(plain html ics)", "html2");
    assert_shown("alternative(plain amp html)", "html3");
    assert_shown("alternative(plain rich)", "rich2");
    assert_shown("alternative(plain ics)", "ics2");
    assert_shown("alternative(plain pdf)", "plain1");
    assert_shown("alternative(plain html html)", "html3");
    assert_shown("alternative(plain related(html png))", "html2");
    assert_shown("alternative(plain mixed(html pdf))", "html2");
    assert_shown("alternative(plain !html)", "plain1");
    assert_shown("related(alternative(plain html) png)", "html2");
    assert_shown("related(png html)", "html2");
    assert_shown("related(html html)", "html1");
    assert_shown("related@x(html html@x png)", "html2");
    assert_shown("related@x(html html@y)", "html1");
    assert_shown("related@x(html png@x)", "html1");
    assert_shown("related@x(related@x(html@x html) html@x)", "html3");
    assert_shown("mixed(related(alternative(plain html) png) pdf)", "html2");
    assert_shown("mixed(html pdf html)", "html1 html3");
    assert_shown("mixed(html png plain)", "html1 plain3");
    assert_shown("mixed(html !html !plain)", "html1");
    assert_shown("mixed(plain message(html))", "plain1");
    assert_shown("mixed(plain message(mixed(html html)))", "plain1");
    assert_shown("mixed(html !mixed(html plain))", "html1");
    assert_shown("message(html)", "html1");
    assert_shown("message(alternative(plain html))", "html2");
    assert_shown("report(plain status message(html))", "plain1 status2");
    assert_shown("alternative(alternative(alternative(plain html) plain) plain)", "html2");
    assert_shown("signed(alternative(plain html) pdf)", "html2");
}

static void assert_typed(const char *text, const char *expected)
{
    struct tree tree = {.at = text, .raw = heap_buf(1 << 20)};
    struct tide_body body;
    tide_arena arena;
    tide_buf got = heap_buf(1000);
    OK(tide_buf_add_text(&tree.raw, "From: a@b\n"));
    write_part(&tree);
    tide_arena_init(&arena, tide_mem_heap(), 256 << 20);
    OK(tide_body_read_plain(tide_buf_text(&tree.raw), &arena, &body));
    for (size_t i = 0; i < body.count; i++) {
        const tide_text piece = tide_text_trimmed(body.pieces[i].text);
        OK(tide_buf_print(&got, "%s%.*s", i == 0 ? "" : " ", (int)piece.bytes, piece.data));
        assert_memory_equal(tree.raw.data + body.pieces[i].begin, piece.data, piece.bytes);
    }
    if (strcmp(tide_buf_cstr(&got), expected) != 0)
        fail_msg("%s was typed as \"%s\", not \"%s\"", text, tide_buf_cstr(&got), expected);
    tide_arena_done(&arena);
    tide_buf_done(&got);
    tide_buf_done(&tree.raw);
}

TEST(the_typed_part_of_an_alternative_is_its_plain_text)
{
    assert_typed("html", "html1");
    assert_typed("plain", "plain1");
    assert_typed("alternative(plain html)", "plain1");
    assert_typed("alternative(html plain)", "plain2");
    assert_typed("alternative(plain plain html)", "plain2");
    assert_typed("alternative(plain html ics)", "plain1");
    assert_typed("alternative(plain rich)", "plain1");
    assert_typed("alternative(html ics)", "html1");
    assert_typed("alternative(ics)", "ics1");
    assert_typed("alternative(!plain html)", "html2");
    assert_typed("alternative(plain related(html png))", "plain1");
    assert_typed("alternative(plain mixed(html plain))", "plain1");
    assert_typed("alternative(mixed(html plain))", "html1 plain2");
    assert_typed("alternative(mixed(plain plain) html)", "plain1 plain2");
    assert_typed("related(alternative(plain html) png)", "plain1");
    assert_typed("mixed(related(alternative(plain html) png) pdf)", "plain1");
    assert_typed("mixed(alternative(plain html) message(html))", "plain1");
    assert_typed("mixed(html !html plain)", "html1 plain3");
}

/* ---- character sets ---- */

static const struct {
    const char *type; /* its parameters */
    const char *body;
    const char *text;
} sets[] = {
    {"; charset=utf-8", "<p>Gr\303\274\303\237e", "<p>Grüße"},
    {"; charset=iso-8859-1", "<p>Gr\374\337e", "<p>Grüße"},
    {"; charset=koi8-r", "\360\322\311\327\305\324", "Привет"},
    /* By the page alone. */
    {"", "<meta charset=koi8-r>\360\322\311\327\305\324", "<meta charset=koi8-r>Привет"},
    {"", "<META CHARSET = 'KOI8-R'>\360\322\311\327\305\324", "<META CHARSET = 'KOI8-R'>Привет"},
    {"", "<meta content='text/html; charset=windows-1251'>\317\360\350\342\345\362",
     "<meta content='text/html; charset=windows-1251'>Привет"},
    /* The header is unknown or says nothing: the page counts. */
    {"; charset=unknown-8bit", "<meta charset=koi8-r>\360\322", "<meta charset=koi8-r>Пр"},
    {"; charset=us-ascii", "<meta charset=koi8-r>\360\322", "<meta charset=koi8-r>Пр"},
    {"; charset=\"\"", "<meta charset=koi8-r>\360\322", "<meta charset=koi8-r>Пр"},
    /* Both: the header counts. */
    {"; charset=koi8-r", "<meta charset=utf-8>\360\322", "<meta charset=utf-8>Пр"},
    /* A page that can be read is not in UTF-16. */
    {"", "<meta charset=utf-16>Gr\303\274\303\237e", "<meta charset=utf-16>Grüße"},
    /* Neither is right: the bytes tell. */
    {"", "<meta charset=nonsense>Gr\374\337e", "<meta charset=nonsense>Grüße"},
    {"; charset=iso-8859-1", "Gr\303\274\303\237e", "Grüße"},
    {"; charset=utf-8", "Gr\374\337e", "Grüße"},
    {"", "<meta charset=>x", "<meta charset=>x"},
    {"", "<meta charset", "<meta charset"},
    {"", "\377\376G\000r\000\374\000", NULL}, /* a byte order mark; its length is below */
};

TEST(a_page_is_read_in_its_character_set)
{
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        tide_buf raw = heap_buf(1 << 20);
        struct shown shown;
        OK(tide_buf_print(&raw, "From: a@b\nContent-Type: text/html%s\n\n", sets[i].type));
        OK(tide_buf_add(&raw, sets[i].body, sets[i].text == NULL ? 8 : strlen(sets[i].body)));
        show(tide_buf_text(&raw), &shown);
        assert_int_equal(shown.body.count, 1);
        assert_text(shown.body.pieces[0].text, sets[i].text == NULL ? "Grü" : sets[i].text);
        shown_done(&shown);
        tide_buf_done(&raw);
    }
}

/* The declaration is looked for at the front; a later one is text. */
TEST(a_late_declaration_is_not_believed)
{
    tide_buf raw = heap_buf(1 << 20);
    struct shown shown;
    OK(tide_buf_add_text(&raw, "From: a@b\nContent-Type: text/html\n\n"));
    for (int i = 0; i < 300; i++)
        OK(tide_buf_add_text(&raw, "0123456789"));
    OK(tide_buf_add_text(&raw, "<meta charset=koi8-r>\374"));
    show(tide_buf_text(&raw), &shown);
    assert_non_null(
        memmem(shown.body.pieces[0].text.data, shown.body.pieces[0].text.bytes, "ü", strlen("ü")));
    shown_done(&shown);
    tide_buf_done(&raw);
}

/* ---- limits ---- */

static void add_filling(tide_buf *raw, size_t bytes)
{
    char *room = tide_buf_reserve(raw, bytes);
    assert_non_null(room);
    memset(room, 'x', bytes);
    raw->bytes += bytes;
    raw->data[raw->bytes] = '\0';
}

/* A body of exactly the limit is whole; one byte more, and it is cut there and says so. */
static void assert_limit(const char *encoding, size_t bytes, size_t kept, bool cut)
{
    tide_buf raw = heap_buf(64 << 20);
    struct shown shown;
    OK(tide_buf_print(&raw, "From: a@b\nContent-Type: text/html\nContent-Transfer-Encoding: %s\n\n",
                      encoding));
    add_filling(&raw, bytes);
    show(tide_buf_text(&raw), &shown);
    assert_int_equal(shown.body.count, 1);
    assert_int_equal(shown.body.pieces[0].text.bytes, kept);
    assert_int_equal(shown.body.problem != NULL, cut);
    shown_done(&shown);
    tide_buf_done(&raw);
}

TEST(the_limit_of_a_body_is_met_exactly)
{
    const size_t max = TIDE_BODY_BYTES_MAX;
    assert_limit("8bit", max, max, false);
    assert_limit("8bit", max + 1, max, true);
    assert_limit("quoted-printable", max, max, false);
    assert_limit("quoted-printable", max + 1, max, true);
    /* "xxxx" are three bytes, C7 1C 71: bytes of no character set's text, shown as Latin-1. */
    struct shown shown;
    tide_buf raw = heap_buf(64 << 20);
    OK(tide_buf_add_text(&raw, "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\n"));
    add_filling(&raw, (size_t)max / 3 * 4 + 400);
    show(tide_buf_text(&raw), &shown);
    assert_true(shown.body.pieces[0].text.bytes <= max);
    assert_true(shown.body.pieces[0].text.bytes > max - 4);
    assert_non_null(shown.body.problem);
    shown_done(&shown);
    tide_buf_done(&raw);
}

/* The limit is that of all parts together. */
TEST(parts_share_the_limit)
{
    tide_buf raw = heap_buf(64 << 20);
    struct shown shown;
    OK(tide_buf_add_text(&raw, "Content-Type: multipart/mixed; boundary=b\n\n--b\n"
                               "Content-Type: text/html\n\n"));
    add_filling(&raw, TIDE_BODY_BYTES_MAX - 10);
    OK(tide_buf_add_text(&raw, "\n--b\nContent-Type: text/html\n\n0123456789abc\n--b\n"
                               "Content-Type: text/html\n\nnot shown\n--b--\n"));
    show(tide_buf_text(&raw), &shown);
    assert_int_equal(shown.body.count, 2);
    assert_text(shown.body.pieces[1].text, "0123456789");
    assert_non_null(shown.body.problem);
    shown_done(&shown);
    tide_buf_done(&raw);
}

TEST(an_empty_message_has_no_body)
{
    struct shown shown;
    show(TIDE_TEXT(""), &shown);
    assert_int_equal(shown.body.count, 0);
    assert_false(shown.body.html);
    shown_done(&shown);
    show(TIDE_TEXT("Content-Type: text/html\n\n"), &shown);
    assert_int_equal(shown.body.count, 0);
    assert_true(shown.body.html);
    shown_done(&shown);
}

TEST(it_survives_every_failed_allocation)
{
    const tide_text raw =
        TIDE_TEXT("Content-Type: multipart/related; boundary=b; start=\"<x>\"\n\n--b\n"
                  "Content-Type: text/html; charset=koi8-r\nContent-ID: <x>\n"
                  "Content-Transfer-Encoding: base64\n\n8NLJ18XU\n--b\nContent-Type: "
                  "image/png\n\nx\n--b--\n");
    for (uint64_t fail_at = 0;; fail_at++) {
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        tide_arena arena;
        struct tide_body body = {.count = 0};
        tide_arena_init(&arena, &mem.base, 1 << 20);
        const tide_status rc = tide_body_read(raw, &arena, &body);
        const bool fired = mem.fired;
        if (rc == TIDE_OK)
            assert_int_equal(body.count, 1);
        tide_arena_done(&arena);
        assert_int_equal(mem.bytes_live, 0);
        if (!fired) {
            OK(rc);
            return;
        }
        assert_int_equal(rc, TIDE_NO_MEMORY);
    }
}

/* ---- the corpus ---- */

/* Bodies of real mail: the same twice, washed without harm, and washing again changes nothing. */
TEST(the_bodies_of_the_corpus_are_washed)
{
    struct corpus *corpus = corpus_open();
    size_t html = 0, remote = 0, cids = 0;
    for (size_t i = 0; corpus != NULL && i < corpus->count; i++) {
        struct shown one, two;
        show(corpus->files[i], &one);
        show(corpus->files[i], &two);
        assert_int_equal(one.body.count, two.body.count); /* BDY1 */
        struct tide_wash_piece pieces[TIDE_MESSAGE_PARTS_MAX];
        for (size_t k = 0; k < one.body.count; k++) {
            assert_true(tide_text_equal(one.body.pieces[k].text, two.body.pieces[k].text));
            pieces[k] = (struct tide_wash_piece){one.body.pieces[k].text, !one.body.pieces[k].html};
        }
        tide_buf out = heap_buf(128 << 20), again = heap_buf(256 << 20);
        struct tide_washed washed;
        OK(tide_html_wash_pieces(pieces, one.body.count, &one.arena, &out, &washed));
        const char *why = wash_scan(tide_buf_text(&out));
        if (why != NULL)
            fail_msg("%s: %s", corpus->names[i], why);
        html += one.body.html;
        remote += washed.remote_count;
        cids += washed.cids_count;
        OK(tide_html_wash(tide_buf_text(&out), &one.arena, &again, &washed));
        assert_true(tide_text_equal(tide_buf_text(&out), tide_buf_text(&again)));
        tide_buf_done(&out);
        tide_buf_done(&again);
        shown_done(&one);
        shown_done(&two);
    }
    if (corpus != NULL) {
        print_message("corpus: %zu messages, %zu with HTML, %zu remote images, %zu of their own\n",
                      corpus->count, html, remote, cids);
        assert_true(html > 0);
    }
    corpus_close(corpus);
    if (corpus == NULL)
        skip();
}

/* ---- the names of attachments ---- */

static const struct {
    const char *sent, *safe;
} names[] = {
    {"plan.pdf", "plan.pdf"},
    {"../../evil.txt", "_.._evil.txt"},
    {"..", "attachment-7"},
    {"", "attachment-7"},
    {" . . ", "attachment-7"},
    {".bashrc", "bashrc"},
    {"a/b\\c:d*e?f\"g<h>i|j.txt", "a_b_c_d_e_f_g_h_i_j.txt"},
    {"x\001\033[2J\177.txt", "x__[2J_.txt"},
    {"x\302\233y.txt", "x_y.txt"},
    {"invoice\342\200\256fdp.exe", "invoicefdp.exe"},
    {"\330\234a\342\200\216b\342\201\246c\357\273\277.txt", "abc.txt"},
    {"CON", "_CON"},
    {"nul.txt", "_nul.txt"},
    {"Com3.tar.gz", "_Com3.tar.gz"},
    {"console.txt", "console.txt"},
    {"name. ", "name"},
    {"a.b c", "a.b c"},
    {"a. pdf", "a.pdf"},
    {"\377\376.txt", "__.txt"},
    {"Grüße 日本.png", "Grüße 日本.png"},
};

TEST(an_attachment_is_saved_under_a_safe_name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct tide_attachment attachment = {.name = tide_text_of(names[i].sent),
                                                   .type = TIDE_TEXT("text/plain")};
        char name[TIDE_FILE_NAME_BYTES_MAX + 1];
        tide_file_name(&attachment, 7, name);
        assert_string_equal(name, names[i].safe);
    }
    const struct tide_attachment letter = {.name = TIDE_TEXT(""),
                                           .type = TIDE_TEXT("message/rfc822")};
    char name[TIDE_FILE_NAME_BYTES_MAX + 1];
    tide_file_name(&letter, 1, name);
    assert_string_equal(name, "attachment-1.eml");
}

/* Names of every length, in characters of one to four bytes: FNM1, FNM4. */
TEST(a_long_name_keeps_its_end_and_its_characters)
{
    static const char *const characters[] = {"x", "ü", "日", "😀"};
    for (size_t kind = 0; kind < 4; kind++) {
        for (size_t count = 1; count < 300; count++) {
            tide_buf sent = heap_buf(4096);
            for (size_t i = 0; i < count; i++)
                OK(tide_buf_add_text(&sent, characters[kind]));
            OK(tide_buf_add_text(&sent, ".pdf"));
            const struct tide_attachment attachment = {.name = tide_buf_text(&sent),
                                                       .type = TIDE_TEXT("text/plain")};
            char name[TIDE_FILE_NAME_BYTES_MAX + 1];
            tide_file_name(&attachment, 1, name);
            assert_clean(tide_text_of(name), true);
            assert_string_equal(name + strlen(name) - 4, ".pdf");
            tide_buf_done(&sent);
        }
    }
}
