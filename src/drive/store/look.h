/* look.h - one row with all that is stored of it, for the jobs that act on it; and rows as an action
 * saw them, for its commit.
 *
 * An action takes time, and observers write rows meanwhile.  Its baseline is what it made equal, so it
 * is written from the rows as the action saw them; then the rows become again what was observed
 * last (I3, I8).  Both happens in one transaction: settle.c of sync/. */
#ifndef TIDE_DRIVE_STORE_LOOK_H
#define TIDE_DRIVE_STORE_LOOK_H

#include "drive/names/names.h"
#include "drive/store/store.h"

enum {
    TIDE_DRIVE_LOOK_NAME_BYTES = 1032, /* 255 UTF-16 units, and the end */
    TIDE_DRIVE_LOOK_TAG_BYTES = 520,
    TIDE_DRIVE_LOOK_ID_BYTES = TIDE_DRIVE_ID_BYTES_MAX + 4,
    TIDE_DRIVE_PATH_BYTES_MAX = 64 << 10,
};

struct tide_drive_remote_look {
    uint64_t item, parent;
    char id[TIDE_DRIVE_LOOK_ID_BYTES], parent_id[TIDE_DRIVE_LOOK_ID_BYTES];
    char name[TIDE_DRIVE_LOOK_NAME_BYTES];
    char aside[TIDE_DRIVE_LOOK_NAME_BYTES]; /* the name before it stepped aside; "" */
    char etag[TIDE_DRIVE_LOOK_TAG_BYTES], ctag[TIDE_DRIVE_LOOK_TAG_BYTES];
    uint64_t mtime_s;
    struct tide_drive_content content;
    tide_drive_kind kind;
    tide_drive_remote_state state;
};
struct tide_drive_local_look {
    uint64_t row, parent;
    char name[TIDE_DRIVE_NAME_BYTES_MAX + 1];
    char aside[TIDE_DRIVE_NAME_BYTES_MAX + 1];
    struct tide_drive_identity identity;
    struct tide_drive_content content;
    uint64_t mtime_ns, ctime_ns, hashed_ns, gone_ms;
    uint32_t nlink, mode;
    tide_drive_kind kind;
    int state; /* of rows.h, or TIDE_DRIVE_LOCAL_GONE */
};
struct tide_drive_base_look {
    uint64_t item, parent, row;
    char local_name[TIDE_DRIVE_NAME_BYTES_MAX + 1];
    struct tide_drive_content local;
    tide_drive_kind kind;
};

/* TIDE_NOT_FOUND. */
tide_status tide_drive_look_remote(tide_rows db, uint64_t item,
                                   struct tide_drive_remote_look *look_out, tide_error *err);
tide_status tide_drive_look_local(tide_rows db, uint64_t row,
                                  struct tide_drive_local_look *look_out, tide_error *err);
tide_status tide_drive_look_base(tide_rows db, uint64_t item, struct tide_drive_base_look *look_out,
                                 tide_error *err);
/* The local row at a place. */
tide_status tide_drive_look_at(tide_rows db, uint64_t parent, tide_text name,
                               struct tide_drive_local_look *look_out, tide_error *err);
/* The id of an item's number, and the other one of a baseline's pair.  TIDE_NOT_FOUND. */
tide_status tide_drive_id_of(tide_rows db, uint64_t item, char id_out[TIDE_DRIVE_LOOK_ID_BYTES],
                             tide_error *err);
tide_status tide_drive_item_of_row(tide_rows db, uint64_t row, uint64_t *item_out, tide_error *err);
tide_status tide_drive_row_of_item(tide_rows db, uint64_t item, uint64_t *row_out, tide_error *err);
/* Whether both sides have the item, or the local row, as its baseline says; the other one is 0. */
tide_status tide_drive_is_synced(tide_rows db, uint64_t item, uint64_t row, bool *synced_out,
                                 tide_error *err);
/* Whether the item has online what its baseline says. */
tide_status tide_drive_is_base_online(tide_rows db, uint64_t item, bool *same_out, tide_error *err);
/* "a/b" of a folder's row, empty for the root; it is added to `path`.  TIDE_NOT_FOUND: the row or one
 * above is not here. */
tide_status tide_drive_path_of_row(tide_rows db, uint64_t row, tide_buf *path, tide_error *err);

/* The facts of the row, its place left alone. */
tide_status tide_drive_local_facts(tide_rows db, const struct tide_drive_local_look *look,
                                   tide_error *err);
/* The row as it was looked at, put again. */
tide_status tide_drive_remote_again(tide_rows db, const struct tide_drive_remote_look *look,
                                    tide_error *err);

/* Whether the item's deletion was accepted (S16). */
tide_status tide_drive_is_consented(tide_rows db, uint64_t item, uint64_t now_ms,
                                    bool *consented_out, tide_error *err);

/* Ids of items whose content is not final (D16); at most `count` of them are visited. */
tide_status tide_drive_unsure(tide_rows db, size_t count, void (*visit)(tide_text id, void *arg),
                              void *arg, tide_error *err);

/* Ids of live items that have one place with another one: a tombstone was lost, a GET says whose (S12). */
tide_status tide_drive_doubled(tide_rows db, size_t count, void (*visit)(tide_text id, void *arg),
                               void *arg, tide_error *err);

/* ---- uploads on their way (D38) ---- */

struct tide_drive_doubt {
    uint64_t item, row, was_item;             /* of a new item: tide_drive_doubt_of_new() */
    char parent_id[TIDE_DRIVE_LOOK_ID_BYTES]; /* of a new item, whose name is the file's; else "" */
    struct tide_drive_local_look local; /* the file that is sent; of its place only the name */
};
/* A new item has no number yet: that of its row, apart from all items. */
static inline uint64_t tide_drive_doubt_of_new(uint64_t row)
{
    return UINT64_C(1) << 62 | row;
}
tide_status tide_drive_doubt_put(tide_rows db, const struct tide_drive_doubt *doubt,
                                 tide_error *err);
tide_status tide_drive_doubt_end(tide_rows db, uint64_t item, tide_error *err);
/* The first one after `item`.  TIDE_NOT_FOUND. */
tide_status tide_drive_doubt_next(tide_rows db, uint64_t item, struct tide_drive_doubt *doubt_out,
                                  tide_error *err);

/* ---- leftovers of a crash (D42) ---- */

/* The item whose file here was this one when it was synced last; `name` may be NULL.  TIDE_NOT_FOUND. */
tide_status tide_drive_base_of_inode(tide_rows db, uint64_t dev, uint64_t inode, uint64_t birth_ns,
                                     uint64_t *item_out, char *name, size_t name_bytes,
                                     tide_error *err);
/* Whether it is a file of a row, or of a baseline. */
tide_status tide_drive_is_file_known(tide_rows db, const struct tide_drive_identity *identity,
                                     bool *known_out, tide_error *err);
/* Whether it is the file or folder of another item, and not of this one: by its identity in a baseline, else
 * by the row that a scan found it at.  An item that lost its row to another one has no claim to what that has. */
tide_status tide_drive_is_other_item(tide_rows db, const struct tide_drive_identity *identity,
                                     uint64_t item, bool *other_out, tide_error *err);
/* We are about to delete the item, online or here.  If a process dies before the end is recorded, nothing tells our
 * deletion from one of a user; so from now on what the other side has, or gets again, counts as changed: it is
 * kept, and not deleted as well (E1.9). */
tide_status tide_drive_deletion_begins(tide_rows db, uint64_t item, bool online, tide_error *err);
/* A download replaced this content: a leftover that has it is no loss.  With the download's commit. */
tide_status tide_drive_displaced_put(tide_rows db, const struct tide_drive_content *content,
                                     uint64_t now_ms, tide_error *err);
/* Files online that are not here as they are there: what a download may have begun with. */
tide_status tide_drive_wanted_each(tide_rows db,
                                   void (*visit)(tide_text id, tide_text ctag,
                                                 const struct tide_drive_content *content,
                                                 void *arg),
                                   void *arg, tide_error *err);
/* Whether a file here, a baseline, or one that was replaced, has these bytes. */
tide_status tide_drive_is_content_known(tide_rows db, const struct tide_drive_content *content,
                                        bool *known_out, tide_error *err);
/* Paths of all folders that have rows here, the root's "" first. */
tide_status tide_drive_folders_each(tide_rows db, void (*visit)(tide_text path, void *arg),
                                    void *arg, tide_error *err);

/* A conflict that is not listed yet. */
tide_status tide_drive_conflict_once(tide_rows db, const struct tide_drive_conflict *conflict,
                                     tide_error *err);

/* ---- ignored paths ---- */

/* Items whose own name makes their path one that is not synced become SKIPPED (D10); what is beneath
 * follows from that.  `ignored` is called in the transaction. */
tide_status tide_drive_remote_ignore(tide_rows db,
                                     bool (*ignored)(tide_text path, bool is_folder, void *arg),
                                     void *arg, tide_error *err);

#endif
