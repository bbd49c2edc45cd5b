/* ledger_random_side.c - a store with its open ledgers, and the operations on jobs. */
#include "ledger_random.h"

#include <unistd.h>

void say(struct side *side, const char *format, ...)
{
    char text[1000];
    va_list list_of;
    va_start(list_of, format);
    int bytes = vsnprintf(text, sizeof text, format, list_of);
    va_end(list_of);
    assert_true(bytes >= 0 && (size_t)bytes < sizeof text);
    OK(tide_buf_add(&side->said, text, (size_t)bytes));
}

static uint32_t name_of(const uint64_t *ids, uint32_t count, uint64_t id)
{
    if (id == 0)
        return 0;
    uint32_t low = 1; /* ids only grow */
    uint32_t high = count + 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low <= count && ids[low] == id ? low : UINT32_MAX;
}

uint32_t job_name(const struct side *side, uint64_t id)
{
    return name_of(side->jobs, side->is.jobs_count, id);
}

uint32_t cycle_name(const struct side *side, uint64_t id)
{
    return name_of(side->cycles, side->is.cycles_count, id);
}

static uint32_t job_added(struct side *side, uint64_t id)
{
    assert_true(side->is.jobs_count < JOBS_MAX);
    if (side->is.jobs_count > 0 && id <= side->jobs[side->is.jobs_count])
        print_error("%s: id %" PRIu64 " after %" PRIu64 "\n", side->store.kind->name, id,
                    side->jobs[side->is.jobs_count]);
    assert_true(side->is.jobs_count == 0 || id > side->jobs[side->is.jobs_count]);
    side->jobs[++side->is.jobs_count] = id;
    return side->is.jobs_count;
}

/* ---- life ------------------------------------------------------------------------------ */

static void open_all(struct side *side)
{
    for (size_t i = 0; i < PROCESSES; i++) {
        char run_id[16];
        (void)snprintf(run_id, sizeof run_id, "run-%zu", i);
        side->ledgers[i] = store_open(&side->store, run_id, false);
    }
    side->ledger = side->ledgers[0];
}

static void names_make(struct side *side)
{
    static const char *const kinds[KINDS] = {"once", "alone", "splits"};
    static const char *const accounts[ACCOUNTS] = {"", "a@example.com", "b@example.com"};
    static const char *const streams[STREAMS] = {"mail", "console"};
    tide_error *err = &side->err;
    OK(tide_tx_begin(side->ledger, &side->tx, err));
    for (size_t i = 0; i < KINDS; i++)
        OK(tide_ledger_kind(side->tx, kinds[i],
                            i == 1 ? TIDE_DEDUPE_PENDING_AND_RUNNING : TIDE_DEDUPE_PENDING,
                            &side->kinds[i], err));
    OK(tide_ledger_kind_splits(side->tx, side->kinds[2], true, err));
    for (size_t i = 1; i < ACCOUNTS; i++)
        OK(tide_ledger_account(side->tx, accounts[i], "gmail", &side->accounts[i], err));
    for (size_t i = 0; i < STREAMS; i++) {
        struct tide_stream_row row;
        OK(tide_ledger_stream(side->tx, side->accounts[i], streams[i], TIDE_TEXT("floor"), &row,
                              err));
        side->streams[i] = row.id;
    }
    OK(tide_tx_commit(side->tx, err));
    side->tx = NULL;
}

void side_open(struct side *side, const struct store_kind *kind, uint64_t seed)
{
    memset(side, 0, sizeof *side);
    store_make(&side->store, kind, seed);
    tide_changes_init(&side->changes, tide_mem_heap());
    tide_buf_init(&side->said, tide_mem_heap(), (size_t)16 << 20);
    open_all(side);
    names_make(side);
}

static void close_all(struct side *side, bool clean)
{
    for (size_t i = PROCESSES; i > 0; i--)
        tide_ledger_close(side->ledgers[i - 1], clean);
}

void side_close(struct side *side)
{
    if (side->tx != NULL)
        tide_tx_rollback(side->tx);
    close_all(side, true);
    tide_changes_done(&side->changes);
    tide_buf_done(&side->said);
    store_destroy(&side->store);
}

void side_restart(struct side *side, bool clean)
{
    bool crashes = !clean && side->store.kind->crash != NULL;
    if (crashes)
        side->store.kind->crash(&side->store);
    close_all(side, clean);
    if (crashes)
        tide_sim_reboot(side->store.sim);
    open_all(side);
}

/* ---- specs to what the ledger takes -------------------------------------------------------- */

struct made_job {
    uint64_t needs[3];
    uint32_t earlier;
    char key[8];
};

static struct tide_job_new job_make(const struct side *side, const struct job_spec *spec,
                                    struct made_job *made)
{
    made->earlier = 0;
    for (uint32_t i = 0; i < spec->needs_count; i++)
        made->needs[i] = side->jobs[spec->needs[i]];
    (void)snprintf(made->key, sizeof made->key, "k%u", spec->key);
    return (struct tide_job_new){
        .account = side->accounts[spec->account],
        .kind = side->kinds[spec->kind],
        .cycle = side->cycles[spec->cycle],
        .dedupe_key = spec->key == 0 ? TIDE_TEXT_NONE : tide_text_of(made->key),
        .payload = TIDE_TEXT("{\"items\":[1,2]}"),
        .needs = made->needs,
        .needs_count = spec->needs_count,
        .needs_earlier = &made->earlier,
        .needs_earlier_count = spec->needs_first ? 1 : 0,
        .size_bytes = spec->size_bytes,
        .not_before_unix_ms = spec->not_before,
        .attempts = spec->attempts,
        .attempts_max = spec->attempts_max,
        .priority = spec->priority,
        .lane = spec->lane,
        .level = spec->level,
        .preemptible = spec->preemptible,
        .force = spec->force,
        .part = spec->part,
    };
}

/* ---- changes, each kind sorted: their order is not promised ------------------------------- */

static int by_id(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a; /* the first member of each */
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void say_changes(struct side *side)
{
    struct tide_changes *c = &side->changes;
    if (c->released_count > 0)
        qsort(c->released, c->released_count, sizeof c->released[0], by_id);
    if (c->cycles_count > 0)
        qsort(c->cycles, c->cycles_count, sizeof c->cycles[0], by_id);
    if (c->over_budget_count > 0)
        qsort(c->over_budget, c->over_budget_count, sizeof c->over_budget[0], by_id);
    for (size_t i = 0; i < c->released_count; i++)
        say(side, " released %u (account %d, needs %u)", job_name(side, c->released[i].id),
            c->released[i].account != 0, c->released[i].open_deps);
    for (size_t i = 0; i < c->cycles_count; i++)
        say(side,
            " cycle %u (ordinal %" PRIu64 ", left %" PRIu64 ", failed %" PRIu64 ", of %" PRIu64
            ", bad %" PRIu64 ")",
            cycle_name(side, c->cycles[i].cycle), c->cycles[i].ordinal, c->cycles[i].outstanding,
            c->cycles[i].failed, c->cycles[i].total, c->cycles[i].bad);
    for (size_t i = 0; i < c->over_budget_count; i++)
        say(side, " over budget %u (failed %d)", job_name(side, c->over_budget[i].id),
            c->over_budget[i].failed);
}

/* ---- operations -------------------------------------------------------------------------------- */

static void run_enqueue(struct side *side, const struct op *op, struct answer *answer)
{
    struct made_job made[OP_JOBS];
    struct tide_job_new jobs[OP_JOBS];
    struct tide_enqueued enqueued[OP_JOBS];
    for (size_t i = 0; i < op->count; i++)
        jobs[i] = job_make(side, &op->jobs[i], &made[i]);
    answer->rc = tide_ledger_enqueue(side->tx, jobs, op->count, op->now, enqueued, &side->err);
    for (size_t i = 0; answer->rc == TIDE_OK && i < op->count; i++) {
        answer->flags[i] = enqueued[i].existed;
        answer->open_deps[i] = enqueued[i].open_deps;
        answer->jobs[i] =
            enqueued[i].existed ? job_name(side, enqueued[i].id) : job_added(side, enqueued[i].id);
        say(side, " %u%s%s needs %u", answer->jobs[i], enqueued[i].existed ? " existed" : "",
            enqueued[i].raised ? " raised" : "", enqueued[i].open_deps);
    }
}

static void say_body(struct side *side, struct tide_job_body *body)
{
    uint32_t name = job_name(side, body->id);
    assert_true(name <= side->is.jobs_count);
    side->is.tokens[name] = body->token;
    say(side, " %u (attempts %u, force %d, %.*s, '%.*s', '%.*s')", name, body->attempts,
        body->force, (int)body->payload.bytes, body->payload.data, (int)body->resume.bytes,
        body->resume.data, (int)body->dedupe_key.bytes, body->dedupe_key.data);
    tide_job_body_free(tide_mem_heap(), body);
}

static void run_claim(struct side *side, const struct op *op, struct answer *answer)
{
    uint64_t ids[OP_IDS];
    struct tide_job_body *bodies[OP_IDS] = {NULL};
    for (size_t i = 0; i < op->count; i++)
        ids[i] = side->jobs[op->ids[i]];
    answer->rc = tide_ledger_claim(side->tx, ids, op->count, op->owner, op->token, op->now,
                                   tide_mem_heap(), bodies, &side->err);
    for (size_t i = 0; i < op->count; i++) {
        answer->flags[i] = bodies[i] != NULL;
        if (bodies[i] != NULL)
            say_body(side, bodies[i]);
    }
}

struct freed {
    uint64_t id; /* first, for by_id() */
    struct tide_brief brief;
    struct tide_job_body *body;
};

/* Asks until nothing more may be had at this moment: what another process put back may take a
 * while to be found, the longer the slower the machine is.  A time to come back that comes nearer
 * while we wait is such a while; that of a job that is put off stays. */
static size_t free_all(struct side *side, const struct op *op, struct freed *freed,
                       struct answer *answer)
{
    static struct tide_brief briefs[2 * FREE_MAX];
    static struct tide_job_body *bodies[2 * FREE_MAX];
    uint32_t kinds[KINDS];
    size_t kinds_count = 0;
    size_t total = 0;
    for (uint32_t i = 0; i < KINDS; i++)
        if ((op->a >> i & 1) != 0)
            kinds[kinds_count++] = side->kinds[i];
    uint64_t before = 0;
    for (int tries = 0; tries < 1000; tries++) {
        const uint32_t counts[2] = {op->b, op->c};
        size_t count = 0;
        answer->rc = tide_ledger_claim_free(side->tx, kinds, kinds_count, counts, op->owner,
                                            op->token + total, op->now, tide_mem_heap(), briefs,
                                            bodies, &count, &answer->number, &side->err);
        assert_int_equal(answer->rc, TIDE_OK);
        assert_true(total + count <= 2 * FREE_MAX);
        for (size_t i = 0; i < count; i++)
            freed[total++] = (struct freed){briefs[i].id, briefs[i], bodies[i]};
        if (answer->number <= op->now || (count == 0 && answer->number == before))
            break;
        before = answer->number;
        const uint64_t wait_ms = answer->number - op->now;
        (void)usleep((useconds_t)(wait_ms < 5 ? wait_ms : 5) * 1000);
    }
    return total;
}

static void run_claim_free(struct side *side, const struct op *op, struct answer *answer)
{
    static struct freed freed[2 * FREE_MAX];
    answer->count = free_all(side, op, freed, answer);
    qsort(freed, answer->count, sizeof freed[0], by_id);
    for (size_t i = 0; i < answer->count; i++) {
        const struct tide_brief *brief = &freed[i].brief;
        answer->jobs[i] = job_name(side, brief->id);
        say(side, " [p%u l%u v%u]", brief->priority, brief->lane, brief->level);
        say_body(side, freed[i].body);
    }
}

static tide_status effect(void *arg, tide_tx *tx, tide_error *err)
{
    const struct finish_spec *spec = arg;
    char text[32];
    (void)snprintf(text, sizeof text, "of %u", spec->job);
    tide_status rc = tide_ledger_note(tx, "effect", tide_text_of(text), err);
    if (rc == TIDE_OK && spec->effect == 2)
        return tide_error_set(err, TIDE_SERVER, "the effect failed");
    return rc;
}

static void say_finished(struct side *side, struct answer *answer)
{
    const struct tide_changes *c = &side->changes;
    answer->children_count = c->children_count;
    for (size_t i = 0; i < c->children_count; i++) {
        const struct tide_brief *brief = &c->children[i].brief;
        bool existed = c->children[i].existed;
        assert_true(i < 2 * OP_FINISHES);
        answer->children_existed[i] = existed;
        answer->children[i] = existed ? job_name(side, brief->id) : job_added(side, brief->id);
        say(side, " child %u%s (p%u l%u needs %u cycle %u)", answer->children[i],
            existed ? " existed" : "", brief->priority, brief->lane, brief->open_deps,
            cycle_name(side, brief->cycle));
    }
    for (size_t i = 0; i < c->refused_count; i++)
        say(side, " refused %zu %s", c->refused[i].index, tide_status_name(c->refused[i].status));
}

static void run_finish(struct side *side, const struct op *op, struct answer *answer)
{
    static struct made_job made[OP_FINISHES][2];
    static struct tide_job_new children[OP_FINISHES][2];
    struct tide_item_report items[OP_FINISHES];
    struct tide_finish finishes[OP_FINISHES];
    char texts[OP_FINISHES][3][32];
    for (size_t i = 0; i < op->count; i++) {
        const struct finish_spec *spec = &op->finishes[i];
        (void)snprintf(texts[i][0], 32, "page %u", spec->resume);
        (void)snprintf(texts[i][1], 32, "{\"left\":%u}", spec->payload);
        (void)snprintf(texts[i][2], 32, "item %u", spec->item);
        items[i] = (struct tide_item_report){tide_text_of(texts[i][2]), TIDE_TEXT("why"),
                                             spec->item_status};
        for (size_t c = 0; c < spec->children_count; c++)
            children[i][c] = job_make(side, &spec->children[c], &made[i][c]);
        finishes[i] = (struct tide_finish){
            .id = side->jobs[spec->job],
            .token = side->is.tokens[spec->job] + (spec->stale ? 77 : 0),
            .state = spec->state,
            .attempts_add = spec->attempts_add,
            .not_before_unix_ms = spec->not_before,
            .status = spec->status,
            .error = spec->status == TIDE_OK ? TIDE_TEXT_NONE : TIDE_TEXT("an error"),
            .resume_set = spec->resume > 0,
            .resume = spec->resume > 1 ? tide_text_of(texts[i][0]) : TIDE_TEXT_NONE,
            .payload = spec->payload > 0 ? tide_text_of(texts[i][1]) : TIDE_TEXT_NONE,
            .bytes_done = spec->bytes_done,
            .children = children[i],
            .children_count = spec->children_count,
            .items = &items[i],
            .items_count = spec->item > 0 ? 1 : 0,
            .effect = spec->effect > 0 ? effect : NULL,
            .effect_arg = (void *)(uintptr_t)spec,
        };
    }
    bool applied[OP_FINISHES] = {false};
    answer->rc = tide_ledger_finish(side->tx, finishes, op->count, op->now, applied, &side->changes,
                                    &side->err);
    for (size_t i = 0; i < op->count; i++) {
        answer->flags[i] = applied[i];
        say(side, " %u:%d", op->finishes[i].job, applied[i]);
    }
    say_finished(side, answer);
}

static void run_command(struct side *side, const struct op *op, struct answer *answer)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    static uint64_t running[JOBS_MAX];
    filter.count_max = 100000;
    if (op->a != 0)
        filter.id = side->jobs[op->a];
    else {
        filter.account = op->b == UINT32_MAX ? UINT32_MAX : side->accounts[op->b];
        filter.kind = side->kinds[op->c];
    }
    if (op->kind == OP_RETRY)
        answer->rc = tide_ledger_retry(side->tx, &filter, op->now, &answer->count, &side->changes,
                                       &side->err);
    else if (op->kind == OP_ACCEPT)
        answer->rc = tide_ledger_accept(side->tx, &filter, op->now, &answer->count, &side->changes,
                                        &side->err);
    else {
        answer->rc = tide_ledger_cancel(side->tx, &filter, op->now, &answer->count, running,
                                        JOBS_MAX, &answer->running, &side->changes, &side->err);
        qsort(running, answer->running, sizeof running[0], by_id);
        for (size_t i = 0; i < answer->running; i++)
            say(side, " running %u", job_name(side, running[i]));
    }
    say(side, " count %zu", answer->count);
}

static void run_beat(struct side *side, const struct op *op, struct answer *answer)
{
    struct tide_beat beats[OP_IDS];
    bool applied[OP_IDS] = {false};
    for (size_t i = 0; i < op->count; i++)
        beats[i] = (struct tide_beat){
            side->jobs[op->ids[i]], side->is.tokens[op->ids[i]] + (op->stale[i] ? 77 : 0),
            op->number, op->flag, op->b == 0 ? TIDE_TEXT_NONE : TIDE_TEXT("beaten")};
    answer->rc = tide_ledger_beat(side->tx, beats, op->count, op->now, applied, &side->err);
    for (size_t i = 0; i < op->count; i++)
        say(side, " %u:%d", op->ids[i], applied[i]);
}

void op_run(struct side *side, const struct op *op, struct answer *answer)
{
    *answer = (struct answer){.rc = TIDE_OK};
    tide_changes_clear(&side->changes);
    switch (op->kind) {
    case OP_ENQUEUE:
        run_enqueue(side, op, answer);
        break;
    case OP_CLAIM:
        run_claim(side, op, answer);
        break;
    case OP_CLAIM_FREE:
        run_claim_free(side, op, answer);
        break;
    case OP_FINISH:
        run_finish(side, op, answer);
        break;
    case OP_BEAT:
        run_beat(side, op, answer);
        break;
    case OP_RECLAIM:
        answer->rc = tide_ledger_reclaim(side->tx, op->owner, 100000, op->now, &answer->count,
                                         &side->changes, &side->err);
        say(side, " count %zu", answer->count);
        break;
    case OP_RETRY:
    case OP_CANCEL:
    case OP_ACCEPT:
        run_command(side, op, answer);
        break;
    case OP_PURGE:
        answer->rc = tide_ledger_purge(side->tx, op->number, 100000, &answer->count, &side->err);
        say(side, " count %zu", answer->count);
        break;
    default:
        op_run_record(side, op, answer);
        break;
    }
    say(side, " = %s", tide_status_name(answer->rc));
    say_changes(side);
    say(side, "\n");
}
