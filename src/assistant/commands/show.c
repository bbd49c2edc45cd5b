/* show.c - `tidemark assistant show`: the records, one a thread. */
#include "assistant/commands/list.h"

static void show_email(const struct tide_assistant_email *email, void *arg)
{
    struct assistant_list *list = arg;
    struct cli *cli = list->cli;
    tide_json one;
    char time[32];
    cli_cell(cli, "%s", cli_time(email->updated_ms, time));
    cli_cell(cli, "%s", tide_assistant_status_name(email->status));
    cli_cell(cli, "%s", tide_assistant_category_name(email->category));
    cli_cell(cli, "%s", email->sender);
    cli_cell(cli, "%s", email->subject);
    cli_cell(cli, "%s", email->thread_id);
    assistant_email_json(email, assistant_list_account(list, email->account), &one);
    tide_json_append(&list->items, &one);
}

static tide_status filter_read(struct cli *cli, struct tide_assistant_filter *filter)
{
    const char *status = cli_flag(cli, "status"), *category = cli_flag(cli, "category");
    if (status != NULL) {
        filter->status = tide_assistant_status_of(tide_text_of(status));
        if (filter->status == TIDE_ASSISTANT_NO_STATUS)
            return cli_wrong(cli, "See `tidemark assistant show --help`.",
                             "\"%.60s\" is not a status", status);
    }
    if (category != NULL) {
        filter->category = tide_assistant_category_of(tide_text_of(category));
        if (filter->category == TIDE_ASSISTANT_NO_CATEGORY)
            return cli_wrong(cli, "See `tidemark assistant show --help`.",
                             "\"%.60s\" is not a category", category);
    }
    filter->sender = cli_flag(cli, "sender");
    return TIDE_OK;
}

/* The total is counted by status and category, not by sender. */
static tide_status total_show(struct assistant_list *list,
                              const struct tide_assistant_filter *filter)
{
    uint64_t total = 0;
    if (filter->sender != NULL) {
        tide_json_set_null(&list->cli->json, "total");
        return TIDE_OK;
    }
    TIDE_TRY(tide_assistant_emails_total(list->db, filter, &total, &list->cli->err));
    tide_json_set_u64(&list->cli->json, "total", total);
    return TIDE_OK;
}

tide_status cli_assistant_show(struct cli *cli)
{
    static const char *const headings[] = {"CHANGED", "STATUS",  "CATEGORY",
                                           "SENDER",  "SUBJECT", "THREAD"};
    const char *after = cli_flag(cli, "after");
    struct tide_assistant_filter filter = {.account = 0};
    struct tide_assistant_cursor cursor = {0};
    struct assistant_list list;
    char next[TIDE_ASSISTANT_CURSOR_BYTES] = "";
    bool more = false;
    TIDE_TRY(filter_read(cli, &filter));
    if (after != NULL && !tide_assistant_cursor_of(tide_text_of(after), &cursor))
        return cli_wrong(cli, "Take it from the end of the list before.",
                         "\"%.60s\" is not a place in the list", after);
    TIDE_TRY(assistant_list_begin(cli, &list));
    filter.account = list.account;
    filter.oldest_first = list.oldest_first;
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    tide_status rc = tide_assistant_emails(list.db, &filter, &cursor, list.limit, show_email, &list,
                                           &more, &cli->err);
    cli_table_end(cli, "Nothing yet.");
    if (rc == TIDE_OK && more)
        tide_assistant_cursor_text(&cursor, next);
    assistant_list_end(&list, "emails", next);
    return rc == TIDE_OK ? total_show(&list, &filter) : rc;
}
