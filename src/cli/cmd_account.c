/* tidemark account list|halt|resume (E4.6). */
#include "cli/cli.h"

#include "base/limits.h"

struct accounts {
    struct cli *cli;
    tide_json list;
};

static bool account_row(const struct tide_account_row *row, void *arg)
{
    struct accounts *accounts = arg;
    struct cli *cli = accounts->cli;
    char when[32];
    tide_json json;
    tide_json_object(&json);
    tide_json_set_cstr(&json, "account", row->name);
    tide_json_set_cstr(&json, "provider", row->provider);
    tide_json_set_bool(&json, "paused", row->paused);
    tide_json_set_bool(&json, "halted", row->halted);
    tide_json_set_cstr(&json, "halt_reason", row->halted ? row->halt_reason : NULL);
    if (row->halted)
        tide_json_set_u64(&json, "halted_unix_ms", row->halted_unix_ms);
    else
        tide_json_set_null(&json, "halted_unix_ms");
    tide_json_append(&accounts->list, &json);
    cli_cell(cli, "%s", row->name);
    cli_cell(cli, "%s", row->provider);
    cli_cell(cli, "%s", row->halted ? "halted" : row->paused ? "paused" : "active");
    cli_cell(cli, "%s", row->halted ? cli_time(row->halted_unix_ms, when) : "-");
    cli_cell(cli, "%s", row->halted ? row->halt_reason : "-");
    return true;
}

tide_status cli_account_list(struct cli *cli)
{
    static const char *const headings[] = {"ACCOUNT", "PROVIDER", "STATE", "SINCE", "REASON"};
    struct accounts accounts = {.cli = cli};
    tide_status rc = cli_ledger_read(cli);
    if (rc != TIDE_OK)
        return rc;
    tide_json_array(&accounts.list);
    cli_table_begin(cli, headings, 5);
    rc = tide_ledger_accounts(cli->ledger, account_row, &accounts, &cli->err);
    cli_table_end(cli, "no accounts");
    tide_json_set(&cli->json, "accounts", &accounts.list);
    return cli_hint(cli, rc, "Run `tidemark ledger check`.");
}

static tide_status halt_write(struct cli *cli, const char *name, bool halted, const char *reason)
{
    uint32_t account = 0;
    tide_tx *tx = NULL;
    tide_status rc = cli_ledger_write(cli);
    if (rc == TIDE_OK) {
        rc = tide_ledger_account_find(cli->ledger, name, &account, &cli->err);
        if (rc == TIDE_NOT_FOUND)
            return cli_fail(cli, rc, "`tidemark account list` shows the accounts there are.",
                            "there is no account \"%.200s\"", name);
    }
    if (rc == TIDE_OK)
        rc = tide_tx_begin(cli->ledger, &tx, &cli->err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_ledger_account_halt(tx, account, halted, reason, cli->now_unix_ms, &cli->err);
    if (rc == TIDE_OK)
        return tide_tx_commit(tx, &cli->err);
    tide_tx_rollback(tx);
    return rc;
}

static tide_status halt_set(struct cli *cli, bool halted, const char *reason)
{
    const char *name = cli->arguments[0];
    bool runs = false;
    tide_json request;
    json_t *answer = NULL;
    if (strlen(reason) > TIDE_ERROR_TEXT_BYTES_MAX) {
        cli->exit_code = CLI_EXIT_USAGE;
        return cli_fail(cli, TIDE_INVALID, "Say it shorter.", "--reason is longer than %d bytes",
                        TIDE_ERROR_TEXT_BYTES_MAX);
    }
    tide_control_request(halted ? TIDE_OP_HALT : TIDE_OP_ACCOUNT_RESUME, &request);
    tide_json_set_cstr(&request, "account", name);
    if (halted)
        tide_json_set_cstr(&request, "reason", reason);
    tide_status rc = cli_engine_ask(cli, &request, &runs, &answer);
    json_decref(answer);
    if (!runs)
        rc = halt_write(cli, name, halted, reason);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "`tidemark account list` shows the accounts there are.");
    if (!cli->quiet)
        cli_print(cli, "%s account %s\n", halted ? "halted" : "resumed", name);
    tide_json_set_cstr(&cli->json, "account", name);
    tide_json_set_bool(&cli->json, "halted", halted);
    tide_json_set_bool(&cli->json, "engine", runs);
    return TIDE_OK;
}

tide_status cli_account_halt(struct cli *cli)
{
    const char *reason = cli_flag(cli, "reason");
    return halt_set(cli, true, reason == NULL ? "by command" : reason);
}

tide_status cli_account_resume(struct cli *cli)
{
    return halt_set(cli, false, "");
}
