/* model.h - what is said to the model, and what it answers.
 *
 * A conversation in neither dialect, and the rules that answer it: the model
 * looks for a mail in what the user said and for what is wanted in the rest,
 * then calls tools, writes JSON or writes a sentence or two.
 *
 * Tools: one that reads (search, look up) comes first when the mail asks for
 * something, then those that act (draft, label, escalate, note); each is called
 * once.  Tools that send, delete or pay are left alone unless they are the only
 * choice or named by tool_choice.
 */
#ifndef BOX_CHAT_MODEL_H
#define BOX_CHAT_MODEL_H

#include "base/buf.h"
#include "cloudbox/chat/schema.h"

enum {
    BOX_TALK_TURNS_MAX = 4096,
    BOX_TALK_TOOLS_MAX = 128,
    BOX_TALK_CALLS_MAX = 4,  /* in one answer */
    BOX_TALK_ROUNDS_MAX = 8, /* of tools; then it answers in words */
    BOX_TALK_STOPS_MAX = 4,
    BOX_TALK_CONTEXT_BYTES_MAX = 64 << 10, /* in which named values are looked up */
    BOX_SAID_BYTES_MAX = 128 << 20,
};

typedef enum box_turn_role {
    BOX_TURN_USER,
    BOX_TURN_MODEL,
    BOX_TURN_CALL,   /* the model called the tool named in `text` */
    BOX_TURN_RESULT, /* what the tool said */
} box_turn_role;

struct box_turn {
    box_turn_role role;
    tide_text text;
    bool failed; /* a result that is an error */
};

struct box_tool {
    tide_text name;
    tide_text description;
    const json_t *schema; /* borrowed; NULL: any object */
};

typedef enum box_tool_choice {
    BOX_TOOL_AUTO,
    BOX_TOOL_NONE,
    BOX_TOOL_ANY,   /* some tool must be called */
    BOX_TOOL_NAMED, /* this one */
} box_tool_choice;

struct box_talk {
    tide_text model;
    tide_text system;
    struct box_turn *turns; /* in the arena */
    size_t turns_count;
    struct box_tool *tools;
    size_t tools_count;
    box_tool_choice choice;
    size_t named;
    bool parallel;
    bool wants_json;      /* any object */
    const json_t *schema; /* of the answer; NULL: none */
    uint64_t tokens_max;  /* 0: no limit */
    tide_text stops[BOX_TALK_STOPS_MAX];
    size_t stops_count;
    bool stream;
    bool stream_usage;
    uint64_t prompt_bytes;
    uint64_t hash; /* of the whole request: ids come from it */
    tide_arena *arena;
};

struct box_said {
    tide_buf text; /* empty when there are calls only */
    struct {
        const struct box_tool *tool;
        tide_text name;    /* the tool's, or what a fixture says */
        json_t *arguments; /* owned */
    } calls[BOX_TALK_CALLS_MAX];
    size_t calls_count;
    bool cut;       /* by tokens_max */
    tide_text stop; /* the stop sequence that ended it; data == NULL: none */
};

void box_said_init(struct box_said *said);
void box_said_done(struct box_said *said);

/* Answers by the rules.  The same conversation gives the same answer (BCHT1). */
void box_model_answer(const struct box_talk *talk, struct box_said *said);
/* Applies stop sequences and the limit on tokens. */
void box_model_limit(const struct box_talk *talk, struct box_said *said);

/* About four bytes are a token. */
static inline uint64_t box_tokens(uint64_t bytes)
{
    return (bytes + 3) / 4;
}
uint64_t box_said_bytes(const struct box_said *said);

/* All that was said, one after the other, in the arena. */
tide_text box_talk_text(const struct box_talk *talk);

#endif
