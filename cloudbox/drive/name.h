/* name.h - names of files as OneDrive takes them: which ones, and which are the same.
 *
 * Upper and lower case are the same: ASCII, Latin-1, Greek and Cyrillic letters are
 * compared without case, other characters byte by byte.  A name is kept as it was given. */
#ifndef BOX_DRIVE_NAME_H
#define BOX_DRIVE_NAME_H

#include "base/text.h"

enum {
    BOX_NAME_UNITS_MAX = 255, /* UTF-16 units */
    BOX_NAME_BYTES_MAX = 3 * BOX_NAME_UNITS_MAX,
    BOX_PATH_UNITS_MAX = 400, /* of a whole path below the root */
};

/* NULL: it may be used; else why not. */
const char *box_name_wrong(tide_text name);
/* What must be at most BOX_NAME_UNITS_MAX. */
uint32_t box_name_units(tide_text name);
bool box_name_equal(tide_text a, tide_text b);
/* The same for names that are equal. */
uint64_t box_name_hash(uint64_t start, tide_text name);

#endif
