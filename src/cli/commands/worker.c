/* worker.c - `tidemark worker`: one process of a fleet (docs/fleet.md).
 *
 * It runs an engine on a shared ledger with the kinds of all systems or of some, takes the
 * accounts whose archive is on this machine, and works until a signal stops it. */
#include "cli/resident/resident.h"

#include "base/limits.h"

#include <stdio.h>
#include <string.h>

enum { ACCOUNTS_MAX = 64, LIST_BYTES = 4096 };

struct worker {
    struct cli_resident resident;
    struct cli *cli;
    char list[LIST_BYTES]; /* of --accounts, split into names */
    const char *names[ACCOUNTS_MAX];
};

/* ---- flags ---- */

static tide_status unknown_system(struct cli *cli, const char *name, int bytes)
{
    char hint[200] = "Systems:";
    for (size_t i = 0; cli->systems[i] != NULL; i++) {
        const size_t used = strlen(hint);
        (void)snprintf(hint + used, sizeof hint - used, "%s %s", i == 0 ? "" : ",",
                       cli->systems[i]->name);
    }
    (void)strncat(hint, ".", sizeof hint - strlen(hint) - 1);
    cli->exit_code = CLI_EXIT_USAGE;
    return cli_fail(cli, TIDE_INVALID, hint, "--kinds: there is no \"%.*s\"", bytes, name);
}

static tide_status kinds_of_flag(struct worker *worker, const char *flag)
{
    struct cli *cli = worker->cli;
    if (flag == NULL)
        archive_here_take_all(&worker->resident.open.here, cli);
    for (const char *at = flag; at != NULL;) {
        const size_t bytes = strcspn(at, ",");
        const struct tide_system *system = tide_system_named(cli->systems, (tide_text){at, bytes});
        if (system == NULL)
            return unknown_system(cli, at, (int)(bytes > 60 ? 60 : bytes));
        if (!archive_here_takes(&worker->resident.open.here, system))
            archive_here_take(&worker->resident.open.here, system);
        at = at[bytes] == '\0' ? NULL : at + bytes + 1;
    }
    return TIDE_OK;
}

static tide_status accounts_of_flag(struct worker *worker, const char *flag)
{
    struct cli *cli = worker->cli;
    cli->exit_code = CLI_EXIT_USAGE;
    if (flag != NULL && strlen(flag) >= sizeof worker->list)
        return cli_fail(cli, TIDE_INVALID, "Name fewer.", "--accounts is too long");
    (void)snprintf(worker->list, sizeof worker->list, "%s", flag == NULL ? "" : flag);
    for (char *at = flag == NULL ? NULL : worker->list; at != NULL;) {
        char *comma = strchr(at, ',');
        if (comma != NULL)
            *comma = '\0';
        if (*at == '\0' || worker->resident.open.here.accounts_count == ACCOUNTS_MAX)
            return cli_fail(cli, TIDE_INVALID,
                            "Separate them with commas: a@example.org,b@example.org.",
                            "--accounts has an empty name, or more than %d", ACCOUNTS_MAX);
        worker->names[worker->resident.open.here.accounts_count++] = at;
        at = comma == NULL ? NULL : comma + 1;
    }
    worker->resident.open.here.accounts = worker->names;
    cli->exit_code = CLI_EXIT_DONE;
    return TIDE_OK;
}

static tide_status flags_read(struct worker *worker)
{
    struct cli *cli = worker->cli;
    const char *workers = cli_flag(cli, "workers");
    uint64_t count = 0;
    worker->resident.once = cli_flag(cli, "once") != NULL;
    tide_status rc = kinds_of_flag(worker, cli_flag(cli, "kinds"));
    if (rc == TIDE_OK)
        rc = accounts_of_flag(worker, cli_flag(cli, "accounts"));
    if (rc == TIDE_OK && workers != NULL)
        rc = cli_number(cli, workers, "--workers", &count);
    if (rc == TIDE_OK && workers != NULL && (count == 0 || count > TIDE_WORKERS_MAX)) {
        cli->exit_code = CLI_EXIT_USAGE;
        rc = cli_fail(cli, TIDE_INVALID, "Omit it to use the setting workers.count.",
                      "--workers must be between 1 and %d", TIDE_WORKERS_MAX);
    }
    worker->resident.open.workers = (uint32_t)count;
    return rc;
}

tide_status cli_worker(struct cli *cli)
{
    struct worker *worker = tide_mem_new(cli->mem, sizeof *worker);
    if (worker == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    worker->cli = worker->resident.cli = cli;
    worker->resident.name = "worker";
    worker->resident.open.busy_hint =
        "A directory can have one worker. Stop the other one, or name another directory with "
        "--home DIR.";
    tide_status rc = flags_read(worker);
    if (rc == TIDE_OK)
        rc = cli_shared_only(cli);
    if (rc == TIDE_OK)
        rc = cli_resident_run(&worker->resident);
    if (!worker->resident.stuck)
        tide_mem_free(cli->mem, worker, sizeof *worker);
    return rc;
}
