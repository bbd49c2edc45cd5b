/* bad_items.c - bad items of the ledger: try them again, accept them, ask for them (E6). */
#include "engine/engine.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE = 500 };

/* ---- retry and accept --------------------------------------------------------------------- */

/* Rows are collected before anything is written: a write during the visit could make it see a
 * row twice or not at all. */
struct bad_change {
    tide_engine *engine;
    const struct tide_bad_filter *filter;
    bool marked; /* at start: those that a command marked for a retry */
    tide_bad_state to;
    struct tide_bad_key keys[SLICE];
    size_t count;
    bool later;        /* not the first slice */
    uint64_t left_max; /* how many more may be changed */
    uint64_t matched;  /* while they are counted */
    /* At start: the last row of the slice before; rows keep their state. */
    struct tide_bad_key after;
    char after_item[TIDE_ITEM_BYTES_MAX + 1];
    tide_arena arena;
};

/* Rows come in order of account, kind and item. */
static bool comes_after(const struct tide_bad_row *row, const struct tide_bad_key *key)
{
    if (row->account != key->account)
        return row->account > key->account;
    if (row->kind != key->kind)
        return row->kind > key->kind;
    const size_t bytes = row->item.bytes < key->item.bytes ? row->item.bytes : key->item.bytes;
    const int order = bytes == 0 ? 0 : memcmp(row->item.data, key->item.data, bytes);
    return order != 0 ? order > 0 : row->item.bytes > key->item.bytes;
}

static bool is_meant(const struct tide_bad_filter *filter, const struct tide_bad_row *row)
{
    return (filter->item.bytes == 0 || tide_text_equal(filter->item, row->item)) &&
           (!filter->has_state || filter->state == row->state);
}

static bool bad_match(const struct tide_bad_row *row, void *arg)
{
    struct bad_change *change = arg;
    change->matched += is_meant(change->filter, row);
    return true;
}

/* In the transaction of the first slice, so that what is changed is what was counted. */
static tide_status bad_expect(tide_transaction *transaction, struct bad_change *change,
                              tide_error *err)
{
    const struct tide_bad_filter *filter = change->filter;
    change->matched = 0;
    if (!filter->expects || change->later)
        return TIDE_OK;
    const tide_status rc = tide_ledger_bad_list(transaction->engine->ledger, filter->account,
                                                filter->kind, bad_match, change, err);
    return rc != TIDE_OK || change->matched == filter->expected
               ? rc
               : tide_error_set(err, TIDE_STALE,
                                "%" PRIu64 " item%s now, not %" PRIu64 "; nothing was changed",
                                change->matched, change->matched == 1 ? " matches" : "s match",
                                filter->expected);
}

static bool bad_collect(const struct tide_bad_row *row, void *arg)
{
    struct bad_change *change = arg;
    if (change->marked ? row->state != TIDE_BAD_RETRYING : row->state == change->to)
        return true;
    if (change->marked && !comes_after(row, &change->after))
        return true;
    if (!is_meant(change->filter, row))
        return true;
    struct tide_kind_entry *kind = tide_engine_kind_of(change->engine, row->kind);
    if (change->to == TIDE_BAD_RETRYING && (kind == NULL || !kind->kind.items))
        return true; /* no handler here: it stays as it is */
    char *item = tide_arena_copy(&change->arena, row->item.data, row->item.bytes);
    if (item == NULL)
        return false;
    change->keys[change->count++] =
        (struct tide_bad_key){row->account, row->kind, {item, row->item.bytes}};
    return change->count < SLICE && change->count < change->left_max;
}

static tide_status bad_retry_one(tide_transaction *transaction, const struct tide_bad_key *key,
                                 tide_error *err)
{
    json_t *payload = json_pack("{s:[s%]}", "items", key->item.data, key->item.bytes);
    char *text = payload == NULL ? NULL : json_dumps(payload, JSON_COMPACT);
    json_decref(payload);
    if (text == NULL)
        return tide_error_set(err, TIDE_INVALID, "the item is not text");
    char dedupe[TIDE_DEDUPE_BYTES_MAX + 1];
    int bytes = snprintf(dedupe, sizeof dedupe, "bad:%.*s", (int)key->item.bytes, key->item.data);
    struct tide_spec spec = {.kind = key->kind, .account = key->account, .payload = text};
    if (bytes > 0 && (size_t)bytes < sizeof dedupe)
        spec.dedupe = dedupe;
    tide_status rc = tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
    free(text);
    return rc;
}

static tide_status bad_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct bad_change *change = arg;
    tide_arena_reset(&change->arena);
    change->count = 0;
    TIDE_TRY(bad_expect(transaction, change, err));
    TIDE_TRY(tide_ledger_bad_list(transaction->engine->ledger, change->filter->account,
                                  change->filter->kind, bad_collect, change, err));
    for (size_t i = 0; i < change->count; i++) {
        const struct tide_bad_key *key = &change->keys[i];
        TIDE_TRY(tide_ledger_bad_state(transaction->tx, key->account, key->kind, key->item,
                                       change->to, transaction->now_unix_ms, err));
        if (change->to == TIDE_BAD_RETRYING)
            TIDE_TRY(bad_retry_one(transaction, key, err));
    }
    return TIDE_OK;
}

static void remember_last(struct bad_change *change)
{
    const struct tide_bad_key *last = &change->keys[change->count - 1];
    const int bytes = snprintf(change->after_item, sizeof change->after_item, "%.*s",
                               (int)last->item.bytes, last->item.data);
    change->after = (struct tide_bad_key){
        last->account, last->kind, {change->after_item, bytes < 0 ? 0 : (size_t)bytes}};
}

static tide_status bad_change(tide_engine *engine, const struct tide_bad_filter *filter,
                              bool marked, tide_bad_state to, uint64_t *count_out, tide_error *err)
{
    struct bad_change *change = tide_mem_new(engine->mem, sizeof *change);
    if (change == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to change bad items");
    change->engine = engine;
    change->filter = filter;
    change->marked = marked;
    change->to = to;
    change->left_max = filter->expects && filter->expected > 0 ? filter->expected : UINT64_MAX;
    tide_arena_init(&change->arena, engine->mem, 4 << 20);
    tide_status rc = TIDE_OK;
    *count_out = 0;
    do {
        rc = tide_transact(engine, bad_run, change, err);
        *count_out += rc == TIDE_OK ? change->count : 0;
        if (rc == TIDE_OK && change->count > 0)
            remember_last(change);
        change->later = true;
        change->left_max -= change->count;
    } while (rc == TIDE_OK && change->count == SLICE && change->left_max > 0);
    tide_arena_done(&change->arena);
    tide_mem_free(engine->mem, change, sizeof *change);
    return rc;
}

tide_status tide_bad_retry(tide_engine *engine, const struct tide_bad_filter *filter,
                           uint64_t *count_out, tide_error *err)
{
    return bad_change(engine, filter, false, TIDE_BAD_RETRYING, count_out, err);
}

tide_status tide_bad_accept(tide_engine *engine, const struct tide_bad_filter *filter,
                            uint64_t *count_out, tide_error *err)
{
    return bad_change(engine, filter, false, TIDE_BAD_ACCEPTED, count_out, err);
}

tide_status tide_bad_retry_marked(tide_engine *engine, tide_error *err)
{
    const struct tide_bad_filter any = {.account = UINT32_MAX};
    uint64_t count = 0;
    return bad_change(engine, &any, true, TIDE_BAD_RETRYING, &count, err);
}

/* ---- for programs ----------------------------------------------------------------------- */

struct bad_ask {
    uint32_t account;
    const tide_text *items;
    size_t count;
    bool *bad;
};

static bool ask_row(const struct tide_bad_row *row, void *arg)
{
    const struct bad_ask *ask = arg;
    for (size_t i = 0; row->state != TIDE_BAD_GONE && i < ask->count; i++)
        ask->bad[i] = ask->bad[i] || tide_text_equal(ask->items[i], row->item);
    return true;
}

static tide_status ask_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct bad_ask *ask = arg;
    return tide_ledger_bad_list(transaction->engine->ledger, ask->account, 0, ask_row, ask, err);
}

tide_status tide_items_bad(tide_engine *engine, uint32_t account, const tide_text *items,
                           size_t count, bool *bad_out, tide_error *err)
{
    struct bad_ask ask = {account, items, count, bad_out};
    memset(bad_out, 0, count * sizeof *bad_out);
    return tide_transact(engine, ask_run, &ask, err);
}
