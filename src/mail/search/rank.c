/* rank.c - ranks matches, best first.
 *
 * BM25 over a limited number of the newest candidates.  A hit in the subject counts more than one
 *      in the text.  How rare a word is comes from a sample, the newest messages from the first
 *      candidate backwards: it costs the same for any size of archive, is the same for all shards
 *      (FTS5's own bm25() knows only its own table, and treats a word as common that is in the only
 *      message of a shard), and does not change while mail arrives, so that pages do not overlap
 *      (SRC2). */
#include "mail/search/plan.h"

#include "base/check.h"

#include <math.h>
#include <stdlib.h>

enum {
    SAMPLE = 5000,    /* messages in which words are counted */
    PHRASES_MAX = 16, /* phrases that count */
    COLUMNS = 5,
};

static const double weights[COLUMNS] = {1, 5, 3, 2, 3}; /* text, subject, from, to, files */
static const double k1 = 1.2, b = 0.75;

struct candidate {
    struct tide_place place;
    double hits[PHRASES_MAX]; /* weighted */
    double words;             /* its length */
    double rank;
};

struct ranking {
    struct tide_searching *searching;
    struct candidate *list;
    size_t count, capacity;
    size_t phrases;
    double rareness[PHRASES_MAX];
    double words_mean;
    tide_status rc;
};

/* ---- candidates ---- */

static bool candidate_add(void *arg, const struct tide_place *place)
{
    struct ranking *ranking = arg;
    if (ranking->count == TIDE_SEARCH_RANKED_MAX)
        return false;
    if (!TIDE_GROW_IN(ranking->searching->mem, ranking->list, ranking->capacity, ranking->count + 1,
                      2 * TIDE_SEARCH_RANKED_MAX)) {
        ranking->rc = tide_error_set(ranking->searching->err, TIDE_NO_MEMORY,
                                     "no memory to rank %zu messages", ranking->count + 1);
        return false;
    }
    ranking->list[ranking->count++].place = *place;
    return true;
}

/* ---- how rare a word is ---- */

struct sample {
    bool descending;
    size_t count, count_max;
    bool bounded;
    struct tide_place last; /* the end of it */
};

static bool sample_add(void *arg, const struct tide_place *place)
{
    struct sample *sample = arg;
    if (sample->bounded && tide_place_order(sample->descending, place, &sample->last) > 0)
        return false;
    if (!sample->bounded)
        sample->last = *place;
    return ++sample->count < sample->count_max;
}

static tide_status rareness_find(struct ranking *ranking)
{
    struct tide_searching *searching = ranking->searching;
    const struct tide_start start = {
        .given = true, .inclusive = true, .place = ranking->list[0].place};
    struct tide_plan plan = {.kind = TIDE_PLAN_ALL, .low_ms = INT64_MIN, .high_ms = INT64_MAX};
    struct sample all = {.descending = searching->descending, .count_max = SAMPLE};
    tide_status rc = tide_search_walk(searching, &plan, &start, sample_add, &all);
    const struct tide_phrase *phrase = searching->plan.phrases;
    plan.kind = TIDE_PLAN_WORDS;
    for (size_t i = 0; i < ranking->phrases && rc == TIDE_OK; i++, phrase = phrase->next) {
        struct sample with = {.descending = searching->descending,
                              .count_max = SAMPLE + 1,
                              .bounded = true,
                              .last = all.last};
        plan.text = phrase->match;
        rc = tide_search_walk(searching, &plan, &start, sample_add, &with);
        const double total = (double)all.count, found = (double)with.count;
        ranking->rareness[i] = log1p((total - found + 0.5) / (found + 0.5));
    }
    return rc;
}

/* ---- hits ---- */

static const char pointer_type[] = "tide_candidate";

struct wanted {
    int64_t id;
    struct candidate *candidate;
    const uint8_t *phrases; /* which of ours each phrase of the expression is */
    size_t phrases_count;
};

/* FTS5 calls it for each row of the statement; only the wanted row counts. */
static void hits_count(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *context,
                       int count, sqlite3_value **values)
{
    struct wanted *wanted = count == 1 ? sqlite3_value_pointer(values[0], pointer_type) : NULL;
    if (wanted == NULL || api->xRowid(fts) != wanted->id)
        return;
    int hits = 0, words = 0;
    int code = api->xInstCount(fts, &hits);
    for (int i = 0; i < hits && code == SQLITE_OK; i++) {
        int phrase = 0, column = 0, at = 0;
        code = api->xInst(fts, i, &phrase, &column, &at);
        if (code == SQLITE_OK && (size_t)phrase < wanted->phrases_count && column < COLUMNS)
            wanted->candidate->hits[wanted->phrases[phrase]] += weights[column];
    }
    if (code == SQLITE_OK)
        code = api->xColumnSize(fts, -1, &words);
    wanted->candidate->words = words;
    if (code != SQLITE_OK)
        sqlite3_result_error_code(context, code);
}

/* Once per connection; it lives as long as the connection. */
static int function_add(sqlite3 *handle)
{
    fts5_api *api = NULL;
    tide_auto_prepared *stmt = NULL;
    int code = sqlite3_prepare_v2(handle, "SELECT fts5(?1)", -1, &stmt, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_bind_pointer(stmt, 1, &api, "fts5_api_ptr", NULL);
        (void)sqlite3_step(stmt);
        code = api == NULL ? SQLITE_ERROR
                           : api->xCreateFunction(api, "tide_hits", NULL, hits_count, NULL);
    }
    return code;
}

static tide_status hits_prepare(tide_db *db, sqlite3_stmt **stmt_out, tide_error *err)
{
    static const char text[] = "SELECT rowid, tide_hits(words, ?3) FROM words WHERE words MATCH ?1"
                               " AND rowid <= ?2 ORDER BY rowid DESC";
    /* Preparing the statement shows whether it is registered. */
    int code = sqlite3_prepare_v2(db->handle, text, -1, stmt_out, NULL);
    if (code == SQLITE_ERROR) {
        code = function_add(db->handle);
        if (code == SQLITE_OK)
            code = sqlite3_prepare_v2(db->handle, text, -1, stmt_out, NULL);
    }
    return code == SQLITE_OK ? TIDE_OK : tide_db_failed(db, code, "prepare a ranking", err);
}

/* Moves to a candidate, by single steps while it is near. */
static tide_status hits_seek(const struct tide_searching *searching, tide_db *db,
                             sqlite3_stmt *stmt, const struct wanted *wanted, int64_t *at)
{
    tide_error *err = searching->err;
    bool row = true;
    tide_status rc = TIDE_OK;
    for (int i = 0; i < searching->steps.words && rc == TIDE_OK && row && *at > wanted->id; i++) {
        rc = tide_db_step(db, stmt, &row, err);
        *at = rc == TIDE_OK && row ? sqlite3_column_int64(stmt, 0) : INT64_MIN;
    }
    if (rc != TIDE_OK || *at <= wanted->id)
        return rc;
    (void)sqlite3_reset(stmt);
    (void)sqlite3_bind_int64(stmt, 2, wanted->id);
    rc = tide_db_step(db, stmt, &row, err);
    *at = rc == TIDE_OK && row ? sqlite3_column_int64(stmt, 0) : INT64_MIN;
    return rc;
}

/* Each form of a word is a phrase of its own in the expression of a shard. */
static tide_status phrases_map(const struct ranking *ranking, struct tide_walk *walk,
                               struct wanted *wanted)
{
    uint8_t *map = tide_arena_take(&walk->arena, (size_t)PHRASES_MAX * TIDE_FORMS_MAX);
    if (map == NULL)
        return tide_error_set(walk->searching->err, TIDE_NO_MEMORY, "no memory to rank messages");
    const struct tide_phrase *phrase = walk->searching->plan.phrases;
    wanted->phrases = map;
    for (size_t i = 0; i < ranking->phrases; i++, phrase = phrase->next) {
        size_t count = phrase->other.bytes > 0 ? 2 : 1;
        if (phrase->form != NULL) {
            const struct tide_words_found *found = NULL;
            TIDE_TRY(tide_walk_forms(walk, phrase->form_number, &found));
            count = found->count;
        }
        memset(map + wanted->phrases_count, (int)i, count);
        wanted->phrases_count += count;
    }
    return TIDE_OK;
}

/* The candidates of one shard, [first, end) of the list, newest first. */
static tide_status shard_hits(struct ranking *ranking, size_t first, size_t end)
{
    struct tide_searching *searching = ranking->searching;
    struct tide_shard *shard = tide_shards_get(searching->shards, ranking->list[first].place.shard);
    TIDE_ASSERT(shard != NULL);
    struct tide_walk walk;
    sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_walk_open(&walk, searching, shard));
    struct wanted wanted = {.phrases_count = 0};
    int64_t at = INT64_MAX;
    tide_text match = TIDE_TEXT_NONE;
    tide_status rc = phrases_map(ranking, &walk, &wanted);
    if (rc == TIDE_OK)
        rc = tide_walk_match(&walk, searching->plan.hits, &match);
    if (rc == TIDE_OK)
        rc = hits_prepare(&shard->db, &stmt, searching->err);
    if (rc == TIDE_OK) {
        tide_bind_text(stmt, 1, match);
        (void)sqlite3_bind_int64(stmt, 2, ranking->list[first].place.id);
        (void)sqlite3_bind_pointer(stmt, 3, &wanted, pointer_type, NULL);
    }
    for (size_t i = first; i < end && rc == TIDE_OK; i++) {
        wanted.candidate = &ranking->list[i];
        wanted.id = wanted.candidate->place.id;
        rc = hits_seek(searching, &shard->db, stmt, &wanted, &at);
    }
    (void)sqlite3_finalize(stmt);
    tide_walk_close(&walk);
    return rc;
}

static int shard_order(const void *a, const void *other)
{
    const struct candidate *left = a, *right = other;
    if (left->place.shard != right->place.shard)
        return left->place.shard < right->place.shard ? 1 : -1;
    return (left->place.id < right->place.id) - (left->place.id > right->place.id);
}

static tide_status hits_find(struct ranking *ranking)
{
    tide_status rc = TIDE_OK;
    if (ranking->count > 0)
        qsort(ranking->list, ranking->count, sizeof ranking->list[0], shard_order);
    for (size_t first = 0, end; first < ranking->count && rc == TIDE_OK; first = end) {
        end = first;
        while (end < ranking->count &&
               ranking->list[end].place.shard == ranking->list[first].place.shard)
            end++;
        rc = shard_hits(ranking, first, end);
    }
    return rc;
}

/* ---- ordering ---- */

static void rank_all(struct ranking *ranking)
{
    double words = 1;
    for (size_t i = 0; i < ranking->count; i++)
        words += ranking->list[i].words;
    const double mean = words / (double)ranking->count;
    for (size_t i = 0; i < ranking->count; i++) {
        struct candidate *candidate = &ranking->list[i];
        const double length = k1 * (1 - b + b * candidate->words / mean);
        candidate->rank = 0;
        for (size_t j = 0; j < ranking->phrases; j++)
            candidate->rank += ranking->rareness[j] * candidate->hits[j] * (k1 + 1) /
                               (candidate->hits[j] + length);
    }
}

static int rank_order(const void *a, const void *other)
{
    const struct candidate *left = a, *right = other;
    if (left->rank != right->rank)
        return left->rank < right->rank ? 1 : -1;
    return tide_place_order(true, &left->place, &right->place);
}

static tide_status hand_out(struct ranking *ranking, struct tide_ranked **ranked_out)
{
    struct tide_ranked *ranked =
        tide_mem_array(ranking->searching->mem, ranking->count, sizeof *ranked);
    if (ranked == NULL)
        return tide_error_set(ranking->searching->err, TIDE_NO_MEMORY,
                              "no memory to rank %zu messages", ranking->count);
    for (size_t i = 0; i < ranking->count; i++) {
        ranked[i].place = ranking->list[i].place;
        ranked[i].rank = ranking->list[i].rank;
    }
    *ranked_out = ranked;
    return TIDE_OK;
}

tide_status tide_search_rank(struct tide_searching *searching, const struct tide_start *start,
                             struct tide_ranked **ranked_out, size_t *count_out,
                             struct tide_place *anchor_out)
{
    TIDE_ASSERT(searching->descending);
    const size_t phrases = searching->plan.phrases_count;
    struct ranking ranking = {.searching = searching,
                              .phrases = phrases < PHRASES_MAX ? phrases : PHRASES_MAX,
                              .rc = TIDE_OK};
    tide_status rc =
        tide_search_walk(searching, searching->plan.root, start, candidate_add, &ranking);
    rc = rc == TIDE_OK ? ranking.rc : rc;
    struct tide_place anchor = {0, 0};
    if (rc == TIDE_OK && ranking.count > 0) {
        anchor = ranking.list[0].place;
        if (ranking.phrases > 0)
            rc = rareness_find(&ranking);
        if (rc == TIDE_OK && ranking.phrases > 0)
            rc = hits_find(&ranking);
        if (rc == TIDE_OK) {
            rank_all(&ranking);
            qsort(ranking.list, ranking.count, sizeof ranking.list[0], rank_order);
            rc = hand_out(&ranking, ranked_out);
        }
    }
    if (rc == TIDE_OK) {
        *count_out = ranking.count;
        *anchor_out = anchor;
    }
    tide_mem_free(searching->mem, ranking.list, ranking.capacity * sizeof *ranking.list);
    return rc;
}
