/* mbox.h - reads mbox files of any program, and writes our own.
 *
 * An mbox has no lengths, and programs quote differently.  The reader accepts mboxrd, mboxo,
 * mboxcl2 (Content-Length), with LF or CR LF, with or without the blank line between messages.  It
 * keeps one window of the file and the current message in memory, and accepts any input: any bytes
 * are some sequence of messages.
 *
 * A message starts with a line "From ...", with a date in it (or without one if the first line of
 * the file has none either), after a blank line or before a line that looks like a header.  A
 * Content-Length is followed when it leads exactly to such a line or to the end of the file; then
 * nothing inside is unquoted.  Otherwise one ">" is removed from lines that start with ">From ",
 * ">>From " and so on (mboxrd; the same as mboxo unless the message itself had a line beginning
 * with ">From ").
 *
 * Our own files are mboxrd.  Three lines are added at the top of each message: Status and X-Status,
 * which mutt and Python's mailbox read, and X-Tidemark, with the size of the message, its hash, and
 * what an mbox cannot store: id, thread, time, labels.
 *
 * Invariants:
 *   MBX1  what tide_mbox_write() wrote is read back byte for byte, whatever the bytes.
 *   MBX2  memory is the window and one message; a message beyond the limit is skipped and reported,
 *         and the next one is read.
 *   MBX3  time is linear in the bytes of the file.
 */
#ifndef TIDE_MAIL_MBOX_H
#define TIDE_MAIL_MBOX_H

#include "base/buf.h"
#include "mail/archive/content.h"

enum {
    TIDE_MBOX_LINE_BYTES_MAX = 2048,         /* of a From_ line that is read */
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
/* Reads the source only forward, each byte once, as a packed file allows: a Content-Length is not
 * followed.  Before the first message. */
void tide_mbox_forward(tide_mbox *mbox);
void tide_mbox_free(tide_mbox *mbox); /* NULL is fine */

struct tide_mbox_message {
    uint64_t at;      /* position of its From_ line in the file */
    tide_text sender; /* of that line; borrowed until the next call */
    bool has_date;    /* that line has a date */
    int64_t date_ms;  /* UTC unless the line has a zone */
    bool too_long;    /* raw is empty; the message has `bytes` bytes */
    uint64_t bytes;
    tide_buf *raw; /* the message; borrowed until the next call; its memory may be taken over */
};
/* The next message.  TIDE_NOT_FOUND: there are no more. */
tide_status tide_mbox_next(tide_mbox *mbox, struct tide_mbox_message *message_out, tide_error *err);
/* The current position in the file. */
uint64_t tide_mbox_at(const tide_mbox *mbox);

/* The date of a From_ line, in the forms in use: asctime with or without a zone, Google's "Mon Nov
 * 06 04:42:58 +0000 2017", a Date header's. */
bool tide_mbox_date(tide_text line, int64_t *date_ms_out);

/* ---- our own note ---- */

struct tide_mbox_note {
    uint64_t bytes;
    uint8_t hash[TIDE_CONTENT_HASH_BYTES];
    int64_t internal_ms;
    tide_text id, thread; /* plain when written; percent-encoded when read */
    tide_text labels;     /* "ID" or "ID:NAME" separated by commas, percent-encoded */
};
/* Reads the note at the top of a message of ours; *rest_out is what follows it, not yet cut to its
 * length.  false: there is none.  Texts are borrowed from `raw`. */
bool tide_mbox_note_read(tide_text raw, struct tide_mbox_note *note_out, tide_text *rest_out);
/* Decodes an element of `labels`. */
tide_status tide_mbox_decode(tide_text piece, tide_buf *out);
/* Adds text encoded without comma, colon, semicolon, blank or control character. */
tide_status tide_mbox_encode(tide_text piece, tide_buf *out);

/* ---- writing ---- */

typedef tide_status tide_mbox_sink(void *arg, const char *bytes, size_t count, tide_error *err);
struct tide_mbox_entry {
    tide_text raw;
    tide_text sender; /* "": MAILER-DAEMON */
    bool is_read, is_starred, is_draft, is_trash;
    struct tide_mbox_note note; /* bytes is filled in */
};
/* Writes the From_ line, our lines, the quoted message and a blank line.  `scratch` is cleared and
 * used. */
tide_status tide_mbox_write(const struct tide_mbox_entry *entry, tide_buf *scratch,
                            tide_mbox_sink *sink, void *sink_arg, tide_error *err);

#endif
