/* Goal: the reports of a mailbox lead a fresh one to the same state (BMBX6), and what is
 * not a report of this mailbox is refused.  Method: random changes, then the
 * reports as text, whole and damaged. */
#include "mailbox_model.h"

static struct world *world_after(uint64_t seed, uint32_t generated, uint32_t ops)
{
    struct world *world = world_new(seed, generated);
    for (uint32_t i = 0; i < ops; i++)
        change(world);
    return world;
}

static void assert_same_set(const box_mailbox *a, uint32_t a_set, const box_mailbox *b,
                            uint32_t b_set)
{
    size_t a_count, b_count;
    const uint16_t *a_labels = box_mailbox_labels(a, a_set, &a_count);
    const uint16_t *b_labels = box_mailbox_labels(b, b_set, &b_count);
    assert_int_equal(a_count, b_count);
    for (size_t i = 0; i < a_count; i++)
        assert_int_equal(a_labels[i], b_labels[i]);
}

static void assert_same_messages(box_mailbox *a, box_mailbox *b)
{
    tide_auto_buf a_buf = tide_buf_heap(64 << 20);
    tide_auto_buf b_buf = tide_buf_heap(64 << 20);
    assert_int_equal(box_mailbox_slots(a), box_mailbox_slots(b));
    for (uint32_t slot = 0; slot < box_mailbox_slots(a); slot++) {
        const struct box_message *one = box_mailbox_at(a, slot);
        const struct box_message *two = box_mailbox_at(b, slot);
        assert_int_equal(one->id, two->id);
        assert_int_equal(one->thread_id, two->thread_id);
        assert_int_equal(one->date_ms, two->date_ms);
        assert_int_equal(one->history_id, two->history_id);
        assert_int_equal(one->next_in_thread, two->next_in_thread);
        assert_int_equal(one->gone, two->gone);
        assert_same_set(a, one->label_set, b, two->label_set);
        if (!one->gone && (slot % 16 == 0 || slot + 500 > box_mailbox_slots(a)))
            assert_true(tide_text_equal(box_mailbox_raw(a, slot, &a_buf),
                                        box_mailbox_raw(b, slot, &b_buf)));
    }
}

static void assert_same(box_mailbox *a, box_mailbox *b)
{
    assert_same_messages(a, b);
    assert_int_equal(box_mailbox_messages(a), box_mailbox_messages(b));
    assert_int_equal(box_mailbox_threads(a), box_mailbox_threads(b));
    assert_int_equal(box_mailbox_labels_count(a), box_mailbox_labels_count(b));
    for (uint32_t i = 0; i < box_mailbox_labels_count(a); i++)
        assert_memory_equal(box_mailbox_label(a, i), box_mailbox_label(b, i),
                            sizeof(struct box_label));
    assert_int_equal(box_mailbox_drafts(a), box_mailbox_drafts(b));
    for (uint32_t i = 0; i < box_mailbox_drafts(a); i++) {
        assert_int_equal(box_mailbox_draft_at(a, i)->id, box_mailbox_draft_at(b, i)->id);
        assert_int_equal(box_mailbox_draft_at(a, i)->slot, box_mailbox_draft_at(b, i)->slot);
        assert_int_equal(box_mailbox_draft_at(a, i)->gone, box_mailbox_draft_at(b, i)->gone);
    }
    assert_int_equal(box_mailbox_history_id(a), box_mailbox_history_id(b));
    assert_int_equal(box_mailbox_history_oldest(a), box_mailbox_history_oldest(b));
    assert_int_equal(box_mailbox_history_count(a), box_mailbox_history_count(b));
    for (uint32_t i = 0; i < box_mailbox_history_count(a); i++) {
        const struct box_record *one = box_mailbox_history_at(a, i);
        const struct box_record *two = box_mailbox_history_at(b, i);
        assert_int_equal(one->history_id, two->history_id);
        assert_int_equal(one->at_ms, two->at_ms);
        assert_int_equal(one->slot, two->slot);
        assert_int_equal(one->change, two->change);
        assert_same_set(a, one->label_set, b, two->label_set);
        assert_same_set(a, one->changed, b, two->changed);
    }
}

static box_mailbox *fresh_like(const struct world *world)
{
    struct box_mailbox_spec spec = world->spec;
    spec.changed = NULL;
    return box_mailbox_new(&spec);
}

TEST(reports_lead_a_fresh_mailbox_to_the_same_state)
{
    for (uint64_t seed = 101; seed <= 106; seed++) {
        print_message("seed %" PRIu64 "\n", seed);
        struct world *world = world_after(seed, sizes[seed % 5], (uint32_t)scaled(OPS));
        auto_mailbox *fresh = fresh_like(world);
        for (size_t i = 0; i < json_array_size(world->journal); i++) {
            auto_text *line = json_dumps(json_array_get(world->journal, i), JSON_COMPACT);
            json_auto_t *read = json_loads(line, 0, NULL);
            tide_error err;
            if (box_mailbox_replay(fresh, read, &err) != TIDE_OK)
                fail_msg("seed %" PRIu64 ", %s: %s", seed, line, err.text);
        }
        box_mailbox_history_expire(fresh, world->expired_ms);
        assert_same(world->mailbox, fresh);
        assert_null(box_mailbox_check(fresh));

        /* Both go on alike: what comes next is drawn from the same numbers. */
        box_mailbox_clock(fresh, world->now_ms);
        struct box_insert insert = {.raw = TIDE_TEXT("Subject: next\r\n\r\n"), .date_ms = 77};
        for (int i = 0; i < 20; i++) {
            (void)box_mailbox_draft_create(world->mailbox, &insert);
            (void)box_mailbox_draft_create(fresh, &insert);
        }
        assert_same(world->mailbox, fresh);
        world_free(world);
    }
}

/* Every field of every kind of report, once missing and once of another type: the
 * change is refused and nothing has happened. */
TEST(a_damaged_report_is_refused_and_changes_nothing)
{
    struct world *world = world_after(202, 300, 1000);
    auto_mailbox *fresh = fresh_like(world);
    tide_error err;
    for (size_t i = 0; i < json_array_size(world->journal); i++) {
        json_t *report = json_array_get(world->journal, i);
        uint64_t before = box_mailbox_history_id(fresh);
        uint32_t labels = box_mailbox_labels_count(fresh);
        const char *key;
        json_t *value;
        json_object_foreach(report, key, value)
        {
            json_auto_t *damaged = json_copy(report);
            assert_int_equal(json_object_del(damaged, key), 0);
            assert_int_not_equal(box_mailbox_replay(fresh, damaged, &err), TIDE_OK);
            assert_int_equal(json_object_set_new(damaged, key, json_real(0.5)), 0);
            assert_int_not_equal(box_mailbox_replay(fresh, damaged, &err), TIDE_OK);
        }
        assert_int_equal(box_mailbox_history_id(fresh), before);
        assert_int_equal(box_mailbox_labels_count(fresh), labels);
        assert_ok(box_mailbox_replay(fresh, report, &err));
        if (box_mailbox_history_id(fresh) != before) /* once is enough */
            assert_int_not_equal(box_mailbox_replay(fresh, report, &err), TIDE_OK);
    }
    assert_null(box_mailbox_check(fresh));
    world_free(world);
}

TEST(a_journal_of_another_mailbox_is_refused)
{
    struct world *world = world_new(301, 40);
    do_insert(world);
    struct box_mailbox_spec spec = world->spec;
    spec.changed = NULL;
    spec.seed = 302;
    auto_mailbox *other = box_mailbox_new(&spec);
    tide_error err;
    const json_t *report = json_array_get(world->journal, 0);
    assert_int_equal(box_mailbox_replay(other, report, &err), TIDE_CORRUPT);
    assert_int_equal(box_mailbox_slots(other), 40);
    world_free(world);
}

int main(void)
{
    box_mime_start();
    return tests_run(NULL);
}
