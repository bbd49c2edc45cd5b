/* import.h - imports mail from files into an archive (M17): mbox, .eml, Maildir, Google Takeout.
 *
 * It calls no server and needs no sign-in.  It stores the message as it is in the file: an .eml or
 * a Maildir file byte for byte, a message of an mbox without what the mbox added (mbox.h), one of
 * Takeout also without the two headers that Google adds at the top.
 *
 * Identity.  Takeout has the Gmail id of a message, but does not promise its exact bytes: it quotes
 * lines, and its line ends may differ from the server's.  So such a message is stored under its
 * Gmail id as held (archive.h TIDE_COPY_HELD, M18): it is found at once, the archiver does not trust
 * it, and a sync replaces its bytes by the server's own.  Any other message gets an id of ours,
 * "import-" and 24 hex digits of its hash.  Messages that are stored are not imported again: they are
 * recognized by their bytes, and for Takeout by their id.
 *
 * Invariants:
 *   IMP1  the same bytes are stored once in an archive, however often they are imported.
 *   IMP2  no message gets the time of its import as its date: From_ line, note of ours, Date
 *         header, time of the file, or 0, in this order; guesses are counted.
 *   IMP3  memory is bounded by one message, the archive's queue, and 12 bytes for each message of
 *         the run.
 *   IMP4  a message gets a Gmail id only if Takeout names both it and its conversation, and no other
 *         bytes under that id.
 */
#ifndef TIDE_MAIL_IMPORT_H
#define TIDE_MAIL_IMPORT_H

#include "base/json.h"
#include "mail/archive/archive.h"

enum {
    TIDE_IMPORT_DEEP = 32,               /* directories inside directories */
    TIDE_IMPORT_MESSAGES_MAX = 50000000, /* per run */
    TIDE_IMPORT_LABELS_MAX = 200,        /* per message */
};

struct tide_imported {
    uint64_t files;
    uint64_t files_skipped; /* in a directory: not mail */
    uint64_t messages;      /* seen */
    uint64_t stored;
    uint64_t held;  /* of them, under their Gmail id */
    uint64_t there; /* stored before */
    uint64_t empty;
    uint64_t too_long;
    uint64_t takeout;    /* with Google's headers */
    uint64_t by_header;  /* dated by their Date header ... */
    uint64_t by_file;    /* ... or by the file ... */
    uint64_t undated;    /* ... or not at all: 1970 */
    uint64_t changed;    /* from our own mbox, but modified since */
    uint64_t bytes;      /* stored bytes */
    uint64_t read_bytes; /* of the files */
};
struct tide_import {
    tide_archive *archive; /* open for writing; for reading, or NULL, with dry_run */
    const char *label;     /* a name; NULL */
    bool dry_run;
    int64_t now_ms; /* dates in the future are ignored */
    const tide_cancel *cancel;
    const char *disk_path; /* of the archive */
    uint64_t free_min_bytes;
    /* Called from time to time; NULL is fine. */
    void (*progress)(const struct tide_imported *imported, void *arg);
    void *progress_arg;
};
/* An address that is safe as a directory name: with an @ inside and no path in it. */
bool tide_import_is_address(const char *email);
/* Everything stored is durable when it returns, even if it fails; the next run resumes.
 * *imported_out is always filled. */
tide_status tide_import_run(tide_world *world, const struct tide_import *wanted,
                            const char *const *paths, size_t paths_count, tide_mem *mem,
                            struct tide_imported *imported_out, tide_error *err);
/* Indexes all stored messages; *indexed_out grows.  TIDE_OK also if it is canceled: the next writer
 * continues.  `progress` as above, without a count of its own. */
tide_status tide_import_index(const struct tide_import *wanted,
                              const struct tide_imported *imported, uint64_t *indexed_out,
                              tide_error *err);

/* ---- as a job of the process that has the home ----
 *
 * TIDE_MAIL_IMPORT imports with the archive that its process has open, so each shard has one writer.  It
 * has no account: a paused, halted or signed-out one imports too.  It names the start of the engine that
 * was asked, and does nothing in another one (cli/run/ask.h).  Its payload can only come over the control
 * socket, so from the user whose files it reads.  What it has done is in its result (mail/result.h);
 * its own failure, too, because a file that is no mail is nothing that the engine could try again. */

struct tide_import_ask {
    const char *email;
    const char *label;        /* NULL */
    const char *const *paths; /* absolute */
    size_t paths_count;
};
/* Its payload and its key: an archive has one import at a time. */
void tide_import_ask(const struct tide_import_ask *ask, tide_json *payload);
void tide_import_dedupe(const char *email, char dedupe_out[64]);
struct tide_import_answer {
    struct tide_imported imported;
    uint64_t indexed;
    tide_status status; /* of the import, when the job is done */
    char error[sizeof((tide_error *)0)->text];
};
void tide_import_answer(const json_t *result, struct tide_import_answer *answer_out);

#endif
