/* fleet_member MODE URL ...: a program of its own on a shared ledger, for the campaign
 * that kills it (script/fleet).  It uses nothing but the public header and libpq.
 *
 *   fill URL DIR JOBS [FIRST]   JOBS jobs, or those from number FIRST on, in cycles of a hundred: half
 *                               of them of no account in one stream, half of ten accounts, each
 *                               with a stream
 *   work URL DIR SLEEP_MS       a member: each job sleeps up to SLEEP_MS and then writes one row
 *                               into a table of this program's own, with its `done`
 *   tick URL DIR PERIOD_MS      a member that brings a schedule: a row each PERIOD_MS, by whichever
 *   watch URL                   no cursor has passed unfinished work, none went back; prints
 *                               what is left
 *   check URL JOBS              every job has written exactly one row, the sum is exact, every
 *                               cursor stands at the end
 *
 * The table has no unique index: a job that took effect twice would show. */
#include "tidemark.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CYCLE_JOBS = 100, ACCOUNTS = 10 };

static int fail(const char *what, const tide_error *err)
{
    (void)fprintf(stderr, "fleet_member: %s: %s (%s)\n", what, err->text,
                  tide_status_name(err->status));
    return 1;
}

/* ---- the handler ---------------------------------------------------------------- */

struct effect {
    char job[24];
    char value[24];
};

static tide_status write_row(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct effect *effect = arg;
    const char *values[] = {effect->job, effect->value};
    PGconn *connection = tide_transaction_postgres(transaction);
    PGresult *result = PQexecParams(connection, "INSERT INTO effect (job, value) VALUES ($1, $2)",
                                    2, NULL, values, NULL, NULL, 0);
    bool ok = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (ok)
        return TIDE_OK;
    return tide_error_set(err, TIDE_NETWORK, "effect: %.150s", PQerrorMessage(connection));
}

static tide_status work(tide_job *job, void *context, tide_error *err)
{
    const uint32_t *sleep_ms = context;
    struct effect *effect = tide_job_memory(job, sizeof *effect);
    if (effect == NULL)
        return TIDE_NO_MEMORY;
    uint64_t id = tide_job_id(job);
    if (*sleep_ms > 0) {
        tide_status rc = tide_job_sleep(job, id * 2654435761u % *sleep_ms);
        if (rc != TIDE_OK)
            return rc;
    }
    unsigned value = 0;
    if (sscanf(tide_job_payload(job).data, "{\"value\":%u}", &value) != 1)
        return tide_error_set(err, TIDE_INVALID, "payload");
    (void)snprintf(effect->job, sizeof effect->job, "%" PRIu64, id);
    (void)snprintf(effect->value, sizeof effect->value, "%u", value);
    return tide_job_effect(job, write_row, effect, err);
}

static tide_status open_member(const char *url, const char *dir, uint32_t *sleep_ms,
                               tide_engine **engine_out, uint32_t *kind_out, tide_error *err)
{
    struct tide_engine_options options = {.state_dir = dir, .ledger = url, .log_fd = STDERR_FILENO};
    tide_status rc = tide_engine_open(&options, engine_out, err);
    struct tide_kind kind = {
        .name = "effect", .handler = work, .context = sleep_ms, .attempts_max = 1000};
    if (rc == TIDE_OK)
        rc = tide_engine_kind(*engine_out, &kind, kind_out, err);
    return rc;
}

/* ---- fill -------------------------------------------------------------------------- */

static tide_status fill_cycle(tide_engine *engine, uint32_t kind, uint32_t account, uint64_t stream,
                              unsigned cycle, unsigned first, tide_error *err)
{
    static struct tide_spec specs[CYCLE_JOBS];
    static char payloads[CYCLE_JOBS][32];
    char start[16];
    char end[16];
    for (unsigned i = 0; i < CYCLE_JOBS; i++) {
        (void)snprintf(payloads[i], sizeof payloads[i], "{\"value\":%u}", first + i);
        specs[i] = (struct tide_spec){.kind = kind, .account = account, .payload = payloads[i]};
    }
    (void)snprintf(start, sizeof start, "%08u", cycle);
    (void)snprintf(end, sizeof end, "%08u", cycle + 1);
    return tide_cycle_open(engine, stream, start, end, specs, CYCLE_JOBS, NULL, err);
}

static int fill(const char *url, const char *dir, unsigned jobs, unsigned first)
{
    tide_engine *engine = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    uint32_t kind = 0;
    uint32_t sleep_ms = 0;
    uint32_t accounts[ACCOUNTS + 1] = {0};
    uint64_t streams[ACCOUNTS + 1] = {0};
    tide_status rc = open_member(url, dir, &sleep_ms, &engine, &kind, &err);
    for (unsigned i = 0; rc == TIDE_OK && i <= ACCOUNTS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "account-%u", i);
        if (i > 0)
            rc = tide_engine_account(engine, name, "default", &accounts[i], &err);
        if (rc == TIDE_OK)
            rc = tide_stream_open(engine, accounts[i], "progress", NULL, &streams[i], &err);
    }
    for (; rc == TIDE_OK && first < jobs; first += CYCLE_JOBS) {
        unsigned cycle = first / CYCLE_JOBS;
        unsigned whose = cycle % 2 == 0 ? 0 : 1 + cycle / 2 % ACCOUNTS;
        rc = fill_cycle(engine, kind, accounts[whose], streams[whose], cycle, first, &err);
    }
    (void)tide_engine_close(engine);
    return rc == TIDE_OK ? 0 : fail("fill", &err);
}

/* ---- work ----------------------------------------------------------------------------- */

/* A period of 0: no schedule. */
static int work_until_told(const char *url, const char *dir, uint32_t sleep_ms, uint64_t period_ms)
{
    tide_engine *engine = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    uint32_t kind = 0;
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    tide_status rc = open_member(url, dir, &sleep_ms, &engine, &kind, &err);
    struct tide_schedule schedule = {.name = "tick",
                                     .kind = kind,
                                     .period_ms = period_ms,
                                     .payload = "{\"value\":1}",
                                     .at_start = true};
    if (rc == TIDE_OK && period_ms > 0)
        rc = tide_engine_schedule(engine, &schedule, &err);
    if (rc == TIDE_OK)
        rc = tide_engine_start(engine, &err);
    if (rc != TIDE_OK)
        return fail("work", &err);
    const struct timespec second = {1, 0};
    struct tide_progress progress;
    while (sigtimedwait(&signals, NULL, &second) < 0) {
        rc = tide_engine_wait(engine, 0, &err);
        if (rc != TIDE_OK && rc != TIDE_TIMEOUT)
            break; /* it stopped by itself */
    }
    tide_engine_progress(engine, &progress);
    (void)printf("done %" PRIu64 ", retried %" PRIu64 "\n", progress.done, progress.retried);
    (void)tide_engine_close(engine);
    return rc == TIDE_OK || rc == TIDE_TIMEOUT ? 0 : fail("work", &err);
}

/* ---- watch and check -------------------------------------------------------------------- */

static int64_t number(PGconn *connection, const char *sql)
{
    PGresult *result = PQexec(connection, sql);
    int64_t value = -1;
    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
        value = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    else
        (void)fprintf(stderr, "%s: %s", sql, PQerrorMessage(connection));
    PQclear(result);
    return value;
}

static bool expect(PGconn *connection, const char *what, const char *sql, int64_t expected)
{
    int64_t value = number(connection, sql);
    if (value == expected)
        return true;
    (void)fprintf(stderr, "FAILED: %s: %" PRId64 ", not %" PRId64 "\n", what, value, expected);
    return false;
}

static const char cursor_passed[] =
    "SELECT count(*) FROM tidemark.cycle c JOIN tidemark.stream s ON s.id = c.stream"
    " WHERE c.ordinal < s.ordinal AND (c.outstanding > 0 OR c.failed > 0)";
/* Counted from the jobs themselves, not from the counters. */
static const char cursor_passed_jobs[] =
    "SELECT count(*) FROM tidemark.job j JOIN tidemark.cycle c ON c.id = j.cycle"
    " JOIN tidemark.stream s ON s.id = c.stream WHERE c.ordinal < s.ordinal";
static const char cursor_text[] =
    "SELECT count(*) FROM tidemark.stream s WHERE s.ordinal > 0 AND s.cursor IS DISTINCT FROM"
    " (SELECT \"end\" FROM tidemark.cycle c WHERE c.stream = s.id AND c.ordinal = s.ordinal - 1)";
/* E1.7: thirty seconds after its last sign of life nothing runs under its name. */
static const char held_by_dead[] =
    "SELECT count(*) FROM tidemark.job j JOIN tidemark.member m ON m.owner = j.owner"
    " WHERE j.state = 1 AND m.until + 15000 < extract(epoch FROM clock_timestamp()) * 1000";
static const char doubled[] =
    "SELECT count(*) FROM (SELECT job FROM effect GROUP BY job HAVING count(*) > 1) d";

static int watch(PGconn *connection)
{
    bool ok = expect(connection, "cycles behind a cursor that are not finished", cursor_passed, 0);
    ok = expect(connection, "jobs behind a cursor that are not done", cursor_passed_jobs, 0) && ok;
    ok = expect(connection, "cursors with another value than their cycle's", cursor_text, 0) && ok;
    ok = expect(connection, "jobs that wait for a process dead for long", held_by_dead, 0) && ok;
    (void)printf("%" PRId64 "\n", number(connection, "SELECT count(*) FROM tidemark.job"));
    return ok ? 0 : 1;
}

static int check(PGconn *connection, int64_t jobs)
{
    bool ok = watch(connection) == 0;
    ok = expect(connection, "rows written", "SELECT count(*) FROM effect", jobs) && ok;
    ok = expect(connection, "jobs that took effect twice", doubled, 0) && ok;
    ok = expect(connection, "sum of the values", "SELECT sum(value) FROM effect",
                jobs * (jobs - 1) / 2) &&
         ok;
    ok = expect(connection, "unfinished jobs", "SELECT count(*) FROM tidemark.job", 0) && ok;
    ok = expect(connection, "cursors that are not at the end",
                "SELECT count(*) FROM tidemark.stream WHERE ordinal < ordinal_next", 0) &&
         ok;
    return ok ? 0 : 1;
}

static int with_connection(const char *url, int64_t jobs)
{
    PGconn *connection = PQconnectdb(url);
    if (PQstatus(connection) != CONNECTION_OK) {
        (void)fprintf(stderr, "fleet_member: %s", PQerrorMessage(connection));
        PQfinish(connection);
        return 2;
    }
    int exit_code = jobs < 0 ? watch(connection) : check(connection, jobs);
    PQfinish(connection);
    return exit_code;
}

int main(int argc, char **argv)
{
    if ((argc == 5 || argc == 6) && strcmp(argv[1], "fill") == 0)
        return fill(argv[2], argv[3], (unsigned)strtoul(argv[4], NULL, 10),
                    argc == 5 ? 0 : (unsigned)strtoul(argv[5], NULL, 10));
    if (argc == 5 && strcmp(argv[1], "work") == 0)
        return work_until_told(argv[2], argv[3], (uint32_t)strtoul(argv[4], NULL, 10), 0);
    if (argc == 5 && strcmp(argv[1], "tick") == 0)
        return work_until_told(argv[2], argv[3], 0, strtoull(argv[4], NULL, 10));
    if (argc == 3 && strcmp(argv[1], "watch") == 0)
        return with_connection(argv[2], -1);
    if (argc == 4 && strcmp(argv[1], "check") == 0)
        return with_connection(argv[2], strtoll(argv[3], NULL, 10));
    (void)fprintf(stderr, "usage: fleet_member fill|work|tick|watch|check URL ...\n");
    return 2;
}
