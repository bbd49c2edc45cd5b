/* SRC2: pages join without gap or repetition, in order of time and of rank. */
#include "search_fixture.h"
#include "support/heap.h"

/* ---- SRC2 ---- */

/* Pages of three while mail is added in front of, behind and inside of them. */
CASE(a_page_goes_on_behind_the_one_before_while_mail_is_added)
{
    fill(f, 120, 0);
    OK(tide_archive_close(f->archive, &f->err));
    archive_open(f, false, 150 << 10);
    tide_query *query = parse(f, "in:anywhere the");
    tide_buf token = heap_buf(4096);
    tide_buf next = heap_buf(4096);
    static struct seen seen;
    seen = (struct seen){.f = f};
    bool more = true;
    size_t added_seen = 0;
    while (more) {
        const struct tide_search search = {
            .query = query, .limit = 3, .after = tide_buf_text(&token)};
        OK(tide_search_run(f->archive, &search, see, &seen, &next, &more, &f->err));
        tide_buf_clear(&token);
        OK(tide_buf_add(&token, next.data == NULL ? "" : next.data, next.bytes));
        if (f->count < 200) {
            struct mail *mail = &f->mails[f->count];
            mail_make(&f->rng, f->count, mail);
            (void)snprintf(mail->text, sizeof mail->text, "the");
            f->count++;
            mail_put(f, mail);
            sync_all(f);
            index_all(f);
        }
    }
    for (size_t i = 0; i < seen.count; i++) {
        added_seen += seen.list[i] >= 120;
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(seen.list[i], seen.list[j]);
        if (i > 0)
            assert_true(f->mails[seen.list[i]].ms <= f->mails[seen.list[i - 1]].ms);
    }
    const struct tokens the = {.list = {"the"}, .count = 1};
    for (size_t i = 0; i < 120; i++) {
        bool found = false;
        for (size_t j = 0; j < seen.count; j++)
            found = found || seen.list[j] == i;
        assert_int_equal(found, mail_has(&f->mails[i], 0, &the));
    }
    assert_true(added_seen > 0);
    tide_query_free(query);
    tide_buf_done(&token);
    tide_buf_done(&next);
}

CASE(a_token_of_another_search_is_refused)
{
    fill(f, 30, 0);
    static const char *const bad[] = {
        "x",
        "n",
        "n:2019",
        "o:2019:5",
        "r:2019:5:1",
        "n:2019:",
        "n:2019:x",
        "n:2019-0:5",
        "n:x:5",
        "n:2019:5:5",
        "n:99999:5",
        "n:2019-5000:1",
        "n:2019:99999999999999999999",
        "n:2019:-5",
        "n:2019-:5 ",
        ":::",
    };
    static struct seen seen;
    seen = (struct seen){.f = f};
    bool more = false;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct tide_search search = {.after = tide_text_of(bad[i])};
        tide_status rc = tide_search_run(f->archive, &search, see, &seen, NULL, &more, &f->err);
        if (rc != TIDE_INVALID)
            fail_msg("%s is taken", bad[i]);
    }
    const struct tide_search large = {.limit = TIDE_SEARCH_PAGE_MAX + 1};
    assert_int_equal(tide_search_run(f->archive, &large, see, &seen, NULL, &more, &f->err),
                     TIDE_INVALID);
    const struct tide_search both = {.ranked = true, .oldest_first = true};
    assert_int_equal(tide_search_run(f->archive, &both, see, &seen, NULL, &more, &f->err),
                     TIDE_INVALID);
    assert_int_equal(seen.count, 0);
    /* A shard that is not there divides the others all the same. */
    const struct tide_search early = {.after = TIDE_TEXT("n:2000-3:5")};
    OK(tide_search_run(f->archive, &early, see, &seen, NULL, &more, &f->err));
    assert_int_equal(seen.count, 0);
    const struct tide_search late = {.after = TIDE_TEXT("n:2050:5"), .limit = 5};
    OK(tide_search_run(f->archive, &late, see, &seen, NULL, &more, &f->err));
    assert_int_equal(seen.count, 5);
}

/* ---- ranking ---- */

CASE(the_best_come_first_and_pages_of_them_are_apart)
{
    archive_open(f, false, 0);
    static const char *const subjects[] = {"the plan", "budget the", "the the", "budget"};
    for (size_t i = 0; i < 200; i++) {
        struct mail *mail = &f->mails[i];
        mail_make(&f->rng, i, mail);
        memset(mail->labels, 0, sizeof mail->labels);
        (void)snprintf(mail->from, sizeof mail->from, "a@b.example");
        (void)snprintf(mail->to, sizeof mail->to, "c@d.example");
        mail->cc[0] = mail->bcc[0] = mail->file[0] = '\0';
        mail->ms = start_ms + (int64_t)i * 1000;
        (void)snprintf(mail->subject, sizeof mail->subject, "%s",
                       i < 4 ? subjects[i] : "nothing of it");
        (void)snprintf(mail->text, sizeof mail->text, "%s",
                       i % 10 == 5 ? "the budget and more" : "the other");
        mail->indexed = true;
        mail_put(f, mail);
    }
    f->count = 200;
    sync_all(f);
    index_all(f);
    static struct seen seen;
    tide_query *query = parse(f, "budget");
    search_all(f, (struct tide_search){.query = query, .ranked = true, .limit = 7}, &seen);
    assert_int_equal(seen.count, 22);
    assert_int_equal(seen.list[0] + seen.list[1], 1 + 3); /* in the subject */
    for (size_t i = 0; i < seen.count; i++)
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(seen.list[i], seen.list[j]);
    for (size_t i = 3; i < seen.count; i++) /* equal ones: the newest first */
        assert_true(seen.list[i] < seen.list[i - 1]);
    tide_query_free(query);
    /* A word that is everywhere says little, however often it is there. */
    query = parse(f, "the OR budget");
    search_all(f, (struct tide_search){.query = query, .ranked = true, .limit = 50}, &seen);
    assert_int_equal(seen.count, 200);
    bool among_first = false;
    for (size_t i = 0; i < 3; i++)
        among_first = among_first || seen.list[i] == 1;
    assert_true(among_first);
    size_t plain_at = 0, budget_at = 0;
    for (size_t i = 0; i < seen.count; i++) {
        plain_at = seen.list[i] == 2 ? i : plain_at;
        budget_at = seen.list[i] == 15 ? i : budget_at;
    }
    assert_true(budget_at < plain_at);
    tide_query_free(query);
}
