/* browser.h - the user's web browser: what $BROWSER names, else that of the desktop.
 *
 * BROWSER is one or more commands, separated by colons: the first whose program is there counts.  A
 * command may have arguments; the address takes the place of %s in it, or else its end. */
#ifndef TIDE_CLI_BROWSER_H
#define TIDE_CLI_BROWSER_H

#include <stdbool.h>

typedef enum cli_browser {
    CLI_BROWSER_NONE,   /* there is none, or no display for it */
    CLI_BROWSER_WINDOW, /* has a window of its own */
    CLI_BROWSER_TEXT,   /* such as w3m: needs this terminal */
} cli_browser;

/* Which one would be opened. */
cli_browser cli_browser_look(void);
/* The same for a page that ends on this machine, where the user must sit: NONE also in a session of ssh,
 * unless $BROWSER is set there. */
cli_browser cli_browser_here(void);
/* Opens an address or a file, in a window without waiting for it, as text until the user quits it.
 * false: it could not be started. */
bool cli_browser_open(const char *address);

#endif
