/* Lists: the window at first, page by page for a person, new mail, changes by others (K5 to K9, K12). */
#include "reader_jobs_fixture.h"

#include "ledger/rows.h"
#include "mail/rows.h"
#include "support/wrap.h"
#include "world/desktop/metered.h"

CASE(the_window_is_listed_page_by_page_and_no_further)
{
    for (uint64_t i = 0; i < 45; i++)
        (void)deliver(f, 0, i * DAY_MS);
    poll_now(f, 0);
    (void)settle(f);
    /* 30 days, and what came with the last page of 20. */
    assert_int_equal(count_shown(f, 0, "INBOX"), 40);
    assert_int_equal(count_shown(f, 0, "ALL"), 40);
    assert_int_equal(calls_with(f, "GET messages?"), 2);
    assert_int_equal(calls_with(f, "format=metadata"), 40);
    assert_int_equal(calls_with(f, "format=raw"), 0);
    assert_int_equal(failed_jobs(f), 0);
    /* Looking again costs one call. */
    const size_t before = f->calls_count;
    pass(f, 60000);
    const struct tide_reader_job poll = {.kind = TIDE_READER_HEADERS,
                                         .account = f->accounts[0],
                                         .field = "folder",
                                         .key = TIDE_READER_POLL};
    OK(tide_reader_enqueue(f->reader, &poll, NULL, err));
    (void)settle(f);
    assert_int_equal(f->calls_count - before, 1);
}

CASE(a_person_who_scrolls_gets_the_next_page_of_that_list)
{
    uint64_t job = 0;
    for (uint64_t i = 0; i < 70; i++)
        (void)deliver(f, 0, i * DAY_MS);
    poll_now(f, 0);
    (void)settle(f);
    assert_int_equal(count_shown(f, 0, "INBOX"), 40);
    OK(tide_reader_more(f->reader, f->accounts[0], "INBOX", &job, err));
    (void)settle(f);
    assert_int_equal(count_shown(f, 0, "INBOX"), 59); /* the second of the floor is asked again */
    assert_int_equal(count_shown(f, 0, "ALL"), 40);   /* that list has holes further down */
    OK(tide_reader_more(f->reader, f->accounts[0], "INBOX", &job, err));
    (void)settle(f);
    assert_int_equal(count_shown(f, 0, "INBOX"), 70);
    const size_t before = f->calls_count;
    OK(tide_reader_more(f->reader, f->accounts[0], "INBOX", &job, err));
    (void)settle(f);
    assert_int_equal(f->calls_count, before); /* there is no more */
}

CASE(new_mail_and_changes_by_others_are_seen_by_one_poll)
{
    const char *kept = deliver(f, 0, 5000);
    const char *read = deliver(f, 0, 4000);
    const char *trashed = deliver(f, 0, 3000);
    const char *deleted = deliver(f, 0, 2000);
    poll_now(f, 0);
    (void)settle(f);
    const char *fresh = deliver(f, 0, 0);
    relabel(f, 0, read, BOX_LABEL_UNREAD, false);
    relabel(f, 0, trashed, BOX_LABEL_TRASH, true);
    box_mailbox_remove(f->mailboxes[0], box_mailbox_find(f->mailboxes[0], tide_text_of(deleted)));
    poll_now(f, 0);
    (void)settle(f);
    assert_string_equal(shown(f, 0, "ALL"), textf("%s %s %s", fresh, read, kept));
    assert_string_equal(shown(f, 0, "UNREAD"), textf("%s %s %s", fresh, trashed, kept));
    assert_string_equal(shown(f, 0, "TRASH"), trashed);
}

/* K12: what the mirror stored is shown, and not fetched. */
CASE(what_the_archive_has_is_never_fetched)
{
    const char *stored = deliver(f, 0, 2000);
    const char *fresh = deliver(f, 0, 1000);
    uint64_t job = 0;
    archive(f, 0, stored);
    poll_now(f, 0);
    (void)settle(f);
    assert_int_equal(calls_with(f, stored), 0);
    assert_int_equal(calls_with(f, fresh), 1);
    assert_string_equal(shown(f, 0, "INBOX"), textf("%s %s", fresh, stored));
    assert_string_equal(shown(f, 0, "ALL"), textf("%s %s", fresh, stored));
    OK(tide_reader_fetch(f->reader, f->accounts[0], stored, &job, err));
    assert_int_equal(job, 0);
    OK(tide_reader_fetch(f->reader, f->accounts[0], fresh, &job, err));
    assert_int_not_equal(job, 0);
    (void)settle(f);
    assert_int_equal(calls_with(f, stored), 0);
    assert_true(has_body(f, 0, fresh));
    /* A second wish finds it here. */
    OK(tide_reader_fetch(f->reader, f->accounts[0], fresh, &job, err));
    assert_int_equal(job, 0);
}

CASE(a_history_that_expired_is_made_good_without_a_word)
{
    const char *kept = deliver(f, 0, 5000);
    const char *deleted = deliver(f, 0, 2000);
    poll_now(f, 0);
    (void)settle(f);
    relabel(f, 0, kept, BOX_LABEL_UNREAD, false);
    box_mailbox_remove(f->mailboxes[0], box_mailbox_find(f->mailboxes[0], tide_text_of(deleted)));
    const char *fresh = deliver(f, 0, 0);
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.history.list\",\"fault\":\"404\",\"count\":1}");
    poll_now(f, 0);
    (void)settle(f);
    assert_string_equal(shown(f, 0, "INBOX"), textf("%s %s", fresh, kept));
    assert_string_equal(shown(f, 0, "UNREAD"), fresh);
    assert_int_equal(failed_jobs(f), 0);
}

CASE(a_refresh_blanks_nothing_and_shows_what_is_new)
{
    const char *old = deliver(f, 0, 5000);
    uint64_t job = 0;
    poll_now(f, 0);
    (void)settle(f);
    const char *fresh = deliver(f, 0, 0);
    f->think_us = 300000;
    OK(tide_reader_refresh(f->reader, f->accounts[0], "INBOX", &job, err));
    pass(f, 100);
    assert_string_equal(shown(f, 0, "INBOX"), old); /* while it runs */
    (void)settle(f);
    assert_string_equal(shown(f, 0, "INBOX"), textf("%s %s", fresh, old));
}

CASE(a_search_at_the_server_brings_what_is_not_here)
{
    uint64_t job = 0;
    for (uint64_t i = 0; i < 3; i++)
        (void)deliver(f, 0, 100 * DAY_MS + i);
    poll_now(f, 0);
    (void)settle(f);
    OK(tide_reader_search(f->reader, f->accounts[0], "from:anna", &job, err));
    (void)settle(f);
    assert_int_equal(calls_with(f, "format=metadata"), 3);
    assert_int_equal(failed_jobs(f), 0);
}

CASE(a_cache_that_somebody_deleted_is_filled_again)
{
    const char *id = deliver(f, 0, 5000);
    poll_now(f, 0);
    (void)settle(f);
    life_end(f);
    OK(tide_cache_remove(tide_sim_world(f->sim), "/cache", ME, err));
    OK(life_begin(f));
    assert_string_equal(shown(f, 0, "INBOX"), "");
    poll_now(f, 0);
    (void)settle(f);
    assert_string_equal(shown(f, 0, "INBOX"), id);
}

/* Lesson 5 of our own: a token of another mailbox is not an error to any API. */
CASE(a_sign_in_of_somebody_else_stores_nothing)
{
    (void)deliver(f, 1, 1000);
    life_end(f);
    tide_auto_buf grant = tide_buf_heap(4096);
    OK(tide_oauth_fixed("you-0", &grant, err));
    tide_secrets *secrets = NULL;
    OK(tide_secrets_open(tide_sim_world(f->sim), "/secrets", TIDE_SECRETS_FILES, tide_mem_heap(),
                         &secrets, err));
    OK(tide_secrets_put(secrets, "gmail/" ME, tide_buf_text(&grant), err));
    tide_secrets_close(secrets);
    OK(life_begin(f));
    poll_now(f, 0);
    pass(f, 60000);
    assert_string_equal(shown(f, 0, "INBOX"), "");
    assert_int_equal(calls_with(f, "GET messages"), 0);
}

/* Three sources, one list: each message once, in order, over page ends (VWR1, VWR3). */
CASE(a_list_of_archive_cache_and_overlay_is_one_list)
{
    char expected[2000] = "";
    char starred[2000] = "";
    const char *ids[24];
    char room[24][32];
    for (uint64_t i = 0; i < 24; i++) {
        (void)snprintf(room[i], sizeof room[i], "%s", deliver(f, 0, (24 - i) * 60000));
        ids[i] = room[i];
        if (i % 3 == 0)
            archive(f, 0, ids[i]);
    }
    poll_now(f, 0);
    (void)settle(f);
    tide_sim_net_down(f->sim, true);
    for (size_t i = 0; i < 24; i += 2)
        (void)act(f, 0, "star", ids[i]);
    (void)act(f, 0, "trash", ids[3]);
    (void)act(f, 0, "trash", ids[4]);
    for (int i = 23; i >= 0; i--) {
        const bool trashed = i == 3 || i == 4;
        if (!trashed)
            (void)snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%s",
                           expected[0] == '\0' ? "" : " ", ids[i]);
        if (i % 2 == 0)
            (void)snprintf(starred + strlen(starred), sizeof starred - strlen(starred), "%s%s",
                           starred[0] == '\0' ? "" : " ", ids[i]);
    }
    assert_string_equal(shown(f, 0, "INBOX"), expected);
    assert_string_equal(shown(f, 0, "ALL"), expected);
    assert_string_equal(shown(f, 0, "STARRED"), starred);
    assert_string_equal(shown(f, 0, "TRASH"), textf("%s %s", ids[4], ids[3]));
    tide_sim_net_down(f->sim, false);
    (void)settle(f);
    assert_string_equal(shown(f, 0, "INBOX"), expected); /* what is confirmed is shown the same */
    assert_string_equal(shown(f, 0, "STARRED"), starred);
    assert_string_equal(shown(f, 0, "TRASH"), textf("%s %s", ids[4], ids[3]));
    assert_string_equal(shown(f, 0, "x\" OR label:\"INBOX"), "");
}

/* ---- by itself ---- */

/* K7, KR7: nobody looked yet, somebody looks, nobody looks any more. */
CASE(polls_follow_the_page_that_is_open)
{
    (void)deliver(f, 0, 1000);
    OK(tide_reader_watch(f->reader, err));
    pass(f, 3600000);
    assert_int_equal(f->calls_count, 0); /* nobody ever looked */
    tide_reader_look(f->reader, true);
    pass(f, 60000);
    const size_t active = calls_with(f, "GET history");
    assert_true(active >= 2 * 10 && active <= 2 * 13); /* every 5 s, two accounts */
    tide_reader_look(f->reader, false);
    pass(f, 14 * 60000);
    const size_t quiet = calls_with(f, "GET history");
    assert_true(quiet - active <= 4);
    pass(f, 60 * 60000);
    assert_true(calls_with(f, "GET history") - quiet <= 2 * 5);
    tide_reader_watch_end(f->reader);
}

/* What the system says of the link. */
static bool link_is_metered;

WRAP(bool, tide_metered_now, tide_metered *metered, uint64_t now_ms)
{
    (void)metered;
    (void)now_ms;
    return link_is_metered;
}

/* Calls of an open page in ten minutes, with a setting. */
static size_t polls_in_ten_minutes(struct fixture *f, const char *setting, bool metered)
{
    const char *const settings[] = {setting, NULL};
    life_end(f);
    f->settings = settings;
    OK(life_begin(f));
    f->settings = NULL;
    link_is_metered = metered;
    const size_t before = calls_with(f, "GET history");
    OK(tide_reader_watch(f->reader, NULL));
    tide_reader_look(f->reader, true);
    pass(f, 600000);
    tide_reader_watch_end(f->reader);
    link_is_metered = false;
    return calls_with(f, "GET history") - before;
}

CASE(on_a_metered_link_an_open_page_polls_rarely_unless_the_setting_says_otherwise)
{
    (void)deliver(f, 0, 1000);
    poll_now(f, 0);
    poll_now(f, 1);
    (void)settle(f);
    assert_true(polls_in_ten_minutes(f, "reader.saving=auto", true) <= 4);
    assert_true(polls_in_ten_minutes(f, "reader.saving=never", true) >= 200);
    assert_true(polls_in_ten_minutes(f, "reader.saving=auto", false) >= 200);
    assert_true(polls_in_ten_minutes(f, "reader.saving=always", false) <= 4);
}

struct mark {
    uint64_t stream;
    char history_id[32];
};

static tide_status put_mark(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct mark *mark = arg;
    return tide_mail_mark_put(tide_transaction_rows(transaction), mark->stream, 0,
                              tide_text_of(mark->history_id), err);
}

/* The archive is as old as the last run of the mirror: a first look reads what changed since. */
CASE(a_first_look_begins_where_the_mirror_is)
{
    struct mark mark = {.stream = 0};
    const char *id = deliver(f, 0, 1000);
    archive(f, 0, id);
    (void)snprintf(mark.history_id, sizeof mark.history_id, "%" PRIu64,
                   box_mailbox_history_id(f->mailboxes[0]));
    OK(tide_stream_open(f->engine, f->accounts[0], "mail.1", NULL, &mark.stream, err));
    OK(tide_transact(f->engine, put_mark, &mark, err));
    relabel(f, 0, id, BOX_LABEL_INBOX, false);
    poll_now(f, 0);
    (void)settle(f);
    poll_now(f, 0);
    (void)settle(f);
    assert_string_equal(shown(f, 0, "INBOX"), "");
    assert_string_equal(shown(f, 0, "ALL"), id);
    assert_int_equal(calls_with(f, "format="), 0);
}

/* K9: nobody saw what changed meanwhile, and the mirror perhaps neither. */
CASE(labels_of_archived_messages_are_asked_for_after_a_lost_history)
{
    const char *here = deliver(f, 0, 2000);
    const char *there = deliver(f, 0, 1000);
    const char *thrown = deliver(f, 0, 500);
    archive(f, 0, here);
    archive(f, 0, there);
    archive(f, 0, thrown);
    poll_now(f, 0);
    (void)settle(f);
    (void)act(f, 0, "archive", here); /* it has a row in the cache now */
    (void)settle(f);
    relabel(f, 0, there, BOX_LABEL_INBOX, false);
    relabel(f, 0, thrown, BOX_LABEL_INBOX, false);
    relabel(f, 0, thrown, BOX_LABEL_TRASH, true); /* no list names it */
    box_mailbox_history_expire_all(f->mailboxes[0]);
    poll_now(f, 0);
    (void)settle(f);
    assert_string_equal(shown(f, 0, "INBOX"), "");
    assert_string_equal(shown(f, 0, "ALL"), textf("%s %s", there, here));
    assert_int_equal(calls_with(f, "format=raw"), 0); /* KR5 */
}

/* More of them than a page: who asks for what is stale until nothing is would never end. */
CASE(rows_that_the_archive_answers_for_are_not_looked_at_for_ever)
{
    for (uint64_t i = 0; i < 25; i++) {
        const char *id = deliver(f, 0, (i + 1) * 1000);
        archive(f, 0, id);
        (void)act(f, 0, "archive", id); /* it has a row before the first look at the history */
    }
    poll_now(f, 0);
    (void)settle(f);
    assert_int_equal(count_shown(f, 0, "ALL"), 25);
    assert_string_equal(shown(f, 0, "INBOX"), "");
    assert_int_equal(failed_jobs(f), 0);
}

/* The server has the action, the archive does not know it yet: making room must not show it undone. */
CASE(a_row_stays_until_the_archive_says_the_same)
{
    const char *id = deliver(f, 0, 1000);
    archive(f, 0, id);
    poll_now(f, 0);
    (void)settle(f);
    (void)act(f, 0, "archive", id);
    (void)settle(f);
    const struct tide_reader_job evict = {
        .kind = TIDE_READER_EVICT, .account = f->accounts[0], .key = "evict"};
    OK(tide_reader_enqueue(f->reader, &evict, NULL, err));
    (void)settle(f);
    assert_string_equal(shown(f, 0, "INBOX"), "");
    assert_string_equal(shown(f, 0, "ALL"), id);
}

/* ---- what Gmail refuses ---- */

static void refuse(struct fixture *f, const char *id)
{
    tide_sim_cloud_fault(
        f->cloud, f->sim,
        textf("{\"method\":\"gmail.users.messages.get\",\"id\":\"%s\",\"fault\":\"403\"}", id));
}

static void faults_end(struct fixture *f)
{
    json_decref(
        tide_sim_cloud_control(f->cloud, f->sim, "DELETE", "/_cloud/faults", TIDE_TEXT_NONE));
}

/* Lesson 5 of Gmail: one message must not stop the others. */
CASE(a_message_that_gmail_refuses_stops_no_poll_and_is_asked_for_again)
{
    poll_now(f, 0);
    (void)settle(f);
    const char *refused = deliver(f, 0, 3000);
    const char *good = deliver(f, 0, 2000);
    refuse(f, refused);
    poll_now(f, 0);
    (void)settle(f);
    assert_string_equal(shown(f, 0, "INBOX"), good);
    const char *fresh = deliver(f, 0, 1000);
    poll_now(f, 0);
    (void)settle(f);
    assert_string_equal(shown(f, 0, "INBOX"), textf("%s %s", fresh, good));
    assert_int_equal(calls_with(f, refused), 1); /* not with every poll */
    assert_int_equal(failed_jobs(f), 0);
    assert_int_equal(refused_here(f, 0), 1);
    pass(f, 3700000);
    poll_now(f, 0);
    (void)settle(f);
    assert_int_equal(calls_with(f, refused), 2);
    assert_int_equal(refused_here(f, 0), 1);
    faults_end(f);
    pass(f, 3700000);
    poll_now(f, 0);
    (void)settle(f);
    assert_string_equal(shown(f, 0, "INBOX"), textf("%s %s %s", fresh, good, refused));
    assert_int_equal(refused_here(f, 0), 0);
}

/* A poll with one message cannot tell the message from the mailbox; it goes on, too. */
CASE(a_refused_message_that_came_alone_stops_no_poll)
{
    poll_now(f, 0);
    (void)settle(f);
    const char *refused = deliver(f, 0, 3000);
    refuse(f, refused);
    poll_now(f, 0);
    (void)settle(f);
    assert_int_equal(failed_jobs(f), 0);
    assert_int_equal(refused_here(f, 0), 1);
    /* With the clock set back its time is not further away than before. */
    tide_sim_wall_jump(f->sim, -(int64_t)(30 * DAY_MS));
    faults_end(f);
    poll_now(f, 0);
    (void)settle(f);
    assert_string_equal(shown(f, 0, "INBOX"), refused);
}

CASE(a_page_whose_messages_are_all_refused_is_a_failure_and_loses_none)
{
    poll_now(f, 0);
    (void)settle(f);
    const char *first = deliver(f, 0, 3000);
    const char *second = deliver(f, 0, 2000);
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.messages.get\",\"fault\":\"403\"}");
    poll_now(f, 0);
    (void)settle(f);
    assert_int_equal(failed_jobs(f), 1);
    faults_end(f);
    poll_now(f, 0);
    (void)settle(f);
    assert_string_equal(shown(f, 0, "INBOX"), textf("%s %s", second, first));
    assert_int_equal(refused_here(f, 0), 0);
}

/* Bodies are kept to be read without a network, but for the one that is refused. */
CASE(a_refused_body_does_not_hold_up_the_others)
{
    static const char *const settings[] = {"reader.offline=1d", NULL};
    life_end(f);
    f->settings = settings;
    OK(life_begin(f));
    const char *bodies[3];
    for (uint64_t i = 0; i < 3; i++)
        bodies[i] = deliver(f, 0, 1000 * (i + 1));
    tide_sim_cloud_fault(f->cloud, f->sim,
                         textf("{\"method\":\"gmail.users.messages.get\",\"id\":\"%s\",\"after\":1,"
                               "\"fault\":\"403\"}",
                               bodies[0])); /* its headers come */
    poll_now(f, 0);
    (void)settle(f);
    poll_now(f, 0); /* the first one lists */
    (void)settle(f);
    assert_true(has_body(f, 0, bodies[1]) && has_body(f, 0, bodies[2]));
    assert_false(has_body(f, 0, bodies[0]));
    assert_int_equal(refused_here(f, 0), 1);
    assert_int_equal(failed_jobs(f), 0);
    faults_end(f);
    pass(f, 3700000);
    poll_now(f, 0);
    (void)settle(f);
    assert_true(has_body(f, 0, bodies[0]));
    assert_int_equal(refused_here(f, 0), 0);
}

static void see_why(tide_cache *cache, const char *id, char why[400])
{
    why[0] = '\0';
    const tide_status rc = tide_cache_refused_why(cache, tide_text_of(id), why, 400, NULL);
    assert_true(rc == TIDE_OK || rc == TIDE_NOT_FOUND);
}

static void count_id(tide_text id, void *arg)
{
    (void)id;
    ++*(size_t *)arg;
}

/* Who opened it waits for it: the reason is kept, and told as a change. */
CASE(a_body_that_gmail_refuses_says_why_to_who_opened_it)
{
    const char *id = deliver(f, 0, 1000);
    struct tide_reader_user *user = NULL;
    tide_cache *cache = NULL;
    char why[400];
    uint64_t job = 0;
    uint64_t version = 0;
    size_t changed = 0;
    bool whole = false;
    poll_now(f, 0);
    (void)settle(f);
    OK(tide_reader_cache_take(f->reader, f->accounts[0], &user, &cache, err));
    OK(tide_cache_version(cache, &version, err));
    refuse(f, id);
    OK(tide_reader_fetch(f->reader, f->accounts[0], id, &job, err));
    (void)settle(f);
    see_why(cache, id, why);
    assert_true(strlen(why) > 0);
    OK(tide_cache_changes(cache, version, count_id, &changed, &whole, err));
    assert_int_equal(changed, 1);
    assert_int_equal(failed_jobs(f), 0);
    faults_end(f);
    OK(tide_reader_fetch(f->reader, f->accounts[0], id, &job, err)); /* opened again */
    (void)settle(f);
    assert_true(has_body(f, 0, id));
    see_why(cache, id, why);
    assert_string_equal(why, "");
    tide_reader_cache_give(f->reader, user, cache);
}

/* ---- half a page ---- */

/* K9: what was listed before the history was lost says nothing about what came in between. */
CASE(a_page_that_was_interrupted_while_the_history_was_lost_leaves_no_hole)
{
    uint64_t job = 0;
    for (uint64_t i = 0; i < 45; i++)
        (void)deliver(f, 0, (i + 1) * 3600000);
    f->think_us = 100000;
    poll_now(f, 0);
    while (calls_with(f, "format=metadata") < 25)
        pass(f, 10);
    assert_int_equal(calls_with(f, "GET messages?"), 2); /* in the middle of the second page */
    char fresh[32];
    (void)snprintf(fresh, sizeof fresh, "%s", deliver(f, 0, 0));
    box_mailbox_history_expire_all(f->mailboxes[0]);
    OK(tide_reader_refresh(f->reader, f->accounts[0], "STARRED", &job, err));
    (void)settle(f);
    poll_now(f, 0);
    (void)settle(f);
    assert_non_null(strstr(shown(f, 0, "INBOX"), fresh));
    assert_int_equal(count_shown(f, 0, "ALL"), 46);
    assert_int_equal(failed_jobs(f), 0);
}
