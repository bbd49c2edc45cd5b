#include "net/endpoint.h"

#include <string.h>
#include <strings.h>

enum { ENDPOINT_BYTES_MAX = 500 };

tide_text tide_endpoint_host(const char *url)
{
    const char *host = strstr(url, "://");
    host = host == NULL ? url : host + 3;
    return (tide_text){host, strcspn(host, "/?#")};
}

static bool is_made_of(tide_text text, const char *letters)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (text.data[i] == '\0' || strchr(letters, text.data[i]) == NULL)
            return false;
    return text.bytes > 0;
}

#define DIGITS "0123456789"
#define HEX    DIGITS "abcdefABCDEF"
#define NAME   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-." DIGITS

/* Splits "HOST:PORT"; the brackets of an IPv6 address are removed. */
static bool part(tide_text authority, tide_text *host_out, tide_text *port_out)
{
    const char *end = authority.data + authority.bytes;
    const bool six = authority.bytes > 0 && authority.data[0] == '[';
    const char *close = six ? memchr(authority.data, ']', authority.bytes) : NULL;
    if (six && close == NULL)
        return false;
    const char *rest = six ? close + 1 : memchr(authority.data, ':', authority.bytes);
    rest = rest == NULL ? end : rest;
    const char *host_end = six ? close : rest;
    *host_out = (tide_text){authority.data + six, (size_t)(host_end - authority.data) - six};
    *port_out = TIDE_TEXT_NONE;
    if (!is_made_of(*host_out, six ? HEX ":." : NAME))
        return false;
    if (rest == end)
        return true;
    uint64_t port = 0;
    *port_out = (tide_text){rest + 1, (size_t)(end - rest) - 1};
    return *rest == ':' && is_made_of(*port_out, DIGITS) && port_out->bytes <= 5 &&
           tide_text_to_u64(*port_out, &port) && port > 0 && port < 65536;
}

static bool is_here(tide_text host)
{
    const bool name = host.bytes == 9 && strncasecmp(host.data, "localhost", 9) == 0;
    const bool four =
        host.bytes > 4 && memcmp(host.data, "127.", 4) == 0 && is_made_of(host, DIGITS ".");
    return name || four || tide_text_equal(host, TIDE_TEXT("::1"));
}

tide_status tide_endpoint_check(const char *endpoint, tide_error *err)
{
    const bool https = strncmp(endpoint, "https://", 8) == 0;
    const bool http = strncmp(endpoint, "http://", 7) == 0;
    tide_text authority = {endpoint + (https ? 8 : 7), 0};
    tide_text host = TIDE_TEXT_NONE;
    tide_text port = TIDE_TEXT_NONE;
    if (https || http)
        authority.bytes = strlen(authority.data);
    if (authority.bytes > 0 && authority.data[authority.bytes - 1] == '/')
        authority.bytes--;
    if (authority.bytes == 0 || authority.bytes > ENDPOINT_BYTES_MAX ||
        !part(authority, &host, &port))
        return tide_error_set(
            err, TIDE_INVALID,
            "\"%.100s\" is not a server address: use https://HOST or http://127.0.0.1:PORT",
            endpoint);
    if (http && !is_here(host))
        return tide_error_set(err, TIDE_INVALID,
                              "%.100s would get the token unencrypted: http is allowed on this "
                              "machine only; use https",
                              endpoint);
    return TIDE_OK;
}
