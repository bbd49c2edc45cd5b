/* home.h - the mail system of one home directory, for commands. */
#ifndef TIDE_CLI_MAIL_HOME_H
#define TIDE_CLI_MAIL_HOME_H

#include "cli/archive_here.h"
#include "mail/mail.h"

struct mail_home {
    tide_engine *engine;
    tide_secrets *secrets;
    tide_mail *mail;
    char archive_dir[CLI_PATH_BYTES];
    char secrets_dir[CLI_PATH_BYTES];
    struct archive_here here; /* on a shared ledger: what this process may take */
    bool archiver;            /* set before opening: this command removes mail */
    bool no_sync;             /* likewise: work of a sync that waits stays where it is */
};

/* Opens the engine of this directory with the mail system on it; not started.
 * Another engine in the directory: an error that names it. */
tide_status mail_home_open(struct cli *cli, struct mail_home *home);
/* Only the places: for commands that read the archive beside anything. */
tide_status mail_home_places(struct cli *cli, struct mail_home *home);
/* TIDE_DISK_FULL when less than the setting `disk.free_min` is left for archives. */
tide_status mail_home_room(struct cli *cli, struct mail_home *home);
/* A zeroed one is fine. */
tide_status mail_home_close(struct cli *cli, struct mail_home *home);
/* The one account that is meant: named, or the only one there is. */
tide_status mail_home_account(struct cli *cli, struct mail_home *home, const char *named,
                              char email_out[256]);
/* Its archive, for reading beside anything.  The caller closes it. */
tide_status mail_home_archive(struct cli *cli, struct mail_home *home, const char *named,
                              char email_out[256], tide_archive **archive_out);
/* Names the shards that had to be passed over, on standard error and in the answer; the command
 * then ends with CLI_EXIT_BAD_ITEMS. */
tide_status mail_home_broken(struct cli *cli, tide_archive *archive);

#endif
