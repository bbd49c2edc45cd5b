/* calls.c - runs tools in a few threads, so that a slow one delays neither the others nor the
 * messages that cancel it. */
#include "cli/mcp/inside.h"

#include "base/check.h"
#include "cli/run/call.h"

enum { DRAIN_LOOK_US = 200000 };

typedef enum call_state { CALL_FREE, CALL_WAITING, CALL_RUNNING } call_state;

struct call {
    call_state state;
    uint64_t order; /* of arrival */
    json_t *id, *arguments;
    const struct tide_tool *tool;
    uint64_t deadline_us;
    bool expired;
    tide_cancel cancel;
};

struct mcp_calls {
    struct cli *host;
    struct mcp_stdio *stdio;
    tide_lock *lock;
    tide_cond *cond; /* a call arrived or ended, or `closing` */
    tide_thread *workers[MCP_WORKERS];
    struct call calls[MCP_CALLS_MAX];
    uint64_t arrived;
    bool closing;
};

/* ---- one call ---- */

/* Appends the answer to `reply`; it stays empty if the memory ran out for even an error. */
static void call_run(struct mcp_calls *calls, const struct call *call, tide_buf *reply)
{
    struct cli *cli = cli_call_open(calls->host, &call->cancel);
    tide_json result;
    if (cli == NULL) {
        (void)tide_rpc_error(call->id, TIDE_RPC_INTERNAL, "out of memory", reply);
        return;
    }
    tide_json_object(&result);
    struct tide_tool_call use = {
        .cli = cli, .arguments = call->arguments, .cancel = &call->cancel, .result = &result};
    tide_status rc = call->tool->run(&use);
    if (__atomic_load_n(&call->expired, __ATOMIC_ACQUIRE))
        rc = cli_fail(
            cli, TIDE_TIMEOUT, "Ask for less: a shorter time, fewer words, a lower limit.",
            "%s took more than %d seconds and was stopped", call->tool->name, MCP_CALL_MS / 1000);
    if (tide_mcp_answer(call->id, rc, &result, cli->err.text, cli->hint, reply) != TIDE_OK)
        (void)tide_rpc_error(call->id, TIDE_RPC_INTERNAL, "out of memory", reply);
    cli_call_close(cli);
}

/* ---- the threads ---- */

static struct call *next_call(struct mcp_calls *calls)
{
    struct call *next = NULL;
    for (size_t i = 0; i < MCP_CALLS_MAX; i++) {
        struct call *call = &calls->calls[i];
        if (call->state == CALL_WAITING && (next == NULL || call->order < next->order))
            next = call;
    }
    return next;
}

static void call_free(struct call *call)
{
    json_decref(call->id);
    json_decref(call->arguments);
    *call = (struct call){.state = CALL_FREE};
}

/* A call that was canceled gets no answer (MCC1); one that used up its time gets one. */
static bool is_silent(const struct call *call)
{
    return tide_canceled(&call->cancel) != TIDE_CANCEL_NONE && !call->expired;
}

/* Runs a call and answers it.  Its slot stays taken until the answer is written: only then may its
 * id be used again. */
static void call_serve(struct mcp_calls *calls, struct call *call, tide_buf *reply)
{
    tide_world *world = calls->host->world;
    call->state = CALL_RUNNING;
    bool silent = is_silent(call); /* canceled while it waited */
    tide_lock_drop(world, calls->lock);
    if (!silent)
        call_run(calls, call, reply);
    tide_lock_take(world, calls->lock);
    silent = is_silent(call);
    tide_lock_drop(world, calls->lock);
    if (!silent)
        mcp_stdio_write(calls->stdio, tide_buf_text(reply));
    tide_buf_clear(reply);
    tide_buf_rest(reply);
    tide_lock_take(world, calls->lock);
    call_free(call);
    tide_cond_wake_all(world, calls->cond);
}

static void work(void *arg)
{
    struct mcp_calls *calls = arg;
    tide_world *world = calls->host->world;
    tide_buf reply;
    tide_buf_init(&reply, calls->host->mem, TIDE_MCP_REPLY_BYTES_MAX);
    tide_lock_take(world, calls->lock);
    for (;;) {
        struct call *call = next_call(calls);
        if (call != NULL)
            call_serve(calls, call, &reply);
        else if (calls->closing)
            break;
        else
            (void)tide_cond_wait(world, calls->cond, calls->lock, UINT64_MAX);
    }
    tide_lock_drop(world, calls->lock);
    tide_buf_done(&reply);
}

/* ---- from the thread that reads ---- */

tide_status mcp_calls_open(struct cli *host, struct mcp_stdio *stdio, struct mcp_calls **calls_out)
{
    struct mcp_calls *calls = tide_mem_new(host->mem, sizeof *calls);
    if (calls == NULL)
        return cli_fail(host, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    calls->host = host;
    calls->stdio = stdio;
    tide_status rc = tide_lock_new(host->world, &calls->lock);
    if (rc == TIDE_OK)
        rc = tide_cond_new(host->world, &calls->cond);
    for (size_t i = 0; rc == TIDE_OK && i < MCP_WORKERS; i++)
        rc = tide_world_thread(host->world, "mcp", work, calls, &calls->workers[i], &host->err);
    if (rc != TIDE_OK) {
        mcp_calls_close(calls);
        return cli_hint(host, rc, "Free some memory.");
    }
    *calls_out = calls;
    return TIDE_OK;
}

static struct call *call_of(struct mcp_calls *calls, const json_t *id)
{
    for (size_t i = 0; i < MCP_CALLS_MAX; i++)
        if (calls->calls[i].state != CALL_FREE && json_equal(calls->calls[i].id, id))
            return &calls->calls[i];
    return NULL;
}

static tide_status call_add(struct mcp_calls *calls, struct tide_mcp_order *order)
{
    if (call_of(calls, order->id) != NULL)
        return TIDE_EXISTS;
    for (size_t i = 0; i < MCP_CALLS_MAX; i++) {
        struct call *call = &calls->calls[i];
        if (call->state != CALL_FREE)
            continue;
        *call = (struct call){.state = CALL_WAITING,
                              .order = calls->arrived++,
                              .id = order->id,
                              .arguments = order->arguments,
                              .tool = order->tool,
                              .deadline_us =
                                  tide_world_now_us(calls->host->world) + MCP_CALL_MS * 1000ull};
        order->id = order->arguments = NULL;
        return TIDE_OK;
    }
    return TIDE_FULL;
}

tide_status mcp_calls_add(struct mcp_calls *calls, struct tide_mcp_order *order)
{
    TIDE_ASSERT(order->what == TIDE_MCP_CALL);
    tide_world *world = calls->host->world;
    tide_lock_take(world, calls->lock);
    const tide_status rc = call_add(calls, order);
    if (rc == TIDE_OK)
        tide_cond_wake_all(world, calls->cond);
    tide_lock_drop(world, calls->lock);
    return rc;
}

void mcp_calls_cancel(struct mcp_calls *calls, const json_t *id)
{
    tide_world *world = calls->host->world;
    tide_lock_take(world, calls->lock);
    struct call *call = call_of(calls, id);
    if (call != NULL)
        tide_world_cancel(world, &call->cancel, TIDE_CANCEL_USER);
    tide_lock_drop(world, calls->lock);
}

uint64_t mcp_calls_deadline(struct mcp_calls *calls)
{
    uint64_t first_us = UINT64_MAX;
    tide_lock_take(calls->host->world, calls->lock);
    for (size_t i = 0; i < MCP_CALLS_MAX; i++) {
        const struct call *call = &calls->calls[i];
        if (call->state != CALL_FREE && tide_canceled(&call->cancel) == TIDE_CANCEL_NONE &&
            call->deadline_us < first_us)
            first_us = call->deadline_us;
    }
    tide_lock_drop(calls->host->world, calls->lock);
    return first_us;
}

void mcp_calls_expire(struct mcp_calls *calls)
{
    tide_world *world = calls->host->world;
    const uint64_t now_us = tide_world_now_us(world);
    tide_lock_take(world, calls->lock);
    for (size_t i = 0; i < MCP_CALLS_MAX; i++) {
        struct call *call = &calls->calls[i];
        if (call->state == CALL_FREE || call->deadline_us > now_us ||
            tide_canceled(&call->cancel) != TIDE_CANCEL_NONE)
            continue;
        __atomic_store_n(&call->expired, true, __ATOMIC_RELEASE);
        tide_world_cancel(world, &call->cancel, TIDE_CANCEL_STALL);
    }
    tide_lock_drop(world, calls->lock);
}

static bool is_idle(const struct mcp_calls *calls)
{
    for (size_t i = 0; i < MCP_CALLS_MAX; i++)
        if (calls->calls[i].state != CALL_FREE)
            return false;
    return true;
}

void mcp_calls_drain(struct mcp_calls *calls)
{
    tide_world *world = calls->host->world;
    bool left = true;
    while (left && !mcp_stdio_gone(calls->stdio)) {
        mcp_calls_expire(calls);
        tide_lock_take(world, calls->lock);
        left = !is_idle(calls);
        if (left)
            (void)tide_cond_wait(world, calls->cond, calls->lock,
                                 tide_world_now_us(world) + DRAIN_LOOK_US);
        tide_lock_drop(world, calls->lock);
    }
}

void mcp_calls_close(struct mcp_calls *calls)
{
    if (calls == NULL)
        return;
    tide_world *world = calls->host->world;
    if (calls->cond != NULL) {
        tide_lock_take(world, calls->lock);
        calls->closing = true;
        for (size_t i = 0; i < MCP_CALLS_MAX; i++)
            if (calls->calls[i].state != CALL_FREE)
                tide_world_cancel(world, &calls->calls[i].cancel, TIDE_CANCEL_STOP);
        tide_cond_wake_all(world, calls->cond);
        tide_lock_drop(world, calls->lock);
        for (size_t i = 0; i < MCP_WORKERS; i++)
            tide_world_join(world, calls->workers[i]);
        tide_cond_free(world, calls->cond);
    }
    if (calls->lock != NULL)
        tide_lock_free(world, calls->lock);
    tide_mem_free(calls->host->mem, calls, sizeof *calls);
}
