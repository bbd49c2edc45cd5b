/* serve_bench.c - measures the budgets of `tidemark serve` that need no browser.
 *
 *   serve_bench
 *
 * The home has an archive that is generated (TIDE_BENCH_MESSAGES, 1,000,000 unless given) and small
 * mailboxes that tidemark-cloud serves (serve_stage.h).  Measured are: the start, memory, CPU time
 * and wake-ups without work; answers of the API, of /healthz and of the webhook one by one, first
 * without work and then while a backfill without a quota runs; 32 streams and one more; what a
 * watcher costs a sync; the end by SIGTERM during the backfill.
 *
 * Ratios are to the same figure of an empty home, or to /healthz, in the same run.  Other programs
 * delay all of this: serve_machine_late is by how much a thread that does nothing woke up late. */
#include "bench.h"

#include "archive_made.h"
#include "serve/http/http.h"
#include "serve_push.h"
#include "serve_stage.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SAMPLES = 500,
    STARTS = 3,
    IDLE_S = 20,
    REST_S_MAX = 60,
    HAMMERS = 8,          /* clients that keep the readers busy: two for each */
    PUSH_PAUSE_US = 4000, /* below TIDE_WEBHOOK_TAKEN_PER_S */
    BACKFILL_WAIT_S_MAX = 60,
};

/* ---- samples ---- */

static uint64_t samples[SAMPLES];

static void quantiles(const char *name, double base_ms)
{
    static const size_t permilles[] = {500, 950, 990};
    for (size_t i = 0; i < 3; i++) {
        char whole[80];
        (void)snprintf(whole, sizeof whole, "%s_p%zu", name, permilles[i] / 10);
        compared(whole, quantile_ms(samples, SAMPLES, permilles[i]), "ms", base_ms,
                 "serve_health_p50");
    }
}

/* What one sample does; `number` counts them. */
typedef void ask_fn(struct stage *stage, struct client *client, uint64_t number);

static void expect_ok(struct client *client, int status, const char *what)
{
    if (status != 200)
        die(what, client->body);
}

/* Each request on the connection of the one before. */
static double measure(struct stage *stage, const char *name, ask_fn *ask, double base_ms)
{
    struct client client;
    client_open(&client, stage->serving.port, stage->key[0] == '\0' ? NULL : stage->key);
    ask(stage, &client, SAMPLES); /* what only a first request does: a connection is accepted */
    for (uint64_t i = 0; i < SAMPLES; i++) {
        const uint64_t begin_us = now_us();
        ask(stage, &client, i);
        samples[i] = now_us() - begin_us;
    }
    client_close(&client);
    quantiles(name, base_ms);
    return quantile_ms(samples, SAMPLES, 500);
}

static void ask_health(struct stage *stage, struct client *client, uint64_t number)
{
    (void)stage;
    (void)number;
    expect_ok(client, client_get(client, "/healthz"), "/healthz");
}

static void ask_state(struct stage *stage, struct client *client, uint64_t number)
{
    (void)stage;
    (void)number;
    expect_ok(client, client_get(client, "/api/v1/state"), "state");
}

static void ask_list(struct stage *stage, struct client *client, uint64_t number)
{
    (void)stage;
    (void)number;
    expect_ok(client, client_get(client, "/api/v1/jobs?limit=50"), "jobs");
}

static void ask_metrics(struct stage *stage, struct client *client, uint64_t number)
{
    (void)stage;
    (void)number;
    expect_ok(client, client_get(client, "/metrics"), "/metrics");
}

/* In turn: a word of every message, a frequent one, two frequent ones, a rare one. */
static void ask_search(struct stage *stage, struct client *client, uint64_t number)
{
    char path[200];
    char one[16] = "the";
    char other[16] = "";
    const uint32_t step = (uint32_t)(number / 4);
    (void)stage;
    if (number % 4 == 1 || number % 4 == 2)
        (void)archive_word(step % 50, one);
    if (number % 4 == 2)
        (void)archive_word(50 + step % 50, other);
    if (number % 4 == 3)
        (void)archive_word(5000 + step * 97, one);
    (void)snprintf(path, sizeof path, "/api/v1/mail/search?account=" LARGE "&limit=50&q=%s%%20%s",
                   one, other);
    expect_ok(client, client_get(client, path), path);
}

/* As the page does: the message, then the frame with its HTML. */
static void ask_open(struct stage *stage, struct client *client, uint64_t number)
{
    char id[40];
    char path[200];
    char cap[100] = "";
    stage_message(stage, number, id);
    (void)snprintf(path, sizeof path, "/api/v1/mail/" LARGE "/messages/%s", id);
    expect_ok(client, client_get(client, path), path);
    const char *at = strstr(client->body, "\"/v/");
    expect(at != NULL && sscanf(at, "\"%90[^\"]", cap) == 1, "a message without a view");
    (void)snprintf(path, sizeof path, "%shtml", cap);
    expect_ok(client, client_get(client, path), path);
}

static void measure_pushes(struct stage *stage, const char *name, double base_ms)
{
    struct client client;
    pusher_open(&stage->serving, &client);
    /* The first one waits until the keys of the issuer were fetched. */
    expect(pusher_push(&client, BUSY) == 204, "a push");
    for (size_t i = 0; i < SAMPLES; i++) {
        nap_us(PUSH_PAUSE_US);
        const uint64_t begin_us = now_us();
        const int status = pusher_push(&client, BUSY);
        samples[i] = now_us() - begin_us;
        if (status != 204)
            die("a push", client.body);
    }
    client_close(&client);
    quantiles(name, base_ms);
}

/* ---- the machine ---- */

struct lateness {
    pthread_t thread;
    bool stop;
    uint64_t late_us[SAMPLES];
    size_t count; /* the newest SAMPLES are kept */
};

static void *lateness_main(void *arg)
{
    enum { NAP_US = 2000 };
    struct lateness *lateness = arg;
    while (!__atomic_load_n(&lateness->stop, __ATOMIC_ACQUIRE)) {
        const uint64_t begin_us = now_us();
        nap_us(NAP_US);
        lateness->late_us[lateness->count++ % SAMPLES] = now_us() - begin_us - NAP_US;
    }
    return NULL;
}

static void lateness_begin(struct lateness *lateness)
{
    lateness->stop = false;
    lateness->count = 0;
    expect(pthread_create(&lateness->thread, NULL, lateness_main, lateness) == 0, "thread");
}

static void lateness_end(struct lateness *lateness, const char *name)
{
    __atomic_store_n(&lateness->stop, true, __ATOMIC_RELEASE);
    (void)pthread_join(lateness->thread, NULL);
    const size_t count = lateness->count < SAMPLES ? lateness->count : SAMPLES;
    figure(name, quantile_ms(lateness->late_us, count, 990), "ms", 0, NULL);
}

/* ---- without work ---- */

static void measure_start(struct stage *stage)
{
    double best[2] = {1e9, 1e9};
    const char *const homes[2] = {stage->empty, stage->home};
    /* In turn, and the best of each: other programs of this machine delay any of them. */
    for (int i = 0; i < 2 * STARTS; i++) {
        struct serving serving = stage_serve(stage, homes[i % 2]);
        best[i % 2] = serving.start_ms < best[i % 2] ? serving.start_ms : best[i % 2];
        (void)serve_stop(&serving);
    }
    figure("serve_start_empty", best[0], "ms", 0, NULL);
    compared("serve_start", best[1], "ms", best[0], "serve_start_empty");
}

/* Until a second passes without a wake-up. */
static void rest(pid_t pid)
{
    for (int i = 0; i < REST_S_MAX; i++) {
        const uint64_t before = serve_switches(pid);
        (void)sleep(1);
        if (serve_switches(pid) == before)
            return;
    }
}

static void measure_idle(struct stage *stage)
{
    struct serving empty = stage_serve(stage, stage->empty);
    rest(empty.pid);
    const double empty_mb = serve_rss_mb(empty.pid);
    (void)serve_stop(&empty);
    stage->serving = stage_serve(stage, stage->home);
    const pid_t pid = stage->serving.pid;
    rest(pid);
    const double cpu_s = serve_threads_cpu_s(pid, NULL);
    const uint64_t switches = serve_switches(pid);
    (void)sleep(IDLE_S);
    figure("serve_idle_wakeups", (double)(serve_switches(pid) - switches), "", 0, NULL);
    figure("serve_idle_cpu", (serve_threads_cpu_s(pid, NULL) - cpu_s) * 100 / IDLE_S, "%", 0, NULL);
    figure("serve_rss_idle_empty", empty_mb, "MB", 0, NULL);
    compared("serve_rss_idle", serve_rss_mb(pid), "MB", empty_mb, "serve_rss_idle_empty");
}

static double measure_api(struct stage *stage)
{
    static struct lateness lateness;
    lateness_begin(&lateness);
    const double health_ms = measure(stage, "serve_health", ask_health, 0);
    (void)measure(stage, "serve_state", ask_state, health_ms);
    (void)measure(stage, "serve_list", ask_list, health_ms);
    (void)measure(stage, "serve_metrics", ask_metrics, health_ms);
    (void)measure(stage, "serve_search", ask_search, health_ms);
    (void)measure(stage, "serve_open", ask_open, health_ms);
    lateness_end(&lateness, "serve_machine_late_p99");
    rest(stage->serving.pid);
    figure("serve_rss_asked", serve_rss_mb(stage->serving.pid), "MB", 0, NULL);
    return health_ms;
}

/* ---- streams ---- */

static void measure_streams(struct stage *stage)
{
    static struct client clients[TIDE_HTTPD_STREAMS_MAX + 1];
    size_t open = 0;
    int refused = 0;
    const double begin_s = now_s();
    for (size_t i = 0; i <= TIDE_HTTPD_STREAMS_MAX; i++) {
        client_open(&clients[i], stage->serving.port, stage->key);
        const int status = stream_open(&clients[i], "state");
        open += status == 200;
        if (status == 200)
            continue;
        refused = status;
        expect(strstr(clients[i].body, "\"detail\"") != NULL, "a refusal without words");
        figure("serve_stream_retry_after", clients[i].retry_after_s, "s", 0, NULL);
    }
    figure("serve_streams", (double)open, "", 0, NULL);
    figure("serve_stream_refused", refused, "status", 0, NULL);
    for (size_t i = 0; i < TIDE_HTTPD_STREAMS_MAX; i++)
        expect(stream_next(&clients[i], 10000), "a stream without an event");
    figure("serve_streams_first_event", (now_s() - begin_s) * 1e3, "ms", 0, NULL);
    for (size_t i = 0; i <= TIDE_HTTPD_STREAMS_MAX; i++)
        client_close(&clients[i]);
}

/* ---- a watcher ---- */

struct watcher {
    struct stage *stage;
    pthread_t thread;
    bool stop;
    uint64_t events;
};

static void *watcher_main(void *arg)
{
    struct watcher *watcher = arg;
    struct client client;
    client_open(&client, watcher->stage->serving.port, watcher->stage->key);
    expect(stream_open(&client, "state") == 200, "no stream");
    while (!__atomic_load_n(&watcher->stop, __ATOMIC_ACQUIRE))
        watcher->events += stream_next(&client, 100);
    client_close(&client);
    return NULL;
}

/* The CPU time of serve for one sync. */
static double sync_cpu_s(struct stage *stage, size_t round)
{
    char name[48];
    int status = 0;
    stage_round(round, name);
    const double before = serve_cpu_s(stage->serving.pid);
    const pid_t sync = stage_sync(stage, name);
    expect(waitpid(sync, &status, 0) == sync && status == 0, "a sync");
    return serve_cpu_s(stage->serving.pid) - before;
}

/* That of the threads that only a watcher needs: one makes the state, one sends it. */
static double watching_cpu_s(const struct stage *stage)
{
    return serve_threads_cpu_s(stage->serving.pid, "live") +
           serve_threads_cpu_s(stage->serving.pid, "http");
}

struct spread {
    double sum, least, most;
};

static void spread_add(struct spread *spread, double value)
{
    spread->least = spread->sum == 0 || value < spread->least ? value : spread->least;
    spread->most = value > spread->most ? value : spread->most;
    spread->sum += value;
}

/* Two measures: the CPU time of the threads that serve a watcher, which is exact, and the difference of
 * whole syncs with and without one, which also has what it does to caches and locks, but is less
 * than such syncs differ by themselves.  In turn, so that a machine that becomes slower does so for both. */
static void measure_watcher(struct stage *stage)
{
    struct spread plain = {.sum = 0}, watched = {.sum = 0};
    double watching_s = 0;
    uint64_t events = 0;
    for (size_t i = 0; i < STAGE_ROUNDS; i += 2) {
        struct watcher watcher = {.stage = stage};
        spread_add(&plain, sync_cpu_s(stage, i));
        const double before_s = watching_cpu_s(stage);
        expect(pthread_create(&watcher.thread, NULL, watcher_main, &watcher) == 0, "thread");
        spread_add(&watched, sync_cpu_s(stage, i + 1));
        watching_s += watching_cpu_s(stage) - before_s;
        __atomic_store_n(&watcher.stop, true, __ATOMIC_RELEASE);
        (void)pthread_join(watcher.thread, NULL);
        events += watcher.events;
    }
    figure("serve_watcher_events", (double)events, "", 0, NULL);
    figure("serve_watcher_share", watching_s * 100 / watched.sum, "%", 0, NULL);
    figure("serve_sync_cpu", plain.sum, "s", 0, NULL);
    figure("serve_sync_cpu_differs",
           (plain.most - plain.least) * 100 * STAGE_ROUNDS / 2 / plain.sum, "%", 0, NULL);
    compared("serve_sync_cpu_watched", watched.sum, "s", plain.sum, "serve_sync_cpu");
}

/* ---- while all work ---- */

struct hammer {
    struct stage *stage;
    const bool *stop;
    pthread_t thread;
    uint64_t count;
};

static void *hammer_main(void *arg)
{
    struct hammer *hammer = arg;
    struct client client;
    client_open(&client, hammer->stage->serving.port, hammer->stage->key);
    while (!__atomic_load_n(hammer->stop, __ATOMIC_ACQUIRE)) {
        const int status = client_get(&client, "/api/v1/state");
        /* A full queue is an answer, too; it closes the connection. */
        expect(status == 200 || status == 503, "state");
        hammer->count++;
        if (status == 503)
            client_again(&client);
    }
    client_close(&client);
    return NULL;
}

/* A figure of /metrics; 0 if it is not there. */
static double metric(struct stage *stage, const char *line)
{
    struct client client;
    client_open(&client, stage->serving.port, stage->key);
    expect_ok(&client, client_get(&client, "/metrics"), "/metrics");
    const char *at = strstr(client.body, line);
    const double value = at == NULL ? 0 : strtod(at + strlen(line), NULL);
    client_close(&client);
    return value;
}

static double workers_busy(struct stage *stage)
{
    return metric(stage, "\ntidemark_lane_jobs{lane=\"bulk\",state=\"running\"} ");
}

static double backfilled(struct stage *stage)
{
    return metric(stage, "\ntidemark_items_stored_total{account=\"" BUSY "\"} ");
}

/* Every worker that the bulk lane may use has a job. */
static pid_t backfill_start(struct stage *stage)
{
    const pid_t sync = stage_sync(stage, BUSY);
    const double until_s = now_s() + BACKFILL_WAIT_S_MAX;
    while (workers_busy(stage) < 8 && now_s() < until_s)
        nap_us(10000);
    return sync;
}

static void measure_hammered(struct stage *stage, double health_ms)
{
    struct hammer hammers[HAMMERS];
    bool stop = false;
    uint64_t count = 0;
    const double begin_s = now_s();
    for (int i = 0; i < HAMMERS; i++) {
        hammers[i] = (struct hammer){.stage = stage, .stop = &stop};
        expect(pthread_create(&hammers[i].thread, NULL, hammer_main, &hammers[i]) == 0, "thread");
    }
    (void)measure(stage, "serve_health_busy", ask_health, health_ms);
    measure_pushes(stage, "serve_webhook_busy", health_ms);
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    for (int i = 0; i < HAMMERS; i++) {
        (void)pthread_join(hammers[i].thread, NULL);
        count += hammers[i].count;
    }
    figure("serve_state_busy_rate", (double)count / (now_s() - begin_s), "1/s", 0, NULL);
}

static void measure_busy(struct stage *stage, double health_ms)
{
    static struct lateness lateness;
    double workers = 0;
    int status = 0;
    const pid_t sync = backfill_start(stage);
    const double begin_s = now_s();
    const double begin = backfilled(stage);
    lateness_begin(&lateness);
    (void)measure(stage, "serve_search_busy", ask_search, health_ms);
    workers += workers_busy(stage);
    (void)measure(stage, "serve_open_busy", ask_open, health_ms);
    workers += workers_busy(stage);
    (void)measure(stage, "serve_state_busy", ask_state, health_ms);
    workers += workers_busy(stage);
    lateness_end(&lateness, "serve_machine_late_busy_p99");
    figure("serve_backfill_rate", (backfilled(stage) - begin) / (now_s() - begin_s), "1/s", 0,
           NULL);
    measure_hammered(stage, health_ms);
    workers += workers_busy(stage);
    figure("serve_workers_busy", workers / 4, "", 0, NULL);
    figure("serve_rss_busy", serve_rss_mb(stage->serving.pid), "MB", 0, NULL);
    expect(waitpid(sync, &status, WNOHANG) == 0, "the backfill ended before all was measured");
    figure("serve_stop_busy", serve_stop(&stage->serving), "s", 0, NULL);
    (void)kill(sync, SIGTERM); /* or it would go on by itself */
    expect(waitpid(sync, &status, 0) == sync, "waitpid");
}

int main(int argc, char **argv)
{
    static struct stage stage;
    (void)argc;
    stage_make(&stage, argv[0]);
    figure("serve_messages", (double)stage.messages, "", 0, NULL);
    measure_start(&stage);
    measure_idle(&stage);
    stage_key(&stage);
    const double health_ms = measure_api(&stage);
    measure_streams(&stage);
    measure_watcher(&stage);
    measure_pushes(&stage, "serve_webhook", health_ms); /* the first one starts the backfill */
    measure_busy(&stage, health_ms);
    stage_remove(&stage);
    return 0;
}
