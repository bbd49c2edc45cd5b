/* url.h - finds and masks passwords in the URL of a database.
 *
 * A URL that is shown must not show its password, and one on a command line must not have
 * any.  It reads a URL as libpq does: the text before the first '@' is user and password,
 * unless a '/' comes first; password and sslpassword may also be in the query.  It neither
 * connects nor checks whether the URL is valid.
 */
#ifndef TIDE_ENGINE_SETTINGS_URL_H
#define TIDE_ENGINE_SETTINGS_URL_H

#include "base/text.h"

bool tide_url_has_password(tide_text url);
/* The URL with *** for each password; cut at out_bytes. */
void tide_url_masked(tide_text url, char *out, size_t out_bytes);

#endif
