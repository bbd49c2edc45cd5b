#include "assistant/commands/list.h"

#include "mcp/clean.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 50 };

/* ---- flags ---- */

static tide_status order_read(struct cli *cli, bool *oldest_first)
{
    const char *order = cli_flag(cli, "order");
    *oldest_first = order != NULL && strcmp(order, "oldest") == 0;
    if (order == NULL || *oldest_first || strcmp(order, "newest") == 0)
        return TIDE_OK;
    return cli_wrong(cli, "It is newest or oldest.", "\"%.60s\" is not an order", order);
}

tide_status assistant_list_begin(struct cli *cli, struct assistant_list *list)
{
    const char *number = cli_flag(cli, "limit"), *email = cli_flag(cli, "account");
    uint64_t limit = SHOWN;
    *list = (struct assistant_list){.cli = cli};
    if (number != NULL)
        TIDE_TRY(cli_number(cli, number, "--limit", &limit));
    if (limit == 0 || limit > TIDE_ASSISTANT_PAGE_MAX)
        return cli_wrong(cli, "Give a smaller one; --after shows the next ones.",
                         "--limit is 1 to %d", TIDE_ASSISTANT_PAGE_MAX);
    list->limit = (size_t)limit;
    TIDE_TRY(order_read(cli, &list->oldest_first));
    TIDE_TRY(cli_ledger_read(cli));
    list->db = tide_ledger_rows(cli->ledger);
    if (email != NULL) {
        TIDE_TRY(assistant_user(cli, email, &list->named));
        list->account = list->named.account;
    }
    tide_json_array(&list->items);
    return TIDE_OK;
}

tide_status assistant_log_begin(struct cli *cli, const char *kind, struct assistant_list *list,
                                struct tide_assistant_log *log)
{
    const char *after = cli_flag(cli, "after");
    uint64_t id = 0;
    if (after != NULL) {
        TIDE_TRY(cli_number(cli, after, "--after", &id));
        if (id == 0)
            return cli_wrong(cli, "Take it from the end of the list before.",
                             "\"%.60s\" is not a place in the list", after);
    }
    TIDE_TRY(assistant_list_begin(cli, list));
    *log = (struct tide_assistant_log){.account = list->account,
                                       .thread_id = cli_flag(cli, "thread"),
                                       .kind = cli_flag(cli, kind),
                                       .oldest_first = list->oldest_first,
                                       .after = id,
                                       .count = list->limit};
    return TIDE_OK;
}

/* ---- rows ---- */

const char *assistant_list_account(struct assistant_list *list, uint32_t account)
{
    tide_error err = {TIDE_OK, 0, ""};
    if (list->named.account == account)
        return list->named.email;
    if (tide_assistant_user_get(list->db, account, &list->named, &err) != TIDE_OK)
        list->named = (struct tide_assistant_user){.account = account};
    return list->named.email;
}

void assistant_list_end(struct assistant_list *list, const char *name, const char *next)
{
    struct cli *cli = list->cli;
    tide_json_set(&cli->json, name, &list->items);
    tide_json_set_cstr(&cli->json, "next", next[0] == '\0' ? NULL : next);
    if (next[0] != '\0')
        cli_print(cli, "More: --after %s\n", next);
}

void assistant_log_end(struct assistant_list *list, const char *name, bool more)
{
    char next[24] = "";
    if (more)
        (void)snprintf(next, sizeof next, "%" PRIu64, list->last);
    assistant_list_end(list, name, next);
}

/* ---- text from outside ---- */

void assistant_print(struct cli *cli, tide_text text)
{
    if (!cli->want_json && tide_clean_text(text, &cli->out) != TIDE_OK)
        (void)cli_fail(cli, TIDE_FULL, "Use --json and a pager.", "the output is too large");
}

void assistant_print_line(struct cli *cli, const char *name, tide_text value)
{
    if (value.bytes == 0)
        return;
    cli_print(cli, "%s: ", name);
    assistant_print(cli, value);
    cli_print(cli, "\n");
}

/* ---- objects ---- */

void assistant_email_json(const struct tide_assistant_email *email, const char *account,
                          tide_json *one)
{
    tide_json_object(one);
    tide_json_set_cstr(one, "account", account);
    tide_json_set_cstr(one, "thread", email->thread_id);
    tide_json_set_cstr(one, "message", email->message_id);
    tide_json_set_cstr(one, "sender", email->sender);
    tide_json_set_cstr(one, "subject", email->subject);
    tide_json_set_cstr(one, "category", tide_assistant_category_name(email->category));
    tide_json_set_cstr(one, "confidence", email->confidence);
    tide_json_set_cstr(one, "language", email->language);
    tide_json_set_cstr(one, "style", email->style);
    tide_json_set_cstr(one, "reasoning", email->reasoning);
    tide_json_set_cstr(one, "status", tide_assistant_status_name(email->status));
    tide_json_set_u64(one, "messages", email->messages);
    tide_json_set_u64(one, "reworks", email->reworks);
    tide_json_set_cstr(one, "draft", email->draft_id);
    tide_json_set_u64(one, "created_unix_ms", email->created_ms);
    tide_json_set_u64(one, "updated_unix_ms", email->updated_ms);
}

void assistant_event_json(const struct tide_assistant_event *event, tide_json *one)
{
    tide_json_set_u64(one, "id", event->id);
    tide_json_set_cstr(one, "thread", event->thread_id);
    tide_json_set_cstr(one, "kind", event->kind);
    tide_json_set_cstr(one, "detail", event->detail);
    tide_json_set_u64(one, "job", event->job);
    tide_json_set_u64(one, "at_unix_ms", event->at_ms);
}

const char *assistant_call_state(const struct tide_assistant_call *call)
{
    return !call->ended ? "open" : call->error[0] != '\0' ? "failed" : "answered";
}

void assistant_call_json(const struct tide_assistant_call *call, tide_json *one)
{
    tide_json_set_u64(one, "id", call->id);
    tide_json_set_cstr(one, "thread", call->thread_id);
    tide_json_set_cstr(one, "kind", call->kind);
    tide_json_set_cstr(one, "model", call->model);
    tide_json_set_cstr(one, "state", assistant_call_state(call));
    tide_json_set_cstr(one, "error", call->error);
    tide_json_set_u64(one, "tokens_in", call->tokens_in);
    tide_json_set_u64(one, "tokens_out", call->tokens_out);
    tide_json_set_u64(one, "latency_ms", call->latency_ms);
    tide_json_set_u64(one, "job", call->job);
    tide_json_set_u64(one, "begun_unix_ms", call->begun_ms);
}

void assistant_run_json(const struct tide_assistant_run *run, tide_json *one)
{
    tide_json_set_u64(one, "id", run->id);
    tide_json_set_cstr(one, "thread", run->thread_id);
    tide_json_set_cstr(one, "message", run->message_id);
    tide_json_set_cstr(one, "profile", run->profile);
    tide_json_set_cstr(one, "rule", run->rule);
    tide_json_set_cstr(one, "status", run->status);
    tide_json_set_u64(one, "iterations", run->iterations);
    tide_json_set_cstr(one, "error", run->error);
    tide_json_set_u64(one, "begun_unix_ms", run->begun_ms);
    tide_json_set_u64(one, "ended_unix_ms", run->ended_ms);
}
