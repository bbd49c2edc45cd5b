/* The window (E2): examples for each rule, a brute-force model over millions of
 * random operations, liveness with a model ledger behind it, and every
 * allocation failing in turn. */
#include "base/limits.h"
#include "base/rng.h"
#include "core/tracker.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/test.h"

static struct tide_brief job(uint64_t id, uint32_t account, uint8_t priority)
{
    return (struct tide_brief){.id = id, .account = account, .priority = priority, .level = 4};
}

static tide_tracker *tracker_of(uint32_t window_max)
{
    tide_tracker *tracker = NULL;
    OK(tide_tracker_new(window_max, tide_mem_heap(), &tracker));
    return tracker;
}

#define CASE(name, ...)                                                                            \
    TEST_OF(name, tide_tracker *tracker, tracker_of(__VA_ARGS__), tide_tracker_free)

static uint64_t must_add(tide_tracker *tracker, struct tide_brief brief, uint64_t now_ms)
{
    uint64_t evicted = 0;
    OK(tide_tracker_add(tracker, &brief, now_ms, &evicted));
    return evicted;
}

static tide_job_state state_of(const tide_tracker *tracker, uint64_t id)
{
    const struct tide_tracked *tracked = tide_tracker_find(tracker, id);
    return tracked == NULL ? TIDE_JOB_STATES : tracked->state;
}

CASE(a_job_walks_from_ready_to_its_end, 4)
{
    int body = 0;
    must_add(tracker, job(7, 1, 30), 10);
    assert_int_equal(state_of(tracker, 7), TIDE_JOB_READY);
    tide_tracker_claiming(tracker, 7, 11);
    tide_tracker_claimed(tracker, 7, 99, 12);
    tide_tracker_started(tracker, 7, 13);
    tide_tracker_body_set(tracker, 7, &body);
    const struct tide_tracked *tracked = tide_tracker_find(tracker, 7);
    assert_int_equal(tracked->token, 99);
    assert_int_equal(tracked->since_ms, 13);
    assert_ptr_equal(tracked->body, &body);
    tide_tracker_ending(tracker, 7, 21);
    assert_true(tide_tracker_check(tracker));
    assert_int_equal(tide_tracker_count_state(tracker, TIDE_JOB_ENDING), 1);
    tide_tracker_remove(tracker, 7);
    tide_tracker_remove(tracker, 7);
    assert_int_equal(tide_tracker_count(tracker), 0);
    assert_true(tide_tracker_room(tracker) > 0);
    assert_true(tide_tracker_check(tracker));
}

CASE(a_job_that_is_here_is_left_alone_when_added_again, 4)
{
    must_add(tracker, job(7, 1, 30), 10);
    tide_tracker_claiming(tracker, 7, 11);
    uint64_t evicted = 5;
    struct tide_brief again = job(7, 1, 90);
    assert_int_equal(tide_tracker_add(tracker, &again, 12, &evicted), TIDE_EXISTS);
    assert_int_equal(evicted, 5);
    assert_int_equal(state_of(tracker, 7), TIDE_JOB_CLAIMING);
    assert_int_equal(tide_tracker_find(tracker, 7)->brief.priority, 30);
}

CASE(the_last_open_dependency_makes_a_job_ready_at_once, 4)
{
    struct tide_brief blocked = job(7, 1, 30);
    blocked.open_deps = 2;
    must_add(tracker, blocked, 10);
    assert_int_equal(state_of(tracker, 7), TIDE_JOB_BLOCKED);
    assert_false(tide_tracker_release(tracker, 7, 1, 1, 11));
    assert_int_equal(state_of(tracker, 7), TIDE_JOB_BLOCKED);
    assert_true(tide_tracker_release(tracker, 7, 1, 0, 12));
    assert_int_equal(state_of(tracker, 7), TIDE_JOB_READY);
    assert_false(tide_tracker_release(tracker, 7, 1, 0, 13));
    assert_false(tide_tracker_release(tracker, 7, 1, 1, 14)); /* a new dependency */
    assert_int_equal(state_of(tracker, 7), TIDE_JOB_BLOCKED);
    must_add(tracker, job(8, 1, 30), 15);
    tide_tracker_claiming(tracker, 8, 16);
    assert_false(tide_tracker_release(tracker, 8, 1, 0, 17)); /* old news of a claimed one */
    assert_int_equal(state_of(tracker, 8), TIDE_JOB_CLAIMING);
}

CASE(a_release_outside_the_window_asks_for_a_refill, 4)
{
    struct tide_refill refill;
    assert_false(tide_tracker_release(tracker, 7, 3, 1, 10));
    assert_false(tide_tracker_refill(tracker, &refill));
    assert_false(tide_tracker_release(tracker, 7, 3, 0, 10));
    assert_true(tide_tracker_refill(tracker, &refill));
    assert_int_equal(refill.account, 3);
    assert_int_equal(refill.after_priority, 255);
    assert_int_equal(refill.after_id, 0);
    tide_tracker_refilled(tracker, &refill, 0, NULL);
    assert_false(tide_tracker_refill(tracker, &refill));
}

CASE(time_wakes_waiting_and_parked_jobs_in_order, 4)
{
    assert_int_equal(tide_tracker_wake_at_ms(tracker), UINT64_MAX);
    struct tide_brief later = job(1, 1, 30);
    later.not_before_ms = 100;
    must_add(tracker, later, 10);
    must_add(tracker, job(2, 1, 30), 10);
    tide_tracker_claiming(tracker, 2, 10);
    tide_tracker_claimed(tracker, 2, 5, 10);
    tide_tracker_started(tracker, 2, 10);
    tide_tracker_parked(tracker, 2, 50, 10);
    assert_int_equal(tide_tracker_wake_at_ms(tracker), 50);
    assert_int_equal(tide_tracker_due_at_ms(tracker, 1), 100); /* each has its own time */
    assert_int_equal(tide_tracker_due_at_ms(tracker, 2), 50);
    assert_int_equal(tide_tracker_due_at_ms(tracker, 3), 0);
    assert_int_equal(tide_tracker_due(tracker, 49), 0);
    assert_int_equal(tide_tracker_due(tracker, 100), 2);
    assert_int_equal(state_of(tracker, 2), TIDE_JOB_CLAIMED);
    assert_int_equal(tide_tracker_find(tracker, 2)->token, 5);
    assert_int_equal(tide_tracker_due(tracker, 100), 1);
    assert_int_equal(state_of(tracker, 1), TIDE_JOB_READY);
    assert_int_equal(tide_tracker_due_at_ms(tracker, 1), 0); /* it waits for no time now */
    assert_int_equal(tide_tracker_due(tracker, 100), 0);
    assert_true(tide_tracker_check(tracker));
}

CASE(a_retry_gives_up_the_token_and_waits, 4)
{
    must_add(tracker, job(2, 1, 30), 10);
    tide_tracker_claiming(tracker, 2, 10);
    tide_tracker_claimed(tracker, 2, 5, 10);
    tide_tracker_ending(tracker, 2, 11);
    tide_tracker_put_back(tracker, 2, 500, 3, 11);
    const struct tide_tracked *tracked = tide_tracker_find(tracker, 2);
    assert_int_equal(tracked->state, TIDE_JOB_WAITING);
    assert_int_equal(tracked->token, 0);
    assert_int_equal(tracked->brief.attempts, 3);
    assert_int_equal(tide_tracker_due(tracker, 500), 2);
    tide_tracker_claiming(tracker, 2, 500);
    tide_tracker_put_back(tracker, 2, 0, 3, 500); /* the claim did not commit */
    assert_int_equal(state_of(tracker, 2), TIDE_JOB_READY);
}

CASE(a_raised_priority_counts_until_the_job_is_claimed, 2)
{
    must_add(tracker, job(1, 1, 30), 10);
    must_add(tracker, job(2, 1, 30), 10);
    assert_true(tide_tracker_priority(tracker, 2, 80));
    assert_false(tide_tracker_priority(tracker, 2, 80));
    assert_false(tide_tracker_priority(tracker, 2, 20));
    assert_false(tide_tracker_priority(tracker, 77, 90));
    assert_int_equal(must_add(tracker, job(3, 1, 50), 10), 1); /* 2 is not the last any more */
    tide_tracker_claiming(tracker, 2, 10);
    assert_false(tide_tracker_priority(tracker, 2, 90));
}

CASE(a_full_window_gives_up_its_last_unclaimed_job, 3)
{
    must_add(tracker, job(1, 1, 10), 10);
    must_add(tracker, job(2, 1, 20), 10);
    must_add(tracker, job(3, 1, 30), 10);
    tide_tracker_claiming(tracker, 1, 10); /* the last in order, but being claimed */
    uint64_t evicted = 0;
    struct tide_brief low = job(4, 1, 5);
    assert_int_equal(tide_tracker_add(tracker, &low, 10, &evicted), TIDE_FULL);
    assert_true(tide_tracker_owes(tracker, 1, 5, 4));
    assert_false(tide_tracker_owes(tracker, 1, 20, 2));
    assert_int_equal(must_add(tracker, job(5, 1, 90), 10), 2);
    assert_true(tide_tracker_owes(tracker, 1, 20, 2));
    assert_true(tide_tracker_check(tracker));
}

CASE(blocked_jobs_never_keep_out_one_that_can_run, 10)
{
    for (uint64_t id = 2; id <= 11; id++) {
        struct tide_brief child = job(id, 1, 90);
        child.open_deps = 1;
        must_add(tracker, child, 10);
    }
    tide_tracker_more(tracker, 1);
    struct tide_refill refill;
    assert_true(tide_tracker_refill(tracker, &refill)); /* full, yet nothing can run */
    struct tide_brief parent = job(1, 1, 5);
    assert_int_equal(must_add(tracker, parent, 10), 11);
    tide_tracker_refilled(tracker, &refill, 1, &parent);
    assert_int_equal(state_of(tracker, 1), TIDE_JOB_READY);
    /* The child that left comes back by its release. */
    assert_false(tide_tracker_owes(tracker, 1, 90, 11));
    tide_tracker_release(tracker, 11, 1, 0, 12);
    assert_true(tide_tracker_owes(tracker, 1, 90, 11));
}

CASE(the_head_of_a_small_account_gets_in_beside_a_flood, 10)
{
    for (uint64_t id = 1; id <= 10; id++)
        must_add(tracker, job(id, 1, 90), 10);
    assert_int_equal(must_add(tracker, job(11, 2, 5), 10), 10);
    uint64_t evicted = 0;
    struct tide_brief second = job(12, 2, 5);
    assert_int_equal(tide_tracker_add(tracker, &second, 10, &evicted), TIDE_FULL);
    struct tide_refill refill;
    assert_false(tide_tracker_refill(tracker, &refill)); /* full, no account is without a job */
    tide_tracker_claiming(tracker, 11, 10);
    tide_tracker_remove(tracker, 11);
    assert_true(tide_tracker_refill(tracker, &refill));
    assert_int_equal(refill.account, 2);
}

CASE(a_waiting_job_given_up_is_looked_for_at_its_time, 2)
{
    for (uint64_t id = 1; id <= 2; id++) {
        struct tide_brief waits = job(id, 1, 90);
        waits.not_before_ms = 1000 * id;
        must_add(tracker, waits, 10);
    }
    assert_int_equal(must_add(tracker, job(3, 1, 5), 10), 2); /* ready beats waiting */
    assert_false(tide_tracker_owes(tracker, 1, 90, 2));
    tide_tracker_claiming(tracker, 3, 10);
    struct tide_refill refill;
    assert_false(tide_tracker_refill(tracker, &refill));
    assert_int_equal(tide_tracker_due(tracker, 1000), 1);
    assert_int_equal(tide_tracker_wake_at_ms(tracker), 2000);
    assert_int_equal(tide_tracker_due(tracker, 2000), 0);
    assert_true(tide_tracker_owes(tracker, 1, 90, 2));
    assert_int_equal(tide_tracker_wake_at_ms(tracker), UINT64_MAX);
}

CASE(refill_starts_below_half_and_stops_at_four_fifths, 100)
{
    uint64_t id = 1;
    struct tide_refill refill;
    for (; id <= 50; id++)
        must_add(tracker, job(id, 1, 30), 10);
    tide_tracker_more(tracker, 1);
    assert_false(tide_tracker_refill(tracker, &refill));
    tide_tracker_remove(tracker, 50);
    assert_true(tide_tracker_refill(tracker, &refill));
    assert_int_equal(refill.count_max, 31);
    struct tide_refill second;
    assert_false(tide_tracker_refill(tracker, &second)); /* one is under way */
    struct tide_brief last = job(0, 1, 30);
    for (uint32_t i = 0; i < 31; i++, id++) {
        last = job(id, 1, 30);
        must_add(tracker, last, 10);
    }
    tide_tracker_refilled(tracker, &refill, 31, &last);
    assert_int_equal(tide_tracker_count(tracker), 80);
    assert_false(tide_tracker_refill(tracker, &refill));
    for (uint64_t gone = 1; gone <= 31; gone++)
        tide_tracker_remove(tracker, gone);
    assert_true(tide_tracker_refill(tracker, &refill));
    assert_int_equal(refill.after_priority, 30);
    assert_int_equal(refill.after_id, last.id);
}

CASE(refill_starts_and_stops_where_it_was_set, 100)
{
    struct tide_refill refill;
    assert_int_equal(tide_tracker_refill_set(tracker, 0, 900), TIDE_INVALID);
    assert_int_equal(tide_tracker_refill_set(tracker, 500, 500), TIDE_INVALID);
    assert_int_equal(tide_tracker_refill_set(tracker, 500, 1001), TIDE_INVALID);
    OK(tide_tracker_refill_set(tracker, 200, 600));
    for (uint64_t id = 1; id <= 20; id++)
        must_add(tracker, job(id, 1, 30), 10);
    tide_tracker_more(tracker, 1);
    assert_false(tide_tracker_refill(tracker, &refill));
    tide_tracker_remove(tracker, 20);
    assert_true(tide_tracker_refill(tracker, &refill));
    assert_int_equal(refill.count_max, 41);
}

CASE(one_account_with_a_million_leaves_room_for_a_thousand_with_ten, TIDE_WINDOW_JOBS_MAX)
{
    uint64_t next[1002];
    uint64_t left[1002];
    for (uint32_t account = 1; account <= 1001; account++) {
        next[account] = (uint64_t)account << 32;
        left[account] = account == 1 ? 1000000 : 10;
        tide_tracker_more(tracker, account);
    }
    struct tide_refill refill;
    uint32_t served[1002] = {0};
    uint32_t refills = 0;
    while (tide_tracker_refill(tracker, &refill)) {
        struct tide_brief last = {0};
        uint32_t loaded = 0;
        for (; loaded < refill.count_max && left[refill.account] > 0; loaded++) {
            last = job(++next[refill.account], refill.account, 30);
            left[refill.account]--;
            must_add(tracker, last, 10);
            served[refill.account]++;
        }
        tide_tracker_refilled(tracker, &refill, loaded, loaded > 0 ? &last : NULL);
        assert_true(++refills < 5000);
    }
    assert_true(tide_tracker_count(tracker) >= TIDE_WINDOW_JOBS_MAX * 4 / 5);
    for (uint32_t account = 1; account <= 1001; account++)
        assert_in_range(served[account], 1, 16);
    assert_true(tide_tracker_check(tracker));
}

TEST(a_full_window_takes_less_than_three_megabytes)
{
    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, UINT64_MAX);
    tide_tracker *tracker = NULL;
    OK(tide_tracker_new(TIDE_WINDOW_JOBS_MAX, &mem.base, &tracker));
    uint64_t allocations = mem.allocations;
    for (uint64_t id = 1; id <= 2 * TIDE_WINDOW_JOBS_MAX; id++) {
        uint64_t evicted = 0;
        struct tide_brief brief = job(id, (uint32_t)id % 3000, (uint8_t)(id % 101));
        (void)tide_tracker_add(tracker, &brief, 10, &evicted);
    }
    assert_int_equal(tide_tracker_count(tracker), TIDE_WINDOW_JOBS_MAX);
    assert_int_equal(tide_tracker_room(tracker), 0);
    assert_int_equal(mem.allocations, allocations); /* nothing after _new */
    assert_int_equal(mem.bytes_live, tide_tracker_bytes(tracker));
    assert_true(mem.bytes_live < 3 * 1024 * 1024);
    tide_tracker_free(tracker);
    assert_int_equal(mem.bytes_live, 0);
}

CASE(accounts_come_and_go_beyond_the_table, 2)
{
    struct tide_brief waits = job(1000001, 99998, 5);
    waits.not_before_ms = 5000;
    must_add(tracker, job(1000000, 99997, 30), 10); /* an account with a job is not forgotten */
    must_add(tracker, waits, 10);
    /* Nor is one whose job was given up and comes back at its time. */
    assert_int_equal(must_add(tracker, job(1000002, 99997, 30), 10), 1000001);
    tide_tracker_remove(tracker, 1000002);
    for (uint32_t account = 1; account <= 3 * TIDE_ACCOUNTS_MAX; account++) {
        must_add(tracker, job(account, account, 30), 10);
        tide_tracker_remove(tracker, account);
    }
    assert_int_equal(state_of(tracker, 1000000), TIDE_JOB_READY);
    assert_int_equal(tide_tracker_wake_at_ms(tracker), 5000);
    assert_false(tide_tracker_owes(tracker, 88888, 30, 1)); /* unknown */
    for (uint32_t account = 1; account <= TIDE_ACCOUNTS_MAX + 1; account++)
        tide_tracker_more(tracker, account); /* the last ones find no place */
    assert_false(tide_tracker_owes(tracker, TIDE_ACCOUNTS_MAX + 1, 30, 1));
    struct tide_brief brief = job(9, 99999, 30);
    uint64_t evicted = 0;
    assert_int_equal(tide_tracker_add(tracker, &brief, 10, &evicted), TIDE_FULL);
    assert_true(tide_tracker_check(tracker));
}

static bool count_three(const struct tide_tracked *tracked, void *arg)
{
    assert_non_null(tracked);
    return ++*(int *)arg < 3;
}

CASE(each_visits_until_told_to_stop, 8)
{
    int visited = 0;
    for (uint64_t id = 1; id <= 5; id++)
        must_add(tracker, job(id, 1, 30), 10);
    tide_tracker_each(tracker, count_three, &visited);
    assert_int_equal(visited, 3);
    for (uint64_t id = 1; id <= 3; id++)
        tide_tracker_remove(tracker, id);
    visited = 0;
    tide_tracker_each(tracker, count_three, &visited);
    assert_int_equal(visited, 2); /* all that are left */
    assert_null(tide_tracker_find(tracker, 0));
}

TEST(every_allocation_may_fail)
{
    for (uint64_t fail_at = 0;; fail_at++) {
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        tide_tracker *tracker = NULL;
        tide_status rc = tide_tracker_new(100, &mem.base, &tracker);
        if (rc == TIDE_OK) {
            assert_false(mem.fired);
            tide_tracker_free(tracker);
            break;
        }
        assert_int_equal(rc, TIDE_NO_MEMORY);
        assert_null(tracker);
        assert_int_equal(mem.bytes_live, 0);
    }
    tide_tracker *tracker = NULL;
    assert_int_equal(tide_tracker_new(0, tide_mem_heap(), &tracker), TIDE_INVALID);
    assert_int_equal(tide_tracker_new(TIDE_WINDOW_JOBS_MAX + 1, tide_mem_heap(), &tracker),
                     TIDE_INVALID);
    tide_tracker_free(NULL);
}

/* The model: a small ledger, and beside each row what the tracker must know. */

enum { ROWS = 48, ACCOUNTS = 5, REFILLS = ACCOUNTS };

struct row {
    struct tide_brief brief; /* id 0: no such job in the ledger */
    bool here;
    tide_job_state state; /* while here */
    uint64_t token;
    uint64_t due_ms;
};

struct model {
    tide_rng rng;
    tide_tracker *tracker;
    struct row rows[ROWS];
    uint32_t window_max;
    uint64_t next_id;
    uint64_t now_ms;
    struct tide_refill refills[REFILLS];
    int refills_count;
    uint64_t seed;
    uint64_t step;
};

#define MODEL_ASSERT(model, condition)                                                             \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "seed %" PRIu64 " step %" PRIu64 ": %s\n", (model)->seed,              \
                    (model)->step, #condition);                                                    \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

static bool runnable(const struct row *row)
{
    return row->here && (row->state == TIDE_JOB_READY || row->state == TIDE_JOB_WAITING);
}

static uint32_t model_count(const struct model *model)
{
    uint32_t count = 0;
    for (int i = 0; i < ROWS; i++)
        count += model->rows[i].here;
    return count;
}

static uint32_t model_ready(const struct model *model, uint32_t account)
{
    uint32_t count = 0;
    for (int i = 0; i < ROWS; i++)
        count += model->rows[i].here && model->rows[i].state == TIDE_JOB_READY &&
                 model->rows[i].brief.account == account;
    return count;
}

static uint32_t model_most(const struct model *model)
{
    uint32_t most = 0;
    for (uint32_t account = 0; account < ACCOUNTS; account++)
        if (model_ready(model, account) > most)
            most = model_ready(model, account);
    return most;
}

/* The last in order of those that `state` (TIDE_JOB_STATES: READY and WAITING)
 * and `account` (UINT32_MAX: any) select. */
static struct row *model_last(struct model *model, tide_job_state state, uint32_t account)
{
    struct row *last = NULL;
    for (int i = 0; i < ROWS; i++) {
        struct row *row = &model->rows[i];
        bool fits = state == TIDE_JOB_STATES ? runnable(row) : row->here && row->state == state;
        if (!fits || (account != UINT32_MAX && row->brief.account != account))
            continue;
        if (last == NULL || tide_brief_before(&last->brief, &row->brief))
            last = row;
    }
    return last;
}

static struct row *model_latest_waiting(struct model *model)
{
    struct row *latest = NULL;
    for (int i = 0; i < ROWS; i++) {
        struct row *row = &model->rows[i];
        if (row->here && row->state == TIDE_JOB_WAITING &&
            (latest == NULL || row->due_ms > latest->due_ms ||
             (row->due_ms == latest->due_ms && row->brief.id > latest->brief.id)))
            latest = row;
    }
    return latest;
}

/* Who has to leave a full window; *fat_out: the last job of any of the fattest
 * accounts, whichever of equals the tracker takes. */
static struct row *model_victim(struct model *model, const struct tide_brief *brief, bool *fat_out)
{
    struct row *last = model_last(model, TIDE_JOB_BLOCKED, UINT32_MAX);
    *fat_out = false;
    if (brief->open_deps > 0)
        return last != NULL && tide_brief_before(brief, &last->brief) ? last : NULL;
    if (last != NULL)
        return last;
    last = model_last(model, TIDE_JOB_STATES, UINT32_MAX);
    bool after = last != NULL && tide_brief_before(brief, &last->brief);
    if (brief->not_before_ms > model->now_ms)
        return after && last->state == TIDE_JOB_WAITING ? last : NULL;
    if (after)
        return last;
    if (model_ready(model, brief->account) > 0)
        return NULL;
    *fat_out = model_most(model) > 1;
    return *fat_out ? last : model_latest_waiting(model);
}

static struct row *row_of(struct model *model, uint64_t id)
{
    for (int i = 0; i < ROWS; i++)
        if (model->rows[i].brief.id == id)
            return &model->rows[i];
    return NULL;
}

static void row_enters(struct model *model, struct row *row)
{
    row->here = true;
    row->token = 0;
    row->due_ms = row->brief.not_before_ms;
    if (row->brief.open_deps > 0)
        row->state = TIDE_JOB_BLOCKED;
    else
        row->state = row->due_ms > model->now_ms ? TIDE_JOB_WAITING : TIDE_JOB_READY;
}

static void model_add(struct model *model, struct row *row)
{
    uint64_t evicted = 0;
    bool fat = false;
    bool full = model_count(model) == model->window_max;
    struct row *victim = full && !row->here ? model_victim(model, &row->brief, &fat) : NULL;
    tide_status rc = tide_tracker_add(model->tracker, &row->brief, model->now_ms, &evicted);
    if (row->here) {
        MODEL_ASSERT(model, rc == TIDE_EXISTS);
        return;
    }
    if (full && victim == NULL) {
        MODEL_ASSERT(model, rc == TIDE_FULL);
        return;
    }
    MODEL_ASSERT(model, rc == TIDE_OK);
    MODEL_ASSERT(model, full == (evicted != 0));
    if (full) {
        struct row *gone = row_of(model, evicted);
        MODEL_ASSERT(model, gone != NULL && gone->here);
        if (fat) {
            uint32_t account = gone->brief.account;
            MODEL_ASSERT(model, gone == model_last(model, TIDE_JOB_READY, account));
            MODEL_ASSERT(model, model_ready(model, account) == model_most(model));
        } else {
            MODEL_ASSERT(model, gone == victim);
        }
        gone->here = false;
    }
    row_enters(model, row);
}

static struct row *random_row(struct model *model, tide_job_state state)
{
    int start = (int)tide_rng_below(&model->rng, ROWS);
    for (int i = 0; i < ROWS; i++) {
        struct row *row = &model->rows[(start + i) % ROWS];
        if (row->here && row->state == state)
            return row;
    }
    return NULL;
}

static void step_enqueue(struct model *model)
{
    struct row *row = row_of(model, 0);
    if (row == NULL)
        return;
    memset(row, 0, sizeof *row);
    row->brief = job(model->next_id++, (uint32_t)tide_rng_below(&model->rng, ACCOUNTS),
                     (uint8_t)tide_rng_below(&model->rng, 4));
    if (tide_rng_chance(&model->rng, 1, 4))
        row->brief.open_deps = (uint32_t)tide_rng_below(&model->rng, 3);
    if (tide_rng_chance(&model->rng, 1, 4))
        row->brief.not_before_ms = model->now_ms + tide_rng_below(&model->rng, 20);
    model_add(model, row);
}

static void step_release(struct model *model)
{
    struct row *row = &model->rows[tide_rng_below(&model->rng, ROWS)];
    if (row->brief.id == 0 || row->brief.open_deps == 0)
        return;
    row->brief.open_deps--;
    bool ran = tide_tracker_release(model->tracker, row->brief.id, row->brief.account,
                                    row->brief.open_deps, model->now_ms);
    MODEL_ASSERT(model, ran == (row->here && row->brief.open_deps == 0));
    if (ran)
        row_enters(model, row);
}

/* One step of a job's life. */
static void step_life(struct model *model)
{
    tide_job_state state =
        TIDE_JOB_READY + (tide_job_state)tide_rng_below(&model->rng, TIDE_JOB_STATES - 2);
    struct row *row = random_row(model, state);
    if (row == NULL)
        return;
    uint64_t id = row->brief.id;
    uint64_t dice = tide_rng_below(&model->rng, 8);
    tide_tracker *tracker = model->tracker;
    if (dice == 0 || state == TIDE_JOB_ENDING) { /* done, canceled, or refused */
        tide_tracker_remove(tracker, id);
        memset(row, 0, sizeof *row);
    } else if (state == TIDE_JOB_READY) {
        tide_tracker_claiming(tracker, id, model->now_ms);
        row->state = TIDE_JOB_CLAIMING;
    } else if (dice == 1) {
        row->brief.not_before_ms = model->now_ms + tide_rng_below(&model->rng, 10);
        tide_tracker_put_back(tracker, id, row->brief.not_before_ms, 1, model->now_ms);
        row_enters(model, row);
    } else if (state == TIDE_JOB_CLAIMING) {
        row->token = model->step + 1;
        tide_tracker_claimed(tracker, id, row->token, model->now_ms);
        row->state = TIDE_JOB_CLAIMED;
    } else if (state == TIDE_JOB_CLAIMED && dice > 3) {
        tide_tracker_started(tracker, id, model->now_ms);
        row->state = TIDE_JOB_RUNNING;
    } else if (state == TIDE_JOB_RUNNING && dice < 4) {
        row->due_ms = model->now_ms + tide_rng_below(&model->rng, 10);
        tide_tracker_parked(tracker, id, row->due_ms, model->now_ms);
        row->state = TIDE_JOB_PARKED;
    } else {
        tide_tracker_ending(tracker, id, model->now_ms);
        row->state = TIDE_JOB_ENDING;
    }
}

static void step_time(struct model *model)
{
    model->now_ms += tide_rng_below(&model->rng, 6);
    uint64_t id = 0;
    do {
        struct row *first = NULL;
        for (int i = 0; i < ROWS; i++) {
            struct row *row = &model->rows[i];
            if (!row->here || (row->state != TIDE_JOB_WAITING && row->state != TIDE_JOB_PARKED))
                continue;
            if (first == NULL || row->due_ms < first->due_ms ||
                (row->due_ms == first->due_ms && row->brief.id < first->brief.id))
                first = row;
        }
        bool due = first != NULL && first->due_ms <= model->now_ms;
        id = tide_tracker_due(model->tracker, model->now_ms);
        MODEL_ASSERT(model, id == (due ? first->brief.id : 0));
        if (due)
            first->state = first->state == TIDE_JOB_PARKED ? TIDE_JOB_CLAIMED : TIDE_JOB_READY;
    } while (id != 0);
}

static void step_priority(struct model *model)
{
    struct row *row = &model->rows[tide_rng_below(&model->rng, ROWS)];
    uint8_t priority = (uint8_t)(row->brief.priority + 1);
    bool unclaimed = !row->here || runnable(row) || row->state == TIDE_JOB_BLOCKED;
    if (row->brief.id == 0 || !unclaimed || priority > 6)
        return;
    bool changed = tide_tracker_priority(model->tracker, row->brief.id, priority);
    MODEL_ASSERT(model, changed == row->here);
    row->brief.priority = priority;
    if (!row->here)
        tide_tracker_more(model->tracker, row->brief.account);
}

/* What the ledger answers: the next ready pending row of an account. */
static struct row *ledger_next(struct model *model, uint32_t account,
                               const struct tide_brief *after)
{
    struct row *first = NULL;
    for (int i = 0; i < ROWS; i++) {
        struct row *row = &model->rows[i];
        bool pending = !row->here || runnable(row) || row->state == TIDE_JOB_CLAIMING;
        if (row->brief.id == 0 || row->brief.account != account || row->brief.open_deps > 0 ||
            !pending || !tide_brief_before(after, &row->brief))
            continue;
        if (first == NULL || tide_brief_before(&row->brief, &first->brief))
            first = row;
    }
    return first;
}

static void refill_answer(struct model *model, const struct tide_refill *refill)
{
    struct tide_brief last = job(refill->after_id, 0, refill->after_priority);
    uint32_t loaded = 0;
    for (; loaded < refill->count_max; loaded++) {
        struct row *row = ledger_next(model, refill->account, &last);
        if (row == NULL)
            break;
        last = row->brief;
        model_add(model, row);
    }
    tide_tracker_refilled(model->tracker, refill, loaded, loaded == 0 ? NULL : &last);
}

static void step_refill(struct model *model)
{
    struct tide_refill refill;
    bool wants = tide_tracker_wants_refill(model->tracker);
    bool asked = tide_tracker_refill(model->tracker, &refill);
    MODEL_ASSERT(model, wants == asked);
    if (asked) {
        MODEL_ASSERT(model, model->refills_count < REFILLS);
        for (int i = 0; i < model->refills_count; i++)
            MODEL_ASSERT(model, model->refills[i].account != refill.account);
        MODEL_ASSERT(model, refill.count_max > 0);
        model->refills[model->refills_count++] = refill;
        if (tide_rng_chance(&model->rng, 1, 2))
            return; /* the answer comes later */
    }
    if (model->refills_count == 0)
        return;
    int which = (int)tide_rng_below(&model->rng, (uint64_t)model->refills_count);
    refill = model->refills[which];
    model->refills[which] = model->refills[--model->refills_count];
    refill_answer(model, &refill);
}

/* A job that could run and is not here: a refill will look for it (TRK6). */
static bool model_owed(struct model *model, const struct row *row)
{
    for (int i = 0; i < model->refills_count; i++) {
        struct tide_brief after =
            job(model->refills[i].after_id, 0, model->refills[i].after_priority);
        if (model->refills[i].account == row->brief.account &&
            tide_brief_before(&after, &row->brief))
            return true;
    }
    return tide_tracker_owes(model->tracker, row->brief.account, row->brief.priority,
                             row->brief.id) ||
           tide_tracker_wake_at_ms(model->tracker) <= row->brief.not_before_ms;
}

static void model_compare(struct model *model)
{
    uint32_t states[TIDE_JOB_STATES] = {0};
    for (int i = 0; i < ROWS; i++) {
        struct row *row = &model->rows[i];
        if (row->brief.id == 0)
            continue;
        const struct tide_tracked *tracked = tide_tracker_find(model->tracker, row->brief.id);
        MODEL_ASSERT(model, (tracked != NULL) == row->here);
        if (tracked == NULL) {
            MODEL_ASSERT(model, row->brief.open_deps > 0 || model_owed(model, row));
            continue;
        }
        MODEL_ASSERT(model, tracked->state == row->state);
        MODEL_ASSERT(model, tracked->brief.priority == row->brief.priority);
        MODEL_ASSERT(model, tracked->token == (row->state >= TIDE_JOB_CLAIMED ? row->token : 0));
        states[row->state]++;
    }
    for (tide_job_state state = 0; state < TIDE_JOB_STATES; state++)
        MODEL_ASSERT(model, tide_tracker_count_state(model->tracker, state) == states[state]);
    MODEL_ASSERT(model, tide_tracker_check(model->tracker));
}

static void random_step(struct model *model)
{
    switch (tide_rng_below(&model->rng, 12)) {
    case 0:
    case 1:
    case 2:
        step_enqueue(model);
        break;
    case 3:
        step_release(model);
        break;
    case 4:
        step_time(model);
        break;
    case 5:
        step_priority(model);
        break;
    case 6:
        step_refill(model);
        break;
    default:
        step_life(model);
    }
}

TEST(the_tracker_agrees_with_a_model_that_recounts_everything)
{
    const uint64_t steps = scaled(100000);
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct model model = {.rng = tide_rng_seeded(seed), .seed = seed, .next_id = 1};
        model.window_max = 1 + (uint32_t)tide_rng_below(&model.rng, 30);
        model.tracker = tracker_of(model.window_max);
        for (model.step = 0; model.step < steps; model.step++) {
            random_step(&model);
            if (model.step % 16 == 0)
                model_compare(&model);
        }
        model_compare(&model);
        tide_tracker_free(model.tracker);
    }
}

/* While account 1 is shut out, no other account may be left behind. */
static void only_account_1_is_left(struct model *model)
{
    for (int i = 0; i < ROWS; i++)
        MODEL_ASSERT(model, model->rows[i].brief.id == 0 || model->rows[i].brief.account == 1 ||
                                model->rows[i].brief.open_deps > 0);
}

/* Liveness: whatever was enqueued runs, although the window is far smaller, one
 * account is not claimed for a thousand steps, and many jobs wait or block.
 * The number of refills stays in proportion: nothing asks in circles. */
TEST(everything_in_the_ledger_gets_its_turn)
{
    const uint64_t worlds = scaled(1000);
    for (uint64_t seed = 1; seed <= worlds; seed++) {
        struct model model = {.rng = tide_rng_seeded(seed), .seed = seed, .next_id = 1};
        model.window_max = 2 + (uint32_t)tide_rng_below(&model.rng, 8);
        model.tracker = tracker_of(model.window_max);
        for (int i = 0; i < ROWS; i++)
            step_enqueue(&model);
        uint32_t refills = 0;
        uint32_t left = ROWS;
        for (model.step = 0; left > 0; model.step++) {
            struct tide_refill refill;
            while (tide_tracker_refill(model.tracker, &refill)) {
                MODEL_ASSERT(&model, ++refills < 2000);
                refill_answer(&model, &refill);
            }
            struct row *row = NULL;
            for (int i = 0; i < ROWS && row == NULL; i++)
                if (model.rows[i].here && model.rows[i].state == TIDE_JOB_READY &&
                    (model.rows[i].brief.account != 1 || model.step > 1000))
                    row = &model.rows[i];
            if (row != NULL) {
                tide_tracker_claiming(model.tracker, row->brief.id, model.now_ms);
                tide_tracker_remove(model.tracker, row->brief.id);
                memset(row, 0, sizeof *row);
                left--;
            }
            if (model.step == 900)
                only_account_1_is_left(&model);
            MODEL_ASSERT(&model, model.step < 20000);
            step_release(&model);
            step_time(&model);
        }
        tide_tracker_free(model.tracker);
    }
}
