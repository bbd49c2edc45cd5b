#include "settings/url.h"

#include "base/check.h"
#include "base/encode.h"

#include <string.h>
#include <strings.h>

/* The next password at or behind `from`: [*start, *end).  An empty one is none. */
struct stretch {
    size_t start, end;
};

static size_t find(tide_text url, size_t from, const char *any)
{
    while (from < url.bytes && strchr(any, url.data[from]) == NULL)
        from++;
    return from;
}

static size_t authority_at(tide_text url)
{
    for (size_t i = 0; i + 3 <= url.bytes; i++)
        if (memcmp(url.data + i, "://", 3) == 0)
            return i + 3;
    return url.bytes;
}

/* "user:PASSWORD@" */
static bool in_authority(tide_text url, struct stretch *found)
{
    const size_t first = authority_at(url);
    const size_t at = find(url, first, "@/");
    const size_t colon = find(url, first, ":@/");
    if (at == url.bytes || url.data[at] != '@' || colon >= at || colon + 1 == at)
        return false;
    /* libpq ends the password at the first '@'; the user may have meant a later one. */
    size_t last = at;
    for (size_t i = at; i < url.bytes && url.data[i] != '/'; i++)
        if (url.data[i] == '@')
            last = i;
    *found = (struct stretch){colon + 1, last};
    return true;
}

/* Decoded, as a name may be written pass%77ord. */
static bool name_is(tide_text url, struct stretch name, const char *wanted)
{
    size_t matched = 0;
    for (size_t i = name.start; i < name.end; i++) {
        unsigned char byte = (unsigned char)url.data[i];
        const tide_text behind = {url.data + i + 1, name.end - i - 1};
        const int escaped = byte == '%' ? tide_hex_byte(behind) : -1;
        if (escaped >= 0) {
            byte = (unsigned char)escaped;
            i += 2;
        }
        if (wanted[matched] == '\0' || byte != (unsigned char)wanted[matched])
            return false;
        matched++;
    }
    return wanted[matched] == '\0';
}

/* "?...&password=PASSWORD&..." from `from` on. */
static bool in_query(tide_text url, size_t from, struct stretch *found)
{
    for (size_t i = from; i < url.bytes;) {
        const size_t end = find(url, i, "&");
        const size_t equals = find(url, i, "=&");
        const struct stretch name = {i, equals};
        if (equals + 1 < end &&
            (name_is(url, name, "password") || name_is(url, name, "sslpassword"))) {
            *found = (struct stretch){equals + 1, end};
            return true;
        }
        i = end + 1;
    }
    return false;
}

static size_t query_at(tide_text url, size_t from)
{
    const size_t question = find(url, from, "?");
    return question == url.bytes ? url.bytes : question + 1;
}

bool tide_url_has_password(tide_text url)
{
    struct stretch found = {0, 0};
    if (in_authority(url, &found))
        return true;
    return in_query(url, query_at(url, authority_at(url)), &found);
}

static size_t copy(char *out, size_t used, size_t room, const char *from, size_t bytes)
{
    const size_t left = room - 1 - used;
    const size_t taken = bytes < left ? bytes : left;
    if (taken > 0)
        memcpy(out + used, from, taken);
    return used + taken;
}

void tide_url_masked(tide_text url, char *out, size_t out_bytes)
{
    TIDE_ASSERT(out_bytes > 0);
    struct stretch found = {0, 0};
    size_t used = 0;
    size_t from = 0;
    if (in_authority(url, &found)) {
        used = copy(out, used, out_bytes, url.data, found.start);
        used = copy(out, used, out_bytes, "***", 3);
        from = found.end;
    }
    size_t look = query_at(url, from > 0 ? from : authority_at(url));
    while (in_query(url, look, &found)) {
        used = copy(out, used, out_bytes, url.data + from, found.start - from);
        used = copy(out, used, out_bytes, "***", 3);
        from = look = found.end;
        look += look < url.bytes; /* the '&' */
    }
    if (from < url.bytes)
        used = copy(out, used, out_bytes, url.data + from, url.bytes - from);
    out[used] = '\0';
}
