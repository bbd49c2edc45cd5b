/* look.h - reads the state of the system, for commands.
 *
 * Reads only, from a ledger opened for reading, so it works with or without a running backfill. */
#ifndef TIDE_CONSOLE_LOOK_H
#define TIDE_CONSOLE_LOOK_H

#include "console/console.h"
#include "ledger/ledger.h"

/* Visits the added sites; none where the system was never used. */
tide_status tide_console_look_sites(tide_ledger *ledger,
                                    void (*visit)(const struct tide_console_site *site, void *arg),
                                    void *arg, tide_error *err);

/* Visits the sites that the server refuses permanently. */
tide_status tide_console_look_refused(tide_ledger *ledger, tide_console_refused_visit *visit,
                                      void *arg, tide_error *err);

/* Visits the properties that a sign-in can read, as the last job of the kind console.sites found
 * them. */
tide_status tide_console_look_listed(tide_ledger *ledger, uint32_t account,
                                     void (*visit)(const char *site, const char *level, void *arg),
                                     void *arg, tide_error *err);

/* Requests of an account's sites that are not done. */
struct tide_console_left {
    uint64_t waiting; /* pending or running */
    uint64_t failed;
};
tide_status tide_console_look_left(tide_ledger *ledger, uint32_t account,
                                   bool (*is_wanted)(uint64_t site, void *arg), void *arg,
                                   struct tide_console_left *left_out, tide_error *err);

struct tide_console_mark {
    char floor[16];     /* its first day; "": it was never planned */
    char tidemark[16];  /* the last day up to which all is complete and final; "": none yet */
    uint64_t days_left; /* opened and not behind the tidemark */
};
tide_status tide_console_look_mark(tide_ledger *ledger, const struct tide_console_site *site,
                                   const struct tide_console_set *set,
                                   struct tide_console_mark *mark_out, tide_error *err);

#endif
