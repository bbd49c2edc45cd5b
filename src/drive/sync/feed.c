/* feed.c - the delta feed: pages become rows (D31 to D35, S12).
 *
 * A page and its link are one transaction, so a crash repeats at most one page.  A round that was begun
 * goes on where it was; one whose link is dead begins again. */
#include "base/check.h"
#include "base/hash.h"
#include "drive/ids.h"
#include "drive/mounts.h"
#include "drive/sync/inside.h"
#include "net/judge_graph.h"

#include <string.h>

enum {
    PAGE_ITEMS_MAX = 20000, /* the server sends at most a few hundred */
    PASSES_MAX = 40,        /* of completing items, each finds the folders above */
    COMPLETE_MAX = 200,     /* in one pass */
    RESYNCS_MAX = 3,
    DEAD_MAX = 2, /* a link that answers 400 or 404 so often is dead (D34) */
};

/* ---- a page ---- */

struct page {
    const struct tide_drive_looking *looking;
    tide_arena arena;
    struct tide_drive_seen *items;
    size_t count, room;
    bool other_root;
    bool root_gone; /* of a shared folder */
    tide_text next, delta;
    tide_drive_round begins; /* with this page; TIDE_DRIVE_ROUND_NONE: it was begun */
    uint64_t now_ms;
};

static void page_again(void *arg)
{
    struct page *page = arg;
    tide_arena_reset(&page->arena);
    page->count = 0;
    page->root_gone = false;
}

/* The top of what is synced is no row.  Of a shared folder it has a name and a parent like any item, and
 * what is above it is not ours; that its owner deleted it deletes nothing here (D16). */
static bool is_top(struct page *page, const struct tide_drive_item *item)
{
    const struct tide_drive_row *row = page->looking->row;
    const bool same = strcmp(item->id, row->root_id) == 0;
    if (row->parent != 0) {
        page->root_gone = page->root_gone || (same && item->seen.state == TIDE_DRIVE_REMOTE_GONE);
        return same || item->is_root;
    }
    /* D35: its root is not the one that was set up. */
    page->other_root = page->other_root || (item->is_root && !same);
    return item->is_root;
}

static tide_text keep(struct page *page, tide_text text, bool *failed)
{
    char *room = text.bytes == 0 ? NULL : tide_arena_copy(&page->arena, text.data, text.bytes);
    *failed = *failed || (room == NULL && text.bytes > 0);
    return (tide_text){room == NULL ? "" : room, room == NULL ? 0 : text.bytes};
}

static tide_status page_item(const struct tide_onedrive_item *item, void *arg)
{
    struct page *page = arg;
    struct tide_drive_item one;
    bool failed = false;
    if (page->count >= PAGE_ITEMS_MAX)
        return TIDE_FULL;
    tide_drive_item_of_answer(item, true, &one);
    if (is_top(page, &one))
        return TIDE_OK;
    if (!TIDE_GROW_IN(page->looking->drive->mem, page->items, page->room, page->count + 1,
                      PAGE_ITEMS_MAX))
        return TIDE_NO_MEMORY;
    struct tide_drive_seen *seen = &page->items[page->count];
    *seen = one.seen;
    seen->id = keep(page, one.seen.id, &failed);
    seen->parent_id = keep(page, one.seen.parent_id, &failed);
    seen->name = keep(page, one.seen.name, &failed);
    seen->etag = keep(page, one.seen.etag, &failed);
    seen->ctag = keep(page, one.seen.ctag, &failed);
    seen->target_drive = keep(page, one.seen.target_drive, &failed);
    seen->target_id = keep(page, one.seen.target_id, &failed);
    page->count++;
    return failed ? TIDE_NO_MEMORY : TIDE_OK;
}

static bool is_ignored(tide_text path, bool is_folder, void *arg)
{
    return tide_ignored_here(arg, path, is_folder);
}

static tide_status apply_ignore(tide_rows db, const struct tide_drive_looking *looking,
                                tide_error *err)
{
    if (looking->ignore == NULL)
        return TIDE_OK;
    return tide_drive_remote_ignore(db, is_ignored, (void *)(uintptr_t)looking->ignore, err);
}

/* Where a shortcut leads; in a shared folder none is followed (drive/mounts.h DMT3). */
static tide_status store_target(tide_rows db, const struct tide_drive_looking *looking,
                                const struct tide_drive_seen *seen, tide_error *err)
{
    if (seen->reason != TIDE_DRIVE_REASON_SHARED_FOLDER || looking->row->parent != 0)
        return TIDE_OK;
    return tide_drive_mount_seen(db, looking->row->number, seen->id, seen->target_drive,
                                 seen->target_id, err);
}

static tide_status store_page(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct page *page = arg;
    const tide_rows db =
        tide_drives_rows(tide_transaction_rows_often(transaction), page->looking->row->number);
    if (page->begins != TIDE_DRIVE_ROUND_NONE)
        TIDE_TRY(tide_drive_round_begin(db, page->begins, err));
    TIDE_TRY(
        tide_drive_page(db, page->items, page->count, page->next, page->delta, page->now_ms, err));
    for (size_t i = 0; i < page->count; i++)
        TIDE_TRY(store_target(db, page->looking, &page->items[i], err));
    return page->delta.bytes > 0 ? apply_ignore(db, page->looking, err) : TIDE_OK;
}

/* ---- a round ---- */

struct feeding {
    const struct tide_drive_looking *looking;
    struct tide_drive_feed feed;
    tide_drive_round round;  /* to begin */
    tide_drive_round begins; /* with the next page; TIDE_DRIVE_ROUND_NONE: it was begun */
    unsigned resyncs, dead;
    bool news; /* a page had an item */
};

static tide_status read_feed(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct feeding *feeding = arg;
    return tide_drive_feed_read(
        tide_drives_rows(tide_transaction_rows(transaction), feeding->looking->row->number),
        &feeding->feed, err);
}

static tide_status begin_round(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct feeding *feeding = arg;
    const tide_rows db =
        tide_drives_rows(tide_transaction_rows(transaction), feeding->looking->row->number);
    TIDE_TRY(tide_drive_round_begin(db, feeding->round, err));
    return tide_drive_feed_read(db, &feeding->feed, err);
}

static tide_status begin(struct feeding *feeding, tide_drive_round round, tide_error *err)
{
    feeding->round = round;
    feeding->begins = TIDE_DRIVE_ROUND_NONE;
    return tide_transact(feeding->looking->drive->options.engine, begin_round, feeding, err);
}

/* D34: the server lost its place; *link is where it wants the enumeration to begin. */
static tide_status resync(struct feeding *feeding, const struct tide_onedrive_page *answer,
                          tide_buf *link, tide_error *err)
{
    const bool apply = tide_graph_reason_of(err) == TIDE_GRAPH_RESYNC_APPLY;
    if (++feeding->resyncs > RESYNCS_MAX)
        return tide_error_set(err, TIDE_SERVER, "the list of changes ends again and again");
    TIDE_TRY(begin(feeding, apply ? TIDE_DRIVE_ROUND_FULL : TIDE_DRIVE_ROUND_FORGOT, err));
    tide_buf_clear(link);
    return tide_buf_add(link, answer->resync.data, answer->resync.bytes);
}

/* Whether the target of a shared folder can be read no more (D16); *err says why.  A link may be dead while
 * its folder is there. */
static bool is_target_refused(const struct feeding *feeding, tide_error *err)
{
    const struct tide_drive_looking *looking = feeding->looking;
    struct tide_onedrive_answer answer = {.value = NULL};
    tide_error why = {TIDE_OK, 0, ""};
    const tide_status rc =
        tide_onedrive_get(looking->user->client, looking->job, tide_text_of(looking->row->drive_id),
                          tide_text_of(looking->row->root_id), &answer, &why);
    tide_onedrive_answer_done(&answer);
    if (rc != TIDE_GONE && rc != TIDE_PERMANENT)
        return false;
    if (err != NULL)
        *err = why;
    return true;
}

/* A link that is refused twice is dead: all is listed again, and nothing counts as deleted but by the
 * end of that list. */
static tide_status refused(struct feeding *feeding, tide_status rc,
                           const struct tide_onedrive_page *answer, tide_buf *link, tide_error *err)
{
    const tide_graph_reason reason = tide_graph_reason_of(err);
    if (rc == TIDE_GONE && (reason == TIDE_GRAPH_RESYNC || reason == TIDE_GRAPH_RESYNC_APPLY ||
                            reason == TIDE_GRAPH_RESYNC_UPLOAD))
        return resync(feeding, answer, link, err);
    if ((rc == TIDE_GONE || rc == TIDE_PERMANENT) && feeding->looking->row->parent != 0 &&
        (link->bytes == 0 || is_target_refused(feeding, err)))
        return TIDE_GONE;
    if (link->bytes == 0 || (rc != TIDE_GONE && rc != TIDE_PERMANENT))
        return rc == TIDE_GONE ? tide_error_set(err, TIDE_SERVER, "the drive is not there") : rc;
    if (++feeding->dead < DEAD_MAX)
        return TIDE_OK;
    if (++feeding->resyncs > RESYNCS_MAX)
        return rc;
    feeding->dead = 0;
    tide_buf_clear(link);
    /* Of a round that ran, only its own link is dead: it begins again as it was (D31). */
    if (feeding->feed.next_link[0] != '\0' && feeding->feed.round != TIDE_DRIVE_ROUND_NONE) {
        TIDE_TRY(begin(feeding, feeding->feed.round, err));
        return feeding->feed.round == TIDE_DRIVE_ROUND_DELTA
                   ? tide_buf_add(link, feeding->feed.delta_link, strlen(feeding->feed.delta_link))
                   : TIDE_OK;
    }
    return begin(feeding, TIDE_DRIVE_ROUND_FORGOT, err);
}

/* Gets one page and stores it; *link becomes that of the next one, *ended_out: it was the last. */
static tide_status one_page(struct feeding *feeding, struct page *page, tide_buf *link,
                            bool *ended_out, tide_error *err)
{
    const struct tide_drive_looking *looking = feeding->looking;
    const struct tide_onedrive_sink sink = {page_item, page_again, page};
    struct tide_onedrive_page answer;
    tide_onedrive_page_init(&answer, looking->drive->mem);
    page_again(page);
    tide_status rc = tide_onedrive_delta(
        looking->user->client, looking->job, tide_text_of(looking->row->drive_id),
        looking->row->parent == 0 ? TIDE_TEXT("") : tide_text_of(looking->row->root_id),
        tide_buf_cstr(link), &sink, &answer, err);
    if (rc == TIDE_OK && page->root_gone)
        rc = tide_error_set(err, TIDE_GONE, "its owner deleted it");
    else if (rc == TIDE_OK && page->other_root)
        rc = tide_error_set(err, TIDE_PERMANENT,
                            "the drive has another root than when it was added: it was replaced");
    else if (rc == TIDE_OK) {
        feeding->dead = 0;
        page->next = tide_buf_text(&answer.next);
        page->delta = tide_buf_text(&answer.delta);
        page->now_ms = tide_world_now_unix_ms(looking->drive->options.world);
        page->begins = feeding->begins;
        /* A round without any change is not written at all (D33). */
        if (page->begins != TIDE_DRIVE_ROUND_DELTA || page->count > 0 || page->delta.bytes == 0)
            rc = tide_transact(looking->drive->options.engine, store_page, page, err);
        feeding->begins = TIDE_DRIVE_ROUND_NONE;
        feeding->news = feeding->news || page->count > 0;
        *ended_out = page->delta.bytes > 0;
        tide_buf_clear(link);
        if (rc == TIDE_OK)
            rc = tide_buf_add(link, answer.next.data, answer.next.bytes);
    } else {
        rc = refused(feeding, rc, &answer, link, err);
    }
    tide_onedrive_page_done(&answer);
    tide_job_beat(looking->job, 0);
    return rc;
}

static tide_status all_pages(struct feeding *feeding, tide_buf *link, tide_error *err)
{
    struct page page = {.looking = feeding->looking};
    tide_arena_init(&page.arena, feeding->looking->drive->mem, 256 << 20);
    bool ended = false;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && !ended)
        rc = tide_job_canceled(feeding->looking->job) ? TIDE_CANCELED
                                                      : one_page(feeding, &page, link, &ended, err);
    tide_arena_done(&page.arena);
    tide_mem_free(feeding->looking->drive->mem, page.items, page.room * sizeof *page.items);
    return rc;
}

/* ---- items that a GET completes (D32) ---- */

struct wanted {
    char ids[COMPLETE_MAX][TIDE_DRIVE_LOOK_ID_BYTES];
    size_t count;
    uint32_t number;
};

static void want(tide_text id, void *arg)
{
    struct wanted *wanted = arg;
    if (wanted->count < COMPLETE_MAX)
        tide_drive_id_lower(id, wanted->ids[wanted->count++]);
}

/* A number that tells one set from another. */
static uint64_t which_of(const struct wanted *wanted)
{
    uint64_t hash = TIDE_HASH_START;
    for (size_t i = 0; i < wanted->count; i++)
        hash = tide_hash(hash, tide_text_of(wanted->ids[i]));
    return hash;
}

static tide_status read_wanted(tide_rows db, bool news, struct wanted *wanted, tide_error *err)
{
    TIDE_TRY(tide_drive_incomplete(db, COMPLETE_MAX, want, wanted, err));
    TIDE_TRY(tide_drive_unsure(db, COMPLETE_MAX, want, wanted, err));
    return news ? tide_drive_doubled(db, COMPLETE_MAX, want, wanted, err) : TIDE_OK;
}

struct completing {
    const struct tide_drive_looking *looking;
    struct tide_drive_item item;
};

static tide_status store_item(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct completing *completing = arg;
    const tide_rows db =
        tide_drives_rows(tide_transaction_rows(transaction), completing->looking->row->number);
    uint64_t item = 0;
    TIDE_TRY(tide_drive_remote_put(db, &completing->item.seen, &item, err));
    TIDE_TRY(store_target(db, completing->looking, &completing->item.seen, err));
    return apply_ignore(db, completing->looking, err);
}

static tide_status complete_one(struct completing *completing, const char *id, tide_error *err)
{
    const struct tide_drive_looking *looking = completing->looking;
    struct tide_onedrive_answer answer = {.value = NULL};
    tide_status rc =
        tide_onedrive_get(looking->user->client, looking->job, tide_text_of(looking->row->drive_id),
                          tide_text_of(id), &answer, err);
    if (rc == TIDE_OK)
        tide_drive_item_of_answer(&answer.item, false, &completing->item);
    if (rc == TIDE_PERMANENT) { /* 403 says nothing about it (S12) */
        tide_onedrive_answer_done(&answer);
        return TIDE_OK;
    }
    if (rc == TIDE_GONE) {
        completing->item = (struct tide_drive_item){
            .seen = {.id = tide_text_of(id), .state = TIDE_DRIVE_REMOTE_GONE}};
        rc = TIDE_OK;
    }
    if (rc == TIDE_OK)
        rc = tide_transact(looking->drive->options.engine, store_item, completing, err);
    tide_onedrive_answer_done(&answer);
    return rc;
}

static tide_status complete_items(const struct tide_drive_looking *looking, bool news,
                                  tide_error *err)
{
    tide_status rc = TIDE_OK;
    struct completing *completing = tide_mem_new(looking->drive->mem, sizeof *completing);
    struct wanted *wanted = tide_mem_new(looking->drive->mem, sizeof *wanted);
    if (completing == NULL || wanted == NULL)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory to complete items");
    else
        completing->looking = looking;
    uint64_t last = 0;
    for (int pass = 0; rc == TIDE_OK && pass < PASSES_MAX; pass++) {
        struct tide_drive_reader *reader = NULL;
        wanted->count = 0;
        rc = tide_drive_reader_take(looking->drive, &reader, err);
        if (rc == TIDE_OK)
            rc = read_wanted(tide_drive_reader_rows(reader, looking->row->number), news, wanted,
                             err);
        tide_drive_reader_give(looking->drive, reader);
        if (rc != TIDE_OK || wanted->count == 0 || which_of(wanted) == last)
            break; /* the same ones again: they are not to be had now */
        last = which_of(wanted);
        for (size_t i = 0; rc == TIDE_OK && i < wanted->count; i++)
            rc = complete_one(completing, wanted->ids[i], err);
    }
    tide_mem_free(looking->drive->mem, wanted, sizeof *wanted);
    tide_mem_free(looking->drive->mem, completing, sizeof *completing);
    return rc;
}

/* ---- the feed ---- */

tide_status tide_drive_feed(const struct tide_drive_looking *looking, tide_error *err)
{
    struct feeding *feeding = tide_mem_new(looking->drive->mem, sizeof *feeding);
    tide_auto_buf link = tide_buf_in(looking->drive->mem, TIDE_ONEDRIVE_LINK_BYTES_MAX);
    if (feeding == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the list of changes");
    feeding->looking = looking;
    tide_status rc = tide_transact(looking->drive->options.engine, read_feed, feeding, err);
    const struct tide_drive_feed *feed = &feeding->feed;
    const uint64_t now_ms = tide_world_now_unix_ms(looking->drive->options.world);
    const bool runs = feed->round != TIDE_DRIVE_ROUND_NONE && feed->next_link[0] != '\0';
    /* Servers lose tombstones: everything is listed once a day (S12). */
    const bool full = looking->full || feed->delta_link[0] == '\0' ||
                      now_ms >= feed->full_at_ms + TIDE_DRIVE_DAY_MS;
    if (rc == TIDE_OK && runs && (!full || feed->round != TIDE_DRIVE_ROUND_DELTA)) {
        rc = tide_buf_add(&link, feed->next_link, strlen(feed->next_link));
    } else if (rc == TIDE_OK) {
        feeding->begins = full ? TIDE_DRIVE_ROUND_FULL : TIDE_DRIVE_ROUND_DELTA;
        if (!full)
            rc = tide_buf_add(&link, feed->delta_link, strlen(feed->delta_link));
    }
    if (rc == TIDE_OK)
        rc = all_pages(feeding, &link, err);
    const bool news = feeding->news;
    tide_mem_free(looking->drive->mem, feeding, sizeof *feeding);
    return rc == TIDE_OK ? complete_items(looking, news, err) : rc;
}
