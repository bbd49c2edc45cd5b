/* sync.h - what the files of `mail sync` and `mail heal` share. */
#ifndef TIDE_MAIL_COMMANDS_SYNC_H
#define TIDE_MAIL_COMMANDS_SYNC_H

#include "cli/run/outcome.h"
#include "mail/commands/home.h"
#include "mail/status.h"

struct mail_synced {
    struct tide_mail_look look;
    tide_archive *archive; /* read-only; NULL until there is one */
    struct tide_mail_kept kept;
    bool seen;                    /* once; then: */
    uint64_t stored_first;        /* when the command began */
    uint64_t stored_looked;       /* at the last full count */
    uint64_t held;                /* copies that are not exact yet, while they are replaced */
    bool caught_up;               /* begun a second time, for mail that arrived since */
    struct tide_mail_aside aside; /* damaged files that a heal run found */
};

struct mail_sync {
    struct cli *cli;
    struct cli_work work;
    struct tide_mail_run wanted;
    struct tide_mail_budget budget; /* --max; wanted.budget points here, or is NULL */
    struct mail_home places;
    struct mail_synced *accounts; /* like work.accounts */
    uint64_t began_ms;            /* unix time */
};

/* struct cli_work.look; the argument is the struct mail_sync (sync_look.c). */
tide_status mail_sync_look(void *arg, size_t index, const json_t *snapshot, bool full);
/* The same for judge, line, details and words (sync_report.c). */
void mail_sync_judge(void *arg, size_t index, struct cli_ended *ended);
void mail_sync_line(void *arg, size_t index);
void mail_sync_details(void *arg, size_t index, tide_json *json);
extern const struct cli_words mail_sync_words;

#endif
