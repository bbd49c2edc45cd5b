/* Goal: a user is told of an alert once an hour at most and of its end once, over crashes between
 * sending and storing that it was sent, and over servers that refuse (E6.4, E1.9).
 * Method: an engine in the simulated world whose account fills its budget and is emptied again; a
 * program whose function for notices keeps what it gets, fails as the test says, or dies. */
#include "engine_stage.h"

#include "engine/control/metrics.h"
#include "ledger/notices.h"
#include "ledger/rows.h"
#include "support/scale.h"

#include <inttypes.h>
#include <sqlite3.h>

enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 24 * HOUR_S, KEPT_MAX = 64 };

struct kept {
    char tag[33];
    int level;
    bool still, again;
    uint64_t since_unix_ms, at_unix_ms, ended_unix_ms;
    char account[64], condition[49];
};

struct inbox {
    struct engine_stage *stage;
    struct kept kept[KEPT_MAX]; /* what arrived */
    unsigned count, calls;
    tide_status answer; /* of the next calls */
    unsigned answers;   /* so many of them; then TIDE_OK */
    bool arrives;       /* also if the answer is a failure */
    unsigned dies;      /* so many calls end with the process */
    uint64_t takes_ms;
};

static tide_status deliver(void *arg, const struct tide_notice *notice,
                           const struct tide_cancel *cancel, tide_error *err)
{
    struct inbox *inbox = arg;
    tide_world *world = inbox->stage->world;
    inbox->calls++;
    if (inbox->takes_ms > 0 &&
        tide_world_sleep_until(world, tide_world_now_us(world) + inbox->takes_ms * 1000, cancel) !=
            TIDE_OK)
        return tide_error_set(err, TIDE_CANCELED, "canceled");
    const bool fails = inbox->answers > 0;
    if (fails)
        inbox->answers--;
    if (!fails || inbox->arrives) {
        assert_true(inbox->count < KEPT_MAX);
        struct kept *kept = &inbox->kept[inbox->count++];
        *kept = (struct kept){.level = notice->level,
                              .still = notice->still,
                              .again = notice->again,
                              .since_unix_ms = notice->since_unix_ms,
                              .ended_unix_ms = notice->ended_unix_ms,
                              .at_unix_ms = tide_world_now_unix_ms(world)};
        (void)snprintf(kept->tag, sizeof kept->tag, "%s", notice->tag);
        (void)snprintf(kept->account, sizeof kept->account, "%s", notice->account);
        (void)snprintf(kept->condition, sizeof kept->condition, "%s", notice->condition);
    }
    if (inbox->dies > 0) {
        inbox->dies--;
        tide_sim_crash(inbox->stage->sim, TIDE_SIM_CRASH_KILL);
        return TIDE_STOPPED;
    }
    return fails ? tide_error_set(err, inbox->answer, "451 try again later") : TIDE_OK;
}

static tide_status handle(tide_job *job, void *context, tide_error *err)
{
    (void)context;
    (void)err;
    (void)tide_job_items(job);
    return TIDE_OK;
}

static const struct tide_kind kind = {.name = "work", .handler = handle, .items = true};
static const char *const flags[] = {"alerts.mail.to=ada@example.org",
                                    "alerts.mail.server=smtp://localhost",
                                    "alerts.metadata_budget=1MiB"};

static void start(struct engine_stage *stage, struct inbox *inbox)
{
    const struct tide_notifier notifier = {.send = deliver, .arg = inbox};
    tide_error err = {TIDE_OK, 0, ""};
    engine_stage_engine(stage, &kind);
    assert_int_equal(tide_engine_notifier(stage->engine, &notifier, &err), TIDE_OK);
    engine_stage_start(stage);
}

static void open_stage(struct engine_stage *stage, struct inbox *inbox, uint64_t seed)
{
    *inbox = (struct inbox){.stage = stage};
    engine_stage_world(stage, seed, flags, 3);
    start(stage, inbox);
}

static tide_status run_sql(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)err;
    assert_int_equal(sqlite3_exec(tide_tx_sqlite(transaction->tx), arg, NULL, NULL, NULL),
                     SQLITE_OK);
    return TIDE_OK;
}

static void change(struct engine_stage *stage, char *sql)
{
    tide_error err = {TIDE_OK, 0, ""};
    engine_stage_add(stage, "{\"items\":[\"a\"]}"); /* used: it is measured again */
    assert_int_equal(tide_transact(stage->engine, run_sql, sql, &err), TIDE_OK);
}

static char fill_sql[] =
    "INSERT INTO bad (account, kind, item, state, first_seen, last_tried, retries, reason)"
    " SELECT id, 1, 'item', 1, 1, 1, 0, printf('%.*c', 600 << 10, 'x') FROM account";
static char empty_sql[] = "DELETE FROM bad";

/* Until the alert is there, or gone. */
static void wait_alert(struct engine_stage *stage, unsigned count)
{
    for (int i = 0; i < 30; i++)
        if (engine_stage_alerts_after(stage, MINUTE_S).count == count)
            return;
    fail_msg("no change of the alert");
}

static void raise_alert(struct engine_stage *stage)
{
    change(stage, fill_sql);
    wait_alert(stage, 1);
    engine_stage_pass(stage, 5);
}

static void clear_alert(struct engine_stage *stage)
{
    change(stage, empty_sql);
    wait_alert(stage, 0);
    engine_stage_pass(stage, 5);
}

static void hours_apart(const struct inbox *inbox)
{
    for (unsigned i = 1; i < inbox->count; i++)
        if (strcmp(inbox->kept[i].tag, inbox->kept[i - 1].tag) != 0)
            assert_true(inbox->kept[i].at_unix_ms >=
                        inbox->kept[i - 1].at_unix_ms + HOUR_S * (uint64_t)1000);
}

TEST(one_notice_when_it_comes_and_one_when_it_has_ended)
{
    struct engine_stage stage;
    struct inbox inbox;
    open_stage(&stage, &inbox, 7);
    engine_stage_pass(&stage, 30);
    assert_int_equal(inbox.count, 0);
    raise_alert(&stage);
    assert_int_equal(inbox.count, 1);
    assert_int_equal(inbox.kept[0].level, 1);
    assert_string_equal(inbox.kept[0].account, "a@example.org");
    assert_string_equal(inbox.kept[0].condition, "metadata");
    assert_true(engine_stage_alerts_after(&stage, 1).row.notified_unix_ms > 0);
    /* It ends within the hour: the all-clear waits for the rest of it, and says when it ended. */
    clear_alert(&stage);
    const uint64_t about_ms = tide_world_now_unix_ms(stage.world);
    assert_int_equal(inbox.count, 1);
    engine_stage_pass(&stage, HOUR_S);
    assert_int_equal(inbox.count, 2);
    assert_int_equal(inbox.kept[1].level, 0);
    assert_true(inbox.kept[1].ended_unix_ms <= about_ms);
    assert_true(inbox.kept[1].ended_unix_ms + 70 * 1000 >= about_ms);
    assert_int_equal(inbox.kept[1].since_unix_ms, inbox.kept[0].since_unix_ms);
    engine_stage_pass(&stage, 3 * DAY_S);
    assert_int_equal(inbox.count, 2);
    hours_apart(&inbox);
    engine_stage_close(&stage);
}

TEST(one_that_comes_and_goes_is_told_of_once_an_hour)
{
    struct engine_stage stage;
    struct inbox inbox;
    open_stage(&stage, &inbox, 8);
    for (int i = 0; i < 12; i++) {
        raise_alert(&stage);
        clear_alert(&stage);
    }
    engine_stage_pass(&stage, 2 * HOUR_S);
    assert_true(inbox.count >= 3);
    assert_int_equal(inbox.kept[inbox.count - 1].level, 0); /* the user knows that it is over */
    hours_apart(&inbox);
    engine_stage_close(&stage);
}

/* Then the engine does not look by itself: the process that watches the clock reports the change. */
TEST(a_watched_clock_that_is_set_makes_a_notice_due)
{
    struct engine_stage stage;
    struct inbox inbox;
    open_stage(&stage, &inbox, 17);
    tide_engine_clock_watched(stage.engine);
    raise_alert(&stage);
    clear_alert(&stage);
    assert_int_equal(inbox.count, 1);
    tide_sim_wall_jump(stage.sim, HOUR_S * (int64_t)1000);
    engine_stage_pass(&stage, 20 * MINUTE_S);
    assert_int_equal(inbox.count, 1);
    tide_engine_clock_changed(stage.engine);
    engine_stage_pass(&stage, 5);
    assert_int_equal(inbox.count, 2);
    assert_int_equal(inbox.kept[1].level, 0);
    engine_stage_close(&stage);
}

TEST(one_that_lasts_is_told_of_again_the_next_day)
{
    struct engine_stage stage;
    struct inbox inbox;
    open_stage(&stage, &inbox, 9);
    raise_alert(&stage);
    engine_stage_pass(&stage, DAY_S - 15 * MINUTE_S);
    assert_int_equal(inbox.count, 1);
    engine_stage_pass(&stage, 30 * MINUTE_S);
    assert_int_equal(inbox.count, 2);
    assert_true(inbox.kept[1].still);
    clear_alert(&stage);
    engine_stage_close(&stage);
}

TEST(the_hour_outlives_the_process)
{
    struct engine_stage stage;
    struct inbox inbox;
    open_stage(&stage, &inbox, 10);
    raise_alert(&stage);
    assert_int_equal(inbox.count, 1);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tide_engine_close(stage.engine), TIDE_OK);
        start(&stage, &inbox);
        engine_stage_pass(&stage, 4 * MINUTE_S);
        assert_int_equal(inbox.count, 1);
    }
    clear_alert(&stage);
    engine_stage_pass(&stage, 10 * MINUTE_S);
    assert_int_equal(inbox.count, 1);
    engine_stage_pass(&stage, HOUR_S);
    assert_int_equal(inbox.count, 2);
    hours_apart(&inbox);
    engine_stage_close(&stage);
}

TEST(a_crash_between_sending_and_storing_repeats_the_same_notice_once)
{
    for (uint64_t seed = 1; seed <= scaled_at_least(8, 2); seed++) {
        struct engine_stage stage;
        struct inbox inbox;
        open_stage(&stage, &inbox, seed);
        inbox.dies = 1;
        change(&stage, fill_sql);
        while (inbox.count == 0 && !tide_world_dead(stage.world))
            engine_stage_pass(&stage, MINUTE_S);
        assert_int_equal(inbox.count, 1);
        (void)tide_engine_close(stage.engine);
        tide_sim_reboot(stage.sim);
        start(&stage, &inbox);
        engine_stage_pass(&stage, 5); /* at once: no other process could have it */
        assert_int_equal(inbox.count, 2);
        assert_string_equal(inbox.kept[1].tag, inbox.kept[0].tag);
        assert_true(inbox.kept[1].again);
        assert_int_equal(inbox.kept[1].since_unix_ms, inbox.kept[0].since_unix_ms);
        engine_stage_pass(&stage, 10 * HOUR_S);
        assert_int_equal(inbox.count, 2);
        clear_alert(&stage);
        assert_int_equal(inbox.count, 3);
        assert_int_equal(inbox.kept[2].level, 0);
        assert_string_not_equal(inbox.kept[2].tag, inbox.kept[0].tag);
        engine_stage_close(&stage);
    }
}

TEST(a_crash_at_any_step_loses_no_notice)
{
    for (uint64_t seed = 1; seed <= scaled_at_least(20, 4); seed++) {
        struct engine_stage stage;
        struct inbox inbox;
        tide_error err = {TIDE_OK, 0, ""};
        open_stage(&stage, &inbox, seed);
        assert_int_equal(tide_transact(stage.engine, run_sql, fill_sql, &err), TIDE_OK);
        assert_int_equal(tide_engine_close(stage.engine), TIDE_OK);
        /* A start measures it: alert, intent, notice and outcome are within a few hundred steps. */
        start(&stage, &inbox);
        tide_sim_crash_after(stage.sim, 1 + seed * 19, TIDE_SIM_CRASH_SEEDED);
        while (!tide_world_dead(stage.world) && inbox.calls < 2)
            engine_stage_pass(&stage, HOUR_S);
        (void)tide_engine_close(stage.engine);
        tide_sim_crash_after(stage.sim, 0, TIDE_SIM_CRASH_SEEDED);
        tide_sim_reboot(stage.sim);
        start(&stage, &inbox);
        engine_stage_pass(&stage, 2 * MINUTE_S);
        assert_in_range(inbox.count, 1, 2);
        if (inbox.count == 2)
            assert_string_equal(inbox.kept[1].tag, inbox.kept[0].tag);
        engine_stage_pass(&stage, 5 * HOUR_S);
        assert_in_range(inbox.count, 1, 2);
        engine_stage_close(&stage);
    }
}

TEST(a_server_that_refuses_for_a_while_is_asked_again_with_pauses)
{
    struct engine_stage stage;
    struct inbox inbox;
    open_stage(&stage, &inbox, 11);
    inbox.answer = TIDE_SERVER;
    inbox.answers = 2;
    raise_alert(&stage);
    engine_stage_pass(&stage, 10 * MINUTE_S);
    assert_int_equal(inbox.calls, 3);
    assert_int_equal(inbox.count, 1);
    assert_int_equal(engine_stage_alerts_after(&stage, 1).count, 1); /* it is no news */
    engine_stage_close(&stage);
}

/* The alert that notices cannot be sent. */
static bool is_in_metrics(struct engine_stage *stage)
{
    tide_auto_buf text = tide_buf_heap(TIDE_METRICS_BYTES_MAX);
    tide_error err = {TIDE_OK, 0, ""};
    assert_int_equal(tide_metrics_text(stage->engine, &text, &err), TIDE_OK);
    return strstr(tide_buf_cstr(&text),
                  "\ntidemark_alerts{condition=\"notices\",severity=\"warn\"} 1\n") != NULL;
}

TEST(a_server_that_refuses_for_good_is_an_alert_of_its_own_until_it_takes_one)
{
    struct engine_stage stage;
    struct inbox inbox;
    open_stage(&stage, &inbox, 12);
    inbox.answer = TIDE_PERMANENT;
    inbox.answers = 2;
    change(&stage, fill_sql);
    wait_alert(&stage, 2);
    struct found_alerts found = engine_stage_alerts_after(&stage, 1);
    assert_int_equal(found.count, 2);
    assert_int_equal(inbox.count, 0);
    assert_true(strcmp(found.row.condition, TIDE_NOTICES_CONDITION) != 0 ||
                strstr(found.row.text, "451 try again later") != NULL);
    assert_true(is_in_metrics(&stage));
    engine_stage_pass(&stage, 40 * MINUTE_S);
    assert_int_equal(inbox.calls, 3);
    assert_int_equal(inbox.count, 1); /* of the account, and none of the mail */
    assert_string_equal(inbox.kept[0].condition, "metadata");
    assert_int_equal(engine_stage_alerts_after(&stage, 1).count, 1);
    assert_false(is_in_metrics(&stage));
    engine_stage_close(&stage);
}

TEST(an_unknown_outcome_is_repeated_with_the_same_tag)
{
    struct engine_stage stage;
    struct inbox inbox;
    open_stage(&stage, &inbox, 13);
    inbox.answer = TIDE_UNKNOWN;
    inbox.answers = 1;
    inbox.arrives = true;
    raise_alert(&stage);
    engine_stage_pass(&stage, 5 * MINUTE_S);
    assert_int_equal(inbox.count, 2);
    assert_string_equal(inbox.kept[1].tag, inbox.kept[0].tag);
    assert_true(inbox.kept[1].again);
    engine_stage_pass(&stage, 5 * HOUR_S);
    assert_int_equal(inbox.count, 2);
    engine_stage_close(&stage);
}

TEST(a_stop_does_not_wait_for_a_server_that_does_not_answer)
{
    struct engine_stage stage;
    struct inbox inbox;
    open_stage(&stage, &inbox, 14);
    inbox.takes_ms = HOUR_S * (uint64_t)1000;
    raise_alert(&stage);
    assert_int_equal(inbox.calls, 1);
    const uint64_t before_ms = tide_world_now_ms(stage.world);
    assert_int_equal(tide_engine_close(stage.engine), TIDE_OK);
    assert_true(tide_world_now_ms(stage.world) - before_ms <= 6000);
    inbox.takes_ms = 0;
    start(&stage, &inbox); /* and nothing is lost */
    engine_stage_pass(&stage, 5);
    assert_int_equal(inbox.count, 1);
    engine_stage_close(&stage);
}

/* A command that ends a moment after the alert came: the stop waits for the notice. */
TEST(an_alert_of_the_last_moment_is_told_of_before_the_stop)
{
    struct engine_stage stage;
    struct inbox inbox;
    tide_error err = {TIDE_OK, 0, ""};
    open_stage(&stage, &inbox, 15);
    assert_int_equal(tide_transact(stage.engine, run_sql, fill_sql, &err), TIDE_OK);
    assert_int_equal(tide_engine_close(stage.engine), TIDE_OK);
    inbox.takes_ms = 800;
    start(&stage, &inbox);
    while (engine_stage_alerts_after(&stage, 0).count == 0)
        engine_stage_pass(&stage, 0);
    assert_int_equal(inbox.count, 0);
    assert_int_equal(tide_engine_close(stage.engine), TIDE_OK);
    assert_int_equal(inbox.count, 1);
    engine_stage_free(&stage);
}

TEST(nothing_is_sent_while_no_setting_says_where)
{
    struct engine_stage stage;
    struct inbox inbox = {.stage = &stage};
    engine_stage_world(&stage, 16, flags + 2, 1);
    start(&stage, &inbox);
    raise_alert(&stage);
    engine_stage_pass(&stage, 2 * HOUR_S);
    assert_int_equal(inbox.calls, 0);
    engine_stage_close(&stage);
}
