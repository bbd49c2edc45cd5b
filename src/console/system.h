/* system.h - the Search Console backfill as a system of the engine (system/system.h). */
#ifndef TIDE_CONSOLE_SYSTEM_H
#define TIDE_CONSOLE_SYSTEM_H

#include "system/system.h"

extern const struct tide_system tide_console_system;

#endif
