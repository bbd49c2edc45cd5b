/* ledger_random_choose.c - the next operation, by the seed and by what would be likely to
 * matter: mostly young jobs, mostly things that are allowed. */
#include "ledger_random.h"

#define BELOW(n)     tide_rng_below(&chooser->rng, (n))
#define CHANCE(a, b) tide_rng_chance(&chooser->rng, (a), (b))

/* A job that is there, or 0. */
static uint32_t job_any(struct chooser *chooser, const struct model *m)
{
    if (m->jobs_count == 0)
        return 0;
    uint32_t span = CHANCE(3, 4) && m->jobs_count > 40 ? 40 : m->jobs_count;
    uint32_t job = m->jobs_count - (uint32_t)BELOW(span);
    return m->jobs[job].gone ? 0 : job;
}

static uint32_t job_running(struct chooser *chooser, const struct model *m)
{
    for (int tries = 0; tries < 20; tries++) {
        uint32_t job = job_any(chooser, m);
        if (job != 0 && m->jobs[job].state == TIDE_ROW_RUNNING)
            return job;
    }
    return 0;
}

static uint32_t cycle_open(struct chooser *chooser, const struct model *m)
{
    uint32_t cycle = m->cycles_count == 0 ? 0 : 1 + (uint32_t)BELOW(m->cycles_count);
    return cycle != 0 && m->cycle_ordinal[cycle] >= m->ordinal[m->cycle_stream[cycle]] ? cycle : 0;
}

static uint64_t later(struct chooser *chooser)
{
    return CHANCE(1, 5) ? chooser->now + BELOW(3600000) : 0;
}

static void choose_job(struct chooser *chooser, const struct model *m, struct job_spec *spec)
{
    *spec = (struct job_spec){
        .account = (uint8_t)BELOW(ACCOUNTS),
        .kind = (uint8_t)BELOW(KINDS),
        .key = (uint8_t)(CHANCE(1, 2) ? 0 : BELOW(KEYS)),
        .priority = (uint8_t)(BELOW(3) * 50),
        .lane = (uint8_t)BELOW(2),
        .level = (uint8_t)(1 + BELOW(4)),
        .attempts = (uint16_t)BELOW(2),
        .attempts_max = (uint16_t)BELOW(5),
        .cycle = CHANCE(1, 3) ? cycle_open(chooser, m) : 0,
        .needs_first = CHANCE(1, 4),
        .force = CHANCE(1, 4),
        .preemptible = CHANCE(1, 2),
        .size_bytes = CHANCE(1, 3) ? 1 + BELOW(1000) : 0,
        .not_before = later(chooser),
    };
    while (spec->needs_count < 3 && CHANCE(1, 4)) {
        uint32_t job = job_any(chooser, m);
        bool twice = job == 0;
        for (uint32_t i = 0; i < spec->needs_count; i++)
            twice = twice || spec->needs[i] == job;
        if (!twice)
            spec->needs[spec->needs_count++] = job;
    }
}

/* The most that one who waits for the job needs already: parts are added to it. */
static uint32_t most_needs(const struct model *m, uint32_t job)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i <= m->jobs_count; i++)
        for (uint32_t n = 0; n < m->jobs[i].needs_count; n++)
            if (m->jobs[i].needs[n] == job && m->jobs[i].needs_count > most)
                most = m->jobs[i].needs_count;
    return most;
}

static void choose_finish(struct chooser *chooser, const struct model *m, uint32_t job,
                          struct finish_spec *spec)
{
    static const tide_row_state states[] = {TIDE_ROW_DONE,   TIDE_ROW_DONE,    TIDE_ROW_DONE,
                                            TIDE_ROW_FAILED, TIDE_ROW_PENDING, TIDE_ROW_CANCELED};
    static const tide_status items[] = {TIDE_PERMANENT, TIDE_GONE, TIDE_TIMEOUT, TIDE_OK};
    *spec = (struct finish_spec){
        .job = job,
        .stale = CHANCE(1, 8),
        .state = states[BELOW(6)],
        .attempts_add = (int16_t)BELOW(2),
        .not_before = later(chooser),
        .bytes_done = CHANCE(1, 3) ? BELOW(1000) : 0,
        .resume = (uint8_t)(CHANCE(1, 3) ? BELOW(4) : 0),
        .payload = (uint8_t)(CHANCE(1, 5) ? BELOW(4) : 0),
        .item = (uint8_t)(CHANCE(1, 4) ? 1 + BELOW(4) : 0),
        .item_status = items[BELOW(4)],
        .effect = (uint8_t)(CHANCE(1, 4) ? 1 + BELOW(2) : 0),
    };
    if (spec->state != TIDE_ROW_DONE)
        spec->status = TIDE_SERVER;
    if (!CHANCE(1, 4))
        return;
    spec->children_count = 1 + BELOW(2);
    bool parts = CHANCE(1, 3) && most_needs(m, job) + 2 < NEEDS_MAX;
    for (size_t i = 0; i < spec->children_count; i++) {
        choose_job(chooser, m, &spec->children[i]);
        spec->children[i].needs_first = spec->children[i].needs_first && i > 0;
        spec->children[i].part = parts;
    }
}

/* Which of the finishes of a call is written first is up to the store; so no child
 * needs a job that ends in the same call as its parent. */
static void needs_apart(struct op *op, struct job_spec *child)
{
    uint32_t kept = 0;
    for (uint32_t n = 0; n < child->needs_count; n++) {
        bool ends = false;
        for (size_t i = 0; i < op->count; i++)
            ends = ends || op->finishes[i].job == child->needs[n];
        if (!ends)
            child->needs[kept++] = child->needs[n];
    }
    child->needs_count = kept;
}

static void choose_finishes(struct chooser *chooser, const struct model *m, struct op *op)
{
    size_t wanted = 1 + BELOW(OP_FINISHES);
    for (size_t tries = 0; tries < wanted * 3 && op->count < wanted; tries++) {
        uint32_t job = job_running(chooser, m);
        bool twice = job == 0;
        for (size_t i = 0; i < op->count; i++)
            twice = twice || op->finishes[i].job == job;
        if (!twice)
            choose_finish(chooser, m, job, &op->finishes[op->count++]);
    }
    for (size_t i = 0; i < op->count; i++)
        for (size_t c = 0; c < op->finishes[i].children_count; c++)
            needs_apart(op, &op->finishes[i].children[c]);
}

static void choose_ids(struct chooser *chooser, const struct model *m, struct op *op, bool running)
{
    size_t wanted = 1 + BELOW(OP_IDS);
    for (size_t tries = 0; tries < wanted * 2 && op->count < wanted; tries++) {
        uint32_t job = running ? job_running(chooser, m) : job_any(chooser, m);
        bool twice = job == 0;
        for (size_t i = 0; i < op->count; i++)
            twice = twice || op->ids[i] == job;
        if (twice)
            continue;
        op->stale[op->count] = CHANCE(1, 6);
        op->ids[op->count++] = job;
    }
}

/* Neighbours in a row, as the window hands them out. */
static void choose_run(struct chooser *chooser, const struct model *m, struct op *op)
{
    uint32_t job = job_any(chooser, m);
    for (; job != 0 && job <= m->jobs_count && op->count < OP_IDS; job++)
        if (!m->jobs[job].gone)
            op->ids[op->count++] = job;
}

static void choose_command(struct chooser *chooser, const struct model *m, struct op *op)
{
    if (CHANCE(9, 10) || op->kind == OP_CANCEL) {
        op->a = job_any(chooser, m);
        if (op->a != 0)
            return;
    }
    op->b = CHANCE(1, 2) ? UINT32_MAX : (uint32_t)BELOW(ACCOUNTS);
    op->c = (uint32_t)BELOW(KINDS);
}

static void choose_cursor(struct chooser *chooser, const struct model *m, struct op *op)
{
    op->a = (uint32_t)BELOW(STREAMS);
    op->number = m->ordinal[op->a] + (CHANCE(1, 8) ? 1 : 0);
    op->more = op->number + BELOW(3);
}

static void choose_record(struct chooser *chooser, const struct model *m, struct op *op)
{
    op->b = (uint32_t)BELOW(2);
    op->flag = CHANCE(1, 3);
    switch (op->kind) {
    case OP_PAUSE_KIND:
        op->a = (uint32_t)BELOW(KINDS);
        break;
    case OP_GRANT:
        op->a = (uint32_t)BELOW(2);
        op->number = BELOW(150);
        break;
    case OP_BAD_STATE:
        op->number = BELOW(5);
        op->c = 1 + (uint32_t)BELOW(4);
        op->a = (uint32_t)BELOW(ACCOUNTS);
        break;
    case OP_INTENT:
    case OP_INTENT_END:
        op->c = (uint32_t)BELOW(12);
        op->a = job_any(chooser, m);
        op->number = 1 + BELOW(3);
        break;
    case OP_SCHEDULE:
    case OP_FIRE:
        op->a = (uint32_t)BELOW(SCHEDULES);
        op->number = 1 + BELOW(4);
        break;
    case OP_ALERT:
        op->a = (uint32_t)BELOW(ACCOUNTS);
        op->number = BELOW(3);
        op->c = (uint32_t)BELOW(2);
        break;
    case OP_BATCH:
        op->a = (uint32_t)BELOW(30);
        choose_ids(chooser, m, op, false);
        break;
    case OP_NOTE:
        op->a = (uint32_t)BELOW(2);
        op->b = (uint32_t)BELOW(100);
        break;
    default: /* of an account */
        op->a = 1 + (uint32_t)BELOW(ACCOUNTS - 1);
        op->b = (uint32_t)BELOW(3);
        break;
    }
}

static op_kind choose_kind(struct chooser *chooser)
{
    static const op_kind often[] = {OP_ENQUEUE, OP_ENQUEUE, OP_CLAIM,  OP_CLAIM,  OP_CLAIM_FREE,
                                    OP_FINISH,  OP_FINISH,  OP_FINISH, OP_BEAT,   OP_RETRY,
                                    OP_CANCEL,  OP_CYCLE,   OP_MOVE,   OP_ADVANCE};
    if (CHANCE(3, 4))
        return often[BELOW(sizeof often / sizeof often[0])];
    return (op_kind)BELOW(OP_KINDS);
}

static bool needs_fleet(op_kind kind)
{
    return kind == OP_CLAIM_FREE || kind == OP_MEMBER_BEAT || kind == OP_TAKE ||
           kind == OP_RELEASE || kind == OP_GRANT;
}

void op_choose(struct chooser *chooser, const struct model *m, struct op *op)
{
    memset(op, 0, sizeof *op);
    op->kind = choose_kind(chooser);
    if (!chooser->fleet && needs_fleet(op->kind))
        op->kind = op->kind == OP_CLAIM_FREE ? OP_CLAIM : OP_RECLAIM;
    op->now = chooser->now;
    op->owner = chooser->owner;
    op->token = chooser->token;
    chooser->token += 2 * FREE_MAX;
    bool full = m->jobs_count + 20 > JOBS_MAX;
    if (full && (op->kind == OP_ENQUEUE || op->kind == OP_FINISH))
        op->kind = OP_CLAIM;
    if (op->kind == OP_CYCLE && m->cycles_count == CYCLES_MAX)
        op->kind = OP_ADVANCE;
    if (op->kind == OP_MEMBER_BEAT && !model_lives(m, op->owner))
        op->kind = OP_RECLAIM;
    /* An engine may keep the newest row, so that its ids never return. */
    if (op->kind == OP_PURGE &&
        (m->jobs_count == 0 || m->jobs[m->jobs_count].state >= TIDE_ROW_DONE))
        op->kind = OP_RECLAIM;
    switch (op->kind) {
    case OP_ENQUEUE:
        op->count = 1 + BELOW(OP_JOBS);
        for (size_t i = 0; i < op->count; i++) {
            choose_job(chooser, m, &op->jobs[i]);
            op->jobs[i].needs_first = op->jobs[i].needs_first && i > 0;
        }
        break;
    case OP_CLAIM:
        if (CHANCE(1, 2))
            choose_run(chooser, m, op);
        else
            choose_ids(chooser, m, op, false);
        break;
    case OP_CLAIM_FREE:
        op->a = (uint32_t)BELOW(1 << KINDS);
        op->b = CHANCE(1, 3) ? 0 : FREE_MAX;
        op->c = CHANCE(1, 3) ? 0 : FREE_MAX;
        break;
    case OP_FINISH:
        choose_finishes(chooser, m, op);
        break;
    case OP_BEAT:
        choose_ids(chooser, m, op, true);
        op->number = BELOW(1000);
        op->b = (uint32_t)BELOW(2);
        op->flag = CHANCE(1, 3);
        break;
    case OP_RECLAIM:
    case OP_MEMBER_BEAT:
    case OP_TAKE:
    case OP_RELEASE:
        break;
    case OP_RETRY:
    case OP_CANCEL:
    case OP_ACCEPT:
        choose_command(chooser, m, op);
        break;
    case OP_PURGE:
        op->number = op->now - BELOW((uint64_t)3 * 24 * 3600000);
        break;
    case OP_CYCLE:
    case OP_MOVE:
    case OP_ADVANCE:
        choose_cursor(chooser, m, op);
        break;
    default:
        choose_record(chooser, m, op);
        break;
    }
}
