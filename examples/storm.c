/* storm.c - the engine at work against a provider that counts (script/demo).
 *
 *     tidemark-demo provider FILE     serves on a free port; writes its URL into FILE
 *     tidemark-demo run DIR URL       delivers 3000 items in 150 albums, with progress
 *
 * The provider allows QUOTA_UNITS in any WINDOW_MS and answers 429 beyond; in the
 * middle it refuses everything for STORM_MS (the storm); a few items fail once with
 * 500.  It keeps what was delivered to it, so that it can check at the end whether
 * anything is missing. */
#include "tidemark.h"

#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    ITEMS = 3000,
    ALBUM_ITEMS = 20,
    ALBUMS = ITEMS / ALBUM_ITEMS,
    JOBS = ITEMS + ALBUMS + 1,
    CALL_UNITS = 10,
    WINDOW_MS = 2000,
    QUOTA_UNITS = 4000,
    STORM_AT = ITEMS * 3 / 10, /* items delivered when it begins */
    STORM_MS = 2000,
    CALLS_MAX = 1 << 16, /* remembered for the window */
};

static uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- the provider -------------------------------------------------------------------- */

static struct provider {
    pthread_mutex_t lock;
    uint64_t calls_ms[CALLS_MAX]; /* a ring of accepted calls */
    size_t first, last;
    uint32_t delivered[ITEMS];
    uint32_t failed_once[ITEMS];
    uint64_t items, repeated, refused_storm, refused_quota, failed;
    uint64_t storm_until_ms; /* 0: not yet */
    uint64_t units_max;      /* most units in any window */
} provider = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The code of the answer; under the lock. */
static unsigned judge(long item, uint64_t at_ms)
{
    while (provider.first != provider.last &&
           provider.calls_ms[provider.first % CALLS_MAX] + WINDOW_MS <= at_ms)
        provider.first++;
    if (provider.items >= STORM_AT && provider.storm_until_ms == 0)
        provider.storm_until_ms = at_ms + STORM_MS;
    if (at_ms < provider.storm_until_ms) {
        provider.refused_storm++;
        return 429;
    }
    uint64_t units = (provider.last - provider.first + 1) * CALL_UNITS;
    if (units > QUOTA_UNITS) {
        provider.refused_quota++;
        return 429;
    }
    provider.calls_ms[provider.last++ % CALLS_MAX] = at_ms;
    provider.units_max = units > provider.units_max ? units : provider.units_max;
    if (item % 101 == 7 && provider.failed_once[item]++ == 0) {
        provider.failed++;
        return 500;
    }
    if (provider.delivered[item]++ == 0)
        provider.items++;
    else
        provider.repeated++;
    return 200;
}

static char *stats_text(void)
{
    char *text = NULL;
    if (asprintf(&text,
                 "{\"items\":%llu,\"repeated\":%llu,\"refused_storm\":%llu,"
                 "\"refused_quota\":%llu,\"failed\":%llu,\"units_max\":%llu,\"quota\":%d}\n",
                 (unsigned long long)provider.items, (unsigned long long)provider.repeated,
                 (unsigned long long)provider.refused_storm,
                 (unsigned long long)provider.refused_quota, (unsigned long long)provider.failed,
                 (unsigned long long)provider.units_max, QUOTA_UNITS) < 0)
        abort();
    return text;
}

static enum MHD_Result serve(void *arg, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, const char *upload,
                             size_t *upload_bytes, void **request)
{
    (void)arg;
    (void)method;
    (void)version;
    (void)upload;
    (void)request;
    *upload_bytes = 0;
    const char *id = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "id");
    long item = id == NULL ? -1 : strtol(id, NULL, 10);
    unsigned code = 404;
    char *text = NULL;
    pthread_mutex_lock(&provider.lock);
    if (strcmp(url, "/stats") == 0)
        code = 200;
    else if (item >= 0 && item < ITEMS)
        code = judge(item, now_ms());
    text = stats_text();
    pthread_mutex_unlock(&provider.lock);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (code == 429)
        (void)MHD_add_response_header(response, "Retry-After", "1");
    enum MHD_Result rc = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return rc;
}

static int run_provider(const char *file)
{
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO, 0, NULL, NULL, serve, NULL,
                         MHD_OPTION_LISTENING_ADDRESS_REUSE, 0u, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        daemon == NULL ? NULL : MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    FILE *out = info == NULL ? NULL : fopen(file, "w");
    if (out == NULL) {
        (void)fprintf(stderr, "tidemark-demo: the provider cannot start\n");
        return 1;
    }
    (void)fprintf(out, "http://127.0.0.1:%u\n", info->port);
    (void)fclose(out);
    sigset_t end;
    int number = 0;
    (void)sigemptyset(&end);
    (void)sigaddset(&end, SIGTERM);
    (void)sigaddset(&end, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &end, NULL);
    (void)sigwait(&end, &number);
    MHD_stop_daemon(daemon);
    return 0;
}

/* ---- the jobs -------------------------------------------------------------------------- */

static tide_status book(tide_transaction *transaction, void *arg, tide_error *err)
{
    sqlite3 *db = tide_transaction_sqlite(transaction);
    char *sql = sqlite3_mprintf("INSERT INTO book VALUES (%Q)", (const char *)arg);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return rc == SQLITE_OK ? TIDE_OK : tide_error_set(err, TIDE_INVALID, "%s", sqlite3_errmsg(db));
}

static char item_line[] = "item";
static char album_line[] = "album";

/* One call under the account's governor, and a row in our own table with its end. */
static tide_status deliver(tide_job *job, void *context, tide_error *err)
{
    unsigned item = 0;
    char url[256];
    if (sscanf(tide_job_payload(job).data, "{\"item\":%u}", &item) != 1)
        return tide_error_set(err, TIDE_PERMANENT, "a payload that is not ours");
    (void)snprintf(url, sizeof url, "%s/item?id=%u", (const char *)context, item);
    struct tide_request request = {.method = "GET", .url = url};
    struct tide_response *response = tide_response_new();
    if (response == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for an answer");
    tide_status rc = tide_job_call(job, CALL_UNITS, 0, NULL, &request, response, err);
    tide_response_free(response);
    return rc == TIDE_OK ? tide_job_effect(job, book, item_line, err) : rc;
}

static tide_status close_album(tide_job *job, void *context, tide_error *err)
{
    return tide_job_effect(job, book, context, err);
}

struct plan {
    uint32_t deliver, album, account;
};

/* All jobs at once: albums need their items, the last one needs all albums. */
static tide_status make_plan(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct plan *plan = arg;
    if (sqlite3_exec(tide_transaction_sqlite(transaction), "CREATE TABLE book (line TEXT)", NULL,
                     NULL, NULL) != SQLITE_OK)
        return tide_error_set(err, TIDE_EXISTS, "planned before");
    static struct tide_spec specs[JOBS];
    static char payloads[ITEMS][24];
    static uint32_t all[JOBS];
    for (uint32_t i = 0; i < JOBS; i++)
        all[i] = i;
    for (uint32_t i = 0; i < ITEMS; i++) {
        (void)snprintf(payloads[i], sizeof payloads[i], "{\"item\":%u}", i);
        specs[i] = (struct tide_spec){
            .kind = plan->deliver, .account = plan->account, .payload = payloads[i]};
    }
    for (uint32_t i = 0; i < ALBUMS; i++)
        specs[ITEMS + i] = (struct tide_spec){.kind = plan->album,
                                              .needs_index = &all[i * ALBUM_ITEMS],
                                              .needs_index_count = ALBUM_ITEMS};
    specs[JOBS - 1] = (struct tide_spec){
        .kind = plan->album, .needs_index = &all[ITEMS], .needs_index_count = ALBUMS};
    return tide_transaction_enqueue(transaction, specs, JOBS, NULL, err);
}

static tide_status count_done(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)err;
    sqlite3_stmt *stmt = NULL;
    (void)sqlite3_prepare_v2(tide_transaction_sqlite(transaction), "SELECT count(*) FROM book", -1,
                             &stmt, NULL);
    if (sqlite3_step(stmt) == SQLITE_ROW)
        *(int64_t *)arg = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return TIDE_OK;
}

/* ---- progress display ---------------------------------------------------------------------- */

struct show {
    tide_engine *engine;
    uint64_t began_ms;
    uint64_t before; /* done by earlier runs */
    uint64_t last_ms, last_done;
};

static void show(struct show *self)
{
    struct tide_progress seen;
    tide_engine_progress(self->engine, &seen);
    tide_buf text;
    tide_buf_init(&text, NULL, 1 << 20);
    (void)tide_engine_snapshot(self->engine, &text, NULL);
    json_t *snapshot = json_loadb(text.data, text.bytes, 0, NULL);
    json_t *account = json_array_get(json_object_get(snapshot, "accounts"), 0);
    const char *state = json_string_value(json_object_get(account, "state"));
    uint64_t at_ms = now_ms();
    uint64_t rate = (seen.done - self->last_done) * 1000 / (at_ms - self->last_ms + 1);
    bool terminal = isatty(1);
    (void)printf("%s%5.1f s  %4llu of %d  %3llu/s  lanes %u+%u run %u+%u wait  quota %4lld of %d"
                 "  retried %llu  bad %llu  %s%s",
                 terminal ? "\r\033[K" : "", (double)(at_ms - self->began_ms) / 1000,
                 (unsigned long long)(self->before + seen.done), JOBS, (unsigned long long)rate,
                 seen.running[0], seen.running[1], seen.waiting[0], seen.waiting[1],
                 (long long)json_integer_value(json_object_get(account, "window_used_units")),
                 QUOTA_UNITS, (unsigned long long)seen.retried, (unsigned long long)seen.bad,
                 state == NULL ? "" : state, terminal ? "" : "\n");
    (void)fflush(stdout);
    self->last_ms = at_ms;
    self->last_done = seen.done;
    json_decref(snapshot);
    tide_buf_done(&text);
}

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static tide_status prepare(tide_engine *engine, char *url, tide_error *err)
{
    struct plan plan = {0};
    tide_status rc = tide_engine_kind(
        engine, &(struct tide_kind){.name = "deliver", .handler = deliver, .context = url},
        &plan.deliver, err);
    if (rc == TIDE_OK)
        rc = tide_engine_kind(engine,
                              &(struct tide_kind){.name = "album",
                                                  .handler = close_album,
                                                  .context = album_line,
                                                  .lane = TIDE_KIND_INTERACTIVE},
                              &plan.album, err);
    if (rc == TIDE_OK)
        rc = tide_engine_account(engine, "demo@example.org", "gmail", &plan.account, err);
    if (rc == TIDE_OK)
        rc = tide_transact(engine, make_plan, &plan, err);
    return rc == TIDE_EXISTS ? TIDE_OK : rc;
}

static int run(const char *dir, char *url)
{
    /* The provider's limits, as its documentation would give them. */
    char units[16];
    (void)snprintf(units, sizeof units, "%d", QUOTA_UNITS);
    (void)setenv("TIDEMARK_GOVERNOR_GMAIL_WINDOW", "2s", 1);
    (void)setenv("TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS", units, 1);
    (void)setenv("TIDEMARK_RETRY_BACKOFF_START", "200ms", 1);
    tide_error err = {TIDE_OK, 0, ""};
    tide_engine *engine = NULL;
    tide_status rc =
        tide_engine_open(&(struct tide_engine_options){.state_dir = dir}, &engine, &err);
    if (rc == TIDE_OK)
        rc = prepare(engine, url, &err);
    int64_t before = 0;
    if (rc == TIDE_OK)
        rc = tide_transact(engine, count_done, &before, &err);
    if (rc == TIDE_OK)
        rc = tide_engine_start(engine, &err);
    (void)signal(SIGINT, on_signal);
    (void)signal(SIGTERM, on_signal);
    struct show self = {engine, now_ms(), (uint64_t)before, now_ms(), 0};
    uint64_t every_ms = isatty(1) ? 200 : 1000;
    tide_status work = rc == TIDE_OK ? TIDE_TIMEOUT : rc;
    while (work == TIDE_TIMEOUT && !interrupted) {
        work = tide_engine_wait(engine, every_ms, &err);
        show(&self);
    }
    if (isatty(1))
        (void)printf("\n");
    if (work != TIDE_OK && work != TIDE_TIMEOUT)
        (void)fprintf(stderr, "tidemark-demo: %s\n", err.text);
    (void)tide_engine_close(engine);
    return work == TIDE_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "provider") == 0)
        return run_provider(argv[2]);
    if (argc == 4 && strcmp(argv[1], "run") == 0)
        return run(argv[2], argv[3]);
    (void)fprintf(stderr, "usage: tidemark-demo provider FILE | run DIR URL\n");
    return 2;
}
