/* import.c - finds and opens the files to import: a mailbox, a message, a directory of either. */
#include "mail/files/import_inside.h"
#include "base/check.h"
#include "mail/files/mbox.h"
#include "world/userfile.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATH_BYTES = 4096, SNIFF_BYTES = TIDE_IMPORT_SNIFF_BYTES, NAMES_BYTES_MAX = 512 << 20 };

typedef enum file_kind {
    FILE_EML,
    FILE_MBOX,
    FILE_PACKED, /* a zip or gzip archive */
    FILE_UNKNOWN,
} file_kind;

/* A directory being read: its names, sorted, so that every run has the same order. */
struct level {
    char path[PATH_BYTES];
    bool maildir; /* its files are messages, whatever their names */
    tide_buf names;
    const char **sorted;
    size_t count, capacity, at;
};

struct walk {
    struct tide_importing *importing;
    struct level *levels[TIDE_IMPORT_DEEP];
    size_t count;
};

static bool ends_with(const char *text, const char *end)
{
    const size_t bytes = strlen(text);
    const size_t end_bytes = strlen(end);
    if (bytes < end_bytes)
        return false;
    for (size_t i = 0; i < end_bytes; i++) {
        const char c = text[bytes - end_bytes + i];
        if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != end[i])
            return false;
    }
    return true;
}

static tide_status canceled(struct tide_importing *importing)
{
    if (importing->wanted->cancel != NULL &&
        tide_canceled(importing->wanted->cancel) != TIDE_CANCEL_NONE)
        return tide_error_set(importing->err, TIDE_CANCELED, "interrupted");
    return TIDE_OK;
}

static void progress(struct tide_importing *importing)
{
    if (importing->wanted->progress != NULL)
        importing->wanted->progress(&importing->imported, importing->wanted->progress_arg);
}

/* ---- files ------------------------------------------------------------------------------ */

static tide_status from_file(void *arg, uint64_t at, char *bytes, size_t room, size_t *count_out,
                             tide_error *err)
{
    return tide_reading_at(arg, at, bytes, room, count_out, err);
}

static tide_status import_mbox(struct tide_importing *importing,
                               const struct tide_import_source *source)
{
    tide_mbox *mbox = NULL;
    const uint64_t before_bytes = importing->imported.read_bytes;
    tide_status rc = tide_mbox_new(source->read, source->arg, TIDE_MBOX_MESSAGE_BYTES_MAX,
                                   importing->mem, &mbox, importing->err);
    if (rc == TIDE_OK && source->packed)
        tide_mbox_forward(mbox);
    while (rc == TIDE_OK) {
        struct tide_mbox_message message;
        rc = canceled(importing);
        if (rc == TIDE_OK)
            rc = tide_mbox_next(mbox, &message, importing->err);
        if (rc != TIDE_OK)
            break;
        if (message.too_long) {
            importing->imported.messages++;
            importing->imported.too_long++;
            continue;
        }
        struct tide_import_one one = {.raw = message.raw,
                                      .sender = message.sender,
                                      .has_date = message.has_date,
                                      .date_ms = message.date_ms,
                                      .file_ms = source->changed_ms,
                                      .group = source->group};
        rc = tide_import_message(importing, &one);
        if (!source->packed)
            importing->imported.read_bytes = before_bytes + tide_mbox_at(mbox);
        progress(importing);
    }
    tide_mbox_free(mbox);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* All bytes of a file that is one message; *fits_out false: it is too long. */
static tide_status read_whole(struct tide_importing *importing,
                              const struct tide_import_source *source, tide_buf *raw,
                              bool *fits_out)
{
    enum { PIECE = 64 << 10 };
    for (size_t count = PIECE; count == PIECE;) {
        char *room = tide_buf_reserve(raw, PIECE + 1);
        if (room == NULL && raw->bytes + PIECE + 1 > raw->bytes_max) {
            *fits_out = false;
            return TIDE_OK;
        }
        if (room == NULL)
            return tide_error_set(importing->err, TIDE_NO_MEMORY,
                                  "no memory for a message of %zu bytes", raw->bytes);
        TIDE_TRY(source->read(source->arg, raw->bytes, room, PIECE, &count, importing->err));
        raw->bytes += count;
        raw->data[raw->bytes] = '\0';
    }
    *fits_out = raw->bytes <= TIDE_MBOX_MESSAGE_BYTES_MAX;
    return TIDE_OK;
}

static tide_status import_eml(struct tide_importing *importing,
                              const struct tide_import_source *source)
{
    enum { ROOM = 128 << 10 };
    bool fits = false;
    tide_auto_buf raw = tide_buf_in(importing->mem, TIDE_MBOX_MESSAGE_BYTES_MAX + ROOM);
    TIDE_TRY(read_whole(importing, source, &raw, &fits));
    if (!fits) {
        importing->imported.messages++;
        importing->imported.too_long++;
        return TIDE_OK;
    }
    struct tide_import_one one = {
        .raw = &raw, .file_ms = source->changed_ms, .flags = source->flags, .group = source->group};
    const tide_status rc = tide_import_message(importing, &one);
    progress(importing);
    return rc;
}

static bool begins(const char *bytes, size_t count, const char *with, size_t with_bytes)
{
    return count >= with_bytes && memcmp(bytes, with, with_bytes) == 0;
}

/* Whether it starts like mail: with a header, perhaps after empty lines. */
static bool begins_as_mail(const char *bytes, size_t count)
{
    size_t at = 0;
    while (at < count && (bytes[at] == '\r' || bytes[at] == '\n'))
        at++;
    const size_t name = at;
    while (at < count && bytes[at] > ' ' && bytes[at] < 0x7f && bytes[at] != ':')
        at++;
    return at > name && at < count && bytes[at] == ':';
}

/* The type of a file, by its name and its first bytes. */
static tide_status kind_of(struct tide_importing *importing,
                           const struct tide_import_source *source, file_kind *kind_out)
{
    char begin[SNIFF_BYTES];
    size_t count = 0;
    TIDE_TRY(source->read(source->arg, 0, begin, sizeof begin, &count, importing->err));
    if (begins(begin, count, "%PDF-", 5))
        *kind_out = FILE_UNKNOWN; /* a document, whatever its name */
    else if (ends_with(source->name, ".eml"))
        *kind_out = FILE_EML;
    else if (begins(begin, count, "PK\3\4", 4) || begins(begin, count, "\x1f\x8b", 2) ||
             (count > 262 && memcmp(begin + 257, "ustar", 5) == 0))
        *kind_out = FILE_PACKED;
    else if (ends_with(source->name, ".mbox") || begins(begin, count, "From ", 5))
        *kind_out = FILE_MBOX;
    else if (source->named && begins_as_mail(begin, count))
        *kind_out = FILE_EML; /* named by the user: accepted */
    else
        *kind_out = FILE_UNKNOWN;
    return TIDE_OK;
}

/* The directory that a group's mailbox is in is named after the group: "a@googlegroups.com". */
static tide_text group_of(const char *path)
{
    static const char file[] = "/topics.mbox";
    if (!ends_with(path, file))
        return TIDE_TEXT_NONE;
    const size_t end = strlen(path) - (sizeof file - 1);
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    const tide_text name = {path + begin, end - begin};
    return name.bytes > 0 && memchr(name.data, '@', name.bytes) != NULL ? name : TIDE_TEXT_NONE;
}

/* Whether a packed file may be read: one that the user named, or a part of a Takeout in a directory,
 * where other packed files may be anything.  What is packed twice is not unpacked twice: a Takeout is
 * not, and a bomb may be. */
static bool may_unpack(const struct tide_import_source *source)
{
    const char *slash = strrchr(source->name, '/');
    const char *name = slash == NULL ? source->name : slash + 1;
    return !source->packed && (source->named || strncmp(name, "takeout-", 8) == 0);
}

tide_status tide_import_source(struct tide_importing *importing, struct tide_import_source *source)
{
    file_kind kind = FILE_EML;
    if (source->flags == NULL)
        TIDE_TRY(kind_of(importing, source, &kind));
    if (kind == FILE_PACKED && !may_unpack(source))
        kind = FILE_UNKNOWN;
    if (kind == FILE_UNKNOWN && source->named)
        return tide_error_set(importing->err, TIDE_INVALID,
                              "%.300s is neither a message nor a mailbox", source->name);
    if (kind == FILE_PACKED)
        return tide_import_packed(importing, source);
    importing->imported.files += kind != FILE_UNKNOWN;
    importing->imported.files_skipped += kind == FILE_UNKNOWN;
    source->group = group_of(source->name);
    if (kind == FILE_MBOX)
        return import_mbox(importing, source);
    return kind == FILE_EML ? import_eml(importing, source) : TIDE_OK;
}

/* `named`: by the user, not found in a directory; `flags`: of a Maildir. */
static tide_status import_file(struct tide_importing *importing, const char *path, bool named,
                               const char *flags)
{
    struct tide_path_info info;
    tide_reading *reading = NULL;
    TIDE_TRY(tide_path_look(path, &info, importing->err));
    if (info.kind != TIDE_PATH_FILE) {
        importing->imported.files_skipped++;
        return TIDE_OK;
    }
    TIDE_TRY(tide_reading_open(importing->mem, path, &reading, importing->err));
    struct tide_import_source source = {.name = path,
                                        .read = from_file,
                                        .arg = reading,
                                        .bytes = info.bytes,
                                        .changed_ms = info.changed_ms,
                                        .named = named,
                                        .flags = flags};
    const uint64_t before_bytes = importing->imported.read_bytes;
    const tide_status rc = tide_import_source(importing, &source);
    importing->imported.read_bytes = before_bytes + info.bytes;
    tide_reading_close(reading);
    return rc;
}

/* ---- directories ------------------------------------------------------------------------ */

static void name_seen(const char *name, void *arg)
{
    struct level *level = arg;
    if (name[0] != '.' || name[1] != '\0')
        (void)tide_buf_add(&level->names, name, strlen(name) + 1); /* the count shows a failure */
    level->count++;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void level_free(tide_mem *mem, struct level *level)
{
    if (level == NULL)
        return;
    tide_buf_done(&level->names);
    tide_mem_free(mem, level->sorted, level->capacity * sizeof level->sorted[0]);
    tide_mem_free(mem, level, sizeof *level);
}

static tide_status level_fill(struct tide_importing *importing, struct level *level)
{
    TIDE_TRY(tide_dir_list(importing->world, level->path, name_seen, level, importing->err));
    if (level->count == 0)
        return TIDE_OK;
    level->capacity = level->count;
    level->sorted = tide_mem_array(importing->mem, level->capacity, sizeof level->sorted[0]);
    if (level->sorted == NULL) {
        level->capacity = 0;
        return tide_error_set(importing->err, TIDE_NO_MEMORY, "no memory for the names in %.200s",
                              level->path);
    }
    size_t count = 0;
    for (size_t at = 0; at < level->names.bytes && count < level->capacity;) {
        level->sorted[count++] = level->names.data + at;
        at += strlen(level->names.data + at) + 1;
    }
    if (count < level->count)
        return tide_error_set(importing->err, TIDE_NO_MEMORY, "no memory for the names in %.200s",
                              level->path);
    qsort(level->sorted, count, sizeof level->sorted[0], by_name);
    return TIDE_OK;
}

static bool dir_is_there(const char *dir, const char *name)
{
    char path[PATH_BYTES + 16];
    struct tide_path_info info;
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return tide_path_look(path, &info, NULL) == TIDE_OK && info.kind == TIDE_PATH_DIR;
}

/* "cur" and "new" of a Maildir contain messages; "tmp" contains incomplete ones. */
static bool is_maildir_part(const char *path, bool *tmp_out)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    *tmp_out = strcmp(name, "tmp") == 0;
    if (!*tmp_out && strcmp(name, "cur") != 0 && strcmp(name, "new") != 0)
        return false;
    char up[PATH_BYTES + 4];
    (void)snprintf(up, sizeof up, "%s/..", path);
    return dir_is_there(up, "cur") && dir_is_there(up, "new");
}

static tide_status level_push(struct walk *walk, const char *path)
{
    struct tide_importing *importing = walk->importing;
    bool tmp = false;
    const bool maildir = is_maildir_part(path, &tmp);
    if (maildir && tmp)
        return TIDE_OK;
    if (walk->count == TIDE_IMPORT_DEEP)
        return tide_error_set(importing->err, TIDE_FULL, "directories more than %d deep: %.200s",
                              TIDE_IMPORT_DEEP, path);
    struct level *level = tide_mem_new(importing->mem, sizeof *level);
    if (level == NULL)
        return tide_error_set(importing->err, TIDE_NO_MEMORY, "no memory to read %.200s", path);
    tide_buf_init(&level->names, importing->mem, NAMES_BYTES_MAX);
    (void)snprintf(level->path, sizeof level->path, "%s", path);
    level->maildir = maildir;
    tide_status rc = level_fill(importing, level);
    if (rc != TIDE_OK)
        level_free(importing->mem, level);
    else
        walk->levels[walk->count++] = level;
    return rc;
}

/* The flags after ":2," in a name; "": none. */
static const char *flags_of(const char *name)
{
    const char *found = strstr(name, ":2,");
    return found == NULL ? "" : found + 3;
}

static tide_status level_next(struct walk *walk, struct level *level)
{
    struct tide_importing *importing = walk->importing;
    const char *name = level->sorted[level->at++];
    char path[PATH_BYTES];
    struct tide_path_info info;
    const int used = snprintf(path, sizeof path, "%s/%s", level->path, name);
    if (used < 0 || (size_t)used >= sizeof path)
        return tide_error_set(importing->err, TIDE_INVALID, "path too long: %.100s...", path);
    TIDE_TRY(canceled(importing));
    TIDE_TRY(tide_path_look(path, &info, importing->err));
    if (info.kind == TIDE_PATH_DIR && !info.link)
        return level_push(walk, path);
    if (name[0] == '.') /* private files of programs */
        return TIDE_OK;
    return import_file(importing, path, false, level->maildir ? flags_of(name) : NULL);
}

static tide_status import_dir(struct tide_importing *importing, const char *path)
{
    char plain[PATH_BYTES];
    struct walk walk = {.importing = importing};
    size_t bytes = strlen(path);
    while (bytes > 1 && path[bytes - 1] == '/')
        bytes--;
    if (bytes >= sizeof plain)
        return tide_error_set(importing->err, TIDE_INVALID, "path too long: %.100s...", path);
    (void)snprintf(plain, sizeof plain, "%.*s", (int)bytes, path);
    tide_status rc = level_push(&walk, plain);
    while (rc == TIDE_OK && walk.count > 0) {
        struct level *level = walk.levels[walk.count - 1];
        if (level->at < level->count) {
            rc = level_next(&walk, level);
            continue;
        }
        level_free(importing->mem, level);
        walk.count--;
    }
    while (walk.count > 0)
        level_free(importing->mem, walk.levels[--walk.count]);
    return rc;
}

/* ---- the index --------------------------------------------------------------------------- */

tide_status tide_import_index(const struct tide_import *wanted,
                              const struct tide_imported *imported, uint64_t *indexed_out,
                              tide_error *err)
{
    enum { GROUP = 500 };
    for (uint64_t done = 1; done > 0;) {
        if (wanted->cancel != NULL && tide_canceled(wanted->cancel) != TIDE_CANCEL_NONE)
            return TIDE_OK;
        done = 0;
        TIDE_TRY(tide_archive_index(wanted->archive, GROUP, &done, err));
        *indexed_out += done;
        if (wanted->progress != NULL)
            wanted->progress(imported, wanted->progress_arg);
    }
    return TIDE_OK;
}

/* ---- the import -------------------------------------------------------------------------- */

static tide_status import_path(struct tide_importing *importing, const char *path)
{
    struct tide_path_info info;
    TIDE_TRY(tide_path_look(path, &info, importing->err));
    switch (info.kind) {
    case TIDE_PATH_FILE:
        return import_file(importing, path, true, NULL);
    case TIDE_PATH_DIR:
        return import_dir(importing, path);
    case TIDE_PATH_NONE:
        return tide_error_set(importing->err, TIDE_NOT_FOUND, "%.300s does not exist", path);
    case TIDE_PATH_OTHER:
        break;
    }
    return tide_error_set(importing->err, TIDE_INVALID, "%.300s is neither a file nor a directory",
                          path);
}

bool tide_import_is_address(const char *email)
{
    const char *at = strchr(email, '@');
    return at != NULL && at != email && at[1] != '\0' && email[0] != '.' && strlen(email) < 200 &&
           strpbrk(email, "/\\ \t\r\n") == NULL;
}

tide_status tide_import_run(tide_world *world, const struct tide_import *wanted,
                            const char *const *paths, size_t paths_count, tide_mem *mem,
                            struct tide_imported *imported_out, tide_error *err)
{
    TIDE_ASSERT(wanted->archive != NULL || wanted->dry_run);
    struct tide_importing importing = {.world = world, .mem = mem, .wanted = wanted, .err = err};
    tide_decoder_init(&importing.decoder, mem);
    tide_map_init(&importing.seen, mem);
    tide_buf_init(&importing.words, mem, 256 << 10);
    tide_buf_init(&importing.texts, mem, 256 << 10);
    tide_status rc = tide_packer_new(mem, 1, &importing.packer, err);
    if (rc == TIDE_OK)
        rc = tide_room_open(&importing.room, world, wanted->disk_path,
                            wanted->dry_run ? 0 : wanted->free_min_bytes, err);
    if (rc == TIDE_OK)
        rc = tide_import_labels_load(&importing);
    for (size_t i = 0; rc == TIDE_OK && i < paths_count; i++)
        rc = import_path(&importing, paths[i]);
    /* Even after a failure: messages counted as stored must be durable. */
    if (!wanted->dry_run && importing.ticket > 0) {
        tide_error last = {TIDE_OK, 0, ""};
        const tide_status synced =
            tide_archive_sync(wanted->archive, importing.ticket, NULL, &last);
        if (synced != TIDE_OK && rc == TIDE_OK) {
            rc = synced;
            if (err != NULL)
                *err = last;
        }
    }
    *imported_out = importing.imported;
    tide_import_labels_free(&importing);
    tide_packer_free(importing.packer);
    tide_decoder_done(&importing.decoder);
    tide_map_done(&importing.seen);
    tide_buf_done(&importing.words);
    tide_buf_done(&importing.texts);
    return rc;
}
