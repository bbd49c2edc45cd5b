#include "cloudbox/record/referee.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/map.h"
#include "cloudbox/gate/clock.h"
#include "cloudbox/console/console.h"
#include "cloudbox/push/push.h"

#include <stdio.h>

enum {
    STATUSES_MAX = 24, /* different ones of one method; the rest count as "other" */
    KINDS_MAX = 32,    /* of violations */
    KIND_BYTES = 32,
    FIRST_MAX = 20, /* violations of a kind kept with their details */
    DETAIL_BYTES = 96,
    SITES_MAX = 1000,
    STRAYS_MAX = 600, /* by status */
    SITE_BYTES = 256,
    MINUTE_MS = 60000,
    DEAD_MAX = 10000, /* refused tokens that are remembered */
    DEAD_GRACE_S = 2, /* calls on their way when the token was refused */
};

struct tally {
    const struct box_method *method;
    uint32_t user;
    uint32_t statuses_count;
    uint64_t calls;
    uint64_t units;
    uint64_t other;
    struct {
        int status;
        uint64_t count;
    } statuses[STATUSES_MAX];
};

struct record {
    bool used;
    uint64_t calls;
    uint64_t units;
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t violations;
    uint64_t refused[BOX_REFUSALS];
    uint32_t in_flight_highest;
    box_window *offered; /* Gmail's units; NULL until the first */
    box_window *granted;
    uint8_t *fetched; /* by message slot (R3) */
    size_t fetched_capacity;
};

struct site_record {
    char name[SITE_BYTES];
    uint64_t calls;
    uint64_t refused[BOX_REFUSALS];
    box_window *offered;
    box_window *granted;
};

struct violation {
    uint64_t at_ms;
    uint32_t user;
    char detail[DETAIL_BYTES];
};

struct kind {
    char name[KIND_BYTES];
    uint64_t count;
    uint32_t first_count;
    struct violation first[FIRST_MAX];
};

struct box_referee {
    box_cloud *cloud;
    uint64_t since_ms;
    struct record *records; /* by user number; 0 is nobody */
    size_t records_capacity;
    tide_map numbers; /* method and user -> tallies[] */
    struct tally *tallies;
    size_t tallies_count;
    size_t tallies_capacity;
    struct site_record *sites; /* by site number, 1-based */
    size_t sites_capacity;
    struct kind *kinds;
    size_t kinds_count;
    size_t kinds_capacity;
    uint64_t strays[STRAYS_MAX];
    tide_map dead; /* hash of a token that was refused -> seconds since dead_from_ms */
    uint64_t dead_from_ms;
};

struct box_referee *box_referee_new(box_cloud *cloud)
{
    struct box_referee *referee = tide_mem_new(tide_mem_heap(), sizeof *referee);
    TIDE_ASSERT(referee != NULL);
    referee->cloud = cloud;
    tide_map_init(&referee->numbers, tide_mem_heap());
    tide_map_init(&referee->dead, tide_mem_heap());
    return referee;
}

static void referee_empty(struct box_referee *referee)
{
    tide_mem *mem = tide_mem_heap();
    for (size_t i = 0; i < referee->records_capacity; i++) {
        struct record *record = &referee->records[i];
        box_window_free(record->offered);
        box_window_free(record->granted);
        tide_mem_free(mem, record->fetched, record->fetched_capacity);
    }
    for (size_t i = 0; i < referee->sites_capacity; i++) {
        box_window_free(referee->sites[i].offered);
        box_window_free(referee->sites[i].granted);
    }
    tide_mem_free(mem, referee->records, referee->records_capacity * sizeof *referee->records);
    tide_mem_free(mem, referee->tallies, referee->tallies_capacity * sizeof *referee->tallies);
    tide_mem_free(mem, referee->sites, referee->sites_capacity * sizeof *referee->sites);
    tide_mem_free(mem, referee->kinds, referee->kinds_capacity * sizeof *referee->kinds);
    tide_map_done(&referee->numbers);
    tide_map_done(&referee->dead);
}

void box_referee_free(struct box_referee *referee)
{
    if (referee == NULL)
        return;
    referee_empty(referee);
    tide_mem_free(tide_mem_heap(), referee, sizeof *referee);
}

void box_referee_reset(struct box_referee *referee)
{
    box_cloud *cloud = referee->cloud;
    referee_empty(referee);
    *referee = (struct box_referee){.cloud = cloud, .since_ms = box_cloud_now(cloud)};
    tide_map_init(&referee->numbers, tide_mem_heap());
    tide_map_init(&referee->dead, tide_mem_heap());
}

/* ---- writing down ---- */

static struct record *record_of(struct box_referee *referee, uint32_t number)
{
    TIDE_ASSERT(number <= BOX_USERS_MAX);
    if (number >= referee->records_capacity)
        TIDE_ASSERT(tide_mem_grow(tide_mem_heap(), (void **)&referee->records,
                                  &referee->records_capacity, (size_t)number + 1, BOX_USERS_MAX + 1,
                                  sizeof *referee->records));
    referee->records[number].used = true;
    return &referee->records[number];
}

static struct tally *tally_of(struct box_referee *referee, const struct box_method *method,
                              uint32_t user)
{
    /* Addresses use 48 bits at most and user numbers 14: no two collide. */
    const uint64_t key = (uint64_t)(uintptr_t)method ^ ((uint64_t)user << 50);
    uint32_t index = 0;
    if (tide_map_get(&referee->numbers, key, &index))
        return &referee->tallies[index];

    index = (uint32_t)referee->tallies_count;
    TIDE_ASSERT(tide_mem_grow(tide_mem_heap(), (void **)&referee->tallies,
                              &referee->tallies_capacity, (size_t)index + 1, UINT32_MAX,
                              sizeof *referee->tallies));
    TIDE_ASSERT(tide_map_put(&referee->numbers, key, index));
    referee->tallies_count++;
    referee->tallies[index] = (struct tally){.method = method, .user = user};
    return &referee->tallies[index];
}

static void tally_status(struct tally *tally, int status)
{
    for (uint32_t i = 0; i < tally->statuses_count; i++) {
        if (tally->statuses[i].status == status) {
            tally->statuses[i].count++;
            return;
        }
    }
    if (tally->statuses_count == STATUSES_MAX) {
        tally->other++;
        return;
    }
    tally->statuses[tally->statuses_count].status = status;
    tally->statuses[tally->statuses_count].count = 1;
    tally->statuses_count++;
}

static void count_windows(box_window **offered, box_window **granted, uint64_t now_ms,
                          uint32_t amount, bool let_through)
{
    if (*offered == NULL) {
        *offered = box_window_new(MINUTE_MS, 1);
        *granted = box_window_new(MINUTE_MS, 1);
    }
    box_window_add(*offered, now_ms, amount);
    if (let_through)
        box_window_add(*granted, now_ms, amount);
}

static void site_call(struct box_referee *referee, const struct box_call *call, box_refusal refusal)
{
    if (call->args_count == 0)
        return;
    const uint32_t number = box_sites_number(box_cloud_sites(call->cloud), call->args[0]);
    if (number == 0 || number > SITES_MAX)
        return;
    if (number >= referee->sites_capacity)
        TIDE_ASSERT(tide_mem_grow(tide_mem_heap(), (void **)&referee->sites,
                                  &referee->sites_capacity, (size_t)number + 1, SITES_MAX * 2,
                                  sizeof *referee->sites));
    struct site_record *site = &referee->sites[number];
    if (site->calls == 0)
        (void)snprintf(site->name, sizeof site->name, "%.*s", (int)call->args[0].bytes,
                       call->args[0].data);
    site->calls++;
    site->refused[refusal]++;
    count_windows(&site->offered, &site->granted, call->now_ms, 1, refusal == BOX_ALLOWED);
}

void box_referee_call(struct box_referee *referee, const struct box_call *call, box_refusal refusal,
                      uint32_t units)
{
    TIDE_ASSERT(call->method != NULL);
    TIDE_ASSERT(refusal < BOX_REFUSALS);
    const uint32_t user = call->user == NULL ? 0 : call->user->number;
    if (referee->since_ms == 0) /* the cloud's clock starts with its first call */
        referee->since_ms = call->now_ms;
    struct record *record = record_of(referee, user);
    record->calls++;
    record->units += units;
    record->bytes_in += call->request->body.bytes;
    record->bytes_out += call->answer->body.bytes;
    record->refused[refusal]++;

    struct tally *tally = tally_of(referee, call->method, user);
    tally->calls++;
    tally->units += units;
    tally_status(tally, call->answer->status);

    if (call->method->meter == BOX_METER_GMAIL)
        count_windows(&record->offered, &record->granted, call->now_ms, units,
                      refusal == BOX_ALLOWED);
    if (call->method->meter == BOX_METER_CONSOLE)
        site_call(referee, call, refusal);
    if (refusal != BOX_ALLOWED)
        box_referee_violation_of(referee, call->user, box_refusal_name(refusal),
                                 tide_text_of(call->method->name));
}

void box_referee_in_flight(struct box_referee *referee, const struct box_user *user, uint32_t slots)
{
    struct record *record = record_of(referee, user->number);
    if (slots > record->in_flight_highest)
        record->in_flight_highest = slots;
}

void box_referee_fetched(struct box_referee *referee, const struct box_user *user, uint32_t slot)
{
    struct record *record = record_of(referee, user->number);
    if (slot >= record->fetched_capacity) {
        size_t wanted = box_mailbox_slots(user->mailbox);
        if (wanted <= slot)
            wanted = (size_t)slot + 1;
        TIDE_ASSERT(tide_mem_grow(tide_mem_heap(), (void **)&record->fetched,
                                  &record->fetched_capacity, wanted, UINT32_MAX, 1));
    }
    if (record->fetched[slot] < UINT8_MAX)
        record->fetched[slot]++;
}

static struct kind *kind_of(struct box_referee *referee, const char *name)
{
    for (size_t i = 0; i < referee->kinds_count; i++) {
        if (strcmp(referee->kinds[i].name, name) == 0)
            return &referee->kinds[i];
    }
    /* Kinds are words of ours, so there are few; the last place takes the rest. */
    if (referee->kinds_count == KINDS_MAX)
        return &referee->kinds[KINDS_MAX - 1];
    TIDE_ASSERT(tide_mem_grow(tide_mem_heap(), (void **)&referee->kinds, &referee->kinds_capacity,
                              referee->kinds_count + 1, KINDS_MAX, sizeof *referee->kinds));
    struct kind *kind = &referee->kinds[referee->kinds_count++];
    (void)snprintf(kind->name, sizeof kind->name, "%s", name);
    return kind;
}

void box_referee_violation_of(struct box_referee *referee, const struct box_user *user,
                              const char *name, tide_text detail)
{
    const uint32_t number = user == NULL ? 0 : user->number;
    record_of(referee, number)->violations++;
    struct kind *kind = kind_of(referee, name);
    kind->count++;
    if (kind->first_count == FIRST_MAX)
        return;
    struct violation *first = &kind->first[kind->first_count++];
    first->at_ms = box_cloud_now(referee->cloud);
    first->user = number;
    (void)snprintf(first->detail, sizeof first->detail, "%.*s", (int)detail.bytes,
                   detail.data == NULL ? "" : detail.data);
}

void box_referee_violation(struct box_referee *referee, const struct box_user *user,
                           const char *kind)
{
    box_referee_violation_of(referee, user, kind, TIDE_TEXT_NONE);
}

void box_referee_dead_token(struct box_referee *referee, tide_text token)
{
    uint64_t hash = tide_hash(TIDE_HASH_START, token);
    hash = hash == 0 ? 1 : hash;
    const uint64_t now_ms = box_cloud_now(referee->cloud);
    if (referee->dead.count == 0)
        referee->dead_from_ms = now_ms;
    const uint32_t now_s = (uint32_t)((now_ms - referee->dead_from_ms) / 1000);
    const uint32_t speed = box_cloud_clock(referee->cloud)->speed_permille;
    const uint32_t grace_s = DEAD_GRACE_S * (speed < 1000 ? 1 : speed / 1000);

    uint32_t refused_s = 0;
    if (tide_map_get(&referee->dead, hash, &refused_s)) {
        if (now_s - refused_s >= grace_s)
            box_referee_violation(referee, NULL, "dead-token");
    } else if (referee->dead.count < DEAD_MAX) {
        TIDE_ASSERT(tide_map_put(&referee->dead, hash, now_s));
    }
}

void box_referee_stray(struct box_referee *referee, int status)
{
    referee->strays[status > 0 && status < STRAYS_MAX ? status : 0]++;
}

/* ---- reading it ---- */

static void set(json_t *object, const char *name, json_t *value)
{
    TIDE_ASSERT(value != NULL);
    /* Only names that are no UTF-8 are refused; those get their place under another. */
    if (json_object_set(object, name, value) != 0)
        (void)json_object_set(object, "?", value);
    json_decref(value);
}

static void set_count(json_t *object, const char *name, uint64_t count)
{
    set(object, name, json_integer((json_int_t)count));
}

static json_t *refused_json(const uint64_t refused[BOX_REFUSALS])
{
    json_t *object = json_object();
    for (int i = BOX_ALLOWED + 1; i < BOX_REFUSALS; i++) {
        if (refused[i] > 0)
            set_count(object, box_refusal_name((box_refusal)i), refused[i]);
    }
    return object;
}

static json_t *methods_json(const struct box_referee *referee, uint32_t user)
{
    json_t *methods = json_object();
    for (size_t i = 0; i < referee->tallies_count; i++) {
        const struct tally *tally = &referee->tallies[i];
        if (tally->user != user)
            continue;
        json_t *statuses = json_object();
        for (uint32_t s = 0; s < tally->statuses_count; s++) {
            char name[16];
            (void)snprintf(name, sizeof name, "%d", tally->statuses[s].status);
            set_count(statuses, name, tally->statuses[s].count);
        }
        if (tally->other > 0)
            set_count(statuses, "other", tally->other);
        json_t *method = json_object();
        set_count(method, "calls", tally->calls);
        set_count(method, "units", tally->units);
        set(method, "status", statuses);
        set(methods, tally->method->name, method);
    }
    return methods;
}

static json_t *fetched_json(const struct record *record, const struct box_user *user, bool ids)
{
    uint64_t messages = 0;
    uint64_t total = 0;
    uint8_t most = 0;
    json_t *list = ids ? json_object() : NULL;
    for (size_t slot = 0; slot < record->fetched_capacity; slot++) {
        const uint8_t count = record->fetched[slot];
        if (count == 0)
            continue;
        messages++;
        total += count;
        most = count > most ? count : most;
        if (ids) {
            char id[BOX_ID_TEXT_BYTES];
            box_id_text(box_mailbox_at(user->mailbox, (uint32_t)slot)->id, id);
            set_count(list, id, count);
        }
    }
    json_t *object = json_object();
    set_count(object, "messages", messages);
    set_count(object, "total", total);
    set_count(object, "most", most);
    if (ids)
        set(object, "ids", list);
    return object;
}

static json_t *record_json(const struct box_referee *referee, uint32_t number,
                           const struct box_user *user, bool ids)
{
    const struct record *record = &referee->records[number];
    json_t *object = json_object();
    set_count(object, "calls", record->calls);
    set_count(object, "units", record->units);
    set_count(object, "granted_units_highest_in_60s",
              record->granted == NULL ? 0 : box_window_highest(record->granted));
    set_count(object, "offered_units_highest_in_60s",
              record->offered == NULL ? 0 : box_window_highest(record->offered));
    set_count(object, "in_flight_highest", record->in_flight_highest);
    set(object, "refused", refused_json(record->refused));
    set_count(object, "violations", record->violations);
    set_count(object, "bytes_in", record->bytes_in);
    set_count(object, "bytes_out", record->bytes_out);
    set(object, "methods", methods_json(referee, number));
    if (user != NULL)
        set(object, "fetched", fetched_json(record, user, ids));
    return object;
}

static json_t *sites_json(const struct box_referee *referee)
{
    json_t *sites = json_object();
    for (size_t i = 0; i < referee->sites_capacity; i++) {
        const struct site_record *site = &referee->sites[i];
        if (site->calls == 0)
            continue;
        json_t *object = json_object();
        set_count(object, "calls", site->calls);
        set_count(object, "granted_calls_highest_in_60s", box_window_highest(site->granted));
        set_count(object, "offered_calls_highest_in_60s", box_window_highest(site->offered));
        set(object, "refused", refused_json(site->refused));
        set(sites, site->name, object);
    }
    return sites;
}

static json_t *violations_json(const struct box_referee *referee, const struct box_user *user)
{
    json_t *list = json_array();
    for (size_t i = 0; i < referee->kinds_count; i++) {
        const struct kind *kind = &referee->kinds[i];
        json_t *first = json_array();
        for (uint32_t f = 0; f < kind->first_count; f++) {
            const struct violation *violation = &kind->first[f];
            if (user != NULL && violation->user != user->number)
                continue;
            const struct box_user *who =
                violation->user == 0 ? NULL
                                     : box_cloud_user_at(referee->cloud, violation->user - 1);
            json_t *object = json_object();
            set_count(object, "at", violation->at_ms);
            set(object, "user", who == NULL ? json_null() : json_string(who->email));
            json_t *detail = json_string(violation->detail);
            set(object, "detail", detail == NULL ? json_string("") : detail);
            (void)json_array_append_new(first, object);
        }
        json_t *object = json_object();
        set(object, "kind", json_string(kind->name));
        set_count(object, "count", kind->count);
        set(object, "first", first);
        (void)json_array_append_new(list, object);
    }
    return list;
}

static json_t *strays_json(const struct box_referee *referee)
{
    json_t *object = json_object();
    for (int status = 0; status < STRAYS_MAX; status++) {
        if (referee->strays[status] == 0)
            continue;
        char name[16];
        (void)snprintf(name, sizeof name, "%d", status);
        set_count(object, name, referee->strays[status]);
    }
    return object;
}

json_t *box_referee_stats(struct box_referee *referee, const struct box_user *user, bool fetched)
{
    json_t *users = json_object();
    for (size_t number = 1; number < referee->records_capacity; number++) {
        const struct box_user *one = box_cloud_user_at(referee->cloud, number - 1);
        if (!referee->records[number].used || one == NULL || (user != NULL && one != user))
            continue;
        TIDE_ASSERT(one->number == number);
        set(users, one->email, record_json(referee, (uint32_t)number, one, fetched));
    }
    json_t *stats = json_object();
    set_count(stats, "now", box_cloud_now(referee->cloud));
    set_count(stats, "since", referee->since_ms);
    set(stats, "quota", box_quota_json(box_cloud_quota(referee->cloud)));
    set(stats, "users", users);
    if (user == NULL && referee->records_capacity > 0 && referee->records[0].used)
        set(stats, "nobody", record_json(referee, 0, NULL, false));
    set(stats, "sites", sites_json(referee));
    set(stats, "violations", violations_json(referee, user));
    set(stats, "strays", strays_json(referee));
    set(stats, "push", box_push_stats(box_cloud_push(referee->cloud)));
    return stats;
}
