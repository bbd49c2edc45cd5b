/* subscriptions.c - webhooks: who wants to hear of changes of a drive, and the posts to them.
 *
 *   validating --the address gives the token back--> active --expiry, DELETE--> gone
 *        |--anything else--> gone
 *
 * Like the service, it validates before it answers the request that creates a subscription: 201, or 400 if
 * the address does not give the token back within 10 s.  A notification says
 * only that something changed.  It is repeated after 1, 2, 4 ... 60 s for 15 minutes, then dropped.
 * Subscriptions do not outlive the program. */
#include "base/check.h"
#include "base/clocktext.h"
#include "base/encode.h"
#include "cloudbox/graph/inside.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SUBSCRIPTIONS_MAX = 256,
    ID_BYTES = 37,
    URL_BYTES_MAX = 700,
    STATE_BYTES_MAX = 128,
    RESOURCE_BYTES_MAX = 200,
    RETRY_MS = 1000,
    RETRY_MS_MAX = 60000,
    GIVE_UP_MS = 15 * 60 * 1000,
    VALIDATE_MS = 10000,
};
#define LIFE_MS_MAX (UINT64_C(42300) * 60 * 1000)

struct subscription {
    char id[ID_BYTES]; /* "": free */
    uint32_t user;
    char url[URL_BYTES_MAX + 1];
    char resource[RESOURCE_BYTES_MAX + 1];
    char client_state[STATE_BYTES_MAX + 1];
    uint64_t expires_ms;
    bool active;
    uint64_t token;     /* what the address must give back */
    uint64_t due_ms;    /* of the next post; UINT64_MAX: none */
    uint64_t first_ms;  /* when the change was */
    uint32_t tries;     /* of this notification */
    uint64_t in_flight; /* its delivery; 0: none */
    bool again;         /* something changed while one was in flight */
};

struct box_subscriptions {
    struct subscription list[SUBSCRIPTIONS_MAX];
    uint64_t deliveries; /* ids given out */
    uint64_t sent, acknowledged, dropped;
};

struct box_subscriptions *box_subscriptions_new(void)
{
    struct box_subscriptions *self = tide_mem_new(tide_mem_heap(), sizeof *self);
    TIDE_ASSERT(self != NULL);
    return self;
}

void box_subscriptions_free(struct box_subscriptions *self)
{
    tide_mem_free(tide_mem_heap(), self, sizeof *self);
}

static struct box_subscriptions *all_of(box_cloud *cloud)
{
    const struct box_graph_state *state = box_cloud_state(cloud, &box_graph);
    return state->subscriptions;
}

static bool lives(const struct subscription *one, uint64_t now_ms)
{
    return one->id[0] != '\0' && now_ms < one->expires_ms;
}

/* ---- requests ---- */

static json_t *json_of(const struct subscription *one)
{
    char time_text[BOX_SECONDS_TEXT_BYTES];
    box_seconds_text(one->expires_ms, time_text);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "id", one->id, "resource", one->resource,
                     "changeType", "updated", "clientState", one->client_state, "notificationUrl",
                     one->url, "expirationDateTime", time_text);
}

/* A text of the body; false: answered. */
static bool read_text(struct box_call *call, const json_t *body, const char *key, size_t bytes_max,
                      bool needed, char *text_out)
{
    const json_t *value = json_object_get(body, key);
    const char *text = json_string_value(value);
    if ((value == NULL && !needed) ||
        (text != NULL && json_string_length(value) <= bytes_max && strpbrk(text, "\r\n") == NULL)) {
        snprintf(text_out, bytes_max + 1, "%s", text == NULL ? "" : text);
        return true;
    }
    box_graph_fail(call, 400, "invalidRequest", NULL, "%s is missing or too long.", key);
    return false;
}

static bool read_expiry(struct box_call *call, const json_t *body, uint64_t *expires_ms_out)
{
    const json_t *value = json_object_get(body, "expirationDateTime");
    const tide_text text = {json_string_value(value), json_string_length(value)};
    if (text.data != NULL && tide_time_parse(text, expires_ms_out) &&
        *expires_ms_out > call->now_ms && *expires_ms_out - call->now_ms <= LIFE_MS_MAX)
        return true;
    box_graph_fail(call, 400, "invalidRequest", NULL,
                   "expirationDateTime must be in the future, at most 42300 minutes from now.");
    return false;
}

static bool read_subscription(struct box_call *call, const json_t *body, struct subscription *one)
{
    char type[40];
    if (!read_text(call, body, "changeType", sizeof type - 1, true, type) ||
        !read_text(call, body, "notificationUrl", URL_BYTES_MAX, true, one->url) ||
        !read_text(call, body, "resource", RESOURCE_BYTES_MAX, true, one->resource) ||
        !read_text(call, body, "clientState", STATE_BYTES_MAX, false, one->client_state) ||
        !read_expiry(call, body, &one->expires_ms))
        return false;
    const char *resource = one->resource + (one->resource[0] == '/' ? 1 : 0);
    if (strcmp(type, "updated") != 0 ||
        (strcmp(resource, "me/drive/root") != 0 && strncmp(resource, "drives/", 7) != 0)) {
        box_graph_fail(call, 400, "invalidRequest", NULL,
                       "The root of a drive can be watched for \"updated\".");
        return false;
    }
    if (strncmp(one->url, "http://", 7) == 0 || strncmp(one->url, "https://", 8) == 0)
        return true;
    box_graph_fail(call, 400, "invalidRequest", NULL, "notificationUrl is not an address.");
    return false;
}

/* The answer waits for the handshake; its subscription is known by its token. */
static bool validation_ended(void *arg, uint64_t token, struct box_answer *answer)
{
    box_cloud *cloud = arg;
    struct box_subscriptions *self = all_of(cloud);
    for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++) {
        struct subscription *one = &self->list[i];
        if (one->id[0] == '\0' || one->token != token)
            continue;
        if (one->active)
            return true;
        if (box_cloud_now(cloud) - one->first_ms < VALIDATE_MS)
            return false;
        *one = (struct subscription){0};
    }
    box_answer_clear(answer);
    box_answer_json(answer, 400,
                    json_pack("{s:{s:s, s:s}}", "error", "code", "ValidationError", "message",
                              "Subscription validation request failed. The notification URL did "
                              "not give the token back."),
                    false);
    return true;
}

void box_graph_subscribe(struct box_call *call)
{
    struct box_subscriptions *self = all_of(call->cloud);
    struct subscription made = {0};
    json_auto_t *body = box_call_body(call);
    if (body == NULL || !read_subscription(call, body, &made))
        return;
    struct subscription *one = NULL;
    for (size_t i = 0; i < SUBSCRIPTIONS_MAX && one == NULL; i++)
        if (!lives(&self->list[i], call->now_ms))
            one = &self->list[i];
    if (one == NULL) {
        box_graph_fail(call, 403, "accessDenied", NULL, "Too many subscriptions.");
        return;
    }
    tide_rng rng = tide_rng_seeded(tide_rng_next(box_cloud_rng(call->cloud)) ^ call->now_ms);
    const uint64_t high = tide_rng_next(&rng), low = tide_rng_next(&rng);
    snprintf(made.id, sizeof made.id,
             "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-8%03" PRIx64 "-%012" PRIx64, high >> 32,
             high >> 16 & 0xffff, high & 0xfff, low >> 52, low & 0xffffffffffff);
    made.token = tide_rng_next(&rng);
    made.user = call->user->number;
    made.due_ms = call->now_ms;
    made.first_ms = call->now_ms;
    *one = made;
    box_answer_json(call->answer, 201, json_of(one), false);
    call->answer->settle = validation_ended;
    call->answer->settle_arg = call->cloud;
    call->answer->settle_id = one->token;
}

void box_graph_subscriptions(struct box_call *call)
{
    const struct box_subscriptions *self = all_of(call->cloud);
    json_t *list = json_array();
    for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++)
        if (lives(&self->list[i], call->now_ms) && self->list[i].user == call->user->number)
            json_array_append_new(list, json_of(&self->list[i]));
    box_call_reply(call, json_pack("{s:o}", "value", list));
}

/* The caller's own, or a 404. */
static struct subscription *own(struct box_call *call)
{
    struct box_subscriptions *self = all_of(call->cloud);
    for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++)
        if (lives(&self->list[i], call->now_ms) && self->list[i].user == call->user->number &&
            box_is(call->args[0], self->list[i].id))
            return &self->list[i];
    box_graph_missing(call);
    return NULL;
}

void box_graph_subscription_get(struct box_call *call)
{
    const struct subscription *one = own(call);
    if (one != NULL)
        box_call_reply(call, json_of(one));
}

void box_graph_subscription_renew(struct box_call *call)
{
    struct subscription *one = own(call);
    json_auto_t *body = one == NULL ? NULL : box_call_body(call);
    uint64_t expires_ms = 0;
    if (body == NULL || !read_expiry(call, body, &expires_ms))
        return;
    one->expires_ms = expires_ms;
    box_call_reply(call, json_of(one));
}

void box_graph_subscription_delete(struct box_call *call)
{
    struct subscription *one = own(call);
    if (one == NULL)
        return;
    *one = (struct subscription){0};
    box_call_reply_empty(call);
}

/* ---- posts ---- */

void box_graph_changed(box_cloud *cloud, struct box_user *user)
{
    struct box_subscriptions *self = all_of(cloud);
    const uint64_t now_ms = box_cloud_now(cloud);
    for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++) {
        struct subscription *one = &self->list[i];
        if (!lives(one, now_ms) || one->user != user->number || !one->active)
            continue;
        if (one->in_flight != 0) {
            one->again = true;
        } else if (one->due_ms == UINT64_MAX) {
            one->due_ms = now_ms;
            one->first_ms = now_ms;
            one->tries = 0;
        }
    }
}

static void write_token(const struct subscription *one, char text_out[40])
{
    snprintf(text_out, 40, "Validation: %016" PRIx64, one->token);
}

static void write_post(const struct subscription *one, struct box_delivery *delivery)
{
    tide_buf_init(&delivery->body, tide_mem_heap(), 64 << 10);
    delivery->bearer[0] = '\0';
    if (one->active) {
        char time_text[BOX_SECONDS_TEXT_BYTES];
        box_seconds_text(one->expires_ms, time_text);
        json_auto_t *body =
            json_pack("{s:[{s:s, s:s, s:s, s:s, s:s}]}", "value", "subscriptionId", one->id,
                      "clientState", one->client_state, "changeType", "updated", "resource",
                      one->resource, "subscriptionExpirationDateTime", time_text);
        char *text = json_dumps(body, JSON_COMPACT);
        TIDE_ASSERT(text != NULL);
        box_add_cstr(&delivery->body, text);
        free(text);
        snprintf(delivery->url, sizeof delivery->url, "%s", one->url);
        return;
    }
    char token[40];
    tide_auto_buf url = tide_buf_heap(4096);
    write_token(one, token);
    box_print(&url, "%s%cvalidationToken=", one->url, strchr(one->url, '?') == NULL ? '?' : '&');
    (void)tide_percent_add(&url, tide_text_of(token), TIDE_URL_UNRESERVED);
    snprintf(delivery->url, sizeof delivery->url, "%s", tide_buf_cstr(&url));
}

bool box_graph_delivery_next(box_cloud *cloud, uint64_t now_ms, struct box_delivery *delivery_out)
{
    struct box_subscriptions *self = all_of(cloud);
    for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++) {
        struct subscription *one = &self->list[i];
        if (!lives(one, now_ms) || one->in_flight != 0 || one->due_ms > now_ms)
            continue;
        one->in_flight = ++self->deliveries;
        one->due_ms = UINT64_MAX;
        self->sent++;
        delivery_out->id = one->in_flight;
        write_post(one, delivery_out);
        return true;
    }
    return false;
}

static void validated(struct subscription *one, int status, tide_text body)
{
    char token[40];
    write_token(one, token);
    if (status == 200 && tide_text_equal(body, tide_text_of(token)))
        one->active = true;
    else
        *one = (struct subscription){0};
}

static void notified(struct box_subscriptions *self, struct subscription *one, bool good,
                     uint64_t now_ms)
{
    if (good) {
        self->acknowledged++;
        one->due_ms = one->again ? now_ms : UINT64_MAX;
        one->first_ms = now_ms;
        one->tries = 0;
        one->again = false;
    } else if (now_ms - one->first_ms >= GIVE_UP_MS) {
        self->dropped++;
    } else {
        const uint64_t pause_ms = (uint64_t)RETRY_MS << (one->tries < 6 ? one->tries : 6);
        one->tries++;
        one->due_ms = now_ms + (pause_ms < RETRY_MS_MAX ? pause_ms : RETRY_MS_MAX);
    }
}

void box_graph_delivery_ended(box_cloud *cloud, uint64_t id, int status, tide_text body,
                              uint64_t now_ms)
{
    struct box_subscriptions *self = all_of(cloud);
    for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++) {
        struct subscription *one = &self->list[i];
        if (one->in_flight != id || one->id[0] == '\0')
            continue; /* it may have been deleted meanwhile */
        one->in_flight = 0;
        if (one->active)
            notified(self, one, status >= 200 && status <= 299, now_ms);
        else
            validated(one, status, body);
    }
}

uint64_t box_graph_delivery_wake_at_ms(box_cloud *cloud)
{
    const struct box_subscriptions *self = all_of(cloud);
    uint64_t wake_at_ms = UINT64_MAX;
    for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++)
        if (lives(&self->list[i], box_cloud_now(cloud)) && self->list[i].in_flight == 0 &&
            self->list[i].due_ms < wake_at_ms)
            wake_at_ms = self->list[i].due_ms;
    return wake_at_ms;
}
