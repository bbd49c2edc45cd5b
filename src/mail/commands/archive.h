/* archive.h - declarations shared by the files of `tidemark mail archive`.
 *
 *   archive.c       the command: what is asked for, the guard, the run
 *   archive_jobs.c  its jobs, in our engine or in another process's
 *   archive_show.c  what it prints */
#ifndef TIDE_CLI_MAIL_ARCHIVE_H
#define TIDE_CLI_MAIL_ARCHIVE_H

#include "cli/run/work.h"
#include "mail/commands/home.h"
#include "mail/remove/remove.h"
#include "tidemark_inside.h"

struct archiving {
    struct cli *cli;
    struct mail_home home;
    struct cli_ask ask_of; /* where jobs are asked for */
    bool handed_over;
    uint32_t account;
    char email[256];
    char query[TIDE_ARCHIVING_QUERY_BYTES + 1];
    struct tide_archiving ask;
    struct tide_manifest manifest;
    struct cli_shown shown;
    bool dry;
    bool sync;
};

/* ---- archive_jobs.c ---- */

/* The ledger, for reading. */
tide_rows archiving_rows(const struct archiving *archiving);
/* Our engine, or that of the process that has the directory. */
tide_status archiving_open(struct archiving *archiving);
/* An incremental sync, so that the archive knows what Gmail has; nothing with --no-sync. */
tide_status archiving_sync(struct archiving *archiving);
/* Its result, owned by the caller. */
tide_status archiving_choose(struct archiving *archiving, json_t **result_out);
/* The next batch of the manifest. */
tide_status archiving_batch(struct archiving *archiving);
tide_status archiving_needs_scope(struct archiving *archiving);

/* ---- archive_show.c ---- */

const char *archiving_words(tide_removal_mode mode);         /* "moved to the trash" */
void archiving_show(struct archiving *archiving, bool last); /* progress, when due; `last`: now */
tide_status archiving_dry(struct archiving *archiving, const json_t *result);
tide_status archiving_report(struct archiving *archiving);
/* The error of a stopped run says how far it got, and how to resume. */
tide_status archiving_stopped(struct archiving *archiving, tide_status rc);

#endif
