/* type.h - which images a browser may be given.
 *
 * Those with pixels only, by their first bytes and not by what a sender or a server says about them:
 * an SVG is a document, and HTML may be called "image/png". */
#ifndef TIDE_NET_IMAGE_TYPE_H
#define TIDE_NET_IMAGE_TYPE_H

#include "base/text.h"

/* "image/png", "image/jpeg", "image/gif" or "image/webp"; NULL: none of these. */
const char *tide_image_type(tide_text bytes);

#endif
