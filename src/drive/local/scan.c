#include "drive/local/scan.h"

#include "base/check.h"
#include "drive/local/hash.h"
#include "drive/names/key.h"

enum { PATH_BYTES_MAX = 64 << 10, NAMES_BYTES_MAX = 256 << 20, MARKER_BYTES_MAX = 256 };
#define RACY_NS (UINT64_C(2) * 1000000000u) /* FAT has times of two seconds */

/* A folder that is still to be read. */
struct waiting {
    uint64_t row;
    size_t path_at, path_bytes; /* in `paths` */
};

struct walk {
    const struct tide_drive_scan *scan;
    tide_mem *mem;
    tide_error *err;
    int root;
    struct tide_entry root_entry;
    struct waiting *folders; /* last in, first out */
    size_t folders_count, folders_room;
    tide_buf paths; /* those of `folders`, one after the other */
    tide_buf names; /* of the folder that is read now, each with a NUL */
    tide_buf path;  /* of the entry that is looked at */
    bool names_full;
    uint64_t hashed_bytes;
};

/* ---- the marker (S14) ---- */

static void take_marker(const void *bytes, size_t count, void *arg)
{
    (void)tide_buf_add(arg, bytes, count);
}

static tide_status check_marker(int root, const char *marker, tide_error *err)
{
    tide_auto_buf text = tide_buf_heap(MARKER_BYTES_MAX);
    struct tide_entry entry;
    const tide_status rc =
        tide_folder_read(root, TIDE_TEXT(TIDE_DRIVE_MARKER), take_marker, &text, &entry, err);
    if (rc == TIDE_OK && tide_text_equal(tide_buf_text(&text), tide_text_of(marker)))
        return TIDE_OK;
    return tide_error_set(err, TIDE_INVALID,
                          "the folder of this drive is not mounted, or is another one: its "
                          "marker " TIDE_DRIVE_MARKER " is missing or different");
}

tide_status tide_drive_marker_make(const char *root, const char *marker, tide_error *err)
{
    static const char partial[] = ".tidemark-root.partial";
    int dir = -1;
    TIDE_TRY(tide_folder_open(root, &dir, err));
    tide_status rc = tide_folder_write(dir, TIDE_TEXT(partial), 0, tide_text_of(marker), err);
    if (rc == TIDE_OK)
        rc = tide_folder_place(dir, TIDE_TEXT(partial), TIDE_TEXT(TIDE_DRIVE_MARKER), 0, NULL, err);
    tide_folder_close(dir);
    return rc;
}

/* ---- one entry ---- */

static void skipped(struct walk *walk, tide_drive_skip why, tide_drive_refusal refusal)
{
    walk->scan->ops->skipped(walk->scan->arg, tide_buf_text(&walk->path), why, refusal);
}

/* Whether it must not cross at all: it then keeps its name taken, and that is all. */
static bool must_skip(struct walk *walk, uint64_t parent, tide_text name,
                      const struct tide_entry *entry)
{
    const struct tide_drive_name_rules rules = {.business = walk->scan->business,
                                                .at_root = parent == TIDE_DRIVE_ROOT};
    if (entry->kind == TIDE_ENTRY_LINK || entry->kind == TIDE_ENTRY_OTHER) {
        skipped(walk, entry->kind == TIDE_ENTRY_LINK ? TIDE_DRIVE_SKIP_LINK : TIDE_DRIVE_SKIP_OTHER,
                TIDE_DRIVE_NAME_OK);
        return true;
    }
    const tide_text path = tide_buf_text(&walk->path);
    if (walk->scan->ignore != NULL &&
        tide_ignored_here(walk->scan->ignore, path, entry->kind == TIDE_ENTRY_FOLDER)) {
        skipped(walk, TIDE_DRIVE_SKIP_IGNORED, TIDE_DRIVE_NAME_OK);
        return true;
    }
    tide_drive_refusal refusal = tide_drive_name_up(name, rules);
    if (refusal == TIDE_DRIVE_NAME_OURS)
        refusal = TIDE_DRIVE_NAME_OK; /* a step aside (D24): the store knows whose it is */
    if (refusal == TIDE_DRIVE_NAME_OK)
        refusal = tide_drive_path_up(tide_drive_utf16_units(path));
    if (refusal == TIDE_DRIVE_NAME_OK && entry->bytes > TIDE_DRIVE_FILE_BYTES_MAX)
        refusal = TIDE_DRIVE_NAME_FILE_LARGE;
    if (refusal != TIDE_DRIVE_NAME_OK)
        skipped(walk, TIDE_DRIVE_SKIP_NAME, refusal);
    return refusal != TIDE_DRIVE_NAME_OK;
}

/* D14: the same file as then, and not written in the moment in which it was hashed. */
static bool is_known(const struct tide_drive_found *known, const struct tide_entry *entry)
{
    return known->state == TIDE_DRIVE_LOCAL_LIVE && known->kind == TIDE_DRIVE_FILE &&
           known->content.has_strong && known->content.bytes == entry->bytes &&
           known->mtime_ns == entry->mtime_ns && known->ctime_ns == entry->ctime_ns &&
           known->identity.dev == entry->dev && known->identity.inode == entry->inode &&
           entry->mtime_ns + RACY_NS <= known->hashed_ns &&
           entry->ctime_ns + RACY_NS <= known->hashed_ns;
}

static void describe(struct tide_drive_found *found, const struct tide_entry *entry)
{
    found->identity = (struct tide_drive_identity){entry->dev, entry->inode, entry->birth_ns};
    found->mtime_ns = entry->mtime_ns;
    found->ctime_ns = entry->ctime_ns;
    found->nlink = entry->nlink;
    found->mode = entry->mode;
    found->content.bytes = entry->kind == TIDE_ENTRY_FILE ? entry->bytes : 0;
}

static void look_at_file(struct walk *walk, int dir, struct tide_drive_found *found,
                         const struct tide_drive_found *known, const struct tide_entry *entry)
{
    struct tide_entry hashed;
    if (known != NULL && is_known(known, entry)) {
        found->content = known->content;
        found->hashed_ns = known->hashed_ns;
        return;
    }
    if (tide_drive_hash_file(dir, found->name, &found->content, &hashed, NULL) == TIDE_OK) {
        describe(found, &hashed);
        found->content.bytes = hashed.bytes;
        found->hashed_ns = walk->scan->now_ns;
        walk->hashed_bytes += hashed.bytes;
        return;
    }
    found->state = TIDE_DRIVE_LOCAL_UNSURE; /* being written, or unreadable: look again later */
    skipped(walk, TIDE_DRIVE_SKIP_UNREADABLE, TIDE_DRIVE_NAME_OK);
}

static tide_status push(struct walk *walk, uint64_t row)
{
    const tide_text path = tide_buf_text(&walk->path);
    if (!TIDE_GROW_IN(walk->mem, walk->folders, walk->folders_room, walk->folders_count + 1,
                      TIDE_DRIVE_PLAN_ROWS_MAX))
        return tide_error_set(walk->err, TIDE_NO_MEMORY, "no memory to walk a folder");
    const size_t at = walk->paths.bytes;
    TIDE_TRY(tide_buf_add(&walk->paths, path.data, path.bytes));
    walk->folders[walk->folders_count++] = (struct waiting){row, at, path.bytes};
    return TIDE_OK;
}

/* Another file system than before (S13): what was known of it stays as it was, unsure. */
static bool is_other_mount(const struct walk *walk, const struct tide_drive_found *known,
                           const struct tide_entry *entry)
{
    return entry->dev != walk->root_entry.dev ||
           (known != NULL && known->identity.dev != entry->dev);
}

static tide_status look_at(struct walk *walk, int dir, uint64_t parent, tide_text name)
{
    const struct tide_drive_scan *scan = walk->scan;
    struct tide_entry entry;
    struct tide_drive_found known, found = {.parent = parent, .name = name};
    uint64_t row = 0;
    const tide_status rc = tide_folder_look(dir, name, &entry, NULL);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK; /* removed since the folder was listed */
    const tide_status knows = scan->ops->known(scan->arg, parent, name, &known, walk->err);
    if (knows != TIDE_OK && knows != TIDE_NOT_FOUND)
        return knows;
    const struct tide_drive_found *old = knows == TIDE_OK ? &known : NULL;
    if (rc != TIDE_OK) {
        if (old != NULL)
            found = known;
        found.kind = old != NULL ? known.kind : TIDE_DRIVE_FILE;
        found.state = TIDE_DRIVE_LOCAL_UNSURE;
        skipped(walk, TIDE_DRIVE_SKIP_UNREADABLE, TIDE_DRIVE_NAME_OK);
        return scan->ops->put(scan->arg, &found, &row, walk->err);
    }
    found.kind = entry.kind == TIDE_ENTRY_FOLDER ? TIDE_DRIVE_FOLDER : TIDE_DRIVE_FILE;
    found.state = TIDE_DRIVE_LOCAL_LIVE;
    describe(&found, &entry);
    bool descend = false;
    if (must_skip(walk, parent, name, &entry)) {
        found.state = TIDE_DRIVE_LOCAL_SKIPPED;
    } else if (is_other_mount(walk, old, &entry)) {
        if (old != NULL)
            found.identity = known.identity; /* so that it is seen again in the next scan */
        found.state = TIDE_DRIVE_LOCAL_UNSURE;
        skipped(walk, TIDE_DRIVE_SKIP_MOUNT, TIDE_DRIVE_NAME_OK);
    } else if (entry.kind == TIDE_ENTRY_FILE) {
        look_at_file(walk, dir, &found, old, &entry);
    } else {
        descend = true;
    }
    TIDE_TRY(scan->ops->put(scan->arg, &found, &row, walk->err));
    return descend ? push(walk, row) : TIDE_OK;
}

/* ---- folders ---- */

static bool take_name(tide_text name, void *arg)
{
    struct walk *walk = arg;
    /* Our own files are not part of the tree; a step aside is (D24). */
    if (name.bytes >= 10 && memcmp(name.data, ".tidemark-", 10) == 0)
        return true;
    walk->names_full = tide_buf_add(&walk->names, name.data, name.bytes) != TIDE_OK ||
                       tide_buf_add(&walk->names, "", 1) != TIDE_OK;
    return !walk->names_full;
}

static tide_status set_path(struct walk *walk, tide_text folder, tide_text name)
{
    tide_buf_clear(&walk->path);
    TIDE_TRY(tide_buf_add(&walk->path, folder.data, folder.bytes));
    if (folder.bytes > 0)
        TIDE_TRY(tide_buf_add(&walk->path, "/", 1));
    return tide_buf_add(&walk->path, name.data, name.bytes);
}

static tide_status read_folder(struct walk *walk, uint64_t row, tide_text path)
{
    const struct tide_drive_scan *scan = walk->scan;
    int dir = -1;
    tide_buf_clear(&walk->names);
    tide_status rc = tide_folder_enter(walk->root, path, &dir, NULL);
    if (rc == TIDE_OK)
        rc = tide_folder_list(dir, take_name, walk, NULL);
    if (rc != TIDE_OK) { /* DSC1: not read, so nothing in it is gone */
        tide_folder_close(dir);
        TIDE_TRY(set_path(walk, TIDE_TEXT_NONE, path));
        skipped(walk, TIDE_DRIVE_SKIP_UNREADABLE, TIDE_DRIVE_NAME_OK);
        return walk->names_full ? tide_error_set(walk->err, TIDE_FULL, "a folder is too large")
                                : TIDE_OK;
    }
    for (size_t at = 0; rc == TIDE_OK && at < walk->names.bytes;) {
        const tide_text name = tide_text_of(walk->names.data + at);
        rc = set_path(walk, path, name);
        if (rc == TIDE_OK)
            rc = look_at(walk, dir, row, name);
        at += name.bytes + 1;
    }
    tide_folder_close(dir);
    return rc == TIDE_OK ? scan->ops->read(scan->arg, row, walk->err) : rc;
}

static tide_status walk_all(struct walk *walk)
{
    TIDE_TRY(read_folder(walk, TIDE_DRIVE_ROOT, TIDE_TEXT_NONE));
    tide_auto_buf path = tide_buf_in(walk->mem, PATH_BYTES_MAX);
    while (walk->folders_count > 0) {
        const struct waiting next = walk->folders[--walk->folders_count];
        tide_buf_clear(&path);
        TIDE_TRY(tide_buf_add(&path, walk->paths.data + next.path_at, next.path_bytes));
        walk->paths.bytes = next.path_at; /* the last one in is at the end */
        TIDE_TRY(read_folder(walk, next.row, tide_buf_text(&path)));
    }
    return TIDE_OK;
}

/* DSC2: the path still leads to the directory that was walked, and it is still marked. */
static bool is_still_there(struct walk *walk)
{
    int again = -1;
    struct tide_entry entry;
    bool same = tide_folder_open(walk->scan->root, &again, NULL) == TIDE_OK &&
                tide_folder_look_self(again, &entry, NULL) == TIDE_OK &&
                entry.dev == walk->root_entry.dev && entry.inode == walk->root_entry.inode &&
                check_marker(again, walk->scan->marker, NULL) == TIDE_OK;
    tide_folder_close(again);
    return same;
}

tide_status tide_drive_scan(const struct tide_drive_scan *scan, tide_mem *mem, bool *complete_out,
                            uint64_t *hashed_out, tide_error *err)
{
    struct walk walk = {.scan = scan, .mem = mem, .err = err, .root = -1};
    tide_buf_init(&walk.paths, mem, NAMES_BYTES_MAX);
    tide_buf_init(&walk.names, mem, NAMES_BYTES_MAX);
    tide_buf_init(&walk.path, mem, PATH_BYTES_MAX);
    tide_status rc = tide_folder_open(scan->root, &walk.root, err);
    if (rc == TIDE_OK)
        rc = tide_folder_look_self(walk.root, &walk.root_entry, err);
    if (rc == TIDE_OK)
        rc = check_marker(walk.root, scan->marker, err);
    if (rc == TIDE_OK)
        rc = walk_all(&walk);
    if (rc == TIDE_OK) {
        *complete_out = is_still_there(&walk);
        *hashed_out = walk.hashed_bytes;
    }
    tide_folder_close(walk.root);
    tide_buf_done(&walk.path);
    tide_buf_done(&walk.names);
    tide_buf_done(&walk.paths);
    tide_mem_free(mem, walk.folders, walk.folders_room * sizeof *walk.folders);
    return rc;
}
