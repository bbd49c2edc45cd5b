/* system.h - mail as a system of the engine (system/system.h). */
#ifndef TIDE_MAIL_SYSTEM_H
#define TIDE_MAIL_SYSTEM_H

#include "system/system.h"

extern const struct tide_system tide_mail_system;

#endif
