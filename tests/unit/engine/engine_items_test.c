/* engine_items_test.c - batches whose items fail one by one (E6): splitting, bad items, cancel. */
#include "engine_fixture.h"

struct batch_seen {
    uint64_t calls;
    uint64_t stored[200];
    uint64_t after; /* ran after all parts */
    bool by_name;   /* errors name their item */
};

/* Items are numbers.  13 and 77 are bad, 50 is gone; the batch fails as a whole
 * when it holds a bad one, unless errors name their item. */
static tide_status batch_handler(tide_job *job, void *context, tide_error *err)
{
    struct batch_seen *seen = context;
    bool poisoned = false;
    /* What is gone is asked for until another one is there: that is not what a bad item costs. */
    if (tide_job_items(job) > 1 || strcmp(tide_job_item(job, 0).data, "50") != 0)
        (void)add(&seen->calls, 1);
    for (size_t i = 0; i < tide_job_items(job); i++) {
        unsigned long number = strtoul(tide_job_item(job, i).data, NULL, 10);
        bool bad = number == 13 || number == 77;
        poisoned = poisoned || bad;
        if (number == 50)
            tide_job_item_failed(job, i, TIDE_GONE, "404");
        else if (bad && seen->by_name)
            tide_job_item_failed(job, i, TIDE_SERVER, "cannot be read");
        else if (seen->by_name && tide_job_item_open(job, i)) {
            (void)add(&seen->stored[number], 1);
            tide_job_item_done(job, i);
        }
    }
    if (seen->by_name)
        return TIDE_OK;
    if (poisoned)
        return tide_error_set(err, TIDE_SERVER, "the batch failed");
    for (size_t i = 0; i < tide_job_items(job); i++)
        if (tide_job_item_open(job, i))
            (void)add(&seen->stored[strtoul(tide_job_item(job, i).data, NULL, 10)], 1);
    return TIDE_OK;
}

static tide_status after_handler(tide_job *job, void *context, tide_error *err)
{
    (void)job;
    (void)err;
    struct batch_seen *seen = context;
    uint64_t stored = 0;
    for (int i = 0; i < 100; i++)
        stored += get(&seen->stored[i]) > 0;
    (void)add(&seen->after, stored == 97 ? 1 : 1000);
    return TIDE_OK;
}

static void batch_payload(char *payload, size_t bytes, int count)
{
    size_t used = (size_t)snprintf(payload, bytes, "{\"folder\":\"x\",\"items\":[");
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(payload + used, bytes - used, "%s\"%d\"", i == 0 ? "" : ",", i);
    (void)snprintf(payload + used, bytes - used, "]}");
}

/* The second item fails while a user cancels the job, which does not look and returns OK. */
static tide_status one_fails_handler(tide_job *job, void *context, tide_error *err)
{
    struct gate *gate = context;
    (void)err;
    (void)add(&gate->arrived, 1);
    while (get(&gate->opened) == 0)
        (void)tide_job_sleep(job, 2);
    tide_job_item_done(job, 0);
    if (get(&gate->opened) == 1)
        tide_job_item_failed(job, 1, TIDE_SERVER, "502");
    return TIDE_OK;
}

OPENED(a_canceled_batch_with_a_failed_item_is_not_done)
{
    struct gate gate = {0};
    uint32_t kind = DEFINE(f, "batch", one_fails_handler, .context = &gate, .items = true);
    uint64_t id = ENQUEUE(f, .kind = kind, .payload = "{\"items\":[\"a\",\"b\"]}");
    start(f);
    UNTIL(get(&gate.arrived) == 1);
    OK(tide_cancel_job(f->engine, id, err));
    gate_open(&gate);
    finish(f);
    assert_int_equal(row_state(f, id), 4);
    gate_open(&gate); /* nothing fails any more */
    OK(tide_retry_job(f->engine, id, err));
    finish(f);
    assert_int_equal(row_state(f, id), 2);
}

static void run_batch(struct fixture *f, bool by_name)
{
    static struct batch_seen seen;
    memset(&seen, 0, sizeof seen);
    seen.by_name = by_name;
    fixture_open(f);
    uint32_t kind = DEFINE(f, "batch", batch_handler, .context = &seen, .items = true);
    uint32_t after = DEFINE(f, "after", after_handler, .context = &seen);
    uint32_t account = new_account(f, "a@example.org", "default");
    char payload[2048];
    batch_payload(payload, sizeof payload, 100);
    uint64_t id = ENQUEUE(f, .kind = kind, .account = account, .payload = payload);
    ENQUEUE(f, .kind = after, .needs = &id, .needs_count = 1);
    run_all(f);
    uint64_t stored = 0;
    for (int i = 0; i < 100; i++) {
        stored += get(&seen.stored[i]);
        assert_int_equal(get(&seen.stored[i]) > 0, i != 13 && i != 77 && i != 50);
    }
    assert_in_range(stored, 97, 100); /* a good item may be probed for each one in doubt (E6.2) */
    assert_int_equal(get(&seen.after), 1); /* not before the last part has ended */
    assert_int_equal(sql(f, "SELECT count(*) FROM bad WHERE item IN ('13','77')"), 2);
    assert_int_equal(sql(f, "SELECT count(*) FROM bad"), 3); /* and the one that is gone */
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 2"),
                     sql(f, "SELECT count(*) FROM job"));
    assert_int_equal(progress(f).bad, 2);
    print_message("%" PRIu64 " calls, %" PRIu64 " splits\n", get(&seen.calls), progress(f).split);
    /* E6.3: k (5 + 2 log2 n) extra, with log2 100 rounded up. */
    assert_true(get(&seen.calls) <= 1 + 2 * (5 + 2 * 7));
    if (!by_name)
        assert_true(progress(f).split >= 1);
}

CASE(a_failing_batch_is_split_down_to_its_bad_items)
{
    run_batch(f, false);
}

CASE(an_item_that_fails_by_name_does_not_hold_up_the_others)
{
    run_batch(f, true);
}

/* The batch fails as a whole three times; then item "b" fails by name, twice. */
static tide_status unlucky_handler(tide_job *job, void *context, tide_error *err)
{
    uint64_t *calls = context;
    const uint64_t call = add(calls, 1);
    if (call <= 3)
        return tide_error_set(err, TIDE_SERVER, "the batch failed");
    for (size_t i = 0; i < tide_job_items(job); i++)
        if (call <= 5 && strcmp(tide_job_item(job, i).data, "b") == 0)
            tide_job_item_failed(job, i, TIDE_SERVER, "the server answered 500");
        else
            tide_job_item_done(job, i);
    return TIDE_OK;
}

OPENED(an_item_is_not_bad_for_what_its_batch_met)
{
    uint64_t calls = 0;
    uint32_t kind = DEFINE(f, "batch", unlucky_handler, .context = &calls, .items = true);
    uint32_t account = new_account(f, "a@example.org", "default");
    ENQUEUE(f, .kind = kind, .account = account, .payload = "{\"items\":[\"a\",\"b\",\"c\"]}");
    run_all(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM bad"), 0);
    assert_int_equal(get(&calls), 6);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state <> 2"), 0);
}

struct unlucky {
    struct gate second; /* the second request for "b" alone waits here */
    uint64_t poison;    /* requests for "a" alone */
    uint64_t unlucky;   /* and for "b" */
};

/* Item "a" fails each request that asks for it.  "b" alone fails twice, by chance. */
static tide_status poisoned_handler(tide_job *job, void *context, tide_error *err)
{
    struct unlucky *seen = context;
    const char *first = tide_job_item(job, 0).data;
    const bool alone = tide_job_items(job) == 1;
    if (strcmp(first, "a") == 0) {
        (void)add(&seen->poison, alone);
        return tide_error_set(err, TIDE_SERVER, "the server answered 500");
    }
    if (!alone || strcmp(first, "b") != 0)
        return TIDE_OK;
    const uint64_t request = add(&seen->unlucky, 1);
    if (request == 2 && gate_pass(&seen->second, job) != TIDE_OK)
        return TIDE_CANCELED;
    return request > 2 ? TIDE_OK : tide_error_set(err, TIDE_SERVER, "the server answered 503");
}

/* The attempts that "b" inherits were all the fault of "a" (E6.1, E6.2). */
OPENED(an_item_is_not_bad_for_what_another_one_did_to_its_batch)
{
    struct unlucky seen = {0};
    uint32_t kind = DEFINE(f, "batch", poisoned_handler, .context = &seen, .items = true);
    uint32_t account = new_account(f, "a@example.org", "default");
    ENQUEUE(f, .kind = kind, .account = account, .payload = "{\"items\":[\"a\",\"b\"]}");
    start(f);
    /* Each was judged once: a second request follows the verdict on the first one. */
    UNTIL(get(&seen.second.arrived) == 1 && get(&seen.poison) >= 2);
    uint64_t other = ENQUEUE(f, .kind = kind, .account = account, .payload = "{\"items\":[\"c\"]}");
    UNTIL(row_state(f, other) == 2); /* now another item succeeds */
    gate_open(&seen.second);
    finish(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM bad WHERE item = 'a'"), 1);
    assert_int_equal(sql(f, "SELECT count(*) FROM bad"), 1);
    assert_int_equal(get(&seen.unlucky), 3);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state <> 2"), 0);
}

/* Item "b" is refused while `*context` is not 0. */
static tide_status refusing_handler(tide_job *job, void *context, tide_error *err)
{
    (void)err;
    for (size_t i = 0; i < tide_job_items(job); i++)
        if (get(context) != 0 && strcmp(tide_job_item(job, i).data, "b") == 0)
            tide_job_item_failed(job, i, TIDE_PERMANENT, "cannot be read");
        else
            tide_job_item_done(job, i);
    return TIDE_OK;
}

static void run_cycle(struct fixture *f, uint32_t kind, uint32_t account, const char *end)
{
    uint64_t stream = 0;
    struct tide_spec spec = {
        .kind = kind, .account = account, .payload = "{\"items\":[\"a\",\"b\",\"c\"]}"};
    OK(tide_stream_open(f->engine, account, "history", NULL, &stream, err));
    OK(tide_cycle_open(f->engine, stream, "", end, &spec, 1, NULL, err));
    finish(f);
}

/* A user reads the list of bad items: what is stored must not stand there (E6.3). */
CASE(a_bad_item_that_a_later_cycle_stores_is_bad_no_more)
{
    uint64_t refuses = 1;
    struct tide_kind batch = {
        .name = "batch", .handler = refusing_handler, .context = &refuses, .items = true};
    uint32_t account = 0;
    for (int life = 0; life < 2; life++) { /* the second one finds the record in the ledger */
        fixture_open(f);
        uint32_t kind = define(f, &batch);
        OK(tide_engine_account(f->engine, "a@example.org", "default", &account, err));
        start(f);
        if (life == 1) {
            __atomic_store_n(&refuses, 0, __ATOMIC_SEQ_CST);
            run_cycle(f, kind, account, "day 4");
            assert_int_equal(sql(f, "SELECT count(*) FROM bad"), 0);
            break;
        }
        run_cycle(f, kind, account, "day 1");
        assert_int_equal(sql(f, "SELECT count(*) FROM bad WHERE item = 'b'"), 1);
        __atomic_store_n(&refuses, 0, __ATOMIC_SEQ_CST);
        run_cycle(f, kind, account, "day 2");
        assert_int_equal(sql(f, "SELECT count(*) FROM bad"), 0);
        __atomic_store_n(&refuses, 1, __ATOMIC_SEQ_CST);
        run_cycle(f, kind, account, "day 3");
        assert_int_equal(sql(f, "SELECT count(*) FROM bad"), 1);
        fixture_close(f);
    }
}
