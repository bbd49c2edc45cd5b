/* Labels are made and changed, messages deleted. */
#include "gmail_client_fixture.h"

CASE(labels_are_listed_and_made, 0)
{
    run_ok(f, play_labels);
    const size_t count = json_array_size(json_object_get(f->labels, "labels"));
    assert_true(count > 5);
    assert_int_equal(units(f), 1);
    f->text = TIDE_TEXT("Archived/\"2026\" \xc3\xa9");
    run_ok(f, play_label_create);
    assert_int_equal(units(f), 6);
    assert_true(f->new_id.bytes > 0);
    run_ok(f, play_labels);
    const json_t *labels = json_object_get(f->labels, "labels");
    assert_int_equal(json_array_size(labels), count + 1);
    bool found = false;
    for (size_t i = 0; i < json_array_size(labels); i++) {
        const json_t *label = json_array_get(labels, i);
        if (strcmp(json_string_value(json_object_get(label, "id")), tide_buf_cstr(&f->new_id)) == 0)
            found = strcmp(json_string_value(json_object_get(label, "name")), f->text.data) == 0;
    }
    assert_true(found);
    assert_int_equal(run(f, play_label_create), TIDE_EXISTS);
    assert_int_equal(f->err.code, 409);
    f->text = TIDE_TEXT("INBOX");
    const tide_status reserved = run(f, play_label_create);
    assert_true(reserved == TIDE_PERMANENT || reserved == TIDE_EXISTS);
}

CASE(labels_change_on_one_message_and_on_many, 700)
{
    static const char *const add[] = {"STARRED", "TRASH", NULL};
    static const char *const take[] = {"INBOX", "UNREAD", NULL};
    look(f, 500);
    f->add = add;
    f->take = take;
    for (size_t count = 500; count >= 1; count -= 499) {
        f->ids_count = count;
        f->ids[count - 1] = count == 1 ? f->ids[7] : TIDE_TEXT("ffffffffffffff"); /* gone */
        const uint64_t before = units(f);
        run_ok(f, play_modify);
        assert_int_equal(units(f) - before, count == 1 ? 5 : 50);
        for (size_t i = 0; i + 1 < count; i++) {
            assert_true(has_label(f, f->ids[i], "TRASH"));
            assert_false(has_label(f, f->ids[i], "UNREAD"));
        }
        if (count == 1)
            break;
    }
    /* Nothing to do costs nothing; too much is refused before it is sent. */
    const uint64_t before = units(f);
    f->ids_count = 0;
    run_ok(f, play_modify);
    run_ok(f, play_delete);
    for (size_t i = 0; i <= TIDE_GMAIL_IDS_MAX; i++)
        f->ids[i] = TIDE_TEXT("aa");
    f->ids_count = TIDE_GMAIL_IDS_MAX + 1;
    assert_int_equal(run(f, play_modify), TIDE_INVALID);
    assert_int_equal(run(f, play_delete), TIDE_INVALID);
    f->ids[1] = TIDE_TEXT("");
    f->ids_count = 2;
    assert_int_equal(run(f, play_delete), TIDE_INVALID); /* or it would mean the list */
    assert_int_equal(units(f), before);
    /* An unknown label. */
    static const char *const unknown[] = {"Label_999", NULL};
    look(f, 1);
    f->add = unknown;
    assert_int_equal(run(f, play_modify), TIDE_PERMANENT);
}

CASE(messages_are_deleted_and_stay_so, 30)
{
    look(f, 12);
    char ids[12][64];
    for (size_t i = 0; i < 12; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%.*s", (int)f->ids[i].bytes, f->ids[i].data);
        f->ids[i] = tide_text_of(ids[i]);
    }
    f->ids_count = 11;
    uint64_t before = units(f);
    run_ok(f, play_delete);
    run_ok(f, play_delete); /* again: harmless */
    assert_int_equal(units(f) - before, 100);
    f->ids[0] = f->ids[11];
    f->ids_count = 1;
    before = units(f);
    run_ok(f, play_delete);
    run_ok(f, play_delete); /* 404 */
    assert_int_equal(units(f) - before, 20);
    for (size_t i = 0; i < 12; i++)
        assert_int_equal(box_mailbox_find(mailbox_of(f), tide_text_of(ids[i])), BOX_SLOT_NONE);
    run_ok(f, play_profile);
    assert_int_equal(f->profile.messages, 18);
}
