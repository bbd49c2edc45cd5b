/* Budgets of tokens, on both databases: what is held, spent, expired and shown (J19, J27). */
#include "assistant/budget/budget.h"

#include "base/rng.h"
#include "support/scale.h"
#include "unit/db/rows_fixture.h"

#include <libpq-fe.h>
#include <pthread.h>

#define DAY   UINT64_C(20500)
#define NOON  (DAY * TIDE_ASSISTANT_DAY_MS + UINT64_C(43200000))
#define HOUR  UINT64_C(3600000)
#define LIMIT 1000

static int setup(void **state)
{
    const int failed = rows_setup(state);
    OK(tide_assistant_budget_tables(rows_now, err));
    OK(tide_assistant_budget_tables(rows_now, err)); /* twice is harmless */
    return failed;
}

#define CASE(name) TEST_ON(name, const tide_rows *rows, setup, rows_teardown)

static uint64_t again;
static tide_error why;

static tide_status hold(const tide_rows *rows, uint32_t account, uint64_t call, uint64_t tokens,
                        uint64_t now_ms)
{
    const struct tide_assistant_hold one = {.account = account,
                                            .call = call,
                                            .model = TIDE_TEXT("m"),
                                            .tokens = tokens,
                                            .limit = LIMIT,
                                            .now_unix_ms = now_ms,
                                            .until_unix_ms = now_ms + HOUR};
    again = 0;
    why = (tide_error){TIDE_OK, 0, ""};
    return tide_assistant_budget_hold(*rows, &one, &again, &why);
}

static void settle(const tide_rows *rows, uint32_t account, uint64_t call, uint64_t in_tokens,
                   uint64_t out_tokens)
{
    const struct tide_assistant_used used = {.in_tokens = in_tokens, .out_tokens = out_tokens};
    OK(tide_assistant_budget_settle(*rows, account, call, &used, err));
}

static void expect(const tide_rows *rows, uint32_t account, uint64_t now_ms, uint64_t spent,
                   uint64_t held)
{
    struct tide_assistant_left left;
    OK(tide_assistant_budget_left(*rows, account, LIMIT, now_ms, &left, err));
    assert_int_equal(left.spent, spent);
    assert_int_equal(left.held, held);
    assert_int_equal(left.left, spent + held < LIMIT ? LIMIT - spent - held : 0);
    assert_int_equal(left.again_unix_ms,
                     (tide_assistant_day_of(now_ms) + 1) * TIDE_ASSISTANT_DAY_MS);
}

CASE(a_call_holds_its_estimate_and_settles_what_it_used)
{
    expect(rows, 1, NOON, 0, 0);
    OK(hold(rows, 1, 7, 400, NOON));
    expect(rows, 1, NOON, 0, 400);
    settle(rows, 1, 7, 100, 23);
    expect(rows, 1, NOON, 123, 0);
    settle(rows, 1, 7, 100, 23); /* BUD2: its end is written again */
    expect(rows, 1, NOON, 123, 0);
    settle(rows, 1, 99, 5, 5); /* nobody knows it */
    expect(rows, 1, NOON, 123, 0);
    /* More than the estimate is spent as well, if that was wrong. */
    OK(hold(rows, 1, 8, 10, NOON));
    settle(rows, 1, 8, 2000, 0);
    expect(rows, 1, NOON, 2123, 0);
}

CASE(over_the_budget_is_a_time_and_a_reason)
{
    OK(hold(rows, 1, 1, 600, NOON));
    assert_int_equal(hold(rows, 1, 2, 401, NOON), TIDE_AGAIN);
    assert_int_equal(again, (DAY + 1) * TIDE_ASSISTANT_DAY_MS);
    assert_non_null(strstr(why.text, "600 held"));
    assert_non_null(strstr(why.text, "chat.tokens_per_day"));
    expect(rows, 1, NOON, 0, 600);   /* nothing of it is kept */
    OK(hold(rows, 1, 3, 400, NOON)); /* to the last token */
    assert_int_equal(hold(rows, 1, 4, 1, NOON), TIDE_AGAIN);
    OK(hold(rows, 2, 4, 1000, NOON)); /* of another account */
    /* The next day has its own, also while calls of the day before run. */
    OK(hold(rows, 1, 4, 1000, NOON + 12 * HOUR));
    expect(rows, 1, NOON, 1000, 0); /* the holds above were dead by then */
    assert_int_equal(hold(rows, 1, 5, 1001, NOON + 36 * HOUR), TIDE_AGAIN);
    assert_non_null(strstr(why.text, "does not fit"));
}

CASE(a_call_counts_for_the_day_on_which_it_began)
{
    const uint64_t late = (DAY + 1) * TIDE_ASSISTANT_DAY_MS - 1;
    OK(hold(rows, 1, 1, 300, late));
    settle(rows, 1, 1, 200, 50); /* after midnight */
    expect(rows, 1, late, 250, 0);
    expect(rows, 1, late + 1, 0, 0);
}

struct costs {
    struct tide_assistant_cost rows[8];
    size_t count;
};

static void note(const struct tide_assistant_cost *cost, void *arg)
{
    struct costs *costs = arg;
    assert_true(costs->count < 8);
    costs->rows[costs->count++] = *cost;
}

CASE(a_call_that_cost_nothing_gives_all_of_it_back)
{
    const struct tide_assistant_used nothing = {.nothing = true, .in_tokens = 55};
    struct costs costs = {.count = 0};
    OK(hold(rows, 1, 1, 900, NOON));
    OK(tide_assistant_budget_settle(*rows, 1, 1, &nothing, err));
    expect(rows, 1, NOON, 0, 0);
    OK(tide_assistant_budget_costs(*rows, 0, 0, note, &costs, err));
    assert_int_equal(costs.count, 0);
    OK(hold(rows, 1, 1, 900, NOON)); /* the same call again, and now it is made */
}

/* A process died between hold and settle: the provider may have counted the call. */
CASE(a_dead_call_counts_with_all_that_it_held)
{
    uint64_t expired = 9;
    OK(hold(rows, 1, 1, 100, NOON));
    OK(hold(rows, 1, 2, 200, NOON + HOUR / 2));
    OK(tide_assistant_budget_expire(*rows, 1, NOON + HOUR - 1, &expired, err));
    assert_int_equal(expired, 0);
    OK(tide_assistant_budget_expire(*rows, 1, NOON + HOUR, &expired, err));
    assert_int_equal(expired, 1);
    expect(rows, 1, NOON, 100, 200);
    settle(rows, 1, 1, 5, 5); /* it was not dead after all: too late (BUD2) */
    expect(rows, 1, NOON, 100, 200);
    /* The same call again: its first try may have cost. */
    OK(hold(rows, 1, 2, 300, NOON + HOUR / 2));
    expect(rows, 1, NOON, 300, 300);
    settle(rows, 1, 2, 10, 10);
    expect(rows, 1, NOON, 320, 0);
    /* Many of them. */
    for (uint64_t i = 0; i < 150; i++)
        OK(hold(rows, 3, 100 + i, 2, NOON));
    OK(tide_assistant_budget_expire(*rows, 3, NOON + 2 * HOUR, &expired, err));
    assert_int_equal(expired, 150);
    expect(rows, 3, NOON, 300, 0);
}

CASE(without_a_limit_everything_is_counted_and_nothing_refused)
{
    struct tide_assistant_hold one = {.account = 1,
                                      .call = 1,
                                      .model = TIDE_TEXT("m"),
                                      .tokens = UINT64_C(5000000000),
                                      .now_unix_ms = NOON,
                                      .until_unix_ms = NOON + 1};
    struct tide_assistant_left left;
    OK(tide_assistant_budget_hold(*rows, &one, &again, err));
    one.call = 2;
    OK(tide_assistant_budget_hold(*rows, &one, &again, err));
    OK(tide_assistant_budget_left(*rows, 1, 0, NOON, &left, err));
    assert_true(left.left == UINT64_MAX);
    assert_int_equal(left.held, UINT64_C(10000000000));
}

static void call_of(const tide_rows *rows, uint32_t account, uint64_t call, const char *model,
                    uint64_t now_ms, const struct tide_assistant_used *used)
{
    const struct tide_assistant_hold one = {.account = account,
                                            .call = call,
                                            .model = tide_text_of(model),
                                            .tokens = 10,
                                            .limit = 0,
                                            .now_unix_ms = now_ms,
                                            .until_unix_ms = now_ms + HOUR};
    OK(tide_assistant_budget_hold(*rows, &one, &again, err));
    if (used != NULL)
        OK(tide_assistant_budget_settle(*rows, account, call, used, err));
}

CASE(costs_are_kept_by_day_and_model)
{
    const struct tide_assistant_used said = {.in_tokens = 100, .out_tokens = 7};
    const struct tide_assistant_used guessed = {
        .in_tokens = 50, .out_tokens = 5, .estimated = true};
    struct costs costs = {.count = 0};
    call_of(rows, 1, 1, "fast", NOON, &said);
    call_of(rows, 1, 2, "fast", NOON, &guessed);
    call_of(rows, 1, 3, "good", NOON, &said);
    call_of(rows, 2, 4, "fast", NOON, &said);
    call_of(rows, 1, 5, "fast", NOON + 24 * HOUR, &said);
    call_of(rows, 1, 6, "dies", NOON, NULL);
    uint64_t expired = 0;
    OK(tide_assistant_budget_expire(*rows, 1, NOON + 48 * HOUR, &expired, err));
    OK(tide_assistant_budget_costs(*rows, 1, DAY, note, &costs, err));
    assert_int_equal(costs.count, 4);
    assert_string_equal(costs.rows[0].model, "dies");
    assert_int_equal(costs.rows[0].lost, 1);
    assert_int_equal(costs.rows[0].in_tokens, 10);
    assert_string_equal(costs.rows[1].model, "fast");
    assert_int_equal(costs.rows[1].calls, 2);
    assert_int_equal(costs.rows[1].in_tokens, 150);
    assert_int_equal(costs.rows[1].out_tokens, 12);
    assert_int_equal(costs.rows[1].estimated, 1);
    assert_string_equal(costs.rows[2].model, "good");
    assert_int_equal(costs.rows[3].day, DAY + 1);
    costs.count = 0;
    OK(tide_assistant_budget_costs(*rows, 0, DAY, note, &costs, err));
    assert_int_equal(costs.count, 5);
    OK(tide_assistant_budget_drop(*rows, 1, err));
    costs.count = 0;
    OK(tide_assistant_budget_costs(*rows, 0, 0, note, &costs, err));
    assert_int_equal(costs.count, 1);
    expect(rows, 1, NOON, 0, 0);
}

/* BUD1 and BUD3, by chance: what is held is what the holds say, and no hold goes over the limit. */
CASE(the_sums_hold_whatever_happens)
{
    tide_rng rng = tide_rng_seeded(7);
    uint64_t held[40] = {0};
    uint64_t spent = 0;
    for (unsigned step = 0; step < 400; step++) {
        const uint64_t call = tide_rng_below(&rng, 40);
        const uint64_t tokens = 1 + tide_rng_below(&rng, 100);
        uint64_t sum = spent;
        for (size_t i = 0; i < 40; i++)
            sum += held[i];
        if (tide_rng_below(&rng, 2) == 0) {
            const tide_status rc = hold(rows, 1, call, tokens, NOON);
            spent += held[call]; /* of a try that died */
            held[call] = 0;
            assert_int_equal(rc, sum + tokens <= LIMIT ? TIDE_OK : TIDE_AGAIN);
            held[call] = rc == TIDE_OK ? tokens : 0;
        } else {
            const uint64_t used = tide_rng_below(&rng, 3);
            settle(rows, 1, call, used, 0);
            spent += held[call] > 0 ? used : 0;
            held[call] = 0;
        }
        sum = 0;
        for (size_t i = 0; i < 40; i++)
            sum += held[i];
        expect(rows, 1, NOON, spent, sum);
    }
}

/* ---- many processes: BUD1 on PostgreSQL, with connections that really run at once ---- */

enum { PROCESSES = 4, TRIES = 60, TOKENS = 10, SHARED = 50, USED = 7 };

struct process {
    const char *url;
    unsigned number, granted, refused;
    char wrong[300];
};

static bool run_sql(PGconn *connection, const char *sql, struct process *process)
{
    PGresult *result = PQexec(connection, sql);
    const bool good = PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!good)
        (void)snprintf(process->wrong, sizeof process->wrong, "%.200s", PQerrorMessage(connection));
    PQclear(result);
    return good;
}

/* Holds in one transaction each; every third is settled at once with nothing, and so is free again. */
static void *hold_many(void *arg)
{
    struct process *process = arg;
    PGconn *connection = PQconnectdb(process->url);
    const tide_rows db = {.postgres = connection};
    for (unsigned i = 0; i < TRIES && process->wrong[0] == '\0'; i++) {
        const struct tide_assistant_hold one = {.account = 1,
                                                .call = process->number * 1000 + i,
                                                .model = TIDE_TEXT("m"),
                                                .tokens = TOKENS,
                                                .limit = LIMIT,
                                                .now_unix_ms = NOON,
                                                .until_unix_ms = NOON + HOUR};
        const struct tide_assistant_used nothing = {.nothing = true};
        tide_error err = {TIDE_OK, 0, ""};
        uint64_t at = 0;
        if (!run_sql(connection, "BEGIN", process))
            break;
        tide_status rc = tide_assistant_budget_hold(db, &one, &at, &err);
        if (rc == TIDE_OK && i % 3 == 0)
            rc = tide_assistant_budget_settle(db, 1, one.call, &nothing, &err);
        else
            process->granted += rc == TIDE_OK ? 1 : 0;
        process->refused += rc == TIDE_AGAIN ? 1 : 0;
        if (rc != TIDE_OK && rc != TIDE_AGAIN)
            (void)snprintf(process->wrong, sizeof process->wrong, "%s: %.200s",
                           tide_status_name(rc), err.text);
        (void)run_sql(connection, "COMMIT", process);
    }
    PQfinish(connection);
    return NULL;
}

/* Ends the same calls as all others: each counts once (BUD2). */
static void *settle_same(void *arg)
{
    struct process *process = arg;
    PGconn *connection = PQconnectdb(process->url);
    const tide_rows db = {.postgres = connection};
    const struct tide_assistant_used used = {.in_tokens = USED};
    for (unsigned i = 0; i < SHARED && process->wrong[0] == '\0'; i++) {
        tide_error err = {TIDE_OK, 0, ""};
        if (!run_sql(connection, "BEGIN", process))
            break;
        if (tide_assistant_budget_settle(db, 2, i, &used, &err) != TIDE_OK)
            (void)snprintf(process->wrong, sizeof process->wrong, "%.200s", err.text);
        (void)run_sql(connection, "COMMIT", process);
    }
    PQfinish(connection);
    return NULL;
}

static int run_all(void *(*run)(void *arg), const char *url, struct process *list)
{
    pthread_t threads[PROCESSES];
    int failed = 0;
    for (unsigned i = 0; i < PROCESSES; i++) {
        list[i] = (struct process){.url = url, .number = i + 1};
        if (pthread_create(&threads[i], NULL, run, &list[i]) != 0)
            abort();
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        (void)pthread_join(threads[i], NULL);
        if (list[i].wrong[0] != '\0')
            (void)fprintf(stderr, "process %u: %s\n", i, list[i].wrong);
        failed += list[i].wrong[0] != '\0' ? 1 : 0;
    }
    return failed;
}

static int processes_test(void)
{
    const char *server = getenv("TIDE_TEST_POSTGRES");
    struct process list[PROCESSES];
    unsigned granted = 0;
    unsigned refused = 0;
    int failed = 0;
    if (server == NULL)
        return 0;
    PGconn *connection = PQconnectdb(server);
    const tide_rows db = {.postgres = connection};
    struct process first = {.url = server};
    tide_error err = {TIDE_OK, 0, ""};
    struct tide_assistant_left left = {.spent = 0};
    struct tide_assistant_left ended = {.spent = 0};
    (void)run_sql(connection, "CREATE SCHEMA tidemark", &first);
    if (tide_assistant_budget_tables(db, &err) != TIDE_OK)
        (void)snprintf(first.wrong, sizeof first.wrong, "%.200s", err.text);
    failed += run_all(hold_many, server, list);
    for (unsigned i = 0; i < PROCESSES; i++) {
        granted += list[i].granted;
        refused += list[i].refused;
    }
    for (uint64_t i = 0; i < SHARED; i++)
        failed += hold(&db, 2, i, TOKENS, NOON) != TIDE_OK ? 1 : 0;
    failed += run_all(settle_same, server, list);
    (void)tide_assistant_budget_left(db, 1, LIMIT, NOON, &left, &err);
    (void)tide_assistant_budget_left(db, 2, LIMIT, NOON, &ended, &err);
    (void)run_sql(connection, "DROP SCHEMA tidemark CASCADE", &first);
    PQfinish(connection);
    (void)printf("%u processes: %u granted, %u refused, %" PRIu64 " held, %" PRIu64
                 " left; %" PRIu64 " spent by %u calls\n",
                 PROCESSES, granted, refused, left.held, left.left, ended.spent, SHARED);
    if (granted != LIMIT / TOKENS || left.held != LIMIT || refused == 0 ||
        ended.spent != SHARED * USED || ended.held != 0 || first.wrong[0] != '\0') {
        (void)fprintf(stderr, "the budget was not shared: %s\n", first.wrong);
        failed++;
    }
    return failed;
}

int main(void)
{
    const int failed = rows_tests_run();
    return failed + processes_test();
}
