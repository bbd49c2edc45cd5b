/* Answers with a long list, taken apart while they stream in (LST1 to LST4 of net/api/list.h). */
#include "net/api/list.h"
#include "base/rng.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/sweep.h"
#include "support/test.h"

enum { ELEMENT_BYTES_MAX = 256 };

struct seen {
    char ids[256];      /* "1,2," */
    uint64_t refuse_at; /* the element that is refused with TIDE_CANCELED; 0: none */
    uint64_t count;
};

static tide_status see(void *arg, const json_t *element)
{
    struct seen *seen = arg;
    const char *id = json_string_value(json_object_get(element, "id"));
    const size_t bytes = strlen(seen->ids);
    (void)snprintf(seen->ids + bytes, sizeof seen->ids - bytes, "%s,", id == NULL ? "?" : id);
    return ++seen->count == seen->refuse_at ? TIDE_CANCELED : TIDE_OK;
}

/* In pieces of `piece` bytes. */
static tide_status take(const char *text, size_t piece, struct seen *seen, json_t **rest_out,
                        tide_error *err)
{
    struct tide_api_list list;
    const size_t bytes = strlen(text);
    tide_api_list_init(&list, "value", ELEMENT_BYTES_MAX, see, seen, tide_mem_heap());
    for (size_t at = 0; at < bytes; at += piece) {
        char *exact = malloc(piece); /* so that a sanitizer sees one byte too far */
        assert_non_null(exact);
        const size_t count = bytes - at < piece ? bytes - at : piece;
        memcpy(exact, text + at, count);
        (void)tide_api_list_write(&list, exact, count);
        free(exact);
    }
    const tide_status rc = tide_api_list_end(&list, rest_out, err);
    tide_api_list_done(&list);
    return rc;
}

static const struct {
    const char *text;
    const char *ids; /* NULL: refused */
} rows[] = {
    {"{\"value\":[]}", ""},
    {"{\"value\":[{\"id\":\"1\"}]}", "1,"},
    {" { \"value\" : [ { \"id\" : \"1\" } , {\"id\":\"2\"} ] , \"x\" : [1,[2]] } ", "1,2,"},
    {"{\"@odata.context\":\"c\",\"value\":[{\"id\":\"a]}\\\"\",\"b\":[{\"id\":\"no\"}]},{}],\"l\":"
     "\"https://x\"}",
     "a]}\",?,"},
    {"{\"x\":{\"value\":[{\"id\":\"no\"}]},\"value\":[{\"id\":\"1\"}]}", "1,"},
    {"{\"x\":\"value\",\"y\":[{\"id\":\"no\"}],\"value\":[]}", ""},
    {"{\"x\":\"\\\"value\\\":[{\",\"value\":[{\"id\":\"1\"}]}", "1,"},
    /* malformed */
    {"", NULL},
    {"{}", NULL},
    {"[]", NULL},
    {"null", NULL},
    {"{\"value\":null}", NULL},
    {"{\"value\":{}}", NULL},
    {"{\"value\":\"[]\"}", NULL},
    {"{\"value\":[1]}", NULL},
    {"{\"value\":[\"x\"]}", NULL},
    {"{\"value\":[[]]}", NULL},
    {"{\"value\":[{},]}", NULL},
    {"{\"value\":[,{}]}", NULL},
    {"{\"value\":[{}{}]}", NULL},
    {"{\"value\":[{}}]}", NULL},
    {"{\"value\":[{]]}", NULL},
    {"{\"value\":[{\"a\":1,\"a\":2}]}", NULL},
    {"{\"value\":[]", NULL},
    {"{\"value\":[{\"id\":\"1\"}", NULL},
    {"{\"value\":[{\"id\":", NULL},
    {"{\"value\":[]}}", NULL},
    {"{\"value\":[]} x", NULL},
    {"{\"value\":[],\"value\":[]}", NULL},
    {"{\"value\":[{\"id\":\"1\"}],\"value\":[{\"id\":\"1\"}]}", NULL},
    /* A name that is written with escapes is not recognized; its elements are not lost silently. */
    {"{\"valu\\u0065\":[{\"id\":\"1\"}]}", NULL},
    {"{\"valu\\u0065\":[{\"id\":\"1\"}],\"value\":[]}", NULL},
    {"{\"a\":[{\"id\":\"1\"}]}", NULL},
    {"<html>", NULL},
};

TEST(elements_come_in_order_however_the_text_is_split)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t piece = 1; piece <= strlen(rows[i].text) + 1; piece++) {
            struct seen seen = {.count = 0};
            tide_error err = {0};
            json_t *rest = NULL;
            const tide_status rc = take(rows[i].text, piece, &seen, &rest, &err);
            if (rc != (rows[i].ids == NULL ? TIDE_SERVER : TIDE_OK) ||
                (rows[i].ids != NULL && strcmp(rows[i].ids, seen.ids) != 0))
                fail_msg("%s in pieces of %zu: %s, %s", rows[i].text, piece, tide_status_name(rc),
                         seen.ids);
            assert_int_equal(rest != NULL, rc == TIDE_OK);
            assert_int_equal(err.status, rc);
            json_decref(rest);
        }
    }
}

TEST(what_is_around_the_list_is_given_at_the_end)
{
    struct seen seen = {.count = 0};
    json_t *rest = NULL;
    OK(take("{\"a\":1,\"value\":[{\"id\":\"1\"}],\"@odata.nextLink\":\"https://x/y\"}", 7, &seen,
            &rest, NULL));
    assert_string_equal(json_string_value(json_object_get(rest, "@odata.nextLink")), "https://x/y");
    assert_int_equal(json_integer_value(json_object_get(rest, "a")), 1);
    assert_int_equal(json_array_size(json_object_get(rest, "value")), 0);
    json_decref(rest);
}

TEST(a_refused_element_ends_the_answer)
{
    struct seen seen = {.refuse_at = 2};
    tide_error err = {0};
    json_t *rest = NULL;
    assert_int_equal(
        take("{\"value\":[{\"id\":\"1\"},{\"id\":\"2\"},{\"id\":\"3\"}]}", 5, &seen, &rest, &err),
        TIDE_CANCELED);
    assert_string_equal(seen.ids, "1,2,");
    assert_null(rest);
}

/* LST4 */
TEST(an_element_a_rest_and_a_depth_have_ceilings)
{
    static const struct {
        const char *before, *fill, *after;
        size_t fits, overflows;
    } cases[] = {
        {"{\"value\":[{\"id\":\"", "x", "\"}]}", ELEMENT_BYTES_MAX - 9, ELEMENT_BYTES_MAX - 8},
        {"{\"value\":[],\"x\":\"", "y", "\"}", TIDE_API_LIST_REST_BYTES_MAX - 19,
         TIDE_API_LIST_REST_BYTES_MAX - 18},
        {"{\"value\":[],\"x\":", "[", "", 0, TIDE_API_LIST_DEPTH_MAX},
    };
    const size_t room = TIDE_API_LIST_REST_BYTES_MAX + 100;
    char *text = malloc(room);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t sizes[] = {cases[i].fits, cases[i].overflows};
        for (size_t j = 0; j < 2; j++) {
            struct seen seen = {.count = 0};
            json_t *rest = NULL;
            size_t bytes = (size_t)snprintf(text, room, "%s", cases[i].before);
            memset(text + bytes, cases[i].fill[0], sizes[j]);
            bytes += sizes[j];
            (void)snprintf(text + bytes, room - bytes, "%s", cases[i].after);
            for (size_t piece = 1; piece < 100000; piece *= 50) {
                const tide_status rc = take(text, piece, &seen, &rest, NULL);
                if (sizes[j] > 0)
                    assert_int_equal(rc, j == 0 ? TIDE_OK : TIDE_SERVER);
                json_decref(rest);
                rest = NULL;
            }
        }
    }
    free(text);
}

TEST(another_answer_starts_from_the_beginning)
{
    struct seen seen = {.count = 0};
    struct tide_api_list list;
    json_t *rest = NULL;
    tide_api_list_init(&list, "value", ELEMENT_BYTES_MAX, see, &seen, tide_mem_heap());
    static const char *const broken[] = {"{\"value\":[{\"id\":\"1", "{\"value\":[7", "x"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        (void)tide_api_list_write(&list, broken[i], strlen(broken[i]));
        tide_api_list_restart(&list);
    }
    static const char whole[] = "{\"value\":[{\"id\":\"2\"}]}";
    OK(tide_api_list_write(&list, whole, sizeof whole - 1));
    OK(tide_api_list_end(&list, &rest, NULL));
    assert_string_equal(seen.ids, "2,");
    json_decref(rest);
    tide_api_list_done(&list);
}

TEST(a_list_survives_every_failed_allocation)
{
    static const char text[] = "{\"value\":[{\"id\":\"1\"},{\"id\":\"2\"}],\"x\":\"y\"}";
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        struct seen seen = {.count = 0};
        struct tide_api_list list;
        json_t *rest = NULL;
        tide_api_list_init(&list, "value", ELEMENT_BYTES_MAX, see, &seen, &mem.base);
        for (size_t i = 0; i < sizeof text - 1; i++)
            (void)tide_api_list_write(&list, text + i, 1);
        const tide_status rc = tide_api_list_end(&list, &rest, NULL);
        json_decref(rest);
        tide_api_list_done(&list);
        assert_int_equal(mem.bytes_live, 0);
        assert_true(rc == TIDE_OK || mem.fired);
    }
}

/* Random pieces of JSON: whatever they make, split or whole they mean the same (LST2). */
TEST(random_texts_mean_the_same_however_they_are_split)
{
    static const char *const pieces[] = {"{", "}", "[",  "]",    "\"value\":", "\"id\":\"1\"",
                                         ",", " ", "\"", "\\\"", "\"x\":7",    "{\"id\":\"2\"}"};
    tide_rng rng = tide_rng_seeded(7);
    uint64_t good = 0;
    for (uint64_t round = 0; round < scaled(30000); round++) {
        char text[512];
        (void)snprintf(text, sizeof text, "%s",
                       tide_rng_below(&rng, 2) == 0 ? "" : "{\"value\":[{\"id\":\"0\"}");
        const uint64_t count = tide_rng_below(&rng, 8);
        for (uint64_t i = 0; i < count; i++)
            (void)strncat(text, pieces[tide_rng_below(&rng, sizeof pieces / sizeof pieces[0])],
                          sizeof text - strlen(text) - 1);
        if (tide_rng_below(&rng, 2) == 0)
            (void)strncat(text, "]}", sizeof text - strlen(text) - 1);
        struct seen whole = {.count = 0}, split = {.count = 0};
        json_t *rest = NULL;
        const tide_status rc = take(text, sizeof text, &whole, &rest, NULL);
        json_decref(rest);
        rest = NULL;
        assert_int_equal(take(text, 1 + tide_rng_below(&rng, 5), &split, &rest, NULL), rc);
        assert_string_equal(whole.ids, split.ids);
        json_decref(rest);
        good += rc == TIDE_OK;
    }
    assert_true(good > 0);
}
