/* limits.h - every ceiling in one place.
 *
 * Reaching one is a status (TIDE_FULL, TIDE_INVALID), never a crash.  These are bounds
 * of the code; values a user may tune are settings (E11), bounded by these.
 */
#ifndef TIDE_BASE_LIMITS_H
#define TIDE_BASE_LIMITS_H

#include <assert.h>

enum {
    TIDE_WINDOW_JOBS_MAX = 10000, /* tracker (E2.1) */
    TIDE_ACCOUNTS_MAX = 4096,     /* known to one process */
    TIDE_KINDS_MAX = 64,          /* registered in one process */
    TIDE_WORKERS_MAX = 64,        /* threads that run handlers */
    TIDE_LANES = 2,               /* interactive, bulk (E3.1) */
    TIDE_PRIORITY_MAX = 100,      /* E3.2 */
    TIDE_LIMITS_PER_ACCOUNT = 4,  /* windows one call may be charged to (E4.1) */
    TIDE_CYCLES_OPEN_MAX = 65536, /* of one stream (E5) */
    TIDE_STREAMS_MAX = 4096,      /* with open cycles in one process */
    TIDE_PAYLOAD_BYTES_MAX = 1 << 20,
    TIDE_RESUME_BYTES_MAX = 64 << 10,
    TIDE_DEDUPE_BYTES_MAX = 512,
    TIDE_NAME_BYTES_MAX = 200, /* accounts, kinds, streams */
    TIDE_ERROR_TEXT_BYTES_MAX = 400,
    TIDE_NEEDS_MAX = 1000,      /* dependencies of one job */
    TIDE_CHILDREN_MAX = 100000, /* jobs one handler may create */
    TIDE_ITEMS_MAX = 10000,     /* items in one job */
    TIDE_ITEM_BYTES_MAX = 1024,
    TIDE_ENQUEUE_SLICE = 500,      /* rows per bulk insert (E2.5) */
    TIDE_PURGE_SLICE = 500,        /* rows per purge step (E2.5) */
    TIDE_CLAIM_MAX = 512,          /* claims in one transaction */
    TIDE_WINDOW_ENTRIES = 1024,    /* distinct expiries in one sliding window (E4.1) */
    TIDE_WINDOW_SAVED_MAX = 64,    /* of them in a snapshot (E4.3b) */
    TIDE_METHODS_MAX = 32,         /* API methods with a latency of their own (E4.2) */
    TIDE_SAVES_OPEN_MAX = 8,       /* snapshots taken and not yet durable (E4.3b) */
    TIDE_BANDWIDTH_SPANS_MAX = 32, /* rows of a bandwidth schedule (E4.7) */
    TIDE_EDGES_MAX = 1 << 20,      /* dependencies inside one batch of new jobs (E2.2) */
    TIDE_SUSPECTS_MAX = 4096,      /* failing items under watch, per account (E6.2) */
    TIDE_SCHEDULES_MAX = 1024,     /* periodic entries of one process (E8.1) */

    TIDE_CALLS_MAX = 1024,           /* HTTP calls running in one process */
    TIDE_CALLS_IDLE_MAX = 32,        /* call objects kept for the next call */
    TIDE_CONNECTIONS_KEPT_MAX = 128, /* idle connections kept alive */
    TIDE_RING_BYTES = 256 << 10,     /* of a body between the network and its sink */
    TIDE_HEAD_BYTES_MAX = 64 << 10,  /* status line and headers of one answer */
    TIDE_REQUEST_HEADERS_MAX = 64,
    TIDE_REQUEST_HEADER_BYTES_MAX = 16 << 10, /* one line */
    TIDE_URL_BYTES_MAX = 32 << 10,
    TIDE_BODY_BYTES_DEFAULT = 16 << 20,      /* of an answer, unless the request allows more */
    TIDE_LOCK_LINE_BYTES_MAX = 256,          /* the line that names the holder of a file lock */
    TIDE_SOCKET_PEERS_MAX = 32,              /* connections to the control socket */
    TIDE_SOCKET_LINE_BYTES_MAX = 1 << 20,    /* of a request */
    TIDE_SOCKET_ANSWER_BYTES_MAX = 64 << 20, /* of a line of an answer */
    TIDE_SOCKET_SEND_TIMEOUT_MS = 10000,     /* a client must take a line within it */
    TIDE_LOOPBACK_PEERS_MAX = 8,             /* browsers open connections they never use */
    TIDE_LOOPBACK_HEAD_BYTES_MAX = 32 << 10,
};

static_assert(TIDE_CLAIM_MAX < TIDE_WINDOW_JOBS_MAX / 2, "a claim never empties the window");
static_assert(TIDE_WORKERS_MAX < TIDE_CLAIM_MAX, "one claim can feed every worker");
static_assert(TIDE_WORKERS_MAX * 4 <= TIDE_CALLS_MAX, "every worker can have calls running");

#endif
