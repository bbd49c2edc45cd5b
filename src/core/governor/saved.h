/* saved.h - the state a governor saves for the next process (E4.3b), stored as one line of text.
 *
 * The text is read from a database and validated: a damaged one is TIDE_CORRUPT, one
 * of a newer version TIDE_NEWER.
 */
#ifndef TIDE_CORE_GOVERNOR_SAVED_H
#define TIDE_CORE_GOVERNOR_SAVED_H

#include "base/buf.h"
#include "base/text.h"
#include "core/governor/window.h"

struct tide_governor_saved {
    uint64_t at_ms; /* since boot; 0: saved by version 1, which had none */
    uint64_t at_unix_ms;
    uint64_t unrecorded_units; /* that may have been sent after this was saved */
    uint64_t rate_milli;       /* thousandths of a unit per second */
    uint64_t workers;
    uint64_t concurrency;          /* learned; 0: none */
    uint64_t paused_until_unix_ms; /* 0: not paused */
    int64_t paused_why;            /* a tide_status */
    uint64_t day_bytes_max;        /* learned; 0: none */
    struct tide_window_saved window;
    struct tide_window_saved day; /* bytes */
};

tide_status tide_governor_saved_print(const struct tide_governor_saved *saved, tide_buf *text);
tide_status tide_governor_saved_parse(tide_text text, struct tide_governor_saved *saved_out);

#endif
