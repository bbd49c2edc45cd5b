/* google.h - what Google's refusals mean (api facts: quota arrives as 403 or 429,
 * 403 also means no permission, and the time to wait stands in the text).
 *
 * Shared by every Google API: branch on the reason in the body, never on the
 * status code alone.
 */
#ifndef TIDE_NET_GOOGLE_H
#define TIDE_NET_GOOGLE_H

#include "tidemark.h"
#include "world/world.h"

/* A tide_judge:
 *   2xx TIDE_OK; 401 TIDE_AUTH; 404, 410 TIDE_GONE;
 *   403 and 429 with a rate reason TIDE_THROTTLED, with the time of "Retry after
 *   <ISO time>" (two spaces or one), capped at a day; daily limits: until the
 *   next midnight in Pacific time; 403 otherwise TIDE_PERMANENT (err: reason and
 *   message); 400 failedPrecondition TIDE_SERVER, other 400 TIDE_PERMANENT;
 *   5xx, HTML pages and bodies that are no JSON TIDE_SERVER. */
tide_judge tide_google_judge;

/* The same for one part of a batch or a body that is at hand. `now_unix_ms` to
 * turn a time into a wait. */
tide_status tide_google_judge_body(int http, tide_text body, uint64_t now_unix_ms,
                                   uint64_t *retry_after_ms_out, tide_error *err);

#endif
