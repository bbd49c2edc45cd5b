#include "drive/watch/watcher.h"

#include "base/check.h"
#include "drive/watch/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = sizeof((tide_error *)0)->text };

struct drive {
    uint32_t number;
    bool seen;  /* by the last look at the list */
    char *name; /* these three in one piece of memory of `texts_bytes` */
    char *root;
    char *patterns;
    size_t texts_bytes;
    tide_ignore *ignore;
    tide_drive_tree *tree; /* NULL: not watched now */
    tide_drive_changes changes;
    uint64_t poll_ms, rescan_ms, open_at_ms;
    uint64_t polled_ms, scanned_ms;                     /* the last time */
    bool scan_now;                                      /* it is due, whenever it was last */
    bool asked;                                         /* for a sync, at least once */
    char trouble[TEXT_BYTES], sync_trouble[TEXT_BYTES]; /* what was told last; "": nothing */
};

struct tide_drive_watcher {
    tide_world *world;
    tide_mem *mem;
    const struct tide_drive_watch_ops *ops;
    void *arg;
    uint64_t again_ms;
    struct tide_waker waker;
    tide_thread *thread;
    bool stop, look; /* atomic */
    struct drive *drives[TIDE_DRIVE_WATCHED_MAX];
    size_t count;
    uint64_t now_ms;     /* of this step */
    uint64_t list_at_ms; /* the list is to be read then; UINT64_MAX: it was */
    char trouble[TEXT_BYTES];
};

/* ---- telling ---- */

/* Once, until it changes. */
static void trouble(tide_drive_watcher *watcher, const char *drive, char last[TEXT_BYTES],
                    const char *text)
{
    if (strcmp(last, text) == 0)
        return;
    (void)snprintf(last, TEXT_BYTES, "%s", text);
    if (text[0] != '\0')
        watcher->ops->tell(watcher->arg, drive, true, text);
}

/* ---- the list of drives ---- */

static void drive_free(tide_drive_watcher *watcher, struct drive *drive)
{
    tide_drive_tree_free(drive->tree);
    tide_ignore_free(drive->ignore);
    tide_drive_changes_done(&drive->changes);
    tide_mem_free(watcher->mem, drive->name, drive->texts_bytes);
    tide_mem_free(watcher->mem, drive, sizeof *drive);
}

static struct drive *drive_new(tide_drive_watcher *watcher, const struct tide_drive_watched *as,
                               tide_error *err)
{
    const size_t name = strlen(as->name) + 1, root = strlen(as->root) + 1;
    struct drive *drive = tide_mem_new(watcher->mem, sizeof *drive);
    if (drive == NULL)
        return NULL;
    tide_drive_changes_init(&drive->changes, watcher->mem);
    drive->number = as->number;
    drive->polled_ms = watcher->now_ms;
    drive->scan_now = true;
    drive->texts_bytes = name + root + as->ignore.bytes + 1;
    drive->name = tide_mem_new(watcher->mem, drive->texts_bytes);
    if (drive->name == NULL ||
        tide_ignore_new(as->ignore, watcher->mem, &drive->ignore, err) != TIDE_OK) {
        drive_free(watcher, drive);
        return NULL;
    }
    drive->root = drive->name + name;
    drive->patterns = drive->root + root;
    memcpy(drive->name, as->name, name);
    memcpy(drive->root, as->root, root);
    if (as->ignore.bytes > 0)
        memcpy(drive->patterns, as->ignore.data, as->ignore.bytes);
    return drive;
}

static bool is_same(const struct drive *drive, const struct tide_drive_watched *as)
{
    return drive->number == as->number && strcmp(drive->root, as->root) == 0 &&
           strcmp(drive->name, as->name) == 0 &&
           tide_text_equal(tide_text_of(drive->patterns), as->ignore);
}

static void times_set(struct drive *drive, const struct tide_drive_watched *as)
{
    TIDE_ASSERT(as->poll_ms > 0 && as->rescan_ms > 0);
    drive->poll_ms = as->poll_ms;
    drive->rescan_ms = as->rescan_ms;
}

/* A drive with other patterns is a new one: other folders are watched, and all is scanned. */
static void visit(const struct tide_drive_watched *as, void *arg)
{
    tide_drive_watcher *watcher = arg;
    tide_error err = {TIDE_NO_MEMORY, 0, "no memory to watch a folder"};
    struct drive *drive = NULL;
    for (size_t i = 0; i < watcher->count; i++)
        if (is_same(watcher->drives[i], as)) {
            watcher->drives[i]->seen = true;
            times_set(watcher->drives[i], as);
            return;
        }
    if (watcher->count < TIDE_DRIVE_WATCHED_MAX)
        drive = drive_new(watcher, as, &err);
    else
        (void)tide_error_set(&err, TIDE_FULL, "more than %d drives cannot be watched",
                             (int)TIDE_DRIVE_WATCHED_MAX);
    if (drive == NULL) {
        trouble(watcher, as->name, watcher->trouble, err.text);
        return;
    }
    drive->seen = true;
    times_set(drive, as);
    watcher->drives[watcher->count++] = drive;
}

/* False: it could not be read, and what is watched stays watched. */
static bool look_at_list(tide_drive_watcher *watcher)
{
    tide_error err = {TIDE_OK, 0, ""};
    for (size_t i = 0; i < watcher->count; i++)
        watcher->drives[i]->seen = false;
    if (watcher->ops->drives(watcher->arg, visit, watcher, &err) != TIDE_OK) {
        trouble(watcher, "", watcher->trouble, err.text);
        return false;
    }
    size_t kept = 0;
    for (size_t i = 0; i < watcher->count; i++) {
        struct drive *drive = watcher->drives[i];
        if (drive->seen)
            watcher->drives[kept++] = drive;
        else
            drive_free(watcher, drive);
    }
    watcher->count = kept;
    return true;
}

/* ---- one drive ---- */

/* How long it takes until everything is scanned again. */
static uint64_t rescan_ms(const struct drive *drive)
{
    const bool whole =
        drive->tree != NULL && tide_drive_tree_now(drive->tree) == TIDE_DRIVE_TREE_WHOLE;
    return whole || drive->rescan_ms < TIDE_DRIVE_UNWATCHED_MS ? drive->rescan_ms
                                                               : TIDE_DRIVE_UNWATCHED_MS;
}

static uint64_t scan_at_ms(const struct drive *drive)
{
    return drive->scan_now ? 0 : drive->scanned_ms + rescan_ms(drive);
}

static uint64_t poll_at_ms(const struct drive *drive)
{
    return drive->polled_ms + drive->poll_ms;
}

static void scan_all(struct drive *drive, uint64_t now_ms)
{
    tide_drive_changes_add_all(&drive->changes, now_ms);
    drive->scanned_ms = now_ms;
    drive->scan_now = false;
}

static void tell_part(tide_drive_watcher *watcher, struct drive *drive)
{
    char text[TEXT_BYTES];
    (void)snprintf(text, sizeof text,
                   "not all folders can be watched, so everything is scanned every %" PRIu64
                   " s: %.300s",
                   rescan_ms(drive) / 1000, tide_drive_tree_why(drive->tree));
    trouble(watcher, drive->name, drive->trouble, text);
}

static void open_tree(tide_drive_watcher *watcher, struct drive *drive, uint64_t now_ms)
{
    tide_error err = {TIDE_OK, 0, ""};
    char text[80];
    drive->open_at_ms = now_ms + watcher->again_ms;
    tide_drive_tree_free(drive->tree);
    drive->tree = NULL;
    if (tide_drive_tree_new(drive->root, drive->ignore, watcher->mem, &drive->tree, &err) ==
        TIDE_OK) {
        (void)snprintf(text, sizeof text, "%zu folders", tide_drive_tree_folders(drive->tree));
        watcher->ops->tell(watcher->arg, drive->name, false, text);
        drive->trouble[0] = '\0';
        if (tide_drive_tree_now(drive->tree) == TIDE_DRIVE_TREE_PART)
            tell_part(watcher, drive);
        scan_all(drive, now_ms);
        return;
    }
    trouble(watcher, drive->name, drive->trouble, err.text);
    if (now_ms >= scan_at_ms(drive))
        scan_all(drive, now_ms);
}

static void look_at_folder(tide_drive_watcher *watcher, struct drive *drive, uint64_t now_ms)
{
    if (drive->tree == NULL && now_ms >= drive->open_at_ms)
        open_tree(watcher, drive, now_ms);
    if (drive->tree == NULL)
        return;
    const tide_drive_tree_state before = tide_drive_tree_now(drive->tree);
    tide_drive_tree_take(drive->tree, &drive->changes, now_ms);
    const tide_drive_tree_state now = tide_drive_tree_now(drive->tree);
    if (now == TIDE_DRIVE_TREE_LOST) {
        trouble(watcher, drive->name, drive->trouble, tide_drive_tree_why(drive->tree));
        tide_drive_tree_free(drive->tree);
        drive->tree = NULL;
        drive->open_at_ms = now_ms + watcher->again_ms;
        scan_all(drive, now_ms); /* which finds out what it is */
    } else if (now != before) {
        tell_part(watcher, drive);
        drive->scan_now = true; /* folders came that are not watched */
    }
    if (now_ms >= scan_at_ms(drive) && now == TIDE_DRIVE_TREE_PART && before == now)
        open_tree(watcher, drive, now_ms); /* there may be room by now */
    else if (now_ms >= scan_at_ms(drive))
        scan_all(drive, now_ms);
}

static void ask_for_sync(tide_drive_watcher *watcher, struct drive *drive, uint64_t now_ms)
{
    tide_drive_folders folders;
    tide_error err = {TIDE_OK, 0, ""};
    tide_text path;
    tide_drive_folders_init(&folders, watcher->mem);
    const bool due = tide_drive_changes_take(&drive->changes, now_ms, &folders);
    const bool poll = now_ms >= poll_at_ms(drive);
    if (due || (poll && drive->asked)) { /* DWT1 */
        drive->asked = true;
        const tide_status rc = watcher->ops->sync(watcher->arg, drive->number, &folders, &err);
        trouble(watcher, drive->name, drive->sync_trouble, rc == TIDE_OK ? "" : err.text);
        if (rc != TIDE_OK && folders.all) /* DWT2 */
            tide_drive_changes_add_all(&drive->changes, now_ms);
        for (size_t at = 0; rc != TIDE_OK && tide_drive_folders_next(&folders, &at, &path);)
            tide_drive_changes_add(&drive->changes, path, false, now_ms);
    }
    if (poll)
        drive->polled_ms = now_ms;
    tide_drive_folders_done(&folders);
}

static uint64_t wake_at_ms(const struct drive *drive)
{
    /* A folder that is not there is scanned once it is. */
    const uint64_t folder_ms = drive->tree == NULL ? drive->open_at_ms : scan_at_ms(drive);
    const uint64_t poll_ms = poll_at_ms(drive);
    const uint64_t change_ms = tide_drive_changes_wake_at_ms(&drive->changes);
    const uint64_t own_ms = folder_ms < poll_ms ? folder_ms : poll_ms;
    return own_ms < change_ms ? own_ms : change_ms;
}

/* ---- the thread ---- */

/* Reads the list before what is online is looked at: a drive may have gone. */
static void tick(tide_drive_watcher *watcher)
{
    bool due = __atomic_exchange_n(&watcher->look, false, __ATOMIC_ACQ_REL) ||
               watcher->now_ms >= watcher->list_at_ms;
    for (size_t i = 0; i < watcher->count; i++)
        due = due || watcher->now_ms >= poll_at_ms(watcher->drives[i]);
    if (due)
        watcher->list_at_ms =
            look_at_list(watcher) ? UINT64_MAX : watcher->now_ms + watcher->again_ms;
}

/* Returns when to come back. */
static uint64_t step(tide_drive_watcher *watcher, uint64_t now_ms)
{
    watcher->now_ms = now_ms;
    tick(watcher);
    uint64_t at_ms = watcher->list_at_ms;
    for (size_t i = 0; i < watcher->count; i++) {
        struct drive *drive = watcher->drives[i];
        look_at_folder(watcher, drive, now_ms);
        ask_for_sync(watcher, drive, now_ms);
        const uint64_t own_ms = wake_at_ms(drive);
        at_ms = own_ms < at_ms ? own_ms : at_ms;
    }
    return at_ms;
}

static void run(void *arg)
{
    tide_drive_watcher *watcher = arg;
    tide_dir_watch *watches[TIDE_DRIVE_WATCHED_MAX];
    while (!__atomic_load_n(&watcher->stop, __ATOMIC_ACQUIRE) && !tide_world_dead(watcher->world)) {
        const uint64_t at_ms = step(watcher, tide_world_now_ms(watcher->world));
        for (size_t i = 0; i < watcher->count; i++)
            watches[i] = watcher->drives[i]->tree == NULL
                             ? NULL
                             : tide_drive_tree_watch(watcher->drives[i]->tree);
        const uint64_t now_ms = tide_world_now_ms(watcher->world); /* a step may take long */
        tide_dir_watch_wait(watches, watcher->count, &watcher->waker,
                            at_ms > now_ms ? at_ms - now_ms : 0);
    }
}

tide_status tide_drive_watcher_start(tide_world *world, tide_mem *mem,
                                     const struct tide_drive_watch_ops *ops, void *arg,
                                     uint64_t again_ms, tide_drive_watcher **watcher_out,
                                     tide_error *err)
{
    tide_drive_watcher *watcher = tide_mem_new(mem, sizeof *watcher);
    TIDE_ASSERT(again_ms > 0);
    if (watcher == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to watch folders");
    watcher->world = world;
    watcher->mem = mem;
    watcher->ops = ops;
    watcher->arg = arg;
    watcher->again_ms = again_ms;
    tide_status rc = tide_waker_open(&watcher->waker, err);
    if (rc == TIDE_OK)
        rc = tide_world_thread(world, "drive watch", run, watcher, &watcher->thread, err);
    if (rc == TIDE_OK)
        *watcher_out = watcher;
    else
        tide_drive_watcher_stop(watcher);
    return rc;
}

void tide_drive_watcher_look(tide_drive_watcher *watcher)
{
    __atomic_store_n(&watcher->look, true, __ATOMIC_RELEASE);
    tide_waker_wake(&watcher->waker);
}

void tide_drive_watcher_stop(tide_drive_watcher *watcher)
{
    if (watcher == NULL)
        return;
    __atomic_store_n(&watcher->stop, true, __ATOMIC_RELEASE);
    if (watcher->thread != NULL)
        tide_waker_wake(&watcher->waker);
    tide_world_join(watcher->world, watcher->thread);
    for (size_t i = 0; i < watcher->count; i++)
        drive_free(watcher, watcher->drives[i]);
    tide_waker_close(&watcher->waker);
    tide_mem_free(watcher->mem, watcher, sizeof *watcher);
}
