/* plan.c - drive.plan: what differs becomes jobs (D2 to D5).
 *
 * Rows are read in one read transaction on a connection of its own, so the ledger's writer goes on
 * meanwhile; what is written is compared with the rows again (enqueue.c).  A plan with more new items
 * than one plan takes comes back when half of its actions have ended (D8). */
#include "base/check.h"
#include "base/json.h"
#include "drive/sync/inside.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    BUSY_MS = 200,    /* another plan of the drive runs */
    CROWDED_MS = 500, /* half of the last plan's actions have not ended */
    SOON_MS = 15000,  /* what is due so soon is waited for: files that are missing for 10 s (S13) */
};

struct planning {
    struct tide_drive_planned planned;
    struct tide_drive_loaded loaded;
    struct tide_drive_plan plan;
    struct tide_drive_progress progress;
    bool due;
};

static tide_status load_and_plan(struct planning *planning, tide_rows db, tide_error *err)
{
    tide_drive *drive = planning->planned.drive;
    const uint64_t now_ms = planning->planned.now_ms;
    TIDE_TRY(tide_drive_progress_read(db, &planning->progress, err));
    planning->due = tide_drive_plan_is_due(&planning->progress, now_ms);
    if (!planning->due)
        return TIDE_OK;
    struct tide_drive_plan_options options = {
        .mode = planning->planned.row->mode,
        .stamp = {.host = tide_text_of(drive->host), .unix_ms = now_ms}};
    TIDE_TRY(tide_drive_guard_read(db, now_ms, drive->mem, &options.guard, err));
    tide_status rc =
        tide_drive_load(db, TIDE_DRIVE_NEWS_MAX, now_ms, drive->mem, &planning->loaded, err);
    if (rc == TIDE_OK)
        rc = tide_drive_plan(&planning->loaded.trees, &options, drive->mem, &planning->plan, err);
    tide_drive_guard_done(&options.guard, drive->mem);
    return rc;
}

static tide_status read_and_plan(struct planning *planning, tide_error *err)
{
    struct tide_drive_reader *reader = NULL;
    bool own = false;
    TIDE_TRY(tide_drive_reader_take(planning->planned.drive, &reader, err));
    const tide_rows db = tide_drive_reader_rows(reader, planning->planned.row->number);
    tide_status rc = tide_rows_snapshot(db, "the rows of a drive", &own, err);
    if (rc == TIDE_OK)
        rc = load_and_plan(planning, db, err);
    tide_rows_snapshot_end(db, own);
    tide_drive_reader_give(planning->planned.drive, reader);
    return rc;
}

/* A file that is missing counts as deleted in a few seconds: planned again then, in the same cycle. */
static tide_status plan_later(struct planning *planning, tide_error *err)
{
    const struct tide_drive_planned *planned = &planning->planned;
    const uint64_t due_ms = planning->progress.due_ms, now_ms = planned->now_ms;
    struct tide_drive_request request;
    if (due_ms <= now_ms || due_ms - now_ms > SOON_MS)
        return TIDE_OK;
    tide_drive_plan_request(planned->row->number, &request);
    (void)snprintf(request.dedupe, sizeof request.dedupe, "drive:%" PRIu32 ":plan:later",
                   planned->row->number);
    const struct tide_spec spec = {.kind = planned->drive->plan_kind,
                                   .account = planned->row->account,
                                   .payload = request.payload,
                                   .dedupe = request.dedupe,
                                   .delay_ms = due_ms - now_ms + 100};
    return tide_job_enqueue(planned->job, &spec, err);
}

static tide_status plan_run(tide_drive *drive, tide_job *job, const struct tide_drive_row *row,
                            bool *more_out, tide_error *err)
{
    struct planning planning = {
        .planned = {.drive = drive,
                    .job = job,
                    .row = row,
                    .now_ms = tide_world_now_unix_ms(drive->options.world)}};
    tide_status rc = read_and_plan(&planning, err);
    if (rc == TIDE_OK && planning.due) {
        planning.planned.plan = &planning.plan;
        planning.planned.trees = &planning.loaded.trees;
        planning.planned.changed = planning.progress.changed;
        planning.planned.more = planning.loaded.more;
        rc = tide_drive_plan_write(&planning.planned, err);
        *more_out = planning.planned.more;
    }
    if (rc == TIDE_OK && !*more_out)
        rc = plan_later(&planning, err);
    tide_drive_plan_done(&planning.plan);
    tide_drive_loaded_done(&planning.loaded);
    return rc;
}

tide_status tide_drive_plan_job(tide_job *job, void *context, tide_error *err)
{
    tide_drive *drive = context;
    json_auto_t *payload = NULL;
    uint32_t number = 0;
    struct tide_drive_row row;
    struct tide_drive_user *user = NULL;
    bool more = false;
    TIDE_TRY(tide_drive_payload(job, &payload, &number, err));
    tide_status rc = tide_drive_use(drive, number, &row, &user, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc; /* it was removed */
    if (tide_drive_acts_open(drive, number) > TIDE_DRIVE_NEWS_MAX / 2)
        return tide_job_again(job, tide_job_now_ms(job) + CROWDED_MS);
    if (!tide_drive_turn_take(drive, number, TIDE_DRIVE_PLANNING))
        return tide_job_again(job, tide_job_now_ms(job) + BUSY_MS);
    rc = tide_drive_doubts(drive, job, &row, user, err);
    if (rc == TIDE_OK)
        rc = plan_run(drive, job, &row, &more, err);
    tide_drive_turn_give(drive, number, TIDE_DRIVE_PLANNING);
    if (rc == TIDE_OK && more)
        return tide_job_again(job, tide_job_now_ms(job) + CROWDED_MS);
    return rc;
}
