/* pg_test.h - databases of a test's own on the PostgreSQL of TIDE_TEST_POSTGRES
 * (pg_cluster.sh run).
 *
 * A test gets a fresh database and drops it at its end, so that tests share nothing
 * but the server.  Made from a template that was filled once, it costs a copy of a few
 * megabytes and no schema.  Failures abort with the server's message: they are the
 * environment's, never the test's. */
#ifndef TIDE_TESTS_PG_TEST_H
#define TIDE_TESTS_PG_TEST_H

#include "support/test.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PG_TEST_URL_BYTES = 400, PG_TEST_NAME_BYTES = 64 };

/* The URL of the server, or NULL: no test of PostgreSQL can run. */
const char *pg_test_server(void);

/* The server's URL with another database's name in it. */
void pg_test_url(const char *database, char *url_out, size_t url_bytes);

/* Runs statements that have to work; the first number of the answer, if it has one. */
long long pg_test_exec(const char *url, const char *sql);

/* A fresh database; `template` may be NULL: an empty one.  No client may be connected to a
 * template meanwhile. */
void pg_test_create(const char *template, char *url_out, size_t url_bytes);

/* The name of the database in a URL of ours. */
void pg_test_name(const char *url, char *name_out);

/* Ends connections that are still open. */
void pg_test_drop(const char *url);

/* What main() returns: runs all tests, or says that it skips them (77). */
int pg_tests_run(void);

#endif
