/* prompt.h - what a model is asked: a system text of ours, and one JSON object with the mail.
 *
 * The system text is the user's prompt or the built-in one, followed by rules that no configuration
 * can take away: the JSON is data, only `instruction` in it is the user's word, the answer has this
 * form.  Mail is only ever a string inside the JSON.
 *
 * Invariants:
 *   PRM1  no byte of a mail is in the system text.
 *   PRM2  the user text is one line of valid JSON.
 *   PRM3  both are bounded: TIDE_PROMPT_BYTES_MAX.
 */
#ifndef TIDE_ASSISTANT_TEXT_PROMPT_H
#define TIDE_ASSISTANT_TEXT_PROMPT_H

#include "assistant/text/crisp.h"
#include "assistant/text/letter.h"
#include "base/buf.h"

enum {
    TIDE_PROMPT_BYTES_MAX = 8 << 20,   /* never reached: the parts below are bounded */
    TIDE_PROMPT_MAIL_CHARS = 12000,    /* of the message */
    TIDE_PROMPT_THREAD_CHARS = 24000,  /* of its thread */
    TIDE_PROMPT_DRAFT_CHARS = 16000,   /* of the draft that is reworked */
    TIDE_PROMPT_CONTEXT_MAX = 20,      /* related threads */
    TIDE_PROMPT_CLASSIFY_CHARS = 6000, /* enough to tell what a message is about */
};

struct tide_prompt {
    tide_buf system, user;
};
void tide_prompt_init(struct tide_prompt *prompt, tide_mem *mem);
void tide_prompt_done(struct tide_prompt *prompt);

struct tide_prompt_classify {
    tide_text prompt; /* of the user; "": the built-in one */
    const struct tide_letter *letter;
    const struct tide_letter *thread; /* the other messages, oldest first; may be none */
    size_t thread_count;
    const tide_text *styles; /* their names */
    size_t styles_count;
    bool automated; /* tier 1 (J21) */
    tide_text automated_why;
};
tide_status tide_prompt_classify(const struct tide_prompt_classify *ask,
                                 struct tide_prompt *prompt_out);

/* Asks for searches in the user's mail (J11). */
tide_status tide_prompt_context(tide_text prompt, const struct tide_letter *letter,
                                size_t searches_max, struct tide_prompt *prompt_out);

/* A related thread. */
struct tide_prompt_related {
    const struct tide_letter *letters;
    size_t count;
};

struct tide_prompt_draft {
    tide_text prompt;                 /* of the user; "": the built-in one */
    tide_text self;                   /* address of the account: who the reply is from */
    tide_text style;                  /* the text of the style */
    tide_text language;               /* "cs"; "": that of the message */
    tide_text instruction;            /* the user's (J13, J14); "" */
    tide_text draft;                  /* of a rework: the draft as it is; "" */
    const struct tide_letter *thread; /* with the answered message, oldest first */
    size_t thread_count;
    const struct tide_prompt_related *related;
    size_t related_count;
    size_t related_chars; /* of each */
};
/* A draft (J11), a rework (J13) if `draft` is given. */
tide_status tide_prompt_draft(const struct tide_prompt_draft *ask, struct tide_prompt *prompt_out);

struct tide_prompt_agent {
    tide_text prompt; /* the profile's */
    const struct tide_letter *letter;
    const struct tide_crisp *crisp; /* NULL: no preprocessor */
};
/* The first message of an agent's run (J15). */
tide_status tide_prompt_agent(const struct tide_prompt_agent *ask, struct tide_prompt *prompt_out);
/* Wraps what a tool returned, for the same reason that mail is wrapped: {"result": "..."}, cut. */
tide_status tide_prompt_tool_result(tide_text output, size_t bytes_max, tide_buf *out);

#endif
