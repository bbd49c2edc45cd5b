/* Asking Gmail what became of drafts: each is asked in its turn, and one that Gmail has no answer for, or that
 * cannot be taken over, holds up nothing (jobs/look.c). */
#include "letters.h"

#include "reader/jobs/jobs.h"

enum { AT_ONCE = 100, MANY = AT_ONCE + 1, MISSED_MS = 5 * 60000 };

#define PHONE "To: " YOU "\r\nSubject: Plan\r\n\r\nFrom a phone.\r\n"

static void look(struct fixture *f)
{
    poll_now(f, 0);
    (void)settle(f);
}

static void change_there(struct fixture *f, uint32_t draft, const char *raw)
{
    const struct box_insert insert = {
        .raw = tide_text_of(raw), .date_ms = now_ms(f), .thread_id = TIDE_TEXT_NONE};
    box_mailbox_draft_update(f->mailboxes[0], draft, &insert);
}

static void save_copied(struct fixture *f, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(save(f, textf("d%03u", i), LETTER), TIDE_OK);
    (void)settle(f);
    assert_int_equal(with_label(f, BOX_LABEL_DRAFT), count);
}

/* As where a history begins. */
static void ask_all(struct fixture *f)
{
    struct tide_reader_user *user = NULL;
    tide_cache *cache = NULL;
    OK(tide_reader_cache_take(f->reader, f->accounts[0], &user, &cache, err));
    OK(tide_cache_begin(cache, err));
    OK(tide_cache_set(cache, TIDE_READER_DRAFTS_PLACE, TIDE_TEXT(""), err));
    OK(tide_cache_end(cache, tide_cache_set_u64(cache, TIDE_READER_DRAFTS_ASKED, 0, err), err));
    tide_reader_cache_give(f->reader, user, cache);
}

static size_t asked(struct fixture *f)
{
    return calls_with(f, "GET drafts/");
}

/* How many were asked at least once since that call. */
static size_t asked_since(const struct fixture *f, size_t from)
{
    size_t count = 0;
    for (size_t i = from; i < f->calls_count; i++) {
        bool again = strstr(f->calls[i].what, "GET drafts/") == NULL;
        for (size_t at = from; at < i && !again; at++)
            again = strcmp(f->calls[at].what, f->calls[i].what) == 0;
        count += !again;
    }
    return count;
}

CASE(every_draft_is_asked_for_once_where_there_are_more_than_a_poll_asks_for)
{
    save_copied(f, MANY);
    const size_t before = asked(f);
    const size_t from = f->calls_count;
    look(f); /* the history begins */
    assert_int_equal(asked(f) - before, AT_ONCE);
    look(f);
    assert_int_equal(asked(f) - before, MANY);
    assert_int_equal(asked_since(f, from), MANY);
    look(f);
    look(f);
    assert_int_equal(asked(f) - before, MANY);
    ask_all(f); /* from the first again */
    for (unsigned i = 0; i < 4; i++)
        look(f);
    assert_int_equal(asked(f) - before, 2 * MANY);
    assert_int_equal(failed_jobs(f), 0);
}

CASE(drafts_that_gmail_refuses_hold_up_no_others)
{
    look(f);
    save_copied(f, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        change_there(f, i, PHONE);
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.drafts.get\",\"fault\":\"403\"}");
    const size_t from = f->calls_count;
    look(f);
    look(f);
    assert_int_equal(asked_since(f, from), MANY);
    look(f);
    look(f);
    const size_t before = asked(f);
    look(f);
    assert_int_equal(asked(f), before); /* they wait */
}

CASE(a_draft_that_gmail_has_no_answer_for_stops_neither_the_poll_nor_another_copy)
{
    static const char *const settings[] = {"reader.offline=1d", NULL};
    life_end(f);
    f->settings = settings;
    OK(life_begin(f));
    look(f);
    save_copied(f, 2);
    const size_t before = asked(f);
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.drafts.get\",\"fault\":\"500\",\"count\":3}");
    change_there(f, 0, PHONE);
    const char *mail = deliver(f, 0, 1000);
    look(f);
    assert_int_equal(asked(f) - before, 1);
    assert_true(has_body(f, 0, mail)); /* a poll enqueues that at its end */
    assert_int_equal(save(f, "d001", SECOND), TIDE_OK);
    (void)settle(f);
    assert_int_equal(calls_with(f, "PUT drafts/"), 1);
    for (unsigned i = 0; i < 3; i++)
        look(f);
    assert_int_equal(asked(f) - before, 2); /* again at once, and then not at every poll */
    pass(f, MISSED_MS);
    look(f);
    look(f);
    assert_int_equal(asked(f) - before, 3);
    pass(f, MISSED_MS);
    look(f);
    look(f);
    assert_int_equal(asked(f) - before, 4);
    assert_int_equal(count_shown(f, 0, "DRAFT"), 0); /* the newer text is here */
    assert_int_equal(failed_jobs(f), 0);
}

CASE(a_draft_that_was_missed_where_all_are_asked_for_is_asked_again_alone)
{
    look(f);
    save_copied(f, 3);
    const size_t before = asked(f);
    tide_sim_cloud_fault(
        f->cloud, f->sim,
        "{\"method\":\"gmail.users.drafts.get\",\"fault\":\"garbage\",\"count\":1}");
    ask_all(f);
    look(f);
    assert_int_equal(asked(f) - before, 3);
    look(f);
    assert_int_equal(asked(f) - before, 4);
    look(f);
    assert_int_equal(asked(f) - before, 4);
}

static void change_there_to_a_long_one(struct fixture *f)
{
    enum { LONG = 2 << 20 };
    char *raw = malloc(LONG + 1);
    assert_non_null(raw);
    const int head = snprintf(raw, 200, "To: " YOU "\r\nSubject: Long\r\n\r\n");
    for (int i = head; i < LONG; i++)
        raw[i] = i % 70 == 0 ? '\n' : 'x';
    raw[LONG] = '\0';
    change_there(f, 0, raw);
    free(raw);
}

CASE(a_newer_text_that_cannot_be_taken_over_is_fetched_once)
{
    look(f);
    save_copied(f, 1);
    change_there_to_a_long_one(f);
    look(f);
    assert_int_equal(count_shown(f, 0, "DRAFT"), 1);
    assert_int_equal(drafts_of(f).count, 1);
    const size_t before = asked(f);
    const size_t raws = calls_with(f, "format=raw");
    assert_true(before > 0 && raws > 0);
    look(f);
    look(f);
    assert_int_equal(calls_with(f, "format=raw"), raws);
    assert_int_equal(asked(f), before);
    ask_all(f);
    look(f);
    assert_int_equal(asked(f), before + 1);
    assert_int_equal(calls_with(f, "format=raw"), raws);
    change_there(f, 0, PHONE); /* the history says so */
    look(f);
    assert_int_equal(asked(f), before + 2);
    assert_copied(f, "From a phone.");
    assert_int_equal(failed_jobs(f), 0);
}

/* Sent or deleted, it goes away here all the same. */
CASE(a_draft_whose_newer_text_was_refused_ends_with_it)
{
    look(f);
    save_copied(f, 1);
    change_there_to_a_long_one(f);
    look(f);
    look(f);
    box_mailbox_draft_remove(f->mailboxes[0], 0);
    look(f);
    assert_int_equal(drafts_of(f).count, 0);
    assert_int_equal(count_shown(f, 0, "DRAFT"), 0);
}
