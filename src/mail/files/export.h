/* export.h - messages out of the archive as files (M17): eml, Maildir or mbox.
 *
 * A file of eml and Maildir is the message byte for byte.  An mbox is mboxrd with a note
 * on top of each message, from which `tidemark mail import` makes the exact bytes again
 * (mbox.h).  Every file is written whole or not at all; one that is there with the same
 * bytes is left alone, so that an export can be repeated and goes on where it was
 * stopped.  Everything is durable when the export has ended well.
 *
 *   P1  a file that is there with other bytes stays, unless `replace` is set: it may be
 *       somebody's, or hold messages that this export leaves out.
 *   P2  a Maildir has each message once.  One whose flags changed gets its new name; R and P,
 *       which a mail program set, stay.
 *   P3  a message that cannot be read, or makes no file name, is told and left out. */
#ifndef TIDE_MAIL_EXPORT_H
#define TIDE_MAIL_EXPORT_H

#include "mail/archive/archive.h"
#include "mail/search/search.h"

typedef enum tide_export_format {
    TIDE_EXPORT_EML,
    TIDE_EXPORT_MAILDIR,
    TIDE_EXPORT_MBOX,
} tide_export_format;

struct tide_exported {
    uint64_t written;
    uint64_t there; /* already */
    uint64_t bytes;
    uint64_t files;   /* written */
    uint64_t damaged; /* left out (P3) */
    uint64_t kept;    /* files that are there with other bytes (P1) */
};
struct tide_export {
    tide_export_format format;
    const char *path;        /* a directory, made when missing; an mbox may be one file: *.mbox */
    const tide_query *query; /* NULL: everything */
    const tide_cancel *cancel;
    uint64_t free_min_bytes; /* stop before the disk has less; 0: do not look */
    bool replace;            /* files that are there with other bytes */
    /* Called for each message that is left out and each file that is kept. */
    void (*problem)(const char *text, void *arg);
    /* Called after every message; NULL is fine. */
    void (*progress)(const struct tide_exported *exported, void *arg);
    void *progress_arg;
};
/* Stops at the first file that cannot be written; err names it.
 * *exported_out is filled in any case. */
tide_status tide_export_run(tide_world *world, tide_archive *archive,
                            const struct tide_export *wanted, tide_mem *mem,
                            struct tide_exported *exported_out, tide_error *err);

#endif
