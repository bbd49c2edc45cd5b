#include "sim_provider.h"
#include "sim_inside.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WINDOW_MS = 60000,
    HOUR_MS = 3600 * 1000,
};

struct charge {
    uint64_t at_ms;
    uint32_t units;
};

struct note {
    char *tag;
    uint64_t count;
};

struct tide_sim_provider {
    struct tide_sim_provider_options options;
    struct tide_sim_item *items;
    size_t items_count;
    struct charge *charges; /* of the last window, a queue in an array */
    size_t charges_first;
    size_t charges_count;
    size_t charges_capacity;
    uint64_t window_units;
    uint64_t *ends_ms; /* when the requests now being answered will be */
    size_t ends_count;
    size_t ends_capacity;
    struct note *notes;
    size_t notes_count;
    uint64_t last_ms;
    bool faults;
    struct tide_sim_truth truth;
};

/* One request being answered. */
struct asked {
    tide_sim_provider *provider;
    const struct tide_request *request;
    const char *path; /* after the host */
    size_t path_bytes;
    const char *query; /* "" when there is none */
    uint64_t now_ms;
    tide_rng *rng;
    struct tide_sim_answer *answer;
};

/* ---- items --------------------------------------------------------------- */

static tide_sim_item_kind kind_draw(const struct tide_sim_provider_options *options, tide_rng *rng)
{
    uint64_t roll = tide_rng_below(rng, 1000);
    if (roll < options->poison_500_permille)
        return TIDE_SIM_ITEM_POISON_500;
    roll -= options->poison_500_permille;
    if (roll < options->poison_400_permille)
        return TIDE_SIM_ITEM_POISON_400;
    roll -= options->poison_400_permille;
    if (roll < options->stalls_permille)
        return TIDE_SIM_ITEM_STALLS;
    roll -= options->stalls_permille;
    return roll < options->resets_permille ? TIDE_SIM_ITEM_RESETS : TIDE_SIM_ITEM_PLAIN;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Times in order, so that an item's index says its place in every listing. */
static void times_draw(uint64_t *times, size_t count, uint64_t from_ms, uint64_t span_ms,
                       tide_rng *rng)
{
    for (size_t i = 0; i < count; i++)
        times[i] = from_ms + tide_rng_below(rng, span_ms);
    qsort(times, count, sizeof *times, compare_u64);
}

static void items_make(tide_sim_provider *provider)
{
    const struct tide_sim_provider_options *options = &provider->options;
    tide_rng rng = tide_rng_seeded(options->seed ^ 0x6974656d73u);
    size_t count = (size_t)options->items_count + options->new_count;
    provider->items_count = count;
    if (count == 0)
        return;
    provider->items = sim_alloc(count * sizeof *provider->items);
    uint64_t *times = sim_alloc(count * sizeof *times);
    times_draw(times, options->items_count, options->start_unix_ms - options->span_ms,
               options->span_ms, &rng);
    times_draw(times + options->items_count, options->new_count, options->start_unix_ms,
               options->grow_ms, &rng);
    for (size_t i = 0; i < count; i++) {
        struct tide_sim_item *item = &provider->items[i];
        (void)snprintf(item->id, sizeof item->id, "i%" PRIu32 "-%08" PRIx32, (uint32_t)i,
                       (uint32_t)tide_rng_next(&rng));
        item->time_ms = times[i];
        item->appears_ms = i < options->items_count ? 0 : times[i];
        item->vanishes_ms = UINT64_MAX;
        if (tide_rng_chance(&rng, options->vanish_permille, 1000)) {
            uint64_t from_ms = item->appears_ms == 0 ? options->start_unix_ms : item->appears_ms;
            item->vanishes_ms = from_ms + 1 + tide_rng_below(&rng, options->grow_ms);
        }
        item->bytes = (uint32_t)tide_rng_below(&rng, options->item_bytes_max + 1u);
        item->kind = kind_draw(options, &rng);
    }
    free(times);
}

bool tide_sim_item_there(const struct tide_sim_item *item, uint64_t now_unix_ms)
{
    return item->appears_ms <= now_unix_ms && now_unix_ms < item->vanishes_ms;
}

static void content_make(const tide_sim_provider *provider, const struct tide_sim_item *item,
                         tide_buf *out)
{
    uint64_t index = (uint64_t)(item - provider->items);
    tide_rng rng = tide_rng_seeded(provider->options.seed * 0x9e3779b97f4a7c15u + index);
    char *at = tide_buf_reserve(out, item->bytes);
    TIDE_ASSERT(at != NULL);
    for (uint32_t i = 0; i < item->bytes; i++)
        at[i] = "abcdefghijklmnopqrstuvwxyz \"\\\n{}"[tide_rng_next(&rng) >> 59];
    at[item->bytes] = '\0';
    out->bytes += item->bytes;
}

/* "i17-9f0e...": the number is the index. */
static struct tide_sim_item *item_find(const tide_sim_provider *provider, tide_text id)
{
    size_t digits = 0;
    while (digits + 1 < id.bytes && id.data[digits + 1] != '-')
        digits++;
    uint64_t index = 0;
    if (id.bytes == 0 || !tide_text_to_u64((tide_text){id.data + 1, digits}, &index))
        return NULL;
    if (index >= provider->items_count)
        return NULL;
    struct tide_sim_item *item = &provider->items[index];
    return tide_text_equal(tide_text_of(item->id), id) ? item : NULL;
}

const struct tide_sim_item *tide_sim_provider_item(const tide_sim_provider *provider, tide_text id)
{
    return item_find(provider, id);
}

bool tide_sim_provider_content_is(const tide_sim_provider *provider, tide_text id, tide_text data)
{
    const struct tide_sim_item *item = item_find(provider, id);
    if (item == NULL)
        return false;
    tide_buf content;
    tide_buf_init(&content, tide_mem_heap(), 256u << 20);
    content_make(provider, item, &content);
    bool same = tide_text_equal(tide_buf_text(&content), data);
    tide_buf_done(&content);
    return same;
}

/* ---- answers ------------------------------------------------------------- */

/* Takes `object` over. */
static void answer_json(struct asked *asked, int http, json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    TIDE_ASSERT(text != NULL);
    asked->answer->http = http;
    tide_buf_clear(&asked->answer->body);
    (void)tide_buf_add_text(&asked->answer->body, text);
    tide_sim_answer_header(asked->answer, "Content-Type", "application/json; charset=UTF-8");
    free(text);
    json_decref(object);
}

static void answer_error(struct asked *asked, int http, const char *reason, const char *message)
{
    answer_json(asked, http,
                json_pack("{s:{s:i,s:s,s:[{s:s,s:s}]}}", "error", "code", http, "message", message,
                          "errors", "reason", reason, "message", message));
}

/* Providers refuse in different words; a client must understand all of them. */
static void answer_refusal(struct asked *asked, uint64_t wait_ms)
{
    struct tide_sim_truth *truth = &asked->provider->truth;
    uint64_t form = tide_rng_below(asked->rng, TIDE_SIM_REFUSALS);
    uint64_t wait_s = (wait_ms + 999) / 1000;
    time_t until_s = (time_t)((asked->now_ms + wait_ms + 999) / 1000);
    struct tm until;
    char text[200];
    truth->refusals[form]++;
    (void)gmtime_r(&until_s, &until);
    switch (form) {
    case 0:
        (void)snprintf(text, sizeof text, "%" PRIu64, wait_s);
        tide_sim_answer_header(asked->answer, "Retry-After", text);
        answer_error(asked, 429, "rateLimitExceeded", "Too many requests.");
        break;
    case 1:
        (void)strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &until);
        tide_sim_answer_header(asked->answer, "retry-after", text);
        answer_error(asked, 429, "rateLimitExceeded", "Too many requests.");
        break;
    case 2:
        answer_error(asked, 429, "rateLimitExceeded", "Resource has been exhausted.");
        break;
    case 3:
        (void)strftime(text, sizeof text,
                       "User-rate limit exceeded.  Retry after %Y-%m-%dT%H:%M:%S.000Z", &until);
        answer_error(asked, 403, "userRateLimitExceeded", text);
        break;
    case 4:
        answer_error(asked, 403, "rateLimitExceeded", "Rate limit exceeded.");
        break;
    default:
        (void)strftime(text, sizeof text,
                       "User-rate limit exceeded.  Retry after %Y-%m-%dT%H:%M:%S.000Z", &until);
        answer_error(asked, 429, "rateLimitExceeded", text);
        break;
    }
}

static bool query_get(const struct asked *asked, const char *key, tide_text *value_out)
{
    size_t key_bytes = strlen(key);
    const char *at = asked->query;
    while (*at != '\0') {
        size_t bytes = strcspn(at, "&");
        if (bytes > key_bytes && memcmp(at, key, key_bytes) == 0 && at[key_bytes] == '=') {
            *value_out = (tide_text){at + key_bytes + 1, bytes - key_bytes - 1};
            return true;
        }
        at += bytes + (at[bytes] == '&');
    }
    return false;
}

static bool query_u64(const struct asked *asked, const char *key, uint64_t absent,
                      uint64_t *number_out)
{
    tide_text value;
    *number_out = absent;
    return !query_get(asked, key, &value) || tide_text_to_u64(value, number_out);
}

/* ---- quota --------------------------------------------------------------- */

static void window_forget(tide_sim_provider *provider, uint64_t now_ms)
{
    while (provider->charges_count > 0) {
        const struct charge *first = &provider->charges[provider->charges_first];
        if (first->at_ms + WINDOW_MS > now_ms)
            break;
        provider->window_units -= first->units;
        provider->charges_first++;
        provider->charges_count--;
    }
    if (provider->charges_count == 0)
        provider->charges_first = 0;
}

static void window_charge(tide_sim_provider *provider, uint64_t now_ms, uint32_t units)
{
    size_t end = provider->charges_first + provider->charges_count;
    if (end == provider->charges_capacity && provider->charges_first > end / 2) {
        memmove(provider->charges, provider->charges + provider->charges_first,
                provider->charges_count * sizeof *provider->charges);
        provider->charges_first = 0;
        end = provider->charges_count;
    }
    if (end == provider->charges_capacity) {
        size_t old_bytes = provider->charges_capacity * sizeof *provider->charges;
        size_t new_bytes = old_bytes == 0 ? 64 * sizeof *provider->charges : 2 * old_bytes;
        provider->charges = sim_resize(provider->charges, old_bytes, new_bytes);
        provider->charges_capacity = new_bytes / sizeof *provider->charges;
    }
    provider->charges[end] = (struct charge){now_ms, units};
    provider->charges_count++;
    provider->window_units += units;
    provider->truth.units += units;
    if (provider->window_units > provider->truth.units_highest)
        provider->truth.units_highest = provider->window_units;
}

/* When so many units will be free again. */
static uint64_t window_wait_ms(const tide_sim_provider *provider, uint64_t now_ms, uint32_t units)
{
    uint64_t free_units = provider->options.units_per_minute > provider->window_units
                              ? provider->options.units_per_minute - provider->window_units
                              : 0;
    for (size_t i = 0; i < provider->charges_count; i++) {
        const struct charge *charge = &provider->charges[provider->charges_first + i];
        free_units += charge->units;
        if (free_units >= units)
            return charge->at_ms + WINDOW_MS - now_ms;
    }
    return WINDOW_MS;
}

/* true: there is quota and it is charged.  false: refused and answered. */
static bool quota_pass(struct asked *asked, uint32_t units)
{
    tide_sim_provider *provider = asked->provider;
    const struct tide_sim_provider_options *options = &provider->options;
    struct tide_sim_truth *truth = &provider->truth;

    window_forget(provider, asked->now_ms);
    if (options->units_per_minute > 0 &&
        provider->window_units + units > options->units_per_minute) {
        uint64_t wait_ms = window_wait_ms(provider, asked->now_ms, units);
        truth->over_quota++;
        if (truth->first_over_quota_ms == 0)
            truth->first_over_quota_ms = asked->now_ms;
        if (options->refused_are_charged)
            window_charge(provider, asked->now_ms, units);
        answer_refusal(asked, wait_ms);
        return false;
    }
    window_charge(provider, asked->now_ms, units);
    if (options->concurrency_max > 0 && provider->ends_count >= options->concurrency_max) {
        truth->over_concurrency++;
        answer_error(asked, 429, "rateLimitExceeded", "Too many concurrent requests for user.");
        return false;
    }
    if (provider->faults && tide_rng_chance(asked->rng, options->refuse_permille, 1000)) {
        truth->refused_by_chance++;
        answer_refusal(asked, 1000 + tide_rng_below(asked->rng, 30000));
        return false;
    }
    return true;
}

static void concurrency_count(struct asked *asked)
{
    tide_sim_provider *provider = asked->provider;
    size_t kept = 0;
    for (size_t i = 0; i < provider->ends_count; i++)
        if (provider->ends_ms[i] > asked->now_ms)
            provider->ends_ms[kept++] = provider->ends_ms[i];
    provider->ends_count = kept;
}

static void concurrency_add(struct asked *asked)
{
    tide_sim_provider *provider = asked->provider;
    if (provider->ends_count == provider->ends_capacity) {
        size_t old_bytes = provider->ends_capacity * sizeof *provider->ends_ms;
        size_t new_bytes = old_bytes == 0 ? 16 * sizeof *provider->ends_ms : 2 * old_bytes;
        provider->ends_ms = sim_resize(provider->ends_ms, old_bytes, new_bytes);
        provider->ends_capacity = new_bytes / sizeof *provider->ends_ms;
    }
    provider->ends_ms[provider->ends_count++] = asked->now_ms + asked->answer->think_us / 1000;
    if (provider->ends_count > provider->truth.in_flight_highest)
        provider->truth.in_flight_highest = (uint32_t)provider->ends_count;
}

/* ---- requests ------------------------------------------------------------ */

static size_t first_from(const tide_sim_provider *provider, uint64_t time_ms)
{
    size_t low = 0;
    size_t high = provider->items_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (provider->items[middle].time_ms < time_ms)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void list(struct asked *asked)
{
    tide_sim_provider *provider = asked->provider;
    uint64_t start_ms = 0;
    uint64_t end_ms = 0;
    uint64_t page_size = 0;
    tide_text token = TIDE_TEXT_NONE;
    uint64_t index = 0;
    provider->truth.lists++;
    bool good = query_u64(asked, "start", 0, &start_ms);
    good = query_u64(asked, "end", UINT64_MAX, &end_ms) && good;
    good = query_u64(asked, "pageSize", 100, &page_size) && good && page_size > 0;
    if (query_get(asked, "pageToken", &token))
        good = good && token.bytes > 1 && token.data[0] == 't' &&
               tide_text_to_u64((tide_text){token.data + 1, token.bytes - 1}, &index);
    if (!good) {
        answer_error(asked, 400, "invalidArgument", "Invalid query.");
        return;
    }
    if (page_size > provider->options.page_max)
        page_size = provider->options.page_max;

    size_t at = first_from(provider, start_ms);
    if (index > at)
        at = (size_t)index;
    json_t *items = json_array();
    for (; at < provider->items_count && provider->items[at].time_ms < end_ms; at++) {
        const struct tide_sim_item *item = &provider->items[at];
        if (!tide_sim_item_there(item, asked->now_ms))
            continue;
        if (json_array_size(items) == page_size)
            break;
        json_array_append_new(
            items, json_pack("{s:s,s:I}", "id", item->id, "time", (json_int_t)item->time_ms));
    }
    json_t *page = json_object();
    bool more = at < provider->items_count && provider->items[at].time_ms < end_ms;
    if (json_array_size(items) > 0)
        json_object_set(page, "items", items);
    json_decref(items);
    if (more && token.bytes > 0 && provider->faults &&
        tide_rng_chance(asked->rng, provider->options.loop_permille, 1000)) {
        provider->truth.loops++;
        json_object_set_new(page, "nextPageToken", json_stringn(token.data, token.bytes));
    } else if (more) {
        json_object_set_new(page, "nextPageToken", json_sprintf("t%zu", at));
    }
    answer_json(asked, 200, page);
}

static void get(struct asked *asked, tide_text id)
{
    tide_sim_provider *provider = asked->provider;
    struct tide_sim_item *item = item_find(provider, id);
    char text[100];
    provider->truth.gets++;
    if (item != NULL)
        item->asked++;
    if (item == NULL || !tide_sim_item_there(item, asked->now_ms)) {
        provider->truth.gone++;
        answer_error(asked, 404, "notFound", "Requested entity was not found.");
        return;
    }
    switch (item->kind) {
    case TIDE_SIM_ITEM_POISON_500:
        answer_error(asked, 500, "backendError", "Internal error.");
        return;
    case TIDE_SIM_ITEM_POISON_400:
        (void)snprintf(text, sizeof text, "Item %s cannot be read.", item->id);
        answer_error(asked, 400, "failedPrecondition", text);
        return;
    case TIDE_SIM_ITEM_STALLS:
        asked->answer->stall = true;
        break;
    case TIDE_SIM_ITEM_RESETS:
        asked->answer->reset = true;
        break;
    case TIDE_SIM_ITEM_PLAIN:
        item->given++;
        provider->truth.given++;
        break;
    }
    tide_buf content;
    tide_buf_init(&content, tide_mem_heap(), 256u << 20);
    content_make(provider, item, &content);
    answer_json(asked, 200,
                json_pack("{s:s,s:I,s:s%}", "id", item->id, "time", (json_int_t)item->time_ms,
                          "data", tide_buf_cstr(&content), content.bytes));
    tide_buf_done(&content);
}

static void changes(struct asked *asked)
{
    const tide_sim_provider *provider = asked->provider;
    uint64_t since_ms = 0;
    if (!query_u64(asked, "since", 0, &since_ms)) {
        answer_error(asked, 400, "invalidArgument", "Invalid query.");
        return;
    }
    json_t *appeared = json_array();
    json_t *vanished = json_array();
    for (size_t i = 0; i < provider->items_count; i++) {
        const struct tide_sim_item *item = &provider->items[i];
        if (item->appears_ms > since_ms && item->appears_ms <= asked->now_ms)
            json_array_append_new(appeared, json_string(item->id));
        if (item->vanishes_ms > since_ms && item->vanishes_ms <= asked->now_ms)
            json_array_append_new(vanished, json_string(item->id));
    }
    answer_json(asked, 200,
                json_pack("{s:I,s:o,s:o}", "now", (json_int_t)asked->now_ms, "appeared", appeared,
                          "vanished", vanished));
}

static struct note *note_find(tide_sim_provider *provider, tide_text tag)
{
    for (size_t i = 0; i < provider->notes_count; i++)
        if (tide_text_equal(tide_text_of(provider->notes[i].tag), tag))
            return &provider->notes[i];
    return NULL;
}

static void note_make(struct asked *asked)
{
    tide_sim_provider *provider = asked->provider;
    tide_text body = asked->request->body;
    json_t *object = json_loadb(body.data == NULL ? "" : body.data, body.bytes, 0, NULL);
    const char *tag = json_string_value(json_object_get(object, "tag"));
    if (tag == NULL) {
        json_decref(object);
        answer_error(asked, 400, "invalidArgument", "A note needs a tag.");
        return;
    }
    struct note *note = note_find(provider, tide_text_of(tag));
    if (note == NULL) {
        provider->notes =
            sim_resize(provider->notes, provider->notes_count * sizeof *provider->notes,
                       (provider->notes_count + 1) * sizeof *provider->notes);
        note = &provider->notes[provider->notes_count++];
        note->tag = sim_copy_text(tag);
        note->count = 0;
    }
    note->count++;
    provider->truth.notes++;
    provider->truth.notes_doubled += note->count > 1;
    json_decref(object);
    answer_json(asked, 200, json_pack("{s:I}", "count", (json_int_t)note->count));
}

static void note_count(struct asked *asked)
{
    tide_text tag = TIDE_TEXT_NONE;
    (void)query_get(asked, "tag", &tag);
    const struct note *note = note_find(asked->provider, tag);
    answer_json(asked, 200, json_pack("{s:I}", "count", (json_int_t)(note ? note->count : 0)));
}

static bool path_is(const struct asked *asked, const char *method, const char *path)
{
    return strcmp(asked->request->method, method) == 0 && strlen(path) == asked->path_bytes &&
           memcmp(asked->path, path, asked->path_bytes) == 0;
}

static void answer_request(struct asked *asked)
{
    const struct tide_sim_provider_options *options = &asked->provider->options;
    static const char one_item[] = "/items/";
    size_t prefix_bytes = sizeof one_item - 1;
    bool is_get = strcmp(asked->request->method, "GET") == 0;
    bool is_item = is_get && asked->path_bytes > prefix_bytes &&
                   memcmp(asked->path, one_item, prefix_bytes) == 0;

    if (!quota_pass(asked, is_item ? options->units_get : options->units_list))
        return;
    if (asked->provider->faults && tide_rng_chance(asked->rng, options->error_permille, 1000)) {
        static const int codes[] = {500, 502, 503};
        asked->provider->truth.errors++;
        answer_error(asked, codes[tide_rng_below(asked->rng, 3)], "backendError", "Try again.");
        return;
    }
    if (is_item)
        get(asked, (tide_text){asked->path + prefix_bytes, asked->path_bytes - prefix_bytes});
    else if (path_is(asked, "GET", "/items"))
        list(asked);
    else if (path_is(asked, "GET", "/changes"))
        changes(asked);
    else if (path_is(asked, "POST", "/notes"))
        note_make(asked);
    else if (path_is(asked, "GET", "/notes"))
        note_count(asked);
    else
        answer_error(asked, 404, "notFound", "No such method.");
}

static void url_split(struct asked *asked)
{
    const char *host = strstr(asked->request->url, "://");
    const char *path = strchr(host == NULL ? asked->request->url : host + 3, '/');
    asked->path = path == NULL ? "" : path;
    asked->path_bytes = strcspn(asked->path, "?");
    asked->query = asked->path[asked->path_bytes] == '?' ? asked->path + asked->path_bytes + 1 : "";
}

void tide_sim_provider_call(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                            tide_rng *rng, struct tide_sim_answer *answer)
{
    tide_sim_provider *provider = arg;
    TIDE_ASSERT(now_unix_ms >= provider->last_ms); /* SPRV1 */
    provider->last_ms = now_unix_ms;
    struct asked asked = {.provider = provider,
                          .request = request,
                          .now_ms = now_unix_ms,
                          .rng = rng,
                          .answer = answer};
    url_split(&asked);
    provider->truth.requests++;
    answer->think_us = tide_rng_below(rng, provider->options.think_us_max + 1u);
    concurrency_count(&asked);
    answer_request(&asked);
    if (answer->http == 429 || answer->http == 403)
        answer->think_us /= 10; /* saying no is quick */
    else
        concurrency_add(&asked);
    if (answer->http == 200 && provider->faults &&
        tide_rng_chance(rng, provider->options.garbage_permille, 1000)) {
        provider->truth.garbage++;
        answer->body.bytes = (size_t)tide_rng_below(rng, answer->body.bytes);
    }
}

/* ---- create and free ---------------------------------------------------- */

tide_sim_provider *tide_sim_provider_new(const struct tide_sim_provider_options *options)
{
    tide_sim_provider *provider = sim_alloc(sizeof *provider);
    struct tide_sim_provider_options *mine = &provider->options;
    *mine = *options;
    mine->start_unix_ms = mine->start_unix_ms == 0 ? 1772323200000 : mine->start_unix_ms;
    mine->span_ms = mine->span_ms == 0 ? 30ull * 24 * HOUR_MS : mine->span_ms;
    mine->grow_ms = mine->grow_ms == 0 ? HOUR_MS : mine->grow_ms;
    mine->item_bytes_max = mine->item_bytes_max == 0 ? 2000 : mine->item_bytes_max;
    mine->page_max = mine->page_max == 0 ? 500 : mine->page_max;
    mine->units_list = mine->units_list == 0 ? 5 : mine->units_list;
    mine->units_get = mine->units_get == 0 ? 20 : mine->units_get;
    mine->think_us_max = mine->think_us_max == 0 ? 100000 : mine->think_us_max;
    provider->faults = true;
    items_make(provider);
    return provider;
}

void tide_sim_provider_free(tide_sim_provider *provider)
{
    if (provider == NULL)
        return;
    for (size_t i = 0; i < provider->notes_count; i++)
        free(provider->notes[i].tag);
    free(provider->notes);
    free(provider->items);
    free(provider->charges);
    free(provider->ends_ms);
    free(provider);
}

void tide_sim_provider_faults(tide_sim_provider *provider, bool on)
{
    provider->faults = on;
}

void tide_sim_provider_quota(tide_sim_provider *provider, uint32_t units_per_minute)
{
    provider->options.units_per_minute = units_per_minute;
}

struct tide_sim_truth tide_sim_provider_truth(const tide_sim_provider *provider)
{
    return provider->truth;
}

const struct tide_sim_item *tide_sim_provider_items(const tide_sim_provider *provider,
                                                    size_t *count_out)
{
    *count_out = provider->items_count;
    return provider->items;
}
