/* status.h - one look at all accounts, for `tidemark status` and its --watch. */
#ifndef TIDE_CLI_STATUS_STATUS_H
#define TIDE_CLI_STATUS_STATUS_H

#include "cli/cli.h"
#include "cli/run/live.h"

/* How fast accounts come on, from earlier looks. */
struct status_meters {
    tide_mem *mem;
    struct status_meter {
        uint32_t account;
        struct cli_meter meter;
    } * list;
    size_t count, capacity;
};
void status_meters_done(struct status_meters *meters); /* a zeroed one is fine */

/* Fills cli->out and cli->json, which are empty.  `meters` NULL: this is the only look. */
tide_status status_look(struct cli *cli, struct status_meters *meters);
/* ---- alone.c ---- */

/* Archives here of accounts that are not among `accounts` (NULL: none are added); needs no ledger. */
void status_alone(struct cli *cli, const char *archive_dir, const json_t *accounts,
                  tide_json *list_out);
void status_alone_print(struct cli *cli, const json_t *list);

/* ---- fields.c: JSON for displays that have more room than a line ---- */

/* All jobs of the ledger. */
struct status_totals {
    uint64_t running, waiting, blocked, delayed, failed;
};
void status_totals_add(struct status_totals *totals, const struct tide_job_count *count);
void status_totals_json(const struct status_totals *totals, tide_json *json); /* "jobs" */
void status_systems(const struct cli *cli, tide_json *json);                  /* "systems" */
/* From the engine's snapshot, or of an account in it; NULL: no engine runs, and the field is null. */
void status_lanes(const json_t *snapshot, tide_json *json); /* "lanes" */
void status_pace(const json_t *account, tide_json *json);   /* "pace" */

/* Looks again every second until Ctrl-C (watch.c). */
tide_status status_watch(struct cli *cli);

#endif
