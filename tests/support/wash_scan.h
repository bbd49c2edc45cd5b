/* wash_scan.h - reads the result of tide_html_wash() and says what is wrong with it.
 *
 * It shares nothing with src/mail/wash, not even the lists, and accepts only the exact form that
 * the module promises to write: lower case names, double quotes, one space before an attribute. */
#ifndef TIDE_TESTS_WASH_SCAN_H
#define TIDE_TESTS_WASH_SCAN_H

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WASH_SCAN_DEPTH = 256, WASH_SCAN_NAME = 16 };

static const char wash_scan_elements[] =
    " a abbr acronym address article aside b bdi bdo big blockquote caption center cite code "
    "colgroup dd del dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header i ins "
    "kbd li main mark nav ol p pre q s samp section small span strike strong style sub sup table "
    "tbody td tfoot th thead time tr tt u ul var ";
static const char wash_scan_voids[] = " br col hr img wbr ";
static const char wash_scan_attributes[] =
    " align alt aria-hidden aria-label background bgcolor border cellpadding cellspacing class "
    "clear color colspan dir face height href hspace id lang media noshade nowrap rel role rowspan "
    "scope size span src start style title type valign value vspace width ";
static const char wash_scan_functions[] =
    " rgb rgba hsl hsla calc min max clamp linear-gradient -webkit-linear-gradient radial-gradient "
    "repeating-linear-gradient rotate scale translate translatex translatey cubic-bezier not "
    "nth-child nth-of-type nth-last-child lang alpha rect inset ";

struct wash_scan {
    const char *at, *end;
    const char *problem;
    size_t depth;
    char open[WASH_SCAN_DEPTH + 1][WASH_SCAN_NAME];
};

static inline void wash_scan_fail(struct wash_scan *scan, const char *problem)
{
    if (scan->problem == NULL)
        scan->problem = problem;
    scan->at = scan->end;
}

static inline bool wash_scan_listed(const char *list, const char *name)
{
    char padded[64];
    return snprintf(padded, sizeof padded, " %s ", name) < (int)sizeof padded &&
           strstr(list, padded) != NULL;
}

static inline bool wash_scan_starts(const char *at, const char *end, const char *text)
{
    size_t bytes = strlen(text);
    return (size_t)(end - at) >= bytes && memcmp(at, text, bytes) == 0;
}

/* Everything: UTF-8 by its table, and no control characters. */
static inline void wash_scan_characters(struct wash_scan *scan)
{
    const unsigned char *at = (const unsigned char *)scan->at;
    const unsigned char *end = (const unsigned char *)scan->end;
    while (at < end) {
        size_t more = *at < 0x80 ? 0 : *at < 0xe0 ? 1 : *at < 0xf0 ? 2 : 3;
        uint32_t code = more == 0 ? *at : *at & (0x3fu >> more);
        if ((*at >= 0x80 && *at < 0xc2) || *at > 0xf4 || (size_t)(end - at) <= more) {
            wash_scan_fail(scan, "not UTF-8");
            return;
        }
        for (size_t i = 1; i <= more; i++) {
            if ((at[i] & 0xc0) != 0x80) {
                wash_scan_fail(scan, "not UTF-8");
                return;
            }
            code = code << 6 | (at[i] & 0x3fu);
        }
        if ((more == 2 && code < 0x800) || (more == 3 && code < 0x10000) || code > 0x10ffff ||
            (code >= 0xd800 && code < 0xe000))
            wash_scan_fail(scan, "not UTF-8");
        if ((code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0))
            wash_scan_fail(scan, "a control character");
        at += 1 + more;
    }
}

/* An '&' between tags is one of ours or "&name;". */
static inline void wash_scan_ampersand(struct wash_scan *scan)
{
    const char *at = scan->at + 1;
    size_t bytes = 0;
    while (at + bytes < scan->end && bytes < 40 &&
           ((at[bytes] >= 'a' && at[bytes] <= 'z') || (at[bytes] >= 'A' && at[bytes] <= 'Z') ||
            (at[bytes] >= '0' && at[bytes] <= '9')))
        bytes++;
    if (bytes == 0 || at + bytes == scan->end || at[bytes] != ';')
        wash_scan_fail(scan, "an ampersand that is not escaped");
    else
        scan->at += bytes + 2;
}

/* ---- CSS ---- */

static inline bool wash_scan_is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '\\' || (unsigned char)c >= 0x80;
}

static inline bool wash_scan_is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* The name before a '(' that is at `at`; not more than a few characters back. */
static inline bool wash_scan_function(const char *begin, const char *at)
{
    char name[32];
    const char *from = at;
    while (from > begin && at - from < 31 && wash_scan_is_name(from[-1]))
        from--;
    if (from == at)
        return true;
    for (size_t i = 0; i < (size_t)(at - from); i++)
        name[i] = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] | 0x20) : from[i];
    name[at - from] = '\0';
    return wash_scan_listed(wash_scan_functions, name);
}

static inline const char *wash_scan_css(const char *begin, const char *end, bool sheet)
{
    long deep = 0, round = 0;
    bool quoted = false;
    for (const char *at = begin; at < end; at++) {
        char c = *at;
        if (c == '<' || c == '"' || c == '&' || (!sheet && c == '>'))
            return "CSS with a character of HTML";
        if (c == '\\') {
            const char *hex = at + 1;
            while (hex < end && hex - at <= 6 && wash_scan_is_hex(*hex))
                hex++;
            if (hex == at + 1 || hex == end || *hex != ' ')
                return "CSS with an escape that is not hexadecimal";
            at = hex;
        } else if (c == '@' && (!sheet || !wash_scan_starts(at, end, "@media"))) {
            return "CSS with a rule that is not @media";
        } else if (c == '\'') {
            quoted = !quoted;
        } else if (c == '(') {
            if (quoted || !wash_scan_function(begin, at))
                return "CSS with a function that is not allowed";
            round++;
        } else if (c == ')' && --round < 0) {
            return "CSS with a bracket too many";
        } else if (c == '{') {
            deep++;
        } else if (c == '}' && --deep < 0) {
            return "CSS with a brace too many";
        } else if (c == '/' && at + 1 < end && at[1] == '*') {
            return "CSS with a comment";
        } else if (c == '\n' || c == '\t') {
            return "CSS with a line end";
        }
    }
    if (quoted || deep != 0 || round != 0 || (!sheet && memchr(begin, '{', (size_t)(end - begin))))
        return "CSS that is not closed";
    return NULL;
}

/* ---- tags ---- */

static inline bool wash_scan_numbered(const char *at, const char *end)
{
    if (!wash_scan_starts(at, end, "img/") && !wash_scan_starts(at, end, "cid/"))
        return false;
    at += 4;
    if (at == end || end - at > 3)
        return false;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at == end;
}

static inline bool wash_scan_pixels(const char *at, const char *end)
{
    static const char *const types[] = {"data:image/png;base64,",  "data:image/jpeg;base64,",
                                        "data:image/jpg;base64,",  "data:image/gif;base64,",
                                        "data:image/webp;base64,", "data:image/bmp;base64,"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (!wash_scan_starts(at, end, types[i]))
            continue;
        for (at += strlen(types[i]); at < end; at++) {
            if (!wash_scan_is_name(*at) && *at != '+' && *at != '/' && *at != '=')
                return false;
        }
        return true;
    }
    return false;
}

static inline const char *wash_scan_value(const char *element, const char *name, const char *at,
                                          const char *end)
{
    for (const char *c = at; c < end; c++) {
        if (*c == '<' || *c == '>' || *c == '\n' || *c == '\t')
            return "an attribute with a character of HTML";
        if (*c == '&' && !wash_scan_starts(c, end, "&amp;") && !wash_scan_starts(c, end, "&#34;"))
            return "an attribute with an ampersand that is not escaped";
    }
    if (strcmp(name, "href") == 0) {
        if (strcmp(element, "a") != 0)
            return "a link that is no <a>";
        if (!wash_scan_starts(at, end, "http://") && !wash_scan_starts(at, end, "https://") &&
            !wash_scan_starts(at, end, "mailto:"))
            return "a link with a scheme that is not allowed";
        if (memchr(at, ' ', (size_t)(end - at)) != NULL)
            return "a link with a space";
    } else if (strcmp(name, "src") == 0) {
        if (strcmp(element, "img") != 0 ||
            (!wash_scan_numbered(at, end) && !wash_scan_pixels(at, end)))
            return "an image that is not allowed";
    } else if (strcmp(name, "background") == 0) {
        if (!wash_scan_numbered(at, end))
            return "a background that is not allowed";
    } else if (strcmp(name, "style") == 0) {
        return wash_scan_css(at, end, false);
    } else if (strcmp(name, "id") == 0) {
        if (!wash_scan_starts(at, end, "m-"))
            return "an id without its prefix";
    } else if (strcmp(name, "rel") == 0) {
        if (end - at != 19 || memcmp(at, "noopener noreferrer", 19) != 0)
            return "a rel that is not ours";
    }
    return NULL;
}

/* A name in lower case at scan->at. */
static inline void wash_scan_name(struct wash_scan *scan, char name[WASH_SCAN_NAME])
{
    size_t bytes = 0;
    while (scan->at < scan->end && bytes < WASH_SCAN_NAME - 1 &&
           ((*scan->at >= 'a' && *scan->at <= 'z') || (*scan->at >= '0' && *scan->at <= '9') ||
            *scan->at == '-'))
        name[bytes++] = *scan->at++;
    name[bytes] = '\0';
}

static inline bool wash_scan_attribute(struct wash_scan *scan, const char *element, char *seen,
                                       size_t seen_bytes)
{
    char name[WASH_SCAN_NAME];
    if (scan->at == scan->end || *scan->at != ' ')
        return false;
    scan->at++;
    wash_scan_name(scan, name);
    if (!wash_scan_listed(wash_scan_attributes, name))
        wash_scan_fail(scan, "an attribute that is not allowed");
    else if (wash_scan_listed(seen, name))
        wash_scan_fail(scan, "an attribute twice");
    else if (!wash_scan_starts(scan->at, scan->end, "=\""))
        wash_scan_fail(scan, "an attribute without its quote");
    if (scan->problem != NULL)
        return false;
    size_t used = strlen(seen);
    (void)snprintf(seen + used, seen_bytes - used, "%s ", name);
    const char *begin = scan->at + 2;
    const char *end = memchr(begin, '"', (size_t)(scan->end - begin));
    if (end == NULL) {
        wash_scan_fail(scan, "an attribute that does not end");
        return false;
    }
    const char *problem = wash_scan_value(element, name, begin, end);
    if (problem != NULL)
        wash_scan_fail(scan, problem);
    else
        scan->at = end + 1;
    if (problem == NULL && strcmp(name, "href") == 0 &&
        !wash_scan_starts(scan->at, scan->end, " rel=\"noopener noreferrer\""))
        wash_scan_fail(scan, "a link without its rel");
    return scan->problem == NULL;
}

static inline void wash_scan_start(struct wash_scan *scan)
{
    char name[WASH_SCAN_NAME], seen[600] = " ";
    wash_scan_name(scan, name);
    bool is_void = wash_scan_listed(wash_scan_voids, name);
    if (!is_void && !wash_scan_listed(wash_scan_elements, name)) {
        wash_scan_fail(scan, "an element that is not allowed");
        return;
    }
    while (wash_scan_attribute(scan, name, seen, sizeof seen))
        continue;
    if (scan->problem != NULL)
        return;
    if (scan->at == scan->end || *scan->at != '>') {
        wash_scan_fail(scan, "a tag that does not end");
        return;
    }
    scan->at++;
    if (strcmp(name, "style") == 0) {
        const char *begin = scan->at;
        const char *end = memchr(begin, '<', (size_t)(scan->end - begin));
        if (end == NULL || !wash_scan_starts(end, scan->end, "</style>")) {
            wash_scan_fail(scan, "a style that does not end");
            return;
        }
        scan->at = end + 8;
        const char *problem = wash_scan_css(begin, end, true);
        if (problem != NULL)
            wash_scan_fail(scan, problem);
    } else if (!is_void) {
        if (scan->depth == WASH_SCAN_DEPTH)
            wash_scan_fail(scan, "too deep");
        else
            memcpy(scan->open[scan->depth++], name, sizeof name);
    }
}

static inline void wash_scan_end(struct wash_scan *scan)
{
    char name[WASH_SCAN_NAME];
    wash_scan_name(scan, name);
    if (scan->at == scan->end || *scan->at != '>' || scan->depth == 0 ||
        strcmp(name, scan->open[scan->depth - 1]) != 0) {
        wash_scan_fail(scan, "an end tag that closes nothing");
        return;
    }
    scan->depth--;
    scan->at++;
}

/* NULL, or what is wrong. */
static inline const char *wash_scan(tide_text washed)
{
    static struct wash_scan scan;
    memset(&scan, 0, sizeof scan);
    scan.at = washed.data;
    scan.end = washed.data + washed.bytes;
    wash_scan_characters(&scan);
    while (scan.at < scan.end) {
        if (*scan.at == '&') {
            wash_scan_ampersand(&scan);
        } else if (*scan.at == '>') {
            wash_scan_fail(&scan, "a '>' that is not escaped");
        } else if (*scan.at != '<') {
            scan.at++;
        } else if (wash_scan_starts(scan.at, scan.end, "</")) {
            scan.at += 2;
            wash_scan_end(&scan);
        } else {
            scan.at++;
            wash_scan_start(&scan);
        }
    }
    if (scan.problem == NULL && scan.depth > 0)
        return "an element that is not closed";
    return scan.problem;
}

#endif
