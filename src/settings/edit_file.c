/* edit_file.c - changes the settings file itself (settings.h).
 *
 * Processes that change it take turns by a lock beside it: each reads the file and replaces it, and
 * without turns the last one would undo what the other wrote in between.  The file itself is replaced,
 * so it cannot be the lock.  Readers need none. */
#include "settings/inside.h"

#include <stdio.h>

enum {
    PATH_BYTES = 4096,
    WAIT_S = 10, /* for another process, which needs the lock for one write */
};

tide_status tide_settings_lock(tide_world *world, const char *path, tide_file_lock **lock_out,
                               tide_error *err)
{
    char lock[PATH_BYTES];
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const int used = snprintf(lock, sizeof lock, "%.*s.%s.lock", (int)(name - path), path, name);
    if (used < 0 || (size_t)used >= sizeof lock)
        return tide_error_set(err, TIDE_INVALID, "the path of %.200s is too long", path);
    const tide_status rc =
        tide_file_lock_wait(world, lock, (uint64_t)WAIT_S * 1000000, NULL, lock_out, err);
    return rc == TIDE_BUSY ? tide_error_set(err, rc,
                                            "another process has been changing %.200s for %d s; "
                                            "try again when it has ended",
                                            path, WAIT_S)
                           : rc;
}

static tide_status edit_locked(tide_world *world, const char *path, tide_text name, tide_text value,
                               tide_mem *mem, tide_error *err)
{
    tide_auto_buf content = tide_buf_in(mem, TIDE_SETTINGS_FILE_BYTES_MAX);
    tide_auto_buf edited = tide_buf_in(mem, TIDE_SETTINGS_FILE_BYTES_MAX);
    const tide_status rc = tide_file_read(world, path, TIDE_SETTINGS_FILE_BYTES_MAX, &content, err);
    if (rc != TIDE_NOT_FOUND)
        TIDE_TRY(rc);
    TIDE_TRY(
        tide_settings_edit_yaml(path, tide_buf_text(&content), name, value, mem, &edited, err));
    return tide_file_replace(world, path, tide_buf_text(&edited), 0600, err);
}

tide_status tide_settings_edit_file(tide_world *world, const char *path, tide_text name,
                                    tide_text value, tide_mem *mem, tide_error *err)
{
    tide_file_lock *lock = NULL;
    TIDE_TRY(tide_settings_lock(world, path, &lock, err));
    const tide_status rc = edit_locked(world, path, name, value, mem, err);
    tide_file_lock_drop(world, lock);
    return rc;
}

static tide_status unset_locked(tide_world *world, const char *path, tide_text name, tide_mem *mem,
                                bool *found_out, tide_error *err)
{
    tide_auto_buf content = tide_buf_in(mem, TIDE_SETTINGS_FILE_BYTES_MAX);
    tide_auto_buf edited = tide_buf_in(mem, TIDE_SETTINGS_FILE_BYTES_MAX);
    TIDE_TRY(tide_file_read(world, path, TIDE_SETTINGS_FILE_BYTES_MAX, &content, err));
    TIDE_TRY(tide_settings_unset_yaml(path, tide_buf_text(&content), name, mem, &edited, found_out,
                                      err));
    return *found_out ? tide_file_replace(world, path, tide_buf_text(&edited), 0600, err) : TIDE_OK;
}

tide_status tide_settings_unset_file(tide_world *world, const char *path, tide_text name,
                                     tide_mem *mem, bool *found_out, tide_error *err)
{
    tide_file_lock *lock = NULL;
    bool found = false;
    tide_status rc = tide_settings_lock(world, path, &lock, err);
    if (rc == TIDE_OK) {
        rc = unset_locked(world, path, name, mem, &found, err);
        tide_file_lock_drop(world, lock);
    }
    if (rc == TIDE_NOT_FOUND)
        rc = TIDE_OK; /* without a file, or its directory, nothing is set in it */
    if (rc == TIDE_OK)
        *found_out = found;
    return rc;
}
