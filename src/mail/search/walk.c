/* walk.c - runs one plan over all shards as if they were one. */
#include "mail/search/plan.h"

#include "base/check.h"

int tide_place_order(bool descending, const struct tide_place *a, const struct tide_place *b)
{
    const uint32_t year_a = a->shard / TIDE_SHARD_PARTS_MAX;
    const uint32_t year_b = b->shard / TIDE_SHARD_PARTS_MAX;
    int order = (year_a > year_b) - (year_a < year_b);
    if (order == 0)
        order = (a->id > b->id) - (a->id < b->id);
    if (order == 0)
        order = (a->shard > b->shard) - (a->shard < b->shard);
    return descending ? -order : order;
}

/* ---- one year ---- */

struct part {
    struct tide_walk walk;
    tide_flow *flow;
};

/* The shards of one year, [first, first + count) of the list. */
struct year {
    struct tide_searching *searching;
    struct part *parts;
    size_t first, count;
};

/* The key after which a part continues: a place in another part of the year divides it too. */
static int64_t key_first(const struct year *year, const struct tide_shard *shard,
                         const struct tide_start *start)
{
    const bool descending = year->searching->descending;
    if (!start->given || (uint32_t)shard->year != start->place.shard / TIDE_SHARD_PARTS_MAX)
        return TIDE_KEY_FIRST;
    const int64_t key = tide_key_of(descending, start->place.id);
    const struct tide_place same = {shard->key, start->place.id};
    const int order = tide_place_order(descending, &same, &start->place);
    return order > 0 || (order == 0 && start->inclusive) ? key : key + 1;
}

static tide_status part_open(struct year *year, size_t index, const struct tide_plan *plan,
                             const struct tide_start *start)
{
    struct tide_searching *searching = year->searching;
    struct tide_shard *shard = searching->shards->list[year->first + index];
    struct part *part = &year->parts[index];
    tide_status rc = tide_walk_open(&part->walk, searching, shard);
    if (rc == TIDE_NOT_FOUND) /* its writer is still creating it (mail/archive/shard.h SHD3) */
        return TIDE_OK;
    TIDE_TRY(rc);
    TIDE_TRY(tide_flow_open(&part->walk, plan, 0, INT64_MAX - 1, &part->flow));
    return tide_flow_seek(&part->walk, part->flow, key_first(year, shard, start));
}

/* A part that turns out to be damaged returns no more matches; the others do (SHD5). */
static tide_status part_failed(struct part *part, tide_status rc)
{
    struct tide_searching *searching = part->walk.searching;
    if (rc != TIDE_CORRUPT || part->walk.shard == NULL)
        return rc; /* any other failure ends the search */
    rc = tide_shards_pass(searching->shards, part->walk.shard, rc, searching->err);
    if (rc == TIDE_OK)
        part->flow = NULL;
    return rc;
}

/* The part with the next message; NULL: none is left. */
static struct part *part_next(struct year *year)
{
    const bool descending = year->searching->descending;
    struct part *best = NULL;
    for (size_t i = 0; i < year->count; i++) {
        struct part *part = &year->parts[descending ? year->count - 1 - i : i];
        if (part->flow != NULL && tide_flow_key(part->flow) != TIDE_KEY_END &&
            (best == NULL || tide_flow_key(part->flow) < tide_flow_key(best->flow)))
            best = part;
    }
    return best;
}

static tide_status year_walk(struct year *year, const struct tide_plan *plan,
                             const struct tide_start *start, tide_place_visit *visit, void *arg,
                             bool *ended)
{
    struct tide_searching *searching = year->searching;
    tide_status rc = TIDE_OK;
    year->parts = tide_mem_array(searching->mem, year->count, sizeof *year->parts);
    if (year->parts == NULL)
        return tide_error_set(searching->err, TIDE_NO_MEMORY, "no memory to search in %zu shards",
                              year->count);
    for (size_t i = 0; i < year->count && rc == TIDE_OK; i++)
        rc = part_failed(&year->parts[i], part_open(year, i, plan, start));
    while (rc == TIDE_OK && !*ended) {
        struct part *part = part_next(year);
        if (part == NULL)
            break;
        const int64_t key = tide_flow_key(part->flow);
        const struct tide_place place = {part->walk.shard->key,
                                         tide_key_of(searching->descending, key)};
        *ended = !visit(arg, &place);
        if (!*ended)
            rc = part_failed(part, tide_flow_seek(&part->walk, part->flow, key + 1));
    }
    for (size_t i = 0; i < year->count; i++)
        tide_walk_close(&year->parts[i].walk);
    tide_mem_free(searching->mem, year->parts, year->count * sizeof *year->parts);
    return rc;
}

/* ---- all years ---- */

/* Whether no message of that year can match. */
static bool year_skipped(const struct tide_searching *searching, const struct tide_shard *shard,
                         const struct tide_plan *plan, const struct tide_start *start)
{
    if (plan->kind == TIDE_PLAN_NONE || plan->high_ms <= shard->start_ms ||
        plan->low_ms >= shard->end_ms)
        return true;
    if (!start->given)
        return false;
    const int32_t year = (int32_t)(start->place.shard / TIDE_SHARD_PARTS_MAX);
    return searching->descending ? shard->year > year : shard->year < year;
}

tide_status tide_search_walk(struct tide_searching *searching, const struct tide_plan *plan,
                             const struct tide_start *start, tide_place_visit *visit, void *arg)
{
    tide_shards *shards = searching->shards;
    tide_status rc = TIDE_OK;
    bool ended = false;
    for (size_t done = 0; done < shards->count && rc == TIDE_OK && !ended;) {
        struct year year = {.searching = searching};
        const size_t at = searching->descending ? shards->count - 1 - done : done;
        const int32_t number = shards->list[at]->year;
        while (done + year.count < shards->count &&
               shards->list[searching->descending ? at - year.count : at + year.count]->year ==
                   number)
            year.count++;
        year.first = searching->descending ? at + 1 - year.count : at;
        if (!year_skipped(searching, shards->list[at], plan, start))
            rc = year_walk(&year, plan, start, visit, arg, &ended);
        done += year.count;
    }
    return rc;
}

/* ---- a search ---- */

enum { PLAN_BYTES_MAX = 16 << 20 };

tide_status tide_searching_init(struct tide_searching *searching, tide_shards *shards,
                                tide_mem *mem, tide_error *err)
{
    *searching = (struct tide_searching){
        .steps =
            {.words = 150, .slow = 100000, .probe = 40, .rows = 12, .set = TIDE_SEARCH_SET_MAX},
        .shards = shards,
        .mem = mem,
        .descending = true,
        .err = err,
    };
    tide_arena_init(&searching->arena, mem, PLAN_BYTES_MAX);
    const tide_status rc = tide_words_init(&searching->words, mem, err);
    if (rc != TIDE_OK)
        tide_searching_done(searching);
    return rc;
}

void tide_searching_done(struct tide_searching *searching)
{
    tide_stems_done(&searching->stems);
    tide_words_done(&searching->words);
    tide_arena_done(&searching->arena);
}

tide_status tide_searching_wanted(const struct tide_searching *searching)
{
    return searching->cancel == NULL || tide_canceled(searching->cancel) == TIDE_CANCEL_NONE
               ? TIDE_OK
               : tide_error_set(searching->err, TIDE_CANCELED, "the search was canceled");
}
