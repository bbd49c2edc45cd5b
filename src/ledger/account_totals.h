/* account_totals.h - counts of an account's calls, jobs and bad items in all runs (M4, E6.4).
 *
 * The engine adds to them while it runs and saves them with the windows of the alerts, so that
 * they survive the process.  A crash loses at most the last minute. */
#ifndef TIDE_ENGINE_ACCOUNT_TOTALS_H
#define TIDE_ENGINE_ACCOUNT_TOTALS_H

#include "ledger/ledger.h"

struct tide_account_totals {
    uint64_t calls, refused;              /* API calls; those the provider refused as too many */
    uint64_t failed, retried, split, bad; /* jobs; bad items */
};

/* Zeros where nothing was saved yet. */
tide_status tide_account_totals_read(tide_ledger *ledger, uint32_t account,
                                     struct tide_account_totals *totals_out, tide_error *err);

#endif
