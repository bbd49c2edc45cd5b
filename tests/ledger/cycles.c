/* cycles.c - cycles, what is left of them, and the one way a cursor moves (E5). */
#include "ledger_fixture.h"

static bool see_stream(const struct tide_stream_row *row, void *arg)
{
    char *cursor = arg;
    keep(cursor, 32, row->cursor);
    return true;
}

CASE(a_cursor_never_passes_unfinished_work)
{
    uint64_t a[2];
    uint64_t b[1];
    begin(f);
    uint64_t stream = stream_of(f, "mail");
    assert_int_equal(stream_of(f, "mail"), stream);
    uint64_t first = cycle_with_jobs(f, stream, "march", 2, a);
    (void)cycle_with_jobs(f, stream, "april", 1, b);
    (void)cycle_with_jobs(f, stream, "may", 0, NULL);
    commit(f);
    assert_int_equal(cycles_of(f, stream).rows[0].outstanding, 2);
    assert_int_equal(move_cursor(f, stream, 0, 1), TIDE_BUG);
    run_to(f, b[0], TIDE_ROW_DONE);
    run_to(f, a[0], TIDE_ROW_DONE);
    assert_int_equal(f->changes.cycles_count, 1);
    assert_int_equal(f->changes.cycles[0].cycle, first);
    assert_int_equal(f->changes.cycles[0].outstanding, 1);
    run_to(f, a[1], TIDE_ROW_FAILED);
    assert_int_equal(f->changes.cycles[0].outstanding, 0);
    assert_int_equal(f->changes.cycles[0].failed, 1);
    assert_int_equal(f->changes.cycles[0].stream, stream);
    assert_int_equal(move_cursor(f, stream, 0, 2), TIDE_BUG);
    assert_int_equal(move_cursor(f, stream, 1, 2), TIDE_STALE);
    assert_int_equal(move_cursor(f, 99, 0, 1), TIDE_NOT_FOUND);

    /* Accepted by a person, the gap is closed. */
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.cycle = first;
    size_t count = 0;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_accept(f->tx, &filter, NOW, &count, &f->changes, &f->err));
    commit(f);
    assert_int_equal(count, 1);
    assert_int_equal(f->changes.cycles[0].failed, 0);
    assert_int_equal(move_cursor(f, stream, 0, 4), TIDE_BUG); /* there are only three */
    assert_int_equal(move_cursor(f, stream, 0, 2), TIDE_OK);
    assert_int_equal(move_cursor(f, stream, 0, 2), TIDE_STALE);
    assert_int_equal(move_cursor(f, stream, 2, 2), TIDE_BUG);
    assert_int_equal(move_cursor(f, stream, 2, 1), TIDE_BUG);
    char cursor[32] = "";
    OK(tide_ledger_streams(f->ledger, see_stream, cursor, &f->err));
    assert_string_equal(cursor, "april");
    assert_int_equal(cycles_of(f, stream).count, 1);
    assert_int_equal(move_cursor(f, stream, 2, 3), TIDE_OK);

    /* A cycle below the cursor takes no more work. */
    struct tide_job_new job = job_of(f, NULL);
    struct tide_enqueued enqueued;
    job.cycle = first;
    begin(f);
    assert_int_equal(tide_ledger_enqueue(f->tx, &job, 1, NOW, &enqueued, &f->err), TIDE_STALE);
    commit(f);
}

struct seen_left {
    struct tide_work_left rows[8];
    size_t count;
};

static bool see_left(const struct tide_work_left *row, void *arg)
{
    struct seen_left *seen = arg;
    assert_true(seen->count < 8);
    seen->rows[seen->count++] = *row;
    return true;
}

static struct seen_left left_of(struct fixture *f, uint32_t account)
{
    struct seen_left seen = {.count = 0};
    OK(tide_ledger_work_left(f->ledger, account, see_left, &seen, &f->err));
    return seen;
}

static void left_is(const struct tide_work_left *row, uint64_t cycle, tide_row_state state,
                    uint64_t jobs, uint64_t items)
{
    assert_int_equal(row->cycle, cycle);
    assert_int_equal(row->state, state);
    assert_int_equal(row->jobs, jobs);
    assert_int_equal(row->items, items);
}

CASE(what_is_left_is_told_by_cycle_and_state)
{
    uint64_t a[3];
    uint64_t b[1];
    assert_int_equal(left_of(f, f->account).count, 0);
    begin(f);
    uint64_t stream = stream_of(f, "mail");
    uint64_t first = cycle_with_jobs(f, stream, "march", 3, a);
    uint64_t second = cycle_with_jobs(f, stream, "april", 1, b);
    struct tide_job_new job = job_of(f, NULL);
    job.payload = TIDE_TEXT("{\"items\":[\"m1\",\"m2\",\"m3\"]}");
    job.cycle = second;
    struct tide_enqueued waits;
    OK(tide_ledger_enqueue(f->tx, &job, 1, NOW, &waits, &f->err));
    job.needs = &waits.id; /* blocked counts as pending, too */
    job.needs_count = 1;
    OK(tide_ledger_enqueue(f->tx, &job, 1, NOW, &waits, &f->err));
    job = job_of(f, NULL); /* of no cycle, and not before its time */
    job.not_before_unix_ms = NOW + 60000;
    OK(tide_ledger_enqueue(f->tx, &job, 1, NOW, &waits, &f->err));
    commit(f);
    run_to(f, a[0], TIDE_ROW_DONE);
    run_to(f, a[1], TIDE_ROW_FAILED);
    (void)claim(f, a[2]);

    struct seen_left seen = left_of(f, f->account);
    assert_int_equal(seen.count, 4);
    left_is(&seen.rows[0], 0, TIDE_ROW_PENDING, 1, 0);
    left_is(&seen.rows[1], first, TIDE_ROW_RUNNING, 1, 0);
    left_is(&seen.rows[2], first, TIDE_ROW_FAILED, 1, 0);
    left_is(&seen.rows[3], second, TIDE_ROW_PENDING, 3, 6);
    assert_int_equal(left_of(f, f->account + 1).count, 0); /* of no other account */
}

static bool see_span(const struct tide_stream_row *row, void *arg)
{
    char *span = arg;
    (void)snprintf(span, 64, "%.*s %d", (int)row->start.bytes, row->start.data,
                   row->moved_unix_ms == NOW);
    return true;
}

CASE(a_stream_tells_since_when_it_covers)
{
    char span[64] = "";
    begin(f);
    uint64_t stream = stream_of(f, "mail");
    (void)cycle_with_jobs(f, stream, "march", 0, NULL);
    commit(f);
    OK(tide_ledger_streams(f->ledger, see_span, span, &f->err));
    assert_string_equal(span, "from 0");
    assert_int_equal(move_cursor(f, stream, 0, 1), TIDE_OK);
    OK(tide_ledger_streams(f->ledger, see_span, span, &f->err));
    assert_string_equal(span, "from 1"); /* also when that cycle is long past */
}

CASE(a_split_keeps_its_cycle_open)
{
    uint64_t id;
    begin(f);
    uint64_t stream = stream_of(f, "mail");
    uint64_t cycle = cycle_with_jobs(f, stream, "march", 1, &id);
    commit(f);
    struct tide_job_new halves[2] = {job_of(f, NULL), job_of(f, NULL)};
    halves[0].cycle = cycle;
    halves[1].cycle = cycle;
    struct tide_item_report item = {TIDE_TEXT("m1"), TIDE_TEXT("broken"), TIDE_PERMANENT};
    assert_true(finish(f, &(struct tide_finish){.id = id,
                                                .token = claim(f, id),
                                                .state = TIDE_ROW_DONE,
                                                .children = halves,
                                                .children_count = 2,
                                                .items = &item,
                                                .items_count = 1}));
    assert_int_equal(f->changes.cycles_count, 1);
    assert_int_equal(f->changes.cycles[0].outstanding, 2);
    struct seen_cycles seen = cycles_of(f, stream);
    assert_int_equal(seen.rows[0].total, 3);
    assert_int_equal(seen.rows[0].bad, 1);
    assert_int_equal(seen.rows[0].id, cycle);
    const uint64_t made[] = {f->changes.children[0].brief.id, f->changes.children[1].brief.id};
    for (size_t i = 0; i < 2; i++)
        run_to(f, made[i], TIDE_ROW_DONE);
    assert_int_equal(move_cursor(f, stream, 0, 1), TIDE_OK);
}

static uint64_t advance(struct fixture *f, uint64_t stream, char *cursor, size_t cursor_bytes)
{
    uint64_t ordinal = 99;
    tide_buf buf;
    tide_buf_init(&buf, tide_mem_heap(), 1000);
    begin(f);
    OK(tide_ledger_cursor_advance(f->tx, stream, NOW + 7, &ordinal, &buf, &f->err));
    commit(f);
    keep(cursor, cursor_bytes, tide_buf_text(&buf));
    tide_buf_done(&buf);
    return ordinal;
}

/* By what the ledger itself says, where no process knows all cycles of a stream. */
CASE(a_cursor_advances_over_all_that_is_finished)
{
    uint64_t a[1];
    uint64_t c[1];
    char cursor[32];
    begin(f);
    uint64_t stream = stream_of(f, "mail");
    commit(f);
    assert_int_equal(advance(f, stream, cursor, sizeof cursor), 0);
    assert_string_equal(cursor, "");
    begin(f);
    (void)cycle_with_jobs(f, stream, "march", 1, a);
    (void)cycle_with_jobs(f, stream, "april", 0, NULL);
    (void)cycle_with_jobs(f, stream, "may", 1, c);
    (void)cycle_with_jobs(f, stream, "june", 0, NULL);
    commit(f);
    assert_int_equal(advance(f, stream, cursor, sizeof cursor), 0);
    assert_string_equal(cursor, "");
    run_to(f, a[0], TIDE_ROW_DONE);
    assert_int_equal(advance(f, stream, cursor, sizeof cursor), 2);
    assert_string_equal(cursor, "april");
    assert_int_equal(advance(f, stream, cursor, sizeof cursor), 2); /* twice is harmless */
    assert_string_equal(cursor, "april");
    run_to(f, c[0], TIDE_ROW_FAILED);
    assert_int_equal(advance(f, stream, cursor, sizeof cursor), 2);
    assert_int_equal(retry(f, c[0]), 1);
    run_to(f, c[0], TIDE_ROW_DONE);
    assert_int_equal(advance(f, stream, cursor, sizeof cursor), 4);
    assert_string_equal(cursor, "june");
    assert_int_equal(cycles_of(f, stream).count, 0);
    uint64_t ordinal = 0;
    begin(f);
    OK(tide_ledger_cursor_advance(f->tx, stream, NOW, &ordinal, NULL, &f->err));
    assert_int_equal(ordinal, 4);
    assert_int_equal(tide_ledger_cursor_advance(f->tx, stream + 1, NOW, &ordinal, NULL, &f->err),
                     TIDE_NOT_FOUND);
    commit(f);
}
