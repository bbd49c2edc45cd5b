/* issuer.h - an issuer of tokens, and its keys as far as they are known.
 *
 * The keys are fetched when a token needs them, and kept as long as the issuer's Cache-Control says.
 * While three quarters of that time are over the first token asks for new ones in the background, so
 * that no later one waits.  Without tokens nothing is fetched and nothing wakes up.
 *
 * Threads: any thread checks; the thread "issuer" fetches, one fetch at a time.
 *
 * Invariants:
 *   ISS1  a check never waits.  TIDE_ISSUER_WAIT promises that `changed` is called later.
 *   ISS2  keys are not used longer than their time, also if no new ones can be had.
 *   ISS3  tokens with unknown key ids cause at most one fetch in TIDE_ISSUER_AGAIN_MS, and failed fetches
 *         are TIDE_ISSUER_PAUSE_MS_FIRST apart, doubled up to TIDE_ISSUER_PAUSE_MS_MAX.
 */
#ifndef TIDE_SERVE_WEBHOOK_ISSUER_H
#define TIDE_SERVE_WEBHOOK_ISSUER_H

#include "base/log.h"
#include "serve/webhook/keyset.h"
#include "world/world.h"

enum {
    TIDE_ISSUER_LIFE_MS_DEFAULT = 3600000, /* the answer names no time */
    TIDE_ISSUER_LIFE_MS_MIN = 300000,
    TIDE_ISSUER_LIFE_MS_MAX = 86400000,
    TIDE_ISSUER_AGAIN_MS = 60000,
    TIDE_ISSUER_PAUSE_MS_FIRST = 1000,
    TIDE_ISSUER_PAUSE_MS_MAX = 60000,
};

typedef struct tide_issuer tide_issuer;

struct tide_issuer_options {
    tide_world *world; /* borrowed, as the rest */
    const char *keys_url;
    tide_log *log; /* NULL: none */
    /* After each fetch, on the issuer's thread. */
    void (*changed)(void *arg);
    void *arg;
};
/* Fetches nothing yet. */
tide_status tide_issuer_new(const struct tide_issuer_options *options, tide_mem *mem,
                            tide_issuer **issuer_out, tide_error *err);
/* Ends a fetch and waits for the thread: `changed` is not called any more.  NULL is fine for both. */
void tide_issuer_stop(tide_issuer *issuer);
void tide_issuer_free(tide_issuer *issuer);

typedef enum tide_issuer_verdict {
    TIDE_ISSUER_SIGNED,
    TIDE_ISSUER_FORGED, /* or signed with a key that the issuer does not publish */
    TIDE_ISSUER_WAIT,   /* keys are being fetched: ask again */
    TIDE_ISSUER_AWAY,   /* no keys, and the last fetch failed */
} tide_issuer_verdict;
tide_issuer_verdict tide_issuer_check(tide_issuer *issuer, const struct tide_token *token);

/* How long an answer with these headers may be kept (RFC 9111: max-age less Age); within the
 * bounds above. */
uint64_t tide_issuer_life_ms(tide_text cache_control, tide_text age);
/* https, or http to this machine: anything else could be forged on the way. */
bool tide_issuer_url_is_safe(const char *url);

#endif
