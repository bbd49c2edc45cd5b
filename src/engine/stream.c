/* stream.c - ordered progress: streams, their cycles, their cursors (E5). */
#include "engine/engine.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct tide_stream *tide_engine_stream_of(tide_engine *engine, uint64_t id)
{
    uint32_t index = 0;
    if (id == 0 || !tide_map_get(&engine->stream_index, id, &index))
        return NULL;
    return engine->streams[index];
}

/* ---- cycles for display ------------------------------------------------------- */

const struct tide_cycle_live *tide_stream_live(const struct tide_stream *stream, uint64_t ordinal)
{
    uint32_t index = 0;
    if (!tide_map_get(&stream->live_index, ordinal + 1, &index))
        return NULL;
    return &stream->live[index];
}

static void live_forget(struct tide_stream *stream, uint64_t ordinal)
{
    uint32_t index = 0;
    if (!tide_map_get(&stream->live_index, ordinal + 1, &index))
        return;
    (void)tide_map_remove(&stream->live_index, ordinal + 1);
    stream->live_count--;
    if (index == stream->live_count)
        return;
    stream->live[index] = stream->live[stream->live_count];
    (void)tide_map_put(&stream->live_index, stream->live[index].ordinal + 1, index);
}

void tide_stream_cycle_is(tide_engine *engine, struct tide_stream *stream,
                          const struct tide_cycle_live *live)
{
    if (live->outstanding == 0 && live->failed == 0) {
        tide_frontier_finish(stream->frontier, live->ordinal);
        live_forget(stream, live->ordinal);
        return;
    }
    uint32_t index = 0;
    if (!tide_map_get(&stream->live_index, live->ordinal + 1, &index)) {
        if (!TIDE_GROW_IN(engine->mem, stream->live, stream->live_capacity, stream->live_count + 1,
                          TIDE_CYCLES_OPEN_MAX))
            return; /* then a snapshot does not show the cycle */
        if (!tide_map_put(&stream->live_index, live->ordinal + 1, (uint32_t)stream->live_count))
            return;
        index = (uint32_t)stream->live_count++;
        stream->live[index] = *live;
        return;
    }
    struct tide_cycle_live *known = &stream->live[index];
    known->total = live->total;
    known->outstanding = live->outstanding;
    known->failed = live->failed;
    known->bad = live->bad;
    known->beat_ms = live->beat_ms;
}

/* ---- streams -------------------------------------------------------------------- */

struct cycles_load {
    tide_engine *engine;
    struct tide_stream *stream;
};

static bool load_cycle(const struct tide_cycle_row *row, void *arg)
{
    struct cycles_load *load = arg;
    if (tide_frontier_open(load->stream->frontier, row->ordinal) != TIDE_OK)
        return false;
    struct tide_cycle_live live = {.ordinal = row->ordinal,
                                   .total = row->total,
                                   .outstanding = row->outstanding,
                                   .failed = row->failed,
                                   .bad = row->bad,
                                   .beat_ms = tide_world_now_ms(load->engine->world)};
    (void)snprintf(live.start, sizeof live.start, "%.*s", (int)row->start.bytes,
                   row->start.bytes > 0 ? row->start.data : "");
    (void)snprintf(live.end, sizeof live.end, "%.*s", (int)row->end.bytes,
                   row->end.bytes > 0 ? row->end.data : "");
    tide_stream_cycle_is(load->engine, load->stream, &live);
    return true;
}

void tide_stream_free(tide_engine *engine, struct tide_stream *stream)
{
    tide_frontier_free(stream->frontier);
    tide_map_done(&stream->live_index);
    tide_mem_free(engine->mem, stream->live, stream->live_capacity * sizeof *stream->live);
    tide_mem_free(engine->mem, stream, sizeof *stream);
}

tide_status tide_stream_new(tide_engine *engine, const struct tide_stream_row *row,
                            struct tide_stream **stream_out, tide_error *err)
{
    struct tide_stream *stream = tide_mem_new(engine->mem, sizeof *stream);
    if (stream == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a stream");
    stream->id = row->id;
    tide_map_init(&stream->live_index, engine->mem);
    (void)snprintf(stream->name, sizeof stream->name, "%.*s", (int)row->name.bytes,
                   row->name.bytes > 0 ? row->name.data : "");
    (void)snprintf(stream->cursor, sizeof stream->cursor, "%.*s", (int)row->cursor.bytes,
                   row->cursor.bytes > 0 ? row->cursor.data : "");
    tide_status rc = tide_frontier_new(row->ordinal, engine->mem, &stream->frontier);
    if (rc != TIDE_OK) {
        tide_stream_free(engine, stream);
        return tide_error_set(err, rc, "no memory for a stream");
    }
    *stream_out = stream;
    return TIDE_OK;
}

tide_status tide_stream_cycles_load(tide_engine *engine, struct tide_stream *stream,
                                    tide_error *err)
{
    return tide_ledger_cycles(engine->ledger, stream->id, load_cycle,
                              &(struct cycles_load){engine, stream}, err);
}

tide_status tide_engine_stream_load(tide_engine *engine, const struct tide_stream_row *row,
                                    tide_error *err)
{
    if (tide_engine_stream_of(engine, row->id) != NULL)
        return TIDE_OK;
    struct tide_stream *stream = NULL;
    TIDE_TRY(tide_stream_new(engine, row, &stream, err));
    tide_status rc = tide_stream_cycles_load(engine, stream, err);
    if (rc == TIDE_OK &&
        (!TIDE_GROW_IN(engine->mem, engine->streams, engine->streams_capacity,
                       engine->streams_count + 1, TIDE_STREAMS_MAX) ||
         !tide_map_put(&engine->stream_index, stream->id, (uint32_t)engine->streams_count)))
        rc = tide_error_set(err, TIDE_FULL, "more than %d streams", TIDE_STREAMS_MAX);
    if (rc != TIDE_OK) {
        tide_stream_free(engine, stream);
        return rc;
    }
    engine->streams[engine->streams_count++] = stream;
    return TIDE_OK;
}

struct stream_find {
    tide_engine *engine;
    uint64_t id;
    struct tide_stream *fresh;
    tide_status rc;
    tide_error *err;
};

static bool find_stream(const struct tide_stream_row *row, void *arg)
{
    struct stream_find *find = arg;
    if (row->id != find->id)
        return true;
    find->rc = tide_stream_new(find->engine, row, &find->fresh, find->err);
    return false;
}

tide_status tide_stream_reload(tide_engine *engine, uint64_t id, tide_error *err)
{
    struct stream_find find = {.engine = engine, .id = id, .rc = TIDE_OK, .err = err};
    engine->writer_busy = true;
    tide_lock_drop(engine->world, engine->lock);
    tide_status rc = tide_ledger_streams(engine->ledger, find_stream, &find, err);
    if (rc == TIDE_OK)
        rc = find.rc;
    if (rc == TIDE_OK && find.fresh == NULL)
        rc = tide_error_set(err, TIDE_CORRUPT, "stream %" PRIu64 " is missing", id);
    if (rc == TIDE_OK)
        rc = tide_stream_cycles_load(engine, find.fresh, err);
    tide_lock_take(engine->world, engine->lock);
    engine->writer_busy = false;
    uint32_t index = 0;
    struct tide_stream *old = find.fresh;
    if (rc == TIDE_OK && tide_map_get(&engine->stream_index, id, &index)) {
        old = engine->streams[index];
        engine->streams[index] = find.fresh;
    }
    if (old != NULL)
        tide_stream_free(engine, old);
    return rc;
}

struct stream_ask {
    uint32_t account;
    const char *name;
    const char *floor;
    uint64_t id;
    tide_status loaded;
};

static tide_status stream_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct stream_ask *ask = arg;
    struct tide_stream_row row;
    TIDE_TRY(tide_ledger_stream(transaction->tx, ask->account, ask->name, tide_text_of(ask->floor),
                                &row, err));
    ask->id = row.id;
    /* It may be loaded now, before the commit: a new stream has no cycles, and after a failed
     * commit no caller has its id. */
    tide_engine *engine = transaction->engine;
    if (engine->fleet != NULL)
        return TIDE_OK; /* the ledger's counts move its cursor (fleet/fleet.h) */
    tide_lock_take(engine->world, engine->lock);
    tide_status rc = tide_engine_stream_load(engine, &row, err);
    tide_lock_drop(engine->world, engine->lock);
    return rc;
}

tide_status tide_stream_open(tide_engine *engine, uint32_t account, const char *name,
                             const char *floor, uint64_t *stream_out, tide_error *err)
{
    if (name == NULL || name[0] == '\0' || strlen(name) > TIDE_NAME_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "a stream's name has 1 to %d bytes",
                              TIDE_NAME_BYTES_MAX);
    struct stream_ask ask = {.account = account, .name = name, .floor = floor};
    struct tide_write write = {.run = stream_run, .arg = &ask};
    TIDE_TRY(tide_write_run(engine, &write, err));
    *stream_out = ask.id;
    return TIDE_OK;
}

tide_status tide_transaction_cycle(tide_transaction *transaction, uint64_t stream,
                                   const char *start, const char *end, uint64_t *cycle_out,
                                   tide_error *err)
{
    tide_engine *engine = transaction->engine;
    /* tide_stream_state() would cut a longer one: another cursor. */
    const size_t bytes_max = sizeof((struct tide_stream_state *)0)->cursor - 1;
    if (tide_text_of(start).bytes > bytes_max || tide_text_of(end).bytes > bytes_max)
        return tide_error_set(err, TIDE_INVALID, "start and end of a cycle have at most %zu bytes",
                              bytes_max);
    tide_lock_take(engine->world, engine->lock);
    struct tide_stream *known = tide_engine_stream_of(engine, stream);
    tide_status rc = TIDE_OK;
    if (engine->fleet != NULL)
        known = NULL; /* the ledger checks it */
    else if (known == NULL)
        rc = tide_error_set(err, TIDE_INVALID, "unknown stream %" PRIu64, stream);
    else if (tide_frontier_totals(known->frontier).opened + transaction->new_rows.cycles_count >=
             TIDE_CYCLES_OPEN_MAX / 2)
        rc = tide_error_set(err, TIDE_FULL, "stream %" PRIu64 " has %d unfinished cycles", stream,
                            TIDE_CYCLES_OPEN_MAX / 2);
    tide_lock_drop(engine->world, engine->lock);
    if (rc != TIDE_OK)
        return rc;

    struct tide_new_rows *new_rows = &transaction->new_rows;
    if (!TIDE_GROW_IN(engine->mem, new_rows->cycles, new_rows->cycles_capacity,
                      new_rows->cycles_count + 1, TIDE_CYCLES_OPEN_MAX))
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a cycle");
    struct tide_cycle_row row;
    TIDE_TRY(tide_ledger_cycle(transaction->tx, stream, tide_text_of(start), tide_text_of(end),
                               transaction->now_unix_ms, &row, err));
    struct tide_new_cycle *cycle = &new_rows->cycles[new_rows->cycles_count++];
    *cycle = (struct tide_new_cycle){.stream = stream, .ordinal = row.ordinal, .cycle = row.id};
    (void)snprintf(cycle->start, sizeof cycle->start, "%s", start == NULL ? "" : start);
    (void)snprintf(cycle->end, sizeof cycle->end, "%s", end == NULL ? "" : end);
    if (cycle_out != NULL)
        *cycle_out = row.id;
    return TIDE_OK;
}

struct cycle_ask {
    uint64_t stream;
    const char *start, *end;
    const struct tide_spec *specs;
    size_t count;
    uint64_t cycle;
};

static tide_status cycle_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct cycle_ask *ask = arg;
    tide_engine *engine = transaction->engine;
    tide_status rc =
        tide_transaction_cycle(transaction, ask->stream, ask->start, ask->end, &ask->cycle, err);
    if (rc != TIDE_OK || ask->count == 0)
        return rc;
    struct tide_spec *specs = tide_mem_array(engine->mem, ask->count, sizeof *specs);
    if (specs == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu jobs", ask->count);
    memcpy(specs, ask->specs, ask->count * sizeof *specs);
    for (size_t i = 0; i < ask->count; i++)
        specs[i].cycle = ask->cycle;
    rc = tide_transaction_enqueue(transaction, specs, ask->count, NULL, err);
    tide_mem_free(engine->mem, specs, ask->count * sizeof *specs);
    return rc;
}

tide_status tide_cycle_open(tide_engine *engine, uint64_t stream, const char *start,
                            const char *end, const struct tide_spec *specs, size_t count,
                            uint64_t *cycle_out, tide_error *err)
{
    struct cycle_ask ask = {stream, start, end, specs, count, 0};
    struct tide_write write = {.run = cycle_run, .arg = &ask};
    TIDE_TRY(tide_write_run(engine, &write, err));
    if (cycle_out != NULL)
        *cycle_out = ask.cycle;
    return TIDE_OK;
}

struct state_ask {
    uint64_t stream;
    struct tide_stream_state *state;
    bool found;
};

static bool state_visit(const struct tide_stream_row *row, void *arg)
{
    struct state_ask *ask = arg;
    if (row->id != ask->stream)
        return true;
    ask->found = true;
    ask->state->cycles_finished = row->ordinal;
    ask->state->cycles_opened = row->ordinal_next;
    (void)snprintf(ask->state->cursor, sizeof ask->state->cursor, "%.*s", (int)row->cursor.bytes,
                   row->cursor.bytes > 0 ? row->cursor.data : "");
    return false;
}

static tide_status state_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_ledger_streams(transaction->engine->ledger, state_visit, arg, err);
}

tide_status tide_stream_state(tide_engine *engine, uint64_t stream,
                              struct tide_stream_state *state_out, tide_error *err)
{
    struct tide_stream_state state = {0};
    struct state_ask ask = {stream, &state, false};
    struct tide_write write = {.run = state_run, .arg = &ask};
    TIDE_TRY(tide_write_run(engine, &write, err));
    if (!ask.found)
        return tide_error_set(err, TIDE_NOT_FOUND, "no stream %" PRIu64, stream);
    *state_out = state;
    return TIDE_OK;
}
