/* command.c - runs a program with posix_spawn() and serves its three pipes (command.h). */
#include "world/programs/command.h"

#include "base/check.h"
#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LOOK_MS = 50,
    CHUNK_BYTES = 16384,
    DRAIN_READS_MAX = 128, /* of a pipe whose program ended: more than a pipe holds, 1 MiB */
};
enum { INPUT, OUTPUT, ERRORS, PIPES };

struct run {
    const struct tide_command *command;
    tide_buf *kept[PIPES]; /* what a pipe brought */
    size_t left[PIPES];    /* bytes that may still be kept */
    int ours[PIPES];       /* -1: closed */
    int theirs[PIPES];
    size_t sent;
    pid_t pid; /* 0: none */
    int pid_fd;
    bool ended; /* not reaped: its group's id stays ours */
};

static void fd_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* ---- starting ---- */

static tide_status pipes_open(struct run *run, tide_error *err)
{
    for (int i = 0; i < PIPES; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
            return tide_error_os(err, errno, "make a pipe");
        run->ours[i] = ends[i == INPUT ? 1 : 0];
        const int end = ends[i == INPUT ? 0 : 1];
        /* Above the three: else one that is put in its place could overwrite another. */
        run->theirs[i] = fcntl(end, F_DUPFD_CLOEXEC, PIPES);
        const int failed = run->theirs[i] < 0 ? errno : 0;
        (void)close(end);
        if (failed != 0 || fcntl(run->ours[i], F_SETFL, O_NONBLOCK) < 0)
            return tide_error_os(err, failed != 0 ? failed : errno, "make a pipe");
    }
    return TIDE_OK;
}

/* The program's signals are as a shell would leave them; its files are three (CMD1). */
static int set_up(const struct run *run, posix_spawn_file_actions_t *files,
                  posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int rc = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                      POSIX_SPAWN_SETSIGDEF);
    rc = rc != 0 ? rc : posix_spawnattr_setpgroup(attributes, 0);
    rc = rc != 0 ? rc : posix_spawnattr_setsigmask(attributes, &none);
    rc = rc != 0 ? rc : posix_spawnattr_setsigdefault(attributes, &all);
    for (int i = 0; rc == 0 && i < PIPES; i++)
        rc = posix_spawn_file_actions_adddup2(files, run->theirs[i], i);
    rc = rc != 0 ? rc : posix_spawn_file_actions_addclosefrom_np(files, PIPES);
    const char *dir = run->command->dir != NULL ? run->command->dir : "/";
    return rc != 0 ? rc : posix_spawn_file_actions_addchdir_np(files, dir);
}

static tide_status program_start(struct run *run, tide_error *err)
{
    const struct tide_command *command = run->command;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    if (posix_spawn_file_actions_init(&files) != 0)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to start %s", command->arguments[0]);
    if (posix_spawnattr_init(&attributes) != 0) {
        (void)posix_spawn_file_actions_destroy(&files);
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to start %s", command->arguments[0]);
    }
    int rc = set_up(run, &files, &attributes);
    if (rc == 0) /* it does not write to them: the type is older than const */
        rc = posix_spawn(&run->pid, command->arguments[0], &files, &attributes,
                         (char *const *)(uintptr_t)command->arguments,
                         (char *const *)(uintptr_t)command->environment);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&files);
    for (int i = 0; i < PIPES; i++)
        fd_close(&run->theirs[i]);
    if (rc != 0) {
        run->pid = 0;
        return tide_error_os(err, rc, "start %s", command->arguments[0]);
    }
    run->pid_fd = pidfd_open(run->pid, 0);
    return run->pid_fd >= 0 ? TIDE_OK
                            : tide_error_os(err, errno, "watch %s", command->arguments[0]);
}

/* ---- its pipes ---- */

/* It may end without reading all of its input: that is no error (SIGPIPE is ignored in all of our
 * program). */
static void input_write(struct run *run)
{
    const tide_text input = run->command->input;
    while (run->sent < input.bytes) {
        const ssize_t count =
            write(run->ours[INPUT], input.data + run->sent, input.bytes - run->sent);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN)
            return;
        if (count < 0)
            break;
        run->sent += (size_t)count;
    }
    fd_close(&run->ours[INPUT]);
}

static tide_status pipe_read(struct run *run, int pipe, tide_error *err)
{
    char chunk[CHUNK_BYTES];
    const ssize_t count = read(run->ours[pipe], chunk, sizeof chunk);
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
        return TIDE_OK;
    if (count <= 0) {
        fd_close(&run->ours[pipe]);
        return TIDE_OK;
    }
    const size_t bytes = (size_t)count < run->left[pipe] ? (size_t)count : run->left[pipe];
    run->left[pipe] -= bytes;
    if (tide_buf_add(run->kept[pipe], chunk, bytes) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the output of %s",
                              run->command->arguments[0]);
    if (pipe == OUTPUT && bytes < (size_t)count)
        return tide_error_set(err, TIDE_FULL, "%s printed more than %zu bytes",
                              run->command->arguments[0], run->command->output_bytes_max);
    return TIDE_OK;
}

/* What it printed before its end is still in the pipes; a child of it that lives may hold them
 * open, so they are read until they are empty, not until they are closed.  Such a child may go on
 * printing, and they are never empty: then what a pipe can hold is enough (CMD4). */
static tide_status pipes_drain(struct run *run, tide_error *err)
{
    for (int i = OUTPUT; i < PIPES; i++) {
        struct pollfd one = {.fd = run->ours[i], .events = POLLIN};
        for (unsigned reads = 0;
             reads < DRAIN_READS_MAX && run->ours[i] >= 0 && poll(&one, 1, 0) > 0; reads++)
            TIDE_TRY(pipe_read(run, i, err));
    }
    return TIDE_OK;
}

static tide_status serve_once(struct run *run, int wait_ms, tide_error *err)
{
    struct pollfd fds[PIPES + 1] = {{run->ours[INPUT], POLLOUT, 0},
                                    {run->ours[OUTPUT], POLLIN, 0},
                                    {run->ours[ERRORS], POLLIN, 0},
                                    {run->pid_fd, POLLIN, 0}}; /* poll() skips -1 */
    if (poll(fds, PIPES + 1, wait_ms) < 0)
        return errno == EINTR ? TIDE_OK : tide_error_os(err, errno, "wait for a program");
    if (fds[INPUT].revents != 0)
        input_write(run);
    for (int i = OUTPUT; i < PIPES; i++)
        if (fds[i].revents != 0)
            TIDE_TRY(pipe_read(run, i, err));
    run->ended = fds[PIPES].revents != 0;
    return run->ended ? pipes_drain(run, err) : TIDE_OK;
}

static tide_status serve(struct run *run, tide_world *world, const tide_cancel *cancel,
                         tide_error *err)
{
    const char *name = run->command->arguments[0];
    const uint64_t start_ms = tide_world_now_ms(world);
    while (!run->ended) {
        const uint64_t spent_ms = tide_world_now_ms(world) - start_ms;
        if (tide_world_dead(world))
            return tide_error_set(err, TIDE_STOPPED, "stopped");
        if (cancel != NULL && tide_canceled(cancel) != TIDE_CANCEL_NONE)
            return tide_error_set(err, TIDE_CANCELED, "canceled");
        if (spent_ms >= run->command->wait_ms)
            return tide_error_set(err, TIDE_TIMEOUT, "%s did not end in %" PRIu64 " ms", name,
                                  run->command->wait_ms);
        const uint64_t left_ms = run->command->wait_ms - spent_ms;
        TIDE_TRY(serve_once(run, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS, err));
    }
    return TIDE_OK;
}

/* ---- ending ---- */

/* The group is killed before its leader is reaped: until then nobody else can get its id (CMD2). */
static void group_end(struct run *run, struct tide_command_end *end_out)
{
    int status = 0;
    if (run->pid <= 0)
        return;
    (void)kill(-run->pid, SIGKILL);
    while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
        ;
    end_out->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    end_out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

tide_status tide_command_run(tide_world *world, const struct tide_command *command,
                             const tide_cancel *cancel, tide_buf *output, tide_buf *errors,
                             struct tide_command_end *end_out, tide_error *err)
{
    TIDE_ASSERT(command->arguments[0] != NULL);
    TIDE_ASSERT(command->arguments[0][0] == '/');
    struct run run = {.command = command,
                      .kept = {NULL, output, errors},
                      .left = {0, command->output_bytes_max, command->errors_bytes_max},
                      .ours = {-1, -1, -1},
                      .theirs = {-1, -1, -1},
                      .pid_fd = -1};
    struct tide_command_end end = {-1, 0};
    tide_status rc = pipes_open(&run, err);
    if (rc == TIDE_OK)
        rc = program_start(&run, err);
    if (rc == TIDE_OK)
        rc = serve(&run, world, cancel, err);
    group_end(&run, &end);
    for (int i = 0; i < PIPES; i++) {
        fd_close(&run.ours[i]);
        fd_close(&run.theirs[i]);
    }
    fd_close(&run.pid_fd);
    if (rc == TIDE_OK)
        *end_out = end;
    return rc;
}
