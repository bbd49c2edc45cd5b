/* check.h - what every answer of `tidemark serve` holds, whatever was asked. */
#ifndef TIDE_FUZZ_API_CHECK_H
#define TIDE_FUZZ_API_CHECK_H

#include "serve/http/answer.h"

/* Aborts, with the answer on standard error, if:
 *   - it is unfinished, or its status is none that docs/serve.md has; a 500 is a bug here, where
 *     neither memory nor a disk fails
 *   - JSON does not parse, or a problem has no code and no detail
 *   - a header has a control character
 *   - HTML or a file of a stranger comes without its policy, or HTML is not washed
 *   - it contains a secret of the home; or mail, for a key that may not read mail
 * `input` is all that was asked: what it has itself may be in the answer. */
void check_answer(const struct tide_httpd_request *request, tide_text input,
                  const struct tide_httpd_answer *answer);

#endif
