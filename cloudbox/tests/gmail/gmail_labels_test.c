/* Labels of the Gmail service: their life, their counts, their refusals. */
#include "gmail_world.h"

TEST(labels_are_made_changed_counted_and_removed)
{
    WORLD(world);
    char label[BOX_ID_TEXT_BYTES], id[BOX_ID_TEXT_BYTES], more[100];
    assert_int_equal(call(&world, "POST", "/labels",
                          "{\"name\":\"Work/Now\",\"color\":{\"textColor\":\"#ffffff\","
                          "\"backgroundColor\":\"#fb4c2f\"}}"),
                     200);
    snprintf(label, sizeof label, "%s", text_at(&world, "id"));
    assert_string_equal(text_at(&world, "labelListVisibility"), "labelShow");
    assert_string_equal(text_at(&world, "messageListVisibility"), "show");
    assert_string_equal(text_at(&world, "type"), "user");
    snprintf(more, sizeof more, ",\"labelIds\":[\"%s\",\"UNREAD\"]", label);
    insert(&world, TIDE_TEXT("Subject: counted\r\n\r\nx"), more, id);
    assert_int_equal(call(&world, "GET", PATH("/labels/%s", label), NULL), 200);
    assert_int_equal(json_integer_value(at(&world, "messagesTotal")), 1);
    assert_int_equal(json_integer_value(at(&world, "messagesUnread")), 1);
    assert_int_equal(json_integer_value(at(&world, "threadsTotal")), 1);
    assert_int_equal(json_integer_value(at(&world, "threadsUnread")), 1);

    assert_int_equal(
        call(&world, "PATCH", PATH("/labels/%s", label), "{\"labelListVisibility\":\"labelHide\"}"),
        200);
    assert_string_equal(text_at(&world, "name"), "Work/Now");
    assert_string_equal(text_at(&world, "color.backgroundColor"), "#fb4c2f");
    assert_int_equal(call(&world, "PUT", PATH("/labels/%s", label), "{\"name\":\"Later\"}"), 200);
    assert_string_equal(text_at(&world, "labelListVisibility"), "labelShow");
    assert_null(at(&world, "color"));

    assert_int_equal(call(&world, "GET", "/labels", NULL), 200);
    assert_int_equal(json_array_size(at(&world, "labels")),
                     BOX_LABELS_SYSTEM + 1 +
                         box_mailbox_labels_count(mailbox_of(&world, "bob@example.com")) -
                         BOX_LABELS_SYSTEM);
    assert_null(json_object_get(json_array_get(at(&world, "labels"), 0), "messagesTotal"));
    assert_int_equal(call(&world, "DELETE", PATH("/labels/%s", label), NULL), 204);
    assert_int_equal(call(&world, "GET", PATH("/labels/%s", label), NULL), 404);
    call(&world, "GET", PATH("/messages/%s?format=minimal", id), NULL);
    assert_labels(at(&world, "labelIds"), "UNREAD");
}

TEST(labels_refuse_what_gmail_refuses)
{
    WORLD(world);
    char label[BOX_ID_TEXT_BYTES];
    static const char *const names[] = {"",   "  ", "inbox", "Category_Social", "Sent",  "Muted",
                                        "/x", "x/", "a//b",  "DRAFT",           "Trash", "Drafts"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"name\":\"%s\"}", names[i]);
        call(&world, "POST", "/labels", body);
        assert_refused(&world, 400, "Invalid label name");
    }
    call(&world, "POST", "/labels", "{}");
    assert_refused(&world, 400, "Invalid label name");
    assert_int_equal(call(&world, "POST", "/labels", "{\"name\":\"Mine\"}"), 200);
    snprintf(label, sizeof label, "%s", text_at(&world, "id"));
    call(&world, "POST", "/labels", "{\"name\":\"MINE\"}");
    assert_refused(&world, 409, "Label name exists or conflicts");
    assert_string_equal(text_at(&world, "error.status"), "ABORTED");
    assert_int_equal(call(&world, "POST", "/labels", "{\"name\":\"Other\"}"), 200);
    call(&world, "PATCH", PATH("/labels/%s", label), "{\"name\":\"other\"}");
    assert_refused(&world, 409, "Label name exists or conflicts");
    assert_int_equal(call(&world, "PATCH", PATH("/labels/%s", label), "{\"name\":\"MINE\"}"), 200);

    call(&world, "POST", "/labels", "{\"name\":\"c\",\"color\":{\"textColor\":\"#ffffff\"}}");
    assert_refused(&world, 400, "Label color needs both textColor and backgroundColor");
    call(&world, "POST", "/labels",
         "{\"name\":\"c\",\"color\":{\"textColor\":\"#ffffff\",\"backgroundColor\":\"#123456\"}}");
    assert_refused(&world, 400, "Label color #123456 is not on the allowed color palette");
    call(&world, "POST", "/labels", "{\"name\":\"c\",\"labelListVisibility\":\"maybe\"}");
    assert_refused(&world, 400, "Invalid value at 'label.labelListVisibility': \"maybe\"");
    call(&world, "PUT", PATH("/labels/%s", label), "{\"id\":\"Label_9\",\"name\":\"n\"}");
    assert_refused(&world, 400, "Label id in the body does not match the path");

    call(&world, "DELETE", "/labels/INBOX", NULL);
    assert_refused(&world, 400, "Invalid delete request");
    call(&world, "PATCH", "/labels/INBOX", "{\"name\":\"x\"}");
    assert_refused(&world, 400, "Cannot modify a system label");
    assert_int_equal(call(&world, "DELETE", "/labels/Label_77", NULL), 404);
    assert_int_equal(call(&world, "PUT", "/labels/Label_77", "{\"name\":\"x\"}"), 404);
    assert_int_equal(call(&world, "GET", "/labels/INBOX", NULL), 200);
    assert_int_equal(json_integer_value(at(&world, "messagesTotal")), 0);
}

/* The labels of generated mailboxes have no visibility until a client sets it. */
TEST(a_label_whose_visibility_was_never_set_can_be_renamed)
{
    WORLD(world);
    uint32_t number = 0;
    box_mailbox *mailbox = mailbox_of(&world, "alice@example.com");
    const struct box_label bare = {.name = "bare"};
    assert_ok(box_mailbox_label_create(mailbox, &bare, &number));
    const char *path = PATH("/labels/%s", box_mailbox_label(mailbox, number)->id);
    assert_int_equal(call(&world, "PATCH", path, "{\"name\":\"other\"}"), 200);
    assert_string_equal(text_at(&world, "name"), "other");
    assert_string_equal(text_at(&world, "labelListVisibility"), "(none)");
    call(&world, "PATCH", path, "{\"labelListVisibility\":\"\"}");
    assert_refused(&world, 400, "Invalid value at 'label.labelListVisibility': \"\"");
}

/* ---- the record of what clients change (acts.h) ---- */

/* How often this was done to the thread. */
static json_int_t acts(struct world *world, const char *thread, const char *act)
{
    struct box_user *user = box_cloud_user(world->cloud, TIDE_TEXT("alice@example.com"));
    json_auto_t *stats = box_cloud_stats(world->cloud, user, true);
    const json_t *changed = json_object_get(
        json_object_get(json_object_get(stats, "users"), "alice@example.com"), "changed");
    return json_integer_value(json_object_get(json_object_get(changed, thread), act));
}

TEST(what_clients_change_is_recorded_by_thread)
{
    WORLD(world);
    char one[BOX_ID_TEXT_BYTES], two[BOX_ID_TEXT_BYTES], draft[BOX_ID_TEXT_BYTES], body[200];
    insert(&world, TIDE_TEXT("Subject: one\r\n\r\nx"), "", one);
    insert(&world, TIDE_TEXT("Subject: two\r\n\r\nx"), "", two);
    assert_int_equal(acts(&world, one, "inserted"), 1);
    box_cloud_stats_reset(world.cloud);
    assert_int_equal(acts(&world, one, "inserted"), 0);
    /* BACT1: by message, by thread, and many at once; reading is no change. */
    static const char star[] = "{\"addLabelIds\":[\"STARRED\"]}";
    assert_int_equal(call(&world, "POST", PATH("/messages/%s/modify", one), star), 200);
    assert_int_equal(call(&world, "POST", PATH("/threads/%s/modify", one), star), 200);
    (void)snprintf(body, sizeof body, "{\"ids\":[\"%s\",\"%s\"],\"removeLabelIds\":[\"STARRED\"]}",
                   one, two);
    assert_int_equal(call(&world, "POST", "/messages/batchModify", body), 204);
    assert_int_equal(call(&world, "POST", PATH("/threads/%s/trash", one), NULL), 200);
    assert_int_equal(call(&world, "POST", PATH("/messages/%s/untrash", one), NULL), 200);
    assert_int_equal(call(&world, "GET", PATH("/threads/%s", two), NULL), 200);
    assert_int_equal(acts(&world, one, "labels"), 3);
    assert_int_equal(acts(&world, one, "trashed"), 2);
    assert_int_equal(acts(&world, two, "labels"), 1);
    assert_int_equal(acts(&world, two, "trashed"), 0);
    /* "To: bob@example.com", "Subject: Re: two" */
    (void)snprintf(body, sizeof body,
                   "{\"message\":{\"threadId\":\"%s\",\"raw\":"
                   "\"VG86IGJvYkBleGFtcGxlLmNvbQ0KU3ViamVjdDogUmU6IHR3bw0KDQp4\"}}",
                   two);
    assert_int_equal(call(&world, "POST", "/drafts", body), 200);
    (void)snprintf(draft, sizeof draft, "%s", text_at(&world, "id"));
    char thread[BOX_ID_TEXT_BYTES];
    (void)snprintf(thread, sizeof thread, "%s", text_at(&world, "message.threadId"));
    (void)snprintf(body, sizeof body, "{\"id\":\"%s\"}", draft);
    assert_int_equal(call(&world, "POST", "/drafts/send", body), 200);
    assert_string_equal(text_at(&world, "threadId"), thread);
    assert_true(acts(&world, thread, "drafted") >= 1);
    assert_int_equal(acts(&world, thread, "sent"), 1);
    assert_int_equal(call(&world, "DELETE", PATH("/messages/%s", one), NULL), 204);
    assert_int_equal(acts(&world, one, "deleted"), 1);
}
