/* system.c - the reader, as the list of systems has it (system/system.h).  It has no accounts of its own:
 * it works on those of the mail system. */
#include "net/oauth/key.h"
#include "reader/commands/home.h"
#include "reader/page/page.h"
#include "reader/reader.h"

#include "ledger/outcome.h"
#include "ledger/rows.h"
#include "mail/commands/home.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* In the engine's snapshot: {"accounts": [...]}. */
static void show(json_t *object, void *arg)
{
    tide_json list;
    tide_json_array(&list);
    tide_reader_states(arg, &list);
    (void)json_object_set(object, "accounts", list.value);
    tide_json_done(&list);
}

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
    if (rc == TIDE_OK)
        rc = tide_engine_snapshot_add(home->engine, "reader", show, reader, err);
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

/* ---- a line of `tidemark status` for each mailbox that is read here ---- */

static const char *state_of(const json_t *shown, const char *email)
{
    static const char *const words[][2] = {
        {"initial", "First sync"}, {"active", "Active"}, {"passive", "Passive"}};
    size_t at = 0;
    const json_t *one = NULL;
    if (shown == NULL)
        return "Not running";
    json_array_foreach(json_object_get(shown, "accounts"), at, one)
    {
        const char *state = json_string_value(json_object_get(one, "state"));
        if (strcmp(json_string_value(json_object_get(one, "account")), email) != 0)
            continue;
        for (size_t i = 0; state != NULL && i < sizeof words / sizeof words[0]; i++)
            if (strcmp(words[i][0], state) == 0)
                return words[i][1];
    }
    return "Passive"; /* it begins */
}

static tide_status actions_waiting(tide_ledger *ledger, uint32_t account, uint64_t *waiting_out,
                                   tide_error *err)
{
    const tide_rows db = tide_ledger_rows(ledger);
    bool has = false;
    uint64_t refused = 0;
    *waiting_out = 0;
    TIDE_TRY(tide_rows_has(db, "reader_action", "the reader's rows", &has, err));
    return has ? tide_actions_count(db, account, UINT64_MAX >> 1, waiting_out, &refused, err)
               : TIDE_OK;
}

static void waits_write(uint64_t count, const char *what, char *out, size_t bytes)
{
    (void)snprintf(out, bytes, "%" PRIu64 " %s%s wait%s", count, what, count == 1 ? "" : "s",
                   count == 1 ? "s" : "");
}

/* "Active, nothing waits" */
static tide_status status(const struct tide_system_home *home, tide_ledger *ledger,
                          const struct tide_account_row *account, struct tide_account_status *out,
                          tide_error *err)
{
    struct tide_outcome outcome;
    char dir[4096];
    char when[32];
    char waits[60] = "nothing waits";
    uint64_t actions = 0;
    bool read = false;
    (void)snprintf(dir, sizeof dir, "%.4000s/reader", home->cache_dir);
    if (strcmp(account->provider, tide_mail_system.provider) == 0)
        TIDE_TRY(tide_cache_exists(home->world, dir, account->name, &read, err));
    if (!read)
        return TIDE_OK;
    TIDE_TRY(actions_waiting(ledger, account->id, &actions, err));
    tide_outcome_read(ledger, account->id, home->mem, &outcome);
    const uint64_t offline_ms = tide_outcome_offline_ms(&outcome);
    if (actions > 0)
        waits_write(actions, "action", waits, sizeof waits);
    else if (home->jobs_waiting > 0)
        waits_write(home->jobs_waiting, "job", waits, sizeof waits);
    if (home->shown != NULL && offline_ms > 0)
        (void)snprintf(out->words, sizeof out->words, "Offline since %s, %s",
                       cli_time(offline_ms, when), waits);
    else
        (void)snprintf(out->words, sizeof out->words, "%s, %s",
                       state_of(home->shown, account->name), waits);
    return TIDE_OK;
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
