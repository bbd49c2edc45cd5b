/* What the model writes fits the schema it was given, and it knows what does not
 * fit: against a naive judge, for schemas made at random (BCHT2). */
#include "chat_fixture.h"
#include "cloudbox/gate/pattern.h"

#include <math.h>

/* ---- a naive judge, for schemas made at random ---- */

static size_t letters(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static double bound(const json_t *schema, const char *key, double fallback)
{
    const json_t *value = json_object_get(schema, key);
    return value == NULL ? fallback : json_number_value(value);
}

static bool naive_valid(const json_t *root, const json_t *schema, const json_t *value);

static bool naive_object(const json_t *root, const json_t *schema, const json_t *value)
{
    const char *key = NULL;
    json_t *item = NULL;
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *required = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(required); i++)
        if (json_object_get(value, json_string_value(json_array_get(required, i))) == NULL)
            return false;
    json_object_foreach((json_t *)(uintptr_t)value, key, item)
    {
        const json_t *property = json_object_get(properties, key);
        if (property == NULL && json_is_false(json_object_get(schema, "additionalProperties")))
            return false;
        if (property != NULL && !naive_valid(root, property, item))
            return false;
    }
    return true;
}

static bool naive_list(const json_t *root, const json_t *schema, const json_t *value)
{
    const double count = (double)json_array_size(value);
    if (count < bound(schema, "minItems", 0) || count > bound(schema, "maxItems", 1e9))
        return false;
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!naive_valid(root, json_object_get(schema, "items"), json_array_get(value, i)))
            return false;
        for (size_t k = 0; json_is_true(json_object_get(schema, "uniqueItems")) && k < i; k++)
            if (json_equal(json_array_get(value, i), json_array_get(value, k)))
                return false;
    }
    return true;
}

static bool naive_valid(const json_t *root, const json_t *schema, const json_t *value)
{
    if (value == NULL)
        return false;
    if (json_object_get(schema, "$ref") != NULL)
        return naive_valid(root, json_object_get(json_object_get(root, "$defs"), "thing"), value);
    const json_t *any = json_object_get(schema, "anyOf");
    for (size_t i = 0; i < json_array_size(any); i++)
        if (naive_valid(root, json_array_get(any, i), value))
            return true;
    if (any != NULL)
        return false;
    const json_t *list = json_object_get(schema, "enum");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value))
            return true;
    if (list != NULL)
        return false;
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (strcmp(type, "object") == 0)
        return json_is_object(value) && naive_object(root, schema, value);
    if (strcmp(type, "array") == 0)
        return json_is_array(value) && naive_list(root, schema, value);
    if (strcmp(type, "boolean") == 0)
        return json_is_boolean(value);
    if (strcmp(type, "null") == 0)
        return json_is_null(value);
    if (strcmp(type, "string") == 0) {
        if (!json_is_string(value))
            return false;
        const double count = (double)letters(json_string_value(value));
        if (count < bound(schema, "minLength", 0) || count > bound(schema, "maxLength", 1e9))
            return false;
        const char *format = json_string_value(json_object_get(schema, "format"));
        return format == NULL || strcmp(format, "email") != 0 ||
               strchr(json_string_value(value), '@') != NULL;
    }
    if (strcmp(type, "integer") == 0 ? !json_is_integer(value) : !json_is_number(value))
        return false;
    const double number = json_number_value(value);
    const double step = bound(schema, "multipleOf", 0);
    return number >= bound(schema, "minimum", -INFINITY) &&
           number <= bound(schema, "maximum", INFINITY) &&
           number > bound(schema, "exclusiveMinimum", -INFINITY) &&
           (step == 0 || fabs(number / step - round(number / step)) < 1e-9);
}

static const char *const names[] = {"category", "message_id", "to",        "subject",
                                    "body",     "tasks",      "due_date",  "amount",
                                    "urgent",   "tags",       "reasoning", "priority",
                                    "language", "x",          "contacts",  "confidence"};

static json_t *random_schema(tide_rng *rng, int depth);

static json_t *random_object(tide_rng *rng, int depth)
{
    json_t *properties = json_object();
    json_t *required = json_array();
    const uint64_t count = 1 + tide_rng_below(rng, 5);
    for (uint64_t i = 0; i < count; i++) {
        const char *name = names[tide_rng_below(rng, sizeof names / sizeof names[0])];
        json_object_set_new(properties, name, random_schema(rng, depth + 1));
        if (tide_rng_chance(rng, 1, 2))
            json_array_append_new(required, json_string(name));
    }
    json_t *schema = json_pack("{s:s,s:o,s:o}", "type", "object", "properties", properties,
                               "required", required);
    if (tide_rng_chance(rng, 1, 2))
        json_object_set_new(schema, "additionalProperties", json_false());
    return schema;
}

static json_t *random_list(tide_rng *rng, int depth)
{
    const json_int_t least = (json_int_t)tide_rng_below(rng, 4);
    json_t *schema = json_pack("{s:s,s:I,s:I}", "type", "array", "minItems", least, "maxItems",
                               least + (json_int_t)tide_rng_below(rng, 4));
    if (tide_rng_chance(rng, 1, 3)) { /* of things that can differ often enough */
        json_object_set_new(schema, "uniqueItems", json_true());
        json_object_set_new(schema, "items",
                            tide_rng_chance(rng, 1, 2)
                                ? json_pack("{s:s}", "type", "string")
                                : json_pack("{s:s,s:i}", "type", "integer", "minimum", -5));
        return schema;
    }
    json_object_set_new(schema, "items", random_schema(rng, depth + 1));
    return schema;
}

static json_t *random_number(tide_rng *rng)
{
    json_t *schema = json_pack("{s:s}", "type", tide_rng_chance(rng, 1, 2) ? "integer" : "number");
    const json_int_t low = (json_int_t)tide_rng_below(rng, 200) - 100;
    if (tide_rng_chance(rng, 1, 2))
        json_object_set_new(schema, tide_rng_chance(rng, 1, 3) ? "exclusiveMinimum" : "minimum",
                            json_integer(low));
    if (tide_rng_chance(rng, 1, 2))
        json_object_set_new(schema, "maximum",
                            json_integer(low + 20 + (json_int_t)tide_rng_below(rng, 50)));
    if (tide_rng_chance(rng, 1, 3))
        json_object_set_new(schema, "multipleOf",
                            json_integer(1 + (json_int_t)tide_rng_below(rng, 9)));
    return schema;
}

static json_t *random_schema(tide_rng *rng, int depth)
{
    switch (tide_rng_below(rng, depth < 4 ? 10 : 6)) {
    case 0: {
        const json_int_t least = (json_int_t)tide_rng_below(rng, 50);
        return json_pack("{s:s,s:I,s:I}", "type", "string", "minLength", least, "maxLength",
                         least + (json_int_t)tide_rng_below(rng, 50));
    }
    case 1:
        return tide_rng_chance(rng, 1, 2)
                   ? json_pack("{s:s}", "type", "string")
                   : json_pack("{s:s,s:s}", "type", "string", "format", "email");
    case 2:
        return random_number(rng);
    case 3:
        return json_pack("{s:s}", "type", "boolean");
    case 4:
        return json_pack("{s:[s,s,i,b]}", "enum", "spam", "later", (int)tide_rng_below(rng, 9), 1);
    case 5:
        return json_pack("{s:s,s:[s,s,s]}", "type", "string", "enum", "a", "needs_reply", "fyi");
    case 6:
        return random_list(rng, depth);
    case 7:
        return json_pack("{s:[o,o]}", "anyOf", json_pack("{s:s}", "type", "null"),
                         random_schema(rng, depth + 1));
    case 8:
        return json_pack("{s:s}", "$ref", "#/$defs/thing");
    default:
        return random_object(rng, depth);
    }
}

/* BCHT2. */
TEST(arguments_validate_against_random_schemas)
{
    tide_auto_arena arena = tide_arena_heap(256 << 20);
    for (uint64_t seed = 0; seed < scaled(20000); seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        json_auto_t *schema = random_object(&rng, 0);
        json_object_set_new(schema, "$defs",
                            json_pack("{s:o}", "thing",
                                      json_pack("{s:s,s:{s:{s:s},s:{s:s}},s:[s]}", "type", "object",
                                                "properties", "name", "type", "string", "parent",
                                                "$ref", "#/$defs/thing", "required", "name")));
        struct box_facts facts;
        box_facts_read(tide_text_of(mails[seed % MAILS].mail), &arena, &facts);
        const struct box_fill fill = {&facts, tide_text_of(mails[seed % MAILS].mail),
                                      TIDE_TEXT("Hello, thank you."), &arena};
        json_auto_t *value = box_schema_fill(&fill, schema);
        const bool naive = naive_valid(schema, schema, value);
        const bool ours = box_schema_valid(schema, value, &arena);
        if (!naive || !ours) {
            char *texts[2] = {json_dumps(schema, JSON_INDENT(1)),
                              json_dumps(value, JSON_INDENT(1))};
            print_error("seed %llu: naive %d ours %d\n%s\n%s\n", (unsigned long long)seed, naive,
                        ours, texts[0], texts[1]);
            free(texts[0]);
            free(texts[1]);
        }
        assert_true(naive);
        assert_true(ours);
        tide_arena_reset(&arena);
    }
}

TEST(a_broken_value_is_seen)
{
    tide_auto_arena arena = tide_arena_heap(16 << 20);
    static const char *const cases[][3] = {
        /* schema, a good value, a bad one */
        {"{\"type\":\"string\",\"pattern\":\"^\\\\d{3}$\"}", "\"123\"", "\"12a\""},
        {"{\"type\":\"string\",\"format\":\"date\"}", "\"2026-01-02\"", "\"2026-1-2\""},
        {"{\"type\":\"string\",\"maxLength\":2}", "\"čš\"", "\"čšž\""},
        {"{\"const\":3}", "3", "4"},
        {"{\"oneOf\":[{\"minimum\":1},{\"maximum\":5}]}", "0", "3"},
        {"{\"allOf\":[{\"minimum\":1},{\"maximum\":5}]}", "3", "6"},
        {"{\"not\":{\"type\":\"string\"}}", "1", "\"a\""},
        {"{\"type\":[\"string\",\"null\"]}", "null", "1"},
        {"{\"properties\":{\"a\":{\"type\":\"integer\"}},\"additionalProperties\":false}",
         "{\"a\":1}", "{\"b\":1}"},
        {"{\"additionalProperties\":{\"type\":\"integer\"}}", "{\"b\":1}", "{\"b\":\"x\"}"},
        {"{\"minProperties\":1}", "{\"b\":1}", "{}"},
        {"{\"multipleOf\":0.1}", "0.3", "0.35"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_auto_t *schema = json_loads(cases[i][0], 0, NULL);
        json_auto_t *good = json_loads(cases[i][1], JSON_DECODE_ANY, NULL);
        json_auto_t *bad = json_loads(cases[i][2], JSON_DECODE_ANY, NULL);
        assert_true(box_schema_valid(schema, good, &arena));
        assert_false(box_schema_valid(schema, bad, &arena));
    }
}

TEST(odd_schemas_are_filled_too)
{
    tide_auto_arena arena = tide_arena_heap(64 << 20);
    static const char *const schemas[] = {
        "{\"type\":\"string\",\"pattern\":\"^[A-Z]{3}-\\\\d{4}$\"}",
        "{\"type\":\"string\",\"pattern\":\"^(foo|bar)+_[a-z0-9]{2,5}$\",\"minLength\":12}",
        "{\"type\":\"string\",\"format\":\"date-time\"}",
        "{\"type\":\"string\",\"format\":\"uuid\"}",
        "{\"type\":\"string\",\"format\":\"uri\"}",
        "{\"type\":\"array\",\"items\":{\"enum\":[1,2,3]},\"minItems\":3,\"uniqueItems\":true}",
        "{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"minItems\":2,\"uniqueItems\":true}",
        "{\"allOf\":[{\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"]},"
        "{\"properties\":{\"b\":{\"const\":\"x\"}},\"required\":[\"b\"]}]}",
        "{\"oneOf\":[{\"type\":\"number\",\"maximum\":5},{\"type\":\"number\",\"minimum\":3}]}",
        "{\"type\":\"object\",\"minProperties\":3}",
        "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"},\"required\":[\"k\"]"
        "}",
        "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":true},\"required\":[\"a\",\"b\"]}",
        "{\"type\":\"number\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":0.0005}",
        "{\"type\":\"integer\",\"multipleOf\":7,\"minimum\":15,\"maximum\":22}",
        "{\"$ref\":\"#/definitions/x\",\"definitions\":{\"x\":{\"type\":\"integer\"}}}",
        "{\"type\":[\"null\",\"integer\"]}",
        "{\"type\":\"object\",\"properties\":{\"next\":{\"$ref\":\"#\"}}}",
        "{}",
    };
    struct box_facts facts;
    box_facts_read(tide_text_of(mails[0].mail), &arena, &facts);
    const struct box_fill fill = {&facts, tide_text_of(mails[0].mail), TIDE_TEXT("Hi."), &arena};
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        json_auto_t *schema = json_loads(schemas[i], 0, NULL);
        assert_non_null(schema);
        json_auto_t *value = box_schema_fill(&fill, schema);
        if (!box_schema_valid(schema, value, &arena)) {
            auto_text *text = json_dumps(value, JSON_ENCODE_ANY);
            print_error("%s\n%s\n", schemas[i], text);
        }
        assert_true(box_schema_valid(schema, value, &arena));
    }
}

TEST(a_value_that_was_said_is_found_by_its_name)
{
    const tide_text said = TIDE_TEXT("Thread ID: t-17\n{\"message_id\": \"m9\", \"n\": 4}\nx=5");
    static const char *const cases[][2] = {
        {"thread_id", "t-17"}, {"messageId", "m9"}, {"n", "4"}, {"x", "5"}};
    for (size_t i = 0; i < 4; i++)
        assert_true(
            tide_text_equal(box_context_find(said, cases[i][0]), tide_text_of(cases[i][1])));
    assert_null(box_context_find(said, "draft_id").data);
}

/* ---- patterns ---- */

TEST(an_example_matches_its_pattern)
{
    static const char *const patterns[] = {"^abc$",          "^[a-z]+$",      "^\\d{2,4}x?$",
                                           "(a|b)(c|d)*",    "^[^0-9]{3}$",   "\\w+@\\w+\\.com",
                                           "^(?:ab){2}\\s$", "^[A-F0-9]{8}$", "a\\.b\\+c"};
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        for (size_t more = 0; more < 3; more++) {
            regex_t regex;
            tide_auto_buf text = tide_buf_heap(8192);
            assert_true(box_pattern_compile(tide_text_of(patterns[i]), false, &arena, &regex));
            box_pattern_example(tide_text_of(patterns[i]), more, &text);
            assert_ok(tide_buf_add(&text, "", 1));
            if (regexec(&regex, tide_buf_cstr(&text), 0, NULL, 0) != 0)
                print_error("%s: %s\n", patterns[i], tide_buf_cstr(&text));
            assert_int_equal(regexec(&regex, tide_buf_cstr(&text), 0, NULL, 0), 0);
            regfree(&regex);
        }
}
