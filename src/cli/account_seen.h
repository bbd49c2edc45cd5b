/* account_seen.h - the running engine's snapshot, and the outcome of an account's last calls, for the commands that show it. */
#ifndef TIDE_CLI_ACCOUNT_SEEN_H
#define TIDE_CLI_ACCOUNT_SEEN_H

#include "cli/cli.h"
#include "ledger/outcome.h"

struct account_seen {
    struct tide_outcome outcome;
    uint64_t next_try_ms; /* unix time; 0: it is not waiting, or no engine runs */
};

/* From the engine's snapshot when it has the account, else from the ledger, which is open.
 * `snapshot` may be NULL. */
void account_seen(struct cli *cli, const json_t *snapshot, uint32_t account, const char *name,
                  struct account_seen *seen_out);
/* The snapshot of this engine; NULL: of the one that runs in this directory.  NULL if none runs;
 * owned by the caller. */
json_t *cli_snapshot(struct cli *cli, tide_engine *engine);
/* The account in a snapshot; borrowed, NULL. */
const json_t *account_in_snapshot(const json_t *snapshot, const char *name);
/* JSON fields: last_ok_unix_ms, last_failed_unix_ms, failing_since_unix_ms, last_failure, next_try_unix_ms. */
void account_seen_json(const struct account_seen *seen, tide_json *json);
/* One sentence: when the server answered last, and how it fails since. */
void account_seen_text(const struct account_seen *seen, char *out, size_t out_bytes);

/* Whether the ledger knows an archive of the account.  It does from `account add` to `account remove`:
 * an account that has one but no row in its system was added by half, or lost that row. */
bool account_is_kept(const struct tide_account_row *row);
/* What to say of such an account: what happened, and what to do. */
void account_rows_missing(const struct tide_system *system, const char *name, char *out,
                          size_t out_bytes);

#endif
