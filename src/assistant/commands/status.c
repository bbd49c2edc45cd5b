/* status.c - `tidemark assistant status`: how far the assistant is with each account. */
#include "assistant/commands/home.h"
#include "assistant/store/look.h"

#include <inttypes.h>

enum { DAY_MS = 86400000 };

struct shown {
    struct cli *cli;
    tide_json list;
    uint64_t given_up;
    tide_status rc;
};

static void counts_json(const struct tide_assistant_counts *counts, tide_json *one)
{
    tide_json by;
    tide_json_object(&by);
    for (int i = 1; i < TIDE_ASSISTANT_STATUSES; i++)
        tide_json_set_u64(&by, tide_assistant_status_name((tide_assistant_status)i),
                          counts->by_status[i]);
    tide_json_set(one, "by_status", &by);
    tide_json_object(&by);
    for (int i = 1; i < TIDE_ASSISTANT_CATEGORIES; i++)
        tide_json_set_u64(&by, tide_assistant_category_name((tide_assistant_category)i),
                          counts->by_category[i]);
    tide_json_set(one, "by_category", &by);
    tide_json_set_u64(one, "records", counts->records);
    tide_json_set_u64(one, "given_up", counts->given_up);
    tide_json_set_u64(one, "model_calls_today", counts->calls);
    tide_json_set_u64(one, "tokens_in_today", counts->tokens_in);
    tide_json_set_u64(one, "tokens_out_today", counts->tokens_out);
    tide_json_set_u64(one, "synced_unix_ms", counts->sync.synced_ms);
    tide_json_set_u64(one, "full_sync_unix_ms", counts->sync.full_ms);
    tide_json_set_u64(one, "pushed_unix_ms", counts->pushed_ms);
}

static void show_user(const struct tide_assistant_user *user, void *arg)
{
    struct shown *shown = arg;
    struct cli *cli = shown->cli;
    struct tide_assistant_counts counts;
    tide_json one;
    char time[32];
    if (shown->rc != TIDE_OK)
        return;
    const uint64_t midnight_ms = cli->now_unix_ms - cli->now_unix_ms % DAY_MS;
    shown->rc = tide_assistant_counts(tide_ledger_rows(cli->ledger), user->account, midnight_ms,
                                      &counts, &cli->err);
    if (shown->rc != TIDE_OK)
        return;
    cli_cell(cli, "%s", user->email);
    cli_cell(cli, "%s", assistant_user_state(user));
    cli_cell(cli, "%" PRIu64, counts.records);
    cli_cell(cli, "%" PRIu64, counts.by_status[TIDE_ASSISTANT_PENDING]);
    cli_cell(cli, "%" PRIu64, counts.by_status[TIDE_ASSISTANT_DRAFTED]);
    cli_cell(cli, "%" PRIu64, counts.given_up);
    shown->given_up += counts.given_up;
    cli_cell(cli, "%s", cli_time(counts.sync.synced_ms, time));
    cli_cell(cli, "%s", counts.pushed_ms == 0 ? "none yet" : cli_time(counts.pushed_ms, time));
    cli_cell(cli, "%" PRIu64, counts.calls);
    cli_cell(cli, "%" PRIu64, counts.tokens_in + counts.tokens_out);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "account", user->email);
    tide_json_set_cstr(&one, "state", assistant_user_state(user));
    tide_json_set_bool(&one, "onboarded", user->onboarded_ms > 0);
    counts_json(&counts, &one);
    tide_json_append(&shown->list, &one);
}

/* A file that is refused is shown, not an error of this command. */
static void show_configuration(struct cli *cli)
{
    struct tide_assistant_config *config = NULL;
    const tide_status rc = assistant_config(cli, &config);
    tide_assistant_config_free(config);
    tide_json_set_cstr(&cli->json, "configuration_error",
                       rc == TIDE_OK || rc == TIDE_NOT_FOUND ? NULL : cli->err.text);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        cli_print(cli, "The configuration is refused: %s\n", cli->err.text);
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    cli->exit_code = CLI_EXIT_DONE;
}

tide_status cli_assistant_status(struct cli *cli)
{
    static const char *const headings[] = {"ACCOUNT",     "STATE",       "THREADS", "PENDING",
                                           "DRAFTED",     "FAILED",      "SYNCED",  "LAST PUSH",
                                           "CALLS TODAY", "TOKENS TODAY"};
    struct shown shown = {.cli = cli};
    bool has = false;
    TIDE_TRY(cli_ledger_read(cli));
    TIDE_TRY(tide_rows_has(tide_ledger_rows(cli->ledger), "assistant_user", "the users", &has,
                           &cli->err));
    show_configuration(cli);
    tide_json_array(&shown.list);
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    const tide_status rc =
        has ? tide_assistant_users_each(tide_ledger_rows(cli->ledger), show_user, &shown, &cli->err)
            : TIDE_OK;
    cli_table_end(cli,
                  "The assistant works for no account yet: `tidemark assistant onboard EMAIL`.");
    if (shown.given_up > 0)
        cli_print(
            cli,
            "Jobs of %" PRIu64 " thread%s failed too often: `tidemark assistant events --kind "
            "given_up` lists them,\n`tidemark jobs list --state failed` says why, and `tidemark "
            "jobs retry` tries them again.\n",
            shown.given_up, shown.given_up == 1 ? "" : "s");
    tide_json_set(&cli->json, "accounts", &shown.list);
    return rc == TIDE_OK ? shown.rc : rc;
}
