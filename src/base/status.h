/* status.h - status codes and their classes: the public tidemark/status.h plus internal
 * functions. */
#ifndef TIDE_BASE_STATUS_H
#define TIDE_BASE_STATUS_H

#include "tidemark/status.h"

/* The status with that name, or TIDE_BUG. */
tide_status tide_status_from_name(const char *name);

#endif
