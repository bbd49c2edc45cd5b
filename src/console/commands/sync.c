/* sync.c - `tidemark console sites|backfill|sync` (B1-B11). */
#include "console/commands/fetch.h"
#include "console/commands/home.h"

#include <stdio.h>
#include <string.h>

/* ---- the sites of a run ---- */

static void take_site(const struct tide_console_site *site, void *arg)
{
    struct console_fetch *fetch = arg;
    if (fetch->sites_count < TIDE_CONSOLE_SITES_MAX)
        fetch->sites[fetch->sites_count++] = *site;
}

/* All sites that were added.  A home without a ledger has none. */
static tide_status read_sites(struct console_fetch *fetch)
{
    struct cli *cli = fetch->cli;
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_NOT_FOUND) {
        cli->hint[0] = '\0';
        return TIDE_OK;
    }
    return rc == TIDE_OK ? tide_console_look_sites(cli->ledger, take_site, fetch, &cli->err) : rc;
}

/* Those of a sign-in. */
static tide_status sites_of(struct console_fetch *fetch, const char *name)
{
    struct cli *cli = fetch->cli;
    if (cli->arguments_count > 0)
        return cli_wrong(cli, "Give one of them.", "both SITE and --name");
    const tide_status rc = read_sites(fetch);
    size_t count = 0;
    for (size_t i = 0; i < fetch->sites_count; i++)
        if (strcmp(fetch->sites[i].account_name, name) == 0)
            fetch->sites[count++] = fetch->sites[i];
    fetch->sites_count = count;
    if (rc == TIDE_OK && count == 0)
        return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark account list` shows the accounts.",
                        "there is no site with the sign-in \"%.100s\"", name);
    return rc;
}

/* Those that the command names. */
static tide_status named_sites(struct console_fetch *fetch)
{
    struct cli *cli = fetch->cli;
    tide_status rc = read_sites(fetch);
    const size_t known = fetch->sites_count;
    size_t count = 0;
    for (unsigned i = 0; rc == TIDE_OK && i < cli->arguments_count; i++) {
        size_t at = count; /* those before it are chosen */
        while (at < known && strcmp(fetch->sites[at].site, cli->arguments[i]) != 0)
            at++;
        if (at == known)
            return cli_fail(cli, TIDE_NOT_FOUND,
                            "`tidemark console sites` lists the sites; `tidemark account add "
                            "console SITE` adds one.",
                            "site %.200s was not added", cli->arguments[i]);
        const struct tide_console_site other = fetch->sites[count];
        fetch->sites[count++] = fetch->sites[at];
        fetch->sites[at] = other;
    }
    fetch->sites_count = count;
    return rc;
}

/* Ends a command that fetches; `rc` says whether its jobs could be added. */
static tide_status run_and_report(struct console_fetch *fetch, tide_status rc)
{
    if (rc == TIDE_OK)
        rc = console_fetch_run(fetch, NULL);
    if (fetch != NULL)
        console_fetch_report(fetch, rc);
    const tide_status closed = console_fetch_done(fetch);
    return rc == TIDE_OK ? closed : rc;
}

/* ---- sites ---- */

struct listing {
    struct cli *cli;
    const struct console_fetch *fetch;
    tide_json list;
};

static void show_site(const char *site, const char *level, void *arg)
{
    struct listing *listing = arg;
    bool added = false;
    tide_json one;
    for (size_t i = 0; i < listing->fetch->sites_count; i++)
        added = added || strcmp(listing->fetch->sites[i].site, site) == 0;
    cli_cell(listing->cli, "%s", site);
    cli_cell(listing->cli, "%s", level);
    cli_cell(listing->cli, "%s", added ? "yes" : "");
    tide_json_object(&one);
    tide_json_set_cstr(&one, "site", site);
    tide_json_set_cstr(&one, "level", level);
    tide_json_set_bool(&one, "added", added);
    tide_json_append(&listing->list, &one);
}

static tide_status show_listed(const struct console_fetch *fetch)
{
    struct cli *cli = fetch->cli;
    static const char *const headings[] = {"SITE", "LEVEL", "ADDED"};
    struct listing listing = {.cli = cli, .fetch = fetch};
    tide_json_array(&listing.list);
    cli_table_begin(cli, headings, 3);
    const tide_status rc = tide_console_look_listed(cli->ledger, fetch->work.accounts[0].account,
                                                    show_site, &listing, &cli->err);
    cli_table_end(cli, "this sign-in cannot read any property");
    tide_json_set(&cli->json, "sites", &listing.list);
    return rc;
}

static tide_status find_account(struct cli *cli, const char *name)
{
    char endpoint[TIDE_ENDPOINT_BYTES];
    const tide_status rc = cli->ledger == NULL
                               ? TIDE_NOT_FOUND
                               : tide_system_account_look(&tide_console_system, cli->ledger, name,
                                                          endpoint, &cli->err);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    return cli_fail(cli, rc, "Add it with `tidemark account add console SITE...`.",
                    "there is no sign-in \"%.100s\" of Search Console", name);
}

tide_status cli_console_sites(struct cli *cli)
{
    const char *name = cli_flag(cli, "name") == NULL ? "console" : cli_flag(cli, "name");
    struct console_fetch *fetch = console_fetch_new(cli);
    const bool quiet = cli->quiet;
    tide_status rc = fetch == NULL ? TIDE_NO_MEMORY : read_sites(fetch);
    if (rc == TIDE_OK)
        rc = find_account(cli, name);
    if (rc == TIDE_OK) {
        console_fetch_only(fetch, TIDE_CONSOLE_SITES_KIND);
        cli->quiet = true; /* one short call needs no progress */
        rc = console_fetch_run(fetch, name);
        cli->quiet = quiet;
    }
    if (rc == TIDE_OK && cli->exit_code == CLI_EXIT_DONE)
        rc = show_listed(fetch);
    else if (rc == TIDE_OK)
        cli_print(cli, "The properties could not be read; `tidemark jobs list --state failed` says "
                       "why.\n");
    const tide_status closed = console_fetch_done(fetch);
    return rc == TIDE_OK ? closed : rc;
}

/* ---- backfill ---- */

static tide_status number_flag(struct cli *cli, const char *name, uint64_t max, unsigned *out)
{
    uint64_t number = 0;
    if (cli_flag(cli, name) == NULL)
        return TIDE_OK;
    char what[40];
    (void)snprintf(what, sizeof what, "--%s", name);
    TIDE_TRY(cli_number(cli, cli_flag(cli, name), what, &number));
    if (number == 0 || number > max)
        return cli_wrong(cli, "Give a number in that range.", "--%s must be from 1 to %llu", name,
                         (unsigned long long)max);
    *out = (unsigned)number;
    return TIDE_OK;
}

static tide_status copy_date(struct cli *cli, const char *flag, char out[16])
{
    const char *value = cli_flag(cli, flag);
    if (value == NULL)
        return TIDE_OK;
    if (strlen(value) != 10)
        return cli_wrong(cli, "Write a day such as 2026-01-31.", "--%s %.40s is not a date", flag,
                         value);
    (void)snprintf(out, 16, "%s", value);
    return TIDE_OK;
}

static tide_status wanted_run(struct cli *cli, struct tide_console_run *wanted)
{
    uint64_t number = 0;
    tide_status rc = copy_date(cli, "from", wanted->from);
    if (rc == TIDE_OK)
        rc = copy_date(cli, "to", wanted->to);
    if (rc == TIDE_OK && cli_flag(cli, "type") != NULL)
        rc = tide_sc_types_parse(tide_text_of(cli_flag(cli, "type")), &wanted->types, &cli->err);
    if (rc == TIDE_OK && cli_flag(cli, "dimensions") != NULL)
        rc = tide_sc_dimensions_parse(tide_text_of(cli_flag(cli, "dimensions")),
                                      &wanted->dimensions, &cli->err);
    if (rc == TIDE_INVALID)
        cli->exit_code = CLI_EXIT_USAGE;
    rc = cli_hint(cli, rc, "`tidemark console backfill --help` lists the values.");
    if (rc == TIDE_OK && cli_flag(cli, "days") != NULL) {
        rc = cli_number(cli, cli_flag(cli, "days"), "--days", &number);
        wanted->days = (uint32_t)number;
        if (rc == TIDE_OK && (number == 0 || number > TIDE_CONSOLE_DAYS_MAX))
            rc = cli_wrong(cli, "Google keeps 16 months.", "--days must be from 1 to %d",
                           TIDE_CONSOLE_DAYS_MAX);
    }
    if (rc == TIDE_OK && cli_flag(cli, "rows") != NULL) {
        rc = cli_number(cli, cli_flag(cli, "rows"), "--rows", &number);
        wanted->row_limit = (uint32_t)number;
        if (rc == TIDE_OK && (number == 0 || number > TIDE_SC_ROWS_MAX))
            rc = cli_wrong(cli, "Give a number in that range.", "--rows must be from 1 to %d",
                           TIDE_SC_ROWS_MAX);
    }
    wanted->no_totals = cli_flag(cli, "no-totals") != NULL;
    wanted->again = cli_flag(cli, "again") != NULL;
    return rc;
}

tide_status cli_console_backfill(struct cli *cli)
{
    struct tide_console_run wanted = {.site = cli->arguments[0]};
    struct console_fetch *fetch = console_fetch_new(cli);
    tide_status rc = fetch == NULL ? TIDE_NO_MEMORY : wanted_run(cli, &wanted);
    if (rc == TIDE_OK)
        rc = number_flag(cli, "workers", TIDE_CONSOLE_WORKERS_MAX, &fetch->options.workers);
    if (rc == TIDE_OK)
        rc = number_flag(cli, "batch", TIDE_CONSOLE_BATCH_MAX, &fetch->options.batch_max);
    if (rc == TIDE_OK)
        rc = named_sites(fetch);
    if (rc == TIDE_OK)
        rc = cli_hint(cli, console_fetch_add(fetch, 0, &wanted),
                      "`tidemark console backfill --help` lists the values.");
    return run_and_report(fetch, rc);
}

/* ---- sync ---- */

struct series {
    struct console_fetch *fetch;
    size_t site;
    tide_status rc;
};

/* Every series that was fetched once is synced. */
static void add_series(const struct tide_console_set *set, uint64_t days, uint64_t rows, void *arg)
{
    struct series *series = arg;
    (void)days;
    (void)rows;
    const struct tide_console_run wanted = {
        .types = 1u << set->type, .dimensions = set->dimensions, .sync = true};
    if (series->rc == TIDE_OK)
        series->rc = console_fetch_add(series->fetch, series->site, &wanted);
}

static tide_status add_site(struct console_fetch *fetch, size_t site)
{
    struct cli *cli = fetch->cli;
    struct series series = {.fetch = fetch, .site = site};
    tide_console_store *store = NULL;
    tide_status rc = console_home_store(cli, fetch->sites[site].site, &store);
    if (rc == TIDE_NOT_FOUND && cli->arguments_count == 0) {
        cli->err = (tide_error){TIDE_OK, 0, ""}; /* added but never fetched */
        cli->hint[0] = '\0';
        return TIDE_OK;
    }
    if (rc == TIDE_OK)
        rc = tide_console_store_sets(store, add_series, &series, &cli->err);
    (void)tide_console_store_close(store, NULL);
    return rc == TIDE_OK ? series.rc : rc;
}

/* Reads the flags and finds the sites. */
static tide_status sync_wanted(struct cli *cli, struct console_fetch *fetch)
{
    const char *name = cli_flag(cli, "name");
    if (fetch == NULL)
        return TIDE_NO_MEMORY;
    TIDE_TRY(number_flag(cli, "workers", TIDE_CONSOLE_WORKERS_MAX, &fetch->options.workers));
    if (name != NULL)
        return sites_of(fetch, name);
    return cli->arguments_count > 0 ? named_sites(fetch) : read_sites(fetch);
}

tide_status cli_console_sync_check(struct cli *cli)
{
    struct console_fetch *fetch = console_fetch_new(cli);
    const tide_status rc = sync_wanted(cli, fetch);
    const tide_status closed = console_fetch_done(fetch);
    return rc == TIDE_OK ? closed : rc;
}

tide_status cli_console_sync(struct cli *cli)
{
    struct console_fetch *fetch = console_fetch_new(cli);
    tide_status rc = sync_wanted(cli, fetch);
    for (size_t i = 0; rc == TIDE_OK && i < fetch->sites_count; i++)
        rc = add_site(fetch, i);
    if (rc == TIDE_OK && fetch->jobs_count == 0)
        rc = cli_fail(cli, TIDE_NOT_FOUND, "Start with `tidemark console backfill SITE`.",
                      "nothing has been fetched yet");
    if (rc == TIDE_OK && cli_flag(cli, "no-wait") != NULL) {
        rc = console_fetch_ask(fetch);
        const tide_status closed = console_fetch_done(fetch);
        return rc == TIDE_OK ? closed : rc;
    }
    return run_and_report(fetch, rc);
}
