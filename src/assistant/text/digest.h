/* digest.h - mail as JSON for a model, within a ceiling.
 *
 * Invariants:
 *   DGS1  texts are cut between characters, and an object says so ("cut": true).
 *   DGS2  the newest messages come first; those that do not fit are counted ("left_out").
 */
#ifndef TIDE_ASSISTANT_TEXT_DIGEST_H
#define TIDE_ASSISTANT_TEXT_DIGEST_H

#include "assistant/text/letter.h"
#include "base/json.h"

enum {
    TIDE_DIGEST_THREAD_MAX = 100,  /* messages of one thread */
    TIDE_DIGEST_LINE_BYTES = 1000, /* of a header */
};

/* The front of a text, at most `chars` characters. */
tide_text tide_chars_cut(tide_text text, size_t chars);

/* {"from", "to", "cc", "subject", "date", "text", "cut"}: one message, repeated text taken out if
 * `stripped`. */
tide_status tide_digest_letter(const struct tide_letter *letter, size_t chars, bool stripped,
                               tide_json *json_out);
/* {"messages": [{"from", "date", "text"}], "left_out": 3}: a thread, newest first, of which all
 * texts together have at most `chars` characters.  `letters` are oldest first, as Gmail has them. */
tide_status tide_digest_thread(const struct tide_letter *letters, size_t count, size_t chars,
                               tide_json *json_out);

#endif
