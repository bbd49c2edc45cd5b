/* api_list.c - an answer with a list, in any text, whole and in pieces (net/api/list.h).  The first
 * byte is the size of the pieces. */
#include "fuzz.h"
#include "net/api/list.h"

struct seen {
    uint64_t elements;
    size_t bytes; /* of all of them, as text */
};

static tide_status see(void *arg, const json_t *element)
{
    struct seen *seen = arg;
    TIDE_ASSERT(json_is_object(element));
    seen->elements++;
    seen->bytes += json_object_size(element);
    return TIDE_OK;
}

static tide_status take(tide_text text, size_t piece, struct seen *seen)
{
    struct tide_api_list list;
    json_t *rest = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    *seen = (struct seen){0};
    tide_api_list_init(&list, "value", 4096, see, seen, tide_mem_heap());
    for (size_t at = 0; at < text.bytes; at += piece) {
        const size_t left = text.bytes - at;
        (void)tide_api_list_write(&list, text.data + at, left < piece ? left : piece);
    }
    const tide_status rc = tide_api_list_end(&list, &rest, &err);
    TIDE_ASSERT((rc == TIDE_OK) == (rest != NULL));
    TIDE_ASSERT(rc == TIDE_OK || (rc == TIDE_SERVER && err.text[0] != '\0'));
    json_decref(rest);
    tide_api_list_done(&list);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    const size_t piece = (size_t)fuzz_u8(&input) + 1;
    const tide_text text = fuzz_exact((tide_text){(const char *)input.data, input.bytes});
    struct seen whole, parts;
    const tide_status rc = take(text, text.bytes + 1, &whole);
    TIDE_ASSERT(take(text, piece, &parts) == rc); /* LST2 */
    TIDE_ASSERT(whole.elements == parts.elements && whole.bytes == parts.bytes);
    if (rc == TIDE_OK) { /* LST1 */
        json_error_t error;
        json_t *value = json_loadb(text.data, text.bytes, JSON_REJECT_DUPLICATES, &error);
        TIDE_ASSERT(json_is_object(value));
        TIDE_ASSERT(json_array_size(json_object_get(value, "value")) == whole.elements);
        json_decref(value);
    }
    free((void *)(uintptr_t)text.data);
    return 0;
}
