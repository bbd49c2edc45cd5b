#include "cli/run/account_change.h"

#include "cli/run/ask.h"
#include "ledger/rows.h"
#include "tidemark_inside.h"

#include <string.h>

enum { SUBJECTS_MAX = CLI_ARGUMENTS_MAX };

/* ---- the change ---- */

static tide_status make_tables(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_system_tables(arg, tide_transaction_rows(transaction), err);
}

static tide_status change_here(const struct cli *cli, const struct account_change *change,
                               tide_error *err)
{
    const struct tide_system_home *home = &cli->account_home;
    struct tide_system system = *change->system;
    const struct tide_account_request *request = &change->request;
    tide_status rc = tide_transact(home->engine, make_tables, &system, err);
    if (rc == TIDE_OK && !change->remove)
        return tide_system_account_add(&system, home, request, err);
    if (rc == TIDE_OK && request->subjects_count == 0)
        return tide_system_account_remove(&system, cli->systems, home->engine, request->name, err);
    for (size_t i = 0; rc == TIDE_OK && i < request->subjects_count; i++)
        rc = system.subject_remove(home, request->subjects[i], err);
    return rc;
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
    tide_json_set_cstr(payload, "options", change->request.options);
    tide_json_set(payload, "subjects", &subjects);
}

/* `subjects` has room for SUBJECTS_MAX; all texts are borrowed from the payload. */
static tide_status payload_read(const struct cli *cli, const json_t *payload, const char **subjects,
                                struct account_change *change, tide_error *err)
{
    tide_text system = TIDE_TEXT_NONE;
    tide_text name = TIDE_TEXT_NONE;
    tide_text endpoint = TIDE_TEXT_NONE;
    tide_text options = TIDE_TEXT(""); /* commands of earlier versions name none */
    const json_t *list = NULL;
    tide_status rc = tide_json_get_text(payload, "system", &system, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_bool(payload, "remove", &change->remove, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(payload, "name", &name, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(payload, "endpoint", &endpoint, err);
    if (rc == TIDE_OK && tide_json_get_text(payload, "options", &options, err) == TIDE_INVALID)
        rc = TIDE_INVALID;
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
    if (options.bytes >= sizeof change->request.options)
        return tide_error_set(err, TIDE_INVALID, "the options of an account are too long");
    memcpy(change->request.options, options.data, options.bytes + 1);
    return change->system == NULL || count > SUBJECTS_MAX ||
                   (count > 0 && subjects[count - 1] == NULL) ||
                   (count > 0 && change->remove && change->system->subject_remove == NULL)
               ? tide_error_set(err, TIDE_INVALID, "this is not an account of this program")
               : TIDE_OK;
}

/* A job that an engine left when it ended does nothing: the command that asked has made the change
 * itself, or said that it was not made.  Commands of earlier versions name no engine. */
static tide_status account_job(tide_job *job, void *context, tide_error *err)
{
    const struct cli *cli = context;
    const char *subjects[SUBJECTS_MAX];
    struct account_change change;
    json_t *payload = NULL;
    tide_status rc = tide_json_parse(tide_job_payload(job), &payload, err);
    if (rc == TIDE_OK)
        rc = payload_read(cli, payload, subjects, &change, err);
    if (rc == TIDE_OK && (json_object_get(payload, "engine") == NULL ||
                          tide_engine_asked_here(cli->account_home.engine, payload)))
        rc = change_here(cli, &change, err);
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

/* ---- making it ---- */

tide_status account_change_open(struct cli *cli, struct cli_engine *opened)
{
    *opened = (struct cli_engine){.beside = true};
    const tide_status rc = cli_engine_open(cli, opened);
    if (rc != TIDE_BUSY)
        return rc;
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    return tide_secrets_open(cli->world, opened->secrets_dir, TIDE_SECRETS_BEST, cli->mem,
                             &opened->secrets, &cli->err);
}

/* The other engine may end meanwhile; then the directory is ours, or that of yet another one. */
tide_status account_change(struct cli *cli, struct cli_engine *opened,
                           const struct account_change *wanted)
{
    tide_status rc = TIDE_OK;
    struct cli_tries tries = {0};
    while (rc == TIDE_OK && opened->engine == NULL && cli_try(cli, &tries)) {
        tide_json payload;
        payload_write(wanted, &payload);
        rc = cli_ask_there(cli, TIDE_ACCOUNT_KIND, NULL, &payload);
        if (rc != TIDE_STOPPED)
            return rc;
        cli->hint[0] = '\0';
        (void)cli_engine_close(cli, opened);
        rc = account_change_open(cli, opened);
    }
    if (rc == TIDE_OK && opened->engine == NULL)
        rc = cli_tries_over(cli);
    return rc == TIDE_OK ? change_here(cli, wanted, &cli->err) : rc;
}
