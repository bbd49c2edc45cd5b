/* change.c - `tidemark reader fetch|act|undo`: what the process that runs the engine is asked for. */
#include "reader/commands/home.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void request_begin(struct cli *cli, const char *email, tide_json *request)
{
    (void)cli;
    tide_json_object(request);
    tide_json_set_cstr(request, "account", email);
}

static void copy_u64(struct cli *cli, const json_t *answer, const char *field)
{
    tide_json_set_u64(&cli->json, field,
                      (uint64_t)json_integer_value(json_object_get(answer, field)));
}

/* Which of the flags says what to fetch. */
static tide_status wish_of(struct cli *cli, const char **what, const char **field,
                           const char **value)
{
    const char *const message = cli_flag(cli, "message");
    const char *const query = cli_flag(cli, "query");
    const char *const folder = cli_flag(cli, "folder");
    if ((message != NULL) + (query != NULL) + (folder != NULL) != 1)
        return cli_wrong(cli, "Give one of --folder, --message and --query.",
                         "it is not clear what to fetch");
    if (message != NULL) {
        *what = "open";
        *field = "message";
        *value = message;
    } else if (query != NULL) {
        *what = "search";
        *field = "query";
        *value = query;
    } else {
        const char *more = cli_flag(cli, "more");
        *what = more != NULL && strcmp(more, "0") != 0 ? "more" : "refresh";
        *field = "folder";
        *value = folder;
    }
    return TIDE_OK;
}

tide_status cli_reader_fetch(struct cli *cli)
{
    const char *what = NULL;
    const char *field = NULL;
    const char *value = NULL;
    json_auto_t *answer = NULL;
    tide_json request;
    TIDE_TRY(wish_of(cli, &what, &field, &value));
    request_begin(cli, cli->arguments[0], &request);
    tide_json_set_cstr(&request, field, value);
    TIDE_TRY(reader_ask(cli, what, &request, &answer));
    copy_u64(cli, answer, "job");
    tide_json_set_cstr(&cli->json, "account", cli->arguments[0]);
    if (json_integer_value(json_object_get(answer, "job")) == 0)
        cli_print(cli, "it is here already\n");
    else
        cli_print(cli, "job %" JSON_INTEGER_FORMAT " fetches it\n",
                  json_integer_value(json_object_get(answer, "job")));
    return TIDE_OK;
}

tide_status cli_reader_act(struct cli *cli)
{
    const char *account = cli_flag(cli, "account");
    const char *what = cli_flag(cli, "do");
    json_auto_t *answer = NULL;
    tide_json request;
    tide_json messages;
    if (account == NULL || what == NULL)
        return cli_wrong(cli, "`tidemark reader act --account EMAIL --do archive MESSAGE...`",
                         "--account and --do are needed");
    request_begin(cli, account, &request);
    tide_json_array(&messages);
    for (unsigned i = 0; i < cli->arguments_count; i++)
        tide_json_append_cstr(&messages, cli->arguments[i]);
    tide_json_set(&request, "messages", &messages);
    tide_json_set_cstr(&request, "action", what);
    if (cli_flag(cli, "label") != NULL)
        tide_json_set_cstr(&request, "label", cli_flag(cli, "label"));
    if (cli_flag(cli, "draft") != NULL)
        tide_json_set_cstr(&request, "draft", cli_flag(cli, "draft"));
    TIDE_TRY(reader_ask(cli, "act", &request, &answer));
    copy_u64(cli, answer, "id");
    copy_u64(cli, answer, "changed");
    copy_u64(cli, answer, "due_unix_ms");
    cli_print(cli, "%" JSON_INTEGER_FORMAT " changed, as action %" JSON_INTEGER_FORMAT "\n",
              json_integer_value(json_object_get(answer, "changed")),
              json_integer_value(json_object_get(answer, "id")));
    return TIDE_OK;
}

tide_status cli_reader_undo(struct cli *cli)
{
    const char *account = cli_flag(cli, "account");
    uint64_t id = 0;
    json_auto_t *answer = NULL;
    tide_json request;
    if (account == NULL)
        return cli_wrong(cli, "Name it with --account EMAIL.", "no account is named");
    TIDE_TRY(cli_number(cli, cli->arguments[0], "the action", &id));
    request_begin(cli, account, &request);
    tide_json_set_u64(&request, "id", id);
    TIDE_TRY(reader_ask(cli, "undo", &request, &answer));
    tide_json_set_u64(&cli->json, "id", id);
    copy_u64(cli, answer, "inverse");
    cli_print(cli, "undone\n");
    return TIDE_OK;
}
