/* signin_help.h - a small cloud for tests of sign-in and push: serves requests
 * in memory, keeps what a state file would hold, and checks signatures with
 * OpenSSL and the published key alone. */
#ifndef BOX_SIGNIN_HELP_H
#define BOX_SIGNIN_HELP_H

#include "base/check.h"
#include "cloudbox/signin/jwt.h"
#include "cloudbox/services.h"
#include "cloudbox/tests/owned.h"
#include "support/scale.h"
#include "support/test.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdio.h>
#include <stdlib.h>

#define ORIGIN   "http://127.0.0.1:4443"
#define START_MS UINT64_C(1790000000000)
#define HOUR_MS  UINT64_C(3600000)
#define DAY_MS   (24 * HOUR_MS)

struct help {
    struct box_options options;
    box_cloud *cloud;
    uint64_t now_ms;
    struct box_answer answer;
    const char *type;  /* Content-Type of the next request; NULL: a form's */
    const char *site;  /* its Sec-Fetch-Site */
    const char *token; /* its bearer */
    const char *basic; /* its whole Authorization header */
    tide_buf kept;     /* lines */
};

void help_start(struct help *help, uint64_t seed, bool auto_consent);
void help_stop(struct help *help);
#define auto_help                                                                                  \
    __attribute__((cleanup(help_stop))) struct help /* stopped at the end of its block */
#define HELP(help, seed, auto_consent)                                                             \
    auto_help help;                                                                                \
    help_start(&help, seed, auto_consent)
struct box_user *help_user(struct help *help, const char *email);

/* A second cloud, made from what the first one kept. */
void help_replay(struct help *help, const struct help *from, uint64_t seed);
int help_get(struct help *help, const char *target);
int help_post(struct help *help, const char *target, const char *body);
const char *help_body(const struct help *help);

/* The caller owns it. */
json_t *help_json(const struct help *help);
const char *help_header(const struct help *help, const char *name);
const char *help_text(const json_t *object, const char *key);

/* ---- signatures, without our own code ---- */

/* The claims of a token that the one key of `jwks` signed; anything else fails.
 * The caller owns them. */
json_t *help_claims(const json_t *jwks, const char *token);

#endif
