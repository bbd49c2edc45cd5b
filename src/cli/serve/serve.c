#include "cli/serve/api.h"
#include "cli/serve/page.h"

#include "serve/access/keys_rows.h"
#include "serve/access/pairing_routes.h"
#include "serve/once/once.h"
#include "serve/schedule/planned.h"
#include "serve/http/site.h"

#include <stdio.h>

/* ---- routes ---- */

static void healthz(void *arg, const struct tide_httpd_request *request,
                    struct tide_httpd_answer *answer)
{
    struct cli_serve *serve = arg;
    const bool stopping = __atomic_load_n(&serve->stopping, __ATOMIC_ACQUIRE);
    tide_json json;
    (void)request;
    tide_json_object(&json);
    tide_json_set_bool(&json, "ok", !stopping);
    if (stopping)
        tide_json_set_cstr(&json, "why", "it is stopping");
    tide_httpd_json(answer, stopping ? 503 : 200, &json);
}

static void routes_make(struct cli_serve *serve)
{
    const struct tide_httpd_route routes[] = {
        {.method = "GET",
         .path = "/",
         .handler = tide_httpd_site_index,
         .flags = TIDE_HTTPD_ANYWHERE},
        {.method = "GET", .path = "/app/{digest}/{file}", .handler = tide_httpd_site_file},
        {.method = "GET",
         .path = "/healthz",
         .handler = healthz,
         .arg = serve,
         .flags = TIDE_HTTPD_ANYWHERE},
        {.method = "GET",
         .path = "/metrics",
         .scope = TIDE_HTTPD_METRICS,
         .way = TIDE_HTTPD_READER,
         .handler = cli_serve_metrics,
         .arg = serve},
        {.method = "POST",
         .path = "/api/v1/pairings",
         .handler = tide_pairing_post,
         .arg = serve->pairings,
         .flags = TIDE_HTTPD_REPEATS,
         .body_bytes_max = TIDE_PAIRING_BODY_BYTES_MAX},
        {.method = "GET",
         .path = "/api/v1/pairings",
         .handler = tide_pairing_get,
         .arg = serve->pairings},
        {.method = "POST",
         .path = "/api/sync",
         .scope = TIDE_HTTPD_WORK,
         .way = TIDE_HTTPD_READER,
         .handler = cli_pushes_sync,
         .arg = serve,
         .flags = TIDE_HTTPD_REPEATS, /* it joins a sync that waits */
         .body_bytes_max = CLI_PUSHES_SYNC_BYTES_MAX},
        {.method = "GET",
         .path = "/api/v1/stream",
         .scope = TIDE_HTTPD_LOOK,
         .way = TIDE_HTTPD_STREAM},
    };
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
        serve->routes[serve->routes_count++] = routes[i];
}

static tide_status listen_here(struct cli_serve *serve)
{
    struct cli *cli = serve->cli;
    size_t topics_count = 0;
    const struct tide_httpd_topic *topics = cli_live_topics(serve, &topics_count);
    const struct tide_httpd_options options = {
        .port = serve->port,
        .routes = serve->routes,
        .routes_count = serve->routes_count,
        .topics = topics,
        .topics_count = topics_count,
        .watched = cli_live_watched,
        .watched_arg = serve,
        .authorize = tide_keys_authorize,
        .still = tide_keys_still,
        .authorize_arg = serve->keys,
        .once = {cli_once_begin, cli_once_end, serve},
        .observe = cli_serve_observe,
        .observe_arg = serve,
    };
    tide_httpd *server = NULL;
    const tide_status rc = tide_httpd_start(cli->world, cli->mem, &options, &server, &cli->err);
    __atomic_store_n(&serve->server, server, __ATOMIC_RELEASE);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc,
                        "Name another port with --listen 127.0.0.1:PORT, or the setting "
                        "serve.listen; port 0 is any free one.");
    (void)snprintf(serve->address, sizeof serve->address, "http://127.0.0.1:%u/",
                   (unsigned)tide_httpd_port(server));
    return TIDE_OK;
}

/* ---- ops ---- */

static tide_status op_page(void *arg, const json_t *request, tide_json *answer, tide_error *err)
{
    const struct cli_serve *serve = arg;
    (void)request;
    (void)err;
    tide_json_set_cstr(answer, "address", serve->address);
    return TIDE_OK;
}

static tide_status ops_add(struct cli_serve *serve, tide_error *err)
{
    const struct {
        const char *name;
        tide_control_fn *answer;
    } ops[] = {
        {"page", op_page},
        {"metrics", cli_serve_op_metrics},
        {"token", cli_serve_op_token},
        {"pairing", cli_serve_op_pairing},
    };
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < sizeof ops / sizeof ops[0]; i++)
        rc = tide_control_add(serve->engine, ops[i].name, ops[i].answer, serve, err);
    return rc;
}

/* ---- start and end ---- */

void cli_serve_schedules_changed(void *arg)
{
    const struct cli_serve *serve = arg;
    cli_runner_wake(__atomic_load_n(&serve->runner, __ATOMIC_ACQUIRE));
}

tide_status cli_serve_tables(tide_rows rows, tide_error *err)
{
    tide_status rc = tide_keys_rows_tables(rows, err);
    if (rc == TIDE_OK)
        rc = tide_planned_tables(rows, err);
    return rc == TIDE_OK ? tide_once_tables(rows, err) : rc;
}

tide_status cli_serve_started(void *arg)
{
    struct cli_serve *serve = arg;
    struct cli *cli = serve->cli;
    serve->engine = serve->resident->open.engine;
    tide_status rc = cli_serve_access_open(serve, &cli->err);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "Run `tidemark ledger check`.");
    rc = cli_kept_begin(cli);
    if (rc != TIDE_OK)
        return rc;
    routes_make(serve);
    rc = cli_page_routes(serve, &cli->err);
    if (rc == TIDE_OK)
        rc = cli_api_routes(serve, &cli->err); /* the last: it describes all of them */
    if (rc == TIDE_OK)
        rc = cli_once_new(serve, &cli->err);
    if (rc == TIDE_OK)
        rc = cli_serve_metrics_new(serve, &cli->err);
    if (rc == TIDE_OK)
        rc = cli_live_new(serve, &cli->err);
    if (rc == TIDE_OK)
        rc = listen_here(serve);
    if (rc == TIDE_OK)
        rc = cli_live_start(serve, &cli->err);
    if (rc == TIDE_OK)
        rc = ops_add(serve, &cli->err);
    if (rc == TIDE_OK)
        rc = cli_runner_start(serve, &cli->err);
    if (rc == TIDE_OK)
        rc = cli_pushes_start(serve);
    if (rc == TIDE_OK)
        cli_resident_tell(serve->resident, TIDE_LOG_INFO, "serving", "address", serve->address);
    return rc;
}

void cli_serve_stopping(void *arg)
{
    struct cli_serve *serve = arg;
    __atomic_store_n(&serve->stopping, true, __ATOMIC_RELEASE);
    if (serve->pairings != NULL)
        tide_pairings_stop(serve->pairings);
    cli_pushes_stopping(serve);
    cli_runner_stopping(serve->runner);
    cli_live_stopping(serve);
}

void cli_serve_stopped(void *arg)
{
    struct cli_serve *serve = arg;
    if (serve->engine != NULL)
        tide_control_remove_added(serve->engine);
    cli_live_join(serve); /* it publishes to the server */
    tide_httpd_stop(cli_serve_http(serve));
    serve->server = NULL;
    cli_pushes_free(serve); /* metrics asked it */
    cli_live_free(serve);
    cli_serve_metrics_free(serve);
    cli_api_free(serve);
    cli_page_free(serve);
    cli_once_free(serve);
    cli_runner_free(serve->runner);
    serve->runner = NULL;
    cli_serve_access_close(serve);
    cli_kept_end(serve->cli); /* no command runs any more */
}
