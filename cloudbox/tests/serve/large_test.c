/* Bodies larger than the memory they take: a request body goes to a sink and an answer
 * body comes from a source, through the whole server.  The service is the test's own. */
#include "cloudbox/gate/cloud.h"
#include "cloudbox/gate/service.h"
#include "cloudbox/google/batch.h"
#include "cloudbox/serve/server.h"
#include "cloudbox/tests/gate/resident.h"
#include "cloudbox/tests/owned.h"
#include "support/test.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE_BYTES UINT64_C(100000000)

enum { GROWTH_KIB = 8 << 10, SMALL_BYTES = 1 << 20 };

/* The byte at an offset of every body here. */
static unsigned char byte_at(uint64_t at)
{
    return (unsigned char)((at * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

static void fill(uint64_t at, char *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (char)byte_at(at + i);
}

static bool fits(uint64_t at, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((unsigned char)bytes[i] != byte_at(at + i))
            return false;
    return true;
}

/* ---- the service ---- */

static int sinks_open; /* on the server's thread, read when it rests */
static int sources_open;

struct gathered {
    uint64_t bytes;
    uint64_t bytes_max;
    bool right;
};

static bool gather(void *arg, tide_text piece)
{
    struct gathered *gathered = arg;
    gathered->right = gathered->right && fits(gathered->bytes, piece.data, piece.bytes);
    gathered->bytes += piece.bytes;
    return gathered->bytes <= gathered->bytes_max;
}

static void gather_done(void *arg)
{
    free(arg);
    sinks_open--;
}

static void put_file(struct box_call *call)
{
    const struct gathered *gathered = call->request->sink->arg;
    box_call_reply(call, json_pack("{s:I, s:b}", "bytes", (json_int_t)gathered->bytes, "right",
                                   (int)gathered->right));
}

static void get_file_bytes(void *arg, uint64_t at, char *out, size_t count)
{
    (void)arg;
    fill(at, out, count);
}

static void get_file_done(void *arg)
{
    (void)arg;
    sources_open--;
}

static void get_file(struct box_call *call)
{
    uint64_t bytes = 0;
    if (!box_call_number(call, "bytes", 0, UINT64_MAX / 2, 0, &bytes))
        return;
    (void)snprintf(call->answer->type, sizeof call->answer->type, "application/octet-stream");
    box_answer_source(
        call->answer,
        &(struct box_source){.bytes = bytes, .read = get_file_bytes, .done = get_file_done});
    sources_open++;
}

static void put_whole(struct box_call *call)
{
    box_call_reply(call, json_pack("{s:I}", "bytes", (json_int_t)call->request->body.bytes));
}

static bool open_sink(struct box_call *call, struct box_sink *sink_out)
{
    if (call->method->handle != put_file)
        return false;
    struct gathered *gathered = calloc(1, sizeof *gathered);
    assert_non_null(gathered);
    gathered->right = true;
    gathered->bytes_max =
        tide_text_equal(call->args[0], TIDE_TEXT("small")) ? SMALL_BYTES : UINT64_MAX;
    *sink_out = (struct box_sink){.write = gather, .done = gather_done, .arg = gathered};
    sinks_open++;
    return true;
}

static const struct box_method methods[] = {
    {"files.put", BOX_PUT, "/files/{id}", 0, BOX_METER_NONE, 0, 0, put_file},
    {"files.get", BOX_GET, "/files/{id}", 0, BOX_METER_NONE, 0, 0, get_file},
    {"files.whole", BOX_POST, "/files/{id}", 0, BOX_METER_NONE, 0, 0, put_whole},
};
static const struct box_service files = {
    .name = "files", .methods = methods, .methods_count = 3, .sink = open_sink};
static const struct box_service *const services[] = {&files, &box_batch, NULL};

/* ---- a server and a client ---- */

struct world {
    struct box_shared shared;
    struct box_settings settings;
    box_server *server;
};

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    box_shared_init(&world->shared);
    world->shared.cloud = box_cloud_new(&(struct box_options){.seed = 1, .services = services});
    (void)snprintf(world->settings.host, sizeof world->settings.host, "127.0.0.1");
    tide_error err = {0};
    if (box_server_start(&world->settings, &world->shared, NULL, &world->server, &err) != TIDE_OK)
        fail_msg("%s", err.text);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    box_server_stop(world->server);
    assert_int_equal(sinks_open, 0);
    assert_int_equal(sources_open, 0);
    box_cloud_free(world->shared.cloud);
    (void)pthread_mutex_destroy(&world->shared.lock);
    free(world);
    return 0;
}

struct transfer {
    uint64_t upload; /* bytes to send */
    uint64_t sent;
    uint64_t received;
    bool right;        /* of a file that comes back */
    char answer[256];  /* the first bytes of what came */
    long resident_kib; /* the highest */
};

static void look(struct transfer *transfer)
{
    const long kib = resident_kib(getpid());
    if (kib > transfer->resident_kib)
        transfer->resident_kib = kib;
}

static size_t send_piece(char *out, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = arg;
    const uint64_t rest = transfer->upload - transfer->sent;
    const size_t bytes = rest < size * count ? (size_t)rest : size * count;
    fill(transfer->sent, out, bytes);
    if (transfer->sent >> 22 != (transfer->sent + bytes) >> 22)
        look(transfer);
    transfer->sent += bytes;
    return bytes;
}

static size_t take_piece(char *data, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = arg;
    const size_t bytes = size * count;
    transfer->right = transfer->right && fits(transfer->received, data, bytes);
    if (transfer->received < sizeof transfer->answer - 1) {
        const size_t room = sizeof transfer->answer - 1 - (size_t)transfer->received;
        memcpy(transfer->answer + transfer->received, data, bytes < room ? bytes : room);
    }
    if (transfer->received >> 22 != (transfer->received + bytes) >> 22)
        look(transfer);
    transfer->received += bytes;
    return bytes;
}

/* The status; 0: the transfer failed. */
static long run(const struct world *world, const char *path, struct transfer *transfer)
{
    char url[300];
    long status = 0;
    CURL *easy = curl_easy_init();
    assert_non_null(easy);
    (void)snprintf(url, sizeof url, "%s%s", box_server_origin(world->server), path);
    (void)curl_easy_setopt(easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_piece);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    if (transfer->upload > 0) {
        (void)curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)transfer->upload);
        (void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, send_piece);
        (void)curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
    }
    transfer->right = true;
    look(transfer);
    if (curl_easy_perform(easy) == CURLE_OK)
        (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    look(transfer);
    curl_easy_cleanup(easy);
    return status;
}

/* ---- the tests ---- */

CASE(a_body_of_100_mb_goes_in_through_a_sink)
{
    struct transfer small = {.upload = 1000};
    struct transfer large = {.upload = LARGE_BYTES};
    assert_int_equal(run(world, "/files/a", &small), 200); /* everything is allocated once */
    assert_int_equal(run(world, "/files/a", &large), 200);
    assert_int_equal(large.sent, LARGE_BYTES);
    json_auto_t *answer = json_loads(large.answer, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(answer, "bytes")), LARGE_BYTES);
    assert_true(json_is_true(json_object_get(answer, "right")));
    print_message("%ld KiB more\n", large.resident_kib - small.resident_kib);
    assert_true(large.resident_kib - small.resident_kib < GROWTH_KIB + RESIDENT_SLACK_KIB);
}

CASE(a_body_of_100_mb_comes_out_of_a_source)
{
    struct transfer small = {0};
    struct transfer large = {0};
    assert_int_equal(run(world, "/files/a?bytes=1000", &small), 200);
    assert_int_equal(small.received, 1000);
    assert_int_equal(run(world, "/files/a?bytes=100000000", &large), 200);
    assert_int_equal(large.received, LARGE_BYTES);
    assert_true(large.right);
    print_message("%ld KiB more\n", large.resident_kib - small.resident_kib);
    assert_true(large.resident_kib - small.resident_kib < GROWTH_KIB + RESIDENT_SLACK_KIB);
}

CASE(a_sink_refuses_what_is_too_large)
{
    struct transfer fits_in = {.upload = SMALL_BYTES};
    struct transfer too_large = {.upload = LARGE_BYTES};
    assert_int_equal(run(world, "/files/small", &fits_in), 200);
    const long status = run(world, "/files/small", &too_large);
    assert_true(status == 0 || status == 413); /* the connection closes on a client that sends */
    assert_true(too_large.sent < LARGE_BYTES);
}

CASE(a_fault_of_the_wire_cuts_a_source)
{
    struct transfer cut = {0};
    assert_ok(box_cloud_add_fault(world->shared.cloud,
                                  TIDE_TEXT("{\"count\":1,\"fault\":\"truncate\"}"), NULL));
    assert_int_equal(run(world, "/files/a?bytes=4000000", &cut), 0);
    assert_int_equal(cut.received, 2000000);
    assert_true(cut.right);
}

/* Without a front end that streams, the gate gives the whole body to the sink, and a
 * batch takes a source whole. */
CASE(callers_without_streams_meet_the_same_methods)
{
    auto_answer answer;
    char body[1000];
    fill(0, body, sizeof body);
    box_answer_init(&answer);
    box_cloud_serve(world->shared.cloud,
                    &(struct box_request){.verb = BOX_PUT,
                                          .target = TIDE_TEXT("/files/a"),
                                          .body = {body, sizeof body}},
                    1, &answer);
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(tide_buf_cstr(&answer.body), "\"bytes\": 1000"));
    assert_non_null(strstr(tide_buf_cstr(&answer.body), "\"right\": true"));
    box_answer_clear(&answer);

    const struct box_header type = {TIDE_TEXT("Content-Type"),
                                    TIDE_TEXT("multipart/mixed; boundary=b")};
    box_cloud_serve(
        world->shared.cloud,
        &(struct box_request){.verb = BOX_POST,
                              .target = TIDE_TEXT("/batch"),
                              .headers = &type,
                              .headers_count = 1,
                              .body = TIDE_TEXT("--b\r\nContent-Type: application/http\r\n\r\n"
                                                "GET /files/a?bytes=300 HTTP/1.1\r\n\r\n"
                                                "\r\n--b--\r\n")},
        2, &answer);
    assert_int_equal(answer.status, 200);
    assert_non_null(memmem(answer.body.data, answer.body.bytes, "Content-Length: 300", 19));
    char part[300];
    fill(0, part, sizeof part);
    assert_non_null(memmem(answer.body.data, answer.body.bytes, part, sizeof part));
}

int main(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    const int failed = tests_run(NULL);
    curl_global_cleanup();
    return failed;
}
