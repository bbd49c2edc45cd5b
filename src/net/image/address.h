/* address.h - which addresses belong to the public internet.
 *
 * For requests whose URL a stranger wrote: they must not reach the machine itself, its network or
 * what a gateway would turn into one of these.  A host name proves nothing, so the address is asked
 * about when its socket is opened (tidemark/http.h, `may_connect`).
 *
 * IPv4: everything outside the special-purpose registry (RFC 6890), multicast and the reserved end.
 * IPv6: global unicast (2000::/3) without the special-purpose blocks in it.  So mapped (::ffff:0:0/96),
 * NAT64 (64:ff9b::/96, 64:ff9b:1::/48), unique-local, link-local and site-local addresses are out,
 * and so are 6to4 and Teredo, which contain an IPv4 address.  A NAT64 prefix that a provider took
 * from its own global addresses cannot be told from them. */
#ifndef TIDE_NET_IMAGE_ADDRESS_H
#define TIDE_NET_IMAGE_ADDRESS_H

#include <stdbool.h>

struct sockaddr;
/* false for every other family. */
bool tide_address_is_public(const struct sockaddr *address);

#endif
