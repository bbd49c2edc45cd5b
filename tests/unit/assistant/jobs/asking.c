/* The cloud's chat model answers, within a budget (jobs/chat.h; J19, J27). */
#include "assistant_jobs_fixture.h"

#include "assistant/budget/budget.h"
#include "ledger/rows.h"

static tide_status make_tables(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)arg;
    return tide_assistant_budget_tables(tide_transaction_rows(transaction), err);
}

static tide_status read_left(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct fixture *f = ((void **)arg)[0];
    return tide_assistant_budget_left(tide_transaction_rows(transaction), f->model_account,
                                      f->chat.tokens_per_day, tide_sim_net_unix_ms(f->sim),
                                      ((void **)arg)[1], err);
}

static struct tide_assistant_left left(struct fixture *f)
{
    struct tide_assistant_left left;
    void *both[] = {f, &left};
    OK(tide_transact(f->engine, read_left, both, err));
    return left;
}

static struct fixture *begin_chat(void)
{
    struct fixture *f = begin(NULL);
    const struct tide_chat_options options = {.endpoint = ORIGIN,
                                              .model = "tide-fast",
                                              .key = TIDE_TEXT("key-0a1B2c3D4e5F6a7B8c9D"),
                                              .world = tide_sim_world(f->sim)};
    OK(tide_transact(f->engine, make_tables, NULL, err));
    f->chat = (struct tide_assistant_chat){.engine = f->engine,
                                           .world = tide_sim_world(f->sim),
                                           .account = f->model_account,
                                           .tokens_per_day = 1000000};
    OK(tide_chat_open(&options, tide_mem_heap(), &f->chat.chat, err));
    json_decref(tide_sim_cloud_control(
        f->cloud, f->sim, "POST", "/_cloud/chat",
        TIDE_TEXT("{\"contains\":\"PINEAPPLE\",\"reply\":\"{\\\"category\\\":\\\"waiting\\\","
                  "\\\"confidence\\\":\\\"high\\\",\\\"reasoning\\\":\\\"r\\\"}\"}")));
    return f;
}

static void finish_chat(struct fixture *f)
{
    tide_chat *chat = f->chat.chat;
    finish(f);
    tide_chat_close(chat);
}

TEST_OF(the_clouds_model_classifies, struct fixture *f, begin_chat(), finish_chat)
{
    deliver(f, "anna@example.com", "Fruit", "PINEAPPLE", NULL);
    sync_now(f, false);
    assert_string_equal(labels_of(f, f->thread), "Waiting");
    assert_int_equal(failed_jobs(f), 0);
    const struct tide_assistant_left after = left(f);
    assert_true(after.spent > 0);
    assert_int_equal(after.held, 0); /* settled */
}

/* A server that fails for a while, and one that refuses: the record is there, nothing is held. */
TEST_OF(a_model_that_is_down_is_asked_again, struct fixture *f, begin_chat(), finish_chat)
{
    tide_sim_cloud_fault(f->cloud, f->sim, "{\"method\":\"chat.*\",\"fault\":\"500\",\"count\":2}");
    deliver(f, "anna@example.com", "Fruit", "PINEAPPLE", NULL);
    sync_now(f, false);
    assert_string_equal(labels_of(f, f->thread), "Waiting");
    assert_int_equal(f->asked[ASKED_CLASSIFY], 3);
    assert_int_equal(left(f).held, 0);
}

/* J27: without tokens left the question waits for the next day. */
TEST_OF(over_its_budget_a_question_waits_for_the_next_day, struct fixture *f, begin_chat(),
        finish_chat)
{
    deliver(f, "anna@example.com", "Fruit", "PINEAPPLE", NULL);
    sync_now(f, false);
    /* Enough for one question a day, and not for another one beside what is spent. */
    f->chat.tokens_per_day = f->cost + left(f).spent / 2;
    const uint64_t day = tide_assistant_day_of(tide_sim_net_unix_ms(f->sim));
    deliver(f, "anna@example.com", "More fruit", "PINEAPPLE", NULL);
    sync_now(f, false);
    assert_string_equal(labels_of(f, f->thread), "Waiting");
    assert_int_equal(tide_assistant_day_of(tide_sim_net_unix_ms(f->sim)), day + 1);
    assert_int_equal(failed_jobs(f), 0);
}

static tide_status count_cut(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_rows_number(tide_transaction_rows(transaction), "test", arg, err,
                            "SELECT count(*) FROM assistant_call WHERE kind = 'draft'"
                            " AND error LIKE '%was cut%' AND answer <> ''");
}

/* J11: a draft that the limit of tokens cut looks like a whole one.  The user is told, and what there is of
 * it can be looked at.  A classification that was cut is one that cannot be read (J10). */
TEST_OF(a_draft_that_was_cut_says_so, struct fixture *f, begin_chat(), finish_chat)
{
    uint64_t cut = 0;
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"chat.*\",\"fault\":\"length\",\"count\":9}");
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_non_null(strstr(draft_text(f, f->thread), "No reply was written: the answer was cut"));
    assert_int_equal(f->asked[ASKED_DRAFT], 1);
    OK(tide_transact(f->engine, count_cut, &cut, err));
    assert_int_equal(cut, 1);
    assert_int_equal(left(f).held, 0);
}
