/* account.c - `tidemark account list|halt|resume|sync` (E4.6). */
#include "cli/account_seen.h"
#include "cli/archive_here.h"

#include "base/limits.h"
#include "cli/run/call.h"

#include <stdio.h>
#include <string.h>

struct accounts {
    struct cli *cli;
    tide_json list;
    tide_secrets *secrets; /* NULL: the sign-ins cannot be opened */
    /* Collected before the next query: the ledger runs one query at a time. */
    struct tide_account_row *rows;
    size_t count, capacity;
    bool failed;
    /* On a shared ledger: the archives that are here, and the members. */
    struct archive_here here;
    struct holder {
        uint64_t owner;
        char name[sizeof((struct tide_member *)0)->name];
    } * holders;
    size_t holders_count, holders_capacity;
    json_t *snapshot; /* of the engine here; NULL: none runs */
};

/* Whether a sign-in is stored for it; never prints the sign-in. */
static const char *signed_in(struct accounts *accounts, const struct tide_system *system,
                             const char *account, const struct account_seen *seen, bool elsewhere)
{
    char name[TIDE_SECRET_NAME_BYTES_MAX];
    if (tide_outcome_is_bad(&seen->outcome) && seen->outcome.status == TIDE_AUTH)
        return "refused";
    if (elsewhere)
        return "elsewhere"; /* with its archive, on another machine */
    if (accounts->secrets == NULL)
        return "unknown";
    tide_system_secret_name(system, account, name);
    tide_auto_secret secret = tide_buf_in(accounts->cli->mem, TIDE_SECRET_BYTES_MAX);
    const tide_status rc = tide_secrets_get(accounts->secrets, name, &secret, NULL);
    return rc == TIDE_OK ? "yes" : rc == TIDE_NOT_FOUND ? "no" : "unknown";
}

/* What its system knows about the account: nothing if it was not added, or removed. */
static void system_cells(struct accounts *accounts, const struct tide_account_row *row,
                         const struct account_seen *seen, bool elsewhere, tide_json *json)
{
    struct cli *cli = accounts->cli;
    char endpoint[TIDE_ENDPOINT_BYTES] = "";
    const struct tide_system *system = tide_system_of_provider(cli->systems, row->provider);
    char missing[500] = "";
    const tide_status looked =
        system == NULL ? TIDE_NOT_FOUND
                       : tide_system_account_look(system, cli->ledger, row->name, endpoint, NULL);
    const bool known = looked == TIDE_OK;
    if (system != NULL && looked == TIDE_NOT_FOUND && account_is_kept(row))
        account_rows_missing(system, row->name, missing, sizeof missing);
    const char *in = known ? signed_in(accounts, system, row->name, seen, elsewhere) : NULL;
    for (size_t i = 0; cli->systems[i] != NULL; i++)
        tide_json_set_bool(json, cli->systems[i]->name, known && cli->systems[i] == system);
    tide_json_set_cstr(json, "endpoint", known && endpoint[0] != '\0' ? endpoint : NULL);
    tide_json_set_cstr(json, "signed_in", in);
    tide_json_set_cstr(json, "problem", missing[0] == '\0' ? NULL : missing);
    cli_cell(cli, "%s", known ? in : "-");
    cli_cell(cli, "%s", !known ? "-" : endpoint[0] == '\0' ? system->oauth->title : endpoint);
}

static bool account_collect(const struct tide_account_row *row, void *arg)
{
    struct accounts *accounts = arg;
    accounts->failed = !TIDE_GROW_IN(accounts->cli->mem, accounts->rows, accounts->capacity,
                                     accounts->count + 1, TIDE_ACCOUNTS_MAX);
    if (accounts->failed)
        return false;
    accounts->rows[accounts->count++] = *row;
    return true;
}

static bool holder_collect(const struct tide_member *member, void *arg)
{
    struct accounts *accounts = arg;
    if (member->dead)
        return true;
    accounts->failed =
        !TIDE_GROW_IN(accounts->cli->mem, accounts->holders, accounts->holders_capacity,
                      accounts->holders_count + 1, CLI_LIST_MAX);
    if (accounts->failed)
        return false;
    struct holder *holder = &accounts->holders[accounts->holders_count++];
    holder->owner = member->owner;
    (void)snprintf(holder->name, sizeof holder->name, "%s", member->name);
    return true;
}

static const char *holder_name(const struct accounts *accounts, uint64_t owner)
{
    for (size_t i = 0; i < accounts->holders_count; i++)
        if (accounts->holders[i].owner == owner)
            return accounts->holders[i].name;
    return NULL;
}

/* Where its archive is and which member has leased it, on a shared ledger. */
static void place_cells(struct accounts *accounts, const struct tide_account_row *row, bool here,
                        tide_json *json)
{
    const bool placed = row->archive[0] != '\0';
    const char *holder = holder_name(accounts, row->owner);
    tide_json_set_cstr(json, "archive", placed ? row->archive : NULL);
    tide_json_set_bool(json, "here", here);
    tide_json_set_cstr(json, "secret", row->secret[0] == '\0' ? NULL : row->secret);
    tide_json_set_bool(json, "held", row->owner != 0);
    tide_json_set_cstr(json, "held_by", holder);
    cli_cell(accounts->cli, "%s", !placed ? "-" : here ? "here" : "elsewhere");
    cli_cell(accounts->cli, "%s", holder == NULL ? "-" : holder);
}

/* How long the calls of each method take (E9.1); null: no engine runs. */
static void methods_json(const struct cli *cli, const json_t *live, const char *provider,
                         tide_json *json)
{
    static const char *const fields[] = {"calls", "p50_ms", "p95_ms", "p99_ms"};
    const json_t *methods = json_object_get(live, "methods");
    const struct tide_system *system = tide_system_of_provider(cli->systems, provider);
    tide_json list;
    if (methods == NULL) {
        tide_json_set_null(json, "methods");
        return;
    }
    tide_json_array(&list);
    for (size_t i = 0; i < json_array_size(methods); i++) {
        const json_t *method = json_array_get(methods, i);
        const uint32_t number = (uint32_t)json_integer_value(json_object_get(method, "method"));
        const char *name =
            system == NULL || system->method_name == NULL ? NULL : system->method_name(number);
        char by_number[16];
        tide_json one;
        (void)snprintf(by_number, sizeof by_number, "%u", number);
        tide_json_object(&one);
        tide_json_set_cstr(&one, "method", name == NULL ? by_number : name);
        for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++)
            tide_json_set_u64(&one, fields[k],
                              (uint64_t)json_integer_value(json_object_get(method, fields[k])));
        tide_json_append(&list, &one);
    }
    tide_json_set(json, "methods", &list);
}

/* The calls that failed since the process started, by HTTP code; null: no engine runs. */
static void errors_json(const json_t *live, tide_json *json)
{
    json_t *codes = json_object_get(live, "errors_by_code");
    if (codes == NULL)
        tide_json_set_null(json, "errors_by_code");
    else
        tide_json_set(json, "errors_by_code", &(tide_json){.value = json_incref(codes)});
}

static void account_row(struct accounts *accounts, const struct tide_account_row *row)
{
    struct cli *cli = accounts->cli;
    const bool here = cli->shared != NULL && archive_here_may_take(&accounts->here, row->name,
                                                                   row->provider, row->archive);
    char when[32];
    tide_json json;
    tide_json_object(&json);
    tide_json_set_cstr(&json, "account", row->name);
    tide_json_set_cstr(&json, "provider", row->provider);
    tide_json_set_bool(&json, "paused", row->paused);
    tide_json_set_bool(&json, "halted", row->halted);
    tide_json_set_cstr(&json, "halt_reason", row->halted ? row->halt_reason : NULL);
    if (row->halted)
        tide_json_set_u64(&json, "halted_unix_ms", row->halted_unix_ms);
    else
        tide_json_set_null(&json, "halted_unix_ms");
    cli_cell(cli, "%s", row->name);
    cli_cell(cli, "%s", row->provider);
    cli_cell(cli, "%s", row->halted ? "halted" : row->paused ? "paused" : "active");
    struct account_seen seen;
    account_seen(cli, accounts->snapshot, row->id, row->name, &seen);
    system_cells(accounts, row, &seen, cli->shared != NULL && row->archive[0] != '\0' && !here,
                 &json);
    if (cli->shared != NULL)
        place_cells(accounts, row, here, &json);
    const uint64_t ok_ms = seen.outcome.ok_unix_ms;
    account_seen_json(&seen, &json);
    const json_t *live = account_in_snapshot(accounts->snapshot, row->name);
    methods_json(cli, live, row->provider, &json);
    errors_json(live, &json);
    tide_json_append(&accounts->list, &json);
    cli_cell(cli, "%s", row->halted ? cli_time(row->halted_unix_ms, when) : "-");
    cli_cell(cli, "%s", row->halted ? row->halt_reason : "-");
    cli_cell(cli, "%s", ok_ms == 0 ? "-" : cli_time(ok_ms, when));
    if (seen.outcome.failed_unix_ms == 0)
        cli_cell(cli, "-");
    else
        cli_cell(cli, "%s %.400s", cli_time(seen.outcome.failed_unix_ms, when), seen.outcome.text);
}

tide_status cli_account_list(struct cli *cli)
{
    static const char *const alone[] = {"ACCOUNT",   "PROVIDER",    "STATE",
                                        "SIGNED IN", "ENDPOINT",    "SINCE",
                                        "REASON",    "LAST ANSWER", "LAST FAILURE"};
    static const char *const shared[] = {"ACCOUNT",  "PROVIDER",    "STATE",       "SIGNED IN",
                                         "ENDPOINT", "ARCHIVE",     "LEASED BY",   "SINCE",
                                         "REASON",   "LAST ANSWER", "LAST FAILURE"};
    struct accounts accounts = {.cli = cli};
    char archive_dir[CLI_PATH_BYTES];
    char secrets_dir[CLI_PATH_BYTES];
    TIDE_TRY(archive_here_places(cli, archive_dir, secrets_dir));
    TIDE_TRY(cli_ledger_read(cli));
    tide_json_array(&accounts.list);
    tide_status rc = tide_ledger_accounts(cli->ledger, account_collect, &accounts, &cli->err);
    if (accounts.count > 0)
        (void)tide_secrets_open(cli->world, secrets_dir, TIDE_SECRETS_BEST, cli->mem,
                                &accounts.secrets, NULL);
    if (rc == TIDE_OK && cli->shared != NULL) {
        accounts.here = (struct archive_here){.world = cli->world};
        archive_here_take_all(&accounts.here, cli);
        (void)snprintf(accounts.here.archive_dir, sizeof accounts.here.archive_dir, "%s",
                       archive_dir);
        rc = tide_ledger_members(cli->ledger, holder_collect, &accounts, &cli->err);
    }
    if (rc == TIDE_OK && accounts.failed)
        rc = cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    accounts.snapshot = cli_snapshot(cli, NULL);
    cli_table_begin(cli, cli->shared != NULL ? shared : alone, cli->shared != NULL ? 11 : 9);
    for (size_t i = 0; rc == TIDE_OK && i < accounts.count; i++)
        account_row(&accounts, &accounts.rows[i]);
    cli_table_end(cli, "no accounts");
    tide_mem_free(cli->mem, accounts.rows, accounts.capacity * sizeof *accounts.rows);
    tide_mem_free(cli->mem, accounts.holders, accounts.holders_capacity * sizeof *accounts.holders);
    tide_secrets_close(accounts.secrets);
    json_decref(accounts.snapshot);
    tide_json_set(&cli->json, "accounts", &accounts.list);
    return cli_hint(cli, rc, "Run `tidemark ledger check`.");
}

static tide_status halt_write(struct cli *cli, const char *name, bool halted, const char *reason)
{
    uint32_t account = 0;
    tide_tx *tx = NULL;
    tide_status rc = cli_ledger_write(cli);
    if (rc == TIDE_OK) {
        rc = tide_ledger_account_find(cli->ledger, name, &account, &cli->err);
        if (rc == TIDE_NOT_FOUND)
            return cli_fail(cli, rc, "`tidemark account list` shows the accounts.",
                            "there is no account \"%.200s\"", name);
    }
    if (rc == TIDE_OK)
        rc = tide_tx_begin(cli->ledger, &tx, &cli->err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_ledger_account_halt(tx, account, halted, reason, cli->now_unix_ms, &cli->err);
    if (rc == TIDE_OK)
        rc = cli_tell(cli, tx, TIDE_HINT_CONTROL, account);
    if (rc == TIDE_OK)
        return tide_tx_commit(tx, &cli->err);
    tide_tx_rollback(tx);
    return rc;
}

static tide_status halt_set(struct cli *cli, bool halted, const char *reason)
{
    const char *name = cli->arguments[0];
    bool runs = false;
    tide_json request;
    json_t *answer = NULL;
    if (strlen(reason) > TIDE_ERROR_TEXT_BYTES_MAX) {
        cli->exit_code = CLI_EXIT_USAGE;
        return cli_fail(cli, TIDE_INVALID, "Use a shorter reason.",
                        "--reason is longer than %d bytes", TIDE_ERROR_TEXT_BYTES_MAX);
    }
    tide_control_request(halted ? TIDE_OP_HALT : TIDE_OP_ACCOUNT_RESUME, &request);
    tide_json_set_cstr(&request, "account", name);
    if (halted)
        tide_json_set_cstr(&request, "reason", reason);
    tide_status rc = cli_change_ask(cli, &request, &runs, &answer);
    json_decref(answer);
    if (!runs)
        rc = halt_write(cli, name, halted, reason);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "`tidemark account list` shows the accounts.");
    if (!cli->quiet)
        cli_print(cli, "%s account %s\n", halted ? "halted" : "resumed", name);
    tide_json_set_cstr(&cli->json, "account", name);
    tide_json_set_bool(&cli->json, "halted", halted);
    tide_json_set_bool(&cli->json, "engine", runs);
    return TIDE_OK;
}

tide_status cli_account_halt(struct cli *cli)
{
    const char *reason = cli_flag(cli, "reason");
    return halt_set(cli, true, reason == NULL ? "by command" : reason);
}

tide_status cli_account_resume(struct cli *cli)
{
    return halt_set(cli, false, "");
}

/* ---- sync ---- */

struct provider {
    const char *name;
    char found[sizeof((struct tide_account_row *)0)->provider];
};

static bool provider_find(const struct tide_account_row *row, void *arg)
{
    struct provider *provider = arg;
    if (strcmp(row->name, provider->name) != 0)
        return true;
    (void)snprintf(provider->found, sizeof provider->found, "%s", row->provider);
    return false;
}

/* Runs the command `sync` of the account's system, without waiting for its end. */
tide_status cli_account_sync(struct cli *cli)
{
    struct provider provider = {.name = cli->arguments[0]};
    char flag[400] = "--";
    struct cli_called called;
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_ledger_accounts(cli->ledger, provider_find, &provider, &cli->err);
    if (rc != TIDE_OK)
        return rc;
    cli_ledger_close(cli);
    const struct tide_system *system = tide_system_of_provider(cli->systems, provider.found);
    if (provider.found[0] == '\0' || system == NULL || system->sync_by == NULL)
        return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark account list` shows the accounts.",
                        "there is no account \"%.200s\" that can be synced", provider.name);
    if (system->sync_by[0] != '\0')
        (void)snprintf(flag, sizeof flag, "--%s=%.300s", system->sync_by, provider.name);
    const char *const words[] = {system->name, "sync", "--no-wait", flag, provider.name};
    rc = cli_call(cli, words, system->sync_by[0] == '\0' ? 5 : 4, cli_interruptible(cli), &called);
    if (rc != TIDE_OK)
        return cli_fail(cli, rc, "Free some memory.", "out of memory");
    tide_json_done(&cli->json);
    cli->json = called.json;
    cli->exit_code = called.exit_code;
    if (called.status != TIDE_OK)
        return cli_fail(cli, called.status, called.hint, "%s", called.line);
    cli_print(cli, "%s\n", called.line);
    return TIDE_OK;
}
