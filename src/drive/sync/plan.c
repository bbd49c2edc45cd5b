/* plan.c - drive.plan: what differs becomes jobs (D2 to D5).
 *
 * Rows are read in one read transaction on a connection of its own, so the ledger's writer goes on
 * meanwhile; what is written is compared with the rows again (enqueue.c).  More new items than one plan
 * takes are planned slice by slice, each by a job of its own, when half of the actions before have
 * ended (D8).  A slice begins after the last one and not with what is still new: that may be held. */
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
    struct tide_drive_slice from;
    uint64_t first_changed; /* of the first slice; 0: this is it */
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
    tide_status rc = tide_drive_load_from(db, &planning->from, TIDE_DRIVE_NEWS_MAX, now_ms,
                                          drive->mem, &planning->loaded, err);
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

/* What is new after this slice; or, with `again`, all that is left. */
static tide_status plan_on(struct planning *planning, tide_error *err)
{
    const struct tide_drive_planned *planned = &planning->planned;
    const struct tide_drive_slice to = planning->loaded.to;
    char payload[160];
    if (planning->loaded.more)
        (void)snprintf(payload, sizeof payload,
                       "{\"drive\":%" PRIu32 ",\"item\":%" PRIu64 ",\"row\":%" PRIu64
                       ",\"changed\":%" PRIu64 ",\"again\":%s}",
                       planned->row->number, to.item, to.row, planned->changed,
                       planned->again ? "true" : "false");
    else
        (void)snprintf(payload, sizeof payload, "{\"drive\":%" PRIu32 "}", planned->row->number);
    const struct tide_spec spec = {
        .kind = planned->drive->plan_kind,
        .account = planned->row->account,
        .payload = payload,
        .delay_ms = planned->actions > 0 || !planning->loaded.more ? CROWDED_MS : 0};
    return tide_job_enqueue(planned->job, &spec, err);
}

static tide_status plan_run(struct planning *planning, tide_error *err)
{
    struct tide_drive_planned *planned = &planning->planned;
    bool on = false;
    planned->now_ms = tide_world_now_unix_ms(planned->drive->options.world);
    tide_status rc = read_and_plan(planning, err);
    if (rc == TIDE_OK && planning->due) {
        planned->plan = &planning->plan;
        planned->loaded = &planning->loaded;
        planned->changed =
            planning->first_changed != 0 ? planning->first_changed : planning->progress.changed;
        rc = tide_drive_plan_write(planned, err);
        on = planning->loaded.more || planned->again;
    }
    if (rc == TIDE_OK)
        rc = on ? plan_on(planning, err) : plan_later(planning, err);
    tide_drive_plan_done(&planning->plan);
    tide_drive_loaded_done(&planning->loaded);
    return rc;
}

static void read_slice(struct planning *planning, const json_t *payload)
{
    tide_error none;
    (void)tide_json_get_u64(payload, "item", &planning->from.item, &none);
    (void)tide_json_get_u64(payload, "row", &planning->from.row, &none);
    (void)tide_json_get_u64(payload, "changed", &planning->first_changed, &none);
    planning->planned.again = json_is_true(json_object_get(payload, "again"));
}

static tide_status plan_job(tide_job *job, tide_drive *drive, tide_error *err)
{
    json_auto_t *payload = NULL;
    uint32_t number = 0;
    struct tide_drive_row row;
    struct tide_drive_user *user = NULL;
    struct planning planning = {.planned = {.drive = drive, .job = job, .row = &row}};
    TIDE_TRY(tide_drive_payload(job, &payload, &number, err));
    read_slice(&planning, payload);
    tide_status rc = tide_drive_use(drive, number, &row, &user, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc; /* it was removed */
    if (!tide_drive_row_syncs(&row))
        return TIDE_OK; /* a shared folder without a place; attached again, it is planned anew */
    if (tide_drive_acts_open(drive, number) > TIDE_DRIVE_NEWS_MAX / 2)
        return tide_job_again(job, tide_job_now_ms(job) + CROWDED_MS);
    if (!tide_drive_turn_take(drive, number, TIDE_DRIVE_PLANNING, job))
        return tide_job_again(job, tide_job_now_ms(job) + BUSY_MS);
    rc = tide_drive_doubts(drive, job, &row, user, err);
    if (rc == TIDE_OK)
        rc = plan_run(&planning, err);
    tide_drive_turn_give(drive, number, TIDE_DRIVE_PLANNING);
    if (rc == TIDE_OK)
        tide_drive_alerts(drive, row.account); /* deletions may wait, or do so no longer */
    return rc;
}

tide_status tide_drive_plan_job(tide_job *job, void *context, tide_error *err)
{
    const tide_status rc =
        tide_drive_unless_removed(context, job, plan_job(job, context, err), err);
    if (tide_status_class(rc) == TIDE_CLASS_AUTH)
        tide_drive_sync_ended(context, job, rc, err);
    return rc;
}
