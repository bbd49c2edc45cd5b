/* status.h - statuses, their classes, and errors with a text.
 *
 * Everything that can fail returns a tide_status.  The name says what
 * happened; tide_status_class() says what follows from it.  Every decision
 * about retry, backoff or bad items asks that one function, so that two
 * callers never disagree about the same failure.
 *
 * A tide_error is a fixed struct owned by the caller.  Reporting never
 * allocates, so running out of memory can be reported too.  Its layout is fixed,
 * and so are the numbers; new ones are added at the end.
 */
#ifndef TIDEMARK_STATUS_H
#define TIDEMARK_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_status {
    TIDE_OK = 0,
    TIDE_NO_MEMORY = -1,   /* an allocation failed; nothing was changed */
    TIDE_INVALID = -2,     /* input breaks its contract; trying again cannot help */
    TIDE_FULL = -3,        /* a limit of the library was reached */
    TIDE_NOT_FOUND = -4,   /* the ledger, or a file of ours, does not have it */
    TIDE_EXISTS = -5,      /* it exists already */
    TIDE_STALE = -6,       /* a fencing token or an expected value no longer holds (E1.8) */
    TIDE_CANCELED = -7,    /* a user or the engine asked for this to end (E7.3) */
    TIDE_STOPPED = -8,     /* the engine or the world is shutting down */
    TIDE_TIMEOUT = -9,     /* no answer in time */
    TIDE_THROTTLED = -10,  /* the provider refused for its quota, or ours would be exceeded */
    TIDE_AUTH = -11,       /* sign-in is needed */
    TIDE_NETWORK = -12,    /* not connected; nothing is known to have reached the other side */
    TIDE_UNKNOWN = -13,    /* the connection died after sending: the outcome is unknown (E1.9) */
    TIDE_SERVER = -14,     /* the provider failed (5xx, garbage): worth another try */
    TIDE_GONE = -15,       /* the remote item does not exist (404, 410) */
    TIDE_PERMANENT = -16,  /* the provider refuses this request permanently */
    TIDE_IO = -17,         /* the operating system failed on a file or socket */
    TIDE_DISK_FULL = -18,  /* no room on the disk */
    TIDE_CORRUPT = -19,    /* stored bytes are not what was written */
    TIDE_NEWER = -20,      /* stored by a newer version of this program */
    TIDE_BUSY = -21,       /* another process holds it */
    TIDE_AGAIN = -22,      /* not now: come back at a named time, costs no attempt (E4.3a) */
    TIDE_SUPERSEDED = -23, /* the plan no longer holds; neither success nor failure */
    TIDE_BUG = -24,        /* an error in Tidemark itself */
} tide_status;

/* How the engine and its callers react to a status. */
typedef enum tide_class {
    TIDE_CLASS_OK,
    TIDE_CLASS_RETRY,     /* try this item again later; costs an attempt */
    TIDE_CLASS_THROTTLED, /* the account waits; costs no attempt (E7.2) */
    TIDE_CLASS_AUTH,      /* the account waits for a sign-in */
    TIDE_CLASS_NETWORK,   /* the account waits for the network */
    TIDE_CLASS_DISK,      /* the account waits for room on the disk */
    TIDE_CLASS_CANCELED,  /* canceled, stopped or claim lost; costs no attempt */
    TIDE_CLASS_GONE,      /* the item is gone: recorded, not bad (E6.2) */
    TIDE_CLASS_PERMANENT, /* fails at once */
    TIDE_CLASS_BUG,
} tide_class;

typedef struct tide_error {
    tide_status status;
    int code;       /* OS, HTTP or SQL code; 0 when there is none */
    char text[400]; /* what happened, to what; one line, always terminated */
} tide_error;

tide_class tide_status_class(tide_status status);

/* The name without its prefix, in lower case: "stale", "throttled". */
const char *tide_status_name(tide_status status);

/* Fills `err` (which may be NULL) and returns `status`, so that a failing
 * function can end in one line. */
tide_status tide_error_set(tide_error *err, tide_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for an errno value; the status follows from it (ENOSPC becomes
 * TIDE_DISK_FULL, ENOMEM becomes TIDE_NO_MEMORY). */
tide_status tide_error_os(tide_error *err, int os_error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif

#endif
