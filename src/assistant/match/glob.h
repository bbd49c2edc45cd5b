/* glob.h - "*.example.com": patterns of addresses and domains.
 *
 * '*' is any run of characters, also none and also across dots; '?' is one character; all others
 * stand for themselves, in either case.
 *
 * Invariant (tests/unit/assistant/assistant_match_test.c):
 *   GLB1  time is in proportion to pattern times text, whatever both say.
 */
#ifndef TIDE_ASSISTANT_MATCH_GLOB_H
#define TIDE_ASSISTANT_MATCH_GLOB_H

#include "base/text.h"

bool tide_glob_match(tide_text glob, tide_text text);
/* A glob with an '@' is for the whole address, one without for its domain. */
bool tide_glob_match_address(tide_text glob, tide_text address);

#endif
