/* tidemark mail sync (M1-M6b).
 *
 * It runs the engine itself, or, when another process has the directory, hands the
 * same work to that one and watches (decision 10).  When that process ends before the
 * work does, this one takes over.
 *
 * On a shared ledger it is one process of the fleet: what nobody holds and whose archive is
 * here it does itself, the rest is asked for and watched in the ledger. */
#include "cli/mail_watch.h"

#include "base/clocktext.h"
#include "mail/slice.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum {
    TURNS_MAX = 3,     /* an engine that ends while we ask it is asked for no longer */
    NOBODY_MS = 45000, /* a dead process's account is free after its lease */
};

/* Ctrl-C asks once; a second one ends the program as usual.  What is stored is
 * stored either way. */
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = 1;
    (void)signal(number, SIG_DFL);
}

struct sync {
    struct cli *cli;
    struct mail_names names;
    struct tide_mail_run wanted;
    struct mail_home home;
    struct mail_watch watch;
    bool watched; /* another process did the work */
    /* On a shared ledger: another one has the account or its archive. */
    bool elsewhere[MAIL_ACCOUNTS_MAX];
    uint64_t nobody_ms; /* since when nobody does what is asked for elsewhere; 0: somebody does */
    char signed_out[256];
    char why[400];
    bool full;  /* the disk has too little room: the run ends */
    bool spent; /* --max: what is left waits for the next run */
};

/* What the flags ask for, --since and --max among them; `email` comes later. */
static tide_status run_wanted(struct cli *cli, struct tide_mail_run *run)
{
    const char *since = cli_flag(cli, "since");
    const char *max = cli_flag(cli, "max");
    *run = (struct tide_mail_run){.force = cli_flag(cli, "force") != NULL,
                                  .newest_first = cli_flag(cli, "newest-first") != NULL,
                                  .since_ms = TIDE_MAIL_EVERYTHING};
    if (since != NULL &&
        !tide_since_parse(tide_text_of(since), tide_world_now_unix_ms(cli->world), &run->since_ms))
        return cli_wrong(cli, "Say a day (2019-01-31), a year (2019) or an age (2y).",
                         "%s is no time in the past", since);
    if (max != NULL &&
        (!tide_text_to_u64(tide_text_of(max), &run->messages_max) || run->messages_max == 0))
        return cli_wrong(cli, "Say a number of messages, 1 or more.", "%s is no number of messages",
                         max);
    return TIDE_OK;
}

static struct tide_mail_run run_of(const struct sync *sync, const char *email)
{
    struct tide_mail_run run = sync->wanted;
    run.email = email;
    return run;
}

/* ---- a shared ledger ---- */

/* Before we hold anything ourselves: who is held is held by others. */
static tide_status find_elsewhere(struct sync *sync)
{
    struct cli *cli = sync->cli;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < sync->names.count; i++) {
        const char *email = sync->names.email[i];
        struct tide_mail_look look;
        tide_mail_look_init(&look, cli->mem);
        rc = tide_mail_look(cli->ledger, email, false, &look, &cli->err);
        sync->elsewhere[i] =
            rc == TIDE_OK &&
            (look.owner != 0 ||
             (look.archive[0] != '\0' &&
              !tide_mail_is_here(cli->world, sync->home.archive_dir, email, look.archive)));
        sync->watched = sync->watched || sync->elsewhere[i];
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
        if (sync->elsewhere[i])
            (void)fprintf(stderr,
                          "%s: %s does it; this is its progress. Ctrl-C stops the watching "
                          "only.\n",
                          sync->names.email[i],
                          holder[0] == '\0' ? "whoever has its archive" : holder);
    }
}

/* Whether what was asked for elsewhere waits for a process that is not there. */
static tide_status somebody_works(struct sync *sync)
{
    struct cli *cli = sync->cli;
    const uint64_t now_ms = tide_world_now_ms(cli->world);
    const char *email = NULL;
    for (size_t i = 0; email == NULL && i < sync->watch.count; i++) {
        const struct mail_watched *watched = &sync->watch.accounts[i];
        if (sync->elsewhere[i] && watched->look.owner == 0 && watched->jobs > 0)
            email = sync->names.email[i];
    }
    if (email == NULL)
        sync->nobody_ms = 0;
    else if (sync->nobody_ms == 0)
        sync->nobody_ms = now_ms;
    else if (now_ms - sync->nobody_ms >= NOBODY_MS)
        return cli_fail(cli, TIDE_BUSY,
                        "Start `tidemark worker` where its archive is: what was asked for waits in "
                        "the ledger.",
                        "no process that has the archive of %.200s works on this ledger", email);
    return TIDE_OK;
}

static tide_status stands_still(struct sync *sync);

/* Our engine has nothing to do: TIDE_TIMEOUT while others have, or we may take it soon. */
static tide_status wait_for_others(struct sync *sync)
{
    struct cli *cli = sync->cli;
    if (cli->shared == NULL || sync->watch.stopping || mail_watch_settled(&sync->watch))
        return TIDE_OK;
    tide_status rc = stands_still(sync);
    if (rc == TIDE_OK)
        rc = somebody_works(sync);
    if (rc != TIDE_OK)
        return rc;
    mail_watch_look_soon(&sync->watch);
    (void)tide_world_sleep_until(cli->world, tide_world_now_us(cli->world) + MAIL_TICK_MS * 1000ull,
                                 NULL);
    return TIDE_TIMEOUT;
}

/* ---- our own engine ---- */

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
    for (size_t i = 0; rc == TIDE_OK && i < sync->names.count; i++) {
        struct tide_mail_run run = run_of(sync, sync->names.email[i]);
        run.elsewhere = sync->elsewhere[i];
        rc = tide_mail_run(home->mail, &run, &cli->err);
    }
    if (rc == TIDE_OK)
        rc = mail_watch_tick(&sync->watch, false);
    if (rc == TIDE_OK)
        tell_elsewhere(sync);
    if (rc == TIDE_OK)
        rc = tide_engine_start(home->engine, &cli->err);
    while (rc == TIDE_OK || rc == TIDE_TIMEOUT) {
        rc = tide_engine_wait(home->engine, MAIL_TICK_MS, &cli->err);
        if (rc == TIDE_OK)
            rc = wait_for_others(sync);
        if (rc != TIDE_TIMEOUT)
            break;
        const bool out = tide_mail_signed_out(home->mail, sync->signed_out, sync->why);
        sync->full = sync->full || mail_home_room(cli, home) != TIDE_OK;
        sync->spent = sync->spent || tide_mail_spent(home->mail);
        if ((interrupted || out || sync->full || sync->spent) && !sync->watch.stopping) {
            sync->watch.stopping = true;
            tide_engine_stop(home->engine);
        }
        (void)mail_watch_tick(&sync->watch, false);
    }
    /* What is stored can be found when we say that we are done. */
    uint64_t indexed = 1;
    if (rc == TIDE_STOPPED && sync->spent && !interrupted)
        rc = TIDE_OK;
    while (rc == TIDE_OK && indexed > 0 && !interrupted)
        rc = tide_mail_index(home->mail, &indexed, &cli->err);
    /* It may have been refused and stopped between two looks. */
    (void)tide_mail_signed_out(home->mail, sync->signed_out, sync->why);
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
    return cli_hint(cli, rc,
                    "It holds this directory and cannot fetch mail. Stop it, and run this "
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

/* Why nothing more will happen there without a person; TIDE_OK: it goes on. */
static tide_status stands_still(struct sync *sync)
{
    struct cli *cli = sync->cli;
    for (size_t i = 0; i < sync->watch.count; i++) {
        const struct mail_watched *watched = &sync->watch.accounts[i];
        const char *email = sync->names.email[i];
        char hint[300];
        if (watched->signed_out) {
            (void)snprintf(sync->signed_out, sizeof sync->signed_out, "%s", email);
            (void)snprintf(sync->why, sizeof sync->why, "its sign-in was refused");
            return TIDE_STOPPED;
        }
        (void)snprintf(hint, sizeof hint,
                       "`tidemark account resume %.100s` or `tidemark jobs resume --account "
                       "%.100s` lets it go on.",
                       email, email);
        if (watched->stopped)
            return cli_fail(cli, TIDE_CANCELED, hint, "%.100s: %.160s", email,
                            sync->watch.lives[i].note);
    }
    return TIDE_OK;
}

/* Whether something of it is the affair of whoever works in this directory. */
static bool has_here(const struct sync *sync)
{
    for (size_t i = 0; i < sync->names.count; i++)
        if (!sync->elsewhere[i])
            return true;
    return false;
}

static tide_status follow(struct sync *sync)
{
    struct cli *cli = sync->cli;
    struct mail_watch *watch = &sync->watch;
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
                      "Process %" PRIu64 " works in this directory and does it; this is its "
                      "progress. Ctrl-C stops the watching only.\n",
                      watch->pid);
    while (rc == TIDE_OK && !interrupted) {
        rc = mail_watch_tick(watch, false);
        if (rc != TIDE_OK || watch->gone || mail_watch_settled(watch))
            break;
        rc = stands_still(sync);
        if (rc == TIDE_OK && cli->shared != NULL)
            rc = somebody_works(sync);
        if (rc == TIDE_OK)
            (void)tide_world_sleep_until(
                cli->world, tide_world_now_us(cli->world) + MAIL_TICK_MS * 1000ull, NULL);
    }
    if (watch->gone && !mail_watch_settled(watch) && !interrupted)
        return TIDE_NOT_FOUND;
    watch->gone = false;
    const tide_error kept = cli->err;
    (void)mail_watch_tick(watch, true);
    cli->err = kept;
    return rc;
}

/* ---- the end ---- */

static void report(struct sync *sync)
{
    struct cli *cli = sync->cli;
    tide_json list;
    tide_json_array(&list);
    for (size_t i = 0; i < sync->watch.count; i++) {
        const struct mail_watched *watched = &sync->watch.accounts[i];
        const struct tide_mail_look *look = &watched->look;
        char tidemark[32];
        char size[TIDE_SIZE_TEXT_BYTES];
        tide_json one;
        const uint64_t news = watched->kept.stored - watched->stored_first;
        tide_size_human(watched->kept.archive_bytes, size);
        const bool away = sync->elsewhere[i] && watched->archive == NULL;
        if (away)
            cli_print(cli, "%s: stored elsewhere", look->email);
        else
            cli_print(cli, "%s: %" PRIu64 " new, %" PRIu64 " stored, %s", look->email, news,
                      watched->kept.stored, size);
        cli_print(cli, "; tidemark %s%s\n",
                  look->watermark_ms == 0 ? "none yet" : cli_time(look->watermark_ms, tidemark),
                  look->cycles_open == 0 ? "" : ", with work left");
        if (look->since_ms > 0)
            cli_print(cli, "  since      %s  (older mail was not asked for)\n",
                      cli_time(look->since_ms, tidemark));
        if (look->notice[0] != '\0')
            cli_print(cli, "  notice     %s\n", look->notice);
        tide_json_object(&one);
        tide_json_set_cstr(&one, "account", look->email);
        tide_json_set_u64(&one, "watermark_unix_ms", look->watermark_ms);
        tide_json_set_u64(&one, "since_unix_ms", look->since_ms);
        tide_json_set_cstr(&one, "notice", look->notice);
        if (away)
            tide_json_set_null(&one, "stored");
        else
            tide_json_set_u64(&one, "stored", watched->kept.stored);
        tide_json_set_u64(&one, "messages_total", look->messages_total);
        tide_json_set_u64(&one, "fetched", news);
        tide_json_set_u64(&one, "raw_bytes", watched->kept.raw_bytes);
        tide_json_set_u64(&one, "archive_bytes", watched->kept.archive_bytes);
        tide_json_set_u64(&one, "shards", watched->kept.shards);
        tide_json_set_u64(&one, "cycles_open", look->cycles_open);
        tide_json_set_u64(&one, "bad", look->bad);
        tide_json_set_u64(&one, "owed", look->owed);
        tide_json_set_u64(&one, "failed_jobs", look->jobs_failed);
        tide_json_set_cstr(&one, "history_id", look->history_id);
        tide_json_append(&list, &one);
    }
    tide_json_set(&cli->json, "accounts", &list);
    tide_json_set_bool(&cli->json, "interrupted", interrupted != 0);
    tide_json_set_bool(&cli->json, "handed_over", sync->watched);
}

/* The error of the newest job of an account that failed. */
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

/* Nothing runs any more and parts of the mailbox are not synced (E5.2): which, why, and what
 * to do.  false: all of it is, or somebody goes on with it. */
static bool tell_undone(struct sync *sync, const struct tide_mail_look *look)
{
    struct cli *cli = sync->cli;
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    struct failed_ask ask = {.text = ""};
    if (look->cycles_open == 0 || sync->spent)
        return false;
    filter.account = look->account;
    filter.state = TIDE_ROW_FAILED;
    (void)tide_ledger_jobs(cli->ledger, &filter, failed_visit, &ask, &cli->err);
    cli_print(cli, "%s: %" PRIu64 " part%s of the mailbox not synced%s%s\n", look->email,
              look->cycles_open, look->cycles_open == 1 ? " is" : "s are",
              ask.text[0] == '\0' ? "" : ": ", ask.text);
    cli_print(cli,
              "  Run `tidemark mail sync` again: it starts what failed again. What was canceled "
              "needs `tidemark jobs retry --state canceled`.\n");
    return true;
}

/* What did not go well in this run. */
static void tell_spoiled(struct sync *sync)
{
    struct cli *cli = sync->cli;
    bool bad = false;
    bool failed = false;
    bool undone = false;
    for (size_t i = 0; i < sync->watch.count; i++) {
        const struct mail_watched *watched = &sync->watch.accounts[i];
        bad = bad || watched->bad > watched->bad_first;
        failed = failed || watched->failed > watched->failed_first;
        undone = tell_undone(sync, &watched->look) || undone;
    }
    if (bad || failed || undone)
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
    if (bad)
        cli_print(cli, "Some messages could not be fetched: `tidemark mail bad` names them.\n");
    if (failed && !undone)
        cli_print(cli, "Some jobs failed or were canceled: `tidemark jobs list --state failed` and "
                       "`--state canceled` name them.\n");
}

static tide_status needs_sign_in(struct sync *sync)
{
    char hint[400];
    (void)snprintf(hint, sizeof hint,
                   "Sign in again with `tidemark account add gmail %.100s` and the flags it was "
                   "added with; nothing that is stored is lost.",
                   sync->signed_out);
    return cli_fail(sync->cli, TIDE_AUTH, hint, "%s: %.250s", sync->signed_out, sync->why);
}

static tide_status conclude(struct sync *sync, tide_status rc)
{
    struct cli *cli = sync->cli;
    if (sync->signed_out[0] != '\0')
        return needs_sign_in(sync);
    if (sync->full) {
        cli->hint[0] = '\0';
        rc = mail_home_room(cli, &sync->home); /* says it again; it may have been said over */
        return rc == TIDE_OK ? cli_fail(cli, TIDE_DISK_FULL, "Run it again to go on.",
                                        "the disk had too little room for a moment")
                             : rc;
    }
    if (rc != TIDE_OK && rc != TIDE_STOPPED)
        return rc;
    report(sync);
    if (rc == TIDE_STOPPED || interrupted) {
        cli->exit_code = CLI_EXIT_INTERRUPTED;
        if (sync->watched && sync->watch.pid == 0)
            cli_print(cli, "No longer watching; what others do goes on, and what is stored "
                           "stays.\n");
        else if (sync->watched)
            cli_print(cli, "No longer watching; process %" PRIu64 " goes on with it.\n",
                      sync->watch.pid);
        else
            cli_print(cli, "Interrupted. What is stored stays; `tidemark mail sync` goes on "
                           "from here.\n");
    } else {
        tell_spoiled(sync);
    }
    return TIDE_OK;
}

tide_status cli_mail_sync(struct cli *cli)
{
    struct sync *sync = tide_mem_new(cli->mem, sizeof *sync);
    if (sync == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    sync->cli = cli;
    tide_status rc = run_wanted(cli, &sync->wanted);
    if (rc == TIDE_OK)
        rc = mail_names(cli, &sync->names);
    (void)signal(SIGINT, on_signal);
    (void)signal(SIGTERM, on_signal);
    for (unsigned turn = 0; rc == TIDE_OK && turn < TURNS_MAX; turn++) {
        rc = mail_home_open(cli, &sync->home);
        if (rc == TIDE_OK) {
            sync->watched = false;
            rc = work(sync);
            break;
        }
        if (rc != TIDE_BUSY)
            break;
        const tide_error busy = cli->err;
        cli->hint[0] = '\0';
        rc = follow(sync);
        if (rc == TIDE_OK || !sync->watch.gone)
            break;
        /* It ended before the work did: once more, and then it is ours. */
        mail_watch_close(&sync->watch);
        cli->err = busy;
        cli->hint[0] = '\0';
        rc = turn + 1 < TURNS_MAX ? TIDE_OK
                                  : cli_hint(cli, TIDE_BUSY,
                                             "It holds this directory but does not answer. Wait, "
                                             "or stop it, and run this command again.");
    }
    rc = conclude(sync, rc);
    mail_watch_close(&sync->watch);
    const tide_status closed = mail_home_close(cli, &sync->home);
    tide_mem_free(cli->mem, sync, sizeof *sync);
    return rc == TIDE_OK ? closed : rc;
}
