/* gmail.h - what the files of the Gmail service share.
 *
 * gmail.c holds the table of methods and the shape of a message in an answer;
 * messages.c, threads.c, drafts.c and labels.c the
 * handlers; post.c everything that brings a message in (insert, import,
 * send, drafts); upload.c the ways its bytes can arrive; list.c and
 * history.c the listings; limits.c what Gmail allows; lies.c its faults.
 *
 * Invariants:
 *   BGML1  what format=raw gives out are the bytes that came in, all of them and no others; only
 *          send completes headers, before the message exists.
 *   BGML2  a call that is answered with an error has changed nothing.
 *   BGML3  an empty list is left out of an answer.
 */
#ifndef BOX_GMAIL_H
#define BOX_GMAIL_H

#include "cloudbox/gate/faults.h"
#include "cloudbox/gate/service.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/google/scopes.h"
#include "cloudbox/mailbox/mail.h"

extern const struct box_service box_gmail;

enum {
    BOX_SEND_BYTES_MAX = 36700160,    /* of a message sent or drafted */
    BOX_INSERT_BYTES_MAX = 157286400, /* of one inserted or imported */
    BOX_BATCH_IDS_MAX = 1000,         /* of batchModify and batchDelete */
    BOX_MODIFY_LABELS_MAX = 100,      /* added or removed by one call */
    BOX_RECIPIENTS_MAX = 500,         /* of one message that is sent */
    BOX_UPLOADS_MAX = 256,            /* resumable sessions at a time, over all users */
    BOX_UPLOADS_BYTES_MAX = 512 << 20,
    BOX_UPLOAD_CHUNK_BYTES = 256 << 10, /* all chunks but the last are multiples of it */
};

/* ---- the shape of a message ---- */

typedef enum box_format {
    BOX_FORMAT_FULL,
    BOX_FORMAT_RAW,
    BOX_FORMAT_METADATA,
    BOX_FORMAT_MINIMAL,
} box_format;

/* Reads `format` (default full) and checks it against the token's scopes.
 * false: answered with 400 or 403. */
bool box_gmail_format(struct box_call *call, bool raw_allowed, box_format *format_out);
/* Whether gmail.metadata binds this token: no bodies, no `q`. */
bool box_gmail_metadata_bound(const struct box_call *call);
/* A message as get answers it; a body that is given out is recorded.  The
 * caller owns it. */
json_t *box_gmail_message(struct box_call *call, uint32_t slot, box_format format);
/* {id, threadId, labelIds}: what every change answers with. */
json_t *box_gmail_message_brief(const box_mailbox *mailbox, uint32_t slot);
/* The ids of a label set, or NULL when it is empty (BGML3). */
json_t *box_gmail_label_ids(const box_mailbox *mailbox, uint32_t label_set);
/* The message named by args[0], or BOX_SLOT_NONE after a 404. */
uint32_t box_gmail_message_arg(struct box_call *call);

/* ---- reading bodies ---- */

/* false: a member of `object` is not in `names` (NULL-terminated), answered
 * with 400 as Google does. */
bool box_gmail_known(struct box_call *call, const json_t *object, const char *const *names);
/* A list of strings; absent and null are an empty one.  false: answered 400. */
bool box_gmail_list(struct box_call *call, const json_t *object, const char *name, size_t count_max,
                    const char *too_many, const json_t **list_out);

/* Labels to add and to take, checked. */
struct box_relabel {
    uint16_t add[BOX_MODIFY_LABELS_MAX];
    size_t add_count;
    uint16_t take[BOX_MODIFY_LABELS_MAX];
    size_t take_count;
};
/* addLabelIds and removeLabelIds of a body.  false: answered with 400. */
bool box_gmail_relabel_read(struct box_call *call, const json_t *body,
                            struct box_relabel *relabel_out);
/* Whether the message can take them: drafts cannot, full ones neither. */
bool box_gmail_relabel_fits(const box_mailbox *mailbox, uint32_t slot,
                            const struct box_relabel *relabel);
void box_gmail_relabel(struct box_call *call, uint32_t slot, const struct box_relabel *relabel);

/* ---- messages that come in (post.c) ---- */

typedef enum box_post_kind {
    BOX_POST_INSERT,
    BOX_POST_IMPORT,
    BOX_POST_SEND,
    BOX_POST_DRAFT_CREATE,
    BOX_POST_DRAFT_UPDATE,
    BOX_POST_DRAFT_SEND,
    BOX_POSTS, /* how many */
} box_post_kind;

/* One incoming message, by any of the methods. */
struct box_post {
    box_post_kind kind;
    const json_t *meta; /* the JSON object that came with it; NULL: none.  Borrowed. */
    tide_text raw;      /* uploaded; data == NULL: it is in meta, or absent */
    tide_text draft_id; /* of the path, for drafts.update */
    bool deleted;
    bool date_header; /* internalDateSource=dateHeader */
};

box_post_kind box_post_kind_of(const struct box_call *call); /* by its method */
/* The parameters of the call that starts a post.  false: answered 400. */
bool box_post_begin(struct box_call *call, box_post_kind kind, struct box_post *post_out);
/* Does it and answers. */
void box_post_apply(struct box_call *call, const struct box_post *post);
size_t box_post_bytes_max(box_post_kind kind);
/* 413, naming the limit. */
void box_post_too_large(struct box_call *call, box_post_kind kind);

/* ---- resumable sessions (upload.c) ----
 *
 * The state of the service, which --state does not keep: after a restart sessions are
 * unknown (404) and a client starts again, as it must be able to anyway. */
void *box_uploads_open(box_cloud *cloud);
void box_uploads_close(void *state);

/* ---- limits and faults (limits.c, lies.c) ---- */

enum { BOX_METER_GMAIL = 1 };
enum { BOX_GMAIL_LIMITS = 3, BOX_GMAIL_FAULTS = 13 };
extern const struct box_limit box_gmail_limits[BOX_GMAIL_LIMITS];
extern const struct box_problem box_gmail_rate;
void box_gmail_refuse(struct box_call *call, const struct box_limit *limit, uint64_t retry_at_ms);
extern const struct box_fault box_gmail_faults[BOX_GMAIL_FAULTS];

/* ---- handlers ---- */

box_handler box_gmail_profile;

box_handler box_gmail_messages_get;
box_handler box_gmail_messages_modify;
box_handler box_gmail_messages_trash;
box_handler box_gmail_messages_untrash;
box_handler box_gmail_messages_delete;
box_handler box_gmail_messages_batch_modify;
box_handler box_gmail_messages_batch_delete;
box_handler box_gmail_attachments_get;

box_handler box_gmail_threads_get;
box_handler box_gmail_threads_modify;
box_handler box_gmail_threads_trash;
box_handler box_gmail_threads_untrash;
box_handler box_gmail_threads_delete;

box_handler box_gmail_drafts_get;
box_handler box_gmail_drafts_delete;

box_handler box_gmail_labels_list;
box_handler box_gmail_labels_create;
box_handler box_gmail_labels_get;
box_handler box_gmail_labels_update;
box_handler box_gmail_labels_patch;
box_handler box_gmail_labels_delete;

/* The methods of box_post_kind, with the message in JSON and as an upload. */
box_handler box_gmail_post;
box_handler box_gmail_upload;
box_handler box_gmail_upload_chunk;

/* list.c and history.c */
box_handler box_gmail_messages_list;
box_handler box_gmail_threads_list;
box_handler box_gmail_drafts_list;
box_handler box_gmail_history_list;

#endif
