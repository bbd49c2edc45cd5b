/* mailer.h - sends mail about alerts as the settings say: to a server, or from an account to itself
 * (E6.4).
 *
 * User and password of a server are one secret, which names the server it is for: a setting that
 * was changed to another server does not send them there.
 *
 * Invariants:
 *   AMA1  the secret is in no error, log, argument or setting, and is wiped from our memory.
 */
#ifndef TIDE_CLI_ALERTS_MAILER_H
#define TIDE_CLI_ALERTS_MAILER_H

#include "cli/cli.h"
#include "net/secrets.h"
#include "tidemark_inside.h"

#define ALERT_MAIL_SECRET "alerts/mail"

/* What it works with; all borrowed. */
struct alert_mailer {
    const struct cli *cli; /* systems, world, paths */
    tide_engine *engine;   /* for its settings as they are now; NULL: those of the command */
    tide_secrets *secrets;
};

/* Lets the engine send through it from its start on.  The mailer outlives the engine. */
tide_status alert_mailer_bind(struct cli *cli, struct alert_mailer *mailer, tide_engine *engine,
                              tide_secrets *secrets);

/* Sends one; `answer` gets what the server said.  Statuses as in struct tide_notifier. */
tide_status alert_mailer_send(const struct alert_mailer *mailer,
                              const struct tide_alert_mail *settings,
                              const struct tide_notice *notice, const tide_cancel *cancel,
                              tide_buf *answer, tide_error *err);
/* The address it is sent to: alerts.mail.to, or the account. */
const char *alert_mailer_to(const struct tide_alert_mail *settings);
struct tide_alert_mail alert_mailer_settings(const tide_settings *settings);

/* Stores user and password for this server; user "": removes them. */
tide_status alert_mailer_secret_put(tide_secrets *secrets, const char *server, const char *user,
                                    tide_text password, tide_mem *mem, tide_error *err);

#endif
