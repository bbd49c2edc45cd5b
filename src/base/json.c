#include "base/json.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- UTF-8 ------------------------------------------------------------------ */

static bool is_tail(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

size_t tide_utf8_bytes(tide_text text)
{
    const unsigned char *s = (const unsigned char *)text.data;
    if (text.bytes == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    if (text.bytes >= 2 && s[0] >= 0xc2 && s[0] <= 0xdf && is_tail(s[1]))
        return 2;
    if (text.bytes >= 3 && (s[0] & 0xf0) == 0xe0 && is_tail(s[1]) && is_tail(s[2])) {
        bool overlong = s[0] == 0xe0 && s[1] < 0xa0;
        bool surrogate = s[0] == 0xed && s[1] >= 0xa0;
        return overlong || surrogate ? 0 : 3;
    }
    if (text.bytes >= 4 && s[0] >= 0xf0 && s[0] <= 0xf4 && is_tail(s[1]) && is_tail(s[2]) &&
        is_tail(s[3])) {
        bool overlong = s[0] == 0xf0 && s[1] < 0x90;
        bool beyond = s[0] == 0xf4 && s[1] >= 0x90;
        return overlong || beyond ? 0 : 4;
    }
    return 0;
}

tide_text tide_utf8_cut(tide_text text, size_t bytes_max)
{
    if (text.bytes <= bytes_max)
        return text;
    while (bytes_max > 0 && is_tail((unsigned char)text.data[bytes_max]))
        bytes_max--;
    return (tide_text){text.data, bytes_max};
}

/* A zero byte is valid UTF-8 but ends a C string: many readers, ours included, refuse it or see
 * only the text before it. */
static size_t clean_bytes(tide_text text)
{
    return text.bytes > 0 && text.data[0] == '\0' ? 0 : tide_utf8_bytes(text);
}

bool tide_utf8_is_clean(tide_text text)
{
    while (text.bytes > 0) {
        size_t bytes = clean_bytes(text);
        if (bytes == 0)
            return false;
        text.data += bytes;
        text.bytes -= bytes;
    }
    return true;
}

/* A JSON string.  Each zero byte and each byte that is not UTF-8 becomes U+FFFD (JSN1). */
static json_t *string_of(tide_text text)
{
    if (text.bytes == 0)
        return json_string("");
    if (tide_utf8_is_clean(text))
        return json_stringn_nocheck(text.data, text.bytes);
    TIDE_SEEN("json: text is not UTF-8");
    size_t room = 0;
    if (__builtin_mul_overflow(text.bytes, 3u, &room))
        return NULL;
    tide_buf clean;
    tide_buf_init(&clean, tide_mem_heap(), room);
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && text.bytes > 0) {
        size_t bytes = clean_bytes(text);
        rc = bytes > 0 ? tide_buf_add(&clean, text.data, bytes)
                       : tide_buf_add_text(&clean, "\xef\xbf\xbd");
        bytes += bytes == 0;
        text.data += bytes;
        text.bytes -= bytes;
    }
    json_t *value = rc == TIDE_OK ? json_stringn_nocheck(clean.data, clean.bytes) : NULL;
    tide_buf_done(&clean);
    return value;
}

/* ---- reading ---------------------------------------------------------------- */

/* jansson reports some allocations that fail as a syntax error, and others not at all.  A syntax
 * error counts only when a second reading finds it too; else a good value would be called bad. */
static json_t *load(tide_text text, size_t flags, json_error_t *error)
{
    const char *data = text.bytes == 0 ? "" : text.data;
    json_t *value = json_loadb(data, text.bytes, flags, error);
    return value == NULL ? json_loadb(data, text.bytes, flags, error) : value;
}

static tide_status parse(tide_text text, size_t flags, json_t **value_out, tide_error *err)
{
    TIDE_ASSERT(value_out != NULL);
    json_error_t error;
    json_t *value = load(text, flags, &error);
    const bool no_memory = value == NULL && (json_error_code(&error) == json_error_out_of_memory ||
                                             json_error_code(&error) == json_error_unknown);
    if (no_memory)
        return tide_error_set(err, TIDE_NO_MEMORY, "out of memory while reading JSON");
    if (value == NULL)
        return tide_error_set(err, TIDE_INVALID, "not JSON: line %d, column %d: %s", error.line,
                              error.column, error.text);
    *value_out = value;
    return TIDE_OK;
}

tide_status tide_json_parse(tide_text text, json_t **value_out, tide_error *err)
{
    return parse(text, JSON_REJECT_DUPLICATES, value_out, err);
}

tide_status tide_json_parse_stored(tide_text text, json_t **value_out, tide_error *err)
{
    return parse(text, 0, value_out, err);
}

static tide_status field_of(const json_t *object, const char *key, const json_t **value_out,
                            tide_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (value == NULL || json_is_null(value))
        return tide_error_set(err, TIDE_NOT_FOUND, "field \"%s\" is missing", key);
    *value_out = value;
    return TIDE_OK;
}

static tide_status wrong_type(const char *key, const char *wanted, tide_error *err)
{
    return tide_error_set(err, TIDE_INVALID, "field \"%s\" is not %s", key, wanted);
}

tide_status tide_json_get_text(const json_t *object, const char *key, tide_text *text_out,
                               tide_error *err)
{
    const json_t *value = NULL;
    tide_status rc = field_of(object, key, &value, err);
    if (rc != TIDE_OK)
        return rc;
    if (!json_is_string(value))
        return wrong_type(key, "a string", err);
    *text_out = (tide_text){json_string_value(value), json_string_length(value)};
    return TIDE_OK;
}

tide_status tide_json_get_u64(const json_t *object, const char *key, uint64_t *number_out,
                              tide_error *err)
{
    const json_t *value = NULL;
    tide_status rc = field_of(object, key, &value, err);
    if (rc != TIDE_OK)
        return rc;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return wrong_type(key, "a whole number of at least 0", err);
    *number_out = (uint64_t)json_integer_value(value);
    return TIDE_OK;
}

tide_status tide_json_get_bool(const json_t *object, const char *key, bool *flag_out,
                               tide_error *err)
{
    const json_t *value = NULL;
    tide_status rc = field_of(object, key, &value, err);
    if (rc != TIDE_OK)
        return rc;
    if (!json_is_boolean(value))
        return wrong_type(key, "true or false", err);
    *flag_out = json_is_true(value);
    return TIDE_OK;
}

tide_status tide_json_get_object(const json_t *object, const char *key, const json_t **object_out,
                                 tide_error *err)
{
    const json_t *value = NULL;
    tide_status rc = field_of(object, key, &value, err);
    if (rc != TIDE_OK)
        return rc;
    if (!json_is_object(value))
        return wrong_type(key, "an object", err);
    *object_out = value;
    return TIDE_OK;
}

tide_status tide_json_get_array(const json_t *object, const char *key, const json_t **array_out,
                                tide_error *err)
{
    const json_t *value = NULL;
    tide_status rc = field_of(object, key, &value, err);
    if (rc != TIDE_OK)
        return rc;
    if (!json_is_array(value))
        return wrong_type(key, "an array", err);
    *array_out = value;
    return TIDE_OK;
}

/* ---- writing ---------------------------------------------------------------- */

void tide_json_object(tide_json *json)
{
    json->value = json_object();
    json->failed = json->value == NULL;
}

void tide_json_array(tide_json *json)
{
    json->value = json_array();
    json->failed = json->value == NULL;
}

void tide_json_done(tide_json *json)
{
    if (json->value != NULL)
        json_decref(json->value);
    *json = (tide_json){NULL, false};
}

/* Takes ownership of `value`; NULL means that creating it failed. */
static void put(tide_json *json, const char *key, json_t *value)
{
    TIDE_ASSERT(key != NULL);
    if (json->failed) {
        json_decref(value);
        return;
    }
    TIDE_ASSERT(json_is_object(json->value));
    if (json_object_set_new(json->value, key, value) != 0)
        json->failed = true;
}

void tide_json_set_text(tide_json *json, const char *key, tide_text text)
{
    put(json, key, string_of(text));
}

void tide_json_set_cstr(tide_json *json, const char *key, const char *text)
{
    put(json, key, text == NULL ? json_null() : string_of(tide_text_of(text)));
}

/* jansson cannot hold numbers beyond 2^63.  Ours never get there; the cap keeps a wrong one from
 * turning negative. */
void tide_json_set_u64(tide_json *json, const char *key, uint64_t number)
{
    put(json, key, json_integer((json_int_t)(number > INT64_MAX ? INT64_MAX : number)));
}

void tide_json_set_i64(tide_json *json, const char *key, int64_t number)
{
    put(json, key, json_integer(number));
}

void tide_json_set_bool(tide_json *json, const char *key, bool flag)
{
    put(json, key, json_boolean(flag));
}

void tide_json_set_null(tide_json *json, const char *key)
{
    put(json, key, json_null());
}

void tide_json_set(tide_json *json, const char *key, tide_json *child)
{
    json->failed = json->failed || child->failed;
    put(json, key, child->value);
    *child = (tide_json){NULL, false};
}

static void append(tide_json *json, json_t *value)
{
    if (json->failed) {
        json_decref(value);
        return;
    }
    TIDE_ASSERT(json_is_array(json->value));
    if (json_array_append_new(json->value, value) != 0)
        json->failed = true;
}

void tide_json_append(tide_json *json, tide_json *child)
{
    json->failed = json->failed || child->failed;
    append(json, child->value);
    *child = (tide_json){NULL, false};
}

void tide_json_append_u64(tide_json *json, uint64_t number)
{
    append(json, json_integer((json_int_t)(number > INT64_MAX ? INT64_MAX : number)));
}

void tide_json_append_cstr(tide_json *json, const char *text)
{
    append(json, json_string(text));
}

void tide_json_set_raw(tide_json *json, const char *key, tide_text text)
{
    json_t *value = NULL;
    if (text.bytes > 0)
        value = json_loadb(text.data, text.bytes, JSON_DECODE_ANY, NULL);
    put(json, key, value != NULL ? value : string_of(text));
}

/* Destination of jansson's output and the first write failure. jansson ignores some failures of its
 * callback and keeps writing, so the first one must be kept. */
struct printed {
    tide_buf *out;
    tide_status rc;
};

static int print_more(const char *bytes, size_t count, void *arg)
{
    struct printed *printed = arg;
    if (printed->rc == TIDE_OK)
        printed->rc = tide_buf_add(printed->out, bytes, count);
    return printed->rc == TIDE_OK ? 0 : -1;
}

/* Appends everything, or leaves the buffer unchanged. */
static tide_status print(const json_t *value, size_t flags, const char *end, tide_buf *out)
{
    const size_t bytes_before = out->bytes;
    struct printed printed = {out, TIDE_OK};
    const int failed = json_dump_callback(value, print_more, &printed, flags);
    tide_status rc = printed.rc;
    if (failed != 0 && rc == TIDE_OK)
        rc = TIDE_NO_MEMORY; /* jansson ran out of memory itself */
    if (rc == TIDE_OK)
        rc = tide_buf_add_text(out, end);
    if (rc == TIDE_OK)
        return TIDE_OK;
    out->bytes = bytes_before;
    if (out->data != NULL)
        out->data[bytes_before] = '\0';
    return rc;
}

static tide_status dump(const tide_json *json, size_t flags, tide_buf *out)
{
    if (json->failed)
        return TIDE_NO_MEMORY;
    TIDE_ASSERT(json->value != NULL);
    return print(json->value, flags, "\n", out);
}

tide_status tide_json_line(const tide_json *json, tide_buf *line)
{
    return dump(json, JSON_COMPACT, line);
}

tide_status tide_json_pretty(const tide_json *json, tide_buf *text)
{
    return dump(json, JSON_INDENT(2), text);
}

tide_status tide_json_escape(tide_text text, tide_buf *out)
{
    json_t *value = string_of(text);
    if (value == NULL)
        return TIDE_NO_MEMORY;
    const tide_status rc = print(value, JSON_ENCODE_ANY, "", out);
    json_decref(value);
    return rc;
}
