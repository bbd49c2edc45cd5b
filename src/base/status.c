#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct status_row {
    tide_status status;
    tide_class class;
    const char *name;
};

static const struct status_row status_rows[] = {
    {TIDE_OK, TIDE_CLASS_OK, "ok"},
    {TIDE_NO_MEMORY, TIDE_CLASS_RETRY, "no_memory"},
    {TIDE_INVALID, TIDE_CLASS_PERMANENT, "invalid"},
    {TIDE_FULL, TIDE_CLASS_RETRY, "full"},
    {TIDE_NOT_FOUND, TIDE_CLASS_PERMANENT, "not_found"},
    {TIDE_EXISTS, TIDE_CLASS_PERMANENT, "exists"},
    {TIDE_STALE, TIDE_CLASS_CANCELED, "stale"},
    {TIDE_CANCELED, TIDE_CLASS_CANCELED, "canceled"},
    {TIDE_STOPPED, TIDE_CLASS_CANCELED, "stopped"},
    {TIDE_TIMEOUT, TIDE_CLASS_RETRY, "timeout"},
    {TIDE_THROTTLED, TIDE_CLASS_THROTTLED, "throttled"},
    {TIDE_AUTH, TIDE_CLASS_AUTH, "auth"},
    {TIDE_NETWORK, TIDE_CLASS_NETWORK, "network"},
    {TIDE_UNKNOWN, TIDE_CLASS_RETRY, "unknown"},
    {TIDE_SERVER, TIDE_CLASS_RETRY, "server"},
    {TIDE_GONE, TIDE_CLASS_GONE, "gone"},
    {TIDE_PERMANENT, TIDE_CLASS_PERMANENT, "permanent"},
    {TIDE_IO, TIDE_CLASS_RETRY, "io"},
    {TIDE_DISK_FULL, TIDE_CLASS_DISK, "disk_full"},
    {TIDE_CORRUPT, TIDE_CLASS_PERMANENT, "corrupt"},
    {TIDE_NEWER, TIDE_CLASS_PERMANENT, "newer"},
    {TIDE_BUSY, TIDE_CLASS_RETRY, "busy"},
    {TIDE_AGAIN, TIDE_CLASS_THROTTLED, "again"},
    {TIDE_SUPERSEDED, TIDE_CLASS_GONE, "superseded"},
    {TIDE_BUG, TIDE_CLASS_BUG, "bug"},
};

enum { STATUS_ROWS = sizeof status_rows / sizeof status_rows[0] };

tide_class tide_status_class(tide_status status)
{
    for (int i = 0; i < STATUS_ROWS; i++)
        if (status_rows[i].status == status)
            return status_rows[i].class;
    return TIDE_CLASS_BUG;
}

const char *tide_status_name(tide_status status)
{
    for (int i = 0; i < STATUS_ROWS; i++)
        if (status_rows[i].status == status)
            return status_rows[i].name;
    return "bug";
}

tide_status tide_status_from_name(const char *name)
{
    for (int i = 0; i < STATUS_ROWS; i++)
        if (strcmp(status_rows[i].name, name) == 0)
            return status_rows[i].status;
    return TIDE_BUG;
}

tide_status tide_error_set(tide_error *err, tide_status status, const char *format, ...)
{
    if (err == NULL)
        return status;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    err->status = status;
    err->code = 0;
    return status;
}

static tide_status status_of_os_error(int os_error)
{
    switch (os_error) {
    case ENOSPC:
    case EDQUOT:
        return TIDE_DISK_FULL;
    case ENOMEM:
        return TIDE_NO_MEMORY;
    case ENOENT:
        return TIDE_NOT_FOUND;
    case EEXIST:
        return TIDE_EXISTS;
    case ETIMEDOUT:
        return TIDE_TIMEOUT;
    case EAGAIN:
    case EBUSY:
        return TIDE_BUSY;
    default:
        return TIDE_IO;
    }
}

tide_status tide_error_os(tide_error *err, int os_error, const char *format, ...)
{
    tide_status status = status_of_os_error(os_error);
    if (err == NULL)
        return status;
    va_list args;
    va_start(args, format);
    int used = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof err->text) {
        char reason[120];
        const char *text = strerror_r(os_error, reason, sizeof reason);
        (void)snprintf(err->text + used, sizeof err->text - (size_t)used, ": %s", text);
    }
    err->status = status;
    err->code = os_error;
    return status;
}
