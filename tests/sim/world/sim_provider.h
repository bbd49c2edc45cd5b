/* sim_provider.h - a small stand-in provider and referee.
 *
 * It has items with a time and a content, both fixed by the seed; lists them
 * by span of time in pages, gives them by id, lets new ones appear and others
 * vanish while time passes, counts quota in exact sliding windows on its own
 * clock, refuses in all the ways providers refuse, fails on request, and keeps
 * a record of what really happened.  It does no I/O and reads no clock: time
 * and randomness are arguments (tide_sim_provide).
 *
 *   GET  /items?start=MS&end=MS&pageSize=N&pageToken=T   [start, end), by time
 *        {"items":[{"id","time"}...], "nextPageToken"}; no "items" when empty
 *   GET  /items/ID    {"id","time","data"}; 404 when it is not there
 *   GET  /changes?since=MS   (since, now]
 *        {"now", "appeared":[ID...], "vanished":[ID...]}
 *   POST /notes       {"tag"}: makes a note, each time another one
 *   GET  /notes?tag=T {"count"}
 * under any host.  Times are unix milliseconds.
 *
 * Invariants:
 *   SPRV1  time never goes back between two requests.
 *   SPRV2  the same seed gives the same items with the same content.
 *   SPRV3  units_highest is the true maximum over all windows (now - 60 s, now].
 */
#ifndef TIDE_SIM_PROVIDER_H
#define TIDE_SIM_PROVIDER_H

#include "sim_net.h"

typedef struct tide_sim_provider tide_sim_provider;

typedef enum tide_sim_item_kind {
    TIDE_SIM_ITEM_PLAIN,
    TIDE_SIM_ITEM_POISON_500, /* 500 on every get */
    TIDE_SIM_ITEM_POISON_400, /* 400 naming the item, on every get */
    TIDE_SIM_ITEM_STALLS,     /* every get stalls */
    TIDE_SIM_ITEM_RESETS,     /* every get ends in a reset */
} tide_sim_item_kind;

struct tide_sim_item {
    char id[32];
    uint64_t time_ms;
    uint64_t appears_ms;  /* the server shows it from then on */
    uint64_t vanishes_ms; /* and up to then; UINT64_MAX: never */
    uint32_t bytes;
    tide_sim_item_kind kind;
    /* the truth: */
    uint32_t asked;
    uint32_t given; /* answered with 200 */
};

enum { TIDE_SIM_REFUSALS = 6 };

/* Chances are per thousand requests or items. */
struct tide_sim_provider_options {
    uint64_t seed;
    uint64_t start_unix_ms; /* 0: as the world's default */
    uint32_t items_count;   /* that are there from the start */
    uint64_t span_ms;       /* before the start, over which their times spread; 0: 30 days */
    uint32_t new_count;     /* items that appear later ... */
    uint64_t grow_ms;       /* ... over this time after the start; 0: 1 hour */
    uint32_t vanish_permille;
    uint32_t item_bytes_max; /* 0: 2000 */
    uint32_t poison_500_permille;
    uint32_t poison_400_permille;
    uint32_t stalls_permille;
    uint32_t resets_permille;

    uint32_t page_max;         /* 0: 500 */
    uint32_t units_per_minute; /* 0: no quota */
    uint32_t units_list;       /* 0: 5 */
    uint32_t units_get;        /* 0: 20 */
    uint32_t concurrency_max;  /* 0: no limit */
    bool refused_are_charged;
    uint32_t think_us_max; /* 0: 100,000 */

    uint32_t error_permille;   /* 500, 502, 503 */
    uint32_t refuse_permille;  /* refused although there is quota */
    uint32_t garbage_permille; /* 200 with broken JSON */
    uint32_t loop_permille;    /* a page names itself as the next one */
};

/* What really happened. */
struct tide_sim_truth {
    uint64_t requests;
    uint64_t lists;
    uint64_t gets;
    uint64_t given;  /* items, with 200 */
    uint64_t gone;   /* 404 */
    uint64_t errors; /* 5xx by chance */
    uint64_t garbage;
    uint64_t loops;
    uint64_t over_quota;       /* requests that crossed the window, all refused */
    uint64_t over_concurrency; /* likewise */
    uint64_t refused_by_chance;
    uint64_t first_over_quota_ms;
    uint64_t units;         /* charged in all */
    uint64_t units_highest; /* in any window of 60 s */
    uint32_t in_flight_highest;
    uint64_t refusals[TIDE_SIM_REFUSALS]; /* by the form they took */
    uint64_t notes;
    uint64_t notes_doubled; /* notes beyond the first with their tag */
};

tide_sim_provider *tide_sim_provider_new(const struct tide_sim_provider_options *options);
void tide_sim_provider_free(tide_sim_provider *provider); /* NULL is fine */

/* For tide_sim_net_options.provide, with the provider as its argument. */
void tide_sim_provider_call(void *provider, const struct tide_request *request,
                            uint64_t now_unix_ms, tide_rng *rng, struct tide_sim_answer *answer);
/* Chance failures off or on again; poison, quota and limits stay. */
void tide_sim_provider_faults(tide_sim_provider *provider, bool on);
void tide_sim_provider_quota(tide_sim_provider *provider, uint32_t units_per_minute);

struct tide_sim_truth tide_sim_provider_truth(const tide_sim_provider *provider);
/* All of them, in order of time; borrowed. */
const struct tide_sim_item *tide_sim_provider_items(const tide_sim_provider *provider,
                                                    size_t *count_out);
const struct tide_sim_item *tide_sim_provider_item(const tide_sim_provider *provider, tide_text id);
bool tide_sim_item_there(const struct tide_sim_item *item, uint64_t now_unix_ms);
/* Whether `data` is exactly what that item holds. */
bool tide_sim_provider_content_is(const tide_sim_provider *provider, tide_text id, tide_text data);

#endif
