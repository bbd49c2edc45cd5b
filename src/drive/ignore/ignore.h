/* ignore.h - which paths a user does not want to sync (D10): patterns as in .gitignore.
 *
 *   - one pattern a line; empty lines and lines that begin with '#' are comments; "\#" and "\!"
 *     begin a pattern with these letters; spaces at the end are dropped
 *   - '!' takes paths back that an earlier pattern named; the last pattern that fits decides
 *   - a '/' at the end: folders only; one at the start or inside: the pattern begins at the root;
 *     without one it fits a name in any folder
 *   - '*' and '?' do not cross a '/'; [a-z] and [!a-z] are one letter; '**' as a whole
 *     part is any number of folders; '\' takes the next letter as it is
 *   - what is beneath an ignored folder is ignored, and no '!' reaches it
 *
 * Names are compared by their keys (names/key.h), as OneDrive compares them: an item is ignored
 * on both sides or on neither, also if the case of its name differs.
 *
 * An ignored item is neither synced nor deleted, and its name stays taken.
 *
 * Invariant (tests/unit/drive/drive_ignore_test.c):
 *   IGN1  matching takes time in proportion to pattern times path, whatever the pattern.
 */
#ifndef TIDE_DRIVE_IGNORE_IGNORE_H
#define TIDE_DRIVE_IGNORE_IGNORE_H

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"

enum {
    TIDE_IGNORE_PATTERNS_MAX = 10000,
    TIDE_IGNORE_TEXT_BYTES_MAX = 1 << 20,
};

typedef struct tide_ignore tide_ignore;

/* TIDE_INVALID: the text is no list of patterns; `err` names the line. */
tide_status tide_ignore_new(tide_text patterns, tide_mem *mem, tide_ignore **ignore_out,
                            tide_error *err);
void tide_ignore_free(tide_ignore *ignore); /* NULL is fine */
/* Whether the path below the root, "a/b/c", is ignored: by itself or by one of its folders. */
bool tide_ignored(const tide_ignore *ignore, tide_text path, bool is_folder);
/* The same for a walk that left ignored folders out already: only the last name is judged. */
bool tide_ignored_here(const tide_ignore *ignore, tide_text path, bool is_folder);

#endif
