/* wrap.h - lines that fit a terminal: a terminal by itself breaks them within words. */
#ifndef TIDE_CLI_TERMINAL_WRAP_H
#define TIDE_CLI_TERMINAL_WRAP_H

#include "base/buf.h"

/* Adds `text` to `out` with lines of at most `columns` columns, broken at blanks.  What follows a break stands
 * under the last column of its line, or is indented by `indent` at least.  Not broken: words, what
 * is in `backquotes`, and a line that is a command, so that both can be copied. */
tide_status cli_wrap(tide_text text, unsigned columns, unsigned indent, tide_buf *out);

#endif
