/* value.h - how one value of a setting is written, and which may be.
 *
 * Private to settings.c, which knows where values come from.  Nothing is kept here. */
#ifndef TIDE_ENGINE_SETTINGS_VALUE_H
#define TIDE_ENGINE_SETTINGS_VALUE_H

#include "settings/settings.h"

/* A number as people write it: "64MiB", "5m", "2%", "true". */
void tide_setting_number_print(tide_setting_type type, uint64_t number,
                               char text[TIDE_SETTING_TEXT_BYTES]);
/* NULL when `text` may be the value, else why not (in `reason`, or a constant). */
const char *tide_setting_text_refusal(const struct tide_setting_info *info, tide_text text,
                                      char *reason, size_t reason_bytes);
/* The same for all but texts; *number is it. */
const char *tide_setting_number_refusal(const struct tide_setting_info *info, tide_text text,
                                        uint64_t *number, char *reason, size_t reason_bytes);

#endif
