/* head.h - what the index read in the headers of a stored message, without reading its bytes: for lists. */
#ifndef TIDE_MAIL_HEAD_H
#define TIDE_MAIL_HEAD_H

#include "mail/archive/archive.h"

/* Texts are decoded, and borrowed for the call. */
struct tide_head {
    tide_text from, to, cc, subject;
    tide_text message_id; /* without <>, else "sha256:" and the hash */
    uint64_t files;       /* attachments */
};
/* Calls `visit` once; not at all for a message that is not indexed. */
tide_status tide_archive_head(tide_archive *archive, const struct tide_stored *stored,
                              void (*visit)(const struct tide_head *head, void *arg), void *arg,
                              tide_error *err);

#endif
