/* serve.c - `tidemark serve`: the resident process of one home, and `tidemark metrics`.
 *
 * It has the engine with all systems, so that every other command hands its work over to it, and
 * the local page (cli/serve/serve.h).  With a shared ledger it is one member of the fleet. */
#include "cli/serve/serve.h"
#include "engine/tuning.h"

#include <string.h>

static const char here[] = "127.0.0.1:";

static const char page_hint[] =
    "Write 127.0.0.1:PORT. To use the page from another machine, forward the port: "
    "`ssh -L 7433:127.0.0.1:7433 HOST`.";
static const char hook_hint[] = "Write 127.0.0.1:PORT. A reverse proxy or a tunnel on this machine "
                                "receives pushes from outside.";

/* Both listeners are for this machine alone: no other address is offered. */
static tide_status port_of(struct cli *cli, const char *listen, const char *hint,
                           uint16_t *port_out)
{
    uint64_t port = 0;
    if (strncmp(listen, here, strlen(here)) != 0)
        return cli_wrong(cli, hint, "\"%.60s\" is not an address of this machine alone", listen);
    const tide_status rc = cli_number(cli, listen + strlen(here), "the port", &port);
    if (rc == TIDE_OK && port > UINT16_MAX)
        return cli_wrong(cli, "Ports are 0 (any free one) to 65535.", "there is no port %.20s",
                         listen + strlen(here));
    *port_out = (uint16_t)port;
    return rc;
}

/* J6.  A token says only who sent a push: without both names any project of Google's could. */
static tide_status hook_of(struct cli *cli, const struct tide_tuning *tuning,
                           struct cli_serve *serve)
{
    if (tuning->webhook.listen[0] == '\0')
        return TIDE_OK;
    const bool drives_only = tuning->webhook.url[0] != '\0' &&
                             tuning->webhook.audience[0] == '\0' &&
                             tuning->webhook.sender[0] == '\0';
    if (!drives_only && (tuning->webhook.audience[0] == '\0' || tuning->webhook.sender[0] == '\0'))
        return cli_wrong(cli,
                         "Set serve.webhook.audience and serve.webhook.sender to those of the "
                         "subscription.",
                         "serve.webhook.listen needs to know whose pushes to take");
    if (!tide_issuer_url_is_safe(tuning->webhook.keys))
        return cli_wrong(cli, "Give an https address, or omit serve.webhook.keys.",
                         "keys must not come from \"%.200s\"", tuning->webhook.keys);
    if (tuning->webhook.url[0] != '\0' && !tide_issuer_url_is_safe(tuning->webhook.url))
        return cli_wrong(cli, "Give an https address, without a path.",
                         "notifications must not go to \"%.200s\"", tuning->webhook.url);
    serve->hook.on = true;
    memcpy(serve->hook.url, tuning->webhook.url, sizeof serve->hook.url);
    memcpy(serve->hook.audience, tuning->webhook.audience, sizeof serve->hook.audience);
    memcpy(serve->hook.sender, tuning->webhook.sender, sizeof serve->hook.sender);
    memcpy(serve->hook.keys, tuning->webhook.keys, sizeof serve->hook.keys);
    return port_of(cli, tuning->webhook.listen, hook_hint, &serve->hook.port);
}

tide_status cli_serve(struct cli *cli)
{
    struct both {
        struct cli_resident resident;
        struct cli_serve serve;
    } *both = tide_mem_new(cli->mem, sizeof *both);
    if (both == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    const char *listen = cli_flag(cli, "listen");
    both->serve.cli = both->resident.cli = cli;
    both->serve.resident = &both->resident;
    both->resident.name = "serve";
    both->resident.open.busy_hint =
        "A directory can have one `tidemark serve`. Stop that process, or name another directory "
        "with --home DIR.";
    both->resident.started = cli_serve_started;
    both->resident.stopping = cli_serve_stopping;
    both->resident.stopped = cli_serve_stopped;
    both->resident.arg = &both->serve;
    cli->schedules_changed = cli_serve_schedules_changed;
    cli->schedules_changed_arg = &both->serve;
    archive_here_take_all(&both->resident.open.here, cli);
    tide_status rc = cli_ledger_choose(cli);
    if (rc == TIDE_OK) {
        const struct tide_tuning tuning = tide_tuning_engine(cli->settings);
        rc = port_of(cli, listen != NULL ? listen : tuning.serve_listen, page_hint,
                     &both->serve.port);
        if (rc == TIDE_OK)
            rc = hook_of(cli, &tuning, &both->serve);
    }
    if (rc == TIDE_OK)
        rc = cli_resident_run(&both->resident);
    if (!both->resident.stuck)
        tide_mem_free(cli->mem, both, sizeof *both);
    return rc;
}

/* ---- metrics ---- */

tide_status cli_metrics(struct cli *cli)
{
    tide_json request;
    json_t *answer = NULL;
    bool runs = false;
    tide_control_request(TIDE_OP_METRICS, &request);
    const tide_status rc = cli_engine_ask(cli, &request, &runs, &answer);
    if (!runs)
        return cli_fail(cli, TIDE_NOT_FOUND, "Start `tidemark serve`, or `tidemark worker`.",
                        "no engine runs in %.300s", cli->state_dir);
    if (rc != TIDE_OK)
        return rc;
    const char *text = json_string_value(json_object_get(answer, "text"));
    cli->exact_output = true;
    (void)tide_buf_add_text(&cli->out, text == NULL ? "" : text);
    tide_json_set_cstr(&cli->json, "text", text == NULL ? "" : text);
    json_decref(answer);
    return TIDE_OK;
}
