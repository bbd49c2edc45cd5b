/* schedule_change.h - adds and removes schedules, and records runs by hand: by the engine that
 * has the home, whichever command runs it, or here when none does.
 *
 * The op of the control socket is "schedule", with `do` (add, remove, ran, want) and `schedule`, an
 * object with the fields of struct tide_planned that matter. */
#ifndef TIDE_CLI_RUN_SCHEDULE_CHANGE_H
#define TIDE_CLI_RUN_SCHEDULE_CHANGE_H

#include "cli/cli.h"
#include "serve/schedule/planned.h"

typedef enum schedule_do {
    SCHEDULE_ADD,
    SCHEDULE_REMOVE, /* by its name */
    SCHEDULE_RAN,    /* a user ran it: when, and how it ended */
    SCHEDULE_WANT,   /* a user wants `tidemark serve` to run it now */
} schedule_do;

/* TIDE_EXISTS, TIDE_NOT_FOUND, TIDE_FULL and what a ledger says. */
tide_status schedule_change(struct cli *cli, schedule_do what, const struct tide_planned *planned);
/* Makes the engine answer the op; `cli` is the command that has it. */
tide_status schedule_op_add(struct cli *cli, tide_engine *engine);

/* The zone of this machine, for timetables. */
extern const struct tide_zone schedule_zone;
/* The words of a row, borrowed from *array_out, which the caller frees.  0: not words. */
size_t schedule_words(const struct tide_planned *planned, const char **words_out, size_t words_max,
                      json_t **array_out);

#endif
