/* engine_jobs_test.c - what becomes of jobs: enqueue, order, dedupe, transactions,
 * children, effects, retries, streams. */
#include "engine_fixture.h"

#include "tidemark_inside.h"
#include "support/heap.h"

/* ---- enqueue ---------------------------------------------------------------------- */

OPENED(what_is_wrong_is_refused_before_anything_is_written)
{
    uint64_t ran = 0;
    uint32_t kind = DEFINE(f, "count", count_handler, .context = &ran, .payload_bytes_max = 20);
    static char long_key[TIDE_DEDUPE_BYTES_MAX + 2];
    memset(long_key, 'k', sizeof long_key - 1);
    uint32_t self = 1;
    uint32_t beyond = 2;
    uint64_t no_job = 999;
    struct tide_spec wrong[] = {
        {.kind = 0},
        {.kind = 4711},
        {.kind = kind, .account = 4711},
        {.kind = kind, .payload = "{\"number\": 1234567890}"},
        {.kind = kind, .payload = "{\"n\": "},
        {.kind = kind, .payload = "[1]"},
        {.kind = kind, .payload = " "},
        {.kind = kind, .priority = 101},
        {.kind = kind, .dedupe = long_key},
        {.kind = kind, .needs_index = &self, .needs_index_count = 1},
        {.kind = kind, .needs_index = &beyond, .needs_index_count = 1},
        {.kind = kind, .needs = &no_job, .needs_count = 1},
        {.kind = kind, .needs = &no_job, .needs_count = TIDE_NEEDS_MAX + 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct tide_spec specs[2] = {{.kind = kind}, wrong[i]};
        tide_error told = {TIDE_OK, 0, ""};
        tide_status rc = tide_enqueue(f->engine, specs, 2, NULL, &told);
        if (rc == TIDE_OK || told.text[0] == '\0')
            fail_msg("wrong[%zu] was taken, or refused without a word", i);
    }
    assert_int_equal(sql(f, "SELECT count(*) FROM job"), 0);
    OK(tide_enqueue(f->engine, wrong, 0, NULL, err));
}

OPENED(a_cycle_of_dependencies_is_refused_before_anything_is_written)
{
    uint64_t ran = 0;
    uint32_t kind = DEFINE(f, "count", count_handler, .context = &ran);
    enum { COUNT = 600 }; /* more than one slice */
    static struct tide_spec specs[COUNT];
    static uint32_t needs[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        needs[i] = (i + 1) % COUNT;
        specs[i] =
            (struct tide_spec){.kind = kind, .needs_index = &needs[i], .needs_index_count = 1};
    }
    REFUSED(tide_enqueue(f->engine, specs, COUNT, NULL, err), TIDE_INVALID);
    assert_int_equal(sql(f, "SELECT count(*) FROM job"), 0);
    /* Cut once, it is a chain, and runs from its far end. */
    specs[COUNT - 1].needs_index_count = 0;
    start(f);
    OK(tide_enqueue(f->engine, specs, COUNT, NULL, err));
    finish(f);
    assert_int_equal(get(&ran), COUNT);
}

/* A job notes when it ran; none may run before what it needs. */
struct order {
    uint64_t at;
    uint64_t *done_at; /* by number in the payload */
};

static tide_status order_handler(tide_job *job, void *context, tide_error *err)
{
    struct order *order = context;
    unsigned long number = 0;
    if (sscanf(tide_job_payload(job).data, "{\"n\":%lu}", &number) != 1)
        return tide_error_set(err, TIDE_PERMANENT, "payload");
    __atomic_store_n(&order->done_at[number], add(&order->at, 1), __ATOMIC_SEQ_CST);
    return TIDE_OK;
}

CASE(many_jobs_over_a_small_window_run_in_topological_order)
{
    size_t count = scaled(100000);
    if (count < 2000)
        count = 2000;
    fixture_settings(f, "tracker.window_jobs=100");
    fixture_open(f);
    struct order order = {.done_at = calloc(count, sizeof *order.done_at)};
    uint32_t kind = DEFINE(f, "order", order_handler, .context = &order);
    struct tide_spec *specs = calloc(count, sizeof *specs);
    uint32_t(*needs)[1] = calloc(count, sizeof *needs);
    char(*payloads)[32] = calloc(count, sizeof *payloads);
    unsigned seed = 7;
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(payloads[i], sizeof payloads[i], "{\"n\":%zu}", i);
        specs[i] = (struct tide_spec){.kind = kind, .payload = payloads[i]};
        specs[i].priority = (int16_t)(1 + rand_r(&seed) % 100);
        if (i < 10 || rand_r(&seed) % 3 == 0)
            continue;
        needs[i][0] = (uint32_t)(i - 1 - (size_t)rand_r(&seed) % 9);
        specs[i].needs_index = needs[i];
        specs[i].needs_index_count = 1;
    }
    start(f);
    OK(tide_enqueue(f->engine, specs, count, NULL, err));
    struct tide_progress seen;
    while (tide_engine_wait(f->engine, 5, NULL) == TIDE_TIMEOUT) {
        seen = progress(f);
        assert_true(seen.window <= 100);
        assert_true(seen.tracker_bytes < 5 << 20);
    }
    assert_int_equal(get(&order.at), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_not_equal(order.done_at[i], 0);
        if (specs[i].needs_index_count > 0)
            assert_true(order.done_at[needs[i][0]] < order.done_at[i]);
    }
    assert_int_equal(progress(f).done, count);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 2"), count);
    assert_int_equal(sql(f, "SELECT count(*) FROM dep"), 0);
    free(order.done_at);
    free(specs);
    free(needs);
    free(payloads);
}

OPENED(needs_may_be_named_in_any_order_and_mixed_with_ids)
{
    uint64_t done_at[6] = {0};
    struct order order = {.done_at = done_at};
    uint32_t kind = DEFINE(f, "order", order_handler, .context = &order);
    uint64_t first = ENQUEUE(f, .kind = kind, .payload = "{\"n\":0}");
    uint32_t two_four[2] = {2, 4};
    uint32_t four[1] = {4};
    uint64_t ids[5] = {0};
    struct tide_spec specs[5] = {
        {.kind = kind, .payload = "{\"n\":1}", .needs_index = two_four, .needs_index_count = 2},
        {.kind = kind, .payload = "{\"n\":2}", .needs_index = two_four, .needs_index_count = 1},
        {.kind = kind, .payload = "{\"n\":3}", .needs_index = four, .needs_index_count = 1},
        {.kind = kind, .payload = "{\"n\":4}", .priority = 100},
        {.kind = kind, .payload = "{\"n\":5}", .needs = &first, .needs_count = 1},
    };
    OK(tide_enqueue(f->engine, specs, 5, ids, err));
    for (int i = 0; i < 5; i++)
        assert_int_equal(
            sql(f, "SELECT json_extract(payload, '$.n') FROM job WHERE id = %" PRIu64, ids[i]),
            i + 1);
    run_all(f);
    assert_true(done_at[0] < done_at[5]);
    assert_true(done_at[5] < done_at[3]);
    assert_true(done_at[3] < done_at[1]);
    assert_true(done_at[3] < done_at[2]);
    /* What is done already blocks no job. */
    ENQUEUE(f, .kind = kind, .payload = "{\"n\":0}", .needs = ids, .needs_count = 5);
    finish(f);
    assert_int_equal(done_at[0], 7);
}

/* E3.4: the settings decide for the kinds they name, whatever a system asked for. */
CASE(kinds_have_the_priorities_of_the_settings)
{
    static const struct {
        const char *kind;
        int64_t priority;
    } cases[] = {{"mail.history", 50},
                 {"mail.list", 30},
                 {"mail.fetch", 41},
                 {"console.page", 28},
                 {"other", 77}};
    uint64_t ran = 0;
    fixture_settings(f, "priority.mail_fetch=41");
    fixture_open(f);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t kind = DEFINE(f, .name = cases[i].kind, .handler = count_handler, .context = &ran,
                               .priority = 77);
        uint64_t id = ENQUEUE(f, .kind = kind);
        assert_int_equal(sql(f, "SELECT priority FROM job WHERE id = %" PRIu64, id),
                         cases[i].priority);
    }
    run_all(f);
}

CASE(priorities_go_first_and_equals_in_turn)
{
    uint64_t done_at[4] = {0};
    struct order order = {.done_at = done_at};
    f->workers = 1;
    fixture_open(f);
    uint32_t kind = DEFINE(f, "order", order_handler, .context = &order);
    ENQUEUE(f, .kind = kind, .payload = "{\"n\":0}", .priority = -1);
    ENQUEUE(f, .kind = kind, .payload = "{\"n\":1}");
    ENQUEUE(f, .kind = kind, .payload = "{\"n\":2}");
    ENQUEUE(f, .kind = kind, .payload = "{\"n\":3}", .priority = 51);
    run_all(f);
    assert_int_equal(done_at[3], 1);
    assert_int_equal(done_at[1], 2);
    assert_int_equal(done_at[2], 3);
    assert_int_equal(done_at[0], 4);
}

/* ---- dedupe (E1.5) -------------------------------------------------------------------- */

static tide_status forced_handler(tide_job *job, void *context, tide_error *err)
{
    (void)err;
    (void)add(context, tide_job_forced(job) ? 1000 : 1);
    return TIDE_OK;
}

OPENED(a_waiting_duplicate_is_returned_raised_and_forced)
{
    uint64_t ran = 0;
    uint32_t kind = DEFINE(f, "forced", forced_handler, .context = &ran);
    uint32_t account = new_account(f, "a@example.org", NULL);
    struct tide_spec spec = {.kind = kind, .dedupe = "inbox", .priority = 10};
    uint64_t id = enqueue(f, spec);
    spec.priority = 5;
    assert_int_equal(enqueue(f, spec), id);
    assert_int_equal(sql(f, "SELECT priority FROM job WHERE id = %" PRIu64, id), 10);
    spec.priority = 60;
    spec.force = true;
    assert_int_equal(enqueue(f, spec), id);
    spec.force = false;
    assert_int_equal(enqueue(f, spec), id);
    assert_int_equal(sql(f, "SELECT priority FROM job WHERE id = %" PRIu64, id), 60);
    spec.account = account;
    assert_int_not_equal(enqueue(f, spec), id); /* another account's inbox is another one */
    run_all(f);
    assert_int_equal(get(&ran), 1001);
    spec.account = 0;
    assert_int_not_equal(enqueue(f, spec), id); /* the first is done */
    finish(f);
    assert_int_equal(get(&ran), 1002);
}

CASE(while_one_runs_one_more_may_wait_or_not_as_the_kind_says)
{
    struct gate gate = {0};
    f->workers = 2; /* both are held */
    fixture_open(f);
    uint32_t wakes = DEFINE(f, "wakes", gate_handler, .context = &gate);
    uint32_t alone = DEFINE(f, "alone", gate_handler, .context = &gate, .dedupe_running = true);
    struct tide_spec spec = {.kind = wakes, .dedupe = "x"};
    struct tide_spec only = {.kind = alone, .dedupe = "x"};
    uint64_t first = enqueue(f, spec);
    uint64_t first_alone = enqueue(f, only);
    start(f);
    UNTIL(get(&gate.arrived) == 2);
    uint64_t second = enqueue(f, spec);
    assert_int_not_equal(second, first);
    assert_int_equal(enqueue(f, spec), second);
    assert_int_equal(enqueue(f, only), first_alone);
    gate_open(&gate);
    finish(f);
    assert_int_equal(get(&gate.arrived), 3);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 2"), 3);
}

/* ---- transactions (E1.6) ----------------------------------------------------------------- */

struct order_form {
    uint32_t kind;
    bool refuse;
};

static tide_status buy_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct order_form *form = arg;
    sqlite3 *db = tide_transaction_sqlite(transaction);
    if (sqlite3_exec(db,
                     "CREATE TABLE IF NOT EXISTS purchase (n INTEGER);"
                     "INSERT INTO purchase VALUES (1)",
                     NULL, NULL, NULL) != SQLITE_OK)
        return tide_error_set(err, TIDE_INVALID, "%s", sqlite3_errmsg(db));
    tide_status rc = tide_transaction_enqueue(
        transaction, (struct tide_spec[]){{.kind = form->kind}, {.kind = form->kind}}, 2, NULL,
        err);
    if (rc == TIDE_OK && form->refuse)
        return tide_error_set(err, TIDE_EXISTS, "second thoughts");
    return rc;
}

OPENED(a_callers_rows_and_its_jobs_appear_together_or_not_at_all)
{
    uint64_t ran = 0;
    struct order_form form = {.kind = DEFINE(f, "count", count_handler, .context = &ran)};
    start(f);
    OK(tide_transact(f->engine, buy_run, &form, err));
    finish(f);
    assert_int_equal(get(&ran), 2);
    form.refuse = true;
    REFUSED(tide_transact(f->engine, buy_run, &form, err), TIDE_EXISTS);
    form = (struct order_form){.kind = 4711};
    REFUSED(tide_transact(f->engine, buy_run, &form, err), TIDE_INVALID);
    finish(f);
    assert_int_equal(get(&ran), 2);
    assert_int_equal(sql(f, "SELECT count(*) FROM purchase"), 1);
    assert_int_equal(sql(f, "SELECT count(*) FROM job"), 2);
}

static tide_status twice_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    sqlite3 *db = tide_transaction_sqlite(transaction);
    const tide_status rc = tide_transaction_enqueue(
        transaction, &(struct tide_spec){.kind = *(uint32_t *)arg}, 1, NULL, err);
    if (rc != TIDE_OK)
        return rc;
    if (sqlite3_exec(db,
                     "CREATE TABLE IF NOT EXISTS once (n INTEGER PRIMARY KEY);"
                     "INSERT INTO once VALUES (1)",
                     NULL, NULL, NULL) != SQLITE_OK)
        return tide_error_set(err, TIDE_IO, "%s", sqlite3_errmsg(db));
    return TIDE_OK;
}

/* A key that is there already is no broken disk, whatever the caller calls it. */
OPENED(a_callers_statement_that_fails_is_undone_and_the_engine_goes_on)
{
    uint64_t ran = 0;
    uint32_t kind = DEFINE(f, "count", count_handler, .context = &ran);
    start(f);
    OK(tide_transact(f->engine, twice_run, &kind, err));
    REFUSED(tide_transact(f->engine, twice_run, &kind, err), TIDE_IO);
    (void)ENQUEUE(f, .kind = kind);
    finish(f);
    assert_int_equal(get(&ran), 2);
    assert_int_equal(sql(f, "SELECT count(*) FROM job"), 2);
}

/* ---- children and effects ------------------------------------------------------------------ */

struct family {
    struct fixture *f;
    uint32_t child;
    uint64_t tries;
    uint64_t children_ran;
    tide_status first; /* what the first attempt returns */
};

static tide_status effect_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct family *family = arg;
    sqlite3 *db = tide_transaction_sqlite(transaction);
    if (sqlite3_exec(db, "CREATE TABLE IF NOT EXISTS mark (n); INSERT INTO mark VALUES (1)", NULL,
                     NULL, NULL) != SQLITE_OK)
        return tide_error_set(err, TIDE_IO, "%s", sqlite3_errmsg(db));
    /* The second attempt's effect is refused: it must be undone, and tried again. */
    if (get(&family->tries) == 2)
        return tide_error_set(err, TIDE_SERVER, "not today");
    return TIDE_OK;
}

static tide_status parent_handler(tide_job *job, void *context, tide_error *err)
{
    struct family *family = context;
    uint64_t try = add(&family->tries, 1);
    char payload[32] = "{\"n\":1}";
    for (int i = 0; i < 3; i++) {
        tide_status rc = tide_job_enqueue(
            job, &(struct tide_spec){.kind = family->child, .payload = payload}, err);
        if (rc != TIDE_OK)
            return rc;
    }
    memset(payload, '!', sizeof payload); /* borrowed for the call only */
    uint32_t index = 0;
    struct tide_spec wrong = {.kind = family->child, .needs_index = &index, .needs_index_count = 1};
    if (tide_job_enqueue(job, &wrong, err) != TIDE_INVALID)
        return TIDE_PERMANENT;
    tide_status rc = tide_job_effect(job, effect_run, family, err);
    if (rc != TIDE_OK)
        return rc;
    return try == 1 ? family->first : TIDE_OK;
}

CASE(children_and_effects_appear_exactly_when_done_does)
{
    struct family family = {.f = f, .first = TIDE_SERVER};
    fixture_open(f);
    family.child = DEFINE(f, "child", count_handler, .context = &family.children_ran);
    uint32_t parent = DEFINE(f, "parent", parent_handler, .context = &family);
    uint64_t id = ENQUEUE(f, .kind = parent);
    run_all(f);
    assert_int_equal(row_state(f, id), 2);
    assert_int_equal(get(&family.tries), 3); /* failed, effect refused, done */
    assert_int_equal(get(&family.children_ran), 3);
    assert_int_equal(sql(f, "SELECT count(*) FROM mark"), 1);
    assert_int_equal(sql(f, "SELECT attempts FROM job WHERE id = %" PRIu64, id), 2);
}

CASE(a_failed_parent_has_no_children)
{
    struct family family = {.f = f, .first = TIDE_PERMANENT};
    fixture_open(f);
    family.child = DEFINE(f, "child", count_handler, .context = &family.children_ran);
    uint32_t parent = DEFINE(f, "parent", parent_handler, .context = &family);
    uint64_t id = ENQUEUE(f, .kind = parent);
    run_all(f);
    assert_int_equal(row_state(f, id), 3);
    assert_int_equal(get(&family.children_ran), 0);
    assert_int_equal(sql(f, "SELECT count(*) FROM job"), 1);
}

/* ---- resume data ------------------------------------------------------------------------------ */

struct upload {
    struct fixture *f;
    uint64_t wrong;
    uint64_t tries;
};

static tide_status upload_handler(tide_job *job, void *context, tide_error *err)
{
    struct upload *upload = context;
    tide_text resume = tide_job_resume(job);
    uint64_t try = add(&upload->tries, 1);
    static const char *const expected[] = {"", "part 1", "part 2", "part 2"};
    if (!tide_text_equal(resume, tide_text_of(expected[try - 1])) ||
        tide_job_attempt(job) != (try <= 3 ? try : 3))
        (void)add(&upload->wrong, 1);
    tide_status rc = TIDE_OK;
    if (try == 1)
        rc = tide_job_resume_set(job, TIDE_TEXT("part 1"), err);
    if (try == 2) {
        rc = tide_job_save(job, TIDE_TEXT("part 2"), err);
        const char *query =
            textf("SELECT resume FROM detail WHERE job = %" PRIu64, tide_job_id(job));
        struct sql_ask ask = {.sql = query};
        if (tide_transact(upload->f->engine, sql_run, &ask, err) != TIDE_OK ||
            strcmp(ask.text, "part 2") != 0)
            (void)add(&upload->wrong, 1);
    }
    static char huge[TIDE_RESUME_BYTES_MAX + 1];
    if (tide_job_resume_set(job, (tide_text){huge, sizeof huge}, NULL) != TIDE_FULL)
        (void)add(&upload->wrong, 1);
    tide_job_beat(job, try * 100);
    if (rc != TIDE_OK)
        return rc;
    if (try == 3)
        return tide_job_again(job, tide_job_now_ms(job) + 5);
    return try < 3 ? TIDE_TIMEOUT : TIDE_OK;
}

CASE(resume_data_comes_back_with_the_next_attempt)
{
    struct upload upload = {.f = f};
    fixture_open(f);
    uint32_t kind = DEFINE(f, "upload", upload_handler, .context = &upload);
    uint64_t id = ENQUEUE(f, .kind = kind, .size_bytes = 400);
    run_all(f);
    assert_int_equal(get(&upload.tries), 4);
    assert_int_equal(get(&upload.wrong), 0);
    assert_int_equal(row_state(f, id), 2);
    /* "Again" costs nothing; two timeouts cost an attempt each. */
    assert_int_equal(sql(f, "SELECT attempts FROM job WHERE id = %" PRIu64, id), 2);
}

static tide_status intent_handler(tide_job *job, void *context, tide_error *err)
{
    uint64_t *seen = context;
    tide_status rc = tide_job_intent(job, "draft-1", "{}", err);
    if (rc == TIDE_OK) {
        (void)add(&seen[0], 1);
        return TIDE_UNKNOWN; /* the connection died after sending */
    }
    if (rc != TIDE_EXISTS)
        return rc;
    (void)add(&seen[1], 1);
    return tide_job_intent_end(job, "draft-1", TIDE_OK, "{\"id\":7}", err);
}

OPENED(the_next_attempt_learns_of_an_intent_made_before)
{
    uint64_t seen[2] = {0};
    uint32_t kind = DEFINE(f, "send", intent_handler, .context = seen);
    uint64_t id = ENQUEUE(f, .kind = kind);
    run_all(f);
    assert_int_equal(row_state(f, id), 2);
    assert_int_equal(get(&seen[0]), 1);
    assert_int_equal(get(&seen[1]), 1);
    assert_int_equal(sql(f, "SELECT count(*) FROM intent WHERE ended IS NOT NULL"), 1);
}

static tide_status resolve_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    const tide_status *outcome = arg;
    const tide_status rc =
        tide_transaction_intent_end(transaction, "draft-2", TIDE_OK, "{\"id\":8}", err);
    return rc == TIDE_OK ? *outcome : rc;
}

static tide_status resolve_handler(tide_job *job, void *context, tide_error *err)
{
    uint64_t *seen = context;
    tide_status refused = TIDE_INVALID;
    tide_status taken = TIDE_OK;
    tide_engine *engine = tide_job_engine(job);
    tide_status rc = tide_job_intent(job, "draft-2", "{}", err);
    if (rc == TIDE_OK && tide_transact(engine, resolve_run, &refused, NULL) == TIDE_INVALID)
        (void)add(&seen[0], 1);
    if (rc == TIDE_OK)
        rc = tide_transact(engine, resolve_run, &taken, err);
    return rc;
}

OPENED(an_intent_ends_with_its_owners_transaction_or_not_at_all)
{
    uint64_t seen[1] = {0};
    tide_status taken = TIDE_OK;
    tide_error err;
    uint32_t kind = DEFINE(f, "send", resolve_handler, .context = seen);
    assert_int_equal(tide_transact(f->engine, resolve_run, &taken, &err), TIDE_NOT_FOUND);
    uint64_t id = ENQUEUE(f, .kind = kind);
    run_all(f);
    assert_int_equal(row_state(f, id), 2);
    assert_int_equal(get(&seen[0]), 1);
    assert_int_equal(sql(f, "SELECT count(*) FROM intent WHERE state = 1"), 1);
}

/* ---- failures ---------------------------------------------------------------------------------- */

struct failing {
    uint64_t tries;
    uint64_t good_from; /* the attempt that succeeds; 0: none */
    tide_status status;
};

static tide_status failing_handler(tide_job *job, void *context, tide_error *err)
{
    struct failing *failing = context;
    (void)job;
    uint64_t try = add(&failing->tries, 1);
    uint64_t good_from = get(&failing->good_from);
    if (good_from != 0 && try >= good_from)
        return TIDE_OK;
    return tide_error_set(err, failing->status, "try %" PRIu64 " went wrong", try);
}

OPENED(a_failing_job_is_tried_again_until_its_budget_is_spent)
{
    struct failing thrice = {.good_from = 3, .status = TIDE_SERVER};
    struct failing never = {.status = TIDE_SERVER};
    struct failing at_once = {.status = TIDE_PERMANENT};
    uint32_t kinds[3] = {DEFINE(f, "thrice", failing_handler, .context = &thrice),
                         DEFINE(f, "never", failing_handler, .context = &never, .attempts_max = 4),
                         DEFINE(f, "at once", failing_handler, .context = &at_once)};
    uint64_t ids[3];
    for (int i = 0; i < 3; i++)
        ids[i] = ENQUEUE(f, .kind = kinds[i]);
    run_all(f);
    assert_int_equal(get(&thrice.tries), 3);
    assert_int_equal(get(&never.tries), 4);
    assert_int_equal(get(&at_once.tries), 1);
    assert_int_equal(row_state(f, ids[0]), 2);
    assert_int_equal(row_state(f, ids[1]), 3);
    assert_int_equal(row_state(f, ids[2]), 3);
    assert_int_equal(
        sql(f, "SELECT error = 'try 4 went wrong' FROM detail WHERE job = %" PRIu64, ids[1]), 1);
    struct tide_progress seen = progress(f);
    assert_int_equal(seen.done, 1);
    assert_int_equal(seen.failed, 2);
    assert_int_equal(seen.retried, 2 + 3);
}

CASE(pauses_between_attempts_grow)
{
    struct failing never = {.status = TIDE_TIMEOUT};
    fixture_settings(f, "retry.backoff_start=40ms;retry.backoff_max=80ms");
    fixture_open(f);
    uint32_t kind = DEFINE(f, "never", failing_handler, .context = &never, .attempts_max = 4);
    ENQUEUE(f, .kind = kind);
    uint64_t before_ms = test_now_ms();
    run_all(f);
    /* 40, 80, 80 ms, each with jitter down to its half. */
    assert_true(test_now_ms() - before_ms >= 99);
}

OPENED(a_failed_dependency_blocks_and_a_retry_revives)
{
    struct failing failing = {.status = TIDE_PERMANENT};
    uint64_t ran = 0;
    uint32_t fails = DEFINE(f, "fails", failing_handler, .context = &failing);
    uint32_t kind = DEFINE(f, "count", count_handler, .context = &ran);
    uint64_t first = ENQUEUE(f, .kind = fails);
    uint64_t second = ENQUEUE(f, .kind = kind, .needs = &first, .needs_count = 1);
    uint64_t third = ENQUEUE(f, .kind = kind, .needs = &second, .needs_count = 1);
    run_all(f);
    assert_int_equal(row_state(f, first), 3);
    assert_int_equal(row_state(f, second), 0);
    assert_int_equal(row_state(f, third), 0);
    /* One that comes later waits as well. */
    uint64_t late = ENQUEUE(f, .kind = kind, .needs = &first, .needs_count = 1);
    finish(f);
    assert_int_equal(row_state(f, late), 0);
    (void)add(&failing.good_from, 2);
    OK(tide_retry_job(f->engine, first, err));
    finish(f);
    assert_int_equal(row_state(f, first), 2);
    assert_int_equal(row_state(f, third), 2);
    assert_int_equal(get(&ran), 3);
    REFUSED(tide_retry_job(f->engine, 4711, err), TIDE_NOT_FOUND);
    REFUSED(tide_cancel_job(f->engine, 4711, err), TIDE_NOT_FOUND);
}

struct over {
    const char *payload; /* of jobs of which nothing is left */
    uint64_t asked;
    uint64_t failed_ms;
};

static bool is_over(tide_text payload, uint64_t failed_unix_ms, void *arg)
{
    struct over *over = arg;
    over->asked++;
    over->failed_ms = failed_unix_ms;
    return tide_text_equal(payload, tide_text_of(over->payload));
}

OPENED(failed_jobs_of_which_nothing_is_left_become_done)
{
    struct failing failing = {.status = TIDE_PERMANENT};
    struct over over = {.payload = "{\"n\":1}"};
    uint64_t ran = 0;
    uint32_t fails = DEFINE(f, "fails", failing_handler, .context = &failing);
    uint32_t other = DEFINE(f, "other", failing_handler, .context = &failing);
    uint32_t kind = DEFINE(f, "count", count_handler, .context = &ran);
    uint32_t account = new_account(f, "ada", NULL);
    const struct tide_spec specs[] = {
        {.kind = fails, .account = account, .payload = "{\"n\":1}"},
        {.kind = fails, .account = account, .payload = "{\"n\":2}"},
        {.kind = other, .account = account, .payload = "{\"n\":1}"},
        {.kind = fails, .payload = "{\"n\":1}"}, /* of no account */
    };
    uint64_t ids[4];
    for (int i = 0; i < 4; i++)
        ids[i] = enqueue(f, specs[i]);
    uint64_t waits = ENQUEUE(f, .kind = kind, .needs = &ids[0], .needs_count = 1);
    run_all(f);
    assert_int_equal(row_state(f, waits), 0);
    OK(tide_accept_failed(f->engine, account, fails, is_over, &over, err));
    assert_int_equal(over.asked, 2);
    assert_true(over.failed_ms > 0);
    assert_int_equal(row_state(f, ids[0]), 2);
    for (int i = 1; i < 4; i++)
        assert_int_equal(row_state(f, ids[i]), 3);
    /* What needed it runs, and it does not run again itself. */
    finish(f);
    assert_int_equal(row_state(f, waits), 2);
    assert_int_equal(get(&failing.tries), 4);
}

OPENED(failed_jobs_that_are_wanted_are_tried_again)
{
    struct failing failing = {.status = TIDE_PERMANENT};
    struct over wanted = {.payload = "{\"n\":1}"};
    uint32_t fails = DEFINE(f, "fails", failing_handler, .context = &failing);
    uint32_t account = new_account(f, "ada", NULL);
    uint64_t first = ENQUEUE(f, .kind = fails, .account = account, .payload = "{\"n\":1}");
    uint64_t second = ENQUEUE(f, .kind = fails, .account = account, .payload = "{\"n\":2}");
    uint64_t none = ENQUEUE(f, .kind = fails, .payload = "{\"n\":1}"); /* of no account */
    run_all(f);
    assert_int_equal(get(&failing.tries), 3);
    OK(tide_retry_failed_where(f->engine, account, fails, is_over, &wanted, err));
    assert_int_equal(wanted.asked, 2);
    finish(f);
    assert_int_equal(get(&failing.tries), 4);
    assert_int_equal(row_state(f, first), 3);
    assert_int_equal(row_state(f, second), 3);
    assert_int_equal(row_state(f, none), 3);
}

/* More than one slice of them; those of others stay. */
OPENED(jobs_that_wait_and_are_over_become_done)
{
    enum { JOBS = 1200 };
    struct over over = {.payload = "{\"n\":1}"};
    uint64_t ran = 0;
    uint32_t kind = DEFINE(f, "count", count_handler, .context = &ran);
    uint32_t account = new_account(f, "ada", NULL), other = new_account(f, "bob", NULL);
    uint64_t first = 0, kept[3];
    for (int i = 0; i < JOBS; i++) {
        uint64_t id = ENQUEUE(f, .kind = kind, .account = account,
                              .payload = i % 2 == 0 ? "{\"n\":1}" : "{\"n\":2}");
        first = i == 0 ? id : first;
    }
    kept[0] = ENQUEUE(f, .kind = kind, .account = other, .payload = "{\"n\":1}");
    kept[1] = ENQUEUE(f, .kind = kind, .account = account, .payload = "{\"n\":3}");
    kept[2] = ENQUEUE(f, .kind = kind, .account = account, .payload = "{\"n\":3}", .needs = &first,
                      .needs_count = 1);
    OK(tide_end_waiting(f->engine, account, is_over, &over, err));
    assert_int_equal(over.asked, JOBS + 2);
    assert_int_equal(over.failed_ms, 0);
    assert_int_equal(row_state(f, first), 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(row_state(f, kept[i]), 0);
    run_all(f); /* also what needed one of them */
    for (int i = 0; i < 3; i++)
        assert_int_equal(row_state(f, kept[i]), 2);
    assert_int_equal(get(&ran), JOBS / 2 + 3);
}

OPENED(what_was_blocked_is_still_blocked_after_a_restart)
{
    struct failing failing = {.status = TIDE_PERMANENT};
    uint64_t ran = 0;
    struct tide_kind fails = {"fails", failing_handler, .context = &failing};
    struct tide_kind counts = {"count", count_handler, .context = &ran};
    uint32_t kinds[2] = {define(f, &fails), define(f, &counts)};
    uint64_t first = ENQUEUE(f, .kind = kinds[0]);
    ENQUEUE(f, .kind = kinds[1], .needs = &first, .needs_count = 1);
    run_all(f);
    fixture_close(f);
    (void)add(&failing.good_from, 2);
    fixture_open(f);
    define(f, &fails);
    define(f, &counts);
    run_all(f);
    assert_int_equal(get(&ran), 0);
    OK(tide_retry_job(f->engine, first, err));
    finish(f);
    assert_int_equal(get(&ran), 1);
}

/* ---- streams (E5) ------------------------------------------------------------------------------ */

struct cycles {
    struct gate gates[4];
    uint64_t fail_third; /* while it is not zero */
};

static tide_status cycle_handler(tide_job *job, void *context, tide_error *err)
{
    struct cycles *cycles = context;
    unsigned long number = 0;
    if (sscanf(tide_job_payload(job).data, "{\"n\":%lu}", &number) != 1 || tide_job_cycle(job) == 0)
        return tide_error_set(err, TIDE_BUG, "payload");
    tide_status rc = gate_pass(&cycles->gates[number], job);
    if (rc == TIDE_OK && number == 2 && get(&cycles->fail_third) != 0)
        return tide_error_set(err, TIDE_PERMANENT, "no such page");
    return rc;
}

static struct tide_stream_state stream_state(struct fixture *f, uint64_t stream)
{
    struct tide_stream_state seen;
    OK(tide_stream_state(f->engine, stream, &seen, err));
    return seen;
}

OPENED(the_cursor_never_passes_unfinished_work)
{
    struct cycles cycles = {.fail_third = 1};
    struct tide_kind slice = {"slice", cycle_handler, .context = &cycles};
    uint32_t kind = define(f, &slice);
    uint64_t stream = 0;
    uint64_t same = 0;
    OK(tide_stream_open(f->engine, 0, "history", "2026-01-01", &stream, err));
    OK(tide_stream_open(f->engine, 0, "history", NULL, &same, err));
    assert_int_equal(same, stream);
    REFUSED(tide_stream_open(f->engine, 0, "", NULL, &same, err), TIDE_INVALID);
    REFUSED(tide_cycle_open(f->engine, 4711, "a", "b", NULL, 0, NULL, err), TIDE_INVALID);
    struct tide_stream_state seen;
    REFUSED(tide_stream_state(f->engine, 4711, &seen, err), TIDE_NOT_FOUND);
    start(f);
    static const char *const ends[] = {"day 1", "day 2", "day 3", "day 4"};
    uint64_t ids[4];
    for (int i = 0; i < 4; i++) {
        const char *payload = textf("{\"n\":%d}", i);
        OK(tide_cycle_open(f->engine, stream, i == 0 ? "" : ends[i - 1], ends[i],
                           &(struct tide_spec){.kind = kind, .payload = payload}, 1, &ids[i], err));
    }
    assert_int_equal(stream_state(f, stream).cycles_opened, 4);
    UNTIL(get(&cycles.gates[3].arrived) == 1);
    gate_open(&cycles.gates[3]);
    gate_open(&cycles.gates[1]);
    UNTIL(sql(f, "SELECT count(*) FROM job WHERE state = 2") == 2);
    assert_int_equal(stream_state(f, stream).cycles_finished, 0);
    assert_string_equal(stream_state(f, stream).cursor, "");
    gate_open(&cycles.gates[0]);
    UNTIL(stream_state(f, stream).cycles_finished == 2);
    assert_string_equal(stream_state(f, stream).cursor, "day 2");
    gate_open(&cycles.gates[2]);
    finish(f);
    /* A failed job is a gap: it stays, over a restart too. */
    assert_int_equal(stream_state(f, stream).cycles_finished, 2);
    fixture_close(f);
    fixture_open(f);
    kind = define(f, &slice);
    run_all(f);
    assert_string_equal(stream_state(f, stream).cursor, "day 2");
    (void)add(&cycles.fail_third, UINT64_MAX); /* to zero */
    OK(tide_retry_job(f->engine, 3, err));
    finish(f);
    UNTIL(stream_state(f, stream).cycles_finished == 4);
    assert_string_equal(stream_state(f, stream).cursor, "day 4");
    /* A cycle without jobs is finished at once. */
    OK(tide_cycle_open(f->engine, stream, "day 4", "day 5", NULL, 0, NULL, err));
    UNTIL(strcmp(stream_state(f, stream).cursor, "day 5") == 0);
}

static tide_status opener_handler(tide_job *job, void *context, tide_error *err)
{
    uint32_t *kinds = context;
    if (strcmp(tide_job_payload(job).data, "{}") != 0)
        return TIDE_OK;
    /* One child in this cycle, one outside of it. */
    tide_status rc =
        tide_job_enqueue(job, &(struct tide_spec){.kind = kinds[1], .payload = "{\"n\":0}"}, err);
    if (rc == TIDE_OK)
        rc = tide_job_enqueue(
            job, &(struct tide_spec){.kind = kinds[0], .payload = "{\"x\":0}", .no_cycle = true},
            err);
    return rc;
}

OPENED(children_belong_to_the_cycle_of_their_parent)
{
    struct cycles cycles = {0};
    uint32_t kinds[2];
    kinds[0] = DEFINE(f, "opener", opener_handler, .context = kinds);
    kinds[1] = DEFINE(f, "slice", cycle_handler, .context = &cycles);
    uint64_t stream = 0;
    OK(tide_stream_open(f->engine, 0, "history", NULL, &stream, err));
    OK(tide_cycle_open(f->engine, stream, "", "end", &(struct tide_spec){.kind = kinds[0]}, 1, NULL,
                       err));
    start(f);
    UNTIL(get(&cycles.gates[0].arrived) == 1);
    assert_int_equal(row_state(f, 1), 2);
    assert_int_equal(stream_state(f, stream).cycles_finished, 0);
    gate_open(&cycles.gates[0]);
    finish(f);
    UNTIL(stream_state(f, stream).cycles_finished == 1);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE cycle IS NULL AND state = 2"), 1);
}
