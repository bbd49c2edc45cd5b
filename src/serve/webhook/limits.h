/* limits.h - what the webhook remembers to bound what requests can do: rates, tokens, messages.
 *
 * Pure, and of fixed size.  The caller has a lock. */
#ifndef TIDE_SERVE_WEBHOOK_LIMITS_H
#define TIDE_SERVE_WEBHOOK_LIMITS_H

#include "serve/webhook/webhook.h"

/* So many a second, and those of two seconds at once. */
struct webhook_rate {
    uint32_t per_s;
    uint64_t left_thousandths;
    uint64_t at_ms;
};
void webhook_rate_init(struct webhook_rate *rate, uint32_t per_s, uint64_t now_ms);
/* Whether there is one left, without taking it. */
bool webhook_rate_has(struct webhook_rate *rate, uint64_t now_ms);
bool webhook_rate_take(struct webhook_rate *rate, uint64_t now_ms);

/* Tokens that were good, by their digest. */
struct webhook_good {
    struct {
        unsigned char digest[32];
        uint64_t expires_unix_s;
    } tokens[TIDE_WEBHOOK_GOOD_MAX];
    size_t next;
};
bool webhook_good_has(const struct webhook_good *good, tide_text token, uint64_t now_unix_ms);
void webhook_good_add(struct webhook_good *good, tide_text token, uint64_t expires_unix_s);

/* Messages that came before (push.h). */
struct webhook_seen {
    uint64_t messages[TIDE_WEBHOOK_SEEN_MAX];
    size_t next;
};
bool webhook_seen_has(const struct webhook_seen *seen, uint64_t message);
void webhook_seen_add(struct webhook_seen *seen, uint64_t message);

#endif
