/* status.c - `tidemark console status|remove` (B10, B6). */
#include "cli/run/account_change.h"
#include "console/commands/fetch.h"
#include "console/commands/home.h"
#include "console/dates.h"

#include <inttypes.h>
#include <stdio.h>

enum { SITES_MAX = TIDE_CONSOLE_SITES_MAX, CALENDAR_BYTES_MAX = 8 << 10 };

/* ---- status ---- */

struct sites {
    struct tide_console_site known[SITES_MAX];
    size_t count;
};

static void take_known(const struct tide_console_site *site, void *arg)
{
    struct sites *sites = arg;
    if (sites->count < SITES_MAX)
        sites->known[sites->count++] = *site;
}

struct standing {
    struct cli *cli;
    const struct tide_console_site *site;
    tide_console_store *store;
    tide_json list;
    tide_status rc;
};

struct extent {
    char first[16], last[16];
    uint64_t open;       /* days that are not final */
    uint64_t missing;    /* rows that the server counts but did not return */
    uint64_t incomplete; /* days that lack rows */
    uint64_t cut;        /* days with as many rows as the server returns at most */
    double clicks, hidden;
    /* A character a day from `first` on: "=" final, "-" not final yet, "x" lacks rows,
     * "." not stored. */
    tide_buf calendar;
    int32_t next; /* day */
};

/* Twenty years of days fit; a store that has more shows the first ones. */
static void calendar_add(struct extent *extent, const struct tide_console_day_row *row)
{
    int32_t day = 0;
    if (!tide_date_parse(row->date, &day))
        return;
    while (extent->calendar.bytes > 0 && extent->next < day &&
           tide_buf_add(&extent->calendar, ".", 1) == TIDE_OK)
        extent->next++;
    (void)tide_buf_add(&extent->calendar, row->missing > 0 ? "x" : row->final ? "=" : "-", 1);
    extent->next = day + 1;
}

static bool take_extent(const struct tide_console_day_row *day, void *arg)
{
    struct extent *extent = arg;
    calendar_add(extent, day);
    if (extent->first[0] == '\0')
        memcpy(extent->first, day->date, sizeof extent->first);
    memcpy(extent->last, day->date, sizeof extent->last);
    extent->open += day->final ? 0 : 1;
    extent->missing += day->missing;
    extent->incomplete += day->missing > 0 ? 1 : 0;
    extent->cut += day->rows + day->missing >= TIDE_SC_DAY_ROWS_MAX ? 1 : 0;
    if (day->clicks >= 0) {
        extent->clicks += day->clicks;
        extent->hidden += day->clicks - day->row_clicks;
    }
    return true;
}

static void show_one(struct standing *standing, const struct tide_console_set *set, uint64_t days,
                     uint64_t rows, const struct tide_console_mark *mark,
                     const struct extent *extent)
{
    tide_json one;
    char share[32] = "-";
    if (extent->clicks > 0)
        (void)snprintf(share, sizeof share, "%.1f %%", 100 * extent->hidden / extent->clicks);
    cli_cell(standing->cli, "%s", standing->site->site);
    cli_cell(standing->cli, "%s", tide_sc_type_name(set->type));
    cli_cell(standing->cli, "%s", mark->tidemark[0] == '\0' ? "none yet" : mark->tidemark);
    cli_cell(standing->cli, "%s .. %s", extent->first, extent->last);
    cli_cell(standing->cli, "%" PRIu64, days);
    cli_cell(standing->cli, "%" PRIu64, mark->days_left);
    cli_cell(standing->cli, "%" PRIu64, extent->open);
    cli_cell(standing->cli, "%" PRIu64, rows);
    cli_cell(standing->cli, "%" PRIu64, extent->missing);
    cli_cell(standing->cli, "%s", share);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "site", standing->site->site);
    tide_json_set_cstr(&one, "type", tide_sc_type_name(set->type));
    tide_json_set_cstr(&one, "floor", mark->floor);
    tide_json_set_cstr(&one, "tidemark", mark->tidemark);
    tide_json_set_cstr(&one, "first", extent->first);
    tide_json_set_cstr(&one, "last", extent->last);
    tide_json_set_u64(&one, "days", days);
    tide_json_set_u64(&one, "days_left", mark->days_left);
    tide_json_set_u64(&one, "days_not_final", extent->open);
    tide_json_set_u64(&one, "rows", rows);
    tide_json_set_u64(&one, "rows_missing", extent->missing);
    tide_json_set_u64(&one, "days_incomplete", extent->incomplete);
    tide_json_set_u64(&one, "days_cut", extent->cut);
    tide_json_set_text(&one, "calendar", tide_buf_text(&extent->calendar));
    tide_json_append(&standing->list, &one);
}

static void show_series(const struct tide_console_set *set, uint64_t days, uint64_t rows, void *arg)
{
    struct standing *standing = arg;
    struct tide_console_mark mark = {.floor = ""};
    struct extent extent = {.first = ""};
    if (standing->rc != TIDE_OK)
        return;
    standing->rc = tide_console_look_mark(standing->cli->ledger, standing->site, set, &mark,
                                          &standing->cli->err);
    tide_buf_init(&extent.calendar, standing->cli->mem, CALENDAR_BYTES_MAX);
    if (standing->rc == TIDE_OK)
        standing->rc = tide_console_store_days(standing->store, set, NULL, NULL, take_extent,
                                               &extent, &standing->cli->err);
    if (standing->rc == TIDE_OK)
        show_one(standing, set, days, rows, &mark, &extent);
    tide_buf_done(&extent.calendar);
}

struct refusals {
    struct cli *cli;
    tide_json list;
};

static void show_refusal(const char *site, const char *reason, uint64_t since_unix_ms, void *arg)
{
    struct refusals *refusals = arg;
    char when[32];
    console_refusal_json(&refusals->list, site, reason, since_unix_ms);
    cli_print(refusals->cli,
              "\n%s is refused since %s: %s\n"
              "Get access in Search Console and fetch it again, or stop fetching it with "
              "`tidemark console remove %s`.\n",
              site, cli_time(since_unix_ms, when), reason, site);
}

static tide_status show_refusals(struct cli *cli)
{
    struct refusals refusals = {.cli = cli};
    tide_json_array(&refusals.list);
    const tide_status rc =
        tide_console_look_refused(cli->ledger, show_refusal, &refusals, &cli->err);
    tide_json_set(&cli->json, "refused_sites", &refusals.list);
    return rc;
}

tide_status cli_console_status(struct cli *cli)
{
    static const char *const headings[] = {"SITE", "TYPE", "TIDEMARK", "STORED",  "DAYS",
                                           "LEFT", "OPEN", "ROWS",     "MISSING", "HIDDEN CLICKS"};
    struct standing standing = {.cli = cli};
    struct sites *sites = tide_mem_new(cli->mem, sizeof *sites);
    if (sites == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    tide_json_array(&standing.list);
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_console_look_sites(cli->ledger, take_known, sites, &cli->err);
    if (rc == TIDE_OK)
        cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    for (size_t i = 0; rc == TIDE_OK && i < sites->count; i++) {
        bool wanted = cli->arguments_count == 0;
        for (unsigned j = 0; j < cli->arguments_count; j++)
            wanted = wanted || strcmp(cli->arguments[j], sites->known[i].site) == 0;
        if (!wanted || console_home_store(cli, sites->known[i].site, &standing.store) != TIDE_OK)
            continue;
        standing.site = &sites->known[i];
        rc = tide_console_store_sets(standing.store, show_series, &standing, &cli->err);
        rc = rc == TIDE_OK ? standing.rc : rc;
        (void)tide_console_store_close(standing.store, NULL);
    }
    if (rc == TIDE_OK) {
        cli_table_end(cli, "nothing has been fetched yet");
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
        rc = show_refusals(cli);
    }
    tide_json_set(&cli->json, "series", &standing.list);
    tide_mem_free(cli->mem, sites, sizeof *sites);
    return rc;
}

/* ---- remove ---- */

tide_status cli_console_remove(struct cli *cli)
{
    struct cli_engine opened = {.engine = NULL};
    const char *site = cli->arguments[0];
    const struct account_change removed = {
        .system = &tide_console_system,
        .remove = true,
        .request = {.name = "", .subjects = cli->arguments, .subjects_count = 1, .endpoint = ""}};
    tide_status rc = account_change_open(cli, &opened);
    if (rc == TIDE_OK)
        rc = account_change(cli, &opened, &removed);
    rc = cli_hint(cli, rc, "`tidemark console status` shows the sites.");
    if (rc == TIDE_OK) {
        cli_print(cli,
                  "removed %s: it is no longer fetched. Stored data stays in %s/console; "
                  "`tidemark account add console %s` adds it again.\n",
                  site, opened.archive_dir, site);
        tide_json_set_cstr(&cli->json, "removed", site);
    }
    const tide_status closed = cli_engine_close(cli, &opened);
    return rc == TIDE_OK ? closed : rc;
}
