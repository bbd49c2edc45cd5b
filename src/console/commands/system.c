/* system.c - the Search Console system, as the list of systems has it (system/system.h). */
#include "console/commands/home.h"

#include "cloud/searchconsole.h"
#include "console/console.h"
#include "console/look.h"
#include "net/oauth/google.h"

#include <stdio.h>
#include <string.h>

/* ---- running ---- */

static tide_status open_console(const struct tide_system_home *home, void **state_out,
                                tide_error *err)
{
    const struct tide_console_options *wanted = home->options;
    const struct tide_console_options options = {.engine = home->engine,
                                                 .world = home->world,
                                                 .secrets = home->secrets,
                                                 .archive_dir = home->archive_dir,
                                                 .workers = wanted == NULL ? 0 : wanted->workers,
                                                 .batch_max =
                                                     wanted == NULL ? 0 : wanted->batch_max};
    tide_console *console = NULL;
    const tide_status rc = tide_console_open(&options, home->mem, &console, err);
    *state_out = console;
    return rc;
}

static tide_status close_console(void *state, tide_error *err)
{
    return tide_console_close(state, err);
}

static tide_status rest(void *state, tide_error *err)
{
    return tide_console_rest(state, err);
}

/* The rows of a copied site; with `check`, whether it has those of all its days. */
static tide_status file_units(const struct tide_system_copy *copy, const char *path, bool check,
                              uint64_t *rows_out, tide_error *err)
{
    const char *end = strrchr(path, '.');
    if (end == NULL || strcmp(end, ".db") != 0)
        return TIDE_OK; /* not a site */
    return tide_console_store_rows(copy->world, path, check, copy->mem, rows_out, err);
}

/* ---- accounts: a sign-in under a name, and its sites ---- */

static tide_status account_check(struct cli *cli, const char *named,
                                 struct tide_account_request *request)
{
    tide_status rc = TIDE_OK;
    request->name = named == NULL ? "console" : named;
    if (request->name[0] == '\0' || strlen(request->name) > 100 ||
        strpbrk(request->name, "/\\ \t") != NULL)
        return cli_wrong(cli, "Give a short name without spaces and slashes.",
                         "\"%.100s\" is not a name of a sign-in", request->name);
    for (size_t i = 0; rc == TIDE_OK && i < request->subjects_count; i++)
        rc = tide_console_site_check(request->subjects[i], &cli->err);
    tide_json_set_u64(&cli->json, "sites", request->subjects_count);
    return cli_hint(cli, rc, "`tidemark console sites` shows how Google spells them.");
}

/* Which of the wanted sites were seen. */
struct readable {
    const struct tide_account_request *request;
    bool seen[CLI_ARGUMENTS_MAX];
};

static void see_site(const char *site, const char *level, void *arg)
{
    struct readable *readable = arg;
    for (size_t i = 0; i < readable->request->subjects_count; i++)
        if (strcmp(readable->request->subjects[i], site) == 0)
            readable->seen[i] = strcmp(level, "siteUnverifiedUser") != 0;
}

/* Asks the server for the properties of the sign-in (B11).  A site that it cannot read is added all the
 * same: its owner may share it later. */
static tide_status account_try(struct cli *cli, const struct tide_account_request *request,
                               tide_text bearer)
{
    struct readable readable = {.request = request};
    tide_json unreadable;
    const tide_status rc = tide_searchconsole_try(
        cli->world, request->endpoint[0] == '\0' ? NULL : request->endpoint, bearer, cli->mem,
        cli_interruptible(cli), see_site, &readable, &cli->err);
    if (rc != TIDE_OK)
        return rc;
    tide_json_array(&unreadable);
    for (size_t i = 0; i < request->subjects_count; i++) {
        if (readable.seen[i])
            continue;
        tide_json_append_cstr(&unreadable, request->subjects[i]);
        if (!cli->want_json)
            (void)fprintf(stderr,
                          "tidemark: warning: this sign-in cannot read %.200s.\n"
                          "          Get access in Search Console; `tidemark console sites` lists "
                          "the sites that it can read.\n",
                          request->subjects[i]);
    }
    tide_json_set(&cli->json, "unreadable", &unreadable);
    return TIDE_OK;
}

static tide_status subject_remove(const struct tide_system_home *home, const char *site,
                                  tide_error *err)
{
    return tide_console_site_remove(home->engine, home->world, home->mem, site, err);
}

/* ---- status: the series of all sites of the sign-in ---- */

struct standing {
    const struct tide_system_home *home;
    tide_ledger *ledger;
    const char *name;
    const struct tide_console_site *site;
    struct tide_account_status *out;
    bool started; /* a series was seen */
    bool none;    /* one of them has no tidemark yet */
    tide_status rc;
    tide_error *err;
};

static void take_series(const struct tide_console_set *set, uint64_t days, uint64_t rows, void *arg)
{
    struct standing *standing = arg;
    struct tide_account_status *out = standing->out;
    struct tide_console_mark mark = {.floor = ""};
    (void)days;
    if (standing->rc == TIDE_OK)
        standing->rc =
            tide_console_look_mark(standing->ledger, standing->site, set, &mark, standing->err);
    standing->none = standing->none || mark.tidemark[0] == '\0';
    /* The earliest one: dates sort like text. */
    if (!standing->started || strcmp(mark.tidemark, out->tidemark) < 0)
        (void)snprintf(out->tidemark, sizeof out->tidemark, "%s", mark.tidemark);
    standing->started = true;
    out->stored += rows;
    out->left += mark.days_left;
    out->gaps += mark.days_left > 0 ? 1 : 0;
}

/* A site without a file was added and never fetched. */
static void take_site(const struct tide_console_site *site, void *arg)
{
    struct standing *standing = arg;
    char dir[4096 + 16];
    tide_console_store *store = NULL;
    tide_error why = {TIDE_OK, 0, ""};
    if (standing->rc != TIDE_OK || strcmp(site->account_name, standing->name) != 0)
        return;
    (void)snprintf(dir, sizeof dir, "%s/console", standing->home->archive_dir);
    const struct tide_console_store_options options = {
        .dir = dir, .site = site->site, .world = standing->home->world, .read_only = true};
    standing->site = site;
    tide_status rc = tide_console_store_open(&options, standing->home->mem, &store, &why);
    if (rc == TIDE_OK)
        rc = tide_console_store_sets(store, take_series, standing, &why);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        (void)snprintf(standing->out->note, sizeof standing->out->note, "%.190s", why.text);
    (void)tide_console_store_close(store, NULL);
}

static void take_refusal(const char *site, const char *reason, uint64_t since_unix_ms, void *arg)
{
    struct standing *standing = arg;
    (void)since_unix_ms;
    (void)snprintf(standing->out->note, sizeof standing->out->note, "%.60s is refused: %.100s",
                   site, reason);
}

static tide_status status(const struct tide_system_home *home, tide_ledger *ledger,
                          const struct tide_account_row *account, struct tide_account_status *out,
                          tide_error *err)
{
    struct standing standing = {
        .home = home, .ledger = ledger, .name = account->name, .out = out, .err = err};
    tide_status rc = tide_console_look_sites(ledger, take_site, &standing, err);
    if (rc == TIDE_OK)
        rc = standing.rc;
    if (rc == TIDE_OK)
        rc = tide_console_look_refused(ledger, take_refusal, &standing, err);
    if (standing.none)
        out->tidemark[0] = '\0';
    return rc;
}

static const struct tide_purpose purposes[] = {
    {"sync", "https://www.googleapis.com/auth/webmasters.readonly",
     "to read the search analytics of your sites, and nothing else"},
    {NULL, NULL, NULL},
};

const struct tide_system tide_console_system = {
    .name = "console",
    .provider = "console",
    .subject = "SITE...",
    .next = "console backfill SITE",
    .oauth = &tide_oauth_google,
    .purposes = purposes,
    .unit = "rows of search analytics",
    .unit_json = "console_rows",
    .commands = console_commands,
    .tables = tide_console_tables,
    .open = open_console,
    .close = close_console,
    .rest = rest,
    .account_check = account_check,
    .account_try = account_try,
    .account_put = tide_console_account_put,
    .account_drop = tide_console_account_drop,
    .subject_remove = subject_remove,
    .status = status,
    .file_units = file_units,
};
