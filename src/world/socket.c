#include "world/socket.h"
#include "base/check.h"
#include "base/limits.h"
#include "world/process.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct peer {
    tide_socket *server;
    tide_thread *thread; /* NULL: the slot is free */
    int fd;
    int ended; /* atomic: the thread can be joined */
};

struct tide_socket_reply {
    tide_socket *server;
    int fd;
    tide_status failed; /* the first failure stays */
    bool cut;           /* a line was sent in part: nothing may follow it */
    bool late;          /* a line was sent while the server stops: the last one */
};

/* Only the last line of an answer begins like this. */
static const char end_mark[] = "{\"end\":";

static bool is_end(tide_text line)
{
    return line.bytes >= sizeof end_mark - 1 &&
           memcmp(line.data, end_mark, sizeof end_mark - 1) == 0;
}

struct tide_socket {
    tide_world *world;
    tide_mem *mem;
    tide_lock *mem_lock; /* the connections' buffers come from one allocator */
    tide_socket_handle *handle;
    void *handle_arg;
    tide_thread *thread;
    int dir_fd;
    int listener;
    int stop_fd;  /* readable once the server stops */
    int stopping; /* atomic */
    dev_t device; /* of our socket file, so that no other is removed */
    ino_t inode;
    char name[NAME_MAX + 1];
    struct peer peers[TIDE_SOCKET_PEERS_MAX];
};

/* ---- addresses ----------------------------------------------------------- */

/* Splits a path and opens its directory.  The address then holds only the name inside it, so the
 * length of the directory's path does not matter. */
static tide_status path_open(const char *path, int *dir_fd_out, char name[NAME_MAX + 1],
                             tide_error *err)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *last = slash == NULL ? path : slash + 1;
    const size_t dir_bytes = slash == NULL ? 0 : (size_t)(slash - path);
    if (last[0] == '\0' || strlen(last) > NAME_MAX || dir_bytes >= sizeof dir)
        return tide_error_set(err, TIDE_INVALID, "not a path for a socket: %.100s", path);
    memcpy(dir, path, dir_bytes);
    dir[dir_bytes] = '\0';
    if (dir_bytes == 0)
        (void)snprintf(dir, sizeof dir, "%s", slash == NULL ? "." : "/");
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return tide_error_os(err, errno, "open directory %s", dir);
    (void)snprintf(name, NAME_MAX + 1, "%s", last);
    *dir_fd_out = fd;
    return TIDE_OK;
}

static tide_status address_of(int dir_fd, const char *name, struct sockaddr_un *address_out,
                              tide_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int bytes =
        snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", dir_fd, name);
    if (bytes < 0 || (size_t)bytes >= sizeof address.sun_path)
        return tide_error_set(err, TIDE_INVALID, "name of the socket too long: %.100s", name);
    *address_out = address;
    return TIDE_OK;
}

static int connect_to(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int failed = 0;
    do
        failed = connect(fd, (const struct sockaddr *)address, sizeof *address);
    while (failed < 0 && errno == EINTR);
    if (failed < 0) {
        const int os_error = errno;
        (void)close(fd);
        errno = os_error;
        return -1;
    }
    return fd;
}

static bool peer_is_ours(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

/* The process at the other end if it is stopped: it accepts connections and never answers.  0: it is
 * not stopped, or that is unknown. */
static pid_t peer_stopped(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
        return 0;
    return tide_process_is_stopped(peer.pid) ? peer.pid : 0;
}

/* ---- lines --------------------------------------------------------------- */

/* Waits until `fd` is ready for `events`.  TIDE_STOPPED when stop_fd (or -1: none) becomes
 * readable, TIDE_TIMEOUT, TIDE_OK. */
static tide_status wait_ready(int fd, short events, int stop_fd, int timeout_ms)
{
    struct pollfd fds[2] = {{.fd = fd, .events = events}, {.fd = stop_fd, .events = POLLIN}};
    int ready = 0;
    do
        ready = poll(fds, stop_fd < 0 ? 1 : 2, timeout_ms);
    while (ready < 0 && errno == EINTR);
    if (ready < 0)
        return TIDE_IO;
    if (stop_fd >= 0 && fds[1].revents != 0)
        return TIDE_STOPPED;
    return ready == 0 ? TIDE_TIMEOUT : TIDE_OK;
}

static tide_status send_all(int fd, const char *bytes, size_t count, int stop_fd, int timeout_ms)
{
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            bytes += sent;
            count -= (size_t)sent;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            return TIDE_CANCELED; /* the peer has disconnected */
        TIDE_TRY(wait_ready(fd, POLLOUT, stop_fd, timeout_ms));
    }
    return TIDE_OK;
}

/* Whether a line may be sent: within the limit, and without a newline inside. */
static bool is_line(tide_text line, size_t bytes_max)
{
    return line.bytes > 0 && line.bytes < bytes_max && memchr(line.data, '\n', line.bytes) == NULL;
}

static tide_status send_line(int fd, tide_text line, int stop_fd, int timeout_ms)
{
    TIDE_TRY(send_all(fd, line.data, line.bytes, stop_fd, timeout_ms));
    return send_all(fd, "\n", 1, stop_fd, timeout_ms);
}

/* One line and the start of the next. */
enum {
    PART_BYTES = 16 << 10,
    REQUEST_BYTES_MAX = TIDE_SOCKET_LINE_BYTES_MAX + PART_BYTES,
    ANSWER_BYTES_MAX = TIDE_SOCKET_ANSWER_BYTES_MAX + PART_BYTES,
};

/* Reads more of a stream of lines into `buf`.  TIDE_CANCELED at its end. */
static tide_status receive_more(int fd, tide_buf *buf)
{
    char part[PART_BYTES];
    ssize_t got = recv(fd, part, sizeof part, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
        return TIDE_OK;
    if (got <= 0)
        return TIDE_CANCELED;
    return tide_buf_add(buf, part, (size_t)got);
}

/* Finds the first line in `buf` that ends at or after *scanned. */
static bool line_find(const tide_buf *buf, size_t *scanned, tide_text *line_out)
{
    const char *newline =
        buf->bytes == *scanned ? NULL : memchr(buf->data + *scanned, '\n', buf->bytes - *scanned);
    *scanned = buf->bytes;
    if (newline == NULL)
        return false;
    *line_out = (tide_text){buf->data, (size_t)(newline - buf->data)};
    return true;
}

/* Removes a line that line_find() returned. */
static void line_drop(tide_buf *buf, tide_text line, size_t *scanned)
{
    const size_t gone = line.bytes + 1;
    memmove(buf->data, buf->data + gone, buf->bytes - gone);
    buf->bytes -= gone;
    *scanned = 0;
}

/* ---- one connection ------------------------------------------------------ */

/* While the server stops it sends only what does not block. */
static tide_status say(const tide_socket *server, int fd, tide_text line, bool stopping)
{
    return send_line(fd, line, stopping ? -1 : server->stop_fd,
                     stopping ? 0 : TIDE_SOCKET_SEND_TIMEOUT_MS);
}

/* One line is sent even while the server stops: the client needs the result of its request. */
tide_status tide_socket_say(tide_socket_reply *reply, tide_text line)
{
    const bool stopping = __atomic_load_n(&reply->server->stopping, __ATOMIC_SEQ_CST);
    if (reply->failed == TIDE_OK && reply->late)
        reply->failed = TIDE_STOPPED;
    if (reply->failed != TIDE_OK)
        return reply->failed;
    if (!is_line(line, TIDE_SOCKET_ANSWER_BYTES_MAX) || is_end(line))
        return TIDE_INVALID; /* nothing was sent, so the answer is still whole */
    reply->late = stopping;
    reply->failed = say(reply->server, reply->fd, line, stopping);
    reply->cut = reply->failed != TIDE_OK;
    return reply->failed;
}

bool tide_socket_gone(tide_socket_reply *reply)
{
    if (reply->failed != TIDE_OK || __atomic_load_n(&reply->server->stopping, __ATOMIC_SEQ_CST))
        return true;
    struct pollfd fd = {.fd = reply->fd, .events = POLLRDHUP};
    return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* Sends the last line of an answer, also while the server stops. */
static void say_end(tide_socket *server, int fd, tide_status status, const char *text)
{
    json_t *end = json_pack("{s:s, s:s}", "end", tide_status_name(status), "text", text);
    if (end == NULL) /* the text is not UTF-8; send the status alone */
        end = json_pack("{s:s}", "end", tide_status_name(status));
    char line[1024];
    size_t bytes = end == NULL ? 0 : json_dumpb(end, line, sizeof line, JSON_COMPACT);
    if (bytes == 0 || bytes >= sizeof line)
        bytes = (size_t)snprintf(line, sizeof line, "{\"end\":\"%s\"}", tide_status_name(status));
    json_decref(end);
    const bool stopping = __atomic_load_n(&server->stopping, __ATOMIC_SEQ_CST);
    (void)say(server, fd, (tide_text){line, bytes}, stopping);
}

static void request_serve(tide_socket *server, int fd, tide_text line)
{
    tide_socket_reply reply = {.server = server, .fd = fd};
    tide_error err = {0};
    tide_status rc = server->handle(server->handle_arg, line, &reply, &err);
    if (!reply.cut)
        say_end(server, fd, rc, rc == TIDE_OK ? "" : err.text);
}

/* tide_mem is not thread-safe; this one locks. */
struct shared_mem {
    tide_mem base;
    tide_socket *server;
};

static void *shared_resize(tide_mem *mem, void *old, size_t old_bytes, size_t new_bytes)
{
    tide_socket *server = ((struct shared_mem *)mem)->server;
    tide_lock_take(server->world, server->mem_lock);
    void *pointer = server->mem->resize(server->mem, old, old_bytes, new_bytes);
    tide_lock_drop(server->world, server->mem_lock);
    return pointer;
}

static void peer_run(void *arg)
{
    struct peer *peer = arg;
    tide_socket *server = peer->server;
    struct shared_mem mem = {{shared_resize}, server};
    tide_buf buf;
    tide_buf_init(&buf, &mem.base, REQUEST_BYTES_MAX);
    size_t scanned = 0;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK) {
        tide_text line;
        if (line_find(&buf, &scanned, &line)) {
            request_serve(server, peer->fd, line);
            line_drop(&buf, line, &scanned);
            if (__atomic_load_n(&server->stopping, __ATOMIC_SEQ_CST))
                rc = TIDE_STOPPED;
            continue;
        }
        rc = wait_ready(peer->fd, POLLIN, server->stop_fd, -1);
        if (rc == TIDE_OK)
            rc = receive_more(peer->fd, &buf);
        if (rc == TIDE_FULL || rc == TIDE_NO_MEMORY)
            say_end(server, peer->fd, rc, "the request is too long");
    }
    tide_buf_done(&buf);
    (void)shutdown(peer->fd, SHUT_RDWR); /* closed when the slot is freed */
    __atomic_store_n(&peer->ended, 1, __ATOMIC_SEQ_CST);
}

/* ---- the server ---------------------------------------------------------- */

static void peer_join(struct peer *peer)
{
    tide_world_join(peer->server->world, peer->thread);
    (void)close(peer->fd);
    peer->thread = NULL;
}

/* A free slot; joins a finished connection if needed. */
static struct peer *peer_slot(tide_socket *self)
{
    struct peer *found = NULL;
    for (size_t i = 0; i < TIDE_SOCKET_PEERS_MAX; i++) {
        struct peer *peer = &self->peers[i];
        if (peer->thread != NULL && __atomic_load_n(&peer->ended, __ATOMIC_SEQ_CST))
            peer_join(peer);
        if (peer->thread == NULL && found == NULL)
            found = peer;
    }
    return found;
}

static void connection_take(tide_socket *self, int fd)
{
    if (!peer_is_ours(fd)) { /* SOCK1 */
        (void)close(fd);
        return;
    }
    struct peer *peer = peer_slot(self);
    tide_status rc = peer == NULL ? TIDE_FULL : TIDE_OK;
    if (rc == TIDE_OK) {
        peer->server = self;
        peer->fd = fd;
        peer->ended = 0;
        rc = tide_world_thread(self->world, "tide-control", peer_run, peer, &peer->thread, NULL);
    }
    if (rc != TIDE_OK) {
        say_end(self, fd, rc, "too many connections to the control socket");
        (void)close(fd);
    }
}

static void accept_run(void *arg)
{
    tide_socket *self = arg;
    while (wait_ready(self->listener, POLLIN, self->stop_fd, -1) == TIDE_OK) {
        int fd = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            connection_take(self, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            /* The connection stays in the queue, and poll() would return at once. */
            if (wait_ready(self->stop_fd, POLLIN, -1, 100) == TIDE_OK)
                return;
        }
    }
}

/* Binds under the directory's lock (SOCK2): between bind and listen the socket refuses connections
 * and would look abandoned to another server that starts. */
static tide_status listen_at(tide_socket *self, const struct sockaddr_un *address, tide_error *err)
{
    struct stat info;
    if (fstatat(self->dir_fd, self->name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISSOCK(info.st_mode))
            return tide_error_set(err, TIDE_EXISTS, "%s is not a socket", self->name);
        int fd = connect_to(address);
        if (fd >= 0) {
            (void)close(fd);
            return tide_error_set(err, TIDE_BUSY, "another process listens on %s", self->name);
        }
        if (errno != ECONNREFUSED && errno != ENOENT)
            return tide_error_os(err, errno, "connect to %s", self->name);
        TIDE_SEEN("socket: replaced a stale one");
        if (unlinkat(self->dir_fd, self->name, 0) < 0 && errno != ENOENT)
            return tide_error_os(err, errno, "remove stale %s", self->name);
    }
    if (bind(self->listener, (const struct sockaddr *)address, sizeof *address) < 0)
        return tide_error_os(err, errno, "bind %s", self->name);
    if (fchmodat(self->dir_fd, self->name, 0600, 0) < 0 || listen(self->listener, 16) < 0 ||
        fstatat(self->dir_fd, self->name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return tide_error_os(err, errno, "listen on %s", self->name);
    self->device = info.st_dev;
    self->inode = info.st_ino;
    return TIDE_OK;
}

static tide_status server_open(tide_socket *self, const char *path, tide_error *err)
{
    TIDE_TRY(path_open(path, &self->dir_fd, self->name, err));
    struct sockaddr_un address;
    TIDE_TRY(address_of(self->dir_fd, self->name, &address, err));
    if (tide_lock_new(self->world, &self->mem_lock) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the control socket");
    self->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (self->stop_fd < 0 || self->listener < 0)
        return tide_error_os(err, errno, "open a socket");
    if (flock(self->dir_fd, LOCK_EX) < 0)
        return tide_error_os(err, errno, "lock the directory of %s", self->name);
    tide_status rc = listen_at(self, &address, err);
    (void)flock(self->dir_fd, LOCK_UN);
    if (rc != TIDE_OK)
        return rc;
    return tide_world_thread(self->world, "tide-control", accept_run, self, &self->thread, err);
}

tide_status tide_socket_serve(tide_world *world, tide_mem *mem, const char *path,
                              tide_socket_handle *handle, void *handle_arg,
                              tide_socket **socket_out, tide_error *err)
{
    TIDE_ASSERT(handle != NULL);
    tide_socket *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the control socket");
    self->world = world;
    self->mem = mem;
    self->handle = handle;
    self->handle_arg = handle_arg;
    self->dir_fd = -1;
    self->listener = -1;
    self->stop_fd = -1;
    tide_status rc = server_open(self, path, err);
    if (rc != TIDE_OK) {
        tide_socket_free(self);
        return rc;
    }
    *socket_out = self;
    return TIDE_OK;
}

static void socket_file_remove(tide_socket *self)
{
    /* The same lock as in listen_at(), so that the file we check is the file we remove. */
    struct stat info;
    if (self->inode == 0 || flock(self->dir_fd, LOCK_EX) < 0)
        return;
    if (fstatat(self->dir_fd, self->name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        info.st_ino == self->inode && info.st_dev == self->device)
        (void)unlinkat(self->dir_fd, self->name, 0);
    (void)flock(self->dir_fd, LOCK_UN);
}

void tide_socket_free(tide_socket *self)
{
    if (self == NULL)
        return;
    __atomic_store_n(&self->stopping, 1, __ATOMIC_SEQ_CST);
    if (self->stop_fd >= 0)
        TIDE_ASSERT(eventfd_write(self->stop_fd, 1) == 0); /* never read: wakes all threads */
    socket_file_remove(self);
    tide_world_join(self->world, self->thread);
    for (size_t i = 0; i < TIDE_SOCKET_PEERS_MAX; i++)
        if (self->peers[i].thread != NULL)
            peer_join(&self->peers[i]);
    if (self->listener >= 0)
        (void)close(self->listener);
    if (self->stop_fd >= 0)
        (void)close(self->stop_fd);
    if (self->dir_fd >= 0)
        (void)close(self->dir_fd);
    tide_lock_free(self->world, self->mem_lock);
    tide_mem_free(self->mem, self, sizeof *self);
}

/* ---- the client ---------------------------------------------------------- */

/* The status in the last line, or TIDE_AGAIN if this is not the last line. */
static tide_status end_of(tide_text line, tide_error *err)
{
    if (!is_end(line))
        return TIDE_AGAIN;
    json_auto_t *end = json_loadb(line.data, line.bytes, 0, NULL);
    const char *name = json_string_value(json_object_get(end, "end"));
    const char *text = json_string_value(json_object_get(end, "text"));
    tide_status rc = name == NULL ? TIDE_CORRUPT : tide_status_from_name(name);
    if (rc != TIDE_OK)
        (void)tide_error_set(err, rc, "%s", text == NULL || text[0] == '\0' ? "failed" : text);
    return rc;
}

/* Waits for more of the answer and checks the token in between. */
static tide_status answer_wait(tide_world *world, int fd, uint32_t timeout_ms,
                               const tide_cancel *cancel, tide_error *err)
{
    enum { LOOK_MS = 50 };
    const uint64_t deadline_ms =
        timeout_ms == 0 ? TIDE_NEVER : tide_world_now_ms(world) + timeout_ms;
    for (;;) {
        if (cancel != NULL && tide_canceled(cancel) != TIDE_CANCEL_NONE)
            return tide_error_set(err, TIDE_CANCELED, "canceled");
        const uint64_t now_ms = tide_world_now_ms(world);
        if (now_ms >= deadline_ms)
            return tide_error_set(err, TIDE_TIMEOUT, "the engine does not answer");
        uint64_t wait_ms = deadline_ms - now_ms;
        if (cancel != NULL && wait_ms > LOOK_MS)
            wait_ms = LOOK_MS;
        tide_status rc = wait_ready(fd, POLLIN, -1, wait_ms > INT_MAX ? -1 : (int)wait_ms);
        if (rc != TIDE_TIMEOUT)
            return rc;
    }
}

static tide_status answer_read(tide_world *world, tide_buf *buf, int fd, uint32_t timeout_ms,
                               const tide_cancel *cancel, tide_socket_line *line_to, void *line_arg,
                               tide_error *err)
{
    size_t scanned = 0;
    for (;;) {
        tide_text line;
        if (!line_find(buf, &scanned, &line)) {
            TIDE_TRY(answer_wait(world, fd, timeout_ms, cancel, err));
            tide_status rc = receive_more(fd, buf);
            if (rc == TIDE_CANCELED)
                return tide_error_set(
                    err, TIDE_UNKNOWN,
                    "the engine closed the connection before the end of its answer");
            if (rc != TIDE_OK)
                return tide_error_set(err, rc, "a line of the engine's answer is too long");
            continue;
        }
        tide_status rc = end_of(line, err);
        if (rc != TIDE_AGAIN)
            return rc;
        rc = line_to == NULL ? TIDE_OK : line_to(line_arg, line);
        if (rc != TIDE_OK)
            return tide_error_set(err, rc, "stopped reading the answer");
        line_drop(buf, line, &scanned);
    }
}

tide_status tide_socket_ask(tide_world *world, tide_mem *mem, const char *path, tide_text request,
                            uint32_t timeout_ms, const tide_cancel *cancel, tide_socket_line *line,
                            void *line_arg, tide_error *err)
{
    if (!is_line(request, TIDE_SOCKET_LINE_BYTES_MAX))
        return tide_error_set(err, TIDE_INVALID,
                              "a request must be one line within the size limit");
    int dir_fd = -1;
    char name[NAME_MAX + 1];
    TIDE_TRY(path_open(path, &dir_fd, name, err));
    struct sockaddr_un address;
    tide_status rc = address_of(dir_fd, name, &address, err);
    int fd = rc == TIDE_OK ? connect_to(&address) : -1;
    const int os_error = errno;
    (void)close(dir_fd);
    if (rc != TIDE_OK)
        return rc;
    if (fd < 0 && (os_error == ECONNREFUSED || os_error == ENOENT))
        return tide_error_set(err, TIDE_NOT_FOUND, "no engine listens on %s", path);
    if (fd < 0)
        return tide_error_os(err, os_error, "connect to %s", path);

    tide_auto_buf buf = tide_buf_in(mem, ANSWER_BYTES_MAX);
    if (!peer_is_ours(fd)) /* SOCK1 on the client's side: the server must run as the same user */
        rc = tide_error_set(err, TIDE_INVALID, "%s belongs to another user", path);
    const pid_t stopped = rc == TIDE_OK ? peer_stopped(fd) : 0;
    if (stopped != 0)
        rc = tide_error_set(
            err, TIDE_BUSY,
            "process %d holds this directory and is stopped; `kill -CONT %d` resumes it",
            (int)stopped, (int)stopped);
    if (rc == TIDE_OK) {
        rc = send_line(fd, request, -1, TIDE_SOCKET_SEND_TIMEOUT_MS);
        /* A server that refuses us answers before it has read the request, so the answer is read
         * even if sending failed. */
        if (rc == TIDE_CANCELED)
            rc = TIDE_OK;
        else if (rc != TIDE_OK)
            (void)tide_error_set(err, rc, "cannot send the request to %s", path);
    }
    if (rc == TIDE_OK)
        rc = answer_read(world, &buf, fd, timeout_ms, cancel, line, line_arg, err);
    (void)close(fd);
    return rc;
}
