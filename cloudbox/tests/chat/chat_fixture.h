/* chat_fixture.h - what every file of the tests of the chat model needs: a cloud with
 * nothing but the model, ways to ask it in both dialects, and mails to ask about. */
#ifndef BOX_TESTS_CHAT_FIXTURE_H
#define BOX_TESTS_CHAT_FIXTURE_H

#include "cloudbox/chat/chat.h"
#include "cloudbox/chat/model.h"
#include "cloudbox/gate/quota.h"
#include "cloudbox/tests/owned.h"
#include "support/scale.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW_MS (UINT64_C(1789070400) * 1000)

/* ---- a cloud with nothing but the model ---- */

struct world {
    box_cloud *cloud;
    struct box_answer answer;
    json_t *json;
    const char *version; /* Anthropic's header */
    const char *key;
};

int setup(void **state);
int teardown(void **state);

/* ---- asking ---- */

#define OPENAI    "/v1/chat/completions"
#define ANTHROPIC "/v1/messages"

/* The status; without a body it is a GET. */
int ask_raw(struct world *world, const char *target, const char *body);
/* `body` is taken. */
int ask(struct world *world, const char *target, json_t *body);
void chat_fault(struct world *world, const char *fault);

/* Pieces of requests. */
#define USER "{\"role\":\"user\",\"content\":\"Hi there\"}"
#define HEAD "{\"model\":\"m\",\"max_tokens\":100,"
#define USE                                                                                        \
    "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"f\","    \
    "\"input\":{}}]}"
#define RESULT "{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"x\"}"

/* ---- what was answered, as OpenAI says it ---- */

json_t *message_of(const struct world *world);
const char *content_of(const struct world *world);
const char *finish_of(const struct world *world);
const json_t *openai_call(const struct world *world, size_t i);

/* ---- mails, and what is right about them ---- */

enum { MAILS = 11 };
struct sample {
    const char *mail;
    const char *category; /* of the assistant's five */
    const char *kind;     /* of a finer set */
};
extern const struct sample mails[MAILS];

/* Sets of answers: the assistant's five, and a finer one. */
extern const char *const five;
extern const char *const finer;
json_t *classify_tool(bool openai, const char *values);

#endif
