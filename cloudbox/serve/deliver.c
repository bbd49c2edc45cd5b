#include "cloudbox/serve/deliver.h"

#include "base/check.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { SLEEP_MS_MAX = 60000 };

/* One post under way. */
struct post {
    CURL *easy; /* NULL: free */
    struct curl_slist *headers;
    struct box_delivery delivery;
    char answer[BOX_DELIVERY_BODY_BYTES]; /* the beginning of it */
    size_t answer_bytes;
};

struct box_deliver {
    struct box_shared *shared;
    bool verbose;
    pthread_t thread;
    CURLM *multi;
    atomic_bool stopping;
    _Atomic uint64_t wake_at_ms; /* on the cloud's caller's clock */
    struct post posts[BOX_DELIVERIES_MAX];
    size_t posts_count;
};

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
    struct post *post = arg;
    const size_t room = sizeof post->answer - post->answer_bytes;
    const size_t taken = size * count < room ? size * count : room;
    memcpy(post->answer + post->answer_bytes, data, taken);
    post->answer_bytes += taken;
    return size * count;
}

static struct post *post_free(box_deliver *deliver)
{
    for (size_t i = 0; i < BOX_DELIVERIES_MAX; i++)
        if (deliver->posts[i].easy == NULL)
            return &deliver->posts[i];
    return NULL;
}

static void post_begin(box_deliver *deliver, struct post *post)
{
    char authorization[sizeof post->delivery.bearer + 32];
    post->easy = curl_easy_init();
    TIDE_ASSERT(post->easy != NULL);
    post->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (post->delivery.bearer[0] != '\0') {
        (void)snprintf(authorization, sizeof authorization, "Authorization: Bearer %s",
                       post->delivery.bearer);
        post->headers = curl_slist_append(post->headers, authorization);
    }
    post->headers = curl_slist_append(post->headers, "Expect:");
    CURL *easy = post->easy;
    (void)curl_easy_setopt(easy, CURLOPT_URL, post->delivery.url);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "CloudPubSub-Google");
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, post->headers);
    (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                           (curl_off_t)post->delivery.body.bytes);
    (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, tide_buf_cstr(&post->delivery.body));
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, post);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)BOX_DELIVERY_TIMEOUT_MS);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, (char *)post);
    CURLMcode added = curl_multi_add_handle(deliver->multi, easy);
    TIDE_ASSERT(added == CURLM_OK);
    deliver->posts_count++;
}

static void post_end(box_deliver *deliver, struct post *post)
{
    (void)curl_multi_remove_handle(deliver->multi, post->easy);
    curl_easy_cleanup(post->easy);
    curl_slist_free_all(post->headers);
    tide_buf_done(&post->delivery.body);
    *post = (struct post){.easy = NULL};
    deliver->posts_count--;
}

/* Starts what is due; says until when there is nothing more to do. */
static uint64_t begin_due(box_deliver *deliver, uint64_t *now_unix_ms_out)
{
    struct box_shared *shared = deliver->shared;
    uint64_t wake_at_ms = UINT64_MAX;
    (void)pthread_mutex_lock(&shared->lock);
    const uint64_t now_unix_ms = box_shared_now(shared);
    struct post *post;
    while ((post = post_free(deliver)) != NULL &&
           box_cloud_next_delivery(shared->cloud, now_unix_ms, &post->delivery))
        post_begin(deliver, post);
    if (post != NULL) /* otherwise the next end of a post asks again */
        wake_at_ms = box_cloud_wake_at_ms(shared->cloud, now_unix_ms);
    atomic_store(&deliver->wake_at_ms, wake_at_ms);
    (void)pthread_mutex_unlock(&shared->lock);
    *now_unix_ms_out = now_unix_ms;
    return wake_at_ms;
}

/* true: at least one place is free again. */
static bool report_ended(box_deliver *deliver)
{
    int left;
    bool any = false;
    CURLMsg *message;
    while ((message = curl_multi_info_read(deliver->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        char *private = NULL;
        long status = 0;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        struct post *post = (struct post *)private;
        TIDE_ASSERT(post != NULL);
        if (message->data.result == CURLE_OK)
            (void)curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        if (deliver->verbose)
            fprintf(stderr, "push %" PRIu64 " to %s: %ld%s%s\n", post->delivery.id,
                    post->delivery.url, status, status == 0 ? " " : "",
                    status == 0 ? curl_easy_strerror(message->data.result) : "");
        (void)pthread_mutex_lock(&deliver->shared->lock);
        box_cloud_delivered(deliver->shared->cloud, post->delivery.id, (int)status,
                            (tide_text){post->answer, post->answer_bytes},
                            box_shared_now(deliver->shared));
        (void)pthread_mutex_unlock(&deliver->shared->lock);
        post_end(deliver, post);
        any = true;
    }
    return any;
}

static void *run(void *arg)
{
    box_deliver *deliver = arg;
    while (!atomic_load(&deliver->stopping)) {
        int running;
        uint64_t now_unix_ms;
        uint64_t wake_at_ms = begin_due(deliver, &now_unix_ms);
        (void)curl_multi_perform(deliver->multi, &running);
        if (report_ended(deliver))
            continue;
        uint64_t sleep_ms = wake_at_ms > now_unix_ms ? wake_at_ms - now_unix_ms : 1;
        (void)curl_multi_poll(deliver->multi, NULL, 0,
                              sleep_ms > SLEEP_MS_MAX ? SLEEP_MS_MAX : (int)sleep_ms, NULL);
    }
    return NULL;
}

box_deliver *box_deliver_start(struct box_shared *shared, bool verbose)
{
    box_deliver *deliver = tide_mem_new(tide_mem_heap(), sizeof *deliver);
    TIDE_ASSERT(deliver != NULL);
    deliver->shared = shared;
    deliver->verbose = verbose;
    atomic_init(&deliver->stopping, false);
    atomic_init(&deliver->wake_at_ms, 0);
    deliver->multi = curl_multi_init();
    TIDE_ASSERT(deliver->multi != NULL);
    int rc = pthread_create(&deliver->thread, NULL, run, deliver);
    TIDE_ASSERT(rc == 0);
    return deliver;
}

void box_deliver_wake_by(box_deliver *deliver, uint64_t wake_at_ms)
{
    if (wake_at_ms < atomic_load_explicit(&deliver->wake_at_ms, memory_order_relaxed))
        (void)curl_multi_wakeup(deliver->multi);
}

void box_deliver_stop(box_deliver *deliver)
{
    if (deliver == NULL)
        return;
    atomic_store(&deliver->stopping, true);
    (void)curl_multi_wakeup(deliver->multi);
    (void)pthread_join(deliver->thread, NULL);
    for (size_t i = 0; i < BOX_DELIVERIES_MAX; i++)
        if (deliver->posts[i].easy != NULL)
            post_end(deliver, &deliver->posts[i]);
    (void)curl_multi_cleanup(deliver->multi);
    tide_mem_free(tide_mem_heap(), deliver, sizeof *deliver);
}
