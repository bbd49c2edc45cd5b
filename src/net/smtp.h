/* smtp.h - hands one message to a mail server (E6.4).
 *
 * One connection for one message: mail about alerts is rare.  libcurl speaks SMTP; the world's port
 * has HTTP only, and no simulated world needs a mail server.
 *
 * smtps:// is TLS from the first byte.  smtp:// must be upgraded by STARTTLS before user, password
 * or mail are sent, unless the server is on this machine (127.0.0.0/8, ::1, localhost) and no
 * certificates are named for it.
 *
 * Invariants:
 *   SMTP1  user and password are in no error, no log and no argument; the server's answer is cut at
 *          the first character that is not printable.
 *   SMTP2  TIDE_OK: the server has taken the message.  TIDE_UNKNOWN: it may have.  Any other: it has
 *          not.
 */
#ifndef TIDE_NET_SMTP_H
#define TIDE_NET_SMTP_H

#include "base/status.h"
#include "base/text.h"
#include "world/world.h"

enum { TIDE_SMTP_ANSWER_BYTES = 200 };

struct tide_smtp {
    const char *url;      /* smtp://HOST[:PORT] or smtps://HOST[:PORT] */
    const char *ca_file;  /* ""; PEM: the certificates that its own is checked against */
    const char *user;     /* "": no sign-in */
    const char *password; /* terminated */
    const char *from, *to;
    uint32_t total_timeout_ms; /* 0: 60 s */
};

/* Whether user, password and mail may be sent there without TLS. */
bool tide_smtp_may_be_plain(const char *url, const char *ca_file);

/* Sends `message`, whose lines end in CR LF, and waits.  `answer_out` is the last line of the server,
 * "" if there was none.
 *   TIDE_UNKNOWN    the connection ended after the message was sent, before the answer
 *   TIDE_AUTH       the server refuses the user or the password
 *   TIDE_PERMANENT  5xx; or no TLS where there must be, or a certificate that cannot be trusted
 *   TIDE_SERVER     4xx: try again later
 *   TIDE_NETWORK    it cannot be reached, or does not answer in time; nothing was sent
 *   TIDE_CANCELED, TIDE_NO_MEMORY, TIDE_INVALID */
tide_status tide_smtp_send(const struct tide_smtp *smtp, tide_text message,
                           const tide_cancel *cancel, char answer_out[TIDE_SMTP_ANSWER_BYTES],
                           tide_error *err);

#endif
