/* The cloud as a whole: the same requests give the same bytes (BCLD1), what is refused
 * changes nothing (BCLD2), every call is recorded once (BCLD3), what was kept makes the
 * same cloud again, and serving costs no memory. */
#include "cloud_player.h"
#include "resident.h"

#include "cloudbox/record/referee.h"
#include "support/scale.h"

#include <unistd.h>

enum { STEPS = 2000, SERVED = 1000000, GROWTH_KIB_MAX = 4096 };

static const uint64_t seeds[] = {1, 2, 3, 4};

static void add_fault(struct player *player, const char *rule)
{
    TIDE_ASSERT(box_cloud_add_fault(player->cloud, tide_text_of(rule), NULL) == TIDE_OK);
}

/* ---- BCLD1 ---- */

static void assert_same(const struct player *a, const struct player *b, uint64_t seed, size_t step)
{
    const struct box_answer *one = &a->answer;
    const struct box_answer *two = &b->answer;
    bool same = one->status == two->status && strcmp(one->type, two->type) == 0 &&
                one->headers_count == two->headers_count && one->body.bytes == two->body.bytes &&
                memcmp(&one->ticket, &two->ticket, sizeof one->ticket) == 0 &&
                one->plan.delay_ms == two->plan.delay_ms && one->plan.fate == two->plan.fate &&
                one->plan.fate_at == two->plan.fate_at && one->plan.stall_ms == two->plan.stall_ms;
    same = same &&
           (one->body.bytes == 0 || memcmp(one->body.data, two->body.data, one->body.bytes) == 0);
    for (size_t i = 0; same && i < one->headers_count; i++)
        same = strcmp(one->headers[i].name, two->headers[i].name) == 0 &&
               strcmp(one->headers[i].value, two->headers[i].value) == 0;
    if (!same)
        fail_msg("seed %" PRIu64 ", step %zu: %s %s with %s\n%d %s\n%d %s", seed, step,
                 box_verb_name(a->verb), tide_buf_cstr(&a->target), tide_buf_cstr(&a->body),
                 one->status, tide_buf_cstr(&one->body), two->status, tide_buf_cstr(&two->body));
}

static void rough(struct player *player)
{
    player_set_up(player);
    add_fault(player, "{\"method\":\"gmail.*\",\"rate\":0.05,\"fault\":\"503\"}");
    add_fault(player, "{\"method\":\"*\",\"rate\":0.05,\"fault\":\"latency\",\"ms\":5,"
                      "\"jitter_ms\":50}");
    add_fault(player, "{\"method\":\"gmail.*\",\"rate\":0.03,\"fault\":\"garbage\"}");
    add_fault(player, "{\"method\":\"gmail.*\",\"rate\":0.03,\"fault\":\"reset-after\"}");
    add_fault(player, "{\"method\":\"batch\",\"rate\":0.1,\"fault\":\"batch-reorder\"}");
    add_fault(player, "{\"method\":\"batch\",\"rate\":0.05,\"fault\":\"500\"}");
}

static const struct box_options rough_options = {.seed = 11,
                                                 .quota = BOX_QUOTA_2026,
                                                 .latency_ms = 10,
                                                 .jitter_ms = 20,
                                                 .auto_consent = true,
                                                 .list_inversions_permille = 20};

TEST(the_same_requests_give_the_same_bytes)
{
    for (size_t k = 0; k < sizeof seeds / sizeof seeds[0]; k++) {
        struct player a, b;
        player_init(&a, &rough_options, seeds[k]);
        player_init(&b, &rough_options, seeds[k]);
        rough(&a);
        rough(&b);
        for (size_t step = 0; step < scaled(STEPS); step++) {
            player_compose(&a);
            player_compose(&b);
            assert_string_equal(tide_buf_cstr(&a.target), tide_buf_cstr(&b.target));
            player_ask(&a);
            player_ask(&b);
            assert_same(&a, &b, seeds[k], step);
        }
        assert_int_equal(a.kept.bytes, b.kept.bytes);
        assert_memory_equal(a.kept.data, b.kept.data, a.kept.bytes);
        player_done(&a);
        player_done(&b);
    }
}

/* ---- BCLD2 and BCLD3 ---- */

static void mix(uint64_t *hash, uint64_t value)
{
    tide_rng rng = tide_rng_seeded(*hash ^ value);
    *hash = tide_rng_next(&rng);
}

/* Everything a mailbox shows. */
static uint64_t mailbox_hash(const box_mailbox *mailbox)
{
    uint64_t hash = box_mailbox_history_id(mailbox);
    for (uint32_t slot = 0; slot < box_mailbox_slots(mailbox); slot++) {
        const struct box_message *message = box_mailbox_at(mailbox, slot);
        size_t count = 0;
        const uint16_t *labels = box_mailbox_labels(mailbox, message->label_set, &count);
        mix(&hash, message->id * 2 + message->gone);
        mix(&hash, message->history_id);
        for (size_t i = 0; i < count; i++)
            mix(&hash, labels[i]);
    }
    for (uint32_t i = 0; i < box_mailbox_labels_count(mailbox); i++) {
        const struct box_label *label = box_mailbox_label(mailbox, i);
        for (const char *c = label->name; *c != '\0'; c++)
            mix(&hash, (uint64_t)*c);
        mix(&hash, label->messages * 2 + label->gone);
    }
    for (uint32_t i = 0; i < box_mailbox_drafts(mailbox); i++) {
        const struct box_draft *draft = box_mailbox_draft_at(mailbox, i);
        mix(&hash, draft->id + draft->slot + draft->gone);
    }
    return hash;
}

static uint64_t cloud_hash(box_cloud *cloud)
{
    uint64_t hash = 0;
    const struct box_user *user = NULL;
    for (size_t i = 0; (user = box_cloud_user_at(cloud, i)) != NULL; i++)
        mix(&hash, mailbox_hash(box_user_mailbox(user)));
    return hash;
}

/* All calls in the record: of users, without sign-in, and those outside the APIs. */
static size_t recorded(box_cloud *cloud)
{
    json_auto_t *stats = box_cloud_stats(cloud, NULL, false);
    const char *name = NULL;
    json_t *value = NULL;
    json_int_t calls =
        json_integer_value(json_object_get(json_object_get(stats, "nobody"), "calls"));
    json_object_foreach(json_object_get(stats, "users"), name, value) calls +=
        json_integer_value(json_object_get(value, "calls"));
    json_object_foreach(json_object_get(stats, "strays"), name, value) calls +=
        json_integer_value(value);
    return (size_t)calls;
}

static bool is_signin(const struct player *player)
{
    return player->type[12] == 'x'; /* application/x-www-form-urlencoded */
}

/* Signing in is left out of BCLD2: using a code twice is refused, and ends the grant. */
TEST(what_is_refused_changes_nothing_and_every_call_is_recorded_once)
{
    size_t refused = 0;
    for (size_t k = 0; k < sizeof seeds / sizeof seeds[0]; k++) {
        struct player player;
        player_init(&player, &rough_options, seeds[k]);
        rough(&player);
        for (size_t step = 0; step < scaled(STEPS / 2); step++) {
            const uint64_t hash = cloud_hash(player.cloud);
            const size_t kept = player.kept.bytes;
            const size_t calls = recorded(player.cloud);
            player_compose(&player);
            const int status = player_ask(&player);
            if (status >= 400 && !is_signin(&player)) {
                refused++;
                if (kept != player.kept.bytes || hash != cloud_hash(player.cloud))
                    fail_msg("seed %" PRIu64 ", step %zu: %d but changed: %s %s", seeds[k], step,
                             status, box_verb_name(player.verb), tide_buf_cstr(&player.target));
            }
            if (player.calls != 1 && status != 200)
                player.calls = 1; /* the batch itself was refused */
            if (recorded(player.cloud) != calls + player.calls)
                fail_msg("seed %" PRIu64 ", step %zu: %zu calls recorded as %zu: %s", seeds[k],
                         step, player.calls, recorded(player.cloud) - calls,
                         tide_buf_cstr(&player.target));
        }
        player_done(&player);
    }
    assert_true(refused > scaled(STEPS) / 20);
}

/* ---- replay ---- */

static void replay(struct player *from, struct player *into)
{
    tide_text rest = tide_buf_text(&from->kept);
    while (rest.bytes > 0) {
        const char *end = memchr(rest.data, '\n', rest.bytes);
        const size_t bytes = (size_t)(end - rest.data);
        tide_error err = {TIDE_OK, 0, ""};
        if (box_cloud_replay(into->cloud, (tide_text){rest.data, bytes}, &err) != TIDE_OK)
            fail_msg("%s: %.*s", err.text, (int)(bytes < 300 ? bytes : 300), rest.data);
        rest = (tide_text){end + 1, rest.bytes - bytes - 1};
    }
    memcpy(into->code, from->code, sizeof into->code);
    memcpy(into->refresh, from->refresh, sizeof into->refresh);
    into->now_ms = from->now_ms;
    into->rng = from->rng;
    from->upload[0] = '\0'; /* sessions do not outlive a program */
}

/* Random decisions start again with a program, so what it decides is left out: the order in which
 * parts of a batch are done, the names of upload sessions, the order of rows that tie. */
static bool is_comparable(const struct player *player)
{
    const char *target = tide_buf_cstr(&player->target);
    return strstr(target, "/batch/") == NULL && strstr(target, "resumable") == NULL &&
           strstr(target, "upload_id") == NULL && strstr(target, "searchAnalytics") == NULL;
}

TEST(a_cloud_made_again_from_what_was_kept_answers_the_same)
{
    const struct box_options options = {.seed = 5, .auto_consent = true, .token_life_s = 600};
    for (size_t k = 0; k < sizeof seeds / sizeof seeds[0]; k++) {
        struct player a, b;
        player_init(&a, &options, seeds[k]);
        player_init(&b, &options, seeds[k]);
        player_set_up(&a);
        for (size_t step = 0; step < scaled(STEPS / 2); step++) {
            player_compose(&a);
            player_ask(&a);
        }
        replay(&a, &b);
        for (size_t step = 0; step < scaled(STEPS / 2); step++) {
            player_compose(&a);
            player_compose(&b);
            assert_string_equal(tide_buf_cstr(&a.target), tide_buf_cstr(&b.target));
            if (!is_comparable(&a))
                continue;
            player_ask(&a);
            player_ask(&b);
            assert_same(&a, &b, seeds[k], step);
        }
        assert_int_equal(cloud_hash(a.cloud), cloud_hash(b.cloud));
        player_done(&a);
        player_done(&b);
    }
}

TEST(a_token_that_is_good_again_is_so_after_a_replay)
{
    const struct box_options options = {.seed = 5};
    struct player a, b;
    player_init(&a, &options, 1);
    player_init(&b, &options, 1);
    player_set_up(&a);
    a.type = "application/json";
    to(&a, "POST", "/_cloud/token/revoke");
    with(&a, "{\"user\":\"ada@x.org\"}");
    assert_int_equal(player_ask(&a), 200);
    to(&a, "POST", "/_cloud/token");
    with(&a, "{\"user\":\"ada@x.org\",\"token\":\"t\"}");
    assert_int_equal(player_ask(&a), 200);
    replay(&a, &b);
    b.type = "application/json";
    b.token = "t";
    to(&b, "GET", GMAIL "/profile");
    assert_int_equal(player_ask(&b), 200);
    player_done(&a);
    player_done(&b);
}

/* ---- memory ---- */

/* Nothing is kept of a call that changes nothing, also when it is refused or signs
 * a user in again and again. */
TEST(a_million_requests_cost_no_memory)
{
    const struct box_options options = {
        .seed = 5, .quota = BOX_QUOTA_2026, .auto_consent = true, .token_life_s = 60};
    struct player player;
    player_init(&player, &options, 1);
    player_set_up(&player);
    const size_t count = scaled(SERVED);
    long settled_kib = 0;
    for (size_t i = 0; i < count; i++) {
        player.type = "application/json";
        player.token = "t";
        tide_buf_clear(&player.body);
        const uint64_t kind = pick(&player, 100);
        if (kind < 40)
            to(&player, "GET", GMAIL "/messages/%s?format=minimal", any_message(&player));
        else if (kind < 60)
            to(&player, "GET", GMAIL "/profile");
        else if (kind < 80)
            ask_nonsense(&player);
        else if (kind < 90)
            to(&player, "GET", GMAIL "/messages?maxResults=5");
        else if (kind < 92)
            ask_signin(&player);
        else
            to(&player, "GET", "/v1/models");
        player.now_ms += 20;
        (void)player_ask(&player);
        tide_buf_clear(&player.kept);
        if (i == count / 2)
            settled_kib = resident_kib(getpid());
    }
    const long grown_kib = resident_kib(getpid()) - settled_kib;
    if (grown_kib > GROWTH_KIB_MAX + RESIDENT_SLACK_KIB)
        fail_msg("%zu requests cost %ld KiB", count / 2, grown_kib);
    player_done(&player);
}
