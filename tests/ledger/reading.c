/* reading.c - the window, lists and counts. */
#include "ledger_fixture.h"

CASE(refill_follows_priority_then_age_page_by_page)
{
    uint64_t ids[12];
    for (int i = 0; i < 12; i++) {
        struct tide_job_new job = job_of(f, NULL);
        job.priority = (uint8_t)(i % 3 * 50);
        ids[i] = add(f, &job).id;
    }
    (void)add_needing(f, &ids[0], 1); /* blocked: not there */
    uint8_t priority = 255;
    uint64_t after = 0;
    size_t total = 0;
    struct tide_brief last = {.priority = 255};
    for (size_t count = 5; count == 5; total += count) {
        struct tide_brief briefs[5];
        OK(tide_ledger_refill(f->ledger, f->account, priority, after, briefs, 5, &count, &f->err));
        for (size_t i = 0; i < count; i++) {
            assert_true(total + i == 0 || tide_brief_before(&last, &briefs[i]));
            last = briefs[i];
        }
        priority = last.priority;
        after = last.id;
    }
    assert_int_equal(total, 12);
    struct tide_job_new other = job_of(f, NULL);
    other.account = 0;
    (void)add(f, &other);
    uint32_t accounts[4];
    size_t count = 0;
    OK(tide_ledger_accounts_with_work(f->ledger, accounts, 4, &count, &f->err));
    assert_int_equal(count, 2);
    assert_int_equal(accounts[0], 0);
    assert_int_equal(accounts[1], f->account);
}

CASE(an_account_has_work_of_some_kinds_only)
{
    if (!tide_ledger_shared(f->ledger))
        skip();
    uint32_t accounts[3] = {f->account, 0, 0};
    begin(f);
    OK(tide_ledger_account(f->tx, "bob", "gmail", &accounts[1], &f->err));
    OK(tide_ledger_account(f->tx, "cy", "gmail", &accounts[2], &f->err));
    commit(f);
    struct tide_job_new job = job_of(f, NULL);
    for (int i = 0; i < 3; i++)
        (void)add(f, &job);
    job.account = accounts[2];
    job.kind = f->alone;
    uint64_t last = add(f, &job).id;
    job.account = accounts[1];
    job.needs = &last;
    job.needs_count = 1;
    (void)add(f, &job); /* blocked: it cannot run */
    const uint32_t kinds[] = {f->once, f->alone};
    bool have[3];
    OK(tide_ledger_accounts_have(f->ledger, accounts, 3, kinds, 2, have, &f->err));
    assert_true(have[0] && !have[1] && have[2]);
    OK(tide_ledger_accounts_have(f->ledger, accounts, 3, kinds, 1, have, &f->err));
    assert_true(have[0] && !have[1] && !have[2]);
    OK(tide_ledger_accounts_have(f->ledger, accounts, 3, kinds + 1, 1, have, &f->err));
    assert_true(!have[0] && !have[1] && have[2]);
    OK(tide_ledger_accounts_have(f->ledger, accounts, 3, kinds, 0, have, &f->err));
    assert_true(!have[0] && !have[1] && !have[2]);
}

static bool add_counts(const struct tide_job_count *row, void *arg)
{
    uint64_t *sums = arg;
    sums[row->state] += row->count;
    sums[5] += row->blocked;
    sums[6] += row->delayed;
    return true;
}

static uint64_t counted(struct fixture *f, struct tide_job_filter filter)
{
    uint64_t count = 0;
    OK(tide_ledger_jobs_count(f->ledger, &filter, &count, &f->err));
    return count;
}

/* A count has its own statement for each state. */
static void counted_as_listed(struct fixture *f, uint64_t id)
{
    const uint32_t accounts[] = {UINT32_MAX, 0, f->account};
    const uint32_t kinds[] = {0, f->once, f->alone};
    const uint64_t jobs[] = {0, id, 999};
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.count_max = 1000;
    for (filter.state = -1; filter.state <= 4; filter.state++)
        for (int i = 0; i < 27; i++) {
            filter.account = accounts[i % 3];
            filter.kind = kinds[i / 3 % 3];
            filter.id = jobs[i / 9];
            assert_int_equal(counted(f, filter), list(f, filter));
        }
}

CASE(a_filter_that_expects_another_count_is_stale)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    for (int i = 0; i < 3; i++)
        (void)add_plain(f);
    OK(tide_ledger_jobs_expect(f->ledger, &filter, &f->err)); /* it expects nothing */
    filter.expects = true;
    for (filter.expected = 0; filter.expected < 5; filter.expected++)
        assert_int_equal(tide_ledger_jobs_expect(f->ledger, &filter, &f->err),
                         filter.expected == 3 ? TIDE_OK : TIDE_STALE);
}

CASE(lists_and_counts_agree)
{
    uint64_t ids[6];
    for (int i = 0; i < 6; i++)
        ids[i] = add_plain(f);
    struct tide_job_new later = job_of(f, NULL);
    later.not_before_unix_ms = NOW + 1000;
    later.account = 0;
    (void)add(f, &later);
    (void)add_needing(f, &ids[0], 1);
    run_to(f, ids[1], TIDE_ROW_DONE);
    run_to(f, ids[2], TIDE_ROW_FAILED);
    run_to(f, ids[3], TIDE_ROW_CANCELED);
    (void)claim(f, ids[4]);
    uint64_t sums[7] = {0};
    OK(tide_ledger_counts(f->ledger, NOW, add_counts, sums, &f->err));
    const uint64_t wanted[7] = {4, 1, 1, 1, 1, 1, 1};
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    for (int i = 0; i < 7; i++)
        assert_int_equal(sums[i], wanted[i]);
    memset(sums, 0, sizeof sums);
    OK(tide_ledger_counts_left(f->ledger, NOW, add_counts, sums, &f->err));
    for (int i = 0; i < 7; i++)
        assert_int_equal(sums[i], i == TIDE_ROW_DONE ? 0 : wanted[i]);
    for (filter.state = 0; filter.state <= 4; filter.state++)
        assert_int_equal(list(f, filter), wanted[filter.state]);
    filter.state = -1;
    assert_int_equal(list(f, filter), 8);
    filter.account = 0;
    assert_int_equal(list(f, filter), 1);
    counted_as_listed(f, ids[2]);
    filter.account = UINT32_MAX;
    filter.before_id = ids[2];
    assert_int_equal(list(f, filter), 2);
    filter.count_max = 1;
    assert_int_equal(list(f, filter), 1);
}

static bool count_rows(const struct tide_job_row *row, void *arg)
{
    (void)row;
    ++*(size_t *)arg;
    return true;
}

CASE(a_reader_sees_what_is_committed_beside_the_writer)
{
    tide_ledger *reader = store_open(&f->store, NULL, true);
    struct tide_job_new job = job_of(f, NULL);
    struct tide_enqueued enqueued;
    size_t count = 0;
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    begin(f);
    OK(tide_ledger_enqueue(f->tx, &job, 1, NOW, &enqueued, &f->err));
    OK(tide_ledger_jobs(reader, &filter, count_rows, &count, &f->err));
    assert_int_equal(count, 0);
    commit(f);
    OK(tide_ledger_jobs(reader, &filter, count_rows, &count, &f->err));
    assert_int_equal(count, 1);
    tide_ledger_close(reader, false);
}
