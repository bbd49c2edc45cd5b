/* cloud.c - the cloud as a whole: its users, its clock, its memory of changes. */
#include "cloudbox/gate/cloud.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/json.h"
#include "cloudbox/google/batch.h"
#include "cloudbox/gate/inside.h"
#include "cloudbox/mailbox/mime.h"
#include "cloudbox/services.h"

#include <ctype.h>
#include <stdlib.h>

enum { CORPUS_STEP_MS = 60000 };

/* ---- life ---- */

box_cloud *box_cloud_new(const struct box_options *options)
{
    box_cloud *cloud = tide_mem_new(tide_mem_heap(), sizeof *cloud);
    TIDE_ASSERT(cloud != NULL);
    box_mime_start();
    cloud->options = *options;
    if (cloud->options.services == NULL)
        cloud->options.services = box_services_all;
    if (cloud->options.concurrency_max == 0)
        cloud->options.concurrency_max = 10;
    if (cloud->options.history_keep_ms == 0)
        cloud->options.history_keep_ms = UINT64_C(7) * 24 * 3600 * 1000;
    if (cloud->options.token_life_s == 0)
        cloud->options.token_life_s = 3599;
    cloud->rng = tide_rng_seeded(options->seed);
    tide_map_init(&cloud->by_email, tide_mem_heap());
    tide_arena_init(&cloud->scratch, tide_mem_heap(), BOX_SCRATCH_BYTES_MAX);
    cloud->auth = box_auth_new(cloud);
    cloud->quota = box_quota_new(&cloud->options);
    cloud->referee = box_referee_new(cloud);
    cloud->faults = box_faults_new(options->seed);
    cloud->push = box_push_new(cloud);
    cloud->sites = box_sites_new(options->seed);
    cloud->chat = box_chat_new(options->seed);
    cloud->uploads = box_uploads_new();
    return cloud;
}

void box_cloud_free(box_cloud *cloud)
{
    if (cloud == NULL)
        return;
    box_uploads_free(cloud->uploads);
    box_chat_free(cloud->chat);
    box_sites_free(cloud->sites);
    box_push_free(cloud->push);
    box_faults_free(cloud->faults);
    box_referee_free(cloud->referee);
    box_quota_free(cloud->quota);
    box_auth_free(cloud->auth);
    for (size_t i = 0; i < cloud->members_count; i++) {
        box_mailbox_free(cloud->members[i]->user.mailbox);
        tide_mem_free(tide_mem_heap(), cloud->members[i], sizeof *cloud->members[i]);
    }
    tide_mem_free(tide_mem_heap(), cloud->members,
                  cloud->members_capacity * sizeof(struct box_member *));
    tide_map_done(&cloud->by_email);
    tide_arena_done(&cloud->scratch);
    tide_mem_free(tide_mem_heap(), cloud, sizeof *cloud);
}

/* ---- time ---- */

/* The first time that is heard of starts the clock. */
static void tell_time(box_cloud *cloud, uint64_t outside_ms)
{
    if (!cloud->clock_runs) {
        const uint64_t start_ms = cloud->options.start_unix_ms;
        box_clock_init(&cloud->clock, start_ms == 0 ? outside_ms : start_ms, outside_ms);
        cloud->clock_runs = true;
    }
    cloud->outside_ms = outside_ms;
    cloud->now_ms = box_clock_at(&cloud->clock, outside_ms);
}

uint64_t box_cloud_now(const box_cloud *cloud)
{
    return cloud->now_ms;
}

uint64_t box_cloud_outside(const box_cloud *cloud)
{
    return cloud->outside_ms;
}

/* ---- changes and their keeping ---- */

void box_cloud_keep(box_cloud *cloud, json_t *change)
{
    TIDE_ASSERT(change != NULL);
    if (cloud->options.keep != NULL && !cloud->replaying) {
        char *text = json_dumps(change, JSON_COMPACT);
        TIDE_ASSERT(text != NULL);
        cloud->options.keep(cloud->options.keep_arg, tide_text_of(text));
        free(text);
    }
    json_decref(change);
}

/* A mailbox reports what happened to it. */
static void mailbox_changed(void *arg, json_t *change)
{
    struct box_member *member = arg;
    member->changed = true;
    member->cloud->any_changed = true;
    json_object_set_new(change, "user", json_string(member->user.email));
    box_cloud_keep(member->cloud, change);
}

/* ---- users ---- */

static uint64_t email_hash(tide_text email)
{
    uint64_t hash = TIDE_HASH_START;
    for (size_t i = 0; i < email.bytes; i++)
        hash = tide_hash_byte(hash, (uint8_t)tolower((unsigned char)email.data[i]));
    return hash == 0 ? 1 : hash;
}

static bool email_equal(const char *have, tide_text email)
{
    if (strlen(have) != email.bytes)
        return false;
    for (size_t i = 0; i < email.bytes; i++)
        if (have[i] != tolower((unsigned char)email.data[i]))
            return false;
    return true;
}

/* Two addresses with one hash: the second is looked for under hash + 1, and so on. */
static struct box_member *member_of(const box_cloud *cloud, tide_text email, uint64_t *free_out)
{
    uint64_t hash = email_hash(email);
    for (uint32_t index = 0; tide_map_get(&cloud->by_email, hash, &index);
         hash = hash == UINT64_MAX ? 1 : hash + 1)
        if (email_equal(cloud->members[index]->user.email, email))
            return cloud->members[index];
    if (free_out != NULL)
        *free_out = hash;
    return NULL;
}

struct box_user *box_cloud_user(box_cloud *cloud, tide_text email)
{
    struct box_member *member = member_of(cloud, email, NULL);
    if (member == NULL)
        return NULL;
    box_mailbox_clock(member->user.mailbox, cloud->now_ms);
    return &member->user;
}

struct box_user *box_cloud_user_at(box_cloud *cloud, size_t index)
{
    return index < cloud->members_count ? &cloud->members[index]->user : NULL;
}

/* An address we would put into a header: something@something, no blanks. */
static bool email_is_plain(tide_text email)
{
    const char *at = email.bytes == 0 ? NULL : memchr(email.data, '@', email.bytes);
    if (at == NULL || at == email.data || at == email.data + email.bytes - 1 ||
        email.bytes > BOX_EMAIL_BYTES_MAX)
        return false;
    for (size_t i = 0; i < email.bytes; i++)
        if ((unsigned char)email.data[i] <= ' ' || (unsigned char)email.data[i] >= 127 ||
            strchr("<>\"(),:;[]\\", email.data[i]) != NULL)
            return false;
    return true;
}

static void keep_user(box_cloud *cloud, const struct box_user *user,
                      const struct box_mailbox_options *options)
{
    box_cloud_keep(cloud,
                   json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "op", "user", "email", user->email,
                             "messages", (json_int_t)options->messages, "size",
                             (json_int_t)options->size_bytes, "seed", (json_int_t)options->seed,
                             "now", (json_int_t)options->now_unix_ms));
}

tide_status box_cloud_add_mailbox(box_cloud *cloud, tide_text email,
                                  const struct box_mailbox_options *options, tide_error *err)
{
    if (!email_is_plain(email))
        return tide_error_set(err, TIDE_INVALID, "not an e-mail address: %.*s",
                              (int)(email.bytes > 200 ? 200 : email.bytes), email.data);
    if (options->messages > BOX_MAILBOX_MESSAGES_MAX ||
        (options->size_bytes != 0 && options->size_bytes < BOX_MAILBOX_SIZE_MIN) ||
        options->size_bytes > BOX_MAILBOX_SIZE_MAX || options->now_unix_ms > BOX_CLOCK_MS_MAX)
        return tide_error_set(err, TIDE_INVALID, "a mailbox of %u messages of %u bytes cannot be",
                              options->messages, options->size_bytes);
    uint64_t hash = 0;
    if (member_of(cloud, email, &hash) != NULL)
        return tide_error_set(err, TIDE_EXISTS, "there is a user %.*s already", (int)email.bytes,
                              email.data);
    if (cloud->members_count == BOX_USERS_MAX)
        return tide_error_set(err, TIDE_FULL, "more than %d users", BOX_USERS_MAX);

    struct box_member *member = tide_mem_new(tide_mem_heap(), sizeof *member);
    TIDE_ASSERT(member != NULL);
    member->cloud = cloud;
    for (size_t i = 0; i < email.bytes; i++)
        member->user.email[i] = (char)tolower((unsigned char)email.data[i]);
    TIDE_ASSERT(tide_mem_grow(tide_mem_heap(), (void **)&cloud->members, &cloud->members_capacity,
                              cloud->members_count + 1, BOX_USERS_MAX,
                              sizeof(struct box_member *)));
    TIDE_ASSERT(tide_map_put(&cloud->by_email, hash, (uint32_t)cloud->members_count));
    cloud->members[cloud->members_count++] = member;
    member->user.number = (uint32_t)cloud->members_count;

    struct box_mailbox_options settled = *options;
    if (settled.seed == 0) /* within an int64_t, which is what JSON keeps */
        settled.seed = (cloud->options.seed * 31 ^ email_hash(email)) >> 1;
    if (settled.now_unix_ms == 0)
        settled.now_unix_ms = cloud->now_ms;
    member->user.mailbox = box_mailbox_new(&(struct box_mailbox_spec){
        .seed = settled.seed,
        .generated = settled.messages,
        .size_bytes = settled.size_bytes,
        .now_ms = settled.now_unix_ms,
        .history_keep_ms = cloud->options.history_keep_ms,
        .email = member->user.email,
        .changed = mailbox_changed,
        .changed_arg = member,
    });
    keep_user(cloud, &member->user, &settled);
    return TIDE_OK;
}

struct box_user *box_cloud_user_need(box_cloud *cloud, tide_text email)
{
    struct box_user *user = box_cloud_user(cloud, email);
    if (user != NULL)
        return user;
    const struct box_mailbox_options empty = {.now_unix_ms = cloud->now_ms};
    if (box_cloud_add_mailbox(cloud, email, &empty, NULL) != TIDE_OK)
        return NULL;
    return box_cloud_user(cloud, email);
}

/* Corpus messages go below everything generated, a minute apart, so that the
 * first file is the newest of them. */
tide_status box_cloud_add_message(box_cloud *cloud, tide_text email, tide_text raw, tide_error *err)
{
    struct box_member *member = member_of(cloud, email, NULL);
    if (member == NULL)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no user %.*s", (int)email.bytes,
                              email.data);
    box_mailbox *mailbox = member->user.mailbox;
    const uint32_t slots = box_mailbox_slots(mailbox);
    uint64_t oldest_ms = cloud->now_ms;
    if (slots > 0) /* the last corpus message, else the first generated one */
        oldest_ms = box_mailbox_at(mailbox, member->real_messages > 0 ? slots - 1 : 0)->date_ms;
    const uint16_t inbox = BOX_LABEL_INBOX;
    const struct box_insert insert = {
        .raw = raw,
        .date_ms = oldest_ms > CORPUS_STEP_MS ? oldest_ms - CORPUS_STEP_MS : 1,
        .labels = &inbox,
        .labels_count = 1,
    };
    (void)box_mailbox_insert(mailbox, &insert);
    member->real_messages++;
    member->changed = false; /* nobody watches yet */
    return TIDE_OK;
}

/* ---- setting up the parts ---- */

tide_status box_cloud_add_token(box_cloud *cloud, tide_text token, tide_text email, tide_error *err)
{
    struct box_user *user = box_cloud_user_need(cloud, email);
    if (user == NULL)
        return tide_error_set(err, TIDE_INVALID, "not an e-mail address: %.*s",
                              (int)(email.bytes > 200 ? 200 : email.bytes), email.data);
    return box_auth_add_token(cloud->auth, token, user);
}

tide_status box_cloud_add_site(box_cloud *cloud, tide_text site, tide_text email,
                               uint32_t rows_per_day, tide_error *err)
{
    struct box_user *user = box_cloud_user_need(cloud, email);
    if (user == NULL)
        return tide_error_set(err, TIDE_INVALID, "not an e-mail address: %.*s",
                              (int)(email.bytes > 200 ? 200 : email.bytes), email.data);
    const tide_status rc = box_sites_add(cloud->sites, site, user, rows_per_day, err);
    if (rc == TIDE_OK)
        box_cloud_keep(cloud,
                       json_pack("{s:s, s:o, s:s, s:I}", "op", "site", "site", box_json_text(site),
                                 "email", user->email, "rows", (json_int_t)rows_per_day));
    return rc;
}

tide_status box_cloud_add_topic(box_cloud *cloud, tide_text topic, tide_text url, tide_error *err)
{
    return box_push_add_topic(cloud->push, topic, url, err);
}

tide_status box_cloud_add_fault(box_cloud *cloud, tide_text json, tide_error *err)
{
    json_t *rule = NULL;
    uint32_t id = 0;
    tide_status rc = tide_json_parse(json, &rule, err);
    if (rc == TIDE_OK)
        rc = box_faults_add(cloud->faults, rule, &id, err);
    json_decref(rule);
    return rc;
}

/* ---- replay ---- */

static tide_status replay_user(box_cloud *cloud, const json_t *change, tide_error *err)
{
    tide_text email;
    uint64_t messages = 0, size = 0, seed = 0, now_ms = 0;
    tide_status rc = tide_json_get_text(change, "email", &email, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(change, "messages", &messages, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(change, "size", &size, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(change, "seed", &seed, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(change, "now", &now_ms, err);
    if (rc == TIDE_OK && (messages > UINT32_MAX || size > UINT32_MAX))
        rc = tide_error_set(err, TIDE_CORRUPT, "a mailbox that cannot be");
    if (rc != TIDE_OK)
        return rc;
    const struct box_mailbox_options options = {.messages = (uint32_t)messages,
                                                .size_bytes = (uint32_t)size,
                                                .seed = seed,
                                                .now_unix_ms = now_ms};
    return box_cloud_add_mailbox(cloud, email, &options, err);
}

/* A property that the options name again is there already. */
static tide_status replay_site(box_cloud *cloud, const json_t *change, tide_error *err)
{
    tide_text site, email;
    uint64_t rows = 0;
    tide_status rc = tide_json_get_text(change, "site", &site, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change, "email", &email, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(change, "rows", &rows, err);
    if (rc == TIDE_OK && rows > UINT32_MAX)
        rc = tide_error_set(err, TIDE_CORRUPT, "too many rows a day");
    if (rc == TIDE_OK)
        rc = box_cloud_add_site(cloud, site, email, (uint32_t)rows, err);
    return rc == TIDE_EXISTS ? TIDE_OK : rc;
}

void box_cloud_clock_changed(box_cloud *cloud)
{
    cloud->now_ms = box_clock_at(&cloud->clock, cloud->outside_ms);
    box_cloud_keep(cloud, json_pack("{s:s, s:I, s:I, s:I}", "op", "clock", "inside",
                                    (json_int_t)cloud->clock.inside_ms, "outside",
                                    (json_int_t)cloud->clock.outside_ms, "speed",
                                    (json_int_t)cloud->clock.speed_permille));
}

static tide_status replay_clock(box_cloud *cloud, const json_t *change, tide_error *err)
{
    uint64_t inside_ms = 0, outside_ms = 0, speed = 0;
    tide_status rc = tide_json_get_u64(change, "inside", &inside_ms, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(change, "outside", &outside_ms, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(change, "speed", &speed, err);
    if (rc == TIDE_OK &&
        (inside_ms > BOX_CLOCK_MS_MAX || outside_ms > BOX_CLOCK_MS_MAX || speed > UINT32_MAX))
        rc = tide_error_set(err, TIDE_CORRUPT, "a time that cannot be");
    if (rc != TIDE_OK)
        return rc;
    box_clock_init(&cloud->clock, inside_ms, outside_ms);
    cloud->clock.speed_permille = (uint32_t)speed;
    cloud->clock_runs = true;
    return TIDE_OK;
}

static tide_status replay_mailbox(box_cloud *cloud, const json_t *change, tide_error *err)
{
    tide_text email;
    const tide_status rc = tide_json_get_text(change, "user", &email, err);
    if (rc != TIDE_OK)
        return rc;
    struct box_member *member = member_of(cloud, email, NULL);
    if (member == NULL)
        return tide_error_set(err, TIDE_CORRUPT, "a change of %.*s, who does not exist",
                              (int)email.bytes, email.data);
    return box_mailbox_replay(member->user.mailbox, change, err);
}

static tide_status replay_change(box_cloud *cloud, const json_t *change, tide_error *err)
{
    tide_text op;
    const tide_status rc = tide_json_get_text(change, "op", &op, err);
    if (rc != TIDE_OK)
        return rc;
    if (tide_text_equal(op, TIDE_TEXT("user")))
        return replay_user(cloud, change, err);
    if (tide_text_equal(op, TIDE_TEXT("site")))
        return replay_site(cloud, change, err);
    if (tide_text_equal(op, TIDE_TEXT("clock")))
        return replay_clock(cloud, change, err);
    if (op.bytes > 5 && memcmp(op.data, "auth-", 5) == 0)
        return box_auth_replay(cloud->auth, change, err);
    if (op.bytes > 5 && memcmp(op.data, "push-", 5) == 0)
        return box_push_replay(cloud->push, change, err);
    return replay_mailbox(cloud, change, err);
}

tide_status box_cloud_replay(box_cloud *cloud, tide_text line, tide_error *err)
{
    json_t *change = NULL;
    tide_status rc = tide_json_parse(line, &change, err);
    if (rc != TIDE_OK)
        return rc;
    cloud->replaying = true;
    rc = replay_change(cloud, change, err);
    cloud->replaying = false;
    json_decref(change);
    return rc;
}

/* ---- serving ---- */

static bool is_batch(const struct box_request *request)
{
    const tide_text target = request->target;
    return request->verb == BOX_POST && target.bytes >= 6 &&
           memcmp(target.data, "/batch", 6) == 0 &&
           (target.bytes == 6 || target.data[6] == '/' || target.data[6] == '?');
}

static void tell_push(box_cloud *cloud)
{
    if (!cloud->any_changed)
        return;
    cloud->any_changed = false;
    for (size_t i = 0; i < cloud->members_count; i++) {
        if (!cloud->members[i]->changed)
            continue;
        cloud->members[i]->changed = false;
        box_push_changed(cloud->push, &cloud->members[i]->user, cloud->now_ms);
    }
}

void box_cloud_serve(box_cloud *cloud, const struct box_request *request, uint64_t now_unix_ms,
                     struct box_answer *answer)
{
    tell_time(cloud, now_unix_ms);
    if (is_batch(request))
        box_batch_serve(cloud, request, answer);
    else
        box_gate_call(cloud, request, 0, answer);
    tell_push(cloud);
}

void box_cloud_finished(box_cloud *cloud, const struct box_ticket *ticket, uint64_t now_unix_ms)
{
    tell_time(cloud, now_unix_ms);
    if (ticket->slots > 0)
        box_quota_leave(cloud->quota, ticket->user, ticket->slots);
}

bool box_cloud_next_delivery(box_cloud *cloud, uint64_t now_unix_ms,
                             struct box_delivery *delivery_out)
{
    tell_time(cloud, now_unix_ms);
    return box_push_next(cloud->push, cloud->now_ms, delivery_out);
}

void box_cloud_delivered(box_cloud *cloud, uint64_t id, int status, uint64_t now_unix_ms)
{
    tell_time(cloud, now_unix_ms);
    box_push_done(cloud->push, id, status, cloud->now_ms);
}

uint64_t box_cloud_wake_at_ms(box_cloud *cloud, uint64_t now_unix_ms)
{
    tell_time(cloud, now_unix_ms);
    return box_clock_outside(&cloud->clock, box_push_wake_at_ms(cloud->push));
}

/* ---- the parts ---- */

const struct box_options *box_cloud_options(const box_cloud *cloud)
{
    return &cloud->options;
}

tide_rng *box_cloud_rng(box_cloud *cloud)
{
    return &cloud->rng;
}

struct box_auth *box_cloud_auth(box_cloud *cloud)
{
    return cloud->auth;
}

struct box_quota *box_cloud_quota(box_cloud *cloud)
{
    return cloud->quota;
}

struct box_referee *box_cloud_referee(box_cloud *cloud)
{
    return cloud->referee;
}

struct box_faults *box_cloud_faults(box_cloud *cloud)
{
    return cloud->faults;
}

struct box_push *box_cloud_push(box_cloud *cloud)
{
    return cloud->push;
}

struct box_sites *box_cloud_sites(box_cloud *cloud)
{
    return cloud->sites;
}

struct box_uploads *box_cloud_uploads(box_cloud *cloud)
{
    return cloud->uploads;
}

struct box_chat_state *box_cloud_chat(box_cloud *cloud)
{
    return cloud->chat;
}

struct box_clock *box_cloud_clock(box_cloud *cloud)
{
    return &cloud->clock;
}
