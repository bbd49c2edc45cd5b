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
    bool thorough; /* everything that exists nowhere else is looked up */
    bool always;   /* copies are counted also when all are exact */
    bool names;    /* every message by its id, not the first ones */
};
/* What of a mailbox is stored or recorded as not to be had. */
static inline uint64_t mail_known_count(const struct tide_mail_look *look, uint64_t stored)
{
    return stored + look->bad + look->gone + look->owed + look->accepted + look->retrying;
}

/* Prints it, sets "copies", "unlisted" and "lost" in `one`, and ends the command with
 * CLI_EXIT_BAD_ITEMS if something is missing.  The ledger is open to be read. */
tide_status mail_known_show(struct cli *cli, const struct mail_known_ask *ask, tide_json *one);

#endif
