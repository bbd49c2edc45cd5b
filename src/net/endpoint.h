/* endpoint.h - checks the address of a server that is not Google's: an emulator. */
#ifndef TIDE_NET_ENDPOINT_H
#define TIDE_NET_ENDPOINT_H

#include "base/status.h"
#include "base/text.h"

/* Checks that it is SCHEME://HOST[:PORT], with or without a slash at the end, and safe to send a
 * token to: https, or http on this machine.  TIDE_INVALID: the error says what is wrong. */
tide_status tide_endpoint_check(const char *endpoint, tide_error *err);
/* "HOST:PORT" of an address; borrowed. */
tide_text tide_endpoint_host(const char *url);

#endif
