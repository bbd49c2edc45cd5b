#include "cloud/searchconsole_rows.h"

#include "base/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tide_status give_row(void *arg, tide_text text);

void tide_sc_rows_init(struct tide_sc_rows *self, uint32_t dimensions,
                       const struct tide_sc_sink *sink, tide_mem *mem)
{
    *self = (struct tide_sc_rows){.dimensions = dimensions, .sink = sink};
    tide_api_list_init_text(&self->list, "rows", TIDE_SC_ROW_BYTES_MAX, give_row, self, mem);
    self->list.optional = true; /* Google leaves it out where there are none */
    for (int i = 0; i < TIDE_SC_DIMENSIONS; i++)
        tide_buf_init(&self->text[i], mem, TIDE_SC_KEY_BYTES_MAX);
}

void tide_sc_rows_done(struct tide_sc_rows *self)
{
    tide_api_list_done(&self->list);
    for (int i = 0; i < TIDE_SC_DIMENSIONS; i++)
        tide_buf_done(&self->text[i]);
}

void tide_sc_rows_restart(void *arg)
{
    struct tide_sc_rows *self = arg;
    tide_api_list_restart(&self->list);
    self->wrong = NULL;
    self->bytes = 0;
    if (self->sink->restart != NULL)
        self->sink->restart(self->sink->arg);
}

static tide_status wrong(struct tide_sc_rows *self, const char *why)
{
    self->wrong = why;
    return TIDE_SERVER;
}

/* ---- one row, complete in memory ---- */

struct cursor {
    const char *at, *end;
};

static void skip_space(struct cursor *in)
{
    while (in->at < in->end &&
           (*in->at == ' ' || *in->at == '\n' || *in->at == '\t' || *in->at == '\r'))
        in->at++;
}

static bool take_byte(struct cursor *in, char byte)
{
    skip_space(in);
    if (in->at == in->end || *in->at != byte)
        return false;
    in->at++;
    return true;
}

/* Takes a string unchanged, without its quotes; *plain_out: ASCII without escapes. */
static bool take_string(struct cursor *in, tide_text *text_out, bool *plain_out)
{
    if (!take_byte(in, '"'))
        return false;
    const char *from = in->at;
    bool plain = true;
    while (in->at < in->end && *in->at != '"') {
        if ((unsigned char)*in->at < 0x20)
            return false;
        if ((unsigned char)*in->at >= 0x80)
            plain = false;
        if (*in->at == '\\') {
            plain = false;
            in->at++;
        }
        in->at++;
    }
    if (in->at >= in->end)
        return false;
    *text_out = (tide_text){from, (size_t)(in->at - from)};
    *plain_out = plain;
    in->at++;
    return true;
}

/* Powers of ten that a double holds exactly. */
static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A number.  Up to 15 digits and a small power of ten both are exact in a double, and IEEE 754
 * rounds their quotient correctly; longer ones go to strtod(). */
static bool take_number(struct cursor *in, double *number_out)
{
    skip_space(in);
    const char *from = in->at;
    uint64_t digits = 0;
    unsigned count = 0;
    unsigned places = 0;
    const bool minus = in->at < in->end && *in->at == '-';
    in->at += minus ? 1 : 0;
    const char *first = in->at;
    for (; in->at < in->end && *in->at >= '0' && *in->at <= '9'; in->at++, count++)
        digits = count < 18 ? digits * 10 + (uint64_t)(*in->at - '0') : digits;
    if (in->at == first || (*first == '0' && in->at - first > 1))
        return false;
    if (in->at < in->end && *in->at == '.') {
        const char *dot = ++in->at;
        for (; in->at < in->end && *in->at >= '0' && *in->at <= '9'; in->at++, count++, places++)
            digits = count < 18 ? digits * 10 + (uint64_t)(*in->at - '0') : digits;
        if (in->at == dot)
            return false;
    }
    const bool power = in->at < in->end && (*in->at == 'e' || *in->at == 'E');
    if (!power && count <= 15) {
        const double whole = (double)digits / tens[places];
        *number_out = minus ? -whole : whole;
        return true;
    }
    char copy[64];
    while (in->at < in->end && *in->at != '\0' && strchr("0123456789+-eE.", *in->at) != NULL)
        in->at++;
    const size_t bytes = (size_t)(in->at - from);
    if (bytes == 0 || bytes >= sizeof copy)
        return false;
    memcpy(copy, from, bytes);
    copy[bytes] = '\0';
    char *stop = NULL;
    *number_out = strtod(copy, &stop);
    return *stop == '\0' && isfinite(*number_out);
}

/* Whether the JSON library accepts this as a value. */
static bool is_value(const char *from, const char *to)
{
    json_error_t error;
    json_t *value = json_loadb(from, (size_t)(to - from),
                               JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    json_decref(value);
    return value != NULL;
}

/* Skips an unused value: rare, so brackets give its end and the JSON library checks it. */
static bool skip_value(struct cursor *in)
{
    unsigned depth = 0;
    tide_text ignored;
    bool plain = false;
    skip_space(in);
    const char *from = in->at;
    do {
        skip_space(in);
        if (in->at == in->end)
            return false;
        const char byte = *in->at;
        if (byte == '"') {
            if (!take_string(in, &ignored, &plain))
                return false;
        } else {
            depth += byte == '{' || byte == '[' ? 1 : 0;
            if ((byte == '}' || byte == ']') && depth-- == 0)
                return false;
            in->at++;
            if (depth == 0 && byte != '}' && byte != ']')
                while (in->at < in->end && strchr(",]} \t\r\n", *in->at) == NULL)
                    in->at++;
        }
    } while (depth > 0);
    return is_value(from, in->at);
}

/* Unescapes a key and checks its UTF-8, with the JSON library. */
static bool unescape(tide_text quoted, tide_buf *out)
{
    json_error_t error;
    /* The quotes are right around it. */
    json_t *value =
        json_loadb(quoted.data - 1, quoted.bytes + 2, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    tide_buf_clear(out);
    const bool good = json_is_string(value) && tide_buf_add(out, json_string_value(value),
                                                            json_string_length(value)) == TIDE_OK;
    json_decref(value);
    return good;
}

static bool take_keys(struct tide_sc_rows *self, struct cursor *in, struct tide_sc_row *row)
{
    if (!take_byte(in, '['))
        return false;
    unsigned count = 0;
    for (int d = 0; d < TIDE_SC_DIMENSIONS; d++) {
        bool plain = false;
        if ((self->dimensions >> d & 1u) == 0)
            continue;
        if (count++ > 0 && !take_byte(in, ','))
            return false;
        if (!take_string(in, &row->keys[d], &plain) || row->keys[d].bytes > TIDE_SC_KEY_BYTES_MAX)
            return false;
        if (!plain) {
            if (!unescape(row->keys[d], &self->text[d]))
                return false;
            row->keys[d] = tide_buf_text(&self->text[d]);
        }
    }
    return take_byte(in, ']');
}

static bool take_member(struct tide_sc_rows *self, struct cursor *in, struct tide_sc_row *row,
                        unsigned *seen)
{
    tide_text key;
    bool plain = false;
    if (!take_string(in, &key, &plain) || !take_byte(in, ':') ||
        (!plain && !is_value(key.data - 1, key.data + key.bytes + 1)))
        return false;
    if (tide_text_equal(key, TIDE_TEXT("keys"))) {
        *seen |= 1u;
        return take_keys(self, in, row);
    }
    if (tide_text_equal(key, TIDE_TEXT("clicks"))) {
        *seen |= 2u;
        return take_number(in, &row->clicks);
    }
    if (tide_text_equal(key, TIDE_TEXT("impressions"))) {
        *seen |= 4u;
        return take_number(in, &row->impressions);
    }
    if (tide_text_equal(key, TIDE_TEXT("ctr")))
        return take_number(in, &row->ctr);
    if (tide_text_equal(key, TIDE_TEXT("position")))
        return take_number(in, &row->position);
    return skip_value(in);
}

static tide_status give_row(void *arg, tide_text text)
{
    struct tide_sc_rows *self = arg;
    struct cursor in = {text.data, text.data + text.bytes};
    struct tide_sc_row row = {.position = NAN};
    /* Without dimensions there is one row, and it has no keys. */
    const unsigned needed = self->dimensions == 0 ? 6u : 7u;
    unsigned seen = 0;
    bool good = take_byte(&in, '{');
    do
        good = good && take_member(self, &in, &row, &seen);
    while (good && take_byte(&in, ','));
    if (!good || !take_byte(&in, '}') || (seen & needed) != needed)
        return wrong(self, "a row is malformed");
    if (self->list.elements > TIDE_SC_ROWS_MAX)
        return wrong(self, "more rows than a page may have");
    const tide_status rc = self->sink->visit(&row, self->sink->arg);
    if (rc != TIDE_OK)
        self->wrong = "the rows could not be stored";
    return rc;
}

tide_status tide_sc_rows_write(void *arg, const char *bytes, size_t count)
{
    struct tide_sc_rows *self = arg;
    self->bytes += count;
    return tide_api_list_write(&self->list, bytes, count);
}

/* ---- the end ---- */

static bool equals_folded(const char *text, const char *name)
{
    for (; *text != '\0'; text++) {
        if (*text == '_')
            continue;
        const char lower = (char)(*text >= 'A' && *text <= 'Z' ? *text + 32 : *text);
        if (lower != *name++)
            return false;
    }
    return *name == '\0';
}

tide_status tide_sc_rows_end(struct tide_sc_rows *self, struct tide_sc_page *page_out,
                             tide_error *err)
{
    json_t *rest = NULL;
    const tide_status rc = tide_api_list_end(&self->list, &rest, NULL);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "search analytics: %s",
                              self->wrong != NULL ? self->wrong : self->list.wrong);
    *page_out = (struct tide_sc_page){.rows = (uint32_t)self->list.elements, .bytes = self->bytes};
    const char *by = json_string_value(json_object_get(rest, "responseAggregationType"));
    page_out->by_page = by != NULL && equals_folded(by, "bypage");
    const json_t *metadata = json_object_get(rest, "metadata");
    const char *first = json_string_value(json_object_get(metadata, "firstIncompleteDate"));
    if (first == NULL)
        first = json_string_value(json_object_get(metadata, "first_incomplete_date"));
    if (first != NULL)
        (void)snprintf(page_out->first_incomplete, sizeof page_out->first_incomplete, "%.10s",
                       first);
    json_decref(rest);
    return TIDE_OK;
}
