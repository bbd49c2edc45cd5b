/* home.h - a mailbox of this home as a person sees it, for commands: archive, cache and ledger, opened to
 * read; and how commands ask the process that runs the engine for something. */
#ifndef TIDE_READER_COMMANDS_HOME_H
#define TIDE_READER_COMMANDS_HOME_H

#include "cli/cli.h"
#include "mail/view/view.h"
#include "reader/store/store.h"
#include "reader/view/view.h"

struct reader_home {
    struct cli *cli;
    char email[256];
    struct tide_reader_mailbox mailbox;
    struct tide_cache_folder all;
    bool listed; /* the window is */
};
/* Opens what there is of the account; ends with reader_home_close(), also after a failure. */
tide_status reader_home_open(struct cli *cli, const char *email, struct reader_home *home);
void reader_home_close(struct reader_home *home);

enum { READER_VERSION_BYTES = 72 };
/* "17.4.9": the versions of cache and overlay, which `changes` can name the messages of; and of what else
 * a list is made from: the archive, and how far it joins what was listed. */
tide_status reader_home_version(const struct reader_home *home, char version[READER_VERSION_BYTES]);

/* Opens a message: of the archive, or its body in the cache.  *body_out: "archive", "cache" or "none";
 * with "none" the view is empty.  TIDE_NOT_FOUND: it is not known here. */
tide_status reader_home_view(const struct reader_home *home, const char *id, struct tide_view *view,
                             const char **body_out);

/* Prints messages as tide_shown_json() makes them. */
void reader_rows_print(struct cli *cli, const json_t *rows);

/* Asks the engine's process; `request` is an object without "op", and taken.  The answer is owned by
 * the caller. */
tide_status reader_ask(struct cli *cli, const char *what, tide_json *request, json_t **answer_out);

/* ---- the engine's side (op.c) ---- */

#define READER_OP "reader"
tide_control_fn reader_op; /* its argument is the tide_reader */

/* ---- the description of the system, and its commands ---- */

extern const struct tide_system tide_reader_system;
extern const struct cli_command reader_commands[]; /* table.c */
tide_status cli_reader_status(struct cli *cli);
tide_status cli_reader_folders(struct cli *cli);
tide_status cli_reader_list(struct cli *cli);
tide_status cli_reader_days(struct cli *cli);
tide_status cli_reader_changes(struct cli *cli);
tide_status cli_reader_found(struct cli *cli);
tide_status cli_reader_search(struct cli *cli);
tide_status cli_reader_show(struct cli *cli);
tide_status cli_reader_thread(struct cli *cli);
tide_status cli_reader_people(struct cli *cli);
tide_status cli_reader_actions(struct cli *cli);
tide_status cli_reader_fetch(struct cli *cli);
tide_status cli_reader_act(struct cli *cli);
tide_status cli_reader_undo(struct cli *cli);
tide_status cli_reader_drafts(struct cli *cli);
tide_status cli_reader_draft(struct cli *cli);
tide_status cli_reader_continue(struct cli *cli);
tide_status cli_reader_save(struct cli *cli);
tide_status cli_reader_discard(struct cli *cli);
tide_status cli_reader_attach(struct cli *cli);
tide_status cli_reader_detach(struct cli *cli);

#endif
