/* verdict.h - what a model answered, read strictly.
 *
 * A model was shown mail of strangers, so its answer is data as well: only values of closed lists
 * leave this module, and texts that are bounded and clean.  The JSON may stand alone, in a code
 * fence or among words.  An answer that says two different things is not used.
 *
 * Invariants:
 *   VRD1  TIDE_OK: category is one of the five, confidence one of three, style an index of the given
 *         list or TIDE_STYLE_NONE, language like "cs" or "pt-BR", reasoning one clean line.
 *   VRD2  time is in proportion to TIDE_VERDICT_BYTES_MAX x TIDE_VERDICT_TRIES_MAX at most.
 */
#ifndef TIDE_ASSISTANT_TEXT_VERDICT_H
#define TIDE_ASSISTANT_TEXT_VERDICT_H

#include "assistant/words/status.h"
#include "base/buf.h"

typedef enum tide_confidence {
    TIDE_CONFIDENCE_LOW,
    TIDE_CONFIDENCE_MEDIUM,
    TIDE_CONFIDENCE_HIGH,
} tide_confidence;
const char *tide_confidence_name(tide_confidence confidence);

enum {
    TIDE_STYLE_NONE = -1,
    TIDE_VERDICT_BYTES_MAX = 64 << 10, /* of an answer; a longer one is not used */
    TIDE_VERDICT_TRIES_MAX = 32,       /* objects that are looked at */
    TIDE_REASONING_BYTES_MAX = 600,
    TIDE_LANGUAGE_BYTES_MAX = 12,
    TIDE_SEARCHES_MAX = 3, /* J11 */
    TIDE_SEARCH_BYTES_MAX = 300,
};

struct tide_verdict {
    tide_assistant_category category;
    tide_confidence confidence;
    int style;
    char language[TIDE_LANGUAGE_BYTES_MAX + 1]; /* "": not said */
    char reasoning[TIDE_REASONING_BYTES_MAX + 1];
};

/* The answer to a classification (J10).  TIDE_INVALID: not usable, `err` says why. */
tide_status tide_verdict_read(tide_text answer, const tide_text *styles, size_t styles_count,
                              struct tide_verdict *verdict_out, tide_error *err);

struct tide_searches {
    char queries[TIDE_SEARCHES_MAX][TIDE_SEARCH_BYTES_MAX + 1];
    size_t count;
};
/* The answer to a request for searches: {"searches": ["...", ...]} or the list alone.  More than
 * `count_max` are dropped, so are empty ones and repetitions.  TIDE_INVALID: not usable. */
tide_status tide_searches_read(tide_text answer, size_t count_max,
                               struct tide_searches *searches_out, tide_error *err);

#endif
