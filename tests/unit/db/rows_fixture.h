/* rows_fixture.h - rows beside a ledger for tests, on both databases.
 *
 * Each test gets an empty database: one in memory of SQLite, or a transaction on the
 * PostgreSQL of TIDE_TEST_POSTGRES that is rolled back with everything in it. */
#ifndef TIDE_TESTS_ROWS_FIXTURE_H
#define TIDE_TESTS_ROWS_FIXTURE_H

#include "db/rows.h"
#include "support/test.h"

#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        tide_error oops = {TIDE_OK, 0, ""};                                                        \
        tide_error *err = &oops;                                                                   \
        if ((call) != TIDE_OK)                                                                     \
            fail_msg("%s: %s", #call, oops.text);                                                  \
    } while (0)

static tide_rows rows_now;
static bool rows_on_postgres;

static void rows_exec(const char *sql)
{
    PGresult *result = PQexec(rows_now.postgres, sql);
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(rows_now.postgres));
    PQclear(result);
}

static int rows_setup(void **state)
{
    rows_now = (tide_rows){.sqlite = NULL};
    if (rows_on_postgres) {
        rows_now.postgres = PQconnectdb(getenv("TIDE_TEST_POSTGRES"));
        if (PQstatus(rows_now.postgres) != CONNECTION_OK)
            fail_msg("%s", PQerrorMessage(rows_now.postgres));
        rows_exec("BEGIN");
        rows_exec("CREATE SCHEMA tidemark");
    } else {
        assert_int_equal(sqlite3_open(":memory:", &rows_now.sqlite), SQLITE_OK);
    }
    *state = &rows_now;
    return 0;
}

static int rows_teardown(void **state)
{
    (void)state;
    if (rows_on_postgres)
        PQfinish(rows_now.postgres);
    else if (sqlite3_close(rows_now.sqlite) != SQLITE_OK)
        return 1; /* a statement was not ended */
    return 0;
}

/* Runs the tests on SQLite, then, where there is one, on PostgreSQL. */
static int rows_tests_run(void)
{
    int failed = tests_run(NULL);
    if (getenv("TIDE_TEST_POSTGRES") != NULL) {
        (void)printf("on PostgreSQL:\n");
        rows_on_postgres = true;
        failed += tests_run(NULL);
    }
    return failed;
}

#endif
