/* ledger_model.c - the rules of a ledger over plain arrays, as slow and as plain as can be. */
#include "ledger_random.h"

static bool unfinished(const struct model_job *job)
{
    return job->state == TIDE_ROW_PENDING || job->state == TIDE_ROW_RUNNING;
}

static bool stopped(const struct model_job *job)
{
    return job->state == TIDE_ROW_FAILED || job->state == TIDE_ROW_CANCELED;
}

uint32_t model_open_deps(const struct model *m, uint32_t job)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < m->jobs[job].needs_count; i++) {
        const struct model_job *needed = &m->jobs[m->jobs[job].needs[i]];
        open += !needed->gone && needed->state != TIDE_ROW_DONE;
    }
    return open;
}

bool model_ready(const struct model *m, uint32_t job)
{
    const struct model_job *j = &m->jobs[job];
    return !j->gone && j->state == TIDE_ROW_PENDING && model_open_deps(m, job) == 0 &&
           !m->kind_paused[j->kind] && !m->account_paused[j->account];
}

bool model_lives(const struct model *m, uint64_t owner)
{
    for (size_t i = 0; i < m->members_count; i++)
        if (m->members[i].owner == owner)
            return !m->members[i].dead;
    return false;
}

uint64_t model_cycle_count(const struct model *m, uint32_t cycle, bool failed)
{
    uint64_t count = 0;
    for (uint32_t i = 1; i <= m->jobs_count; i++) {
        const struct model_job *job = &m->jobs[i];
        if (!job->gone && job->cycle == cycle)
            count += failed ? stopped(job) : unfinished(job);
    }
    return count;
}

static bool cycle_finished(const struct model *m, uint32_t cycle)
{
    return model_cycle_count(m, cycle, false) == 0 && model_cycle_count(m, cycle, true) == 0;
}

/* The second of the kinds is alone while it waits or runs. */
static bool keeps_key(const struct model_job *job)
{
    return !job->gone && job->key != 0 &&
           (job->state == TIDE_ROW_PENDING || (job->kind == 1 && job->state == TIDE_ROW_RUNNING));
}

/* The job that one with this key would be a duplicate of; 0: none. */
static uint32_t duplicate_of(const struct model *m, uint32_t self, uint8_t account, uint8_t kind,
                             uint8_t key)
{
    for (uint32_t i = 1; key != 0 && i <= m->jobs_count; i++) {
        const struct model_job *job = &m->jobs[i];
        if (i != self && keeps_key(job) && job->key == key && job->account == account &&
            job->kind == kind)
            return i;
    }
    return 0;
}

static void not_running(struct model_job *job)
{
    job->owner = 0;
    job->wanted = false;
}

static void wait_again(struct model *m, uint32_t name)
{
    struct model_job *job = &m->jobs[name];
    if (duplicate_of(m, name, job->account, job->kind, job->key) != 0)
        job->key = 0; /* both have to run, one may wait under the key */
    job->state = TIDE_ROW_PENDING;
    job->finished = 0;
    not_running(job);
}

static void end_at(struct model_job *job, tide_row_state state, uint64_t now)
{
    job->state = state;
    job->finished = now;
    if (state != TIDE_ROW_DONE)
        job->not_before = 0;
    not_running(job);
}

/* ---- enqueue, claim, finish -------------------------------------------------------------- */

static void add_job(struct model *m, const struct job_spec *spec, uint32_t first, uint32_t name,
                    bool existed)
{
    uint32_t old = duplicate_of(m, 0, spec->account, spec->kind, spec->key);
    assert_int_equal(existed, old != 0);
    if (old != 0) {
        struct model_job *job = &m->jobs[old];
        assert_int_equal(name, old);
        if (job->state == TIDE_ROW_PENDING && spec->priority > job->priority)
            job->priority = spec->priority;
        job->force = job->force || spec->force;
        return;
    }
    assert_int_equal(name, m->jobs_count + 1);
    struct model_job *job = &m->jobs[++m->jobs_count];
    *job = (struct model_job){.account = spec->account,
                              .kind = spec->kind,
                              .key = spec->key,
                              .priority = spec->priority,
                              .lane = spec->lane,
                              .attempts = spec->attempts,
                              .attempts_max = spec->attempts_max,
                              .cycle = spec->cycle,
                              .force = spec->force,
                              .not_before = spec->not_before};
    for (uint32_t i = 0; i < spec->needs_count; i++)
        job->needs[job->needs_count++] = spec->needs[i];
    bool there = first == 0;
    for (uint32_t i = 0; i < job->needs_count; i++)
        there = there || job->needs[i] == first;
    if (spec->needs_first && !there)
        job->needs[job->needs_count++] = first;
}

static void apply_enqueue(struct model *m, const struct op *op, const struct answer *answer)
{
    assert_int_equal(answer->rc, TIDE_OK);
    for (size_t i = 0; i < op->count; i++) {
        add_job(m, &op->jobs[i], i == 0 ? 0 : answer->jobs[0], answer->jobs[i], answer->flags[i]);
        assert_int_equal(answer->open_deps[i], model_open_deps(m, answer->jobs[i]));
    }
}

static void run(struct model_job *job, uint64_t owner)
{
    job->state = TIDE_ROW_RUNNING;
    job->owner = owner;
    job->wanted = false;
}

static void apply_claim(struct model *m, const struct op *op, const struct answer *answer)
{
    assert_int_equal(answer->rc, TIDE_OK);
    for (size_t i = 0; i < op->count; i++) {
        bool may = model_ready(m, op->ids[i]);
        assert_int_equal(answer->flags[i], may);
        if (may)
            run(&m->jobs[op->ids[i]], op->owner);
    }
}

/* Whether a free claim may have the job, now or when its time has come. */
static bool free_wanted(const struct model *m, const struct op *op, uint32_t name)
{
    const struct model_job *job = &m->jobs[name];
    return job->account == 0 && (job->lane == 0 ? op->b : op->c) > 0 &&
           (op->a >> job->kind & 1) != 0 && model_ready(m, name);
}

static void apply_claim_free(struct model *m, const struct op *op, const struct answer *answer)
{
    size_t count = 0;
    uint64_t due = UINT64_MAX;
    assert_int_equal(answer->rc, TIDE_OK);
    for (uint32_t i = 1; i <= m->jobs_count; i++) {
        struct model_job *job = &m->jobs[i];
        if (!free_wanted(m, op, i))
            continue;
        if (job->not_before > op->now) {
            due = job->not_before < due ? job->not_before : due;
            continue;
        }
        assert_true(count < answer->count);
        assert_int_equal(answer->jobs[count++], i); /* sorted */
        run(job, op->owner);
    }
    assert_int_equal(answer->count, count);
    if (op->b + op->c == 0)
        assert_int_equal(answer->number, 0);
    else /* never too late */
        assert_true(answer->number <= due);
}

static bool needs(const struct model_job *job, uint32_t other)
{
    bool found = false;
    for (uint32_t n = 0; !job->gone && job->state != TIDE_ROW_DONE && n < job->needs_count; n++)
        found = found || job->needs[n] == other;
    return found;
}

/* A job that waited for the parent waits for its part too (E6.1); parts that waited for it do not
 * wait for each other. */
static void wait_for_part(struct model *m, const struct finish_spec *spec, const uint32_t *parts,
                          uint32_t part)
{
    for (uint32_t i = 1; i <= m->jobs_count; i++) {
        struct model_job *job = &m->jobs[i];
        bool is_part = false;
        for (size_t c = 0; c < spec->children_count; c++)
            is_part = is_part || parts[c] == i;
        if (!needs(job, spec->job) || needs(job, part) ||
            (is_part && needs(&m->jobs[part], spec->job)))
            continue;
        assert_true(job->needs_count < NEEDS_MAX);
        job->needs[job->needs_count++] = part;
    }
}

/* Marks what the job waits for, directly or not. */
static void mark_needs(const struct model *m, const uint32_t *needed, size_t count, bool *marked)
{
    for (size_t n = 0; n < count; n++) {
        const struct model_job *job = &m->jobs[needed[n]];
        if (marked[needed[n]] || job->gone || job->state == TIDE_ROW_DONE)
            continue;
        marked[needed[n]] = true;
        mark_needs(m, job->needs, job->needs_count, marked);
    }
}

/* Whether a part would need one who waits for the parent, whose end is not yet in the model. */
static bool closes_circle(const struct model *before, const struct finish_spec *spec)
{
    static struct model after;
    bool marked[JOBS_MAX + 1] = {false};
    after = *before;
    if (spec->state == TIDE_ROW_PENDING)
        wait_again(&after, spec->job);
    else
        end_at(&after.jobs[spec->job], spec->state, 0);
    const struct job_spec *first = &spec->children[0];
    for (size_t c = 0; c < spec->children_count && first->part; c++) {
        const struct job_spec *child = &spec->children[c];
        uint32_t old = duplicate_of(&after, 0, child->account, child->kind, child->key);
        const struct model_job *is = &after.jobs[old];
        if (old != 0)
            mark_needs(&after, is->needs, is->needs_count, marked);
        else /* the second may need the first, which is looked at anyway */
            mark_needs(&after, child->needs, child->needs_count, marked);
        uint32_t leader = duplicate_of(&after, 0, first->account, first->kind, first->key);
        if (old == 0 && child->needs_first && leader != 0)
            mark_needs(&after, &leader, 1, marked);
    }
    for (uint32_t i = 1; i <= before->jobs_count; i++)
        if (marked[i] && needs(&before->jobs[i], spec->job))
            return true;
    return false;
}

static bool goes_on(const struct finish_spec *spec)
{
    bool parts = false;
    for (size_t i = 0; i < spec->children_count; i++)
        parts = parts || spec->children[i].part;
    return spec->state == TIDE_ROW_PENDING || parts;
}

static void apply_finish(struct model *m, const struct op *op, const struct answer *answer)
{
    size_t child = 0;
    assert_int_equal(answer->rc, TIDE_OK);
    for (size_t i = 0; i < op->count; i++) {
        const struct finish_spec *spec = &op->finishes[i];
        struct model_job *job = &m->jobs[spec->job];
        bool may = !job->gone && job->state == TIDE_ROW_RUNNING && !spec->stale &&
                   spec->effect != 2 && !closes_circle(m, spec) && !(job->wanted && goes_on(spec));
        assert_int_equal(answer->flags[i], may);
        if (!may)
            continue;
        job->attempts = (uint16_t)(job->attempts + spec->attempts_add);
        if (spec->state == TIDE_ROW_PENDING) {
            wait_again(m, spec->job);
            job->not_before = spec->not_before;
        } else
            end_at(job, spec->state, op->now);
        uint32_t first = 0;
        for (size_t c = 0; c < spec->children_count; c++, child++) {
            assert_true(child < answer->children_count);
            add_job(m, &spec->children[c], first, answer->children[child],
                    answer->children_existed[child]);
            first = c == 0 ? answer->children[child] : first;
        }
        for (size_t c = 0; c < spec->children_count; c++)
            if (spec->children[c].part)
                wait_for_part(m, spec, &answer->children[child - spec->children_count],
                              answer->children[child - spec->children_count + c]);
    }
    assert_int_equal(child, answer->children_count);
}

/* ---- what commands do ----------------------------------------------------------------------- */

static void declare_dead(struct model *m, uint64_t owner, uint64_t now)
{
    for (size_t i = 0; i < m->members_count; i++)
        if (m->members[i].owner != owner && m->members[i].until <= now)
            m->members[i].dead = true;
    for (size_t i = 1; i < ACCOUNTS; i++)
        if (m->account_owner[i] != 0 && !model_lives(m, m->account_owner[i]))
            m->account_owner[i] = 0;
}

static void apply_reclaim(struct model *m, const struct op *op, const struct answer *answer)
{
    size_t count = 0;
    declare_dead(m, op->owner, op->now);
    for (uint32_t i = 1; i <= m->jobs_count; i++) {
        struct model_job *job = &m->jobs[i];
        if (job->gone || job->state != TIDE_ROW_RUNNING || job->owner == op->owner ||
            model_lives(m, job->owner))
            continue;
        count++;
        if (job->wanted) {
            end_at(job, TIDE_ROW_CANCELED, op->now);
            continue;
        }
        job->attempts++;
        job->not_before = 0;
        bool over = job->attempts_max > 0 && job->attempts >= job->attempts_max;
        if (over && job->kind != 2) /* the third can be split */
            end_at(job, TIDE_ROW_FAILED, op->now);
        else
            wait_again(m, i);
    }
    assert_int_equal(answer->count, count);
}

/* op->a: one job; else all of account b and kind c, where those are given. */
static bool meant(const struct model *m, const struct op *op, uint32_t name)
{
    const struct model_job *job = &m->jobs[name];
    if (job->gone)
        return false;
    if (op->a != 0)
        return op->a == name;
    return (op->b == UINT32_MAX || op->b == job->account) && op->c == job->kind;
}

static void apply_command(struct model *m, const struct op *op, const struct answer *answer)
{
    size_t count = 0;
    size_t running = 0;
    for (uint32_t i = 1; i <= m->jobs_count; i++) {
        struct model_job *job = &m->jobs[i];
        if (!meant(m, op, i))
            continue;
        if (op->kind == OP_RETRY && stopped(job)) {
            wait_again(m, i);
            job->attempts = 0;
            job->not_before = 0;
            count++;
        } else if (op->kind == OP_RETRY && job->state == TIDE_ROW_PENDING &&
                   (op->a != 0 || job->not_before != 0)) {
            job->not_before = 0;
            count++;
        } else if (op->kind == OP_CANCEL && job->state == TIDE_ROW_PENDING) {
            job->state = TIDE_ROW_CANCELED; /* it keeps its time, should it be tried again */
            job->finished = op->now;
            count++;
        } else if (op->kind == OP_CANCEL && job->state == TIDE_ROW_RUNNING) {
            job->wanted = true;
            running++;
        } else if (op->kind == OP_ACCEPT && stopped(job)) {
            job->state = TIDE_ROW_DONE;
            job->finished = op->now;
            job->needs_count = 0;
            count++;
        }
    }
    assert_int_equal(answer->count, count);
    if (op->kind == OP_CANCEL)
        assert_int_equal(answer->running, running);
}

/* ---- cycles and purge ------------------------------------------------------------------------- */

static uint32_t cycle_at(const struct model *m, uint32_t stream, uint64_t ordinal)
{
    for (uint32_t i = 1; i <= m->cycles_count; i++)
        if (m->cycle_stream[i] == stream && m->cycle_ordinal[i] == ordinal)
            return i;
    return 0;
}

/* How far the cursor may go. */
static uint64_t reachable(const struct model *m, uint32_t stream)
{
    uint64_t to = m->ordinal[stream];
    while (to < m->ordinal_next[stream] && cycle_finished(m, cycle_at(m, stream, to)))
        to++;
    return to;
}

static void apply_cycle(struct model *m, const struct op *op, const struct answer *answer)
{
    assert_int_equal(answer->rc, TIDE_OK);
    assert_int_equal(answer->number, m->ordinal_next[op->a]);
    m->cycle_stream[++m->cycles_count] = op->a;
    m->cycle_ordinal[m->cycles_count] = m->ordinal_next[op->a]++;
}

static void apply_move(struct model *m, const struct op *op, const struct answer *answer)
{
    if (op->number != m->ordinal[op->a]) {
        assert_int_equal(answer->rc, TIDE_STALE);
        return;
    }
    bool may = op->more > op->number && op->more <= reachable(m, op->a);
    assert_int_equal(answer->rc, may ? TIDE_OK : TIDE_BUG);
    if (may)
        m->ordinal[op->a] = op->more;
}

static bool purgeable(const struct model *m, uint32_t name, uint64_t before)
{
    const struct model_job *job = &m->jobs[name];
    if (job->gone || unfinished(job) || job->finished >= before)
        return false;
    if (job->cycle != 0 && !cycle_finished(m, job->cycle))
        return false;
    for (uint32_t i = 1; job->state != TIDE_ROW_DONE && i <= m->jobs_count; i++)
        for (uint32_t n = 0; !m->jobs[i].gone && n < m->jobs[i].needs_count; n++)
            if (m->jobs[i].needs[n] == name)
                return false;
    return true;
}

static void apply_purge(struct model *m, const struct op *op, const struct answer *answer)
{
    static bool goes[JOBS_MAX + 1];
    size_t count = 0;
    /* One that goes does not yet free what it waited for: that is looked at before it. */
    for (uint32_t i = 1; i <= m->jobs_count; i++)
        goes[i] = purgeable(m, i, op->number);
    for (uint32_t i = 1; i <= m->jobs_count; i++)
        if (goes[i]) {
            m->jobs[i].gone = true;
            count++;
        }
    assert_int_equal(answer->count, count);
}

/* ---- members -------------------------------------------------------------------------------- */

static void apply_take(struct model *m, const struct op *op, const struct answer *answer)
{
    for (uint32_t i = 1; i < ACCOUNTS; i++) {
        uint64_t *owner = &m->account_owner[i];
        bool may = *owner == 0 || *owner == op->owner || !model_lives(m, *owner);
        assert_int_equal(answer->flags[i], may);
        if (may)
            *owner = op->owner;
    }
}

static void apply_member_beat(struct model *m, const struct op *op)
{
    for (size_t i = 0; i < m->members_count; i++)
        if (m->members[i].owner == op->owner)
            m->members[i].until = op->now + LEASE_MS;
}

void model_apply(struct model *m, const struct op *op, const struct answer *answer)
{
    switch (op->kind) {
    case OP_ENQUEUE:
        apply_enqueue(m, op, answer);
        break;
    case OP_CLAIM:
        apply_claim(m, op, answer);
        break;
    case OP_CLAIM_FREE:
        apply_claim_free(m, op, answer);
        break;
    case OP_FINISH:
        apply_finish(m, op, answer);
        break;
    case OP_RECLAIM:
        apply_reclaim(m, op, answer);
        break;
    case OP_RETRY:
    case OP_CANCEL:
    case OP_ACCEPT:
        apply_command(m, op, answer);
        break;
    case OP_PAUSE_KIND:
        m->kind_paused[op->a] = op->flag;
        break;
    case OP_PAUSE_ACCOUNT:
        m->account_paused[op->a] = op->flag;
        break;
    case OP_PURGE:
        apply_purge(m, op, answer);
        break;
    case OP_CYCLE:
        apply_cycle(m, op, answer);
        break;
    case OP_MOVE:
        apply_move(m, op, answer);
        break;
    case OP_ADVANCE:
        assert_int_equal(answer->number, reachable(m, op->a));
        m->ordinal[op->a] = answer->number;
        break;
    case OP_MEMBER_BEAT:
        apply_member_beat(m, op);
        break;
    case OP_TAKE:
        apply_take(m, op, answer);
        break;
    case OP_RELEASE:
        for (uint32_t i = 1; i < ACCOUNTS; i++)
            if (m->account_owner[i] == op->owner)
                m->account_owner[i] = 0;
        break;
    default: /* the sides agree on it, which is all the model asks */
        break;
    }
}

/* ---- comparing --------------------------------------------------------------------------------- */

static bool compare_job(const struct tide_job_row *row, void *arg)
{
    const struct model_job *job = arg;
    char key[8] = "";
    if (job->key != 0)
        (void)snprintf(key, sizeof key, "k%u", job->key);
    assert_false(job->gone);
    assert_int_equal(row->state, job->state);
    assert_int_equal(row->token != 0, job->state == TIDE_ROW_RUNNING);
    assert_int_equal(row->owner, job->owner);
    assert_int_equal(row->attempts, job->attempts);
    assert_int_equal(row->priority, job->priority);
    assert_int_equal(row->force, job->force);
    assert_int_equal(row->finished_unix_ms, job->finished);
    assert_true(tide_text_equal(row->dedupe_key, tide_text_of(key)));
    /* One whose time has come has no time any more. */
    if (job->state == TIDE_ROW_PENDING && row->not_before_unix_ms != 0)
        assert_int_equal(row->not_before_unix_ms, job->not_before);
    return true;
}

void model_compare(const struct model *m, struct side *side)
{
    static struct tide_brief briefs[JOBS_MAX];
    for (uint32_t i = 1; i <= m->jobs_count; i++) {
        struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
        filter.id = side->jobs[i];
        struct model_job job = m->jobs[i];
        OK(tide_ledger_jobs(side->ledgers[0], &filter, compare_job, &job, &side->err));
    }
    for (uint8_t account = 0; account < ACCOUNTS; account++) {
        size_t count = 0;
        size_t wanted = 0;
        OK(tide_ledger_refill(side->ledgers[0], side->accounts[account], 255, 0, briefs, JOBS_MAX,
                              &count, &side->err));
        for (uint32_t i = 1; i <= m->jobs_count; i++)
            wanted += m->jobs[i].account == account && model_ready(m, i);
        assert_int_equal(count, wanted);
        for (size_t i = 1; i < count; i++)
            assert_true(tide_brief_before(&briefs[i - 1], &briefs[i]));
    }
}
