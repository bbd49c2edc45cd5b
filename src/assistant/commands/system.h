/* system.h - the mail assistant for the program: its description (system/system.h). */
#ifndef TIDE_ASSISTANT_COMMANDS_SYSTEM_H
#define TIDE_ASSISTANT_COMMANDS_SYSTEM_H

#include "cli/cli.h"

extern const struct tide_system tide_assistant_system;

#endif
