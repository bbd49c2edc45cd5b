/* scopes.h - Google's scopes as bits, and their texts. */
#ifndef BOX_GOOGLE_SCOPES_H
#define BOX_GOOGLE_SCOPES_H

#include "base/buf.h"
#include "base/text.h"

enum {
    BOX_SCOPE_MAIL = 1 << 0, /* https://mail.google.com/: everything, also permanent deletion */
    BOX_SCOPE_MODIFY = 1 << 1,
    BOX_SCOPE_READONLY = 1 << 2,
    BOX_SCOPE_METADATA = 1 << 3, /* no q, no body */
    BOX_SCOPE_COMPOSE = 1 << 4,
    BOX_SCOPE_SEND = 1 << 5,
    BOX_SCOPE_INSERT = 1 << 6,
    BOX_SCOPE_LABELS = 1 << 7,
    BOX_SCOPE_CONSOLE = 1 << 8,
    BOX_SCOPE_CONSOLE_READONLY = 1 << 9,
    BOX_SCOPE_OPENID = 1 << 10,
    BOX_SCOPE_EMAIL = 1 << 11,
    BOX_SCOPE_PROFILE = 1 << 12,
    BOX_SCOPE_ALL = (1 << 13) - 1,
};

struct box_scope_text {
    uint32_t scope;
    const char *text;
    const char *alias; /* as OpenID writes it, or NULL */
};
/* The texts of these bits, with a space between them. */
void box_scopes_list(const struct box_scope_text *known, size_t count, uint32_t scopes,
                     tide_buf *out);

/* "https://www.googleapis.com/auth/gmail.readonly openid" <-> bits.  Unknown
 * scopes are left out. */
uint32_t box_scopes_parse(tide_text text);
void box_scopes_text(uint32_t scopes, tide_buf *out);

#endif
