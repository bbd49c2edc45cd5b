/* json.c - JSON in and out: JSN1 of json.h for any bytes, and typed reading of any value. */
#include "fuzz.h"
#include "base/json.h"

static void read_fields(const json_t *value)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_text text;
    uint64_t number;
    bool flag;
    const json_t *inner;
    static const char *const keys[] = {"a", "op", "id", "filter", "items"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        (void)tide_json_get_text(value, keys[i], &text, &err);
        (void)tide_json_get_u64(value, keys[i], &number, &err);
        (void)tide_json_get_bool(value, keys[i], &flag, &err);
        (void)tide_json_get_object(value, keys[i], &inner, &err);
        (void)tide_json_get_array(value, keys[i], &inner, &err);
    }
}

/* One line, UTF-8, and JSON again (JSN1). */
static void check_line(const tide_buf *line)
{
    tide_error err = {TIDE_OK, 0, ""};
    TIDE_ASSERT(line->bytes > 0 && line->data[line->bytes - 1] == '\n');
    TIDE_ASSERT(memchr(line->data, '\n', line->bytes - 1) == NULL);
    for (tide_text rest = tide_buf_text(line); rest.bytes > 0;) {
        size_t bytes = tide_utf8_bytes(rest);
        TIDE_ASSERT(bytes > 0);
        rest = (tide_text){rest.data + bytes, rest.bytes - bytes};
    }
    json_t *again = NULL;
    TIDE_ASSERT(tide_json_parse(tide_buf_text(line), &again, &err) == TIDE_OK);
    json_decref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tide_text text = fuzz_exact((tide_text){(const char *)data, bytes});
    tide_error err = {TIDE_OK, 0, ""};
    json_t *value = NULL;
    if (tide_json_parse(text, &value, &err) == TIDE_OK)
        read_fields(value);
    else
        TIDE_ASSERT(value == NULL && err.text[0] != '\0');
    json_decref(value);

    tide_json object;
    tide_buf line, escaped;
    tide_buf_init(&line, tide_mem_heap(), 16 << 20);
    tide_buf_init(&escaped, tide_mem_heap(), 16 << 20);
    tide_json_object(&object);
    tide_json_set_text(&object, "text", text);
    tide_json_set_raw(&object, "raw", text);
    TIDE_ASSERT(tide_json_line(&object, &line) == TIDE_OK);
    check_line(&line);
    TIDE_ASSERT(tide_json_escape(text, &escaped) == TIDE_OK);
    TIDE_ASSERT(escaped.bytes >= 2 && escaped.data[0] == '"');
    tide_json_done(&object);
    tide_buf_done(&line);
    tide_buf_done(&escaped);
    free((void *)(uintptr_t)text.data);
    return 0;
}
