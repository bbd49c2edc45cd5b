/* pattern.h - regular expressions for headers (J8), with a bound on time and memory.
 *
 * The syntax is POSIX's extended one: . [a-z] [^a-z] [[:digit:]] ( ) | * + ? {m,n} ^ $, with \d \w
 * \s \b and their opposites, and a backslash before any sign.  Case is ignored.  What needs
 * backtracking, references to groups and looking around, is refused when the pattern is read.
 *
 * The C library's matcher is not used: it keeps every state it ever reached until the pattern is
 * freed, so that strangers' mail would decide how much memory a process has.  Here a pattern is a
 * program, and all its threads are run side by side over the text.
 *
 * Invariants (tests/unit/assistant/assistant_match_test.c):
 *   PTN1  a search takes at most TIDE_PATTERN_STEPS_MAX x TIDE_PATTERN_TEXT_BYTES_MAX steps and
 *         allocates nothing.  Of a longer text the front is searched.
 *   PTN2  it finds what POSIX's matcher finds.
 */
#ifndef TIDE_ASSISTANT_MATCH_PATTERN_H
#define TIDE_ASSISTANT_MATCH_PATTERN_H

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"

enum {
    TIDE_PATTERN_BYTES_MAX = 500, /* as written */
    TIDE_PATTERN_STEPS_MAX = 800, /* instructions, repetitions written out */
    TIDE_PATTERN_DEEP = 20,       /* groups in groups */
    TIDE_PATTERN_REPEAT_MAX = 100,
    TIDE_PATTERN_TEXT_BYTES_MAX = 4096,
};

typedef struct tide_pattern tide_pattern;

/* In `arena`.  TIDE_INVALID: `err` says what is wrong and where ("at character 5"). */
tide_status tide_pattern_new(tide_text source, tide_arena *arena, const tide_pattern **pattern_out,
                             tide_error *err);
/* Whether it is found anywhere in `text`. */
bool tide_pattern_search(const tide_pattern *pattern, tide_text text);

#endif
