/* list.c - messages.list, threads.list and drafts.list.
 *
 * All three walk the mailbox newest first from where the page token stands and
 * collect what the query lets through.  A token holds the last entry given
 * out, not a count, so what arrives or goes meanwhile shifts nothing: a message
 * that stays as it is is listed exactly once (unless "list-shift" strikes, which
 * plays the less careful cloud that Gmail is seen to be). */
#include "cloudbox/gmail/gmail.h"

#include "base/check.h"
#include "base/map.h"
#include "cloudbox/gmail/page.h"
#include "cloudbox/mailbox/query.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

enum { LIST_SHIFT_MAX = 5 };

struct listing {
    struct box_call *call;
    box_mailbox *mailbox;
    const box_query *query;
    struct box_query_plan plan;
    bool hide_spam_trash;
    const uint16_t *labels; /* of labelIds, which the query knows nothing of */
    size_t labels_count;
    uint64_t key;
    struct box_page_at start;
    uint32_t page_size;
    /* What a method wants beyond the query; NULL: nothing. */
    bool (*wants)(struct listing *listing, uint32_t slot);
    tide_map map; /* for `wants` */
    uint32_t slots[BOX_PAGE_MAX];
    uint32_t count;
    bool more; /* there is at least one behind the page */
};

/* ---- what is asked ---- */

/* A token bound to metadata may not search: that would be a way to
 * read bodies word by word. */
static bool query_allowed(struct box_call *call, tide_text q)
{
    if (q.bytes == 0 || !box_gmail_metadata_bound(call))
        return true;
    box_fail(call, 403, "global", "forbidden", "PERMISSION_DENIED",
             "Metadata scope does not support 'q' parameter");
    return false;
}

/* labelIds as numbers, behind those the plan has; also whether spam or trash
 * is among them. */
static bool labels_read(struct listing *listing, bool *spam_trash_out)
{
    struct box_call *call = listing->call;
    const struct box_walk *walk = &listing->plan.walk;
    /* One more, for the label of drafts. */
    uint16_t *labels =
        tide_arena_take(call->scratch, sizeof *labels * (walk->labels_count + BOX_PARAMS_MAX + 1));
    TIDE_ASSERT(labels != NULL);
    if (walk->labels_count > 0)
        memcpy(labels, walk->labels, sizeof *labels * walk->labels_count);
    size_t count = walk->labels_count;
    for (size_t i = 0; i < BOX_PARAMS_MAX; i++) {
        const tide_text id = box_call_param_at(call, "labelIds", i);
        if (id.data == NULL)
            break;
        uint32_t number = 0;
        if (!box_mailbox_label_by_id(listing->mailbox, id, &number)) {
            box_fail_argument(call, "Invalid label: %.*s", (int)(id.bytes < 100 ? id.bytes : 100),
                              id.data);
            return false;
        }
        if (number == BOX_LABEL_SPAM || number == BOX_LABEL_TRASH)
            *spam_trash_out = true;
        labels[count++] = (uint16_t)number;
    }
    listing->labels = labels + walk->labels_count;
    listing->labels_count = count - walk->labels_count;
    listing->plan.walk.labels = labels;
    listing->plan.walk.labels_count = count;
    return true;
}

static void want_label(struct listing *listing, uint16_t label)
{
    struct box_walk *walk = &listing->plan.walk;
    uint16_t *labels = (uint16_t *)(uintptr_t)walk->labels; /* made by labels_read() */
    labels[walk->labels_count++] = label;
    listing->labels_count++;
}

/* The order of labelIds says nothing, so it is not in the key either. */
static uint64_t labels_key(const struct listing *listing)
{
    uint64_t sum = listing->labels_count;
    for (size_t i = 0; i < listing->labels_count; i++)
        sum += box_page_key_number(0, listing->labels[i]);
    return sum;
}

/* false: the answer is an error. */
static bool listing_init(struct listing *listing, struct box_call *call, const char *kind)
{
    TIDE_ASSERT(call->user != NULL);
    memset(listing, 0, offsetof(struct listing, slots));
    listing->count = 0;
    listing->more = false;
    listing->call = call;
    listing->mailbox = box_user_mailbox(call->user);
    tide_map_init(&listing->map, tide_mem_heap());

    const tide_text q = box_call_param(call, "q");
    if (!query_allowed(call, q) || !box_page_size(call, &listing->page_size))
        return false;
    listing->query = box_query_parse(q, call->now_ms, listing->mailbox, call->scratch);
    box_query_plan(listing->query, &listing->plan);
    bool spam_trash = listing->plan.spam_trash || box_call_flag(call, "includeSpamTrash");
    const uint64_t asked = spam_trash;
    if (!labels_read(listing, &spam_trash))
        return false;
    listing->hide_spam_trash = !spam_trash;

    listing->key = box_page_key_text(box_page_key(call, kind), q);
    listing->key = box_page_key_number(listing->key, labels_key(listing));
    listing->key = box_page_key_number(listing->key, asked);
    const struct box_page_at start = {BOX_WALK_START.date_ms, BOX_WALK_START.id};
    return box_page_open(call, listing->key, start, &listing->start);
}

static void listing_done(struct listing *listing)
{
    tide_map_done(&listing->map);
}

/* ---- walking ---- */

static bool is_hidden(const struct listing *listing, uint32_t slot)
{
    return listing->hide_spam_trash &&
           (box_mailbox_has_label(listing->mailbox, slot, BOX_LABEL_SPAM) ||
            box_mailbox_has_label(listing->mailbox, slot, BOX_LABEL_TRASH));
}

/* Whether a message that is not on the walk would be in the listing. */
static bool would_list(const struct listing *listing, uint32_t slot)
{
    if (is_hidden(listing, slot))
        return false;
    for (size_t i = 0; i < listing->labels_count; i++)
        if (!box_mailbox_has_label(listing->mailbox, slot, listing->labels[i]))
            return false;
    return box_query_match(listing->query, listing->mailbox, slot);
}

static bool listing_visit(void *arg, uint32_t slot)
{
    struct listing *listing = arg;
    if (is_hidden(listing, slot))
        return true;
    if (!listing->plan.exact && !box_query_match(listing->query, listing->mailbox, slot))
        return true;
    if (listing->wants != NULL && !listing->wants(listing, slot))
        return true;
    if (listing->count == listing->page_size) {
        listing->more = true;
        return false;
    }
    listing->slots[listing->count++] = slot;
    return true;
}

static void listing_walk(struct listing *listing)
{
    const struct box_walk_at at = {listing->start.first, listing->start.second};
    if (!listing->plan.nothing)
        box_mailbox_walk(listing->mailbox, &listing->plan.walk, at, listing_visit, listing);
}

/* ---- answering ---- */

static struct box_page_at position_of(const struct listing *listing, uint32_t index)
{
    const struct box_message *message = box_mailbox_at(listing->mailbox, listing->slots[index]);
    return (struct box_page_at){message->date_ms, message->id};
}

static uint64_t chance(const struct listing *listing, uint64_t id)
{
    return box_page_key_number(box_cloud_options(listing->call->cloud)->seed, id);
}

static void answer_token(struct listing *listing, json_t *answer)
{
    struct box_page_at at = listing->start; /* "page-loop": the same page again and again */
    if (box_page_fault(listing->call, "page-restart")) {
        at = (struct box_page_at){BOX_WALK_START.date_ms, BOX_WALK_START.id};
    } else if (!box_page_fault(listing->call, "page-loop")) {
        if (!listing->more)
            return;
        at = position_of(listing, listing->count - 1);
        if (listing->count > 1 && box_page_fault(listing->call, "list-shift")) {
            /* As if mail had come in above: some entries come again, never all. */
            uint32_t shift = 1 + (uint32_t)(chance(listing, at.second) % LIST_SHIFT_MAX);
            shift = shift < listing->count ? shift : listing->count - 1;
            at = position_of(listing, listing->count - 1 - shift);
        }
    }
    char token[BOX_PAGE_TOKEN_BYTES];
    box_page_token(listing->key, at, token);
    box_page_set(answer, "nextPageToken", token);
}

/* Order in a page is only nearly right: the same neighbours are swapped every
 * time.  After this the slots no longer say where the next page begins. */
static void swap_neighbours(struct listing *listing)
{
    const uint32_t permille = box_cloud_options(listing->call->cloud)->list_inversions_permille;
    for (uint32_t i = 0; permille > 0 && i + 1 < listing->count; i++) {
        if (chance(listing, position_of(listing, i).second) % 1000 >= permille)
            continue;
        const uint32_t slot = listing->slots[i];
        listing->slots[i] = listing->slots[i + 1];
        listing->slots[i + 1] = slot;
        i++;
    }
}

/* Empty arrays are absent.  The estimate is a true count while one page holds all. */
static void listing_reply(struct listing *listing, const char *name,
                          json_t *(*entry)(struct listing *listing, uint32_t slot))
{
    json_t *answer = json_object();
    TIDE_ASSERT(answer != NULL);
    const bool first = listing->start.first == BOX_WALK_START.date_ms;
    uint32_t estimate = listing->count;
    if (listing->more || !first) {
        const uint32_t most = box_mailbox_walk_estimate(listing->mailbox, &listing->plan.walk);
        estimate = most > estimate ? most : estimate;
    }
    answer_token(listing, answer);
    swap_neighbours(listing);
    if (listing->count > 0) {
        json_t *entries = json_array();
        TIDE_ASSERT(entries != NULL);
        for (uint32_t i = 0; i < listing->count; i++)
            TIDE_ASSERT(json_array_append_new(entries, entry(listing, listing->slots[i])) == 0);
        box_page_set_value(answer, name, entries);
    }
    box_page_set_value(answer, "resultSizeEstimate", json_integer(estimate));
    box_call_reply(listing->call, answer);
}

/* ---- messages ---- */

static json_t *message_entry(struct listing *listing, uint32_t slot)
{
    const struct box_message *message = box_mailbox_at(listing->mailbox, slot);
    json_t *entry = json_object();
    TIDE_ASSERT(entry != NULL);
    box_page_set_id(entry, "id", message->id);
    box_page_set_id(entry, "threadId", message->thread_id);
    return entry;
}

void box_gmail_messages_list(struct box_call *call)
{
    struct listing listing;
    if (listing_init(&listing, call, "messages")) {
        listing_walk(&listing);
        listing_reply(&listing, "messages", message_entry);
    }
    listing_done(&listing);
}

/* ---- threads: each at its newest message that is listed ---- */

static uint32_t thread_first(const struct listing *listing, uint64_t thread_id)
{
    char text[BOX_ID_TEXT_BYTES];
    box_id_text(thread_id, text);
    return box_mailbox_thread(listing->mailbox, tide_text_of(text));
}

static bool is_newer(const struct box_message *a, const struct box_message *b)
{
    return a->date_ms != b->date_ms ? a->date_ms > b->date_ms : a->id > b->id;
}

/* A thread that was met on this page is done with; else it belongs to an
 * earlier page if a newer message of it is listed there. */
static bool wants_thread(struct listing *listing, uint32_t slot)
{
    const struct box_message *message = box_mailbox_at(listing->mailbox, slot);
    uint32_t met = 0;
    if (tide_map_get(&listing->map, message->thread_id, &met))
        return false;
    TIDE_ASSERT(tide_map_put(&listing->map, message->thread_id, 1));
    if (listing->start.first == BOX_WALK_START.date_ms)
        return true; /* on the first page there is nothing before */
    uint32_t other_slot = thread_first(listing, message->thread_id);
    while (other_slot != BOX_SLOT_NONE) {
        const struct box_message *other = box_mailbox_at(listing->mailbox, other_slot);
        if (!other->gone && is_newer(other, message) && would_list(listing, other_slot))
            return false;
        other_slot = other->next_in_thread;
    }
    return true;
}

static json_t *thread_entry(struct listing *listing, uint32_t slot)
{
    const struct box_message *message = box_mailbox_at(listing->mailbox, slot);
    const struct box_message *newest = message;
    uint32_t newest_slot = slot;
    uint64_t history_id = message->history_id;
    uint32_t other_slot = thread_first(listing, message->thread_id);
    while (other_slot != BOX_SLOT_NONE) {
        const struct box_message *other = box_mailbox_at(listing->mailbox, other_slot);
        if (!other->gone) {
            history_id = other->history_id > history_id ? other->history_id : history_id;
            if (is_newer(other, newest)) {
                newest = other;
                newest_slot = other_slot;
            }
        }
        other_slot = other->next_in_thread;
    }
    json_t *entry = json_object();
    TIDE_ASSERT(entry != NULL);
    box_page_set_id(entry, "id", message->thread_id);
    if (!box_gmail_metadata_bound(listing->call)) { /* it is a piece of the body */
        tide_auto_buf snippet = tide_buf_heap(64 << 10);
        box_mailbox_snippet(listing->mailbox, newest_slot, &snippet);
        box_page_set_value(entry, "snippet", box_json_text(tide_buf_text(&snippet)));
    }
    box_page_set_number(entry, "historyId", history_id);
    return entry;
}

void box_gmail_threads_list(struct box_call *call)
{
    struct listing listing;
    if (listing_init(&listing, call, "threads")) {
        listing.wants = wants_thread;
        listing_walk(&listing);
        listing_reply(&listing, "threads", thread_entry);
    }
    listing_done(&listing);
}

/* ---- drafts ---- */

/* The map leads from a slot (plus 1, for keys are not 0) to its draft. */
static bool wants_draft(struct listing *listing, uint32_t slot)
{
    uint32_t draft = 0;
    return tide_map_get(&listing->map, (uint64_t)slot + 1, &draft);
}

static json_t *draft_entry(struct listing *listing, uint32_t slot)
{
    uint32_t index = 0;
    TIDE_ASSERT(tide_map_get(&listing->map, (uint64_t)slot + 1, &index));
    char id[24];
    const int bytes =
        snprintf(id, sizeof id, "r%" PRIu64, box_mailbox_draft_at(listing->mailbox, index)->id);
    TIDE_ASSERT(bytes > 0 && (size_t)bytes < sizeof id);
    json_t *entry = json_object();
    TIDE_ASSERT(entry != NULL);
    box_page_set(entry, "id", id);
    box_page_set_value(entry, "message", message_entry(listing, slot));
    return entry;
}

/* There are few drafts, so every page makes a map of them all. */
void box_gmail_drafts_list(struct box_call *call)
{
    struct listing listing;
    if (listing_init(&listing, call, "drafts")) {
        const uint32_t drafts = box_mailbox_drafts(listing.mailbox);
        for (uint32_t i = 0; i < drafts; i++) {
            const struct box_draft *draft = box_mailbox_draft_at(listing.mailbox, i);
            if (!draft->gone)
                TIDE_ASSERT(tide_map_put(&listing.map, (uint64_t)draft->slot + 1, i));
        }
        want_label(&listing, BOX_LABEL_DRAFT);
        listing.wants = wants_draft;
        listing_walk(&listing);
        listing_reply(&listing, "drafts", draft_entry);
    }
    listing_done(&listing);
}
