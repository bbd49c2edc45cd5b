/* microsoft.h - Microsoft's sign-in: authorization codes with PKCE, device codes, refresh tokens that
 * change with every use; at the addresses of login.microsoftonline.com.
 *
 * Consent is given on the same pages as Google's.  A device code is good for 15 minutes; whoever polls
 * more often than every 5 seconds is told to slow down. */
#ifndef BOX_SIGNIN_MICROSOFT_H
#define BOX_SIGNIN_MICROSOFT_H

#include "cloudbox/signin/auth.h"

extern const struct box_service box_microsoft;

#define BOX_NATIVE_URI           "https://login.microsoftonline.com/common/oauth2/nativeclient"
#define BOX_NATIVE_URI_CONSUMERS "https://login.microsoftonline.com/consumers/oauth2/nativeclient"

/* The person at the page with that code agreed to `scopes`; user NULL: or did not. */
void box_device_answer(struct box_call *call, const char *user_code, struct box_user *user,
                       uint32_t scopes);

#endif
