/* ledger.c - `tidemark backup` and `tidemark ledger check`.  A shared ledger is backed up with the
 * tools of its server. */
#include "cli/backup/settings.h"

#include "base/clocktext.h"
#include "world/free_space.h"
#include "world/userfile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

/* ---- the ledger alone ---- */

static tide_status backup_ledger(struct cli *cli, const char *path)
{
    char size[TIDE_SIZE_TEXT_BYTES];
    struct stat info;
    TIDE_TRY(cli_ledger_choose(cli));
    if (cli->shared != NULL)
        return cli_fail(
            cli, TIDE_INVALID,
            "Use pg_dump or the server's own backups; `tidemark backup DIR` copies the archives "
            "of this home.",
            "the ledger is not a file but a database: %.200s", cli_shared_name(cli));
    TIDE_TRY(cli_ledger_read(cli));
    if (lstat(path, &info) == 0)
        return cli_fail(cli, TIDE_EXISTS, "A backup never overwrites a file: name a new file.",
                        "%.300s exists already", path);
    if (errno != ENOENT)
        return cli_hint(cli, tide_error_os(&cli->err, errno, "cannot write %.200s", path),
                        "Name a file in a directory that exists.");
    tide_status rc = tide_ledger_backup(cli->ledger, path, &cli->err);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc,
                        "Check that the directory exists, belongs to you and has free space.");
    if (stat(path, &info) != 0)
        return cli_hint(cli, tide_error_os(&cli->err, errno, "cannot find the copy %.200s", path),
                        "Try again with another file.");
    tide_size_human((uint64_t)info.st_size, size);
    if (!cli->quiet)
        cli_print(cli, "copied the ledger to %s (%s)\n", path, size);
    tide_json_set_cstr(&cli->json, "file", path);
    tide_json_set_u64(&cli->json, "bytes", (uint64_t)info.st_size);
    return TIDE_OK;
}

/* ---- everything ---- */

struct backing_up {
    struct cli *cli;
    const char *dir;
    char archive_dir[CLI_PATH_BYTES];
    bool has_ledger;
    uint64_t ledger_bytes;
    struct backup_counts done;
};

static bool same_place(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* Refuses a target that is this home or another one: the copy would destroy it. */
static tide_status check_target(struct cli *cli, const char *dir)
{
    char path[CLI_PATH_BYTES];
    struct stat info;
    TIDE_TRY(backup_join(cli, path, dir, TIDE_CONTROL_LOCK));
    if (same_place(dir, cli->state_dir) || same_place(dir, cli->data_dir) ||
        lstat(path, &info) == 0)
        return cli_fail(cli, TIDE_INVALID, "Name another directory for the copy.",
                        "%.300s is the directory of a tidemark home", dir);
    if (stat(dir, &info) == 0 && !S_ISDIR(info.st_mode))
        return cli_fail(cli, TIDE_INVALID, "Name a directory, or a new file that ends in .db.",
                        "%.300s is a file", dir);
    return cli_hint(cli, tide_dir_make(cli->world, dir, &cli->err),
                    "Name a directory that can be created and written.");
}

/* The ledger is copied first: the shards, copied after it, contain all that it records as done. */
static tide_status ledger_first(struct backing_up *backing, char partial[CLI_PATH_BYTES])
{
    struct cli *cli = backing->cli;
    struct stat info;
    if (cli->shared != NULL || stat(cli->ledger_path, &info) != 0)
        return TIDE_OK; /* a home that only imported mail has no ledger */
    TIDE_TRY(backup_join(cli, partial, backing->dir, "state.new"));
    TIDE_TRY(tide_room_check(cli->world, backing->dir, cli_free_min(cli) + (uint64_t)info.st_size,
                             &cli->err));
    TIDE_TRY(cli_ledger_read(cli));
    (void)tide_file_remove(cli->world, partial, NULL); /* left by a crash */
    tide_status rc = tide_ledger_backup(cli->ledger, partial, &cli->err);
    backing->has_ledger = rc == TIDE_OK;
    if (rc == TIDE_OK && stat(partial, &info) == 0)
        backing->ledger_bytes = (uint64_t)info.st_size;
    return rc;
}

/* The ledger is put in place last: until then the old copy of the ledger is next to newer shards,
 * which is harmless. */
static tide_status ledger_last(struct backing_up *backing, const char *partial)
{
    struct cli *cli = backing->cli;
    char path[CLI_PATH_BYTES];
    static const char *const beside[] = {"state.db-wal", "state.db-shm"};
    if (!backing->has_ledger)
        return TIDE_OK;
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        TIDE_TRY(backup_join(cli, path, backing->dir, beside[i]));
        (void)tide_file_remove(cli->world, path, NULL);
    }
    TIDE_TRY(backup_join(cli, path, backing->dir, "state.db"));
    return tide_userfile_replace(partial, path, &cli->err);
}

static void report(struct backing_up *backing)
{
    struct cli *cli = backing->cli;
    const struct backup_counts *done = &backing->done;
    char size[TIDE_SIZE_TEXT_BYTES];
    char units[400];
    tide_size_human(backing->ledger_bytes + done->bytes, size);
    backup_units(cli, done, units, sizeof units);
    cli_print(cli,
              "copied to %s: %s; %" PRIu64 " files, %" PRIu64 " more were already there; "
              "%u archive%s with %s\n",
              backing->dir, size, done->copied, done->same, done->archives,
              done->archives == 1 ? "" : "s", units);
    if (cli->shared != NULL)
        cli_print(cli, "The ledger is not copied: back up %s with the tools of its server.\n",
                  cli_shared_name(cli));
    cli_print(cli, "Sign-ins are not copied: after `tidemark restore %s`, sign in again.\n",
              backing->dir);
    tide_json_set_cstr(&cli->json, "dir", backing->dir);
    tide_json_set_u64(&cli->json, "bytes", backing->ledger_bytes + done->bytes);
    tide_json_set_u64(&cli->json, "shards_copied", done->copied);
    tide_json_set_u64(&cli->json, "shards_same", done->same);
    tide_json_set_u64(&cli->json, "accounts", done->archives);
}

static tide_status backup_all(struct cli *cli, const char *dir)
{
    struct backing_up backing = {.cli = cli, .dir = dir};
    char partial[CLI_PATH_BYTES];
    char archive[CLI_PATH_BYTES];
    tide_json_array(&backing.done.unknown);
    tide_status rc = backup_join(cli, backing.archive_dir, cli->data_dir, "archive");
    if (rc == TIDE_OK)
        rc = backup_join(cli, archive, dir, "archive");
    if (rc == TIDE_OK)
        rc = cli_ledger_choose(cli);
    if (rc == TIDE_OK)
        rc = check_target(cli, dir);
    if (rc == TIDE_OK)
        rc = ledger_first(&backing, partial);
    if (rc == TIDE_OK)
        rc = backup_archives(cli, backing.archive_dir, archive, false, &backing.done);
    if (rc == TIDE_NOT_FOUND && backing.has_ledger)
        rc = TIDE_OK; /* nothing was fetched yet */
    if (rc == TIDE_OK)
        rc = backup_settings(cli, dir, &backing.done);
    if (rc == TIDE_OK)
        rc = ledger_last(&backing, partial);
    cli_progress(cli, NULL);
    tide_json_set(&cli->json, "not_copied", &backing.done.unknown);
    if (rc != TIDE_OK) {
        if (backing.has_ledger)
            (void)tide_file_remove(cli->world, partial, NULL);
        return cli_hint(cli, rc,
                        rc == TIDE_DISK_FULL
                            ? "Free space there, or name another disk; then run it again."
                            : "What was copied stays; run the command again to resume.");
    }
    report(&backing);
    return TIDE_OK;
}

/* A name that ends in .db is a file for the ledger; any other a directory for everything. */
tide_status cli_backup(struct cli *cli)
{
    const char *target = cli->arguments[0];
    const size_t bytes = strlen(target);
    TIDE_TRY(cli_settings(cli));
    return bytes > 3 && strcmp(target + bytes - 3, ".db") == 0 ? backup_ledger(cli, target)
                                                               : backup_all(cli, target);
}

tide_status cli_ledger_verify(struct cli *cli)
{
    tide_json list;
    TIDE_TRY(cli_ledger_read(cli));
    tide_auto_buf problems = tide_buf_in(cli->mem, 1 << 20);
    tide_status rc = tide_ledger_check(cli->ledger, &problems, &cli->err);
    bool good = rc == TIDE_OK && problems.bytes == 0;
    if (rc == TIDE_OK || problems.bytes > 0) {
        rc = TIDE_OK;
        tide_json_array(&list);
        for (char *line = problems.data; line != NULL && *line != '\0';) {
            char *end = strchr(line, '\n');
            tide_json entry = {
                json_stringn(line, end == NULL ? strlen(line) : (size_t)(end - line)), false};
            tide_json_append(&list, &entry);
            line = end == NULL ? NULL : end + 1;
        }
        tide_json_set_bool(&cli->json, "good", good);
        tide_json_set(&cli->json, "problems", &list);
        cli_print(cli, "%s%s", tide_buf_cstr(&problems),
                  good ? "the ledger is good\n"
                  : cli->shared != NULL
                      ? "Stop the workers, keep a dump of the ledger, and restore an "
                        "older one.\n"
                      : "Keep this file, and restore a copy made by `tidemark "
                        "backup`.\n");
        cli->exit_code = good ? CLI_EXIT_DONE : CLI_EXIT_FAILED;
    }
    if (cli->shared != NULL)
        return cli_shared_hint(cli, rc);
    return cli_hint(cli, rc, "Keep the file, and restore a copy made by `tidemark backup`.");
}
