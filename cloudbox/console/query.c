#include "cloudbox/console/query.h"

#include "base/check.h"
#include "cloudbox/gate/pattern.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- names ---- */

/* "BY_PAGE", "byPage" and "by_page" are one name. */
static bool folded_equal(tide_text text, const char *folded)
{
    size_t at = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        char c = text.data[i];
        if (c == '_')
            continue;
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (folded[at] == '\0' || folded[at++] != c)
            return false;
    }
    return folded[at] == '\0';
}

struct name {
    const char *folded;
    int value;
};

static const struct name dimension_names[] = {
    {"date", BOX_BY_DATE},
    {"hour", BOX_BY_HOUR},
    {"query", BOX_BY_QUERY},
    {"page", BOX_BY_PAGE},
    {"country", BOX_BY_COUNTRY},
    {"device", BOX_BY_DEVICE},
    {"searchappearance", BOX_BY_APPEARANCE},
    {NULL, 0},
};
static const struct name type_names[] = {
    {"web", BOX_SEARCH_WEB},
    {"image", BOX_SEARCH_IMAGE},
    {"video", BOX_SEARCH_VIDEO},
    {"news", BOX_SEARCH_NEWS},
    {"discover", BOX_SEARCH_DISCOVER},
    {"googlenews", BOX_SEARCH_GOOGLE_NEWS},
    {NULL, 0},
};
static const struct name state_names[] = {
    {"final", BOX_DATA_FINAL},
    {"datastateunspecified", BOX_DATA_FINAL},
    {"all", BOX_DATA_ALL},
    {"hourlyall", BOX_DATA_HOURLY},
    {NULL, 0},
};
static const struct name aggregation_names[] = {
    {"auto", BOX_AGGREGATE_AUTO},
    {"byproperty", BOX_AGGREGATE_PROPERTY},
    {"bypage", BOX_AGGREGATE_PAGE},
    {"bynewsshowcasepanel", BOX_AGGREGATE_PANEL},
    {NULL, 0},
};
/* The kind of the filter, plus 8 when it is negated. */
static const struct name operator_names[] = {
    {"equals", BOX_FILTER_EQUALS},
    {"notequals", BOX_FILTER_EQUALS + 8},
    {"contains", BOX_FILTER_CONTAINS},
    {"notcontains", BOX_FILTER_CONTAINS + 8},
    {"includingregex", BOX_FILTER_REGEX},
    {"excludingregex", BOX_FILTER_REGEX + 8},
    {NULL, 0},
};
static const struct name group_names[] = {{"and", 0}, {NULL, 0}};

__attribute__((format(printf, 2, 3))) static bool refuse(struct box_call *call, const char *format,
                                                         ...)
{
    char message[900];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    box_fail(call, 400, "global", "invalidParameter", "INVALID_ARGUMENT", "%s", message);
    return false;
}

static tide_text text_of(const json_t *value)
{
    return (tide_text){json_string_value(value), json_string_length(value)};
}

static bool name_read(struct box_call *call, const char *field, const json_t *value,
                      const struct name *names, int *value_out)
{
    for (; json_is_string(value) && names->folded != NULL; names++)
        if (folded_equal(text_of(value), names->folded)) {
            *value_out = names->value;
            return true;
        }
    char *shown = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    refuse(call, "Invalid value at '%s', %.200s", field, shown == NULL ? "?" : shown);
    free(shown);
    return false;
}

/* ---- fields ---- */

/* A message's fields, each in both spellings Google's JSON allows. */
struct field {
    const char *camel;
    const char *snake;
};

static const struct field query_fields[] = {
    {"startDate", "start_date"},
    {"endDate", "end_date"},
    {"dimensions", "dimensions"},
    {"type", "type"},
    {"searchType", "search_type"},
    {"dimensionFilterGroups", "dimension_filter_groups"},
    {"aggregationType", "aggregation_type"},
    {"rowLimit", "row_limit"},
    {"startRow", "start_row"},
    {"dataState", "data_state"},
    {NULL, NULL},
};
static const struct field group_fields[] = {
    {"groupType", "group_type"}, {"filters", "filters"}, {NULL, NULL}};
static const struct field filter_fields[] = {{"dimension", "dimension"},
                                             {"operator", "operator"},
                                             {"expression", "expression"},
                                             {NULL, NULL}};

static bool known_fields(struct box_call *call, const json_t *object, const struct field *fields,
                         const char *where)
{
    if (!json_is_object(object))
        return refuse(call, "Invalid value at '%s': an object is expected.", where);
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        const struct field *field = fields;
        while (field->camel != NULL && strcmp(key, field->camel) != 0 &&
               strcmp(key, field->snake) != 0)
            field++;
        if (field->camel == NULL) {
            box_fail(call, 400, "global", "badRequest", "INVALID_ARGUMENT",
                     "Invalid JSON payload received. Unknown name \"%.100s\"%s%s%s: "
                     "Cannot find field.",
                     key, where[0] == '\0' ? "" : " at '", where, where[0] == '\0' ? "" : "'");
            return false;
        }
    }
    return true;
}

/* NULL when absent or null. */
static const json_t *field_get(const json_t *object, const char *camel, const char *snake)
{
    const json_t *value = json_object_get(object, camel);
    if (value == NULL)
        value = json_object_get(object, snake);
    return json_is_null(value) ? NULL : value;
}

/* A number, or a number in quotes as JSON of 64-bit numbers has it. */
static bool whole_read(struct box_call *call, const char *field, const json_t *value, int64_t low,
                       int64_t high, const char *rule, uint32_t *number_out)
{
    if (value == NULL)
        return true;
    int64_t number = 0;
    bool whole = json_is_integer(value);
    if (whole)
        number = json_integer_value(value);
    else if (json_is_string(value))
        whole = tide_text_to_i64(text_of(value), &number);
    else if (json_is_real(value) && fabs(json_real_value(value)) < 1e9) {
        number = (int64_t)json_real_value(value);
        whole = (double)number == json_real_value(value);
    }
    if (!whole) {
        char *shown = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        refuse(call, "Invalid value at '%s' (TYPE_INT32), %.100s", field,
               shown == NULL ? "?" : shown);
        free(shown);
        return false;
    }
    if (number < low || number > high)
        return refuse(call, "Invalid value at '%s' (TYPE_INT32), %lld. %s", field,
                      (long long)number, rule);
    *number_out = (uint32_t)number;
    return true;
}

static bool day_read(struct box_call *call, const json_t *body, const char *camel,
                     const char *snake, int32_t *day_out)
{
    const json_t *value = field_get(body, camel, snake);
    if (value == NULL)
        return refuse(call, "Required parameter is missing: '%s'.", camel);
    if (!json_is_string(value) || !box_day_parse(text_of(value), day_out))
        return refuse(call, "Invalid value at '%s': a date in the format YYYY-MM-DD is expected.",
                      snake);
    return true;
}

/* ---- filters ---- */

static bool regex_read(struct box_call *call, struct box_filter *filter)
{
    const tide_text text = {filter->text, filter->bytes};
    if (!box_pattern_compile(text, true, call->scratch, &filter->regex))
        return refuse(call, "Invalid regular expression: '%.200s'.", filter->text);
    return true;
}

static bool filter_read(struct box_call *call, const json_t *value, struct box_analytics *query)
{
    if (!known_fields(call, value, filter_fields, "dimension_filter_groups.filters"))
        return false;
    if (query->filters_count == BOX_FILTERS_MAX)
        return refuse(call, "Too many filters: at most %d are allowed.", BOX_FILTERS_MAX);
    const json_t *dimension = field_get(value, "dimension", "dimension");
    const json_t *expression = field_get(value, "expression", "expression");
    const json_t *how = field_get(value, "operator", "operator");
    int number = 0;
    int kind = BOX_FILTER_EQUALS;
    if (dimension == NULL || expression == NULL)
        return refuse(call, "A filter needs a dimension and an expression.");
    if (!name_read(call, "dimension_filter_groups.filters.dimension", dimension, dimension_names,
                   &number) ||
        (how != NULL &&
         !name_read(call, "dimension_filter_groups.filters.operator", how, operator_names, &kind)))
        return false;
    if (number == BOX_BY_DATE || number == BOX_BY_HOUR)
        return refuse(call, "Invalid value at 'dimension_filter_groups.filters.dimension': dates "
                            "and hours cannot be filtered, use the date range.");
    if (!json_is_string(expression) || json_string_length(expression) == 0 ||
        json_string_length(expression) > BOX_FILTER_BYTES_MAX ||
        memchr(json_string_value(expression), '\0', json_string_length(expression)) != NULL)
        return refuse(call,
                      "Invalid value at 'dimension_filter_groups.filters.expression': a text of 1 "
                      "to %d bytes is expected.",
                      BOX_FILTER_BYTES_MAX);

    struct box_filter *filter = &query->filters[query->filters_count];
    filter->dimension = (box_dimension)number;
    filter->negated = kind >= 8;
    filter->kind = kind & 7;
    filter->bytes = json_string_length(expression);
    filter->text = tide_arena_copy(call->scratch, json_string_value(expression), filter->bytes);
    TIDE_ASSERT(filter->text != NULL);
    if (filter->kind == BOX_FILTER_REGEX && !regex_read(call, filter))
        return false;
    for (size_t i = 0; filter->kind != BOX_FILTER_REGEX && i < filter->bytes; i++)
        if (filter->text[i] >= 'A' && filter->text[i] <= 'Z')
            filter->text[i] = (char)(filter->text[i] - 'A' + 'a');
    query->filters_count++; /* only now is there a regex to free */
    query->filtered |= 1u << filter->dimension;
    return true;
}

static bool groups_read(struct box_call *call, const json_t *groups, struct box_analytics *query)
{
    if (groups == NULL)
        return true;
    if (!json_is_array(groups))
        return refuse(call, "Invalid value at 'dimension_filter_groups': a list is expected.");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);
        if (!known_fields(call, group, group_fields, "dimension_filter_groups"))
            return false;
        const json_t *type = field_get(group, "groupType", "group_type");
        const json_t *filters = field_get(group, "filters", "filters");
        int ignored = 0;
        if (type != NULL &&
            !name_read(call, "dimension_filter_groups.group_type", type, group_names, &ignored))
            return false;
        if (filters != NULL && !json_is_array(filters))
            return refuse(call, "Invalid value at 'dimension_filter_groups.filters': a list is "
                                "expected.");
        for (size_t k = 0; k < json_array_size(filters); k++)
            if (!filter_read(call, json_array_get(filters, k), query))
                return false;
    }
    return true;
}

bool box_filter_passes(const struct box_filter *filter, const char *text, size_t bytes)
{
    bool found = false;
    if (filter->kind == BOX_FILTER_REGEX) {
        found = regexec(&filter->regex, text, 0, NULL, 0) == 0;
    } else {
        char lower[BOX_KEY_BYTES_MAX + 1];
        TIDE_ASSERT(bytes <= BOX_KEY_BYTES_MAX);
        for (size_t i = 0; i < bytes; i++)
            lower[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
        if (filter->kind == BOX_FILTER_EQUALS)
            found = bytes == filter->bytes && memcmp(lower, filter->text, bytes) == 0;
        else
            found = memmem(lower, bytes, filter->text, filter->bytes) != NULL;
    }
    return found != filter->negated;
}

/* ---- the whole query ---- */

static bool dimensions_read(struct box_call *call, const json_t *list, struct box_analytics *query)
{
    if (list == NULL)
        return true;
    if (!json_is_array(list))
        return refuse(call, "Invalid value at 'dimensions': a list is expected.");
    for (size_t i = 0; i < json_array_size(list); i++) {
        int number = 0;
        if (!name_read(call, "dimensions", json_array_get(list, i), dimension_names, &number))
            return false;
        if ((query->grouped >> number & 1u) != 0)
            return refuse(call, "Invalid value at 'dimensions': a dimension is given twice.");
        query->grouped |= 1u << number;
        query->dimensions[query->dimensions_count++] = (box_dimension)number;
    }
    return true;
}

static bool names_read(struct box_call *call, const json_t *body, struct box_analytics *query)
{
    const json_t *type = field_get(body, "type", "type");
    const json_t *old_type = field_get(body, "searchType", "search_type");
    const json_t *state = field_get(body, "dataState", "data_state");
    const json_t *aggregation = field_get(body, "aggregationType", "aggregation_type");
    int values[4] = {BOX_SEARCH_WEB, BOX_SEARCH_WEB, BOX_DATA_FINAL, BOX_AGGREGATE_AUTO};
    if ((type != NULL && !name_read(call, "type", type, type_names, &values[0])) ||
        (old_type != NULL && !name_read(call, "search_type", old_type, type_names, &values[1])) ||
        (state != NULL && !name_read(call, "data_state", state, state_names, &values[2])) ||
        (aggregation != NULL &&
         !name_read(call, "aggregation_type", aggregation, aggregation_names, &values[3])))
        return false;
    if (type != NULL && old_type != NULL && values[0] != values[1])
        return refuse(call, "'type' and 'searchType' contradict each other.");
    query->type = (box_search)(type != NULL ? values[0] : values[1]);
    query->state = (box_data_state)values[2];
    query->aggregation = (box_aggregation)values[3];
    return true;
}

static bool panel_is_filtered(const struct box_analytics *query)
{
    for (size_t i = 0; i < query->filters_count; i++) {
        const struct box_filter *filter = &query->filters[i];
        if (filter->dimension == BOX_BY_APPEARANCE && filter->kind == BOX_FILTER_EQUALS &&
            !filter->negated && strcmp(filter->text, "news_showcase") == 0)
            return true;
    }
    return false;
}

/* What may not be combined. */
static bool combination_check(struct box_call *call, struct box_analytics *query)
{
    const bool feed = query->type == BOX_SEARCH_DISCOVER || query->type == BOX_SEARCH_GOOGLE_NEWS;
    const bool by_page = box_analytics_uses(query, BOX_BY_PAGE);
    if ((query->grouped >> BOX_BY_HOUR & 1u) != 0 && query->state != BOX_DATA_HOURLY)
        return refuse(call, "Grouping by hour requires the data state HOURLY_ALL.");
    if ((query->grouped >> BOX_BY_APPEARANCE & 1u) != 0 && query->dimensions_count > 1)
        return refuse(call, "searchAppearance cannot be grouped with another dimension: list the "
                            "appearances first, then filter by one.");
    if (feed && box_analytics_uses(query, BOX_BY_QUERY))
        return refuse(call, "The dimension 'query' is not available for this type.");
    if (query->type == BOX_SEARCH_DISCOVER && box_analytics_uses(query, BOX_BY_DEVICE))
        return refuse(call, "The dimension 'device' is not available for this type.");

    query->aggregated = query->aggregation;
    switch (query->aggregation) {
    case BOX_AGGREGATE_AUTO:
        query->aggregated = by_page || feed ? BOX_AGGREGATE_PAGE : BOX_AGGREGATE_PROPERTY;
        break;
    case BOX_AGGREGATE_PROPERTY:
        if (by_page)
            return refuse(call, "BY_PROPERTY aggregation is not supported when grouping or "
                                "filtering by page.");
        if (feed)
            return refuse(call, "BY_PROPERTY aggregation is not supported for this type.");
        break;
    case BOX_AGGREGATE_PANEL:
        if (!feed || by_page || !panel_is_filtered(query))
            return refuse(call, "BY_NEWS_SHOWCASE_PANEL aggregation requires the type DISCOVER or "
                                "GOOGLE_NEWS and a filter for the appearance NEWS_SHOWCASE, and "
                                "none by page.");
        break;
    case BOX_AGGREGATE_PAGE:
        break;
    }
    return true;
}

bool box_analytics_parse(struct box_call *call, const json_t *body, struct box_analytics *query)
{
    *query = (struct box_analytics){.row_limit = BOX_ROW_LIMIT_DEFAULT};
    if (!known_fields(call, body, query_fields, "") ||
        !day_read(call, body, "startDate", "start_date", &query->first_day) ||
        !day_read(call, body, "endDate", "end_date", &query->last_day))
        return false;
    if (query->first_day > query->last_day)
        return refuse(call, "Invalid value at 'start_date': it is after 'end_date'.");
    return dimensions_read(call, field_get(body, "dimensions", "dimensions"), query) &&
           names_read(call, body, query) &&
           whole_read(call, "row_limit", field_get(body, "rowLimit", "row_limit"), 1,
                      BOX_ROW_LIMIT_MAX, "A number from 1 to 25000 is expected.",
                      &query->row_limit) &&
           whole_read(call, "start_row", field_get(body, "startRow", "start_row"), 0, INT32_MAX,
                      "A number that is not negative is expected.", &query->start_row) &&
           groups_read(call, field_get(body, "dimensionFilterGroups", "dimension_filter_groups"),
                       query) &&
           combination_check(call, query);
}

void box_analytics_done(struct box_analytics *query)
{
    for (size_t i = 0; i < query->filters_count; i++)
        if (query->filters[i].kind == BOX_FILTER_REGEX)
            regfree(&query->filters[i].regex);
    query->filters_count = 0;
}
