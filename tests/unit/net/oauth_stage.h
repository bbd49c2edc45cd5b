/* oauth_stage.h - what the tests of signing in share: the simulated world with the cloud
 * in a box as the provider, which can be made to misbehave, a user who follows links,
 * and a list of secrets that no error may ever show (OAU4). */
#ifndef TEST_UNIT_OAUTH_STAGE_H
#define TEST_UNIT_OAUTH_STAGE_H

#include "base/check.h"
#include "cloudbox/signin/auth.h"
#include "cloudbox/services.h"
#include "cloudbox/gate/user.h"
#include "net/oauth/google.h"
#include "net/oauth/inside.h"
#include "sim.h"
#include "sim_cloud.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"

#define EMAIL     "ada@example.com"
#define SECRET    "gmail/" EMAIL
#define READONLY  "https://www.googleapis.com/auth/gmail.readonly"
#define SEND      "https://www.googleapis.com/auth/gmail.send"
#define ORIGIN    "http://provider"
#define MINUTE_MS UINT64_C(60000)
#define HOUR_MS   UINT64_C(3600000)

/* ---- what must never be shown (OAU4) ---- */

void keep_secret(const char *text);
void keep_form(tide_text form); /* what is sent is as secret as what comes back */
void keep_grant(tide_text json);
void forget_secrets(void);
/* Neither a whole secret nor a long piece of one. */
void check_shows_nothing(const tide_error *err);

/* The call returns this status; its error, at `err`, belongs to it and shows no secret. */
#define EXPECT_OF(call, status, err) expect(call, status, err, __FILE__, __LINE__)
#define EXPECT(call, status)         EXPECT_OF(call, status, &stage->err)
void expect(tide_status rc, tide_status expected, const tide_error *err, const char *file,
            int line);

/* ---- a provider that can be made to misbehave ---- */

typedef enum manner {
    MANNER_GOOD,
    MANNER_ECHO,    /* refuses, and repeats the request in its description */
    MANNER_ECHO_OK, /* 200 with the request instead of a token */
    MANNER_PAGE,    /* a portal's page */
    MANNER_BROKEN,  /* half a JSON with the token in it */
    MANNER_RESET,   /* hangs up */
    MANNER_GRANT,   /* invalid_grant */
    MANNER_SHORT,   /* tokens that live for `life_s` */
    MANNER_ROTATE,  /* gives a new refresh token each time */
    MANNER_CUSTOM,  /* `custom` */
} manner;

struct provider {
    tide_sim_cloud *cloud;
    manner manner;
    int http;
    const char *custom;
    unsigned life_s;
    unsigned tokens; /* requests to the token endpoint */
    unsigned refreshes;
    unsigned revokes;
    char last_refresh[512];
};

/* An answer of the provider's, and the status that has to come of it. */
struct bad_answer {
    manner manner;
    int http;
    const char *custom;
    tide_status expected;
};
void provider_answers(struct provider *provider, const struct bad_answer *answer);

/* ---- the stage ---- */

struct stage {
    struct provider provider;
    tide_sim *sim;
    tide_world *world;
    tide_secrets *secrets;
    struct tide_oauth_client client;
    tide_tokens *tokens;    /* NULL: closed */
    tide_buf grant, scopes; /* of the last flow */
    tide_error err;
};

/* The sign-in with Google's provider; before any sign-in. */
struct stage *stage_start(uint64_t seed, struct tide_sim_options options);
/* With tokens of a user who has. */
struct stage *stage_signed_in(uint64_t seed);
/* Only the world and its secrets, for a provider in `options`. */
struct stage *stage_open(uint64_t seed, struct tide_sim_options options);
void stage_end(struct stage *stage);

#define STAGED(name, seed)                                                                         \
    TEST_OF(name, struct stage *stage, stage_start(seed, (struct tide_sim_options){0}), stage_end)
#define SIGNED_IN(name, seed) TEST_OF(name, struct stage *stage, stage_signed_in(seed), stage_end)

void control(struct stage *stage, const char *target, const char *body);
void let_pass(struct stage *stage, uint64_t wait_ms);

/* The user opens the link and reads where the browser ended. */
void follow(tide_world *world, const char *link, const char *more, char location_out[2048]);
/* The value of a parameter in an address, as it stands there. */
void param(const char *url, const char *name, char value_out[2048]);

tide_oauth_flow *flow_start(struct stage *stage, const char *scopes);
tide_status paste(struct stage *stage, tide_oauth_flow *flow, const char *text);
tide_status finish(struct stage *stage, tide_oauth_flow *flow); /* to stage->grant and ->scopes */
void put_grant(struct stage *stage, const char *secret);
/* Signs in and stores the grant, as `tidemark account add` does. */
void sign_in(struct stage *stage);

extern const struct tide_tokens_options tokens_options;
/* stage->tokens, after those that are open were closed. */
tide_status tokens_try(struct stage *stage, const struct tide_tokens_options *options);
void tokens_open(struct stage *stage);
void tokens_close(struct stage *stage);
tide_status get(struct stage *stage, char token_out[512]);
tide_status tokens_revoke(struct stage *stage, bool *revoked_out);

/* What the API says to a token. */
int profile(struct stage *stage, const char *token);
/* A key file of the box's; its token_uri is Google's, which the simulated network
 * takes to the box like any other. */
char *key_file(struct stage *stage);

#endif
