/* home.h - the drive system for the program: its description, its commands, and what they share. */
#ifndef TIDE_DRIVE_COMMANDS_HOME_H
#define TIDE_DRIVE_COMMANDS_HOME_H

#include "cli/cli.h"
#include "cloud/onedrive/onedrive.h"
#include "drive/drives.h"
#include "net/secrets.h"

enum { DRIVES_MAX = 256 };

/* ---- the drives that a command is about ---- */

struct drive_list {
    tide_mem *mem;
    struct tide_drive_row *rows; /* by name */
    size_t count, capacity;
    bool full;
};
/* The drives of these names, with the shared folders in them; none: all.  From the ledger, which is
 * opened for reading and stays open.  Call drive_list_done() also after a failure.  TIDE_NOT_FOUND: a
 * name, or there is no drive at all. */
tide_status drive_list_named(struct cli *cli, const char *const *wanted, size_t count,
                             struct drive_list *list_out);
/* The same, and that there is none is no failure if no name is given. */
tide_status drive_list_any(struct cli *cli, const char *const *wanted, size_t count,
                           struct drive_list *list_out);
/* Leaves those of this account.  TIDE_NOT_FOUND: it has none. */
tide_status drive_list_of_account(struct cli *cli, const char *account, struct drive_list *list);
/* The shared folders that were attached since, at the end; and how it is with all of them now. */
tide_status drive_list_again(struct cli *cli, struct drive_list *list);
/* Leaves those that are synced now: not every shared folder is.  TIDE_NOT_FOUND: none is. */
tide_status drive_list_synced(struct cli *cli, struct drive_list *list);
/* The same for one drive; without a name there must be only one that is no shared folder. */
tide_status drive_one(struct cli *cli, const char *name, struct tide_drive_row *row_out);
void drive_list_done(struct drive_list *list); /* a zeroed one is fine */
/* The connection with the rows of a drive; the ledger is open for reading. */
tide_rows drive_rows(struct cli *cli, uint32_t number);

/* "parent" and "shared", which are null for a drive that is no shared folder. */
void drive_shared_json(const struct tide_drive_row *row, tide_json *json);

/* Opens its folder if it has its marker (S14).  TIDE_INVALID: it is not mounted, or is another one. */
tide_status drive_folder_open(const struct tide_drive_row *row, int *root_out, tide_error *err);
/* Removes the marker; false: it is not there, or another drive's. */
bool drive_marker_remove(const struct tide_drive_row *row);

/* The trash of this user's desktop; false: there is none. */
bool drive_desktop_trash(char *path_out, size_t path_bytes);

/* ---- OneDrive, for a command that asks it itself ---- */

struct drive_graph {
    tide_secrets *secrets;
    tide_tokens *tokens;
    tide_onedrive *onedrive;
};
tide_status drive_graph_open(struct cli *cli, const char *account, struct drive_graph *graph_out);
void drive_graph_close(struct drive_graph *graph); /* a zeroed one is fine */

/* The options of the system for `drive watch`: the drives to watch; without any, all. */
struct drive_watch_options {
    const char *const *names;
    size_t names_count;
};

/* Shows what the process that has the home does for these drives, until Ctrl-C, or until that process ends:
 * *ended_out, as if there is none (follow.c). */
tide_status drive_follow(struct cli *cli, struct drive_list *drives, bool *ended_out);

/* ---- the description of the system, and its commands ---- */

extern const struct tide_system tide_drive_system;
extern const struct cli_command drive_commands[]; /* table.c */
tide_status cli_drive_add(struct cli *cli);
tide_status cli_drive_list(struct cli *cli);
tide_status cli_drive_remove(struct cli *cli);
tide_status cli_drive_mode(struct cli *cli);
tide_status cli_drive_accept(struct cli *cli);
tide_status cli_drive_ignore(struct cli *cli);
tide_status cli_drive_status(struct cli *cli);
tide_status cli_drive_sync(struct cli *cli);
tide_status cli_drive_sync_check(struct cli *cli); /* struct tide_action.check */
tide_status cli_drive_plan(struct cli *cli);
tide_status cli_drive_conflicts(struct cli *cli);
tide_status cli_drive_deletions(struct cli *cli);
tide_status cli_drive_verify(struct cli *cli);
tide_status cli_drive_watch(struct cli *cli);

#endif
