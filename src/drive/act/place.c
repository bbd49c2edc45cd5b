#include "drive/act/inside.h"

#include <stdio.h>

/* ".tidemark-0123abcd.partial" becomes ".tidemark-0123abcd.old", so that it is never taken for the
 * beginning of a download. */
static void old_name(const char *partial, char out[TIDE_DRIVE_TEMPORARY_BYTES])
{
    const char *dot = strrchr(partial, '.');
    (void)snprintf(out, TIDE_DRIVE_TEMPORARY_BYTES, "%.*s.old", (int)(dot - partial), partial);
}

tide_status tide_drive_place(int dir, const char *partial, const struct tide_drive_download *plan,
                             uint64_t mtime_s, struct tide_drive_downloaded *out, tide_error *err)
{
    char old[TIDE_DRIVE_TEMPORARY_BYTES];
    struct tide_entry entry;
    TIDE_TRY(tide_drive_gate_disk(
        tide_folder_place(dir, tide_text_of(partial), plan->name, mtime_s, plan->expected, err),
        err));
    TIDE_TRY(tide_drive_gate_disk(tide_folder_look(dir, plan->name, &entry, err), err));
    out->entry = entry;
    if (plan->expected == NULL)
        return TIDE_OK;
    old_name(partial, old);
    TIDE_TRY(tide_folder_move(dir, tide_text_of(partial), dir, tide_text_of(old), err));
    TIDE_TRY(tide_folder_look(dir, tide_text_of(old), &entry, err));
    /* What was written since the placement must be seen later: content and its time count from the
     * plan, the ctime from the rename. */
    out->displaced_entry = *plan->expected;
    out->displaced_entry.ctime_ns = entry.ctime_ns;
    (void)snprintf(out->displaced, sizeof out->displaced, "%s", old);
    return TIDE_OK;
}

static bool is_it(int dir, const char *name, const struct tide_entry *expected,
                  struct tide_entry *is)
{
    return tide_folder_look(dir, tide_text_of(name), is, NULL) == TIDE_OK &&
           is->kind == expected->kind && is->dev == expected->dev && is->inode == expected->inode &&
           is->birth_ns == expected->birth_ns;
}

void tide_drive_place_again(int dir, const char *partial, const struct tide_entry *expected,
                            struct tide_drive_downloaded *out)
{
    char old[TIDE_DRIVE_TEMPORARY_BYTES];
    struct tide_entry is;
    if (expected == NULL)
        return;
    old_name(partial, old);
    if (is_it(dir, partial, expected, &is))
        (void)tide_folder_move(dir, tide_text_of(partial), dir, tide_text_of(old), NULL);
    if (!is_it(dir, old, expected, &is))
        return;
    out->displaced_entry = *expected;
    out->displaced_entry.ctime_ns = is.ctime_ns;
    (void)snprintf(out->displaced, sizeof out->displaced, "%s", old);
}

tide_status tide_drive_displaced_end(const struct tide_drive_act *act, tide_text folder,
                                     const char *displaced, const struct tide_entry *entry,
                                     tide_text copy, bool *kept_out, tide_error *err)
{
    int dir = -1;
    struct tide_entry is;
    TIDE_TRY(tide_drive_gate_enter(act, folder, &dir, err));
    const tide_text name = tide_text_of(displaced);
    tide_status rc = tide_folder_look(dir, name, &is, err);
    const bool gone = rc == TIDE_NOT_FOUND;
    const bool kept = rc == TIDE_OK && !tide_entry_same(&is, entry);
    if (rc == TIDE_OK)
        rc = kept ? tide_folder_move(dir, name, dir, copy, err)
                  : tide_folder_remove(dir, name, entry, err);
    tide_folder_close(dir);
    if (gone)
        rc = TIDE_OK;
    if (rc == TIDE_OK)
        *kept_out = kept;
    return rc;
}
