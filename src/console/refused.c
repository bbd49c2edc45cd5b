/* refused.c - sites that the server refuses permanently, and how they recover (B6).
 *
 * A permanent refusal (403, 404, an invalid request) concerns one site: the sign-in and its other
 * sites continue.  The jobs of that site fail without another call, so a day with a missing page
 * stays incomplete and the tidemark stays before it.  The next plan of the site calls the server;
 * if that succeeds, the refusal is forgotten and the failed jobs are retried. */
#include "console/console_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WHAT "Search Console's rows"

/* ---- the row of a refusal ---- */

struct refusal {
    uint64_t site;
    const char *reason;
    uint64_t at_unix_ms;
};

static tide_status write_refusal(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct refusal *refusal = arg;
    return tide_rows_do(tide_transaction_rows(transaction), WHAT, err,
                        "INSERT INTO console_refused(site, reason, at) VALUES(?1, ?2, ?3)"
                        " ON CONFLICT(site) DO UPDATE SET reason = ?2",
                        refusal->site, refusal->reason, refusal->at_unix_ms);
}

static tide_status forget_refusal(tide_rows db, uint64_t site, tide_error *err)
{
    return tide_rows_do(db, WHAT, err, "DELETE FROM console_refused WHERE site = ?1", site);
}

static tide_status drop_refusal(tide_transaction *transaction, void *arg, tide_error *err)
{
    return forget_refusal(tide_transaction_rows(transaction), *(const uint64_t *)arg, err);
}

tide_status tide_console_refused_read(tide_rows db, tide_console_refused_visit *visit, void *arg,
                                      tide_error *err)
{
    tide_auto_rows stmt;
    tide_status rc = tide_rows_ask(
        db, WHAT, &stmt, err,
        "SELECT console_site.site, reason, at FROM console_refused JOIN console_site ON"
        " console_site.id = console_refused.site ORDER BY console_site.site");
    while (tide_rows_next(&stmt, &rc, err)) {
        char site[TIDE_SC_SITE_BYTES_MAX + 1];
        char reason[400];
        tide_rows_get_copy(&stmt, 0, site, sizeof site);
        tide_rows_get_copy(&stmt, 1, reason, sizeof reason);
        visit(site, reason, tide_rows_get_u64(&stmt, 2), arg);
    }
    return rc;
}

/* ---- jobs of a refused site ---- */

enum { JOBS_MAX = 1000, FAILED = 3, END_MS = 10000, TICK_US = 20000 };

struct jobs_ask {
    uint64_t site;
    uint64_t ids[JOBS_MAX];
    bool failed[JOBS_MAX];
    size_t count;
};

/* Failed jobs first: a retried job is no longer failed, so the next slice has others. */
static tide_status read_jobs(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct jobs_ask *ask = arg;
    char payload[TIDE_CONSOLE_SITE_LIKE_BYTES];
    tide_auto_rows stmt;
    tide_console_site_like(ask->site, payload);
    tide_status rc =
        tide_rows_ask(tide_transaction_rows(transaction), WHAT, &stmt, err,
                      "SELECT job.id, job.state FROM job JOIN kind ON kind.id = job.kind WHERE"
                      " job.state IN (0, 1, 3) AND kind.name IN ('console.plan', 'console.page')"
                      " AND job.payload LIKE ?1 ORDER BY job.state DESC, job.id LIMIT ?2",
                      payload, JOBS_MAX);
    ask->count = 0;
    while (tide_rows_next(&stmt, &rc, err)) {
        ask->ids[ask->count] = tide_rows_get_u64(&stmt, 0);
        ask->failed[ask->count++] = tide_rows_get_u64(&stmt, 1) == FAILED;
    }
    return rc;
}

static tide_status retry_failed(tide_console *console, struct jobs_ask *ask, tide_error *err)
{
    TIDE_TRY(tide_transact(console->options.engine, read_jobs, ask, err));
    for (size_t i = 0; i < ask->count && ask->failed[i]; i++)
        TIDE_TRY(tide_retry_job(console->options.engine, ask->ids[i], err));
    return TIDE_OK;
}

/* A failed job can be canceled only after it is pending again.  One that runs may succeed before it
 * notices, and have a next page: so until none is left, or for END_MS. */
static tide_status cancel_all(tide_engine *engine, tide_world *world, struct jobs_ask *ask,
                              tide_error *err)
{
    const uint64_t give_up_ms = tide_world_now_ms(world) + END_MS;
    TIDE_TRY(tide_transact(engine, read_jobs, ask, err));
    while (ask->count > 0 && tide_world_now_ms(world) < give_up_ms) {
        for (size_t i = 0; i < ask->count; i++) {
            if (ask->failed[i])
                TIDE_TRY(tide_retry_job(engine, ask->ids[i], err));
            TIDE_TRY(tide_cancel_job(engine, ask->ids[i], err));
        }
        if (ask->count < JOBS_MAX)
            (void)tide_world_sleep_until(world, tide_world_now_us(world) + TICK_US, NULL);
        TIDE_TRY(tide_transact(engine, read_jobs, ask, err));
    }
    return TIDE_OK;
}

/* ---- a site ---- */

tide_status tide_console_refuse(tide_console *console, struct tide_console_open_site *site,
                                const char *text, tide_error *err)
{
    struct refusal refusal = {site->row.id, text, tide_world_now_unix_ms(console->options.world)};
    tide_lock_take(console->options.world, console->lock);
    if (site->refused[0] == '\0')
        (void)snprintf(site->refused, sizeof site->refused, "%s", text);
    tide_lock_drop(console->options.world, console->lock);
    /* The row is for display; the job fails with the same text whether or not it is written.  The site
     * may have been removed and added again since it was refused first. */
    (void)tide_transact(console->options.engine, write_refusal, &refusal, NULL);
    return tide_error_set(err, TIDE_PERMANENT, "%s", text);
}

tide_status tide_console_is_refused(tide_console *console,
                                    const struct tide_console_open_site *site, tide_error *err)
{
    tide_lock_take(console->options.world, console->lock);
    const tide_status rc = site->refused[0] == '\0'
                               ? TIDE_OK
                               : tide_error_set(err, TIDE_PERMANENT, "%s", site->refused);
    tide_lock_drop(console->options.world, console->lock);
    return rc;
}

tide_status tide_console_accepted(tide_console *console, struct tide_console_open_site *site,
                                  tide_error *err)
{
    struct jobs_ask *ask = tide_mem_new(console->mem, sizeof *ask);
    if (ask == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for failed pages");
    ask->site = site->row.id;
    tide_lock_take(console->options.world, console->lock);
    site->refused[0] = '\0';
    tide_lock_drop(console->options.world, console->lock);
    tide_status rc = tide_transact(console->options.engine, drop_refusal, &ask->site, err);
    if (rc == TIDE_OK)
        rc = retry_failed(console, ask, err);
    tide_mem_free(console->mem, ask, sizeof *ask);
    return rc;
}

/* The row keeps its number in case the site is added again: streams and stored days use it.
 * Account 0 does not exist. */
static tide_status drop_site(tide_transaction *transaction, void *arg, tide_error *err)
{
    const uint64_t *site = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(forget_refusal(db, *site, err));
    return tide_rows_do(db, WHAT, err, "UPDATE console_site SET account = 0 WHERE id = ?1", *site);
}

tide_status tide_console_site_remove(tide_engine *engine, tide_world *world, tide_mem *mem,
                                     const char *site, tide_error *err)
{
    struct tide_console_site row;
    TIDE_TRY(tide_console_site(engine, site, &row, err));
    struct jobs_ask *ask = tide_mem_new(mem, sizeof *ask);
    if (ask == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the jobs of %s", site);
    ask->site = row.id;
    /* Jobs first: a crash in between leaves a site that can be removed again. */
    tide_status rc = cancel_all(engine, world, ask, err);
    if (rc == TIDE_OK)
        rc = tide_transact(engine, drop_site, &row.id, err);
    tide_mem_free(mem, ask, sizeof *ask);
    return rc;
}
