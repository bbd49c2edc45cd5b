/* outcome.h - how a run ended for one account, and what that means for the exit code.
 *
 * Each account is judged separately, after the run: one that is signed out, halted or unreachable
 * says nothing about the others.  The command ends with the code of the worst one:
 *
 *   1  failed: it could not begin, or it is halted or paused
 *   4  it needs a sign-in
 *   5  not finished: interrupted, out of time, or the server does not answer; the next run resumes
 *   3  finished, with items or jobs that failed
 *   0  done */
#ifndef TIDE_CLI_RUN_OUTCOME_H
#define TIDE_CLI_RUN_OUTCOME_H

#include "cli/run/work.h"

typedef enum cli_outcome {
    CLI_OUTCOME_DONE,
    CLI_OUTCOME_BAD_ITEMS,
    CLI_OUTCOME_UNFINISHED,
    CLI_OUTCOME_SIGNED_OUT,
    CLI_OUTCOME_PAUSED,
    CLI_OUTCOME_HALTED,
    CLI_OUTCOME_FAILED,
} cli_outcome;

struct cli_ended {
    cli_outcome outcome;
    char reason[400]; /* "" when it is done */
    char remedy[400]; /* what to do about it; "" */
};

/* Judges an account of a run. */
void cli_outcome_judge(const struct cli_work *work, size_t account, struct cli_ended *ended_out);
const char *cli_outcome_name(cli_outcome outcome);
int cli_outcome_exit_code(cli_outcome outcome);
/* The worse of two exit codes, in the order above. */
int cli_outcome_worse(int a, int b);
/* Prints how each account ended, and sets the exit code and in the JSON "accounts", "interrupted",
 * "timed_out" and "handed_over" (report.c). */
void cli_work_report(struct cli_work *work);

#endif
