/* sync_look.c - how far the sync of an account is, from the ledger and its archive (M6b). */
#include "mail/commands/sync.h"

#include <stdio.h>
#include <unistd.h>

static void open_archive(struct mail_sync *sync, struct mail_synced *account)
{
    char dir[CLI_PATH_BYTES + 300];
    if (account->archive != NULL)
        return;
    (void)snprintf(dir, sizeof dir, "%s/%s", sync->places.archive_dir, account->look.email);
    const struct tide_archive_options options = {
        .dir = dir, .account = account->look.email, .world = sync->cli->world, .read_only = true};
    /* Before the first sync the directory does not exist. */
    if (access(dir, F_OK) == 0)
        (void)tide_archive_open(&options, sync->cli->mem, &account->archive, NULL);
}

/* The expected total: while the listing is not complete, the number from the server;
 * afterwards what is stored plus the messages in jobs. */
static uint64_t total_of(const struct mail_synced *account, uint64_t stored)
{
    const struct tide_mail_look *look = &account->look;
    const uint64_t since = stored > account->stored_looked
                               ? stored - account->stored_looked
                               : 0; /* stored since the last full count */
    const uint64_t left = look->messages_left > since ? look->messages_left - since : 0;
    if (!look->listing)
        return stored + left;
    if (look->messages_total == 0)
        return CLI_UNKNOWN;
    return look->messages_total > stored + left ? look->messages_total : stored + left;
}

/* Messages that a batch has stored and its job has not ended with yet count twice for a moment. */
enum { TOTAL_SLACK = 1000 };

/* What is done now.  Listing and fetching go on side by side. */
static const char *phase_of(const struct tide_mail_look *look)
{
    if (look->listing)
        return look->messages_left > 0 ? "listing and fetching" : "listing";
    if (look->messages_left > 0)
        return "fetching";
    return look->jobs_exact > 0 ? "exact bytes" : "";
}

static void fill(struct mail_sync *sync, size_t index, bool full)
{
    struct mail_synced *account = &sync->accounts[index];
    struct cli_watched *watched = &sync->work.accounts[index];
    struct cli_live *live = &sync->work.lives[index];
    const struct tide_mail_look *look = &account->look;
    live->done = account->kept.stored;
    /* An archive on another machine cannot be read: derive the count from what is left. */
    if (account->archive == NULL && sync->cli->shared != NULL && look->archive[0] != '\0' &&
        !look->listing && look->messages_total > look->messages_left)
        live->done = look->messages_total - look->messages_left;
    live->bytes = account->kept.raw_bytes;
    live->tidemark_ms = look->tidemark_ms;
    live->bad = look->bad + look->owed + look->retrying;
    if (!account->seen)
        account->stored_first = live->done;
    account->seen = true;
    if (full) {
        account->stored_looked = live->done;
        watched->jobs_left = look->jobs_left;
        watched->jobs_failed = look->jobs_failed;
        watched->items_bad = look->bad;
    }
    watched->settled = tide_mail_look_settled(look);
    live->total = cli_total_steady(live->total, total_of(account, live->done), live->done,
                                   look->listing ? 0 : TOTAL_SLACK);
    (void)snprintf(live->phase, sizeof live->phase, "%s", phase_of(look));
    /* Everything is stored: what is left is to replace held copies, and that is what moves. */
    if (look->jobs_exact > 0 && look->jobs_exact == look->jobs_left && live->total != CLI_UNKNOWN &&
        live->total >= account->held)
        live->done = live->total - account->held;
}

tide_status mail_sync_look(void *arg, size_t index, const json_t *snapshot, bool full)
{
    struct mail_sync *sync = arg;
    struct mail_synced *account = &sync->accounts[index];
    struct cli *cli = sync->cli;
    (void)snapshot;
    const tide_status rc = tide_mail_look(cli->ledger, sync->work.accounts[index].name, full,
                                          &account->look, &cli->err);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "`tidemark account list` shows the accounts.");
    open_archive(sync, account);
    /* A new archive may not be readable for a moment. */
    if (account->archive != NULL)
        (void)tide_mail_kept(account->archive, &account->kept, NULL);
    struct tide_archive_tally tally;
    if (account->archive != NULL && account->look.jobs_exact > 0 &&
        tide_archive_tally(account->archive, &tally, NULL) == TIDE_OK)
        account->held = tally.copies[TIDE_COPY_HELD];
    fill(sync, index, full);
    return TIDE_OK;
}
