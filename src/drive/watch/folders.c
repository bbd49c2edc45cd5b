#include "drive/watch/folders.h"

#include "base/hash.h"

void tide_drive_folders_init(tide_drive_folders *folders, tide_mem *mem)
{
    *folders = (tide_drive_folders){.all = false};
    tide_buf_init(&folders->paths, mem, TIDE_DRIVE_FOLDERS_BYTES_MAX);
    tide_map_init(&folders->known, mem);
}

void tide_drive_folders_done(tide_drive_folders *folders)
{
    tide_buf_done(&folders->paths);
    tide_map_done(&folders->known);
    folders->count = 0;
    folders->all = false;
}

void tide_drive_folders_clear(tide_drive_folders *folders)
{
    tide_mem *const mem = folders->known.mem;
    tide_drive_folders_done(folders);
    tide_drive_folders_init(folders, mem);
}

/* Where the path is; false: *key_out is free for it.  Two paths of one hash have keys in a row. */
static bool find(const tide_drive_folders *folders, tide_text path, uint64_t *key_out)
{
    uint64_t key = tide_hash_key(path);
    uint32_t at = 0;
    for (; tide_map_get(&folders->known, key, &at); key = key == UINT64_MAX ? 1 : key + 1)
        if (tide_text_equal(tide_text_of(folders->paths.data + at - 1), path))
            return true;
    *key_out = key;
    return false;
}

void tide_drive_folders_add_all(tide_drive_folders *folders)
{
    tide_drive_folders_clear(folders);
    folders->all = true;
}

void tide_drive_folders_add(tide_drive_folders *folders, tide_text path)
{
    uint64_t key = 0;
    if (folders->all || find(folders, path, &key))
        return;
    const size_t at = folders->paths.bytes;
    if (folders->count == TIDE_DRIVE_FOLDERS_MAX ||
        tide_buf_add(&folders->paths, path.data, path.bytes) != TIDE_OK ||
        tide_buf_add(&folders->paths, "", 1) != TIDE_OK ||
        !tide_map_put(&folders->known, key, (uint32_t)at + 1))
        tide_drive_folders_add_all(folders);
    else
        folders->count++;
}

void tide_drive_folders_join(tide_drive_folders *folders, const tide_drive_folders *other)
{
    tide_text path;
    if (other->all)
        tide_drive_folders_add_all(folders);
    for (size_t at = 0; tide_drive_folders_next(other, &at, &path);)
        tide_drive_folders_add(folders, path);
}

bool tide_drive_folders_any(const tide_drive_folders *folders)
{
    return folders->all || folders->count > 0;
}

bool tide_drive_folders_has(const tide_drive_folders *folders, tide_text path)
{
    uint64_t key = 0;
    return folders->all || find(folders, path, &key);
}

bool tide_drive_folders_next(const tide_drive_folders *folders, size_t *at_io, tide_text *path_out)
{
    if (*at_io >= folders->paths.bytes)
        return false;
    *path_out = tide_text_of(folders->paths.data + *at_io);
    *at_io += path_out->bytes + 1;
    return true;
}
