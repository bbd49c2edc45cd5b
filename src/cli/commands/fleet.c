/* fleet.c - `tidemark jobs doctor`, `ledger members`, `ledger migrate` (docs/fleet.md). */
#include "cli/cli.h"

#include "base/clocktext.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

/* ---- doctor ---- */

struct visit {
    struct cli *cli;
    tide_json list;
    unsigned findings, critical, count, hidden;
};

static const char *level_name(int level)
{
    return level <= 0 ? "healthy" : level == 1 ? "warning" : "critical";
}

static bool symptom_row(const struct tide_symptom *symptom, void *arg)
{
    struct visit *visit = arg;
    struct cli *cli = visit->cli;
    tide_json json;
    visit->count++;
    visit->findings += symptom->level > 0;
    visit->critical += symptom->level > 1;
    tide_json_object(&json);
    tide_json_set_cstr(&json, "level", level_name(symptom->level));
    tide_json_set_cstr(&json, "what", symptom->what);
    tide_json_set_cstr(&json, "text", symptom->text);
    tide_json_set_cstr(&json, "advice", symptom->level > 0 ? symptom->advice : NULL);
    tide_json_append(&visit->list, &json);
    if (symptom->level > 0 || !cli->quiet)
        cli_print(cli, "%-8s  %s: %s\n", level_name(symptom->level), symptom->what, symptom->text);
    if (symptom->level > 0 && symptom->advice[0] != '\0')
        cli_print(cli, "          %s\n", symptom->advice);
    return true;
}

tide_status cli_jobs_doctor(struct cli *cli)
{
    struct visit visit = {.cli = cli};
    TIDE_TRY(cli_ledger_read(cli));
    tide_json_array(&visit.list);
    tide_status rc =
        tide_ledger_doctor(cli->ledger, cli->now_unix_ms, symptom_row, &visit, &cli->err);
    tide_json_set_bool(&cli->json, "healthy", visit.findings == 0);
    tide_json_set_u64(&cli->json, "findings", visit.findings);
    tide_json_set(&cli->json, "symptoms", &visit.list);
    if (rc != TIDE_OK)
        return cli->shared != NULL ? cli_shared_hint(cli, rc)
                                   : cli_hint(cli, rc, "Run `tidemark ledger check`.");
    if (visit.findings == 0)
        cli_print(cli, "the ledger is healthy\n");
    else
        cli_print(cli, "%u finding%s, %u of them critical\n", visit.findings,
                  visit.findings == 1 ? "" : "s", visit.critical);
    cli->exit_code = visit.findings == 0 ? CLI_EXIT_DONE : CLI_EXIT_BAD_ITEMS;
    return TIDE_OK;
}

/* ---- members ---- */

static bool member_row(const struct tide_member *member, void *arg)
{
    struct visit *visit = arg;
    struct cli *cli = visit->cli;
    char when[32];
    char owner[32];
    tide_json json;
    const bool late = !member->dead && member->until_unix_ms < cli->now_unix_ms;
    visit->count++;
    (void)snprintf(owner, sizeof owner, "%016" PRIx64, member->owner);
    tide_json_object(&json);
    tide_json_set_cstr(&json, "owner", owner);
    tide_json_set_cstr(&json, "name", member->name);
    tide_json_set_cstr(&json, "version", member->version);
    tide_json_set_u64(&json, "joined_unix_ms", member->joined_unix_ms);
    tide_json_set_u64(&json, "until_unix_ms", member->until_unix_ms);
    tide_json_set_u64(&json, "accounts", member->accounts);
    tide_json_set_u64(&json, "running", member->running);
    tide_json_set_bool(&json, "dead", member->dead);
    tide_json_append(&visit->list, &json);
    /* The list has all members that ended in the last day; the table shows the working ones. */
    if (member->dead && member->accounts + member->running == 0 && !cli->verbose) {
        visit->hidden++;
        return true;
    }
    cli_cell(cli, "%s", member->name);
    cli_cell(cli, "%s", member->version);
    cli_cell(cli, "%s", cli_time(member->joined_unix_ms, when));
    cli_cell(cli, "%s", cli_time(member->until_unix_ms, when));
    cli_cell(cli, "%" PRIu32, member->accounts);
    cli_cell(cli, "%" PRIu32, member->running);
    cli_cell(cli, "%s", member->dead ? "gone" : late ? "late" : "alive");
    return true;
}

tide_status cli_ledger_members(struct cli *cli)
{
    static const char *const headings[] = {"NAME",     "VERSION", "SINCE", "LEASE UNTIL",
                                           "ACCOUNTS", "RUNNING", "STATE"};
    struct visit visit = {.cli = cli};
    TIDE_TRY(cli_shared_only(cli));
    TIDE_TRY(cli_ledger_read(cli));
    tide_json_array(&visit.list);
    cli_table_begin(cli, headings, 7);
    tide_status rc = tide_ledger_members(cli->ledger, member_row, &visit, &cli->err);
    cli_table_end(cli, "no members work on this ledger: start `tidemark worker`");
    if (visit.hidden > 0 && !cli->quiet)
        cli_print(cli, "(%u gone in the last day: --verbose)\n", visit.hidden);
    tide_json_set(&cli->json, "members", &visit.list);
    return cli_shared_hint(cli, rc);
}

/* ---- migrate ---- */

/* Grants the rights of a worker and no others, with a function that comes with the tables. */
static tide_status grant_role(struct cli *cli, const char *role)
{
    const char *values[] = {role};
    PGconn *conn = tide_ledger_postgres(cli->ledger);
    PGresult *result = PQexecParams(conn, "SELECT tidemark.grant_worker($1::name)", 1, NULL, values,
                                    NULL, NULL, 0);
    const ExecStatusType status = PQresultStatus(result);
    const char *why = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    tide_status rc = TIDE_OK;
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        rc = cli_fail(
            cli, TIDE_INVALID,
            "Create it first (CREATE ROLE name LOGIN), and run this as the owner of the database.",
            "cannot grant rights to the role \"%.60s\": %.200s", role,
            why != NULL ? why : "the connection was lost");
    PQclear(result);
    return rc;
}

tide_status cli_ledger_migrate(struct cli *cli)
{
    const char *role = cli_flag(cli, "role");
    tide_status rc = cli_shared_only(cli);
    if (rc == TIDE_OK && role != NULL && role[0] == '\0') {
        cli->exit_code = CLI_EXIT_USAGE;
        rc = cli_fail(cli, TIDE_INVALID, "Name a role.", "--role is empty");
    }
    if (rc == TIDE_OK)
        rc = cli_shared_open(cli, false, true);
    /* The tables of the systems too: the role of a worker may not create tables. */
    if (rc == TIDE_OK)
        rc = cli_shared_hint(cli, cli_systems_tables(cli));
    if (rc == TIDE_INVALID && cli->exit_code != CLI_EXIT_USAGE)
        (void)snprintf(cli->hint, sizeof cli->hint,
                       "Check the names in the URL, and run this as the owner of the database: "
                       "only the owner can create tables and grant rights.");
    if (rc == TIDE_OK && role != NULL)
        rc = grant_role(cli, role);
    if (rc != TIDE_OK)
        return rc;
    if (!cli->quiet) {
        cli_print(cli, "the tables of %s are at version %s\n", cli_shared_name(cli), TIDE_VERSION);
        if (role != NULL)
            cli_print(cli, "role %s has the rights of a worker\n", role);
    }
    tide_json_set_cstr(&cli->json, "ledger", cli_shared_name(cli));
    tide_json_set_cstr(&cli->json, "version", TIDE_VERSION);
    tide_json_set_cstr(&cli->json, "role", role);
    return TIDE_OK;
}
