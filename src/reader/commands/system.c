/* system.c - the reader, as the list of systems has it (system/system.h).  It has no accounts of its own:
 * it works on those of the mail system. */
#include "net/oauth/key.h"
#include "reader/commands/home.h"
#include "reader/page/page.h"
#include "reader/reader.h"

#include <stdio.h>

static tide_status open_reader(const struct tide_system_home *home, void **state_out,
                               tide_error *err)
{
    char dir[4096];
    tide_reader *reader = NULL;
    (void)snprintf(dir, sizeof dir, "%.4000s/reader", home->cache_dir);
    const struct tide_reader_options options = {.engine = home->engine,
                                                .world = home->world,
                                                .secrets = home->secrets,
                                                .archive_dir = home->archive_dir,
                                                .cache_dir = dir,
                                                .ask_link = true};
    tide_status rc = tide_reader_open(&options, home->mem, &reader, err);
    if (rc == TIDE_OK)
        rc = tide_control_add(home->engine, READER_OP, reader_op, reader, err);
    *state_out = reader;
    return rc;
}

static tide_status close_reader(void *state, tide_error *err)
{
    (void)err;
    tide_reader_close(state);
    return TIDE_OK;
}

static tide_status watch(void *state, const struct tide_system_teller *teller, tide_error *err)
{
    (void)teller;
    return tide_reader_watch(state, err);
}

static void watch_end(void *state)
{
    tide_reader_watch_end(state);
}

static void watched(void *state, bool is)
{
    tide_reader_look(state, is);
}

/* A mail account is removed: what waits for it goes with it.  Its cache is deleted by the process that
 * stays (reader.c). */
static tide_status other_drop(tide_rows db, uint32_t account, tide_error *err)
{
    bool has = false;
    TIDE_TRY(tide_rows_has(db, "reader_action", "the reader's rows", &has, err));
    return has ? tide_reader_forget(db, account, err) : TIDE_OK;
}

static tide_status status(const struct tide_system_home *home, tide_ledger *ledger,
                          const struct tide_account_row *account, struct tide_account_status *out,
                          tide_error *err)
{
    (void)home;
    (void)ledger;
    (void)account;
    (void)out;
    (void)err;
    return TIDE_OK; /* it has no account */
}

static const struct tide_purpose purposes[] = {{NULL, NULL, NULL}};

const struct tide_system tide_reader_system = {
    .name = "reader",
    .provider = "",
    .subject = "",
    .oauth = &tide_oauth_keys,
    .purposes = purposes,
    .unit = "files of drafts",
    .unit_json = "draft_files",
    .commands = reader_commands,
    .api = reader_page_api,
    .objects = reader_page_objects,
    .parts = reader_page_parts,
    .topic = "reader",
    .watched = watched,
    .tables = tide_reader_tables,
    .open = open_reader,
    .close = close_reader,
    .watch = watch,
    .watch_end = watch_end,
    .other_drop = other_drop,
    .status = status,
};
