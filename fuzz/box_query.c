/* box_query.c - listings.  The first byte says of what ('m'essages, 't'hreads, 'd'rafts,
 * 'h'istory), the rest is the query string unchanged; or 'q', and the rest is the search itself.
 *
 * A listing is followed over its pages and ends; a search finds, by its plan,
 * exactly what it would find without one (BQRY2). */
#include "box.h"

#include "cloudbox/mailbox/query.h"

enum { PAGES_MAX = 5, SLOTS_MAX = 64 };

static bool list(box_cloud *cloud, const char *what, tide_text query, tide_buf *token)
{
    tide_buf target;
    tide_buf_init(&target, tide_mem_heap(), 1 << 20);
    box_print(&target, "/gmail/v1/users/me/%s?", what);
    if (token->bytes > 0)
        box_print(&target, "pageToken=%s&", tide_buf_cstr(token));
    box_add(&target, query.data, query.bytes);
    const tide_text exact = fuzz_exact(tide_buf_text(&target));
    const struct box_header headers[] = {{TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer t")}};
    struct box_answer answer;
    fuzz_serve(cloud,
               &(struct box_request){.verb = BOX_GET,
                                     .target = exact,
                                     .headers = headers,
                                     .headers_count = 1,
                                     .origin = TIDE_TEXT("http://127.0.0.1:1")},
               FUZZ_START_MS, &answer);
    json_t *value = json_loadb(answer.body.data, answer.body.bytes, JSON_ALLOW_NUL, NULL);
    TIDE_ASSERT(value != NULL); /* every answer is JSON, whatever the request */
    const char *next = json_string_value(json_object_get(value, "nextPageToken"));
    tide_buf_clear(token);
    if (next != NULL)
        box_add_cstr(token, next);
    const bool more = next != NULL;
    json_decref(value);
    fuzz_answered(cloud, &answer, FUZZ_START_MS);
    fuzz_text_free(exact);
    tide_buf_done(&target);
    return more;
}

static bool visit(void *arg, uint32_t slot)
{
    bool *visited = arg;
    TIDE_ASSERT(slot < SLOTS_MAX);
    TIDE_ASSERT(!visited[slot]);
    visited[slot] = true;
    return true;
}

static void search(box_cloud *cloud, tide_text text)
{
    box_mailbox *mailbox = box_user_mailbox(box_cloud_user_at(cloud, 0));
    tide_arena arena;
    tide_arena_init(&arena, tide_mem_heap(), 16 << 20);
    const tide_text exact = fuzz_exact(text);
    const box_query *query = box_query_parse(exact, FUZZ_START_MS, mailbox, &arena);
    struct box_query_plan plan;
    bool visited[SLOTS_MAX] = {false};
    box_query_plan(query, &plan);
    if (!plan.nothing)
        box_mailbox_walk(mailbox, &plan.walk, BOX_WALK_START, visit, visited);
    for (uint32_t slot = 0; slot < box_mailbox_slots(mailbox); slot++) {
        const bool matches = box_query_match(query, mailbox, slot);
        TIDE_ASSERT(!matches || visited[slot]);
        TIDE_ASSERT(!plan.exact || matches == visited[slot]);
    }
    fuzz_text_free(exact);
    tide_arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    box_cloud *cloud = fuzz_cloud();
    const uint8_t kind = fuzz_u8(&input);
    const tide_text text = {(const char *)input.data, input.bytes};
    const char *what = kind == 't'   ? "threads"
                       : kind == 'd' ? "drafts"
                       : kind == 'h' ? "history"
                                     : "messages";
    tide_buf token;
    tide_buf_init(&token, tide_mem_heap(), 1 << 16);
    if (kind == 'q')
        search(cloud, text);
    else
        for (int i = 0; i < PAGES_MAX && list(cloud, what, text, &token); i++)
            continue;
    tide_buf_done(&token);
    fuzz_cloud_end(cloud);
    return 0;
}
