/* runs.c - `tidemark assistant runs [RUN]`: runs of agents, and one run with its tools (J15). */
#include "assistant/commands/list.h"

#include <inttypes.h>

/* ---- the list ---- */

static void show_run(const struct tide_assistant_run *run, void *arg)
{
    struct assistant_list *list = arg;
    struct cli *cli = list->cli;
    tide_json one;
    char time[32];
    cli_cell(cli, "%" PRIu64, run->id);
    cli_cell(cli, "%s", cli_time(run->begun_ms, time));
    cli_cell(cli, "%s", run->profile);
    cli_cell(cli, "%s", run->rule);
    cli_cell(cli, "%s", run->status);
    cli_cell(cli, "%" PRIu32, run->iterations);
    cli_cell(cli, "%s", run->thread_id);
    cli_cell(cli, "%s", run->error);
    tide_json_object(&one);
    assistant_run_json(run, &one);
    tide_json_set_cstr(&one, "account", assistant_list_account(list, run->account));
    tide_json_append(&list->items, &one);
    list->last = run->id;
}

static tide_status list_runs(struct cli *cli)
{
    static const char *const headings[] = {"RUN",    "WHEN",    "PROFILE", "RULE",
                                           "STATUS", "ANSWERS", "THREAD",  "ERROR"};
    struct assistant_list list;
    struct tide_assistant_log log;
    bool more = false;
    TIDE_TRY(assistant_log_begin(cli, "status", &list, &log));
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    const tide_status rc = tide_assistant_runs(list.db, &log, show_run, &list, &more, &cli->err);
    cli_table_end(cli, "No agent ran yet.");
    assistant_log_end(&list, "runs", more);
    return rc;
}

/* ---- one run ---- */

static void tell_tool(struct cli *cli, const json_t *tool)
{
    tide_error ignored;
    tide_text name = TIDE_TEXT("?"), result = TIDE_TEXT_NONE;
    char *arguments =
        json_dumps(json_object_get(tool, "arguments"), JSON_COMPACT | JSON_ENCODE_ANY);
    (void)tide_json_get_text(tool, "tool", &name, &ignored);
    (void)tide_json_get_text(tool, "result", &result, &ignored);
    cli_print(cli, "\n");
    assistant_print(cli, name);
    cli_print(cli, " ");
    assistant_print(cli, tide_text_of(arguments == NULL ? "" : arguments));
    cli_print(cli, "\n");
    assistant_print(cli, result);
    cli_print(cli, "\n");
    free(arguments);
}

static void print_run(const struct tide_assistant_run *run, void *arg)
{
    struct assistant_list *list = arg;
    struct cli *cli = list->cli;
    size_t i = 0;
    json_t *tool = NULL;
    char time[32];
    cli_print(cli, "Run %" PRIu64 " at %s: %s after %" PRIu32 " answers\n", run->id,
              cli_time(run->begun_ms, time), run->status, run->iterations);
    assistant_print_line(cli, "Profile", tide_text_of(run->profile));
    assistant_print_line(cli, "Rule", tide_text_of(run->rule));
    assistant_print_line(cli, "Thread", tide_text_of(run->thread_id));
    assistant_print_line(cli, "Error", tide_text_of(run->error));
    assistant_run_json(run, &cli->json);
    tide_json_set_cstr(&cli->json, "account", assistant_list_account(list, run->account));
    tide_json_set_raw(&cli->json, "tools", run->tools);
    tide_json_set_text(&cli->json, "final", run->final);
    json_array_foreach(json_object_get(cli->json.value, "tools"), i, tool) tell_tool(cli, tool);
    if (run->final.bytes > 0)
        cli_print(cli, "\n");
    assistant_print_line(cli, "Last message", run->final);
}

static tide_status one_run(struct cli *cli)
{
    struct assistant_list list = {.cli = cli};
    uint64_t id = 0;
    TIDE_TRY(cli_number(cli, cli->arguments[0], "the number of a run", &id));
    TIDE_TRY(cli_ledger_read(cli));
    list.db = tide_ledger_rows(cli->ledger);
    const tide_status rc = tide_assistant_run_look(list.db, id, print_run, &list, &cli->err);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    return cli_fail(cli, rc, "`tidemark assistant runs` lists them.", "there is no run %.40s",
                    cli->arguments[0]);
}

tide_status cli_assistant_runs(struct cli *cli)
{
    return cli->arguments_count > 0 ? one_run(cli) : list_runs(cli);
}
