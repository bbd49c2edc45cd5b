/* elsewhere.c - on a shared ledger: accounts whose work another process does. */
#include "cli/run/inside.h"

#include <stdio.h>
#include <string.h>

enum { UNSERVED_MS = 45000 }; /* longer than a lease: then the account of a dead process is free */

static bool note_elsewhere(const struct tide_account_row *row, void *arg)
{
    struct cli_work *work = arg;
    const struct tide_system *system = cli_work_owner(work);
    for (size_t i = 0; i < work->count; i++) {
        struct cli_watched *watched = &work->accounts[i];
        if (strcmp(row->name, watched->name) != 0)
            continue;
        watched->elsewhere = row->owner != 0 || (row->archive[0] != '\0' &&
                                                 !tide_system_is_here(system, work->cli->world,
                                                                      work->opened->archive_dir,
                                                                      watched->name, row->archive));
        work->handed_over = work->handed_over || watched->elsewhere;
    }
    return true;
}

tide_status cli_elsewhere_find(struct cli_work *work)
{
    return work->cli->shared == NULL
               ? TIDE_OK
               : tide_ledger_accounts(work->cli->ledger, note_elsewhere, work, &work->cli->err);
}

void cli_elsewhere_tell(const struct cli_work *work)
{
    if (work->cli->quiet || work->cli->want_json)
        return;
    for (size_t i = 0; i < work->count; i++) {
        const struct cli_watched *watched = &work->accounts[i];
        if (watched->elsewhere)
            (void)fprintf(
                stderr, "%s: %s does this; showing its progress. Ctrl-C stops only the display.\n",
                watched->name,
                watched->holder[0] == '\0' ? "the process that has its archive" : watched->holder);
    }
}

tide_status cli_elsewhere_check(struct cli_work *work)
{
    struct cli *cli = work->cli;
    const uint64_t now_ms = tide_world_now_ms(cli->world);
    const char *name = NULL;
    for (size_t i = 0; cli->shared != NULL && name == NULL && i < work->count; i++) {
        const struct cli_watched *watched = &work->accounts[i];
        if (watched->elsewhere && watched->owner == 0 && watched->jobs > 0)
            name = watched->name;
    }
    if (name == NULL)
        work->unserved_ms = 0;
    else if (work->unserved_ms == 0)
        work->unserved_ms = now_ms;
    else if (now_ms - work->unserved_ms >= UNSERVED_MS)
        return cli_fail(
            cli, TIDE_BUSY,
            "Start `tidemark worker` where its archive is: the jobs wait in the ledger.",
            "no process that has the archive of %.200s works on this ledger", name);
    return TIDE_OK;
}
