#include "net/oauth/microsoft.h"

#include <string.h>
#include <strings.h>

#define AUTHORITY "https://login.microsoftonline.com/common/oauth2/v2.0/"

/* Answers name a scope alone or with the API's address, in any case. */
static tide_text scope_name(tide_text scope)
{
    static const char api[] = "https://graph.microsoft.com/";
    const size_t bytes = sizeof api - 1;
    if (scope.bytes > bytes && strncasecmp(scope.data, api, bytes) == 0)
        return (tide_text){scope.data + bytes, scope.bytes - bytes};
    return scope;
}

static bool is(tide_text scope, const char *name)
{
    return scope.bytes == strlen(name) && strncasecmp(scope.data, name, scope.bytes) == 0;
}

static bool scope_covers(tide_text given, tide_text asked)
{
    static const char *const covers[][2] = {
        {"Files.ReadWrite.All", "Files.ReadWrite"}, {"Files.ReadWrite.All", "Files.Read.All"},
        {"Files.ReadWrite.All", "Files.Read"},      {"Files.ReadWrite", "Files.Read"},
        {"Files.Read.All", "Files.Read"},
    };
    given = scope_name(given);
    asked = scope_name(asked);
    if (given.bytes == asked.bytes && strncasecmp(given.data, asked.data, given.bytes) == 0)
        return true;
    for (size_t i = 0; i < sizeof covers / sizeof covers[0]; i++)
        if (is(given, covers[i][0]) && is(asked, covers[i][1]))
            return true;
    return false;
}

const struct tide_oauth_provider tide_oauth_microsoft = {
    .name = "microsoft",
    .title = "Microsoft",
    .auth_url = AUTHORITY "authorize",
    .token_url = AUTHORITY "token",
    .device_url = AUTHORITY "devicecode",
    .revoke_url = NULL,
    .revoke_page = "https://account.live.com/consent/Manage",
    /* A browser that is signed in to another account must not answer by itself. */
    .auth_params = "prompt=select_account",
    .more_scopes =
        "offline_access", /* without it there is no refresh token; answers leave it out */
    .client_help =
        "Register an application in Microsoft's Entra admin center (\"Mobile and desktop "
        "applications\", redirect URI http://localhost, \"Allow public client flows\": yes), write "
        "{\"client_id\": \"ITS ID\"} into a file, and name it with --client FILE.  An application "
        "for one organization also needs \"tenant\" there.",
    .redirect_host = "localhost", /* the only one for which it ignores the port */
    .tenant = "common",
    .client_secret = false,
    .refresh_scopes = true,
    .scope_covers = scope_covers,
};
