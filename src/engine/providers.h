/* providers.h - the limits of a provider: what is known before the first call, which settings change
 * it, and what all its accounts share (E4.1, E4.2).
 *
 * Rows are plain data.  Those of the providers that programs may name (tidemark.h) are in
 * providers.c; a system brings its own with tide_engine_provider(), a program with
 * tide_engine_quota().  Zero means "the default" in every field.
 */
#ifndef TIDE_ENGINE_PROVIDERS_H
#define TIDE_ENGINE_PROVIDERS_H

#include "core/governor/profile.h"
#include "settings/settings.h"

#include <stddef.h>

enum {
    TIDE_PROVIDER_NAME_BYTES_MAX = 32,
    TIDE_PROVIDER_SETTINGS_MAX = 6,
};

/* A field of the profile that a setting gives. */
struct tide_provider_setting {
    enum { TIDE_LIMIT_NONE, TIDE_LIMIT_U32, TIDE_LIMIT_U64, TIDE_LIMIT_RATE } type;
    size_t offset; /* in struct tide_governor_profile */
    tide_setting setting;
};

struct tide_provider_limits {
    const char *name;
    /* A window whose units a setting makes 0 is none: the provider is called as fast as it
     * answers.  Units that a setting gives to a provider without a window are those of a minute. */
    struct tide_governor_profile profile;
    struct tide_provider_setting settings[TIDE_PROVIDER_SETTINGS_MAX];
    unsigned batch_parts; /* a call waits for a batch of so many, served in sequence [1] */
    /* Times governor.latency_max that its calls may take before they count as slow [1].  More where
     * the time of an answer says how long it is, not how busy the server. */
    unsigned latency_times;
    /* Units of all its accounts together, in any window; none while an account has no limit. */
    uint64_t shared_units; /* 0: none, or what the setting says */
    bool shared_by_setting;
    tide_setting shared_setting;
    uint32_t shared_window_ms; /* 0: that of one account */
};

enum { TIDE_PROVIDERS_KNOWN = 5 };
extern const struct tide_provider_limits tide_providers_known[TIDE_PROVIDERS_KNOWN];
/* "gmail", "console", "onedrive", "chat", "default"; NULL: not one of them. */
const struct tide_provider_limits *tide_provider_known(const char *name);

#endif
