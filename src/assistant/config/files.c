#include "assistant/config/files.h"

#include <stdio.h>
#include <string.h>

enum { FILES_BYTES_MAX = 1 << 20 };

void tide_assistant_files_init(struct tide_assistant_files *files, tide_mem *mem)
{
    *files = (struct tide_assistant_files){.first = NULL};
    tide_arena_init(&files->arena, mem, FILES_BYTES_MAX);
}

void tide_assistant_files_done(struct tide_assistant_files *files)
{
    tide_arena_done(&files->arena);
    files->first = files->last = NULL;
}

tide_status tide_assistant_files_root(const char *path, int *root_out, const char **name_out,
                                      tide_error *err)
{
    const char *slash = strrchr(path, '/');
    const size_t bytes = slash == NULL ? 0 : (size_t)(slash - path);
    char folder[4096];
    *name_out = slash == NULL ? path : slash + 1;
    if (bytes >= sizeof folder)
        return tide_error_set(err, TIDE_INVALID, "%.300s...: the path is too long", path);
    (void)snprintf(folder, sizeof folder, "%.*s", (int)bytes, path);
    return tide_folder_open(slash == NULL ? "." : slash == path ? "/" : folder, root_out, err);
}

/* Any failure counts as a file that is not there: reading it then says what is wrong. */
static bool look(int root, tide_text name, struct tide_entry *entry_out)
{
    const char *slash = memrchr(name.data, '/', name.bytes);
    const size_t folder = slash == NULL ? 0 : (size_t)(slash - name.data);
    const size_t skipped = slash == NULL ? 0 : folder + 1;
    int dir = -1;
    if (root < 0 || tide_folder_enter(root, (tide_text){name.data, folder}, &dir, NULL) != TIDE_OK)
        return false;
    const tide_text last = {name.data + skipped, name.bytes - skipped};
    const tide_status rc = tide_folder_look(dir, last, entry_out, NULL);
    tide_folder_close(dir);
    return rc == TIDE_OK;
}

struct tide_assistant_file_seen *tide_assistant_files_add(struct tide_assistant_files *files,
                                                          int root, tide_text name)
{
    struct tide_assistant_file_seen *seen = tide_arena_take(&files->arena, sizeof *seen);
    char *copy = tide_arena_copy(&files->arena, name.data, name.bytes);
    if (seen == NULL || copy == NULL)
        return NULL;
    seen->name = copy;
    seen->there = look(root, name, &seen->entry);
    if (files->last == NULL)
        files->first = seen;
    else
        files->last->next = seen;
    files->last = seen;
    return seen;
}

bool tide_assistant_files_changed(const struct tide_assistant_files *files, const char *path)
{
    const char *name = NULL;
    bool changed = files->first == NULL;
    int root = -1;
    if (changed)
        return true;
    (void)tide_assistant_files_root(path, &root, &name, NULL);
    for (const struct tide_assistant_file_seen *seen = files->first; seen != NULL && !changed;
         seen = seen->next) {
        struct tide_entry entry;
        const bool there = look(root, tide_text_of(seen->name), &entry);
        changed = there != seen->there || (there && !tide_entry_same(&entry, &seen->entry));
    }
    if (root >= 0)
        tide_folder_close(root);
    return changed;
}
