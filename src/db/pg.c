/* pg.c - see pg.h. */
#include "db/pg.h"
#include "base/check.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    URL_BYTES_MAX = 4096,
    SETTINGS_BYTES_MAX = 1000,
    PARAM_BYTES_MAX = 512 << 20, /* of all parameters of one statement */
    ARRAY_HEAD_BYTES = 20,
    CONNECT_MS_USUAL = 5000,
    STATEMENT_MS_USUAL = 60000,
};

struct param {
    Oid type;
    int format;
    size_t offset; /* into bytes */
    int bytes;     /* -1: NULL */
};

struct tide_pg {
    tide_mem *mem;
    PGconn *conn;     /* NULL: not connected */
    PGresult *result; /* of the last statement (P3) */
    char url[URL_BYTES_MAX];
    char name[200];
    char application[64];
    char sqlstate[6];
    char settings[SETTINGS_BYTES_MAX];       /* "SET a; SET b" */
    char local_settings[SETTINGS_BYTES_MAX]; /* "SET LOCAL a; SET LOCAL b; " */
    uint32_t connect_ms;
    uint32_t statement_ms;
    bool read_only;
    bool pooled;
    bool pooler_told; /* by the URL */
    uint64_t changed;
    const char *const *sql;
    size_t sql_count;
    bool *prepared;
    tide_buf bytes;
    struct param params[TIDE_PG_PARAMS_MAX];
    size_t params_count;
    size_t array_at;       /* offset of the open array's head */
    uint32_t array_count;  /* its elements */
    size_t record_at;      /* offset of the open record's head */
    uint32_t record_count; /* its columns */
    bool in_array;
    bool in_record;
    bool in_copy;
    bool array_has_null;
    bool params_failed; /* no memory while they were built: told by the next run */
    struct tide_pg_lead lead;
    bool leads; /* it goes with the next statement */
};

/* ---- errors -------------------------------------------------------------------- */

static bool state_is(const char *sqlstate, const char *start)
{
    return strncmp(sqlstate, start, strlen(start)) == 0;
}

/* 25006 and 0A000 are what a standby says to a transaction that writes: it is one until
 * somebody promotes it, or we find the primary.  0A000 is also what becomes of a prepared
 * statement whose tables were upgraded: it is prepared again on another connection. */
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

static void disconnect(tide_pg *pg)
{
    PQclear(pg->result);
    pg->result = NULL;
    PQfinish(pg->conn);
    pg->conn = NULL;
    if (pg->prepared != NULL)
        memset(pg->prepared, 0, pg->sql_count * sizeof pg->prepared[0]);
}

/* What a server said that did not let us in; libpq gives no SQLSTATE for it, only the
 * words, and those are translated on some servers.  Not being let in for now is what
 * passes by itself; a wrong password or database is not. */
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
    disconnect(pg);
    return tide_error_set(err, status, "%s: %s%s", pg->name, line, advice);
}

/* A statement failed.  `result` may be NULL when libpq had no memory. */
static tide_status statement_failed(tide_pg *pg, const PGresult *result, tide_error *err)
{
    const char *sqlstate = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_SQLSTATE);
    (void)snprintf(pg->sqlstate, sizeof pg->sqlstate, "%s", sqlstate == NULL ? "" : sqlstate);
    const char *said = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    char line[240];
    one_line(said != NULL ? said : PQerrorMessage(pg->conn), line, sizeof line);
    if (PQstatus(pg->conn) != CONNECTION_OK) {
        disconnect(pg); /* P1 */
        return tide_error_set(err, TIDE_NETWORK, "%s: the connection was lost: %s", pg->name, line);
    }
    if (sqlstate == NULL)
        return tide_error_set(err, result == NULL ? TIDE_NO_MEMORY : TIDE_IO, "%s: %s", pg->name,
                              line);
    if (state_is(sqlstate, "26000") || state_is(sqlstate, "42P05"))
        pg->pooled = true;
    /* Nobody can be written to while a standby is not yet the primary: another connection
     * may find one later.  BEGIN READ WRITE is refused there as a feature it does not have. */
    const char *standby = PQparameterStatus(pg->conn, "in_hot_standby");
    if (state_is(sqlstate, "0A000") && standby != NULL && strcmp(standby, "on") == 0)
        sqlstate = "25006";
    tide_status status = tide_pg_status(sqlstate);
    (void)tide_error_set(err, status, "%s: %s%s", pg->name, line, advice_for(sqlstate));
    if (status == TIDE_NETWORK)
        disconnect(pg);
    return status;
}

static tide_status not_connected(const tide_pg *pg, tide_error *err)
{
    return tide_error_set(err, TIDE_NETWORK, "%s: not connected", pg->name);
}

/* ---- connecting ---------------------------------------------------------------- */

/* Takes ?tidemark_pooler=1 out of the URL: libpq refuses words it does not know. */
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

/* What a server sends beside answers (notices) is nothing anybody asked for. */
static void no_notice(void *arg, const PGresult *result)
{
    (void)arg;
    (void)result;
}

static void setting(char *text, const char *start, const char *one, size_t one_bytes)
{
    size_t at = strlen(text);
    TIDE_ASSERT(at + strlen(start) + one_bytes + 3 < SETTINGS_BYTES_MAX);
    (void)snprintf(text + at, SETTINGS_BYTES_MAX - at, "%s%.*s; ", start, (int)one_bytes, one);
}

static void make_settings(tide_pg *pg, const char *more)
{
    char all[SETTINGS_BYTES_MAX];
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

/* A session of our own gets its settings once.  Behind a pooler they would stay with a
 * server connection that serves others next: there each transaction sets its own. */
static tide_status set_up_session(tide_pg *pg, tide_error *err)
{
    PGresult *result = PQexec(pg->conn, "SELECT pg_catalog.pg_backend_pid()");
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        tide_status rc = statement_failed(pg, result, err);
        PQclear(result);
        disconnect(pg);
        return rc;
    }
    /* A pooler hands out numbers of its own: the server's process is another one. */
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
        disconnect(pg);
    return rc;
}

static tide_status connect_once(tide_pg *pg, tide_error *err)
{
    char timeout_s[16];
    char user_timeout[16];
    uint32_t seconds = (pg->connect_ms + 999) / 1000;
    (void)snprintf(timeout_s, sizeof timeout_s, "%" PRIu32, seconds < 2 ? 2 : seconds);
    (void)snprintf(user_timeout, sizeof user_timeout, "%" PRIu32, pg->connect_ms * 3);
    /* Who writes passes over a standby to the next host that the URL names. */
    const char *server = pg->read_only              ? "any"
                         : PQlibVersion() >= 140000 ? "primary"
                                                    : "read-write";
    /* The URL comes first among equals: whatever it names beats what stands before it. */
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
    if (strlen(options->url) >= URL_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "a PostgreSQL URL of %zu bytes, at most %d",
                              strlen(options->url), URL_BYTES_MAX - 1);
    tide_pg *pg = tide_mem_new(mem, sizeof *pg);
    if (pg == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "PostgreSQL: no memory");
    pg->mem = mem;
    pg->connect_ms = options->connect_ms == 0 ? CONNECT_MS_USUAL : options->connect_ms;
    pg->statement_ms = options->statement_ms == 0 ? STATEMENT_MS_USUAL : options->statement_ms;
    pg->read_only = options->read_only;
    pg->sql = options->sql;
    pg->sql_count = options->sql_count;
    tide_buf_init(&pg->bytes, mem, PARAM_BYTES_MAX);
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
        tide_pg_close(pg); /* P2 */
        return rc;
    }
    *pg_out = pg;
    return TIDE_OK;
}

void tide_pg_close(tide_pg *pg)
{
    if (pg == NULL)
        return;
    disconnect(pg);
    tide_buf_done(&pg->bytes);
    tide_mem_free(pg->mem, pg->prepared, pg->sql_count * sizeof pg->prepared[0]);
    explicit_bzero(pg->url, sizeof pg->url);
    tide_mem_free(pg->mem, pg, sizeof *pg);
}

tide_status tide_pg_ready(tide_pg *pg, tide_error *err)
{
    if (pg->conn != NULL && PQstatus(pg->conn) == CONNECTION_OK)
        return TIDE_OK;
    disconnect(pg);
    return connect_once(pg, err);
}

void tide_pg_drop(tide_pg *pg)
{
    disconnect(pg);
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

/* ---- parameters ---------------------------------------------------------------- */

static void put_u32(char *at, uint32_t value)
{
    value = htonl(value);
    memcpy(at, &value, sizeof value);
}

static void put_u64(char *at, uint64_t value)
{
    put_u32(at, (uint32_t)(value >> 32));
    put_u32(at + 4, (uint32_t)value);
}

void tide_pg_params(tide_pg *pg)
{
    TIDE_ASSERT(!pg->in_array);
    tide_buf_clear(&pg->bytes);
    pg->params_count = 0;
    pg->params_failed = false;
}

static char *room(tide_pg *pg, size_t bytes)
{
    char *at = pg->params_failed ? NULL : tide_buf_reserve(&pg->bytes, bytes);
    if (at == NULL)
        pg->params_failed = true;
    else
        pg->bytes.bytes += bytes;
    return at;
}

/* The start of one value: of a parameter, or of the open array's next element.  NULL:
 * there is nothing to fill. */
static char *value(tide_pg *pg, Oid type, int bytes)
{
    TIDE_ASSERT(bytes >= -1);
    size_t filled = bytes < 0 ? 0 : (size_t)bytes;
    if (pg->in_record) {
        char *at = room(pg, 8 + filled);
        pg->record_count++;
        if (at == NULL)
            return NULL;
        put_u32(at, type);
        put_u32(at + 4, (uint32_t)bytes);
        return at + 8;
    }
    if (pg->in_copy) {
        char *at = room(pg, 4 + filled);
        if (at != NULL)
            put_u32(at, (uint32_t)bytes);
        return at == NULL ? NULL : at + 4;
    }
    if (pg->in_array) {
        char *at = room(pg, 4 + filled);
        pg->array_count++;
        pg->array_has_null = pg->array_has_null || bytes < 0;
        if (at == NULL)
            return NULL;
        put_u32(at, (uint32_t)bytes);
        return at + 4;
    }
    TIDE_ASSERT(pg->params_count < TIDE_PG_PARAMS_MAX);
    pg->params[pg->params_count++] =
        (struct param){.type = type, .format = 1, .offset = pg->bytes.bytes, .bytes = bytes};
    return room(pg, filled);
}

void tide_pg_i64(tide_pg *pg, int64_t number)
{
    char *at = value(pg, TIDE_PG_INT8, 8);
    if (at != NULL)
        put_u64(at, (uint64_t)number);
}

void tide_pg_u64(tide_pg *pg, uint64_t number)
{
    tide_pg_i64(pg, (int64_t)number);
}

void tide_pg_u64_or_null(tide_pg *pg, uint64_t number)
{
    if (number == 0)
        (void)value(pg, TIDE_PG_INT8, -1);
    else
        tide_pg_u64(pg, number);
}

void tide_pg_i32(tide_pg *pg, int32_t number)
{
    char *at = value(pg, TIDE_PG_INT4, 4);
    if (at != NULL)
        put_u32(at, (uint32_t)number);
}

void tide_pg_i16(tide_pg *pg, int16_t number)
{
    char *at = value(pg, TIDE_PG_INT2, 2);
    uint16_t swapped = htons((uint16_t)number);
    if (at != NULL)
        memcpy(at, &swapped, sizeof swapped);
}

void tide_pg_bool(tide_pg *pg, bool truth)
{
    char *at = value(pg, TIDE_PG_BOOL, 1);
    if (at != NULL)
        *at = truth ? 1 : 0;
}

void tide_pg_text(tide_pg *pg, tide_text text)
{
    if (text.bytes > (size_t)PARAM_BYTES_MAX) {
        pg->params_failed = true;
        text = TIDE_TEXT_NONE;
    }
    char *at = value(pg, TIDE_PG_TEXT, (int)text.bytes);
    if (at != NULL && text.bytes > 0)
        memcpy(at, text.data, text.bytes);
}

void tide_pg_text_or_null(tide_pg *pg, tide_text text)
{
    if (text.bytes == 0)
        (void)value(pg, TIDE_PG_TEXT, -1);
    else
        tide_pg_text(pg, text);
}

static Oid array_of(Oid element)
{
    switch (element) {
    case TIDE_PG_BOOL:
        return 1000;
    case TIDE_PG_INT2:
        return 1005;
    case TIDE_PG_INT4:
        return 1007;
    case TIDE_PG_TEXT:
        return 1009;
    case TIDE_PG_INT8:
        return 1016;
    default:
        return 0; /* the statement's cast says it */
    }
}

void tide_pg_array(tide_pg *pg, Oid element)
{
    TIDE_ASSERT(!pg->in_array);
    pg->array_at = pg->bytes.bytes;
    char *at = value(pg, array_of(element), ARRAY_HEAD_BYTES);
    if (at != NULL)
        put_u32(at + 8, element);
    pg->in_array = true;
    pg->array_has_null = false;
    pg->array_count = 0;
}

void tide_pg_array_end(tide_pg *pg)
{
    TIDE_ASSERT(pg->in_array);
    pg->in_array = false;
    if (pg->params_failed)
        return;
    char *at = pg->bytes.data + pg->array_at;
    put_u32(at, pg->array_count > 0 ? 1 : 0); /* dimensions */
    put_u32(at + 4, pg->array_has_null ? 1 : 0);
    put_u32(at + 12, pg->array_count);
    put_u32(at + 16, 1); /* the first index */
    if (pg->array_count == 0)
        pg->bytes.bytes = pg->array_at + 12;
    pg->params[pg->params_count - 1].bytes = (int)(pg->bytes.bytes - pg->array_at);
}

void tide_pg_record(tide_pg *pg)
{
    TIDE_ASSERT(pg->in_array);
    TIDE_ASSERT(!pg->in_record);
    pg->record_at = pg->bytes.bytes;
    (void)value(pg, 0, 4); /* its bytes, then how many columns */
    pg->in_record = true;
    pg->record_count = 0;
}

void tide_pg_record_end(tide_pg *pg)
{
    TIDE_ASSERT(pg->in_record);
    pg->in_record = false;
    if (pg->params_failed)
        return;
    char *at = pg->bytes.data + pg->record_at;
    put_u32(at, (uint32_t)(pg->bytes.bytes - pg->record_at - 4));
    put_u32(at + 4, pg->record_count);
}

void tide_pg_copy(tide_pg *pg)
{
    static const char head[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";
    tide_pg_params(pg);
    char *at = room(pg, 19);
    if (at != NULL)
        memcpy(at, head, 19);
    pg->in_copy = true;
}

void tide_pg_copy_row(tide_pg *pg, uint16_t columns)
{
    TIDE_ASSERT(pg->in_copy);
    char *at = room(pg, 2);
    uint16_t swapped = htons(columns);
    if (at != NULL)
        memcpy(at, &swapped, sizeof swapped);
}

/* ---- statements ---------------------------------------------------------------- */

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
        const struct param *param = &pg->params[i];
        /* Of no bytes at all: the value must still not be NULL. */
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
        tide_status rc = statement_failed(pg, result, err);
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

/* `bound` may be NULL: the statement says what its parameters are. */
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
        rc = statement_failed(pg, result, err);
    PQclear(result);
    return rc;
}

/* ---- a lead ---- */

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

/* What came back; false: the pipeline did not end as it has to. */
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
    tide_status rc = prepare(pg, pg->lead.begin, NULL, err);
    if (rc == TIDE_OK)
        rc = prepare(pg, pg->lead.first, NULL, err);
    if (rc == TIDE_OK && bound != NULL)
        rc = prepare(pg, number, bound, err);
    if (rc != TIDE_OK)
        return rc;
    bool whole = send_led(pg, number, bound) && receive_led(pg, results, count);
    *begun_out = result_ok(results[LED_BEGIN]);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        if (!result_ok(results[i]))
            rc = statement_failed(pg, results[i], err);
    if (rc == TIDE_OK && whole)
        rc = pg->lead.accept(pg->lead.arg, results[LED_FIRST], err);
    if (!whole && pg->conn != NULL) {
        disconnect(pg);
        rc = not_connected(pg, err);
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
    /* The server may have been restarted while nobody asked.  Nothing was begun, so all of
     * it may be said again on a new connection. */
    if (rc == TIDE_NETWORK && !begun && tide_pg_ready(pg, err) == TIDE_OK && !pg->pooled)
        rc = run_led_once(pg, number, bound, result_out, &begun, err);
    return rc;
}

tide_status tide_pg_lead_go(tide_pg *pg, tide_error *err)
{
    if (!pg->leads)
        return TIDE_OK;
    forget_result(pg);
    return pg->conn == NULL ? not_connected(pg, err) : run_led(pg, 0, NULL, NULL, err);
}

/* ---- statements ---- */

tide_status tide_pg_run(tide_pg *pg, size_t number, PGresult **result_out, tide_error *err)
{
    TIDE_ASSERT(number < pg->sql_count);
    TIDE_ASSERT(pg->sql[number] != NULL);
    if (pg->pooled)
        return tide_pg_query(pg, pg->sql[number], result_out, err);
    forget_result(pg);
    if (pg->conn == NULL)
        return not_connected(pg, err);
    struct bound bound;
    tide_status rc = bind_params(pg, &bound, err);
    if (rc == TIDE_OK && pg->leads)
        return run_led(pg, number, &bound, result_out, err);
    if (rc == TIDE_OK)
        rc = prepare(pg, number, &bound, err);
    if (rc != TIDE_OK)
        return rc;
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
    return rc == TIDE_OK && pg->conn == NULL ? not_connected(pg, err) : rc;
}

tide_status tide_pg_query(tide_pg *pg, const char *sql, PGresult **result_out, tide_error *err)
{
    struct bound bound;
    tide_status rc = alone(pg, err);
    if (rc == TIDE_OK)
        rc = bind_params(pg, &bound, err);
    if (rc != TIDE_OK)
        return rc;
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
    tide_status rc = alone(pg, err);
    if (rc != TIDE_OK)
        return rc;
    PGresult *result = PQexec(pg->conn, sql);
    if (PQresultStatus(result) != PGRES_COPY_IN) {
        rc = statement_failed(pg, result, err);
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
    if (!sent) { /* no memory: the rows are neither all there nor none, until it is gone */
        disconnect(pg);
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
    char *end = room(pg, 2);
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

/* ---- columns ------------------------------------------------------------------- */

int64_t tide_pg_get_i64(const PGresult *result, int row, int column)
{
    const unsigned char *at = (const unsigned char *)PQgetvalue(result, row, column);
    if (PQgetisnull(result, row, column))
        return 0;
    int bytes = PQgetlength(result, row, column);
    TIDE_ASSERT(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
    uint64_t number = (at[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (int i = 0; i < bytes; i++)
        number = number << 8 | at[i];
    return (int64_t)number;
}

uint64_t tide_pg_get_u64(const PGresult *result, int row, int column)
{
    return (uint64_t)tide_pg_get_i64(result, row, column);
}

bool tide_pg_get_bool(const PGresult *result, int row, int column)
{
    return tide_pg_get_i64(result, row, column) != 0;
}

tide_text tide_pg_get_text(const PGresult *result, int row, int column)
{
    if (PQgetisnull(result, row, column))
        return TIDE_TEXT_NONE;
    return (tide_text){PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column)};
}
