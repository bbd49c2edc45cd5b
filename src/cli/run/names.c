#include "cli/run/names.h"

#include "base/limits.h"

#include <stdio.h>
#include <string.h>

static void add(const char *name, void *arg)
{
    struct cli_names *names = arg;
    void *list = names->list;
    names->full =
        names->full || !tide_mem_grow(names->mem, &list, &names->capacity, names->count + 1,
                                      TIDE_ACCOUNTS_MAX, sizeof *names->list);
    names->list = list;
    if (!names->full)
        (void)snprintf(names->list[names->count++], sizeof *names->list, "%s", name);
}

static bool is_among(const struct cli_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->list[i], name) == 0)
            return true;
    return false;
}

static tide_status choose(struct cli *cli, const struct tide_system *system,
                          const struct cli_names *all, const char *const *wanted, size_t count,
                          struct cli_names *names)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_among(all, wanted[i]))
            return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark account list` shows the accounts.",
                            "there is no %s account \"%.200s\"", system->name, wanted[i]);
        if (!is_among(names, wanted[i]))
            add(wanted[i], names);
    }
    return TIDE_OK;
}

static tide_status none(struct cli *cli, const struct tide_system *system)
{
    char hint[200];
    (void)snprintf(hint, sizeof hint, "Add one with `tidemark account add %s %s`.",
                   system->provider, system->subject);
    return cli_fail(cli, TIDE_NOT_FOUND, hint, "there is no %s account", system->name);
}

tide_status cli_names(struct cli *cli, const struct tide_system *system, const char *const *wanted,
                      size_t count, struct cli_names *names_out)
{
    struct cli_names all = {.mem = cli->mem};
    *names_out = (struct cli_names){.mem = cli->mem};
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_system_accounts(system, cli->ledger, add, &all, &cli->err);
    if (rc == TIDE_NOT_FOUND || (rc == TIDE_OK && all.count == 0))
        rc = none(cli, system);
    if (rc == TIDE_OK && count > 0)
        rc = choose(cli, system, &all, wanted, count, names_out);
    if (rc == TIDE_OK && (all.full || names_out->full))
        rc = cli_fail(cli, TIDE_NO_MEMORY, "Free some memory, or name fewer accounts.",
                      "out of memory for the names of the accounts");
    if (rc == TIDE_OK && count == 0)
        *names_out = all;
    else
        cli_names_done(&all);
    return rc;
}

tide_status cli_names_later(struct cli *cli, const struct tide_system *system,
                            const char *const *wanted, size_t count, bool one)
{
    struct cli_names names;
    tide_status rc = cli_names(cli, system, wanted, count, &names);
    if (rc == TIDE_NOT_FOUND && count == 0) {
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
        rc = TIDE_OK;
    } else if (rc == TIDE_OK && one && names.count > 1) {
        rc = cli_wrong(cli, "Name one with --account.", "there are %zu %s accounts", names.count,
                       system->name);
    }
    cli_names_done(&names);
    return rc;
}

void cli_names_done(struct cli_names *names)
{
    if (names->mem != NULL)
        tide_mem_free(names->mem, names->list, names->capacity * sizeof *names->list);
    *names = (struct cli_names){.mem = NULL};
}
