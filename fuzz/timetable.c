/* timetable.c - times that users write: TTB1 and TTB3 of core/timetable.h.  The first eight bytes are the
 * time that is asked about, the ninth the zone. */
#include "fuzz.h"
#include "core/timetable.h"

/* Jumps forward and back twice a year, like most zones, by what the input says. */
static int32_t ahead(void *arg, int64_t unix_s)
{
    const int quarters = *(const uint8_t *)arg % 9; /* up to two hours */
    const bool summer =
        unix_s % (365 * 86400) > 100 * 86400 && unix_s % (365 * 86400) < 280 * 86400;
    return 3600 + (summer ? quarters * 900 : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct tide_timetable timetable;
    tide_error err = {TIDE_OK, 0, ""};
    uint64_t after_ms = 0;
    uint8_t quarters = 0;
    if (bytes < sizeof after_ms + 1)
        return 0;
    memcpy(&after_ms, data, sizeof after_ms);
    quarters = data[sizeof after_ms];
    const tide_text text = {(const char *)data + sizeof after_ms + 1, bytes - sizeof after_ms - 1};
    if (tide_timetable_parse(text, &timetable, &err) != TIDE_OK) {
        TIDE_ASSERT(err.status == TIDE_INVALID && err.text[0] != '\0');
        return 0;
    }
    if (timetable.period_ms == 0)
        after_ms %= UINT64_C(4102444800000); /* to the year 2100 */
    const struct tide_zone zone = {ahead, &quarters};
    const uint64_t slot_ms = tide_timetable_next(&timetable, 7, after_ms, &zone);
    TIDE_ASSERT(slot_ms > after_ms || slot_ms == TIDE_TIMETABLE_NEVER);
    /* No slot is between them: from just before it, it is still the next one. */
    if (slot_ms != TIDE_TIMETABLE_NEVER) {
        TIDE_ASSERT(tide_timetable_next(&timetable, 7, slot_ms - 1, &zone) == slot_ms);
        const uint64_t middle_ms = after_ms + (slot_ms - after_ms) / 2;
        TIDE_ASSERT(tide_timetable_next(&timetable, 7, middle_ms, &zone) ==
                    (middle_ms == slot_ms ? middle_ms : slot_ms));
    }
    TIDE_ASSERT(tide_timetable_delay_ms(text, slot_ms, quarters) <= quarters);
    return 0;
}
