/* alerts_saved.c - the windows of the alerts as text, for the next process (E6.4).
 *
 * Numbers with a space between them:
 *   version at_unix_ms
 *   for each condition: level since_unix_ms
 *   metadata_bytes
 *   window_items at seen, the count of words that are not 0, and for each: index word
 *   for each of bad, calls and refused: window_ms, the count of slots that are not 0, and for
 *   each: its age in steps, its count
 * An age in steps needs no common clock: the next process has another monotonic one. */
#include "core/alerts/alerts_record.h"
#include "base/check.h"

#include <inttypes.h>

enum { VERSION = 1 };

/* ---- saving ---------------------------------------------------------------------- */

static tide_status print_bits(const struct tide_alert_record *record, tide_buf *text)
{
    uint32_t words = 0;
    for (uint32_t i = 0; i < TIDE_ALERT_WORDS; i++)
        words += record->bits[i] != 0;
    tide_status rc = tide_buf_print(text, " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32,
                                    record->settings.bad_window_items, record->bits_at,
                                    record->bits_seen, words);
    for (uint32_t i = 0; rc == TIDE_OK && i < TIDE_ALERT_WORDS; i++)
        if (record->bits[i] != 0)
            rc = tide_buf_print(text, " %" PRIu32 " %" PRIu64, i, record->bits[i]);
    return rc;
}

static tide_status print_series(const struct tide_alert_series *series, uint64_t window_ms,
                                uint64_t now_ms, tide_buf *text)
{
    /* Steps that passed since the newest slot count as well. */
    const uint64_t step = now_ms / (window_ms / TIDE_ALERT_STEPS);
    const uint64_t passed = step > series->step ? step - series->step : 0;
    uint32_t slots = 0;
    for (uint32_t i = 0; i < TIDE_ALERT_SLOTS; i++)
        slots += series->slots[i] != 0;
    tide_status rc = tide_buf_print(text, " %" PRIu64 " %" PRIu32, window_ms, slots);
    for (uint32_t i = 0; rc == TIDE_OK && i < TIDE_ALERT_SLOTS; i++) {
        const uint64_t newest = series->step % TIDE_ALERT_SLOTS;
        const uint64_t age = (newest + TIDE_ALERT_SLOTS - i) % TIDE_ALERT_SLOTS;
        if (series->slots[i] != 0)
            rc = tide_buf_print(text, " %" PRIu64 " %" PRIu32, age + passed, series->slots[i]);
    }
    return rc;
}

tide_status tide_alerts_save(const tide_alerts *alerts, uint64_t account, uint64_t now_ms,
                             uint64_t now_unix_ms, tide_buf *text)
{
    const size_t bytes_before = text->bytes;
    uint32_t at = 0;
    if (account == 0 || !tide_map_get(&alerts->places, account, &at))
        return TIDE_NOT_FOUND;
    const struct tide_alert_record *record = &alerts->records[at];
    const struct tide_alerts_settings *settings = &record->settings;
    tide_status rc = tide_buf_print(text, "%d %" PRIu64, VERSION, now_unix_ms);
    for (int i = 0; rc == TIDE_OK && i < TIDE_CONDITIONS; i++) {
        const uint64_t held_ms =
            now_ms > record->since_ms[i] ? now_ms - record->since_ms[i] : (uint64_t)0;
        const uint64_t since = now_unix_ms > held_ms ? now_unix_ms - held_ms : (uint64_t)0;
        rc = tide_buf_print(text, " %d %" PRIu64, (int)record->levels[i],
                            record->levels[i] == TIDE_LEVEL_NONE ? (uint64_t)0 : since);
    }
    if (rc == TIDE_OK)
        rc = tide_buf_print(text, " %" PRIu64, record->metadata_bytes);
    if (rc == TIDE_OK)
        rc = print_bits(record, text);
    if (rc == TIDE_OK)
        rc = print_series(&record->bad, settings->bad_hour_ms, now_ms, text);
    if (rc == TIDE_OK)
        rc = print_series(&record->calls, settings->throttled_window_ms, now_ms, text);
    if (rc == TIDE_OK)
        rc = print_series(&record->refused, settings->throttled_window_ms, now_ms, text);
    if (rc != TIDE_OK && text->data != NULL) { /* all or nothing */
        text->bytes = bytes_before;
        text->data[bytes_before] = '\0';
    }
    return rc;
}

/* ---- restoring ------------------------------------------------------------------- */

struct restoring {
    tide_text rest;
    const struct tide_alerts_settings *settings;
    uint64_t now_ms;
    uint64_t elapsed_ms; /* since it was saved, by the wall clock */
};

static bool read_levels(struct restoring *from, struct tide_alert_record *record,
                        uint64_t saved_unix_ms)
{
    for (int i = 0; i < TIDE_CONDITIONS; i++) {
        uint64_t level = 0, since = 0;
        if (!tide_text_number(&from->rest, &level) || !tide_text_number(&from->rest, &since) ||
            level > TIDE_LEVEL_CRITICAL || since > saved_unix_ms)
            return false;
        const uint64_t held_ms = saved_unix_ms - since + from->elapsed_ms;
        record->levels[i] = record->told[i] = (enum tide_level)level;
        if (level != TIDE_LEVEL_NONE)
            record->since_ms[i] = from->now_ms > held_ms ? from->now_ms - held_ms : 1;
    }
    return tide_text_number(&from->rest, &record->metadata_bytes);
}

static bool read_bits(struct restoring *from, struct tide_alert_record *record)
{
    uint64_t items = 0, at = 0, seen = 0, words = 0;
    if (!tide_text_number(&from->rest, &items) || !tide_text_number(&from->rest, &at) ||
        !tide_text_number(&from->rest, &seen) || !tide_text_number(&from->rest, &words) ||
        items == 0 || items > TIDE_ALERT_ITEMS_MAX || at >= items || seen > items ||
        words > TIDE_ALERT_WORDS)
        return false;
    const bool same = items == from->settings->bad_window_items;
    for (; words > 0; words--) {
        uint64_t index = 0, word = 0;
        if (!tide_text_number(&from->rest, &index) || !tide_text_number(&from->rest, &word) ||
            index >= TIDE_ALERT_WORDS || record->bits[index] != 0)
            return false;
        /* A bit past the last item seen would count forever. */
        const uint64_t first = index * TIDE_ALERT_WORD_BITS;
        const uint64_t in_word = seen > first ? seen - first : 0;
        if (in_word < TIDE_ALERT_WORD_BITS && word >> in_word != 0)
            return false;
        record->bits[index] = same ? word : 0;
        record->bits_bad += same ? (uint32_t)__builtin_popcountll(word) : 0;
    }
    record->bits_at = same ? (uint32_t)at : 0;
    record->bits_seen = same ? (uint32_t)seen : 0;
    return true;
}

static bool read_series(struct restoring *from, uint64_t window_ms,
                        struct tide_alert_series *series)
{
    uint64_t saved_window_ms = 0, slots = 0;
    if (!tide_text_number(&from->rest, &saved_window_ms) ||
        !tide_text_number(&from->rest, &slots) || slots > TIDE_ALERT_SLOTS)
        return false;
    const uint64_t step_ms = window_ms / TIDE_ALERT_STEPS;
    const uint64_t passed = from->elapsed_ms / step_ms;
    series->step = from->now_ms / step_ms;
    for (; slots > 0; slots--) {
        uint64_t age = 0, count = 0;
        if (!tide_text_number(&from->rest, &age) || !tide_text_number(&from->rest, &count) ||
            count > UINT32_MAX)
            return false;
        if (saved_window_ms != window_ms || age >= TIDE_ALERT_SLOTS ||
            passed >= TIDE_ALERT_SLOTS - age)
            continue;
        const uint64_t newest = series->step % TIDE_ALERT_SLOTS;
        uint32_t *slot =
            &series->slots[(newest + TIDE_ALERT_SLOTS - age - passed) % TIDE_ALERT_SLOTS];
        if (*slot != 0)
            return false; /* twice the same age */
        *slot = (uint32_t)count;
        series->sum += count;
    }
    return true;
}

tide_status tide_alerts_restore(tide_alerts *alerts, uint64_t account, tide_text saved,
                                uint64_t now_ms, uint64_t now_unix_ms)
{
    struct tide_alert_record record = {.account = account, .settings = alerts->settings};
    const struct tide_alerts_settings *settings = &record.settings;
    struct restoring from = {.rest = saved, .settings = settings, .now_ms = now_ms};
    uint32_t at = 0;
    if (tide_map_get(&alerts->places, account, &at)) {
        record.settings = alerts->records[at].settings;
        record.own = alerts->records[at].own;
    }
    uint64_t version = 0, saved_unix_ms = 0;
    if (!tide_text_number(&from.rest, &version) || version == 0)
        return TIDE_CORRUPT;
    if (version > VERSION)
        return TIDE_NEWER;
    if (!tide_text_number(&from.rest, &saved_unix_ms))
        return TIDE_CORRUPT;
    from.elapsed_ms = now_unix_ms > saved_unix_ms ? now_unix_ms - saved_unix_ms : 0;
    if (!read_levels(&from, &record, saved_unix_ms) || !read_bits(&from, &record) ||
        !read_series(&from, settings->bad_hour_ms, &record.bad) ||
        !read_series(&from, settings->throttled_window_ms, &record.calls) ||
        !read_series(&from, settings->throttled_window_ms, &record.refused) || from.rest.bytes > 0)
        return TIDE_CORRUPT;
    struct tide_alert_record *known = NULL;
    tide_status rc = tide_alerts_record(alerts, account, &known);
    if (rc != TIDE_OK)
        return rc;
    for (int i = 0; i < TIDE_CONDITIONS; i++)
        alerts->untold -= known->told[i] != known->levels[i];
    *known = record;
    alerts->now_ms = now_ms > alerts->now_ms ? now_ms : alerts->now_ms;
    tide_alerts_judge(alerts, known);
    return TIDE_OK;
}

tide_status tide_alerts_shown(tide_alerts *alerts, uint64_t account, enum tide_condition condition,
                              enum tide_level level, uint64_t now_ms)
{
    struct tide_alert_record *record = NULL;
    TIDE_ASSERT(condition < TIDE_CONDITIONS);
    tide_status rc = tide_alerts_record(alerts, account, &record);
    if (rc != TIDE_OK)
        return rc;
    tide_alerts_told_set(alerts, record, condition, level);
    alerts->now_ms = now_ms > alerts->now_ms ? now_ms : alerts->now_ms;
    tide_alerts_judge(alerts, record);
    return TIDE_OK;
}
