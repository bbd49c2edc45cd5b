/* The served cloud against clients that do not play fair: broken heads, bodies that
 * lie, clients that send a byte at a time, a thousand at once, floods, and bytes
 * that are no text.  Each gets the answer it deserves or a closed connection, and
 * after each of them the cloud answers all other clients as before, in bounded memory.
 *
 * hostile_test TIDEMARK_CLOUD */

#include "base/buf.h"
#include "base/check.h"
#include "cloudbox/gate/http.h"
#include "resident.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PATIENCE_S = 30, /* a server silent for longer has failed */
    MANY = 1000,
    SLOW = 40,
    PIPELINED = 200,
    GROWTH_KIB_MAX = 64 << 10,
};

#define PROFILE "/gmail/v1/users/me/profile"
#define KNOWN   "Host: x\r\nAuthorization: Bearer t\r\n"
#define NORMAL  "GET " PROFILE " HTTP/1.1\r\n" KNOWN "\r\n"

static const char *program;

struct cloud {
    pid_t pid;
    uint16_t port;
    long start_kib; /* memory before the first client */
};

/* ---- the server ---- */

static int start(void **state)
{
    static struct cloud cloud;
    int ready[2];
    TIDE_ASSERT(pipe(ready) == 0);
    cloud.pid = fork();
    TIDE_ASSERT(cloud.pid >= 0);
    if (cloud.pid == 0) {
        (void)dup2(ready[1], STDOUT_FILENO);
        (void)close(ready[0]);
        (void)close(ready[1]);
        (void)execl(program, program, "--listen", "127.0.0.1:0", "--quiet", "--quota", "off",
                    "--concurrency", "100000", "--mailbox", "ada@example.com=50", "--token",
                    "t=ada@example.com", (char *)NULL);
        _exit(127);
    }
    (void)close(ready[1]);
    FILE *in = fdopen(ready[0], "r");
    TIDE_ASSERT(in != NULL);
    TIDE_ASSERT(fscanf(in, "ready http://127.0.0.1:%hu", &cloud.port) == 1);
    fclose(in);
    cloud.start_kib = resident_kib(cloud.pid);
    *state = &cloud;
    return 0;
}

/* It ends by itself when asked to, and with no complaint: a sanitizer's would show. */
static int stop(void **state)
{
    const struct cloud *cloud = *state;
    int status = 0;
    (void)kill(cloud->pid, SIGTERM);
    if (waitpid(cloud->pid, &status, 0) != cloud->pid)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* ---- a client ---- */

struct client {
    int fd;
    tide_buf in; /* received and not yet read */
};

static void client_open(struct client *client, const struct cloud *cloud)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(cloud->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(client->fd >= 0);
    (void)setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(client->fd, (const struct sockaddr *)&address, sizeof address), 0);
    tide_buf_init(&client->in, tide_mem_heap(), 64 << 20);
}

static void client_close(struct client *client)
{
    (void)close(client->fd);
    tide_buf_done(&client->in);
}

/* false: the other side has closed, which it may do before it has heard everything. */
static bool client_send(const struct client *client, const char *bytes, size_t count)
{
    while (count > 0) {
        const ssize_t sent = send(client->fd, bytes, count, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0) {
            assert_true(errno == EPIPE || errno == ECONNRESET);
            return false;
        }
        bytes += sent;
        count -= (size_t)sent;
    }
    return true;
}

/* false: it is closed.  Silence for too long fails the test. */
static bool client_receive(struct client *client)
{
    char *room = tide_buf_reserve(&client->in, 64 << 10);
    assert_non_null(room);
    for (;;) {
        const ssize_t got = recv(client->fd, room, 64 << 10, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno != ECONNRESET)
            fail_msg("no answer within %d s", PATIENCE_S);
        if (got <= 0)
            return false;
        client->in.bytes += (size_t)got;
        client->in.data[client->in.bytes] = '\0';
        return true;
    }
}

static void client_drop(struct client *client, size_t bytes)
{
    memmove(client->in.data, client->in.data + bytes, client->in.bytes - bytes);
    client->in.bytes -= bytes;
    client->in.data[client->in.bytes] = '\0';
}

/* The status of the next answer, its body skipped; 0: closed without one. */
static int client_answer(struct client *client, bool has_body)
{
    const char *end = NULL;
    while (client->in.bytes == 0 || (end = strstr(client->in.data, "\r\n\r\n")) == NULL)
        if (!client_receive(client))
            return 0;
    int status = 0;
    assert_int_equal(sscanf(client->in.data, "HTTP/1.%*1[01] %3d", &status), 1);
    const char *length = strcasestr(client->in.data, "\r\nContent-Length:");
    const size_t head = (size_t)(end - client->in.data) + 4;
    size_t body = 0;
    if (has_body && status >= 200 && length != NULL && length < end)
        body = (size_t)strtoul(length + 17, NULL, 10);
    while (client->in.bytes < head + body)
        if (!client_receive(client))
            return status; /* what a closing server says may be cut */
    client_drop(client, head + body);
    return status;
}

static int ask(const struct cloud *cloud, const char *bytes, size_t count)
{
    struct client client;
    client_open(&client, cloud);
    (void)client_send(&client, bytes, count);
    const int status = client_answer(&client, true);
    client_close(&client);
    return status;
}

static int ask_text(const struct cloud *cloud, const char *text)
{
    return ask(cloud, text, strlen(text));
}

/* Other clients are served, and memory stays bounded. */
static void assert_well(const struct cloud *cloud)
{
    assert_int_equal(ask_text(cloud, NORMAL), 200);
    const long grown_kib = resident_kib(cloud->pid) - cloud->start_kib;
    if (grown_kib > GROWTH_KIB_MAX + RESIDENT_SLACK_KIB)
        fail_msg("the memory grew by %ld KiB", grown_kib);
}

/* ---- heads ---- */

#define CASE(status, text)                                                                         \
    {                                                                                              \
        status, text, sizeof text - 1                                                              \
    }

TEST(broken_heads_are_refused)
{
    static const struct {
        int status; /* 0: closed without an answer */
        const char *bytes;
        size_t count;
    } cases[] = {
        CASE(400, "GET /\r\n\r\n"),
        CASE(400, "GET / FTP/1.1\r\n" KNOWN "\r\n"),
        CASE(505, "GET / HTTP/9.9\r\n" KNOWN "\r\n"),
        CASE(505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        CASE(0, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
        CASE(400, "GET " PROFILE " HTTP/1.1\r\nAuthorization: Bearer t\r\n\r\n"),
        CASE(400, "GET " PROFILE " HTTP/1.1\r\n" KNOWN "no colon\r\n\r\n"),
        CASE(400, "GET no-slash HTTP/1.1\r\n" KNOWN "\r\n"),
        CASE(400, "OPTIONS * HTTP/1.1\r\n" KNOWN "\r\n"),
        CASE(400, "CONNECT x:80 HTTP/1.1\r\n" KNOWN "\r\n"),
        CASE(400, "GET /%zz HTTP/1.1\r\n" KNOWN "\r\n"),
        CASE(400, "GET /% HTTP/1.1\r\n" KNOWN "\r\n"),
        CASE(404, "GET //" PROFILE " HTTP/1.1\r\n" KNOWN "\r\n"),
        CASE(404, "GET /\xff\xfe%ff?\xff=\xfe HTTP/1.1\r\n" KNOWN "\r\n"),
        CASE(405, "TRACE / HTTP/1.1\r\n" KNOWN "\r\n"),
        CASE(405, "F\xc3\xa9 / HTTP/1.1\r\n" KNOWN "\r\n"),
        CASE(401, "GET " PROFILE " HTTP/1.1\r\nHost: x\r\nAuthorization: \xff\xfe\r\n\r\n"),
        CASE(401, "GET " PROFILE " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\r\n\r\n"),
        CASE(400, "GET " PROFILE "?fields=\xff HTTP/1.1\r\n" KNOWN "\r\n"),
        CASE(400, "POST " PROFILE " HTTP/1.1\r\n" KNOWN "Content-Length: -1\r\n\r\n"),
        CASE(400, "POST " PROFILE " HTTP/1.1\r\n" KNOWN "Content-Length: 1x\r\n\r\n"),
        CASE(413, "POST " PROFILE " HTTP/1.1\r\n" KNOWN
                  "Content-Length: 99999999999999999999999\r\n\r\n"),
        CASE(413, "POST " PROFILE " HTTP/1.1\r\n" KNOWN "Content-Length: 200000000\r\n\r\n"),
        CASE(413, "POST " PROFILE " HTTP/1.1\r\n" KNOWN
                  "Content-Length: 300000000\r\nExpect: 100-continue\r\n\r\n"),
        CASE(400, "POST " PROFILE " HTTP/1.1\r\n" KNOWN
                  "Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc"),
        CASE(400, "POST " PROFILE " HTTP/1.1\r\n" KNOWN
                  "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        CASE(501, "POST /token HTTP/1.1\r\n" KNOWN "Transfer-Encoding: gzip\r\n\r\nabc"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int status = ask(*state, cases[i].bytes, cases[i].count);
        if (status != cases[i].status)
            fail_msg("%d instead of %d: %s", status, cases[i].status, cases[i].bytes);
        assert_well(*state);
    }
}

/* A request with `count` bytes of `filler` at `at`, a piece of the head. */
static int ask_filled(const struct cloud *cloud, const char *before, char filler, size_t count,
                      const char *after)
{
    tide_auto_buf request = tide_buf_heap(16 << 20);
    box_add_cstr(&request, before);
    char *room = tide_buf_reserve(&request, count);
    assert_non_null(room);
    memset(room, filler, count);
    request.bytes += count;
    box_add_cstr(&request, after);
    return ask(cloud, request.data, request.bytes);
}

TEST(a_target_has_a_largest_length)
{
    const char *after = " HTTP/1.1\r\n" KNOWN "\r\n";
    assert_int_equal(ask_filled(*state, "GET /?", 'a', BOX_TARGET_BYTES_MAX - 2, after), 200);
    assert_int_equal(ask_filled(*state, "GET /?", 'a', BOX_TARGET_BYTES_MAX - 1, after), 414);
    assert_int_equal(ask_filled(*state, "GET /?", 'a', 200000, after), 414);
    assert_int_equal(ask_filled(*state, "GET ", '/', BOX_SEGMENTS_MAX + 1, after), 400);
    assert_int_equal(ask_filled(*state, "GET " PROFILE "?", '&', 60000, after), 200);
    assert_well(*state);
}

TEST(a_header_bomb_is_refused)
{
    const char *before = "GET " PROFILE " HTTP/1.1\r\n" KNOWN "X: ";
    assert_int_equal(ask_filled(*state, before, 'y', 60000, "\r\n\r\n"), 200);
    assert_int_equal(ask_filled(*state, before, 'y', 5 << 20, "\r\n\r\n"), 431);
    for (int count = 62; count <= 20000; count = count == 62 ? 63 : count * 18) {
        tide_auto_buf request = tide_buf_heap(16 << 20);
        box_add_cstr(&request, "GET " PROFILE " HTTP/1.1\r\n" KNOWN);
        for (int i = 0; i < count; i++)
            box_print(&request, "X-%d: y\r\n", i);
        box_add_cstr(&request, "\r\n");
        assert_int_equal(ask(*state, request.data, request.bytes),
                         count + 2 <= BOX_HEADERS_MAX ? 200 : 431);
    }
    assert_well(*state);
}

TEST(odd_but_proper_requests_are_served)
{
    assert_int_equal(ask_text(*state, "GET " PROFILE " HTTP/1.0\r\n"
                                      "Authorization: Bearer t\r\n\r\n"),
                     200);
    assert_int_equal(
        ask_text(*state, "GET http://gmail.googleapis.com" PROFILE " HTTP/1.1\r\n" KNOWN "\r\n"),
        200);
    assert_int_equal(ask_text(*state, "GET HTTPS://x HTTP/1.1\r\n" KNOWN "\r\n"), 200);
    assert_int_equal(ask_text(*state, "GET http://x?a/b HTTP/1.1\r\n" KNOWN "\r\n"), 200);
    assert_int_equal(
        ask_text(*state, "GET " PROFILE " HTTP/1.1\r\n" KNOWN "Content-Length: 3\r\n\r\nabc"), 200);
    assert_int_equal(
        ask_text(*state, "GET " PROFILE " HTTP/1.1\r\n" KNOWN "X\xff: \xfe\xff\r\n\r\n"), 200);

    struct client client;
    client_open(&client, *state);
    static const char head[] = "HEAD " PROFILE " HTTP/1.1\r\n" KNOWN "\r\n";
    client_send(&client, head, sizeof head - 1);
    assert_int_equal(client_answer(&client, false), 200);
    client_send(&client, NORMAL, sizeof NORMAL - 1); /* no body stands in the way */
    assert_int_equal(client_answer(&client, true), 200);
    client_close(&client);
    assert_well(*state);
}

/* ---- bodies ---- */

TEST(nonsense_in_chunks_is_refused)
{
#define CHUNKED "POST /token HTTP/1.1\r\n" KNOWN "Transfer-Encoding: chunked\r\n\r\n"
    assert_int_equal(ask_text(*state, CHUNKED "xyz\r\nabc\r\n"), 400);
    assert_int_equal(ask_text(*state, CHUNKED "2\r\nabcdef\r\n0\r\n\r\n"), 400);
    assert_int_equal(ask_text(*state, CHUNKED "-1\r\n"), 400);
    assert_int_equal(ask_text(*state, CHUNKED "ffffffffffffffffff\r\nabc\r\n"), 413);
    assert_int_equal(ask_text(*state, CHUNKED "3;ext=1\r\na=b\r\n0\r\nX: y\r\n\r\n"), 400);
    assert_well(*state);
}

TEST(a_client_that_expects_is_told_to_go_on)
{
    static const char head[] =
        "POST /token HTTP/1.1\r\n" KNOWN "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n";
    struct client client;
    client_open(&client, *state);
    client_send(&client, head, sizeof head - 1);
    assert_int_equal(client_answer(&client, false), 100);
    client_send(&client, "a=b", 3);
    assert_int_equal(client_answer(&client, true), 400); /* the form is the wrong one */
    client_close(&client);
    assert_well(*state);
}

/* A client that announces more than it sends is waited for without delaying others, and forgotten
 * when it disconnects. */
TEST(a_body_that_never_ends_bothers_nobody)
{
    static const char head[] =
        "POST /token HTTP/1.1\r\n" KNOWN "Content-Length: 150000000\r\n\r\nabc";
    struct client clients[SLOW];
    for (size_t i = 0; i < SLOW; i++) {
        client_open(&clients[i], *state);
        client_send(&clients[i], head, sizeof head - 1);
    }
    assert_well(*state);
    for (size_t i = 0; i < SLOW; i++) {
        if (i % 2 == 0) {
            (void)shutdown(clients[i].fd, SHUT_WR);
            assert_int_equal(client_answer(&clients[i], true), 0);
        }
        client_close(&clients[i]);
    }
    assert_well(*state);
}

TEST(a_flood_ends_at_the_ceiling)
{
    static char block[1 << 20];
    char size[16];
    struct client client;
    memset(block, 'x', sizeof block);
    snprintf(size, sizeof size, "%zx\r\n", sizeof block);
    client_open(&client, *state);
    client_send(&client, CHUNKED, sizeof CHUNKED - 1);
    for (size_t sent = 0; sent < 2 * (size_t)BOX_BODY_BYTES_MAX; sent += sizeof block)
        if (!client_send(&client, size, strlen(size)) ||
            !client_send(&client, block, sizeof block) || !client_send(&client, "\r\n", 2))
            break;
    const int status = client_answer(&client, true);
    assert_true(status == 413 || status == 0); /* the reset may overtake the answer */
    client_close(&client);
    assert_well(*state);
}

TEST(bytes_that_are_no_text_are_refused_as_such)
{
#define GMAIL "/gmail/v1/users/me"
    static const struct {
        int status;
        const char *line;
        const char *type;
        const char *body;
    } cases[] = {
        {400, "POST " GMAIL "/labels", "application/json", "{\"name\":\"\xff\xfe\"}"},
        {400, "POST " GMAIL "/labels", "application/json", "\xff\xfe\xfd"},
        {400, "POST " GMAIL "/messages", "application/json", "{\"raw\":\"\xe9\"}"},
        {200, "POST /batch/gmail/v1", "multipart/mixed; boundary=\xff", "--\xff\r\n\r\n--\xff--"},
        {400, "POST /token", "application/x-www-form-urlencoded",
         "grant_type=\xff\xfe&client_id=\xff"},
        {400, "POST /o/oauth2/v2/auth", "application/x-www-form-urlencoded", "ticket=\xff"},
        {400, "POST /v1/chat/completions", "application/json", "{\"model\":\"\xff\"}"},
        {400, "POST /_cloud/users", "application/json", "{\"email\":\"\xff@\xff\"}"},
        {200, "GET " GMAIL "/messages?q=%ff%fe+\xff", "text/plain", ""},
        {404, "GET " GMAIL "/messages/%ff%00\xff", "text/plain", ""},
        {200, "POST /upload" GMAIL "/messages?uploadType=media", "message/rfc822",
         "Subject: \xff\xfe\r\n\xff\r\n\r\n\xc3\x28\xff"},
        {200, "GET " GMAIL "/messages?q=rfc822msgid:%ff", "text/plain", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_auto_buf request = tide_buf_heap(1 << 20);
        box_print(&request,
                  "%s HTTP/1.1\r\n" KNOWN "Content-Type: %s\r\nContent-Length: %zu\r\n\r\n",
                  cases[i].line, cases[i].type, strlen(cases[i].body));
        box_add_cstr(&request, cases[i].body);
        const int status = ask(*state, request.data, request.bytes);
        if (status != cases[i].status)
            fail_msg("%d instead of %d: %s", status, cases[i].status, cases[i].line);
    }
    assert_well(*state);
}

/* ---- connections ---- */

TEST(slow_clients_hold_nobody_up)
{
    struct client clients[SLOW];
    for (size_t i = 0; i < SLOW; i++)
        client_open(&clients[i], *state);
    for (size_t at = 0; at < sizeof NORMAL - 1; at++) {
        for (size_t i = 0; i < SLOW; i++)
            assert_true(client_send(&clients[i], &NORMAL[at], 1));
        assert_int_equal(ask_text(*state, NORMAL), 200);
    }
    for (size_t i = 0; i < SLOW; i++) {
        assert_int_equal(client_answer(&clients[i], true), 200);
        client_close(&clients[i]);
    }
    assert_well(*state);
}

/* A client that does not read its answer delays no other either. */
TEST(clients_that_do_not_read_hold_nobody_up)
{
    struct client clients[SLOW];
    for (size_t i = 0; i < SLOW; i++) {
        const int small = 4096;
        client_open(&clients[i], *state);
        (void)setsockopt(clients[i].fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        for (int k = 0; k < 50; k++) {
            static const char listing[] =
                "GET /gmail/v1/users/me/messages?maxResults=500 HTTP/1.1\r\n" KNOWN "\r\n";
            assert_true(client_send(&clients[i], listing, sizeof listing - 1));
        }
    }
    assert_well(*state);
    for (size_t i = 0; i < SLOW; i++)
        client_close(&clients[i]);
    assert_well(*state);
}

TEST(a_thousand_at_once_are_all_served)
{
    static struct client clients[MANY];
    for (size_t i = 0; i < MANY; i++)
        client_open(&clients[i], *state);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < MANY; i++)
            assert_true(client_send(&clients[i], NORMAL, sizeof NORMAL - 1));
        for (size_t i = 0; i < MANY; i++)
            assert_int_equal(client_answer(&clients[i], true), 200);
    }
    for (size_t i = 0; i < MANY; i++) {
        const struct linger now = {.l_onoff = 1};
        if (i % 2 == 0) /* reset, with a question under way */
            (void)setsockopt(clients[i].fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        (void)client_send(&clients[i], NORMAL, sizeof NORMAL - 1);
        client_close(&clients[i]);
    }
    assert_well(*state);
}

TEST(pipelined_requests_are_answered_in_order)
{
    struct client client;
    tide_auto_buf requests = tide_buf_heap(1 << 20);
    for (int i = 0; i < PIPELINED; i++)
        box_add_cstr(&requests, i % 3 == 1 ? "GET /nowhere HTTP/1.1\r\n" KNOWN "\r\n" : NORMAL);
    client_open(&client, *state);
    client_send(&client, requests.data, requests.bytes);
    for (int i = 0; i < PIPELINED; i++)
        assert_int_equal(client_answer(&client, true), i % 3 == 1 ? 404 : 200);
    client_close(&client);
    assert_well(*state);
}

/* A request and nothing more is answered.  That a client left in the middle of one
 * is not always noticed at once (the library may miss it when it comes together with
 * bytes, until the connection is idle for too long), but it delays no other client. */
TEST(half_closed_sockets_are_answered)
{
    struct client clients[SLOW];
    for (size_t i = 0; i < SLOW; i++) {
        client_open(&clients[i], *state);
        client_send(&clients[i], NORMAL, i % 2 == 0 ? sizeof NORMAL - 1 : i);
        (void)shutdown(clients[i].fd, SHUT_WR);
    }
    for (size_t i = 0; i < SLOW; i++) {
        if (i % 2 == 0)
            assert_int_equal(client_answer(&clients[i], true), 200);
        client_close(&clients[i]);
    }
    assert_well(*state);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: hostile_test TIDEMARK_CLOUD\n");
        return 2;
    }
    program = argv[1];
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    return tests_run_between(start, stop);
}
