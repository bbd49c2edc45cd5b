/* settings.h - every value a user may tune, by name, type and origin (E11).
 *
 * The table is list.h.  A value comes from the highest of four layers:
 * built-in default < YAML file < environment TIDEMARK_... < flag.  Code reads a
 * setting by its enum, never by a string.  This module knows names, types and
 * bounds; it does not know what a setting does.
 *
 * In the file, `workers.count: 8` and `workers:` with `count: 8` beneath it mean
 * the same.  In the environment dots become underscores in upper case:
 * TIDEMARK_WORKERS_COUNT=8.  TIDEMARK_HOME is not a setting.
 *
 * Some settings can be set for one account alone: `accounts:` with the account's name beneath it
 * and the same names beneath that, or --set accounts.NAME.KEY=VALUE; KEY is the longest part that
 * is the name of a setting, because names of accounts have dots, too.  It replaces the common
 * value of any layer for that account; tide_settings_of() gives what counts for it (E11.2).
 *
 * One thread at a time: the owner reloads and passes changed values on.
 *
 * Invariants (tide_settings_check()):
 *   SET1  every value is of its type and within its bounds; every default too.
 *   SET2  names are unique, and so are their names in the environment.
 *   SET3  a value's origin is the highest layer that gave one.
 *   SET4  a refused input changes nothing: neither values nor files.
 *   SET5  values that bound each other agree (refill_below < refill_to, ...).
 *   SET6  a value of an account is its own or the common one; only settings with `own` in the
 *         table are ever its own.
 */
#ifndef TIDE_ENGINE_SETTINGS_H
#define TIDE_ENGINE_SETTINGS_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "settings/list.h"
#include "world/world.h"

typedef struct tide_settings tide_settings;

#define TIDE_SETTING_ENUM_N(id, name, type, def, min, max, unit, when, meaning)     TIDE_SET_##id,
#define TIDE_SETTING_ENUM_T(id, name, type, def, bytes_max, choices, when, meaning) TIDE_SET_##id,
typedef enum tide_setting {
    TIDE_SETTINGS(TIDE_SETTING_ENUM_N, TIDE_SETTING_ENUM_T) TIDE_SETTINGS_COUNT
} tide_setting;

typedef enum tide_setting_type {
    TIDE_TYPE_INTEGER,
    TIDE_TYPE_SIZE,     /* bytes: 64MiB */
    TIDE_TYPE_DURATION, /* milliseconds: 500ms, 10s, 5m, 7d */
    TIDE_TYPE_PERMILLE, /* 20, 2%, 0.2% */
    TIDE_TYPE_BOOL,     /* true, false, yes, no, on, off */
    TIDE_TYPE_TEXT,
    TIDE_TYPE_SCHEDULE, /* text that tide_setting_windows() understands */
    TIDE_TYPE_URL,      /* text; of a database; its password is never printed */
    TIDE_TYPE_ADDRESS,  /* text; of e-mail: ada@example.com */
    TIDE_TYPE_SERVER,   /* text; of a mail server, without user and password: smtp://HOST:587 */
} tide_setting_type;

struct tide_setting_info {
    const char *name;
    tide_setting_type type;
    uint64_t number;   /* the default */
    const char *text;  /* the default of a type that is a text, else NULL */
    uint64_t min, max; /* max: bytes of a text */
    const char *unit;
    const char *choices; /* "a|b|c"; NULL: any */
    bool live;
    bool own; /* it can be set for one account alone */
    const char *meaning;
};

typedef enum tide_origin_layer {
    TIDE_ORIGIN_DEFAULT,
    TIDE_ORIGIN_FILE,
    TIDE_ORIGIN_ENV,
    TIDE_ORIGIN_FLAG,
} tide_origin_layer;

enum {
    TIDE_SETTING_TEXT_BYTES = 256, /* room for any value, terminator included */
    TIDE_SETTING_NAME_BYTES = 320, /* and for accounts.NAME.KEY */
    TIDE_SETTINGS_ACCOUNTS_MAX = 128,
    TIDE_SETTINGS_FILE_BYTES_MAX = 1 << 20,
    TIDE_SETTINGS_FLAGS_MAX = 64,
    TIDE_SETTING_WINDOWS_MAX = 16,
    TIDE_SETTING_GMAIL_UNITS_MIN = 400,    /* unless it is 0 */
    TIDE_SETTING_CONSOLE_UNITS_MIN = 100,  /* the same */
    TIDE_SETTING_ONEDRIVE_UNITS_MIN = 100, /* the same */
};

/* ---- the table ---- */

const struct tide_setting_info *tide_setting_info(tide_setting setting);
bool tide_setting_find(tide_text name, tide_setting *setting_out);
/* "accounts.ada@example.com.governor.share"; false: not of that form, or no setting. */
bool tide_setting_find_own(tide_text name, tide_text *account_out, tide_setting *setting_out);
const char *tide_setting_type_name(tide_setting_type type);
/* "TIDEMARK_WORKERS_COUNT". */
void tide_setting_env_name(tide_setting setting, char name_out[TIDE_SETTING_TEXT_BYTES]);
/* The known name nearest to a mistyped one; NULL when none is near. */
const char *tide_setting_nearest(tide_text name);

/* ---- layers ---- */

struct tide_settings_sources {
    const char *file;               /* path of config.yaml; it may be missing.  NULL: none */
    const char *const *environment; /* like environ; NULL: none */
    const char *const *flags;       /* "name=value" each */
    size_t flags_count;
};

/* All layers at once.  A wrong value, name or file is refused: err says where
 * (file and line, variable or flag), what and why.  The sources are copied for
 * tide_settings_again(). */
tide_status tide_settings_load(tide_world *world, const struct tide_settings_sources *sources,
                               tide_mem *mem, tide_settings **settings_out, tide_error *err);
/* A reload in two steps, for callers with a lock.  The first reads the sources again and checks
 * them; settings that were built layer by layer have none, and `fresh` is a copy.  The second
 * takes the values over and changes `fresh`, which the caller frees.  changed_out[s]: the value
 * of a live setting changed, for all or for an account, and applies from now on.  restart_out[s]:
 * it changed but is not live; the old value stays.  On a failure everything stays as it was. */
tide_status tide_settings_again(const tide_settings *settings, tide_world *world,
                                tide_settings **fresh_out, tide_error *err);
tide_status tide_settings_take(tide_settings *settings, tide_settings *fresh,
                               bool changed_out[TIDE_SETTINGS_COUNT],
                               bool restart_out[TIDE_SETTINGS_COUNT], tide_error *err);
/* What the second step changed, from its `fresh`.  `account` NULL: for all; `later`: it needs a
 * restart. */
typedef void tide_settings_change(void *arg, const char *account, tide_setting setting, bool later);
void tide_settings_changes(const tide_settings *taken, tide_settings_change *visit, void *arg);
/* The file that tide_settings_load() was given; NULL: none.  Never changes. */
const char *tide_settings_file(const tide_settings *settings);

/* The layers one by one, in this order, for tests and for callers that have the
 * bytes already.  tide_settings_check() checks SET5 at the end. */
tide_status tide_settings_new(tide_mem *mem, tide_settings **settings_out);
void tide_settings_free(tide_settings *settings);
tide_status tide_settings_add_yaml(tide_settings *settings, const char *path, tide_text yaml,
                                   tide_error *err);
tide_status tide_settings_add_environment(tide_settings *settings, const char *const *environment,
                                          tide_error *err);
tide_status tide_settings_add_flag(tide_settings *settings, const char *assignment,
                                   tide_error *err);
/* SET1..SET6; err names the pair that does not agree. */
tide_status tide_settings_check(const tide_settings *settings, tide_error *err);

/* ---- one account ---- */

/* What counts for that account: its own values, else the common ones.  Borrowed until the next
 * reload. */
const tide_settings *tide_settings_of(const tide_settings *settings, const char *account);
/* The accounts that have values of their own, one per call; NULL: no more.  `*cursor_io` starts at
 * 0. */
const char *tide_settings_account(const tide_settings *settings, size_t *cursor_io);
/* Of the settings of an account: whether this value is its own. */
bool tide_setting_is_own(const tide_settings *settings, tide_setting setting);
/* "governor.share", or "accounts.NAME.governor.share" where the value is an account's own. */
void tide_setting_name(const tide_settings *settings, tide_setting setting,
                       char name_out[TIDE_SETTING_NAME_BYTES]);

/* ---- reading ---- */

/* Numbers in their base unit; a setting that is a text is a bug here. */
uint64_t tide_setting_u64(const tide_settings *settings, tide_setting setting);
uint32_t tide_setting_u32(const tide_settings *settings, tide_setting setting); /* max fits */
/* Borrowed until the next reload. */
const char *tide_setting_text(const tide_settings *settings, tide_setting setting);

/* A part of the week with limits of its own, in local time.  A window with `to` <= `from`
 * runs past midnight and belongs to the day it began. */
struct tide_setting_window {
    uint8_t days; /* bit 0: Monday ... bit 6: Sunday */
    uint16_t from_minute, to_minute;
    uint64_t down_bytes_per_s, up_bytes_per_s, both_bytes_per_s; /* 0: no limit */
};
/* "[DAYS] HH:MM-HH:MM LIMIT", separated by ';'.  DAYS: mon-fri or sat,sun.
 * LIMIT: full, a size (both directions together), or any of down=SIZE up=SIZE
 * both=SIZE.  The first window that holds a minute wins.  Returns how many. */
size_t tide_setting_windows(const tide_settings *settings, tide_setting setting,
                            struct tide_setting_window windows_out[TIDE_SETTING_WINDOWS_MAX]);

/* The value as it would be written: "7d", "64MiB", "2%"; of a URL's password only ***. */
void tide_setting_print(const tide_settings *settings, tide_setting setting,
                        char value_out[TIDE_SETTING_TEXT_BYTES]);
/* "default", "config.yaml:12", "env TIDEMARK_WORKERS_COUNT", "flag". */
void tide_setting_origin(const tide_settings *settings, tide_setting setting,
                         char origin_out[TIDE_SETTING_TEXT_BYTES * 2]);
tide_origin_layer tide_setting_layer(const tide_settings *settings, tide_setting setting);

/* ---- editing the file ---- */

/* Gives `name` another value in the text of a YAML file: in its line where it
 * is set, else in a new line at the end.  Comments, order and every other line
 * stay as they are.  The result is parsed again before it is returned, and
 * refused if anything else changed.  `edited` is replaced. */
tide_status tide_settings_edit_yaml(const char *path, tide_text yaml, tide_text name,
                                    tide_text value, tide_mem *mem, tide_buf *edited,
                                    tide_error *err);
/* Reading and replacing the file under this lock loses no change of another process, which waits for
 * it; a file beside the file.  tide_file_lock_drop() ends it.  TIDE_BUSY: another process keeps it. */
tide_status tide_settings_lock(tide_world *world, const char *path, tide_file_lock **lock_out,
                               tide_error *err);
/* The same as tide_settings_edit_yaml() for the file itself, replaced whole or not at all, under its
 * lock. */
tide_status tide_settings_edit_file(tide_world *world, const char *path, tide_text name,
                                    tide_text value, tide_mem *mem, tide_error *err);
/* Removes what sets `name`: its line, and the names above it that nothing is left under.  Other
 * lines stay as they are; the result is checked as above.  *found_out: the file set it. */
tide_status tide_settings_unset_yaml(const char *path, tide_text yaml, tide_text name,
                                     tide_mem *mem, tide_buf *edited, bool *found_out,
                                     tide_error *err);
/* In the file itself, under its lock. */
tide_status tide_settings_unset_file(tide_world *world, const char *path, tide_text name,
                                     tide_mem *mem, bool *found_out, tide_error *err);
/* What differs between two sets of values: of all accounts, and what each has of its own.  The
 * visitor gets the settings of the account, or the common ones where it has none of its own. */
typedef void tide_settings_differ(void *arg, const tide_settings *before,
                                  const tide_settings *after, tide_setting setting);
void tide_settings_differences(const tide_settings *before, const tide_settings *after,
                               tide_settings_differ *visit, void *arg);

#endif
