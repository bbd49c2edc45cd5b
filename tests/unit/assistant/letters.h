/* letters.h - messages for the tests of the assistant. */
#ifndef TIDE_TESTS_ASSISTANT_LETTERS_H
#define TIDE_TESTS_ASSISTANT_LETTERS_H

#include "assistant/text/letter.h"
#include "base/json.h"
#include "support/ok.h"
#include "support/test.h"

/* Reads a raw message; everything lives as long as `arena`. */
static inline struct tide_letter letter_of(tide_arena *arena, const char *raw)
{
    struct tide_letter letter;
    OK(tide_letter_read(tide_text_of(raw), arena, &letter));
    return letter;
}

static inline void assert_says(tide_text text, const char *expected)
{
    if (!tide_text_equal(text, tide_text_of(expected)))
        fail_msg("got \"%.*s\"\nexpected \"%s\"", (int)text.bytes,
                 text.data == NULL ? "" : text.data, expected);
}

/* Valid UTF-8 without control characters but \n and \t; on one line, without these as well. */
static inline bool is_clean(tide_text text, bool line)
{
    for (size_t i = 0; i < text.bytes;) {
        const size_t bytes = tide_utf8_bytes((tide_text){text.data + i, text.bytes - i});
        const unsigned char c = (unsigned char)text.data[i];
        if (bytes == 0 || c == 0x7f || (c < ' ' && (line || (c != '\n' && c != '\t'))))
            return false;
        i += bytes;
    }
    return true;
}

#endif
