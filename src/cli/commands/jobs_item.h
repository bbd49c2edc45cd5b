/* jobs_item.h - the jobs that work on an item: a message id, a path (E9.4).
 *
 * An item of a job is an element of its payload's "items", or its "path".  Jobs are found by reading,
 * page by page, and changed by their ids afterwards: a filter on payloads inside the change would be
 * a long write transaction over all waiting jobs (E2.5). */
#ifndef TIDE_CLI_COMMANDS_JOBS_ITEM_H
#define TIDE_CLI_COMMANDS_JOBS_ITEM_H

#include "cli/cli.h"

enum { JOBS_ITEM_MAX = 1000 }; /* jobs with one item; more are found by the next command */

struct jobs_item {
    const char *item;
    struct {
        uint64_t id;
        uint64_t items; /* in its payload */
    } jobs[JOBS_ITEM_MAX];
    size_t count;
};
/* Adds the jobs in `state` that have the item and are not in the list yet.  `named`: further
 * conditions; its state is ignored. */
tide_status jobs_item_find(struct cli *cli, const struct tide_control_filter *named,
                           tide_row_state state, struct jobs_item *list);
/* How many items of a payload there are, and whether `item` is among them.  Exposed for tests. */
bool jobs_item_has(tide_text payload, const char *item, uint64_t *items_out);

#endif
