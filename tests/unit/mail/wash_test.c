/* Washing HTML for display.  The hostile inputs (tests/fixtures/wash/hostile.txt) are judged by what
 * must hold for any result, with a reader that shares nothing with the module
 * (support/wash_scan.h); ordinary mail (mails.txt) by its exact result. */
#include "mail/wash/wash.h"
#include "base/check.h"
#include "base/rng.h"
#include "support/test.h"
#include "support/wash_scan.h"

enum {
    HOSTILE_MIN = 500,
    MAILS_MIN = 40,
    RANDOM_INPUTS = 30000,
    ROOM = 64 << 20,
    NAME_BYTES = 200
};

/* ---- files ---- */

static void read_fixture(const char *name, tide_buf *out)
{
    char path[1000], piece[4096];
    assert_true(snprintf(path, sizeof path, "%s/%s", TIDE_WASH_FIXTURES, name) < (int)sizeof path);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (size_t bytes; (bytes = fread(piece, 1, sizeof piece, file)) > 0;)
        assert_int_equal(tide_buf_add(out, piece, bytes), TIDE_OK);
    assert_int_equal(fclose(file), 0);
}

/* The next line without its end; false: there is none. */
static bool next_line(tide_text *rest, tide_text *line_out)
{
    if (rest->bytes == 0)
        return false;
    const char *end = memchr(rest->data, '\n', rest->bytes);
    size_t bytes = end == NULL ? rest->bytes : (size_t)(end - rest->data);
    *line_out = (tide_text){rest->data, bytes};
    rest->data += bytes + (end != NULL);
    rest->bytes -= bytes + (end != NULL);
    return true;
}

static bool starts(tide_text text, const char *with)
{
    return text.bytes >= strlen(with) && memcmp(text.data, with, strlen(with)) == 0;
}

/* ---- one wash ---- */

struct result {
    tide_buf out;
    tide_arena arena;
    struct tide_washed washed;
    tide_status rc;
};

static void wash_into(struct result *result, tide_text html, size_t room)
{
    tide_buf_init(&result->out, tide_mem_heap(), room);
    tide_arena_init(&result->arena, tide_mem_heap(), ROOM);
    result->rc = tide_html_wash(html, &result->arena, &result->out, &result->washed);
}

static void result_done(struct result *result)
{
    tide_buf_done(&result->out);
    tide_arena_done(&result->arena);
}

static void assert_washed(const char *html, const char *expected)
{
    struct result result;
    wash_into(&result, tide_text_of(html), ROOM);
    assert_int_equal(result.rc, TIDE_OK);
    assert_string_equal(tide_buf_cstr(&result.out), expected);
    result_done(&result);
}

/* ---- hostile inputs ---- */

static int hex_value(char c)
{
    const char *digits = "0123456789abcdef", *found = c == '\0' ? NULL : strchr(digits, c);
    assert_non_null(found);
    return (int)(found - digits);
}

static void add_byte(tide_buf *out, char c)
{
    assert_int_equal(tide_buf_add(out, &c, 1), TIDE_OK);
}

/* A line with \n \r \t \\ \xHH read; not the repetitions. */
static void add_bytes(tide_text line, tide_buf *out)
{
    for (size_t i = 0; i < line.bytes; i++) {
        if (line.data[i] != '\\') {
            add_byte(out, line.data[i]);
            continue;
        }
        assert_true(++i < line.bytes);
        char c = line.data[i];
        if (c == 'x') {
            assert_true(i + 2 < line.bytes);
            add_byte(out, (char)(hex_value(line.data[i + 1]) << 4 | hex_value(line.data[i + 2])));
            i += 2;
        } else {
            assert_non_null(strchr("nrt\\", c));
            add_byte(out, c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c);
        }
    }
}

/* The same with \*N{text}. */
static void read_input(tide_text line, tide_buf *out)
{
    size_t at = 0;
    for (size_t i = 0; i + 1 < line.bytes; i++) {
        if (line.data[i] != '\\')
            continue;
        if (line.data[++i] != '*')
            continue;
        add_bytes((tide_text){line.data + at, i - 1 - at}, out);
        char *brace = NULL;
        unsigned long times = strtoul(line.data + i + 1, &brace, 10);
        assert_int_equal(*brace, '{');
        const char *end = memchr(brace, '}', line.bytes - (size_t)(brace - line.data));
        assert_non_null(end);
        while (times-- > 0)
            add_bytes((tide_text){brace + 1, (size_t)(end - brace) - 1}, out);
        at = (size_t)(end - line.data) + 1;
        i = at - 1;
    }
    add_bytes((tide_text){line.data + at, line.bytes - at}, out);
}

/* NULL, or what does not hold. */
static const char *judge(tide_text html)
{
    struct result once, twice, small;
    wash_into(&once, html, ROOM);
    tide_text result = tide_buf_text(&once.out);
    const char *problem = once.rc == TIDE_OK ? wash_scan(result) : "it failed";
    if (problem == NULL && result.bytes > TIDE_WASH_GROWTH * html.bytes)
        problem = "it grew too much";
    if (problem == NULL && once.washed.work > 6 * html.bytes + 16)
        problem = "it took too many steps";
    wash_into(&twice, result, ROOM);
    if (problem == NULL && !tide_text_equal(result, tide_buf_text(&twice.out)))
        problem = "washing it again changes it";
    wash_into(&small, html, result.bytes / 2 + 4000);
    if (problem == NULL && small.rc != TIDE_OK && small.rc != TIDE_FULL)
        problem = "it failed in a small buffer";
    if (problem == NULL)
        problem = wash_scan(tide_buf_text(&small.out));
    result_done(&once);
    result_done(&twice);
    result_done(&small);
    return problem;
}

TEST(every_hostile_input_is_harmless)
{
    tide_buf file, html;
    tide_buf_init(&file, tide_mem_heap(), ROOM);
    tide_buf_init(&html, tide_mem_heap(), ROOM);
    read_fixture("hostile.txt", &file);
    tide_text rest = tide_buf_text(&file), line, about = TIDE_TEXT("");
    size_t count = 0, failed = 0;
    while (next_line(&rest, &line)) {
        if (line.bytes == 0 || line.data[0] == '#')
            continue;
        if (line.data[0] == '[') {
            about = line;
            continue;
        }
        tide_buf_clear(&html);
        read_input(line, &html);
        const char *problem = judge(tide_buf_text(&html));
        if (problem != NULL) {
            print_error("%.*s %s: %.*s\n", (int)about.bytes, about.data, problem, (int)line.bytes,
                        line.data);
            failed++;
        }
        count++;
    }
    tide_buf_done(&file);
    tide_buf_done(&html);
    assert_int_equal(failed, 0);
    assert_true(count >= HOSTILE_MIN);
}

/* The reader that judges must be able to find something. */
TEST(the_scanner_refuses_what_was_not_washed)
{
    static const char *const bad[] = {
        "<script>",
        "<b>",
        "</b>",
        "<b></i>",
        "<B></B>",
        "<b onclick=\"x\"></b>",
        "<b class=x></b>",
        "<b class=\"a\" class=\"b\"></b>",
        "<b title=\"<\"></b>",
        "<b title=\"&quot;\"></b>",
        "<a href=\"javascript:x\" rel=\"noopener noreferrer\"></a>",
        "<a href=\"https://x\"></a>",
        "<img src=\"https://x\">",
        "<img src=\"data:image/svg+xml;base64,AA\">",
        "<b id=\"x\"></b>",
        "<p style=\"a:url(x)\"></p>",
        "<p style=\"a:b\\c\"></p>",
        "<p style=\"@media\"></p>",
        "<style>@import 'x'</style>",
        "<style>a{b:c</style>",
        "<style>a{b:expression(c)}</style>",
        "<style>a{b:'c}</style>",
        "<svg></svg>",
        "<!-- -->",
        "a & b",
        "a > b",
        "\x01",
        "\x80",
        "\xc2\x80",
        "\xed\xa0\x80",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (wash_scan(tide_text_of(bad[i])) == NULL)
            fail_msg("not refused: %s", bad[i]);
    }
}

/* ---- every name ---- */

/* All elements and attributes that HTML has or had; more may be on our lists than are on the
 * scanner's only if both are changed. */
static const char all_elements[] =
    "a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big "
    "blink blockquote body br button canvas caption center cite code col colgroup command content "
    "data datalist dd del details dfn dialog dir div dl dt element em embed fencedframe fieldset "
    "figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr "
    "html i iframe image img input ins isindex kbd keygen label layer legend li link listing main "
    "map mark marquee math menu menuitem meta meter multicol nav nextid nobr noembed noframes "
    "noscript object ol optgroup option output p param picture plaintext portal pre progress q rb "
    "rbc rp rt rtc ruby s samp script search section select selectmenu shadow slot small source "
    "spacer span strike strong style sub summary sup svg table tbody td template textarea tfoot th "
    "thead time title tr track tt u ul var video wbr xml xmp animate foreignobject desc mi mo mn "
    "ms mtext mglyph annotation-xml use set path text tspan";
static const char all_attributes[] =
    "abbr accept accept-charset accesskey action align alink allow allowfullscreen alt archive "
    "aria-hidden aria-label aria-labelledby async attributionsrc autocapitalize autocomplete "
    "autofocus autoplay axis background behavior bgcolor border capture cellpadding cellspacing "
    "char charset checked cite class classid clear code codebase codetype color cols colspan "
    "compact content contenteditable controls coords crossorigin data datafld datasrc datetime "
    "declare decoding default defer dir dirname disabled download draggable dynsrc elementtiming "
    "enctype enterkeyhint exportparts face fetchpriority for form formaction formenctype "
    "formmethod formnovalidate formtarget frame frameborder headers height hidden high href "
    "hreflang hspace http-equiv id imagesizes imagesrcset inert inputmode integrity is ismap "
    "itemid itemprop itemref itemscope itemtype kind label lang language link list loading "
    "longdesc loop low lowsrc manifest marginheight marginwidth max maxlength media method min "
    "minlength multiple muted name nohref nomodule nonce noresize noshade novalidate nowrap object "
    "onabort onblur onclick onerror onfocus onload onmouseover onpointerdown ontoggle open optimum "
    "part pattern ping placeholder playsinline popover popovertarget poster preload profile prompt "
    "readonly referrerpolicy rel required rev reversed role rows rowspan rules sandbox scheme "
    "scope scrolling selected shadowrootmode shape size sizes slot span spellcheck src srcdoc "
    "srclang srcset standby start step style summary tabindex target text title translate type "
    "typemustmatch usemap valign value valuetype version vlink vspace width wrap "
    "writingsuggestions "
    "xlink:href xml:base xmlns";

TEST(no_name_gets_through_that_the_scanner_does_not_know)
{
    static const char *const on[] = {"a", "img", "p", "body", "table", "td", "font", "style"};
    char html[200];
    tide_text rest = TIDE_TEXT(all_elements), word;
    while ((word = tide_text_word(&rest)).bytes > 0) {
        (void)snprintf(html, sizeof html, "<table><tr><td><%.*s>a{b:c}</%.*s>x", (int)word.bytes,
                       word.data, (int)word.bytes, word.data);
        assert_null(judge(tide_text_of(html)));
    }
    rest = TIDE_TEXT(all_attributes);
    while ((word = tide_text_word(&rest)).bytes > 0) {
        for (size_t i = 0; i < sizeof on / sizeof on[0]; i++) {
            (void)snprintf(html, sizeof html,
                           "<table><tr><%s %.*s=\"1\" %.*s=\"cid:x\">a{b:c}</%s>", on[i],
                           (int)word.bytes, word.data, (int)word.bytes, word.data, on[i]);
            assert_null(judge(tide_text_of(html)));
        }
    }
}

/* And all that the scanner knows is shown. */
TEST(every_element_of_the_scanner_is_shown)
{
    tide_text lists[] = {TIDE_TEXT(wash_scan_elements), TIDE_TEXT(wash_scan_voids)}, word;
    for (size_t i = 0; i < 2; i++) {
        tide_text rest = {lists[i].data + 1, lists[i].bytes - 1};
        while ((word = tide_text_word(&rest)).bytes > 0) {
            char html[100], tag[40];
            (void)snprintf(html, sizeof html, "<table><%.*s>a{b:c}", (int)word.bytes, word.data);
            (void)snprintf(tag, sizeof tag, "<%.*s>", (int)word.bytes, word.data);
            struct result result;
            wash_into(&result, tide_text_of(html), ROOM);
            assert_non_null(strstr(tide_buf_cstr(&result.out), tag));
            result_done(&result);
        }
    }
}

/* ---- random inputs ---- */

static const char *const html_pieces[] = {
    "<b>",      "</b>",         "<div>",     "</div>",    "<p>",
    "</p>",     "<table>",      "</table>",  "<tr>",      "<td>",
    "</td>",    "<th>",         "<tbody>",   "<caption>", "<colgroup>",
    "<col>",    "<ul>",         "<li>",      "</ul>",     "<dl>",
    "<dt>",     "<dd>",         "<a href=",  "<a>",       "</a>",
    "//x",      "https://",     "mailto:",   ">",         "<style>",
    "</style>", "<style",       "<body",     "</body>",   " bgcolor=",
    " text=",   " style=\"",    " class='",  " id=",      " title=\"",
    " src=",    " background=", "cid:",      "img/1",     "<img",
    "<script>", "</script>",    "<title>",   "<svg>",     "<br>",
    "<pre>",    "<center>",     "</center>", "<font",     "</font>",
    "<!--",     "-->",          "<!",        "</",        "<x",
    "&amp;",    "&lt;",         "&copy=",    "&#x3c;",    "&",
    "%41",      "\r",           "\x01",      "\x80",      "\xc2\x80",
    "\xff",     "\xe2\x82\xac", "a",         " ",         "data:image/png;base64,",
    "=",
};
static const char *const css_pieces[] = {
    "a",    "b:c",      ";",        ":",
    "{",    "}",        "#",        "#m-",
    "m-",   "\\",       "\\31 ",    "\\6d",
    "\\:",  "\\-",      "url(",     "calc(",
    "rgb(", "not(",     "(",        ")",
    "[",    "]",        "'",        "\"",
    "/*",   "*/",       "<!--",     "-->",
    "@",    "@media ",  "@import ", "!",
    "=",    "--",       "-",        "_",
    ".",    ",",        "%",        "+",
    "*",    "/",        "<",        ">",
    "&",    " ",        "\n",       "\\0",
    "\\a ", "1",        "\xc2\xa0", "\xe2\x82\xac",
    "\xff", "</style>", "none",     "\x01",
};

/* One to thirty pieces: of HTML, or of CSS inside an element or an attribute. */
static void make_random(tide_rng *rng, tide_buf *html)
{
    static const char *const fronts[] = {"", "<style>", "<p style=\"", "<p style='"};
    size_t front = (size_t)tide_rng_below(rng, 4);
    size_t pieces = 1 + (size_t)tide_rng_below(rng, 30);
    tide_buf_clear(html);
    assert_int_equal(tide_buf_add_text(html, fronts[front]), TIDE_OK);
    for (size_t i = 0; i < pieces; i++) {
        bool css = tide_rng_chance(rng, front == 0 ? 1 : 9, 10);
        const char *piece =
            css ? css_pieces[tide_rng_below(rng, sizeof css_pieces / sizeof css_pieces[0])]
                : html_pieces[tide_rng_below(rng, sizeof html_pieces / sizeof html_pieces[0])];
        assert_int_equal(tide_buf_add_text(html, piece), TIDE_OK);
    }
}

TEST(random_markup_is_harmless)
{
    tide_buf html;
    tide_buf_init(&html, tide_mem_heap(), ROOM);
    for (uint64_t seed = 1; seed <= RANDOM_INPUTS; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        make_random(&rng, &html);
        const char *problem = judge(tide_buf_text(&html));
        if (problem != NULL)
            fail_msg("seed %llu: %s: %s", (unsigned long long)seed, problem, tide_buf_cstr(&html));
    }
    tide_buf_done(&html);
}

/* ---- ordinary mail ---- */

static void print_images(const struct result *result, tide_buf *out)
{
    for (size_t i = 0; i < result->washed.remote_count + result->washed.cids_count; i++) {
        bool remote = i < result->washed.remote_count;
        size_t n = remote ? i : i - result->washed.remote_count;
        tide_text item = remote ? result->washed.remote[n] : result->washed.cids[n];
        char number[32];
        (void)snprintf(number, sizeof number, "%s%s/%zu ", i > 0 ? "\n" : "",
                       remote ? "img" : "cid", n);
        assert_int_equal(tide_buf_add_text(out, number), TIDE_OK);
        assert_int_equal(tide_buf_add(out, item.data, item.bytes), TIDE_OK);
    }
}

struct mail {
    char name[NAME_BYTES];
    tide_buf part[3]; /* the html, the result, the images */
};

static bool check_mail(struct mail *mail)
{
    struct result result;
    tide_buf images;
    tide_buf_init(&images, tide_mem_heap(), ROOM);
    wash_into(&result, tide_buf_text(&mail->part[0]), ROOM);
    print_images(&result, &images);
    bool good = result.rc == TIDE_OK &&
                strcmp(tide_buf_cstr(&result.out), tide_buf_cstr(&mail->part[1])) == 0 &&
                strcmp(tide_buf_cstr(&images), tide_buf_cstr(&mail->part[2])) == 0;
    const char *problem = judge(tide_buf_text(&mail->part[0]));
    if (!good || problem != NULL)
        print_error("%s: %s\nexpected:\n%s\n%s\nfound:\n%s\n%s\n", mail->name,
                    problem == NULL ? "" : problem, tide_buf_cstr(&mail->part[1]),
                    tide_buf_cstr(&mail->part[2]), tide_buf_cstr(&result.out),
                    tide_buf_cstr(&images));
    tide_buf_done(&images);
    result_done(&result);
    for (size_t i = 0; i < 3; i++)
        tide_buf_clear(&mail->part[i]);
    return good && problem == NULL;
}

TEST(ordinary_mail_is_shown_as_it_was_meant)
{
    tide_buf file;
    tide_buf_init(&file, tide_mem_heap(), ROOM);
    read_fixture("mails.txt", &file);
    struct mail mail = {.name = ""};
    for (size_t i = 0; i < 3; i++)
        tide_buf_init(&mail.part[i], tide_mem_heap(), ROOM);
    tide_text rest = tide_buf_text(&file), line;
    size_t count = 0, failed = 0, part = 0;
    bool first = true;
    while (next_line(&rest, &line)) {
        if (count == 0 && starts(line, "#"))
            continue;
        if (starts(line, "=== ")) {
            failed += count > 0 && !check_mail(&mail);
            (void)snprintf(mail.name, sizeof mail.name, "%.*s", (int)line.bytes, line.data);
            count++;
            part = 0;
            first = true;
        } else if (starts(line, "--- ")) {
            part = starts(line, "--- images") ? 2 : 1;
            first = true;
        } else {
            if (!first)
                assert_int_equal(tide_buf_add(&mail.part[part], "\n", 1), TIDE_OK);
            assert_int_equal(tide_buf_add(&mail.part[part], line.data, line.bytes), TIDE_OK);
            first = false;
        }
    }
    failed += !check_mail(&mail);
    for (size_t i = 0; i < 3; i++)
        tide_buf_done(&mail.part[i]);
    tide_buf_done(&file);
    assert_int_equal(failed, 0);
    assert_true(count >= MAILS_MIN);
}

/* ---- one rule each ---- */

struct rule {
    const char *html, *washed;
};

static const struct rule url_rules[] = {
    {"<a href=\"http:///x.example\">a</a>", "<a>a</a>"},
    {"<a href=\"http://@x.example\">a</a>", "<a>a</a>"},
    {"<a href=\"h\tt\ntp://x.example\">a</a>",
     "<a href=\"http://x.example\" rel=\"noopener noreferrer\">a</a>"},
    {"<a href='https://x.example\\y?\\z'>a</a>",
     "<a href=\"https://x.example/y?%5Cz\" rel=\"noopener noreferrer\">a</a>"},
    {"<div href=\"https://x.example\">a</div>", "<div>a</div>"},
    {"<p background=\"https://x.example\" src=\"cid:x\">a</p>", "<p>a</p>"},
    {"<img src=\"img/12\"><img src=\"img/012\"><img src=\"img/1000\">",
     "<img src=\"img/12\"><img><img>"},
};

static const struct rule tree_rules[] = {
    {"x<b title=\"y", "x"},
    {"x<b", "x"},
    {"<div><table><tr><td></div>x</table>y</div>z",
     "<div><table><tr><td>x</td></tr></table>y</div>z"},
    {"<div><b><div>x</b>y</div>z</div>w", "<div><b><div>x</div></b>yz</div>w"},
    {"<table><tr><td><p>a<table><tr><td>b</table>c<p>d</table>",
     "<table><tr><td><p>a</p><table><tr><td>b</td></tr></table>c<p>d</p></td></tr></table>"},
    {"<p>a<b>b<div>c</div>d", "<p>a<b>b</b></p><div>c</div>d"},
    {"<ul><li>a<p>b<li>c</ul>d", "<ul><li>a<p>b</p></li><li>c</li></ul>d"},
    {"<tr><td>a</td></tr>", "a"},
    {"<a><b>a<a>b<p><a>c", "<a><b>a</b></a><a>b<p><a>c</a></p></a>"},
    {"</p></br></b>a", "a"},
    {"<title>a</title>b<textarea>c</textarea>d<noscript><i>e</i></noscript>", "bd<i>e</i>"},
    {"<p onclick=x ID=a Class=b class=c>d", "<p id=\"m-a\" class=\"b\">d</p>"},
    {"<p id=\"a b\" align=\"a b\" width=\"1;2\" bgcolor=\"rgb(1)\">d", "<p>d</p>"},
};

static const struct rule css_rules[] = {
    {"<p style=\"a:url(x)y\">", "<p style=\"a:none y\"></p>"},
    {"<p style=\"--a:b;c:var(--a);d:e\">", "<p style=\"d:e\"></p>"},
    {"<p style=\"a:url (x);b:(c);d:calc((1))\">", "<p style=\"d:calc((1))\"></p>"},
    {"<p style=\"behavior:a;-MOZ-binding:b;c:d\">", "<p style=\"c:d\"></p>"},
    {"<p style=\"a : b /* c */ d ! important ;\">", "<p style=\"a:b d ! important\"></p>"},
    {"<p style=\"a:'\\'(\\3c'\">", "<p style=\"a:'\\27 \\28 \\3c '\"></p>"},
    {"<style>@keyframes x{from{color:red}}a{b:c}</style>", "<style>a{b:c}</style>"},
    {"<style>@media x{}a{}@media y{b{c:d}</style>", "<style>@media y{b{c:d}}</style>"},
    {"<style>a{b{c:d}e:f}g{h:i}</style>", "<style>a{e:f}g{h:i}</style>"},
    {"<style>a:has(b){c:d}e:not(f){g:h}</style>", "<style>e:not(f){g:h}</style>"},
    {"<style>#\\31 a #m-b{c:#fff}</style>", "<style>#m-1a #m-b{c:#fff}</style>"},
    {"<style media=\"print\" title=x>a{b:c}</style>", "<style media=\"print\">a{b:c}</style>"},
    {"<style>a[b=\"c\"]>d{e:f}</style>", "<style>a[b='c']>d{e:f}</style>"},
    {"<style></style><style>a{}</style>x", "x"},
};

static void assert_rules(const struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_washed(rules[i].html, rules[i].washed);
}

TEST(each_rule_holds)
{
    assert_rules(url_rules, sizeof url_rules / sizeof url_rules[0]);
    assert_rules(tree_rules, sizeof tree_rules / sizeof tree_rules[0]);
    assert_rules(css_rules, sizeof css_rules / sizeof css_rules[0]);
}

/* <b NUL> is not <b>, and its attribute is not a title. */
TEST(a_name_with_a_zero_is_another_name)
{
    struct result result;
    wash_into(&result, TIDE_TEXT("<b\0>x</b\0><i title\0=y>z"), ROOM);
    assert_string_equal(tide_buf_cstr(&result.out), "x<i>z</i>");
    result_done(&result);
}

/* ---- limits ---- */

static void add_times(tide_buf *html, const char *text, size_t times)
{
    for (size_t i = 0; i < times; i++)
        assert_int_equal(tide_buf_add_text(html, text), TIDE_OK);
}

/* 300 elements deep: the tags of 44 are missing, every character is there, and what follows the end
 * tags is outside all of them. */
TEST(deep_elements_lose_their_tags_and_keep_their_text)
{
    tide_buf html, expected;
    tide_buf_init(&html, tide_mem_heap(), ROOM);
    tide_buf_init(&expected, tide_mem_heap(), ROOM);
    add_times(&html, "<div>", 300);
    add_times(&html, "x", 1);
    add_times(&html, "</div>", 300 - TIDE_WASH_DEPTH_MAX);
    add_times(&html, "y", 1);
    add_times(&html, "</div>", TIDE_WASH_DEPTH_MAX);
    add_times(&html, "z", 1);
    add_times(&expected, "<div>", TIDE_WASH_DEPTH_MAX);
    add_times(&expected, "xy", 1);
    add_times(&expected, "</div>", TIDE_WASH_DEPTH_MAX);
    add_times(&expected, "z", 1);
    assert_washed(tide_buf_cstr(&html), tide_buf_cstr(&expected));
    tide_buf_done(&html);
    tide_buf_done(&expected);
}

TEST(the_number_of_images_is_bounded)
{
    tide_buf html;
    tide_buf_init(&html, tide_mem_heap(), ROOM);
    for (int i = 0; i < 1500; i++)
        assert_int_equal(tide_buf_print(&html, "<img src=\"https://a.example/%d\">", i), TIDE_OK);
    add_times(&html, "<img src=\"https://a.example/7\">", 1);
    struct result result;
    wash_into(&result, tide_buf_text(&html), ROOM);
    assert_int_equal(result.rc, TIDE_OK);
    assert_int_equal(result.washed.remote_count, TIDE_WASH_IMAGES_MAX);
    assert_true(tide_text_equal(result.washed.remote[7], TIDE_TEXT("https://a.example/7")));
    assert_non_null(strstr(tide_buf_cstr(&result.out), "\"img/999\"><img><img>"));
    const char *end = tide_buf_cstr(&result.out) + result.out.bytes;
    assert_string_equal(end - 17, "<img src=\"img/7\">");
    result_done(&result);
    tide_buf_done(&html);
}

/* Every size of the buffer: what fits is closed, and the longer result begins with the shorter
 * one's text. */
TEST(a_full_buffer_is_closed)
{
    tide_text html = TIDE_TEXT("<table><tr><td style='color:red'>one<p>two &amp; <b>three</b>"
                               "<a href=//x.example>four</a><style>p{color:red}</style>five");
    struct result whole;
    wash_into(&whole, html, ROOM);
    size_t room = TIDE_WASH_DEPTH_MAX * 13;
    for (size_t extra = 0; extra <= whole.out.bytes; extra++) {
        struct result part;
        wash_into(&part, html, room + extra);
        assert_true(part.rc == TIDE_FULL || part.rc == TIDE_OK);
        assert_null(wash_scan(tide_buf_text(&part.out)));
        assert_true(part.out.bytes <= room + extra);
        if (part.rc == TIDE_OK)
            assert_string_equal(tide_buf_cstr(&part.out), tide_buf_cstr(&whole.out));
        result_done(&part);
    }
    struct result none;
    wash_into(&none, html, room - 1);
    assert_int_equal(none.rc, TIDE_FULL);
    assert_int_equal(none.out.bytes, 0);
    result_done(&none);
    result_done(&whole);
}

/* Appends: what is in the buffer already stays. */
TEST(what_was_in_the_buffer_stays)
{
    struct result result;
    wash_into(&result, TIDE_TEXT("<b>x"), ROOM);
    assert_int_equal(
        tide_html_wash(TIDE_TEXT("</b>y<i>z"), &result.arena, &result.out, &result.washed),
        TIDE_OK);
    assert_string_equal(tide_buf_cstr(&result.out), "<b>x</b>y<i>z</i>");
    result_done(&result);
}

/* Fail the first allocation, then the second, and so on until it gets through. */
TEST(it_survives_every_failed_allocation)
{
    tide_text html =
        TIDE_TEXT("<body bgcolor=red style='a:b'><img src=https://a.example/&#120;><img src=cid:x>"
                  "<a href='https://b.example/?a&amp;b' title='&lt;'>x</a><style>a{b:c}</style>");
    for (uint64_t fail_at = 0;; fail_at++) {
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        tide_arena arena;
        tide_buf out;
        struct tide_washed washed;
        tide_buf_init(&out, &mem.base, ROOM);
        tide_arena_init(&arena, &mem.base, ROOM);
        tide_status rc = tide_html_wash(html, &arena, &out, &washed);
        bool fired = mem.fired;
        size_t bytes = out.bytes;
        tide_buf_done(&out);
        tide_arena_done(&arena);
        assert_int_equal(mem.bytes_live, 0);
        if (!fired) {
            assert_int_equal(rc, TIDE_OK);
            return;
        }
        assert_int_equal(rc, TIDE_NO_MEMORY);
        assert_int_equal(bytes, 0);
    }
}

/* URLs whose hashes share a slot get numbers of their own; none is lost or mixed up. */
TEST(numbers_name_the_right_image)
{
    tide_buf html;
    tide_buf_init(&html, tide_mem_heap(), ROOM);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 400; i++)
            assert_int_equal(tide_buf_print(&html, "<img src=\"http://%d.example/\" alt=\"%d\">",
                                            i * 7919, i * 7919),
                             TIDE_OK);
    }
    struct result result;
    wash_into(&result, tide_buf_text(&html), ROOM);
    const char *at = tide_buf_cstr(&result.out);
    for (int i = 0; i < 1200; i++) {
        char url[64];
        at = strstr(at, "img/");
        assert_non_null(at);
        unsigned long number = strtoul(at + 4, NULL, 10);
        assert_true(number < result.washed.remote_count);
        int bytes = snprintf(url, sizeof url, "http://%d.example/", i % 400 * 7919);
        assert_true(tide_text_equal(result.washed.remote[number], (tide_text){url, (size_t)bytes}));
        at++;
    }
    result_done(&result);
    tide_buf_done(&html);
}
