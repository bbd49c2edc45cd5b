/* pg_params.c - values in PostgreSQL's binary form: parameters, arrays, rows of a COPY, and
 * the columns of a result. */
#include "db/pg_inside.h"

#include <arpa/inet.h>
#include <string.h>

enum { ARRAY_HEAD_BYTES = 20 };

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

char *tide_pg_room(tide_pg *pg, size_t bytes)
{
    char *at = pg->params_failed ? NULL : tide_buf_reserve(&pg->bytes, bytes);
    if (at == NULL)
        pg->params_failed = true;
    else
        pg->bytes.bytes += bytes;
    return at;
}

/* The start of one value: of a parameter, or of the open array's next element.  NULL: no
 * memory, or no bytes to fill. */
static char *value(tide_pg *pg, Oid type, int bytes)
{
    TIDE_ASSERT(bytes >= -1);
    size_t filled = bytes < 0 ? 0 : (size_t)bytes;
    if (pg->in_record) {
        char *at = tide_pg_room(pg, 8 + filled);
        pg->record_count++;
        if (at == NULL)
            return NULL;
        put_u32(at, type);
        put_u32(at + 4, (uint32_t)bytes);
        return at + 8;
    }
    if (pg->in_copy) {
        char *at = tide_pg_room(pg, 4 + filled);
        if (at != NULL)
            put_u32(at, (uint32_t)bytes);
        return at == NULL ? NULL : at + 4;
    }
    if (pg->in_array) {
        char *at = tide_pg_room(pg, 4 + filled);
        pg->array_count++;
        pg->array_has_null = pg->array_has_null || bytes < 0;
        if (at == NULL)
            return NULL;
        put_u32(at, (uint32_t)bytes);
        return at + 4;
    }
    TIDE_ASSERT(pg->params_count < TIDE_PG_PARAMS_MAX);
    pg->params[pg->params_count++] = (struct tide_pg_param){
        .type = type, .format = 1, .offset = pg->bytes.bytes, .bytes = bytes};
    return tide_pg_room(pg, filled);
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
    if (text.bytes > (size_t)TIDE_PG_VALUES_BYTES) {
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
        return 0; /* the statement casts it */
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
    char *at = tide_pg_room(pg, 19);
    if (at != NULL)
        memcpy(at, head, 19);
    pg->in_copy = true;
}

void tide_pg_copy_row(tide_pg *pg, uint16_t columns)
{
    TIDE_ASSERT(pg->in_copy);
    char *at = tide_pg_room(pg, 2);
    uint16_t swapped = htons(columns);
    if (at != NULL)
        memcpy(at, &swapped, sizeof swapped);
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
