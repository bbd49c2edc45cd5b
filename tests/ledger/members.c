/* members.c - the processes of a fleet, what they hold, and the fence that keeps the dead
 * from writing (E1.7, E1.8).
 *
 * Two ledgers are open on one store, as two processes would have them. */
#include "ledger_fixture.h"

enum { LEASE_MS = 15000 };

static struct tide_member member_of(uint64_t owner)
{
    struct tide_member member = {.owner = owner};
    (void)snprintf(member.name, sizeof member.name, "host, process %u", (unsigned)(owner % 100));
    (void)snprintf(member.version, sizeof member.version, "0.1.0");
    return member;
}

static void join(struct fixture *f, tide_ledger *ledger, uint64_t owner, uint64_t now_unix_ms)
{
    struct tide_member member = member_of(owner);
    OK(tide_ledger_member_join(ledger, &member, LEASE_MS, now_unix_ms, &f->err));
}

struct seen_members {
    struct tide_member rows[8];
    size_t count;
};

static bool see_member(const struct tide_member *member, void *arg)
{
    struct seen_members *seen = arg;
    assert_true(seen->count < 8);
    seen->rows[seen->count++] = *member;
    return true;
}

static struct tide_member find_member(struct fixture *f, uint64_t owner)
{
    struct seen_members seen = {.count = 0};
    OK(tide_ledger_members(f->ledger, see_member, &seen, &f->err));
    for (size_t i = 0; i < seen.count; i++)
        if (seen.rows[i].owner == owner)
            return seen.rows[i];
    return (struct tide_member){.owner = 0};
}

static bool take(struct fixture *f, uint32_t account, uint64_t owner)
{
    bool taken = false;
    begin(f);
    OK(tide_ledger_accounts_take(f->tx, &account, 1, owner, &taken, NOW, &f->err));
    commit(f);
    return taken;
}

CASE(a_member_renews_its_lease_and_leaves)
{
    const uint64_t owner = UINT64_MAX - 3; /* all 64 bits count */
    join(f, f->ledger, owner, NOW);
    struct tide_member seen = find_member(f, owner);
    assert_string_equal(seen.name, member_of(owner).name);
    assert_string_equal(seen.version, "0.1.0");
    assert_int_equal(seen.joined_unix_ms, NOW);
    assert_int_equal(seen.until_unix_ms, NOW + LEASE_MS);
    assert_false(seen.dead);
    assert_int_equal(seen.accounts, 0);
    assert_int_equal(seen.running, 0);

    (void)claim_as(f, add_plain(f), owner);
    assert_true(take(f, f->account, owner));
    begin(f);
    OK(tide_ledger_member_beat(f->tx, LEASE_MS, NOW + 5000, &f->err));
    commit(f);
    seen = find_member(f, owner);
    assert_int_equal(seen.until_unix_ms, NOW + 5000 + LEASE_MS);
    assert_int_equal(seen.accounts, 1);
    assert_int_equal(seen.running, 1);
    assert_int_equal(account_row(f, f->account).owner, owner);

    begin(f);
    OK(tide_ledger_member_leave(f->tx, NOW + 6000, &f->err));
    undo(f);
    assert_false(find_member(f, owner).dead);
    begin(f);
    OK(tide_ledger_member_leave(f->tx, NOW + 6000, &f->err));
    commit(f);
    assert_int_equal(account_row(f, f->account).owner, 0);
    /* A ledger without a member again: its transactions are as before. */
    (void)add_plain(f);
    assert_int_equal(reclaim(f, 5, NOW + 6001), 1);
}

CASE(a_number_is_taken_once)
{
    tide_ledger *other = store_open(&f->store, "run-2", false);
    struct tide_member member = member_of(11);
    join(f, f->ledger, 11, NOW);
    assert_int_equal(tide_ledger_member_join(other, &member, LEASE_MS, NOW, &f->err), TIDE_EXISTS);
    assert_true(strlen(f->err.text) > 0);
    join(f, other, 12, NOW);
    struct seen_members seen = {.count = 0};
    OK(tide_ledger_members(f->ledger, see_member, &seen, &f->err));
    assert_int_equal(seen.count, 2);
    tide_ledger_close(other, true);
}

/* The one rule all others hang on: a process that was paused for too long and wakes up
 * changes nothing. */
CASE(a_member_declared_dead_changes_nothing)
{
    tide_ledger *mine = f->ledger;
    tide_ledger *theirs = store_open(&f->store, "run-2", false);
    join(f, mine, 11, NOW);
    join(f, theirs, 12, NOW);
    uint64_t id = add_plain(f);
    uint64_t token = claim_as(f, id, 11);
    assert_true(take(f, f->account, 11));

    f->ledger = theirs;
    assert_int_equal(reclaim(f, 12, NOW + LEASE_MS - 1), 0); /* not yet */
    assert_false(take(f, f->account, 12));
    begin(f);
    OK(tide_ledger_member_beat(f->tx, LEASE_MS, NOW + LEASE_MS, &f->err));
    commit(f);
    assert_int_equal(reclaim(f, 12, NOW + LEASE_MS), 1);
    assert_true(find_member(f, 11).dead);
    assert_false(find_member(f, 12).dead);
    assert_int_equal(account_row(f, f->account).owner, 0);
    assert_state(f, id, TIDE_ROW_PENDING);
    assert_true(take(f, f->account, 12));

    /* Again and again, not only the first time. */
    for (int i = 0; i < 3; i++) {
        tide_tx *tx = NULL;
        assert_int_equal(tide_tx_begin(mine, &tx, &f->err), TIDE_STALE);
        assert_null(tx);
        assert_true(strlen(f->err.text) > 0);
    }
    assert_state(f, id, TIDE_ROW_PENDING);
    assert_int_equal(look(f, id).row.attempts, 1);
    assert_int_equal(account_row(f, f->account).owner, 12);

    /* It may read, and it may join again as a new member; what it ran is no longer its own. */
    f->ledger = mine;
    assert_state(f, id, TIDE_ROW_PENDING);
    join(f, mine, 13, NOW + 2 * LEASE_MS);
    assert_false(end_as(f, id, token, TIDE_ROW_DONE));
    assert_int_equal(f->changes.refused[0].status, TIDE_STALE);
    assert_false(take(f, f->account, 13));
    tide_ledger_close(theirs, true);
}

/* The fence goes with the first operation: that fails, nothing of it stays, and the next
 * begin says why. */
CASE(a_lazy_begin_is_fenced_as_well)
{
    tide_ledger *mine = f->ledger;
    tide_ledger *theirs = store_open(&f->store, "run-2", false);
    join(f, mine, 11, NOW);
    join(f, theirs, 12, NOW + 1);
    uint64_t id = add_plain(f);

    tide_tx *tx = NULL;
    OK(tide_tx_begin_lazily(mine, &tx, &f->err)); /* of nothing at all */
    OK(tide_tx_commit(tx, &f->err));
    OK(tide_tx_begin_lazily(mine, &tx, &f->err));
    tide_tx_rollback(tx);
    OK(tide_tx_begin_lazily(mine, &tx, &f->err));
    struct tide_job_body *body = NULL;
    OK(tide_ledger_claim(tx, &id, 1, 11, 900, NOW, tide_mem_heap(), &body, &f->err));
    OK(tide_tx_commit(tx, &f->err));
    assert_non_null(body);
    tide_job_body_free(tide_mem_heap(), body);
    assert_state(f, id, TIDE_ROW_RUNNING);

    f->ledger = theirs;
    assert_int_equal(reclaim(f, 12, NOW + LEASE_MS), 1);
    tide_status rc = tide_tx_begin_lazily(mine, &tx, &f->err);
    if (rc == TIDE_OK) {
        body = NULL;
        assert_int_equal(
            tide_ledger_claim(tx, &id, 1, 11, 950, NOW, tide_mem_heap(), &body, &f->err),
            TIDE_BUSY);
        assert_null(body);
        assert_int_not_equal(tide_tx_commit(tx, NULL), TIDE_OK);
        rc = tide_tx_begin_lazily(mine, &tx, &f->err);
    }
    assert_int_equal(rc, TIDE_STALE);
    assert_state(f, id, TIDE_ROW_PENDING);
    f->ledger = mine;
    tide_ledger_close(theirs, true);
}

CASE(a_late_member_that_renews_first_lives_on)
{
    tide_ledger *mine = f->ledger;
    tide_ledger *theirs = store_open(&f->store, "run-2", false);
    join(f, mine, 11, NOW);
    join(f, theirs, 12, NOW);
    uint64_t id = add_plain(f);
    (void)claim_as(f, id, 11);
    begin(f);
    OK(tide_ledger_member_beat(f->tx, LEASE_MS, NOW + LEASE_MS + 1000, &f->err));
    commit(f);
    f->ledger = theirs;
    assert_int_equal(reclaim(f, 12, NOW + LEASE_MS + 1001), 0);
    assert_false(find_member(f, 11).dead);
    assert_state(f, id, TIDE_ROW_RUNNING);
    /* A member that reclaims is alive, even past its lease. */
    assert_false(find_member(f, 12).dead);
    f->ledger = mine;
    tide_ledger_close(theirs, true);
}

CASE(the_living_keep_what_they_run_and_hold)
{
    tide_ledger *mine = f->ledger;
    tide_ledger *theirs = store_open(&f->store, "run-2", false);
    uint32_t accounts[3] = {f->account, 0, 999};
    bool taken[3];
    begin(f);
    OK(tide_ledger_account(f->tx, "b@example.com", "gmail", &accounts[1], &f->err));
    commit(f);
    join(f, mine, 11, NOW);
    join(f, theirs, 12, NOW);
    uint64_t ours = add_plain(f);
    uint64_t unowned = add_plain(f);
    (void)claim_as(f, ours, 11);
    (void)claim_as(f, unowned, 77); /* no member: an earlier run */
    begin(f);
    OK(tide_ledger_accounts_take(f->tx, accounts, 3, 11, taken, NOW, &f->err));
    commit(f);
    assert_true(taken[0] && taken[1] && !taken[2]);
    f->ledger = theirs;
    begin(f);
    OK(tide_ledger_accounts_take(f->tx, accounts, 2, 12, taken, NOW, &f->err));
    commit(f);
    assert_true(!taken[0] && !taken[1]);
    assert_int_equal(reclaim(f, 12, NOW + 1), 1);
    assert_state(f, ours, TIDE_ROW_RUNNING);
    assert_state(f, unowned, TIDE_ROW_PENDING);

    /* Released by its holder alone. */
    begin(f);
    OK(tide_ledger_accounts_release(f->tx, accounts, 3, 12, &f->err));
    commit(f);
    assert_int_equal(account_row(f, accounts[0]).owner, 11);
    f->ledger = mine;
    assert_true(take(f, accounts[0], 11)); /* held already: still ours */
    begin(f);
    OK(tide_ledger_accounts_release(f->tx, accounts, 1, 11, &f->err));
    commit(f);
    assert_int_equal(account_row(f, accounts[0]).owner, 0);
    assert_int_equal(account_row(f, accounts[1]).owner, 11);
    f->ledger = theirs;
    assert_true(take(f, accounts[0], 12));
    assert_false(take(f, accounts[1], 12));
    f->ledger = mine;
    tide_ledger_close(theirs, true);
}

CASE(the_dead_are_remembered_for_a_day)
{
    const uint64_t day_ms = 24u * 3600 * 1000;
    tide_ledger *theirs = store_open(&f->store, "run-2", false);
    join(f, theirs, 12, NOW);
    (void)reclaim(f, 5, NOW + LEASE_MS);
    assert_true(find_member(f, 12).dead);
    (void)reclaim(f, 5, NOW + day_ms);
    assert_true(find_member(f, 12).dead);
    (void)reclaim(f, 5, NOW + LEASE_MS + day_ms + 1);
    assert_int_equal(find_member(f, 12).owner, 0);
    /* Forgotten, and dead all the same. */
    tide_tx *tx = NULL;
    assert_int_equal(tide_tx_begin(theirs, &tx, &f->err), TIDE_STALE);
    tide_ledger_close(theirs, false);
}

CASE(a_reclaim_in_slices_ends)
{
    tide_ledger *theirs = store_open(&f->store, "run-2", false);
    join(f, theirs, 12, NOW);
    uint64_t ids[5];
    for (size_t i = 0; i < 5; i++) {
        ids[i] = add_plain(f);
        (void)claim_as(f, ids[i], 12);
    }
    size_t total = 0;
    size_t count = 2;
    while (count == 2) { /* each slice puts two back; ends when none is left */
        begin(f);
        OK(tide_ledger_reclaim(f->tx, 5, 2, NOW + LEASE_MS, &count, &f->changes, &f->err));
        commit(f);
        total += count;
    }
    assert_int_equal(total, 5);
    for (size_t i = 0; i < 5; i++)
        assert_state(f, ids[i], TIDE_ROW_PENDING);
    tide_ledger_close(theirs, false);
}
