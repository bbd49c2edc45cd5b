/* The profile, the listing and the history tell what is there and what changed. */
#include "gmail_client_fixture.h"

CASE(the_profile_tells_address_count_and_history, 7)
{
    run_ok(f, play_profile);
    assert_string_equal(f->profile.email, ME);
    assert_int_equal(f->profile.messages, 7);
    assert_true(strlen(f->profile.history_id) > 0);
    assert_string_equal(f->authorization, "Bearer me-0");
    assert_int_equal(units(f), 1);
}

CASE(a_server_without_profiles_is_told_from_a_failing_one, 1)
{
    static const struct {
        int http;
        const char *say, *type;
        tide_status status;
    } cases[] = {
        {404, "{\"error\":{\"code\":404,\"message\":\"Not Found\"}}", NULL, TIDE_GONE},
        {404, "404 Not Found", "text/plain", TIDE_GONE},
        {405, "", "text/plain", TIDE_GONE},
        {501, "{}", NULL, TIDE_GONE},
        {500, "{}", NULL, TIDE_SERVER},
        {403, "{\"error\":{\"code\":403,\"errors\":[{\"reason\":\"insufficientPermissions\"}]}}",
         NULL, TIDE_PERMANENT},
        {200, "[]", NULL, TIDE_SERVER},
        {200, "{\"historyId\":7}", NULL, TIDE_SERVER},
        {200, "{\"messagesTotal\":-1}", NULL, TIDE_SERVER},
        {200, "{}", NULL, TIDE_OK},
        /* An emulator's history ids are wider than 64 bits. */
        {200, "{\"historyId\":\"340282366920938463463374607431768211456\",\"messagesTotal\":3}",
         NULL, TIDE_OK},
        {200,
         "{\"historyId\":\"1234567890123456789012345678901234567890123456789012345678901234\"}",
         NULL, TIDE_SERVER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        f->say = cases[i].say;
        f->say_type = cases[i].type;
        f->say_http = cases[i].http;
        if (run(f, play_profile) != cases[i].status)
            fail_msg("%d %s: %s: %s", cases[i].http, cases[i].say, tide_status_name(f->status),
                     f->err.text);
        if (f->status == TIDE_GONE)
            assert_int_equal(f->err.code, cases[i].http);
    }
}

CASE(a_listing_has_every_message_once, 1203)
{
    bool *seen = calloc(box_mailbox_slots(mailbox_of(f)), sizeof *seen);
    assert_non_null(seen);
    size_t count = 0, pages = 0;
    char token[256] = "";
    do {
        f->text = tide_text_of(token);
        run_ok(f, play_list);
        pages++;
        for (size_t i = 0; i < json_array_size(f->page.ids); i++, count++) {
            const uint32_t slot = box_mailbox_find(mailbox_of(f), id_at(f->page.ids, i));
            assert_int_not_equal(slot, BOX_SLOT_NONE);
            assert_false(seen[slot]);
            seen[slot] = true;
        }
        (void)snprintf(token, sizeof token, "%.*s", (int)f->page.next.bytes, f->page.next.data);
    } while (token[0] != '\0');
    assert_int_equal(count, 1203); /* spam and trash too */
    assert_int_equal(pages, 3);
    assert_int_equal(units(f), 15);
    free(seen);
}

CASE(a_query_goes_through_unharmed, 50)
{
    f->query = "after:1388552400 before:1391230800";
    run_ok(f, play_list);
    assert_null(f->page.ids); /* long before the oldest */
    assert_int_equal(f->page.next.bytes, 0);
    assert_non_null(strstr(f->url, "&q=after%3A1388552400%20before%3A1391230800"));
    assert_non_null(strstr(f->url, "maxResults=500"));
    assert_non_null(strstr(f->url, "includeSpamTrash=true"));
    f->query = "subject:\"a&b=c#d%e+f\" \xc3\xa9";
    run_ok(f, play_list);
    assert_non_null(strstr(f->url, "&q=subject%3A%22a%26b%3Dc%23d%25e%2Bf%22%20%C3%A9"));
    char *long_query = malloc(40000);
    assert_non_null(long_query);
    memset(long_query, 'x', 39999);
    long_query[39999] = '\0';
    f->query = long_query;
    assert_int_equal(run(f, play_list), TIDE_FULL);
    assert_int_equal(f->requests, 0);
    free(long_query);
}

CASE(history_tells_what_changed_until_it_expires, 10)
{
    run_ok(f, play_profile);
    f->text = TIDE_TEXT_NONE;
    run_ok(f, play_history);
    assert_null(f->history.records);
    assert_true(tide_text_equal(f->history.history_id, tide_text_of(f->profile.history_id)));

    look(f, 3);
    char gone[64];
    (void)snprintf(gone, sizeof gone, "%.*s", (int)f->ids[2].bytes, f->ids[2].data);
    static const char *const star[] = {"STARRED", NULL};
    f->ids_count = 2;
    f->add = star;
    run_ok(f, play_modify);
    f->ids[0] = tide_text_of(gone);
    f->ids_count = 1;
    run_ok(f, play_delete);
    f->text = TIDE_TEXT_NONE;
    const uint64_t before = units(f);
    run_ok(f, play_history);
    assert_int_equal(units(f) - before, 2);
    const json_t *record = NULL;
    size_t index = 0;
    size_t labels = 0, deletes = 0;
    json_array_foreach((json_t *)f->history.records, index, record)
    {
        labels += json_array_size(json_object_get(record, "labelsAdded"));
        const json_t *deleted = json_object_get(record, "messagesDeleted");
        deletes += json_array_size(deleted);
        for (size_t i = 0; i < json_array_size(deleted); i++)
            assert_string_equal(json_string_value(json_object_get(
                                    json_object_get(json_array_get(deleted, i), "message"), "id")),
                                gone);
        assert_null(json_object_get(record, "messages"));
    }
    assert_int_equal(deletes, 1);
    assert_true(labels >= 1 && labels <= 2); /* one may have had its star */
    assert_true(f->history.history_id.bytes > 0);
    assert_int_equal(f->history.next.bytes, 0);

    control(f, "POST", "/_cloud/history/expire", "{\"user\":\"" ME "\"}");
    assert_int_equal(run(f, play_history), TIDE_GONE);
}
