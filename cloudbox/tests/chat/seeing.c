/* What the model sees in a mail, however the mail is handed to it. */
#include "chat_fixture.h"

#include <math.h>

CASE(mails_are_classified_through_a_tool)
{
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
            json_auto_t *arguments =
                json_loads(json_string_value(json_object_get(call, "arguments")), 0, NULL);
            assert_non_null(arguments);
            assert_string_equal(json_string_value(json_object_get(arguments, "category")),
                                fine ? mails[i].kind : mails[i].category);
            assert_string_equal(json_string_value(json_object_get(arguments, "detected_language")),
                                i == 9 ? "cs" : "en");
        }
}

CASE(mails_in_json_are_seen_the_same_way)
{
    for (size_t i = 0; i < MAILS; i++) {
        /* From the header lines to JSON, with the body somewhere inside. */
        const char *from = strchr(mails[i].mail, ' ') + 1;
        const char *subject = strstr(mails[i].mail, "Subject: ") + 9;
        const char *text = strstr(mails[i].mail, "\n\n") + 2;
        auto_text *encoded = NULL;
        json_auto_t *mail = json_pack("{s:{s:{s:s%,s:s%},s:s}}", "message", "headers", "From", from,
                                      strcspn(from, "\n"), "Subject", subject,
                                      strcspn(subject, "\n"), "body", text);
        auto_text *dumped = json_dumps(mail, 0);
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
    }
}

/* As the assistant asks: JSON by the prompt alone. */
CASE(json_asked_for_in_words_has_the_keys_named)
{
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
            json_auto_t *said = json_loads(content_of(world), 0, NULL);
            assert_non_null(said);
            assert_int_equal(json_object_size(said), 5);
            assert_string_equal(json_string_value(json_object_get(said, "category")),
                                mails[i].category);
            assert_string_equal(json_string_value(json_object_get(said, "confidence")), "high");
            assert_string_equal(json_string_value(json_object_get(said, "detected_language")),
                                i == 9 ? "cs" : "en");
            assert_true(json_string_length(json_object_get(said, "reasoning")) > 5);
        }
}

CASE(a_draft_greets_the_sender_in_their_language)
{
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

TEST(facts_are_picked_out_of_a_mail)
{
    tide_auto_arena arena = tide_arena_heap(16 << 20);
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
}
