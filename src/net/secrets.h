/* secrets.h - stores tokens and keys in the desktop's keyring, else in files of mode 0600 (M16).
 *
 * A secret has a name ("gmail/ada@example.com/token") and a text value.  The value
 * never appears in a log, an argument, the ledger or an error.
 *
 * With TIDE_SECRETS_BEST a secret may be in either place: it goes to the keyring, or
 * to a file while the keyring fails (a locked one, a service without a desktop).  A
 * file is written only then and removed with the next success, so a file, if there is
 * one, is newer and is read first.
 *
 * Any thread may use it.
 *
 * Invariants:
 *   SEC1  a replaced secret is the old or the new one after a crash, never a mixture.
 *   SEC2  a file that others can read is refused, with the command that fixes it.
 *   SEC3  our memory that held a secret is wiped before it is freed.  (Buffers of libcurl and of
 *         the JSON parser are not.)
 */
#ifndef TIDE_NET_SECRETS_H
#define TIDE_NET_SECRETS_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "world/desktop/keyring.h"
#include "world/world.h"

typedef struct tide_secrets tide_secrets;

enum { TIDE_SECRET_BYTES_MAX = 64 << 10, TIDE_SECRET_NAME_BYTES_MAX = 300 };

typedef enum tide_secrets_place {
    TIDE_SECRETS_BEST,    /* the keyring when there is one, else files */
    TIDE_SECRETS_KEYRING, /* or fail */
    TIDE_SECRETS_FILES,   /* also for the simulated world */
} tide_secrets_place;

/* `dir` is made, private.  TIDE_NOT_FOUND: `place` requires a keyring and there is none. */
tide_status tide_secrets_open(tide_world *world, const char *dir, tide_secrets_place place,
                              tide_mem *mem, tide_secrets **secrets_out, tide_error *err);
/* Like tide_secrets_open() with an open keyring (NULL: none); takes ownership, also on failure. */
tide_status tide_secrets_open_with(tide_world *world, const char *dir, tide_secrets_place place,
                                   tide_keyring *keyring, tide_mem *mem, tide_secrets **secrets_out,
                                   tide_error *err);
void tide_secrets_close(tide_secrets *secrets); /* NULL is fine */
/* "keyring" or "file"; for display. */
const char *tide_secrets_where(const tide_secrets *secrets);

tide_status tide_secrets_put(tide_secrets *secrets, const char *name, tide_text value,
                             tide_error *err);
/* TIDE_NOT_FOUND.  Replaces the content of `out`, which should have room for
 * TIDE_SECRET_BYTES_MAX; wipe it with tide_secret_wipe(). */
tide_status tide_secrets_get(tide_secrets *secrets, const char *name, tide_buf *out,
                             tide_error *err);
/* Removes it from both places.  TIDE_NOT_FOUND. */
tide_status tide_secrets_remove(tide_secrets *secrets, const char *name, tide_error *err);
/* Overwrites all of its memory, then frees it; zeroed is fine. */
void tide_secret_wipe(tide_buf *secret);
/* Wiped at the end of its block. */
#define tide_auto_secret __attribute__((cleanup(tide_secret_wipe))) tide_buf

#endif
