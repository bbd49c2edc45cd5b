/* settings_values.c - values of settings, from the command line and the environment (E11): an
 * accepted value is in its range, prints, and reads back the same. */
#include "fuzz.h"
#include "settings/settings.h"
#include "settings/schedule.h"

#include <stdio.h>

/* What tide_setting_print() shows must be a value that can be written again. */
static void check_setting(const tide_settings *settings, tide_setting setting)
{
    const struct tide_setting_info *info = tide_setting_info(setting);
    char value[TIDE_SETTING_TEXT_BYTES], again[TIDE_SETTING_TEXT_BYTES];
    char origin[TIDE_SETTING_TEXT_BYTES * 2], flag[TIDE_SETTING_TEXT_BYTES * 2];
    tide_setting_print(settings, setting, value);
    tide_setting_origin(settings, setting, origin);
    if (info->type == TIDE_TYPE_SCHEDULE) {
        struct tide_setting_window windows[TIDE_SETTING_WINDOWS_MAX];
        size_t count = tide_setting_windows(settings, setting, windows);
        TIDE_ASSERT(count <= TIDE_SETTING_WINDOWS_MAX);
    } else if (info->type != TIDE_TYPE_TEXT) {
        TIDE_ASSERT(tide_setting_u64(settings, setting) >= info->min);
        TIDE_ASSERT(tide_setting_u64(settings, setting) <= info->max);
    }
    tide_settings *copy = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    TIDE_ASSERT(tide_settings_new(tide_mem_heap(), &copy) == TIDE_OK);
    (void)snprintf(flag, sizeof flag, "%s=%s", info->name, value);
    TIDE_ASSERT(tide_settings_add_flag(copy, flag, &err) == TIDE_OK);
    tide_setting_print(copy, setting, again);
    TIDE_ASSERT(strcmp(value, again) == 0);
    tide_settings_free(copy);
}

static void add_flag(tide_settings *settings, tide_text text)
{
    tide_error err = {TIDE_OK, 0, ""};
    char *flag = fuzz_cstr(text);
    tide_status rc = tide_settings_add_flag(settings, flag, &err);
    const char *equals = strchr(flag, '=');
    tide_setting setting;
    if (rc != TIDE_OK)
        TIDE_ASSERT(err.text[0] != '\0');
    else if (equals != NULL &&
             tide_setting_find((tide_text){flag, (size_t)(equals - flag)}, &setting))
        check_setting(settings, setting);
    free(flag);
}

static void add_environment(tide_settings *settings, tide_text text)
{
    tide_error err = {TIDE_OK, 0, ""};
    char *variable = fuzz_cstr(text);
    const char *environment[] = {variable, NULL};
    if (tide_settings_add_environment(settings, environment, &err) != TIDE_OK)
        TIDE_ASSERT(err.text[0] != '\0');
    free(variable);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    tide_settings *settings = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    TIDE_ASSERT(tide_settings_new(tide_mem_heap(), &settings) == TIDE_OK);
    for (int i = 0; fuzz_more(&input) && i < 8; i++) {
        tide_text line = fuzz_text(&input, '\n');
        if (line.bytes >= 9 && memcmp(line.data, "TIDEMARK_", 9) == 0)
            add_environment(settings, line);
        else
            add_flag(settings, line);
        if (line.bytes < 16) /* it takes the square of it */
            (void)tide_setting_nearest(line);
        struct tide_setting_window windows[TIDE_SETTING_WINDOWS_MAX];
        size_t count = 0;
        const char *reason = NULL;
        if (tide_schedule_parse(line, windows, &count, &reason))
            TIDE_ASSERT(count <= TIDE_SETTING_WINDOWS_MAX);
        else
            TIDE_ASSERT(reason != NULL);
    }
    (void)tide_settings_check(settings, &err);
    tide_settings_free(settings);
    return 0;
}
