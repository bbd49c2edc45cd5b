/* gate_support.h - a cloud with small services of the test's own, and a way to
 * ask it.  They have the hooks of the real ones and handlers that count, so that
 * the gate is tested and not the methods of a service. */
#ifndef GATE_SUPPORT_H
#define GATE_SUPPORT_H

#include "cloudbox/gate/faults.h"
#include "cloudbox/gate/quota.h"
#include "cloudbox/record/window.h"
#include "cloudbox/services.h"
#include "cloudbox/tests/owned.h"
#include "support/scale.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_MS UINT64_C(1790000000000)

extern int handled; /* how often a handler ran; tests have one thread */
/* The methods of Gmail come first. */
extern const struct box_method test_methods[];
extern struct box_service test_gmail;
extern const struct box_service *const test_services[];

void fake_services(void);
/* Two users with tokens "a" and "b". */
box_cloud *cloud_with(const struct box_options *options);

struct ask {
    box_verb verb;
    const char *target;
    const char *token;
    const char *body;
    const char *type;
    struct box_header extra;
};

/* Fills `answer`, which the caller ends with box_answer_done(). */
int ask(box_cloud *cloud, uint64_t now_ms, const struct ask *what, struct box_answer *answer);
/* One call whose slots are free at once. */
int ask_status(box_cloud *cloud, uint64_t now_ms, const struct ask *what);
int get_message(box_cloud *cloud, uint64_t now_ms, const char *id);
/* The parsed body of an answer; fails the test when it is no JSON. */
json_t *ask_json(box_cloud *cloud, uint64_t now_ms, int status, const struct ask *what);
/* A number or text deep inside: "users", "a@x.org", "calls", NULL. */
const json_t *inside(const json_t *value, ...);

#endif
