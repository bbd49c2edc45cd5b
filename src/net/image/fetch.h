/* fetch.h - loads one image that a mail names, after the user agreed to it.
 *
 * The URL is a stranger's.  The request tells its server as little as possible, reaches nothing but
 * the public internet, and what comes back is an image or nothing.
 *
 * Invariants:
 *   IMF1  only http and https; at most TIDE_IMAGE_REDIRECTS_MAX redirects, each under the same rules.
 *   IMF2  no connection to an address that is not public (address.h): asked for each socket,
 *         so that no host name, redirect or change of a name's address gets around it.  No proxy and
 *         no kept connection is used.
 *   IMF3  no cookie, no referrer, no user name or password, no name of this program.
 *   IMF4  at most TIDE_IMAGE_MS for all requests together, at most TIDE_IMAGE_BYTES_MAX decoded.
 *   IMF5  the result is a PNG, JPEG, GIF or WebP image by its first bytes (type.h).
 */
#ifndef TIDE_NET_IMAGE_FETCH_H
#define TIDE_NET_IMAGE_FETCH_H

#include "world/world.h"

enum {
    TIDE_IMAGE_REDIRECTS_MAX = 3,
    TIDE_IMAGE_MS = 10000,
    TIDE_IMAGE_BYTES_MAX = 8 << 20,
};

struct tide_image_limits {
    tide_may_connect *may_connect; /* NULL: tide_address_is_public() */
    uint32_t total_ms;             /* 0: TIDE_IMAGE_MS */
};

/* Appends the image; *type_out is "image/png" or the like.  `limits` may be NULL.
 *   TIDE_INVALID    not an http(s) URL, an address that is not public, or not an image
 *   TIDE_PERMANENT  the server has no image for us: too many redirects, or another code than 200
 *   TIDE_FULL       larger than TIDE_IMAGE_BYTES_MAX
 *   TIDE_TIMEOUT, TIDE_NETWORK, TIDE_SERVER, TIDE_CANCELED and so on, as tide_world_call()
 * On failure `out` is as it was. */
tide_status tide_image_fetch(tide_world *world, tide_text url,
                             const struct tide_image_limits *limits, const tide_cancel *cancel,
                             tide_buf *out, const char **type_out, tide_error *err);

#endif
