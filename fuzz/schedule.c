/* schedule.c - periodic entries with any numbers, as rows of a file may have them (E8.1). */
#include "fuzz.h"
#include "core/schedule.h"

static struct tide_schedule_entry entry_read(struct fuzz_input *input)
{
    uint8_t shape = fuzz_u8(input);
    return (struct tide_schedule_entry){.id = fuzz_below(input, 8),
                                        .anchor_unix_ms = fuzz_u64(input),
                                        .period_ms = fuzz_u64(input),
                                        .at_start = shape & 1,
                                        .fired = shape & 2,
                                        .last_unix_ms = fuzz_u64(input)};
}

static void fire(tide_schedules *schedules, uint64_t now_unix_ms)
{
    struct tide_firing firing;
    for (int i = 0; i < 16 && tide_schedules_next(schedules, now_unix_ms, &firing); i++) {
        const struct tide_schedule_entry *entry = tide_schedules_find(schedules, firing.id);
        TIDE_ASSERT(entry != NULL);
        TIDE_ASSERT(firing.slot_unix_ms <= now_unix_ms); /* SCH1 */
        TIDE_ASSERT(entry->fired && entry->last_unix_ms == firing.slot_unix_ms);
        TIDE_ASSERT((firing.slot_unix_ms - entry->anchor_unix_ms) % entry->period_ms == 0);
    }
    TIDE_ASSERT(tide_schedules_wake_at_unix_ms(schedules) > now_unix_ms ||
                tide_schedules_count(schedules) > 16 || now_unix_ms == UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    tide_schedules *schedules = NULL;
    TIDE_ASSERT(tide_schedules_new(tide_mem_heap(), &schedules) == TIDE_OK);
    for (int i = 0; fuzz_more(&input) && i < 200; i++) {
        uint8_t op = fuzz_u8(&input);
        if (op % 4 == 0) {
            struct tide_schedule_entry entry = entry_read(&input);
            (void)tide_schedules_put(schedules, &entry);
            (void)tide_schedule_lag_ms(&entry, fuzz_u64(&input));
        } else if (op % 4 < 3) {
            uint64_t id = fuzz_below(&input, 8);
            tide_schedules_fired(schedules, id, fuzz_u64(&input));
        } else {
            fire(schedules, fuzz_u64(&input));
        }
        tide_schedules_check(schedules);
    }
    tide_schedules_free(schedules);
    return 0;
}
