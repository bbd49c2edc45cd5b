#include "cloudbox/gate/faults.h"

#include "base/check.h"
#include "base/hash.h"
#include "cloudbox/gate/user.h"

#include <stdio.h>
#include <strings.h>

enum {
    RULES_MAX = 1000,
    NAME_BYTES_MAX = 128,
    MS_MAX = 24 * 3600 * 1000,
    COUNT_MAX = 1000000000,
    RETRY_AFTER_S_MAX = 1000000000, /* more than any client may believe */
    KNOWN_MAX = 200,                /* faults of the gate and all services */
};

struct rule {
    uint32_t number;
    const struct box_fault *fault;
    char method[NAME_BYTES_MAX + 1]; /* without the '*' */
    bool prefix;
    char user[BOX_EMAIL_BYTES_MAX + 1]; /* "": any */
    char id[NAME_BYTES_MAX + 1];        /* "": any */
    double rate;
    uint64_t chance; /* of 2^32 */
    bool counted;
    uint64_t count_left;
    uint64_t after_left;
    uint32_t ms;
    uint32_t jitter_ms;
    uint32_t bytes_per_s;
    uint32_t retry_after_s; /* 0: no such header */
    uint64_t salt;
    tide_rng rng;
    uint64_t seen; /* calls it was meant for */
    uint64_t struck;
};

struct box_faults {
    uint64_t seed;
    const struct box_fault *known[KNOWN_MAX];
    size_t known_count;
    uint32_t numbers;
    struct rule *rules;
    size_t rules_count;
    size_t rules_capacity;
    /* What box_faults_before() drew for box_faults_after(): for a call, and for
     * the batch around it.  NULL: nothing. */
    struct {
        const struct box_call *call;
        size_t rule;
    } drawn[2];
};

static void know(struct box_faults *faults, const struct box_fault *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        TIDE_ASSERT(faults->known_count < KNOWN_MAX);
        faults->known[faults->known_count++] = &list[i];
    }
}

struct box_faults *box_faults_new(uint64_t seed, const struct box_service *const *services)
{
    struct box_faults *faults = tide_mem_new(tide_mem_heap(), sizeof *faults);
    TIDE_ASSERT(faults != NULL);
    faults->seed = seed;
    know(faults, box_faults_known, box_faults_known_count);
    for (size_t i = 0; services != NULL && services[i] != NULL; i++)
        know(faults, services[i]->faults, services[i]->faults_count);
    return faults;
}

void box_faults_free(struct box_faults *faults)
{
    if (faults == NULL)
        return;
    tide_mem_free(tide_mem_heap(), faults->rules, faults->rules_capacity * sizeof *faults->rules);
    tide_mem_free(tide_mem_heap(), faults, sizeof *faults);
}

/* ---- rules from JSON ---- */

/* The nearest of some words, when it is near enough to be meant. */
static const char *nearest(const char *word, const char *const *words, size_t count)
{
    const char *best = NULL;
    size_t best_distance = 4;
    for (size_t i = 0; i < count; i++) {
        const size_t distance = tide_text_distance(tide_text_of(word), tide_text_of(words[i]));
        if (distance < best_distance && distance < strlen(words[i])) {
            best = words[i];
            best_distance = distance;
        }
    }
    return best;
}

static tide_status unknown(const char *what, const char *word, const char *const *words,
                           size_t count, tide_error *err)
{
    const char *meant = nearest(word, words, count);
    if (meant == NULL)
        return tide_error_set(err, TIDE_INVALID, "unknown %s \"%.100s\"", what, word);
    return tide_error_set(err, TIDE_INVALID, "unknown %s \"%.100s\", did you mean \"%s\"?", what,
                          word, meant);
}

static tide_status read_text(const json_t *value, const char *field, size_t bytes_max, char *out,
                             tide_error *err)
{
    if (!json_is_string(value))
        return tide_error_set(err, TIDE_INVALID, "\"%s\" must be a text", field);
    const size_t bytes = json_string_length(value);
    if (bytes == 0 || bytes > bytes_max || strlen(json_string_value(value)) != bytes)
        return tide_error_set(err, TIDE_INVALID, "\"%s\" must have 1 to %zu bytes", field,
                              bytes_max);
    memcpy(out, json_string_value(value), bytes + 1);
    return TIDE_OK;
}

static tide_status read_number(const json_t *value, const char *field, uint64_t low, uint64_t high,
                               uint64_t *out, tide_error *err)
{
    if (!json_is_integer(value) || json_integer_value(value) < (json_int_t)low ||
        json_integer_value(value) > (json_int_t)high)
        return tide_error_set(err, TIDE_INVALID, "\"%s\" must be a whole number from %llu to %llu",
                              field, (unsigned long long)low, (unsigned long long)high);
    *out = (uint64_t)json_integer_value(value);
    return TIDE_OK;
}

static tide_status read_fault(const struct box_faults *faults, struct rule *rule,
                              const json_t *value, tide_error *err)
{
    if (!json_is_string(value))
        return tide_error_set(err, TIDE_INVALID, "\"fault\" must be a text");
    const char *names[KNOWN_MAX];
    for (size_t i = 0; i < faults->known_count; i++) {
        names[i] = faults->known[i]->name;
        if (strcmp(names[i], json_string_value(value)) == 0) {
            rule->fault = faults->known[i];
            return TIDE_OK;
        }
    }
    return unknown("fault", json_string_value(value), names, faults->known_count, err);
}

static tide_status read_method(struct rule *rule, const json_t *value, tide_error *err)
{
    const tide_status rc = read_text(value, "method", NAME_BYTES_MAX, rule->method, err);
    if (rc != TIDE_OK)
        return rc;
    char *star = strchr(rule->method, '*');
    rule->prefix = star != NULL;
    if (star == NULL)
        return TIDE_OK;
    if (star[1] != '\0')
        return tide_error_set(err, TIDE_INVALID, "\"method\" may have a '*' only at its end");
    *star = '\0';
    return TIDE_OK;
}

static tide_status read_rate(struct rule *rule, const json_t *value, tide_error *err)
{
    /* Written so that a NaN fails, should jansson ever give one. */
    if (!json_is_number(value) || !(json_number_value(value) >= 0) ||
        !(json_number_value(value) <= 1))
        return tide_error_set(err, TIDE_INVALID, "\"rate\" must be a number from 0 to 1");
    rule->rate = json_number_value(value);
    rule->chance = (uint64_t)(rule->rate * 4294967296.0);
    return TIDE_OK;
}

static tide_status read_u32(const json_t *value, const char *field, uint64_t low, uint64_t high,
                            uint32_t *out, tide_error *err)
{
    uint64_t number = 0;
    const tide_status rc = read_number(value, field, low, high, &number, err);
    if (rc == TIDE_OK)
        *out = (uint32_t)number;
    return rc;
}

static const char *const fields[] = {"fault",     "method",      "user",       "id",
                                     "rate",      "count",       "after",      "ms",
                                     "jitter_ms", "bytes_per_s", "retry_after"};

static tide_status read_field(const struct box_faults *faults, struct rule *rule, const char *field,
                              const json_t *value, tide_error *err)
{
    if (strcmp(field, "fault") == 0)
        return read_fault(faults, rule, value, err);
    if (strcmp(field, "method") == 0)
        return read_method(rule, value, err);
    if (strcmp(field, "user") == 0)
        return read_text(value, field, BOX_EMAIL_BYTES_MAX, rule->user, err);
    if (strcmp(field, "id") == 0)
        return read_text(value, field, NAME_BYTES_MAX, rule->id, err);
    if (strcmp(field, "rate") == 0)
        return read_rate(rule, value, err);
    if (strcmp(field, "count") == 0) {
        rule->counted = true;
        return read_number(value, field, 1, COUNT_MAX, &rule->count_left, err);
    }
    if (strcmp(field, "after") == 0)
        return read_number(value, field, 0, COUNT_MAX, &rule->after_left, err);
    if (strcmp(field, "ms") == 0)
        return read_u32(value, field, 1, MS_MAX, &rule->ms, err);
    if (strcmp(field, "jitter_ms") == 0)
        return read_u32(value, field, 1, MS_MAX, &rule->jitter_ms, err);
    if (strcmp(field, "bytes_per_s") == 0)
        return read_u32(value, field, 1, INT32_MAX, &rule->bytes_per_s, err);
    if (strcmp(field, "retry_after") == 0)
        return read_u32(value, field, 1, RETRY_AFTER_S_MAX, &rule->retry_after_s, err);
    return unknown("field", field, fields, sizeof fields / sizeof fields[0], err);
}

/* Whether the numbers given are those that the fault takes. */
static tide_status check_numbers(struct rule *rule, tide_error *err)
{
    const uint32_t takes = rule->fault->takes;
    const char *name = rule->fault->name;
    if (rule->ms != 0 && (takes & BOX_TAKES_MS) == 0)
        return tide_error_set(err, TIDE_INVALID, "\"ms\" means nothing to fault \"%s\"", name);
    if (rule->jitter_ms != 0 && (takes & BOX_TAKES_JITTER) == 0)
        return tide_error_set(err, TIDE_INVALID, "\"jitter_ms\" means nothing to fault \"%s\"",
                              name);
    if (rule->bytes_per_s != 0 && (takes & BOX_NEEDS_SPEED) == 0)
        return tide_error_set(err, TIDE_INVALID, "\"bytes_per_s\" means nothing to fault \"%s\"",
                              name);
    if (rule->retry_after_s != 0 && (takes & BOX_TAKES_RETRY) == 0)
        return tide_error_set(err, TIDE_INVALID, "\"retry_after\" means nothing to fault \"%s\"",
                              name);
    if ((takes & BOX_NEEDS_MS) != 0 && rule->ms == 0 && rule->jitter_ms == 0)
        return tide_error_set(err, TIDE_INVALID, "fault \"%s\" needs \"ms\"", name);
    if ((takes & BOX_NEEDS_SPEED) != 0 && rule->bytes_per_s == 0)
        return tide_error_set(err, TIDE_INVALID, "fault \"%s\" needs \"bytes_per_s\"", name);
    if (rule->ms == 0)
        rule->ms = rule->fault->ms;
    return TIDE_OK;
}

tide_status box_faults_add(struct box_faults *faults, const json_t *value, uint32_t *id_out,
                           tide_error *err)
{
    if (!json_is_object(value))
        return tide_error_set(err, TIDE_INVALID, "a fault rule must be a JSON object");
    if (faults->rules_count == RULES_MAX)
        return tide_error_set(err, TIDE_FULL, "there are %d fault rules already", RULES_MAX);

    struct rule rule = {.rate = 1, .chance = UINT64_C(1) << 32, .prefix = true};
    const char *field = NULL;
    json_t *content = NULL;
    json_object_foreach((json_t *)value, field, content)
    {
        const tide_status rc = read_field(faults, &rule, field, content, err);
        if (rc != TIDE_OK)
            return rc;
    }
    if (json_object_get(value, "fault") == NULL)
        return tide_error_set(err, TIDE_INVALID, "a fault rule needs \"fault\"");
    const tide_status rc = check_numbers(&rule, err);
    if (rc != TIDE_OK)
        return rc;

    rule.number = ++faults->numbers;
    rule.rng = tide_rng_seeded(faults->seed ^ ((uint64_t)rule.number << 40));
    rule.salt = tide_rng_next(&rule.rng);
    rule.rng = tide_rng_seeded(rule.salt);
    TIDE_ASSERT(
        TIDE_GROW(faults->rules, faults->rules_capacity, faults->rules_count + 1, RULES_MAX));
    faults->rules[faults->rules_count++] = rule;
    *id_out = rule.number;
    return TIDE_OK;
}

bool box_faults_remove(struct box_faults *faults, uint32_t id)
{
    size_t kept = 0;
    for (size_t i = 0; i < faults->rules_count; i++) {
        if (id != 0 && faults->rules[i].number != id)
            faults->rules[kept++] = faults->rules[i];
    }
    const bool found = id == 0 || kept < faults->rules_count;
    faults->rules_count = kept;
    memset(faults->drawn, 0, sizeof faults->drawn);
    return found;
}

bool box_faults_has(const struct box_faults *faults, uint32_t id)
{
    for (size_t i = 0; i < faults->rules_count; i++)
        if (faults->rules[i].number == id)
            return true;
    return false;
}

static json_t *rule_json(const struct rule *rule)
{
    char method[NAME_BYTES_MAX + 2];
    (void)snprintf(method, sizeof method, "%s%s", rule->method, rule->prefix ? "*" : "");
    json_t *object = json_pack("{s:I, s:s, s:s, s:f, s:I, s:I}", "rule", (json_int_t)rule->number,
                               "fault", rule->fault->name, "method", method, "rate", rule->rate,
                               "seen", (json_int_t)rule->seen, "struck", (json_int_t)rule->struck);
    TIDE_ASSERT(object != NULL);
    if (rule->user[0] != '\0')
        json_object_set_new(object, "user", json_string(rule->user));
    if (rule->id[0] != '\0')
        json_object_set_new(object, "id", json_string(rule->id));
    if (rule->counted)
        json_object_set_new(object, "count_left", json_integer((json_int_t)rule->count_left));
    if (rule->after_left > 0)
        json_object_set_new(object, "after_left", json_integer((json_int_t)rule->after_left));
    if (rule->ms > 0)
        json_object_set_new(object, "ms", json_integer(rule->ms));
    if (rule->jitter_ms > 0)
        json_object_set_new(object, "jitter_ms", json_integer(rule->jitter_ms));
    if (rule->bytes_per_s > 0)
        json_object_set_new(object, "bytes_per_s", json_integer(rule->bytes_per_s));
    if (rule->retry_after_s > 0)
        json_object_set_new(object, "retry_after", json_integer(rule->retry_after_s));
    return object;
}

json_t *box_faults_list(const struct box_faults *faults)
{
    json_t *list = json_array();
    for (size_t i = 0; i < faults->rules_count; i++)
        json_array_append_new(list, rule_json(&faults->rules[i]));
    return list;
}

/* ---- drawing ---- */

static bool is_batch(const struct box_call *call)
{
    return strcmp(call->method->name, "batch") == 0;
}

static bool method_fits(const struct rule *rule, const struct box_call *call)
{
    const char *name = call->method->name;
    const bool of_batch = (rule->fault->means & BOX_OF_BATCH) != 0;
    if (is_batch(call)) {
        if (!of_batch && (rule->prefix || strcmp(rule->method, name) != 0))
            return false;
    } else if (of_batch) {
        return false;
    }
    return rule->prefix ? strncmp(name, rule->method, strlen(rule->method)) == 0
                        : strcmp(name, rule->method) == 0;
}

static bool item_fits(const struct rule *rule, const struct box_call *call)
{
    const bool by_item = (rule->fault->means & BOX_BY_ITEM) != 0;
    const bool hides = (rule->fault->means & BOX_HIDES_ITEM) != 0;
    if (by_item && call->args_count == 0)
        return hides; /* a listing: its entries are judged one by one */
    return rule->id[0] == '\0' ||
           (call->args_count > 0 && tide_text_equal(call->args[0], tide_text_of(rule->id)));
}

static bool rule_means(const struct rule *rule, const struct box_call *call)
{
    /* A rule on the control page could prevent its own removal. */
    if (call->service != NULL && call->service->exempt)
        return false;
    if (!method_fits(rule, call))
        return false;
    if (rule->user[0] != '\0' &&
        (call->user == NULL || strcasecmp(rule->user, call->user->email) != 0))
        return false;
    return (rule->fault->fits == NULL || rule->fault->fits(call)) && item_fits(rule, call);
}

/* The same message always gets the same number. */
static uint64_t id_chance(const struct rule *rule, tide_text id)
{
    tide_rng rng = tide_rng_seeded(tide_hash(rule->salt, id));
    return tide_rng_next(&rng) >> 32;
}

static bool strikes_item(const struct box_strike *strike, tide_text id)
{
    const struct rule *rule = strike->rule;
    return (rule->id[0] == '\0' || tide_text_equal(id, tide_text_of(rule->id))) &&
           id_chance(rule, id) < rule->chance;
}

/* A number below the rule's chance strikes. */
static uint64_t draw(struct rule *rule, const struct box_call *call)
{
    if ((rule->fault->means & BOX_BY_ITEM) == 0)
        return tide_rng_next(&rule->rng) >> 32;
    return call->args_count == 0 ? 0 : id_chance(rule, call->args[0]);
}

static bool rule_strikes(struct rule *rule, const struct box_call *call)
{
    if (rule->counted && rule->count_left == 0)
        return false;
    if (!rule_means(rule, call))
        return false;
    rule->seen++;
    if (rule->after_left > 0) {
        rule->after_left--;
        return false;
    }
    if (draw(rule, call) >= rule->chance)
        return false;
    rule->struck++;
    if (rule->counted)
        rule->count_left--;
    return true;
}

static void add(struct rule *rule, struct box_plan *plan)
{
    if ((rule->fault->means & BOX_HOLDS) != 0) {
        plan->held_by = rule->number;
        return;
    }
    if (rule->bytes_per_s == 0) {
        plan->delay_ms += rule->ms + (uint32_t)tide_rng_below(&rule->rng, rule->jitter_ms);
        return;
    }
    if (plan->bytes_per_s == 0 || rule->bytes_per_s < plan->bytes_per_s)
        plan->bytes_per_s = rule->bytes_per_s;
}

static void tell_retry(const struct rule *rule, struct box_answer *answer)
{
    if (rule->retry_after_s == 0)
        return;
    char seconds[16];
    (void)snprintf(seconds, sizeof seconds, "%u", rule->retry_after_s);
    box_answer_header(answer, "Retry-After", seconds);
}

static void act(struct rule *rule, struct box_call *call)
{
    const struct box_strike strike = {.fault = rule->fault,
                                      .ms = rule->ms,
                                      .rng = &rule->rng,
                                      .strikes_item = strikes_item,
                                      .rule = rule};
    if (rule->fault->act != NULL)
        rule->fault->act(call, &strike);
    else
        box_fail_with(call, &rule->fault->problem);
}

/* Whether the rule's answer takes the place of the handler's. */
static bool answers(struct rule *rule, struct box_call *call)
{
    const bool hides = (rule->fault->means & BOX_HIDES_ITEM) != 0 && call->args_count > 0;
    if (hides)
        box_fail_missing(call);
    else if (rule->fault->when == BOX_ANSWERS)
        act(rule, call);
    else
        return false;
    tell_retry(rule, call->answer);
    return true;
}

bool box_faults_before(struct box_faults *faults, struct box_call *call)
{
    if (faults->rules_count == 0)
        return false;
    const size_t layer = is_batch(call) ? 1 : 0;
    faults->drawn[layer].call = NULL;
    bool won = false;
    bool ended = false;
    for (size_t i = 0; i < faults->rules_count; i++) {
        struct rule *rule = &faults->rules[i];
        const bool adds = rule->fault->when == BOX_ADDS;
        if (rule->fault->when == BOX_ASKED || (won && !adds) || !rule_strikes(rule, call))
            continue;
        if (adds) {
            add(rule, &call->answer->plan);
            continue;
        }
        won = true;
        ended = answers(rule, call);
        if (!ended) {
            faults->drawn[layer].call = call;
            faults->drawn[layer].rule = i;
        }
    }
    return ended;
}

void box_faults_after(struct box_faults *faults, struct box_call *call)
{
    const size_t layer = is_batch(call) ? 1 : 0;
    if (faults->drawn[layer].call != call)
        return;
    faults->drawn[layer].call = NULL;
    act(&faults->rules[faults->drawn[layer].rule], call);
}

bool box_faults_strikes(struct box_faults *faults, const struct box_call *call, const char *fault)
{
    for (size_t i = 0; i < faults->rules_count; i++) {
        struct rule *rule = &faults->rules[i];
        if (strcmp(rule->fault->name, fault) == 0 && rule_strikes(rule, call))
            return true;
    }
    return false;
}
