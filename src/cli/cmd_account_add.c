/* tidemark account add|remove: signing in (M15a, M16). */
#include "cli/mail_home.h"

#include "net/oauth.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 64 << 10, BROWSER_WAIT_MS = 5 * 60 * 1000 };

/* Least privilege (M15a): reading is all that sync needs.  The wider scopes hold the
 * narrower ones, so that one is asked for. */
static const struct purpose {
    const char *name;
    const char *scope;
    const char *words;
} purposes[] = {
    {"sync", "https://www.googleapis.com/auth/gmail.readonly", "to read mail, and nothing else"},
    {"archive", "https://www.googleapis.com/auth/gmail.modify",
     "to read mail, change its labels, move it to the trash and put it back; not to delete it for "
     "good"},
    {"delete", "https://mail.google.com/",
     "to read, change and put back mail, and to delete it for good"},
};

static const struct purpose *purpose_of(struct cli *cli)
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
    return cli_hint(cli, rc, "Name a file that can be read.");
}

/* ---- the client ---- */

static tide_status client_of(struct cli *cli, struct tide_oauth_client *client)
{
    const char *file = cli_flag(cli, "client");
    const char *endpoint = cli_flag(cli, "endpoint");
    tide_status rc = TIDE_OK;
    *client = (struct tide_oauth_client){.client_id = ""};
    if (endpoint != NULL)
        tide_oauth_client_at(endpoint, client);
    if (file != NULL) {
        tide_buf text;
        tide_buf_init(&text, cli->mem, FILE_BYTES_MAX);
        rc = read_file(cli, file, &text);
        if (rc == TIDE_OK)
            rc = tide_oauth_client_read(tide_buf_text(&text), client, &cli->err);
        tide_buf_done(&text);
    } else if (endpoint == NULL) {
        rc = cli_fail(
            cli, TIDE_INVALID,
            "Make an OAuth client of the type \"Desktop app\" in Google's console, download its "
            "JSON file, and name it with --client FILE (docs/mail.md).",
            "an OAuth client is needed to sign in");
    }
    return rc;
}

/* ---- three ways to a grant ---- */

static tide_status paste(struct cli *cli, tide_oauth_flow *flow)
{
    char line[8192];
    (void)fprintf(
        stderr,
        "Open this link in any browser:\n\n  %s\n\nAfter you allowed it, the browser ends "
        "at an address that does not load.\nPaste that address here: ",
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

static tide_status sign_in(struct cli *cli, const char *email, const struct purpose *purpose,
                           tide_buf *grant)
{
    struct tide_oauth_client client;
    tide_oauth_flow *flow = NULL;
    tide_buf scopes;
    tide_buf_init(&scopes, cli->mem, 8192);
    const bool headless = cli_flag(cli, "headless") != NULL;
    tide_status rc = client_of(cli, &client);
    const struct tide_oauth_ask ask = {
        .client = &client, .scopes = purpose->scope, .login_hint = email, .headless = headless};
    if (rc == TIDE_OK)
        (void)fprintf(stderr, "Tidemark asks for leave %s.\n", purpose->words);
    if (rc == TIDE_OK)
        rc = tide_oauth_flow_start(cli->world, &ask, cli->mem, &flow, &cli->err);
    if (rc == TIDE_OK && headless) {
        rc = paste(cli, flow);
    } else if (rc == TIDE_OK) {
        (void)fprintf(stderr,
                      "Sign in with your browser. If none opens, use this link:\n\n  %s\n\n",
                      tide_oauth_flow_link(flow));
        open_browser(tide_oauth_flow_link(flow));
        rc = tide_oauth_flow_wait(flow, BROWSER_WAIT_MS, NULL, &cli->err);
        rc = cli_hint(cli, rc, "Run the command again, with --headless where there is no browser.");
    }
    if (rc == TIDE_OK)
        rc = tide_oauth_flow_finish(flow, NULL, grant, &scopes, &cli->err);
    if (rc == TIDE_OK && !tide_oauth_scopes_cover(tide_buf_text(&scopes), purpose->scope) &&
        strstr(tide_buf_cstr(&scopes), "mail.google.com") == NULL)
        rc = cli_fail(cli, TIDE_AUTH, "Run the command again and leave the box ticked.",
                      "what Tidemark asked for was not allowed on the sign-in page");
    tide_oauth_flow_free(flow);
    tide_buf_done(&scopes);
    return rc;
}

static tide_status service_account(struct cli *cli, const char *file, const char *email,
                                   const struct purpose *purpose, tide_buf *grant)
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

static tide_status grant_of(struct cli *cli, const char *email, tide_buf *grant)
{
    const char *bearer = cli_flag(cli, "bearer");
    const char *key = cli_flag(cli, "service-account");
    const struct purpose *purpose = purpose_of(cli);
    if (purpose == NULL)
        return cli_fail(cli, TIDE_INVALID, "There are: sync, archive, delete.",
                        "there is no purpose \"%.60s\"", cli_flag(cli, "for"));
    if (bearer != NULL && cli_flag(cli, "endpoint") == NULL)
        return cli_fail(cli, TIDE_INVALID, "Add --endpoint URL.",
                        "--bearer is for emulators: a token of Google's lives an hour");
    if (bearer != NULL)
        return tide_oauth_fixed(bearer, grant, &cli->err);
    if (key != NULL)
        return service_account(cli, key, email, purpose, grant);
    return sign_in(cli, email, purpose, grant);
}

/* ---- commands ---- */

tide_status cli_account_add(struct cli *cli)
{
    struct mail_home home = {0};
    tide_buf grant;
    char secret[TIDE_SECRET_NAME_BYTES_MAX];
    const char *email = cli->arguments[1];
    if (strcmp(cli->arguments[0], "gmail") != 0)
        return cli_fail(cli, TIDE_INVALID, "So far there is: gmail.",
                        "there is no provider \"%.100s\"", cli->arguments[0]);
    if (strchr(email, '@') == NULL || strpbrk(email, "/\\ \t") != NULL || email[0] == '.' ||
        strlen(email) > 200)
        return cli_fail(cli, TIDE_INVALID, "Give an address like ada@example.com.",
                        "\"%.200s\" is no e-mail address", email);
    tide_buf_init(&grant, cli->mem, TIDE_SECRET_BYTES_MAX);
    tide_mail_secret_name(email, secret);
    tide_status rc = mail_home_open(cli, &home);
    if (rc == TIDE_OK)
        rc = grant_of(cli, email, &grant);
    /* The grant first: an account without one would only fail later. */
    if (rc == TIDE_OK)
        rc = tide_secrets_put(home.secrets, secret, tide_buf_text(&grant), &cli->err);
    if (rc == TIDE_OK)
        rc = tide_mail_account_add(home.mail, email, cli_flag(cli, "endpoint"), &cli->err);
    if (rc == TIDE_OK) {
        cli_print(cli,
                  "%s is added; its sign-in is kept in the %s.\nNow run `tidemark mail sync`.\n",
                  email, tide_secrets_where(home.secrets));
        tide_json_set_cstr(&cli->json, "account", email);
        tide_json_set_cstr(&cli->json, "secrets", tide_secrets_where(home.secrets));
    }
    tide_secret_wipe(&grant);
    tide_buf_done(&grant);
    const tide_status closed = mail_home_close(cli, &home);
    return rc == TIDE_OK ? closed : rc;
}

tide_status cli_account_remove(struct cli *cli)
{
    struct mail_home home = {0};
    char secret[TIDE_SECRET_NAME_BYTES_MAX];
    const char *email = cli->arguments[0];
    tide_mail_secret_name(email, secret);
    tide_status rc = mail_home_open(cli, &home);
    if (rc == TIDE_OK)
        rc = tide_mail_account_remove(home.mail, email, &cli->err);
    rc = cli_hint(cli, rc, "`tidemark account list` shows the accounts there are.");
    if (rc == TIDE_OK)
        rc = tide_secrets_remove(home.secrets, secret, &cli->err);
    if (rc == TIDE_NOT_FOUND && cli->hint[0] == '\0')
        rc = TIDE_OK; /* there was no secret left */
    if (rc == TIDE_OK) {
        cli_print(cli, "%s is removed and its sign-in forgotten; its archive stays in %s/%s.\n",
                  email, home.archive_dir, email);
        tide_json_set_cstr(&cli->json, "removed", email);
    }
    const tide_status closed = mail_home_close(cli, &home);
    return rc == TIDE_OK ? closed : rc;
}
