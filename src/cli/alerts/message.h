/* message.h - the text of a mail about an alert (E6.4): what happened, to which account, since when,
 * what it means, what to do, and the command.
 *
 * Pure.  The same notice gives the same bytes, so that a repetition is the same mail.  Names and
 * texts come from outside: nothing of them can end a header line or become one. */
#ifndef TIDE_CLI_ALERTS_MESSAGE_H
#define TIDE_CLI_ALERTS_MESSAGE_H

#include "base/buf.h"
#include "tidemark_inside.h"

enum { ALERT_MESSAGE_BYTES_MAX = 32 << 10, ALERT_MESSAGE_ID_BYTES = 320 };

/* The condition of the notice of `alerts test`. */
#define ALERT_TEST_CONDITION "test"

/* "<TAG.tidemark@example.com>", with the domain of `from`. */
void alert_message_id(const struct tide_notice *notice, const char *from,
                      char out[ALERT_MESSAGE_ID_BYTES]);
/* Appends the whole message, lines ended by CR LF.  TIDE_NO_MEMORY, TIDE_FULL. */
tide_status alert_message(const struct tide_notice *notice, const char *from, const char *to,
                          tide_buf *out);

#endif
