/* chat.h - the model of jobs.h: a chat account, within its budget of tokens (J19, J27).
 *
 * The estimate of a call is held before it and settled after it (budget/budget.h); over the budget the
 * job waits for the next day, or for a larger budget.  A call that a process died in counts as made.
 *
 * Invariants:
 *   JCH1  a question is one message of a user, which is data; the system text is ours (text/prompt.h).
 *   JCH2  no tool is offered, except in the conversation of an agent, whose run checks each call
 *         (agent/run.h AGR5).
 */
#ifndef TIDE_ASSISTANT_JOBS_CHAT_H
#define TIDE_ASSISTANT_JOBS_CHAT_H

#include "assistant/jobs/jobs.h"
#include "cloud/chat/chat.h"

struct tide_assistant_chat {
    tide_engine *engine;
    tide_world *world;
    tide_chat *chat;         /* borrowed */
    uint32_t account;        /* of the ledger */
    uint64_t tokens_per_day; /* 0: no budget */
    /* Called before each call: `over`, the budget does not allow it.  NULL: not called. */
    void (*on_budget)(void *arg, bool over);
    void *on_budget_arg;
};
/* A tide_assistant_asker; `chat` is a struct tide_assistant_chat. */
tide_status tide_assistant_chat_ask(void *chat, tide_job *job,
                                    const struct tide_assistant_question *question,
                                    struct tide_assistant_answer *answer, tide_error *err);

#endif
