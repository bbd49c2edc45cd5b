/* multipart.h - the body of uploadType=multipart: JSON, then the message.
 *
 * Not a MIME parser: exactly two parts, and the bytes of the second are given
 * back as they stand between the boundaries (BGML1).  Lines may end in LF, which
 * is what one of Google's own clients sends.
 */
#ifndef BOX_GMAIL_MULTIPART_H
#define BOX_GMAIL_MULTIPART_H

#include "cloudbox/gate/http.h"

struct box_related {
    tide_text json;
    tide_text media_type;
    tide_text media; /* in the body, or in `decoded` when it came as base64 */
};

/* NULL, or what is wrong with the body. */
const char *box_related_parse(tide_text content_type, tide_text body, tide_buf *decoded,
                              struct box_related *parts_out);

#endif
