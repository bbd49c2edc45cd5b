/* drive.h - one user's drive as a provider stores it: items by id, a tree, a log of changes.
 *
 * An item is a slot number that it keeps for its life, through renames and moves; its id is
 * made of the number.  Generated items have neither name nor bytes in memory (content.h), so a
 * million files take some 150 MB, whatever their size.
 *
 * The log has a line for every change; a line counts only while it is the item's latest, so
 * reading from a position on gives each changed item once, in its latest state.  A removed
 * folder has one line; the items below it are gone without lines of their own.
 *
 * The caller checks what a client may not do (names, places that are taken, cycles, quota)
 * before it calls: these functions assert it.
 *
 * Invariants (box_drive_check()):
 *   BDRV1  every item that is not gone is reached from the root exactly once.
 *   BDRV2  no folder has two items with the same name (name.h).
 *   BDRV3  a folder's size is that of the files below it, its count that of its items.
 *   BDRV4  the latest line of the log of an item names it.
 *   BDRV5  same seed, same calls: same drive.
 */
#ifndef BOX_DRIVE_H
#define BOX_DRIVE_H

#include "cloudbox/drive/content.h"
#include "cloudbox/drive/name.h"

#include <jansson.h>

typedef struct box_drive box_drive;

#define BOX_ITEM_NONE UINT32_MAX
enum {
    BOX_ITEM_ROOT = 0,
    BOX_ITEMS_MAX = 20 * 1000 * 1000,
    BOX_FILES_MAX = 5 * 1000 * 1000, /* generated at once */
    BOX_ITEM_ID_BYTES = 48,
    BOX_ITEM_DEPTH_MAX = 250,
    BOX_LEADS_MAX = 1000,
};
#define BOX_DRIVE_TOTAL_BYTES (UINT64_C(1) << 40)
#define BOX_DRIVE_FILE_BYTES  (UINT64_C(250) << 30) /* of the largest file */

struct box_item {
    struct box_content content; /* a folder has none; its `bytes` are those below it */
    char *name;                 /* NULL: generated; box_drive_name() */
    uint64_t made_ms;           /* on the server */
    uint64_t changed_ms;
    uint64_t file_made_ms; /* the client's own: fileSystemInfo */
    uint64_t file_changed_ms;
    uint64_t fetched_bytes; /* of this content, given out so far */
    uint32_t parent;
    uint32_t first, last; /* of its items */
    uint32_t next, previous;
    uint32_t same;            /* the next item whose name has this hash */
    uint32_t count;           /* of its items */
    uint32_t place;           /* rises along the list of its folder */
    uint32_t version;         /* eTag */
    uint32_t content_version; /* cTag; of a folder it moves with everything below */
    uint32_t born_at;         /* the line of the log that made it */
    uint32_t changed_at;      /* its latest line */
    bool folder, gone;
    bool shown;   /* a client has seen it */
    uint8_t mark; /* box_mark */
};

/* What is odd about an item. */
typedef enum box_mark {
    BOX_MARK_NONE,
    BOX_MARK_PACKAGE,  /* a folder that is a notebook */
    BOX_MARK_MALWARE,  /* a file whose bytes are not given out */
    BOX_MARK_PENDING,  /* a file whose hash is not final */
    BOX_MARK_SHORTCUT, /* an empty folder that stands for an item of another drive */
    BOX_MARKS,
} box_mark;

/* Where a shortcut leads. */
struct box_lead {
    uint32_t slot;  /* of the shortcut */
    bool folder;    /* that is what the other item is */
    bool lost;      /* the other item is no longer shared */
    bool read_only; /* it is shared to be read */
    char drive[BOX_ITEM_ID_BYTES];
    char item[BOX_ITEM_ID_BYTES];
};

struct box_drive_spec {
    uint64_t seed;
    uint64_t total_bytes;
    uint64_t files_max; /* that box_drive_replay() generates; 0: BOX_FILES_MAX */
    uint64_t now_ms;
    bool business; /* else personal: other ids */
    bool keeps;    /* changes go to a state file, so they carry what was uploaded */
    /* Every change, as box_drive_replay() takes it; `change` is taken.  NULL: not told. */
    void (*changed)(void *arg, json_t *change);
    void *changed_arg;
};

box_drive *box_drive_new(const struct box_drive_spec *spec);
void box_drive_free(box_drive *drive); /* NULL is fine */
const struct box_drive_spec *box_drive_spec(const box_drive *drive);
/* NULL: all invariants hold; else which one does not. */
const char *box_drive_check(const box_drive *drive);

/* ---- items ---- */

uint32_t box_drive_slots(const box_drive *drive);
const struct box_item *box_drive_at(const box_drive *drive, uint32_t slot);
/* `room` is used when the name is generated. */
tide_text box_drive_name(const box_drive *drive, uint32_t slot, char room[BOX_NAME_BYTES_MAX + 1]);
void box_drive_id(const box_drive *drive, uint32_t slot, char id_out[BOX_ITEM_ID_BYTES]);
void box_drive_own_id(const box_drive *drive, char id_out[BOX_ITEM_ID_BYTES]);
/* Whether that is its id: both cases are the same in a personal one, and differ in that of a business. */
bool box_drive_is(const box_drive *drive, tide_text id);
/* By its id, also one that is gone; BOX_ITEM_NONE: it never was. */
uint32_t box_drive_find(const box_drive *drive, tide_text id);
/* By its name in a folder; BOX_ITEM_NONE: there is none. */
uint32_t box_drive_child(const box_drive *drive, uint32_t folder, tide_text name);
/* The first item of a folder behind `place` (0: of all); `hint` is the item that had it. */
uint32_t box_drive_after(const box_drive *drive, uint32_t folder, uint32_t place, uint32_t hint);
/* Whether `slot` is `folder` or below it. */
bool box_drive_is_below(const box_drive *drive, uint32_t slot, uint32_t folder);
uint32_t box_drive_depth(const box_drive *drive, uint32_t slot);
uint64_t box_drive_used(const box_drive *drive);

/* ---- changes; a time of 0 is now, or stays ---- */

struct box_file_times {
    uint64_t made_ms;
    uint64_t changed_ms;
};

/* What is to be made; content NULL: a folder.  The content is held. */
uint32_t box_drive_add(box_drive *drive, uint32_t parent, tide_text name,
                       const struct box_content *content, struct box_file_times times,
                       uint64_t now_ms);
void box_drive_write(box_drive *drive, uint32_t slot, const struct box_content *content,
                     struct box_file_times times, uint64_t now_ms);
void box_drive_move(box_drive *drive, uint32_t slot, uint32_t parent, tide_text name,
                    uint64_t now_ms);
void box_drive_touch(box_drive *drive, uint32_t slot, struct box_file_times times, uint64_t now_ms);
/* A copy of the item and of everything below it; `parent` is not below it.  The new item. */
uint32_t box_drive_copy(box_drive *drive, uint32_t slot, uint32_t parent, tide_text name,
                        uint64_t now_ms);
void box_drive_remove(box_drive *drive, uint32_t slot, uint64_t now_ms);
/* Adds generated files, in folders of their own.  `file_bytes`: each exactly so large; 0: a spread.
 * A name of theirs that was taken by hand ("folder-0000001") must not be in the root. */
void box_drive_fill(box_drive *drive, uint64_t files, uint64_t file_bytes, uint64_t now_ms);
void box_drive_quota(box_drive *drive, uint64_t total_bytes);
/* A new drive, of which nothing was shown yet, becomes one of a business. */
void box_drive_business(box_drive *drive);

/* ---- odd items ---- */

const char *box_mark_word(box_mark mark); /* "package" */
bool box_mark_find(tide_text word, box_mark *mark_out);
/* A package is a folder, what is malware or pending is a file; a shortcut stays one. */
bool box_drive_mark_fits(const box_drive *drive, uint32_t slot, box_mark mark);
void box_drive_mark(box_drive *drive, uint32_t slot, box_mark mark, uint64_t now_ms);
/* Makes an empty folder a shortcut, or changes one.  The lead is copied. */
void box_drive_lead_set(box_drive *drive, const struct box_lead *lead, uint64_t now_ms);
bool box_drive_leads_fit(const box_drive *drive);                             /* one more */
const struct box_lead *box_drive_lead(const box_drive *drive, uint32_t slot); /* NULL: none */
/* The shortcuts into a drive that can be followed, one per call; `*cursor_io` starts at 0. */
const struct box_lead *box_drive_lead_to(const box_drive *drive, tide_text id, size_t *cursor_io);
/* How the item was before its latest write, move or removal; NULL: that is not known any more. */
const struct box_item *box_drive_former(const box_drive *drive, uint32_t slot);

/* ---- the log ---- */

/* Positions of before are no longer answered. */
void box_drive_forget(box_drive *drive);
uint32_t box_drive_epoch(const box_drive *drive); /* how often that was */
uint32_t box_drive_log_end(const box_drive *drive);
/* The item whose latest change is this line; BOX_ITEM_NONE: it changed again. */
uint32_t box_drive_log_at(const box_drive *drive, uint32_t line);

/* ---- the record ---- */

void box_drive_show(box_drive *drive, uint32_t slot);
/* The number of bytes that had been given out before. */
uint64_t box_drive_fetched(box_drive *drive, uint32_t slot, uint64_t bytes);
void box_drive_fetched_reset(box_drive *drive);

/* Applies a change that `changed` was given, in the same order. */
tide_status box_drive_replay(box_drive *drive, const json_t *change, tide_error *err);

#endif
