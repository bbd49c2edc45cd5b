/* Goal: an archive that takes nothing, because its disk is full or fails, costs the jobs of mail no
 * attempt, and the sync comes back once the cause is gone (E7.2, M4).
 * Method: a mailbox is synced; then labels change and a message is deleted at the server, and one
 * function of the archive fails: the one that mail.plan gives names of labels to, or one of the
 * two that mail.history gives changes to.  Ten minutes pass.  No job has paid an attempt
 * or failed.  Then the archive works again, in another process as after any failure of a disk,
 * and everything is there. */
#include "sim.h"
#include "sim_mail.h"
#include "support/wrap.h"

#include "base/json.h"
#include "mail/archive/archive.h"
#include "mail/mail.h"
#include "support/test.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <string.h>

#define USER    "ada@example.com"
#define TOKEN   "tok"
#define STATE   "/state"
#define ARCHIVE "/archive"

enum { MESSAGES = 6, WAIT_MS = 600000 };

enum failing { FAILS_NOTHING, FAILS_LABEL_NAME, FAILS_LABELS, FAILS_GONE };

/* What fails now, how, and how often it did. */
static enum failing failing;
static tide_status failure;
static uint64_t failed;

static bool fails(enum failing which, tide_error *err)
{
    if (failing != which)
        return false;
    failed++;
    (void)tide_error_set(err, failure, "the disk of the archive takes nothing");
    return true;
}

WRAP(tide_status, tide_archive_label_name, tide_archive *archive, tide_text id, tide_text name,
     tide_text type, uint64_t *ticket_out, tide_error *err)
{
    return fails(FAILS_LABEL_NAME, err)
               ? failure
               : __real_tide_archive_label_name(archive, id, name, type, ticket_out, err);
}

WRAP(tide_status, tide_archive_labels, tide_archive *archive,
     const struct tide_label_change *changes, size_t count, uint64_t *ticket_out, tide_error *err)
{
    return fails(FAILS_LABELS, err)
               ? failure
               : __real_tide_archive_labels(archive, changes, count, ticket_out, err);
}

WRAP(tide_status, tide_archive_gone, tide_archive *archive, tide_text gmail_id, int64_t at_ms,
     uint64_t *ticket_out, tide_error *err)
{
    return fails(FAILS_GONE, err)
               ? failure
               : __real_tide_archive_gone(archive, gmail_id, at_ms, ticket_out, err);
}

struct stage {
    tide_sim *sim;
    tide_world *world;
    tide_sim_cloud *cloud;
    box_mailbox *mailbox;
    struct tide_sim_mail life;
};

static void change(struct stage *stage, uint32_t slot, const char *path, const char *more)
{
    char id[BOX_ID_TEXT_BYTES];
    char body[200];
    box_id_text(box_mailbox_at(stage->mailbox, slot)->id, id);
    (void)snprintf(body, sizeof body, "{\"user\":\"" USER "\",\"ids\":[\"%s\"]%s}", id, more);
    json_decref(tide_sim_cloud_control(stage->cloud, stage->sim, "POST", path, tide_text_of(body)));
}

static void stage_begin(struct stage *stage)
{
    *stage = (struct stage){.cloud = tide_sim_cloud_new(&(struct box_options){.seed = 7})};
    struct tide_sim_options options = {.yield_permille = 50};
    options.net.provide = tide_sim_cloud_call;
    options.net.provide_arg = stage->cloud;
    stage->sim = tide_sim_new(7, &options);
    stage->world = tide_sim_world(stage->sim);
    stage->mailbox =
        tide_sim_cloud_user(stage->cloud, stage->sim, USER, TOKEN,
                            (struct box_mailbox_options){.messages = MESSAGES, .seed = 7});
}

static void life_begin(struct stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    const struct tide_sim_mail_options options = {.world = stage->world,
                                                  .state_dir = STATE,
                                                  .archive_dir = ARCHIVE,
                                                  .email = USER,
                                                  .token = TOKEN,
                                                  .workers = 3};
    assert_int_equal(tide_sim_mail_open(&stage->life, &options, &err), TIDE_OK);
    assert_int_equal(tide_engine_start(stage->life.engine, &err), TIDE_OK);
}

static void life_end(struct stage *stage)
{
    tide_sim_mail_close(&stage->life, stage->sim);
}

static tide_status sync_wait(struct stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    const struct tide_mail_run run = {.email = USER, .slice_days = 2000};
    assert_int_equal(tide_mail_run(stage->life.mail, &run, &err), TIDE_OK);
    return tide_engine_wait(stage->life.engine, WAIT_MS, &err);
}

struct paid {
    uint64_t attempts, failed;
};

static tide_status look(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct paid *paid = arg;
    sqlite3_stmt *stmt = NULL;
    (void)err;
    assert_int_equal(sqlite3_prepare_v2(tide_transaction_sqlite(transaction),
                                        "SELECT sum(attempts), sum(state = 3) FROM job", -1, &stmt,
                                        NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    paid->attempts = (uint64_t)sqlite3_column_int64(stmt, 0);
    paid->failed = (uint64_t)sqlite3_column_int64(stmt, 1);
    (void)sqlite3_finalize(stmt);
    return TIDE_OK;
}

static struct paid paid_by(struct stage *stage)
{
    struct paid paid;
    tide_error err = {TIDE_OK, 0, ""};
    assert_int_equal(tide_transact(stage->life.engine, look, &paid, &err), TIDE_OK);
    return paid;
}

static void archive_is_the_mailbox(struct stage *stage)
{
    char dir[4096];
    tide_archive *archive = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    tide_mail_dir(ARCHIVE, USER, dir, sizeof dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = USER, .world = stage->world, .read_only = true};
    assert_int_equal(tide_archive_open(&options, tide_mem_heap(), &archive, &err), TIDE_OK);
    for (uint32_t slot = 0; slot < MESSAGES; slot++) {
        char id[BOX_ID_TEXT_BYTES];
        struct tide_stored stored;
        tide_buf labels;
        box_id_text(box_mailbox_at(stage->mailbox, slot)->id, id);
        tide_buf_init(&labels, NULL, 4096);
        assert_int_equal(tide_archive_find(archive, tide_text_of(id), &stored, &err), TIDE_OK);
        assert_int_equal(stored.gone, slot == 1);
        assert_int_equal(tide_archive_labels_of(archive, &stored, &labels, &err), TIDE_OK);
        if (slot == 0)
            assert_non_null(strstr(tide_buf_cstr(&labels), "STARRED\n"));
        tide_buf_done(&labels);
    }
    assert_int_equal(tide_archive_close(archive, &err), TIDE_OK);
}

static void live(enum failing which, tide_status how)
{
    struct stage stage;
    stage_begin(&stage);
    life_begin(&stage);
    assert_int_equal(sync_wait(&stage), TIDE_OK);
    const struct paid before = paid_by(&stage);
    change(&stage, 0, "/_cloud/mail/label", ",\"remove\":[\"STARRED\"]");
    change(&stage, 0, "/_cloud/mail/label", ",\"add\":[\"STARRED\"]");
    change(&stage, 1, "/_cloud/mail/delete", "");
    failing = which;
    failure = how;
    failed = 0;
    assert_int_equal(sync_wait(&stage), TIDE_TIMEOUT);
    failing = FAILS_NOTHING;
    assert_true(failed > 0);
    const struct paid after = paid_by(&stage);
    assert_int_equal(after.failed, 0);
    assert_int_equal(after.attempts, before.attempts);
    life_end(&stage);
    life_begin(&stage);
    assert_int_equal(sync_wait(&stage), TIDE_OK);
    assert_int_equal(paid_by(&stage).failed, 0);
    life_end(&stage);
    archive_is_the_mailbox(&stage);
    tide_sim_free(stage.sim);
    tide_sim_cloud_free(stage.cloud);
}

TEST(a_full_disk_costs_a_plan_no_attempt)
{
    live(FAILS_LABEL_NAME, TIDE_DISK_FULL);
    live(FAILS_LABEL_NAME, TIDE_IO);
}

TEST(a_full_disk_costs_a_history_no_attempt)
{
    live(FAILS_LABELS, TIDE_DISK_FULL);
    live(FAILS_LABELS, TIDE_IO);
    live(FAILS_GONE, TIDE_DISK_FULL);
    live(FAILS_GONE, TIDE_IO);
}
