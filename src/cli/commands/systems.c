/* systems.c - the systems of this program.  The only file that names them all. */
#include "cli/cli.h"

#include "assistant/commands/system.h"
#include "console/commands/home.h"
#include "drive/commands/home.h"
#include "mail/commands/home.h"
#include "reader/commands/home.h"

const struct tide_system *const cli_systems[] = {
    &tide_mail_system,      &tide_console_system, &tide_drive_system,
    &tide_assistant_system, &tide_reader_system,  NULL,
};
