/* config.h - what the commands of settings share: config.c and config_edit.c. */
#ifndef TIDE_CLI_COMMANDS_CONFIG_H
#define TIDE_CLI_COMMANDS_CONFIG_H

#include "cli/cli.h"

/* Tells a running engine that the file changed.  Only a hint: it notices by itself (E11.1).
 * *runs_out: there is one; true: it has read the file. */
bool config_reload(struct cli *cli, bool *runs_out);
/* Says so where no account has that name: what is set for it has no effect yet. */
void config_tell_unknown(struct cli *cli, const char *account);

#endif
