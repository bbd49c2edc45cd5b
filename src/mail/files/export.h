/* export.h - exports messages of an archive as files (M17): eml, Maildir or mbox.
 *
 * An eml or Maildir file is the message byte for byte.  An mbox is mboxrd with a note at the top of
 * each message, from which `tidemark mail import` restores the exact bytes (mbox.h).  Every file is
 * written completely or not at all; an existing file with the same bytes is kept, so that an export
 * can be repeated and resumes where it was stopped.  Everything is durable when the export has
 * succeeded.
 *
 *   EXP1  an existing file with other bytes is kept, unless `replace` is set: it may be the user's
 *         own, or hold messages that this export leaves out.
 *   EXP2  a Maildir has each message once.  If its flags changed, its file is renamed; R and P,
 *         which a mail program set, stay.
 *   EXP3  a message that cannot be read, or whose id makes no file name, is reported and left out.
 *         */
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
    uint64_t there; /* exported before */
    uint64_t bytes;
    uint64_t files;   /* written */
    uint64_t damaged; /* left out (EXP3) */
    uint64_t kept;    /* existing files with other bytes (EXP1) */
};
struct tide_export {
    tide_export_format format;
    const char *path;        /* a directory, created if missing; an mbox may be a file: *.mbox */
    const tide_query *query; /* NULL: everything */
    const tide_cancel *cancel;
    uint64_t free_min_bytes; /* stop before the disk has less; 0: no limit */
    bool replace;            /* overwrite existing files with other bytes */
    /* Called for each message that is left out and each file that is kept. */
    void (*problem)(const char *text, void *arg);
    /* Called after every message; NULL is fine. */
    void (*progress)(const struct tide_exported *exported, void *arg);
    void *progress_arg;
};
/* Stops at the first file that cannot be written; err names it.  *exported_out is always filled. */
tide_status tide_export_run(tide_world *world, tide_archive *archive,
                            const struct tide_export *wanted, tide_mem *mem,
                            struct tide_exported *exported_out, tide_error *err);

#endif
