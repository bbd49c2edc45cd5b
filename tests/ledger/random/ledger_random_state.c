/* ledger_random_state.c - operations on records, and everything that can be listed. */
#include "ledger_random.h"

/* ---- cycles, members, records -------------------------------------------------------------- */

static void run_cursor(struct side *side, const struct op *op, struct answer *answer)
{
    tide_buf cursor;
    tide_buf_init(&cursor, tide_mem_heap(), 1000);
    if (op->kind == OP_MOVE)
        answer->rc = tide_ledger_cursor_move(side->tx, side->streams[op->a], op->number, op->more,
                                             op->now, &cursor, &side->err);
    else
        answer->rc = tide_ledger_cursor_advance(side->tx, side->streams[op->a], op->now,
                                                &answer->number, &cursor, &side->err);
    say(side, " at %" PRIu64 " '%s'", answer->number, tide_buf_cstr(&cursor));
    tide_buf_done(&cursor);
}

static void run_cycle(struct side *side, const struct op *op, struct answer *answer)
{
    struct tide_cycle_row row = {.id = 0};
    char end[32];
    (void)snprintf(end, sizeof end, "end %u", side->is.cycles_count + 1);
    answer->rc = tide_ledger_cycle(side->tx, side->streams[op->a], TIDE_TEXT("start"),
                                   tide_text_of(end), op->now, &row, &side->err);
    if (answer->rc != TIDE_OK)
        return;
    assert_true(side->is.cycles_count < CYCLES_MAX);
    assert_true(row.id > side->cycles[side->is.cycles_count]);
    side->cycles[++side->is.cycles_count] = row.id;
    answer->number = row.ordinal;
    say(side, " ordinal %" PRIu64, row.ordinal);
}

static void run_take(struct side *side, const struct op *op, struct answer *answer)
{
    bool taken[ACCOUNTS] = {false};
    if (op->kind == OP_TAKE)
        answer->rc = tide_ledger_accounts_take(side->tx, side->accounts + 1, ACCOUNTS - 1,
                                               op->owner, taken + 1, op->now, &side->err);
    else
        answer->rc = tide_ledger_accounts_release(side->tx, side->accounts + 1, ACCOUNTS - 1,
                                                  op->owner, &side->err);
    for (size_t i = 0; i < ACCOUNTS; i++)
        answer->flags[i] = taken[i];
    say(side, " %d %d", taken[1], taken[2]);
}

static void run_bad(struct side *side, const struct op *op, struct answer *answer)
{
    char item[32];
    (void)snprintf(item, sizeof item, "item %u", op->c);
    uint32_t account = side->accounts[op->a];
    uint32_t kind = side->kinds[op->b];
    answer->rc = tide_ledger_bad_state(side->tx, account, kind, tide_text_of(item),
                                       (tide_bad_state)op->number, op->now, &side->err);
}

static void run_intent(struct side *side, const struct op *op, struct answer *answer)
{
    tide_buf outcome;
    tide_intent_state state = TIDE_INTENT_FAILED;
    char tag[32];
    (void)snprintf(tag, sizeof tag, "tag %u", op->c);
    tide_buf_init(&outcome, tide_mem_heap(), 1000);
    if (op->kind == OP_INTENT)
        answer->rc = tide_ledger_intent(side->tx, side->jobs[op->a], tide_text_of(tag),
                                        TIDE_TEXT("detail"), op->now, &state, &outcome, &side->err);
    else
        answer->rc =
            tide_ledger_intent_end(side->tx, tide_text_of(tag), (tide_intent_state)op->number,
                                   TIDE_TEXT("outcome"), op->now, &side->err);
    say(side, " %d '%s'", state, tide_buf_cstr(&outcome));
    tide_buf_done(&outcome);
}

static void run_schedule(struct side *side, const struct op *op, struct answer *answer)
{
    static const char *const names[SCHEDULES] = {"hourly", "daily", "weekly"};
    struct tide_schedule_row row = {.kind = side->kinds[op->b],
                                    .period_ms = 1000 * (1 + op->number),
                                    .anchor_unix_ms = op->now,
                                    .per_account = op->flag,
                                    .at_start = op->number == 1,
                                    .name = tide_text_of(names[op->a]),
                                    .payload = op->flag ? TIDE_TEXT("{}") : TIDE_TEXT_NONE};
    answer->rc = tide_ledger_schedule(side->tx, &row, &side->is.schedules[op->a], &side->err);
}

static void run_alert(struct side *side, const struct op *op, struct answer *answer)
{
    static const char *const names[] = {"throttled", "disk"};
    if (op->flag)
        answer->rc = tide_ledger_alert_notified(side->tx, names[op->b], side->accounts[op->a],
                                                op->now, &side->err);
    else
        answer->rc =
            tide_ledger_alert(side->tx, names[op->b], side->accounts[op->a], (int)op->number,
                              op->c == 0 ? "" : "text", op->now, &side->err);
}

static void run_batch(struct side *side, const struct op *op, struct answer *answer)
{
    char name[32];
    uint64_t ids[OP_IDS];
    size_t count = 0;
    (void)snprintf(name, sizeof name, "batch %u", op->a);
    for (size_t i = 0; i < op->count; i++)
        ids[i] = side->jobs[op->ids[i]];
    answer->rc =
        tide_ledger_batch_put(side->tx, tide_text_of(name), ids, op->count, op->now, &side->err);
    tide_status rc =
        tide_ledger_batch_get(side->ledger, tide_text_of(name), ids, OP_IDS, &count, &side->err);
    say(side, " %s", tide_status_name(rc));
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        say(side, " %u", job_name(side, ids[i]));
}

static void run_account(struct side *side, const struct op *op, struct answer *answer)
{
    uint32_t account = side->accounts[op->a];
    if (op->b == 0)
        answer->rc =
            tide_ledger_account_halt(side->tx, account, op->flag, "broken", op->now, &side->err);
    else if (op->b == 1)
        answer->rc = tide_ledger_governor_save(side->tx, account, TIDE_TEXT("saved"), &side->err);
    else
        answer->rc = tide_ledger_account_place(side->tx, account, op->flag ? "archive" : NULL,
                                               op->flag ? NULL : "keyring", &side->err);
}

void op_run_record(struct side *side, const struct op *op, struct answer *answer)
{
    char text[32];
    (void)snprintf(text, sizeof text, "value %u", op->b);
    switch (op->kind) {
    case OP_PAUSE_KIND:
        answer->rc = tide_ledger_kind_pause(side->tx, side->kinds[op->a], op->flag, &side->err);
        break;
    case OP_PAUSE_ACCOUNT:
        answer->rc =
            tide_ledger_account_pause(side->tx, side->accounts[op->a], op->flag, &side->err);
        break;
    case OP_CYCLE:
        run_cycle(side, op, answer);
        break;
    case OP_MOVE:
    case OP_ADVANCE:
        run_cursor(side, op, answer);
        break;
    case OP_MEMBER_BEAT:
        answer->rc = tide_ledger_member_beat(side->tx, LEASE_MS, op->now, &side->err);
        break;
    case OP_TAKE:
    case OP_RELEASE:
        run_take(side, op, answer);
        break;
    case OP_GRANT:
        answer->rc =
            tide_ledger_grant(side->tx, op->a == 0 ? "project" : "model", op->owner, 100,
                              op->number, 60000, LEASE_MS, op->now, &answer->number, &side->err);
        say(side, " units %" PRIu64, answer->number);
        break;
    case OP_BAD_STATE:
        run_bad(side, op, answer);
        break;
    case OP_INTENT:
    case OP_INTENT_END:
        run_intent(side, op, answer);
        break;
    case OP_SCHEDULE:
        run_schedule(side, op, answer);
        break;
    case OP_FIRE:
        answer->rc = tide_ledger_schedule_fire(side->tx, side->is.schedules[op->a], op->number,
                                               op->now, &side->err);
        break;
    case OP_ALERT:
        run_alert(side, op, answer);
        break;
    case OP_NOTE:
        answer->rc = tide_ledger_note(side->tx, op->a == 0 ? "first" : "second", tide_text_of(text),
                                      &side->err);
        break;
    case OP_BATCH:
        run_batch(side, op, answer);
        break;
    case OP_ACCOUNT:
        run_account(side, op, answer);
        break;
    default:
        fail_msg("operation %d", (int)op->kind);
    }
}

/* ---- all that can be listed ------------------------------------------------------------------- */

#define TEXT(t) (int)(t).bytes, (t).bytes == 0 ? "" : (t).data

struct page {
    struct side *side;
    uint64_t now, last;
    size_t count;
};

static bool say_job(const struct tide_job_row *row, void *arg)
{
    struct page *page = arg;
    struct side *side = page->side;
    uint32_t name = job_name(side, row->id);
    assert_true(name <= side->is.jobs_count);
    /* A time that has come may be forgotten. */
    bool waits = row->state == TIDE_ROW_PENDING && row->not_before_unix_ms > page->now;
    say(side,
        "job %u cycle %u size %" PRIu64 " bytes %" PRIu64 " owner %" PRIu64 " token %d"
        " not before %" PRIu64 " created %" PRIu64 " started %" PRIu64 " finished %" PRIu64
        " beat %" PRIu64,
        name, cycle_name(side, row->cycle), row->size_bytes, row->bytes_done, row->owner,
        row->token == side->is.tokens[name], waits ? row->not_before_unix_ms : 0,
        row->created_unix_ms, row->started_unix_ms, row->finished_unix_ms, row->beat_unix_ms);
    say(side, " needs %u attempts %u/%u p%u l%u v%u %d%d state %d %s", row->open_deps,
        row->attempts, row->attempts_max, row->priority, row->lane, row->level, row->preemptible,
        row->force, row->state, tide_status_name(row->status));
    say(side, " '%.*s' '%.*s' '%.*s' '%.*s' '%.*s' '%.*s' '%.*s'\n", TEXT(row->account_name),
        TEXT(row->kind_name), TEXT(row->dedupe_key), TEXT(row->payload), TEXT(row->resume),
        TEXT(row->error), TEXT(row->run_id));
    page->last = row->id;
    page->count++;
    return true;
}

/* Page by page, and each state alone as commands ask for it. */
static void say_jobs(struct side *side, int state, uint64_t now)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    struct page page = {.side = side, .now = now, .count = 1};
    filter.count_max = 200;
    filter.state = state;
    say(side, "state %d\n", state);
    while (page.count > 0) { /* each page begins below the last one */
        page.count = 0;
        OK(tide_ledger_jobs(side->ledger, &filter, say_job, &page, &side->err));
        filter.before_id = page.last;
    }
}

static bool say_count(const struct tide_job_count *row, void *arg)
{
    say(arg,
        "count '%.*s' '%.*s' state %d: %" PRIu64 " blocked %" PRIu64 " delayed %" PRIu64
        " %d%d%d\n",
        TEXT(row->account_name), TEXT(row->kind_name), row->state, row->count, row->blocked,
        row->delayed, row->account_paused, row->account_halted, row->kind_paused);
    return true;
}

static bool say_left(const struct tide_work_left *row, void *arg)
{
    say(arg, "left cycle %u '%.*s' state %d: %" PRIu64 " items %" PRIu64 "\n",
        cycle_name(arg, row->cycle), TEXT(row->kind_name), row->state, row->jobs, row->items);
    return true;
}

static bool say_stream(const struct tide_stream_row *row, void *arg)
{
    say(arg, "stream '%.*s' %" PRIu64 " of %" PRIu64 " '%.*s' '%.*s' '%.*s' %" PRIu64 "\n",
        TEXT(row->name), row->ordinal, row->ordinal_next, TEXT(row->cursor), TEXT(row->floor),
        TEXT(row->start), row->moved_unix_ms);
    return true;
}

static bool say_cycle(const struct tide_cycle_row *row, void *arg)
{
    say(arg,
        "cycle %u ordinal %" PRIu64 " '%.*s' '%.*s' %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
        " opened %" PRIu64 "\n",
        cycle_name(arg, row->id), row->ordinal, TEXT(row->start), TEXT(row->end), row->total,
        row->outstanding, row->failed, row->bad, row->opened_unix_ms);
    return true;
}

static bool say_bad(const struct tide_bad_row *row, void *arg)
{
    say(arg, "bad '%.*s' '%.*s' '%.*s' state %d cycle %u %" PRIu64 " %" PRIu64 " %u '%.*s'\n",
        TEXT(row->account_name), TEXT(row->kind_name), TEXT(row->item), row->state,
        cycle_name(arg, row->cycle), row->first_seen_unix_ms, row->last_tried_unix_ms, row->retries,
        TEXT(row->reason));
    return true;
}

static bool say_schedule(const struct tide_schedule_row *row, void *arg)
{
    say(arg, "schedule '%.*s' %" PRIu64 " %" PRIu64 " %" PRIu64 " %d%d '%.*s'\n", TEXT(row->name),
        row->period_ms, row->anchor_unix_ms, row->slot_last, row->per_account, row->at_start,
        TEXT(row->payload));
    return true;
}

static bool say_alert(const struct tide_alert_row *row, void *arg)
{
    say(arg, "alert %s '%s' %d %" PRIu64 " %" PRIu64 " '%s'\n", row->condition, row->account_name,
        row->level, row->since_unix_ms, row->notified_unix_ms, row->text);
    return true;
}

static bool say_account(const struct tide_account_row *row, void *arg)
{
    say(arg, "account '%s' %s %d%d '%s' %" PRIu64 " owner %" PRIu64 " '%s' '%s' '%.*s'\n",
        row->name, row->provider, row->paused, row->halted, row->halt_reason, row->halted_unix_ms,
        row->owner, row->archive, row->secret, TEXT(row->governor));
    return true;
}

static bool say_member(const struct tide_member *row, void *arg)
{
    say(arg, "member %" PRIu64 " '%s' '%s' %" PRIu64 " %" PRIu64 " dead %d holds %u runs %u\n",
        row->owner, row->name, row->version, row->joined_unix_ms, row->until_unix_ms, row->dead,
        row->accounts, row->running);
    return true;
}

static void say_window(struct side *side, uint32_t account)
{
    static struct tide_brief briefs[JOBS_MAX];
    size_t count = 0;
    OK(tide_ledger_refill(side->ledger, side->accounts[account], 255, 0, briefs, JOBS_MAX, &count,
                          &side->err));
    say(side, "window %u:", account);
    for (size_t i = 0; i < count; i++)
        say(side, " %u", job_name(side, briefs[i].id));
    say(side, "\n");
}

/* Of a few jobs: what they wait for, and their briefs. */
static void say_needs(struct side *side)
{
    for (uint32_t job = side->is.jobs_count; job > 0 && job + 30 > side->is.jobs_count; job--) {
        struct tide_need needs[NEEDS_MAX];
        struct tide_brief brief = {.id = 0};
        size_t count = 0;
        OK(tide_ledger_needs(side->ledger, side->jobs[job], needs, NEEDS_MAX, &count, &side->err));
        say(side, "needs of %u:", job);
        for (size_t i = 0; i < count; i++)
            say(side, " %u:%d", job_name(side, needs[i].id), needs[i].state);
        tide_status rc = tide_ledger_brief(side->ledger, side->jobs[job], &brief, &side->err);
        say(side, " brief %s p%u l%u v%u needs %u attempts %u/%u\n", tide_status_name(rc),
            brief.priority, brief.lane, brief.level, brief.open_deps, brief.attempts,
            brief.attempts_max);
    }
}

static void say_notes(struct side *side)
{
    static const char *const keys[] = {"first", "second", "effect"};
    tide_buf value;
    tide_buf_init(&value, tide_mem_heap(), 1000);
    for (size_t i = 0; i < 3; i++) {
        tide_buf_clear(&value);
        tide_status rc = tide_ledger_note_get(side->ledger, keys[i], &value, &side->err);
        say(side, "note %s %s '%s'\n", keys[i], tide_status_name(rc), tide_buf_cstr(&value));
    }
    tide_buf_done(&value);
}

void state_say(struct side *side, uint64_t now)
{
    tide_error *err = &side->err;
    tide_ledger *ledger = side->ledger;
    for (int state = -1; state <= TIDE_ROW_CANCELED; state++)
        say_jobs(side, state, now);
    OK(tide_ledger_counts(ledger, now, say_count, side, err));
    OK(tide_ledger_streams(ledger, say_stream, side, err));
    for (size_t i = 0; i < STREAMS; i++)
        OK(tide_ledger_cycles(ledger, side->streams[i], say_cycle, side, err));
    OK(tide_ledger_bad_list(ledger, UINT32_MAX, 0, say_bad, side, err));
    OK(tide_ledger_schedules(ledger, say_schedule, side, err));
    OK(tide_ledger_alerts(ledger, say_alert, side, err));
    OK(tide_ledger_accounts(ledger, say_account, side, err));
    OK(tide_ledger_members(ledger, say_member, side, err));
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        OK(tide_ledger_work_left(ledger, side->accounts[i], say_left, side, err));
        say_window(side, i);
    }
    uint32_t accounts[ACCOUNTS];
    size_t count = 0;
    OK(tide_ledger_accounts_with_work(ledger, accounts, ACCOUNTS, &count, err));
    say(side, "work of %zu accounts\n", count);
    say_needs(side);
    say_notes(side);
}
