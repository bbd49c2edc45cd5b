/* calls.c - `tidemark assistant calls [CALL]`: what models were asked, and one call with its texts. */
#include "assistant/commands/list.h"

#include <inttypes.h>
#include <string.h>

/* Of each text of a call; an agent's conversation may be megabytes. */
enum { TEXT_BYTES = 256 << 10 };

/* ---- the list ---- */

static void show_call(const struct tide_assistant_call *call, void *arg)
{
    struct assistant_list *list = arg;
    struct cli *cli = list->cli;
    tide_json one;
    char time[32];
    cli_cell(cli, "%" PRIu64, call->id);
    cli_cell(cli, "%s", cli_time(call->begun_ms, time));
    cli_cell(cli, "%s", call->kind);
    cli_cell(cli, "%s", call->model);
    cli_cell(cli, "%s", assistant_call_state(call));
    cli_cell(cli, "%" PRIu64, call->tokens_in);
    cli_cell(cli, "%" PRIu64, call->tokens_out);
    cli_cell(cli, "%" PRIu64 " ms", call->latency_ms);
    cli_cell(cli, "%s", call->thread_id);
    cli_cell(cli, "%s", call->error);
    tide_json_object(&one);
    assistant_call_json(call, &one);
    tide_json_set_cstr(&one, "account", assistant_list_account(list, call->account));
    tide_json_append(&list->items, &one);
    list->last = call->id;
}

static tide_status outcome_read(struct cli *cli, tide_assistant_outcome *outcome)
{
    static const char *const words[] = {[TIDE_ASSISTANT_ANSWERED] = "answered",
                                        [TIDE_ASSISTANT_CALL_FAILED] = "failed",
                                        [TIDE_ASSISTANT_WAITS] = "open"};
    const char *state = cli_flag(cli, "state");
    *outcome = TIDE_ASSISTANT_ANY;
    if (state == NULL)
        return TIDE_OK;
    for (int i = TIDE_ASSISTANT_ANSWERED; i <= TIDE_ASSISTANT_WAITS; i++)
        if (strcmp(state, words[i]) == 0) {
            *outcome = (tide_assistant_outcome)i;
            return TIDE_OK;
        }
    return cli_wrong(cli, "It is answered, failed or open.", "\"%.60s\" is not a state of a call",
                     state);
}

static tide_status list_calls(struct cli *cli)
{
    static const char *const headings[] = {"CALL", "WHEN", "KIND", "MODEL",  "STATE",
                                           "IN",   "OUT",  "TOOK", "THREAD", "ERROR"};
    struct assistant_list list;
    struct tide_assistant_log log;
    tide_assistant_outcome outcome;
    bool more = false;
    TIDE_TRY(outcome_read(cli, &outcome));
    TIDE_TRY(assistant_log_begin(cli, "kind", &list, &log));
    log.outcome = outcome;
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    const tide_status rc = tide_assistant_calls(list.db, &log, show_call, &list, &more, &cli->err);
    cli_table_end(cli, "No model was asked yet.");
    assistant_log_end(&list, "calls", more);
    return rc;
}

/* ---- one call ---- */

struct asked {
    struct assistant_list list;
    uint64_t bytes_max;
};

/* `name` and NAME_bytes, which is the length before it was cut. */
static void text_show(struct asked *asked, const char *name, const char *name_bytes,
                      const char *heading, tide_text text)
{
    struct cli *cli = asked->list.cli;
    const tide_text cut = tide_utf8_cut(text, (size_t)asked->bytes_max);
    tide_json_set_text(&cli->json, name, cut);
    tide_json_set_u64(&cli->json, name_bytes, text.bytes);
    if (text.bytes == 0)
        return;
    cli_print(cli, "\n%s:\n", heading);
    assistant_print(cli, cut);
    cli_print(cli, "\n");
    if (cut.bytes < text.bytes)
        cli_print(cli, "(%zu bytes more: --bytes)\n", text.bytes - cut.bytes);
}

static void print_call(const struct tide_assistant_call *call, void *arg)
{
    struct asked *asked = arg;
    struct cli *cli = asked->list.cli;
    char time[32];
    cli_print(cli, "Call %" PRIu64 " at %s: %s, %s\n", call->id, cli_time(call->begun_ms, time),
              call->kind, assistant_call_state(call));
    assistant_print_line(cli, "Model", tide_text_of(call->model));
    assistant_print_line(cli, "Thread", tide_text_of(call->thread_id));
    assistant_print_line(cli, "Error", tide_text_of(call->error));
    cli_print(cli, "Tokens: %" PRIu64 " in, %" PRIu64 " out, in %" PRIu64 " ms\n", call->tokens_in,
              call->tokens_out, call->latency_ms);
    assistant_call_json(call, &cli->json);
    tide_json_set_cstr(&cli->json, "account", assistant_list_account(&asked->list, call->account));
    text_show(asked, "system", "system_bytes", "System", call->system);
    text_show(asked, "prompt", "prompt_bytes", "Prompt", call->prompt);
    text_show(asked, "answer", "answer_bytes", "Answer", call->answer);
}

static tide_status one_call(struct cli *cli)
{
    struct asked asked = {.list = {.cli = cli}, .bytes_max = TEXT_BYTES};
    uint64_t id = 0;
    TIDE_TRY(cli_number(cli, cli->arguments[0], "the number of a call", &id));
    if (cli_flag(cli, "bytes") != NULL)
        TIDE_TRY(cli_number(cli, cli_flag(cli, "bytes"), "--bytes", &asked.bytes_max));
    if (asked.bytes_max > TIDE_ASSISTANT_TALK_BYTES_MAX)
        asked.bytes_max = TIDE_ASSISTANT_TALK_BYTES_MAX;
    TIDE_TRY(cli_ledger_read(cli));
    asked.list.db = tide_ledger_rows(cli->ledger);
    const tide_status rc =
        tide_assistant_call_look(asked.list.db, id, print_call, &asked, &cli->err);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    return cli_fail(cli, rc, "`tidemark assistant calls` lists them.", "there is no call %.40s",
                    cli->arguments[0]);
}

tide_status cli_assistant_calls(struct cli *cli)
{
    return cli->arguments_count > 0 ? one_call(cli) : list_calls(cli);
}
