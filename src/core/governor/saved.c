#include "core/governor/saved.h"

#include <inttypes.h>

/* "2 at_unix at unrecorded rate workers concurrency until why day_max", then for each
 * of the two windows "in_flight count" and the pairs "expiry units".  Version 1 had no
 * "at". */
enum { VERSION = 2 };

static tide_status window_print(const struct tide_window_saved *window, tide_buf *text)
{
    tide_status rc =
        tide_buf_print(text, " %" PRIu64 " %" PRIu32, window->in_flight, window->count);
    for (uint32_t i = 0; rc == TIDE_OK && i < window->count; i++)
        rc = tide_buf_print(text, " %" PRIu64 " %" PRIu64, window->entries[i].expires_unix_ms,
                            window->entries[i].units);
    return rc;
}

tide_status tide_governor_saved_print(const struct tide_governor_saved *saved, tide_buf *text)
{
    const size_t bytes_before = text->bytes;
    tide_status rc =
        tide_buf_print(text,
                       "%d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                       " %" PRIu64 " %" PRId64 " %" PRIu64,
                       VERSION, saved->at_unix_ms, saved->at_ms, saved->unrecorded_units,
                       saved->rate_milli, saved->workers, saved->concurrency,
                       saved->paused_until_unix_ms, saved->paused_why, saved->day_bytes_max);
    if (rc == TIDE_OK)
        rc = window_print(&saved->window, text);
    if (rc == TIDE_OK)
        rc = window_print(&saved->day, text);
    if (rc != TIDE_OK && text->data != NULL) { /* all or nothing */
        text->bytes = bytes_before;
        text->data[bytes_before] = '\0';
    }
    return rc;
}

static bool window_parse(tide_text *rest, struct tide_window_saved *window)
{
    uint64_t count = 0;
    if (!tide_text_number(rest, &window->in_flight) || !tide_text_number(rest, &count) ||
        count > TIDE_WINDOW_SAVED_MAX)
        return false;
    window->count = (uint32_t)count;
    for (uint32_t i = 0; i < window->count; i++)
        if (!tide_text_number(rest, &window->entries[i].expires_unix_ms) ||
            !tide_text_number(rest, &window->entries[i].units))
            return false;
    return true;
}

tide_status tide_governor_saved_parse(tide_text text, struct tide_governor_saved *saved_out)
{
    struct tide_governor_saved saved = {0};
    tide_text rest = text;
    uint64_t version = 0;
    if (!tide_text_number(&rest, &version) || version == 0)
        return TIDE_CORRUPT;
    if (version > VERSION)
        return TIDE_NEWER;
    if (!tide_text_number(&rest, &saved.at_unix_ms) ||
        (version > 1 && !tide_text_number(&rest, &saved.at_ms)) ||
        !tide_text_number(&rest, &saved.unrecorded_units) ||
        !tide_text_number(&rest, &saved.rate_milli) || !tide_text_number(&rest, &saved.workers) ||
        !tide_text_number(&rest, &saved.concurrency) ||
        !tide_text_number(&rest, &saved.paused_until_unix_ms) ||
        !tide_text_to_i64(tide_text_word(&rest), &saved.paused_why) ||
        !tide_text_number(&rest, &saved.day_bytes_max))
        return TIDE_CORRUPT;
    if (!window_parse(&rest, &saved.window) || !window_parse(&rest, &saved.day) || rest.bytes > 0)
        return TIDE_CORRUPT;
    *saved_out = saved;
    return TIDE_OK;
}
