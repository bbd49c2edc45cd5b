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
 *   DRF3  the Message-ID is chosen in the transaction that accepts the action, and the date is that of the
 *         action: the bytes that are sent are the same after any crash.
 */
#ifndef TIDE_READER_DRAFTS_H
#define TIDE_READER_DRAFTS_H

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
    uint64_t sending;
};
void tide_reader_letter_done(struct tide_reader_letter *letter); /* a zeroed one is fine */
/* In a transaction; what `letter` had is dropped.  TIDE_NOT_FOUND. */
tide_status tide_reader_letter_read(tide_reader *reader, tide_rows db, uint32_t account,
                                    const char *id, struct tide_reader_letter *letter,
                                    tide_error *err);

/* Appends the message (mail/compose/written.h).  `files`: with what is attached; without, it is only
 * checked. */
tide_status tide_reader_letter_compose(tide_reader *reader, const struct tide_reader_user *user,
                                       const struct tide_reader_letter *letter,
                                       const char *message_id, uint64_t date_unix_ms, bool files,
                                       tide_buf *out, tide_error *err);

/* Removes the files of a draft that is gone. */
void tide_reader_letter_files_remove(tide_reader *reader, const char *email, const json_t *files);

/* Accepts the action "send" of a draft.  TIDE_INVALID, TIDE_FULL: it cannot be sent as it is;
 * TIDE_EXISTS: it is being sent; TIDE_NOT_FOUND. */
tide_status tide_reader_send(tide_reader *reader, struct tide_reader_user *user, const char *draft,
                             struct tide_reader_action *action, tide_error *err);

#endif
