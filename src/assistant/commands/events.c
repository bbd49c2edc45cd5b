/* events.c - `tidemark assistant events`: what happened, of all threads. */
#include "assistant/commands/list.h"

static void show_event(const struct tide_assistant_event *event, void *arg)
{
    struct assistant_list *list = arg;
    struct cli *cli = list->cli;
    tide_json one;
    char time[32];
    cli_cell(cli, "%s", cli_time(event->at_ms, time));
    cli_cell(cli, "%s", assistant_list_account(list, event->account));
    cli_cell(cli, "%s", event->thread_id);
    cli_cell(cli, "%s", event->kind);
    cli_cell(cli, "%s", event->detail);
    tide_json_object(&one);
    assistant_event_json(event, &one);
    tide_json_set_cstr(&one, "account", assistant_list_account(list, event->account));
    tide_json_append(&list->items, &one);
    list->last = event->id;
}

tide_status cli_assistant_events(struct cli *cli)
{
    static const char *const headings[] = {"WHEN", "ACCOUNT", "THREAD", "EVENT", "DETAIL"};
    struct assistant_list list;
    struct tide_assistant_log log;
    bool more = false;
    TIDE_TRY(assistant_log_begin(cli, "kind", &list, &log));
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    const tide_status rc =
        tide_assistant_events(list.db, &log, show_event, &list, &more, &cli->err);
    cli_table_end(cli, "Nothing yet.");
    assistant_log_end(&list, "events", more);
    return rc;
}
