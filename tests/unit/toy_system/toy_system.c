/* toy_system.c - a whole system in one file, and a program with nothing else (E12.1).
 *
 * An account is a name; a sync adds one byte to archive/toy/NAME.  No other file knows of it: all
 * commands that belong to no system work for it because it is in the list at the end. */
#include "cli/archive_here.h"
#include "cli/run/outcome.h"
#include "ledger/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHAT "the toy's rows"
enum { BYTES = CLI_PATH_BYTES + 600 };

/* ---- rows and files ---- */

static tide_status tables(tide_rows db, tide_error *err)
{
    return tide_rows_tables(db,
                            "CREATE TABLE IF NOT EXISTS toy_account(name TEXT PRIMARY KEY NOT NULL,"
                            " endpoint TEXT NOT NULL) STRICT;",
                            WHAT, err);
}

static uint64_t stored(const char *archive_dir, const char *name)
{
    char path[BYTES];
    struct stat info;
    (void)snprintf(path, sizeof path, "%s/toy/%s", archive_dir, name);
    return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

/* ---- the one kind of job ---- */

struct toy {
    tide_world *world;
    char dir[BYTES];
};

static tide_status add(tide_job *job, void *context, tide_error *err)
{
    const struct toy *toy = context;
    const char *hold = getenv("TOY_HOLD"); /* it waits while this file exists */
    char path[BYTES + 300];
    while (hold != NULL && access(hold, F_OK) == 0 && !tide_job_canceled(job))
        (void)tide_world_sleep_until(toy->world, tide_world_now_us(toy->world) + 20000, NULL);
    json_t *payload = NULL;
    tide_text name = TIDE_TEXT_NONE;
    tide_status rc = tide_json_parse(tide_job_payload(job), &payload, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(payload, "name", &name, err);
    (void)snprintf(path, sizeof path, "%s/%.*s", toy->dir, (int)name.bytes, name.data);
    json_decref(payload);
    if (rc == TIDE_OK)
        rc = tide_dir_make(toy->world, toy->dir, err);
    if (rc != TIDE_OK)
        return rc;
    FILE *file = fopen(path, "a");
    if (file == NULL || fputc('x', file) == EOF || fclose(file) != 0)
        return tide_error_set(err, TIDE_IO, "cannot write %.200s", path);
    return tide_job_canceled(job) ? TIDE_CANCELED : TIDE_OK;
}

static tide_status open_toy(const struct tide_system_home *home, void **state_out, tide_error *err)
{
    uint32_t number = 0;
    struct toy *toy = tide_mem_new(home->mem, sizeof *toy);
    if (toy == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the toy");
    toy->world = home->world;
    (void)snprintf(toy->dir, sizeof toy->dir, "%s/toy", home->archive_dir);
    *state_out = toy;
    return tide_engine_kind(home->engine,
                            &(struct tide_kind){.name = "toy.add", .handler = add, .context = toy},
                            &number, err);
}

static tide_status close_toy(void *state, tide_error *err)
{
    (void)err;
    tide_mem_free(tide_mem_heap(), state, sizeof(struct toy));
    return TIDE_OK;
}

/* ---- accounts ---- */

static tide_status row_put(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct tide_account_request *request = arg;
    return tide_rows_do(tide_transaction_rows(transaction), WHAT, err,
                        "INSERT INTO toy_account(name, endpoint) VALUES(?1, ?2)"
                        " ON CONFLICT(name) DO UPDATE SET endpoint = ?2",
                        request->name, request->endpoint);
}

static tide_status row_drop(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_rows_do(tide_transaction_rows(transaction), WHAT, err,
                        "DELETE FROM toy_account WHERE name = ?1", (const char *)arg);
}

static tide_status account_add(const struct tide_system_home *home,
                               const struct tide_account_request *request, tide_error *err)
{
    struct tide_account_request row = *request;
    uint32_t account = 0;
    const tide_status rc = tide_engine_account(home->engine, row.name, "toy", &account, err);
    return rc == TIDE_OK ? tide_transact(home->engine, row_put, &row, err) : rc;
}

static tide_status account_remove(const struct tide_system_home *home, const char *name,
                                  tide_error *err)
{
    char row[256];
    (void)snprintf(row, sizeof row, "%s", name);
    return tide_transact(home->engine, row_drop, row, err);
}

static tide_status account_look(tide_ledger *ledger, const char *name,
                                char endpoint_out[TIDE_ENDPOINT_BYTES], tide_error *err)
{
    return tide_rows_copy(tide_ledger_rows(ledger), WHAT, endpoint_out, TIDE_ENDPOINT_BYTES, err,
                          "SELECT endpoint FROM toy_account WHERE name = ?1", name);
}

static tide_status status(const struct tide_system_home *home, tide_ledger *ledger,
                          const char *name, struct tide_account_status *out, tide_error *err)
{
    (void)ledger, (void)err;
    out->stored = stored(home->archive_dir, name);
    return TIDE_OK;
}

/* A toy is a byte of a file. */
static tide_status file_units(const struct tide_system_copy *copy, const char *path, bool check,
                              uint64_t *units_out, tide_error *err)
{
    struct stat info = {0};
    (void)copy, (void)check, (void)err;
    *units_out = stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
    return TIDE_OK;
}

/* ---- its command ---- */

static bool request(void *arg, size_t account, size_t nth, struct cli_request *request_out)
{
    const struct cli_work *work = arg;
    *request_out = (struct cli_request){.kind = "toy.add"};
    (void)snprintf(request_out->payload, sizeof request_out->payload, "{\"name\":\"%.300s\"}",
                   work->accounts[account].name);
    (void)snprintf(request_out->dedupe, sizeof request_out->dedupe, "%d", (int)getpid());
    return nth == 0;
}

static tide_status look(void *arg, size_t account, const json_t *snapshot, bool full)
{
    struct cli_work *work = arg;
    char archive_dir[CLI_PATH_BYTES], secrets_dir[CLI_PATH_BYTES];
    (void)snapshot, (void)full;
    tide_status rc = archive_here_places(work->cli, archive_dir, secrets_dir);
    work->lives[account].done = stored(archive_dir, work->accounts[account].name);
    work->lives[account].total = CLI_UNKNOWN;
    if (rc == TIDE_OK)
        rc = cli_watched_jobs(work, account, NULL);
    work->accounts[account].settled = work->accounts[account].jobs_left == 0;
    return rc;
}

static const struct tide_system toy_system;

static tide_status toy_sync(struct cli *cli)
{
    static const struct cli_columns columns = {"stored", "stored", "toys/s",      "toys_per_s",
                                               0,        false,    {{NULL, NULL}}};
    static const struct cli_words words = {"account add toy", "toy sync", "toys stay",
                                           "broken toys", "There is no list."};
    struct cli_work work = {.cli = cli,
                            .system = &toy_system,
                            .columns = &columns,
                            .deadline_ms = TIDE_NEVER,
                            .arg = &work,
                            .request = request,
                            .look = look};
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = cli_work_accounts(&work, 1);
    if (rc == TIDE_OK) {
        (void)snprintf(work.accounts[0].name, sizeof work.accounts[0].name, "%s",
                       cli->arguments[0]);
        rc = cli_work_run(&work);
    }
    if (rc == TIDE_OK) {
        struct cli_ended ended;
        cli_outcome_judge(&work.accounts[0], &words, &ended);
        cli->exit_code = cli_outcome_exit_code(ended.outcome);
        tide_json_set_bool(&cli->json, "handed_over", work.handed_over);
    }
    const tide_status closed = cli_work_done(&work);
    return rc == TIDE_OK ? closed : rc;
}

/* ---- the system, and the program ---- */

static const struct cli_command commands[] = {
    {"toy", "sync", "ACCOUNT", 1, 1, NULL, "Add a toy.", toy_sync},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
static const struct tide_purpose purpose = {"play", "toys", "to play"};
static const struct tide_quota quota = {.name = "toy"};
static const struct tide_oauth_provider oauth = {.name = "toy",
                                                 .title = "Toyland",
                                                 .auth_url = "https://toy.invalid/auth",
                                                 .token_url = "https://toy.invalid/token",
                                                 .revoke_page = "https://toy.invalid/"};
static const struct tide_system toy_system = {
    .name = "toy",
    .provider = "toy",
    .quota = &quota,
    .subject = "NAME",
    .next = "toy sync NAME",
    .oauth = &oauth,
    .purposes = &purpose,
    .purposes_count = 1,
    .table_prefix = "toy_",
    .unit = "toys",
    .unit_json = "toys",
    .commands = commands,
    .tables = tables,
    .open = open_toy,
    .close = close_toy,
    .account_add = account_add,
    .account_remove = account_remove,
    .account_look = account_look,
    .status = status,
    .file_units = file_units,
};

int main(int argc, char **argv)
{
    static const struct tide_system *const systems[] = {&toy_system, NULL};
    return cli_program(systems, argc, argv);
}
