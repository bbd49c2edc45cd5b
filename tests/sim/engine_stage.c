#include "engine_stage.h"

void engine_stage_world(struct engine_stage *stage, uint64_t seed, const char *const *flags,
                        size_t flags_count)
{
    const struct tide_sim_options options = {.yield_permille = 100};
    const struct tide_settings_sources sources = {.flags = flags, .flags_count = flags_count};
    tide_error err = {TIDE_OK, 0, ""};
    stage->sim = tide_sim_new(seed, &options);
    stage->world = tide_sim_world(stage->sim);
    if (tide_settings_load(stage->world, &sources, tide_mem_heap(), &stage->settings, &err) !=
        TIDE_OK)
        fail_msg("%s", err.text);
}

void engine_stage_engine(struct engine_stage *stage, const struct tide_kind *kind)
{
    tide_error err = {TIDE_OK, 0, ""};
    const struct tide_engine_options engine = {.state_dir = "/state",
                                               .workers = 3,
                                               .world = stage->world,
                                               .settings = stage->settings,
                                               .no_control_socket = true};
    assert_int_equal(tide_engine_open(&engine, &stage->engine, &err), TIDE_OK);
    assert_int_equal(tide_engine_kind(stage->engine, kind, &stage->kind, &err), TIDE_OK);
    const tide_status rc =
        tide_engine_account(stage->engine, "a@example.org", "default", &stage->account, &err);
    assert_true(rc == TIDE_OK || rc == TIDE_EXISTS);
}

void engine_stage_open(struct engine_stage *stage, const struct tide_kind *kind)
{
    engine_stage_world(stage, 7, NULL, 0);
    engine_stage_engine(stage, kind);
}

void engine_stage_start(struct engine_stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    assert_int_equal(tide_engine_start(stage->engine, &err), TIDE_OK);
}

void engine_stage_add(struct engine_stage *stage, const char *payload)
{
    const struct tide_spec spec = {
        .kind = stage->kind, .account = stage->account, .payload = payload};
    tide_error err = {TIDE_OK, 0, ""};
    assert_int_equal(tide_enqueue(stage->engine, &spec, 1, NULL, &err), TIDE_OK);
}

void engine_stage_close(struct engine_stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    assert_int_equal(tide_engine_wait(stage->engine, 3600 * 1000, &err), TIDE_OK);
    assert_int_equal(tide_engine_close(stage->engine), TIDE_OK);
    engine_stage_free(stage);
}

void engine_stage_free(struct engine_stage *stage)
{
    tide_settings_free(stage->settings);
    tide_sim_free(stage->sim);
}

void engine_stage_pass(const struct engine_stage *stage, uint64_t seconds)
{
    (void)tide_world_sleep_until(stage->world, tide_world_now_us(stage->world) + seconds * 1000000,
                                 NULL);
}

static bool note_alert(const struct tide_alert_row *row, void *arg)
{
    struct found_alerts *found = arg;
    found->count++;
    found->row = *row;
    return true;
}

tide_status engine_stage_look(tide_transaction *transaction, void *found, tide_error *err)
{
    *(struct found_alerts *)found = (struct found_alerts){.count = 0};
    return tide_ledger_alerts(transaction->engine->ledger, note_alert, found, err);
}

struct found_alerts engine_stage_alerts_after(struct engine_stage *stage, uint64_t seconds)
{
    struct found_alerts found = {.count = 0};
    tide_error err = {TIDE_OK, 0, ""};
    engine_stage_pass(stage, seconds);
    assert_int_equal(tide_transact(stage->engine, engine_stage_look, &found, &err), TIDE_OK);
    return found;
}
