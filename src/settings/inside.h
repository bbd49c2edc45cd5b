/* inside.h - private to this folder: what settings.c, own.c and edit.c share. */
#ifndef TIDE_ENGINE_SETTINGS_INSIDE_H
#define TIDE_ENGINE_SETTINGS_INSIDE_H

#include "base/limits.h"
#include "settings/settings.h"

struct tide_setting_value {
    uint64_t number;
    char text[TIDE_SETTING_TEXT_BYTES];
    tide_origin_layer layer;
    unsigned line; /* of the file */
    bool own;      /* of an account: set for it alone */
    enum { TIDE_VALUE_SAME, TIDE_VALUE_CHANGED, TIDE_VALUE_LATER } news; /* of the last take */
};

struct tide_settings {
    tide_mem *mem;
    struct tide_setting_value values[TIDE_SETTINGS_COUNT];
    const tide_settings *common; /* of an account: those of all accounts; NULL: these are */
    char account[TIDE_NAME_BYTES_MAX + 1];
    tide_settings **accounts; /* owned; those with values of their own (SET6) */
    size_t accounts_count, accounts_capacity;
    tide_arena arena; /* copies of the sources */
    struct tide_settings_sources sources;
    bool loaded; /* from these sources, which can be read again */
};

/* Where a value comes from, for messages. */
struct tide_setting_place {
    tide_origin_layer layer;
    const char *path; /* file */
    unsigned line;
    const char *variable; /* environment */
};

/* Sets a value from a layer; higher layers are added later (SET3). */
tide_status tide_setting_set(tide_settings *settings, tide_text name, tide_text text,
                             const struct tide_setting_place *place, tide_error *err);
bool tide_setting_value_equal(tide_setting setting, const struct tide_setting_value *a,
                              const struct tide_setting_value *b);

/* ---- own.c ---- */

/* The settings of an account, made on first use. */
tide_status tide_settings_own(tide_settings *settings, tide_text account, tide_settings **own_out,
                              tide_error *err);
/* A common value changed: accounts without one of their own follow (SET6). */
void tide_settings_follow(tide_settings *settings, tide_setting setting);
/* All values, without the sources.  TIDE_NO_MEMORY. */
tide_status tide_settings_copy(const tide_settings *settings, tide_settings **copy_out);
void tide_settings_swap(tide_settings *a, tide_settings *b); /* their values */
/* Makes each account of one known to the other. */
tide_status tide_settings_align(tide_settings *a, tide_settings *b, tide_error *err);
void tide_settings_accounts_free(tide_settings *settings);

#endif
