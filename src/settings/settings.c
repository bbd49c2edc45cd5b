#include "settings/settings.h"

#include "base/check.h"
#include "settings/schedule.h"
#include "settings/url.h"
#include "settings/value.h"
#include "settings/yaml.h"

#include <inttypes.h>
#include <stdio.h>

#define ROW_N(id, n, t, def, lo, hi, u, l, m)                                                      \
    {.name = (n),                                                                                  \
     .type = TIDE_TYPE_##t,                                                                        \
     .number = (def),                                                                              \
     .min = (lo),                                                                                  \
     .max = (hi),                                                                                  \
     .unit = (u),                                                                                  \
     .live = (l),                                                                                  \
     .meaning = (m)},
#define ROW_T(id, n, t, def, bytes_max, c, l, m)                                                   \
    {.name = (n),                                                                                  \
     .type = TIDE_TYPE_##t,                                                                        \
     .text = (def),                                                                                \
     .max = (bytes_max),                                                                           \
     .unit = "",                                                                                   \
     .choices = (c),                                                                               \
     .live = (l),                                                                                  \
     .meaning = (m)},

static const struct tide_setting_info table[TIDE_SETTINGS_COUNT] = {TIDE_SETTINGS(ROW_N, ROW_T)};

struct value {
    uint64_t number;
    char text[TIDE_SETTING_TEXT_BYTES];
    tide_origin_layer layer;
    unsigned line; /* of the file */
};

struct tide_settings {
    tide_mem *mem;
    struct value values[TIDE_SETTINGS_COUNT];
    tide_arena arena; /* copies of the sources */
    struct tide_settings_sources sources;
    bool loaded; /* from these sources, which can be read again */
};

enum { SOURCES_BYTES_MAX = 1 << 20, ENVIRONMENT_MAX = 4096 };

/* ---- the table ---------------------------------------------------------------- */

const struct tide_setting_info *tide_setting_info(tide_setting setting)
{
    TIDE_ASSERT(setting < TIDE_SETTINGS_COUNT);
    return &table[setting];
}

bool tide_setting_find(tide_text name, tide_setting *setting_out)
{
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        if (tide_text_equal(name, tide_text_of(table[i].name))) {
            *setting_out = (tide_setting)i;
            return true;
        }
    }
    return false;
}

const char *tide_setting_type_name(tide_setting_type type)
{
    static const char *const names[] = {"integer", "size", "duration", "permille",
                                        "bool",    "text", "schedule", "url"};
    TIDE_ASSERT(type <= TIDE_TYPE_URL);
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

const char *tide_setting_nearest(tide_text name)
{
    const char *nearest = NULL;
    size_t best = name.bytes / 3 + 2; /* a larger distance is another word */
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        size_t distance = tide_text_distance(name, tide_text_of(table[i].name));
        if (distance < best) {
            best = distance;
            nearest = table[i].name;
        }
    }
    return nearest;
}

/* ---- one value ------------------------------------------------------------------ */

/* Where a value comes from, for messages. */
struct place {
    tide_origin_layer layer;
    const char *path; /* file */
    unsigned line;
    const char *variable; /* environment */
};

static const char *place_text(const struct place *place, char text[TIDE_SETTING_TEXT_BYTES])
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

/* Sets a value from a layer; higher layers are added later (SET3). */
static tide_status value_set(tide_settings *settings, tide_text name, tide_text text,
                             const struct place *place, tide_error *err)
{
    char where[TIDE_SETTING_TEXT_BYTES], reason[TIDE_SETTING_TEXT_BYTES];
    tide_setting setting = TIDE_SETTINGS_COUNT;
    if (!tide_setting_find(name, &setting)) {
        const char *nearest = tide_setting_nearest(name);
        return tide_error_set(err, TIDE_INVALID, "%s: there is no setting \"%.*s\"%s%s%s",
                              place_text(place, where), (int)(name.bytes > 80 ? 80 : name.bytes),
                              name.data == NULL ? "" : name.data,
                              nearest == NULL ? "" : "; did you mean \"",
                              nearest == NULL ? "" : nearest, nearest == NULL ? "" : "\"?");
    }
    const struct tide_setting_info *info = &table[setting];
    uint64_t number = 0;
    const char *why = info->text != NULL
                          ? tide_setting_text_refusal(info, text, reason, sizeof reason)
                          : tide_setting_number_refusal(info, text, &number, reason, sizeof reason);
    if (why != NULL && info->type == TIDE_TYPE_URL) /* it may have a password, mistyped or not */
        return tide_error_set(err, TIDE_INVALID, "%s: %s: its value %s", place_text(place, where),
                              info->name, why);
    if (why != NULL)
        return tide_error_set(err, TIDE_INVALID, "%s: %s: \"%.*s\" %s", place_text(place, where),
                              info->name, (int)(text.bytes > 60 ? 60 : text.bytes),
                              text.bytes == 0 ? "" : text.data, why);
    struct value *value = &settings->values[setting];
    value->number = number;
    if (info->text != NULL) {
        TIDE_ASSERT(text.bytes < sizeof value->text);
        if (text.bytes > 0)
            memcpy(value->text, text.data, text.bytes);
        value->text[text.bytes] = '\0';
    }
    value->layer = place->layer;
    value->line = place->line;
    return TIDE_OK;
}

/* ---- layers --------------------------------------------------------------------- */

static void values_default(struct value values[TIDE_SETTINGS_COUNT])
{
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        values[i] = (struct value){.number = table[i].number, .layer = TIDE_ORIGIN_DEFAULT};
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
    struct place place = {TIDE_ORIGIN_FILE, target->path, entry->line, NULL};
    return value_set(target->settings, entry->name, entry->value, &place, err);
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
    struct value *before = tide_mem_array(settings->mem, TIDE_SETTINGS_COUNT, sizeof *before);
    if (before == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "out of memory while reading %s", path);
    memcpy(before, settings->values, sizeof settings->values);
    tide_status rc = tide_yaml_walk(path, yaml, yaml_entry_set, &target, err);
    if (rc != TIDE_OK)
        memcpy(settings->values, before, sizeof settings->values);
    tide_mem_free(settings->mem, before, TIDE_SETTINGS_COUNT * sizeof *before);
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
        struct place place = {TIDE_ORIGIN_ENV, NULL, 0, shown};
        TIDE_TRY(
            value_set(settings, name_of_variable(variable), tide_text_of(equals + 1), &place, err));
    }
    return TIDE_OK;
}

tide_status tide_settings_add_flag(tide_settings *settings, const char *assignment, tide_error *err)
{
    const char *equals = strchr(assignment, '=');
    struct place place = {TIDE_ORIGIN_FLAG, NULL, 0, NULL};
    if (equals == NULL)
        return tide_error_set(err, TIDE_INVALID, "--set %.100s: expected name=value", assignment);
    return value_set(settings, (tide_text){assignment, (size_t)(equals - assignment)},
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

static bool value_equal(tide_setting setting, const struct value *a, const struct value *b)
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
    tide_status rc = tide_settings_new(settings->mem, fresh_out);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "out of memory while reading settings");
    memcpy((*fresh_out)->values, settings->values, sizeof settings->values);
    return TIDE_OK;
}

/* Not live, or a change between a window and none: a governor cannot do that while it runs. */
static bool counts_at_next_start(tide_setting setting, const struct value *old,
                                 const struct value *new)
{
    return !table[setting].live || ((setting == TIDE_SET_GOVERNOR_GMAIL_WINDOW_UNITS ||
                                     setting == TIDE_SET_GOVERNOR_CONSOLE_SITE_UNITS) &&
                                    (old->number == 0) != (new->number == 0));
}

tide_status tide_settings_take(tide_settings *settings, tide_settings *fresh,
                               bool changed_out[TIDE_SETTINGS_COUNT],
                               bool restart_out[TIDE_SETTINGS_COUNT], tide_error *err)
{
    /* The new live values may not agree with the old fixed ones (SET5): check the combination
     * before it applies. */
    struct value before;
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        bool equal = value_equal((tide_setting)i, &settings->values[i], &fresh->values[i]);
        bool later = counts_at_next_start((tide_setting)i, &settings->values[i], &fresh->values[i]);
        changed_out[i] = !equal && !later;
        restart_out[i] = !equal && later;
        before = settings->values[i];
        if (!restart_out[i])
            settings->values[i] = fresh->values[i];
        fresh->values[i] = before;
    }
    tide_status rc = tide_settings_check(settings, err);
    if (rc != TIDE_OK) {
        memcpy(settings->values, fresh->values, sizeof settings->values);
        memset(changed_out, 0, TIDE_SETTINGS_COUNT * sizeof *changed_out);
        memset(restart_out, 0, TIDE_SETTINGS_COUNT * sizeof *restart_out);
    }
    return rc;
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
    {TIDE_SET_GOVERNOR_GRAPH_IN_FLIGHT_START, TIDE_SET_GOVERNOR_GRAPH_IN_FLIGHT_MAX, false},
    {TIDE_SET_GOVERNOR_SAVE_EVERY, TIDE_SET_GOVERNOR_SPEND_LEASE, false},
    {TIDE_SET_GOVERNOR_SMALL_BELOW, TIDE_SET_GOVERNOR_LARGE_ABOVE, false},
    {TIDE_SET_ALERTS_BAD_WARN, TIDE_SET_ALERTS_BAD_CRITICAL, false},
};

static tide_status pair_refused(const tide_settings *settings, tide_setting small,
                                tide_setting large, const char *relation, tide_error *err)
{
    char a[TIDE_SETTING_TEXT_BYTES], b[TIDE_SETTING_TEXT_BYTES];
    char a_origin[TIDE_SETTING_TEXT_BYTES * 2], b_origin[TIDE_SETTING_TEXT_BYTES * 2];
    tide_setting_print(settings, small, a);
    tide_setting_print(settings, large, b);
    tide_setting_origin(settings, small, a_origin);
    tide_setting_origin(settings, large, b_origin);
    return tide_error_set(err, TIDE_INVALID, "%s = %.20s (%.100s) must be %s %s = %.20s (%.100s)",
                          table[small].name, a, a_origin, relation, table[large].name, b, b_origin);
}

tide_status tide_settings_check(const tide_settings *settings, tide_error *err)
{
    char reason[TIDE_SETTING_TEXT_BYTES];
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        const struct value *value = &settings->values[i];
        bool wrong = table[i].text != NULL
                         ? tide_setting_text_refusal(&table[i], tide_text_of(value->text), reason,
                                                     sizeof reason) != NULL
                         : value->number < table[i].min || value->number > table[i].max;
        if (wrong)
            return tide_error_set(err, TIDE_BUG, "setting %s is out of its bounds", table[i].name);
    }
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        uint64_t small = settings->values[pairs[i].small].number;
        uint64_t large = settings->values[pairs[i].large].number;
        if (small > large || (pairs[i].strictly && small == large))
            return pair_refused(settings, pairs[i].small, pairs[i].large,
                                pairs[i].strictly ? "below" : "at most", err);
    }
    /* With fewer units than a batch costs, the batch would wait forever. */
    uint64_t queries = settings->values[TIDE_SET_GOVERNOR_CONSOLE_SITE_UNITS].number;
    if (queries > 0 && queries < TIDE_SETTING_CONSOLE_UNITS_MIN)
        return tide_error_set(err, TIDE_INVALID,
                              "%s = %" PRIu64 " must be 0 (no limit is known) or at least %d",
                              table[TIDE_SET_GOVERNOR_CONSOLE_SITE_UNITS].name, queries,
                              TIDE_SETTING_CONSOLE_UNITS_MIN);
    /* With fewer units than the most expensive call costs, that call would wait forever. */
    uint64_t units = settings->values[TIDE_SET_GOVERNOR_GMAIL_WINDOW_UNITS].number;
    if (units > 0 && units < TIDE_SETTING_GMAIL_UNITS_MIN)
        return tide_error_set(
            err, TIDE_INVALID, "%s = %" PRIu64 " must be 0 (no limit is known) or at least %d",
            table[TIDE_SET_GOVERNOR_GMAIL_WINDOW_UNITS].name, units, TIDE_SETTING_GMAIL_UNITS_MIN);
    /* E3.1: both lanes keep their workers, unless there is only one. */
    uint64_t workers = settings->values[TIDE_SET_WORKERS_COUNT].number;
    uint64_t reserved = settings->values[TIDE_SET_WORKERS_RESERVED_INTERACTIVE].number +
                        settings->values[TIDE_SET_WORKERS_RESERVED_BULK].number;
    if (workers > 1 && reserved >= workers)
        return tide_error_set(err, TIDE_INVALID,
                              "workers.reserved_interactive + workers.reserved_bulk = %" PRIu64
                              " must be below workers.count = %" PRIu64,
                              reserved, workers);
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
    const struct value *value = &settings->values[setting];
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
    const struct value *value = &settings->values[setting];
    const char *file = settings->sources.file == NULL ? "file" : settings->sources.file;
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

/* ---- editing the file ------------------------------------------------------------- */

struct edit_search {
    tide_text name;
    struct tide_yaml_entry found; /* its texts are gone after the walk */
    bool is_found;
};

static tide_status edit_find(void *arg, const struct tide_yaml_entry *entry, tide_error *err)
{
    struct edit_search *search = arg;
    (void)err;
    if (tide_text_equal(entry->name, search->name)) {
        search->found = *entry;
        search->is_found = true;
    }
    return TIDE_OK;
}

/* Numbers, booleans and choices need no quotes; other texts get single quotes, in which only
 * the quote itself is special. */
static tide_status add_yaml_value(tide_buf *out, const struct tide_setting_info *info,
                                  tide_text value)
{
    if (info->text == NULL || info->choices != NULL)
        return tide_buf_add(out, value.data, value.bytes);
    TIDE_TRY(tide_buf_add_text(out, "'"));
    for (size_t i = 0; i < value.bytes; i++)
        TIDE_TRY(value.data[i] == '\'' ? tide_buf_add_text(out, "''")
                                       : tide_buf_add(out, &value.data[i], 1));
    return tide_buf_add_text(out, "'");
}

static tide_status edit_write(tide_text yaml, const struct edit_search *search, tide_text value,
                              const struct tide_setting_info *info, tide_buf *edited)
{
    tide_buf_clear(edited);
    size_t head = search->is_found ? search->found.start : yaml.bytes;
    size_t tail = search->is_found ? search->found.end : yaml.bytes;
    TIDE_ASSERT(head <= tail && tail <= yaml.bytes);
    TIDE_TRY(head == 0 ? TIDE_OK : tide_buf_add(edited, yaml.data, head));
    if (!search->is_found) {
        if (yaml.bytes > 0 && yaml.data[yaml.bytes - 1] != '\n')
            TIDE_TRY(tide_buf_add_text(edited, "\n"));
        TIDE_TRY(tide_buf_print(edited, "%s: ", info->name));
    }
    TIDE_TRY(add_yaml_value(edited, info, value));
    if (search->is_found && tail < yaml.bytes)
        TIDE_TRY(tide_buf_add(edited, yaml.data + tail, yaml.bytes - tail));
    if (!search->is_found)
        TIDE_TRY(tide_buf_add_text(edited, "\n"));
    return TIDE_OK;
}

/* The edited text must mean the same as before but for this one setting. */
static tide_status edit_verify(const char *path, const tide_settings *before, tide_setting setting,
                               tide_text value, tide_text edited, tide_error *err)
{
    tide_settings *after = NULL;
    tide_settings *wanted = NULL;
    struct place place = {TIDE_ORIGIN_FILE, path, 1, NULL};
    tide_status rc = tide_settings_new(before->mem, &after);
    if (rc == TIDE_OK)
        rc = tide_settings_new(before->mem, &wanted);
    if (rc == TIDE_OK)
        rc = tide_settings_add_yaml(after, path, edited, err);
    if (rc == TIDE_OK)
        rc = value_set(wanted, tide_text_of(table[setting].name), value, &place, err);
    if (rc == TIDE_OK)
        rc = tide_settings_check(after, err);
    for (int i = 0; rc == TIDE_OK && i < TIDE_SETTINGS_COUNT; i++) {
        const struct value *expected = i == (int)setting ? &wanted->values[i] : &before->values[i];
        if (!value_equal((tide_setting)i, expected, &after->values[i]))
            rc = tide_error_set(err, TIDE_INVALID,
                                "%s cannot be edited safely; set %s there by hand", path,
                                table[setting].name);
    }
    /* A value that equals its default would look right even if the file lost it. */
    if (rc == TIDE_OK && tide_setting_layer(after, setting) != TIDE_ORIGIN_FILE)
        rc = tide_error_set(err, TIDE_INVALID, "%s cannot be edited safely; set %s there by hand",
                            path, table[setting].name);
    tide_settings_free(after);
    tide_settings_free(wanted);
    return rc;
}

tide_status tide_settings_edit_yaml(const char *path, tide_text yaml, tide_text name,
                                    tide_text value, tide_mem *mem, tide_buf *edited,
                                    tide_error *err)
{
    tide_settings *before = NULL;
    tide_setting setting = TIDE_SETTINGS_COUNT;
    struct edit_search search = {.name = name};
    struct place place = {TIDE_ORIGIN_FLAG, NULL, 0, NULL};
    tide_status rc = tide_settings_new(mem, &before);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "out of memory while editing %s", path);

    rc = value_set(before, name, value, &place, err); /* is it a setting and a value at all? */
    if (rc == TIDE_OK) {
        values_default(before->values);
        rc = tide_settings_add_yaml(before, path, yaml, err);
    }
    if (rc == TIDE_OK)
        rc = tide_yaml_walk(path, yaml, edit_find, &search, err);
    if (rc == TIDE_OK && search.is_found && !search.found.editable)
        rc = tide_error_set(err, TIDE_INVALID,
                            "%s:%u: the value spans lines; change it there by hand", path,
                            search.found.line);
    if (rc == TIDE_OK) {
        bool known = tide_setting_find(name, &setting);
        TIDE_ASSERT(known);
        rc = edit_write(yaml, &search, value, &table[setting], edited);
        if (rc != TIDE_OK)
            (void)tide_error_set(err, rc, "the edited %s would be too large", path);
    }
    if (rc == TIDE_OK)
        rc = edit_verify(path, before, setting, value, tide_buf_text(edited), err);
    tide_settings_free(before);
    return rc;
}

tide_status tide_settings_edit_file(tide_world *world, const char *path, tide_text name,
                                    tide_text value, tide_mem *mem, tide_error *err)
{
    tide_buf content, edited;
    tide_buf_init(&content, mem, TIDE_SETTINGS_FILE_BYTES_MAX);
    tide_buf_init(&edited, mem, TIDE_SETTINGS_FILE_BYTES_MAX);
    tide_status rc = tide_file_read(world, path, TIDE_SETTINGS_FILE_BYTES_MAX, &content, err);
    if (rc == TIDE_NOT_FOUND)
        rc = TIDE_OK;
    if (rc == TIDE_OK)
        rc = tide_settings_edit_yaml(path, tide_buf_text(&content), name, value, mem, &edited, err);
    if (rc == TIDE_OK)
        rc = tide_file_replace(world, path, tide_buf_text(&edited), 0600, err);
    tide_buf_done(&content);
    tide_buf_done(&edited);
    return rc;
}
