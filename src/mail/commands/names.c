#include "mail/commands/names.h"

#include "base/limits.h"
#include "mail/status.h"

#include <stdio.h>
#include <string.h>

struct names_ask {
    struct mail_names *names;
    bool full;
};

static bool add(struct mail_names *names, const char *email)
{
    if (!TIDE_GROW_IN(names->mem, names->email, names->capacity, names->count + 1,
                      TIDE_ACCOUNTS_MAX))
        return false;
    (void)snprintf(names->email[names->count++], sizeof *names->email, "%s", email);
    return true;
}

static void take_name(const char *email, const char *endpoint, void *arg)
{
    struct names_ask *ask = arg;
    (void)endpoint;
    ask->full = ask->full || !add(ask->names, email);
}

static bool is_among(const struct mail_names *names, const char *email)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->email[i], email) == 0)
            return true;
    return false;
}

static tide_status too_many(struct cli *cli)
{
    return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory, or name fewer accounts.",
                    "out of memory for the names of the accounts");
}

static tide_status choose(struct cli *cli, const struct mail_names *all, const char *const *wanted,
                          size_t count, struct mail_names *names)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_among(all, wanted[i]))
            return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark account list` shows the accounts.",
                            "there is no mail account \"%.200s\"", wanted[i]);
        if (!is_among(names, wanted[i]) && !add(names, wanted[i]))
            return too_many(cli);
    }
    return TIDE_OK;
}

tide_status mail_names_of(struct cli *cli, const char *const *wanted, size_t count,
                          struct mail_names *names_out)
{
    struct mail_names all = {.mem = cli->mem};
    struct names_ask ask = {.names = &all};
    *names_out = (struct mail_names){.mem = cli->mem};
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_mail_look_accounts(cli->ledger, take_name, &ask, &cli->err);
    if (rc == TIDE_OK && ask.full)
        rc = too_many(cli);
    if (rc == TIDE_NOT_FOUND || (rc == TIDE_OK && all.count == 0))
        rc = cli_fail(cli, TIDE_NOT_FOUND, "Add one with `tidemark account add gmail EMAIL`.",
                      "there is no mail account");
    if (rc == TIDE_OK && count > 0)
        rc = choose(cli, &all, wanted, count, names_out);
    if (rc == TIDE_OK && count == 0)
        *names_out = all;
    else
        mail_names_done(&all);
    return rc;
}

tide_status mail_names(struct cli *cli, struct mail_names *names_out)
{
    return mail_names_of(cli, cli->arguments, cli->arguments_count, names_out);
}

void mail_names_done(struct mail_names *names)
{
    if (names->mem != NULL)
        tide_mem_free(names->mem, names->email, names->capacity * sizeof *names->email);
    *names = (struct mail_names){.mem = NULL};
}
