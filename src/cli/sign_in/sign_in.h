/* sign_in.h - the dialog with a user who signs in, and the end of a sign-in (M16). */
#ifndef TIDE_CLI_SIGN_IN_SIGN_IN_H
#define TIDE_CLI_SIGN_IN_SIGN_IN_H

#include "cli/cli.h"
#include "net/oauth/oauth.h"

/* Gets a grant as the flags --bearer, --service-account, --client, --guide, --endpoint and --headless say, or of a
 * provider with keys --key-file and --no-key; without these a key is read from the terminal.
 * It is not stored.  A client that was given or made and worked is stored in `secrets`, for the next
 * sign-in (client.h); one for an emulator (--endpoint) is not. */
tide_status cli_sign_in(struct cli *cli, const struct tide_oauth_provider *provider,
                        tide_secrets *secrets, const char *account,
                        const struct tide_purpose *purpose, tide_buf *grant_out);

/* Revokes the grant and removes it.  A server that cannot be reached, or cannot revoke, must not
 * keep the user from removing an account: the sign-in is removed here, and a warning says that it
 * is still valid, and where to revoke it. */
tide_status cli_sign_out(struct cli *cli, tide_secrets *secrets,
                         const struct tide_tokens_options *options, const char *endpoint,
                         bool *revoked_out);

#endif
