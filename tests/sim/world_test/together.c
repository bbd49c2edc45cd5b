/* All of it together, in a very small engine. */
#include "sim_world_fixture.h"

enum { FETCHERS = 5 };

/* A very small engine: workers take the next item that is not stored, fetch
 * it, and hand it to one writer, who stores it.  What is stored survives. */
struct mini {
    tide_sim *sim;
    tide_world *world;
    tide_lock *lock;
    tide_cond *cond;
    const struct tide_sim_item *items;
    size_t items_count;
    bool *stored;
    bool *taken;
    size_t left;
    json_t *queue[FETCHERS];
    size_t queue_index[FETCHERS];
    bool end;
};

static bool mini_take(struct mini *mini, size_t *index_out)
{
    for (size_t i = 0; i < mini->items_count; i++) {
        if (!mini->stored[i] && !mini->taken[i]) {
            mini->taken[i] = true;
            *index_out = i;
            return true;
        }
    }
    return false;
}

static json_t *mini_fetch(struct mini *mini, size_t index)
{
    char path[100];
    int http = 0;
    (void)snprintf(path, sizeof path, "/items/%s", mini->items[index].id);
    json_t *answer = ask(mini->sim, "GET", path, TIDE_TEXT_NONE, &http);
    if (http == 200 && json_is_string(json_object_get(answer, "data")))
        return answer;
    json_decref(answer);
    return NULL;
}

static void mini_work(void *arg)
{
    struct mini *mini = arg;
    size_t index = 0;
    tide_lock_take(mini->world, mini->lock);
    while (!mini->end && !tide_world_dead(mini->world) && mini_take(mini, &index)) {
        tide_lock_drop(mini->world, mini->lock);
        json_t *answer = mini_fetch(mini, index);
        tide_lock_take(mini->world, mini->lock);
        size_t slot = FETCHERS;
        tide_status rc = TIDE_OK;
        while (answer != NULL && slot == FETCHERS && rc != TIDE_STOPPED) {
            for (slot = 0; slot < FETCHERS && mini->queue[slot] != NULL; slot++)
                ;
            if (slot == FETCHERS)
                rc = tide_cond_wait(mini->world, mini->cond, mini->lock, TIDE_NEVER);
        }
        if (answer != NULL && slot < FETCHERS) {
            mini->queue[slot] = answer;
            mini->queue_index[slot] = index;
            tide_cond_wake_all(mini->world, mini->cond);
        } else {
            json_decref(answer);
            mini->taken[index] = false;
        }
    }
    tide_lock_drop(mini->world, mini->lock);
}

static sqlite3 *mini_open(struct mini *mini)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2("/mini.db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                             tide_world_vfs(mini->world));
    if (rc == SQLITE_OK)
        rc = sql_run(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                         "PRAGMA wal_autocheckpoint=20;"
                         "CREATE TABLE IF NOT EXISTS item(number INTEGER PRIMARY KEY, data TEXT)");
    if (rc == SQLITE_OK)
        return db;
    (void)sqlite3_close(db);
    return NULL;
}

static int mini_store(sqlite3 *db, size_t index, const json_t *answer)
{
    const json_t *data = json_object_get(answer, "data");
    sqlite3_stmt *stmt = NULL;
    (void)sqlite3_prepare_v2(db, "INSERT INTO item VALUES(?1, ?2)", -1, &stmt, NULL);
    (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)index);
    (void)sqlite3_bind_text(stmt, 2, json_string_value(data), (int)json_string_length(data),
                            SQLITE_TRANSIENT);
    (void)sqlite3_step(stmt);
    return sqlite3_finalize(stmt);
}

static void mini_write(void *arg)
{
    struct mini *mini = arg;
    sqlite3 *db = mini_open(mini);
    tide_status rc = db == NULL ? TIDE_STOPPED : TIDE_OK;
    tide_lock_take(mini->world, mini->lock);
    while (rc != TIDE_STOPPED && mini->left > 0) {
        size_t slot = 0;
        while (slot < FETCHERS && mini->queue[slot] == NULL)
            slot++;
        if (slot == FETCHERS) {
            rc = tide_cond_wait(mini->world, mini->cond, mini->lock, TIDE_NEVER);
            continue;
        }
        json_t *answer = mini->queue[slot];
        size_t index = mini->queue_index[slot];
        mini->queue[slot] = NULL;
        tide_cond_wake_all(mini->world, mini->cond);
        tide_lock_drop(mini->world, mini->lock);
        int sql = mini_store(db, index, answer);
        json_decref(answer);
        tide_lock_take(mini->world, mini->lock);
        if (sql == SQLITE_OK) {
            mini->stored[index] = true;
            mini->left--;
        } else {
            rc = TIDE_STOPPED;
        }
    }
    mini->end = true;
    tide_cond_wake_all(mini->world, mini->cond);
    tide_lock_drop(mini->world, mini->lock);
    (void)sqlite3_close(db);
}

/* What the disk has is what is stored; and it is right. */
static void mini_recover(struct mini *mini, tide_sim_provider *provider)
{
    sqlite3 *db = mini_open(mini);
    TIDE_SIM_EXPECT(mini->sim, db != NULL);
    sqlite3_stmt *stmt = NULL;
    (void)sqlite3_prepare_v2(db, "SELECT number, data FROM item", -1, &stmt, NULL);
    mini->left = mini->items_count;
    size_t found = 0;
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        size_t index = (size_t)sqlite3_column_int64(stmt, 0);
        tide_text data = {(const char *)sqlite3_column_text(stmt, 1),
                          (size_t)sqlite3_column_bytes(stmt, 1)};
        TIDE_SIM_EXPECT(mini->sim, index < mini->items_count);
        TIDE_SIM_EXPECT(mini->sim, tide_sim_provider_content_is(
                                       provider, tide_text_of(mini->items[index].id), data));
        mini->taken[index] = true;
        found++;
    }
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    for (size_t i = 0; i < mini->items_count; i++) {
        TIDE_SIM_EXPECT(mini->sim, !mini->stored[i] || mini->taken[i]); /* never lost */
        mini->stored[i] = mini->taken[i];
        mini->taken[i] = false;
    }
    mini->left = mini->items_count - found;
    mini->end = false;
}

static void mini_live(struct mini *mini)
{
    tide_thread *threads[FETCHERS + 1] = {NULL};
    (void)tide_world_thread(mini->world, "writer", mini_write, mini, &threads[FETCHERS], NULL);
    for (int i = 0; i < FETCHERS; i++)
        (void)tide_world_thread(mini->world, "fetcher", mini_work, mini, &threads[i], NULL);
    if (threads[FETCHERS] == NULL)
        mini->end = true;
    for (int i = 0; i <= FETCHERS; i++)
        tide_world_join(mini->world, threads[i]);
    for (int i = 0; i < FETCHERS; i++) {
        json_decref(mini->queue[i]);
        mini->queue[i] = NULL;
    }
    memset(mini->taken, 0, mini->items_count * sizeof *mini->taken);
}

struct mini_result {
    uint64_t hash;
    uint64_t steps;
    uint64_t crashes;
};

static struct mini_result mini_run(uint64_t seed, uint32_t items_count)
{
    const struct tide_sim_provider_options items = {.seed = seed,
                                                    .items_count = items_count,
                                                    .error_permille = 20,
                                                    .garbage_permille = 20,
                                                    .refuse_permille = 20};
    struct tide_sim_options options = tide_sim_options_seeded(seed);
    struct mini mini = {.items_count = items_count};
    tide_sim_provider *provider = tide_sim_provider_new(&items);
    options.net.provide = tide_sim_provider_call;
    options.net.provide_arg = provider;
    options.crash_every_steps = 3000;
    options.crashes_max = 8;
    mini.sim = tide_sim_new(seed, &options);
    mini.world = tide_sim_world(mini.sim);
    mini.items = tide_sim_provider_items(provider, &mini.items_count);
    mini.stored = calloc(items_count, sizeof *mini.stored);
    mini.taken = calloc(items_count, sizeof *mini.taken);
    mini.left = items_count;
    assert_int_equal(tide_lock_new(mini.world, &mini.lock), TIDE_OK);
    assert_int_equal(tide_cond_new(mini.world, &mini.cond), TIDE_OK);
    /* Each life fetches what is missing; fetchers give up on their own after a
     * failure, so a life may end without a crash and without the end. */
    for (uint32_t life = 0; mini.left > 0; life++) {
        if (life == 40) {
            tide_sim_faults(mini.sim, false);
            tide_sim_provider_faults(provider, false);
        }
        TIDE_SIM_EXPECT(mini.sim, life < 60);
        mini_live(&mini);
        tide_sim_reboot(mini.sim);
        tide_sim_faults(mini.sim, false);
        mini_recover(&mini, provider);
        tide_sim_faults(mini.sim, life < 40);
    }
    struct tide_sim_stats stats = tide_sim_stats(mini.sim);
    struct mini_result result = {tide_sim_trace_hash(mini.sim), stats.steps, stats.crashes};
    tide_cond_free(mini.world, mini.cond);
    tide_lock_free(mini.world, mini.lock);
    tide_sim_free(mini.sim);
    tide_sim_provider_free(provider);
    free(mini.stored);
    free(mini.taken);
    return result;
}

/* Threads, locks, SQLite, the network, crashes and reboots: every event of
 * more than 100,000 steps, twice in one process. */
TEST(the_same_seed_gives_the_same_trace)
{
    uint64_t steps = 0;
    uint64_t crashes = 0;
    uint64_t last_hash = 0;
    uint64_t target = scaled_at_least(150000, 20000);
    for (uint64_t seed = 1; steps < target; seed++) {
        struct mini_result first = mini_run(seed, 300);
        struct mini_result second = mini_run(seed, 300);
        if (first.hash != second.hash)
            fail_msg("seed %" PRIu64 " does not replay", seed);
        assert_int_equal(first.steps, second.steps);
        assert_true(first.hash != last_hash);
        last_hash = first.hash;
        steps += first.steps;
        crashes += first.crashes;
    }
    print_message("%" PRIu64 " steps, %" PRIu64 " crashes, each twice; last trace %016" PRIx64 "\n",
                  steps, crashes, last_hash);
    assert_true(crashes > 0);
}
