#include "cli/archive_here.h"

#include "console/console.h"
#include "mail/mail.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_wanted(const struct archive_here *here, const char *account)
{
    for (size_t i = 0; i < here->accounts_count; i++)
        if (strcmp(here->accounts[i], account) == 0)
            return true;
    return here->accounts_count == 0;
}

static bool folder_is_there(const char *dir)
{
    struct stat info;
    return stat(dir, &info) == 0 && S_ISDIR(info.st_mode);
}

bool archive_here_may_take(void *arg, const char *account, const char *provider,
                           const char *archive)
{
    const struct archive_here *here = arg;
    char dir[CLI_PATH_BYTES + 300];
    if (!is_wanted(here, account))
        return false;
    if (here->mail && strcmp(provider, "gmail") == 0) {
        tide_mail_dir(here->archive_dir, account, dir, sizeof dir);
        return archive[0] == '\0'
                   ? folder_is_there(dir)
                   : tide_mail_is_here(here->world, here->archive_dir, account, archive);
    }
    if (here->console && strcmp(provider, "console") == 0) {
        (void)snprintf(dir, sizeof dir, "%s/console", here->archive_dir);
        return archive[0] == '\0' ? folder_is_there(dir)
                                  : tide_console_is_here(here->world, here->archive_dir, archive);
    }
    return false;
}
