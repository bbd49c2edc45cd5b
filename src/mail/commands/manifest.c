/* manifest.c - `tidemark mail manifest`: what was removed from Gmail; safe while other processes
 * run (M14). */
#include "mail/commands/home.h"

#include "base/clocktext.h"
#include "mail/manifest.h"

#include <inttypes.h>
#include <stdio.h>

#define WHAT "the manifests"

struct listing {
    struct cli *cli;
    tide_rows db;
    const char *account; /* NULL: all */
    int state;           /* -1: all */
    uint64_t shown;
    uint64_t last;
    tide_json list;
};

/* The address of an account; "" if the account was removed. */
static void email_of(tide_rows db, uint32_t account, char email_out[256])
{
    email_out[0] = '\0';
    (void)tide_rows_copy(db, WHAT, email_out, 256, NULL, "SELECT name FROM account WHERE id = ?1",
                         account);
}

/* ---- the runs ---- */

static void run_json(const struct tide_manifest *run, const char *email, tide_json *one)
{
    tide_json_object(one);
    tide_json_set_u64(one, "manifest", run->id);
    tide_json_set_cstr(one, "account", email);
    tide_json_set_cstr(one, "mode", tide_removal_mode_name(run->mode));
    tide_json_set_cstr(one, "query", run->query);
    tide_json_set_u64(one, "made_unix_ms", run->made_ms);
    tide_json_set_u64(one, "ended_unix_ms", run->ended_ms);
    tide_json_set_u64(one, "watermark_unix_ms", run->tidemark_ms);
    for (int state = TIDE_REMOVAL_PLANNED; state <= TIDE_REMOVAL_RESTORED; state++) {
        char key[32];
        (void)snprintf(key, sizeof key, "%s", tide_removal_state_name((tide_removal_state)state));
        tide_json_set_u64(one, key, run->entries[state]);
        (void)snprintf(key, sizeof key, "%s_bytes",
                       tide_removal_state_name((tide_removal_state)state));
        tide_json_set_u64(one, key, run->bytes[state]);
    }
}

static void run_row(const struct tide_manifest *run, void *arg)
{
    struct listing *listing = arg;
    char email[256];
    char when[32];
    tide_json one;
    email_of(listing->db, run->account, email);
    if (listing->account != NULL && strcmp(listing->account, email) != 0)
        return;
    listing->shown++;
    cli_cell(listing->cli, "%" PRIu64, run->id);
    cli_cell(listing->cli, "%s", cli_time(run->made_ms, when));
    cli_cell(listing->cli, "%s", email);
    cli_cell(listing->cli, "%s", tide_removal_mode_name(run->mode));
    cli_cell(listing->cli, "%s", run->ended_ms == 0 ? "unfinished" : "ended");
    cli_cell(listing->cli, "%" PRIu64,
             run->entries[TIDE_REMOVAL_PLANNED] + run->entries[TIDE_REMOVAL_ASKED]);
    cli_cell(listing->cli, "%" PRIu64, run->entries[TIDE_REMOVAL_REMOVED]);
    cli_cell(listing->cli, "%" PRIu64, run->entries[TIDE_REMOVAL_REFUSED]);
    cli_cell(listing->cli, "%" PRIu64, run->entries[TIDE_REMOVAL_RESTORED]);
    cli_cell(listing->cli, "%s", run->query);
    run_json(run, email, &one);
    tide_json_append(&listing->list, &one);
}

static tide_status list_runs(struct listing *listing)
{
    static const char *const headings[] = {"ID",   "MADE",    "ACCOUNT", "MODE",     "STATE",
                                           "LEFT", "REMOVED", "REFUSED", "RESTORED", "QUERY"};
    cli_table_begin(listing->cli, headings, 10);
    const tide_status rc = tide_manifest_list(listing->db, 0, run_row, listing, &listing->cli->err);
    cli_table_end(listing->cli, "no mail has been removed from Gmail");
    tide_json_set(&listing->cli->json, "manifests", &listing->list);
    return rc;
}

/* ---- the messages of one ---- */

static bool entry_row(const struct tide_removal *entry, void *arg)
{
    struct listing *listing = arg;
    char when[32];
    tide_json one;
    listing->shown++;
    listing->last = entry->id;
    cli_cell(listing->cli, "%s", entry->gmail_id);
    cli_cell(listing->cli, "%s", cli_time((uint64_t)entry->internal_ms, when));
    cli_cell(listing->cli, "%" PRIu64, entry->bytes);
    cli_cell(listing->cli, "%s", tide_removal_state_name(entry->state));
    cli_cell(listing->cli, "%s%s", entry->reason, entry->restored_id);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "id", entry->gmail_id);
    tide_json_set_i64(&one, "internal_unix_ms", entry->internal_ms);
    tide_json_set_u64(&one, "bytes", entry->bytes);
    tide_json_set_cstr(&one, "labels", entry->labels);
    tide_json_set_cstr(&one, "state", tide_removal_state_name(entry->state));
    tide_json_set_cstr(&one, "reason", entry->reason);
    tide_json_set_cstr(&one, "restored_id", entry->restored_id);
    tide_json_set_u64(&one, "changed_unix_ms", entry->changed_ms);
    tide_json_append(&listing->list, &one);
    return listing->shown < CLI_LIST_MAX;
}

static tide_status list_entries(struct listing *listing, uint64_t id)
{
    static const char *const headings[] = {"MESSAGE", "DATE", "BYTES", "STATE", "REASON OR NEW ID"};
    struct cli *cli = listing->cli;
    struct tide_manifest run;
    char email[256];
    tide_status rc = tide_manifest_get(listing->db, id, &run, &cli->err);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "`tidemark mail manifest` lists the runs.");
    email_of(listing->db, run.account, email);
    cli_table_begin(cli, headings, 5);
    uint64_t shown = UINT64_MAX;
    while (rc == TIDE_OK && shown != listing->shown && listing->shown < CLI_LIST_MAX) {
        shown = listing->shown;
        rc = tide_removal_list(listing->db, id, listing->state, listing->last, 1000, entry_row,
                               listing, &cli->err);
    }
    cli_table_end(cli, "no messages of this run");
    tide_json one;
    run_json(&run, email, &one);
    tide_json_set(&one, "messages", &listing->list);
    tide_json_done(&cli->json);
    cli->json = one;
    return rc;
}

static tide_status state_of(struct cli *cli, int *state_out)
{
    const char *name = cli_flag(cli, "state");
    *state_out = -1;
    if (name == NULL)
        return TIDE_OK;
    for (int state = TIDE_REMOVAL_PLANNED; state <= TIDE_REMOVAL_RESTORED; state++)
        if (strcmp(name, tide_removal_state_name((tide_removal_state)state)) == 0)
            *state_out = state;
    if (*state_out >= 0)
        return TIDE_OK;
    cli->exit_code = CLI_EXIT_USAGE;
    return cli_fail(cli, TIDE_INVALID, "States: planned, asked, removed, refused, restored.",
                    "there is no state \"%.60s\"", name);
}

tide_status cli_mail_manifest(struct cli *cli)
{
    struct listing listing = {.cli = cli, .account = cli_flag(cli, "account")};
    uint64_t id = 0;
    bool has = false;
    TIDE_TRY(state_of(cli, &listing.state));
    if (cli->arguments_count > 0)
        TIDE_TRY(cli_number(cli, cli->arguments[0], "the manifest", &id));
    TIDE_TRY(cli_ledger_read(cli)); /* reports a missing ledger */
    listing.db = tide_ledger_rows(cli->ledger);
    tide_json_array(&listing.list);
    tide_status rc = tide_rows_has(listing.db, "mail_removal", WHAT, &has, &cli->err);
    if (rc == TIDE_OK && !has)
        rc = cli_fail(cli, TIDE_NOT_FOUND, "`tidemark mail archive` creates one.",
                      "there is no manifest yet");
    else if (rc == TIDE_OK)
        rc = cli->arguments_count > 0 ? list_entries(&listing, id) : list_runs(&listing);
    tide_json_done(&listing.list);
    return rc;
}
