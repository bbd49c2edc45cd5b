/* restoring.h - the marker file of an unfinished restore (cli/commands/restore.c). */
#ifndef TIDE_CLI_RESTORING_H
#define TIDE_CLI_RESTORING_H

/* In the state directory.  While it exists, only `tidemark restore` may use the home. */
#define CLI_RESTORE_PENDING "restore.pending"

#endif
