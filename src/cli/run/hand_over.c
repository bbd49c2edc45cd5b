/* hand_over.c - hands the work to the engine that has the directory, and watches it (decision 11). */
#include "cli/run/ask.h"
#include "cli/run/inside.h"

#include <inttypes.h>
#include <stdio.h>

static bool request(const struct cli_work *work, size_t account, size_t nth,
                    struct cli_request *out)
{
    if (work->request != NULL)
        return work->request(work->arg, account, nth, out);
    *out = (struct cli_request){.kind = work->kind};
    (void)snprintf(out->dedupe, sizeof out->dedupe, "%s", work->accounts[account].name);
    return nth == 0;
}

tide_status cli_begin_requests(struct cli_work *work, size_t account, tide_engine *engine,
                               bool *runs_out)
{
    struct cli_request wanted;
    char kind[80];
    tide_status rc = TIDE_OK;
    (void)snprintf(kind, sizeof kind, "%.60s.sync", work->system->name);
    for (size_t n = 0; rc == TIDE_OK && request(work, account, n, &wanted); n++) {
        const struct cli_job job = {wanted.kind == NULL ? kind : wanted.kind,
                                    work->accounts[account].name, wanted.dedupe, wanted.payload};
        uint64_t id = 0;
        rc = cli_enqueue(work->cli, engine, &job, &id, runs_out);
        if (rc == TIDE_OK && work->asked != NULL)
            tide_json_append_u64(work->asked, id);
    }
    return rc;
}

static tide_status ask_all(struct cli_work *work)
{
    bool runs = true;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < work->count; i++)
        rc = cli_begin_requests(work, i, NULL, &runs);
    work->gone = !runs || rc == TIDE_UNKNOWN; /* it ended while it was asked */
    return rc;
}

/* Whether the process that works in this directory has any of the accounts. */
static bool has_here(const struct cli_work *work)
{
    for (size_t i = 0; i < work->count; i++)
        if (!work->accounts[i].elsewhere)
            return true;
    return false;
}

static tide_status watch(struct cli_work *work)
{
    struct cli *cli = work->cli;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && !cli_interrupted(cli) && !cli_work_is_late(work)) {
        rc = cli_watch_tick(work, false);
        if (rc != TIDE_OK || work->gone || cli_watch_all_over(work))
            break;
        rc = cli_elsewhere_check(work);
        if (rc == TIDE_OK)
            (void)tide_world_sleep_until(
                cli->world, tide_world_now_us(cli->world) + CLI_TICK_MS * 1000ull, NULL);
    }
    return rc;
}

/* The jobs have dedupe keys: asking twice begins the work once (RUN2). */
tide_status cli_work_ask(struct cli_work *work)
{
    struct cli *cli = work->cli;
    const uint64_t pid = cli_engine_pid(cli);
    tide_json accounts;
    tide_json jobs;
    if (pid == 0)
        return cli_fail(cli, TIDE_NOT_FOUND, "Start `tidemark serve`, or omit --no-wait.",
                        "no process runs in %.300s", cli->state_dir);
    tide_status rc = work->hand_over == NULL ? TIDE_OK : work->hand_over(work->arg, pid);
    tide_json_array(&accounts);
    tide_json_array(&jobs);
    work->asked = &jobs;
    if (rc == TIDE_OK)
        rc = ask_all(work);
    work->asked = NULL;
    for (size_t i = 0; i < work->count; i++)
        tide_json_append_cstr(&accounts, work->accounts[i].name);
    if (rc == TIDE_OK)
        cli_print(cli, "asked process %" PRIu64 "; `tidemark status` shows how far it is\n", pid);
    tide_json_set(&cli->json, "accounts", &accounts);
    tide_json_set(&cli->json, "jobs", &jobs);
    return rc;
}

tide_status cli_hand_over(struct cli_work *work)
{
    struct cli *cli = work->cli;
    const uint64_t pid = cli_engine_pid(cli);
    work->handed_over = true;
    tide_status rc = work->hand_over == NULL ? TIDE_OK : work->hand_over(work->arg, pid);
    if (rc == TIDE_OK)
        rc = cli_elsewhere_find(work);
    if (rc == TIDE_OK)
        rc = cli_watch_tick(work, false);
    if (rc == TIDE_OK)
        rc = ask_all(work);
    if (rc != TIDE_OK)
        return rc;
    work->pid = pid;
    cli_elsewhere_tell(work);
    if (has_here(work) && !cli->quiet && !cli->want_json)
        (void)fprintf(stderr,
                      "Process %" PRIu64 " works in this directory and does this; showing its "
                      "progress. Ctrl-C stops only the display.\n",
                      pid);
    cli_watch_look_soon(work); /* the work is there only now */
    rc = watch(work);
    if (work->gone && !cli_watch_settled(work) && !cli_interrupted(cli) && !cli_work_is_late(work))
        return TIDE_NOT_FOUND;
    work->gone = false;
    return rc;
}
