/* schedule.h - decides when periodic work is due (E8.1).
 *
 * An entry fires at the slots anchor + n * period.  Slots that were missed collapse into one
 * firing, that of the latest.  A firing carries its slot's time; the store keeps (schedule,
 * slot time) unique, so that of two machines with the same entry only one enqueues, and the
 * other gets TIDE_EXISTS and continues.  Nothing here is durable and no clock is read: the
 * store keeps the slot that fired last, and provides it at the next start.
 *
 * Times are wall time (_unix_ms), because the grid must be the same for every
 * process and after every restart.  Wall time may jump; hence SCH2.
 *
 * Invariants (tide_schedules_check() tests SCH3 and SCH4):
 *   SCH1  a firing's slot lies on the grid, not after now, and no later slot does.
 *   SCH2  the slots of an entry only increase: a clock that jumps back makes it wait, and never
 *         fires a slot twice.  An entry that was created while the clock was ahead, and has not
 *         fired, waits one period at most: its grid has earlier slots, too.
 *   SCH3  at most TIDE_SCHEDULES_MAX entries, each id once, all with a period.
 *   SCH4  the entry that is due first is at the head, ties ordered by id.
 */
#ifndef TIDE_CORE_SCHEDULE_H
#define TIDE_CORE_SCHEDULE_H

#include "base/mem.h"
#include "base/status.h"

struct tide_schedule_entry {
    uint64_t id;             /* not 0 */
    uint64_t anchor_unix_ms; /* when the entry was created, or earlier on its grid; durable */
    uint64_t period_ms;      /* not 0 */
    bool at_start;           /* the anchor itself is the first slot; else one period later */
    bool fired;              /* whether it has fired at all */
    uint64_t last_unix_ms;   /* the time of the slot that fired last; durable */
};

struct tide_firing {
    uint64_t id;
    uint64_t slot;         /* n */
    uint64_t slot_unix_ms; /* anchor + n * period: the key that dedupes */
    uint64_t missed;       /* earlier slots that this one includes */
};

/* --- one entry ----------------------------------------------------------- */

/* Whether the entry is due, and with which slot.  Changes nothing. */
bool tide_schedule_due(const struct tide_schedule_entry *entry, uint64_t now_unix_ms,
                       struct tide_firing *firing_out);
/* The earliest slot that has not fired; UINT64_MAX: none that fits 64 bits. */
uint64_t tide_schedule_due_at_unix_ms(const struct tide_schedule_entry *entry);
/* How long a clock that jumped back delays the entry beyond its period; the caller logs a
 * warning.  Normally 0. */
uint64_t tide_schedule_lag_ms(const struct tide_schedule_entry *entry, uint64_t now_unix_ms);

/* --- all entries of a process -------------------------------------------- */

typedef struct tide_schedules tide_schedules;

tide_status tide_schedules_new(tide_mem *mem, tide_schedules **schedules_out);
void tide_schedules_free(tide_schedules *schedules); /* NULL is fine. */

/* Adds an entry, or replaces the one with its id (a setting changed).  Replacing
 * never forgets a later slot that is known to have fired (SCH2).  TIDE_INVALID: no
 * id or no period.  TIDE_FULL, TIDE_NO_MEMORY: nothing changed. */
tide_status tide_schedules_put(tide_schedules *schedules, const struct tide_schedule_entry *entry);

/* This slot was fired by another process, or by this one before a crash. */
void tide_schedules_fired(tide_schedules *schedules, uint64_t id, uint64_t slot_unix_ms);

/* Takes out the next firing; false: nothing is due.  The slot counts as fired from now on; if
 * enqueueing fails that is logged and the next slot follows. */
bool tide_schedules_next(tide_schedules *schedules, uint64_t now_unix_ms,
                         struct tide_firing *firing_out);
uint64_t tide_schedules_wake_at_unix_ms(const tide_schedules *schedules); /* UINT64_MAX: never */

/* Borrowed until the next change; NULL: no such entry. */
const struct tide_schedule_entry *tide_schedules_find(const tide_schedules *schedules, uint64_t id);
size_t tide_schedules_count(const tide_schedules *schedules);

void tide_schedules_check(const tide_schedules *schedules);

#endif
