/* pg_inside.h - private to pg*.c: one connection.
 *
 *   pg.c         errors, connecting
 *   pg_params.c  values in the binary form, in both directions
 *   pg_run.c     statements, the lead, COPY */
#ifndef TIDE_DB_PG_INSIDE_H
#define TIDE_DB_PG_INSIDE_H

#include "base/check.h"
#include "db/pg.h"

enum {
    TIDE_PG_URL_BYTES = 4096,
    TIDE_PG_SETTINGS_BYTES = 1000,
    TIDE_PG_VALUES_BYTES = 512 << 20, /* of all parameters of one statement */
};

struct tide_pg_param {
    Oid type;
    int format;
    size_t offset; /* into bytes */
    int bytes;     /* -1: NULL */
};

struct tide_pg {
    tide_mem *mem;
    PGconn *conn;     /* NULL: not connected */
    PGresult *result; /* of the last statement (PG3) */
    char url[TIDE_PG_URL_BYTES];
    char name[200];
    char application[64];
    char sqlstate[6];
    char settings[TIDE_PG_SETTINGS_BYTES];       /* "SET a; SET b" */
    char local_settings[TIDE_PG_SETTINGS_BYTES]; /* "SET LOCAL a; SET LOCAL b; " */
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
    struct tide_pg_param params[TIDE_PG_PARAMS_MAX];
    size_t params_count;
    size_t array_at;       /* offset of the open array's head */
    uint32_t array_count;  /* its elements */
    size_t record_at;      /* offset of the open record's head */
    uint32_t record_count; /* its columns */
    bool in_array;
    bool in_record;
    bool in_copy;
    bool array_has_null;
    bool params_failed; /* no memory while they were built: reported by the next run */
    struct tide_pg_lead lead;
    bool leads; /* the lead is sent with the next statement */
};

/* ---- pg.c ---- */

void tide_pg_disconnect(tide_pg *pg);
/* The status of a failed statement; closes a lost connection (PG1). */
tide_status tide_pg_failed(tide_pg *pg, const PGresult *result, tide_error *err);
tide_status tide_pg_not_connected(const tide_pg *pg, tide_error *err);

/* ---- pg_params.c ---- */

/* Room for `bytes` more of parameters or rows; NULL: no memory, reported by the next run. */
char *tide_pg_room(tide_pg *pg, size_t bytes);

#endif
