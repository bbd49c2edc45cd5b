/* ledger_copy.c - `tidemark ledger copy`. */
#include "cli/serve/serve.h"

#include "base/clocktext.h"
#include "ledger/copy/copy.h"
#include "ledger/notices.h"
#include "ledger/rows.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- the systems' rows ---- */

tide_status cli_systems_tables(struct cli *cli)
{
    tide_tx *tx = NULL;
    TIDE_TRY(tide_tx_begin(cli->ledger, &tx, &cli->err));
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && cli->systems[i] != NULL; i++)
        rc = tide_system_tables(cli->systems[i], tide_tx_rows(tx), &cli->err);
    if (rc == TIDE_OK)
        rc = cli_serve_tables(tide_tx_rows(tx), &cli->err);
    if (rc == TIDE_OK)
        rc = tide_notices_tables(tide_tx_rows(tx), &cli->err);
    if (rc == TIDE_OK)
        return tide_tx_commit(tx, &cli->err);
    tide_tx_rollback(tx);
    return rc;
}

static tide_status make_tables(const void *system, tide_rows db, tide_error *err)
{
    return tide_system_tables(system, db, err);
}

static tide_status make_serve(const void *none, tide_rows db, tide_error *err)
{
    (void)none;
    return cli_serve_tables(db, err);
}

static tide_status make_notices(const void *none, tide_rows db, tide_error *err)
{
    (void)none;
    return tide_notices_tables(db, err);
}

/* ---- telling ---- */

static void show_progress(const struct tide_copy_progress *progress, void *arg)
{
    struct cli *cli = arg;
    static const char *const steps[] = {"checking", "copying", "comparing"};
    const unsigned percent =
        progress->rows_all == 0 ? 0 : (unsigned)(progress->rows * 100 / progress->rows_all);
    cli_progress(cli, "%s %s: %" PRIu64 " of %" PRIu64 " rows (%u %%)", steps[progress->step],
                 progress->table[0] == '\0' ? "the source" : progress->table, progress->rows,
                 progress->rows_all, percent);
}

static const char *compared(const struct tide_copy_table *table)
{
    return table->hash_from[0] == '\0' ? "-" : table->equal ? "equal" : "DIFFERENT";
}

static void show_tables(struct cli *cli, const struct tide_copy_report *report, bool both)
{
    static const char *const headings[] = {"TABLE", "ROWS", "IN TARGET", "COMPARED"};
    tide_json list;
    tide_json_array(&list);
    cli_table_begin(cli, headings, both ? 4 : 2);
    for (size_t i = 0; i < report->tables_count; i++) {
        const struct tide_copy_table *table = &report->tables[i];
        tide_json entry;
        tide_json_object(&entry);
        tide_json_set_cstr(&entry, "table", table->name);
        tide_json_set_u64(&entry, "rows", table->rows_from);
        if (both) {
            tide_json_set_u64(&entry, "rows_to", table->rows_to);
            tide_json_set_bool(&entry, "equal", table->equal);
            tide_json_set_cstr(&entry, "sha256", table->hash_from);
            tide_json_set_cstr(&entry, "sha256_to", table->hash_to);
            if (table->difference[0] != '\0')
                tide_json_set_cstr(&entry, "difference", table->difference);
        }
        tide_json_append(&list, &entry);
        if (table->rows_from == 0 && table->rows_to == 0 && !cli->verbose)
            continue; /* most ledgers do not use most tables */
        cli_cell(cli, "%s", table->name);
        cli_cell(cli, "%" PRIu64, table->rows_from);
        if (both) {
            cli_cell(cli, "%" PRIu64, table->rows_to);
            cli_cell(cli, "%s", compared(table));
        }
    }
    cli_table_end(cli, "There are no rows.");
    for (size_t i = 0; i < report->tables_count; i++)
        if (report->tables[i].difference[0] != '\0')
            cli_print(cli, "%s: %s\n", report->tables[i].name, report->tables[i].difference);
    if (report->left_out[0] != '\0')
        cli_print(cli, "Not copied, because these tables do not belong to Tidemark: %s\n",
                  report->left_out);
    tide_json_set(&cli->json, "tables", &list);
    tide_json_set_u64(&cli->json, "rows", report->rows);
    tide_json_set_cstr(&cli->json, "left_out", report->left_out);
}

static void show_copied(struct cli *cli, const struct tide_copy_report *report)
{
    const double seconds = (double)report->copy_ms / 1000;
    cli_print(cli,
              "copied %" PRIu64 " rows in %.1f s (%.0f rows/s); compared both sides in %.1f s: "
              "equal\n",
              report->rows_copied, seconds,
              seconds > 0 ? (double)report->rows_copied / seconds : 0.0,
              (double)report->compare_ms / 1000);
    if (report->rows_resumed > 0)
        cli_print(cli, "%" PRIu64 " more rows were already there from an unfinished run.\n",
                  report->rows_resumed);
    if (report->restarted)
        cli_print(cli, "What an unfinished copy had left was discarded first.\n");
    cli_print(cli, "The source was not changed. Archives and sign-ins are not part of a ledger.\n");
    if (tide_ledger_is_postgres(cli->arguments[1]))
        cli_print(cli,
                  "`tidemark ledger migrate --role NAME` grants a role the rights of a worker.\n");
    tide_json_set_u64(&cli->json, "rows_copied", report->rows_copied);
    tide_json_set_u64(&cli->json, "rows_resumed", report->rows_resumed);
    tide_json_set_bool(&cli->json, "restarted", report->restarted);
    tide_json_set_u64(&cli->json, "copy_ms", report->copy_ms);
    tide_json_set_u64(&cli->json, "compare_ms", report->compare_ms);
    tide_json_set_bool(&cli->json, "equal", report->equal);
}

static tide_status advise(struct cli *cli, tide_status rc)
{
    switch (rc) {
    case TIDE_CANCELED:
    case TIDE_NETWORK:
        return cli_hint(cli, rc, "Run the same command again: it resumes.");
    case TIDE_DISK_FULL:
        return cli_hint(cli, rc, "Free space there and run the same command again: it resumes.");
    case TIDE_NOT_FOUND:
        return cli_hint(cli, rc, "Name the state.db of a home, or a postgres:// URL.");
    case TIDE_BUSY:
        return cli_hint(cli, rc, "Then run the same command again.");
    case TIDE_NEWER:
        return cli_hint(cli, rc, "Use the newer version of tidemark.");
    case TIDE_AUTH:
        cli->exit_code = CLI_EXIT_FAILED; /* the database refuses, not an account's provider */
        return cli_hint(cli, rc, "Give user and password in PGUSER and ~/.pgpass.");
    case TIDE_INVALID:
        return cli_hint(
            cli, rc,
            "Only the owner of the database can copy into PostgreSQL. The source was not changed.");
    default:
        return cli_hint(cli, rc, "The source was not changed.");
    }
}

/* ---- the command ---- */

tide_status cli_ledger_copy(struct cli *cli)
{
    const bool verify = cli_flag(cli, "verify") != NULL;
    const bool dry_run = cli_flag(cli, "dry-run") != NULL;
    char from[300], to[300];
    for (unsigned i = 0; i < 2; i++) {
        const tide_status refused = cli_url_refuse_password(cli, cli->arguments[i]);
        if (refused != TIDE_OK)
            return refused;
    }
    struct tide_copy_report *report = tide_mem_new(cli->mem, sizeof *report);
    if (report == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory and try again.", "out of memory");
    struct tide_copy_system systems[TIDE_SYSTEMS_MAX + 2];
    size_t systems_count = tide_systems_count(cli->systems);
    for (size_t i = 0; i < systems_count; i++)
        systems[i] = (struct tide_copy_system){.name = cli->systems[i]->name,
                                               .make = make_tables,
                                               .arg = cli->systems[i],
                                               .stays = cli->systems[i]->table_stays};
    systems[systems_count++] =
        (struct tide_copy_system){.name = CLI_SERVE_TABLES, .make = make_serve};
    systems[systems_count++] =
        (struct tide_copy_system){.name = TIDE_NOTICES_TABLES, .make = make_notices};
    const struct tide_ledger_copy copy = {
        .from = cli->arguments[0],
        .to = cli->arguments[1],
        .systems = systems,
        .systems_count = systems_count,
        .restart = cli_flag(cli, "restart") != NULL,
        .cancel = cli_interruptible(cli),
        .progress = show_progress,
        .progress_arg = cli,
    };
    tide_status rc = TIDE_OK;
    if (verify && (dry_run || copy.restart))
        rc = cli_wrong(cli, "Give one of them.",
                       "--verify copies nothing and cannot be used with --dry-run or --restart");
    else if (verify)
        rc = tide_ledger_compare(cli->world, &copy, cli->mem, report, &cli->err);
    else if (dry_run)
        rc = tide_ledger_copy_count(cli->world, &copy, cli->mem, report, &cli->err);
    else
        rc = tide_ledger_copy(cli->world, &copy, cli->mem, report, &cli->err);
    cli_progress(cli, NULL);
    tide_ledger_name(copy.from, from, sizeof from);
    tide_ledger_name(copy.to, to, sizeof to);
    tide_json_set_cstr(&cli->json, "from", from);
    tide_json_set_cstr(&cli->json, "to", to);
    if (rc == TIDE_OK) {
        show_tables(cli, report, !dry_run);
        if (dry_run)
            cli_print(cli, "%" PRIu64 " rows would be copied to %s; nothing was written.\n",
                      report->rows, to);
        else if (verify)
            cli_print(cli, report->equal ? "The two ledgers are equal.\n"
                                         : "The two ledgers are DIFFERENT.\n");
        else
            show_copied(cli, report);
        if (verify)
            tide_json_set_bool(&cli->json, "equal", report->equal);
        cli->exit_code = verify && !report->equal ? CLI_EXIT_FAILED : CLI_EXIT_DONE;
    }
    tide_mem_free(cli->mem, report, sizeof *report);
    return advise(cli, rc);
}
