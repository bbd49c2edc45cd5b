/* head.h - the head of a request as it came: method, target, headers.
 *
 * Pure: it borrows what the server received and decides nothing.
 *
 * Invariants:
 *   HED1  header names compare without case, values as they are.
 *   HED2  what is decoded (parts of a path, parameters of a query) was cut apart first: an escaped
 *         slash, ampersand or equals sign never separates anything.
 *   HED3  a broken escape, or one that means a zero byte, is refused, never guessed.
 */
#ifndef TIDE_SERVE_HTTP_HEAD_H
#define TIDE_SERVE_HTTP_HEAD_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TIDE_HTTPD_HEADERS_MAX = 64,
    TIDE_HTTPD_HEAD_BYTES_MAX = 16 << 10, /* names and values together */
    TIDE_HTTPD_TARGET_BYTES_MAX = 8 << 10,
    TIDE_HTTPD_PARAMS_MAX = 32,
};

/* A header, or a parameter of a query. */
struct tide_httpd_pair {
    tide_text name;
    tide_text value;
};

struct tide_httpd_head {
    tide_text method;
    tide_text target; /* path and query */
    const struct tide_httpd_pair *headers;
    size_t headers_count;
};

/* The first one of that name; .data is NULL if there is none. */
tide_text tide_httpd_header(const struct tide_httpd_head *head, const char *name);
size_t tide_httpd_header_count(const struct tide_httpd_head *head, const char *name);

/* Equal without case. */
bool tide_httpd_word_is(tide_text text, const char *word);

tide_text tide_httpd_path(tide_text target);  /* up to the question mark */
tide_text tide_httpd_query(tide_text target); /* after it; may be empty */

/* Decodes `text` where it is: the result is never longer.  `plus`: a plus sign is a space, as in a
 * query.  false: HED3; the content is then undefined. */
bool tide_httpd_decode(char *text, size_t bytes, bool plus, size_t *bytes_out);

/* Takes a query apart and decodes it where it is.  false: more than TIDE_HTTPD_PARAMS_MAX, or H3. */
bool tide_httpd_query_read(char *query, size_t bytes,
                           struct tide_httpd_pair params_out[TIDE_HTTPD_PARAMS_MAX],
                           size_t *count_out);

#endif
