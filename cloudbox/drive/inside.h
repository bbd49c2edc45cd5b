/* inside.h - struct box_drive, shared by the files of this folder. */
#ifndef BOX_DRIVE_INSIDE_H
#define BOX_DRIVE_INSIDE_H

#include "base/map.h"
#include "cloudbox/drive/drive.h"

enum { BOX_FORMERS = 256 };

struct box_former {
    bool used;
    uint32_t slot;
    struct box_item item; /* with a name, also if it is generated, and a hold of its own */
};

struct box_drive {
    struct box_drive_spec spec;
    uint64_t cid; /* what ids begin with */
    struct box_item *items;
    uint32_t items_count;
    size_t items_capacity;
    tide_map names; /* hash of folder and name -> first item of the chain `same` */
    uint32_t *log;  /* by line: the item */
    uint32_t log_end;
    size_t log_capacity;
    uint32_t epoch;
    uint32_t places; /* given so far */
    struct box_lead *leads;
    size_t leads_count, leads_capacity;
    struct box_former formers[BOX_FORMERS]; /* a ring */
    size_t formers_next;
};

/* drive.c: `name` NULL is a generated one; nothing is told. */
uint32_t box_drive_place(box_drive *drive, uint32_t parent, tide_text name,
                         const struct box_content *content, struct box_file_times times,
                         uint64_t now_ms);

char *box_drive_copy_name(tide_text name);
/* The item has another version from now on, and a line in the log. */
void box_drive_changed(box_drive *drive, uint32_t slot, uint64_t now_ms);

/* odd.c: the item is about to change. */
void box_drive_remember(box_drive *drive, uint32_t slot);
void box_drive_odd_done(box_drive *drive);

/* generate.c */
tide_text box_drive_made_name(const box_drive *drive, uint32_t slot,
                              char room[BOX_NAME_BYTES_MAX + 1]);

/* tell.c: hands a change to the spec's `changed`. */
void box_drive_tell_add(box_drive *drive, uint32_t slot, uint64_t now_ms);
void box_drive_tell_write(box_drive *drive, uint32_t slot, uint64_t now_ms);
void box_drive_tell_move(box_drive *drive, uint32_t slot, uint64_t now_ms);
void box_drive_tell_touch(box_drive *drive, uint32_t slot, uint64_t now_ms);
void box_drive_tell_mark(box_drive *drive, uint32_t slot, uint64_t now_ms);
void box_drive_tell_lead(box_drive *drive, const struct box_lead *lead, uint64_t now_ms);
void box_drive_tell_remove(box_drive *drive, uint32_t slot, uint64_t now_ms);
void box_drive_tell_fill(box_drive *drive, uint64_t files, uint64_t file_bytes, uint64_t now_ms);
void box_drive_tell_forget(box_drive *drive);
void box_drive_tell_quota(box_drive *drive);

#endif
