/* schedule.h - the text of a SCHEDULE setting.  Private to settings. */
#ifndef TIDE_ENGINE_SETTINGS_SCHEDULE_H
#define TIDE_ENGINE_SETTINGS_SCHEDULE_H

#include "settings/settings.h"

/* `reason_out` gets a constant sentence when it is refused. */
bool tide_schedule_parse(tide_text text,
                         struct tide_setting_window windows_out[TIDE_SETTING_WINDOWS_MAX],
                         size_t *count_out, const char **reason_out);

#endif
