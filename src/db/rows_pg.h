/* rows_pg.h - private to rows.c and rows_pg.c: statements of rows.h on PostgreSQL. */
#ifndef TIDE_DB_ROWS_PG_H
#define TIDE_DB_ROWS_PG_H

#include "db/rows.h"

tide_status tide_rows_pg_tables(tide_rows rows, const char *sql, const char *what, tide_error *err);
tide_status tide_rows_pg_has(tide_rows rows, const char *table, const char *what, bool *has_out,
                             tide_error *err);
tide_status tide_rows_pg_snapshot(tide_rows rows, const char *what, bool *own_out, tide_error *err);
void tide_rows_pg_snapshot_end(tide_rows rows);
tide_status tide_rows_pg_prepare(const char *sql, tide_rows_stmt *stmt, tide_error *err);
void tide_rows_pg_number(tide_rows_stmt *stmt, int at, int64_t number);
void tide_rows_pg_null(tide_rows_stmt *stmt, int at);
void tide_rows_pg_text(tide_rows_stmt *stmt, int at, tide_text text);
void tide_rows_pg_blob(tide_rows_stmt *stmt, int at, const void *bytes, size_t count);
tide_status tide_rows_pg_step(tide_rows_stmt *stmt, bool *row_out, tide_error *err);
void tide_rows_pg_again(tide_rows_stmt *stmt);
uint64_t tide_rows_pg_changed(const tide_rows_stmt *stmt);
void tide_rows_pg_end(tide_rows_stmt *stmt);
int64_t tide_rows_pg_get_i64(const tide_rows_stmt *stmt, int at);
bool tide_rows_pg_get_null(const tide_rows_stmt *stmt, int at);
tide_text tide_rows_pg_get_text(const tide_rows_stmt *stmt, int at);

#endif
