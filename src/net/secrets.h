/* secrets.h - where tokens and keys are kept: the desktop's keyring, else a file
 * of mode 0600 (M16).
 *
 * A secret has a name ("gmail/ada@example.com/token") and a value of text.  It
 * never appears in a log, an argument, the ledger or an error.
 *
 * Invariants:
 *   C1  a replaced secret is the old or the new one after a crash, never a mixture.
 *   C2  a file that others can read is refused, with the command that mends it.
 *   C3  memory that held a secret is wiped before it is freed.
 */
#ifndef TIDE_NET_SECRETS_H
#define TIDE_NET_SECRETS_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "world/world.h"

typedef struct tide_secrets tide_secrets;

enum { TIDE_SECRET_BYTES_MAX = 64 << 10, TIDE_SECRET_NAME_BYTES_MAX = 300 };

typedef enum tide_secrets_place {
    TIDE_SECRETS_BEST,    /* the keyring when there is one, else files */
    TIDE_SECRETS_KEYRING, /* or fail */
    TIDE_SECRETS_FILES,
} tide_secrets_place;

tide_status tide_secrets_open(tide_world *world, const char *dir, tide_secrets_place place,
                              tide_mem *mem, tide_secrets **secrets_out, tide_error *err);
void tide_secrets_close(tide_secrets *secrets); /* NULL is fine */
/* "keyring" or "file"; for people. */
const char *tide_secrets_where(const tide_secrets *secrets);

tide_status tide_secrets_put(tide_secrets *secrets, const char *name, tide_text value,
                             tide_error *err);
/* TIDE_NOT_FOUND.  Wipe `out` with tide_secret_wipe(). */
tide_status tide_secrets_get(tide_secrets *secrets, const char *name, tide_buf *out,
                             tide_error *err);
tide_status tide_secrets_remove(tide_secrets *secrets, const char *name, tide_error *err);
void tide_secret_wipe(tide_buf *secret);

#endif
