/* look.c - one transaction every few seconds: renews our lease, reclaims jobs of dead members,
 * reads changes by other processes, takes and gives up accounts.
 *
 * Accounts with work are shared evenly: a process takes free accounts up to its part, and the
 * rest only if they were free at its previous look too (the others may lack the archive, or the
 * handlers).  A member with two accounts more than the member with the fewest gives one
 * up, after its running jobs have ended.  An account with an archive stays where the archive is:
 * a process that has it takes the account at once and keeps it.
 *
 * An account is taken only when it has jobs of a kind that this process runs.  It may also have
 * jobs of other kinds, which no process can run as long as we hold it.  So it is offered to the
 * other members: at the next look if no job of our kinds is ready, else after two leases.  They
 * have the time of one look (fleet.look) to take it; if no process does, we take it again, and
 * offer it less and less often. */
#include "fleet/inside.h"
#include "base/check.h"

#include <string.h>

enum { RECLAIM_SLICE = 500 };

struct look_account {
    struct tide_account_row row;
    tide_text governor; /* a copy */
    /* Copies, of an account that we took (engine/accounts/alerting_saved.c). */
    tide_text windows, totals;
    bool work;          /* it has ready jobs */
    bool free;          /* we may take it, if it has jobs of our kinds */
    bool asked, ours;   /* its kinds were queried; it has ready jobs of our kinds */
    bool wanted, taken; /* we try to take it; we did */
    bool released;      /* we give it up in this transaction */
};

struct look {
    struct tide_write write;
    tide_engine *engine;
    uint64_t sent_ms;
    uint64_t owner;
    struct tide_changes changes;
    size_t reclaimed;
    uint64_t cancels[FLEET_CANCELS_MAX];
    size_t cancels_count;
    uint32_t others; /* other living members */
    uint32_t fewest; /* accounts of the one with the fewest */
    uint32_t lease_ms;
    bool put_off; /* the query for kinds of jobs was put off */
    bool asks[TIDE_COMMON_LIMITS];
    uint64_t units_max[TIDE_COMMON_LIMITS]; /* of the whole project */
    uint64_t wanted[TIDE_COMMON_LIMITS], granted[TIDE_COMMON_LIMITS];
    struct look_account *accounts;
    size_t accounts_count, accounts_capacity;
    struct tide_fleet_view *view; /* NULL: no snapshots are taken */
    tide_arena arena;
    tide_status rc; /* of a visit */
};

/* ---- reading, on the writer's thread -------------------------------------------------- */

static bool see_member(const struct tide_member *member, void *arg)
{
    struct look *look = arg;
    if (member->dead || member->owner == look->owner)
        return true;
    look->others++;
    look->fewest = member->accounts < look->fewest ? member->accounts : look->fewest;
    return true;
}

static bool see_account(const struct tide_account_row *row, void *arg)
{
    struct look *look = arg;
    /* Accounts beyond what a process can hold are left to other members; the look continues,
     * because it renews our lease. */
    if (look->accounts_count == TIDE_ACCOUNTS_MAX)
        return false;
    if (!TIDE_GROW_IN(look->engine->mem, look->accounts, look->accounts_capacity,
                      look->accounts_count + 1, TIDE_ACCOUNTS_MAX)) {
        look->rc = TIDE_NO_MEMORY;
        return false;
    }
    struct look_account *seen = &look->accounts[look->accounts_count];
    *seen = (struct look_account){.row = *row};
    seen->row.governor = TIDE_TEXT_NONE;
    /* The saved governor is needed only where we may take the account. */
    if (row->owner != look->owner && row->governor.bytes > 0) {
        char *copy = tide_arena_copy(&look->arena, row->governor.data, row->governor.bytes);
        if (copy == NULL) {
            look->rc = TIDE_NO_MEMORY;
            return false;
        }
        seen->governor = (tide_text){copy, row->governor.bytes};
    }
    look->accounts_count++;
    return true;
}

static struct look_account *account_of(struct look *look, uint32_t id)
{
    /* Rows come in order of their ids. */
    size_t low = 0;
    size_t high = look->accounts_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (look->accounts[middle].row.id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < look->accounts_count && look->accounts[low].row.id == id ? &look->accounts[low]
                                                                          : NULL;
}

static tide_status see_work(struct look *look, tide_error *err)
{
    size_t count = 0;
    uint32_t *ids = tide_mem_array(look->engine->mem, TIDE_ACCOUNTS_MAX, sizeof *ids);
    if (ids == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to look at the fleet");
    tide_status rc =
        tide_ledger_accounts_with_work(look->engine->ledger, ids, TIDE_ACCOUNTS_MAX, &count, err);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        struct look_account *account = account_of(look, ids[i]);
        if (account != NULL)
            account->work = true;
    }
    tide_mem_free(look->engine->mem, ids, TIDE_ACCOUNTS_MAX * sizeof *ids);
    return rc;
}

/* ---- deciding, under the lock ------------------------------------------------------------ */

/* As counted by tide_accounts_count(). */
static bool anything_claimed(tide_engine *engine, uint32_t account)
{
    const struct tide_account *known = tide_engine_account_of(engine, account);
    return known != NULL && known->jobs.claimed > 0;
}

static bool was_left(const struct tide_fleet *fleet, uint32_t account)
{
    for (size_t i = 0; i < fleet->left_count; i++)
        if (fleet->left[i] == account)
            return true;
    return false;
}

/* Whether we may take it, if it has jobs of our kinds. */
static bool may_take(tide_engine *engine, const struct look_account *account)
{
    const struct tide_account *known = tide_engine_account_of(engine, account->row.id);
    /* A row that names us while memory does not hold the account: our lease was lost after the
     * transaction that took it. */
    bool free = account->row.owner == 0 ||
                (account->row.owner == engine->owner && (known == NULL || !known->held));
    bool unwanted = known != NULL ? known->unwanted : !tide_engine_wants(engine, account->row.name);
    return account->work && free && !unwanted && !account->row.paused && !account->row.halted &&
           tide_engine_limits_of(engine, account->row.provider) != NULL &&
           !anything_claimed(engine, account->row.id) &&
           (engine->may_take == NULL ||
            engine->may_take(engine->may_take_arg, account->row.name, account->row.provider,
                             account->row.archive));
}

/* ---- offers ---- */

void tide_fleet_foreign(tide_engine *engine, uint32_t account, uint64_t now_ms)
{
    struct tide_account *known = tide_engine_account_of(engine, account);
    if (engine->fleet == NULL || known == NULL || !known->held || known->foreign_ms != 0)
        return;
    known->foreign_ms = now_ms;
    engine->fleet->look_wanted = true; /* other members may wait for the account */
    tide_cond_wake_one(engine->world, engine->pump);
}

bool tide_fleet_offers(const tide_engine *engine)
{
    for (size_t i = 0; i < engine->accounts_count; i++)
        if (engine->accounts[i]->offered_until_ms != 0 && engine->accounts[i]->offered_work)
            return true;
    return false;
}

static uint64_t longer(const tide_engine *engine, uint64_t wait_ms)
{
    uint64_t least_ms = 2 * engine->tuning.fleet_lease_ms;
    wait_ms = wait_ms * 2 > least_ms ? wait_ms * 2 : least_ms;
    return wait_ms < FLEET_OFFER_WAIT_MS_MAX ? wait_ms : FLEET_OFFER_WAIT_MS_MAX;
}

/* Whether we may take the account again: it was not offered, or the offer has ended. */
static bool offer_is_over(tide_engine *engine, const struct look_account *seen, uint64_t now_ms)
{
    struct tide_account *known = tide_engine_account_of(engine, seen->row.id);
    struct tide_fleet *fleet = engine->fleet;
    if (known == NULL || known->offered_until_ms == 0)
        return true;
    bool wanted = seen->row.owner != 0 && seen->row.owner != engine->owner;
    if (!wanted && now_ms < known->offered_until_ms)
        return false;
    known->offered_until_ms = 0;
    if (known->offered_share) {
        fleet->share_wait_ms = wanted ? 0 : longer(engine, fleet->share_wait_ms);
        fleet->share_at_ms = now_ms + fleet->share_wait_ms;
    } else {
        known->offer_wait_ms = wanted ? 0 : longer(engine, known->offer_wait_ms);
    }
    if (!wanted)
        TIDE_SEEN("fleet: no process took an account that was offered");
    return true;
}

/* The kinds of an account's jobs are queried only where they matter: it may be taken, or may have
 * to be given up. */
static void choose_asked(struct look *look)
{
    tide_engine *engine = look->engine;
    tide_accounts_count(engine);
    for (size_t i = 0; i < look->accounts_count; i++) {
        struct look_account *account = &look->accounts[i];
        const struct tide_account *known = tide_engine_account_of(engine, account->row.id);
        account->free = offer_is_over(engine, account, look->sent_ms) && may_take(engine, account);
        account->asked = account->free || (account->work && known != NULL && known->held &&
                                           (known->leaving || known->foreign_ms != 0));
    }
}

static tide_status ask_kinds(struct look *look, tide_error *err)
{
    tide_engine *engine = look->engine;
    struct tide_fleet *fleet = engine->fleet;
    uint32_t kinds[TIDE_KINDS_MAX];
    uint32_t ids[TIDE_ACCOUNTS_MAX];
    bool have[TIDE_ACCOUNTS_MAX];
    size_t count = 0;
    for (uint32_t i = 0; i < engine->kinds_count; i++) /* fixed since the start */
        kinds[i] = engine->kinds[i].id;
    for (size_t i = 0; i < look->accounts_count; i++)
        if (look->accounts[i].asked)
            ids[count++] = look->accounts[i].row.id;
    /* For an account with very many jobs that no process runs the query reads all of them: a slow
     * query must not take most of our time.  Only the writer's thread uses ask_at_ms. */
    look->put_off = count > 0 && look->sent_ms < fleet->ask_at_ms;
    if (count == 0 || look->put_off) {
        for (size_t i = 0; i < look->accounts_count; i++)
            look->accounts[i].asked = look->accounts[i].free = false;
        return TIDE_OK;
    }
    uint64_t asked_ms = tide_world_now_ms(engine->world);
    tide_status rc = tide_ledger_accounts_have(engine->ledger, ids, count, kinds,
                                               engine->kinds_count, have, err);
    uint64_t now_ms = tide_world_now_ms(engine->world);
    if (now_ms - asked_ms >= FLEET_ASK_MS)
        fleet->ask_at_ms = now_ms + (now_ms - asked_ms) * FLEET_ASK_SHARE;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        account_of(look, ids[i])->ours = have[i];
    return rc;
}

static void decide(struct look *look)
{
    tide_engine *engine = look->engine;
    struct tide_fleet *fleet = engine->fleet;
    uint32_t held = 0;
    uint32_t work = 0;
    tide_accounts_count(engine);
    for (size_t i = 0; i < look->accounts_count; i++) {
        work += look->accounts[i].work;
        held += look->accounts[i].work && look->accounts[i].row.owner == look->owner;
    }
    uint32_t part = (work + look->others) / (look->others + 1);
    uint32_t left[FLEET_LEFT_MAX];
    size_t left_count = 0;
    for (size_t i = 0; i < look->accounts_count; i++) {
        struct look_account *account = &look->accounts[i];
        if (!account->free || !account->ours)
            continue;
        if (held < part || account->row.archive[0] != '\0' || was_left(fleet, account->row.id)) {
            account->wanted = true;
            held++;
        } else if (left_count < FLEET_LEFT_MAX) {
            left[left_count++] = account->row.id;
        }
    }
    memcpy(fleet->left, left, left_count * sizeof left[0]);
    fleet->left_count = left_count;
    for (size_t i = 0; i < look->accounts_count; i++) {
        struct tide_account *known = tide_engine_account_of(engine, look->accounts[i].row.id);
        if (known != NULL && known->held && known->leaving)
            look->accounts[i].released = !anything_claimed(engine, known->id);
    }
}

/* Reads what earlier holders counted for alerts and totals (E6.4). */
static tide_status read_saved(struct look *look, struct look_account *account, tide_error *err)
{
    struct tide_alerting_saved saved;
    tide_alerting_saved_init(&saved, look->engine->mem);
    tide_status rc = tide_alerting_saved_read(look->engine->ledger, account->row.id, &saved, err);
    const tide_buf *from[] = {&saved.windows, &saved.totals};
    tide_text *to[] = {&account->windows, &account->totals};
    for (size_t i = 0; rc == TIDE_OK && i < 2; i++) {
        const char *copy = tide_arena_copy(&look->arena, from[i]->data, from[i]->bytes);
        if (copy == NULL && from[i]->bytes > 0)
            rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for the windows of alerts");
        *to[i] = (tide_text){copy, copy == NULL ? 0 : from[i]->bytes};
    }
    tide_alerting_saved_done(&saved);
    return rc;
}

static tide_status take_and_release(struct look *look, tide_tx *tx, uint64_t now_unix_ms,
                                    tide_error *err)
{
    for (size_t i = 0; i < look->accounts_count; i++) {
        struct look_account *account = &look->accounts[i];
        if (account->wanted)
            TIDE_TRY(tide_ledger_accounts_take(tx, &account->row.id, 1, look->owner,
                                               &account->taken, now_unix_ms, err));
        if (account->taken && account->row.owner != look->owner)
            TIDE_TRY(read_saved(look, account, err));
        if (account->released) {
            TIDE_TRY(tide_ledger_accounts_release(tx, &account->row.id, 1, look->owner, err));
            TIDE_TRY(tide_tx_hint(tx, TIDE_HINT_WORK, account->row.id, err));
        }
    }
    return TIDE_OK;
}

static tide_status ask_shares(struct look *look, tide_tx *tx, uint64_t now_unix_ms, tide_error *err)
{
    tide_engine *engine = look->engine;
    for (size_t i = 0; i < engine->limits_count; i++) {
        const struct tide_common_limit *common = &engine->limits[i];
        if (look->asks[i])
            TIDE_TRY(tide_ledger_grant(tx, common->key, look->owner, look->units_max[i],
                                       look->wanted[i], common->window_ms, look->lease_ms,
                                       now_unix_ms, &look->granted[i], err));
    }
    return TIDE_OK;
}

/* Streams whose cursor may lag: a process finished the last job of a cycle and died before it
 * could move the cursor. */
struct advance_list {
    uint64_t after; /* where the last look ended, so that each stream gets its turn */
    uint64_t ids[FLEET_ADVANCE_MAX];
    size_t count;
};

static bool see_stream(const struct tide_stream_row *row, void *arg)
{
    struct advance_list *list = arg;
    if (row->ordinal < row->ordinal_next && row->id > list->after)
        list->ids[list->count++] = row->id;
    return list->count < FLEET_ADVANCE_MAX;
}

static tide_status advance_cursors(struct look *look, tide_tx *tx, uint64_t now_unix_ms,
                                   tide_error *err)
{
    struct tide_fleet *fleet = look->engine->fleet;
    struct advance_list list = {.after = fleet->advance_after};
    TIDE_TRY(tide_ledger_streams(look->engine->ledger, see_stream, &list, err));
    for (size_t i = 0; i < list.count; i++) {
        uint64_t ordinal = 0;
        TIDE_TRY(tide_ledger_cursor_advance(tx, list.ids[i], now_unix_ms, &ordinal, NULL, err));
    }
    /* Only the writer's thread reads it. */
    fleet->advance_after = list.count == FLEET_ADVANCE_MAX ? list.ids[list.count - 1] : 0;
    return TIDE_OK;
}

/* The look's part of the writer's transaction.  Until its COMMIT a crash leaves the ledger as it
 * was, and our lease, accounts and claims as the last look left them: the others reclaim them when
 * the lease ends.  Memory changes only after the COMMIT, in look_apply(). */
static tide_status look_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct look *look = arg;
    tide_engine *engine = look->engine;
    tide_tx *tx = transaction->tx;
    uint64_t now = transaction->now_unix_ms;
    /* Start empty, because the writer runs this again after a transaction that failed; memory
     * alone, so a crash here leaves nothing. */
    tide_arena_reset(&look->arena);
    tide_changes_clear(&look->changes);
    look->accounts_count = 0;
    look->others = 0;
    look->fewest = UINT32_MAX;
    look->rc = TIDE_OK;
    /* Take the time before the renewal is sent: our lease by our own clock then ends no later than
     * by the server's, so we stop before others take over (FLT3). */
    look->sent_ms = tide_world_now_ms(engine->world);
    look->owner = engine->owner; /* only the writer's thread, which runs this, uses it */
    tide_lock_take(engine->world, engine->lock);
    look->lease_ms = (uint32_t)engine->tuning.fleet_lease_ms;
    bool watched = tide_fleet_watched(engine, look->sent_ms);
    tide_lock_drop(engine->world, engine->lock);
    tide_fleet_view_free(engine, look->view); /* of an attempt that failed */
    look->view = NULL;
    /* Renew the lease first: if the ledger refuses that, nothing below may run.  A crash after the
     * COMMIT leaves a member that the others declare dead when this lease ends. */
    tide_status rc = tide_ledger_member_beat(tx, look->lease_ms, now, err);
    /* Reclaim before members and accounts are read, so that a member found dead is not counted and
     * its accounts are free below; a crash after the COMMIT leaves its jobs pending, for any
     * member. */
    if (rc == TIDE_OK)
        rc = tide_ledger_reclaim(tx, look->owner, RECLAIM_SLICE, now, &look->reclaimed,
                                 &look->changes, err);
    /* Read which of our running jobs users canceled; the ledger keeps that until the job ends, so a
     * crash here loses no cancel. */
    if (rc == TIDE_OK)
        rc = tide_ledger_cancels(engine->ledger, look->owner, look->cancels, FLEET_CANCELS_MAX,
                                 &look->cancels_count, err);
    /* Read the members, the accounts, and then, because see_work() marks accounts, which of them
     * have work: decide() needs all three; they are only read, so a crash here leaves nothing. */
    if (rc == TIDE_OK)
        rc = tide_ledger_members(engine->ledger, see_member, look, err);
    if (rc == TIDE_OK)
        rc = tide_ledger_accounts(engine->ledger, see_account, look, err);
    if (rc == TIDE_OK && look->rc != TIDE_OK)
        rc = tide_error_set(err, look->rc, "no memory for the accounts of the fleet");
    if (rc == TIDE_OK)
        rc = see_work(look, err);
    /* Move cursors that a dead process left behind, before the view below reads them; the ledger's
     * own counts decide, so after a crash the next look of any member moves them. */
    if (rc == TIDE_OK)
        rc = advance_cursors(look, tx, now, err);
    /* Read the streams for snapshots after everything above that changes them; it only reads, so a
     * crash here leaves nothing. */
    if (rc == TIDE_OK && watched)
        rc = tide_fleet_view_load(engine, &look->view, err);
    if (rc != TIDE_OK)
        return rc;
    /* Query kinds only now, when it is known which accounts matter, because the query may be slow;
     * choosing needs the lock and the query must not have it.  A crash here leaves nothing. */
    tide_lock_take(engine->world, engine->lock);
    choose_asked(look);
    tide_lock_drop(engine->world, engine->lock);
    TIDE_TRY(ask_kinds(look, err));
    /* Decide under the lock, with all that was read; `wanted` and `released` are plans in memory,
     * so a crash here leaves nothing. */
    tide_lock_take(engine->world, engine->lock);
    decide(look);
    for (size_t i = 0; i < engine->limits_count; i++) {
        look->wanted[i] = tide_limits_wanted(engine, i);
        look->units_max[i] = engine->limits[i].units_max;
        look->asks[i] =
            look->wanted[i] > 0 || engine->limits[i].limit.granted_until_ms != UINT64_MAX;
    }
    tide_lock_drop(engine->world, engine->lock);
    /* Write the decision.  We hold a taken account only after the COMMIT (FLT3), and a released one
     * has no claimed job; a crash after the COMMIT leaves accounts that name us, which the others
     * free when our lease ends. */
    TIDE_TRY(take_and_release(look, tx, now, err));
    /* Request shares of common limits for the accounts held so far (an account that was just taken
     * gets one at the next look); a share ends with the lease, so a crash blocks it only until
     * then. */
    TIDE_TRY(ask_shares(look, tx, now, err));
    /* Hints come last, when all ready jobs are known, and are sent with the COMMIT; without them,
     * after a crash, the next looks of the others find the same jobs. */
    TIDE_TRY(tide_fleet_hints(engine, tx, NULL, &look->changes, err));
    if (look->reclaimed > 0)
        TIDE_TRY(tide_tx_hint(tx, TIDE_HINT_WORK, 0, err));
    return TIDE_OK;
}

/* ---- once it is durable, under the lock ------------------------------------------------------ */

static void apply_account(struct look *look, struct look_account *seen, uint64_t now_ms)
{
    tide_engine *engine = look->engine;
    if (tide_account_is(engine, &seen->row, now_ms, NULL) != TIDE_OK)
        return; /* no memory: at the next look */
    struct tide_account *account = tide_engine_account_of(engine, seen->row.id);
    account->bound = seen->row.archive[0] != '\0';
    if (seen->taken && !account->held) {
        engine->fleet->look_wanted = true; /* it needs a share of the common limits */
        TIDE_SEEN("fleet: an account was taken");
        tide_alerting_taken(engine, account, seen->windows, seen->totals, now_ms);
        if (tide_account_taken(engine, account, seen->governor, now_ms) == TIDE_OK)
            tide_log_event(engine->log, TIDE_LOG_INFO, tide_world_now_unix_ms(engine->world),
                           "account taken", TIDE_F_CSTR("account", account->name));
        else
            account->leaving = account->held = true; /* given up at the next look */
    } else if (seen->released) {
        TIDE_SEEN("fleet: an account was given up for another process");
        tide_account_left(engine, account, now_ms);
        account->offered_until_ms = now_ms + engine->tuning.fleet_look_ms;
        account->offered_work = seen->ours || look->put_off;
        tide_log_event(engine->log, TIDE_LOG_INFO, tide_world_now_unix_ms(engine->world),
                       "account given up", TIDE_F_CSTR("account", account->name));
    }
    if (account->held && !account->leaving && seen->work)
        tide_tracker_more(engine->tracker, account->id); /* a hint may have been missed */
}

/* Begins to give up an account: running jobs may end, no new one starts. */
static void give_up(tide_engine *engine, struct tide_account *account, bool share, uint64_t now_ms)
{
    account->leaving = true;
    account->offered_share = share;
    tide_alerting_save(engine, account, now_ms); /* for the next holder */
    tide_account_refresh(engine, account, now_ms);
}

/* Gives up an account with jobs of other kinds, for members that run those kinds. */
static void offer(struct look *look, const struct look_account *seen, uint64_t now_ms)
{
    tide_engine *engine = look->engine;
    struct tide_account *account = tide_engine_account_of(engine, seen->row.id);
    if (look->others == 0 || account == NULL || !account->held || account->leaving ||
        account->foreign_ms == 0 || !seen->asked)
        return;
    bool idle = !seen->ours && !anything_claimed(engine, account->id);
    uint64_t wait_ms = idle ? 0 : 2 * engine->tuning.fleet_lease_ms;
    wait_ms = account->offer_wait_ms > wait_ms ? account->offer_wait_ms : wait_ms;
    if (now_ms < account->foreign_ms + wait_ms)
        return;
    TIDE_SEEN("fleet: an account was offered to members that run its other kinds");
    give_up(engine, account, /* share= */ false, now_ms);
    engine->fleet->look_wanted = true; /* that look gives it up, if nothing runs */
}

/* Gives up one account if we hold at least two more than the member with the fewest. */
static void share(struct look *look, uint64_t now_ms)
{
    tide_engine *engine = look->engine;
    uint32_t held = 0;
    struct tide_account *last = NULL;
    for (size_t i = 0; i < engine->accounts_count; i++)
        if (engine->accounts[i]->held) {
            if (engine->accounts[i]->leaving)
                return;
            held++;
            last = engine->accounts[i]->bound ? last : engine->accounts[i];
        }
    if (look->others == 0 || last == NULL || held < look->fewest + 2 ||
        now_ms < engine->fleet->share_at_ms)
        return;
    give_up(engine, last, /* share= */ true, now_ms);
}

static void forget_unwanted(tide_engine *engine)
{
    engine->fleet->share_at_ms = 0;
    engine->fleet->share_wait_ms = 0;
    for (size_t i = 0; i < engine->accounts_count; i++)
        engine->accounts[i]->offer_wait_ms = 0;
}

static void look_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    struct look *look = arg;
    struct tide_fleet *fleet = engine->fleet;
    if (fleet->rejoin) {
        fleet->look_wanted = true; /* our lease was lost meanwhile: this result is outdated */
        return;
    }
    fleet->lease_until_ms = look->sent_ms + look->lease_ms;
    if (look->others > fleet->others)
        forget_unwanted(engine); /* a new member may take what no other one took */
    fleet->others = look->others;
    for (size_t i = 0; i < engine->limits_count; i++)
        tide_limits_granted(engine, i, look->granted[i], look->sent_ms + look->lease_ms);
    fleet->looks++;
    tide_changes_apply(engine, &look->changes, now_ms);
    tide_fleet_view_free(engine, fleet->view);
    fleet->view = look->view;
    look->view = NULL;
    for (size_t i = 0; i < look->cancels_count; i++)
        tide_job_cancel_claimed(engine, look->cancels[i], now_ms);
    for (size_t i = 0; i < look->accounts_count; i++)
        apply_account(look, &look->accounts[i], now_ms);
    tide_accounts_forget(engine);
    tide_accounts_count(engine);
    for (size_t i = 0; i < look->accounts_count; i++)
        offer(look, &look->accounts[i], now_ms);
    share(look, now_ms);
    tide_dispatch_put_back(engine, now_ms); /* of those that go, or were paused or halted */
    tide_fleet_free_work(engine);
    engine->stuff_to_claim = true;
    fleet->ask_put_off = look->put_off;
    if (look->put_off && fleet->ask_at_ms < fleet->look_at_ms)
        fleet->look_at_ms = fleet->ask_at_ms;
    if (look->reclaimed > 0)
        TIDE_SEEN("fleet: jobs of a dead member were put back");
    if (look->reclaimed == RECLAIM_SLICE)
        fleet->look_wanted = true; /* there are more to reclaim */
}

static void look_drop(tide_engine *engine, struct tide_write *write)
{
    struct look *look = (struct look *)write;
    engine->fleet->look_under_way = false;
    tide_fleet_view_free(engine, look->view);
    tide_changes_done(&look->changes);
    tide_arena_done(&look->arena);
    tide_mem_free(engine->mem, look->accounts, look->accounts_capacity * sizeof *look->accounts);
    tide_mem_free(engine->mem, look, sizeof *look);
    tide_cond_wake_one(engine->world, engine->pump);
    tide_cond_wake_all(engine->world, engine->news);
}

bool tide_fleet_look(tide_engine *engine)
{
    struct look *look = tide_mem_new(engine->mem, sizeof *look);
    if (look == NULL)
        return false;
    look->engine = engine;
    tide_changes_init(&look->changes, engine->mem);
    tide_arena_init(&look->arena, engine->mem, 64 << 20);
    look->write =
        (struct tide_write){.run = look_run, .arg = look, .apply = look_apply, .drop = look_drop};
    engine->fleet->look_under_way = true;
    tide_write_push(engine, &look->write);
    return true;
}
