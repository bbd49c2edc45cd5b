/* sync.c - `tidemark mail sync` and `mail heal` (M1-M6b, M19).
 *
 * It runs the engine itself, or, if another process uses the directory, hands the
 * same work to that process and watches it (decision 10).  If that process ends before the
 * work is done, this one takes over.
 *
 * It works only for the named accounts, and ends when each of them is either finished or cannot
 * continue without the user (M16).  It reports per account how the sync ended (outcome.h).
 *
 * On a shared ledger it is one process of the fleet: it does the work of accounts that no other
 * process has leased and whose archive is here; for the others it enqueues the work and watches
 * the ledger. */
#include "mail/commands/known.h"
#include "mail/commands/outcome.h"

#include "base/clocktext.h"
#include "mail/slice.h"
#include "tidemark_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
    TURNS_MAX = 3,     /* attempts with an engine that ends while we send requests */
    NOBODY_MS = 45000, /* longer than a lease: then the account of a dead process is free */
};

struct sync {
    struct cli *cli;
    struct mail_names names;
    struct tide_mail_run wanted;
    struct mail_home home;
    struct mail_watch watch;
    bool watched; /* another process did the work */
    struct sync_account {
        bool elsewhere;    /* on a shared ledger: another process has the account or its archive */
        bool caught_up;    /* begun a second time, for mail that arrived since an earlier sync */
        tide_error failed; /* why it could not begin; TIDE_OK: it could */
        struct tide_mail_aside aside; /* damaged files that a heal run found */
    } * accounts;
    uint64_t nobody_ms;             /* since when no process does work elsewhere; 0: one does */
    uint64_t deadline_ms;           /* --timeout; TIDE_NEVER */
    uint64_t began_ms;              /* unix time */
    bool full;                      /* the disk has too little free space: the run ends */
    struct tide_mail_budget budget; /* --max; wanted.budget points here, or is NULL */
    bool spent;                     /* --max: what is left waits for the next run */
};

/* Whether the account is finished or stuck in this run. */
static bool is_over(const struct sync *sync, size_t index)
{
    const struct mail_watched *watched = &sync->watch.accounts[index];
    if (sync->accounts[index].failed.status != TIDE_OK || mail_watched_stuck(watched))
        return true;
    return sync->watch.looked && mail_watched_settled(watched) &&
           (sync->cli->shared != NULL || watched->active == 0);
}

static bool all_over(const struct sync *sync)
{
    for (size_t i = 0; i < sync->names.count; i++)
        if (!is_over(sync, i))
            return false;
    return true;
}

static bool is_late(const struct sync *sync)
{
    return tide_world_now_ms(sync->cli->world) >= sync->deadline_ms;
}

/* Reads the flags, among them --since and --max; `email` is set later. */
static tide_status run_wanted(struct sync *sync)
{
    struct cli *cli = sync->cli;
    struct tide_mail_run *run = &sync->wanted;
    const char *since = cli_flag(cli, "since");
    const char *max = cli_flag(cli, "max");
    *run = (struct tide_mail_run){.force = cli_flag(cli, "force") != NULL,
                                  .newest_first = cli_flag(cli, "newest-first") != NULL,
                                  .since_ms = TIDE_MAIL_EVERYTHING};
    if (since != NULL &&
        !tide_since_parse(tide_text_of(since), tide_world_now_unix_ms(cli->world), &run->since_ms))
        return cli_wrong(cli, "Give a day (2019-01-31), a year (2019) or an age (2y).",
                         "--since %s is not a time in the past", since);
    run->budget = max == NULL ? NULL : &sync->budget;
    if (max != NULL &&
        (!tide_text_to_u64(tide_text_of(max), &sync->budget.left) || sync->budget.left == 0))
        return cli_wrong(cli, "Give a number of messages, 1 or more.",
                         "--max %s is not a number of messages", max);
    return TIDE_OK;
}

static tide_status deadline_wanted(struct sync *sync)
{
    const char *timeout = cli_flag(sync->cli, "timeout");
    uint64_t wait_ms = 0;
    sync->deadline_ms = TIDE_NEVER;
    if (timeout == NULL)
        return TIDE_OK;
    if (!tide_duration_parse(tide_text_of(timeout), &wait_ms) || wait_ms == 0)
        return cli_wrong(sync->cli, "Give a duration such as 30s, 10m or 2h.",
                         "--timeout %.60s is not a duration", timeout);
    sync->deadline_ms = tide_world_now_ms(sync->cli->world) + wait_ms;
    return TIDE_OK;
}

static struct tide_mail_run run_of(const struct sync *sync, const char *email)
{
    struct tide_mail_run run = sync->wanted;
    run.email = email;
    return run;
}

/* ---- a shared ledger ---- */

/* Runs before this process leases accounts: any leased account is leased by another process. */
static tide_status find_elsewhere(struct sync *sync)
{
    struct cli *cli = sync->cli;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < sync->names.count; i++) {
        const char *email = sync->names.email[i];
        struct tide_mail_look look;
        tide_mail_look_init(&look, cli->mem);
        rc = tide_mail_look(cli->ledger, email, false, &look, &cli->err);
        sync->accounts[i].elsewhere =
            rc == TIDE_OK &&
            (look.owner != 0 ||
             (look.archive[0] != '\0' &&
              !tide_mail_is_here(cli->world, sync->home.archive_dir, email, look.archive)));
        sync->watched = sync->watched || sync->accounts[i].elsewhere;
        tide_mail_look_done(&look);
    }
    return rc;
}

static void tell_elsewhere(const struct sync *sync)
{
    if (sync->cli->quiet || sync->cli->want_json)
        return;
    for (size_t i = 0; i < sync->names.count; i++) {
        const char *holder = sync->watch.accounts[i].holder;
        if (sync->accounts[i].elsewhere)
            (void)fprintf(
                stderr, "%s: %s does this; showing its progress. Ctrl-C stops only the display.\n",
                sync->names.email[i],
                holder[0] == '\0' ? "the process that has its archive" : holder);
    }
}

/* Fails if work enqueued for elsewhere waits too long for a process to take it. */
static tide_status somebody_works(struct sync *sync)
{
    struct cli *cli = sync->cli;
    const uint64_t now_ms = tide_world_now_ms(cli->world);
    const char *email = NULL;
    for (size_t i = 0; email == NULL && i < sync->watch.count; i++) {
        const struct mail_watched *watched = &sync->watch.accounts[i];
        if (sync->accounts[i].elsewhere && watched->look.owner == 0 && watched->jobs > 0)
            email = sync->names.email[i];
    }
    if (email == NULL)
        sync->nobody_ms = 0;
    else if (sync->nobody_ms == 0)
        sync->nobody_ms = now_ms;
    else if (now_ms - sync->nobody_ms >= NOBODY_MS)
        return cli_fail(
            cli, TIDE_BUSY,
            "Start `tidemark worker` where its archive is: the jobs wait in the ledger.",
            "no process that has the archive of %.200s works on this ledger", email);
    return TIDE_OK;
}

/* Our engine is idle: TIDE_TIMEOUT while other processes have work, or we may take it soon. */
static tide_status wait_for_others(struct sync *sync)
{
    struct cli *cli = sync->cli;
    if (cli->shared == NULL || sync->watch.stopping || all_over(sync))
        return TIDE_OK;
    const tide_status rc = somebody_works(sync);
    if (rc != TIDE_OK)
        return rc;
    mail_watch_look_soon(&sync->watch);
    (void)tide_world_sleep_until(cli->world, tide_world_now_us(cli->world) + MAIL_TICK_MS * 1000ull,
                                 NULL);
    return TIDE_TIMEOUT;
}

/* ---- our own engine ---- */

/* Begins every account.  One that cannot begin does not keep the others from it. */
static tide_status begin_all(struct sync *sync)
{
    struct cli *cli = sync->cli;
    for (size_t i = 0; i < sync->names.count; i++) {
        struct sync_account *account = &sync->accounts[i];
        struct tide_mail_run run = run_of(sync, sync->names.email[i]);
        run.elsewhere = account->elsewhere;
        run.aside = &account->aside;
        account->failed = (tide_error){TIDE_OK, 0, ""};
        const tide_status rc = tide_mail_run(sync->home.mail, &run, &cli->err);
        if (rc == TIDE_STOPPED || tide_status_class(rc) == TIDE_CLASS_BUG)
            return rc;
        if (rc == TIDE_OK)
            continue;
        account->failed = cli->err;
        account->failed.status = rc;
        cli->err = (tide_error){TIDE_OK, 0, ""};
    }
    return TIDE_OK;
}

/* An account that could not begin gets no worker either: its remaining jobs would only fail. */
static tide_status restrict_engine(struct sync *sync)
{
    struct cli *cli = sync->cli;
    size_t count = 0;
    bool all = cli->arguments_count == 0;
    const char **names = tide_mem_array(cli->mem, sync->names.count, sizeof *names);
    if (names == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    for (size_t i = 0; i < sync->names.count; i++) {
        if (sync->accounts[i].failed.status == TIDE_OK)
            names[count++] = sync->names.email[i];
        else
            all = false;
    }
    const tide_status rc =
        all || count == 0 ? TIDE_OK : tide_engine_only(sync->home.engine, names, count, &cli->err);
    tide_mem_free(cli->mem, names, sync->names.count * sizeof *names);
    return rc;
}

/* Whether all open work is done but was begun by an earlier sync: then it covers only mail up to
 * that sync's start. */
static bool is_behind(const struct sync *sync, size_t index)
{
    const struct sync_account *account = &sync->accounts[index];
    const struct mail_watched *watched = &sync->watch.accounts[index];
    return account->failed.status == TIDE_OK && !account->caught_up && is_over(sync, index) &&
           !mail_watched_stuck(watched) && watched->look.cycles_open == 0 &&
           watched->look.watermark_ms < sync->began_ms;
}

/* A sync that resumed an earlier one now begins a second pass for mail that arrived since: a sync
 * that reports "done" has everything that existed when it began.  Returns whether a pass began. */
static bool catch_up(struct sync *sync)
{
    bool began = false;
    if (sync->cli->shared != NULL || sync->wanted.budget != NULL)
        return false;
    mail_watch_look_soon(&sync->watch);
    if (mail_watch_tick(&sync->watch, false) != TIDE_OK)
        return false;
    for (size_t i = 0; i < sync->names.count; i++) {
        if (!is_behind(sync, i))
            continue;
        const struct tide_mail_run run = {.email = sync->names.email[i],
                                          .newest_first = sync->wanted.newest_first,
                                          .since_ms = sync->wanted.since_ms};
        sync->accounts[i].caught_up = true;
        if (tide_mail_run(sync->home.mail, &run, NULL) != TIDE_OK)
            continue;                     /* the next sync fetches it */
        sync->watch.accounts[i].active++; /* until the next look */
        began = true;
    }
    if (began)
        mail_watch_look_soon(&sync->watch); /* finished accounts have work again */
    return began;
}

static void stop_when_due(struct sync *sync)
{
    struct cli *cli = sync->cli;
    sync->full = sync->full || mail_home_room(cli, &sync->home) != TIDE_OK;
    sync->spent = sync->spent || tide_mail_spent(sync->home.mail, &sync->budget);
    const bool early = cli_interrupted() || is_late(sync) || sync->full || sync->spent;
    if (sync->watch.stopping || !(early || all_over(sync)))
        return;
    if (!early && catch_up(sync))
        return;
    sync->watch.stopping = true;
    tide_engine_stop(sync->home.engine);
}

/* Indexes everything stored before we report "done", so that searches find it. */
static tide_status index_all(struct sync *sync)
{
    uint64_t indexed = 1;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && indexed > 0 && !cli_interrupted() && !is_late(sync))
        rc = tide_mail_index(sync->home.mail, &indexed, &sync->cli->err);
    return rc;
}

static tide_status run_engine(struct sync *sync)
{
    struct cli *cli = sync->cli;
    tide_status rc = tide_engine_start(sync->home.engine, &cli->err);
    while (rc == TIDE_OK || rc == TIDE_TIMEOUT) {
        rc = tide_engine_wait(sync->home.engine, MAIL_TICK_MS, &cli->err);
        if (rc == TIDE_OK)
            rc = wait_for_others(sync);
        if (rc == TIDE_OK && !sync->watch.stopping && catch_up(sync))
            rc = TIDE_TIMEOUT;
        if (rc != TIDE_TIMEOUT)
            break;
        (void)mail_watch_tick(&sync->watch, false);
        stop_when_due(sync);
    }
    /* We requested the stop: the report says for each account how far it got. */
    return rc == TIDE_STOPPED ? TIDE_OK : rc;
}

static tide_status work(struct sync *sync)
{
    struct cli *cli = sync->cli;
    struct mail_home *home = &sync->home;
    tide_status rc = mail_home_room(cli, home);
    if (rc == TIDE_OK)
        rc = mail_watch_open(cli, home, &sync->names, &sync->watch);
    if (rc != TIDE_OK)
        return rc;
    if (cli->shared != NULL)
        rc = find_elsewhere(sync);
    if (rc == TIDE_OK)
        rc = begin_all(sync);
    if (rc == TIDE_OK)
        rc = restrict_engine(sync);
    if (rc == TIDE_OK)
        rc = mail_watch_tick(&sync->watch, false);
    if (rc == TIDE_OK)
        tell_elsewhere(sync);
    if (rc == TIDE_OK && !all_over(sync))
        rc = run_engine(sync);
    if (rc == TIDE_OK)
        rc = index_all(sync);
    sync->watch.stopping = false;
    const tide_error kept = cli->err;
    (void)mail_watch_tick(&sync->watch, true);
    cli->err = kept;
    return rc;
}

/* ---- another process's ---- */

static tide_status ask_engine(struct cli *cli, const struct tide_mail_run *run, uint32_t account,
                              bool *runs)
{
    struct tide_mail_request wanted;
    tide_json request;
    json_t *answer = NULL;
    tide_mail_request(run, account, &wanted);
    tide_control_request(TIDE_OP_ENQUEUE, &request);
    tide_json_set_cstr(&request, "kind", TIDE_MAIL_PLAN_KIND);
    tide_json_set_cstr(&request, "account", run->email);
    tide_json_set_cstr(&request, "dedupe", wanted.dedupe);
    tide_json_set_raw(&request, "payload", tide_text_of(wanted.payload));
    const tide_status rc = cli_engine_ask(cli, &request, runs, &answer);
    json_decref(answer);
    return cli_hint(
        cli, rc,
        "Another process uses this directory and cannot fetch mail. Stop it, and run this "
        "command again.");
}

static tide_status hand_over(struct sync *sync)
{
    struct cli *cli = sync->cli;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < sync->names.count; i++) {
        struct tide_mail_look look;
        bool runs = false;
        const struct tide_mail_run run = run_of(sync, sync->names.email[i]);
        tide_mail_look_init(&look, cli->mem);
        rc = tide_mail_look(cli->ledger, run.email, false, &look, &cli->err);
        if (rc == TIDE_OK)
            rc = ask_engine(cli, &run, look.account, &runs);
        sync->watch.gone = rc != TIDE_OK && !runs;
        tide_mail_look_done(&look);
    }
    return rc;
}

static uint64_t engine_pid(struct cli *cli)
{
    tide_json request;
    json_t *answer = NULL;
    bool runs = false;
    tide_control_request(TIDE_OP_PING, &request);
    if (cli_engine_ask(cli, &request, &runs, &answer) != TIDE_OK)
        return 0;
    const uint64_t pid = (uint64_t)json_integer_value(json_object_get(answer, "pid"));
    json_decref(answer);
    return pid;
}

/* Whether the process that works in this directory has any of the accounts. */
static bool has_here(const struct sync *sync)
{
    for (size_t i = 0; i < sync->names.count; i++)
        if (!sync->accounts[i].elsewhere)
            return true;
    return false;
}

static tide_status follow(struct sync *sync)
{
    struct cli *cli = sync->cli;
    struct mail_watch *watch = &sync->watch;
    if (sync->wanted.budget != NULL)
        return cli_fail(cli, TIDE_BUSY,
                        "Wait until it ends, or omit --max: then it does this as well.",
                        "process %" PRIu64 " works in this directory and fetches without --max",
                        engine_pid(cli));
    tide_status rc = mail_watch_open(cli, &sync->home, &sync->names, watch);
    if (rc == TIDE_OK && cli->shared != NULL)
        rc = find_elsewhere(sync);
    if (rc == TIDE_OK)
        rc = hand_over(sync);
    if (rc != TIDE_OK)
        return rc;
    sync->watched = true;
    watch->pid = engine_pid(cli);
    if (cli->shared != NULL) {
        rc = mail_watch_tick(watch, false);
        tell_elsewhere(sync);
    }
    if (has_here(sync) && !cli->quiet && !cli->want_json)
        (void)fprintf(stderr,
                      "Process %" PRIu64 " works in this directory and does this; showing its "
                      "progress. Ctrl-C stops only the display.\n",
                      watch->pid);
    while (rc == TIDE_OK && !cli_interrupted() && !is_late(sync)) {
        rc = mail_watch_tick(watch, false);
        if (rc != TIDE_OK || watch->gone || all_over(sync))
            break;
        if (cli->shared != NULL)
            rc = somebody_works(sync);
        if (rc == TIDE_OK)
            (void)tide_world_sleep_until(
                cli->world, tide_world_now_us(cli->world) + MAIL_TICK_MS * 1000ull, NULL);
    }
    if (watch->gone && !mail_watch_settled(watch) && !cli_interrupted() && !is_late(sync))
        return TIDE_NOT_FOUND;
    watch->gone = false;
    const tide_error kept = cli->err;
    (void)mail_watch_tick(watch, true);
    cli->err = kept;
    return rc;
}

/* ---- the end ---- */

/* Shows the state of the copies, and what is lost until it is healed or accepted. */
static void known_show(struct cli *cli, const struct mail_watched *watched, tide_json *one)
{
    const struct mail_known_ask ask = {
        .look = &watched->look, .archive = watched->archive, .stored = watched->kept.stored};
    const tide_error kept = cli->err;
    if (mail_known_show(cli, &ask, one) != TIDE_OK)
        cli_print(cli, "  lost       unknown: %s\n", cli->err.text);
    cli->err = kept;
}

/* Shows what was done with damaged files. */
static void aside_show(struct cli *cli, const struct tide_mail_aside *aside, tide_json *one)
{
    tide_json json;
    if (aside->shards[0] == '\0' && aside->copied == 0)
        return;
    if (aside->shards[0] != '\0')
        cli_print(cli, "  damaged    %s: moved to %s\n", aside->shards, aside->dir);
    cli_print(cli, "  copied     %" PRIu64 " message%s out of damaged files", aside->copied,
              aside->copied == 1 ? "" : "s");
    if (aside->unreadable > 0)
        cli_print(cli, "; %" PRIu64 " could not be read", aside->unreadable);
    cli_print(cli, "\n             What Gmail has was fetched again; `tidemark mail lost` lists "
                   "what it no longer has.\n");
    tide_json_object(&json);
    tide_json_set_cstr(&json, "shards", aside->shards);
    tide_json_set_cstr(&json, "dir", aside->shards[0] == '\0' ? NULL : aside->dir);
    tide_json_set_u64(&json, "copied", aside->copied);
    tide_json_set_u64(&json, "unreadable", aside->unreadable);
    tide_json_set(one, "set_aside", &json);
}

static void account_json(struct cli *cli, const struct mail_watched *watched,
                         const struct mail_ended *ended, bool away,
                         const struct tide_mail_aside *aside, tide_json *list)
{
    const struct tide_mail_look *look = &watched->look;
    tide_json one;
    tide_json_object(&one);
    tide_json_set_cstr(&one, "account", look->email);
    tide_json_set_cstr(&one, "outcome", mail_outcome_name(ended->outcome));
    tide_json_set_cstr(&one, "reason", ended->reason[0] == '\0' ? NULL : ended->reason);
    tide_json_set_cstr(&one, "remedy", ended->remedy[0] == '\0' ? NULL : ended->remedy);
    tide_json_set_u64(&one, "watermark_unix_ms", look->watermark_ms);
    tide_json_set_u64(&one, "since_unix_ms", look->since_ms);
    tide_json_set_cstr(&one, "notice", look->notice);
    if (away)
        tide_json_set_null(&one, "stored");
    else
        tide_json_set_u64(&one, "stored", watched->kept.stored);
    tide_json_set_u64(&one, "messages_total", look->messages_total);
    tide_json_set_u64(&one, "fetched", watched->kept.stored - watched->stored_first);
    tide_json_set_u64(&one, "raw_bytes", watched->kept.raw_bytes);
    tide_json_set_u64(&one, "archive_bytes", watched->kept.archive_bytes);
    tide_json_set_u64(&one, "shards", watched->kept.shards);
    tide_json_set_u64(&one, "cycles_open", look->cycles_open);
    tide_json_set_u64(&one, "bad", look->bad);
    tide_json_set_u64(&one, "owed", look->owed);
    tide_json_set_u64(&one, "failed_jobs", look->jobs_failed);
    tide_json_set_cstr(&one, "history_id", look->history_id);
    aside_show(cli, aside, &one);
    if (!away && watched->archive != NULL)
        known_show(cli, watched, &one);
    tide_json_append(list, &one);
}

/* One line: what is stored, and why it is not everything. */
static void account_print(struct cli *cli, const struct mail_watched *watched,
                          const struct mail_ended *ended, bool away)
{
    const struct tide_mail_look *look = &watched->look;
    char tidemark[32];
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_size_human(watched->kept.archive_bytes, size);
    if (away)
        cli_print(cli, "%s: stored elsewhere", look->email);
    else
        cli_print(cli, "%s: %" PRIu64 " new, %" PRIu64 " stored, %s", look->email,
                  watched->kept.stored - watched->stored_first, watched->kept.stored, size);
    cli_print(cli, "; tidemark %s%s",
              look->watermark_ms == 0 ? "none yet" : cli_time(look->watermark_ms, tidemark),
              look->cycles_open == 0 ? "" : ", with work left");
    switch (ended->outcome) {
    case MAIL_OUTCOME_DONE:
        cli_print(cli, "\n");
        break;
    case MAIL_OUTCOME_SIGNED_OUT:
        cli_print(cli, "; needs a sign-in: %s\n", ended->reason);
        break;
    case MAIL_OUTCOME_HALTED:
        cli_print(cli, "; halted: %s\n", ended->reason);
        break;
    case MAIL_OUTCOME_FAILED:
        cli_print(cli, "; failed: %s\n", ended->reason);
        break;
    case MAIL_OUTCOME_BAD_ITEMS:
    case MAIL_OUTCOME_UNFINISHED:
    case MAIL_OUTCOME_PAUSED:
        cli_print(cli, "; %s\n", ended->reason);
        break;
    }
    if (look->since_ms > 0)
        cli_print(cli, "  since      %s  (older mail is not fetched)\n",
                  cli_time(look->since_ms, tidemark));
    if (look->notice[0] != '\0')
        cli_print(cli, "  notice     %s\n", look->notice);
}

/* Prints the remedy; on standard error if the outcome is an error. */
static void remedy_print(struct cli *cli, const struct mail_watched *watched,
                         const struct mail_ended *ended)
{
    if (ended->remedy[0] == '\0' || ended->outcome == MAIL_OUTCOME_UNFINISHED)
        return;
    if (ended->outcome == MAIL_OUTCOME_BAD_ITEMS)
        cli_print(cli, "  %s\n", ended->remedy);
    else if (!cli->want_json)
        (void)fprintf(stderr, "tidemark: %s: %s\n", watched->look.email, ended->remedy);
}

/* The error of the newest failed job of an account. */
struct failed_ask {
    char text[300];
};

static bool failed_visit(const struct tide_job_row *row, void *arg)
{
    struct failed_ask *ask = arg;
    if (!tide_mail_kind_is_ours(row->kind_name))
        return true;
    (void)snprintf(ask->text, sizeof ask->text, "%.*s", (int)row->error.bytes, row->error.data);
    return false;
}

/* Why parts of the mailbox are not synced although no job runs (E5.2). */
static void why_undone(struct sync *sync, const struct tide_mail_look *look,
                       struct failed_ask *ask_out)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    ask_out->text[0] = '\0';
    filter.account = look->account;
    filter.state = TIDE_ROW_FAILED;
    if (look->cycles_open > 0)
        (void)tide_ledger_jobs(sync->cli->ledger, &filter, failed_visit, ask_out, NULL);
}

/* Returns whether an account is not finished. */
static bool report(struct sync *sync)
{
    struct cli *cli = sync->cli;
    bool unfinished = false;
    tide_json list;
    tide_json_array(&list);
    for (size_t i = 0; i < sync->watch.count; i++) {
        const struct mail_watched *watched = &sync->watch.accounts[i];
        const bool away = sync->accounts[i].elsewhere && watched->archive == NULL;
        struct mail_ended ended;
        struct failed_ask undone;
        why_undone(sync, &watched->look, &undone);
        mail_outcome_judge(watched, &sync->accounts[i].failed, sync->spent ? NULL : undone.text,
                           &ended);
        /* What --max leaves is left on purpose. */
        if (sync->spent && !cli_interrupted() && ended.outcome == MAIL_OUTCOME_UNFINISHED)
            ended = (struct mail_ended){.outcome = MAIL_OUTCOME_DONE};
        unfinished = unfinished || ended.outcome == MAIL_OUTCOME_UNFINISHED;
        cli->exit_code = mail_outcome_worse(cli->exit_code, mail_outcome_exit_code(ended.outcome));
        account_print(cli, watched, &ended, away);
        remedy_print(cli, watched, &ended);
        account_json(cli, watched, &ended, away, &sync->accounts[i].aside, &list);
    }
    tide_json_set(&cli->json, "accounts", &list);
    tide_json_set_bool(&cli->json, "interrupted", cli_interrupted());
    tide_json_set_bool(&cli->json, "timed_out", is_late(sync) && unfinished);
    tide_json_set_bool(&cli->json, "handed_over", sync->watched);
    return unfinished;
}

static void tell_unfinished(struct sync *sync)
{
    struct cli *cli = sync->cli;
    const char *why = cli_interrupted() ? "Interrupted."
                      : is_late(sync)   ? "Out of time."
                                        : "Not finished.";
    if (sync->watched && sync->watch.pid == 0)
        cli_print(cli,
                  "No longer watching; the other processes continue, and stored mail stays.\n");
    else if (sync->watched)
        cli_print(cli, "No longer watching; process %" PRIu64 " continues.\n", sync->watch.pid);
    else
        cli_print(cli, "%s Stored mail stays; run `tidemark mail sync` to resume.\n", why);
}

static tide_status conclude(struct sync *sync, tide_status rc)
{
    struct cli *cli = sync->cli;
    if (sync->full) {
        cli->hint[0] = '\0';
        rc = mail_home_room(
            cli, &sync->home); /* sets the error again: another one may have replaced it */
        return rc == TIDE_OK ? cli_fail(cli, TIDE_DISK_FULL, "Run it again to resume.",
                                        "the disk had too little free space for a moment")
                             : rc;
    }
    if (rc != TIDE_OK)
        return rc;
    const bool unfinished = report(sync);
    if (cli_interrupted())
        cli->exit_code = mail_outcome_worse(cli->exit_code, CLI_EXIT_INTERRUPTED);
    if (cli_interrupted() || unfinished)
        tell_unfinished(sync);
    return TIDE_OK;
}

/* Does the work here, or hands it to the process that uses the directory. */
static tide_status work_or_follow(struct sync *sync)
{
    struct cli *cli = sync->cli;
    tide_status rc = TIDE_OK;
    for (unsigned turn = 0; rc == TIDE_OK && turn < TURNS_MAX; turn++) {
        rc = mail_home_open(cli, &sync->home);
        if (rc == TIDE_OK) {
            sync->watched = false;
            return work(sync);
        }
        if (rc != TIDE_BUSY)
            break;
        const tide_error busy = cli->err;
        cli->hint[0] = '\0';
        rc = follow(sync);
        if (rc == TIDE_OK || !sync->watch.gone)
            break;
        /* That process ended before the work was done: try again, now it may be ours. */
        mail_watch_close(&sync->watch);
        cli->err = busy;
        cli->hint[0] = '\0';
        rc = turn + 1 < TURNS_MAX ? TIDE_OK
                                  : cli_hint(cli, TIDE_BUSY,
                                             "Another process uses this directory but does not "
                                             "answer. Wait, or stop it, and "
                                             "run this command again.");
    }
    return rc;
}

static tide_status prepare(struct sync *sync)
{
    struct cli *cli = sync->cli;
    tide_status rc = sync->wanted.heal ? TIDE_OK : run_wanted(sync);
    if (rc == TIDE_OK)
        rc = deadline_wanted(sync);
    if (rc == TIDE_OK)
        rc = mail_names(cli, &sync->names);
    if (rc != TIDE_OK)
        return rc;
    const size_t bytes = sync->names.count * sizeof *sync->accounts;
    sync->accounts = tide_mem_array(cli->mem, sync->names.count, sizeof *sync->accounts);
    if (sync->accounts == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    memset(sync->accounts, 0, bytes);
    return TIDE_OK;
}

static tide_status run(struct cli *cli, bool heal)
{
    struct sync *sync = tide_mem_new(cli->mem, sizeof *sync);
    if (sync == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    sync->cli = cli;
    (void)cli_interruptible(cli);
    sync->wanted.heal = heal;
    sync->began_ms = tide_world_now_unix_ms(cli->world);
    tide_status rc = prepare(sync);
    if (rc == TIDE_OK)
        rc = conclude(sync, work_or_follow(sync));
    mail_watch_close(&sync->watch);
    const tide_status closed = mail_home_close(cli, &sync->home);
    tide_mem_free(cli->mem, sync->accounts, sync->names.count * sizeof *sync->accounts);
    mail_names_done(&sync->names);
    tide_mem_free(cli->mem, sync, sizeof *sync);
    return rc == TIDE_OK ? closed : rc;
}

tide_status cli_mail_sync(struct cli *cli)
{
    return run(cli, false);
}

/* A sync that begins by reading back everything that is stored (M19). */
tide_status cli_mail_heal(struct cli *cli)
{
    return run(cli, true);
}
