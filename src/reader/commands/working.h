/* working.h - the jobs of the reader that run and wait, by account, from the ledger.
 *
 * Of an account one job runs at a time (K4): what waits, waits for it, or for its own time. */
#ifndef TIDE_READER_COMMANDS_WORKING_H
#define TIDE_READER_COMMANDS_WORKING_H

#include "cli/cli.h"

enum { READER_LEVELS = 4, READER_WHAT_BYTES = 200 };

struct reader_work {
    uint32_t account;
    uint64_t job;                 /* the most urgent one that runs */
    char kind[48];                /* "": none runs */
    char what[READER_WHAT_BYTES]; /* the message, label or query it is for; "": none */
    uint8_t priority;
    uint64_t waiting[READER_LEVELS + 1]; /* by level (K3), without those whose time has not come */
};

struct reader_working {
    tide_mem *mem;
    struct reader_work *list;
    size_t count, capacity;
};
/* Begins with a zeroed one; to be ended also after a failure. */
tide_status reader_working_read(struct cli *cli, struct reader_working *working);
void reader_working_done(struct reader_working *working);
/* Of an account; a zeroed one if it has none. */
const struct reader_work *reader_working_of(const struct reader_working *working, uint32_t account);
uint64_t reader_work_waiting(const struct reader_work *work);

#endif
