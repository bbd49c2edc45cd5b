/* alerts.c - `tidemark alerts`: conditions that need the user's attention (E6.4). */
#include "cli/cli.h"

static bool alert_row(const struct tide_alert_row *row, void *arg)
{
    struct cli *cli = arg;
    char when[32];
    cli_cell(cli, "%s", row->level >= 2 ? "critical" : "warning");
    cli_cell(cli, "%s", row->condition);
    cli_cell(cli, "%s", row->account_name);
    cli_cell(cli, "%s", cli_time(row->since_unix_ms, when));
    cli_cell(cli, "%s", row->text);
    return true;
}

/* In JSON every command has the field "alerts"; here it is the whole result. */
tide_status cli_alerts(struct cli *cli)
{
    static const char *const headings[] = {"LEVEL", "CONDITION", "ACCOUNT", "SINCE", "TEXT"};
    TIDE_TRY(cli_ledger_read(cli));
    cli_table_begin(cli, headings, 5);
    tide_status rc = tide_ledger_alerts(cli->ledger, alert_row, cli, &cli->err);
    cli_table_end(cli, "no alerts");
    return cli_hint(cli, rc, "Run `tidemark ledger check`.");
}
