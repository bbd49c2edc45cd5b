/* sync_report.c - how a sync ended for each account: the summary of cli/run/work.h. */
#include "mail/commands/known.h"
#include "mail/commands/sync.h"

#include "base/clocktext.h"

#include <inttypes.h>
#include <stdio.h>

const struct cli_words mail_sync_words = {.stored = "stored mail stays",
                                          .items_bad = "some messages could not be fetched",
                                          .items_list = "`tidemark mail bad` lists the messages."};

/* ---- the outcome ---- */

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
static void why_undone(struct mail_sync *sync, const struct tide_mail_look *look,
                       struct failed_ask *ask_out)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    ask_out->text[0] = '\0';
    filter.account = look->account;
    filter.state = TIDE_ROW_FAILED;
    if (look->cycles_open > 0)
        (void)tide_ledger_jobs(sync->cli->ledger, &filter, failed_visit, ask_out, NULL);
}

/* Nothing runs any more, and parts of the mailbox are not synced. */
static void parts_left(const struct mail_synced *account, const char *undone,
                       struct cli_ended *ended)
{
    const uint64_t parts = account->look.cycles_open;
    ended->outcome = CLI_OUTCOME_BAD_ITEMS;
    (void)snprintf(ended->reason, sizeof ended->reason,
                   "%" PRIu64 " part%s of the mailbox %s not synced%s%.250s", parts,
                   parts == 1 ? "" : "s", parts == 1 ? "is" : "are", undone[0] == '\0' ? "" : ": ",
                   undone);
    (void)snprintf(
        ended->remedy, sizeof ended->remedy,
        "Run `tidemark mail sync` again: it retries failed jobs. Canceled jobs need `tidemark jobs "
        "retry --state canceled`.");
}

/* Everything listed is stored, and it is far less than the server said it has. */
static bool is_short(const struct mail_synced *account)
{
    const struct tide_mail_look *look = &account->look;
    const uint64_t total = look->messages_total;
    uint64_t missing = 0;
    return account->archive != NULL && look->since_ms == 0 &&
           mail_known_missing(look, account->archive, account->kept.stored, &missing, NULL) ==
               TIDE_OK &&
           tide_mail_is_short(total - missing, total);
}

static void too_few(const struct mail_synced *account, struct cli_ended *ended)
{
    ended->outcome = CLI_OUTCOME_BAD_ITEMS;
    (void)snprintf(ended->reason, sizeof ended->reason,
                   "not synced: the server counts %" PRIu64
                   " messages but listed so few that only %" PRIu64 " are stored",
                   account->look.messages_total, account->kept.stored);
    (void)snprintf(ended->remedy, sizeof ended->remedy,
                   "Run `tidemark mail sync` again: it lists everything again.");
}

/* The errors of an archive begin with the path of the shard. */
static bool names_shard(const struct cli_watched *watched)
{
    return strstr(watched->error.text, watched->name) != NULL &&
           strstr(watched->error.text, ".db: ") != NULL;
}

static void could_not_begin(const struct cli_watched *watched, struct cli_ended *ended)
{
    const tide_status status = watched->error.status;
    if (status == TIDE_CORRUPT)
        (void)snprintf(ended->remedy, sizeof ended->remedy,
                       "Run `tidemark mail heal %.100s`: it moves the damaged file aside and "
                       "fetches its mail again.",
                       watched->name);
    else if ((status == TIDE_INVALID || status == TIDE_NEWER) && names_shard(watched))
        (void)snprintf(ended->remedy, sizeof ended->remedy, "%s", mail_home_broken_remedy(status));
}

void mail_sync_judge(void *arg, size_t index, struct cli_ended *ended)
{
    struct mail_sync *sync = arg;
    const struct mail_synced *account = &sync->accounts[index];
    const struct cli_watched *watched = &sync->work.accounts[index];
    struct failed_ask undone;
    why_undone(sync, &account->look, &undone);
    const bool over = ended->outcome == CLI_OUTCOME_DONE || ended->outcome == CLI_OUTCOME_BAD_ITEMS;
    if (watched->error.status != TIDE_OK)
        could_not_begin(watched, ended);
    else if (over && !sync->work.enough && account->look.cycles_open > 0)
        parts_left(account, undone.text, ended);
    else if (over && is_short(account))
        too_few(account, ended);
    /* What --max leaves is left on purpose. */
    else if (sync->work.enough && !cli_interrupted(sync->cli) &&
             ended->outcome == CLI_OUTCOME_UNFINISHED)
        *ended = (struct cli_ended){.outcome = CLI_OUTCOME_DONE};
}

/* ---- printing ---- */

static uint64_t fetched_of(const struct mail_synced *account)
{
    return account->kept.stored > account->stored_first
               ? account->kept.stored - account->stored_first
               : 0;
}

/* Shows the state of the copies, and what is lost until it is healed or accepted. */
static void known_show(struct cli *cli, const struct mail_synced *account, tide_json *one)
{
    const struct mail_known_ask ask = {
        .look = &account->look, .archive = account->archive, .stored = account->kept.stored};
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

/* Its archive is on another machine. */
static bool is_away(const struct mail_sync *sync, size_t index)
{
    return sync->work.accounts[index].elsewhere && sync->accounts[index].archive == NULL;
}

/* What is stored. */
void mail_sync_line(void *arg, size_t index)
{
    const struct mail_sync *sync = arg;
    struct cli *cli = sync->cli;
    const struct mail_synced *account = &sync->accounts[index];
    const struct tide_mail_look *look = &account->look;
    char tidemark[32];
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_size_human(account->kept.archive_bytes, size);
    if (is_away(sync, index))
        cli_print(cli, "%s: stored elsewhere", look->email);
    else
        cli_print(cli, "%s: %" PRIu64 " new, %" PRIu64 " stored, %s", look->email,
                  fetched_of(account), account->kept.stored, size);
    cli_print(cli, "; tidemark %s%s",
              look->tidemark_ms == 0 ? "none yet" : cli_time(look->tidemark_ms, tidemark),
              look->cycles_open == 0 ? "" : ", with work left");
}

void mail_sync_details(void *arg, size_t index, tide_json *one)
{
    const struct mail_sync *sync = arg;
    struct cli *cli = sync->cli;
    const struct mail_synced *account = &sync->accounts[index];
    const struct tide_mail_look *look = &account->look;
    const bool away = is_away(sync, index);
    char since[32];
    if (look->since_ms > 0)
        cli_print(cli, "  since      %s  (older mail is not fetched)\n",
                  cli_time(look->since_ms, since));
    if (tide_mail_look_complete_since(look) > 0)
        cli_print(cli, "  newest     everything since %s is here; older mail follows\n",
                  cli_time(tide_mail_look_complete_since(look), since));
    if (look->notice[0] != '\0')
        cli_print(cli, "  notice     %s\n", look->notice);
    tide_json_set_u64(one, "watermark_unix_ms", look->tidemark_ms);
    tide_json_set_u64(one, "complete_since_unix_ms", tide_mail_look_complete_since(look));
    tide_json_set_u64(one, "since_unix_ms", look->since_ms);
    tide_json_set_cstr(one, "notice", look->notice);
    if (away)
        tide_json_set_null(one, "stored");
    else
        tide_json_set_u64(one, "stored", account->kept.stored);
    tide_json_set_u64(one, "messages_total", look->messages_total);
    tide_json_set_u64(one, "fetched", fetched_of(account));
    tide_json_set_u64(one, "raw_bytes", account->kept.raw_bytes);
    tide_json_set_u64(one, "archive_bytes", account->kept.archive_bytes);
    tide_json_set_u64(one, "shards", account->kept.shards);
    tide_json_set_u64(one, "cycles_open", look->cycles_open);
    tide_json_set_u64(one, "bad", look->bad);
    tide_json_set_u64(one, "owed", look->owed);
    tide_json_set_u64(one, "failed_jobs", look->jobs_failed);
    tide_json_set_cstr(one, "history_id", look->history_id);
    aside_show(cli, &account->aside, one);
    if (!away && account->archive != NULL)
        known_show(cli, account, one);
}
