/* list.c - console.sites: the properties that a sign-in can read (B11). */
#include "console/console_inside.h"

#include <stdio.h>
#include <string.h>

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

tide_status tide_console_list_job(tide_job *job, void *context, tide_error *err)
{
    tide_console *console = context;
    struct tide_console_user *user = NULL;
    tide_error why = {TIDE_OK, 0, ""};
    tide_buf found;
    tide_buf_init(&found, console->mem, 4 << 20);
    struct listing listing = {&found, TIDE_OK};
    tide_status rc = tide_console_user(console, tide_job_account(job), &user, &why);
    if (rc == TIDE_OK)
        rc = tide_searchconsole_sites(user->client, job, take_site, &listing, &why);
    if (rc == TIDE_OK && listing.rc != TIDE_OK)
        rc = tide_error_set(&why, listing.rc, "no memory for the list of sites");
    if (rc == TIDE_OK) {
        tide_lock_take(console->options.world, console->lock);
        tide_buf_clear(&console->listed);
        rc = tide_buf_add(&console->listed, found.data, found.bytes);
        tide_lock_drop(console->options.world, console->lock);
    }
    tide_buf_done(&found);
    if (rc != TIDE_OK && err != NULL)
        *err = why;
    return tide_console_ended(console, job, rc, &why);
}

tide_status tide_console_list(tide_console *console, const char *name, tide_error *err)
{
    uint32_t account = 0;
    const tide_status rc =
        tide_engine_account(console->options.engine, name, "console", &account, err);
    const struct tide_spec spec = {.kind = console->sites_kind, .account = account, .dedupe = name};
    if (rc != TIDE_OK)
        return rc;
    const tide_status asked = tide_enqueue(console->options.engine, &spec, 1, NULL, err);
    if (asked == TIDE_OK)
        tide_engine_take_soon(console->options.engine);
    return asked;
}

void tide_console_listed(tide_console *console,
                         void (*visit)(const char *site, const char *level, void *arg), void *arg)
{
    tide_lock_take(console->options.world, console->lock);
    const char *at = console->listed.data;
    const char *end = at == NULL ? NULL : at + console->listed.bytes;
    while (at < end) {
        const char *level = at + strlen(at) + 1;
        visit(at, level, arg);
        at = level + strlen(level) + 1;
    }
    tide_lock_drop(console->options.world, console->lock);
}
