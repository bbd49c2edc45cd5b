#include "system/ruler.h"

#include <string.h>

static int badness(char state)
{
    static const char order[] = {TIDE_RULER_COMPLETE, TIDE_RULER_BEYOND, TIDE_RULER_BAD,
                                 TIDE_RULER_GAP, TIDE_RULER_FAILED};
    const char *found = memchr(order, state, sizeof order);
    return found == NULL ? 0 : (int)(found - order);
}

void tide_ruler_begin(struct tide_ruler *ruler, uint64_t from_ms, uint64_t to_ms)
{
    *ruler = (struct tide_ruler){.from_ms = from_ms, .to_ms = to_ms};
    if (from_ms < to_ms)
        memset(ruler->cells, TIDE_RULER_COMPLETE, TIDE_RULER_CELLS);
}

/* The cell that a time is in; times outside are in the first or the last one. */
static size_t cell_of(const struct tide_ruler *ruler, uint64_t ms)
{
    if (ms <= ruler->from_ms)
        return 0;
    const double part =
        (double)(ms - ruler->from_ms) / (double)(ruler->to_ms - ruler->from_ms) * TIDE_RULER_CELLS;
    return part >= TIDE_RULER_CELLS ? TIDE_RULER_CELLS - 1 : (size_t)part;
}

void tide_ruler_mark(struct tide_ruler *ruler, uint64_t from_ms, uint64_t to_ms, char state)
{
    if (ruler->cells[0] == '\0' || to_ms < ruler->from_ms || from_ms > ruler->to_ms)
        return;
    const size_t last = cell_of(ruler, to_ms > from_ms ? to_ms - 1 : from_ms);
    for (size_t cell = cell_of(ruler, from_ms); cell <= last; cell++)
        if (badness(state) > badness(ruler->cells[cell]))
            ruler->cells[cell] = state;
}
