/* Models and servers that fail, in every way to speak to them. */
#include "chat_client_fixture.h"

#define EVERY_WAY                                                                                  \
    for (size_t i = 0; i < WAYS; i++, no_faults(f))                                                \
        for (bool once = (speak(f, &ways[i], NULL), true); once; once = false)

CASE(garbage_and_answers_that_break_off_are_failures_of_the_server)
{
    EVERY_WAY
    {
        fault(f, "\"fault\":\"bad-json\"");
        say_fails(f, &hello, TIDE_SERVER, "");
        assert_int_equal(f->requests, 1); /* it decides nothing */
        no_faults(f);
        fault(f, "\"fault\":\"garbage\"");
        say_fails(f, &hello, TIDE_SERVER, "");
        no_faults(f);
        fault(f, "\"fault\":\"html\"");
        say_fails(f, &hello, TIDE_SERVER, "502");
        no_faults(f);
        fault(f, "\"fault\":\"truncate\"");
        const tide_status rc = say(f, &hello);
        assert_true(rc == TIDE_SERVER || rc == TIDE_UNKNOWN);
        if (ways[i].no_stream)
            continue;
        no_faults(f);
        fault(f, "\"fault\":\"cut-stream\""); /* and nothing on the wire shows it */
        say_fails(f, &hello, TIDE_SERVER, "broke off");
    }
    /* A page of HTML with a 200 comes from a portal. */
    f->say = "<html>Sign in to the airport</html>";
    f->say_http = 200;
    f->say_type = "text/html";
    say_fails(f, &hello, TIDE_SERVER, "HTML");
}

/* CHT2 */
CASE(ten_megabytes_are_refused_and_never_kept)
{
    struct tide_chat_talk talk = hello;
    talk.tokens_max = 100000000;
    EVERY_WAY
    {
        fault(f, "\"fault\":\"huge\"");
        f->mem.bytes_peak = f->mem.bytes_live;
        say_fails(f, &talk, TIDE_SERVER, "longer than 1048576 bytes");
        assert_true(f->mem.bytes_peak < (16 << 20));
    }
}

static void patient(struct tide_chat_options *o)
{
    o->silence_ms = 120000;
}

CASE(silence_ends_a_streamed_call_after_its_limit)
{
    static const char *const stalls[] = {"stall-start", "stall-head", "stall-body"};
    for (size_t i = 0; i < WAYS; i++) {
        for (size_t k = 0; k < 3 && !ways[i].no_stream; k++) {
            char rule[100];
            (void)snprintf(rule, sizeof rule, "\"fault\":\"%s\",\"ms\":60000", stalls[k]);
            speak(f, &ways[i], NULL);
            fault(f, rule);
            say_fails(f, &hello, TIDE_TIMEOUT, "");
            assert_in_range(f->took_ms, TIDE_CHAT_SILENCE_MS, TIDE_CHAT_SILENCE_MS + 2000);
            no_faults(f);
        }
    }
    /* A model may think for longer, if its user says so, and without a stream in any case. */
    speak(f, &ways[0], patient);
    fault(f, "\"fault\":\"latency\",\"ms\":60000");
    say_ok(f, &hello);
    assert_true(f->took_ms >= 60000);
    speak(f, &ways[1], NULL);
    say_ok(f, &hello);
    assert_true(f->took_ms >= 60000);
    speak(f, &ways[0], NULL);
    say_fails(f, &hello, TIDE_TIMEOUT, "");
}

static void hasty(struct tide_chat_options *o)
{
    o->total_ms = 3000;
}

CASE(slow_bytes_are_an_answer_until_the_whole_call_takes_too_long)
{
    fault(f, "\"fault\":\"slow\",\"bytes_per_s\":200");
    speak(f, &ways[0], NULL);
    say_ok(f, &hello);
    assert_true(f->took_ms > 5000);
    speak(f, &ways[0], hasty);
    say_fails(f, &hello, TIDE_TIMEOUT, "");
}

CASE(a_limit_of_calls_is_a_time_to_wait)
{
    EVERY_WAY
    {
        fault(f, "\"fault\":\"429\",\"count\":1,\"retry_after\":7");
        say_fails(f, &hello, TIDE_THROTTLED, "429");
        assert_int_equal(tide_chat_reason_of(&f->err), TIDE_CHAT_RATE);
        say_ok(f, &hello); /* the governor waited */
        no_faults(f);
        fault(f, "\"fault\":\"429\",\"count\":1");
        say_fails(f, &hello, TIDE_THROTTLED, "429");
        say_ok(f, &hello);
        no_faults(f);
        fault(f, "\"fault\":\"overloaded\",\"count\":1");
        say_fails(f, &hello, TIDE_THROTTLED, ways[i].dialect == TIDE_CHAT_OPENAI ? "503" : "529");
        assert_int_equal(tide_chat_reason_of(&f->err), TIDE_CHAT_OVERLOADED);
        say_ok(f, &hello);
        no_faults(f);
        fault(f, "\"fault\":\"500\",\"count\":1");
        say_fails(f, &hello, TIDE_SERVER, "500");
        say_ok(f, &hello);
    }
}

CASE(an_error_in_the_middle_of_an_answer_is_judged)
{
    fault(f, "\"fault\":\"stream-error\"");
    speak(f, &ways[0], NULL);
    say_fails(f, &hello, TIDE_SERVER, "server_error");
    speak(f, &ways[2], NULL);
    say_fails(f, &hello, TIDE_THROTTLED, "overloaded_error");
}

CASE(a_server_that_does_not_stream_is_understood)
{
    fault(f, "\"fault\":\"no-stream\"");
    EVERY_WAY
    {
        fault(f, "\"fault\":\"no-stream\"");
        say_ok(f, &hello);
        assert_true(f->answer.tokens_known);
    }
}

CASE(missing_counts_of_tokens_are_estimated)
{
    EVERY_WAY
    {
        fault(f, "\"fault\":\"no-usage\"");
        say_ok(f, &hello);
        assert_false(f->answer.tokens_known);
        assert_in_range(f->answer.out_tokens, f->answer.text.bytes / 8, f->answer.text.bytes);
        assert_true(f->answer.in_tokens > 0);
    }
}

/* TLK2 */
CASE(arguments_that_are_no_json_become_an_empty_object)
{
    EVERY_WAY
    {
        fault(f, "\"fault\":\"invalid-arguments\"");
        say_ok(f, &tooled);
        assert_int_equal(f->answer.calls_count, 1);
        /* Anthropic's are an object in any case, if with other fields than the schema says. */
        if (ways[i].dialect == TIDE_CHAT_OPENAI) {
            assert_true(f->answer.calls[0].invalid);
            assert_string_equal(f->answer.calls[0].arguments.data, "{}");
        }
    }
}

CASE(a_tool_that_nobody_named_is_marked)
{
    EVERY_WAY
    {
        fault(f, "\"fault\":\"wrong-tool\"");
        say_ok(f, &tooled);
        assert_true(f->answer.calls[0].unknown);
        assert_true(tide_text_equal(f->answer.calls[0].name, TIDE_TEXT("delete_everything")));
    }
}

CASE(a_refusal_is_an_answer_with_that_stop)
{
    EVERY_WAY
    {
        fault(f, "\"fault\":\"refusal\"");
        say_ok(f, &hello);
        assert_int_equal(f->answer.stop, TIDE_CHAT_STOP_REFUSED);
        assert_non_null(strstr(f->answer.text.data, "can't help"));
    }
}

/* The caller caps the rounds; here each of them is a call like any other. */
CASE(endless_tools_end_with_the_callers_patience)
{
    struct tide_chat_talk talk = tooled;
    talk.choice = TIDE_CHAT_CHOICE_AUTO;
    EVERY_WAY
    {
        fault(f, "\"fault\":\"endless-tools\"");
        for (unsigned round = 0; round < 3; round++) {
            say_ok(f, &talk);
            assert_int_equal(f->answer.stop, TIDE_CHAT_STOP_TOOLS);
        }
    }
}

static void old_names(struct tide_chat_options *o)
{
    o->old_limit = true;
}

/* A model that takes no temperature, or knows another name of the limit: found out once. */
CASE(a_parameter_that_is_refused_is_left_out_from_then_on)
{
    speak(f, &ways[0], NULL);
    fault(f, "\"fault\":\"no-sampling\"");
    say_ok(f, &mail);
    assert_int_equal(f->requests, 2);
    say_ok(f, &mail);
    assert_int_equal(f->requests, 1);
    no_faults(f);
    fault(f, "\"fault\":\"old-limit\"");
    say_ok(f, &hello);
    assert_int_equal(f->requests, 2);
    no_faults(f);
    speak(f, &ways[0], old_names);
    fault(f, "\"fault\":\"new-limit\"");
    say_ok(f, &hello);
    assert_int_equal(f->requests, 2);
    say_ok(f, &hello);
    assert_int_equal(f->requests, 1);
    /* A server that refuses both ends with its refusal, after one more call. */
    fault(f, "\"fault\":\"old-limit\"");
    speak(f, &ways[0], NULL);
    say_fails(f, &hello, TIDE_PERMANENT, "max_tokens");
    assert_int_equal(f->requests, 2);
    say_fails(f, &hello, TIDE_PERMANENT, "max_tokens");
    assert_int_equal(f->requests, 1);
}

struct caller {
    struct fixture *f;
    tide_status status;
};

static void call_once(void *arg)
{
    struct caller *caller = arg;
    struct tide_chat_answer answer = {.calls_count = 0};
    caller->status = tide_chat_call(caller->f->chat, NULL, caller->f->talk, NULL, &answer, NULL);
    tide_chat_answer_done(&answer);
}

/* Without jobs: no governor delays the second one. */
static void call_twice_at_once(struct fixture *f, const struct tide_chat_talk *talk)
{
    tide_world *world = tide_sim_world(f->sim);
    struct caller callers[2] = {{f, TIDE_BUG}, {f, TIDE_BUG}};
    tide_thread *threads[2];
    f->talk = talk;
    f->requests = 0;
    for (int i = 0; i < 2; i++)
        OK(f, tide_world_thread(world, "caller", call_once, &callers[i], &threads[i], err));
    for (int i = 0; i < 2; i++)
        tide_world_join(world, threads[i]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(callers[i].status, TIDE_OK);
    assert_int_equal(f->requests, 4); /* both were on their way when the first was refused */
}

CASE(calls_that_are_refused_at_the_same_time_all_adapt)
{
    fault(f, "\"fault\":\"no-sampling\"");
    call_twice_at_once(f, &mail);
    no_faults(f);
    speak(f, &ways[0], old_names);
    fault(f, "\"fault\":\"new-limit\"");
    call_twice_at_once(f, &hello);
}

CASE(what_a_model_cannot_do_fails_for_good)
{
    struct tide_chat_talk talk = hello;
    talk.model = TIDE_TEXT("no-such-model");
    EVERY_WAY
    {
        say_fails(f, &talk, TIDE_PERMANENT, "404");
        assert_int_equal(tide_chat_reason_of(&f->err), TIDE_CHAT_MODEL);
    }
    f->say = "{\"error\":{\"message\":\"too long\",\"code\":\"context_length_exceeded\"}}";
    f->say_http = 400;
    say_fails(f, &hello, TIDE_PERMANENT, "too long");
    assert_int_equal(tide_chat_reason_of(&f->err), TIDE_CHAT_TOO_LONG);
}

CASE(what_may_have_cost_is_told_from_what_did_not)
{
    static const struct {
        const char *fault;
        bool costs;
    } rows[] = {
        {"429", false},       {"500", false},        {"overloaded", false}, {"404", false},
        {"bad-json", true},   {"cut-stream", true},  {"huge", true},        {"stream-error", true},
        {"stall-body", true}, {"reset-after", true}, {"garbage", true},
    };
    struct tide_chat_talk talk = hello;
    talk.tokens_max = 100000000;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        for (size_t i = 0; i < WAYS; i += 2) {
            char rule[80];
            (void)snprintf(rule, sizeof rule, "\"fault\":\"%s\"", rows[k].fault);
            speak(f, &ways[i], NULL);
            fault(f, rule);
            const tide_status rc = say(f, &talk);
            if (rc == TIDE_OK || tide_chat_may_cost(rc, &f->err) != rows[k].costs)
                fail_msg("%s, %s: %s: %s", rows[k].fault, ways[i].name, tide_status_name(rc),
                         f->err.text);
            no_faults(f);
        }
    }
    say_ok(f, &hello);
    assert_true(tide_chat_may_cost(f->status, &f->err));
    talk.messages_count = 0;
    assert_int_equal(say(f, &talk), TIDE_INVALID);
    assert_false(tide_chat_may_cost(f->status, &f->err));
}

/* ---- keys and money ---- */

static void key_put(struct fixture *f, const char *key, const char *entered)
{
    tide_auto_buf grant = tide_buf_heap(1000);
    OK(f, tide_oauth_key(key, entered, &grant, err));
    OK(f, tide_secrets_put(f->secrets, "chat/" NAME "/token", tide_buf_text(&grant), err));
}

/* API5: for money or for itself. */
CASE(after_a_refusal_of_the_key_or_for_money_nothing_is_sent)
{
    static const char *const faults[] = {"401", "403", "billing"};
    static const tide_chat_reason reasons[] = {TIDE_CHAT_KEY, TIDE_CHAT_DENIED, TIDE_CHAT_BILLING};
    unsigned entered = 1;
    for (size_t i = 0; i < WAYS; i++) {
        for (size_t k = 0; k < 3; k++) {
            char rule[60];
            char stamp[16];
            (void)snprintf(rule, sizeof rule, "\"fault\":\"%s\"", faults[k]);
            speak(f, &ways[i], NULL);
            fault(f, rule);
            say_fails(f, &hello, TIDE_AUTH, "tidemark account add chat " NAME);
            assert_int_equal(f->requests, 1);
            for (unsigned tries = 0; tries < 3; tries++) {
                say_fails(f, &hello, TIDE_AUTH, "tidemark account add chat " NAME);
                assert_int_equal(tide_chat_reason_of(&f->err), reasons[k]);
                assert_int_equal(f->requests, 0);
            }
            /* The user pays, and enters the same key again. */
            no_faults(f);
            (void)snprintf(stamp, sizeof stamp, "%u", ++entered);
            key_put(f, KEY, stamp);
            say_ok(f, &hello);
            assert_int_equal(f->requests, 1);
        }
    }
}

CASE(a_key_that_was_replaced_meanwhile_is_used_at_once)
{
    fault(f, "\"fault\":\"401\",\"count\":1");
    key_put(f, "another-key", "2");
    say_ok(f, &hello);
    assert_int_equal(f->requests, 2);
    assert_string_equal(f->authorization, "Bearer another-key");
}

static void keyless(struct tide_chat_options *o)
{
    o->tokens = NULL;
}

CASE(a_server_that_wants_no_key_gets_none)
{
    speak(f, &ways[0], keyless);
    f->say = "{\"choices\":[{\"message\":{\"content\":\"Yes.\"},\"finish_reason\":\"stop\"}]}";
    f->say_http = 200;
    say_ok(f, &hello);
    assert_string_equal(f->authorization, "");
    assert_string_equal(f->plain_key, "");
    f->say = NULL;
    say_fails(f, &hello, TIDE_AUTH, "401"); /* this one does */
}

/* ---- the governor ---- */

/* A call costs one unit of the account, and what the answer was counts for it. */
CASE(a_call_is_charged_to_the_jobs_account)
{
    say_ok(f, &hello);
    tide_auto_buf text = tide_buf_heap(1 << 20);
    OK(f, tide_engine_snapshot(f->engine, &text, err));
    assert_non_null(strstr(tide_buf_cstr(&text), "\"" NAME "\""));
    fault(f, "\"fault\":\"429\",\"count\":1,\"retry_after\":60");
    say_fails(f, &hello, TIDE_THROTTLED, "429");
    const uint64_t before_ms = tide_world_now_ms(tide_sim_world(f->sim));
    say_ok(f, &hello);
    assert_true(tide_world_now_ms(tide_sim_world(f->sim)) >= before_ms + 55000);
    assert_int_equal(count(f, "chat_keys", "calls"), 3);
    assert_int_equal(count(f, "chat", "repeated"), 1); /* `hello` was answered before */
}

/* ---- memory ---- */

/* Each allocation of the client fails in turn: the call fails so, or works, and nothing leaks. */
CASE(every_failed_allocation_is_survived)
{
    for (size_t i = 0; i < WAYS; i += 2) {
        for (uint64_t at = 0;; at++) {
            speak(f, &ways[i], NULL);
            f->mem.fail_at = f->mem.allocations + at;
            f->mem.fired = false;
            const tide_status rc = say(f, &tooled);
            f->mem.fail_at = UINT64_MAX;
            if (!f->mem.fired) {
                assert_int_equal(rc, TIDE_OK);
                break;
            }
            if (rc != TIDE_OK && rc != TIDE_NO_MEMORY)
                fail_msg("%s, allocation %" PRIu64 ": %s: %s", ways[i].name, at,
                         tide_status_name(rc), f->err.text);
        }
    }
}
