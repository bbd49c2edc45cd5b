/* JSON glue and log lines: one valid line each, no secrets, no surprises. */
#include "base/json.h"
#include "base/log.h"
#include "base/rng.h"
#include "engine/control/control.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"

struct capture {
    char text[TIDE_LOG_LINE_BYTES_MAX + 1];
    size_t bytes;
    unsigned lines;
};

static void capture_line(void *arg, const char *line, size_t bytes)
{
    struct capture *capture = arg;
    assert_true(bytes <= TIDE_LOG_LINE_BYTES_MAX);
    assert_int_equal(line[bytes - 1], '\n');
    assert_null(memchr(line, '\n', bytes - 1)); /* LOG2 */
    memcpy(capture->text, line, bytes);
    capture->text[bytes] = '\0';
    capture->bytes = bytes;
    capture->lines++;
}

TEST(a_line_carries_time_level_run_and_event)
{
    struct capture capture = {.lines = 0};
    tide_log log;
    tide_log_init(&log, TIDE_LOG_INFO, TIDE_LOG_PLAIN, "run-7", capture_line, &capture);
    tide_log_event(&log, TIDE_LOG_INFO, 1709210096789, "job done", TIDE_F_U64("job", 12),
                   TIDE_F_I64("left", -3), TIDE_F_CSTR("kind", "mail.fetch"),
                   TIDE_F_CSTR("why", "two words"));
    assert_string_equal(capture.text, "2024-02-29T12:34:56.789Z info run=run-7 event=\"job done\" "
                                      "job=12 left=-3 kind=mail.fetch why=\"two words\"\n");
    tide_log_event(&log, TIDE_LOG_DEBUG, 1, "quiet", TIDE_F_U64("job", 1));
    assert_int_equal(capture.lines, 1); /* below its level */
    tide_log_level_set(&log, TIDE_LOG_NONE);
    tide_log_event(&log, TIDE_LOG_ERROR, 1, "quiet", TIDE_F_U64("job", 1));
    assert_int_equal(capture.lines, 1);
    tide_log_write(NULL, TIDE_LOG_ERROR, 1, "nobody listens", NULL, 0);
}

TEST(secrets_never_reach_a_line)
{
    static const char *const texts[] = {
        "Authorization: Bearer hush-1 then more",
        "url?access_token=hush-2&x=1",
        "{\"refresh_token\":\"hush-3\",\"a\":1}",
        "client_secret: hush-4",
        "PASSWORD=hush-5",
        "Basic hush-6",
        "got api_key = hush-7, sorry",
        "x-token:hush-8",
        "password='hush-9'",
        "Bearer  hush-10",
        "{\\\"token\\\":\\\"hush-11\\\"}",
        "secret=\r\nhush-12",
        "token= password: hush-13",
    };
    tide_log_format formats[] = {TIDE_LOG_PLAIN, TIDE_LOG_JSON};
    for (size_t f = 0; f < 2; f++) {
        struct capture capture = {.lines = 0};
        tide_log log;
        tide_log_init(&log, TIDE_LOG_DEBUG, formats[f], "r", capture_line, &capture);
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
            tide_log_event(&log, TIDE_LOG_WARN, 1, "call", TIDE_F_CSTR("text", texts[i]),
                           TIDE_F_CSTR("refresh_token", "hush-0"), TIDE_F_U64("secret_pin", 4711));
            if (strstr(capture.text, "hush") != NULL || strstr(capture.text, "4711") != NULL)
                fail_msg("a secret in: %s", capture.text);
            assert_non_null(strstr(capture.text, "(hidden)"));
        }
    }
}

TEST(any_bytes_make_a_valid_json_line)
{
    uint64_t seed = 4;
    tide_rng rng = tide_rng_seeded(seed);
    struct capture capture = {.lines = 0};
    tide_log log;
    tide_log_init(&log, TIDE_LOG_DEBUG, TIDE_LOG_JSON, "r", capture_line, &capture);
    for (uint64_t n = scaled(20000); n > 0; n--) {
        static char bytes[6000];
        size_t count = tide_rng_below(&rng, tide_rng_chance(&rng, 1, 50) ? sizeof bytes : 60);
        for (size_t i = 0; i < count; i++)
            bytes[i] = (char)tide_rng_next(&rng);
        tide_log_event(&log, TIDE_LOG_INFO, 1, "event",
                       TIDE_F_TEXT("text", ((tide_text){bytes, count})), TIDE_F_U64("n", 1));
        json_t *value = NULL;
        tide_error err = {0};
        if (tide_json_parse((tide_text){capture.text, capture.bytes}, &value, &err) != TIDE_OK)
            fail_msg("seed %" PRIu64 ": %s: %s", seed, err.text, capture.text);
        json_decref(value);

        tide_json object;
        tide_buf line = heap_buf(1 << 20);
        tide_json_object(&object);
        tide_json_set_text(&object, "text", (tide_text){bytes, count});
        OK(tide_json_line(&object, &line));
        OK(tide_json_parse(tide_buf_text(&line), &value, &err));
        json_decref(value);
        tide_json_done(&object);
        tide_buf_done(&line);
    }
}

TEST(a_cut_text_has_whole_characters)
{
    const tide_text text = TIDE_TEXT("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z");
    const size_t kept[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        const tide_text cut = tide_utf8_cut(text, i);
        assert_ptr_equal(cut.data, text.data);
        assert_int_equal(cut.bytes, kept[i]);
    }
    assert_int_equal(tide_utf8_cut((tide_text){NULL, 0}, 0).bytes, 0);
}

TEST(a_long_line_is_cut_and_says_so)
{
    static char text[10000];
    struct capture capture = {.lines = 0};
    tide_log log;
    memset(text, 'x', sizeof text);
    tide_log_init(&log, TIDE_LOG_DEBUG, TIDE_LOG_JSON, "r", capture_line, &capture);
    tide_log_event(&log, TIDE_LOG_INFO, 1, "event",
                   TIDE_F_TEXT("text", ((tide_text){text, sizeof text})), TIDE_F_U64("n", 1));
    assert_non_null(strstr(capture.text, "\"cut\":true}"));
}

TEST(fields_are_typed_and_named_in_refusals)
{
    json_t *value = NULL;
    tide_error err = {0};
    uint64_t number = 5;
    bool flag = false;
    tide_text text = TIDE_TEXT_NONE;
    OK(tide_json_parse(TIDE_TEXT("{\"n\":-1,\"t\":3,\"z\":null,\"b\":true}"), &value, &err));
    assert_int_equal(tide_json_get_u64(value, "n", &number, &err), TIDE_INVALID);
    assert_non_null(strstr(err.text, "\"n\""));
    assert_int_equal(tide_json_get_text(value, "t", &text, &err), TIDE_INVALID);
    assert_int_equal(tide_json_get_u64(value, "z", &number, &err), TIDE_NOT_FOUND);
    assert_int_equal(tide_json_get_u64(value, "absent", &number, &err), TIDE_NOT_FOUND);
    assert_int_equal(number, 5);
    OK(tide_json_get_bool(value, "b", &flag, &err));
    assert_true(flag);
    json_decref(value);
    assert_int_equal(tide_json_parse(TIDE_TEXT("{\"a\":1,\"a\":2}"), &value, &err), TIDE_INVALID);
    assert_int_equal(tide_json_parse(TIDE_TEXT("{} x"), &value, &err), TIDE_INVALID);
    assert_int_equal(tide_json_parse(TIDE_TEXT(""), &value, &err), TIDE_INVALID);
}

TEST(a_line_over_the_ceiling_leaves_the_buffer_as_it_was)
{
    tide_json object;
    tide_buf line = heap_buf(16);
    OK(tide_buf_add_text(&line, "kept"));
    tide_json_object(&object);
    tide_json_set_cstr(&object, "text", "much longer than sixteen bytes");
    assert_int_equal(tide_json_line(&object, &line), TIDE_FULL);
    assert_string_equal(tide_buf_cstr(&line), "kept");
    tide_json_done(&object);
    tide_buf_done(&line);
}

/* Whatever piece finds no room: never a line with a hole in it. */
TEST(a_line_without_memory_leaves_the_buffer_as_it_was)
{
    for (uint64_t fail_at = 0;; fail_at++) {
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        tide_buf line;
        tide_json object;
        tide_buf_init(&line, &mem.base, 1000);
        tide_json_object(&object);
        tide_json_set_cstr(&object, "a key of some length", "a value of some length");
        tide_json_set_cstr(&object, "another key of some length", "another value of some length");
        const tide_status rc = tide_json_line(&object, &line);
        if (rc == TIDE_OK)
            assert_string_equal(line.data, "{\"a key of some length\":\"a value of some length\","
                                           "\"another key of some length\":"
                                           "\"another value of some length\"}\n");
        else
            assert_int_equal(rc, TIDE_NO_MEMORY);
        assert_int_equal(rc == TIDE_OK, !mem.fired);
        assert_true(rc == TIDE_OK || line.bytes == 0);
        tide_json_done(&object);
        tide_buf_done(&line);
        assert_int_equal(mem.bytes_live, 0);
        if (!mem.fired)
            break;
    }
}

TEST(every_op_and_refusal_survives_the_wire)
{
    for (int op = 0; op < TIDE_OPS; op++) {
        tide_json request;
        tide_error err = {0};
        tide_control_op back = TIDE_OPS;
        tide_control_request((tide_control_op)op, &request);
        OK(tide_control_op_read(request.value, &back, &err));
        assert_int_equal(back, op);
        tide_json_done(&request);
    }
    tide_error sent = {0}, got = {0};
    tide_json answer;
    (void)tide_error_set(&sent, TIDE_NOT_FOUND, "there is no job 12");
    tide_control_refusal(&sent, &answer);
    assert_int_equal(tide_control_answer(answer.value, &got), TIDE_NOT_FOUND);
    assert_string_equal(got.text, sent.text);
    tide_json_done(&answer);
    tide_control_ok(&answer);
    OK(tide_control_answer(answer.value, &got));
    tide_json_done(&answer);
    tide_json_object(&answer);
    assert_int_equal(tide_control_answer(answer.value, &got), TIDE_INVALID);
    tide_json_done(&answer);
}

/* A condition the engine does not know must not widen what a command means. */
TEST(a_filter_with_an_unknown_field_is_refused)
{
    json_t *request = NULL;
    tide_error err = {0};
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    OK(tide_json_parse(TIDE_TEXT("{\"op\":\"cancel\",\"filter\":{\"acount\":\"x\"}}"), &request,
                       &err));
    assert_int_equal(tide_control_filter_read(request, NULL, &filter, &err), TIDE_INVALID);
    assert_non_null(strstr(err.text, "acount"));
    json_decref(request);
    OK(tide_json_parse(TIDE_TEXT("{\"op\":\"cancel\",\"filter\":{\"id\":4,"
                                 "\"state\":\"failed\"}}"),
                       &request, &err));
    OK(tide_control_filter_read(request, NULL, &filter, &err));
    assert_int_equal(filter.id, 4);
    assert_int_equal(filter.state, TIDE_ROW_FAILED);
    assert_true(filter.account == UINT32_MAX);
    json_decref(request);
}
