/* metrics.c - one text for /metrics and `tidemark metrics`: of the engine, the accounts, the systems
 * and the page. */
#include "cli/serve/serve.h"

#include "cli/run/call.h"
#include "cli/serve/metrics_accounts.h"
#include "engine/control/metrics.h"

#include <stdio.h>

struct cli_serve_metrics {
    tide_lock *lock;
    struct cli_stored stored; /* under the lock */
};

/* ---- requests ---- */

void cli_serve_observe(void *arg, const struct tide_httpd_route *route, int status,
                       uint64_t duration_us)
{
    struct cli_serve *serve = arg;
    const size_t at = route == NULL ? CLI_SERVE_ROUTES_MAX : (size_t)(route - serve->routes);
    const int class = status / 100 < CLI_SERVE_STATUSES ? status / 100 : CLI_SERVE_STATUSES - 1;
    struct cli_serve_count *count = &serve->counts[at];
    const unsigned step = tide_histogram_step(tide_histogram_local_us, duration_us);
    __atomic_fetch_add(&count->by_status[class], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&count->duration.counts[step], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&count->duration.sum_us, duration_us, __ATOMIC_RELAXED);
}

enum { ROUTE_NAME_BYTES = 128 };

/* A route as a label: "GET /api/v1/jobs"; all requests without a route are one. */
static void route_name(const struct cli_serve *serve, size_t at, char out[ROUTE_NAME_BYTES])
{
    const struct tide_httpd_route *route = &serve->routes[at];
    if (at == CLI_SERVE_ROUTES_MAX)
        (void)snprintf(out, ROUTE_NAME_BYTES, "none");
    else
        (void)snprintf(out, ROUTE_NAME_BYTES, "%s %s", route->method, route->path);
}

static void requests(const struct cli_serve *serve, tide_metrics *metrics)
{
    char name[ROUTE_NAME_BYTES];
    tide_metric(metrics, "http_requests_total", "counter", "Requests to the page and its API.");
    for (size_t i = 0; i <= CLI_SERVE_ROUTES_MAX; i++)
        for (int k = 0; k < CLI_SERVE_STATUSES; k++) {
            const uint64_t count =
                __atomic_load_n(&serve->counts[i].by_status[k], __ATOMIC_RELAXED);
            const char class[] = {(char)('0' + k), 'x', 'x', '\0'};
            if (count == 0)
                continue;
            route_name(serve, i, name);
            tide_metric_line(metrics, (double)count,
                             TIDE_LABELS({"route", name}, {"status", class}));
        }
    tide_metric(metrics, "http_request_duration_seconds", "histogram",
                "Time from the head of a request to the end of its answer.");
    for (size_t i = 0; i <= CLI_SERVE_ROUTES_MAX; i++) {
        tide_histogram duration;
        for (int k = 0; k < TIDE_HISTOGRAM_STEPS; k++)
            duration.counts[k] =
                __atomic_load_n(&serve->counts[i].duration.counts[k], __ATOMIC_RELAXED);
        duration.sum_us = __atomic_load_n(&serve->counts[i].duration.sum_us, __ATOMIC_RELAXED);
        if (tide_histogram_count(&duration) == 0)
            continue;
        route_name(serve, i, name);
        tide_metric_histogram(metrics, &duration, tide_histogram_local_us,
                              TIDE_LABELS({"route", name}));
    }
}

static void connections(struct cli_serve *serve, tide_metrics *metrics)
{
    struct tide_httpd_counts counts = {.connections = 0};
    tide_httpd *server = cli_serve_http(serve);
    if (server != NULL)
        tide_httpd_count(server, &counts);
    tide_metric_single(metrics, "http_connections", "gauge", "Open connections to the page.",
                       counts.connections);
    tide_metric_single(metrics, "http_streams", "gauge", "Pages that follow live updates.",
                       counts.streams);
}

/* ---- accounts and systems ---- */

/* What the engine has in memory is shown also while the ledger cannot be read. */
static void accounts(struct cli_serve *serve, const tide_cancel *cancel, tide_metrics *metrics)
{
    static const char *const words[] = {"status"};
    struct cli_called called;
    const tide_status rc = cli_call(serve->cli, words, 1, cancel, &called);
    const bool known = rc == TIDE_OK && called.status == TIDE_OK;
    tide_lock_take(serve->cli->world, serve->metrics->lock);
    cli_metrics_accounts(known ? called.json.value : NULL, &serve->metrics->stored, metrics);
    tide_lock_drop(serve->cli->world, serve->metrics->lock);
    if (rc == TIDE_OK)
        cli_called_done(&called);
}

static void systems(const struct cli_serve *serve, const json_t *snapshot, tide_metrics *metrics)
{
    const json_t *shown = json_object_get(snapshot, "systems");
    for (size_t i = 0; serve->cli->systems[i] != NULL; i++) {
        const struct tide_system *system = serve->cli->systems[i];
        if (system->metrics != NULL)
            system->metrics(json_object_get(shown, system->name), metrics);
    }
}

/* ---- all ---- */

tide_status cli_serve_metrics_new(struct cli_serve *serve, tide_error *err)
{
    serve->metrics = tide_mem_new(serve->cli->mem, sizeof *serve->metrics);
    if (serve->metrics == NULL ||
        tide_lock_new(serve->cli->world, &serve->metrics->lock) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for metrics");
    return TIDE_OK;
}

void cli_serve_metrics_free(struct cli_serve *serve)
{
    if (serve->metrics != NULL && serve->metrics->lock != NULL)
        tide_lock_free(serve->cli->world, serve->metrics->lock);
    tide_mem_free(serve->cli->mem, serve->metrics, sizeof *serve->metrics);
    serve->metrics = NULL;
}

static tide_status all(struct cli_serve *serve, const tide_cancel *cancel, tide_buf *text,
                       tide_error *err)
{
    tide_metrics metrics;
    tide_metrics_begin(&metrics, text);
    json_auto_t *snapshot = tide_metrics_engine(serve->engine, &metrics);
    accounts(serve, cancel, &metrics);
    systems(serve, snapshot, &metrics);
    requests(serve, &metrics);
    connections(serve, &metrics);
    cli_pushes_metrics(serve, &metrics);
    const tide_status rc = tide_metrics_end(&metrics);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no room for the metrics");
}

void cli_serve_metrics(void *arg, const struct tide_httpd_request *request,
                       struct tide_httpd_answer *answer)
{
    struct cli_serve *serve = arg;
    tide_error err = {TIDE_OK, 0, ""};
    tide_auto_buf text = tide_buf_in(serve->cli->mem, TIDE_METRICS_BYTES_MAX);
    if (all(serve, request->cancel, &text, &err) == TIDE_OK)
        tide_httpd_text(answer, 200, "text/plain; version=0.0.4; charset=utf-8",
                        tide_buf_text(&text));
    else
        tide_httpd_fail(answer, 503, "metrics", "The metrics could not be made.", NULL);
}

tide_status cli_serve_op_metrics(void *arg, const json_t *request, tide_json *answer,
                                 tide_error *err)
{
    struct cli_serve *serve = arg;
    const tide_cancel cancel = {0};
    tide_auto_buf text = tide_buf_in(serve->cli->mem, TIDE_METRICS_BYTES_MAX);
    (void)request;
    const tide_status rc = all(serve, &cancel, &text, err);
    if (rc == TIDE_OK)
        tide_json_set_text(answer, "text", tide_buf_text(&text));
    return rc;
}
