/* once_test.c - answers of POSTs in their rows, on both databases: one key, one request, one answer, for a
 * day (ONC1 to ONC3). */
#include "serve/once/once.h"
#include "unit/db/rows_fixture.h"

#include <string.h>

#define CASE(name) TEST_WITH(name, rows_setup, rows_teardown)

static const uint64_t now_ms = 1794700000000;
static const unsigned char one[TIDE_ONCE_DIGEST_BYTES] = {1, 0, 255};
static const unsigned char two[TIDE_ONCE_DIGEST_BYTES] = {1, 0, 254};

struct begun {
    tide_once once;
    int status;
    uint64_t asked_unix_ms;
    char body[64];
};

static struct begun begin_as(const struct tide_once_name *name, const unsigned char *digest,
                             uint64_t at_ms)
{
    struct begun begun;
    struct tide_once_row row;
    tide_buf body;
    tide_buf_init(&body, tide_mem_heap(), 1 << 20);
    OK(tide_once_begin(rows_now, name, digest, at_ms, &row, &body, err));
    begun = (struct begun){row.once, row.status, row.asked_unix_ms, ""};
    (void)strncpy(begun.body, body.bytes == 0 ? "" : tide_buf_cstr(&body), sizeof begun.body - 1);
    tide_buf_done(&body);
    return begun;
}

static struct tide_once_name name_of(const char *home, uint64_t who, const char *key)
{
    return (struct tide_once_name){home, who, tide_text_of(key)};
}

CASE(the_second_request_gets_the_answer_of_the_first)
{
    const struct tide_once_name name = name_of("", 7, "k");
    OK(tide_once_tables(rows_now, err));
    assert_int_equal(begin_as(&name, one, now_ms).once, TIDE_ONCE_FIRST);
    OK(tide_once_end(rows_now, &name, 409, TIDE_TEXT("{\"n\":1}\n"), err));
    for (int i = 0; i < 2; i++) {
        const struct begun again = begin_as(&name, one, now_ms + 1000);
        assert_int_equal(again.once, TIDE_ONCE_STORED);
        assert_int_equal(again.status, 409);
        assert_string_equal(again.body, "{\"n\":1}\n");
    }
    assert_int_equal(begin_as(&name, two, now_ms).once, TIDE_ONCE_OTHER);
}

/* A crash between begin and end leaves a row without an answer. */
CASE(a_request_without_an_answer_is_first_again)
{
    const struct tide_once_name name = name_of("", 7, "k");
    OK(tide_once_tables(rows_now, err));
    assert_int_equal(begin_as(&name, one, now_ms).asked_unix_ms, now_ms);
    const struct begun again = begin_as(&name, one, now_ms + 1000);
    assert_int_equal(again.once, TIDE_ONCE_FIRST);
    assert_int_equal(again.asked_unix_ms, now_ms); /* what happened since then was its effect */
    assert_int_equal(begin_as(&name, two, now_ms).once, TIDE_ONCE_OTHER); /* still taken (ONC2) */
    OK(tide_once_end(rows_now, &name, 0, TIDE_TEXT(""), err));            /* no answer: it goes */
    assert_int_equal(begin_as(&name, two, now_ms).once, TIDE_ONCE_FIRST);
    OK(tide_once_end(rows_now, &name, 200, TIDE_TEXT("{}"), err));
    OK(tide_once_end(rows_now, &name, 0, TIDE_TEXT(""), err)); /* an answer stays */
    assert_int_equal(begin_as(&name, two, now_ms).once, TIDE_ONCE_STORED);
}

CASE(keys_of_other_clients_and_homes_are_theirs)
{
    const struct tide_once_name names[] = {name_of("", 7, "k"), name_of("", 8, "k"),
                                           name_of("h:/x", 7, "k"), name_of("", 7, "K")};
    OK(tide_once_tables(rows_now, err));
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(begin_as(&names[i], one, now_ms).once, TIDE_ONCE_FIRST);
        OK(tide_once_end(rows_now, &names[i], 200 + (int)i, TIDE_TEXT("{}"), err));
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(begin_as(&names[i], one, now_ms).status, 200 + (int)i);
}

CASE(answers_are_kept_a_day)
{
    const struct tide_once_name name = name_of("", 7, "k");
    OK(tide_once_tables(rows_now, err));
    assert_int_equal(begin_as(&name, one, now_ms).once, TIDE_ONCE_FIRST);
    OK(tide_once_end(rows_now, &name, 200, TIDE_TEXT("{}"), err));
    assert_int_equal(begin_as(&name, one, now_ms + TIDE_ONCE_LIFE_MS).once, TIDE_ONCE_STORED);
    assert_int_equal(begin_as(&name, one, now_ms + TIDE_ONCE_LIFE_MS + 1).once, TIDE_ONCE_FIRST);
}
