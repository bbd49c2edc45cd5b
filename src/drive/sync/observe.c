/* observe.c - drive.sync: looks at both sides, then has the drive planned (D1, D4). */
#include "base/check.h"
#include "base/json.h"
#include "drive/sync/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUSY_MS = 300,
    MOUNTS_WAIT_MS = 600000,
    MOUNTS_AGAIN_MS = 1000,
    RULES_BYTES_MAX = TIDE_IGNORE_TEXT_BYTES_MAX
};

/* ---- rules ---- */

static void add_rule(tide_text pattern, void *arg)
{
    tide_buf *text = arg;
    if (tide_buf_add(text, pattern.data, pattern.bytes) == TIDE_OK)
        (void)tide_buf_add(text, "\n", 1);
}

tide_status tide_drive_rules_text(tide_rows db, uint32_t number, tide_buf *text, tide_error *err)
{
    return tide_drive_rules_each(db, number, add_rule, text, err);
}

static tide_status read_rules(tide_drive *drive, uint32_t number, tide_ignore **ignore_out,
                              tide_error *err)
{
    struct tide_drive_reader *reader = NULL;
    tide_auto_buf text = tide_buf_in(drive->mem, RULES_BYTES_MAX);
    TIDE_TRY(tide_drive_reader_take(drive, &reader, err));
    const tide_status rc =
        tide_drive_rules_text(tide_drive_reader_rows(reader, number), number, &text, err);
    tide_drive_reader_give(drive, reader);
    if (rc != TIDE_OK || text.bytes == 0)
        return rc;
    return tide_ignore_new(tide_buf_text(&text), drive->mem, ignore_out, err);
}

/* ---- the end: a cycle with a plan ---- */

struct ending {
    tide_drive *drive;
    struct tide_drive_row row;
    uint64_t stream;
    uint64_t seen_ms;    /* when looking began: all that was there then was seen */
    uint64_t applied_ms; /* where the stream is */
    bool asked;          /* by a user: what is owed is tried now (D4) */
};

static tide_status begin_cycle(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct ending *ending = arg;
    const tide_rows db = tide_drives_rows(tide_transaction_rows(transaction), ending->row.number);
    struct tide_drive_progress progress;
    struct tide_drive_request request;
    char end[24];
    uint64_t cycle = 0;
    (void)snprintf(end, sizeof end, "%" PRIu64, ending->seen_ms);
    TIDE_TRY(tide_drive_applied(db, ending->applied_ms, err));
    if (ending->asked)
        TIDE_TRY(tide_drive_owed_now(db, err));
    TIDE_TRY(tide_transaction_cycle(transaction, ending->stream, "", end, &cycle, err));
    TIDE_TRY(tide_drive_progress_read(db, &progress, err));
    /* Owed items make a plan due by time; what is missing for less than ten seconds, too. */
    if (progress.changed == progress.planned && progress.due_ms > ending->seen_ms + 15000)
        return TIDE_OK;
    tide_drive_plan_request(ending->row.number, &request);
    const struct tide_spec spec = {.kind = ending->drive->plan_kind,
                                   .account = ending->row.account,
                                   .cycle = cycle,
                                   .payload = request.payload};
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

static tide_status end_with_plan(const struct tide_drive_looking *looking, uint64_t seen_ms,
                                 bool asked, tide_error *err)
{
    tide_drive *const drive = looking->drive;
    tide_job *const job = looking->job;
    const struct tide_drive_row *const row = looking->row;
    struct ending *ending = tide_job_memory(job, sizeof *ending);
    char name[TIDE_DRIVE_STREAM_BYTES];
    if (ending == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a sync");
    *ending = (struct ending){.drive = drive, .row = *row, .seen_ms = seen_ms, .asked = asked};
    tide_drive_stream_name(row->number, name);
    TIDE_TRY(tide_stream_open(drive->options.engine, row->account, name, "", &ending->stream, err));
    struct tide_stream_state state;
    TIDE_TRY(tide_stream_state(drive->options.engine, ending->stream, &state, err));
    ending->applied_ms = strtoull(state.cursor, NULL, 10);
    return tide_job_effect(job, begin_cycle, ending, err);
}

/* ---- shared folders ---- */

/* Whether what the last plan had to do is done, so that folders that were to come are here. */
static tide_status is_at_rest(tide_drive *drive, uint32_t number, bool *rest_out, tide_error *err)
{
    struct tide_drive_reader *reader = NULL;
    struct tide_drive_progress progress;
    TIDE_TRY(tide_drive_reader_take(drive, &reader, err));
    const tide_status rc =
        tide_drive_progress_read(tide_drive_reader_rows(reader, number), &progress, err);
    tide_drive_reader_give(drive, reader);
    *rest_out = rc == TIDE_OK && progress.changed == progress.planned &&
                tide_drive_acts_open(drive, number) == 0;
    return rc;
}

/* Shared folders get their places.  One in a folder that the plan is about to make is looked
 * at again then. */
static tide_status place_mounts(const struct tide_drive_looking *looking, bool later,
                                tide_error *err)
{
    bool wait = false;
    TIDE_TRY(tide_drive_mounts(looking, &wait, err));
    if (!wait || later)
        return TIDE_OK;
    const uint64_t now_ms = tide_world_now_unix_ms(looking->drive->options.world);
    return tide_drive_mounts_later(looking->drive, looking->row, now_ms + MOUNTS_WAIT_MS, err);
}

/* The job that tide_drive_mounts_later() enqueued. */
static tide_status mounts_job(struct tide_drive_looking *looking, uint64_t until_ms,
                              tide_error *err)
{
    tide_drive *drive = looking->drive;
    tide_ignore *ignore = NULL;
    bool rest = false;
    TIDE_TRY(is_at_rest(drive, looking->row->number, &rest, err));
    if (!rest && tide_world_now_unix_ms(drive->options.world) < until_ms)
        return tide_job_again(looking->job, tide_job_now_ms(looking->job) + MOUNTS_AGAIN_MS);
    if (!tide_drive_turn_take(drive, looking->row->number, TIDE_DRIVE_OBSERVING, looking->job))
        return tide_job_again(looking->job, tide_job_now_ms(looking->job) + BUSY_MS);
    tide_status rc = read_rules(drive, looking->row->number, &ignore, err);
    looking->ignore = ignore;
    if (rc == TIDE_OK)
        rc = place_mounts(looking, true, err);
    tide_ignore_free(ignore);
    tide_drive_turn_give(drive, looking->row->number, TIDE_DRIVE_OBSERVING);
    return rc;
}

/* ---- the job ---- */

/* *refused_out: it is a shared folder, and its target says no; *err says why. */
static tide_status observe(struct tide_drive_looking *looking, bool here_only, bool look,
                           bool *refused_out, tide_error *err)
{
    tide_status rc =
        tide_drive_doubts(looking->drive, looking->job, looking->row, looking->user, err);
    if (rc == TIDE_OK && !here_only)
        rc = tide_drive_subscribe(looking, err);
    if (rc == TIDE_OK && !here_only) {
        rc = tide_drive_feed(looking, err);
        *refused_out = rc == TIDE_GONE && looking->row->parent != 0;
    }
    /* Before the scan: a folder that it gets, or that a user made for it, has its marker then. */
    if (rc == TIDE_OK && !look)
        rc = place_mounts(looking, false, err);
    if (rc == TIDE_OK)
        rc = tide_drive_look_here(looking, err);
    return rc;
}

/* *refused_out: it is a shared folder whose target is refused, and that is recorded. */
static tide_status look_at_both(struct tide_drive_looking *looking, bool here_only, bool look,
                                bool *refused_out, tide_error *err)
{
    tide_ignore *ignore = NULL;
    tide_error why = {TIDE_OK, 0, ""};
    TIDE_TRY(read_rules(looking->drive, looking->row->number, &ignore, err));
    looking->ignore = ignore;
    tide_status rc = observe(looking, here_only, look, refused_out, &why);
    if (*refused_out) {
        const tide_error said = why;
        rc = tide_drive_mount_refused(looking->drive, looking->row, said.text, &why);
    } else if (rc == TIDE_OK && looking->row->parent != 0 && !here_only) {
        rc = tide_drive_mount_refused(looking->drive, looking->row, "", &why);
    }
    tide_ignore_free(ignore);
    if (rc != TIDE_OK && err != NULL)
        *err = why;
    return rc;
}

static tide_status sync_job(tide_job *job, tide_drive *drive, tide_error *err)
{
    json_auto_t *payload = NULL;
    uint32_t number = 0;
    struct tide_drive_row row;
    struct tide_drive_looking looking = {.drive = drive, .job = job, .row = &row};
    TIDE_TRY(tide_drive_payload(job, &payload, &number, err));
    looking.full = json_is_true(json_object_get(payload, "full"));
    looking.changed = json_is_true(json_object_get(payload, "changed"));
    const bool here_only = json_is_true(json_object_get(payload, "here"));
    tide_status rc = tide_drive_use(drive, number, &row, &looking.user, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc; /* it was removed */
    uint64_t until_ms = 0;
    if (json_object_get(payload, "mounts") != NULL) {
        TIDE_TRY(tide_json_get_u64(payload, "mounts", &until_ms, err));
        return mounts_job(&looking, until_ms, err);
    }
    bool here = true;
    if (row.parent != 0 && tide_drive_row_syncs(&row))
        TIDE_TRY(tide_drive_mount_is_here(drive, &row, &here, err));
    if (!here || !tide_drive_row_syncs(&row))
        return TIDE_OK; /* a shared folder that has no place now */
    if (!tide_drive_turn_take(drive, number, TIDE_DRIVE_OBSERVING, job))
        return tide_job_again(job, tide_job_now_ms(job) + BUSY_MS);
    const bool asked = !here_only && !looking.changed;
    if (asked)
        tide_drive_full_until(drive, looking.user, 0);
    const uint64_t seen_ms = tide_world_now_unix_ms(drive->options.world);
    const bool look = json_is_true(json_object_get(payload, "look"));
    bool refused = false;
    rc = look_at_both(&looking, here_only, look, &refused, err);
    tide_drive_turn_give(drive, number, TIDE_DRIVE_OBSERVING);
    if (rc == TIDE_OK && refused)
        return TIDE_OK; /* nothing is known, so nothing is planned */
    if (rc != TIDE_OK && row.parent != 0 && !tide_job_canceled(job) &&
        tide_drive_mount_is_here(drive, &row, &here, NULL) == TIDE_OK && !here)
        return TIDE_OK; /* it was moved meanwhile */
    if (rc != TIDE_OK || look)
        return rc;
    return end_with_plan(&looking, seen_ms, asked, err);
}

tide_status tide_drive_sync_job(tide_job *job, void *context, tide_error *err)
{
    const tide_status rc =
        tide_drive_unless_removed(context, job, sync_job(job, context, err), err);
    tide_drive_sync_ended(context, job, rc, err);
    return rc;
}
