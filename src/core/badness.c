#include "core/badness.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"
#include "core/retry.h"

#include <string.h>

enum {
    GOOD_KEPT = 8,
    NIL = UINT32_MAX,
    VARIED_FACTOR = 2,
    ERRORS_MIN = 3,             /* of an item's own, while another one fails too (BAD7) */
    OTHERS_MS = 10 * 60 * 1000, /* longer than any pause: parts of one batch fail within it */
};

/* A failing item.  Linked by the time of its last failure; free entries are linked through
 * `newer`. */
struct suspect {
    uint64_t item;
    uint64_t detail;       /* of its last error */
    uint64_t stalled_ms;   /* of its first stall */
    uint64_t held_ms;      /* when its verdict was first postponed; 0: never */
    uint64_t successes_at; /* the account's success count when it was first judged */
    tide_status status;    /* its last error */
    uint32_t errors;       /* its own ones */
    uint32_t failures;     /* those that were judged, and absences */
    uint32_t stalls;
    uint32_t owed; /* how often it was judged owed: its pauses grow */
    bool varied;   /* its errors were not all the same */
    uint32_t older, newer;
};

/* An item that failed, and when it did so last. */
struct failed {
    uint64_t item; /* 0: none */
    uint64_t at_ms;
};

enum probe_state { PROBE_NONE, PROBE_WANTED, PROBE_RUNNING };

struct tide_badness {
    struct tide_badness_settings settings;
    tide_mem *mem;
    struct suspect *suspects;
    tide_map index; /* item to suspect */
    uint32_t free, oldest, newest;
    uint32_t count;
    struct failed failed[2]; /* the last two, the later one first */

    unsigned char window[TIDE_BADNESS_WINDOW]; /* 1: failed */
    uint32_t window_at;
    uint32_t window_failed;
    uint32_t row;

    uint64_t good[GOOD_KEPT]; /* the last items that succeeded, 0: none */
    uint32_t good_at;
    uint64_t successes;

    enum probe_state probe;
    uint64_t probe_at_ms;
    uint64_t probe_item;
    bool suspicious;   /* the probe is about the account, not about a single item */
    bool incomparable; /* there was nothing to probe with, and nothing succeeded since */
    bool halted;
    bool halt_done;      /* the halt is durable */
    uint64_t halt_at_ms; /* when to order the halt again */
};

struct tide_badness_settings tide_badness_defaults(void)
{
    return (struct tide_badness_settings){
        .attempts_max = 5,
        .row_max = 20,
        .window_failed_max = 50,
        .stalls_min = 5,
        .stalls_over_ms = 10 * 60 * 1000,
        .pause_first_ms = 1000,
        .pause_factor_permille = 2000,
        .pause_max_ms = 5 * 60 * 1000,
        .owed_first_ms = 10 * 60 * 1000,
        .owed_max_ms = 24 * 60 * 60 * 1000,
        .probe_again_ms = 60 * 1000,
        .suspects_max = 1024,
    };
}

static bool settings_valid(const struct tide_badness_settings *settings)
{
    return settings->attempts_max > 0 && settings->row_max > 0 &&
           settings->window_failed_max < TIDE_BADNESS_WINDOW && settings->stalls_min > 0 &&
           settings->pause_first_ms > 0 && settings->pause_first_ms <= settings->pause_max_ms &&
           settings->pause_factor_permille >= 1000 && settings->owed_first_ms > 0 &&
           settings->owed_first_ms <= settings->owed_max_ms && settings->suspects_max > 0 &&
           settings->suspects_max <= TIDE_SUSPECTS_MAX;
}

tide_status tide_badness_new(const struct tide_badness_settings *settings, tide_mem *mem,
                             tide_badness **badness_out)
{
    TIDE_ASSERT(mem != NULL);
    if (!settings_valid(settings))
        return TIDE_INVALID;
    tide_badness *badness = tide_mem_new(mem, sizeof *badness);
    if (badness == NULL)
        return TIDE_NO_MEMORY;
    badness->settings = *settings;
    badness->mem = mem;
    badness->oldest = NIL;
    badness->newest = NIL;
    tide_map_init(&badness->index, mem);
    badness->suspects = tide_mem_array(mem, settings->suspects_max, sizeof *badness->suspects);
    if (badness->suspects == NULL || !tide_map_reserve(&badness->index, settings->suspects_max)) {
        tide_badness_free(badness);
        return TIDE_NO_MEMORY;
    }
    for (uint32_t i = 0; i < settings->suspects_max; i++)
        badness->suspects[i].newer = i + 1 < settings->suspects_max ? i + 1 : NIL;
    *badness_out = badness;
    return TIDE_OK;
}

tide_status tide_badness_set(tide_badness *badness, const struct tide_badness_settings *settings)
{
    if (!settings_valid(settings) || settings->suspects_max != badness->settings.suspects_max)
        return TIDE_INVALID;
    badness->settings = *settings;
    return TIDE_OK;
}

void tide_badness_free(tide_badness *badness)
{
    if (badness == NULL)
        return;
    tide_map_done(&badness->index);
    tide_mem_free(badness->mem, badness->suspects,
                  badness->settings.suspects_max * sizeof *badness->suspects);
    tide_mem_free(badness->mem, badness, sizeof *badness);
}

static void suspect_unlink(tide_badness *badness, uint32_t at)
{
    struct suspect *suspect = &badness->suspects[at];
    if (suspect->older != NIL)
        badness->suspects[suspect->older].newer = suspect->newer;
    else
        badness->oldest = suspect->newer;
    if (suspect->newer != NIL)
        badness->suspects[suspect->newer].older = suspect->older;
    else
        badness->newest = suspect->older;
}

static void suspect_link_newest(tide_badness *badness, uint32_t at)
{
    struct suspect *suspect = &badness->suspects[at];
    suspect->older = badness->newest;
    suspect->newer = NIL;
    if (badness->newest != NIL)
        badness->suspects[badness->newest].newer = at;
    else
        badness->oldest = at;
    badness->newest = at;
}

static void suspect_drop(tide_badness *badness, uint32_t at)
{
    suspect_unlink(badness, at);
    bool was_there = tide_map_remove(&badness->index, badness->suspects[at].item);
    TIDE_ASSERT(was_there);
    badness->suspects[at] = (struct suspect){.newer = badness->free};
    badness->free = at;
    badness->count--;
}

static void suspect_forget(tide_badness *badness, uint64_t item)
{
    uint32_t at = NIL;
    if (tide_map_get(&badness->index, item, &at))
        suspect_drop(badness, at);
}

static struct suspect *suspect_add(tide_badness *badness, uint64_t item)
{
    if (badness->free == NIL) {
        TIDE_SEEN("badness: the quietest suspect is forgotten");
        suspect_drop(badness, badness->oldest);
    }
    uint32_t at = badness->free;
    struct suspect *suspect = &badness->suspects[at];
    badness->free = suspect->newer;
    *suspect =
        (struct suspect){.item = item, .successes_at = badness->successes, .status = TIDE_OK};
    bool put = tide_map_put(&badness->index, item, at);
    TIDE_ASSERT(put); /* room was reserved */
    suspect_link_newest(badness, at);
    badness->count++;
    return suspect;
}

static void window_push(tide_badness *badness, bool failed)
{
    badness->window_failed -= badness->window[badness->window_at];
    badness->window[badness->window_at] = failed;
    badness->window_failed += failed;
    badness->window_at = (badness->window_at + 1) % TIDE_BADNESS_WINDOW;
    badness->row = failed ? badness->row + 1 : 0;
}

static void window_clear(tide_badness *badness)
{
    memset(badness->window, 0, sizeof badness->window);
    badness->window_failed = 0;
    badness->row = 0;
}

static void good_remember(tide_badness *badness, uint64_t item)
{
    badness->successes++;
    if (badness->incomparable && badness->probe != PROBE_RUNNING)
        badness->probe_at_ms = 0; /* now there is something to probe with */
    badness->incomparable = false;
    for (uint32_t i = 0; i < GOOD_KEPT; i++)
        if (badness->good[i] == item)
            return;
    badness->good[badness->good_at] = item;
    badness->good_at = (badness->good_at + 1) % GOOD_KEPT;
}

static void good_forget(tide_badness *badness, uint64_t item)
{
    for (uint32_t i = 0; i < GOOD_KEPT; i++)
        if (badness->good[i] == item)
            badness->good[i] = 0;
}

/* The most recent one that still counts as good, or 0. */
static uint64_t good_pick(const tide_badness *badness)
{
    for (uint32_t i = 1; i <= GOOD_KEPT; i++) {
        uint64_t item = badness->good[(badness->good_at + GOOD_KEPT - i) % GOOD_KEPT];
        if (item != 0)
            return item;
    }
    return 0;
}

static void probe_want(tide_badness *badness, bool suspicious, uint64_t now_ms)
{
    badness->suspicious |= suspicious;
    if (badness->probe != PROBE_NONE || badness->halted)
        return;
    badness->probe = PROBE_WANTED;
    /* A probe for a single item is not repeated faster than the pause allows. */
    if (badness->probe_at_ms < now_ms || suspicious)
        badness->probe_at_ms = now_ms;
}

enum { DOUBLING = 2000 }; /* permille */

static uint64_t pause_after(uint64_t now_ms, uint64_t first_ms, uint32_t factor_permille,
                            uint64_t max_ms, uint32_t times)
{
    uint64_t pause_ms = first_ms;
    for (uint32_t i = 1; i < times; i++) {
        const uint64_t longer_ms = tide_retry_longer_ms(pause_ms, factor_permille, max_ms);
        if (longer_ms <= pause_ms)
            break;
        pause_ms = longer_ms;
    }
    uint64_t at_ms = 0;
    return __builtin_add_overflow(now_ms, pause_ms, &at_ms) ? UINT64_MAX : at_ms;
}

static struct tide_badness_verdict verdict_later(const tide_badness *badness,
                                                 enum tide_item_verdict kind,
                                                 const struct suspect *suspect, uint64_t now_ms)
{
    const struct tide_badness_settings *settings = &badness->settings;
    return (struct tide_badness_verdict){
        .kind = kind,
        .failures = suspect->failures,
        .at_ms = pause_after(now_ms, settings->pause_first_ms, settings->pause_factor_permille,
                             settings->pause_max_ms, suspect->failures),
    };
}

static struct tide_badness_verdict verdict_owed(const tide_badness *badness,
                                                struct suspect *suspect, uint64_t now_ms)
{
    suspect->owed += suspect->owed < UINT32_MAX;
    return (struct tide_badness_verdict){
        .kind = TIDE_ITEM_OWED,
        .failures = suspect->failures,
        .at_ms = pause_after(now_ms, badness->settings.owed_first_ms, DOUBLING,
                             badness->settings.owed_max_ms, suspect->owed),
    };
}

static bool is_stall(tide_status status)
{
    return status == TIDE_TIMEOUT || status == TIDE_UNKNOWN;
}

/* A stall is the same error whether it ended in a timeout or in a dead connection. */
static bool error_same(const struct suspect *suspect, const struct tide_item_outcome *outcome)
{
    if (is_stall(suspect->status) && is_stall(outcome->status))
        return true;
    return suspect->status == outcome->status && suspect->detail == outcome->detail;
}

/* Adds an error to what is known of the item. */
static struct suspect *error_note(tide_badness *badness, const struct tide_item_outcome *outcome,
                                  uint64_t now_ms)
{
    uint32_t at = NIL;
    struct suspect *suspect = NULL;
    if (tide_map_get(&badness->index, outcome->item, &at)) {
        suspect = &badness->suspects[at];
        suspect_unlink(badness, at);
        suspect_link_newest(badness, at);
        suspect->varied |= !error_same(suspect, outcome);
    } else {
        suspect = suspect_add(badness, outcome->item);
        good_forget(badness, outcome->item);
    }
    suspect->status = outcome->status;
    suspect->detail = outcome->detail;
    suspect->errors += suspect->errors < UINT32_MAX;
    if (badness->failed[0].item != outcome->item)
        badness->failed[1] = badness->failed[0];
    badness->failed[0] = (struct failed){.item = outcome->item, .at_ms = now_ms};
    return suspect;
}

/* Only its first failure counts as "an item that failed": five attempts at one item are not
 * five items. */
static void failure_count(tide_badness *badness, struct suspect *suspect,
                          const struct tide_item_outcome *outcome, uint64_t now_ms)
{
    if (suspect->failures == 0) {
        window_push(badness, true);
        suspect->successes_at = badness->successes;
    }
    suspect->failures += suspect->failures < UINT32_MAX;
    if (is_stall(outcome->status)) {
        if (suspect->stalls == 0)
            suspect->stalled_ms = now_ms;
        suspect->stalls += suspect->stalls < UINT32_MAX;
    }
}

/* BAD7: whether all attempts charged to the item may be held against it. */
static bool errors_enough(const tide_badness *badness, const struct suspect *suspect,
                          uint64_t now_ms)
{
    const struct failed *other = &badness->failed[badness->failed[0].item == suspect->item];
    const bool others_fail =
        other->item != 0 && (now_ms < other->at_ms || now_ms - other->at_ms < OTHERS_MS);
    return !others_fail || suspect->errors >= ERRORS_MIN ||
           suspect->errors >= badness->settings.attempts_max;
}

static bool stalled_enough(const tide_badness *badness, const struct suspect *suspect,
                           uint64_t now_ms)
{
    return suspect->stalls >= badness->settings.stalls_min && now_ms >= suspect->stalled_ms &&
           now_ms - suspect->stalled_ms >= badness->settings.stalls_over_ms;
}

/* The verdict was postponed, and long enough for other items to succeed. */
static bool held_long(const tide_badness *badness, struct suspect *suspect, uint64_t now_ms)
{
    if (suspect->held_ms == 0)
        suspect->held_ms = now_ms;
    return now_ms >= suspect->held_ms &&
           now_ms - suspect->held_ms >= badness->settings.probe_again_ms;
}

static struct tide_badness_verdict failure_judge(tide_badness *badness, struct suspect *suspect,
                                                 const struct tide_item_outcome *outcome,
                                                 uint64_t now_ms)
{
    const struct tide_badness_settings *settings = &badness->settings;
    bool stall = is_stall(outcome->status);
    bool permanent = tide_status_class(outcome->status) == TIDE_CLASS_PERMANENT;
    bool spent = permanent || outcome->attempts >= settings->attempts_max;
    bool owed = stalled_enough(badness, suspect, now_ms) || suspect->owed > 0 ||
                (suspect->varied && suspect->failures >= VARIED_FACTOR * settings->attempts_max);
    bool bad = spent && !stall && !suspect->varied;
    if (!owed && !bad)
        return verdict_later(badness, TIDE_ITEM_AGAIN, suspect, now_ms);

    /* BAD3: another item must have succeeded, and the account must not be in doubt. */
    bool others_succeed = badness->successes > suspect->successes_at;
    if (!others_succeed)
        probe_want(badness, false, now_ms);
    if (!others_succeed && held_long(badness, suspect, now_ms) && badness->incomparable &&
        !badness->suspicious && !badness->halted)
        return verdict_owed(badness, suspect, now_ms);
    if (!others_succeed || badness->suspicious || badness->halted) {
        TIDE_SEEN("badness: verdict held until others succeed");
        return verdict_later(badness, TIDE_ITEM_HELD, suspect, now_ms);
    }
    if (owed)
        return verdict_owed(badness, suspect, now_ms);
    if (!permanent && !errors_enough(badness, suspect, now_ms)) {
        TIDE_SEEN("badness: verdict held until the item has errors of its own");
        return verdict_later(badness, TIDE_ITEM_HELD, suspect, now_ms);
    }
    struct tide_badness_verdict verdict = {.kind = TIDE_ITEM_BAD, .failures = suspect->failures};
    suspect_forget(badness, outcome->item);
    return verdict;
}

/* The provider says that the item does not exist.  Signed in to the wrong account it would say
 * so of every item.  So this counts neither as success nor as failure, and is believed only when
 * another item succeeds (M6a). */
static struct tide_badness_verdict
absence_judge(tide_badness *badness, const struct tide_item_outcome *outcome, uint64_t now_ms)
{
    uint32_t at = NIL;
    struct suspect *suspect = tide_map_get(&badness->index, outcome->item, &at)
                                  ? &badness->suspects[at]
                                  : suspect_add(badness, outcome->item);
    good_forget(badness, outcome->item);
    suspect->status = outcome->status;
    suspect->failures += suspect->failures < UINT32_MAX;
    if (badness->successes > suspect->successes_at && !badness->suspicious && !badness->halted) {
        struct tide_badness_verdict verdict = {.kind = TIDE_ITEM_VANISHED};
        suspect_forget(badness, outcome->item);
        return verdict;
    }
    const bool long_enough = held_long(badness, suspect, now_ms);
    if (outcome->attempts >= badness->settings.attempts_max && long_enough && !badness->halted) {
        TIDE_SEEN("badness: an absence could not be proven");
        return verdict_owed(badness, suspect, now_ms);
    }
    probe_want(badness, false, now_ms);
    return verdict_later(badness, TIDE_ITEM_HELD, suspect, now_ms);
}

struct tide_badness_verdict
tide_badness_item(tide_badness *badness, const struct tide_item_outcome *outcome, uint64_t now_ms)
{
    TIDE_ASSERT(outcome->item != 0);
    struct tide_badness_verdict verdict = {.kind = TIDE_ITEM_BLAMELESS};
    switch (tide_status_class(outcome->status)) {
    case TIDE_CLASS_OK:
        verdict.kind = TIDE_ITEM_GOOD;
        window_push(badness, false);
        good_remember(badness, outcome->item);
        suspect_forget(badness, outcome->item);
        return verdict;
    case TIDE_CLASS_GONE:
        return absence_judge(badness, outcome, now_ms);
    case TIDE_CLASS_THROTTLED:
    case TIDE_CLASS_AUTH:
    case TIDE_CLASS_NETWORK:
    case TIDE_CLASS_DISK:
    case TIDE_CLASS_CANCELED:
        return verdict; /* BAD4 */
    case TIDE_CLASS_RETRY:
    case TIDE_CLASS_PERMANENT:
    case TIDE_CLASS_BUG:
        break;
    }
    struct suspect *suspect = error_note(badness, outcome, now_ms);
    if (outcome->retried)
        return verdict_later(badness, TIDE_ITEM_AGAIN, suspect, now_ms);
    failure_count(badness, suspect, outcome, now_ms);
    if (badness->row >= badness->settings.row_max ||
        badness->window_failed > badness->settings.window_failed_max)
        probe_want(badness, true, now_ms);
    return failure_judge(badness, suspect, outcome, now_ms);
}

static uint64_t again_at_ms(const tide_badness *badness, uint64_t now_ms)
{
    const uint64_t pause_ms = badness->settings.probe_again_ms;
    return pause_after(now_ms, pause_ms, DOUBLING, pause_ms, 1);
}

bool tide_badness_next(tide_badness *badness, uint64_t now_ms, struct tide_badness_order *order_out)
{
    struct tide_badness_order order = {
        .failed_in_a_row = badness->row,
        .failed_of_last = badness->window_failed,
    };
    if (badness->halted && !badness->halt_done && now_ms >= badness->halt_at_ms) {
        badness->halt_at_ms = again_at_ms(badness, now_ms); /* BAD6 */
        order.kind = TIDE_BADNESS_HALT;
    } else if (badness->probe != PROBE_NONE && now_ms >= badness->probe_at_ms) {
        badness->probe = PROBE_RUNNING;
        badness->probe_at_ms = again_at_ms(badness, now_ms);
        badness->probe_item = good_pick(badness);
        order.kind = TIDE_BADNESS_PROBE;
        order.item = badness->probe_item;
    } else {
        return false;
    }
    *order_out = order;
    return true;
}

uint64_t tide_badness_wake_at_ms(const tide_badness *badness)
{
    if (badness->halted)
        return badness->halt_done ? UINT64_MAX : badness->halt_at_ms;
    return badness->probe != PROBE_NONE ? badness->probe_at_ms : UINT64_MAX;
}

static void probe_end(tide_badness *badness)
{
    badness->probe = PROBE_NONE;
    badness->probe_item = 0;
    badness->suspicious = false;
}

static void halt(tide_badness *badness)
{
    TIDE_SEEN("badness: halt");
    probe_end(badness);
    badness->halted = true;
    badness->halt_done = false;
    badness->halt_at_ms = 0;
    badness->probe_at_ms = 0;
}

static void probe_later(tide_badness *badness, uint64_t now_ms)
{
    badness->probe_at_ms = again_at_ms(badness, now_ms);
}

void tide_badness_doubt(tide_badness *badness, uint64_t now_ms)
{
    probe_want(badness, false, now_ms);
}

void tide_badness_halted(tide_badness *badness)
{
    badness->halt_done = badness->halted;
}

void tide_badness_probed(tide_badness *badness, tide_status status, uint64_t now_ms)
{
    if (badness->probe != PROBE_RUNNING) /* the account was resumed meanwhile */
        return;
    tide_class class = tide_status_class(status);
    if (status == TIDE_OK) {
        badness->incomparable = false;
        if (badness->probe_item != 0)
            good_remember(badness, badness->probe_item);
        else
            badness->successes++;
        window_clear(badness);
        probe_end(badness);
        badness->probe_at_ms = now_ms; /* the next doubt may probe at once */
    } else if (status == TIDE_NOT_FOUND) {
        /* Nothing to compare with.  Many failures and no success: the account is at fault.  A
         * single item in an empty mailbox: it is owed and tried again later. */
        if (badness->suspicious) {
            halt(badness);
        } else {
            badness->incomparable = true;
            probe_end(badness);
            probe_later(badness, now_ms);
        }
    } else if (class == TIDE_CLASS_GONE) {
        good_forget(badness, badness->probe_item);
        badness->probe = PROBE_WANTED;
        badness->probe_at_ms = now_ms;
    } else if (class == TIDE_CLASS_PERMANENT || class == TIDE_CLASS_BUG ||
               (class == TIDE_CLASS_RETRY && badness->suspicious)) {
        halt(badness);
    } else { /* no answer, or a failing server while only a single item is in doubt */
        badness->probe = PROBE_WANTED;
        probe_later(badness, now_ms);
    }
}

void tide_badness_resumed(tide_badness *badness)
{
    probe_end(badness);
    window_clear(badness);
    badness->halted = false;
    badness->halt_done = false;
}

struct tide_badness_view tide_badness_view(const tide_badness *badness)
{
    return (struct tide_badness_view){
        .suspects = badness->count,
        .failed_in_a_row = badness->row,
        .failed_of_last = badness->window_failed,
        .suspicious = badness->probe != PROBE_NONE,
        .halted = badness->halted,
    };
}

void tide_badness_check(const tide_badness *badness)
{
    uint32_t count = 0, older = NIL;
    for (uint32_t at = badness->oldest; at != NIL; at = badness->suspects[at].newer) { /* BAD1 */
        uint32_t found = NIL;
        TIDE_ASSERT(badness->suspects[at].older == older);
        TIDE_ASSERT(tide_map_get(&badness->index, badness->suspects[at].item, &found));
        TIDE_ASSERT(found == at);
        TIDE_ASSERT(badness->suspects[at].failures > 0 || badness->suspects[at].errors > 0);
        older = at;
        count++;
        TIDE_ASSERT(count <= badness->settings.suspects_max);
    }
    TIDE_ASSERT(older == badness->newest);
    TIDE_ASSERT(count == badness->count);
    TIDE_ASSERT(badness->index.count == count);
    uint32_t unused = 0;
    for (uint32_t at = badness->free; at != NIL; at = badness->suspects[at].newer)
        unused++;
    TIDE_ASSERT(count + unused == badness->settings.suspects_max);

    uint32_t failed = 0;
    for (uint32_t i = 0; i < TIDE_BADNESS_WINDOW; i++)
        failed += badness->window[i];
    TIDE_ASSERT(failed == badness->window_failed); /* BAD2 */
    TIDE_ASSERT(!badness->halted || badness->probe == PROBE_NONE);
}
