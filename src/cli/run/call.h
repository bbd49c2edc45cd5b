/* call.h - runs a command inside this process, as a user runs it in a terminal.
 *
 * A resident process uses it for what a command already does: the API answers with the object that
 * --json prints, and a schedule runs the command that the user gave.  The command hands its work over
 * to the engine of this process, as it does from a terminal to that of another one.  `tidemark mcp`
 * runs its tools in the same surroundings.
 *
 * Invariants:
 *   CALL1  nothing is printed: text and JSON go to the caller.  No signal is taken; `cancel`
 *          interrupts the command instead.
 *   CALL2  any thread may call, several at once.
 */
#ifndef TIDE_CLI_RUN_CALL_H
#define TIDE_CLI_RUN_CALL_H

#include "cli/cli.h"

struct cli_called {
    tide_status status;
    int exit_code;  /* what the program would end with */
    tide_json json; /* what --json would print; the caller takes it or ends it */
    char line[400]; /* the error, or the first line of the text */
    char hint[400]; /* what to do about an error; "" */
};

/* `host` is the command that runs in this process; `words` are its arguments without the program's
 * name.  Only TIDE_NO_MEMORY is a failure of the call itself. */
tide_status cli_call(const struct cli *host, const char *const *words, size_t words_count,
                     const tide_cancel *cancel, struct cli_called *called_out);
/* The same for a request that may have run before, until a crash; and what a command that reads
 * standard input reads instead. */
struct cli_call_from {
    uint64_t asked_unix_ms; /* when it came first; 0: now */
    tide_text input;        /* borrowed for the call */
};
tide_status cli_call_asked(const struct cli *host, const char *const *words, size_t words_count,
                           const struct cli_call_from *from, const tide_cancel *cancel,
                           struct cli_called *called_out);
/* The same for a command that only reads and is run again and again by one thread: *ledger, NULL at first,
 * stays open between the calls.  The caller closes it (tide_ledger_close()); a call that fails does so
 * itself, and the next one opens it anew.  A shared ledger is not kept. */
tide_status cli_call_again(const struct cli *host, const char *const *words, size_t words_count,
                           const tide_cancel *cancel, tide_ledger **ledger,
                           struct cli_called *called_out);
void cli_called_done(struct cli_called *called);

/* The start and the end of such a command, for a caller that runs a function of its own: the home and
 * flags of `host`, settings as they are now, text and JSON for the caller.  NULL: out of memory. */
struct cli *cli_call_open(const struct cli *host, const tide_cancel *cancel);
void cli_call_close(struct cli *call);

/* cli->command is not NULL. */
typedef tide_status cli_call_checker(struct cli *cli, void *arg);
/* Checks such words without running them: by the parser, then by `check` in the home of `host`, as if
 * it were the command.  A failure is that of `host` then. */
tide_status cli_call_check(struct cli *host, const char *const *words, size_t words_count,
                           cli_call_checker *check, void *arg);

#endif
