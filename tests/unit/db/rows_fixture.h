/* rows_fixture.h - rows beside a ledger for tests, on both databases.
 *
 * Each test gets an empty database: one in memory of SQLite, or a transaction on the
 * PostgreSQL of TIDE_TEST_POSTGRES that is rolled back with everything in it. */
#ifndef TIDE_TESTS_ROWS_FIXTURE_H
#define TIDE_TESTS_ROWS_FIXTURE_H

#include "db/rows.h"
#include "support/test.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        tide_error oops = {TIDE_OK, 0, ""};                                                        \
        tide_error *err = &oops;                                                                   \
        if ((call) != TIDE_OK)                                                                     \
            fail_msg("%s: %s", #call, oops.text);                                                  \
        (void)err;                                                                                 \
    } while (0)

extern tide_rows rows_now; /* of the test that runs */

void rows_exec(const char *sql); /* on PostgreSQL */
int rows_setup(void **state);
int rows_teardown(void **state);
/* Runs the tests on SQLite, then, where there is one, on PostgreSQL. */
int rows_tests_run(void);

#endif
