/* records.c - bad items, intents, schedules, alerts and accounts. */
#include "ledger_fixture.h"

#include <stdio.h>
#include <string.h>

struct seen_bad {
    struct tide_bad_row row;
    size_t count;
};

static bool see_bad(const struct tide_bad_row *row, void *arg)
{
    struct seen_bad *seen = arg;
    seen->row = *row;
    seen->count++;
    return true;
}

static struct seen_bad bad_of(struct fixture *f)
{
    struct seen_bad seen = {.count = 0};
    OK(tide_ledger_bad_list(f->ledger, f->account, f->once, see_bad, &seen, &f->err));
    return seen;
}

static void report_item(struct fixture *f, tide_status status)
{
    uint64_t id = add_plain(f);
    struct tide_item_report item = {TIDE_TEXT("m1"), TIDE_TEXT("why"), status};
    assert_true(finish(f, &(struct tide_finish){.id = id,
                                                .token = claim(f, id),
                                                .state = TIDE_ROW_DONE,
                                                .items = &item,
                                                .items_count = 1}));
}

CASE(bad_items_are_counted_accepted_and_forgotten)
{
    report_item(f, TIDE_GONE);
    assert_int_equal(bad_of(f).row.state, TIDE_BAD_GONE);
    report_item(f, TIDE_TIMEOUT);
    assert_int_equal(bad_of(f).row.state, TIDE_BAD_OWED);
    report_item(f, TIDE_PERMANENT);
    struct seen_bad seen = bad_of(f);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.row.state, TIDE_BAD_BAD);
    assert_int_equal(seen.row.retries, 2);
    begin(f);
    OK(tide_ledger_bad_state(f->tx, f->account, f->once, TIDE_TEXT("m1"), TIDE_BAD_RETRYING, NOW,
                             &f->err));
    commit(f);
    report_item(f, TIDE_PERMANENT);
    assert_int_equal(bad_of(f).row.state, TIDE_BAD_BAD);
    begin(f);
    OK(tide_ledger_bad_state(f->tx, f->account, f->once, TIDE_TEXT("m1"), TIDE_BAD_ACCEPTED, NOW,
                             &f->err));
    assert_int_equal(tide_ledger_bad_state(f->tx, f->account, f->once, TIDE_TEXT("m2"),
                                           TIDE_BAD_ACCEPTED, NOW, &f->err),
                     TIDE_NOT_FOUND);
    commit(f);
    report_item(f, TIDE_PERMANENT);
    assert_int_equal(bad_of(f).row.state, TIDE_BAD_ACCEPTED);
    report_item(f, TIDE_OK);
    assert_int_equal(bad_of(f).count, 0);
}

CASE(an_intent_is_made_once_and_remembers_its_outcome)
{
    tide_intent_state intent = TIDE_INTENT_FAILED;
    tide_buf outcome;
    tide_buf_init(&outcome, tide_mem_heap(), 1000);
    tide_text tag = TIDE_TEXT("tag-1");
    assert_int_equal(tide_ledger_intent_find(f->ledger, tag, &intent, &outcome, &f->err),
                     TIDE_NOT_FOUND);
    begin(f);
    OK(tide_ledger_intent(f->tx, 1, tag, TIDE_TEXT("send"), NOW, &intent, &outcome, &f->err));
    assert_int_equal(intent, TIDE_INTENT_MADE);
    commit(f);
    reopen(f, false);
    OK(tide_ledger_intent_find(f->ledger, tag, &intent, &outcome, &f->err));
    assert_int_equal(intent, TIDE_INTENT_MADE);
    begin(f);
    OK(tide_ledger_intent_end(f->tx, tag, TIDE_INTENT_UNKNOWN, TIDE_TEXT_NONE, NOW, &f->err));
    OK(tide_ledger_intent_end(f->tx, tag, TIDE_INTENT_DONE, TIDE_TEXT("id 5"), NOW, &f->err));
    assert_int_equal(tide_ledger_intent_end(f->tx, TIDE_TEXT("tag-2"), TIDE_INTENT_DONE,
                                            TIDE_TEXT_NONE, NOW, &f->err),
                     TIDE_NOT_FOUND);
    OK(tide_ledger_intent(f->tx, 2, tag, TIDE_TEXT("send"), NOW, &intent, &outcome, &f->err));
    commit(f);
    assert_int_equal(intent, TIDE_INTENT_DONE);
    assert_string_equal(tide_buf_cstr(&outcome), "id 5");
    tide_buf_done(&outcome);
}

static bool see_schedule(const struct tide_schedule_row *row, void *arg)
{
    struct tide_schedule_row *seen = arg;
    *seen = *row;
    return true;
}

CASE(a_slot_fires_once)
{
    struct tide_schedule_row row = {.kind = f->once,
                                    .period_ms = 60000,
                                    .anchor_unix_ms = NOW,
                                    .at_start = true,
                                    .name = TIDE_TEXT("purge"),
                                    .payload = TIDE_TEXT("{}")};
    uint64_t id = 0;
    begin(f);
    OK(tide_ledger_schedule(f->tx, &row, &id, &f->err));
    OK(tide_ledger_schedule_fire(f->tx, id, 3, NOW, &f->err));
    assert_int_equal(tide_ledger_schedule_fire(f->tx, id, 3, NOW, &f->err), TIDE_EXISTS);
    assert_int_equal(tide_ledger_schedule_fire(f->tx, id, 2, NOW, &f->err), TIDE_EXISTS);
    assert_int_equal(tide_ledger_schedule_fire(f->tx, id + 1, 2, NOW, &f->err), TIDE_NOT_FOUND);
    commit(f);
    reopen(f, false);
    row.period_ms = 1000;
    uint64_t same = 0;
    begin(f);
    OK(tide_ledger_schedule(f->tx, &row, &same, &f->err));
    assert_int_equal(same, id);
    assert_int_equal(tide_ledger_schedule_fire(f->tx, id, 3, NOW, &f->err), TIDE_EXISTS);
    OK(tide_ledger_schedule_fire(f->tx, id, 9, NOW, &f->err));
    commit(f);
    struct tide_schedule_row seen = {0};
    OK(tide_ledger_schedules(f->ledger, see_schedule, &seen, &f->err));
    assert_int_equal(seen.slot_last, 9);
    assert_int_equal(seen.period_ms, 1000);
    assert_true(seen.at_start);
}

static bool see_alert(const struct tide_alert_row *row, void *arg)
{
    *(struct tide_alert_row *)arg = *row;
    return true;
}

static bool see_account(const struct tide_account_row *row, void *arg)
{
    struct tide_account_row *seen = arg;
    *seen = *row;
    assert_true(tide_text_equal(row->governor, TIDE_TEXT("saved")));
    return true;
}

CASE(alerts_and_accounts_are_remembered)
{
    begin(f);
    OK(tide_ledger_alert(f->tx, "throttled", f->account, 1, "slow", NOW, &f->err));
    OK(tide_ledger_alert_notified(f->tx, "throttled", f->account, NOW + 1, &f->err));
    OK(tide_ledger_alert(f->tx, "throttled", f->account, 2, "slower", NOW + 2, &f->err));
    OK(tide_ledger_account_halt(f->tx, f->account, true, "broken", NOW, &f->err));
    OK(tide_ledger_governor_save(f->tx, f->account, TIDE_TEXT("saved"), &f->err));
    commit(f);
    reopen(f, true);
    struct tide_alert_row alert = {.level = 0};
    OK(tide_ledger_alerts(f->ledger, see_alert, &alert, &f->err));
    assert_int_equal(alert.level, 2);
    assert_int_equal(alert.since_unix_ms, NOW);
    assert_int_equal(alert.notified_unix_ms, NOW + 1);
    assert_string_equal(alert.text, "slower");
    assert_string_equal(alert.account_name, "a@example.com");
    struct tide_account_row account = {.id = 0};
    OK(tide_ledger_accounts(f->ledger, see_account, &account, &f->err));
    assert_true(account.halted);
    assert_string_equal(account.halt_reason, "broken");
    assert_int_equal(account.halted_unix_ms, NOW);
    uint32_t again = 0;
    begin(f);
    OK(tide_ledger_alert(f->tx, "throttled", f->account, 0, "", NOW, &f->err));
    OK(tide_ledger_account(f->tx, "a@example.com", "onedrive", &again, &f->err));
    OK(tide_ledger_account_halt(f->tx, f->account, false, "", NOW, &f->err));
    commit(f);
    assert_int_equal(again, f->account);
    alert.level = 0;
    OK(tide_ledger_alerts(f->ledger, see_alert, &alert, &f->err));
    assert_int_equal(alert.level, 0);
    OK(tide_ledger_account_find(f->ledger, "a@example.com", &again, &f->err));
    assert_int_equal(tide_ledger_account_find(f->ledger, "b", &again, &f->err), TIDE_NOT_FOUND);
}

/* E6.4: text as it is, numbers as 8 bytes each, of this account alone. */
CASE(what_is_remembered_of_an_account_is_measured)
{
    uint64_t before = 0;
    uint64_t after = 0;
    struct tide_stream_row stream;
    struct tide_cycle_row cycle;
    bool bad = true;
    OK(tide_ledger_metadata(f->ledger, f->account, &before, &bad, &f->err));
    assert_false(bad);
    report_item(f, TIDE_PERMANENT); /* "m1", "why" and seven numbers */
    OK(tide_ledger_metadata(f->ledger, f->account, &after, &bad, &f->err));
    assert_int_equal(after - before, 2 + 3 + 56);
    assert_true(bad);
    begin(f);
    OK(tide_ledger_governor_save(f->tx, f->account, TIDE_TEXT("\xc3\xa9t\xc3\xa9"), &f->err));
    OK(tide_ledger_stream(f->tx, f->account, "new", TIDE_TEXT("fl"), &stream, &f->err));
    OK(tide_ledger_cycle(f->tx, stream.id, TIDE_TEXT("a"), TIDE_TEXT("bcd"), NOW, &cycle, &f->err));
    commit(f);
    before = after;
    OK(tide_ledger_metadata(f->ledger, f->account, &after, &bad, &f->err));
    assert_int_equal(after - before, 5 + (3 + 2 + 32) + (4 + 48));
    OK(tide_ledger_metadata(f->ledger, f->account + 1000, &after, &bad, &f->err));
    assert_int_equal(after, 0);
    assert_false(bad);
}

/* ---- pages of bad items ---- */

struct bad_page {
    char items[200];
    char last[8];
    struct tide_bad_key key;
    size_t count, count_max;
};

static bool page_row(const struct tide_bad_row *row, void *arg)
{
    struct bad_page *page = arg;
    (void)snprintf(page->last, sizeof page->last, "%.*s", (int)row->item.bytes, row->item.data);
    (void)strncat(page->items, page->last, 8);
    page->key = (struct tide_bad_key){row->account, row->kind, tide_text_of(page->last)};
    return ++page->count < page->count_max;
}

/* In the order of bytes on every store, also where a locale would sort otherwise. */
CASE(bad_items_come_in_pages_that_continue_behind_a_row)
{
    static const char *const names[] = {"b", "A", "a", "\xc3\xa4", "B", "a-1", "a1"};
    struct bad_page page = {.count_max = 2};
    uint64_t count = 0;
    for (size_t i = 0; i < 7; i++) {
        uint64_t id = add_plain(f);
        struct tide_item_report item = {tide_text_of(names[i]), TIDE_TEXT("why"),
                                        i == 0 ? TIDE_GONE : TIDE_PERMANENT};
        assert_true(finish(f, &(struct tide_finish){.id = id,
                                                    .token = claim(f, id),
                                                    .state = TIDE_ROW_DONE,
                                                    .items = &item,
                                                    .items_count = 1}));
    }
    for (page.count = 2; page.count == 2;) {
        page.count = 0;
        OK(tide_ledger_bad_after(f->ledger, UINT32_MAX, 0, &page.key, page_row, &page, &f->err));
    }
    assert_string_equal(page.items, "ABaa-1a1b\xc3\xa4");
    OK(tide_ledger_bad_count(f->ledger, UINT32_MAX, 0, -1, &count, &f->err));
    assert_int_equal(count, 7);
    OK(tide_ledger_bad_count(f->ledger, f->account, f->once, TIDE_BAD_GONE, &count, &f->err));
    assert_int_equal(count, 1);
    OK(tide_ledger_bad_count(f->ledger, f->account, f->alone, -1, &count, &f->err));
    assert_int_equal(count, 0);
}
