#include "cli/account_job.h"

#include "ledger/rows.h"

#include <inttypes.h>
#include <stdio.h>

enum { WAIT_MS = 30000, TICK_US = 50000, SUBJECTS_MAX = CLI_ARGUMENTS_MAX };

/* ---- the change ---- */

static tide_status make_tables(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct tide_system *system = arg;
    return system->tables(tide_transaction_rows(transaction), err);
}

tide_status account_change_here(const struct tide_system_home *home,
                                const struct account_change *change, tide_error *err)
{
    struct tide_system system = *change->system;
    tide_status rc = tide_transact(home->engine, make_tables, &system, err);
    if (rc != TIDE_OK)
        return rc;
    return change->remove ? system.account_remove(home, change->request.name, err)
                          : system.account_add(home, &change->request, err);
}

/* ---- as a job ---- */

static void payload_write(const struct account_change *change, tide_json *payload)
{
    tide_json subjects;
    tide_json_array(&subjects);
    for (size_t i = 0; i < change->request.subjects_count; i++)
        tide_json_append_cstr(&subjects, change->request.subjects[i]);
    tide_json_object(payload);
    tide_json_set_cstr(payload, "system", change->system->name);
    tide_json_set_bool(payload, "remove", change->remove);
    tide_json_set_cstr(payload, "name", change->request.name);
    tide_json_set_cstr(payload, "endpoint", change->request.endpoint);
    tide_json_set(payload, "subjects", &subjects);
}

/* `subjects` has room for SUBJECTS_MAX; all texts are borrowed from the payload. */
static tide_status payload_read(const struct cli *cli, const json_t *payload, const char **subjects,
                                struct account_change *change, tide_error *err)
{
    tide_text system = TIDE_TEXT_NONE;
    tide_text name = TIDE_TEXT_NONE;
    tide_text endpoint = TIDE_TEXT_NONE;
    const json_t *list = NULL;
    tide_status rc = tide_json_get_text(payload, "system", &system, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_bool(payload, "remove", &change->remove, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(payload, "name", &name, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(payload, "endpoint", &endpoint, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_array(payload, "subjects", &list, err);
    if (rc != TIDE_OK)
        return rc;
    const size_t count = json_array_size(list);
    for (size_t i = 0; i < count && i < SUBJECTS_MAX; i++)
        subjects[i] = json_string_value(json_array_get(list, i));
    change->system = tide_system_named(cli->systems, system);
    change->request = (struct tide_account_request){.name = name.data,
                                                    .subjects = subjects,
                                                    .subjects_count = count,
                                                    .endpoint = endpoint.data};
    return change->system == NULL || count > SUBJECTS_MAX ||
                   (count > 0 && subjects[count - 1] == NULL)
               ? tide_error_set(err, TIDE_INVALID, "this is not an account of this program")
               : TIDE_OK;
}

static tide_status account_job(tide_job *job, void *context, tide_error *err)
{
    const struct cli *cli = context;
    const char *subjects[SUBJECTS_MAX];
    struct account_change change;
    json_t *payload = NULL;
    tide_status rc = tide_json_parse(tide_job_payload(job), &payload, err);
    if (rc == TIDE_OK)
        rc = payload_read(cli, payload, subjects, &change, err);
    if (rc == TIDE_OK)
        rc = account_change_here(&cli->account_home, &change, err);
    json_decref(payload);
    return rc == TIDE_NOT_FOUND ? TIDE_INVALID : rc; /* trying again would not help */
}

tide_status account_job_define(struct cli *cli, const struct tide_system_home *home)
{
    uint32_t number = 0;
    const struct tide_kind kind = {.name = TIDE_ACCOUNT_KIND,
                                   .handler = account_job,
                                   .context = cli,
                                   .lane = TIDE_KIND_INTERACTIVE,
                                   .priority = 90};
    cli->account_home = *home;
    return tide_engine_kind(home->engine, &kind, &number, &cli->err);
}

/* ---- by another process ---- */

struct job_seen {
    tide_row_state state;
    char error[300];
};

static bool job_see(const struct tide_job_row *row, void *arg)
{
    struct job_seen *seen = arg;
    seen->state = row->state;
    (void)snprintf(seen->error, sizeof seen->error, "%.*s", (int)row->error.bytes, row->error.data);
    return false;
}

/* Whether the engine of the directory answers. */
static bool runs_still(struct cli *cli)
{
    tide_json request;
    json_t *answer = NULL;
    bool runs = false;
    tide_control_request(TIDE_OP_PING, &request);
    (void)cli_engine_ask(cli, &request, &runs, &answer);
    json_decref(answer);
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    return runs;
}

static tide_status wait_for(struct cli *cli, uint64_t id)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    const uint64_t give_up_ms = tide_world_now_ms(cli->world) + WAIT_MS;
    filter.id = id;
    tide_status rc = cli_ledger_read(cli);
    while (rc == TIDE_OK) {
        struct job_seen seen = {.state = TIDE_ROW_PENDING};
        rc = tide_ledger_jobs(cli->ledger, &filter, job_see, &seen, &cli->err);
        if (rc == TIDE_OK && seen.state == TIDE_ROW_DONE)
            break;
        if (rc == TIDE_OK && (seen.state == TIDE_ROW_FAILED || seen.state == TIDE_ROW_CANCELED))
            rc = cli_fail(cli, TIDE_PERMANENT, "Wait until it ends, and run this command again.",
                          "the engine that runs in this home did not do it: %.280s", seen.error);
        else if (rc == TIDE_OK && !runs_still(cli))
            rc = TIDE_STOPPED;
        else if (rc == TIDE_OK && tide_world_now_ms(cli->world) >= give_up_ms)
            rc = cli_fail(cli, TIDE_TIMEOUT, "Wait until it ends, and run this command again.",
                          "the engine that runs in this home did not do it in time");
        else if (rc == TIDE_OK)
            rc = tide_world_sleep_until(cli->world, tide_world_now_us(cli->world) + TICK_US, NULL);
    }
    cli_ledger_close(cli);
    return rc;
}

tide_status account_change_there(struct cli *cli, const struct account_change *change)
{
    tide_json request;
    tide_json payload;
    json_t *answer = NULL;
    bool runs = false;
    uint64_t id = 0;
    tide_control_request(TIDE_OP_ENQUEUE, &request);
    tide_json_set_cstr(&request, "kind", TIDE_ACCOUNT_KIND);
    payload_write(change, &payload);
    tide_json_set(&request, "payload", &payload);
    tide_status rc = cli_engine_ask(cli, &request, &runs, &answer);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(answer, "id", &id, &cli->err);
    json_decref(answer);
    if (rc == TIDE_OK)
        rc = wait_for(cli, id);
    if (rc == TIDE_OK)
        return rc;
    /* Cancel it; without an answer its number is not known. */
    const tide_error why = cli->err;
    const struct tide_control_filter named = {.id = id, .kind = id == 0 ? TIDE_ACCOUNT_KIND : NULL};
    if (runs)
        (void)cli_jobs_end(cli, &named);
    cli_ledger_close(cli);
    cli->err = why;
    return cli_hint(cli, !runs || cli_engine_ended(rc) ? TIDE_STOPPED : rc,
                    "Wait until it ends, and run this command again.");
}
