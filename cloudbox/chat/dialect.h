/* dialect.h - the two ways of speaking to the model: OpenAI's chat
 * completions and Anthropic's messages.  Each reads its request into a
 * struct box_talk, and writes what was said in its own shape, at once or as
 * events. */
#ifndef BOX_CHAT_DIALECT_H
#define BOX_CHAT_DIALECT_H

#include "cloudbox/chat/model.h"
#include "cloudbox/gate/service.h"

struct box_writing {
    bool no_usage;
    bool bad_arguments;
    bool refusal; /* the text is one */
    bool opaque;  /* begins with a block that the caller must give back as it is */
};

struct box_dialect {
    /* false: the answer says what is wrong. */
    bool (*read)(struct box_call *call, const json_t *body, struct box_talk *talk);
    void (*write_whole)(struct box_call *call, const struct box_talk *talk,
                        const struct box_said *said, struct box_writing writing);
    void (*write_events)(struct box_call *call, const struct box_talk *talk,
                         const struct box_said *said, struct box_writing writing);
    const char *id_prefix; /* of the request id, and the header that has it */
    const char *id_header;
    void (*no_key)(struct box_call *call);
    void (*bad_request)(struct box_call *call, const char *message);
    /* A parameter that the model does not take. */
    void (*bad_parameter)(struct box_call *call, const char *name, const char *message);
    /* An error after the answer began: the data of an event.  The caller owns it. */
    json_t *(*late_error)(void);
    void (*billing)(struct box_call *call, bool other_way);
    void (*overloaded)(struct box_call *call);
    void (*too_fast)(struct box_call *call);
};

extern const struct box_dialect box_openai;
extern const struct box_dialect box_anthropic;

/* ---- shared ---- */

/* A text, or the texts of a list of {"type":"text"} parts, joined; NULL data:
 * neither. */
tide_text box_parts_text(const json_t *content, tide_arena *arena);
void box_talk_add(struct box_talk *talk, box_turn_role role, tide_text text, bool failed);
/* Room for turns and tools; false: too many. */
bool box_talk_room(struct box_talk *talk, size_t turns, size_t tools);
tide_text box_json_borrow(const json_t *value); /* a text value */
enum { BOX_OPEN_CALLS_MAX = 64 };
/* Calls that wait for their results. */
struct box_open_calls {
    tide_text ids[BOX_OPEN_CALLS_MAX];
    size_t count;
};
bool box_close_call(struct box_open_calls *open, tide_text id); /* false: there is none */
bool box_tool_name_valid(tide_text name);
/* "call_" and 24 letters, the n-th of this conversation. */
void box_talk_id(const struct box_talk *talk, const char *prefix, uint32_t nth, char out[48]);

/* Events.  Adds "event: NAME\n" if there is one, and "data: VALUE\n\n"; the
 * value is taken. */
void box_event(tide_buf *out, const char *name, json_t *value);
/* Cuts the next piece of a text, about 24 bytes, more of a huge one, not inside a character. */
tide_text box_piece(tide_text *rest);

#endif
