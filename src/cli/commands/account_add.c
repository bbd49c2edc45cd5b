/* account_add.c - `tidemark account add|remove`: signing in (M15a, M16). */
#include "mail/commands/account_check.h"
#include "mail/commands/home.h"
#include "mail/status.h"

#include "net/oauth/google.h"
#include "tidemark_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 64 << 10, BROWSER_WAIT_MS = 5 * 60 * 1000, JOBS_SLICE = 500 };

/* Least privilege (M15a): sync needs only to read.  The wider scopes include the
 * narrower ones, so one scope is requested. */
static const struct cli_purpose purposes[] = {
    {"sync", "https://www.googleapis.com/auth/gmail.readonly", "to read mail, and nothing else"},
    {"archive", "https://www.googleapis.com/auth/gmail.modify",
     "to read mail, change its labels, move it to the trash and put it back; not to delete it for "
     "good"},
    {"delete", "https://mail.google.com/",
     "to read, change and put back mail, and to delete it for good"},
};

/* NULL: unknown purpose. */
static const struct cli_purpose *purpose_of(struct cli *cli)
{
    const char *name = cli_flag(cli, "for");
    for (size_t i = 0; i < sizeof purposes / sizeof purposes[0]; i++)
        if (strcmp(name == NULL ? "sync" : name, purposes[i].name) == 0)
            return &purposes[i];
    return NULL;
}

static tide_status read_file(struct cli *cli, const char *path, tide_buf *out)
{
    const tide_status rc = tide_file_read(cli->world, path, FILE_BYTES_MAX, out, &cli->err);
    return cli_hint(cli, rc, "Name a readable file.");
}

/* ---- the client ---- */

static tide_status client_of(struct cli *cli, const struct tide_oauth_provider *provider,
                             struct tide_oauth_client *client)
{
    const char *file = cli_flag(cli, "client");
    const char *endpoint = cli_flag(cli, "endpoint");
    tide_status rc = TIDE_OK;
    *client = (struct tide_oauth_client){.client_id = ""};
    if (endpoint != NULL)
        tide_oauth_client_at(provider, endpoint, client);
    if (file != NULL) {
        tide_buf text;
        tide_buf_init(&text, cli->mem, FILE_BYTES_MAX);
        rc = read_file(cli, file, &text);
        if (rc == TIDE_OK)
            rc = tide_oauth_client_read(provider, tide_buf_text(&text), client, &cli->err);
        tide_buf_done(&text);
    } else if (endpoint == NULL) {
        rc = cli_fail(
            cli, TIDE_INVALID,
            "Create an OAuth client of the type \"Desktop app\" in Google's console, download its "
            "JSON file, and name it with --client FILE (docs/mail/sign-in.md).",
            "signing in needs an OAuth client");
    }
    return rc;
}

/* ---- ways to a grant ---- */

static tide_status paste(struct cli *cli, tide_oauth_flow *flow)
{
    char line[8192];
    (void)fprintf(
        stderr,
        "Open this link in any browser:\n\n  %s\n\nAfter you allow access, the browser shows "
        "an address that does not load.\nPaste that address here: ",
        tide_oauth_flow_link(flow));
    if (fgets(line, sizeof line, stdin) == NULL)
        return cli_fail(cli, TIDE_CANCELED, "Run the command again.", "nothing was pasted");
    return tide_oauth_flow_paste(flow, (tide_text){line, strcspn(line, "\r\n")}, &cli->err);
}

static void open_browser(const char *link)
{
    const char *browser = getenv("BROWSER");
    if (fork() == 0) {
        (void)execlp(browser == NULL ? "xdg-open" : browser, browser == NULL ? "xdg-open" : browser,
                     link, (char *)NULL);
        _exit(127);
    }
}

/* Waits for the user, who signs in on this machine or, with a code, on another. */
static tide_status wait_for_user(struct cli *cli, tide_oauth_flow *flow)
{
    const char *link = tide_oauth_flow_link(flow);
    const char *code = tide_oauth_flow_user_code(flow);
    if (code[0] != '\0') {
        (void)fprintf(stderr, "Open this page on any device and enter the code %s:\n\n  %s\n\n",
                      code, link);
        return cli_hint(cli,
                        tide_oauth_flow_wait(flow, TIDE_NEVER, cli_interruptible(cli), &cli->err),
                        "Run the command again.");
    }
    (void)fprintf(stderr, "Sign in with your browser. If none opens, use this link:\n\n  %s\n\n",
                  link);
    open_browser(link);
    return cli_hint(cli, tide_oauth_flow_wait(flow, BROWSER_WAIT_MS, NULL, &cli->err),
                    "Run the command again, with --headless if there is no browser.");
}

static tide_status sign_in(struct cli *cli, const struct tide_oauth_provider *provider,
                           const char *email, const struct cli_purpose *purpose, tide_buf *grant)
{
    struct tide_oauth_client client;
    tide_oauth_flow *flow = NULL;
    tide_buf scopes;
    tide_buf_init(&scopes, cli->mem, 8192);
    tide_status rc = client_of(cli, provider, &client);
    const struct tide_oauth_ask ask = {
        .provider = provider,
        .client = &client,
        .scopes = purpose->scope,
        .login_hint = email,
        .way =
            cli_flag(cli, "headless") != NULL ? tide_oauth_headless(provider) : TIDE_OAUTH_BROWSER,
    };
    if (rc == TIDE_OK)
        (void)fprintf(stderr, "Tidemark requests permission %s.\n", purpose->words);
    if (rc == TIDE_OK)
        rc = tide_oauth_flow_start(cli->world, &ask, cli->mem, &flow, &cli->err);
    if (rc == TIDE_OK)
        rc = ask.way == TIDE_OAUTH_PASTE ? paste(cli, flow) : wait_for_user(cli, flow);
    if (rc == TIDE_OK)
        rc = tide_oauth_flow_finish(flow, NULL, grant, &scopes, &cli->err);
    if (rc == TIDE_OK && !tide_oauth_scopes_cover(provider, tide_buf_text(&scopes), purpose->scope))
        rc = cli_fail(cli, TIDE_AUTH, "Run the command again and leave the box ticked.",
                      "the permission Tidemark requested was not granted on the sign-in page");
    tide_oauth_flow_free(flow);
    tide_buf_done(&scopes);
    return rc;
}

static tide_status service_account(struct cli *cli, const char *file, const char *email,
                                   const struct cli_purpose *purpose, tide_buf *grant)
{
    tide_buf key;
    tide_buf_init(&key, cli->mem, FILE_BYTES_MAX);
    tide_status rc = read_file(cli, file, &key);
    if (rc == TIDE_OK)
        rc = tide_oauth_service_account(tide_buf_text(&key), email, purpose->scope, grant,
                                        &cli->err);
    tide_secret_wipe(&key);
    tide_buf_done(&key);
    return rc;
}

tide_status cli_grant(struct cli *cli, const char *email, const struct cli_purpose *purpose,
                      tide_buf *grant)
{
    const char *bearer = cli_flag(cli, "bearer");
    const char *key = cli_flag(cli, "service-account");
    if (bearer != NULL && cli_flag(cli, "endpoint") == NULL)
        return cli_wrong(cli, "Add --endpoint URL.",
                         "--bearer is for emulators: a token from Google expires after an hour");
    if (bearer != NULL)
        return tide_oauth_fixed(bearer, grant, &cli->err);
    if (key != NULL)
        return service_account(cli, key, email, purpose, grant);
    return sign_in(cli, &tide_oauth_google, email, purpose, grant);
}

/* ---- while another engine runs (decision 10) ---- */

/* The running engine adds the account; this waits until the ledger has it. */
static tide_status add_over_there(struct cli *cli, const char *email, const char *endpoint)
{
    tide_json request;
    tide_json payload;
    json_t *answer = NULL;
    bool runs = false;
    tide_control_request(TIDE_OP_ENQUEUE, &request);
    tide_json_set_cstr(&request, "kind", TIDE_MAIL_ACCOUNT_KIND);
    tide_json_set_cstr(&request, "dedupe", email);
    tide_json_object(&payload);
    tide_json_set_cstr(&payload, "email", email);
    tide_json_set_cstr(&payload, "endpoint", endpoint == NULL ? "" : endpoint);
    tide_json_set(&request, "payload", &payload);
    tide_status rc = cli_engine_ask(cli, &request, &runs, &answer);
    json_decref(answer);
    if (rc == TIDE_OK)
        rc = cli_ledger_read(cli);
    const uint64_t give_up_ms = tide_world_now_ms(cli->world) + TIDE_CONTROL_TIMEOUT_MS;
    struct tide_mail_look look;
    tide_mail_look_init(&look, cli->mem);
    while (rc == TIDE_OK) {
        rc = tide_mail_look(cli->ledger, email, false, &look, &cli->err);
        if (rc == TIDE_OK && strcmp(look.endpoint, endpoint == NULL ? "" : endpoint) == 0)
            break;
        if (tide_world_now_ms(cli->world) >= give_up_ms)
            rc = cli_fail(cli, TIDE_TIMEOUT, "Wait until it ends, and run this command again.",
                          "the engine that runs in this home did not add the account");
        else
            rc = tide_world_sleep_until(cli->world, tide_world_now_us(cli->world) + 50000, NULL);
    }
    tide_mail_look_done(&look);
    return cli_hint(cli, rc, "Wait until it ends, and run this command again.");
}

static tide_status add_here(struct cli *cli, struct mail_home *home, const char *email,
                            const char *endpoint)
{
    uint32_t account = 0;
    tide_status rc = tide_mail_account_add(home->mail, email, endpoint, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_engine_account(home->engine, email, "gmail", &account, &cli->err);
    return rc == TIDE_OK ? tide_account_answered(home->engine, account, &cli->err) : rc;
}

/* Jobs that wait for this sign-in resume at once.  No engine is not an error. */
static void tell_engine(struct cli *cli, const char *email)
{
    tide_json request;
    json_t *answer = NULL;
    bool runs = false;
    tide_control_request(TIDE_OP_SIGNED_IN, &request);
    tide_json_set_cstr(&request, "account", email);
    if (cli_engine_ask(cli, &request, &runs, &answer) != TIDE_OK) {
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
    }
    json_decref(answer);
}

/* ---- commands ---- */

static tide_status check_email(struct cli *cli, const char *email)
{
    if (strchr(email, '@') == NULL || strpbrk(email, "/\\ \t") != NULL || email[0] == '.' ||
        strlen(email) > 200)
        return cli_wrong(cli, "Give an address like ada@example.com.",
                         "\"%.200s\" is not an e-mail address", email);
    return TIDE_OK;
}

/* Opens the engine; while another process runs it, only the sign-ins. */
static tide_status open_beside(struct cli *cli, struct mail_home *home, bool *beside)
{
    tide_status rc = mail_home_open(cli, home);
    *beside = rc == TIDE_BUSY;
    if (!*beside)
        return rc;
    cli->hint[0] = '\0';
    return tide_secrets_open(cli->world, home->secrets_dir, TIDE_SECRETS_BEST, cli->mem,
                             &home->secrets, &cli->err);
}

struct placed {
    const char *name;
    char archive[sizeof((struct tide_account_row *)0)->archive];
};

static bool note_place(const struct tide_account_row *row, void *arg)
{
    struct placed *placed = arg;
    if (strcmp(row->name, placed->name) != 0)
        return true;
    memcpy(placed->archive, row->archive, sizeof placed->archive);
    return false;
}

/* An account whose archive is on another machine is refused before the sign-in. */
static tide_status refuse_elsewhere(struct cli *cli, const char *email)
{
    struct mail_home home = {0};
    struct placed placed = {.name = email};
    tide_status rc = cli_ledger_choose(cli);
    if (rc != TIDE_OK || cli->shared == NULL)
        return rc;
    rc = mail_home_places(cli, &home);
    if (rc == TIDE_OK)
        rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_ledger_accounts(cli->ledger, note_place, &placed, &cli->err);
    cli_ledger_close(cli);
    if (rc != TIDE_OK || placed.archive[0] == '\0' ||
        tide_mail_is_here(cli->world, home.archive_dir, email, placed.archive))
        return cli_shared_hint(cli, rc);
    return cli_fail(
        cli, TIDE_EXISTS,
        "Use the machine that has it, or move its directory here first. If it is lost, run "
        "`tidemark account remove` and add the account again.",
        "the archive of %.200s is not here: %.500s/%.200s is not the one with id "
        "%s",
        email, home.archive_dir, email, placed.archive);
}

tide_status cli_account_add(struct cli *cli)
{
    struct mail_home home = {0};
    tide_buf grant;
    char secret[TIDE_SECRET_NAME_BYTES_MAX];
    const char *email = cli->arguments[1];
    const char *endpoint = cli_flag(cli, "endpoint");
    bool beside = false;
    const struct cli_purpose *purpose = purpose_of(cli);
    if (strcmp(cli->arguments[0], "console") == 0)
        return cli_account_add_console(cli);
    if (strcmp(cli->arguments[0], "gmail") != 0)
        return cli_wrong(cli, "Providers: gmail, console.", "there is no provider \"%.100s\"",
                         cli->arguments[0]);
    if (cli->arguments_count > 2)
        return cli_wrong(cli, "Run the command once for each.",
                         "only one mail account can be added at a time");
    if (purpose == NULL)
        return cli_wrong(cli, "Purposes: sync, archive, delete.", "there is no purpose \"%.60s\"",
                         cli_flag(cli, "for"));
    tide_status rc = check_email(cli, email);
    if (rc == TIDE_OK)
        rc = account_check_endpoint(cli);
    if (rc == TIDE_OK)
        rc = refuse_elsewhere(cli, email);
    if (rc != TIDE_OK)
        return rc;
    tide_buf_init(&grant, cli->mem, TIDE_SECRET_BYTES_MAX);
    tide_mail_secret_name(email, secret);
    rc = open_beside(cli, &home, &beside);
    if (rc == TIDE_OK)
        rc = cli_grant(cli, email, purpose, &grant);
    if (rc == TIDE_OK)
        rc = account_check_mailbox(cli, email, endpoint, tide_buf_text(&grant));
    /* The grant first: an account without one would only fail later. */
    if (rc == TIDE_OK)
        rc = tide_secrets_put(home.secrets, secret, tide_buf_text(&grant), &cli->err);
    if (rc == TIDE_OK)
        rc = beside ? add_over_there(cli, email, endpoint) : add_here(cli, &home, email, endpoint);
    if (rc == TIDE_OK && beside)
        tell_engine(cli, email);
    if (rc == TIDE_OK) {
        cli_print(cli,
                  "added %s; its sign-in is stored in the %s.\nNow run `tidemark mail sync`.\n",
                  email, tide_secrets_where(home.secrets));
        tide_json_set_cstr(&cli->json, "account", email);
        tide_json_set_cstr(&cli->json, "secrets", tide_secrets_where(home.secrets));
    }
    tide_secret_wipe(&grant);
    tide_buf_done(&grant);
    const tide_status closed = mail_home_close(cli, &home);
    return rc == TIDE_OK ? closed : rc;
}

/* Its jobs could only fail: cancel them, then accept the canceled ones, so that no command
 * reports them again. */
static tide_status drop_jobs(struct cli *cli, uint32_t account)
{
    struct tide_changes changes;
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.account = account;
    filter.count_max = JOBS_SLICE;
    tide_changes_init(&changes, cli->mem);
    tide_status rc = cli_ledger_write(cli);
    for (int step = 0; rc == TIDE_OK && step < 2; step++) {
        size_t count = JOBS_SLICE;
        while (rc == TIDE_OK && count == JOBS_SLICE) {
            tide_tx *tx = NULL;
            uint64_t running[1];
            size_t running_count = 0;
            tide_changes_clear(&changes);
            count = 0;
            rc = tide_tx_begin(cli->ledger, &tx, &cli->err);
            if (rc != TIDE_OK)
                break;
            rc = step == 0 ? tide_ledger_cancel(tx, &filter, cli->now_unix_ms, &count, running, 1,
                                                &running_count, &changes, &cli->err)
                           : tide_ledger_accept(tx, &filter, cli->now_unix_ms, &count, &changes,
                                                &cli->err);
            if (rc == TIDE_OK)
                rc = tide_tx_commit(tx, &cli->err);
            else
                tide_tx_rollback(tx);
        }
    }
    tide_changes_done(&changes);
    cli_ledger_close(cli);
    return rc;
}

/* Revokes the grant.  A server that cannot be reached must not keep the user from removing an
 * account: the sign-in is removed here, and a warning says that it is still valid there. */
static tide_status give_back(struct cli *cli, struct mail_home *home,
                             const struct tide_mail_look *look, bool *given_back)
{
    const char *email = look->email;
    char secret[TIDE_SECRET_NAME_BYTES_MAX];
    tide_tokens *tokens = NULL;
    tide_error why = {TIDE_OK, 0, ""};
    tide_mail_secret_name(email, secret);
    const struct tide_tokens_options options = {
        .provider = &tide_oauth_google, .secret = secret, .account = email, .sign_in = ""};
    tide_status rc = tide_tokens_open(cli->world, home->secrets, &options, cli->mem, &tokens, &why);
    const bool there = rc == TIDE_OK;
    if (there)
        rc = tide_tokens_revoke(tokens, given_back, &why);
    tide_tokens_close(tokens);
    if (rc == TIDE_OK && !*given_back && options.provider->revoke_url == NULL)
        (void)fprintf(stderr,
                      "tidemark: warning: the sign-in of %s is removed here but still valid.\n"
                      "          Revoke it at %s.\n",
                      email, options.provider->revoke_page);
    if (rc == TIDE_OK)
        return TIDE_OK;
    rc = tide_secrets_remove(home->secrets, secret, &cli->err);
    if (there)
        (void)fprintf(stderr,
                      "tidemark: warning: the sign-in of %s could not be revoked: %s\n"
                      "          It is removed here but still valid at %s: revoke it there.\n",
                      email, why.text,
                      look->endpoint[0] == '\0' ? options.provider->revoke_page : look->endpoint);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc; /* there was none */
}

/* Its jobs may be running in another process. */
static tide_status nobody_works(struct cli *cli)
{
    tide_json request;
    json_t *answer = NULL;
    bool runs = false;
    tide_control_request(TIDE_OP_PING, &request);
    const tide_status rc = cli_engine_ask(cli, &request, &runs, &answer);
    const int pid = (int)json_integer_value(json_object_get(answer, "pid"));
    json_decref(answer);
    if (!runs) {
        cli->err = (tide_error){TIDE_OK, 0, ""};
        return TIDE_OK;
    }
    return rc != TIDE_OK ? rc
                         : cli_fail(cli, TIDE_BUSY,
                                    "Wait until it ends, or stop it, and run this command again.",
                                    "process %d is using this directory", pid);
}

tide_status cli_account_remove(struct cli *cli)
{
    struct mail_home home = {0};
    struct tide_mail_look look;
    const char *email = cli->arguments[0];
    bool given_back = false;
    tide_mail_look_init(&look, cli->mem);
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_mail_look(cli->ledger, email, false, &look, &cli->err);
    rc = cli_hint(cli, rc, "`tidemark account list` shows the accounts.");
    cli_ledger_close(cli);
    if (rc == TIDE_OK)
        rc = nobody_works(cli);
    if (rc == TIDE_OK)
        rc = drop_jobs(cli, look.account);
    if (rc == TIDE_OK)
        rc = mail_home_open(cli, &home);
    if (rc == TIDE_OK)
        rc = give_back(cli, &home, &look, &given_back);
    if (rc == TIDE_OK)
        rc = tide_mail_account_remove(home.mail, email, &cli->err);
    if (rc == TIDE_OK) {
        char dir[CLI_PATH_BYTES + 300];
        tide_mail_dir(home.archive_dir, email, dir, sizeof dir);
        const bool here = access(dir, F_OK) == 0;
        cli_print(cli, "removed %s; its sign-in is %s, its archive stays%s%s.\n", email,
                  given_back ? "revoked" : "removed", here ? " in " : " where it is",
                  here ? dir : "");
        tide_json_set_cstr(&cli->json, "removed", email);
        tide_json_set_bool(&cli->json, "given_back", given_back);
    }
    tide_mail_look_done(&look);
    const tide_status closed = mail_home_close(cli, &home);
    return rc == TIDE_OK ? closed : rc;
}
