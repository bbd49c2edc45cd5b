/* status.c - `tidemark reader status|folders`: what each account does and waits for; its lists. */
#include "reader/commands/home.h"

#include "ledger/rows.h"
#include "mail/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint64_t day_ms = 24 * 3600 * (uint64_t)1000;

/* ---- status ---- */

struct accounts {
    char emails[256][256];
    size_t count;
};

static void note_account(const struct tide_mail_row *row, void *arg)
{
    struct accounts *accounts = arg;
    if (accounts->count < 256)
        (void)snprintf(accounts->emails[accounts->count++], 256, "%s", row->email);
}

static const json_t *state_of(const json_t *answer, const char *email)
{
    size_t at = 0;
    const json_t *one = NULL;
    json_array_foreach(json_object_get(answer, "accounts"), at, one)
    {
        if (strcmp(json_string_value(json_object_get(one, "account")), email) == 0)
            return one;
    }
    return NULL;
}

static void actions_set(const struct reader_home *home, tide_json *one, uint64_t *waiting_out)
{
    uint64_t waiting = 0;
    uint64_t refused = 0;
    tide_json actions;
    if (home->mailbox.has_overlay)
        (void)tide_actions_count(home->mailbox.db, home->mailbox.account,
                                 home->cli->now_unix_ms > day_ms ? home->cli->now_unix_ms - day_ms
                                                                 : 0,
                                 &waiting, &refused, NULL);
    tide_json_object(&actions);
    tide_json_set_u64(&actions, "waiting", waiting);
    tide_json_set_u64(&actions, "refused", refused);
    tide_json_set(one, "actions", &actions);
    *waiting_out = waiting;
}

/* How many messages Gmail lists and does not give. */
static uint64_t refused_set(const struct reader_home *home, tide_json *one)
{
    uint64_t refused = 0;
    (void)tide_cache_refused_count(home->mailbox.cache, &refused, NULL);
    tide_json_set_u64(one, "not_fetched", refused);
    return refused;
}

static tide_status account_status(struct cli *cli, const char *email, const json_t *answer,
                                  tide_json *list)
{
    struct reader_home home;
    char version[48] = "";
    char when[32];
    uint64_t waiting = 0;
    const json_t *state = state_of(answer, email);
    const char *name = json_string_value(json_object_get(state, "state"));
    tide_status rc = reader_home_open(cli, email, &home);
    if (rc == TIDE_OK && home.mailbox.cache == NULL) {
        reader_home_close(&home);
        return TIDE_OK; /* nobody looked at it yet */
    }
    if (rc == TIDE_OK)
        rc = reader_home_version(&home, version);
    if (rc == TIDE_OK) {
        tide_json one;
        tide_json_object(&one);
        tide_json_set_cstr(&one, "account", email);
        tide_json_set_cstr(&one, "state",
                           name != NULL  ? name
                           : home.listed ? "passive"
                                         : "initial");
        tide_json_set_bool(&one, "saving", json_is_true(json_object_get(state, "saving")));
        const json_t *next = json_object_get(state, "next_poll_unix_ms");
        if (next == NULL)
            tide_json_set_null(&one, "next_poll_unix_ms");
        else
            tide_json_set_u64(&one, "next_poll_unix_ms", (uint64_t)json_integer_value(next));
        if (home.all.floor_ms == INT64_MAX)
            tide_json_set_null(&one, "known_unix_ms");
        else
            tide_json_set_i64(&one, "known_unix_ms", home.all.floor_ms);
        actions_set(&home, &one, &waiting);
        const uint64_t refused = refused_set(&home, &one);
        tide_json_set_cstr(&one, "version", version);
        tide_json_append(list, &one);
        cli_cell(cli, "%s", email);
        cli_cell(cli, "%s", name != NULL ? name : home.listed ? "passive" : "initial");
        cli_cell(cli, "%s",
                 home.all.floor_ms == INT64_MAX ? "-"
                                                : cli_time((uint64_t)home.all.floor_ms, when));
        cli_cell(cli, "%" PRIu64, waiting);
        cli_cell(cli, "%" PRIu64, refused);
    }
    reader_home_close(&home);
    return rc;
}

tide_status cli_reader_status(struct cli *cli)
{
    static const char *const headings[] = {"ACCOUNT", "STATE", "KNOWN SINCE", "WAITING ACTIONS",
                                           "NOT FETCHED"};
    json_auto_t *answer = NULL;
    bool has = false;
    tide_json request;
    tide_json list;
    struct accounts *accounts = tide_mem_new(cli->mem, sizeof *accounts);
    tide_json_object(&request);
    tide_json_array(&list);
    if (reader_ask(cli, "states", &request, &answer) != TIDE_OK) {
        cli->err = (tide_error){TIDE_OK, 0, ""}; /* no process stays: what is stored is shown */
        cli->hint[0] = '\0';
    }
    tide_status rc = accounts == NULL
                         ? cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory")
                         : cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_rows_has(tide_ledger_rows(cli->ledger), "mail_account", "the accounts", &has,
                           &cli->err);
    if (rc == TIDE_OK && has)
        rc = tide_mail_rows(tide_ledger_rows(cli->ledger), note_account, accounts, &cli->err);
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    for (size_t i = 0; rc == TIDE_OK && i < accounts->count; i++)
        rc = account_status(cli, accounts->emails[i], answer, &list);
    cli_table_end(cli, "no mailbox was read here yet");
    tide_json_set(&cli->json, "accounts", &list);
    tide_mem_free(cli->mem, accounts, sizeof *accounts);
    return rc;
}

/* ---- folders ---- */

struct folders {
    const struct reader_home *home;
    json_t *unread; /* label -> count */
    json_t *totals; /* likewise */
    json_t *list;
};

static bool tally(const struct tide_reader_shown *shown, void *arg)
{
    struct folders *folders = arg;
    const char *label = NULL;
    json_t *value = NULL;
    json_object_foreach(shown->labels, label, value)
    {
        const json_int_t count = json_integer_value(json_object_get(folders->unread, label));
        (void)json_object_set_new(folders->unread, label, json_integer(count + 1));
    }
    return true;
}

static void folder_add(const struct tide_cache_label *label, void *arg)
{
    struct folders *folders = arg;
    struct cli *cli = folders->home->cli;
    char id[TIDE_LABEL_BYTES_MAX + 1];
    tide_json one;
    (void)snprintf(id, sizeof id, "%.*s", (int)label->id.bytes, label->id.data);
    const json_int_t unread = json_integer_value(json_object_get(folders->unread, id));
    const json_int_t counted = json_integer_value(json_object_get(folders->totals, id));
    const uint64_t total = counted > 0 ? (uint64_t)counted : 0;
    tide_json_object(&one);
    tide_json_set_cstr(&one, "id", id);
    tide_json_set_text(&one, "name", label->name);
    tide_json_set_text(&one, "type", label->type);
    tide_json_set_u64(&one, "unread", (uint64_t)unread);
    tide_json_set_u64(&one, "total", total);
    (void)json_array_append_new(folders->list, one.value);
    cli_cell(cli, "%s", id);
    cli_cell_text(cli, label->name);
    cli_cell(cli, "%" JSON_INTEGER_FORMAT, unread);
    cli_cell(cli, "%" PRIu64, total);
}

static tide_status folders_show(struct folders *folders)
{
    static const char *const headings[] = {"ID", "NAME", "UNREAD", "TOTAL"};
    const struct reader_home *home = folders->home;
    struct cli *cli = home->cli;
    char version[48];
    TIDE_TRY(reader_home_version(home, version));
    TIDE_TRY(
        tide_reader_each(&home->mailbox, TIDE_TEXT("UNREAD"), 2000, tally, folders, &cli->err));
    TIDE_TRY(tide_reader_totals(&home->mailbox, folders->totals, &cli->err));
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    if (home->mailbox.cache != NULL)
        TIDE_TRY(tide_cache_labels_each(home->mailbox.cache, folder_add, folders, &cli->err));
    cli_table_end(cli, "no lists are known yet");
    tide_json_set_cstr(&cli->json, "account", home->email);
    tide_json_set_bool(&cli->json, "listed", home->listed);
    tide_json_set_cstr(&cli->json, "version", version);
    return TIDE_OK;
}

tide_status cli_reader_folders(struct cli *cli)
{
    struct reader_home home;
    struct folders folders = {
        .home = &home, .unread = json_object(), .totals = json_object(), .list = json_array()};
    tide_status rc = reader_home_open(cli, cli->arguments[0], &home);
    if (rc == TIDE_OK)
        rc = folders_show(&folders);
    tide_json_set(&cli->json, "lists", &(tide_json){.value = folders.list});
    json_decref(folders.unread);
    json_decref(folders.totals);
    reader_home_close(&home);
    return rc;
}
