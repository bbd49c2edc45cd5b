#include "drive/commands/resolve.h"

#include "drive/commands/home.h"
#include "drive/local/trash.h"
#include "drive/store/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- finding them ---- */

void drive_conflict_path(tide_rows db, const struct tide_drive_conflict *conflict, tide_buf *path)
{
    if (conflict->item != 0 && tide_drive_path_of(db, conflict->item, path, NULL) == TIDE_OK)
        return;
    tide_buf_clear(path);
    (void)tide_buf_add(path, conflict->name.data, conflict->name.bytes);
}

static size_t folder_bytes(tide_text path) /* with its slash; 0: the root */
{
    size_t at = path.bytes;
    while (at > 0 && path.data[at - 1] != '/')
        at--;
    return at;
}

bool drive_conflict_take(const struct tide_drive_conflict *conflict, const tide_buf *path,
                         struct drive_conflict *out)
{
    const tide_text whole = tide_buf_text(path);
    const tide_text copy = conflict->copy;
    const bool is_name = copy.bytes > 0 && memchr(copy.data, '/', copy.bytes) == NULL;
    const size_t folder = is_name ? folder_bytes(whole) : 0; /* that of the item */
    *out = (struct drive_conflict){
        .id = conflict->id, .at_ms = conflict->at_ms, .notice = conflict->notice};
    if (whole.bytes >= sizeof out->path || folder + copy.bytes >= sizeof out->copy)
        return false;
    memcpy(out->path, whole.data, whole.bytes);
    if (copy.bytes == 0)
        return true;
    memcpy(out->copy, whole.data, folder);
    memcpy(out->copy + folder, copy.data, copy.bytes);
    return true;
}

tide_status drive_versions_open(const struct tide_drive_row *row,
                                const struct drive_conflict *conflict,
                                struct drive_versions *versions_out, tide_error *err)
{
    const tide_text path = tide_text_of(conflict->path);
    const tide_text copy = tide_text_of(conflict->copy);
    const size_t folder = folder_bytes(path);
    const size_t copy_folder = folder_bytes(copy);
    struct drive_versions versions = {.root = -1, .dir = -1};
    TIDE_TRY(drive_folder_open(row, &versions.root, err));
    versions.folder = (tide_text){path.data, folder == 0 ? 0 : folder - 1};
    versions.name = (tide_text){path.data + folder, path.bytes - folder};
    versions.copy_name = (tide_text){copy.data + copy_folder, copy.bytes - copy_folder};
    if (tide_folder_enter(versions.root, versions.folder, &versions.dir, NULL) == TIDE_OK) {
        versions.has_original =
            tide_folder_look(versions.dir, versions.name, &versions.original, NULL) == TIDE_OK;
        versions.has_copy = copy.bytes > 0 && tide_folder_look(versions.dir, versions.copy_name,
                                                               &versions.copy, NULL) == TIDE_OK;
    }
    *versions_out = versions;
    return TIDE_OK;
}

void drive_versions_close(struct drive_versions *versions)
{
    tide_folder_close(versions->dir);
    tide_folder_close(versions->root);
    versions->dir = versions->root = -1;
}

/* ---- resolving ---- */

bool drive_keep_of(const char *word, drive_keep *keep_out)
{
    static const char *const words[] = {"both", "local", "remote"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(word, words[i]) == 0) {
            *keep_out = (drive_keep)i;
            return true;
        }
    return false;
}

static tide_status to_trash(struct cli *cli, const struct tide_drive_row *row,
                            const struct drive_versions *versions, tide_text name,
                            const struct tide_entry *entry, tide_error *err)
{
    char desktop[CLI_PATH_BYTES];
    const bool has_desktop = drive_desktop_trash(desktop, sizeof desktop);
    const struct tide_drive_trash trash = {.root = versions->root,
                                           .path = row->dir,
                                           .desktop = has_desktop ? desktop : NULL,
                                           .now_unix_ms = cli->now_unix_ms};
    return tide_drive_trash_file(&trash, versions->dir, versions->folder, name, entry, err);
}

struct copying {
    int dir;
    tide_text to;
    uint64_t at;
    tide_status rc;
    tide_error *err;
};

static void copy_bytes(const void *bytes, size_t count, void *arg)
{
    struct copying *copying = arg;
    if (copying->rc == TIDE_OK)
        copying->rc = tide_folder_write(copying->dir, copying->to, copying->at,
                                        (tide_text){bytes, count}, copying->err);
    copying->at += count;
}

/* The bytes of the copy get the name, in a file of their own: so the item online keeps its id and gets
 * new content.  A rename would be the move of another item (D22). */
static tide_status keep_local(struct cli *cli, const struct tide_drive_row *row,
                              const struct drive_versions *versions, tide_error *err)
{
    char partial[64];
    struct tide_entry copied;
    struct tide_entry displaced;
    (void)snprintf(partial, sizeof partial, ".tidemark-%08" PRIx32 ".copy",
                   (uint32_t)tide_world_random_u64(cli->world));
    const tide_text temporary = tide_text_of(partial);
    struct copying copying = {.dir = versions->dir, .to = temporary, .rc = TIDE_OK, .err = err};
    copy_bytes("", 0, &copying); /* an empty file is one, too */
    tide_status rc = copying.rc;
    if (rc == TIDE_OK)
        rc = tide_folder_read(versions->dir, versions->copy_name, copy_bytes, &copying, &copied,
                              err);
    if (rc == TIDE_OK)
        rc = copying.rc;
    if (rc == TIDE_OK)
        rc = tide_folder_place(versions->dir, temporary, versions->name,
                               copied.mtime_ns / 1000000000, &versions->original, err);
    if (rc != TIDE_OK) {
        if (tide_folder_look(versions->dir, temporary, &displaced, NULL) == TIDE_OK)
            (void)tide_folder_remove(versions->dir, temporary, &displaced, NULL);
        return rc;
    }
    TIDE_TRY(tide_folder_look(versions->dir, temporary, &displaced, err));
    TIDE_TRY(to_trash(cli, row, versions, temporary, &displaced, err));
    return to_trash(cli, row, versions, versions->copy_name, &copied, err);
}

tide_status drive_resolve(struct cli *cli, const struct tide_drive_row *row,
                          const struct drive_conflict *conflict, drive_keep keep, tide_error *err)
{
    struct drive_versions versions;
    if (keep == DRIVE_KEEP_BOTH)
        return TIDE_OK;
    if (conflict->copy[0] == '\0' ||
        (conflict->notice != TIDE_DRIVE_K1 && conflict->notice != TIDE_DRIVE_K2))
        return tide_error_set(err, TIDE_INVALID,
                              "there are not two versions of one file: only \"both\" fits");
    TIDE_TRY(drive_versions_open(row, conflict, &versions, err));
    tide_status rc = TIDE_OK;
    if (!versions.has_copy || versions.copy.kind != TIDE_ENTRY_FILE)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "%.300s is no longer there", conflict->copy);
    else if (keep == DRIVE_KEEP_REMOTE)
        rc = to_trash(cli, row, &versions, versions.copy_name, &versions.copy, err);
    else if (!versions.has_original || versions.original.kind != TIDE_ENTRY_FILE)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "%.300s is no longer there", conflict->path);
    else
        rc = keep_local(cli, row, &versions, err);
    drive_versions_close(&versions);
    return rc;
}
