/* import_inside.h - what the files of the import share.
 *
 *   import.c          finding files, opening them
 *   import_message.c  one message: what it is, its id, its date, storing it
 *   import_labels.c   labels: names into ids
 */
#ifndef TIDE_MAIL_IMPORT_INSIDE_H
#define TIDE_MAIL_IMPORT_INSIDE_H

#include "base/map.h"
#include "mail/mime/header.h"
#include "mail/files/import.h"
#include "world/free_space.h"

/* The archive's queue would take more, and the shards of twenty years their share too:
 * a reader of files is never the one that others wait for. */
enum { TIDE_IMPORT_UNDER_BYTES = 8 << 20 };

/* A label that the archive has, or that this run gave it. */
struct tide_import_label {
    struct tide_import_label *next;
    tide_text id, name; /* behind it */
    size_t bytes;
};

struct tide_importing {
    tide_world *world;
    tide_mem *mem;
    const struct tide_import *wanted;
    struct tide_imported imported;
    tide_error *err;
    tide_packer *packer;
    tide_decoder decoder;
    struct tide_room room;
    tide_map seen; /* beginnings of hashes of this run */
    struct tide_import_label *labels;
    tide_buf words; /* a header, decoded */
    tide_buf texts; /* ids of the labels of a message, one behind the other */
    size_t ends[TIDE_IMPORT_LABELS_MAX];
    size_t ends_count;
    uint64_t ticket;      /* of the last message */
    uint64_t under_bytes; /* given to the archive since it was last waited for */
};

/* What is known of a message apart from its bytes. */
struct tide_import_one {
    tide_buf *raw;    /* its room may be taken */
    tide_text sender; /* of its From_ line; "" */
    bool has_date;    /* of its From_ line */
    int64_t date_ms;
    int64_t file_ms;   /* INT64_MIN: unknown */
    const char *flags; /* of a Maildir: "FS"; NULL */
};
tide_status tide_import_message(struct tide_importing *importing, struct tide_import_one *one);

/* ---- import_labels.c ---- */

/* Starts the list for a message. */
void tide_import_labels_clear(struct tide_importing *importing);
/* Adds the id of a label of that name; system names in the languages we know become
 * Gmail's own ids, names that mean nothing are left out. */
tide_status tide_import_label_name(struct tide_importing *importing, tide_text name);
/* Adds a label by Gmail's own id. */
tide_status tide_import_label_id(struct tide_importing *importing, tide_text id);
/* The value of an X-Gmail-Labels header. */
tide_status tide_import_labels_takeout(struct tide_importing *importing, tide_text value);
/* The labels of a note of ours. */
tide_status tide_import_labels_note(struct tide_importing *importing, tide_text labels);
/* Learns what the archive has. */
tide_status tide_import_labels_load(struct tide_importing *importing);
void tide_import_labels_free(struct tide_importing *importing);

#endif
