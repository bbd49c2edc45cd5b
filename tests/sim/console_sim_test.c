/* The Search Console backfill in a world that fails, against the cloud in a box.
 *
 * Goal: whatever crashes, and whenever, a day that can be seen has each of its rows once
 * (store.h CST1, CST2, CST5), and in the end every day is there.
 * Method: days are fetched in pages at whose borders rows get lost, through batches that
 * lose, double and reorder parts, over a network and a disk that fail, by a process that
 * crashes and comes again.  After every life the file is looked at by SQLite itself.  A last,
 * calm life ends what is left; then every day is fetched once more, whole and undisturbed,
 * and must be what was there. */
#include "sim.h"
#include "sim_cloud.h"

#include "base/check.h"
#include "console/console.h"
#include "system/system.h"
#include "console/dates.h"
#include "support/scale.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define USER    "ada@example.com"
#define TOKEN   "tok"
#define NAME    "console"
#define SITE    "sc-domain:example.com"
#define STATE   "/state"
#define ARCHIVE "/archive"

enum { ROWS = 61, DAYS = 6, HOUR_MS = 3600000, LIVES_MAX = 40 };

struct stage {
    uint64_t seed;
    tide_rng rng;
    tide_sim *sim;
    tide_world *world;
    tide_sim_cloud *cloud;
    tide_engine *engine;
    tide_console *console;
    tide_secrets *secrets;
    uint32_t row_limit;
    char from[16], to[16];
    uint64_t seen, readings_more;
};

static void stage_begin(struct stage *stage, uint64_t seed)
{
    tide_error err;
    struct tide_sim_options options = tide_sim_options_seeded(seed);
    stage->seed = seed;
    stage->rng = tide_rng_seeded(seed);
    stage->cloud = tide_sim_cloud_new(&(struct box_options){.seed = seed, .quota = BOX_QUOTA_OFF});
    options.net.provide = tide_sim_cloud_call;
    options.net.provide_arg = stage->cloud;
    stage->sim = tide_sim_new(seed, &options);
    stage->world = tide_sim_world(stage->sim);
    tide_sim_faults(stage->sim, false);
    box_cloud *box = tide_sim_cloud_box(stage->cloud);
    (void)tide_sim_cloud_user(stage->cloud, stage->sim, USER, TOKEN,
                              (struct box_mailbox_options){.messages = 1});
    TIDE_SIM_EXPECT(stage->sim, box_cloud_add_site(box, TIDE_TEXT(SITE), TIDE_TEXT(USER), ROWS,
                                                   &err) == TIDE_OK);
    tide_sim_cloud_fault(stage->cloud, stage->sim,
                         "{\"method\":\"webmasters.searchanalytics.query\",\"rate\":0.5,"
                         "\"fault\":\"list-shift\"}");
    tide_sim_cloud_fault(stage->cloud, stage->sim,
                         "{\"method\":\"batch\",\"rate\":0.1,\"fault\":\"batch-missing\"}");
    tide_sim_cloud_fault(stage->cloud, stage->sim,
                         "{\"method\":\"batch\",\"rate\":0.1,\"fault\":\"batch-extra\"}");
    tide_sim_cloud_fault(stage->cloud, stage->sim,
                         "{\"method\":\"batch\",\"rate\":0.2,\"fault\":\"batch-reorder\"}");
    stage->row_limit = 5 + (uint32_t)tide_rng_below(&stage->rng, ROWS);
    const int32_t today = tide_date_pacific(tide_sim_net_unix_ms(stage->sim));
    tide_date_format(today - 20, stage->from);
    tide_date_format(today - 20 + DAYS - 1, stage->to);
}

/* ---- a life ---- */

static tide_status put_secret(struct stage *stage, tide_error *err)
{
    char name[TIDE_SECRET_NAME_BYTES_MAX];
    tide_console_secret_name(NAME, name);
    return tide_sim_signed_in(stage->world, STATE "/secrets", name, TOKEN, &stage->secrets, err);
}

static tide_status life_open(struct stage *stage, tide_error *err)
{
    const struct tide_engine_options engine = {
        .state_dir = STATE, .world = stage->world, .workers = 8, .no_control_socket = true};
    tide_status rc = tide_engine_open(&engine, &stage->engine, err);
    if (rc == TIDE_OK)
        rc = put_secret(stage, err);
    const struct tide_console_options console = {.engine = stage->engine,
                                                 .world = stage->world,
                                                 .secrets = stage->secrets,
                                                 .archive_dir = ARCHIVE,
                                                 .workers = 1 + (unsigned)(stage->seed % 4)};
    if (rc == TIDE_OK)
        rc = tide_console_open(&console, tide_mem_heap(), &stage->console, err);
    static const char *const sites[] = {SITE};
    static const struct tide_system system = {
        .name = "console", .provider = "console", .account_put = tide_console_account_put};
    const struct tide_account_request request = {
        .name = NAME, .subjects = sites, .subjects_count = 1, .endpoint = "http://provider"};
    const struct tide_system_home home = {.world = stage->world,
                                          .engine = stage->engine,
                                          .secrets = stage->secrets,
                                          .archive_dir = ARCHIVE};
    if (rc == TIDE_OK)
        rc = tide_system_account_add(&system, &home, &request, err);
    return rc == TIDE_OK ? tide_engine_start(stage->engine, err) : rc;
}

static void life_close(struct stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    struct tide_console_state state = {.readings_more = 0};
    if (stage->console != NULL)
        tide_console_state(stage->console, &state);
    stage->readings_more += state.readings_more;
    const tide_status rc = tide_engine_close(stage->engine);
    if (rc != TIDE_OK)
        tide_sim_fail(stage->sim, "the engine did not close: %s", tide_status_name(rc));
    (void)tide_console_close(stage->console, &err);
    tide_secrets_close(stage->secrets);
    stage->engine = NULL;
    stage->console = NULL;
    stage->secrets = NULL;
}

static tide_status fetch(struct stage *stage, bool again, uint32_t row_limit, tide_error *err)
{
    struct tide_console_run run = {.site = SITE, .again = again, .row_limit = row_limit};
    memcpy(run.from, stage->from, sizeof run.from);
    memcpy(run.to, stage->to, sizeof run.to);
    const tide_status rc = tide_console_run(stage->console, &run, err);
    return rc == TIDE_OK ? tide_engine_wait(stage->engine, 24ull * HOUR_MS, err) : rc;
}

/* ---- what is stored ---- */

static const struct tide_console_set set = {TIDE_SC_WEB, 1u << TIDE_SC_QUERY | 1u << TIDE_SC_PAGE |
                                                             1u << TIDE_SC_COUNTRY |
                                                             1u << TIDE_SC_DEVICE};

static bool take_day(const struct tide_console_day_row *day, void *arg)
{
    struct stage *stage = arg;
    stage->seen++;
    if (!day->final || !day->counted || day->rows != ROWS || day->missing != 0)
        tide_sim_fail(stage->sim, "%s can be seen with %" PRIu64 " rows, %" PRIu64 " missing",
                      day->date, day->rows, day->missing);
    return true;
}

static bool take_top(const struct tide_console_top *top, void *arg)
{
    tide_buf *out = arg;
    return tide_buf_print(out, "%.*s %g %g %g\n", (int)top->key.bytes, top->key.data, top->clicks,
                          top->impressions, top->position) == TIDE_OK;
}

/* CST1, CST2 and CST5, and how many days there are; every key with its sums goes to `out`. */
static uint64_t look(struct stage *stage, tide_buf *out)
{
    const struct tide_console_store_options options = {
        .dir = ARCHIVE "/console", .site = SITE, .world = stage->world};
    tide_console_store *store = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    tide_buf problems;
    tide_buf_init(&problems, tide_mem_heap(), 1 << 16);
    stage->seen = 0;
    if (tide_console_store_open(&options, tide_mem_heap(), &store, &err) != TIDE_OK ||
        tide_console_store_check(store, &problems, &err) != TIDE_OK || problems.bytes > 0 ||
        tide_console_store_days(store, &set, NULL, NULL, take_day, stage, &err) != TIDE_OK)
        tide_sim_fail(stage->sim, "the file: %s %s", err.text, tide_buf_cstr(&problems));
    for (unsigned by = TIDE_SC_QUERY; out != NULL && by <= TIDE_SC_DEVICE; by++)
        TIDE_SIM_EXPECT(stage->sim,
                        tide_console_store_top(store, &set, (tide_sc_dimension)by, NULL, NULL,
                                               UINT32_MAX, take_top, out, &err) == TIDE_OK);
    (void)tide_console_store_close(store, NULL);
    tide_buf_done(&problems);
    return stage->seen;
}

static void live(struct stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_sim_faults(stage->sim, true);
    tide_sim_crash_after(stage->sim, 500 + tide_rng_below(&stage->rng, 12000),
                         TIDE_SIM_CRASH_SEEDED);
    const tide_status rc = life_open(stage, &err);
    if (rc == TIDE_OK)
        (void)fetch(stage, false, stage->row_limit, &err); /* may fail; it must lose nothing */
    life_close(stage);
    tide_sim_crash_after(stage->sim, 0, TIDE_SIM_CRASH_SEEDED);
    tide_sim_net_settle(stage->sim);
    tide_sim_reboot(stage->sim);
    tide_sim_faults(stage->sim, false);
    (void)look(stage, NULL);
}

static void calm(struct stage *stage, bool again, uint32_t row_limit, tide_buf *out)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = life_open(stage, &err);
    if (rc == TIDE_OK) /* a refusal that was none of the server's may have halted it */
        (void)tide_engine_resume(stage->engine, 1, NULL);
    if (rc == TIDE_OK)
        rc = fetch(stage, again, row_limit, &err);
    if (rc != TIDE_OK)
        tide_sim_fail(stage->sim, "a calm life: %s, %s", tide_status_name(rc), err.text);
    life_close(stage);
    tide_sim_crash(stage->sim, TIDE_SIM_CRASH_POWER); /* what is left then is durable */
    tide_sim_reboot(stage->sim);
    const uint64_t days = look(stage, out);
    if (days != DAYS)
        tide_sim_fail(stage->sim, "%" PRIu64 " of %d days", days, (int)DAYS);
}

static void one_world(uint64_t seed, uint64_t *crashes, uint64_t *readings_more)
{
    struct stage *stage = calloc(1, sizeof *stage);
    tide_buf first;
    tide_buf second;
    tide_buf_init(&first, tide_mem_heap(), 1 << 24);
    tide_buf_init(&second, tide_mem_heap(), 1 << 24);
    stage_begin(stage, seed);
    for (uint64_t lives = 1 + seed % 5; lives > 0; lives--)
        live(stage);
    calm(stage, false, stage->row_limit, &first);
    calm(stage, true, 0, &second);
    if (!tide_text_equal(tide_buf_text(&first), tide_buf_text(&second)))
        tide_sim_fail(stage->sim, "a day that was fetched whole is another");
    *crashes += tide_sim_stats(stage->sim).crashes;
    *readings_more += stage->readings_more;
    tide_buf_done(&first);
    tide_buf_done(&second);
    tide_sim_free(stage->sim);
    tide_sim_cloud_free(stage->cloud);
    free(stage);
}

TEST(no_crash_loses_or_doubles_a_row)
{
    uint64_t crashes = 0;
    uint64_t readings_more = 0;
    const char *only = getenv("TIDE_TEST_SEED");
    uint64_t first = 1;
    uint64_t last = scaled_at_least(60, 10);
    if (only != NULL && tide_text_to_u64(tide_text_of(only), &first))
        last = first;
    for (uint64_t seed = first; seed <= last; seed++)
        one_world(seed, &crashes, &readings_more);
    print_message("%" PRIu64 " crashes, %" PRIu64 " readings more\n", crashes, readings_more);
    if (only == NULL) {
        assert_true(crashes > last);
        assert_true(readings_more > last);
    }
}
