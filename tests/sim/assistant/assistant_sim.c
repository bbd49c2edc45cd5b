#include "assistant_sim.h"

enum {
    LIVES_MIN = 3,
    LIVES_MORE = 6,
    MINUTE_US = 60000000,
    SYNC_MINUTES = 15, /* J4 */
    FULL_MINUTES = 60,
    QUEUE_MINUTES = 20, /* what waits is done within */
    CALM_HOURS = 3,
};

#define YAML                                                                                       \
    "models: {fast: small, better: large}\n"                                                       \
    "triage: {blacklist: ['*@ads.example']}\n"                                                     \
    "profiles:\n  desk:\n    system_prompt: You help.\n    max_iterations: 4\n    may_send: "      \
    "true\n"                                                                                       \
    "    tools: [read_thread, create_draft, send_reply, add_label, escalate]\n"                    \
    "rules:\n  - {name: desk, when: {sender_domain: desk.example}, route: agent, profile: desk}\n"

const char *const asim_fault_names[AFAULTS] = {
    "push lost",   "push twice",    "history expired", "died with draft", "with labels",
    "with trash",  "with reply",    "with question",   "while asking",    "with answer",
    "in sync",     "jobs failed",   "model lies",      "model fails",     "model slow",
    "over budget", "act in a call", "act in thought",  "taken back",      "fiddled",
    "thread gone", "old mail",      "throttled",       "server error",    "reset after",
    "truncated",
};
const char *const asim_plant_names[APLANTS] = {
    "none",        "draft-not-looked", "draft-kept",     "label-kept",     "history-first",
    "gap-blind",   "inbox-blind",      "mark-forgotten", "mark-greedy",    "answer-twice",
    "answer-lost", "other-thread",     "no-record",      "draft-not-gone", "stuck-left",
    "reply-twice", "together",         "done-halfway",
};
const char *const asim_plant_rules[APLANTS] = {
    "",     "ASM2", "ASM2", "ASM1", "ASM4",  "ASM6", "ASM3",  "ASM5",  "ASM6",
    "ASM7", "ASM7", "ASM8", "ASM9", "ASM10", "ASM9", "ASM11", "ASM12", "ASM6",
};

struct asim_stage *asim_now;

bool asim_happens(struct asim_stage *stage, enum asim_fault fault, uint32_t one_in)
{
    if (stage->calm || tide_rng_below(&stage->rng, one_in) != 0)
        return false;
    stage->totals.faults[fault]++;
    return true;
}

struct asim_thread *asim_thread(struct asim_stage *stage, const char *id)
{
    for (unsigned i = 0; i < stage->threads_count; i++)
        if (strcmp(stage->threads[i].id, id) == 0)
            return &stage->threads[i];
    return NULL;
}

void asim_say(const char *format, ...)
{
    va_list args;
    if (getenv("TIDE_SIM_LOG") == NULL)
        return;
    (void)fprintf(stderr, "%9.3f ",
                  (double)(tide_sim_net_unix_ms(asim_now->f->sim) % 86400000) / 1e3);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

uint64_t asim_now_us(struct asim_stage *stage)
{
    return tide_world_now_us(tide_sim_world(stage->f->sim));
}

/* ---- the clock of a life ---- */

static uint64_t next_after(uint64_t now_us, uint64_t minutes)
{
    const uint64_t period_us = minutes * MINUTE_US;
    return (now_us / period_us + 1) * period_us;
}

/* J4.  What was due while no process lived is not made up for. */
static void ticks_begin(struct asim_stage *stage)
{
    stage->sync_due_us = next_after(asim_now_us(stage), SYNC_MINUTES);
    stage->full_due_us = next_after(asim_now_us(stage), FULL_MINUTES);
}

static void tick(struct asim_stage *stage)
{
    const uint64_t now_us = asim_now_us(stage);
    struct fixture *f = stage->f;
    if (now_us >= stage->full_due_us) {
        asim_say("full sync due");
        (void)tide_assistant_sync(f->jobs, f->account, true, NULL);
        stage->full_due_us = next_after(now_us, FULL_MINUTES);
    }
    if (now_us >= stage->sync_due_us) {
        (void)tide_assistant_sync(f->jobs, f->account, false, NULL);
        stage->sync_due_us = next_after(now_us, SYNC_MINUTES);
    }
}

/* Sleeps until then, with a sync when one is due.  false: the process died. */
static bool pass_until(struct asim_stage *stage, uint64_t until_us)
{
    while (asim_now_us(stage) < until_us) {
        uint64_t wake_us = stage->sync_due_us < until_us ? stage->sync_due_us : until_us;
        if (stage->full_due_us < wake_us)
            wake_us = stage->full_due_us;
        if (tide_world_sleep_until(tide_sim_world(stage->f->sim), wake_us, NULL) == TIDE_STOPPED)
            return false;
        tick(stage);
    }
    return true;
}

/* ---- lives ---- */

static void push(struct asim_stage *stage)
{
    struct fixture *f = stage->f;
    if (asim_happens(stage, AFAULT_PUSH_LOST, 2))
        return;
    (void)tide_assistant_sync(f->jobs, f->account, false, NULL);
    if (asim_happens(stage, AFAULT_PUSH_TWICE, 6))
        (void)tide_assistant_sync(f->jobs, f->account, false, NULL);
}

static void reclassify(struct asim_stage *stage)
{
    if (stage->threads_count == 0)
        return;
    struct asim_thread *thread = &stage->threads[tide_rng_below(&stage->rng, stage->threads_count)];
    thread->forced++;
    (void)tide_assistant_reclassify(stage->f->jobs, stage->f->account, thread->id, NULL);
}

/* A day that is over budget does not end earlier: a question waits for the end it was told. */
static void over_budget(struct asim_stage *stage)
{
    const uint64_t until_us =
        asim_now_us(stage) + (1 + tide_rng_below(&stage->rng, 180)) * (uint64_t)MINUTE_US;
    if (until_us > stage->budget_until_us)
        stage->budget_until_us = until_us;
}

/* Until the hour is over, or the process died. */
static void hour(struct asim_stage *stage)
{
    const uint64_t end_us =
        asim_now_us(stage) + (2 + tide_rng_below(&stage->rng, 70)) * (uint64_t)MINUTE_US;
    while (asim_now_us(stage) < end_us) {
        const uint64_t wait_us = tide_rng_below(&stage->rng, 3) == 0
                                     ? 20000 * tide_rng_below(&stage->rng, 50)
                                     : 1000000 * tide_rng_below(&stage->rng, 1500);
        if (!pass_until(stage, asim_now_us(stage) + wait_us))
            return;
        asim_act(stage);
        push(stage);
        if (tide_rng_below(&stage->rng, 15) == 0)
            reclassify(stage);
        if (tide_rng_below(&stage->rng, 40) == 0)
            over_budget(stage);
    }
}

static void note_crash(struct asim_stage *stage)
{
    static const enum asim_fault faults[AOPENS] = {
        [AOPEN_DRAFT] = AFAULT_DIED_DRAFT,       [AOPEN_LABELS] = AFAULT_DIED_LABELS,
        [AOPEN_TRASH] = AFAULT_DIED_TRASH,       [AOPEN_REPLY] = AFAULT_DIED_REPLY,
        [AOPEN_QUESTION] = AFAULT_DIED_QUESTION, [AOPEN_ASKING] = AFAULT_DIED_ASKING,
        [AOPEN_ANSWERED] = AFAULT_DIED_ANSWERED, [AOPEN_SYNC] = AFAULT_DIED_SYNC,
    };
    asim_say("crash");
    stage->totals.crashes++;
    for (unsigned i = 0; i < AOPENS; i++)
        stage->totals.faults[faults[i]] += stage->open[i] > 0;
    for (unsigned i = 0; i < stage->threads_count; i++) {
        stage->threads[i].orphans += stage->threads[i].unrecorded;
        stage->threads[i].unrecorded = false;
    }
}

static void life(struct asim_stage *stage)
{
    struct fixture *f = stage->f;
    const uint64_t before = tide_sim_stats(f->sim).crashes;
    stage->totals.lives++;
    memset(stage->open, 0, sizeof stage->open);
    for (unsigned i = 0; i < stage->threads_count; i++)
        stage->threads[i].handlers = 0;
    for (uint64_t acts = tide_rng_below(&stage->rng, 4); acts > 0; acts--)
        asim_act(stage);
    asim_trouble(stage);
    asim_say("a life begins");
    f->may_die = true;
    tide_sim_crash_after(
        f->sim, tide_rng_below(&stage->rng, 4) == 0 ? 0 : 50 + tide_rng_below(&stage->rng, 9000),
        TIDE_SIM_CRASH_SEEDED);
    if (life_begin(f) == TIDE_OK) {
        stage->running = true;
        ticks_begin(stage);
        hour(stage);
    }
    if (tide_sim_stats(f->sim).crashes > before)
        note_crash(stage);
    stage->running = false;
    life_end(f);
    tide_sim_reboot(f->sim);
    f->may_die = false;
}

/* ---- the end ---- */

static void work_off(struct asim_stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc =
        tide_engine_wait(stage->f->engine, QUEUE_MINUTES * UINT64_C(60000), &err);
    asim_say_jobs(stage);
    if (rc != TIDE_OK)
        tide_sim_fail(stage->f->sim, "ASM9: the queue does not end: %s", tide_status_name(rc));
}

static void rest(struct asim_stage *stage)
{
    struct fixture *f = stage->f;
    stage->calm = true;
    asim_trouble(stage);
    for (unsigned i = 0; i < stage->threads_count; i++)
        stage->threads[i].handlers = 0;
    tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
    OK(life_begin(f));
    asim_note_failed(stage);
    stage->running = true;
    ticks_begin(stage);
    if (stage->budget_until_us > asim_now_us(stage)) /* the time of the queue begins with the day */
        (void)pass_until(stage, stage->budget_until_us);
    (void)pass_until(stage, asim_now_us(stage) + FULL_MINUTES * (uint64_t)MINUTE_US + 1);
    work_off(stage);
    asim_check_intake(stage);
    (void)pass_until(stage, asim_now_us(stage) + CALM_HOURS * 60 * (uint64_t)MINUTE_US);
    work_off(stage);
    asim_check_intake(stage);
    asim_check_end(stage);
}

static void begin_first(struct asim_stage *stage)
{
    struct fixture *f = stage->f;
    const struct box_label clients = {.name = "Clients"};
    uint32_t number = 0;
    f->model = asim_model;
    OK(box_mailbox_label_create(f->mailbox, &clients, &number));
    OK(life_begin(f));
    OK(tide_assistant_onboard(f->jobs, f->account, err));
    (void)settle(f);
    life_end(f);
    tide_sim_reboot(f->sim);
}

void asim_run(uint64_t seed, enum asim_plant plant, struct asim_totals *totals_out)
{
    const struct tide_sim_options options = {
        .net = {.latency_us_max = 20000, .provide = asim_provide}};
    struct asim_stage *stage = calloc(1, sizeof *stage);
    assert_non_null(stage);
    *stage = (struct asim_stage){.seed = seed, .plant = plant, .rng = tide_rng_seeded(seed)};
    stage->calm = true;
    asim_now = stage;
    stage->f = begin_in(seed, &options, YAML);
    begin_first(stage);
    stage->calm = false;
    stage->cursed = (unsigned)tide_rng_below(&stage->rng, 2 * AOPENS);
    for (uint64_t lives = LIVES_MIN + tide_rng_below(&stage->rng, LIVES_MORE); lives > 0; lives--)
        life(stage);
    rest(stage);
    *totals_out = stage->totals;
    finish(stage->f);
    free(stage);
}
