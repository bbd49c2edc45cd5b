/* key.h - when two names are one (D29).
 *
 * OneDrive compares names without case, a Linux disk byte by byte.  A name's key is its NFC form
 * with case folded: two names with one key cannot be beside each other online.  Bytes are kept as
 * they are; the key is for comparing only.  OneDrive joins a few names more than that, which only
 * its own refusal shows (D29, D30).
 *
 * Invariants (tests/unit/drive/drive_names_test.c):
 *   DKY1  the key of a key is the key; so is that of any spelling of the name in NFC or NFD.
 *   DKY2  bytes that are not UTF-8 have themselves as key, and no valid name has the same.
 */
#ifndef TIDE_DRIVE_NAMES_KEY_H
#define TIDE_DRIVE_NAMES_KEY_H

#include "base/buf.h"

/* Appends the key. */
tide_status tide_drive_key_add(tide_buf *out, tide_text name);
/* Whether they are the same but for NFC and NFD (D25). */
bool tide_drive_same_letters(tide_text a, tide_text b);
/* UTF-8 without surrogates, overlong forms and NUL. */
bool tide_drive_is_utf8(tide_text name);
/* How many UTF-16 units a valid UTF-8 text has: what OneDrive counts. */
size_t tide_drive_utf16_units(tide_text text);

#endif
