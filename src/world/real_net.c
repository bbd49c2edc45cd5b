#include "world/real_net.h"
#include "base/check.h"

#include <errno.h>

static_assert(TIDE_RING_BYTES >= 2 * CURL_MAX_WRITE_SIZE, "a ring takes what curl hands over");

/* ---- rings --------------------------------------------------------------- */

size_t net_ring_readable(const struct net_ring *ring, char **bytes_out)
{
    *bytes_out = ring->bytes + ring->start;
    const size_t until_wrap = (size_t)TIDE_RING_BYTES - ring->start;
    return ring->used < until_wrap ? ring->used : until_wrap;
}

size_t net_ring_writable(const struct net_ring *ring, char **bytes_out)
{
    const size_t end = (ring->start + ring->used) % TIDE_RING_BYTES;
    *bytes_out = ring->bytes + end;
    const size_t until_wrap = (size_t)TIDE_RING_BYTES - end;
    const size_t room = net_ring_room(ring);
    return room < until_wrap ? room : until_wrap;
}

static void ring_put(struct net_ring *ring, const char *bytes, size_t count)
{
    TIDE_ASSERT(count <= net_ring_room(ring));
    while (count > 0) { /* at most twice: before and after the wrap */
        char *room = NULL;
        size_t part = net_ring_writable(ring, &room);
        if (part > count)
            part = count;
        memcpy(room, bytes, part);
        ring->used += part;
        bytes += part;
        count -= part;
    }
}

static size_t ring_get(struct net_ring *ring, char *bytes, size_t count)
{
    size_t got = 0;
    while (got < count && ring->used > 0) {
        char *from = NULL;
        size_t part = net_ring_readable(ring, &from);
        if (part > count - got)
            part = count - got;
        memcpy(bytes + got, from, part);
        ring->start = (ring->start + part) % TIDE_RING_BYTES;
        ring->used -= part;
        got += part;
    }
    return got;
}

/* ---- budgets ------------------------------------------------------------- */

void net_budget_join(struct net_call *call)
{
    tide_byte_budget *budget = call->request->budget;
    if (budget == NULL)
        return;
    real_lock(&budget->lock);
    call->budget_bytes = 0;
    call->budget_next = NULL;
    call->budget_prev = budget->last;
    if (budget->last != NULL)
        budget->last->budget_next = call;
    else
        budget->first = call;
    budget->last = call;
    real_unlock(&budget->lock);
}

/* Returns whether a refused call must be woken.  The caller holds the budget's lock. */
static bool budget_refusals_clear(tide_byte_budget *budget)
{
    const bool refused = budget->refused;
    budget->refused = false;
    return refused;
}

void net_budget_leave(struct net_call *call)
{
    tide_byte_budget *budget = call->request->budget;
    if (budget == NULL)
        return;
    real_lock(&budget->lock);
    if (call->budget_next != NULL)
        call->budget_next->budget_prev = call->budget_prev;
    else
        budget->last = call->budget_prev;
    if (call->budget_prev != NULL)
        call->budget_prev->budget_next = call->budget_next;
    else
        budget->first = call->budget_next;
    TIDE_ASSERT(budget->held_bytes >= call->budget_bytes);
    budget->held_bytes -= call->budget_bytes;
    call->budget_bytes = 0;
    const bool wake = budget_refusals_clear(budget);
    real_unlock(&budget->lock);
    if (wake)
        real_net_wake(call->net);
}

/* The caller holds the budget's lock. */
static bool budget_has(const tide_byte_budget *budget, const struct net_call *call, size_t bytes)
{
    if (budget->first == call) /* RNET5 */
        return true;
    return budget->held_bytes < budget->bytes_max &&
           bytes <= budget->bytes_max - budget->held_bytes;
}

/* Whether the call may continue. libcurl is resumed only then: it retries at once, and a refused
 * call would retry in every pass of the loop. */
static bool budget_allows(struct net_call *call)
{
    tide_byte_budget *budget = call->request->budget;
    if (budget == NULL || call->budget_wants == 0)
        return true;
    real_lock(&budget->lock);
    const bool allows = budget_has(budget, call, call->budget_wants);
    if (!allows)
        budget->refused = true;
    real_unlock(&budget->lock);
    return allows;
}

bool net_budget_take(struct net_call *call, size_t bytes)
{
    tide_byte_budget *budget = call->request->budget;
    if (budget == NULL)
        return true;
    real_lock(&budget->lock);
    const bool taken = budget_has(budget, call, bytes);
    if (taken) {
        budget->held_bytes += bytes;
        call->budget_bytes += bytes;
    } else {
        budget->refused = true;
        (void)__atomic_add_fetch(&call->net->stats.budget_waits, 1, __ATOMIC_RELAXED);
    }
    real_unlock(&budget->lock);
    return taken;
}

void net_budget_force(struct net_call *call, size_t bytes)
{
    tide_byte_budget *budget = call->request->budget;
    if (budget == NULL)
        return;
    real_lock(&budget->lock);
    budget->held_bytes += bytes;
    call->budget_bytes += bytes;
    real_unlock(&budget->lock);
}

void net_budget_give(struct net_call *call, size_t bytes)
{
    tide_byte_budget *budget = call->request->budget;
    if (budget == NULL)
        return;
    real_lock(&budget->lock);
    TIDE_ASSERT(call->budget_bytes >= bytes);
    budget->held_bytes -= bytes;
    call->budget_bytes -= bytes;
    const bool wake = budget_refusals_clear(budget);
    real_unlock(&budget->lock);
    if (wake)
        real_net_wake(call->net);
}

tide_byte_budget *real_budget_new(tide_world *world, uint64_t bytes_max)
{
    tide_byte_budget *budget = real_mem_new(real_of(world), sizeof *budget);
    if (budget == NULL)
        return NULL;
    budget->net = real_of(world)->net;
    budget->bytes_max = bytes_max;
    TIDE_ASSERT(pthread_mutex_init(&budget->lock, NULL) == 0);
    return budget;
}

void real_budget_free(tide_world *world, tide_byte_budget *budget)
{
    if (budget == NULL)
        return;
    TIDE_ASSERT(budget->first == NULL); /* no call uses it anymore */
    TIDE_ASSERT(budget->held_bytes == 0);
    TIDE_ASSERT(pthread_mutex_destroy(&budget->lock) == 0);
    real_mem_free(real_of(world), budget, sizeof *budget);
}

uint64_t real_budget_held_bytes(tide_byte_budget *budget)
{
    real_lock(&budget->lock);
    const uint64_t held_bytes = budget->held_bytes;
    real_unlock(&budget->lock);
    return held_bytes;
}

/* ---- libcurl's callbacks, on the network thread -------------------------- */

static void news_add(struct net_call *call)
{
    if (call->has_news)
        return;
    call->has_news = true;
    call->news_link = call->net->news;
    call->net->news = call;
}

static void news_drop(struct net_call *call)
{
    if (!call->has_news)
        return;
    struct net_call **at = &call->net->news;
    while (*at != call)
        at = &(*at)->news_link;
    *at = call->news_link;
    call->has_news = false;
}

static void buffered_add(struct real_net *net, size_t bytes)
{
    uint64_t now_bytes = __atomic_add_fetch(&net->stats.buffered_bytes, bytes, __ATOMIC_RELAXED);
    /* Only the network thread adds, so the peak has one writer. */
    if (now_bytes > __atomic_load_n(&net->stats.buffered_bytes_peak, __ATOMIC_RELAXED))
        __atomic_store_n(&net->stats.buffered_bytes_peak, now_bytes, __ATOMIC_RELAXED);
}

void net_buffered_sub(struct real_net *net, size_t bytes)
{
    (void)__atomic_sub_fetch(&net->stats.buffered_bytes, bytes, __ATOMIC_RELAXED);
}

size_t net_on_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct net_call *call = arg;
    const size_t part_bytes = size * count;
    if (part_bytes > TIDE_RING_BYTES) {
        call->refused = TIDE_BUG;
        return 0;
    }
    if (!net_budget_take(call, part_bytes)) {
        call->budget_wants = part_bytes;
        call->receive_paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    call->budget_wants = 0;
    real_lock(&call->lock);
    const bool fits = net_ring_room(&call->in) >= part_bytes;
    if (fits)
        ring_put(&call->in, bytes, part_bytes);
    else
        call->wants_room = true;
    real_unlock(&call->lock);
    if (!fits) {
        net_budget_give(call, part_bytes);
        call->receive_paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    buffered_add(call->net, part_bytes);
    news_add(call);
    return part_bytes;
}

/* A head is replaced by the next one until a final one (2xx and above) is complete; after that
 * come trailers, which are ignored. */
size_t net_on_header(char *bytes, size_t size, size_t count, void *arg)
{
    struct net_call *call = arg;
    const size_t line_bytes = size * count;
    if (call->head_whole)
        return line_bytes;
    if (line_bytes >= 5 && memcmp(bytes, "HTTP/", 5) == 0) {
        call->head_bytes = 0;
        call->head_lines = 0;
    }
    const bool blank = line_bytes <= 2 && (bytes[0] == '\r' || bytes[0] == '\n');
    if (blank) {
        long http = 0;
        (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &http);
        if (http < 200)
            return line_bytes;
        call->head_whole = true;
        real_lock(&call->lock);
        call->head_ready = true;
        real_unlock(&call->lock);
        return line_bytes;
    }
    if (line_bytes > sizeof call->head - call->head_bytes ||
        call->head_lines > TIDE_RESPONSE_HEADERS_MAX) {
        call->refused = TIDE_FULL;
        return 0;
    }
    memcpy(call->head + call->head_bytes, bytes, line_bytes);
    call->head_bytes += line_bytes;
    call->head_lines++;
    return line_bytes;
}

size_t net_on_send(char *bytes, size_t size, size_t count, void *arg)
{
    struct net_call *call = arg;
    real_lock(&call->lock);
    const size_t got = ring_get(&call->out, bytes, size * count);
    const bool starved = got == 0 && !call->out_ended;
    call->wants_bytes = starved;
    real_unlock(&call->lock);
    if (starved) {
        call->send_paused = true;
        return CURL_READFUNC_PAUSE;
    }
    news_add(call); /* there is room for the source again */
    return got;
}

/* The last point at which an address is known and nothing was sent to it: whatever name, redirect
 * or answer of a name server led here. */
curl_socket_t net_on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct net_call *call = arg;
    if (purpose != CURLSOCKTYPE_IPCXN || !call->request->may_connect(&address->addr)) {
        call->kept_out = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* libcurl begins to send.  When a kept connection dies before the first byte of an answer,
 * libcurl sends the request again on a new one, whatever the method; but the server may have
 * carried it out before it closed.  So a request that may not be repeated ends here instead (RNET3,
 * E1.9). */
int net_on_begin(void *arg, char *local_ip, char *remote_ip, int local_port, int remote_port)
{
    (void)local_ip;
    (void)remote_ip;
    (void)local_port;
    (void)remote_port;
    struct net_call *call = arg;
    if (call->sends > 0 && !call->repeatable) {
        long sent_bytes = 0;
        (void)curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &sent_bytes);
        if (sent_bytes > 0) {
            call->refused = TIDE_UNKNOWN;
            return CURL_PREREQFUNC_ABORT;
        }
    }
    call->sends++;
    return CURL_PREREQFUNC_OK;
}

/* ---- the network thread -------------------------------------------------- */

void real_net_wake(struct real_net *net)
{
    if (net == NULL || __atomic_load_n(&net->multi, __ATOMIC_ACQUIRE) == NULL ||
        __atomic_exchange_n(&net->wake_pending, 1, __ATOMIC_SEQ_CST) != 0)
        return;
    (void)curl_multi_wakeup(net->multi); /* sticky: the next poll sees it */
}

/* Returns the call to its caller, which may free it at once. */
static void call_end(struct net_call *call, tide_status status, CURLcode code)
{
    struct real_net *net = call->net;
    if (call->added)
        (void)curl_multi_remove_handle(net->multi, call->easy);
    if (call->next != NULL)
        call->next->prev = call->prev;
    if (call->prev != NULL)
        call->prev->next = call->next;
    else
        net->running = call->next;
    news_drop(call);

    long connections = 0;
    (void)curl_easy_getinfo(call->easy, CURLINFO_NUM_CONNECTS, &connections);
    (void)__atomic_add_fetch(&net->stats.connections, (uint64_t)connections, __ATOMIC_RELAXED);
    (void)__atomic_add_fetch(&net->stats.calls, 1, __ATOMIC_RELAXED);

    real_lock(&call->lock);
    call->status = status;
    call->code = code;
    call->done = true;
    (void)pthread_cond_signal(&call->cond);
    real_unlock(&call->lock);
}

static void call_begin(struct real_net *net, struct net_call *call, uint64_t now_us)
{
    call->prev = NULL;
    call->next = net->running;
    if (call->next != NULL)
        call->next->prev = call;
    net->running = call;
    call->moved_at_us = now_us;
    call->look_at_us = now_us + call->stall_us / 4;
    CURLMcode failed = curl_multi_add_handle(net->multi, call->easy);
    call->added = failed == CURLM_OK;
    if (failed != CURLM_OK)
        call_end(call, TIDE_OK, CURLE_OUT_OF_MEMORY);
}

/* libcurl measures stalls in whole seconds and as a speed.  So we measure them here, four times
 * per timeout: have any bytes moved, either way?  A call that we pause ourselves, or that is not
 * connected yet, does not stall. */
static bool call_stalls(struct net_call *call, uint64_t now_us)
{
    if (now_us < call->look_at_us)
        return false;
    curl_off_t up_bytes = 0;
    curl_off_t down_bytes = 0;
    long head_bytes = 0;
    long request_bytes = 0;
    (void)curl_easy_getinfo(call->easy, CURLINFO_SIZE_UPLOAD_T, &up_bytes);
    (void)curl_easy_getinfo(call->easy, CURLINFO_SIZE_DOWNLOAD_T, &down_bytes);
    (void)curl_easy_getinfo(call->easy, CURLINFO_HEADER_SIZE, &head_bytes);
    (void)curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &request_bytes);
    const uint64_t moved_bytes =
        (uint64_t)up_bytes + (uint64_t)down_bytes + (uint64_t)head_bytes + (uint64_t)request_bytes;
    if (call->sends == 0 || call->receive_paused || call->send_paused ||
        moved_bytes != call->moved_bytes) {
        call->moved_bytes = moved_bytes;
        call->moved_at_us = now_us;
    }
    call->look_at_us = now_us + call->stall_us / 4;
    return now_us - call->moved_at_us >= call->stall_us;
}

/* Resumes a paused call if what it waited for is there. */
static void call_resume(struct net_call *call)
{
    real_lock(&call->lock);
    /* Half a ring, so that a slow sink does not cost a system call per byte. */
    bool receive = call->receive_paused && net_ring_room(&call->in) >= TIDE_RING_BYTES / 2;
    const bool send = call->send_paused && (call->out.used > 0 || call->out_ended);
    real_unlock(&call->lock);
    receive = receive && budget_allows(call);
    if (!receive && !send)
        return;
    /* Cleared first: libcurl delivers buffered bytes from inside curl_easy_pause(), and a
     * callback may pause again. */
    if (receive)
        call->receive_paused = false;
    if (send)
        call->send_paused = false;
    const int mask =
        (call->receive_paused ? CURLPAUSE_RECV : 0) | (call->send_paused ? CURLPAUSE_SEND : 0);
    const CURLcode code = curl_easy_pause(call->easy, mask);
    if (code != CURLE_OK)
        call_end(call, TIDE_OK, code);
}

/* Ends or resumes one running call; it may be freed afterwards. */
static void call_tend(struct net_call *call, bool stopping, uint64_t now_us)
{
    real_lock(&call->lock);
    const bool give_up = call->give_up;
    real_unlock(&call->lock);
    if (stopping)
        call_end(call, TIDE_STOPPED, CURLE_OK);
    else if (call->cancel != NULL && tide_canceled(call->cancel) != TIDE_CANCEL_NONE)
        call_end(call, TIDE_CANCELED, CURLE_OK);
    else if (give_up)
        call_end(call, TIDE_CANCELED, CURLE_OK);
    else if (call_stalls(call, now_us))
        call_end(call, TIDE_TIMEOUT, CURLE_OK);
    else if (call->receive_paused || call->send_paused)
        call_resume(call);
}

/* Notifies callers about their rings, once per pass and not once per packet: an answer that
 * arrived in one piece wakes its caller once. */
static void news_tell(struct real_net *net)
{
    struct net_call *call = net->news;
    net->news = NULL;
    while (call != NULL) {
        struct net_call *next = call->news_link;
        call->has_news = false;
        real_lock(&call->lock);
        (void)pthread_cond_signal(&call->cond);
        real_unlock(&call->lock);
        call = next;
    }
}

static void calls_finish(struct real_net *net)
{
    int left = 0;
    CURLMsg *message = NULL;
    while ((message = curl_multi_info_read(net->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        struct net_call *call = NULL;
        const CURLcode code = message->data.result;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call);
        TIDE_ASSERT(call != NULL);
        call_end(call, TIDE_OK, code);
    }
}

static int poll_timeout_ms(const struct real_net *net, uint64_t now_us)
{
    enum { IDLE_MS = 600 * 1000 };
    uint64_t wait_us = (uint64_t)IDLE_MS * 1000;
    for (const struct net_call *call = net->running; call != NULL; call = call->next) {
        const uint64_t left_us = call->look_at_us > now_us ? call->look_at_us - now_us : 0;
        if (left_us < wait_us)
            wait_us = left_us;
    }
    return (int)((wait_us + 999) / 1000);
}

/* Takes the calls submitted since the last pass; false when the thread must end. */
static bool calls_accept(struct real_net *net, bool *stopping_out)
{
    real_lock(&net->lock);
    struct net_call *call = net->submitted;
    net->submitted = NULL;
    net->submitted_last = NULL;
    const bool stopping = net->stopping;
    real_unlock(&net->lock);
    const uint64_t now_us = real_now_us(&net->real->base);
    while (call != NULL) {
        struct net_call *next = call->link;
        call_begin(net, call, now_us);
        call = next;
    }
    *stopping_out = stopping;
    return !stopping || net->running != NULL;
}

static void net_run(void *arg)
{
    struct real_net *net = arg;
    bool stopping = false;
    for (;;) {
        __atomic_store_n(&net->wake_pending, 0, __ATOMIC_SEQ_CST); /* before looking (RNET4) */
        if (!calls_accept(net, &stopping))
            return;
        uint64_t now_us = real_now_us(&net->real->base);
        for (struct net_call *call = net->running, *next = NULL; call != NULL; call = next) {
            next = call->next;
            call_tend(call, stopping, now_us);
        }
        int running = 0;
        (void)curl_multi_perform(net->multi, &running);
        news_tell(net); /* before calls end: an ended call belongs to its caller */
        calls_finish(net);
        if (!stopping)
            (void)curl_multi_poll(net->multi, NULL, 0, poll_timeout_ms(net, now_us), NULL);
    }
}

/* ---- taking and releasing calls ------------------------------------------ */

static void call_free(struct net_call *call)
{
    struct real_world *real = call->net->real;
    if (call->easy != NULL)
        curl_easy_cleanup(call->easy);
    real_mem_free(real, call->in.bytes, TIDE_RING_BYTES);
    real_mem_free(real, call->out.bytes, TIDE_RING_BYTES);
    (void)pthread_cond_destroy(&call->cond);
    (void)pthread_mutex_destroy(&call->lock);
    real_mem_free(real, call, sizeof *call);
}

static struct net_call *call_new(struct real_net *net)
{
    struct net_call *call = real_mem_new(net->real, sizeof *call);
    if (call == NULL)
        return NULL;
    call->net = net;
    TIDE_ASSERT(pthread_mutex_init(&call->lock, NULL) == 0);
    TIDE_ASSERT(real_cond_init(&call->cond));
    call->easy = curl_easy_init();
    call->in.bytes = real_mem_new(net->real, TIDE_RING_BYTES);
    if (call->easy == NULL || call->in.bytes == NULL) {
        call_free(call);
        return NULL;
    }
    return call;
}

static void call_clear(struct net_call *call)
{
    curl_easy_reset(call->easy); /* keeps nothing of the last call */
    call->link = NULL;
    call->headers = NULL;
    call->curl_text[0] = '\0';
    call->next = NULL;
    call->prev = NULL;
    call->has_news = false;
    call->receive_paused = false;
    call->send_paused = false;
    call->added = false;
    call->sends = 0;
    call->moved_bytes = 0;
    call->budget_wants = 0;
    call->head_bytes = 0;
    call->head_lines = 0;
    call->head_whole = false;
    call->refused = TIDE_OK;
    call->kept_out = false;
    call->in.start = 0;
    call->in.used = 0;
    call->out.start = 0;
    call->out.used = 0;
    call->out_ended = false;
    call->wants_room = false;
    call->wants_bytes = false;
    call->head_ready = false;
    call->give_up = false;
    call->done = false;
    call->status = TIDE_OK;
    call->code = CURLE_OK;
}

/* libcurl is started by the first call: most processes make none, and it costs milliseconds.  The
 * caller holds the lock. */
static tide_status multi_start(struct real_net *net)
{
    if (net->multi != NULL)
        return TIDE_OK;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) /* counted by libcurl */
        return TIDE_NO_MEMORY;
    CURLM *multi = curl_multi_init();
    if (multi == NULL) {
        curl_global_cleanup();
        return TIDE_NO_MEMORY;
    }
    (void)curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)TIDE_CONNECTIONS_KEPT_MAX);
    (void)curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    __atomic_store_n(&net->multi, multi, __ATOMIC_RELEASE);
    return TIDE_OK;
}

tide_status net_call_take(struct real_net *net, struct net_call **call_out, tide_error *err)
{
    real_lock(&net->lock);
    const tide_status rc = net->stopping                        ? TIDE_STOPPED
                           : net->calls_count >= TIDE_CALLS_MAX ? TIDE_FULL
                                                                : multi_start(net);
    struct net_call *call = NULL;
    if (rc == TIDE_OK) {
        net->calls_count++;
        call = net->idle;
        if (call != NULL) {
            net->idle = call->link;
            net->idle_count--;
        }
    }
    real_unlock(&net->lock);
    if (rc == TIDE_STOPPED)
        return tide_error_set(err, rc, "the network is shut down");
    if (rc == TIDE_FULL)
        return tide_error_set(err, rc, "%d calls are running already", TIDE_CALLS_MAX);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no memory for the network");
    if (call == NULL)
        call = call_new(net);
    if (call == NULL) {
        real_lock(&net->lock);
        net->calls_count--;
        (void)pthread_cond_signal(&net->calls_gone);
        real_unlock(&net->lock);
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a call");
    }
    call_clear(call);
    *call_out = call;
    return TIDE_OK;
}

void net_call_return(struct net_call *call)
{
    struct real_net *net = call->net;
    if (call->in.used > 0)
        net_buffered_sub(net, call->in.used);
    curl_slist_free_all(call->headers);
    call->headers = NULL;
    real_lock(&net->lock);
    const bool keep = net->idle_count < TIDE_CALLS_IDLE_MAX && !net->stopping;
    if (keep) {
        call->link = net->idle;
        net->idle = call;
        net->idle_count++;
    }
    real_unlock(&net->lock);
    if (!keep)
        call_free(call);
    /* The last step: real_net_free() waits for it. */
    real_lock(&net->lock);
    net->calls_count--;
    (void)pthread_cond_signal(&net->calls_gone);
    real_unlock(&net->lock);
}

tide_status net_call_submit(struct net_call *call, tide_error *err)
{
    struct real_net *net = call->net;
    tide_status rc = TIDE_OK;
    real_lock(&net->lock);
    if (net->stopping)
        rc = tide_error_set(err, TIDE_STOPPED, "the network is shut down");
    else if (net->thread == NULL)
        rc = real_thread_start(&net->real->base, "tide-net", net_run, net, &net->thread, err);
    if (rc == TIDE_OK) {
        call->link = NULL;
        if (net->submitted_last != NULL)
            net->submitted_last->link = call;
        else
            net->submitted = call;
        net->submitted_last = call;
    }
    real_unlock(&net->lock);
    if (rc == TIDE_OK)
        real_net_wake(net);
    return rc;
}

/* ---- create and free ----------------------------------------------------- */

tide_status real_net_new(struct real_world *real, struct real_net **net_out, tide_error *err)
{
    struct real_net *net = real_mem_new(real, sizeof *net);
    if (net == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the network");
    net->real = real;
    TIDE_ASSERT(pthread_mutex_init(&net->lock, NULL) == 0);
    TIDE_ASSERT(real_cond_init(&net->calls_gone));
    *net_out = net;
    return TIDE_OK;
}

void real_net_free(struct real_net *net)
{
    if (net == NULL)
        return;
    struct real_world *real = net->real;
    real_lock(&net->lock);
    net->stopping = true;
    tide_thread *thread = net->thread;
    real_unlock(&net->lock);
    real_net_wake(net);
    real_thread_join(&real->base, thread);

    real_lock(&net->lock);
    while (net->calls_count > 0) /* callers still read the result of their call */
        (void)pthread_cond_wait(&net->calls_gone, &net->lock);
    real_unlock(&net->lock);
    while (net->idle != NULL) {
        struct net_call *call = net->idle;
        net->idle = call->link;
        call_free(call);
    }
    if (net->multi != NULL) {
        TIDE_ASSERT(curl_multi_cleanup(net->multi) == CURLM_OK);
        curl_global_cleanup();
    }
    (void)pthread_cond_destroy(&net->calls_gone);
    (void)pthread_mutex_destroy(&net->lock);
    real_mem_free(real, net, sizeof *net);
}

void real_net_stats(tide_world *world, struct real_net_stats *stats_out)
{
    struct real_net_stats *stats = &real_of(world)->net->stats;
    stats_out->calls = __atomic_load_n(&stats->calls, __ATOMIC_RELAXED);
    stats_out->connections = __atomic_load_n(&stats->connections, __ATOMIC_RELAXED);
    stats_out->buffered_bytes = __atomic_load_n(&stats->buffered_bytes, __ATOMIC_RELAXED);
    stats_out->buffered_bytes_peak = __atomic_load_n(&stats->buffered_bytes_peak, __ATOMIC_RELAXED);
    stats_out->budget_waits = __atomic_load_n(&stats->budget_waits, __ATOMIC_RELAXED);
}
