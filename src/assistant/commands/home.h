/* home.h - the assistant for the program: its commands, and what they share. */
#ifndef TIDE_ASSISTANT_COMMANDS_HOME_H
#define TIDE_ASSISTANT_COMMANDS_HOME_H

#include "assistant/config/config.h"
#include "assistant/store/store.h"
#include "cli/cli.h"
#include "ledger/rows.h"

/* ---- the configuration: assistant.yaml beside config.yaml ---- */

tide_status assistant_path_beside(const char *config_path, char path_out[CLI_PATH_BYTES],
                                  tide_error *err);
tide_status assistant_config_path(struct cli *cli, char path_out[CLI_PATH_BYTES]);
/* The caller frees it.  TIDE_NOT_FOUND: there is none yet; TIDE_INVALID: file, line and reason. */
tide_status assistant_config(struct cli *cli, struct tide_assistant_config **config_out);
/* struct tide_system.settings_files: assistant.yaml, and the files that it names. */
tide_status assistant_settings_files(const char *config_path, tide_mem *mem,
                                     void (*visit)(const char *name, void *arg), void *arg,
                                     tide_error *err);

/* ---- the chat account ---- */

struct tide_assistant_account;
/* That of this name; "": the only one.  The ledger is open for reading. */
tide_status assistant_chat_named(struct cli *cli, const char *name,
                                 struct tide_assistant_account *account_out);
/* That of the configuration. */
tide_status assistant_chat(struct cli *cli, struct tide_assistant_account *account_out);

/* Whether an alert says that the account has used up the budget of this day.  One of an earlier day is
 * there until the model is asked again. */
bool assistant_is_over(tide_ledger *ledger, uint32_t account, uint64_t now_unix_ms);

/* ---- users ---- */

/* "ready", "onboarding", "ended" */
const char *assistant_user_state(const struct tide_assistant_user *user);

/* TIDE_NOT_FOUND: it was never used here, and has no tables. */
tide_status assistant_used(struct cli *cli);

/* The user of this address; NULL: the only one.  The ledger is open for reading. */
tide_status assistant_user(struct cli *cli, const char *email,
                           struct tide_assistant_user *user_out);

/* TIDE_NOT_FOUND, with what to do. */
tide_status assistant_no_thread(struct cli *cli, const char *email, const char *thread_id);
/* struct tide_system.status */
tide_status assistant_standing(const struct tide_system_home *home, tide_ledger *ledger,
                               const struct tide_account_row *account,
                               struct tide_account_status *out, tide_error *err);

/* ---- the commands ---- */

extern const struct cli_command assistant_commands[]; /* table.c */
tide_status cli_assistant_onboard(struct cli *cli);
tide_status cli_assistant_offboard(struct cli *cli);
tide_status cli_assistant_sync(struct cli *cli);
tide_status cli_assistant_sync_check(struct cli *cli); /* struct tide_action.check */
tide_status cli_assistant_classify(struct cli *cli);
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
