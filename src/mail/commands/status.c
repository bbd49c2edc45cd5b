/* status.c - `tidemark mail status`: the state of each account; safe while other processes run
 * (M6b).
 *
 * Opens everything read-only and only requests a snapshot from the running engine, which may be
 * busy, idle or absent. */
#include "cli/account_seen.h"
#include "mail/commands/known.h"

#include "base/clocktext.h"
#include "core/governor/governor.h"
#include "engine/tuning.h"

#include <inttypes.h>
#include <stdio.h>

enum { SPANS_SHOWN = 5 }; /* gaps and the like; facts come first */

struct status {
    struct cli *cli;
    struct mail_home home;
    json_t *snapshot; /* NULL: no engine runs */
    tide_json list;

    /* Of the current account. */
    struct tide_mail_look look;
    struct tide_mail_kept kept;
    struct tide_archive_tally tally;
    struct account_seen seen;
    uint64_t failed_ms;    /* when a job of it last failed; 0: never */
    tide_archive *archive; /* read-only; NULL: there is none */
    uint64_t quota_used, quota_max;
};

/* ---- spans by name ---- */

static void day(uint64_t unix_ms, char out[32])
{
    if (unix_ms == 0)
        (void)snprintf(out, 32, "the beginning");
    else
        (void)cli_time(unix_ms, out);
    if (unix_ms > 0 && strlen(out) > 10)
        out[10] = '\0';
}

/* As days; a span within one day is shown to the second. */
static void days(const struct tide_mail_span *span, char from[32], char to[32])
{
    day(span->from_ms, from);
    day(span->to_ms, to);
    if (strcmp(from, to) != 0)
        return;
    (void)cli_time(span->from_ms, from);
    (void)cli_time(span->to_ms, to);
}

static const char *span_state_name(tide_span_state state)
{
    switch (state) {
    case TIDE_SPAN_COVERED:
        return "covered";
    case TIDE_SPAN_FETCHING:
        return "fetching";
    case TIDE_SPAN_LISTING:
        return "listing";
    case TIDE_SPAN_CHANGES:
        return "changes";
    case TIDE_SPAN_FAILED:
        return "failed";
    }
    return "unknown";
}

static void span_text(const struct tide_mail_span *span, size_t slices, char *out, size_t out_bytes)
{
    char bad[48] = "";
    if (span->bad > 0)
        (void)snprintf(bad, sizeof bad, ", %" PRIu64 " bad", span->bad);
    switch (span->state) {
    case TIDE_SPAN_COVERED:
        (void)snprintf(out, out_bytes, "covered%s", bad);
        return;
    case TIDE_SPAN_FETCHING:
        (void)snprintf(out, out_bytes, "%" PRIu64 " message%s left%s", span->messages_left,
                       span->messages_left == 1 ? "" : "s", bad);
        return;
    case TIDE_SPAN_LISTING:
        (void)snprintf(out, out_bytes, "listing, %zu slice%s; %" PRIu64 " message%s left so far%s",
                       slices, slices == 1 ? "" : "s", span->messages_left,
                       span->messages_left == 1 ? "" : "s", bad);
        return;
    case TIDE_SPAN_CHANGES:
        (void)snprintf(out, out_bytes, "reading changes%s", bad);
        return;
    case TIDE_SPAN_FAILED:
        (void)snprintf(out, out_bytes,
                       "%" PRIu64 " failed job%s: `tidemark jobs list --state "
                       "failed`%s",
                       span->failed, span->failed == 1 ? "" : "s", bad);
        return;
    }
}

/* Adjacent spans that are complete, or wait for the same, share one line. */
static bool joins(const struct tide_mail_span *a, const struct tide_mail_span *b)
{
    return a->state == b->state && a->to_ms == b->from_ms && a->state != TIDE_SPAN_FAILED;
}

static void print_spans(struct status *status, bool covered, const char *heading)
{
    const struct tide_mail_look *look = &status->look;
    size_t shown = 0;
    size_t hidden = 0;
    for (size_t i = 0; i < look->spans_count;) {
        struct tide_mail_span span = look->spans[i];
        size_t slices = 1;
        char from[32];
        char to[32];
        char what[160];
        for (i++; i < look->spans_count && joins(&span, &look->spans[i]); i++, slices++) {
            span.to_ms = look->spans[i].to_ms;
            span.messages_left += look->spans[i].messages_left;
            span.bad += look->spans[i].bad;
        }
        if ((span.state == TIDE_SPAN_COVERED) != covered)
            continue;
        if (shown == SPANS_SHOWN) {
            hidden++;
            continue;
        }
        days(&span, from, to);
        span_text(&span, slices, what, sizeof what);
        cli_print(status->cli, "  %-10s %s ... %s  %s\n", shown == 0 ? heading : "", from, to,
                  what);
        shown++;
    }
    if (hidden > 0)
        cli_print(status->cli, "  %-10s and %zu more, %zu in all; --json has all of them\n", "",
                  hidden, shown + hidden);
    if (shown == 0 && !covered)
        cli_print(status->cli, "  %-10s none\n", heading);
}

static void spans_json(const struct tide_mail_look *look, bool covered, tide_json *list)
{
    tide_json_array(list);
    for (size_t i = 0; i < look->spans_count; i++) {
        const struct tide_mail_span *span = &look->spans[i];
        tide_json one;
        if ((span->state == TIDE_SPAN_COVERED) != covered)
            continue;
        tide_json_object(&one);
        tide_json_set_u64(&one, "from_unix_ms", span->from_ms);
        tide_json_set_u64(&one, "to_unix_ms", span->to_ms);
        tide_json_set_cstr(&one, "state", span_state_name(span->state));
        tide_json_set_u64(&one, "jobs_left", span->jobs_left);
        tide_json_set_u64(&one, "messages_left", span->messages_left);
        tide_json_set_u64(&one, "failed_jobs", span->failed);
        tide_json_set_u64(&one, "bad", span->bad);
        tide_json_append(list, &one);
    }
}

/* ---- the last run ---- */

static bool has_gaps(const struct tide_mail_look *look)
{
    for (size_t i = 0; i < look->spans_count; i++)
        if (look->spans[i].state != TIDE_SPAN_COVERED)
            return true;
    return look->listing;
}

/* How it ended, as a word for JSON. */
static const char *run_word(const struct status *status)
{
    const struct tide_mail_look *look = &status->look;
    if (has_gaps(look) && look->jobs_left > 0) {
        if (look->halted)
            return "halted";
        if (look->paused)
            return "paused";
        if (look->signed_out)
            return "signed_out";
        return status->snapshot != NULL ? "running" : "stopped";
    }
    if (look->jobs_failed > 0 && (has_gaps(look) || status->failed_ms > look->last_run_ms))
        return "failed";
    return look->last_run_ms == 0 ? "never" : look->bad > 0 ? "bad_items" : "done";
}

/* Whatever the outcome of the last run: nothing happens for this account until a user resumes it. */
static void print_standstill(const struct status *status)
{
    const struct tide_mail_look *look = &status->look;
    if (look->halted)
        cli_print(status->cli, "  halted     %s; `tidemark account resume %s` lets it go on\n",
                  look->halt_reason, look->email);
    if (look->paused)
        cli_print(status->cli,
                  "  paused     by command; `tidemark jobs resume --account %s` lets it go on\n",
                  look->email);
}

static void print_run(const struct status *status)
{
    const struct tide_mail_look *look = &status->look;
    const char *word = run_word(status);
    char began[48] = ""; /* not known of a run that was never planned */
    char time[32] = "";
    char ended[32];
    struct cli *cli = status->cli;
    if (look->last_run_ms > 0)
        (void)snprintf(began, sizeof began, "began %s, ", cli_time(look->last_run_ms, time));
    (void)cli_time(look->moved_ms, ended);
    if (strcmp(word, "never") == 0)
        cli_print(cli, "  last run   never; run `tidemark mail sync`\n");
    else if (strcmp(word, "running") == 0)
        cli_print(cli, "  last run   %s%s%sis running\n", look->last_run_ms > 0 ? "began " : "",
                  look->last_run_ms > 0 ? time : "", look->last_run_ms > 0 ? " and " : "");
    else if (strcmp(word, "stopped") == 0)
        cli_print(cli,
                  "  last run   %sstopped before its end; run `tidemark mail sync` to resume\n",
                  began);
    else if (strcmp(word, "signed_out") == 0)
        cli_print(cli,
                  "  last run   %sits sign-in was refused; run `tidemark account add gmail "
                  "%s`\n",
                  began, look->email);
    else if (strcmp(word, "halted") == 0)
        cli_print(cli, "  last run   %shalted before its end\n", began);
    else if (strcmp(word, "paused") == 0)
        cli_print(cli, "  last run   %spaused before its end\n", began);
    else if (strcmp(word, "failed") == 0)
        cli_print(cli,
                  "  last run   %s%" PRIu64 " job%s failed: `tidemark jobs list "
                  "--state failed`\n",
                  began, look->jobs_failed, look->jobs_failed == 1 ? "" : "s");
    else
        cli_print(cli, "  last run   %sfinished %s%s\n", began, ended,
                  look->bad > 0 ? " with bad messages: `tidemark mail bad`" : "");
    if (look->jobs_failed > 0 && strcmp(word, "failed") != 0)
        cli_print(cli,
                  "  earlier    %" PRIu64 " job%s failed or canceled: `tidemark jobs list --state "
                  "failed`, `--state canceled`\n",
                  look->jobs_failed, look->jobs_failed == 1 ? "" : "s");
}

static bool failed_visit(const struct tide_job_row *row, void *arg)
{
    struct status *status = arg;
    if (!tide_mail_kind_is_ours(row->kind_name))
        return true;
    status->failed_ms = row->finished_unix_ms;
    return false;
}

/* When a job of it last failed: a failure of an earlier run says nothing about the last run. */
static tide_status read_failed(struct status *status)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    status->failed_ms = 0;
    filter.account = status->look.account;
    filter.state = TIDE_ROW_FAILED;
    return tide_ledger_jobs(status->cli->ledger, &filter, failed_visit, status, &status->cli->err);
}

/* ---- numbers ---- */

/* On a shared ledger the files may be on another machine. */
static bool is_elsewhere(const struct status *status)
{
    return status->cli->shared != NULL && status->archive == NULL &&
           status->look.archive[0] != '\0';
}

/* The quota from the engine; or, if none runs, what the last one saved, counted as strictly as
 * the next one will count it (E4.3b). */
struct quota_ask {
    struct status *status;
    uint64_t now_ms;
};

static bool quota_saved(const struct tide_account_row *row, void *arg)
{
    struct quota_ask *ask = arg;
    struct status *status = ask->status;
    struct tide_governor_saved saved;
    struct tide_governor_view view = {.window_used = 0};
    tide_governor *governor = NULL;
    if (row->id != status->look.account)
        return true;
    const struct tide_governor_profile profile = tide_tuning_profile(
        tide_settings_of(status->cli->settings, row->name), tide_provider_known("gmail"));
    if (tide_governor_new(&profile, ask->now_ms, status->cli->mem, &governor) != TIDE_OK)
        return false;
    if (row->governor.bytes > 0 && tide_governor_saved_parse(row->governor, &saved) == TIDE_OK)
        (void)tide_governor_restore(governor, &saved, ask->now_ms, status->cli->now_unix_ms);
    tide_governor_view(governor, ask->now_ms, &view);
    status->quota_used = view.window_used;
    status->quota_max = view.window_max;
    tide_governor_free(governor);
    return false;
}

static tide_status read_quota_counted(struct status *status)
{
    struct cli *cli = status->cli;
    const json_t *account = account_in_snapshot(status->snapshot, status->look.email);
    status->quota_used = status->quota_max = 0;
    if (account != NULL) {
        status->quota_used =
            (uint64_t)json_integer_value(json_object_get(account, "window_used_units"));
        status->quota_max =
            (uint64_t)json_integer_value(json_object_get(account, "window_max_units"));
        return TIDE_OK;
    }
    tide_status rc = cli_settings(cli);
    struct quota_ask ask = {status, tide_world_now_ms(cli->world)};
    if (rc == TIDE_OK)
        rc = tide_ledger_accounts(cli->ledger, quota_saved, &ask, &cli->err);
    return rc;
}

/* What a process that ended may have sent unrecorded is added to what is known to be sent (E4.3b).
 * The sum may exceed the limit, though no minute ever held more: nothing is left either way. */
static tide_status read_quota(struct status *status)
{
    const tide_status rc = read_quota_counted(status);
    if (status->quota_used > status->quota_max)
        status->quota_used = status->quota_max;
    return rc;
}

/* A missing archive is not an error: nothing was stored yet, or all of it is lost. */
static tide_status read_archive(struct status *status)
{
    struct cli *cli = status->cli;
    char email[256];
    status->kept = (struct tide_mail_kept){0};
    status->tally = (struct tide_archive_tally){0};
    tide_status rc =
        mail_home_archive(cli, &status->home, status->look.email, email, &status->archive);
    if (rc == TIDE_NOT_FOUND) {
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
        rc = TIDE_OK;
    }
    if (rc == TIDE_OK && !is_elsewhere(status))
        rc = tide_mail_look_proof(cli->ledger, status->archive, &status->look, &cli->err);
    if (rc == TIDE_OK && status->archive != NULL)
        rc = tide_mail_kept(status->archive, &status->kept, &cli->err);
    if (rc == TIDE_OK && status->archive != NULL)
        rc = tide_archive_tally(status->archive, &status->tally, &cli->err);
    if (rc == TIDE_OK && status->archive != NULL)
        rc = mail_home_broken(cli, status->archive);
    return cli_hint(cli, rc, "Run `tidemark mail verify`.");
}

static tide_status show_known(struct status *status, tide_json *one)
{
    const struct mail_known_ask ask = {.look = &status->look,
                                       .archive = status->archive,
                                       .stored = status->kept.stored,
                                       .always = true};
    return is_elsewhere(status) ? TIDE_OK : mail_known_show(status->cli, &ask, one);
}

static void print_numbers(const struct status *status, uint64_t free_bytes)
{
    const struct tide_mail_look *look = &status->look;
    const struct tide_archive_tally *tally = &status->tally;
    struct cli *cli = status->cli;
    char raw[TIDE_SIZE_TEXT_BYTES];
    char archive[TIDE_SIZE_TEXT_BYTES];
    char room[TIDE_SIZE_TEXT_BYTES];
    tide_size_human(status->kept.raw_bytes, raw);
    tide_size_human(status->kept.archive_bytes, archive);
    tide_size_human(free_bytes, room);
    const bool elsewhere = is_elsewhere(status);
    if (elsewhere)
        cli_print(cli, "  stored     elsewhere, in the archive %s", look->archive);
    else
        cli_print(cli, "  stored     %" PRIu64 " message%s", status->kept.stored,
                  status->kept.stored == 1 ? "" : "s");
    if (look->messages_total > 0)
        cli_print(cli, " (the server had %" PRIu64 ")", look->messages_total);
    if (elsewhere)
        cli_print(cli, "\n");
    else
        cli_print(cli, ", %" PRIu64 " of them gone from the server\n", tally->gone);
    cli_print(cli,
              "  bad        %" PRIu64 " bad, %" PRIu64 " owed, %" PRIu64 " retrying, %" PRIu64
              " accepted; %" PRIu64 " not indexed yet, %" PRIu64 " unreadable, %" PRIu64
              " partly\n",
              look->bad, look->owed, look->retrying, look->accepted, tally->unindexed,
              tally->unreadable, tally->partly);
    if (!elsewhere)
        cli_print(cli, "  archive    %zu shard%s, %s for %s of mail; %s free on the disk\n",
                  status->kept.shards, status->kept.shards == 1 ? "" : "s", archive, raw, room);
    if (status->quota_max == 0)
        cli_print(cli, "  quota      the limit is unknown\n");
    else
        cli_print(cli, "  quota      %s%" PRIu64 " of %" PRIu64 " units in the last minute\n",
                  status->snapshot == NULL && status->quota_used > 0 ? "at most " : "",
                  status->quota_used, status->quota_max);
}

struct alerts_ask {
    const struct status *status;
    tide_json list;
};

static bool alert_row(const struct tide_alert_row *row, void *arg)
{
    struct alerts_ask *ask = arg;
    tide_json one;
    if (row->account != 0 && row->account != ask->status->look.account)
        return true;
    cli_print(ask->status->cli, "  alert      %s: %s: %s\n",
              row->level >= 2 ? "critical" : "warning", row->condition, row->text);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "condition", row->condition);
    tide_json_set_cstr(&one, "level", row->level >= 2 ? "critical" : "warning");
    tide_json_set_cstr(&one, "text", row->text);
    tide_json_set_u64(&one, "since_unix_ms", row->since_unix_ms);
    tide_json_append(&ask->list, &one);
    return true;
}

static void numbers_json(const struct status *status, uint64_t free_bytes, tide_json *one)
{
    const struct tide_mail_look *look = &status->look;
    const struct {
        const char *name;
        uint64_t number;
    } numbers[] = {
        {"watermark_unix_ms", look->tidemark_ms},
        {"since_unix_ms", look->since_ms},
        {"complete_since_unix_ms", tide_mail_look_complete_since(look)},
        {"messages_total", look->messages_total},
        {"stored", status->kept.stored},
        {"gone", status->tally.gone},
        {"bad", look->bad},
        {"owed", look->owed},
        {"retrying", look->retrying},
        {"accepted", look->accepted},
        {"not_indexed", status->tally.unindexed},
        {"unreadable", status->tally.unreadable},
        {"partly_indexed", status->tally.partly},
        {"raw_bytes", status->kept.raw_bytes},
        {"archive_bytes", status->kept.archive_bytes},
        {"free_bytes", free_bytes},
        {"shards", status->kept.shards},
        {"cycles_open", look->cycles_open},
        {"jobs_left", look->jobs_left},
        {"jobs_running", look->jobs_running},
        {"failed_jobs", look->jobs_failed},
        {"messages_left", look->messages_left},
        {"quota_used_units", status->quota_used},
        {"quota_max_units", status->quota_max},
        {"last_run_unix_ms", look->last_run_ms},
        {"last_moved_unix_ms", look->moved_ms},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        tide_json_set_u64(one, numbers[i].name, numbers[i].number);
    tide_json_set_cstr(one, "account", look->email);
    tide_json_set_cstr(one, "endpoint", look->endpoint[0] == '\0' ? NULL : look->endpoint);
    tide_json_set_cstr(one, "last_run", run_word(status));
    tide_json_set_cstr(one, "notice", look->notice);
    tide_json_set_cstr(one, "history_id", look->history_id);
    tide_json_set_bool(one, "engine", status->snapshot != NULL);
    tide_json_set_bool(one, "halted", look->halted);
    tide_json_set_cstr(one, "halt_reason", look->halted ? look->halt_reason : NULL);
    tide_json_set_bool(one, "paused", look->paused);
    if (status->cli->shared != NULL) {
        tide_json_set_cstr(one, "archive", look->archive[0] == '\0' ? NULL : look->archive);
        tide_json_set_bool(one, "here", status->archive != NULL);
    }
}

/* ---- one account ---- */

static void print_account(struct status *status, uint64_t free_bytes, tide_json *one)
{
    struct cli *cli = status->cli;
    const struct tide_mail_look *look = &status->look;
    char mark[32];
    char since[32];
    tide_json spans;
    (void)cli_time(look->tidemark_ms, mark);
    day(look->since_ms, since);
    cli_print(cli, "%s%s%s\n", look->email, look->endpoint[0] == '\0' ? "" : "  ", look->endpoint);
    if (look->tidemark_ms == 0)
        cli_print(cli, "  tidemark   none yet\n");
    else if (look->shards_lost > 0)
        cli_print(cli, "  tidemark   fell back to %s: stored mail is missing from then on\n", mark);
    else
        cli_print(cli, "  tidemark   %s; everything since %s is stored, bad or gone\n", mark,
                  since);
    if (tide_mail_look_complete_since(look) > 0) {
        (void)cli_time(tide_mail_look_complete_since(look), since);
        cli_print(cli,
                  "  newest     everything since %s is stored, bad or gone; older mail follows\n",
                  since);
    }
    if (look->notice[0] != '\0')
        cli_print(cli, "  notice     %s\n", look->notice);
    print_numbers(status, free_bytes);
    print_standstill(status);
    print_run(status);
    char server[500];
    account_seen_text(&status->seen, server, sizeof server);
    cli_print(cli, "  server     %s\n", server);
    account_seen_json(&status->seen, one);
    numbers_json(status, free_bytes, one);
    spans_json(look, false, &spans);
    tide_json_set(one, "gaps", &spans);
    spans_json(look, true, &spans);
    tide_json_set(one, "covered_beyond", &spans);
}

static tide_status show_account(struct status *status, const char *email)
{
    struct cli *cli = status->cli;
    uint64_t free_bytes = 0;
    tide_json one;
    tide_status rc = tide_mail_look(cli->ledger, email, true, &status->look, &cli->err);
    if (rc == TIDE_OK)
        account_seen(cli, status->snapshot, status->look.account, email, &status->seen);
    if (rc == TIDE_OK)
        rc = read_failed(status);
    if (rc == TIDE_OK)
        rc = read_archive(status);
    if (rc == TIDE_OK)
        rc = read_quota(status);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "Run `tidemark ledger check`.");
    if (tide_disk_free(cli->world, status->home.archive_dir, &free_bytes, NULL) != TIDE_OK)
        (void)tide_disk_free(cli->world, cli->state_dir, &free_bytes, NULL);
    tide_json_object(&one);
    print_account(status, free_bytes, &one);
    rc = show_known(status, &one);
    struct alerts_ask alerts = {.status = status};
    tide_json_array(&alerts.list);
    if (rc == TIDE_OK)
        rc = tide_ledger_alerts(cli->ledger, alert_row, &alerts, &cli->err);
    if (rc == TIDE_OK) {
        print_spans(status, false, "gaps");
        print_spans(status, true, "beyond");
    }
    tide_json_set(&one, "alerts", &alerts.list);
    tide_json_append(&status->list, &one);
    return rc;
}

static tide_status one_account(struct status *status, const char *email)
{
    const tide_status rc = show_account(status, email);
    const tide_status closed = tide_archive_close(status->archive, &status->cli->err);
    status->archive = NULL;
    return rc == TIDE_OK ? closed : rc;
}

/* ---- archives of accounts that are not added: an import before the first sign-in (M17, M18) ---- */

struct seen {
    struct tide_mail_kept kept;
    struct tide_archive_tally tally;
};

static tide_status look(struct cli *cli, const char *name, struct seen *seen)
{
    struct mail_home home = {0};
    char email[256];
    tide_archive *archive = NULL;
    tide_status rc = mail_home_archive(cli, &home, name, email, &archive);
    if (rc == TIDE_OK)
        rc = tide_mail_kept(archive, &seen->kept, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_archive_tally(archive, &seen->tally, &cli->err);
    if (rc == TIDE_OK)
        rc = mail_home_broken(cli, archive);
    const tide_status closed = tide_archive_close(archive, &cli->err);
    return cli_hint(cli, rc == TIDE_OK ? closed : rc, "Run `tidemark mail verify`.");
}

static void print(struct cli *cli, const char *email, const struct seen *seen)
{
    const uint64_t held = seen->tally.copies[TIDE_COPY_HELD];
    char raw[TIDE_SIZE_TEXT_BYTES];
    char archive[TIDE_SIZE_TEXT_BYTES];
    tide_size_human(seen->kept.raw_bytes, raw);
    tide_size_human(seen->kept.archive_bytes, archive);
    cli_print(cli, "%s\n  account    not signed in: `tidemark account add gmail %s`\n", email,
              email);
    cli_print(cli, "  stored     %" PRIu64 " message%s", seen->kept.stored,
              seen->kept.stored == 1 ? "" : "s");
    if (held > 0)
        cli_print(cli, "; %" PRIu64 " held until Gmail's own arrive", held);
    cli_print(cli, "\n  archive    %zu shard%s, %s for %s of mail\n", seen->kept.shards,
              seen->kept.shards == 1 ? "" : "s", archive, raw);
}

static tide_status show(struct cli *cli, const char *email, tide_json *list)
{
    struct seen seen = {.kept = {.stored = 0}};
    tide_json one;
    TIDE_TRY(look(cli, email, &seen));
    print(cli, email, &seen);
    const struct {
        const char *name;
        uint64_t number;
    } numbers[] = {
        {"stored", seen.kept.stored},
        {"held", seen.tally.copies[TIDE_COPY_HELD]},
        {"not_indexed", seen.tally.unindexed},
        {"raw_bytes", seen.kept.raw_bytes},
        {"archive_bytes", seen.kept.archive_bytes},
        {"shards", seen.kept.shards},
    };
    tide_json_object(&one);
    tide_json_set_cstr(&one, "account", email);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        tide_json_set_u64(&one, numbers[i].name, numbers[i].number);
    tide_json_append(list, &one);
    return TIDE_OK;
}

static bool is_among(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

static bool is_added(const char *name, const struct cli_names *added)
{
    for (size_t i = 0; i < added->count; i++)
        if (strcmp(added->list[i], name) == 0)
            return true;
    return false;
}

static tide_status status_alone(struct cli *cli, const struct cli_names *added, tide_json *list)
{
    const struct mail_names none = {.mem = cli->mem};
    struct mail_names here = none;
    size_t found = 0;
    tide_status rc = mail_names_find(cli, NULL, &here);
    const bool all = cli->arguments_count == 0;
    for (size_t i = 0; i < here.count; i++)
        found += !is_added(here.list[i], added) &&
                 (all || is_among(here.list[i], cli->arguments, cli->arguments_count));
    /* The words of the command name something else, too: that is said of them instead. */
    if (rc == TIDE_OK && (found == 0 || (!all && found < cli->arguments_count)))
        rc = TIDE_NOT_FOUND;
    for (size_t i = 0; rc == TIDE_OK && i < here.count; i++)
        if (!is_added(here.list[i], added) &&
            (all || is_among(here.list[i], cli->arguments, cli->arguments_count)))
            rc = show(cli, here.list[i], list);
    mail_names_done(&here);
    return rc;
}

/* TIDE_NOT_FOUND: there is none. */
static tide_status show_alone(struct cli *cli, const struct cli_names *names, tide_json *alone)
{
    const tide_error kept = cli->err;
    char hint[sizeof cli->hint];
    memcpy(hint, cli->hint, sizeof hint);
    const tide_status rc = status_alone(cli, names, alone);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    cli->err = kept;
    memcpy(cli->hint, hint, sizeof hint);
    return names->count > 0 ? TIDE_OK : TIDE_NOT_FOUND;
}

/* Without an account, the archives that are there. */
static tide_status names_find(struct cli *cli, struct cli_names *names, tide_json *alone)
{
    tide_status rc = cli_names(cli, &tide_mail_system, cli->arguments, cli->arguments_count, names);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    rc = show_alone(cli, names, alone);
    if (rc == TIDE_OK) {
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
    }
    return rc;
}

tide_status cli_mail_status(struct cli *cli)
{
    struct cli_names names;
    struct status status = {.cli = cli};
    tide_json alone;
    tide_json_array(&alone);
    tide_status rc = names_find(cli, &names, &alone);
    if (rc == TIDE_OK)
        rc = mail_home_places(cli, &status.home);
    if (rc != TIDE_OK) {
        cli_names_done(&names);
        tide_json_done(&alone);
        return rc;
    }
    status.snapshot = cli_snapshot(cli, NULL);
    tide_mail_look_init(&status.look, cli->mem);
    tide_json_array(&status.list);
    for (size_t i = 0; rc == TIDE_OK && i < names.count; i++)
        rc = one_account(&status, names.list[i]);
    tide_json_set(&cli->json, "accounts", &status.list);
    if (rc == TIDE_OK && names.count > 0 && cli->arguments_count == 0)
        rc = show_alone(cli, &names, &alone);
    tide_json_set(&cli->json, "archives", &alone);
    tide_mail_look_done(&status.look);
    cli_names_done(&names);
    json_decref(status.snapshot);
    return rc;
}
