/* import_inside.h - declarations shared by the files of the import.
 *
 *   import.c          finds and opens files
 *   import_packed.c   files inside of .zip, .tgz and .gz files
 *   import_message.c  one message: its kind, id and date; stores it
 *   import_labels.c   labels: maps names to ids
 *   import_job.c      the import as a job of the process that has the home
 */
#ifndef TIDE_MAIL_IMPORT_INSIDE_H
#define TIDE_MAIL_IMPORT_INSIDE_H

#include "base/map.h"
#include "mail/mime/header.h"
#include "mail/files/import.h"
#include "mail/files/mbox.h"
#include "world/free_space.h"

/* The archive's queue would take more, and the shards of twenty years need memory too: reading
 * files is never the bottleneck. */
enum { TIDE_IMPORT_UNDER_BYTES = 8 << 20 };

/* A label that the archive has, or that this run added. */
struct tide_import_label {
    struct tide_import_label *next;
    tide_text id, name; /* stored after it */
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
    tide_map seen; /* prefixes of the hashes of this run */
    struct tide_import_label *labels;
    tide_buf words; /* a header, decoded */
    tide_buf texts; /* label ids of a message, one after the other */
    size_t ends[TIDE_IMPORT_LABELS_MAX];
    size_t ends_count;
    uint64_t ticket;      /* of the last message */
    uint64_t under_bytes; /* given to the archive since the last wait */
};

enum { TIDE_IMPORT_SNIFF_BYTES = 1024 }; /* that tell what a file is */

/* A file, or one inside of a packed file. */
struct tide_import_source {
    const char *name; /* its path; of a file inside: the path that the packed file gives it */
    /* Reads from any position; of a file inside only forward, but for the first
     * TIDE_IMPORT_SNIFF_BYTES, which can be read twice. */
    tide_mbox_source *read;
    void *arg;
    uint64_t bytes; /* 0: unknown */
    int64_t changed_ms;
    bool named;        /* by the user: must be mail */
    bool packed;       /* it is inside of a packed file */
    const char *flags; /* of a Maildir: "FS"; NULL */
    tide_text group;   /* the address of the group whose mail this is; "": the user's own */
};
/* Imports it by what it is. */
tide_status tide_import_source(struct tide_importing *importing, struct tide_import_source *source);
/* Imports all mail that is packed in it. */
tide_status tide_import_packed(struct tide_importing *importing,
                               const struct tide_import_source *source);

/* Facts about a message besides its bytes. */
struct tide_import_one {
    tide_buf *raw;    /* its memory may be taken over */
    tide_text sender; /* of its From_ line; "" */
    bool has_date;    /* of its From_ line */
    int64_t date_ms;
    int64_t file_ms;   /* INT64_MIN: unknown */
    const char *flags; /* of a Maildir: "FS"; NULL */
    tide_text group;   /* as in the source */
};
tide_status tide_import_message(struct tide_importing *importing, struct tide_import_one *one);

/* ---- import_labels.c ---- */

/* Clears the list for the next message. */
void tide_import_labels_clear(struct tide_importing *importing);
/* Adds the id of the label with that name; system names in known languages become Gmail's own ids,
 * names without meaning are left out. */
tide_status tide_import_label_name(struct tide_importing *importing, tide_text name);
/* The same for a label that the user gave to the import: no server takes it away. */
tide_status tide_import_label_local(struct tide_importing *importing, tide_text name);
/* Adds a label by Gmail's own id. */
tide_status tide_import_label_id(struct tide_importing *importing, tide_text id);
/* The value of an X-Gmail-Labels header. */
tide_status tide_import_labels_takeout(struct tide_importing *importing, tide_text value);
/* The labels of a note of ours. */
tide_status tide_import_labels_note(struct tide_importing *importing, tide_text labels);
/* Loads the labels of the archive. */
tide_status tide_import_labels_load(struct tide_importing *importing);
void tide_import_labels_free(struct tide_importing *importing);

#endif
