/* setup.c - the pages of Google's console on which a person gets an OAuth client, as far as a
 * program can tell: each has its address, and the last one gives the file. */
#include "cloudbox/signin/signin.h"

#include "base/check.h"
#include "cloudbox/signin/auth_state.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* By path; what is done at Google and needs no doing here. */
static const struct {
    const char *path;
    const char *title;
    const char *text;
} pages[] = {
    {"/projectcreate", "New project", "This cloud is one project. There is nothing to create."},
    {"/apis/library/{api}", "Enable API", "Every API of this cloud is enabled."},
    {"/auth/overview", "Google Auth Platform", "This cloud asks for no name of an app."},
    {"/auth/audience", "Audience", "Every user of this cloud may sign in."},
};

void box_setup_page(struct box_call *call)
{
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        if (strcmp(call->method->path, pages[i].path) == 0)
            box_page_say(call, pages[i].title, pages[i].text);
    }
    TIDE_ASSERT(call->answer->status != 0);
}

/* ---- the client ---- */

/* Ids that begin with the same number are one project. */
#define PROJECT "407408718192"

/* "407408718192-…", with the letters that ids of Google's have. */
static void client_id(struct box_auth *auth, tide_buf *out)
{
    box_secret_text(auth, PROJECT "-", 32, out);
    for (size_t i = 0; i < out->bytes; i++) {
        char *c = (char *)out->data + i;
        *c = *c == '_' || (*c == '-' && i >= sizeof PROJECT) ? 'x' : (char)tolower(*c);
    }
    box_add_cstr(out, ".apps.googleusercontent.com");
}

static json_t *url_at(const struct box_call *call, const char *path)
{
    tide_auto_buf url = tide_buf_heap(4096);
    box_print(&url, "%.*s%s", (int)call->request->origin.bytes,
              call->request->origin.data == NULL ? "" : call->request->origin.data, path);
    return box_json_text(tide_buf_text(&url));
}

static void client_file(struct box_call *call, const char *id, const char *secret, bool desktop)
{
    char name[400];
    json_t *client = json_pack("{s:s, s:s, s:o, s:o, s:o, s:s, s:[s]}", "client_id", id,
                               "project_id", "cloudbox", "auth_uri", url_at(call, "/o/oauth2/auth"),
                               "token_uri", url_at(call, "/token"), "auth_provider_x509_cert_url",
                               url_at(call, "/oauth2/v1/certs"), "client_secret", secret,
                               "redirect_uris", "http://localhost");
    box_answer_clear(call->answer);
    box_answer_json(call->answer, 200, json_pack("{s:o}", desktop ? "installed" : "web", client),
                    false);
    box_answer_secret(call->answer);
    (void)snprintf(name, sizeof name, "attachment; filename=\"client_secret_%.200s.json\"", id);
    box_answer_header(call->answer, "Content-Disposition", name);
}

/* POST: makes a client; from then on only clients that were made are let in. */
void box_setup_client(struct box_call *call)
{
    struct box_auth *auth = box_cloud_auth(call->cloud);
    struct box_param *params =
        tide_arena_take(call->scratch, BOX_PARAMS_MAX * sizeof(struct box_param));
    size_t count = 0;
    TIDE_ASSERT(params != NULL);
    if (!box_params_parse(call->request->body, call->scratch, params, &count)) {
        box_page_error(call, 400, "invalid_request", "The form is malformed.");
        return;
    }
    if (box_signin_foreign(call)) {
        box_page_error(call, 403, "invalid_request", "The form came from another site.");
        return;
    }
    const tide_text type = box_param(params, count, "type");
    const bool desktop = tide_text_equal(type, TIDE_TEXT("desktop"));
    if (!desktop && !tide_text_equal(type, TIDE_TEXT("web"))) {
        box_page_error(call, 400, "invalid_request", "Choose the type of the client.");
        return;
    }
    tide_auto_buf id = tide_buf_heap(256);
    tide_auto_buf secret = tide_buf_heap(256);
    client_id(auth, &id);
    box_secret_text(auth, "GOCSPX-", 28, &secret);
    if (box_auth_add_client(auth, tide_buf_text(&id), tide_buf_text(&secret)) != TIDE_OK) {
        box_page_error(call, 429, "quota_exceeded", "There are too many clients.");
        return;
    }
    client_file(call, tide_buf_cstr(&id), tide_buf_cstr(&secret), desktop);
}
