#include "rows_fixture.h"

#include <libpq-fe.h>
#include <sqlite3.h>

tide_rows rows_now;
static bool rows_on_postgres;

void rows_exec(const char *sql)
{
    PGresult *result = PQexec(rows_now.postgres, sql);
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(rows_now.postgres));
    PQclear(result);
}

int rows_setup(void **state)
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

int rows_teardown(void **state)
{
    (void)state;
    if (rows_on_postgres)
        PQfinish(rows_now.postgres);
    else if (sqlite3_close(rows_now.sqlite) != SQLITE_OK)
        return 1; /* a statement was not ended */
    return 0;
}

int rows_tests_run(void)
{
    int failed = tests_run(NULL);
    if (getenv("TIDE_TEST_POSTGRES") != NULL) {
        (void)printf("on PostgreSQL:\n");
        rows_on_postgres = true;
        failed += tests_run(NULL);
    }
    return failed;
}
