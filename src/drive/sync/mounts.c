/* mounts.c - shared folders: a shortcut in a drive becomes a drive of its own, in the folder at its place
 * (D16, D35).
 *
 * Part of the sync of the drive around it, when the list of changes was read.  Each shortcut is compared with its
 * place here, by the marker in it, and at most one step is made and recorded:
 *
 *   1  register  a row in the list of drives, with a new marker, in one transaction (drive/mounts.h)
 *   2  make      a folder under a name of ours, with its marker, which then gets its name
 *   3  attach    the state, and the first sync, in one transaction
 *
 * A crash after 1 finds the row and makes the folder; after 2 it finds the marker and attaches.  A folder
 * that was moved because its shortcut was, and whose row still has the old place, is found by its
 * marker at the new one.  No step deletes anything but rows (drive/mounts.h DMT2).
 *
 * A folder is attached only where nothing is, or an empty folder: what a user has in a folder of
 * that name was never meant for its owner. */
#include "drive/mounts.h"

#include "base/check.h"
#include "drive/ids.h"
#include "drive/sync/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LATER_MS = 1000 };

/* ---- the list ---- */

struct known {
    struct tide_drive_mount mount;
    bool placed;                       /* the folder that it is in is here: */
    char folder[TIDE_DRIVE_DIR_BYTES]; /* its path below the root */
    char path[TIDE_DRIVE_DIR_BYTES + TIDE_DRIVE_LOOK_NAME_BYTES]; /* of the mount */
    struct tide_drive_row row;                                    /* of its drive, if it has one */
    char said[TIDE_DRIVE_WHY_BYTES];                              /* why it cannot be attached */
};

struct listing {
    tide_drive *drive;
    struct known *list;
    size_t count, room;
    bool failed;
};

static void take_mount(const struct tide_drive_mount *mount, void *arg)
{
    struct listing *listing = arg;
    listing->failed = listing->failed || !TIDE_GROW_IN(listing->drive->mem, listing->list,
                                                       listing->room, listing->count + 1, 10000);
    if (listing->failed)
        return;
    memset(&listing->list[listing->count], 0, sizeof *listing->list);
    listing->list[listing->count++].mount = *mount;
}

/* Where its folder here should be. */
static tide_status find_place(tide_rows db, struct known *known, tide_error *err)
{
    tide_auto_buf path = tide_buf_heap(sizeof known->folder);
    uint64_t row = 0;
    if (known->mount.shortcut != TIDE_DRIVE_SHORTCUT_THERE)
        return TIDE_OK;
    tide_status rc = tide_drive_row_of_item(db, known->mount.folder, &row, err);
    if (rc == TIDE_OK)
        rc = tide_drive_path_of_row(db, row, &path, err);
    if (rc == TIDE_NOT_FOUND || rc == TIDE_FULL)
        return TIDE_OK;
    TIDE_TRY(rc);
    known->placed = path.bytes < sizeof known->folder;
    (void)snprintf(known->folder, sizeof known->folder, "%.*s", (int)path.bytes,
                   path.bytes == 0 ? "" : path.data);
    (void)snprintf(known->path, sizeof known->path, "%s%s%s", known->folder,
                   path.bytes == 0 ? "" : "/", known->mount.name);
    return TIDE_OK;
}

static tide_status read_list(const struct tide_drive_looking *looking, struct listing *listing,
                             tide_error *err)
{
    struct tide_drive_reader *reader = NULL;
    TIDE_TRY(tide_drive_reader_take(looking->drive, &reader, err));
    const tide_rows db = tide_drive_reader_rows(reader, looking->row->number);
    tide_status rc = tide_drive_mounts_each(db, looking->row->number, take_mount, listing, err);
    if (rc == TIDE_OK && listing->failed)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for the shared folders");
    for (size_t i = 0; rc == TIDE_OK && i < listing->count; i++) {
        struct known *known = &listing->list[i];
        rc = find_place(db, known, err);
        if (rc == TIDE_OK && known->mount.drive != 0)
            rc = tide_drives_get(db, known->mount.drive, &known->row, err);
    }
    tide_drive_reader_give(looking->drive, reader);
    return rc;
}

/* ---- a place here ---- */

typedef enum place {
    PLACE_UNKNOWN, /* it cannot be looked at: proves nothing (S13) */
    PLACE_ABSENT,
    PLACE_EMPTY, /* a folder with nothing in it */
    PLACE_OURS,  /* it has the mount's marker */
    PLACE_TAKEN,
} place;

static bool take_any(tide_text name, void *arg)
{
    (void)name;
    *(bool *)arg = true;
    return false;
}

/* "a/b" -> "a", "b". */
static void split(const char *path, tide_text *folder_out, tide_text *name_out)
{
    const char *slash = strrchr(path, '/');
    *folder_out = slash == NULL ? TIDE_TEXT("") : (tide_text){path, (size_t)(slash - path)};
    *name_out = tide_text_of(slash == NULL ? path : slash + 1);
}

static place look_inside(int dir, const char *marker)
{
    bool any = false;
    if (marker[0] != '\0' && tide_drive_marker_check(dir, marker, NULL) == TIDE_OK)
        return PLACE_OURS;
    const tide_status rc =
        tide_folder_list(dir, take_any, &any, NULL); /* it ends early, if any is */
    return any ? PLACE_TAKEN : rc == TIDE_OK ? PLACE_EMPTY : PLACE_UNKNOWN;
}

static place look_at(int root, const char *path, const char *marker)
{
    tide_text folder, name;
    struct tide_entry entry;
    int dir = -1, inside = -1;
    place is = PLACE_UNKNOWN;
    split(path, &folder, &name);
    if (tide_folder_enter(root, folder, &dir, NULL) != TIDE_OK)
        return PLACE_UNKNOWN;
    const tide_status rc = tide_folder_look(dir, name, &entry, NULL);
    if (rc == TIDE_NOT_FOUND)
        is = PLACE_ABSENT;
    else if (rc == TIDE_OK && entry.kind != TIDE_ENTRY_FOLDER)
        is = PLACE_TAKEN;
    else if (rc == TIDE_OK && tide_folder_enter(dir, name, &inside, NULL) == TIDE_OK)
        is = look_inside(inside, marker);
    tide_folder_close(inside);
    tide_folder_close(dir);
    return is;
}

/* ---- steps, each a transaction ---- */

typedef enum step { STATE, REGISTER, ADOPT, MOVED, RELEASE, FORGET } step;

struct changing {
    const struct tide_drive_looking *looking;
    struct known *known;
    step step;
    tide_drive_mount_state state;
    const char *why;
    const char *from; /* ADOPT: the shortcut before */
    char dir[sizeof(((struct known *)0)->path) + TIDE_DRIVE_DIR_BYTES];
    bool sync; /* and have it synced */
};

static tide_status enqueue_sync(tide_transaction *transaction, const struct changing *changing,
                                tide_error *err)
{
    struct tide_drive_request request;
    tide_drive_request(changing->known->mount.drive, false, &request);
    const struct tide_spec spec = {.kind = changing->looking->drive->sync_kind,
                                   .account = changing->looking->row->account,
                                   .payload = request.payload,
                                   .dedupe = request.dedupe};
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

static tide_status change(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct changing *changing = arg;
    struct known *known = changing->known;
    const tide_rows db = tide_transaction_rows(transaction);
    const uint32_t parent = changing->looking->row->number;
    const char *id = known->mount.id;
    switch (changing->step) {
    case REGISTER:
        return tide_drive_mount_register(db, parent, id, known->mount.name, &known->row, err);
    case ADOPT:
        return tide_drive_mount_adopt(db, parent, changing->from, id, err);
    case MOVED:
        TIDE_TRY(
            tide_drive_mount_moved(db, known->mount.drive, changing->dir, known->mount.name, err));
        break;
    case RELEASE:
        return tide_drive_mount_release(db, parent, id, err);
    case FORGET:
        return tide_drive_mount_forget(db, parent, id, err);
    case STATE:
        TIDE_TRY(tide_drive_mount_state_set(db, parent, id, changing->state, changing->why, err));
        break;
    }
    return changing->sync ? enqueue_sync(transaction, changing, err) : TIDE_OK;
}

static tide_status make_step(struct changing *changing, tide_error *err)
{
    TIDE_TRY(tide_transact(changing->looking->drive->options.engine, change, changing, err));
    tide_drive_watch_look(changing->looking->drive);
    return TIDE_OK;
}

/* Nothing is written if it is so already. */
static tide_status becomes(const struct tide_drive_looking *looking, struct known *known,
                           tide_drive_mount_state state, const char *why, tide_error *err)
{
    if (known->mount.state == state && strcmp(known->mount.why, why) == 0)
        return TIDE_OK;
    struct changing changing = {.looking = looking,
                                .known = known,
                                .step = STATE,
                                .state = state,
                                .why = why,
                                .sync = state == TIDE_DRIVE_MOUNT_ATTACHED};
    TIDE_TRY(make_step(&changing, err));
    known->mount.state = state;
    (void)snprintf(known->mount.why, sizeof known->mount.why, "%.255s", why);
    return TIDE_OK;
}

static tide_status simply(const struct tide_drive_looking *looking, struct known *known, step which,
                          tide_error *err)
{
    struct changing changing = {.looking = looking, .known = known, .step = which};
    return make_step(&changing, err);
}

static tide_status moves_to(const struct tide_drive_looking *looking, struct known *known,
                            tide_error *err)
{
    /* A sync of it that ran meanwhile did not find its folder. */
    struct changing changing = {.looking = looking, .known = known, .step = MOVED, .sync = true};
    (void)snprintf(changing.dir, sizeof changing.dir, "%s/%s", looking->row->dir, known->path);
    if (strcmp(changing.dir, known->row.dir) == 0)
        return TIDE_OK;
    TIDE_TRY(make_step(&changing, err));
    (void)snprintf(known->row.dir, sizeof known->row.dir, "%.4095s", changing.dir);
    return TIDE_OK;
}

/* ---- the folder ---- */

/* The folder appears with its marker in it: no scan of the drive around it ever sees it without. */
static tide_status make_folder(int root, struct known *known, tide_error *err)
{
    tide_text folder, name;
    char temporary[64], whole[2 * TIDE_DRIVE_DIR_BYTES];
    int dir = -1;
    split(known->path, &folder, &name);
    (void)snprintf(temporary, sizeof temporary, ".tidemark-mount-%" PRIu32, known->mount.drive);
    TIDE_TRY(tide_folder_enter(root, folder, &dir, err));
    tide_status rc = tide_folder_make(dir, tide_text_of(temporary), err);
    if (rc == TIDE_EXISTS)
        rc = TIDE_OK; /* of a crash */
    const size_t head = strlen(known->row.dir) - name.bytes;
    (void)snprintf(whole, sizeof whole, "%.*s%s", (int)head, known->row.dir, temporary);
    if (rc == TIDE_OK)
        rc = tide_drive_marker_make(whole, known->row.marker, err);
    if (rc == TIDE_EXISTS)
        rc = TIDE_OK;
    if (rc == TIDE_OK)
        rc = tide_folder_move(dir, tide_text_of(temporary), dir, name, err);
    tide_folder_close(dir);
    return rc;
}

static tide_status take_place(int root, struct known *known, place is, tide_error *err)
{
    return is == PLACE_EMPTY ? tide_drive_marker_make(known->row.dir, known->row.marker, err)
                             : make_folder(root, known, err);
}

/* Follows its shortcut, which was renamed or moved online. */
static tide_status move_folder(int root, const char *from, const struct known *known,
                               tide_error *err)
{
    tide_text old_folder, old_name, folder, name;
    int dir = -1, to_dir = -1;
    split(from, &old_folder, &old_name);
    split(known->path, &folder, &name);
    TIDE_TRY(tide_folder_enter(root, old_folder, &dir, err));
    tide_status rc = tide_folder_enter(root, folder, &to_dir, err);
    if (rc == TIDE_OK)
        rc = tide_folder_move(dir, old_name, to_dir, name, err);
    tide_folder_close(to_dir);
    tide_folder_close(dir);
    return rc;
}

/* ---- one that has no drive yet ---- */

struct same {
    const struct known *known;
    const struct tide_drive_row *around;
    struct tide_drive_row row; /* number 0: there is none */
    size_t drives;
};

/* The same folder in two places, or in a whole drive that is synced as well, would be synced twice. */
static void find_same(const struct tide_drive_row *row, void *arg)
{
    struct same *same = arg;
    const struct tide_drive_mount *mount = &same->known->mount;
    same->drives++;
    if (strcasecmp(row->drive_id, mount->target_drive) == 0 &&
        (row->parent == 0 || strcmp(row->root_id, mount->target_id) == 0))
        same->row = *row;
}

/* Why it cannot be attached, whatever its target says; NULL: it can.  *lost_out: a mount whose shortcut is
 * gone leads there, and this one takes its place. */
static const char *refusal_of(const struct tide_drive_looking *looking, const struct listing *all,
                              struct known *known, const char **lost_out, tide_error *err)
{
    struct same same = {.known = known, .around = looking->row};
    struct tide_drive_reader *reader = NULL;
    const tide_text name = tide_text_of(known->mount.name);
    if (known->mount.target_drive[0] == '\0' || known->mount.target_id[0] == '\0')
        return "OneDrive does not say where it leads";
    if (tide_drive_name_down(name) != TIDE_DRIVE_NAME_OK || strchr(known->mount.name, '/') != NULL)
        return "its name cannot be that of a folder here";
    if (tide_drive_reader_take(looking->drive, &reader, err) != TIDE_OK)
        return "the list of drives cannot be read";
    (void)tide_drives_each(tide_drive_reader_rows(reader, looking->row->number), find_same, &same,
                           err);
    tide_drive_reader_give(looking->drive, reader);
    for (size_t i = 0; i < all->count; i++)
        if (same.row.number != 0 && all->list[i].mount.drive == same.row.number &&
            all->list[i].mount.shortcut == TIDE_DRIVE_SHORTCUT_GONE) {
            *lost_out = all->list[i].mount.id;
            return NULL;
        }
    if (same.row.number != 0) {
        (void)snprintf(known->said, sizeof known->said, "it is synced already, as drive \"%s\"",
                       same.row.name);
        return known->said;
    }
    return same.drives >= TIDE_DRIVE_MOUNTS_MAX ? "there are too many drives" : NULL;
}

/* TIDE_OK: *folder_out, or it was found refused and is recorded so. */
static tide_status ask_target(const struct tide_drive_looking *looking, struct known *known,
                              bool *folder_out, tide_error *err)
{
    struct tide_onedrive_answer answer = {.value = NULL};
    tide_error why = {TIDE_OK, 0, ""};
    const tide_status rc = tide_onedrive_get(looking->user->client, looking->job,
                                             tide_text_of(known->mount.target_drive),
                                             tide_text_of(known->mount.target_id), &answer, &why);
    *folder_out = rc == TIDE_OK && answer.item.kind == TIDE_ONEDRIVE_FOLDER && !answer.item.deleted;
    tide_onedrive_answer_done(&answer);
    switch (rc) {
    case TIDE_AUTH: /* these concern the whole job */
    case TIDE_CANCELED:
    case TIDE_STOPPED:
    case TIDE_THROTTLED:
        if (err != NULL)
            *err = why;
        return rc;
    case TIDE_GONE:
    case TIDE_PERMANENT:
        return becomes(looking, known, TIDE_DRIVE_MOUNT_REFUSED, why.text, err);
    default: /* another time */
        return rc == TIDE_OK && !*folder_out
                   ? becomes(looking, known, TIDE_DRIVE_MOUNT_HELD, "it leads to no folder", err)
                   : TIDE_OK;
    }
}

static void fill_row(const struct tide_drive_looking *looking, struct known *known)
{
    struct tide_drive_row *row = &known->row;
    tide_world *world = looking->drive->options.world;
    *row = *looking->row;
    row->number = 0;
    (void)snprintf(row->dir, sizeof row->dir, "%.2000s/%.2000s", looking->row->dir, known->path);
    (void)snprintf(row->drive_id, sizeof row->drive_id, "%.255s", known->mount.target_drive);
    (void)snprintf(row->root_id, sizeof row->root_id, "%.255s", known->mount.target_id);
    (void)snprintf(row->marker, sizeof row->marker, "%016" PRIx64 "%016" PRIx64,
                   tide_world_random_u64(world), tide_world_random_u64(world));
    row->business = !tide_drive_id_is_personal(tide_text_of(known->mount.target_drive));
}

/* Registers it, if that is possible now; then it has a drive. */
static tide_status get_drive(const struct tide_drive_looking *looking, const struct listing *all,
                             struct known *known, int root, tide_error *err)
{
    const char *lost = NULL;
    bool folder = false;
    const place is = look_at(root, known->path, "");
    if (is == PLACE_UNKNOWN ||
        (known->mount.state == TIDE_DRIVE_MOUNT_DETACHED && is != PLACE_EMPTY))
        return TIDE_OK; /* removed here; a user who wants it again makes an empty folder */
    const char *why = refusal_of(looking, all, known, &lost, err);
    if (why == NULL && is == PLACE_TAKEN && lost == NULL)
        why = "another file or folder has its place here: move that away";
    if (why == NULL && strlen(looking->row->dir) + strlen(known->path) + 2 > 4000)
        why = "its path is too long";
    if (why != NULL)
        return becomes(looking, known, TIDE_DRIVE_MOUNT_HELD, why, err);
    if (lost != NULL) {
        struct changing changing = {
            .looking = looking, .known = known, .step = ADOPT, .from = lost};
        return make_step(&changing, err); /* the next look places it */
    }
    TIDE_TRY(ask_target(looking, known, &folder, err));
    if (!folder)
        return TIDE_OK;
    fill_row(looking, known);
    TIDE_TRY(simply(looking, known, REGISTER, err));
    known->mount.drive = known->row.number;
    known->mount.state = TIDE_DRIVE_MOUNT_NEW;
    known->mount.why[0] = '\0';
    return TIDE_OK;
}

/* ---- one that has a drive ---- */

static tide_status attached(const struct tide_drive_looking *looking, struct known *known,
                            tide_error *err)
{
    TIDE_TRY(moves_to(looking, known, err));
    if (known->mount.state == TIDE_DRIVE_MOUNT_REFUSED)
        return TIDE_OK; /* its own sync says when that is over */
    return becomes(looking, known, TIDE_DRIVE_MOUNT_ATTACHED, "", err);
}

/* Its folder was never made: a crash came between, or something is in the way. */
static tide_status first_time(const struct tide_drive_looking *looking, struct known *known,
                              int root, place is, tide_error *err)
{
    tide_error why = {TIDE_OK, 0, ""};
    if (is == PLACE_TAKEN)
        return becomes(looking, known, TIDE_DRIVE_MOUNT_NEW,
                       "another file or folder has its place here: move that away", err);
    TIDE_TRY(moves_to(looking, known, err));
    if (take_place(root, known, is, &why) != TIDE_OK)
        return becomes(looking, known, TIDE_DRIVE_MOUNT_NEW, why.text, err);
    return attached(looking, known, err);
}

/* The path of its folder below the root of the drive around it, as recorded; "": it is not below. */
static const char *path_of(const struct tide_drive_looking *looking, const struct known *known)
{
    const size_t bytes = strlen(looking->row->dir);
    return strncmp(known->row.dir, looking->row->dir, bytes) == 0 && known->row.dir[bytes] == '/'
               ? known->row.dir + bytes + 1
               : "";
}

static tide_status settle(const struct tide_drive_looking *looking, const struct listing *all,
                          struct known *known, int root, tide_error *err)
{
    tide_error why = {TIDE_OK, 0, ""};
    const place is = look_at(root, known->path, known->row.marker);
    if (is == PLACE_UNKNOWN)
        return TIDE_OK;
    if (is == PLACE_OURS)
        return attached(looking, known, err);
    const char *was = path_of(looking, known);
    if (strcmp(was, known->path) != 0 && look_at(root, was, known->row.marker) == PLACE_OURS) {
        if (is != PLACE_ABSENT)
            return becomes(looking, known, TIDE_DRIVE_MOUNT_HELD,
                           "it was renamed online, and another file or folder has that name here",
                           err);
        if (move_folder(root, was, known, &why) != TIDE_OK)
            return becomes(looking, known, TIDE_DRIVE_MOUNT_HELD, why.text, err);
        return attached(looking, known, err);
    }
    if (known->mount.state == TIDE_DRIVE_MOUNT_NEW)
        return first_time(looking, known, root, is, err);
    if (is == PLACE_ABSENT)
        return becomes(looking, known, TIDE_DRIVE_MOUNT_DETACHED,
                       "its folder was removed or moved here; put it back, or make an empty one",
                       err);
    if (is == PLACE_TAKEN || known->mount.state != TIDE_DRIVE_MOUNT_DETACHED)
        return becomes(looking, known, TIDE_DRIVE_MOUNT_HELD,
                       "another file or folder has its place here: remove that, or put it back",
                       err);
    TIDE_TRY(
        simply(looking, known, RELEASE, err)); /* a user made an empty folder: from the start */
    known->mount.drive = 0;
    known->mount.state = TIDE_DRIVE_MOUNT_NEW;
    TIDE_TRY(get_drive(looking, all, known, root, err));
    return known->mount.drive == 0 ? TIDE_OK : first_time(looking, known, root, PLACE_EMPTY, err);
}

/* ---- one whose shortcut is gone ---- */

/* What is here stays, marked, so that the drive around it never sends it; when a user takes it away, all
 * is over. */
static tide_status shortcut_gone(const struct tide_drive_looking *looking, struct known *known,
                                 int root, tide_error *err)
{
    if (known->mount.drive == 0)
        return simply(looking, known, FORGET, err);
    const char *was = path_of(looking, known);
    const place is = was[0] == '\0' ? PLACE_UNKNOWN : look_at(root, was, known->row.marker);
    if (is == PLACE_ABSENT)
        return simply(looking, known, FORGET, err);
    return becomes(looking, known, TIDE_DRIVE_MOUNT_LOST,
                   "its shortcut is gone online; its files stay here and are not synced: move or "
                   "remove them",
                   err);
}

/* ---- all of them ---- */

static tide_status one(const struct tide_drive_looking *looking, const struct listing *all,
                       struct known *known, int root, bool *wait_out, tide_error *err)
{
    if (known->mount.shortcut == TIDE_DRIVE_SHORTCUT_GONE)
        return shortcut_gone(looking, known, root, err);
    if (known->mount.shortcut == TIDE_DRIVE_SHORTCUT_UNKNOWN)
        return TIDE_OK;
    if (!known->placed) {
        *wait_out = true;
        return TIDE_OK;
    }
    if (looking->ignore != NULL &&
        tide_ignored_here(looking->ignore, tide_text_of(known->path), true))
        return becomes(looking, known, TIDE_DRIVE_MOUNT_IGNORED, "it is ignored", err);
    if (known->mount.drive == 0)
        TIDE_TRY(get_drive(looking, all, known, root, err));
    return known->mount.drive == 0 ? TIDE_OK : settle(looking, all, known, root, err);
}

tide_status tide_drive_mounts(const struct tide_drive_looking *looking, bool *wait_out,
                              tide_error *err)
{
    struct listing listing = {.drive = looking->drive};
    int root = -1;
    if (looking->row->parent != 0)
        return TIDE_OK; /* drive/mounts.h DMT3 */
    tide_status rc = read_list(looking, &listing, err);
    if (rc == TIDE_OK && listing.count > 0)
        rc = tide_folder_open(looking->row->dir, &root, err);
    if (rc == TIDE_OK && listing.count > 0)
        rc = tide_drive_marker_check(root, looking->row->marker, err); /* S14 */
    for (size_t i = 0; rc == TIDE_OK && i < listing.count; i++)
        rc = one(looking, &listing, &listing.list[i], root, wait_out, err);
    tide_folder_close(root);
    tide_mem_free(looking->drive->mem, listing.list, listing.room * sizeof *listing.list);
    return rc;
}

/* ---- from other jobs ---- */

tide_status tide_drive_mounts_later(tide_drive *drive, const struct tide_drive_row *row,
                                    uint64_t until_ms, tide_error *err)
{
    char payload[96], dedupe[64];
    (void)snprintf(payload, sizeof payload,
                   "{\"drive\":%" PRIu32 ",\"here\":true,\"mounts\":%" PRIu64 "}", row->number,
                   until_ms);
    (void)snprintf(dedupe, sizeof dedupe, "drive:%" PRIu32 ":mounts", row->number);
    const struct tide_spec spec = {.kind = drive->sync_kind,
                                   .account = row->account,
                                   .payload = payload,
                                   .dedupe = dedupe,
                                   .delay_ms = LATER_MS};
    return tide_enqueue(drive->options.engine, &spec, 1, NULL, err);
}

tide_status tide_drive_mount_is_here(tide_drive *drive, const struct tide_drive_row *row,
                                     bool *here_out, tide_error *err)
{
    struct tide_drive_reader *reader = NULL;
    struct tide_drive_row around;
    int root = -1;
    *here_out = tide_folder_open(row->dir, &root, NULL) == TIDE_OK &&
                tide_drive_marker_check(root, row->marker, NULL) == TIDE_OK;
    tide_folder_close(root);
    if (*here_out)
        return TIDE_OK;
    TIDE_TRY(tide_drive_reader_take(drive, &reader, err));
    const tide_status rc =
        tide_drives_get(tide_drive_reader_rows(reader, row->parent), row->parent, &around, err);
    tide_drive_reader_give(drive, reader);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    return tide_drive_mounts_later(drive, &around, 0, err);
}

struct refusing {
    const struct tide_drive_row *row;
    const char *why;
};

static tide_status write_refused(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct refusing *refusing = arg;
    return tide_rows_do(
        tide_transaction_rows(transaction), "the shared folders", err,
        "UPDATE drive_mount SET state = ?2, why = ?3 WHERE drive = ?1 AND state IN (?4, ?5)",
        refusing->row->number,
        (int)(refusing->why[0] == '\0' ? TIDE_DRIVE_MOUNT_ATTACHED : TIDE_DRIVE_MOUNT_REFUSED),
        refusing->why, (int)TIDE_DRIVE_MOUNT_ATTACHED, (int)TIDE_DRIVE_MOUNT_REFUSED);
}

tide_status tide_drive_mount_refused(tide_drive *drive, const struct tide_drive_row *row,
                                     const char *why, tide_error *err)
{
    struct refusing refusing = {row, why};
    const bool was = row->mount == TIDE_DRIVE_MOUNT_REFUSED;
    if (was == (why[0] != '\0') && strcmp(row->mount_why, why) == 0)
        return TIDE_OK;
    return tide_transact(drive->options.engine, write_refused, &refusing, err);
}
