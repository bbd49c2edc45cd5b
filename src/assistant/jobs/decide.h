/* decide.h - what the assistant does: pure decisions, from a record and a thread to jobs, labels and a
 * status.
 *
 * Sync sees things (a message, a label, a deletion) and asks which job follows; a handler knows what
 * the model said, or what became of a draft, and asks for a plan.  Nothing here calls out: the tables
 * in decide.c are the whole behaviour, and tests/unit/assistant/assistant_decide_test.c has them
 * again, cell by cell.
 *
 * Invariants, of every plan:
 *   DCD1  after it a thread has at most one label of a category or Outbox: what it adds is one label,
 *         and what it takes are all others of these.
 *   DCD2  its status may follow the one the record has (words/status.h), or pending after it.
 *   DCD3  a draft of ours that lives is made stale whenever the record leaves the statuses that have
 *         one for a new round, never before the new classification is known (J25).
 *   DCD4  a plan that was carried out gives, for the record it leaves, nothing to do or itself (J17).
 *   DCD5  a Done of the user that was not carried out stays on the thread.
 */
#ifndef TIDE_ASSISTANT_JOBS_DECIDE_H
#define TIDE_ASSISTANT_JOBS_DECIDE_H

#include "assistant/words/status.h"

#include <stdint.h>

/* ---- sync: which job follows ---- */

typedef enum tide_assistant_sight {
    TIDE_SIGHT_MESSAGE,    /* a new message in the inbox */
    TIDE_SIGHT_LISTED,     /* a message of the inbox without a label of ours, in a full sync */
    TIDE_SIGHT_LISTED_GAP, /* the same after an expired history id: messages may have been missed */
    TIDE_SIGHT_LABELED_GAP, /* any of the inbox, then: a round puts its label on messages that it does
                               not know, and the user on those that no sync saw */
    TIDE_SIGHT_DONE,        /* the user put the label on ... */
    TIDE_SIGHT_REWORK,
    TIDE_SIGHT_NEEDS_RESPONSE,
    TIDE_SIGHT_DELETED,  /* a message is gone */
    TIDE_SIGHT_DONE_GAP, /* the label is there, after an expired history id (J23) */
    TIDE_SIGHT_REWORK_GAP,
    TIDE_SIGHT_NEEDS_RESPONSE_GAP,
    TIDE_SIGHT_DRAFT_GAP, /* a record with a draft, after an expired history id */
    TIDE_SIGHT_STUCK,     /* a record in work whose jobs ended without it: killed too often */
    TIDE_SIGHT_RUN,       /* an agent's run that did not end: the same */
    TIDE_SIGHT_LEFT,      /* a draft that is stale or being made: the same */
    TIDE_SIGHTS,
} tide_assistant_sight;

typedef enum tide_assistant_work {
    TIDE_WORK_NONE,
    TIDE_WORK_CLASSIFY, /* a thread without a record: the router chooses the way (J8) */
    TIDE_WORK_RETRIAGE, /* a thread with one, if another message came (J16, J25) */
    TIDE_WORK_DONE,     /* cleanup {done} */
    TIDE_WORK_CHECK_SENT,
    TIDE_WORK_REWORK,
    TIDE_WORK_MANUAL_DRAFT,
    TIDE_WORK_DRAFT, /* the record becomes pending, if it is not */
    TIDE_WORK_AGENT, /* the run goes on */
    TIDE_WORK_LEFT,  /* cleanup {left} */
    TIDE_WORKS,
} tide_assistant_work;

/* `same`: of LISTED_GAP and LABELED_GAP, the message is the one that the record was made from; of STUCK, the draft that
 * is to be reworked is still there. */
tide_assistant_work tide_assistant_work_for(tide_assistant_sight sight,
                                            tide_assistant_status status, bool same);

/* ---- handlers: what is done ---- */

/* The user's Done on a thread.  Cleanup takes the thread out of the inbox and leaves the label (J12). */
typedef enum tide_assistant_done {
    TIDE_DONE_NONE, /* it has no such label */
    TIDE_DONE_OPEN, /* it was not carried out yet: it is the user's last word, perhaps */
    TIDE_DONE_OVER, /* it was; a new round takes the label off, so that it is not seen again (J23) */
} tide_assistant_done;

/* What a record and its thread say. */
struct tide_assistant_facts {
    tide_assistant_status status; /* NO_STATUS: there is no record */
    tide_assistant_category category;
    /* Another message came since the record was made (J16).  Counts alone do not tell: users delete
     * messages, and send some. */
    bool newer;
    uint32_t reworks;
    bool draft; /* a draft of ours lives, as far as the record knows */
    tide_assistant_done done;
};

/* Bits of labels (words/status.h). */
#define TIDE_LABEL_BIT(label) (1u << TIDE_ASSISTANT_LABEL_##label)

struct tide_assistant_plan {
    bool act;                     /* false: there is nothing to do, and nothing below counts */
    uint32_t add, take;           /* labels of the thread, as bits */
    bool take_inbox;              /* and the label INBOX */
    tide_assistant_status status; /* NO_STATUS: it stays */
    bool draft_stale;             /* the draft that lives is to be trashed */
    bool write;                   /* a draft is to be written */
    const char *event;            /* its kind; NULL: none */
    bool
        done; /* cleanup {done} follows: no listing makes one for a record that was archived (J23) */
};

typedef enum tide_assistant_round {
    TIDE_ROUND_NEW,      /* J10: only without a record */
    TIDE_ROUND_FORCE,    /* a person asked for it */
    TIDE_ROUND_RETRIAGE, /* a new message came (J16, J25) */
} tide_assistant_round;

/* Whether to classify: asked before the model is. */
bool tide_assistant_classify_wanted(tide_assistant_round round,
                                    const struct tide_assistant_facts *facts);
/* After it, with what it was classified as. */
struct tide_assistant_plan tide_assistant_plan_classified(tide_assistant_round round,
                                                          const struct tide_assistant_facts *facts,
                                                          tide_assistant_category category);

/* J11: only if the status is pending. */
bool tide_assistant_draft_wanted(const struct tide_assistant_facts *facts);
/* J14: not if there is a draft or one is in work.  The record becomes pending.  With a draft, the
 * label that asked for one goes: the thread has another. */
struct tide_assistant_plan tide_assistant_plan_manual(const struct tide_assistant_facts *facts);
/* After a draft was made, for a pending record: Needs Response becomes Outbox. */
struct tide_assistant_plan tide_assistant_plan_drafted(const struct tide_assistant_facts *facts);

/* A record in work whose thread has no message left: its round is over. */
struct tide_assistant_plan tide_assistant_plan_gone(const struct tide_assistant_facts *facts);

/* J13, J26 */
typedef enum tide_assistant_rework {
    TIDE_REWORK_NONE,  /* there is no draft to rework */
    TIDE_REWORK_WRITE, /* another draft */
    TIDE_REWORK_LAST,  /* the last automatic one: it says so, and the thread is Action Required */
    TIDE_REWORK_LIMIT, /* no model call any more */
} tide_assistant_rework;
/* `limit` 0: no draft is ever reworked. */
tide_assistant_rework tide_assistant_rework_for(const struct tide_assistant_facts *facts,
                                                uint32_t limit);
/* The plan before the model is called: status rework_requested, or with LIMIT its end. */
struct tide_assistant_plan tide_assistant_plan_rework(const struct tide_assistant_facts *facts,
                                                      uint32_t limit);
/* The plan after the draft was made. */
struct tide_assistant_plan tide_assistant_plan_reworked(const struct tide_assistant_facts *facts,
                                                        uint32_t limit);

/* J15: how the run of an agent ended. */
struct tide_assistant_agent_end {
    bool drafted; /* a draft of it lives */
    bool doubt;   /* one that it began may be there, and is not to be */
    bool sent;    /* it sent a reply, or may have */
    bool look;    /* a person must look: it escalated (J28), failed, or came to a limit */
    bool done;    /* the user put Done on meanwhile, and that was carried out */
};
tide_assistant_category tide_assistant_agent_category(const struct tide_assistant_agent_end *agent);
/* A status that may not follow the one of the record is reached by pending: a new round began. */
struct tide_assistant_plan tide_assistant_plan_agent(const struct tide_assistant_facts *facts,
                                                     const struct tide_assistant_agent_end *agent);

/* J12: the user put Done on. */
struct tide_assistant_plan tide_assistant_plan_done(const struct tide_assistant_facts *facts);
/* J12, J24: `there` the draft is still there; `sent` the thread has a sent message that is younger. */
struct tide_assistant_plan tide_assistant_plan_check_sent(const struct tide_assistant_facts *facts,
                                                          bool there, bool sent);

#endif
