/* pg_test.c - the helper over libpq (db/pg.h).
 *
 * What it refuses without a server is tested everywhere; the rest needs one, in
 * TIDE_TEST_POSTGRES, and each test has a database of its own there. */
#include "db/pg.h"
#include "ledger/ledger.h"
#include "support/pg_test.h"
#include "support/ok.h"
#include "support/test.h"
#include "support/heap.h"

enum statement { SQL_ONE, SQL_ECHO, SQL_SUM, SQL_RECORDS, SQL_COUNT };
static const char *const texts[SQL_COUNT] = {
    [SQL_ONE] = "SELECT 1::bigint",
    [SQL_ECHO] = "SELECT $1::bigint, $2::int, $3::smallint, $4::boolean, $5::text, $6::text,"
                 " $7::bigint",
    [SQL_SUM] = "SELECT count(*), count(n), sum(n)::bigint, max(t) FROM"
                " unnest($1::bigint[], $2::text[]) AS u (n, t)",
    [SQL_RECORDS] = "SELECT r.a, r.b FROM unnest($1::pair[]) AS r",
};

struct fixture {
    char url[PG_TEST_URL_BYTES];
    tide_pg *pg;
    tide_error err;
};

static tide_status open_url(struct fixture *f, const char *url)
{
    struct tide_pg_options options = {
        .url = url, .connect_ms = 2000, .sql = texts, .sql_count = SQL_COUNT};
    return tide_pg_open(&options, tide_mem_heap(), &f->pg, &f->err);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    pg_test_create(NULL, f->url, sizeof f->url);
    *state = f;
    return open_url(f, f->url) == TIDE_OK ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tide_pg_close(f->pg);
    pg_test_drop(f->url);
    free(f);
    return 0;
}

/* ---- without a server ------------------------------------------------------------------- */

TEST(a_bad_url_is_refused_without_telling_its_password)
{
    struct fixture f = {.pg = NULL};
    static const char *const urls[] = {
        "postgres://user:hunter2@host:port/db?nonsense=1",
        "postgres://user:hunter2@[::1/db",
        "postgres:hunter2",
    };
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        assert_int_equal(open_url(&f, urls[i]), TIDE_INVALID);
        assert_null(strstr(f.err.text, "hunter2"));
        assert_null(f.pg);
    }
}

TEST(without_a_server_the_status_is_network)
{
    struct fixture f = {.pg = NULL};
    assert_int_equal(open_url(&f, "postgres://user:hunter2@/db?host=/nowhere/at/all"),
                     TIDE_NETWORK);
    assert_null(strstr(f.err.text, "hunter2"));
    assert_non_null(strstr(f.err.text, "/nowhere/at/all"));
    assert_null(f.pg);
}

TEST(a_name_has_no_password)
{
    char name[200];
    tide_ledger_name("postgres://user:hunter2@db.example:5433/jobs?sslmode=require", name,
                     sizeof name);
    assert_string_equal(name, "postgres://user@db.example:5433/jobs");
    tide_ledger_name("postgres:///jobs?host=/run&password=hunter2", name, sizeof name);
    assert_null(strstr(name, "hunter2"));
}

TEST(sqlstates_have_one_meaning)
{
    static const struct {
        const char *sqlstate;
        tide_status status;
    } known[] = {{"40001", TIDE_BUSY},    {"40P01", TIDE_BUSY},      {"55P03", TIDE_BUSY},
                 {"57P01", TIDE_NETWORK}, {"57014", TIDE_NETWORK},   {"53300", TIDE_NETWORK},
                 {"08006", TIDE_NETWORK}, {"53100", TIDE_DISK_FULL}, {"53200", TIDE_NO_MEMORY},
                 {"28P01", TIDE_AUTH},    {"42501", TIDE_INVALID},   {"3D000", TIDE_INVALID},
                 {"XX001", TIDE_CORRUPT}, {"23505", TIDE_EXISTS},    {"42601", TIDE_IO},
                 {"25006", TIDE_NETWORK}, {"0A000", TIDE_NETWORK},   {"25P02", TIDE_INVALID}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_int_equal(tide_pg_status(known[i].sqlstate), known[i].status);
}

/* ---- values ------------------------------------------------------------------------------- */

#define CASE(name) TEST_ON(name, struct fixture *f, setup, teardown)

CASE(values_arrive_as_they_were_sent)
{
    PGresult *result = NULL;
    for (int round = 0; round < 3; round++) { /* prepared once, run again */
        tide_pg_params(f->pg);
        tide_pg_u64(f->pg, UINT64_MAX - 5); /* an owner has all 64 bits */
        tide_pg_i32(f->pg, -7);
        tide_pg_i16(f->pg, INT16_MIN);
        tide_pg_bool(f->pg, true);
        tide_pg_text(f->pg, TIDE_TEXT("h\xc3\xa9"));
        tide_pg_text_or_null(f->pg, TIDE_TEXT_NONE);
        tide_pg_u64_or_null(f->pg, 0);
        OK(tide_pg_run(f->pg, SQL_ECHO, &result, &f->err));
        assert_true(tide_pg_get_u64(result, 0, 0) == UINT64_MAX - 5);
        assert_int_equal(tide_pg_get_i64(result, 0, 1), -7);
        assert_int_equal(tide_pg_get_i64(result, 0, 2), INT16_MIN);
        assert_true(tide_pg_get_bool(result, 0, 3));
        assert_string_equal(tide_pg_get_text(result, 0, 4).data, "h\xc3\xa9");
        assert_int_equal(tide_pg_get_text(result, 0, 5).bytes, 0);
        assert_true(PQgetisnull(result, 0, 5) && PQgetisnull(result, 0, 6));
    }
}

CASE(arrays_of_any_length_are_one_parameter)
{
    static const size_t lengths[] = {0, 1, 2, 10000};
    for (size_t n = 0; n < sizeof lengths / sizeof lengths[0]; n++) {
        PGresult *result = NULL;
        int64_t sum = 0;
        tide_pg_params(f->pg);
        tide_pg_array(f->pg, TIDE_PG_INT8);
        for (size_t i = 0; i < lengths[n]; i++) {
            tide_pg_u64_or_null(f->pg, i); /* the first one is NULL */
            sum += (int64_t)i;
        }
        tide_pg_array_end(f->pg);
        tide_pg_array(f->pg, TIDE_PG_TEXT);
        for (size_t i = 0; i < lengths[n]; i++)
            tide_pg_text(f->pg, TIDE_TEXT("x"));
        tide_pg_array_end(f->pg);
        OK(tide_pg_run(f->pg, SQL_SUM, &result, &f->err));
        assert_int_equal(tide_pg_get_u64(result, 0, 0), lengths[n]);
        assert_int_equal(tide_pg_get_u64(result, 0, 1), lengths[n] == 0 ? 0 : lengths[n] - 1);
        assert_int_equal(tide_pg_get_i64(result, 0, 2), sum);
    }
}

CASE(whole_rows_travel_in_one_array)
{
    PGresult *result = NULL;
    OK(tide_pg_exec(f->pg, "CREATE TYPE pair AS (a bigint, b text)", &f->err));
    tide_pg_params(f->pg);
    OK(tide_pg_query(f->pg, "SELECT 'pair'::regtype::oid::bigint", &result, &f->err));
    Oid pair = (Oid)tide_pg_get_u64(result, 0, 0);
    tide_pg_params(f->pg);
    tide_pg_array(f->pg, pair);
    for (int i = 0; i < 3; i++) {
        tide_pg_record(f->pg);
        tide_pg_i64(f->pg, i);
        tide_pg_text_or_null(f->pg, i == 1 ? TIDE_TEXT_NONE : TIDE_TEXT("text"));
        tide_pg_record_end(f->pg);
    }
    tide_pg_array_end(f->pg);
    OK(tide_pg_run(f->pg, SQL_RECORDS, &result, &f->err));
    assert_int_equal(PQntuples(result), 3);
    assert_int_equal(tide_pg_get_i64(result, 2, 0), 2);
    assert_true(PQgetisnull(result, 1, 1));
    assert_string_equal(tide_pg_get_text(result, 2, 1).data, "text");
}

CASE(rows_are_copied)
{
    OK(tide_pg_exec(f->pg, "CREATE TABLE many (a bigint PRIMARY KEY, b text)", &f->err));
    tide_pg_copy(f->pg);
    for (int i = 0; i < 5000; i++) {
        tide_pg_copy_row(f->pg, 2);
        tide_pg_i64(f->pg, i);
        tide_pg_text_or_null(f->pg, i % 2 == 0 ? TIDE_TEXT_NONE : TIDE_TEXT("odd"));
    }
    OK(tide_pg_copy_run(f->pg, "COPY many FROM STDIN (FORMAT binary)", &f->err));
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM many WHERE b = 'odd'"), 2500);
    /* A refused one is said, and the connection stays usable. */
    tide_pg_copy(f->pg);
    tide_pg_copy_row(f->pg, 2);
    tide_pg_i64(f->pg, 1);
    tide_pg_text(f->pg, TIDE_TEXT("again"));
    assert_int_equal(tide_pg_copy_run(f->pg, "COPY many FROM STDIN (FORMAT binary)", &f->err),
                     TIDE_EXISTS);
    tide_pg_params(f->pg);
    OK(tide_pg_run(f->pg, SQL_ONE, NULL, &f->err));
}

/* ---- failures ----------------------------------------------------------------------------- */

CASE(a_failed_statement_says_why)
{
    OK(tide_pg_exec(f->pg, "CREATE TABLE once (a int PRIMARY KEY); INSERT INTO once VALUES (1)",
                    &f->err));
    assert_int_equal(tide_pg_exec(f->pg, "INSERT INTO once VALUES (1)", &f->err), TIDE_EXISTS);
    assert_string_equal(tide_pg_sqlstate(f->pg), "23505");
    assert_non_null(strstr(f->err.text, tide_pg_name(f->pg)));
    assert_null(strchr(f->err.text, '\n'));
    tide_pg_params(f->pg);
    tide_pg_text(f->pg, TIDE_TEXT("\xff\xfe"));
    assert_int_equal(tide_pg_query(f->pg, "SELECT $1::text", NULL, &f->err), TIDE_INVALID);
    OK(tide_pg_exec(f->pg, "UPDATE once SET a = 2", &f->err));
    assert_int_equal(tide_pg_changed(f->pg), 1);
}

CASE(a_missing_database_is_no_outage)
{
    char url[PG_TEST_URL_BYTES];
    tide_pg *mine = f->pg;
    pg_test_url("no_such_database", url, sizeof url);
    assert_int_equal(open_url(f, url), TIDE_INVALID);
    assert_non_null(strstr(f->err.text, "createdb"));
    assert_ptr_equal(f->pg, mine);
}

/* The server ends our connection: told once as a lost network, and made again when asked. */
CASE(a_lost_connection_is_made_again)
{
    tide_pg_params(f->pg);
    OK(tide_pg_run(f->pg, SQL_ONE, NULL, &f->err));
    const char *sql =
        textf("SELECT pg_terminate_backend(%d, 5000)", PQbackendPID(tide_pg_handle(f->pg)));
    (void)pg_test_exec(f->url, sql);
    tide_pg_params(f->pg);
    assert_int_equal(tide_pg_run(f->pg, SQL_ONE, NULL, &f->err), TIDE_NETWORK);
    assert_null(tide_pg_handle(f->pg)); /* PG1 */
    assert_int_equal(tide_pg_run(f->pg, SQL_ONE, NULL, &f->err), TIDE_NETWORK);
    OK(tide_pg_ready(f->pg, &f->err));
    OK(tide_pg_run(f->pg, SQL_ONE, NULL, &f->err)); /* prepared again */
}

CASE(a_slow_statement_is_ended)
{
    struct tide_pg_options options = {.url = f->url, .statement_ms = 50};
    tide_pg *slow = NULL;
    OK(tide_pg_open(&options, tide_mem_heap(), &slow, &f->err));
    assert_int_equal(tide_pg_exec(slow, "SELECT pg_sleep(30)", &f->err), TIDE_NETWORK);
    tide_pg_close(slow);
}

/* ---- poolers ------------------------------------------------------------------------------ */

CASE(behind_a_pooler_statements_have_no_names)
{
    char url[PG_TEST_URL_BYTES + 40];
    struct fixture pooled = {.pg = NULL};
    (void)snprintf(url, sizeof url, "%s&tidemark_pooler=1", f->url);
    OK(open_url(&pooled, url));
    assert_true(tide_pg_pooled(pooled.pg));
    assert_false(tide_pg_pooled(f->pg));
    assert_string_equal(tide_pg_local_settings(f->pg), "");
    assert_non_null(strstr(tide_pg_local_settings(pooled.pg), "SET LOCAL statement_timeout"));
    tide_pg_params(pooled.pg);
    OK(tide_pg_run(pooled.pg, SQL_ONE, NULL, &pooled.err));
    PGresult *result = NULL;
    OK(tide_pg_query(pooled.pg, "SELECT count(*) FROM pg_prepared_statements", &result,
                     &pooled.err));
    assert_int_equal(tide_pg_get_u64(result, 0, 0), 0);
    tide_pg_close(pooled.pg);
}

/* Another session discarded our statements: the one that fails is tried again, and from then
 * on they have no names. */
CASE(statements_that_vanish_are_a_pooler)
{
    tide_pg_params(f->pg);
    OK(tide_pg_run(f->pg, SQL_ONE, NULL, &f->err));
    OK(tide_pg_exec(f->pg, "DEALLOCATE ALL", &f->err));
    tide_pg_params(f->pg);
    assert_int_equal(tide_pg_run(f->pg, SQL_ONE, NULL, &f->err), TIDE_BUSY);
    assert_true(tide_pg_pooled(f->pg));
    tide_pg_params(f->pg);
    OK(tide_pg_run(f->pg, SQL_ONE, NULL, &f->err));
}

static bool applies(const struct test *test)
{
    return test->test.setup_func == NULL || pg_test_server() != NULL;
}

int main(void)
{
    if (pg_test_server() == NULL)
        (void)printf("skipped: what needs a server; TIDE_TEST_POSTGRES names none\n");
    return tests_run(applies);
}
