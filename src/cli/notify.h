/* notify.h - tells the service manager how we are (sd_notify(3)), without its library.
 *
 * A datagram of lines goes to the socket that $NOTIFY_SOCKET names.  Without that
 * variable nothing is sent; nothing that goes wrong here is an error, because the
 * service manager notices by itself what it was not told.
 */
#ifndef TIDE_CLI_NOTIFY_H
#define TIDE_CLI_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* "READY=1\nSTATUS=..."; false: nobody was told. */
bool cli_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How often the service manager wants to hear WATCHDOG=1 from this process: half of what
 * it allows, in milliseconds; 0: never. */
uint64_t cli_notify_watchdog_ms(void);

#endif
