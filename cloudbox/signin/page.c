/* page.c - the few pages a person sees.  No script, no image, nothing
 * from elsewhere; usable with a keyboard and a screen reader. */
#include "cloudbox/signin/signin.h"

#include "base/check.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/microsoft/scopes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { USERS_AS_RADIOS_MAX = 8, USERS_SHOWN_MAX = 2000 };

static const char style[] =
    "body{font:16px/1.5 system-ui,sans-serif;margin:0;background:#f3f5f8;color:#1d2733}"
    "main{max-width:32rem;margin:8vh auto;background:#fff;padding:2rem 2.25rem;"
    "border:1px solid #d5dce4;border-radius:.75rem}"
    "h1{font-size:1.4rem;margin:0 0 1rem}fieldset{border:1px solid #d5dce4;"
    "border-radius:.5rem;margin:0 0 1.25rem;padding:.75rem 1rem}legend{padding:0 .4rem;"
    "font-weight:600}label{display:block;padding:.3rem 0}code{overflow-wrap:anywhere;"
    "font-size:.9em}small{display:block;color:#526070;overflow-wrap:anywhere}"
    "select{font:inherit;width:100%;padding:.4rem}"
    "button{font:inherit;padding:.55rem 1.4rem;border-radius:.5rem;border:1px solid #1a5fb4;"
    "background:#1a5fb4;color:#fff;margin-right:.75rem}button.quiet{background:#fff;"
    "color:#1a5fb4}button:focus-visible,input:focus-visible,select:focus-visible{"
    "outline:3px solid #e5a50a;outline-offset:2px}"
    "@media(prefers-color-scheme:dark){body{background:#12181f;color:#e4eaf0}"
    "main{background:#1b232c;border-color:#37424f}fieldset{border-color:#37424f}"
    "small{color:#a3b1bf}button.quiet{background:#1b232c;color:#8ab8f0}}";

/* BSGN1: all that has a meaning in HTML, in text and in quoted attributes; control
 * characters and bytes outside ASCII that we did not ask for become '?'. */
static void add_escaped(tide_buf *out, tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        if (c == '&')
            box_add_cstr(out, "&amp;");
        else if (c == '<')
            box_add_cstr(out, "&lt;");
        else if (c == '>')
            box_add_cstr(out, "&gt;");
        else if (c == '"')
            box_add_cstr(out, "&quot;");
        else if (c == '\'')
            box_add_cstr(out, "&#39;");
        else if (c < ' ' || c > '~')
            box_add_cstr(out, "?");
        else
            box_add(out, &c, 1);
    }
}

void box_answer_secret(struct box_answer *answer)
{
    box_answer_header(answer, "Cache-Control", "no-cache, no-store, max-age=0, must-revalidate");
    box_answer_header(answer, "Pragma", "no-cache");
    box_answer_header(answer, "X-Content-Type-Options", "nosniff");
}

static tide_buf *page_open(struct box_call *call, int status, const char *title)
{
    struct box_answer *answer = call->answer;
    box_answer_clear(answer);
    answer->status = status;
    (void)snprintf(answer->type, sizeof answer->type, "text/html; charset=utf-8");
    box_answer_secret(answer);
    box_answer_header(answer, "X-Frame-Options", "DENY");
    box_answer_header(answer, "Referrer-Policy", "no-referrer");
    /* No form-action: browsers would also apply it to the redirect that follows. */
    box_answer_header(answer, "Content-Security-Policy",
                      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "
                      "base-uri 'none'");
    box_print(&answer->body,
              "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
              "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
              "<title>%s</title><style>%s</style></head>\n<body><main>\n",
              title, style);
    return &answer->body;
}

static void page_close(tide_buf *out)
{
    box_add_cstr(out, "</main></body></html>\n");
}

void box_page_error(struct box_call *call, int status, const char *error, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tide_buf *out = page_open(call, status, "Sign-in is not possible");
    box_add_cstr(out, "<h1>Access blocked: this request is not valid</h1>\n<p>");
    add_escaped(out, tide_text_of(text));
    box_print(out, "</p>\n<p><code>Error %d: ", status);
    add_escaped(out, tide_text_of(error));
    box_add_cstr(out, "</code></p>\n");
    page_close(out);
}

/* ---- consent ---- */

static const char *scope_in_words(uint32_t scope)
{
    switch (scope) {
    case BOX_SCOPE_MAIL:
        return "Read, write, send and permanently delete all your mail";
    case BOX_SCOPE_MODIFY:
        return "Read, write and send mail";
    case BOX_SCOPE_READONLY:
        return "See your mail and settings";
    case BOX_SCOPE_METADATA:
        return "See labels and headers of your mail, but not its text";
    case BOX_SCOPE_COMPOSE:
        return "Manage drafts and send mail";
    case BOX_SCOPE_SEND:
        return "Send mail on your behalf";
    case BOX_SCOPE_INSERT:
        return "Add mail to your mailbox";
    case BOX_SCOPE_LABELS:
        return "See and edit your labels";
    case BOX_SCOPE_CONSOLE:
        return "See and manage Search Console data";
    case BOX_SCOPE_CONSOLE_READONLY:
        return "See Search Console data";
    case BOX_SCOPE_FILES_READ:
    case BOX_SCOPE_FILES_READ_ALL:
        return "See your files";
    case BOX_SCOPE_FILES_WRITE:
    case BOX_SCOPE_FILES_WRITE_ALL:
        return "See, change and delete your files";
    case BOX_SCOPE_SITES_READ_ALL:
        return "See items in all site collections";
    case BOX_SCOPE_USER_READ:
        return "Sign you in and read your profile";
    case BOX_SCOPE_OFFLINE:
        return "Keep access to what you let it use";
    case BOX_SCOPE_OPENID:
        return "Know who you are";
    case BOX_SCOPE_EMAIL:
        return "See your e-mail address";
    default:
        return "See your name";
    }
}

static void add_user(tide_buf *out, const struct box_user *user, bool radio, bool chosen)
{
    const tide_text email = tide_text_of(user->email);
    box_add_cstr(out, radio ? "<label><input type=\"radio\" name=\"user\" required value=\""
                            : "<option value=\"");
    add_escaped(out, email);
    box_add_cstr(out,
                 chosen ? (radio ? "\" checked> " : "\" selected>") : (radio ? "\"> " : "\">"));
    add_escaped(out, email);
    box_add_cstr(out, radio ? "</label>\n" : "</option>\n");
}

static void add_users(tide_buf *out, box_cloud *cloud, tide_text hint)
{
    const bool radio = box_cloud_user_at(cloud, USERS_AS_RADIOS_MAX) == NULL;
    const struct box_user *hinted = hint.bytes == 0 ? NULL : box_cloud_user(cloud, hint);
    box_add_cstr(out, "<fieldset><legend>Account</legend>\n");
    if (!radio)
        box_add_cstr(out, "<select name=\"user\" aria-label=\"Account\">\n");
    if (!radio && hinted != NULL && hinted->number > USERS_SHOWN_MAX)
        add_user(out, hinted, radio, true);
    for (size_t i = 0; i < USERS_SHOWN_MAX; i++) {
        const struct box_user *user = box_cloud_user_at(cloud, i);
        if (user == NULL)
            break;
        const bool chosen = hinted == NULL ? i == 0 : box_is(hint, user->email);
        add_user(out, user, radio, chosen);
    }
    if (!radio)
        box_add_cstr(out, "</select>\n");
    box_add_cstr(out, "</fieldset>\n");
}

static void add_scopes(tide_buf *out, uint32_t scopes, uint32_t ticked)
{
    box_add_cstr(out, "<fieldset><legend>It asks for</legend>\n");
    for (uint32_t scope = 1; scope < BOX_SCOPE_MICROSOFT_ALL; scope <<= 1) {
        if ((scopes & scope) == 0)
            continue;
        tide_auto_buf text = tide_buf_heap(256);
        box_signin_scopes_text(scope, &text);
        box_print(out,
                  "<label><input type=\"checkbox\" name=\"scope\" value=\"%s\"%s> %s"
                  "<small>%s</small></label>\n",
                  tide_buf_cstr(&text), (ticked & scope) != 0 ? " checked" : "",
                  scope_in_words(scope), tide_buf_cstr(&text));
    }
    box_add_cstr(out, "</fieldset>\n");
}

void box_page_consent(struct box_call *call, const struct box_ask *ask, tide_text ticket,
                      tide_text hint, uint32_t ticked)
{
    const char *client = box_auth_client_id(box_cloud_auth(call->cloud), ask->client);
    tide_buf *out = page_open(call, 200, "Sign in");
    box_add_cstr(out, "<h1>Let a program use your account?</h1>\n<p><code>");
    add_escaped(out, tide_text_of(client));
    box_add_cstr(out, "</code> wants access. This is an emulated cloud: nothing here "
                      "touches a real account.</p>\n"
                      "<form method=\"post\" action=\"/o/oauth2/v2/auth\">\n"
                      "<input type=\"hidden\" name=\"ticket\" value=\"");
    add_escaped(out, ticket);
    box_add_cstr(out, "\">\n");
    add_users(out, call->cloud, hint);
    add_scopes(out, ask->scopes, ticked);
    box_add_cstr(out, "<button name=\"answer\" value=\"allow\">Allow</button>"
                      "<button class=\"quiet\" name=\"answer\" value=\"cancel\" formnovalidate>"
                      "Cancel</button>\n</form>\n");
    if (ask->redirect_uri[0] != '\0') {
        box_add_cstr(out, "<p><small>Afterwards you return to ");
        add_escaped(out, tide_text_of(ask->redirect_uri));
        box_add_cstr(out, "</small></p>\n");
    }
    page_close(out);
}

void box_page_say(struct box_call *call, const char *title, const char *text)
{
    tide_buf *out = page_open(call, 200, title);
    box_print(out, "<h1>%s</h1>\n<p>", title);
    add_escaped(out, tide_text_of(text));
    box_add_cstr(out, "</p>\n");
    page_close(out);
}

void box_page_device(struct box_call *call)
{
    tide_buf *out = page_open(call, 200, "Enter code");
    box_add_cstr(out, "<h1>Enter code</h1>\n<form method=\"post\" action=\"/devicelogin\">\n"
                      "<fieldset><legend>Code</legend><label>The code that your app or device "
                      "shows <input name=\"user_code\" required autofocus></label></fieldset>\n"
                      "<button>Next</button>\n</form>\n");
    page_close(out);
}

void box_page_client(struct box_call *call)
{
    tide_buf *out = page_open(call, 200, "Create OAuth client");
    box_add_cstr(out, "<h1>Create OAuth client</h1>\n<form method=\"post\">\n"
                      "<fieldset><legend>Application type</legend>\n"
                      "<label><input type=\"radio\" name=\"type\" value=\"desktop\" required>"
                      " Desktop app</label>\n"
                      "<label><input type=\"radio\" name=\"type\" value=\"web\"> Web application"
                      "</label></fieldset>\n"
                      "<button>Create and download JSON</button>\n</form>\n"
                      "<p><small>From then on this cloud lets in only clients that were created."
                      "</small></p>\n");
    page_close(out);
}
