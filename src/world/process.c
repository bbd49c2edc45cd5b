#include "world/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool tide_process_is_stopped(long pid)
{
    char path[64];
    char text[256] = "";
    if (pid <= 0)
        return false;
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        (void)close(fd);
    /* "PID (NAME) STATE ...": a name may hold brackets. */
    const char *close_bracket = count <= 0 ? NULL : strrchr(text, ')');
    return close_bracket != NULL && close_bracket[1] == ' ' &&
           (close_bracket[2] == 'T' || close_bracket[2] == 't');
}
