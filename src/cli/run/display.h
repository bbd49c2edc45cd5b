/* display.h - shows the progress of running work on standard error.
 *
 * On a terminal a block is redrawn in place, each time with one write, and the cursor is hidden
 * only within that write: however this process ends, the terminal is left as it was.  Elsewhere it
 * prints a line every ten seconds; with --json an event per second (cli.h CLI2). */
#ifndef TIDE_CLI_RUN_DISPLAY_H
#define TIDE_CLI_RUN_DISPLAY_H

#include "cli/cli.h"
#include "cli/run/live.h"

struct cli_display {
    struct cli *cli;
    const char *system; /* "mail", for events */
    const struct cli_columns *of;
    bool terminal, color;
    uint64_t shown_ms;
    tide_buf drawn;   /* the block on the terminal */
    unsigned columns; /* it was drawn for */
};

void cli_display_open(struct cli *cli, const char *system, const struct cli_columns *of,
                      struct cli_display *display);
/* Shows it when due.  `fresh`: the numbers are new; `last`: now. */
void cli_display_show(struct cli_display *display, const struct cli_live *lives, size_t count,
                      bool handed_over, bool fresh, bool last);
void cli_display_close(struct cli_display *display);

#endif
