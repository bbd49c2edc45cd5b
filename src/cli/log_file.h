/* log_file.h - the log of a home: tidemark.log in the state directory (E9.4).
 *
 * Every process that runs an engine appends to it, whichever command started it: one JSON object
 * per line, written by a single write().  A file that would grow beyond log.file_bytes is renamed
 * to tidemark.log.1, older ones move up, the oldest of log.files is removed. */
#ifndef TIDE_CLI_LOG_FILE_H
#define TIDE_CLI_LOG_FILE_H

#include "base/log.h"
#include "cli/cli.h"

#define CLI_LOG_NAME "tidemark.log"

/* The log of this home, opened when the first line is written; the settings are loaded.  NULL: no
 * memory; the command continues without a log. */
tide_log *cli_log_file(struct cli *cli);
void cli_log_file_close(struct cli *cli);
/* The path of the log file that was renamed `number` times; 0: the current one. */
void cli_log_path(const struct cli *cli, unsigned number, char path[CLI_PATH_BYTES + 32]);

#endif
