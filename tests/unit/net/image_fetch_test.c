/* Loading the remote image of a mail from a server on this machine: the rules of
 * net/image/fetch.h, one by one.  That server is not on the public internet, so most tests allow
 * 127.0.0.1 themselves, and nothing else. */
#include "net/image/fetch.h"
#include "support/heap.h"
#include "support/http_server.h"
#include "support/ok.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>

struct fixture {
    test_http *server;
    tide_world *world;
    tide_buf out;
    const char *type;
    tide_error err;
};

static unsigned asked; /* how often an address was asked about; on the network thread */

static bool only_127_0_0_1(const struct sockaddr *address)
{
    struct sockaddr_in in;
    (void)__atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
    if (address->sa_family != AF_INET)
        return false;
    memcpy(&in, address, sizeof in);
    return ntohl(in.sin_addr.s_addr) == INADDR_LOOPBACK;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->server = test_http_start();
    OK(tide_world_real_new(tide_mem_heap(), &f->world, &f->err));
    f->out = heap_buf(16 << 20);
    __atomic_store_n(&asked, 0, __ATOMIC_RELAXED);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tide_world_real_free(f->world);
    test_http_stop(f->server);
    tide_buf_done(&f->out);
    free(f);
    return 0;
}
#define CASE(name) TEST_ON(name, struct fixture *f, set_up, tear_down)

static tide_status fetch(struct fixture *f, const char *url)
{
    /* Long enough for a busy machine. */
    const struct tide_image_limits limits = {.may_connect = only_127_0_0_1, .total_ms = 120000};
    tide_buf_clear(&f->out);
    f->type = "";
    return tide_image_fetch(f->world, tide_text_of(url), &limits, NULL, &f->out, &f->type, &f->err);
}

/* As a program does it: public addresses only. */
static tide_status fetch_public(struct fixture *f, const char *url)
{
    tide_buf_clear(&f->out);
    return tide_image_fetch(f->world, tide_text_of(url), NULL, NULL, &f->out, &f->type, &f->err);
}

CASE(an_image_is_loaded)
{
    OK(fetch(f, test_http_url(f->server, "/image?bytes=1000")));
    assert_string_equal(f->type, "image/png");
    assert_int_equal(f->out.bytes, 1000);
    assert_int_equal(__atomic_load_n(&asked, __ATOMIC_RELAXED), 1);
}

/* Every way to say "this machine" ends before a connection. */
CASE(this_machine_is_out_of_reach_by_any_name)
{
    const char *port = strrchr(test_http_url(f->server, ""), ':');
    static const char *const hosts[] = {
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.0.0.2",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::127.0.0.1]",
        "localhost.",
        "user:pw@127.0.0.1",
        "user@localhost",
        "127.0.0.1.",
    };
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        const tide_status rc = fetch_public(f, textf("http://%s%s/image", hosts[i], port));
        /* A name that no resolver knows does not connect either. */
        if (rc != TIDE_INVALID && rc != TIDE_NETWORK)
            fail_msg("%s: %s", hosts[i], tide_status_name(rc));
        assert_int_equal(f->out.bytes, 0);
    }
    assert_int_equal(test_http_connections(f->server), 0);
    assert_int_equal(fetch_public(f, textf("http://127.0.0.1%s/image", port)), TIDE_INVALID);
    assert_non_null(strstr(f->err.text, "may not connect"));
}

/* Literals of each class; nothing is sent to them, so no network is needed. */
CASE(no_class_of_address_but_the_public_one_is_reached)
{
    static const char *const hosts[] = {
        "10.0.0.1",        "172.16.0.1", "192.168.1.1",       "169.254.169.254",  "100.64.0.1",
        "198.18.0.1",      "224.0.0.1",  "255.255.255.255",   "192.0.2.1",        "[fe80::1]",
        "[fc00::1]",       "[fd00::1]",  "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "[64:ff9b:1::1]",
        "[2002:7f00:1::]", "[2001::1]",  "[ff02::1]",         "[2001:db8::1]",
    };
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        const tide_status rc = fetch_public(f, textf("http://%s/x.png", hosts[i]));
        if (rc != TIDE_INVALID)
            fail_msg("%s: %s, %s", hosts[i], tide_status_name(rc), f->err.text);
    }
}

CASE(three_redirects_are_followed_and_a_fourth_is_not)
{
    OK(fetch(f, test_http_url(f->server, "/hops?left=3")));
    assert_string_equal(f->type, "image/png");
    assert_int_equal(test_http_requests(f->server), 4);
    assert_int_equal(fetch(f, test_http_url(f->server, "/hops?left=4")), TIDE_PERMANENT);
    assert_int_equal(test_http_requests(f->server), 8);
    assert_int_equal(f->out.bytes, 0);
}

/* Each redirect is under the same rules: another address, another scheme. */
CASE(a_redirect_leads_nowhere_else)
{
    const char *port = strrchr(test_http_url(f->server, ""), ':');
    const char *const targets[] = {
        textf("http://127.0.0.2%s/image", port),
        textf("http://[::1]%s/image", port),
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "gopher://127.0.0.1/x",
    };
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        const uint64_t before = test_http_requests(f->server);
        const char *url = test_http_url(f->server, textf("/to?url=%s", targets[i]));
        assert_int_equal(fetch(f, url), TIDE_INVALID);
        assert_int_equal(test_http_requests(f->server), before + 1);
    }
    assert_int_equal(fetch(f, test_http_url(f->server, "/to")), TIDE_PERMANENT); /* no Location */
}

CASE(nothing_is_told_about_the_reader)
{
    /* The server answers with the headers it got, behind the first bytes of an image. */
    OK(fetch(f, textf("http://ada:secret@%s#part",
                      test_http_url(f->server, "/image?headers=1") + strlen("http://"))));
    const char *text = tide_buf_cstr(&f->out) + 8;
    assert_non_null(strstr(text, "Accept: image/*\n"));
    assert_non_null(strstr(text, "User-Agent: Mozilla/5.0\n"));
    static const char *const never[] = {"Cookie", "Referer", "Authorization", "tidemark",
                                        "secret", "Origin",  "From",          "DNT"};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        assert_null(strcasestr(text, never[i]));
}

/* A cookie that a server sets is not sent to it, nor to the next. */
CASE(no_cookie_is_kept)
{
    OK(fetch(f, test_http_url(f->server, "/hops?left=2&cookie=1")));
    OK(fetch(f, test_http_url(f->server, "/image?headers=1")));
    assert_null(strcasestr(tide_buf_cstr(&f->out) + 8, "Cookie"));
}

CASE(only_pixels_are_taken)
{
    assert_int_equal(fetch(f, test_http_url(f->server, "/plain?bytes=100")), TIDE_INVALID);
    assert_int_equal(fetch(f, test_http_url(f->server, "/plain?bytes=0")), TIDE_INVALID);
    assert_int_equal(fetch(f, test_http_url(f->server, "/status?code=404")), TIDE_PERMANENT);
    assert_int_equal(fetch(f, test_http_url(f->server, "/status?code=500")), TIDE_PERMANENT);
    assert_int_equal(f->out.bytes, 0);
}

CASE(the_size_is_limited_exactly)
{
    OK(fetch(f, test_http_url(f->server, textf("/image?bytes=%d", TIDE_IMAGE_BYTES_MAX))));
    assert_int_equal(f->out.bytes, TIDE_IMAGE_BYTES_MAX);
    assert_int_equal(
        fetch(f, test_http_url(f->server, textf("/image?bytes=%d", TIDE_IMAGE_BYTES_MAX + 1))),
        TIDE_FULL);
    assert_int_equal(f->out.bytes, 0);
    /* Without a length, and compressed: what it becomes counts. */
    assert_int_equal(fetch(f, test_http_url(f->server, "/huge?bytes=100000000")), TIDE_FULL);
    assert_int_equal(fetch(f, test_http_url(f->server, "/gzip?bytes=20000000")), TIDE_FULL);
}

/* One time for all: a server that stays silent, and one whose redirects each take a while. */
CASE(the_time_is_limited)
{
    const struct tide_image_limits limits = {.may_connect = only_127_0_0_1, .total_ms = 300};
    tide_status rc =
        tide_image_fetch(f->world, tide_text_of(test_http_bad_url(f->server, "/stall-zero")),
                         &limits, NULL, &f->out, &f->type, &f->err);
    assert_int_equal(rc, TIDE_TIMEOUT);
    rc = tide_image_fetch(f->world, tide_text_of(test_http_url(f->server, "/hops?left=3&ms=60000")),
                          &limits, NULL, &f->out, &f->type, &f->err);
    assert_int_equal(rc, TIDE_TIMEOUT);
    rc = tide_image_fetch(f->world, tide_text_of(test_http_bad_url(f->server, "/stall-body")),
                          &limits, NULL, &f->out, &f->type, &f->err);
    assert_int_equal(rc, TIDE_TIMEOUT);
    assert_int_equal(f->out.bytes, 0);
}

/* A connection that an ordinary call left open is not used: its address was never asked about. */
CASE(a_kept_connection_is_not_used)
{
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    const struct tide_request request = {.method = "GET",
                                         .url = test_http_url(f->server, "/plain")};
    OK(tide_world_call(f->world, &request, &response, NULL, &f->err));
    tide_response_done(&response);
    assert_int_equal(test_http_connections(f->server), 1);
    assert_int_equal(fetch_public(f, test_http_url(f->server, "/image")), TIDE_INVALID);
    assert_int_equal(test_http_requests(f->server), 1);
    OK(fetch(f, test_http_url(f->server, "/image")));
    assert_int_equal(test_http_connections(f->server), 2);
}

/* A proxy of the environment would connect for us. */
CASE(no_proxy_is_used)
{
    const char *proxy = test_http_url(f->server, "");
    assert_int_equal(setenv("http_proxy", proxy, 1), 0);
    const tide_status rc = fetch_public(f, "http://10.1.2.3/x.png");
    assert_int_equal(unsetenv("http_proxy"), 0);
    assert_int_equal(rc, TIDE_INVALID);
    assert_int_equal(test_http_connections(f->server), 0);
}

CASE(other_schemes_are_refused)
{
    static const char *const urls[] = {"ftp://a.example/x",
                                       "file:///etc/passwd",
                                       "javascript:1",
                                       "data:image/png,AAA",
                                       "dict://127.0.0.1/",
                                       "/x.png",
                                       "",
                                       "http://"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++)
        assert_int_equal(fetch(f, urls[i]), TIDE_INVALID);
    assert_int_equal(__atomic_load_n(&asked, __ATOMIC_RELAXED), 0);
}

CASE(it_is_canceled)
{
    tide_cancel cancel = {0};
    tide_world_cancel(f->world, &cancel, TIDE_CANCEL_USER);
    const struct tide_image_limits limits = {.may_connect = only_127_0_0_1};
    assert_int_equal(tide_image_fetch(f->world, tide_text_of(test_http_url(f->server, "/image")),
                                      &limits, &cancel, &f->out, &f->type, &f->err),
                     TIDE_CANCELED);
}
