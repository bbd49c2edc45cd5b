/* run.c - `tidemark console sites|backfill|sync|status|remove` (B1-B11). */
#include "console/commands/home.h"

#include "base/clocktext.h"
#include "console/look.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { TICK_MS = 250, EVENT_MS = 1000, PLAIN_MS = 10000, SITES_MAX = TIDE_CONSOLE_SITES_MAX };

static const char *name_of(const struct cli *cli)
{
    const char *name = cli_flag(cli, "name");
    return name == NULL ? "console" : name;
}

/* ---- running the engine ---- */

struct live {
    struct cli *cli;
    struct console_home *home;
    const char *const *sites; /* of this run */
    size_t sites_count;
    bool terminal;
    uint64_t started_ms;
    uint64_t shown_ms;
    uint64_t waiting; /* requests left for other processes */
};

/* Invariant cli.h C2: one object per line. */
static void show_event(const struct live *live, const struct tide_console_state *state,
                       uint64_t retried)
{
    tide_json json;
    tide_buf line;
    tide_json_object(&json);
    tide_json_set_cstr(&json, "event", "progress");
    tide_json_set_u64(&json, "at_unix_ms", tide_world_now_unix_ms(live->cli->world));
    tide_json_set_bool(&json, "handed_over", live->home->beside);
    if (live->home->beside) {
        tide_json_set_u64(&json, "requests_left", live->waiting);
    } else {
        tide_json_set_u64(&json, "days", state->days);
        tide_json_set_u64(&json, "rows", state->rows);
        tide_json_set_u64(&json, "bytes", state->bytes);
        tide_json_set_u64(&json, "queries", state->batches.parts);
        tide_json_set_u64(&json, "batches", state->batches.requests);
        tide_json_set_u64(&json, "retried", retried);
        tide_json_set_u64(&json, "refused", state->batches.refused);
    }
    tide_buf_init(&line, live->cli->mem, 4096);
    if (tide_json_line(&json, &line) == TIDE_OK)
        (void)fputs(tide_buf_cstr(&line), stderr);
    tide_buf_done(&line);
    tide_json_done(&json);
}

static void show(struct live *live)
{
    struct tide_console_state state;
    struct tide_progress progress;
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_console_state(live->home->console, &state);
    tide_engine_progress(live->home->engine, &progress);
    const uint64_t now_ms = tide_world_now_ms(live->cli->world);
    live->shown_ms = now_ms;
    if (live->cli->want_json) {
        show_event(live, &state, progress.retried);
        return;
    }
    if (live->home->beside) {
        (void)fprintf(stderr, "%s%" PRIu64 " requests left%s", live->terminal ? "\r\033[K" : "",
                      live->waiting, live->terminal ? "" : "\n");
        return;
    }
    const double seconds = (double)(now_ms - live->started_ms + 1) / 1000;
    tide_size_human(state.bytes, size);
    (void)fprintf(stderr,
                  "%s%" PRIu64 " days  %" PRIu64 " rows  %s  %.0f rows/s  "
                  "%" PRIu64 " queries in %" PRIu64 " batches  in flight %u x %u  waiting %u  "
                  "retried %" PRIu64 "  refused %" PRIu64 "%s",
                  live->terminal ? "\r\033[K" : "", state.days, state.rows, size,
                  (double)state.rows / seconds, state.batches.parts, state.batches.requests,
                  state.batches.in_flight, state.batches.size, state.batches.waiting,
                  progress.retried, state.batches.refused, live->terminal ? "" : "\n");
}

/* Our engine is idle.  On a shared ledger another process may have leased the account:
 * TIDE_TIMEOUT while it has jobs left. */
static tide_status others_wait(struct live *live)
{
    struct cli *cli = live->cli;
    const tide_status rc = tide_console_waiting(live->home->console, &live->waiting, &cli->err);
    if (rc != TIDE_OK || live->waiting == 0 || cli_interrupted())
        return rc;
    (void)tide_world_sleep_until(cli->world, tide_world_now_us(cli->world) + TICK_MS * 1000ull,
                                 NULL);
    return TIDE_TIMEOUT;
}

/* Runs until all is done, the user interrupts, or the account is signed out or halted. */
static tide_status run(struct live *live)
{
    struct cli *cli = live->cli;
    char name[128];
    char text[400];
    bool asked = false;
    (void)cli_interruptible(cli);
    live->terminal = isatty(STDERR_FILENO) == 1;
    live->started_ms = live->shown_ms = tide_world_now_ms(cli->world);
    if (live->home->beside && !cli->quiet && !cli->want_json)
        (void)fprintf(
            stderr, "Another process works in this directory and does this; showing its progress. "
                    "Ctrl-C stops only the display.\n");
    tide_status rc = tide_engine_start(live->home->engine, &cli->err);
    while (rc == TIDE_OK || rc == TIDE_TIMEOUT) {
        rc = tide_engine_wait(live->home->engine, TICK_MS, &cli->err);
        if (rc == TIDE_OK)
            rc = others_wait(live);
        if (rc == TIDE_OK)
            break;
        const bool ends = cli_interrupted() ||
                          tide_console_signed_out(live->home->console, name, text) ||
                          tide_console_halted(live->home->console, text);
        if (ends && !asked) {
            asked = true;
            tide_engine_stop(live->home->engine);
        }
        const uint64_t due_ms = live->shown_ms + (cli->want_json   ? EVENT_MS
                                                  : live->terminal ? TICK_MS
                                                                   : PLAIN_MS);
        if (!cli->quiet && tide_world_now_ms(cli->world) >= due_ms)
            show(live);
    }
    if (!cli->quiet) {
        show(live);
        if (live->terminal && !cli->want_json)
            (void)fputc('\n', stderr);
    }
    return rc;
}

/* ---- sites that are refused ---- */

struct refusals {
    const struct live *live; /* only sites of this run; NULL: all */
    struct cli *cli;
    size_t count;
    char site[TIDE_SC_SITE_BYTES_MAX + 1]; /* the first */
    char reason[400];
    tide_json list;
};

static bool is_of_run(const struct live *live, const char *site)
{
    for (size_t i = 0; i < live->sites_count; i++)
        if (strcmp(live->sites[i], site) == 0)
            return true;
    return false;
}

static void take_refusal(const char *site, const char *reason, uint64_t since_unix_ms, void *arg)
{
    struct refusals *refusals = arg;
    tide_json one;
    if (refusals->live != NULL && !is_of_run(refusals->live, site))
        return;
    if (refusals->count++ == 0) {
        (void)snprintf(refusals->site, sizeof refusals->site, "%s", site);
        (void)snprintf(refusals->reason, sizeof refusals->reason, "%s", reason);
    } else if (refusals->live != NULL) {
        (void)fprintf(stderr, "tidemark: warning: refused: %s\n", reason);
    }
    tide_json_object(&one);
    tide_json_set_cstr(&one, "site", site);
    tide_json_set_cstr(&one, "reason", reason);
    tide_json_set_u64(&one, "since_unix_ms", since_unix_ms);
    tide_json_append(&refusals->list, &one);
}

/* The other sites of this run are fetched; refused ones are named, with both remedies. */
static tide_status run_refused(struct live *live)
{
    struct cli *cli = live->cli;
    struct refusals refusals = {.live = live, .cli = cli};
    char hint[TIDE_SC_SITE_BYTES_MAX + 300];
    tide_json_array(&refusals.list);
    const tide_status rc =
        tide_console_refused(live->home->console, take_refusal, &refusals, &cli->err);
    tide_json_set(&cli->json, "refused_sites", &refusals.list);
    if (rc != TIDE_OK || refusals.count == 0)
        return rc;
    (void)snprintf(
        hint, sizeof hint,
        "Get access in Search Console and run this again: it resumes. Or stop fetching the site "
        "with `tidemark console remove %.400s`.",
        refusals.site);
    return cli_fail(cli, TIDE_PERMANENT, hint, "refused: %.380s", refusals.reason);
}

/* Reports how a run ended, and sets the exit code. */
static tide_status ended(struct live *live, tide_status rc)
{
    struct cli *cli = live->cli;
    char name[128];
    char text[400];
    char hint[400];
    struct tide_progress progress;
    if (rc != TIDE_OK && rc != TIDE_STOPPED)
        return rc;
    if (tide_console_signed_out(live->home->console, name, text)) {
        (void)snprintf(hint, sizeof hint,
                       "Sign in again with `tidemark account add console SITE... --name %.80s` and "
                       "the flags it was added with; stored data stays.",
                       name);
        return cli_fail(cli, TIDE_AUTH, hint, "%s: %.250s", name, text);
    }
    if (tide_console_halted(live->home->console, text))
        return cli_fail(
            cli, TIDE_PERMANENT,
            "Fix the cause, run `tidemark account resume console`, and run this again: it resumes.",
            "halted: %.300s", text);
    const tide_status refused = run_refused(live);
    if (refused != TIDE_OK)
        return refused;
    tide_engine_progress(live->home->engine, &progress);
    uint64_t left = 0;
    for (size_t i = 0; rc == TIDE_OK && i < live->sites_count; i++) {
        uint64_t of_site = 0;
        rc = tide_console_left(live->home->console, live->sites[i], &of_site, &cli->err);
        left += of_site;
    }
    if (rc == TIDE_STOPPED || cli_interrupted())
        cli->exit_code = CLI_EXIT_INTERRUPTED;
    else if (progress.failed > 0)
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
    else if (rc == TIDE_OK && left > 0)
        return cli_fail(
            cli, TIDE_CANCELED,
            "`tidemark account list` shows why; after `tidemark account resume console` the same "
            "command resumes.",
            "%" PRIu64 " requests are left: the sign-in is halted or paused", left);
    return rc == TIDE_STOPPED ? TIDE_OK : rc;
}

static void telemetry(struct cli *cli, struct console_home *home)
{
    struct tide_console_state state;
    tide_console_state(home->console, &state);
    tide_json_set_u64(&cli->json, "days", state.days);
    tide_json_set_u64(&cli->json, "rows", state.rows);
    tide_json_set_u64(&cli->json, "bytes", state.bytes);
    tide_json_set_u64(&cli->json, "queries", state.batches.parts);
    tide_json_set_u64(&cli->json, "batches", state.batches.requests);
    tide_json_set_u64(&cli->json, "batch_size", state.batches.size);
    tide_json_set_u64(&cli->json, "batch_latency_ms", state.batches.latency_ms);
    tide_json_set_u64(&cli->json, "refused", state.batches.refused);
    tide_json_set_u64(&cli->json, "missing", state.batches.missing);
    tide_json_set_u64(&cli->json, "readings_more", state.readings_more);
    tide_json_set_u64(&cli->json, "rows_missing", state.rows_missing);
    tide_json_set_bool(&cli->json, "handed_over", home->beside);
}

/* ---- sites ---- */

struct sites {
    struct cli *cli;
    struct tide_console_site known[SITES_MAX];
    const char *names[SITES_MAX]; /* of them */
    size_t count;
    tide_json list;
};

static void take_known(const struct tide_console_site *site, void *arg)
{
    struct sites *sites = arg;
    if (sites->count == SITES_MAX)
        return;
    sites->known[sites->count] = *site;
    sites->names[sites->count] = sites->known[sites->count].site;
    sites->count++;
}

static void show_site(const char *site, const char *level, void *arg)
{
    struct sites *sites = arg;
    bool added = false;
    tide_json one;
    for (size_t i = 0; i < sites->count; i++)
        added = added || strcmp(sites->known[i].site, site) == 0;
    cli_cell(sites->cli, "%s", site);
    cli_cell(sites->cli, "%s", level);
    cli_cell(sites->cli, "%s", added ? "yes" : "");
    tide_json_object(&one);
    tide_json_set_cstr(&one, "site", site);
    tide_json_set_cstr(&one, "level", level);
    tide_json_set_bool(&one, "added", added);
    tide_json_append(&sites->list, &one);
}

tide_status cli_console_sites(struct cli *cli)
{
    static const char *const headings[] = {"SITE", "LEVEL", "ADDED"};
    struct console_home home = {0};
    struct live live = {.cli = cli, .home = &home};
    struct sites *sites = tide_mem_new(cli->mem, sizeof *sites);
    if (sites == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    sites->cli = cli;
    tide_json_array(&sites->list);
    tide_status rc = console_home_open(cli, &home);
    if (rc == TIDE_OK)
        rc = tide_console_sites(home.console, take_known, sites, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_console_list(home.console, name_of(cli), &cli->err);
    const bool quiet = cli->quiet;
    cli->quiet = true; /* one short call needs no progress */
    if (rc == TIDE_OK)
        rc = ended(&live, run(&live));
    cli->quiet = quiet;
    if (rc == TIDE_OK) {
        cli_table_begin(cli, headings, 3);
        tide_console_listed(home.console, show_site, sites);
        cli_table_end(cli, "this sign-in cannot read any property");
    }
    tide_json_set(&cli->json, "sites", &sites->list);
    const tide_status closed = console_home_close(cli, &home);
    tide_mem_free(cli->mem, sites, sizeof *sites);
    return rc == TIDE_OK ? closed : rc;
}

/* ---- backfill and sync ---- */

static tide_status number_flag(struct cli *cli, const char *name, uint64_t max, unsigned *out)
{
    uint64_t number = 0;
    if (cli_flag(cli, name) == NULL)
        return TIDE_OK;
    char what[40];
    (void)snprintf(what, sizeof what, "--%s", name);
    const tide_status rc = cli_number(cli, cli_flag(cli, name), what, &number);
    if (rc != TIDE_OK)
        return rc;
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

static void report_days(struct cli *cli, struct console_home *home)
{
    struct tide_console_state state;
    if (home->beside) {
        cli_print(
            cli,
            "done by another process in this directory; `tidemark console status` shows what is "
            "stored\n");
        return;
    }
    tide_console_state(home->console, &state);
    cli_print(cli,
              "%" PRIu64 " days stored with %" PRIu64 " rows; %" PRIu64 " queries in %" PRIu64
              " HTTP requests, %" PRIu64 " refused\n",
              state.days, state.rows, state.batches.parts, state.batches.requests,
              state.batches.refused);
    if (state.rows_missing > 0)
        cli_print(cli,
                  "%" PRIu64
                  " rows that the server counts were in none of its answers; the next sync "
                  "fetches their days again (`tidemark console status`)\n",
                  state.rows_missing);
}

tide_status cli_console_backfill(struct cli *cli)
{
    struct console_home home = {.may_hand_over = true};
    struct live live = {.cli = cli, .home = &home, .sites = cli->arguments, .sites_count = 1};
    struct tide_console_run wanted = {.site = cli->arguments[0]};
    tide_status rc = wanted_run(cli, &wanted);
    if (rc == TIDE_OK)
        rc = number_flag(cli, "workers", TIDE_CONSOLE_WORKERS_MAX, &home.workers);
    if (rc == TIDE_OK)
        rc = number_flag(cli, "batch", TIDE_CONSOLE_BATCH_MAX, &home.batch_max);
    if (rc == TIDE_OK)
        rc = console_home_open(cli, &home);
    if (rc == TIDE_OK)
        rc = tide_console_run(home.console, &wanted, &cli->err);
    rc = cli_hint(cli, rc,
                  "`tidemark console sites` lists the sites; `tidemark account add console SITE` "
                  "adds one.");
    if (rc == TIDE_OK)
        rc = ended(&live, run(&live));
    if (home.console != NULL)
        telemetry(cli, &home);
    if (rc == TIDE_OK)
        report_days(cli, &home);
    const tide_status closed = console_home_close(cli, &home);
    return rc == TIDE_OK ? closed : rc;
}

struct series {
    struct console_home *home;
    const char *site;
    tide_status rc;
    tide_error *err;
    unsigned count;
};

/* Every series that was fetched once is synced. */
static void sync_series(const struct tide_console_set *set, uint64_t days, uint64_t rows, void *arg)
{
    struct series *series = arg;
    (void)days;
    (void)rows;
    const struct tide_console_run wanted = {.site = series->site,
                                            .types = 1u << set->type,
                                            .dimensions = set->dimensions,
                                            .sync = true};
    if (series->rc == TIDE_OK)
        series->rc = tide_console_run(series->home->console, &wanted, series->err);
    series->count++;
}

static tide_status sync_site(struct cli *cli, struct console_home *home, const char *site,
                             unsigned *count)
{
    struct series series = {.home = home, .site = site, .err = &cli->err};
    tide_console_store *store = NULL;
    tide_status rc = console_home_store(cli, site, &store);
    if (rc == TIDE_OK)
        rc = tide_console_store_sets(store, sync_series, &series, &cli->err);
    if (rc == TIDE_OK)
        rc = series.rc;
    *count += series.count;
    (void)tide_console_store_close(store, NULL);
    return rc;
}

tide_status cli_console_sync(struct cli *cli)
{
    struct console_home home = {.may_hand_over = true};
    struct live live = {.cli = cli, .home = &home};
    unsigned count = 0;
    struct sites *sites = tide_mem_new(cli->mem, sizeof *sites);
    if (sites == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    tide_status rc = number_flag(cli, "workers", TIDE_CONSOLE_WORKERS_MAX, &home.workers);
    if (rc == TIDE_OK)
        rc = console_home_open(cli, &home);
    if (rc == TIDE_OK)
        rc = tide_console_sites(home.console, take_known, sites, &cli->err);
    for (unsigned i = 0; rc == TIDE_OK && i < cli->arguments_count; i++)
        rc = sync_site(cli, &home, cli->arguments[i], &count);
    for (size_t i = 0; rc == TIDE_OK && cli->arguments_count == 0 && i < sites->count; i++) {
        rc = sync_site(cli, &home, sites->known[i].site, &count);
        if (rc == TIDE_NOT_FOUND) {
            rc = TIDE_OK; /* added but never fetched */
            cli->err = (tide_error){TIDE_OK, 0, ""};
            cli->hint[0] = '\0';
        }
    }
    live.sites = cli->arguments_count > 0 ? cli->arguments : sites->names;
    live.sites_count = cli->arguments_count > 0 ? cli->arguments_count : sites->count;
    if (rc == TIDE_OK && count == 0)
        rc = cli_fail(cli, TIDE_NOT_FOUND, "Start with `tidemark console backfill SITE`.",
                      "nothing has been fetched yet");
    if (rc == TIDE_OK)
        rc = ended(&live, run(&live));
    if (home.console != NULL)
        telemetry(cli, &home);
    if (rc == TIDE_OK)
        report_days(cli, &home);
    const tide_status closed = console_home_close(cli, &home);
    tide_mem_free(cli->mem, sites, sizeof *sites);
    return rc == TIDE_OK ? closed : rc;
}

/* ---- status ---- */

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
};

static bool take_extent(const struct tide_console_day_row *day, void *arg)
{
    struct extent *extent = arg;
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

static void show_series(const struct tide_console_set *set, uint64_t days, uint64_t rows, void *arg)
{
    struct standing *standing = arg;
    struct tide_console_mark mark = {.floor = ""};
    struct extent extent = {.first = ""};
    tide_json one;
    char share[32] = "-";
    if (standing->rc != TIDE_OK)
        return;
    standing->rc = tide_console_look_mark(standing->cli->ledger, standing->site, set, &mark,
                                          &standing->cli->err);
    if (standing->rc == TIDE_OK)
        standing->rc = tide_console_store_days(standing->store, set, NULL, NULL, take_extent,
                                               &extent, &standing->cli->err);
    if (standing->rc != TIDE_OK)
        return;
    if (extent.clicks > 0)
        (void)snprintf(share, sizeof share, "%.1f %%", 100 * extent.hidden / extent.clicks);
    cli_cell(standing->cli, "%s", standing->site->site);
    cli_cell(standing->cli, "%s", tide_sc_type_name(set->type));
    cli_cell(standing->cli, "%s", mark.tidemark[0] == '\0' ? "none yet" : mark.tidemark);
    cli_cell(standing->cli, "%s .. %s", extent.first, extent.last);
    cli_cell(standing->cli, "%" PRIu64, days);
    cli_cell(standing->cli, "%" PRIu64, mark.days_left);
    cli_cell(standing->cli, "%" PRIu64, extent.open);
    cli_cell(standing->cli, "%" PRIu64, rows);
    cli_cell(standing->cli, "%" PRIu64, extent.missing);
    cli_cell(standing->cli, "%s", share);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "site", standing->site->site);
    tide_json_set_cstr(&one, "type", tide_sc_type_name(set->type));
    tide_json_set_cstr(&one, "floor", mark.floor);
    tide_json_set_cstr(&one, "tidemark", mark.tidemark);
    tide_json_set_cstr(&one, "first", extent.first);
    tide_json_set_cstr(&one, "last", extent.last);
    tide_json_set_u64(&one, "days", days);
    tide_json_set_u64(&one, "days_left", mark.days_left);
    tide_json_set_u64(&one, "days_not_final", extent.open);
    tide_json_set_u64(&one, "rows", rows);
    tide_json_set_u64(&one, "rows_missing", extent.missing);
    tide_json_set_u64(&one, "days_incomplete", extent.incomplete);
    tide_json_set_u64(&one, "days_cut", extent.cut);
    tide_json_append(&standing->list, &one);
}

static void show_refusal(const char *site, const char *reason, uint64_t since_unix_ms, void *arg)
{
    struct refusals *refusals = arg;
    char when[32];
    take_refusal(site, reason, since_unix_ms, arg);
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
    struct console_home home = {0};
    const char *site = cli->arguments[0];
    tide_status rc = console_home_open(cli, &home);
    if (rc == TIDE_OK) {
        rc = tide_console_site_remove(home.console, site, &cli->err);
        rc = cli_hint(cli, rc, "`tidemark console status` shows the sites.");
    }
    if (rc == TIDE_OK) {
        cli_print(cli,
                  "removed %s: it is no longer fetched. Stored data stays in %s/console; "
                  "`tidemark account add console %s` adds it again.\n",
                  site, home.archive_dir, site);
        tide_json_set_cstr(&cli->json, "removed", site);
    }
    const tide_status closed = console_home_close(cli, &home);
    return rc == TIDE_OK ? closed : rc;
}
