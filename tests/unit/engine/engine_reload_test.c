/* Settings that change under a running engine, by editing the file (E11.1). */
#include "engine/engine.h"
#include "engine/reload.h"
#include "engine_fixture.h"
#include "support/heap.h"
#include "tidemark_inside.h"

#define COMMON                                                                                     \
    "settings.reload_every: 100ms\nworkers.reserved_interactive: 0\nworkers.reserved_bulk: 0\n"

static void write_settings(struct fixture *f, const char *yaml)
{
    const char *path = textf("%s/config.yaml", f->dir);
    char text[1024];
    int bytes = snprintf(text, sizeof text, COMMON "%s", yaml);
    OK(tide_file_replace(f->world, path, (tide_text){text, (size_t)bytes}, 0600, err));
}

static void load_settings(struct fixture *f, const char *yaml)
{
    const char *path = textf("%s/config.yaml", f->dir);
    write_settings(f, yaml);
    struct tide_settings_sources sources = {.file = path};
    OK(tide_settings_load(f->world, &sources, tide_mem_heap(), &f->settings, err));
}

/* How often the keeper has looked at the file, as far as time tells. */
static uint64_t look_ms(struct fixture *f)
{
    tide_lock_take(f->world, f->engine->lock);
    uint64_t at_ms = f->engine->settings_look_ms;
    tide_lock_drop(f->world, f->engine->lock);
    return at_ms;
}

static void wait_for_looks(struct fixture *f, int looks)
{
    while (looks-- > 0) {
        uint64_t before_ms = look_ms(f);
        UNTIL(look_ms(f) > before_ms);
    }
}

static uint32_t workers_wanted(struct fixture *f)
{
    tide_lock_take(f->world, f->engine->lock);
    uint32_t wanted = f->engine->workers_wanted;
    tide_lock_drop(f->world, f->engine->lock);
    return wanted;
}

static void enqueue_many(struct fixture *f, uint32_t kind, int count)
{
    for (int i = 0; i < count; i++)
        (void)ENQUEUE(f, .kind = kind);
}

/* Remembers how many run at once at most. */
struct crowd {
    uint64_t now, most, all;
};

static tide_status crowd_handler(tide_job *job, void *context, tide_error *err)
{
    struct crowd *crowd = context;
    (void)err;
    uint64_t now = add(&crowd->now, 1);
    uint64_t most = get(&crowd->most);
    while (now > most && !__atomic_compare_exchange_n(&crowd->most, &most, now, false,
                                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    tide_status rc = tide_job_sleep(job, 1);
    (void)add(&crowd->all, 1);
    (void)__atomic_sub_fetch(&crowd->now, 1, __ATOMIC_SEQ_CST);
    return rc;
}

CASE(workers_come_and_go_with_the_file)
{
    struct gate gate = {0};
    struct crowd crowd = {0};
    load_settings(f, "workers.count: 2\n");
    fixture_open(f);
    uint32_t gated = DEFINE(f, "gated", gate_handler, .context = &gate);
    uint32_t crowded = DEFINE(f, "crowded", crowd_handler, .context = &crowd);
    start(f);
    enqueue_many(f, gated, 6);
    UNTIL(get(&gate.arrived) == 2);
    write_settings(f, "workers.count: 6\n");
    UNTIL(get(&gate.arrived) == 6); /* by itself (E11.1) */
    gate_open(&gate);
    finish(f);

    write_settings(f, "workers.count: 1\n");
    UNTIL(workers_wanted(f) == 1);
    enqueue_many(f, crowded, 20);
    finish(f);
    assert_int_equal(get(&crowd.all), 20);
    assert_int_equal(get(&crowd.most), 1);
}

/* E3.1: 16 by default; a system may want more, and what was chosen stays. */
CASE(a_system_gets_the_workers_that_it_wants_unless_a_number_was_chosen)
{
    load_settings(f, "stall.after: 7m\n");
    f->workers = 0;
    fixture_open(f);
    assert_int_equal(workers_wanted(f), 16);
    tide_engine_workers_want(f->engine, 4);
    assert_int_equal(workers_wanted(f), 16);
    tide_engine_workers_want(f->engine, 20);
    assert_int_equal(workers_wanted(f), 20);
    struct gate gate = {0};
    uint32_t gated = DEFINE(f, "gated", gate_handler, .context = &gate);
    start(f);
    enqueue_many(f, gated, 18);
    UNTIL(get(&gate.arrived) == 18);
    gate_open(&gate);
    finish(f);
}

CASE(a_number_of_workers_that_a_user_set_stays_whatever_a_system_wants)
{
    load_settings(f, "workers.count: 16\n");
    f->workers = 0;
    fixture_open(f);
    tide_engine_workers_want(f->engine, 32);
    assert_int_equal(workers_wanted(f), 16);
}

CASE(a_number_of_workers_chosen_by_the_program_outlives_other_changes)
{
    load_settings(f, "workers.count: 2\n");
    f->workers = 5;
    fixture_open(f);
    /* Before the start too. */
    bool changed[TIDE_SETTINGS_COUNT], restart[TIDE_SETTINGS_COUNT];
    write_settings(f, "workers.count: 2\nstall.after: 7m\n");
    OK(tide_engine_reload(f->engine, changed, restart, err));
    assert_true(changed[TIDE_SET_STALL_AFTER]);
    assert_int_equal(workers_wanted(f), 5);
    write_settings(f, "workers.count: 3\n");
    OK(tide_engine_reload(f->engine, changed, restart, err));
    assert_int_equal(workers_wanted(f), 3);

    struct gate gate = {0};
    uint32_t gated = DEFINE(f, "gated", gate_handler, .context = &gate);
    start(f);
    enqueue_many(f, gated, 3);
    UNTIL(get(&gate.arrived) == 3);
    gate_open(&gate);
    finish(f);
}

CASE(a_watched_file_is_read_when_it_is_said_to_have_changed)
{
    load_settings(f, "workers.count: 2\n");
    fixture_open(f);
    tide_engine_settings_watched(f->engine);
    start(f);
    UNTIL(look_ms(f) ==
          TIDE_NEVER); /* once, because it may have changed before; then never again */
    for (uint32_t workers = 3; workers < 8; workers++) {
        char yaml[40];
        (void)snprintf(yaml, sizeof yaml, "workers.count: %u\n", workers);
        write_settings(f, yaml);
        assert_true(look_ms(f) == TIDE_NEVER);
        tide_engine_settings_changed(f->engine);
        UNTIL(workers_wanted(f) == workers && look_ms(f) == TIDE_NEVER);
    }
}

CASE(a_new_threshold_judges_what_happened_before)
{
    load_settings(f, "alerts.bad_warn: 100%\nalerts.bad_critical: 100%\n");
    fixture_open(f);
    uint32_t account = new_account(f, "anna", "gmail");
    start(f);
    tide_lock_take(f->world, f->engine->lock);
    uint64_t now_ms = tide_world_now_ms(f->world);
    OK(tide_alerts_items(f->engine->alerts, account, 950, 50, now_ms));
    tide_lock_drop(f->world, f->engine->lock);
    wait_for_looks(f, 2);
    assert_int_equal(sql(f, "SELECT count(*) FROM alert WHERE condition = 'bad_rate'"), 0);

    write_settings(f, "alerts.bad_warn: 1%\nalerts.bad_critical: 100%\n");
    UNTIL(sql(f, "SELECT level FROM alert WHERE condition = 'bad_rate'") == TIDE_LEVEL_WARN);
    write_settings(f, "alerts.bad_warn: 1%\nalerts.bad_critical: 2%\n");
    UNTIL(sql(f, "SELECT level FROM alert WHERE condition = 'bad_rate'") == TIDE_LEVEL_CRITICAL);
}

CASE(rates_and_schedules_change_with_the_file)
{
    load_settings(f, "");
    fixture_open(f);
    uint32_t account = new_account(f, "anna", "gmail");
    start(f);
    write_settings(f, "governor.gmail.window_units: 15000\ngovernor.gmail.window: 30s\n"
                      "bandwidth.down: 1MiB\nretry.attempts_max: 3\npurge.every: 2h\n");
    UNTIL(__atomic_load_n(&f->engine->bandwidth_limited, __ATOMIC_RELAXED));
    struct tide_governor_view view;
    tide_lock_take(f->world, f->engine->lock);
    tide_governor_view(tide_engine_account_of(f->engine, account)->governor,
                       tide_world_now_ms(f->world), &view);
    struct tide_tuning tuning = f->engine->tuning;
    tide_lock_drop(f->world, f->engine->lock);
    assert_int_equal(view.window_max, 15000); /* although the window's length has to wait */
    assert_int_equal(tuning.attempts_max, 3);
    assert_int_equal(tuning.purge_every_ms, 2 * TIDE_MS_HOUR);
    assert_int_equal(__atomic_load_n(&f->engine->attempts_max, __ATOMIC_RELAXED), 3);
}

/* A governor that counts units keeps counting them until the next start; all
 * else that the file says counts at once. */
CASE(a_quota_that_goes_away_waits_for_the_next_start)
{
    load_settings(f, "");
    fixture_open(f);
    uint32_t account = new_account(f, "anna", "gmail");
    start(f);
    write_settings(f, "governor.gmail.window_units: 0\ngovernor.gmail.in_flight: 7\n");
    struct tide_governor_view view = {0};
    UNTIL((tide_lock_take(f->world, f->engine->lock),
           tide_governor_view(tide_engine_account_of(f->engine, account)->governor,
                              tide_world_now_ms(f->world), &view),
           tide_lock_drop(f->world, f->engine->lock), view.in_flight_max == 7));
    assert_int_equal(view.window_max, 6000);
}

static struct tide_governor_view view_of(struct fixture *f, uint32_t account)
{
    struct tide_governor_view view = {0};
    tide_lock_take(f->world, f->engine->lock);
    tide_governor_view(tide_engine_account_of(f->engine, account)->governor,
                       tide_world_now_ms(f->world), &view);
    tide_lock_drop(f->world, f->engine->lock);
    return view;
}

/* What all accounts of the project of `account` may use together. */
static uint64_t project_units(struct fixture *f, uint32_t account)
{
    tide_lock_take(f->world, f->engine->lock);
    const uint64_t units = tide_engine_account_of(f->engine, account)->common->limit.units_max;
    tide_lock_drop(f->world, f->engine->lock);
    return units;
}

static uint64_t retry_after_max(struct fixture *f, uint32_t account)
{
    tide_lock_take(f->world, f->engine->lock);
    const uint64_t ms = tide_engine_account_of(f->engine, account)->retry_after_ms_max;
    tide_lock_drop(f->world, f->engine->lock);
    return ms;
}

/* E11.2: two accounts of one provider, of two projects. */
CASE(settings_of_one_account_change_that_account_alone)
{
    load_settings(f, "accounts:\n"
                     "  bob@example.com:\n"
                     "    governor:\n"
                     "      gmail: {window_units: 15000, project_units: 20000}\n"
                     "      project: old\n"
                     "  eve@example.com:\n"
                     "    governor.project: old\n");
    fixture_open(f);
    const uint32_t ada = new_account(f, "ada@example.com", "gmail");
    const uint32_t bob = new_account(f, "bob@example.com", "gmail");
    const uint32_t eve = new_account(f, "eve@example.com", "gmail");
    start(f);
    assert_int_equal(view_of(f, ada).window_max, 6000);
    assert_int_equal(view_of(f, bob).window_max, 15000);
    assert_int_equal(view_of(f, eve).window_max, 6000);
    assert_int_equal(project_units(f, ada), 1200000);
    assert_int_equal(project_units(f, bob), 20000);
    assert_int_equal(project_units(f, eve), 20000); /* the least that its accounts know */

    write_settings(f, "accounts:\n"
                      "  bob@example.com:\n"
                      "    governor: {gmail: {window_units: 9000, project_units: 30000, "
                      "in_flight: 3}, project: old, retry_after_max: 7s}\n"
                      "  eve@example.com: {governor.project: old}\n");
    UNTIL(view_of(f, bob).window_max == 9000);
    assert_int_equal(view_of(f, bob).in_flight_max, 3);
    assert_int_equal(project_units(f, eve), 30000);
    assert_int_equal(retry_after_max(f, bob), 7000);
    assert_int_equal(retry_after_max(f, ada), TIDE_MS_HOUR);
    assert_int_equal(view_of(f, ada).window_max, 6000);
    assert_int_equal(view_of(f, ada).in_flight_max, 10);
    assert_int_equal(project_units(f, ada), 1200000);
    assert_int_equal(tide_engine_setting_u64(f->engine, bob, TIDE_SET_GOVERNOR_GMAIL_WINDOW_UNITS),
                     9000);
    assert_int_equal(tide_engine_setting_u64(f->engine, ada, TIDE_SET_GOVERNOR_GMAIL_WINDOW_UNITS),
                     6000);

    /* A change for all reaches those without a value of their own; one that is gone ends. */
    write_settings(f, "governor.gmail.in_flight: 5\n"
                      "accounts:\n"
                      "  bob@example.com: {governor: {project: old, gmail.in_flight: 3}}\n"
                      "  eve@example.com: {governor.project: old}\n");
    UNTIL(view_of(f, ada).in_flight_max == 5);
    assert_int_equal(view_of(f, bob).in_flight_max, 3);
    assert_int_equal(view_of(f, bob).window_max, 6000);
    assert_int_equal(project_units(f, bob), 1200000);
    assert_int_equal(retry_after_max(f, bob), TIDE_MS_HOUR);
}

static tide_status never(tide_job *job, void *context, tide_error *err)
{
    (void)job;
    (void)context;
    return tide_error_set(err, TIDE_SERVER, "never");
}

static tide_status sleeps(tide_job *job, void *context, tide_error *err)
{
    (void)context;
    (void)err;
    return tide_job_sleep(job, 60000);
}

static uint64_t budget_of(struct fixture *f, uint32_t account)
{
    tide_lock_take(f->world, f->engine->lock);
    const uint64_t attempts = tide_engine_account_of(f->engine, account)->attempts_max;
    tide_lock_drop(f->world, f->engine->lock);
    return attempts;
}

static const char *stalled(struct fixture *f, uint64_t job)
{
    static tide_error why;
    assert_int_equal(tide_job_ended(f->engine, job, &why), TIDE_UNKNOWN);
    return why.text;
}

/* E11.2, E6.1, E7.1. */
CASE(attempts_and_stalls_of_one_account_change_that_account_alone)
{
    load_settings(f, "retry: {backoff_start: 1ms, attempts_max: 3}\nstall.after: 1s\n"
                     "accounts:\n  bob: {retry.attempts_max: 2, stall.after: 1500ms}\n");
    fixture_open(f);
    const uint32_t ada = new_account(f, "ada", "gmail"), bob = new_account(f, "bob", "gmail");
    const uint32_t failing = DEFINE(f, "never", never, .context = NULL);
    const uint32_t silent = DEFINE(f, "sleep", sleeps, .attempts_max = 1);
    const uint64_t first[] = {
        ENQUEUE(f, .kind = failing, .account = ada), ENQUEUE(f, .kind = failing, .account = bob),
        ENQUEUE(f, .kind = silent, .account = ada), ENQUEUE(f, .kind = silent, .account = bob)};
    start(f);
    finish(f);
    assert_int_equal(sql(f, "SELECT attempts_max FROM job WHERE id = %" PRIu64, first[0]), 3);
    assert_int_equal(sql(f, "SELECT attempts_max FROM job WHERE id = %" PRIu64, first[1]), 2);
    assert_string_equal(stalled(f, first[2]), "no beat for 1000 ms");
    assert_string_equal(stalled(f, first[3]), "no beat for 1500 ms");

    write_settings(f, "retry: {backoff_start: 1ms, attempts_max: 3}\nstall.after: 1s\n"
                      "accounts:\n  bob: {retry.attempts_max: 4, stall.after: 1200ms}\n");
    UNTIL(budget_of(f, bob) == 4);
    assert_int_equal(budget_of(f, ada), 3);
    const uint64_t later = ENQUEUE(f, .kind = silent, .account = bob);
    finish(f);
    assert_string_equal(stalled(f, later), "no beat for 1200 ms");
}

static tide_status bears(tide_job *job, void *context, tide_error *err)
{
    return tide_job_enqueue(job, &(struct tide_spec){.kind = *(const uint32_t *)context}, err);
}

/* E11.2: a job that a job makes has its account, and so the settings of it. */
CASE(a_child_has_the_attempts_of_its_account)
{
    load_settings(f, "retry: {backoff_start: 1ms, attempts_max: 3}\n"
                     "accounts:\n  bob: {retry.attempts_max: 2}\n");
    fixture_open(f);
    const uint32_t bob = new_account(f, "bob", "gmail");
    uint32_t failing = DEFINE(f, "never", never, .context = NULL);
    const uint32_t parent = DEFINE(f, "bears", bears, .context = &failing);
    const uint64_t job = ENQUEUE(f, .kind = parent, .account = bob);
    start(f);
    finish(f);
    assert_int_equal(sql(f, "SELECT attempts_max FROM job WHERE id > %" PRIu64, job), 2);
}

static void count(void *arg)
{
    (void)__atomic_add_fetch((uint64_t *)arg, 1, __ATOMIC_RELAXED);
}

/* E11.1: whoever works by settings without asking for them each time is told. */
CASE(who_follows_the_settings_is_told_of_each_change)
{
    uint64_t told = 0;
    struct tide_settings_follower follower = {count, &told, NULL};
    load_settings(f, "");
    fixture_open(f);
    const uint32_t bob = new_account(f, "bob", "gmail");
    tide_engine_settings_follow(f->engine, &follower);
    start(f);
    write_settings(f, "accounts:\n  bob: {drive.poll: 5m}\n");
    UNTIL(__atomic_load_n(&told, __ATOMIC_RELAXED) == 1);
    assert_int_equal(tide_engine_setting_u64(f->engine, bob, TIDE_SET_DRIVE_POLL), 300000);
    write_settings(f, "# nothing else\naccounts:\n  bob: {drive.poll: 5m}\n");
    wait_for_looks(f, 3);
    assert_int_equal(__atomic_load_n(&told, __ATOMIC_RELAXED), 1);
    tide_engine_settings_unfollow(f->engine, &follower);
    write_settings(f, "");
    UNTIL(tide_engine_setting_u64(f->engine, bob, TIDE_SET_DRIVE_POLL) == 60000);
    assert_int_equal(__atomic_load_n(&told, __ATOMIC_RELAXED), 1);
}

CASE(alert_thresholds_of_one_account_change_that_account_alone)
{
    load_settings(f, "alerts.bad_warn: 90%\nalerts.bad_critical: 100%\n");
    fixture_open(f);
    const uint32_t accounts[2] = {new_account(f, "ada", "gmail"), new_account(f, "bob", "gmail")};
    start(f);
    tide_lock_take(f->world, f->engine->lock);
    for (int i = 0; i < 2; i++)
        OK(tide_alerts_items(f->engine->alerts, accounts[i], 950, 50, tide_world_now_ms(f->world)));
    tide_lock_drop(f->world, f->engine->lock);
    wait_for_looks(f, 2);
    assert_int_equal(sql(f, "SELECT count(*) FROM alert"), 0);
    write_settings(f, "alerts.bad_warn: 90%\nalerts.bad_critical: 100%\n"
                      "accounts.bob.alerts.bad_warn: 1%\n");
    UNTIL(sql(f, "SELECT count(*) FROM alert WHERE condition = 'bad_rate'") == 1);
    assert_int_equal(sql(f, "SELECT account FROM alert"), accounts[1]);
    write_settings(f, "alerts.bad_warn: 90%\nalerts.bad_critical: 100%\n");
    UNTIL(sql(f, "SELECT count(*) FROM alert") == 0);
}

struct lines {
    uint64_t refused, changed;
};

static void count_lines(void *arg, const char *line, size_t bytes)
{
    struct lines *lines = arg;
    if (memmem(line, bytes, "settings refused", 16) != NULL)
        (void)add(&lines->refused, 1);
    if (memmem(line, bytes, "setting changed", 15) != NULL)
        (void)add(&lines->changed, 1);
}

CASE(a_broken_file_is_told_once_and_changes_nothing)
{
    struct lines lines = {0};
    tide_log log;
    tide_log_init(&log, TIDE_LOG_INFO, TIDE_LOG_PLAIN, "test", count_lines, &lines);
    load_settings(f, "workers.count: 2\n");
    OK(tide_engine_open(
        &(struct tide_engine_options){
            .state_dir = f->dir, .world = f->world, .settings = f->settings, .log = &log},
        &f->engine, err));
    start(f);
    write_settings(f, "workers.count: 4\nworkers.cuont: 5\n");
    UNTIL(get(&lines.refused) == 1);
    wait_for_looks(f, 3);
    assert_int_equal(get(&lines.refused), 1);
    assert_int_equal(get(&lines.changed), 0);
    assert_int_equal(workers_wanted(f), 2);

    write_settings(f, "workers.count: 4\n");
    UNTIL(workers_wanted(f) == 4);
    UNTIL(get(&lines.changed) == 1);
    assert_int_equal(get(&lines.refused), 1);
}

/* RLD2, and E11.1's other half: what was set by hand is not lost by a reload. */
CASE(an_engine_without_a_file_never_looks_for_one)
{
    uint64_t count = 0;
    fixture_settings(f, "workers.count=3;workers.reserved_bulk=0;workers.reserved_interactive=0");
    fixture_open(f);
    uint32_t kind = DEFINE(f, "count", count_handler, .context = &count);
    start(f);
    enqueue_many(f, kind, 10);
    finish(f);
    bool changed[TIDE_SETTINGS_COUNT], restart[TIDE_SETTINGS_COUNT];
    OK(tide_engine_reload(f->engine, changed, restart, err));
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++)
        assert_false(changed[i] || restart[i]);
    assert_int_equal(workers_wanted(f), 3);
    assert_int_equal(look_ms(f), 0);
}
