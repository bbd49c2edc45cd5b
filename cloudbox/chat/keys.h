/* keys.h - who asked the chat model, by key, and what was asked again.
 *
 * A model has no users: its callers are their keys.  The referee counts calls by key (service.h,
 * `subject`); here is what it does not know: which calls were answered, which of them had been
 * answered before word for word, and how many came after a refusal for money.
 *
 * Invariants:
 *   BKEY1  memory is bounded: further keys count as one, further requests are not remembered.
 */
#ifndef BOX_CHAT_KEYS_H
#define BOX_CHAT_KEYS_H

#include "base/map.h"
#include "base/text.h"

#include <jansson.h>

enum {
    BOX_KEYS_MAX = 256,
    BOX_KEY_BYTES_MAX = 64, /* shown */
    BOX_KEYS_REQUESTS_MAX = 100000,
};

struct box_key {
    char name[BOX_KEY_BYTES_MAX + 1];
    uint64_t answered;
    uint64_t repeated; /* requests that had been answered before */
    uint64_t most;     /* answers to one request */
    uint64_t obeyed;   /* answers that did what a text ordered (obey.h) */
    uint64_t after_billing;
    bool billed; /* it was refused for money */
    uint64_t in_tokens, out_tokens;
};

struct box_keys {
    struct box_key keys[BOX_KEYS_MAX + 1]; /* the last: all others, and calls without one */
    size_t count;
    tide_map numbers;  /* hash of a key -> its index */
    tide_map requests; /* hash of a key and a body that was answered -> how often */
};

void box_keys_init(struct box_keys *keys);
void box_keys_done(struct box_keys *keys);
/* From 1; its name is in keys->keys[number - 1]. */
uint32_t box_keys_number(struct box_keys *keys, tide_text key);
/* A request arrived; `request` is the hash of its body. */
void box_keys_asked(struct box_keys *keys, uint32_t number, uint64_t request);
void box_keys_answered(struct box_keys *keys, uint32_t number, uint64_t request, uint64_t in_tokens,
                       uint64_t out_tokens);
void box_keys_billed(struct box_keys *keys, uint32_t number);
void box_keys_obeyed(struct box_keys *keys, uint32_t number);
/* {"KEY": {"answered", "repeated", "most", "obeyed", "after_billing", "in_tokens", "out_tokens"}}; the
 * caller's. */
json_t *box_keys_json(const struct box_keys *keys);

#endif
