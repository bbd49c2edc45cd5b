#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TESTS_MAX = 400, FILE_BYTES = 64 };

static struct test all[TESTS_MAX];
static size_t count;
static char names[TESTS_MAX][FILE_BYTES];

/* Constructors of a file run in any order, those of different files in the order of the files. */
void test_add(const char *path, int line, struct CMUnitTest test)
{
    if (count == TESTS_MAX)
        abort();
    const char *slash = strrchr(path, '/');
    char *name = names[count];
    (void)snprintf(name, FILE_BYTES, "%s", slash != NULL ? slash + 1 : path);
    name[strcspn(name, ".")] = '\0';
    size_t at = count++;
    for (; at > 0 && strcmp(all[at - 1].file, name) == 0 && all[at - 1].line > line; at--)
        all[at] = all[at - 1];
    all[at] = (struct test){name, line, test};
}

static int run(bool (*wanted)(const struct test *test), CMFixtureFunction before,
               CMFixtureFunction after)
{
    static struct CMUnitTest group[TESTS_MAX];
    int failed = 0;
    for (size_t i = 0; i < count;) {
        const char *file = all[i].file;
        size_t members = 0;
        for (; i < count && strcmp(all[i].file, file) == 0; i++)
            if (wanted == NULL || wanted(&all[i]))
                group[members++] = all[i].test;
        if (members > 0 && _cmocka_run_group_tests(file, group, members, before, after) != 0)
            failed = 1;
    }
    return failed;
}

int tests_run(bool (*wanted)(const struct test *test))
{
    return run(wanted, NULL, NULL);
}

int tests_run_between(CMFixtureFunction before, CMFixtureFunction after)
{
    return run(NULL, before, after);
}
