#include "cloudbox/microsoft/scopes.h"

#include "cloudbox/gate/http.h"
#include "cloudbox/google/scopes.h"

static const struct box_scope_text scopes_known[] = {
    {BOX_SCOPE_FILES_READ, "Files.Read", NULL},
    {BOX_SCOPE_FILES_READ_ALL, "Files.Read.All", NULL},
    {BOX_SCOPE_FILES_WRITE, "Files.ReadWrite", NULL},
    {BOX_SCOPE_FILES_WRITE_ALL, "Files.ReadWrite.All", NULL},
    {BOX_SCOPE_SITES_READ_ALL, "Sites.Read.All", NULL},
    {BOX_SCOPE_USER_READ, "User.Read", NULL},
    {BOX_SCOPE_OFFLINE, "offline_access", NULL},
    {BOX_SCOPE_OPENID, "openid", NULL},
    {BOX_SCOPE_PROFILE, "profile", NULL},
    {BOX_SCOPE_EMAIL, "email", NULL},
};

enum { SCOPES_COUNT = sizeof scopes_known / sizeof scopes_known[0] };

static uint32_t scope_of(tide_text word)
{
    static const char graph[] = "https://graph.microsoft.com/";
    if (box_starts(word, graph))
        word = (tide_text){word.data + sizeof graph - 1, word.bytes - (sizeof graph - 1)};
    for (size_t i = 0; i < SCOPES_COUNT; i++)
        if (box_is(word, scopes_known[i].text))
            return scopes_known[i].scope;
    return 0;
}

uint32_t box_microsoft_scopes_parse(tide_text text)
{
    uint32_t scopes = 0;
    while (text.bytes > 0)
        scopes |= scope_of(tide_text_word(&text));
    return scopes;
}

void box_microsoft_scopes_text(uint32_t scopes, tide_buf *out)
{
    box_scopes_list(scopes_known, SCOPES_COUNT, scopes, out);
}
