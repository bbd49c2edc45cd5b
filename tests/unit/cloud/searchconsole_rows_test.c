/* The extractor of search analytics rows (GSR1 of searchconsole_rows.h, LST1 to LST4 of net/api/list.h).
 *
 * Goal: it gives out exactly the rows that a JSON library sees, however the text is cut,
 * and refuses what the library refuses.
 * Method: answers made from a seed, half of them spoilt by an edit; jansson over the whole
 * text is the model. */
#include "base/rng.h"
#include "cloud/searchconsole_rows.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/test.h"

#include <math.h>

static const uint32_t query_page = 1u << TIDE_SC_QUERY | 1u << TIDE_SC_PAGE;

struct taken {
    json_t *rows; /* [[query, page, clicks, impressions, ctr, position or null]] */
};

static tide_status take(const struct tide_sc_row *row, void *arg)
{
    struct taken *taken = arg;
    const tide_text query = row->keys[TIDE_SC_QUERY];
    const tide_text page = row->keys[TIDE_SC_PAGE];
    json_t *one = json_array();
    (void)json_array_append_new(one, json_stringn(query.data, query.bytes));
    (void)json_array_append_new(one, json_stringn(page.data, page.bytes));
    (void)json_array_append_new(one, json_real(row->clicks));
    (void)json_array_append_new(one, json_real(row->impressions));
    (void)json_array_append_new(one, json_real(row->ctr));
    (void)json_array_append_new(one, isnan(row->position) ? json_null() : json_real(row->position));
    (void)json_array_append_new(taken->rows, one);
    return TIDE_OK;
}

static void forget(void *arg)
{
    struct taken *taken = arg;
    (void)json_array_clear(taken->rows);
}

static tide_status extract(tide_text text, tide_rng *rng, struct taken *taken,
                           struct tide_sc_page *page)
{
    const struct tide_sc_sink sink = {take, forget, taken};
    struct tide_sc_rows rows;
    tide_sc_rows_init(&rows, query_page, &sink, tide_mem_heap());
    tide_status rc = TIDE_OK;
    for (size_t at = 0; rc == TIDE_OK && at < text.bytes;) {
        const size_t most = text.bytes - at;
        const size_t some = rng == NULL ? most : 1 + (size_t)tide_rng_below(rng, most);
        rc = tide_sc_rows_write(&rows, text.data + at, some);
        at += some;
    }
    const tide_status ended = tide_sc_rows_end(&rows, page, NULL);
    tide_sc_rows_done(&rows);
    return rc == TIDE_OK ? ended : rc;
}

/* ---- the model ---- */

static double number(const json_t *row, const char *key, bool *good)
{
    const json_t *value = json_object_get(row, key);
    *good = *good && json_is_number(value);
    return json_number_value(value);
}

/* false: an answer that may be refused. */
static bool model(tide_text text, json_t *rows)
{
    json_error_t error;
    json_t *answer = json_loadb(text.data, text.bytes, JSON_REJECT_DUPLICATES, &error);
    const json_t *list = json_object_get(answer, "rows");
    bool good = json_is_object(answer) && (list == NULL || json_is_array(list));
    size_t index = 0;
    const json_t *row = NULL;
    json_array_foreach(list, index, row)
    {
        const json_t *keys = json_object_get(row, "keys");
        const json_t *position = json_object_get(row, "position");
        json_t *one = json_array();
        good = good && json_array_size(keys) == 2 && json_is_string(json_array_get(keys, 0)) &&
               json_is_string(json_array_get(keys, 1));
        (void)json_array_append(one, json_array_get(keys, 0));
        (void)json_array_append(one, json_array_get(keys, 1));
        (void)json_array_append_new(one, json_real(number(row, "clicks", &good)));
        (void)json_array_append_new(one, json_real(number(row, "impressions", &good)));
        bool ctr = true;
        (void)json_array_append_new(one, json_real(number(row, "ctr", &ctr)));
        (void)json_array_append_new(one, position == NULL ? json_null()
                                                          : json_real(json_number_value(position)));
        (void)json_array_append_new(rows, one);
    }
    json_decref(answer);
    return good;
}

/* ---- answers ---- */

static json_t *random_text(tide_rng *rng)
{
    static const char *const bits[] = {"a", "\"", "\\", "\n", "köln", "🌊", "}", "]", "{", ",", " "};
    char text[256];
    size_t bytes = 0;
    const size_t count = (size_t)tide_rng_below(rng, 10);
    for (size_t i = 0; i < count; i++) {
        const char *bit = bits[tide_rng_below(rng, sizeof bits / sizeof bits[0])];
        memcpy(text + bytes, bit, strlen(bit));
        bytes += strlen(bit);
    }
    return json_stringn(text, bytes);
}

static json_t *random_number(tide_rng *rng)
{
    switch (tide_rng_below(rng, 4)) {
    case 0:
        return json_integer((json_int_t)tide_rng_below(rng, 100000));
    case 1:
        return json_real((double)tide_rng_below(rng, 1u << 30) / 7.0);
    case 2:
        return json_real((double)tide_rng_below(rng, 1000) / 1000.0);
    default:
        return json_real((double)tide_rng_below(rng, 1u << 20) * 1e12);
    }
}

static char *random_answer(tide_rng *rng)
{
    json_t *answer = json_object();
    json_t *rows = json_array();
    const size_t count = (size_t)tide_rng_below(rng, 12);
    for (size_t i = 0; i < count; i++) {
        json_t *row = json_object();
        (void)json_object_set_new(row, "clicks", random_number(rng));
        (void)json_object_set_new(row, "keys",
                                  json_pack("[oo]", random_text(rng), random_text(rng)));
        (void)json_object_set_new(row, "impressions", random_number(rng));
        (void)json_object_set_new(row, "ctr", random_number(rng));
        if (tide_rng_below(rng, 3) > 0)
            (void)json_object_set_new(row, "position", random_number(rng));
        if (tide_rng_below(rng, 5) == 0)
            (void)json_object_set_new(row, "new", json_pack("{s:[i,s]}", "x", 1, "]}"));
        (void)json_array_append_new(rows, row);
    }
    if (tide_rng_below(rng, 4) == 0)
        (void)json_object_set_new(answer, "other", json_pack("{s:[{}]}", "rows"));
    if (count > 0 || tide_rng_below(rng, 2) == 0)
        (void)json_object_set_new(answer, "rows", rows);
    else
        json_decref(rows);
    (void)json_object_set_new(answer, "responseAggregationType", json_string("byPage"));
    (void)json_object_set_new(answer, "metadata",
                              json_pack("{s:s}", "firstIncompleteDate", "2026-09-01"));
    char *text = json_dumps(answer, tide_rng_below(rng, 2) == 0 ? JSON_COMPACT : JSON_INDENT(2));
    json_decref(answer);
    return text;
}

/* ---- tests ---- */

TEST(rows_are_those_of_the_library_however_the_text_is_cut)
{
    size_t refused = 0;
    const size_t seeds = scaled(40000);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        struct taken taken = {json_array()};
        struct tide_sc_page page = {0};
        json_t *expected = json_array();
        char *text = random_answer(&rng);
        const size_t bytes = strlen(text);
        if (tide_rng_below(&rng, 2) == 0) /* spoilt */
            text[tide_rng_below(&rng, bytes)] = "{}[],:\"x0 "[tide_rng_below(&rng, 10)];
        const bool good = model((tide_text){text, bytes}, expected);
        const tide_status rc = extract((tide_text){text, bytes}, &rng, &taken, &page);
        refused += rc == TIDE_OK ? 0 : 1;
        if (rc == TIDE_OK && !good)
            fail_msg("seed %" PRIu64 ": taken, though it is not as it should be: %s", seed, text);
        if (rc == TIDE_OK && !json_equal(taken.rows, expected))
            fail_msg("seed %" PRIu64 ": other rows: %s", seed, text);
        if (rc == TIDE_OK && page.rows != json_array_size(expected))
            fail_msg("seed %" PRIu64 ": %u rows", seed, page.rows);
        free(text);
        json_decref(taken.rows);
        json_decref(expected);
    }
    assert_true(refused > 0 && refused < seeds / 2); /* both happened */
}

TEST(what_was_not_spoilt_is_taken)
{
    for (uint64_t seed = 1; seed <= scaled(5000); seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        struct taken taken = {json_array()};
        struct tide_sc_page page = {0};
        char *text = random_answer(&rng);
        if (extract(tide_text_of(text), &rng, &taken, &page) != TIDE_OK)
            fail_msg("seed %" PRIu64 ": refused: %s", seed, text);
        assert_true(page.by_page);
        assert_string_equal(page.first_incomplete, "2026-09-01");
        free(text);
        json_decref(taken.rows);
    }
}

TEST(an_empty_day_has_no_rows)
{
    struct taken taken = {json_array()};
    struct tide_sc_page page = {0};
    OK(extract(TIDE_TEXT("{\"responseAggregationType\":\"BY_PROPERTY\"}"), NULL, &taken, &page));
    assert_int_equal(page.rows, 0);
    assert_false(page.by_page);
    json_decref(taken.rows);
}

TEST(an_answer_that_ends_early_is_refused)
{
    static const char whole[] =
        "{\"rows\":[{\"keys\":[\"a\",\"b\"],\"clicks\":1,\"impressions\":2}]}";
    for (size_t bytes = 0; bytes + 1 < sizeof whole; bytes++) {
        struct taken taken = {json_array()};
        struct tide_sc_page page = {0};
        if (extract((tide_text){whole, bytes}, NULL, &taken, &page) == TIDE_OK)
            fail_msg("%zu bytes were taken for all", bytes);
        json_decref(taken.rows);
    }
}
