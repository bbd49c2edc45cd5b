/* status.c - `tidemark reader status|folders`: what each account does and waits for; its lists. */
#include "reader/commands/home.h"

#include "reader/commands/working.h"

#include "ledger/outcome.h"
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

static void number_set(tide_json *one, const char *name, uint64_t number)
{
    if (number == 0)
        tide_json_set_null(one, name);
    else
        tide_json_set_u64(one, name, number);
}

/* The first sync, in days of the chosen window (K8): how many messages it has, no server says. */
static void initial_set(const struct reader_home *home, const json_t *state, const char *name,
                        tide_json *one)
{
    const uint64_t now_ms = home->cli->now_unix_ms;
    const json_int_t said_ms = json_integer_value(json_object_get(state, "window_ms"));
    const uint64_t window_ms = said_ms > 0 ? (uint64_t)said_ms : 0;
    const uint64_t total = window_ms >= now_ms ? 0 : (window_ms + day_ms - 1) / day_ms;
    uint64_t done = 0;
    tide_json initial;
    if (strcmp(name, "initial") != 0) {
        tide_json_set_null(one, "initial");
        return;
    }
    if (home->all.floor_ms >= 0 && (uint64_t)home->all.floor_ms < now_ms)
        done = (now_ms - (uint64_t)home->all.floor_ms) / day_ms;
    tide_json_object(&initial);
    tide_json_set_u64(&initial, "done", total > 0 && done > total ? total : done);
    number_set(&initial, "total", total); /* null: all mail, from nobody knows when */
    tide_json_set_cstr(&initial, "unit", "days");
    tide_json_set(one, "initial", &initial);
}

static void work_set(const struct reader_home *home, const struct reader_work *work, tide_json *one)
{
    struct tide_outcome outcome;
    tide_json waiting;
    char level[16];
    if (work->kind[0] == '\0') {
        tide_json_set_null(one, "doing");
    } else {
        tide_json doing;
        tide_json_object(&doing);
        tide_json_set_u64(&doing, "job", work->job);
        tide_json_set_cstr(&doing, "kind", work->kind);
        tide_json_set_cstr(&doing, "what", work->what);
        tide_json_set(one, "doing", &doing);
    }
    tide_json_object(&waiting);
    for (unsigned i = 1; i <= READER_LEVELS; i++) {
        (void)snprintf(level, sizeof level, "level%u", i);
        tide_json_set_u64(&waiting, level, work->waiting[i]);
    }
    tide_json_set(one, "waiting", &waiting);
    tide_outcome_read(home->cli->ledger, home->mailbox.account, home->cli->mem, &outcome);
    number_set(one, "offline_since", tide_outcome_offline_ms(&outcome));
}

struct looking {
    struct cli *cli;
    const json_t *answer; /* NULL: no process stays */
    struct reader_working working;
    tide_json list;
};

static void account_print(const struct reader_home *home, const char *name,
                          const struct reader_work *work, uint64_t actions, uint64_t refused)
{
    struct cli *cli = home->cli;
    char when[32];
    cli_cell(cli, "%s", home->email);
    cli_cell(cli, "%s", name);
    cli_cell(cli, "%s",
             home->all.floor_ms == INT64_MAX ? "-" : cli_time((uint64_t)home->all.floor_ms, when));
    cli_cell(cli, "%" PRIu64, actions);
    cli_cell(cli, "%" PRIu64, refused);
    if (work->kind[0] == '\0')
        cli_cell(cli, "-");
    else
        cli_cell(cli, "%s%s%s", work->kind, work->what[0] == '\0' ? "" : " ", work->what);
    cli_cell(cli, "%" PRIu64, reader_work_waiting(work));
}

static tide_status account_look(struct looking *looking, struct reader_home *home)
{
    const json_t *state = state_of(looking->answer, home->email);
    const char *said = json_string_value(json_object_get(state, "state"));
    const char *name = said != NULL ? said : home->listed ? "passive" : "initial";
    const struct reader_work *work = reader_working_of(&looking->working, home->mailbox.account);
    const json_int_t next = json_integer_value(json_object_get(state, "next_poll_unix_ms"));
    char version[READER_VERSION_BYTES] = "";
    uint64_t waiting = 0;
    tide_json one;
    TIDE_TRY(reader_home_version(home, version));
    tide_json_object(&one);
    tide_json_set_cstr(&one, "account", home->email);
    tide_json_set_cstr(&one, "state", name);
    tide_json_set_bool(&one, "saving", json_is_true(json_object_get(state, "saving")));
    number_set(&one, "next_poll_unix_ms", next > 0 ? (uint64_t)next : 0);
    if (home->all.floor_ms == INT64_MAX)
        tide_json_set_null(&one, "known_unix_ms");
    else
        tide_json_set_i64(&one, "known_unix_ms", home->all.floor_ms);
    initial_set(home, state, name, &one);
    work_set(home, work, &one);
    actions_set(home, &one, &waiting);
    const uint64_t refused = refused_set(home, &one);
    tide_json_set_cstr(&one, "version", version);
    tide_json_append(&looking->list, &one);
    account_print(home, name, work, waiting, refused);
    return TIDE_OK;
}

static tide_status account_status(struct looking *looking, const char *email)
{
    struct reader_home home;
    tide_status rc = reader_home_open(looking->cli, email, &home);
    if (rc == TIDE_OK && home.mailbox.cache != NULL) /* else nobody looked at it yet */
        rc = account_look(looking, &home);
    reader_home_close(&home);
    return rc;
}

tide_status cli_reader_status(struct cli *cli)
{
    static const char *const headings[] = {"ACCOUNT",     "STATE", "KNOWN SINCE", "WAITING ACTIONS",
                                           "NOT FETCHED", "DOING", "WAITING JOBS"};
    json_auto_t *answer = NULL;
    struct looking looking = {.cli = cli};
    bool has = false;
    tide_json request;
    struct accounts *accounts = tide_mem_new(cli->mem, sizeof *accounts);
    tide_json_object(&request);
    tide_json_array(&looking.list);
    if (reader_ask(cli, "states", &request, &answer) != TIDE_OK) {
        cli->err = (tide_error){TIDE_OK, 0, ""}; /* no process stays: what is stored is shown */
        cli->hint[0] = '\0';
    }
    looking.answer = answer;
    tide_status rc = accounts == NULL
                         ? cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory")
                         : cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_rows_has(tide_ledger_rows(cli->ledger), "mail_account", "the accounts", &has,
                           &cli->err);
    if (rc == TIDE_OK && has)
        rc = tide_mail_rows(tide_ledger_rows(cli->ledger), note_account, accounts, &cli->err);
    if (rc == TIDE_OK)
        rc = reader_working_read(cli, &looking.working);
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    for (size_t i = 0; rc == TIDE_OK && i < accounts->count; i++)
        rc = account_status(&looking, accounts->emails[i]);
    cli_table_end(cli, "no mailbox was read here yet");
    tide_json_set(&cli->json, "accounts", &looking.list);
    reader_working_done(&looking.working);
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

static uint64_t count_of(const json_t *counts, const char *label)
{
    const json_int_t count = json_integer_value(json_object_get(counts, label));
    return count > 0 ? (uint64_t)count : 0;
}

static void folder_add(const struct tide_cache_label *label, void *arg)
{
    struct folders *folders = arg;
    struct cli *cli = folders->home->cli;
    char id[TIDE_LABEL_BYTES_MAX + 1];
    tide_json one;
    (void)snprintf(id, sizeof id, "%.*s", (int)label->id.bytes, label->id.data);
    const uint64_t unread = count_of(folders->unread, id);
    const uint64_t total = count_of(folders->totals, id);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "id", id);
    tide_json_set_text(&one, "name", label->name);
    tide_json_set_text(&one, "type", label->type);
    tide_json_set_u64(&one, "unread", unread);
    tide_json_set_u64(&one, "total", total);
    (void)json_array_append_new(folders->list, one.value);
    cli_cell(cli, "%s", id);
    cli_cell_text(cli, label->name);
    cli_cell(cli, "%" PRIu64, unread);
    cli_cell(cli, "%" PRIu64, total);
}

static tide_status folders_show(struct folders *folders)
{
    static const char *const headings[] = {"ID", "NAME", "UNREAD", "TOTAL"};
    const struct reader_home *home = folders->home;
    struct cli *cli = home->cli;
    char version[READER_VERSION_BYTES];
    TIDE_TRY(reader_home_version(home, version));
    TIDE_TRY(tide_reader_totals(&home->mailbox, folders->totals, folders->unread, &cli->err));
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
