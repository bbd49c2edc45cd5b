#include "net/image/url.h"
#include "base/limits.h"

#include <curl/curl.h>
#include <string.h>

static bool set(CURLU *url, CURLUPart part, const char *value, unsigned flags)
{
    return curl_url_set(url, part, value, flags) == CURLUE_OK;
}

static bool is_web(CURLU *url)
{
    char *scheme = NULL, *host = NULL;
    const bool web = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                     (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) &&
                     curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK && host[0] != '\0';
    curl_free(scheme);
    curl_free(host);
    return web;
}

static tide_status write_back(CURLU *url, tide_buf *url_io)
{
    char *text = NULL;
    if (!set(url, CURLUPART_USER, NULL, 0) || !set(url, CURLUPART_PASSWORD, NULL, 0) ||
        !set(url, CURLUPART_OPTIONS, NULL, 0) || !set(url, CURLUPART_FRAGMENT, NULL, 0) ||
        curl_url_get(url, CURLUPART_URL, &text, 0) != CURLUE_OK)
        return TIDE_INVALID;
    const size_t bytes = strlen(text);
    tide_status rc = TIDE_INVALID;
    if (bytes <= TIDE_URL_BYTES_MAX) {
        tide_buf_clear(url_io);
        rc = tide_buf_add(url_io, text, bytes);
    }
    curl_free(text);
    return rc;
}

tide_status tide_url_resolve(tide_buf *url_io, tide_text reference)
{
    char text[TIDE_URL_BYTES_MAX + 1];
    if (reference.bytes == 0 || reference.bytes > TIDE_URL_BYTES_MAX ||
        memchr(reference.data, '\0', reference.bytes) != NULL)
        return TIDE_INVALID;
    memcpy(text, reference.data, reference.bytes);
    text[reference.bytes] = '\0';
    CURLU *url = curl_url();
    if (url == NULL)
        return TIDE_NO_MEMORY;
    tide_status rc = TIDE_INVALID;
    if ((url_io->bytes == 0 || set(url, CURLUPART_URL, tide_buf_cstr(url_io), 0)) &&
        set(url, CURLUPART_URL, text, CURLU_URLENCODE) && is_web(url))
        rc = write_back(url, url_io);
    curl_url_cleanup(url);
    return rc;
}
