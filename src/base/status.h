/* status.h - status codes and their classes: the public tidemark/status.h plus internal
 * functions. */
#ifndef TIDE_BASE_STATUS_H
#define TIDE_BASE_STATUS_H

#include "tidemark/status.h"

/* Returns from this function with the status of the expression unless it is TIDE_OK.  For functions
 * that have nothing to undo, or whose variables free themselves (tide_auto_buf, json_auto_t). */
#define TIDE_TRY(...)                                                                              \
    do {                                                                                           \
        const tide_status tide_try_rc = (__VA_ARGS__);                                             \
        if (tide_try_rc != TIDE_OK)                                                                \
            return tide_try_rc;                                                                    \
    } while (0)

/* The status with that name, or TIDE_BUG. */
tide_status tide_status_from_name(const char *name);

#endif
