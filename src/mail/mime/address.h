/* address.h - address headers as people write them: "Ann Lee <ann@example.org>".
 *
 * Reads what RFC 5322 allows and what is sent anyway: names with commas in and
 * out of quotes, addresses without brackets, comments as names, semicolons for
 * commas, encoded words in quotes, groups.  Nothing is validated: what has no
 * address in it is shown as text.  Nothing recurses.
 *
 * Invariants: linear in the value; what is appended is clean (charset.h C1). */
#ifndef TIDE_MAIL_ADDRESS_H
#define TIDE_MAIL_ADDRESS_H

#include "mail/mime/charset.h"

/* Appends the addresses of one header, ", " between them and what `out` holds.
 * *deep_out becomes true when groups or comments nest deeper than
 * TIDE_MESSAGE_ADDRESS_DEEP; what follows from there is left out. */
tide_status tide_address_add(tide_decoder *decoder, tide_text value, tide_buf *out, bool *deep_out);

#endif
