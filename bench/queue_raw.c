/* queue_raw.c - the minimal program for the same rows on PostgreSQL: the baseline of the engine
 * (script/bench queue).
 *
 *     queue_raw schema  URL                                    the ledger's own tables
 *     queue_raw enqueue URL JOBS SLICE copy|unnest DEDUPE      jobs/s
 *     queue_raw drain   URL JOBS CONNECTIONS BATCH             jobs/s
 *     queue_raw hold    URL       a transaction that stays open until stdin ends
 *
 * Plain libpq on the ledger's tables and indexes.  A drain ends one batch and claims the
 * next in one transaction and one round trip (a pipeline), with the payloads transferred
 * and not used.  It leaves out what an engine is for: fences and leases, retries,
 * dependencies, cycles, lanes, handlers on threads. */
#include "bench.h"

#include "ledger/postgres/postgres.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH_MAX = 10000, CONNECTIONS_MAX = 16, KIND = 1, TEXT_BYTES = 64 };

static uint64_t now_unix_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- binary parameters ------------------------------------------------------------- */

struct bytes {
    char *data;
    size_t used, room;
};

static void put(struct bytes *bytes, const void *data, size_t count)
{
    if (bytes->used + count > bytes->room) {
        bytes->room = (bytes->used + count) * 2;
        bytes->data = realloc(bytes->data, bytes->room);
        if (bytes->data == NULL)
            die("memory", "none left");
    }
    memcpy(bytes->data + bytes->used, data, count);
    bytes->used += count;
}

static void put_u16(struct bytes *bytes, uint16_t value)
{
    value = htons(value);
    put(bytes, &value, sizeof value);
}

static void put_u32(struct bytes *bytes, uint32_t value)
{
    value = htonl(value);
    put(bytes, &value, sizeof value);
}

static void put_u64(struct bytes *bytes, uint64_t value)
{
    put_u32(bytes, (uint32_t)(value >> 32));
    put_u32(bytes, (uint32_t)value);
}

/* One dimension, no NULLs, indexes from 1. */
static void put_array(struct bytes *bytes, Oid element, size_t count)
{
    bytes->used = 0;
    put_u32(bytes, 1);
    put_u32(bytes, 0);
    put_u32(bytes, element);
    put_u32(bytes, (uint32_t)count);
    put_u32(bytes, 1);
}

static void put_text(struct bytes *bytes, const char *text)
{
    size_t length = strlen(text);
    put_u32(bytes, (uint32_t)length);
    put(bytes, text, length);
}

static uint64_t get_u64(const PGresult *result, int row, int column)
{
    uint32_t half[2];
    memcpy(half, PQgetvalue(result, row, column), sizeof half);
    return (uint64_t)ntohl(half[0]) << 32 | ntohl(half[1]);
}

/* ---- connection ---------------------------------------------------------------------- */

static PGconn *open_connection(const char *url)
{
    PGconn *pg = PQconnectdb(url);
    if (PQstatus(pg) != CONNECTION_OK)
        die("connect", PQerrorMessage(pg));
    return pg;
}

static void check(PGconn *pg, PGresult *result, ExecStatusType wanted, const char *what)
{
    if (PQresultStatus(result) != wanted)
        die(what, PQerrorMessage(pg));
    PQclear(result);
}

static void exec(PGconn *pg, const char *sql)
{
    check(pg, PQexec(pg, sql), PGRES_COMMAND_OK, sql);
}

static void prepare(PGconn *pg, const char *name, const char *sql)
{
    check(pg, PQprepare(pg, name, sql, 0, NULL), PGRES_COMMAND_OK, sql);
}

/* Arrays of any length are planned once.  With one plan per length, batches of 1,000 cost the
 * server about twice the CPU (23 us a job instead of 13). */
static PGconn *open_prepared(const char *url)
{
    PGconn *pg = open_connection(url);
    exec(pg, "SET plan_cache_mode = force_generic_plan");
    return pg;
}

static int make_schema(const char *url)
{
    PGconn *pg = open_connection(url);
    for (size_t i = 0; i < tide_pg_schema.steps_count; i++)
        for (const char *const *text = tide_pg_schema.steps[i]; *text != NULL; text++)
            exec(pg, *text);
    exec(pg, "INSERT INTO tidemark.kind (name, scope) VALUES ('bench.none', 0)");
    PQfinish(pg);
    return 0;
}

/* ---- enqueue --------------------------------------------------------------------------- */

static void texts_of(size_t index, char key[TEXT_BYTES], char payload[TEXT_BYTES])
{
    (void)snprintf(key, TEXT_BYTES, "message-%08zu", index);
    (void)snprintf(payload, TEXT_BYTES, "{\"message\":%zu}", index);
}

static void add_by_array(PGconn *pg, size_t first, size_t count, bool dedupe)
{
    static struct bytes keys, payloads, created;
    char key[TEXT_BYTES];
    char payload[TEXT_BYTES];
    put_array(&keys, TIDE_PG_TEXT, dedupe ? count : 0);
    put_array(&payloads, TIDE_PG_TEXT, count);
    for (size_t i = first; i < first + count; i++) {
        texts_of(i, key, payload);
        if (dedupe)
            put_text(&keys, key);
        put_text(&payloads, payload);
    }
    created.used = 0;
    put_u64(&created, now_unix_ms());
    const char *values[] = {payloads.data, created.data, keys.data};
    int lengths[] = {(int)payloads.used, (int)created.used, (int)keys.used};
    int formats[] = {1, 1, 1};
    check(pg,
          PQexecPrepared(pg, dedupe ? "add_once" : "add", dedupe ? 3 : 2, values, lengths, formats,
                         1),
          PGRES_TUPLES_OK, "enqueue");
}

static void add_by_copy(PGconn *pg, size_t first, size_t count, bool dedupe)
{
    static struct bytes rows;
    char key[TEXT_BYTES];
    char payload[TEXT_BYTES];
    uint64_t now = now_unix_ms();
    rows.used = 0;
    put(&rows, "PGCOPY\n\377\r\n\0", 11);
    put_u64(&rows, 0); /* flags and the length of no extension */
    for (size_t i = first; i < first + count; i++) {
        texts_of(i, key, payload);
        put_u16(&rows, 3);
        put_u32(&rows, sizeof now);
        put_u64(&rows, now);
        put_text(&rows, payload);
        if (dedupe)
            put_text(&rows, key);
        else
            put_u32(&rows, UINT32_MAX);
    }
    put_u16(&rows, UINT16_MAX);
    check(
        pg,
        PQexec(pg, "COPY tidemark.job (created, payload, dedupe) FROM STDIN WITH (FORMAT binary)"),
        PGRES_COPY_IN, "copy");
    if (PQputCopyData(pg, rows.data, (int)rows.used) != 1 || PQputCopyEnd(pg, NULL) != 1)
        die("copy", PQerrorMessage(pg));
    check(pg, PQgetResult(pg), PGRES_COMMAND_OK, "copy");
    while (PQgetResult(pg) != NULL)
        ;
}

#define NEW_COLUMNS                                                                                \
    "(account, kind, scope, priority, lane, level, attempts_max, preemptible, force, created,"     \
    " payload, dedupe)"
#define NEW_VALUES "0, 1, 0, 50, 1, 4, 5, true, false, $2::bigint"
#define NOT_TWICE                                                                                  \
    " ON CONFLICT (account, kind, dedupe) WHERE dedupe IS NOT NULL AND state <= scope DO NOTHING"

static int enqueue(const char *url, size_t jobs, size_t slice, bool copy, bool dedupe)
{
    PGconn *pg = open_prepared(url);
    if (copy) /* constant columns need not be sent */
        exec(pg, "ALTER TABLE tidemark.job ALTER account SET DEFAULT 0, ALTER kind SET DEFAULT 1,"
                 " ALTER scope SET DEFAULT 0, ALTER priority SET DEFAULT 50,"
                 " ALTER lane SET DEFAULT 1, ALTER level SET DEFAULT 4,"
                 " ALTER attempts_max SET DEFAULT 5, ALTER preemptible SET DEFAULT true,"
                 " ALTER force SET DEFAULT false");
    prepare(pg, "add",
            "INSERT INTO tidemark.job " NEW_COLUMNS " SELECT " NEW_VALUES ", p, NULL"
            " FROM unnest($1::text[]) p RETURNING id");
    prepare(pg, "add_once",
            "INSERT INTO tidemark.job " NEW_COLUMNS " SELECT " NEW_VALUES ", p, d"
            " FROM unnest($1::text[], $3::text[]) x(p, d)" NOT_TWICE " RETURNING id");
    double began = now_s();
    for (size_t first = 0; first < jobs; first += slice) {
        size_t count = jobs - first < slice ? jobs - first : slice;
        if (copy)
            add_by_copy(pg, first, count, dedupe);
        else
            add_by_array(pg, first, count, dedupe);
    }
    (void)printf("%.1f\n", (double)jobs / (now_s() - began));
    PQfinish(pg);
    return 0;
}

/* ---- drain ------------------------------------------------------------------------------ */

struct drain {
    const char *url;
    size_t batch;
    uint64_t owner;
    size_t done;
    pthread_barrier_t *start;
};

static const char sql_claim[] =
    "UPDATE tidemark.job SET state = 1, attempts = attempts + 1, token = $2::bigint,"
    " owner = $3::bigint, started = $4::bigint, run = 1"
    " WHERE ctid = ANY (ARRAY (SELECT ctid FROM tidemark.job WHERE state = 0 AND open_deps = 0"
    "  AND account = 0 AND not_before IS NULL AND lane = 1 ORDER BY (100 - priority), id"
    "  LIMIT $1::bigint FOR UPDATE SKIP LOCKED))"
    " RETURNING id, kind, attempts, payload";

#define DONE_COLUMNS                                                                               \
    "id, account, kind, priority, lane, level, attempts, attempts_max, preemptible, force,"        \
    " status, cycle, size, created, started, finished, run, bytes_done, dedupe, payload, error,"   \
    " resume"
static const char sql_finish[] =
    "WITH gone AS (DELETE FROM tidemark.job j USING unnest($1::bigint[]) f(id)"
    "  WHERE j.id = f.id AND j.token = $2::bigint RETURNING j.*)"
    " INSERT INTO tidemark.job_done (" DONE_COLUMNS ")"
    " SELECT id, account, kind, priority, lane, level, attempts, attempts_max, preemptible,"
    "  force, 0, cycle, size, created, started, $3::bigint, run, bytes_done, dedupe, payload,"
    "  error, resume FROM gone";

static void send_finish(PGconn *pg, const uint64_t *ids, size_t count, uint64_t token)
{
    struct bytes array = {0};
    struct bytes numbers = {0};
    put_array(&array, TIDE_PG_INT8, count);
    for (size_t i = 0; i < count; i++) {
        put_u32(&array, sizeof ids[i]);
        put_u64(&array, ids[i]);
    }
    put_u64(&numbers, token);
    put_u64(&numbers, now_unix_ms());
    const char *values[] = {array.data, numbers.data, numbers.data + 8};
    int lengths[] = {(int)array.used, 8, 8};
    int formats[] = {1, 1, 1};
    if (PQsendQueryPrepared(pg, "finish", 3, values, lengths, formats, 1) != 1)
        die("finish", PQerrorMessage(pg));
    free(array.data);
    free(numbers.data);
}

static void send_claim(PGconn *pg, size_t count, uint64_t token, uint64_t owner)
{
    struct bytes numbers = {0};
    put_u64(&numbers, count);
    put_u64(&numbers, token);
    put_u64(&numbers, owner);
    put_u64(&numbers, now_unix_ms());
    const char *values[] = {numbers.data, numbers.data + 8, numbers.data + 16, numbers.data + 24};
    int lengths[] = {8, 8, 8, 8};
    int formats[] = {1, 1, 1, 1};
    if (PQsendQueryPrepared(pg, "claim", 4, values, lengths, formats, 1) != 1)
        die("claim", PQerrorMessage(pg));
    free(numbers.data);
}

/* The next result of the pipeline, with the NULL that ends it. */
static PGresult *take(PGconn *pg, ExecStatusType wanted, const char *what)
{
    PGresult *result = PQgetResult(pg);
    if (result == NULL || PQresultStatus(result) != wanted)
        die(what, result == NULL ? "nothing came back" : PQresultErrorMessage(result));
    if (wanted != PGRES_PIPELINE_SYNC && PQgetResult(pg) != NULL)
        die(what, "too much came back");
    return result;
}

static void *drain_one(void *arg)
{
    struct drain *self = arg;
    static _Thread_local uint64_t ids[BATCH_MAX];
    size_t held = 0;
    uint64_t token = self->owner << 32;
    PGconn *pg = open_prepared(self->url);
    prepare(pg, "claim", sql_claim);
    prepare(pg, "finish", sql_finish);
    if (PQenterPipelineMode(pg) != 1)
        die("pipeline", PQerrorMessage(pg));
    (void)pthread_barrier_wait(self->start);
    do {
        bool finishes = held > 0;
        if (finishes)
            send_finish(pg, ids, held, token);
        send_claim(pg, self->batch, ++token, self->owner);
        if (PQpipelineSync(pg) != 1)
            die("sync", PQerrorMessage(pg));
        if (finishes) {
            PGresult *ended = take(pg, PGRES_COMMAND_OK, "finish");
            self->done += strtoul(PQcmdTuples(ended), NULL, 10);
            PQclear(ended);
        }
        PGresult *claimed = take(pg, PGRES_TUPLES_OK, "claim");
        held = (size_t)PQntuples(claimed);
        for (size_t i = 0; i < held; i++) {
            ids[i] = get_u64(claimed, (int)i, 0);
            if (PQgetlength(claimed, (int)i, 3) == 0)
                die("claim", "no payload");
        }
        PQclear(claimed);
        PQclear(take(pg, PGRES_PIPELINE_SYNC, "commit"));
    } while (held > 0);
    PQfinish(pg);
    return NULL;
}

static int drain(const char *url, size_t jobs, size_t connections, size_t batch)
{
    struct drain drains[CONNECTIONS_MAX];
    pthread_t threads[CONNECTIONS_MAX];
    pthread_barrier_t start;
    (void)pthread_barrier_init(&start, NULL, (unsigned)connections + 1);
    for (size_t i = 0; i < connections; i++) {
        drains[i] =
            (struct drain){.url = url, .batch = batch, .owner = i + 1, .done = 0, .start = &start};
        if (pthread_create(&threads[i], NULL, drain_one, &drains[i]) != 0)
            die("thread", "cannot be started");
    }
    (void)pthread_barrier_wait(&start);
    double began = now_s();
    size_t done = 0;
    for (size_t i = 0; i < connections; i++) {
        (void)pthread_join(threads[i], NULL);
        done += drains[i].done;
    }
    double took = now_s() - began;
    (void)pthread_barrier_destroy(&start);
    if (done != jobs)
        die("drain", "jobs are missing");
    (void)printf("%.1f\n", (double)jobs / took);
    return 0;
}

/* ---- hold ------------------------------------------------------------------------------- */

/* While it is open, no row deleted after its start can be vacuumed. */
static int hold(const char *url)
{
    PGconn *pg = open_connection(url);
    exec(pg, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    check(pg, PQexec(pg, "SELECT txid_current()"), PGRES_TUPLES_OK, "hold");
    (void)printf("held\n");
    (void)fflush(stdout);
    while (getchar() != EOF)
        ;
    PQfinish(pg);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "schema") == 0)
        return make_schema(argv[2]);
    if (argc == 3 && strcmp(argv[1], "hold") == 0)
        return hold(argv[2]);
    if (argc == 7 && strcmp(argv[1], "enqueue") == 0)
        return enqueue(argv[2], number(argv[3], SIZE_MAX), number(argv[4], SIZE_MAX),
                       strcmp(argv[5], "copy") == 0, strcmp(argv[6], "1") == 0);
    if (argc == 6 && strcmp(argv[1], "drain") == 0)
        return drain(argv[2], number(argv[3], SIZE_MAX), number(argv[4], CONNECTIONS_MAX),
                     number(argv[5], BATCH_MAX));
    (void)fprintf(stderr, "usage: queue_raw schema|enqueue|drain|hold URL ...\n");
    return 2;
}
