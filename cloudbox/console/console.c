/* Search Console's methods, and who may see which property. */
#include "cloudbox/console/console.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/json.h"
#include "cloudbox/console/query.h"
#include "cloudbox/gate/faults.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/google/scopes.h"
#include "cloudbox/google/style.h"

enum { SITES_MAX = 4096, SITE_USERS_MAX = 1000 };

struct site {
    char name[BOX_SITE_BYTES_MAX + 1];
    struct box_property property; /* its name points above */
    uint32_t *users;              /* numbers; the first one is the owner */
    size_t users_count;
    size_t users_capacity;
};

struct box_sites {
    uint64_t seed;
    uint64_t queries; /* answered so far: the order of ties changes with it (BCON2) */
    struct site **list;
    size_t count;
    size_t capacity;
};

/* ---- properties ---- */

static void *open_sites(box_cloud *cloud)
{
    struct box_sites *sites = tide_mem_new(tide_mem_heap(), sizeof *sites);
    TIDE_ASSERT(sites != NULL);
    sites->seed = box_cloud_options(cloud)->seed;
    return sites;
}

struct box_sites *box_cloud_sites(box_cloud *cloud)
{
    return box_cloud_state(cloud, &box_console);
}

static void close_sites(void *state)
{
    struct box_sites *sites = state;
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
    TIDE_ASSERT(TIDE_GROW(sites->list, sites->capacity, sites->count + 1, SITES_MAX));
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
    TIDE_ASSERT(
        TIDE_GROW(site->users, site->users_capacity, site->users_count + 1, SITE_USERS_MAX));
    site->users[site->users_count++] = user->number;
    return TIDE_OK;
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
 * refused like one of another user: the caller cannot tell which it is. */
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
    json_auto_t *entries = json_array();
    for (size_t i = 0; i < sites->count; i++) {
        size_t place = 0;
        if (site_has(sites->list[i], call->user, &place))
            json_array_append_new(entries, entry_of(sites->list[i], call->user));
    }
    json_t *answer = json_object();
    if (json_array_size(entries) > 0)
        json_object_set(answer, "siteEntry", entries); /* empty lists are left out */
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
    json_auto_t *body = box_call_body(call);
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
}

enum { READERS = BOX_SCOPE_CONSOLE | BOX_SCOPE_CONSOLE_READONLY };

static const struct box_method methods[] = {
    {"webmasters.sites.list", BOX_GET, "/webmasters/v3/sites", READERS, BOX_METER_CONSOLE_OTHER, 1,
     1, sites_list},
    {"webmasters.sites.get", BOX_GET, "/webmasters/v3/sites/{siteUrl}", READERS,
     BOX_METER_CONSOLE_OTHER, 1, 1, sites_get},
    {"webmasters.searchanalytics.query", BOX_POST,
     "/webmasters/v3/sites/{siteUrl}/searchAnalytics/query", READERS, BOX_METER_ANALYTICS, 1, 1,
     searchanalytics_query},
    {"webmasters.sitemaps.list", BOX_GET, "/webmasters/v3/sites/{siteUrl}/sitemaps", READERS,
     BOX_METER_CONSOLE_OTHER, 1, 1, sitemaps_list},
    {"webmasters.sitemaps.get", BOX_GET, "/webmasters/v3/sites/{siteUrl}/sitemaps/{feedpath}",
     READERS, BOX_METER_CONSOLE_OTHER, 1, 1, sitemaps_get},
};

/* ---- the service ---- */

tide_status box_cloud_add_site(box_cloud *cloud, tide_text site, tide_text email,
                               uint32_t rows_per_day, tide_error *err)
{
    struct box_user *user = box_cloud_user_need(cloud, email, err);
    if (user == NULL)
        return TIDE_INVALID;
    const tide_status rc = box_sites_add(box_cloud_sites(cloud), site, user, rows_per_day, err);
    if (rc == TIDE_OK)
        box_cloud_keep(cloud,
                       json_pack("{s:s, s:o, s:s, s:I}", "op", "site", "site", box_json_text(site),
                                 "email", user->email, "rows", (json_int_t)rows_per_day));
    return rc;
}

/* A property that the options name again is there already. */
static tide_status replay(box_cloud *cloud, const json_t *change, tide_error *err)
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

/* The property that a query asks. */
static uint32_t subject(const struct box_call *call, tide_text *name_out)
{
    if (call->method->meter != BOX_METER_ANALYTICS || call->args_count == 0)
        return 0;
    *name_out = call->args[0];
    return box_sites_number(box_cloud_sites(call->cloud), call->args[0]);
}

static const struct box_fault faults[] = {{"list-shift", BOX_ASKED, .takes = 0}};

const struct box_service box_console = {
    .name = "console",
    .methods = methods,
    .methods_count = sizeof methods / sizeof methods[0],
    .style = &box_google_style,
    .open = open_sites,
    .close = close_sites,
    .limits = box_console_limits,
    .limits_count = BOX_CONSOLE_LIMITS,
    .subjects = "sites",
    .subject = subject,
    .load = box_console_load,
    .refuse = box_console_refuse,
    .faults = faults,
    .faults_count = sizeof faults / sizeof faults[0],
    .rate = &box_console_rate,
    .ops = "site",
    .replay = replay,
};
