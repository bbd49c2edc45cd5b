/* jobs.c - `tidemark jobs list|show|explain|stats`: reading the ledger (E1.11). */
#include "cli/cli.h"
#include "ledger/outcome.h"
#include "base/limits.h"
#include "ledger/account_totals.h"

#include "base/check.h"
#include "base/clocktext.h"

#include <inttypes.h>
#include <stdio.h>

static const char *lane_name(uint8_t lane)
{
    return lane == TIDE_LANE_INTERACTIVE ? "interactive" : "bulk";
}

static void time_set(tide_json *json, const char *key, uint64_t unix_ms)
{
    if (unix_ms == 0)
        tide_json_set_null(json, key);
    else
        tide_json_set_u64(json, key, unix_ms);
}

/* The fields of a job, in `list` and in `show`. */
static void job_to_json(const struct tide_job_row *row, tide_json *job)
{
    tide_json_object(job);
    tide_json_set_u64(job, "id", row->id);
    tide_json_set_cstr(job, "state", tide_row_state_name(row->state));
    tide_json_set_text(job, "kind", row->kind_name);
    if (row->account == 0)
        tide_json_set_null(job, "account");
    else
        tide_json_set_text(job, "account", row->account_name);
    tide_json_set_u64(job, "priority", row->priority);
    tide_json_set_cstr(job, "lane", lane_name(row->lane));
    tide_json_set_u64(job, "level", row->level);
    tide_json_set_u64(job, "attempts", row->attempts);
    tide_json_set_u64(job, "attempts_max", row->attempts_max);
    tide_json_set_u64(job, "open_deps", row->open_deps);
    tide_json_set_u64(job, "cycle", row->cycle);
    tide_json_set_u64(job, "size_bytes", row->size_bytes);
    tide_json_set_u64(job, "bytes_done", row->bytes_done);
    time_set(job, "not_before_unix_ms", row->not_before_unix_ms);
    time_set(job, "created_unix_ms", row->created_unix_ms);
    time_set(job, "started_unix_ms", row->started_unix_ms);
    time_set(job, "finished_unix_ms", row->finished_unix_ms);
    tide_json_set_cstr(job, "status", tide_status_name(row->status));
    tide_json_set_text(job, "error", row->error);
}

tide_status cli_state_check(struct cli *cli, const char *state)
{
    tide_row_state parsed = TIDE_ROW_PENDING;
    if (state == NULL || tide_row_state_parse(tide_text_of(state), &parsed))
        return TIDE_OK;
    cli->exit_code = CLI_EXIT_USAGE;
    return cli_fail(cli, TIDE_INVALID, "States are pending, running, done, failed, canceled.",
                    "there is no state \"%.40s\"", state);
}

/* ---- list ------------------------------------------------------------------------- */

struct listing {
    struct cli *cli;
    tide_json jobs;
    uint64_t count, last_id;
};

static bool list_row(const struct tide_job_row *row, void *arg)
{
    struct listing *listing = arg;
    struct cli *cli = listing->cli;
    char when[32];
    tide_json job;
    listing->count++;
    listing->last_id = row->id;
    job_to_json(row, &job);
    tide_json_append(&listing->jobs, &job);
    const char *state = tide_row_state_name(row->state);
    if (row->state == TIDE_ROW_PENDING && row->open_deps > 0)
        state = "blocked";
    else if (row->state == TIDE_ROW_PENDING && row->not_before_unix_ms > cli->now_unix_ms)
        state = "delayed";
    cli_cell(cli, "%" PRIu64, row->id);
    cli_cell(cli, "%s", state);
    cli_cell_text(cli, row->kind_name);
    cli_cell_text(cli, row->account_name);
    cli_cell(cli, "%u", row->priority);
    cli_cell(cli, "%u/%u", row->attempts, row->attempts_max);
    cli_cell(cli, "%s", cli_time(row->created_unix_ms, when));
    cli_cell_text(cli, row->error);
    return true;
}

static tide_status list_filter(struct cli *cli, struct tide_job_filter *filter)
{
    struct tide_control_filter named = {
        .account = cli_flag(cli, "account"),
        .kind = cli_flag(cli, "kind"),
        .state = cli_flag(cli, "state"),
    };
    uint64_t limit = 100, after = 0;
    tide_status rc = cli_state_check(cli, named.state);
    if (rc == TIDE_OK && cli_flag(cli, "cycle") != NULL)
        rc = cli_number(cli, cli_flag(cli, "cycle"), "--cycle", &named.cycle);
    if (rc == TIDE_OK && cli_flag(cli, "limit") != NULL)
        rc = cli_number(cli, cli_flag(cli, "limit"), "--limit", &limit);
    if (rc == TIDE_OK && cli_flag(cli, "after") != NULL)
        rc = cli_number(cli, cli_flag(cli, "after"), "--after", &after);
    if (rc == TIDE_OK && (limit == 0 || limit > CLI_LIST_MAX)) {
        cli->exit_code = CLI_EXIT_USAGE;
        rc = cli_fail(cli, TIDE_INVALID, "Use --after for the next page.",
                      "--limit must be between 1 and %d", CLI_LIST_MAX);
    }
    if (rc == TIDE_OK)
        rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_control_filter_find(&named, cli->ledger, filter, &cli->err);
    filter->count_max = (size_t)limit;
    filter->before_id = after;
    return cli_hint(cli, rc, "`tidemark account list` and `tidemark jobs stats` show the names.");
}

tide_status cli_jobs_list(struct cli *cli)
{
    static const char *const headings[] = {"ID",       "STATE", "KIND",    "ACCOUNT",
                                           "PRIORITY", "TRIED", "CREATED", "ERROR"};
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    TIDE_TRY(list_filter(cli, &filter));
    struct listing listing = {.cli = cli};
    uint64_t total = 0;
    char next[24] = "";
    tide_json_array(&listing.jobs);
    cli_table_begin(cli, headings, 8);
    tide_status rc = tide_ledger_jobs(cli->ledger, &filter, list_row, &listing, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_ledger_jobs_count(cli->ledger, &filter, &total, &cli->err);
    cli_table_end(cli, "no jobs");
    if (listing.count == filter.count_max)
        (void)snprintf(next, sizeof next, "%" PRIu64, listing.last_id);
    if (next[0] != '\0' && !cli->quiet)
        cli_print(cli, "(%" PRIu64 " in all; older ones: --after %s)\n", total, next);
    tide_json_set(&cli->json, "items", &listing.jobs);
    tide_json_set_cstr(&cli->json, "next", next[0] == '\0' ? NULL : next);
    tide_json_set_u64(&cli->json, "total", total);
    return cli_hint(cli, rc, "Run `tidemark ledger check`.");
}

/* ---- show ------------------------------------------------------------------------- */

struct shown {
    struct cli *cli;
    bool found;
    uint64_t owner; /* the process that runs it, on a shared ledger */
    tide_json job;
    char holder[sizeof((struct tide_member *)0)->name];
};

static void print_field(struct cli *cli, const char *name, const char *value)
{
    cli_print(cli, "%-14s %s\n", name, value);
}

/* Text from outside, without control characters, cut at the width of a page. */
static void print_text(struct cli *cli, const char *name, tide_text text)
{
    char line[2001];
    size_t bytes = text.bytes < sizeof line - 1 ? text.bytes : sizeof line - 1;
    if (text.bytes == 0)
        return;
    memcpy(line, text.data, bytes);
    line[bytes] = '\0';
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    cli_print(cli, "%-14s %s%s\n", name, line, bytes < text.bytes ? "..." : "");
}

static bool show_row(const struct tide_job_row *row, void *arg)
{
    struct shown *shown = arg;
    struct cli *cli = shown->cli;
    char text[64];
    tide_json *job = &shown->job;
    shown->found = true;
    shown->owner = row->state == TIDE_ROW_RUNNING ? row->owner : 0;
    job_to_json(row, job);
    tide_json_set_text(job, "dedupe_key", row->dedupe_key);
    tide_json_set_raw(job, "payload", row->payload);
    tide_json_set_text(job, "resume", row->resume);
    tide_json_set_text(job, "run", row->run_id);
    tide_json_set_bool(job, "force", row->force);
    tide_json_set_bool(job, "preemptible", row->preemptible);
    time_set(job, "beat_unix_ms", row->beat_unix_ms);

    cli_print(cli, "%-14s %" PRIu64 "\n", "job", row->id);
    print_field(cli, "state", tide_row_state_name(row->state));
    print_text(cli, "kind", row->kind_name);
    print_text(cli, "account", row->account_name);
    cli_print(cli, "%-14s %u (%s, level %u)\n", "priority", row->priority, lane_name(row->lane),
              row->level);
    cli_print(cli, "%-14s %u of %u\n", "attempts", row->attempts, row->attempts_max);
    if (row->open_deps > 0)
        cli_print(cli, "%-14s %u jobs (`tidemark jobs explain %" PRIu64 "`)\n", "waits for",
                  row->open_deps, row->id);
    if (row->cycle != 0)
        cli_print(cli, "%-14s %" PRIu64 "\n", "cycle", row->cycle);
    if (row->size_bytes > 0) {
        char size[TIDE_SIZE_TEXT_BYTES], done[TIDE_SIZE_TEXT_BYTES];
        tide_size_human(row->size_bytes, size);
        tide_size_human(row->bytes_done, done);
        cli_print(cli, "%-14s %s of %s\n", "bytes", done, size);
    }
    print_field(cli, "created", cli_time(row->created_unix_ms, text));
    if (row->not_before_unix_ms != 0)
        print_field(cli, "not before", cli_time(row->not_before_unix_ms, text));
    if (row->started_unix_ms != 0)
        print_field(cli, "started", cli_time(row->started_unix_ms, text));
    if (row->beat_unix_ms != 0)
        print_field(cli, "last beat", cli_time(row->beat_unix_ms, text));
    if (row->finished_unix_ms != 0)
        print_field(cli, "finished", cli_time(row->finished_unix_ms, text));
    print_text(cli, "error", row->error);
    print_text(cli, "dedupe key", row->dedupe_key);
    print_text(cli, "run", row->run_id);
    print_text(cli, "resume", row->resume);
    print_text(cli, "payload", row->payload);
    return false;
}

static bool take_holder(const struct tide_member *member, void *arg)
{
    struct shown *shown = arg;
    if (member->owner != shown->owner)
        return true;
    (void)snprintf(shown->holder, sizeof shown->holder, "%s", member->name);
    return false;
}

/* Which process runs it, on a shared ledger. */
static tide_status show_holder(struct shown *shown)
{
    struct cli *cli = shown->cli;
    tide_status rc = TIDE_OK;
    if (shown->owner != 0)
        rc = tide_ledger_members(cli->ledger, take_holder, shown, &cli->err);
    tide_json_set_cstr(&shown->job, "run_by", shown->holder[0] == '\0' ? NULL : shown->holder);
    if (shown->holder[0] != '\0')
        print_field(cli, "run by", shown->holder);
    return rc;
}

static tide_status no_job(struct cli *cli, uint64_t id)
{
    return cli_fail(
        cli, TIDE_NOT_FOUND,
        "Finished jobs are purged (setting purge.after); `tidemark jobs list` shows the rest.",
        "there is no job %" PRIu64, id);
}

tide_status cli_jobs_show(struct cli *cli)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    struct shown shown = {.cli = cli};
    TIDE_TRY(cli_number(cli, cli->arguments[0], "the id", &filter.id));
    if (filter.id == 0)
        return no_job(cli, 0);
    TIDE_TRY(cli_ledger_read(cli));
    tide_status rc = tide_ledger_jobs(cli->ledger, &filter, show_row, &shown, &cli->err);
    if (rc == TIDE_OK && !shown.found)
        return no_job(cli, filter.id);
    if (rc == TIDE_OK && cli->shared != NULL)
        rc = show_holder(&shown);
    tide_json_set(&cli->json, "job", &shown.job);
    return cli_hint(cli, rc, "Run `tidemark ledger check`.");
}

/* ---- explain ------------------------------------------------------------------------ */

enum { NEEDS_SHOWN_MAX = 20 };

struct explained {
    struct cli *cli;
    bool found;
    struct tide_job_row row; /* its texts are invalid after the visit */
    char kind[201], account[201], error[401];
    tide_json reasons;
    unsigned count;
};

static void text_keep(char *out, size_t room, tide_text text)
{
    size_t bytes = text.bytes < room - 1 ? text.bytes : room - 1;
    if (bytes > 0)
        memcpy(out, text.data, bytes);
    out[bytes] = '\0';
}

static bool explain_row(const struct tide_job_row *row, void *arg)
{
    struct explained *e = arg;
    e->found = true;
    e->row = *row;
    text_keep(e->kind, sizeof e->kind, row->kind_name);
    text_keep(e->account, sizeof e->account, row->account_name);
    text_keep(e->error, sizeof e->error, row->error);
    return false;
}

/* One reason: a word for JSON, a sentence for display.  Takes ownership of `reason` if
 * it has more fields; NULL: none. */
static void reason_add(struct explained *e, const char *why, tide_json *reason, const char *text)
{
    tide_json made;
    if (reason == NULL) {
        tide_json_object(&made);
        reason = &made;
    }
    tide_json_set_cstr(reason, "why", why);
    tide_json_set_cstr(reason, "text", text);
    tide_json_append(&e->reasons, reason);
    cli_print(e->cli, "  %s\n", text);
    e->count++;
}

static void explain_finished(struct explained *e)
{
    char text[700], when[32], beat[32];
    uint64_t id = e->row.id;
    switch (e->row.state) {
    case TIDE_ROW_DONE:
        (void)snprintf(text, sizeof text, "it finished %s",
                       cli_time(e->row.finished_unix_ms, when));
        break;
    case TIDE_ROW_FAILED:
        (void)snprintf(
            text, sizeof text,
            "it failed after %u attempts: %s; retry it with `tidemark jobs retry %" PRIu64 "`",
            e->row.attempts, e->error[0] ? e->error : tide_status_name(e->row.status), id);
        break;
    case TIDE_ROW_CANCELED:
        (void)snprintf(text, sizeof text,
                       "it was canceled; retry it with `tidemark jobs retry %" PRIu64 "`", id);
        break;
    default:
        (void)snprintf(
            text, sizeof text, "it has been running since %s, attempt %u of %u, last beat %s",
            cli_time(e->row.started_unix_ms, when), e->row.attempts + 1, e->row.attempts_max,
            e->row.beat_unix_ms == 0 ? "none yet" : cli_time(e->row.beat_unix_ms, beat));
    }
    reason_add(e, tide_row_state_name(e->row.state), NULL, text);
}

/* E2.2: the jobs it waits for; a failed one is shown with its remedy. */
static tide_status explain_needs(struct explained *e)
{
    struct tide_need needs[NEEDS_SHOWN_MAX];
    size_t count = 0;
    char text[300];
    TIDE_TRY(
        tide_ledger_needs(e->cli->ledger, e->row.id, needs, NEEDS_SHOWN_MAX, &count, &e->cli->err));
    for (size_t i = 0; i < count; i++) {
        bool dead = needs[i].state == TIDE_ROW_FAILED || needs[i].state == TIDE_ROW_CANCELED;
        tide_json reason;
        tide_json_object(&reason);
        tide_json_set_u64(&reason, "job", needs[i].id);
        tide_json_set_cstr(&reason, "state", tide_row_state_name(needs[i].state));
        if (dead)
            (void)snprintf(text, sizeof text,
                           "blocked by %s job %" PRIu64
                           ": retry it with `tidemark jobs retry %" PRIu64 "`",
                           tide_row_state_name(needs[i].state), needs[i].id, needs[i].id);
        else
            (void)snprintf(text, sizeof text, "waits for job %" PRIu64 ", which is %s", needs[i].id,
                           tide_row_state_name(needs[i].state));
        reason_add(e, dead ? "blocked_by_failed" : "waits_for_job", &reason, text);
    }
    if (e->row.open_deps > count) {
        (void)snprintf(text, sizeof text, "and for %zu more jobs", e->row.open_deps - count);
        reason_add(e, "waits_for_more", NULL, text);
    }
    return TIDE_OK;
}

static bool explain_account_row(const struct tide_account_row *row, void *arg)
{
    struct explained *e = arg;
    char text[900], when[32];
    if (row->id != e->row.account)
        return true;
    if (row->halted) {
        (void)snprintf(text, sizeof text,
                       "account %s is halted since %s: %s; resume it with `tidemark account resume "
                       "%s`",
                       row->name, cli_time(row->halted_unix_ms, when),
                       row->halt_reason[0] ? row->halt_reason : "no reason given", row->name);
        reason_add(e, "account_halted", NULL, text);
    }
    if (row->paused) {
        (void)snprintf(text, sizeof text,
                       "account %s is paused; resume it with `tidemark jobs resume --account %s`",
                       row->name, row->name);
        reason_add(e, "account_paused", NULL, text);
    }
    return false;
}

static tide_status explain_holds(struct explained *e)
{
    struct cli *cli = e->cli;
    char text[600], when[32], left[TIDE_DURATION_TEXT_BYTES];
    uint32_t kind = 0;
    bool paused = false;
    if (e->row.not_before_unix_ms > cli->now_unix_ms) {
        tide_json reason;
        tide_json_object(&reason);
        tide_json_set_u64(&reason, "until_unix_ms", e->row.not_before_unix_ms);
        tide_duration_human(e->row.not_before_unix_ms - cli->now_unix_ms, left);
        (void)snprintf(text, sizeof text, "not before %s, in %s%s%s",
                       cli_time(e->row.not_before_unix_ms, when), left,
                       e->error[0] ? "; the last attempt failed: " : "", e->error);
        reason_add(e, "not_before", &reason, text);
    }
    TIDE_TRY(tide_ledger_kind_find(cli->ledger, e->kind, &kind, &paused, &cli->err));
    if (paused) {
        (void)snprintf(text, sizeof text,
                       "kind %s is paused; resume it with `tidemark jobs resume --kind %s`",
                       e->kind, e->kind);
        reason_add(e, "kind_paused", NULL, text);
    }
    if (e->row.account != 0)
        TIDE_TRY(tide_ledger_accounts(cli->ledger, explain_account_row, e, &cli->err));
    return TIDE_OK;
}

/* The last call of its account, from the ledger; a running engine reports it itself. */
static void explain_outcome(struct explained *e)
{
    struct tide_outcome outcome;
    char text[TIDE_OUTCOME_TEXT_BYTES + 200];
    char when[32];
    if (e->row.account == 0)
        return;
    tide_outcome_read(e->cli->ledger, e->row.account, e->cli->mem, &outcome);
    if (!tide_outcome_is_bad(&outcome))
        return;
    (void)snprintf(text, sizeof text, "the last call of account %.100s failed %s: %s", e->account,
                   cli_time(outcome.failed_unix_ms, when), outcome.text);
    reason_add(e, "last_call_failed", NULL, text);
}

/* Which member of a fleet would run it. */
struct holder {
    const struct explained *e;
    uint64_t owner;
    char archive[65], name[65];
    unsigned alive;
};

static bool holder_account(const struct tide_account_row *row, void *arg)
{
    struct holder *holder = arg;
    if (row->id != holder->e->row.account)
        return true;
    holder->owner = row->owner;
    (void)snprintf(holder->archive, sizeof holder->archive, "%s", row->archive);
    return false;
}

static bool holder_member(const struct tide_member *member, void *arg)
{
    struct holder *holder = arg;
    holder->alive += !member->dead;
    if (member->owner == holder->owner && holder->owner != 0)
        (void)snprintf(holder->name, sizeof holder->name, "%s", member->name);
    return true;
}

/* The members are on other machines, and each knows only its own lanes and quota. */
static tide_status explain_fleet(struct explained *e)
{
    struct holder holder = {.e = e};
    struct cli *cli = e->cli;
    char text[500];
    if (e->count > 0)
        return TIDE_OK;
    if (e->row.account != 0)
        TIDE_TRY(tide_ledger_accounts(cli->ledger, holder_account, &holder, &cli->err));
    TIDE_TRY(tide_ledger_members(cli->ledger, holder_member, &holder, &cli->err));
    if (holder.alive == 0)
        reason_add(e, "no_member", NULL,
                   "it could run, but no member works on this ledger: start `tidemark worker`");
    else if (e->row.account == 0)
        reason_add(e, "free", NULL, "any member of the fleet that knows its kind may take it");
    else if (holder.name[0] != '\0') {
        (void)snprintf(text, sizeof text,
                       "%s has leased account %s and runs the job when quota and order allow",
                       holder.name, e->account);
        reason_add(e, "held", NULL, text);
    } else {
        (void)snprintf(
            text, sizeof text,
            "no member has leased account %s: start `tidemark worker` on the machine that has "
            "its archive%s%s",
            e->account, holder.archive[0] ? " " : "", holder.archive);
        reason_add(e, "not_held", NULL, text);
    }
    return TIDE_OK;
}

/* Only the running engine knows about lanes, quota and order. */
static tide_status explain_engine(struct explained *e)
{
    struct cli *cli = e->cli;
    tide_json request, reason;
    json_t *answer = NULL;
    bool runs = false;
    tide_text why = TIDE_TEXT_NONE, text = TIDE_TEXT_NONE;
    uint64_t until = 0;
    if (cli->shared != NULL) {
        explain_outcome(e);
        return explain_fleet(e);
    }
    tide_control_request(TIDE_OP_EXPLAIN, &request);
    tide_json_set_u64(&request, "id", e->row.id);
    tide_status rc = cli_engine_ask(cli, &request, &runs, &answer);
    if (!runs) {
        if (e->count == 0)
            reason_add(e, "no_engine", NULL, "it could run, but no engine is running: start one");
        explain_outcome(e);
        cli->hint[0] = '\0';
        return TIDE_OK;
    }
    if (rc != TIDE_OK)
        return rc;
    rc = tide_json_get_text(answer, "why", &why, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(answer, "text", &text, &cli->err);
    if (rc == TIDE_OK) {
        tide_json_object(&reason);
        char when[32];
        char told[600];
        if (tide_json_get_u64(answer, "until", &until, NULL) == TIDE_OK)
            tide_json_set_u64(&reason, "until_unix_ms", until);
        (void)snprintf(told, sizeof told, "%.500s%s%s", text.data, until == 0 ? "" : "; until ",
                       until == 0 ? "" : cli_time(until, when));
        reason_add(e, why.data, &reason, told);
    }
    json_decref(answer);
    return rc;
}

tide_status cli_jobs_explain(struct cli *cli)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    struct explained e = {.cli = cli};
    TIDE_TRY(cli_number(cli, cli->arguments[0], "the id", &filter.id));
    if (filter.id == 0)
        return no_job(cli, 0);
    TIDE_TRY(cli_ledger_read(cli));
    TIDE_TRY(tide_ledger_jobs(cli->ledger, &filter, explain_row, &e, &cli->err));
    if (!e.found)
        return no_job(cli, filter.id);

    tide_json_array(&e.reasons);
    cli_print(cli, "job %" PRIu64 " (%s%s%s) is %s\n", e.row.id, e.kind, e.account[0] ? ", " : "",
              e.account, tide_row_state_name(e.row.state));
    tide_status rc = TIDE_OK;
    if (e.row.state != TIDE_ROW_PENDING) {
        explain_finished(&e);
    } else {
        rc = e.row.open_deps > 0 ? explain_needs(&e) : TIDE_OK;
        if (rc == TIDE_OK)
            rc = explain_holds(&e);
        if (rc == TIDE_OK)
            rc = explain_engine(&e);
    }
    tide_json_set_u64(&cli->json, "id", e.row.id);
    tide_json_set_cstr(&cli->json, "state", tide_row_state_name(e.row.state));
    tide_json_set(&cli->json, "reasons", &e.reasons);
    return cli_hint(cli, rc, "Run `tidemark ledger check`.");
}

/* ---- stats --------------------------------------------------------------------------- */

struct stats {
    struct cli *cli;
    tide_json rows;
    uint64_t totals[TIDE_ROW_CANCELED + 1];
    uint64_t blocked, delayed;
};

struct stats_accounts {
    struct {
        uint32_t id;
        char name[TIDE_NAME_BYTES_MAX + 1];
    } * rows;
    size_t count, capacity;
    tide_mem *mem;
};

static bool stats_row(const struct tide_job_count *row, void *arg)
{
    struct stats *stats = arg;
    struct cli *cli = stats->cli;
    tide_json json;
    if ((unsigned)row->state <= TIDE_ROW_CANCELED)
        stats->totals[row->state] += row->count;
    stats->blocked += row->blocked;
    stats->delayed += row->delayed;
    tide_json_object(&json);
    if (row->account == 0)
        tide_json_set_null(&json, "account");
    else
        tide_json_set_text(&json, "account", row->account_name);
    tide_json_set_text(&json, "kind", row->kind_name);
    tide_json_set_cstr(&json, "state", tide_row_state_name(row->state));
    tide_json_set_u64(&json, "count", row->count);
    tide_json_set_u64(&json, "blocked", row->blocked);
    tide_json_set_u64(&json, "delayed", row->delayed);
    tide_json_set_bool(&json, "account_paused", row->account_paused);
    tide_json_set_bool(&json, "account_halted", row->account_halted);
    tide_json_set_bool(&json, "kind_paused", row->kind_paused);
    tide_json_append(&stats->rows, &json);

    cli_cell_text(cli, row->account_name);
    cli_cell_text(cli, row->kind_name);
    cli_cell(cli, "%s", tide_row_state_name(row->state));
    cli_cell(cli, "%" PRIu64, row->count);
    cli_cell(cli, "%" PRIu64, row->blocked);
    cli_cell(cli, "%" PRIu64, row->delayed);
    const char *account = row->account_halted   ? "account halted"
                          : row->account_paused ? "account paused"
                                                : "";
    const char *kind = row->kind_paused ? "kind paused" : "";
    cli_cell(cli, "%s%s%s", account, *account != '\0' && *kind != '\0' ? ", " : "", kind);
    return true;
}

/* The totals of an account over all its runs (M4). */
static bool stats_account(const struct tide_account_row *row, void *arg)
{
    struct stats_accounts *list = arg;
    if (!TIDE_GROW_IN(list->mem, list->rows, list->capacity, list->count + 1, TIDE_ACCOUNTS_MAX))
        return false;
    list->rows[list->count].id = row->id;
    (void)snprintf(list->rows[list->count++].name, sizeof list->rows[0].name, "%s", row->name);
    return true;
}

static tide_status stats_totals(struct cli *cli)
{
    static const char *const headings[] = {"ACCOUNT", "API CALLS",  "REFUSED",  "FAILED JOBS",
                                           "RETRIED", "SPLIT JOBS", "BAD ITEMS"};
    struct stats_accounts list = {.mem = cli->mem};
    tide_json accounts;
    tide_json_array(&accounts);
    tide_status rc = tide_ledger_accounts(cli->ledger, stats_account, &list, &cli->err);
    if (list.count > 0) {
        cli_print(cli, "\nIn all runs:\n");
        cli_table_begin(cli, headings, 7);
    }
    for (size_t i = 0; rc == TIDE_OK && i < list.count; i++) {
        struct tide_account_totals totals;
        tide_json json;
        rc = tide_account_totals_read(cli->ledger, list.rows[i].id, &totals, &cli->err);
        if (rc != TIDE_OK)
            break;
        const char *const names[] = {"calls", "refused", "failed", "retried", "split", "bad"};
        const uint64_t numbers[] = {totals.calls,   totals.refused, totals.failed,
                                    totals.retried, totals.split,   totals.bad};
        tide_json_object(&json);
        tide_json_set_cstr(&json, "account", list.rows[i].name);
        cli_cell(cli, "%s", list.rows[i].name);
        for (size_t at = 0; at < sizeof numbers / sizeof numbers[0]; at++) {
            tide_json_set_u64(&json, names[at], numbers[at]);
            cli_cell(cli, "%" PRIu64, numbers[at]);
        }
        tide_json_append(&accounts, &json);
    }
    if (list.count > 0)
        cli_table_end(cli, "");
    tide_json_set(&cli->json, "accounts", &accounts);
    tide_mem_free(cli->mem, list.rows, list.capacity * sizeof *list.rows);
    return rc;
}

tide_status cli_jobs_stats(struct cli *cli)
{
    static const char *const headings[] = {"ACCOUNT", "KIND",    "STATE", "JOBS",
                                           "BLOCKED", "DELAYED", "HELD"};
    TIDE_TRY(cli_ledger_read(cli));
    struct stats stats = {.cli = cli};
    tide_json totals;
    tide_json_array(&stats.rows);
    cli_table_begin(cli, headings, 7);
    tide_status rc =
        tide_ledger_counts(cli->ledger, cli->now_unix_ms, stats_row, &stats, &cli->err);
    cli_table_end(cli, "no jobs");
    tide_json_object(&totals);
    for (int state = 0; state <= TIDE_ROW_CANCELED; state++)
        tide_json_set_u64(&totals, tide_row_state_name((tide_row_state)state), stats.totals[state]);
    tide_json_set_u64(&totals, "blocked", stats.blocked);
    tide_json_set_u64(&totals, "delayed", stats.delayed);
    tide_json_set(&cli->json, "totals", &totals);
    tide_json_set(&cli->json, "counts", &stats.rows);
    if (rc == TIDE_OK)
        rc = stats_totals(cli);
    return cli_hint(cli, rc, "Run `tidemark ledger check`.");
}
