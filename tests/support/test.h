/* test.h - a test is written in one place: TEST() defines it and adds it to its program.
 *
 *     TEST(what_it_shows)
 *     {
 *         assert_true(...);
 *     }
 *
 * A program runs the tests of all its files; the files in the order in which they are linked, those of a file in the order
 * of its lines.  Each file is a group of cmocka's.  A program without a main() of its own runs all. */
#ifndef TIDE_TESTS_SUPPORT_TEST_H
#define TIDE_TESTS_SUPPORT_TEST_H

/* What cmocka needs before it, and what nearly every test uses. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct test {
    const char *file; /* its name without folder and ending */
    int line;
    struct CMUnitTest test;
};

/* `state` is what `before` left there; `after` runs also when the test fails. */
#define TEST_WITH(test, before, after)                                                             \
    static void test(void **state);                                                                \
    TEST_ADD(test, test, before, after)                                                            \
    static void test(__attribute__((unused)) void **state)
#define TEST(test) TEST_WITH(test, NULL, NULL)

/* The same with the fixture as the parameter of the test, e.g. `struct fixture *f`. */
#define TEST_ON(test, parameter, before, after)                                                    \
    static void test(parameter);                                                                   \
    static void run_##test(void **state)                                                           \
    {                                                                                              \
        test(*state);                                                                              \
    }                                                                                              \
    TEST_ADD(test, run_##test, before, after)                                                      \
    static void test(__attribute__((unused)) parameter)

/* A test of one value: `make` is the expression that makes it, `end` the function that frees it. */
#define TEST_OF(test, parameter, make, end)                                                        \
    static int make_##test(void **state)                                                           \
    {                                                                                              \
        *state = (make);                                                                           \
        return 0;                                                                                  \
    }                                                                                              \
    static int end_##test(void **state)                                                            \
    {                                                                                              \
        end(*state);                                                                               \
        return 0;                                                                                  \
    }                                                                                              \
    TEST_ON(test, parameter, make_##test, end_##test)

#define TEST_ADD(test, function, before, after)                                                    \
    __attribute__((constructor)) static void add_##test(void)                                      \
    {                                                                                              \
        test_add(__FILE__, __LINE__, (struct CMUnitTest){#test, function, before, after, NULL});   \
    }
void test_add(const char *path, int line, struct CMUnitTest test);

/* Each returns what main() returns: 0 when all tests passed. */
int tests_run(bool (*wanted)(const struct test *test)); /* NULL: all */
/* All, with `before` and `after` around the tests of a file; they see the state that `before` leaves. */
int tests_run_between(CMFixtureFunction before, CMFixtureFunction after);

#endif
