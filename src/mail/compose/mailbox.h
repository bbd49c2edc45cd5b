/* mailbox.h - addresses of a header that was decoded for display (mail/mime/address.h).
 *
 * Strict where the reader for display is lenient: what is given out as an address can stand in a
 * header that we write, so it is plain ASCII without quotes, comments or white space.  Others are
 * left out.
 *
 * Invariants:
 *   MLB1  an address is local@domain of letters, digits and the signs of RFC 5322's atoms, with
 *         dots inside only; at most TIDE_MAILBOX_BYTES_MAX.
 *   MLB2  time is linear in the text.
 */
#ifndef TIDE_MAIL_COMPOSE_MAILBOX_H
#define TIDE_MAIL_COMPOSE_MAILBOX_H

#include "base/text.h"

enum {
    TIDE_MAILBOX_BYTES_MAX = 254,
    TIDE_MAILBOXES_MAX = 100, /* of one header */
};

struct tide_mailbox {
    tide_text name;    /* as displayed, perhaps in quotes; "" */
    tide_text address; /* MLB1 */
};

bool tide_mailbox_is_address(tide_text text);
/* Both "" unless it is an address. */
tide_text tide_mailbox_local(tide_text address);
tide_text tide_mailbox_domain(tide_text address);
bool tide_mailbox_equal(tide_text a, tide_text b); /* without regard to case */

/* The mailboxes of a header's decoded value; returns how many.  Borrowed from `header`. */
size_t tide_mailboxes_read(tide_text header, struct tide_mailbox *mailboxes_out, size_t count_max);
/* What a person typed: false when an entry is no mailbox, or when there are not fewer than
 * `count_max`; *wrong_out is that entry.  Empty entries, as after a last comma, are fine. */
bool tide_mailboxes_typed(tide_text text, struct tide_mailbox *mailboxes_out, size_t count_max,
                          size_t *count_out, tide_text *wrong_out);
/* The first one; its address is "" when there is none. */
struct tide_mailbox tide_mailbox_first(tide_text header);

/* The next address in a text of any kind, from *at_io on; false: there is none. */
bool tide_mailbox_find(tide_text text, size_t *at_io, tide_text *address_out);

#endif
