#include "drive/local/compare.h"

#include "drive/names/names.h"

#include <stdlib.h>

enum { PATH_BYTES_MAX = 64 << 10, TEXT_BYTES_MAX = 256 << 20, ROWS_MAX = 64 << 20 };

/* A folder that is still to be read. */
struct waiting {
    uint64_t row;
    size_t path_at, path_bytes; /* in `paths` */
    bool unread;                /* its row says so, until the scan has ended (DCM6) */
};

/* A folder whose rows are all gone or unsure. */
struct lost {
    uint64_t row;
    bool gone;
};

struct known {
    struct tide_drive_found found;
    bool seen;
};

/* The rows of a folder, by name. */
struct known_set {
    struct known *rows;
    size_t count, room;
    tide_arena names;
    bool failed;
};

/* What goes with a difference: the path of a new folder that is to be entered. */
struct entry_path {
    tide_text path;
    bool enter;
};

struct tide_drive_compare {
    struct tide_drive_compare_options options;
    tide_mem *mem;
    struct waiting *folders; /* last in, first out */
    size_t folders_count, folders_room;
    tide_buf paths; /* those of `folders`, one after the other */
    tide_buf path;  /* of the folder that is read now */
    uint64_t row;   /* of that folder */
    bool unread;    /* its row says so */
    struct known_set known;
    struct known_set before; /* of the same folder, before it was read again */
    bool aside;              /* an entry with a name of ours was new: rows may have moved */
    struct lost *lost;
    size_t lost_count, lost_room;
    struct missing {
        uint64_t row, version;
    } * missing;
    size_t missing_count, missing_room;
    uint64_t *again; /* rows of folders that were unread, and are read now */
    size_t again_count, again_room;
    struct tide_drive_difference slice[TIDE_DRIVE_SLICE_MAX];
    struct entry_path entry_paths[TIDE_DRIVE_SLICE_MAX];
    size_t slice_count, slice_enters;
    tide_arena texts; /* of the slice */
};

static tide_status no_memory(tide_error *err)
{
    return tide_error_set(err, TIDE_NO_MEMORY, "no memory to compare a folder");
}

tide_status tide_drive_compare_new(const struct tide_drive_compare_options *options, tide_mem *mem,
                                   tide_drive_compare **compare_out, tide_error *err)
{
    tide_drive_compare *compare = tide_mem_new(mem, sizeof *compare);
    if (compare == NULL)
        return no_memory(err);
    compare->options = *options;
    compare->mem = mem;
    tide_buf_init(&compare->paths, mem, TEXT_BYTES_MAX);
    tide_buf_init(&compare->path, mem, PATH_BYTES_MAX);
    tide_arena_init(&compare->known.names, mem, TEXT_BYTES_MAX);
    tide_arena_init(&compare->before.names, mem, TEXT_BYTES_MAX);
    tide_arena_init(&compare->texts, mem, TEXT_BYTES_MAX);
    *compare_out = compare;
    return TIDE_OK;
}

static void known_done(struct known_set *known, tide_mem *mem)
{
    tide_arena_done(&known->names);
    tide_mem_free(mem, known->rows, known->room * sizeof *known->rows);
}

void tide_drive_compare_free(tide_drive_compare *compare)
{
    if (compare == NULL)
        return;
    tide_mem *mem = compare->mem;
    tide_buf_done(&compare->paths);
    tide_buf_done(&compare->path);
    known_done(&compare->known, mem);
    known_done(&compare->before, mem);
    tide_arena_done(&compare->texts);
    tide_mem_free(mem, compare->folders, compare->folders_room * sizeof *compare->folders);
    tide_mem_free(mem, compare->lost, compare->lost_room * sizeof *compare->lost);
    tide_mem_free(mem, compare->missing, compare->missing_room * sizeof *compare->missing);
    tide_mem_free(mem, compare->again, compare->again_room * sizeof *compare->again);
    tide_mem_free(mem, compare, sizeof *compare);
}

/* ---- lists ---- */

static tide_status wait_for(tide_drive_compare *compare, uint64_t row, tide_text path, bool unread,
                            tide_error *err)
{
    const size_t at = compare->paths.bytes;
    if (!TIDE_GROW_IN(compare->mem, compare->folders, compare->folders_room,
                      compare->folders_count + 1, ROWS_MAX) ||
        tide_buf_add(&compare->paths, path.data, path.bytes) != TIDE_OK)
        return no_memory(err);
    compare->folders[compare->folders_count++] = (struct waiting){row, at, path.bytes, unread};
    return TIDE_OK;
}

tide_status tide_drive_compare_add(tide_drive_compare *compare, uint64_t row, tide_text path,
                                   tide_error *err)
{
    return wait_for(compare, row, path, false, err);
}

static tide_status lose(tide_drive_compare *compare, uint64_t row, bool gone, tide_error *err)
{
    if (!TIDE_GROW_IN(compare->mem, compare->lost, compare->lost_room, compare->lost_count + 1,
                      ROWS_MAX))
        return no_memory(err);
    compare->lost[compare->lost_count++] = (struct lost){row, gone};
    return TIDE_OK;
}

/* Hands the slice out.  New folders have their rows now, and wait to be read (DCM4). */
static tide_status flush(tide_drive_compare *compare, tide_error *err)
{
    if (compare->slice_count == 0)
        return TIDE_OK;
    TIDE_TRY(
        compare->options.write(compare->options.arg, compare->slice, compare->slice_count, err));
    for (size_t i = 0; i < compare->slice_count; i++)
        if (compare->entry_paths[i].enter && compare->slice[i].found.row != 0)
            TIDE_TRY(tide_drive_compare_add(compare, compare->slice[i].found.row,
                                            compare->entry_paths[i].path, err));
    compare->slice_count = compare->slice_enters = 0;
    tide_arena_reset(&compare->texts);
    return TIDE_OK;
}

static tide_status differ(tide_drive_compare *compare, const struct tide_drive_difference *differs,
                          const tide_text *enter, tide_error *err)
{
    if (compare->slice_count == TIDE_DRIVE_SLICE_MAX)
        TIDE_TRY(flush(compare, err));
    struct tide_drive_difference *to = &compare->slice[compare->slice_count];
    struct entry_path *path = &compare->entry_paths[compare->slice_count];
    *to = *differs;
    *path = (struct entry_path){.enter = enter != NULL};
    if (!differs->state_only) {
        to->found.name.data =
            tide_arena_copy(&compare->texts, differs->found.name.data, differs->found.name.bytes);
        if (to->found.name.data == NULL)
            return no_memory(err);
    }
    if (enter != NULL) {
        path->path = *enter;
        path->path.data = tide_arena_copy(&compare->texts, enter->data, enter->bytes);
        if (path->path.data == NULL)
            return no_memory(err);
    }
    compare->slice_enters += enter != NULL;
    compare->slice_count++;
    return TIDE_OK;
}

/* ---- rows of a folder ---- */

static void take_known(const struct tide_drive_found *found, void *arg)
{
    tide_drive_compare *compare = arg;
    struct known_set *known = &compare->known;
    known->failed = known->failed || !TIDE_GROW_IN(compare->mem, known->rows, known->room,
                                                   known->count + 1, ROWS_MAX);
    if (known->failed)
        return;
    struct known *row = &known->rows[known->count];
    *row = (struct known){.found = *found};
    row->found.name.data = tide_arena_copy(&known->names, found->name.data, found->name.bytes);
    known->failed = row->found.name.data == NULL;
    known->count += !known->failed;
}

static tide_status read_known(tide_drive_compare *compare, uint64_t row, tide_error *err)
{
    compare->row = row;
    compare->aside = false;
    compare->known.count = 0;
    compare->known.failed = false;
    tide_arena_reset(&compare->known.names);
    TIDE_TRY(tide_drive_known_each(compare->options.db, row, take_known, compare, err));
    return compare->known.failed ? no_memory(err) : TIDE_OK;
}

/* As SQLite compares blobs. */
static int by_name(const void *a, const void *b)
{
    const tide_text left = *(const tide_text *)a, right = ((const struct known *)b)->found.name;
    const size_t bytes = left.bytes < right.bytes ? left.bytes : right.bytes;
    const int order = bytes == 0 ? 0 : memcmp(left.data, right.data, bytes);
    return order != 0 ? order : (left.bytes > right.bytes) - (left.bytes < right.bytes);
}

static struct known *find(const struct known_set *known, tide_text name)
{
    return known->count == 0
               ? NULL
               : bsearch(&name, known->rows, known->count, sizeof *known->rows, by_name);
}

/* DCM5: an entry with a name of ours may have taken a row along that had another name here.  Writes it
 * and reads the rows again; what was found until now has a name of ours, and stays found. */
static tide_status settle_aside(tide_drive_compare *compare, tide_error *err)
{
    if (!compare->aside)
        return TIDE_OK;
    const struct known_set kept = compare->before;
    compare->before = compare->known;
    compare->known = kept;
    TIDE_TRY(flush(compare, err));
    TIDE_TRY(read_known(compare, compare->row, err));
    for (size_t i = 0; i < compare->known.count; i++) {
        struct known *row = &compare->known.rows[i];
        const struct known *was = find(&compare->before, row->found.name);
        row->seen = was != NULL ? was->seen : tide_drive_name_is_ours(row->found.name);
    }
    return TIDE_OK;
}

const struct tide_drive_found *tide_drive_compare_known(const tide_drive_compare *compare,
                                                        tide_text name)
{
    const struct known *known = find(&compare->known, name);
    return known == NULL ? NULL : &known->found;
}

static bool is_gone(const struct tide_drive_found *found)
{
    return (int)found->state == TIDE_DRIVE_LOCAL_GONE;
}

/* A row that has no entry.  What is beneath one that is gone is looked at again, too: a row of it may
 * have been left alone because an action wrote it, or a crash came before it was written. */
static tide_status miss(tide_drive_compare *compare, const struct tide_drive_found *found,
                        tide_error *err)
{
    if (!is_gone(found)) {
        if (!TIDE_GROW_IN(compare->mem, compare->missing, compare->missing_room,
                          compare->missing_count + 1, ROWS_MAX))
            return no_memory(err);
        compare->missing[compare->missing_count++] = (struct missing){found->row, found->version};
    }
    return found->has_below ? lose(compare, found->row, true, err) : TIDE_OK;
}

static tide_status doubt(tide_drive_compare *compare, const struct tide_drive_found *found,
                         tide_error *err)
{
    const struct tide_drive_difference differs = {
        .found = {.row = found->row, .version = found->version, .state = TIDE_DRIVE_LOCAL_UNSURE},
        .state_only = true};
    if (is_gone(found))
        return TIDE_OK;
    if (found->state != TIDE_DRIVE_LOCAL_UNSURE)
        TIDE_TRY(differ(compare, &differs, NULL, err));
    return found->has_below ? lose(compare, found->row, false, err) : TIDE_OK;
}

static tide_status lose_all(tide_drive_compare *compare, tide_error *err)
{
    while (compare->lost_count > 0) {
        const struct lost lost = compare->lost[--compare->lost_count];
        TIDE_TRY(read_known(compare, lost.row, err));
        for (size_t i = 0; i < compare->known.count; i++)
            TIDE_TRY(lost.gone ? miss(compare, &compare->known.rows[i].found, err)
                               : doubt(compare, &compare->known.rows[i].found, err));
    }
    return TIDE_OK;
}

/* ---- folders ---- */

tide_status tide_drive_compare_next(tide_drive_compare *compare, uint64_t *row_out,
                                    tide_text *path_out, tide_error *err)
{
    TIDE_TRY(lose_all(compare, err));
    if (compare->folders_count == 0 && compare->slice_enters > 0)
        TIDE_TRY(flush(compare, err));
    if (compare->folders_count == 0)
        return TIDE_NOT_FOUND;
    const struct waiting next = compare->folders[--compare->folders_count];
    tide_buf_clear(&compare->path);
    if (tide_buf_add(&compare->path, compare->paths.data + next.path_at, next.path_bytes) !=
        TIDE_OK)
        return no_memory(err);
    compare->paths.bytes = next.path_at; /* the last one in is at the end */
    TIDE_TRY(read_known(compare, next.row, err));
    compare->unread = next.unread;
    *row_out = next.row;
    *path_out = tide_buf_text(&compare->path);
    return TIDE_OK;
}

/* Whether a folder that is known is entered all the same: other rows than before may be right. */
static bool was_other(const struct tide_drive_found *known, const struct tide_drive_found *found)
{
    return known->kind != TIDE_DRIVE_FOLDER || known->state != TIDE_DRIVE_LOCAL_LIVE ||
           known->identity.dev != found->identity.dev ||
           known->identity.inode != found->identity.inode;
}

tide_status tide_drive_compare_found(tide_drive_compare *compare,
                                     const struct tide_drive_found *found, const tide_text *path,
                                     tide_error *err)
{
    struct tide_drive_difference differs = {.found = *found};
    const bool ours = tide_drive_name_is_ours(found->name);
    if (!ours)
        TIDE_TRY(settle_aside(compare, err));
    struct known *known = find(&compare->known, found->name);
    differs.found.parent = compare->row;
    differs.found.row = differs.found.version = 0;
    if (known == NULL) {
        compare->aside = compare->aside || ours;
        return differ(compare, &differs, path, err);
    }
    known->seen = true;
    differs.found.row = known->found.row;
    differs.found.version = known->found.version;
    const bool unread = path != NULL && known->found.state == TIDE_DRIVE_LOCAL_UNREAD;
    if (unread)
        differs.found.state = TIDE_DRIVE_LOCAL_UNREAD; /* DCM6 */
    if (!tide_drive_found_same(&known->found, &differs.found, &differs.quiet))
        TIDE_TRY(differ(compare, &differs, NULL, err));
    if (path != NULL)
        return compare->options.all || was_other(&known->found, found)
                   ? wait_for(compare, known->found.row, *path, unread, err)
                   : TIDE_OK;
    if (known->found.has_below)
        return lose(compare, known->found.row, found->kind != TIDE_DRIVE_FOLDER, err);
    return TIDE_OK;
}

tide_status tide_drive_compare_read(tide_drive_compare *compare, tide_error *err)
{
    TIDE_TRY(settle_aside(compare, err));
    for (size_t i = 0; i < compare->known.count; i++)
        if (!compare->known.rows[i].seen)
            TIDE_TRY(miss(compare, &compare->known.rows[i].found, err));
    if (!compare->unread)
        return TIDE_OK;
    if (!TIDE_GROW_IN(compare->mem, compare->again, compare->again_room, compare->again_count + 1,
                      ROWS_MAX))
        return no_memory(err);
    compare->again[compare->again_count++] = compare->row;
    return TIDE_OK;
}

/* A folder whose state alone differs; what its own folder said of it is written, and has its version. */
static tide_status set_state(tide_drive_compare *compare, uint64_t row,
                             tide_drive_local_state state, tide_error *err)
{
    struct tide_drive_difference differs = {.found = {.row = row, .state = state},
                                            .state_only = true};
    const tide_status rc =
        tide_drive_version_of(compare->options.db, row, &differs.found.version, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc; /* the root, or an action removed it */
    return differ(compare, &differs, NULL, err);
}

tide_status tide_drive_compare_unread(tide_drive_compare *compare, tide_error *err)
{
    if (!compare->unread) {
        TIDE_TRY(flush(compare, err));
        TIDE_TRY(set_state(compare, compare->row, TIDE_DRIVE_LOCAL_UNREAD, err));
    }
    return lose(compare, compare->row, false, err);
}

tide_status tide_drive_compare_end(tide_drive_compare *compare, bool complete, tide_error *err)
{
    TIDE_TRY(lose_all(compare, err));
    for (size_t i = 0; i < compare->missing_count; i++) {
        const struct tide_drive_difference differs = {
            .found = {.row = compare->missing[i].row,
                      .version = compare->missing[i].version,
                      .state = complete ? (tide_drive_local_state)TIDE_DRIVE_LOCAL_GONE
                                        : TIDE_DRIVE_LOCAL_UNSURE},
            .state_only = true};
        TIDE_TRY(differ(compare, &differs, NULL, err));
    }
    compare->missing_count = 0;
    TIDE_TRY(flush(compare, err));
    for (size_t i = 0; complete && i < compare->again_count; i++)
        TIDE_TRY(set_state(compare, compare->again[i], TIDE_DRIVE_LOCAL_LIVE, err));
    compare->again_count = 0;
    return flush(compare, err);
}
