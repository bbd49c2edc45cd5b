/* settings.h - copies the settings of a home: config.yaml, and the files beside it that systems work
 * by (M17).
 *
 * A system says which those are.  In a copy config.yaml is at the top and the others are below config/,
 * where their names cannot meet others.  A restore collects all of them in one folder first ("staged"),
 * which is flat: in the name of a file there '/' is SETTINGS_SLASH, which no name has.
 */
#ifndef TIDE_CLI_BACKUP_SETTINGS_H
#define TIDE_CLI_BACKUP_SETTINGS_H

#include "cli/backup/systems.h"

#define SETTINGS_SLASH '\x1f'

/* To `dir`, with what is counted. */
tide_status backup_settings(struct cli *cli, const char *dir, struct backup_counts *counts);
/* From `dir` to `staged`, a folder.  What is in this home already stays out of it, unless `replace`. */
tide_status backup_settings_stage(struct cli *cli, const char *dir, const char *staged,
                                  bool replace, struct backup_counts *counts);
/* Where a file of this home is; `name` is relative to the folder of config.yaml. */
tide_status backup_settings_place(struct cli *cli, const char *name, char path[CLI_PATH_BYTES]);
/* Makes the folder of a file. */
tide_status backup_settings_folder(struct cli *cli, const char *path);

#endif
