/* listen.c - hints from the other processes (tide_tx_hint()).
 *
 * A thread waits here on a connection of its own, and reconnects when it is lost.  Hints sent
 * meanwhile are lost, so the next answer has `all` set.  Nothing depends on a hint: processes
 * poll too. */
#include "base/check.h"
#include "ledger/postgres/postgres.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    BACKOFF_FIRST_MS = 100,
    BACKOFF_MS_MAX = 5000,
    CONNECT_MS = 2000, /* the longest that a stop waits */
};

struct tide_listener {
    tide_mem *mem;
    tide_world *world;
    tide_pg *pg;
    int stop_fd;
    bool missed; /* reconnected: hints may have been lost */
    uint64_t connect_at_ms;
    uint32_t backoff_ms;
};

static tide_status listen_on(tide_listener *listener, tide_error *err)
{
    tide_status rc = tide_pg_exec(listener->pg, "LISTEN tidemark", err);
    if (rc != TIDE_OK)
        tide_pg_drop(listener->pg);
    return rc;
}

tide_status tide_listener_open(tide_world *world, const char *path, tide_mem *mem,
                               tide_listener **listener_out, tide_error *err)
{
    if (!tide_ledger_is_postgres(path))
        return tide_error_set(err, TIDE_INVALID, "a ledger in a file has no hints");
    tide_listener *listener = tide_mem_new(mem, sizeof *listener);
    if (listener == NULL)
        return tide_pgl_no_memory(err);
    listener->mem = mem;
    listener->world = world;
    listener->backoff_ms = BACKOFF_FIRST_MS;
    listener->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct tide_pg_options options = {
        .url = path, .application = "tidemark listener", .connect_ms = CONNECT_MS};
    tide_status rc = listener->stop_fd < 0 ? tide_error_os(err, errno, "make an event") : TIDE_OK;
    if (rc == TIDE_OK)
        rc = tide_pg_open(&options, mem, &listener->pg, err);
    if (rc == TIDE_OK && tide_pg_pooled(listener->pg))
        rc = tide_error_set(err, TIDE_INVALID, "%s: behind a pooler there are no hints",
                            tide_pg_name(listener->pg));
    if (rc == TIDE_OK)
        rc = listen_on(listener, err);
    if (rc != TIDE_OK) {
        tide_listener_close(listener);
        return rc;
    }
    *listener_out = listener;
    return TIDE_OK;
}

void tide_listener_close(tide_listener *listener)
{
    if (listener == NULL)
        return;
    tide_pg_close(listener->pg);
    if (listener->stop_fd >= 0)
        (void)close(listener->stop_fd);
    tide_mem_free(listener->mem, listener, sizeof *listener);
}

void tide_listener_stop(tide_listener *listener)
{
    uint64_t one = 1;
    ssize_t written = write(listener->stop_fd, &one, sizeof one);
    (void)written; /* fails only if the counter is full already, which wakes the thread too */
}

/* ---- reading hints ------------------------------------------------------------------ */

static void hint_work(struct tide_hints *hints, uint32_t account)
{
    if (account == 0) {
        hints->free_work = true;
        return;
    }
    for (size_t i = 0; i < hints->accounts_count; i++)
        if (hints->accounts[i] == account)
            return;
    if (hints->accounts_count == TIDE_HINTS_ACCOUNTS_MAX)
        hints->all = true;
    else
        hints->accounts[hints->accounts_count++] = account;
}

/* "c", "a", "w0,3,17", "cw5": see struct pg_hints.  Any program may send on the channel, and a
 * newer version may send more: a text that is not understood means "all". */
static void hint_read(const char *text, struct tide_hints *hints)
{
    if (*text == 'c') {
        hints->control = true;
        text++;
    }
    if (*text == '\0' && hints->control)
        return;
    bool understood = *text == 'w';
    while (understood && (*text == 'w' || *text == ',')) {
        size_t digits = strspn(text + 1, "0123456789");
        uint64_t account = 0;
        understood =
            tide_text_to_u64((tide_text){text + 1, digits}, &account) && account <= INT32_MAX;
        if (understood)
            hint_work(hints, (uint32_t)account);
        text += 1 + digits;
    }
    if (!understood || *text != '\0')
        hints->all = true;
}

/* Merges all hints that have arrived.  false: the connection is lost. */
static bool collect(tide_listener *listener, struct tide_hints *hints, bool *any_out)
{
    PGconn *conn = tide_pg_handle(listener->pg);
    if (conn == NULL || PQconsumeInput(conn) != 1 || PQstatus(conn) != CONNECTION_OK)
        return false;
    PGnotify *notify = NULL;
    while ((notify = PQnotifies(conn)) != NULL) {
        hint_read(notify->extra, hints);
        *any_out = true;
        PQfreemem(notify);
    }
    return true;
}

/* ---- waiting ------------------------------------------------------------------------ */

static void connect_again(tide_listener *listener)
{
    uint64_t now_ms = tide_world_now_ms(listener->world);
    if (now_ms < listener->connect_at_ms)
        return;
    listener->missed = true;
    if (tide_pg_ready(listener->pg, NULL) == TIDE_OK && listen_on(listener, NULL) == TIDE_OK) {
        TIDE_SEEN("ledger: hints after a lost connection");
        listener->backoff_ms = BACKOFF_FIRST_MS;
        return;
    }
    listener->connect_at_ms = tide_world_now_ms(listener->world) + listener->backoff_ms;
    listener->backoff_ms =
        listener->backoff_ms * 2 > BACKOFF_MS_MAX ? BACKOFF_MS_MAX : listener->backoff_ms * 2;
}

/* Sleeps until a hint arrives, the connection breaks, a stop is requested, or time is over. */
static bool sleep_until(tide_listener *listener, uint64_t until_ms)
{
    PGconn *conn = tide_pg_handle(listener->pg);
    uint64_t now_ms = tide_world_now_ms(listener->world);
    if (conn == NULL && listener->connect_at_ms < until_ms)
        until_ms = listener->connect_at_ms;
    uint64_t left_ms = until_ms > now_ms ? until_ms - now_ms : 0;
    struct pollfd fds[2] = {{.fd = listener->stop_fd, .events = POLLIN},
                            {.fd = conn == NULL ? -1 : PQsocket(conn), .events = POLLIN}};
    (void)poll(fds, 2, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
    return (fds[0].revents & POLLIN) != 0;
}

tide_status tide_listener_wait(tide_listener *listener, uint32_t wait_ms,
                               struct tide_hints *hints_out, tide_error *err)
{
    struct tide_hints hints = {.control = false};
    uint64_t until_ms = tide_world_now_ms(listener->world) + wait_ms;
    (void)err;
    for (;;) {
        bool any = false;
        if (!collect(listener, &hints, &any)) {
            tide_pg_drop(listener->pg);
            connect_again(listener);
        }
        bool connected = tide_pg_handle(listener->pg) != NULL;
        if (connected && listener->missed) {
            listener->missed = false;
            hints.all = true;
            any = true;
        }
        if (any) {
            *hints_out = hints;
            return TIDE_OK;
        }
        if (tide_world_dead(listener->world))
            return TIDE_STOPPED;
        if (tide_world_now_ms(listener->world) >= until_ms)
            return TIDE_TIMEOUT;
        if (sleep_until(listener, until_ms))
            return TIDE_STOPPED;
    }
}
