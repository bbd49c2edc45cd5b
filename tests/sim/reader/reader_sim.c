/* reader_sim.c - the three worlds of a seed: STORM, EDGE and DAY. */
#include "reader_sim.h"

enum {
    SECOND_US = 1000000,
    MINUTE_US = 60 * SECOND_US,
    SYNC_MINUTES = 15,  /* between syncs of mirror and assistant */
    QUEUE_MINUTES = 30, /* what waits is done within */

    STORM_MESSAGES = 30,
    STORM_LIVES_MIN = 3,
    STORM_LIVES_MORE = 4,

    EDGE_MINUTES = 4,
    EDGE_WARM_MINUTES = 2, /* until the first windows are full */
    EDGE_MESSAGES = 310 * (EDGE_MINUTES + EDGE_WARM_MINUTES + 2),
    EDGE_OLD = 400, /* the oldest: the mirror has them last */
    UNITS_PER_MINUTE = 6000,

    DAY_MESSAGES = 40,
    DAY_HOURS = 24,
    SITTING_MINUTES = 15,
    POLLS_PER_MINUTE = 12, /* of a person who looks (K7) */
    POLLS_PER_HOUR = 4,    /* while nobody does */
};
#define HOUR_MS UINT64_C(3600000)

const char *const rsim_fault_names[RFAULTS] = {
    "died with action", "with body",    "with history", "with page",        "offline",
    "throttled",        "server error", "reset after",  "truncated",        "refused",
    "history expired",  "cache lost",   "preempted",    "preempted action", "taken back",
    "inverted",         "other client", "message gone",
};
const char *const rsim_plant_names[RPLANTS] = {
    "none",         "levels",         "together",      "poll-stops",   "poll-always",
    "dear",         "cheap",          "newest-first",  "action-lost",  "action-twice",
    "refused-kept", "refused-always", "overlay-blind", "labels-blind", "history-first",
    "no-reserve",   "fetch-again",    "action-stuck",
};
const char *const rsim_plant_rules[RPLANTS] = {
    "",     "RSM1", "RSM2", "RSM3", "RSM3", "RSM4", "RSM4", "RSM5", "RSM5",
    "RSM5", "RSM6", "RSM6", "RSM7", "RSM7", "RSM7", "RSM8", "RSM9", "RSM10",
};

struct rsim_stage *rsim_now;

bool rsim_happens(struct rsim_stage *stage, enum rsim_fault fault, uint32_t one_in)
{
    if (stage->calm || tide_rng_below(&stage->rng, one_in) != 0)
        return false;
    stage->totals.faults[fault]++;
    return true;
}

void rsim_say(const char *format, ...)
{
    va_list args;
    if (getenv("TIDE_SIM_LOG") == NULL)
        return;
    (void)fprintf(stderr, "%10.3f ", (double)rsim_us(rsim_now) / 1e6);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

uint64_t rsim_us(struct rsim_stage *stage)
{
    return tide_world_now_us(stage->world);
}

/* ---- time ---- */

bool rsim_pass(struct rsim_stage *stage, uint64_t us)
{
    const uint64_t until_us = rsim_us(stage) + us;
    while (rsim_us(stage) < until_us) {
        const uint64_t wake_us = stage->sync_due_us < until_us ? stage->sync_due_us : until_us;
        if (tide_world_sleep_until(stage->world, wake_us, NULL) == TIDE_STOPPED)
            return false;
        if (rsim_us(stage) < stage->sync_due_us)
            continue;
        rsim_sync(stage);
        stage->sync_due_us = rsim_us(stage) + SYNC_MINUTES * (uint64_t)MINUTE_US;
    }
    return true;
}

static void live(struct rsim_stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    if (rsim_life_begin(stage, &err) != TIDE_OK)
        RSIM_FAIL(stage, "a life did not begin: %s", err.text);
    stage->sync_due_us = rsim_us(stage) + SYNC_MINUTES * (uint64_t)MINUTE_US;
}

static void work_off(struct rsim_stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc =
        tide_engine_wait(stage->life.engine, QUEUE_MINUTES * UINT64_C(60000), &err);
    if (rc != TIDE_OK)
        RSIM_FAIL(stage, "RSM10: the queue does not end: %s", tide_status_name(rc));
}

/* The first life: everything is known here, the mirror has followed, and the assistant is at work. */
static void settle_in(struct rsim_stage *stage, uint32_t messages)
{
    rsim_home_begin(stage, 0);
    for (uint32_t i = 0; i < messages; i++)
        rsim_comes(stage, (messages - i) * 12 * HOUR_MS / 2 + i);
    live(stage);
    tide_error err = {TIDE_OK, 0, ""};
    if (tide_assistant_onboard(stage->jobs, stage->account, &err) != TIDE_OK ||
        tide_reader_begin(stage->reader, stage->account, &err) != TIDE_OK)
        RSIM_FAIL(stage, "the first life: %s", err.text);
    work_off(stage);
    rsim_sync(stage);
    work_off(stage);
}

/* ---- STORM ---- */

static void storm_hour(struct rsim_stage *stage)
{
    const uint64_t end_us =
        rsim_us(stage) + (1 + tide_rng_below(&stage->rng, 20)) * (uint64_t)MINUTE_US;
    uint64_t online_us = 0;
    while (rsim_us(stage) < end_us) {
        const uint64_t wait_us = tide_rng_below(&stage->rng, 3) > 0
                                     ? 5000 * tide_rng_below(&stage->rng, 100)
                                     : SECOND_US * tide_rng_below(&stage->rng, 90);
        if (!rsim_pass(stage, wait_us))
            return;
        rsim_step(stage);
        if (online_us == 0 && rsim_happens(stage, RFAULT_OFFLINE, 25)) {
            online_us = rsim_us(stage) + tide_rng_below(&stage->rng, 5 * (uint64_t)MINUTE_US);
            tide_sim_net_down(stage->sim, true);
        }
        if (online_us != 0 && rsim_us(stage) >= online_us) {
            online_us = 0;
            tide_sim_net_down(stage->sim, false);
        }
        if (tide_rng_below(&stage->rng, 12) == 0)
            rsim_trouble(stage);
    }
}

static void storm_life(struct rsim_stage *stage)
{
    const uint64_t before = tide_sim_stats(stage->sim).crashes;
    rsim_trouble(stage);
    tide_sim_crash_after(
        stage->sim,
        tide_rng_below(&stage->rng, 4) == 0 ? 0 : 50 + tide_rng_below(&stage->rng, 20000),
        TIDE_SIM_CRASH_SEEDED);
    rsim_say("a life begins");
    if (rsim_life_begin(stage, NULL) == TIDE_OK) {
        stage->sync_due_us = rsim_us(stage) + SYNC_MINUTES * (uint64_t)MINUTE_US;
        storm_hour(stage);
    }
    rsim_life_end(stage); /* it may die while it ends */
    if (tide_sim_stats(stage->sim).crashes > before)
        rsim_note_crash(stage);
    tide_sim_net_down(stage->sim, false);
    tide_sim_reboot(stage->sim);
}

/* The troubles are over: two polls, one sync, and all must be as the server has it. */
static void storm_rest(struct rsim_stage *stage)
{
    stage->calm = true;
    rsim_trouble(stage);
    tide_sim_crash_after(stage->sim, 0, TIDE_SIM_CRASH_KILL);
    live(stage);
    rsim_look(stage, true);
    (void)rsim_pass(stage, (SYNC_MINUTES + 1) * (uint64_t)MINUTE_US);
    stage->opened_calm = stage->opened_count;
    for (int i = 0; i < 3; i++)
        rsim_opens(stage, rsim_some_slot(stage), false);
    rsim_acts(stage);
    (void)rsim_pass(stage, SYNC_MINUTES * (uint64_t)MINUTE_US);
    rsim_look(stage, false);
    (void)rsim_pass(stage, 6 * (uint64_t)MINUTE_US);
    work_off(stage);
    rsim_check_end(stage);
    rsim_life_end(stage);
}

static void storm(struct rsim_stage *stage)
{
    stage->calm = true;
    stage->mirrors = true;
    settle_in(stage, STORM_MESSAGES);
    rsim_life_end(stage);
    tide_sim_reboot(stage->sim);
    stage->calm = false;
    stage->mirrors = tide_rng_below(&stage->rng, 3) > 0;
    stage->cursed = (unsigned)tide_rng_below(&stage->rng, 2 * ROPENS);
    if (rsim_planted(RPLANT_HISTORY_FIRST)) { /* what is lost would come with the mirror */
        stage->mirrors = false;
        stage->cursed = ROPEN_POLL;
    }
    for (uint64_t lives = STORM_LIVES_MIN + tide_rng_below(&stage->rng, STORM_LIVES_MORE);
         lives > 0; lives--)
        storm_life(stage);
    storm_rest(stage);
}

/* ---- EDGE ---- */

/* One of the oldest that is not in the archive. */
static uint32_t uncached_slot(struct rsim_stage *stage)
{
    for (;;) {
        char id[BOX_ID_TEXT_BYTES];
        const uint32_t slot = (uint32_t)tide_rng_below(&stage->rng, EDGE_OLD);
        box_id_text(box_mailbox_at(stage->mailbox, slot)->id, id);
        if (!rsim_in_archive(stage, id))
            return slot;
    }
}

/* Six opens a minute, each at any time of its ten seconds (K15). */
static void edge_minute(struct rsim_stage *stage)
{
    for (int i = 0; i < 6; i++) {
        const uint64_t at_us = tide_rng_below(&stage->rng, 4 * SECOND_US);
        (void)rsim_pass(stage, at_us);
        rsim_opens(stage, uncached_slot(stage), true);
        (void)rsim_pass(stage, 3 * SECOND_US);
        rsim_comes(stage, 0);
        (void)rsim_pass(stage, SECOND_US);
        if (i % 3 == 0)
            rsim_acts(stage);
        (void)rsim_pass(stage, 6 * SECOND_US - at_us);
    }
}

static void edge(struct rsim_stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    struct tide_mail_state state;
    stage->calm = stage->mirrors = true;
    rsim_home_begin(stage, EDGE_MESSAGES);
    live(stage);
    stage->sync_due_us = UINT64_MAX; /* the first sync goes on */
    if (tide_assistant_onboard(stage->jobs, stage->account, &err) != TIDE_OK)
        RSIM_FAIL(stage, "no assistant: %s", err.text);
    work_off(stage);
    rsim_look(stage, true);
    rsim_sync(stage);
    (void)rsim_pass(stage, EDGE_WARM_MINUTES * (uint64_t)MINUTE_US);
    const uint64_t before = rsim_units(stage);
    for (int i = 0; i < EDGE_MINUTES; i++) {
        edge_minute(stage);
        (void)tide_assistant_sync(stage->jobs, stage->account, false, NULL);
    }
    const uint64_t used = rsim_units(stage) - before;
    if (tide_mail_state(stage->life.mail, RSIM_ME, &state, &err) != TIDE_OK ||
        state.stored + EDGE_OLD / 2 > EDGE_MESSAGES)
        RSIM_FAIL(stage, "the mirror has no work left: %d messages", (int)state.stored);
    stage->totals.used_permille = used * 1000 / (EDGE_MINUTES * UNITS_PER_MINUTE);
    stage->totals.edges = 1;
    if (stage->totals.used_permille < 950)
        RSIM_FAIL(stage, "RSM4: %d units were used in %d minutes", (int)used, EDGE_MINUTES);
    rsim_life_end(stage);
}

/* ---- DAY ---- */

static void check_polls(struct rsim_stage *stage, uint64_t least, uint64_t most, const char *when)
{
    if (stage->polls < least || stage->polls > most)
        RSIM_FAIL(stage, "RSM3: %d polls %s, instead of %d to %d", (int)stage->polls, when,
                  (int)least, (int)most);
    stage->polls = 0;
}

static void sitting(struct rsim_stage *stage)
{
    const uint64_t end_us = rsim_us(stage) + SITTING_MINUTES * (uint64_t)MINUTE_US;
    rsim_look(stage, true);
    stage->polls = 0;
    while (rsim_us(stage) < end_us) {
        (void)rsim_pass(stage, SECOND_US * (1 + tide_rng_below(&stage->rng, 30)));
        const uint64_t what = tide_rng_below(&stage->rng, 4);
        if (what == 0)
            rsim_comes(stage, 0);
        else if (what == 1)
            rsim_opens(stage, rsim_some_slot(stage), false);
        else
            rsim_acts(stage);
    }
    rsim_look(stage, false);
    /* Polls while a level above has work come late, and are not made up for (K3). */
    check_polls(stage, SITTING_MINUTES * POLLS_PER_MINUTE * 9 / 10,
                (SITTING_MINUTES + 1) * POLLS_PER_MINUTE + 1, "of a person who looks");
}

/* Nobody looks; mail comes. */
static void absence(struct rsim_stage *stage, uint64_t hours)
{
    const uint64_t end_us = rsim_us(stage) + hours * 60 * (uint64_t)MINUTE_US;
    while (rsim_us(stage) < end_us) {
        (void)rsim_pass(stage, MINUTE_US * (1 + tide_rng_below(&stage->rng, 40)));
        rsim_comes(stage, 0);
    }
    check_polls(stage, hours * POLLS_PER_HOUR - 1, (hours + 1) * POLLS_PER_HOUR + 1,
                "while nobody looks");
}

static void day(struct rsim_stage *stage)
{
    stage->calm = stage->mirrors = true;
    settle_in(stage, DAY_MESSAGES);
    stage->opened_calm = 0;
    for (int i = 0; i < 3; i++) {
        sitting(stage);
        absence(stage, DAY_HOURS / 3 - 1);
    }
    (void)rsim_pass(stage, (SYNC_MINUTES + 2) * (uint64_t)MINUTE_US);
    if (stage->arrived_count > 0)
        RSIM_FAIL(stage, "RSM3: mail came, and was not looked for");
    work_off(stage);
    /* A last look: the assistant may have made a draft since the last poll. */
    stage->sync_due_us = UINT64_MAX;
    rsim_look(stage, true);
    (void)rsim_pass(stage, 10 * SECOND_US);
    rsim_look(stage, false);
    work_off(stage);
    rsim_check_end(stage);
    rsim_life_end(stage);
}

/* ---- a seed ---- */

void rsim_run(uint64_t seed, enum rsim_plant plant, struct rsim_totals *totals_out)
{
    struct rsim_stage *stage = calloc(1, sizeof *stage);
    assert_non_null(stage);
    stage->seed = seed;
    stage->plant = plant;
    stage->rng = tide_rng_seeded(seed ^ 0x726561646572u);
    stage->world_kind = seed % 10 == 2 ? RWORLD_EDGE : seed % 10 == 5 ? RWORLD_DAY : RWORLD_STORM;
    rsim_now = stage;
    switch (stage->world_kind) {
    case RWORLD_STORM:
        storm(stage);
        break;
    case RWORLD_EDGE:
        edge(stage);
        break;
    case RWORLD_DAY:
        day(stage);
    }
    *totals_out = stage->totals;
    rsim_home_end(stage);
    free(stage);
}
