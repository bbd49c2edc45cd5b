#include "cloudbox/google/scopes.h"

#include "cloudbox/gate/http.h"

static const struct box_scope_text scopes_known[] = {
    {BOX_SCOPE_MAIL, "https://mail.google.com/", NULL},
    {BOX_SCOPE_MODIFY, "https://www.googleapis.com/auth/gmail.modify", NULL},
    {BOX_SCOPE_READONLY, "https://www.googleapis.com/auth/gmail.readonly", NULL},
    {BOX_SCOPE_METADATA, "https://www.googleapis.com/auth/gmail.metadata", NULL},
    {BOX_SCOPE_COMPOSE, "https://www.googleapis.com/auth/gmail.compose", NULL},
    {BOX_SCOPE_SEND, "https://www.googleapis.com/auth/gmail.send", NULL},
    {BOX_SCOPE_INSERT, "https://www.googleapis.com/auth/gmail.insert", NULL},
    {BOX_SCOPE_LABELS, "https://www.googleapis.com/auth/gmail.labels", NULL},
    {BOX_SCOPE_CONSOLE, "https://www.googleapis.com/auth/webmasters", NULL},
    {BOX_SCOPE_CONSOLE_READONLY, "https://www.googleapis.com/auth/webmasters.readonly", NULL},
    {BOX_SCOPE_OPENID, "openid", NULL},
    {BOX_SCOPE_EMAIL, "https://www.googleapis.com/auth/userinfo.email", "email"},
    {BOX_SCOPE_PROFILE, "https://www.googleapis.com/auth/userinfo.profile", "profile"},
};

enum { SCOPES_COUNT = sizeof scopes_known / sizeof scopes_known[0] };

static uint32_t scope_of(tide_text word)
{
    for (size_t i = 0; i < SCOPES_COUNT; i++) {
        if (tide_text_equal(word, tide_text_of(scopes_known[i].text)))
            return scopes_known[i].scope;
        if (scopes_known[i].alias != NULL &&
            tide_text_equal(word, tide_text_of(scopes_known[i].alias)))
            return scopes_known[i].scope;
    }
    return 0;
}

uint32_t box_scopes_parse(tide_text text)
{
    uint32_t scopes = 0;
    while (text.bytes > 0)
        scopes |= scope_of(tide_text_word(&text));
    return scopes;
}

void box_scopes_list(const struct box_scope_text *known, size_t count, uint32_t scopes,
                     tide_buf *out)
{
    bool first = true;
    for (size_t i = 0; i < count; i++) {
        if ((scopes & known[i].scope) == 0)
            continue;
        if (!first)
            box_add_cstr(out, " ");
        box_add_cstr(out, known[i].text);
        first = false;
    }
}

void box_scopes_text(uint32_t scopes, tide_buf *out)
{
    box_scopes_list(scopes_known, SCOPES_COUNT, scopes, out);
}
