/* gzip.h - answers packed for clients that ask for it.
 *
 * One compressor, used again and again: starting one costs more than packing a
 * message. */
#ifndef BOX_SERVE_GZIP_H
#define BOX_SERVE_GZIP_H

#include "base/buf.h"

enum { BOX_GZIP_FROM_BYTES = 1024 }; /* smaller bodies go as they are */

typedef struct box_gzip box_gzip;

box_gzip *box_gzip_new(void);
void box_gzip_free(box_gzip *gzip); /* NULL is fine */

/* Whether an Accept-Encoding header allows gzip: named (or "*") and not with q=0. */
bool box_gzip_accepted(tide_text header);

/* Appends the packed bytes.  false: they would not be fewer; `out` is as it was. */
bool box_gzip_pack(box_gzip *gzip, tide_text body, tide_buf *out);

#endif
