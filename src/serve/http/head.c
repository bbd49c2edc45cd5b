#include "serve/http/head.h"

#include "base/encode.h"

#include <string.h>
#include <strings.h>

bool tide_httpd_word_is(tide_text text, const char *word)
{
    return text.bytes == strlen(word) &&
           (text.bytes == 0 || strncasecmp(text.data, word, text.bytes) == 0);
}

tide_text tide_httpd_header(const struct tide_httpd_head *head, const char *name)
{
    for (size_t i = 0; i < head->headers_count; i++)
        if (tide_httpd_word_is(head->headers[i].name, name))
            return head->headers[i].value.data == NULL ? TIDE_TEXT("") : head->headers[i].value;
    return TIDE_TEXT_NONE;
}

size_t tide_httpd_header_count(const struct tide_httpd_head *head, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < head->headers_count; i++)
        count += tide_httpd_word_is(head->headers[i].name, name);
    return count;
}

static size_t path_bytes(tide_text target)
{
    const char *question = target.bytes == 0 ? NULL : memchr(target.data, '?', target.bytes);
    return question == NULL ? target.bytes : (size_t)(question - target.data);
}

tide_text tide_httpd_path(tide_text target)
{
    return (tide_text){target.data, path_bytes(target)};
}

tide_text tide_httpd_query(tide_text target)
{
    const size_t at = path_bytes(target);
    return at == target.bytes ? TIDE_TEXT("")
                              : (tide_text){target.data + at + 1, target.bytes - at - 1};
}

bool tide_httpd_decode(char *text, size_t bytes, bool plus, size_t *bytes_out)
{
    size_t to = 0;
    for (size_t from = 0; from < bytes; from++) {
        char c = text[from];
        if (c == '%') {
            const int byte = tide_hex_byte((tide_text){text + from + 1, bytes - from - 1});
            if (byte <= 0)
                return false;
            c = (char)byte;
            from += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        } else if (c == '\0') {
            return false;
        }
        text[to++] = c;
    }
    *bytes_out = to;
    return true;
}

static bool pair_read(char *text, size_t bytes, struct tide_httpd_pair *pair_out)
{
    char *equals = memchr(text, '=', bytes);
    size_t name_bytes = equals == NULL ? bytes : (size_t)(equals - text);
    char *value = equals == NULL ? text + bytes : equals + 1;
    size_t value_bytes = (size_t)(text + bytes - value);
    if (!tide_httpd_decode(text, name_bytes, true, &name_bytes) ||
        !tide_httpd_decode(value, value_bytes, true, &value_bytes))
        return false;
    *pair_out = (struct tide_httpd_pair){{text, name_bytes}, {value, value_bytes}};
    return true;
}

bool tide_httpd_query_read(char *query, size_t bytes,
                           struct tide_httpd_pair params_out[TIDE_HTTPD_PARAMS_MAX],
                           size_t *count_out)
{
    size_t count = 0;
    size_t at = 0;
    while (at < bytes) {
        const char *end = memchr(query + at, '&', bytes - at);
        const size_t piece = end == NULL ? bytes - at : (size_t)(end - query) - at;
        if (piece > 0) {
            if (count == TIDE_HTTPD_PARAMS_MAX || !pair_read(query + at, piece, &params_out[count]))
                return false;
            count++;
        }
        at += piece + 1;
    }
    *count_out = count;
    return true;
}
