/* Search Console: the data by itself, then the methods through the whole gate. */
#include "console_fixture.h"

extern const struct group group_data, group_sites, group_queries, group_sums, group_pages,
    group_times, group_writing;

static const struct group *const groups[] = {&group_data,   &group_sites, &group_queries,
                                             &group_sums,   &group_pages, &group_times,
                                             &group_writing};

int main(void)
{
    return groups_run(groups, sizeof groups / sizeof groups[0]);
}
