/* json.h - helpers around jansson: statuses, bounded parsing, and a builder with a sticky failure.
 *
 * jansson parses and prints; this gives it our statuses, a sticky failure for
 * building, and typed access that says which field was wrong.  It refuses
 * nothing that is valid JSON except what is larger than the caller's ceiling,
 * deeper than jansson's own bound, has a key twice, or a whole number that does
 * not fit an int64_t.
 *
 * Invariants:
 *   JSN1  a line from tide_json_line() is valid JSON in UTF-8 without a newline inside: bytes that
 *         are not UTF-8, and zeros, were replaced by U+FFFD on the way in.
 *   JSN2  a builder that failed once stays failed, so that one check at the end is enough.
 */
#ifndef TIDE_BASE_JSON_H
#define TIDE_BASE_JSON_H

#include "base/buf.h"
#include "base/status.h"
#include "base/text.h"

#include <jansson.h>

/* ---- reading ---- */

/* Parses one JSON object or array with nothing after it.  The caller owns it (json_decref). */
tide_status tide_json_parse(tide_text text, json_t **value_out, tide_error *err);
/* Like tide_json_parse(), for values from a database: of a duplicate key the last value counts. */
tide_status tide_json_parse_stored(tide_text text, json_t **value_out, tide_error *err);

/* A field of an object by type.  Absent or null: TIDE_NOT_FOUND.  Another type:
 * TIDE_INVALID, err names the field.  The text is borrowed from the value. */
tide_status tide_json_get_text(const json_t *object, const char *key, tide_text *text_out,
                               tide_error *err);
tide_status tide_json_get_u64(const json_t *object, const char *key, uint64_t *number_out,
                              tide_error *err);
tide_status tide_json_get_bool(const json_t *object, const char *key, bool *flag_out,
                               tide_error *err);
tide_status tide_json_get_object(const json_t *object, const char *key, const json_t **object_out,
                                 tide_error *err);
tide_status tide_json_get_array(const json_t *object, const char *key, const json_t **array_out,
                                tide_error *err);

/* ---- writing ---- */

typedef struct tide_json {
    json_t *value; /* owned until taken; an object or an array */
    bool failed;   /* sticky (JSN2) */
} tide_json;

void tide_json_object(tide_json *json);
void tide_json_array(tide_json *json);
void tide_json_done(tide_json *json); /* zeroed is fine */
/* Freed at the end of its block. */
#define tide_auto_json __attribute__((cleanup(tide_json_done))) tide_json
/* Sets a field.  An existing one is replaced. */
void tide_json_set_text(tide_json *json, const char *key, tide_text text);
void tide_json_set_cstr(tide_json *json, const char *key, const char *text); /* NULL: null */
void tide_json_set_u64(tide_json *json, const char *key, uint64_t number);
void tide_json_set_i64(tide_json *json, const char *key, int64_t number);
void tide_json_set_bool(tide_json *json, const char *key, bool flag);
void tide_json_set_null(tide_json *json, const char *key);
/* Moves `child` into `json`, also when that fails; `child` is empty afterwards. */
void tide_json_set(tide_json *json, const char *key, tide_json *child);
void tide_json_append(tide_json *json, tide_json *child);
void tide_json_append_u64(tide_json *json, uint64_t number);
void tide_json_append_cstr(tide_json *json, const char *text);
/* Stored text that should be JSON: as the value it holds, else as a string. */
void tide_json_set_raw(tide_json *json, const char *key, tide_text text);

/* Appends one compact line and a newline to `line`.  TIDE_NO_MEMORY, TIDE_FULL: the buffer is
 * unchanged. */
tide_status tide_json_line(const tide_json *json, tide_buf *line);
/* Like tide_json_line(), indented over several lines for display. */
tide_status tide_json_pretty(const tide_json *json, tide_buf *text);
/* Appends one quoted string, for writers that need no object. */
tide_status tide_json_escape(tide_text text, tide_buf *out);

/* The number of bytes, 1..4, of the UTF-8 character at the front of `text`; 0
 * when there is none. */
size_t tide_utf8_bytes(tide_text text);
/* Whether JSON can carry it as it is: UTF-8, and without a zero byte. */
bool tide_utf8_is_clean(tide_text text);
/* The front of a UTF-8 text, at most `bytes_max` bytes of it, whole characters. */
tide_text tide_utf8_cut(tide_text text, size_t bytes_max);

#endif
