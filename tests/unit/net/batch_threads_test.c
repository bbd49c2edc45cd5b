/* The batcher with real threads (net/batch/batch.h), for race detectors.
 *
 * Goal: cancels at any moment lose no caller and mix up no answers.
 * Method: an engine whose workers are real threads and whose network is a function of this test.
 * That function answers every part with its own number, and now and then cancels the jobs
 * that send, as preemption does, all at the same instant.  The main
 * thread cancels jobs for good meanwhile.  Every job ends with its own answer or canceled. */
#include "net/batch/batch.h"
#include "net/batch/multipart.h"
#include "net/judge_google.h"
#include "net/oauth/google.h"
#include "net/secrets.h"
#include "support/temp_dir.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#define ORIGIN "http://127.0.0.1:4443"
enum { ITEMS = 400, WORKERS = 48, IN_FLIGHT = 3, BODY_BYTES = 32 };

static struct stage {
    tide_world *world;
    struct tide_world_ops ops;
    tide_engine *engine;
    tide_batcher *batcher;
    uint64_t ids[ITEMS];
    unsigned answers[ITEMS]; /* each written by the thread of its job */
    pthread_mutex_t lock;    /* over what is below */
    pthread_cond_t ended;
    unsigned wave; /* requests that were in flight when it changed are canceled */
} stage = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

/* ---- the server ---- */

static void answer_part(tide_buf *out, unsigned part, unsigned number)
{
    char body[BODY_BYTES];
    (void)snprintf(body, sizeof body, "{\"item\":%u}", number);
    OK(tide_buf_print(out,
                      "--xyz\r\nContent-Type: application/http\r\nContent-ID: "
                      "<response-q%u>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
                      "%zu\r\n\r\n%s\r\n",
                      part, strlen(body), body));
}

static void answer_parts(const struct tide_request *request, tide_buf *out)
{
    char *text = strndup(request->body.data, request->body.bytes);
    assert_non_null(text);
    for (char *at = text; (at = strstr(at, "Content-ID: <q")) != NULL; at++) {
        unsigned part = 0;
        unsigned number = 0;
        assert_int_equal(sscanf(at, "Content-ID: <q%u>\r\n\r\nPOST /item/%u", &part, &number), 2);
        answer_part(out, part, number);
    }
    free(text);
    OK(tide_buf_add_text(out, "--xyz--\r\n"));
}

/* A quarter of the requests end all that are in flight, at the same instant. */
static bool in_wave(uint64_t random)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(random % 8000) * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_mutex_lock(&stage.lock);
    const unsigned wave = stage.wave;
    if (random % 4 == 0) {
        stage.wave++;
        (void)pthread_cond_broadcast(&stage.ended);
    }
    while (stage.wave == wave &&
           pthread_cond_timedwait(&stage.ended, &stage.lock, &until) != ETIMEDOUT) {
    }
    const bool ended = stage.wave != wave;
    (void)pthread_mutex_unlock(&stage.lock);
    return ended;
}

static tide_status serve(tide_world *world, const struct tide_request *request,
                         struct tide_response *response, const tide_cancel *cancel, tide_error *err)
{
    if (in_wave(tide_world_random_u64(world))) {
        tide_world_cancel(world, (tide_cancel *)(uintptr_t)cancel, TIDE_CANCEL_PREEMPT);
        return tide_error_set(err, TIDE_CANCELED, "canceled");
    }
    response->http = 200;
    response->headers[0] =
        (struct tide_header){TIDE_TEXT("Content-Type"), TIDE_TEXT("multipart/mixed; boundary=xyz")};
    response->headers_count = 1;
    tide_buf answer = heap_buf(1 << 20);
    answer_parts(request, &answer);
    tide_status rc = TIDE_OK;
    for (size_t at = 0; rc == TIDE_OK && at < answer.bytes; at += 100)
        rc = request->sink(request->sink_arg, answer.data + at,
                           answer.bytes - at < 100 ? answer.bytes - at : 100);
    tide_buf_done(&answer);
    return rc;
}

/* ---- the jobs ---- */

static tide_status take(void *arg, const char *bytes, size_t count)
{
    return tide_buf_add(arg, bytes, count);
}

static void forget(void *arg)
{
    tide_buf_clear(arg);
}

static tide_status ask(tide_job *job, void *context, tide_error *err)
{
    unsigned number = 0;
    char path[32];
    char expected[BODY_BYTES];
    tide_buf body; /* on this stack: a late write would be seen (BAT1) */
    (void)context;
    assert_int_equal(sscanf(tide_job_payload(job).data, "{\"i\":%u}", &number), 1);
    (void)snprintf(path, sizeof path, "/item/%u", number);
    (void)snprintf(expected, sizeof expected, "{\"item\":%u}", number);
    tide_buf_init(&body, tide_mem_heap(), 1000);
    const struct tide_batch_call call = {.method = 0,
                                         .path = path,
                                         .body = TIDE_TEXT("{}"),
                                         .expected_bytes = 100,
                                         .sink = take,
                                         .restart = forget,
                                         .sink_arg = &body};
    const tide_status rc = tide_batch_ask(stage.batcher, job, &call, err);
    assert_true(tide_batcher_check(stage.batcher));
    if (rc == TIDE_OK) {
        assert_string_equal(tide_buf_cstr(&body), expected);
        stage.answers[number]++;
    } else if (rc != TIDE_CANCELED && rc != TIDE_AGAIN) {
        fail_msg("item %u: %s", number, tide_status_name(rc));
    }
    tide_buf_done(&body);
    return rc;
}

/* ---- the test ---- */

static const char grant[] =
    "{\"v\":1,\"type\":\"user\",\"client_id\":\"c\",\"client_secret\":\"s\","
    "\"refresh_token\":\"r\",\"token_url\":\"" ORIGIN "/token\",\"revoke_url\":"
    "\"" ORIGIN "/revoke\",\"scopes\":\"s\",\"access_token\":\"me-0\","
    "\"expires_unix_ms\":4000000000000}";

static const struct tide_api_method methods[] = {{"items.ask", "POST", 0, true}};
static const struct tide_provider_net provider = {.name = "test API",
                                                  .url = ORIGIN,
                                                  .judge = tide_google_judge,
                                                  .methods = methods,
                                                  .methods_count = 1};

static void enqueue_all(uint32_t kind)
{
    for (unsigned i = 0; i < ITEMS; i++) {
        const char *payload = textf("{\"i\":%u}", i);
        const struct tide_spec spec = {.kind = kind, .payload = payload};
        OK(tide_enqueue(stage.engine, &spec, 1, &stage.ids[i], NULL));
    }
}

TEST(cancels_harm_no_other_caller)
{
    char dir[] = "/tmp/tide-batch-XXXXXX";
    char secrets_dir[64];
    char state_dir[64];
    tide_secrets *secrets = NULL;
    tide_tokens *tokens = NULL;
    tide_api *api = NULL;
    uint32_t kind = 0;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(secrets_dir, sizeof secrets_dir, "%s/secrets", dir);
    (void)snprintf(state_dir, sizeof state_dir, "%s/state", dir);
    OK(tide_world_real_new(tide_mem_heap(), &stage.world, NULL));
    stage.ops = *stage.world->ops;
    stage.ops.call = serve;
    stage.world->ops = &stage.ops;
    OK(tide_secrets_open(stage.world, secrets_dir, TIDE_SECRETS_FILES, tide_mem_heap(), &secrets,
                         NULL));
    OK(tide_secrets_put(secrets, "me/token", tide_text_of(grant), NULL));
    const struct tide_tokens_options tokens_options = {.provider = &tide_oauth_google,
                                                       .secret = "me/token",
                                                       .account = "me",
                                                       .sign_in = "sign in"};
    OK(tide_tokens_open(stage.world, secrets, &tokens_options, tide_mem_heap(), &tokens, NULL));
    const struct tide_api_options api_options = {.provider = &provider, .tokens = tokens};
    OK(tide_api_open(&api_options, tide_mem_heap(), &api, NULL));
    const struct tide_batch_options batches = {.api = api,
                                               .path = "/batch",
                                               .format = &tide_batch_multipart,
                                               .world = stage.world,
                                               .in_flight_max = IN_FLIGHT,
                                               .size_max = 20};
    OK(tide_batcher_open(&batches, tide_mem_heap(), &stage.batcher, NULL));
    const struct tide_engine_options options = {.state_dir = state_dir,
                                                .world = stage.world,
                                                .no_control_socket = true,
                                                .workers = WORKERS};
    const struct tide_kind ask_kind = {.name = "ask", .handler = ask};
    OK(tide_engine_open(&options, &stage.engine, NULL));
    OK(tide_engine_kind(stage.engine, &ask_kind, &kind, NULL));
    enqueue_all(kind);
    OK(tide_engine_start(stage.engine, NULL));

    /* Every tenth job, whatever it is doing; the loop ends with the jobs. */
    for (unsigned i = 0; i < ITEMS; i += 10)
        OK(tide_cancel_job(stage.engine, stage.ids[i], NULL));
    OK(tide_engine_wait(stage.engine, TIDE_WAIT_FOREVER, NULL));
    unsigned done = 0;
    for (unsigned i = 0; i < ITEMS; i++) {
        const tide_status rc = tide_job_ended(stage.engine, stage.ids[i], NULL);
        assert_true(rc == TIDE_OK || (rc == TIDE_CANCELED && i % 10 == 0));
        assert_true(rc != TIDE_OK || stage.answers[i] > 0);
        done += rc == TIDE_OK ? 1 : 0;
    }
    assert_true(done >= ITEMS - ITEMS / 10);
    assert_true(stage.wave > 0);

    OK(tide_engine_close(stage.engine));
    tide_batcher_close(stage.batcher);
    tide_api_close(api);
    tide_tokens_close(tokens);
    tide_secrets_close(secrets);
    tide_world_real_free(stage.world);
    assert_int_equal(temp_dir_remove(dir), 0);
}
