#include "cli/commands/backup_systems.h"

#include "base/clocktext.h"
#include "console/backup.h"
#include "mail/files/backup.h"

#include <stdio.h>
#include <string.h>

/* One entry of archive/. */
struct entry {
    struct cli *cli;
    const char *name, *from, *to;
    struct backup_counts *counts;
};

struct system {
    bool (*owns)(const char *name);
    tide_status (*copy)(const struct entry *entry);
    tide_status (*check)(const struct entry *entry); /* the copy */
};

tide_status backup_join(struct cli *cli, char path[CLI_PATH_BYTES], const char *dir,
                        const char *name)
{
    const int used = snprintf(path, CLI_PATH_BYTES, "%s/%s", dir, name);
    return used < 0 || used >= CLI_PATH_BYTES
               ? cli_fail(cli, TIDE_INVALID, "Use a shorter path.", "the path is too long")
               : TIDE_OK;
}

static void show_file(const char *file, uint64_t bytes, void *arg)
{
    const struct entry *entry = arg;
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_size_human(bytes, size);
    cli_progress(entry->cli, "copying %s of %s (%s)", file, entry->name, size);
}

/* ---- mail: a directory for each address ---- */

static bool mail_owns(const char *name)
{
    return strchr(name, '@') != NULL;
}

static tide_status mail_copy(const struct entry *entry)
{
    struct tide_backed_up done = {0};
    const struct tide_backup wanted = {.from_dir = entry->from,
                                       .to_dir = entry->to,
                                       .account = entry->name,
                                       .free_min_bytes = cli_free_min(entry->cli),
                                       .cancel = cli_interruptible(entry->cli),
                                       .progress = show_file,
                                       .progress_arg = (void *)(uintptr_t)entry};
    const tide_status rc =
        tide_backup_archive(entry->cli->world, &wanted, entry->cli->mem, &done, &entry->cli->err);
    entry->counts->copied += done.copied;
    entry->counts->same += done.same;
    entry->counts->messages += done.messages;
    entry->counts->bytes += done.bytes;
    return rc;
}

static void note_damage(const struct tide_damage *damage, void *arg)
{
    tide_error *err = arg;
    if (err->status == TIDE_OK)
        (void)tide_error_set(err, TIDE_CORRUPT, "shard %s %s is damaged: %s", damage->shard,
                             damage->gmail_id, damage->what);
}

static tide_status mail_check(const struct entry *entry)
{
    struct cli *cli = entry->cli;
    const struct tide_archive_options options = {
        .dir = entry->to, .account = entry->name, .world = cli->world, .read_only = true};
    tide_archive *archive = NULL;
    tide_error damage = {TIDE_OK, 0, ""};
    uint64_t checked = 0;
    tide_status rc = tide_archive_open(&options, cli->mem, &archive, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_archive_verify(archive, 0, note_damage, &damage, &checked, &cli->err);
    (void)tide_archive_close(archive, NULL);
    if (rc == TIDE_OK && damage.status != TIDE_OK) {
        cli->err = damage;
        return damage.status;
    }
    return rc;
}

/* ---- Search Console: one directory ---- */

static bool console_owns(const char *name)
{
    return strcmp(name, "console") == 0;
}

static tide_status console_copy(const struct entry *entry)
{
    struct tide_console_backed_up done = {0};
    const struct tide_console_backup wanted = {.from_dir = entry->from,
                                               .to_dir = entry->to,
                                               .free_min_bytes = cli_free_min(entry->cli),
                                               .cancel = cli_interruptible(entry->cli),
                                               .progress = show_file,
                                               .progress_arg = (void *)(uintptr_t)entry};
    const tide_status rc =
        tide_console_backup(entry->cli->world, &wanted, entry->cli->mem, &done, &entry->cli->err);
    entry->counts->copied += done.files;
    entry->counts->rows += done.rows;
    entry->counts->bytes += done.bytes;
    return rc;
}

static tide_status console_check(const struct entry *entry)
{
    return tide_console_backup_check(entry->cli->world, entry->to, entry->cli->mem,
                                     &entry->cli->err);
}

/* ---- all of them ---- */

static const struct system systems[] = {
    {mail_owns, mail_copy, mail_check},
    {console_owns, console_copy, console_check},
};

struct walk {
    struct cli *cli;
    const char *from_dir, *to_dir;
    bool check;
    struct backup_counts *counts;
    tide_status rc;
};

static void stranger(struct walk *walk, const char *name)
{
    tide_json one;
    one = (tide_json){json_string(name), false};
    tide_json_append(&walk->counts->strangers, &one);
    walk->counts->strangers_count++;
    (void)fprintf(stderr,
                  "tidemark: warning: %.300s/%s is not copied: it does not belong to tidemark\n",
                  walk->from_dir, name);
}

static void walk_entry(const char *name, void *arg)
{
    struct walk *walk = arg;
    char from[CLI_PATH_BYTES];
    char to[CLI_PATH_BYTES];
    size_t i = 0;
    if (walk->rc != TIDE_OK)
        return;
    while (i < sizeof systems / sizeof systems[0] && !systems[i].owns(name))
        i++;
    if (i == sizeof systems / sizeof systems[0]) {
        stranger(walk, name);
        return;
    }
    walk->rc = backup_join(walk->cli, from, walk->from_dir, name);
    if (walk->rc == TIDE_OK)
        walk->rc = backup_join(walk->cli, to, walk->to_dir, name);
    const struct entry entry = {walk->cli, name, from, to, walk->counts};
    if (walk->rc == TIDE_OK)
        walk->rc = systems[i].copy(&entry);
    if (walk->rc == TIDE_OK && walk->check)
        walk->rc = systems[i].check(&entry);
    walk->counts->archives += walk->rc == TIDE_OK;
}

tide_status backup_archives(struct cli *cli, const char *from_dir, const char *to_dir, bool check,
                            struct backup_counts *counts)
{
    struct walk walk = {cli, from_dir, to_dir, check, counts, TIDE_OK};
    const tide_status rc = tide_dir_list(cli->world, from_dir, walk_entry, &walk, &cli->err);
    return rc == TIDE_OK ? walk.rc : rc;
}
