#include "system/system.h"

#include "base/check.h"
#include "engine/accounts/archive_id.h"

#include <stdio.h>
#include <string.h>

size_t tide_systems_count(const struct tide_system *const *systems)
{
    size_t count = 0;
    while (systems[count] != NULL)
        count++;
    return count;
}

const struct tide_system *tide_system_named(const struct tide_system *const *systems,
                                            tide_text name)
{
    for (; *systems != NULL; systems++)
        if (tide_text_equal(name, tide_text_of((*systems)->name)))
            break;
    return *systems;
}

const struct tide_system *tide_system_of_provider(const struct tide_system *const *systems,
                                                  const char *provider)
{
    for (; *systems != NULL; systems++)
        if (strcmp((*systems)->provider, provider) == 0)
            break;
    return *systems;
}

const struct tide_system *tide_system_of_entry(const struct tide_system *const *systems,
                                               const char *entry)
{
    for (; *systems != NULL; systems++)
        if ((*systems)->owns_entry != NULL ? (*systems)->owns_entry(entry)
                                           : strcmp((*systems)->name, entry) == 0)
            break;
    return *systems;
}

void tide_system_archive_path(const struct tide_system *system, const char *archive_dir,
                              const char *account, char *out, size_t out_bytes)
{
    if (system->archive_path != NULL)
        system->archive_path(archive_dir, account, out, out_bytes);
    else
        (void)snprintf(out, out_bytes, "%s/%s", archive_dir, system->name);
}

void tide_system_secret_name(const struct tide_system *system, const char *account,
                             char out[TIDE_SECRET_NAME_BYTES_MAX])
{
    (void)snprintf(out, TIDE_SECRET_NAME_BYTES_MAX, "%s/%s", system->provider, account);
}

bool tide_system_is_here(const struct tide_system *system, tide_world *world,
                         const char *archive_dir, const char *account, const char *archive_id)
{
    char dir[4096 + 300];
    tide_system_archive_path(system, archive_dir, account, dir, sizeof dir);
    return archive_id[0] != '\0' && tide_archive_id_is(world, dir, archive_id);
}

static void check_one(const struct tide_system *system)
{
    TIDE_ASSERT(system->name != NULL && system->provider != NULL && system->subject != NULL);
    TIDE_ASSERT(system->unit != NULL && system->commands != NULL);
    TIDE_ASSERT(system->oauth != NULL && system->oauth->title != NULL && system->purposes != NULL);
    TIDE_ASSERT(system->open != NULL && system->status != NULL);
    TIDE_ASSERT((system->archive_path == NULL) == (system->owns_entry == NULL));
    TIDE_ASSERT((system->backup == NULL) == (system->backup_check == NULL));
    TIDE_ASSERT((system->topic == NULL) == (system->watched == NULL));
}

void tide_systems_check(const struct tide_system *const *systems)
{
    TIDE_ASSERT(tide_systems_count(systems) <= TIDE_SYSTEMS_MAX);
    for (size_t i = 0; systems[i] != NULL; i++) {
        const struct tide_system *one = systems[i];
        check_one(one);
        for (size_t k = 0; k < i; k++)
            TIDE_ASSERT(
                strcmp(one->name, systems[k]->name) != 0 &&
                (one->provider[0] == '\0' || strcmp(one->provider, systems[k]->provider) != 0));
    }
}
