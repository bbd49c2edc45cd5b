/* archive_here.h - which archives are on this machine, and for which accounts (docs/fleet.md).
 *
 * An archive is local files; the ledger may be shared by many machines.  So each archive has
 * an id (engine/accounts/archive_id.h), and the ledger records for each account in which archive
 * its data is.  Only a process that has exactly that archive in its home takes the account.
 *
 * Invariants:
 *   AHR1  an account whose data is in another archive is never taken here.
 *   AHR2  an account without an archive is assigned to this one only if its sign-in is stored here.
 */
#ifndef TIDE_CLI_ARCHIVE_HERE_H
#define TIDE_CLI_ARCHIVE_HERE_H

#include "cli/cli.h"
#include "net/secrets.h"
#include "tidemark.h"

struct archive_here {
    tide_world *world;
    char archive_dir[CLI_PATH_BYTES];
    const struct tide_system *taken[TIDE_SYSTEMS_MAX]; /* whose accounts to take */
    size_t taken_count;
    const char *const *accounts; /* only these; NULL: all.  Borrowed */
    size_t accounts_count;
};

/* Where this home keeps its archives and its sign-ins; TIDE_INVALID: a path is too long. */
tide_status archive_here_places(struct cli *cli, char archive_dir_out[CLI_PATH_BYTES],
                                char secrets_dir_out[CLI_PATH_BYTES]);
/* The options to open this home's engine; on a shared ledger it takes accounts whose archive is
 * here. */
tide_status archive_here_options(struct cli *cli, const char *archive_dir,
                                 struct archive_here *here,
                                 struct tide_engine_options *options_out);
/* Adds a hint to the result `rc` of opening the engine; returns `rc`. */
tide_status archive_here_opened(struct cli *cli, tide_status rc);
/* Takes accounts of this system, or of all systems of the program. */
void archive_here_take(struct archive_here *here, const struct tide_system *system);
bool archive_here_takes(const struct archive_here *here, const struct tide_system *system);
void archive_here_take_all(struct archive_here *here, const struct cli *cli);
/* Creates the directory if it is missing. */
tide_status archive_here_open(struct cli *cli, const char *archive_dir, struct archive_here *here);
/* For tide_engine_options.may_take; the argument is the struct (AHR1). */
bool archive_here_may_take(void *arg, const char *account, const char *provider,
                           const char *archive);
/* The system of the account, if `taken` and `accounts` select it; else NULL. */
const struct tide_system *archive_here_wants(const struct archive_here *here, const char *account,
                                             const char *provider);
/* Assigns to this archive, in the shared ledger, every account that has no archive yet and whose
 * sign-in is here (AHR2). */
tide_status archive_here_adopt(struct cli *cli, const struct archive_here *here,
                               tide_secrets *secrets, unsigned *count_out);

#endif
