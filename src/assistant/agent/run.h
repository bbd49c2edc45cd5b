/* run.h - one run of an agent (J15): what was said, which tools the model asked for, what is next.
 *
 * Pure: it calls no model and runs no tool.  Its caller does what tide_agent_next_of() says, reports the
 * outcome, and stores the run as JSON after each step; a crash repeats only the step that was not
 * stored.  Conversations and answers are the JSON of cloud/chat/talk.h.
 *
 *      ASK --take()--> TOOL --result()--> TOOL ... ASK ... ENDED
 *
 * Invariants:
 *   AGR1  every tool call gets one result, in the order of the calls, before the next question.
 *   AGR2  at most `iterations_max` answers are taken, and at most TIDE_AGENT_CALLS_MAX tools run.
 *   AGR3  a run that has ended does not change.
 *   AGR4  a run that was written reads back the same.
 *   AGR5  a call of a tool that the run has not is never given to the caller: it gets an error as
 *         its result, and the model may go on.
 *   AGR6  after TIDE_NO_MEMORY a run can only be freed; what was stored of it is whole.
 */
#ifndef TIDE_ASSISTANT_AGENT_RUN_H
#define TIDE_ASSISTANT_AGENT_RUN_H

#include "base/json.h"
#include "base/mem.h"

enum {
    TIDE_AGENT_CALLS_MAX = 100,             /* tools in one run */
    TIDE_AGENT_RESULT_BYTES_MAX = 64 << 10, /* of one tool; the rest is cut */
    TIDE_AGENT_TALK_BYTES_MAX = 4 << 20,    /* of the messages together */
};

typedef struct tide_agent_run tide_agent_run;

typedef enum tide_agent_status {
    TIDE_AGENT_RUNNING,
    TIDE_AGENT_DONE,      /* the model has said its last word */
    TIDE_AGENT_LIMIT,     /* a limit of AGR2 */
    TIDE_AGENT_ESCALATED, /* a person must look (J28) */
    TIDE_AGENT_FAILED,    /* the model failed or refused */
} tide_agent_status;
const char *tide_agent_status_name(tide_agent_status status); /* "running" */

struct tide_agent_begin {
    tide_text profile;
    tide_text model; /* empty: that of the account */
    tide_text system;
    tide_text message; /* what the user says first */
    /* An array of {"name","description","schema"}, as in talk.h; borrowed.  NULL: none. */
    const json_t *tools;
    uint32_t iterations_max;
    uint32_t tokens_max;
    bool has_temperature;
    uint32_t temperature_milli;
};
tide_status tide_agent_run_new(const struct tide_agent_begin *begin, tide_mem *mem,
                               tide_agent_run **run_out, tide_error *err);
/* TIDE_INVALID: it is not one. */
tide_status tide_agent_run_read(tide_text json, tide_mem *mem, tide_agent_run **run_out,
                                tide_error *err);
void tide_agent_run_free(tide_agent_run *run); /* NULL is fine */
/* Appends one line. */
tide_status tide_agent_run_write(const tide_agent_run *run, tide_buf *out, tide_error *err);

typedef enum tide_agent_next {
    TIDE_AGENT_ASK,  /* call the model with tide_agent_talk(), then take() or end() */
    TIDE_AGENT_TOOL, /* run tide_agent_call(), then result() or end() */
    TIDE_AGENT_ENDED,
} tide_agent_next;
tide_agent_next tide_agent_next_of(const tide_agent_run *run);

/* For ASK: appends the conversation. */
tide_status tide_agent_talk(const tide_agent_run *run, tide_buf *out, tide_error *err);
/* Takes the model's answer.  TIDE_INVALID: it is not one, and nothing has changed. */
tide_status tide_agent_take(tide_agent_run *run, tide_text answer, tide_error *err);

/* For TOOL; borrowed until the run changes. */
struct tide_agent_call {
    unsigned number; /* from 1, in the run: the same after a restart */
    tide_text id, name;
    const json_t *arguments; /* an object */
};
void tide_agent_call_of(const tide_agent_run *run, struct tide_agent_call *call_out);
/* The result of that call; cut at TIDE_AGENT_RESULT_BYTES_MAX. */
tide_status tide_agent_result(tide_agent_run *run, tide_text result, bool failed, uint64_t took_ms,
                              tide_error *err);

/* Ends the run; `why` is its last word. */
tide_status tide_agent_end(tide_agent_run *run, tide_agent_status status, tide_text why,
                           tide_error *err);

tide_agent_status tide_agent_status_of(const tide_agent_run *run);
uint32_t tide_agent_iterations(const tide_agent_run *run);
tide_text tide_agent_final(const tide_agent_run *run); /* borrowed; empty while it runs */
/* [{"number","tool","arguments","result","failed","ms"}], borrowed. */
const json_t *tide_agent_log(const tide_agent_run *run);

#endif
