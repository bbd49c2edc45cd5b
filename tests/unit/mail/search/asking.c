/* What cannot be asked and what is said then; queries that are deep or wide. */
#include "search_fixture.h"
#include "support/heap.h"

static void search_text(struct fixture *f, const char *text, struct seen *seen)
{
    tide_query *query = parse(f, text);
    search_all(f, (struct tide_search){.query = query, .limit = 100}, seen);
    tide_query_free(query);
}

/* ---- what is said ---- */

static tide_status search_status(struct fixture *f, const char *text)
{
    static struct seen seen;
    seen = (struct seen){.f = f};
    bool more = false;
    tide_query *query = parse(f, text);
    const struct tide_search search = {.query = query};
    tide_status rc = tide_search_run(f->archive, &search, see, &seen, NULL, &more, &f->err);
    tide_query_free(query);
    return rc;
}

CASE(a_label_that_does_not_exist_is_an_error_with_the_nearest_one)
{
    fill(f, 60, 0);
    assert_int_equal(search_status(f, "a label:wrok"), TIDE_INVALID);
    assert_non_null(strstr(f->err.text, "\"wrok\""));
    assert_non_null(strstr(f->err.text, "character 3"));
    assert_non_null(strstr(f->err.text, "\"Work\""));
    assert_int_equal(search_status(f, "-label:nothing-like-it"), TIDE_INVALID);
    assert_null(strstr(f->err.text, "did you mean"));
    OK(search_status(f, "label:important")); /* Gmail's own, on no message */
    OK(search_status(f, "category:social"));
}

CASE(a_query_without_words_is_an_error)
{
    fill(f, 10, 0);
    assert_int_equal(search_status(f, "\xf0\x9f\x8e\x89"), TIDE_INVALID); /* a party popper */
    assert_int_equal(search_status(f, "subject:\xe2\x80\xa6"), TIDE_INVALID);
    assert_non_null(strstr(f->err.text, "character 1"));
    OK(search_status(f, "the \xf0\x9f\x8e\x89"));
    OK(search_status(f, "the OR \xf0\x9f\x8e\x89"));
}

CASE(an_archive_without_mail_has_nothing)
{
    archive_open(f, false, 0);
    uint64_t count = 7, bytes = 7;
    OK(search_status(f, "from:alice has:attachment -x"));
    OK(tide_search_count(f->archive, NULL, &count, &bytes, &f->err));
    assert_int_equal(count, 0);
    assert_int_equal(bytes, 0);
    static struct seen seen;
    search_all(f, (struct tide_search){.ranked = true, .limit = 5}, &seen);
    assert_int_equal(seen.count, 0);
}

/* ---- deep and wide ---- */

/* Alternating ANDs and ORs as deep as a query may be: more than one expression of
 * the index takes. */
CASE(the_deepest_query_is_answered)
{
    fill(f, 60, 0);
    tide_buf text = heap_buf(1 << 16);
    for (int i = 0; i < TIDE_QUERY_DEEP; i++)
        (void)tide_buf_add_text(&text, i % 2 == 0 ? "{nowhere " : "(the ");
    (void)tide_buf_add_text(&text, "the");
    for (int i = TIDE_QUERY_DEEP; i > 0; i--)
        (void)tide_buf_add_text(&text, i % 2 == 1 ? "}" : ")");
    static struct seen deep, plain;
    search_text(f, tide_buf_cstr(&text), &deep);
    search_text(f, "the", &plain);
    assert_true(plain.count > 0);
    assert_int_equal(deep.count, plain.count);
    assert_memory_equal(deep.list, plain.list, plain.count * sizeof plain.list[0]);

    tide_buf_clear(&text);
    for (int i = 0; i < 500; i++)
        (void)tide_buf_print(&text, "%s-n%d", i == 0 ? "the " : " ", i);
    search_text(f, tide_buf_cstr(&text), &deep);
    assert_int_equal(deep.count, plain.count);
    tide_buf_clear(&text);
    for (int i = 0; i < 250; i++)
        (void)tide_buf_print(&text, "%sn%d OR larger:%d", i == 0 ? "the OR " : " OR ", i,
                             9000000 + i);
    search_text(f, tide_buf_cstr(&text), &deep);
    assert_int_equal(deep.count, plain.count);
    tide_buf_done(&text);
}

/* Where many messages have one date, their ids lie among those of later ones
 * (mail/archive/archive.h ARC4); what a span of dates finds must not show it. */
CASE(dates_are_exact_beside_a_crowd)
{
    enum { CROWD = 400, SECONDS = 90, FIRST_S = 1000 };
    archive_open(f, false, 0);
    for (size_t i = 0; i < CROWD + SECONDS; i++) {
        struct mail *mail = &f->mails[i];
        mail_make(&f->rng, i, mail);
        memset(mail->labels, 0, sizeof mail->labels);
        const int64_t at_s = i < CROWD ? FIRST_S + 20 : FIRST_S + (int64_t)(i - CROWD);
        mail->ms = start_ms + at_s * 1000 + (i < CROWD ? 3 : 0);
        (void)snprintf(mail->text, sizeof mail->text, i % 3 == 0 ? "zebra" : "the other");
        (void)snprintf(mail->subject, sizeof mail->subject, "nothing");
        mail_put(f, mail);
    }
    sync_all(f);
    index_all(f);
    const int64_t zero_s = start_ms / 1000 + FIRST_S;
    for (int64_t from = -1; from <= SECONDS; from += 7)
        for (int64_t to = from + 1; to <= SECONDS + 1; to += 5) {
            uint64_t all = 0, zebras = 0, outside = 0;
            for (size_t i = 0; i < CROWD + SECONDS; i++) {
                const int64_t ms = f->mails[i].ms - zero_s * 1000;
                const bool inside = ms >= from * 1000 && ms < to * 1000;
                all += inside;
                zebras += inside && i % 3 == 0;
                outside += !inside && i % 3 == 0;
            }
            const char *const forms[][2] = {
                {"", ""}, {"", " zebra"}, {"-(", ") zebra"}, {"(zebra ", ") OR larger:1000000"}};
            const uint64_t wanted[] = {all, zebras, outside, zebras};
            for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
                uint64_t count = 0, bytes = 0;
                const char *text =
                    textf("%safter:%lld before:%lld%s", forms[i][0], (long long)(zero_s + from),
                          (long long)(zero_s + to), forms[i][1]);
                tide_query *query = parse(f, text);
                OK(tide_search_count(f->archive, query, &count, &bytes, &f->err));
                if (count != wanted[i])
                    fail_msg("%s: %d instead of %d", text, (int)count, (int)wanted[i]);
                tide_query_free(query);
            }
        }
}
