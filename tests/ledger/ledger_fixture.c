#include "ledger_fixture.h"

const struct store_kind *fixture_kind;

void begin(struct fixture *f)
{
    tide_status rc = tide_tx_begin(f->ledger, &f->tx, &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n", f->err.text);
    OK(rc);
}

void undo(struct fixture *f)
{
    tide_tx_rollback(f->tx);
    f->tx = NULL;
}

void check(struct fixture *f, tide_ledger *ledger)
{
    tide_buf problems;
    tide_buf_init(&problems, tide_mem_heap(), 1 << 16);
    tide_status rc = tide_ledger_check(ledger, &problems, &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n%s\n", f->err.text, tide_buf_cstr(&problems));
    tide_buf_done(&problems);
    assert_int_equal(rc, TIDE_OK);
}

void commit(struct fixture *f)
{
    tide_tx *tx = f->tx;
    f->tx = NULL;
    tide_status rc = tide_tx_commit(tx, &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n", f->err.text);
    OK(rc);
    check(f, f->ledger);
}

void reopen(struct fixture *f, bool clean)
{
    bool crashes = !clean && f->store.kind->crash != NULL;
    if (crashes)
        f->store.kind->crash(&f->store);
    tide_ledger_close(f->ledger, clean);
    f->ledger = NULL;
    if (crashes)
        tide_sim_reboot(f->store.sim);
    f->ledger = store_open(&f->store, "run-1", false);
}

int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->token = 100;
    store_make(&f->store, fixture_kind, 1);
    f->ledger = store_open(&f->store, "run-1", false);
    tide_changes_init(&f->changes, tide_mem_heap());
    begin(f);
    OK(tide_ledger_kind(f->tx, "once", TIDE_DEDUPE_PENDING, &f->once, &f->err));
    OK(tide_ledger_kind(f->tx, "alone", TIDE_DEDUPE_PENDING_AND_RUNNING, &f->alone, &f->err));
    OK(tide_ledger_account(f->tx, "a@example.com", "gmail", &f->account, &f->err));
    commit(f);
    *state = f;
    return 0;
}

int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->tx != NULL) /* the test failed inside a transaction */
        tide_tx_rollback(f->tx);
    tide_ledger_close(f->ledger, true);
    tide_changes_done(&f->changes);
    store_destroy(&f->store);
    free(f);
    return 0;
}

/* ---- shorthand ------------------------------------------------------------------- */

struct tide_job_new job_of(const struct fixture *f, const char *key)
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

struct tide_enqueued add(struct fixture *f, const struct tide_job_new *job)
{
    struct tide_enqueued enqueued = {0};
    begin(f);
    OK(tide_ledger_enqueue(f->tx, job, 1, NOW, &enqueued, &f->err));
    commit(f);
    assert_true(enqueued.id > 0);
    return enqueued;
}

uint64_t add_plain(struct fixture *f)
{
    struct tide_job_new job = job_of(f, NULL);
    return add(f, &job).id;
}

uint64_t add_free(struct fixture *f)
{
    struct tide_job_new job = job_of(f, NULL);
    job.account = 0;
    return add(f, &job).id;
}

uint64_t add_needing(struct fixture *f, const uint64_t *needs, size_t count)
{
    struct tide_job_new job = job_of(f, NULL);
    job.needs = needs;
    job.needs_count = count;
    return add(f, &job).id;
}

uint64_t claim_as(struct fixture *f, uint64_t id, uint64_t owner)
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

uint64_t claim(struct fixture *f, uint64_t id)
{
    return claim_as(f, id, 7);
}

bool finish(struct fixture *f, const struct tide_finish *finish)
{
    bool applied = false;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_finish(f->tx, finish, 1, NOW + 2, &applied, &f->changes, &f->err));
    commit(f);
    assert_int_equal(f->changes.refused_count, applied ? 0 : 1);
    return applied;
}

bool end_as(struct fixture *f, uint64_t id, uint64_t token, tide_row_state state)
{
    return finish(f, &(struct tide_finish){.id = id, .token = token, .state = state});
}

void run_to(struct fixture *f, uint64_t id, tide_row_state state)
{
    uint64_t token = claim(f, id);
    assert_int_not_equal(token, 0);
    assert_true(end_as(f, id, token, state));
}

size_t retry(struct fixture *f, uint64_t id)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    size_t count = 0;
    filter.id = id;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_retry(f->tx, &filter, NOW, &count, &f->changes, &f->err));
    commit(f);
    return count;
}

size_t cancel(struct fixture *f, uint64_t id, bool *running_out)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    uint64_t running[1] = {0};
    size_t count = 0;
    size_t running_count = 0;
    filter.id = id;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_cancel(f->tx, &filter, NOW + 4, &count, running, 1, &running_count, &f->changes,
                          &f->err));
    commit(f);
    if (running_out != NULL)
        *running_out = running_count == 1 && running[0] == id;
    return count;
}

size_t reclaim(struct fixture *f, uint64_t owner, uint64_t now_unix_ms)
{
    size_t count = 0;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_reclaim(f->tx, owner, 100, now_unix_ms, &count, &f->changes, &f->err));
    commit(f);
    return count;
}

/* ---- looking ----------------------------------------------------------------------- */

void keep(char *room, size_t room_bytes, tide_text text)
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

struct seen_job look(struct fixture *f, uint64_t id)
{
    struct seen_job seen = {.count = 0};
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.id = id;
    OK(tide_ledger_jobs(f->ledger, &filter, see_job, &seen, &f->err));
    return seen;
}

void assert_state(struct fixture *f, uint64_t id, tide_row_state state)
{
    struct seen_job seen = look(f, id);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.row.state, state);
    assert_int_equal(seen.row.token != 0, state == TIDE_ROW_RUNNING);
    assert_int_equal(seen.row.owner != 0, state == TIDE_ROW_RUNNING);
}

size_t refill(struct fixture *f, uint32_t account, struct tide_brief *briefs, size_t max)
{
    size_t count = 0;
    OK(tide_ledger_refill(f->ledger, account, 255, 0, briefs, max, &count, &f->err));
    return count;
}

static bool count_rows(const struct tide_job_row *row, void *arg)
{
    (void)row;
    ++*(size_t *)arg;
    return true;
}

size_t list(struct fixture *f, struct tide_job_filter filter)
{
    size_t count = 0;
    OK(tide_ledger_jobs(f->ledger, &filter, count_rows, &count, &f->err));
    return count;
}

bool note_is(struct fixture *f, const char *key, const char *value)
{
    tide_buf buf;
    tide_buf_init(&buf, tide_mem_heap(), 1000);
    tide_status rc = tide_ledger_note_get(f->ledger, key, &buf, &f->err);
    bool same = rc == TIDE_OK && strcmp(tide_buf_cstr(&buf), value) == 0;
    tide_buf_done(&buf);
    return same;
}

struct wanted_account {
    uint32_t id;
    struct tide_account_row row;
};

static bool see_account(const struct tide_account_row *row, void *arg)
{
    struct wanted_account *wanted = arg;
    if (row->id != wanted->id)
        return true;
    wanted->row = *row;
    wanted->row.governor = TIDE_TEXT_NONE; /* borrowed during the call */
    return false;
}

struct tide_account_row account_row(struct fixture *f, uint32_t account)
{
    struct wanted_account wanted = {.id = account};
    OK(tide_ledger_accounts(f->ledger, see_account, &wanted, &f->err));
    assert_int_equal(wanted.row.id, account);
    return wanted.row;
}

/* ---- cycles ------------------------------------------------------------------------ */

uint64_t stream_of(struct fixture *f, const char *name)
{
    struct tide_stream_row row;
    OK(tide_ledger_stream(f->tx, f->account, name, TIDE_TEXT("2020"), &row, &f->err));
    assert_true(tide_text_equal(row.name, tide_text_of(name)));
    assert_true(tide_text_equal(row.floor, TIDE_TEXT("2020")));
    return row.id;
}

uint64_t cycle_with_jobs(struct fixture *f, uint64_t stream, const char *to, size_t count,
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

static bool see_cycle(const struct tide_cycle_row *row, void *arg)
{
    struct seen_cycles *seen = arg;
    assert_true(seen->count < 8);
    seen->rows[seen->count++] = *row;
    return true;
}

struct seen_cycles cycles_of(struct fixture *f, uint64_t stream)
{
    struct seen_cycles seen = {.count = 0};
    OK(tide_ledger_cycles(f->ledger, stream, see_cycle, &seen, &f->err));
    return seen;
}

tide_status move_cursor(struct fixture *f, uint64_t stream, uint64_t from, uint64_t to)
{
    begin(f);
    tide_status rc = tide_ledger_cursor_move(f->tx, stream, from, to, NOW, NULL, &f->err);
    commit(f);
    return rc;
}
