/* judge_graph.h - maps refusals of Microsoft Graph to statuses, and says which refusal it was.
 *
 * Graph nests its errors; the deepest code that is known decides, the message never does.
 * A refusal without Graph's envelope is one of a portal or a proxy: it never makes an item look
 * gone, taken or forbidden.
 *
 *   2xx            TIDE_OK; TIDE_SERVER for an HTML page
 *   401            TIDE_AUTH, believed without a body
 *   404, 410       TIDE_GONE; a 410 names the kind of resync (D34)
 *   409            TIDE_EXISTS if the name is taken, else TIDE_PERMANENT
 *   412, 409 of a modified item
 *                  TIDE_SUPERSEDED: If-Match no longer holds (S10, D36)
 *   413, 507       TIDE_DISK_FULL: the account waits (D37); a file that is too large for the
 *                  service: TIDE_PERMANENT
 *   423            TIDE_BUSY: open elsewhere (D37)
 *   429, 509, throttling codes under any HTTP code, 503 with a time to wait
 *                  TIDE_THROTTLED with Retry-After (seconds, or a date that is compared with the
 *                  answer's own Date), else RateLimit-Reset if RateLimit-Remaining is 0; a day at
 *                  most.  429 and 509 are believed without a body.
 *   408            TIDE_TIMEOUT
 *   5xx, HTML pages, bodies that are not JSON
 *                  TIDE_SERVER
 *   other 4xx      TIDE_PERMANENT
 *
 * err->code is the HTTP code (TIDE_REFUSED_BYTES for a limit on bytes), and err->text begins
 * "the server answered 409 nameAlreadyExists: ...". */
#ifndef TIDE_NET_JUDGE_GRAPH_H
#define TIDE_NET_JUDGE_GRAPH_H

#include "tidemark.h"
#include "world/world.h"

/* A tide_judge of the API's answers. */
tide_judge tide_graph_judge;

/* A tide_judge of answers of upload and download URLs, which are signed by themselves and may be on
 * other hosts.  Differences: 401, 403, 404 and 410 are TIDE_GONE, whatever the body: the URL no
 * longer works, which says nothing about the sign-in or the item (D37, D41).  HTML in a 2xx answer is
 * content.  Other codes are believed without Graph's envelope. */
tide_judge tide_graph_url_judge;

/* Which refusal an error of these judges is about. */
typedef enum tide_graph_reason {
    TIDE_GRAPH_OTHER, /* also: not an error of these judges */
    TIDE_GRAPH_NOT_FOUND,
    TIDE_GRAPH_DENIED,     /* no permission: read-only, or not shared */
    TIDE_GRAPH_NAME_TAKEN, /* D19, D30 */
    TIDE_GRAPH_MODIFIED,   /* If-Match no longer holds */
    TIDE_GRAPH_LOCKED,     /* open elsewhere */
    TIDE_GRAPH_FULL,       /* no room online */
    TIDE_GRAPH_TOO_LARGE,  /* one file */
    TIDE_GRAPH_RANGE,      /* a fragment or a range does not fit: ask the session (D37) */
    TIDE_GRAPH_NAME_BAD,   /* D27 */
    TIDE_GRAPH_MALWARE,    /* D16 */
    TIDE_GRAPH_RESYNC,     /* 410 without detail (D34) */
    TIDE_GRAPH_RESYNC_APPLY,
    TIDE_GRAPH_RESYNC_UPLOAD,
} tide_graph_reason;
/* Read from the beginning of the text, so that it also works for an error that was prefixed, passed
 * through a batch, or stored. */
tide_graph_reason tide_graph_reason_of(const tide_error *err);

enum {
    TIDE_GRAPH_BODY_BYTES_MAX = 64 << 10, /* longer ones are not Graph's */
    TIDE_GRAPH_WAIT_MS_MAX = 86400000,
};

#endif
