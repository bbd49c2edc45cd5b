/* The chat model: its eyes (facts), its hands (schemas), its two ways of
 * speaking, and everything it refuses. */
#include "logic/chat.h"
#include "logic/chat_model.h"
#include "logic/pattern.h"
#include "logic/quota.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW_MS (UINT64_C(1789070400) * 1000)

static uint64_t scaled(uint64_t count)
{
    const char *text = getenv("TIDE_TEST_SCALE");
    const uint64_t percent = text == NULL ? 100 : strtoull(text, NULL, 10);
    const uint64_t value = count * percent / 100;
    return value == 0 ? 1 : value;
}

/* ---- a cloud with nothing but the model ---- */

struct world {
    box_cloud *cloud;
    struct box_answer answer;
    json_t *json;
    const char *version; /* Anthropic's header */
    const char *key;
};

static int setup(void **state)
{
    static const struct box_service *const services[] = {&box_chat, NULL};
    struct world *world = calloc(1, sizeof *world);
    world->cloud = box_cloud_new(&(struct box_options){.seed = 5, .services = services});
    world->version = "2026-10-21";
    world->key = "Bearer sk-test";
    box_answer_init(&world->answer);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    json_decref(world->json);
    box_answer_done(&world->answer);
    box_cloud_free(world->cloud);
    free(world);
    return 0;
}

static int ask_raw(struct world *world, const char *target, const char *body)
{
    struct box_header headers[3] = {
        {TIDE_TEXT("Content-Type"), TIDE_TEXT("application/json")},
    };
    size_t count = 1;
    if (world->key != NULL)
        headers[count++] =
            (struct box_header){TIDE_TEXT("authorization"), tide_text_of(world->key)};
    if (strstr(target, "messages") != NULL && world->version != NULL)
        headers[count++] =
            (struct box_header){TIDE_TEXT("anthropic-version"), tide_text_of(world->version)};
    const struct box_request request = {.verb = body == NULL ? BOX_GET : BOX_POST,
                                        .target = tide_text_of(target),
                                        .headers = headers,
                                        .headers_count = count,
                                        .body = tide_text_of(body),
                                        .origin = TIDE_TEXT("http://box")};
    box_answer_clear(&world->answer);
    box_cloud_serve(world->cloud, &request, NOW_MS, &world->answer);
    json_decref(world->json);
    world->json = json_loadb(tide_buf_cstr(&world->answer.body), world->answer.body.bytes, 0, NULL);
    return world->answer.status;
}

/* `body` is taken. */
static int ask(struct world *world, const char *target, json_t *body)
{
    char *text = json_dumps(body, 0);
    assert_non_null(text);
    const int status = ask_raw(world, target, text);
    if (status != 200)
        print_message("%d %s\n", status, tide_buf_cstr(&world->answer.body));
    free(text);
    json_decref(body);
    return status;
}

#define OPENAI    "/v1/chat/completions"
#define ANTHROPIC "/v1/messages"

static json_t *message_of(const struct world *world)
{
    return json_object_get(json_array_get(json_object_get(world->json, "choices"), 0), "message");
}

static const char *content_of(const struct world *world)
{
    return json_string_value(json_object_get(message_of(world), "content"));
}

static const char *finish_of(const struct world *world)
{
    return json_string_value(json_object_get(
        json_array_get(json_object_get(world->json, "choices"), 0), "finish_reason"));
}

static const json_t *openai_call(const struct world *world, size_t i)
{
    return json_object_get(json_array_get(json_object_get(message_of(world), "tool_calls"), i),
                           "function");
}

static void add_fault(struct world *world, const char *fault)
{
    char rule[200];
    (void)snprintf(rule, sizeof rule, "{\"method\":\"chat.*\",\"rate\":1,\"fault\":\"%s\"}", fault);
    tide_error err = {0};
    const tide_status rc = box_cloud_add_fault(world->cloud, tide_text_of(rule), &err);
    if (rc != TIDE_OK)
        print_error("%s\n", err.text);
    assert_int_equal(rc, TIDE_OK);
}

/* ---- seeing ---- */

static const struct {
    const char *mail;
    const char *category; /* of the assistant's five */
    const char *kind;     /* of a finer set */
} mails[] = {
    {"From: Ann Smith <ann@partner.org>\nTo: me@example.com\nSubject: Offer for October\n\n"
     "Hi Bob,\n\nwe talked about the new offer. Could you send me the numbers by Friday? "
     "Let me know if anything is missing.\n\nAnn",
     "needs_response", "to_reply"},
    {"From: Billing <billing@hosting.example>\nSubject: Invoice 2026-117\n\n"
     "Dear customer,\nplease find attached invoice 2026-117 over EUR 1,250.00. "
     "The amount due is payable by 2026-10-15 to IBAN DE00 1234.",
     "payment_request", "invoice"},
    {"From: Shop News <news@shop.example>\nSubject: Our autumn newsletter\n\n"
     "Everything 30% off this week! View in browser. Unsubscribe here.",
     "fyi", "newsletter"},
    {"From: GitHub <noreply@github.example>\nSubject: Build failed\n\n"
     "The build failed on main. This is an automated message, do not reply.",
     "fyi", "notification"},
    {"From: HR <hr@company.example>\nSubject: Action required: yearly form\n\n"
     "Please complete the form before the deadline on 2026-11-01. Please sign it as well.",
     "action_required", "task"},
    {"From: Support <help@vendor.example>\nSubject: Re: your ticket\n\n"
     "We received your request and are looking into it. We will get back to you soon.",
     "waiting", "waiting"},
    {"From: Lucky <win@prize.example>\nSubject: You have won the lottery\n\n"
     "Claim your prize now, dear winner of the casino.",
     "fyi", "spam"},
    {"From: Mum <mum@home.example>\nSubject: Birthday dinner\n\n"
     "It's dad's birthday on the weekend, dinner is at seven. Hugs.",
     "needs_response", "personal"},
    {"From: Ops <ops@company.example>\nSubject: URGENT: server down\n\n"
     "The shop is down, we need a decision immediately.",
     "action_required", "urgent"},
    {"From: Jana <jana@firma.example>\nSubject: Smlouva\n\n"
     "Dobrý den, můžete mi prosím poslat podepsanou smlouvu? Děkuji, dejte vědět.",
     "needs_response", "to_reply"},
    {"From: Carl <carl@company.example>\nSubject: FYI: holiday plan\n\n"
     "Just to let you know that the plan is on the wall. No action needed.",
     "fyi", "other"},
};
enum { MAILS = sizeof mails / sizeof mails[0] };

static json_t *classify_tool(bool openai, const char *values)
{
    json_t *schema = json_pack(
        "{s:s,s:{s:{s:s,s:o},s:{s:s,s:[s,s,s]},s:{s:s},s:{s:s,s:[s,s,s]},s:{s:s}},s:[s,s]}", "type",
        "object", "properties", "category", "type", "string", "enum", json_loads(values, 0, NULL),
        "confidence", "type", "string", "enum", "low", "medium", "high", "reasoning", "type",
        "string", "detected_language", "type", "string", "enum", "de", "en", "cs", "automated",
        "type", "boolean", "required", "category", "confidence");
    return openai ? json_pack("[{s:s,s:{s:s,s:s,s:o}}]", "type", "function", "function", "name",
                              "classify_email", "description", "Classify one mail", "parameters",
                              schema)
                  : json_pack("[{s:s,s:s,s:o}]", "name", "classify_email", "description",
                              "Classify one mail", "input_schema", schema);
}

static const char *const five = "[\"needs_response\",\"action_required\",\"payment_request\","
                                "\"fyi\",\"waiting\"]";
static const char *const finer =
    "[\"urgent\",\"to_reply\",\"invoice\",\"newsletter\",\"notification\","
    "\"personal\",\"spam\",\"task\",\"waiting\",\"other\"]";

static void mails_are_classified_through_a_tool(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < MAILS; i++)
        for (int fine = 0; fine < 2; fine++) {
            json_t *body = json_pack(
                "{s:s,s:[{s:s,s:s},{s:s,s:s}],s:o,s:s}", "model", "tide-fast", "messages", "role",
                "system", "content", "You classify mail.", "role", "user", "content", mails[i].mail,
                "tools", classify_tool(true, fine ? finer : five), "tool_choice", "required");
            assert_int_equal(ask(world, OPENAI, body), 200);
            assert_string_equal(finish_of(world), "tool_calls");
            const json_t *call = openai_call(world, 0);
            assert_string_equal(json_string_value(json_object_get(call, "name")), "classify_email");
            json_t *arguments =
                json_loads(json_string_value(json_object_get(call, "arguments")), 0, NULL);
            assert_non_null(arguments);
            assert_string_equal(json_string_value(json_object_get(arguments, "category")),
                                fine ? mails[i].kind : mails[i].category);
            assert_string_equal(json_string_value(json_object_get(arguments, "detected_language")),
                                i == 9 ? "cs" : "en");
            json_decref(arguments);
        }
}

static void mails_in_json_are_seen_the_same_way(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < MAILS; i++) {
        /* From the header lines to JSON, with the body somewhere inside. */
        const char *from = strchr(mails[i].mail, ' ') + 1;
        const char *subject = strstr(mails[i].mail, "Subject: ") + 9;
        const char *text = strstr(mails[i].mail, "\n\n") + 2;
        char *encoded = NULL;
        json_t *mail = json_pack("{s:{s:{s:s%,s:s%},s:s}}", "message", "headers", "From", from,
                                 strcspn(from, "\n"), "Subject", subject, strcspn(subject, "\n"),
                                 "body", text);
        char *dumped = json_dumps(mail, 0);
        assert_true(asprintf(&encoded, "Classify this: %s", dumped) > 0);
        json_t *body = json_pack("{s:s,s:i,s:[{s:s,s:s}],s:o,s:{s:s,s:s}}", "model", "tide-fast",
                                 "max_tokens", 1000, "messages", "role", "user", "content", encoded,
                                 "tools", classify_tool(false, finer), "tool_choice", "type",
                                 "tool", "name", "classify_email");
        assert_int_equal(ask(world, ANTHROPIC, body), 200);
        const json_t *block = json_array_get(json_object_get(world->json, "content"), 0);
        assert_string_equal(json_string_value(json_object_get(block, "type")), "tool_use");
        assert_string_equal(
            json_string_value(json_object_get(json_object_get(block, "input"), "category")),
            mails[i].kind);
        assert_string_equal(json_string_value(json_object_get(world->json, "stop_reason")),
                            "tool_use");
        json_decref(mail);
        free(dumped);
        free(encoded);
    }
}

/* As the assistant asks: JSON by the prompt alone. */
static void json_asked_for_in_words_has_the_keys_named(void **state)
{
    struct world *world = *state;
    static const char *const prompts[] = {
        "Classify the mail. Categories: needs_response, action_required, payment_request, fyi, "
        "waiting. Answer with JSON {category, confidence, reasoning, detected_language, "
        "resolved_style}. Confidence is low, medium or high.",
        "Classify the mail as one of needs_response, action_required, payment_request, fyi, "
        "waiting. Respond only with JSON: {\"category\": \"...\", \"confidence\": "
        "\"high|medium|low\", \"reasoning\": \"...\", \"detected_language\": \"..\", "
        "\"resolved_style\": \"..\"}",
    };
    for (size_t p = 0; p < 2; p++)
        for (size_t i = 0; i < MAILS; i++) {
            json_t *body = json_pack("{s:s,s:[{s:s,s:s},{s:s,s:s}]}", "model", "tide-fast",
                                     "messages", "role", "system", "content", prompts[p], "role",
                                     "user", "content", mails[i].mail);
            assert_int_equal(ask(world, OPENAI, body), 200);
            json_t *said = json_loads(content_of(world), 0, NULL);
            assert_non_null(said);
            assert_int_equal(json_object_size(said), 5);
            assert_string_equal(json_string_value(json_object_get(said, "category")),
                                mails[i].category);
            assert_string_equal(json_string_value(json_object_get(said, "confidence")), "high");
            assert_string_equal(json_string_value(json_object_get(said, "detected_language")),
                                i == 9 ? "cs" : "en");
            assert_true(json_string_length(json_object_get(said, "reasoning")) > 5);
            json_decref(said);
        }
}

static void a_draft_greets_the_sender_in_their_language(void **state)
{
    struct world *world = *state;
    static const struct {
        size_t mail;
        const char *words[3];
    } cases[] = {{0, {"Hello Ann Smith", "Offer for October", "Kind regards"}},
                 {9, {"Dobrý den", "Smlouva", "S pozdravem"}}};
    for (size_t i = 0; i < 2; i++) {
        json_t *body = json_pack("{s:s,s:i,s:s,s:[{s:s,s:s}]}", "model", "tide-good", "max_tokens",
                                 1000, "system", "Write a draft reply to the mail.", "messages",
                                 "role", "user", "content", mails[cases[i].mail].mail);
        assert_int_equal(ask(world, ANTHROPIC, body), 200);
        const char *text = json_string_value(
            json_object_get(json_array_get(json_object_get(world->json, "content"), 0), "text"));
        for (size_t w = 0; w < 3; w++)
            assert_non_null(strstr(text, cases[i].words[w]));
        assert_string_equal(json_string_value(json_object_get(world->json, "stop_reason")),
                            "end_turn");
    }
}

static void facts_are_picked_out_of_a_mail(void **state)
{
    (void)state;
    tide_arena arena;
    tide_arena_init(&arena, tide_mem_heap(), 16 << 20);
    struct box_facts facts;
    box_facts_read(TIDE_TEXT("Please sort this.\n\nFrom: \"Ann Smith\" <ann@partner.org>\r\n"
                             "Subject: Hello\r\n\r\nHi,\r\nplease pay EUR 1,250.50 by "
                             "2026-10-15 or 16.11.2026. Call +420 777 123 456 or write to "
                             "carl@x.example. See https://x.example/pay?a=1.\r\n"),
                   &arena, &facts);
    assert_true(facts.is_mail);
    assert_true(tide_text_equal(facts.name, TIDE_TEXT("Ann Smith")));
    assert_true(tide_text_equal(facts.email, TIDE_TEXT("ann@partner.org")));
    assert_true(tide_text_equal(facts.subject, TIDE_TEXT("Hello")));
    assert_int_equal(facts.emails.count, 2);
    assert_true(tide_text_equal(facts.emails.items[1], TIDE_TEXT("carl@x.example")));
    assert_true(tide_text_equal(facts.urls.items[0], TIDE_TEXT("https://x.example/pay?a=1")));
    assert_int_equal(facts.dates.count, 2);
    assert_true(tide_text_equal(facts.dates.items[0], TIDE_TEXT("2026-10-15")));
    assert_true(tide_text_equal(facts.dates.items[1], TIDE_TEXT("2026-11-16")));
    assert_true(tide_text_equal(facts.phones.items[0], TIDE_TEXT("+420 777 123 456")));
    assert_true(fabs(facts.amount - 1250.5) < 1e-9);
    assert_string_equal(facts.currency, "EUR");
    assert_true(facts.tasks.count >= 1);
    box_facts_read(TIDE_TEXT("What is the weather like?"), &arena, &facts);
    assert_false(facts.is_mail);
    box_facts_read(TIDE_TEXT_NONE, &arena, &facts);
    assert_false(facts.is_mail);
    tide_arena_done(&arena);
}

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

/* L2. */
static void arguments_validate_against_random_schemas(void **state)
{
    (void)state;
    tide_arena arena;
    tide_arena_init(&arena, tide_mem_heap(), 256 << 20);
    for (uint64_t seed = 0; seed < scaled(20000); seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        json_t *schema = random_object(&rng, 0);
        json_object_set_new(schema, "$defs",
                            json_pack("{s:o}", "thing",
                                      json_pack("{s:s,s:{s:{s:s},s:{s:s}},s:[s]}", "type", "object",
                                                "properties", "name", "type", "string", "parent",
                                                "$ref", "#/$defs/thing", "required", "name")));
        struct box_facts facts;
        box_facts_read(tide_text_of(mails[seed % MAILS].mail), &arena, &facts);
        const struct box_fill fill = {&facts, tide_text_of(mails[seed % MAILS].mail),
                                      TIDE_TEXT("Hello, thank you."), &arena};
        json_t *value = box_schema_fill(&fill, schema);
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
        json_decref(value);
        json_decref(schema);
        tide_arena_reset(&arena);
    }
    tide_arena_done(&arena);
}

static void a_broken_value_is_seen(void **state)
{
    (void)state;
    tide_arena arena;
    tide_arena_init(&arena, tide_mem_heap(), 16 << 20);
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
        json_t *schema = json_loads(cases[i][0], 0, NULL);
        json_t *good = json_loads(cases[i][1], JSON_DECODE_ANY, NULL);
        json_t *bad = json_loads(cases[i][2], JSON_DECODE_ANY, NULL);
        assert_true(box_schema_valid(schema, good, &arena));
        assert_false(box_schema_valid(schema, bad, &arena));
        json_decref(schema);
        json_decref(good);
        json_decref(bad);
    }
    tide_arena_done(&arena);
}

static void odd_schemas_are_filled_too(void **state)
{
    (void)state;
    tide_arena arena;
    tide_arena_init(&arena, tide_mem_heap(), 64 << 20);
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
        json_t *schema = json_loads(schemas[i], 0, NULL);
        assert_non_null(schema);
        json_t *value = box_schema_fill(&fill, schema);
        if (!box_schema_valid(schema, value, &arena)) {
            char *text = json_dumps(value, JSON_ENCODE_ANY);
            print_error("%s\n%s\n", schemas[i], text);
            free(text);
        }
        assert_true(box_schema_valid(schema, value, &arena));
        json_decref(value);
        json_decref(schema);
    }
    tide_arena_done(&arena);
}

static void a_value_that_was_said_is_found_by_its_name(void **state)
{
    (void)state;
    const tide_text said = TIDE_TEXT("Thread ID: t-17\n{\"message_id\": \"m9\", \"n\": 4}\nx=5");
    static const char *const cases[][2] = {
        {"thread_id", "t-17"}, {"messageId", "m9"}, {"n", "4"}, {"x", "5"}};
    for (size_t i = 0; i < 4; i++)
        assert_true(
            tide_text_equal(box_context_find(said, cases[i][0]), tide_text_of(cases[i][1])));
    assert_null(box_context_find(said, "draft_id").data);
}

/* ---- tools ---- */

/* An agent's loop: tools are called, each once, what is dangerous never, and
 * after that it speaks. */
static void a_loop_of_tools_comes_to_an_end(void **state)
{
    struct world *world = *state;
    json_t *tools = json_array();
    static const char *const tool_names[] = {"search_archive", "read_thread", "create_draft",
                                             "send_reply",     "add_label",   "escalate",
                                             "delete_thread"};
    for (size_t i = 0; i < 7; i++)
        json_array_append_new(
            tools, json_pack("{s:s,s:{s:s,s:s,s:{s:s,s:{s:{s:s},s:{s:s}},s:[s]}}}", "type",
                             "function", "function", "name", tool_names[i], "description",
                             "A tool of the mail program", "parameters", "type", "object",
                             "properties", "thread_id", "type", "string", "body", "type", "string",
                             "required", "thread_id"));
    for (int parallel = 0; parallel < 2; parallel++)
        for (size_t m = 0; m < MAILS; m++) {
            char user[2000];
            (void)snprintf(user, sizeof user, "thread_id: t-%zu\n\n%s", m, mails[m].mail);
            json_t *list = json_pack("[{s:s,s:s},{s:s,s:s}]", "role", "system", "content",
                                     "You help with mail.", "role", "user", "content", user);
            json_t *used = json_object();
            size_t rounds = 0;
            for (;; rounds++) {
                assert_true(rounds < 8);
                assert_int_equal(ask(world, OPENAI,
                                     json_pack("{s:s,s:O,s:O,s:b}", "model", "m", "messages", list,
                                               "tools", tools, "parallel_tool_calls", parallel)),
                                 200);
                const json_t *calls = json_object_get(message_of(world), "tool_calls");
                if (json_array_size(calls) == 0)
                    break;
                assert_true(parallel || json_array_size(calls) == 1);
                json_array_append(list, message_of(world));
                for (size_t i = 0; i < json_array_size(calls); i++) {
                    const json_t *call = json_array_get(calls, i);
                    const json_t *function = json_object_get(call, "function");
                    const char *name = json_string_value(json_object_get(function, "name"));
                    assert_null(json_object_get(used, name));
                    assert_string_not_equal(name, "send_reply");
                    assert_string_not_equal(name, "delete_thread");
                    json_object_set_new(used, name, json_true());
                    char wanted[20];
                    (void)snprintf(wanted, sizeof wanted, "\"t-%zu\"", m);
                    assert_non_null(
                        strstr(json_string_value(json_object_get(function, "arguments")), wanted));
                    json_array_append_new(
                        list, json_pack("{s:s,s:O,s:s}", "role", "tool", "tool_call_id",
                                        json_object_get(call, "id"), "content", "{\"ok\":true}"));
                }
            }
            assert_true(rounds >= 1);
            assert_non_null(content_of(world));
            assert_int_equal(strncmp(content_of(world), "Done: ", 6), 0);
            assert_int_equal(json_object_get(used, "create_draft") != NULL,
                             strcmp(mails[m].category, "needs_response") == 0);
            assert_int_equal(json_object_get(used, "escalate") != NULL,
                             strcmp(mails[m].kind, "urgent") == 0);
            json_decref(used);
            json_decref(list);
        }
    json_decref(tools);
}

static void tool_choice_is_obeyed(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *choice;
        const char *name; /* NULL: none may be called */
    } cases[] = {
        {"\"none\"", NULL},
        {"\"auto\"", NULL}, /* nobody wants anything of the kind */
        {"\"required\"", "send"},
        {"{\"type\":\"function\",\"function\":{\"name\":\"send\"}}", "send"},
    };
    for (size_t i = 0; i < 4; i++) {
        json_t *body = json_pack("{s:s,s:[{s:s,s:s}],s:[{s:s,s:{s:s}}],s:o}", "model", "m",
                                 "messages", "role", "user", "content", "What is two and two?",
                                 "tools", "type", "function", "function", "name", "send",
                                 "tool_choice", json_loads(cases[i].choice, JSON_DECODE_ANY, NULL));
        assert_int_equal(ask(world, OPENAI, body), 200);
        const json_t *call = openai_call(world, 0);
        assert_int_equal(call != NULL, cases[i].name != NULL);
        if (cases[i].name != NULL)
            assert_string_equal(json_string_value(json_object_get(call, "name")), cases[i].name);
    }
}

static void an_answer_follows_its_schema(void **state)
{
    struct world *world = *state;
    json_t *schema = json_loads(
        "{\"type\":\"object\",\"properties\":{\"tasks\":{\"type\":\"array\",\"items\":{\"type\":"
        "\"string\"}},\"contacts\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
        "\"properties\":{\"email\":{\"type\":\"string\",\"format\":\"email\"},\"name\":{\"type\":"
        "\"string\"}},\"required\":[\"email\",\"name\"],\"additionalProperties\":false}}},"
        "\"required\":[\"tasks\",\"contacts\"],\"additionalProperties\":false}",
        0, NULL);
    json_t *body =
        json_pack("{s:s,s:[{s:s,s:s}],s:{s:s,s:{s:s,s:b,s:O}}}", "model", "m", "messages", "role",
                  "user", "content", mails[0].mail, "response_format", "type", "json_schema",
                  "json_schema", "name", "notes", "strict", 1, "schema", schema);
    assert_int_equal(ask(world, OPENAI, body), 200);
    json_t *said = json_loads(content_of(world), 0, NULL);
    tide_arena arena;
    tide_arena_init(&arena, tide_mem_heap(), 16 << 20);
    assert_true(box_schema_valid(schema, said, &arena));
    tide_arena_done(&arena);
    assert_true(json_array_size(json_object_get(said, "tasks")) >= 1);
    const json_t *contact = json_array_get(json_object_get(said, "contacts"), 0);
    assert_string_equal(json_string_value(json_object_get(contact, "email")), "ann@partner.org");
    assert_string_equal(json_string_value(json_object_get(contact, "name")), "Ann Smith");
    json_decref(said);
    json_decref(schema);
}

/* L1, and ids that are the same with it. */
static void the_same_conversation_gets_the_same_answer(void **state)
{
    struct world *world = *state;
    const char *body = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello, "
                       "how are you today?\"}]}";
    assert_int_equal(ask_raw(world, OPENAI, body), 200);
    json_t *first = json_incref(world->json);
    assert_int_equal(ask_raw(world, OPENAI, body), 200);
    assert_true(json_equal(first, world->json));
    json_decref(first);
}

/* ---- limits ---- */

static void a_small_limit_cuts_the_answer(void **state)
{
    struct world *world = *state;
    for (int limit = 1; limit <= 6; limit++) {
        json_t *body =
            json_pack("{s:s,s:i,s:s,s:[{s:s,s:s}]}", "model", "m", "max_tokens", limit, "system",
                      "Draft a reply.", "messages", "role", "user", "content", mails[9].mail);
        assert_int_equal(ask(world, ANTHROPIC, body), 200);
        assert_string_equal(json_string_value(json_object_get(world->json, "stop_reason")),
                            "max_tokens");
        assert_int_equal(json_integer_value(json_object_get(json_object_get(world->json, "usage"),
                                                            "output_tokens")),
                         limit);
        body = json_pack("{s:s,s:i,s:[{s:s,s:s},{s:s,s:s}]}", "model", "m",
                         limit % 2 ? "max_tokens" : "max_completion_tokens", limit, "messages",
                         "role", "system", "content", "Draft a reply.", "role", "user", "content",
                         mails[9].mail);
        assert_int_equal(ask(world, OPENAI, body), 200);
        assert_string_equal(finish_of(world), "length");
        assert_true(strlen(content_of(world)) <= (size_t)limit * 4);
    }
    json_t *body = json_pack("{s:s,s:i,s:[s],s:s,s:[{s:s,s:s}]}", "model", "m", "max_tokens", 500,
                             "stop_sequences", "Ann", "system", "Draft a reply.", "messages",
                             "role", "user", "content", mails[0].mail);
    assert_int_equal(ask(world, ANTHROPIC, body), 200);
    assert_string_equal(json_string_value(json_object_get(world->json, "stop_reason")),
                        "stop_sequence");
    assert_string_equal(json_string_value(json_object_get(world->json, "stop_sequence")), "Ann");
}

static void usage_adds_up(void **state)
{
    struct world *world = *state;
    json_t *body = json_pack("{s:s,s:[{s:s,s:s}]}", "model", "m", "messages", "role", "user",
                             "content", mails[0].mail);
    assert_int_equal(ask(world, OPENAI, body), 200);
    const json_t *usage = json_object_get(world->json, "usage");
    const json_int_t prompt = json_integer_value(json_object_get(usage, "prompt_tokens"));
    const json_int_t answer = json_integer_value(json_object_get(usage, "completion_tokens"));
    assert_true(prompt > (json_int_t)strlen(mails[0].mail) / 4);
    assert_int_equal(answer, (strlen(content_of(world)) + 3) / 4);
    assert_int_equal(json_integer_value(json_object_get(usage, "total_tokens")), prompt + answer);
}

/* ---- streams ---- */

/* Puts the pieces of a stream together again. */
static void read_stream(const struct world *world, char *text, char *arguments, char *last)
{
    assert_string_equal(world->answer.type, "text/event-stream");
    const char *at = tide_buf_cstr(&world->answer.body);
    text[0] = arguments[0] = last[0] = '\0';
    while ((at = strstr(at, "data: ")) != NULL) {
        at += 6;
        const size_t bytes = strcspn(at, "\n");
        json_t *event = json_loadb(at, bytes, 0, NULL);
        (void)snprintf(last, 100, "%.*s", (int)bytes, at);
        if (event == NULL) {
            assert_int_equal(strncmp(at, "[DONE]", 6), 0);
            break;
        }
        const json_t *delta =
            json_object_get(json_array_get(json_object_get(event, "choices"), 0), "delta");
        if (delta == NULL)
            delta = json_object_get(event, "delta");
        const json_t *call = json_array_get(json_object_get(delta, "tool_calls"), 0);
        const char *pieces[] = {
            json_string_value(json_object_get(delta, "content")),
            json_string_value(json_object_get(delta, "text")),
            json_string_value(json_object_get(delta, "partial_json")),
            json_string_value(json_object_get(json_object_get(call, "function"), "arguments"))};
        for (size_t i = 0; i < 4; i++)
            if (pieces[i] != NULL)
                strncat(i < 2 ? text : arguments, pieces[i], 3000);
        json_decref(event);
    }
}

static void a_stream_holds_what_the_whole_answer_holds(void **state)
{
    struct world *world = *state;
    static char text[8192];
    static char arguments[8192];
    char last[100];
    for (size_t m = 0; m < MAILS; m++)
        for (int tools = 0; tools < 2; tools++) {
            json_t *whole = json_pack("{s:s,s:i,s:[{s:s,s:s}]}", "model", "m", "max_tokens", 900,
                                      "messages", "role", "user", "content", mails[m].mail);
            json_t *other = json_deep_copy(whole);
            if (tools) {
                json_object_set_new(whole, "tools", classify_tool(true, five));
                json_object_set_new(other, "tools", classify_tool(false, five));
            }
            assert_int_equal(ask(world, OPENAI, json_deep_copy(whole)), 200);
            char *wanted = strdup(
                tools ? json_string_value(json_object_get(openai_call(world, 0), "arguments"))
                      : content_of(world));
            json_object_set_new(whole, "stream", json_true());
            json_object_set_new(other, "stream", json_true());
            assert_int_equal(ask(world, OPENAI, whole), 200);
            read_stream(world, text, arguments, last);
            assert_string_equal(tools ? arguments : text, wanted);
            assert_int_equal(strncmp(last, "[DONE]", 6), 0);
            assert_int_equal(ask(world, ANTHROPIC, other), 200);
            read_stream(world, text, arguments, last);
            assert_string_equal(tools ? arguments : text, wanted);
            assert_non_null(strstr(last, "message_stop"));
            assert_non_null(strstr(tide_buf_cstr(&world->answer.body), "event: message_start\n"));
            free(wanted);
        }
}

/* ---- refusals ---- */

#define USER "{\"role\":\"user\",\"content\":\"Hi there\"}"

static void openai_requests_that_are_wrong_are_refused(void **state)
{
    struct world *world = *state;
#define CALL                                                                                       \
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":"            \
    "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}"
    static const struct {
        int status;
        const char *body;
        const char *word;
    } cases[] = {
        {400, "nonsense", "parse"},
        {400, "[]", "parse"},
        {400, "{\"messages\":[" USER "]}", "model"},
        {404, "{\"model\":\"no-such-model\",\"messages\":[" USER "]}", "exist"},
        {400, "{\"model\":\"m\"}", "messages"},
        {400, "{\"model\":\"m\",\"messages\":[]}", "messages"},
        {400, "{\"model\":\"m\",\"messages\":[{\"content\":\"x\"}]}", "role"},
        {400, "{\"model\":\"m\",\"messages\":[{\"role\":\"boss\",\"content\":\"x\"}]}", "boss"},
        {400, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"}]}", "content"},
        {400, "{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\"}]}", "tool_calls"},
        {400, "{\"model\":\"m\",\"messages\":[" USER "," CALL "]}", "must be followed"},
        {400, "{\"model\":\"m\",\"messages\":[" USER "," CALL "," USER "]}", "c1"},
        {400,
         "{\"model\":\"m\",\"messages\":[" USER
         ",{\"role\":\"tool\",\"tool_call_id\":\"c9\",\"content\":\"x\"}]}",
         "preceding"},
        {400, "{\"model\":\"m\",\"messages\":[" USER "],\"max_tokens\":0}", "tokens"},
        {400,
         "{\"model\":\"m\",\"messages\":[" USER "],\"max_tokens\":5,\"max_completion_tokens\":5}",
         "same time"},
        {400, "{\"model\":\"m\",\"messages\":[" USER "],\"n\":2}", "choice"},
        {400, "{\"model\":\"m\",\"messages\":[" USER "],\"tool_choice\":\"required\"}", "tools"},
        {400,
         "{\"model\":\"m\",\"messages\":[" USER
         "],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"a b\"}}]}",
         "name"},
        {400,
         "{\"model\":\"m\",\"messages\":[" USER "],\"response_format\":{\"type\":\"json_object\"}}",
         "json"},
        {400,
         "{\"model\":\"m\",\"messages\":[" USER "],\"response_format\":{\"type\":\"json_schema\"}}",
         "schema"},
        {200,
         "{\"model\":\"m\",\"messages\":[" USER "," CALL
         ",{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"x\"}],\"temperature\":0}",
         ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int status = ask_raw(world, OPENAI, cases[i].body);
        if (status != cases[i].status)
            print_error("%s\n%s\n", cases[i].body, tide_buf_cstr(&world->answer.body));
        assert_int_equal(status, cases[i].status);
        const json_t *error = json_object_get(world->json, "error");
        if (status == 200)
            continue;
        assert_int_equal(json_object_size(error), 4);
        assert_non_null(
            strstr(json_string_value(json_object_get(error, "message")), cases[i].word));
    }
}

static void anthropic_requests_that_are_wrong_are_refused(void **state)
{
    struct world *world = *state;
#define HEAD "{\"model\":\"m\",\"max_tokens\":100,"
#define USE                                                                                        \
    "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"f\","    \
    "\"input\":{}}]}"
#define RESULT "{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"x\"}"
    static const struct {
        int status;
        const char *version;
        const char *body;
        const char *word;
    } cases[] = {
        {400, NULL, HEAD "\"messages\":[" USER "]}", "anthropic-version"},
        {400, "2020-01-01", HEAD "\"messages\":[" USER "]}", "version"},
        {200, "2023-06-01", HEAD "\"temperature\":0.5,\"messages\":[" USER "]}", ""},
        {400, "2023-06-01", HEAD "\"temperature\":1.5,\"messages\":[" USER "]}", "temperature"},
        {400, "2026-10-21", HEAD "\"temperature\":0.5,\"messages\":[" USER "]}", "temperature"},
        {400, "2026-10-21", HEAD "\"top_p\":1,\"messages\":[" USER "]}", "top_p"},
        {400, "2026-10-21", HEAD "\"top_k\":1,\"messages\":[" USER "]}", "top_k"},
        {400, "2026-10-21", "{\"model\":\"m\",\"messages\":[" USER "]}", "max_tokens"},
        {400, "2026-10-21", "{\"model\":\"m\",\"max_tokens\":0,\"messages\":[" USER "]}",
         "max_tokens"},
        {400, "2026-10-21", HEAD "\"messages\":[]}", "at least one"},
        {400, "2026-10-21", HEAD "\"messages\":[{\"role\":\"assistant\",\"content\":\"x\"}]}",
         "first message"},
        {400, "2026-10-21", HEAD "\"messages\":[" USER ",{\"role\":\"system\",\"content\":\"x\"}]}",
         "role"},
        {400, "2026-10-21", HEAD "\"messages\":[" USER "," USE "]}", "tool_use"},
        {400, "2026-10-21", HEAD "\"messages\":[" USER "," USE "," USER "]}", "t1"},
        {400, "2026-10-21",
         HEAD "\"messages\":[" USER ",{\"role\":\"user\",\"content\":[" RESULT "]}]}",
         "tool_use_id"},
        {400, "2026-10-21",
         HEAD "\"messages\":[" USER "," USE
              ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}," RESULT "]}]}",
         "before"},
        {200, "2026-10-21",
         HEAD "\"messages\":[" USER "," USE ",{\"role\":\"user\",\"content\":[" RESULT
              ",{\"type\":\"text\",\"text\":\"a\"}]}]}",
         ""},
        {400, "2026-10-21",
         HEAD "\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":[{\"type\":"
              "\"document\"}]}," USER "]}",
         "document"},
        {200, "2023-06-01",
         HEAD "\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":[{\"type\":"
              "\"document\"}]}," USER "]}",
         ""},
        {400, "2026-10-21",
         HEAD "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\","
              "\"citations\":[{}]}]}]}",
         "citations"},
        {400, "2026-10-21", HEAD "\"messages\":[" USER "],\"tools\":[{\"name\":\"f\"}]}",
         "input_schema"},
        {404, "2026-10-21", "{\"model\":\"no-such\",\"max_tokens\":1,\"messages\":[" USER "]}",
         "model"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world->version = cases[i].version;
        const int status = ask_raw(world, ANTHROPIC, cases[i].body);
        if (status != cases[i].status)
            print_error("%s\n%s\n", cases[i].body, tide_buf_cstr(&world->answer.body));
        assert_int_equal(status, cases[i].status);
        if (status == 200)
            continue;
        assert_string_equal(json_string_value(json_object_get(world->json, "type")), "error");
        assert_non_null(strstr(
            json_string_value(json_object_get(json_object_get(world->json, "error"), "message")),
            cases[i].word));
    }
}

static void without_a_key_nobody_is_answered(void **state)
{
    struct world *world = *state;
    static const char *const keys[] = {NULL, "Bearer ", "Bearer    ", "Basic abc"};
    for (size_t i = 0; i < 4; i++) {
        world->key = keys[i];
        assert_int_equal(ask_raw(world, OPENAI, "{}"), 401);
        assert_int_equal(ask_raw(world, ANTHROPIC, "{}"), 401);
        assert_string_equal(
            json_string_value(json_object_get(json_object_get(world->json, "error"), "type")),
            "authentication_error");
        assert_int_equal(ask_raw(world, "/v1/models", NULL), 401);
    }
    world->key = "Bearer any";
    assert_int_equal(ask_raw(world, "/v1/models", NULL), 200);
    assert_int_equal(json_array_size(json_object_get(world->json, "data")), 2);
}

/* ---- faults and fixtures ---- */

static const char *const plain = HEAD "\"messages\":[" USER "]}";

static void faults_look_like_the_real_ones(void **state)
{
    struct world *world = *state;
    add_fault(world, "billing");
    assert_int_equal(ask_raw(world, OPENAI, plain), 429);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(world->json, "error"), "type")),
        "insufficient_quota");
    assert_int_equal(ask_raw(world, ANTHROPIC, plain), 429);
    assert_string_equal(
        json_string_value(json_object_get(
            json_object_get(json_object_get(world->json, "error"), "details"), "error_code")),
        "enforced_spend_limit_reached");
    for (size_t i = 0; i < world->answer.headers_count; i++)
        assert_string_not_equal(world->answer.headers[i].name, "retry-after");
    assert_int_equal(ask_raw(world, OPENAI, plain), 429);
    (void)ask_raw(world, OPENAI, plain);
    assert_int_equal(ask_raw(world, ANTHROPIC, plain), 402);
}

static void an_overloaded_model_says_so(void **state)
{
    struct world *world = *state;
    add_fault(world, "overloaded");
    assert_int_equal(ask_raw(world, OPENAI, plain), 503);
    assert_int_equal(ask_raw(world, ANTHROPIC, plain), 529);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(world->json, "error"), "type")),
        "overloaded_error");
}

static void spoiled_answers_are_spoiled_as_asked(void **state)
{
    struct world *world = *state;
    json_t *body = json_pack("{s:s,s:i,s:[{s:s,s:s}],s:o,s:s}", "model", "m", "max_tokens", 900,
                             "messages", "role", "user", "content", mails[0].mail, "tools",
                             classify_tool(true, five), "tool_choice", "required");
    add_fault(world, "no-usage");
    add_fault(world, "invalid-arguments");
    assert_int_equal(ask(world, OPENAI, json_deep_copy(body)), 200);
    assert_null(json_object_get(world->json, "usage"));
    assert_null(json_loads(json_string_value(json_object_get(openai_call(world, 0), "arguments")),
                           0, NULL));
    json_object_del(body, "tool_choice");
    json_object_set_new(body, "tools", classify_tool(false, five));
    json_object_set_new(body, "tool_choice", json_pack("{s:s}", "type", "any"));
    assert_int_equal(ask(world, ANTHROPIC, body), 200);
    assert_null(json_object_get(world->json, "usage"));
    const json_t *input =
        json_object_get(json_array_get(json_object_get(world->json, "content"), 0), "input");
    assert_null(json_object_get(input, "category"));
    add_fault(world, "length");
    assert_int_equal(ask_raw(world, ANTHROPIC, plain), 200);
    assert_string_equal(json_string_value(json_object_get(world->json, "stop_reason")),
                        "max_tokens");
    add_fault(world, "bad-json");
    assert_int_equal(ask_raw(world, OPENAI, plain), 200);
    assert_null(world->json);
}

static void a_fixture_overrides_the_model(void **state)
{
    struct world *world = *state;
    struct box_chat_state *chat = box_cloud_chat(world->cloud);
    tide_error err;
    static const char *const wrong[] = {"{}", "{\"contains\":\"a\"}",
                                        "{\"contains\":\"a\",\"tool\":{}}",
                                        "{\"contains\":3,\"reply\":\"b\"}"};
    for (size_t i = 0; i < 4; i++) {
        json_t *fixture = json_loads(wrong[i], 0, NULL);
        assert_int_equal(box_chat_add_fixture(chat, fixture, &err), TIDE_INVALID);
        json_decref(fixture);
    }
    json_t *fixture = json_loads("{\"contains\":\"Hi there\",\"reply\":\"General!\",\"tool\":"
                                 "{\"name\":\"f\",\"arguments\":{\"a\":1}}}",
                                 0, NULL);
    assert_int_equal(box_chat_add_fixture(chat, fixture, &err), TIDE_OK);
    json_decref(fixture);
    assert_int_equal(ask_raw(world, ANTHROPIC, plain), 200);
    const json_t *block = json_array_get(json_object_get(world->json, "content"), 0);
    assert_string_equal(json_string_value(json_object_get(block, "name")), "f");
    assert_int_equal(ask_raw(world, ANTHROPIC,
                             HEAD "\"messages\":[" USER "," USE
                                  ",{\"role\":\"user\",\"content\":[" RESULT "]}]}"),
                     200);
    block = json_array_get(json_object_get(world->json, "content"), 0);
    assert_string_equal(json_string_value(json_object_get(block, "text")), "General!");
    box_chat_clear_fixtures(chat);
    assert_int_equal(ask_raw(world, ANTHROPIC, plain), 200);
    block = json_array_get(json_object_get(world->json, "content"), 0);
    assert_string_not_equal(json_string_value(json_object_get(block, "text")), "General!");
}

static void too_many_calls_are_told_when_to_come_back(void **state)
{
    struct world *world = *state;
    box_quota_set(box_cloud_quota(world->cloud),
                  &(struct box_quota_limits){.rules = BOX_QUOTA_2026, .chat_per_minute = 2});
    assert_int_equal(ask_raw(world, OPENAI, plain), 200);
    assert_int_equal(ask_raw(world, OPENAI, plain), 200);
    static const char *const targets[] = {OPENAI, ANTHROPIC};
    for (size_t t = 0; t < 2; t++) {
        assert_int_equal(ask_raw(world, targets[t], plain), 429);
        bool told = false;
        for (size_t i = 0; i < world->answer.headers_count; i++)
            if (strcmp(world->answer.headers[i].name, "retry-after") == 0) {
                const long seconds = strtol(world->answer.headers[i].value, NULL, 10);
                told = seconds >= 1 && seconds <= 61;
            }
        assert_true(told);
    }
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(world->json, "error"), "type")),
        "rate_limit_error");
}

/* ---- patterns ---- */

static void an_example_matches_its_pattern(void **state)
{
    (void)state;
    static const char *const patterns[] = {"^abc$",          "^[a-z]+$",      "^\\d{2,4}x?$",
                                           "(a|b)(c|d)*",    "^[^0-9]{3}$",   "\\w+@\\w+\\.com",
                                           "^(?:ab){2}\\s$", "^[A-F0-9]{8}$", "a\\.b\\+c"};
    tide_arena arena;
    tide_arena_init(&arena, tide_mem_heap(), 1 << 20);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        for (size_t more = 0; more < 3; more++) {
            regex_t regex;
            tide_buf text;
            tide_buf_init(&text, tide_mem_heap(), 8192);
            assert_true(box_pattern_compile(tide_text_of(patterns[i]), false, &arena, &regex));
            box_pattern_example(tide_text_of(patterns[i]), more, &text);
            assert_int_equal(tide_buf_add(&text, "", 1), TIDE_OK);
            if (regexec(&regex, tide_buf_cstr(&text), 0, NULL, 0) != 0)
                print_error("%s: %s\n", patterns[i], tide_buf_cstr(&text));
            assert_int_equal(regexec(&regex, tide_buf_cstr(&text), 0, NULL, 0), 0);
            regfree(&regex);
            tide_buf_done(&text);
        }
    tide_arena_done(&arena);
}

int main(void)
{
#define WITH_CLOUD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_picked_out_of_a_mail),
        cmocka_unit_test(arguments_validate_against_random_schemas),
        cmocka_unit_test(a_broken_value_is_seen),
        cmocka_unit_test(odd_schemas_are_filled_too),
        cmocka_unit_test(a_value_that_was_said_is_found_by_its_name),
        cmocka_unit_test(an_example_matches_its_pattern),
        WITH_CLOUD(mails_are_classified_through_a_tool),
        WITH_CLOUD(mails_in_json_are_seen_the_same_way),
        WITH_CLOUD(json_asked_for_in_words_has_the_keys_named),
        WITH_CLOUD(a_draft_greets_the_sender_in_their_language),
        WITH_CLOUD(a_loop_of_tools_comes_to_an_end),
        WITH_CLOUD(tool_choice_is_obeyed),
        WITH_CLOUD(an_answer_follows_its_schema),
        WITH_CLOUD(the_same_conversation_gets_the_same_answer),
        WITH_CLOUD(a_small_limit_cuts_the_answer),
        WITH_CLOUD(usage_adds_up),
        WITH_CLOUD(a_stream_holds_what_the_whole_answer_holds),
        WITH_CLOUD(openai_requests_that_are_wrong_are_refused),
        WITH_CLOUD(anthropic_requests_that_are_wrong_are_refused),
        WITH_CLOUD(without_a_key_nobody_is_answered),
        WITH_CLOUD(faults_look_like_the_real_ones),
        WITH_CLOUD(an_overloaded_model_says_so),
        WITH_CLOUD(spoiled_answers_are_spoiled_as_asked),
        WITH_CLOUD(a_fixture_overrides_the_model),
        WITH_CLOUD(too_many_calls_are_told_when_to_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
