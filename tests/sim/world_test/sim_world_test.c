/* The simulated world must keep its own promises before it may judge others. */
#include "sim_world_fixture.h"

extern const struct group group_threads, group_time, group_reports, group_crashes, group_sqlite,
    group_files, group_network, group_provider, group_together;

static const struct group *const groups[] = {&group_threads, &group_time,     &group_reports,
                                             &group_crashes, &group_sqlite,   &group_files,
                                             &group_network, &group_provider, &group_together};

int main(void)
{
    return groups_run(groups, sizeof groups / sizeof groups[0]);
}
