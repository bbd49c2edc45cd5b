#include "serve_client.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_S_MAX = 120, HEAD_BYTES_MAX = 16 << 10, BODY_BYTES_MAX = 64 << 20 };

/* ---- the process ---- */

/* The port behind `before` in a whole line of the log; 0: not there yet. */
static unsigned port_in(const char *log, const char *before)
{
    char text[8192] = "";
    unsigned port = 0;
    FILE *file = fopen(log, "r");
    if (file != NULL) {
        const size_t bytes = fread(text, 1, sizeof text - 1, file);
        text[bytes] = '\0';
        (void)fclose(file);
    }
    const char *at = strstr(text, before);
    if (at != NULL && strchr(at, '\n') != NULL)
        (void)sscanf(at + strlen(before), "%u/", &port);
    return port;
}

struct serving serve_start(const char *const args[], const char *log)
{
    struct serving serving = {.pid = 0};
    struct client client;
    (void)snprintf(serving.log, sizeof serving.log, "%s", log);
    (void)unlink(log);
    const double begin_s = now_s();
    (void)fflush(NULL);
    serving.pid = fork();
    expect(serving.pid >= 0, "fork");
    if (serving.pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive a benchmark that fails */
        const int out = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
        (void)dup2(out, STDOUT_FILENO);
        (void)dup2(out, STDERR_FILENO);
        (void)execv(args[0], (char *const *)(uintptr_t)args);
        _exit(127);
    }
    while ((serving.port = port_in(log, "serving address=http://127.0.0.1:")) == 0) {
        expect(waitpid(serving.pid, NULL, WNOHANG) == 0, "serve ended; its log says why");
        expect(now_s() - begin_s < START_S_MAX, "serve does not start");
        nap_us(500);
    }
    client_open(&client, serving.port, NULL);
    expect(client_get(&client, "/healthz") == 200, "no health");
    serving.start_ms = (now_s() - begin_s) * 1e3;
    client_close(&client);
    serving.hook_port = port_in(log, "address=http://127.0.0.1:");
    if (serving.hook_port == serving.port)
        serving.hook_port = 0; /* it takes no pushes */
    return serving;
}

double serve_stop(struct serving *serving)
{
    int status = 0;
    const double begin_s = now_s();
    (void)kill(serving->pid, SIGTERM);
    expect(waitpid(serving->pid, &status, 0) == serving->pid, "waitpid");
    /* 5: it put back jobs that had not ended. */
    expect(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 5),
           "serve failed; its log says why");
    return now_s() - begin_s;
}

static uint64_t field_of(const char *path, const char *name)
{
    char line[256];
    uint64_t value = 0;
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtoull(line + strlen(name), NULL, 10);
    if (file != NULL)
        (void)fclose(file);
    return value;
}

double serve_rss_mb(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    return (double)field_of(path, "VmRSS:") / 1024;
}

double serve_cpu_s(pid_t pid)
{
    char path[64];
    unsigned long user = 0, kernel = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    expect(file != NULL, path);
    /* The name of the program has no space. */
    expect(fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                  &kernel) == 2,
           path);
    (void)fclose(file);
    return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

/* Calls `visit` with the directory of each thread. */
static void threads_visit(pid_t pid, void (*visit)(const char *dir, void *arg), void *arg)
{
    char path[64];
    struct dirent *entry = NULL;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    expect(dir != NULL, path);
    while ((entry = readdir(dir)) != NULL) {
        char thread[400];
        (void)snprintf(thread, sizeof thread, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            visit(thread, arg);
    }
    (void)closedir(dir);
}

static void switches_add(const char *dir, void *arg)
{
    char path[440];
    (void)snprintf(path, sizeof path, "%s/status", dir);
    *(uint64_t *)arg += field_of(path, "voluntary_ctxt_switches:");
}

uint64_t serve_switches(pid_t pid)
{
    uint64_t sum = 0;
    threads_visit(pid, switches_add, &sum);
    return sum;
}

struct threads_cpu {
    const char *name;
    uint64_t ns;
};

static void threads_cpu_add(const char *dir, void *arg)
{
    struct threads_cpu *sum = arg;
    char path[440];
    char name[64] = "";
    uint64_t ns = 0;
    (void)snprintf(path, sizeof path, "%s/comm", dir);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return; /* it ended */
    expect(fscanf(file, "%63[^\n]", name) == 1, path);
    (void)fclose(file);
    (void)snprintf(path, sizeof path, "%s/schedstat", dir);
    file = fopen(path, "r");
    if (file == NULL)
        return;
    expect(fscanf(file, "%" SCNu64, &ns) == 1, path);
    (void)fclose(file);
    if (sum->name == NULL || strcmp(sum->name, name) == 0)
        sum->ns += ns;
}

double serve_threads_cpu_s(pid_t pid, const char *name)
{
    struct threads_cpu sum = {.name = name};
    threads_visit(pid, threads_cpu_add, &sum);
    return (double)sum.ns / 1e9;
}

/* ---- a client ---- */

void client_open(struct client *client, unsigned port, const char *key)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    *client = (struct client){.fd = socket(AF_INET, SOCK_STREAM, 0), .port = port, .key = key};
    expect(client->fd >= 0, "socket");
    if (connect(client->fd, (const struct sockaddr *)&address, sizeof address) != 0)
        die("connect", strerror(errno));
}

void client_close(struct client *client)
{
    (void)close(client->fd);
    free(client->body);
    *client = (struct client){.fd = -1};
}

/* `body` NULL: without one. */
static void client_send(struct client *client, const char *method, const char *path,
                        const char *body)
{
    /* Each request has its effect (src/serve/once/once.h). */
    static unsigned posts;
    static const char json[] = "Content-Type: application/json\r\nIdempotency-Key: bench-";
    char text[16 << 10];
    const bool has_key = client->key != NULL;
    int bytes = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s%s%s",
                         method, path, client->port, has_key ? "Authorization: Bearer " : "",
                         has_key ? client->key : "", has_key ? "\r\n" : "");
    expect(bytes > 0 && (size_t)bytes < sizeof text, "a long head");
    const size_t room = sizeof text - (size_t)bytes;
    const int more = body == NULL
                         ? snprintf(text + bytes, room, "\r\n")
                         : snprintf(text + bytes, room, "%s%u\r\nContent-Length: %zu\r\n\r\n%s",
                                    json, ++posts, strlen(body), body);
    expect(more > 0 && (size_t)more < room, "a long body");
    bytes += more;
    expect(send(client->fd, text, (size_t)bytes, MSG_NOSIGNAL) == bytes, "send");
}

static void body_room(struct client *client, size_t bytes)
{
    if (bytes + 1 <= client->room)
        return;
    expect(bytes < BODY_BYTES_MAX, "a large answer");
    client->room = bytes + 1;
    client->body = realloc(client->body, client->room);
    expect(client->body != NULL, "memory");
}

static size_t received(struct client *client, char *room, size_t bytes)
{
    const ssize_t got = recv(client->fd, room, bytes, 0);
    if (got <= 0)
        die("recv", got == 0 ? "the server closed the connection" : strerror(errno));
    return (size_t)got;
}

/* Reads the head; what came of the body is left.  Returns the status. */
static int head_read(struct client *client, size_t *length_out)
{
    char head[HEAD_BYTES_MAX + 1];
    size_t bytes = 0;
    char *end = NULL;
    int status = 0;
    while (end == NULL) {
        expect(bytes < HEAD_BYTES_MAX, "a long head");
        bytes += received(client, head + bytes, HEAD_BYTES_MAX - bytes);
        head[bytes] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    expect(sscanf(head, "HTTP/1.1 %d", &status) == 1, "not HTTP");
    *end = '\0';
    const char *length = strcasestr(head, "\r\nContent-Length:");
    *length_out = length != NULL ? strtoul(length + 17, NULL, 10) : status == 204 ? 0 : SIZE_MAX;
    const char *after = strcasestr(head, "\r\nRetry-After:");
    client->retry_after_s = after == NULL ? 0 : (int)strtol(after + 14, NULL, 10);
    client->body_bytes = bytes - (size_t)(end + 4 - head);
    body_room(client, client->body_bytes);
    memcpy(client->body, end + 4, client->body_bytes);
    client->body[client->body_bytes] = '\0';
    return status;
}

static void body_read(struct client *client, size_t length)
{
    body_room(client, length);
    while (client->body_bytes < length)
        client->body_bytes +=
            received(client, client->body + client->body_bytes, length - client->body_bytes);
    client->body[length] = '\0';
}

static int client_ask(struct client *client, const char *method, const char *path, const char *body)
{
    size_t length = 0;
    client_send(client, method, path, body);
    const int status = head_read(client, &length);
    expect(length != SIZE_MAX, "an answer without a length");
    body_read(client, length);
    return status;
}

int client_get(struct client *client, const char *path)
{
    return client_ask(client, "GET", path, NULL);
}

int client_post(struct client *client, const char *path, const char *body)
{
    return client_ask(client, "POST", path, body);
}

int client_delete(struct client *client, const char *path)
{
    return client_ask(client, "DELETE", path, NULL);
}

void client_again(struct client *client)
{
    const unsigned port = client->port;
    const char *key = client->key;
    client_close(client);
    client_open(client, port, key);
}

/* ---- streams ---- */

int stream_open(struct client *client, const char *topics)
{
    char path[256];
    size_t length = 0;
    (void)snprintf(path, sizeof path, "/api/v1/stream?topics=%s", topics);
    client_send(client, "GET", path, NULL);
    const int status = head_read(client, &length);
    if (status != 200 && length != SIZE_MAX)
        body_read(client, length);
    return status;
}

bool stream_next(struct client *client, int wait_ms)
{
    const uint64_t until_us = now_us() + (uint64_t)wait_ms * 1000;
    for (;;) {
        const char *data = client->body_bytes == 0 ? NULL : strstr(client->body, "data:");
        if (data != NULL && strchr(data, '\n') != NULL) {
            client->body_bytes = 0;
            return true;
        }
        const uint64_t now = now_us();
        struct pollfd ready = {.fd = client->fd, .events = POLLIN};
        if (now >= until_us || poll(&ready, 1, (int)((until_us - now) / 1000) + 1) <= 0)
            return false;
        body_room(client, client->body_bytes + (64 << 10));
        client->body_bytes += received(client, client->body + client->body_bytes, 64 << 10);
        client->body[client->body_bytes] = '\0';
    }
}
