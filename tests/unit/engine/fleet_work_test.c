/* Goal: on a shared ledger too, what is done under the engine's one lock does not grow with
 * accounts x window: neither a look that finds many accounts changed, nor a lost lease, may stop
 * the workers.
 * Method: the linker puts a counter before the function that reads the whole window. */
#include "engine/engine.h"
#include "fleet/inside.h"
#include "support/pg_test.h"
#include "unit/engine/engine_fixture.h"
#include "support/heap.h"

#include <stdatomic.h>

static atomic_uint passes;

void __real_tide_tracker_each(const tide_tracker *tracker,
                              bool (*visit)(const struct tide_tracked *tracked, void *arg),
                              void *arg);
void __wrap_tide_tracker_each(const tide_tracker *tracker,
                              bool (*visit)(const struct tide_tracked *tracked, void *arg),
                              void *arg);

void __wrap_tide_tracker_each(const tide_tracker *tracker,
                              bool (*visit)(const struct tide_tracked *tracked, void *arg),
                              void *arg)
{
    atomic_fetch_add(&passes, 1);
    __real_tide_tracker_each(tracker, visit, arg);
}

enum { ACCOUNTS = 60, PER_LOOK = 6 };
static_assert(PER_LOOK * 4 < ACCOUNTS, "a pass for each account is seen");

static void open_shared(struct fixture *f, const char *url)
{
    fixture_settings(f, "fleet.look=1m;fleet.lease=5m");
    const struct tide_engine_options options = {.state_dir = f->dir,
                                                .ledger = url,
                                                .world = f->world,
                                                .settings = f->settings,
                                                .no_control_socket = true};
    OK(tide_engine_open(&options, &f->engine, err));
}

static void enqueue_each(struct fixture *f, uint32_t kind)
{
    struct tide_spec specs[ACCOUNTS];
    for (int i = 0; i < ACCOUNTS; i++) {
        specs[i] = (struct tide_spec){.kind = kind, .payload = "{}"};
        const char *name = textf("account %d", i);
        OK(tide_engine_account(f->engine, name, "default", &specs[i].account, err));
    }
    OK(tide_enqueue(f->engine, specs, ACCOUNTS, NULL, err));
}

enum what { HELD, PAUSED };

static size_t accounts(struct fixture *f, enum what what)
{
    size_t count = 0;
    tide_lock_take(f->world, f->engine->lock);
    for (size_t i = 0; i < f->engine->accounts_count; i++)
        count += what == HELD ? f->engine->accounts[i]->held : f->engine->accounts[i]->paused;
    tide_lock_drop(f->world, f->engine->lock);
    return count;
}

/* Looks from here on are counted. */
static uint64_t look_now(struct fixture *f)
{
    tide_lock_take(f->world, f->engine->lock);
    uint64_t looks = f->engine->fleet->looks;
    atomic_store(&passes, 0);
    tide_fleet_look_soon(f->engine);
    tide_lock_drop(f->world, f->engine->lock);
    return looks;
}

/* Asked under the lock, so that no look is half counted; a second one may be under way. */
static void few_passes_since(struct fixture *f, uint64_t before)
{
    tide_lock_take(f->world, f->engine->lock);
    uint64_t looks = f->engine->fleet->looks - before + 1;
    unsigned seen = atomic_load(&passes);
    tide_lock_drop(f->world, f->engine->lock);
    print_message("%u passes in %" PRIu64 " looks\n", seen, looks);
    assert_true(seen <= looks * PER_LOOK);
}

CASE(many_accounts_are_taken_paused_and_lost_in_few_passes)
{
    struct gate gate = {0, 0};
    char url[PG_TEST_URL_BYTES];
    pg_test_create(NULL, url, sizeof url);
    open_shared(f, url);
    uint32_t kind = DEFINE(f, "wait", gate_handler, .context = &gate);
    enqueue_each(f, kind);
    atomic_store(&passes, 0);
    start(f);
    UNTIL(accounts(f, HELD) == ACCOUNTS);
    few_passes_since(f, 0);

    (void)pg_test_exec(url, "UPDATE tidemark.account SET paused = true");
    uint64_t before = look_now(f);
    UNTIL(accounts(f, PAUSED) == ACCOUNTS);
    few_passes_since(f, before);

    tide_lock_take(f->world, f->engine->lock);
    atomic_store(&passes, 0);
    assert_true(
        tide_fleet_waits(f->engine, TIDE_STALE, &(tide_error){0}, tide_world_now_ms(f->world)));
    unsigned seen = atomic_load(&passes);
    tide_lock_drop(f->world, f->engine->lock);
    assert_true(seen <= PER_LOOK);
    gate_open(&gate);
    fixture_close(f);
    pg_test_drop(url);
}

/* Jobs of a kind that only another process runs: all accounts are offered to it, and given up. */
CASE(many_accounts_are_given_up_in_few_passes)
{
    struct fixture *other = NULL;
    uint64_t ran = 0;
    char url[PG_TEST_URL_BYTES];
    pg_test_create(NULL, url, sizeof url);
    open_shared(f, url);
    uint32_t kind = DEFINE(f, "here", count_handler, .context = &ran);
    enqueue_each(f, kind);
    start(f);
    UNTIL(get(&ran) == ACCOUNTS);
    UNTIL(accounts(f, HELD) == ACCOUNTS);

    (void)set_up((void **)&other);
    open_shared(other, url);
    uint32_t there = DEFINE(other, "there", count_handler, .context = &ran);
    enqueue_each(other, there);
    uint64_t before = look_now(f);
    UNTIL(accounts(f, HELD) == 0);
    few_passes_since(f, before);
    fixture_close(f);
    (void)tear_down((void **)&other);
    pg_test_drop(url);
}

int main(void)
{
    return pg_tests_run();
}
