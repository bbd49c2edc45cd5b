/* Actions, the overlay and drafts, on both databases (K11; store.h RDS1 to RDS7). */
#include "reader/store/store.h"

#include "support/heap.h"
#include "unit/db/rows_fixture.h"

enum { ME = 7, OTHER = 8 };

static int setup(void **state)
{
    const int failed = rows_setup(state);
    OK(tide_reader_tables(rows_now, err));
    OK(tide_reader_tables(rows_now, err)); /* twice is harmless */
    return failed;
}

#define CASE(name) TEST_ON(name, const tide_rows *rows, setup, rows_teardown)

static struct tide_change change(const char *message, const char *label, bool added, int64_t ms)
{
    return (struct tide_change){.message = tide_text_of(message),
                                .thread = TIDE_TEXT("t"),
                                .label = tide_text_of(label),
                                .added = added,
                                .internal_ms = ms};
}

static uint64_t add(const tide_rows *rows, uint32_t account, const char *what,
                    const struct tide_change *changes, size_t count, uint64_t due_ms)
{
    struct tide_reader_action action = {.account = account, .made_ms = 100, .due_ms = due_ms};
    (void)snprintf(action.what, sizeof action.what, "%s", what);
    OK(tide_action_add(*rows, &action, changes, count, err));
    return action.id;
}

static void note_overlay(tide_text label, bool added, void *arg)
{
    char *text = arg;
    (void)snprintf(text + strlen(text), 200 - strlen(text), "%c%.*s ", added ? '+' : '-',
                   (int)label.bytes, label.data);
}

static const char *overlay(const tide_rows *rows, uint32_t account, const char *message)
{
    static char text[200];
    text[0] = '\0';
    OK(tide_overlay_of(*rows, account, tide_text_of(message), note_overlay, text, err));
    return text;
}

static uint64_t next_at(const tide_rows *rows, uint64_t now_ms)
{
    struct tide_reader_action next = {.id = 0};
    OK(tide_action_next(*rows, ME, now_ms, &next, err));
    return next.id;
}

CASE(of_the_actions_that_are_due_the_one_begun_goes_first_then_the_oldest)
{
    const struct tide_change one = change("a", "INBOX", false, 1);
    struct tide_reader_action next;
    const uint64_t held = add(rows, ME, "delete", &one, 1, 10000);
    const uint64_t first = add(rows, ME, "archive", &one, 1, 100);
    const uint64_t second = add(rows, ME, "inbox", &one, 1, 100);
    (void)add(rows, OTHER, "archive", &one, 1, 1);
    assert_int_equal(next_at(rows, 200), first); /* the held one is not due */
    assert_int_equal(next_at(rows, 10000), held);
    OK(tide_action_begin(*rows, ME, second, err));
    assert_int_equal(next_at(rows, 10000), second);
    OK(tide_action_end(*rows, ME, second, TIDE_ACTION_DONE, "", 200, err));
    OK(tide_action_end(*rows, ME, first, TIDE_ACTION_DONE, "", 200, err));
    OK(tide_action_next(*rows, ME, 200, &next, err)); /* when to come back */
    assert_int_equal(next.id, held);
    assert_int_equal(next.due_ms, 10000);
    OK(tide_action_end(*rows, ME, held, TIDE_ACTION_DONE, "", 200, err));
    assert_int_equal(tide_action_next(*rows, ME, 10000, &next, NULL), TIDE_NOT_FOUND);
}

static void note_account(uint32_t account, void *arg)
{
    *(uint32_t *)arg = *(uint32_t *)arg * 100 + account;
}

/* They were made at 100, and the clock says 20. */
CASE(after_the_clock_was_set_back_actions_wait_at_most_for_their_hold)
{
    const struct tide_change one = change("a", "INBOX", false, 1);
    struct tide_reader_action action;
    uint32_t ahead = 0;
    const uint64_t held = add(rows, ME, "delete", &one, 1, 110);
    const uint64_t free_one = add(rows, ME, "archive", &one, 1, 100);
    OK(tide_actions_ahead(*rows, 100, note_account, &ahead, err));
    assert_int_equal(ahead, 0);
    OK(tide_actions_ahead(*rows, 20, note_account, &ahead, err));
    assert_int_equal(ahead, ME);
    OK(tide_actions_clock(*rows, ME, 20, 10, err));
    assert_int_equal(next_at(rows, 20), free_one);
    OK(tide_action_get(*rows, ME, held, &action, err));
    assert_int_equal(action.due_ms, 30);
    OK(tide_actions_clock(*rows, ME, 25, 10, err)); /* once, not again and again */
    OK(tide_action_get(*rows, ME, held, &action, err));
    assert_int_equal(action.due_ms, 30);
    assert_int_equal(next_at(rows, 30), held);
    OK(tide_action_begin(*rows, ME, held, err));
    OK(tide_actions_clock(*rows, ME, 5, 10, err)); /* and back once more */
    OK(tide_action_get(*rows, ME, held, &action, err));
    assert_int_equal(action.due_ms, 5); /* what was begun goes on */
    assert_int_equal(action.made_ms, 100);
}

CASE(an_action_leaves_waiting_once_and_its_changes_leave_the_overlay)
{
    const struct tide_change changes[] = {change("a", "INBOX", false, 5),
                                          change("a", "TRASH", true, 5)};
    struct tide_reader_action action;
    const uint64_t id = add(rows, ME, "trash", changes, 2, 100);
    assert_string_equal(overlay(rows, ME, "a"), "-INBOX +TRASH ");
    assert_string_equal(overlay(rows, OTHER, "a"), "");
    OK(tide_action_begin(*rows, ME, id, err));
    OK(tide_action_end(*rows, ME, id, TIDE_ACTION_REFUSED, "no such label", 300, err));
    assert_string_equal(overlay(rows, ME, "a"), "");
    OK(tide_action_get(*rows, ME, id, &action, err));
    assert_string_equal(action.error, "no such label");
    assert_string_equal(tide_action_state_name(action.state), "refused");
    assert_true(action.begun);
    assert_int_equal(action.messages, 1);
    assert_int_equal(tide_action_end(*rows, ME, id, TIDE_ACTION_DONE, "", 400, NULL), TIDE_STALE);
    assert_int_equal(tide_action_begin(*rows, ME, id, NULL), TIDE_STALE);
    uint64_t waiting = 9, refused = 9;
    OK(tide_actions_count(*rows, ME, 0, &waiting, &refused, err));
    assert_int_equal(waiting, 0);
    assert_int_equal(refused, 1);
}

CASE(of_two_actions_on_a_label_the_later_one_comes_last)
{
    const struct tide_change off = change("a", "UNREAD", false, 5);
    const struct tide_change on = change("a", "UNREAD", true, 5);
    (void)add(rows, ME, "read", &off, 1, 100);
    (void)add(rows, ME, "unread", &on, 1, 100);
    assert_string_equal(overlay(rows, ME, "a"), "-UNREAD +UNREAD ");
}

struct listed {
    char text[300];
    unsigned limit;
};

static bool note_added(tide_text message, int64_t internal_ms, void *arg)
{
    struct listed *listed = arg;
    (void)snprintf(listed->text + strlen(listed->text), 300 - strlen(listed->text),
                   "%.*s@%" PRId64 " ", (int)message.bytes, message.data, internal_ms);
    return --listed->limit > 0;
}

CASE(messages_that_got_a_label_are_listed_newest_first_page_by_page)
{
    const struct tide_change changes[] = {
        change("a", "TRASH", true, 5), change("b", "TRASH", true, 9), change("c", "TRASH", true, 9),
        change("d", "TRASH", false, 8)};
    struct listed listed = {.limit = 99};
    (void)add(rows, ME, "trash", changes, 4, 100);
    OK(tide_overlay_added(*rows, ME, TIDE_TEXT("TRASH"), INT64_MAX, TIDE_TEXT(""), 2, note_added,
                          &listed, err));
    assert_string_equal(listed.text, "c@9 b@9 ");
    listed = (struct listed){.limit = 99};
    OK(tide_overlay_added(*rows, ME, TIDE_TEXT("TRASH"), 9, TIDE_TEXT("b"), 9, note_added, &listed,
                          err));
    assert_string_equal(listed.text, "a@5 ");
}

static void count_one(tide_text message, void *arg)
{
    (void)message;
    *(unsigned *)arg += 1;
}

CASE(every_change_of_an_action_is_a_new_version)
{
    const struct tide_change one = change("a", "INBOX", false, 1);
    uint64_t newest = 0, before;
    unsigned count = 0;
    const uint64_t id = add(rows, ME, "archive", &one, 1, 100);
    OK(tide_overlay_changes(*rows, ME, 0, count_one, &count, &newest, err));
    assert_int_equal(count, 1);
    before = newest;
    count = 0;
    OK(tide_overlay_changes(*rows, ME, before, count_one, &count, &newest, err));
    assert_int_equal(count, 0);
    OK(tide_action_end(*rows, ME, id, TIDE_ACTION_UNDONE, "", 200, err));
    OK(tide_overlay_changes(*rows, ME, before, count_one, &count, &newest, err));
    assert_int_equal(count, 1); /* it was put back: the page must know */
    assert_true(newest > before);
    /* Purging takes none of the numbers back. */
    OK(tide_actions_purge(*rows, ME, 1000, err));
    (void)add(rows, ME, "archive", &one, 1, 100);
    before = newest;
    OK(tide_overlay_changes(*rows, ME, before, count_one, &count, &newest, err));
    assert_true(newest > before);
}

static void see_draft(const struct tide_draft *draft, void *arg)
{
    (void)snprintf(arg, 500, "%s %.*s %.*s %" PRIu64, draft->id, (int)draft->json.bytes,
                   draft->json.data, (int)draft->outgoing.bytes, draft->outgoing.data,
                   draft->sending);
}

CASE(a_draft_that_is_being_sent_cannot_be_changed_or_dropped)
{
    struct tide_draft draft = {.account = ME, .id = "d1", .json = TIDE_TEXT("{}"), .changed_ms = 5};
    char seen[500] = "";
    OK(tide_draft_put(*rows, &draft, NULL, err));
    OK(tide_draft_outgoing(*rows, ME, "d1", TIDE_TEXT("begun"), err));
    draft.json = TIDE_TEXT("{\"to\":\"x\"}");
    OK(tide_draft_put(*rows, &draft, NULL, err)); /* what the server has of it stays known */
    OK(tide_draft_send(*rows, ME, "d1", 3, err));
    OK(tide_draft_get(*rows, ME, "d1", see_draft, seen, err));
    assert_string_equal(seen, "d1 {\"to\":\"x\"} begun 3");
    assert_int_equal(tide_draft_put(*rows, &draft, NULL, NULL), TIDE_EXISTS);
    assert_int_equal(tide_draft_drop(*rows, ME, "d1", NULL), TIDE_EXISTS);
    assert_int_equal(tide_draft_send(*rows, ME, "d1", 4, NULL), TIDE_EXISTS);
    OK(tide_draft_outgoing(*rows, ME, "d1", TIDE_TEXT("sent"), err));
    OK(tide_draft_send(*rows, ME, "d1", 0, err));
    OK(tide_draft_drop(*rows, ME, "d1", err));
    assert_int_equal(tide_draft_get(*rows, ME, "d1", see_draft, seen, NULL), TIDE_NOT_FOUND);
    assert_int_equal(tide_draft_outgoing(*rows, ME, "d1", TIDE_TEXT("x"), NULL), TIDE_NOT_FOUND);
    OK(tide_draft_drop(*rows, ME, "d1", err)); /* again is fine */
}

static void see_marks(const struct tide_draft *draft, void *arg)
{
    (void)snprintf(arg, 200, "%" PRIu64 ": %" PRIu64 " %" PRIu64 " %" PRIu64, draft->changed_ms,
                   draft->copied_ms, draft->refused_ms, draft->closed_ms);
}

static const char *marks(const tide_rows *rows)
{
    static char text[200];
    OK(tide_draft_get(*rows, ME, "d1", see_marks, text, err));
    return text;
}

static void count_ahead(uint32_t account, void *arg)
{
    *(unsigned *)arg += account == ME ? 1 : 100;
}

static unsigned ahead(const tide_rows *rows)
{
    unsigned count = 0;
    OK(tide_drafts_ahead(*rows, count_ahead, &count, err));
    return count;
}

CASE(a_draft_names_what_was_written_also_when_the_clock_is_set_back)
{
    struct tide_draft draft = {.account = ME, .id = "d1", .json = TIDE_TEXT("{}"), .changed_ms = 9};
    OK(tide_draft_put(*rows, &draft, NULL, err));
    assert_string_equal(marks(rows), "9: 0 0 0");
    assert_int_equal(ahead(rows), 1);
    OK(tide_draft_is(*rows, ME, "d1", TIDE_DRAFT_COPIED, 9, err));
    OK(tide_draft_is(*rows, ME, "d1", TIDE_DRAFT_CLOSED, 9, err));
    assert_int_equal(ahead(rows), 0);
    draft.changed_ms = 12;
    OK(tide_draft_put(*rows, &draft, NULL, err)); /* the same again */
    assert_string_equal(marks(rows), "9: 9 0 9");
    draft.json = TIDE_TEXT("{\"to\":\"x\"}");
    draft.changed_ms = 3;
    OK(tide_draft_put(*rows, &draft, NULL, err)); /* RDS7 */
    assert_string_equal(marks(rows), "10: 9 0 9");
    OK(tide_draft_files(*rows, ME, "d1", TIDE_TEXT("[]"), 4, err));
    OK(tide_draft_files(*rows, ME, "d1", TIDE_TEXT("[]"), 20, err));
    assert_string_equal(marks(rows), "20: 9 0 9");
    assert_int_equal(ahead(rows), 1);
    OK(tide_draft_is(*rows, ME, "d1", TIDE_DRAFT_REFUSED, 20, err));
    assert_int_equal(ahead(rows), 0);
    OK(tide_draft_drop(*rows, ME, "d1", err));
    assert_int_equal(tide_draft_is(*rows, ME, "d1", TIDE_DRAFT_COPIED, 20, NULL), TIDE_NOT_FOUND);
    OK(tide_draft_put(*rows, &draft, NULL, err)); /* nothing is left of the one before */
    assert_string_equal(marks(rows), "3: 0 0 0");
    OK(tide_draft_send(*rows, ME, "d1", 1, err));
    assert_int_equal(ahead(rows), 0);
}

static void see_files(const struct tide_draft *draft, void *arg)
{
    (void)snprintf(arg, 100, "%.*s", (int)draft->files.bytes, draft->files.data);
}

CASE(who_saves_a_draft_that_is_gone_learns_that_it_is_another_without_files)
{
    struct tide_draft draft = {.account = ME, .id = "d1", .json = TIDE_TEXT("{}"), .changed_ms = 5};
    char files[100] = "";
    bool created = false;
    OK(tide_draft_put(*rows, &draft, &created, err));
    assert_true(created);
    OK(tide_draft_files(*rows, ME, "d1", TIDE_TEXT("[1]"), 6, err));
    OK(tide_draft_put(*rows, &draft, &created, err));
    assert_false(created);
    OK(tide_draft_end(*rows, ME, "d1", err));
    OK(tide_draft_put(*rows, &draft, &created, err));
    assert_true(created);
    OK(tide_draft_get(*rows, ME, "d1", see_files, files, err));
    assert_string_equal(files, "[]");
    OK(tide_draft_send(*rows, ME, "d1", 1, err));
    assert_int_equal(tide_draft_put(*rows, &draft, &created, NULL), TIDE_EXISTS);
    assert_true(created);
}

static void note_copy(tide_text message, void *arg)
{
    (void)snprintf(arg, 100, "%.*s", (int)message.bytes, message.data);
}

CASE(the_server_s_copy_of_a_draft_is_hidden)
{
    char copies[100] = "";
    OK(tide_copy_hide(*rows, ME, "m1", err));
    OK(tide_copy_hide(*rows, ME, "m1", err)); /* again is fine */
    assert_string_equal(overlay(rows, ME, "m1"), "+GONE ");
    OK(tide_actions_purge(*rows, ME, UINT64_MAX >> 1, err)); /* it is of no action */
    OK(tide_copies_each(*rows, ME, note_copy, copies, err));
    assert_string_equal(copies, "m1");
    OK(tide_copy_unhide(*rows, ME, "m1", err));
    assert_string_equal(overlay(rows, ME, "m1"), "");
}

CASE(a_removed_account_leaves_nothing)
{
    const struct tide_change one = change("a", "INBOX", false, 1);
    struct tide_reader_action action;
    const uint64_t id = add(rows, ME, "archive", &one, 1, 100);
    (void)add(rows, OTHER, "archive", &one, 1, 100);
    OK(tide_reader_forget(*rows, ME, err));
    assert_int_equal(tide_action_get(*rows, ME, id, &action, NULL), TIDE_NOT_FOUND);
    assert_string_equal(overlay(rows, ME, "a"), "");
    assert_string_equal(overlay(rows, OTHER, "a"), "-INBOX ");
}

int main(void)
{
    return rows_tests_run();
}
