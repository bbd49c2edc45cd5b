/* change.h - changes the list of drives, their rules or what waits for a user: on an engine of our
 * own that is not started, or by a job of the engine that has the directory (E12.2).
 *
 * A change is an object {"op": ..., "drive": N, ...}; each is one transaction:
 *
 *   add               the fields of a drive (drives.h)
 *   remove
 *   mode              "mode"
 *   ignore            "add", "remove": lists of patterns
 *   deletions_accept  "fingerprint", as text
 *   deletions_restore "fingerprint", as text
 *   conflict_end      "id"
 *   accept            "item" */
#ifndef TIDE_DRIVE_COMMANDS_CHANGE_H
#define TIDE_DRIVE_COMMANDS_CHANGE_H

#include "cli/cli.h"
#include "drive/drives.h"

#define DRIVE_CHANGE_KIND "drive.change"

/* Begins a change. */
void drive_change_begin(tide_json *change, const char *op, uint32_t drive);
/* Adds the fields of a drive to it. */
void drive_change_row(tide_json *change, const struct tide_drive_row *row);
/* Makes the change here, or has the other process make it and waits for that; takes `change`. */
tide_status drive_change(struct cli *cli, tide_json *change);

/* What the job works with; borrowed until the engine is closed. */
struct drive_changes {
    tide_engine *engine;
    tide_world *world;
    void (*changed)(void *arg); /* after a change; any thread */
    /* After a drive was removed; returns when none of its jobs runs. */
    tide_status (*removed)(void *arg, tide_job *job, uint32_t drive, tide_error *err);
    void *arg;
};
/* Defines the kind on an engine that is not started yet. */
tide_status drive_change_define(const struct drive_changes *changes, tide_error *err);

#endif
