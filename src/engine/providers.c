/* providers.c - the providers that every program may name (providers.h). */
#include "engine/providers.h"

#include <string.h>

#define ROW(type, field, id)                                                                       \
    {                                                                                              \
        TIDE_LIMIT_##type, offsetof(struct tide_governor_profile, field), TIDE_SET_##id            \
    }

/* As many jobs as calls at once. */
#define AT_ONCE(start, max)                                                                        \
    ROW(U32, in_flight_max, max), ROW(U32, workers_max, max), ROW(U32, workers_start, start)

#define DEFAULT_RATES                                                                              \
    ROW(RATE, rate_min, GOVERNOR_DEFAULT_RATE_MIN),                                                \
        ROW(RATE, rate_start, GOVERNOR_DEFAULT_RATE_START),                                        \
        ROW(RATE, rate_max, GOVERNOR_DEFAULT_RATE_MAX)

const struct tide_provider_limits tide_providers_known[TIDE_PROVIDERS_KNOWN] = {
    /* Since May 2026; older projects have 15,000 units. */
    {.name = "gmail",
     .profile = {.window_ms = 60000,
                 .window_units_max = 6000,
                 .call_units = 20,
                 .in_flight_max = 10,
                 .reserve_permille = 20,
                 .learn_bytes_per_day = true}, /* 2,500 MB down by support; nothing is published */
     .settings = {ROW(U32, window_ms, GOVERNOR_GMAIL_WINDOW),
                  ROW(U64, window_units_max, GOVERNOR_GMAIL_WINDOW_UNITS),
                  ROW(U32, in_flight_max, GOVERNOR_GMAIL_IN_FLIGHT),
                  ROW(U32, reserve_permille, GOVERNOR_GMAIL_RESERVE)},
     .shared_by_setting = true,
     .shared_setting = TIDE_SET_GOVERNOR_GMAIL_PROJECT_UNITS},
    /* Per site and user; all of a project share 40,000 a minute.  For the load error the client
     * sets 15 minutes.  Its handlers wait for a place in a batch, which costs nothing; the batcher
     * limits the batches in flight. */
    {.name = "console",
     .profile = {.window_ms = 60000,
                 .window_units_max = 1200,
                 .call_units = 1,
                 .in_flight_max = 64,
                 .workers_start = 64,
                 .workers_max = 64,
                 .latency_max_ms = 60000}, /* of a batch whose parts are served in sequence */
     .settings = {ROW(U32, window_ms, GOVERNOR_CONSOLE_WINDOW),
                  ROW(U64, window_units_max, GOVERNOR_CONSOLE_SITE_UNITS),
                  AT_ONCE(GOVERNOR_CONSOLE_IN_FLIGHT, GOVERNOR_CONSOLE_IN_FLIGHT)},
     .batch_parts = 50,
     .shared_by_setting = true,
     .shared_setting = TIDE_SET_GOVERNOR_CONSOLE_PROJECT_UNITS},
    /* Nothing is published for personal drives, and what a business has depends on its licences: the
     * calls in flight limit the pace, and refusals halve both.  The rates are so high that they
     * matter only after refusals. */
    {.name = "onedrive",
     .profile = {.rate_min = 2,
                 .rate_start = 2000,
                 .rate_max = 4000,
                 .call_units = 2,
                 .in_flight_max = 32,
                 .jobs_min = 16,
                 .workers_start = 16,
                 .workers_max = 32,
                 .learn_bytes_per_day = true},
     .settings = {ROW(U64, window_units_max, GOVERNOR_ONEDRIVE_WINDOW_UNITS),
                  AT_ONCE(GOVERNOR_ONEDRIVE_IN_FLIGHT_START, GOVERNOR_ONEDRIVE_IN_FLIGHT_MAX)}},
    /* A model that classifies in a second writes a draft in twenty: two minutes count as slow. */
    {.name = "chat",
     .profile =
         {.in_flight_max = 4, .workers_start = 4, .workers_max = 4, .latency_max_ms = 120000},
     .latency_times = 100,
     .settings = {AT_ONCE(GOVERNOR_CHAT_IN_FLIGHT, GOVERNOR_CHAT_IN_FLIGHT), DEFAULT_RATES}},
    {.name = "default",
     .profile = {.in_flight_max = 32},
     .settings = {ROW(U32, in_flight_max, GOVERNOR_DEFAULT_WORKERS_MAX), DEFAULT_RATES}},
};

const struct tide_provider_limits *tide_provider_known(const char *name)
{
    for (size_t i = 0; i < TIDE_PROVIDERS_KNOWN; i++)
        if (strcmp(tide_providers_known[i].name, name) == 0)
            return &tide_providers_known[i];
    return NULL;
}
