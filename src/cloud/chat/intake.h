/* intake.h - an answer of a model, taken apart while it comes in.
 *
 * A server answers with one JSON object or with a stream of events; the first byte decides, not the
 * request, since there are servers that ignore a request for a stream.  The dialect reads the object
 * or each event into blocks; what it does not know is kept as it came.
 *
 * Invariants:
 *   ITK1  the result does not depend on how the answer is split.
 *   ITK2  a failure is final, and it is of the answer: nothing of it is used.
 *   ITK3  memory: `bytes_max` for blocks, one event, and what the JSON library makes of it.
 *   ITK4  TIDE_OK at the end means that the server said that the answer ended.
 */
#ifndef TIDE_CLOUD_CHAT_INTAKE_H
#define TIDE_CLOUD_CHAT_INTAKE_H

#include "cloud/chat/talk.h"
#include "net/sse.h"

struct tide_chat_intake;

/* How a dialect reads answers; const. */
struct tide_chat_reader {
    void (*whole)(struct tide_chat_intake *self, const json_t *value);
    void (*event)(struct tide_chat_intake *self, const json_t *value);
    /* The text of an event that is not JSON and ends the stream; NULL: there is none. */
    const char *last;
};
extern const struct tide_chat_reader tide_chat_reader_openai;
extern const struct tide_chat_reader tide_chat_reader_anthropic;

/* A part of the answer under way. */
struct tide_chat_block {
    tide_chat_part_kind kind;
    uint64_t index; /* as the server numbers it */
    tide_buf text;  /* of TEXT; of CALL its arguments; of OPAQUE the field that grows */
    tide_buf id, name;
    json_t *value;     /* OPAQUE */
    const char *field; /* OPAQUE: which one grows; a literal, NULL: none */
    unsigned turns;    /* OPAQUE: how often another one began to */
    bool lost;         /* OPAQUE: a part of it is not understood, so it cannot be given back */
};

/* Embedded; callers use only the functions. */
struct tide_chat_intake {
    const struct tide_chat_reader *reader;
    tide_mem *mem;
    size_t bytes_max, bytes_kept;
    enum { TIDE_INTAKE_BEGINS, TIDE_INTAKE_WHOLE, TIDE_INTAKE_EVENTS } mode;
    struct tide_sse sse;
    tide_buf whole;
    struct tide_chat_block *blocks;
    size_t blocks_count, blocks_capacity;
    size_t calls;
    size_t event_bytes; /* of the event or the object that is read now */
    bool said;          /* the answer of a model began */
    bool finished;      /* and the server said why it ends, */
    bool over;          /* or that it ended (ITK4): nothing after it counts */
    bool refused;
    tide_chat_stop stop;
    bool in_known, out_known;
    uint64_t in_tokens, out_tokens;
    char model[TIDE_CHAT_ID_BYTES_MAX];
    tide_status failed;
    tide_error wrong;
};

void tide_chat_intake_init(struct tide_chat_intake *self, const struct tide_chat_reader *reader,
                           size_t bytes_max, tide_mem *mem);
void tide_chat_intake_done(struct tide_chat_intake *self);
void tide_chat_intake_restart(void *self); /* another answer begins */
/* A tide_sink_write. */
tide_status tide_chat_intake_write(void *self, const char *bytes, size_t count);
/* The answer ended.  `answer_out` is zeroed or done; request id and latency are the caller's. */
tide_status tide_chat_intake_end(struct tide_chat_intake *self, const struct tide_chat_talk *talk,
                                 struct tide_chat_answer *answer_out, tide_error *err);

/* ---- for the dialects ---- */

__attribute__((format(printf, 3, 4))) void
tide_chat_intake_fail(struct tide_chat_intake *self, tide_status status, const char *format, ...);
/* An error that came instead of an answer, or inside one. */
void tide_chat_intake_refused(struct tide_chat_intake *self, const json_t *value);
/* A new block; NULL: it failed. */
struct tide_chat_block *tide_chat_block_new(struct tide_chat_intake *self, tide_chat_part_kind kind,
                                            uint64_t index);
/* The newest block with this number; NULL: there is none. */
struct tide_chat_block *tide_chat_block_at(struct tide_chat_intake *self, uint64_t index);
/* Appends, within the ceiling. */
void tide_chat_intake_add(struct tide_chat_intake *self, tide_buf *to, const json_t *text);
/* Appends to the last block of text, or begins one. */
void tide_chat_intake_text(struct tide_chat_intake *self, const json_t *text);
/* A new block of a kind that is not known, with what the server said; takes a reference. */
struct tide_chat_block *tide_chat_block_opaque(struct tide_chat_intake *self, json_t *value,
                                               uint64_t index);
/* Appends to a text of such a block; `field` is a literal. */
void tide_chat_opaque_add(struct tide_chat_intake *self, struct tide_chat_block *block,
                          const char *field, const json_t *text);
/* A count of tokens; others than plausible ones are not believed. */
void tide_chat_intake_tokens(const json_t *usage, const char *key, bool *known, uint64_t *tokens);
void tide_chat_intake_model(struct tide_chat_intake *self, const json_t *value);

#endif
