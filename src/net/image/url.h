/* url.h - resolves the URLs of redirects. */
#ifndef TIDE_NET_IMAGE_URL_H
#define TIDE_NET_IMAGE_URL_H

#include "base/buf.h"

/* Replaces the URL in `url_io` ("" at first) by `reference`, relative to it.  User names, passwords
 * and fragments are dropped: no server gets what a stranger wrote there.
 *   TIDE_INVALID  the result is not an http or https URL with a host, or too long; `url_io` stays */
tide_status tide_url_resolve(tide_buf *url_io, tide_text reference);

#endif
