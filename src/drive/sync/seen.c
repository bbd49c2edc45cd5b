/* seen.c - an item of OneDrive as a row has it: which are synced, and which are not (D13, D16, D27). */
#include "drive/ids.h"
#include "drive/sync/inside.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static tide_text keep(tide_text text, char *room, size_t room_bytes)
{
    const size_t bytes = text.bytes < room_bytes ? text.bytes : room_bytes - 1;
    if (bytes > 0)
        memcpy(room, text.data, bytes);
    room[bytes] = '\0';
    return (tide_text){room, bytes};
}

static bool ends_with(tide_text name, const char *ending)
{
    const size_t bytes = strlen(ending);
    return name.bytes > bytes && memcmp(name.data + name.bytes - bytes, ending, bytes) == 0;
}

/* OneNote's sections, which are no files that could be replaced. */
static bool is_notebook(const struct tide_onedrive_item *item)
{
    return !item->has_hash && (ends_with(item->name, ".one") || ends_with(item->name, ".onetoc2"));
}

/* A name that a list may have left encoded (D32): a GET says what it is. */
static bool has_percent(tide_text name)
{
    for (size_t i = 0; i + 2 < name.bytes; i++)
        if (name.data[i] == '%' && isxdigit((unsigned char)name.data[i + 1]) != 0 &&
            isxdigit((unsigned char)name.data[i + 2]) != 0)
            return true;
    return false;
}

static tide_drive_reason reason_of(const struct tide_onedrive_item *item)
{
    return item->deleted   ? TIDE_DRIVE_REASON_NONE
           : item->remote  ? item->remote_folder ? TIDE_DRIVE_REASON_SHARED_FOLDER
                                                 : TIDE_DRIVE_REASON_SHARED_FILE
           : item->malware ? TIDE_DRIVE_REASON_MALWARE
           : is_notebook(item) || item->kind == TIDE_ONEDRIVE_OTHER ? TIDE_DRIVE_REASON_NOTEBOOK
                                                                    : TIDE_DRIVE_REASON_NONE;
}

/* Whether a file of that name may be made here.  A name without letters is one that a list left out; an
 * item that has none when it is asked for itself never gets one.  A step aside (D24) is the store's. */
static bool may_come(tide_text name, bool page)
{
    static const char own[] = ".tidemark-";
    if (name.bytes == 0)
        return page;
    const tide_drive_refusal refusal = tide_drive_name_down(name);
    return refusal == TIDE_DRIVE_NAME_OK ||
           (refusal == TIDE_DRIVE_NAME_OURS && strncasecmp(name.data, own, sizeof own - 1) != 0);
}

static tide_drive_remote_state state_of(const struct tide_onedrive_item *item, bool page)
{
    if (item->deleted)
        return TIDE_DRIVE_REMOTE_GONE;
    if (item->kind == TIDE_ONEDRIVE_OTHER || item->remote || item->malware || item->name_unsafe ||
        is_notebook(item) || !may_come(item->name, page))
        return TIDE_DRIVE_REMOTE_SKIPPED;
    if (item->pending || (item->kind == TIDE_ONEDRIVE_FILE && !item->has_size))
        return TIDE_DRIVE_REMOTE_UNSURE;
    return TIDE_DRIVE_REMOTE_LIVE;
}

void tide_drive_item_of_answer(const struct tide_onedrive_item *item, bool page,
                               struct tide_drive_item *out)
{
    const bool folder = item->kind == TIDE_ONEDRIVE_FOLDER;
    const bool file = item->kind == TIDE_ONEDRIVE_FILE;
    memset(out, 0, sizeof *out);
    tide_drive_id_lower(item->id, out->id);
    tide_drive_id_lower(item->parent_id, out->parent_id);
    out->is_root = item->root;
    out->seen = (struct tide_drive_seen){
        .id = tide_text_of(out->id),
        .parent_id = tide_text_of(out->parent_id),
        .name = keep(page && has_percent(item->name) ? TIDE_TEXT("") : item->name, out->name,
                     sizeof out->name),
        .etag = keep(item->etag, out->etag, sizeof out->etag),
        .ctag = keep(item->ctag, out->ctag, sizeof out->ctag),
        .mtime_s = item->modified_unix_ms / 1000,
        .kind = folder ? TIDE_DRIVE_FOLDER : TIDE_DRIVE_FILE,
        .state = state_of(item, page),
        .reason = reason_of(item),
        .content = {.bytes = file && item->has_size ? item->size : 0,
                    .has_qxh = file && item->has_hash && !item->deleted},
    };
    if (out->seen.reason == TIDE_DRIVE_REASON_SHARED_FOLDER) {
        tide_drive_id_of_drive(item->remote_drive_id, out->target_drive);
        tide_drive_id_lower(item->remote_id, out->target_id);
        out->seen.target_drive = tide_text_of(out->target_drive);
        out->seen.target_id = tide_text_of(out->target_id);
    }
    if (out->seen.content.has_qxh)
        memcpy(out->seen.content.qxh, item->hash, sizeof out->seen.content.qxh);
}
