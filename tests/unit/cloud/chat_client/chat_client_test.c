/* Every way to speak to a model: words, JSON, tools, the results of tools. */
#include "chat_client_fixture.h"

/* CHT1: the same words, however they are asked for. */
CASE(an_answer_in_words_is_the_same_in_every_way)
{
    char first[2][500] = {"", ""}; /* by dialect: the model sees other bytes */
    for (size_t i = 0; i < WAYS; i++) {
        speak(f, &ways[i], NULL);
        say_ok(f, &hello);
        assert_true(f->answer.text.bytes > 10);
        assert_int_equal(f->answer.stop, TIDE_CHAT_STOP_DONE);
        assert_int_equal(f->answer.calls_count, 0);
        assert_true(f->answer.tokens_known);
        assert_true(f->answer.in_tokens > 0 && f->answer.out_tokens > 0);
        assert_string_equal(f->answer.model, "tide-fast");
        assert_int_equal(strncmp(f->answer.request_id, "req_", 4), 0);
        assert_int_equal(f->answer.message.role, TIDE_CHAT_ASSISTANT);
        assert_int_equal(f->requests, 1);
        char *seen = first[ways[i].dialect];
        if (seen[0] == '\0')
            (void)snprintf(seen, sizeof first[0], "%s", f->answer.text.data);
        else
            assert_string_equal(f->answer.text.data, seen);
    }
    assert_int_equal(count(f, "chat_keys", "calls"), WAYS);
}

CASE(a_request_looks_as_its_dialect_wants_it)
{
    say_ok(f, &hello);
    assert_string_equal(f->url, ORIGIN "/v1/chat/completions");
    assert_string_equal(f->authorization, "Bearer " KEY);
    assert_string_equal(f->version, "");
    assert_string_equal(f->accept, "text/event-stream");
    json_t *body = body_of(f);
    assert_string_equal(json_string_value(json_object_get(body, "model")), "tide-fast");
    assert_int_equal(json_integer_value(json_object_get(body, "max_completion_tokens")), 500);
    assert_null(json_object_get(body, "max_tokens"));
    assert_null(json_object_get(body, "temperature"));
    assert_null(json_object_get(body, "tools"));
    assert_null(json_object_get(body, "response_format"));
    assert_true(json_is_true(json_object_get(body, "stream")));
    json_decref(body);

    speak(f, &ways[3], NULL);
    say_ok(f, &mail);
    assert_string_equal(f->url, ORIGIN "/v1/messages");
    assert_string_equal(f->authorization, "");
    assert_string_equal(f->plain_key, KEY);
    assert_string_equal(f->version, "2023-06-01");
    body = body_of(f);
    assert_non_null(strstr(json_string_value(json_object_get(body, "system")), "JSON schema"));
    assert_int_equal(json_integer_value(json_object_get(body, "max_tokens")), TIDE_CHAT_TOKENS_MAX);
    assert_true(json_real_value(json_object_get(body, "temperature")) > 0.19);
    assert_null(json_object_get(body, "stream"));
    json_decref(body);

    /* The newer version takes no temperature: none is sent, so that nothing is refused. */
    speak(f, &ways[4], NULL);
    say_ok(f, &mail);
    assert_int_equal(f->requests, 1);
    assert_string_equal(f->version, "2026-10-21");
    body = body_of(f);
    assert_null(json_object_get(body, "temperature"));
    json_decref(body);
}

static void old_server(struct tide_chat_options *o)
{
    o->old_limit = true;
    o->format = TIDE_CHAT_FORMAT_OFF;
    o->no_stream_usage = true;
    o->endpoint = ORIGIN "/v1/";
}

static void object_server(struct tide_chat_options *o)
{
    o->format = TIDE_CHAT_FORMAT_OBJECT;
}

CASE(what_a_server_does_not_know_is_left_out)
{
    speak(f, &ways[0], old_server);
    say_ok(f, &mail);
    assert_string_equal(f->url, ORIGIN "/v1/chat/completions");
    json_t *body = body_of(f);
    assert_int_equal(json_integer_value(json_object_get(body, "max_tokens")), TIDE_CHAT_TOKENS_MAX);
    assert_null(json_object_get(body, "max_completion_tokens"));
    assert_null(json_object_get(body, "response_format"));
    assert_null(json_object_get(body, "stream_options"));
    json_decref(body);
    assert_false(f->answer.tokens_known); /* but estimated */
    assert_true(f->answer.in_tokens > 0 && f->answer.out_tokens > 0);
    speak(f, &ways[0], object_server);
    say_ok(f, &mail);
    body = body_of(f);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(body, "response_format"), "type")),
        "json_object");
    json_decref(body);
}

CASE(an_answer_in_json_meets_its_schema)
{
    for (size_t i = 0; i < WAYS; i++) {
        speak(f, &ways[i], NULL);
        if (ways[i].dialect == TIDE_CHAT_ANTHROPIC) /* which has no format: the prompt alone */
            fixture_reply(f, "Classify", "Sure:\n```json\n{\"category\":\"payment_request\"}\n```");
        say_ok(f, &mail);
        assert_non_null(strstr(f->answer.text.data, "payment_request"));
    }
}

/* Calls, results, and back again: the whole turn in one message of each side. */
CASE(tools_are_called_and_their_results_understood)
{
    for (size_t i = 0; i < WAYS; i++) {
        speak(f, &ways[i], NULL);
        say_ok(f, &tooled);
        assert_int_equal(f->answer.stop, TIDE_CHAT_STOP_TOOLS);
        assert_int_equal(f->answer.calls_count, 1);
        const struct tide_chat_part *call = &f->answer.calls[0];
        assert_false(call->invalid || call->unknown);
        assert_true(call->id.bytes > 0);
        json_t *arguments = NULL;
        OK(f, tide_json_parse(call->arguments, &arguments, err));
        json_decref(arguments);

        /* It is stored and read back before the next call, as a job does (TLK1). */
        tide_auto_buf line = tide_buf_heap(1 << 20);
        struct tide_chat_answer stored = {.calls_count = 0};
        OK(f, tide_chat_answer_write(&f->answer, &line, err));
        OK(f, tide_chat_answer_read(tide_buf_text(&line), tide_mem_heap(), &stored, err));
        const struct tide_chat_part results[] = {
            {.kind = TIDE_CHAT_RESULT, .id = stored.calls[0].id, .text = TIDE_TEXT("done")}};
        const struct tide_chat_part more[] = {
            {.kind = TIDE_CHAT_TEXT, .text = TIDE_TEXT("Now say what you did.")}};
        const struct tide_chat_message turns[] = {tooled.messages[0],
                                                  stored.message,
                                                  {TIDE_CHAT_USER, results, 1},
                                                  {TIDE_CHAT_USER, more, 1}};
        struct tide_chat_talk next = tooled;
        next.messages = turns;
        next.messages_count = 4;
        next.choice = TIDE_CHAT_CHOICE_NONE;
        say_ok(f, &next);
        assert_int_equal(f->answer.stop, TIDE_CHAT_STOP_DONE);
        assert_true(f->answer.text.bytes > 0);
        tide_chat_answer_done(&stored);
    }
}

CASE(a_tool_that_is_named_is_the_one_that_is_called)
{
    struct tide_chat_talk talk = tooled;
    talk.choice = TIDE_CHAT_CHOICE_NAMED;
    talk.choice_name = TIDE_TEXT("search_mail");
    for (size_t i = 0; i < WAYS; i++) {
        speak(f, &ways[i], NULL);
        say_ok(f, &talk);
        assert_true(tide_text_equal(f->answer.calls[0].name, TIDE_TEXT("search_mail")));
    }
}

CASE(an_answer_that_is_cut_says_so)
{
    struct tide_chat_talk talk = hello;
    talk.tokens_max = 3;
    for (size_t i = 0; i < WAYS; i++) {
        speak(f, &ways[i], NULL);
        say_ok(f, &talk);
        assert_int_equal(f->answer.stop, TIDE_CHAT_STOP_LENGTH);
        assert_true(f->answer.text.bytes > 0 && f->answer.text.bytes <= 16);
    }
}

/* A block that is not known has a signature: it is given back as it came, also through storage. */
CASE(what_is_not_known_is_given_back_as_it_came)
{
    fault(f, "\"fault\":\"opaque\"");
    for (size_t i = 2; i < WAYS; i++) {
        speak(f, &ways[i], NULL);
        say_ok(f, &hello);
        assert_int_equal(f->answer.message.parts_count, 2);
        assert_int_equal(f->answer.message.parts[0].kind, TIDE_CHAT_OPAQUE);
        assert_null(strstr(f->answer.text.data, "Let me think"));
        tide_auto_buf line = tide_buf_heap(1 << 20);
        struct tide_chat_answer stored = {.calls_count = 0};
        OK(f, tide_chat_answer_write(&f->answer, &line, err));
        OK(f, tide_chat_answer_read(tide_buf_text(&line), tide_mem_heap(), &stored, err));
        const struct tide_chat_message turns[] = {hello.messages[0], stored.message,
                                                  hello.messages[0]};
        struct tide_chat_talk next = hello;
        next.messages = turns;
        next.messages_count = 3;
        say_ok(f, &next); /* a changed one would be refused */
        tide_chat_answer_done(&stored);
    }
    /* OpenAI's dialect has nowhere to put it. */
    speak(f, &ways[0], NULL);
    static const struct tide_chat_part parts[] = {
        {.kind = TIDE_CHAT_OPAQUE, .text = {"{\"type\":\"thinking\"}", 19}},
        {.kind = TIDE_CHAT_TEXT, .text = {"I see.", 6}}};
    const struct tide_chat_message turns[] = {
        hello.messages[0], {TIDE_CHAT_ASSISTANT, parts, 2}, hello.messages[0]};
    struct tide_chat_talk next = hello;
    next.messages = turns;
    next.messages_count = 3;
    say_ok(f, &next);
}

struct listed {
    unsigned models;
    char last[64];
};

static void list(const char *id, void *arg)
{
    struct listed *listed = arg;
    listed->models++;
    (void)snprintf(listed->last, sizeof listed->last, "%s", id);
}

CASE(the_list_of_models_shows_whether_endpoint_and_key_are_right)
{
    for (size_t i = 0; i < WAYS; i++) {
        struct listed listed = {.models = 0};
        speak(f, &ways[i], NULL);
        OK(f, tide_chat_models(f->chat, NULL, NULL, list, &listed, err));
        assert_int_equal(listed.models, 2);
        assert_string_equal(listed.last, "tide-good");
        OK(f, tide_chat_models(f->chat, NULL, NULL, NULL, NULL, err));
    }
    fault(f, "\"fault\":\"404\"");
    assert_int_equal(tide_chat_models(f->chat, NULL, NULL, list, NULL, &f->err), TIDE_GONE);
    no_faults(f);
    fault(f, "\"fault\":\"401\",\"count\":1");
    assert_int_equal(tide_chat_models(f->chat, NULL, NULL, list, NULL, &f->err), TIDE_AUTH);
    assert_non_null(strstr(f->err.text, "tidemark account add chat " NAME));
    f->say = "{\"data\":5}";
    f->say_http = 200;
    assert_int_equal(tide_chat_models(f->chat, NULL, NULL, list, NULL, &f->err), TIDE_AUTH);
}

CASE(a_talk_that_cannot_be_sent_is_not_sent)
{
    static const struct tide_chat_tool odd[] = {{{"a b", 3}, {"", 0}, {"{}", 2}},
                                                {{"f", 1}, {"", 0}, {"[]", 2}},
                                                {{"f", 1}, {"", 0}, {"{", 1}}};
    struct tide_chat_talk talk = hello;
    talk.messages_count = 0;
    say_fails(f, &talk, TIDE_INVALID, "messages");
    talk = hello;
    talk.tools_count = 1;
    for (size_t i = 0; i < 3; i++) {
        talk.tools = &odd[i];
        assert_int_equal(say(f, &talk), TIDE_INVALID);
    }
    talk = hello;
    talk.json = true;
    talk.schema = TIDE_TEXT("not a schema");
    say_fails(f, &talk, TIDE_INVALID, "schema");
    assert_int_equal(count(f, "chat_keys", "calls"), 0);
}

CASE(an_endpoint_is_https_or_this_machine_and_may_have_a_path)
{
    static const struct {
        const char *endpoint;
        bool good;
    } rows[] = {
        {"https://api.example.com", true},
        {"https://api.example.com/", true},
        {"https://api.example.com/openai/v1", true},
        {"https://api.example.com/openai/v1/", true},
        {"http://127.0.0.1:11434/v1", true},
        {"http://localhost:8080", true},
        {"http://api.example.com/v1", false},
        {"https://api.example.com/v1?key=x", false},
        {"https://api.example.com/v1#x", false},
        {"https://user@api.example.com/v1", false},
        {"https://api.example.com/a b", false},
        {"ftp://api.example.com/v1", false},
        {"api.example.com", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tide_status rc = tide_chat_endpoint_check(rows[i].endpoint, &f->err);
        if ((rc == TIDE_OK) != rows[i].good)
            fail_msg("%s: %s", rows[i].endpoint, tide_status_name(rc));
    }
    struct tide_chat_options options = {
        .endpoint = "https://api.example.com/a/v2", .key = TIDE_TEXT("k"), .version = "2023/06"};
    tide_chat *chat = NULL;
    assert_int_equal(tide_chat_open(&options, &f->mem.base, &chat, &f->err), TIDE_INVALID);
}
