/* cloud.c - the cloud as a whole: its services, its clock, its changes, its record. */
#include "cloudbox/gate/cloud.h"

#include "base/check.h"
#include "base/json.h"
#include "cloudbox/gate/inside.h"

#include <stdlib.h>

/* ---- life ---- */

static void open_services(box_cloud *cloud)
{
    const struct box_service *service = NULL;
    for (each_service(cloud, i, service)) {
        TIDE_ASSERT(i < BOX_SERVICES_MAX);
        if (cloud->style == NULL)
            cloud->style = service->style;
        if (service->open != NULL)
            cloud->states[i] = service->open(cloud);
    }
}

static const char *email_at(void *arg, uint32_t number)
{
    const struct box_user *user = box_cloud_user_at(arg, number - 1);
    return user == NULL ? NULL : user->email;
}

box_cloud *box_cloud_new(const struct box_options *options)
{
    TIDE_ASSERT(options->services != NULL);
    box_cloud *cloud = tide_mem_new(tide_mem_heap(), sizeof *cloud);
    TIDE_ASSERT(cloud != NULL);
    cloud->options = *options;
    if (cloud->options.history_keep_ms == 0)
        cloud->options.history_keep_ms = UINT64_C(7) * 24 * 3600 * 1000;
    if (cloud->options.token_life_s == 0)
        cloud->options.token_life_s = 3599;
    cloud->rng = tide_rng_seeded(options->seed);
    tide_map_init(&cloud->by_email, tide_mem_heap());
    tide_arena_init(&cloud->scratch, tide_mem_heap(), BOX_SCRATCH_BYTES_MAX);
    cloud->quota = box_quota_new(&cloud->options);
    cloud->referee = box_referee_new(email_at, cloud);
    cloud->faults = box_faults_new(options->seed, options->services);
    open_services(cloud);
    return cloud;
}

void box_cloud_free(box_cloud *cloud)
{
    if (cloud == NULL)
        return;
    const struct box_service *service = NULL;
    for (each_service(cloud, i, service)) {
        if (service->close != NULL)
            service->close(cloud->states[i]);
    }
    box_users_free(cloud);
    box_faults_free(cloud->faults);
    box_referee_free(cloud->referee);
    box_quota_free(cloud->quota);
    tide_map_done(&cloud->by_email);
    tide_arena_done(&cloud->scratch);
    tide_mem_free(tide_mem_heap(), cloud, sizeof *cloud);
}

/* ---- services ---- */

const struct box_service *box_cloud_service(const box_cloud *cloud, const char *name)
{
    const struct box_service *service = NULL;
    for (each_service(cloud, i, service)) {
        if (strcmp(service->name, name) == 0)
            return service;
    }
    return NULL;
}

/* The place of a service in the list; BOX_SERVICES_MAX: it is not there. */
static size_t place_of(const box_cloud *cloud, const struct box_service *wanted)
{
    const struct box_service *service = NULL;
    for (each_service(cloud, i, service)) {
        if (service == wanted)
            return i;
    }
    return BOX_SERVICES_MAX;
}

void *box_cloud_state(const box_cloud *cloud, const struct box_service *service)
{
    const size_t place = place_of(cloud, service);
    return place == BOX_SERVICES_MAX ? NULL : cloud->states[place];
}

void *box_user_part(const struct box_user *user, const struct box_service *service)
{
    const size_t place = place_of(user->cloud, service);
    return place == BOX_SERVICES_MAX ? NULL : user->parts[place];
}

bool box_cloud_identify(box_cloud *cloud, tide_text token, struct box_principal *principal_out)
{
    const struct box_service *service = NULL;
    for (each_service(cloud, i, service)) {
        if (service->identify != NULL &&
            service->identify(cloud, token, cloud->now_ms, principal_out))
            return true;
    }
    return false;
}

/* ---- time ---- */

/* The first time that the caller gives starts the clock. */
void box_cloud_tell_time(box_cloud *cloud, uint64_t now_unix_ms)
{
    if (!cloud->clock_runs) {
        const uint64_t start_ms = cloud->options.start_unix_ms;
        box_clock_init(&cloud->clock, start_ms == 0 ? now_unix_ms : start_ms, now_unix_ms);
        cloud->clock_runs = true;
    }
    cloud->outside_ms = now_unix_ms;
    cloud->now_ms = box_clock_at(&cloud->clock, now_unix_ms);
}

uint64_t box_cloud_now(const box_cloud *cloud)
{
    return cloud->now_ms;
}

uint64_t box_cloud_outside(const box_cloud *cloud)
{
    return cloud->outside_ms;
}

void box_cloud_clock_changed(box_cloud *cloud)
{
    cloud->now_ms = box_clock_at(&cloud->clock, cloud->outside_ms);
    box_cloud_keep(cloud, json_pack("{s:s, s:I, s:I, s:I}", "op", "clock", "inside",
                                    (json_int_t)cloud->clock.inside_ms, "outside",
                                    (json_int_t)cloud->clock.outside_ms, "speed",
                                    (json_int_t)cloud->clock.speed_permille));
}

/* ---- changes, kept and replayed ---- */

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
        rc = tide_error_set(err, TIDE_CORRUPT, "an impossible time");
    if (rc != TIDE_OK)
        return rc;
    box_clock_init(&cloud->clock, inside_ms, outside_ms);
    cloud->clock.speed_permille = (uint32_t)speed;
    cloud->clock_runs = true;
    return TIDE_OK;
}

/* The service whose changes begin like this, the longest beginning first. */
static const struct box_service *service_of_op(const box_cloud *cloud, tide_text op)
{
    const struct box_service *found = NULL;
    const struct box_service *service = NULL;
    for (each_service(cloud, i, service)) {
        const size_t bytes = service->ops == NULL ? 0 : strlen(service->ops);
        if (service->ops != NULL && bytes <= op.bytes &&
            memcmp(op.data, service->ops, bytes) == 0 &&
            (found == NULL || bytes > strlen(found->ops)))
            found = service;
    }
    return found;
}

static tide_status replay_change(box_cloud *cloud, const json_t *change, tide_error *err)
{
    tide_text op;
    const tide_status rc = tide_json_get_text(change, "op", &op, err);
    if (rc != TIDE_OK)
        return rc;
    if (tide_text_equal(op, TIDE_TEXT("user")))
        return box_users_replay(cloud, change, err);
    if (tide_text_equal(op, TIDE_TEXT("clock")))
        return replay_clock(cloud, change, err);
    const struct box_service *service = service_of_op(cloud, op);
    if (service == NULL)
        return tide_error_set(err, TIDE_CORRUPT, "no service has changes called %.*s",
                              (int)(op.bytes > 40 ? 40 : op.bytes), op.data);
    return service->replay(cloud, change, err);
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

static bool serve_batch(box_cloud *cloud, const struct box_request *request,
                        struct box_answer *answer)
{
    const struct box_service *service = NULL;
    for (each_service(cloud, i, service)) {
        if (service->batch != NULL && service->batch(cloud, request, answer))
            return true;
    }
    return false;
}

void box_cloud_serve(box_cloud *cloud, const struct box_request *request, uint64_t now_unix_ms,
                     struct box_answer *answer)
{
    box_cloud_tell_time(cloud, now_unix_ms);
    if (!serve_batch(cloud, request, answer))
        box_gate_call(cloud, request, 0, answer);
    box_users_tell(cloud);
}

void box_cloud_finished(box_cloud *cloud, const struct box_ticket *ticket, uint64_t now_unix_ms)
{
    box_cloud_tell_time(cloud, now_unix_ms);
    if (ticket->slots > 0)
        box_quota_leave(cloud->quota, ticket->user, ticket->slots);
}

/* ---- the record ---- */

static void add_parts(box_cloud *cloud, const struct box_user *user, bool details, json_t *object)
{
    const struct box_service *service = NULL;
    for (each_service(cloud, i, service)) {
        if (service->record != NULL)
            service->record(cloud, user, details, object);
        if (user == NULL && service->subjects != NULL)
            json_object_set_new(object, service->subjects,
                                box_referee_subjects(cloud->referee, service->subjects));
    }
}

json_t *box_cloud_stats(box_cloud *cloud, const struct box_user *user, bool details)
{
    json_t *stats = json_pack("{s:I}", "now", (json_int_t)cloud->now_ms);
    TIDE_ASSERT(stats != NULL);
    json_object_set_new(stats, "quota", box_quota_json(cloud->quota));
    box_referee_stats(cloud->referee, user == NULL ? 0 : user->number, stats);
    const char *email = NULL;
    json_t *object = NULL;
    json_object_foreach(json_object_get(stats, "users"), email, object)
    {
        add_parts(cloud, box_cloud_user(cloud, tide_text_of(email)), details, object);
    }
    add_parts(cloud, NULL, details, stats);
    return stats;
}

void box_cloud_stats_reset(box_cloud *cloud)
{
    box_referee_reset(cloud->referee, cloud->now_ms);
    const struct box_service *service = NULL;
    for (each_service(cloud, i, service)) {
        if (service->record_reset != NULL)
            service->record_reset(cloud);
    }
}

/* ---- the parts ---- */

tide_status box_cloud_add_fault(box_cloud *cloud, tide_text json, tide_error *err)
{
    json_auto_t *rule = NULL;
    uint32_t id = 0;
    tide_status rc = tide_json_parse(json, &rule, err);
    if (rc == TIDE_OK)
        rc = box_faults_add(cloud->faults, rule, &id, err);
    return rc;
}

const struct box_options *box_cloud_options(const box_cloud *cloud)
{
    return &cloud->options;
}

tide_rng *box_cloud_rng(box_cloud *cloud)
{
    return &cloud->rng;
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

struct box_clock *box_cloud_clock(box_cloud *cloud)
{
    return &cloud->clock;
}
