/* sign_in_test.c - the dialog of signing in, with a provider that has device codes and cannot
 * revoke (M16).  The provider is simulated; the signal is a real one. */
#include "cli/sign_in/sign_in.h"
#include "net/oauth/key.h"

#include "sim.h"
#include "support/ok.h"
#include "support/test.h"

#include <signal.h>
#include <unistd.h>

static const struct tide_oauth_provider other = {
    .name = "other",
    .auth_url = "https://login.example/authorize",
    .token_url = "https://login.example/token",
    .device_url = "https://login.example/devicecode",
    .revoke_page = "https://account.example/apps",
    .client_help = "Register a client.",
};

static const struct cli_flag flags[] = {{"bearer", "TOKEN", ""}, {"service-account", "FILE", ""},
                                        {"client", "FILE", ""},  {"endpoint", "URL", ""},
                                        {"headless", NULL, ""},  {"key-file", "FILE", ""},
                                        {"no-key", NULL, ""},    {"guide", NULL, ""},
                                        {NULL, NULL, NULL}};
static const struct cli_command command = {.flags = flags};
static const struct tide_purpose purpose = {"sync", "Files.Read", "to read files"};

struct stage {
    tide_sim *sim;
    struct cli cli;
    tide_secrets *secrets; /* NULL: none are open */
    tide_buf grant;
    unsigned pending; /* polls until the user has entered the code */
    unsigned requests;
    bool unticked; /* the user allows something else */
};

/* ---- the simulated provider ---- */

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    (void)now_unix_ms;
    (void)rng;
    struct stage *stage = arg;
    const char *body = "{\"device_code\":\"d\",\"user_code\":\"ABCD-1234\",\"verification_uri\":"
                       "\"http://127.0.0.1:9/device\",\"expires_in\":900,\"interval\":5}";
    stage->requests++;
    answer->http = 200;
    if (strstr(request->url, "/token") != NULL && stage->pending > 0) {
        stage->pending--;
        answer->http = 400;
        body = "{\"error\":\"authorization_pending\"}";
    } else if (strstr(request->url, "/token") != NULL && stage->unticked) {
        body = "{\"access_token\":\"a\",\"refresh_token\":\"r\",\"scope\":\"openid\"}";
    } else if (strstr(request->url, "/token") != NULL) {
        body = "{\"access_token\":\"a\",\"refresh_token\":\"r\",\"scope\":\"Files.Read\"}";
    }
    OK(tide_buf_add_text(&answer->body, body));
}

/* ---- the stage ---- */

static void flag(struct stage *stage, const char *name, const char *value)
{
    for (const struct cli_flag *f = flags; f->name != NULL; f++)
        if (strcmp(f->name, name) == 0)
            stage->cli.values[stage->cli.values_count++] = (struct cli_flag_value){f, value};
}

static void start(struct stage *stage, unsigned pending)
{
    *stage = (struct stage){.pending = pending};
    const struct tide_sim_options options = {.net = {.provide = provide, .provide_arg = stage}};
    stage->sim = tide_sim_new(1, &options);
    stage->cli.mem = tide_mem_heap();
    stage->cli.world = tide_sim_world(stage->sim);
    stage->cli.command = &command;
    tide_buf_init(&stage->grant, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
}

static void end(struct stage *stage)
{
    tide_buf_done(&stage->grant);
    tide_sim_free(stage->sim);
}

static tide_status sign_in(struct stage *stage)
{
    return cli_sign_in(&stage->cli, &other, stage->secrets, "ada", &purpose, &stage->grant);
}

/* What is written to standard error from here to heard(). */
static int real_stderr;
static FILE *record;

static void listen_to_stderr(void)
{
    record = tmpfile();
    assert_non_null(record);
    (void)fflush(stderr);
    real_stderr = dup(STDERR_FILENO);
    assert_true(dup2(fileno(record), STDERR_FILENO) >= 0);
}

static const char *heard(void)
{
    static char text[4096];
    (void)fflush(stderr);
    assert_true(dup2(real_stderr, STDERR_FILENO) >= 0);
    (void)close(real_stderr);
    rewind(record);
    text[fread(text, 1, sizeof text - 1, record)] = '\0';
    (void)fclose(record);
    return text;
}

/* ---- tests ---- */

TEST(without_a_browser_the_user_enters_a_code_on_another_device)
{
    struct stage stage;
    start(&stage, 2);
    flag(&stage, "headless", "");
    flag(&stage, "endpoint", "https://login.example");
    listen_to_stderr();
    const tide_status rc = sign_in(&stage);
    const char *text = heard();
    assert_int_equal(rc, TIDE_OK);
    assert_non_null(strstr(text, "enter the code ABCD-1234:\n\n  http://127.0.0.1:9/device\n"));
    assert_non_null(strstr(tide_buf_cstr(&stage.grant), "\"provider\":\"other\""));
    assert_int_equal(stage.requests, 4);
    end(&stage);
}

static void interrupt(void *arg)
{
    struct stage *stage = arg;
    tide_world *world = stage->cli.world;
    (void)tide_world_sleep_until(world, tide_world_now_us(world) + 7000000, NULL);
    (void)raise(SIGINT);
}

TEST(a_signal_ends_the_wait_and_the_process_goes_on)
{
    struct stage stage;
    tide_thread *thread = NULL;
    start(&stage, 1000);
    flag(&stage, "headless", "");
    flag(&stage, "endpoint", "https://login.example");
    /* It sleeps longer than the handler takes to be installed. */
    OK(tide_world_thread(stage.cli.world, "user", interrupt, &stage, &thread, NULL));
    listen_to_stderr();
    const tide_status rc = sign_in(&stage);
    (void)heard();
    tide_world_join(stage.cli.world, thread);
    assert_int_equal(rc, TIDE_CANCELED);
    assert_int_equal(stage.grant.bytes, 0);
    assert_string_equal(stage.cli.hint, "Run the command again.");
    end(&stage);
}

TEST(what_a_provider_lacks_is_refused_with_help)
{
    struct stage stage;
    start(&stage, 0);
    assert_int_equal(sign_in(&stage), TIDE_INVALID);
    assert_string_equal(stage.cli.hint, "Register a client.");
    flag(&stage, "service-account", "key.json");
    assert_int_equal(sign_in(&stage), TIDE_INVALID);
    assert_non_null(strstr(stage.cli.err.text, "no service accounts"));
    assert_int_equal(stage.requests, 0);
    end(&stage);
}

static void restart(struct stage *stage)
{
    stage->cli.values_count = 0;
    stage->cli.hint[0] = '\0';
    tide_buf_clear(&stage->grant);
}

TEST(a_client_that_worked_serves_the_next_sign_in)
{
    struct stage stage;
    start(&stage, 0);
    OK(tide_secrets_open(stage.cli.world, "/secrets", TIDE_SECRETS_FILES, tide_mem_heap(),
                         &stage.secrets, NULL));
    OK(tide_file_replace(stage.cli.world, "/client.json", TIDE_TEXT("{\"client_id\":\"c-1\"}"),
                         0600, NULL));
    /* None was ever given. */
    assert_int_equal(sign_in(&stage), TIDE_INVALID);
    assert_string_equal(stage.cli.hint, "Register a client.");
    /* One that is given and works; then it need not be given. */
    for (int i = 0; i < 2; i++) {
        restart(&stage);
        flag(&stage, "headless", "");
        if (i == 0)
            flag(&stage, "client", "/client.json");
        listen_to_stderr();
        const tide_status rc = sign_in(&stage);
        const char *text = heard();
        if (rc != TIDE_OK)
            fail_msg("sign-in %d: %s", i, stage.cli.err.text);
        assert_int_equal(strstr(text, "the OAuth client of your last sign-in") != NULL, i == 1);
        assert_non_null(strstr(tide_buf_cstr(&stage.grant), "c-1"));
        assert_int_equal(tide_file_remove(stage.cli.world, "/client.json", NULL),
                         i == 0 ? TIDE_OK : TIDE_NOT_FOUND);
    }
    tide_secrets_close(stage.secrets);
    end(&stage);
}

TEST(a_client_is_remembered_although_the_permission_was_not_ticked)
{
    struct stage stage;
    start(&stage, 0);
    OK(tide_secrets_open(stage.cli.world, "/secrets", TIDE_SECRETS_FILES, tide_mem_heap(),
                         &stage.secrets, NULL));
    OK(tide_file_replace(stage.cli.world, "/client.json", TIDE_TEXT("{\"client_id\":\"c-1\"}"),
                         0600, NULL));
    flag(&stage, "headless", "");
    flag(&stage, "client", "/client.json");
    stage.unticked = true;
    assert_int_equal(sign_in(&stage), TIDE_AUTH);
    assert_non_null(strstr(stage.cli.err.text, "not granted"));
    restart(&stage);
    flag(&stage, "headless", "");
    stage.unticked = false;
    OK(sign_in(&stage));
    assert_non_null(strstr(tide_buf_cstr(&stage.grant), "c-1"));
    tide_secrets_close(stage.secrets);
    end(&stage);
}

TEST(a_client_for_an_emulator_is_not_remembered)
{
    struct stage stage;
    start(&stage, 0);
    OK(tide_secrets_open(stage.cli.world, "/secrets", TIDE_SECRETS_FILES, tide_mem_heap(),
                         &stage.secrets, NULL));
    OK(tide_file_replace(stage.cli.world, "/client.json", TIDE_TEXT("{\"client_id\":\"c-1\"}"),
                         0600, NULL));
    flag(&stage, "headless", "");
    flag(&stage, "client", "/client.json");
    flag(&stage, "endpoint", "https://login.example");
    listen_to_stderr();
    const tide_status rc = sign_in(&stage);
    (void)heard();
    assert_int_equal(rc, TIDE_OK);
    restart(&stage);
    assert_int_equal(sign_in(&stage), TIDE_INVALID);
    tide_secrets_close(stage.secrets);
    end(&stage);
}

TEST(a_sign_in_that_cannot_be_revoked_is_removed_with_a_warning)
{
    struct stage stage;
    tide_secrets *secrets = NULL;
    bool revoked = true;
    start(&stage, 0);
    flag(&stage, "headless", "");
    flag(&stage, "endpoint", "https://login.example");
    listen_to_stderr();
    tide_status rc = sign_in(&stage);
    (void)heard();
    assert_int_equal(rc, TIDE_OK);
    OK(tide_secrets_open(stage.cli.world, "/secrets", TIDE_SECRETS_FILES, tide_mem_heap(), &secrets,
                         NULL));
    OK(tide_secrets_put(secrets, "other/ada", tide_buf_text(&stage.grant), NULL));
    const struct tide_tokens_options options = {
        .provider = &other, .secret = "other/ada", .account = "ada", .sign_in = ""};
    const unsigned before = stage.requests;
    listen_to_stderr();
    rc = cli_sign_out(&stage.cli, secrets, &options, "", &revoked);
    const char *text = heard();
    assert_int_equal(rc, TIDE_OK);
    assert_false(revoked);
    assert_int_equal(stage.requests, before);
    assert_non_null(strstr(text, "the sign-in of ada is removed here but still valid"));
    assert_non_null(strstr(text, "https://account.example/apps"));
    assert_int_equal(tide_secrets_remove(secrets, "other/ada", NULL), TIDE_NOT_FOUND);
    tide_secrets_close(secrets);
    end(&stage);
}

/* ---- keys ---- */

static tide_status enter_key(struct stage *stage)
{
    return cli_sign_in(&stage->cli, &tide_oauth_keys, NULL, "model", &purpose, &stage->grant);
}

TEST(a_key_comes_from_a_private_file)
{
    struct stage stage;
    start(&stage, 0);
    OK(tide_file_replace(stage.cli.world, "/key", TIDE_TEXT("key-1234567890 \r\n"), 0600, NULL));
    flag(&stage, "key-file", "/key");
    OK(enter_key(&stage));
    assert_non_null(strstr(tide_buf_cstr(&stage.grant), "\"access_token\":\"key-1234567890\""));
    /* The same key, entered again, is another entry: it ends a refusal. */
    char first[200];
    (void)snprintf(first, sizeof first, "%s", tide_buf_cstr(&stage.grant));
    tide_buf_clear(&stage.grant);
    OK(enter_key(&stage));
    assert_string_not_equal(first, tide_buf_cstr(&stage.grant));
    assert_int_equal(stage.requests, 0);
    end(&stage);
}

TEST(a_key_that_is_none_is_refused)
{
    static const char *const texts[] = {"", "two words", "k\xc3\xa9y", "\n\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct stage stage;
        start(&stage, 0);
        OK(tide_file_replace(stage.cli.world, "/key", tide_text_of(texts[i]), 0600, NULL));
        flag(&stage, "key-file", "/key");
        assert_int_equal(enter_key(&stage), TIDE_INVALID);
        assert_true(stage.cli.hint[0] != '\0');
        assert_null(texts[i][0] == '\0' ? NULL : strstr(stage.cli.err.text, "words"));
        end(&stage);
    }
}

TEST(keys_and_sign_ins_are_not_mixed)
{
    struct stage stage;
    start(&stage, 0);
    flag(&stage, "no-key", "");
    OK(enter_key(&stage));
    flag(&stage, "key-file", "/key");
    assert_int_equal(enter_key(&stage), TIDE_INVALID);
    assert_int_equal(sign_in(&stage), TIDE_INVALID); /* of a provider that has none */
    end(&stage);
}
