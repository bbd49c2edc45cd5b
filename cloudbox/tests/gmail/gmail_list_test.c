/* Listings of Gmail: pages are complete and without repeats whatever happens
 * between them, history tells every change, and faults strike as named. */
#include "cloudbox/gmail/gmail.h"

#include "base/check.h"
#include "base/map.h"
#include "cloudbox/gmail/page.h"
#include "cloudbox/mailbox/mime.h"
#include "cloudbox/services.h"
#include "cloudbox/tests/owned.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define NOW_MS UINT64_C(1700000000000)
#define DAY_MS (UINT64_C(24) * 3600 * 1000)

enum { MESSAGES = 400, NAMED_MAX = 2000, TARGET_BYTES = 1024 };

static const char *const subjects[] = {"tide", "moon", "wave", "sand", "tide table"};

/* ---- a cloud with one small mailbox ---- */

struct world {
    box_cloud *cloud;
    box_mailbox *mailbox;
    tide_rng rng;
    uint16_t work; /* a user label */
    int status;    /* of the last call */
};

static uint32_t add_message(struct world *world)
{
    char raw[512];
    (void)snprintf(
        raw, sizeof raw,
        "From: a%u@x.test\r\nTo: me@x.test\r\nSubject: %s\r\nMessage-ID: <%llx@x>\r\n"
        "\r\nbody %s\r\n",
        (unsigned)tide_rng_below(&world->rng, 5), subjects[tide_rng_below(&world->rng, 5)],
        (unsigned long long)tide_rng_next(&world->rng), subjects[tide_rng_below(&world->rng, 5)]);
    static const uint16_t choices[] = {BOX_LABEL_INBOX,   BOX_LABEL_UNREAD, BOX_LABEL_SPAM,
                                       BOX_LABEL_STARRED, BOX_LABEL_TRASH,  BOX_LABEL_SENT};
    uint16_t labels[8];
    size_t count = 0;
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (tide_rng_chance(&world->rng, 1,
                            choices[i] == BOX_LABEL_SPAM || choices[i] == BOX_LABEL_TRASH ? 10 : 2))
            labels[count++] = choices[i];
    if (tide_rng_chance(&world->rng, 1, 4))
        labels[count++] = world->work;
    /* Some join a thread; many share their date with others. */
    char thread[BOX_ID_TEXT_BYTES] = "";
    const uint32_t slots = box_mailbox_slots(world->mailbox);
    if (slots > 0 && tide_rng_chance(&world->rng, 1, 2))
        box_id_text(
            box_mailbox_at(world->mailbox, (uint32_t)tide_rng_below(&world->rng, slots))->thread_id,
            thread);
    return box_mailbox_insert(
        world->mailbox, &(struct box_insert){.raw = tide_text_of(raw),
                                             .date_ms = NOW_MS - DAY_MS * 100 +
                                                        tide_rng_below(&world->rng, 200) * 1000,
                                             .thread_id = tide_text_of(thread),
                                             .labels = labels,
                                             .labels_count = count});
}

static void world_done(struct world *world)
{
    box_cloud_free(world->cloud);
}

static json_t *get(struct world *world, const char *target)
{
    const struct box_header bearer = {TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer T")};
    const struct box_request request = {
        .verb = BOX_GET, .target = tide_text_of(target), .headers = &bearer, .headers_count = 1};
    auto_answer answer;
    box_answer_init(&answer);
    box_cloud_serve(world->cloud, &request, NOW_MS, &answer);
    box_cloud_finished(world->cloud, &answer.ticket, NOW_MS);
    world->status = answer.status;
    json_t *json = json_loadb(answer.body.data, answer.body.bytes, 0, NULL);
    if (json == NULL)
        fail_msg("%s: no JSON: %s", target, tide_buf_cstr(&answer.body));
    return json;
}

static int status_of(struct world *world, const char *target)
{
    json_decref(get(world, target));
    return world->status;
}

#define USER "/gmail/v1/users/me/"

static void world_init(struct world *world, uint64_t seed, uint32_t messages, uint32_t permille)
{
    static const struct box_service *const services[] = {&box_gmail, &box_mail, &box_pubsub,
                                                         &box_signin, NULL};
    world->rng = tide_rng_seeded(seed);
    world->cloud = box_cloud_new(&(struct box_options){.seed = seed,
                                                       .start_unix_ms = NOW_MS,
                                                       .list_inversions_permille = permille,
                                                       .services = services});
    struct box_user *user = box_cloud_user_need(world->cloud, TIDE_TEXT("me@x.test"), NULL);
    world->mailbox = box_user_mailbox(user);
    tide_error err;
    assert_ok(box_cloud_add_token(world->cloud, TIDE_TEXT("T"), TIDE_TEXT("me@x.test"), &err));
    assert_int_equal(status_of(world, USER "profile"), 200); /* starts the clock */
    uint32_t number = 0;
    assert_ok(
        box_mailbox_label_create(world->mailbox, &(struct box_label){.name = "Work"}, &number));
    world->work = (uint16_t)number;
    for (uint32_t i = 0; i < messages; i++)
        (void)add_message(world);
}

#define WORLD(world, seed, messages, permille)                                                     \
    __attribute__((cleanup(world_done))) struct world world;                                       \
    world_init(&world, seed, messages, permille)

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The target of a page; `parameters` is "" or begins with '&'. */
static json_t *get_page(struct world *world, const char *what, const char *parameters,
                        uint64_t size, const char *token)
{
    char target[TARGET_BYTES];
    const int bytes =
        snprintf(target, sizeof target, USER "%s?maxResults=%u%s%s%s", what, (unsigned)size,
                 parameters, token != NULL ? "&pageToken=" : "", token != NULL ? token : "");
    assert_true(bytes > 0 && (size_t)bytes < sizeof target);
    json_t *page = get(world, target);
    if (world->status != 200)
        fail_msg("%s: %d %s", target, world->status, json_dumps(page, 0));
    return page;
}

/* ---- gathering all pages ---- */

struct named {
    char id[NAMED_MAX][BOX_ID_TEXT_BYTES];
    size_t count;
};

static bool named_has(const struct named *named, const char *id)
{
    for (size_t i = 0; i < named->count; i++)
        if (strcmp(named->id[i], id) == 0)
            return true;
    return false;
}

static void named_add(struct named *named, const char *id)
{
    assert_true(named->count < NAMED_MAX);
    (void)snprintf(named->id[named->count++], BOX_ID_TEXT_BYTES, "%s", id);
}

/* Appends the ids of a page and returns its token, NULL at the end. */
static char *take_page(json_t *page, const char *what, uint64_t size, struct named *named)
{
    const json_t *entries = json_object_get(page, what);
    assert_true(entries == NULL || json_array_size(entries) > 0); /* empty ones are absent */
    assert_true(json_array_size(entries) <= size);
    assert_true(json_is_integer(json_object_get(page, "resultSizeEstimate")));
    for (size_t i = 0; i < json_array_size(entries); i++)
        named_add(named, text_of(json_array_get(entries, i), "id"));
    const char *token = text_of(page, "nextPageToken");
    if (token != NULL)
        assert_int_equal(json_array_size(entries), size);
    char *copy = token != NULL ? strdup(token) : NULL;
    json_decref(page);
    return copy;
}

static void gather(struct world *world, const char *what, const char *parameters,
                   struct named *named)
{
    named->count = 0;
    char *token = NULL;
    do {
        const uint64_t size = 1 + tide_rng_below(&world->rng, 60);
        char *next = take_page(get_page(world, what, parameters, size, token), what, size, named);
        free(token);
        token = next;
    } while (token != NULL);
}

/* ---- what should be found, by looking at every message ---- */

struct listing {
    const char *parameters;
    const char *subject; /* NULL: any */
    uint16_t labels[3];  /* all of them */
    size_t labels_count;
    bool spam_trash;
};

static const struct listing listings[] = {
    {"", NULL, {0}, 0, false},
    {"&q=-in:chats", NULL, {0}, 0, false},
    {"&includeSpamTrash=true", NULL, {0}, 0, true},
    {"&q=in:anywhere", NULL, {0}, 0, true},
    {"&labelIds=INBOX", NULL, {BOX_LABEL_INBOX}, 1, false},
    {"&labelIds=INBOX&labelIds=UNREAD", NULL, {BOX_LABEL_INBOX, BOX_LABEL_UNREAD}, 2, false},
    {"&labelIds=TRASH", NULL, {BOX_LABEL_TRASH}, 1, true},
    {"&q=in:spam", NULL, {BOX_LABEL_SPAM}, 1, true},
    {"&labelIds=SPAM&q=is:unread", NULL, {BOX_LABEL_SPAM, BOX_LABEL_UNREAD}, 2, true},
    {"&q=subject:tide", "Subject: tide", {0}, 0, false},
    {"&q=subject:moon+label:work&labelIds=INBOX", "Subject: moon", {BOX_LABEL_INBOX}, 1, false},
    {"&q=subject:cheese", "cheese", {0}, 0, false},
    {"&q=after:1", NULL, {0}, 0, false},
};

static bool listing_holds(const struct world *world, const struct listing *listing, uint32_t slot)
{
    const struct box_message *message = box_mailbox_at(world->mailbox, slot);
    if (message->gone)
        return false;
    if (!listing->spam_trash && (box_mailbox_has_label(world->mailbox, slot, BOX_LABEL_SPAM) ||
                                 box_mailbox_has_label(world->mailbox, slot, BOX_LABEL_TRASH)))
        return false;
    for (size_t i = 0; i < listing->labels_count; i++)
        if (!box_mailbox_has_label(world->mailbox, slot, listing->labels[i]))
            return false;
    if (strstr(listing->parameters, "label:work") != NULL &&
        !box_mailbox_has_label(world->mailbox, slot, world->work))
        return false;
    if (listing->subject == NULL)
        return true;
    tide_auto_buf scratch = tide_buf_heap(1 << 20);
    const tide_text raw = box_mailbox_raw(world->mailbox, slot, &scratch);
    return memmem(raw.data, raw.bytes, listing->subject, strlen(listing->subject)) != NULL;
}

static const box_mailbox *sorted_mailbox; /* qsort hands nothing on */

static int by_newest(const void *a, const void *b)
{
    const struct box_message *x = box_mailbox_at(sorted_mailbox, *(const uint32_t *)a);
    const struct box_message *y = box_mailbox_at(sorted_mailbox, *(const uint32_t *)b);
    if (x->date_ms != y->date_ms)
        return x->date_ms > y->date_ms ? -1 : 1;
    return x->id > y->id ? -1 : x->id < y->id;
}

/* Messages, or threads at their newest message. */
static void expect(const struct world *world, const struct listing *listing, bool threads,
                   struct named *named)
{
    uint32_t slots[NAMED_MAX];
    size_t count = 0;
    for (uint32_t slot = 0; slot < box_mailbox_slots(world->mailbox); slot++)
        if (listing_holds(world, listing, slot))
            slots[count++] = slot;
    sorted_mailbox = world->mailbox;
    qsort(slots, count, sizeof slots[0], by_newest);
    named->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct box_message *message = box_mailbox_at(world->mailbox, slots[i]);
        char id[BOX_ID_TEXT_BYTES];
        box_id_text(threads ? message->thread_id : message->id, id);
        if (!threads || !named_has(named, id))
            named_add(named, id);
    }
}

static void assert_same(const struct named *found, const struct named *expected, const char *what)
{
    if (found->count != expected->count)
        fail_msg("%s: %zu listed instead of %zu", what, found->count, expected->count);
    for (size_t i = 0; i < found->count; i++)
        if (strcmp(found->id[i], expected->id[i]) != 0)
            fail_msg("%s: entry %zu is %s instead of %s", what, i, found->id[i], expected->id[i]);
}

TEST(pages_cover_everything_once_newest_first)
{
    static struct named found, expected;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        WORLD(world, seed, MESSAGES, 0);
        for (uint32_t i = 0; i < MESSAGES; i += 7)
            box_mailbox_remove(world.mailbox, i);
        for (size_t i = 0; i < sizeof listings / sizeof listings[0]; i++) {
            expect(&world, &listings[i], false, &expected);
            gather(&world, "messages", listings[i].parameters, &found);
            assert_same(&found, &expected, listings[i].parameters);
            expect(&world, &listings[i], true, &expected);
            gather(&world, "threads", listings[i].parameters, &found);
            assert_same(&found, &expected, listings[i].parameters);
        }
    }
}

TEST(an_empty_listing_has_no_array)
{
    WORLD(world, 1, 0, 0);
    static const char *const lists[] = {"messages", "threads", "drafts"};
    for (size_t i = 0; i < 3; i++) {
        json_auto_t *page = get_page(&world, lists[i], "", 100, NULL);
        json_auto_t *expected = json_pack("{s:i}", "resultSizeEstimate", 0);
        assert_true(json_equal(page, expected));
    }
}

/* While one client pages, mail comes and goes.  What was there from beginning to
 * end and did not change must be listed, once. */
TEST(changes_between_pages_lose_and_repeat_nothing)
{
    static struct named found, before, after;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        WORLD(world, seed, MESSAGES, 0);
        const struct listing *listing = &listings[seed % (sizeof listings / sizeof listings[0])];
        expect(&world, listing, false, &before);
        found.count = 0;
        char *token = NULL;
        do {
            const uint64_t size = 1 + tide_rng_below(&world.rng, 30);
            char *next = take_page(get_page(&world, "messages", listing->parameters, size, token),
                                   "messages", size, &found);
            free(token);
            token = next;
            for (uint64_t i = tide_rng_below(&world.rng, 5); i > 0; i--) {
                (void)add_message(&world);
                const uint32_t slot =
                    (uint32_t)tide_rng_below(&world.rng, box_mailbox_slots(world.mailbox));
                if (!box_mailbox_at(world.mailbox, slot)->gone)
                    box_mailbox_remove(world.mailbox, slot);
            }
        } while (token != NULL);
        expect(&world, listing, false, &after);
        for (size_t i = 0; i < before.count; i++)
            if (named_has(&after, before.id[i]) && !named_has(&found, before.id[i]))
                fail_msg("seed %u: %s was lost", (unsigned)seed, before.id[i]);
        for (size_t i = 0; i < found.count; i++)
            for (size_t k = 0; k < i; k++)
                if (strcmp(found.id[i], found.id[k]) == 0)
                    fail_msg("seed %u: %s came twice", (unsigned)seed, found.id[i]);
    }
}

/* ---- threads and drafts ---- */

TEST(a_thread_tells_its_newest_snippet_and_highest_history_id)
{
    WORLD(world, 1, 0, 0);
    uint32_t slots[3];
    char thread[BOX_ID_TEXT_BYTES] = "";
    static const char *const raws[] = {"Subject: x\r\n\r\nfirst words\r\n",
                                       "Subject: x\r\n\r\nsecond words\r\n",
                                       "Subject: x\r\n\r\nthird words\r\n"};
    static const uint16_t inbox[] = {BOX_LABEL_INBOX};
    for (size_t i = 0; i < 3; i++) {
        slots[i] = box_mailbox_insert(
            world.mailbox, &(struct box_insert){.raw = tide_text_of(raws[i]),
                                                .date_ms = NOW_MS - 3 * DAY_MS + i * DAY_MS,
                                                .thread_id = tide_text_of(thread),
                                                .labels = inbox,
                                                .labels_count = i < 2});
        box_id_text(box_mailbox_at(world.mailbox, slots[0])->thread_id, thread);
    }
    static const uint16_t starred[] = {BOX_LABEL_STARRED};
    box_mailbox_relabel(world.mailbox, slots[0], starred, 1, NULL, 0);
    json_auto_t *page = get_page(&world, "threads", "&labelIds=INBOX", 100, NULL);
    const json_t *threads = json_object_get(page, "threads");
    assert_int_equal(json_array_size(threads), 1);
    const json_t *entry = json_array_get(threads, 0);
    assert_string_equal(text_of(entry, "id"), thread);
    assert_non_null(strstr(text_of(entry, "snippet"), "third words"));
    char history_id[24];
    (void)snprintf(history_id, sizeof history_id, "%llu",
                   (unsigned long long)box_mailbox_history_id(world.mailbox));
    assert_string_equal(text_of(entry, "historyId"), history_id);
}

TEST(drafts_are_listed_with_their_present_message)
{
    static struct named found;
    WORLD(world, 1, 50, 0);
    for (uint32_t i = 0; i < 30; i++) {
        char raw[64];
        (void)snprintf(raw, sizeof raw, "Subject: draft %s\r\n\r\n%u\r\n", i % 2 ? "odd" : "even",
                       i);
        const struct box_insert insert = {.raw = tide_text_of(raw), .date_ms = NOW_MS + i};
        const uint32_t draft = box_mailbox_draft_create(world.mailbox, &insert);
        if (i % 3 == 0)
            box_mailbox_draft_update(world.mailbox, draft, &insert);
        if (i % 5 == 0)
            box_mailbox_draft_remove(world.mailbox, draft);
    }
    gather(&world, "drafts", "", &found);
    assert_int_equal(found.count, 24);
    gather(&world, "drafts", "&q=subject:odd", &found);
    assert_int_equal(found.count, 12);
    for (size_t i = 0; i < found.count; i++) {
        const uint32_t draft = box_mailbox_draft_find(world.mailbox, tide_text_of(found.id[i]));
        assert_int_not_equal(draft, BOX_SLOT_NONE);
    }
    json_auto_t *page = get_page(&world, "drafts", "", 1, NULL);
    const json_t *entry = json_array_get(json_object_get(page, "drafts"), 0);
    const uint32_t draft =
        box_mailbox_draft_find(world.mailbox, tide_text_of(text_of(entry, "id")));
    char id[BOX_ID_TEXT_BYTES];
    const uint32_t slot = box_mailbox_draft_at(world.mailbox, draft)->slot;
    box_id_text(box_mailbox_at(world.mailbox, slot)->id, id);
    assert_string_equal(text_of(json_object_get(entry, "message"), "id"), id);
}

/* ---- refusals ---- */

static const struct {
    const char *target;
    int status;
    const char *message; /* a piece of it; NULL: any */
} refusals[] = {
    {USER "messages?maxResults=500", 200, NULL},
    {USER "messages?maxResults=501", 400, "maxResults"},
    {USER "messages?maxResults=0", 400, "maxResults"},
    {USER "messages?maxResults=-1", 400, "maxResults"},
    {USER "messages?maxResults=many", 400, "maxResults"},
    {USER "messages?pageToken=", 200, NULL},
    {USER "messages?pageToken=garbage", 400, "Invalid pageToken"},
    {USER "messages?pageToken=00000000000000000000000000000000ffffffffffffffff", 400,
     "Invalid pageToken"},
    {USER "messages?labelIds=NOWHERE", 400, "Invalid label: NOWHERE"},
    {USER "messages?labelIds=INBOX&labelIds=inbox", 400, "Invalid label: inbox"},
    {USER "messages?q=foo:bar", 200, NULL},
    {USER "threads?maxResults=501", 400, "maxResults"},
    {USER "drafts?maxResults=501", 400, "maxResults"},
    {USER "history", 400, "startHistoryId"},
    {USER "history?startHistoryId=", 400, "startHistoryId"},
    {USER "history?startHistoryId=x", 400, "startHistoryId"},
    {USER "history?startHistoryId=0", 404, "Requested entity was not found."},
    {USER "history?startHistoryId=1", 404, NULL},
    {USER "history?startHistoryId=18446744073709551615", 404, NULL},
    {USER "history?startHistoryId=1&historyTypes=cheese", 400, "historyTypes"},
    {USER "history?startHistoryId=1&labelId=NOWHERE", 400, "Invalid label"},
    {USER "history?startHistoryId=1&maxResults=501", 400, "maxResults"},
    {USER "history?startHistoryId=1&pageToken=x", 400, "Invalid pageToken"},
};

TEST(what_is_wrong_is_refused_with_its_name)
{
    WORLD(world, 1, 20, 0);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        json_auto_t *json = get(&world, refusals[i].target);
        const char *message = text_of(json_object_get(json, "error"), "message");
        if (world.status != refusals[i].status ||
            (refusals[i].message != NULL && strstr(message, refusals[i].message) == NULL))
            fail_msg("%s: %d %s", refusals[i].target, world.status, json_dumps(json, 0));
    }
    json_auto_t *stats = box_cloud_stats(world.cloud, NULL, false);
    auto_text *text = json_dumps(json_object_get(stats, "violations"), 0);
    assert_non_null(strstr(text, "page-size"));
}

TEST(a_token_opens_only_its_own_listing)
{
    WORLD(world, 1, MESSAGES, 0);
    json_auto_t *page = get_page(&world, "messages", "&labelIds=INBOX&labelIds=UNREAD", 5, NULL);
    const char *token = text_of(page, "nextPageToken");
    assert_non_null(token);
    static const struct {
        const char *rest;
        int status;
    } others[] = {
        {"messages?labelIds=INBOX&labelIds=UNREAD", 200},
        {"messages?labelIds=UNREAD&labelIds=INBOX&maxResults=7", 200},
        {"messages?labelIds=INBOX", 400},
        {"messages?labelIds=INBOX&labelIds=UNREAD&q=tide", 400},
        {"messages?labelIds=INBOX&labelIds=UNREAD&includeSpamTrash=true", 400},
        {"messages?q=x", 400},
        {"threads?labelIds=INBOX&labelIds=UNREAD", 400},
        {"drafts?x=y", 400},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char target[TARGET_BYTES];
        (void)snprintf(target, sizeof target, USER "%s&pageToken=%s", others[i].rest, token);
        json_decref(get(&world, target));
        if (world.status != others[i].status)
            fail_msg("%s: %d", target, world.status);
    }
}

/* Handlers are called without the gate, for a token with one scope. */
TEST(a_token_for_metadata_may_list_but_not_search)
{
    static const struct {
        uint32_t scopes;
        const char *q;
        int status;
    } cases[] = {
        {BOX_SCOPE_METADATA, "tide", 403},
        {BOX_SCOPE_METADATA, "", 200},
        {BOX_SCOPE_READONLY, "tide", 200},
        {BOX_SCOPE_ALL, "tide", 200},
    };
    WORLD(world, 1, 10, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        auto_answer answer;
        box_answer_init(&answer);
        tide_auto_arena scratch = tide_arena_heap(BOX_SCRATCH_BYTES_MAX);
        static struct box_call call;
        memset(&call, 0, sizeof call);
        call.cloud = world.cloud;
        call.user = box_cloud_user(world.cloud, TIDE_TEXT("me@x.test"));
        call.scopes = cases[i].scopes;
        call.method = &box_gmail.methods[0];
        call.now_ms = NOW_MS;
        call.scratch = &scratch;
        call.answer = &answer;
        call.target.params[0] = (struct box_param){TIDE_TEXT("q"), tide_text_of(cases[i].q)};
        call.target.params_count = 1;
        box_gmail_messages_list(&call);
        assert_int_equal(answer.status, cases[i].status);
        if (answer.status == 403)
            assert_non_null(strstr(tide_buf_cstr(&answer.body), "does not support 'q'"));
    }
}

/* ---- disorder ---- */

TEST(neighbours_are_swapped_the_same_way_every_time)
{
    static struct named found, again, expected;
    WORLD(world, 5, MESSAGES, 200);
    expect(&world, &listings[0], false, &expected);
    found.count = again.count = 0;
    free(take_page(get_page(&world, "messages", "", 500, NULL), "messages", 500, &found));
    free(take_page(get_page(&world, "messages", "", 500, NULL), "messages", 500, &again));
    assert_same(&found, &again, "again");
    assert_int_equal(found.count, expected.count);
    size_t swapped = 0;
    for (size_t i = 0; i < found.count; i++) {
        if (strcmp(found.id[i], expected.id[i]) == 0)
            continue;
        assert_true(i + 1 < found.count);
        assert_string_equal(found.id[i], expected.id[i + 1]);
        assert_string_equal(found.id[i + 1], expected.id[i]);
        swapped++;
        i++;
    }
    assert_in_range(swapped, found.count / 20, found.count / 2);
    /* Pages are cut before they are shuffled, so nothing is lost between them. */
    gather(&world, "messages", "", &again);
    assert_int_equal(again.count, expected.count);
    for (size_t i = 0; i < expected.count; i++)
        assert_true(named_has(&again, expected.id[i]));
}

TEST(a_page_loop_gives_the_same_token_for_ever)
{
    static struct named first, second;
    WORLD(world, 1, MESSAGES, 0);
    add_fault(world.cloud,
              "{\"method\":\"gmail.users.messages.list\",\"count\":3,\"fault\":\"page-loop\"}");
    first.count = 0;
    auto_text *token =
        take_page(get_page(&world, "messages", "", 10, NULL), "messages", 10, &first);
    assert_non_null(token);
    for (size_t i = 0; i < 2; i++) {
        second.count = 0;
        auto_text *same =
            take_page(get_page(&world, "messages", "", 10, token), "messages", 10, &second);
        assert_string_equal(same, token);
        assert_same(&second, &first, "the page again");
    }
    second.count = 0;
    auto_text *other =
        take_page(get_page(&world, "messages", "", 10, token), "messages", 10, &second);
    assert_string_not_equal(other, token);
}

TEST(a_shifted_listing_repeats_entries_and_still_ends)
{
    static struct named found, expected;
    WORLD(world, 1, MESSAGES, 0);
    add_fault(world.cloud, "{\"method\":\"*\",\"rate\":1,\"fault\":\"list-shift\"}");
    expect(&world, &listings[0], false, &expected);
    gather(&world, "messages", "", &found);
    assert_true(found.count > expected.count);
    for (size_t i = 0; i < expected.count; i++)
        assert_true(named_has(&found, expected.id[i]));
}

/* ---- history ---- */

/* What a client would hold: labels of each message, by id; '-' when deleted. */
struct mirror {
    char id[NAMED_MAX][BOX_ID_TEXT_BYTES];
    char labels[NAMED_MAX][200];
    size_t count;
};

static char *mirror_labels(struct mirror *mirror, const char *id)
{
    size_t i = 0;
    while (i < mirror->count && strcmp(mirror->id[i], id) != 0)
        i++;
    if (i == mirror->count) {
        assert_true(mirror->count < NAMED_MAX);
        (void)snprintf(mirror->id[mirror->count++], BOX_ID_TEXT_BYTES, "%s", id);
        (void)snprintf(mirror->labels[i], sizeof mirror->labels[i], "-");
    }
    return mirror->labels[i];
}

static void mirror_state(struct mirror *mirror, struct world *world)
{
    mirror->count = 0;
    for (uint32_t slot = 0; slot < box_mailbox_slots(world->mailbox); slot++) {
        const struct box_message *message = box_mailbox_at(world->mailbox, slot);
        char id[BOX_ID_TEXT_BYTES];
        box_id_text(message->id, id);
        char *labels = mirror_labels(mirror, id);
        if (message->gone)
            continue;
        labels[0] = '\0';
        size_t count = 0;
        const uint16_t *numbers = box_mailbox_labels(world->mailbox, message->label_set, &count);
        for (size_t i = 0; i < count; i++)
            (void)snprintf(labels + strlen(labels), 200 - strlen(labels), "%s ",
                           box_mailbox_label(world->mailbox, numbers[i])->id);
    }
}

/* The labels of a message in a record are those after the change; the change
 * itself must fit them. */
static void mirror_apply(struct mirror *mirror, const json_t *entry)
{
    static const char *const keys[] = {"messagesAdded", "messagesDeleted", "labelsAdded",
                                       "labelsRemoved"};
    size_t changes = 0;
    for (size_t k = 0; k < 4; k++) {
        const json_t *list = json_object_get(entry, keys[k]);
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *message = json_object_get(json_array_get(list, i), "message");
            char *labels = mirror_labels(mirror, text_of(message, "id"));
            assert_string_equal(
                text_of(json_array_get(json_object_get(entry, "messages"), 0), "id"),
                text_of(message, "id"));
            assert_non_null(text_of(message, "threadId"));
            assert_true((k == 0) == (labels[0] == '-'));
            labels[0] = '\0';
            const json_t *ids = json_object_get(message, "labelIds");
            assert_true(ids == NULL || json_array_size(ids) > 0);
            for (size_t n = 0; n < json_array_size(ids); n++)
                (void)snprintf(labels + strlen(labels), 200 - strlen(labels), "%s ",
                               json_string_value(json_array_get(ids, n)));
            const json_t *changed = json_object_get(json_array_get(list, i), "labelIds");
            assert_true((k >= 2) == (json_array_size(changed) > 0));
            for (size_t n = 0; n < json_array_size(changed); n++) {
                const char *label = json_string_value(json_array_get(changed, n));
                assert_true((k == 2) == (strstr(labels, label) != NULL));
            }
            if (k == 1)
                (void)snprintf(labels, 200, "-");
            changes++;
        }
    }
    assert_int_equal(changes, 1);
}

static void change_at_random(struct world *world)
{
    static const uint16_t choices[] = {BOX_LABEL_INBOX, BOX_LABEL_UNREAD, BOX_LABEL_STARRED,
                                       BOX_LABEL_TRASH};
    const uint32_t slot = (uint32_t)tide_rng_below(&world->rng, box_mailbox_slots(world->mailbox));
    const uint64_t way = tide_rng_below(&world->rng, 6);
    if (way == 0)
        (void)add_message(world);
    else if (box_mailbox_at(world->mailbox, slot)->gone)
        return;
    else if (way == 1)
        box_mailbox_remove(world->mailbox, slot);
    else
        box_mailbox_relabel(world->mailbox, slot, &choices[tide_rng_below(&world->rng, 4)],
                            way % 3 != 0, &choices[tide_rng_below(&world->rng, 4)], way % 2);
}

/* Reads all of history from `start`, changing the mailbox between pages, until
 * it is level; returns how many records came. */
static size_t follow(struct world *world, uint64_t start, const char *parameters, bool changing,
                     struct mirror *mirror)
{
    size_t records = 0;
    char *token = NULL;
    uint64_t last = start;
    do {
        const uint64_t size = 1 + tide_rng_below(&world->rng, 20);
        char rest[200];
        (void)snprintf(rest, sizeof rest, "&startHistoryId=%llu%s", (unsigned long long)start,
                       parameters);
        json_auto_t *page = get_page(world, "history", rest, size, token);
        const json_t *history = json_object_get(page, "history");
        assert_true(history == NULL || json_array_size(history) > 0);
        assert_true(json_array_size(history) <= size);
        for (size_t i = 0; i < json_array_size(history); i++) {
            const json_t *entry = json_array_get(history, i);
            const uint64_t id = strtoull(text_of(entry, "id"), NULL, 10);
            assert_true(id > last);
            last = id;
            if (mirror != NULL)
                mirror_apply(mirror, entry);
            records++;
        }
        assert_int_equal(strtoull(text_of(page, "historyId"), NULL, 10),
                         box_mailbox_history_id(world->mailbox));
        free(token);
        token =
            text_of(page, "nextPageToken") != NULL ? strdup(text_of(page, "nextPageToken")) : NULL;
        if (changing && token != NULL && tide_rng_chance(&world->rng, 1, 2))
            change_at_random(world);
    } while (token != NULL);
    return records;
}

TEST(history_tells_every_change_whatever_the_pages)
{
    static struct mirror mirror, truth;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        WORLD(world, seed, 100, 0);
        mirror_state(&mirror, &world);
        const uint64_t start = box_mailbox_history_id(world.mailbox);
        assert_int_equal(follow(&world, start, "", false, NULL), 0);
        const uint32_t before = box_mailbox_history_count(world.mailbox);
        for (size_t i = 0; i < 300; i++)
            change_at_random(&world);
        const size_t records = follow(&world, start, "", true, &mirror);
        assert_int_equal(records, box_mailbox_history_count(world.mailbox) - before);
        mirror_state(&truth, &world);
        for (size_t i = 0; i < truth.count; i++)
            assert_string_equal(mirror_labels(&mirror, truth.id[i]), truth.labels[i]);
    }
}

static bool record_has(const struct world *world, const struct box_record *record, uint32_t label)
{
    size_t count = 0;
    const uint16_t *labels = box_mailbox_labels(world->mailbox, record->label_set, &count);
    for (size_t i = 0; i < count; i++)
        if (labels[i] == label)
            return true;
    return false;
}

TEST(history_can_be_narrowed_by_type_and_label)
{
    static const struct {
        const char *parameters;
        uint32_t changes;
        bool inbox;
    } cases[] = {
        {"", 15, false},
        {"&historyTypes=messageAdded", BOX_CHANGE_ADDED, false},
        {"&historyTypes=messageDeleted&historyTypes=labelAdded",
         BOX_CHANGE_DELETED | BOX_CHANGE_LABELED, false},
        {"&historyTypes=labelRemoved&labelId=INBOX", BOX_CHANGE_UNLABELED, true},
        {"&labelId=INBOX", 15, true},
    };
    WORLD(world, 3, 50, 0);
    const uint64_t start = box_mailbox_history_id(world.mailbox);
    const uint32_t from = box_mailbox_history_count(world.mailbox);
    for (size_t i = 0; i < 300; i++)
        change_at_random(&world);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        size_t expected = 0;
        for (uint32_t i = from; i < box_mailbox_history_count(world.mailbox); i++) {
            const struct box_record *record = box_mailbox_history_at(world.mailbox, i);
            expected += (record->change & cases[c].changes) != 0 &&
                        (!cases[c].inbox || record_has(&world, record, BOX_LABEL_INBOX));
        }
        assert_true(expected > 0);
        assert_int_equal(follow(&world, start, cases[c].parameters, false, NULL), expected);
    }
}

TEST(expired_history_is_not_found)
{
    WORLD(world, 1, 20, 0);
    char target[TARGET_BYTES];
    (void)snprintf(target, sizeof target, USER "history?startHistoryId=%llu",
                   (unsigned long long)box_mailbox_at(world.mailbox, 5)->history_id);
    assert_int_equal(status_of(&world, target), 200);
    add_fault(world.cloud, "{\"method\":\"*\",\"count\":1,\"fault\":\"history-expired\"}");
    assert_int_equal(status_of(&world, target), 404);
    assert_int_equal(status_of(&world, target), 200);
    box_mailbox_history_expire_all(world.mailbox);
    assert_int_equal(status_of(&world, target), 404);
    (void)snprintf(target, sizeof target, USER "history?startHistoryId=%llu",
                   (unsigned long long)box_mailbox_history_id(world.mailbox));
    assert_int_equal(status_of(&world, target), 200);
}

int main(void)
{
    box_mime_start();
    return tests_run(NULL);
}
