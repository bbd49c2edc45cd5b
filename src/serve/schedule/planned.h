/* planned.h - schedules that users set: their rows, in the ledger's database (E8).
 *
 * A row is a command with its words, when it runs, and how its last run ended.  Each call runs in the
 * caller's transaction.
 *
 * Slots before `covered` are done with: they ran, or were missed and collapsed into the run that
 * set it.  Starting a run moves `covered` from the value that was read to now, in one statement.  So
 * of two processes, or of one before and after a crash, exactly one starts a slot.  A user who wants a
 * run now sets `wanted`; the start of a run clears it, in the same statement.
 *
 * Invariants:
 *   PLN1  `covered` only increases, and a run starts only together with its move.
 *   PLN2  a run that started and has no end was interrupted: its process starts it again (its
 *         command resumes), no other one does.
 */
#ifndef TIDE_SERVE_SCHEDULE_PLANNED_H
#define TIDE_SERVE_SCHEDULE_PLANNED_H

#include "core/timetable.h"
#include "db/rows.h"

enum {
    TIDE_PLANNED_MAX = 256,
    TIDE_PLANNED_NAME_BYTES = 65,
    TIDE_PLANNED_AT_BYTES = 128,
    TIDE_PLANNED_WORDS_BYTES = 2048,
    TIDE_PLANNED_RESULT_BYTES = 401,
    TIDE_PLANNED_RUNNER_BYTES = 257,
};

struct tide_planned {
    char name[TIDE_PLANNED_NAME_BYTES];   /* what the user calls it */
    char at[TIDE_PLANNED_AT_BYTES];       /* core/timetable.h */
    char words[TIDE_PLANNED_WORDS_BYTES]; /* of the command: a JSON array of texts */
    uint64_t jitter_ms;
    uint64_t created_unix_ms;
    uint64_t covered_unix_ms;
    uint64_t wanted_unix_ms; /* when a user asked for a run that has not started; 0: none did */
    /* of the last run; 0: there was none, or it has not ended */
    uint64_t started_unix_ms;
    uint64_t ended_unix_ms;
    uint64_t exit_code;
    char result[TIDE_PLANNED_RESULT_BYTES];
    char runner[TIDE_PLANNED_RUNNER_BYTES]; /* the home that ran it */
    uint64_t runs;
};

tide_status tide_planned_tables(tide_rows rows, tide_error *err);
/* In the order of names; `visit` returns false to end.  A ledger without the table has none. */
tide_status tide_planned_each(tide_rows rows,
                              bool (*visit)(void *arg, const struct tide_planned *planned),
                              void *arg, tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_planned_find(tide_rows rows, const char *name, struct tide_planned *planned_out,
                              tide_error *err);
/* TIDE_EXISTS, TIDE_FULL. */
tide_status tide_planned_add(tide_rows rows, const struct tide_planned *planned, tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_planned_remove(tide_rows rows, const char *name, tide_error *err);
/* Starts a run.  TIDE_STALE: another process did, or the row is gone. */
tide_status tide_planned_start(tide_rows rows, const struct tide_planned *seen,
                               uint64_t now_unix_ms, const char *runner, tide_error *err);
/* A user wanted a run at `asked`.  Asking again changes nothing, before it has started and afterwards: a
 * run that started since then is the one.  (One that starts later than now was started by a clock that
 * was ahead.)  TIDE_NOT_FOUND. */
tide_status tide_planned_want(tide_rows rows, const char *name, uint64_t asked_unix_ms,
                              uint64_t now_unix_ms, tide_error *err);
/* A user ran it by hand: its times, exit code, result and runner. */
tide_status tide_planned_ran(tide_rows rows, const struct tide_planned *ran, tide_error *err);
/* How a run ended; nothing happens if the row is gone. */
tide_status tide_planned_end(tide_rows rows, const char *name, uint64_t started_unix_ms,
                             uint64_t ended_unix_ms, uint64_t exit_code, const char *result,
                             tide_error *err);

/* When it runs next; TIDE_TIMETABLE_NEVER: never.  TIDE_INVALID: the row's text is not a time. */
tide_status tide_planned_next(const struct tide_planned *planned, uint64_t now_unix_ms,
                              const struct tide_zone *zone, uint64_t *next_unix_ms_out,
                              tide_error *err);

#endif
