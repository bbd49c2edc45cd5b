/* mbox.h - mailboxes in one file: reading what others wrote, writing our own.
 *
 * An mbox has no length and no escape that everybody agrees on.  The reader takes
 * mboxrd, mboxo, mboxcl2 (Content-Length), with LF or CR LF, with or without the
 * blank line between messages.  It keeps one window of the file and the message
 * under way in memory, believes nothing and refuses nothing: any bytes are some
 * sequence of messages.
 *
 * What begins a message: a line "From ...", with a date in it (or without one when the
 * first line of the file has none either), behind a blank line or before a line that
 * looks like a header.  A Content-Length is followed when it leads exactly to such a
 * line or to the end of the file; then nothing inside is unquoted.  Else one ">" is
 * taken from lines that begin with ">From ", ">>From " and so on (mboxrd; the same as
 * mboxo unless the message itself had a line beginning with ">From ").
 *
 * Our own files are mboxrd.  Three lines stand on top of each message: Status and
 * X-Status, which mutt and Python's mailbox read, and X-Tidemark, which says how long
 * the message is, its hash, and what an mbox cannot tell: id, thread, time, labels.
 *
 * Invariants:
 *   X1  what tide_mbox_write() wrote is read back byte for byte, whatever the bytes.
 *   X2  memory is the window and one message; a message beyond the ceiling is skipped
 *       and reported, and the next one is read.
 *   X3  time is linear in the bytes of the file.
 */
#ifndef TIDE_MAIL_MBOX_H
#define TIDE_MAIL_MBOX_H

#include "base/buf.h"
#include "mail/archive/content.h"

enum {
    TIDE_MBOX_LINE_BYTES_MAX = 2048,         /* of a From_ line that is looked at */
    TIDE_MBOX_MESSAGE_BYTES_MAX = 200 << 20, /* a larger one is skipped */
    TIDE_MBOX_NOTE_BYTES_MAX = 64 << 10,     /* of an X-Tidemark line */
};

/* ---- reading ---- */

/* Fills `room` bytes from `at` on, fewer only at the end. */
typedef tide_status tide_mbox_source(void *arg, uint64_t at, char *bytes, size_t room,
                                     size_t *count_out, tide_error *err);
typedef struct tide_mbox tide_mbox;
tide_status tide_mbox_new(tide_mbox_source *source, void *source_arg, uint64_t message_bytes_max,
                          tide_mem *mem, tide_mbox **mbox_out, tide_error *err);
void tide_mbox_free(tide_mbox *mbox); /* NULL is fine */

struct tide_mbox_message {
    uint64_t at;      /* of its From_ line in the file */
    tide_text sender; /* of that line; borrowed until the next call */
    bool has_date;    /* of that line */
    int64_t date_ms;  /* UTC unless the line says otherwise */
    bool too_long;    /* raw is empty; it had `bytes` bytes */
    uint64_t bytes;
    tide_buf *raw; /* the message; borrowed until the next call, and its room may be taken */
};
/* The next message.  TIDE_NOT_FOUND: there is none any more. */
tide_status tide_mbox_next(tide_mbox *mbox, struct tide_mbox_message *message_out, tide_error *err);
/* How far it is. */
uint64_t tide_mbox_at(const tide_mbox *mbox);

/* The date of a From_ line, in the forms that are found: asctime with or without a
 * zone, Google's "Mon Nov 06 04:42:58 +0000 2017", a mail's own. */
bool tide_mbox_date(tide_text line, int64_t *date_ms_out);

/* ---- our own note ---- */

struct tide_mbox_note {
    uint64_t bytes;
    uint8_t hash[TIDE_CONTENT_HASH_BYTES];
    int64_t internal_ms;
    tide_text id, thread; /* written as they are; percent-encoded when they are read */
    tide_text labels;     /* "ID" or "ID:NAME" between commas, percent-encoded */
};
/* The note on top of a message of ours; *rest_out is what follows it, not yet cut to
 * its length.  false: there is none.  Texts are borrowed from `raw`. */
bool tide_mbox_note_read(tide_text raw, struct tide_mbox_note *note_out, tide_text *rest_out);
/* A piece of `labels`, decoded. */
tide_status tide_mbox_decode(tide_text piece, tide_buf *out);
/* Adds text so that it has no comma, colon, semicolon, blank or control character. */
tide_status tide_mbox_encode(tide_text piece, tide_buf *out);

/* ---- writing ---- */

typedef tide_status tide_mbox_sink(void *arg, const char *bytes, size_t count, tide_error *err);
struct tide_mbox_entry {
    tide_text raw;
    tide_text sender; /* "": MAILER-DAEMON */
    bool is_read, is_starred, is_draft, is_trash;
    struct tide_mbox_note note; /* bytes is filled in */
};
/* From_ line, our lines, the message quoted, a blank line.  `scratch` is emptied and
 * used. */
tide_status tide_mbox_write(const struct tide_mbox_entry *entry, tide_buf *scratch,
                            tide_mbox_sink *sink, void *sink_arg, tide_error *err);

#endif
