#include "sim_world_fixture.h"

void shared_init(struct shared *shared, uint64_t seed, const struct tide_sim_options *options)
{
    memset(shared, 0, sizeof *shared);
    shared->sim = tide_sim_new(seed, options);
    shared->world = tide_sim_world(shared->sim);
    assert_int_equal(tide_lock_new(shared->world, &shared->lock), TIDE_OK);
    assert_int_equal(tide_cond_new(shared->world, &shared->cond), TIDE_OK);
}

void shared_done(struct shared *shared)
{
    tide_cond_free(shared->world, shared->cond);
    tide_lock_free(shared->world, shared->lock);
    tide_sim_free(shared->sim);
}

tide_thread *start(struct shared *shared, const char *name, void (*run)(void *arg), void *arg)
{
    tide_thread *thread = NULL;
    assert_int_equal(tide_world_thread(shared->world, name, run, arg, &thread, NULL), TIDE_OK);
    return thread;
}

void count_up(void *arg)
{
    struct shared *shared = arg;
    for (int i = 0; i < ROUNDS; i++) {
        tide_lock_take(shared->world, shared->lock);
        TIDE_SIM_EXPECT(shared->sim, shared->inside == 0);
        shared->inside++;
        uint64_t count = shared->count;
        tide_cond_wake_all(shared->world, shared->cond); /* a chance to lose the baton */
        shared->count = count + 1;
        shared->inside--;
        tide_lock_drop(shared->world, shared->lock);
    }
}

void wait_for_go(void *arg)
{
    struct shared *shared = arg;
    tide_lock_take(shared->world, shared->lock);
    shared->waiting++;
    tide_status rc = TIDE_OK;
    while (!shared->go && rc != TIDE_STOPPED)
        rc = tide_cond_wait(shared->world, shared->cond, shared->lock, TIDE_NEVER);
    if (rc == TIDE_STOPPED)
        shared->stopped++;
    else
        shared->woken++;
    shared->go = false;
    tide_lock_drop(shared->world, shared->lock);
}

void let_them_run(struct shared *shared)
{
    uint64_t soon_us = tide_world_now_us(shared->world) + 1000 * 1000;
    (void)tide_world_sleep_until(shared->world, soon_us, NULL);
}

void beat_on(void *arg)
{
    struct shared *shared = arg;
    while (!shared->go) {
        shared->count++;
        uint64_t until_us = tide_world_now_us(shared->world) + 1000 * 1000;
        (void)tide_world_sleep_until(shared->world, until_us, NULL);
    }
}

void sleep_long(void *arg)
{
    struct shared *shared = arg;
    tide_status rc = tide_world_sleep_until(shared->world, TIDE_NEVER, &shared->cancel);
    shared->woken += rc == TIDE_CANCELED;
    shared->stopped += rc == TIDE_STOPPED;
}

int sql_run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

json_t *ask(tide_sim *sim, const char *method, const char *path, tide_text body, int *http_out)
{
    char url[300];
    (void)snprintf(url, sizeof url, "https://provider.test%s", path);
    struct tide_request request = {.method = method, .url = url, .body = body};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    json_t *answer = NULL;
    *http_out = 0;
    tide_status rc = tide_world_call(tide_sim_world(sim), &request, &response, NULL, NULL);
    if (rc == TIDE_OK) {
        *http_out = response.http;
        answer = json_loadb(tide_buf_cstr(&response.body), response.body.bytes, 0, NULL);
    }
    tide_response_done(&response);
    return answer;
}
