#include "cli/run/ask.h"

#include "engine/control/answers.h"
#include "engine/control/control.h"
#include "tidemark_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PING_MS = 1000,
    PAYLOAD_BYTES_MAX = 60 << 10,
    THERE_MS = 30000,
    TICK_US = 50000,
    TRIES_MIN = 5,
};

/* ---- the engine ---- */

static tide_status ping(struct cli_ask *ask, char run_out[33])
{
    tide_json request;
    json_t *answer = NULL;
    bool runs = false;
    tide_control_request(TIDE_OP_PING, &request);
    const tide_status rc = cli_engine_ask(ask->cli, &request, &runs, &answer);
    const char *run = json_string_value(json_object_get(answer, "run"));
    (void)snprintf(run_out, 33, "%s", run == NULL ? "" : run);
    ask->pid = (uint64_t)json_integer_value(json_object_get(answer, "pid"));
    json_decref(answer);
    return rc != TIDE_OK && !runs ? TIDE_NOT_FOUND : rc;
}

tide_status cli_ask_open(struct cli *cli, tide_engine *engine, struct cli_ask *ask)
{
    *ask = (struct cli_ask){.cli = cli, .engine = engine};
    tide_buf_init(&ask->payload, cli->mem, PAYLOAD_BYTES_MAX);
    if (engine == NULL)
        return ping(ask, ask->run);
    (void)snprintf(ask->run, sizeof ask->run, "%s", tide_engine_run(engine));
    return TIDE_OK;
}

void cli_ask_close(struct cli_ask *ask)
{
    if (ask->cli != NULL)
        tide_buf_done(&ask->payload);
    *ask = (struct cli_ask){.cli = NULL};
}

/* Whether the other engine is still the one that was asked. */
static bool is_there(struct cli_ask *ask)
{
    struct cli *cli = ask->cli;
    char run[33];
    const uint64_t pid = ask->pid;
    const tide_error kept = cli->err;
    const tide_status rc = ping(ask, run);
    ask->pid = pid;
    cli->err = kept;
    cli->hint[0] = '\0';
    return rc == TIDE_OK ? strcmp(run, ask->run) == 0 : rc != TIDE_NOT_FOUND;
}

static tide_status gone(struct cli_ask *ask)
{
    ask->gone = true;
    return cli_fail(ask->cli, TIDE_NOT_FOUND, NULL, "process %" PRIu64 " has ended", ask->pid);
}

/* ---- asking ---- */

tide_status cli_enqueue(struct cli *cli, tide_engine *engine, const struct cli_job *job,
                        uint64_t *id_out, bool *runs_out)
{
    tide_json request;
    tide_json answer;
    tide_status rc = TIDE_OK;
    tide_control_request(TIDE_OP_ENQUEUE, &request);
    tide_json_set_cstr(&request, "kind", job->kind);
    if (job->account != NULL)
        tide_json_set_cstr(&request, "account", job->account);
    tide_json_set_cstr(&request, "dedupe", job->dedupe);
    if (job->payload[0] != '\0')
        tide_json_set_raw(&request, "payload", tide_text_of(job->payload));
    *runs_out = true;
    if (engine == NULL) {
        answer = (tide_json){.value = NULL};
        rc = cli_engine_ask(cli, &request, runs_out, &answer.value);
    } else {
        tide_json_object(&answer);
        rc = tide_control_enqueue(engine, request.value, &answer, &cli->err);
        tide_json_done(&request);
        tide_engine_take_soon(engine);
    }
    *id_out = (uint64_t)json_integer_value(json_object_get(answer.value, "id"));
    tide_json_done(&answer);
    return engine != NULL || !*runs_out
               ? rc
               : cli_hint(cli, rc,
                          "Another process uses this directory and cannot do this. Stop it, and "
                          "run this command again.");
}

static tide_status send(struct cli_ask *ask)
{
    const struct cli_job job = {ask->kind, ask->email, ask->dedupe, tide_buf_cstr(&ask->payload)};
    bool runs = false;
    const tide_status rc = cli_enqueue(ask->cli, ask->engine, &job, &ask->job, &runs);
    return runs ? rc : gone(ask);
}

tide_status cli_ask_clear(struct cli_ask *ask, const char *kind, const char *email)
{
    if (ask->engine == NULL || !tide_engine_shared(ask->engine))
        return TIDE_OK;
    return tide_cancel_kind_of(ask->engine, kind, email, &ask->cli->err);
}

tide_status cli_ask_job(struct cli_ask *ask, const char *kind, const char *email,
                        const char *dedupe, tide_json *payload)
{
    ask->kind = kind;
    ask->email = email;
    ask->gone = false;
    ask->pinged_ms = tide_world_now_ms(ask->cli->world);
    (void)snprintf(ask->dedupe, sizeof ask->dedupe, "%s", dedupe);
    (void)snprintf(ask->by, sizeof ask->by, "%016" PRIx64, tide_world_random_u64(ask->cli->world));
    tide_json_set_cstr(payload, "engine", ask->run);
    tide_json_set_cstr(payload, "by", ask->by);
    tide_buf_clear(&ask->payload);
    const tide_status rc = tide_json_line(payload, &ask->payload);
    tide_json_done(payload);
    if (rc != TIDE_OK)
        return cli_fail(ask->cli, rc, "Use a shorter query.", "the request is too long");
    return send(ask);
}

/* ---- looking ---- */

struct seen {
    const char *by, *run;
    bool found, ours;
    bool there; /* the engine that was asked has it, or had it last */
    tide_row_state state;
    tide_status status;
    char error[sizeof((tide_error *)0)->text];
};

static bool see(const struct tide_job_row *row, void *arg)
{
    struct seen *seen = arg;
    json_t *payload = NULL;
    seen->found = true;
    seen->state = row->state;
    seen->status = row->status;
    seen->there = tide_text_equal(row->run_id, tide_text_of(seen->run));
    (void)snprintf(seen->error, sizeof seen->error, "%.*s", (int)row->error.bytes, row->error.data);
    if (tide_json_parse_stored(row->payload, &payload, NULL) == TIDE_OK) {
        const char *by = json_string_value(json_object_get(payload, "by"));
        seen->ours = by != NULL && strcmp(by, seen->by) == 0;
    }
    json_decref(payload);
    return false;
}

static tide_status not_yet(struct cli_ask *ask)
{
    const uint64_t now_ms = tide_world_now_ms(ask->cli->world);
    if (ask->engine != NULL || now_ms - ask->pinged_ms < PING_MS)
        return TIDE_TIMEOUT;
    ask->pinged_ms = now_ms;
    return is_there(ask) ? TIDE_TIMEOUT : gone(ask);
}

tide_status cli_ask_is_there(struct cli_ask *ask)
{
    const tide_status rc = not_yet(ask);
    return rc == TIDE_TIMEOUT ? TIDE_OK : rc;
}

static tide_status see_job(struct cli_ask *ask, struct seen *seen)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    *seen = (struct seen){.by = ask->by, .run = ask->run};
    filter.id = ask->job;
    filter.count_max = 1;
    return tide_ledger_jobs(ask->cli->ledger, &filter, see, seen, &ask->cli->err);
}

tide_status cli_ask_look(struct cli_ask *ask)
{
    struct cli *cli = ask->cli;
    struct seen seen;
    const tide_status rc = see_job(ask, &seen);
    if (rc != TIDE_OK)
        return rc;
    if (seen.found)
        ask->ours = seen.ours;
    if (seen.found && (seen.state == TIDE_ROW_PENDING || seen.state == TIDE_ROW_RUNNING))
        return not_yet(ask);
    if (seen.found && !seen.ours) { /* it was another command's */
        const tide_status sent = send(ask);
        return sent == TIDE_OK ? TIDE_TIMEOUT : sent;
    }
    if (seen.found && seen.state == TIDE_ROW_DONE) /* in another engine it did nothing */
        return ask->engine != NULL || seen.there ? TIDE_OK : gone(ask);
    /* An engine that starts cancels what the last one left. */
    if (ask->engine == NULL && !is_there(ask))
        return gone(ask);
    if (!seen.found || seen.state == TIDE_ROW_CANCELED)
        return tide_error_set(&cli->err, TIDE_CANCELED, "job %" PRIu64 " was canceled", ask->job);
    const tide_status status = seen.status == TIDE_OK ? TIDE_BUG : seen.status;
    return tide_error_set(&cli->err, status, "%s", seen.error);
}

bool cli_ask_cancel(struct cli_ask *ask)
{
    struct cli *cli = ask->cli;
    const tide_error kept = cli->err;
    struct seen seen;
    if (see_job(ask, &seen) != TIDE_OK || !seen.ours)
        return false;
    if (ask->engine != NULL)
        return tide_cancel_job(ask->engine, ask->job, NULL) == TIDE_OK;
    tide_json request;
    json_t *answer = NULL;
    bool runs = false;
    const struct tide_control_filter filter = {.id = ask->job};
    tide_control_request(TIDE_OP_CANCEL, &request);
    tide_control_filter_set(&request, &filter);
    (void)cli_engine_ask(cli, &request, &runs, &answer);
    json_decref(answer);
    cli->err = kept;
    cli->hint[0] = '\0';
    /* In this process: a command is interrupted when its engine stops, which puts the job back. */
    return cli->inside == NULL;
}

/* ---- one short job ---- */

static tide_status wait_there(struct cli_ask *ask)
{
    struct cli *cli = ask->cli;
    const uint64_t give_up_ms = tide_world_now_ms(cli->world) + THERE_MS;
    tide_status rc = cli_ledger_read(cli);
    while (rc == TIDE_OK && (rc = cli_ask_look(ask)) == TIDE_TIMEOUT) {
        if (tide_world_now_ms(cli->world) >= give_up_ms)
            return cli_fail(cli, TIDE_TIMEOUT, "Wait until it ends, and run this command again.",
                            "process %" PRIu64 " did not do it in time", ask->pid);
        rc = tide_world_sleep_until(cli->world, tide_world_now_us(cli->world) + TICK_US, NULL);
    }
    return rc;
}

tide_status cli_ask_there(struct cli *cli, const char *kind, const char *email, tide_json *payload)
{
    struct cli_ask ask;
    const tide_status opened = cli_ask_open(cli, NULL, &ask);
    tide_status rc = opened;
    if (rc == TIDE_OK)
        rc = cli_ask_job(&ask, kind, email, "", payload);
    else
        tide_json_done(payload);
    if (rc == TIDE_OK)
        rc = wait_there(&ask);
    cli_ledger_close(cli);
    if (rc != TIDE_OK && opened == TIDE_OK && !ask.gone) {
        /* Without an answer its number is not known. */
        const tide_error why = cli->err;
        const struct tide_control_filter named = {.id = ask.job,
                                                  .kind = ask.job == 0 ? kind : NULL};
        (void)cli_jobs_end(cli, &named);
        cli_ledger_close(cli);
        cli->err = why;
    }
    const bool ended = opened == TIDE_NOT_FOUND || ask.gone || cli_engine_ended(rc);
    cli_ask_close(&ask);
    if (rc != TIDE_OK && ended)
        return cli_hint(cli, TIDE_STOPPED, "Run this command again.");
    return opened == TIDE_OK ? rc
                             : cli_hint(cli, rc, "Wait until it ends, and run this command again.");
}

/* ---- trying again ---- */

bool cli_try(struct cli *cli, struct cli_tries *tries)
{
    const uint64_t now_ms = tide_world_now_ms(cli->world);
    tries->count++;
    if (tries->count == 1)
        return true;
    if (tries->count == 2) /* the first process that was asked has ended */
        tries->until_ms = now_ms + THERE_MS;
    if (tries->count > TRIES_MIN && now_ms >= tries->until_ms)
        return false;
    return tide_world_sleep_until(cli->world, tide_world_now_us(cli->world) + TICK_US, NULL) ==
           TIDE_OK;
}

tide_status cli_tries_over(struct cli *cli)
{
    return cli_fail(cli, TIDE_BUSY, "Run the command again.",
                    "one process after the other used this directory");
}
