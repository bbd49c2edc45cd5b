/* serve_client.h - `tidemark serve` as a child, and clients of its page over one connection each.
 *
 * What fails ends the program (bench.h). */
#ifndef TIDE_BENCH_SERVE_CLIENT_H
#define TIDE_BENCH_SERVE_CLIENT_H

#include "bench.h"

struct serving {
    pid_t pid;
    unsigned port;
    unsigned hook_port; /* of the webhook; 0: it has none */
    double start_ms;    /* from fork to the first answer of /healthz */
    char log[BENCH_PATH_BYTES];
};

/* `args` start it on port 0; args[0] is the path of the program. */
struct serving serve_start(const char *const args[], const char *log);
double serve_stop(struct serving *serving); /* by SIGTERM; returns how long that took, in seconds */

/* From /proc. */
double serve_rss_mb(pid_t pid);
double serve_cpu_s(pid_t pid); /* user and system time so far, in units of 10 ms */
/* Exactly, of the threads that run now and have this name; NULL: of all. */
double serve_threads_cpu_s(pid_t pid, const char *name);
uint64_t serve_switches(pid_t pid); /* of context, by all its threads */

struct client {
    int fd;
    unsigned port;
    const char *key; /* NULL: none */
    char *body;      /* of the last answer; the client's own */
    size_t body_bytes, room;
    int retry_after_s; /* of the last answer; 0: it said none */
};

void client_open(struct client *client, unsigned port, const char *key);
void client_close(struct client *client);
void client_again(struct client *client); /* on a new connection */
/* One request on its connection; returns the HTTP status, and leaves the body. */
int client_get(struct client *client, const char *path);
int client_post(struct client *client, const char *path, const char *body); /* JSON */
int client_delete(struct client *client, const char *path);

/* A stream of events: the status of its answer; 200: it stays open. */
int stream_open(struct client *client, const char *topics);
/* Waits for the next data; false: none within the time. */
bool stream_next(struct client *client, int wait_ms);

#endif
