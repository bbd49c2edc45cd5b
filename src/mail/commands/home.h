/* home.h - the mail system of one home directory, for commands. */
#ifndef TIDE_CLI_MAIL_HOME_H
#define TIDE_CLI_MAIL_HOME_H

#include "cli/run/ask.h"
#include "cli/run/engine.h"
#include "cli/run/names.h"
#include "mail/mail.h"

struct mail_home {
    bool archiver;       /* set before opening: this command removes or restores mail */
    bool no_sync;        /* set before opening: pending jobs of a sync do not run */
    tide_engine *engine; /* mail_home_close() closes these two: NULL if the command did */
    tide_secrets *secrets;
    tide_mail *mail;
    char archive_dir[CLI_PATH_BYTES];
    char secrets_dir[CLI_PATH_BYTES];
    struct cli_engine opened;
    uint64_t signed_out_ms; /* since when another process's account is; 0: it is not */
};

/* Opens the engine of this directory with the mail system on it; not started.
 * Another engine in the directory: an error that names it. */
tide_status mail_home_open(struct cli *cli, struct mail_home *home);
/* Fills only the paths: for commands that only read the archive. */
tide_status mail_home_places(struct cli *cli, struct mail_home *home);
/* TIDE_DISK_FULL when less than the setting `disk.free_min` is left for archives. */
tide_status mail_home_room(struct cli *cli, struct mail_home *home);
/* Opens the engine of this directory for one account and starts it, or finds the process that has
 * it.  *ask_out: where to ask for jobs. */
tide_status mail_home_ask(struct cli *cli, struct mail_home *home, const char *email,
                          struct cli_ask *ask_out);
/* Whether jobs of the account can run.  TIDE_AUTH: it must sign in again, cli->err says why;
 * TIDE_BUSY: another process has it paused or halted. */
tide_status mail_home_can_run(struct cli *cli, struct mail_home *home, const char *email);
/* TIDE_AUTH: cli->err says why; adds the command to sign in for this purpose. */
tide_status mail_home_sign_in(struct cli *cli, const char *email, const char *purpose);
/* Waits a moment.  As cli_ask_look() and mail_home_can_run(); TIDE_BUSY: also if our engine has
 * nothing that can run. */
tide_status mail_home_wait(struct cli *cli, struct mail_home *home, struct cli_ask *ask);
/* `home` may be zeroed. */
tide_status mail_home_close(struct cli *cli, struct mail_home *home);
/* Visits the accounts that have an archive here: its directories are named after them, so reading mail
 * needs no ledger.  `visit` returns false to stop. */
void mail_home_archives(const char *archive_dir, bool (*visit)(const char *email, void *arg),
                        void *arg);
/* How a mailbox is spelled here, as an account or as an archive alone: case does not tell mailboxes apart,
 * and as two it would be stored twice.  "": it is not here. */
void mail_home_spelling(struct cli *cli, const char *email, char spelling_out[256]);
/* The account of the command: the named one, or the only one. */
tide_status mail_home_account(struct cli *cli, struct mail_home *home, const char *named,
                              char email_out[256]);
/* The same for a command that runs later: fails if it is not clear which one that is, and not if there
 * is none yet. */
tide_status mail_home_account_later(struct cli *cli, const char *named);
/* Opens its archive read-only; safe while other processes run.  The caller closes it. */
tide_status mail_home_archive(struct cli *cli, struct mail_home *home, const char *named,
                              char email_out[256], tide_archive **archive_out);
/* The same for a command that only looks, and is asked often: a process that stays keeps it open.  The
 * caller gives it back. */
tide_status mail_home_take(struct cli *cli, struct mail_home *home, const char *named,
                           char email_out[256], tide_archive **archive_out);
void mail_home_give(struct cli *cli, tide_archive *archive); /* NULL is fine */
/* The accounts that have an archive here, sorted; or the named one. */
struct mail_names {
    tide_mem *mem;
    char (*list)[256];
    size_t count, capacity;
};
/* The caller ends it, also after a failure.  TIDE_NOT_FOUND: there is none. */
tide_status mail_names_find(struct cli *cli, const char *named, struct mail_names *names);
void mail_names_done(struct mail_names *names);
/* Fewer characters of an id name nothing. */
enum { MAIL_SHORT_ID_MIN = 4 };
/* A message that a user named. */
struct mail_found {
    char email[256];
    tide_archive *archive; /* the caller gives it back, also after a failure; may be NULL */
    struct tide_stored stored;
};
/* Finds it in the archive of the named account or in all: by its id, a former id, or the beginning of
 * its id if no other message has it.  `thread`: also by the id of a thread, whose first message may
 * be gone; gives its oldest. */
tide_status mail_home_find(struct cli *cli, const char *named, const char *id, bool thread,
                           struct mail_found *found);
/* Appends the words of the command from the `first` argument on, as one query, with saved searches in
 * place of their names (saved.c). */
tide_status mail_query_words(struct cli *cli, unsigned first, size_t bytes_max, tide_buf *query);
/* After an error: says where the labels are listed, if the query names one that no archive has. */
tide_status mail_label_hint(struct cli *cli, tide_status rc);
/* Whether the words of the command name a saved search, or are too many to tell. */
bool mail_query_names_saved(struct cli *cli);
/* The names of the saved searches, for completion. */
void mail_saved_names(const struct tide_system_home *home, void (*visit)(tide_text name, void *arg),
                      void *arg);
/* struct tide_system.settings_files: the saved searches. */
tide_status mail_settings_files(const char *config_path, tide_mem *mem,
                                void (*visit)(const char *name, void *arg), void *arg,
                                tide_error *err);
/* Names the unreadable shards, on standard error and in the JSON; the command
 * then ends with CLI_EXIT_BAD_ITEMS. */
tide_status mail_home_broken(struct cli *cli, tide_archive *archive);
/* The same for a page of a list that goes on: only those that the page met.  Opening the others would
 * take longer than the page. */
tide_status mail_home_broken_met(struct cli *cli, tide_archive *archive);
/* For a command that reads the archives of all accounts, of which there are so many, and could not open
 * that of `email`: names it in the same way, forgets the failure and returns true, so that one directory
 * does not hide all others.  False: the command fails, as with a single archive. */
bool mail_home_pass(struct cli *cli, const char *email, size_t archives, tide_status rc);
/* What to do about a shard that could not be opened, by the status of that: heal moves only damaged
 * files, not those of another account or of a newer version. */
const char *mail_home_broken_remedy(tide_status why);

/* ---- the description of the system, and its commands ---- */

extern const struct tide_system tide_mail_system;
extern const struct cli_command mail_commands[]; /* table.c */
extern const struct cli_details mail_details[];  /* details.c */
tide_status cli_mail_sync(struct cli *cli);
/* struct tide_action.check */
tide_status cli_mail_sync_check(struct cli *cli);
tide_status cli_mail_verify_check(struct cli *cli);
tide_status cli_mail_archive_check(struct cli *cli);
tide_status cli_mail_status(struct cli *cli);
tide_status cli_mail_bad(struct cli *cli);
tide_status cli_mail_search(struct cli *cli);
tide_status cli_mail_show(struct cli *cli);
tide_status cli_mail_browse(struct cli *cli); /* mail/browse */
tide_status cli_mail_labels(struct cli *cli);
tide_status cli_mail_saved(struct cli *cli);
tide_status cli_mail_stats(struct cli *cli);
tide_status cli_mail_verify(struct cli *cli);
tide_status cli_mail_heal(struct cli *cli);
tide_status cli_mail_lost(struct cli *cli);
tide_status cli_mail_export(struct cli *cli);
tide_status cli_mail_import(struct cli *cli);
tide_status cli_mail_restore(struct cli *cli);
tide_status cli_mail_archive(struct cli *cli);
tide_status cli_mail_manifest(struct cli *cli);
extern const struct cli_example mail_examples[]; /* table.c */

#endif
