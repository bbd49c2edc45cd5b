/* referee.h - a provider that counts on its own clock, and a client under it.
 *
 * Used by the governor's test and benchmark.  Time is in microseconds.  The
 * referee counts each call at a random instant between its sending and its
 * answer, on a clock that runs a little slow and shares nothing with ours, and
 * checks every sliding window at every count.  The client always has work,
 * wakes up a little late, saves with a delay, and can be killed: then the calls
 * in flight are counted all the same, and the next life starts from the last
 * snapshot that was on disk, with a clock that starts elsewhere.  It may also
 * stay down for a while, and find the wall clock set to another time.
 */
#ifndef TIDE_TESTS_UNIT_REFEREE_H
#define TIDE_TESTS_UNIT_REFEREE_H

#include "base/buf.h"
#include "base/check.h"
#include "core/governor/governor.h"

#include <stdlib.h>
#include <string.h>

enum {
    REFEREE_CALLS_MAX = 64,    /* in flight, orphans of dead processes included */
    REFEREE_COUNTS_MAX = 8192, /* in one window */
};

#define REFEREE_WALL_MS 1790000000000u

struct referee_options {
    uint64_t seed;
    uint64_t duration_ms;
    uint64_t limit_units; /* per minute */
    uint32_t call_units;
    unsigned level;
    uint32_t kill_every_ms; /* 0: never */
    bool wall_jumps;        /* at each kill; some kills are reboots, some are not */
    uint64_t storm_from_ms; /* every call is refused ... */
    uint64_t storm_to_ms;
    uint32_t storm_names_ms;  /* ... naming at most this time; 0: none */
    uint32_t clicks_every_ms; /* a call at level 1 so often; 0: never */
    bool names_room;          /* a refusal names the whole seconds until there is room */
    bool by_jobs;             /* no more calls at once than jobs may run, all of them small */
};

struct referee_report {
    uint64_t units_counted;
    uint64_t calls;
    uint64_t refused; /* outside the storm */
    uint64_t crossed; /* windows that held more than the limit */
    uint64_t lives;
    uint64_t in_flight_peak;
    uint64_t six_seconds_peak;  /* most units sent in six seconds of the clock */
    uint64_t recovered_ms;      /* after the storm, until the pace was at 90 % */
    uint64_t units_after_storm; /* counted in its second minute */
    uint64_t storm_calls;
    uint64_t clicks;
    uint64_t click_wait_ms_max;
    uint64_t early; /* sent before the time that an answered refusal had named */
    double share;
};

struct referee_call {
    bool used;
    bool orphan;
    bool counted;
    bool refused;
    uint64_t sent_us;
    uint64_t count_us;
    uint64_t answer_us;
    uint32_t units;
    uint32_t retry_after_ms;
};

struct referee {
    struct referee_options options;
    struct referee_report report;
    tide_rng rng;
    uint64_t now_us;

    /* The provider: a queue of what it counted, on its own clock. */
    struct {
        uint64_t at_us;
        uint32_t units;
    } counts[REFEREE_COUNTS_MAX];
    uint32_t counts_head;
    uint32_t counts_size;
    uint64_t counts_sum;

    /* The client. */
    struct tide_governor_profile profile;
    tide_governor *governor;
    uint64_t clock_base_us;
    uint64_t wall_ms; /* at the start */
    struct referee_call calls[REFEREE_CALLS_MAX];
    uint64_t try_us;
    uint64_t kill_us;
    uint64_t click_us; /* when the person clicked; UINT64_MAX: not waiting */
    uint64_t next_click_us;
    bool saving;
    uint64_t saved_us; /* when the save under way is on disk */
    uint64_t saved_at_ms;
    tide_buf saving_text;
    tide_buf disk_text;
    uint64_t six_seconds_from_us;
    uint64_t six_seconds_units;
    uint64_t wait_until_us; /* as refusals named it */
};

static inline uint64_t referee_ms(const struct referee *self)
{
    return (self->now_us - self->clock_base_us) / 1000 + 7;
}

static inline uint64_t referee_unix_ms(const struct referee *self)
{
    return self->wall_ms + self->now_us / 1000;
}

static inline uint64_t referee_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Our clock's millisecond `ms` as a time of the simulation; timers ring late. */
static inline uint64_t referee_timer_us(struct referee *self, uint64_t ms)
{
    if (ms == UINT64_MAX)
        return UINT64_MAX;
    const uint64_t us = ms > 7 ? self->clock_base_us + (ms - 7) * 1000 : 0;
    return (us > self->now_us ? us : self->now_us) + 1 + tide_rng_below(&self->rng, 2000);
}

/* The provider's clock: another epoch, and slow by 100 ppm, so that its minute is
 * longer than ours. */
static inline uint64_t referee_server_us(const struct referee *self)
{
    return 123456789 + self->now_us - self->now_us / 10000;
}

static inline bool referee_in_storm(const struct referee *self)
{
    return self->now_us >= self->options.storm_from_ms * 1000 &&
           self->now_us < self->options.storm_to_ms * 1000;
}

static inline void referee_count(struct referee *self, struct referee_call *call)
{
    const uint64_t at_us = referee_server_us(self);
    while (self->counts_size > 0 && self->counts[self->counts_head].at_us + 60000000 <= at_us) {
        self->counts_sum -= self->counts[self->counts_head].units;
        self->counts_head = (self->counts_head + 1) % REFEREE_COUNTS_MAX;
        self->counts_size--;
    }
    TIDE_ASSERT(self->counts_size < REFEREE_COUNTS_MAX);
    const uint32_t tail = (self->counts_head + self->counts_size++) % REFEREE_COUNTS_MAX;
    self->counts[tail].at_us = at_us;
    self->counts[tail].units = call->units;
    self->counts_sum += call->units;
    self->report.units_counted += call->units;
    self->report.calls++;
    call->counted = true;

    const uint64_t after_storm_us = self->now_us - self->options.storm_to_ms * 1000;
    if (self->options.storm_to_ms > 0 && self->now_us >= self->options.storm_to_ms * 1000 &&
        after_storm_us >= 60000000 && after_storm_us < 120000000)
        self->report.units_after_storm += call->units;
    if (self->counts_sum > self->options.limit_units) {
        self->report.crossed++;
        self->report.refused++;
        call->refused = true;
        const uint64_t room_us = self->counts[self->counts_head].at_us + 60000000 - at_us;
        if (self->options.names_room)
            call->retry_after_ms = (uint32_t)((room_us / 1000000 + 1) * 1000);
    }
    if (referee_in_storm(self)) {
        const uint64_t left_ms = self->options.storm_to_ms - self->now_us / 1000;
        self->report.storm_calls++;
        call->refused = true;
        call->retry_after_ms = (uint32_t)referee_min(left_ms, self->options.storm_names_ms);
    }
}

static inline void referee_answer(struct referee *self, struct referee_call *call)
{
    TIDE_ASSERT(call->counted);
    call->used = false;
    if (call->orphan)
        return;
    const struct tide_answer answer = {
        .units = call->units,
        .latency_ms = (uint32_t)((self->now_us - call->sent_us) / 1000),
        .status = call->refused ? TIDE_THROTTLED : TIDE_OK,
        .http = call->refused ? 429 : 200,
        .retry_after_ms = call->retry_after_ms,
    };
    tide_governor_answered(self->governor, referee_ms(self), &answer, &self->rng);
    const uint64_t until_us = self->now_us + call->retry_after_ms * 1000ull;
    if (call->refused && until_us > self->wait_until_us)
        self->wait_until_us = until_us;
    self->try_us = self->now_us; /* news: ask again */
}

static inline void referee_note_sent(struct referee *self, uint32_t units)
{
    if (self->now_us >= self->six_seconds_from_us + 6000000) {
        self->six_seconds_from_us = self->now_us;
        self->six_seconds_units = 0;
    }
    self->six_seconds_units += units;
    if (self->six_seconds_units > self->report.six_seconds_peak)
        self->report.six_seconds_peak = self->six_seconds_units;
    uint64_t in_flight = 0;
    for (int i = 0; i < REFEREE_CALLS_MAX; i++)
        in_flight += self->calls[i].used && !self->calls[i].orphan;
    if (in_flight > self->report.in_flight_peak)
        self->report.in_flight_peak = in_flight;
}

/* 100 to 200 ms, and one call in a hundred stalls for one to five seconds. */
static inline void referee_send(struct referee *self, uint32_t units)
{
    uint64_t latency_us = 100000 + tide_rng_below(&self->rng, 100000);
    if (tide_rng_chance(&self->rng, 1, 100))
        latency_us = 1000000 + tide_rng_below(&self->rng, 4000000);
    int i = 0;
    while (self->calls[i].used)
        TIDE_ASSERT(++i < REFEREE_CALLS_MAX);
    self->calls[i] = (struct referee_call){
        .used = true,
        .sent_us = self->now_us,
        .count_us = self->now_us + tide_rng_below(&self->rng, latency_us + 1),
        .answer_us = self->now_us + latency_us,
        .units = units,
    };
    self->report.early += self->now_us + 1000 < self->wait_until_us; /* our clock is in ms */
    referee_note_sent(self, units);
}

static inline bool referee_may(struct referee *self)
{
    uint64_t in_flight = 0;
    if (!self->options.by_jobs)
        return true;
    for (int i = 0; i < REFEREE_CALLS_MAX; i++)
        in_flight += self->calls[i].used && !self->calls[i].orphan;
    return in_flight < tide_governor_jobs_max(self->governor, referee_ms(self));
}

static inline void referee_try(struct referee *self)
{
    uint64_t again_ms = UINT64_MAX;
    if (self->click_us != UINT64_MAX &&
        tide_governor_charge(self->governor, referee_ms(self), 1, self->options.call_units,
                             &again_ms) == TIDE_OK) {
        const uint64_t wait_ms = (self->now_us - self->click_us) / 1000;
        if (wait_ms > self->report.click_wait_ms_max)
            self->report.click_wait_ms_max = wait_ms;
        self->report.clicks++;
        self->click_us = UINT64_MAX;
        referee_send(self, self->options.call_units);
    }
    uint64_t later_ms = UINT64_MAX;
    while (referee_may(self) &&
           tide_governor_charge(self->governor, referee_ms(self), self->options.level,
                                self->options.call_units, &later_ms) == TIDE_OK)
        referee_send(self, self->options.call_units);
    if (self->options.by_jobs) /* an open breaker lets jobs run by time alone */
        later_ms =
            referee_min(later_ms, tide_governor_wake_at_ms(self->governor, referee_ms(self)));
    self->try_us = referee_timer_us(
        self, self->click_us != UINT64_MAX ? referee_min(again_ms, later_ms) : later_ms);
}

static inline void referee_save(struct referee *self)
{
    struct tide_governor_saved saved;
    self->saved_at_ms = referee_ms(self);
    tide_governor_save(self->governor, self->saved_at_ms, referee_unix_ms(self), &saved);
    tide_buf_clear(&self->saving_text);
    TIDE_ASSERT(tide_governor_saved_print(&saved, &self->saving_text) == TIDE_OK);
    self->saving = true;
    self->saved_us = self->now_us + 2000 + tide_rng_below(&self->rng, 30000);
}

static inline void referee_save_done(struct referee *self)
{
    self->saving = false;
    tide_buf_clear(&self->disk_text);
    TIDE_ASSERT(tide_buf_add(&self->disk_text, self->saving_text.data, self->saving_text.bytes) ==
                TIDE_OK);
    tide_governor_saved(self->governor, self->saved_at_ms);
    self->try_us = self->now_us;
}

static inline void referee_start(struct referee *self)
{
    self->report.lives++;
    TIDE_ASSERT(tide_governor_new(&self->profile, referee_ms(self), tide_mem_heap(),
                                  &self->governor) == TIDE_OK);
    if (self->options.by_jobs)
        tide_governor_demand(self->governor, &(struct tide_demand){.jobs = 10000, .small = 10000});
    if (self->disk_text.bytes > 0) {
        struct tide_governor_saved saved;
        TIDE_ASSERT(tide_governor_saved_parse(tide_buf_text(&self->disk_text), &saved) == TIDE_OK);
        TIDE_ASSERT(tide_governor_restore(self->governor, &saved, referee_ms(self),
                                          referee_unix_ms(self)) == TIDE_OK);
    }
    self->try_us = self->now_us;
    self->kill_us = UINT64_MAX;
    if (self->options.kill_every_ms > 0)
        self->kill_us = self->now_us + self->options.kill_every_ms * 500ull +
                        tide_rng_below(&self->rng, self->options.kill_every_ms * 1000ull);
}

/* The client is down until `up_us`; the provider keeps counting. */
static inline void referee_wait_down(struct referee *self, uint64_t up_us)
{
    for (;;) {
        struct referee_call *next = NULL;
        for (int i = 0; i < REFEREE_CALLS_MAX; i++) {
            struct referee_call *call = &self->calls[i];
            if (call->used && !call->counted && call->count_us <= up_us &&
                (next == NULL || call->count_us < next->count_us))
                next = call;
        }
        if (next == NULL)
            break;
        if (next->count_us > self->now_us)
            self->now_us = next->count_us;
        referee_count(self, next);
    }
    self->now_us = up_us;
}

/* The wall clock is an hour off at most.  A machine that rebooted did so while it was down. */
static inline void referee_jump(struct referee *self)
{
    const uint64_t down_us =
        tide_rng_chance(&self->rng, 1, 2) ? tide_rng_below(&self->rng, 90000000) : 0;
    referee_wait_down(self, self->now_us + down_us);
    self->wall_ms = REFEREE_WALL_MS - 3600000 + tide_rng_below(&self->rng, 7200000);
    if (tide_rng_chance(&self->rng, 1, 2))
        self->clock_base_us = self->now_us - tide_rng_below(&self->rng, down_us + 1);
}

/* kill -9: a save under way reaches the disk or does not. */
static inline void referee_kill(struct referee *self)
{
    if (self->saving && tide_rng_chance(&self->rng, 1, 2)) {
        tide_buf_clear(&self->disk_text);
        TIDE_ASSERT(tide_buf_add(&self->disk_text, self->saving_text.data,
                                 self->saving_text.bytes) == TIDE_OK);
    }
    self->saving = false;
    tide_governor_free(self->governor);
    for (int i = 0; i < REFEREE_CALLS_MAX; i++)
        self->calls[i].orphan = true;
    if (self->options.wall_jumps)
        referee_jump(self);
    else
        self->clock_base_us = self->now_us;
    referee_start(self);
}

static inline uint64_t referee_next_us(const struct referee *self)
{
    uint64_t at_us = referee_min(self->options.duration_ms * 1000, self->try_us);
    at_us = referee_min(at_us, self->kill_us);
    if (self->options.clicks_every_ms > 0 && self->click_us == UINT64_MAX)
        at_us = referee_min(at_us, self->next_click_us);
    if (self->saving)
        at_us = referee_min(at_us, self->saved_us);
    for (int i = 0; i < REFEREE_CALLS_MAX; i++)
        if (self->calls[i].used)
            at_us = referee_min(at_us, self->calls[i].counted ? self->calls[i].answer_us
                                                              : self->calls[i].count_us);
    return at_us > self->now_us ? at_us : self->now_us;
}

static inline void referee_step(struct referee *self)
{
    for (int i = 0; i < REFEREE_CALLS_MAX; i++) {
        struct referee_call *call = &self->calls[i];
        if (call->used && !call->counted && call->count_us <= self->now_us)
            referee_count(self, call);
        if (call->used && call->counted && call->answer_us <= self->now_us)
            referee_answer(self, call);
    }
    if (self->saving && self->saved_us <= self->now_us)
        referee_save_done(self);
    if (self->kill_us <= self->now_us)
        referee_kill(self);
    if (self->options.clicks_every_ms > 0 && self->click_us == UINT64_MAX &&
        self->next_click_us <= self->now_us) {
        self->click_us = self->now_us;
        self->next_click_us = self->now_us + self->options.clicks_every_ms * 1000ull;
        self->try_us = self->now_us;
    }
    if (!self->saving && tide_governor_save_due(self->governor, referee_ms(self)))
        referee_save(self);
    if (self->try_us <= self->now_us)
        referee_try(self);
    if (self->options.storm_to_ms > 0 && self->report.recovered_ms == 0 &&
        self->now_us >= self->options.storm_to_ms * 1000) {
        struct tide_governor_view view;
        tide_governor_view(self->governor, referee_ms(self), &view);
        if (view.state == TIDE_GOVERNOR_RUNNING && view.rate >= 0.9 * view.rate_max)
            self->report.recovered_ms = self->now_us / 1000 - self->options.storm_to_ms + 1;
    }
}

/* Runs a whole scenario under the given profile. */
static inline struct referee_report referee_run(const struct tide_governor_profile *profile,
                                                const struct referee_options *options)
{
    struct referee *self = calloc(1, sizeof *self);
    TIDE_ASSERT(self != NULL);
    self->options = *options;
    self->profile = *profile;
    self->rng = tide_rng_seeded(options->seed);
    self->click_us = UINT64_MAX;
    self->next_click_us = 90000000;
    tide_buf_init(&self->saving_text, tide_mem_heap(), 1 << 16);
    tide_buf_init(&self->disk_text, tide_mem_heap(), 1 << 16);
    self->now_us = tide_rng_below(&self->rng, 1000);
    self->clock_base_us = self->now_us;
    self->wall_ms = REFEREE_WALL_MS;
    referee_start(self);
    for (uint64_t step = 0; self->now_us < options->duration_ms * 1000; step++) {
        self->now_us = referee_next_us(self);
        referee_step(self);
        if (step % 32 == 0) /* it walks the whole window */
            TIDE_ASSERT(tide_governor_check(self->governor, referee_ms(self)));
    }
    tide_governor_free(self->governor);
    tide_buf_done(&self->saving_text);
    tide_buf_done(&self->disk_text);
    struct referee_report report = self->report;
    report.share = (double)report.units_counted /
                   ((double)options->limit_units * (double)options->duration_ms / 60000);
    free(self);
    return report;
}

#endif
