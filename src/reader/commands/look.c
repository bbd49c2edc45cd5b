/* look.c - `tidemark reader list|days|changes|found|actions`: lists of messages, and what waits. */
#include "base/clocktext.h"
#include "reader/commands/home.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 50 };

static void row_cells(struct cli *cli, const json_t *row)
{
    char when[32];
    const char *unread = json_is_true(json_object_get(row, "unread")) ? "*" : "";
    cli_cell(cli, "%s", json_string_value(json_object_get(row, "id")));
    cli_cell(
        cli, "%s",
        cli_time((uint64_t)json_integer_value(json_object_get(row, "internal_unix_ms")), when));
    cli_cell(cli, "%s", unread);
    cli_cell_text(cli, tide_text_of(json_string_value(json_object_get(row, "from"))));
    cli_cell_text(cli, tide_text_of(json_string_value(json_object_get(row, "subject"))));
}

void reader_rows_print(struct cli *cli, const json_t *rows)
{
    static const char *const headings[] = {"ID", "DATE", "NEW", "FROM", "SUBJECT"};
    size_t at = 0;
    const json_t *row = NULL;
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    json_array_foreach(rows, at, row)
    {
        row_cells(cli, row);
    }
    cli_table_end(cli, "no messages");
}

static tide_status number_of(struct cli *cli, const char *flag, uint64_t otherwise,
                             uint64_t *number_out)
{
    char name[40];
    (void)snprintf(name, sizeof name, "--%s", flag);
    *number_out = otherwise;
    return cli_flag(cli, flag) == NULL ? TIDE_OK
                                       : cli_number(cli, cli_flag(cli, flag), name, number_out);
}

/* ---- list ---- */

static tide_status list(const struct reader_home *home)
{
    struct cli *cli = home->cli;
    const char *after = cli_flag(cli, "after");
    uint64_t limit = LIMIT;
    uint64_t before = 0;
    TIDE_TRY(number_of(cli, "limit", LIMIT, &limit));
    TIDE_TRY(number_of(cli, "before", 0, &before));
    const struct tide_listing listing = {
        .label = tide_text_of(cli->arguments[1]),
        .after = after == NULL ? TIDE_TEXT("") : tide_text_of(after),
        .before_ms = before == 0 ? INT64_MAX : (int64_t)before,
        .limit = limit == 0 || limit > 500 ? LIMIT : (uint32_t)limit};
    struct tide_listed listed = {.next = tide_buf_in(cli->mem, 1000)};
    tide_json items;
    tide_json_array(&items);
    const tide_status rc = tide_reader_list(&home->mailbox, &listing, &items, &listed, &cli->err);
    if (rc == TIDE_OK) {
        reader_rows_print(cli, items.value);
        if (listed.next.bytes > 0)
            cli_print(cli, "more: tidemark reader list ... --after '%s'\n",
                      tide_buf_cstr(&listed.next));
        tide_json_set_cstr(&cli->json, "next",
                           listed.next.bytes == 0 ? NULL : tide_buf_cstr(&listed.next));
        tide_json_set_bool(&cli->json, "more_online", listed.more_online);
    }
    tide_json_set(&cli->json, "items", &items);
    tide_buf_done(&listed.next);
    return rc;
}

static tide_status with_home(struct cli *cli, const char *email,
                             tide_status (*what)(const struct reader_home *home))
{
    struct reader_home home;
    tide_status rc = reader_home_open(cli, email, &home);
    if (rc == TIDE_OK)
        rc = what(&home);
    reader_home_close(&home);
    return rc;
}

tide_status cli_reader_list(struct cli *cli)
{
    return with_home(cli, cli->arguments[0], list);
}

/* ---- days ---- */

struct days {
    struct cli *cli;
    json_t *list;
    uint64_t total;
};

static void day_show(int64_t day, uint64_t count, void *arg)
{
    struct days *days = arg;
    char when[TIDE_TIME_TEXT_BYTES];
    tide_json one;
    tide_time_format((uint64_t)day * 86400000, when);
    when[strlen("2026-11-17")] = '\0';
    days->total += count;
    tide_json_object(&one);
    tide_json_set_cstr(&one, "day", when);
    tide_json_set_u64(&one, "count", count);
    (void)json_array_append_new(days->list, one.value);
    cli_cell(days->cli, "%s", when);
    cli_cell(days->cli, "%" PRIu64, count);
}

static tide_status days(const struct reader_home *home)
{
    static const char *const headings[] = {"DAY", "MESSAGES"};
    struct cli *cli = home->cli;
    struct days all = {.cli = cli, .list = json_array()};
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    const tide_status rc = tide_reader_days(&home->mailbox, tide_text_of(cli->arguments[1]),
                                            day_show, &all, &cli->err);
    cli_table_end(cli, "no messages");
    tide_json_set(&cli->json, "days", &(tide_json){.value = all.list});
    tide_json_set_u64(&cli->json, "total", all.total);
    return rc;
}

tide_status cli_reader_days(struct cli *cli)
{
    return with_home(cli, cli->arguments[0], days);
}

/* ---- changes ---- */

struct changed {
    struct cli *cli;
    json_t *ids; /* a set */
};

static void note(tide_text id, void *arg)
{
    struct changed *changed = arg;
    char name[TIDE_CACHE_ID_BYTES];
    (void)snprintf(name, sizeof name, "%.*s", (int)id.bytes, id.data);
    (void)json_object_set_new(changed->ids, name, json_true());
}

/* Each as it is now: a row, or gone. */
static tide_status rows_of(const struct reader_home *home, const json_t *ids, tide_json *items,
                           tide_json *gone)
{
    const char *id = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)ids, id, value)
    {
        struct tide_reader_shown shown;
        tide_json row;
        const tide_status rc =
            tide_shown_read(&home->mailbox, tide_text_of(id), &shown, &home->cli->err);
        if (rc == TIDE_OK && !shown.gone) {
            tide_json_object(&row);
            tide_shown_json(&shown, &row);
            tide_json_append(items, &row);
        } else if (rc == TIDE_OK || rc == TIDE_NOT_FOUND) {
            tide_json_append_cstr(gone, id);
        }
        tide_shown_done(&shown);
        if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
            return rc;
    }
    home->cli->err = (tide_error){TIDE_OK, 0, ""};
    return TIDE_OK;
}

/* Whether something was stored or moved in the archive, which keeps no list of it. */
static bool archive_changed(const char *since, const char *version)
{
    uint64_t before = 0;
    uint64_t now = 0;
    (void)sscanf(version, "%*u.%*u.%" SCNu64, &now);
    return sscanf(since, "%*u.%*u.%" SCNu64, &before) != 1 || before != now;
}

static tide_status changed_ids(const struct reader_home *home, const char *since, json_t *ids,
                               bool *whole_out)
{
    struct cli *cli = home->cli;
    struct changed changed = {cli, ids};
    uint64_t cached = 0;
    uint64_t acted = 0;
    uint64_t newest = 0;
    *whole_out = sscanf(since, "%" SCNu64 ".%" SCNu64, &cached, &acted) == 2;
    if (!*whole_out)
        return TIDE_OK;
    if (home->mailbox.cache != NULL)
        TIDE_TRY(
            tide_cache_changes(home->mailbox.cache, cached, note, &changed, whole_out, &cli->err));
    if (home->mailbox.has_overlay)
        TIDE_TRY(tide_overlay_changes(home->mailbox.db, home->mailbox.account, acted, note,
                                      &changed, &newest, &cli->err));
    return TIDE_OK;
}

static tide_status changes(const struct reader_home *home)
{
    struct cli *cli = home->cli;
    const char *said = cli_flag(cli, "since");
    const char *since = said == NULL ? "" : said;
    char version[READER_VERSION_BYTES];
    json_auto_t *ids = json_object();
    tide_json items;
    tide_json gone;
    bool whole = false;
    tide_json_array(&items);
    tide_json_array(&gone);
    tide_status rc = reader_home_version(home, version); /* before what it stands for */
    if (rc == TIDE_OK)
        rc = changed_ids(home, since, ids, &whole);
    if (rc == TIDE_OK && whole)
        rc = rows_of(home, ids, &items, &gone);
    if (rc == TIDE_OK) {
        reader_rows_print(cli, items.value);
        tide_json_set_cstr(&cli->json, "version", version);
        tide_json_set_bool(&cli->json, "reset", !whole);
        tide_json_set_bool(&cli->json, "archive", archive_changed(since, version));
    }
    tide_json_set(&cli->json, "items", &items);
    tide_json_set(&cli->json, "gone", &gone);
    return rc;
}

tide_status cli_reader_changes(struct cli *cli)
{
    return with_home(cli, cli->arguments[0], changes);
}

/* ---- found ---- */

struct results {
    json_t *ids;
    bool done;
};

static void note_found(tide_text id, void *arg)
{
    struct results *results = arg;
    if (tide_text_equal(id, TIDE_TEXT(".")))
        results->done = true;
    else if (id.bytes > 0)
        (void)json_array_append_new(results->ids, json_stringn(id.data, id.bytes));
}

static tide_status found(const struct reader_home *home)
{
    struct cli *cli = home->cli;
    struct results results = {.ids = json_array()};
    tide_json items;
    tide_status rc = TIDE_OK;
    size_t at = 0;
    const json_t *one = NULL;
    tide_json_array(&items);
    if (home->mailbox.cache != NULL)
        rc = tide_cache_found(home->mailbox.cache, tide_text_of(cli->arguments[1]), note_found,
                              &results, &cli->err);
    json_array_foreach(results.ids, at, one)
    {
        struct tide_reader_shown shown = {.labels = NULL};
        tide_json row;
        if (rc == TIDE_OK && tide_shown_read(&home->mailbox, tide_text_of(json_string_value(one)),
                                             &shown, NULL) == TIDE_OK) {
            tide_json_object(&row);
            tide_shown_json(&shown, &row);
            tide_json_append(&items, &row);
        }
        tide_shown_done(&shown);
    }
    json_decref(results.ids);
    if (rc == TIDE_OK)
        reader_rows_print(cli, items.value);
    tide_json_set(&cli->json, "items", &items);
    tide_json_set_bool(&cli->json, "done", results.done);
    return rc;
}

tide_status cli_reader_found(struct cli *cli)
{
    return with_home(cli, cli->arguments[0], found);
}

/* ---- actions ---- */

static void action_row(const struct tide_reader_action *action, void *arg)
{
    struct cli *cli = arg;
    char when[32];
    tide_json one;
    json_t *list = json_object_get(cli->json.value, "items");
    tide_json_object(&one);
    tide_json_set_u64(&one, "id", action->id);
    tide_json_set_cstr(&one, "do", action->what);
    tide_json_set_cstr(&one, "state", tide_action_state_name(action->state));
    tide_json_set_cstr(&one, "error", action->error[0] == '\0' ? NULL : action->error);
    tide_json_set_u64(&one, "messages", action->messages);
    tide_json_set_u64(&one, "undo_of", action->undo_of);
    tide_json_set_u64(&one, "made_unix_ms", action->made_ms);
    tide_json_set_u64(&one, "due_unix_ms", action->due_ms);
    (void)json_array_append_new(list, one.value);
    cli_cell(cli, "%" PRIu64, action->id);
    cli_cell(cli, "%s", cli_time(action->made_ms, when));
    cli_cell(cli, "%s", action->what);
    cli_cell(cli, "%" PRIu64, action->messages);
    cli_cell(cli, "%s", tide_action_state_name(action->state));
    cli_cell(cli, "%s", action->error);
}

static tide_status state_of(struct cli *cli, const char *name, tide_action_state *state_out)
{
    for (int state = TIDE_ACTION_WAITING; state <= TIDE_ACTION_UNDONE; state++) {
        if (strcmp(tide_action_state_name((tide_action_state)state), name) == 0) {
            *state_out = (tide_action_state)state;
            return TIDE_OK;
        }
    }
    return cli_wrong(cli, "States are waiting, done, refused and undone.",
                     "there is no state \"%.20s\"", name);
}

static tide_status actions(const struct reader_home *home)
{
    static const char *const headings[] = {"ID", "MADE", "DO", "MESSAGES", "STATE", "WHY"};
    struct cli *cli = home->cli;
    const char *name = cli_flag(cli, "state");
    tide_action_state state = TIDE_ACTION_WAITING;
    uint64_t limit = LIMIT;
    tide_json items;
    tide_status rc = number_of(cli, "limit", LIMIT, &limit);
    if (rc == TIDE_OK && name != NULL)
        rc = state_of(cli, name, &state);
    tide_json_array(&items);
    tide_json_set(&cli->json, "items", &items);
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    const uint32_t most = limit == 0 || limit > 500 ? LIMIT : (uint32_t)limit;
    const struct tide_reader_mailbox *of = &home->mailbox;
    if (rc == TIDE_OK && of->has_overlay)
        rc = name == NULL
                 ? tide_actions_each(of->db, of->account, most, action_row, cli, &cli->err)
                 : tide_actions_in(of->db, of->account, state, most, action_row, cli, &cli->err);
    cli_table_end(cli, "no actions");
    return rc;
}

tide_status cli_reader_actions(struct cli *cli)
{
    return with_home(cli, cli->arguments[0], actions);
}
