#include "cli/sign_in/sign_in.h"

#include "cli/sign_in/client.h"
#include "cli/terminal/browser.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 64 << 10, KEY_BYTES_MAX = 8192, BROWSER_WAIT_MS = 5 * 60 * 1000 };

static tide_status read_file(struct cli *cli, const char *path, tide_buf *out)
{
    const tide_status rc = tide_file_read(cli->world, path, FILE_BYTES_MAX, out, &cli->err);
    return cli_hint(cli, rc, "Name a readable file.");
}

/* ---- ways to a grant ---- */

/* What is not the answer is asked for again: the link stays valid. */
static tide_status paste(struct cli *cli, tide_oauth_flow *flow)
{
    enum { TRIES = 3 };
    char line[8192];
    tide_status rc = TIDE_INVALID;
    (void)fprintf(
        stderr,
        "Open this link in any browser:\n\n  %s\n\nAfter you allow access, the browser shows "
        "an address that does not load.\nPaste that address here: ",
        tide_oauth_flow_link(flow));
    for (int i = 0; rc == TIDE_INVALID && i < TRIES; i++) {
        if (i > 0)
            (void)fprintf(stderr, "\nNo: %s.\nPaste that address here: ", cli->err.text);
        if (!cli_line_read(line, sizeof line))
            return i > 0 ? cli_hint(cli, rc, "Run the command again.")
                         : cli_fail(cli, TIDE_CANCELED, "Run the command again.",
                                    "nothing was pasted");
        rc = tide_oauth_flow_paste(flow, tide_text_of(line), &cli->err);
    }
    return cli_hint(cli, rc, "Run the command again.");
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
    /* It was there when the way was chosen (way_of()), or there is no terminal to paste on. */
    if (cli_browser_here() != CLI_BROWSER_WINDOW || !cli_browser_open(link))
        (void)fprintf(stderr, "No browser could be opened. The link works only in one on this "
                              "machine; with --headless it\nworks in any, and you paste an address "
                              "here.\n");
    return cli_hint(cli, tide_oauth_flow_wait(flow, BROWSER_WAIT_MS, NULL, &cli->err),
                    "Run the command again, with --headless if there is no browser.");
}

/* A browser elsewhere cannot reach the port on which this process would wait. */
static tide_oauth_way way_of(struct cli *cli, const struct tide_oauth_provider *provider)
{
    if (cli_flag(cli, "headless") != NULL)
        return tide_oauth_headless(provider);
    if (cli_browser_here() == CLI_BROWSER_WINDOW || isatty(STDIN_FILENO) != 1)
        return TIDE_OAUTH_BROWSER;
    (void)fprintf(stderr, "No browser can be opened here, so the sign-in goes on as with "
                          "--headless.\n");
    return tide_oauth_headless(provider);
}

static tide_status sign_in(struct cli *cli, const struct tide_oauth_provider *provider,
                           tide_secrets *secrets, const char *email,
                           const struct tide_purpose *purpose, tide_buf *grant)
{
    struct tide_oauth_client client;
    tide_oauth_flow *flow = NULL;
    tide_auto_buf scopes = tide_buf_in(cli->mem, 8192);
    tide_auto_secret new_client = tide_buf_in(cli->mem, CLI_CLIENT_BYTES_MAX);
    tide_status rc = cli_client_get(cli, provider, secrets, purpose->scope, &client, &new_client);
    const struct tide_oauth_ask ask = {
        .provider = provider,
        .client = &client,
        .scopes = purpose->scope,
        .login_hint = email,
        .way = rc == TIDE_OK ? way_of(cli, provider) : TIDE_OAUTH_BROWSER,
    };
    if (rc == TIDE_OK)
        (void)fprintf(stderr, "Tidemark requests permission %s.\n", purpose->words);
    if (rc == TIDE_OK)
        rc = tide_oauth_flow_start(cli->world, &ask, cli->mem, &flow, &cli->err);
    if (rc == TIDE_OK)
        rc = ask.way == TIDE_OAUTH_PASTE ? paste(cli, flow) : wait_for_user(cli, flow);
    if (rc == TIDE_OK)
        rc = tide_oauth_flow_finish(flow, NULL, grant, &scopes, &cli->err);
    /* The provider took its id and secret, whatever the user allowed: nobody is led to it again. */
    if (rc == TIDE_OK && cli_flag(cli, "endpoint") == NULL)
        cli_client_remember(provider, secrets, tide_buf_text(&new_client));
    if (rc == TIDE_OK && !tide_oauth_scopes_cover(provider, tide_buf_text(&scopes), purpose->scope))
        rc = cli_fail(cli, TIDE_AUTH, "Run the command again and leave the box ticked.",
                      "the permission Tidemark requested was not granted on the sign-in page");
    tide_oauth_flow_free(flow);
    return rc;
}

static tide_status service_account(struct cli *cli, const char *file, const char *email,
                                   const struct tide_purpose *purpose, tide_buf *grant)
{
    tide_auto_secret key = tide_buf_in(cli->mem, FILE_BYTES_MAX);
    TIDE_TRY(read_file(cli, file, &key));
    return tide_oauth_service_account(tide_buf_text(&key), email, purpose->scope, grant, &cli->err);
}

/* Reads one line without showing it. */
static tide_status key_ask(tide_buf *key)
{
    struct termios before;
    const bool terminal = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &before) == 0;
    char line[KEY_BYTES_MAX];
    if (terminal) {
        struct termios hidden = before;
        hidden.c_lflag &= (tcflag_t)~ECHO;
        (void)fprintf(stderr, "Paste the key: ");
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    }
    const bool read = fgets(line, sizeof line, stdin) != NULL;
    if (terminal) {
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
        (void)fputc('\n', stderr);
    }
    const tide_status rc = read ? tide_buf_add(key, line, strcspn(line, "\r\n")) : TIDE_OK;
    explicit_bzero(line, sizeof line);
    return rc;
}

/* A key that the user got from the provider.  It is never an argument: other users of the machine
 * could see it. */
static tide_status key_grant(struct cli *cli, tide_buf *grant_out)
{
    const char *file = cli_flag(cli, "key-file");
    char entered[40];
    tide_auto_secret key = tide_buf_in(cli->mem, FILE_BYTES_MAX);
    tide_status rc = TIDE_OK;
    if (file != NULL && cli_flag(cli, "no-key") != NULL)
        return cli_wrong(cli, "Give one of the two.", "--key-file and --no-key exclude each other");
    if (cli_flag(cli, "no-key") != NULL)
        rc = tide_buf_add_text(&key, "none");
    else if (file != NULL)
        rc =
            cli_hint(cli, tide_file_read_private(cli->world, file, FILE_BYTES_MAX, &key, &cli->err),
                     "Name a file that only you can read, with the key and nothing else.");
    else
        rc = key_ask(&key);
    while (rc == TIDE_OK && key.bytes > 0 && strchr(" \t\r\n", key.data[key.bytes - 1]) != NULL)
        key.data[--key.bytes] = '\0';
    if (rc != TIDE_OK)
        return rc;
    (void)snprintf(entered, sizeof entered, "%" PRIu64, tide_world_random_u64(cli->world));
    return cli_hint(cli, tide_oauth_key(tide_buf_cstr(&key), entered, grant_out, &cli->err),
                    "Give the key with --key-file FILE, or --no-key if the server wants none.");
}

tide_status cli_sign_in(struct cli *cli, const struct tide_oauth_provider *provider,
                        tide_secrets *secrets, const char *account,
                        const struct tide_purpose *purpose, tide_buf *grant_out)
{
    const char *bearer = cli_flag(cli, "bearer");
    const char *key = cli_flag(cli, "service-account");
    /* A sign-in page has no use for a name that the user chose. */
    const char *email = strchr(account, '@') == NULL ? "" : account;
    if (provider->keys)
        return key_grant(cli, grant_out);
    if (cli_flag(cli, "key-file") != NULL || cli_flag(cli, "no-key") != NULL)
        return cli_wrong(cli, "Omit it, and sign in.", "this provider has no keys");
    if (bearer != NULL && cli_flag(cli, "endpoint") == NULL)
        return cli_wrong(cli, "Add --endpoint URL.",
                         "--bearer is for emulators: a provider's token expires after an hour");
    if (bearer != NULL)
        return tide_oauth_fixed(bearer, grant_out, &cli->err);
    if (key != NULL && !provider->service_accounts)
        return cli_wrong(cli, "Omit --service-account, and sign in as a user.",
                         "this provider has no service accounts");
    if (key != NULL)
        return service_account(cli, key, email, purpose, grant_out);
    return sign_in(cli, provider, secrets, email, purpose, grant_out);
}

/* ---- the end of a sign-in ---- */

tide_status cli_sign_out(struct cli *cli, tide_secrets *secrets,
                         const struct tide_tokens_options *options, const char *endpoint,
                         bool *revoked_out)
{
    const struct tide_oauth_provider *provider = options->provider;
    tide_tokens *tokens = NULL;
    tide_error why = {TIDE_OK, 0, ""};
    tide_status rc = tide_tokens_open(cli->world, secrets, options, cli->mem, &tokens, &why);
    const bool there = rc == TIDE_OK;
    *revoked_out = false;
    if (there)
        rc = tide_tokens_revoke(tokens, revoked_out, &why);
    tide_tokens_close(tokens);
    if (rc == TIDE_OK && !*revoked_out && provider->revoke_url == NULL)
        (void)fprintf(stderr,
                      "tidemark: warning: the sign-in of %s is removed here but still valid.\n"
                      "          Revoke it at %s.\n",
                      options->account, provider->revoke_page);
    if (rc == TIDE_OK)
        return TIDE_OK;
    rc = tide_secrets_remove(secrets, options->secret, &cli->err);
    if (there)
        (void)fprintf(stderr,
                      "tidemark: warning: the sign-in of %s could not be revoked: %s\n"
                      "          It is removed here but still valid at %s: revoke it there.\n",
                      options->account, why.text,
                      endpoint[0] == '\0' ? provider->revoke_page : endpoint);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc; /* there was none */
}
