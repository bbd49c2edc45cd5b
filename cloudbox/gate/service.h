/* service.h - what a service (Gmail, Search Console, sign-in, ...) brings to the cloud.
 *
 * The gate and the record know no service.  They walk the list of struct box_service that
 * box_cloud_new() got and use what each one brings: a table of methods with prices, scopes
 * and handlers, tables of limits and faults, and hooks for everything else.  A handler
 * reads its call and fills the answer; it never sees a socket.
 *
 * A new provider is one more struct box_service and one line in cloudbox/services.c.
 */
#ifndef BOX_SERVICE_H
#define BOX_SERVICE_H

#include "base/rng.h"
#include "cloudbox/gate/cloud.h"

struct box_user;
struct box_fault; /* faults.h */

struct box_call {
    box_cloud *cloud;
    const struct box_request *request;
    const struct box_service *service; /* NULL: no method takes the call */
    const struct box_method *method;
    struct box_target target;
    tide_text args[4]; /* the {…} of the method's path, decoded, in order; without {userId} */
    size_t args_count;
    struct box_user *user; /* who calls; NULL when the method needs no sign-in */
    uint32_t scopes;       /* of the token */
    uint32_t project;      /* of the token's client; limits are per user and project */
    uint32_t part;         /* 0: a call of its own; n: the n-th part of a batch */
    uint64_t now_ms;       /* the cloud's clock, one now per call */
    tide_arena *scratch;   /* freed with the call */
    struct box_answer *answer;
};

typedef void box_handler(struct box_call *call);

struct box_method {
    const char *name; /* as in the discovery document: "gmail.users.messages.get" */
    box_verb verb;
    const char *path; /* "/gmail/v1/users/{userId}/messages/{id}"; {+x} takes the rest */
    uint32_t scopes;  /* any of them suffices; 0: no sign-in */
    uint8_t meter;    /* which limits of the service count it: bits of its own, or BOX_METER_NONE */
    uint16_t units;   /* --quota 2026 */
    uint16_t units_legacy;
    box_handler *handle;
};

enum { BOX_METER_NONE = 0 };

/* ---- errors ---- */

/* An error in the words of Google's API; a service's envelope gives it its own form. */
struct box_problem {
    int http;
    const char *domain;  /* "global", "usageLimits" */
    const char *reason;  /* "rateLimitExceeded" */
    const char *status;  /* the canonical name: "PERMISSION_DENIED"; NULL: none */
    const char *message; /* NULL: given where it is used */
};

/* How the services of one provider speak; members may be NULL. */
struct box_style {
    void (*envelope)(struct box_call *call, const struct box_problem *problem);
    /* Before the handler, which would have changed something by the time it answers (BCLD2).
     * false: the parameters are wrong, and the answer says so. */
    bool (*accept)(struct box_call *call);
    /* Answers 200 with `value`, which is taken. */
    void (*reply)(struct box_call *call, json_t *value);
};

/* ---- limits ---- */

enum { BOX_PER_USER = 1, BOX_PER_PROJECT = 2, BOX_PER_SUBJECT = 4 };
typedef enum box_counted { BOX_CALLS, BOX_UNITS, BOX_LOAD } box_counted;

/* One limit: at most `limit` of what is counted, in any window of that length. */
struct box_limit {
    const char *name;    /* of the refusal in the record: "user-minute" */
    const char *setting; /* its field of POST /_cloud/quota; NULL: it cannot be changed */
    uint8_t meter;       /* counts methods with one of these bits */
    uint8_t whose;       /* a count for each user, project, subject: BOX_PER_* together */
    box_counted counted;
    uint32_t window_ms; /* 0: calls in flight of a user, of which a service has one limit */
    uint32_t step_ms;   /* resolution of the window (cloudbox/record/window.h) */
    uint32_t limit;
    uint32_t limit_legacy; /* --quota legacy; 0: the same */
    bool refusals_count;   /* a refused call is charged like a granted one */
    bool binds;            /* a user that got a "Retry after" may not call before it (quota.h) */
};

/* ---- who calls ---- */

/* Who a bearer token stands for. */
struct box_principal {
    struct box_user *user;
    uint32_t scopes;
    uint32_t project; /* 0 for fixed tokens */
};

/* ---- what the cloud itself sends ---- */

struct box_delivery {
    uint64_t id;
    char url[1024];
    char bearer[2048]; /* "": none */
    tide_buf body;     /* the caller's */
};
/* The next delivery that is due, of any service.  The caller sends it, then reports.  Times are on
 * the caller's clock. */
bool box_cloud_next_delivery(box_cloud *cloud, uint64_t now_unix_ms,
                             struct box_delivery *delivery_out);
/* `status` 0: no answer; `body`: the first BOX_DELIVERY_BODY_BYTES of the answer's. */
enum { BOX_DELIVERY_BODY_BYTES = 1024 };
void box_cloud_delivered(box_cloud *cloud, uint64_t id, int status, tide_text body,
                         uint64_t now_unix_ms);
/* When to ask again if nothing is served until then; UINT64_MAX: not before. */
uint64_t box_cloud_wake_at_ms(box_cloud *cloud, uint64_t now_unix_ms);

/* ---- the service ---- */

/* Members that are not set do nothing. */
struct box_service {
    const char *name; /* "gmail" */
    const struct box_method *methods;
    size_t methods_count;
    const struct box_style *style; /* NULL: that of the first service that has one */
    bool exempt;                   /* fault rules never mean it */
    bool distant;                  /* calls that no limit counts take the latency, too */

    /* Finds the method of an address that no path pattern describes; the paths of the table
     * are then only shown.  It fills the call's args, and may set the user of an address that
     * carries its own permission.  NULL: not one of its addresses, or, with
     * `verb_wrong_out` set, not with this verb.  If it sets the call's service, the
     * refusal is in that service's style.  Called without an answer for `sink`. */
    const struct box_method *(*route)(struct box_call *call, bool *verb_wrong_out);

    /* The service's state: box_cloud_state(). */
    void *(*open)(box_cloud *cloud);
    void (*close)(void *state);

    /* Its part of each user: box_user_part().  `settings` is what the user was made with
     * ({"op":"user","email":...}); user_open() reads its fields and adds what it settled
     * itself, since the object is kept and given again by a replay. */
    tide_status (*user_open)(struct box_user *user, json_t *settings, void **part_out,
                             tide_error *err);
    void (*user_close)(void *part);
    /* The user is looked up or calls: time may have passed for its part. */
    void (*user_now)(struct box_user *user, uint64_t now_ms);
    /* After a request that changed the user (box_user_changed()). */
    void (*changed)(box_cloud *cloud, struct box_user *user);

    /* Whether the token is one of this service's, and whose.  false: not, or no longer. */
    bool (*identify)(box_cloud *cloud, tide_text token, uint64_t now_ms,
                     struct box_principal *principal_out);

    const struct box_limit *limits;
    size_t limits_count;
    /* What BOX_PER_SUBJECT means, as the record calls it ("sites"), the number of the
     * call's subject (0: none) and its name. */
    const char *subjects;
    uint32_t (*subject)(const struct box_call *call, tide_text *name_out);
    uint32_t (*load)(const struct box_call *call); /* what BOX_LOAD counts */
    /* Answers a call that is over a limit and would fit at `retry_at_ms`. */
    void (*refuse)(struct box_call *call, const struct box_limit *limit, uint64_t retry_at_ms);

    /* After the handler of a call that was not refused: adds what every answer has. */
    void (*answered)(struct box_call *call);

    const struct box_fault *faults; /* of its own, beside those of the gate */
    size_t faults_count;
    const struct box_problem *rate; /* how fault "403-rate" answers; NULL: the gate's way */

    /* Adds the service's part to the record: of `user` to that user's object, or with
     * NULL to the whole.  `details`: also what is long. */
    void (*record)(box_cloud *cloud, const struct box_user *user, bool details, json_t *object);
    void (*record_reset)(box_cloud *cloud);

    /* Applies a change that box_cloud_keep() was given.  The service with the
     * longest `ops` with which the change's "op" begins gets it. */
    const char *ops;
    tide_status (*replay)(box_cloud *cloud, const json_t *change, tide_error *err);

    /* What it sends by itself, all three or none: the next delivery that is due, with an id below
     * 2^56; how it ended; when the next is due (UINT64_MAX: none).  On the cloud's clock. */
    bool (*delivery_next)(box_cloud *cloud, uint64_t now_ms, struct box_delivery *delivery_out);
    void (*delivery_ended)(box_cloud *cloud, uint64_t id, int status, tide_text body,
                           uint64_t now_ms);
    uint64_t (*delivery_wake_at_ms)(box_cloud *cloud);

    /* Serves a request that holds several calls (box_gate_call() serves each).  false: it
     * is no such request. */
    bool (*batch)(box_cloud *cloud, const struct box_request *request, struct box_answer *answer);

    /* Opens a sink for the call's body.  false: the method takes its body whole.  Only the
     * route is known: no user, and the scratch memory ends with this function. */
    bool (*sink)(struct box_call *call, struct box_sink *sink_out);
};

enum { BOX_SERVICES_MAX = 16 };

/* ---- for handlers ---- */

tide_text box_call_param(const struct box_call *call, const char *name);
bool box_call_flag(const struct box_call *call, const char *name); /* "true" */
/* The n-th (from 0) value of a repeated parameter; data == NULL past the end. */
tide_text box_call_param_at(const struct box_call *call, const char *name, size_t nth);
/* A whole number in [low, high], `fallback` when absent.  false: the answer is a
 * 400 that names the parameter. */
bool box_call_number(struct box_call *call, const char *name, uint64_t low, uint64_t high,
                     uint64_t fallback, uint64_t *number_out);
/* The body as a JSON object; an empty body is {}.  NULL: the answer is a 400.
 * The caller owns it. */
json_t *box_call_body(struct box_call *call);

/* Answers with `value` (taken) in the service's style. */
void box_call_reply(struct box_call *call, json_t *value);
/* 204 without a body. */
void box_call_reply_empty(struct box_call *call);

/* Errors, in the service's envelope: 400 invalidArgument, */
void box_fail_argument(struct box_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* 404 notFound "Requested entity was not found.", */
void box_fail_missing(struct box_call *call);
/* and any other. */
void box_fail(struct box_call *call, int http, const char *domain, const char *reason,
              const char *status, const char *format, ...) __attribute__((format(printf, 6, 7)));
void box_fail_with(struct box_call *call, const struct box_problem *problem);

/* Writes down what a well behaved client never does. */
void box_call_violation(const struct box_call *call, const char *kind, tide_text detail);

/* A call that did not come through the gate, for fault rules: everything but cloud,
 * request and answer is empty. */
void box_call_init(struct box_call *call, box_cloud *cloud, const struct box_request *request,
                   struct box_answer *answer);

/* ---- the cloud, for services ---- */

const struct box_options *box_cloud_options(const box_cloud *cloud);
const struct box_service *box_cloud_service(const box_cloud *cloud, const char *name); /* or NULL */
/* What the service's open() gave; NULL when the cloud does not have the service. */
void *box_cloud_state(const box_cloud *cloud, const struct box_service *service);
void *box_user_part(const struct box_user *user, const struct box_service *service);

struct box_user *box_cloud_user(box_cloud *cloud, tide_text email); /* NULL: unknown */
struct box_user *box_cloud_user_at(box_cloud *cloud, size_t index); /* NULL: past the end */
/* A new user.  `settings` (taken; NULL: none) are for the services' user_open().
 * TIDE_INVALID: not an address; TIDE_EXISTS, TIDE_FULL, and what user_open() returns. */
tide_status box_cloud_user_add(box_cloud *cloud, tide_text email, json_t *settings,
                               tide_error *err);
/* Finds or makes a user.  NULL: not an address, and err says so. */
struct box_user *box_cloud_user_need(box_cloud *cloud, tide_text email, tide_error *err);
/* A part of the user changed: keeps the change (taken) under the user's address, and
 * tells the services after the request. */
void box_user_changed(struct box_user *user, json_t *change);
/* Reads a number that a user was made with, and settles it in `settings`; 0 or missing: `fallback`.
 * `what`: whose it is, for the error. */
tide_status box_user_setting(json_t *settings, const char *what, const char *key, uint64_t fallback,
                             uint64_t max, uint64_t *number_out, tide_error *err);

/* Whom a bearer token stands for.  false: unknown, expired or revoked. */
bool box_cloud_identify(box_cloud *cloud, tide_text token, struct box_principal *principal_out);

tide_rng *box_cloud_rng(box_cloud *cloud);
/* Hands one change to --state; `change` is taken.  Silent while replaying. */
void box_cloud_keep(box_cloud *cloud, json_t *change);
/* The caller's clock, when no request is served: before box_cloud_now(). */
void box_cloud_tell_time(box_cloud *cloud, uint64_t now_unix_ms);
uint64_t box_cloud_now(const box_cloud *cloud);     /* of the call being served */
uint64_t box_cloud_outside(const box_cloud *cloud); /* the same on the caller's clock */
/* After box_clock_set() or box_clock_speed(): time has moved, and is kept. */
void box_cloud_clock_changed(box_cloud *cloud);

struct box_quota *box_cloud_quota(box_cloud *cloud);
struct box_referee *box_cloud_referee(box_cloud *cloud);
struct box_faults *box_cloud_faults(box_cloud *cloud);
struct box_clock *box_cloud_clock(box_cloud *cloud);

/* Runs one call through the whole gate, as the front end or a batch gives it. */
void box_gate_call(box_cloud *cloud, const struct box_request *request, uint32_t part,
                   struct box_answer *answer);

#endif
