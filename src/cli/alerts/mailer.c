#include "cli/alerts/mailer.h"

#include "cli/alerts/message.h"
#include "ledger/ledger.h"
#include "net/smtp.h"

#include <stdio.h>
#include <string.h>

enum { LOGIN_BYTES = 1024 };

const char *alert_mailer_to(const struct tide_alert_mail *settings)
{
    return settings->to[0] != '\0' ? settings->to : settings->account;
}

static const char *from_of(const struct tide_alert_mail *settings)
{
    return settings->from[0] != '\0' ? settings->from : alert_mailer_to(settings);
}

struct tide_alert_mail alert_mailer_settings(const tide_settings *settings)
{
    struct tide_alert_mail mail;
    const struct {
        tide_setting setting;
        char *out;
    } rows[] = {{TIDE_SET_ALERTS_MAIL_TO, mail.to},
                {TIDE_SET_ALERTS_MAIL_FROM, mail.from},
                {TIDE_SET_ALERTS_MAIL_SERVER, mail.server},
                {TIDE_SET_ALERTS_MAIL_CA_FILE, mail.ca_file},
                {TIDE_SET_ALERTS_MAIL_ACCOUNT, mail.account}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        (void)snprintf(rows[i].out, TIDE_ALERT_MAIL_TEXT_BYTES, "%s",
                       tide_setting_text(settings, rows[i].setting));
    return mail;
}

/* ---- user and password ----------------------------------------------------------------- */

struct login {
    char user[LOGIN_BYTES], password[LOGIN_BYTES];
};

static void login_wipe(struct login *login)
{
    explicit_bzero(login, sizeof *login);
}

tide_status alert_mailer_secret_put(tide_secrets *secrets, const char *server, const char *user,
                                    tide_text password, tide_mem *mem, tide_error *err)
{
    if (user[0] == '\0') {
        const tide_status rc = tide_secrets_remove(secrets, ALERT_MAIL_SECRET, err);
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    }
    if (strlen(user) >= LOGIN_BYTES || password.bytes >= LOGIN_BYTES)
        return tide_error_set(err, TIDE_INVALID, "user or password is longer than %d bytes",
                              LOGIN_BYTES - 1);
    tide_json json;
    tide_buf text;
    tide_buf_init(&text, mem, TIDE_SECRET_BYTES_MAX);
    tide_json_object(&json);
    tide_json_set_cstr(&json, "server", server);
    tide_json_set_cstr(&json, "user", user);
    tide_json_set_text(&json, "password", password);
    tide_status rc = tide_json_line(&json, &text);
    tide_json_done(&json);
    if (rc != TIDE_OK)
        (void)tide_error_set(err, rc, "no memory for the password");
    else
        rc = tide_secrets_put(secrets, ALERT_MAIL_SECRET, tide_buf_text(&text), err);
    tide_secret_wipe(&text);
    return rc;
}

static tide_status login_read(const json_t *json, const char *server, struct login *login,
                              tide_error *err)
{
    const char *for_server = json_string_value(json_object_get(json, "server"));
    const char *user = json_string_value(json_object_get(json, "user"));
    const char *password = json_string_value(json_object_get(json, "password"));
    if (for_server == NULL || user == NULL || password == NULL || strlen(user) >= LOGIN_BYTES ||
        strlen(password) >= LOGIN_BYTES)
        return tide_error_set(err, TIDE_AUTH,
                              "the stored sign-in for alert mail is damaged; run `tidemark alerts "
                              "setup` again");
    if (strcmp(for_server, server) != 0)
        return tide_error_set(err, TIDE_AUTH,
                              "user and password were stored for %.100s, not for %.100s; run "
                              "`tidemark alerts setup` again",
                              for_server, server);
    (void)snprintf(login->user, sizeof login->user, "%s", user);
    (void)snprintf(login->password, sizeof login->password, "%s", password);
    return TIDE_OK;
}

/* Without a secret both are "": a server that wants none. */
static tide_status login_get(const struct alert_mailer *mailer, const char *server,
                             struct login *login, tide_error *err)
{
    json_t *json = NULL;
    tide_buf text;
    tide_buf_init(&text, mailer->cli->mem, TIDE_SECRET_BYTES_MAX);
    *login = (struct login){.user = ""};
    tide_status rc = tide_secrets_get(mailer->secrets, ALERT_MAIL_SECRET, &text, err);
    if (rc == TIDE_OK)
        rc = tide_json_parse_stored(tide_buf_text(&text), &json, err);
    if (rc == TIDE_OK)
        rc = login_read(json, server, login, err);
    json_decref(json);
    tide_secret_wipe(&text);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* ---- ways ---------------------------------------------------------------------------------- */

static tide_status to_server(const struct alert_mailer *mailer,
                             const struct tide_alert_mail *settings, tide_text message,
                             const tide_cancel *cancel, tide_buf *answer, tide_error *err)
{
    char line[TIDE_SMTP_ANSWER_BYTES] = "";
    struct login *login = tide_mem_new(mailer->cli->mem, sizeof *login);
    if (login == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for alert mail");
    tide_status rc = login_get(mailer, settings->server, login, err);
    const struct tide_smtp smtp = {.url = settings->server,
                                   .ca_file = settings->ca_file,
                                   .user = login->user,
                                   .password = login->password,
                                   .from = from_of(settings),
                                   .to = alert_mailer_to(settings)};
    if (rc == TIDE_OK)
        rc = tide_smtp_send(&smtp, message, cancel, line, err);
    if (rc == TIDE_OK)
        rc = tide_buf_add_text(answer, line);
    login_wipe(login);
    tide_mem_free(mailer->cli->mem, login, sizeof *login);
    return rc;
}

/* The system whose account this is, and where its provider is. */
static tide_status system_of(const struct alert_mailer *mailer, const char *account,
                             const struct tide_system **system_out,
                             char endpoint[TIDE_ENDPOINT_BYTES], tide_error *err)
{
    const struct cli *cli = mailer->cli;
    const struct tide_ledger_options options = {
        .path = cli->shared != NULL ? cli->shared : cli->ledger_path,
        .run_id = "alert-mail",
        .now_unix_ms = tide_world_now_unix_ms(cli->world),
        .read_only = true,
        .must_exist = true,
    };
    tide_ledger *ledger = NULL;
    tide_status rc = tide_ledger_open(cli->world, &options, &ledger, err);
    if (rc != TIDE_OK)
        return rc;
    rc = TIDE_NOT_FOUND;
    for (size_t i = 0; rc == TIDE_NOT_FOUND && cli->systems[i] != NULL; i++) {
        *system_out = cli->systems[i];
        if (cli->systems[i]->mail_self != NULL)
            rc = tide_system_account_look(cli->systems[i], ledger, account, endpoint, err);
    }
    tide_ledger_close(ledger, true);
    return rc != TIDE_NOT_FOUND
               ? rc
               : tide_error_set(err, rc, "alerts.mail.account: %.100s is no account with mail",
                                account);
}

static tide_status to_itself(const struct alert_mailer *mailer,
                             const struct tide_alert_mail *settings,
                             const struct tide_self_mail *mail, tide_buf *answer, tide_error *err)
{
    const struct tide_system *system = NULL;
    char endpoint[TIDE_ENDPOINT_BYTES] = "";
    const struct tide_system_home home = {
        .world = mailer->cli->world, .mem = mailer->cli->mem, .secrets = mailer->secrets};
    const tide_status rc = system_of(mailer, settings->account, &system, endpoint, err);
    return rc == TIDE_OK ? system->mail_self(&home, settings->account, endpoint, mail, answer, err)
                         : rc;
}

tide_status alert_mailer_send(const struct alert_mailer *mailer,
                              const struct tide_alert_mail *settings,
                              const struct tide_notice *notice, const tide_cancel *cancel,
                              tide_buf *answer, tide_error *err)
{
    char id[ALERT_MESSAGE_ID_BYTES];
    tide_buf message;
    tide_buf_init(&message, mailer->cli->mem, ALERT_MESSAGE_BYTES_MAX);
    alert_message_id(notice, from_of(settings), id);
    tide_status rc = alert_message(notice, from_of(settings), alert_mailer_to(settings), &message);
    const struct tide_self_mail mail = {.message = tide_buf_text(&message),
                                        .message_id = id,
                                        .again = notice->again,
                                        .cancel = cancel};
    if (rc != TIDE_OK)
        (void)tide_error_set(err, rc, "no memory for alert mail");
    else if (settings->account[0] != '\0')
        rc = to_itself(mailer, settings, &mail, answer, err);
    else
        rc = to_server(mailer, settings, mail.message, cancel, answer, err);
    tide_buf_done(&message);
    return rc;
}

/* ---- for the engine ---------------------------------------------------------------------------- */

static tide_status send_notice(void *arg, const struct tide_notice *notice,
                               const struct tide_cancel *cancel, tide_error *err)
{
    const struct alert_mailer *mailer = arg;
    struct tide_alert_mail settings;
    tide_buf answer;
    tide_buf_init(&answer, mailer->cli->mem, 4096);
    tide_engine_alert_mail(mailer->engine, notice->account, &settings);
    const tide_status rc = alert_mailer_send(mailer, &settings, notice, cancel, &answer, err);
    tide_buf_done(&answer);
    return rc;
}

tide_status alert_mailer_bind(struct cli *cli, struct alert_mailer *mailer, tide_engine *engine,
                              tide_secrets *secrets)
{
    *mailer = (struct alert_mailer){cli, engine, secrets};
    const struct tide_notifier notifier = {.send = send_notice, .arg = mailer};
    return tide_engine_notifier(engine, &notifier, &cli->err);
}
