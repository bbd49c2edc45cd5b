/* restoring.h - the mark of a restore that is under way (cli/commands/restore.c). */
#ifndef TIDE_CLI_RESTORING_H
#define TIDE_CLI_RESTORING_H

/* In the state directory.  While it is there, only `tidemark restore` may touch the home. */
#define CLI_RESTORE_PENDING "restore.pending"

#endif
