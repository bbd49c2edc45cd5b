#include "net/oauth/google.h"

#include "net/judge_google.h"

#include <string.h>

#define SCOPE_MAIL       "https://mail.google.com/"
#define SCOPE_MODIFY     "https://www.googleapis.com/auth/gmail.modify"
#define SCOPE_READ       "https://www.googleapis.com/auth/gmail.readonly"
#define SCOPE_SEND       "https://www.googleapis.com/auth/gmail.send"
#define SCOPE_SITES      "https://www.googleapis.com/auth/webmasters"
#define SCOPE_SITES_READ "https://www.googleapis.com/auth/webmasters.readonly"

/* Of the scopes that we request. */
static bool scope_covers(tide_text given, tide_text asked)
{
    static const char *const covers[][2] = {
        {SCOPE_MAIL, SCOPE_MODIFY}, {SCOPE_MAIL, SCOPE_READ},   {SCOPE_MAIL, SCOPE_SEND},
        {SCOPE_MODIFY, SCOPE_READ}, {SCOPE_MODIFY, SCOPE_SEND}, {SCOPE_SITES, SCOPE_SITES_READ},
    };
    for (size_t i = 0; i < sizeof covers / sizeof covers[0]; i++)
        if (tide_text_equal(given, tide_text_of(covers[i][0])) &&
            tide_text_equal(asked, tide_text_of(covers[i][1])))
            return true;
    return false;
}

/* Google's console writes {"installed":{...}} for a desktop client, else {"web":{...}}, to which it
 * sends no user back on a port that the client did not register. */
static tide_status client_object(const json_t *file, const json_t **object_out, tide_error *err)
{
    const char *type = json_string_value(json_object_get(file, "type"));
    if (type != NULL && strcmp(type, "service_account") == 0)
        return tide_error_set(err, TIDE_INVALID,
                              "this is the key of a service account, not a client file");
    const json_t *object = json_object_get(file, "installed");
    if (object == NULL && json_object_get(file, "web") != NULL)
        return tide_error_set(err, TIDE_INVALID,
                              "this client has the type \"Web application\"; Tidemark needs one "
                              "of the type \"Desktop app\"");
    *object_out = object == NULL ? file : object;
    return TIDE_OK;
}

static const struct tide_oauth_error errors[] = {
    {"internal_failure", TIDE_SERVER},
    {"backend_error", TIDE_SERVER},
    {"rate_limit_exceeded", TIDE_SERVER},
    {NULL, TIDE_OK},
};

/* docs/google-client.md has them with more words. */
static const struct tide_oauth_step setup[] = {
    {"Create a project; any name will do.", "/projectcreate", NULL},
    {"Enable the Gmail API for it.", "/apis/library/gmail.googleapis.com", "mail"},
    {"Enable the Search Console API for it.", "/apis/library/searchconsole.googleapis.com",
     "webmasters"},
    {"Press \"Get started\": any app name, your address, audience \"External\".", "/auth/overview",
     NULL},
    {"Under \"Test users\" add the address that you will sign in with.", "/auth/audience", NULL},
    {"Create a client of the type \"Desktop app\", and download its JSON file.",
     "/auth/clients/create", NULL},
    {NULL, NULL, NULL},
};

const struct tide_oauth_provider tide_oauth_google = {
    .name = "google",
    .title = "Google",
    .auth_url = "https://accounts.google.com/o/oauth2/v2/auth",
    .token_url = "https://oauth2.googleapis.com/token",
    .device_url = NULL, /* Google gives device codes for other scopes than ours only */
    .revoke_url = "https://oauth2.googleapis.com/revoke",
    .revoke_page = "https://myaccount.google.com/permissions",
    .auth_params = "access_type=offline"
                   "&prompt=consent", /* else a second sign-in gets no refresh token */
    .client_help = "Create an OAuth client of the type \"Desktop app\" in Google's console, "
                   "download its JSON file, and name it with --client FILE. --guide leads there "
                   "step by step.",
    .setup_url = "https://console.cloud.google.com",
    .setup = setup,
    .client_id_end = ".apps.googleusercontent.com",
    .service_accounts = true,
    .client_secret = true,
    .errors = errors,
    .judge = tide_google_judge,
    .scope_covers = scope_covers,
    .client_object = client_object,
};
