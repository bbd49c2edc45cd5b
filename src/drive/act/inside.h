/* inside.h - shared by the executors. */
#ifndef TIDE_DRIVE_ACT_INSIDE_H
#define TIDE_DRIVE_ACT_INSIDE_H

#include "drive/act/act.h"

/* ---- gate.c ---- */

/* A failure of the disk as the outcome of an action: an entry that is missing, taken or another one
 * than planned is TIDE_SUPERSEDED. */
tide_status tide_drive_gate_disk(tide_status rc, tide_error *err);
/* Opens "a/b" below the root; TIDE_SUPERSEDED: it is no longer a folder. */
tide_status tide_drive_gate_enter(const struct tide_drive_act *act, tide_text folder, int *dir_out,
                                  tide_error *err);
/* What has the name is `expected`; NULL: nothing has it. */
tide_status tide_drive_gate_entry(int dir, tide_text name, const struct tide_entry *expected,
                                  tide_error *err);
/* Whether the content online is that of the row (D15): size and hash, else size and cTag. */
bool tide_drive_gate_content(const struct tide_onedrive_item *item,
                             const struct tide_drive_content *content, tide_text ctag);

/* ---- place.c ---- */

/* Gives the partial file the planned name (D42), and looks at what has which name now. */
tide_status tide_drive_place(int dir, const char *partial, const struct tide_drive_download *plan,
                             uint64_t mtime_s, struct tide_drive_downloaded *out, tide_error *err);

#endif
