/* judge_google.h - maps Google's refusals to statuses (quota arrives as 403 or 429, 403 also means
 * no permission, and the time to wait is in the text).
 *
 * Shared by every Google API: branch on the reason in the body, never on the
 * status code alone.
 */
#ifndef TIDE_NET_GOOGLE_H
#define TIDE_NET_GOOGLE_H

#include "tidemark.h"
#include "world/world.h"

/* A tide_judge:
 *   2xx            TIDE_OK; TIDE_SERVER for an HTML page: a portal answered, not Google
 *   401            TIDE_AUTH, believed without a body
 *   404, 410       TIDE_GONE
 *   403 and 429 with a rate reason
 *                  TIDE_THROTTLED, with the time of "Retry after <ISO time>" (two spaces or
 *                  one), capped at a day; daily limits: until the next midnight in Pacific
 *                  time; the load quota of Search Console: 15 minutes.  A 429 is believed
 *                  without a body.
 *   other 403      TIDE_PERMANENT (err: reason and message)
 *   400            TIDE_SERVER for failedPrecondition (unless the account has no mail
 *                  service), else TIDE_PERMANENT
 *   408            TIDE_TIMEOUT
 *   503            TIDE_THROTTLED with Retry-After
 *   5xx, HTML pages and bodies that are not JSON
 *                  TIDE_SERVER, so that the 404 of a proxy never makes an item look gone
 * err->code is the HTTP code, or the limit that was hit where that is not the rate
 * (TIDE_REFUSED_CONCURRENCY, TIDE_REFUSED_BYTES).
 *
 * Pacific time is taken as UTC-8 all year: in summer that is an hour late, never
 * early.  A judge has no clock: times are compared with the answer's own Date, so a
 * wrong clock on this machine does not matter; without a Date a time in the text is
 * not used (0: the governor's backoff), and a daily limit waits an hour.
 *
 * The body must be in response->body, also of a call with a sink (net/api/call.h). */
tide_judge tide_google_judge;

/* Like tide_google_judge(), for a body in memory.  `now_unix_ms` turns a
 * time into a wait; 0: unknown.  Bodies over TIDE_GOOGLE_BODY_BYTES_MAX are not refusals of
 * Google. */
tide_status tide_google_judge_body(int http, tide_text body, uint64_t now_unix_ms,
                                   uint64_t *retry_after_ms_out, tide_error *err);

/* Whether the text of a TIDE_PERMANENT says that the sign-in does not cover the call (M15a):
 * only the owner can fix that. */
bool tide_google_lacks_scope(const char *text);

enum {
    TIDE_GOOGLE_BODY_BYTES_MAX = 256 << 10,
    TIDE_GOOGLE_WAIT_MS_MAX = 86400000,
};

#endif
