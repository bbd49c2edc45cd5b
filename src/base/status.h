/* status.h - what can go wrong, and what to do about it: tidemark/status.h, which
 * programs see too, and what only we need. */
#ifndef TIDE_BASE_STATUS_H
#define TIDE_BASE_STATUS_H

#include "tidemark/status.h"

/* The status with that name, or TIDE_BUG. */
tide_status tide_status_from_name(const char *name);

#endif
