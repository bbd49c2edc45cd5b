/* costs.c - `tidemark assistant costs`: the tokens of each day, account and model (J19). */
#include "assistant/account/account.h"
#include "assistant/budget/budget.h"
#include "assistant/commands/home.h"
#include "base/clocktext.h"
#include "ledger/rows.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    DAYS_DEFAULT = 30,
    NAME_BYTES = sizeof((struct tide_assistant_account *)0)->name,
};

struct listing {
    struct cli *cli;
    tide_rows db;
    bool accounts; /* their table is there */
    tide_json list;
    tide_status rc;
};

static void day_text(uint64_t day, char out[16])
{
    char full[TIDE_TIME_TEXT_BYTES];
    tide_time_format(day * TIDE_ASSISTANT_DAY_MS, full);
    (void)snprintf(out, 16, "%.10s", full);
}

/* What an account cost is shown as long as it is counted, also when its row is gone: a home that was put
 * together from a backup, or an account that was removed while a call ran. */
static void name_of(struct listing *listing, uint32_t number, char name[NAME_BYTES])
{
    struct tide_assistant_account account = {.name = ""};
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = TIDE_NOT_FOUND;
    if (listing->accounts)
        rc = tide_assistant_account_get(listing->db, number, &account, &err);
    if (rc == TIDE_NOT_FOUND) {
        (void)snprintf(name, NAME_BYTES, "(removed, %" PRIu32 ")", number);
        return;
    }
    (void)snprintf(name, NAME_BYTES, "%s", account.name);
    if (rc != TIDE_OK && listing->rc == TIDE_OK) {
        listing->rc = rc;
        listing->cli->err = err;
    }
}

static void show_cost(const struct tide_assistant_cost *cost, void *arg)
{
    struct listing *listing = arg;
    struct cli *cli = listing->cli;
    char name[NAME_BYTES];
    tide_auto_json row = {.value = NULL};
    char day[16];
    day_text(cost->day, day);
    name_of(listing, cost->account, name);
    cli_cell(cli, "%s", day);
    cli_cell(cli, "%s", name);
    cli_cell(cli, "%s", cost->model);
    cli_cell(cli, "%" PRIu64, cost->calls);
    cli_cell(cli, "%" PRIu64, cost->in_tokens);
    cli_cell(cli, "%" PRIu64, cost->out_tokens);
    cli_cell(cli, "%" PRIu64, cost->estimated);
    tide_json_object(&row);
    tide_json_set_cstr(&row, "day", day);
    tide_json_set_cstr(&row, "account", name);
    tide_json_set_cstr(&row, "model", cost->model);
    tide_json_set_u64(&row, "calls", cost->calls);
    tide_json_set_u64(&row, "in_tokens", cost->in_tokens);
    tide_json_set_u64(&row, "out_tokens", cost->out_tokens);
    tide_json_set_u64(&row, "estimated", cost->estimated);
    tide_json_set_u64(&row, "lost", cost->lost);
    tide_json_append(&listing->list, &row);
}

tide_status cli_assistant_costs(struct cli *cli)
{
    static const char *const headings[] = {"DAY (UTC)", "ACCOUNT", "MODEL",    "CALLS",
                                           "IN",        "OUT",     "ESTIMATED"};
    struct listing listing = {.cli = cli};
    uint64_t days = DAYS_DEFAULT;
    bool has = false;
    tide_status rc = TIDE_OK;
    if (cli_flag(cli, "days") != NULL)
        rc = cli_number(cli, cli_flag(cli, "days"), "--days", &days);
    if (rc == TIDE_OK)
        rc = cli_ledger_read(cli);
    if (rc != TIDE_OK)
        return rc;
    const uint64_t today = tide_assistant_day_of(cli->now_unix_ms);
    listing.db = tide_ledger_rows(cli->ledger);
    tide_json_array(&listing.list);
    cli_table_begin(cli, headings, 7);
    rc = tide_rows_has(listing.db, "assistant_budget_cost", "the costs", &has, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_rows_has(listing.db, "assistant_account", "the costs", &listing.accounts,
                           &cli->err);
    if (rc == TIDE_OK && has)
        rc = tide_assistant_budget_costs(listing.db, 0, days > today ? 0 : today + 1 - days,
                                         show_cost, &listing, &cli->err);
    cli_table_end(cli, "No call to a chat model was counted.");
    tide_json_set(&cli->json, "costs", &listing.list);
    return rc == TIDE_OK ? listing.rc : rc;
}
