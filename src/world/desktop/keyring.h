/* keyring.h - stores secrets in the desktop's keyring, if there is one.
 *
 * Built on libsecret, which uses the Secret Service of the desktop; a build without it
 * has no keyring.  The functions are reached through a table so that a test can pass
 * in its own keyring.
 *
 * Invariants:
 *   KEY1  nothing waits forever: opening gives up after 5 s, an operation (which may have to ask
 *         the user for a password) after 60 s.
 *   KEY2  without a session bus nothing is started and the user is not asked.
 *   KEY3  no error contains a secret value.
 */
#ifndef TIDE_WORLD_DESKTOP_KEYRING_H
#define TIDE_WORLD_DESKTOP_KEYRING_H

#include "world/world.h"

typedef struct tide_keyring tide_keyring;

struct tide_keyring_ops {
    tide_status (*put)(tide_keyring *keyring, const char *name, tide_text value, tide_error *err);
    /* TIDE_NOT_FOUND; appends to `out`. */
    tide_status (*get)(tide_keyring *keyring, const char *name, tide_buf *out, tide_error *err);
    /* TIDE_NOT_FOUND when there is none. */
    tide_status (*remove)(tide_keyring *keyring, const char *name, tide_error *err);
    void (*close)(tide_keyring *keyring);
};

struct tide_keyring {
    const struct tide_keyring_ops *ops;
};

/* `home` keeps the secrets of two state directories apart; it is copied.  TIDE_NOT_FOUND: this
 * build has no keyring, or none answers.  Any thread may use it; operations run one at a time. */
tide_status tide_keyring_open(const char *home, tide_mem *mem, tide_keyring **keyring_out,
                              tide_error *err);

#endif
