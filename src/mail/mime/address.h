/* address.h - parses address headers such as "Ann Lee <ann@example.org>".
 *
 * Reads what RFC 5322 allows and what is sent in practice: names with commas in and
 * out of quotes, addresses without brackets, comments as names, semicolons for
 * commas, encoded words in quotes, groups.  Nothing is validated: a value without an address is
 * shown as text.  Nothing recurses.
 *
 * Invariants: linear in the value; appended text is clean (charset.h CHR1). */
#ifndef TIDE_MAIL_ADDRESS_H
#define TIDE_MAIL_ADDRESS_H

#include "mail/mime/charset.h"

/* Appends the addresses of one header, separated by ", " from each other and from the content of
 * `out`.  Sets *deep_out when groups or comments nest deeper than TIDE_MESSAGE_ADDRESS_DEEP; the
 * rest from there on is left out. */
tide_status tide_address_add(tide_decoder *decoder, tide_text value, tide_buf *out, bool *deep_out);

#endif
