/* groups.h - a test program in several files, one for each topic.
 *
 * Each file ends with its tests and GROUP(topic, tests); the program's main file names
 * the groups and hands them to groups_run().  Groups run in that order, one after the
 * other, and a failure in one does not keep the next from running. */
#ifndef TIDE_TESTS_GROUPS_H
#define TIDE_TESTS_GROUPS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A file of the program; `what` is its name. */
struct group {
    const char *what;
    const struct CMUnitTest *tests;
    size_t count;
};
#define GROUP(name, tests)                                                                         \
    const struct group group_##name = {#name, tests, sizeof(tests) / sizeof(tests)[0]}

/* What main() returns: 0 when every test of every group passed. */
static inline int groups_run(const struct group *const *groups, size_t count)
{
    int failed = 0;
    for (size_t i = 0; i < count; i++) /* cmocka's own macro wants the array itself */
        if (_cmocka_run_group_tests(groups[i]->what, groups[i]->tests, groups[i]->count, NULL,
                                    NULL) != 0)
            failed = 1;
    return failed;
}

#endif
