/* scopes.h - Microsoft's scopes as bits, beside Google's (google/scopes.h), and their texts. */
#ifndef BOX_MICROSOFT_SCOPES_H
#define BOX_MICROSOFT_SCOPES_H

#include "base/buf.h"
#include "base/text.h"

enum {
    BOX_SCOPE_FILES_READ = 1 << 16,
    BOX_SCOPE_FILES_READ_ALL = 1 << 17,
    BOX_SCOPE_FILES_WRITE = 1 << 18,
    BOX_SCOPE_FILES_WRITE_ALL = 1 << 19,
    BOX_SCOPE_SITES_READ_ALL = 1 << 20,
    BOX_SCOPE_USER_READ = 1 << 21,
    BOX_SCOPE_OFFLINE = 1 << 22, /* a refresh token */
    BOX_SCOPE_MICROSOFT_ALL = (1 << 23) - (1 << 16),
    BOX_SCOPES_FILES_WRITE = BOX_SCOPE_FILES_WRITE | BOX_SCOPE_FILES_WRITE_ALL,
    BOX_SCOPES_FILES_READ =
        BOX_SCOPES_FILES_WRITE | BOX_SCOPE_FILES_READ | BOX_SCOPE_FILES_READ_ALL,
};

/* "Files.ReadWrite offline_access" <-> bits, in any case and with or without Graph's address in
 * front.  Unknown scopes are left out. */
uint32_t box_microsoft_scopes_parse(tide_text text);
void box_microsoft_scopes_text(uint32_t scopes, tide_buf *out);

#endif
