/* real_call.c - the caller's side of a call: set-up, ring transfers, and the mapping of
 * libcurl's result to a status. */
#include "world/inflate.h"
#include "world/real_net.h"
#include "base/check.h"

#include <stdio.h>
#include <strings.h>

/* State of one running call, on its caller's stack. */
struct pump {
    struct net_call *call;
    const struct tide_request *request;
    struct tide_response *response;
    uint64_t bytes_max;   /* of the answer's body, decoded */
    uint64_t wire_bytes;  /* of it, before decoding */
    uint64_t source_left; /* bytes still to come from the source */
    bool head_read;
    bool encoded;
    tide_status ends_failed; /* what the sink or the source returned */
    tide_inflate inflate;
    char *what; /* "GET host/path", for error texts */
};

enum {
    WHAT_BYTES_MAX = 200,
    SEGMENT_SHOWN_BYTES = 80, /* of a path; a longer one is cut to the next */
    SEGMENT_HIDDEN_BYTES = 8,
};

/* ---- naming a call without its secrets ----------------------------------- */

/* Queries, fragments and user names may contain tokens; host and path are enough in an error. */
static void what_of(const struct tide_request *request, char what[WHAT_BYTES_MAX])
{
    const char *at = strstr(request->url, "://");
    at = at == NULL ? request->url : at + 3;
    const size_t authority_bytes = strcspn(at, "/?#");
    for (size_t i = authority_bytes; i > 0; i--)
        if (at[i - 1] == '@') {
            at += i;
            break;
        }
    const size_t end = strcspn(at, "?#");
    size_t bytes = (size_t)snprintf(what, WHAT_BYTES_MAX, "%s ", request->method);
    for (size_t from = 0; from < end && bytes < WHAT_BYTES_MAX;) {
        const size_t segment = strcspn(at + from, "/?#");
        const bool slash = from + segment < end;
        /* One that long is no name: URLs that are signed by themselves have their key in it. */
        const bool hidden = from > 0 && segment > SEGMENT_SHOWN_BYTES;
        bytes += (size_t)snprintf(what + bytes, WHAT_BYTES_MAX - bytes, "%.*s%s%s",
                                  (int)(hidden ? SEGMENT_HIDDEN_BYTES : segment), at + from,
                                  hidden ? "..." : "", slash ? "/" : "");
        from += segment + slash;
    }
    for (char *c = what; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

/* ---- setting up ---------------------------------------------------------- */

static bool is_token(const char *bytes, size_t count)
{
    if (count == 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        if (c <= 0x20 || c >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", c) != NULL)
            return false;
    }
    return true;
}

static bool is_header_value(tide_text value)
{
    for (size_t i = 0; i < value.bytes; i++) {
        const unsigned char c = (unsigned char)value.data[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false; /* a line break here would let data inject headers */
    }
    return true;
}

static bool names_header(const struct tide_request *request, const char *name)
{
    const size_t name_bytes = strlen(name);
    for (size_t i = 0; i < request->headers_count; i++)
        if (request->headers[i].name.bytes == name_bytes &&
            strncasecmp(request->headers[i].name.data, name, name_bytes) == 0)
            return true;
    return false;
}

static tide_status header_add(struct net_call *call, const char *line)
{
    struct curl_slist *longer = curl_slist_append(call->headers, line);
    if (longer == NULL)
        return TIDE_NO_MEMORY;
    call->headers = longer;
    return TIDE_OK;
}

static tide_status headers_set(struct pump *pump)
{
    const struct tide_request *request = pump->request;
    struct net_call *call = pump->call;
    if (request->headers_count > TIDE_REQUEST_HEADERS_MAX)
        return TIDE_INVALID;
    for (size_t i = 0; i < request->headers_count; i++) {
        const struct tide_header *header = &request->headers[i];
        if (!is_token(header->name.data, header->name.bytes) || !is_header_value(header->value) ||
            header->name.bytes + header->value.bytes + 3 > TIDE_REQUEST_HEADER_BYTES_MAX)
            return TIDE_INVALID;
        /* The incoming ring is still empty and serves as scratch.  An empty value is written
         * with ';', since libcurl reads "Name:" as "leave it out". */
        (void)snprintf(call->in.bytes, TIDE_RING_BYTES,
                       header->value.bytes == 0 ? "%.*s;%.*s" : "%.*s: %.*s",
                       (int)header->name.bytes, header->name.data, (int)header->value.bytes,
                       header->value.bytes == 0 ? "" : header->value.data);
        TIDE_TRY(header_add(call, call->in.bytes));
    }
    /* Waiting for "100 Continue" costs a second with servers that never send it. */
    if (!names_header(request, "Expect"))
        TIDE_TRY(header_add(call, "Expect:"));
    if (!names_header(request, "Content-Type"))
        TIDE_TRY(header_add(call, "Content-Type:")); /* libcurl would claim it is a form */
    /* Request compression and decode it here, unless the request names its own encoding, or asks
     * for a range (a range of an encoded body is useless). */
    if (!names_header(request, "Accept-Encoding") && !names_header(request, "Range")) {
        pump->encoded = true;
        TIDE_TRY(header_add(call, "Accept-Encoding: gzip, deflate"));
    }
    return TIDE_OK;
}

static bool is_method(const struct tide_request *request, const char *name)
{
    return strcmp(request->method, name) == 0;
}

#define SET(option, value)                                                                         \
    do {                                                                                           \
        if (curl_easy_setopt(easy, option, value) != CURLE_OK)                                     \
            return TIDE_NO_MEMORY;                                                                 \
    } while (0)

static tide_status body_set(struct pump *pump)
{
    const struct tide_request *request = pump->request;
    CURL *easy = pump->call->easy;
    if (request->source != NULL) {
        if (request->source_bytes > INT64_MAX)
            return TIDE_INVALID;
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_READFUNCTION, net_on_send);
        SET(CURLOPT_READDATA, pump->call);
        SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->source_bytes);
        SET(CURLOPT_CUSTOMREQUEST, request->method);
    } else if (request->body.bytes > 0 || is_method(request, "POST") || is_method(request, "PUT") ||
               is_method(request, "PATCH")) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.bytes);
        SET(CURLOPT_POSTFIELDS, request->body.bytes > 0 ? request->body.data : "");
        SET(CURLOPT_CUSTOMREQUEST, request->method);
    } else if (is_method(request, "HEAD")) {
        SET(CURLOPT_NOBODY, 1L);
    } else {
        SET(CURLOPT_HTTPGET, 1L);
        if (!is_method(request, "GET"))
            SET(CURLOPT_CUSTOMREQUEST, request->method);
    }
    return TIDE_OK;
}

/* For a request that may not connect everywhere.  A kept connection was opened under other rules, and
 * behind a proxy the address would be the proxy's. */
static tide_status fences_set(struct pump *pump)
{
    CURL *easy = pump->call->easy;
    if (pump->request->may_connect == NULL)
        return TIDE_OK;
    SET(CURLOPT_OPENSOCKETFUNCTION, net_on_open);
    SET(CURLOPT_OPENSOCKETDATA, pump->call);
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_FORBID_REUSE, 1L);
    SET(CURLOPT_PROXY, "");
    return TIDE_OK;
}

static tide_status options_set(struct pump *pump)
{
    const struct tide_request *request = pump->request;
    struct net_call *call = pump->call;
    CURL *easy = call->easy;
    SET(CURLOPT_PRIVATE, call);
    SET(CURLOPT_ERRORBUFFER, call->curl_text);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_NOPROGRESS, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* canceling does not wait for a slow name server */
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_TCP_NODELAY, 1L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_USERAGENT, "tidemark/" TIDE_VERSION);
    SET(CURLOPT_CONNECTTIMEOUT_MS,
        (long)(request->connect_timeout_ms == 0 ? 10000 : request->connect_timeout_ms));
    SET(CURLOPT_TIMEOUT_MS, (long)request->total_timeout_ms);
    SET(CURLOPT_HEADERFUNCTION, net_on_header);
    SET(CURLOPT_HEADERDATA, call);
    SET(CURLOPT_WRITEFUNCTION, net_on_body);
    SET(CURLOPT_WRITEDATA, call);
    SET(CURLOPT_PREREQFUNCTION, net_on_begin);
    SET(CURLOPT_PREREQDATA, call);
    SET(CURLOPT_HTTPHEADER, call->headers);
    SET(CURLOPT_URL, request->url);
    return TIDE_OK;
}

static tide_status call_set_up(struct pump *pump, tide_error *err)
{
    const struct tide_request *request = pump->request;
    struct net_call *call = pump->call;
    if (!is_token(request->method, strlen(request->method)) ||
        strlen(request->url) > TIDE_URL_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "%s: malformed method or URL", pump->what);
    call->request = request;
    call->repeatable = request->repeatable || is_method(request, "GET") ||
                       is_method(request, "HEAD") || is_method(request, "OPTIONS");
    call->stall_us =
        (uint64_t)(request->stall_timeout_ms == 0 ? 60000 : request->stall_timeout_ms) * 1000;
    if (request->source != NULL && call->out.bytes == NULL) {
        call->out.bytes = real_mem_new(call->net->real, TIDE_RING_BYTES);
        if (call->out.bytes == NULL)
            return tide_error_set(err, TIDE_NO_MEMORY, "%s: no memory", pump->what);
    }
    tide_status rc = headers_set(pump);
    if (rc == TIDE_OK)
        rc = options_set(pump);
    if (rc == TIDE_OK)
        rc = fences_set(pump);
    if (rc == TIDE_OK)
        rc = body_set(pump);
    if (rc == TIDE_INVALID)
        return tide_error_set(err, rc, "%s: the request has an invalid header", pump->what);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "%s: no memory", pump->what);
    return TIDE_OK;
}

/* ---- the answer's head --------------------------------------------------- */

static tide_text trimmed(const char *from, const char *to)
{
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r' || to[-1] == '\n'))
        to--;
    return (tide_text){from, (size_t)(to - from)};
}

static tide_text text_keep(tide_buf *into, tide_text text)
{
    char *at = into->data + into->bytes;
    if (text.bytes > 0)
        memcpy(at, text.data, text.bytes);
    at[text.bytes] = '\0';
    into->bytes += text.bytes + 1;
    return (tide_text){at, text.bytes};
}

/* Copies code and headers into the response.  The room is allocated once, so that the texts
 * which point into it stay valid. */
static tide_status head_read(struct pump *pump)
{
    const struct net_call *call = pump->call;
    struct tide_response *response = pump->response;
    /* "a:b\n" becomes "a\0b\0": the copy is never longer than the original. */
    if (tide_buf_reserve(&response->header_bytes, call->head_bytes) == NULL)
        return TIDE_NO_MEMORY;
    long http = 0;
    (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &http);
    response->http = (int)http;
    const char *at = call->head;
    const char *end = call->head + call->head_bytes;
    while (at < end && response->headers_count < TIDE_RESPONSE_HEADERS_MAX) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *line_end = newline == NULL ? end : newline;
        const char *colon = memchr(at, ':', (size_t)(line_end - at));
        const bool status_line = at == call->head;
        const bool folded = *at == ' ' || *at == '\t'; /* forbidden since RFC 7230 */
        if (!status_line && !folded && newline != NULL && colon != NULL && colon > at) {
            struct tide_header *header = &response->headers[response->headers_count++];
            header->name = text_keep(&response->header_bytes, trimmed(at, colon));
            header->value = text_keep(&response->header_bytes, trimmed(colon + 1, line_end));
        }
        at = newline == NULL ? end : newline + 1;
    }
    tide_text encoding = tide_response_header(response, "Content-Encoding");
    pump->encoded = pump->encoded && encoding.bytes > 0 &&
                    (strncasecmp(encoding.data, "gzip", encoding.bytes) == 0 ||
                     strncasecmp(encoding.data, "x-gzip", encoding.bytes) == 0 ||
                     strncasecmp(encoding.data, "deflate", encoding.bytes) == 0);
    pump->head_read = true;
    return TIDE_OK;
}

/* ---- ring transfers ------------------------------------------------------ */

static tide_status body_take(void *arg, const char *bytes, size_t count)
{
    struct pump *pump = arg;
    struct tide_response *response = pump->response;
    if (count > pump->bytes_max - response->body_bytes)
        return TIDE_FULL;
    response->body_bytes += count;
    if (pump->request->sink != NULL) {
        pump->ends_failed = pump->request->sink(pump->request->sink_arg, bytes, count);
        return pump->ends_failed;
    }
    net_budget_force(pump->call, count);
    return tide_buf_add(&response->body, bytes, count);
}

/* Empties the longest contiguous run of the incoming ring.  The bytes are read without the lock:
 * until they are given back no thread writes there. */
static tide_status ring_drain(struct pump *pump, char *bytes, size_t count)
{
    struct net_call *call = pump->call;
    pump->wire_bytes += count;
    tide_status rc = TIDE_OK;
    if (!pump->head_read)
        rc = head_read(pump);
    if (rc == TIDE_OK && pump->wire_bytes > pump->bytes_max)
        rc = TIDE_FULL;
    if (rc == TIDE_OK)
        rc = pump->encoded ? tide_inflate_feed(&pump->inflate, bytes, count, body_take, pump)
                           : body_take(pump, bytes, count);
    net_budget_give(call, count);
    net_buffered_sub(call->net, count);

    real_lock(&call->lock);
    call->in.start = (call->in.start + count) % TIDE_RING_BYTES;
    call->in.used -= count;
    const bool wake = call->wants_room && net_ring_room(&call->in) >= TIDE_RING_BYTES / 2;
    if (wake)
        call->wants_room = false;
    real_unlock(&call->lock);
    if (wake)
        real_net_wake(call->net);
    return rc;
}

/* Fills the longest contiguous free run of the outgoing ring from the source, likewise without
 * the lock. */
static tide_status ring_fill(struct pump *pump, char *room, size_t room_bytes)
{
    struct net_call *call = pump->call;
    if (room_bytes > pump->source_left)
        room_bytes = (size_t)pump->source_left;
    size_t got = 0;
    tide_status rc = pump->request->source(pump->request->source_arg, room, room_bytes, &got);
    if (rc == TIDE_OK && got == 0)
        rc = TIDE_INVALID; /* it promised more */
    pump->ends_failed = rc;
    if (rc != TIDE_OK)
        return rc;
    TIDE_ASSERT(got <= room_bytes);
    pump->source_left -= got;

    real_lock(&call->lock);
    call->out.used += got;
    call->out_ended = pump->source_left == 0;
    const bool wake = call->wants_bytes;
    call->wants_bytes = false;
    real_unlock(&call->lock);
    if (wake)
        real_net_wake(call->net);
    return TIDE_OK;
}

/* Waits until there is something to do and does it.  *finished_out: the call has ended and its
 * ring is empty. */
static tide_status pump_step(struct pump *pump, bool *finished_out)
{
    struct net_call *call = pump->call;
    char *bytes = NULL;
    real_lock(&call->lock);
    while (!call->done && call->in.used == 0 &&
           (pump->source_left == 0 || net_ring_room(&call->out) == 0))
        TIDE_ASSERT(pthread_cond_wait(&call->cond, &call->lock) == 0);
    /* Bytes left by a failed call are dropped: its caller will not use half a body, and a
     * canceled one must return at once. */
    const bool failed = call->done && (call->status != TIDE_OK || call->code != CURLE_OK);
    *finished_out = call->done && (failed || call->in.used == 0);
    const size_t readable = *finished_out ? 0 : net_ring_readable(&call->in, &bytes);
    size_t writable = 0;
    if (!*finished_out && readable == 0)
        writable = net_ring_writable(&call->out, &bytes);
    real_unlock(&call->lock);
    if (readable > 0)
        return ring_drain(pump, bytes, readable);
    if (writable > 0)
        return ring_fill(pump, bytes, writable);
    return TIDE_OK;
}

/* Tells the network thread to drop the call and waits until it has. */
static void call_give_up(struct net_call *call)
{
    real_lock(&call->lock);
    call->give_up = true;
    real_unlock(&call->lock);
    real_net_wake(call->net);
    real_lock(&call->lock);
    while (!call->done)
        TIDE_ASSERT(pthread_cond_wait(&call->cond, &call->lock) == 0);
    real_unlock(&call->lock);
}

/* ---- result -------------------------------------------------------------- */

/* Failures before anything was sent. libcurl's text for them (a host, a port, a certificate)
 * contains no secrets. */
static bool is_before_sending(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_PROXY:
        return true;
    default:
        return false;
    }
}

/* `sent`: a byte of the request left this machine.  `answered`: a byte came back.  Sent without
 * an answer, it is unknown what the server did. */
static tide_status status_of(const struct net_call *call, bool sent, bool answered)
{
    if (call->refused != TIDE_OK)
        return call->refused;
    switch (call->code) {
    case CURLE_OK:
        return TIDE_OK;
    case CURLE_OUT_OF_MEMORY:
        /* libcurl returns the same code when a head passes its own ceiling. */
        return sent && !call->head_whole ? TIDE_FULL : TIDE_NO_MEMORY;
    case CURLE_OPERATION_TIMEDOUT:
        return sent ? TIDE_TIMEOUT : TIDE_NETWORK;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
        if (!sent)
            return TIDE_INVALID;
        break;
    default:
        if (call->code == CURLE_COULDNT_CONNECT && call->kept_out)
            return TIDE_INVALID;
        if (is_before_sending(call->code))
            return TIDE_NETWORK;
        break;
    }
    if (!sent)
        return TIDE_NETWORK;
    if (!answered)
        return TIDE_UNKNOWN;
    return call->repeatable ? TIDE_SERVER : TIDE_UNKNOWN;
}

static tide_status outcome_of_curl(struct pump *pump, tide_error *err)
{
    struct net_call *call = pump->call;
    long request_bytes = 0;
    long head_bytes = 0;
    long os_error = 0;
    curl_off_t body_bytes = 0;
    (void)curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &request_bytes);
    (void)curl_easy_getinfo(call->easy, CURLINFO_HEADER_SIZE, &head_bytes);
    (void)curl_easy_getinfo(call->easy, CURLINFO_SIZE_DOWNLOAD_T, &body_bytes);
    (void)curl_easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &os_error);
    const bool sent = call->sends > 0 && request_bytes > 0;
    const bool garbage = call->code == CURLE_WEIRD_SERVER_REPLY ||
                         call->code == CURLE_UNSUPPORTED_PROTOCOL; /* no status line at all */
    const bool answered = head_bytes > 0 || body_bytes > 0 || garbage;
    tide_status rc = status_of(call, sent, answered);
    if (rc == TIDE_OK)
        return rc;
    if (rc == TIDE_FULL)
        return tide_error_set(err, rc, "%s: the head of the answer is too long", pump->what);
    if (rc == TIDE_INVALID && call->kept_out)
        return tide_error_set(err, rc, "%s: the request may not connect to the address of its host",
                              pump->what);
    const char *why = is_before_sending(call->code) && call->curl_text[0] != '\0'
                          ? call->curl_text
                          : curl_easy_strerror(call->code);
    (void)tide_error_set(
        err, rc, "%s: %s", pump->what,
        call->refused == TIDE_UNKNOWN ? "the connection ended after the request was sent" : why);
    if (err != NULL)
        err->code = (int)os_error;
    return rc;
}

/* The call ended by itself, or the network thread ended it. */
static tide_status outcome(struct pump *pump, tide_error *err)
{
    struct net_call *call = pump->call;
    switch (call->status) {
    case TIDE_OK:
        break;
    case TIDE_CANCELED:
        return tide_error_set(err, TIDE_CANCELED, "%s: canceled", pump->what);
    case TIDE_STOPPED:
        return tide_error_set(err, TIDE_STOPPED, "%s: the network is shut down", pump->what);
    default:
        TIDE_ASSERT(call->status == TIDE_TIMEOUT);
        return tide_error_set(err, TIDE_TIMEOUT, "%s: no data for %u ms", pump->what,
                              (unsigned)(call->stall_us / 1000));
    }
    TIDE_TRY(outcome_of_curl(pump, err));
    if (pump->encoded && !tide_inflate_whole(&pump->inflate))
        TIDE_TRY(tide_error_set(err, call->repeatable ? TIDE_SERVER : TIDE_UNKNOWN,
                                "%s: the compressed body is cut off", pump->what));
    return TIDE_OK;
}

/* The failure is on our side of the rings. */
static tide_status outcome_of_pump(struct pump *pump, tide_status rc, tide_error *err)
{
    if (pump->ends_failed != TIDE_OK)
        return tide_error_set(err, pump->ends_failed, "%s: the caller's sink or source failed (%s)",
                              pump->what, tide_status_name(pump->ends_failed));
    if (rc == TIDE_FULL)
        return tide_error_set(err, rc, "%s: the body is longer than %llu bytes", pump->what,
                              (unsigned long long)pump->bytes_max);
    if (rc == TIDE_SERVER)
        return tide_error_set(err, pump->call->repeatable ? TIDE_SERVER : TIDE_UNKNOWN,
                              "%s: the compressed body is damaged", pump->what);
    return tide_error_set(err, rc, "%s: no memory for the answer", pump->what);
}

static void response_clear(struct tide_response *response, uint64_t bytes_max)
{
    response->http = 0;
    response->headers_count = 0;
    response->body_bytes = 0;
    response->latency_ms = 0;
    tide_buf_clear(&response->body);
    tide_buf_clear(&response->header_bytes);
    response->body.bytes_max = bytes_max > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)bytes_max;
}

static tide_status call_run(struct pump *pump, tide_error *err)
{
    struct net_call *call = pump->call;
    TIDE_TRY(call_set_up(pump, err));
    net_budget_join(call);
    tide_status rc = net_call_submit(call, err);
    if (rc != TIDE_OK) {
        net_budget_leave(call);
        return rc;
    }
    bool finished = false;
    while (rc == TIDE_OK && !finished)
        rc = pump_step(pump, &finished);
    if (rc != TIDE_OK) {
        call_give_up(call);
        rc = outcome_of_pump(pump, rc, err);
    } else {
        if (!pump->head_read && call->head_ready)
            rc = head_read(pump);
        rc = rc == TIDE_OK ? outcome(pump, err)
                           : tide_error_set(err, rc, "%s: no memory", pump->what);
    }
    net_budget_leave(call);

    curl_off_t whole_us = 0;
    curl_off_t before_us = 0;
    (void)curl_easy_getinfo(call->easy, CURLINFO_TOTAL_TIME_T, &whole_us);
    (void)curl_easy_getinfo(call->easy, CURLINFO_PRETRANSFER_TIME_T, &before_us);
    pump->response->latency_ms =
        whole_us > before_us ? (uint32_t)((whole_us - before_us + 500) / 1000) : 0;
    return rc;
}

tide_status real_call(tide_world *world, const struct tide_request *request,
                      struct tide_response *response, const tide_cancel *cancel, tide_error *err)
{
    TIDE_ASSERT(request->method != NULL);
    TIDE_ASSERT(request->url != NULL);
    TIDE_ASSERT(response->body.mem != NULL); /* tide_response_init() was called */
    char what[WHAT_BYTES_MAX];
    what_of(request, what);
    struct pump pump = {
        .request = request,
        .response = response,
        .bytes_max =
            request->body_bytes_max == 0 ? TIDE_BODY_BYTES_DEFAULT : request->body_bytes_max,
        .source_left = request->source == NULL ? 0 : request->source_bytes,
        .what = what,
    };
    response_clear(response, pump.bytes_max);
    if (cancel != NULL && tide_canceled(cancel) != TIDE_CANCEL_NONE)
        return tide_error_set(err, TIDE_CANCELED, "%s: canceled", what);
    TIDE_TRY(net_call_take(real_of(world)->net, &pump.call, err));
    pump.call->cancel = cancel;
    pump.call->out_ended = pump.source_left == 0;
    tide_inflate_init(&pump.inflate, response->body.mem);
    tide_status rc = call_run(&pump, err);
    tide_inflate_done(&pump.inflate);
    net_call_return(pump.call);
    return rc;
}
