/* webhook_fixture.h - a webhook, the issuer whose keys it fetches, and a clock that a test moves.
 *
 * The issuer is an HTTP server of the test.  The clock stands still but for `later()`, so that nothing
 * depends on the speed of the machine; a watchdog of a minute turns a hang into a failure. */
#ifndef TIDE_TESTS_SERVE_WEBHOOK_FIXTURE_H
#define TIDE_TESTS_SERVE_WEBHOOK_FIXTURE_H

#include "cloudbox/signin/jwt.h"
#include "serve/webhook/webhook.h"
#include "unit/serve/httpd/httpd_fixture.h"

#define AUDIENCE "https://mail.example.org/webhook/gmail"
#define SENDER   "push@project.iam.gserviceaccount.com"
#define ISSUER   "https://accounts.google.com"

struct hook {
    tide_world *world;
    const box_key *key;   /* the issuer's */
    const box_key *other; /* of somebody else */
    tide_httpd *issuer;
    struct tide_httpd_route route;
    char keys_url[64];
    tide_webhook *webhook;
    /* The issuer. */
    atomic_int fetches;
    atomic_int issuer_status; /* 200 */
    atomic_bool stall;        /* it answers when this ends */
    atomic_bool second_key;   /* it publishes `other`, too */
    /* What the webhook woke. */
    atomic_int wakes;
    atomic_int wake_status;
    char woken[TIDE_PUSH_ADDRESS_BYTES_MAX + 1];
};

/* Two keys for all tests: making one takes long. */
const box_key *key_one(void);
const box_key *key_two(void);

struct hook *hook_start(void);
void hook_stop(struct hook *hook);

/* Moves the clock on; deadlines that are over then are noticed with the next thing that happens. */
void later(uint64_t ms);

/* The claims of a good token, and a token of them; free() it. */
json_t *claims_good(const struct hook *hook);
char *token_of(const box_key *key, json_t *claims);
char *token_good(const struct hook *hook);
/* Header and claims as they are, signed with HMAC (`secret`) or not at all (""). */
char *token_raw(const char *header, const json_t *claims, tide_text secret);

/* The body of a push; valid until the next call. */
const char *push_of(const char *address, const char *message);
/* Posts it; `token` NULL: none.  Returns the status. */
int push(const struct hook *hook, const char *token, const char *body);
/* A good push of that message. */
int push_good(const struct hook *hook, const char *message);

uint64_t counted(const struct hook *hook, tide_webhook_outcome outcome);

/* Waits until it holds. */
#define until(condition)                                                                           \
    do {                                                                                           \
        const time_t by = time(NULL) + 60;                                                         \
        while (!(condition)) {                                                                     \
            (void)sched_yield();                                                                   \
            if (time(NULL) > by)                                                                   \
                fail_msg("never: %s", #condition);                                                 \
        }                                                                                          \
    } while (0)

#endif
