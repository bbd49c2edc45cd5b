/* Whether a value meets a schema. */
#include "cloudbox/chat/schema.h"
#include "cloudbox/gate/pattern.h"
#include "cloudbox/chat/parts.h"

#include "base/json.h"

#include <ctype.h>
#include <math.h>

struct check {
    const json_t *root;
    tide_arena *arena;
    size_t steps; /* left */
};

static bool valid(struct check *check, const json_t *schema, const json_t *value, int depth);

const json_t *box_schema_ref(const json_t *root, const json_t *schema)
{
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    if (ref == NULL)
        return schema;
    const json_t *at = root;
    if (ref[0] != '#')
        return NULL;
    ref++;
    while (at != NULL && *ref == '/') {
        char name[200];
        size_t bytes = 0;
        for (ref++; *ref != '\0' && *ref != '/' && bytes + 1 < sizeof name; ref++) {
            char c = *ref;
            if (c == '~' && (ref[1] == '0' || ref[1] == '1'))
                c = *++ref == '0' ? '~' : '/';
            name[bytes++] = c;
        }
        name[bytes] = '\0';
        uint64_t index = 0;
        at = json_is_array(at) && tide_text_to_u64((tide_text){name, bytes}, &index)
                 ? json_array_get(at, (size_t)index)
                 : json_object_get(at, name);
    }
    return *ref == '\0' ? at : NULL;
}

size_t box_utf8_count(tide_text text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.bytes; i++)
        count += ((unsigned char)text.data[i] & 0xc0) != 0x80 ? 1 : 0;
    return count;
}

bool box_schema_number(const json_t *schema, const char *key, double *number_out)
{
    const json_t *value = json_object_get(schema, key);
    if (!json_is_number(value))
        return false;
    *number_out = json_number_value(value);
    return true;
}

static bool type_is(const char *type, const json_t *value)
{
    if (strcmp(type, "object") == 0)
        return json_is_object(value);
    if (strcmp(type, "array") == 0)
        return json_is_array(value);
    if (strcmp(type, "string") == 0)
        return json_is_string(value);
    if (strcmp(type, "boolean") == 0)
        return json_is_boolean(value);
    if (strcmp(type, "null") == 0)
        return json_is_null(value);
    if (strcmp(type, "number") == 0)
        return json_is_number(value);
    if (strcmp(type, "integer") == 0)
        return json_is_integer(value) ||
               (json_is_real(value) && floor(json_real_value(value)) == json_real_value(value));
    return true;
}

static bool type_valid(const json_t *type, const json_t *value)
{
    if (json_is_string(type))
        return type_is(json_string_value(type), value);
    if (!json_is_array(type))
        return true;
    for (size_t i = 0; i < json_array_size(type); i++) {
        const char *name = json_string_value(json_array_get(type, i));
        if (name != NULL && type_is(name, value))
            return true;
    }
    return false;
}

static bool number_valid(const json_t *schema, const json_t *value)
{
    const double number = json_number_value(value);
    double bound = 0;
    if (box_schema_number(schema, "minimum", &bound) && number < bound)
        return false;
    if (box_schema_number(schema, "maximum", &bound) && number > bound)
        return false;
    if (box_schema_number(schema, "exclusiveMinimum", &bound) && number <= bound)
        return false;
    if (box_schema_number(schema, "exclusiveMaximum", &bound) && number >= bound)
        return false;
    if (box_schema_number(schema, "multipleOf", &bound) && bound > 0) {
        const double parts = number / bound;
        if (fabs(parts - round(parts)) > 1e-9 * fmax(1, fabs(parts)))
            return false;
    }
    return true;
}

bool box_format_valid(const char *format, tide_text text)
{
    static const struct {
        const char *format;
        const char *shape; /* 9: a digit, h: a hex digit, others stand for themselves */
    } shapes[] = {
        {"date", "9999-99-99"},
        {"time", "99:99:99Z"},
        {"date-time", "9999-99-99T99:99:99Z"},
        {"uuid", "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh"},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (strcmp(format, shapes[i].format) != 0)
            continue;
        if (text.bytes != strlen(shapes[i].shape))
            return false;
        for (size_t k = 0; k < text.bytes; k++) {
            const char want = shapes[i].shape[k];
            const int c = (unsigned char)text.data[k];
            if (want == '9' ? !isdigit(c) : want == 'h' ? !isxdigit(c) : c != want)
                return false;
        }
        return true;
    }
    if (strcmp(format, "email") == 0) {
        const char *at = memchr(text.data, '@', text.bytes);
        return at != NULL && at != text.data && memchr(text.data, ' ', text.bytes) == NULL &&
               at < text.data + text.bytes - 1;
    }
    if (strcmp(format, "uri") == 0 || strcmp(format, "url") == 0)
        return memmem(text.data, text.bytes, "://", 3) != NULL &&
               memchr(text.data, ' ', text.bytes) == NULL;
    return true;
}

static bool text_valid(struct check *check, const json_t *schema, const json_t *value)
{
    const tide_text text = {json_string_value(value), json_string_length(value)};
    const double count = (double)box_utf8_count(text);
    double bound = 0;
    if (box_schema_number(schema, "minLength", &bound) && count < bound)
        return false;
    if (box_schema_number(schema, "maxLength", &bound) && count > bound)
        return false;
    const char *format = json_string_value(json_object_get(schema, "format"));
    if (format != NULL && !box_format_valid(format, text))
        return false;
    const json_t *pattern = json_object_get(schema, "pattern");
    if (!json_is_string(pattern))
        return true;
    regex_t regex;
    if (!box_pattern_compile((tide_text){json_string_value(pattern), json_string_length(pattern)},
                             false, check->arena, &regex))
        return true; /* not understood is not broken */
    const bool found = regexec(&regex, text.data, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

static bool list_valid(struct check *check, const json_t *schema, const json_t *value, int depth)
{
    const size_t count = json_array_size(value);
    double bound = 0;
    if (box_schema_number(schema, "minItems", &bound) && (double)count < bound)
        return false;
    if (box_schema_number(schema, "maxItems", &bound) && (double)count > bound)
        return false;
    const json_t *items = json_object_get(schema, "items");
    for (size_t i = 0; i < count; i++) {
        if (items != NULL && !valid(check, items, json_array_get(value, i), depth + 1))
            return false;
        for (size_t k = 0; json_is_true(json_object_get(schema, "uniqueItems")) && k < i; k++)
            if (json_equal(json_array_get(value, i), json_array_get(value, k)))
                return false;
    }
    return true;
}

static bool object_valid(struct check *check, const json_t *schema, const json_t *value, int depth)
{
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *others = json_object_get(schema, "additionalProperties");
    const json_t *required = json_object_get(schema, "required");
    double bound = 0;
    if (box_schema_number(schema, "minProperties", &bound) &&
        (double)json_object_size(value) < bound)
        return false;
    if (box_schema_number(schema, "maxProperties", &bound) &&
        (double)json_object_size(value) > bound)
        return false;
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        if (name != NULL && json_object_get(value, name) == NULL)
            return false;
    }
    const char *key = NULL;
    json_t *item = NULL;
    json_object_foreach((json_t *)(uintptr_t)value, key, item)
    {
        const json_t *property = json_object_get(properties, key);
        if (property != NULL ? !valid(check, property, item, depth + 1)
                             : others != NULL && !valid(check, others, item, depth + 1))
            return false;
    }
    return true;
}

static bool choices_valid(struct check *check, const json_t *schema, const json_t *value, int depth)
{
    static const struct {
        const char *key;
        bool all;
        size_t most;
    } rules[] = {{"anyOf", false, SIZE_MAX}, {"oneOf", false, 1}, {"allOf", true, SIZE_MAX}};
    for (size_t r = 0; r < 3; r++) {
        const json_t *list = json_object_get(schema, rules[r].key);
        if (!json_is_array(list) || json_array_size(list) == 0)
            continue;
        size_t met = 0;
        for (size_t i = 0; i < json_array_size(list); i++)
            met += valid(check, json_array_get(list, i), value, depth + 1) ? 1 : 0;
        if (met == 0 || met > rules[r].most || (rules[r].all && met < json_array_size(list)))
            return false;
    }
    const json_t *never = json_object_get(schema, "not");
    return never == NULL || !valid(check, never, value, depth + 1);
}

static bool valid(struct check *check, const json_t *schema, const json_t *value, int depth)
{
    if (json_is_false(schema))
        return false;
    if (!json_is_object(schema) || depth > BOX_SCHEMA_DEPTH_MAX * 2 || check->steps == 0)
        return true;
    check->steps--;
    const json_t *meant = box_schema_ref(check->root, schema);
    if (meant != schema)
        return meant == NULL || valid(check, meant, value, depth + 1);
    const json_t *wanted = json_object_get(schema, "const");
    if (wanted != NULL && !json_equal(wanted, value))
        return false;
    const json_t *list = json_object_get(schema, "enum");
    bool listed = !json_is_array(list);
    for (size_t i = 0; !listed && i < json_array_size(list); i++)
        listed = json_equal(json_array_get(list, i), value);
    if (!listed || !type_valid(json_object_get(schema, "type"), value) ||
        !choices_valid(check, schema, value, depth))
        return false;
    if (json_is_number(value))
        return number_valid(schema, value);
    if (json_is_string(value))
        return text_valid(check, schema, value);
    if (json_is_array(value))
        return list_valid(check, schema, value, depth);
    return !json_is_object(value) || object_valid(check, schema, value, depth);
}

bool box_schema_valid(const json_t *schema, const json_t *value, tide_arena *arena)
{
    struct check check = {schema, arena, BOX_SCHEMA_STEPS_MAX * 20};
    return valid(&check, schema, value, 0);
}
