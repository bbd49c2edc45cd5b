#include "drive/watch/changes.h"

void tide_drive_changes_init(tide_drive_changes *changes, tide_mem *mem)
{
    *changes = (tide_drive_changes){.first_ms = 0};
    tide_drive_folders_init(&changes->soon, mem);
    tide_drive_folders_init(&changes->deletions, mem);
    tide_drive_folders_init(&changes->later, mem);
    tide_drive_folders_init(&changes->after_later, mem);
}

void tide_drive_changes_done(tide_drive_changes *changes)
{
    tide_drive_folders_done(&changes->soon);
    tide_drive_folders_done(&changes->deletions);
    tide_drive_folders_done(&changes->later);
    tide_drive_folders_done(&changes->after_later);
}

static void changed(tide_drive_changes *changes, uint64_t now_ms)
{
    if (!tide_drive_folders_any(&changes->soon))
        changes->first_ms = now_ms;
    changes->last_ms = now_ms;
}

void tide_drive_changes_add(tide_drive_changes *changes, tide_text folder, bool deleted,
                            uint64_t now_ms)
{
    changed(changes, now_ms);
    tide_drive_folders_add(&changes->soon, folder);
    if (deleted)
        tide_drive_folders_add(&changes->deletions, folder);
}

void tide_drive_changes_add_all(tide_drive_changes *changes, uint64_t now_ms)
{
    changed(changes, now_ms);
    tide_drive_folders_add_all(&changes->soon);
}

static uint64_t soon_at_ms(const tide_drive_changes *changes)
{
    const uint64_t quiet_ms = changes->last_ms + TIDE_DRIVE_QUIET_MS;
    const uint64_t most_ms = changes->first_ms + TIDE_DRIVE_CHANGE_MS_MAX;
    if (!tide_drive_folders_any(&changes->soon))
        return UINT64_MAX;
    return quiet_ms < most_ms ? quiet_ms : most_ms;
}

uint64_t tide_drive_changes_wake_at_ms(const tide_drive_changes *changes)
{
    const uint64_t soon_ms = soon_at_ms(changes);
    const uint64_t later_ms =
        tide_drive_folders_any(&changes->later) ? changes->later_ms : UINT64_MAX;
    return soon_ms < later_ms ? soon_ms : later_ms;
}

static void take_soon(tide_drive_changes *changes, uint64_t now_ms, tide_drive_folders *folders)
{
    tide_drive_folders_join(folders, &changes->soon);
    if (tide_drive_folders_any(&changes->deletions)) {
        tide_drive_folders_join(&changes->after_later, &changes->deletions);
        changes->after_last_ms = now_ms;
    }
    tide_drive_folders_clear(&changes->soon);
    tide_drive_folders_clear(&changes->deletions);
}

/* DCH2: what came while a set waited waits as the next one, so none is put off again and again. */
static void line_up(tide_drive_changes *changes)
{
    if (tide_drive_folders_any(&changes->later) || !tide_drive_folders_any(&changes->after_later))
        return;
    tide_drive_folders_join(&changes->later, &changes->after_later);
    tide_drive_folders_clear(&changes->after_later);
    changes->later_ms = changes->after_last_ms + TIDE_DRIVE_DELETED_MS;
}

bool tide_drive_changes_take(tide_drive_changes *changes, uint64_t now_ms,
                             tide_drive_folders *folders)
{
    const bool soon = now_ms >= soon_at_ms(changes);
    const bool later = tide_drive_folders_any(&changes->later) && now_ms >= changes->later_ms;
    if (soon)
        take_soon(changes, now_ms, folders);
    if (later) {
        tide_drive_folders_join(folders, &changes->later);
        tide_drive_folders_clear(&changes->later);
    }
    line_up(changes);
    return soon || later;
}
