/* agent_tools_test.c - the tools of a profile, and those of the user's own run for real. */
#include "assistant/agent/outside.h"
#include "assistant/agent/tools.h"
#include "support/heap.h"
#include "support/http_server.h"
#include "support/ok.h"
#include "support/test.h"

#include <signal.h>

static const char yaml[] = "models: {fast: small, better: large}\n"
                           "tools:\n"
                           "  stock:\n"
                           "    description: how many are in stock\n"
                           "    parameters: {type: object, properties: {item: {type: string}}}\n"
                           "    command: [/bin/cat]\n"
                           "  other:\n"
                           "    description: another\n"
                           "    command: [/bin/false]\n"
                           "profiles:\n"
                           "  quiet:\n"
                           "    system_prompt: You help.\n"
                           "    tools: [search_archive, escalate, stock]\n"
                           "  loud:\n"
                           "    system_prompt: You help.\n"
                           "    may_send: true\n"
                           "    tools: [send_reply]\n";

struct fixture {
    struct tide_assistant_config *config;
    tide_world *world;
    tide_buf result;
    bool failed;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    OK(tide_world_real_new(tide_mem_heap(), &f->world, NULL));
    f->result = heap_buf(1 << 20);
    (void)signal(SIGPIPE, SIG_IGN);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tide_assistant_config_free(f->config);
    tide_buf_done(&f->result);
    tide_world_real_free(f->world);
    free(f);
    return 0;
}
#define CASE(test) TEST_ON(test, struct fixture *f, set_up, tear_down)

static tide_status configure(struct fixture *f, const char *text, tide_error *err)
{
    const struct tide_assistant_source source = {.path = "assistant.yaml",
                                                 .yaml = tide_text_of(text)};
    return tide_assistant_config_read(&source, tide_mem_heap(), &f->config, err);
}

/* ---- which tools a profile has ---- */

/* AGT1, AGT2 */
CASE(a_profile_has_the_tools_that_it_lists)
{
    tide_error err = {TIDE_OK, 0, ""};
    if (configure(f, yaml, &err) != TIDE_OK)
        fail_msg("%s", err.text);
    static const char *const wanted[] = {"search_archive escalate stock", "send_reply"};
    for (size_t i = 0; i < 2; i++) {
        json_t *tools = NULL, *tool;
        size_t n;
        char names[256] = "";
        OK(tide_agent_tools(f->config, &f->config->profiles[i], &tools, NULL));
        json_array_foreach(tools, n, tool)
        {
            const char *name = json_string_value(json_object_get(tool, "name"));
            struct tide_agent_tool found;
            (void)snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                           n > 0 ? " " : "", name);
            assert_true(json_is_object(json_object_get(tool, "schema")));
            assert_true(json_string_length(json_object_get(tool, "description")) > 5);
            assert_true(
                tide_agent_tool(f->config, &f->config->profiles[i], tide_text_of(name), &found));
        }
        assert_string_equal(names, wanted[i]);
        json_decref(tools);
    }
    struct tide_agent_tool found;
    static const char *const absent[] = {"send_reply", "other", "add_label", "", "stock "};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
        assert_false(
            tide_agent_tool(f->config, &f->config->profiles[0], tide_text_of(absent[i]), &found));
}

CASE(a_program_is_named_by_its_whole_path)
{
    tide_error err = {TIDE_OK, 0, ""};
    assert_int_equal(configure(f,
                               "models: {fast: a, better: b}\ntools:\n  t:\n"
                               "    description: text\n    command: [cat]\n",
                               &err),
                     TIDE_INVALID);
    assert_non_null(strstr(err.text, "absolute path"));
}

/* ---- commands ---- */

#define TEXTS(...) ((const tide_text[]){__VA_ARGS__})

static void outside(struct fixture *f, const struct tide_assistant_tool *tool,
                    const char *arguments)
{
    json_t *object = json_loads(arguments, 0, NULL);
    assert_non_null(object);
    tide_buf_clear(&f->result);
    OK(tide_agent_outside(f->world, tool, object, NULL, &f->result, &f->failed, NULL));
    json_decref(object);
}

static void run(struct fixture *f, const char *script, const char *arguments)
{
    const tide_text command[] = {tide_text_of("/bin/sh"), tide_text_of("-c"), tide_text_of(script)};
    const struct tide_assistant_tool tool = {.name = tide_text_of("stock"),
                                             .command = {command, 3},
                                             .timeout_ms = 20000,
                                             .output_bytes_max = 1000};
    outside(f, &tool, arguments);
}

CASE(a_command_gets_its_arguments_as_input)
{
    run(f, "cat", "{\"item\":\"$(id) `id` ; \\u010d\"}");
    assert_string_equal(f->result.data, "{\"item\":\"$(id) `id` ; \xc4\x8d\"}\n");
    assert_false(f->failed);
}

/* OUT1 */
CASE(a_command_sees_no_secret_of_the_user)
{
    assert_int_equal(setenv("TIDEMARK_KEY", "secret", 1), 0);
    run(f, "env | sort | grep -v '^PWD=\\|^_=\\|^SHLVL='", "{}");
    assert_string_equal(f->result.data, "HOME=/\nLANG=C.UTF-8\nPATH=/usr/local/bin:/usr/bin:/bin\n"
                                        "TIDEMARK_TOOL=stock\n");
}

/* OUT3, OUT4 */
CASE(a_command_that_fails_is_an_error_for_the_model)
{
    run(f, "echo half; echo 'no such item' >&2; exit 3", "{}");
    assert_string_equal(f->result.data, "{\"error\":\"/bin/sh ended with 3: no such item\\n\"}\n");
    assert_true(f->failed);
    run(f, "kill -9 $$", "{}");
    assert_non_null(strstr(f->result.data, "signal 9"));
    run(f, "while :; do echo xxxxxxxx; done", "{}");
    assert_non_null(strstr(f->result.data, "more than 1000 bytes"));
    const tide_text missing[] = {tide_text_of("/nonexistent")};
    const struct tide_assistant_tool tool = {
        .command = {missing, 1}, .timeout_ms = 20000, .output_bytes_max = 1000};
    outside(f, &tool, "{}");
    assert_non_null(strstr(f->result.data, "{\"error\":\"start /nonexistent"));
    const tide_text sleeper[] = {tide_text_of("/bin/sleep"), tide_text_of("1000")};
    const struct tide_assistant_tool slow = {
        .command = {sleeper, 2}, .timeout_ms = 300, .output_bytes_max = 1000};
    outside(f, &slow, "{}");
    assert_non_null(strstr(f->result.data, "did not end"));
}

CASE(a_run_that_is_canceled_gets_no_result)
{
    tide_cancel cancel = {0};
    const tide_text sleeper[] = {tide_text_of("/bin/sleep"), tide_text_of("1000")};
    const struct tide_assistant_tool slow = {
        .command = {sleeper, 2}, .timeout_ms = 100000, .output_bytes_max = 1000};
    json_t *none = json_object();
    tide_world_cancel(f->world, &cancel, TIDE_CANCEL_STOP);
    assert_int_equal(
        tide_agent_outside(f->world, &slow, none, &cancel, &f->result, &f->failed, NULL),
        TIDE_CANCELED);
    assert_int_equal(f->result.bytes, 0);
    json_decref(none);
}

/* ---- endpoints ---- */

static void call(struct fixture *f, const char *method, const char *url, const char *arguments)
{
    const struct tide_assistant_tool tool = {.name = tide_text_of("stock"),
                                             .url = tide_text_of(url),
                                             .method = tide_text_of(method),
                                             .timeout_ms = 20000,
                                             .output_bytes_max = 1000};
    outside(f, &tool, arguments);
}

CASE(an_endpoint_gets_its_arguments_and_its_answer_is_the_result)
{
    test_http *server = test_http_start();
    call(f, "POST", test_http_url(server, "/echo"), "{\"item\":\"a\"}");
    assert_string_equal(f->result.data, "{\"item\":\"a\"}\n");
    assert_false(f->failed);
    call(f, "GET", test_http_url(server, "/plain"), "{\"bytes\":7,\"x\":\"a b&c=\\u010d\"}");
    assert_int_equal(f->result.bytes, 7);
    /* OUT2 */
    call(f, "GET", test_http_url(server, "/redirect"), "{}");
    assert_string_equal(f->result.data, "{\"error\":\"the tool's server answered 302\"}\n");
    assert_true(f->failed);
    call(f, "POST", test_http_url(server, "/headers"), "{}");
    assert_null(strcasestr(f->result.data, "authorization"));
    assert_null(strcasestr(f->result.data, "cookie"));
    /* OUT3 */
    call(f, "GET", test_http_url(server, "/plain?bytes=5000"), "{}");
    assert_true(f->failed);
    call(f, "GET", "http://127.0.0.1:1/", "{}");
    assert_true(f->failed);
    test_http_stop(server);
}
