/* streams.c - streams of a shared ledger, for display (E9.1).
 *
 * The engine keeps no streams of a shared ledger in memory: other processes finish cycles too,
 * so they would be outdated (fleet.h).  A look reads them while snapshots are taken: those of
 * held accounts and of no account, with their open cycles.  A snapshot shows them as the last
 * look read them, from memory. */
#include "fleet/inside.h"
#include "base/check.h"

enum { WATCHED_MS = 60000 }; /* after the last snapshot */

/* ---- on the writer's thread ------------------------------------------------------- */

static bool add_stream(const struct tide_stream_row *row, void *arg)
{
    struct tide_fleet_view *view = arg;
    tide_engine *engine = view->engine;
    tide_lock_take(engine->world, engine->lock);
    bool ours = row->account == 0 || tide_fleet_ours(engine, row->account);
    tide_lock_drop(engine->world, engine->lock);
    if (!ours)
        return true;
    if (view->count == FLEET_STREAMS_MAX) {
        view->left_out++;
        return true;
    }
    view->open[view->count] = row->ordinal < row->ordinal_next;
    view->rc = tide_stream_new(engine, row, &view->streams[view->count], NULL);
    if (view->rc != TIDE_OK)
        return false;
    view->count++;
    return true;
}

tide_status tide_fleet_view_load(tide_engine *engine, struct tide_fleet_view **view_out,
                                 tide_error *err)
{
    struct tide_fleet_view *view = tide_mem_new(engine->mem, sizeof *view);
    if (view == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to show streams");
    view->engine = engine;
    tide_status rc = tide_ledger_streams(engine->ledger, add_stream, view, err);
    if (rc == TIDE_OK && view->rc != TIDE_OK)
        rc = tide_error_set(err, view->rc, "no memory to show streams");
    for (size_t i = 0; rc == TIDE_OK && i < view->count; i++)
        if (view->open[i])
            rc = tide_stream_cycles_load(engine, view->streams[i], err);
    if (rc != TIDE_OK) {
        tide_fleet_view_free(engine, view);
        return rc;
    }
    *view_out = view;
    return TIDE_OK;
}

void tide_fleet_view_free(tide_engine *engine, struct tide_fleet_view *view)
{
    if (view == NULL)
        return;
    for (size_t i = 0; i < view->count; i++)
        tide_stream_free(engine, view->streams[i]);
    tide_mem_free(engine->mem, view, sizeof *view);
}

/* ---- under the lock ------------------------------------------------------------------ */

bool tide_fleet_watched(const tide_engine *engine, uint64_t now_ms)
{
    return now_ms < engine->fleet->watched_until_ms;
}

/* Makes looks read streams for a minute; true if they did not until now. */
static bool watch(tide_engine *engine, uint64_t now_ms)
{
    struct tide_fleet *fleet = engine->fleet;
    bool news = !tide_fleet_watched(engine, now_ms);
    if (news) {
        tide_fleet_view_free(engine, fleet->view); /* outdated */
        fleet->view = NULL;
        tide_fleet_look_soon(engine);
    }
    fleet->watched_until_ms = now_ms + WATCHED_MS;
    return news;
}

uint64_t tide_fleet_streams_each(tide_engine *engine, uint64_t now_ms,
                                 void (*visit)(const struct tide_stream *stream, void *arg),
                                 void *arg)
{
    (void)watch(engine, now_ms);
    const struct tide_fleet_view *view = engine->fleet->view;
    for (size_t i = 0; view != NULL && i < view->count; i++)
        visit(view->streams[i], arg);
    return view == NULL ? 0 : view->left_out;
}

/* ---- for callers that can wait ------------------------------------------------------- */

void tide_fleet_watch_wait(tide_engine *engine, uint32_t wait_ms)
{
    if (engine->fleet == NULL)
        return;
    tide_lock_take(engine->world, engine->lock);
    uint64_t deadline_us = tide_world_now_us(engine->world) + wait_ms * 1000ull;
    tide_status rc = TIDE_OK;
    if (watch(engine, tide_world_now_ms(engine->world)))
        while (rc == TIDE_OK && engine->phase == TIDE_PHASE_RUN && engine->fleet->view == NULL)
            rc = tide_cond_wait(engine->world, engine->news, engine->lock, deadline_us);
    tide_lock_drop(engine->world, engine->lock);
}
