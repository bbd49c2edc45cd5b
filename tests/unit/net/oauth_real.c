#include "oauth_real.h"
#include "support/temp_dir.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

struct real_stage real;

static tide_status real_box_call(tide_world *world, const struct tide_request *request,
                                 struct tide_response *response, const tide_cancel *cancel,
                                 tide_error *err)
{
    (void)err;
    const char *path = strchr(strstr(request->url, "://") + 3, '/');
    struct box_header header = {TIDE_TEXT("Content-Type"),
                                TIDE_TEXT("application/x-www-form-urlencoded")};
    const struct box_request inner = {.verb = box_verb_of(tide_text_of(request->method)),
                                      .target = tide_text_of(path),
                                      .headers = &header,
                                      .headers_count = 1,
                                      .body = request->body,
                                      .origin = TIDE_TEXT(ORIGIN)};
    /* Long enough that the others come while it runs. */
    if (tide_world_sleep_until(world, tide_world_now_us(world) + 2000, cancel) != TIDE_OK)
        return tide_error_set(err, TIDE_CANCELED, "canceled");
    struct box_answer answer;
    box_answer_init(&answer);
    (void)pthread_mutex_lock(&real.lock);
    real.refreshes += memmem(request->body.data, request->body.bytes, "refresh_token", 13) != NULL;
    box_cloud_serve(real.box, &inner, tide_world_now_unix_ms(world), &answer);
    box_cloud_finished(real.box, &answer.ticket, tide_world_now_unix_ms(world));
    (void)pthread_mutex_unlock(&real.lock);
    response->http = answer.status;
    const tide_status rc =
        tide_buf_add(&response->body, tide_buf_cstr(&answer.body), answer.body.bytes);
    box_answer_done(&answer);
    return rc;
}

int real_set_up(void **state)
{
    (void)state;
    const struct box_options options = {
        .seed = 1, .auto_consent = true, .services = box_services_all};
    real = (struct real_stage){.lock = PTHREAD_MUTEX_INITIALIZER};
    real.box = box_cloud_new(&options);
    assert_non_null(box_cloud_user_need(real.box, TIDE_TEXT(EMAIL), NULL));
    OK(tide_world_real_new(tide_mem_heap(), &real.world, NULL));
    real.ops = *real.world->ops;
    real.ops.call = real_box_call;
    real.world->ops = &real.ops;
    (void)snprintf(real.dir, sizeof real.dir, "/tmp/tide-oauth-XXXXXX");
    assert_non_null(mkdtemp(real.dir));
    OK(tide_secrets_open(real.world, real.dir, TIDE_SECRETS_FILES, tide_mem_heap(), &real.secrets,
                         NULL));
    return 0;
}

int real_tear_down(void **state)
{
    (void)state;
    tide_secrets_close(real.secrets);
    tide_world_real_free(real.world);
    box_cloud_free(real.box);
    assert_int_equal(temp_dir_remove(real.dir), 0);
    forget_secrets();
    return 0;
}

void real_follow(const char *link, char location_out[2048])
{
    const char *path = strchr(strstr(link, "://") + 3, '/');
    const struct box_request request = {
        .verb = BOX_GET, .target = tide_text_of(path), .origin = TIDE_TEXT(ORIGIN)};
    struct box_answer answer;
    box_answer_init(&answer);
    (void)pthread_mutex_lock(&real.lock);
    box_cloud_serve(real.box, &request, tide_world_now_unix_ms(real.world), &answer);
    (void)pthread_mutex_unlock(&real.lock);
    assert_int_equal(answer.status, 302);
    location_out[0] = '\0';
    for (size_t i = 0; i < answer.headers_count; i++)
        if (strcmp(answer.headers[i].name, "Location") == 0)
            (void)snprintf(location_out, 2048, "%s", answer.headers[i].value);
    assert_true(location_out[0] != '\0');
    box_answer_done(&answer);
}

int browse(const char *url)
{
    unsigned port = 0;
    char request[8192];
    char answer[4096];
    assert_int_equal(sscanf(url, "http://127.0.0.1:%u/", &port), 1);
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                        .sin_port = htons((uint16_t)port)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    const int bytes =
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
                 strchr(url + 7, '/'), port);
    assert_int_equal(send(fd, request, (size_t)bytes, MSG_NOSIGNAL), bytes);
    size_t heard = 0;
    ssize_t got = 0;
    while (heard < sizeof answer - 1 &&
           (got = recv(fd, answer + heard, sizeof answer - 1 - heard, 0)) > 0)
        heard += (size_t)got;
    answer[heard] = '\0';
    (void)close(fd);
    int http = 0;
    assert_int_equal(sscanf(answer, "HTTP/1.1 %d", &http), 1);
    return http;
}

void waiter_run(void *arg)
{
    struct waiter *waiter = arg;
    waiter->rc = tide_oauth_flow_wait(waiter->flow, waiter->wait_ms, &waiter->cancel, &waiter->err);
}

tide_oauth_flow *real_flow(struct tide_oauth_client *client)
{
    tide_oauth_client_at(&tide_oauth_google, ORIGIN, client);
    const struct tide_oauth_ask ask = {
        .provider = &tide_oauth_google, .client = client, .scopes = READONLY, .login_hint = EMAIL};
    tide_oauth_flow *flow = NULL;
    OK(tide_oauth_flow_start(real.world, &ask, tide_mem_heap(), &flow, NULL));
    return flow;
}

void real_sign_in(void)
{
    struct tide_oauth_client client;
    char location[2048];
    tide_thread *thread = NULL;
    tide_error err = {0};
    tide_buf grant = heap_buf(TIDE_SECRET_BYTES_MAX);
    tide_buf scopes = heap_buf(4096);
    tide_oauth_flow *flow = real_flow(&client);
    struct waiter waiter = {.flow = flow, .wait_ms = 60000};
    OK(tide_world_thread(real.world, "wait", waiter_run, &waiter, &thread, NULL));
    real_follow(tide_oauth_flow_link(flow), location);
    assert_int_equal(browse(location), 200);
    tide_world_join(real.world, thread);
    EXPECT_OF(waiter.rc, TIDE_OK, &waiter.err);
    EXPECT_OF(tide_oauth_flow_finish(flow, NULL, &grant, &scopes, &err), TIDE_OK, &err);
    keep_grant(tide_buf_text(&grant));
    OK(tide_secrets_put(real.secrets, SECRET, tide_buf_text(&grant), NULL));
    tide_oauth_flow_free(flow);
    tide_secret_wipe(&grant);
    tide_buf_done(&scopes);
}
