/* outcome.h - how a sync ended for one account, and what that means for the exit code.
 *
 * Each account is judged separately, after the run: one that is signed out, halted or unreachable
 * says nothing about the others.  The command ends with the code of the worst one:
 *
 *   1  failed: it could not begin, or it is halted or paused
 *   4  it needs a sign-in
 *   5  not finished: interrupted, out of time, or the server does not answer; the next run resumes
 *   3  finished, with messages or jobs that failed
 *   0  done */
#ifndef TIDE_CLI_MAIL_OUTCOME_H
#define TIDE_CLI_MAIL_OUTCOME_H

#include "mail/commands/watch.h"

typedef enum mail_outcome {
    MAIL_OUTCOME_DONE,
    MAIL_OUTCOME_BAD_ITEMS,
    MAIL_OUTCOME_UNFINISHED,
    MAIL_OUTCOME_SIGNED_OUT,
    MAIL_OUTCOME_PAUSED,
    MAIL_OUTCOME_HALTED,
    MAIL_OUTCOME_FAILED,
} mail_outcome;

struct mail_ended {
    mail_outcome outcome;
    char reason[400]; /* "" when it is done */
    char remedy[400]; /* what to do about it; "" */
};

/* `failed`: why it could not begin; its status is TIDE_OK if it could.  `undone`: the error of a
 * failed job that leaves a part of the mailbox unsynced, "" if none is known; NULL: a part is
 * left on purpose. */
void mail_outcome_judge(const struct mail_watched *watched, const tide_error *failed,
                        const char *undone, struct mail_ended *ended_out);
const char *mail_outcome_name(mail_outcome outcome);
int mail_outcome_exit_code(mail_outcome outcome);
/* The worse of two exit codes, in the order above. */
int mail_outcome_worse(int a, int b);

#endif
