/* watch.c - what engine and ledger say about the accounts of a run.
 *
 * It reads what can be read while other processes run: the ledger, and a snapshot of the engine
 * (E9.1), taken directly if it is ours and over the control socket if it is not.  On a shared
 * ledger the engine may be on any machine: then only the ledger says what is left, and which
 * process does it. */
#include "cli/run/inside.h"

#include "base/clocktext.h"
#include "cli/account_seen.h"

#include <stdio.h>
#include <string.h>

enum {
    SAMPLE_MS = 500,
    LOOK_MS = 5000, /* between two full counts of what is left */
};

/* ---- the snapshot ---- */

static uint64_t number_of(const json_t *object, const char *field)
{
    const json_int_t number = json_integer_value(json_object_get(object, field));
    return number < 0 ? 0 : (uint64_t)number;
}

/* The outcome of its last calls, if they failed. */
static void take_failure(const json_t *account, struct cli_watched *watched)
{
    const char *text = json_string_value(json_object_get(account, "last_failure"));
    const bool lasts = text != NULL && number_of(account, "last_failed_unix_ms") >
                                           number_of(account, "last_ok_unix_ms");
    watched->next_try_ms = number_of(account, "next_try_unix_ms");
    (void)snprintf(watched->failure, sizeof watched->failure, "%s", lasts ? text : "");
}

/* Why an account makes no progress, in a few words; "" if it does. */
static void take_note(const json_t *account, struct cli_watched *watched, char *note,
                      size_t note_bytes)
{
    const char *state = json_string_value(json_object_get(account, "state"));
    const char *reason = json_string_value(json_object_get(account, "reason"));
    const uint64_t for_ms = number_of(account, "for_ms");
    char wait[TIDE_DURATION_TEXT_BYTES] = "";
    take_failure(account, watched);
    watched->signed_out = reason != NULL && strcmp(reason, tide_status_name(TIDE_AUTH)) == 0;
    watched->stopped = json_is_true(json_object_get(account, "paused")) ||
                       (state != NULL && strcmp(state, "halted") == 0);
    note[0] = '\0';
    if (state != NULL && strcmp(state, "halted") == 0)
        (void)snprintf(note, note_bytes, "halted: %s", reason == NULL ? "-" : reason);
    else if (json_is_true(json_object_get(account, "paused")))
        (void)snprintf(note, note_bytes, "paused by command");
    else if (watched->signed_out)
        (void)snprintf(note, note_bytes, "needs a sign-in");
    else if (state != NULL && strcmp(state, "running") != 0 && reason != NULL) {
        tide_duration_human(for_ms < 1000 ? 1000 : for_ms / 1000 * 1000, wait);
        (void)snprintf(note, note_bytes, "next try in %s: %.260s", wait,
                       watched->failure[0] == '\0' ? reason : watched->failure);
    }
}

static void take_snapshot(const json_t *snapshot, struct cli_watched *watched,
                          struct cli_live *live)
{
    const json_t *account = account_in_snapshot(snapshot, watched->name);
    static const char *const jobs[] = {"running", "parked", "waiting", "delayed", "blocked"};
    enum { ACTIVE = 3 }; /* that many of them are active states */
    watched->jobs = watched->active = 0;
    if (account == NULL)
        return;
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        watched->jobs += number_of(account, jobs[i]);
        watched->active += i < ACTIVE ? number_of(account, jobs[i]) : 0;
    }
    watched->failed = number_of(account, "failed");
    watched->bad = number_of(account, "bad");
    live->quota_used = number_of(account, "window_used_units");
    live->quota_max = number_of(account, "window_max_units");
    live->in_flight = number_of(account, "in_flight");
    live->retried = number_of(account, "retried");
    take_note(account, watched, live->note, sizeof live->note);
}

/* ---- the ledger ---- */

static bool take_row(const struct tide_account_row *row, void *arg)
{
    struct cli_work *work = arg;
    for (size_t i = 0; i < work->count; i++) {
        struct cli_watched *watched = &work->accounts[i];
        if (strcmp(row->name, watched->name) != 0)
            continue;
        watched->account = row->id;
        watched->paused = row->paused;
        watched->halted = row->halted;
        watched->owner = row->owner;
        (void)snprintf(watched->archive, sizeof watched->archive, "%s", row->archive);
        (void)snprintf(watched->halt_reason, sizeof watched->halt_reason, "%s", row->halt_reason);
    }
    return true;
}

struct holder_ask {
    uint64_t owner;
    char *name;
};

static bool take_holder(const struct tide_member *member, void *arg)
{
    struct holder_ask *ask = arg;
    if (member->owner != ask->owner || member->dead)
        return true;
    (void)snprintf(ask->name, sizeof member->name, "%s", member->name);
    return false;
}

/* On a shared ledger: takes from the ledger, for all engines, what a snapshot says about ours. */
static void take_ledger(struct cli_work *work, struct cli_watched *watched, struct cli_live *live)
{
    struct holder_ask ask = {.owner = watched->owner, .name = watched->holder};
    watched->jobs = watched->active = watched->jobs_left;
    watched->failed = watched->jobs_failed;
    watched->bad = watched->items_bad;
    watched->stopped = watched->paused || watched->halted;
    watched->holder[0] = '\0';
    if (watched->owner != 0)
        (void)tide_ledger_members(work->cli->ledger, take_holder, &ask, NULL);
    if (watched->halted)
        (void)snprintf(live->note, sizeof live->note, "halted: %.140s", watched->halt_reason);
    else if (watched->paused)
        (void)snprintf(live->note, sizeof live->note, "paused by command");
    else if (watched->jobs > 0 && watched->owner == 0 && live->note[0] == '\0')
        (void)snprintf(live->note, sizeof live->note, "waiting for a process that has its archive");
}

struct jobs_ask {
    const char *system; /* kinds begin with it and a dot */
    const char *kind;   /* NULL: any */
    struct cli_watched *watched;
};

static bool is_asked(const struct jobs_ask *ask, tide_text kind)
{
    const size_t bytes = strlen(ask->system);
    if (ask->kind != NULL)
        return tide_text_equal(kind, tide_text_of(ask->kind));
    return kind.bytes > bytes && kind.data[bytes] == '.' &&
           memcmp(kind.data, ask->system, bytes) == 0;
}

static bool take_jobs(const struct tide_work_left *row, void *arg)
{
    struct jobs_ask *ask = arg;
    if (!is_asked(ask, row->kind_name))
        return true;
    if (row->state == TIDE_ROW_FAILED || row->state == TIDE_ROW_CANCELED)
        ask->watched->jobs_failed += row->jobs;
    else
        ask->watched->jobs_left += row->jobs;
    return true;
}

tide_status cli_watched_jobs(struct cli_work *work, size_t account, const char *kind)
{
    struct jobs_ask ask = {work->system->name, kind, &work->accounts[account]};
    ask.watched->jobs_left = ask.watched->jobs_failed = 0;
    return tide_ledger_work_left(work->cli->ledger, ask.watched->account, take_jobs, &ask,
                                 &work->cli->err);
}

/* Jobs that were seen and are no longer left are done. */
tide_status cli_watched_look(struct cli_work *work, size_t index, bool full)
{
    struct cli_watched *watched = &work->accounts[index];
    struct cli_live *live = &work->lives[index];
    const tide_status rc = full ? cli_watched_jobs(work, index, work->kind) : TIDE_OK;
    watched->settled = watched->jobs_left == 0;
    if (live->total == CLI_UNKNOWN || live->done + watched->jobs_left > live->total)
        live->total = live->done + watched->jobs_left;
    else
        live->done = live->total - watched->jobs_left;
    return rc;
}

static tide_status look(struct cli_work *work, size_t index, const json_t *snapshot, bool full)
{
    return work->look != NULL ? work->look(work->arg, index, snapshot, full)
                              : cli_watched_look(work, index, full);
}

/* ---- a sample ---- */

/* Work is shown with a time left only while it moves (live.h LIVE3). */
static void take_rate(const struct cli_columns *of, struct cli_watched *watched,
                      struct cli_live *live, uint64_t now_ms)
{
    double pace = 0;
    cli_meter_add(&watched->meter, now_ms, live->done, live->bytes);
    cli_pace_add(&watched->pace, now_ms, live->done);
    live->rate_known = cli_meter_rate(&watched->meter, &live->done_per_s, &live->bytes_per_s);
    const bool pace_known = cli_pace_rate(&watched->pace, &pace);
    live->left_ms = CLI_UNKNOWN;
    if (live->total == CLI_UNKNOWN)
        return;
    const uint64_t left = live->total > live->done ? live->total - live->done : 0;
    if (live->note[0] == '\0' || left == 0)
        live->left_ms = cli_left_ms(left, of->units_each, live->quota_max, pace_known, pace);
}

bool cli_watched_removed(struct cli_work *work, struct cli_watched *watched)
{
    char endpoint[TIDE_ENDPOINT_BYTES];
    if (watched->error.status == TIDE_OK &&
        tide_system_account_look(cli_work_owner(work), work->cli->ledger, watched->name, endpoint,
                                 NULL) == TIDE_NOT_FOUND)
        (void)tide_error_set(&watched->error, TIDE_NOT_FOUND, "the account was removed meanwhile");
    return watched->error.status == TIDE_NOT_FOUND;
}

static tide_status sample_one(struct cli_work *work, size_t index, const json_t *snapshot,
                              bool full, uint64_t now_ms)
{
    struct cli_watched *watched = &work->accounts[index];
    struct cli_live *live = &work->lives[index];
    take_snapshot(snapshot, watched, live);
    const tide_status rc = look(work, index, snapshot, full);
    if (rc == TIDE_NOT_FOUND && cli_watched_removed(work, watched))
        return TIDE_OK; /* the others continue */
    if (rc != TIDE_OK)
        return rc;
    if (work->cli->shared != NULL)
        take_ledger(work, watched, live);
    if (!work->looked) {
        watched->failed_first = watched->failed;
        watched->jobs_failed_first = watched->jobs_failed;
        watched->bad_first = watched->bad;
    }
    if (work->stopping)
        (void)snprintf(live->note, sizeof live->note, "stopping; what was fetched is stored");
    take_rate(work->columns, watched, live, now_ms);
    return TIDE_OK;
}

static tide_status sample_all(struct cli_work *work, const json_t *snapshot, bool full,
                              uint64_t now_ms)
{
    tide_status rc = tide_ledger_accounts(work->cli->ledger, take_row, work, &work->cli->err);
    for (size_t i = 0; rc == TIDE_OK && i < work->count; i++)
        rc = sample_one(work, i, snapshot, full, now_ms);
    return rc;
}

bool cli_watched_failed(const struct cli_watched *watched)
{
    return watched->failed > watched->failed_first ||
           watched->jobs_failed > watched->jobs_failed_first;
}

bool cli_watched_is_stuck(const struct cli_watched *watched)
{
    return watched->stopped || watched->signed_out;
}

/* Whether no account has active jobs, except those that are stuck, according to the engine. */
static bool is_idle(const struct cli_work *work)
{
    for (size_t i = 0; i < work->count; i++)
        if (work->accounts[i].active > 0 && !cli_watched_is_stuck(&work->accounts[i]))
            return false;
    return true;
}

static tide_status sample(struct cli_work *work, bool last, uint64_t now_ms)
{
    json_t *snapshot = cli_snapshot(work->cli, work->opened->engine);
    work->gone = snapshot == NULL && work->opened->engine == NULL;
    bool full = last || work->soon || !work->looked || work->gone ||
                now_ms - work->looked_ms >= LOOK_MS || is_idle(work);
    tide_status rc = sample_all(work, snapshot, full, now_ms);
    /* No active job means the end only if no job is left, and an earlier count cannot say that:
     * a job may have ended since, and its new jobs may not be in the window yet. */
    if (rc == TIDE_OK && !full && is_idle(work)) {
        full = true;
        rc = sample_all(work, snapshot, full, now_ms);
    }
    work->sampled_ms = now_ms;
    work->soon = false;
    if (full) {
        work->looked = true;
        work->looked_ms = now_ms;
    }
    json_decref(snapshot);
    return rc;
}

tide_status cli_watch_tick(struct cli_work *work, bool last)
{
    const uint64_t now_ms = tide_world_now_ms(work->cli->world);
    const bool sampled =
        last || work->soon || !work->looked || now_ms - work->sampled_ms >= SAMPLE_MS;
    const tide_status rc = sampled ? sample(work, last, now_ms) : TIDE_OK;
    if (rc == TIDE_OK)
        cli_display_show(&work->display, work->lives, work->count, work->handed_over, sampled,
                         last);
    return rc;
}

void cli_watch_look_soon(struct cli_work *work)
{
    work->soon = true;
}

void cli_watch_restart(struct cli_work *work)
{
    work->looked = work->gone = false;
    work->pid = 0;
    cli_watch_look_soon(work);
}

/* ---- one account, without a struct cli_work ---- */

void cli_shown_open(struct cli *cli, const struct tide_system *system, const struct cli_columns *of,
                    const char *account, struct cli_shown *shown)
{
    *shown = (struct cli_shown){.live = {.total = CLI_UNKNOWN, .left_ms = CLI_UNKNOWN}};
    cli_display_open(cli, system->name, of, &shown->display);
    (void)snprintf(shown->watched.name, sizeof shown->watched.name, "%s", account);
    (void)snprintf(shown->live.name, sizeof shown->live.name, "%s", account);
}

void cli_shown_tick(struct cli_shown *shown, tide_engine *engine, bool last)
{
    struct cli *cli = shown->display.cli;
    const uint64_t now_ms = tide_world_now_ms(cli->world);
    const bool sampled = last || now_ms - shown->sampled_ms >= SAMPLE_MS;
    if (sampled) {
        json_t *snapshot = cli_snapshot(cli, engine);
        take_snapshot(snapshot, &shown->watched, &shown->live);
        take_rate(shown->display.of, &shown->watched, &shown->live, now_ms);
        shown->sampled_ms = now_ms;
        json_decref(snapshot);
    }
    cli_display_show(&shown->display, &shown->live, 1, engine == NULL, sampled, last);
}

/* ---- whether it is over ---- */

bool cli_watch_is_over(const struct cli_work *work, size_t account)
{
    const struct cli_watched *watched = &work->accounts[account];
    if (watched->error.status != TIDE_OK || cli_watched_is_stuck(watched))
        return true;
    return work->looked && watched->settled &&
           (work->settles || work->cli->shared != NULL || watched->active == 0);
}

bool cli_watch_all_over(const struct cli_work *work)
{
    for (size_t i = 0; i < work->count; i++)
        if (!cli_watch_is_over(work, i))
            return false;
    return true;
}

bool cli_watch_settled(const struct cli_work *work)
{
    for (size_t i = 0; i < work->count; i++)
        if (!work->accounts[i].settled)
            return false;
    return work->looked;
}
