#include "chat_fixture.h"
#include "support/scale.h"

int setup(void **state)
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

int teardown(void **state)
{
    struct world *world = *state;
    json_decref(world->json);
    box_answer_done(&world->answer);
    box_cloud_free(world->cloud);
    free(world);
    return 0;
}

int ask_raw(struct world *world, const char *target, const char *body)
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

int ask(struct world *world, const char *target, json_t *body)
{
    auto_text *text = json_dumps(body, 0);
    assert_non_null(text);
    const int status = ask_raw(world, target, text);
    if (status != 200)
        print_message("%d %s\n", status, tide_buf_cstr(&world->answer.body));
    json_decref(body);
    return status;
}

json_t *message_of(const struct world *world)
{
    return json_object_get(json_array_get(json_object_get(world->json, "choices"), 0), "message");
}

const char *content_of(const struct world *world)
{
    return json_string_value(json_object_get(message_of(world), "content"));
}

const char *finish_of(const struct world *world)
{
    return json_string_value(json_object_get(
        json_array_get(json_object_get(world->json, "choices"), 0), "finish_reason"));
}

const json_t *openai_call(const struct world *world, size_t i)
{
    return json_object_get(json_array_get(json_object_get(message_of(world), "tool_calls"), i),
                           "function");
}

void chat_fault(struct world *world, const char *fault)
{
    char rule[200];
    (void)snprintf(rule, sizeof rule, "{\"method\":\"chat.*\",\"rate\":1,\"fault\":\"%s\"}", fault);
    add_fault(world->cloud, rule);
}

const struct sample mails[] = {
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

const char *const five = "[\"needs_response\",\"action_required\",\"payment_request\","
                         "\"fyi\",\"waiting\"]";
const char *const finer = "[\"urgent\",\"to_reply\",\"invoice\",\"newsletter\",\"notification\","
                          "\"personal\",\"spam\",\"task\",\"waiting\",\"other\"]";

json_t *classify_tool(bool openai, const char *values)
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
