/* alerts.c - what a user is told of drives without asking (E6.4), and counts for metrics (E9.1).
 *
 *   drive_stopped    nothing is synced: the folder is not mounted, the drive is another one, the sign-in
 *                    is refused
 *   drive_deletions  deletions wait for consent (S16)
 *   drive_owed       items have been owed for a day (D4, D41), or deletions could not be repeated online
 *                    for as long, because something here cannot be read (plan.h DPL6)
 *   drive_late       no round was completed for a day, although the drive is watched
 *
 * An alert is one for each account and condition, and names the drives.  It follows from rows alone, so
 * it is found again after a restart, and cleared by the process that mends it.  Looked at after a sync, a
 * plan, an action that pays what was owed, and at each poll of a watched drive; so a drive that no
 * process syncs raises nothing.
 *
 * A machine that was off or asleep is not late: a round that is overdue has 15 minutes of the clock that
 * stands still meanwhile. */
#include "base/clocktext.h"
#include "drive/store/concerns.h"
#include "drive/sync/inside.h"
#include "settings/settings.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 401, LATE_GRACE_MS = 900000 };

enum condition { STOPPED, DELETIONS, OWED, LATE, CONDITIONS };

static const struct {
    const char *name;
    int level; /* 1 warning, 2 critical */
} conditions[CONDITIONS] = {
    {"drive_stopped", 2}, {"drive_deletions", 1}, {"drive_owed", 1}, {"drive_late", 1}};

struct judging {
    tide_drive *drive;
    uint32_t account;
    tide_rows db;
    uint64_t now_ms, owed_after_ms, late_after_ms;
    char texts[CONDITIONS][TEXT_BYTES]; /* "": it does not hold */
    tide_status rc;
    tide_error *err;
};

/* ---- one drive ---- */

__attribute__((format(printf, 4, 5))) static void
say(struct judging *judging, enum condition condition, const char *drive, const char *format, ...)
{
    char *text = judging->texts[condition];
    size_t used = strlen(text);
    char words[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    (void)snprintf(text + used, TEXT_BYTES - used, "%s%s: %s", used > 0 ? "; " : "", drive, words);
}

/* "2026-11-17 06:48 UTC" */
static const char *minute_of(uint64_t unix_ms, char text_out[TIDE_TIME_TEXT_BYTES])
{
    char whole[TIDE_TIME_TEXT_BYTES];
    tide_time_format(unix_ms, whole);
    (void)snprintf(text_out, TIDE_TIME_TEXT_BYTES, "%.10s %.5s UTC", whole,
                   strlen(whole) > 16 ? whole + 11 : "");
    return text_out;
}

static tide_status read_tidemark(struct judging *judging, uint32_t number, uint64_t *tidemark_out)
{
    char name[TIDE_DRIVE_STREAM_BYTES];
    tide_drive_stream_name(number, name);
    const tide_status rc =
        tide_rows_number(judging->db, "the tidemark of a drive", tidemark_out, judging->err,
                         "SELECT CAST(cursor AS INTEGER) FROM stream WHERE account = ?1"
                         " AND name = ?2 AND ordinal > 0",
                         judging->account, name);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* Counts for metrics; returns for how long this process has seen this tidemark, while awake. */
static uint64_t note_seat(struct judging *judging, const struct tide_drive_row *row,
                          const struct tide_drive_concerns *concerns, uint64_t tidemark_ms)
{
    tide_drive *drive = judging->drive;
    const uint64_t awake_ms = tide_world_now_ms(drive->options.world);
    uint64_t seen_ms = awake_ms;
    tide_lock_take(drive->options.world, drive->lock);
    struct tide_drive_seat *seat = tide_drive_seat_of(drive, row->number);
    if (seat != NULL) {
        if (!seat->judged || seat->tidemark_ms != tidemark_ms)
            seat->tidemark_seen_ms = awake_ms;
        seat->judged = seat->listed = true;
        seat->account = row->account;
        seat->tidemark_ms = tidemark_ms;
        seat->conflicts = concerns->conflicts;
        seat->deletions = concerns->deletions;
        seat->owed = concerns->owed;
        seat->bad = concerns->bad;
        (void)snprintf(seat->name, sizeof seat->name, "%s", row->name);
        seen_ms = seat->tidemark_seen_ms;
    }
    tide_lock_drop(drive->options.world, drive->lock);
    return awake_ms - seen_ms;
}

static void judge_late(struct judging *judging, const struct tide_drive_row *row,
                       uint64_t tidemark_ms, uint64_t seen_for_ms)
{
    const uint64_t age_ms = tidemark_ms == 0                ? seen_for_ms
                            : judging->now_ms > tidemark_ms ? judging->now_ms - tidemark_ms
                                                            : 0;
    char when[TIDE_TIME_TEXT_BYTES];
    if (seen_for_ms < LATE_GRACE_MS || age_ms < judging->late_after_ms ||
        !tide_drive_is_watched(judging->drive, row))
        return;
    if (tidemark_ms == 0)
        say(judging, LATE, row->name, "the first round is not complete");
    else
        say(judging, LATE, row->name, "no complete round since %s", minute_of(tidemark_ms, when));
}

static tide_status judge_drive(struct judging *judging, const struct tide_drive_row *row)
{
    struct tide_drive_concerns concerns;
    uint64_t tidemark_ms = 0;
    char when[TIDE_TIME_TEXT_BYTES];
    const uint64_t owed_since =
        judging->now_ms > judging->owed_after_ms ? judging->now_ms - judging->owed_after_ms : 0;
    TIDE_TRY(tide_drive_concerns(tide_drives_rows(judging->db, row->number), owed_since, &concerns,
                                 judging->err));
    TIDE_TRY(read_tidemark(judging, row->number, &tidemark_ms));
    const uint64_t seen_for_ms = note_seat(judging, row, &concerns, tidemark_ms);
    if (concerns.trouble[0] != '\0')
        say(judging, STOPPED, row->name, "%s", concerns.trouble);
    else
        judge_late(judging, row, tidemark_ms, seen_for_ms);
    if (concerns.deletions > 0)
        say(judging, DELETIONS, row->name, "%" PRIu64 " deletion%s for consent", concerns.deletions,
            concerns.deletions == 1 ? " waits" : "s wait");
    if (concerns.old > 0)
        say(judging, OWED, row->name, "%" PRIu64 " item%s owed, the first since %s: %s",
            concerns.old, concerns.old == 1 ? " is" : "s are", minute_of(concerns.oldest_ms, when),
            concerns.oldest);
    if (concerns.hidden > 0 && row->mode != TIDE_DRIVE_DOWNLOAD_ONLY)
        say(judging, OWED, row->name,
            "%" PRIu64 " item%s missing here and not deleted online: something here cannot be read",
            concerns.hidden, concerns.hidden == 1 ? " is" : "s are");
    return TIDE_OK;
}

static void take_drive(const struct tide_drive_row *row, void *arg)
{
    struct judging *judging = arg;
    if (judging->rc == TIDE_OK && row->account == judging->account)
        judging->rc = judge_drive(judging, row);
}

/* ---- all of an account ---- */

/* Drives that were removed are not counted any more. */
static void list_seats(const struct judging *judging, bool begin)
{
    tide_drive *drive = judging->drive;
    tide_lock_take(drive->options.world, drive->lock);
    for (size_t i = 0; i < drive->seats_count; i++) {
        struct tide_drive_seat *seat = &drive->seats[i];
        if (seat->account != judging->account)
            continue;
        if (begin)
            seat->listed = false;
        else if (!seat->listed)
            seat->judged = false;
    }
    tide_lock_drop(drive->options.world, drive->lock);
}

static tide_status read_all(struct judging *judging)
{
    struct tide_drive_reader *reader = NULL;
    TIDE_TRY(tide_drive_reader_take(judging->drive, &reader, judging->err));
    judging->db = (tide_rows){.sqlite = reader->db.handle, .kept = &reader->kept};
    list_seats(judging, true);
    const tide_status rc = tide_drives_each(judging->db, take_drive, judging, judging->err);
    tide_drive_reader_give(judging->drive, reader);
    if (rc == TIDE_OK && judging->rc == TIDE_OK)
        list_seats(judging, false);
    return rc == TIDE_OK ? judging->rc : rc;
}

static tide_status judge(tide_drive *drive, uint32_t account, tide_error *err)
{
    tide_engine *engine = drive->options.engine;
    struct judging judging = {
        .drive = drive,
        .account = account,
        .now_ms = tide_world_now_unix_ms(drive->options.world),
        .owed_after_ms = tide_engine_setting_u64(engine, account, TIDE_SET_ALERTS_DRIVE_OWED_AFTER),
        .late_after_ms = tide_engine_setting_u64(engine, account, TIDE_SET_ALERTS_DRIVE_LATE_AFTER),
        .rc = TIDE_OK,
        .err = err};
    tide_status rc = read_all(&judging);
    for (int i = 0; rc == TIDE_OK && i < CONDITIONS; i++) {
        const char *text = judging.texts[i];
        rc = tide_engine_alert(engine, account, conditions[i].name,
                               text[0] == '\0' ? 0 : conditions[i].level, text, err);
    }
    return rc;
}

/* Under the lock: an account whose drives changed since they were looked at. */
static void want(tide_drive *drive, uint32_t account)
{
    for (size_t i = 0; i < drive->to_judge_count; i++)
        if (drive->to_judge[i] == account)
            return;
    if (drive->to_judge_count < TIDE_DRIVES_OPEN_MAX)
        drive->to_judge[drive->to_judge_count++] = account;
}

void tide_drive_alerts(tide_drive *drive, uint32_t account)
{
    tide_world *const world = drive->options.world;
    tide_lock_take(world, drive->lock);
    want(drive, account);
    /* One thread at a time: what was read first must not be written last.  It takes what comes to
     * the list meanwhile. */
    const bool mine = !drive->judging;
    drive->judging = true;
    while (mine && drive->to_judge_count > 0) {
        const uint32_t next = drive->to_judge[--drive->to_judge_count];
        tide_lock_drop(world, drive->lock);
        /* A failure of the ledger is met by whatever works on it next; the next look says what
         * holds. */
        (void)judge(drive, next, NULL);
        tide_lock_take(world, drive->lock);
    }
    if (mine)
        drive->judging = false;
    tide_lock_drop(world, drive->lock);
}

/* A drive that went with its account was left by nobody (tide_drive_leave()). */
void tide_drive_alerts_removed(tide_drive *drive)
{
    uint32_t numbers[TIDE_DRIVES_OPEN_MAX], accounts[TIDE_DRIVES_OPEN_MAX];
    size_t count = 0;
    struct tide_drive_reader *reader = NULL;
    tide_lock_take(drive->options.world, drive->lock);
    for (size_t i = 0; i < drive->seats_count; i++) {
        const struct tide_drive_seat *seat = &drive->seats[i];
        numbers[count] = seat->number;
        accounts[count] = seat->account;
        count += seat->judged ? 1 : 0;
    }
    tide_lock_drop(drive->options.world, drive->lock);
    if (count == 0 || tide_drive_reader_take(drive, &reader, NULL) != TIDE_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        const tide_rows db = tide_drive_reader_rows(reader, numbers[i]);
        bool there = false;
        if (tide_drives_has(db, numbers[i], &there, NULL) != TIDE_OK || there)
            accounts[i] = 0;
    }
    tide_drive_reader_give(drive, reader);
    for (size_t i = 0; i < count; i++)
        if (accounts[i] != 0)
            tide_drive_alerts(drive, accounts[i]);
}

/* ---- why a drive stops ---- */

struct stopping {
    uint32_t number;
    const char *text;
};

static tide_status write_trouble(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct stopping *stopping = arg;
    const tide_rows rows = tide_transaction_rows(transaction);
    struct tide_drive_row row;
    const tide_status rc = tide_drives_get(rows, stopping->number, &row, err);
    if (rc != TIDE_OK) /* it was removed meanwhile */
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    return tide_drive_trouble_set(tide_drives_rows(rows, stopping->number), stopping->text, err);
}

static tide_status read_trouble(tide_drive *drive, uint32_t number, struct tide_drive_row *row_out,
                                struct tide_drive_concerns *concerns_out)
{
    struct tide_drive_reader *reader = NULL;
    TIDE_TRY(tide_drive_reader_take(drive, &reader, NULL));
    const tide_rows db = tide_drive_reader_rows(reader, number);
    tide_status rc = tide_drives_get(db, number, row_out, NULL);
    if (rc == TIDE_OK)
        rc = tide_drive_concerns(db, 0, concerns_out, NULL);
    tide_drive_reader_give(drive, reader);
    return rc;
}

/* Whether nothing of the drive can be synced before somebody does something about it. */
static bool stops(const tide_job *job, tide_status rc)
{
    switch (tide_status_class(rc)) {
    case TIDE_CLASS_AUTH:
    case TIDE_CLASS_PERMANENT:
        return true;
    case TIDE_CLASS_RETRY:
        return tide_job_attempt(job) >= TIDE_DRIVE_ATTEMPTS;
    default:
        return false;
    }
}

void tide_drive_sync_ended(tide_drive *drive, tide_job *job, tide_status rc, const tide_error *why)
{
    json_auto_t *payload = NULL;
    struct tide_drive_row row;
    struct tide_drive_concerns concerns;
    struct stopping stopping = {.text = ""};
    char text[TIDE_DRIVE_CONCERN_BYTES];
    if ((rc != TIDE_OK && !stops(job, rc)) ||
        tide_drive_payload(job, &payload, &stopping.number, NULL) != TIDE_OK ||
        read_trouble(drive, stopping.number, &row, &concerns) != TIDE_OK)
        return;
    if (rc != TIDE_OK) {
        (void)snprintf(text, sizeof text, "%.250s",
                       why != NULL && why->text[0] != '\0' ? why->text : tide_status_name(rc));
        stopping.text = text;
    }
    if (strcmp(stopping.text, concerns.trouble) != 0)
        (void)tide_transact(drive->options.engine, write_trouble, &stopping, NULL);
    tide_drive_alerts(drive, row.account);
}

/* ---- after an action ---- */

tide_status tide_drive_concern_job(tide_job *job, void *context, tide_error *err)
{
    tide_drive *drive = context;
    json_auto_t *payload = NULL;
    uint32_t number = 0;
    struct tide_drive_row row;
    struct tide_drive_user *user = NULL;
    TIDE_TRY(tide_drive_payload(job, &payload, &number, err));
    const tide_status rc = tide_drive_use(drive, number, &row, &user, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc; /* it was removed */
    tide_drive_alerts(drive, row.account);
    return TIDE_OK;
}

tide_status tide_drive_concern_add(struct tide_drive_task *task, tide_error *err)
{
    tide_drive *drive = task->drive;
    char payload[64], dedupe[64];
    tide_lock_take(drive->options.world, drive->lock);
    const struct tide_drive_seat *seat = tide_drive_seat_of(drive, task->order.drive);
    const bool owes = seat != NULL && seat->owed > 0;
    tide_lock_drop(drive->options.world, drive->lock);
    if (!owes && (task->outcome == TIDE_OK || task->outcome == TIDE_SUPERSEDED))
        return TIDE_OK;
    (void)snprintf(payload, sizeof payload, "{\"drive\":%" PRIu32 "}", task->order.drive);
    (void)snprintf(dedupe, sizeof dedupe, "drive:%" PRIu32 ":concern", task->order.drive);
    const struct tide_spec spec = {.kind = drive->concern_kind,
                                   .account = task->row.account,
                                   .no_cycle = true,
                                   .payload = payload,
                                   .dedupe = dedupe};
    return tide_job_enqueue(task->job, &spec, err);
}
