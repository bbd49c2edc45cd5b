/* flow.c - streams of ids of one shard in order, joined by skipping ahead. */
#include "mail/search/plan.h"

#include "base/check.h"

#include <stdlib.h>

enum { WALK_BYTES_MAX = 64 << 20 };

struct tide_flow {
    const struct tide_plan *plan;
    tide_text match;             /* of words: the expression for this shard */
    tide_flow *first, *excludes; /* children of an AND or OR */
    tide_flow *next;             /* the next child */
    tide_flow *made_before;
    sqlite3_stmt *stmt;
    sqlite3_stmt *probe; /* the same query for one id; NULL until it is needed */
    int64_t *set;        /* sorted keys, instead of a statement */
    size_t set_count, set_at;
    int64_t low, high;           /* ids */
    int64_t sure_low, sure_high; /* ids whose dates need no check; without a date range: all */
    int64_t key;
    bool running;
};

/* ?1 the value searched for, ?2 and ?3 the first and last id, ?4 the limit of sizes.  Each walks an
 * index in its own order; nothing is sorted. */
static const char *const texts[][2] = {
    [TIDE_PLAN_ALL] = {"SELECT id FROM message WHERE id >= ?2 AND id <= ?3 ORDER BY id",
                       "SELECT id FROM message WHERE id >= ?2 AND id <= ?3 ORDER BY id DESC"},
    [TIDE_PLAN_WORDS] = {"SELECT rowid FROM words WHERE words MATCH ?1 AND rowid >= ?2"
                         " AND rowid <= ?3 ORDER BY rowid",
                         "SELECT rowid FROM words WHERE words MATCH ?1 AND rowid >= ?2"
                         " AND rowid <= ?3 ORDER BY rowid DESC"},
    [TIDE_PLAN_LABEL] = {"SELECT message FROM message_label INDEXED BY message_label_label"
                         " WHERE label = (SELECT id FROM label WHERE label = ?1)"
                         " AND message >= ?2 AND message <= ?3 ORDER BY message",
                         "SELECT message FROM message_label INDEXED BY message_label_label"
                         " WHERE label = (SELECT id FROM label WHERE label = ?1)"
                         " AND message >= ?2 AND message <= ?3 ORDER BY message DESC"},
    [TIDE_PLAN_BYTES] = {"SELECT id FROM message NOT INDEXED WHERE bytes >= ?1 AND bytes < ?4"
                         " AND id >= ?2 AND id <= ?3 ORDER BY id",
                         "SELECT id FROM message NOT INDEXED WHERE bytes >= ?1 AND bytes < ?4"
                         " AND id >= ?2 AND id <= ?3 ORDER BY id DESC"},
    [TIDE_PLAN_ATTACHMENT] = {"SELECT id FROM head INDEXED BY head_files WHERE files > 0"
                              " AND id >= ?2 AND id <= ?3 ORDER BY id",
                              "SELECT id FROM head INDEXED BY head_files WHERE files > 0"
                              " AND id >= ?2 AND id <= ?3 ORDER BY id DESC"},
    [TIDE_PLAN_HEADER] = {"SELECT id FROM message WHERE id >= ?2 AND id <= ?3 ORDER BY id",
                          "SELECT id FROM message WHERE id >= ?2 AND id <= ?3 ORDER BY id DESC"},
    /* A walk of all messages with a look at each: most have few labels. */
    [TIDE_PLAN_USER_LABEL] =
        {"SELECT id FROM message WHERE id >= ?2 AND id <= ?3 AND EXISTS"
         " (SELECT 1 FROM message_label AS has JOIN label ON label.id = has.label"
         " WHERE has.message = message.id AND label.type = 'user') ORDER BY id",
         "SELECT id FROM message WHERE id >= ?2 AND id <= ?3 AND EXISTS"
         " (SELECT 1 FROM message_label AS has JOIN label ON label.id = has.label"
         " WHERE has.message = message.id AND label.type = 'user')"
         " ORDER BY id DESC"},
    [TIDE_PLAN_MESSAGE_ID] = {"SELECT id FROM head INDEXED BY head_message_id WHERE message_id = ?1"
                              " AND id >= ?2 AND id <= ?3 ORDER BY id",
                              "SELECT id FROM head INDEXED BY head_message_id WHERE message_id = ?1"
                              " AND id >= ?2 AND id <= ?3 ORDER BY id DESC"},
};
static const char set_text[] = "SELECT id FROM message INDEXED BY message_bytes WHERE bytes >= ?1"
                               " AND bytes < ?4 AND id >= ?2 AND id <= ?3 LIMIT ?5";
static const char probe_text[] = "SELECT 1 FROM words WHERE words MATCH ?1 AND rowid = ?2";
static const struct {
    const char *name, *text;
} columns[] = {
    {"from", "SELECT \"from\" FROM head WHERE id = ?1"},
    {"to", "SELECT \"to\", cc, bcc FROM head WHERE id = ?1"},
    {"cc", "SELECT cc FROM head WHERE id = ?1"},
    {"bcc", "SELECT bcc FROM head WHERE id = ?1"},
};

/* ---- a shard ---- */

tide_status tide_walk_open(struct tide_walk *walk, struct tide_searching *searching,
                           struct tide_shard *shard)
{
    *walk = (struct tide_walk){.searching = searching, .shard = shard};
    tide_status rc = tide_shards_open(searching->shards, shard, searching->err);
    if (rc != TIDE_OK) {
        walk->shard = NULL;
        return rc;
    }
    shard->pins++;
    tide_arena_init(&walk->arena, searching->mem, WALK_BYTES_MAX);
    /* One transaction: all statements see the same messages, and none has to lock by itself. */
    if (sqlite3_get_autocommit(shard->db.handle)) {
        rc = tide_db_run(&shard->db, tide_db_stmt(&shard->db, TIDE_SHARD_BEGIN), searching->err);
        walk->began = rc == TIDE_OK;
    }
    if (rc == TIDE_OK)
        rc = tide_shard_late(shard, &walk->late, searching->err);
    if (rc != TIDE_OK)
        tide_walk_close(walk);
    return rc;
}

void tide_walk_close(struct tide_walk *walk)
{
    if (walk->shard == NULL)
        return;
    for (tide_flow *flow = walk->flows; flow != NULL; flow = flow->made_before) {
        (void)sqlite3_finalize(flow->stmt);
        (void)sqlite3_finalize(flow->probe);
    }
    for (size_t i = 0; i < sizeof walk->columns / sizeof walk->columns[0]; i++)
        (void)sqlite3_finalize(walk->columns[i]);
    /* It only read: a failure changes nothing, and the next BEGIN reports it. */
    if (walk->began)
        (void)tide_db_run(&walk->shard->db, tide_db_stmt(&walk->shard->db, TIDE_SHARD_COMMIT),
                          NULL);
    tide_arena_done(&walk->arena);
    walk->shard->pins--;
    *walk = (struct tide_walk){0};
}

static tide_status no_memory(struct tide_walk *walk)
{
    return tide_error_set(walk->searching->err, TIDE_NO_MEMORY, "no memory to search in %s",
                          walk->shard->name);
}

static tide_status prepare(struct tide_walk *walk, const char *text, sqlite3_stmt **stmt_out)
{
    const int code = sqlite3_prepare_v2(walk->shard->db.handle, text, -1, stmt_out, NULL);
    return code == SQLITE_OK
               ? TIDE_OK
               : tide_db_failed(&walk->shard->db, code, "prepare a search", walk->searching->err);
}

/* ---- opening ---- */

/* Binds the parameters that stay the same between searches of a flow. */
static void bind(sqlite3_stmt *stmt, const tide_flow *flow)
{
    const struct tide_plan *plan = flow->plan;
    if (plan->kind == TIDE_PLAN_BYTES) {
        (void)sqlite3_bind_int64(stmt, 1, plan->low);
        (void)sqlite3_bind_int64(stmt, 4, plan->high);
    } else if (plan->kind == TIDE_PLAN_WORDS) {
        tide_bind_text(stmt, 1, flow->match);
    } else if (plan->text.bytes > 0) {
        tide_bind_text(stmt, 1, plan->text);
    }
    (void)sqlite3_bind_int64(stmt, 2, flow->low);
    (void)sqlite3_bind_int64(stmt, 3, flow->high);
}

static int key_order(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Loads the messages of a size from its index, if they are few. */
static tide_status set_load(struct tide_walk *walk, tide_flow *flow, bool *few_out)
{
    struct tide_shard *shard = walk->shard;
    sqlite3_stmt *stmt = NULL;
    TIDE_ASSERT(walk->searching->steps.set <= TIDE_SEARCH_SET_MAX);
    int64_t keys[TIDE_SEARCH_SET_MAX];
    const size_t few = walk->searching->steps.set;
    size_t count = 0;
    bool more = true;
    TIDE_TRY(prepare(walk, set_text, &stmt));
    bind(stmt, flow);
    (void)sqlite3_bind_int64(stmt, 5, (int64_t)few + 1);
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && count <= few) {
        rc = tide_db_step(&shard->db, stmt, &more, walk->searching->err);
        if (rc != TIDE_OK || !more)
            break;
        if (count < few)
            keys[count] = tide_key_of(walk->searching->descending, sqlite3_column_int64(stmt, 0));
        count++;
    }
    (void)sqlite3_finalize(stmt);
    *few_out = rc == TIDE_OK && count <= few;
    if (!*few_out)
        return rc;
    qsort(keys, count, sizeof keys[0], key_order);
    flow->set = tide_arena_take(&walk->arena, count * sizeof keys[0] + 1);
    if (flow->set == NULL)
        return no_memory(walk);
    memcpy(flow->set, keys, count * sizeof keys[0]);
    flow->set_count = count;
    return TIDE_OK;
}

static tide_status leaf_open(struct tide_walk *walk, tide_flow *flow)
{
    const tide_plan_kind kind = flow->plan->kind;
    if (flow->low > flow->high || kind == TIDE_PLAN_NONE) {
        flow->key = TIDE_KEY_END;
        return TIDE_OK;
    }
    if (kind == TIDE_PLAN_BYTES) {
        bool few = false;
        const tide_status rc = set_load(walk, flow, &few);
        if (rc != TIDE_OK || few)
            return rc;
    }
    if (kind == TIDE_PLAN_WORDS)
        TIDE_TRY(tide_walk_match(walk, flow->plan->text, &flow->match));
    TIDE_TRY(prepare(walk, texts[kind][walk->searching->descending], &flow->stmt));
    bind(flow->stmt, flow);
    return TIDE_OK;
}

/* The ids that a plan's dates allow, and those among them whose dates are certain to be inside
 * (mail/archive/shard.h SHD4): if no message is late and a range begins and ends on an id, all of
 * them. */
static void bounds_narrow(const struct tide_walk *walk, tide_flow *flow)
{
    const struct tide_shard *shard = walk->shard;
    const struct tide_plan *plan = flow->plan;
    flow->sure_low = INT64_MIN;
    flow->sure_high = INT64_MAX;
    if (plan->low_ms > shard->start_ms) {
        const int64_t from_ms = plan->low_ms < shard->end_ms ? plan->low_ms : shard->end_ms;
        const int64_t first = tide_shard_wanted(shard, from_ms);
        const int64_t inside = tide_shard_wanted(shard, from_ms + TIDE_SHARD_UNIT_MS - 1);
        flow->low = first > flow->low ? first : flow->low;
        flow->sure_low = inside + walk->late;
    }
    if (plan->high_ms < shard->end_ms) {
        const int64_t to_ms = plan->high_ms > shard->start_ms ? plan->high_ms : shard->start_ms;
        const int64_t end = tide_shard_wanted(shard, to_ms + TIDE_SHARD_UNIT_MS - 1);
        const int64_t last = end - 1 + walk->late;
        flow->high = last < flow->high ? last : flow->high;
        flow->sure_high = tide_shard_wanted(shard, to_ms) - 1;
    }
}

static tide_status list_open(struct tide_walk *walk, const struct tide_plan *plans, int64_t low,
                             int64_t high, tide_flow **list_out)
{
    tide_flow **at = list_out;
    for (const struct tide_plan *plan = plans; plan != NULL; plan = plan->next) {
        TIDE_TRY(tide_flow_open(walk, plan, low, high, at));
        at = &(*at)->next;
    }
    return TIDE_OK;
}

tide_status tide_flow_open(struct tide_walk *walk, const struct tide_plan *plan, int64_t low,
                           int64_t high, tide_flow **flow_out)
{
    tide_flow *flow = tide_arena_take(&walk->arena, sizeof *flow);
    if (flow == NULL)
        return no_memory(walk);
    flow->made_before = walk->flows;
    walk->flows = flow;
    flow->plan = plan;
    flow->low = low;
    flow->high = high;
    bounds_narrow(walk, flow);
    flow->key = INT64_MIN; /* before every key */
    *flow_out = flow;
    if (plan->kind != TIDE_PLAN_AND && plan->kind != TIDE_PLAN_OR)
        return leaf_open(walk, flow);
    TIDE_ASSERT(plan->first != NULL); /* SPL2 */
    TIDE_TRY(list_open(walk, plan->first, flow->low, flow->high, &flow->first));
    return list_open(walk, plan->excludes, flow->low, flow->high, &flow->excludes);
}

/* ---- seeking ---- */

/* Searches again from `key` on. */
static void restart(struct tide_walk *walk, tide_flow *flow, int64_t key)
{
    const bool descending = walk->searching->descending;
    (void)sqlite3_reset(flow->stmt);
    flow->running = true;
    const int64_t id = tide_key_of(descending, key);
    if (descending)
        (void)sqlite3_bind_int64(flow->stmt, 3, id < flow->high ? id : flow->high);
    else
        (void)sqlite3_bind_int64(flow->stmt, 2, id > flow->low ? id : flow->low);
}

static tide_status leaf_step(struct tide_walk *walk, tide_flow *flow)
{
    bool row = false;
    const tide_status rc = tide_db_step(&walk->shard->db, flow->stmt, &row, walk->searching->err);
    flow->key = rc == TIDE_OK && row
                    ? tide_key_of(walk->searching->descending, sqlite3_column_int64(flow->stmt, 0))
                    : TIDE_KEY_END;
    return rc;
}

static tide_status leaf_seek(struct tide_walk *walk, tide_flow *flow, int64_t key)
{
    if (flow->set != NULL) {
        while (flow->set_at < flow->set_count && flow->set[flow->set_at] < key)
            flow->set_at++;
        flow->key = flow->set_at < flow->set_count ? flow->set[flow->set_at] : TIDE_KEY_END;
        return TIDE_OK;
    }
    const struct tide_steps *limits = &walk->searching->steps;
    const int steps = flow->plan->slow                      ? limits->slow
                      : flow->plan->kind == TIDE_PLAN_WORDS ? limits->words
                                                            : limits->rows;
    /* Every search comes through here again and again, however it is nested. */
    tide_status rc = tide_searching_wanted(walk->searching);
    if (rc == TIDE_OK && flow->running)
        for (int i = 0; i < steps && rc == TIDE_OK && flow->key < key; i++)
            rc = leaf_step(walk, flow);
    if (rc != TIDE_OK || flow->key >= key)
        return rc;
    restart(walk, flow, key);
    return leaf_step(walk, flow);
}

/* Whether the words, or the address, are in the one column of head that the query names; the index has
 * Cc and Bcc together with To. */
static tide_status column_check(struct tide_walk *walk, const tide_flow *flow, bool *holds_out)
{
    struct tide_shard *shard = walk->shard;
    tide_error *err = walk->searching->err;
    size_t index = 0;
    while (strcmp(columns[index].name, flow->plan->column) != 0)
        index++;
    if (walk->columns[index] == NULL)
        TIDE_TRY(prepare(walk, columns[index].text, &walk->columns[index]));
    tide_auto_stmt *stmt = walk->columns[index];
    bool row = false;
    (void)sqlite3_bind_int64(stmt, 1, tide_key_of(walk->searching->descending, flow->key));
    tide_status rc = tide_db_step(&shard->db, stmt, &row, err);
    *holds_out = false;
    for (int i = 0; rc == TIDE_OK && row && !*holds_out && i < sqlite3_column_count(stmt); i++)
        rc = tide_header_text_holds(walk->searching, flow->plan, tide_column_text(stmt, i),
                                    holds_out);
    return rc;
}

static tide_status words_seek(struct tide_walk *walk, tide_flow *flow, int64_t key)
{
    for (;;) {
        tide_status rc = leaf_seek(walk, flow, key);
        if (rc != TIDE_OK || flow->plan->column == NULL || flow->key == TIDE_KEY_END)
            return rc;
        bool holds = false;
        rc = column_check(walk, flow, &holds);
        if (rc != TIDE_OK || holds)
            return rc;
        key = flow->key + 1;
    }
}

static tide_status header_seek(struct tide_walk *walk, tide_flow *flow, int64_t key)
{
    for (bool holds = false; !holds; key = flow->key + 1) {
        TIDE_TRY(leaf_seek(walk, flow, key));
        if (flow->key == TIDE_KEY_END)
            return TIDE_OK;
        const int64_t id = tide_key_of(walk->searching->descending, flow->key);
        TIDE_TRY(tide_header_holds(walk, flow->plan, id, &holds));
    }
    return TIDE_OK;
}

static tide_status or_seek(struct tide_walk *walk, tide_flow *flow, int64_t key)
{
    int64_t least = TIDE_KEY_END;
    for (tide_flow *child = flow->first; child != NULL; child = child->next) {
        TIDE_TRY(tide_flow_seek(walk, child, key));
        least = child->key < least ? child->key : least;
    }
    flow->key = least;
    return TIDE_OK;
}

static bool is_dated(const tide_flow *flow)
{
    return flow->sure_low != INT64_MIN || flow->sure_high != INT64_MAX;
}

/* Whether the index has these words at one key.  Costs a third of a new search, for a flow that is
 * tested at keys far apart; its next key is then not known. */
static tide_status probe(struct tide_walk *walk, tide_flow *flow, int64_t key, bool *has_out)
{
    tide_error *err = walk->searching->err;
    tide_status rc = TIDE_OK;
    if (flow->probe == NULL) {
        rc = prepare(walk, probe_text, &flow->probe);
        if (rc != TIDE_OK)
            return rc;
        tide_bind_text(flow->probe, 1, flow->match);
    }
    (void)sqlite3_bind_int64(flow->probe, 2, tide_key_of(walk->searching->descending, key));
    rc = tide_db_step(&walk->shard->db, flow->probe, has_out, err);
    tide_db_end(flow->probe);
    return rc;
}

/* Sets *key_out to `key` if the flow has it, else to where it may continue: a later key of its own,
 * or key + 1.  Only for keys of another flow. */
static tide_status meet(struct tide_walk *walk, tide_flow *flow, int64_t key, int64_t *key_out)
{
    tide_status rc = TIDE_OK;
    bool has = false;
    if (flow->plan->kind == TIDE_PLAN_HEADER) { /* the next one may be far */
        rc = tide_header_holds(walk, flow->plan, tide_key_of(walk->searching->descending, key),
                               &has);
        *key_out = has ? key : key + 1;
        return rc;
    }
    if (flow->plan->kind != TIDE_PLAN_WORDS || flow->plan->slow || flow->plan->column != NULL ||
        !flow->running || is_dated(flow)) {
        rc = tide_flow_seek(walk, flow, key);
        *key_out = flow->key;
        return rc;
    }
    for (int i = 0; i < walk->searching->steps.probe && rc == TIDE_OK && flow->key < key; i++)
        rc = leaf_step(walk, flow);
    *key_out = flow->key;
    if (rc != TIDE_OK || flow->key >= key)
        return rc;
    rc = probe(walk, flow, key, &has);
    *key_out = has ? key : key + 1;
    return rc;
}

/* Finds the first key at or after `*key` that all includes have.  The first include skips from key
 * to key of its own; the others are tested at those. */
static tide_status and_agree(struct tide_walk *walk, tide_flow *flow, int64_t *key)
{
    for (tide_flow *child = flow->first; child != NULL;) {
        int64_t at = TIDE_KEY_END;
        tide_status rc = TIDE_OK;
        if (child == flow->first) {
            rc = tide_flow_seek(walk, child, *key);
            at = child->key;
        } else {
            rc = meet(walk, child, *key, &at);
        }
        if (rc != TIDE_OK)
            return rc;
        const bool agreed = at == *key || child == flow->first;
        *key = at;
        if (at == TIDE_KEY_END)
            return TIDE_OK;
        child = agreed ? child->next : flow->first;
    }
    return TIDE_OK;
}

static tide_status and_seek(struct tide_walk *walk, tide_flow *flow, int64_t key)
{
    for (;;) {
        TIDE_TRY(and_agree(walk, flow, &key));
        bool excluded = false;
        tide_status rc = TIDE_OK;
        for (tide_flow *child = flow->excludes; child != NULL && !excluded && key != TIDE_KEY_END;
             child = child->next) {
            int64_t at = TIDE_KEY_END;
            rc = meet(walk, child, key, &at);
            if (rc != TIDE_OK)
                return rc;
            excluded = at == key;
        }
        if (!excluded) {
            flow->key = key;
            return TIDE_OK;
        }
        key++;
    }
}

static tide_status kind_seek(struct tide_walk *walk, tide_flow *flow, int64_t key)
{
    switch (flow->plan->kind) {
    case TIDE_PLAN_AND:
        return and_seek(walk, flow, key);
    case TIDE_PLAN_OR:
        return or_seek(walk, flow, key);
    case TIDE_PLAN_WORDS:
        return words_seek(walk, flow, key);
    case TIDE_PLAN_HEADER:
        return header_seek(walk, flow, key);
    case TIDE_PLAN_ALL:
    case TIDE_PLAN_NONE:
    case TIDE_PLAN_LABEL:
    case TIDE_PLAN_BYTES:
    case TIDE_PLAN_ATTACHMENT:
    case TIDE_PLAN_USER_LABEL:
    case TIDE_PLAN_MESSAGE_ID:
        break;
    }
    return leaf_seek(walk, flow, key);
}

/* Whether the date of the message at the flow's key is inside the plan's range. */
static tide_status date_check(struct tide_walk *walk, const tide_flow *flow, bool *holds_out)
{
    const int64_t id = tide_key_of(walk->searching->descending, flow->key);
    *holds_out = id >= flow->sure_low && id <= flow->sure_high;
    if (*holds_out)
        return TIDE_OK;
    tide_db *db = &walk->shard->db;
    tide_auto_stmt *row = tide_db_stmt(db, TIDE_SHARD_DATE);
    bool there = false;
    (void)sqlite3_bind_int64(row, 1, id);
    const tide_status rc = tide_db_step(db, row, &there, walk->searching->err);
    const int64_t ms = rc == TIDE_OK && there ? sqlite3_column_int64(row, 0) : INT64_MIN;
    *holds_out = there && ms >= flow->plan->low_ms && ms < flow->plan->high_ms;
    return rc;
}

tide_status tide_flow_seek(struct tide_walk *walk, tide_flow *flow, int64_t key)
{
    TIDE_ASSERT(key >= TIDE_KEY_FIRST);
    if (flow->key >= key)
        return TIDE_OK;
    for (;;) {
        tide_status rc = kind_seek(walk, flow, key);
        if (rc != TIDE_OK || flow->key == TIDE_KEY_END || !is_dated(flow))
            return rc;
        bool holds = false;
        rc = date_check(walk, flow, &holds);
        if (rc != TIDE_OK || holds)
            return rc;
        key = flow->key + 1;
    }
}

int64_t tide_flow_key(const tide_flow *flow)
{
    return flow->key;
}
