/* rows.c - rows in their canonical form, read from and written to either
 * database. */
#include "ledger/copy/inside.h"

#include "base/check.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    FETCH_ROWS = 2000,
    SQL_BYTES_MAX = 16 << 10,
    ROWS_BYTES_MAX = 256 << 20, /* of a batch; one row is far smaller */
};

static bool is_text(copy_type type)
{
    return type >= COPY_TEXT;
}

static tide_status no_memory(tide_error *err)
{
    return tide_error_set(err, TIDE_NO_MEMORY, "no memory to copy rows");
}

/* ---- the canonical text ---- */

tide_status tide_copy_value_add(tide_buf *text, const struct copy_column *column,
                                const struct copy_value *value)
{
    if (value->null)
        return tide_buf_add(text, "n;", 2);
    if (!is_text(column->type))
        return tide_buf_print(text, "i%" PRId64 ";", value->number);
    TIDE_TRY(tide_buf_print(text, "t%zu:", value->text.bytes));
    TIDE_TRY(tide_buf_add(text, value->text.data, value->text.bytes));
    return tide_buf_add(text, ";", 1);
}

/* Reads the number up to `stop`, and moves *at behind that. */
static bool take_number(tide_text text, size_t *at, char stop, int64_t *number_out)
{
    const char *begin = text.data + *at;
    const char *end = memchr(begin, stop, text.bytes - *at);
    if (end == NULL || !tide_text_to_i64((tide_text){begin, (size_t)(end - begin)}, number_out))
        return false;
    *at += (size_t)(end - begin) + 1;
    return true;
}

bool tide_copy_value_take(tide_text text, size_t *at, struct copy_value *value_out)
{
    struct copy_value value = {0};
    int64_t bytes = 0;
    size_t next = *at;
    if (next + 2 > text.bytes)
        return false;
    switch (text.data[next++]) {
    case 'n':
        value.null = true;
        if (text.data[next++] != ';')
            return false;
        break;
    case 'i':
        if (!take_number(text, &next, ';', &value.number))
            return false;
        break;
    case 't':
        if (!take_number(text, &next, ':', &bytes) || bytes < 0 ||
            (uint64_t)bytes >= text.bytes - next || text.data[next + (size_t)bytes] != ';')
            return false;
        value.text = (tide_text){text.data + next, (size_t)bytes};
        next += (size_t)bytes + 1;
        break;
    default:
        return false;
    }
    *at = next;
    *value_out = value;
    return true;
}

void tide_copy_row_name(const struct copy_table *table, const struct copy_value *values,
                        char *name_out, size_t name_bytes)
{
    size_t used = 0;
    for (size_t i = 0; i <= table->keys_count && used < name_bytes; i++) {
        int more = 0;
        if (i == 0)
            more = snprintf(name_out, name_bytes, "%s", table->people);
        else if (!is_text(table->columns[i - 1].type))
            more = snprintf(name_out + used, name_bytes - used, " %" PRId64, values[i - 1].number);
        else
            more = snprintf(name_out + used, name_bytes - used, " \"%.*s\"",
                            (int)(values[i - 1].text.bytes < 60 ? values[i - 1].text.bytes : 60),
                            values[i - 1].text.bytes == 0 ? "" : values[i - 1].text.data);
        used += more > 0 ? (size_t)more : 0;
    }
}

/* ---- what fits ---- */

static bool number_fits(copy_type type, int64_t number)
{
    switch (type) {
    case COPY_BOOL:
        return number == 0 || number == 1;
    case COPY_INT2:
        return number >= INT16_MIN && number <= INT16_MAX;
    case COPY_INT4:
        return number >= INT32_MIN && number <= INT32_MAX;
    default:
        return true;
    }
}

static bool is_utf8(tide_text text)
{
    size_t at = 0;
    while (at < text.bytes) {
        if ((unsigned char)text.data[at] < 0x80) { /* the usual case */
            at++;
            continue;
        }
        const size_t bytes = tide_utf8_bytes((tide_text){text.data + at, text.bytes - at});
        if (bytes == 0)
            return false;
        at += bytes;
    }
    return true;
}

tide_status tide_copy_row_fits(const struct copy_table *table, const struct copy_value *values,
                               bool postgres, tide_error *err)
{
    const char *what = NULL;
    for (size_t i = 0; postgres && i < table->columns_count; i++) {
        const struct copy_column *column = &table->columns[i];
        if (values[i].null || column->type == COPY_BYTES)
            continue;
        if (!is_text(column->type))
            what = number_fits(column->type, values[i].number) ? NULL : "is out of range for";
        else if (values[i].text.bytes > 0 &&
                 memchr(values[i].text.data, '\0', values[i].text.bytes) != NULL)
            what = "has a zero byte, which cannot be stored as text by";
        else
            what = is_utf8(values[i].text) ? NULL : "is not UTF-8, which is needed for";
        if (what != NULL) {
            char name[200];
            tide_copy_row_name(table, values, name, sizeof name);
            return tide_error_set(err, TIDE_INVALID,
                                  "%.160s: its %.48s %s PostgreSQL; nothing was copied", name,
                                  column->name, what);
        }
    }
    return TIDE_OK;
}

/* ---- reading ---- */

static void add(tide_buf *sql, bool *failed, const char *text)
{
    if (tide_buf_add_text(sql, text) != TIDE_OK)
        *failed = true;
}

static void add_name(tide_buf *sql, bool *failed, const char *name)
{
    if (tide_buf_print(sql, "\"%s\"", name) != TIDE_OK)
        *failed = true;
}

/* How a column is read from a side; as a key it is compared byte by byte on both. */
static void add_column(tide_buf *sql, bool *failed, const struct copy_side *side,
                       const struct copy_column *column, bool key)
{
    if (side->pg == NULL && column->sqlite != NULL) {
        add(sql, failed, column->sqlite);
        return;
    }
    if (side->pg != NULL && column->type == COPY_IDS) {
        add(sql, failed, "array_to_string(");
        add_name(sql, failed, column->name);
        add(sql, failed, ", ',')");
        return;
    }
    add_name(sql, failed, column->name);
    if (key && side->pg != NULL && column->type == COPY_TEXT)
        add(sql, failed, " COLLATE \"C\"");
}

static void add_keys(tide_buf *sql, bool *failed, const struct copy_side *side,
                     const struct copy_table *table)
{
    for (size_t i = 0; i < table->keys_count; i++) {
        add(sql, failed, i == 0 ? "" : ", ");
        add_column(sql, failed, side, &table->columns[i], true);
    }
}

/* " FROM ... WHERE ..." */
static void add_from(tide_buf *sql, bool *failed, const struct copy_side *side,
                     const struct copy_table *table)
{
    add(sql, failed, " FROM ");
    if (side->pg == NULL && table->sqlite_from != NULL) {
        add(sql, failed, table->sqlite_from);
    } else {
        add(sql, failed, tide_copy_schema(side));
        add_name(sql, failed, table->name);
    }
    add(sql, failed, " WHERE ");
    const char *where =
        side->pg == NULL && table->sqlite_where != NULL ? table->sqlite_where : table->where;
    add(sql, failed, where == NULL ? "1 = 1" : where);
}

tide_status tide_copy_count(struct copy_side *side, const struct copy_table *table,
                            uint64_t *count_out, tide_error *err)
{
    bool failed = false;
    struct copy_answer answer = {0};
    tide_auto_buf sql = tide_buf_heap(SQL_BYTES_MAX);
    add(&sql, &failed, "SELECT count(*)");
    add_from(&sql, &failed, side, table);
    TIDE_TRY(failed ? no_memory(err)
                    : tide_copy_side_run(side, tide_buf_cstr(&sql), NULL, 0, &answer, err));
    *count_out = (uint64_t)answer.number;
    return TIDE_OK;
}

static tide_status select_text(tide_buf *sql, struct copy_side *side,
                               const struct copy_table *table, bool after, tide_error *err)
{
    bool failed = false;
    if (side->pg != NULL)
        add(sql, &failed, "DECLARE tide_copy NO SCROLL CURSOR FOR ");
    add(sql, &failed, "SELECT ");
    for (size_t i = 0; i < table->columns_count; i++) {
        add(sql, &failed, i == 0 ? "" : ", ");
        add_column(sql, &failed, side, &table->columns[i], false);
    }
    add_from(sql, &failed, side, table);
    if (after) {
        add(sql, &failed, " AND (");
        add_keys(sql, &failed, side, table);
        add(sql, &failed, ") > (");
        for (size_t i = 0; i < table->keys_count; i++)
            failed = tide_buf_print(sql, "%s%c%zu", i == 0 ? "" : ", ",
                                    side->pg != NULL ? '$' : '?', i + 1) != TIDE_OK ||
                     failed;
        add(sql, &failed, ")");
    }
    add(sql, &failed, " ORDER BY ");
    add_keys(sql, &failed, side, table);
    return failed ? no_memory(err) : TIDE_OK;
}

static tide_status open_sqlite(struct copy_reader *reader, const char *sql,
                               const struct copy_value *after, tide_error *err)
{
    tide_db *db = reader->side->db;
    int code = sqlite3_prepare_v2(db->handle, sql, -1, &reader->stmt, NULL);
    if (code != SQLITE_OK)
        return tide_db_failed(db, code, "read a table", err);
    for (size_t i = 0; after != NULL && i < reader->table->keys_count; i++) {
        const int at = (int)i + 1;
        const copy_type type = reader->table->columns[i].type;
        if (!is_text(type)) {
            (void)sqlite3_bind_int64(reader->stmt, at, after[i].number);
            continue;
        }
        /* The key is in a buffer of the caller that changes meanwhile. */
        const tide_text text = after[i].text;
        if (type == COPY_BYTES)
            code = sqlite3_bind_blob64(reader->stmt, at, text.bytes == 0 ? "" : text.data,
                                       text.bytes, SQLITE_TRANSIENT);
        else
            code = sqlite3_bind_text64(reader->stmt, at, text.bytes == 0 ? "" : text.data,
                                       text.bytes, SQLITE_TRANSIENT, SQLITE_UTF8);
        if (code != SQLITE_OK)
            return tide_db_failed(db, code, "read a table", err);
    }
    return TIDE_OK;
}

static tide_status open_pg(struct copy_reader *reader, const char *sql,
                           const struct copy_value *after, tide_error *err)
{
    tide_pg *pg = reader->side->pg;
    tide_pg_params(pg);
    for (size_t i = 0; after != NULL && i < reader->table->keys_count; i++) {
        TIDE_ASSERT(reader->table->columns[i].type != COPY_BYTES); /* no table has such a key */
        if (is_text(reader->table->columns[i].type))
            tide_pg_text(pg, after[i].text);
        else
            tide_pg_i64(pg, after[i].number);
    }
    return tide_pg_query(pg, sql, NULL, err);
}

tide_status tide_copy_reader_open(struct copy_reader *reader, struct copy_side *side,
                                  const struct copy_table *table, const struct copy_value *after,
                                  tide_mem *mem, tide_error *err)
{
    TIDE_ASSERT(side->in_tx);
    TIDE_ASSERT(table->columns_count <= TIDE_COPY_COLUMNS_MAX);
    memset(reader, 0, sizeof *reader);
    reader->side = side;
    reader->table = table;
    tide_auto_buf sql = tide_buf_in(mem, SQL_BYTES_MAX);
    tide_status rc = select_text(&sql, side, table, after != NULL, err);
    if (rc == TIDE_OK)
        rc = side->pg != NULL ? open_pg(reader, tide_buf_cstr(&sql), after, err)
                              : open_sqlite(reader, tide_buf_cstr(&sql), after, err);
    reader->open = rc == TIDE_OK;
    if (rc != TIDE_OK)
        tide_copy_reader_close(reader);
    return rc;
}

static tide_status wrong_type(const struct copy_reader *reader, size_t at, tide_error *err)
{
    return tide_error_set(err, TIDE_CORRUPT, "%s: %s.%s holds a value of another type",
                          reader->side->name, reader->table->name, reader->table->columns[at].name);
}

static tide_status next_sqlite(struct copy_reader *reader, bool *row_out, tide_error *err)
{
    const int code = sqlite3_step(reader->stmt);
    *row_out = code == SQLITE_ROW;
    if (code != SQLITE_ROW)
        return code == SQLITE_DONE ? TIDE_OK
                                   : tide_db_failed(reader->side->db, code, "read a table", err);
    for (size_t i = 0; i < reader->table->columns_count; i++) {
        struct copy_value *value = &reader->values[i];
        const copy_type type = reader->table->columns[i].type;
        const int stored = sqlite3_column_type(reader->stmt, (int)i);
        *value = (struct copy_value){.null = stored == SQLITE_NULL};
        if (value->null)
            continue;
        if (stored != (type == COPY_BYTES ? SQLITE_BLOB
                       : is_text(type)    ? SQLITE_TEXT
                                          : SQLITE_INTEGER))
            return wrong_type(reader, i, err);
        if (stored == SQLITE_INTEGER) {
            value->number = sqlite3_column_int64(reader->stmt, (int)i);
            continue;
        }
        value->text.data = stored == SQLITE_BLOB
                               ? sqlite3_column_blob(reader->stmt, (int)i)
                               : (const char *)sqlite3_column_text(reader->stmt, (int)i);
        value->text.bytes = (size_t)sqlite3_column_bytes(reader->stmt, (int)i);
        if (value->text.data == NULL && value->text.bytes > 0)
            return no_memory(err);
    }
    return TIDE_OK;
}

static tide_status next_pg(struct copy_reader *reader, bool *row_out, tide_error *err)
{
    if (reader->rows == NULL || reader->row == PQntuples(reader->rows)) {
        char fetch[60];
        PGresult *rows = NULL;
        *row_out = false;
        if (reader->last)
            return TIDE_OK;
        (void)snprintf(fetch, sizeof fetch, "FETCH %d FROM tide_copy", FETCH_ROWS);
        tide_pg_params(reader->side->pg);
        TIDE_TRY(tide_pg_query(reader->side->pg, fetch, &rows, err));
        reader->rows = rows;
        reader->row = 0;
        reader->last = PQntuples(rows) < FETCH_ROWS;
        if (PQntuples(rows) == 0)
            return TIDE_OK;
    }
    for (size_t i = 0; i < reader->table->columns_count; i++) {
        struct copy_value *value = &reader->values[i];
        const int at = (int)i;
        *value = (struct copy_value){.null = PQgetisnull(reader->rows, reader->row, at) != 0};
        if (value->null)
            continue;
        if (is_text(reader->table->columns[i].type))
            value->text = (tide_text){PQgetvalue(reader->rows, reader->row, at),
                                      (size_t)PQgetlength(reader->rows, reader->row, at)};
        else
            value->number = tide_pg_get_i64(reader->rows, reader->row, at);
    }
    reader->row++;
    *row_out = true;
    return TIDE_OK;
}

tide_status tide_copy_reader_next(struct copy_reader *reader, bool *row_out, tide_error *err)
{
    TIDE_ASSERT(reader->open);
    return reader->side->pg != NULL ? next_pg(reader, row_out, err)
                                    : next_sqlite(reader, row_out, err);
}

void tide_copy_reader_close(struct copy_reader *reader)
{
    (void)sqlite3_finalize(reader->stmt);
    /* After a failure the transaction is over, and the cursor with it. */
    if (reader->open && reader->side->pg != NULL && reader->side->in_tx)
        (void)tide_pg_exec(reader->side->pg, "CLOSE tide_copy", NULL);
    reader->stmt = NULL;
    reader->rows = NULL;
    reader->open = false;
}

/* ---- writing ---- */

static tide_status prepare(struct copy_writer *writer, const char *sql, tide_error *err)
{
    tide_db *db = writer->side->db;
    const size_t number = writer->stmts_count;
    const int code = sqlite3_prepare_v2(db->handle, sql, -1, &writer->stmts[number], NULL);
    if (code != SQLITE_OK)
        return tide_db_failed(db, code, "prepare to write a table", err);
    writer->stmts_count++;
    for (size_t i = 0; i < writer->table->columns_count; i++) {
        char name[80];
        (void)snprintf(name, sizeof name, ":%s", writer->table->columns[i].name);
        writer->binds[number][i] = sqlite3_bind_parameter_index(writer->stmts[number], name);
    }
    return TIDE_OK;
}

/* One row with the same columns on SQLite; the beginning of a COPY on PostgreSQL. */
static tide_status plain_text(struct copy_writer *writer, tide_error *err)
{
    const struct copy_table *table = writer->table;
    const bool postgres = writer->side->pg != NULL;
    bool failed = false;
    add(&writer->sql, &failed, postgres ? "COPY " : "INSERT INTO ");
    add(&writer->sql, &failed, tide_copy_schema(writer->side));
    add_name(&writer->sql, &failed, table->name);
    for (size_t i = 0; i < table->columns_count; i++) {
        add(&writer->sql, &failed, i == 0 ? " (" : ", ");
        add_name(&writer->sql, &failed, table->columns[i].name);
    }
    add(&writer->sql, &failed, postgres ? ") FROM STDIN" : ") VALUES (");
    for (size_t i = 0; !postgres && i < table->columns_count; i++) {
        add(&writer->sql, &failed, i == 0 ? ":" : ", :");
        add(&writer->sql, &failed, table->columns[i].name);
    }
    add(&writer->sql, &failed, postgres ? "" : ")");
    return failed ? no_memory(err) : TIDE_OK;
}

tide_status tide_copy_writer_open(struct copy_writer *writer, struct copy_side *side,
                                  const struct copy_table *table, tide_mem *mem, tide_error *err)
{
    memset(writer, 0, sizeof *writer);
    writer->side = side;
    writer->table = table;
    tide_buf_init(&writer->sql, mem, SQL_BYTES_MAX);
    tide_buf_init(&writer->rows, mem, ROWS_BYTES_MAX);
    tide_status rc = TIDE_OK;
    if (side->pg != NULL || table->inserts[0].sql == NULL) {
        rc = plain_text(writer, err);
        if (rc == TIDE_OK && side->pg == NULL)
            rc = prepare(writer, tide_buf_cstr(&writer->sql), err);
    } else {
        for (size_t i = 0; rc == TIDE_OK && i < COPY_INSERTS_MAX; i++)
            if (table->inserts[i].sql != NULL)
                rc = prepare(writer, table->inserts[i].sql, err);
    }
    if (rc != TIDE_OK)
        tide_copy_writer_close(writer);
    return rc;
}

void tide_copy_writer_close(struct copy_writer *writer)
{
    for (size_t i = 0; i < COPY_INSERTS_MAX; i++)
        (void)sqlite3_finalize(writer->stmts[i]);
    tide_buf_done(&writer->sql);
    tide_buf_done(&writer->rows);
    memset(writer, 0, sizeof *writer);
}

static void bind(sqlite3_stmt *stmt, int at, copy_type type, const struct copy_value *value)
{
    if (value->null)
        (void)sqlite3_bind_null(stmt, at);
    else if (!is_text(type))
        (void)sqlite3_bind_int64(stmt, at, value->number);
    else if (type != COPY_BYTES)
        tide_bind_text(stmt, at, value->text);
    else
        (void)sqlite3_bind_blob64(stmt, at, value->text.bytes == 0 ? "" : value->text.data,
                                  value->text.bytes, SQLITE_STATIC);
}

static bool wanted(const struct copy_insert *insert, const struct copy_value *values)
{
    if (insert->when == 0)
        return true;
    for (size_t i = 0; i < TIDE_COPY_COLUMNS_MAX; i++)
        if ((insert->when >> i & 1) != 0 && !values[i].null)
            return true;
    return false;
}

static tide_status add_sqlite(struct copy_writer *writer, const struct copy_value *values,
                              tide_error *err)
{
    const struct copy_table *table = writer->table;
    for (size_t number = 0; number < writer->stmts_count; number++) {
        sqlite3_stmt *stmt = writer->stmts[number];
        if (!wanted(&table->inserts[number], values))
            continue;
        for (size_t i = 0; i < table->columns_count; i++)
            if (writer->binds[number][i] != 0)
                bind(stmt, writer->binds[number][i], table->columns[i].type, &values[i]);
        TIDE_TRY(tide_db_run(writer->side->db, stmt, err));
    }
    return TIDE_OK;
}

/* The text form of COPY: a tab between columns, \N for NULL, a backslash before special
 * characters. */
static tide_status add_escaped(tide_buf *rows, tide_text text)
{
    size_t from = 0;
    for (size_t at = 0; at < text.bytes; at++) {
        const char c = text.data[at];
        const char *escape = c == '\\'   ? "\\\\"
                             : c == '\t' ? "\\t"
                             : c == '\n' ? "\\n"
                             : c == '\r' ? "\\r"
                                         : NULL;
        if (escape == NULL)
            continue;
        TIDE_TRY(tide_buf_add(rows, text.data + from, at - from));
        TIDE_TRY(tide_buf_add(rows, escape, 2));
        from = at + 1;
    }
    return tide_buf_add(rows, text.data + from, text.bytes - from);
}

static tide_status add_hex(tide_buf *rows, tide_text bytes)
{
    static const char digits[] = "0123456789abcdef";
    TIDE_TRY(tide_buf_add(rows, "\\\\x", 3));
    for (size_t i = 0; i < bytes.bytes; i++) {
        const unsigned char byte = (unsigned char)bytes.data[i];
        TIDE_TRY(tide_buf_add(rows, (const char[2]){digits[byte >> 4], digits[byte & 15]}, 2));
    }
    return TIDE_OK;
}

static tide_status add_pg_value(tide_buf *rows, copy_type type, const struct copy_value *value)
{
    if (value->null)
        return tide_buf_add(rows, "\\N", 2);
    switch (type) {
    case COPY_BOOL:
        return tide_buf_add(rows, value->number != 0 ? "t" : "f", 1);
    case COPY_TEXT:
        return add_escaped(rows, value->text);
    case COPY_BYTES:
        return add_hex(rows, value->text);
    case COPY_IDS: {
        tide_status rc = tide_buf_add(rows, "{", 1);
        if (rc == TIDE_OK)
            rc = add_escaped(rows, value->text);
        return rc == TIDE_OK ? tide_buf_add(rows, "}", 1) : rc;
    }
    default:
        return tide_buf_print(rows, "%" PRId64, value->number);
    }
}

static tide_status add_pg(struct copy_writer *writer, const struct copy_value *values,
                          tide_error *err)
{
    const struct copy_table *table = writer->table;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < table->columns_count; i++) {
        if (i > 0)
            rc = tide_buf_add(&writer->rows, "\t", 1);
        if (rc == TIDE_OK)
            rc = add_pg_value(&writer->rows, table->columns[i].type, &values[i]);
    }
    if (rc == TIDE_OK)
        rc = tide_buf_add(&writer->rows, "\n", 1);
    return rc == TIDE_OK ? TIDE_OK : no_memory(err);
}

tide_status tide_copy_writer_add(struct copy_writer *writer, const struct copy_value *values,
                                 tide_error *err)
{
    TIDE_ASSERT(writer->side->in_tx);
    return writer->side->pg != NULL ? add_pg(writer, values, err) : add_sqlite(writer, values, err);
}

tide_status tide_copy_writer_flush(struct copy_writer *writer, tide_error *err)
{
    if (writer->side->pg == NULL || writer->rows.bytes == 0)
        return TIDE_OK;
    const tide_status rc = tide_pg_copy_in(writer->side->pg, tide_buf_cstr(&writer->sql),
                                           tide_buf_text(&writer->rows), err);
    tide_buf_clear(&writer->rows);
    tide_buf_rest(&writer->rows);
    return rc;
}
