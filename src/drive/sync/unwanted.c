/* unwanted.c - jobs that run and whose work nobody wants any more: uploads of a file that changed
 * meanwhile (D5), all jobs of a drive that was removed.
 *
 * Such a job is restarted: its call ends now, it reads its rows again, and ends by what it finds. */
#include "base/json.h"
#include "drive/sync/inside.h"

enum { LEAVE_TURN_MS = 50, LEAVE_TURNS_MAX = 600 };

/* ---- uploads of files that changed ---- */

/* An upload that is about to send its last fragment is let be: what the server has would not be known
 * if its answer were lost. */
static size_t list_uploads(tide_drive *drive, uint32_t number, struct tide_drive_running *list)
{
    size_t count = 0;
    tide_lock_take(drive->options.world, drive->lock);
    for (size_t i = 0; i < drive->running_count; i++)
        if (drive->running[i].drive == number && drive->running[i].sends)
            list[count++] = drive->running[i];
    tide_lock_drop(drive->options.world, drive->lock);
    return count;
}

static void restart_upload(tide_drive *drive, uint64_t job)
{
    tide_lock_take(drive->options.world, drive->lock);
    for (size_t i = 0; i < drive->running_count; i++)
        if (drive->running[i].job == job && drive->running[i].sends)
            tide_job_restart(drive->options.engine, job);
    tide_lock_drop(drive->options.world, drive->lock);
}

bool tide_drive_run_closes(tide_drive *drive, tide_job *job)
{
    tide_lock_take(drive->options.world, drive->lock);
    for (size_t i = 0; i < drive->running_count; i++)
        if (drive->running[i].job == tide_job_id(job))
            drive->running[i].sends = false;
    tide_lock_drop(drive->options.world, drive->lock);
    return !tide_job_canceled(job);
}

tide_status tide_drive_stale_uploads(tide_drive *drive, uint32_t number, tide_error *err)
{
    struct tide_drive_running list[TIDE_DRIVE_RUNNING_MAX];
    struct tide_drive_reader *reader = NULL;
    const size_t count = list_uploads(drive, number, list);
    if (count == 0)
        return TIDE_OK;
    TIDE_TRY(tide_drive_reader_take(drive, &reader, err));
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        struct tide_drive_local_look now;
        rc = tide_drive_look_local(tide_drive_reader_rows(reader, number), list[i].row, &now, err);
        if (rc == TIDE_NOT_FOUND || (rc == TIDE_OK && tide_drive_mark_local(&now) != list[i].local))
            restart_upload(drive, list[i].job);
        rc = rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    }
    tide_drive_reader_give(drive, reader);
    return rc;
}

/* ---- a drive that was removed ---- */

/* Restarts the jobs of the drive; whether one runs. */
static bool restart_all(tide_drive *drive, uint32_t number)
{
    uint64_t jobs[TIDE_DRIVE_RUNNING_MAX + 2];
    size_t count = 0;
    tide_lock_take(drive->options.world, drive->lock);
    for (size_t i = 0; i < drive->running_count; i++)
        if (drive->running[i].drive == number)
            jobs[count++] = drive->running[i].job;
    for (size_t i = 0; i < drive->seats_count; i++)
        if (drive->seats[i].number == number) {
            if (drive->seats[i].observing != 0)
                jobs[count++] = drive->seats[i].observing;
            if (drive->seats[i].planning != 0)
                jobs[count++] = drive->seats[i].planning;
        }
    tide_lock_drop(drive->options.world, drive->lock);
    for (size_t i = 0; i < count; i++)
        tide_job_restart(drive->options.engine, jobs[i]);
    return count > 0;
}

static bool is_of_drive(tide_text payload, uint64_t ended_unix_ms, void *arg)
{
    json_auto_t *object = NULL;
    uint64_t drive = 0;
    (void)ended_unix_ms;
    return tide_json_parse(payload, &object, NULL) == TIDE_OK &&
           tide_json_get_u64(object, "drive", &drive, NULL) == TIDE_OK &&
           drive == *(const uint32_t *)arg;
}

tide_status tide_drive_end_waiting(tide_engine *engine, uint32_t account, uint32_t number,
                                   tide_error *err)
{
    return tide_end_waiting(engine, account, is_of_drive, &number, err);
}

tide_status tide_drive_leave(tide_drive *drive, uint32_t number, const struct tide_cancel *cancel,
                             tide_error *err)
{
    tide_world *const world = drive->options.world;
    for (int turn = 0; restart_all(drive, number); turn++) {
        if (turn == LEAVE_TURNS_MAX)
            return tide_error_set(err, TIDE_TIMEOUT,
                                  "jobs of the drive were asked to end, and run");
        const uint64_t until_us = tide_world_now_us(world) + LEAVE_TURN_MS * 1000u;
        if (tide_world_sleep_until(world, until_us, cancel) != TIDE_OK)
            return tide_error_set(err, TIDE_CANCELED, "canceled while jobs of the drive ended");
    }
    tide_lock_take(world, drive->lock);
    const struct tide_drive_seat *seat = tide_drive_seat_of(drive, number);
    const uint32_t account = seat == NULL ? 0 : seat->account;
    tide_lock_drop(world, drive->lock);
    if (account != 0)
        tide_drive_alerts(drive, account); /* which do not name it any more */
    return TIDE_OK;
}

tide_status tide_drive_unless_removed(tide_drive *drive, tide_job *job, tide_status rc,
                                      tide_error *err)
{
    const tide_class class = tide_status_class(rc);
    struct tide_drive_reader *reader = NULL;
    struct tide_drive_row row;
    uint32_t number = 0;
    if (class == TIDE_CLASS_OK || class == TIDE_CLASS_CANCELED || rc == TIDE_AGAIN)
        return rc;
    json_auto_t *payload = NULL;
    if (tide_drive_payload(job, &payload, &number, NULL) != TIDE_OK ||
        tide_drive_reader_take(drive, &reader, NULL) != TIDE_OK)
        return rc;
    const tide_status there =
        tide_drives_get(tide_drive_reader_rows(reader, number), number, &row, NULL);
    tide_drive_reader_give(drive, reader);
    if (there != TIDE_NOT_FOUND)
        return rc;
    if (err != NULL)
        *err = (tide_error){TIDE_OK, 0, ""};
    return TIDE_OK;
}
