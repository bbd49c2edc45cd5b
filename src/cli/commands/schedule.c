/* schedule.c - `tidemark schedule`: commands that `tidemark serve` runs at their times (E8).
 *
 * What can be scheduled comes from the list of systems, and from the table below. */
#include "cli/run/call.h"
#include "cli/run/schedule_change.h"

#include "base/clocktext.h"
#include "ledger/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES_MAX = TIDE_PLANNED_NAME_BYTES - 1, LINE_BYTES = 500 };

/* `tidemark serve` has another working directory than the terminal. */
static tide_status backup_check(struct cli *cli)
{
    if (cli->arguments[0][0] == '/')
        return TIDE_OK;
    return cli_wrong(cli, "Write the whole path, from / on.",
                     "a scheduled backup cannot go to the relative path \"%.200s\"",
                     cli->arguments[0]);
}

static const struct tide_action common_actions[] = {
    {"backup", NULL, "weekly sun 03:00", "copies state and archives to a directory: backup DIR",
     backup_check},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- what can be scheduled ---- */

/* Each list in turn; false: there are no more. */
static bool actions_at(const struct cli *cli, size_t index, const struct tide_action **actions_out)
{
    if (index == 0)
        *actions_out = common_actions;
    else if (cli->systems[index - 1] == NULL)
        return false;
    else
        *actions_out = cli->systems[index - 1]->actions;
    return true;
}

static bool is_command(const struct tide_action *action, const struct cli_command *command)
{
    char text[80];
    (void)snprintf(text, sizeof text, "%s%s%s", command->group, command->verb == NULL ? "" : " ",
                   command->verb == NULL ? "" : command->verb);
    return strcmp(text, action->command) == 0;
}

static const struct tide_action *action_of(const struct cli *cli, const struct cli_command *command)
{
    const struct tide_action *actions = NULL;
    for (size_t i = 0; actions_at(cli, i, &actions); i++)
        for (; actions != NULL && actions->command != NULL; actions++)
            if (is_command(actions, command))
                return actions;
    return NULL;
}

static tide_status cannot_be(struct cli *cli, const struct cli_command *command)
{
    const struct tide_action *actions = NULL;
    char hint[sizeof cli->hint] = "These can:";
    for (size_t i = 0; actions_at(cli, i, &actions); i++)
        for (; actions != NULL && actions->command != NULL; actions++) {
            const size_t used = strlen(hint);
            (void)snprintf(hint + used, sizeof hint - used, "%s %s",
                           strcmp(hint, "These can:") == 0 ? "" : ",", actions->command);
        }
    (void)strncat(hint, ".", sizeof hint - strlen(hint) - 1);
    return cli_wrong(cli, hint, "`%s%s%s` cannot be scheduled", command->group,
                     command->verb == NULL ? "" : " ", command->verb == NULL ? "" : command->verb);
}

/* ---- add ---- */

static bool name_is_plain(const char *name)
{
    const size_t bytes = strlen(name);
    return bytes > 0 && bytes <= NAME_BYTES_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
               bytes;
}

/* "mail-sync", unless the user names it. */
static tide_status name_set(struct cli *cli, const struct cli_command *command,
                            struct tide_planned *planned)
{
    const char *named = cli_flag(cli, "name");
    if (named != NULL && !name_is_plain(named))
        return cli_wrong(cli, "Use up to 64 letters, digits and -_. in it.",
                         "\"%.70s\" cannot be the name of a schedule", named);
    if (named != NULL)
        (void)snprintf(planned->name, sizeof planned->name, "%s", named);
    else
        (void)snprintf(planned->name, sizeof planned->name, "%s%s%s", command->group,
                       command->verb == NULL ? "" : "-",
                       command->verb == NULL ? "" : command->verb);
    return TIDE_OK;
}

static tide_status at_set(struct cli *cli, struct tide_planned *planned)
{
    const char *at = cli_flag(cli, "at");
    const char *jitter = cli_flag(cli, "jitter");
    struct tide_timetable timetable;
    if (at == NULL)
        return cli_wrong(cli, "Give --at \"every 15min\" or --at \"daily 03:30\".",
                         "a schedule needs a time");
    if (strlen(at) >= sizeof planned->at)
        return cli_wrong(cli, "Write it shorter.", "--at is too long");
    if (tide_timetable_parse(tide_text_of(at), &timetable, &cli->err) != TIDE_OK) {
        cli->exit_code = CLI_EXIT_USAGE;
        return cli_hint(cli, TIDE_INVALID, "See `tidemark schedule add --help`.");
    }
    if (tide_timetable_next(&timetable, cli->now_unix_ms, cli->now_unix_ms, &schedule_zone) ==
        TIDE_TIMETABLE_NEVER)
        return cli_wrong(cli, "Check day and month.", "there is no such time: \"%s\"", at);
    (void)snprintf(planned->at, sizeof planned->at, "%s", at);
    if (jitter != NULL && !tide_duration_parse(tide_text_of(jitter), &planned->jitter_ms))
        return cli_wrong(cli, "Write it as 5m or 1h.", "--jitter \"%.40s\" is not a duration",
                         jitter);
    return TIDE_OK;
}

static tide_status words_set(struct cli *cli, struct tide_planned *planned)
{
    tide_json array;
    tide_buf line;
    tide_json_array(&array);
    tide_buf_init(&line, cli->mem, sizeof planned->words);
    for (unsigned i = 0; i < cli->arguments_count; i++)
        tide_json_append_cstr(&array, cli->arguments[i]);
    const tide_status rc = tide_json_line(&array, &line);
    if (rc == TIDE_OK)
        (void)snprintf(planned->words, sizeof planned->words, "%.*s", (int)line.bytes - 1,
                       tide_buf_cstr(&line));
    tide_json_done(&array);
    tide_buf_done(&line);
    return rc == TIDE_FULL ? cli_wrong(cli, "Write it shorter.", "the command is too long") : rc;
}

static bool has_flag(const struct cli *cli, const char *name)
{
    for (unsigned i = 0; i < cli->values_count; i++)
        if (strcmp(cli->values[i].flag->name, name) == 0)
            return true;
    return false;
}

/* What would fail at each of its times is refused here; so is a command that would ask a user, since
 * nobody is there. */
static tide_status command_check(struct cli *call, void *arg)
{
    const struct cli_command **command = arg;
    const struct tide_action *action = action_of(call, call->command);
    *command = call->command;
    if (action == NULL)
        return cannot_be(call, call->command);
    if (action->needs != NULL && !has_flag(call, action->needs)) {
        char hint[120];
        (void)snprintf(hint, sizeof hint, "Add --%s after `--`: nobody is there to be asked.",
                       action->needs);
        return cli_wrong(call, hint, "`%s` asks for confirmation", action->command);
    }
    return action->check == NULL ? TIDE_OK : action->check(call);
}

static uint64_t next_of(const struct cli *cli, const struct tide_planned *planned)
{
    uint64_t next_unix_ms = TIDE_TIMETABLE_NEVER;
    if (tide_planned_next(planned, cli->now_unix_ms, &schedule_zone, &next_unix_ms, NULL) !=
        TIDE_OK)
        return TIDE_TIMETABLE_NEVER;
    return next_unix_ms;
}

static void set_time(tide_json *json, const char *field, uint64_t unix_ms)
{
    if (unix_ms == 0 || unix_ms == TIDE_TIMETABLE_NEVER)
        tide_json_set_null(json, field);
    else
        tide_json_set_u64(json, field, unix_ms);
}

tide_status cli_schedule_add(struct cli *cli)
{
    const struct cli_command *command = NULL;
    struct tide_planned planned = {.created_unix_ms = cli->now_unix_ms,
                                   .covered_unix_ms = cli->now_unix_ms};
    char when[32];
    tide_status rc =
        cli_call_check(cli, cli->arguments, cli->arguments_count, command_check, &command);
    if (rc == TIDE_OK)
        rc = name_set(cli, command, &planned);
    if (rc == TIDE_OK)
        rc = at_set(cli, &planned);
    if (rc == TIDE_OK)
        rc = words_set(cli, &planned);
    if (rc == TIDE_OK)
        rc = schedule_change(cli, SCHEDULE_ADD, &planned);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc,
                        rc == TIDE_EXISTS ? "Remove that one, or give this one another --name."
                                          : "Run `tidemark ledger check`.");
    const uint64_t next_unix_ms = next_of(cli, &planned);
    cli_print(cli, "%s runs first at %s, while `tidemark serve` runs\n", planned.name,
              cli_time(next_unix_ms, when));
    tide_json_set_cstr(&cli->json, "name", planned.name);
    set_time(&cli->json, "next_unix_ms", next_unix_ms);
    return TIDE_OK;
}

/* ---- list ---- */

struct listing {
    struct cli *cli;
    tide_json list;
};

static const char *state_of(const struct tide_planned *planned)
{
    if (planned->started_unix_ms == 0)
        return "never";
    if (planned->ended_unix_ms == 0)
        return "running";
    switch (planned->exit_code) {
    case CLI_EXIT_DONE:
        return "done";
    case CLI_EXIT_BAD_ITEMS:
        return "bad_items";
    case CLI_EXIT_SIGN_IN:
        return "sign_in";
    case CLI_EXIT_INTERRUPTED:
        return "interrupted";
    default:
        return "failed";
    }
}

static bool list_row(void *arg, const struct tide_planned *planned)
{
    struct listing *listing = arg;
    struct cli *cli = listing->cli;
    const uint64_t next_unix_ms = next_of(cli, planned);
    const char *words[CLI_ARGUMENTS_MAX];
    json_t *array = NULL;
    char line[LINE_BYTES] = "";
    char when[32];
    tide_json json;
    const size_t count = schedule_words(planned, words, CLI_ARGUMENTS_MAX, &array);
    for (size_t i = 0; i < count; i++) {
        const size_t used = strlen(line);
        (void)snprintf(line + used, sizeof line - used, "%s%s", i == 0 ? "" : " ", words[i]);
    }
    tide_json_object(&json);
    tide_json_set_cstr(&json, "name", planned->name);
    tide_json_set_cstr(&json, "at", planned->at);
    tide_json_set_u64(&json, "jitter_ms", planned->jitter_ms);
    tide_json_set(&json, "command", &(tide_json){.value = array});
    set_time(&json, "created_unix_ms", planned->created_unix_ms);
    set_time(&json, "next_unix_ms", next_unix_ms);
    set_time(&json, "wanted_unix_ms", planned->wanted_unix_ms);
    tide_json_set_cstr(&json, "last", state_of(planned));
    set_time(&json, "started_unix_ms", planned->started_unix_ms);
    set_time(&json, "ended_unix_ms", planned->ended_unix_ms);
    tide_json_set_u64(&json, "exit_code", planned->exit_code);
    tide_json_set_cstr(&json, "result", planned->result);
    tide_json_set_cstr(&json, "runner", planned->runner);
    tide_json_set_u64(&json, "runs", planned->runs);
    tide_json_append(&listing->list, &json);
    cli_cell(cli, "%s", planned->name);
    cli_cell(cli, "%s", planned->at);
    cli_cell(cli, "%s", line);
    cli_cell(cli, "%s", cli_time(next_unix_ms == TIDE_TIMETABLE_NEVER ? 0 : next_unix_ms, when));
    cli_cell(cli, "%s", cli_time(planned->started_unix_ms, when));
    cli_cell(cli, "%s%s%s", state_of(planned), planned->result[0] == '\0' ? "" : ": ",
             planned->result);
    return true;
}

/* What could be, with an example of a time each. */
static void list_actions(struct cli *cli, bool show)
{
    const struct tide_action *actions = NULL;
    tide_json list;
    tide_json_array(&list);
    if (show)
        cli_print(cli, "These can be scheduled:\n");
    for (size_t i = 0; actions_at(cli, i, &actions); i++)
        for (; actions != NULL && actions->command != NULL; actions++) {
            tide_json json;
            tide_json_object(&json);
            tide_json_set_cstr(&json, "command", actions->command);
            tide_json_set_cstr(&json, "needs", actions->needs);
            tide_json_set_cstr(&json, "at", actions->at);
            tide_json_set_cstr(&json, "words", actions->words);
            tide_json_append(&list, &json);
            if (show)
                cli_print(cli, "  %-14s %s, such as --at \"%s\"\n", actions->command,
                          actions->words, actions->at);
        }
    tide_json_set(&cli->json, "can", &list);
}

static bool is_served(struct cli *cli)
{
    tide_json request;
    json_t *answer = NULL;
    bool runs = false;
    tide_json_object(&request);
    tide_json_set_cstr(&request, "op", "page");
    const tide_error kept = cli->err;
    const bool served = cli_engine_ask(cli, &request, &runs, &answer) == TIDE_OK;
    json_decref(answer);
    cli->err = kept;
    cli->hint[0] = '\0';
    return served;
}

tide_status cli_schedule_list(struct cli *cli)
{
    static const char *const headings[] = {"NAME", "AT", "COMMAND", "NEXT", "LAST RUN", "RESULT"};
    struct listing listing = {.cli = cli};
    tide_status rc = cli_ledger_read(cli);
    if (rc != TIDE_OK)
        return rc;
    tide_json_array(&listing.list);
    cli_table_begin(cli, headings, 6);
    rc = tide_planned_each(tide_ledger_rows(cli->ledger), list_row, &listing, &cli->err);
    cli_table_end(cli, "nothing is scheduled; add something with `tidemark schedule add`");
    const bool any = json_array_size(listing.list.value) > 0;
    const bool served = any && is_served(cli);
    tide_json_set(&cli->json, "schedules", &listing.list);
    tide_json_set_bool(&cli->json, "served", served);
    list_actions(cli, !any || cli->verbose);
    if (rc == TIDE_OK && any && !served)
        cli_print(cli, "`tidemark serve` does not run here: nothing starts by itself\n");
    return cli_hint(cli, rc, "Run `tidemark ledger check`.");
}

/* ---- remove, run ---- */

tide_status cli_schedule_remove(struct cli *cli)
{
    struct tide_planned planned = {.runs = 0};
    (void)snprintf(planned.name, sizeof planned.name, "%.64s", cli->arguments[0]);
    const tide_status rc = schedule_change(cli, SCHEDULE_REMOVE, &planned);
    if (rc == TIDE_OK)
        cli_print(cli, "%s is removed\n", planned.name);
    tide_json_set_cstr(&cli->json, "removed", planned.name);
    return cli_hint(cli, rc, "`tidemark schedule list` shows their names.");
}

/* The row says so: a crash of that process does not lose it. */
static tide_status run_there(struct cli *cli, struct tide_planned *planned)
{
    if (!is_served(cli))
        return cli_fail(cli, TIDE_NOT_FOUND, "Start it, or omit --no-wait.",
                        "`tidemark serve` does not run in %.300s", cli->state_dir);
    planned->wanted_unix_ms = cli->asked_unix_ms;
    const tide_status rc = schedule_change(cli, SCHEDULE_WANT, planned);
    if (rc == TIDE_OK)
        cli_print(cli, "asked for a run of %s; `tidemark schedule list` shows how it ends\n",
                  planned->name);
    tide_json_set_cstr(&cli->json, "name", planned->name);
    return cli_hint(cli, rc, "`tidemark schedule list` shows their names.");
}

/* Runs it in this process, as if the user had typed its command; its engine hands over if another
 * process has the home. */
tide_status cli_schedule_run(struct cli *cli)
{
    struct tide_planned planned;
    const char *words[CLI_ARGUMENTS_MAX];
    struct cli_called called;
    json_t *array = NULL;
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_planned_find(tide_ledger_rows(cli->ledger), cli->arguments[0], &planned,
                               &cli->err);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "`tidemark schedule list` shows their names.");
    cli_ledger_close(cli);
    if (cli_flag(cli, "no-wait") != NULL)
        return run_there(cli, &planned);
    const size_t count = schedule_words(&planned, words, CLI_ARGUMENTS_MAX, &array);
    if (count == 0) {
        json_decref(array);
        return cli_fail(cli, TIDE_CORRUPT, "Remove it and add it again.",
                        "the command of schedule %s cannot be read", planned.name);
    }
    planned.started_unix_ms = tide_world_now_unix_ms(cli->world);
    rc = cli_call(cli, words, count, cli_interruptible(cli), &called);
    json_decref(array);
    if (rc != TIDE_OK)
        return cli_fail(cli, rc, "Free some memory.", "out of memory");
    planned.ended_unix_ms = tide_world_now_unix_ms(cli->world);
    planned.exit_code = (uint64_t)called.exit_code;
    (void)snprintf(planned.result, sizeof planned.result, "%s", called.line);
    (void)snprintf(planned.runner, sizeof planned.runner, "command");
    rc = schedule_change(cli, SCHEDULE_RAN, &planned);
    tide_json_set_cstr(&cli->json, "name", planned.name);
    tide_json_set_u64(&cli->json, "exit_code", planned.exit_code);
    tide_json_set_cstr(&cli->json, "result", planned.result);
    tide_json_set(&cli->json, "output", &called.json);
    if (rc == TIDE_OK && called.status != TIDE_OK)
        rc = cli_fail(cli, called.status, called.hint, "%s", called.line);
    else if (rc == TIDE_OK)
        cli_print(cli, "%s: %s\n", planned.name, called.line);
    cli->exit_code = called.exit_code;
    cli_called_done(&called);
    return rc;
}
