#include "drive/local/scan.h"

#include "base/check.h"
#include "drive/local/compare.h"
#include "drive/local/hash.h"
#include "drive/names/key.h"
#include "drive/store/look.h"

enum {
    PATH_BYTES_MAX = 64 << 10,
    NAMES_BYTES_MAX = 256 << 20,
    MARKER_BYTES_MAX = 256,
    CLIMBS_MAX = 64
};
#define RACY_NS (UINT64_C(2) * 1000000000u) /* FAT has times of two seconds */

struct walk {
    const struct tide_drive_scan *scan;
    tide_drive_compare *compare;
    tide_error *err;
    int root;
    struct tide_entry root_entry;
    tide_buf names; /* of the folder that is read now, each with a NUL */
    tide_buf path;  /* of the entry that is looked at */
    bool names_full;
    bool has_marker; /* the folder that is read now */
    size_t climbs;
    uint64_t hashed_bytes;
};

/* ---- the marker (S14) ---- */

static void take_marker(const void *bytes, size_t count, void *arg)
{
    (void)tide_buf_add(arg, bytes, count);
}

tide_status tide_drive_marker_check(int root, const char *marker, tide_error *err)
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

static void marker_drop(int dir, tide_text partial)
{
    struct tide_entry entry;
    if (tide_folder_look(dir, partial, &entry, NULL) == TIDE_OK)
        (void)tide_folder_remove(dir, partial, &entry, NULL);
}

tide_status tide_drive_marker_make(const char *root, const char *marker, tide_error *err)
{
    static const char partial[] = ".tidemark-root.partial";
    int dir = -1;
    TIDE_TRY(tide_folder_open(root, &dir, err));
    marker_drop(dir, TIDE_TEXT(partial)); /* of a crash */
    tide_status rc = tide_folder_write(dir, TIDE_TEXT(partial), 0, tide_text_of(marker), err);
    if (rc == TIDE_OK)
        rc = tide_folder_place(dir, TIDE_TEXT(partial), TIDE_TEXT(TIDE_DRIVE_MARKER), 0, NULL, err);
    if (rc != TIDE_OK)
        marker_drop(dir, TIDE_TEXT(partial));
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

bool tide_drive_scan_is_known(const struct tide_drive_found *known, const struct tide_entry *entry)
{
    return known->kind == TIDE_DRIVE_FILE && known->content.has_strong &&
           known->content.bytes == entry->bytes && known->mtime_ns == entry->mtime_ns &&
           known->ctime_ns == entry->ctime_ns && known->identity.dev == entry->dev &&
           known->identity.inode == entry->inode && entry->mtime_ns + RACY_NS <= known->hashed_ns &&
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
    if (known != NULL && tide_drive_scan_is_known(known, entry)) {
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

/* Another file system (S13): what was known of its place stays as it was, unsure.  Whether the number
 * of the root's own file system is that of the last scan does not matter: some get a new one with
 * each mount. */
static bool is_other_mount(const struct walk *walk, const struct tide_entry *entry)
{
    return entry->dev != walk->root_entry.dev;
}

/* Files of ours are no sign of a user. */
static bool take_any(tide_text name, void *arg)
{
    *(bool *)arg = !tide_drive_name_is_ours(name);
    return tide_drive_name_is_ours(name);
}

bool tide_drive_is_other_folder(const struct tide_drive_identity *was, const struct tide_entry *is)
{
    return was->inode != is->inode ||
           (was->birth_ns != 0 && is->birth_ns != 0 && was->birth_ns != is->birth_ns);
}

/* Whether it is the folder that it was, or another one with something in it.  TIDE_STALE: an empty folder has
 * taken the place of one that had something in it, which is what a mount inside of the root leaves behind
 * (F13); a user who wants all of it deleted removes the folder, too.  What cannot be read proves nothing: its
 * row must not get the identity of a folder that may be such a place (S13, F14). */
static tide_status check_same(int dir, const struct tide_drive_identity *was)
{
    struct tide_entry self;
    bool any = false;
    TIDE_TRY(tide_folder_look_self(dir, &self, NULL));
    if (!tide_drive_is_other_folder(was, &self))
        return TIDE_OK;
    const tide_status rc = tide_folder_list(dir, take_any, &any, NULL); /* ends early, if any is */
    if (any)
        return TIDE_OK;
    return rc == TIDE_OK ? TIDE_STALE : rc;
}

/* Whether the folder can be entered, and is the one that it was (S13); else it is unsure with all that is
 * beneath it, and its row keeps its identity. */
static bool may_enter(struct walk *walk, int dir, struct tide_drive_found *found,
                      const struct tide_drive_found *known)
{
    int inside = -1;
    const bool was_full = known != NULL && known->kind == TIDE_DRIVE_FOLDER && known->has_below;
    const bool open = tide_folder_enter(dir, found->name, &inside, NULL) == TIDE_OK;
    const tide_status same = open && was_full ? check_same(inside, &known->identity) : TIDE_OK;
    struct tide_entry marker;
    const bool other_drive =
        open && tide_folder_look(inside, TIDE_TEXT(TIDE_DRIVE_MARKER), &marker, NULL) == TIDE_OK;
    tide_folder_close(inside);
    if (other_drive) { /* DSC4 */
        found->state = TIDE_DRIVE_LOCAL_SKIPPED;
        skipped(walk, TIDE_DRIVE_SKIP_DRIVE, TIDE_DRIVE_NAME_OK);
        return false;
    }
    if (open && same == TIDE_OK)
        return true;
    if (known != NULL)
        found->identity = known->identity;
    found->state = same == TIDE_STALE ? TIDE_DRIVE_LOCAL_UNSURE : TIDE_DRIVE_LOCAL_UNREAD;
    skipped(walk, same == TIDE_STALE ? TIDE_DRIVE_SKIP_MOUNT : TIDE_DRIVE_SKIP_UNREADABLE,
            TIDE_DRIVE_NAME_OK);
    return false;
}

/* It is there and cannot be looked at: what its row says may still be so, and it may be what is missing
 * elsewhere (DSC5). */
static tide_status look_failed(struct walk *walk, tide_text name,
                               const struct tide_drive_found *known)
{
    struct tide_drive_found found = {.name = name, .kind = TIDE_DRIVE_FILE};
    if (known != NULL)
        found = *known;
    found.state = TIDE_DRIVE_LOCAL_UNREAD;
    skipped(walk, TIDE_DRIVE_SKIP_UNREADABLE, TIDE_DRIVE_NAME_OK);
    return tide_drive_compare_found(walk->compare, &found, NULL, walk->err);
}

static tide_status look_at(struct walk *walk, int dir, uint64_t parent, tide_text name)
{
    const struct tide_drive_found *known = tide_drive_compare_known(walk->compare, name);
    struct tide_entry entry;
    const tide_status rc = tide_folder_look(dir, name, &entry, NULL);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK; /* removed since the folder was listed */
    if (rc != TIDE_OK)
        return look_failed(walk, name, known);
    struct tide_drive_found found = {.name = name,
                                     .kind = entry.kind == TIDE_ENTRY_FOLDER ? TIDE_DRIVE_FOLDER
                                                                             : TIDE_DRIVE_FILE,
                                     .state = TIDE_DRIVE_LOCAL_LIVE};
    describe(&found, &entry);
    const tide_text path = tide_buf_text(&walk->path);
    bool enter = false;
    if (must_skip(walk, parent, name, &entry)) {
        found.state = TIDE_DRIVE_LOCAL_SKIPPED;
    } else if (is_other_mount(walk, &entry)) {
        if (known != NULL)
            found.identity = known->identity; /* so that it is seen again in the next scan */
        found.state = TIDE_DRIVE_LOCAL_UNSURE;
        skipped(walk, TIDE_DRIVE_SKIP_MOUNT, TIDE_DRIVE_NAME_OK);
    } else if (entry.kind == TIDE_ENTRY_FILE) {
        look_at_file(walk, dir, &found, known, &entry);
    } else {
        enter = may_enter(walk, dir, &found, known);
    }
    return tide_drive_compare_found(walk->compare, &found, enter ? &path : NULL, walk->err);
}

/* ---- folders ---- */

static bool take_name(tide_text name, void *arg)
{
    struct walk *walk = arg;
    /* Our own files are not part of the tree; a step aside is (D24). */
    if (name.bytes >= 10 && memcmp(name.data, ".tidemark-", 10) == 0) {
        walk->has_marker = walk->has_marker || tide_text_equal(name, TIDE_TEXT(TIDE_DRIVE_MARKER));
        if (walk->scan->ops->ours != NULL)
            walk->scan->ops->ours(walk->scan->arg, name);
        return true;
    }
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

/* The folder, or the nearest one above it that has a row. */
static tide_status begin_at(struct walk *walk, tide_text path)
{
    uint64_t row = 0;
    for (;;) {
        const tide_status rc = tide_drive_folder_at(walk->scan->db, path, &row, walk->err);
        if (rc == TIDE_OK)
            return tide_drive_compare_add(walk->compare, row, path, walk->err);
        if (rc != TIDE_NOT_FOUND)
            return rc;
        const char *slash = memrchr(path.data, '/', path.bytes);
        path.bytes = slash == NULL ? 0 : (size_t)(slash - path.data);
    }
}

static tide_status unread(struct walk *walk, tide_text path, tide_status rc)
{
    if (walk->names_full)
        return tide_error_set(walk->err, TIDE_FULL, "a folder is too large");
    /* It was named to us, and is no longer there, or a disk is not: what is above it knows whether it is gone.
     * Bounded, because a program may make and remove it all the time. */
    if ((rc == TIDE_NOT_FOUND || rc == TIDE_STALE) && path.bytes > 0 &&
        walk->climbs < CLIMBS_MAX * walk->scan->folders_count) {
        walk->climbs++;
        const char *slash = memrchr(path.data, '/', path.bytes);
        return begin_at(walk,
                        (tide_text){path.data, slash == NULL ? 0 : (size_t)(slash - path.data)});
    }
    TIDE_TRY(set_path(walk, TIDE_TEXT_NONE, path));
    skipped(walk, TIDE_DRIVE_SKIP_UNREADABLE, TIDE_DRIVE_NAME_OK);
    return tide_drive_compare_unread(walk->compare, walk->err); /* DSC1 */
}

/* Those with names of ours, or the others (DCM5). */
static tide_status look_at_all(struct walk *walk, int dir, uint64_t row, tide_text path, bool ours)
{
    for (size_t at = 0; at < walk->names.bytes;) {
        const tide_text name = tide_text_of(walk->names.data + at);
        at += name.bytes + 1;
        if (tide_drive_name_is_ours(name) != ours)
            continue;
        TIDE_TRY(set_path(walk, path, name));
        TIDE_TRY(look_at(walk, dir, row, name));
    }
    return TIDE_OK;
}

static tide_status read_folder(struct walk *walk, uint64_t row, tide_text path)
{
    int dir = -1;
    struct tide_drive_local_look known;
    tide_buf_clear(&walk->names);
    walk->has_marker = false;
    tide_status rc = tide_folder_enter(walk->root, path, &dir, NULL);
    if (rc == TIDE_OK)
        rc = tide_folder_list(dir, take_name, walk, NULL);
    /* It was named to us, or got its marker right now: it is no folder of this drive any more (DSC4). */
    if (rc == TIDE_OK && walk->has_marker && path.bytes > 0)
        rc = TIDE_NOT_FOUND;
    /* Named to us, not found in the folder above it: look_at() has not seen it. */
    if (rc == TIDE_OK && path.bytes > 0 && walk->scan->folders_count > 0 &&
        tide_drive_look_local(walk->scan->db, row, &known, NULL) == TIDE_OK)
        rc = check_same(dir, &known.identity);
    if (rc != TIDE_OK) {
        tide_folder_close(dir);
        return unread(walk, path, rc);
    }
    rc = look_at_all(walk, dir, row, path, true);
    if (rc == TIDE_OK)
        rc = look_at_all(walk, dir, row, path, false);
    tide_folder_close(dir);
    return rc == TIDE_OK ? tide_drive_compare_read(walk->compare, walk->err) : rc;
}

static tide_status walk_all(struct walk *walk)
{
    uint64_t row = 0;
    tide_text path = TIDE_TEXT_NONE;
    if (walk->scan->folders_count == 0)
        TIDE_TRY(begin_at(walk, TIDE_TEXT_NONE));
    for (size_t i = 0; i < walk->scan->folders_count; i++)
        TIDE_TRY(begin_at(walk, walk->scan->folders[i]));
    for (;;) {
        const tide_status rc = tide_drive_compare_next(walk->compare, &row, &path, walk->err);
        if (rc != TIDE_OK)
            return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
        TIDE_TRY(read_folder(walk, row, path));
    }
}

/* DSC2: the path still leads to the directory that was walked, and it is still marked. */
static bool is_still_there(struct walk *walk)
{
    int again = -1;
    struct tide_entry entry;
    bool same = tide_folder_open(walk->scan->root, &again, NULL) == TIDE_OK &&
                tide_folder_look_self(again, &entry, NULL) == TIDE_OK &&
                entry.dev == walk->root_entry.dev && entry.inode == walk->root_entry.inode &&
                tide_drive_marker_check(again, walk->scan->marker, NULL) == TIDE_OK;
    tide_folder_close(again);
    return same;
}

static tide_status walk_and_check(struct walk *walk, bool *complete_out)
{
    const struct tide_drive_scan *scan = walk->scan;
    TIDE_TRY(tide_folder_open(scan->root, &walk->root, walk->err));
    TIDE_TRY(tide_folder_look_self(walk->root, &walk->root_entry, walk->err));
    TIDE_TRY(tide_drive_marker_check(walk->root, scan->marker, walk->err));
    TIDE_TRY(walk_all(walk));
    const bool complete = is_still_there(walk);
    TIDE_TRY(tide_drive_compare_end(walk->compare, complete, walk->err));
    *complete_out = complete;
    return TIDE_OK;
}

tide_status tide_drive_scan(const struct tide_drive_scan *scan, tide_mem *mem, bool *complete_out,
                            uint64_t *hashed_out, tide_error *err)
{
    struct walk walk = {.scan = scan, .err = err, .root = -1};
    struct tide_rows_kept kept = {.count = 0};
    struct tide_drive_compare_options options = {.db = scan->db,
                                                 .write = scan->ops->write,
                                                 .arg = scan->arg,
                                                 .all = scan->folders_count == 0};
    if (scan->db.kept == NULL)
        options.db.kept = &kept; /* one statement for each folder */
    TIDE_TRY(tide_drive_compare_new(&options, mem, &walk.compare, err));
    tide_buf_init(&walk.names, mem, NAMES_BYTES_MAX);
    tide_buf_init(&walk.path, mem, PATH_BYTES_MAX);
    const tide_status rc = walk_and_check(&walk, complete_out);
    if (rc == TIDE_OK)
        *hashed_out = walk.hashed_bytes;
    tide_folder_close(walk.root);
    tide_buf_done(&walk.path);
    tide_buf_done(&walk.names);
    tide_drive_compare_free(walk.compare);
    tide_rows_kept_done(&kept);
    return rc;
}
