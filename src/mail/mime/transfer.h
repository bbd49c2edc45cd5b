/* transfer.h - out of base64 and quoted-printable.
 *
 * Nothing is an error: what does not belong is skipped (base64) or taken as it
 * stands (quoted-printable).  Linear in the bytes; when `out` is full, what fits
 * is there and the status is TIDE_FULL. */
#ifndef TIDE_MAIL_TRANSFER_H
#define TIDE_MAIL_TRANSFER_H

#include "mail/mime/message.h"

tide_status tide_transfer_add(tide_text encoded, tide_encoding encoding, tide_buf *out);
/* The Q of encoded words (RFC 2047): an underscore is a space. */
tide_status tide_transfer_add_q(tide_text encoded, tide_buf *out);

#endif
