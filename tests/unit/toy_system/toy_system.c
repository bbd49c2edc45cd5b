/* toy_system.c - a whole system, and a program with nothing else (E12.1).  A sync adds a toy: a byte. */
#include "cli/cli.h"
#include "metrics/lines.h"
#include "net/oauth/google.h"
#include "world/userfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static tide_status add(tide_job *job, void *context, tide_error *err)
{
    const struct tide_system_home *home = context;
    const char *hold = getenv("TOY_HOLD"); /* it waits while this file exists */
    char path[5000];
    while (hold != NULL && access(hold, F_OK) == 0 && tide_job_sleep(job, 20) == TIDE_OK)
        continue;
    (void)snprintf(path, sizeof path, "%s/toy/%u", home->archive_dir, tide_job_account(job));
    FILE *file = fopen(path, "a");
    const bool written = file != NULL && fputc('x', file) != EOF && fclose(file) == 0;
    return written ? TIDE_OK : tide_error_set(err, TIDE_IO, "cannot write %.200s", path);
}

static tide_status open_toy(const struct tide_system_home *home, void **state_out, tide_error *err)
{
    const struct tide_kind kind = {.name = "toy.sync", .handler = add, .context = (void *)home};
    uint32_t number = 0;
    *state_out = (void *)home;
    return tide_engine_kind(home->engine, &kind, &number, err);
}

static tide_status close_toy(void *state, tide_error *err)
{
    (void)state, (void)err;
    return TIDE_OK;
}

/* While it watches there is a file that says so. */
static void watching_path(void *state, char path[5000])
{
    const struct tide_system_home *home = state;
    (void)snprintf(path, 5000, "%s/toy/watching", home->archive_dir);
}

static tide_status watch(void *state, const struct tide_system_teller *teller, tide_error *err)
{
    char path[5000];
    watching_path(state, path);
    teller->tell(teller->arg, "the toys", false, "all of them");
    FILE *file = fopen(path, "w");
    if (file != NULL)
        (void)fclose(file);
    return file != NULL ? TIDE_OK : tide_error_set(err, TIDE_IO, "cannot write %.200s", path);
}

static void watch_end(void *state)
{
    char path[5000];
    watching_path(state, path);
    (void)remove(path);
}

static tide_status count(const struct tide_system_copy *copy, const char *path, bool check,
                         uint64_t *toys_out, tide_error *err)
{
    struct tide_path_info info = {.bytes = 0};
    const tide_status rc = tide_path_look(path, &info, err);
    (void)copy, (void)check;
    *toys_out = info.bytes;
    return rc;
}

static tide_status status(const struct tide_system_home *home, tide_ledger *ledger,
                          const struct tide_account_row *account, struct tide_account_status *out,
                          tide_error *err)
{
    char path[5000];
    (void)snprintf(path, sizeof path, "%s/toy/%u", home->archive_dir, account->id);
    (void)ledger;
    return count(NULL, path, false, &out->stored, err);
}

/* Its metric; the snapshot has nothing of it. */
static void metrics(const json_t *shown, tide_metrics *lines)
{
    tide_metric_single(lines, "toy_shown", "gauge", "Whether it shows something.", shown != NULL);
}

static const struct cli_command commands[] = {
    {"toy", "sync", "[NAME...]", 0, 60, NULL, "Add a toy.", cli_sync}, {.group = NULL}};
static const struct tide_action actions[] = {
    {"toy sync", NULL, "hourly", "adds a toy", NULL},
    {.command = NULL},
};

/* Its tool: waits while the file TOY_HOLD exists, or until it is canceled. */
static tide_status hold_run(struct tide_tool_call *call)
{
    struct cli *cli = call->cli;
    const char *hold = getenv("TOY_HOLD");
    while (hold != NULL && access(hold, F_OK) == 0) {
        if (tide_world_sleep_until(cli->world, tide_world_now_us(cli->world) + 20000,
                                   call->cancel) != TIDE_OK)
            return tide_error_set(&cli->err, TIDE_CANCELED, "canceled");
    }
    tide_json_set_cstr(call->result, "word", tide_tool_text(call, "word"));
    return TIDE_OK;
}

static const struct tide_tool_argument hold_arguments[] = {
    {"word", TIDE_TOOL_TEXT, true, 1, 100, NULL, "Comes back."},
    {.name = NULL},
};
static const struct tide_tool tools[] = {
    {"toy_hold", "Hold", "Waits.", hold_arguments, "{\"type\":\"object\"}", hold_run},
    {.name = NULL},
};
static const struct tide_system toy = {
    .name = "toy",
    .provider = "toy",
    .subject = "NAME",
    .unit = "toys",
    .commands = commands,
    .actions = actions,
    .tools = tools,
    .quota = &(const struct tide_quota){.name = "toy"},
    .oauth = &tide_oauth_google,
    .purposes = (const struct tide_purpose[]){{"play", "toys", "to play"}, {.name = NULL}},
    .open = open_toy,
    .close = close_toy,
    .watch = watch,
    .watch_end = watch_end,
    .status = status,
    .metrics = metrics,
    .file_units = count};

int main(int argc, char **argv)
{
    return cli_program((const struct tide_system *const[]){&toy, NULL}, argc, argv);
}
