/* box.h - a small cloud for the fuzz targets that ask it things. */
#ifndef TIDE_FUZZ_BOX_H
#define TIDE_FUZZ_BOX_H

#include "fuzz.h"
#include "logic/mime.h"
#include "logic/quota.h"
#include "logic/referee.h"
#include "logic/service.h"
#include "logic/user.h"

enum { FUZZ_START_MS = 1700000000, FUZZ_HEADERS = 16 };

/* A user with a few messages and the token "t", and a site. */
static inline box_cloud *fuzz_cloud(void)
{
    static bool started;
    if (!started)
        box_mime_start();
    started = true;
    const struct box_options options = {
        .seed = 1, .quota = BOX_QUOTA_2026, .auto_consent = true, .list_inversions_permille = 10};
    const struct box_mailbox_options mailbox = {
        .messages = 12, .size_bytes = 1500, .now_unix_ms = FUZZ_START_MS};
    tide_error err = {TIDE_OK, 0, ""};
    box_cloud *cloud = box_cloud_new(&options);
    TIDE_ASSERT(box_cloud_add_mailbox(cloud, TIDE_TEXT("a@x.org"), &mailbox, &err) == TIDE_OK);
    TIDE_ASSERT(box_cloud_add_token(cloud, TIDE_TEXT("t"), TIDE_TEXT("a@x.org"), &err) == TIDE_OK);
    TIDE_ASSERT(box_cloud_add_site(cloud, TIDE_TEXT("sc-domain:x.org"), TIDE_TEXT("a@x.org"), 5,
                                   &err) == TIDE_OK);
    return cloud;
}

/* Asks, looks at the answer's shape and lets its slots go. */
static inline void fuzz_ask(box_cloud *cloud, const struct box_request *request, uint64_t now_ms)
{
    struct box_answer answer;
    box_answer_init(&answer);
    box_cloud_serve(cloud, request, now_ms, &answer);
    TIDE_ASSERT(answer.status >= 100 && answer.status < 600);
    TIDE_ASSERT(memchr(answer.type, '\0', sizeof answer.type) != NULL);
    TIDE_ASSERT(answer.headers_count <= BOX_ANSWER_HEADERS_MAX);
    box_cloud_finished(cloud, &answer.ticket, now_ms);
    box_answer_done(&answer);
}

/* After everything: nothing in flight, mailboxes whole, the record readable. */
static inline void fuzz_cloud_end(box_cloud *cloud)
{
    struct box_user *user = NULL;
    for (size_t i = 0; (user = box_cloud_user_at(cloud, i)) != NULL; i++) {
        TIDE_ASSERT(box_quota_in_flight(box_cloud_quota(cloud), user->number) == 0);
        TIDE_ASSERT(box_mailbox_check(user->mailbox) == NULL);
    }
    json_t *stats = box_referee_stats(box_cloud_referee(cloud), NULL, true);
    TIDE_ASSERT(json_is_object(stats));
    json_decref(stats);
    box_cloud_free(cloud);
}

#endif
