/* Calls within a budget, as jobs make them: hold, call, settle with the job's end (J19, J27). */
#include "assistant/budget/budget.h"
#include "chat_client_fixture.h"
#include "ledger/rows.h"

enum { CALLS = 6, TOKENS_MAX = 100 };

/* What the jobs do, beside the call. */
static uint64_t limit;
static unsigned dies; /* so many calls end without a word about their end */

struct ending {
    uint32_t account;
    uint64_t call;
    struct tide_assistant_used used;
};

struct holding {
    struct tide_assistant_hold hold;
    uint64_t again_unix_ms;
};

static tide_status make_tables(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)arg;
    return tide_assistant_budget_tables(tide_transaction_rows(transaction), err);
}

static tide_status hold(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct holding *holding = arg;
    return tide_assistant_budget_hold(tide_transaction_rows(transaction), &holding->hold,
                                      &holding->again_unix_ms, err);
}

static tide_status settle(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct ending *ending = arg;
    return tide_assistant_budget_settle(tide_transaction_rows(transaction), ending->account,
                                        ending->call, &ending->used, err);
}

/* The four steps of docs/chat.md. */
static tide_status play_budgeted(struct fixture *f, tide_job *job, tide_error *err)
{
    const struct tide_chat_part part[] = {{.kind = TIDE_CHAT_TEXT, .text = tide_job_payload(job)}};
    const struct tide_chat_message message[] = {{TIDE_CHAT_USER, part, 1}};
    const struct tide_chat_talk talk = {
        .messages = message, .messages_count = 1, .tokens_max = TOKENS_MAX};
    const uint64_t now_unix_ms = tide_world_now_unix_ms(tide_sim_world(f->sim));
    struct holding holding = {.hold = {.account = f->account,
                                       .call = tide_job_id(job),
                                       .model = TIDE_TEXT("tide-fast"),
                                       .tokens = tide_chat_cost_of(&talk, 0),
                                       .limit = limit,
                                       .now_unix_ms = now_unix_ms,
                                       .until_unix_ms = now_unix_ms + 3600000}};
    tide_status rc = tide_transact(f->engine, hold, &holding, err);
    if (rc == TIDE_AGAIN)
        return tide_job_again(job, tide_job_now_ms(job) + (holding.again_unix_ms - now_unix_ms));
    struct tide_chat_answer answer = {.calls_count = 0};
    struct ending *ending = tide_job_memory(job, sizeof *ending);
    assert_non_null(ending);
    *ending = (struct ending){.account = f->account, .call = tide_job_id(job)};
    if (rc == TIDE_OK)
        rc = tide_chat_call(f->chat, job, &talk, NULL, &answer, err);
    if (rc == TIDE_OK && dies > 0) { /* as if the process had died here */
        dies--;
        rc = tide_error_set(err, TIDE_SERVER, "it died");
    } else if (rc == TIDE_OK) {
        ending->used = (struct tide_assistant_used){answer.in_tokens, answer.out_tokens,
                                                    !answer.tokens_known, false};
        rc = tide_job_effect(job, settle, ending, err);
    } else if (!tide_chat_may_cost(rc, err)) {
        ending->used.nothing = true;
        tide_error other = {TIDE_OK, 0, ""};
        assert_int_equal(tide_transact(f->engine, settle, ending, &other), TIDE_OK);
    }
    tide_chat_answer_done(&answer);
    return rc;
}

struct costs {
    uint64_t days, calls, tokens, lost, most; /* most: of a day */
    uint64_t last_day;
};

static void add_cost(const struct tide_assistant_cost *cost, void *arg)
{
    struct costs *costs = arg;
    const uint64_t tokens = cost->in_tokens + cost->out_tokens;
    costs->days += cost->day != costs->last_day ? 1 : 0;
    costs->last_day = cost->day;
    costs->calls += cost->calls;
    costs->lost += cost->lost;
    costs->tokens += tokens;
    costs->most = tokens > costs->most ? tokens : costs->most;
}

static tide_status read_costs(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_assistant_budget_costs(tide_transaction_rows(transaction), 0, 0, add_cost, arg,
                                       err);
}

struct today {
    uint32_t account;
    uint64_t now_unix_ms;
    struct tide_assistant_left left;
};

static tide_status read_left(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct today *today = arg;
    return tide_assistant_budget_left(tide_transaction_rows(transaction), today->account, limit,
                                      today->now_unix_ms, &today->left, err);
}

/* Runs the jobs to their end, however many days that takes. */
static struct costs run_jobs(struct fixture *f, uint64_t *took_ms_out)
{
    struct costs costs = {.days = 0};
    const uint64_t start_ms = tide_world_now_ms(tide_sim_world(f->sim));
    struct today today = {.account = f->account};
    OK(f, tide_transact(f->engine, make_tables, NULL, err));
    f->play = play_budgeted;
    f->give_up = true;
    for (unsigned i = 0; i < CALLS; i++) {
        char payload[40];
        (void)snprintf(payload, sizeof payload, "{\"question\":%u}", i);
        const struct tide_spec spec = {.kind = f->kind, .account = f->account, .payload = payload};
        OK(f, tide_enqueue(f->engine, &spec, 1, NULL, err));
    }
    OK(f, tide_engine_wait(f->engine, TIDE_WAIT_FOREVER, err));
    *took_ms_out = tide_world_now_ms(tide_sim_world(f->sim)) - start_ms;
    today.now_unix_ms = tide_world_now_unix_ms(tide_sim_world(f->sim));
    OK(f, tide_transact(f->engine, read_costs, &costs, err));
    OK(f, tide_transact(f->engine, read_left, &today, err));
    assert_int_equal(today.left.held, 0);
    return costs;
}

#define DAY_MS UINT64_C(86400000)

CASE(within_the_budget_all_is_asked_on_one_day)
{
    uint64_t took_ms = 0;
    limit = 100000;
    dies = 0;
    const struct costs costs = run_jobs(f, &took_ms);
    assert_int_equal(costs.calls, CALLS);
    assert_int_equal(costs.lost, 0);
    assert_int_equal(count(f, "chat", "answered"), CALLS);
    assert_int_equal(count(f, "chat", "repeated"), 0);
    assert_int_equal(costs.tokens, count(f, "chat", "in_tokens") + count(f, "chat", "out_tokens"));
    assert_true(took_ms < 60000);
}

/* J27: nothing fails, nothing is asked twice, and no day costs more than its budget. */
CASE(over_the_budget_jobs_wait_for_the_next_day)
{
    uint64_t took_ms = 0;
    limit = 150; /* one call is held with more than 100 */
    dies = 0;
    const struct costs costs = run_jobs(f, &took_ms);
    assert_int_equal(costs.calls, CALLS);
    assert_true(costs.days >= 2);
    assert_true(costs.most <= limit);
    assert_true(took_ms >= (costs.days - 2) * DAY_MS);
    assert_int_equal(count(f, "chat", "answered"), CALLS);
    assert_int_equal(count(f, "chat", "repeated"), 0);
}

/* A call whose end was lost is asked once more, and counted with what it held. */
CASE(a_call_that_died_costs_one_more)
{
    uint64_t took_ms = 0;
    limit = 100000;
    dies = 2;
    const struct costs costs = run_jobs(f, &took_ms);
    assert_int_equal(costs.calls, CALLS + 2);
    assert_int_equal(costs.lost, 2);
    assert_int_equal(count(f, "chat", "answered"), CALLS + 2);
    assert_int_equal(count(f, "chat", "repeated"), 2);
    assert_true(costs.tokens >= count(f, "chat", "in_tokens") + count(f, "chat", "out_tokens"));
}

/* Refusals cost nothing, and leave nothing held. */
CASE(what_was_refused_is_not_counted)
{
    uint64_t took_ms = 0;
    limit = 100000;
    dies = 0;
    fault(f, "\"fault\":\"429\",\"count\":3,\"retry_after\":5");
    fault(f, "\"fault\":\"overloaded\",\"count\":2");
    const struct costs costs = run_jobs(f, &took_ms);
    assert_int_equal(costs.calls, CALLS);
    assert_int_equal(costs.lost, 0);
    assert_int_equal(count(f, "chat", "answered"), CALLS);
}
