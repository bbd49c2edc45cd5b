/* names.c - names of the mail system that completion offers (system/system.h). */
#include "mail/commands/home.h"

#include "mail/inside.h"

#include <stdio.h>
#include <string.h>

struct names {
    const struct tide_system_home *home;
    void (*visit)(tide_text name, void *arg);
    void *arg;
};

static void take_label(const struct tide_label_row *label, void *arg)
{
    const struct names *names = arg;
    names->visit(label->name.bytes > 0 ? label->name : label->id, names->arg);
}

static bool take_archive(const char *email, void *arg)
{
    const struct names *names = arg;
    char dir[4096 + 256];
    tide_archive *archive = NULL;
    tide_mail_dir(names->home->archive_dir, email, dir, sizeof dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = email, .world = names->home->world, .read_only = true};
    if (tide_archive_open(&options, names->home->mem, &archive, NULL) == TIDE_OK)
        (void)tide_archive_labels_all(archive, take_label, arg, NULL);
    (void)tide_archive_close(archive, NULL);
    return true;
}

void mail_names(const struct tide_system_home *home, const char *kind,
                void (*visit)(tide_text name, void *arg), void *arg)
{
    struct names names = {home, visit, arg};
    if (strcmp(kind, "labels") == 0)
        mail_home_archives(home->archive_dir, take_archive, &names);
}
