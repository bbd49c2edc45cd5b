/* microsoft.h - signing in to Microsoft: the identity platform's version 2, for work and personal
 * accounts.
 *
 * Its clients are public: the code is proved by PKCE, the device code by the user.  Every refresh
 * replaces the refresh token (OAU1); the old one stays valid for a while.  There is no endpoint
 * that revokes one application's tokens. */
#ifndef TIDE_NET_OAUTH_MICROSOFT_H
#define TIDE_NET_OAUTH_MICROSOFT_H

#include "net/oauth/oauth.h"

extern const struct tide_oauth_provider tide_oauth_microsoft;

/* Of what the drive needs; the second also for items that others share. */
#define TIDE_MICROSOFT_FILES     "Files.ReadWrite"
#define TIDE_MICROSOFT_FILES_ALL "Files.ReadWrite.All"

#endif
