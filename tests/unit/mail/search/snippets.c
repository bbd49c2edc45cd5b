/* Snippets: what they mark, and where a long text is cut. */
#include "search_fixture.h"
#include "support/heap.h"

/* ---- snippets ---- */

static void snippet_is(struct fixture *f, const char *query_text, const char *text,
                       const char *expected)
{
    tide_shards shards = {.mem = tide_mem_heap(), .account = "me@example.com"};
    struct tide_searching searching;
    tide_query *query = parse(f, query_text);
    tide_buf out = heap_buf(1 << 16);
    OK(tide_searching_init(&searching, &shards, tide_mem_heap(), &f->err));
    OK(tide_plan_make(&searching, query));
    OK(tide_search_snippet(&searching, tide_text_of(text), &out));
    char shown[2048];
    size_t at = 0;
    for (const char *c = tide_buf_cstr(&out); *c != '\0'; c++)
        shown[at++] = *c == '\x01' ? '[' : *c == '\x02' ? ']' : *c;
    shown[at] = '\0';
    if (strcmp(shown, expected) != 0)
        fail_msg("%s in %s:\n is  %s\n not %s", query_text, text, shown, expected);
    tide_searching_done(&searching);
    tide_query_free(query);
    tide_buf_done(&out);
}

CASE(a_snippet_marks_what_was_found)
{
    snippet_is(f, "world", "hello world again", "hello [world] again");
    snippet_is(f, "world", "", "");
    snippet_is(f, "nowhere", "hello world", "hello world");
    snippet_is(f, "cafe", "One CAF\xc3\x89, please", "One [CAF\xc3\x89], please");
    snippet_is(f, "\"a b\"", "a a b b a", "a [a b] b a");
    snippet_is(f, "a b", "a a b b c", "[a] [a] [b] [b] c");
    snippet_is(f, "-a b", "a b", "a [b]");
    snippet_is(f, "foo.bar", "see foo-bar here", "see [foo-bar] here");
    snippet_is(f, "\xe6\x9c\xac\xe8\xaa\x9e", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x80\x82",
               "\xe6\x97\xa5[\xe6\x9c\xac\xe8\xaa\x9e]\xe3\x80\x82");
    snippet_is(f, "invoice", "Two Invoices, one invoice", "Two [Invoices], one [invoice]");
    snippet_is(f, "+invoice", "two invoices, one invoice", "two invoices, one [invoice]");
    snippet_is(f, "invo*", "in two invoices", "in two [invoices]");
    snippet_is(f, "two-in*", "two inns, in two invoices", "[two inns], in [two invoices]");
    snippet_is(f, "b", "a\n\n\tb\x01  c\x02", "a [b] c");
    snippet_is(f, "needle",
               "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
               "needle sixteen",
               "\xe2\x80\xa6"
               "ten eleven twelve thirteen fourteen [needle] sixteen");
    /* Where both are is better than where one is first. */
    snippet_is(f, "p q",
               "p and very much of another text that has nothing to do with it goes on and on here "
               "for a while, longer than any snippet could be, even if it were somewhat longer, "
               "then p with q.",
               "\xe2\x80\xa6"
               "even if it were somewhat longer, then [p] with [q].");
}

CASE(a_long_text_is_cut_at_words)
{
    tide_shards shards = {.mem = tide_mem_heap(), .account = "me@example.com"};
    struct tide_searching searching;
    tide_query *query = parse(f, "\"\xe6\x97\xa5\xe6\x9c\xac\" needle");
    OK(tide_searching_init(&searching, &shards, tide_mem_heap(), &f->err));
    OK(tide_plan_make(&searching, query));
    tide_buf text = heap_buf(1 << 24);
    tide_buf out = heap_buf(1 << 16);
    for (size_t i = 0; i < 400000; i++)
        (void)tide_buf_add_text(&text, i % 3 == 0   ? "\xe6\x97\xa5"
                                       : i % 7 == 0 ? " "
                                                    : "\xe6\x9c\xac");
    OK(tide_search_snippet(&searching, tide_buf_text(&text), &out));
    assert_true(out.bytes > 50);
    assert_true(out.bytes < 4 * TIDE_SNIPPET_BYTES);
    for (size_t at = 0; at < out.bytes;) {
        const size_t bytes = (unsigned char)out.data[at] < 0x80 ? 1 : 3;
        assert_true(bytes == 1 || ((unsigned char)out.data[at] & 0xf0) == 0xe0);
        at += bytes;
    }
    assert_non_null(memchr(out.data, '\x01', out.bytes));
    tide_searching_done(&searching);
    tide_query_free(query);
    tide_buf_done(&text);
    tide_buf_done(&out);
}

CASE(a_page_has_snippets_from_the_messages_themselves)
{
    fill(f, 40, 0);
    static struct seen seen;
    tide_query *query = parse(f, "in:anywhere the");
    bool more = false;
    seen = (struct seen){.f = f};
    const struct tide_search search = {.query = query, .limit = 1, .snippets = true};
    OK(tide_search_run(f->archive, &search, see, &seen, NULL, &more, &f->err));
    assert_int_equal(seen.count, 1);
    assert_true(seen.snippet[0] != '\0');
    const struct mail *mail = &f->mails[seen.list[0]];
    assert_int_equal(strstr(seen.snippet, "\x01the\x02") != NULL,
                     strstr(mail->text, "the") != NULL);
    tide_query_free(query);
}
