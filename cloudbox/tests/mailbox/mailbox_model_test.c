/* Goal: after any changes a mailbox answers every question as a plain list would
 * (X1..X5).  Method: random changes and questions against arrays that are
 * searched from end to end. */
#include "mailbox_model.h"

struct visited {
    uint32_t slots[MESSAGES_MAX];
    uint32_t count;
    uint32_t max;
};

static bool visit(void *arg, uint32_t slot)
{
    struct visited *visited = arg;
    visited->slots[visited->count++] = slot;
    return visited->count < visited->max;
}

static bool model_matches(const struct world *world, const struct box_walk *walk,
                          struct box_walk_at at, int message_id, uint32_t slot)
{
    const struct model_message *message = &world->messages[slot];
    if (message->gone || message->date_ms < walk->date_low_ms)
        return false;
    if (walk->date_high_ms != UINT64_MAX && message->date_ms >= walk->date_high_ms)
        return false;
    for (size_t i = 0; i < walk->labels_count; i++)
        if (!message->labels.on[walk->labels[i]])
            return false;
    if (walk->message_id.data != NULL && message->message_id != message_id)
        return false;
    uint64_t id = box_mailbox_at(world->mailbox, slot)->id;
    return message->date_ms < at.date_ms || (message->date_ms == at.date_ms && id < at.id);
}

static void ask_walk(struct world *world)
{
    static struct visited visited;
    static uint32_t expected[MESSAGES_MAX];
    struct box_walk walk = {.date_high_ms = UINT64_MAX};
    struct box_walk_at at = BOX_WALK_START;
    uint16_t labels[4];
    char text[32];
    int message_id = (int)below(world, 60);
    if (below(world, 3) == 0)
        walk.date_low_ms = pick_date(world);
    if (below(world, 3) == 0)
        walk.date_high_ms = pick_date(world);
    walk.labels_count = below(world, 2) * pick_labels(world, labels);
    walk.labels = labels;
    if (below(world, 4) == 0) {
        (void)snprintf(text, sizeof text, "m%d@x", message_id);
        walk.message_id = tide_text_of(text);
    }
    if (below(world, 2) == 0 && world->messages_count > 0) { /* also behind one that is gone */
        uint32_t slot = below(world, world->messages_count);
        at = (struct box_walk_at){world->messages[slot].date_ms,
                                  box_mailbox_at(world->mailbox, slot)->id};
    }
    visited.count = 0;
    visited.max = 1 + below(world, 30);
    box_mailbox_walk(world->mailbox, &walk, at, visit, &visited);

    uint32_t count = 0;
    uint32_t all = 0;
    for (uint32_t slot = 0; slot < world->messages_count; slot++) {
        if (model_matches(world, &walk, at, message_id, slot))
            expected[count++] = slot;
        all += model_matches(world, &walk, BOX_WALK_START, message_id, slot);
    }
    qsort_r(expected, count, sizeof *expected, compare_oldest, world);
    assert_int_equal(visited.count, count < visited.max ? count : visited.max);
    for (uint32_t i = 0; i < visited.count; i++)
        assert_int_equal(visited.slots[i], expected[count - 1 - i]);
    assert_true(box_mailbox_walk_estimate(world->mailbox, &walk) >= all);
}

static void assert_labels(const box_mailbox *mailbox, uint32_t set, const struct labels *expected)
{
    size_t count;
    const uint16_t *labels = box_mailbox_labels(mailbox, set, &count);
    size_t at = 0;
    for (uint16_t i = 0; i < LABELS_MAX; i++)
        if (expected->on[i]) {
            assert_true(at < count);
            assert_int_equal(labels[at++], i);
        }
    assert_int_equal(at, count);
}

static void ask_history(struct world *world)
{
    assert_int_equal(box_mailbox_history_id(world->mailbox), world->history_last);
    assert_int_equal(box_mailbox_history_oldest(world->mailbox), world->forgotten);
    assert_int_equal(box_mailbox_history_count(world->mailbox),
                     world->records_count - world->records_first);
    uint64_t start = world->history_last - below(world, 300);
    uint32_t index = box_mailbox_history_after(world->mailbox, start);
    uint32_t expected = world->records_first;
    while (expected < world->records_count && world->records[expected].history_id <= start)
        expected++;
    assert_int_equal(index, expected - world->records_first);
    for (; expected < world->records_count; expected++, index++) {
        const struct model_record *model = &world->records[expected];
        const struct box_record *record = box_mailbox_history_at(world->mailbox, index);
        assert_int_equal(record->history_id, model->history_id);
        assert_int_equal(record->at_ms, model->at_ms);
        assert_int_equal(record->slot, model->slot);
        assert_int_equal(record->change, model->change);
        assert_labels(world->mailbox, record->label_set, &model->labels);
        assert_labels(world->mailbox, record->changed, &model->changed);
    }
}

static void ask_label(struct world *world)
{
    static uint8_t seen[MESSAGES_MAX];
    uint32_t number = pick_label(world);
    uint32_t messages = 0, unread = 0, threads = 0, threads_unread = 0;
    memset(seen, 0, sizeof seen);
    for (uint32_t slot = 0; slot < world->messages_count; slot++) {
        const struct model_message *message = &world->messages[slot];
        if (message->gone || !message->labels.on[number])
            continue;
        uint8_t bits = message->labels.on[BOX_LABEL_UNREAD] ? 3 : 1;
        messages++;
        unread += bits == 3;
        threads += (bits & ~seen[message->root] & 1) != 0;
        threads_unread += (bits & ~seen[message->root] & 2) != 0;
        seen[message->root] |= bits;
    }
    const struct box_label *label = box_mailbox_label(world->mailbox, number);
    assert_int_equal(label->messages, messages);
    assert_int_equal(label->messages_unread, unread);
    uint32_t threads_got, threads_unread_got;
    box_mailbox_label_threads(world->mailbox, number, &threads_got, &threads_unread_got);
    assert_int_equal(threads_got, threads);
    assert_int_equal(threads_unread_got, threads_unread);
}

static void ask_thread(struct world *world)
{
    if (world->messages_count == 0)
        return;
    uint32_t root = world->messages[below(world, world->messages_count)].root;
    char text[BOX_ID_TEXT_BYTES];
    box_id_text(box_mailbox_at(world->mailbox, root)->id, text);
    uint32_t at = box_mailbox_thread(world->mailbox, tide_text_of(text));
    for (uint32_t slot = root; slot < world->messages_count; slot++) {
        if (world->messages[slot].root != root || world->messages[slot].gone)
            continue;
        assert_int_equal(at, slot);
        do
            at = box_mailbox_at(world->mailbox, at)->next_in_thread;
        while (at != BOX_SLOT_NONE && box_mailbox_at(world->mailbox, at)->gone);
    }
    assert_int_equal(at, BOX_SLOT_NONE);
}

static void ask_message(struct world *world)
{
    if (world->messages_count == 0)
        return;
    uint32_t slot = below(world, world->messages_count);
    const struct model_message *model = &world->messages[slot];
    const struct box_message *message = box_mailbox_at(world->mailbox, slot);
    char text[BOX_ID_TEXT_BYTES];
    box_id_text(message->id, text);
    assert_int_equal(box_mailbox_find(world->mailbox, tide_text_of(text)),
                     model->gone ? BOX_SLOT_NONE : slot);
    assert_int_equal(message->gone, model->gone);
    assert_int_equal(message->date_ms, model->date_ms);
    assert_int_equal(message->history_id, model->history_id);
    assert_int_equal(message->thread_id, box_mailbox_at(world->mailbox, model->root)->id);
    assert_labels(world->mailbox, message->label_set, &model->labels);
    if (model->stored && !model->gone)
        assert_true(
            tide_text_equal(box_mailbox_raw(world->mailbox, slot, NULL), tide_text_of(model->raw)));
}

static void ask_totals(struct world *world)
{
    uint32_t messages = 0, threads = 0;
    for (uint32_t slot = 0; slot < world->messages_count; slot++) {
        messages += !world->messages[slot].gone;
        threads += world->messages[slot].root == slot && thread_lives(world, slot);
    }
    assert_int_equal(box_mailbox_slots(world->mailbox), world->messages_count);
    assert_int_equal(box_mailbox_messages(world->mailbox), messages);
    assert_int_equal(box_mailbox_threads(world->mailbox), threads);
    assert_int_equal(box_mailbox_drafts(world->mailbox), world->drafts_count);
    for (uint32_t i = 0; i < world->drafts_count; i++) {
        const struct box_draft *draft = box_mailbox_draft_at(world->mailbox, i);
        char text[32];
        (void)snprintf(text, sizeof text, "r%" PRIu64, draft->id);
        assert_int_equal(draft->gone, world->drafts[i].gone);
        assert_int_equal(draft->slot, world->drafts[i].slot);
        assert_int_equal(box_mailbox_draft_find(world->mailbox, tide_text_of(text)),
                         draft->gone ? BOX_SLOT_NONE : i);
    }
    const char *broken = box_mailbox_check(world->mailbox);
    if (broken != NULL)
        fail_msg("seed %" PRIu64 ": %s", world->seed, broken);
}

static void ask(struct world *world)
{
    ask_walk(world);
    ask_message(world);
    uint32_t draw = below(world, 40);
    if (draw < 4)
        ask_label(world);
    else if (draw < 8)
        ask_thread(world);
    else if (draw < 10)
        ask_history(world);
    else if (draw == 10)
        ask_totals(world);
}

TEST(a_mailbox_answers_as_a_plain_list_would)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        print_message("seed %" PRIu64 "\n", seed);
        struct world *world = world_new(seed, sizes[seed % 5]);
        for (uint32_t i = 0; i < scaled(OPS); i++) {
            change(world);
            if (i % 2 == 0)
                ask(world);
        }
        ask_totals(world);
        world_free(world);
    }
}

int main(void)
{
    box_mime_start();
    return tests_run(NULL);
}
