/* fetch_report.c - how a run of Search Console ended, and what it stored. */
#include "console/commands/fetch.h"
#include "console/commands/home.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- how it ended ---- */

void console_refusal_json(tide_json *list, const char *site, const char *reason,
                          uint64_t since_unix_ms)
{
    tide_json one;
    tide_json_object(&one);
    tide_json_set_cstr(&one, "site", site);
    tide_json_set_cstr(&one, "reason", reason);
    tide_json_set_u64(&one, "since_unix_ms", since_unix_ms);
    tide_json_append(list, &one);
}

struct refusals {
    const struct console_fetch *fetch;
    size_t count;
    char site[TIDE_SC_SITE_BYTES_MAX + 1]; /* the first */
    char reason[400];
    tide_json list;
};

static void take_refusal(const char *site, const char *reason, uint64_t since_unix_ms, void *arg)
{
    struct refusals *refusals = arg;
    bool ours = false;
    for (size_t i = 0; refusals->fetch->work.kind == NULL && i < refusals->fetch->sites_count; i++)
        ours = ours || strcmp(refusals->fetch->sites[i].site, site) == 0;
    if (!ours)
        return;
    if (refusals->count++ == 0) {
        (void)snprintf(refusals->site, sizeof refusals->site, "%s", site);
        (void)snprintf(refusals->reason, sizeof refusals->reason, "%s", reason);
    } else {
        (void)fprintf(stderr, "tidemark: warning: refused: %s\n", reason);
    }
    console_refusal_json(&refusals->list, site, reason, since_unix_ms);
}

/* The other sites of this run are fetched; refused ones are named, with both remedies. */
static tide_status refused(struct console_fetch *fetch)
{
    struct cli *cli = fetch->cli;
    struct refusals refusals = {.fetch = fetch};
    char hint[TIDE_SC_SITE_BYTES_MAX + 300];
    tide_json_array(&refusals.list);
    const tide_status rc =
        tide_console_look_refused(cli->ledger, take_refusal, &refusals, &cli->err);
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

/* Whether a job of this run failed.  A plan that succeeds retries what failed before, so what is
 * failed at the end failed in this run. */
static bool has_failed(const struct console_fetch *fetch, const struct cli_watched *watched)
{
    return fetch->work.kind == NULL ? watched->jobs_failed > 0
                                    : watched->failed > watched->failed_first;
}

/* Reports how the run ended, and sets the exit code. */
tide_status console_fetch_conclude(struct console_fetch *fetch)
{
    struct cli *cli = fetch->cli;
    uint64_t left = 0;
    bool bad = false;
    for (size_t i = 0; i < fetch->work.count; i++) {
        const struct cli_watched *watched = &fetch->work.accounts[i];
        struct cli_ended ended;
        cli_outcome_judge(&fetch->work, i, &ended);
        if (ended.outcome == CLI_OUTCOME_SIGNED_OUT)
            return cli_fail(cli, TIDE_AUTH, ended.remedy, "%s: %.250s", watched->name,
                            ended.reason);
        if (ended.outcome == CLI_OUTCOME_FAILED)
            return cli_fail(cli, watched->error.status, ended.remedy, "%s: %.300s", watched->name,
                            ended.reason);
        left += watched->jobs_left;
        bad = bad || has_failed(fetch, watched);
    }
    TIDE_TRY(refused(fetch));
    if (cli_interrupted(cli))
        cli->exit_code = CLI_EXIT_INTERRUPTED;
    else if (left > 0)
        return cli_fail(
            cli, TIDE_CANCELED,
            "`tidemark account list` shows why; after `tidemark account resume console` the same "
            "command resumes.",
            "%" PRIu64 " requests are left: the sign-in is halted or paused", left);
    else if (bad)
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
    return TIDE_OK;
}

/* ---- the report ---- */

struct stored {
    const struct console_fetch *fetch;
    tide_console_store *store;
    uint64_t days, rows, missing;
};

static bool add_day(const struct tide_console_day_row *day, void *arg)
{
    struct stored *stored = arg;
    if (day->fetched_ms < stored->fetch->began_ms)
        return true;
    stored->days++;
    stored->rows += day->rows;
    stored->missing += day->missing;
    return true;
}

static void add_set(const struct tide_console_set *set, uint64_t days, uint64_t rows, void *arg)
{
    struct stored *stored = arg;
    (void)days;
    (void)rows;
    (void)tide_console_store_days(stored->store, set, NULL, NULL, add_day, stored, NULL);
}

/* What was stored since the command began, by any process. */
static void count_stored(struct console_fetch *fetch, struct stored *stored)
{
    struct cli *cli = fetch->cli;
    const tide_error kept = cli->err;
    char hint[sizeof cli->hint];
    memcpy(hint, cli->hint, sizeof hint);
    for (size_t i = 0; i < fetch->sites_count; i++) {
        if (console_home_store(cli, fetch->sites[i].site, &stored->store) != TIDE_OK)
            continue; /* nothing is stored */
        (void)tide_console_store_sets(stored->store, add_set, stored, NULL);
        (void)tide_console_store_close(stored->store, NULL);
    }
    cli->err = kept;
    memcpy(cli->hint, hint, sizeof hint);
}

void console_fetch_report(struct console_fetch *fetch, tide_status rc)
{
    struct cli *cli = fetch->cli;
    struct stored stored = {.fetch = fetch};
    uint64_t sums[CONSOLE_COUNTS] = {0};
    uint64_t size = 0;
    uint64_t latency_ms = 0;
    if (!fetch->work.looked)
        return;
    count_stored(fetch, &stored);
    for (size_t i = 0; i < fetch->work.count; i++) {
        for (size_t k = 0; k < CONSOLE_COUNTS; k++)
            sums[k] += console_count(&fetch->counts[i], k);
        size = fetch->counts[i].batch_size;
        latency_ms = fetch->counts[i].batch_latency_ms;
    }
    sums[CONSOLE_DAYS] = stored.days;
    sums[CONSOLE_ROWS] = stored.rows;
    for (size_t k = 0; k < CONSOLE_COUNTS; k++)
        tide_json_set_u64(&cli->json, console_count_names[k], sums[k]);
    tide_json_set_u64(&cli->json, "batch_size", size);
    tide_json_set_u64(&cli->json, "batch_latency_ms", latency_ms);
    tide_json_set_u64(&cli->json, "rows_missing", stored.missing);
    tide_json_set_bool(&cli->json, "handed_over", fetch->work.handed_over);
    if (rc != TIDE_OK)
        return;
    cli_print(cli,
              "%" PRIu64 " days stored with %" PRIu64 " rows; %" PRIu64 " queries in %" PRIu64
              " HTTP requests, %" PRIu64 " refused\n",
              stored.days, stored.rows, sums[CONSOLE_QUERIES], sums[CONSOLE_BATCHES],
              sums[CONSOLE_REFUSED]);
    if (stored.missing > 0)
        cli_print(cli,
                  "%" PRIu64
                  " rows that the server counts were in none of its answers; the next sync "
                  "fetches their days again (`tidemark console status`)\n",
                  stored.missing);
}
