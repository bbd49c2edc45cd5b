#include "cli/sign_in/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRIES = 3, LINE_BYTES = 8192 };

bool cli_line_read(char *line, size_t room)
{
    if (fgets(line, (int)room, stdin) == NULL)
        return false;
    const size_t bytes = strcspn(line, "\n");
    for (int c = 0; line[bytes] == '\0' && c != '\n' && c != EOF;)
        c = fgetc(stdin);
    line[strcspn(line, "\r\n")] = '\0';
    return true;
}

/* ---- the guide ---- */

/* Only where it is: a program that was not installed has no documents. */
static void guide_show(const struct tide_oauth_provider *provider)
{
    char path[CLI_PATH_BYTES];
    (void)snprintf(path, sizeof path, TIDE_DOC_DIR "/%s-client.md", provider->name);
    if (access(path, R_OK) == 0)
        (void)fprintf(stderr, "What may go wrong:\n    %s\n", path);
    (void)fputc('\n', stderr);
}

static void steps_show(const struct tide_oauth_provider *provider, const char *origin,
                       const char *scopes)
{
    int number = 0;
    (void)fprintf(stderr,
                  "%s lets no program in that it does not know. Create an OAuth client of your\n"
                  "own, once: five minutes, free of charge.\n",
                  provider->title);
    guide_show(provider);
    for (const struct tide_oauth_step *step = provider->setup; step->text != NULL; step++)
        if (step->scope == NULL || strstr(scopes, step->scope) != NULL)
            (void)fprintf(stderr, "%2d. %s\n    %s%s\n", ++number, step->text, origin, step->path);
    (void)fputc('\n', stderr);
}

/* What surrounds a path that was pasted or dropped onto a terminal. */
static char *trimmed(char *line)
{
    line += strspn(line, " \t");
    size_t bytes = strlen(line);
    while (bytes > 0 && strchr(" \t", line[bytes - 1]) != NULL)
        line[--bytes] = '\0';
    if (bytes >= 2 && (line[0] == '\'' || line[0] == '"') && line[bytes - 1] == line[0]) {
        line[bytes - 1] = '\0';
        line++;
    }
    return line;
}

static tide_status file_read(struct cli *cli, const char *path, tide_buf *text)
{
    char full[CLI_PATH_BYTES];
    const char *home = getenv("HOME");
    const bool below_home = strncmp(path, "~/", 2) == 0 && home != NULL;
    const int bytes =
        snprintf(full, sizeof full, "%s%s", below_home ? home : "", below_home ? path + 1 : path);
    if (bytes < 0 || (size_t)bytes >= sizeof full)
        return tide_error_set(&cli->err, TIDE_INVALID, "the path is too long");
    return tide_file_read(cli->world, full, CLI_CLIENT_BYTES_MAX, text, &cli->err);
}

static bool is_id(const struct tide_oauth_provider *provider, const char *text)
{
    const char *end = provider->client_id_end;
    const size_t bytes = strlen(text);
    return end != NULL && bytes > strlen(end) && strcmp(text + bytes - strlen(end), end) == 0 &&
           strchr(text, '/') == NULL;
}

/* A client file of ours, of an id and the secret that the console shows beside it. */
static tide_status secret_ask(struct cli *cli, const char *id, tide_buf *text)
{
    char line[LINE_BYTES];
    tide_json file;
    (void)fprintf(stderr, "The client secret, which is beside the id: ");
    if (!cli_line_read(line, sizeof line) || trimmed(line)[0] == '\0')
        return tide_error_set(&cli->err, TIDE_INVALID, "the client secret is missing");
    tide_json_object(&file);
    tide_json_set_cstr(&file, "client_id", id);
    tide_json_set_cstr(&file, "client_secret", trimmed(line));
    const tide_status rc = tide_json_line(&file, text);
    tide_json_done(&file);
    explicit_bzero(line, sizeof line);
    return rc;
}

/* The path of a client file, what is in it, or the id of the client. */
static tide_status answer_take(struct cli *cli, const struct tide_oauth_provider *provider,
                               char *line, struct tide_oauth_client *client_out, tide_buf *text)
{
    const char *answer = trimmed(line);
    tide_status rc;
    tide_buf_clear(text);
    if (answer[0] == '\0')
        rc = tide_error_set(&cli->err, TIDE_INVALID, "nothing was entered");
    else if (answer[0] == '{')
        rc = tide_buf_add_text(text, answer);
    else if (is_id(provider, answer))
        rc = secret_ask(cli, answer, text);
    else
        rc = file_read(cli, answer, text);
    return rc == TIDE_OK
               ? tide_oauth_client_read(provider, tide_buf_text(text), client_out, &cli->err)
               : rc;
}

/* What is no client is asked for again, with what is wrong. */
static tide_status guide(struct cli *cli, const struct tide_oauth_provider *provider,
                         const char *scopes, struct tide_oauth_client *client_out, tide_buf *text)
{
    static const char hint[] = "Run the command again when you have the file, with --client FILE.";
    const char *endpoint = cli_flag(cli, "endpoint");
    char line[LINE_BYTES];
    tide_status rc = TIDE_INVALID;
    if (provider->setup == NULL)
        return cli_fail(cli, TIDE_INVALID, provider->client_help, "there is no guide for %s",
                        provider->title);
    steps_show(provider, endpoint == NULL ? provider->setup_url : endpoint, scopes);
    for (int i = 0; rc != TIDE_OK && i < TRIES; i++) {
        if (i > 0)
            (void)fprintf(stderr, "\nNo: %s.\n", cli->err.text);
        (void)fprintf(stderr, "Path of the JSON file, or the client id: ");
        if (!cli_line_read(line, sizeof line))
            return i > 0 ? cli_hint(cli, rc, hint)
                         : cli_fail(cli, TIDE_CANCELED, hint, "no client was named");
        rc = answer_take(cli, provider, line, client_out, text);
    }
    explicit_bzero(line, sizeof line);
    return cli_hint(cli, rc, hint);
}

/* ---- where a client comes from ---- */

static void secret_name(const struct tide_oauth_provider *provider,
                        char name[TIDE_SECRET_NAME_BYTES_MAX])
{
    (void)snprintf(name, TIDE_SECRET_NAME_BYTES_MAX, "client/%s", provider->name);
}

static tide_status given(struct cli *cli, const struct tide_oauth_provider *provider,
                         const char *file, struct tide_oauth_client *client_out, tide_buf *text)
{
    const tide_status rc = tide_file_read(cli->world, file, CLI_CLIENT_BYTES_MAX, text, &cli->err);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "Name a readable file.");
    return cli_hint(cli,
                    tide_oauth_client_read(provider, tide_buf_text(text), client_out, &cli->err),
                    provider->client_help);
}

static bool at_terminal(void)
{
    return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

static tide_status remembered(struct cli *cli, const struct tide_oauth_provider *provider,
                              tide_secrets *secrets, struct tide_oauth_client *client_out)
{
    char name[TIDE_SECRET_NAME_BYTES_MAX];
    tide_auto_secret text = tide_buf_in(cli->mem, CLI_CLIENT_BYTES_MAX);
    if (secrets == NULL)
        return TIDE_NOT_FOUND;
    secret_name(provider, name);
    TIDE_TRY(tide_secrets_get(secrets, name, &text, &cli->err));
    (void)fprintf(stderr,
                  "Tidemark uses the OAuth client of your last sign-in to %s; --client FILE names "
                  "another.\n",
                  provider->title == NULL ? provider->name : provider->title);
    return tide_oauth_client_read(provider, tide_buf_text(&text), client_out, &cli->err);
}

/* What a client file leaves out is at the emulator, not at the provider. */
static void fill_from(const struct tide_oauth_client *emulator, struct tide_oauth_client *client)
{
    if (client->auth_url[0] == '\0')
        memcpy(client->auth_url, emulator->auth_url, sizeof client->auth_url);
    if (client->token_url[0] == '\0')
        memcpy(client->token_url, emulator->token_url, sizeof client->token_url);
    if (client->device_url[0] == '\0')
        memcpy(client->device_url, emulator->device_url, sizeof client->device_url);
    if (client->revoke_url[0] == '\0')
        memcpy(client->revoke_url, emulator->revoke_url, sizeof client->revoke_url);
}

tide_status cli_client_get(struct cli *cli, const struct tide_oauth_provider *provider,
                           tide_secrets *secrets, const char *scopes,
                           struct tide_oauth_client *client_out, tide_buf *new_out)
{
    const char *endpoint = cli_flag(cli, "endpoint");
    const char *file = cli_flag(cli, "client");
    struct tide_oauth_client emulator = {.client_id = ""};
    struct tide_oauth_client client = {.client_id = ""};
    const bool guided = cli_flag(cli, "guide") != NULL;
    tide_status rc;
    if (file != NULL && guided)
        return cli_wrong(cli, "Give one of the two.", "--client and --guide exclude each other");
    if (endpoint != NULL)
        tide_oauth_client_at(provider, endpoint, &emulator);
    if (file != NULL) {
        rc = given(cli, provider, file, &client, new_out);
    } else if (guided) {
        rc = guide(cli, provider, scopes, &client, new_out);
    } else if (endpoint != NULL) {
        client = emulator;
        rc = TIDE_OK;
    } else {
        rc = remembered(cli, provider, secrets, &client);
        if (rc == TIDE_NOT_FOUND && at_terminal() && provider->setup != NULL)
            rc = guide(cli, provider, scopes, &client, new_out);
        else if (rc == TIDE_NOT_FOUND)
            rc = cli_fail(cli, TIDE_INVALID, provider->client_help,
                          "signing in needs an OAuth client");
    }
    if (rc != TIDE_OK)
        return rc;
    if (endpoint != NULL)
        fill_from(&emulator, &client);
    *client_out = client;
    return TIDE_OK;
}

void cli_client_remember(const struct tide_oauth_provider *provider, tide_secrets *secrets,
                         tide_text text)
{
    char name[TIDE_SECRET_NAME_BYTES_MAX];
    tide_error why = {TIDE_OK, 0, ""};
    if (text.bytes == 0 || secrets == NULL)
        return;
    secret_name(provider, name);
    if (tide_secrets_put(secrets, name, text, &why) != TIDE_OK)
        (void)fprintf(stderr, "tidemark: warning: the OAuth client is not remembered: %s\n",
                      why.text);
}
