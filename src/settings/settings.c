#include "settings/inside.h"

#include "base/check.h"
#include "settings/schedule.h"
#include "settings/url.h"
#include "settings/value.h"
#include "settings/yaml.h"

#include <inttypes.h>
#include <stdio.h>

/* What `when` of the table means, as bits. */
enum {
    WHEN_NEXT_START = 0,
    WHEN_LIVE = 1,
    WHEN_NEXT_START_OWN = 2,
    WHEN_LIVE_OWN = WHEN_LIVE | WHEN_NEXT_START_OWN,
};

#define ROW_N(id, n, t, def, lo, hi, u, w, m)                                                      \
    {.name = (n),                                                                                  \
     .type = TIDE_TYPE_##t,                                                                        \
     .number = (def),                                                                              \
     .min = (lo),                                                                                  \
     .max = (hi),                                                                                  \
     .unit = (u),                                                                                  \
     .live = (WHEN_##w & WHEN_LIVE) != 0,                                                          \
     .own = (WHEN_##w & WHEN_NEXT_START_OWN) != 0,                                                 \
     .meaning = (m)},
#define ROW_T(id, n, t, def, bytes_max, c, w, m)                                                   \
    {.name = (n),                                                                                  \
     .type = TIDE_TYPE_##t,                                                                        \
     .text = (def),                                                                                \
     .max = (bytes_max),                                                                           \
     .unit = "",                                                                                   \
     .choices = (c),                                                                               \
     .live = (WHEN_##w & WHEN_LIVE) != 0,                                                          \
     .own = (WHEN_##w & WHEN_NEXT_START_OWN) != 0,                                                 \
     .meaning = (m)},

static const struct tide_setting_info table[TIDE_SETTINGS_COUNT] = {TIDE_SETTINGS(ROW_N, ROW_T)};

enum { SOURCES_BYTES_MAX = 1 << 20, ENVIRONMENT_MAX = 4096 };

/* ---- the table ---------------------------------------------------------------- */

const struct tide_setting_info *tide_setting_info(tide_setting setting)
{
    TIDE_ASSERT(setting < TIDE_SETTINGS_COUNT);
    return &table[setting];
}

/* Names of earlier versions, which files still have. */
static bool find_former(tide_text name, tide_setting *setting_out)
{
    static const struct {
        const char *name;
        tide_setting setting;
    } former[] = {
        {"governor.graph.in_flight_start", TIDE_SET_GOVERNOR_ONEDRIVE_IN_FLIGHT_START},
        {"governor.graph.in_flight_max", TIDE_SET_GOVERNOR_ONEDRIVE_IN_FLIGHT_MAX},
    };
    for (size_t i = 0; i < sizeof former / sizeof former[0]; i++) {
        if (tide_text_equal(name, tide_text_of(former[i].name))) {
            *setting_out = former[i].setting;
            return true;
        }
    }
    return false;
}

bool tide_setting_find(tide_text name, tide_setting *setting_out)
{
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        if (tide_text_equal(name, tide_text_of(table[i].name))) {
            *setting_out = (tide_setting)i;
            return true;
        }
    }
    return find_former(name, setting_out);
}

const char *tide_setting_type_name(tide_setting_type type)
{
    static const char *const names[] = {"integer", "size",     "duration", "permille", "bool",
                                        "text",    "schedule", "url",      "address",  "server"};
    TIDE_ASSERT(type <= TIDE_TYPE_SERVER);
    return names[type];
}

void tide_setting_env_name(tide_setting setting, char name_out[TIDE_SETTING_TEXT_BYTES])
{
    size_t used = (size_t)snprintf(name_out, TIDE_SETTING_TEXT_BYTES, "TIDEMARK_%s",
                                   tide_setting_info(setting)->name);
    TIDE_ASSERT(used < TIDE_SETTING_TEXT_BYTES);
    for (size_t i = 0; i < used; i++) {
        if (name_out[i] == '.')
            name_out[i] = '_';
        else if (name_out[i] >= 'a' && name_out[i] <= 'z')
            name_out[i] = (char)(name_out[i] - 'a' + 'A');
    }
}

/* Keeps *best_io and returns NULL unless a known name is nearer. */
static const char *nearer(tide_text name, size_t *best_io)
{
    const char *nearest = NULL;
    const size_t most = name.bytes / 3 + 2; /* a larger distance is another word */
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        const size_t distance = tide_text_distance(name, tide_text_of(table[i].name));
        if (distance < *best_io && distance < most) {
            *best_io = distance;
            nearest = table[i].name;
        }
    }
    return nearest;
}

const char *tide_setting_nearest(tide_text name)
{
    size_t best = SIZE_MAX;
    const char *nearest = nearer(name, &best);
    /* Of a setting of one account, where the setting's name begins is not known. */
    const bool own = name.bytes > 9 && memcmp(name.data, "accounts.", 9) == 0;
    for (size_t i = 9; own && i + 1 < name.bytes; i++) {
        const char *other = name.data[i] != '.'
                                ? NULL
                                : nearer((tide_text){name.data + i + 1, name.bytes - i - 1}, &best);
        nearest = other != NULL ? other : nearest;
    }
    return nearest;
}

/* ---- one value ------------------------------------------------------------------ */

static const char *place_text(const struct tide_setting_place *place,
                              char text[TIDE_SETTING_TEXT_BYTES])
{
    switch (place->layer) {
    case TIDE_ORIGIN_FILE:
        (void)snprintf(text, TIDE_SETTING_TEXT_BYTES, "%s:%u", place->path, place->line);
        break;
    case TIDE_ORIGIN_ENV:
        (void)snprintf(text, TIDE_SETTING_TEXT_BYTES, "environment %s", place->variable);
        break;
    case TIDE_ORIGIN_FLAG:
        (void)snprintf(text, TIDE_SETTING_TEXT_BYTES, "--set");
        break;
    case TIDE_ORIGIN_DEFAULT:
        (void)snprintf(text, TIDE_SETTING_TEXT_BYTES, "default");
        break;
    }
    return text;
}

static tide_status unknown(tide_text name, const struct tide_setting_place *place, tide_error *err)
{
    char where[TIDE_SETTING_TEXT_BYTES];
    const char *nearest = tide_setting_nearest(name);
    return tide_error_set(err, TIDE_INVALID, "%s: there is no setting \"%.*s\"%s%s%s",
                          place_text(place, where), (int)(name.bytes > 120 ? 120 : name.bytes),
                          name.data == NULL ? "" : name.data,
                          nearest == NULL ? "" : "; did you mean \"",
                          nearest == NULL ? "" : nearest, nearest == NULL ? "" : "\"?");
}

/* What `name` sets, and for whom. */
static tide_status target_of(tide_settings *settings, tide_text name,
                             const struct tide_setting_place *place, tide_settings **target_out,
                             tide_setting *setting_out, tide_error *err)
{
    char where[TIDE_SETTING_TEXT_BYTES];
    tide_text account = TIDE_TEXT_NONE;
    *target_out = settings;
    if (tide_setting_find(name, setting_out))
        return TIDE_OK;
    if (!tide_setting_find_own(name, &account, setting_out))
        return unknown(name, place, err);
    if (!table[*setting_out].own)
        return tide_error_set(
            err, TIDE_INVALID,
            "%s: %s is for all accounts together, which share this process, its ledger "
            "and its network: it cannot be set for one alone",
            place_text(place, where), table[*setting_out].name);
    tide_error why = {TIDE_OK, 0, ""};
    const tide_status rc = tide_settings_own(settings, account, target_out, &why);
    return rc == TIDE_OK ? rc
                         : tide_error_set(err, rc, "%s: %s", place_text(place, where), why.text);
}

/* NULL, or why `text` cannot be the value. */
static const char *refusal_of(tide_setting setting, tide_text text, uint64_t *number,
                              char reason[TIDE_SETTING_TEXT_BYTES])
{
    const struct tide_setting_info *info = &table[setting];
    return info->text != NULL
               ? tide_setting_text_refusal(info, text, reason, TIDE_SETTING_TEXT_BYTES)
               : tide_setting_number_refusal(info, text, number, reason, TIDE_SETTING_TEXT_BYTES);
}

tide_status tide_setting_set(tide_settings *settings, tide_text name, tide_text text,
                             const struct tide_setting_place *place, tide_error *err)
{
    char where[TIDE_SETTING_TEXT_BYTES], reason[TIDE_SETTING_TEXT_BYTES];
    tide_setting setting = TIDE_SETTINGS_COUNT;
    tide_settings *target = NULL;
    TIDE_TRY(target_of(settings, name, place, &target, &setting, err));
    const struct tide_setting_info *info = &table[setting];
    uint64_t number = 0;
    const char *why = refusal_of(setting, text, &number, reason);
    const int name_bytes = (int)name.bytes;
    /* It may have a password, mistyped or not. */
    if (why != NULL && (info->type == TIDE_TYPE_URL || info->type == TIDE_TYPE_SERVER))
        return tide_error_set(err, TIDE_INVALID, "%s: %.*s: its value %s", place_text(place, where),
                              name_bytes, name.data, why);
    if (why != NULL)
        return tide_error_set(err, TIDE_INVALID, "%s: %.*s: \"%.*s\" %s", place_text(place, where),
                              name_bytes, name.data, (int)(text.bytes > 60 ? 60 : text.bytes),
                              text.bytes == 0 ? "" : text.data, why);
    struct tide_setting_value *value = &target->values[setting];
    value->number = number;
    if (info->text != NULL) {
        TIDE_ASSERT(text.bytes < sizeof value->text);
        if (text.bytes > 0)
            memcpy(value->text, text.data, text.bytes);
        value->text[text.bytes] = '\0';
    }
    value->layer = place->layer;
    value->line = place->line;
    value->own = target != settings;
    tide_settings_follow(settings, setting);
    return TIDE_OK;
}

/* ---- layers --------------------------------------------------------------------- */

static void values_default(struct tide_setting_value values[TIDE_SETTINGS_COUNT])
{
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        values[i] =
            (struct tide_setting_value){.number = table[i].number, .layer = TIDE_ORIGIN_DEFAULT};
        if (table[i].text != NULL)
            (void)snprintf(values[i].text, sizeof values[i].text, "%s", table[i].text);
    }
}

tide_status tide_settings_new(tide_mem *mem, tide_settings **settings_out)
{
    TIDE_ASSERT(settings_out != NULL);
    tide_settings *settings = tide_mem_new(mem, sizeof *settings);
    if (settings == NULL)
        return TIDE_NO_MEMORY;
    settings->mem = mem;
    tide_arena_init(&settings->arena, mem, SOURCES_BYTES_MAX);
    values_default(settings->values);
    *settings_out = settings;
    return TIDE_OK;
}

void tide_settings_free(tide_settings *settings)
{
    if (settings == NULL)
        return;
    tide_settings_accounts_free(settings);
    tide_arena_done(&settings->arena);
    tide_mem_free(settings->mem, settings, sizeof *settings);
}

struct yaml_target {
    tide_settings *settings;
    const char *path;
};

static tide_status yaml_entry_set(void *arg, const struct tide_yaml_entry *entry, tide_error *err)
{
    const struct yaml_target *target = arg;
    struct tide_setting_place place = {TIDE_ORIGIN_FILE, target->path, entry->line, NULL};
    return tide_setting_set(target->settings, entry->name, entry->value, &place, err);
}

tide_status tide_settings_add_yaml(tide_settings *settings, const char *path, tide_text yaml,
                                   tide_error *err)
{
    struct yaml_target target = {settings, path};
    if (settings->sources.file == NULL) {
        settings->sources.file = tide_arena_copy(&settings->arena, path, strlen(path));
        if (settings->sources.file == NULL)
            return tide_error_set(err, TIDE_NO_MEMORY, "out of memory while reading %s", path);
    }
    /* SET4: a file that is refused in the middle sets nothing. */
    tide_settings *before = NULL;
    if (tide_settings_copy(settings, &before) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "out of memory while reading %s", path);
    const tide_status rc = tide_yaml_walk(path, yaml, yaml_entry_set, &target, err);
    if (rc != TIDE_OK)
        tide_settings_swap(settings, before);
    tide_settings_free(before);
    return rc;
}

/* "TIDEMARK_WORKERS_COUNT" to "workers.count"; a name that belongs to no setting is
 * returned unchanged, and refused as unknown. */
static tide_text name_of_variable(tide_text variable)
{
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        char env_name[TIDE_SETTING_TEXT_BYTES];
        tide_setting_env_name((tide_setting)i, env_name);
        if (tide_text_equal(variable, tide_text_of(env_name)))
            return tide_text_of(table[i].name);
    }
    return variable;
}

tide_status tide_settings_add_environment(tide_settings *settings, const char *const *environment,
                                          tide_error *err)
{
    for (size_t i = 0; environment != NULL && environment[i] != NULL && i < ENVIRONMENT_MAX; i++) {
        const char *equals = strchr(environment[i], '=');
        if (equals == NULL || strncmp(environment[i], "TIDEMARK_", 9) != 0)
            continue;
        tide_text variable = {environment[i], (size_t)(equals - environment[i])};
        if (tide_text_equal(variable, TIDE_TEXT("TIDEMARK_HOME")))
            continue;
        char shown[100];
        (void)snprintf(shown, sizeof shown, "%.*s",
                       (int)(variable.bytes > 99 ? 99 : variable.bytes), variable.data);
        struct tide_setting_place place = {TIDE_ORIGIN_ENV, NULL, 0, shown};
        /* Names of accounts have characters that names of variables lack. */
        if (strncmp(shown, "TIDEMARK_ACCOUNTS_", 18) == 0)
            return tide_error_set(err, TIDE_INVALID,
                                  "environment %s: what is set for one account alone is given in "
                                  "the file or with --set",
                                  shown);
        TIDE_TRY(tide_setting_set(settings, name_of_variable(variable), tide_text_of(equals + 1),
                                  &place, err));
    }
    return TIDE_OK;
}

tide_status tide_settings_add_flag(tide_settings *settings, const char *assignment, tide_error *err)
{
    const char *equals = strchr(assignment, '=');
    struct tide_setting_place place = {TIDE_ORIGIN_FLAG, NULL, 0, NULL};
    if (equals == NULL)
        return tide_error_set(err, TIDE_INVALID, "--set %.100s: expected name=value", assignment);
    return tide_setting_set(settings, (tide_text){assignment, (size_t)(equals - assignment)},
                            tide_text_of(equals + 1), &place, err);
}

/* All four layers from settings->sources into `settings`, which has defaults. */
static tide_status layers_read(tide_settings *settings, tide_world *world, tide_error *err)
{
    const struct tide_settings_sources *sources = &settings->sources;
    tide_status rc = TIDE_OK;
    if (sources->file != NULL) {
        tide_buf content;
        tide_buf_init(&content, settings->mem, TIDE_SETTINGS_FILE_BYTES_MAX);
        rc = tide_file_read(world, sources->file, TIDE_SETTINGS_FILE_BYTES_MAX, &content, err);
        if (rc == TIDE_OK)
            rc = tide_settings_add_yaml(settings, sources->file, tide_buf_text(&content), err);
        else if (rc == TIDE_NOT_FOUND)
            rc = TIDE_OK;
        tide_buf_done(&content);
    }
    TIDE_TRY(rc);
    TIDE_TRY(tide_settings_add_environment(settings, sources->environment, err));
    for (size_t i = 0; i < sources->flags_count; i++)
        TIDE_TRY(tide_settings_add_flag(settings, sources->flags[i], err));
    return tide_settings_check(settings, err);
}

/* Copies the strings that begin with `prefix` into the arena. */
static const char **strings_copy(tide_arena *arena, const char *const *strings, size_t count,
                                 const char *prefix, size_t *count_out)
{
    const char **copies = tide_arena_take(arena, (count + 1) * sizeof *copies);
    size_t used = 0;
    for (size_t i = 0; copies != NULL && i < count; i++) {
        if (strncmp(strings[i], prefix, strlen(prefix)) != 0)
            continue;
        copies[used] = tide_arena_copy(arena, strings[i], strlen(strings[i]));
        if (copies[used++] == NULL)
            return NULL;
    }
    *count_out = used;
    return copies;
}

static tide_status sources_copy(tide_settings *settings,
                                const struct tide_settings_sources *sources, tide_error *err)
{
    struct tide_settings_sources copy = {0};
    size_t variables = 0, kept = 0;
    while (sources->environment != NULL && sources->environment[variables] != NULL &&
           variables < ENVIRONMENT_MAX)
        variables++;
    copy.environment =
        strings_copy(&settings->arena, sources->environment, variables, "TIDEMARK_", &kept);
    copy.flags =
        strings_copy(&settings->arena, sources->flags, sources->flags_count, "", &copy.flags_count);
    if (sources->file != NULL)
        copy.file = tide_arena_copy(&settings->arena, sources->file, strlen(sources->file));
    if (copy.environment == NULL || copy.flags == NULL ||
        (sources->file != NULL && copy.file == NULL))
        return tide_error_set(err, TIDE_NO_MEMORY, "out of memory while reading settings");
    settings->sources = copy;
    return TIDE_OK;
}

tide_status tide_settings_load(tide_world *world, const struct tide_settings_sources *sources,
                               tide_mem *mem, tide_settings **settings_out, tide_error *err)
{
    TIDE_ASSERT(sources != NULL);
    tide_settings *settings = NULL;
    if (sources->flags_count > TIDE_SETTINGS_FLAGS_MAX)
        return tide_error_set(err, TIDE_FULL, "more than %d --set flags", TIDE_SETTINGS_FLAGS_MAX);
    tide_status rc = tide_settings_new(mem, &settings);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "out of memory while reading settings");
    rc = sources_copy(settings, sources, err);
    settings->loaded = rc == TIDE_OK;
    if (rc == TIDE_OK)
        rc = layers_read(settings, world, err);
    if (rc != TIDE_OK) {
        tide_settings_free(settings);
        return rc;
    }
    *settings_out = settings;
    return TIDE_OK;
}

bool tide_setting_value_equal(tide_setting setting, const struct tide_setting_value *a,
                              const struct tide_setting_value *b)
{
    return table[setting].text != NULL ? strcmp(a->text, b->text) == 0 : a->number == b->number;
}

const char *tide_settings_file(const tide_settings *settings)
{
    return settings->loaded ? settings->sources.file : NULL;
}

tide_status tide_settings_again(const tide_settings *settings, tide_world *world,
                                tide_settings **fresh_out, tide_error *err)
{
    if (settings->loaded)
        return tide_settings_load(world, &settings->sources, settings->mem, fresh_out, err);
    const tide_status rc = tide_settings_copy(settings, fresh_out);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "out of memory while reading settings");
}

/* Not live, or a change between a window and none: a governor cannot do that while it runs. */
static bool counts_at_next_start(tide_setting setting, const struct tide_setting_value *old,
                                 const struct tide_setting_value *new)
{
    return !table[setting].live || ((setting == TIDE_SET_GOVERNOR_GMAIL_WINDOW_UNITS ||
                                     setting == TIDE_SET_GOVERNOR_CONSOLE_SITE_UNITS) &&
                                    (old->number == 0) != (new->number == 0));
}

/* Exchanges the values that apply from now on; `fresh` keeps the old ones, and what is new. */
static void take_values(tide_settings *settings, tide_settings *fresh,
                        bool changed_out[TIDE_SETTINGS_COUNT],
                        bool restart_out[TIDE_SETTINGS_COUNT])
{
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        const struct tide_setting_value old = settings->values[i];
        struct tide_setting_value *new = &fresh->values[i];
        const bool equal = tide_setting_value_equal((tide_setting)i, &old, new);
        const bool later = !equal && counts_at_next_start((tide_setting)i, &old, new);
        const bool concerns = settings->common == NULL || old.own || new->own;
        if (!later)
            settings->values[i] = *new;
        else if (settings->common != NULL && !old.own)
            settings->values[i] = settings->common->values[i]; /* SET6 */
        *new = old;
        new->news = equal || !concerns ? TIDE_VALUE_SAME
                    : later            ? TIDE_VALUE_LATER
                                       : TIDE_VALUE_CHANGED;
        changed_out[i] = changed_out[i] || new->news == TIDE_VALUE_CHANGED;
        restart_out[i] = restart_out[i] || new->news == TIDE_VALUE_LATER;
    }
}

tide_status tide_settings_take(tide_settings *settings, tide_settings *fresh,
                               bool changed_out[TIDE_SETTINGS_COUNT],
                               bool restart_out[TIDE_SETTINGS_COUNT], tide_error *err)
{
    memset(changed_out, 0, TIDE_SETTINGS_COUNT * sizeof *changed_out);
    memset(restart_out, 0, TIDE_SETTINGS_COUNT * sizeof *restart_out);
    TIDE_TRY(tide_settings_align(settings, fresh, err));
    take_values(settings, fresh, changed_out, restart_out);
    for (size_t i = 0; i < settings->accounts_count; i++) {
        tide_settings *own = settings->accounts[i];
        size_t at = 0;
        while (strcmp(fresh->accounts[at]->account, own->account) != 0)
            at++; /* ends: it is there */
        take_values(own, fresh->accounts[at], changed_out, restart_out);
    }
    /* The new live values may not agree with the old fixed ones (SET5): check the combination
     * before it applies. */
    const tide_status rc = tide_settings_check(settings, err);
    if (rc != TIDE_OK) {
        tide_settings_swap(settings, fresh);
        memset(changed_out, 0, TIDE_SETTINGS_COUNT * sizeof *changed_out);
        memset(restart_out, 0, TIDE_SETTINGS_COUNT * sizeof *restart_out);
    }
    return rc;
}

static void each_change(const tide_settings *taken, tide_settings_change *visit, void *arg)
{
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++)
        if (taken->values[i].news != TIDE_VALUE_SAME)
            visit(arg, taken->common == NULL ? NULL : taken->account, (tide_setting)i,
                  taken->values[i].news == TIDE_VALUE_LATER);
}

void tide_settings_changes(const tide_settings *taken, tide_settings_change *visit, void *arg)
{
    each_change(taken, visit, arg);
    for (size_t i = 0; i < taken->accounts_count; i++)
        each_change(taken->accounts[i], visit, arg);
}

/* ---- checking -------------------------------------------------------------------- */

/* SET5: `small` must stay below (or, not strictly, at most at) `large`. */
static const struct pair {
    tide_setting small, large;
    bool strictly;
} pairs[] = {
    {TIDE_SET_TRACKER_REFILL_BELOW, TIDE_SET_TRACKER_REFILL_TO, true},
    {TIDE_SET_RETRY_BACKOFF_START, TIDE_SET_RETRY_BACKOFF_MAX, false},
    {TIDE_SET_BREAKER_PAUSE_FIRST, TIDE_SET_BREAKER_PAUSE_MAX, false},
    {TIDE_SET_BREAKER_PAUSE_FIRST, TIDE_SET_BREAKER_PAUSE_SOFT_MAX, false},
    {TIDE_SET_GOVERNOR_DEFAULT_WORKERS_MIN, TIDE_SET_GOVERNOR_DEFAULT_WORKERS_START, false},
    {TIDE_SET_GOVERNOR_DEFAULT_WORKERS_START, TIDE_SET_GOVERNOR_DEFAULT_WORKERS_MAX, false},
    {TIDE_SET_GOVERNOR_DEFAULT_RATE_MIN, TIDE_SET_GOVERNOR_DEFAULT_RATE_START, false},
    {TIDE_SET_GOVERNOR_DEFAULT_RATE_START, TIDE_SET_GOVERNOR_DEFAULT_RATE_MAX, false},
    {TIDE_SET_GOVERNOR_SAVE_EVERY, TIDE_SET_GOVERNOR_SPEND_LEASE, false},
    {TIDE_SET_GOVERNOR_SMALL_BELOW, TIDE_SET_GOVERNOR_LARGE_ABOVE, false},
    {TIDE_SET_ALERTS_BAD_WARN, TIDE_SET_ALERTS_BAD_CRITICAL, false},
};

/* "governor.cut = 50% (config.yaml:3)". */
enum { SHOWN_BYTES = 480 };
static void value_show(const tide_settings *settings, tide_setting setting, char out[SHOWN_BYTES])
{
    char name[TIDE_SETTING_NAME_BYTES], value[TIDE_SETTING_TEXT_BYTES];
    char origin[TIDE_SETTING_TEXT_BYTES * 2];
    tide_setting_name(settings, setting, name);
    tide_setting_print(settings, setting, value);
    tide_setting_origin(settings, setting, origin);
    /* The line stands at its end. */
    const size_t bytes = strlen(origin);
    (void)snprintf(out, SHOWN_BYTES, "%s = %.20s (%s)", name, value,
                   origin + (bytes > 100 ? bytes - 100 : 0));
}

static tide_status check_pairs(const tide_settings *settings, tide_error *err)
{
    char a[SHOWN_BYTES], b[SHOWN_BYTES];
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const uint64_t small = settings->values[pairs[i].small].number;
        const uint64_t large = settings->values[pairs[i].large].number;
        if (small < large || (!pairs[i].strictly && small == large))
            continue;
        value_show(settings, pairs[i].small, a);
        value_show(settings, pairs[i].large, b);
        return tide_error_set(err, TIDE_INVALID, "%s must be %s %s", a,
                              pairs[i].strictly ? "below" : "at most", b);
    }
    return TIDE_OK;
}

/* With fewer units than the most expensive call or a batch costs, that would wait forever. */
static tide_status check_units(const tide_settings *settings, tide_setting setting, uint64_t least,
                               tide_error *err)
{
    char shown[SHOWN_BYTES];
    const uint64_t units = settings->values[setting].number;
    if (units == 0 || units >= least)
        return TIDE_OK;
    value_show(settings, setting, shown);
    return tide_error_set(err, TIDE_INVALID,
                          "%s must be 0 (no limit is known) or at least %" PRIu64, shown, least);
}

/* Accounts of one project have one quota together: the project of an account with another quota
 * needs a name (E11.2). */
static tide_status check_project(const tide_settings *settings, tide_setting units, tide_error *err)
{
    char shown[SHOWN_BYTES];
    if (!settings->values[units].own || settings->values[TIDE_SET_GOVERNOR_PROJECT].text[0] != '\0')
        return TIDE_OK;
    value_show(settings, units, shown);
    return tide_error_set(err, TIDE_INVALID,
                          "%s: name the project of this account as well, with accounts.%s.%s",
                          shown, settings->account, table[TIDE_SET_GOVERNOR_PROJECT].name);
}

/* E3.1: both lanes keep their workers, unless there is only one. */
static tide_status check_workers(const tide_settings *settings, tide_error *err)
{
    const uint64_t workers = settings->values[TIDE_SET_WORKERS_COUNT].number;
    const uint64_t reserved = settings->values[TIDE_SET_WORKERS_RESERVED_INTERACTIVE].number +
                              settings->values[TIDE_SET_WORKERS_RESERVED_BULK].number;
    static const tide_setting three[] = {TIDE_SET_WORKERS_RESERVED_BULK,
                                         TIDE_SET_WORKERS_RESERVED_INTERACTIVE,
                                         TIDE_SET_WORKERS_COUNT};
    char shown[SHOWN_BYTES];
    if (workers <= 1 || reserved < workers)
        return TIDE_OK;
    /* One of them was set: the defaults agree. */
    size_t set = 0;
    while (set + 1 < sizeof three / sizeof three[0] &&
           settings->values[three[set]].layer == TIDE_ORIGIN_DEFAULT)
        set++;
    value_show(settings, three[set], shown);
    return tide_error_set(err, TIDE_INVALID,
                          "%s: workers.reserved_interactive + workers.reserved_bulk = %" PRIu64
                          " must be below workers.count = %" PRIu64,
                          shown, reserved, workers);
}

/* SET1. */
static tide_status check_bounds(const tide_settings *settings, tide_error *err)
{
    char reason[TIDE_SETTING_TEXT_BYTES];
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        const struct tide_setting_value *value = &settings->values[i];
        bool wrong = table[i].text != NULL
                         ? tide_setting_text_refusal(&table[i], tide_text_of(value->text), reason,
                                                     sizeof reason) != NULL
                         : value->number < table[i].min || value->number > table[i].max;
        if (wrong)
            return tide_error_set(err, TIDE_BUG, "setting %s is out of its bounds", table[i].name);
    }
    return TIDE_OK;
}

/* SET6. */
static tide_status check_inherited(const tide_settings *own, tide_error *err)
{
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++)
        if (own->values[i].own ? !table[i].own
                               : !tide_setting_value_equal((tide_setting)i, &own->values[i],
                                                           &own->common->values[i]))
            return tide_error_set(err, TIDE_BUG, "setting %s of %s is not its own", table[i].name,
                                  own->account);
    return TIDE_OK;
}

static tide_status check_one(const tide_settings *settings, tide_error *err)
{
    TIDE_TRY(check_bounds(settings, err));
    TIDE_TRY(check_pairs(settings, err));
    TIDE_TRY(check_units(settings, TIDE_SET_GOVERNOR_CONSOLE_SITE_UNITS,
                         TIDE_SETTING_CONSOLE_UNITS_MIN, err));
    TIDE_TRY(check_units(settings, TIDE_SET_GOVERNOR_GMAIL_WINDOW_UNITS,
                         TIDE_SETTING_GMAIL_UNITS_MIN, err));
    TIDE_TRY(check_units(settings, TIDE_SET_GOVERNOR_ONEDRIVE_WINDOW_UNITS,
                         TIDE_SETTING_ONEDRIVE_UNITS_MIN, err));
    TIDE_TRY(check_project(settings, TIDE_SET_GOVERNOR_GMAIL_PROJECT_UNITS, err));
    TIDE_TRY(check_project(settings, TIDE_SET_GOVERNOR_CONSOLE_PROJECT_UNITS, err));
    return check_workers(settings, err);
}

tide_status tide_settings_check(const tide_settings *settings, tide_error *err)
{
    TIDE_TRY(check_one(settings, err));
    for (size_t i = 0; i < settings->accounts_count; i++) {
        TIDE_TRY(check_inherited(settings->accounts[i], err));
        TIDE_TRY(check_one(settings->accounts[i], err));
    }
    return TIDE_OK;
}

/* ---- reading --------------------------------------------------------------------- */

uint64_t tide_setting_u64(const tide_settings *settings, tide_setting setting)
{
    TIDE_ASSERT(setting < TIDE_SETTINGS_COUNT);
    TIDE_ASSERT(table[setting].text == NULL);
    return settings->values[setting].number;
}

uint32_t tide_setting_u32(const tide_settings *settings, tide_setting setting)
{
    uint64_t number = tide_setting_u64(settings, setting);
    TIDE_ASSERT(table[setting].max <= UINT32_MAX);
    return (uint32_t)number;
}

const char *tide_setting_text(const tide_settings *settings, tide_setting setting)
{
    TIDE_ASSERT(setting < TIDE_SETTINGS_COUNT);
    TIDE_ASSERT(table[setting].text != NULL);
    return settings->values[setting].text;
}

size_t tide_setting_windows(const tide_settings *settings, tide_setting setting,
                            struct tide_setting_window windows_out[TIDE_SETTING_WINDOWS_MAX])
{
    TIDE_ASSERT(tide_setting_info(setting)->type == TIDE_TYPE_SCHEDULE);
    size_t count = 0;
    const char *reason = NULL;
    bool good = tide_schedule_parse(tide_text_of(settings->values[setting].text), windows_out,
                                    &count, &reason);
    TIDE_ASSERT(good); /* SET1: it was parsed when it was set */
    return count;
}

void tide_setting_print(const tide_settings *settings, tide_setting setting,
                        char value_out[TIDE_SETTING_TEXT_BYTES])
{
    TIDE_ASSERT(setting < TIDE_SETTINGS_COUNT);
    const struct tide_setting_value *value = &settings->values[setting];
    if (table[setting].type == TIDE_TYPE_URL)
        tide_url_masked(tide_text_of(value->text), value_out, TIDE_SETTING_TEXT_BYTES);
    else if (table[setting].text != NULL)
        memcpy(value_out, value->text, sizeof value->text);
    else
        tide_setting_number_print(table[setting].type, value->number, value_out);
}

void tide_setting_origin(const tide_settings *settings, tide_setting setting,
                         char origin_out[TIDE_SETTING_TEXT_BYTES * 2])
{
    TIDE_ASSERT(setting < TIDE_SETTINGS_COUNT);
    char env_name[TIDE_SETTING_TEXT_BYTES];
    const struct tide_setting_value *value = &settings->values[setting];
    const tide_settings *common = settings->common == NULL ? settings : settings->common;
    const char *file = common->sources.file == NULL ? "file" : common->sources.file;
    switch (value->layer) {
    case TIDE_ORIGIN_FILE:
        (void)snprintf(origin_out, TIDE_SETTING_TEXT_BYTES * 2, "%.400s:%u", file, value->line);
        return;
    case TIDE_ORIGIN_ENV:
        tide_setting_env_name(setting, env_name);
        (void)snprintf(origin_out, TIDE_SETTING_TEXT_BYTES * 2, "env %s", env_name);
        return;
    case TIDE_ORIGIN_FLAG:
        (void)snprintf(origin_out, TIDE_SETTING_TEXT_BYTES * 2, "flag");
        return;
    case TIDE_ORIGIN_DEFAULT:
        (void)snprintf(origin_out, TIDE_SETTING_TEXT_BYTES * 2, "default");
        return;
    }
}

tide_origin_layer tide_setting_layer(const tide_settings *settings, tide_setting setting)
{
    TIDE_ASSERT(setting < TIDE_SETTINGS_COUNT);
    return settings->values[setting].layer;
}
