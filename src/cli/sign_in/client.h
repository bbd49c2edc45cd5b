/* client.h - the OAuth client that a sign-in needs: given, remembered, or made by the user with a
 * guide (M16). */
#ifndef TIDE_CLI_SIGN_IN_CLIENT_H
#define TIDE_CLI_SIGN_IN_CLIENT_H

#include "cli/cli.h"
#include "net/oauth/oauth.h"

enum { CLI_CLIENT_BYTES_MAX = 64 << 10 };

/* The client of --client; with --guide one that the user makes and names; with --endpoint any; else
 * the one that is remembered; else, on a terminal, as with --guide.  `scopes` choose the guide's
 * steps.  `new_out` is what cli_client_remember() takes; empty: nothing. */
tide_status cli_client_get(struct cli *cli, const struct tide_oauth_provider *provider,
                           tide_secrets *secrets, const char *scopes,
                           struct tide_oauth_client *client_out, tide_buf *new_out);

/* After a sign-in that the provider accepted, whatever the user allowed.  A client that cannot be stored is a warning: it is named again with
 * the next sign-in. */
void cli_client_remember(const struct tide_oauth_provider *provider, tide_secrets *secrets,
                         tide_text text);

/* One line of standard input without its end; the rest of a longer one is dropped.  false: there
 * is none. */
bool cli_line_read(char *line, size_t room);

#endif
