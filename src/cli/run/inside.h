/* inside.h - what the files of the runner share. */
#ifndef TIDE_CLI_RUN_INSIDE_H
#define TIDE_CLI_RUN_INSIDE_H

#include "cli/run/work.h"

enum { CLI_TICK_MS = 200 };

/* ---- watch.c ---- */

/* Samples and shows when due; `last`: does both now. */
tide_status cli_watch_tick(struct cli_work *work, bool last);
/* The next tick does a full count, however recent the last one was. */
void cli_watch_look_soon(struct cli_work *work);
/* Forgets the engine that was watched. */
void cli_watch_restart(struct cli_work *work);
/* Whether every account is finished or stuck; one; whether all are settled. */
bool cli_watch_all_over(const struct cli_work *work);
bool cli_watch_is_over(const struct cli_work *work, size_t account);
bool cli_watch_settled(const struct cli_work *work);

/* ---- elsewhere.c: a shared ledger ---- */

/* Call it before this process leases accounts: any leased account is leased by another process. */
tide_status cli_elsewhere_find(struct cli_work *work);
void cli_elsewhere_tell(const struct cli_work *work);
/* Fails if work enqueued for elsewhere waits too long for a process to take it. */
tide_status cli_elsewhere_check(struct cli_work *work);

/* ---- hand_over.c ---- */

/* Enqueues the requests of an account in our engine, or with NULL in another process's.
 * *runs_out: that one answered. */
tide_status cli_begin_requests(struct cli_work *work, size_t account, tide_engine *engine,
                               bool *runs_out);

/* Sends the work to the engine of this directory and watches it.  TIDE_NOT_FOUND with `gone`: that
 * engine ended first. */
tide_status cli_hand_over(struct cli_work *work);

#endif
