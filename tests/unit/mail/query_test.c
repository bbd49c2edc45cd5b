/* What a query means, as a tree; and what is said about a query that means
 * nothing. */
#include "mail/search/query_tree.h"

#include "base/check.h"
#include "base/rng.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/sweep.h"
#include "support/heap.h"
#include "support/test.h"

/* 2024-03-10T12:00:00Z */
static const int64_t now_ms = 1710072000000;

/* ---- a tree as text ---- */

static void show_fields(uint8_t fields, tide_buf *out)
{
    static const char *const names[] = {"subject", "from", "to", "cc", "bcc", "text", "files"};
    if (fields == TIDE_IN_ANY) {
        (void)tide_buf_add_text(out, "any");
        return;
    }
    const char *between = "";
    for (unsigned i = 0; i < 7; i++) {
        if ((fields & 1u << i) != 0) {
            (void)tide_buf_print(out, "%s%s", between, names[i]);
            between = "+";
        }
    }
}

static void show_range(const struct tide_query_node *at, const char *name, tide_buf *out)
{
    if (at->low != INT64_MIN)
        (void)tide_buf_print(out, "%s>=%" PRId64, name, at->low);
    else
        (void)tide_buf_print(out, "%s<%" PRId64, name, at->high);
}

/* Of fields whose words have forms; a prefix shows its '*'. */
static bool is_exact(const struct tide_query_node *at)
{
    return at->exact && !at->prefix && (at->fields == TIDE_IN_ANY || at->fields == TIDE_IN_SUBJECT);
}

static void show(const struct tide_query_node *at, tide_buf *out)
{
    if (at->negated)
        (void)tide_buf_add_text(out, "-");
    switch (at->term) {
    case TIDE_TERM_AND:
    case TIDE_TERM_OR:
        (void)tide_buf_add_text(out, at->term == TIDE_TERM_AND ? "(and" : "(or");
        for (const struct tide_query_node *child = at->first; child != NULL; child = child->next) {
            (void)tide_buf_add_text(out, " ");
            show(child, out);
        }
        (void)tide_buf_add_text(out, ")");
        return;
    case TIDE_TERM_ALL:
        (void)tide_buf_add_text(out, "all");
        return;
    case TIDE_TERM_NONE:
        (void)tide_buf_add_text(out, "none");
        return;
    case TIDE_TERM_WORDS:
        show_fields(at->fields, out);
        if (at->near > 0) {
            (void)tide_buf_print(out, "=%s~%u~%s", at->text.data, (unsigned)at->near - 1,
                                 at->other.data);
            return;
        }
        (void)tide_buf_print(out, at->me ? "=%s!" : is_exact(at) ? "==%s" : "=%s", at->text.data);
        return;
    case TIDE_TERM_LABEL:
        (void)tide_buf_print(out, at->system ? "#%s" : "label=%s", at->text.data);
        return;
    case TIDE_TERM_DATE:
        show_range(at, "ms", out);
        return;
    case TIDE_TERM_BYTES:
        show_range(at, "bytes", out);
        return;
    case TIDE_TERM_ATTACHMENT:
        (void)tide_buf_add_text(out, "attachment");
        return;
    case TIDE_TERM_LIST:
    case TIDE_TERM_DELIVERED:
        (void)tide_buf_print(out, at->term == TIDE_TERM_LIST ? "list=%s" : "delivered=%s",
                             at->text.data);
        return;
    case TIDE_TERM_USER_LABEL:
        (void)tide_buf_add_text(out, "userlabel");
        return;
    case TIDE_TERM_MESSAGE_ID:
        (void)tide_buf_print(out, "id=%s", at->text.data);
        return;
    }
}

struct example {
    const char *query;
    const char *tree; /* a '*' in front: spam and trash are asked for */
};

static void check_examples(const struct example *examples, size_t count, int32_t utc_offset_s)
{
    for (size_t i = 0; i < count; i++) {
        tide_query *query = NULL;
        tide_error err = {TIDE_OK, 0, ""};
        tide_status rc = tide_query_parse(tide_text_of(examples[i].query), now_ms, utc_offset_s,
                                          tide_mem_heap(), &query, &err);
        if (rc != TIDE_OK)
            fail_msg("%s: %s", examples[i].query, err.text);
        tide_query_check(query);
        tide_buf out = heap_buf(1 << 20);
        if (query->spam_trash)
            (void)tide_buf_add_text(&out, "*");
        show(query->root, &out);
        if (strcmp(tide_buf_cstr(&out), examples[i].tree) != 0)
            fail_msg("%s\n is  %s\n not %s", examples[i].query, tide_buf_cstr(&out),
                     examples[i].tree);
        tide_buf_done(&out);
        tide_query_free(query);
    }
}
#define CHECK(list, offset) check_examples((list), sizeof(list) / sizeof((list)[0]), (offset))

/* ---- examples ---- */

TEST(words_are_joined_by_and_and_or_binds_first)
{
    static const struct example examples[] = {
        {"", "all"},
        {" \t\n", "all"},
        {"hello", "any=hello"},
        {"Hello World", "(and any=Hello any=World)"},
        {"\"Hello World\"", "any==Hello World"},
        {"a OR b c", "(and (or any=a any=b) any=c)"},
        {"a b OR c", "(and any=a (or any=b any=c))"},
        {"a OR b OR c", "(or any=a any=b any=c)"},
        {"a|b | c", "(or any=a any=b any=c)"},
        {"a AND b", "(and any=a any=b)"},
        {"a or b and c", "(and any=a any=or any=b any=and any=c)"},
        {"\"OR\"", "any==OR"},
        {"{a b}", "(or any=a any=b)"},
        {"{a b} c", "(and (or any=a any=b) any=c)"},
        {"(a b) c", "(and any=a any=b any=c)"},
        {"(a b) OR c", "(or (and any=a any=b) any=c)"},
        {"{a (b c)}", "(or any=a (and any=b any=c))"},
        {"((((a))))", "any=a"},
        {"a(b)c", "(and any=a any=b any=c)"},
        {"foo-bar", "any=foo-bar"},
        {"12:30", "any=12:30"},
        {"https://example.com/?q=a:b", "any=https://example.com/?q=a:b"},
        {"caf\xc3\xa9", "any=caf\xc3\xa9"},
        {"\xe6\x97\xa5\xe6\x9c\xac\xe3\x80\x80\xe8\xaa\x9e",
         "(and any=\xe6\x97\xa5\xe6\x9c\xac any=\xe8\xaa\x9e)"},
        {"a\xc2\xa0"
         "b",
         "(and any=a any=b)"},
        {"rock & roll", "(and any=rock any=roll)"},
        {"a - b", "(and any=a any=b)"},
        {"a \"\" b", "(and any=a any=b)"},
    };
    CHECK(examples, 0);
}

TEST(a_negation_reaches_the_terms)
{
    static const struct example examples[] = {
        {"-a", "-any=a"},
        {"--a", "any=a"},
        {"-\"a b\"", "-any==a b"},
        {"-(a b)", "(or -any=a -any=b)"},
        {"-{a b}", "(and -any=a -any=b)"},
        {"-(a OR b)", "(and -any=a -any=b)"},
        {"-(a -b)", "(or -any=a any=b)"},
        {"-(a (b OR c))", "(or -any=a (and -any=b -any=c))"},
        {"-from:a", "-from=a"},
        {"-from:(a b)", "(or -from=a -from=b)"},
        {"from:-a", "from=-a"}, /* inside a value it is a hyphen */
        {"-after:2024/01/01", "ms<1704067200000"},
        {"-larger:10", "bytes<11"},
        {"-in:anywhere", "none"},
        {"a -in:anywhere", "none"},
        {"a OR -in:anywhere", "any=a"},
    };
    CHECK(examples, 0);
}

TEST(a_plus_is_exact_and_a_star_is_a_prefix)
{
    static const struct example examples[] = {
        {"+a", "any==a"},
        {"-+a", "-any==a"},
        {"+subject:a", "subject==a"},
        {"+(a b) c", "(and any==a any==b any=c)"},
        {"a + b", "(and any=a any=b)"},
        {"c++", "any=c++"},
        {"ab*", "any=ab*"},
        {"+ab*", "any=ab*"},
        {"\"ab*\"", "any==ab*"},
        {"* a", "any=a"},
        {"subject:ab*", "subject=ab*"},
        {"\xe6\x97\xa5*", "any=\xe6\x97\xa5*"},
    };
    CHECK(examples, 0);
}

TEST(around_joins_two_words)
{
    static const struct example examples[] = {
        {"a AROUND 3 b", "any=a~3~b"},
        {"a AROUND b", "any=a~5~b"},
        {"x a AROUND 3 \"b c\" y", "(and any=x any=a~3~b c any=y)"},
        {"-(a AROUND 3 b)", "-any=a~3~b"},
        {"subject:(a AROUND 0 b)", "subject=a~0~b"},
        {"a OR b AROUND 3 c", "(or any=a any=b~3~c)"},
        {"around 3 b", "(and any=around any=3 any=b)"},
    };
    CHECK(examples, 0);
}

TEST(has_knows_what_gmail_knows)
{
    static const struct example examples[] = {
        {"has:userlabels", "userlabel"},
        {"has:nouserlabels", "-userlabel"},
        {"-has:nouserlabels", "userlabel"},
        {"has:document", "text=docs.google.com/document"},
        {"-has:document", "-text=docs.google.com/document"},
        {"has:youtube", "(or text=youtube.com text=youtu.be)"},
        {"-has:youtube", "(and -text=youtube.com -text=youtu.be)"},
        {"a -has:youtube", "(and any=a -text=youtube.com -text=youtu.be)"},
    };
    CHECK(examples, 0);
}

TEST(operators_name_fields)
{
    static const struct example examples[] = {
        {"from:alice", "from=alice"},
        {"FROM:alice", "from=alice"},
        {"from:alice@example.com", "from=alice@example.com"},
        {"from:\"Alice B\"", "from=Alice B"},
        {"from:(alice bob)", "(and from=alice from=bob)"},
        {"from:{alice bob}", "(or from=alice from=bob)"},
        {"from:(alice OR to:bob)", "(or from=alice to+cc+bcc=bob)"},
        {"from:me", "from=me!"},
        {"to:\"me\"", "to+cc+bcc=me"},
        {"to:bob", "to+cc+bcc=bob"},
        {"cc:bob", "cc=bob"},
        {"bcc:bob", "bcc=bob"},
        {"subject:me", "subject=me"},
        {"subject:(a \"b c\")", "(and subject=a subject==b c)"},
        {"filename:pdf", "files=pdf"},
        {"filename:report.pdf", "files=report.pdf"},
        {"has:attachment", "attachment"},
        {"-has:attachment", "-attachment"},
        {"list:info@example.com", "list=info@example.com"},
        {"-deliveredto:(a b)", "(or -delivered=a -delivered=b)"},
        {"rfc822msgid:<a@b>", "id=a@b"},
        {"rfc822msgid:a@b", "id=a@b"},
        {"rfc822msgid:<a(b)|c@d>", "id=a(b)|c@d"},
        {"rfc822msgid:\"a b@c\"", "id=a b@c"},
    };
    CHECK(examples, 0);
}

TEST(labels_and_places)
{
    static const struct example examples[] = {
        {"label:work", "label=work"},
        {"label:\"My Label\"", "label=My Label"},
        {"label:INBOX", "#INBOX"},
        {"in:inbox", "#INBOX"},
        {"in:sent", "#SENT"},
        {"in:drafts", "#DRAFT"},
        {"in:trash", "*#TRASH"},
        {"in:Spam", "*#SPAM"},
        {"label:spam", "*#SPAM"},
        {"-in:trash", "-#TRASH"},
        {"in:anywhere", "*all"},
        {"in:anywhere a", "*any=a"},
        {"in:work", "label=work"},
        {"in:archive", "(and -#INBOX -#SENT -#DRAFT -#SPAM -#TRASH)"},
        {"-in:archive", "(or #INBOX #SENT #DRAFT #SPAM #TRASH)"},
        {"in:archive a", "(and -#INBOX -#SENT -#DRAFT -#SPAM -#TRASH any=a)"},
        {"is:unread", "#UNREAD"},
        {"is:read", "-#UNREAD"},
        {"-is:read", "#UNREAD"},
        {"is:starred", "#STARRED"},
        {"is:important", "#IMPORTANT"},
        {"category:promotions", "#CATEGORY_PROMOTIONS"},
        {"category:primary", "#CATEGORY_PERSONAL"},
    };
    CHECK(examples, 0);
}

TEST(dates_ages_and_sizes)
{
    static const struct example utc[] = {
        {"after:2014/01/01", "ms>=1388534400000"}, {"after:2014-01-01", "ms>=1388534400000"},
        {"after:2014/1/1", "ms>=1388534400000"},   {"newer:2014/01/01", "ms>=1388534400000"},
        {"before:2014/02/01", "ms<1391212800000"}, {"older:2014/02", "ms<1391212800000"},
        {"after:2014", "ms>=1388534400000"},       {"after:2024/02/29", "ms>=1709164800000"},
        {"after:1388552400", "ms>=1388552400000"}, {"after:0", "ms>=0"},
        {"before:1969/12/31", "ms<-86400000"},     {"newer_than:3d", "ms>=1709812800000"},
        {"older_than:2w", "ms<1708862400000"},     {"older_than:6m", "ms<1694520000000"},
        {"older_than:1y", "ms<1678536000000"},     {"newer_than:12h", "ms>=1710028800000"},
        {"larger:10M", "bytes>=10485761"},         {"larger:5k", "bytes>=5121"},
        {"larger:10MB", "bytes>=10485761"},        {"size:1000", "bytes>=1001"},
        {"smaller:1G", "bytes<1073741824"},        {"smaller:0", "bytes<0"},
    };
    CHECK(utc, 0);
    static const struct example pacific[] = {
        {"after:2014/01/01", "ms>=1388563200000"}, /* eight hours later */
        {"after:1388552400", "ms>=1388552400000"},
    };
    CHECK(pacific, -8 * 3600);
}

/* ---- mistakes ---- */

TEST(a_wrong_query_is_told_what_where_and_what_was_meant)
{
    static const struct {
        const char *query;
        const char *said[3]; /* all of them stand in the text */
    } examples[] = {
        {"form:alice", {"\"form:\"", "character 1", "\"from:\""}},
        {"hi form:alice", {"\"form:\"", "character 4", "\"from:\""}},
        {"\xc3\xa9\xc3\xa9 subjct:x", {"\"subjct:\"", "character 4", "\"subject:\""}},
        {"-(a lable:x)", {"\"lable:\"", "character 5", "\"label:\""}},
        {"oldr_than:3d", {"older_than:", NULL, NULL}},
        {"re: hello", {"\"re:\"", "quotation marks", NULL}},
        {"zzzzzz:1", {"\"zzzzzz:\"", "quotation marks", NULL}},
        {"from:", {"from:", "character 1", "value"}},
        {"a from: b", {"from:", "character 3", "value"}},
        {"subject:***", {"subject:***", "character 1", "word"}},
        {"is:unred", {"is:unred", "character 1", "\"unread\""}},
        {"is:", {"value", NULL, NULL}},
        {"has:atachment", {"has:atachment", "\"attachment\"", NULL}},
        {"has:star", {"has:star", "needs attachment", NULL}},
        {"list:", {"list:", "value", NULL}},
        {"deliveredto:<>", {"deliveredto:<>", "word", NULL}},
        {"category:promotion", {"promotions", NULL, NULL}},
        {"after:yesterday", {"after:yesterday", "character 1", "2014/01/31"}},
        {"after:2014/13/01", {"after:2014/13/01", NULL, NULL}},
        {"after:2023/02/29", {"after:2023/02/29", NULL, NULL}},
        {"after:2014/01/01/01", {"after:", NULL, NULL}},
        {"after:2014/01-01", {"after:", NULL, NULL}},
        {"after:1/31/2014", {"after:", NULL, NULL}},
        {"after:1388552400000", {"after:", "seconds", NULL}},
        {"older_than:3", {"3d", NULL, NULL}},
        {"older_than:3x", {"3d", NULL, NULL}},
        {"older_than:99999999999999999999d", {"3d", NULL, NULL}},
        {"larger:big", {"larger:big", "10M", NULL}},
        {"larger:99999999999999999999", {"larger:", NULL, NULL}},
        {"larger:9999999999G", {"larger:", NULL, NULL}},
        {"rfc822msgid:<>", {"Message-ID", NULL, NULL}},
        {"AROUND 3 b", {"AROUND", "character 1", "both sides"}},
        {"a AROUND 3", {"AROUND", "character 3", "both sides"}},
        {"a AROUND 3 -b", {"AROUND", "both sides", NULL}},
        {"a AROUND 3 from:b", {"AROUND", "both sides", NULL}},
        {"a AROUND 3 b AROUND 3 c", {"AROUND", "character 14", "both sides"}},
        {"a AROUND 3 bc*", {"AROUND", "both sides", NULL}},
        {"a AROUND 99999 b", {"AROUND", "too large", NULL}},
        {"b a*", {"\"a*\"", "character 3", "two letters"}},
        {"from:a*", {"two letters", NULL, NULL}},
        {"(a", {"\"(\"", "character 1", "never closed"}},
        {"((a)", {"\"(\"", "character 1", "never closed"}},
        {"{a (b}", {"closes nothing", "character 6", NULL}},
        {"a)", {"\")\"", "character 2", "closes nothing"}},
        {"(a}", {"\"}\"", "character 3", "closes nothing"}},
        {"a \"b c", {"character 3", "never closed", NULL}},
        {"()", {"character 1", "nothing in it", NULL}},
        {"from:()", {"nothing in it", NULL, NULL}},
        {"OR a", {"OR", "character 1", "both sides"}},
        {"a OR", {"OR", "character 3", "both sides"}},
        {"a OR OR b", {"OR", "character 6", NULL}},
        {"a | (b |)", {"character 8", "both sides", NULL}},
        {"***", {"no letter", NULL, NULL}},
        {"- -", {"no letter", NULL, NULL}},
        {"a\xff", {"UTF-8", "byte 2", NULL}},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        tide_query *query = NULL;
        tide_error err = {TIDE_OK, 0, ""};
        tide_status rc = tide_query_parse(tide_text_of(examples[i].query), now_ms, 0,
                                          tide_mem_heap(), &query, &err);
        if (rc != TIDE_INVALID)
            fail_msg("%s: is accepted", examples[i].query);
        assert_null(query);
        for (size_t j = 0; j < 3 && examples[i].said[j] != NULL; j++)
            if (strstr(err.text, examples[i].said[j]) == NULL)
                fail_msg("%s: says %s, not %s", examples[i].query, err.text, examples[i].said[j]);
    }
}

static tide_status parse_status(tide_text text, tide_error *err)
{
    tide_query *query = NULL;
    tide_status rc = tide_query_parse(text, now_ms, 0, tide_mem_heap(), &query, err);
    if (rc == TIDE_OK)
        tide_query_check(query);
    tide_query_free(query);
    return rc;
}

/* Every shape of a bomb that fits into a query: accepted or refused, at once. */
TEST(nesting_and_size_have_ceilings)
{
    static const char *const openers[] = {"(", "{", "-(", "from:(", "a OR (", "-{a ", "("};
    static const char *const closers[] = {")", "}", ")", ")", ")", "}", ""};
    tide_error err = {TIDE_OK, 0, ""};
    tide_buf text = heap_buf(1 << 20);
    for (size_t i = 0; i < sizeof openers / sizeof openers[0]; i++) {
        for (size_t deep = 1; deep < 1200; deep += deep < 60 ? 1 : 100) {
            tide_buf_clear(&text);
            for (size_t j = 0; j < deep; j++)
                (void)tide_buf_add_text(&text, openers[i]);
            (void)tide_buf_add_text(&text, "x");
            for (size_t j = 0; j < deep; j++)
                (void)tide_buf_add_text(&text, closers[i]);
            tide_status rc = parse_status(tide_buf_text(&text), &err);
            const bool fits = deep <= TIDE_QUERY_DEEP && closers[i][0] != '\0';
            assert_int_equal(rc, fits ? TIDE_OK : TIDE_INVALID);
        }
    }
    for (size_t terms = 1; terms <= TIDE_QUERY_NODES_MAX + 1; terms += 511) {
        tide_buf_clear(&text);
        for (size_t j = 0; j < terms; j++)
            (void)tide_buf_add_text(&text, j % 2 == 0 ? "a " : "OR a ");
        assert_int_equal(parse_status(tide_buf_text(&text), &err),
                         terms <= TIDE_QUERY_NODES_MAX ? TIDE_OK : TIDE_INVALID);
    }
    tide_buf_clear(&text);
    for (size_t j = 0; j < TIDE_QUERY_BYTES_MAX; j++)
        (void)tide_buf_add_text(&text, "a");
    OK(parse_status(tide_buf_text(&text), &err));
    (void)tide_buf_add_text(&text, "a");
    assert_int_equal(parse_status(tide_buf_text(&text), &err), TIDE_INVALID);
    tide_buf_done(&text);
}

TEST(an_error_is_one_line_of_text_whatever_was_typed)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_buf text = heap_buf(1 << 20);
    (void)tide_buf_add_text(&text, "is:\"\n\x01");
    for (size_t i = 0; i < 1000; i++)
        (void)tide_buf_add_text(&text, "\xe6\x97\xa5");
    (void)tide_buf_add_text(&text, "\"");
    assert_int_equal(parse_status(tide_buf_text(&text), &err), TIDE_INVALID);
    assert_null(strpbrk(err.text, "\n\x01"));
    assert_non_null(strstr(err.text, "\xe6\x97\xa5..."));
    assert_true(strlen(err.text) < 300);
    tide_buf_done(&text);
}

/* ---- labels ---- */

TEST(names_of_labels_are_equal_as_at_gmail)
{
    static const struct {
        const char *a, *b;
        bool same;
    } examples[] = {
        {"work", "Work", true},
        {"my-label", "My Label", true},
        {"a-b", "a/b", true},
        {"A/b C", "a-B-c", true},
        {"work", "works", false},
        {"", "", true},
        {"", "a", false},
        {"B\xc3\x9c"
         "CHER",
         "b\xc3\xbc"
         "cher",
         true},
        {"\xd0\xa0\xd0\xb0\xd0\xb1\xd0\xbe\xd1\x82\xd0\xb0",
         "\xd1\x80\xd0\xb0\xd0\xb1\xd0\xbe\xd1\x82\xd0\xb0", true},
        {"\xc5\x81\xc3\xb3"
         "d\xc5\xba",
         "\xc5\x82\xc3\xb3"
         "d\xc5\xb9",
         true},
        {"\xe6\x97\xa5", "\xe6\x9c\xac", false},
        {"a\xff", "a\xfe", false},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        if (tide_query_same_label(tide_text_of(examples[i].a), tide_text_of(examples[i].b)) !=
            examples[i].same)
            fail_msg("%s and %s", examples[i].a, examples[i].b);
}

/* ---- at random ---- */

/* Pieces of queries in any order: each is parsed or refused with a text, and a
 * tree keeps its invariants. */
TEST(any_text_is_parsed_or_refused)
{
    static const char *const pieces[] = {
        "a",
        "b ",
        " ",
        "(",
        ")",
        "{",
        "}",
        "\"",
        "-",
        " OR ",
        "|",
        "from:",
        "to:x",
        "subject:",
        "after:",
        "2014/01/01",
        "3d",
        "10M",
        "is:read",
        "in:",
        "archive",
        "anywhere",
        "label:",
        "<x@y>",
        "\xff",
        "\xc3",
        "\xa9",
        "\xe6\x97\xa5",
        "*",
        ":",
        "older_than:",
        "larger:",
        "AND ",
        "\t",
        "has:attachment",
        "nope:",
        "rfc822msgid:",
        "me",
        "\xe3\x80\x80",
        "OR",
    };
    const uint64_t seed = 0x7175657279u;
    tide_rng rng = tide_rng_seeded(seed);
    tide_buf text = heap_buf(1 << 20);
    size_t accepted = 0;
    const size_t rounds = scaled(400000);
    for (size_t round = 0; round < rounds; round++) {
        tide_buf_clear(&text);
        const size_t count = tide_rng_below(&rng, 12);
        for (size_t i = 0; i < count; i++)
            (void)tide_buf_add_text(&text,
                                    pieces[tide_rng_below(&rng, sizeof pieces / sizeof pieces[0])]);
        tide_error err = {TIDE_OK, 0, ""};
        tide_status rc = parse_status(tide_buf_text(&text), &err);
        accepted += rc == TIDE_OK;
        if (rc != TIDE_OK && (rc != TIDE_INVALID || err.text[0] == '\0'))
            fail_msg("seed %" PRIu64 " round %zu: %s: %d %s", seed, round, tide_buf_cstr(&text), rc,
                     err.text);
    }
    assert_true(rounds == 0 || accepted > rounds / 20);
    tide_buf_done(&text);
}

TEST(every_failed_allocation_is_reported)
{
    static const char text[] =
        "a OR from:(b \"c d\") -in:archive larger:5M {x y} rfc822msgid:<q@r>";
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        tide_query *query = NULL;
        tide_error err = {TIDE_OK, 0, ""};
        tide_status rc = tide_query_parse(tide_text_of(text), now_ms, 0, &mem.base, &query, &err);
        tide_query_free(query);
        assert_swept(mem, rc);
    }
}
