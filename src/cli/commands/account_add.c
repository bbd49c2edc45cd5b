/* account_add.c - `tidemark account add|remove` (M15a, M16). */
#include "cli/sign_in/sign_in.h"
#include "cli/run/account_change.h"

#include "net/endpoint.h"
#include "tidemark_inside.h"

#include <stdio.h>
#include <unistd.h>

/* ---- adding ---- */

enum { BEARER_BYTES_MAX = 16 << 10 };

/* A refusal of the former sign-in is over. */
static tide_status answered(struct cli *cli, tide_engine *engine,
                            const struct account_change *added)
{
    uint32_t account = 0;
    if (engine == NULL)
        return TIDE_OK;
    TIDE_TRY(tide_engine_account(engine, added->request.name, added->system->provider, &account,
                                 &cli->err));
    return tide_account_answered(engine, account, &cli->err);
}

/* Jobs that wait for this sign-in resume at once.  No engine is not an error. */
static void tell_engine(struct cli *cli, const char *account)
{
    tide_json request;
    json_auto_t *answer = NULL;
    bool runs = false;
    tide_control_request(TIDE_OP_SIGNED_IN, &request);
    tide_json_set_cstr(&request, "account", account);
    if (cli_engine_ask(cli, &request, &runs, &answer) != TIDE_OK) {
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
    }
}

struct known {
    const char *name;
    bool found;
    char provider[sizeof((struct tide_account_row *)0)->provider];
    char archive[sizeof((struct tide_account_row *)0)->archive];
};

static bool note_known(const struct tide_account_row *row, void *arg)
{
    struct known *known = arg;
    if (strcmp(row->name, known->name) != 0)
        return true;
    known->found = true;
    memcpy(known->provider, row->provider, sizeof known->provider);
    memcpy(known->archive, row->archive, sizeof known->archive);
    return false;
}

/* An account whose archive is on another machine is refused before the sign-in. */
static tide_status refuse_elsewhere(struct cli *cli, const struct account_change *wanted)
{
    const char *name = wanted->request.name;
    char archive_dir[CLI_PATH_BYTES];
    char secrets_dir[CLI_PATH_BYTES];
    char dir[CLI_PATH_BYTES + 300];
    struct known known = {.name = name};
    tide_status rc = cli_ledger_choose(cli);
    if (rc != TIDE_OK || cli->shared == NULL)
        return rc;
    rc = archive_here_places(cli, archive_dir, secrets_dir);
    if (rc == TIDE_OK)
        rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_ledger_accounts(cli->ledger, note_known, &known, &cli->err);
    cli_ledger_close(cli);
    if (rc != TIDE_OK || known.archive[0] == '\0' ||
        tide_system_is_here(wanted->system, cli->world, archive_dir, name, known.archive))
        return cli_shared_hint(cli, rc);
    tide_system_archive_path(wanted->system, archive_dir, name, dir, sizeof dir);
    return cli_fail(
        cli, TIDE_EXISTS,
        "Use the machine that has it, or move its directory here first. If it is lost, run "
        "`tidemark account remove` and add the account again.",
        "the archive of %.200s is not here: %.700s is not the one with id "
        "%s",
        name, dir, known.archive);
}

/* "Providers: gmail, console." */
static tide_status no_provider(struct cli *cli, const char *name)
{
    char hint[200] = "Providers:";
    for (size_t i = 0; cli->systems[i] != NULL; i++) {
        const size_t used = strlen(hint);
        if (cli->systems[i]->provider[0] != '\0')
            (void)snprintf(hint + used, sizeof hint - used, "%s %s", i == 0 ? "" : ",",
                           cli->systems[i]->provider);
    }
    (void)snprintf(hint + strlen(hint), sizeof hint - strlen(hint), ".");
    return cli_wrong(cli, hint, "there is no provider \"%.100s\"", name);
}

static tide_status purpose_of(struct cli *cli, const struct tide_system *system,
                              const struct tide_purpose **purpose_out)
{
    const char *name = cli_flag(cli, "for");
    char hint[200] = "Purposes:";
    for (size_t i = 0; system->purposes[i].name != NULL; i++) {
        *purpose_out = &system->purposes[i];
        if (name == NULL || strcmp(name, system->purposes[i].name) == 0)
            return TIDE_OK;
        const size_t used = strlen(hint);
        (void)snprintf(hint + used, sizeof hint - used, "%s %s%s", i == 0 ? "" : ",",
                       system->purposes[i].name, system->purposes[i + 1].name == NULL ? "." : "");
    }
    return cli_wrong(cli, hint, "there is no purpose \"%.60s\"", name);
}

static tide_status check_endpoint(struct cli *cli, const struct tide_system *system)
{
    const char *endpoint = cli_flag(cli, "endpoint");
    tide_error why = {TIDE_OK, 0, ""};
    if (endpoint == NULL ||
        (system->endpoint_check != NULL ? system->endpoint_check
                                        : tide_endpoint_check)(endpoint, &why) == TIDE_OK)
        return TIDE_OK;
    return cli_wrong(cli, "Correct --endpoint, or omit it to use the provider's server.", "%s",
                     why.text);
}

/* All that can be refused before the user signs in. */
static tide_status wanted_account(struct cli *cli, struct account_change *wanted,
                                  const struct tide_purpose **purpose_out)
{
    const char *endpoint = cli_flag(cli, "endpoint");
    wanted->system = tide_system_of_provider(cli->systems, cli->arguments[0]);
    if (wanted->system == NULL)
        return no_provider(cli, cli->arguments[0]);
    wanted->request = (struct tide_account_request){.subjects = cli->arguments + 1,
                                                    .subjects_count = cli->arguments_count - 1,
                                                    .endpoint = endpoint == NULL ? "" : endpoint};
    tide_status rc = purpose_of(cli, wanted->system, purpose_out);
    wanted->request.name =
        cli_flag(cli, "name") != NULL ? cli_flag(cli, "name") : cli->arguments[1];
    if (rc == TIDE_OK && wanted->system->account_check != NULL)
        rc = wanted->system->account_check(cli, cli_flag(cli, "name"), &wanted->request);
    if (rc == TIDE_OK)
        rc = check_endpoint(cli, wanted->system);
    return rc == TIDE_OK ? refuse_elsewhere(cli, wanted) : rc;
}

/* The hint depends on why the server did not answer. */
static tide_status refused(struct cli *cli, tide_status rc, const struct account_change *wanted)
{
    const tide_error why = cli->err;
    const char *endpoint = wanted->request.endpoint;
    const tide_text server = endpoint[0] == '\0' ? tide_text_of(wanted->system->oauth->title)
                                                 : tide_endpoint_host(endpoint);
    const bool unreachable = tide_status_class(rc) == TIDE_CLASS_NETWORK || rc == TIDE_TIMEOUT;
    if (cli->hint[0] != '\0')
        return rc;
    if (unreachable)
        return cli_fail(cli, rc,
                        "Nothing was added. Check the address and the connection, and run the "
                        "command again.",
                        "%.*s cannot be reached: %.300s", (int)server.bytes, server.data, why.text);
    if (tide_status_class(rc) == TIDE_CLASS_AUTH)
        return cli_fail(
            cli, rc, "Nothing was added. Sign in with an account that the server accepts.",
            "%.*s does not accept this sign-in: %.300s", (int)server.bytes, server.data, why.text);
    return cli_fail(cli, rc, "Nothing was added. Run the command again, or check the address.",
                    "%.*s did not answer as expected: %.300s", (int)server.bytes, server.data,
                    why.text);
}

static tide_status try_grant(struct cli *cli, const struct account_change *wanted, tide_text grant)
{
    tide_buf bearer;
    if (wanted->system->account_try == NULL)
        return TIDE_OK;
    tide_buf_init(&bearer, cli->mem, BEARER_BYTES_MAX);
    tide_status rc = tide_oauth_try(wanted->system->oauth, cli->world, grant,
                                    cli_interruptible(cli), cli->mem, &bearer, &cli->err);
    if (rc == TIDE_OK)
        rc = wanted->system->account_try(cli, &wanted->request, tide_buf_text(&bearer));
    tide_secret_wipe(&bearer);
    tide_buf_done(&bearer);
    if (rc != TIDE_OK && rc != TIDE_GONE)
        return refused(cli, rc, wanted);
    cli->err = (tide_error){TIDE_OK, 0, ""};
    return TIDE_OK;
}

/* Signs in, tries the grant, stores it. */
static tide_status grant_store(struct cli *cli, tide_secrets *secrets,
                               const struct account_change *wanted,
                               const struct tide_purpose *purpose)
{
    char secret[TIDE_SECRET_NAME_BYTES_MAX];
    tide_auto_secret grant = tide_buf_in(cli->mem, TIDE_SECRET_BYTES_MAX);
    tide_system_secret_name(wanted->system, wanted->request.name, secret);
    TIDE_TRY(
        cli_sign_in(cli, wanted->system->oauth, secrets, wanted->request.name, purpose, &grant));
    TIDE_TRY(try_grant(cli, wanted, tide_buf_text(&grant)));
    return tide_secrets_put(secrets, secret, tide_buf_text(&grant), &cli->err);
}

tide_status cli_account_add(struct cli *cli)
{
    struct account_change wanted = {.remove = false};
    struct cli_engine opened = {.beside = true};
    const struct tide_purpose *purpose = NULL;
    tide_status rc = wanted_account(cli, &wanted, &purpose);
    if (rc == TIDE_OK)
        rc = account_change_open(cli, &opened);
    /* The grant first: an account without one would only fail later. */
    if (rc == TIDE_OK)
        rc = grant_store(cli, opened.secrets, &wanted, purpose);
    if (rc == TIDE_OK)
        rc = account_change(cli, &opened, &wanted);
    if (rc == TIDE_OK)
        rc = answered(cli, opened.engine, &wanted);
    if (rc == TIDE_OK && (opened.engine == NULL || opened.beside_dir[0] != '\0'))
        tell_engine(cli, wanted.request.name);
    if (rc == TIDE_OK) {
        const char *next = wanted.system->next;
        cli_print(cli, "added %s; its sign-in is stored in the %s.\nNow run `tidemark %s%s`.\n",
                  wanted.request.name, tide_secrets_where(opened.secrets),
                  next == NULL ? wanted.system->name : next, next == NULL ? " sync" : "");
        tide_json_set_cstr(&cli->json, "account", wanted.request.name);
        tide_json_set_cstr(&cli->json, "secrets", tide_secrets_where(opened.secrets));
    }
    const tide_status closed = cli_engine_close(cli, &opened);
    return rc == TIDE_OK ? closed : rc;
}

/* ---- removing ---- */

/* Finds the account's system and endpoint. */
static tide_status find_account(struct cli *cli, struct account_change *removed,
                                char endpoint[TIDE_ENDPOINT_BYTES])
{
    struct known known = {.name = removed->request.name};
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_ledger_accounts(cli->ledger, note_known, &known, &cli->err);
    if (rc == TIDE_OK && known.found)
        removed->system = tide_system_of_provider(cli->systems, known.provider);
    if (rc == TIDE_OK && removed->system == NULL)
        rc =
            tide_error_set(&cli->err, TIDE_NOT_FOUND, "there is no account \"%.200s\"", known.name);
    if (rc == TIDE_OK)
        rc =
            tide_system_account_look(removed->system, cli->ledger, known.name, endpoint, &cli->err);
    if (rc == TIDE_OK && removed->system->account_leave != NULL)
        rc = removed->system->account_leave(cli, known.name);
    cli_ledger_close(cli);
    return cli_hint(cli, rc, "`tidemark account list` shows the accounts.");
}

/* The jobs are canceled before the account is removed, since they could only fail, and accepted
 * after it: in between, a sync that waits for them sees that they were canceled, and then that the
 * account is gone.  It never takes them for done.  Jobs that something else began meanwhile end,
 * too. */
static tide_status removed_end(struct cli *cli, const char *name)
{
    const tide_status rc = cli_jobs_end(cli, &(struct tide_control_filter){.account = name});
    cli_ledger_close(cli);
    return rc == TIDE_OK ? rc
                         : cli_fail(cli, rc,
                                    "End them with `tidemark jobs cancel --account` and `tidemark "
                                    "jobs accept --account`.",
                                    "%.200s is removed, but not all its jobs ended", name);
}

static void removed_show(struct cli *cli, const struct account_change *removed,
                         const char *archive_dir, bool given_back)
{
    char dir[CLI_PATH_BYTES + 300];
    const char *name = removed->request.name;
    tide_system_archive_path(removed->system, archive_dir, name, dir, sizeof dir);
    const bool here = access(dir, F_OK) == 0;
    cli_print(cli, "removed %s; its sign-in is %s, its archive stays%s%s.\n", name,
              given_back ? "revoked" : "removed", here ? " in " : " where it is", here ? dir : "");
    tide_json_set_cstr(&cli->json, "removed", name);
    tide_json_set_bool(&cli->json, "given_back", given_back);
}

tide_status cli_account_remove(struct cli *cli)
{
    char endpoint[TIDE_ENDPOINT_BYTES] = "";
    char secret[TIDE_SECRET_NAME_BYTES_MAX];
    struct account_change removed = {.remove = true,
                                     .request = {.name = cli->arguments[0], .endpoint = endpoint}};
    struct cli_engine opened = {.beside = true};
    const char *name = removed.request.name;
    bool given_back = false;
    tide_status rc = find_account(cli, &removed, endpoint);
    if (rc == TIDE_OK)
        rc = cli_jobs_stop(cli, &(struct tide_control_filter){.account = name});
    cli_ledger_close(cli);
    if (rc == TIDE_OK)
        rc = account_change_open(cli, &opened);
    if (rc == TIDE_OK) {
        tide_system_secret_name(removed.system, name, secret);
        const struct tide_tokens_options sign_in = {
            .provider = removed.system->oauth, .secret = secret, .account = name, .sign_in = ""};
        rc = cli_sign_out(cli, opened.secrets, &sign_in, endpoint, &given_back);
    }
    if (rc == TIDE_OK)
        rc = account_change(cli, &opened, &removed);
    if (rc == TIDE_OK)
        removed_show(cli, &removed, opened.archive_dir, given_back);
    const tide_status closed = cli_engine_close(cli, &opened);
    rc = rc == TIDE_OK ? closed : rc;
    return rc == TIDE_OK ? removed_end(cli, name) : rc;
}
