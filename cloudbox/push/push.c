/* push.c - topics, watches and the notifications that changes of watched mailboxes make.
 * What waits to be delivered is in queue.c. */
#include "cloudbox/push/queue.h"

#include "base/check.h"
#include "base/clocktext.h"
#include "base/json.h"
#include "base/map.h"
#include "cloudbox/gate/clock.h"
#include "cloudbox/gate/faults.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/mailbox/mail.h"
#include "cloudbox/signin/auth.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WATCH_LIFE_MS (UINT64_C(7) * 24 * 3600 * 1000)

enum {
    APART_MS = 1000,          /* BPSH1 */
    TOKEN_LIFE_S = 3600,      /* of the bearer */
    TOKEN_REUSED_MS = 600000, /* signing costs a millisecond: one token serves a while */
    MESSAGE_IDS_PER_MS = 64,
};

static const char PUSHER[] = "pubsub-push@tidemark-cloud.iam.gserviceaccount.com";

/* One subscription of a topic. */
struct topic {
    char name[BOX_TOPIC_NAME_BYTES_MAX + 1];
    char url[BOX_TOPIC_URL_BYTES_MAX + 1];
    char subscription[BOX_TOPIC_NAME_BYTES_MAX + 32];
    tide_buf bearer;
    uint64_t signed_ms; /* 0: never */
};

struct watch {
    struct box_user *user;
    uint32_t next; /* the user's next one; 0: the last */
    char topic[BOX_TOPIC_NAME_BYTES_MAX + 1];
    uint16_t labels[BOX_WATCH_LABELS_MAX];
    size_t labels_count;
    bool exclude;
    uint64_t expires_ms; /* 0: it was ended */
    uint64_t seen;       /* the history up to here was looked at */
    uint64_t made_ms;    /* of its last notification; 0: none yet */
};

struct box_push {
    box_cloud *cloud;
    struct topic *topics;
    size_t topics_count;
    size_t topics_capacity;
    struct watch *watches; /* [0] is not used */
    size_t watches_count;
    size_t watches_capacity;
    tide_map by_user; /* number -> first watch */
    struct box_push_queue queue;
    uint64_t message_id_first; /* of the seed */
    uint64_t message_id;       /* the last one given out */
    struct {
        uint64_t made, limited, filtered, lost, duplicated, unheard;
    } counts;
};

/* ---- life ---- */

static void *open_push(box_cloud *cloud)
{
    struct box_push *push = tide_mem_new(tide_mem_heap(), sizeof *push);
    TIDE_ASSERT(push != NULL);
    push->cloud = cloud;
    push->watches_count = 1;
    tide_map_init(&push->by_user, tide_mem_heap());
    box_push_queue_init(&push->queue);
    push->message_id_first =
        UINT64_C(1000000000000000) + tide_rng_below(box_cloud_rng(cloud), UINT64_C(1) << 48);
    return push;
}

static void close_push(void *state)
{
    struct box_push *push = state;
    tide_mem *heap = tide_mem_heap();
    for (size_t i = 0; i < push->topics_count; i++)
        tide_buf_done(&push->topics[i].bearer);
    tide_mem_free(heap, push->topics, push->topics_capacity * sizeof push->topics[0]);
    tide_mem_free(heap, push->watches, push->watches_capacity * sizeof push->watches[0]);
    tide_map_done(&push->by_user);
    box_push_queue_done(&push->queue);
    tide_mem_free(heap, push, sizeof *push);
}

struct box_push *box_cloud_push(box_cloud *cloud)
{
    return box_cloud_state(cloud, &box_pubsub);
}

/* ---- topics ---- */

/* "projects/P/topics/T": the bytes of P, 0 when it is nothing of the kind. */
static size_t project_bytes(tide_text name)
{
    static const char projects[] = "projects/";
    static const char topics[] = "/topics/";
    const size_t start = sizeof projects - 1;
    if (name.bytes > BOX_TOPIC_NAME_BYTES_MAX || name.bytes <= start ||
        memcmp(name.data, projects, start) != 0)
        return 0;
    for (size_t i = 0; i < name.bytes; i++) {
        const char c = name.data[i];
        const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!letter && !(c >= '0' && c <= '9') && memchr("-._~+%:/", c, 8) == NULL)
            return 0;
    }
    const char *slash = memchr(name.data + start, '/', name.bytes - start);
    if (slash == NULL)
        return 0;
    const size_t at = (size_t)(slash - name.data);
    const size_t rest = name.bytes - at;
    if (rest <= sizeof topics - 1 || memcmp(slash, topics, sizeof topics - 1) != 0)
        return 0;
    const char *id = slash + sizeof topics - 1;
    if (memchr(id, '/', rest - (sizeof topics - 1)) != NULL)
        return 0;
    return at - start;
}

static bool is_url(tide_text url)
{
    const bool web = (url.bytes > 7 && memcmp(url.data, "http://", 7) == 0) ||
                     (url.bytes > 8 && memcmp(url.data, "https://", 8) == 0);
    for (size_t i = 0; web && i < url.bytes; i++) {
        if (url.data[i] <= ' ' || url.data[i] > '~' || url.data[i] == '"' || url.data[i] == '\\')
            return false;
    }
    return web && url.bytes <= BOX_TOPIC_URL_BYTES_MAX;
}

static bool topic_exists(const struct box_push *push, tide_text name)
{
    for (size_t i = 0; i < push->topics_count; i++) {
        if (tide_text_equal(name, tide_text_of(push->topics[i].name)))
            return true;
    }
    return false;
}

tide_status box_push_add_topic(struct box_push *push, tide_text topic, tide_text url,
                               tide_error *err)
{
    const size_t project = project_bytes(topic);
    if (project == 0)
        return tide_error_set(err, TIDE_INVALID, "a topic is projects/P/topics/T, not %.*s",
                              (int)(topic.bytes > 200 ? 200 : topic.bytes), topic.data);
    if (!is_url(url))
        return tide_error_set(err, TIDE_INVALID,
                              "a topic is pushed to an http(s) address, not %.*s",
                              (int)(url.bytes > 200 ? 200 : url.bytes), url.data);
    size_t same = 0;
    for (size_t i = 0; i < push->topics_count; i++) {
        if (!tide_text_equal(topic, tide_text_of(push->topics[i].name)))
            continue;
        if (tide_text_equal(url, tide_text_of(push->topics[i].url)))
            return TIDE_OK;
        same++;
    }
    if (!TIDE_GROW(push->topics, push->topics_capacity, push->topics_count + 1, BOX_TOPICS_MAX))
        return tide_error_set(err, TIDE_FULL, "more than %d subscriptions", BOX_TOPICS_MAX);
    struct topic *made = &push->topics[push->topics_count++];
    memset(made, 0, sizeof *made);
    memcpy(made->name, topic.data, topic.bytes);
    memcpy(made->url, url.data, url.bytes);
    const char *id = strrchr(made->name, '/') + 1;
    (void)snprintf(made->subscription, sizeof made->subscription,
                   same == 0 ? "projects/%.*s/subscriptions/%s-push"
                             : "projects/%.*s/subscriptions/%s-push-%zu",
                   (int)project, made->name + 9, id, same + 1);
    tide_buf_init(&made->bearer, tide_mem_heap(), 64 << 10);
    box_cloud_keep(push->cloud, json_pack("{s:s, s:s, s:s}", "op", "push-topic", "topic",
                                          made->name, "url", made->url));
    return TIDE_OK;
}

/* ---- watches ---- */

static uint32_t first_watch(const struct box_push *push, const struct box_user *user)
{
    uint32_t place = 0;
    return tide_map_get(&push->by_user, user->number, &place) ? place : 0;
}

static bool same_project(tide_text a, tide_text b)
{
    const size_t bytes = project_bytes(a);
    return bytes == project_bytes(b) && memcmp(a.data + 9, b.data + 9, bytes) == 0;
}

/* The user's watch of that topic's project; 0: none. */
static uint32_t watch_find(const struct box_push *push, const struct box_user *user,
                           tide_text topic)
{
    uint32_t place = first_watch(push, user);
    while (place != 0 && !same_project(topic, tide_text_of(push->watches[place].topic)))
        place = push->watches[place].next;
    return place;
}

/* How many a user has, and the place of one that ended by itself (0: none). */
static size_t watches_of(const struct box_push *push, const struct box_user *user, uint64_t now_ms,
                         uint32_t *ended_out)
{
    size_t count = 0;
    *ended_out = 0;
    for (uint32_t i = first_watch(push, user); i != 0; i = push->watches[i].next) {
        count++;
        if (now_ms >= push->watches[i].expires_ms)
            *ended_out = i;
    }
    return count;
}

/* 0: no room. */
static uint32_t watch_add(struct box_push *push, struct box_user *user)
{
    if (!TIDE_GROW(push->watches, push->watches_capacity, push->watches_count + 1, BOX_WATCHES_MAX))
        return 0;
    const uint32_t place = (uint32_t)push->watches_count++;
    push->watches[place] = (struct watch){.user = user, .next = first_watch(push, user)};
    TIDE_ASSERT(tide_map_put(&push->by_user, user->number, place));
    return place;
}

/* The places stay, since they know when their last notification was made (BPSH1). */
static void watches_end(struct box_push *push, const struct box_user *user)
{
    for (uint32_t i = first_watch(push, user); i != 0; i = push->watches[i].next)
        push->watches[i].expires_ms = 0;
}

/* Whether one would still notify at that time. */
static bool watches_any(const struct box_push *push, const struct box_user *user, uint64_t now_ms)
{
    for (uint32_t i = first_watch(push, user); i != 0; i = push->watches[i].next) {
        if (now_ms < push->watches[i].expires_ms)
            return true;
    }
    return false;
}

/* ---- notifications ---- */

static const struct box_method watch_method = {.name = "gmail.users.watch", .verb = BOX_POST};

static bool fault_strikes(struct box_push *push, struct box_user *user, uint64_t now_ms,
                          const char *fault)
{
    static const struct box_request nothing = {.verb = BOX_POST};
    struct box_call call;
    box_call_init(&call, push->cloud, &nothing, NULL);
    call.method = &watch_method;
    call.user = user;
    call.now_ms = now_ms;
    return box_faults_strikes(box_cloud_faults(push->cloud), &call, fault);
}

/* Ids grow with the time, so that a cloud that was restarted with its state does
 * not give one out again: subscribers forget what they have seen before. */
static uint64_t next_message_id(struct box_push *push, uint64_t now_ms)
{
    const uint64_t by_time = push->message_id_first + now_ms * MESSAGE_IDS_PER_MS;
    push->message_id = by_time > push->message_id ? by_time : push->message_id + 1;
    return push->message_id;
}

/* One notification for every subscription of the watch's topic. */
static void notify(struct box_push *push, struct watch *watch, uint64_t now_ms)
{
    if (watch->made_ms != 0 && now_ms < watch->made_ms + APART_MS) { /* BPSH1 */
        push->counts.limited++;
        return;
    }
    watch->made_ms = now_ms;
    push->counts.made++;
    struct box_push_item item = {.user = watch->user,
                                 .history_id =
                                     box_mailbox_history_id(box_user_mailbox(watch->user)),
                                 .message_id = next_message_id(push, now_ms),
                                 .made_ms = now_ms,
                                 .due_ms = now_ms};
    if (fault_strikes(push, watch->user, now_ms, "push-loss")) {
        push->counts.lost++;
        return;
    }
    const bool twice = fault_strikes(push, watch->user, now_ms, "push-duplicate");
    bool heard = false;
    for (uint32_t i = 0; i < push->topics_count; i++) {
        if (strcmp(push->topics[i].name, watch->topic) != 0)
            continue;
        heard = true;
        item.topic = i;
        box_push_queue_add(&push->queue, &item);
        if (twice)
            box_push_queue_add(&push->queue, &item);
    }
    push->counts.duplicated += twice && heard;
    push->counts.unheard += !heard; /* the topic was not set up again after a restart */
}

static bool has_any(const uint16_t *have, size_t have_count, const struct watch *watch)
{
    for (size_t i = 0; i < have_count; i++) {
        for (size_t j = 0; j < watch->labels_count; j++) {
            if (have[i] == watch->labels[j])
                return true;
        }
    }
    return false;
}

/* Whether a change has to do with the watch's labels: the message carries one of
 * them, or one of them was what changed. */
static bool record_concerns(const struct watch *watch, const struct box_record *record)
{
    const box_mailbox *mailbox = box_user_mailbox(watch->user);
    size_t count = 0;
    const uint16_t *labels = box_mailbox_labels(mailbox, record->label_set, &count);
    bool any = has_any(labels, count, watch);
    if (!any && (record->change == BOX_CHANGE_LABELED || record->change == BOX_CHANGE_UNLABELED)) {
        labels = box_mailbox_labels(mailbox, record->changed, &count);
        any = has_any(labels, count, watch);
    }
    return any != watch->exclude;
}

/* Whether something new passes the filter; what was examined does not count again. */
static bool has_news(struct watch *watch)
{
    const box_mailbox *mailbox = box_user_mailbox(watch->user);
    const uint64_t latest = box_mailbox_history_id(mailbox);
    if (latest <= watch->seen)
        return false;
    const uint64_t seen = watch->seen;
    watch->seen = latest;
    if (watch->labels_count == 0)
        return true;
    const uint32_t count = box_mailbox_history_count(mailbox);
    for (uint32_t i = box_mailbox_history_after(mailbox, seen); i < count; i++) {
        if (record_concerns(watch, box_mailbox_history_at(mailbox, i)))
            return true;
    }
    return false;
}

/* After every request that changed the user's mailbox. */
static void changed(box_cloud *cloud, struct box_user *user)
{
    struct box_push *push = box_cloud_push(cloud);
    const uint64_t now_ms = box_cloud_now(cloud);
    for (uint32_t i = first_watch(push, user); i != 0; i = push->watches[i].next) {
        struct watch *watch = &push->watches[i];
        if (now_ms >= watch->expires_ms) /* BPSH2 */
            continue;
        const uint64_t seen = watch->seen;
        if (has_news(watch))
            notify(push, watch, now_ms);
        else
            push->counts.filtered += watch->seen != seen;
    }
}

/* ---- the two methods ---- */

/* A word of either case; absent is fine.  false: something else. */
static bool read_behavior(const json_t *body, const char *key, bool *exclude_out)
{
    const json_t *value = json_object_get(body, key);
    if (value == NULL || json_is_null(value))
        return true;
    const char *word = json_string_value(value);
    if (word == NULL || (strcasecmp(word, "include") != 0 && strcasecmp(word, "exclude") != 0))
        return false;
    *exclude_out = strcasecmp(word, "exclude") == 0;
    return true;
}

static bool read_filter(struct box_call *call, const json_t *body, struct watch *wanted)
{
    bool action = false;
    if (!read_behavior(body, "labelFilterAction", &action)) {
        box_fail_argument(call, "Invalid value at 'label_filter_action'");
        return false;
    }
    wanted->exclude = action; /* the older word counts where the newer one is missing */
    if (!read_behavior(body, "labelFilterBehavior", &wanted->exclude)) {
        box_fail_argument(call, "Invalid value at 'label_filter_behavior'");
        return false;
    }
    const json_t *labels = json_object_get(body, "labelIds");
    if (labels != NULL && !json_is_array(labels)) {
        box_fail_argument(call, "Invalid value at 'label_ids'");
        return false;
    }
    if (json_array_size(labels) > BOX_WATCH_LABELS_MAX) {
        box_fail_argument(call, "Too many labels: %zu", json_array_size(labels));
        return false;
    }
    for (size_t i = 0; i < json_array_size(labels); i++) {
        const char *id = json_string_value(json_array_get(labels, i));
        uint32_t number = 0;
        if (id == NULL ||
            !box_mailbox_label_by_id(box_user_mailbox(call->user), tide_text_of(id), &number)) {
            box_fail_argument(call, "Invalid label: %.200s", id == NULL ? "" : id);
            return false;
        }
        wanted->labels[wanted->labels_count++] = (uint16_t)number;
    }
    return true;
}

static bool read_topic(struct box_call *call, const json_t *body, struct watch *wanted)
{
    tide_text name = TIDE_TEXT_NONE;
    (void)tide_json_get_text(body, "topicName", &name, NULL);
    if (name.bytes == 0) {
        box_fail_argument(call, "topicName required");
        return false;
    }
    if (project_bytes(name) == 0) {
        box_fail_argument(call, "Invalid topicName does not match projects/*/topics/*");
        return false;
    }
    memcpy(wanted->topic, name.data, name.bytes);
    if (!topic_exists(box_cloud_push(call->cloud), name)) {
        box_fail(call, 404, "global", "notFound", "NOT_FOUND",
                 "Error sending test message to Cloud PubSub %s : Resource not found "
                 "(resource=%s).",
                 wanted->topic, strrchr(wanted->topic, '/') + 1);
        return false;
    }
    return true;
}

static void keep_watch(struct box_push *push, const struct watch *watch)
{
    json_t *labels = json_array();
    for (size_t i = 0; i < watch->labels_count; i++)
        json_array_append_new(labels, json_integer(watch->labels[i]));
    box_cloud_keep(push->cloud,
                   json_pack("{s:s, s:s, s:s, s:o, s:b, s:I}", "op", "push-watch", "email",
                             watch->user->email, "topic", watch->topic, "labels", labels, "exclude",
                             (int)watch->exclude, "expires", (json_int_t)watch->expires_ms));
}

/* Puts a watch in the place of an older one of the same project. */
static struct watch *watch_put(struct box_push *push, const struct watch *wanted)
{
    uint32_t place = watch_find(push, wanted->user, tide_text_of(wanted->topic));
    uint32_t ended = 0;
    if (place == 0) {
        const uint64_t now_ms = wanted->expires_ms - WATCH_LIFE_MS;
        const size_t count = watches_of(push, wanted->user, now_ms, &ended);
        place = count < BOX_WATCHES_PER_USER_MAX ? watch_add(push, wanted->user) : ended;
    }
    if (place == 0)
        return NULL;
    struct watch *watch = &push->watches[place];
    const struct watch old = *watch;
    *watch = *wanted;
    watch->next = old.next;
    watch->made_ms = old.made_ms; /* BPSH1 holds across watches */
    watch->seen = box_mailbox_history_id(box_user_mailbox(watch->user));
    return watch;
}

static void set_u64_text(json_t *object, const char *key, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    json_object_set_new(object, key, json_string(text));
}

void box_push_watch(struct box_call *call)
{
    struct box_push *push = box_cloud_push(call->cloud);
    json_t *body = box_call_body(call);
    if (body == NULL)
        return;
    struct watch wanted = {.user = call->user, .expires_ms = call->now_ms + WATCH_LIFE_MS};
    const bool good = read_topic(call, body, &wanted) && read_filter(call, body, &wanted);
    json_decref(body);
    if (!good)
        return;
    struct watch *watch = watch_put(push, &wanted);
    if (watch == NULL) {
        box_fail_argument(call, "Only one user push notification client allowed per developer "
                                "(call /stop then try again)");
        return;
    }
    keep_watch(push, watch);
    notify(push, watch, call->now_ms); /* the first one comes at once */
    json_t *reply = json_object();
    set_u64_text(reply, "historyId", watch->seen);
    set_u64_text(reply, "expiration", watch->expires_ms);
    box_call_reply(call, reply);
}

void box_push_stop(struct box_call *call)
{
    struct box_push *push = box_cloud_push(call->cloud);
    if (watches_any(push, call->user, call->now_ms)) {
        watches_end(push, call->user);
        box_cloud_keep(push->cloud,
                       json_pack("{s:s, s:s}", "op", "push-stop", "email", call->user->email));
    }
    box_call_reply_empty(call);
}

void box_push_expire(struct box_push *push, const struct box_user *user)
{
    watches_end(push, user);
    box_cloud_keep(push->cloud, json_pack("{s:s, s:s}", "op", "push-expire", "email", user->email));
}

/* ---- deliveries ---- */

static void sign_bearer(struct box_push *push, struct topic *topic, uint64_t now_ms)
{
    if (topic->signed_ms != 0 && now_ms < topic->signed_ms + TOKEN_REUSED_MS)
        return;
    char subject[22];
    box_auth_subject(tide_text_of(PUSHER), subject);
    const json_int_t now_s = (json_int_t)(now_ms / 1000);
    json_t *claims =
        json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:s, s:s}", "aud", topic->url, "azp", subject,
                  "email", PUSHER, "email_verified", 1, "exp", now_s + TOKEN_LIFE_S, "iat", now_s,
                  "iss", "https://accounts.google.com", "sub", subject);
    tide_buf_clear(&topic->bearer);
    box_auth_sign(box_cloud_auth(push->cloud), claims, &topic->bearer);
    topic->signed_ms = now_ms;
}

static void add_body(const struct box_push_item *item, const struct topic *topic, tide_buf *body)
{
    tide_auto_buf data = tide_buf_heap(4096);
    box_add_cstr(&data, "{\"emailAddress\":");
    box_add_json_text(&data, tide_text_of(item->user->email));
    box_print(&data, ",\"historyId\":\"%" PRIu64 "\"}", item->history_id);
    char published[TIDE_TIME_TEXT_BYTES];
    tide_time_format(item->made_ms, published);
    box_add_cstr(body, "{\"message\":{\"data\":\"");
    box_add_base64(body, tide_buf_text(&data));
    box_print(body,
              "\",\"messageId\":\"%" PRIu64 "\",\"message_id\":\"%" PRIu64
              "\",\"publishTime\":\"%s\",\"attributes\":{}},\"subscription\":",
              item->message_id, item->message_id, published);
    box_add_json_text(body, tide_text_of(topic->subscription));
    box_add_cstr(body, "}");
}

static bool delivery_next(box_cloud *cloud, uint64_t now_ms, struct box_delivery *delivery_out)
{
    struct box_push *push = box_cloud_push(cloud);
    const struct box_push_item *item = box_push_queue_next(&push->queue, now_ms);
    if (item == NULL)
        return false;
    struct topic *topic = &push->topics[item->topic];
    sign_bearer(push, topic, now_ms);
    TIDE_ASSERT(topic->bearer.bytes < sizeof delivery_out->bearer);
    TIDE_ASSERT(sizeof topic->url <= sizeof delivery_out->url);
    delivery_out->id = item->id;
    memcpy(delivery_out->url, topic->url, sizeof topic->url);
    memcpy(delivery_out->bearer, topic->bearer.data, topic->bearer.bytes + 1);
    tide_buf_init(&delivery_out->body, tide_mem_heap(), 64 << 10);
    add_body(item, topic, &delivery_out->body);
    return true;
}

static void delivery_ended(box_cloud *cloud, uint64_t id, int status, tide_text body,
                           uint64_t now_ms)
{
    (void)body;
    box_push_queue_ended(&box_cloud_push(cloud)->queue, id,
                         status == 102 || (status >= 200 && status <= 299), now_ms);
}

static uint64_t delivery_wake_at_ms(box_cloud *cloud)
{
    return box_push_queue_wake_at_ms(&box_cloud_push(cloud)->queue);
}

/* ---- the record ---- */

static void record(box_cloud *cloud, const struct box_user *user, bool details, json_t *object)
{
    (void)details;
    if (user != NULL)
        return;
    const struct box_push *push = box_cloud_push(cloud);
    const struct box_push_queue *queue = &push->queue;
    size_t watches = 0;
    for (size_t i = 1; i < push->watches_count; i++)
        watches += box_cloud_now(push->cloud) < push->watches[i].expires_ms;
    json_t *stats =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "watches",
                  (json_int_t)watches, "born", (json_int_t)push->counts.made, "limited",
                  (json_int_t)push->counts.limited, "filtered", (json_int_t)push->counts.filtered,
                  "lost", (json_int_t)push->counts.lost, "duplicated",
                  (json_int_t)push->counts.duplicated, "unheard", (json_int_t)push->counts.unheard,
                  "sent", (json_int_t)queue->sent, "acknowledged", (json_int_t)queue->acknowledged,
                  "refused", (json_int_t)queue->refused, "dropped", (json_int_t)queue->dropped,
                  "given_up", (json_int_t)queue->given_up, "waiting", (json_int_t)queue->count);
    TIDE_ASSERT(stats != NULL);
    json_object_set_new(object, "push", stats);
}

/* ---- replay ---- */

static tide_status replay_watch(struct box_push *push, struct box_user *user, const json_t *change,
                                tide_error *err)
{
    struct watch wanted = {.user = user};
    tide_text topic;
    const json_t *labels = NULL;
    tide_status rc = tide_json_get_text(change, "topic", &topic, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_array(change, "labels", &labels, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_bool(change, "exclude", &wanted.exclude, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(change, "expires", &wanted.expires_ms, err);
    if (rc != TIDE_OK)
        return rc;
    if (project_bytes(topic) == 0 || wanted.expires_ms < WATCH_LIFE_MS ||
        json_array_size(labels) > BOX_WATCH_LABELS_MAX)
        return tide_error_set(err, TIDE_CORRUPT, "a broken watch");
    memcpy(wanted.topic, topic.data, topic.bytes);
    for (size_t i = 0; i < json_array_size(labels); i++)
        wanted.labels[wanted.labels_count++] =
            (uint16_t)json_integer_value(json_array_get(labels, i));
    if (watch_put(push, &wanted) == NULL)
        return tide_error_set(err, TIDE_CORRUPT, "too many watches");
    return TIDE_OK;
}

static tide_status replay(box_cloud *cloud, const json_t *change, tide_error *err)
{
    struct box_push *push = box_cloud_push(cloud);
    tide_text op, email, topic, url;
    tide_status rc = tide_json_get_text(change, "op", &op, err);
    if (rc != TIDE_OK)
        return rc;
    if (tide_text_equal(op, TIDE_TEXT("push-topic"))) {
        rc = tide_json_get_text(change, "topic", &topic, err);
        if (rc == TIDE_OK)
            rc = tide_json_get_text(change, "url", &url, err);
        return rc == TIDE_OK ? box_push_add_topic(push, topic, url, err) : rc;
    }
    rc = tide_json_get_text(change, "email", &email, err);
    if (rc != TIDE_OK)
        return rc;
    struct box_user *user = box_cloud_user(push->cloud, email);
    if (user == NULL)
        return tide_error_set(err, TIDE_CORRUPT, "a watch of a user who does not exist");
    if (tide_text_equal(op, TIDE_TEXT("push-watch")))
        return replay_watch(push, user, change, err);
    if (tide_text_equal(op, TIDE_TEXT("push-stop")) ||
        tide_text_equal(op, TIDE_TEXT("push-expire")))
        watches_end(push, user);
    else
        return tide_error_set(err, TIDE_CORRUPT, "no such change of push: %.*s",
                              (int)(op.bytes > 40 ? 40 : op.bytes), op.data);
    return TIDE_OK;
}

tide_status box_cloud_add_topic(box_cloud *cloud, tide_text topic, tide_text url, tide_error *err)
{
    return box_push_add_topic(box_cloud_push(cloud), topic, url, err);
}

/* ---- the service ---- */

static const struct box_fault faults[] = {
    {"push-duplicate", BOX_ASKED, .takes = 0},
    {"push-loss", BOX_ASKED, .takes = 0},
};

const struct box_service box_pubsub = {
    .name = "push",
    .open = open_push,
    .close = close_push,
    .changed = changed,
    .faults = faults,
    .faults_count = sizeof faults / sizeof faults[0],
    .record = record,
    .delivery_next = delivery_next,
    .delivery_ended = delivery_ended,
    .delivery_wake_at_ms = delivery_wake_at_ms,
    .ops = "push-",
    .replay = replay,
};
