#include "pg_test.h"

const char *pg_test_server(void)
{
    const char *url = getenv("TIDE_TEST_POSTGRES");
    return url == NULL || url[0] == '\0' ? NULL : url;
}

void pg_test_url(const char *database, char *url_out, size_t url_bytes)
{
    const char *server = pg_test_server();
    const char *host = server == NULL ? NULL : strstr(server, "//");
    if (host == NULL || strlen(server) >= url_bytes) {
        (void)fprintf(stderr, "TIDE_TEST_POSTGRES is not a URL\n");
        abort();
    }
    host += 2;
    const char *path = host + strcspn(host, "/?");
    const char *query = path + strcspn(path, "?");
    int bytes =
        snprintf(url_out, url_bytes, "%.*s/%s%s", (int)(path - server), server, database, query);
    if (bytes < 0 || (size_t)bytes >= url_bytes)
        abort();
}

long long pg_test_exec(const char *url, const char *sql)
{
    PGconn *conn = PQconnectdb(url);
    PGresult *result = PQstatus(conn) == CONNECTION_OK ? PQexec(conn, sql) : NULL;
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        (void)fprintf(stderr, "%s: %s\n", sql, PQerrorMessage(conn));
        abort();
    }
    long long number = 0;
    if (status == PGRES_TUPLES_OK && PQntuples(result) > 0 && PQnfields(result) > 0)
        number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    PQfinish(conn);
    return number;
}

void pg_test_create(const char *template, char *url_out, size_t url_bytes)
{
    static unsigned made;
    char name[PG_TEST_NAME_BYTES];
    char sql[200];
    (void)snprintf(name, sizeof name, "tide_test_%ld_%u", (long)getpid(), ++made);
    (void)snprintf(sql, sizeof sql, "CREATE DATABASE %s TEMPLATE %s", name,
                   template == NULL ? "template0" : template);
    (void)pg_test_exec(pg_test_server(), sql);
    pg_test_url(name, url_out, url_bytes);
}

void pg_test_name(const char *url, char *name_out)
{
    const char *host = strstr(url, "//") + 2;
    const char *path = host + strcspn(host, "/");
    (void)snprintf(name_out, PG_TEST_NAME_BYTES, "%.*s", (int)strcspn(path + 1, "?"), path + 1);
}

void pg_test_drop(const char *url)
{
    char name[PG_TEST_NAME_BYTES];
    char sql[200];
    pg_test_name(url, name);
    (void)snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %s WITH (FORCE)", name);
    (void)pg_test_exec(pg_test_server(), sql);
}

int pg_tests_run(void)
{
    if (pg_test_server() != NULL)
        return tests_run(NULL);
    (void)printf("skipped: TIDE_TEST_POSTGRES names no server\n");
    return 77;
}
