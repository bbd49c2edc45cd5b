/* watch.h - watches a running sync, ours or another process's, and shows its progress.
 *
 * Its data comes from three sources that can be read while other processes run: the ledger,
 * the archives, and a snapshot of the engine (E9.1), taken directly if it is ours and
 * over the control socket if it is not.  On a shared ledger the engine may be on any machine:
 * then only the ledger says what is left, and which process does it.
 *
 * On a terminal a block is redrawn in place on standard error, each time with one write,
 * and the cursor is hidden only within that write: however this process ends, the terminal is
 * left as it was.  Elsewhere it prints a line every ten seconds; with --json an event per second.
 */
#ifndef TIDE_CLI_MAIL_WATCH_H
#define TIDE_CLI_MAIL_WATCH_H

#include "cli/account_seen.h"
#include "mail/commands/home.h"
#include "mail/commands/live.h"
#include "mail/commands/names.h"
#include "mail/status.h"

enum { MAIL_TICK_MS = 200 };

struct mail_watched {
    struct tide_mail_look look;
    tide_archive *archive; /* read-only; NULL until there is one */
    struct tide_mail_kept kept;
    uint64_t stored_first;  /* when the watch began */
    uint64_t stored_looked; /* at the last full count */
    struct mail_meter meter;
    /* From the snapshot. */
    uint64_t jobs;                    /* in the engine's window */
    uint64_t active;                  /* of them, those that are neither delayed nor blocked */
    bool signed_out;                  /* it waits for a sign-in */
    bool stopped;                     /* paused or halted, by a user or by the engine */
    char failure[300];                /* the last failure, while it lasts; "" */
    uint64_t next_try_ms;             /* unix time; 0: it is not waiting */
    uint64_t failed, bad;             /* since that engine started; on a shared ledger: ever */
    uint64_t failed_first, bad_first; /* when the watch began */
    char holder[65]; /* on a shared ledger: the member that has leased it, possibly this one; "" */
};

struct mail_watch {
    struct cli *cli;
    struct mail_home *home; /* without an engine: another process runs it */
    struct mail_watched *accounts;
    struct mail_live *lives;
    size_t count;
    bool terminal, color;
    bool stopping; /* Ctrl-C came */
    bool gone;     /* the engine that was watched has ended */
    bool looked;
    uint64_t sampled_ms, looked_ms, shown_ms;
    uint64_t pid;     /* of the engine that is watched; 0: ours */
    tide_buf drawn;   /* the block on the terminal */
    unsigned columns; /* it was drawn for */
};

tide_status mail_watch_open(struct cli *cli, struct mail_home *home, const struct mail_names *names,
                            struct mail_watch *watch);
/* Samples and shows when due; `last`: does both now. */
tide_status mail_watch_tick(struct mail_watch *watch, bool last);
/* Whether no work is left except delayed work (owed messages): of one account, of all. */
bool mail_watched_settled(const struct mail_watched *watched);
bool mail_watch_settled(const struct mail_watch *watch);
/* Whether it cannot continue without the user: halted, paused, signed out. */
bool mail_watched_stuck(const struct mail_watched *watched);
/* The next tick does a full count, however recent the last one was. */
void mail_watch_look_soon(struct mail_watch *watch);
void mail_watch_close(struct mail_watch *watch); /* `watch` may be zeroed */

/* The snapshot of the running engine; NULL if none runs.  Owned by the caller. */
json_t *mail_snapshot(struct cli *cli, struct mail_home *home);

#endif
