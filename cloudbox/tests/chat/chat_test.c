/* The chat model: its eyes (facts), its hands (schemas), its two ways of
 * speaking, and everything it refuses. */
#include "chat_fixture.h"

extern const struct group group_seeing, group_schemas, group_answers, group_refusals, group_faults;

static const struct group *const groups[] = {&group_seeing, &group_schemas, &group_answers,
                                             &group_refusals, &group_faults};

int main(void)
{
    return groups_run(groups, sizeof groups / sizeof groups[0]);
}
