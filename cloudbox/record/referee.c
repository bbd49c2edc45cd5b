#include "cloudbox/record/referee.h"

#include "base/check.h"
#include "base/map.h"
#include "base/mem.h"
#include "cloudbox/record/window.h"

#include <stdio.h>

enum {
    USERS_MAX = 1 << 14,
    STATUSES_MAX = 24, /* different ones of one method; the rest count as "other" */
    REFUSALS_MAX = 12, /* different limits; the last place takes the rest */
    KINDS_MAX = 32,    /* of violations */
    KIND_BYTES = 32,
    FIRST_MAX = 20, /* violations of a kind kept with their details */
    DETAIL_BYTES = 96,
    SUBJECTS_MAX = 1000,
    STRAYS_MAX = 600, /* by status */
    NAME_BYTES = 256,
    MINUTE_MS = 60000,
    DEAD_MAX = 10000, /* refused tokens that are remembered */
};

struct tally {
    const char *method;
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

/* Calls that were refused, by the limit's name. */
struct refused {
    struct {
        const char *name; /* NULL: a free place */
        uint64_t count;
    } list[REFUSALS_MAX];
};

struct record {
    bool used;
    uint64_t calls;
    uint64_t units;
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t violations;
    struct refused refused;
    uint32_t in_flight_highest;
    box_window *offered; /* units; NULL until the first */
    box_window *granted;
};

struct subject {
    const char *kind;
    char name[NAME_BYTES];
    uint64_t calls;
    struct refused refused;
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
    const char *(*email)(void *arg, uint32_t number);
    void *email_arg;
    uint64_t since_ms;
    struct record *records; /* by user number; 0: calls without sign-in */
    size_t records_capacity;
    tide_map numbers; /* method and user -> tallies[] */
    struct tally *tallies;
    size_t tallies_count;
    size_t tallies_capacity;
    tide_map subject_numbers; /* kind and number -> subjects[] */
    struct subject *subjects;
    size_t subjects_count;
    size_t subjects_capacity;
    struct kind *kinds;
    size_t kinds_count;
    size_t kinds_capacity;
    uint64_t strays[STRAYS_MAX];
    tide_map dead; /* hash of a token that was refused -> ms since dead_from_ms */
    uint64_t dead_from_ms;
};

/* ---- life ---- */

static void referee_init(struct box_referee *referee)
{
    tide_map_init(&referee->numbers, tide_mem_heap());
    tide_map_init(&referee->subject_numbers, tide_mem_heap());
    tide_map_init(&referee->dead, tide_mem_heap());
}

struct box_referee *box_referee_new(const char *(*email)(void *arg, uint32_t number), void *arg)
{
    struct box_referee *referee = tide_mem_new(tide_mem_heap(), sizeof *referee);
    TIDE_ASSERT(referee != NULL);
    referee->email = email;
    referee->email_arg = arg;
    referee_init(referee);
    return referee;
}

static void referee_empty(struct box_referee *referee)
{
    tide_mem *mem = tide_mem_heap();
    for (size_t i = 0; i < referee->records_capacity; i++) {
        box_window_free(referee->records[i].offered);
        box_window_free(referee->records[i].granted);
    }
    for (size_t i = 0; i < referee->subjects_count; i++) {
        box_window_free(referee->subjects[i].offered);
        box_window_free(referee->subjects[i].granted);
    }
    tide_mem_free(mem, referee->records, referee->records_capacity * sizeof *referee->records);
    tide_mem_free(mem, referee->tallies, referee->tallies_capacity * sizeof *referee->tallies);
    tide_mem_free(mem, referee->subjects, referee->subjects_capacity * sizeof *referee->subjects);
    tide_mem_free(mem, referee->kinds, referee->kinds_capacity * sizeof *referee->kinds);
    tide_map_done(&referee->numbers);
    tide_map_done(&referee->subject_numbers);
    tide_map_done(&referee->dead);
}

void box_referee_free(struct box_referee *referee)
{
    if (referee == NULL)
        return;
    referee_empty(referee);
    tide_mem_free(tide_mem_heap(), referee, sizeof *referee);
}

void box_referee_reset(struct box_referee *referee, uint64_t now_ms)
{
    const struct box_referee old = *referee;
    referee_empty(referee);
    *referee =
        (struct box_referee){.email = old.email, .email_arg = old.email_arg, .since_ms = now_ms};
    referee_init(referee);
}

/* ---- recording ---- */

static struct record *record_of(struct box_referee *referee, uint32_t number)
{
    TIDE_ASSERT(number < USERS_MAX);
    if (number >= referee->records_capacity)
        TIDE_ASSERT(
            TIDE_GROW(referee->records, referee->records_capacity, (size_t)number + 1, USERS_MAX));
    referee->records[number].used = true;
    return &referee->records[number];
}

static struct tally *tally_of(struct box_referee *referee, const char *method, uint32_t user)
{
    /* Addresses use 48 bits at most and user numbers 14: no two collide. */
    const uint64_t key = (uint64_t)(uintptr_t)method ^ ((uint64_t)user << 50);
    uint32_t index = 0;
    if (tide_map_get(&referee->numbers, key, &index))
        return &referee->tallies[index];

    index = (uint32_t)referee->tallies_count;
    TIDE_ASSERT(
        TIDE_GROW(referee->tallies, referee->tallies_capacity, (size_t)index + 1, UINT32_MAX));
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

static void count_refusal(struct refused *refused, const char *name)
{
    size_t i = 0;
    while (i + 1 < REFUSALS_MAX && refused->list[i].name != NULL &&
           strcmp(refused->list[i].name, name) != 0)
        i++;
    if (refused->list[i].name == NULL)
        refused->list[i].name = name;
    refused->list[i].count++;
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

/* NULL: there are too many. */
static struct subject *subject_of(struct box_referee *referee, const struct box_entry *entry)
{
    const uint64_t key = (uint64_t)(uintptr_t)entry->subjects ^ ((uint64_t)entry->subject << 48);
    uint32_t index = 0;
    if (tide_map_get(&referee->subject_numbers, key, &index))
        return &referee->subjects[index];
    if (referee->subjects_count == SUBJECTS_MAX)
        return NULL;
    index = (uint32_t)referee->subjects_count;
    TIDE_ASSERT(
        TIDE_GROW(referee->subjects, referee->subjects_capacity, (size_t)index + 1, SUBJECTS_MAX));
    TIDE_ASSERT(tide_map_put(&referee->subject_numbers, key, index));
    referee->subjects_count++;
    struct subject *subject = &referee->subjects[index];
    *subject = (struct subject){.kind = entry->subjects};
    (void)snprintf(subject->name, sizeof subject->name, "%.*s", (int)entry->subject_name.bytes,
                   entry->subject_name.data);
    return subject;
}

static void subject_call(struct box_referee *referee, const struct box_entry *entry)
{
    struct subject *subject = subject_of(referee, entry);
    if (subject == NULL)
        return;
    subject->calls++;
    if (entry->refusal != NULL)
        count_refusal(&subject->refused, entry->refusal);
    count_windows(&subject->offered, &subject->granted, entry->now_ms, 1, entry->refusal == NULL);
}

void box_referee_call(struct box_referee *referee, const struct box_entry *entry)
{
    if (referee->since_ms == 0) /* the cloud's clock starts with its first call */
        referee->since_ms = entry->now_ms;
    struct record *record = record_of(referee, entry->user);
    record->calls++;
    record->units += entry->units;
    record->bytes_in += entry->bytes_in;
    record->bytes_out += entry->bytes_out;

    struct tally *tally = tally_of(referee, entry->method, entry->user);
    tally->calls++;
    tally->units += entry->units;
    tally_status(tally, entry->status);

    if (entry->units_limited)
        count_windows(&record->offered, &record->granted, entry->now_ms, entry->units,
                      entry->refusal == NULL);
    if (entry->subject != 0)
        subject_call(referee, entry);
    if (entry->refusal != NULL) {
        count_refusal(&record->refused, entry->refusal);
        box_referee_violation(referee, entry->user, entry->refusal, tide_text_of(entry->method),
                              entry->now_ms);
    }
}

void box_referee_in_flight(struct box_referee *referee, uint32_t user, uint32_t slots)
{
    struct record *record = record_of(referee, user);
    if (slots > record->in_flight_highest)
        record->in_flight_highest = slots;
}

static struct kind *kind_of(struct box_referee *referee, const char *name)
{
    for (size_t i = 0; i < referee->kinds_count; i++) {
        if (strcmp(referee->kinds[i].name, name) == 0)
            return &referee->kinds[i];
    }
    /* Kinds are constants of the code, so there are few; the last place takes the rest. */
    if (referee->kinds_count == KINDS_MAX)
        return &referee->kinds[KINDS_MAX - 1];
    TIDE_ASSERT(
        TIDE_GROW(referee->kinds, referee->kinds_capacity, referee->kinds_count + 1, KINDS_MAX));
    struct kind *kind = &referee->kinds[referee->kinds_count++];
    (void)snprintf(kind->name, sizeof kind->name, "%s", name);
    return kind;
}

void box_referee_violation(struct box_referee *referee, uint32_t user, const char *name,
                           tide_text detail, uint64_t now_ms)
{
    record_of(referee, user)->violations++;
    struct kind *kind = kind_of(referee, name);
    kind->count++;
    if (kind->first_count == FIRST_MAX)
        return;
    struct violation *first = &kind->first[kind->first_count++];
    first->at_ms = now_ms;
    first->user = user;
    (void)snprintf(first->detail, sizeof first->detail, "%.*s", (int)detail.bytes,
                   detail.data == NULL ? "" : detail.data);
}

void box_referee_dead_token(struct box_referee *referee, uint64_t token_hash, uint64_t now_ms,
                            uint64_t grace_ms)
{
    if (referee->dead.count == 0)
        referee->dead_from_ms = now_ms;
    const uint32_t now_s = (uint32_t)((now_ms - referee->dead_from_ms) / 1000);
    uint32_t refused_s = 0;
    if (tide_map_get(&referee->dead, token_hash, &refused_s)) {
        if (now_s - refused_s >= grace_ms / 1000)
            box_referee_violation(referee, 0, "dead-token", TIDE_TEXT_NONE, now_ms);
    } else if (referee->dead.count < DEAD_MAX) {
        TIDE_ASSERT(tide_map_put(&referee->dead, token_hash, now_s));
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
    /* Only names that are not UTF-8 are refused; those come under another. */
    if (json_object_set(object, name, value) != 0)
        (void)json_object_set(object, "?", value);
    json_decref(value);
}

static void set_count(json_t *object, const char *name, uint64_t count)
{
    set(object, name, json_integer((json_int_t)count));
}

static json_t *refused_json(const struct refused *refused)
{
    json_t *object = json_object();
    for (size_t i = 0; i < REFUSALS_MAX && refused->list[i].name != NULL; i++)
        set_count(object, refused->list[i].name, refused->list[i].count);
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
        set(methods, tally->method, method);
    }
    return methods;
}

static json_t *record_json(const struct box_referee *referee, uint32_t number)
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
    set(object, "refused", refused_json(&record->refused));
    set_count(object, "violations", record->violations);
    set_count(object, "bytes_in", record->bytes_in);
    set_count(object, "bytes_out", record->bytes_out);
    set(object, "methods", methods_json(referee, number));
    return object;
}

json_t *box_referee_subjects(const struct box_referee *referee, const char *subjects)
{
    json_t *all = json_object();
    for (size_t i = 0; i < referee->subjects_count; i++) {
        const struct subject *subject = &referee->subjects[i];
        if (strcmp(subject->kind, subjects) != 0)
            continue;
        json_t *object = json_object();
        set_count(object, "calls", subject->calls);
        set_count(object, "granted_calls_highest_in_60s", box_window_highest(subject->granted));
        set_count(object, "offered_calls_highest_in_60s", box_window_highest(subject->offered));
        set(object, "refused", refused_json(&subject->refused));
        set(all, subject->name, object);
    }
    return all;
}

static json_t *violation_json(const struct box_referee *referee, const struct violation *violation)
{
    const char *who =
        violation->user == 0 ? NULL : referee->email(referee->email_arg, violation->user);
    json_t *object = json_object();
    set_count(object, "at", violation->at_ms);
    set(object, "user", who == NULL ? json_null() : json_string(who));
    json_t *detail = json_string(violation->detail);
    set(object, "detail", detail == NULL ? json_string("") : detail);
    return object;
}

static json_t *violations_json(const struct box_referee *referee, uint32_t user)
{
    json_t *list = json_array();
    for (size_t i = 0; i < referee->kinds_count; i++) {
        const struct kind *kind = &referee->kinds[i];
        json_t *first = json_array();
        for (uint32_t f = 0; f < kind->first_count; f++) {
            if (user == 0 || kind->first[f].user == user)
                (void)json_array_append_new(first, violation_json(referee, &kind->first[f]));
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

void box_referee_stats(const struct box_referee *referee, uint32_t user, json_t *stats)
{
    json_t *users = json_object();
    for (uint32_t number = 1; number < referee->records_capacity; number++) {
        const char *email = referee->email(referee->email_arg, number);
        if (referee->records[number].used && email != NULL && (user == 0 || number == user))
            set(users, email, record_json(referee, number));
    }
    set_count(stats, "since", referee->since_ms);
    set(stats, "users", users);
    if (user == 0 && referee->records_capacity > 0 && referee->records[0].used)
        set(stats, "nobody", record_json(referee, 0));
    set(stats, "violations", violations_json(referee, user));
    set(stats, "strays", strays_json(referee));
}
