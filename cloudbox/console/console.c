/* Search Console's methods, and who may see which property. */
#include "cloudbox/console/console.h"

#include "base/check.h"
#include "base/hash.h"
#include "cloudbox/console/query.h"
#include "cloudbox/gate/faults.h"
#include "cloudbox/gate/user.h"

#include <strings.h>

enum { SITES_MAX = 4096, SITE_USERS_MAX = 1000, RANGE_DAYS_MAX = 500 };

struct site {
    char name[BOX_SITE_BYTES_MAX + 1];
    struct box_property property; /* its name points above */
    uint32_t *users;              /* numbers; the first one is the owner */
    size_t users_count;
    size_t users_capacity;
};

struct box_sites {
    uint64_t seed;
    uint64_t queries; /* answered so far: the order of ties changes with it (C2) */
    struct site **list;
    size_t count;
    size_t capacity;
};

/* ---- properties ---- */

struct box_sites *box_sites_new(uint64_t seed)
{
    struct box_sites *sites = tide_mem_new(tide_mem_heap(), sizeof *sites);
    TIDE_ASSERT(sites != NULL);
    sites->seed = seed;
    return sites;
}

void box_sites_free(struct box_sites *sites)
{
    if (sites == NULL)
        return;
    for (size_t i = 0; i < sites->count; i++) {
        struct site *site = sites->list[i];
        tide_mem_free(tide_mem_heap(), site->users, site->users_capacity * sizeof(uint32_t));
        tide_mem_free(tide_mem_heap(), site, sizeof *site);
    }
    tide_mem_free(tide_mem_heap(), sites->list, sites->capacity * sizeof(struct site *));
    tide_mem_free(tide_mem_heap(), sites, sizeof *sites);
}

static bool begins(tide_text text, const char *prefix)
{
    const size_t bytes = strlen(prefix);
    return text.bytes > bytes && memcmp(text.data, prefix, bytes) == 0;
}

/* What can be a property: "sc-domain:x.y" or an address with a scheme.  Nothing
 * that would have to be escaped in a JSON string or an address. */
static bool site_is_valid(tide_text name)
{
    if (name.bytes > BOX_SITE_BYTES_MAX)
        return false;
    for (size_t i = 0; i < name.bytes; i++) {
        const unsigned char c = (unsigned char)name.data[i];
        if (c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>')
            return false;
    }
    if (begins(name, "sc-domain:"))
        return memchr(name.data, '/', name.bytes) == NULL;
    return begins(name, "http://") || begins(name, "https://");
}

static struct site *site_find(const struct box_sites *sites, tide_text name, uint32_t *number_out)
{
    for (size_t i = 0; i < sites->count; i++)
        if (tide_text_equal(sites->list[i]->property.name, name)) {
            *number_out = (uint32_t)i + 1;
            return sites->list[i];
        }
    return NULL;
}

uint32_t box_sites_number(const struct box_sites *sites, tide_text site)
{
    uint32_t number = 0;
    (void)site_find(sites, site, &number);
    return number;
}

static bool site_has(const struct site *site, const struct box_user *user, size_t *place_out)
{
    for (size_t i = 0; i < site->users_count; i++)
        if (site->users[i] == user->number) {
            *place_out = i;
            return true;
        }
    return false;
}

static struct site *site_new(struct box_sites *sites, tide_text name, uint32_t rows_per_day)
{
    struct site *site = tide_mem_new(tide_mem_heap(), sizeof *site);
    TIDE_ASSERT(site != NULL);
    memcpy(site->name, name.data, name.bytes);
    tide_rng rng = tide_rng_seeded(tide_hash(sites->seed ^ TIDE_HASH_START, name));
    site->property = (struct box_property){
        .seed = tide_rng_next(&rng),
        .name = {site->name, name.bytes},
        .rows_per_day = rows_per_day,
    };
    TIDE_ASSERT(tide_mem_grow(tide_mem_heap(), (void **)&sites->list, &sites->capacity,
                              sites->count + 1, SITES_MAX, sizeof(struct site *)));
    sites->list[sites->count++] = site;
    return site;
}

tide_status box_sites_add(struct box_sites *sites, tide_text name, const struct box_user *user,
                          uint32_t rows_per_day, tide_error *err)
{
    const int shown = (int)(name.bytes < 200 ? name.bytes : 200);
    if (!site_is_valid(name) || (!begins(name, "sc-domain:") && name.data[name.bytes - 1] != '/'))
        return tide_error_set(err, TIDE_INVALID,
                              "not a property (sc-domain:DOMAIN or an address ending in /): %.*s",
                              shown, name.data == NULL ? "" : name.data);
    if (rows_per_day > BOX_SITE_ROWS_MAX)
        return tide_error_set(err, TIDE_INVALID, "more than %d rows a day: %u", BOX_SITE_ROWS_MAX,
                              rows_per_day);
    uint32_t number = 0;
    size_t place = 0;
    struct site *site = site_find(sites, name, &number);
    if (site != NULL && site_has(site, user, &place))
        return tide_error_set(err, TIDE_EXISTS, "%.*s has that user already", shown, name.data);
    if (site == NULL && sites->count == SITES_MAX)
        return tide_error_set(err, TIDE_FULL, "more than %d properties", SITES_MAX);
    if (site != NULL && site->users_count == SITE_USERS_MAX)
        return tide_error_set(err, TIDE_FULL, "more than %d users of %.*s", SITE_USERS_MAX, shown,
                              name.data);
    if (site == NULL)
        site = site_new(sites, name, rows_per_day);
    TIDE_ASSERT(tide_mem_grow(tide_mem_heap(), (void **)&site->users, &site->users_capacity,
                              site->users_count + 1, SITE_USERS_MAX, sizeof(uint32_t)));
    site->users[site->users_count++] = user->number;
    return TIDE_OK;
}

/* ---- load ---- */

static bool names(const json_t *value, const char *wanted)
{
    return json_is_string(value) && strcasecmp(json_string_value(value), wanted) == 0;
}

/* Whether a dimension is grouped or filtered by; the query is not checked yet. */
static bool mentions(const json_t *query, const char *dimension)
{
    size_t i = 0;
    json_t *item = NULL;
    json_array_foreach(json_object_get(query, "dimensions"), i,
                       item) if (names(item, dimension)) return true;
    const json_t *groups = json_object_get(query, "dimensionFilterGroups");
    if (groups == NULL)
        groups = json_object_get(query, "dimension_filter_groups");
    json_array_foreach(groups, i, item)
    {
        size_t k = 0;
        json_t *filter = NULL;
        json_array_foreach(
            json_object_get(item, "filters"), k,
            filter) if (names(json_object_get(filter, "dimension"), dimension)) return true;
    }
    return false;
}

static bool day_of(const json_t *query, const char *camel, const char *snake, int32_t *day_out)
{
    const json_t *value = json_object_get(query, camel);
    if (value == NULL)
        value = json_object_get(query, snake);
    return json_is_string(value) &&
           box_day_parse((tide_text){json_string_value(value), json_string_length(value)}, day_out);
}

/* Google publishes no figures, only the shape: more for longer ranges, much
 * more for page or query, most for both.  One unit is a day without either. */
uint32_t box_sites_load(const json_t *query)
{
    int32_t first = 0;
    int32_t last = 0;
    uint32_t days = 1;
    if (day_of(query, "startDate", "start_date", &first) &&
        day_of(query, "endDate", "end_date", &last) && first <= last)
        days = last - first < RANGE_DAYS_MAX ? (uint32_t)(last - first) + 1 : RANGE_DAYS_MAX;
    const bool page = mentions(query, "page");
    const bool asked = mentions(query, "query");
    return days * (page && asked ? 40 : page || asked ? 10 : 1);
}

/* ---- methods ---- */

static const char *level_of(const struct site *site, const struct box_user *user)
{
    size_t place = 0;
    if (!site_has(site, user, &place))
        return "siteUnverifiedUser";
    return place == 0 ? "siteOwner" : "siteFullUser";
}

static json_t *entry_of(const struct site *site, const struct box_user *user)
{
    json_t *entry = json_object();
    json_object_set_new(entry, "siteUrl", json_string(site->name));
    json_object_set_new(entry, "permissionLevel", json_string(level_of(site, user)));
    return entry;
}

static bool site_argument(struct box_call *call, tide_text *name_out)
{
    const tide_text name = call->args[0];
    if (!site_is_valid(name)) {
        box_fail(call, 400, "global", "invalidParameter", "INVALID_ARGUMENT",
                 "'%.*s' is not a valid Search Console site URL.",
                 (int)(name.bytes < 200 ? name.bytes : 200), name.data);
        return false;
    }
    *name_out = name;
    return true;
}

/* The property if the caller may see its data.  One that does not exist is
 * refused like one of somebody else: nobody learns which. */
static struct site *site_allowed(struct box_call *call)
{
    tide_text name;
    if (!site_argument(call, &name))
        return NULL;
    uint32_t number = 0;
    size_t place = 0;
    struct site *site = site_find(box_cloud_sites(call->cloud), name, &number);
    if (site != NULL && site_has(site, call->user, &place))
        return site;
    box_fail(call, 403, "global", "forbidden", "PERMISSION_DENIED",
             "User does not have sufficient permission for site '%.*s'. See also: "
             "https://support.google.com/webmasters/answer/2451999.",
             (int)name.bytes, name.data);
    return NULL;
}

static void sites_list(struct box_call *call)
{
    const struct box_sites *sites = box_cloud_sites(call->cloud);
    json_t *entries = json_array();
    for (size_t i = 0; i < sites->count; i++) {
        size_t place = 0;
        if (site_has(sites->list[i], call->user, &place))
            json_array_append_new(entries, entry_of(sites->list[i], call->user));
    }
    json_t *answer = json_object();
    if (json_array_size(entries) > 0)
        json_object_set(answer, "siteEntry", entries); /* empty lists are left out */
    json_decref(entries);
    box_call_reply(call, answer);
}

static void sites_get(struct box_call *call)
{
    tide_text name;
    uint32_t number = 0;
    if (!site_argument(call, &name))
        return;
    const struct site *site = site_find(box_cloud_sites(call->cloud), name, &number);
    if (site == NULL) {
        box_fail(call, 404, "global", "notFound", "NOT_FOUND",
                 "'%.*s' is not a property in Search Console.", (int)name.bytes, name.data);
        return;
    }
    box_call_reply(call, entry_of(site, call->user));
}

static void sitemaps_list(struct box_call *call)
{
    if (site_allowed(call) != NULL)
        box_call_reply(call, json_object());
}

static void sitemaps_get(struct box_call *call)
{
    if (site_allowed(call) != NULL)
        box_fail_missing(call);
}

static void searchanalytics_query(struct box_call *call)
{
    struct site *site = site_allowed(call);
    if (site == NULL)
        return;
    json_t *body = box_call_body(call);
    if (body == NULL)
        return;
    struct box_analytics *query = tide_arena_take(call->scratch, sizeof *query);
    TIDE_ASSERT(query != NULL);
    if (box_analytics_parse(call, body, query)) {
        struct box_sites *sites = box_cloud_sites(call->cloud);
        tide_rng rng = tide_rng_seeded(sites->seed + ++sites->queries);
        const uint64_t luck = tide_rng_next(&rng);
        /* On request the runs of ties do not end where pages do. */
        const bool shifted = box_faults_strikes(box_cloud_faults(call->cloud), call, "list-shift");
        const uint64_t shift = shifted ? 1 + tide_rng_below(&rng, BOX_TIE_RUN - 1) : 0;
        box_analytics_answer(call, &site->property, query, luck, (uint32_t)shift);
    }
    box_analytics_done(query);
    json_decref(body);
}

enum { READERS = BOX_SCOPE_CONSOLE | BOX_SCOPE_CONSOLE_READONLY };

static const struct box_method methods[] = {
    {"webmasters.sites.list", BOX_GET, "/webmasters/v3/sites", READERS, BOX_METER_CONSOLE_OTHER, 1,
     1, sites_list},
    {"webmasters.sites.get", BOX_GET, "/webmasters/v3/sites/{siteUrl}", READERS,
     BOX_METER_CONSOLE_OTHER, 1, 1, sites_get},
    {"webmasters.searchanalytics.query", BOX_POST,
     "/webmasters/v3/sites/{siteUrl}/searchAnalytics/query", READERS, BOX_METER_CONSOLE, 1, 1,
     searchanalytics_query},
    {"webmasters.sitemaps.list", BOX_GET, "/webmasters/v3/sites/{siteUrl}/sitemaps", READERS,
     BOX_METER_CONSOLE_OTHER, 1, 1, sitemaps_list},
    {"webmasters.sitemaps.get", BOX_GET, "/webmasters/v3/sites/{siteUrl}/sitemaps/{feedpath}",
     READERS, BOX_METER_CONSOLE_OTHER, 1, 1, sitemaps_get},
};

static const char *const batch_paths[] = {"/batch/webmasters/v3", NULL};

const struct box_service box_console = {
    .name = "console",
    .methods = methods,
    .methods_count = sizeof methods / sizeof methods[0],
    .batch_paths = batch_paths,
};
