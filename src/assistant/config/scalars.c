#include "assistant/config/inside.h"

#include "base/check.h"

#include <stddef.h>
#include <stdio.h>

enum {
    MODEL_BYTES_MAX = 200,
    ACCOUNT_BYTES_MAX = 120,
    VARIABLE_BYTES = 80,
    VARIABLES_MAX = 100000
};

typedef enum scalar_type { SCALAR_U32, SCALAR_U64, SCALAR_BOOL, SCALAR_LINE } scalar_type;

/* A value and its names.  In the environment it is GMA_SECTION_KEY, as the program was called that
 * had these settings first (J28). */
struct scalar {
    const char *section, *key;
    scalar_type type;
    size_t offset; /* in the configuration */
    uint64_t def, min, max;
    const char *formerly[2]; /* further variables */
};

#define AT(field) offsetof(struct tide_assistant_config, field)
static const struct scalar scalars[] = {
    {"models", "account", SCALAR_LINE, AT(model_account), 0, 1, ACCOUNT_BYTES_MAX, {0}},
    {"models",
     "fast",
     SCALAR_LINE,
     AT(model_fast),
     0,
     1,
     MODEL_BYTES_MAX,
     {"GMA_LLM_CLASSIFY_MODEL", "GMA_LLM_CONTEXT_MODEL"}},
    {"models",
     "better",
     SCALAR_LINE,
     AT(model_better),
     0,
     1,
     MODEL_BYTES_MAX,
     {"GMA_LLM_DRAFT_MODEL", NULL}},
    /* A watch ends after seven days; renewing it late leaves a gap without pushes. */
    {"sync", "watch_renewal_hours", SCALAR_U32, AT(watch_renewal_hours), 24, 1, 144, {0}},
    {"sync",
     "fallback_interval_minutes",
     SCALAR_U32,
     AT(fallback_interval_minutes),
     15,
     1,
     1440,
     {0}},
    {"sync", "full_sync_interval_hours", SCALAR_U32, AT(full_sync_interval_hours), 1, 1, 168, {0}},
    {"sync", "full_sync_days", SCALAR_U32, AT(full_sync_days), 10, 1, 3650, {0}},
    {"drafts", "rework_limit", SCALAR_U32, AT(rework_limit), 3, 0, 10, {0}},
    {"drafts", "max_tokens", SCALAR_U32, AT(draft_max_tokens), 2000, 100, 32000, {0}},
    {"drafts", "context_searches", SCALAR_U32, AT(context_searches), 3, 0, 3, {0}},
    {"drafts", "context_threads", SCALAR_U32, AT(context_threads), 5, 0, 20, {0}},
    {"drafts", "context_chars", SCALAR_U32, AT(context_chars), 2000, 100, 20000, {0}},
    {"drafts", "quote_original", SCALAR_BOOL, AT(quote_original), 0, 0, 1, {0}},
    {"budget", "tokens_per_day", SCALAR_U64, AT(tokens_per_day), 2000000, 0, 1000000000000, {0}},
};
#undef AT
enum { SCALARS = sizeof scalars / sizeof scalars[0] };
static const char *const sections[] = {"models", "sync", "drafts", "budget"};

static void *place_of(const struct tide_config_reader *reader, const struct scalar *scalar)
{
    return (char *)reader->config + scalar->offset;
}

static void put_number(const struct tide_config_reader *reader, const struct scalar *scalar,
                       uint64_t number)
{
    if (scalar->type == SCALAR_U64)
        *(uint64_t *)place_of(reader, scalar) = number;
    else if (scalar->type == SCALAR_U32)
        *(uint32_t *)place_of(reader, scalar) = (uint32_t)number;
    else
        *(bool *)place_of(reader, scalar) = number != 0;
}

static tide_status take_node(const struct tide_config_reader *reader, const struct scalar *scalar,
                             const struct tide_node *node)
{
    uint64_t number = 0;
    bool flag = false;
    if (scalar->type == SCALAR_LINE)
        return tide_config_line(reader, node, (size_t)scalar->max, place_of(reader, scalar));
    if (scalar->type == SCALAR_BOOL) {
        TIDE_TRY(tide_config_bool(reader, node, &flag));
        number = flag;
    } else {
        TIDE_TRY(tide_config_number(reader, node, scalar->min, scalar->max, &number));
    }
    put_number(reader, scalar, number);
    return TIDE_OK;
}

/* The sections, with their names checked. */
static tide_status check_sections(const struct tide_config_reader *reader,
                                  const struct tide_node *root)
{
    for (size_t s = 0; s < sizeof sections / sizeof sections[0]; s++) {
        const struct tide_node *section = tide_config_section(root, sections[s]);
        const char *known[SCALARS + 2];
        size_t count = 0;
        for (size_t i = 0; i < SCALARS; i++)
            if (strcmp(scalars[i].section, sections[s]) == 0)
                known[count++] = scalars[i].key;
        if (strcmp(sections[s], "drafts") == 0)
            known[count++] = "default_style"; /* people.c reads it */
        known[count] = NULL;
        if (section != NULL)
            TIDE_TRY(tide_config_map(reader, section, known));
    }
    return TIDE_OK;
}

/* ---- environment ----------------------------------------------------------------- */

static void variable_of(const struct scalar *scalar, char name[VARIABLE_BYTES])
{
    (void)snprintf(name, VARIABLE_BYTES, "GMA_%s_%s", scalar->section, scalar->key);
    for (char *c = name; *c != '\0'; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
}

/* The value of a variable; NULL: it is not set. */
static const char *value_of(const char *const *environment, const char *name)
{
    const size_t bytes = strlen(name);
    for (size_t i = 0; environment != NULL && environment[i] != NULL && i < VARIABLES_MAX; i++)
        if (strncmp(environment[i], name, bytes) == 0 && environment[i][bytes] == '=')
            return environment[i] + bytes + 1;
    return NULL;
}

/* Reads it as a value of the file would be; the message names the variable. */
static tide_status take_variable(const struct tide_config_reader *reader,
                                 const struct scalar *scalar, const char *name, const char *value)
{
    if (!tide_config_is_text(tide_text_of(value)))
        return tide_error_set(reader->err, TIDE_INVALID, "environment %s: is not a text in UTF-8",
                              name);
    char *copy = tide_arena_copy(reader->arena, value, strlen(value));
    if (copy == NULL)
        return tide_config_no_memory(reader);
    const struct tide_node node = {.text = tide_text_of(copy), .plain = true};
    tide_error why = {TIDE_OK, 0, ""};
    struct tide_assistant_source source = *reader->source;
    source.path = "environment";
    struct tide_config_reader other = *reader;
    other.source = &source;
    other.err = &why;
    const tide_status rc = take_node(&other, scalar, &node);
    if (rc == TIDE_OK)
        return rc;
    const char *reason = strstr(why.text, ": ");
    return tide_error_set(reader->err, rc, "environment %s: %s", name,
                          reason == NULL ? why.text : reason + 2);
}

static tide_status take_environment(const struct tide_config_reader *reader,
                                    const struct scalar *scalar)
{
    char own[VARIABLE_BYTES];
    variable_of(scalar, own);
    const char *const names[] = {own, scalar->formerly[0], scalar->formerly[1]};
    for (size_t i = 0; i < 3; i++) {
        const char *value =
            names[i] == NULL ? NULL : value_of(reader->source->environment, names[i]);
        if (value != NULL)
            return take_variable(reader, scalar, names[i], value);
    }
    return TIDE_OK;
}

static const char *variable_named(const void *arg, size_t index)
{
    return ((const char(*)[VARIABLE_BYTES])arg)[index];
}

/* A variable of one of our sections that names no value is a mistake.  Others of the former program
 * are not ours; its topic for pushes is set with the webhook. */
static tide_status check_variables(const struct tide_config_reader *reader)
{
    char known[SCALARS][VARIABLE_BYTES];
    for (size_t i = 0; i < SCALARS; i++)
        variable_of(&scalars[i], known[i]);
    const char *const *environment = reader->source->environment;
    for (size_t i = 0; environment != NULL && environment[i] != NULL && i < VARIABLES_MAX; i++) {
        const tide_text name = {environment[i], strcspn(environment[i], "=")};
        bool ours = false, good = tide_text_equal(name, TIDE_TEXT("GMA_SYNC_PUBSUB_TOPIC"));
        static const char *const prefixes[] = {"GMA_MODELS_", "GMA_SYNC_", "GMA_DRAFTS_",
                                               "GMA_BUDGET_"};
        for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++)
            ours = ours || strncmp(environment[i], prefixes[p], strlen(prefixes[p])) == 0;
        for (size_t k = 0; k < SCALARS; k++)
            good = good || tide_text_equal(name, tide_text_of(known[k]));
        if (!ours || good)
            continue;
        const char *nearest = tide_config_nearest(name, variable_named, known, SCALARS);
        return tide_error_set(reader->err, TIDE_INVALID,
                              "environment: there is no variable %.*s%s%s%s",
                              (int)(name.bytes > 80 ? 80 : name.bytes), name.data,
                              nearest == NULL ? "" : "; did you mean ",
                              nearest == NULL ? "" : nearest, nearest == NULL ? "" : "?");
    }
    return TIDE_OK;
}

tide_status tide_config_scalars(struct tide_config_reader *reader, const struct tide_node *root)
{
    TIDE_TRY(check_sections(reader, root));
    TIDE_TRY(check_variables(reader));
    for (size_t i = 0; i < SCALARS; i++) {
        const struct scalar *scalar = &scalars[i];
        if (scalar->type != SCALAR_LINE)
            put_number(reader, scalar, scalar->def);
        const struct tide_node *section = tide_config_section(root, scalar->section);
        const struct tide_node *node = tide_node_get(section, scalar->key);
        if (node != NULL)
            TIDE_TRY(take_node(reader, scalar, node));
        TIDE_TRY(take_environment(reader, scalar));
    }
    if (reader->config->model_fast.bytes == 0 || reader->config->model_better.bytes == 0)
        return tide_config_refuse(reader, root,
                                  "models.%s is missing: the name of a model of your endpoint",
                                  reader->config->model_fast.bytes == 0 ? "fast" : "better");
    return TIDE_OK;
}
