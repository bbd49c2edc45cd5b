/* list.c - console.sites: the properties that a sign-in can read (B11). */
#include "console/console_inside.h"

#include <string.h>

#define WHAT "Search Console's rows"

/* ---- the rows of a list ---- */

struct listed {
    uint32_t account;
    size_t bytes;
    char texts[]; /* site, level, each terminated */
};

/* Replaces the former list, with the job's `done`. */
static tide_status write_listed(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct listed *listed = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    tide_status rc = tide_rows_do(db, WHAT, err, "DELETE FROM console_listed WHERE account = ?1",
                                  listed->account);
    uint64_t place = 0;
    for (const char *at = listed->texts; rc == TIDE_OK && at < listed->texts + listed->bytes;) {
        const char *level = at + strlen(at) + 1;
        rc = tide_rows_do(
            db, WHAT, err,
            "INSERT INTO console_listed(account, place, site, level) VALUES(?1, ?2, ?3, ?4)",
            listed->account, place++, at, level);
        at = level + strlen(level) + 1;
    }
    return rc;
}

/* ---- the job ---- */

struct listing {
    tide_buf *out;
    tide_status rc;
};

static void take_site(const char *site, const char *level, void *arg)
{
    struct listing *listing = arg;
    if (listing->rc == TIDE_OK)
        listing->rc = tide_buf_add(listing->out, site, strlen(site) + 1);
    if (listing->rc == TIDE_OK)
        listing->rc = tide_buf_add(listing->out, level, strlen(level) + 1);
}

static tide_status keep(tide_job *job, const tide_buf *found, tide_error *err)
{
    struct listed *listed = tide_job_memory(job, sizeof *listed + found->bytes);
    if (listed == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the list of sites");
    listed->account = tide_job_account(job);
    listed->bytes = found->bytes;
    if (found->bytes > 0)
        memcpy(listed->texts, found->data, found->bytes);
    return tide_job_effect(job, write_listed, listed, err);
}

tide_status tide_console_list_job(tide_job *job, void *context, tide_error *err)
{
    tide_console *console = context;
    struct tide_console_user *user = NULL;
    tide_auto_buf found = tide_buf_in(console->mem, 4 << 20);
    struct listing listing = {&found, TIDE_OK};
    tide_status rc = tide_console_user(console, tide_job_account(job), &user, err);
    if (rc == TIDE_OK)
        rc = tide_searchconsole_sites(user->client, job, take_site, &listing, err);
    if (rc == TIDE_OK && listing.rc != TIDE_OK)
        rc = tide_error_set(err, listing.rc, "no memory for the list of sites");
    if (rc == TIDE_OK)
        rc = keep(job, &found, err);
    return tide_console_ended(console, job, rc);
}
