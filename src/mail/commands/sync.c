/* sync.c - `tidemark mail sync` and `mail heal` (M1-M6b, M19): the work of cli/run/work.h. */
#include "mail/commands/sync.h"
#include "mail/slice.h"

#include "base/clocktext.h"

#include <inttypes.h>

enum { INDEXED_MS = 10000, INDEXED_TICK_US = 50000, INDEXING_SHOWN_MS = 1000 };

static const struct cli_columns columns = {.done = "stored",
                                           .done_json = "stored",
                                           .rate = "msg/s",
                                           .rate_json = "messages_per_s",
                                           .units_each = TIDE_GMAIL_GET_UNITS,
                                           .tidemark = true};

/* ---- flags ---- */

/* Reads the flags, among them --since and --max; `email` is set later. */
static tide_status run_wanted(struct mail_sync *sync)
{
    struct cli *cli = sync->cli;
    struct tide_mail_run *run = &sync->wanted;
    const char *since = cli_flag(cli, "since");
    const char *max = cli_flag(cli, "max");
    const char *exact = cli_flag(cli, "exact");
    const bool newest = cli_flag(cli, "newest-first") != NULL;
    const bool oldest = cli_flag(cli, "oldest-first") != NULL;
    *run = (struct tide_mail_run){.force = cli_flag(cli, "force") != NULL,
                                  .order = newest   ? TIDE_MAIL_NEWEST
                                           : oldest ? TIDE_MAIL_OLDEST
                                                    : TIDE_MAIL_BY_QUOTA,
                                  .inexact = exact != NULL && strcmp(exact, "off") == 0,
                                  .since_ms = TIDE_MAIL_EVERYTHING};
    if (newest && oldest)
        return cli_wrong(cli, "Give one of the two.",
                         "--newest-first and --oldest-first exclude each other");
    if (exact != NULL && strcmp(exact, "on") != 0 && !run->inexact)
        return cli_wrong(cli, "Give on or off.", "--exact %s is neither on nor off", exact);
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

/* ---- the work ---- */

static tide_status begin(void *arg, size_t index, void *state, tide_error *err)
{
    struct mail_sync *sync = arg;
    struct tide_mail_run run = sync->wanted;
    run.email = sync->work.accounts[index].name;
    run.elsewhere = sync->work.accounts[index].elsewhere;
    run.aside = &sync->accounts[index].aside;
    return tide_mail_run(state, &run, err);
}

static bool request(void *arg, size_t index, size_t nth, struct cli_request *out)
{
    const struct mail_sync *sync = arg;
    struct tide_mail_request wanted;
    tide_mail_request(&sync->wanted, sync->work.accounts[index].account, &wanted);
    *out = (struct cli_request){.kind = TIDE_MAIL_PLAN_KIND};
    memcpy(out->payload, wanted.payload, sizeof wanted.payload);
    memcpy(out->dedupe, wanted.dedupe, sizeof wanted.dedupe);
    return nth == 0;
}

static tide_status hand_over(void *arg, uint64_t pid)
{
    const struct mail_sync *sync = arg;
    if (sync->wanted.budget == NULL)
        return TIDE_OK;
    return cli_fail(sync->cli, TIDE_BUSY,
                    "Wait until it ends, or omit --max: then it does this as well.",
                    "process %" PRIu64 " works in this directory and fetches without --max", pid);
}

/* --max: what is left waits for the next run. */
static tide_status check(void *arg, void *state, bool *enough_out)
{
    struct mail_sync *sync = arg;
    *enough_out = *enough_out || tide_mail_spent(state, &sync->budget);
    return mail_home_room(sync->cli, &sync->places);
}

/* A sync that resumed an earlier one covers only mail up to that one's start: it now begins a
 * second pass for mail that arrived since.  A sync that reports "done" has everything that existed
 * when it began. */
static bool more(void *arg, size_t index, void *state)
{
    struct mail_sync *sync = arg;
    struct mail_synced *account = &sync->accounts[index];
    const struct tide_mail_run run = {.email = account->look.email,
                                      .order = sync->wanted.order,
                                      .inexact = sync->wanted.inexact,
                                      .since_ms = sync->wanted.since_ms};
    if (sync->wanted.budget != NULL || account->caught_up || account->look.cycles_open > 0 ||
        account->look.tidemark_ms >= sync->began_ms ||
        cli_watched_failed(&sync->work.accounts[index])) /* a user may have canceled it */
        return false;
    account->caught_up = true;
    return tide_mail_run(state, &run, NULL) == TIDE_OK; /* else the next sync fetches it */
}

/* Shows how much is left to be indexed, once a second: the count reads every shard.  A program gets an
 * event when it begins (*shown_ms is 0), however short it is. */
static void show_indexing(struct mail_sync *sync, uint64_t *shown_ms)
{
    const uint64_t now_ms = tide_world_now_ms(sync->cli->world);
    bool begins = false;
    if (now_ms - *shown_ms < INDEXING_SHOWN_MS)
        return;
    for (size_t i = 0; i < sync->work.count; i++) {
        struct tide_archive_tally tally = {.unindexed = 0};
        struct cli_live *live = &sync->work.lives[i];
        tide_archive *archive = sync->accounts[i].archive;
        if (archive == NULL || tide_archive_tally(archive, &tally, NULL) != TIDE_OK)
            continue;
        live->phase[0] = '\0';
        if (tally.unindexed > 0)
            (void)snprintf(live->phase, sizeof live->phase, "indexing, %" PRIu64 " left",
                           tally.unindexed);
        begins = begins || (*shown_ms == 0 && tally.unindexed > 0);
    }
    *shown_ms = now_ms;
    cli_display_show(&sync->work.display, sync->work.lives, sync->work.count,
                     sync->work.handed_over, true, begins && sync->cli->want_json);
}

/* Indexes everything stored before we report "done", so that searches find it. */
static tide_status index_all(void *arg, void *state)
{
    struct mail_sync *sync = arg;
    uint64_t indexed = 1;
    uint64_t shown_ms = 0;
    show_indexing(sync, &shown_ms);
    while (indexed > 0 && !cli_interrupted(sync->cli) && !cli_work_is_late(&sync->work)) {
        TIDE_TRY(tide_mail_index(state, &indexed, &sync->cli->err));
        show_indexing(sync, &shown_ms);
    }
    return TIDE_OK;
}

/* Another process stored the mail and indexes it by itself: it gets a moment for that. */
static void wait_indexed(struct mail_sync *sync)
{
    struct cli *cli = sync->cli;
    const uint64_t give_up_ms = tide_world_now_ms(cli->world) + INDEXED_MS;
    uint64_t shown_ms = give_up_ms - INDEXED_MS;
    for (size_t i = 0; sync->work.handed_over && i < sync->work.count;) {
        struct tide_archive_tally tally;
        tide_archive *archive = sync->accounts[i].archive;
        show_indexing(sync, &shown_ms);
        if (archive == NULL || tide_archive_tally(archive, &tally, NULL) != TIDE_OK ||
            tally.unindexed == 0)
            i++;
        else if (cli_interrupted(cli) || cli_work_is_late(&sync->work) ||
                 tide_world_now_ms(cli->world) >= give_up_ms ||
                 tide_world_sleep_until(cli->world, tide_world_now_us(cli->world) + INDEXED_TICK_US,
                                        NULL) != TIDE_OK)
            return;
    }
}

/* ---- the commands ---- */

static tide_status prepare(struct mail_sync *sync)
{
    struct cli *cli = sync->cli;
    TIDE_TRY(sync->wanted.heal ? TIDE_OK : run_wanted(sync));
    TIDE_TRY(cli_work_deadline(cli, &sync->work.deadline_ms));
    TIDE_TRY(cli_work_names(&sync->work));
    TIDE_TRY(mail_home_places(cli, &sync->places));
    sync->accounts = tide_mem_array(cli->mem, sync->work.count, sizeof *sync->accounts);
    if (sync->accounts == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    for (size_t i = 0; i < sync->work.count; i++) {
        tide_mail_look_init(&sync->accounts[i].look, cli->mem);
        memcpy(sync->accounts[i].look.email, sync->work.accounts[i].name,
               sizeof sync->work.accounts[i].name);
    }
    return TIDE_OK;
}

static tide_status done(struct mail_sync *sync)
{
    struct cli *cli = sync->cli;
    const size_t count = sync->work.count;
    const tide_status rc = cli_work_done(&sync->work);
    for (size_t i = 0; sync->accounts != NULL && i < count; i++) {
        (void)tide_archive_close(sync->accounts[i].archive, NULL);
        tide_mail_look_done(&sync->accounts[i].look);
    }
    tide_mem_free(cli->mem, sync->accounts, count * sizeof *sync->accounts);
    if (rc != TIDE_TIMEOUT) /* else a handler that does not return uses the budget */
        tide_mem_free(cli->mem, sync, sizeof *sync);
    return rc;
}

static tide_status run(struct cli *cli, bool heal)
{
    struct mail_sync *sync = tide_mem_new(cli->mem, sizeof *sync);
    if (sync == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    sync->cli = cli;
    sync->wanted.heal = heal;
    sync->began_ms = tide_world_now_unix_ms(cli->world);
    sync->work = (struct cli_work){.cli = cli,
                                   .system = &tide_mail_system,
                                   .columns = &columns,
                                   .words = &mail_sync_words,
                                   .arg = sync,
                                   .request = request,
                                   .begin = begin,
                                   .hand_over = hand_over,
                                   .look = mail_sync_look,
                                   .check = check,
                                   .more = more,
                                   .last = index_all,
                                   .judge = mail_sync_judge,
                                   .line = mail_sync_line,
                                   .details = mail_sync_details};
    tide_status rc = prepare(sync);
    if (rc == TIDE_OK && !heal && cli_flag(cli, "no-wait") != NULL) {
        rc = cli_work_ask(&sync->work);
    } else {
        if (rc == TIDE_OK)
            rc = cli_work_run(&sync->work);
        if (rc == TIDE_OK) {
            wait_indexed(sync);
            cli_work_report(&sync->work);
        }
    }
    const tide_status closed = done(sync);
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

tide_status cli_mail_sync_check(struct cli *cli)
{
    struct mail_sync sync = {.cli = cli};
    TIDE_TRY(run_wanted(&sync));
    TIDE_TRY(cli_work_deadline(cli, &sync.work.deadline_ms));
    if (sync.wanted.budget != NULL)
        return cli_wrong(cli, "Omit it.", "a scheduled sync runs without --max");
    return cli_names_later(cli, &tide_mail_system, cli->arguments, cli->arguments_count, false);
}
