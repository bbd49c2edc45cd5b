#include "serve/schedule/planned.h"

#include <string.h>

static const char what[] = "the schedules";

/* A `covered` that is further ahead was written by a machine with a wrong clock. */
enum { AHEAD_MS_MAX = 24 * 3600 * 1000 };

static const char tables_sql[] =
    "CREATE TABLE IF NOT EXISTS serve_schedule("
    " name TEXT PRIMARY KEY, at TEXT NOT NULL, words TEXT NOT NULL, jitter_ms INTEGER NOT NULL,"
    " created_unix_ms INTEGER NOT NULL,"
    " covered_unix_ms INTEGER NOT NULL," /* slots up to here ran or were missed */
    " started_unix_ms INTEGER NOT NULL, ended_unix_ms INTEGER NOT NULL," /* last run; 0: none */
    " exit_code INTEGER NOT NULL, result TEXT NOT NULL, runner TEXT NOT NULL,"
    " runs INTEGER NOT NULL, wanted_unix_ms INTEGER NOT NULL"
    ") STRICT;";

#define COLUMNS                                                                                    \
    "name, at, words, jitter_ms, created_unix_ms, covered_unix_ms, started_unix_ms, "              \
    "ended_unix_ms,"                                                                               \
    " exit_code, result, runner, runs, wanted_unix_ms"

tide_status tide_planned_tables(tide_rows rows, tide_error *err)
{
    return tide_rows_tables(rows, tables_sql, what, err);
}

static void row_read(const tide_rows_stmt *stmt, struct tide_planned *planned)
{
    *planned = (struct tide_planned){.jitter_ms = tide_rows_get_u64(stmt, 3),
                                     .created_unix_ms = tide_rows_get_u64(stmt, 4),
                                     .covered_unix_ms = tide_rows_get_u64(stmt, 5),
                                     .started_unix_ms = tide_rows_get_u64(stmt, 6),
                                     .ended_unix_ms = tide_rows_get_u64(stmt, 7),
                                     .exit_code = tide_rows_get_u64(stmt, 8),
                                     .runs = tide_rows_get_u64(stmt, 11),
                                     .wanted_unix_ms = tide_rows_get_u64(stmt, 12)};
    tide_rows_get_copy(stmt, 0, planned->name, sizeof planned->name);
    tide_rows_get_copy(stmt, 1, planned->at, sizeof planned->at);
    tide_rows_get_copy(stmt, 2, planned->words, sizeof planned->words);
    tide_rows_get_copy(stmt, 9, planned->result, sizeof planned->result);
    tide_rows_get_copy(stmt, 10, planned->runner, sizeof planned->runner);
}

tide_status tide_planned_each(tide_rows rows,
                              bool (*visit)(void *arg, const struct tide_planned *planned),
                              void *arg, tide_error *err)
{
    tide_rows_stmt stmt;
    bool has = false;
    tide_status rc = tide_rows_has(rows, "serve_schedule", what, &has, err);
    if (rc != TIDE_OK || !has)
        return rc;
    rc = tide_rows_ask(rows, what, &stmt, err,
                       "SELECT " COLUMNS " FROM serve_schedule ORDER BY name");
    bool more = true;
    while (more && tide_rows_next(&stmt, &rc, err)) {
        struct tide_planned planned;
        row_read(&stmt, &planned);
        more = visit(arg, &planned);
    }
    tide_rows_end(&stmt);
    return rc;
}

tide_status tide_planned_find(tide_rows rows, const char *name, struct tide_planned *planned_out,
                              tide_error *err)
{
    tide_rows_stmt stmt = {.what = NULL};
    bool has = false;
    tide_status rc = tide_rows_has(rows, "serve_schedule", what, &has, err);
    if (rc == TIDE_OK && has)
        rc = tide_rows_first(rows, what, &stmt, err,
                             "SELECT " COLUMNS " FROM serve_schedule WHERE name = ?1", name);
    if (rc == TIDE_OK && has)
        row_read(&stmt, planned_out);
    tide_rows_end(&stmt);
    return (rc == TIDE_OK && !has) || rc == TIDE_NOT_FOUND
               ? tide_error_set(err, TIDE_NOT_FOUND, "there is no schedule \"%.64s\"", name)
               : rc;
}

tide_status tide_planned_add(tide_rows rows, const struct tide_planned *planned, tide_error *err)
{
    uint64_t count = 0;
    struct tide_planned other;
    tide_status rc = tide_planned_tables(rows, err);
    if (rc == TIDE_OK)
        rc = tide_rows_number(rows, what, &count, err, "SELECT count(*) FROM serve_schedule");
    if (rc == TIDE_OK && count >= TIDE_PLANNED_MAX)
        return tide_error_set(err, TIDE_FULL, "there are %d schedules", TIDE_PLANNED_MAX);
    if (rc == TIDE_OK)
        rc = tide_planned_find(rows, planned->name, &other, err);
    if (rc == TIDE_OK)
        return tide_error_set(err, TIDE_EXISTS, "there is a schedule \"%s\" already",
                              planned->name);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    return tide_rows_do(rows, what, err,
                        "INSERT INTO serve_schedule (" COLUMNS ")"
                        " VALUES (?1, ?2, ?3, ?4, ?5, ?5, 0, 0, 0, '', '', 0, 0)",
                        planned->name, planned->at, planned->words, planned->jitter_ms,
                        planned->created_unix_ms);
}

tide_status tide_planned_remove(tide_rows rows, const char *name, tide_error *err)
{
    uint64_t removed = 0;
    bool has = false;
    tide_status rc = tide_rows_has(rows, "serve_schedule", what, &has, err);
    if (rc == TIDE_OK && has)
        rc = tide_rows_change(rows, what, &removed, err,
                              "DELETE FROM serve_schedule WHERE name = ?1", name);
    return rc == TIDE_OK && removed == 0
               ? tide_error_set(err, TIDE_NOT_FOUND, "there is no schedule \"%.64s\"", name)
               : rc;
}

tide_status tide_planned_start(tide_rows rows, const struct tide_planned *seen,
                               uint64_t now_unix_ms, const char *runner, tide_error *err)
{
    uint64_t changed = 0;
    const uint64_t covered =
        now_unix_ms > seen->covered_unix_ms ? now_unix_ms : seen->covered_unix_ms;
    const tide_status rc = tide_rows_change(
        rows, what, &changed, err,
        "UPDATE serve_schedule SET covered_unix_ms = ?3, started_unix_ms = ?4, ended_unix_ms = 0,"
        " exit_code = 0, result = '', runner = ?5, runs = runs + 1, wanted_unix_ms = 0"
        " WHERE name = ?1 AND covered_unix_ms = ?2 AND started_unix_ms = ?6",
        seen->name, seen->covered_unix_ms, covered, now_unix_ms, runner, seen->started_unix_ms);
    return rc == TIDE_OK && changed == 0
               ? tide_error_set(err, TIDE_STALE, "another process runs schedule %s", seen->name)
               : rc;
}

tide_status tide_planned_want(tide_rows rows, const char *name, uint64_t asked_unix_ms,
                              uint64_t now_unix_ms, tide_error *err)
{
    uint64_t changed = 0;
    const tide_status rc = tide_rows_change(
        rows, what, &changed, err,
        "UPDATE serve_schedule SET wanted_unix_ms = CASE"
        " WHEN started_unix_ms BETWEEN ?2 AND ?3 THEN wanted_unix_ms ELSE ?2 END WHERE name = ?1",
        name, asked_unix_ms, now_unix_ms);
    return rc == TIDE_OK && changed == 0
               ? tide_error_set(err, TIDE_NOT_FOUND, "there is no schedule \"%.64s\"", name)
               : rc;
}

tide_status tide_planned_ran(tide_rows rows, const struct tide_planned *ran, tide_error *err)
{
    uint64_t changed = 0;
    const tide_status rc = tide_rows_change(
        rows, what, &changed, err,
        "UPDATE serve_schedule SET started_unix_ms = ?2, ended_unix_ms = ?3,"
        " exit_code = ?4, result = ?5, runner = ?6, runs = runs + 1 WHERE name = ?1",
        ran->name, ran->started_unix_ms, ran->ended_unix_ms, ran->exit_code, ran->result,
        ran->runner);
    return rc == TIDE_OK && changed == 0
               ? tide_error_set(err, TIDE_NOT_FOUND, "there is no schedule \"%.64s\"", ran->name)
               : rc;
}

tide_status tide_planned_end(tide_rows rows, const char *name, uint64_t started_unix_ms,
                             uint64_t ended_unix_ms, uint64_t exit_code, const char *result,
                             tide_error *err)
{
    return tide_rows_do(rows, what, err,
                        "UPDATE serve_schedule SET ended_unix_ms = ?3, exit_code = ?4, result = ?5"
                        " WHERE name = ?1 AND started_unix_ms = ?2",
                        name, started_unix_ms, ended_unix_ms, exit_code, result);
}

tide_status tide_planned_next(const struct tide_planned *planned, uint64_t now_unix_ms,
                              const struct tide_zone *zone, uint64_t *next_unix_ms_out,
                              tide_error *err)
{
    struct tide_timetable timetable;
    const tide_status rc = tide_timetable_parse(tide_text_of(planned->at), &timetable, err);
    if (rc != TIDE_OK)
        return rc;
    uint64_t after_ms = planned->covered_unix_ms;
    if (after_ms > now_unix_ms && after_ms - now_unix_ms > AHEAD_MS_MAX)
        after_ms = now_unix_ms;
    const uint64_t slot_ms =
        tide_timetable_next(&timetable, planned->created_unix_ms, after_ms, zone);
    *next_unix_ms_out = slot_ms == TIDE_TIMETABLE_NEVER
                            ? slot_ms
                            : slot_ms + tide_timetable_delay_ms(tide_text_of(planned->name),
                                                                slot_ms, planned->jitter_ms);
    return TIDE_OK;
}
