/* system.c - the Search Console system, as the list of systems has it (system/system.h). */
#include "console/commands/home.h"

#include "cloud/searchconsole.h"
#include "console/console.h"
#include "console/dates.h"
#include "console/look.h"
#include "metrics/lines.h"
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
    tide_console_store *store;
    struct tide_account_status *out;
    bool started; /* a series was seen */
    bool none;    /* one of them has no tidemark yet */
    tide_status rc;
    tide_error *err;
};

enum { DAY_MS = 86400000 };

static uint64_t day_ms(int32_t day)
{
    return day < 0 ? 0 : (uint64_t)day * DAY_MS;
}

struct days {
    struct tide_ruler *ruler;
    int32_t next; /* the day after the last one that was seen */
};

static bool take_day(const struct tide_console_day_row *row, void *arg)
{
    struct days *days = arg;
    int32_t day = 0;
    if (!tide_date_parse(row->date, &day))
        return true;
    if (day > days->next)
        tide_ruler_mark(days->ruler, day_ms(days->next), day_ms(day), TIDE_RULER_GAP);
    if (row->missing > 0)
        tide_ruler_mark(days->ruler, day_ms(day), day_ms(day + 1), TIDE_RULER_BAD);
    else if (!row->final)
        tide_ruler_mark(days->ruler, day_ms(day), day_ms(day + 1), TIDE_RULER_BEYOND);
    days->next = day + 1;
    return true;
}

/* From the first day that was planned to the last one that is opened: a series is final up to its
 * tidemark, and has so many days left behind it. */
static tide_status series_ruler(tide_console_store *store, const struct tide_console_set *set,
                                const struct tide_console_mark *mark, struct tide_ruler *ruler,
                                tide_error *err)
{
    int32_t first = 0;
    int32_t last = 0;
    if (!tide_date_parse(mark->floor, &first))
        return TIDE_OK;
    if (!tide_date_parse(mark->tidemark, &last))
        last = first - 1;
    const int32_t end = last + 1 + (mark->days_left < 10000 ? (int32_t)mark->days_left : 10000);
    struct days days = {ruler, first};
    tide_ruler_begin(ruler, day_ms(first), day_ms(end));
    const tide_status rc =
        tide_console_store_days(store, set, mark->floor, NULL, take_day, &days, err);
    if (rc == TIDE_OK && days.next < end)
        tide_ruler_mark(ruler, day_ms(days.next), day_ms(end), TIDE_RULER_GAP);
    return rc;
}

static void take_series(const struct tide_console_set *set, uint64_t days, uint64_t rows, void *arg)
{
    struct standing *standing = arg;
    struct tide_account_status *out = standing->out;
    struct tide_console_mark mark = {.floor = ""};
    struct tide_ruler ruler = {.cells = ""};
    (void)days;
    if (standing->rc == TIDE_OK)
        standing->rc =
            tide_console_look_mark(standing->ledger, standing->site, set, &mark, standing->err);
    if (standing->rc == TIDE_OK)
        standing->rc = series_ruler(standing->store, set, &mark, &ruler, standing->err);
    standing->none = standing->none || mark.tidemark[0] == '\0';
    /* The earliest one: dates sort like text. */
    if (!standing->started || strcmp(mark.tidemark, out->tidemark) < 0) {
        (void)snprintf(out->tidemark, sizeof out->tidemark, "%s", mark.tidemark);
        out->ruler = ruler;
    }
    standing->started = true;
    out->stored += rows;
    out->left += mark.days_left;
    out->left_units = 1;
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
    standing->store = store;
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

static const struct tide_action actions[] = {
    {"console sync", NULL, "daily 06:00", "fetches the days that became final",
     cli_console_sync_check},
    {NULL, NULL, NULL, NULL, NULL},
};

/* Of all sign-ins together: what waits for a place in a batch, and how large a batch may be (B8). */
static void metrics(const json_t *shown, tide_metrics *lines)
{
    const char *user = NULL;
    json_t *one = NULL;
    double waiting = 0;
    double size = 0;
    json_object_foreach((json_t *)shown, user, one)
    {
        const double parts = json_number_value(json_object_get(one, "batch_size"));
        waiting += json_number_value(json_object_get(one, "batches_waiting"));
        size = parts > size ? parts : size;
    }
    tide_metric_single(lines, "console_queries_waiting", "gauge",
                       "Queries that wait for a place in a batch.", waiting);
    tide_metric_single(lines, "console_batch_size", "gauge",
                       "Queries that a batch may have now; 0: no sign-in was used yet.", size);
}

const struct tide_system tide_console_system = {
    .name = "console",
    .provider = "console",
    .method_name = tide_searchconsole_method_name,
    .subject = "SITE...",
    .next = "console backfill SITE",
    .sync_by = "name",
    .oauth = &tide_oauth_google,
    .purposes = purposes,
    .unit = "rows of search analytics",
    .unit_json = "console_rows",
    .commands = console_commands,
    .actions = actions,
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
    .metrics = metrics,
    .file_units = file_units,
};
