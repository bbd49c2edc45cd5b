/* stdio.c - lines from standard input, lines to standard output. */
#include "cli/mcp/inside.h"

#include "base/check.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 16, WRITE_WAIT_MS = 1000 };

struct mcp_stdio {
    tide_world *world;
    tide_mem *mem;
    int in, out;
    tide_lock *lock; /* of writing: a line must not be mixed with another */
    bool gone;       /* atomic: nobody reads */
    tide_buf read;
    size_t taken;  /* bytes of `read` that were returned as lines */
    bool skipping; /* inside a line that is too long */
    bool ended;
};

tide_status mcp_stdio_open(struct cli *cli, struct mcp_stdio **stdio_out)
{
    struct mcp_stdio *stdio = tide_mem_new(cli->mem, sizeof *stdio);
    if (stdio == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    stdio->world = cli->world;
    stdio->mem = cli->mem;
    stdio->in = STDIN_FILENO;
    tide_buf_init(&stdio->read, cli->mem, TIDE_RPC_LINE_BYTES_MAX + READ_BYTES + 1);
    stdio->out = dup(STDOUT_FILENO);
    tide_status rc =
        stdio->out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0
            ? cli_fail(cli, TIDE_IO, "Start it with an open standard output and error.",
                       "cannot use standard output: %s", strerror(errno))
            : tide_lock_new(cli->world, &stdio->lock);
    if (rc != TIDE_OK) {
        mcp_stdio_close(stdio);
        return rc;
    }
    *stdio_out = stdio;
    return TIDE_OK;
}

void mcp_stdio_close(struct mcp_stdio *stdio)
{
    if (stdio == NULL)
        return;
    if (stdio->lock != NULL)
        tide_lock_free(stdio->world, stdio->lock);
    if (stdio->out >= 0)
        (void)close(stdio->out);
    tide_buf_done(&stdio->read);
    tide_mem_free(stdio->mem, stdio, sizeof *stdio);
}

/* ---- reading ---- */

/* Moves the rest to the front, once for all lines of a read. */
static void forget_taken(struct mcp_stdio *stdio)
{
    const size_t rest = stdio->read.bytes - stdio->taken;
    if (stdio->taken > 0 && rest > 0)
        memmove(stdio->read.data, stdio->read.data + stdio->taken, rest);
    stdio->read.bytes = rest;
    stdio->taken = 0;
    if (rest == 0)
        tide_buf_rest(&stdio->read);
}

/* Whether a whole line is there; also the last one, without an end. */
static bool line_take(struct mcp_stdio *stdio, tide_text *line_out, bool *long_out)
{
    const tide_text rest = {tide_buf_cstr(&stdio->read) + stdio->taken,
                            stdio->read.bytes - stdio->taken};
    const char *end = rest.bytes == 0 ? NULL : memchr(rest.data, '\n', rest.bytes);
    if (end == NULL && rest.bytes > TIDE_RPC_LINE_BYTES_MAX) {
        stdio->skipping = true; /* its bytes are not kept */
        stdio->taken = stdio->read.bytes;
        return false;
    }
    if (end == NULL && !(stdio->ended && (rest.bytes > 0 || stdio->skipping)))
        return false;
    *line_out = (tide_text){rest.data, end == NULL ? rest.bytes : (size_t)(end - rest.data)};
    *long_out = stdio->skipping || line_out->bytes > TIDE_RPC_LINE_BYTES_MAX;
    stdio->skipping = false;
    stdio->taken += line_out->bytes + (end != NULL);
    return true;
}

static int wait_ms(const struct mcp_stdio *stdio, uint64_t deadline_us)
{
    const uint64_t now_us = tide_world_now_us(stdio->world);
    if (deadline_us == UINT64_MAX)
        return -1;
    return deadline_us <= now_us ? 0 : (int)((deadline_us - now_us) / 1000 + 1);
}

/* The output is watched too: a client that dies may leave our input open in another process. */
static mcp_got wait_for_input(struct mcp_stdio *stdio, uint64_t deadline_us)
{
    struct pollfd fds[] = {{.fd = stdio->in, .events = POLLIN}, {.fd = stdio->out, .events = 0}};
    const int ready = poll(fds, 2, wait_ms(stdio, deadline_us));
    if (ready < 0)
        return errno == EINTR ? MCP_GOT_TIME : MCP_GOT_GONE;
    if ((fds[1].revents & (POLLERR | POLLNVAL)) != 0)
        return MCP_GOT_GONE;
    return fds[0].revents == 0 ? MCP_GOT_TIME : MCP_GOT_LINE;
}

static mcp_got fill(struct mcp_stdio *stdio)
{
    forget_taken(stdio);
    char *room = tide_buf_reserve(&stdio->read, READ_BYTES);
    if (room == NULL)
        return MCP_GOT_GONE; /* out of memory */
    const ssize_t bytes = read(stdio->in, room, READ_BYTES);
    room[bytes > 0 ? bytes : 0] = '\0';
    if (bytes < 0)
        return errno == EINTR || errno == EAGAIN ? MCP_GOT_TIME : MCP_GOT_GONE;
    stdio->read.bytes += (size_t)bytes;
    stdio->ended = bytes == 0;
    return MCP_GOT_LINE;
}

mcp_got mcp_stdio_next(struct mcp_stdio *stdio, uint64_t deadline_us, tide_text *line_out)
{
    bool is_long = false;
    for (;;) {
        if (line_take(stdio, line_out, &is_long))
            return is_long ? MCP_GOT_LONG : MCP_GOT_LINE;
        if (stdio->ended)
            return MCP_GOT_END;
        mcp_got got = wait_for_input(stdio, deadline_us);
        if (got == MCP_GOT_LINE)
            got = fill(stdio);
        if (got != MCP_GOT_LINE)
            return got;
    }
}

/* ---- writing ---- */

bool mcp_stdio_gone(struct mcp_stdio *stdio)
{
    struct pollfd fd = {.fd = stdio->out, .events = 0};
    if (poll(&fd, 1, 0) > 0 && (fd.revents & (POLLERR | POLLNVAL)) != 0)
        __atomic_store_n(&stdio->gone, true, __ATOMIC_RELEASE);
    return __atomic_load_n(&stdio->gone, __ATOMIC_ACQUIRE);
}

/* A client may make the pipe non-blocking, for both ends if it is a socket. */
static bool wait_for_room(const struct mcp_stdio *stdio)
{
    struct pollfd fd = {.fd = stdio->out, .events = POLLOUT};
    (void)poll(&fd, 1, WRITE_WAIT_MS);
    return (fd.revents & (POLLERR | POLLNVAL)) == 0;
}

void mcp_stdio_write(struct mcp_stdio *stdio, tide_text lines)
{
    /* Held over the write on purpose: the lines of two threads must not mix. */
    tide_lock_take(stdio->world, stdio->lock);
    bool gone = __atomic_load_n(&stdio->gone, __ATOMIC_ACQUIRE);
    while (lines.bytes > 0 && !gone) {
        const ssize_t bytes = write(stdio->out, lines.data, lines.bytes);
        if (bytes >= 0) {
            lines.data += bytes;
            lines.bytes -= (size_t)bytes;
        } else {
            gone = errno != EINTR && !((errno == EAGAIN) && wait_for_room(stdio));
        }
    }
    __atomic_store_n(&stdio->gone, gone, __ATOMIC_RELEASE);
    tide_lock_drop(stdio->world, stdio->lock);
}
