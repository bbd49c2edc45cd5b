/* transfer.h - decodes base64 and quoted-printable.
 *
 * Nothing is an error: invalid characters are skipped (base64) or copied (quoted-printable).
 * Linear in the bytes; when `out` is full, the part that fits is in it and the status is
 * TIDE_FULL. */
#ifndef TIDE_MAIL_TRANSFER_H
#define TIDE_MAIL_TRANSFER_H

#include "mail/mime/message.h"

tide_status tide_transfer_add(tide_text encoded, tide_encoding encoding, tide_buf *out);
/* The Q encoding of encoded words (RFC 2047): an underscore is a space. */
tide_status tide_transfer_add_q(tide_text encoded, tide_buf *out);

#endif
