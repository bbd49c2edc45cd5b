#include "cli/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 600 };

bool cli_notify(const char *format, ...)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char message[MESSAGE_BYTES];
    /* "@name" is an abstract socket, whose name begins with a zero byte. */
    if (path == NULL || (path[0] != '/' && path[0] != '@') || path[1] == '\0' ||
        strlen(path) >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    va_list args;
    va_start(args, format);
    const int used = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (used <= 0)
        return false;
    const size_t bytes = (size_t)used < sizeof message ? (size_t)used : sizeof message - 1;
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    const socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    const ssize_t sent = sendto(fd, message, bytes, MSG_NOSIGNAL | MSG_DONTWAIT,
                                (const struct sockaddr *)&address, length);
    (void)close(fd);
    return sent == (ssize_t)bytes;
}

uint64_t cli_notify_watchdog_ms(void)
{
    const char *usec = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");
    if (usec == NULL || (pid != NULL && strtoull(pid, NULL, 10) != (unsigned long long)getpid()))
        return 0;
    return (uint64_t)strtoull(usec, NULL, 10) / 1000 / 2;
}
