/* header.h - writes headers and bodies of messages: the pieces that compose.h puts together.
 *
 * What is given in may come from a stranger or a model: every function writes its value so that it
 * is read back as that value, and nothing in it can end a line, begin a header or be decoded twice.
 *
 * Invariants:
 *   WRT1  what is appended is ASCII; lines end in CR LF and have at most 998 bytes without it,
 *         bodies 76.
 *   WRT2  the value is on one line once it is unfolded: control characters became spaces.
 *   WRT3  time is linear in the value.
 */
#ifndef TIDE_MAIL_COMPOSE_HEADER_H
#define TIDE_MAIL_COMPOSE_HEADER_H

#include "base/buf.h"
#include "mail/compose/mailbox.h"

enum { TIDE_COMPOSE_NAME_BYTES_MAX = 120 }; /* of a person; a longer one is left out */

/* Printable ASCII without white space and brackets, of at most TIDE_COMPOSE_ID_BYTES_MAX: a
 * Message-ID without its <>. */
enum { TIDE_COMPOSE_ID_BYTES_MAX = 250 };
bool tide_compose_is_id(tide_text id);
/* Whether a value that we are to write as it is has control characters, line ends included. */
bool tide_compose_has_control(tide_text text);

/* "To: Ann <ann@example.org>,\r\n Bob <bob@example.org>\r\n"; nothing without mailboxes. */
tide_status tide_compose_mailboxes(const char *header, const struct tide_mailbox *mailboxes,
                                   size_t count, tide_buf *out);
/* "Subject: text\r\n", folded; encoded words where they are needed. */
tide_status tide_compose_text_header(const char *header, tide_text text, tide_buf *out);
/* ";\r\n filename=..." of Content-Disposition, with the continuations of RFC 2231 where needed. */
tide_status tide_compose_param(const char *name, tide_text value, tide_buf *out);
/* "Date: Tue, 17 Nov 2026 20:30:00 +0100\r\n" */
tide_status tide_compose_date(int64_t unix_ms, int32_t zone_minutes, tide_buf *out);

/* The three ways to write a body; `text` has lines that end in \n, and is clean for the first
 * two. */
tide_status tide_compose_7bit(tide_text text, tide_buf *out);
tide_status tide_compose_quoted(tide_text text, tide_buf *out);
/* Any bytes, as they are. */
tide_status tide_compose_base64(tide_text bytes, tide_buf *out);

#endif
