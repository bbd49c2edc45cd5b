/* pg.c - see pg.h: errors, and connecting. */
#include "db/pg_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CONNECT_MS_USUAL = 5000,
    STATEMENT_MS_USUAL = 60000,
};

/* ---- errors -------------------------------------------------------------------- */

static bool state_is(const char *sqlstate, const char *start)
{
    return strncmp(sqlstate, start, strlen(start)) == 0;
}

/* A standby answers 25006 or 0A000 to a transaction that writes, until it is promoted or we
 * connect to the primary.  0A000 also comes from a prepared statement whose tables were
 * upgraded: it is prepared again on another connection. */
tide_status tide_pg_status(const char *sqlstate)
{
    static const struct {
        const char *start;
        tide_status status;
    } known[] = {
        {"57014", TIDE_NETWORK}, {"57P", TIDE_NETWORK},     {"53300", TIDE_NETWORK},
        {"08", TIDE_NETWORK},    {"40001", TIDE_BUSY},      {"40P01", TIDE_BUSY},
        {"55P03", TIDE_BUSY},    {"26000", TIDE_BUSY},      {"42P05", TIDE_BUSY},
        {"25P03", TIDE_NETWORK}, {"53100", TIDE_DISK_FULL}, {"53200", TIDE_NO_MEMORY},
        {"28", TIDE_AUTH},       {"42501", TIDE_INVALID},   {"3D000", TIDE_INVALID},
        {"25006", TIDE_NETWORK}, {"22021", TIDE_INVALID},   {"22P05", TIDE_INVALID},
        {"XX001", TIDE_CORRUPT}, {"XX002", TIDE_CORRUPT},   {"23505", TIDE_EXISTS},
        {"25P02", TIDE_INVALID}, {"0A000", TIDE_NETWORK},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (state_is(sqlstate, known[i].start))
            return known[i].status;
    return TIDE_IO;
}

static const char standby_advice[] = "; this server is a read-only standby, name the primary";

static const char *advice_for(const char *sqlstate)
{
    if (state_is(sqlstate, "53300"))
        return "; it has too many connections, waiting for one";
    if (state_is(sqlstate, "53100"))
        return "; make room on the server's disk";
    if (state_is(sqlstate, "28"))
        return "; check the user and the password (PGPASSWORD, ~/.pgpass)";
    if (state_is(sqlstate, "42501"))
        return "; grant the role its rights (SELECT tidemark.grant_worker('role'))";
    if (state_is(sqlstate, "3D000"))
        return "; create the database first (createdb)";
    if (state_is(sqlstate, "25006"))
        return standby_advice;
    if (state_is(sqlstate, "25P02"))
        return "; an earlier statement of it failed";
    if (state_is(sqlstate, "XX00"))
        return "; the database is damaged, restore it from a backup";
    return "";
}

/* libpq's texts are several lines with a trailing newline; ours are one. */
static void one_line(const char *text, char *line_out, size_t line_bytes)
{
    size_t at = 0;
    for (; *text != '\0' && at + 1 < line_bytes; text++) {
        bool space = *text == '\n' || *text == '\t' || *text == '\r' || *text == ' ';
        if (space && (at == 0 || line_out[at - 1] == ' '))
            continue;
        line_out[at++] = space ? ' ' : *text;
    }
    while (at > 0 && line_out[at - 1] == ' ')
        at--;
    line_out[at] = '\0';
}

void tide_pg_disconnect(tide_pg *pg)
{
    PQclear(pg->result);
    pg->result = NULL;
    PQfinish(pg->conn);
    pg->conn = NULL;
    if (pg->prepared != NULL)
        memset(pg->prepared, 0, pg->sql_count * sizeof pg->prepared[0]);
}

/* The server refused the connection.  libpq gives no SQLSTATE for that, only the message,
 * which some servers translate.  A temporary refusal is TIDE_NETWORK; a wrong password or
 * database is not. */
static tide_status connect_failed(tide_pg *pg, tide_error *err)
{
    char line[240];
    one_line(PQerrorMessage(pg->conn), line, sizeof line);
    tide_status status = TIDE_NETWORK;
    const char *advice = "";
    if (PQconnectionNeedsPassword(pg->conn) || PQconnectionUsedPassword(pg->conn) ||
        strstr(line, "pg_hba.conf") != NULL || strstr(line, "authentication failed") != NULL ||
        (strstr(line, "role \"") != NULL && strstr(line, "does not exist") != NULL)) {
        status = TIDE_AUTH;
        advice = advice_for("28000");
    }
    if (strstr(line, "database \"") != NULL && strstr(line, "does not exist") != NULL) {
        status = TIDE_INVALID;
        advice = advice_for("3D000");
    }
    if (strstr(line, "too many clients") != NULL || strstr(line, "too many connections") != NULL ||
        strstr(line, "remaining connection slots") != NULL || strstr(line, "starting up") != NULL ||
        strstr(line, "shutting down") != NULL || strstr(line, "recovery mode") != NULL) {
        status = TIDE_NETWORK;
        advice = "; waiting for it";
    }
    if (strstr(line, "hot standby mode") != NULL || strstr(line, "session is read-only") != NULL) {
        status = TIDE_NETWORK;
        advice = standby_advice;
    }
    tide_pg_disconnect(pg);
    return tide_error_set(err, status, "%s: %s%s", pg->name, line, advice);
}

/* A statement failed.  `result` may be NULL when libpq had no memory. */
tide_status tide_pg_failed(tide_pg *pg, const PGresult *result, tide_error *err)
{
    const char *sqlstate = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_SQLSTATE);
    (void)snprintf(pg->sqlstate, sizeof pg->sqlstate, "%s", sqlstate == NULL ? "" : sqlstate);
    const char *said = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    char line[240];
    one_line(said != NULL ? said : PQerrorMessage(pg->conn), line, sizeof line);
    if (PQstatus(pg->conn) != CONNECTION_OK) {
        tide_pg_disconnect(pg); /* PG1 */
        return tide_error_set(err, TIDE_NETWORK, "%s: the connection was lost: %s", pg->name, line);
    }
    if (sqlstate == NULL)
        return tide_error_set(err, result == NULL ? TIDE_NO_MEMORY : TIDE_IO, "%s: %s", pg->name,
                              line);
    if (state_is(sqlstate, "26000") || state_is(sqlstate, "42P05"))
        pg->pooled = true;
    /* A standby cannot be written to until it is promoted; another connection may find the
     * primary later.  It refuses BEGIN READ WRITE as an unsupported feature. */
    const char *standby = PQparameterStatus(pg->conn, "in_hot_standby");
    if (state_is(sqlstate, "0A000") && standby != NULL && strcmp(standby, "on") == 0)
        sqlstate = "25006";
    tide_status status = tide_pg_status(sqlstate);
    (void)tide_error_set(err, status, "%s: %s%s", pg->name, line, advice_for(sqlstate));
    if (status == TIDE_NETWORK)
        tide_pg_disconnect(pg);
    return status;
}

tide_status tide_pg_not_connected(const tide_pg *pg, tide_error *err)
{
    return tide_error_set(err, TIDE_NETWORK, "%s: not connected", pg->name);
}

/* ---- connecting ---------------------------------------------------------------- */

/* Removes ?tidemark_pooler=1 from the URL: libpq refuses options it does not know. */
static void take_pooler(tide_pg *pg)
{
    char *at = strstr(pg->url, "tidemark_pooler=");
    if (at == NULL || at == pg->url || (at[-1] != '?' && at[-1] != '&'))
        return;
    size_t word = strcspn(at, "&");
    pg->pooler_told = strncmp(at, "tidemark_pooler=0", word) != 0;
    if (at[word] == '&')
        memmove(at, at + word + 1, strlen(at + word + 1) + 1);
    else
        at[-1] = '\0';
}

static tide_status make_name(tide_pg *pg, tide_error *err)
{
    /* libpq's own text about a bad URL repeats it, and with it the password. */
    char *said = NULL;
    PQconninfoOption *options = PQconninfoParse(pg->url, &said);
    PQfreemem(said);
    if (options == NULL)
        return tide_error_set(err, TIDE_INVALID,
                              "not a PostgreSQL URL; "
                              "write postgres://user@host:port/database?sslmode=...");
    const char *host = "";
    const char *port = "";
    const char *database = "";
    for (const PQconninfoOption *option = options; option->keyword != NULL; option++) {
        if (option->val == NULL)
            continue;
        if (strcmp(option->keyword, "host") == 0 ||
            (strcmp(option->keyword, "hostaddr") == 0 && host[0] == '\0'))
            host = option->val;
        if (strcmp(option->keyword, "port") == 0)
            port = option->val;
        if (strcmp(option->keyword, "dbname") == 0)
            database = option->val;
    }
    (void)snprintf(pg->name, sizeof pg->name, "PostgreSQL %.80s%s%.12s/%.80s",
                   host[0] == '\0' ? "(local)" : host, port[0] == '\0' ? "" : ":", port, database);
    PQconninfoFree(options);
    return TIDE_OK;
}

/* Ignores notices of the server. */
static void no_notice(void *arg, const PGresult *result)
{
    (void)arg;
    (void)result;
}

static void setting(char *text, const char *start, const char *one, size_t one_bytes)
{
    size_t at = strlen(text);
    TIDE_ASSERT(at + strlen(start) + one_bytes + 3 < TIDE_PG_SETTINGS_BYTES);
    (void)snprintf(text + at, TIDE_PG_SETTINGS_BYTES - at, "%s%.*s; ", start, (int)one_bytes, one);
}

static void make_settings(tide_pg *pg, const char *more)
{
    char all[TIDE_PG_SETTINGS_BYTES];
    (void)snprintf(all, sizeof all,
                   "statement_timeout = %" PRIu32 "; lock_timeout = %" PRIu32
                   "; idle_in_transaction_session_timeout = %" PRIu32
                   "; client_min_messages = error%s%s%s",
                   pg->statement_ms, pg->statement_ms, 2 * pg->statement_ms,
                   pg->read_only ? "; default_transaction_read_only = on" : "",
                   more == NULL ? "" : "; ", more == NULL ? "" : more);
    for (const char *one = all; *one != '\0';) {
        one += strspn(one, "; ");
        size_t bytes = strcspn(one, ";");
        if (bytes > 0) {
            setting(pg->settings, "SET ", one, bytes);
            setting(pg->local_settings, "SET LOCAL ", one, bytes);
        }
        one += bytes;
    }
}

/* A session of our own gets its settings once.  Behind a pooler they would stay on a server
 * connection that serves other clients next: there each transaction sets its own. */
static tide_status set_up_session(tide_pg *pg, tide_error *err)
{
    PGresult *result = PQexec(pg->conn, "SELECT pg_catalog.pg_backend_pid()");
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        tide_status rc = tide_pg_failed(pg, result, err);
        PQclear(result);
        tide_pg_disconnect(pg);
        return rc;
    }
    /* A pooler gives process numbers of its own, which differ from the server's. */
    uint64_t pid = 0;
    const char *text = PQgetvalue(result, 0, 0);
    bool same =
        tide_text_to_u64(tide_text_of(text), &pid) && pid == (uint64_t)PQbackendPID(pg->conn);
    PQclear(result);
    if (pg->pooler_told || !same)
        pg->pooled = true;
    if (pg->pooled)
        return TIDE_OK;
    tide_status rc = tide_pg_exec(pg, pg->settings, err);
    if (rc != TIDE_OK)
        tide_pg_disconnect(pg);
    return rc;
}

static tide_status connect_once(tide_pg *pg, tide_error *err)
{
    char timeout_s[16];
    char user_timeout[16];
    uint32_t seconds = (pg->connect_ms + 999) / 1000;
    (void)snprintf(timeout_s, sizeof timeout_s, "%" PRIu32, seconds < 2 ? 2 : seconds);
    (void)snprintf(user_timeout, sizeof user_timeout, "%" PRIu32, pg->connect_ms * 3);
    /* A writer skips a standby and tries the next host of the URL. */
    const char *server = pg->read_only              ? "any"
                         : PQlibVersion() >= 140000 ? "primary"
                                                    : "read-write";
    /* Options in the URL override the ones listed before it. */
    const char *const keys[] = {"connect_timeout",
                                "keepalives_idle",
                                "keepalives_interval",
                                "keepalives_count",
                                "tcp_user_timeout",
                                "target_session_attrs",
                                "dbname",
                                "fallback_application_name",
                                "client_encoding",
                                NULL};
    const char *const values[] = {timeout_s,       "10",   "5", "3", user_timeout, server, pg->url,
                                  pg->application, "UTF8", NULL};
    pg->conn = PQconnectdbParams(keys, values, 1);
    if (pg->conn == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "%s: no memory", pg->name);
    if (PQstatus(pg->conn) != CONNECTION_OK)
        return connect_failed(pg, err);
    (void)PQsetNoticeReceiver(pg->conn, no_notice, NULL);
    return set_up_session(pg, err);
}

tide_status tide_pg_open(const struct tide_pg_options *options, tide_mem *mem, tide_pg **pg_out,
                         tide_error *err)
{
    TIDE_ASSERT(options->url != NULL);
    TIDE_ASSERT(options->sql_count == 0 || options->sql != NULL);
    if (strlen(options->url) >= TIDE_PG_URL_BYTES)
        return tide_error_set(err, TIDE_INVALID, "a PostgreSQL URL of %zu bytes, at most %d",
                              strlen(options->url), TIDE_PG_URL_BYTES - 1);
    tide_pg *pg = tide_mem_new(mem, sizeof *pg);
    if (pg == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "PostgreSQL: no memory");
    pg->mem = mem;
    pg->connect_ms = options->connect_ms == 0 ? CONNECT_MS_USUAL : options->connect_ms;
    pg->statement_ms = options->statement_ms == 0 ? STATEMENT_MS_USUAL : options->statement_ms;
    pg->read_only = options->read_only;
    pg->sql = options->sql;
    pg->sql_count = options->sql_count;
    tide_buf_init(&pg->bytes, mem, TIDE_PG_VALUES_BYTES);
    (void)snprintf(pg->url, sizeof pg->url, "%s", options->url);
    (void)snprintf(pg->application, sizeof pg->application, "%.63s",
                   options->application == NULL ? "tidemark" : options->application);
    take_pooler(pg);
    make_settings(pg, options->settings);
    tide_status rc = make_name(pg, err);
    if (rc == TIDE_OK && pg->sql_count > 0) {
        pg->prepared = tide_mem_array(mem, pg->sql_count, sizeof pg->prepared[0]);
        if (pg->prepared == NULL) {
            pg->sql_count = 0;
            rc = tide_error_set(err, TIDE_NO_MEMORY, "PostgreSQL: no memory");
        }
    }
    if (rc == TIDE_OK)
        rc = connect_once(pg, err);
    if (rc != TIDE_OK) {
        tide_pg_close(pg); /* PG2 */
        return rc;
    }
    *pg_out = pg;
    return TIDE_OK;
}

void tide_pg_close(tide_pg *pg)
{
    if (pg == NULL)
        return;
    tide_pg_disconnect(pg);
    tide_buf_done(&pg->bytes);
    tide_mem_free(pg->mem, pg->prepared, pg->sql_count * sizeof pg->prepared[0]);
    explicit_bzero(pg->url, sizeof pg->url);
    tide_mem_free(pg->mem, pg, sizeof *pg);
}

tide_status tide_pg_ready(tide_pg *pg, tide_error *err)
{
    if (pg->conn != NULL && PQstatus(pg->conn) == CONNECTION_OK)
        return TIDE_OK;
    tide_pg_disconnect(pg);
    return connect_once(pg, err);
}

void tide_pg_drop(tide_pg *pg)
{
    tide_pg_disconnect(pg);
}

PGconn *tide_pg_handle(tide_pg *pg)
{
    return pg->conn;
}

const char *tide_pg_name(const tide_pg *pg)
{
    return pg->name;
}

bool tide_pg_pooled(const tide_pg *pg)
{
    return pg->pooled;
}

const char *tide_pg_local_settings(const tide_pg *pg)
{
    return pg->pooled ? pg->local_settings : "";
}
