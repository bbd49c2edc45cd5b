/* gmail_whose.h - finds whose mailbox a token opens, without an engine (M19a).
 *
 * Used while an account is being added: there is no account yet, hence no governor.  One call,
 * one unit. */
#ifndef TIDE_CLOUD_GMAIL_WHOSE_H
#define TIDE_CLOUD_GMAIL_WHOSE_H

#include "cloud/gmail.h"

/* `endpoint` NULL: Google's.  TIDE_GONE: this server has no users.getProfile.  Else as
 * tide_gmail_profile(). */
tide_status tide_gmail_whose(tide_world *world, const char *endpoint, tide_text bearer,
                             tide_mem *mem, const tide_cancel *cancel,
                             struct tide_gmail_profile *profile_out, tide_error *err);

#endif
