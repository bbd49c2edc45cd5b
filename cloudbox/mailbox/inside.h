/* inside.h - the private shape of a mailbox, shared by the files beside it.
 *
 * What a change does is split in two: the public function decides (which
 * thread, which labels), applies and reports; box_mailbox_replay() reads the
 * decision from a report and applies the same.  Ids and history ids are drawn
 * from the seed and the id before, without any other state, so that a replay
 * continues where the original stopped.
 *
 * Invariants:
 *   BMBI1  a slot's id grows with the slot, so listing order is (date, slot).
 *   BMBI2  an index holds every message it should, in order up to `sorted`, and perhaps entries
 *          that no longer hold (gone, or without the label): readers skip them.  After settling no
 *          slot is in it twice.
 *   BMBI3  at most 1/32 of an index plus BOX_STALE_SPARE entries are stale.
 *   BMBI4  threads[slot] means something only where slots[slot] starts a thread.
 */
#ifndef BOX_MAILBOX_INSIDE_H
#define BOX_MAILBOX_INSIDE_H

#include "base/map.h"
#include "cloudbox/generate/generate.h"
#include "cloudbox/mailbox/mailbox.h"

enum {
    BOX_SLOTS_MAX = 0x7fffffff,
    BOX_LABEL_NUMBERS_MAX = 60000, /* numbers are not used twice, and fit 16 bits */
    BOX_STALE_SPARE = 256,
    BOX_PENDING_SPARE = 1024,
    BOX_REFERENCES_MAX = 64, /* looked up for one message, nearest first */
    BOX_SAME_ID_MAX = 32,    /* messages with one Message-ID asked for their subject */
    BOX_RENDER_BYTES_MAX = 256 << 20,
};

#define BOX_CONTENT_STORED 0x80000000u /* the rest: index of `stored`; else of the generator */

struct box_index {
    uint32_t *slots; /* ascending; listings walk it backwards */
    size_t count;
    size_t sorted; /* the rest waits to be merged in */
    size_t capacity;
};

struct box_set {
    uint64_t low; /* labels 0..63 as bits */
    uint32_t at;  /* of the pool */
    uint32_t count;
};

struct box_sets {
    struct box_set *sets; /* the first one is empty */
    size_t count, capacity;
    uint16_t *pool;
    size_t pool_count, pool_capacity;
    tide_map by_hash;
};

struct box_label_inside {
    struct box_label face;
    struct box_index index;
    bool threads_known; /* until one of its messages changes */
    uint32_t threads;
    uint32_t threads_unread;
};

struct box_stored {
    char *raw; /* owned; NULL when the message is gone */
    size_t bytes;
    uint64_t message_id_hash; /* 0: none */
};

struct box_thread {
    uint32_t tail; /* slot */
    uint32_t live; /* messages left */
};

struct box_mailbox {
    struct box_mailbox_spec spec; /* email is not kept here */
    struct box_generator generator;
    uint64_t now_ms;
    uint64_t id_last;
    uint64_t history_last;
    uint64_t history_forgotten; /* the highest id whose record is not kept */

    struct box_message *slots;
    struct box_thread *threads; /* by slot (BMBI4) */
    uint32_t *same_id;          /* by slot: the next older one with its Message-ID */
    size_t slots_count, slots_capacity;
    uint32_t messages;
    uint32_t threads_count;

    struct box_stored *stored;
    size_t stored_count, stored_capacity;

    struct box_sets sets;
    struct box_index all;
    tide_map by_message_id; /* hash to the newest slot */

    struct box_label_inside *labels;
    size_t labels_count, labels_capacity;
    uint32_t user_labels; /* not gone */

    struct box_draft *drafts; /* ids ascend */
    size_t drafts_count, drafts_capacity;
    tide_map draft_of; /* slot + 1 to index */

    struct box_record *records;
    size_t records_first; /* those before it are forgotten */
    size_t records_count, records_capacity;
};

/* Room for `count` elements; new room is not cleared.  Never fails. */
void *box_room(void *array, size_t *capacity, size_t count, size_t element_bytes);
void box_room_free(void *array, size_t capacity, size_t element_bytes);

/* ---- numbers drawn from the seed (BMBX1) ---- */

uint64_t box_draw_id(uint64_t seed, uint64_t last, uint64_t now_ms);
uint64_t box_draw_history_id(uint64_t seed, uint64_t last);
uint64_t box_draw_draft_id(uint64_t seed, uint64_t last);
/* The history id after `steps` more changes. */
uint64_t box_history_ahead(const box_mailbox *mailbox, uint32_t steps);

/* ---- indexes (index.c) ---- */

void box_index_add(const box_mailbox *mailbox, struct box_index *index, uint32_t slot);
void box_index_settle(const box_mailbox *mailbox, struct box_index *index);
/* Of a settled index: how many entries stand before (date, id). */
size_t box_index_before(const box_mailbox *mailbox, const struct box_index *index, uint64_t date_ms,
                        uint64_t id);
void box_index_free(struct box_index *index);
/* Drops stale entries once there are too many (BMBI3). */
void box_index_all_tidy(box_mailbox *mailbox);
void box_index_label_tidy(box_mailbox *mailbox, uint32_t label);

void box_message_id_add(box_mailbox *mailbox, uint32_t slot, uint64_t hash);
void box_message_id_remove(box_mailbox *mailbox, uint32_t slot);
/* 0: it has none. */
uint64_t box_message_id_of(const box_mailbox *mailbox, uint32_t slot);
/* Without spaces and <>. */
tide_text box_message_id_bare(tide_text message_id);
/* The newest slot with it, or BOX_SLOT_NONE; `same_id` leads on. */
uint32_t box_message_id_find(const box_mailbox *mailbox, uint64_t hash);

/* ---- label sets (labels.c) ---- */

void box_sets_init(struct box_sets *sets);
void box_sets_done(struct box_sets *sets);
/* The set of these labels, which must ascend strictly. */
uint32_t box_sets_intern(struct box_sets *sets, const uint16_t *labels, size_t count);
/* (set + add) - take; adding stops at BOX_MESSAGE_LABELS_MAX. */
uint32_t box_sets_change(box_mailbox *mailbox, uint32_t set, const uint16_t *add, size_t add_count,
                         const uint16_t *take, size_t take_count);
/* What is in `a` and not in `b`. */
uint32_t box_sets_minus(box_mailbox *mailbox, uint32_t a, uint32_t b);
bool box_sets_has(const struct box_sets *sets, uint32_t set, uint32_t label);

void box_labels_init(box_mailbox *mailbox);
void box_labels_done(box_mailbox *mailbox);
/* Moves the counts, the indexes and what is known of threads from one set to the
 * other; either may be the empty set 0. */
void box_labels_move(box_mailbox *mailbox, uint32_t slot, uint32_t from, uint32_t to);
bool box_labels_live(const box_mailbox *mailbox, uint32_t number);

/* ---- threads (threads.c) ---- */

/* The slot that starts the thread, gone or not, when it has messages left. */
uint32_t box_thread_root(const box_mailbox *mailbox, uint64_t thread_id);
/* The thread a new message belongs to, or BOX_SLOT_NONE for one of its own. */
uint32_t box_thread_choose(box_mailbox *mailbox, const struct box_insert *insert);
/* Appends `slot`; root == slot starts a thread. */
void box_thread_join(box_mailbox *mailbox, uint32_t slot, uint32_t root);
uint32_t box_slot_of_id(const box_mailbox *mailbox, uint64_t id); /* also gone ones */

/* ---- history (history.c) ---- */

void box_history_add(box_mailbox *mailbox, uint32_t slot, uint32_t changed, box_change change);

/* ---- changes without a report, for the public functions and for replay ---- */

/* A slot with its arrays, not yet in any index. */
uint32_t box_slot_new(box_mailbox *mailbox);
/* `root` may be BOX_SLOT_NONE. */
uint32_t box_apply_insert(box_mailbox *mailbox, tide_text raw, uint64_t date_ms, uint32_t set,
                          uint32_t root);
/* How many records a change of labels takes. */
uint32_t box_relabel_steps(box_mailbox *mailbox, uint32_t slot, uint32_t set);
void box_apply_relabel(box_mailbox *mailbox, uint32_t slot, uint32_t set);
void box_apply_remove(box_mailbox *mailbox, uint32_t slot);
tide_status box_apply_label(box_mailbox *mailbox, uint32_t number, const struct box_label *wanted);
void box_apply_label_remove(box_mailbox *mailbox, uint32_t number);
uint32_t box_apply_draft_create(box_mailbox *mailbox, tide_text raw, uint64_t date_ms, uint32_t set,
                                uint32_t root);
void box_apply_draft_update(box_mailbox *mailbox, uint32_t draft, tide_text raw, uint64_t date_ms,
                            uint32_t set, uint32_t root);
uint32_t box_apply_draft_send(box_mailbox *mailbox, uint32_t draft, uint64_t date_ms);
void box_apply_expire_all(box_mailbox *mailbox);

/* ---- reports (replay.c); each after its change ---- */

void box_report_insert(box_mailbox *mailbox, const char *op, uint32_t slot, uint32_t draft);
void box_report_message(box_mailbox *mailbox, const char *op, uint32_t slot, bool labels);
void box_report_label(box_mailbox *mailbox, const char *op, uint32_t number);
void box_report_draft(box_mailbox *mailbox, const char *op, uint32_t draft, uint32_t slot);
void box_report_expire(box_mailbox *mailbox);

#endif
