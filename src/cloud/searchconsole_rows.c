#include "cloud/searchconsole_rows.h"

#include "base/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tide_sc_rows_init(struct tide_sc_rows *self, uint32_t dimensions,
                       const struct tide_sc_sink *sink, tide_mem *mem)
{
    *self = (struct tide_sc_rows){.dimensions = dimensions, .sink = sink};
    tide_buf_init(&self->row, mem, TIDE_SC_ROW_BYTES_MAX);
    tide_buf_init(&self->rest, mem, TIDE_SC_REST_BYTES_MAX);
    for (int i = 0; i < TIDE_SC_DIMENSIONS; i++)
        tide_buf_init(&self->text[i], mem, TIDE_SC_KEY_BYTES_MAX);
}

void tide_sc_rows_done(struct tide_sc_rows *self)
{
    tide_buf_done(&self->row);
    tide_buf_done(&self->rest);
    for (int i = 0; i < TIDE_SC_DIMENSIONS; i++)
        tide_buf_done(&self->text[i]);
}

void tide_sc_rows_restart(void *arg)
{
    struct tide_sc_rows *self = arg;
    struct tide_sc_rows fresh = {
        .dimensions = self->dimensions, .sink = self->sink, .row = self->row, .rest = self->rest};
    memcpy(fresh.text, self->text, sizeof fresh.text);
    *self = fresh;
    tide_buf_clear(&self->row);
    tide_buf_clear(&self->rest);
    if (self->sink->restart != NULL)
        self->sink->restart(self->sink->arg);
}

static tide_status wrong(struct tide_sc_rows *self, const char *why)
{
    self->wrong = why;
    self->failed = TIDE_SERVER;
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

static tide_status give_row(struct tide_sc_rows *self, const char *bytes, size_t count)
{
    struct cursor in = {bytes, bytes + count};
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
    if (self->rows == TIDE_SC_ROWS_MAX)
        return wrong(self, "more rows than a page may have");
    self->rows++;
    const tide_status rc = self->sink->visit(&row, self->sink->arg);
    if (rc != TIDE_OK) {
        self->wrong = "the rows could not be stored";
        self->failed = rc;
    }
    return rc;
}

/* ---- finding rows ---- */

/* Scans inside a row; returns how many bytes belong to it. */
static size_t row_part(struct tide_sc_rows *self, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char byte = bytes[i];
        if (self->escaped) {
            self->escaped = false;
        } else if (self->in_string) {
            self->escaped = byte == '\\';
            self->in_string = byte != '"';
        } else if (byte == '"') {
            self->in_string = true;
        } else if (byte == '{' || byte == '[') {
            self->row_depth++;
        } else if ((byte == '}' || byte == ']') && --self->row_depth == 0) {
            self->in_row = false;
            return i + 1;
        }
    }
    return count;
}

static tide_status rows_bytes(struct tide_sc_rows *self, const char *bytes, size_t count,
                              size_t *used_out)
{
    tide_status rc = TIDE_OK;
    size_t i = 0;
    while (rc == TIDE_OK && i < count && self->in_rows) {
        if (self->in_row) {
            const size_t part = row_part(self, bytes + i, count - i);
            if (self->in_row || self->row.bytes > 0)
                rc = tide_buf_add(&self->row, bytes + i, part);
            if (rc != TIDE_OK)
                return wrong(self, "a row is too long");
            if (!self->in_row) {
                const tide_text whole =
                    self->row.bytes > 0 ? tide_buf_text(&self->row) : (tide_text){bytes + i, part};
                rc = give_row(self, whole.data, whole.bytes);
                tide_buf_clear(&self->row);
                self->want_comma = true;
            }
            i += part;
            continue;
        }
        const char byte = bytes[i];
        if (byte == '{' && !self->want_comma) {
            self->in_row = true;
            self->row_depth = 0;
            continue; /* this byte is part of the row */
        }
        if (byte == ',' && self->want_comma)
            self->want_comma = false;
        else if (byte == ']' && (self->want_comma || self->rows == 0))
            self->in_rows = false;
        else if (strchr(" \t\r\n", byte) == NULL || byte == '\0')
            return wrong(self, "the list of rows is malformed");
        i++;
    }
    *used_out = i;
    return rc;
}

/* One byte outside of rows: copies it and looks for the name "rows". */
static tide_status rest_byte(struct tide_sc_rows *self, char byte)
{
    if (tide_buf_add(&self->rest, &byte, 1) != TIDE_OK)
        return wrong(self, "the answer is too long");
    if (self->in_string) {
        if (self->escaped) {
            self->escaped = false;
        } else if (byte == '\\') {
            self->escaped = true;
        } else if (byte == '"') {
            self->in_string = false;
            return TIDE_OK;
        }
        if (self->key_bytes < sizeof self->key)
            self->key[self->key_bytes] = byte;
        self->key_bytes++;
        return TIDE_OK;
    }
    if (byte == '"') {
        self->in_string = true;
        self->key_bytes = 0;
    } else if (byte == ':') {
        self->rows_next =
            self->depth == 1 && self->key_bytes == 4 && memcmp(self->key, "rows", 4) == 0;
    } else if (byte == '[' && self->rows_next) {
        if (self->rows_seen)
            return wrong(self, "\"rows\" occurs twice");
        self->rows_seen = true;
        self->rows_next = false;
        self->in_rows = true;
        self->want_comma = false;
        return tide_buf_add(&self->rest, "]", 1);
    } else if (byte == '{' || byte == '[') {
        self->depth++;
    } else if (byte == '}' || byte == ']') {
        self->depth--;
    }
    return TIDE_OK;
}

tide_status tide_sc_rows_write(void *arg, const char *bytes, size_t count)
{
    struct tide_sc_rows *self = arg;
    size_t i = 0;
    self->bytes += count;
    while (self->failed == TIDE_OK && i < count) {
        size_t used = 1;
        const tide_status rc = self->in_rows ? rows_bytes(self, bytes + i, count - i, &used)
                                             : rest_byte(self, bytes[i]);
        if (rc != TIDE_OK && self->failed == TIDE_OK)
            self->failed = rc;
        i += used;
    }
    return self->failed;
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
    if (self->failed == TIDE_OK && self->in_rows)
        (void)wrong(self, "the answer is cut off");
    if (self->failed == TIDE_OK &&
        (tide_json_parse(tide_buf_text(&self->rest), &rest, NULL) != TIDE_OK ||
         !json_is_object(rest)))
        (void)wrong(self, "the answer is not a JSON object");
    if (self->failed != TIDE_OK) {
        json_decref(rest);
        return tide_error_set(err, self->failed, "search analytics: %s",
                              self->wrong == NULL ? "no memory" : self->wrong);
    }
    *page_out = (struct tide_sc_page){.rows = self->rows, .bytes = self->bytes};
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
