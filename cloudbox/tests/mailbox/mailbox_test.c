/* Goal: the rules of a mailbox that a client can see, one by one.  Method:
 * examples; mailbox_model_test.c does everything at random. */
#include "cloudbox/mailbox/mailbox.h"
#include "cloudbox/generate/generate.h"
#include "cloudbox/mailbox/mime.h"
#include "cloudbox/tests/owned.h"
#include "support/scale.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define NOW_MS 1780000000000u
#define DAY_MS 86400000u

static box_mailbox *mailbox_with(uint32_t generated)
{
    struct box_mailbox_spec spec = {.seed = 7,
                                    .generated = generated,
                                    .now_ms = NOW_MS,
                                    .history_keep_ms = 7 * (uint64_t)DAY_MS,
                                    .email = "ada@example.com"};
    box_mailbox *mailbox = box_mailbox_new(&spec);
    assert_null(box_mailbox_check(mailbox));
    return mailbox;
}

static void done(box_mailbox **mailbox)
{
    assert_null(box_mailbox_check(*mailbox));
    box_mailbox_free(*mailbox);
}

/* Checked and freed at the end of its block. */
#define checked_mailbox __attribute__((cleanup(done))) box_mailbox

static uint32_t insert(box_mailbox *mailbox, const char *raw, uint64_t date_ms,
                       const uint16_t *labels, size_t labels_count)
{
    struct box_insert wanted = {.raw = tide_text_of(raw),
                                .date_ms = date_ms,
                                .labels = labels,
                                .labels_count = labels_count};
    return box_mailbox_insert(mailbox, &wanted);
}

static uint32_t insert_plain(box_mailbox *mailbox, const char *raw)
{
    const uint16_t labels[] = {BOX_LABEL_UNREAD, BOX_LABEL_INBOX};
    return insert(mailbox, raw, NOW_MS, labels, 2);
}

static uint64_t thread_of(const box_mailbox *mailbox, uint32_t slot)
{
    return box_mailbox_at(mailbox, slot)->thread_id;
}

struct seen {
    uint32_t slots[64];
    size_t count;
    size_t max;
};

static bool see(void *arg, uint32_t slot)
{
    struct seen *seen = arg;
    seen->slots[seen->count++] = slot;
    return seen->count < seen->max;
}

static struct seen walk(box_mailbox *mailbox, const struct box_walk *wanted, struct box_walk_at at,
                        size_t max)
{
    struct seen seen = {.max = max};
    box_mailbox_walk(mailbox, wanted, at, see, &seen);
    return seen;
}

static const struct box_walk EVERYTHING = {.date_high_ms = UINT64_MAX};

/* ---- ids ---- */

TEST(ids_are_sixteen_digits_and_found_in_that_spelling_only)
{
    checked_mailbox *mailbox = mailbox_with(100);
    char text[BOX_ID_TEXT_BYTES];
    for (uint32_t slot = 0; slot < 100; slot++) {
        box_id_text(box_mailbox_at(mailbox, slot)->id, text);
        assert_int_equal(strlen(text), 16);
        assert_int_equal(text[0], '1');
        assert_int_equal(box_mailbox_find(mailbox, tide_text_of(text)), slot);
    }
    assert_int_equal(box_mailbox_find(mailbox, (tide_text){text, 15}), BOX_SLOT_NONE);
    assert_int_equal(box_mailbox_find(mailbox, TIDE_TEXT("")), BOX_SLOT_NONE);
    assert_int_equal(box_mailbox_find(mailbox, TIDE_TEXT("zzzzzzzzzzzzzzzz")), BOX_SLOT_NONE);
    text[15] = text[15] == '0' ? '1' : (char)(text[15] - 1); /* ids have gaps */
    assert_int_equal(box_mailbox_find(mailbox, tide_text_of(text)), BOX_SLOT_NONE);
}

TEST(an_old_message_added_now_gets_a_new_id)
{
    checked_mailbox *mailbox = mailbox_with(50);
    uint64_t newest = box_mailbox_at(mailbox, 49)->id;
    uint32_t slot = insert(mailbox, "Subject: old\r\n\r\nx", 1000, NULL, 0);
    assert_true(box_mailbox_at(mailbox, slot)->id > newest);
    struct seen seen = walk(mailbox, &EVERYTHING, BOX_WALK_START, 51);
    assert_int_equal(seen.count, 51);
    assert_int_equal(seen.slots[50], slot); /* and stands last all the same */
}

/* ---- content ---- */

TEST(generated_bytes_are_as_long_as_promised_and_twins_are_equal)
{
    checked_mailbox *mailbox = mailbox_with(2000);
    struct box_generator generator = {
        .seed = 7, .count = 2000, .newest_ms = NOW_MS, .email = "ada@example.com"};
    tide_auto_buf one = tide_buf_heap(64 << 20);
    tide_auto_buf two = tide_buf_heap(64 << 20);
    uint32_t twins = 0;
    for (uint32_t n = 0; n < 2000; n++) {
        struct box_generated plan;
        box_generate_plan(&generator, n, &plan);
        if (plan.twin == n && n % 20 != 0)
            continue;
        tide_text raw = box_mailbox_raw(mailbox, n, &one);
        assert_int_equal(raw.bytes, box_mailbox_at(mailbox, n)->bytes);
        tide_text twin = box_mailbox_raw(mailbox, plan.twin, &two);
        assert_true(tide_text_equal(raw, twin));
        twins += plan.twin != n;
        tide_buf_clear(&two);
        box_mailbox_snippet(mailbox, n, &two);
        assert_true(two.bytes <= 2000);
    }
    assert_true(twins > 0);
}

TEST(stored_bytes_are_kept_exactly)
{
    static const char bytes[] = "Subject: \xff\r\nbroken\0\x01\n\r";
    checked_mailbox *mailbox = mailbox_with(0);
    struct box_insert wanted = {.raw = {bytes, sizeof bytes}, .date_ms = NOW_MS};
    uint32_t slot = box_mailbox_insert(mailbox, &wanted);
    tide_text raw = box_mailbox_raw(mailbox, slot, NULL);
    assert_int_equal(raw.bytes, sizeof bytes);
    assert_memory_equal(raw.data, bytes, sizeof bytes);
    wanted.raw = TIDE_TEXT_NONE;
    slot = box_mailbox_insert(mailbox, &wanted);
    assert_int_equal(box_mailbox_raw(mailbox, slot, NULL).bytes, 0);
}

/* ---- labels ---- */

TEST(read_and_unread_count_for_every_label_of_the_message)
{
    checked_mailbox *mailbox = mailbox_with(0);
    uint32_t slot = insert_plain(mailbox, "Subject: a\r\n\r\n");
    assert_int_equal(box_mailbox_label(mailbox, BOX_LABEL_INBOX)->messages, 1);
    assert_int_equal(box_mailbox_label(mailbox, BOX_LABEL_INBOX)->messages_unread, 1);
    const uint16_t unread[] = {BOX_LABEL_UNREAD};
    const uint16_t star[] = {BOX_LABEL_STARRED};
    box_mailbox_relabel(mailbox, slot, star, 1, unread, 1);
    assert_int_equal(box_mailbox_label(mailbox, BOX_LABEL_INBOX)->messages, 1);
    assert_int_equal(box_mailbox_label(mailbox, BOX_LABEL_INBOX)->messages_unread, 0);
    assert_int_equal(box_mailbox_label(mailbox, BOX_LABEL_UNREAD)->messages, 0);
    assert_int_equal(box_mailbox_label(mailbox, BOX_LABEL_STARRED)->messages, 1);
    box_mailbox_remove(mailbox, slot);
    assert_int_equal(box_mailbox_label(mailbox, BOX_LABEL_INBOX)->messages, 0);
    assert_int_equal(box_mailbox_messages(mailbox), 0);
    assert_int_equal(box_mailbox_threads(mailbox), 0);
}

static tide_status create(box_mailbox *mailbox, const char *name, uint32_t *number_out)
{
    struct box_label wanted = {0};
    (void)snprintf(wanted.name, sizeof wanted.name, "%s", name);
    return box_mailbox_label_create(mailbox, &wanted, number_out);
}

TEST(a_label_name_belongs_to_one_label)
{
    checked_mailbox *mailbox = mailbox_with(0);
    uint32_t number = 0;
    uint32_t found = 0;
    assert_ok(create(mailbox, "Work/Old bills", &number));
    assert_string_equal(box_mailbox_label(mailbox, number)->id, "Label_1");
    assert_int_equal(create(mailbox, "work/OLD BILLS", &found), TIDE_EXISTS);
    assert_int_equal(create(mailbox, "inbox", &found), TIDE_EXISTS);
    assert_int_equal(create(mailbox, "", &found), TIDE_INVALID);
    assert_int_equal(create(mailbox, "\xff", &found), TIDE_INVALID);
    assert_true(box_mailbox_label_by_name(mailbox, TIDE_TEXT("work-old-bills"), &found));
    assert_int_equal(found, number);
    assert_true(box_mailbox_label_by_id(mailbox, TIDE_TEXT("Label_1"), &found));
    assert_int_equal(found, number);
    assert_false(box_mailbox_label_by_id(mailbox, TIDE_TEXT("Label_01"), &found));
    assert_false(box_mailbox_label_by_id(mailbox, TIDE_TEXT("Label_2"), &found));
    assert_false(box_mailbox_label_by_id(mailbox, TIDE_TEXT("Label_0"), &found));
    assert_false(box_mailbox_label_by_id(mailbox, TIDE_TEXT("inbox"), &found));
    assert_true(box_mailbox_label_by_id(mailbox, TIDE_TEXT("SENT"), &found));
    assert_int_equal(found, BOX_LABEL_SENT);

    struct box_label wanted = *box_mailbox_label(mailbox, BOX_LABEL_SENT);
    (void)snprintf(wanted.name, sizeof wanted.name, "Mine");
    assert_int_equal(box_mailbox_label_update(mailbox, BOX_LABEL_SENT, &wanted), TIDE_INVALID);
    assert_ok(box_mailbox_label_update(mailbox, number, &wanted));
    assert_ok(create(mailbox, "work/OLD BILLS", &found));
    assert_int_equal(found, number + 1);
}

TEST(removing_a_label_takes_it_off_every_message_with_history)
{
    checked_mailbox *mailbox = mailbox_with(0);
    uint32_t number = 0;
    assert_ok(create(mailbox, "x", &number));
    const uint16_t labels[] = {(uint16_t)number, BOX_LABEL_INBOX};
    uint32_t late = insert(mailbox, "Subject: a\r\n\r\n", 2000, labels, 2);
    uint32_t early = insert(mailbox, "Subject: b\r\n\r\n", 1000, labels, 2);
    uint64_t before = box_mailbox_history_id(mailbox);
    box_mailbox_label_remove(mailbox, number);
    assert_true(box_mailbox_label(mailbox, number)->gone);
    assert_false(box_mailbox_has_label(mailbox, late, number));
    uint32_t at = box_mailbox_history_after(mailbox, before);
    assert_int_equal(box_mailbox_history_count(mailbox) - at, 2);
    const struct box_record *record = box_mailbox_history_at(mailbox, at);
    assert_int_equal(record->slot, early);
    assert_int_equal(record->change, BOX_CHANGE_UNLABELED);
    size_t count;
    const uint16_t *changed = box_mailbox_labels(mailbox, record->changed, &count);
    assert_int_equal(count, 1);
    assert_int_equal(changed[0], number);
    uint32_t found;
    assert_false(box_mailbox_label_by_id(mailbox, TIDE_TEXT("Label_1"), &found));
    struct box_walk gone = {.date_high_ms = UINT64_MAX, .labels = labels, .labels_count = 1};
    assert_int_equal(walk(mailbox, &gone, BOX_WALK_START, 9).count, 0);
    assert_int_equal(box_mailbox_walk_estimate(mailbox, &gone), 0);
}

/* ---- threads ---- */

TEST(an_answer_joins_the_thread_it_refers_to)
{
    checked_mailbox *mailbox = mailbox_with(0);
    uint32_t first = insert_plain(mailbox, "Message-ID: <a@x>\r\nSubject: Boats\r\n\r\n1");
    uint32_t answer = insert_plain(
        mailbox, "Message-ID: <b@x>\r\nSubject: RE: Fwd: boats\r\nIn-Reply-To: <a@x>\r\n\r\n2");
    uint32_t later = insert_plain(
        mailbox, "Subject: Re: Boats\r\nReferences: <zero@x> <a@x>\r\n <b@x> <unknown@x>\r\n\r\n3");
    uint32_t renamed = insert_plain(mailbox, "Subject: Ships\r\nReferences: <a@x>\r\n\r\n4");
    uint32_t alone = insert_plain(mailbox, "Subject: Boats\r\n\r\n5");
    assert_int_equal(thread_of(mailbox, first), box_mailbox_at(mailbox, first)->id);
    assert_int_equal(thread_of(mailbox, answer), thread_of(mailbox, first));
    assert_int_equal(thread_of(mailbox, later), thread_of(mailbox, first));
    assert_int_not_equal(thread_of(mailbox, renamed), thread_of(mailbox, first));
    assert_int_not_equal(thread_of(mailbox, alone), thread_of(mailbox, first));
    assert_int_equal(box_mailbox_threads(mailbox), 3);

    /* The thread outlives its first message, until the last one goes. */
    char thread_id[BOX_ID_TEXT_BYTES];
    box_id_text(thread_of(mailbox, first), thread_id);
    box_mailbox_remove(mailbox, first);
    assert_int_equal(box_mailbox_thread(mailbox, tide_text_of(thread_id)), answer);
    uint32_t threads, unread;
    box_mailbox_label_threads(mailbox, BOX_LABEL_INBOX, &threads, &unread);
    assert_int_equal(threads, 3);
    assert_int_equal(unread, 3);
    box_mailbox_remove(mailbox, answer);
    box_mailbox_remove(mailbox, later);
    assert_int_equal(box_mailbox_thread(mailbox, tide_text_of(thread_id)), BOX_SLOT_NONE);
    struct box_insert wanted = {.raw = TIDE_TEXT("Subject: Boats\r\n\r\n"),
                                .thread_id = tide_text_of(thread_id)};
    uint32_t fresh = box_mailbox_insert(mailbox, &wanted);
    assert_int_equal(thread_of(mailbox, fresh), box_mailbox_at(mailbox, fresh)->id);
}

TEST(an_answer_joins_a_generated_thread)
{
    checked_mailbox *mailbox = mailbox_with(300);
    tide_auto_buf scratch = tide_buf_heap(64 << 20);
    tide_auto_arena arena = tide_arena_heap(64 << 20);
    uint32_t joined = 0;
    for (uint32_t slot = 0; slot < 300; slot++) {
        struct box_view view;
        box_mime_headers(box_mailbox_raw(mailbox, slot, &scratch), &arena, &view);
        bool plain = view.message_id.bytes > 0 && view.subject.bytes > 0;
        for (size_t i = 0; i < view.subject.bytes; i++)
            plain = plain && (unsigned char)view.subject.data[i] < 0x80;
        if (!plain)
            continue;
        while (view.message_id.bytes > 0 && view.message_id.data[0] == '<')
            view.message_id = (tide_text){view.message_id.data + 1, view.message_id.bytes - 2};
        char raw[4096];
        (void)snprintf(raw, sizeof raw, "Subject: Re: %.*s\r\nReferences: <%.*s>\r\n\r\n",
                       (int)view.subject.bytes, view.subject.data, (int)view.message_id.bytes,
                       view.message_id.data);
        uint32_t answer = insert_plain(mailbox, raw);
        uint64_t thread_id = thread_of(mailbox, answer);
        joined += thread_id == thread_of(mailbox, slot);
        /* A twin has the same Message-ID and may be the one that was found. */
        assert_true(thread_id != box_mailbox_at(mailbox, answer)->id);
    }
    assert_true(joined > 100);
}

/* ---- drafts ---- */

TEST(a_draft_keeps_its_id_while_its_message_is_replaced)
{
    checked_mailbox *mailbox = mailbox_with(0);
    struct box_insert wanted = {.raw = TIDE_TEXT("Subject: a\r\n\r\n1"), .date_ms = NOW_MS};
    uint32_t draft = box_mailbox_draft_create(mailbox, &wanted);
    uint64_t id = box_mailbox_draft_at(mailbox, draft)->id;
    uint32_t first = box_mailbox_draft_at(mailbox, draft)->slot;
    assert_true(box_mailbox_has_label(mailbox, first, BOX_LABEL_DRAFT));
    uint64_t thread_id = thread_of(mailbox, first);

    wanted.raw = TIDE_TEXT("Subject: b\r\n\r\n2");
    box_mailbox_draft_update(mailbox, draft, &wanted);
    uint32_t second = box_mailbox_draft_at(mailbox, draft)->slot;
    assert_int_not_equal(first, second);
    assert_true(box_mailbox_at(mailbox, first)->gone);
    assert_int_equal(box_mailbox_draft_at(mailbox, draft)->id, id);
    assert_int_equal(thread_of(mailbox, second), thread_id);
    char text[32];
    (void)snprintf(text, sizeof text, "r%llu", (unsigned long long)id);
    assert_int_equal(box_mailbox_draft_find(mailbox, tide_text_of(text)), draft);

    uint32_t sent = box_mailbox_draft_send(mailbox, draft, NOW_MS + 5);
    assert_true(box_mailbox_has_label(mailbox, sent, BOX_LABEL_SENT));
    assert_false(box_mailbox_has_label(mailbox, sent, BOX_LABEL_DRAFT));
    assert_true(tide_text_equal(box_mailbox_raw(mailbox, sent, NULL), wanted.raw));
    assert_int_equal(box_mailbox_draft_find(mailbox, tide_text_of(text)), BOX_SLOT_NONE);
    assert_int_equal(box_mailbox_messages(mailbox), 1);

    draft = box_mailbox_draft_create(mailbox, &wanted);
    box_mailbox_remove(mailbox, box_mailbox_draft_at(mailbox, draft)->slot);
    assert_true(box_mailbox_draft_at(mailbox, draft)->gone); /* not without its message */
}

/* ---- history ---- */

TEST(a_change_of_labels_is_recorded_and_no_change_is_not)
{
    checked_mailbox *mailbox = mailbox_with(0);
    uint32_t slot = insert_plain(mailbox, "Subject: a\r\n\r\n");
    const uint16_t inbox[] = {BOX_LABEL_INBOX};
    const uint16_t star[] = {BOX_LABEL_STARRED};
    uint64_t before = box_mailbox_history_id(mailbox);
    box_mailbox_relabel(mailbox, slot, inbox, 1, star, 1);
    assert_int_equal(box_mailbox_history_id(mailbox), before);
    box_mailbox_relabel(mailbox, slot, star, 1, star, 1); /* taking wins */
    assert_int_equal(box_mailbox_history_id(mailbox), before);
    box_mailbox_clock(mailbox, NOW_MS + 9);
    box_mailbox_relabel(mailbox, slot, star, 1, inbox, 1);
    box_mailbox_remove(mailbox, slot);

    uint32_t at = box_mailbox_history_after(mailbox, before);
    assert_int_equal(box_mailbox_history_count(mailbox) - at, 3);
    const struct box_record *records = box_mailbox_history_at(mailbox, at);
    assert_int_equal(records[0].change, BOX_CHANGE_LABELED);
    assert_int_equal(records[1].change, BOX_CHANGE_UNLABELED);
    assert_int_equal(records[2].change, BOX_CHANGE_DELETED);
    assert_int_equal(records[2].label_set, records[1].label_set); /* the last it had */
    assert_int_equal(records[0].at_ms, NOW_MS + 9);
    assert_int_equal(box_mailbox_at(mailbox, slot)->history_id, records[2].history_id);
}

TEST(history_expires_with_time_and_all_at_once)
{
    checked_mailbox *mailbox = mailbox_with(20000);
    /* Generated mail of the last seven days has records, older mail has none. */
    uint32_t records = box_mailbox_history_count(mailbox);
    assert_true(records > 0);
    assert_true(records < 20000);
    uint64_t oldest = box_mailbox_history_oldest(mailbox);
    assert_int_equal(box_mailbox_at(mailbox, 20000 - records - 1)->history_id, oldest);
    assert_int_equal(box_mailbox_history_after(mailbox, oldest), 0);

    uint32_t slot = insert_plain(mailbox, "Subject: a\r\n\r\n");
    box_mailbox_history_expire(mailbox, NOW_MS + 7 * (uint64_t)DAY_MS);
    assert_int_equal(box_mailbox_history_count(mailbox), 1);
    assert_int_equal(box_mailbox_history_at(mailbox, 0)->slot, slot);
    assert_int_equal(box_mailbox_history_oldest(mailbox),
                     box_mailbox_at(mailbox, 19999)->history_id);

    uint64_t latest = box_mailbox_history_id(mailbox);
    box_mailbox_history_expire_all(mailbox);
    assert_int_equal(box_mailbox_history_count(mailbox), 0);
    assert_true(box_mailbox_history_oldest(mailbox) > latest);
    assert_int_equal(box_mailbox_history_oldest(mailbox), box_mailbox_history_id(mailbox));
}

/* ---- size ---- */

/* A quarter of a million messages, half of them archived and some removed: the
 * indexes stay exact while stale entries are dropped underneath. */
TEST(a_large_mailbox_is_right_after_large_changes)
{
    const uint32_t count = scale_percent() < 100 ? 25000 : 250000;
    checked_mailbox *mailbox = mailbox_with(count);
    const uint16_t inbox[] = {BOX_LABEL_INBOX};
    const uint16_t star[] = {BOX_LABEL_STARRED};
    for (uint32_t slot = count / 2; slot < count; slot++)
        box_mailbox_relabel(mailbox, slot, NULL, 0, inbox, 1);
    for (uint32_t slot = count; slot > count / 2; slot--)
        box_mailbox_relabel(mailbox, slot - 1, star, 1, NULL, 0);
    for (uint32_t slot = 0; slot < count; slot += 3)
        box_mailbox_remove(mailbox, slot);
    assert_null(box_mailbox_check(mailbox));
    struct box_walk starred = {.date_high_ms = UINT64_MAX, .labels = star, .labels_count = 1};
    struct seen seen = walk(mailbox, &starred, BOX_WALK_START, 3);
    assert_int_equal(seen.count, 3);
    assert_true(seen.slots[2] >= count - 8);
}

int main(void)
{
    box_mime_start();
    return tests_run(NULL);
}
