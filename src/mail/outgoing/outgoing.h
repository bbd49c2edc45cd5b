/* outgoing.h - a message of the user on its way: a draft at the server, then sent once (E1.9, K11).
 *
 * Gmail sends a draft at most once: drafts.send takes the draft away, and a second call finds none.
 * So a message is always sent through a draft.  What cannot be repeated, drafts.create, can at
 * worst make a second draft, which is found by its Message-ID and removed; never a second message.
 * That the Message-ID is found is needed only to tell "sent" from "removed by somebody" after an
 * answer was lost.
 *
 *   stage     what the server may have   after a crash in it
 *   NEW       nothing of ours
 *   MAKING    nothing, or a draft        the upload's session is asked, else the Message-ID is
 *                                        looked for among drafts; then it is made
 *   TAKEN     a draft that was begun     the draft is looked for that has the message `gmail_id`; it is
 *             there                      never changed or sent before its own id is known
 *   DRAFT     the draft `draft_id`       it is changed (again), or sent
 *   SENDING   the draft, or the message  it is sent again.  No draft: the Message-ID is looked for
 *                                        in sent mail
 *   SENT      the message
 *
 * The caller stores the state and gives it back; the bytes of a message must be the same again
 * while an upload is to go on (mail/compose/compose.h writes them so).  Any status may be returned
 * at any step: the caller comes back later, with the state that was kept last.
 *
 * Invariants:
 *   OGM1  a stage is kept before its first call is made.
 *   OGM2  drafts.send is called for one draft only from the first time on until it is known whether
 *         that one was sent.
 *   OGM3  SENT is final, and is reached only when the server said so or has the message.
 *   OGM4  that a message is not in sent mail, or that a draft in doubt was not made, is believed
 *         TIDE_OUTGOING_SETTLE_MS after the first look: a search may be behind.
 *   OGM5  `content` is 0 from before a change until the server said that it has it.
 *   OGM6  a draft that was taken over and is not there any more is believed gone as in OGM4, so that
 *         another one is made only beside none.
 */
#ifndef TIDE_MAIL_OUTGOING_OUTGOING_H
#define TIDE_MAIL_OUTGOING_OUTGOING_H

#include "cloud/gmail_drafts.h"

enum {
    TIDE_OUTGOING_ID_BYTES = 256,
    TIDE_OUTGOING_STATE_BYTES_MAX = 8192, /* of a state as text */
    TIDE_OUTGOING_SETTLE_MS = 60000,
    TIDE_OUTGOING_LOOK_MS = 10000,           /* between two looks */
    TIDE_OUTGOING_WHOLE_BYTES_MAX = 1 << 20, /* a longer message is uploaded in parts ... */
    TIDE_OUTGOING_PART_BYTES = 1 << 20,      /* ... of so many bytes */
};

typedef enum tide_outgoing_stage {
    TIDE_OUTGOING_NEW,
    TIDE_OUTGOING_MAKING,
    TIDE_OUTGOING_TAKEN,
    TIDE_OUTGOING_DRAFT,
    TIDE_OUTGOING_SENDING,
    TIDE_OUTGOING_SENT,
    TIDE_OUTGOING_STAGES,
} tide_outgoing_stage;
const char *tide_outgoing_stage_name(tide_outgoing_stage stage);

struct tide_outgoing {
    tide_outgoing_stage stage;
    char message_id[TIDE_OUTGOING_ID_BYTES]; /* without <>, as in the message */
    char draft_id[64];                       /* from DRAFT on */
    char gmail_id[64]; /* Gmail's id of its message, which each change replaces; "" */
    uint64_t content;  /* of the draft at the server; 0: not known */
    char session[TIDE_GMAIL_SESSION_BYTES]; /* of an upload; "" */
    uint64_t session_content;
    char sent_id[64];       /* SENT: Gmail's id; "" when the server did not say */
    char thread_id[64];     /* of its message; "" when the server did not say */
    uint64_t doubt_unix_ms; /* since when a search finds neither draft nor message (OGM4); 0 */
    bool doubled;           /* there may be a second draft */
    bool loose;             /* its thread is gone: it begins one of its own */
    bool formatted;         /* the draft there has formatting, which the first change takes away */
    bool removed; /* the draft was sent or removed by somebody else, before a change of ours */
    /* Of a look at what became of it (reader/jobs/look.c). */
    char refused_id[64];    /* a newer message of it that cannot be taken over; "" */
    uint64_t again_unix_ms; /* the server did not answer and is asked again then; 0 */
};

/* `message_id` without <>.  TIDE_INVALID: not an id that can stand in a header. */
tide_status tide_outgoing_init(struct tide_outgoing *state, tide_text message_id, tide_error *err);
/* Likewise for a draft that is at the server already, as the message `gmail_id`: TAKEN.  TIDE_INVALID: not
 * an id of a message. */
tide_status tide_outgoing_take(struct tide_outgoing *state, tide_text message_id,
                               tide_text gmail_id, tide_error *err);
/* The state as one line of JSON, and back.  TIDE_INVALID: not a state. */
tide_status tide_outgoing_write(const struct tide_outgoing *state, tide_buf *out);
tide_status tide_outgoing_read(tide_text text, struct tide_outgoing *state_out, tide_error *err);

/* Stores the state; durable when it returns.  Any other status ends the call with it. */
typedef tide_status tide_outgoing_keep(void *arg, const struct tide_outgoing *state,
                                       tide_error *err);

struct tide_outgoing_call {
    tide_gmail *gmail; /* patient (gmail.h): there are several calls */
    tide_job *job;
    tide_text raw;       /* the message; its Message-ID is the state's */
    tide_text thread_id; /* where it belongs; "": nowhere */
    uint64_t now_unix_ms;
    tide_outgoing_keep *keep;
    void *keep_arg;
};

/* Makes the draft at the server say what `raw` says; `doubled` is still set when a search did not
 * yet know of it: another call looks again.  TIDE_INVALID: it is being sent.
 * TIDE_PERMANENT: Gmail refuses the message. */
tide_status tide_outgoing_save(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                               tide_error *err);
/* Saves it, and sends it once; fine when it is sent.  TIDE_PERMANENT: Gmail refuses it (a
 * recipient, its size), and the draft stays.  TIDE_GONE: the draft was removed at the server while
 * it was being sent, and sent mail does not have the message; the state is NEW again, and whether
 * to send it is the user's choice.  TIDE_AGAIN: see OGM4, or no units.  Others as in gmail.h. */
tide_status tide_outgoing_send(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                               tide_error *err);
/* Removes the draft from the server; `raw` is not needed.  TIDE_INVALID: it is being sent, or
 * sent.  TIDE_AGAIN: see OGM4, or no units. */
tide_status tide_outgoing_discard(const struct tide_outgoing_call *call,
                                  struct tide_outgoing *state, tide_error *err);

#endif
