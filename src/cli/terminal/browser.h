/* browser.h - the user's web browser. */
#ifndef TIDE_CLI_BROWSER_H
#define TIDE_CLI_BROWSER_H

#include <stdbool.h>

/* Opens an address or a file in the browser that $BROWSER names, else in that of the desktop, and does
 * not wait for it.  false: it could not be started. */
bool cli_browser_open(const char *address);

#endif
