#include "cli/run/schedule_change.h"

#include "ledger/rows.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- the change, in a transaction ---- */

struct change {
    schedule_do what;
    const struct tide_planned *planned;
    uint64_t now_unix_ms;
};

static tide_status change_rows(tide_rows rows, const struct change *change, tide_error *err)
{
    const struct tide_planned *planned = change->planned;
    switch (change->what) {
    case SCHEDULE_ADD:
        return tide_planned_add(rows, planned, err);
    case SCHEDULE_REMOVE:
        return tide_planned_remove(rows, planned->name, err);
    case SCHEDULE_RAN:
        return tide_planned_ran(rows, planned, err);
    case SCHEDULE_WANT:
        break;
    }
    return tide_planned_want(rows, planned->name, planned->wanted_unix_ms, change->now_unix_ms,
                             err);
}

static tide_status change_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    return change_rows(tide_transaction_rows(transaction), arg, err);
}

/* ---- as a request ---- */

static const char *const do_names[] = {"add", "remove", "ran", "want"};

static void planned_json(const struct tide_planned *planned, tide_json *json)
{
    tide_json_object(json);
    tide_json_set_cstr(json, "name", planned->name);
    tide_json_set_cstr(json, "at", planned->at);
    tide_json_set_cstr(json, "words", planned->words);
    tide_json_set_u64(json, "jitter_ms", planned->jitter_ms);
    tide_json_set_u64(json, "created_unix_ms", planned->created_unix_ms);
    tide_json_set_u64(json, "covered_unix_ms", planned->covered_unix_ms);
    tide_json_set_u64(json, "wanted_unix_ms", planned->wanted_unix_ms);
    tide_json_set_u64(json, "started_unix_ms", planned->started_unix_ms);
    tide_json_set_u64(json, "ended_unix_ms", planned->ended_unix_ms);
    tide_json_set_u64(json, "exit_code", planned->exit_code);
    tide_json_set_cstr(json, "result", planned->result);
    tide_json_set_cstr(json, "runner", planned->runner);
}

static tide_status text_read(const json_t *json, const char *field, char *out, size_t out_bytes,
                             tide_error *err)
{
    tide_text text = TIDE_TEXT_NONE;
    const tide_status rc = tide_json_get_text(json, field, &text, err);
    if (rc != TIDE_OK)
        return rc;
    if (text.bytes >= out_bytes)
        return tide_error_set(err, TIDE_INVALID, "schedule: \"%s\" is too long", field);
    (void)snprintf(out, out_bytes, "%s", text.data);
    return TIDE_OK;
}

static tide_status planned_read(const json_t *json, struct tide_planned *planned, tide_error *err)
{
    const struct {
        const char *name;
        uint64_t *number;
    } numbers[] = {{"jitter_ms", &planned->jitter_ms},
                   {"created_unix_ms", &planned->created_unix_ms},
                   {"covered_unix_ms", &planned->covered_unix_ms},
                   {"wanted_unix_ms", &planned->wanted_unix_ms},
                   {"started_unix_ms", &planned->started_unix_ms},
                   {"ended_unix_ms", &planned->ended_unix_ms},
                   {"exit_code", &planned->exit_code}};
    const struct {
        const char *name;
        char *text;
        size_t bytes;
    } texts[] = {{"name", planned->name, sizeof planned->name},
                 {"at", planned->at, sizeof planned->at},
                 {"words", planned->words, sizeof planned->words},
                 {"result", planned->result, sizeof planned->result},
                 {"runner", planned->runner, sizeof planned->runner}};
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < sizeof numbers / sizeof numbers[0]; i++)
        rc = tide_json_get_u64(json, numbers[i].name, numbers[i].number, err);
    for (size_t i = 0; rc == TIDE_OK && i < sizeof texts / sizeof texts[0]; i++)
        rc = text_read(json, texts[i].name, texts[i].text, texts[i].bytes, err);
    return rc == TIDE_NOT_FOUND ? TIDE_INVALID : rc;
}

static tide_status op_schedule(void *arg, const json_t *request, tide_json *answer, tide_error *err)
{
    struct cli *cli = arg;
    const char *wanted = json_string_value(json_object_get(request, "do"));
    struct tide_planned planned = {.runs = 0};
    size_t what = 0;
    (void)answer;
    while (what < sizeof do_names / sizeof do_names[0] &&
           (wanted == NULL || strcmp(do_names[what], wanted) != 0))
        what++;
    if (what == sizeof do_names / sizeof do_names[0])
        return tide_error_set(err, TIDE_INVALID, "schedule: \"do\" is add, remove, ran or want");
    tide_status rc = planned_read(json_object_get(request, "schedule"), &planned, err);
    struct change change = {(schedule_do)what, &planned, tide_world_now_unix_ms(cli->world)};
    if (rc == TIDE_OK)
        rc = tide_transact(cli->account_home.engine, change_run, &change, err);
    if (rc == TIDE_OK && cli->schedules_changed != NULL)
        cli->schedules_changed(cli->schedules_changed_arg);
    return rc;
}

tide_status schedule_op_add(struct cli *cli, tide_engine *engine)
{
    return tide_control_add(engine, "schedule", op_schedule, cli, &cli->err);
}

/* ---- from a command ---- */

static tide_status change_here(struct cli *cli, const struct change *change)
{
    tide_tx *tx = NULL;
    tide_status rc = cli_ledger_write(cli);
    if (rc == TIDE_OK)
        rc = tide_tx_begin(cli->ledger, &tx, &cli->err);
    if (rc != TIDE_OK)
        return rc;
    rc = change_rows(tide_tx_rows(tx), change, &cli->err);
    if (rc == TIDE_OK)
        return tide_tx_commit(tx, &cli->err);
    tide_tx_rollback(tx);
    return rc;
}

tide_status schedule_change(struct cli *cli, schedule_do what, const struct tide_planned *planned)
{
    const struct change change = {what, planned, tide_world_now_unix_ms(cli->world)};
    tide_json request;
    tide_json object;
    json_t *answer = NULL;
    bool runs = false;
    tide_json_object(&request);
    tide_json_set_cstr(&request, "op", "schedule");
    tide_json_set_cstr(&request, "do", do_names[what]);
    planned_json(planned, &object);
    tide_json_set(&request, "schedule", &object);
    tide_status rc = cli_change_ask(cli, &request, &runs, &answer);
    json_decref(answer);
    if (!runs) {
        cli->err = (tide_error){TIDE_OK, 0, ""};
        rc = change_here(cli, &change);
    }
    return rc;
}

/* ---- shared ---- */

static int32_t ahead_s(void *arg, int64_t unix_s)
{
    const time_t seconds = (time_t)unix_s;
    struct tm local;
    (void)arg;
    return localtime_r(&seconds, &local) == NULL ? 0 : (int32_t)local.tm_gmtoff;
}

const struct tide_zone schedule_zone = {ahead_s, NULL};

size_t schedule_words(const struct tide_planned *planned, const char **words_out, size_t words_max,
                      json_t **array_out)
{
    tide_error err;
    if (tide_json_parse_stored(tide_text_of(planned->words), array_out, &err) != TIDE_OK) {
        *array_out = NULL;
        return 0;
    }
    const size_t count = json_array_size(*array_out);
    for (size_t i = 0; i < count && i < words_max; i++) {
        words_out[i] = json_string_value(json_array_get(*array_out, i));
        if (words_out[i] == NULL)
            return 0;
    }
    return count > words_max ? 0 : count;
}
