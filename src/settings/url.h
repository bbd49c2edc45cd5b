/* url.h - passwords in the URL of a database.
 *
 * A URL that is shown must not show its password, and one that stands on a command line
 * must not have any.  It reads a URL as libpq does: what stands before the first '@' is
 * user and password, unless a '/' comes first; password and sslpassword may also stand
 * in the query.  It neither connects nor tells whether the URL is good.
 */
#ifndef TIDE_ENGINE_SETTINGS_URL_H
#define TIDE_ENGINE_SETTINGS_URL_H

#include "base/text.h"

bool tide_url_has_password(tide_text url);
/* The URL with *** for each password.  It is cut when there is no room. */
void tide_url_masked(tide_text url, char *out, size_t out_bytes);

#endif
