/* watch.h - looks at a sync at work, ours or another process's, and shows it.
 *
 * All it knows comes from three places that can be read beside anything: the ledger,
 * the archives, and a snapshot of the engine (E9.1), taken directly when it is ours and
 * over the control socket when it is not.  On a shared ledger the engine may be anywhere:
 * then the ledger alone says what is left, and who does it.
 *
 * On a terminal a block is redrawn in place on standard error, each time with one write,
 * and the cursor is hidden only inside of it: however this process ends, the terminal is
 * as it was.  Elsewhere there is a line every ten seconds; with --json an event a second.
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
    tide_archive *archive; /* to be read; NULL until there is one */
    struct tide_mail_kept kept;
    uint64_t stored_first;  /* when the watch began */
    uint64_t stored_looked; /* at the last full look */
    struct mail_meter meter;
    /* From the snapshot. */
    uint64_t jobs;                    /* in the engine's window */
    uint64_t active;                  /* of them, those that neither are put off nor blocked */
    bool signed_out;                  /* it waits for a sign-in */
    bool stopped;                     /* paused or halted by a person, or by itself */
    char failure[300];                /* what went wrong last, while it lasts; "" */
    uint64_t next_try_ms;             /* unix time; 0: it does not wait */
    uint64_t failed, bad;             /* since that engine started; on a shared ledger: ever */
    uint64_t failed_first, bad_first; /* when the watch began */
    char holder[65];                  /* on a shared ledger: who has it, ourselves too; "" */
};

struct mail_watch {
    struct cli *cli;
    struct mail_home *home; /* without an engine: another process has it */
    struct mail_watched *accounts;
    struct mail_live *lives;
    size_t count;
    bool terminal, color;
    bool stopping; /* Ctrl-C came */
    bool gone;     /* the engine that was watched has ended */
    bool looked;
    uint64_t sampled_ms, looked_ms, shown_ms;
    uint64_t pid;     /* of the engine that is watched; 0: ours */
    tide_buf drawn;   /* the block on the screen */
    unsigned columns; /* it was drawn for */
};

tide_status mail_watch_open(struct cli *cli, struct mail_home *home, const struct mail_names *names,
                            struct mail_watch *watch);
/* Looks and shows as often as is due; `last`: both, now. */
tide_status mail_watch_tick(struct mail_watch *watch, bool last);
/* Whether nothing is left to be done that is not put off (owed messages are): of one, of all. */
bool mail_watched_settled(const struct mail_watched *watched);
bool mail_watch_settled(const struct mail_watch *watch);
/* Whether nothing more will happen to it without a person: halted, paused, signed out. */
bool mail_watched_stuck(const struct mail_watched *watched);
/* The next tick walks over what is left, however short ago the last one did. */
void mail_watch_look_soon(struct mail_watch *watch);
void mail_watch_close(struct mail_watch *watch); /* a zeroed one is fine */

/* The snapshot of the engine at work; NULL when none is.  Yours. */
json_t *mail_snapshot(struct cli *cli, struct mail_home *home);

#endif
