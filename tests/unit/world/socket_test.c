/* The control socket, between threads of this process and over real sockets. */
#include "support/ok.h"
#include "support/sweep.h"
#include "support/test.h"
#include "world/socket.h"
#include "base/limits.h"
#include "support/heap.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    tide_world *world;
    char dir[64];
    char path[PATH_MAX];
    tide_cancel entered; /* rung by a handler that waits */
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tide-socket-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof f->path, "%s/control", f->dir);
    OK(tide_world_real_new(tide_mem_heap(), &f->world, NULL));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tide_world_real_free(f->world);
    (void)unlink(f->path);
    assert_int_equal(rmdir(f->dir), 0); /* nothing was left behind */
    free(f);
    return 0;
}

static tide_text line_of(char *room, size_t room_bytes, unsigned number)
{
    int bytes = snprintf(room, room_bytes, "{\"n\":%u}", number);
    return (tide_text){room, (size_t)bytes};
}

/* "count N": N lines.  "fail": TIDE_THROTTLED.  "wait": until the client or the
 * server leaves.  "flood": lines until it must stop.  "late": two lines, when the server stops.  Anything
 * else: echoed. */
static tide_status handle(void *arg, tide_text request, tide_socket_reply *reply, tide_error *err)
{
    struct fixture *f = arg;
    char line[64];
    if (request.bytes > 6 && memcmp(request.data, "count ", 6) == 0) {
        const unsigned count = (unsigned)strtoul(request.data + 6, NULL, 10);
        for (unsigned i = 0; i < count; i++) {
            tide_status rc = tide_socket_say(reply, line_of(line, sizeof line, i));
            if (rc != TIDE_OK)
                return rc;
        }
        return TIDE_OK;
    }
    if (tide_text_equal(request, TIDE_TEXT("fail")))
        return tide_error_set(err, TIDE_THROTTLED, "too \"fast\"");
    if (tide_text_equal(request, TIDE_TEXT("wait"))) {
        tide_world_cancel(f->world, &f->entered, TIDE_CANCEL_USER);
        while (!tide_socket_gone(reply))
            (void)tide_world_sleep_until(f->world, tide_world_now_us(f->world) + 1000, NULL);
        return tide_error_set(err, TIDE_STOPPED, "the caller no longer waits");
    }
    if (tide_text_equal(request, TIDE_TEXT("late"))) {
        tide_world_cancel(f->world, &f->entered, TIDE_CANCEL_USER);
        while (!tide_socket_gone(reply))
            (void)tide_world_sleep_until(f->world, tide_world_now_us(f->world) + 1000, NULL);
        const tide_status rc = tide_socket_say(reply, TIDE_TEXT("done"));
        return tide_socket_say(reply, TIDE_TEXT("more")) == TIDE_STOPPED ? rc : TIDE_BUG;
    }
    if (tide_text_equal(request, TIDE_TEXT("flood"))) {
        tide_world_cancel(f->world, &f->entered, TIDE_CANCEL_USER);
        tide_status rc = TIDE_OK;
        for (unsigned i = 0; rc == TIDE_OK; i++)
            rc = tide_socket_say(reply, line_of(line, sizeof line, i));
        return rc;
    }
    if (tide_text_equal(request, TIDE_TEXT("much"))) { /* a snapshot of very many accounts */
        const size_t bytes = 5 << 20;
        char *big = malloc(bytes);
        assert_non_null(big);
        memset(big, 'x', bytes);
        tide_status rc = tide_socket_say(reply, (tide_text){big, bytes});
        free(big);
        return rc;
    }
    if (tide_text_equal(request, TIDE_TEXT("rules"))) {
        assert_int_equal(tide_socket_say(reply, TIDE_TEXT("a\nb")), TIDE_INVALID);
        assert_int_equal(tide_socket_say(reply, TIDE_TEXT("")), TIDE_INVALID);
        assert_int_equal(tide_socket_say(reply, TIDE_TEXT("{\"end\":\"ok\"}")), TIDE_INVALID);
        return tide_socket_say(reply, TIDE_TEXT("fine"));
    }
    return tide_socket_say(reply, request);
}

struct lines {
    unsigned count;
    size_t bytes;
    unsigned stop_at;
    char last[64];
};

static tide_status take_line(void *arg, tide_text line)
{
    struct lines *lines = arg;
    lines->count++;
    lines->bytes += line.bytes;
    const size_t bytes = line.bytes < sizeof lines->last ? line.bytes : sizeof lines->last - 1;
    memcpy(lines->last, line.data, bytes);
    lines->last[bytes] = '\0';
    return lines->stop_at > 0 && lines->count >= lines->stop_at ? TIDE_SUPERSEDED : TIDE_OK;
}

static tide_socket *serve(struct fixture *f)
{
    tide_socket *server = NULL;
    tide_error err = {0};
    if (tide_socket_serve(f->world, tide_mem_heap(), f->path, handle, f, &server, &err) != TIDE_OK)
        fail_msg("%s", err.text);
    return server;
}

static tide_status ask(struct fixture *f, tide_text request, struct lines *lines, tide_error *err)
{
    return tide_socket_ask(f->world, tide_mem_heap(), f->path, request, 10000, NULL, take_line,
                           lines, err);
}

#define CASE(name) TEST_ON(name, struct fixture *f, set_up, tear_down)

CASE(a_request_gets_its_lines_and_its_end)
{
    tide_socket *server = serve(f);
    struct stat info;
    assert_int_equal(stat(f->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);

    struct lines lines = {0};
    OK(ask(f, TIDE_TEXT("count 5000"), &lines, NULL));
    assert_int_equal(lines.count, 5000);
    assert_string_equal(lines.last, "{\"n\":4999}");

    tide_error err = {0};
    assert_int_equal(ask(f, TIDE_TEXT("fail"), &lines, &err), TIDE_THROTTLED);
    assert_string_equal(err.text, "too \"fast\"");

    lines = (struct lines){0};
    OK(ask(f, TIDE_TEXT("rules"), &lines, NULL));
    assert_int_equal(lines.count, 1);

    lines = (struct lines){.stop_at = 3};
    assert_int_equal(ask(f, TIDE_TEXT("count 100"), &lines, NULL), TIDE_SUPERSEDED);
    assert_int_equal(lines.count, 3);
    assert_int_equal(ask(f, TIDE_TEXT("two\nlines"), &lines, NULL), TIDE_INVALID);
    tide_socket_free(server);
    assert_int_equal(access(f->path, F_OK), -1);
    assert_int_equal(ask(f, TIDE_TEXT("x"), &lines, NULL), TIDE_NOT_FOUND);
}

CASE(lines_have_a_ceiling)
{
    tide_socket *server = serve(f);
    const size_t bytes = TIDE_SOCKET_LINE_BYTES_MAX;
    char *big = malloc(bytes + (64 << 10));
    assert_non_null(big);
    memset(big, 'x', bytes + (64 << 10));
    struct lines lines = {0};
    OK(ask(f, (tide_text){big, bytes - 1}, &lines, NULL));
    assert_int_equal(lines.bytes, bytes - 1);
    assert_int_equal(ask(f, (tide_text){big, bytes}, &lines, NULL), TIDE_INVALID);
    lines = (struct lines){0};
    OK(ask(f, TIDE_TEXT("much"), &lines, NULL));
    assert_int_equal(lines.bytes, 5 << 20); /* an answer may be longer than a request */

    /* A client that breaks the rule gets an error and is disconnected. */
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/control", f->dir);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    size_t sent = 0;
    while (sent < bytes + (64 << 10)) {
        ssize_t now = send(fd, big + sent, bytes + (64 << 10) - sent, MSG_NOSIGNAL);
        if (now < 0)
            break;
        sent += (size_t)now;
    }
    char answer[200] = "";
    ssize_t got = recv(fd, answer, sizeof answer - 1, MSG_WAITALL);
    if (got > 0) /* a reset may overtake it */
        assert_non_null(strstr(answer, "{\"end\":\"full\""));
    close(fd);
    free(big);
    tide_socket_free(server);
}

CASE(only_one_server_and_stale_files_are_replaced)
{
    tide_socket *first = serve(f);
    tide_socket *second = NULL;
    assert_int_equal(
        tide_socket_serve(f->world, tide_mem_heap(), f->path, handle, f, &second, NULL), TIDE_BUSY);
    struct lines lines = {0};
    OK(ask(f, TIDE_TEXT("hello"), &lines, NULL));
    tide_socket_free(first);

    /* A socket file whose server died without cleaning up. */
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/control", f->dir);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    assert_int_equal(access(f->path, F_OK), 0);
    assert_int_equal(ask(f, TIDE_TEXT("hello"), &lines, NULL), TIDE_NOT_FOUND);
    second = serve(f);
    OK(ask(f, TIDE_TEXT("hello"), &lines, NULL));
    tide_socket_free(second);

    /* A file of that name that is no socket is not replaced. */
    fd = open(f->path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    assert_int_equal(
        tide_socket_serve(f->world, tide_mem_heap(), f->path, handle, f, &second, NULL),
        TIDE_EXISTS);
}

CASE(a_long_path_works_too)
{
    char name[100];
    memset(name, 'd', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    char dir[PATH_MAX];
    (void)snprintf(dir, sizeof dir, "%s/%s/%s", f->dir, name, name);
    OK(tide_dir_make(f->world, dir, NULL));
    struct fixture deep = *f;
    (void)snprintf(deep.path, sizeof deep.path, "%.300s/control", dir);
    tide_socket *server = serve(&deep);
    struct lines lines = {0};
    OK(ask(&deep, TIDE_TEXT("hello"), &lines, NULL));
    assert_string_equal(lines.last, "hello");
    tide_socket_free(server);
    assert_int_equal(rmdir(dir), 0);
    (void)snprintf(dir, sizeof dir, "%s/%s", f->dir, name);
    assert_int_equal(rmdir(dir), 0);
}

struct asker {
    struct fixture *f;
    tide_text request;
    tide_cancel cancel;
    struct lines lines;
    tide_status status;
};

static void asker_run(void *arg)
{
    struct asker *asker = arg;
    asker->status =
        tide_socket_ask(asker->f->world, tide_mem_heap(), asker->f->path, asker->request, 0,
                        &asker->cancel, take_line, &asker->lines, NULL);
}

CASE(many_clients_are_served_side_by_side)
{
    tide_socket *server = serve(f);
    enum { ASKERS = 8, ROUNDS = 20 };
    for (int round = 0; round < ROUNDS; round++) { /* more than there are slots */
        struct asker askers[ASKERS];
        tide_thread *threads[ASKERS];
        for (int i = 0; i < ASKERS; i++) {
            askers[i] = (struct asker){.f = f, .request = TIDE_TEXT("count 100")};
            OK(tide_world_thread(f->world, "asker", asker_run, &askers[i], &threads[i], NULL));
        }
        for (int i = 0; i < ASKERS; i++) {
            tide_world_join(f->world, threads[i]);
            assert_int_equal(askers[i].status, TIDE_OK);
            assert_int_equal(askers[i].lines.count, 100);
        }
    }
    tide_socket_free(server);
}

CASE(too_many_connections_are_told_so)
{
    tide_socket *server = serve(f);
    int fds[TIDE_SOCKET_PEERS_MAX];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/control", f->dir);
    for (int i = 0; i < TIDE_SOCKET_PEERS_MAX; i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&address, sizeof address), 0);
    }
    struct lines lines = {0};
    tide_error err = {0};
    assert_int_equal(ask(f, TIDE_TEXT("hello"), &lines, &err), TIDE_FULL);
    for (int i = 0; i < TIDE_SOCKET_PEERS_MAX; i++)
        close(fds[i]);
    /* The slots come back; the server learns of the closing in its own time. */
    tide_status rc = TIDE_FULL;
    while (rc == TIDE_FULL)
        rc = ask(f, TIDE_TEXT("hello"), &lines, NULL);
    assert_int_equal(rc, TIDE_OK);
    tide_socket_free(server);
}

/* Asks and does not read; the handler has the request. */
static int asked(struct fixture *f, tide_text request)
{
    f->entered = (tide_cancel){0};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/control", f->dir);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(write(fd, request.data, request.bytes), request.bytes);
    assert_int_equal(write(fd, "\n", 1), 1);
    assert_int_equal(tide_world_sleep_until(f->world, TIDE_NEVER, &f->entered), TIDE_CANCELED);
    return fd;
}

CASE(stopping_waits_for_no_client)
{
    static const tide_text requests[] = {{"wait", 4}, {"flood", 5}};
    for (int i = 0; i < 2; i++) {
        tide_socket *server = serve(f);
        int fd = asked(f, requests[i]);
        tide_socket_free(server); /* would hang if it waited for this client */
        close(fd);
    }
}

/* A request that makes its server stop, such as the halt of the only account, gets its answer. */
CASE(a_request_that_is_done_while_the_server_stops_is_answered)
{
    char answer[200] = "";
    size_t bytes = 0;
    ssize_t got = 0;
    tide_socket *server = serve(f);
    int fd = asked(f, TIDE_TEXT("late"));
    tide_socket_free(server);
    while (bytes < sizeof answer - 1 &&
           (got = read(fd, answer + bytes, sizeof answer - 1 - bytes)) > 0)
        bytes += (size_t)got;
    assert_ptr_equal(strstr(answer, "done\n{\"end\":\"ok\""), answer);
    close(fd);
}

CASE(a_client_can_be_canceled_and_the_handler_learns_of_it)
{
    tide_socket *server = serve(f);
    struct asker asker = {.f = f, .request = TIDE_TEXT("wait")};
    tide_thread *thread = NULL;
    OK(tide_world_thread(f->world, "asker", asker_run, &asker, &thread, NULL));
    assert_int_equal(tide_world_sleep_until(f->world, TIDE_NEVER, &f->entered), TIDE_CANCELED);
    tide_world_cancel(f->world, &asker.cancel, TIDE_CANCEL_USER);
    tide_world_join(f->world, thread);
    assert_int_equal(asker.status, TIDE_CANCELED);
    tide_socket_free(server); /* would hang if the handler had not noticed */
}

/* A server that dies in the middle of an answer must not look like one that
 * has said all. */
CASE(a_server_that_dies_is_an_unknown_outcome)
{
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/control", f->dir);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    struct asker asker = {.f = f, .request = TIDE_TEXT("x")};
    tide_thread *thread = NULL;
    OK(tide_world_thread(f->world, "asker", asker_run, &asker, &thread, NULL));
    int fd = accept(listener, NULL, NULL);
    char byte = 0;
    while (byte != '\n')
        assert_int_equal(read(fd, &byte, 1), 1);
    assert_int_equal(write(fd, "one\ntw", 6), 6);
    close(fd);
    tide_world_join(f->world, thread);
    assert_int_equal(asker.status, TIDE_UNKNOWN);
    assert_int_equal(asker.lines.count, 1);
    close(listener);
}

/* The kernel takes connections for a process that is stopped.  The answer is waited for without a
 * limit here, so a command that did wait would hang. */
CASE(a_stopped_server_is_named_without_waiting)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/control", f->dir);
    const pid_t server = fork();
    assert_true(server >= 0);
    if (server == 0) {
        const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
        if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
            listen(listener, 1) != 0)
            _exit(1);
        (void)raise(SIGSTOP);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(server, &status, WUNTRACED), server);
    assert_true(WIFSTOPPED(status));
    tide_error err = {0};
    const tide_status rc = tide_socket_ask(f->world, tide_mem_heap(), f->path, TIDE_TEXT("hello"),
                                           0, NULL, NULL, NULL, &err);
    (void)kill(server, SIGKILL);
    assert_int_equal(waitpid(server, &status, 0), server);
    assert_int_equal(rc, TIDE_BUSY);
    const char *named = textf("process %d ", (int)server);
    assert_non_null(strstr(err.text, named));
    assert_non_null(strstr(err.text, "stopped"));
}

CASE(a_server_survives_every_failed_allocation)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        tide_socket *server = NULL;
        tide_status rc = tide_socket_serve(f->world, &mem.base, f->path, handle, f, &server, NULL);
        if (rc == TIDE_OK) {
            struct lines lines = {0};
            rc = ask(f, TIDE_TEXT("hello"), &lines, NULL);
            tide_socket_free(server);
        }
        assert_swept(mem, rc);
    }
}
