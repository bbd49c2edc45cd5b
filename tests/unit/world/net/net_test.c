/* The real world's network against a server that behaves as told. */
#include "net_fixture.h"

extern const struct group group_answers, group_failures, group_bodies, group_many;

static const struct group *const groups[] = {&group_answers, &group_failures, &group_bodies,
                                             &group_many};

int main(void)
{
    /* A proxy of the machine has no business between a test and its server. */
    (void)setenv("no_proxy", "*", 1);
    return groups_run(groups, sizeof groups / sizeof groups[0]);
}
