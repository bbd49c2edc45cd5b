/* httpd_fixture.h - a server with routes of every sort, and a client that sends any bytes.
 *
 * The client waits for bytes, never for a time; a watchdog of a minute turns a hang into a failure. */
#ifndef TIDE_TESTS_SERVE_HTTPD_FIXTURE_H
#define TIDE_TESTS_SERVE_HTTPD_FIXTURE_H

#include "serve/access/pairing_routes.h"
#include "serve/http/http.h"
#include "serve/http/site.h"
#include "support/test.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#define CAP "0123456789abcdef0123456789abcdef"

struct fixture {
    tide_world *world;
    tide_httpd *server;
    tide_keys *keys;
    tide_pairings *pairings;
    struct tide_httpd_route routes[24];
    size_t routes_count;
    char key[TIDE_KEY_TEXT_BYTES + 1];     /* of scope PAGE */
    char look[TIDE_KEY_TEXT_BYTES + 1];    /* of scope LOOK */
    char metrics[TIDE_KEY_TEXT_BYTES + 1]; /* of scope METRICS */
    char revoked[TIDE_KEY_TEXT_BYTES + 1];
    uint64_t key_id, look_id;
    atomic_int effects; /* handlers that did something for a caller */
    atomic_int running; /* handlers of /api/v1/gate that wait */
    atomic_bool open;   /* the gate */
    atomic_int canceled;
    atomic_int watched, unwatched;
    atomic_int observed, observed_status, observed_unrouted;
    char last_body[64];
    /* What the hook for Idempotency-Keys remembers: one key. */
    char once_key[TIDE_HTTPD_ONCE_BYTES_MAX + 1];
    unsigned char once_digest[32];
    char once_body[256];
    int once_status;
};

/* `change` may alter the options; NULL: none. */
struct fixture *fixture_start(void (*change)(struct tide_httpd_options *options));
/* The same with memory of one's own for the server, which may fail; NULL: it did. */
struct fixture *fixture_try(tide_mem *mem, void (*change)(struct tide_httpd_options *options));
void fixture_stop(struct fixture *fixture);

struct reply {
    int status; /* 0: the connection ended before an answer */
    char head[16 << 10];
    char *body; /* terminated */
    size_t bytes;
};

int client_connect(const struct fixture *fixture);
int client_connect_to(uint16_t port); /* of another server */
/* false: the server has closed. */
bool client_send(int fd, const char *text, size_t bytes);
void client_print(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One answer with a length, on a connection that stays open. */
void client_read(int fd, struct reply *reply);
/* Everything up to the end of the connection. */
void client_read_all(int fd, struct reply *reply);
void reply_done(struct reply *reply);
/* Reads until `text` has come; what came before is dropped.  false: the end came first. */
bool client_read_to(int fd, const char *text);
/* Sends a request and reads its answer to the end of the connection. */
void ask(const struct fixture *fixture, struct reply *reply, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A good GET with the page's key. */
int get_status(const struct fixture *fixture, const char *path);
bool head_has(const struct reply *reply, const char *line);

/* Waits until it holds; the watchdog is here too. */
#define eventually(condition)                                                                      \
    do {                                                                                           \
        struct tide_httpd_counts counts;                                                           \
        const time_t by = time(NULL) + 60;                                                         \
        do {                                                                                       \
            (void)sched_yield();                                                                   \
            tide_httpd_count(fixture->server, &counts);                                            \
            if (time(NULL) > by)                                                                   \
                fail_msg("never: %s", #condition);                                                 \
        } while (!(condition));                                                                    \
    } while (0)

#endif
