/* drafts.h - messages that a person writes: what is typed, what is attached, and that it is to be sent
 * (K11, K14).
 *
 * A draft is a row beside the ledger (store/store.h).  What is attached to it are files in the archive,
 * each under a name of its own that is never used again; the row lists them.
 *
 *     written              tide_reader_send()             jobs/send.c
 *     put, attach ------> an action waits (held, KR2) ------------> sent: row and files go
 *        ^                       | undo                    | refused
 *        +-----------------------+-------------------------+
 *
 * Invariants:
 *   DRF1  a file is durable before the row lists it, and is removed after the row has ceased to: a crash
 *         leaves at worst a file that no row lists, which tide_reader_files_sweep() removes.
 *   DRF2  while an action has the draft, it is not changed: what is sent is what was checked.
 *   DRF3  the Message-ID is chosen before the server hears of the draft, in a transaction, and kept.  The
 *         date is that of the action: the bytes that are sent are the same after any crash.
 *
 * Between its changes a draft is copied to the drafts at the server, by the same state machine that sends it
 * (mail/outgoing/outgoing.h), in a job of the same kind:
 *
 *     changed ---- quiet for reader.quiet, or closed ----> being copied ----> copied
 *        ^  ^                                                   |                |
 *        |  +------------------ the server refuses it ----------+                |
 *        +------------------------- changed again ------------------------------+
 *
 *   DRF4  a draft is at the server at most once, under the Message-ID of DRF3.  What is there is changed,
 *         sent or removed; another one is made only when the server says that it has none.
 *   DRF5  it counts as copied with the `changed_ms` that was read before its bytes were: what was changed
 *         meanwhile is copied again.
 *   DRF6  while an action has the draft, it is not copied.  Sending replaces what the server has: what is sent
 *         is what was checked, also when another program changed the copy.
 *   DRF7  a draft that the server may have is removed there before its row goes.
 *   DRF8  each change, and the end of an action that leaves the draft, enqueues a look in its own
 *         transaction; so does each start.
 *
 * A draft that was begun in Gmail is continued here (taken.c); what is done to ours there is seen by the base
 * (jobs/look.c):
 *
 *     a message that is a draft -- tide_reader_continue() --> copied (TAKEN: the id of the draft is not known)
 *     copied -- its message at Gmail is gone --> another message has the draft: copied, with its text
 *                                                no draft is there any more: the row goes
 *     changed -- the same --> it replaces what is there; where nothing is, it is made anew and says so
 *
 *   DRF9  a draft at Gmail is at most one draft here: one transaction looks whether there is one and takes it
 *         over.  That needs no network, changes nothing at Gmail, and counts as copied.
 *   DRF10 a row goes, or gets another text, because of what Gmail says only if nothing was changed here since
 *         it was copied: looked at in the transaction that does it.  It goes only if both the draft and its
 *         message are gone: one answer is no proof.
 *   DRF11 what was changed here replaces what was changed there (K9): the last write wins.
 */
#ifndef TIDE_READER_DRAFTS_H
#define TIDE_READER_DRAFTS_H

#include "mail/outgoing/outgoing.h"
#include "reader/inside.h"

enum {
    TIDE_DRAFT_FILE_BYTES = 33, /* the name of a file: 32 hexadecimal digits */
    TIDE_DRAFT_FILES_BYTES = 64 << 10,
    TIDE_DRAFT_PATH_BYTES = 4096,
};

/* A copy of a row; embedded. */
struct tide_reader_letter {
    char id[TIDE_DRAFT_ID_BYTES];
    uint32_t account;
    tide_buf json, outgoing;
    json_t *files; /* owned */
    uint64_t sending, changed_ms;
};
void tide_reader_letter_done(struct tide_reader_letter *letter); /* a zeroed one is fine */
/* In a transaction; what `letter` had is dropped.  TIDE_NOT_FOUND. */
tide_status tide_reader_letter_read(tide_reader *reader, tide_rows db, uint32_t account,
                                    const char *id, struct tide_reader_letter *letter,
                                    tide_error *err);

typedef enum tide_letter_form {
    TIDE_LETTER_CHECKED, /* only whether it can be sent: without what is attached */
    TIDE_LETTER_COPIED,  /* as far as it is typed */
    TIDE_LETTER_SENT,
} tide_letter_form;
/* Appends the message (mail/compose/written.h). */
tide_status tide_reader_letter_compose(tide_reader *reader, const struct tide_reader_user *user,
                                       const struct tide_reader_letter *letter,
                                       const char *message_id, uint64_t date_unix_ms,
                                       tide_letter_form form, tide_buf *out, tide_error *err);
/* A new Message-ID, without <>. */
void tide_reader_message_id(tide_reader *reader, const struct tide_reader_user *user,
                            char id_out[TIDE_OUTGOING_ID_BYTES]);
/* DRF3: gives it a Message-ID, unless it has one. */
tide_status tide_reader_letter_name(tide_reader *reader, const struct tide_reader_user *user,
                                    tide_rows db, struct tide_reader_letter *letter,
                                    tide_error *err);

/* Removes the files of a draft that is gone. */
void tide_reader_letter_files_remove(tide_reader *reader, const char *email, const json_t *files);

/* The draft that is to be copied next, and when that is.  TIDE_NOT_FOUND: none is. */
struct tide_reader_due {
    char id[TIDE_DRAFT_ID_BYTES];
    uint64_t at_ms;
};
tide_status tide_reader_copy_due(tide_reader *reader, tide_rows db, uint32_t account,
                                 uint64_t now_ms, struct tide_reader_due *due_out, tide_error *err);

/* Accepts the action "send" of a draft.  TIDE_INVALID, TIDE_FULL: it cannot be sent as it is;
 * TIDE_EXISTS: it is being sent; TIDE_NOT_FOUND. */
tide_status tide_reader_send(tide_reader *reader, struct tide_reader_user *user, const char *draft,
                             struct tide_reader_action *action, tide_error *err);

/* ---- drafts that are changed at Gmail (taken.c) ---- */

/* The content of a draft at Gmail: its form, and its files, which are on the disk. */
struct tide_reader_taken {
    tide_buf json;
    json_t *files;  /* as a row lists them; owned */
    bool formatted; /* it has formatting, which the form has not */
};
void tide_reader_taken_done(struct tide_reader_taken *taken); /* a zeroed one is fine */
/* Reads a message; `thread` is the one it is in.  After a failure no file is left.  TIDE_INVALID, TIDE_FULL: a
 * part of it would be lost here; so would another sender, or another address for answers. */
tide_status tide_reader_taken_read(tide_reader *reader, const char *email, tide_text raw,
                                   tide_text thread, struct tide_reader_taken *taken,
                                   tide_error *err);
/* Makes the row `draft` (its id and account are set) that content, as it is at the server, and hides the message
 * there.  In a transaction.  TIDE_EXISTS: it is being sent. */
tide_status tide_reader_taken_put(tide_reader *reader, tide_rows db, struct tide_draft *draft,
                                  const struct tide_reader_taken *taken,
                                  const struct tide_outgoing *state, tide_error *err);
/* Whether the server said that a message is gone, or is no draft any more. */
bool tide_reader_draft_left(tide_cache *cache, const char *gmail_id);

#endif
