/* Goal: no sequence of operations is answered differently by two engines, and none breaks
 * the rules.  Method: see ledger_random.h.  Which stores take part is said on the command
 * line; PostgreSQL joins them by itself where TIDE_TEST_POSTGRES names one.
 *
 *     ledger_random_test [sqlite] [simulated] [postgres]
 *
 * TIDE_TEST_SEED runs one seed, TIDE_TEST_SCALE scales their number in percent. */
#include "ledger_random.h"
#include "support/scale.h"

enum { TRANSACTIONS = 400, STATE_EVERY = 40 };

struct random_run {
    struct side sides[SIDES_MAX];
    size_t sides_count;
    struct chooser chooser;
    struct model now, before, part; /* before the transaction, before the savepoint */
    uint64_t owners[PROCESSES];     /* 0: not joined */
    uint64_t seed, owner_next;
    size_t transactions, steps;
};

static const struct store_kind *kinds[SIDES_MAX];
static size_t kinds_count;

/* ---- comparing the sides ------------------------------------------------------------------ */

static void show_difference(const struct random_run *r, const char *what, size_t other)
{
    const char *a = tide_buf_cstr(&r->sides[0].said);
    const char *b = tide_buf_cstr(&r->sides[other].said);
    while (*a != '\0' && *b != '\0') { /* ends: each step skips a line that both have */
        size_t a_bytes = strcspn(a, "\n");
        size_t b_bytes = strcspn(b, "\n");
        if (a_bytes != b_bytes || memcmp(a, b, a_bytes) != 0)
            break;
        a += a_bytes + (a[a_bytes] != '\0');
        b += b_bytes + (b[b_bytes] != '\0');
    }
    print_error("seed %" PRIu64 ", transaction %zu, step %zu: %s\n  %-9s %.*s\n  %-9s %.*s\n",
                r->seed, r->transactions, r->steps, what, r->sides[0].store.kind->name,
                (int)strcspn(a, "\n"), a, r->sides[other].store.kind->name, (int)strcspn(b, "\n"),
                b);
    if (r->sides[other].err.text[0] != '\0')
        print_error("  last error there: %s\n", r->sides[other].err.text);
}

static void assert_same(struct random_run *r, const char *what)
{
    for (size_t i = 1; i < r->sides_count; i++) {
        bool same =
            tide_text_equal(tide_buf_text(&r->sides[0].said), tide_buf_text(&r->sides[i].said));
        if (!same)
            show_difference(r, what, i);
        assert_true(same);
    }
    for (size_t i = 0; i < r->sides_count; i++)
        tide_buf_clear(&r->sides[i].said);
}

static void compare_state(struct random_run *r)
{
    for (size_t i = 0; i < r->sides_count; i++) {
        struct side *side = &r->sides[i];
        tide_buf problems;
        tide_buf_init(&problems, tide_mem_heap(), 1 << 16);
        tide_status rc = tide_ledger_check(side->ledgers[0], &problems, &side->err);
        if (rc != TIDE_OK)
            print_error("seed %" PRIu64 ", transaction %zu, %s: %s\n", r->seed, r->transactions,
                        side->store.kind->name, tide_buf_cstr(&problems));
        tide_buf_done(&problems);
        assert_int_equal(rc, TIDE_OK);
        state_say(side, r->chooser.now);
    }
    assert_same(r, "what is listed differs");
    model_compare(&r->now, &r->sides[0]);
}

/* ---- members -------------------------------------------------------------------------------- */

static void join(struct random_run *r, size_t process)
{
    struct tide_member member = {.owner = 1000 + r->owner_next++};
    (void)snprintf(member.name, sizeof member.name, "process %zu", process);
    (void)snprintf(member.version, sizeof member.version, "1");
    for (size_t i = 0; i < r->sides_count; i++)
        OK(tide_ledger_member_join(r->sides[i].ledgers[process], &member, LEASE_MS, r->chooser.now,
                                   &r->sides[i].err));
    r->owners[process] = member.owner;
    assert_true(r->now.members_count < MEMBERS_MAX);
    r->now.members[r->now.members_count++] =
        (struct model_member){.owner = member.owner, .until = r->chooser.now + LEASE_MS};
}

/* A clean end, committed at once. */
static void leave(struct random_run *r, size_t process)
{
    for (size_t i = 0; i < r->sides_count; i++) {
        struct side *side = &r->sides[i];
        OK(tide_tx_begin(side->ledgers[process], &side->tx, &side->err));
        OK(tide_ledger_member_leave(side->tx, r->chooser.now, &side->err));
        OK(tide_tx_commit(side->tx, &side->err));
        side->tx = NULL;
    }
    for (size_t i = 0; i < r->now.members_count; i++)
        if (r->now.members[i].owner == r->owners[process])
            r->now.members[i].dead = true;
    for (size_t i = 1; i < ACCOUNTS; i++)
        if (r->now.account_owner[i] == r->owners[process])
            r->now.account_owner[i] = 0;
    r->owners[process] = 0;
}

static void restart(struct random_run *r)
{
    bool clean = tide_rng_chance(&r->chooser.rng, 1, 2);
    for (size_t i = 0; i < r->sides_count; i++)
        side_restart(&r->sides[i], clean);
    memset(r->owners, 0, sizeof r->owners);
}

/* Begins a transaction of the process everywhere; false: it was declared dead. */
static bool begin_all(struct random_run *r, size_t process)
{
    bool fenced = r->owners[process] != 0 && !model_lives(&r->now, r->owners[process]);
    for (size_t i = 0; i < r->sides_count; i++) {
        struct side *side = &r->sides[i];
        side->ledger = side->ledgers[process];
        tide_status rc = tide_tx_begin(side->ledger, &side->tx, &side->err);
        if (rc != (fenced ? TIDE_STALE : TIDE_OK))
            print_error("seed %" PRIu64 ", transaction %zu, %s: begin %s\n", r->seed,
                        r->transactions, side->store.kind->name, side->err.text);
        assert_int_equal(rc, fenced ? TIDE_STALE : TIDE_OK);
        if (fenced)
            side->tx = NULL;
    }
    return !fenced;
}

/* ---- transactions ------------------------------------------------------------------------------ */

static void step(struct random_run *r)
{
    struct op op;
    struct answer answers[SIDES_MAX];
    op_choose(&r->chooser, &r->now, &op);
    r->steps++;
    for (size_t i = 0; i < r->sides_count; i++) {
        say(&r->sides[i], "op %d", (int)op.kind);
        r->sides[i].err.text[0] = '\0';
        op_run(&r->sides[i], &op, &answers[i]);
    }
    assert_same(r, "an answer differs");
    model_apply(&r->now, &op, &answers[0]);
}

/* Some steps that are kept or undone as one. */
static void savepoint(struct random_run *r)
{
    bool kept = tide_rng_chance(&r->chooser.rng, 1, 2);
    r->part = r->now;
    for (size_t i = 0; i < r->sides_count; i++) {
        r->sides[i].part = r->sides[i].is;
        OK(tide_tx_savepoint(r->sides[i].tx, &r->sides[i].err));
    }
    for (uint64_t left = 1 + tide_rng_below(&r->chooser.rng, 3); left > 0; left--)
        step(r);
    for (size_t i = 0; i < r->sides_count; i++) {
        OK(tide_tx_savepoint_end(r->sides[i].tx, kept, &r->sides[i].err));
        if (!kept)
            r->sides[i].is = r->sides[i].part;
    }
    if (!kept)
        r->now = r->part;
}

static void end_all(struct random_run *r, bool kept)
{
    for (size_t i = 0; i < r->sides_count; i++) {
        struct side *side = &r->sides[i];
        if (kept) {
            OK(tide_tx_commit(side->tx, &side->err));
        } else {
            tide_tx_rollback(side->tx);
            side->is = side->before;
        }
        side->tx = NULL;
        side->ledger = side->ledgers[0];
    }
}

static void transaction(struct random_run *r)
{
    tide_rng *rng = &r->chooser.rng;
    size_t process = (size_t)tide_rng_below(rng, PROCESSES);
    /* Mostly a moment later, at times an hour: leases pass, days go by. */
    r->chooser.now +=
        tide_rng_chance(rng, 1, 12) ? tide_rng_below(rng, 3 * 3600000) : tide_rng_below(rng, 2000);
    bool may_join = r->chooser.fleet && process > 0 && r->now.members_count + 2 < MEMBERS_MAX;
    if (may_join && r->owners[process] == 0)
        join(r, process);
    r->transactions++;
    if (!begin_all(r, process)) {
        r->owners[process] = 0; /* joins again the next time */
        if (may_join)
            join(r, process);
        return;
    }
    r->before = r->now;
    for (size_t i = 0; i < r->sides_count; i++)
        r->sides[i].before = r->sides[i].is;
    r->chooser.owner = r->owners[process] == 0 ? 100 + process : r->owners[process];
    for (uint64_t left = 1 + tide_rng_below(rng, 8); left > 0; left--) {
        if (tide_rng_chance(rng, 1, 15))
            savepoint(r);
        else
            step(r);
    }
    bool kept = !tide_rng_chance(rng, 1, 8);
    end_all(r, kept);
    if (!kept)
        r->now = r->before;
    if (r->owners[process] != 0 && tide_rng_chance(rng, 1, 60))
        leave(r, process);
}

/* The stores that take part: all, or those that a fleet can share. */
static void open_sides(struct random_run *r)
{
    for (size_t i = 0; i < kinds_count; i++)
        if (!r->chooser.fleet || strcmp(kinds[i]->name, "postgres") == 0)
            side_open(&r->sides[r->sides_count++], kinds[i], r->seed);
}

static void run_seed(uint64_t seed, bool fleet)
{
    struct random_run *r = calloc(1, sizeof *r);
    r->seed = seed;
    r->chooser =
        (struct chooser){.rng = tide_rng_seeded(seed), .now = NOW, .token = 1000, .fleet = fleet};
    open_sides(r);
    if (r->sides_count == 0) {
        free(r);
        return;
    }
    print_message("seed %" PRIu64 ", %s a fleet\n", seed, fleet ? "with" : "without");
    for (int i = 1; i <= TRANSACTIONS; i++) {
        transaction(r);
        if (i % STATE_EVERY == 0)
            compare_state(r);
        if (tide_rng_chance(&r->chooser.rng, 1, 80))
            restart(r);
    }
    compare_state(r);
    print_message("%zu transactions, %zu operations, %u jobs\n", r->transactions, r->steps,
                  r->now.jobs_count);
    for (size_t i = 0; i < r->sides_count; i++)
        side_close(&r->sides[i]);
    free(r);
}

static void run_both(uint64_t seed)
{
    run_seed(seed, false);
    run_seed(seed, true);
}

TEST(random_operations_are_answered_alike_by_every_engine)
{
    const char *one = getenv("TIDE_TEST_SEED");
    const uint64_t seeds = scaled(3);
    if (one != NULL) {
        run_both(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= seeds; seed++)
        run_both(seed);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"sqlite", "simulated", "postgres"};
    for (int i = 0; i < (argc > 1 ? argc - 1 : SIDES_MAX) && i < SIDES_MAX; i++) {
        const struct store_kind *kind = store_kind_find(argc > 1 ? argv[i + 1] : usual[i]);
        if (kind == NULL) {
            (void)fprintf(stderr, "ledger_random_test [sqlite] [simulated] [postgres]\n");
            return 2;
        }
        if (store_kind_begin(kind))
            kinds[kinds_count++] = kind;
        else if (argc > 1)
            return 77;
    }
    int failed = tests_run(NULL);
    for (size_t i = 0; i < kinds_count; i++)
        store_kind_end(kinds[i]);
    return failed;
}
