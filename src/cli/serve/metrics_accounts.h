/* metrics_accounts.h - metrics of how far accounts are, from the object of `tidemark status`.
 *
 * Every system says that through one function (system/system.h: status()), so that a new one has
 * these metrics without bringing any.
 *
 * Invariant:
 *   MAC1  items_stored_total never goes back: it is the most that was stored since the start. */
#ifndef TIDE_CLI_SERVE_METRICS_ACCOUNTS_H
#define TIDE_CLI_SERVE_METRICS_ACCOUNTS_H

#include "base/limits.h"
#include "metrics/lines.h"

#include <jansson.h>

/* What was stored at most; zeroed at first.  One thread at a time. */
struct cli_stored {
    struct {
        char account[TIDE_NAME_BYTES_MAX + 1];
        uint64_t items;
    } list[TIDE_METRICS_ACCOUNTS_MAX];
    size_t count;
    uint64_t others;
};

/* `status` NULL: it could not be read; there are heads without lines then. */
void cli_metrics_accounts(const json_t *status, struct cli_stored *stored, tide_metrics *metrics);

#endif
