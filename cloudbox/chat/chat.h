/* chat.h - a chat model that follows rules instead of weights.
 *
 * OpenAI-compatible chat completions and Anthropic messages, both with tools,
 * in front of one deterministic model: it reads the conversation, recognises
 * mail in it, classifies it by words, headers and senders, picks the tool that fits and fills
 * its arguments from the schema, and drafts short, sensible replies.
 * Fixtures (POST /_cloud/chat) override it for requests that contain a text.
 *
 * Any key that is not empty is taken (Bearer, or x-api-key), any model except
 * those whose name begins with "no-such".  What the reference forbids is
 * refused: calls without their results, results without their calls, sampling
 * settings under Anthropic's version 2026-10-21, a missing max_tokens there.
 *
 * Faults: "billing", "overloaded", "bad-json" (the body ends too early),
 * "length" (half of the answer), "no-usage", "invalid-arguments", "huge" (10 MB),
 * "endless-tools" (never an answer in words), "wrong-tool" (a tool that nobody named),
 * "refusal", "cut-stream" and "stream-error" (half of the events, then nothing or an error),
 * "no-stream" (one object whatever was asked), "opaque" (a thinking block with a signature, which
 * must come back unchanged), "no-sampling", "old-limit" and "new-limit" (400 for a
 * temperature, for max_completion_tokens, for max_tokens).
 *
 * Invariants:
 *   BCHT1  the same conversation gives the same answer.
 *   BCHT2  a tool call validates against the tool's schema whenever the schema can be met
 *          (schema.h, BSCM1), unless a fault asks for the contrary.
 */
#ifndef BOX_CHAT_H
#define BOX_CHAT_H

#include "cloudbox/gate/service.h"

extern const struct box_service box_chat;
struct box_chat_state *box_cloud_chat(box_cloud *cloud);
/* {"contains":"text","reply":"...", "tool":{"name","arguments"}, "obeys":true}: for requests in
 * which the text was said, by any side; the first that fits wins.  A tool is
 * called only until its result is in the conversation; then the reply follows.  One that obeys does
 * what the conversation orders (obey.h), as long as there are orders. */
tide_status box_chat_add_fixture(struct box_chat_state *chat, const json_t *fixture,
                                 tide_error *err);
void box_chat_clear_fixtures(struct box_chat_state *chat);

#endif
