/* value.h - parses, checks and prints one value of a setting.
 *
 * Private to settings.c, which knows where values come from.  No state. */
#ifndef TIDE_ENGINE_SETTINGS_VALUE_H
#define TIDE_ENGINE_SETTINGS_VALUE_H

#include "settings/settings.h"

/* A number as a user writes it: "64MiB", "5m", "2%", "true". */
void tide_setting_number_print(tide_setting_type type, uint64_t number,
                               char text[TIDE_SETTING_TEXT_BYTES]);
/* NULL when `text` may be the value, else why not (in `reason`, or a constant). */
const char *tide_setting_text_refusal(const struct tide_setting_info *info, tide_text text,
                                      char *reason, size_t reason_bytes);
/* The same for all types but texts; *number gets the value. */
const char *tide_setting_number_refusal(const struct tide_setting_info *info, tide_text text,
                                        uint64_t *number, char *reason, size_t reason_bytes);

#endif
