/* copy.c - the steps of a copy: check the source, mark the target, copy, compare, check the
 * target, remove the mark. */
#include "ledger/copy/inside.h"

#include "base/check.h"
#include "ledger/sqlite/sqlite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    BATCH_ROWS = 5000,
    CHECKPOINT_BATCHES = 8, /* between two checkpoints of a SQLite target */
    DAYS_MAX = 400,         /* days of finished jobs with a partition of their own */
    PLACE_BYTES_MAX = 64 << 10,
    PROBLEMS_BYTES_MAX = 64 << 10,
};

static const char key_mark[] = "copying"; /* the name of the source */
static const char key_seen[] = "copying.seen";
static const char key_place[] = "copying.place";

tide_status tide_copy_no_memory(tide_error *err)
{
    return tide_error_set(err, TIDE_NO_MEMORY, "no memory to copy a ledger");
}

tide_status tide_copy_look_up(struct copier *self, tide_copy_step step, const char *table)
{
    if (self->copy->progress != NULL) {
        const struct tide_copy_progress progress = {step, table, self->rows_step, self->rows_all};
        self->copy->progress(&progress, self->copy->progress_arg);
    }
    if (self->copy->cancel != NULL &&
        __atomic_load_n(&self->copy->cancel->reason, __ATOMIC_ACQUIRE) != 0)
        return tide_error_set(self->err, TIDE_CANCELED, "interrupted");
    return TIDE_OK;
}

/* ---- the source ---- */

static tide_status check_rules(struct copier *self, struct copy_side *side, const char *advice)
{
    tide_auto_buf problems = tide_buf_in(self->mem, PROBLEMS_BYTES_MAX);
    tide_error why = {TIDE_OK, 0, ""};
    tide_status rc = tide_ledger_check(side->ledger, &problems, &why);
    if (rc == TIDE_CORRUPT && problems.bytes > 0) {
        char *end = strchr(problems.data, '\n');
        if (end != NULL)
            *end = '\0';
        (void)tide_error_set(self->err, rc, "%.120s: %.150s; %s", side->name, problems.data,
                             advice);
    } else if (rc != TIDE_OK && self->err != NULL)
        *self->err = why;
    return rc;
}

/* Every writer of a ledger leaves a row in `run` when it opens it. */
static tide_status look_at_runs(struct copier *self)
{
    struct copy_answer answer = {.text = &self->seen};
    return tide_copy_side_run(
        &self->from,
        self->from.pg != NULL
            ? "SELECT concat(count(*), ' runs, last ', coalesce(max(id), 0)) FROM tidemark.run"
            : "SELECT format('%lld runs, last %lld', count(*), coalesce(max(id), 0)) FROM run",
        NULL, 0, &answer, self->err);
}

/* Reads everything once: finds the values that the target cannot store (LCP8). */
static tide_status check_table(struct copier *self, const struct copy_table *table)
{
    struct copy_reader reader;
    bool row = false;
    TIDE_TRY(tide_copy_reader_open(&reader, &self->from, table, NULL, self->mem, self->err));
    tide_status rc = TIDE_OK;
    for (uint64_t i = 1;; i++) {
        rc = tide_copy_reader_next(&reader, &row, self->err);
        if (rc != TIDE_OK || !row)
            break;
        rc = tide_copy_row_fits(table, reader.values, true, self->err);
        self->rows_step++;
        if (rc == TIDE_OK && i % COPY_LOOK_ROWS == 0)
            rc = tide_copy_look_up(self, TIDE_COPY_CHECK, table->name);
        if (rc != TIDE_OK)
            break;
    }
    tide_copy_reader_close(&reader);
    return rc;
}

static tide_status count_source(struct copier *self)
{
    struct tide_copy_report *report = self->report;
    tide_status rc = TIDE_OK;
    report->tables_count = 0;
    report->rows = 0;
    for (size_t i = 0; rc == TIDE_OK && i < self->list.count; i++) {
        struct tide_copy_table *table = &report->tables[i];
        *table = (struct tide_copy_table){0};
        (void)snprintf(table->name, sizeof table->name, "%s", self->list.tables[i].name);
        if (self->list.in_from[i])
            rc = tide_copy_count(&self->from, &self->list.tables[i], &table->rows_from, self->err);
        report->rows += table->rows_from;
        report->tables_count = i + 1;
    }
    self->rows_all = report->rows;
    return rc;
}

/* Opens, checks and counts the source; leaves its snapshot open (LCP1). */
static tide_status look_at_source(struct copier *self)
{
    struct tide_copy_report *report = self->report;
    tide_status rc =
        tide_copy_side_open(&self->from, self->world, self->copy->from, false, self->err);
    if (rc == TIDE_OK)
        rc = tide_copy_look_up(self, TIDE_COPY_CHECK, "");
    if (rc == TIDE_OK)
        rc = check_rules(self, &self->from, "repair it first; nothing was copied");
    if (rc == TIDE_OK)
        rc = tide_copy_side_begin(&self->from, false, self->err);
    if (rc == TIDE_OK)
        rc = look_at_runs(self);
    if (rc == TIDE_OK)
        rc = tide_copy_list_make(&self->list, self->copy, &self->from, NULL, report->left_out,
                                 sizeof report->left_out, self->err);
    if (rc == TIDE_OK)
        rc = count_source(self);
    if (!tide_ledger_is_postgres(self->copy->to))
        return rc;
    self->rows_step = 0;
    for (size_t i = 0; rc == TIDE_OK && i < self->list.count; i++)
        rc = check_table(self, &self->list.tables[i]);
    return rc;
}

/* ---- the mark and the place ---- */

static const char *place_table(const struct copy_side *side)
{
    return side->pg != NULL ? "tidemark.meta" : "copying";
}

static tide_status place_get(struct copier *self, const char *key, tide_buf *value, bool *there)
{
    char sql[120];
    struct copy_answer answer = {.text = value};
    const tide_text param = tide_text_of(key);
    tide_buf_clear(value);
    (void)snprintf(sql, sizeof sql, "SELECT value FROM %s WHERE key = ?1", place_table(&self->to));
    TIDE_TRY(tide_copy_side_run(&self->to, sql, &param, 1, &answer, self->err));
    *there = answer.row;
    return TIDE_OK;
}

static tide_status mark_is_there(struct copier *self, bool *there_out)
{
    struct copy_answer answer = {0};
    *there_out = false;
    if (self->to.pg == NULL) {
        tide_status rc = tide_copy_side_run(
            &self->to, "SELECT count(*) FROM sqlite_schema WHERE name = 'copying'", NULL, 0,
            &answer, self->err);
        if (rc != TIDE_OK || answer.number == 0)
            return rc;
    }
    return place_get(self, key_mark, &self->next, there_out);
}

static tide_status place_put(struct copier *self, const char *key, tide_text value)
{
    char sql[160];
    const tide_text params[] = {tide_text_of(key), value};
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO %s (key, value) VALUES (?1, ?2)"
                   " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                   place_table(&self->to));
    return tide_copy_side_run(&self->to, sql, params, 2, NULL, self->err);
}

/* "<table><rows so far><key of the last row>", each in its canonical text. */
static tide_status place_text(struct copier *self, const struct copy_table *table, uint64_t rows,
                              const struct copy_value *key)
{
    static const struct copy_column name_column = {"table", COPY_TEXT, NULL};
    static const struct copy_column rows_column = {"rows", COPY_INT8, NULL};
    const struct copy_value name = {.text = tide_text_of(table == NULL ? "" : table->name)};
    const struct copy_value count = {.number = (int64_t)rows};
    tide_buf_clear(&self->next);
    tide_status rc = tide_copy_value_add(&self->next, &name_column, &name);
    if (rc == TIDE_OK)
        rc = tide_copy_value_add(&self->next, &rows_column, &count);
    for (size_t i = 0; rc == TIDE_OK && table != NULL && i < table->keys_count; i++)
        rc = tide_copy_value_add(&self->next, &table->columns[i], &key[i]);
    return rc == TIDE_OK ? TIDE_OK : tide_copy_no_memory(self->err);
}

static tide_status place_lost(struct copier *self)
{
    return tide_error_set(self->err, TIDE_BUSY,
                          "%.200s: another copy into it is running, or has finished it",
                          self->to.name);
}

/* The first step of each transaction: checks that the place is where this copy left it, and
 * locks it until the end (LCP4). */
static tide_status place_hold(struct copier *self)
{
    bool there = true;
    if (self->to.pg == NULL) /* the transaction has locked the whole file */
        TIDE_TRY(mark_is_there(self, &there));
    else
        TIDE_TRY(tide_pg_exec(self->to.pg,
                              "SELECT FROM tidemark.meta WHERE key = 'copying.place' FOR UPDATE",
                              self->err));
    if (there)
        TIDE_TRY(place_get(self, key_place, &self->next, &there));
    if (!there || !tide_text_equal(tide_buf_text(&self->next), tide_buf_text(&self->place)))
        return place_lost(self);
    return TIDE_OK;
}

static tide_status place_move(struct copier *self)
{
    char sql[120];
    struct copy_answer answer = {0};
    const tide_text params[] = {tide_text_of(key_place), tide_buf_text(&self->place),
                                tide_buf_text(&self->next)};
    (void)snprintf(sql, sizeof sql, "UPDATE %s SET value = ?3 WHERE key = ?1 AND value = ?2",
                   place_table(&self->to));
    TIDE_TRY(tide_copy_side_run(&self->to, sql, params, 3, &answer, self->err));
    if (answer.changed != 1)
        return place_lost(self);
    return TIDE_OK;
}

/* After the commit of a move. */
static void place_moved(struct copier *self)
{
    const tide_buf before = self->place;
    self->place = self->next;
    self->next = before;
}

struct place {
    size_t table; /* in the list */
    uint64_t rows;
    bool has_key;
    struct copy_value key[COPY_KEYS_MAX]; /* borrowed from the text it was read from */
};

/* false: not a place that this version wrote. */
static bool place_read(const struct copier *self, tide_text text, struct place *place_out)
{
    struct place place = {0};
    struct copy_value name, rows;
    size_t at = 0;
    if (!tide_copy_value_take(text, &at, &name) || !tide_copy_value_take(text, &at, &rows))
        return false;
    place.rows = (uint64_t)rows.number;
    place.has_key = name.text.bytes > 0;
    if (place.has_key) {
        while (place.table < self->list.count &&
               !tide_text_equal(tide_text_of(self->list.tables[place.table].name), name.text))
            place.table++;
        if (place.table == self->list.count)
            return false;
        for (size_t i = 0; i < self->list.tables[place.table].keys_count; i++)
            if (!tide_copy_value_take(text, &at, &place.key[i]))
                return false;
    }
    if (at != text.bytes)
        return false;
    *place_out = place;
    return true;
}

/* ---- the target ---- */

static tide_status clear_table(struct copier *self, const struct copy_table *table)
{
    char sql[160];
    struct copy_side *to = &self->to;
    if (to->pg == NULL && table->sqlite_clear != NULL)
        return tide_db_exec(to->db, table->sqlite_clear, self->err);
    (void)snprintf(sql, sizeof sql, "DELETE FROM %s\"%s\"", tide_copy_schema(to), table->name);
    return tide_copy_side_run(to, sql, NULL, 0, NULL, self->err);
}

static tide_status each_table(struct copier *self,
                              tide_status (*visit)(struct copier *self,
                                                   const struct copy_table *table))
{
    struct copy_list *there = tide_mem_new(self->mem, sizeof *there);
    char ignored[sizeof self->report->left_out];
    if (there == NULL)
        return tide_copy_no_memory(self->err);
    tide_copy_list_init(there, self->mem);
    tide_status rc =
        tide_copy_list_make(there, self->copy, &self->to, NULL, ignored, sizeof ignored, self->err);
    for (size_t i = 0; rc == TIDE_OK && i < there->count; i++)
        rc = visit(self, &there->tables[i]);
    tide_copy_list_done(there);
    tide_mem_free(self->mem, there, sizeof *there);
    return rc;
}

/* Rows of `run` are ignored: the program that created the tables left them, they are no data. */
static tide_status refuse_own_rows(struct copier *self, const struct copy_table *table)
{
    uint64_t rows = 0;
    TIDE_TRY(tide_copy_count(&self->to, table, &rows, self->err));
    if (rows == 0 || strcmp(table->name, "run") == 0)
        return TIDE_OK;
    return tide_error_set(self->err, TIDE_EXISTS,
                          "%.200s is a ledger with rows of its own (%" PRIu64
                          " in %s): name a new one; nothing was changed",
                          self->to.name, rows, table->name);
}

/* Marks the target, in one transaction with the check that it has no rows of its own. */
static tide_status begin_new(struct copier *self)
{
    char sql[160];
    TIDE_TRY(each_table(self, refuse_own_rows));
    if (self->to.pg == NULL) {
        (void)snprintf(sql, sizeof sql,
                       "PRAGMA application_id = %u; CREATE TABLE IF NOT EXISTS"
                       " copying (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
                       TIDE_LEDGER_COPYING_ID);
        TIDE_TRY(tide_db_exec(self->to.db, sql, self->err));
    }
    return TIDE_OK;
}

/* Whether the marked copy can be resumed; *again_out: start over. */
static tide_status judge_mark(struct copier *self, bool *again_out)
{
    bool there = false;
    const tide_text source = tide_text_of(self->from.name);
    const bool same = tide_text_equal(tide_buf_text(&self->next), source);
    if (!same && !self->copy->restart)
        return tide_error_set(self->err, TIDE_EXISTS,
                              "%.120s holds an unfinished copy of %.120s: finish that one, or "
                              "discard it with --restart",
                              self->to.name, tide_buf_cstr(&self->next));
    tide_status rc = place_get(self, key_seen, &self->next, &there);
    *again_out = self->copy->restart || !same || !there ||
                 !tide_text_equal(tide_buf_text(&self->next), tide_buf_text(&self->seen));
    if (rc == TIDE_OK)
        rc = place_get(self, key_place, &self->place, &there);
    *again_out = *again_out || !there;
    return rc;
}

/* Starts over: deletes all that a copy wrote, also in tables of the systems: the mark says that all
 * rows come from a copy (LCP2). */
static tide_status begin_again(struct copier *self)
{
    TIDE_TRY(each_table(self, clear_table));
    TIDE_TRY(place_text(self, NULL, 0, NULL));
    TIDE_TRY(place_put(self, key_mark, tide_text_of(self->from.name)));
    TIDE_TRY(place_put(self, key_seen, tide_buf_text(&self->seen)));
    return place_put(self, key_place, tide_buf_text(&self->next));
}

static tide_status take_target(struct copier *self)
{
    bool marked = false, again = true;
    tide_status rc = tide_copy_side_begin(&self->to, true, self->err);
    /* Two copies that begin at once would both find it empty. */
    if (rc == TIDE_OK && self->to.pg != NULL)
        rc = tide_pg_exec(self->to.pg, "LOCK TABLE tidemark.meta IN EXCLUSIVE MODE", self->err);
    if (rc == TIDE_OK)
        rc = mark_is_there(self, &marked);
    if (rc == TIDE_OK)
        rc = marked ? judge_mark(self, &again) : begin_new(self);
    if (rc == TIDE_OK && again)
        rc = begin_again(self);
    if (rc == TIDE_OK)
        rc = tide_copy_side_commit(&self->to, self->err);
    tide_copy_side_rollback(&self->to);
    if (rc == TIDE_OK && again)
        place_moved(self);
    self->report->restarted = rc == TIDE_OK && marked && again;
    return rc;
}

/* Creates the tables of a system, if the source has them. */
static tide_status make_system(struct copier *self, const struct tide_copy_system *system)
{
    bool wanted = false;
    tide_tx *tx = NULL;
    for (size_t i = 0; i < self->list.count; i++)
        wanted = wanted || tide_copy_system_has(system, self->list.tables[i].name);
    if (!wanted)
        return TIDE_OK;
    TIDE_TRY(tide_tx_begin(self->to.ledger, &tx, self->err));
    tide_status rc = system->make(system->arg, tide_tx_rows(tx), self->err);
    if (rc == TIDE_OK)
        return tide_tx_commit(tx, self->err);
    tide_tx_rollback(tx);
    return rc;
}

struct days {
    struct copier *self;
    int64_t list[DAYS_MAX];
    size_t count;
};

static tide_status note_day(const tide_text *columns, void *arg)
{
    struct days *days = arg;
    int64_t day = 0;
    if (days->count < DAYS_MAX && tide_text_to_i64(columns[0], &day))
        days->list[days->count++] = day;
    return TIDE_OK;
}

/* Creates a partition for each of the newest DAYS_MAX days on which a job was finished; rows
 * of older days go to the default partition. */
static tide_status make_days(struct copier *self)
{
    char sql[200];
    struct days days = {.self = self};
    if (self->to.pg == NULL)
        return TIDE_OK;
    (void)snprintf(
        sql, sizeof sql, "SELECT DISTINCT finished / 86400000 FROM %s ORDER BY 1 DESC LIMIT %d",
        self->from.pg != NULL ? "tidemark.job_done" : "job WHERE state = 2 AND kind <> 0",
        DAYS_MAX);
    TIDE_TRY(tide_copy_side_list(&self->from, sql, 1, note_day, &days, self->err));
    for (size_t i = 0; i < days.count; i++) {
        (void)snprintf(sql, sizeof sql, "SELECT tidemark.day_open(%" PRId64 ")", days.list[i]);
        TIDE_TRY(tide_copy_side_run(&self->to, sql, NULL, 0, NULL, self->err));
    }
    return TIDE_OK;
}

static tide_status look_at_target(struct copier *self)
{
    struct tide_copy_report *report = self->report;
    TIDE_TRY(tide_copy_side_open(&self->to, self->world, self->copy->to, true, self->err));
    TIDE_TRY(take_target(self));
    for (size_t i = 0; i < self->copy->systems_count; i++)
        TIDE_TRY(make_system(self, &self->copy->systems[i]));
    /* now with the types of both sides */
    TIDE_TRY(tide_copy_list_make(&self->list, self->copy, &self->from, &self->to, report->left_out,
                                 sizeof report->left_out, self->err));
    TIDE_TRY(count_source(self));
    return make_days(self);
}

/* ---- rows ---- */

/* One transaction: some rows, and the place after them (LCP3). */
static tide_status copy_batch(struct copier *self, struct copy_reader *reader,
                              struct copy_writer *writer, uint64_t *rows, bool *more_out)
{
    const uint32_t rows_max = self->copy->batch_rows == 0 ? BATCH_ROWS : self->copy->batch_rows;
    uint32_t count = 0;
    size_t bytes = 0;
    bool row = true;
    tide_status rc = tide_copy_side_begin(&self->to, true, self->err);
    if (rc == TIDE_OK)
        rc = place_hold(self);
    while (rc == TIDE_OK && count < rows_max && bytes < TIDE_COPY_BATCH_BYTES) {
        rc = tide_copy_reader_next(reader, &row, self->err);
        if (rc != TIDE_OK || !row)
            break;
        rc = tide_copy_writer_add(writer, reader->values, self->err);
        count++;
        for (size_t i = 0; i < reader->table->columns_count; i++)
            bytes += 8 + reader->values[i].text.bytes;
        /* After each row, because its key is gone once the reader has reached the end. */
        if (rc == TIDE_OK)
            rc = place_text(self, reader->table, *rows + count, reader->values);
    }
    if (rc == TIDE_OK && count > 0)
        rc = tide_copy_writer_flush(writer, self->err);
    if (rc == TIDE_OK && count > 0)
        rc = place_move(self);
    if (rc == TIDE_OK && count > 0)
        rc = tide_copy_side_commit(&self->to, self->err);
    tide_copy_side_rollback(&self->to);
    if (rc != TIDE_OK)
        return rc;
    if (count > 0)
        place_moved(self);
    *rows += count;
    *more_out = row;
    return TIDE_OK;
}

/* The engine does this on another thread than its writer; here no caller waits for a write. */
static tide_status checkpoint(struct copier *self)
{
    uint32_t left = 0;
    return self->to.db == NULL ? TIDE_OK
                               : tide_ledger_checkpoint(self->to.ledger, &left, self->err);
}

static tide_status copy_table(struct copier *self, const struct copy_table *table,
                              const struct copy_value *after, uint64_t *rows)
{
    struct copy_reader reader;
    struct copy_writer writer;
    TIDE_TRY(tide_copy_reader_open(&reader, &self->from, table, after, self->mem, self->err));
    tide_status rc = tide_copy_writer_open(&writer, &self->to, table, self->mem, self->err);
    bool more = rc == TIDE_OK;
    for (uint64_t batch = 1; rc == TIDE_OK && more; batch++) {
        self->rows_step = *rows;
        rc = tide_copy_look_up(self, TIDE_COPY_ROWS, table->name);
        if (rc == TIDE_OK)
            rc = copy_batch(self, &reader, &writer, rows, &more);
        if (rc == TIDE_OK && batch % CHECKPOINT_BATCHES == 0)
            rc = checkpoint(self);
    }
    if (writer.side != NULL)
        tide_copy_writer_close(&writer);
    tide_copy_reader_close(&reader);
    return rc;
}

/* Copies from the place in `kept`: the one in `self` changes with each batch. */
static tide_status copy_from(struct copier *self, tide_text kept)
{
    struct place place;
    if (!place_read(self, kept, &place))
        return tide_error_set(self->err, TIDE_EXISTS,
                              "%.200s: its copy was begun by another version; start over with "
                              "--restart",
                              self->to.name);
    uint64_t rows = place.rows;
    tide_status rc = TIDE_OK;
    for (size_t i = place.table; rc == TIDE_OK && i < self->list.count; i++)
        if (self->list.in_from[i])
            rc = copy_table(self, &self->list.tables[i],
                            i == place.table && place.has_key ? place.key : NULL, &rows);
    self->report->rows_resumed = place.rows;
    self->report->rows_copied = rows - place.rows;
    return rc;
}

static tide_status copy_rows(struct copier *self)
{
    const uint64_t began_ms = tide_world_now_ms(self->world);
    tide_auto_buf kept = tide_buf_in(self->mem, PLACE_BYTES_MAX);
    const tide_status rc = tide_buf_add(&kept, self->place.data, self->place.bytes) == TIDE_OK
                               ? copy_from(self, tide_buf_text(&kept))
                               : tide_copy_no_memory(self->err);
    self->report->copy_ms = tide_world_now_ms(self->world) - began_ms;
    return rc;
}

/* ---- numbers of new rows ---- */

/* The greatest id that a job of this ledger ever had. */
static tide_status jobs_last(struct copier *self, struct copy_side *side, int64_t *last_out)
{
    struct copy_answer answer = {0};
    const tide_status rc = tide_copy_side_run(
        side,
        /* pg_sequence_last_value(): a worker's role may use the sequence but not read it. */
        side->pg != NULL ? "SELECT greatest(pg_sequence_last_value('tidemark.job_id'),"
                           " (SELECT max(id) FROM tidemark.job),"
                           " (SELECT max(id) FROM tidemark.job_done), 0)"
                         : "SELECT coalesce(max(id), 0) FROM job",
        NULL, 0, &answer, self->err);
    *last_out = answer.number;
    return rc;
}

/* SQLite gives the greatest existing id plus one: a job of no kind holds the id of one that was
 * purged at the source, until a newer job exists (LCP7). */
static tide_status keep_last_sqlite(struct copier *self, int64_t last)
{
    char sql[300];
    int64_t here = 0;
    TIDE_TRY(jobs_last(self, &self->to, &here));
    if (here >= last)
        return TIDE_OK;
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO job (id, state, open_deps, account, priority, kind, scope,"
                   " attempts, attempts_max, traits, created, finished, payload)"
                   " VALUES (%" PRId64 ", 2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, '{}')",
                   last);
    return tide_copy_side_run(&self->to, sql, NULL, 0, NULL, self->err);
}

/* Sequences of the target continue after the ids that were copied. */
static tide_status keep_numbers_pg(struct copier *self, const struct copy_table *table)
{
    char sql[600];
    if (table->keys_count != 1 || table->columns[0].type >= COPY_TEXT)
        return TIDE_OK;
    const char *column = table->columns[0].name;
    (void)snprintf(sql, sizeof sql,
                   "SELECT pg_catalog.setval(s.name, greatest(m.last, 1), m.last > 0) FROM"
                   " (SELECT pg_get_serial_sequence('tidemark.\"%s\"', '%s')::regclass AS name) s,"
                   " (SELECT coalesce(max(\"%s\"), 0) AS last FROM tidemark.\"%s\") m"
                   " WHERE s.name IS NOT NULL",
                   table->name, column, column, table->name);
    return tide_copy_side_run(&self->to, sql, NULL, 0, NULL, self->err);
}

static tide_status keep_numbers(struct copier *self)
{
    char sql[120];
    int64_t last = 0;
    tide_status rc = jobs_last(self, &self->from, &last);
    if (rc == TIDE_OK)
        rc = tide_copy_side_begin(&self->to, true, self->err);
    if (rc == TIDE_OK)
        rc = place_hold(self);
    if (rc == TIDE_OK && self->to.pg == NULL)
        rc = keep_last_sqlite(self, last);
    if (rc == TIDE_OK && self->to.pg != NULL) {
        for (size_t i = 0; rc == TIDE_OK && i < self->list.count; i++)
            if (self->list.in_to[i])
                rc = keep_numbers_pg(self, &self->list.tables[i]);
        (void)snprintf(sql, sizeof sql,
                       "SELECT pg_catalog.setval('tidemark.job_id', %" PRId64 ", %s)",
                       last > 0 ? last : 1, last > 0 ? "true" : "false");
        if (rc == TIDE_OK)
            rc = tide_copy_side_run(&self->to, sql, NULL, 0, NULL, self->err);
    }
    if (rc == TIDE_OK)
        rc = tide_copy_side_commit(&self->to, self->err);
    tide_copy_side_rollback(&self->to);
    return rc;
}

/* So that the first claims are planned with the real sizes.  A role without the right gets a
 * warning from the server, and autovacuum does it some time later. */
static void analyze(struct copier *self)
{
    if (self->to.pg != NULL)
        (void)tide_pg_exec(self->to.pg,
                           "ANALYZE tidemark.job, tidemark.job_done, tidemark.dep, tidemark.cycle",
                           NULL);
}

/* ---- the end ---- */

/* The next run starts over, because the target is not equal to the source. */
static tide_status not_equal(struct copier *self)
{
    const struct tide_copy_report *report = self->report;
    const char *difference = "";
    for (size_t i = 0; i < report->tables_count && difference[0] == '\0'; i++)
        difference = report->tables[i].difference;
    tide_error *err = self->err;
    self->err = NULL;
    if (tide_copy_side_begin(&self->to, true, NULL) == TIDE_OK &&
        place_put(self, key_seen, TIDE_TEXT("not equal")) == TIDE_OK)
        (void)tide_copy_side_commit(&self->to, NULL);
    tide_copy_side_rollback(&self->to);
    self->err = err;
    return tide_error_set(err, TIDE_CORRUPT,
                          "the copy is not equal to its source (%.200s): it stays closed, and the "
                          "next run starts over",
                          difference);
}

/* Removes the mark: from here on the target is a ledger (LCP5). */
static tide_status let_go(struct copier *self)
{
    char sql[160];
    TIDE_TRY(tide_copy_side_begin(&self->to, true, self->err));
    tide_status rc = place_hold(self);
    if (rc == TIDE_OK && self->to.pg != NULL)
        rc = tide_pg_exec(self->to.pg,
                          "DELETE FROM tidemark.meta WHERE key = 'copying'"
                          " OR key LIKE 'copying.%'",
                          self->err);
    if (rc == TIDE_OK && self->to.pg == NULL) {
        (void)snprintf(sql, sizeof sql, "DROP TABLE copying; PRAGMA application_id = %u",
                       TIDE_LEDGER_APPLICATION_ID);
        rc = tide_db_exec(self->to.db, sql, self->err);
    }
    if (rc == TIDE_OK)
        rc = tide_copy_side_commit(&self->to, self->err);
    tide_copy_side_rollback(&self->to);
    return rc == TIDE_OK ? checkpoint(self) : rc;
}

static tide_status copier_init(struct copier *self, tide_world *world,
                               const struct tide_ledger_copy *copy, tide_mem *mem,
                               struct tide_copy_report *report, tide_error *err)
{
    enum { ROW_BYTES_MAX = 64 << 20 };
    memset(report, 0, sizeof *report);
    self->world = world;
    self->copy = copy;
    self->mem = mem;
    self->report = report;
    self->err = err;
    tide_copy_list_init(&self->list, mem);
    tide_buf_init(&self->seen, mem, PLACE_BYTES_MAX);
    tide_buf_init(&self->place, mem, PLACE_BYTES_MAX);
    tide_buf_init(&self->next, mem, PLACE_BYTES_MAX);
    tide_buf_init(&self->row_from, mem, ROW_BYTES_MAX);
    tide_buf_init(&self->row_to, mem, ROW_BYTES_MAX);
    if (strcmp(copy->from, copy->to) == 0)
        return tide_error_set(err, TIDE_INVALID, "source and target are the same");
    return TIDE_OK;
}

static void copier_done(struct copier *self)
{
    tide_copy_side_close(&self->to);
    tide_copy_side_close(&self->from);
    tide_copy_list_done(&self->list);
    tide_buf_done(&self->seen);
    tide_buf_done(&self->place);
    tide_buf_done(&self->next);
    tide_buf_done(&self->row_from);
    tide_buf_done(&self->row_to);
    tide_mem_free(self->mem, self, sizeof *self);
}

static tide_status with_copier(tide_world *world, const struct tide_ledger_copy *copy,
                               tide_mem *mem, struct tide_copy_report *report, tide_error *err,
                               tide_status (*steps)(struct copier *self))
{
    struct copier *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return tide_copy_no_memory(err);
    tide_status rc = copier_init(self, world, copy, mem, report, err);
    if (rc == TIDE_OK)
        rc = steps(self);
    copier_done(self);
    return rc;
}

static tide_status copy_steps(struct copier *self)
{
    TIDE_TRY(look_at_source(self));
    TIDE_TRY(look_at_target(self));
    TIDE_TRY(copy_rows(self));
    TIDE_TRY(keep_numbers(self));
    analyze(self);
    TIDE_TRY(tide_copy_compare(self));
    if (!self->report->equal)
        return not_equal(self);
    TIDE_TRY(check_rules(self, &self->to, "please report it; the target stays closed"));
    return let_go(self);
}

tide_status tide_ledger_copy(tide_world *world, const struct tide_ledger_copy *copy, tide_mem *mem,
                             struct tide_copy_report *report_out, tide_error *err)
{
    return with_copier(world, copy, mem, report_out, err, copy_steps);
}

static tide_status compare_steps(struct copier *self)
{
    TIDE_TRY(tide_copy_side_open(&self->from, self->world, self->copy->from, false, self->err));
    TIDE_TRY(tide_copy_side_open(&self->to, self->world, self->copy->to, false, self->err));
    TIDE_TRY(tide_copy_side_begin(&self->from, false, self->err));
    TIDE_TRY(tide_copy_list_make(&self->list, self->copy, &self->from, &self->to,
                                 self->report->left_out, sizeof self->report->left_out, self->err));
    TIDE_TRY(count_source(self));
    return tide_copy_compare(self);
}

tide_status tide_ledger_compare(tide_world *world, const struct tide_ledger_copy *copy,
                                tide_mem *mem, struct tide_copy_report *report_out, tide_error *err)
{
    return with_copier(world, copy, mem, report_out, err, compare_steps);
}

tide_status tide_ledger_copy_count(tide_world *world, const struct tide_ledger_copy *copy,
                                   tide_mem *mem, struct tide_copy_report *report_out,
                                   tide_error *err)
{
    return with_copier(world, copy, mem, report_out, err, look_at_source);
}
