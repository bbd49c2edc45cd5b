/* cloud_player.h - a client that sends a cloud many different requests, all from one
 * seed: reads and changes of every service, the control page, batches, uploads,
 * sign-in, and nonsense.  Two players with one seed ask two clouds the same as
 * long as the clouds answer the same, since ids are looked up in the mailbox. */
#ifndef BOX_TESTS_CLOUD_PLAYER_H
#define BOX_TESTS_CLOUD_PLAYER_H

#include "base/check.h"
#include "base/rng.h"
#include "cloudbox/services.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW_MS UINT64_C(1790000000000)
#define GMAIL  "/gmail/v1/users/me"

enum { KEPT_BYTES_MAX = 256 << 20 };

struct player {
    box_cloud *cloud;
    tide_rng rng;
    uint64_t now_ms;
    /* The request being made. */
    box_verb verb;
    const char *type;
    const char *token;
    tide_buf target;
    tide_buf body;
    size_t calls; /* it stands for: a batch is none itself, its parts are */
    struct box_answer answer;
    tide_buf kept; /* lines, each with its newline */
    char code[256];
    char refresh[256];
    char upload[256];
};

/* ---- life ---- */

static inline void player_keep(void *arg, tide_text line)
{
    struct player *player = arg;
    box_add(&player->kept, line.data, line.bytes);
    box_add(&player->kept, "\n", 1);
}

/* All of it is kept, as any other change is. */
static inline void player_set_up(struct player *player)
{
    const struct box_mailbox_options some = {
        .messages = 40, .size_bytes = 1500, .now_unix_ms = NOW_MS};
    const struct box_mailbox_options none = {.now_unix_ms = NOW_MS};
    box_cloud *cloud = player->cloud;
    TIDE_ASSERT(box_cloud_add_mailbox(cloud, TIDE_TEXT("ada@x.org"), &some, NULL) == TIDE_OK);
    TIDE_ASSERT(box_cloud_add_mailbox(cloud, TIDE_TEXT("bob@x.org"), &none, NULL) == TIDE_OK);
    TIDE_ASSERT(box_cloud_add_token(cloud, TIDE_TEXT("t"), TIDE_TEXT("ada@x.org"), NULL) ==
                TIDE_OK);
    TIDE_ASSERT(box_cloud_add_topic(cloud, TIDE_TEXT("projects/p/topics/t"),
                                    TIDE_TEXT("http://127.0.0.1:9/"), NULL) == TIDE_OK);
    TIDE_ASSERT(box_cloud_add_site(cloud, TIDE_TEXT("sc-domain:x.org"), TIDE_TEXT("ada@x.org"), 50,
                                   NULL) == TIDE_OK);
}

static inline void player_init(struct player *player, const struct box_options *options,
                               uint64_t seed)
{
    *player = (struct player){.rng = tide_rng_seeded(seed), .now_ms = NOW_MS};
    tide_buf_init(&player->target, tide_mem_heap(), 1 << 20);
    tide_buf_init(&player->body, tide_mem_heap(), 1 << 20);
    tide_buf_init(&player->kept, tide_mem_heap(), KEPT_BYTES_MAX);
    box_answer_init(&player->answer);
    struct box_options own = *options;
    own.services = box_services_all;
    own.keep = player_keep;
    own.keep_arg = player;
    player->cloud = box_cloud_new(&own);
}

static inline void player_done(struct player *player)
{
    for (size_t i = 0; box_cloud_user_at(player->cloud, i) != NULL; i++)
        assert_null(box_mailbox_check(box_user_mailbox(box_cloud_user_at(player->cloud, i))));
    box_cloud_free(player->cloud);
    box_answer_done(&player->answer);
    tide_buf_done(&player->target);
    tide_buf_done(&player->body);
    tide_buf_done(&player->kept);
}

/* ---- making a request ---- */

static inline uint64_t pick(struct player *player, uint64_t bound)
{
    return tide_rng_below(&player->rng, bound);
}

static inline box_mailbox *player_mailbox(const struct player *player)
{
    return box_user_mailbox(box_cloud_user_at(player->cloud, 0));
}

/* Each of these gives a text that is valid until the next call. */
static inline const char *any_message(struct player *player)
{
    static char texts[4][BOX_ID_TEXT_BYTES];
    static size_t turn;
    char *text = texts[turn++ % 4];
    const box_mailbox *mailbox = player_mailbox(player);
    const uint32_t slot = (uint32_t)pick(player, box_mailbox_slots(mailbox));
    box_id_text(box_mailbox_at(mailbox, slot)->id, text);
    return text;
}

static inline const char *any_thread(struct player *player)
{
    static char text[BOX_ID_TEXT_BYTES];
    const box_mailbox *mailbox = player_mailbox(player);
    const uint32_t slot = (uint32_t)pick(player, box_mailbox_slots(mailbox));
    box_id_text(box_mailbox_at(mailbox, slot)->thread_id, text);
    return text;
}

static inline const char *any_draft(struct player *player)
{
    static char text[32];
    const box_mailbox *mailbox = player_mailbox(player);
    const uint32_t count = box_mailbox_drafts(mailbox);
    if (count == 0)
        return "r1";
    snprintf(text, sizeof text, "r%" PRIu64,
             box_mailbox_draft_at(mailbox, (uint32_t)pick(player, count))->id);
    return text;
}

static inline const char *any_label(struct player *player)
{
    const box_mailbox *mailbox = player_mailbox(player);
    const uint64_t number = pick(player, box_mailbox_labels_count(mailbox));
    return box_mailbox_label(mailbox, (uint32_t)number)->id;
}

__attribute__((format(printf, 3, 4))) static inline void to(struct player *player, const char *verb,
                                                            const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    player->verb = box_verb_of(tide_text_of(verb));
    tide_buf_clear(&player->target);
    box_add_cstr(&player->target, text);
}

__attribute__((format(printf, 2, 3))) static inline void with(struct player *player,
                                                              const char *format, ...)
{
    char text[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tide_buf_clear(&player->body);
    box_add_cstr(&player->body, text);
}

/* A small message, in base64. */
static inline void with_raw(struct player *player, const char *before, const char *after)
{
    static const char *const to[] = {"bob@x.org", "ada@x.org", "cleo@elsewhere.org"};
    char message[512];
    snprintf(message, sizeof message, "To: %s\r\nSubject: note %" PRIu64 "\r\n\r\nHello %" PRIu64,
             to[pick(player, 3)], pick(player, 5), pick(player, 1000));
    tide_buf_clear(&player->body);
    box_add_cstr(&player->body, before);
    box_add_base64url(&player->body, tide_text_of(message));
    box_add_cstr(&player->body, after);
}

static inline void ask_reading(struct player *player)
{
    static const char *const formats[] = {"full", "raw", "metadata", "minimal"};
    static const char *const searches[] = {"",
                                           "hello",
                                           "is:unread",
                                           "from:me",
                                           "in:anywhere",
                                           "label:inbox+-is:starred",
                                           "newer_than:3d"};
    switch (pick(player, 9)) {
    case 0:
        to(player, "GET", GMAIL "/profile");
        break;
    case 1:
        to(player, "GET", GMAIL "/messages?maxResults=%d&q=%s", (int)pick(player, 60) + 1,
           searches[pick(player, 7)]);
        break;
    case 2:
        to(player, "GET", GMAIL "/messages/%s?format=%s", any_message(player),
           formats[pick(player, 4)]);
        break;
    case 3:
        to(player, "GET", GMAIL "/threads/%s?format=%s", any_thread(player),
           formats[2 + pick(player, 2)]);
        break;
    case 4:
        to(player, "GET", GMAIL "/threads?maxResults=20");
        break;
    case 5:
        to(player, "GET", GMAIL "/history?startHistoryId=%" PRIu64,
           box_mailbox_history_id(player_mailbox(player)) - pick(player, 200));
        break;
    case 6:
        to(player, "GET", GMAIL "/labels/%s", any_label(player));
        break;
    case 7:
        to(player, "GET", GMAIL "/labels");
        break;
    default:
        to(player, "GET", GMAIL "/drafts");
        break;
    }
}

static inline void ask_messages(struct player *player)
{
    switch (pick(player, 8)) {
    case 0:
        to(player, "POST", GMAIL "/messages/%s/modify", any_message(player));
        with(player, "{\"addLabelIds\":[\"%s\"],\"removeLabelIds\":[\"%s\"]}", any_label(player),
             any_label(player));
        break;
    case 1:
        to(player, "POST", GMAIL "/messages/batchModify");
        with(player, "{\"ids\":[\"%s\",\"%s\"],\"addLabelIds\":[\"STARRED\"]}", any_message(player),
             any_message(player));
        break;
    case 2:
        to(player, "POST", GMAIL "/messages/%s/%s", any_message(player),
           pick(player, 2) ? "trash" : "untrash");
        break;
    case 3:
        to(player, "DELETE", GMAIL "/messages/%s", any_message(player));
        break;
    case 4:
        to(player, "POST", GMAIL "/messages%s", pick(player, 2) ? "" : "/import");
        with_raw(player, "{\"labelIds\":[\"INBOX\"],\"raw\":\"", "\"}");
        break;
    case 5:
        to(player, "POST", GMAIL "/messages/send");
        with_raw(player, "{\"raw\":\"", "\"}");
        break;
    case 6:
        to(player, "POST", GMAIL "/threads/%s/modify", any_thread(player));
        with(player, "{\"addLabelIds\":[\"UNREAD\"]}");
        break;
    default:
        to(player, "POST", "/upload" GMAIL "/messages?uploadType=media");
        player->type = "message/rfc822";
        with(player, "Subject: up %" PRIu64 "\r\n\r\nbody", pick(player, 100));
        break;
    }
}

static inline void ask_drafts_and_labels(struct player *player)
{
    switch (pick(player, 8)) {
    case 0:
        to(player, "POST", GMAIL "/drafts");
        with_raw(player, "{\"message\":{\"raw\":\"", "\"}}");
        break;
    case 1:
        to(player, "PUT", GMAIL "/drafts/%s", any_draft(player));
        with_raw(player, "{\"message\":{\"raw\":\"", "\"}}");
        break;
    case 2:
        to(player, "POST", GMAIL "/drafts/send");
        with(player, "{\"id\":\"%s\"}", any_draft(player));
        break;
    case 3:
        to(player, "DELETE", GMAIL "/drafts/%s", any_draft(player));
        break;
    case 4:
        to(player, "POST", GMAIL "/labels");
        with(player, "{\"name\":\"label %" PRIu64 "\"}", pick(player, 100));
        break;
    case 5:
        to(player, "PATCH", GMAIL "/labels/%s", any_label(player));
        with(player, "{\"name\":\"other %" PRIu64 "\"}", pick(player, 100));
        break;
    case 6:
        to(player, "DELETE", GMAIL "/labels/%s", any_label(player));
        break;
    default:
        to(player, "POST", GMAIL "/watch");
        with(player, "{\"topicName\":\"projects/p/topics/t\",\"labelIds\":[\"INBOX\"]}");
        break;
    }
}

/* A session, or a piece for the last one that was opened. */
static inline void ask_upload(struct player *player)
{
    if (player->upload[0] == '\0' || pick(player, 3) == 0) {
        to(player, "POST", "/upload" GMAIL "/messages?uploadType=resumable");
        with(player, "{\"labelIds\":[\"INBOX\"]}");
        return;
    }
    to(player, "PUT", "%s", player->upload);
    player->type = "message/rfc822";
    with(player, "Subject: whole %" PRIu64 "\r\n\r\nbody", pick(player, 100));
}

static inline void ask_signin(struct player *player)
{
    player->token = NULL;
    player->type = "application/x-www-form-urlencoded";
    switch (pick(player, 4)) {
    case 0:
        to(player, "GET",
           "/o/oauth2/v2/auth?client_id=c&redirect_uri=http://127.0.0.1:8/&response_type=code&"
           "scope=https://mail.google.com/&access_type=offline&state=%" PRIu64,
           pick(player, 100));
        break;
    case 1:
        to(player, "POST", "/token");
        with(player,
             "grant_type=authorization_code&code=%s&client_id=c&client_secret=s&"
             "redirect_uri=http://127.0.0.1:8/",
             player->code);
        break;
    case 2:
        to(player, "POST", "/token");
        with(player, "grant_type=refresh_token&refresh_token=%s&client_id=c&client_secret=s",
             player->refresh);
        break;
    default:
        to(player, "POST", "/revoke");
        with(player, "token=%s", pick(player, 10) == 0 ? player->refresh : "nothing");
        break;
    }
}

static inline void ask_others(struct player *player)
{
    switch (pick(player, 6)) {
    case 0:
        to(player, "POST", "/webmasters/v3/sites/sc-domain%%3Ax.org/searchAnalytics/query");
        with(player,
             "{\"startDate\":\"2026-08-0%" PRIu64 "\",\"endDate\":\"2026-08-20\","
             "\"dimensions\":[\"page\",\"query\"],\"rowLimit\":20}",
             1 + pick(player, 9));
        break;
    case 1:
        to(player, "POST", "/v1/chat/completions");
        with(player,
             "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Subject: bill "
             "%" PRIu64 "\\n\\nPlease pay.\"}]}",
             pick(player, 100));
        break;
    case 2:
        to(player, "POST", "/_cloud/mail");
        with_raw(player, "{\"user\":\"ada@x.org\",\"raw\":\"", "\"}");
        break;
    case 3:
        to(player, "POST", "/_cloud/clock");
        with(player, "{\"advance\":\"%" PRIu64 "s\"}", 1 + pick(player, 100));
        break;
    case 4:
        to(player, "POST", "/_cloud/mail/delete");
        with(player, "{\"user\":\"ada@x.org\",\"ids\":[\"%s\"]}", any_message(player));
        break;
    default:
        to(player, "GET", "/_cloud/users");
        break;
    }
}

static inline void ask_nonsense(struct player *player)
{
    switch (pick(player, 8)) {
    case 0:
        to(player, "GET", "/nowhere/%" PRIu64, pick(player, 100));
        break;
    case 1:
        to(player, "DELETE", GMAIL "/profile");
        break;
    case 2:
        player->token = "wrong";
        to(player, "POST", GMAIL "/messages/%s/trash", any_message(player));
        break;
    case 3:
        to(player, "POST", GMAIL "/messages/%s/modify", any_message(player));
        with(player, "{\"addLabelIds\":[\"STARRED\",\"NoSuchLabel\"]}");
        break;
    case 4:
        to(player, "POST", GMAIL "/messages/batchDelete");
        with(player, "{\"ids\":[\"%s\",3]}", any_message(player));
        break;
    case 5:
        to(player, "POST", GMAIL "/messages/%s/trash?fields=(", any_message(player));
        break;
    case 6:
        to(player, "POST", "/gmail/v1/users/bob@x.org/messages/%s/trash", any_message(player));
        break;
    default:
        to(player, "POST", GMAIL "/messages");
        with_raw(player, "{\"labelIds\":[\"INBOX\"],\"raw\":\"", "\",}");
        break;
    }
}

static inline void ask_batch(struct player *player)
{
    const uint64_t count = 1 + pick(player, 6);
    tide_buf_clear(&player->body);
    for (uint64_t i = 0; i < count; i++) {
        box_print(&player->body,
                  "--b\r\nContent-Type: application/http\r\nContent-ID: <%" PRIu64 ">\r\n\r\n", i);
        if (pick(player, 4) == 0)
            box_print(&player->body, "POST " GMAIL "/messages/%s/trash HTTP/1.1\r\n\r\n",
                      any_message(player));
        else
            box_print(&player->body, "GET " GMAIL "/messages/%s?format=minimal HTTP/1.1\r\n\r\n",
                      pick(player, 5) == 0 ? "ff" : any_message(player));
    }
    box_add_cstr(&player->body, "--b--\r\n");
    to(player, "POST", "/batch/gmail/v1");
    player->type = "multipart/mixed; boundary=b";
    player->calls = count;
}

static inline void player_compose(struct player *player)
{
    player->type = "application/json";
    player->token = "t";
    player->calls = 1;
    tide_buf_clear(&player->body);
    const uint64_t kind = pick(player, 100);
    if (kind < 30)
        ask_reading(player);
    else if (kind < 50)
        ask_messages(player);
    else if (kind < 65)
        ask_drafts_and_labels(player);
    else if (kind < 70)
        ask_upload(player);
    else if (kind < 78)
        ask_signin(player);
    else if (kind < 88)
        ask_others(player);
    else if (kind < 95)
        ask_nonsense(player);
    else
        ask_batch(player);
    player->now_ms += pick(player, 300);
}

/* ---- asking ---- */

static inline void learn(const char *text, const char *name, const char *ends, char *out,
                         size_t out_bytes)
{
    const char *at = strstr(text, name);
    if (at == NULL)
        return;
    at += strlen(name);
    snprintf(out, out_bytes, "%.*s", (int)strcspn(at, ends), at);
}

static inline void player_learn(struct player *player)
{
    const struct box_answer *answer = &player->answer;
    for (size_t i = 0; i < answer->headers_count; i++) {
        if (strcmp(answer->headers[i].name, "Location") != 0)
            continue;
        learn(answer->headers[i].value, "code=", "&", player->code, sizeof player->code);
        learn(answer->headers[i].value, "http://127.0.0.1:1", "", player->upload,
              sizeof player->upload);
    }
    learn(tide_buf_cstr(&answer->body), "\"refresh_token\": \"", "\"", player->refresh,
          sizeof player->refresh);
}

static inline int player_ask(struct player *player)
{
    char bearer[64];
    struct box_header headers[2];
    size_t count = 0;
    headers[count++] = (struct box_header){TIDE_TEXT("Content-Type"), tide_text_of(player->type)};
    if (player->token != NULL) {
        snprintf(bearer, sizeof bearer, "Bearer %s", player->token);
        headers[count++] = (struct box_header){TIDE_TEXT("Authorization"), tide_text_of(bearer)};
    }
    box_answer_done(&player->answer);
    box_answer_init(&player->answer);
    box_cloud_serve(player->cloud,
                    &(struct box_request){.verb = player->verb,
                                          .target = tide_buf_text(&player->target),
                                          .headers = headers,
                                          .headers_count = count,
                                          .body = tide_buf_text(&player->body),
                                          .origin = TIDE_TEXT("http://127.0.0.1:1")},
                    player->now_ms, &player->answer);
    box_cloud_finished(player->cloud, &player->answer.ticket, player->now_ms);
    player_learn(player);
    return player->answer.status;
}

#endif
