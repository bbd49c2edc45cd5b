#include "console/commands/fetch.h"

#include "base/limits.h"
#include "console/commands/home.h"

#include <stdio.h>
#include <string.h>

enum { JOBS_MAX = 1 << 20 };

const char *const console_count_names[CONSOLE_COUNTS] = {
    "days", "rows", "bytes", "queries", "batches", "refused", "missing", "readings_more"};

static const struct cli_columns columns = {
    .done = "days",
    .done_json = "days",
    .rate = "days/s",
    .rate_json = "days_per_s",
    .units_each = 1,
    .more = {
        {"rows", "rows"}, {"queries", "queries"}, {"batches", "batches"}, {"refused", "refused"}}};

/* ---- the work ---- */

/* The n-th job of an account. */
static bool request(void *arg, size_t account, size_t nth, struct cli_request *out)
{
    const struct console_fetch *fetch = arg;
    const char *name = fetch->work.accounts[account].name;
    *out = (struct cli_request){.kind = TIDE_CONSOLE_PLAN_KIND};
    for (size_t i = 0; i < fetch->jobs_count; i++) {
        const struct console_job *job = &fetch->jobs[i];
        if (strcmp(fetch->sites[job->site].account_name, name) != 0 || nth-- > 0)
            continue;
        memcpy(out->payload, job->request.payload, sizeof job->request.payload);
        memcpy(out->dedupe, job->request.dedupe, sizeof job->request.dedupe);
        return true;
    }
    return false;
}

uint64_t console_count(const struct console_counts *counts, size_t which)
{
    return counts->before[which] + counts->now[which] - counts->base[which];
}

/* `fresh`: an engine that was not watched before. */
static void take_counts(const json_t *of, bool fresh, struct console_counts *counts)
{
    for (size_t i = 0; i < CONSOLE_COUNTS; i++) {
        const json_int_t number = json_integer_value(json_object_get(of, console_count_names[i]));
        if (fresh) {
            counts->before[i] = console_count(counts, i);
            counts->base[i] = (uint64_t)number;
        }
        if (fresh || of != NULL)
            counts->now[i] = (uint64_t)number;
    }
    if (of == NULL)
        return;
    counts->batch_size = (uint64_t)json_integer_value(json_object_get(of, "batch_size"));
    counts->batch_latency_ms =
        (uint64_t)json_integer_value(json_object_get(of, "batch_latency_ms"));
}

static bool is_of_run(uint64_t site, void *arg)
{
    const struct console_fetch *fetch = arg;
    for (size_t i = 0; i < fetch->sites_count; i++)
        if (fetch->sites[i].id == site)
            return true;
    return false;
}

/* What is left of the sites of this run; another command may have others fetched. */
static tide_status look_left(struct console_fetch *fetch, size_t index)
{
    struct cli_watched *watched = &fetch->work.accounts[index];
    struct tide_console_left left = {0};
    const tide_status rc = tide_console_look_left(fetch->cli->ledger, watched->account, is_of_run,
                                                  fetch, &left, &fetch->cli->err);
    watched->jobs_left = left.waiting;
    watched->jobs_failed = left.failed;
    return rc;
}

/* A day has one unfinished job at a time: the jobs left are the days left. */
static tide_status look(void *arg, size_t index, const json_t *snapshot, bool full)
{
    struct console_fetch *fetch = arg;
    struct console_counts *counts = &fetch->counts[index];
    struct cli_watched *watched = &fetch->work.accounts[index];
    struct cli_live *live = &fetch->work.lives[index];
    const json_t *systems = json_object_get(snapshot, "systems");
    take_counts(json_object_get(json_object_get(systems, "console"), watched->name),
                !fetch->work.looked, counts);
    live->done = console_count(counts, CONSOLE_DAYS);
    live->bytes = console_count(counts, CONSOLE_BYTES);
    live->more[0] = console_count(counts, CONSOLE_ROWS);
    live->more[1] = console_count(counts, CONSOLE_QUERIES);
    live->more[2] = console_count(counts, CONSOLE_BATCHES);
    live->more[3] = console_count(counts, CONSOLE_REFUSED);
    const tide_status rc = full ? look_left(fetch, index) : TIDE_OK;
    if (full)
        counts->done_looked = live->done;
    watched->settled = watched->jobs_left == 0;
    const uint64_t since = live->done - counts->done_looked;
    live->total = live->done + (watched->jobs_left > since ? watched->jobs_left - since : 0);
    return rc;
}

/* ---- life ---- */

struct console_fetch *console_fetch_new(struct cli *cli)
{
    struct console_fetch *fetch = tide_mem_new(cli->mem, sizeof *fetch);
    if (fetch == NULL) {
        (void)cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
        return NULL;
    }
    fetch->cli = cli;
    fetch->began_ms = tide_world_now_unix_ms(cli->world);
    fetch->work = (struct cli_work){.cli = cli,
                                    .system = &tide_console_system,
                                    .options = &fetch->options,
                                    .workers = TIDE_WORKERS_MAX,
                                    .columns = &columns,
                                    .settles = true,
                                    .arg = fetch,
                                    .request = request,
                                    .look = look};
    return fetch;
}

void console_fetch_only(struct console_fetch *fetch, const char *kind)
{
    fetch->work.kind = kind;
    fetch->work.request = NULL;
    fetch->work.look = NULL;
}

tide_status console_fetch_add(struct console_fetch *fetch, size_t site,
                              const struct tide_console_run *run)
{
    struct cli *cli = fetch->cli;
    TIDE_TRY(tide_console_run_check(run, &cli->err));
    for (unsigned type = 0; type < TIDE_SC_TYPES; type++) {
        if ((tide_console_types(run) >> type & 1u) == 0)
            continue;
        if (!TIDE_GROW_IN(cli->mem, fetch->jobs, fetch->jobs_capacity, fetch->jobs_count + 1,
                          JOBS_MAX))
            return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
        struct console_job *job = &fetch->jobs[fetch->jobs_count++];
        job->site = site;
        tide_console_request(&fetch->sites[site], run, (tide_sc_type)type, &job->request);
    }
    return TIDE_OK;
}

/* The sites of a run may share a sign-in. */
static bool is_first(const struct console_fetch *fetch, size_t site)
{
    for (size_t i = 0; i < site; i++)
        if (fetch->sites[i].account == fetch->sites[site].account)
            return false;
    return true;
}

static void name_account(struct console_fetch *fetch, size_t index, const char *name)
{
    struct cli_watched *watched = &fetch->work.accounts[index];
    (void)snprintf(watched->name, sizeof watched->name, "%s", name);
}

static tide_status accounts_of(struct console_fetch *fetch, const char *account)
{
    size_t count = account != NULL ? 1 : 0;
    for (size_t i = 0; account == NULL && i < fetch->sites_count; i++)
        count += is_first(fetch, i);
    TIDE_TRY(cli_work_accounts(&fetch->work, count));
    fetch->counts = tide_mem_array(fetch->cli->mem, count, sizeof *fetch->counts);
    if (fetch->counts == NULL)
        return cli_fail(fetch->cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    if (account != NULL)
        name_account(fetch, 0, account);
    count = 0;
    for (size_t i = 0; account == NULL && i < fetch->sites_count; i++)
        if (is_first(fetch, i))
            name_account(fetch, count++, fetch->sites[i].account_name);
    return TIDE_OK;
}

tide_status console_fetch_run(struct console_fetch *fetch, const char *account)
{
    TIDE_TRY(accounts_of(fetch, account));
    TIDE_TRY(cli_work_run(&fetch->work));
    return console_fetch_conclude(fetch);
}

tide_status console_fetch_ask(struct console_fetch *fetch)
{
    const tide_status rc = accounts_of(fetch, NULL);
    return rc == TIDE_OK ? cli_work_ask(&fetch->work) : rc;
}

tide_status console_fetch_done(struct console_fetch *fetch)
{
    if (fetch == NULL)
        return TIDE_OK;
    tide_mem *mem = fetch->cli->mem;
    tide_mem_free(mem, fetch->jobs, fetch->jobs_capacity * sizeof *fetch->jobs);
    tide_mem_free(mem, fetch->counts, fetch->work.count * sizeof *fetch->counts);
    const tide_status rc = cli_work_done(&fetch->work);
    tide_mem_free(mem, fetch, sizeof *fetch);
    return rc;
}
