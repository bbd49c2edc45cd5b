/* timetable.h - the times at which a user wants something done: "daily 03:30", "every 15min", or
 * the five fields of cron.
 *
 *     every 15min            from its creation on, each 15 minutes (s, min, h, d)
 *     hourly                 at minute 0
 *     daily 03:30            weekly sun 04:00            monthly 1 05:00
 *     30 3 * * 1-5           minute, hour, day, month, weekday; as in cron with lists, ranges, steps
 *                            and names.  If day and weekday are both given, one of them suffices.
 *
 * Pure: times and the zone are arguments.  Wall time of a zone jumps: a zone is a function that says
 * how far local time is ahead of UTC at an instant.  It changes only at multiples of 15 minutes of UTC.
 *
 * Invariants:
 *   TTB1  tide_timetable_next() returns a slot after `after`, and no slot is between them.
 *   TTB2  a local time that a jump forward skips is a slot at the end of the jump; of a local time that a
 *         jump back repeats only the first is a slot, unless every hour is wanted.
 *   TTB3  it ends for every timetable: one without a slot in the next nine years has none (31 February).
 */
#ifndef TIDE_CORE_TIMETABLE_H
#define TIDE_CORE_TIMETABLE_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { TIDE_TIMETABLE_PERIOD_MS_MIN = 1000 };
#define TIDE_TIMETABLE_NEVER UINT64_MAX

struct tide_timetable {
    uint64_t period_ms;                     /* "every"; 0: the fields below */
    uint64_t minutes;                       /* bit n: minute n */
    uint32_t hours, days, months, weekdays; /* days from bit 1, months from 1, Sunday is 0 */
    bool any_day, any_weekday;              /* that field is "*" */
};

/* How many seconds local time is ahead of UTC at an instant. */
struct tide_zone {
    int32_t (*ahead_s)(void *arg, int64_t unix_s);
    void *arg;
};

/* TIDE_INVALID: err says what is wrong. */
tide_status tide_timetable_parse(tide_text text, struct tide_timetable *timetable_out,
                                 tide_error *err);
/* The first slot after `after_unix_ms`; those of "every" are counted from `anchor_unix_ms`. */
uint64_t tide_timetable_next(const struct tide_timetable *timetable, uint64_t anchor_unix_ms,
                             uint64_t after_unix_ms, const struct tide_zone *zone);
/* How much later than its slot something starts, so that not all machines do it at once: the same on
 * every machine, and another one for each slot.  At most `jitter_ms`. */
uint64_t tide_timetable_delay_ms(tide_text name, uint64_t slot_unix_ms, uint64_t jitter_ms);

#endif
