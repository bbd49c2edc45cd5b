/* systems.h - copies what the systems store in archive/ (M17).
 *
 * A system says which entries it owns; an entry that no system owns is reported to the user and
 * not copied. */
#ifndef TIDE_CLI_BACKUP_SYSTEMS_H
#define TIDE_CLI_BACKUP_SYSTEMS_H

#include "cli/cli.h"

struct backup_counts {
    unsigned archives;                /* entries that were copied */
    uint64_t copied, same;            /* files */
    uint64_t bytes;                   /* copied */
    uint64_t units[TIDE_SYSTEMS_MAX]; /* of cli->systems[i] */
    tide_json unknown; /* names of entries that no system owns; initialized by the caller */
};

/* Copies every entry of `from_dir` that a system owns to `to_dir`; with `check` each copy is read
 * back.  TIDE_NOT_FOUND: there is no `from_dir`.  TIDE_CORRUPT: a copy is damaged; the error
 * names it. */
tide_status backup_archives(struct cli *cli, const char *from_dir, const char *to_dir, bool check,
                            struct backup_counts *counts);
/* "3 messages and 5 rows of search analytics"; sets the counts in the JSON answer too. */
void backup_units(struct cli *cli, const struct backup_counts *counts, char *text, size_t bytes);
/* "DIR/NAME" */
tide_status backup_join(struct cli *cli, char path[CLI_PATH_BYTES], const char *dir,
                        const char *name);

#endif
