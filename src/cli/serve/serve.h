/* serve.h - what `tidemark serve` has beside its engine: the local page, its API, keys and metrics.
 *
 * Threads: the main thread starts and stops it; HTTP handlers run on the server's threads, ops of
 * commands on those of the control socket (serve/http/http.h, world/socket.h).
 *
 * Commands reach it by these ops (engine/control/control.h):
 *
 *   page      -                           address
 *   metrics   -                           text, with those of the page
 *   token     do: "list"                  tokens: {id, name, scope, created, expires, revoked}
 *             do: "add", name, scope,     id, key (this once)
 *                 lifetime_ms
 *             do: "revoke", id            -
 *   pairing   do: "wait"                  pairings: {code, agent, age_ms}; after some seconds
 *                                         without one the list is empty
 *             do: "approve", code,        id
 *                 lifetime_ms
 *             do: "refuse", code          -
 *
 * Invariants:
 *   SVE1  nothing of it is used after cli_serve_stopped(), which waits for handlers and ops.
 *   SVE2  the text of a key is in an answer to its owner alone, in no log line.
 */
#ifndef TIDE_CLI_SERVE_SERVE_H
#define TIDE_CLI_SERVE_SERVE_H

#include "cli/resident/resident.h"
#include "metrics/lines.h"
#include "serve/access/pairing.h"
#include "serve/http/http.h"
#include "serve/webhook/webhook.h"

enum { CLI_SERVE_ROUTES_MAX = 120, CLI_SERVE_STATUSES = 6 };

/* What the requests to a route came to. */
struct cli_serve_count {
    uint64_t by_status[CLI_SERVE_STATUSES]; /* 2xx is at 2 */
    tide_histogram duration;
};

struct cli_serve {
    struct cli *cli;
    struct cli_resident *resident;
    uint16_t port; /* wanted; 0: any */
    struct {
        bool on;
        uint16_t port;
        char url[256], audience[256], sender[256], keys[256];
    } hook; /* wanted: where pushes come in, and whose */

    char home[257]; /* names this home among those of a shared ledger; "": there are no others */
    tide_engine *engine; /* borrowed */
    tide_keys *keys;
    tide_pairings *pairings;
    tide_httpd *server; /* cli_serve_http() */
    struct cli_runner *runner;
    struct cli_live_state *live;
    struct cli_api_all *api;
    struct cli_once *once;
    struct cli_page *page;
    tide_webhook *webhook; /* NULL: off */
    struct cli_serve_metrics *metrics;
    char address[48]; /* "http://127.0.0.1:7433/" */
    struct tide_httpd_route routes[CLI_SERVE_ROUTES_MAX];
    size_t routes_count;
    struct cli_serve_count counts[CLI_SERVE_ROUTES_MAX + 1]; /* the last one: of no route; atomic */
    bool stopping;                                           /* atomic */
};

/* The engine runs; afterwards the page can be reached.  Call the other two also after a failure. */
tide_status cli_serve_started(void *serve);
void cli_serve_stopping(void *serve);
void cli_serve_stopped(void *serve);
/* For cli->schedules_changed. */
void cli_serve_schedules_changed(void *serve);

/* The server, for its own handlers too, which run before the start has returned it; NULL: not yet. */
static inline tide_httpd *cli_serve_http(struct cli_serve *serve)
{
    return __atomic_load_n(&serve->server, __ATOMIC_ACQUIRE);
}

/* The tables of the program itself, beside those of the systems; all begin with "serve_". */
tide_status cli_serve_tables(tide_rows rows, tide_error *err);
#define CLI_SERVE_TABLES "serve"

/* ---- access.c ---- */
tide_status cli_serve_access_open(struct cli_serve *serve, tide_error *err);
void cli_serve_access_close(struct cli_serve *serve);
tide_control_fn cli_serve_op_token, cli_serve_op_pairing;

/* ---- metrics.c ---- */
tide_status cli_serve_metrics_new(struct cli_serve *serve, tide_error *err);
void cli_serve_metrics_free(struct cli_serve *serve); /* free it after the server has stopped */
tide_httpd_handler cli_serve_metrics;
tide_control_fn cli_serve_op_metrics;
tide_httpd_observe cli_serve_observe;

/* ---- runner.c: runs schedules ---- */
tide_status cli_runner_start(struct cli_serve *serve, tide_error *err);
void cli_runner_wake(void *runner); /* the rows changed; NULL is fine */
/* No run starts any more, and those that run are interrupted; then waits for them. */
void cli_runner_stopping(struct cli_runner *runner);
void cli_runner_free(struct cli_runner *runner); /* NULL is fine for both */

/* ---- live.c: live updates; free it after the server has stopped ---- */
/* The topics: "state", and those of the systems.  After cli_live_new(). */
const struct tide_httpd_topic *cli_live_topics(const struct cli_serve *serve, size_t *count_out);
tide_status cli_live_new(struct cli_serve *serve, tide_error *err);
tide_status cli_live_start(struct cli_serve *serve, tide_error *err); /* the server runs */
void cli_live_watched(void *serve, const char *topic, bool watched);
void cli_live_stopping(struct cli_serve *serve);
void cli_live_join(struct cli_serve *serve);
void cli_live_free(struct cli_serve *serve);

/* ---- once.c: a POST has its effect once ---- */
tide_status cli_once_new(struct cli_serve *serve, tide_error *err);
void cli_once_free(struct cli_serve *serve);
/* For tide_httpd_options.once; the argument is the struct cli_serve. */
tide_httpd_again cli_once_begin(void *serve, const struct tide_httpd_who *who, tide_text key,
                                const unsigned char digest[32], struct tide_httpd_answer *answer,
                                uint64_t *asked_unix_ms_out);
void cli_once_end(void *serve, const struct tide_httpd_who *who, tide_text key,
                  const struct tide_httpd_answer *answer);

/* ---- pushes.c: what tells that an account changed: Pub/Sub, and POST /api/sync (J6) ---- */
tide_status cli_pushes_start(struct cli_serve *serve);
void cli_pushes_stopping(struct cli_serve *serve);
void cli_pushes_free(struct cli_serve *serve);
tide_httpd_handler cli_pushes_sync;
enum { CLI_PUSHES_SYNC_BYTES_MAX = 4096 }; /* of its body */
void cli_pushes_metrics(struct cli_serve *serve, tide_metrics *metrics);

/* ---- ask.c: for the commands ---- */

/* Asks the `tidemark serve` of this home; takes the request.  Says so if there is none. */
tide_status cli_serve_ask(struct cli *cli, tide_json *request, json_t **answer_out);

#endif
