/* readers.c - the threads that run handlers which touch a disk or wait for a network (SRV5). */
#include "serve/http/inside.h"

#include <openssl/evp.h>
#include <string.h>

/* ---- a handler ---- */

/* false: no memory. */
static bool digest_of(const struct exchange *exchange, unsigned char digest_out[32])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const tide_text texts[] = {exchange->head.method, exchange->head.target,
                               exchange->request.body};
    bool done = context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; done && i < sizeof texts / sizeof texts[0]; i++) {
        const uint64_t bytes = texts[i].bytes; /* so that the three cannot be shifted */
        done = EVP_DigestUpdate(context, &bytes, sizeof bytes) == 1 &&
               (bytes == 0 || EVP_DigestUpdate(context, texts[i].data, bytes) == 1);
    }
    done = done && EVP_DigestFinal_ex(context, digest_out, NULL) == 1;
    EVP_MD_CTX_free(context);
    return done;
}

static void call(struct exchange *exchange)
{
    const struct tide_httpd_route *route = exchange->verdict.route;
    route->handler(route->arg, &exchange->request, &exchange->answer);
    if (exchange->answer.status == 0)
        exchange->answer.failed = true;
}

static void call_once(struct exchange *exchange)
{
    const struct tide_httpd_once *once = &exchange->server->options.once;
    const struct tide_httpd_who *who = &exchange->verdict.who;
    const tide_text key = tide_httpd_header(&exchange->head, "idempotency-key");
    struct tide_httpd_answer *answer = &exchange->answer;
    unsigned char digest[32];
    if (!digest_of(exchange, digest)) {
        answer->failed = true;
        return;
    }
    switch (once->begin(once->arg, who, key, digest, answer, &exchange->request.asked_unix_ms)) {
    case TIDE_HTTPD_FIRST:
        call(exchange);
        once->end(once->arg, who, key, answer);
        break;
    case TIDE_HTTPD_STORED:
        break;
    case TIDE_HTTPD_RUNNING:
        /* Not a 409, which says that nothing was done: this one will be. */
        tide_httpd_fail(answer, 503, "running", "The first request with this key has not ended.",
                        &(struct tide_httpd_problem){.retry_after_s = 1});
        break;
    case TIDE_HTTPD_OTHER:
        tide_httpd_fail(answer, 422, "idempotency_key",
                        "This Idempotency-Key was used for another request.",
                        &(struct tide_httpd_problem){.help = "Send a new key."});
        break;
    case TIDE_HTTPD_CANNOT:
        tide_httpd_fail(answer, 503, "ledger", "The ledger cannot be asked now.",
                        &(struct tide_httpd_problem){.retry_after_s = 2});
        break;
    }
}

static void run(struct exchange *exchange)
{
    const struct tide_httpd_route *route = exchange->verdict.route;
    if (strcmp(route->method, "POST") == 0 && !(route->flags & TIDE_HTTPD_REPEATS))
        call_once(exchange);
    else
        call(exchange);
}

/* ---- the queue ---- */

static struct exchange *take(struct pool *pool)
{
    struct exchange *exchange = pool->head;
    pool->head = exchange->next;
    if (pool->head == NULL)
        pool->tail = NULL;
    exchange->next = NULL;
    exchange->turn = TURN_RUNNING;
    pool->server->counts.waiting--;
    return exchange;
}

static struct pool *pool_of(const struct exchange *exchange)
{
    return &exchange->server
                ->pools[exchange->verdict.route->way == TIDE_HTTPD_FETCH ? POOL_FETCHERS
                                                                         : POOL_READERS];
}

static void reader(void *arg)
{
    struct pool *pool = arg;
    tide_httpd *server = pool->server;
    tide_lock_take(server->world, server->lock);
    for (;;) {
        while (pool->head == NULL && !server->readers_stop)
            if (tide_cond_wait(server->world, pool->work, server->lock, TIDE_NEVER) == TIDE_STOPPED)
                server->readers_stop = true;
        if (server->readers_stop)
            break;
        struct exchange *exchange = take(pool);
        tide_lock_drop(server->world, server->lock);
        run(exchange);
        tide_lock_take(server->world, server->lock);
        exchange->turn = TURN_ENDED;
        exchange->next = server->ended;
        server->ended = exchange;
        httpd_interrupt(server);
    }
    tide_lock_drop(server->world, server->lock);
}

bool httpd_readers_add(struct exchange *exchange)
{
    tide_httpd *server = exchange->server;
    struct pool *pool = pool_of(exchange);
    tide_lock_take(server->world, server->lock);
    const bool room = server->counts.waiting < TIDE_HTTPD_QUEUE_MAX;
    if (room) {
        exchange->references++;
        exchange->turn = TURN_QUEUED;
        if (pool->tail != NULL)
            pool->tail->next = exchange;
        else
            pool->head = exchange;
        pool->tail = exchange;
        server->counts.waiting++;
        tide_cond_wake_one(server->world, pool->work);
    }
    tide_lock_drop(server->world, server->lock);
    return room;
}

void httpd_readers_ended(tide_httpd *server)
{
    tide_lock_take(server->world, server->lock);
    struct exchange *exchange = server->ended;
    server->ended = NULL;
    tide_lock_drop(server->world, server->lock);
    while (exchange != NULL) {
        struct exchange *next = exchange->next;
        exchange->next = NULL;
        if (!exchange->given_up && exchange->connection != NULL)
            httpd_connection_resume(exchange->connection);
        httpd_exchange_release(exchange);
        exchange = next;
    }
}

static void unqueue(tide_httpd *server, struct exchange *exchange)
{
    struct pool *pool = pool_of(exchange);
    struct exchange **at = &pool->head, *before = NULL;
    while (*at != exchange) {
        before = *at;
        at = &(*at)->next;
    }
    *at = exchange->next;
    if (pool->tail == exchange)
        pool->tail = before;
    server->counts.waiting--;
}

/* 1. Still queued: it will never run.  2. Running: it is told to end; its reference goes when it has.
 * 3. Ended since: it has its answer, and httpd_readers_ended() sends it. */
void httpd_readers_give_up(struct exchange *exchange, tide_cancel_reason reason)
{
    tide_httpd *server = exchange->server;
    tide_lock_take(server->world, server->lock);
    const httpd_turn was = exchange->turn;
    if (was == TURN_QUEUED) {
        unqueue(server, exchange);
        exchange->turn = TURN_ENDED;
    }
    tide_lock_drop(server->world, server->lock);
    if (was == TURN_ENDED) {
        exchange->connection->deadline_ms = TIDE_NEVER;
        return;
    }
    exchange->given_up = true;
    if (was == TURN_RUNNING)
        tide_world_cancel(server->world, &exchange->cancel, reason);
    httpd_connection_resume(exchange->connection);
    if (was == TURN_QUEUED)
        httpd_exchange_release(exchange);
}

/* ---- starting and stopping ---- */

static const struct {
    const char *name;
    size_t threads;
    tide_httpd_way way; /* whose handlers it runs */
} kinds[POOLS] = {[POOL_READERS] = {"http-reader", TIDE_HTTPD_READERS, TIDE_HTTPD_READER},
                  [POOL_FETCHERS] = {"http-fetcher", TIDE_HTTPD_FETCHERS, TIDE_HTTPD_FETCH}};

tide_status httpd_readers_make(tide_httpd *server)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; i < POOLS && rc == TIDE_OK; i++) {
        server->pools[i].server = server;
        rc = tide_cond_new(server->world, &server->pools[i].work);
    }
    return rc;
}

void httpd_readers_free(tide_httpd *server)
{
    for (size_t i = 0; i < POOLS; i++)
        if (server->pools[i].work != NULL)
            tide_cond_free(server->world, server->pools[i].work);
}

static bool is_needed(const tide_httpd *server, tide_httpd_way way)
{
    for (size_t i = 0; i < server->options.routes_count; i++)
        if (server->options.routes[i].way == way)
            return true;
    return false;
}

tide_status httpd_readers_start(tide_httpd *server, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; i < POOLS; i++)
        for (size_t k = 0; k < kinds[i].threads && rc == TIDE_OK && is_needed(server, kinds[i].way);
             k++)
            rc = tide_world_thread(server->world, kinds[i].name, reader, &server->pools[i],
                                   &server->pools[i].threads[k], err);
    return rc;
}

void httpd_readers_stop(tide_httpd *server)
{
    tide_lock_take(server->world, server->lock);
    server->readers_stop = true;
    for (size_t i = 0; i < POOLS; i++)
        if (server->pools[i].work != NULL)
            tide_cond_wake_all(server->world, server->pools[i].work);
    tide_lock_drop(server->world, server->lock);
    for (size_t i = 0; i < POOLS; i++)
        for (size_t k = 0; k < kinds[i].threads; k++)
            if (server->pools[i].threads[k] != NULL)
                tide_world_join(server->world, server->pools[i].threads[k]);
}
