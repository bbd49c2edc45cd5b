/* keys_rows.h - the rows of keys, in the ledger's database; each call in the caller's transaction.
 *
 * `struct tide_keys_store` is the caller's: it opens a transaction and calls these.  On a shared ledger
 * each process has the keys of its own home (`home`), because it alone can refuse one at once; a
 * ledger of one home has "".
 */
#ifndef TIDE_SERVE_ACCESS_KEYS_ROWS_H
#define TIDE_SERVE_ACCESS_KEYS_ROWS_H

#include "db/rows.h"
#include "serve/access/keys.h"

tide_status tide_keys_rows_tables(tide_rows rows, tide_error *err);
/* In the order of their ids.  TIDE_FULL: `take` refused one. */
tide_status tide_keys_rows_load(tide_rows rows, const char *home,
                                bool (*take)(void *arg, const struct tide_key *key), void *take_arg,
                                tide_error *err);
tide_status tide_keys_rows_add(tide_rows rows, const char *home, const struct tide_key *key,
                               uint64_t gone, tide_error *err);
tide_status tide_keys_rows_revoke(tide_rows rows, const char *home, uint64_t id,
                                  uint64_t now_unix_ms, tide_error *err);

#endif
