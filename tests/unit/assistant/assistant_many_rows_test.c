/* A hundred thousand records answer in under 100 ms: every list, at its beginning and in its middle,
 * the counts, one thread. */
#include "assistant/store/look.h"

#include "unit/db/rows_fixture.h"

#include <sqlite3.h>
#include <time.h>

enum { RECORDS = 100000, LIMIT_MS = 100, TRIES = 5 };
/* A tenth of the model calls began since then. */
enum { TODAY_MS = RECORDS * 9 };

/* Two users, one with nearly all of it; statuses, categories and senders spread. */
#define FILL(series, i)                                                                            \
    "INSERT INTO assistant_email(account, thread_id, message_id, sender, subject, category,"       \
    " confidence, language, style, reasoning, status, messages, reworks, created_ms, updated_ms)"  \
    " SELECT CASE WHEN " i " % 100 = 0 THEN 4 ELSE 3 END, 't' || " i ", 'm', 's' || (" i           \
    " % 1000),"                                                                                    \
    " 'subject of some length', CASE WHEN " i " % 5 = 0 THEN 'needs_response' ELSE 'fyi' END,"     \
    " 'high', 'en', 'business', 'reasoning of some length, as a model gives it',"                  \
    " CASE WHEN " i " % 5 <> 0 THEN 'skipped' WHEN " i " % 50 = 0 THEN 'drafted' ELSE 'sent' END," \
    " 1, 0, " i " * 10, " i " * 10 FROM " series

/* A prompt spills over SQLite's pages, as real ones do; a tenth of the calls failed, none is open. */
#define FILL_CALLS                                                                                 \
    "INSERT INTO assistant_call(account, thread_id, key, kind, model, system, prompt, job,"        \
    " begun_ms, ended_ms, answer, error, tokens_in, tokens_out, latency_ms)"                       \
    " SELECT account, thread_id, 'k' || id, CASE WHEN id % 1000 = 0 THEN 'agent' ELSE 'classify'"  \
    " END, 'model', replace('0123456789', '5', thread_id),"                                        \
    " replace('................................................', '.', subject || reasoning),"     \
    " 1, updated_ms, updated_ms, reasoning, CASE WHEN id % 10 = 0 THEN 'refused' ELSE '' END,"     \
    " 900, 90, 800 FROM assistant_email"
#define FILL_RUNS                                                                                  \
    "INSERT INTO assistant_run(account, thread_id, message_id, key, profile, rule, status, tools," \
    " iterations, final, error, begun_ms, ended_ms, state)"                                        \
    " SELECT account, thread_id, message_id, 'k' || id, 'support', 'helpdesk',"                    \
    " CASE WHEN id % 1000 = 0 THEN 'failed' ELSE 'done' END, '[]', 2, reasoning, '', updated_ms,"  \
    " updated_ms, '' FROM assistant_email"

#define TALLY                                                                                      \
    "INSERT INTO assistant_tally(account, status, category, records)"                              \
    " SELECT account, status, category, count(*) FROM assistant_email"                             \
    " GROUP BY account, status, category"

static void fill_sqlite(void)
{
    char *why = NULL;
    const char *sql =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 100000) " FILL(
            "n", "i") ";"
                      "INSERT INTO assistant_event(account, thread_id, kind, detail, job, at_ms)"
                      " SELECT account, thread_id, 'classified', category, 1, updated_ms"
                      " FROM assistant_email;" FILL_CALLS ";" FILL_RUNS ";" TALLY;
    if (sqlite3_exec(rows_now.sqlite, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s", why);
}

static void fill_postgres(void)
{
    rows_exec("SET LOCAL search_path TO tidemark");
    rows_exec(FILL("generate_series(1, 100000) AS i", "i"));
    rows_exec("INSERT INTO assistant_event(account, thread_id, kind, detail, job, at_ms)"
              " SELECT account, thread_id, 'classified', category, 1, updated_ms"
              " FROM assistant_email");
    rows_exec(FILL_CALLS);
    rows_exec(FILL_RUNS);
    rows_exec(TALLY);
    rows_exec("ANALYZE assistant_email");
    rows_exec("ANALYZE assistant_event");
    rows_exec("ANALYZE assistant_call");
    rows_exec("ANALYZE assistant_run");
}

static int setup(void **state)
{
    const int failed = rows_setup(state);
    OK(tide_assistant_tables(rows_now, err));
    if (rows_now.sqlite != NULL)
        fill_sqlite();
    else
        fill_postgres();
    return failed;
}

static double now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void count(const struct tide_assistant_email *email, void *arg)
{
    assert_true(email->id > 0);
    ++*(unsigned *)arg;
}

/* The best of a few tries: other programs run beside. */
#define TIMED(what, call)                                                                          \
    do {                                                                                           \
        double best = 1e9;                                                                         \
        for (int try = 0; try < TRIES; try++) {                                                    \
            const double start = now_ms();                                                         \
            OK(call);                                                                              \
            const double took = now_ms() - start;                                                  \
            best = took < best ? took : best;                                                      \
        }                                                                                          \
        (void)printf("%s: %.2f ms\n", what, best);                                                 \
        if (best >= LIMIT_MS)                                                                      \
            fail_msg("%s took %.1f ms", what, best);                                               \
    } while (0)

static tide_status page(const struct tide_assistant_filter *filter, uint64_t from_ms,
                        unsigned *seen, tide_error *err)
{
    struct tide_assistant_cursor cursor = {from_ms, from_ms > 0 ? 1 : 0};
    bool more = false;
    *seen = 0;
    return tide_assistant_emails(rows_now, filter, &cursor, 50, count, seen, &more, err);
}

TEST_ON(a_hundred_thousand_records_answer_at_once, const tide_rows *rows, setup, rows_teardown)
{
    static const struct {
        const char *name;
        struct tide_assistant_filter filter;
    } lists[] = {
        {"all", {.account = 0}},
        {"of the large user", {.account = 3}},
        {"of the small user", {.account = 4}},
        {"rare status", {.account = 3, .status = TIDE_ASSISTANT_DRAFTED}},
        {"no such status", {.account = 3, .status = TIDE_ASSISTANT_PENDING}},
        {"common status", {.account = 3, .status = TIDE_ASSISTANT_SKIPPED}},
        {"status of all users", {.status = TIDE_ASSISTANT_DRAFTED}},
        {"no such status of all users", {.status = TIDE_ASSISTANT_PENDING}},
        {"no such category of all users", {.category = TIDE_ASSISTANT_WAITING}},
        {"sender of all users", {.sender = "s17"}},
        {"the oldest", {.status = TIDE_ASSISTANT_DRAFTED, .oldest_first = true}},
        {"category", {.account = 3, .category = TIDE_ASSISTANT_NEEDS_RESPONSE}},
        {"category that is not there", {.account = 3, .category = TIDE_ASSISTANT_WAITING}},
        {"status and category",
         {.account = 3, .status = TIDE_ASSISTANT_SENT, .category = TIDE_ASSISTANT_NEEDS_RESPONSE}},
        {"sender", {.account = 3, .sender = "s17"}},
    };
    struct tide_assistant_counts counts;
    const struct tide_assistant_explain explain = {.arg = NULL};
    unsigned seen = 0;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        TIMED(lists[i].name, page(&lists[i].filter, 0, &seen, err));
        TIMED("  from the middle", page(&lists[i].filter, RECORDS * 5, &seen, err));
    }
    uint64_t total = 0;
    TIMED("total", tide_assistant_emails_total(*rows, &lists[0].filter, &total, err));
    assert_int_equal(total, RECORDS);
    TIMED("counts", tide_assistant_counts(*rows, 3, TODAY_MS, &counts, err));
    assert_int_equal(counts.records, RECORDS - RECORDS / 100);
    TIMED("explain", tide_assistant_explain(*rows, 3, "t77777", &explain, err));
}

static void count_event(const struct tide_assistant_event *event, void *arg)
{
    assert_true(event->id > 0);
    ++*(unsigned *)arg;
}

static void count_call(const struct tide_assistant_call *call, void *arg)
{
    assert_true(call->id > 0);
    ++*(unsigned *)arg;
}

static void count_run(const struct tide_assistant_run *run, void *arg)
{
    assert_true(run->id > 0);
    ++*(unsigned *)arg;
}

/* Every filter alone and together, also those that nothing or little fits: then a list that reads all
 * rows until its page is full reads all there are. */
TEST_ON(so_do_events_calls_and_runs, const tide_rows *rows, setup, rows_teardown)
{
    static const struct {
        const char *name;
        struct tide_assistant_log log;
    } lists[] = {
        {"all", {.count = 50}},
        {"the oldest", {.oldest_first = true, .count = 50}},
        {"of the small user", {.account = 4, .count = 50}},
        {"of no user", {.account = 9, .count = 50}},
        {"of a thread", {.account = 3, .thread_id = "t777", .count = 50}},
        {"of a kind or status", {.kind = "classified", .count = 50}},
        {"of a rare kind or status", {.kind = "agent", .count = 50}},
        {"failed", {.kind = "failed", .count = 50}},
        {"of no kind", {.account = 3, .kind = "nothing", .count = 50}},
        {"a long page", {.account = 3, .count = TIDE_ASSISTANT_PAGE_MAX}},
    };
    unsigned seen = 0;
    bool more = false;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        for (uint64_t from = 0; from <= RECORDS / 2; from += RECORDS / 2) {
            struct tide_assistant_log log = lists[i].log;
            log.after = from;
            (void)printf("%s, from %llu: ", lists[i].name, (unsigned long long)from);
            TIMED("events", tide_assistant_events(*rows, &log, count_event, &seen, &more, err));
            TIMED("  calls", tide_assistant_calls(*rows, &log, count_call, &seen, &more, err));
            TIMED("  runs", tide_assistant_runs(*rows, &log, count_run, &seen, &more, err));
        }
    }
    for (int i = TIDE_ASSISTANT_ANSWERED; i <= TIDE_ASSISTANT_WAITS; i++) {
        const struct tide_assistant_log log = {.outcome = (tide_assistant_outcome)i, .count = 50};
        seen = 0;
        TIMED("calls by their end",
              tide_assistant_calls(*rows, &log, count_call, &seen, &more, err));
        assert_int_equal(seen, i == TIDE_ASSISTANT_WAITS ? 0 : 50 * TRIES);
    }
    TIMED("one call", tide_assistant_call_look(*rows, RECORDS / 2, count_call, &seen, err));
    TIMED("one run", tide_assistant_run_look(*rows, RECORDS / 2, count_run, &seen, err));
}

int main(void)
{
    return rows_tests_run();
}
