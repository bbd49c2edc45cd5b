/* find.c - a message by what a user typed: an id, or the beginning of one (M20). */
#include "mail/commands/home.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool name_add(const char *email, void *arg)
{
    struct mail_names *names = arg;
    void *list = names->list;
    if (!tide_mem_grow(names->mem, &list, &names->capacity, names->count + 1, TIDE_ACCOUNTS_MAX,
                       sizeof *names->list))
        return false;
    names->list = list;
    (void)snprintf(names->list[names->count++], sizeof *names->list, "%s", email);
    return true;
}

static int by_name(const void *one, const void *other)
{
    return strcmp(one, other);
}

tide_status mail_names_find(struct cli *cli, const char *named, struct mail_names *names)
{
    struct mail_home home = {0};
    char email[256];
    *names = (struct mail_names){.mem = cli->mem};
    TIDE_TRY(mail_home_places(cli, &home));
    if (named == NULL)
        mail_home_archives(home.archive_dir, name_add, names);
    if (names->count == 0) { /* the named one, or the error for none */
        TIDE_TRY(mail_home_account(cli, &home, named, email));
        if (!name_add(email, names))
            return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    }
    qsort(names->list, names->count, sizeof *names->list, by_name);
    return TIDE_OK;
}

void mail_names_done(struct mail_names *names)
{
    tide_mem_free(names->mem, names->list, names->capacity * sizeof *names->list);
    *names = (struct mail_names){.mem = names->mem};
}

static bool first_of_thread(const struct tide_stored *stored, void *arg)
{
    struct tide_stored *first = arg;
    *first = *stored;
    return false;
}

/* How a message is looked for, in the order in which the ways are tried. */
typedef enum way { BY_ID, BY_THREAD, BY_SHORT_ID, WAYS } way;

/* How many it has: 0, 1 or 2 for more. */
static tide_status look(struct cli *cli, tide_archive *archive, way how, tide_text id,
                        struct tide_stored *stored, unsigned *count_out)
{
    tide_status rc = TIDE_OK;
    *count_out = 0;
    switch (how) {
    case BY_ID:
        rc = tide_archive_find(archive, id, stored, &cli->err);
        *count_out = rc == TIDE_OK;
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    case BY_THREAD:
        *stored = (struct tide_stored){.rowid = 0};
        rc = tide_archive_thread(archive, id, first_of_thread, stored, &cli->err);
        *count_out = stored->gmail_id[0] != '\0';
        return rc;
    case BY_SHORT_ID:
    case WAYS:
        break;
    }
    return tide_archive_find_short(archive, id, count_out, stored, &cli->err);
}

/* Looks in all archives; a first one is kept in *found. */
static tide_status look_all(struct cli *cli, const struct mail_names *names, way how,
                            const char *id, struct mail_found *found, unsigned *count)
{
    for (size_t i = 0; i < names->count && *count < 2; i++) {
        struct mail_home home = {0};
        struct tide_stored stored;
        tide_archive *archive = NULL;
        char email[256];
        unsigned here = 0;
        tide_status rc = mail_home_take(cli, &home, names->list[i], email, &archive);
        if (mail_home_pass(cli, names->list[i], names->count, rc)) {
            mail_home_give(cli, archive);
            continue;
        }
        if (rc == TIDE_OK)
            rc = look(cli, archive, how, tide_text_of(id), &stored, &here);
        *count += here;
        if (rc == TIDE_OK && here > 0 && found->archive == NULL) {
            found->archive = archive;
            found->stored = stored;
            (void)snprintf(found->email, sizeof found->email, "%s", email);
            archive = NULL;
        }
        if (rc == TIDE_OK && archive != NULL)
            (void)mail_home_broken(cli, archive);
        mail_home_give(cli, archive);
        TIDE_TRY(rc);
    }
    return TIDE_OK;
}

/* Shards that cannot be read may have it: they are named. */
static tide_status search(struct cli *cli, const struct mail_names *names, const char *id,
                          bool thread, struct mail_found *found)
{
    unsigned count = 0;
    for (way how = BY_ID; how < WAYS && count == 0; how++) {
        if ((how == BY_THREAD && !thread) || (how == BY_SHORT_ID && strlen(id) < MAIL_SHORT_ID_MIN))
            continue;
        TIDE_TRY(look_all(cli, names, how, id, found, &count));
    }
    if (count == 1)
        return mail_home_broken(cli, found->archive);
    if (count > 1)
        return cli_fail(cli, TIDE_INVALID, "Give more of the id, or --account EMAIL.",
                        "more than one message has an id that begins with %.100s", id);
    if (strlen(id) < MAIL_SHORT_ID_MIN)
        return cli_fail(
            cli, TIDE_NOT_FOUND,
            "Give more of the id; `tidemark mail search` finds the ids of messages.",
            "\"%.100s\" is too short for the beginning of an id: that has %d characters "
            "or more",
            id, MAIL_SHORT_ID_MIN);
    if (names->count == 1)
        return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark mail search` finds the ids of messages.",
                        "there is no message %.100s in the archive of %s", id, names->list[0]);
    return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark mail search` finds the ids of messages.",
                    "there is no message %.100s in the archives of %zu accounts", id, names->count);
}

tide_status mail_home_find(struct cli *cli, const char *named, const char *id, bool thread,
                           struct mail_found *found)
{
    struct mail_names names;
    *found = (struct mail_found){.archive = NULL};
    tide_status rc = mail_names_find(cli, named, &names);
    if (rc == TIDE_OK)
        rc = search(cli, &names, id, thread, found);
    mail_names_done(&names);
    return rc;
}
