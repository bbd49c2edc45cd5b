/* conflict.h - the name that a file takes when another one keeps its name (S8).
 *
 *     report.tar.gz  ->  report.conflict-HOST-20260504-030201.tar.gz
 *
 * A copy of a copy has one suffix, the new one.  The name is recorded before it is used, so that
 * a crash makes no second copy.
 *
 * Invariant (tests/unit/drive/drive_names_test.c):
 *   DCN1  a conflict name of a name that may cross may cross too, and fits whatever the length of
 *         its stem: the stem is cut at a whole character, the suffix and the ending are not.
 */
#ifndef TIDE_DRIVE_NAMES_CONFLICT_H
#define TIDE_DRIVE_NAMES_CONFLICT_H

#include "base/text.h"
#include "drive/names/names.h"

#include <stdint.h>

enum { TIDE_DRIVE_HOST_BYTES_MAX = 15 };

struct tide_drive_stamp {
    tide_text host;   /* any text: letters, digits and '-' of it are used */
    uint64_t unix_ms; /* in UTC */
};

/* `ordinal` from 1; from 2 on it is part of the name, for when the name is taken. */
void tide_drive_conflict_name(tide_text name, const struct tide_drive_stamp *stamp,
                              uint32_t ordinal, char out[TIDE_DRIVE_NAME_BYTES_MAX + 1]);
bool tide_drive_is_conflict_name(tide_text name);

#endif
