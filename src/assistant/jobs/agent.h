/* agent.h - assistant.agent {thread_id, message_id, profile, route_rule}: a run of an agent (J15, J28).
 *
 * The run is a row with its state as JSON (agent/run.h).  The handler reads it, does what is next,
 * writes it, and so on; it ends with a question to the model, whose answer another job of this kind
 * goes on with, or with the end of the run.  So every job of a run does the same, whichever it is:
 *
 *     no row      -> the mail is read, row and state are written            agent_started
 *     ASK         -> the answer is taken, or asked for: the job ends        (ask.c)
 *     TOOL        -> it runs, its result is written                         agent_read.c, agent_act.c
 *     ENDED       -> labels, then record, row and events in one transaction agent_ended
 *     row ended   -> nothing
 *
 * Invariants:
 *   AGJ1  there is one run of a message: the same key finds the same row.
 *   AGJ2  the state is durable after each tool, before the next step.  A tool that was running when
 *         the process died runs again: those below make their effect once, the user's own run again.
 *   AGJ3  what acts, acts in the thread of the payload; no argument names a thread, a message or an
 *         address that is written to.  read_thread and search_archive read the same account.
 *   AGJ4  create_draft: its token has the numbers of run and call; a thread has one draft (jobs.h JBS3).
 *   AGJ5  send_reply: at most once in a run, with a Message-ID that is recorded before it is sent and
 *         looked for before it is sent again; only if the profile may send, never to mail that is
 *         automated, only to addresses in From, To or Cc of the thread.
 *   AGJ6  add_label: a label that exists and is the user's, none of the assistant's nine.
 *   AGJ7  drafts and replies answer the message of the run, and only while it is the newest that
 *         another person sent.
 *   AGJ8  a run that fails or comes to a limit is a person's to look at, as one that escalates (J28).
 *   AGJ9  a record that knows a later message of the thread than the run is left alone; a later message that
 *         it does not know has another round when the run ends.
 *   AGJ10 a run that has read other mail sends nothing: a stranger could have it put into the reply.
 */
#ifndef TIDE_ASSISTANT_JOBS_AGENT_H
#define TIDE_ASSISTANT_JOBS_AGENT_H

#include "assistant/agent/run.h"
#include "assistant/agent/tools.h"
#include "assistant/jobs/inside.h"

/* A run at work; on the stack of its handler. */
struct tide_agent_work {
    struct tide_task task;
    const struct tide_profile *profile; /* NULL: the configuration has none of that name any more */
    char key[TIDE_ASSISTANT_KEY_BYTES];
    uint64_t id, begun_ms; /* of the row; 0: there is none */
    /* Of the row, else of the payload: a job that a sync made does not have them. */
    char profile_name[TIDE_ASSISTANT_NAME_BYTES_MAX + 1], rule[TIDE_ASSISTANT_NAME_BYTES_MAX + 1];
    bool ended;
    tide_agent_run *run;
    /* What the tool that just ran did: written with its result. */
    bool drafted, sent;
    struct tide_made made; /* when `drafted` */
};

/* A tool.  It appends its result, JSON; or an error, and *failed_out is set.  A status says that it
 * could not run: agent.c decides whether the job tries again, or the model is told. */
typedef tide_status tide_agent_do(struct tide_agent_work *work, const struct tide_agent_call *call,
                                  tide_buf *result, bool *failed_out, tide_error *err);
tide_agent_do tide_agent_search; /* agent_read.c */
tide_agent_do tide_agent_read;
tide_agent_do tide_agent_draft; /* agent_act.c */
tide_agent_do tide_agent_send;
tide_agent_do tide_agent_label;

/* The result is {"error":WHY}. */
tide_status tide_agent_refuse(const char *why, tide_buf *result, bool *failed_out);
/* A text of the arguments, not empty.  false: there is none, or it is longer; the result says so. */
bool tide_agent_text(const struct tide_agent_call *call, const char *name, size_t bytes_max,
                     tide_text *text_out, tide_buf *result, bool *failed_out);
/* The message of the run in its thread, which was read; NULL: it is gone. */
const struct tide_gmail_parts *tide_agent_message(const struct tide_agent_work *work);

#endif
