/* status.c - `tidemark status`: all accounts of all systems, one line each (E9.3).
 *
 * Opens everything read-only and asks the running engine for a snapshot, if there is one. */
#include "cli/status/status.h"

#include "cli/account_seen.h"
#include "cli/archive_here.h"

#include "base/clocktext.h"
#include "base/limits.h"
#include "ledger/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* An account, with what the ledger has of its jobs. */
struct one {
    struct tide_account_row row;
    uint64_t running, waiting, failed; /* jobs */
    struct {
        uint64_t running, waiting, failed;
    } of[TIDE_SYSTEMS_MAX]; /* of these, those of a system without accounts */
    const char *wrong;      /* why its state cannot be read; NULL: it was read */
};

struct status {
    struct cli *cli;
    struct tide_system_home home;
    json_t *snapshot;             /* NULL: no engine runs */
    struct status_meters *meters; /* NULL: this is the only look */
    struct status_totals totals;
    struct one *accounts;
    size_t count, capacity;
    bool failed;
    tide_json list;
};

/* ---- the ledger ---- */

static bool collect(const struct tide_account_row *row, void *arg)
{
    struct status *status = arg;
    status->failed = !tide_mem_grow(status->cli->mem, (void **)&status->accounts, &status->capacity,
                                    status->count + 1, TIDE_ACCOUNTS_MAX, sizeof *status->accounts);
    if (!status->failed)
        status->accounts[status->count++] = (struct one){.row = *row};
    return !status->failed;
}

/* Kinds of jobs are named after their system: "reader.body". */
static bool is_of(const struct tide_system *system, tide_text kind)
{
    const size_t bytes = strlen(system->name);
    return system->provider[0] == '\0' && kind.bytes > bytes && kind.data[bytes] == '.' &&
           memcmp(kind.data, system->name, bytes) == 0;
}

static void count_of_systems(const struct status *status, struct one *one,
                             const struct tide_job_count *count)
{
    for (size_t i = 0; status->cli->systems[i] != NULL; i++) {
        if (!is_of(status->cli->systems[i], count->kind_name))
            continue;
        if (count->state == TIDE_ROW_RUNNING)
            one->of[i].running += count->count;
        else if (count->state ==
                 TIDE_ROW_PENDING) /* those that are to be done later wait for nothing */
            one->of[i].waiting += count->count - count->delayed;
        else if (count->state == TIDE_ROW_FAILED)
            one->of[i].failed += count->count;
    }
}

static bool count_jobs(const struct tide_job_count *count, void *arg)
{
    struct status *status = arg;
    status_totals_add(&status->totals, count);
    for (size_t i = 0; i < status->count; i++) {
        struct one *one = &status->accounts[i];
        if (one->row.id != count->account)
            continue;
        count_of_systems(status, one, count);
        if (count->state == TIDE_ROW_RUNNING)
            one->running += count->count;
        else if (count->state == TIDE_ROW_PENDING)
            one->waiting += count->count;
        else if (count->state == TIDE_ROW_FAILED)
            one->failed += count->count;
    }
    return true;
}

/* ---- what it does now, and why ---- */

enum { NOW_BYTES = 500 };

/* A word for JSON; `text` says it to a user. */
static const char *now(const struct status *status, const struct one *one,
                       const struct account_seen *seen, char text[NOW_BYTES])
{
    char when[32];
    const bool refused = tide_outcome_is_bad(&seen->outcome) && seen->outcome.status == TIDE_AUTH;
    text[0] = '\0';
    if (one->wrong != NULL) {
        (void)snprintf(text, NOW_BYTES, "%s", one->wrong);
        return "broken";
    }
    if (one->row.halted) {
        (void)snprintf(text, NOW_BYTES, "halted: %.400s", one->row.halt_reason);
        return "halted";
    }
    if (one->row.paused) {
        (void)snprintf(text, NOW_BYTES, "paused by command");
        return "paused";
    }
    if (refused) {
        (void)snprintf(text, NOW_BYTES, "needs a sign-in: %.400s", seen->outcome.text);
        return "signed_out";
    }
    if (seen->next_try_ms > 0) {
        (void)snprintf(text, NOW_BYTES, "waits until %s: %.400s", cli_time(seen->next_try_ms, when),
                       seen->outcome.text);
        return "waiting";
    }
    if (one->running > 0 && (status->snapshot != NULL || status->cli->shared != NULL)) {
        (void)snprintf(text, NOW_BYTES, "running: %" PRIu64 " job%s, %" PRIu64 " waiting",
                       one->running, one->running == 1 ? "" : "s", one->waiting);
        return "running";
    }
    if (one->running + one->waiting > 0) {
        (void)snprintf(text, NOW_BYTES, "%s: %" PRIu64 " job%s left",
                       status->snapshot == NULL ? "stopped" : "waiting",
                       one->running + one->waiting, one->running + one->waiting == 1 ? "" : "s");
        return status->snapshot == NULL ? "stopped" : "waiting";
    }
    if (one->failed > 0) {
        (void)snprintf(text, NOW_BYTES, "%" PRIu64 " job%s failed", one->failed,
                       one->failed == 1 ? "" : "s");
        return "failed";
    }
    (void)snprintf(text, NOW_BYTES, "idle");
    return "idle";
}

static uint64_t number_of(const json_t *object, const char *field)
{
    const json_int_t number = json_integer_value(json_object_get(object, field));
    return number < 0 ? 0 : (uint64_t)number;
}

/* ---- time left ---- */

void status_meters_done(struct status_meters *meters)
{
    if (meters->mem != NULL)
        tide_mem_free(meters->mem, meters->list, meters->capacity * sizeof *meters->list);
    *meters = (struct status_meters){.mem = NULL};
}

/* NULL: out of memory; the rate stays unknown. */
static struct cli_meter *meter_of(struct status_meters *meters, uint32_t account)
{
    for (size_t i = 0; i < meters->count; i++)
        if (meters->list[i].account == account)
            return &meters->list[i].meter;
    if (!tide_mem_grow(meters->mem, (void **)&meters->list, &meters->capacity, meters->count + 1,
                       TIDE_ACCOUNTS_MAX, sizeof *meters->list))
        return NULL;
    meters->list[meters->count] = (struct status_meter){.account = account};
    return &meters->list[meters->count++].meter;
}

/* What is left becomes less: a meter wants what becomes more. */
static bool rate_of(const struct status *status, uint32_t account, uint64_t left, double *per_s_out)
{
    const uint64_t many = UINT64_MAX / 2;
    double bytes_per_s = 0;
    struct cli_meter *meter = status->meters == NULL ? NULL : meter_of(status->meters, account);
    if (meter == NULL)
        return false;
    cli_meter_add(meter, tide_world_now_ms(status->cli->world), left < many ? many - left : 0, 0);
    return cli_meter_rate(meter, per_s_out, &bytes_per_s);
}

/* Known while an engine works on the account, and all that is left is listed. */
static uint64_t time_left_ms(const struct status *status, const struct one *one, const char *word,
                             const struct tide_account_status *state)
{
    const json_t *live = account_in_snapshot(status->snapshot, one->row.name);
    double per_s = 0;
    const bool known = rate_of(status, one->row.id, state->left, &per_s);
    if (live == NULL || state->left == 0 || state->more || strcmp(word, "running") != 0)
        return CLI_UNKNOWN;
    return cli_left_ms(state->left, state->left_units, number_of(live, "window_max_units"), known,
                       per_s);
}

static void show_time_left(struct status *status, uint64_t left_ms, tide_json *json)
{
    char text[TIDE_DURATION_TEXT_BYTES];
    if (left_ms == CLI_UNKNOWN) {
        tide_json_set_null(json, "time_left_ms");
        cli_cell(status->cli, "-");
        return;
    }
    tide_duration_human(left_ms < 1000 ? 1000 : left_ms / 1000 * 1000, text);
    tide_json_set_u64(json, "time_left_ms", left_ms);
    cli_cell(status->cli, "%s", text);
}

/* ---- one line ---- */

/* What a display needs that has more room than a line. */
static void set_ruler(const struct tide_ruler *ruler, tide_json *json)
{
    tide_json one;
    if (ruler->cells[0] == '\0') {
        tide_json_set_null(json, "ruler");
        return;
    }
    tide_json_object(&one);
    tide_json_set_u64(&one, "from_unix_ms", ruler->from_ms);
    tide_json_set_u64(&one, "to_unix_ms", ruler->to_ms);
    tide_json_set_cstr(&one, "cells", ruler->cells);
    tide_json_set(json, "ruler", &one);
}

static void set_halt(const struct tide_account_row *row, tide_json *json)
{
    if (row->halted)
        tide_json_set_u64(json, "halted_unix_ms", row->halted_unix_ms);
    else
        tide_json_set_null(json, "halted_unix_ms");
    tide_json_set_cstr(json, "halt_reason", row->halted ? row->halt_reason : NULL);
}

static void show_quota(struct status *status, const char *name, bool own, tide_json *json)
{
    const json_t *live = account_in_snapshot(status->snapshot, name);
    const uint64_t used = number_of(live, "window_used_units");
    const uint64_t max = number_of(live, "window_max_units");
    if (max == 0 || !own) {
        cli_cell(status->cli, "-");
        return;
    }
    cli_cell(status->cli, "%" PRIu64 "/%" PRIu64, used, max);
    tide_json_set_u64(json, "quota_used_units", used);
    tide_json_set_u64(json, "quota_max_units", max);
}

/* What the engine of this process stored; another process of a fleet has its own. */
static void show_rate(struct status *status, const char *name, tide_json *json)
{
    const json_t *live = account_in_snapshot(status->snapshot, name);
    if (live == NULL)
        tide_json_set_null(json, "rate_per_minute");
    else
        tide_json_set_u64(json, "rate_per_minute", number_of(live, "items_last_minute"));
}

static void show_line(struct status *status, const struct one *one,
                      const struct tide_system *system, const struct tide_account_status *state)
{
    struct cli *cli = status->cli;
    struct account_seen seen;
    char text[NOW_BYTES];
    char mark[32];
    const bool own = system->provider[0] != '\0'; /* the account is of this system */
    tide_json json;
    account_seen(cli, status->snapshot, one->row.id, one->row.name, &seen);
    const char *tidemark = state->tidemark_unix_ms > 0  ? cli_time(state->tidemark_unix_ms, mark)
                           : state->tidemark[0] != '\0' ? state->tidemark
                                                        : NULL;
    const char *word = now(status, one, &seen, text);
    tide_json_object(&json);
    tide_json_set_cstr(&json, "account", one->row.name);
    tide_json_set_cstr(&json, "system", system->name);
    tide_json_set_cstr(&json, "now", word);
    tide_json_set_cstr(&json, "why", text);
    tide_json_set_cstr(&json, "tidemark", tidemark);
    if (state->tidemark_unix_ms > 0)
        tide_json_set_u64(&json, "tidemark_unix_ms", state->tidemark_unix_ms);
    tide_json_set_u64(&json, "gaps", state->gaps);
    tide_json_set_u64(&json, "left", state->left);
    tide_json_set_bool(&json, "left_is_known", !state->more);
    tide_json_set_u64(&json, "stored", state->stored);
    tide_json_set_u64(&json, "exact",
                      state->stored > state->inexact ? state->stored - state->inexact : 0);
    tide_json_set_cstr(&json, "unit", system->unit);
    tide_json_set_cstr(&json, "words", state->words[0] == '\0' ? NULL : state->words);
    tide_json_set_u64(&json, "bad", state->bad);
    tide_json_set_cstr(&json, "note", state->note[0] == '\0' ? NULL : state->note);
    show_rate(status, one->row.name, &json);
    tide_json_set_u64(&json, "jobs_running", one->running);
    tide_json_set_u64(&json, "jobs_waiting", one->waiting);
    tide_json_set_u64(&json, "jobs_failed", one->failed);
    set_ruler(&state->ruler, &json);
    set_halt(&one->row, &json);
    status_pace(account_in_snapshot(status->snapshot, one->row.name), &json);
    cli_cell(cli, "%s", one->row.name);
    cli_cell(cli, "%s", system->name);
    cli_cell(cli, "%s", !own ? "-" : tidemark == NULL ? "none yet" : tidemark);
    cli_cell(cli, "%" PRIu64, state->gaps);
    cli_cell(cli, "%" PRIu64 "%s", state->left, state->more ? "+" : "");
    if (state->words[0] != '\0')
        cli_cell(cli, "%s", state->words);
    else
        cli_cell(cli, "%" PRIu64 " %s", state->stored, system->unit);
    cli_cell(cli, "%" PRIu64, state->bad);
    show_quota(status, one->row.name, own, &json);
    show_time_left(status, time_left_ms(status, one, word, state), &json);
    cli_cell(cli, "%s%s%s", text, state->note[0] == '\0' ? "" : "; ", state->note);
    account_seen_json(&seen, &json);
    tide_json_append(&status->list, &json);
}

/* ---- one account that cannot be read ---- */

/* What failed because of this account, and not for all of them. */
static bool is_its_own(tide_status rc)
{
    const tide_class class = tide_status_class(rc);
    return class == TIDE_CLASS_PERMANENT || class == TIDE_CLASS_GONE;
}

/* What happened, and what to do.  The other accounts are shown as they are. */
static void show_wrong(struct status *status, const struct one *one,
                       const struct tide_system *system, tide_status rc)
{
    const struct tide_account_status unknown = {.more = true};
    struct one shown = *one;
    char text[NOW_BYTES];
    if (rc == TIDE_NOT_FOUND)
        account_rows_missing(system, one->row.name, text, sizeof text);
    else
        (void)snprintf(text, sizeof text,
                       "its state cannot be read: %.300s; run `tidemark ledger check`",
                       status->cli->err.text);
    shown.wrong = text;
    show_line(status, &shown, system, &unknown);
    status->cli->err = (tide_error){TIDE_OK, 0, ""};
}

static const json_t *shown_of(const struct status *status, const struct tide_system *system)
{
    return json_object_get(json_object_get(status->snapshot, "systems"), system->name);
}

/* What systems without accounts of their own do for this one. */
static tide_status show_others(struct status *status, const struct one *one)
{
    struct cli *cli = status->cli;
    for (size_t i = 0; cli->systems[i] != NULL; i++) {
        const struct tide_system *system = cli->systems[i];
        struct tide_account_status state = {.gaps = 0};
        struct tide_system_home home = status->home;
        struct one shown = *one;
        if (system->provider[0] != '\0')
            continue;
        home.shown = shown_of(status, system);
        home.jobs_waiting = one->of[i].waiting;
        TIDE_TRY(system->status(&home, cli->ledger, &one->row, &state, &cli->err));
        shown.running = one->of[i].running;
        shown.waiting = one->of[i].waiting;
        shown.failed = one->of[i].failed;
        if (state.words[0] != '\0')
            show_line(status, &shown, system, &state);
    }
    return TIDE_OK;
}

/* Accounts that were removed, or belong to no system of this program, have no line. */
static tide_status show_account(struct status *status, const struct one *one)
{
    struct cli *cli = status->cli;
    char endpoint[TIDE_ENDPOINT_BYTES];
    struct tide_account_status state = {.gaps = 0};
    const struct tide_system *system = tide_system_of_provider(cli->systems, one->row.provider);
    if (system == NULL)
        return TIDE_OK;
    tide_status rc =
        tide_system_account_look(system, cli->ledger, one->row.name, endpoint, &cli->err);
    if (rc == TIDE_NOT_FOUND && !account_is_kept(&one->row) && one->running + one->waiting == 0)
        return TIDE_OK;
    status->home.kept = cli_kept(cli, system);
    if (rc == TIDE_OK)
        rc = system->status(&status->home, cli->ledger, &one->row, &state, &cli->err);
    if (rc == TIDE_OK) {
        show_line(status, one, system, &state);
        return show_others(status, one);
    }
    if (is_its_own(rc))
        show_wrong(status, one, system, rc);
    return is_its_own(rc) ? TIDE_OK : rc;
}

/* One snapshot for all: an account that is removed meanwhile is not half there. */
static tide_status show_accounts(struct status *status)
{
    struct cli *cli = status->cli;
    const tide_rows db = tide_ledger_rows(cli->ledger);
    bool own = false;
    tide_status rc = tide_rows_snapshot(db, "the accounts", &own, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_ledger_accounts(cli->ledger, collect, status, &cli->err);
    if (rc == TIDE_OK && status->failed)
        rc = cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    if (rc == TIDE_OK)
        rc = tide_ledger_counts_left(cli->ledger, cli->now_unix_ms, count_jobs, status, &cli->err);
    for (size_t i = 0; rc == TIDE_OK && i < status->count; i++)
        rc = show_account(status, &status->accounts[i]);
    tide_rows_snapshot_end(db, own);
    return rc;
}

tide_status status_look(struct cli *cli, struct status_meters *meters)
{
    static const char *const headings[] = {"ACCOUNT", "SYSTEM", "TIDEMARK", "GAPS",      "LEFT",
                                           "STORED",  "BAD",    "QUOTA",    "TIME LEFT", "NOW"};
    struct status status = {.cli = cli, .meters = meters};
    char archive_dir[CLI_PATH_BYTES];
    char secrets_dir[CLI_PATH_BYTES];
    tide_json alone;
    tide_status rc = archive_here_places(cli, archive_dir, secrets_dir);
    if (rc == TIDE_OK)
        rc = cli_ledger_read(cli);
    const bool unset = rc == TIDE_NOT_FOUND && cli->shared == NULL; /* no account was ever added */
    status.home = (struct tide_system_home){.world = cli->world,
                                            .config_path = cli->config_path,
                                            .mem = cli->mem,
                                            .settings = cli->settings,
                                            .cache_dir = cli->cache_dir,
                                            .archive_dir = archive_dir};
    status.snapshot = cli_snapshot(cli, NULL);
    tide_json_array(&status.list);
    if (unset)
        status_alone(cli, archive_dir, NULL, &alone);
    else
        tide_json_array(&alone);
    if (unset && json_array_size(alone.value) > 0)
        rc = TIDE_OK;
    if (rc == TIDE_OK)
        cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    if (rc == TIDE_OK && !unset) {
        rc = show_accounts(&status);
        tide_json_done(&alone);
        status_alone(cli, archive_dir, status.list.value, &alone);
    }
    if (rc == TIDE_OK)
        cli->hint[0] = '\0';
    if (rc == TIDE_OK)
        cli->err = (tide_error){TIDE_OK, 0, ""};
    if (rc == TIDE_OK || cli->table != NULL)
        cli_table_end(cli, "no accounts; add one with `tidemark account add`");
    status_alone_print(cli, alone.value);
    if (rc != TIDE_OK) /* the next look begins anew */
        tide_buf_clear(&cli->out);
    tide_json_set_bool(&cli->json, "engine", status.snapshot != NULL);
    tide_json_set(&cli->json, "accounts", &status.list);
    tide_json_set(&cli->json, "archives", &alone);
    status_systems(cli, &cli->json);
    status_totals_json(&status.totals, &cli->json);
    status_lanes(status.snapshot, &cli->json);
    tide_mem_free(cli->mem, status.accounts, status.capacity * sizeof *status.accounts);
    json_decref(status.snapshot);
    return cli_hint(cli, rc, "Run `tidemark ledger check`.");
}

tide_status cli_status(struct cli *cli)
{
    return cli_flag(cli, "watch") != NULL ? status_watch(cli) : status_look(cli, NULL);
}
