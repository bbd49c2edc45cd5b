#include "net/oauth/key.h"

const struct tide_oauth_provider tide_oauth_keys = {
    .name = "key",
    .title = "the server",
    .auth_url = "",
    .token_url = "",
    .revoke_page = "the page of the provider that lists its API keys",
    .client_help = "Name the file with the key: --key-file FILE.",
    .keys = true,
};
