/* Goal: whatever is asked of a ledger, in whatever order, its invariants hold
 * and nothing is lost or done twice.  Method: each rule by example, then random
 * operations against a naive model that keeps every job in an array.  Everything
 * goes through ledger.h, so that the next engine passes the same suite. */
#include "base/check.h"
#include "base/limits.h"
#include "base/rng.h"
#include "engine/ledger.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW 1790000000000u

struct engine {
    const char *name;
    tide_status (*open)(tide_world *world, const char *dir, uint64_t now_unix_ms, bool read_only,
                        tide_ledger **ledger_out, tide_error *err);
    void (*forget)(const char *dir);
};

static tide_status sqlite_open(tide_world *world, const char *dir, uint64_t now_unix_ms,
                               bool read_only, tide_ledger **ledger_out, tide_error *err)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s/state.db", dir);
    struct tide_ledger_options options = {
        .path = path, .run_id = "run-1", .now_unix_ms = now_unix_ms, .read_only = read_only};
    return tide_ledger_open(world, &options, ledger_out, err);
}

static void sqlite_forget(const char *dir)
{
    static const char *const names[] = {"state.db", "state.db-wal", "state.db-shm",
                                        "copy.db",  "copy.db-wal",  "copy.db-shm"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[300];
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
}

static const struct engine engines[] = {{"sqlite", sqlite_open, sqlite_forget}};

/* What most tests need: an open ledger with two kinds, an account and changes. */
struct fixture {
    const struct engine *engine;
    tide_world *world;
    tide_ledger *ledger;
    tide_tx *tx;
    char dir[64];
    uint32_t once;  /* scope: pending */
    uint32_t alone; /* scope: pending and running */
    uint32_t account;
    uint64_t token;
    struct tide_changes changes;
    tide_error err;
};

static const struct engine *engine_now = &engines[0];

#define OK(call) assert_int_equal((call), TIDE_OK)

static void begin(struct fixture *f)
{
    OK(tide_tx_begin(f->ledger, &f->tx, &f->err));
}

static void undo(struct fixture *f)
{
    tide_tx_rollback(f->tx);
    f->tx = NULL;
}

/* Commits and tests every invariant. */
static void commit(struct fixture *f)
{
    tide_tx *tx = f->tx;
    f->tx = NULL;
    OK(tide_tx_commit(tx, &f->err));
    tide_buf problems;
    tide_buf_init(&problems, tide_mem_heap(), 1 << 16);
    tide_status rc = tide_ledger_check(f->ledger, &problems, &f->err);
    if (rc != TIDE_OK)
        (void)fprintf(stderr, "%s\n%s\n", f->err.text, tide_buf_cstr(&problems));
    tide_buf_done(&problems);
    assert_int_equal(rc, TIDE_OK);
}

static void reopen(struct fixture *f, bool clean)
{
    tide_ledger_close(f->ledger, clean);
    f->ledger = NULL;
    OK(f->engine->open(f->world, f->dir, NOW, false, &f->ledger, &f->err));
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->engine = engine_now;
    f->token = 100;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tide-ledger-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    OK(tide_world_real_new(tide_mem_heap(), &f->world, &f->err));
    OK(f->engine->open(f->world, f->dir, NOW, false, &f->ledger, &f->err));
    tide_changes_init(&f->changes, tide_mem_heap());
    begin(f);
    OK(tide_ledger_kind(f->tx, "once", TIDE_DEDUPE_PENDING, &f->once, &f->err));
    OK(tide_ledger_kind(f->tx, "alone", TIDE_DEDUPE_PENDING_AND_RUNNING, &f->alone, &f->err));
    OK(tide_ledger_account(f->tx, "a@example.com", "gmail", &f->account, &f->err));
    commit(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->tx != NULL) /* the test failed inside a transaction */
        tide_tx_rollback(f->tx);
    tide_ledger_close(f->ledger, true);
    tide_changes_done(&f->changes);
    tide_world_real_free(f->world);
    f->engine->forget(f->dir);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

/* ---- shorthand ------------------------------------------------------------------- */

static struct tide_job_new job_of(const struct fixture *f, const char *key)
{
    return (struct tide_job_new){.account = f->account,
                                 .kind = f->once,
                                 .dedupe_key = tide_text_of(key),
                                 .payload = TIDE_TEXT("{\"n\":1}"),
                                 .attempts_max = 5,
                                 .priority = 30,
                                 .lane = TIDE_LANE_BULK,
                                 .level = 4,
                                 .preemptible = true};
}

static struct tide_enqueued add(struct fixture *f, const struct tide_job_new *job)
{
    struct tide_enqueued enqueued = {0};
    begin(f);
    OK(tide_ledger_enqueue(f->tx, job, 1, NOW, &enqueued, &f->err));
    commit(f);
    assert_true(enqueued.id > 0);
    return enqueued;
}

static uint64_t add_plain(struct fixture *f)
{
    struct tide_job_new job = job_of(f, NULL);
    return add(f, &job).id;
}

static uint64_t add_needing(struct fixture *f, const uint64_t *needs, size_t count)
{
    struct tide_job_new job = job_of(f, NULL);
    job.needs = needs;
    job.needs_count = count;
    return add(f, &job).id;
}

/* The token, or 0 where the job could not be had. */
static uint64_t claim_as(struct fixture *f, uint64_t id, uint64_t owner)
{
    struct tide_job_body *body = NULL;
    uint64_t token = f->token++;
    begin(f);
    OK(tide_ledger_claim(f->tx, &id, 1, owner, token, NOW + 1, tide_mem_heap(), &body, &f->err));
    commit(f);
    if (body == NULL)
        return 0;
    assert_int_equal(body->id, id);
    assert_int_equal(body->token, token);
    tide_job_body_free(tide_mem_heap(), body);
    return token;
}

static uint64_t claim(struct fixture *f, uint64_t id)
{
    return claim_as(f, id, 7);
}

static bool finish(struct fixture *f, const struct tide_finish *finish)
{
    bool applied = false;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_finish(f->tx, finish, 1, NOW + 2, &applied, &f->changes, &f->err));
    commit(f);
    assert_int_equal(f->changes.refused_count, applied ? 0 : 1);
    return applied;
}

static bool end(struct fixture *f, uint64_t id, uint64_t token, tide_row_state state)
{
    return finish(f, &(struct tide_finish){.id = id, .token = token, .state = state});
}

static void run_to(struct fixture *f, uint64_t id, tide_row_state state)
{
    uint64_t token = claim(f, id);
    assert_int_not_equal(token, 0);
    assert_true(end(f, id, token, state));
}

struct seen_job {
    struct tide_job_row row;
    char payload[64], resume[64], error[64], key[64], run[32], account_name[64], kind_name[64];
    size_t count;
};

static void keep(char *room, size_t room_bytes, tide_text text)
{
    (void)snprintf(room, room_bytes, "%.*s", (int)text.bytes, text.bytes == 0 ? "" : text.data);
}

static bool see_job(const struct tide_job_row *row, void *arg)
{
    struct seen_job *seen = arg;
    seen->row = *row;
    keep(seen->payload, sizeof seen->payload, row->payload);
    keep(seen->resume, sizeof seen->resume, row->resume);
    keep(seen->error, sizeof seen->error, row->error);
    keep(seen->key, sizeof seen->key, row->dedupe_key);
    keep(seen->run, sizeof seen->run, row->run_id);
    keep(seen->account_name, sizeof seen->account_name, row->account_name);
    keep(seen->kind_name, sizeof seen->kind_name, row->kind_name);
    seen->count++;
    return true;
}

static struct seen_job look(struct fixture *f, uint64_t id)
{
    struct seen_job seen = {.count = 0};
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.id = id;
    OK(tide_ledger_jobs(f->ledger, &filter, see_job, &seen, &f->err));
    return seen;
}

static void assert_state(struct fixture *f, uint64_t id, tide_row_state state)
{
    struct seen_job seen = look(f, id);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.row.state, state);
    assert_int_equal(seen.row.token != 0, state == TIDE_ROW_RUNNING);
    assert_int_equal(seen.row.owner != 0, state == TIDE_ROW_RUNNING);
}

static size_t refill(struct fixture *f, uint32_t account, struct tide_brief *briefs, size_t max)
{
    size_t count = 0;
    OK(tide_ledger_refill(f->ledger, account, 255, 0, briefs, max, &count, &f->err));
    return count;
}

/* ---- jobs ------------------------------------------------------------------------ */

static void a_job_is_read_back_as_it_was_queued(void **state)
{
    struct fixture *f = *state;
    struct tide_job_new job = job_of(f, "key");
    job.size_bytes = 12345;
    job.not_before_unix_ms = NOW + 99;
    job.attempts = 2;
    job.level = 3;
    job.force = true;
    struct tide_enqueued enqueued = add(f, &job);
    assert_false(enqueued.existed);
    struct seen_job seen = look(f, enqueued.id);
    assert_int_equal(seen.row.size_bytes, 12345);
    assert_int_equal(seen.row.not_before_unix_ms, NOW + 99);
    assert_int_equal(seen.row.created_unix_ms, NOW);
    assert_int_equal(seen.row.attempts, 2);
    assert_int_equal(seen.row.attempts_max, 5);
    assert_int_equal(seen.row.priority, 30);
    assert_int_equal(seen.row.lane, TIDE_LANE_BULK);
    assert_int_equal(seen.row.level, 3);
    assert_true(seen.row.preemptible);
    assert_true(seen.row.force);
    assert_string_equal(seen.payload, "{\"n\":1}");
    assert_string_equal(seen.key, "key");
    assert_string_equal(seen.account_name, "a@example.com");
    assert_string_equal(seen.kind_name, "once");
    assert_state(f, enqueued.id, TIDE_ROW_PENDING);

    struct tide_brief brief;
    OK(tide_ledger_brief(f->ledger, enqueued.id, &brief, &f->err));
    assert_int_equal(brief.not_before_ms, NOW + 99);
    assert_int_equal(brief.level, 3);
    assert_true(brief.preemptible);
    assert_int_equal(tide_ledger_brief(f->ledger, 999, &brief, &f->err), TIDE_NOT_FOUND);
}

static void ids_only_grow_even_after_a_purge_and_a_restart(void **state)
{
    struct fixture *f = *state;
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t id = add_plain(f);
        assert_true(id > last);
        last = id;
        run_to(f, id, TIDE_ROW_DONE);
        size_t count = 0;
        begin(f);
        OK(tide_ledger_purge(f->tx, NOW + 100, 0, &count, &f->err));
        commit(f);
        reopen(f, i % 2 == 0);
    }
}

static void a_refused_enqueue_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct tide_job_new jobs[2] = {job_of(f, "a"), job_of(f, "b")};
    struct tide_enqueued enqueued[2];
    const uint64_t missing = 77;
    const uint32_t later = 1;
    static char huge[TIDE_PAYLOAD_BYTES_MAX + 1];
    struct {
        struct tide_job_new job;
        tide_status status;
    } wrong[8];
    for (size_t i = 0; i < 8; i++)
        wrong[i].job = jobs[1];
    wrong[0].job.needs = &missing, wrong[0].job.needs_count = 1, wrong[0].status = TIDE_NOT_FOUND;
    wrong[1].job.kind = 99, wrong[1].status = TIDE_NOT_FOUND;
    wrong[2].job.account = 99, wrong[2].status = TIDE_NOT_FOUND;
    wrong[3].job.cycle = 99, wrong[3].status = TIDE_NOT_FOUND;
    wrong[4].job.priority = 101, wrong[4].status = TIDE_INVALID;
    wrong[5].job.payload = (tide_text){huge, sizeof huge}, wrong[5].status = TIDE_INVALID;
    wrong[6].job.needs_earlier = &later, wrong[6].job.needs_earlier_count = 1;
    wrong[6].status = TIDE_INVALID;
    wrong[7].job.dedupe_key = (tide_text){huge, TIDE_DEDUPE_BYTES_MAX + 1};
    wrong[7].status = TIDE_INVALID;
    for (size_t i = 0; i < 8; i++) {
        jobs[1] = wrong[i].job;
        begin(f);
        assert_int_equal(tide_ledger_enqueue(f->tx, jobs, 2, NOW, enqueued, &f->err),
                         wrong[i].status);
        assert_true(strlen(f->err.text) > 0);
        commit(f);
        struct tide_brief briefs[4];
        assert_int_equal(refill(f, f->account, briefs, 4), 0);
    }
}

static void a_duplicate_returns_raises_and_forces_the_waiting_one(void **state)
{
    struct fixture *f = *state;
    struct tide_job_new job = job_of(f, "k");
    struct tide_enqueued first = add(f, &job);
    job.priority = 20;
    struct tide_enqueued lower = add(f, &job);
    assert_true(lower.existed);
    assert_false(lower.raised);
    assert_int_equal(lower.id, first.id);
    assert_int_equal(look(f, first.id).row.priority, 30);
    job.priority = 50;
    struct tide_enqueued higher = add(f, &job);
    assert_true(higher.existed && higher.raised);
    assert_int_equal(look(f, first.id).row.priority, 50);
    assert_false(look(f, first.id).row.force);
    job.priority = 10;
    job.force = true;
    assert_int_equal(add(f, &job).id, first.id);
    assert_true(look(f, first.id).row.force);
    assert_int_equal(look(f, first.id).row.priority, 50);
    job.force = false;
    (void)add(f, &job);
    assert_true(look(f, first.id).row.force);

    /* Another account, another kind, no key: not duplicates. */
    job.account = 0;
    assert_false(add(f, &job).existed);
    job.account = f->account;
    job.kind = f->alone;
    assert_false(add(f, &job).existed);
    job.dedupe_key = TIDE_TEXT_NONE;
    assert_false(add(f, &job).existed);
    assert_false(add(f, &job).existed);
}

static void duplicates_inside_one_call_are_found_too(void **state)
{
    struct fixture *f = *state;
    struct tide_job_new jobs[3] = {job_of(f, "k"), job_of(f, "other"), job_of(f, "k")};
    struct tide_enqueued enqueued[3];
    begin(f);
    OK(tide_ledger_enqueue(f->tx, jobs, 3, NOW, enqueued, &f->err));
    commit(f);
    assert_false(enqueued[0].existed || enqueued[1].existed);
    assert_true(enqueued[2].existed);
    assert_int_equal(enqueued[2].id, enqueued[0].id);
}

static void while_one_runs_one_more_may_wait(void **state)
{
    struct fixture *f = *state;
    struct tide_job_new job = job_of(f, "k");
    struct tide_enqueued first = add(f, &job);
    uint64_t token = claim(f, first.id);
    struct tide_enqueued second = add(f, &job);
    assert_false(second.existed);
    assert_true(add(f, &job).existed);

    /* Put back, it may not wait beside the other under one key; both will run. */
    assert_true(end(f, first.id, token, TIDE_ROW_PENDING));
    assert_string_equal(look(f, first.id).key, "");
    assert_string_equal(look(f, second.id).key, "k");
    struct tide_brief briefs[4];
    assert_int_equal(refill(f, f->account, briefs, 4), 2);

    /* The same for one that failed and is tried again. */
    run_to(f, second.id, TIDE_ROW_FAILED);
    struct tide_enqueued third = add(f, &job);
    assert_false(third.existed);
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.id = second.id;
    size_t count = 0;
    begin(f);
    OK(tide_ledger_retry(f->tx, &filter, NOW, &count, &f->changes, &f->err));
    commit(f);
    assert_int_equal(count, 1);
    assert_state(f, second.id, TIDE_ROW_PENDING);
    assert_string_equal(look(f, second.id).key, "");
}

static void where_the_scope_says_so_a_running_one_is_the_duplicate(void **state)
{
    struct fixture *f = *state;
    struct tide_job_new job = job_of(f, "k");
    job.kind = f->alone;
    struct tide_enqueued first = add(f, &job);
    uint64_t token = claim(f, first.id);
    job.priority = 90;
    job.force = true;
    struct tide_enqueued second = add(f, &job);
    assert_true(second.existed);
    assert_false(second.raised);
    assert_int_equal(second.id, first.id);
    assert_int_equal(look(f, first.id).row.priority, 30);
    assert_true(look(f, first.id).row.force);
    assert_true(end(f, first.id, token, TIDE_ROW_DONE));
    assert_false(add(f, &job).existed);
}

static void a_job_waits_until_all_it_needs_are_done(void **state)
{
    struct fixture *f = *state;
    uint64_t a = add_plain(f);
    uint64_t b = add_plain(f);
    uint64_t done = add_plain(f);
    run_to(f, done, TIDE_ROW_DONE);
    const uint64_t needs[] = {a, b, done, a};
    uint64_t c = add_needing(f, needs, 4);
    assert_int_equal(look(f, c).row.open_deps, 2);
    assert_int_equal(claim(f, c), 0);
    struct tide_need open[4];
    size_t count = 0;
    OK(tide_ledger_needs(f->ledger, c, open, 4, &count, &f->err));
    assert_int_equal(count, 2);
    assert_int_equal(open[0].id, a);
    assert_int_equal(open[1].state, TIDE_ROW_PENDING);

    run_to(f, a, TIDE_ROW_DONE);
    assert_int_equal(f->changes.released_count, 1);
    assert_int_equal(f->changes.released[0].id, c);
    assert_int_equal(f->changes.released[0].open_deps, 1);
    assert_int_equal(f->changes.released[0].account, f->account);

    /* b fails: c goes on waiting, and says for what. */
    run_to(f, b, TIDE_ROW_FAILED);
    assert_int_equal(f->changes.released_count, 0);
    OK(tide_ledger_needs(f->ledger, c, open, 4, &count, &f->err));
    assert_int_equal(count, 1);
    assert_int_equal(open[0].state, TIDE_ROW_FAILED);

    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.id = b;
    begin(f);
    OK(tide_ledger_retry(f->tx, &filter, NOW, &count, &f->changes, &f->err));
    commit(f);
    run_to(f, b, TIDE_ROW_DONE);
    assert_int_equal(f->changes.released_count, 1);
    assert_int_equal(f->changes.released[0].open_deps, 0);
    assert_int_not_equal(claim(f, c), 0);
}

static void jobs_ending_together_release_a_job_once(void **state)
{
    struct fixture *f = *state;
    const uint64_t needs[] = {add_plain(f), add_plain(f), add_plain(f)};
    uint64_t waiting = add_needing(f, needs, 3);
    struct tide_finish finishes[3];
    bool applied[3];
    for (size_t i = 0; i < 3; i++)
        finishes[i] = (struct tide_finish){
            .id = needs[i], .token = claim(f, needs[i]), .state = TIDE_ROW_DONE};
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_finish(f->tx, finishes, 3, NOW, applied, &f->changes, &f->err));
    commit(f);
    assert_int_equal(f->changes.released_count, 1);
    assert_int_equal(f->changes.released[0].id, waiting);
    assert_int_equal(f->changes.released[0].open_deps, 0);
}

static void jobs_of_one_call_may_need_each_other(void **state)
{
    struct fixture *f = *state;
    struct tide_job_new jobs[3] = {job_of(f, "k"), job_of(f, "k"), job_of(f, NULL)};
    const uint32_t earlier[] = {0, 1};
    struct tide_enqueued enqueued[3];
    jobs[2].needs_earlier = earlier;
    jobs[2].needs_earlier_count = 2;
    begin(f);
    OK(tide_ledger_enqueue(f->tx, jobs, 3, NOW, enqueued, &f->err));
    commit(f);
    assert_int_equal(enqueued[2].open_deps, 1); /* the second one is the first */
    run_to(f, enqueued[0].id, TIDE_ROW_DONE);
    assert_int_not_equal(claim(f, enqueued[2].id), 0);
}

/* ---- claim, finish, beat ------------------------------------------------------------ */

static void a_claim_carries_what_a_worker_needs(void **state)
{
    struct fixture *f = *state;
    struct tide_job_new job = job_of(f, "key");
    job.force = true;
    uint64_t id = add(f, &job).id;
    uint64_t token = claim(f, id);
    assert_int_equal(claim(f, id), 0); /* nobody claims it twice */
    struct seen_job seen = look(f, id);
    assert_int_equal(seen.row.owner, 7);
    assert_int_equal(seen.row.started_unix_ms, NOW + 1);
    assert_string_equal(seen.run, "run-1");
    assert_true(finish(f, &(struct tide_finish){.id = id,
                                                .token = token,
                                                .state = TIDE_ROW_PENDING,
                                                .attempts_add = 1,
                                                .not_before_unix_ms = NOW + 50,
                                                .status = TIDE_SERVER,
                                                .error = TIDE_TEXT("HTTP 500"),
                                                .resume_set = true,
                                                .resume = TIDE_TEXT("page 2"),
                                                .payload = TIDE_TEXT("{\"left\":1}"),
                                                .bytes_done = 10}));
    seen = look(f, id);
    assert_int_equal(seen.row.not_before_unix_ms, NOW + 50);
    assert_int_equal(seen.row.status, TIDE_SERVER);
    assert_string_equal(seen.error, "HTTP 500");
    assert_int_equal(seen.row.bytes_done, 10);
    assert_int_equal(seen.row.finished_unix_ms, 0);

    struct tide_job_body *body = NULL;
    begin(f);
    OK(tide_ledger_claim(f->tx, &id, 1, UINT64_MAX, UINT64_MAX - 5, NOW, tide_mem_heap(), &body,
                         &f->err));
    commit(f);
    assert_non_null(body);
    assert_int_equal(body->attempts, 1);
    assert_true(body->force);
    assert_true(tide_text_equal(body->payload, TIDE_TEXT("{\"left\":1}")));
    assert_true(tide_text_equal(body->resume, TIDE_TEXT("page 2")));
    assert_true(tide_text_equal(body->dedupe_key, TIDE_TEXT("key")));
    assert_int_equal(body->token, UINT64_MAX - 5);
    tide_job_body_free(tide_mem_heap(), body);
    assert_int_equal(look(f, id).row.owner, UINT64_MAX);
    assert_true(end(f, id, UINT64_MAX - 5, TIDE_ROW_DONE));
    seen = look(f, id);
    assert_int_equal(seen.row.status, TIDE_OK);
    assert_string_equal(seen.error, "");
    assert_int_equal(seen.row.finished_unix_ms, NOW + 2);
    assert_int_equal(claim(f, id), 0); /* done is done */
}

static void a_zombie_changes_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t id = add_plain(f);
    uint64_t stale = claim_as(f, id, 1);
    size_t count = 0;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_reclaim(f->tx, 2, 100, NOW, &count, &f->changes, &f->err));
    commit(f);
    assert_int_equal(count, 1);
    uint64_t token = claim_as(f, id, 2);

    struct tide_job_new child = job_of(f, "child");
    struct tide_item_report item = {TIDE_TEXT("x"), TIDE_TEXT("broken"), TIDE_PERMANENT};
    struct seen_job before = look(f, id);
    assert_false(finish(f, &(struct tide_finish){.id = id,
                                                 .token = stale,
                                                 .state = TIDE_ROW_DONE,
                                                 .error = TIDE_TEXT("zombie"),
                                                 .resume_set = true,
                                                 .resume = TIDE_TEXT("zombie"),
                                                 .children = &child,
                                                 .children_count = 1,
                                                 .items = &item,
                                                 .items_count = 1}));
    assert_int_equal(f->changes.refused[0].status, TIDE_STALE);
    assert_int_equal(f->changes.children_count, 0);
    struct tide_beat beat = {id, stale, 999, true, TIDE_TEXT("zombie")};
    bool applied = true;
    begin(f);
    OK(tide_ledger_beat(f->tx, &beat, 1, NOW + 9, &applied, &f->err));
    commit(f);
    assert_false(applied);
    struct seen_job after = look(f, id);
    assert_int_equal(after.row.token, before.row.token);
    assert_int_equal(after.row.bytes_done, before.row.bytes_done);
    assert_int_equal(after.row.beat_unix_ms, before.row.beat_unix_ms);
    assert_string_equal(after.resume, before.resume);
    assert_string_equal(after.error, before.error);
    assert_true(end(f, id, token, TIDE_ROW_DONE));
    assert_false(end(f, id, token, TIDE_ROW_FAILED));
    assert_state(f, id, TIDE_ROW_DONE);
}

static void beats_keep_bytes_and_resume_data(void **state)
{
    struct fixture *f = *state;
    uint64_t id = add_plain(f);
    uint64_t token = claim(f, id);
    struct tide_beat beats[2] = {{id, token, 10, false, TIDE_TEXT_NONE},
                                 {id, token, 20, true, TIDE_TEXT("session 9")}};
    bool applied[2] = {false, false};
    begin(f);
    OK(tide_ledger_beat(f->tx, beats, 2, NOW + 9, applied, &f->err));
    commit(f);
    assert_true(applied[0] && applied[1]);
    struct seen_job seen = look(f, id);
    assert_int_equal(seen.row.bytes_done, 20);
    assert_int_equal(seen.row.beat_unix_ms, NOW + 9);
    assert_string_equal(seen.resume, "session 9");
    /* The process dies: what was saved is there for the next one. */
    reopen(f, false);
    size_t count = 0;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_reclaim(f->tx, 8, 100, NOW, &count, &f->changes, &f->err));
    commit(f);
    assert_int_equal(count, 1);
    seen = look(f, id);
    assert_int_equal(seen.row.attempts, 1);
    assert_string_equal(seen.resume, "session 9");
    assert_int_equal(seen.row.bytes_done, 20);
    assert_string_equal(seen.run, "run-1");
}

static void a_reclaim_spares_its_owner_and_minds_the_budget(void **state)
{
    struct fixture *f = *state;
    struct tide_job_new job = job_of(f, NULL);
    uint64_t mine = add_plain(f);
    job.attempts_max = 2;
    job.attempts = 1;
    uint64_t poison = add(f, &job).id;
    job.kind = f->alone;
    uint64_t splits = add(f, &job).id;
    job.attempts_max = 0;
    uint64_t endless = add(f, &job).id;
    begin(f);
    OK(tide_ledger_kind_splits(f->tx, f->alone, true, &f->err));
    commit(f);
    (void)claim_as(f, mine, 5);
    (void)claim_as(f, poison, 4);
    (void)claim_as(f, splits, 4);
    (void)claim_as(f, endless, 4);
    size_t total = 0;
    size_t count = 1;
    tide_changes_clear(&f->changes);
    while (count == 1) { /* slices of one; ends when none is left */
        begin(f);
        OK(tide_ledger_reclaim(f->tx, 5, 1, NOW, &count, &f->changes, &f->err));
        commit(f);
        total += count;
    }
    assert_int_equal(total, 3);
    assert_state(f, mine, TIDE_ROW_RUNNING);
    assert_state(f, poison, TIDE_ROW_FAILED);
    assert_state(f, splits, TIDE_ROW_PENDING);
    assert_int_equal(look(f, splits).row.attempts, 2);
    assert_state(f, endless, TIDE_ROW_PENDING);
    assert_int_equal(f->changes.over_budget_count, 2);
    assert_int_equal(f->changes.over_budget[0].id, poison);
    assert_true(f->changes.over_budget[0].failed);
    assert_int_equal(f->changes.over_budget[1].id, splits);
    assert_false(f->changes.over_budget[1].failed);
}

static tide_status effect_writes(void *arg, tide_tx *tx, tide_error *err)
{
    tide_status rc = tide_ledger_note(tx, "effect", TIDE_TEXT("happened"), err);
    tide_status wanted = *(tide_status *)arg;
    if (rc == TIDE_OK && wanted != TIDE_OK)
        return tide_error_set(err, wanted, "the effect failed");
    return rc;
}

static bool note_is(struct fixture *f, const char *key, const char *value)
{
    tide_buf buf;
    tide_buf_init(&buf, tide_mem_heap(), 1000);
    tide_status rc = tide_ledger_note_get(f->ledger, key, &buf, &f->err);
    bool same = rc == TIDE_OK && strcmp(tide_buf_cstr(&buf), value) == 0;
    tide_buf_done(&buf);
    return same;
}

static void one_bad_finish_is_undone_alone(void **state)
{
    struct fixture *f = *state;
    uint64_t ids[4];
    struct tide_finish finishes[4];
    bool applied[4];
    tide_status fails = TIDE_PERMANENT;
    tide_status works = TIDE_OK;
    struct tide_job_new children[2] = {job_of(f, NULL), job_of(f, NULL)};
    struct tide_job_new orphan = job_of(f, NULL);
    const uint64_t missing = 4711;
    const uint32_t first = 0;
    children[1].needs_earlier = &first;
    children[1].needs_earlier_count = 1;
    orphan.needs = &missing;
    orphan.needs_count = 1;
    for (size_t i = 0; i < 4; i++) {
        ids[i] = add_plain(f);
        finishes[i] =
            (struct tide_finish){.id = ids[i], .token = claim(f, ids[i]), .state = TIDE_ROW_DONE};
    }
    finishes[1].effect = effect_writes;
    finishes[1].effect_arg = &fails;
    finishes[1].children = children;
    finishes[1].children_count = 2;
    finishes[2].children = &orphan;
    finishes[2].children_count = 1;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_finish(f->tx, finishes, 4, NOW, applied, &f->changes, &f->err));
    commit(f);
    assert_true(applied[0] && !applied[1] && !applied[2] && applied[3]);
    assert_state(f, ids[1], TIDE_ROW_RUNNING);
    assert_int_equal(f->changes.children_count, 0);
    assert_int_equal(f->changes.refused_count, 2);
    assert_int_equal(f->changes.refused[0].index, 1);
    assert_int_equal(f->changes.refused[0].status, TIDE_PERMANENT);
    assert_string_equal(f->changes.refused[0].text, "the effect failed");
    assert_int_equal(f->changes.refused[1].status, TIDE_NOT_FOUND);
    assert_false(note_is(f, "effect", "happened"));
    struct tide_brief briefs[8];
    assert_int_equal(refill(f, f->account, briefs, 8), 0);

    finishes[1].effect_arg = &works;
    assert_true(finish(f, &finishes[1]));
    assert_true(note_is(f, "effect", "happened"));
    assert_int_equal(f->changes.children_count, 2);
    assert_int_equal(f->changes.children[1].brief.open_deps, 1);
    assert_false(f->changes.children[1].existed);
    assert_int_equal(refill(f, f->account, briefs, 8), 1);
}

static void children_appear_only_with_the_commit(void **state)
{
    struct fixture *f = *state;
    uint64_t id = add_plain(f);
    struct tide_job_new child = job_of(f, "child");
    struct tide_finish finish_it = {.id = id,
                                    .token = claim(f, id),
                                    .state = TIDE_ROW_DONE,
                                    .children = &child,
                                    .children_count = 1};
    bool applied = false;
    begin(f);
    OK(tide_ledger_finish(f->tx, &finish_it, 1, NOW, &applied, &f->changes, &f->err));
    assert_true(applied);
    undo(f);
    assert_state(f, id, TIDE_ROW_RUNNING);
    struct tide_brief brief;
    assert_int_equal(refill(f, f->account, &brief, 1), 0);
    assert_true(finish(f, &finish_it));
    assert_int_equal(refill(f, f->account, &brief, 1), 1);
    assert_int_equal(brief.id, f->changes.children[0].brief.id);
}

static void a_failed_allocation_in_a_claim_loses_nothing(void **state)
{
    struct fixture *f = *state;
    const uint64_t ids[] = {add_plain(f), add_plain(f), add_plain(f)};
    for (uint64_t fail_at = 0;; fail_at++) { /* ends: a claim allocates finitely often */
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        struct tide_job_body *bodies[3] = {NULL};
        begin(f);
        tide_status rc = tide_ledger_claim(f->tx, ids, 3, 7, 500, NOW, &mem.base, bodies, &f->err);
        if (!mem.fired) {
            OK(rc);
            commit(f);
            for (size_t i = 0; i < 3; i++)
                tide_job_body_free(&mem.base, bodies[i]);
            assert_int_equal(mem.bytes_live, 0);
            return;
        }
        assert_int_equal(rc, TIDE_NO_MEMORY);
        assert_int_equal(mem.bytes_live, 0);
        /* What failed like this can only be rolled back, whatever is asked. */
        assert_int_equal(tide_tx_commit(f->tx, &f->err), TIDE_NO_MEMORY);
        f->tx = NULL;
        for (size_t i = 0; i < 3; i++)
            assert_state(f, ids[i], TIDE_ROW_PENDING);
    }
}

/* ---- the window, pauses, commands ---------------------------------------------------- */

static void refill_follows_priority_then_age_page_by_page(void **state)
{
    struct fixture *f = *state;
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

static void what_is_paused_is_neither_seen_nor_claimed(void **state)
{
    struct fixture *f = *state;
    struct tide_job_new job = job_of(f, NULL);
    uint64_t a = add(f, &job).id;
    job.kind = f->alone;
    uint64_t b = add(f, &job).id;
    struct tide_brief briefs[4];
    begin(f);
    OK(tide_ledger_kind_pause(f->tx, f->once, true, &f->err));
    commit(f);
    assert_int_equal(refill(f, f->account, briefs, 4), 1);
    assert_int_equal(briefs[0].id, b);
    assert_int_equal(claim(f, a), 0);
    uint32_t kind = 0;
    bool paused = false;
    OK(tide_ledger_kind_find(f->ledger, "once", &kind, &paused, &f->err));
    assert_true(paused);
    begin(f);
    OK(tide_ledger_kind_pause(f->tx, f->once, false, &f->err));
    OK(tide_ledger_account_pause(f->tx, f->account, true, &f->err));
    commit(f);
    assert_int_equal(refill(f, f->account, briefs, 4), 0);
    assert_int_equal(claim(f, b), 0);
    begin(f);
    OK(tide_ledger_account_pause(f->tx, f->account, false, &f->err));
    assert_int_equal(tide_ledger_account_pause(f->tx, 99, true, &f->err), TIDE_NOT_FOUND);
    commit(f);
    assert_int_equal(refill(f, f->account, briefs, 4), 2);
    assert_int_not_equal(claim(f, a), 0);
}

static size_t cancel_all(struct fixture *f, size_t slice, uint64_t *running, size_t *running_count)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.count_max = slice;
    size_t total = 0;
    size_t count = slice;
    while (count == slice) { /* each slice cancels at least one; ends when none is left */
        begin(f);
        OK(tide_ledger_cancel(f->tx, &filter, NOW + 5, &count, running, 4, running_count,
                              &f->changes, &f->err));
        commit(f);
        total += count;
    }
    return total;
}

static void cancel_and_retry_work_in_slices(void **state)
{
    struct fixture *f = *state;
    uint64_t first = add_plain(f);
    uint64_t runs = add_plain(f);
    for (int i = 0; i < 5; i++)
        (void)add_plain(f);
    uint64_t blocked = add_needing(f, &first, 1);
    (void)claim(f, runs);
    uint64_t running[4];
    size_t running_count = 0;
    assert_int_equal(cancel_all(f, 3, running, &running_count), 7);
    assert_int_equal(running_count, 1);
    assert_int_equal(running[0], runs);
    assert_state(f, blocked, TIDE_ROW_CANCELED);
    assert_int_equal(look(f, blocked).row.status, TIDE_CANCELED);

    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.count_max = 4;
    size_t count = 4;
    size_t total = 0;
    while (count == 4) { /* each one leaves the set that is retried */
        begin(f);
        OK(tide_ledger_retry(f->tx, &filter, NOW + 6, &count, &f->changes, &f->err));
        commit(f);
        total += count;
    }
    assert_int_equal(total, 7);
    assert_state(f, blocked, TIDE_ROW_PENDING);
    assert_int_equal(look(f, blocked).row.open_deps, 1);
    assert_state(f, runs, TIDE_ROW_RUNNING);

    /* A waiting one loses its time. */
    struct tide_job_new later = job_of(f, NULL);
    later.not_before_unix_ms = NOW + 1000;
    uint64_t id = add(f, &later).id;
    begin(f);
    OK(tide_ledger_retry(f->tx, &filter, NOW + 6, &count, &f->changes, &f->err));
    commit(f);
    assert_int_equal(count, 1);
    assert_int_equal(look(f, id).row.not_before_unix_ms, 0);
}

static bool count_rows(const struct tide_job_row *row, void *arg)
{
    (void)row;
    ++*(size_t *)arg;
    return true;
}

static size_t list(struct fixture *f, struct tide_job_filter filter)
{
    size_t count = 0;
    OK(tide_ledger_jobs(f->ledger, &filter, count_rows, &count, &f->err));
    return count;
}

static bool add_counts(const struct tide_job_count *row, void *arg)
{
    uint64_t *sums = arg;
    sums[row->state] += row->count;
    sums[5] += row->blocked;
    sums[6] += row->delayed;
    return true;
}

static void lists_and_counts_agree(void **state)
{
    struct fixture *f = *state;
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
    for (filter.state = 0; filter.state <= 4; filter.state++)
        assert_int_equal(list(f, filter), wanted[filter.state]);
    filter.state = -1;
    assert_int_equal(list(f, filter), 8);
    filter.account = 0;
    assert_int_equal(list(f, filter), 1);
    filter.account = UINT32_MAX;
    filter.before_id = ids[2];
    assert_int_equal(list(f, filter), 2);
    filter.count_max = 1;
    assert_int_equal(list(f, filter), 1);
}

/* ---- cycles ---------------------------------------------------------------------- */

static uint64_t stream_of(struct fixture *f, const char *name)
{
    struct tide_stream_row row;
    OK(tide_ledger_stream(f->tx, f->account, name, TIDE_TEXT("2020"), &row, &f->err));
    assert_true(tide_text_equal(row.name, tide_text_of(name)));
    assert_true(tide_text_equal(row.floor, TIDE_TEXT("2020")));
    return row.id;
}

struct seen_cycles {
    struct tide_cycle_row rows[8];
    size_t count;
};

static bool see_cycle(const struct tide_cycle_row *row, void *arg)
{
    struct seen_cycles *seen = arg;
    assert_true(seen->count < 8);
    seen->rows[seen->count++] = *row;
    return true;
}

static struct seen_cycles cycles_of(struct fixture *f, uint64_t stream)
{
    struct seen_cycles seen = {.count = 0};
    OK(tide_ledger_cycles(f->ledger, stream, see_cycle, &seen, &f->err));
    return seen;
}

static uint64_t cycle_with_jobs(struct fixture *f, uint64_t stream, const char *to, size_t count,
                                uint64_t *ids)
{
    struct tide_cycle_row cycle;
    OK(tide_ledger_cycle(f->tx, stream, TIDE_TEXT("from"), tide_text_of(to), NOW, &cycle, &f->err));
    for (size_t i = 0; i < count; i++) {
        struct tide_job_new job = job_of(f, NULL);
        struct tide_enqueued enqueued;
        job.cycle = cycle.id;
        OK(tide_ledger_enqueue(f->tx, &job, 1, NOW, &enqueued, &f->err));
        ids[i] = enqueued.id;
    }
    return cycle.id;
}

static tide_status move(struct fixture *f, uint64_t stream, uint64_t from, uint64_t to)
{
    begin(f);
    tide_status rc = tide_ledger_cursor_move(f->tx, stream, from, to, NOW, NULL, &f->err);
    commit(f);
    return rc;
}

static bool see_stream(const struct tide_stream_row *row, void *arg)
{
    char *cursor = arg;
    keep(cursor, 32, row->cursor);
    return true;
}

static void a_cursor_never_passes_unfinished_work(void **state)
{
    struct fixture *f = *state;
    uint64_t a[2];
    uint64_t b[1];
    begin(f);
    uint64_t stream = stream_of(f, "mail");
    assert_int_equal(stream_of(f, "mail"), stream);
    uint64_t first = cycle_with_jobs(f, stream, "march", 2, a);
    (void)cycle_with_jobs(f, stream, "april", 1, b);
    (void)cycle_with_jobs(f, stream, "may", 0, NULL);
    commit(f);
    assert_int_equal(cycles_of(f, stream).rows[0].outstanding, 2);
    assert_int_equal(move(f, stream, 0, 1), TIDE_BUG);
    run_to(f, b[0], TIDE_ROW_DONE);
    run_to(f, a[0], TIDE_ROW_DONE);
    assert_int_equal(f->changes.cycles_count, 1);
    assert_int_equal(f->changes.cycles[0].cycle, first);
    assert_int_equal(f->changes.cycles[0].outstanding, 1);
    run_to(f, a[1], TIDE_ROW_FAILED);
    assert_int_equal(f->changes.cycles[0].outstanding, 0);
    assert_int_equal(f->changes.cycles[0].failed, 1);
    assert_int_equal(f->changes.cycles[0].stream, stream);
    assert_int_equal(move(f, stream, 0, 2), TIDE_BUG);
    assert_int_equal(move(f, stream, 1, 2), TIDE_STALE);
    assert_int_equal(move(f, 99, 0, 1), TIDE_NOT_FOUND);

    /* Accepted by a person, the gap is closed. */
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.cycle = first;
    size_t count = 0;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_accept(f->tx, &filter, NOW, &count, &f->changes, &f->err));
    commit(f);
    assert_int_equal(count, 1);
    assert_int_equal(f->changes.cycles[0].failed, 0);
    assert_int_equal(move(f, stream, 0, 4), TIDE_BUG); /* there are only three */
    assert_int_equal(move(f, stream, 0, 2), TIDE_OK);
    assert_int_equal(move(f, stream, 0, 2), TIDE_STALE);
    assert_int_equal(move(f, stream, 2, 2), TIDE_BUG);
    assert_int_equal(move(f, stream, 2, 1), TIDE_BUG);
    char cursor[32] = "";
    OK(tide_ledger_streams(f->ledger, see_stream, cursor, &f->err));
    assert_string_equal(cursor, "april");
    assert_int_equal(cycles_of(f, stream).count, 1);
    assert_int_equal(move(f, stream, 2, 3), TIDE_OK);

    /* A cycle below the cursor takes no more work. */
    struct tide_job_new job = job_of(f, NULL);
    struct tide_enqueued enqueued;
    job.cycle = first;
    begin(f);
    assert_int_equal(tide_ledger_enqueue(f->tx, &job, 1, NOW, &enqueued, &f->err), TIDE_STALE);
    commit(f);
}

struct seen_left {
    struct tide_work_left rows[8];
    size_t count;
};

static bool see_left(const struct tide_work_left *row, void *arg)
{
    struct seen_left *seen = arg;
    assert_true(seen->count < 8);
    seen->rows[seen->count++] = *row;
    return true;
}

static struct seen_left left_of(struct fixture *f, uint32_t account)
{
    struct seen_left seen = {.count = 0};
    OK(tide_ledger_work_left(f->ledger, account, see_left, &seen, &f->err));
    return seen;
}

static void left_is(const struct tide_work_left *row, uint64_t cycle, tide_row_state state,
                    uint64_t jobs, uint64_t items)
{
    assert_int_equal(row->cycle, cycle);
    assert_int_equal(row->state, state);
    assert_int_equal(row->jobs, jobs);
    assert_int_equal(row->items, items);
}

static void what_is_left_is_told_by_cycle_and_state(void **state)
{
    struct fixture *f = *state;
    uint64_t a[3];
    uint64_t b[1];
    assert_int_equal(left_of(f, f->account).count, 0);
    begin(f);
    uint64_t stream = stream_of(f, "mail");
    uint64_t first = cycle_with_jobs(f, stream, "march", 3, a);
    uint64_t second = cycle_with_jobs(f, stream, "april", 1, b);
    struct tide_job_new job = job_of(f, NULL);
    job.payload = TIDE_TEXT("{\"items\":[\"m1\",\"m2\",\"m3\"]}");
    job.cycle = second;
    struct tide_enqueued waits;
    OK(tide_ledger_enqueue(f->tx, &job, 1, NOW, &waits, &f->err));
    job.needs = &waits.id; /* blocked counts as pending, too */
    job.needs_count = 1;
    OK(tide_ledger_enqueue(f->tx, &job, 1, NOW, &waits, &f->err));
    job = job_of(f, NULL); /* of no cycle, and not before its time */
    job.not_before_unix_ms = NOW + 60000;
    OK(tide_ledger_enqueue(f->tx, &job, 1, NOW, &waits, &f->err));
    commit(f);
    run_to(f, a[0], TIDE_ROW_DONE);
    run_to(f, a[1], TIDE_ROW_FAILED);
    (void)claim(f, a[2]);

    struct seen_left seen = left_of(f, f->account);
    assert_int_equal(seen.count, 4);
    left_is(&seen.rows[0], 0, TIDE_ROW_PENDING, 1, 0);
    left_is(&seen.rows[1], first, TIDE_ROW_RUNNING, 1, 0);
    left_is(&seen.rows[2], first, TIDE_ROW_FAILED, 1, 0);
    left_is(&seen.rows[3], second, TIDE_ROW_PENDING, 3, 6);
    assert_int_equal(left_of(f, f->account + 1).count, 0); /* of nobody else */
}

static bool see_span(const struct tide_stream_row *row, void *arg)
{
    char *span = arg;
    (void)snprintf(span, 64, "%.*s %d", (int)row->start.bytes, row->start.data,
                   row->moved_unix_ms == NOW);
    return true;
}

static void a_stream_tells_since_when_it_covers(void **state)
{
    struct fixture *f = *state;
    char span[64] = "";
    begin(f);
    uint64_t stream = stream_of(f, "mail");
    (void)cycle_with_jobs(f, stream, "march", 0, NULL);
    commit(f);
    OK(tide_ledger_streams(f->ledger, see_span, span, &f->err));
    assert_string_equal(span, "from 0");
    assert_int_equal(move(f, stream, 0, 1), TIDE_OK);
    OK(tide_ledger_streams(f->ledger, see_span, span, &f->err));
    assert_string_equal(span, "from 1"); /* also when that cycle is long past */
}

static void a_split_keeps_its_cycle_open(void **state)
{
    struct fixture *f = *state;
    uint64_t id;
    begin(f);
    uint64_t stream = stream_of(f, "mail");
    uint64_t cycle = cycle_with_jobs(f, stream, "march", 1, &id);
    commit(f);
    struct tide_job_new halves[2] = {job_of(f, NULL), job_of(f, NULL)};
    halves[0].cycle = cycle;
    halves[1].cycle = cycle;
    struct tide_item_report item = {TIDE_TEXT("m1"), TIDE_TEXT("broken"), TIDE_PERMANENT};
    assert_true(finish(f, &(struct tide_finish){.id = id,
                                                .token = claim(f, id),
                                                .state = TIDE_ROW_DONE,
                                                .children = halves,
                                                .children_count = 2,
                                                .items = &item,
                                                .items_count = 1}));
    assert_int_equal(f->changes.cycles_count, 1);
    assert_int_equal(f->changes.cycles[0].outstanding, 2);
    struct seen_cycles seen = cycles_of(f, stream);
    assert_int_equal(seen.rows[0].total, 3);
    assert_int_equal(seen.rows[0].bad, 1);
    for (size_t i = 0; i < 2; i++)
        run_to(f, seen.rows[0].id == cycle ? id + 1 + i : 0, TIDE_ROW_DONE);
    assert_int_equal(move(f, stream, 0, 1), TIDE_OK);
}

/* ---- records --------------------------------------------------------------------- */

struct seen_bad {
    struct tide_bad_row row;
    size_t count;
};

static bool see_bad(const struct tide_bad_row *row, void *arg)
{
    struct seen_bad *seen = arg;
    seen->row = *row;
    seen->count++;
    return true;
}

static struct seen_bad bad_of(struct fixture *f)
{
    struct seen_bad seen = {.count = 0};
    OK(tide_ledger_bad_list(f->ledger, f->account, f->once, see_bad, &seen, &f->err));
    return seen;
}

static void report_item(struct fixture *f, tide_status status)
{
    uint64_t id = add_plain(f);
    struct tide_item_report item = {TIDE_TEXT("m1"), TIDE_TEXT("why"), status};
    assert_true(finish(f, &(struct tide_finish){.id = id,
                                                .token = claim(f, id),
                                                .state = TIDE_ROW_DONE,
                                                .items = &item,
                                                .items_count = 1}));
}

static void bad_items_are_counted_accepted_and_forgotten(void **state)
{
    struct fixture *f = *state;
    report_item(f, TIDE_GONE);
    assert_int_equal(bad_of(f).row.state, TIDE_BAD_GONE);
    report_item(f, TIDE_TIMEOUT);
    assert_int_equal(bad_of(f).row.state, TIDE_BAD_OWED);
    report_item(f, TIDE_PERMANENT);
    struct seen_bad seen = bad_of(f);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.row.state, TIDE_BAD_BAD);
    assert_int_equal(seen.row.retries, 2);
    begin(f);
    OK(tide_ledger_bad_state(f->tx, f->account, f->once, TIDE_TEXT("m1"), TIDE_BAD_RETRYING, NOW,
                             &f->err));
    commit(f);
    report_item(f, TIDE_PERMANENT);
    assert_int_equal(bad_of(f).row.state, TIDE_BAD_BAD);
    begin(f);
    OK(tide_ledger_bad_state(f->tx, f->account, f->once, TIDE_TEXT("m1"), TIDE_BAD_ACCEPTED, NOW,
                             &f->err));
    assert_int_equal(tide_ledger_bad_state(f->tx, f->account, f->once, TIDE_TEXT("m2"),
                                           TIDE_BAD_ACCEPTED, NOW, &f->err),
                     TIDE_NOT_FOUND);
    commit(f);
    report_item(f, TIDE_PERMANENT);
    assert_int_equal(bad_of(f).row.state, TIDE_BAD_ACCEPTED);
    begin(f);
    OK(tide_ledger_bad_clear(f->tx, f->account, f->once, TIDE_TEXT("m1"), &f->err));
    commit(f);
    assert_int_equal(bad_of(f).count, 0);
}

static void an_intent_is_made_once_and_remembers_its_outcome(void **state)
{
    struct fixture *f = *state;
    tide_intent_state intent = TIDE_INTENT_FAILED;
    tide_buf outcome;
    tide_buf_init(&outcome, tide_mem_heap(), 1000);
    tide_text tag = TIDE_TEXT("tag-1");
    assert_int_equal(tide_ledger_intent_find(f->ledger, tag, &intent, &outcome, &f->err),
                     TIDE_NOT_FOUND);
    begin(f);
    OK(tide_ledger_intent(f->tx, 1, tag, TIDE_TEXT("send"), NOW, &intent, &outcome, &f->err));
    assert_int_equal(intent, TIDE_INTENT_MADE);
    commit(f);
    reopen(f, false);
    OK(tide_ledger_intent_find(f->ledger, tag, &intent, &outcome, &f->err));
    assert_int_equal(intent, TIDE_INTENT_MADE);
    begin(f);
    OK(tide_ledger_intent_end(f->tx, tag, TIDE_INTENT_UNKNOWN, TIDE_TEXT_NONE, NOW, &f->err));
    OK(tide_ledger_intent_end(f->tx, tag, TIDE_INTENT_DONE, TIDE_TEXT("id 5"), NOW, &f->err));
    assert_int_equal(tide_ledger_intent_end(f->tx, TIDE_TEXT("tag-2"), TIDE_INTENT_DONE,
                                            TIDE_TEXT_NONE, NOW, &f->err),
                     TIDE_NOT_FOUND);
    OK(tide_ledger_intent(f->tx, 2, tag, TIDE_TEXT("send"), NOW, &intent, &outcome, &f->err));
    commit(f);
    assert_int_equal(intent, TIDE_INTENT_DONE);
    assert_string_equal(tide_buf_cstr(&outcome), "id 5");
    tide_buf_done(&outcome);
}

static bool see_schedule(const struct tide_schedule_row *row, void *arg)
{
    struct tide_schedule_row *seen = arg;
    *seen = *row;
    return true;
}

static void a_slot_fires_once(void **state)
{
    struct fixture *f = *state;
    struct tide_schedule_row row = {.kind = f->once,
                                    .period_ms = 60000,
                                    .anchor_unix_ms = NOW,
                                    .at_start = true,
                                    .name = TIDE_TEXT("purge"),
                                    .payload = TIDE_TEXT("{}")};
    uint64_t id = 0;
    begin(f);
    OK(tide_ledger_schedule(f->tx, &row, &id, &f->err));
    OK(tide_ledger_schedule_fire(f->tx, id, 3, NOW, &f->err));
    assert_int_equal(tide_ledger_schedule_fire(f->tx, id, 3, NOW, &f->err), TIDE_EXISTS);
    assert_int_equal(tide_ledger_schedule_fire(f->tx, id, 2, NOW, &f->err), TIDE_EXISTS);
    assert_int_equal(tide_ledger_schedule_fire(f->tx, id + 1, 2, NOW, &f->err), TIDE_NOT_FOUND);
    commit(f);
    reopen(f, false);
    row.period_ms = 1000;
    uint64_t same = 0;
    begin(f);
    OK(tide_ledger_schedule(f->tx, &row, &same, &f->err));
    assert_int_equal(same, id);
    assert_int_equal(tide_ledger_schedule_fire(f->tx, id, 3, NOW, &f->err), TIDE_EXISTS);
    OK(tide_ledger_schedule_fire(f->tx, id, 9, NOW, &f->err));
    commit(f);
    struct tide_schedule_row seen = {0};
    OK(tide_ledger_schedules(f->ledger, see_schedule, &seen, &f->err));
    assert_int_equal(seen.slot_last, 9);
    assert_int_equal(seen.period_ms, 1000);
    assert_true(seen.at_start);
}

static bool see_alert(const struct tide_alert_row *row, void *arg)
{
    *(struct tide_alert_row *)arg = *row;
    return true;
}

static bool see_account(const struct tide_account_row *row, void *arg)
{
    struct tide_account_row *seen = arg;
    *seen = *row;
    assert_true(tide_text_equal(row->governor, TIDE_TEXT("saved")));
    return true;
}

static void alerts_and_accounts_are_remembered(void **state)
{
    struct fixture *f = *state;
    begin(f);
    OK(tide_ledger_alert(f->tx, "throttled", f->account, 1, "slow", NOW, &f->err));
    OK(tide_ledger_alert_notified(f->tx, "throttled", f->account, NOW + 1, &f->err));
    OK(tide_ledger_alert(f->tx, "throttled", f->account, 2, "slower", NOW + 2, &f->err));
    OK(tide_ledger_account_halt(f->tx, f->account, true, "broken", NOW, &f->err));
    OK(tide_ledger_governor_save(f->tx, f->account, TIDE_TEXT("saved"), &f->err));
    commit(f);
    reopen(f, true);
    struct tide_alert_row alert = {.level = 0};
    OK(tide_ledger_alerts(f->ledger, see_alert, &alert, &f->err));
    assert_int_equal(alert.level, 2);
    assert_int_equal(alert.since_unix_ms, NOW);
    assert_int_equal(alert.notified_unix_ms, NOW + 1);
    assert_string_equal(alert.text, "slower");
    assert_string_equal(alert.account_name, "a@example.com");
    struct tide_account_row account = {.id = 0};
    OK(tide_ledger_accounts(f->ledger, see_account, &account, &f->err));
    assert_true(account.halted);
    assert_string_equal(account.halt_reason, "broken");
    assert_int_equal(account.halted_unix_ms, NOW);
    uint32_t again = 0;
    begin(f);
    OK(tide_ledger_alert(f->tx, "throttled", f->account, 0, "", NOW, &f->err));
    OK(tide_ledger_account(f->tx, "a@example.com", "graph", &again, &f->err));
    OK(tide_ledger_account_halt(f->tx, f->account, false, "", NOW, &f->err));
    commit(f);
    assert_int_equal(again, f->account);
    alert.level = 0;
    OK(tide_ledger_alerts(f->ledger, see_alert, &alert, &f->err));
    assert_int_equal(alert.level, 0);
    OK(tide_ledger_account_find(f->ledger, "a@example.com", &again, &f->err));
    assert_int_equal(tide_ledger_account_find(f->ledger, "b", &again, &f->err), TIDE_NOT_FOUND);
}

static size_t purge_all(struct fixture *f, uint64_t before)
{
    size_t total = 0;
    do { /* ends: each call looks at later rows, until it has come round */
        size_t count = 0;
        begin(f);
        OK(tide_ledger_purge(f->tx, before, 2, &count, &f->err));
        commit(f);
        total += count;
    } while (tide_ledger_purge_more(f->ledger));
    return total;
}

static void purge_keeps_what_is_still_needed(void **state)
{
    struct fixture *f = *state;
    uint64_t in_cycle[2];
    uint64_t done[3];
    for (int i = 0; i < 3; i++) {
        done[i] = add_plain(f);
        run_to(f, done[i], TIDE_ROW_DONE);
    }
    begin(f);
    uint64_t stream = stream_of(f, "mail");
    (void)cycle_with_jobs(f, stream, "march", 2, in_cycle);
    commit(f);
    run_to(f, in_cycle[0], TIDE_ROW_DONE);
    uint64_t failed = add_plain(f);
    run_to(f, failed, TIDE_ROW_FAILED);
    uint64_t waiting = add_needing(f, &failed, 1);
    uint64_t pending = add_plain(f);
    assert_int_equal(purge_all(f, NOW), 0); /* nothing is old enough */
    assert_int_equal(purge_all(f, NOW + 100), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(look(f, done[i]).count, 0);
    assert_state(f, in_cycle[0], TIDE_ROW_DONE);
    assert_state(f, failed, TIDE_ROW_FAILED);
    assert_state(f, waiting, TIDE_ROW_PENDING);
    assert_state(f, pending, TIDE_ROW_PENDING);
    run_to(f, in_cycle[1], TIDE_ROW_DONE);
    assert_int_equal(purge_all(f, NOW + 100), 2);

    /* A canceled one goes first, then what it waited for. */
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.id = waiting;
    uint64_t running[1];
    size_t count = 0;
    begin(f);
    OK(tide_ledger_cancel(f->tx, &filter, NOW, &count, running, 1, &count, &f->changes, &f->err));
    commit(f);
    assert_int_equal(purge_all(f, NOW + 100) + purge_all(f, NOW + 100), 2);
}

/* E1.9: whoever tries the same again must be told, however long ago it was. */
static void an_intent_without_an_outcome_outlives_its_job(void **state)
{
    struct fixture *f = *state;
    const char *const tags[] = {"made", "done", "failed", "unknown"};
    const tide_intent_state ends[] = {TIDE_INTENT_MADE, TIDE_INTENT_DONE, TIDE_INTENT_FAILED,
                                      TIDE_INTENT_UNKNOWN};
    const uint64_t job = add_plain(f);
    tide_intent_state intent = TIDE_INTENT_MADE;
    begin(f);
    for (int i = 0; i < 4; i++) {
        const tide_text tag = tide_text_of(tags[i]);
        OK(tide_ledger_intent(f->tx, job, tag, TIDE_TEXT_NONE, NOW, &intent, NULL, &f->err));
        if (i > 0)
            OK(tide_ledger_intent_end(f->tx, tag, ends[i], TIDE_TEXT_NONE, NOW, &f->err));
    }
    commit(f);
    run_to(f, job, TIDE_ROW_DONE);
    (void)add_plain(f); /* the newest row stays, so that ids only grow */
    assert_int_equal(purge_all(f, NOW + 100), 1);
    for (int i = 0; i < 4; i++) {
        const bool kept = ends[i] == TIDE_INTENT_MADE || ends[i] == TIDE_INTENT_UNKNOWN;
        assert_int_equal(
            tide_ledger_intent_find(f->ledger, tide_text_of(tags[i]), &intent, NULL, &f->err),
            kept ? TIDE_OK : TIDE_NOT_FOUND);
    }
}

/* ---- the file -------------------------------------------------------------------- */

static void a_rollback_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    uint32_t kind = 0;
    struct tide_job_new job = job_of(f, "k");
    struct tide_enqueued enqueued;
    begin(f);
    OK(tide_ledger_kind(f->tx, "fleeting", TIDE_DEDUPE_PENDING, &kind, &f->err));
    job.kind = kind;
    OK(tide_ledger_enqueue(f->tx, &job, 1, NOW, &enqueued, &f->err));
    undo(f);
    assert_int_equal(look(f, enqueued.id).count, 0);
    begin(f);
    assert_int_equal(tide_ledger_enqueue(f->tx, &job, 1, NOW, &enqueued, &f->err), TIDE_NOT_FOUND);
    commit(f);
}

static void a_backup_of_a_live_ledger_is_whole(void **state)
{
    struct fixture *f = *state;
    uint64_t id = add_plain(f);
    char path[100];
    (void)snprintf(path, sizeof path, "%s/copy.db", f->dir);
    OK(tide_ledger_backup(f->ledger, path, &f->err));
    assert_int_equal(tide_ledger_backup(f->ledger, path, &f->err), TIDE_EXISTS);
    uint64_t later = add_plain(f);
    uint32_t left = 9;
    OK(tide_ledger_checkpoint(f->ledger, &left, &f->err));
    assert_int_equal(left, 0);

    struct tide_ledger_options options = {.path = path, .run_id = "r", .must_exist = true};
    tide_ledger *original = f->ledger;
    OK(tide_ledger_open(f->world, &options, &f->ledger, &f->err));
    assert_state(f, id, TIDE_ROW_PENDING);
    assert_int_equal(look(f, later).count, 0);
    tide_ledger_close(f->ledger, true);
    f->ledger = original;
}

static void a_reader_sees_what_is_committed_beside_the_writer(void **state)
{
    struct fixture *f = *state;
    tide_ledger *reader = NULL;
    OK(f->engine->open(f->world, f->dir, NOW, true, &reader, &f->err));
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

/* ---- random operations against a model ----------------------------------------------- */

enum { MODEL_JOBS = 2600, MODEL_CYCLES = 60, MODEL_NEEDS = 3, MODEL_KEYS = 12 };

struct model_job {
    uint64_t id, token, owner, not_before, finished;
    uint64_t needs[MODEL_NEEDS];
    uint32_t needs_count, account, kind;
    uint16_t attempts, attempts_max;
    uint8_t priority, key, cycle; /* key 0: none; cycle 0: none, else index + 1 */
    bool force, gone, wanted;     /* wanted: to be canceled, while it runs */
    tide_row_state state;
};

/* A plain value, so that a rolled-back transaction is a copy taken back. */
struct model {
    struct model_job jobs[MODEL_JOBS];
    size_t jobs_count;
    uint64_t cycle_ids[MODEL_CYCLES];
    size_t cycles_count;
    uint64_t ordinal;
};

struct random_run {
    struct fixture *f;
    tide_rng rng;
    struct model now, before;
    uint64_t stream;
    uint32_t kinds[2], accounts[2];
};

static struct model_job *model_find(struct model *m, uint64_t id)
{
    for (size_t i = 0; i < m->jobs_count; i++)
        if (m->jobs[i].id == id && !m->jobs[i].gone)
            return &m->jobs[i];
    return NULL;
}

static uint32_t model_open_deps(struct model *m, const struct model_job *job)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < job->needs_count; i++) {
        struct model_job *needed = model_find(m, job->needs[i]);
        open += needed != NULL && needed->state != TIDE_ROW_DONE;
    }
    return open;
}

/* The job that a new one with this key would be a duplicate of. */
static struct model_job *model_duplicate(struct random_run *r, const struct model_job *wanted)
{
    if (wanted->key == 0)
        return NULL;
    for (size_t i = 0; i < r->now.jobs_count; i++) {
        struct model_job *job = &r->now.jobs[i];
        bool wide = job->kind == r->kinds[1];
        if (job != wanted && !job->gone && job->key == wanted->key &&
            job->account == wanted->account && job->kind == wanted->kind &&
            (job->state == TIDE_ROW_PENDING || (wide && job->state == TIDE_ROW_RUNNING)))
            return job;
    }
    return NULL;
}

static void model_wait_again(struct random_run *r, struct model_job *job)
{
    if (model_duplicate(r, job) != NULL)
        job->key = 0;
    job->state = TIDE_ROW_PENDING;
    job->finished = 0;
    job->token = 0;
    job->owner = 0;
}

static uint64_t model_cycle_count(const struct model *m, size_t cycle, bool failed)
{
    uint64_t count = 0;
    for (size_t i = 0; i < m->jobs_count; i++) {
        const struct model_job *job = &m->jobs[i];
        if (job->gone || job->cycle != cycle + 1)
            continue;
        count += failed ? job->state >= TIDE_ROW_FAILED : job->state <= TIDE_ROW_RUNNING;
    }
    return count;
}

static struct model_job *random_job(struct random_run *r)
{
    if (r->now.jobs_count == 0)
        return NULL;
    /* Mostly young ones, where things happen. */
    size_t span = tide_rng_chance(&r->rng, 3, 4) && r->now.jobs_count > 40 ? 40 : r->now.jobs_count;
    struct model_job *job = &r->now.jobs[r->now.jobs_count - 1 - tide_rng_below(&r->rng, span)];
    return job->gone ? NULL : job;
}

struct prepared {
    struct tide_job_new new;
    struct model_job model;
    char key[8];
};

static void prepare_job(struct random_run *r, struct prepared *p)
{
    memset(p, 0, sizeof *p);
    struct model_job *m = &p->model;
    m->account = r->accounts[tide_rng_below(&r->rng, 2)];
    m->kind = r->kinds[tide_rng_below(&r->rng, 2)];
    m->key = (uint8_t)tide_rng_below(&r->rng, MODEL_KEYS);
    m->priority = (uint8_t)(tide_rng_below(&r->rng, 3) * 50);
    m->attempts_max = (uint16_t)tide_rng_below(&r->rng, 4);
    m->force = tide_rng_chance(&r->rng, 1, 4);
    m->not_before = tide_rng_chance(&r->rng, 1, 6) ? NOW + 10 : 0;
    if (r->now.cycles_count > r->now.ordinal && tide_rng_chance(&r->rng, 1, 3))
        m->cycle = (uint8_t)(r->now.ordinal + 1 +
                             tide_rng_below(&r->rng, r->now.cycles_count - r->now.ordinal));
    while (m->needs_count < MODEL_NEEDS && tide_rng_chance(&r->rng, 1, 4)) {
        struct model_job *needed = random_job(r);
        bool twice = false;
        for (uint32_t i = 0; needed != NULL && i < m->needs_count; i++)
            twice = twice || m->needs[i] == needed->id;
        if (needed != NULL && !twice)
            m->needs[m->needs_count++] = needed->id;
    }
    (void)snprintf(p->key, sizeof p->key, "k%u", m->key);
    p->new = (struct tide_job_new){
        .account = m->account,
        .kind = m->kind,
        .cycle = m->cycle == 0 ? 0 : r->now.cycle_ids[m->cycle - 1],
        .dedupe_key = m->key == 0 ? TIDE_TEXT_NONE : tide_text_of(p->key),
        .payload = TIDE_TEXT("{}"),
        .needs = m->needs,
        .needs_count = m->needs_count,
        .not_before_unix_ms = m->not_before,
        .attempts_max = m->attempts_max,
        .priority = m->priority,
        .force = m->force,
    };
}

/* Does in the model what the ledger says it did, and checks that it may. */
static void model_enqueue(struct random_run *r, const struct prepared *p, uint64_t id, bool existed)
{
    struct model_job *old = model_duplicate(r, &p->model);
    assert_int_equal(existed, old != NULL);
    if (old != NULL) {
        assert_int_equal(id, old->id);
        if (old->state == TIDE_ROW_PENDING && p->model.priority > old->priority)
            old->priority = p->model.priority;
        old->force = old->force || p->model.force;
        return;
    }
    assert_true(r->now.jobs_count < MODEL_JOBS);
    assert_true(r->now.jobs_count == 0 || id > r->now.jobs[r->now.jobs_count - 1].id);
    struct model_job *job = &r->now.jobs[r->now.jobs_count++];
    *job = p->model;
    job->id = id;
}

static void do_enqueue(struct random_run *r)
{
    struct prepared p[3];
    struct tide_job_new jobs[3];
    struct tide_enqueued enqueued[3];
    size_t count = 1 + tide_rng_below(&r->rng, 3);
    for (size_t i = 0; i < count; i++) {
        prepare_job(r, &p[i]);
        jobs[i] = p[i].new;
    }
    OK(tide_ledger_enqueue(r->f->tx, jobs, count, NOW, enqueued, &r->f->err));
    for (size_t i = 0; i < count; i++) {
        model_enqueue(r, &p[i], enqueued[i].id, enqueued[i].existed);
        struct model_job *job = model_find(&r->now, enqueued[i].id);
        assert_int_equal(enqueued[i].open_deps, model_open_deps(&r->now, job));
    }
}

static void do_claim(struct random_run *r)
{
    uint64_t ids[4] = {0};
    struct tide_job_body *bodies[4];
    for (size_t i = 0; i < 4; i++) {
        struct model_job *job = random_job(r);
        ids[i] = job == NULL ? 999999 : job->id;
    }
    uint64_t owner = 1 + tide_rng_below(&r->rng, 2);
    OK(tide_ledger_claim(r->f->tx, ids, 4, owner, r->f->token, NOW, tide_mem_heap(), bodies,
                         &r->f->err));
    for (size_t i = 0; i < 4; i++) {
        struct model_job *job = model_find(&r->now, ids[i]);
        bool may =
            job != NULL && job->state == TIDE_ROW_PENDING && model_open_deps(&r->now, job) == 0;
        assert_int_equal(bodies[i] != NULL, may);
        if (!may)
            continue;
        assert_int_equal(bodies[i]->attempts, job->attempts);
        assert_int_equal(bodies[i]->force, job->force);
        job->state = TIDE_ROW_RUNNING;
        job->wanted = false;
        job->token = r->f->token + i;
        job->owner = owner;
        tide_job_body_free(tide_mem_heap(), bodies[i]);
    }
    r->f->token += 4;
}

static tide_status effect_maybe(void *arg, tide_tx *tx, tide_error *err)
{
    tide_status rc = tide_ledger_note(tx, "effect", TIDE_TEXT("x"), err);
    return rc == TIDE_OK ? *(const tide_status *)arg : rc;
}

static void do_finish(struct random_run *r)
{
    static const tide_row_state states[] = {TIDE_ROW_DONE,   TIDE_ROW_DONE,    TIDE_ROW_DONE,
                                            TIDE_ROW_FAILED, TIDE_ROW_PENDING, TIDE_ROW_CANCELED};
    static const tide_status effects[] = {TIDE_OK, TIDE_OK, TIDE_SERVER};
    struct tide_finish finishes[5];
    struct prepared children[5];
    bool applied[5];
    bool wanted[5];
    size_t count = 0;
    for (int tries = 0; tries < 30 && count < 5; tries++) {
        struct model_job *job = random_job(r);
        bool twice = job == NULL || job->state != TIDE_ROW_RUNNING;
        for (size_t i = 0; !twice && i < count; i++)
            twice = finishes[i].id == job->id;
        if (twice)
            continue;
        bool stale = tide_rng_chance(&r->rng, 1, 6);
        const tide_status *effect = &effects[tide_rng_below(&r->rng, 3)];
        finishes[count] = (struct tide_finish){
            .id = job->id,
            .token = stale ? job->token + 100000 : job->token,
            .state = states[tide_rng_below(&r->rng, 6)],
            .attempts_add = (int16_t)tide_rng_below(&r->rng, 2),
            .not_before_unix_ms = tide_rng_chance(&r->rng, 1, 3) ? NOW + 20 : 0,
        };
        if (tide_rng_chance(&r->rng, 1, 4)) {
            finishes[count].effect = effect_maybe;
            finishes[count].effect_arg = (void *)(uintptr_t)effect;
        }
        if (tide_rng_chance(&r->rng, 1, 4)) {
            prepare_job(r, &children[count]);
            finishes[count].children = &children[count].new;
            finishes[count].children_count = 1;
        }
        wanted[count] = !stale && (finishes[count].effect == NULL || *effect == TIDE_OK);
        count++;
    }
    tide_changes_clear(&r->f->changes);
    OK(tide_ledger_finish(r->f->tx, finishes, count, NOW + 2, applied, &r->f->changes, &r->f->err));
    size_t child = 0;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(applied[i], wanted[i]);
        if (!applied[i])
            continue;
        struct model_job *job = model_find(&r->now, finishes[i].id);
        job->attempts = (uint16_t)(job->attempts + finishes[i].attempts_add);
        if (finishes[i].state == TIDE_ROW_PENDING) {
            model_wait_again(r, job);
            job->not_before = finishes[i].not_before_unix_ms;
        } else {
            if (finishes[i].state != TIDE_ROW_DONE)
                job->not_before = 0;
            job->state = finishes[i].state;
            job->finished = NOW + 2;
            job->token = 0;
            job->owner = 0;
        }
        if (finishes[i].children_count > 0) {
            const struct tide_child *made = &r->f->changes.children[child++];
            model_enqueue(r, &children[i], made->brief.id, made->existed);
        }
    }
    assert_int_equal(child, r->f->changes.children_count);
    for (size_t i = 0; i < r->f->changes.released_count; i++) {
        const struct tide_released *released = &r->f->changes.released[i];
        struct model_job *job = model_find(&r->now, released->id);
        assert_int_equal(released->open_deps, model_open_deps(&r->now, job));
    }
}

static void do_reclaim(struct random_run *r)
{
    size_t count = 0;
    tide_changes_clear(&r->f->changes);
    OK(tide_ledger_reclaim(r->f->tx, 1, 1000, NOW + 3, &count, &r->f->changes, &r->f->err));
    for (size_t i = 0; i < r->now.jobs_count; i++) {
        struct model_job *job = &r->now.jobs[i];
        if (job->gone || job->state != TIDE_ROW_RUNNING || job->owner == 1)
            continue;
        count--;
        job->attempts = (uint16_t)(job->attempts + !job->wanted);
        job->not_before = 0;
        if (job->wanted) {
            job->state = TIDE_ROW_CANCELED;
            job->finished = NOW + 3;
            job->token = 0;
            job->owner = 0;
        } else if (job->attempts_max > 0 && job->attempts >= job->attempts_max) {
            job->state = TIDE_ROW_FAILED;
            job->finished = NOW + 3;
            job->token = 0;
            job->owner = 0;
        } else
            model_wait_again(r, job);
    }
    assert_int_equal(count, 0);
}

static void do_command(struct random_run *r)
{
    struct model_job *job = random_job(r);
    if (job == NULL)
        return;
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.id = job->id;
    size_t count = 0;
    size_t running_count = 0;
    uint64_t running[1];
    tide_changes_clear(&r->f->changes);
    uint64_t which = tide_rng_below(&r->rng, 5);
    bool stopped = job->state == TIDE_ROW_FAILED || job->state == TIDE_ROW_CANCELED;
    if (which < 2) {
        OK(tide_ledger_retry(r->f->tx, &filter, NOW, &count, &r->f->changes, &r->f->err));
        assert_int_equal(count, stopped || job->state == TIDE_ROW_PENDING);
        if (stopped) {
            model_wait_again(r, job);
            job->attempts = 0;
        }
        if (count > 0)
            job->not_before = 0;
    } else if (which < 4) {
        OK(tide_ledger_cancel(r->f->tx, &filter, NOW + 4, &count, running, 1, &running_count,
                              &r->f->changes, &r->f->err));
        assert_int_equal(count, job->state == TIDE_ROW_PENDING);
        assert_int_equal(running_count, job->state == TIDE_ROW_RUNNING);
        job->wanted = job->state == TIDE_ROW_RUNNING;
        if (count > 0) {
            job->state = TIDE_ROW_CANCELED;
            job->finished = NOW + 4;
        }
    } else {
        OK(tide_ledger_accept(r->f->tx, &filter, NOW + 5, &count, &r->f->changes, &r->f->err));
        assert_int_equal(count, stopped);
        if (stopped) {
            job->state = TIDE_ROW_DONE;
            job->finished = NOW + 5;
            job->needs_count = 0;
        }
    }
}

static void do_cycle(struct random_run *r)
{
    struct model *m = &r->now;
    if (m->cycles_count < MODEL_CYCLES && tide_rng_chance(&r->rng, 1, 2)) {
        struct tide_cycle_row row;
        OK(tide_ledger_cycle(r->f->tx, r->stream, TIDE_TEXT("s"), TIDE_TEXT("e"), NOW, &row,
                             &r->f->err));
        assert_int_equal(row.ordinal, m->cycles_count);
        m->cycle_ids[m->cycles_count++] = row.id;
    }
    if (m->cycles_count == m->ordinal)
        return;
    uint64_t to = m->ordinal + 1 + tide_rng_below(&r->rng, 2);
    bool may = to <= m->cycles_count;
    for (uint64_t i = m->ordinal; may && i < to; i++)
        may = model_cycle_count(m, i, false) == 0 && model_cycle_count(m, i, true) == 0;
    tide_status rc =
        tide_ledger_cursor_move(r->f->tx, r->stream, m->ordinal, to, NOW, NULL, &r->f->err);
    assert_int_equal(rc, may ? TIDE_OK : TIDE_BUG);
    if (may)
        m->ordinal = to;
}

static bool model_purgeable(struct random_run *r, const struct model_job *job)
{
    if (job->gone || job->state < TIDE_ROW_DONE || job == &r->now.jobs[r->now.jobs_count - 1])
        return false;
    if (job->cycle != 0 && (model_cycle_count(&r->now, job->cycle - 1u, false) > 0 ||
                            model_cycle_count(&r->now, job->cycle - 1u, true) > 0))
        return false;
    if (job->state == TIDE_ROW_DONE)
        return true;
    for (size_t i = 0; i < r->now.jobs_count; i++)
        for (uint32_t n = 0; !r->now.jobs[i].gone && n < r->now.jobs[i].needs_count; n++)
            if (r->now.jobs[i].needs[n] == job->id)
                return false;
    return true;
}

static void do_purge(struct random_run *r)
{
    size_t count = 0;
    size_t wanted = 0;
    static bool goes[MODEL_JOBS];
    for (size_t i = 0; i < r->now.jobs_count; i++)
        goes[i] = model_purgeable(r, &r->now.jobs[i]);
    /* Ids are looked at in order, so a waiting one that goes does not yet free
     * what it waited for: that is older. */
    for (size_t i = 0; i < r->now.jobs_count; i++)
        if (goes[i]) {
            r->now.jobs[i].gone = true;
            wanted++;
        }
    OK(tide_ledger_purge(r->f->tx, NOW + 1000, MODEL_JOBS, &count, &r->f->err));
    assert_int_equal(count, wanted);
}

static void compare_job(struct random_run *r, struct model_job *job)
{
    struct seen_job seen = look(r->f, job->id);
    assert_int_equal(seen.count, job->gone ? 0 : 1);
    if (job->gone)
        return;
    char key[8];
    (void)snprintf(key, sizeof key, "k%u", job->key);
    assert_int_equal(seen.row.state, job->state);
    assert_int_equal(seen.row.token, job->token);
    assert_int_equal(seen.row.owner, job->owner);
    assert_int_equal(seen.row.attempts, job->attempts);
    assert_int_equal(seen.row.priority, job->priority);
    assert_int_equal(seen.row.force, job->force);
    assert_int_equal(seen.row.finished_unix_ms, job->finished);
    assert_int_equal(seen.row.open_deps, model_open_deps(&r->now, job));
    assert_string_equal(seen.key, job->key == 0 ? "" : key);
    if (job->state != TIDE_ROW_DONE)
        assert_int_equal(seen.row.not_before_unix_ms, job->not_before);
}

/* The window of an account is every ready job of the model, in order. */
static void compare_refill(struct random_run *r, uint32_t account)
{
    static struct tide_brief briefs[MODEL_JOBS];
    size_t count = refill(r->f, account, briefs, MODEL_JOBS);
    size_t wanted = 0;
    for (size_t i = 0; i < r->now.jobs_count; i++) {
        struct model_job *job = &r->now.jobs[i];
        wanted += !job->gone && job->account == account && job->state == TIDE_ROW_PENDING &&
                  model_open_deps(&r->now, job) == 0;
    }
    assert_int_equal(count, wanted);
    for (size_t i = 1; i < count; i++)
        assert_true(tide_brief_before(&briefs[i - 1], &briefs[i]));
}

static void random_transaction(struct random_run *r)
{
    static void (*const operations[])(struct random_run *) = {
        do_enqueue, do_enqueue, do_claim,   do_claim, do_claim, do_finish,
        do_finish,  do_finish,  do_command, do_cycle, do_purge, do_reclaim};
    r->before = r->now;
    begin(r->f);
    for (uint64_t left = 1 + tide_rng_below(&r->rng, 10); left > 0; left--) {
        uint64_t which = tide_rng_below(&r->rng, 12);
        if (which >= 10 && tide_rng_chance(&r->rng, 3, 4))
            which = 2;
        if (which < 8 && which != 2 && r->now.jobs_count + 20 > MODEL_JOBS)
            which = 2;
        operations[which](r);
    }
    if (tide_rng_chance(&r->rng, 1, 8)) {
        undo(r->f);
        r->now = r->before;
    } else if (tide_rng_chance(&r->rng, 1, 8)) {
        commit(r->f); /* with the check */
    } else {
        OK(tide_tx_commit(r->f->tx, &r->f->err));
        r->f->tx = NULL;
    }
    for (size_t i = 0; i < 10; i++)
        if (r->now.jobs_count > 0)
            compare_job(r, &r->now.jobs[tide_rng_below(&r->rng, r->now.jobs_count)]);
    compare_refill(r, r->accounts[0]);
    compare_refill(r, r->accounts[1]);
}

static void random_operations_agree_with_a_model(void **state)
{
    struct fixture *f = *state;
    const char *scale = getenv("TIDE_TEST_SCALE");
    uint64_t runs = 5 * (scale == NULL ? 100 : strtoull(scale, NULL, 10)) / 100;
    const char *one = getenv("TIDE_TEST_SEED");
    uint64_t seed = one == NULL ? 1 : strtoull(one, NULL, 10);
    struct random_run *r = malloc(sizeof *r);
    for (uint64_t run = 0; run <= runs; run++, seed++) {
        tide_ledger_close(f->ledger, true);
        f->engine->forget(f->dir);
        OK(f->engine->open(f->world, f->dir, NOW, false, &f->ledger, &f->err));
        memset(r, 0, sizeof *r);
        r->f = f;
        r->rng = tide_rng_seeded(seed);
        begin(f);
        OK(tide_ledger_kind(f->tx, "once", TIDE_DEDUPE_PENDING, &r->kinds[0], &f->err));
        OK(tide_ledger_kind(f->tx, "alone", TIDE_DEDUPE_PENDING_AND_RUNNING, &r->kinds[1],
                            &f->err));
        OK(tide_ledger_account(f->tx, "a@example.com", "gmail", &r->accounts[0], &f->err));
        r->stream = 0;
        f->account = r->accounts[0];
        r->stream = stream_of(f, "mail");
        commit(f);
        print_message("seed %" PRIu64 "\n", seed);
        for (int i = 0; i < 700; i++)
            random_transaction(r);
        for (size_t i = 0; i < r->now.jobs_count; i++)
            compare_job(r, &r->now.jobs[i]);
    }
    free(r);
}

int main(void)
{
    /* cmocka wants the tests as an array; every engine runs the same one. */
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_job_is_read_back_as_it_was_queued),
        CASE(ids_only_grow_even_after_a_purge_and_a_restart),
        CASE(a_refused_enqueue_leaves_nothing),
        CASE(a_duplicate_returns_raises_and_forces_the_waiting_one),
        CASE(duplicates_inside_one_call_are_found_too),
        CASE(while_one_runs_one_more_may_wait),
        CASE(where_the_scope_says_so_a_running_one_is_the_duplicate),
        CASE(a_job_waits_until_all_it_needs_are_done),
        CASE(jobs_ending_together_release_a_job_once),
        CASE(jobs_of_one_call_may_need_each_other),
        CASE(a_claim_carries_what_a_worker_needs),
        CASE(a_zombie_changes_nothing),
        CASE(beats_keep_bytes_and_resume_data),
        CASE(a_reclaim_spares_its_owner_and_minds_the_budget),
        CASE(one_bad_finish_is_undone_alone),
        CASE(children_appear_only_with_the_commit),
        CASE(a_failed_allocation_in_a_claim_loses_nothing),
        CASE(refill_follows_priority_then_age_page_by_page),
        CASE(what_is_paused_is_neither_seen_nor_claimed),
        CASE(cancel_and_retry_work_in_slices),
        CASE(lists_and_counts_agree),
        CASE(a_cursor_never_passes_unfinished_work),
        CASE(what_is_left_is_told_by_cycle_and_state),
        CASE(a_stream_tells_since_when_it_covers),
        CASE(a_split_keeps_its_cycle_open),
        CASE(bad_items_are_counted_accepted_and_forgotten),
        CASE(an_intent_is_made_once_and_remembers_its_outcome),
        CASE(an_intent_without_an_outcome_outlives_its_job),
        CASE(a_slot_fires_once),
        CASE(alerts_and_accounts_are_remembered),
        CASE(purge_keeps_what_is_still_needed),
        CASE(a_rollback_leaves_nothing),
        CASE(a_backup_of_a_live_ledger_is_whole),
        CASE(a_reader_sees_what_is_committed_beside_the_writer),
        CASE(random_operations_agree_with_a_model),
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
        engine_now = &engines[i];
        failed += cmocka_run_group_tests_name(engines[i].name, tests, NULL, NULL);
    }
    return failed;
}
