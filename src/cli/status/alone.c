/* alone.c - archives here of accounts that were not added: what an import stored before the first
 * sign-in (M17, M18), or what stayed when an account was removed. */
#include "cli/status/status.h"

#include <inttypes.h>
#include <string.h>

struct alone {
    const struct tide_system_home *home;
    const struct tide_system *system;
    const json_t *accounts; /* that are shown */
    tide_json *list;
};

static bool is_added(const struct alone *alone, const char *name)
{
    size_t i = 0;
    const json_t *account = NULL;
    json_array_foreach(alone->accounts, i, account)
    {
        const char *text = json_string_value(json_object_get(account, "account"));
        if (text != NULL && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

/* One that cannot be read is left out: `mail status` says why. */
static bool take(const char *name, void *arg)
{
    struct alone *alone = arg;
    const struct tide_system *system = alone->system;
    uint64_t stored = 0;
    tide_json one;
    if (is_added(alone, name) ||
        system->archive_stored(alone->home, name, &stored, NULL) != TIDE_OK || stored == 0)
        return true;
    tide_json_object(&one);
    tide_json_set_cstr(&one, "account", name);
    tide_json_set_cstr(&one, "system", system->name);
    tide_json_set_cstr(&one, "provider", system->provider);
    tide_json_set_u64(&one, "stored", stored);
    tide_json_set_cstr(&one, "unit", system->unit);
    tide_json_append(alone->list, &one);
    return true;
}

void status_alone(struct cli *cli, const char *archive_dir, const json_t *accounts,
                  tide_json *list_out)
{
    struct tide_system_home home = {.world = cli->world,
                                    .config_path = cli->config_path,
                                    .mem = cli->mem,
                                    .settings = cli->settings,
                                    .archive_dir = archive_dir};
    tide_json_array(list_out);
    for (const struct tide_system *const *system = cli->systems; *system != NULL; system++) {
        struct alone alone = {
            .home = &home, .system = *system, .accounts = accounts, .list = list_out};
        home.kept = cli_kept(cli, *system);
        if ((*system)->archives != NULL)
            (*system)->archives(archive_dir, take, &alone);
    }
}

void status_alone_print(struct cli *cli, const json_t *list)
{
    size_t i = 0;
    const json_t *one = NULL;
    json_array_foreach(list, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "account"));
        cli_print(cli,
                  "%s: %" PRIu64 " %s stored here; it is not signed in: `tidemark account add %s "
                  "%s`\n",
                  name, (uint64_t)json_integer_value(json_object_get(one, "stored")),
                  json_string_value(json_object_get(one, "unit")),
                  json_string_value(json_object_get(one, "provider")), name);
    }
}
