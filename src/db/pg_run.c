/* pg_run.c - statements on a connection, the lead that is sent with one, and COPY. */
#include "db/pg_inside.h"

#include <stdio.h>
#include <string.h>

/* ---- pieces -------------------------------------------------------------------- */

struct bound {
    Oid types[TIDE_PG_PARAMS_MAX];
    const char *values[TIDE_PG_PARAMS_MAX];
    int lengths[TIDE_PG_PARAMS_MAX];
    int formats[TIDE_PG_PARAMS_MAX];
};

static tide_status bind_params(tide_pg *pg, struct bound *bound, tide_error *err)
{
    TIDE_ASSERT(!pg->in_array);
    if (pg->params_failed)
        return tide_error_set(err, TIDE_NO_MEMORY, "%s: no memory for the values of a statement",
                              pg->name);
    for (size_t i = 0; i < pg->params_count; i++) {
        const struct tide_pg_param *param = &pg->params[i];
        /* An empty value must still not be NULL. */
        const char *start = pg->bytes.data == NULL ? "" : pg->bytes.data + param->offset;
        bound->types[i] = param->type;
        bound->values[i] = param->bytes < 0 ? NULL : start;
        bound->lengths[i] = param->bytes < 0 ? 0 : param->bytes;
        bound->formats[i] = param->format;
    }
    return TIDE_OK;
}

static void forget_result(tide_pg *pg)
{
    PQclear(pg->result);
    pg->result = NULL;
    pg->changed = 0;
    pg->sqlstate[0] = '\0';
}

static tide_status take_result(tide_pg *pg, PGresult *result, PGresult **result_out,
                               tide_error *err)
{
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        tide_status rc = tide_pg_failed(pg, result, err);
        PQclear(result);
        return rc;
    }
    pg->result = result;
    const char *tuples = PQcmdTuples(result);
    if (!tide_text_to_u64(tide_text_of(tuples), &pg->changed))
        pg->changed = 0;
    if (result_out != NULL)
        *result_out = result;
    return TIDE_OK;
}

struct name {
    char text[24];
};

static struct name name_of(size_t number)
{
    struct name name;
    (void)snprintf(name.text, sizeof name.text, "tm%zu", number);
    return name;
}

/* `bound` may be NULL: the statement itself has the types of its parameters. */
static tide_status prepare(tide_pg *pg, size_t number, const struct bound *bound, tide_error *err)
{
    if (pg->prepared[number])
        return TIDE_OK;
    PGresult *result =
        PQprepare(pg->conn, name_of(number).text, pg->sql[number],
                  bound == NULL ? 0 : (int)pg->params_count, bound == NULL ? NULL : bound->types);
    tide_status rc = TIDE_OK;
    if (PQresultStatus(result) == PGRES_COMMAND_OK)
        pg->prepared[number] = true;
    else
        rc = tide_pg_failed(pg, result, err);
    PQclear(result);
    return rc;
}

/* ---- a lead -------------------------------------------------------------------- */

void tide_pg_lead(tide_pg *pg, const struct tide_pg_lead *lead)
{
    TIDE_ASSERT(!pg->leads);
    TIDE_ASSERT(!pg->pooled);
    pg->lead = *lead;
    pg->leads = true;
}

bool tide_pg_leads(const tide_pg *pg)
{
    return pg->leads;
}

void tide_pg_lead_drop(tide_pg *pg)
{
    pg->leads = false;
}

/* A pipeline of the lead and of one statement more, or none. */
enum { LED_BEGIN, LED_FIRST, LED_STATEMENT, LED_MAX };

static bool send_led(tide_pg *pg, size_t number, const struct bound *bound)
{
    const struct tide_pg_lead *lead = &pg->lead;
    return PQenterPipelineMode(pg->conn) == 1 &&
           PQsendQueryPrepared(pg->conn, name_of(lead->begin).text, 0, NULL, NULL, NULL, 1) == 1 &&
           PQsendQueryPrepared(pg->conn, name_of(lead->first).text, lead->texts_count, lead->texts,
                               NULL, NULL, 1) == 1 &&
           (bound == NULL ||
            PQsendQueryPrepared(pg->conn, name_of(number).text, (int)pg->params_count,
                                bound->values, bound->lengths, bound->formats, 1) == 1) &&
           PQpipelineSync(pg->conn) == 1;
}

/* Reads the results; false: the pipeline did not end as expected. */
static bool receive_led(tide_pg *pg, PGresult **results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        results[i] = PQgetResult(pg->conn);
        PGresult *end = results[i] == NULL ? NULL : PQgetResult(pg->conn);
        if (end != NULL) {
            PQclear(end);
            return false;
        }
    }
    PGresult *sync = PQgetResult(pg->conn);
    bool ended = PQresultStatus(sync) == PGRES_PIPELINE_SYNC;
    PQclear(sync);
    return ended && PQexitPipelineMode(pg->conn) == 1;
}

static bool result_ok(const PGresult *result)
{
    return PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK;
}

/* *begun_out: the server began the transaction, whatever happened then. */
static tide_status run_led_once(tide_pg *pg, size_t number, const struct bound *bound,
                                PGresult **result_out, bool *begun_out, tide_error *err)
{
    PGresult *results[LED_MAX] = {NULL};
    size_t count = bound == NULL ? LED_STATEMENT : LED_MAX;
    TIDE_TRY(prepare(pg, pg->lead.begin, NULL, err));
    TIDE_TRY(prepare(pg, pg->lead.first, NULL, err));
    if (bound != NULL)
        TIDE_TRY(prepare(pg, number, bound, err));
    bool whole = send_led(pg, number, bound) && receive_led(pg, results, count);
    *begun_out = result_ok(results[LED_BEGIN]);
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        if (!result_ok(results[i]))
            rc = tide_pg_failed(pg, results[i], err);
    if (rc == TIDE_OK && whole)
        rc = pg->lead.accept(pg->lead.arg, results[LED_FIRST], err);
    if (!whole && pg->conn != NULL) {
        tide_pg_disconnect(pg);
        rc = tide_pg_not_connected(pg, err);
    }
    if (rc == TIDE_OK && bound != NULL) {
        rc = take_result(pg, results[LED_STATEMENT], result_out, err);
        results[LED_STATEMENT] = NULL;
    }
    for (size_t i = 0; i < count; i++)
        PQclear(results[i]);
    return rc;
}

static tide_status run_led(tide_pg *pg, size_t number, const struct bound *bound,
                           PGresult **result_out, tide_error *err)
{
    bool begun = false;
    pg->leads = false;
    tide_status rc = run_led_once(pg, number, bound, result_out, &begun, err);
    /* The server may have been restarted since the last statement.  Nothing was begun, so all
     * of it may be sent again on a new connection. */
    if (rc == TIDE_NETWORK && !begun && tide_pg_ready(pg, err) == TIDE_OK && !pg->pooled) {
        forget_result(pg); /* from connecting (PG3) */
        rc = run_led_once(pg, number, bound, result_out, &begun, err);
    }
    return rc;
}

tide_status tide_pg_lead_go(tide_pg *pg, tide_error *err)
{
    if (!pg->leads)
        return TIDE_OK;
    forget_result(pg);
    return pg->conn == NULL ? tide_pg_not_connected(pg, err) : run_led(pg, 0, NULL, NULL, err);
}

/* ---- statements ---------------------------------------------------------------- */

tide_status tide_pg_run(tide_pg *pg, size_t number, PGresult **result_out, tide_error *err)
{
    TIDE_ASSERT(number < pg->sql_count);
    TIDE_ASSERT(pg->sql[number] != NULL);
    if (pg->pooled)
        return tide_pg_query(pg, pg->sql[number], result_out, err);
    forget_result(pg);
    if (pg->conn == NULL)
        return tide_pg_not_connected(pg, err);
    struct bound bound;
    TIDE_TRY(bind_params(pg, &bound, err));
    if (pg->leads)
        return run_led(pg, number, &bound, result_out, err);
    TIDE_TRY(prepare(pg, number, &bound, err));
    return take_result(pg,
                       PQexecPrepared(pg->conn, name_of(number).text, (int)pg->params_count,
                                      bound.values, bound.lengths, bound.formats, 1),
                       result_out, err);
}

/* Before a statement that cannot be part of a pipeline. */
static tide_status alone(tide_pg *pg, tide_error *err)
{
    tide_status rc = tide_pg_lead_go(pg, err);
    forget_result(pg);
    return rc == TIDE_OK && pg->conn == NULL ? tide_pg_not_connected(pg, err) : rc;
}

tide_status tide_pg_query(tide_pg *pg, const char *sql, PGresult **result_out, tide_error *err)
{
    struct bound bound;
    TIDE_TRY(alone(pg, err));
    TIDE_TRY(bind_params(pg, &bound, err));
    return take_result(pg,
                       PQexecParams(pg->conn, sql, (int)pg->params_count, bound.types, bound.values,
                                    bound.lengths, bound.formats, 1),
                       result_out, err);
}

tide_status tide_pg_texts(tide_pg *pg, const char *sql, PGresult **result_out, tide_error *err)
{
    tide_status rc = alone(pg, err);
    return rc != TIDE_OK ? rc : take_result(pg, PQexec(pg->conn, sql), result_out, err);
}

tide_status tide_pg_exec(tide_pg *pg, const char *sql, tide_error *err)
{
    return tide_pg_texts(pg, sql, NULL, err);
}

tide_status tide_pg_copy_in(tide_pg *pg, const char *sql, tide_text rows, tide_error *err)
{
    enum { PIECE_BYTES = 256 << 10 };
    TIDE_TRY(alone(pg, err));
    PGresult *result = PQexec(pg->conn, sql);
    tide_status rc = TIDE_OK;
    if (PQresultStatus(result) != PGRES_COPY_IN) {
        rc = tide_pg_failed(pg, result, err);
        PQclear(result);
        return rc;
    }
    PQclear(result);
    bool sent = true;
    for (size_t at = 0; sent && at < rows.bytes;) {
        size_t piece = rows.bytes - at < PIECE_BYTES ? rows.bytes - at : PIECE_BYTES;
        sent = PQputCopyData(pg->conn, rows.data + at, (int)piece) == 1;
        at += piece;
    }
    if (!sent) { /* no memory: only some rows were sent, so close the connection */
        tide_pg_disconnect(pg);
        return tide_error_set(err, TIDE_NO_MEMORY, "%s: no memory for rows", pg->name);
    }
    (void)PQputCopyEnd(pg->conn, NULL); /* a failure shows in the result */
    result = PQgetResult(pg->conn);
    rc = take_result(pg, result, NULL, err);
    /* The last one is NULL; there is no other when the connection was lost. */
    while (pg->conn != NULL && (result = PQgetResult(pg->conn)) != NULL)
        PQclear(result);
    return rc;
}

PGresult *tide_pg_take(tide_pg *pg)
{
    PGresult *result = pg->result;
    pg->result = NULL;
    return result;
}

tide_status tide_pg_copy_run(tide_pg *pg, const char *sql, tide_error *err)
{
    TIDE_ASSERT(pg->in_copy);
    char *end = tide_pg_room(pg, 2);
    if (end != NULL)
        memcpy(end, "\377\377", 2);
    pg->in_copy = false;
    if (pg->params_failed)
        return tide_error_set(err, TIDE_NO_MEMORY, "%s: no memory for rows", pg->name);
    return tide_pg_copy_in(pg, sql, tide_buf_text(&pg->bytes), err);
}

uint64_t tide_pg_changed(const tide_pg *pg)
{
    return pg->changed;
}

const char *tide_pg_sqlstate(const tide_pg *pg)
{
    return pg->sqlstate;
}
