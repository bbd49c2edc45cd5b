/* tools.c - the tools that belong to no system: the accounts and their status. */
#include "cli/mcp/inside.h"

#include "base/check.h"
#include "cli/status/status.h"

#include <string.h>

enum { PAGE = 50 };

/* ---- pages of accounts ---- */

static const char *name_of(const json_t *account)
{
    return json_string_value(json_object_get(account, "account"));
}

static tide_status no_account(struct cli *cli, const char *name)
{
    return cli_fail(cli, TIDE_NOT_FOUND, "list_accounts has the names.",
                    "there is no account \"%.200s\"", name);
}

static bool find(const json_t *accounts, const char *name, size_t *index_out)
{
    for (size_t i = 0; i < json_array_size(accounts); i++)
        if (strcmp(name_of(json_array_get(accounts, i)), name) == 0) {
            *index_out = i;
            return true;
        }
    return false;
}

/* Which of the accounts are shown: [*first_out, *end_out). */
static tide_status page_choose(struct tide_tool_call *call, const json_t *accounts,
                               size_t *first_out, size_t *end_out)
{
    const char *named = tide_tool_text(call, "account");
    const char *after = tide_tool_text(call, "after");
    const size_t limit = (size_t)tide_tool_number(call, "limit", PAGE);
    const size_t count = json_array_size(accounts);
    size_t at = 0;
    if (named != NULL && !find(accounts, named, &at))
        return no_account(call->cli, named);
    *first_out = at;
    *end_out = named == NULL ? limit : at + 1;
    if (named == NULL && after != NULL) {
        if (!find(accounts, after, &at))
            return no_account(call->cli, after);
        *first_out = at + 1;
        *end_out = at + 1 + limit;
    }
    *end_out = *end_out < count ? *end_out : count;
    return TIDE_OK;
}

/* Copies the chosen accounts, each made smaller by `shorten` (may be NULL). */
static tide_status accounts_show(struct tide_tool_call *call,
                                 void (*shorten)(const json_t *account, tide_json *out))
{
    const tide_status read = status_look(call->cli, NULL);
    const json_t *accounts = json_object_get(call->cli->json.value, "accounts");
    size_t first = 0, end = 0;
    tide_json list;
    tide_status rc = read == TIDE_OK ? page_choose(call, accounts, &first, &end) : read;
    if (rc != TIDE_OK)
        return rc;
    tide_json_array(&list);
    for (size_t i = first; i < end; i++) {
        tide_json one = {.value = NULL};
        if (shorten == NULL)
            one.value = json_incref(json_array_get(accounts, i));
        else
            shorten(json_array_get(accounts, i), &one);
        tide_json_append(&list, &one);
    }
    tide_json_set(call->result, "accounts", &list);
    if (end < json_array_size(accounts) && tide_tool_text(call, "account") == NULL)
        tide_json_set_cstr(call->result, "next", name_of(json_array_get(accounts, end - 1)));
    return TIDE_OK;
}

/* ---- the tools ---- */

static void shorten(const json_t *account, tide_json *out)
{
    static const char *const kept[] = {"account", "system", "stored", "unit", "tidemark", "now"};
    tide_json_object(out);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        tide_json field = {.value = json_incref(json_object_get(account, kept[i]))};
        if (field.value != NULL)
            tide_json_set(out, kept[i], &field);
    }
}

static tide_status list_run(struct tide_tool_call *call)
{
    return accounts_show(call, shorten);
}

static tide_status status_run(struct tide_tool_call *call)
{
    tide_json alerts;
    const tide_status rc = accounts_show(call, NULL);
    if (rc != TIDE_OK)
        return rc;
    tide_json_set_bool(call->result, "engine",
                       json_is_true(json_object_get(call->cli->json.value, "engine")));
    cli_json_alerts(call->cli, &alerts);
    tide_json_set(call->result, "alerts", &alerts);
    return TIDE_OK;
}

#define LIMIT_ARGUMENT                                                                             \
    {                                                                                              \
        "limit", TIDE_TOOL_NUMBER, false, 1, 100, NULL, "At most so many accounts (default 50)."   \
    }
#define AFTER_ARGUMENT                                                                             \
    {                                                                                              \
        "after", TIDE_TOOL_TEXT, false, 1, 200, NULL,                                              \
            "The next page: \"next\" of the result before."                                        \
    }
#define ARGUMENTS_END                                                                              \
    {                                                                                              \
        NULL, TIDE_TOOL_TEXT, false, 0, 0, NULL, NULL                                              \
    }

static const struct tide_tool_argument list_arguments[] = {LIMIT_ARGUMENT, AFTER_ARGUMENT,
                                                           ARGUMENTS_END};
static const struct tide_tool_argument status_arguments[] = {
    {"account", TIDE_TOOL_TEXT, false, 1, 200, NULL, "Only this account (default: all)."},
    LIMIT_ARGUMENT,
    AFTER_ARGUMENT,
    ARGUMENTS_END,
};

static const struct tide_tool list_tool = {
    .name = "list_accounts",
    .title = "List accounts",
    .meaning = "List the accounts that Tidemark keeps copies of: name, system, how much is stored, "
               "how far the copy is (tidemark), what happens now.",
    .arguments = list_arguments,
    .result = "{\"type\":\"object\",\"properties\":{\"accounts\":{\"type\":\"array\",\"items\":{"
              "\"type\":\"object\",\"properties\":{\"account\":{\"type\":\"string\"},\"system\":{"
              "\"type\":\"string\"},\"stored\":{\"type\":\"integer\"},\"unit\":{\"type\":"
              "\"string\"},\"now\":{\"type\":\"string\"}},\"required\":[\"account\",\"system\"]}},"
              "\"next\":{\"type\":\"string\"}},\"required\":[\"accounts\"]}",
    .run = list_run,
};

static const struct tide_tool status_tool = {
    .name = "status",
    .title = "Status of the copies",
    .meaning = "Show how complete and fresh the copies are, as `tidemark status` does: tidemark, "
               "gaps, what is left, bad items, what runs and why, alerts.",
    .arguments = status_arguments,
    .result = "{\"type\":\"object\",\"properties\":{\"accounts\":{\"type\":\"array\",\"items\":{"
              "\"type\":\"object\",\"properties\":{\"account\":{\"type\":\"string\"},\"now\":{"
              "\"type\":\"string\"},\"why\":{\"type\":\"string\"},\"gaps\":{\"type\":\"integer\"},"
              "\"left\":{\"type\":\"integer\"}},\"required\":[\"account\",\"now\",\"gaps\"]}},"
              "\"engine\":{\"type\":\"boolean\"},\"alerts\":{\"type\":\"array\"},\"next\":{"
              "\"type\":\"string\"}},\"required\":[\"accounts\",\"engine\",\"alerts\"]}",
    .run = status_run,
};

void mcp_tools_list(const struct cli *cli, const struct tide_tool *list_out[TIDE_MCP_TOOLS_MAX + 1])
{
    size_t count = 0;
    list_out[count++] = &list_tool;
    list_out[count++] = &status_tool;
    for (size_t i = 0; cli->systems[i] != NULL; i++)
        for (const struct tide_tool *tool = cli->systems[i]->tools;
             tool != NULL && tool->name != NULL; tool++) {
            TIDE_ASSERT(count < TIDE_MCP_TOOLS_MAX);
            list_out[count++] = tool;
        }
    list_out[count] = NULL;
}
