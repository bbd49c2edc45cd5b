/* memory.c - the server's memory fails, one allocation in each run: a client may get an error or nothing, but
 * never half an answer, and nothing is left behind. */
#include "unit/serve/httpd/httpd_fixture.h"

#include <stdlib.h>
#include <unistd.h>

/* Fails the allocation when `left` reaches 0; counts what lives.  Any thread. */
struct failing {
    tide_mem base;
    atomic_long left;
    atomic_long live;
};

static void *resize(tide_mem *mem, void *old, size_t old_bytes, size_t new_bytes)
{
    struct failing *failing = (struct failing *)mem;
    if (new_bytes > old_bytes && atomic_fetch_sub(&failing->left, 1) == 0)
        return NULL;
    void *made = NULL;
    if (new_bytes == 0)
        free(old);
    else if ((made = realloc(old, new_bytes)) == NULL)
        abort();
    atomic_fetch_add(&failing->live, (long)new_bytes - (long)old_bytes);
    return made;
}

static void whole_or_nothing(struct reply *reply, const char *text)
{
    if (reply->status == 200)
        assert_string_equal(reply->body, text);
    else
        assert_true(reply->status == 0 || reply->status == 500 || reply->status == 503);
    reply_done(reply);
}

static void use(struct fixture *fixture)
{
    struct reply reply;
    (void)tide_httpd_publish(fixture->server, "state", TIDE_TEXT("now"));
    ask(fixture, &reply,
        "GET /api/v1/state?a=b HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
        "%s\r\nConnection: close\r\n\r\n",
        fixture->key);
    whole_or_nothing(&reply, "{\"ok\":true}\n");
    ask(fixture, &reply,
        "POST /api/v1/jobs/cancel HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
        "%s\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: "
        "2\r\nConnection: close\r\n\r\n{}",
        fixture->key);
    whole_or_nothing(&reply, "{\"ok\":true}\n");
    ask(fixture, &reply,
        "GET /v/" CAP "/html HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    whole_or_nothing(&reply, "<p>mail</p>");
    const int fd = client_connect(fixture);
    client_print(fd,
                 "GET /api/v1/stream?topics=state HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: "
                 "Bearer %s\r\n\r\n",
                 fixture->key);
    if (tide_httpd_publish(fixture->server, "state", TIDE_TEXT("later")) == TIDE_OK)
        (void)client_read_to(fd, "data: later\n\n"); /* or the end */
    (void)close(fd);
}

TEST(the_server_survives_every_failed_allocation)
{
    long fail_at = 0;
    bool fired = true;
    for (; fired; fail_at++) { /* ends: a run makes finitely many */
        struct failing failing = {.base = {resize}};
        atomic_init(&failing.left, fail_at);
        atomic_init(&failing.live, 0);
        struct fixture *fixture = fixture_try(&failing.base, NULL);
        if (fixture != NULL) {
            use(fixture);
            fixture_stop(fixture);
        }
        fired = atomic_load(&failing.left) < 0;
        assert_int_equal(atomic_load(&failing.live), 0);
    }
    assert_true(fail_at > 20);
}
