/* box.h - a small cloud for the fuzz targets that send it requests. */
#ifndef TIDE_FUZZ_BOX_H
#define TIDE_FUZZ_BOX_H

#include "fuzz.h"
#include "cloudbox/mailbox/mime.h"
#include "cloudbox/gate/quota.h"
#include "cloudbox/services.h"

/* tidemark-cloud generates up to 20 million messages.  Millions take longer than the time limit
 * of a run and need no other code than a thousand, so here more are refused. */
enum { FUZZ_START_MS = 1700000000, FUZZ_HEADERS = 16, FUZZ_MESSAGES_MAX = 1000 };

/* A user with a few messages and the token "t", and a site. */
static inline box_cloud *fuzz_cloud(void)
{
    static bool started;
    if (!started)
        box_mime_start();
    started = true;
    const struct box_options options = {.seed = 1,
                                        .quota = BOX_QUOTA_2026,
                                        .auto_consent = true,
                                        .list_inversions_permille = 10,
                                        .mailbox_messages_max = FUZZ_MESSAGES_MAX,
                                        .services = box_services_all};
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

/* Sends a request and checks the shape of the answer; the caller checks the rest and ends it
 * with fuzz_answered(). */
static inline void fuzz_serve(box_cloud *cloud, const struct box_request *request, uint64_t now_ms,
                              struct box_answer *answer)
{
    box_answer_init(answer);
    box_cloud_serve(cloud, request, now_ms, answer);
    TIDE_ASSERT(answer->status >= 100 && answer->status < 600);
    TIDE_ASSERT(memchr(answer->type, '\0', sizeof answer->type) != NULL);
    TIDE_ASSERT(answer->headers_count <= BOX_ANSWER_HEADERS_MAX);
    for (size_t i = 0; i < answer->headers_count; i++)
        TIDE_ASSERT(strpbrk(answer->headers[i].value, "\r\n") == NULL);
}

static inline void fuzz_answered(box_cloud *cloud, struct box_answer *answer, uint64_t now_ms)
{
    box_cloud_finished(cloud, &answer->ticket, now_ms);
    box_answer_done(answer);
}

static inline void fuzz_ask(box_cloud *cloud, const struct box_request *request, uint64_t now_ms)
{
    struct box_answer answer;
    fuzz_serve(cloud, request, now_ms, &answer);
    fuzz_answered(cloud, &answer, now_ms);
}

static inline const char *fuzz_header(const struct box_answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->headers_count; i++)
        if (strcmp(answer->headers[i].name, name) == 0)
            return answer->headers[i].value;
    return NULL;
}

/* At the end: nothing in flight, mailboxes consistent, the record readable. */
static inline void fuzz_cloud_end(box_cloud *cloud)
{
    struct box_user *user = NULL;
    for (size_t i = 0; (user = box_cloud_user_at(cloud, i)) != NULL; i++) {
        TIDE_ASSERT(box_quota_in_flight(box_cloud_quota(cloud), user->number) == 0);
        TIDE_ASSERT(box_mailbox_check(box_user_mailbox(user)) == NULL);
    }
    json_t *stats = box_cloud_stats(cloud, NULL, true);
    TIDE_ASSERT(json_is_object(stats));
    json_decref(stats);
    box_cloud_free(cloud);
}

/* Seeds cannot know the ids a mailbox draws, so they name them: @m3 is the id of
 * the fourth message, @t3 its thread's, @d the first draft's, @l the label's. */
static inline bool fuzz_add_id(tide_buf *out, const box_mailbox *mailbox, const char *name)
{
    char id[BOX_ID_TEXT_BYTES];
    const uint32_t slot = (uint32_t)(name[1] - '0');
    switch (name[0]) {
    case 'm':
    case 't':
        if (slot > 9 || slot >= box_mailbox_slots(mailbox))
            return false;
        box_id_text(name[0] == 'm' ? box_mailbox_at(mailbox, slot)->id
                                   : box_mailbox_at(mailbox, slot)->thread_id,
                    id);
        box_add_cstr(out, id);
        return true;
    case 'd':
        if (box_mailbox_drafts(mailbox) == 0)
            return false;
        box_print(out, "r%llu", (unsigned long long)box_mailbox_draft_at(mailbox, 0)->id);
        return true;
    case 'l':
        if (box_mailbox_labels_count(mailbox) <= BOX_LABELS_SYSTEM)
            return false;
        box_add_cstr(out, box_mailbox_label(mailbox, BOX_LABELS_SYSTEM)->id);
        return true;
    default:
        return false;
    }
}

/* A copy of the exact size with ids in place of their names.  free() it. */
static inline tide_text fuzz_with_ids(tide_text text, box_cloud *cloud)
{
    const box_mailbox *mailbox = box_user_mailbox(box_cloud_user_at(cloud, 0));
    tide_buf out;
    tide_buf_init(&out, tide_mem_heap(), 1 << 20);
    for (size_t i = 0; i < text.bytes; i++) {
        char name[2] = {0, 0};
        if (i + 1 < text.bytes)
            name[0] = text.data[i + 1];
        if (i + 2 < text.bytes)
            name[1] = text.data[i + 2];
        if (text.data[i] == '@' && fuzz_add_id(&out, mailbox, name))
            i += name[0] == 'm' || name[0] == 't' ? 2 : 1;
        else
            box_add(&out, &text.data[i], 1);
    }
    const tide_text copy = fuzz_exact(tide_buf_text(&out));
    tide_buf_done(&out);
    return copy;
}

static inline void fuzz_text_free(tide_text text)
{
    free((void *)(uintptr_t)text.data);
}

#endif
