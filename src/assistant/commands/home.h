/* home.h - the assistant for the program: its commands, and what they share. */
#ifndef TIDE_ASSISTANT_COMMANDS_HOME_H
#define TIDE_ASSISTANT_COMMANDS_HOME_H

#include "assistant/config/config.h"
#include "assistant/store/store.h"
#include "cli/cli.h"
#include "ledger/rows.h"

/* ---- the configuration: assistant.yaml beside config.yaml ---- */

tide_status assistant_config_path(struct cli *cli, char path_out[CLI_PATH_BYTES]);
/* The caller frees it.  TIDE_NOT_FOUND: there is none yet; TIDE_INVALID: file, line and reason. */
tide_status assistant_config(struct cli *cli, struct tide_assistant_config **config_out);

/* ---- users ---- */

/* The user of this address; NULL: the only one.  The ledger is open for reading. */
tide_status assistant_user(struct cli *cli, const char *email,
                           struct tide_assistant_user *user_out);

/* ---- the commands ---- */

extern const struct cli_command assistant_commands[]; /* table.c */
tide_status cli_assistant_status(struct cli *cli);
tide_status cli_assistant_show(struct cli *cli);
tide_status cli_assistant_explain(struct cli *cli);
tide_status cli_assistant_users(struct cli *cli);
tide_status cli_assistant_events(struct cli *cli);
tide_status cli_assistant_calls(struct cli *cli);
tide_status cli_assistant_runs(struct cli *cli);
tide_status cli_assistant_rules(struct cli *cli);
tide_status cli_assistant_costs(struct cli *cli);

#endif
