/* import.h - ignore rules of other programs as patterns of ours (ignore.h).
 *
 * Only what can be said exactly is taken over; a line that cannot be is refused by its number, so that
 * nobody syncs what he believes to be left out.
 *
 *   PATTERNS         a list in our own form, which is that of .gitignore
 *   ONEDRIVE_CONFIG  the file `config` of abraunegg's onedrive: skip_file, skip_dir, skip_dotfiles;
 *                    other settings are no rules
 *   ONEDRIVE_LIST    its file `sync_list`: paths that begin with '/', of which all else is left out
 *   RCLONE           a filter file or exclude file of rclone that only excludes
 *
 * Rules for files alone become two patterns: NAME, and !NAME/ for the folders of that name.  Names are
 * compared as OneDrive does, without case; rclone compares with it.
 */
#ifndef TIDE_DRIVE_IGNORE_IMPORT_H
#define TIDE_DRIVE_IGNORE_IMPORT_H

#include "base/buf.h"
#include "base/status.h"

typedef enum tide_ignore_format {
    TIDE_IGNORE_PATTERNS,
    TIDE_IGNORE_ONEDRIVE_CONFIG,
    TIDE_IGNORE_ONEDRIVE_LIST,
    TIDE_IGNORE_RCLONE,
} tide_ignore_format;

/* "patterns", "onedrive", "sync-list", "rclone".  TIDE_INVALID. */
tide_status tide_ignore_format_of(const char *name, tide_ignore_format *format_out,
                                  tide_error *err);
/* Adds a line for each pattern, in their order.  TIDE_INVALID names the line. */
tide_status tide_ignore_import(tide_text text, tide_ignore_format format, tide_buf *patterns_out,
                               tide_error *err);

#endif
