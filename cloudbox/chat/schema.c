#include "cloudbox/chat/schema.h"

#include "base/check.h"
#include "base/json.h"
#include "cloudbox/chat/parts.h"
#include "cloudbox/gate/pattern.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>

/* One answer being filled. */
struct filling {
    const struct box_fill *fill;
    const json_t *root;
    size_t steps; /* left (BSCM2) */
};

/* Where we are: the property's name and which item of a list it is. */
struct spot {
    const char *name;
    size_t index;
    int depth;
};

static json_t *fill_value(struct filling *filling, const json_t *schema, struct spot spot);

/* ---- names ---- */

static bool named(const struct spot *spot, const char *const *words)
{
    char folded[64];
    box_text_fold(tide_text_of(spot->name), folded, sizeof folded);
    for (size_t i = 0; words[i] != NULL; i++)
        if (strstr(folded, words[i]) != NULL)
            return true;
    return false;
}

#define NAMED(spot, ...) named((spot), (const char *const[]){__VA_ARGS__, NULL})

static bool named_id(const struct spot *spot)
{
    char folded[64];
    box_text_fold(tide_text_of(spot->name), folded, sizeof folded);
    const size_t bytes = strlen(folded);
    return (bytes >= 2 && strcmp(folded + bytes - 2, "id") == 0) ||
           (bytes >= 3 && strcmp(folded + bytes - 3, "ids") == 0);
}

tide_text box_context_find(tide_text context, const char *name)
{
    char wanted[64];
    box_text_fold(tide_text_of(name), wanted, sizeof wanted);
    for (size_t i = 1; wanted[0] != '\0' && i < context.bytes; i++) {
        if (context.data[i] != ':' && context.data[i] != '=')
            continue;
        size_t end = i;
        while (end > 0 && strchr("\"'` *", context.data[end - 1]) != NULL &&
               context.data[end - 1] != '\0')
            end--;
        size_t from = end;
        while (from > 0 && end - from < 60 &&
               (isalnum((unsigned char)context.data[from - 1]) || context.data[from - 1] == '_' ||
                context.data[from - 1] == '-' || context.data[from - 1] == ' '))
            from--;
        char found[64];
        box_text_fold((tide_text){context.data + from, end - from}, found, sizeof found);
        if (strcmp(found, wanted) != 0)
            continue;
        size_t at = i + 1;
        while (at < context.bytes && (context.data[at] == ' ' || context.data[at] == '*'))
            at++;
        const bool quoted = at < context.bytes && context.data[at] == '"';
        at += quoted ? 1 : 0;
        size_t to = at;
        while (to < context.bytes &&
               (quoted ? context.data[to] != '"' : strchr("\n\r,;}])", context.data[to]) == NULL))
            to++;
        while (!quoted && to > at && isspace((unsigned char)context.data[to - 1]))
            to--;
        if (to > at && to - at < 500 && memchr("{[", context.data[at], 2) == NULL)
            return (tide_text){context.data + at, to - at};
    }
    return TIDE_TEXT_NONE;
}

/* ---- texts ---- */

static tide_text listed(const struct box_text_list *list, size_t index, tide_text fallback)
{
    return list->count == 0 ? fallback : list->items[index % list->count];
}

/* The fact that belongs under that name. */
static tide_text text_for(const struct filling *filling, const struct spot *spot)
{
    const struct box_facts *facts = filling->fill->facts;
    const tide_text said = box_context_find(filling->fill->context, spot->name);
    const tide_text fallback = TIDE_TEXT("someone@example.com");
    if (named_id(spot))
        return said.data != NULL ? said : TIDE_TEXT("unknown");
    if (NAMED(spot, "mail", "address", "recipient", "sender") ||
        strcasecmp(spot->name, "to") == 0 || strcasecmp(spot->name, "from") == 0)
        return listed(&facts->emails, spot->index, fallback);
    if (NAMED(spot, "subject", "title"))
        return facts->subject.bytes > 0 ? facts->subject : TIDE_TEXT("(no subject)");
    if (NAMED(spot, "body", "draft", "reply", "message", "content", "text"))
        return filling->fill->draft;
    if (NAMED(spot, "task", "todo", "action", "step"))
        return listed(&facts->tasks, spot->index, facts->summary);
    if (NAMED(spot, "summary", "reason", "expla", "note", "descri", "rationale"))
        return facts->summary;
    if (NAMED(spot, "query", "queries", "search", "keyword", "tag", "topic", "term"))
        return listed(&facts->keywords, spot->index, TIDE_TEXT("inbox"));
    if (NAMED(spot, "lang"))
        return tide_text_of(facts->language);
    if (NAMED(spot, "categor", "label", "class", "kind", "type", "intent"))
        return tide_text_of(box_kind_name(box_facts_kind(facts)));
    if (NAMED(spot, "style", "tone"))
        return facts->scores[BOX_MAIL_PERSONAL] > 3 ? TIDE_TEXT("personal") : TIDE_TEXT("business");
    if (NAMED(spot, "date", "due", "deadline", "when"))
        return listed(&facts->dates, spot->index, TIDE_TEXT("2026-12-31"));
    if (NAMED(spot, "phone", "tel"))
        return listed(&facts->phones, spot->index, TIDE_TEXT("+000000000"));
    if (NAMED(spot, "url", "link", "website"))
        return listed(&facts->urls, spot->index, TIDE_TEXT("https://example.com/"));
    if (NAMED(spot, "currency"))
        return tide_text_of(facts->currency);
    if (NAMED(spot, "name", "contact", "person", "who"))
        return facts->name.bytes > 0 ? facts->name : TIDE_TEXT("unknown");
    if (NAMED(spot, "confidence"))
        return TIDE_TEXT("high");
    if (NAMED(spot, "priority", "urgency"))
        return facts->scores[BOX_MAIL_URGENT] > 3 ? TIDE_TEXT("high") : TIDE_TEXT("normal");
    return said.data != NULL ? said : facts->summary;
}

/* Makes a text fit its format and its least and greatest length. */
static void text_fit(const json_t *schema, tide_text text, tide_buf *out)
{
    static const char *const defaults[][2] = {
        {"date", "2026-12-31"},
        {"time", "12:00:00Z"},
        {"date-time", "2026-12-31T12:00:00Z"},
        {"uuid", "6f1d1f60-0000-4000-8000-000000000001"},
        {"email", "someone@example.com"},
        {"uri", "https://example.com/"},
        {"url", "https://example.com/"},
    };
    const char *format = json_string_value(json_object_get(schema, "format"));
    double bound = 0;
    if (format != NULL && !box_format_valid(format, text))
        for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
            if (strcmp(format, defaults[i][0]) == 0)
                text = tide_text_of(defaults[i][1]);
    size_t count = box_utf8_count(text);
    size_t bytes = text.bytes < BOX_SCHEMA_TEXT_BYTES_MAX ? text.bytes : BOX_SCHEMA_TEXT_BYTES_MAX;
    while (bytes < text.bytes && bytes > 0 && ((unsigned char)text.data[bytes] & 0xc0) == 0x80)
        bytes--;
    if (box_schema_number(schema, "maxLength", &bound))
        while (bytes > 0 && (double)box_utf8_count((tide_text){text.data, bytes}) > bound) {
            bytes--;
            while (bytes > 0 && ((unsigned char)text.data[bytes] & 0xc0) == 0x80)
                bytes--;
        }
    TIDE_ASSERT(tide_buf_add(out, text.data, bytes) == TIDE_OK);
    count = box_utf8_count(tide_buf_text(out));
    if (box_schema_number(schema, "minLength", &bound))
        for (; (double)count < bound && count < BOX_SCHEMA_TEXT_BYTES_MAX; count++)
            TIDE_ASSERT(tide_buf_add(out, ".", 1) == TIDE_OK);
}

static json_t *text_value(const tide_buf *text)
{
    json_t *value = json_stringn(tide_buf_cstr(text), text->bytes);
    return value != NULL ? value : json_string(""); /* not UTF-8 */
}

/* A text by its pattern: first as short as it gets, then longer. */
static json_t *fill_pattern(const struct filling *filling, const json_t *schema, tide_buf *text)
{
    const json_t *pattern = json_object_get(schema, "pattern");
    double least = 0;
    if (!box_schema_number(schema, "minLength", &least) || least < 0)
        least = 0;
    const size_t tries[] = {0, 1, 2, least > 1000 ? 1000 : (size_t)least};
    for (size_t i = 0; i < 4; i++) {
        tide_buf_clear(text);
        box_pattern_example((tide_text){json_string_value(pattern), json_string_length(pattern)},
                            tries[i], text);
        json_t *value = text_value(text);
        if (box_schema_valid(schema, value, filling->fill->arena))
            return value;
        json_decref(value);
    }
    return text_value(text);
}

static json_t *fill_text(const struct filling *filling, const json_t *schema,
                         const struct spot *spot)
{
    tide_auto_buf text = tide_buf_heap(4 * BOX_SCHEMA_TEXT_BYTES_MAX + 64);
    text_fit(schema, text_for(filling, spot), &text);
    json_t *value = text_value(&text);
    if (json_is_string(json_object_get(schema, "pattern")) &&
        !box_schema_valid(schema, value, filling->fill->arena)) {
        json_decref(value);
        value = fill_pattern(filling, schema, &text);
    }
    return value;
}

/* ---- numbers and truths ---- */

static json_t *fill_number(const struct filling *filling, const json_t *schema,
                           const struct spot *spot, bool whole)
{
    const struct box_facts *facts = filling->fill->facts;
    double number = 1;
    if (NAMED(spot, "confidence", "score", "probab", "certainty"))
        number = 0.9;
    else if (NAMED(spot, "amount", "total", "price", "sum") && facts->has_amount)
        number = facts->amount;
    else if (NAMED(spot, "count", "number"))
        number = (double)facts->tasks.count;
    else if (NAMED(spot, "priority", "urgency"))
        number = facts->scores[BOX_MAIL_URGENT] > 3 ? 1 : 3;
    double low = -1e15;
    double high = 1e15;
    double bound = 0;
    double step = whole ? 1 : 0;
    if (box_schema_number(schema, "multipleOf", &bound) && bound > 0)
        step = bound;
    const double hair = step > 0 ? step : 1e-3;
    if (box_schema_number(schema, "minimum", &bound))
        low = bound;
    if (box_schema_number(schema, "exclusiveMinimum", &bound) && bound + hair > low)
        low = step > 0 ? (floor(bound / step) + 1) * step : bound + hair;
    if (box_schema_number(schema, "maximum", &bound))
        high = bound;
    if (box_schema_number(schema, "exclusiveMaximum", &bound) && bound - hair < high)
        high = step > 0 ? (ceil(bound / step) - 1) * step : bound - hair;
    if (low > high)
        low = high = (low + high) / 2; /* a narrow open range; or nothing fits */
    number += (double)spot->index * (step > 0 ? step : 1);
    number = number < low ? low : number > high ? high : number;
    if (step > 0) {
        number = round(number / step) * step;
        number += number < low ? step : number > high ? -step : 0;
        if (number < low) /* the least may lie between two steps */
            number = ceil(low / step) * step;
    }
    if (!isfinite(number))
        number = 0;
    if (floor(number) == number && fabs(number) < 1e15)
        return json_integer((json_int_t)number);
    return json_real(number);
}

static json_t *fill_truth(const struct filling *filling, const struct spot *spot)
{
    const struct box_facts *facts = filling->fill->facts;
    if (NAMED(spot, "automat", "bulk"))
        return json_boolean(facts->automated != (spot->index % 2 != 0));
    const int suit = box_facts_suit(facts, tide_text_of(spot->name));
    return json_boolean((suit > 6) != (spot->index % 2 != 0));
}

/* ---- choices ---- */

static size_t enum_by_words(const json_t *list, const char *const *words)
{
    for (size_t w = 0; words[w] != NULL; w++)
        for (size_t i = 0; i < json_array_size(list); i++) {
            const char *text = json_string_value(json_array_get(list, i));
            if (text != NULL && strcasecmp(text, words[w]) == 0)
                return i;
        }
    return SIZE_MAX;
}

#define ENUM(list, ...) enum_by_words((list), (const char *const[]){__VA_ARGS__, NULL})

/* A choice that is not about the kind of mail; SIZE_MAX: no idea. */
static size_t enum_by_name(const struct box_facts *facts, const json_t *list,
                           const struct spot *spot)
{
    if (NAMED(spot, "lang"))
        return ENUM(list, facts->language);
    if (NAMED(spot, "priority", "urgency", "importance", "severity")) {
        if (facts->scores[BOX_MAIL_URGENT] > 3)
            return ENUM(list, "urgent", "critical", "highest", "high", "important");
        if (facts->automated)
            return ENUM(list, "lowest", "low", "none", "normal", "medium");
        return ENUM(list, "normal", "medium", "default", "low");
    }
    if (NAMED(spot, "confidence", "certainty"))
        return ENUM(list, "high", "medium", "low");
    if (NAMED(spot, "sentiment", "mood"))
        return facts->scores[BOX_MAIL_URGENT] > 3 ? ENUM(list, "negative", "angry", "neutral")
                                                  : ENUM(list, "neutral", "positive");
    if (NAMED(spot, "style", "tone"))
        return facts->scores[BOX_MAIL_PERSONAL] > 3
                   ? ENUM(list, "personal", "casual", "informal", "friendly", "business")
                   : ENUM(list, "business", "formal", "professional", "neutral");
    return SIZE_MAX;
}

static json_t *fill_enum(const struct filling *filling, const json_t *list, const struct spot *spot)
{
    const struct box_facts *facts = filling->fill->facts;
    const size_t count = json_array_size(list);
    size_t best = enum_by_name(facts, list, spot);
    if (best == SIZE_MAX) {
        int most = -1;
        for (size_t i = 0; i < count; i++) {
            const json_t *item = json_array_get(list, i);
            const tide_text text = {json_string_value(item), json_string_length(item)};
            const int suit = json_is_string(item) ? box_facts_suit(facts, text) : -1;
            if (suit > most) {
                most = suit;
                best = i;
            }
        }
    }
    for (size_t i = 0; best == SIZE_MAX && i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (text != NULL && text[0] != '\0' && box_text_has_word(facts->body, text))
            best = i;
    }
    if (best == SIZE_MAX)
        best = 0;
    return json_deep_copy(json_array_get(list, (best + spot->index) % count));
}

/* ---- lists and objects ---- */

static size_t items_wanted(const struct filling *filling, const struct spot *spot)
{
    const struct box_facts *facts = filling->fill->facts;
    if (NAMED(spot, "task", "todo", "action", "step"))
        return facts->tasks.count;
    if (NAMED(spot, "mail", "contact", "recipient", "address", "people"))
        return facts->emails.count;
    if (NAMED(spot, "keyword", "tag", "topic", "quer", "search", "term"))
        return facts->keywords.count < 3 ? facts->keywords.count : 3;
    if (NAMED(spot, "date"))
        return facts->dates.count;
    if (NAMED(spot, "link", "url"))
        return facts->urls.count;
    if (NAMED(spot, "attachment", "cc", "bcc"))
        return 0;
    return 1;
}

static bool list_has(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value))
            return true;
    return false;
}

/* "a", then "a 2", "a 3": for lists whose items must differ. */
static json_t *distinct_text(const json_t *value, size_t number)
{
    char text[BOX_SCHEMA_TEXT_BYTES_MAX + 32];
    (void)snprintf(text, sizeof text, "%.*s %zu", BOX_SCHEMA_TEXT_BYTES_MAX,
                   json_string_value(value), number);
    json_t *other = json_string(text);
    return other != NULL ? other : json_incref((json_t *)(uintptr_t)value);
}

static json_t *fill_list(struct filling *filling, const json_t *schema, const struct spot *spot)
{
    json_t *list = json_array();
    const json_t *items = json_object_get(schema, "items");
    const bool unique = json_is_true(json_object_get(schema, "uniqueItems"));
    double least = 0;
    double most = BOX_SCHEMA_ITEMS_MAX;
    (void)box_schema_number(schema, "minItems", &least);
    (void)box_schema_number(schema, "maxItems", &most);
    double wanted = (double)items_wanted(filling, spot);
    if (spot->depth > BOX_SCHEMA_DEPTH_MAX / 2)
        wanted = 0; /* a schema inside itself ends here, if it may */
    wanted = wanted > most ? most : wanted;
    wanted = wanted < least ? least : wanted;
    wanted = wanted > BOX_SCHEMA_ITEMS_MAX ? BOX_SCHEMA_ITEMS_MAX : wanted;
    for (size_t i = 0; (double)json_array_size(list) < wanted && i < 4 * BOX_SCHEMA_ITEMS_MAX;
         i++) {
        const struct spot place = {spot->name, i, spot->depth + 1};
        json_t *value = fill_value(filling, items, place);
        if (unique && list_has(list, value) && json_is_string(value)) {
            json_auto_t *other = distinct_text(value, i + 1);
            if (items == NULL || box_schema_valid(items, other, filling->fill->arena)) {
                json_decref(value);
                value = json_incref(other);
            }
        }
        if (unique && list_has(list, value))
            json_decref(value);
        else
            json_array_append_new(list, value);
    }
    return list;
}

static bool is_required(const json_t *schema, const char *name)
{
    const json_t *required = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *item = json_string_value(json_array_get(required, i));
        if (item != NULL && strcmp(item, name) == 0)
            return true;
    }
    return false;
}

static void fill_required(struct filling *filling, const json_t *schema, const struct spot *spot,
                          json_t *object)
{
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *others = json_object_get(schema, "additionalProperties");
    const json_t *required = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        if (name == NULL || json_object_get(object, name) != NULL)
            continue;
        const json_t *property = json_object_get(properties, name);
        const struct spot place = {name, spot->index, spot->depth + 1};
        json_object_set_new(object, name,
                            fill_value(filling, property != NULL ? property : others, place));
    }
}

static json_t *fill_object(struct filling *filling, const json_t *schema, const struct spot *spot)
{
    json_t *object = json_object();
    const json_t *properties = json_object_get(schema, "properties");
    double most = 1e6;
    double least = 0;
    (void)box_schema_number(schema, "maxProperties", &most);
    (void)box_schema_number(schema, "minProperties", &least);
    const char *key = NULL;
    json_t *property = NULL;
    /* In the schema's order; what is optional only near the top, and within
     * the greatest size only when the required ones leave room. */
    const bool roomy = spot->depth < 4 && most >= (double)json_object_size(properties);
    json_object_foreach((json_t *)(uintptr_t)properties, key, property)
    {
        if (json_is_false(property) || (!roomy && !is_required(schema, key)))
            continue;
        const struct spot place = {key, spot->index, spot->depth + 1};
        json_object_set_new(object, key, fill_value(filling, property, place));
    }
    fill_required(filling, schema, spot, object);
    json_object_foreach((json_t *)(uintptr_t)properties, key, property)
    {
        if ((double)json_object_size(object) >= least || json_object_get(object, key) != NULL)
            continue;
        const struct spot place = {key, spot->index, spot->depth + 1};
        json_object_set_new(object, key, fill_value(filling, property, place));
    }
    const json_t *others = json_object_get(schema, "additionalProperties");
    for (int i = 1; (double)json_object_size(object) < least && i <= BOX_SCHEMA_ITEMS_MAX &&
                    !json_is_false(others);
         i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "item%d", i);
        const struct spot place = {name, spot->index, spot->depth + 1};
        json_object_set_new(object, name, fill_value(filling, others, place));
    }
    return object;
}

/* ---- combinations ---- */

/* Both schemas in one: properties and required ones together, other words of
 * the second over those of the first. */
static json_t *merged(const json_t *first, const json_t *second)
{
    json_t *both = json_copy((json_t *)(uintptr_t)first);
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)second, key, value)
    {
        json_t *old = json_object_get(both, key);
        if (strcmp(key, "properties") == 0 && json_is_object(old)) {
            json_t *joined = json_copy(old);
            json_object_update(joined, value);
            json_object_set_new(both, key, joined);
        } else if (strcmp(key, "required") == 0 && json_is_array(old)) {
            json_t *joined = json_copy(old);
            json_array_extend(joined, value);
            json_object_set_new(both, key, joined);
        } else {
            json_object_set(both, key, value);
        }
    }
    return both;
}

/* The first alternative that leads to a valid value; without one, the last. */
static json_t *fill_choice(struct filling *filling, const json_t *schema, const char *key,
                           struct spot spot)
{
    const json_t *list = json_object_get(schema, key);
    json_t *rest = json_copy((json_t *)(uintptr_t)schema);
    json_object_del(rest, key);
    json_t *value = NULL;
    spot.depth++;
    const bool all = strcmp(key, "allOf") == 0;
    /* An alternative "null" is for when nothing is known. */
    for (int nulls = 0; nulls < 2; nulls++)
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *item = box_schema_ref(filling->root, json_array_get(list, i));
            const char *type = json_string_value(json_object_get(item, "type"));
            const bool is_null = type != NULL && strcmp(type, "null") == 0;
            if (!json_is_object(item) || (!all && is_null != (nulls == 1)))
                continue;
            json_t *both = merged(rest, item);
            if (all) {
                json_decref(rest);
                rest = both;
                continue;
            }
            json_decref(value);
            value = fill_value(filling, both, spot);
            json_decref(both);
            json_auto_t *judge = json_copy((json_t *)(uintptr_t)schema);
            /* References inside lead to the root, which is put beside them. */
            json_object_set(judge, "$defs", json_object_get(filling->root, "$defs"));
            json_object_set(judge, "definitions", json_object_get(filling->root, "definitions"));
            const bool good = box_schema_valid(judge, value, filling->fill->arena);
            if (good) {
                json_decref(rest);
                return value;
            }
        }
    if (value == NULL)
        value = fill_value(filling, rest, spot);
    json_decref(rest);
    return value;
}

/* ---- everything ---- */

static const char *type_of(const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type");
    if (json_is_string(type))
        return json_string_value(type);
    for (size_t i = 0; i < json_array_size(type); i++) {
        const char *name = json_string_value(json_array_get(type, i));
        if (name != NULL && strcmp(name, "null") != 0)
            return name;
    }
    if (json_array_size(type) > 0)
        return "null";
    static const char *const hints[][2] = {
        {"properties", "object"},
        {"required", "object"},
        {"additionalProperties", "object"},
        {"minProperties", "object"},
        {"items", "array"},
        {"minItems", "array"},
        {"maxItems", "array"},
        {"minimum", "number"},
        {"maximum", "number"},
        {"multipleOf", "number"},
        {"exclusiveMinimum", "number"},
        {"exclusiveMaximum", "number"},
    };
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (json_object_get(schema, hints[i][0]) != NULL)
            return hints[i][1];
    return "string";
}

static json_t *fill_value(struct filling *filling, const json_t *schema, struct spot spot)
{
    if (filling->steps == 0 || spot.depth > BOX_SCHEMA_DEPTH_MAX)
        return json_null();
    filling->steps--;
    if (!json_is_object(schema)) /* true, or nothing said: any text will do */
        return fill_text(filling, NULL, &spot);
    const json_t *meant = box_schema_ref(filling->root, schema);
    if (meant != schema) {
        spot.depth++;
        return meant == NULL ? json_object() : fill_value(filling, meant, spot);
    }
    const json_t *wanted = json_object_get(schema, "const");
    if (wanted != NULL)
        return json_deep_copy(wanted);
    if (json_array_size(json_object_get(schema, "enum")) > 0)
        return fill_enum(filling, json_object_get(schema, "enum"), &spot);
    static const char *const choices[] = {"allOf", "anyOf", "oneOf"};
    for (size_t i = 0; i < 3; i++)
        if (json_array_size(json_object_get(schema, choices[i])) > 0)
            return fill_choice(filling, schema, choices[i], spot);
    const char *type = type_of(schema);
    if (strcmp(type, "object") == 0)
        return fill_object(filling, schema, &spot);
    if (strcmp(type, "array") == 0)
        return fill_list(filling, schema, &spot);
    if (strcmp(type, "number") == 0 || strcmp(type, "integer") == 0)
        return fill_number(filling, schema, &spot, strcmp(type, "integer") == 0);
    if (strcmp(type, "boolean") == 0)
        return fill_truth(filling, &spot);
    if (strcmp(type, "null") == 0)
        return json_null();
    return fill_text(filling, schema, &spot);
}

json_t *box_schema_fill(const struct box_fill *fill, const json_t *schema)
{
    struct filling filling = {fill, schema, BOX_SCHEMA_STEPS_MAX};
    return fill_value(&filling, schema, (struct spot){"value", 0, 0});
}
