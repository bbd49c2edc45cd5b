/* inside.h - private to this folder: tables, rows and the two sides of a copy.
 *
 *   copy.c     the steps of a copy, its mark and its place
 *   compare.c  the differences between two sides
 *   tables.c   which tables there are, and how SQLite lays them out
 *   rows.c     reading and writing rows on either database
 *   side.c     opening either of them, small statements
 */
#ifndef TIDE_ENGINE_LEDGER_COPY_INSIDE_H
#define TIDE_ENGINE_LEDGER_COPY_INSIDE_H

#include "db/db.h"
#include "db/pg.h"
#include "ledger/copy/copy.h"

/* ---- rows ---- */

/* As PostgreSQL has them; SQLite has numbers, texts and blobs. */
typedef enum copy_type {
    COPY_BOOL,
    COPY_INT2,
    COPY_INT4,
    COPY_INT8,
    COPY_TEXT,
    COPY_BYTES,
    COPY_IDS, /* bigint[]; a text "1,2,3" in the canonical form */
} copy_type;

struct copy_value {
    bool null;
    int64_t number;
    tide_text text; /* borrowed until the next row */
};

struct copy_column {
    const char *name;
    copy_type type;
    const char *sqlite; /* how SQLite reads it; NULL: the column of that name */
};

/* What is inserted for a row on SQLite where that is not one row with the same columns.
 * Parameters are :NAME of the columns. */
struct copy_insert {
    const char *sql;
    uint64_t when; /* bits of columns: run when one of them is not NULL; 0: always */
};

enum { COPY_INSERTS_MAX = 3, COPY_KEYS_MAX = 4 };

struct copy_table {
    const char *name;   /* of the table on PostgreSQL */
    const char *people; /* what a row is called: "job" */
    const struct copy_column *columns;
    size_t columns_count;
    size_t keys_count;       /* the first ones are the key */
    const char *where;       /* for both; NULL: all rows */
    const char *sqlite_from; /* NULL: the table of that name */
    const char *sqlite_where;
    const char *sqlite_clear;                     /* NULL: DELETE FROM the table of that name */
    struct copy_insert inserts[COPY_INSERTS_MAX]; /* none: one row with the same columns */
};

/* The ledger's own. */
extern const struct copy_table tide_copy_ledger_tables[];
extern const size_t tide_copy_ledger_tables_count;

/* A row in its canonical text: what is hashed, and how a place is written down. */
tide_status tide_copy_value_add(tide_buf *text, const struct copy_column *column,
                                const struct copy_value *value);
/* Reads one value back and moves *at behind it; false: it is none.  Texts are borrowed. */
bool tide_copy_value_take(tide_text text, size_t *at, struct copy_value *value_out);
/* "job 17", for display. */
void tide_copy_row_name(const struct copy_table *table, const struct copy_value *values,
                        char *name_out, size_t name_bytes);

/* ---- sides ---- */

struct copy_side {
    tide_ledger *ledger; /* owned */
    tide_db *db;         /* of the ledger; NULL on PostgreSQL */
    tide_pg *pg;         /* of the ledger; NULL on SQLite */
    tide_world *world;
    tide_file_lock *lock;
    bool in_tx;
    char name[300];
};

/* Opens a side and takes the lock of its state directory; refuses while an engine or a
 * member of a fleet uses it.  A `target` is a ledger under construction, or a new one. */
tide_status tide_copy_side_open(struct copy_side *side, tide_world *world, const char *path,
                                bool target, tide_error *err);
void tide_copy_side_close(struct copy_side *side); /* a zeroed one is fine */
/* A snapshot to read from; a transaction to write in. */
tide_status tide_copy_side_begin(struct copy_side *side, bool write, tide_error *err);
tide_status tide_copy_side_commit(struct copy_side *side, tide_error *err);
void tide_copy_side_rollback(struct copy_side *side); /* without a transaction: nothing */
/* Small statements with ?1... for texts, the same for both.  *number_out is the first
 * column of the first row, 0 without one; `text_out` (NULL or cleared first) likewise;
 * *changed_out the rows it changed.  All may be NULL. */
struct copy_answer {
    bool row;
    int64_t number;
    tide_buf *text;
    uint64_t changed;
};
tide_status tide_copy_side_run(struct copy_side *side, const char *sql, const tide_text *params,
                               size_t params_count, struct copy_answer *answer, tide_error *err);
/* The first `columns` (numbers or texts) of all rows, as texts. */
tide_status tide_copy_side_list(struct copy_side *side, const char *sql, int columns,
                                tide_status (*visit)(const tide_text *columns, void *arg),
                                void *arg, tide_error *err);
/* "tidemark." on PostgreSQL. */
static inline const char *tide_copy_schema(const struct copy_side *side)
{
    return side->pg != NULL ? "tidemark." : "";
}

/* ---- reading and writing ---- */

tide_status tide_copy_count(struct copy_side *side, const struct copy_table *table,
                            uint64_t *count_out, tide_error *err);

struct copy_reader {
    struct copy_side *side;
    const struct copy_table *table;
    sqlite3_stmt *stmt;
    const PGresult *rows; /* borrowed from the side until it runs another statement */
    int row;
    bool last; /* nothing more to fetch */
    bool open;
    struct copy_value values[TIDE_COPY_COLUMNS_MAX];
};
/* In the order of the key, bytes of texts compared; behind the key `after` if it is not
 * NULL.  One reader for each side at a time; no other statement on it meanwhile. */
tide_status tide_copy_reader_open(struct copy_reader *reader, struct copy_side *side,
                                  const struct copy_table *table, const struct copy_value *after,
                                  tide_mem *mem, tide_error *err);
tide_status tide_copy_reader_next(struct copy_reader *reader, bool *row_out, tide_error *err);
void tide_copy_reader_close(struct copy_reader *reader);

struct copy_writer {
    struct copy_side *side;
    const struct copy_table *table;
    tide_mem *mem;
    sqlite3_stmt *stmts[COPY_INSERTS_MAX];
    int binds[COPY_INSERTS_MAX][TIDE_COPY_COLUMNS_MAX]; /* 0: not a parameter of it */
    size_t stmts_count;
    tide_buf sql, rows; /* of a COPY */
};
tide_status tide_copy_writer_open(struct copy_writer *writer, struct copy_side *side,
                                  const struct copy_table *table, tide_mem *mem, tide_error *err);
/* Inside a transaction of the side; added rows are written by the flush at the latest. */
tide_status tide_copy_writer_add(struct copy_writer *writer, const struct copy_value *values,
                                 tide_error *err);
tide_status tide_copy_writer_flush(struct copy_writer *writer, tide_error *err);
static inline size_t tide_copy_writer_bytes(const struct copy_writer *writer)
{
    return writer->rows.bytes;
}
void tide_copy_writer_close(struct copy_writer *writer);

/* TIDE_INVALID, naming row and column: that kind of database cannot hold the value (LCP8). */
tide_status tide_copy_row_fits(const struct copy_table *table, const struct copy_value *values,
                               bool postgres, tide_error *err);

/* ---- the list of tables ---- */

struct copy_list {
    tide_arena arena;
    struct copy_table tables[TIDE_COPY_TABLES_MAX];
    bool in_from[TIDE_COPY_TABLES_MAX], in_to[TIDE_COPY_TABLES_MAX];
    size_t count;
};
void tide_copy_list_init(struct copy_list *list, tide_mem *mem);
void tide_copy_list_done(struct copy_list *list);
/* The ledger's tables and those of the systems, as they are on both sides; `to` may be
 * NULL.  `left_out` gets the names of tables that belong to no known system. */
tide_status tide_copy_list_make(struct copy_list *list, const struct tide_ledger_copy *copy,
                                struct copy_side *from, struct copy_side *to, char *left_out,
                                size_t left_out_bytes, tide_error *err);

/* ---- a copy under way ---- */

enum { COPY_LOOK_ROWS = 5000 }; /* between two checks of the cancel token */

struct copier {
    tide_world *world;
    const struct tide_ledger_copy *copy;
    tide_mem *mem;
    struct copy_side from, to;
    struct copy_list list;
    struct tide_copy_report *report;
    tide_error *err;

    tide_buf seen;  /* shows whether the source was written to (LCP6) */
    tide_buf place; /* as it stands in the target (LCP4) */
    tide_buf next;  /* as it will stand */
    tide_buf row_from, row_to;
    uint64_t rows_all, rows_step;
};

tide_status tide_copy_no_memory(tide_error *err);
/* Reports the progress; TIDE_CANCELED: stop. */
tide_status tide_copy_look_up(struct copier *self, tide_copy_step step, const char *table);
/* Both sides, each in one snapshot, into the report. */
tide_status tide_copy_compare(struct copier *self);

#endif
