/* files.h - the files that a configuration is read from: assistant.yaml, then each {file: NAME} of it.
 *
 * A list has a file also if it could not be read: one that is missing may be written later.
 *
 * Invariants:
 *   CFI1  what a file is, is noted before its content is read: whatever is written to it after that makes
 *         tide_assistant_files_changed() true.
 *   CFI2  names are relative to the folder of assistant.yaml and below it (CFG3); assistant.yaml itself
 *         is the first.
 */
#ifndef TIDE_ASSISTANT_CONFIG_FILES_H
#define TIDE_ASSISTANT_CONFIG_FILES_H

#include "base/mem.h"
#include "base/status.h"
#include "world/folder.h"

struct tide_assistant_file_seen {
    char *name;
    bool there; /* else `entry` has nothing */
    bool read;  /* its content was taken */
    struct tide_entry entry;
    struct tide_assistant_file_seen *next;
};
struct tide_assistant_files {
    tide_arena arena;
    struct tide_assistant_file_seen *first, *last; /* first NULL: nothing was read yet */
};

void tide_assistant_files_init(struct tide_assistant_files *files, tide_mem *mem);
void tide_assistant_files_done(struct tide_assistant_files *files);
/* Adds "a/b/c" below `root` as it is now; `root` -1: there is no folder.  NULL: no memory. */
struct tide_assistant_file_seen *tide_assistant_files_add(struct tide_assistant_files *files,
                                                          int root, tide_text name);
/* Whether one of them is no longer as it was, or none was read yet; `path` is that of assistant.yaml. */
bool tide_assistant_files_changed(const struct tide_assistant_files *files, const char *path);

/* Opens the folder of `path`; *name_out is the rest of it. */
tide_status tide_assistant_files_root(const char *path, int *root_out, const char **name_out,
                                      tide_error *err);

#endif
