/* key.h - providers whose users enter a key that they got there, instead of signing in. */
#ifndef TIDE_NET_OAUTH_KEY_H
#define TIDE_NET_OAUTH_KEY_H

#include "net/oauth/oauth.h"

/* There is no page to sign in at, nothing to refresh and nothing to revoke; a grant is made by
 * tide_oauth_key(). */
extern const struct tide_oauth_provider tide_oauth_keys;

#endif
