/* alerts_mail.c - `tidemark alerts setup` and `tidemark alerts test`: mail about alerts (E6.4). */
#include "cli/alerts/mailer.h"
#include "cli/alerts/message.h"
#include "cli/archive_here.h"

#include "base/encode.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { PASSWORD_BYTES = 1024 };

static tide_status secrets_open(struct cli *cli, tide_secrets **secrets_out)
{
    char archive_dir[CLI_PATH_BYTES], secrets_dir[CLI_PATH_BYTES];
    tide_status rc = archive_here_places(cli, archive_dir, secrets_dir);
    if (rc == TIDE_OK)
        rc = tide_secrets_open(cli->world, secrets_dir, TIDE_SECRETS_BEST, cli->mem, secrets_out,
                               &cli->err);
    return rc;
}

/* ---- the password -------------------------------------------------------------------------- */

/* One line; the end of the line is not part of it. */
static tide_status password_line(struct cli *cli, FILE *from, tide_buf *out)
{
    char line[PASSWORD_BYTES + 2];
    tide_status rc = TIDE_OK;
    if (fgets(line, sizeof line, from) == NULL)
        return cli_fail(cli, TIDE_CANCELED, "Run the command again.", "no password was given");
    const size_t bytes = strcspn(line, "\r\n");
    if (bytes == 0)
        rc = cli_wrong(cli, "Run the command again, or without --user.", "the password is empty");
    else if (bytes > PASSWORD_BYTES - 1)
        rc = cli_wrong(cli, "Check the file.", "the password is longer than %d bytes",
                       PASSWORD_BYTES - 1);
    else
        rc = tide_buf_add(out, line, bytes);
    explicit_bzero(line, sizeof line);
    return rc;
}

/* Asks without showing what is typed. */
static tide_status password_ask(struct cli *cli, const char *user, const char *server,
                                tide_buf *out)
{
    struct termios before, silent;
    if (isatty(STDIN_FILENO) != 1 || tcgetattr(STDIN_FILENO, &before) != 0)
        return cli_wrong(cli, "Name a file with --password-file FILE, or - for standard input.",
                         "there is no terminal to ask for the password");
    silent = before;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    /* Before the question: what is typed as an answer to it must be neither shown nor dropped. */
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) != 0)
        return cli_fail(cli, TIDE_IO, "Use --password-file FILE.",
                        "the terminal cannot hide what is typed");
    (void)fprintf(stderr, "Password of %s at %s: ", user, server);
    const tide_status rc = password_line(cli, stdin, out);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    (void)fprintf(stderr, "\n");
    return rc;
}

static tide_status password_read(struct cli *cli, const char *user, const char *server,
                                 tide_buf *out)
{
    const char *path = cli_flag(cli, "password-file");
    if (path == NULL)
        return password_ask(cli, user, server, out);
    if (strcmp(path, "-") == 0)
        return password_line(cli, stdin, out);
    tide_status rc = tide_file_read_private(cli->world, path, PASSWORD_BYTES + 2, out, &cli->err);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "Name a file that only you can read.");
    while (out->bytes > 0 &&
           (out->data[out->bytes - 1] == '\n' || out->data[out->bytes - 1] == '\r'))
        out->bytes--;
    if (out->bytes == 0 || memchr(out->data, '\n', out->bytes) != NULL ||
        memchr(out->data, '\0', out->bytes) != NULL)
        rc = cli_wrong(cli, "Write the password alone into the file.",
                       "the password file must have one line");
    return rc;
}

/* ---- setup --------------------------------------------------------------------------------- */

struct wanted {
    const char *to, *from, *server, *ca_file, *account, *user;
};

static const char *or_empty(const char *text)
{
    return text == NULL ? "" : text;
}

static tide_status wanted_read(struct cli *cli, struct wanted *wanted)
{
    const bool off = cli_flag(cli, "off") != NULL;
    *wanted = (struct wanted){.to = or_empty(cli_flag(cli, "to")),
                              .from = or_empty(cli_flag(cli, "from")),
                              .server = or_empty(cli_flag(cli, "server")),
                              .ca_file = or_empty(cli_flag(cli, "ca-file")),
                              .account = or_empty(cli_flag(cli, "account")),
                              .user = or_empty(cli_flag(cli, "user"))};
    const bool of_server = wanted->to[0] != '\0' || wanted->from[0] != '\0' ||
                           wanted->server[0] != '\0' || wanted->ca_file[0] != '\0' ||
                           wanted->user[0] != '\0' || cli_flag(cli, "password-file") != NULL;
    if (off && (of_server || wanted->account[0] != '\0'))
        return cli_wrong(cli, "Give --off alone.", "--off takes no other flags");
    if (wanted->account[0] != '\0' && of_server)
        return cli_wrong(cli, "Give --account alone.",
                         "an account sends to itself; the other flags are for a server");
    if (!off && wanted->account[0] == '\0' && (wanted->to[0] == '\0' || wanted->server[0] == '\0'))
        return cli_wrong(cli, "Give --to ADDRESS --server URL, or --account ACCOUNT, or --off.",
                         "where to send mail about alerts is not named");
    if (wanted->user[0] == '\0' && cli_flag(cli, "password-file") != NULL)
        return cli_wrong(cli, "Add --user NAME.", "a password needs a user");
    return TIDE_OK;
}

struct setting_value {
    const char *name, *value;
};

/* All values are checked before one is written. */
static tide_status values_check(struct cli *cli, const struct setting_value *values, size_t count)
{
    static const char prefix[] = "--set: ";
    tide_settings *settings = NULL;
    tide_status rc = tide_settings_new(cli->mem, &settings);
    if (rc != TIDE_OK)
        return cli_fail(cli, rc, "Free some memory and try again.", "out of memory");
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        char assignment[CLI_PATH_BYTES];
        (void)snprintf(assignment, sizeof assignment, "%s=%s", values[i].name, values[i].value);
        rc = tide_settings_add_flag(settings, assignment, &cli->err);
    }
    tide_settings_free(settings);
    if (rc == TIDE_OK)
        return rc;
    char text[sizeof cli->err.text];
    (void)snprintf(text, sizeof text, "%s", cli->err.text);
    const bool prefixed = strncmp(text, prefix, sizeof prefix - 1) == 0;
    return cli_wrong(cli, "Nothing was changed.", "%s", text + (prefixed ? sizeof prefix - 1 : 0));
}

static tide_status values_write(struct cli *cli, const struct setting_value *values, size_t count)
{
    tide_json request;
    json_t *answer = NULL;
    bool runs = false;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        rc = cli_config_write(cli, values[i].name, values[i].value);
    if (rc != TIDE_OK)
        return rc;
    /* Only a hint: a running engine notices the changed file by itself (E11.1). */
    tide_control_request(TIDE_OP_RELOAD, &request);
    (void)cli_engine_ask(cli, &request, &runs, &answer);
    json_decref(answer);
    cli->hint[0] = '\0';
    cli->err = (tide_error){TIDE_OK, 0, ""};
    return TIDE_OK;
}

/* The password before the settings that use it: without it they would only fail. */
static tide_status login_store(struct cli *cli, const struct wanted *wanted)
{
    tide_secrets *secrets = NULL;
    tide_buf password;
    tide_buf_init(&password, cli->mem, PASSWORD_BYTES + 2);
    tide_status rc = secrets_open(cli, &secrets);
    if (rc == TIDE_OK && wanted->user[0] != '\0')
        rc = password_read(cli, wanted->user, wanted->server, &password);
    if (rc == TIDE_OK)
        rc = alert_mailer_secret_put(secrets, wanted->server, wanted->user,
                                     tide_buf_text(&password), cli->mem, &cli->err);
    tide_secret_wipe(&password);
    tide_secrets_close(secrets);
    return rc;
}

static void setup_show(struct cli *cli, const struct wanted *wanted)
{
    const bool off = wanted->account[0] == '\0' && wanted->server[0] == '\0';
    if (off)
        cli_print(cli, "no alert mail is sent any more\n");
    else if (wanted->account[0] != '\0')
        cli_print(cli, "%s sends alert mail to itself\n", wanted->account);
    else
        cli_print(cli, "alert mail goes to %s through %s\n", wanted->to, wanted->server);
    if (!off)
        cli_print(cli, "Try it: `tidemark alerts test`\n");
    tide_json_set_bool(&cli->json, "on", !off);
    tide_json_set_cstr(&cli->json, "to", wanted->account[0] != '\0' ? wanted->account : wanted->to);
    tide_json_set_cstr(&cli->json, "server", wanted->server);
    tide_json_set_cstr(&cli->json, "account", wanted->account);
    tide_json_set_bool(&cli->json, "password", wanted->user[0] != '\0');
    tide_json_set_cstr(&cli->json, "file", cli->config_path);
}

tide_status cli_alerts_setup(struct cli *cli)
{
    struct wanted wanted;
    tide_status rc = wanted_read(cli, &wanted);
    /* What switches it on comes last: an engine that reads the file in between sends nothing, or by
     * the way it sent before. */
    const struct setting_value values[] = {
        {"alerts.mail.from", wanted.from},       {"alerts.mail.ca_file", wanted.ca_file},
        {"alerts.mail.to", wanted.to},           {"alerts.mail.server", wanted.server},
        {"alerts.mail.account", wanted.account},
    };
    const size_t count = sizeof values / sizeof values[0];
    if (rc == TIDE_OK)
        rc = values_check(cli, values, count);
    if (rc == TIDE_OK)
        rc = login_store(cli, &wanted);
    if (rc == TIDE_OK)
        rc = values_write(cli, values, count);
    if (rc == TIDE_OK)
        setup_show(cli, &wanted);
    return rc;
}

/* ---- test ----------------------------------------------------------------------------------- */

static tide_status test_hint(struct cli *cli, tide_status rc)
{
    switch (rc) {
    case TIDE_CANCELED:
        return cli_hint(cli, rc, "Run the command again.");
    case TIDE_AUTH:
        return cli_hint(cli, rc, "Run `tidemark alerts setup` again with the right --user.");
    case TIDE_SERVER:
        return cli_hint(cli, rc, "Try again later; alerts are tried again by themselves.");
    case TIDE_NETWORK:
        return cli_hint(cli, rc, "Check the network and alerts.mail.server.");
    case TIDE_UNKNOWN:
        return cli_hint(cli, rc, "See whether the mail arrives, and try again.");
    default:
        return cli_hint(cli, rc, "Check `tidemark config list`: alerts.mail.to, .from, .server.");
    }
}

static tide_status test_send(struct cli *cli, const struct tide_alert_mail *settings,
                             tide_buf *answer)
{
    unsigned char random[16];
    char tag[33];
    tide_secrets *secrets = NULL;
    tide_world_random(cli->world, random, sizeof random);
    tide_hex(random, sizeof random, tag);
    const struct tide_notice notice = {.condition = ALERT_TEST_CONDITION,
                                       .account = "",
                                       .text = "A test of mail about alerts.",
                                       .tag = tag,
                                       .since_unix_ms = cli->now_unix_ms,
                                       .made_unix_ms = cli->now_unix_ms};
    tide_status rc = secrets_open(cli, &secrets);
    if (rc != TIDE_OK)
        return rc;
    const struct alert_mailer mailer = {cli, NULL, secrets};
    rc = alert_mailer_send(&mailer, settings, &notice, cli_interruptible(cli), answer, &cli->err);
    tide_secrets_close(secrets);
    return rc == TIDE_OK ? rc : test_hint(cli, rc);
}

tide_status cli_alerts_test(struct cli *cli)
{
    tide_buf answer;
    tide_status rc = cli_ledger_choose(cli); /* and loads the settings */
    if (rc != TIDE_OK)
        return rc;
    const struct tide_alert_mail settings = alert_mailer_settings(cli->settings);
    if (settings.account[0] == '\0' && (settings.to[0] == '\0' || settings.server[0] == '\0'))
        return cli_fail(cli, TIDE_NOT_FOUND,
                        "Run `tidemark alerts setup --to ADDRESS --server URL`, or with --account "
                        "ACCOUNT.",
                        "alert mail is not set up");
    tide_buf_init(&answer, cli->mem, 4096);
    rc = test_send(cli, &settings, &answer);
    if (rc == TIDE_OK) {
        cli_print(cli, "a test mail was sent to %s\n%s answered: %.*s\n",
                  alert_mailer_to(&settings),
                  settings.account[0] != '\0' ? settings.account : settings.server,
                  (int)answer.bytes, answer.bytes == 0 ? "" : answer.data);
        tide_json_set_cstr(&cli->json, "to", alert_mailer_to(&settings));
        tide_json_set_cstr(&cli->json, "server", settings.server);
        tide_json_set_cstr(&cli->json, "account", settings.account);
        tide_json_set_text(&cli->json, "answer", tide_buf_text(&answer));
    }
    tide_buf_done(&answer);
    return rc;
}
