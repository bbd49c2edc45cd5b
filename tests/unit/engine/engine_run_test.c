/* engine_run_test.c - what happens to a job while it runs: calls under the
 * governor, cancellation, preemption, halts, stalls, schedules. */
#include "engine_fixture.h"

#include "engine/engine.h"

#include "support/http_server.h"
#include "support/heap.h"

/* ---- calls -------------------------------------------------------------------------- */

struct fetch {
    const char *url;
    uint64_t tries;
    uint64_t answered;
    uint64_t canceled;
    uint64_t parked; /* times the governor said "not now" */
    uint64_t in_call;
    uint64_t last_http;
};

static tide_status fetch_handler(tide_job *job, void *context, tide_error *err)
{
    struct fetch *fetch = context;
    (void)add(&fetch->tries, 1);
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    struct tide_request request = {.method = "GET", .url = fetch->url};
    (void)add(&fetch->in_call, 1);
    tide_status rc = tide_job_call(job, 1, 0, NULL, &request, &response, err);
    (void)add(&fetch->in_call, UINT64_MAX);
    if (response.http != 0) /* 0: the call was parked, and the last answer still is what it was */
        __atomic_store_n(&fetch->last_http, (uint64_t)response.http, __ATOMIC_SEQ_CST);
    tide_response_done(&response);
    if (rc == TIDE_OK)
        (void)add(&fetch->answered, 1);
    if (rc == TIDE_AGAIN)
        (void)add(&fetch->parked, 1);
    if (rc == TIDE_CANCELED)
        (void)add(&fetch->canceled, 1);
    return rc;
}

static uint32_t account_of(struct fixture *f, const char *provider)
{
    uint32_t account = new_account(f, "a@example.org", provider);
    return account;
}

OPENED(accounts_are_found_again_and_checked)
{
    uint32_t account = account_of(f, "gmail");
    assert_int_equal(account_of(f, "gmail"), account);
    uint32_t other = 0;
    REFUSED(tide_engine_account(f->engine, "b", "no such thing", &other, err), TIDE_INVALID);
    REFUSED(tide_engine_account(f->engine, "", "gmail", &other, err), TIDE_INVALID);
    REFUSED(tide_engine_account(f->engine, NULL, "gmail", &other, err), TIDE_INVALID);
    assert_int_equal(other, 0);
    REFUSED(tide_engine_halt(f->engine, 4711, "why", err), TIDE_NOT_FOUND);
    REFUSED(tide_engine_resume(f->engine, 4711, err), TIDE_NOT_FOUND);
}

/* The default profile begins with 4 calls a second: most of the jobs must be parked,
 * and all come to their end. */
CASE(a_job_without_quota_parks_and_comes_back_by_itself)
{
    test_http *server = test_http_start();
    struct fetch fetch = {.url = test_http_url(server, "/plain")};
    f->workers = 2;
    fixture_open(f);
    uint32_t kind = DEFINE(f, "fetch", fetch_handler, .context = &fetch);
    uint32_t account = account_of(f, "default");
    for (int i = 0; i < 24; i++)
        ENQUEUE(f, .kind = kind, .account = account);
    start(f);
    UNTIL(get(&fetch.parked) > 0);
    finish(f);
    assert_int_equal(get(&fetch.answered), 24);
    assert_int_equal(test_http_requests(server), 24);
    assert_int_equal(sql(f, "SELECT sum(attempts) FROM job"), 0);
    test_http_stop(server);
}

/* E4.3a.  A hundred calls a minute and two workers: what comes after them waits for its
 * quota for most of a minute, and a job of no account runs meanwhile. */
CASE(a_job_without_quota_holds_no_worker)
{
    test_http *server = test_http_start();
    struct fetch fetch = {.url = test_http_url(server, "/plain")};
    uint64_t ran = 0;
    f->workers = 2;
    fixture_settings(f, "governor.console.site_units=100");
    fixture_open(f);
    uint32_t kind = DEFINE(f, "fetch", fetch_handler, .context = &fetch);
    uint32_t other = DEFINE(f, "count", count_handler, .context = &ran);
    uint32_t account = account_of(f, "console");
    for (int i = 0; i < 150; i++)
        ENQUEUE(f, .kind = kind, .account = account);
    start(f);
    UNTIL(get(&fetch.parked) > 0 && get(&fetch.answered) > 0);
    ENQUEUE(f, .kind = other);
    UNTIL(get(&ran) == 1);
    assert_in_range(test_http_requests(server), 1, 100);
    fixture_close(f); /* handlers that still run use what is on our stack */
    test_http_stop(server);
}

/* ---- bandwidth (E4.7) ---- */

enum { TRANSFER_BYTES = 300 << 10 };

struct transfer {
    const char *url;
    bool up;
    uint64_t bytes; /* of the answers */
};

static tide_status count_bytes(void *arg, const char *bytes, size_t count)
{
    struct transfer *transfer = arg;
    (void)bytes;
    (void)add(&transfer->bytes, count);
    return TIDE_OK;
}

static tide_status give_bytes(void *arg, char *bytes, size_t room, size_t *count_out)
{
    size_t *left = arg;
    *count_out = *left < room ? *left : room;
    memset(bytes, 'x', *count_out);
    *left -= *count_out;
    return TIDE_OK;
}

static tide_status transfer_handler(tide_job *job, void *context, tide_error *err)
{
    struct transfer *transfer = context;
    struct tide_response response;
    size_t left = TRANSFER_BYTES;
    tide_response_init(&response, tide_mem_heap());
    struct tide_request request = {.method = transfer->up ? "PUT" : "GET",
                                   .url = transfer->url,
                                   .sink = count_bytes,
                                   .sink_arg = transfer};
    if (transfer->up) {
        request.source = give_bytes;
        request.source_arg = &left;
        request.source_bytes = TRANSFER_BYTES;
    }
    const tide_status rc = tide_job_call(job, 1, 0, NULL, &request, &response, err);
    tide_response_done(&response);
    return rc;
}

/* How long two transfers at once take together. */
static uint64_t transfers_ms(struct fixture *f, const char *path, bool up)
{
    test_http *server = test_http_start();
    struct transfer transfer = {.url = test_http_url(server, path), .up = up};
    fixture_open(f);
    const uint32_t kind = DEFINE(f, "transfer", transfer_handler, .context = &transfer);
    const uint32_t account = account_of(f, "default");
    ENQUEUE(f, .kind = kind, .account = account);
    ENQUEUE(f, .kind = kind, .account = account);
    const uint64_t start_ms = tide_world_now_ms(f->world);
    start(f);
    finish(f);
    const uint64_t took_ms = tide_world_now_ms(f->world) - start_ms;
    assert_int_equal(get(&transfer.bytes), 2 * TRANSFER_BYTES);
    fixture_close(f);
    test_http_stop(server);
    return took_ms;
}

/* 600 KiB at 400 KiB a second, of which a quarter of a second may come at once: 1.25 s. */
CASE(downloads_share_the_bandwidth_that_settings_allow)
{
    fixture_settings(f, "bandwidth.down=400KiB");
    assert_in_range(transfers_ms(f, "/plain?bytes=307200", false), 1200, 20000);
}

CASE(uploads_share_the_bandwidth_that_settings_allow)
{
    fixture_settings(f, "bandwidth.up=400KiB");
    assert_in_range(transfers_ms(f, "/echo", true), 1200, 20000);
}

/* A schedule for all days and hours overrides the common limit. */
CASE(a_schedule_decides_how_much_bandwidth_there_is)
{
    fixture_settings(f, "bandwidth.schedule=00:00-24:00 up=400KiB");
    assert_in_range(transfers_ms(f, "/echo", true), 1200, 20000);
}

/* ---- calls again ---- */

struct batch_call {
    const char *url;
    uint32_t parts;
    uint64_t answered;
};

static tide_status batch_call_handler(tide_job *job, void *context, tide_error *err)
{
    struct batch_call *batch = context;
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    struct tide_request request = {.method = "GET", .url = batch->url};
    tide_status rc =
        tide_job_batch(job, batch->parts, batch->parts, 0, NULL, &request, &response, err);
    tide_response_done(&response);
    if (rc == TIDE_OK)
        (void)add(&batch->answered, 1);
    return rc;
}

/* Every part of a batch is a call to the provider: more of them than may be in flight
 * can never be sent, and the job says so instead of waiting forever (E4.4). */
OPENED(a_batch_is_charged_for_every_part)
{
    test_http *server = test_http_start();
    struct batch_call fits = {.url = test_http_url(server, "/plain"), .parts = 4};
    struct batch_call too_large = {.url = fits.url, .parts = 1000};
    uint32_t small = DEFINE(f, "small", batch_call_handler, .context = &fits);
    uint32_t large = DEFINE(f, "large", batch_call_handler, .context = &too_large);
    uint32_t account = account_of(f, "default");
    start(f);
    ENQUEUE(f, .kind = small, .account = account);
    ENQUEUE(f, .kind = large, .account = account);
    finish(f);
    assert_int_equal(get(&fits.answered), 1);
    assert_int_equal(get(&too_large.answered), 0);
    assert_int_equal(test_http_requests(server), 1);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 3"), 1);
    test_http_stop(server);
}

OPENED(a_refusal_pauses_the_account_and_costs_no_attempt)
{
    test_http *server = test_http_start();
    struct fetch fetch = {.url = test_http_url(server, "/status?code=429&after=3600")};
    uint32_t kind = DEFINE(f, "fetch", fetch_handler, .context = &fetch);
    uint32_t account = account_of(f, "default");
    for (int i = 0; i < 20; i++)
        ENQUEUE(f, .kind = kind, .account = account);
    start(f);
    UNTIL(get(&fetch.last_http) == 429);
    /* Retry-After says an hour: nothing more is sent. */
    UNTIL(progress(f).running[1] == 0 && progress(f).running[0] == 0);
    uint64_t sent = test_http_requests(server);
    REFUSED(tide_engine_wait(f->engine, 500, err), TIDE_TIMEOUT);
    assert_int_equal(test_http_requests(server), sent);
    assert_true(sent <= 16);
    assert_int_equal(sql(f, "SELECT sum(attempts) FROM job"), 0);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state IN (3, 4)"), 0);
    test_http_stop(server);
}

struct late_fetch {
    struct gate gate;
    struct fetch fetch;
};

static tide_status late_fetch_handler(tide_job *job, void *context, tide_error *err)
{
    struct late_fetch *late = context;
    const tide_status rc = gate_pass(&late->gate, job);
    return rc == TIDE_OK ? fetch_handler(job, &late->fetch, err) : rc;
}

/* The next process tries an account that waits for a sign-in at once: no job of it may have a time
 * in its row that makes it wait longer. */
OPENED(a_wait_for_a_sign_in_is_not_in_the_rows)
{
    test_http *server = test_http_start();
    struct fetch fetch = {.url = test_http_url(server, "/status?code=401")};
    struct late_fetch late = {.fetch = {.url = fetch.url}};
    uint32_t kind = DEFINE(f, "fetch", fetch_handler, .context = &fetch);
    uint32_t late_kind = DEFINE(f, "late", late_fetch_handler, .context = &late);
    uint32_t account = account_of(f, "default");
    start(f);
    ENQUEUE(f, .kind = late_kind, .account = account);
    UNTIL(get(&late.gate.arrived) == 1);
    ENQUEUE(f, .kind = kind, .account = account);
    UNTIL(get(&fetch.last_http) == 401 && progress(f).running[0] + progress(f).running[1] == 1);
    gate_open(&late.gate);
    UNTIL(get(&late.fetch.parked) == 1);
    REFUSED(tide_engine_wait(f->engine, 600, err), TIDE_TIMEOUT);
    assert_int_equal(get(&late.fetch.parked), 1); /* it is not tried while the account waits */
    assert_int_equal(test_http_requests(server), 1);
    fixture_close(f);
    fixture_open(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 0"), 2);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE not_before > "
                            "(julianday('now') - 2440587.5) * 86400000 + 10000"),
                     0);
    test_http_stop(server);
}

/* E7.1: after a clock was set back, or in a ledger of another machine, the time of a retry may lie far
 * ahead.  A retry is never further away than its longest pause; a delay is what its caller asked for. */
CASE(a_retry_is_never_further_away_than_its_longest_pause)
{
    uint64_t ran = 0;
    fixture_settings(f, "retry.backoff_start=20ms;retry.backoff_max=100ms");
    fixture_open(f);
    uint32_t kind = DEFINE(f, "count", count_handler, .context = &ran);
    uint64_t retry = ENQUEUE(f, .kind = kind);
    uint64_t delayed = ENQUEUE(f, .kind = kind);
    (void)sql(f,
              "UPDATE job SET not_before = created + 30 * 86400000,"
              " attempts = CASE id WHEN %" PRIu64 " THEN 1 ELSE 0 END",
              retry);
    fixture_close(f);
    fixture_open(f);
    (void)DEFINE(f, "count", count_handler, .context = &ran);
    start(f);
    UNTIL(row_state(f, retry) == 2);
    assert_int_equal(get(&ran), 1);
    assert_int_equal(row_state(f, delayed), 0);
}

struct crowd {
    const char *url;
    uint64_t last_code; /* of a refusal, as the handler saw it */
};

static tide_status crowd_judge(const struct tide_response *response, uint64_t *retry_after_ms_out,
                               tide_error *err)
{
    tide_status rc = tide_http_judge(response, retry_after_ms_out, err);
    if (rc == TIDE_THROTTLED && err->code == 429)
        err->code = TIDE_REFUSED_CONCURRENCY;
    return rc;
}

static tide_status crowd_handler(tide_job *job, void *context, tide_error *err)
{
    struct crowd *crowd = context;
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    struct tide_request request = {.method = "GET", .url = crowd->url};
    tide_status rc = tide_job_batch(job, 4, 4, 0, crowd_judge, &request, &response, err);
    tide_response_done(&response);
    if (rc == TIDE_THROTTLED)
        __atomic_store_n(&crowd->last_code, (uint64_t)err->code, __ATOMIC_SEQ_CST);
    return rc;
}

static struct tide_governor_view governor_view(struct fixture *f, uint32_t account)
{
    struct tide_governor_view view;
    tide_lock_take(f->world, f->engine->lock);
    tide_governor_view(tide_engine_account_of(f->engine, account)->governor,
                       tide_world_now_ms(f->world), &view);
    tide_lock_drop(f->world, f->engine->lock);
    return view;
}

/* E4.3: the limit that a judge names reaches the governor, which learns it. */
OPENED(limits_on_concurrency_and_bytes_are_learned_from_refusals)
{
    test_http *server = test_http_start();
    struct crowd crowd = {.url = test_http_url(server, "/status?code=429&after=3600")};
    struct crowd large = {.url = test_http_url(server, "/status?code=509&after=3600")};
    uint32_t accounts[2] = {0, 0};
    uint32_t kind = DEFINE(f, "crowd", crowd_handler, .context = &crowd);
    uint32_t bytes = DEFINE(f, "bytes", crowd_handler, .context = &large);
    OK(tide_engine_account(f->engine, "a", "onedrive", &accounts[0], err));
    OK(tide_engine_account(f->engine, "b", "onedrive", &accounts[1], err));
    assert_int_equal(governor_view(f, accounts[0]).in_flight_max, 32);
    start(f);
    ENQUEUE(f, .kind = kind, .account = accounts[0]);
    ENQUEUE(f, .kind = bytes, .account = accounts[1]);
    UNTIL(get(&crowd.last_code) != 0 && get(&large.last_code) != 0);
    assert_int_equal(get(&crowd.last_code), 429); /* the caller hears of the answer */
    assert_int_equal(get(&large.last_code), 509);
    /* Of four at once one was too many. */
    assert_int_equal(governor_view(f, accounts[0]).in_flight_max, 3);
    assert_int_equal(governor_view(f, accounts[0]).day_bytes_max, 0);
    assert_int_equal(governor_view(f, accounts[1]).in_flight_max, 32);
    assert_true(governor_view(f, accounts[1]).day_bytes_max > 0);
    test_http_stop(server);
}

CASE(an_account_without_network_waits_and_its_jobs_pay_nothing)
{
    struct fetch fetch = {.url = "http://127.0.0.1:1/"};
    fixture_settings(f, "breaker.pause_first=1h;breaker.pause_max=1h;breaker.pause_soft_max=1h");
    fixture_open(f);
    uint32_t kind = DEFINE(f, "fetch", fetch_handler, .context = &fetch);
    uint32_t account = account_of(f, "default");
    uint64_t id = ENQUEUE(f, .kind = kind, .account = account);
    start(f);
    UNTIL(get(&fetch.tries) > 0 && row_state(f, id) == 0);
    REFUSED(tide_engine_wait(f->engine, 300, err), TIDE_TIMEOUT);
    /* The next one is the probe, after the pause. */
    assert_int_equal(get(&fetch.tries), 1);
    assert_int_equal(sql(f, "SELECT attempts FROM job WHERE id = %" PRIu64, id), 0);
}

static bool snapshot_says(struct fixture *f, const char *text)
{
    tide_buf json = heap_buf(1 << 20);
    OK(tide_engine_snapshot(f->engine, &json, err));
    OK(tide_buf_add(&json, "", 1)); /* for strstr() */
    const bool says = strstr((const char *)json.data, text) != NULL;
    tide_buf_done(&json);
    return says;
}

/* Two calls at a time, five failures: six calls can have been sent when it opens. */
CASE(failing_servers_open_the_breaker)
{
    test_http *server = test_http_start();
    struct fetch fetch = {.url = test_http_url(server, "/status?code=500")};
    f->workers = 2;
    fixture_settings(f, "breaker.failures=5;breaker.pause_first=1h;"
                        "breaker.pause_max=1h;breaker.pause_soft_max=1h");
    fixture_open(f);
    uint32_t kind = DEFINE(f, "fetch", fetch_handler, .context = &fetch, .attempts_max = 1000);
    uint32_t account = account_of(f, "onedrive");
    for (int i = 0; i < 100; i++)
        ENQUEUE(f, .kind = kind, .account = account);
    start(f);
    UNTIL(snapshot_says(f, "breaker_open"));
    UNTIL(progress(f).running[0] + progress(f).running[1] == 0);
    REFUSED(tide_engine_wait(f->engine, 300, err), TIDE_TIMEOUT);
    assert_in_range(test_http_requests(server), 5, 6);
    test_http_stop(server);
}

/* ---- cancel (E7.3) -------------------------------------------------------------------- */

CASE(cancel_reaches_jobs_that_wait_and_calls_that_run)
{
    test_http *server = test_http_start();
    struct fetch fetch = {.url = test_http_url(server, "/delay?ms=600000")};
    f->workers = 1;
    fixture_open(f);
    uint32_t kind = DEFINE(f, "fetch", fetch_handler, .context = &fetch);
    uint64_t running = ENQUEUE(f, .kind = kind);
    uint64_t waiting = ENQUEUE(f, .kind = kind);
    uint64_t delayed = ENQUEUE(f, .kind = kind, .delay_ms = 60000);
    uint64_t blocked = ENQUEUE(f, .kind = kind, .needs = &running, .needs_count = 1);
    start(f);
    UNTIL(get(&fetch.in_call) == 1 && test_http_requests(server) == 1);
    OK(tide_cancel_job(f->engine, waiting, err));
    OK(tide_cancel_job(f->engine, delayed, err));
    UNTIL(row_state(f, waiting) == 4 && row_state(f, delayed) == 4);
    OK(tide_cancel_job(f->engine, running, err));
    UNTIL(get(&fetch.canceled) == 1); /* the answer would come in ten minutes */
    finish(f);
    assert_int_equal(row_state(f, running), 4);
    assert_int_equal(row_state(f, blocked), 0); /* blocked by the canceled one */
    assert_int_equal(get(&fetch.tries), 1);
    test_http_stop(server);
}

OPENED(a_canceled_job_can_be_retried)
{
    struct gate gate = {0};
    uint32_t kind = DEFINE(f, "gate", gate_handler, .context = &gate);
    uint64_t id = ENQUEUE(f, .kind = kind);
    start(f);
    UNTIL(get(&gate.arrived) == 1);
    OK(tide_cancel_job(f->engine, id, err));
    finish(f);
    assert_int_equal(row_state(f, id), 4);
    gate_open(&gate);
    OK(tide_retry_job(f->engine, id, err));
    finish(f);
    assert_int_equal(row_state(f, id), 2);
    OK(tide_cancel_job(f->engine, id, err)); /* what is done stays done */
    assert_int_equal(row_state(f, id), 2);
}

/* ---- lanes (E3) ---------------------------------------------------------------------------- */

CASE(bulk_gives_an_interactive_job_its_worker_back)
{
    struct gate gate = {0};
    uint64_t clicks = 0;
    fixture_settings(f, "workers.count=6");
    fixture_open(f);
    uint32_t bulk = DEFINE(f, "bulk", gate_handler, .context = &gate);
    uint32_t click =
        DEFINE(f, "click", count_handler, .context = &clicks, .lane = TIDE_KIND_INTERACTIVE);
    for (int i = 0; i < 20; i++)
        ENQUEUE(f, .kind = bulk);
    start(f);
    UNTIL(get(&gate.arrived) == 6); /* also on the workers reserved for clicks */
    ENQUEUE(f, .kind = click);
    UNTIL(get(&clicks) == 1); /* the bulk jobs do not end by themselves */
    gate_open(&gate);
    finish(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 2"), 21);
    assert_int_equal(sql(f, "SELECT sum(attempts) FROM job"), 0); /* preemption is free */
}

CASE(jobs_that_may_not_be_preempted_are_not)
{
    struct gate gate = {0};
    fixture_settings(f, "workers.count=6");
    fixture_open(f);
    uint32_t bulk = DEFINE(f, "bulk", gate_handler, .context = &gate, .not_preemptible = true);
    for (int i = 0; i < 20; i++)
        ENQUEUE(f, .kind = bulk);
    start(f);
    UNTIL(get(&gate.arrived) == 4);
    REFUSED(tide_engine_wait(f->engine, 50, err), TIDE_TIMEOUT);
    assert_int_equal(get(&gate.arrived), 4); /* the reserved two stay free */
    gate_open(&gate);
    finish(f);
    assert_int_equal(get(&gate.arrived), 20);
}

/* Lets jobs through one at a time; `starts` counts handlers that began, again after a
 * preemption too. */
struct turnstile {
    uint64_t starts;
    uint64_t inside;
    uint64_t tickets;
};

static tide_status turnstile_handler(tide_job *job, void *context, tide_error *err)
{
    struct turnstile *turnstile = context;
    (void)err;
    tide_status rc = TIDE_OK;
    bool passed = false;
    (void)add(&turnstile->inside, 1);
    (void)add(&turnstile->starts, 1);
    while (!passed && rc == TIDE_OK) {
        uint64_t tickets = get(&turnstile->tickets);
        passed =
            tickets > 0 && __atomic_compare_exchange_n(&turnstile->tickets, &tickets, tickets - 1,
                                                       false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        if (!passed)
            rc = tide_job_sleep(job, 2);
    }
    (void)add(&turnstile->inside, UINT64_MAX);
    return rc;
}

/* E3.3.  Syncs have all the workers when more reads come than those can run.  From then
 * until the last read has started every worker that becomes free goes to a read, although
 * two are reserved for the lane of the syncs. */
CASE(while_a_person_waits_no_lower_level_of_the_account_runs)
{
    enum { WORKERS = 5, SYNCS = 8, READS = 12 };
    struct turnstile low = {0};
    struct turnstile high = {0};
    fixture_settings(f, "workers.count=5");
    fixture_open(f);
    uint32_t sync = DEFINE(f, "sync", turnstile_handler, .context = &low);
    uint32_t read = DEFINE(f, "read", turnstile_handler, .context = &high, .level = 1,
                           .lane = TIDE_KIND_INTERACTIVE);
    uint32_t account = account_of(f, "console"); /* admits more than there are workers */
    for (int i = 0; i < SYNCS; i++)
        ENQUEUE(f, .kind = sync, .account = account);
    start(f);
    UNTIL(get(&low.inside) == WORKERS);
    struct tide_spec specs[READS];
    uint64_t ids[READS];
    for (int i = 0; i < READS; i++)
        specs[i] = (struct tide_spec){.kind = read, .account = account};
    OK(tide_enqueue(f->engine, specs, READS, ids, err));
    (void)add(&low.tickets, SYNCS);
    for (uint64_t started = WORKERS; started < READS; started++) {
        UNTIL(get(&high.starts) == started);
        assert_int_equal(get(&low.starts), WORKERS); /* at least one read still waits */
        (void)add(&high.tickets, 1);
    }
    (void)add(&high.tickets, READS);
    finish(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 2"), SYNCS + READS);
    /* How often each started is a matter of speed: as soon as no read waits the syncs may have
     * their reserved workers back, and a read gives way.  That costs no attempt. */
    assert_int_equal(sql(f, "SELECT sum(attempts) FROM job"), 0);
}

struct large_call {
    const char *url;
    uint64_t *others_answered;
    uint64_t others_before; /* answered before the large one was */
    uint64_t parked;
};

enum { LARGE_UNITS = 30 };

static tide_status large_handler(tide_job *job, void *context, tide_error *err)
{
    struct large_call *large = context;
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    struct tide_request request = {.method = "GET", .url = large->url};
    const uint64_t before = get(large->others_answered);
    tide_status rc = tide_job_call(job, LARGE_UNITS, 0, NULL, &request, &response, err);
    tide_response_done(&response);
    if (rc == TIDE_OK)
        large->others_before = before;
    if (rc == TIDE_AGAIN)
        (void)add(&large->parked, 1);
    return rc;
}

/* E3.3.  A read whose call costs more than those of the syncs waits for its units, for about three
 * seconds.  Syncs that started meanwhile would spend them, and the read would be answered after the
 * last sync.  A few may start before the read is parked.  Calls take 300 ms, so that the account
 * may run three jobs at once (E4.3a). */
CASE(while_a_person_waits_for_units_no_lower_level_spends_them)
{
    enum { SYNCS = 20 };
    test_http *server = test_http_start();
    struct fetch fetch = {.url = test_http_url(server, "/delay?ms=300")};
    struct large_call large = {.url = fetch.url, .others_answered = &fetch.answered};
    fixture_settings(f, "governor.default.rate_start=10;governor.default.rate_max=40");
    fixture_open(f);
    uint32_t sync = DEFINE(f, "sync", fetch_handler, .context = &fetch);
    uint32_t read = DEFINE(f, "read", large_handler, .context = &large, .level = 1,
                           .lane = TIDE_KIND_INTERACTIVE);
    uint32_t account = account_of(f, "default");
    ENQUEUE(f, .kind = read, .account = account);
    start(f);
    UNTIL(get(&large.parked) > 0);
    struct tide_spec specs[SYNCS];
    for (int i = 0; i < SYNCS; i++)
        specs[i] = (struct tide_spec){.kind = sync, .account = account};
    OK(tide_enqueue(f->engine, specs, SYNCS, NULL, err));
    finish(f);
    assert_int_equal(get(&fetch.answered), SYNCS);
    assert_in_range(large.others_before, 0, SYNCS / 2);
    test_http_stop(server);
}

/* ---- halt (E4.6) ----------------------------------------------------------------------------- */

OPENED(a_halt_ends_an_accounts_jobs_and_survives_a_restart)
{
    struct gate gate = {0};
    uint64_t ran = 0;
    struct tide_kind kind = {"gate", gate_handler, .context = &gate};
    struct tide_kind counts = {"count", count_handler, .context = &ran};
    uint32_t id = define(f, &kind);
    uint32_t count = define(f, &counts);
    uint32_t account = account_of(f, "default");
    for (int i = 0; i < 20; i++)
        ENQUEUE(f, .kind = id, .account = account);
    start(f);
    UNTIL(get(&gate.arrived) >= 2);
    OK(tide_engine_halt(f->engine, account, "the owner left", err));
    finish(f); /* what is halted does not count as work; its handlers were canceled */
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 0 AND attempts = 0"), 20);
    ENQUEUE(f, .kind = count); /* other jobs run */
    finish(f);
    assert_int_equal(get(&ran), 1);
    fixture_close(f);
    gate_open(&gate);
    fixture_open(f);
    define(f, &kind);
    define(f, &counts);
    run_all(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 2"), 1);
    OK(tide_engine_resume(f->engine, account_of(f, "default"), err));
    finish(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state = 2"), 21);
}

/* ---- everything fails (E6.2) ---------------------------------------------------------------- */

struct store {
    uint64_t broken;
    uint64_t probes; /* runs of the item known to be good, after it went wrong */
};

static tide_status store_handler(tide_job *job, void *context, tide_error *err)
{
    struct store *store = context;
    (void)err;
    bool broken = get(&store->broken) != 0;
    for (size_t i = 0; i < tide_job_items(job); i++) {
        if (broken && strcmp(tide_job_item(job, i).data, "good") == 0)
            (void)add(&store->probes, 1);
        if (broken)
            tide_job_item_failed(job, i, TIDE_PERMANENT, "400 bad request");
        else
            tide_job_item_done(job, i);
    }
    return TIDE_OK;
}

OPENED(when_everything_fails_the_account_halts_instead)
{
    struct store store = {0};
    uint32_t kind = DEFINE(f, "store", store_handler, .context = &store, .items = true);
    uint32_t account = account_of(f, "default");
    start(f);
    ENQUEUE(f, .kind = kind, .account = account, .payload = "{\"items\":[\"good\"]}");
    finish(f);
    (void)add(&store.broken, 1);
    for (int i = 0; i < 60; i++) {
        const char *payload = textf("{\"items\":[\"m%d\"]}", i);
        ENQUEUE(f, .kind = kind, .account = account, .payload = payload);
    }
    UNTIL(sql(f, "SELECT halted FROM account") == 1);
    finish(f);
    assert_true(get(&store.probes) >= 1);
    print_message("%" PRId64 " items were called bad before the halt\n",
                  sql(f, "SELECT count(*) FROM bad WHERE state = 0"));
    assert_true(sql(f, "SELECT count(*) FROM bad") < 20);
    assert_true(sql(f, "SELECT length(halt_reason) FROM account") > 10);
    (void)add(&store.broken, UINT64_MAX);
    OK(tide_engine_resume(f->engine, account, err));
    finish(f);
    assert_int_equal(sql(f, "SELECT count(*) FROM job WHERE state <> 2"), 0);
}

/* ---- stalls (E7.1, E7.2) ------------------------------------------------------------------- */

static tide_status stall_handler(tide_job *job, void *context, tide_error *err)
{
    (void)err;
    uint64_t *runs = context;
    if (add(runs, 1) > 1)
        return TIDE_OK;
    return tide_job_sleep(job, 60000); /* no beat: only the cancellation ends it */
}

OPENED(a_job_without_a_beat_is_canceled_and_tried_again)
{
    uint64_t runs = 0;
    uint32_t kind = DEFINE(f, "stall", stall_handler, .context = &runs, .stall_after_ms = 100);
    uint64_t id = ENQUEUE(f, .kind = kind);
    run_all(f);
    assert_int_equal(get(&runs), 2);
    assert_int_equal(row_state(f, id), 2);
    assert_int_equal(sql(f, "SELECT attempts FROM job WHERE id = %" PRIu64, id), 1);
}

static tide_status sleep_handler(tide_job *job, void *context, tide_error *err)
{
    (void)context;
    (void)err;
    return tide_job_sleep(job, 60000);
}

/* A kind that names no limit has the one of the settings, and the error says which. */
CASE(a_stalled_job_says_how_long_it_had_no_beat)
{
    fixture_settings(f, "stall.after=1s");
    fixture_open(f);
    uint32_t kind = DEFINE(f, "sleep", sleep_handler, .attempts_max = 1);
    uint64_t id = ENQUEUE(f, .kind = kind);
    run_all(f);
    tide_error err = {TIDE_OK, 0, ""};
    assert_int_equal(tide_job_ended(f->engine, id, &err), TIDE_UNKNOWN);
    assert_string_equal(err.text, "no beat for 1000 ms");
}

struct zombie {
    uint64_t runs;
    uint64_t release;
    uint64_t stale; /* set when the late handler got TIDE_STALE */
    uint64_t left;
};

static tide_status zombie_handler(tide_job *job, void *context, tide_error *err)
{
    struct zombie *zombie = context;
    if (add(&zombie->runs, 1) > 1)
        return TIDE_OK;
    while (get(&zombie->release) == 0)
        test_pause();
    if (tide_job_save(job, TIDE_TEXT("from the grave"), err) == TIDE_STALE)
        (void)add(&zombie->stale, 1);
    (void)add(&zombie->left, 1);
    return TIDE_OK;
}

CASE(a_handler_that_never_returns_loses_its_worker_and_changes_nothing)
{
    struct zombie zombie = {0};
    f->workers = 1;
    fixture_settings(f, "stall.ignored_max=100ms");
    fixture_open(f);
    uint32_t kind = DEFINE(f, "zombie", zombie_handler, .context = &zombie, .stall_after_ms = 100);
    uint64_t id = ENQUEUE(f, .kind = kind);
    run_all(f); /* on the worker that took its place */
    assert_int_equal(get(&zombie.runs), 2);
    assert_int_equal(row_state(f, id), 2);
    assert_int_equal(sql(f, "SELECT attempts FROM job WHERE id = %" PRIu64, id), 1);
    (void)add(&zombie.release, 1);
    UNTIL(get(&zombie.left) == 1);
    assert_int_equal(get(&zombie.stale), 1);
    assert_int_equal(sql(f, "SELECT count(*) FROM detail WHERE resume IS NOT NULL"), 0);
    assert_int_equal(row_state(f, id), 2);
}

/* Handlers that ignore their cancellation until the test lets them go. */
struct stuck {
    uint64_t runs;
    uint64_t release;
    const char *item; /* only with this item; NULL: always */
};

static tide_status stuck_handler(tide_job *job, void *context, tide_error *err)
{
    struct stuck *stuck = context;
    (void)err;
    (void)add(&stuck->runs, 1);
    bool hangs = stuck->item == NULL;
    for (size_t i = 0; !hangs && i < tide_job_items(job); i++)
        hangs = strcmp(tide_job_item(job, i).data, stuck->item) == 0;
    while (hangs && get(&stuck->release) == 0)
        test_pause();
    return TIDE_OK;
}

/* The handlers were let go, but their threads may not have left them yet. */
static void close_when_returned(struct fixture *f)
{
    UNTIL(tide_engine_close(f->engine) == TIDE_OK);
    f->engine = NULL;
}

/* E7.1, E7.2: each attempt costs a thread, so attempts are counted over all of them. */
CASE(a_handler_that_never_returns_fails_when_its_attempts_are_spent)
{
    struct stuck stuck = {0};
    f->workers = 2;
    fixture_settings(f, "stall.ignored_max=100ms");
    fixture_open(f);
    uint32_t kind = DEFINE(f, "stuck", stuck_handler, .context = &stuck, .attempts_max = 2,
                           .stall_after_ms = 10);
    uint64_t id = ENQUEUE(f, .kind = kind);
    start(f);
    UNTIL(get(&stuck.runs) > 2 || row_state(f, id) == 3);
    (void)add(&stuck.release, 1);
    finish(f);
    assert_int_equal(row_state(f, id), 3);
    assert_int_equal(get(&stuck.runs), 2);
    assert_int_equal(sql(f, "SELECT attempts FROM job WHERE id = %" PRIu64, id), 2);
    close_when_returned(f);
}

/* E7.1: over its budget it is split by force, so that only the item at fault is lost. */
CASE(a_batch_that_never_returns_is_split_down_to_the_item)
{
    struct stuck stuck = {.item = "b"};
    fixture_settings(f, "stall.ignored_max=100ms");
    fixture_open(f);
    uint32_t kind = DEFINE(f, "stuck", stuck_handler, .context = &stuck, .attempts_max = 2,
                           .stall_after_ms = 10, .items = true);
    uint64_t id = ENQUEUE(f, .kind = kind, .payload = "{\"items\":[\"a\",\"b\"]}");
    start(f);
    UNTIL(row_state(f, id) > 1);
    assert_int_equal(row_state(f, id), 2); /* split */
    UNTIL(sql(f, "SELECT state FROM job WHERE payload LIKE '%%\"a\"%%'"
                 " AND payload NOT LIKE '%%\"b\"%%'") > 1);
    assert_int_equal(sql(f, "SELECT state FROM job WHERE payload LIKE '%%\"a\"%%'"
                            " AND payload NOT LIKE '%%\"b\"%%'"),
                     2);
    (void)add(&stuck.release, 1);
    finish(f);
    close_when_returned(f);
}

/* With every thread stuck nothing can run any more: the engine says so and ends. */
CASE(an_engine_whose_threads_are_all_stuck_stops_and_closes)
{
    struct stuck stuck = {0};
    f->workers = TIDE_WORKERS_MAX;
    fixture_settings(f, "stall.ignored_max=100ms");
    fixture_open(f);
    uint32_t kind = DEFINE(f, "stuck", stuck_handler, .context = &stuck, .stall_after_ms = 10);
    struct tide_spec specs[TIDE_WORKERS_MAX];
    for (int i = 0; i < TIDE_WORKERS_MAX; i++)
        specs[i] = (struct tide_spec){.kind = kind};
    OK(tide_enqueue(f->engine, specs, TIDE_WORKERS_MAX, NULL, err));
    start(f);
    tide_error why = {TIDE_OK, 0, ""};
    assert_int_equal(tide_engine_wait(f->engine, TEST_WAIT_MS, &why), TIDE_BUG);
    assert_non_null(strstr(why.text, "stuck"));
    assert_int_equal(tide_engine_close(f->engine), TIDE_TIMEOUT);
    (void)add(&stuck.release, 1);
    close_when_returned(f);
}

/* ---- schedules (E8) -------------------------------------------------------------------------- */

enum { PERIOD_MS = 100 };

/* Firings are counted, not jobs: a firing that finds its job still waiting makes no other, and
 * a job may outlive the engine that made it. */
static void count_firings(struct fixture *f)
{
    (void)sql(f, "CREATE TABLE firing (slot INTEGER)");
    (void)sql(f, "CREATE TRIGGER counted AFTER UPDATE OF slot_last ON schedule"
                 " BEGIN INSERT INTO firing VALUES (new.slot_last); END");
}

/* Starts the engine and waits for some firings.  They are no more than the slots since the
 * start: the one it starts in, for all that were missed, and each that began since. */
static void fire_some(struct fixture *f, int64_t count)
{
    const uint64_t before_unix_ms = tide_world_now_unix_ms(f->world);
    start(f);
    UNTIL(sql(f, "SELECT count(*) FROM firing") >= count);
    const int64_t fired = sql(f, "SELECT count(*) FROM firing");
    const uint64_t passed_ms = tide_world_now_unix_ms(f->world) - before_unix_ms;
    assert_in_range(fired, count, 1 + passed_ms / PERIOD_MS + 1);
    assert_int_equal(sql(f, "SELECT count(DISTINCT slot) FROM firing"),
                     sql(f, "SELECT count(*) FROM firing"));
}

OPENED(a_schedule_fires_once_per_slot_and_missed_slots_collapse)
{
    enum { MISSED = 20 };
    uint64_t ran = 0;
    struct tide_kind kind = {"tick", count_handler, .context = &ran};
    uint32_t id = define(f, &kind);
    struct tide_schedule tick = {
        .name = "ten a second", .kind = id, .period_ms = PERIOD_MS, .at_start = true};
    REFUSED(tide_engine_schedule(f->engine, &(struct tide_schedule){.kind = id}, err),
            TIDE_INVALID);
    REFUSED(tide_engine_schedule(
                f->engine, &(struct tide_schedule){.name = "x", .kind = 4711, .period_ms = 1}, err),
            TIDE_INVALID);
    OK(tide_engine_schedule(f->engine, &tick, err));
    count_firings(f);
    fire_some(f, 3); /* at the start, and two slots */
    UNTIL(get(&ran) > 0);
    fixture_close(f);
    (void)nanosleep(&(struct timespec){MISSED * PERIOD_MS / 1000, 0}, NULL); /* they pass unseen */
    fixture_open(f);
    tick.kind = define(f, &kind);
    OK(tide_engine_schedule(f->engine, &tick, err));
    (void)sql(f, "DELETE FROM firing");
    const uint64_t ran_before = get(&ran);
    fire_some(f, 2);
    UNTIL(get(&ran) > ran_before);
    fixture_close(f);
}

static tide_status whose_handler(tide_job *job, void *context, tide_error *err)
{
    (void)err;
    (void)add(context, 1ull << (8 * tide_job_account(job)));
    return TIDE_OK;
}

OPENED(a_schedule_per_account_leaves_out_the_halted)
{
    uint64_t ran = 0;
    uint32_t kind = DEFINE(f, "whose", whose_handler, .context = &ran);
    uint32_t accounts[3];
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++)
        OK(tide_engine_account(f->engine, names[i], NULL, &accounts[i], err));
    OK(tide_engine_halt(f->engine, accounts[1], "away", err));
    OK(tide_engine_schedule(f->engine,
                            &(struct tide_schedule){.name = "hourly",
                                                    .kind = kind,
                                                    .period_ms = 3600000,
                                                    .at_start = true,
                                                    .per_account = true},
                            err));
    start(f);
    UNTIL(get(&ran) != 0);
    finish(f);
    UNTIL(get(&ran) == (1ull << (8 * accounts[0])) + (1ull << (8 * accounts[2])));
}
