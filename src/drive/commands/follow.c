/* follow.c - `tidemark drive watch` while another process has the home: shows what that one does for the
 * drives, until Ctrl-C or until it ends. */
#include "drive/commands/home.h"
#include "drive/commands/look.h"
#include "tidemark_inside.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { LOOK_MS = 1000, LINE_BYTES = 500 };

/* A line for each drive, when it changed. */
static void show(struct cli *cli, const struct drive_list *drives, char (*shown)[LINE_BYTES])
{
    for (size_t i = 0; i < drives->count; i++) {
        struct drive_look look;
        char words[300], line[LINE_BYTES];
        if (drive_look(cli->ledger, &drives->rows[i], &look, &cli->err) != TIDE_OK)
            continue; /* it was removed, or is being written: the next look sees it */
        drive_look_words(&look, words, sizeof words);
        (void)snprintf(line, sizeof line,
                       "%s: %s; %" PRIu64 " synced, %" PRIu64 " owed, %" PRIu64
                       " conflicts, %" PRIu64 " deletions waiting",
                       drives->rows[i].name, strcmp(words, "nothing") == 0 ? "at rest" : words,
                       look.counts.files, look.counts.owed, look.counts.conflicts,
                       look.counts.deletions);
        if (strcmp(line, shown[i]) == 0)
            continue;
        memcpy(shown[i], line, sizeof line);
        if (!cli->quiet && !cli->want_json) {
            (void)printf("%s\n", line);
            (void)fflush(stdout);
        }
    }
}

static tide_status follow(struct cli *cli, struct drive_list *drives, uint64_t pid)
{
    char(*shown)[LINE_BYTES] = tide_mem_array(cli->mem, drives->count, sizeof *shown);
    tide_status rc = TIDE_OK;
    (void)cli_interruptible(cli);
    if (shown == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    do {
        cli_ledger_close(cli); /* each look sees what was written meanwhile */
        rc = cli_ledger_read(cli);
        if (rc == TIDE_OK)
            show(cli, drives, shown);
        (void)poll(NULL, 0, LOOK_MS); /* a signal ends it */
    } while (rc == TIDE_OK && !cli_interrupted(cli) && cli_engine_pid(cli) == pid);
    cli->err = (tide_error){TIDE_OK, 0, ""};
    tide_mem_free(cli->mem, shown, drives->count * sizeof *shown);
    return rc;
}

tide_status drive_follow(struct cli *cli, struct drive_list *drives, bool *ended_out)
{
    const uint64_t pid = cli_engine_pid(cli);
    *ended_out = true;
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    if (pid == 0)
        return TIDE_OK;
    if (!cli->quiet && !cli->want_json)
        (void)fprintf(stderr,
                      "Process %" PRIu64 " works in this directory and watches the drives already; "
                      "showing what it does. Ctrl-C stops only the display.\n",
                      pid);
    const tide_status rc = follow(cli, drives, pid);
    *ended_out = rc == TIDE_OK && !cli_interrupted(cli);
    if (!*ended_out)
        tide_json_set_u64(&cli->json, "followed", pid);
    return rc;
}
