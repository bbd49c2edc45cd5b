/* shown.h - a server's text as far as errors may show it. */
#ifndef TIDE_NET_SHOWN_H
#define TIDE_NET_SHOWN_H

#include <stddef.h>

/* Copies `text` as one line without control characters, cut between characters.  The rest is left
 * out where one of `secrets` begins (case is ignored; the list ends with NULL). */
void tide_shown(const char *text, const char *const *secrets, char *shown_out, size_t room);

#endif
