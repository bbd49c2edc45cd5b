/* gmail_drafts.h - drafts of the Gmail API: made in a thread, found again, read, changed, sent,
 * removed.
 *
 * A draft has an id of its own that stays while its message is replaced with each change, by us or
 * by the user.  drafts.create cannot be repeated, so a draft of ours carries a header
 * X-Tidemark-Draft with a token that was recorded before the call (E1.9): after a call whose
 * outcome is unknown, tide_gmail_draft_find() looks for the token in the thread.  The header is for
 * this window only: a mail program that saves the draft again may drop it, and then the draft's id
 * is what names it.
 *
 * Calls as in gmail.h, with its statuses and invariants.
 *
 *   GDR1  a draft that was found has the token asked for and is not in the trash.
 *   GDR2  "no such draft" is said after the whole thread was read, never after a part of it.
 */
#ifndef TIDE_CLOUD_GMAIL_DRAFTS_H
#define TIDE_CLOUD_GMAIL_DRAFTS_H

#include "cloud/gmail_threads.h"

#define TIDE_GMAIL_DRAFT_HEADER "X-Tidemark-Draft"

enum {
    TIDE_GMAIL_DRAFT_BYTES_MAX = 8 << 20, /* of a message of ours */
    TIDE_GMAIL_DRAFT_PAGES_MAX = 100,     /* of a list, 500 drafts each */
};

struct tide_gmail_draft {
    char id[64];
    char message_id[64]; /* Gmail's id of its message */
    char thread_id[64];  /* "" when the server does not say */
};

/* Makes a draft from an RFC 5322 message, in a thread ("": in one of its own).  Not safe to repeat:
 * after TIDE_UNKNOWN, TIDE_TIMEOUT and TIDE_SERVER it may exist.  TIDE_GONE: there is no such
 * thread.  10 units. */
tide_status tide_gmail_draft_create(tide_gmail *gmail, tide_job *job, tide_text raw,
                                    tide_text thread_id, struct tide_gmail_draft *draft_out,
                                    tide_error *err);
/* The draft of a thread with that token.  TIDE_NOT_FOUND: none has it, or the thread is gone.
 * 40 units, and 5 for each page of drafts. */
tide_status tide_gmail_draft_find(tide_gmail *gmail, tide_job *job, tide_text thread_id,
                                  tide_text token, struct tide_gmail_draft *draft_out,
                                  tide_error *err);
/* The draft whose message has that id.  TIDE_NOT_FOUND. */
tide_status tide_gmail_draft_of(tide_gmail *gmail, tide_job *job, tide_text message_id,
                                struct tide_gmail_draft *draft_out, tide_error *err);
/* The drafts whose message has this Message-ID ("<id@host>"), as far as Gmail's search knows; at
 * most `count_max`, 100 at most.  5 units. */
tide_status tide_gmail_drafts_with_id(tide_gmail *gmail, tide_job *job, const char *message_id,
                                      struct tide_gmail_draft *drafts_out, size_t count_max,
                                      size_t *count_out, tide_error *err);
/* Headers and text.  TIDE_GONE: it was sent or discarded (also when it is in the trash).  20
 * units. */
tide_status tide_gmail_draft_get(tide_gmail *gmail, tide_job *job, tide_text id,
                                 struct tide_gmail_parts *parts_out, tide_error *err);

struct tide_gmail_drafts {
    json_t *value;        /* owned by the page */
    const json_t *drafts; /* array of {"id","message":{"id","threadId"}}; NULL when empty */
    tide_text next;       /* "" on the last page */
};
void tide_gmail_drafts_done(struct tide_gmail_drafts *page); /* zeroed is fine */
/* `token` is the `next` of the previous page, "" at first.  5 units. */
tide_status tide_gmail_drafts_list(tide_gmail *gmail, tide_job *job, tide_text token,
                                   struct tide_gmail_drafts *page_out, tide_error *err);
/* Deletes it permanently; one that is gone is fine.  10 units. */
tide_status tide_gmail_draft_delete(tide_gmail *gmail, tide_job *job, tide_text id,
                                    tide_error *err);

/* Replaces its message; its id stays, that of its message does not.  `thread_id` "": it stays in
 * its thread.  TIDE_GONE: there is no such draft, or no such thread.  15 units. */
tide_status tide_gmail_draft_update(tide_gmail *gmail, tide_job *job, tide_text id, tide_text raw,
                                    tide_text thread_id, struct tide_gmail_draft *draft_out,
                                    tide_error *err);
struct tide_gmail_sent {
    char message_id[64]; /* Gmail's id; "" when the answer was garbled: it is sent all the same */
    char thread_id[64];
};
/* Sends it; the draft is gone then.  So a draft is sent at most once, and TIDE_GONE after an
 * earlier call whose outcome is not known means that it was sent, or removed by somebody.
 * TIDE_PERMANENT: Gmail refuses it (a recipient), and the draft stays.  TIDE_UNKNOWN,
 * TIDE_TIMEOUT, TIDE_SERVER: it may have been sent.  100 units. */
tide_status tide_gmail_draft_send(tide_gmail *gmail, tide_job *job, tide_text id,
                                  struct tide_gmail_sent *sent_out, tide_error *err);
/* The sent message with this Message-ID ("<id@host>").  TIDE_NOT_FOUND:  Gmail's search does not
 * know it, which may be a little behind.  5 units. */
tide_status tide_gmail_sent_find(tide_gmail *gmail, tide_job *job, const char *message_id,
                                 struct tide_gmail_sent *sent_out, tide_error *err);

/* ---- uploads: drafts with large files, in parts ----
 *
 * A session is an address, of which the path is kept, that takes the bytes of one message for a
 * week.  The draft is made, or changed, when the last byte is there.  Whoever knows the address can
 * go on: the caller keeps it before the first part, and never shows it.
 *
 *   GUP1  all parts but the last have a multiple of TIDE_GMAIL_UPLOAD_UNIT bytes.
 *   GUP2  repeating any call changes nothing: bytes that are there are skipped, and a finished
 *         session gives its answer again. */
enum {
    TIDE_GMAIL_UPLOAD_UNIT = 256 << 10,
    TIDE_GMAIL_UPLOAD_BYTES_MAX = 36700160, /* of a message; more is 413, TIDE_PERMANENT */
    TIDE_GMAIL_SESSION_BYTES = 1024,
};
/* Begins to upload a message of `bytes` bytes as a new draft, or as that of `draft_id`.  TIDE_GONE:
 * there is no such draft.  (A thread that is gone is refused by the last part.) */
tide_status tide_gmail_upload_begin(tide_gmail *gmail, tide_job *job, tide_text draft_id,
                                    tide_text thread_id, uint64_t bytes,
                                    char session_out[TIDE_GMAIL_SESSION_BYTES], tide_error *err);
struct tide_gmail_uploaded {
    bool finished;
    uint64_t next;                 /* unless finished: the first byte that is missing */
    struct tide_gmail_draft draft; /* finished: its ids; "" when the answer was garbled */
};
/* Sends `part`, whose first byte is the one at `from` of `total`; no bytes: asks how far it is.
 * TIDE_GONE: there is no such session (404, 410), or, with the last part, no such draft or
 * thread. */
tide_status tide_gmail_upload_put(tide_gmail *gmail, tide_job *job, const char *session,
                                  tide_text part, uint64_t from, uint64_t total,
                                  struct tide_gmail_uploaded *uploaded_out, tide_error *err);

/* Sends a reply once, under the job's governor: `again` looks for its Message-ID first (E1.9).
 * *id_out: Gmail's id; empty when it had been sent before.  100 units.  TIDE_UNKNOWN: it may have
 * been sent; TIDE_GONE: there is no such thread. */
tide_status tide_gmail_reply_send(tide_gmail *gmail, tide_job *job,
                                  const struct tide_gmail_send *send, tide_text thread_id,
                                  tide_buf *id_out, tide_error *err);

#endif
