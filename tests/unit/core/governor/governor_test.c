/* Goal: the quota is never crossed and nearly all of it is used, whatever dies.
 * Method: examples of each rule, random operations with the invariants checked
 * after each, and whole hours under a referee on its own clock (referee.h). */
#include "governor_fixture.h"

extern const struct group group_deciding, group_learning, group_commands, group_restoring,
    group_walking, group_refereed;

static const struct group *const groups[] = {&group_deciding,  &group_learning, &group_commands,
                                             &group_restoring, &group_walking,  &group_refereed};

int main(void)
{
    return groups_run(groups, sizeof groups / sizeof groups[0]);
}
