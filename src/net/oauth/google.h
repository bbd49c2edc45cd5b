/* google.h - signing in to Google. */
#ifndef TIDE_NET_OAUTH_GOOGLE_H
#define TIDE_NET_OAUTH_GOOGLE_H

#include "net/oauth/oauth.h"

extern const struct tide_oauth_provider tide_oauth_google;

#endif
