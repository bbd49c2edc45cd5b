/* archive_here.h - which accounts of a shared ledger this process may take (docs/fleet.md).
 *
 * Archives are local files, so an account is taken only where its archive is
 * (engine/archive_id.h).  One that has no archive yet (its ledger was copied from a
 * machine that never shared it) is taken where a folder of it is.
 */
#ifndef TIDE_CLI_ARCHIVE_HERE_H
#define TIDE_CLI_ARCHIVE_HERE_H

#include "cli/cli.h"

struct archive_here {
    tide_world *world;
    const char *archive_dir;     /* borrowed */
    bool mail, console;          /* which kinds of accounts */
    const char *const *accounts; /* only these; none: all.  Borrowed */
    size_t accounts_count;
};

/* For tide_engine_options.may_take; the argument is the struct. */
bool archive_here_may_take(void *arg, const char *account, const char *provider,
                           const char *archive);

#endif
