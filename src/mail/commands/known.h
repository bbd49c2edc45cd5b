/* known.h - what is known about the copies of an account and about its losses, for status,
 * verify, sync and `mail lost` (M4, M19a). */
#ifndef TIDE_CLI_MAIL_KNOWN_H
#define TIDE_CLI_MAIL_KNOWN_H

#include "mail/commands/home.h"
#include "mail/sync/lost.h"
#include "mail/status.h"

struct mail_known_ask {
    const struct tide_mail_look *look;
    tide_archive *archive; /* NULL: there is none */
    uint64_t stored;
    bool thorough; /* look up every message that exists nowhere else */
    bool always;   /* show the counts of copies even if all are exact */
    bool names;    /* print every message by its id, not only the first ones */
};
/* How many messages of a mailbox the server counted beyond those that are stored or recorded as
 * unavailable. */
tide_status mail_known_missing(const struct tide_mail_look *look, tide_archive *archive,
                               uint64_t stored, uint64_t *missing_out, tide_error *err);

/* Prints it, sets "copies", "unlisted" and "lost" in `one`, and sets the exit code
 * CLI_EXIT_BAD_ITEMS if something is missing.  The ledger is open for reading. */
tide_status mail_known_show(struct cli *cli, const struct mail_known_ask *ask, tide_json *one);

#endif
