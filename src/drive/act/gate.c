#include "drive/act/inside.h"

tide_status tide_drive_gate_disk(tide_status rc, tide_error *err)
{
    if (rc != TIDE_NOT_FOUND && rc != TIDE_EXISTS && rc != TIDE_STALE)
        return rc;
    if (err != NULL)
        err->status = TIDE_SUPERSEDED;
    return TIDE_SUPERSEDED;
}

tide_status tide_drive_gate_enter(const struct tide_drive_act *act, tide_text folder, int *dir_out,
                                  tide_error *err)
{
    return tide_drive_gate_disk(tide_folder_enter(act->root, folder, dir_out, err), err);
}

tide_status tide_drive_gate_entry(int dir, tide_text name, const struct tide_entry *expected,
                                  tide_error *err)
{
    struct tide_entry is;
    const tide_status rc = tide_folder_look(dir, name, &is, err);
    if (rc == TIDE_NOT_FOUND && expected == NULL)
        return TIDE_OK;
    if (rc != TIDE_OK)
        return tide_drive_gate_disk(rc, err);
    if (expected == NULL)
        return tide_error_set(err, TIDE_SUPERSEDED, "%.*s: the name is taken by now",
                              (int)name.bytes, name.data);
    if (!tide_entry_same(&is, expected))
        return tide_error_set(err, TIDE_SUPERSEDED, "%.*s changed after it was looked at",
                              (int)name.bytes, name.data);
    return TIDE_OK;
}

bool tide_drive_gate_content(const struct tide_onedrive_item *item,
                             const struct tide_drive_content *content, tide_text ctag)
{
    if (item->deleted || item->kind != TIDE_ONEDRIVE_FILE || !item->has_size ||
        item->size != content->bytes)
        return false;
    if (content->bytes == 0) /* all are equal, their hashes may be missing (D16) */
        return true;
    if (item->has_hash && content->has_qxh)
        return memcmp(item->hash, content->qxh, sizeof content->qxh) == 0;
    return tide_text_equal(item->ctag, ctag);
}

uint64_t tide_drive_time(const struct tide_drive_act *act, uint64_t unix_ms)
{
    return act->now_unix_ms == 0 || unix_ms <= act->now_unix_ms ? unix_ms : 0;
}
