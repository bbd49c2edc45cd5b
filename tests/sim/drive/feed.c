/* feed.c - the delta feed of the world online, with its bad habits. */
#include "drive_sim.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAGE_ITEMS = 3, ITEMS_MAX = 4096 };

/* Notes what changed since the feed last looked; a new version for each. */
void drive_feed_look(struct drive_stage *stage)
{
    const struct drive_side *online = &stage->world->online;
    if (online->count > stage->shadow_capacity) {
        stage->shadow_capacity = 2 * online->count + 64;
        stage->shadow = realloc(stage->shadow, stage->shadow_capacity * sizeof *stage->shadow);
        stage->previous =
            realloc(stage->previous, stage->shadow_capacity * sizeof *stage->previous);
        stage->versions =
            realloc(stage->versions, stage->shadow_capacity * sizeof *stage->versions);
    }
    for (size_t i = 0; i < online->count; i++) {
        const struct drive_item *is = &online->items[i];
        if (i < stage->shadow_count) {
            const struct drive_item *was = &stage->shadow[i];
            if (was->alive == is->alive && was->parent == is->parent &&
                was->content == is->content && strcmp(was->name, is->name) == 0)
                continue;
        }
        stage->previous[i] = i < stage->shadow_count ? stage->shadow[i] : *is;
        stage->shadow[i] = *is;
        stage->versions[i] = ++stage->feed_clock;
    }
    stage->shadow_count = online->count;
}

void drive_seen_of(struct drive_stage *stage, const struct drive_item *item,
                   struct tide_drive_seen *seen_out, char texts[2][32])
{
    (void)snprintf(texts[0], 32, "%" PRIu64, item->id);
    (void)snprintf(texts[1], 32, "%" PRIu64, item->parent);
    *seen_out = (struct tide_drive_seen){
        .id = tide_text_of(texts[0]),
        .parent_id = tide_text_of(texts[1]),
        .name = tide_text_of(item->name),
        .etag = TIDE_TEXT("e"),
        .ctag = drive_happens(stage, F32_TAG_ALONE, 20) ? TIDE_TEXT("c2") : TIDE_TEXT("c"),
        .kind = item->kind,
        .state = item->alive ? TIDE_DRIVE_REMOTE_LIVE : TIDE_DRIVE_REMOTE_GONE,
        .content = drive_content(stage, item->content, false)};
    if (item->alive && item->id == stage->locked)
        seen_out->state = TIDE_DRIVE_REMOTE_SKIPPED;
}

/* ---- what happens to a drive online by itself ---- */

/* Tells the folder and all beneath it again. */
static void tell_again(struct drive_stage *stage, uint64_t folder)
{
    drive_feed_look(stage);
    for (size_t i = 0; i < stage->shadow_count; i++)
        if (drive_is_beneath(&stage->world->online, stage->shadow[i].id, folder))
            stage->versions[i] = ++stage->feed_clock;
}

/* F36: a folder may not be read for a while: a vault that locks, a share that is lost. */
static void locks(struct drive_stage *stage)
{
    struct drive_side *online = &stage->world->online;
    uint64_t seen = 0, pick = 0;
    if (stage->locked != 0) {
        const uint64_t was = stage->locked;
        if (stage->calm || tide_rng_chance(&stage->rng, 1, 3) || drive_find(online, was) == NULL) {
            stage->locked = 0;
            tell_again(stage, was);
        }
        return;
    }
    for (size_t i = 0; i < online->count; i++)
        if (online->items[i].alive && online->items[i].kind == TIDE_DRIVE_FOLDER &&
            tide_rng_chance(&stage->rng, 1, ++seen))
            pick = online->items[i].id;
    if (pick != 0 &&
        drive_happens(stage, F36_LOCKED, stage->plant == PLANT_LOCK_BELIEVED ? 3 : 20)) {
        stage->locked = pick;
        tell_again(stage, pick);
    }
}

/* F33: the server changes a file some time after it was uploaded (D40). */
static void rewrites(struct drive_stage *stage)
{
    struct drive_item *item = drive_find(&stage->world->online, stage->rewrites);
    stage->rewrites = 0;
    if (item == NULL || stage->world->next_content >= DRIVE_CONTENTS_MAX - 8)
        return;
    tide_sim_note(stage->sim, "server rewrites %s %" PRIu64 " = %" PRIu64, item->name, item->id,
                  stage->world->next_content);
    stage->totals.faults[F33_REWRITTEN]++;
    stage->replaced[item->content] = stage->replaced[stage->rewritten[item->content]] = true;
    item->content = stage->world->next_content++;
}

struct feed {
    struct tide_drive_seen items[ITEMS_MAX];
    char texts[ITEMS_MAX][2][32];
    size_t count;
};

static void push(struct drive_stage *stage, struct feed *feed, const struct drive_item *item)
{
    if (feed->count == ITEMS_MAX)
        abort();
    drive_seen_of(stage, item, &feed->items[feed->count], feed->texts[feed->count]);
    feed->count++;
}

/* What changed after `token`, or everything that is alive. */
static void collect(struct drive_stage *stage, uint64_t token, bool full, struct feed *feed)
{
    for (size_t i = 0; i < stage->shadow_count; i++) {
        const struct drive_item *item = &stage->shadow[i];
        if (full ? !item->alive : stage->versions[i] <= token)
            continue;
        if (item->alive && stage->locked != 0 && item->id != stage->locked &&
            drive_is_beneath(&stage->world->online, item->id, stage->locked))
            continue; /* not listed */
        /* These two are repaired by the next full listing, which would hide a lost token too. */
        const bool token_plant =
            stage->plant == PLANT_TOKEN_FIRST || stage->plant == PLANT_EMPTY_TOKEN;
        if (!item->alive && !token_plant && drive_happens(stage, F29_TOMBSTONE_LOST, 30)) {
            stage->lost_tombstone = true;
            continue;
        }
        if (drive_happens(stage, F28_REORDERED, 6)) { /* an older state first: the last one wins */
            struct drive_item older = *item;
            older.alive = true;
            push(stage, feed, &older);
            feed->items[feed->count - 1].name = TIDE_TEXT("older");
        }
        if (!full && item->alive && stage->previous[i].alive &&
            drive_happens(stage, F31_ECHO, 20)) {
            const struct drive_item *was = &stage->previous[i];
            push(stage, feed, was); /* as it was; the truth comes with a later round */
            /* What is new in a folder that an echo puts into a dead one dies with it, and comes back
             * only with a full listing (src/drive/README.md). */
            if (was->kind == TIDE_DRIVE_FOLDER && was->parent != TIDE_DRIVE_ROOT && !token_plant &&
                drive_find(&stage->world->online, was->parent) == NULL)
                stage->lost_tombstone = true;
            stage->versions[i] = ++stage->feed_clock;
            continue;
        }
        push(stage, feed, item);
    }
    /* Children before parents, as long as the last state of an id stays the last. */
    for (size_t i = 1; i < feed->count && !stage->calm; i++) {
        const struct tide_drive_seen one = feed->items[i - 1];
        if (tide_rng_chance(&stage->rng, 1, 3) && !tide_text_equal(one.id, feed->items[i].id)) {
            feed->items[i - 1] = feed->items[i];
            feed->items[i] = one;
        }
    }
}

static tide_status in_transaction(struct drive_stage *stage, tide_status rc, tide_error *err)
{
    if (rc == TIDE_OK)
        rc = tide_db_exec(&stage->db, "COMMIT", err);
    if (rc != TIDE_OK && stage->db.handle != NULL && !sqlite3_get_autocommit(stage->db.handle))
        (void)sqlite3_exec(stage->db.handle, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

static tide_status give_page(struct drive_stage *stage, const struct feed *feed, size_t from,
                             size_t count, const char *next, const char *delta, tide_error *err)
{
    if (stage->plant == PLANT_TOKEN_FIRST && *delta != '\0') {
        char sql[128];
        (void)snprintf(sql, sizeof sql, "UPDATE drive_1_state SET delta_link = '%s', round = 0",
                       delta);
        TIDE_TRY(tide_db_exec(&stage->db, sql, err));
        if (drive_may_die(stage, F1_BETWEEN_PAGES))
            return TIDE_STOPPED;
    }
    TIDE_TRY(tide_db_exec(&stage->db, "BEGIN IMMEDIATE", err));
    tide_status rc = tide_drive_page(drive_db(stage), feed->items + from, count, tide_text_of(next),
                                     tide_text_of(delta), stage->world->now_ms, err);
    if (rc == TIDE_OK && stage->plant == PLANT_EMPTY_TOKEN && *delta != '\0' && feed->count == 0) {
        char sql[128];
        (void)snprintf(sql, sizeof sql, "UPDATE drive_1_state SET delta_link = '%s'", delta);
        rc = tide_db_exec(&stage->db, sql, err);
    }
    return in_transaction(stage, rc, err);
}

static tide_status begin(struct drive_stage *stage, tide_drive_round round, tide_error *err)
{
    TIDE_TRY(tide_db_exec(&stage->db, "BEGIN IMMEDIATE", err));
    return in_transaction(stage, tide_drive_round_begin(drive_db(stage), round, err), err);
}

struct wanted {
    uint64_t ids[64];
    size_t count;
};

static void want(tide_text id, void *arg)
{
    struct wanted *wanted = arg;
    uint64_t number = 0;
    if (wanted->count < 64 && tide_text_to_u64(id, &number))
        wanted->ids[wanted->count++] = number;
}

/* A GET for each item whose name or parent is not known (D32). */
static tide_status complete_items(struct drive_stage *stage, tide_error *err)
{
    struct wanted wanted = {.count = 0};
    TIDE_TRY(tide_drive_incomplete(drive_db(stage), 64, want, &wanted, err));
    for (size_t i = 0; i < wanted.count; i++) {
        struct drive_item *item = drive_find(&stage->world->online, wanted.ids[i]);
        struct tide_drive_seen seen;
        char texts[2][32];
        uint64_t number = 0;
        if (item == NULL || (stage->locked != 0 && item->id != stage->locked &&
                             drive_is_beneath(&stage->world->online, item->id, stage->locked)))
            continue;
        drive_seen_of(stage, item, &seen, texts);
        TIDE_TRY(tide_db_exec(&stage->db, "BEGIN IMMEDIATE", err));
        TIDE_TRY(in_transaction(stage, tide_drive_remote_put(drive_db(stage), &seen, &number, err),
                                err));
    }
    return TIDE_OK;
}

/* One round.  Links are "token:position"; a round that was begun in an earlier life goes on. */
tide_status drive_observe_online(struct drive_stage *stage, tide_error *err)
{
    static struct feed feed;
    struct tide_drive_feed state;
    rewrites(stage);
    locks(stage);
    TIDE_TRY(tide_drive_feed_read(drive_db(stage), &state, err));
    const bool gone =
        drive_happens(stage, F27_GONE_TOKEN, stage->plant == PLANT_LOCK_BELIEVED ? 3 : 25);
    const bool full = state.delta_link[0] == '\0' || gone ||
                      (stage->calm && stage->lost_tombstone) ||
                      state.round >= TIDE_DRIVE_ROUND_FULL;
    /* The feed may lag: it answers as if nothing had happened, with a newer token (D33). */
    const bool lags = !full && !stage->calm && tide_rng_chance(&stage->rng, 1, 6);
    drive_feed_look(stage);
    feed.count = 0;
    const uint64_t end = stage->feed_clock;
    if (!lags)
        collect(stage, full ? 0 : strtoull(state.delta_link, NULL, 10), full, &feed);
    TIDE_TRY(begin(stage, full ? TIDE_DRIVE_ROUND_FULL : TIDE_DRIVE_ROUND_DELTA, err));
    char next[32], delta[32];
    (void)snprintf(delta, sizeof delta, "%" PRIu64, end);
    size_t at = 0;
    for (; at + PAGE_ITEMS < feed.count; at += PAGE_ITEMS) {
        (void)snprintf(next, sizeof next, "next:%zu", at);
        TIDE_TRY(give_page(stage, &feed, at, PAGE_ITEMS, next, "", err));
        if (drive_may_die(stage, F1_BETWEEN_PAGES))
            return TIDE_STOPPED;
    }
    TIDE_TRY(give_page(stage, &feed, at, feed.count - at, "", delta, err));
    if (full)
        stage->lost_tombstone = false;
    return complete_items(stage, err);
}
