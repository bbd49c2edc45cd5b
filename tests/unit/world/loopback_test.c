/* The listener for a browser's answer, over real sockets on this machine. */
#include "support/ok.h"
#include "support/test.h"
#include "world/loopback.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/rng.h"
#include "support/scale.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
    tide_world *world;
    tide_loopback *loopback;
    tide_thread *thread;
    tide_cancel cancel;
    uint64_t wait_ms;
    tide_status ended;
    tide_error err;
    char targets[16][256]; /* as they were shown to the caller */
    size_t targets_count;
};

/* "/take..." is taken, "/wrong..." is wrong, the rest is elsewhere. */
static tide_loopback_verdict look(void *arg, tide_text target, const char **sentence_out)
{
    struct fixture *f = arg;
    TIDE_ASSERT(f->targets_count < 16);
    (void)snprintf(f->targets[f->targets_count++], 256, "%.*s", (int)target.bytes, target.data);
    *sentence_out = "A sentence.";
    if (target.bytes >= 5 && memcmp(target.data, "/take", 5) == 0)
        return TIDE_LOOPBACK_TAKEN;
    if (target.bytes >= 6 && memcmp(target.data, "/wrong", 6) == 0)
        return TIDE_LOOPBACK_WRONG;
    return TIDE_LOOPBACK_ELSEWHERE;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    OK(tide_world_real_new(tide_mem_heap(), &f->world, NULL));
    OK(tide_loopback_open(tide_mem_heap(), &f->loopback, NULL));
    assert_in_range(tide_loopback_port(f->loopback), 1, 65535);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tide_loopback_close(f->loopback);
    tide_world_real_free(f->world);
    free(f);
    return 0;
}

static void wait_run(void *arg)
{
    struct fixture *f = arg;
    f->ended = tide_loopback_wait(f->loopback, f->world, f->wait_ms, &f->cancel, look, f, &f->err);
}

static void wait_start(struct fixture *f)
{
    f->wait_ms = 60000;
    OK(tide_world_thread(f->world, "wait", wait_run, f, &f->thread, NULL));
}

static void wait_end(struct fixture *f, tide_status expected)
{
    tide_world_join(f->world, f->thread);
    f->thread = NULL;
    assert_int_equal(f->ended, expected);
}

/* ---- a browser ---- */

static int dial(const struct fixture *f)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                        .sin_port =
                                            htons((uint16_t)tide_loopback_port(f->loopback))};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void say(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t sent = send(fd, text, bytes, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* it has heard enough */
        text += sent;
        bytes -= (size_t)sent;
    }
}

/* The whole answer; its code. */
static int hear(int fd, char answer[4096])
{
    size_t bytes = 0;
    ssize_t got = 0;
    while (bytes < 4095 && (got = recv(fd, answer + bytes, 4095 - bytes, 0)) > 0)
        bytes += (size_t)got;
    answer[bytes] = '\0';
    (void)close(fd);
    int http = 0;
    return sscanf(answer, "HTTP/1.1 %d", &http) == 1 ? http : 0;
}

/* Sends a request line with our Host and gives the code of the answer. */
static int ask(const struct fixture *f, const char *line)
{
    char request[1024];
    char answer[4096];
    const int fd = dial(f);
    const int bytes = snprintf(request, sizeof request, "%s\r\nHost: 127.0.0.1:%u\r\n\r\n", line,
                               tide_loopback_port(f->loopback));
    assert_in_range(bytes, 1, sizeof request - 1);
    say(fd, request, (size_t)bytes);
    return hear(fd, answer);
}

#define LISTENING(name) TEST_ON(name, struct fixture *f, set_up, tear_down)

LISTENING(the_first_target_that_is_taken_ends_the_wait)
{
    wait_start(f);
    assert_int_equal(ask(f, "GET /favicon.ico HTTP/1.1"), 404);
    assert_int_equal(ask(f, "GET /wrong?state=1 HTTP/1.1"), 400);
    assert_int_equal(ask(f, "POST /take HTTP/1.1"), 405);
    assert_int_equal(ask(f, "HEAD /take HTTP/1.1"), 405);
    assert_int_equal(ask(f, "GET http://127.0.0.1/take HTTP/1.1"), 400);
    assert_int_equal(ask(f, "GET /take"), 400);
    assert_int_equal(ask(f, "GET /take HTTP/2.0"), 505);
    assert_int_equal(ask(f, "GET /take?code=4%2F0abc&state=x HTTP/1.1"), 200);
    wait_end(f, TIDE_OK);
    assert_int_equal(f->targets_count, 3);
    assert_string_equal(f->targets[0], "/favicon.ico");
    assert_string_equal(f->targets[2], "/take?code=4%2F0abc&state=x");
    /* And once more, with the same listener. */
    wait_start(f);
    assert_int_equal(ask(f, "GET /take HTTP/1.0"), 200);
    wait_end(f, TIDE_OK);
}

LISTENING(the_page_is_private_and_repeats_nothing)
{
    char request[256];
    char answer[4096];
    wait_start(f);
    const int fd = dial(f);
    const int bytes = snprintf(request, sizeof request,
                               "GET /take?code=SeCrEt HTTP/1.1\r\nhOsT:  localhost:%u \r\n"
                               "Cookie: SeCrEt\r\n\r\nSeCrEt",
                               tide_loopback_port(f->loopback));
    say(fd, request, (size_t)bytes);
    assert_int_equal(hear(fd, answer), 200);
    wait_end(f, TIDE_OK);
    assert_null(strstr(answer, "SeCrEt"));
    assert_non_null(strstr(answer, "<p>A sentence.</p>"));
    assert_non_null(strstr(answer, "Cache-Control: no-store\r\n"));
    assert_non_null(strstr(answer, "Content-Security-Policy: default-src 'none'\r\n"));
    const char *length = strstr(answer, "Content-Length: ");
    const char *body = strstr(answer, "\r\n\r\n");
    assert_non_null(length);
    assert_non_null(body);
    assert_int_equal(strtol(length + 16, NULL, 10), strlen(body + 4));
}

/* LOOP1: a page elsewhere whose name was made to point at 127.0.0.1. */
LISTENING(another_host_is_refused)
{
    static const char *const hosts[] = {"Host: evil.example:%u\r\n", "Host: 127.0.0.1\r\n", "",
                                        "Host: 127.0.0.1:%u\r\nHost: evil.example\r\n",
                                        "Host: 127.0.0.1:%u0\r\n"};
    static const int codes[] = {421, 421, 400, 421, 421};
    wait_start(f);
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        char line[128];
        char request[256];
        char answer[4096];
        const char *mark = strstr(hosts[i], "%u");
        if (mark == NULL)
            (void)snprintf(line, sizeof line, "%s", hosts[i]);
        else
            (void)snprintf(line, sizeof line, "%.*s%u%s", (int)(mark - hosts[i]), hosts[i],
                           tide_loopback_port(f->loopback), mark + 2);
        const int fd = dial(f);
        const int bytes = snprintf(request, sizeof request, "GET /take HTTP/1.1\r\n%s\r\n", line);
        say(fd, request, (size_t)bytes);
        assert_int_equal(hear(fd, answer), codes[i]);
    }
    assert_int_equal(f->targets_count, 0);
    assert_int_equal(ask(f, "GET /take HTTP/1.1"), 200);
    wait_end(f, TIDE_OK);
}

/* LOOP2: more silent connections than there is room for, as browsers make them. */
LISTENING(silent_connections_delay_no_others)
{
    int silent[2 * TIDE_LOOPBACK_PEERS_MAX];
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++)
        silent[i] = dial(f);
    wait_start(f);
    say(silent[0], "GET /ta", 7);
    assert_int_equal(ask(f, "GET /take HTTP/1.1"), 200);
    wait_end(f, TIDE_OK);
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++)
        (void)close(silent[i]);
}

LISTENING(a_request_may_come_byte_by_byte_but_not_without_end)
{
    char answer[4096];
    char request[128];
    wait_start(f);
    int fd = dial(f);
    char *endless = malloc(2 * TIDE_LOOPBACK_HEAD_BYTES_MAX);
    assert_non_null(endless);
    memset(endless, 'x', 2 * TIDE_LOOPBACK_HEAD_BYTES_MAX);
    say(fd, endless, TIDE_LOOPBACK_HEAD_BYTES_MAX);
    assert_int_equal(hear(fd, answer), 431);
    free(endless);

    fd = dial(f);
    const int bytes =
        snprintf(request, sizeof request, "GET /take HTTP/1.1\nHost: 127.0.0.1:%u\n\n",
                 tide_loopback_port(f->loopback));
    for (int i = 0; i < bytes; i++)
        say(fd, request + i, 1);
    assert_int_equal(hear(fd, answer), 200);
    wait_end(f, TIDE_OK);
}

LISTENING(a_wait_ends_with_its_time_or_when_canceled)
{
    assert_int_equal(tide_loopback_wait(f->loopback, f->world, 0, NULL, look, f, &f->err),
                     TIDE_TIMEOUT);
    assert_int_equal(tide_loopback_wait(f->loopback, f->world, 20, NULL, look, f, &f->err),
                     TIDE_TIMEOUT);
    wait_start(f);
    assert_int_equal(ask(f, "GET /other HTTP/1.1"), 404); /* it is waiting */
    tide_world_cancel(f->world, &f->cancel, TIDE_CANCEL_USER);
    wait_end(f, TIDE_CANCELED);
}

LISTENING(only_this_machine_can_reach_it)
{
    char line[256];
    char wanted[64];
    bool found = false;
    (void)snprintf(wanted, sizeof wanted, " 0100007F:%04X ", tide_loopback_port(f->loopback));
    FILE *file = fopen("/proc/net/tcp", "r");
    if (file == NULL)
        skip();
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = strstr(line, wanted) != NULL;
    (void)fclose(file);
    assert_true(found);
}

/* Random heads made of likely pieces: a target is given out only for a GET of our host. */
TEST(whatever_is_sent_only_a_get_of_ours_has_a_target)
{
    static const char *const pieces[] = {"GET",
                                         " ",
                                         "/",
                                         "?a=b",
                                         "HTTP/1.1",
                                         "\r\n",
                                         "\n",
                                         "Host:",
                                         " ",
                                         "127.0.0.1:80",
                                         "evil",
                                         "POST",
                                         "\r",
                                         "\x01",
                                         "host: localhost:80\r\n",
                                         "GET / HTTP/1.1\r\n",
                                         "X: y\r\n",
                                         "\xff"};
    const uint64_t seed = 8;
    const long rounds = (long)scaled(1000000);
    tide_rng rng = tide_rng_seeded(seed);
    long taken = 0;
    for (long round = 0; round < rounds; round++) {
        char head[256];
        size_t bytes = 0;
        for (uint64_t left = tide_rng_below(&rng, 10); left > 0; left--) {
            const char *piece = pieces[tide_rng_below(&rng, sizeof pieces / sizeof pieces[0])];
            memcpy(head + bytes, piece, strlen(piece));
            bytes += strlen(piece);
        }
        tide_text target = TIDE_TEXT_NONE;
        const int http = tide_loopback_head_read((tide_text){head, bytes}, 80, &target);
        if (http != 200) {
            assert_null(target.data);
            continue;
        }
        taken++;
        if (memcmp(head, "GET ", 4) != 0 || target.data[0] != '/' ||
            memchr(target.data, ' ', target.bytes) != NULL ||
            (memmem(head, bytes, "127.0.0.1:80", 12) == NULL &&
             memmem(head, bytes, "localhost:80", 12) == NULL))
            fail_msg("seed %llu, round %ld: %.*s", (unsigned long long)seed, round, (int)bytes,
                     head);
    }
    assert_true(taken > rounds / 10000);
}

TEST(an_allocation_that_fails_is_reported)
{
    struct tide_mem_faulty mem;
    tide_loopback *loopback = NULL;
    tide_mem_faulty_once(&mem, 0);
    assert_int_equal(tide_loopback_open(&mem.base, &loopback, NULL), TIDE_NO_MEMORY);
    assert_null(loopback);
    assert_int_equal(mem.bytes_live, 0);
    tide_loopback_close(NULL);
}
