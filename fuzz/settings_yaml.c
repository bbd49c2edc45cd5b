/* settings_yaml.c - config.yaml, read and edited (E11).  The first line of the input names a
 * setting and its new value ("workers.count=9"), the rest is the file.  An edit that succeeds
 * gives a file that can be read, and contains the new value. */
#include "fuzz.h"
#include "settings/settings.h"

static void check_edited(const tide_buf *edited, tide_text name, tide_text value)
{
    tide_settings *settings = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    tide_setting setting;
    TIDE_ASSERT(tide_settings_new(tide_mem_heap(), &settings) == TIDE_OK);
    tide_status rc = tide_settings_add_yaml(settings, "config.yaml", tide_buf_text(edited), &err);
    TIDE_ASSERT(rc == TIDE_OK);
    TIDE_ASSERT(tide_setting_find(name, &setting));
    TIDE_ASSERT(tide_setting_layer(settings, setting) == TIDE_ORIGIN_FILE);
    if (tide_setting_info(setting)->type == TIDE_TYPE_TEXT)
        TIDE_ASSERT(tide_text_equal(tide_text_of(tide_setting_text(settings, setting)), value));
    tide_settings_free(settings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    tide_text value = fuzz_text(&input, '\n');
    struct fuzz_input assignment = {(const uint8_t *)value.data, value.bytes};
    tide_text name = fuzz_text(&assignment, '=');
    value = (tide_text){(const char *)assignment.data, assignment.bytes};
    tide_text yaml = fuzz_exact((tide_text){(const char *)input.data, input.bytes});

    tide_settings *settings = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    TIDE_ASSERT(tide_settings_new(tide_mem_heap(), &settings) == TIDE_OK);
    tide_status rc = tide_settings_add_yaml(settings, "config.yaml", yaml, &err);
    if (rc != TIDE_OK)
        TIDE_ASSERT(err.text[0] != '\0');
    else
        (void)tide_settings_check(settings, &err);
    tide_settings_free(settings);

    tide_buf edited;
    tide_buf_init(&edited, tide_mem_heap(), TIDE_SETTINGS_FILE_BYTES_MAX);
    if (tide_settings_edit_yaml("config.yaml", yaml, name, value, tide_mem_heap(), &edited, &err) ==
            TIDE_OK &&
        rc == TIDE_OK)
        check_edited(&edited, name, value);
    tide_buf_done(&edited);
    free((void *)(uintptr_t)yaml.data);
    return 0;
}
