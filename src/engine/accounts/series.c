/* series.c - what each account did over time (core/series.h), for charts.
 *
 * Counted where it happens, under the lock: the engine has no timer for it, and an account that
 * rests costs nothing. */
#include "engine/engine.h"

void tide_account_series_add(tide_engine *engine, struct tide_account *account, uint64_t now_ms,
                             uint32_t items, uint32_t units)
{
    if (items == 0 && units == 0)
        return;
    if (account->series == NULL)
        account->series = tide_mem_new(engine->mem, sizeof *account->series);
    if (account->series == NULL)
        return;
    account->series->items_total += items;
    if (items > 0)
        tide_series_add(&account->series->items, now_ms, items);
    if (units > 0)
        tide_series_add(&account->series->units, now_ms, units);
}
