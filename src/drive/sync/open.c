/* open.c - what this process has open: sign-ins, reading connections, and which jobs work on what. */
#include "base/check.h"
#include "drive/sync/inside.h"
#include "net/oauth/microsoft.h"

#include <stdio.h>

enum { READERS_IDLE_MAX = 64, ACTS_MAX = 1 << 22, SUPERSEDED_KEYS_MAX = 10000 };

/* ---- readers ---- */

tide_status tide_drive_reader_take(tide_drive *drive, struct tide_drive_reader **reader_out,
                                   tide_error *err)
{
    tide_lock_take(drive->options.world, drive->lock);
    struct tide_drive_reader *reader = drive->idle;
    if (reader != NULL)
        drive->idle = reader->next;
    tide_lock_drop(drive->options.world, drive->lock);
    if (reader == NULL) {
        const struct tide_db_options options = {.path = drive->state_path,
                                                .vfs = tide_world_vfs(drive->options.world),
                                                .read_only = true,
                                                .must_exist = true,
                                                .busy_timeout_ms = 10000,
                                                .cache_kib = 512};
        reader = tide_mem_new(drive->mem, sizeof *reader);
        if (reader == NULL)
            return tide_error_set(err, TIDE_NO_MEMORY, "no memory to read a drive's rows");
        const tide_status rc = tide_db_open(&options, drive->mem, &reader->db, err);
        if (rc != TIDE_OK) {
            tide_mem_free(drive->mem, reader, sizeof *reader);
            return rc;
        }
    }
    reader->next = NULL;
    *reader_out = reader;
    return TIDE_OK;
}

void tide_drive_reader_give(tide_drive *drive, struct tide_drive_reader *reader)
{
    if (reader == NULL)
        return;
    tide_lock_take(drive->options.world, drive->lock);
    reader->next = drive->idle;
    drive->idle = reader;
    tide_lock_drop(drive->options.world, drive->lock);
}

tide_rows tide_drive_reader_rows(struct tide_drive_reader *reader, uint32_t number)
{
    const tide_rows rows = {.sqlite = reader->db.handle, .kept = &reader->kept};
    return tide_drives_rows(rows, number);
}

/* ---- sign-ins ---- */

static struct tide_drive_user *user_known(tide_drive *drive, uint32_t account)
{
    for (size_t i = 0; i < drive->users_count; i++)
        if (drive->users[i]->account == account)
            return drive->users[i];
    return NULL;
}

static tide_status client_open(tide_drive *drive, const struct tide_drive_row *row,
                               struct tide_drive_user *user, tide_error *err)
{
    char secret[TIDE_SECRET_NAME_BYTES_MAX];
    char sign_in[256];
    tide_drive_secret_name(row->account_name, secret);
    (void)snprintf(sign_in, sizeof sign_in, "tidemark account add onedrive --name %s",
                   row->account_name);
    const struct tide_tokens_options tokens = {.provider = &tide_oauth_microsoft,
                                               .secret = secret,
                                               .account = row->account_name,
                                               .sign_in = sign_in};
    TIDE_TRY(tide_tokens_open(drive->options.world, drive->options.secrets, &tokens, drive->mem,
                              &user->tokens, err));
    static const struct tide_batch_options batches = {
        .in_flight_max = 4, .size_start = 20, .size_max = 20};
    const struct tide_onedrive_options options = {
        .endpoint = row->endpoint[0] == '\0' ? NULL : row->endpoint,
        .tokens = user->tokens,
        .world = drive->options.world,
        .batches = &batches};
    return tide_onedrive_open(&options, drive->mem, &user->client, err);
}

static tide_status user_open(tide_drive *drive, const struct tide_drive_row *row,
                             struct tide_drive_user **user_out, tide_error *err)
{
    struct tide_drive_user *user = user_known(drive, row->account);
    if (user != NULL) {
        *user_out = user;
        return TIDE_OK;
    }
    if (drive->users_count == TIDE_DRIVES_OPEN_MAX)
        return tide_error_set(err, TIDE_FULL, "more than %d accounts of OneDrive in one process",
                              TIDE_DRIVES_OPEN_MAX);
    user = tide_mem_new(drive->mem, sizeof *user);
    if (user == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %s", row->account_name);
    user->account = row->account;
    const tide_status rc = client_open(drive, row, user, err);
    if (rc != TIDE_OK) {
        tide_tokens_close(user->tokens);
        tide_mem_free(drive->mem, user, sizeof *user);
        return rc;
    }
    drive->users[drive->users_count++] = user;
    *user_out = user;
    return TIDE_OK;
}

tide_status tide_drive_use_by(tide_drive *drive, tide_rows rows, uint32_t number,
                              struct tide_drive_row *row_out, struct tide_drive_user **user_out,
                              tide_error *err)
{
    TIDE_TRY(tide_drives_known(rows, number, row_out, err));
    tide_lock_take(drive->options.world, drive->lock);
    const tide_status rc = user_open(drive, row_out, user_out, err);
    tide_lock_drop(drive->options.world, drive->lock);
    return rc;
}

tide_status tide_drive_use(tide_drive *drive, uint32_t number, struct tide_drive_row *row_out,
                           struct tide_drive_user **user_out, tide_error *err)
{
    struct tide_drive_reader *reader = NULL;
    TIDE_TRY(tide_drive_reader_take(drive, &reader, err));
    const tide_status rc = tide_drive_use_by(drive, tide_drive_reader_rows(reader, number), number,
                                             row_out, user_out, err);
    tide_drive_reader_give(drive, reader);
    return rc;
}

/* ---- seats; under the lock ---- */

struct tide_drive_seat *tide_drive_seat_of(tide_drive *drive, uint32_t number)
{
    for (size_t i = 0; i < drive->seats_count; i++)
        if (drive->seats[i].number == number)
            return &drive->seats[i];
    if (drive->seats_count == TIDE_DRIVES_OPEN_MAX)
        return NULL;
    struct tide_drive_seat *seat = &drive->seats[drive->seats_count++];
    *seat = (struct tide_drive_seat){.number = number};
    return seat;
}

bool tide_drive_turn_take(tide_drive *drive, uint32_t number, tide_drive_turn turn,
                          const tide_job *job)
{
    tide_lock_take(drive->options.world, drive->lock);
    struct tide_drive_seat *seat = tide_drive_seat_of(drive, number);
    uint64_t *has = seat == NULL                   ? NULL
                    : turn == TIDE_DRIVE_OBSERVING ? &seat->observing
                                                   : &seat->planning;
    const bool taken = has != NULL && *has == 0;
    if (taken)
        *has = tide_job_id(job);
    tide_lock_drop(drive->options.world, drive->lock);
    return taken;
}

void tide_drive_turn_give(tide_drive *drive, uint32_t number, tide_drive_turn turn)
{
    tide_lock_take(drive->options.world, drive->lock);
    struct tide_drive_seat *seat = tide_drive_seat_of(drive, number);
    if (seat != NULL && turn == TIDE_DRIVE_OBSERVING)
        seat->observing = 0;
    else if (seat != NULL)
        seat->planning = 0;
    tide_lock_drop(drive->options.world, drive->lock);
}

static bool swept_becomes(tide_drive *drive, uint32_t number, bool swept)
{
    tide_lock_take(drive->options.world, drive->lock);
    struct tide_drive_seat *seat = tide_drive_seat_of(drive, number);
    const bool was = seat == NULL || seat->swept;
    if (seat != NULL)
        seat->swept = swept;
    tide_lock_drop(drive->options.world, drive->lock);
    return was;
}

bool tide_drive_sweep_is_due(tide_drive *drive, uint32_t number)
{
    return !swept_becomes(drive, number, true);
}

void tide_drive_sweep_soon(tide_drive *drive, uint32_t number)
{
    (void)swept_becomes(drive, number, false);
}

bool tide_drive_first_of_day(tide_drive *drive, uint32_t number, uint64_t now_ms)
{
    tide_lock_take(drive->options.world, drive->lock);
    struct tide_drive_seat *seat = tide_drive_seat_of(drive, number);
    const bool first = seat != NULL && seat->emptied_day != now_ms / TIDE_DRIVE_DAY_MS;
    if (seat != NULL)
        seat->emptied_day = now_ms / TIDE_DRIVE_DAY_MS;
    tide_lock_drop(drive->options.world, drive->lock);
    return first;
}

/* ---- actions on their way ---- */

void tide_drive_acts_add(tide_drive *drive, uint32_t number, uint64_t job, tide_drive_verb verb,
                         uint64_t bytes)
{
    uint32_t at = 0;
    tide_lock_take(drive->options.world, drive->lock);
    /* Without memory a count is missing: a plan comes a little early. */
    if (!tide_map_get(&drive->act_at, job, &at) && drive->acts_count < ACTS_MAX &&
        TIDE_GROW_IN(drive->mem, drive->acts, drive->acts_room, drive->acts_count + 1, ACTS_MAX) &&
        tide_map_put(&drive->act_at, job, (uint32_t)drive->acts_count))
        drive->acts[drive->acts_count++] = (struct tide_drive_open_act){
            .job = job, .bytes = bytes, .drive = number, .verb = (uint8_t)verb};
    tide_lock_drop(drive->options.world, drive->lock);
}

void tide_drive_acts_drop(tide_drive *drive, uint64_t job)
{
    uint32_t at = 0;
    tide_lock_take(drive->options.world, drive->lock);
    if (tide_map_get(&drive->act_at, job, &at)) {
        (void)tide_map_remove(&drive->act_at, job);
        drive->acts[at] = drive->acts[--drive->acts_count];
        if (at < drive->acts_count)
            (void)tide_map_put(&drive->act_at, drive->acts[at].job, at); /* replaces: no memory */
    }
    tide_lock_drop(drive->options.world, drive->lock);
}

size_t tide_drive_acts_open(tide_drive *drive, uint32_t number)
{
    size_t count = 0;
    tide_lock_take(drive->options.world, drive->lock);
    for (size_t i = 0; i < drive->acts_count; i++)
        count += drive->acts[i].drive == number ? 1 : 0;
    tide_lock_drop(drive->options.world, drive->lock);
    return count;
}

static void act_runs(tide_drive *drive, uint64_t job, bool running)
{
    uint32_t at = 0;
    if (tide_map_get(&drive->act_at, job, &at))
        drive->acts[at].running = running;
}

bool tide_drive_run_begin(tide_drive *drive, uint64_t job, const struct tide_drive_order *order)
{
    bool free = true;
    tide_lock_take(drive->options.world, drive->lock);
    for (size_t i = 0; i < drive->running_count && free; i++)
        free = drive->running[i].drive != order->drive ||
               ((order->item == 0 || drive->running[i].item != order->item) &&
                (order->row == 0 || drive->running[i].row != order->row));
    free = free && drive->running_count < TIDE_DRIVE_RUNNING_MAX;
    if (free) {
        drive->running[drive->running_count++] = (struct tide_drive_running){
            .drive = order->drive,
            .item = order->item,
            .row = order->row,
            .job = job,
            .local = order->local_content,
            .sends =
                order->row != 0 && (order->verb == TIDE_DRIVE_UP || order->verb == TIDE_DRIVE_NEW)};
        act_runs(drive, job, true);
    }
    tide_lock_drop(drive->options.world, drive->lock);
    return free;
}

void tide_drive_run_end(tide_drive *drive, uint64_t job)
{
    tide_lock_take(drive->options.world, drive->lock);
    for (size_t i = 0; i < drive->running_count; i++)
        if (drive->running[i].job == job) {
            drive->running[i] = drive->running[--drive->running_count];
            break;
        }
    act_runs(drive, job, false);
    tide_lock_drop(drive->options.world, drive->lock);
}

bool tide_drive_is_running(tide_drive *drive, uint32_t number, uint64_t item, uint64_t row)
{
    bool runs = false;
    tide_lock_take(drive->options.world, drive->lock);
    for (size_t i = 0; i < drive->running_count && !runs; i++)
        runs = drive->running[i].drive == number &&
               (drive->running[i].item == item || drive->running[i].row == row);
    tide_lock_drop(drive->options.world, drive->lock);
    return runs;
}

/* Of an item in any drive of this process: that two of them meet only makes one wait earlier. */
static uint64_t superseded_key(const struct tide_drive_order *order)
{
    return tide_drive_key_of(order->item, order->row) ^ (uint64_t)order->drive << 56;
}

uint32_t tide_drive_superseded_count(tide_drive *drive, const struct tide_drive_order *order)
{
    uint32_t count = 0;
    tide_lock_take(drive->options.world, drive->lock);
    if (drive->superseded.count > SUPERSEDED_KEYS_MAX)
        tide_map_clear(&drive->superseded);
    (void)tide_map_get(&drive->superseded, superseded_key(order), &count);
    (void)tide_map_put(&drive->superseded, superseded_key(order), ++count);
    tide_lock_drop(drive->options.world, drive->lock);
    return count;
}

void tide_drive_superseded_end(tide_drive *drive, const struct tide_drive_order *order)
{
    tide_lock_take(drive->options.world, drive->lock);
    (void)tide_map_remove(&drive->superseded, superseded_key(order));
    tide_lock_drop(drive->options.world, drive->lock);
}

/* ---- live state ---- */

void tide_drive_transferred(tide_drive *drive, uint32_t number, bool down, uint64_t bytes)
{
    tide_lock_take(drive->options.world, drive->lock);
    struct tide_drive_seat *seat = tide_drive_seat_of(drive, number);
    if (seat != NULL && down) {
        seat->state.downloaded++;
        seat->state.downloaded_bytes += bytes;
    } else if (seat != NULL) {
        seat->state.uploaded++;
        seat->state.uploaded_bytes += bytes;
    }
    tide_lock_drop(drive->options.world, drive->lock);
}

void tide_drive_state(tide_drive *drive, uint32_t number, struct tide_drive_state *state_out)
{
    tide_lock_take(drive->options.world, drive->lock);
    const struct tide_drive_seat *seat = tide_drive_seat_of(drive, number);
    struct tide_drive_state state = {.waiting = 0};
    if (seat != NULL)
        state = seat->state;
    for (size_t i = 0; i < drive->acts_count; i++) {
        const struct tide_drive_open_act *act = &drive->acts[i];
        if (act->drive != number)
            continue;
        struct tide_drive_side_state *side =
            act->verb == TIDE_DRIVE_DOWN                                ? &state.down
            : act->verb == TIDE_DRIVE_UP || act->verb == TIDE_DRIVE_NEW ? &state.up
                                                                        : NULL;
        if (!act->running)
            state.waiting++;
        else if (side != NULL) {
            side->files++;
            side->bytes += act->bytes;
        }
    }
    tide_lock_drop(drive->options.world, drive->lock);
    *state_out = state;
}
