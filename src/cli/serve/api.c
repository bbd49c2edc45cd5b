#include "cli/serve/api.h"

#include "base/check.h"
#include "cli/run/call.h"
#include "cli/serve/page.h"

#include <stdio.h>
#include <string.h>

#define V1 "/api/v1/"

const struct cli_api cli_api_table[] = {
    {.method = "GET",
     .path = V1 "state",
     .group = "status",
     .fields = "engine:boolean accounts:[Standing] alerts:[Alert]"},
    {.method = "GET",
     .path = V1 "accounts",
     .group = "account",
     .verb = "list",
     .fields = "accounts:[Account]"},
    {.method = "GET",
     .path = V1 "jobs",
     .group = "jobs",
     .verb = "list",
     .params = "state kind account cycle limit after",
     .fields = "items:[Job] next:string? total:integer"},
    {.method = "GET",
     .path = V1 "jobs/{job}",
     .group = "jobs",
     .verb = "show",
     .part = "job",
     .fields = "job:Job"},
    {.method = "GET",
     .path = V1 "jobs/{job}/why",
     .group = "jobs",
     .verb = "explain",
     .part = "job",
     .fields = "id:integer state:string reasons:[Reason]"},
    {.method = "GET",
     .path = V1 "bad",
     .group = "bad",
     .verb = "list",
     .params = "state kind account limit after",
     .fields = "items:[BadItem] next:string? total:integer"},
    {.method = "GET",
     .path = V1 "bad/{item}",
     .group = "bad",
     .verb = "explain",
     .part = "item",
     .params = "state kind account",
     .fields = "items:[BadItem]"},
    {.method = "GET",
     .path = V1 "series/{name}",
     .group = "series",
     .part = "name",
     .params = "account span",
     .fields = "name:string span:string step_ms:integer end_unix_ms:integer series:[Series]"},
    {.method = "GET",
     .path = V1 "streams",
     .group = "stream",
     .verb = "list",
     .params = "account",
     .fields = "streams:[Stream]"},
    {.method = "GET",
     .path = V1 "streams/{stream}/cycles",
     .group = "stream",
     .verb = "cycles",
     .part = "stream",
     .fields = "stream:integer cycles:[Cycle]"},
    {.method = "GET", .path = V1 "alerts", .group = "alerts", .fields = "alerts:[Alert]"},
    {.method = "GET",
     .path = V1 "schedules",
     .group = "schedule",
     .verb = "list",
     .fields = "schedules:[Schedule] served:boolean"},
    {.method = "GET",
     .path = V1 "settings",
     .group = "config",
     .verb = "list",
     .fields = "settings:array"},
    {.method = "GET",
     .path = V1 "log",
     .group = "log",
     .params = "run account level limit after",
     .fields = "lines:array next:string"},
    {.method = "POST",
     .path = V1 "accounts/{account}/sync",
     .group = "account",
     .verb = "sync",
     .part = "account",
     .status = 202,
     .fields = "accounts:array jobs:array"},
    {.method = "POST",
     .path = V1 "accounts/{account}/halt",
     .group = "account",
     .verb = "halt",
     .part = "account",
     .body = CLI_API_REASON,
     .fields = "account:string halted:boolean"},
    {.method = "POST",
     .path = V1 "accounts/{account}/resume",
     .group = "account",
     .verb = "resume",
     .part = "account",
     .fields = "account:string halted:boolean"},
    {.method = "POST",
     .path = V1 "jobs/retry",
     .group = "jobs",
     .verb = "retry",
     .body = CLI_API_CHOICE,
     .fields = "count:integer"},
    {.method = "POST",
     .path = V1 "jobs/cancel",
     .group = "jobs",
     .verb = "cancel",
     .body = CLI_API_CHOICE,
     .fields = "count:integer running:array"},
    {.method = "POST",
     .path = V1 "jobs/accept",
     .group = "jobs",
     .verb = "accept",
     .body = CLI_API_CHOICE,
     .fields = "count:integer"},
    {.method = "POST",
     .path = V1 "bad/retry",
     .group = "bad",
     .verb = "retry",
     .body = CLI_API_CHOICE,
     .fields = "count:integer"},
    {.method = "POST",
     .path = V1 "bad/accept",
     .group = "bad",
     .verb = "accept",
     .body = CLI_API_CHOICE,
     .fields = "count:integer"},
    {.method = "POST",
     .path = V1 "kinds/{kind}/pause",
     .group = "jobs",
     .verb = "pause",
     .flag_part = "kind",
     .fields = "kind:string paused:boolean"},
    {.method = "POST",
     .path = V1 "kinds/{kind}/resume",
     .group = "jobs",
     .verb = "resume",
     .flag_part = "kind",
     .fields = "kind:string paused:boolean"},
    {.method = "POST",
     .path = V1 "schedules/{schedule}/run",
     .group = "schedule",
     .verb = "run",
     .part = "schedule",
     .always = "no-wait",
     .status = 202,
     .fields = "name:string"},
    {.path = NULL},
};

enum { TABLE_MAX = 112 };

struct cli_api_all {
    struct cli_api routes[TABLE_MAX];
    size_t count;
    char paths[TIDE_SYSTEMS_MAX][64]; /* "/api/v1/NAME/status" of each system */
    tide_buf openapi;                 /* the document's text */
};

/* ---- requests ---- */

int cli_api_status(tide_status status)
{
    switch (status) {
    case TIDE_INVALID:
        return 400;
    case TIDE_NOT_FOUND:
        return 404;
    case TIDE_STALE: /* another count matches */
    case TIDE_EXISTS:
    case TIDE_AUTH: /* of the account: whoever asks is known */
        return 409;
    case TIDE_FULL:
        return 413;
    case TIDE_NETWORK:
    case TIDE_TIMEOUT:
    case TIDE_BUSY:
    case TIDE_STOPPED:
    case TIDE_CANCELED:
        return 503;
    default:
        return 500;
    }
}

static int status_of(const struct cli_api *api, const struct cli_called *called)
{
    if (called->status == TIDE_OK)
        return api->status == 0 ? 200 : api->status;
    return called->exit_code == CLI_EXIT_USAGE ? 400 : cli_api_status(called->status);
}

static void answer_with(const struct cli_api *api, struct cli_called *called,
                        struct tide_httpd_answer *answer)
{
    const int status = status_of(api, called);
    if (called->status == TIDE_OK)
        tide_httpd_json(answer, status, &called->json);
    else
        tide_httpd_fail(
            answer, status,
            called->status == TIDE_STALE ? "changed" : tide_status_name(called->status),
            called->line,
            &(struct tide_httpd_problem){.help = called->hint[0] == '\0' ? NULL : called->hint,
                                         .retry_after_s = status == 503 ? 1 : 0});
}

void cli_api_run(void *arg, const struct tide_httpd_request *request,
                 struct tide_httpd_answer *answer)
{
    const struct cli_api *api = arg;
    struct cli *cli = api->serve->cli;
    struct cli_called called;
    const struct cli_call_from from = {.asked_unix_ms = request->asked_unix_ms,
                                       .input = api->input == 0 ? TIDE_TEXT("") : request->body};
    struct cli_api_words *words = tide_mem_new(cli->mem, sizeof *words);
    if (words == NULL)
        return; /* answered as a 500 */
    const char *wrong = cli_api_words(api, request, words);
    if (wrong != NULL) {
        tide_httpd_fail(answer, 400, "parameter", wrong,
                        &(struct tide_httpd_problem){
                            .help = "openapi.json has the parameters of every route."});
    } else if (cli_call_asked(cli, words->list, words->count, &from, request->cancel, &called) ==
               TIDE_OK) {
        if (api->view && called.status == TIDE_OK)
            cli_page_view(api, request, &called.json);
        answer_with(api, &called, answer);
        cli_called_done(&called);
    }
    tide_mem_free(cli->mem, words, sizeof *words);
}

static void openapi_get(void *arg, const struct tide_httpd_request *request,
                        struct tide_httpd_answer *answer)
{
    const struct cli_api_all *all = arg;
    (void)request;
    tide_httpd_text(answer, 200, "application/json", tide_buf_text(&all->openapi));
}

/* ---- all ---- */

const struct cli_command *cli_api_command(const struct cli *cli, const struct cli_api *api)
{
    for (const struct cli_command *const *c = cli->commands; *c != NULL; c++)
        if (strcmp((*c)->group, api->group) == 0 &&
            (api->verb == NULL ? (*c)->verb == NULL
                               : (*c)->verb != NULL && strcmp((*c)->verb, api->verb) == 0))
            return *c;
    return NULL;
}

static void route_add(struct cli_serve *serve, struct cli_api *api)
{
    const bool reads = strcmp(api->method, "GET") == 0;
    api->serve = serve;
    api->command = cli_api_command(serve->cli, api);
    TIDE_ASSERT(api->command != NULL);
    TIDE_ASSERT(serve->routes_count < CLI_SERVE_ROUTES_MAX);
    serve->routes[serve->routes_count++] = (struct tide_httpd_route){
        .method = api->method,
        .path = api->path,
        .scope = api->scope != TIDE_HTTPD_NONE ? api->scope
                 : reads                       ? TIDE_HTTPD_LOOK
                                               : TIDE_HTTPD_WORK,
        .way = TIDE_HTTPD_READER,
        .flags = (api->input == CLI_API_FILE ? TIDE_HTTPD_ANY_TYPE : 0) |
                 (api->repeats ? TIDE_HTTPD_REPEATS : 0),
        .body_bytes_max = api->input == CLI_API_FILE ? CLI_API_FILE_BYTES_MAX : 0,
        .handler = cli_api_run,
        .arg = api};
}

static void table_add(struct cli_serve *serve, const struct cli_api *table,
                      const struct tide_system *system)
{
    struct cli_api_all *all = serve->api;
    for (; table != NULL && table->path != NULL; table++) {
        TIDE_ASSERT(all->count < TABLE_MAX);
        struct cli_api *api = &all->routes[all->count++];
        *api = *table;
        api->system = system;
        route_add(serve, api);
    }
}

static bool has_path(const struct cli_api *table, const char *path)
{
    for (; table != NULL && table->path != NULL; table++)
        if (strcmp(table->path, path) == 0)
            return true;
    return false;
}

/* The routes that a system brings; and every one that has a command "status" has a route for it. */
static void system_add(struct cli_serve *serve, const struct tide_system *system, char path[64])
{
    const struct cli_api status[] = {{.method = "GET",
                                      .path = path,
                                      .group = system->name,
                                      .verb = "status",
                                      .fields = "alerts:[Alert]"},
                                     {.path = NULL}};
    (void)snprintf(path, 64, V1 "%s/status", system->name);
    table_add(serve, system->api, system);
    if (!has_path(system->api, path) && cli_api_command(serve->cli, &status[0]) != NULL)
        table_add(serve, status, system);
}

tide_status cli_api_routes(struct cli_serve *serve, tide_error *err)
{
    struct cli_api_all *all = tide_mem_new(serve->cli->mem, sizeof *all);
    if (all == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the API");
    tide_buf_init(&all->openapi, serve->cli->mem, 1 << 20);
    serve->api = all;
    table_add(serve, cli_api_table, NULL);
    for (size_t i = 0; serve->cli->systems[i] != NULL; i++)
        system_add(serve, serve->cli->systems[i], all->paths[i]);
    TIDE_ASSERT(serve->routes_count < CLI_SERVE_ROUTES_MAX);
    serve->routes[serve->routes_count++] = (struct tide_httpd_route){
        .method = "GET", .path = V1 "openapi.json", .handler = openapi_get, .arg = all};
    const tide_status rc = cli_api_document(serve, &all->openapi);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no memory for openapi.json");
}

void cli_api_free(struct cli_serve *serve)
{
    if (serve->api == NULL)
        return;
    tide_buf_done(&serve->api->openapi);
    tide_mem_free(serve->cli->mem, serve->api, sizeof *serve->api);
    serve->api = NULL;
}
