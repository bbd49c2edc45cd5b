/* service.h - how a service (Gmail, Search Console, sign-in, ...) plugs into the
 * cloud: a table of methods, each with its price, its scopes and its handler.
 *
 * The gate does what all methods share; a handler only reads its call and fills
 * the answer.  Handlers are linear C and never see a socket.
 *
 * A new provider (Microsoft Graph, later) is one more struct box_service and
 * one line in cloudbox/services.c.
 */
#ifndef BOX_SERVICE_H
#define BOX_SERVICE_H

#include "base/rng.h"
#include "cloudbox/gate/cloud.h"

struct box_user;

/* Scopes as bits; the texts are in cloudbox/signin/auth.c. */
enum {
    BOX_SCOPE_MAIL = 1 << 0, /* https://mail.google.com/: everything, also delete for good */
    BOX_SCOPE_MODIFY = 1 << 1,
    BOX_SCOPE_READONLY = 1 << 2,
    BOX_SCOPE_METADATA = 1 << 3, /* no q, no body */
    BOX_SCOPE_COMPOSE = 1 << 4,
    BOX_SCOPE_SEND = 1 << 5,
    BOX_SCOPE_INSERT = 1 << 6,
    BOX_SCOPE_LABELS = 1 << 7,
    BOX_SCOPE_CONSOLE = 1 << 8,
    BOX_SCOPE_CONSOLE_READONLY = 1 << 9,
    BOX_SCOPE_OPENID = 1 << 10,
    BOX_SCOPE_EMAIL = 1 << 11,
    BOX_SCOPE_PROFILE = 1 << 12,
    BOX_SCOPE_ALL = (1 << 13) - 1,
};

/* Which counters a call is charged to (quota.h). */
typedef enum box_meter {
    BOX_METER_NONE,
    BOX_METER_GMAIL,   /* units: per user a minute, per project a minute, in flight per user */
    BOX_METER_CONSOLE, /* search analytics: per site, per user, per project, and load */
    BOX_METER_CONSOLE_OTHER,
    BOX_METER_CHAT,
} box_meter;

struct box_call {
    box_cloud *cloud;
    const struct box_request *request;
    const struct box_method *method;
    struct box_target target;
    tide_text args[4]; /* the {…} of the method's path, decoded, in order; without {userId} */
    size_t args_count;
    struct box_user *user; /* who is asking; NULL when the method needs no sign-in */
    uint32_t scopes;       /* of the token */
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
    box_meter meter;
    uint16_t units; /* --quota 2026 */
    uint16_t units_legacy;
    box_handler *handle;
};

struct box_service {
    const char *name; /* "gmail" */
    const struct box_method *methods;
    size_t methods_count;
    const char *const *batch_paths; /* NULL-terminated, e.g. "/batch/gmail/v1"; may be NULL */
};

extern const struct box_service box_gmail;     /* gmail/ */
extern const struct box_service box_signin;    /* signin/ */
extern const struct box_service box_console;   /* console/ */
extern const struct box_service box_chat;      /* chat/ */
extern const struct box_service box_discovery; /* google/discovery.c */
extern const struct box_service box_control;   /* control/: /_cloud/... */

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

/* Answers with `value` (taken), through `fields` and prettyPrint. */
void box_call_reply(struct box_call *call, json_t *value);
/* 204 without a body. */
void box_call_reply_empty(struct box_call *call);

/* ---- errors, in Google's envelope (cloudbox/google/api_error.c) ---- */

/* 400 invalidArgument */
void box_fail_argument(struct box_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* 404 notFound "Requested entity was not found." */
void box_fail_missing(struct box_call *call);
/* Any other. `status` is the canonical name ("PERMISSION_DENIED") or NULL. */
void box_fail(struct box_call *call, int http, const char *domain, const char *reason,
              const char *status, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* ---- the cloud's parts, for services that need them ---- */

struct box_user *box_cloud_user(box_cloud *cloud, tide_text email); /* NULL: unknown */
struct box_user *box_cloud_user_at(box_cloud *cloud, size_t index); /* NULL: past the end */
/* Finds or makes a user with an empty mailbox. */
struct box_user *box_cloud_user_need(box_cloud *cloud, tide_text email);
const struct box_options *box_cloud_options(const box_cloud *cloud);
tide_rng *box_cloud_rng(box_cloud *cloud);
/* Hands one change to --state; `change` is taken.  Silent while replaying.  Its
 * "op" begins with "auth-" or "push-" when that part replays it. */
void box_cloud_keep(box_cloud *cloud, json_t *change);
uint64_t box_cloud_now(const box_cloud *cloud);     /* of the call being served */
uint64_t box_cloud_outside(const box_cloud *cloud); /* the same on the caller's clock */
/* After box_clock_set() or box_clock_speed(): time has moved, and is kept. */
void box_cloud_clock_changed(box_cloud *cloud);

struct box_auth *box_cloud_auth(box_cloud *cloud);
struct box_quota *box_cloud_quota(box_cloud *cloud);
struct box_referee *box_cloud_referee(box_cloud *cloud);
struct box_faults *box_cloud_faults(box_cloud *cloud);
struct box_push *box_cloud_push(box_cloud *cloud);
struct box_sites *box_cloud_sites(box_cloud *cloud);
struct box_chat_state *box_cloud_chat(box_cloud *cloud);
struct box_uploads *box_cloud_uploads(box_cloud *cloud);
struct box_clock *box_cloud_clock(box_cloud *cloud);

/* Runs one call through the whole gate, as the front end or a batch gives it. */
void box_gate_call(box_cloud *cloud, const struct box_request *request, uint32_t part,
                   struct box_answer *answer);

#endif
