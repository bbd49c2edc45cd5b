/* leftovers.c - files of ours that a crash, or an action that was superseded, left behind (D42, I16).
 *
 *   .partial  the beginning of a download.  Its name says of which content: as long as a row online has
 *             that content and it is not here, its job continues it; else it goes.
 *   .old      a file that a download replaced, without its job (displaced.c).
 *   .copy     of a command that gives a copy's bytes to a file, and may still run.
 *
 * A file that was the user's is known by its identity, which a row or a baseline has.  It goes if its
 * bytes are known, else it becomes a copy.  A partial file that is removed while a download writes to
 * it ends that download as superseded: nothing is written behind a hole (world/folder.h). */
#include "drive/local/hash.h"
#include "drive/sync/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OURS ".tidemark-"
enum {
    NUMBER_AT = sizeof OURS - 1, /* eight digits, then the ending */
    ENDING_AT = NUMBER_AT + 8,
    LIST_BYTES_MAX = 4 << 20,
    SETTLED_MS = 60000,
    COPIED_MS = 24 * 3600000, /* no command takes that long */
};

struct sweep {
    const struct tide_drive_looking *looking;
    tide_rows db;
    int root;
    uint64_t now_ms;
    tide_text path;   /* of the folder that is listed */
    tide_buf list;    /* "folder\0name\0" of each */
    tide_map partial; /* number of a partial file's name -> whether it is wanted */
};

static bool ends_in(tide_text name, const char *ending)
{
    const size_t bytes = strlen(ending);
    return name.bytes == ENDING_AT + bytes && memcmp(name.data + ENDING_AT, ending, bytes) == 0;
}

bool tide_drive_is_leftover(tide_text name)
{
    return name.bytes > ENDING_AT && memcmp(name.data, OURS, NUMBER_AT) == 0 &&
           (ends_in(name, ".partial") || ends_in(name, ".old") || ends_in(name, ".copy"));
}

/* ---- which there are, and which of them are wanted ---- */

static uint64_t number_of(const char *name)
{
    char digits[9];
    memcpy(digits, name + NUMBER_AT, 8);
    digits[8] = '\0';
    return strtoull(digits, NULL, 16) + 1; /* maps have no key 0 */
}

static bool take_name(tide_text name, void *arg)
{
    struct sweep *sweep = arg;
    if (!tide_drive_is_leftover(name))
        return true;
    if (ends_in(name, ".partial") && !tide_map_put(&sweep->partial, number_of(name.data), 0))
        return false;
    /* Those that find no place here are for the next sweep. */
    return tide_buf_add(&sweep->list, sweep->path.data, sweep->path.bytes) == TIDE_OK &&
           tide_buf_add(&sweep->list, "", 1) == TIDE_OK &&
           tide_buf_add(&sweep->list, name.data, name.bytes) == TIDE_OK &&
           tide_buf_add(&sweep->list, "", 1) == TIDE_OK;
}

static void list_folder(tide_text path, void *arg)
{
    struct sweep *sweep = arg;
    const size_t before = sweep->list.bytes;
    int dir = -1;
    sweep->path = path;
    if (tide_folder_enter(sweep->root, path, &dir, NULL) != TIDE_OK)
        return;
    if (tide_folder_list(dir, take_name, sweep, NULL) != TIDE_OK)
        sweep->list.bytes = before;
    tide_folder_close(dir);
}

static void want(tide_text id, tide_text ctag, const struct tide_drive_content *content, void *arg)
{
    struct sweep *sweep = arg;
    char name[TIDE_DRIVE_TEMPORARY_BYTES];
    uint32_t wanted = 0;
    tide_drive_partial_name(id, ctag, content, name);
    if (tide_map_get(&sweep->partial, number_of(name), &wanted))
        (void)tide_map_put(&sweep->partial, number_of(name), 1); /* replaces: no memory */
}

/* ---- one of them ---- */

/* Not known by its identity: it is ours. */
static tide_status judge_ours(struct sweep *sweep, int dir, tide_text name,
                              const struct tide_entry *entry, bool *done_out, tide_error *err)
{
    const uint64_t changed_ms = entry->ctime_ns / 1000000;
    const uint64_t age_ms = changed_ms < sweep->now_ms ? sweep->now_ms - changed_ms : 0;
    uint32_t wanted = 0;
    *done_out = true;
    if (ends_in(name, ".partial")) {
        (void)tide_map_get(&sweep->partial, number_of(name.data), &wanted);
        /* An empty one is no loss: who needs it makes it again. */
        return wanted != 0 && entry->bytes > 0 ? TIDE_OK
                                               : tide_folder_remove(dir, name, entry, err);
    }
    *done_out = age_ms < (ends_in(name, ".old") ? SETTLED_MS : COPIED_MS);
    return TIDE_OK;
}

/* The user's: it goes if its bytes are known. */
static tide_status judge_theirs(struct sweep *sweep, int dir, tide_text name, const char *was,
                                tide_error *err)
{
    struct tide_drive_content content;
    struct tide_entry entry;
    char copy[TIDE_DRIVE_NAME_BYTES_MAX + 1];
    bool known = false;
    TIDE_TRY(tide_drive_hash_file(dir, name, &content, &entry, err));
    TIDE_TRY(tide_drive_is_content_known(sweep->db, &content, &known, err));
    if (known)
        return tide_folder_remove(dir, name, &entry, err);
    const struct tide_drive_stamp stamp = {.host = tide_text_of(sweep->looking->drive->host),
                                           .unix_ms = sweep->now_ms};
    tide_status rc = TIDE_EXISTS;
    for (uint32_t ordinal = 1; rc == TIDE_EXISTS && ordinal <= TIDE_DRIVE_COPIES_MAX; ordinal++) {
        tide_drive_conflict_name(tide_text_of(was), &stamp, ordinal, copy);
        rc = tide_folder_move(dir, name, dir, tide_text_of(copy), err);
    }
    return rc;
}

static tide_status judge(struct sweep *sweep, int dir, tide_text name, tide_error *err)
{
    tide_drive *drive = sweep->looking->drive;
    const uint64_t job = tide_job_id(sweep->looking->job);
    struct tide_drive_order order = {.drive = sweep->looking->row->number};
    char was[TIDE_DRIVE_NAME_BYTES_MAX + 1] = "recovered";
    struct tide_entry entry;
    bool known = false, done = false;
    TIDE_TRY(tide_folder_look(dir, name, &entry, err));
    const struct tide_drive_identity identity = {entry.dev, entry.inode, entry.birth_ns};
    TIDE_TRY(tide_drive_is_file_known(sweep->db, &identity, &known, err));
    if (!known)
        TIDE_TRY(judge_ours(sweep, dir, name, &entry, &done, err));
    if (done)
        return TIDE_OK;
    const tide_status rc = tide_drive_base_of_inode(
        sweep->db, entry.dev, entry.inode, entry.birth_ns, &order.item, was, sizeof was, err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    /* An action that works on the item has the file. */
    if (order.item != 0 && !tide_drive_run_begin(drive, job, &order))
        return TIDE_OK;
    const tide_status judged = judge_theirs(sweep, dir, name, was, err);
    if (order.item != 0)
        tide_drive_run_end(drive, job);
    return judged;
}

static void judge_all(struct sweep *sweep)
{
    for (size_t at = 0; at < sweep->list.bytes;) {
        const tide_text path = tide_text_of(sweep->list.data + at);
        const tide_text name = tide_text_of(path.data + path.bytes + 1);
        tide_error ignored; /* one that cannot be judged now stays */
        int dir = -1;
        at += path.bytes + name.bytes + 2;
        if (tide_folder_enter(sweep->root, path, &dir, NULL) == TIDE_OK)
            (void)judge(sweep, dir, name, &ignored);
        tide_folder_close(dir);
    }
}

static tide_status sweep_all(struct sweep *sweep, tide_error *err)
{
    TIDE_TRY(tide_drive_folders_each(sweep->db, list_folder, sweep, err));
    if (sweep->partial.count > 0)
        TIDE_TRY(tide_drive_wanted_each(sweep->db, want, sweep, err));
    judge_all(sweep);
    return TIDE_OK;
}

tide_status tide_drive_sweep(const struct tide_drive_looking *looking, tide_error *err)
{
    struct tide_drive_reader *reader = NULL;
    struct sweep sweep = {.looking = looking,
                          .root = -1,
                          .now_ms = tide_world_now_unix_ms(looking->drive->options.world)};
    tide_buf_init(&sweep.list, looking->drive->mem, LIST_BYTES_MAX);
    tide_map_init(&sweep.partial, looking->drive->mem);
    tide_status rc = tide_folder_open(looking->row->dir, &sweep.root, err);
    if (rc == TIDE_OK)
        rc = tide_drive_marker_check(sweep.root, looking->row->marker, err);
    if (rc == TIDE_OK)
        rc = tide_drive_reader_take(looking->drive, &reader, err);
    if (rc == TIDE_OK) {
        sweep.db = tide_drive_reader_rows(reader, looking->row->number);
        rc = sweep_all(&sweep, err);
    }
    tide_drive_reader_give(looking->drive, reader);
    tide_folder_close(sweep.root);
    tide_map_done(&sweep.partial);
    tide_buf_done(&sweep.list);
    return rc;
}
