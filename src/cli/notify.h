/* notify.h - reports our state to the service manager (sd_notify(3)), without its library.
 *
 * Sends a datagram of lines to the socket that $NOTIFY_SOCKET names.  Without that
 * variable nothing is sent; failures here are not errors, because the service manager
 * notices a missing report by itself.
 */
#ifndef TIDE_CLI_NOTIFY_H
#define TIDE_CLI_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* "READY=1\nSTATUS=..."; false: nothing was sent. */
bool cli_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How often this process must send WATCHDOG=1: half of what the service manager allows, in
 * milliseconds; 0: never. */
uint64_t cli_notify_watchdog_ms(void);

#endif
