/* restore.c - `tidemark restore DIR`: a home from a copy made by `tidemark backup DIR` (M17).
 *
 * Steps, each durable before the next begins:
 *   1  write "copy" to restore.pending.  From now on every other command is refused.
 *   2  copy archives, settings and ledger next to their places, as NAME.restoring, and read them
 *      back; all settings together are config.restoring.  The old home is unchanged: with a damaged copy the restore ends here, and
 *      restore.pending is removed.
 *   3  write "move" to restore.pending, with the number N of this restore.
 *   4  for archives, each file of the settings, and finally the ledger: rename what is there to
 *      NAME.before-N, and NAME.restoring to NAME.
 *   5  remove restore.pending.
 *
 * RST1  killed during 1 or 2: the old home is complete; the command starts over.
 * RST2  killed during 3 to 5: every file of both homes exists under one of its names; the command
 *     resumes with 4, which does nothing twice: a missing NAME.restoring was already moved.
 * RST3  nothing of an old home is removed.
 */
#include "cli/backup/settings.h"

#include "base/clocktext.h"
#include "cli/restoring.h"
#include "db/copy.h"
#include "world/free_space.h"
#include "world/userfile.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SUFFIX_BYTES = 48, STAGED_PATH_BYTES = CLI_PATH_BYTES + SUFFIX_BYTES };

struct restoring {
    struct cli *cli;
    const char *dir;
    uint64_t number; /* N */
    bool moving;     /* an earlier run reached step 3 */
    bool replace;
    char pending[CLI_PATH_BYTES];
    char archive[CLI_PATH_BYTES];
    char settings[CLI_PATH_BYTES]; /* only its staged folder exists */
    struct backup_counts done;
    bool has_ledger;
};

static bool exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

static bool same_place(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

static void staged_path(const char *place, char out[STAGED_PATH_BYTES])
{
    (void)snprintf(out, STAGED_PATH_BYTES, "%s.restoring", place);
}

static void note_entry(const char *name, void *arg)
{
    (void)name;
    *(bool *)arg = true;
}

static bool has_entries(struct cli *cli, const char *dir)
{
    bool any = false;
    (void)tide_dir_list(cli->world, dir, note_entry, &any, NULL);
    return any;
}

/* ---- the mark ---- */

static tide_status mark_write(struct restoring *self, const char *step)
{
    char line[80];
    (void)snprintf(line, sizeof line, "%s %" PRIu64 "\n", step, self->number);
    return tide_file_replace(self->cli->world, self->pending, tide_text_of(line), 0600,
                             &self->cli->err);
}

static tide_status mark_read(struct restoring *self)
{
    struct cli *cli = self->cli;
    char step[8] = "";
    tide_auto_buf text = tide_buf_in(cli->mem, 200);
    tide_status rc = tide_file_read(cli->world, self->pending, 200, &text, NULL);
    self->number = cli->now_unix_ms; /* two restores in one second have two numbers */
    if (rc == TIDE_OK && sscanf(tide_buf_cstr(&text), "%7s %" SCNu64, step, &self->number) == 2)
        self->moving = strcmp(step, "move") == 0;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* ---- what may be restored, and where ---- */

static tide_status check_source(struct restoring *self)
{
    struct cli *cli = self->cli;
    char ledger[CLI_PATH_BYTES];
    char archive[CLI_PATH_BYTES];
    char lock[CLI_PATH_BYTES];
    TIDE_TRY(backup_join(cli, ledger, self->dir, TIDE_STATE_FILE));
    TIDE_TRY(backup_join(cli, archive, self->dir, "archive"));
    TIDE_TRY(backup_join(cli, lock, self->dir, TIDE_CONTROL_LOCK));
    if (same_place(self->dir, cli->state_dir) || same_place(self->dir, cli->data_dir) ||
        exists(lock))
        return cli_fail(cli, TIDE_INVALID, "Name a directory that `tidemark backup DIR` made.",
                        "%.300s is the directory of a tidemark home", self->dir);
    if (!exists(ledger) && !has_entries(cli, archive))
        return cli_fail(cli, TIDE_NOT_FOUND, "Name a directory that `tidemark backup DIR` made.",
                        "there is no copy of a home in %.300s", self->dir);
    return TIDE_OK;
}

static tide_status check_home(struct restoring *self)
{
    struct cli *cli = self->cli;
    if (self->replace || (!exists(cli->ledger_path) && !has_entries(cli, self->archive)))
        return TIDE_OK;
    return cli_fail(
        cli, TIDE_EXISTS,
        "Nothing was changed. Restore into a new home with --home DIR, or move the existing "
        "one aside with --replace.",
        "a home already exists: %.150s, %.150s", cli->ledger_path, self->archive);
}

/* ---- copying ---- */

/* Removes what an earlier attempt left: files, and directories of one level. */
static void remove_staged(struct restoring *self, const char *path, int depth);

struct removing {
    struct restoring *self;
    const char *dir;
    int depth;
};

static void remove_entry(const char *name, void *arg)
{
    const struct removing *removing = arg;
    char path[STAGED_PATH_BYTES];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", removing->dir, name) < sizeof path)
        remove_staged(removing->self, path, removing->depth);
}

static void remove_staged(struct restoring *self, const char *path, int depth)
{
    struct stat info;
    if (lstat(path, &info) != 0)
        return;
    if (!S_ISDIR(info.st_mode)) {
        (void)tide_file_remove(self->cli->world, path, NULL);
        return;
    }
    struct removing removing = {self, path, depth - 1};
    if (depth > 0)
        (void)tide_dir_list(self->cli->world, path, remove_entry, &removing, NULL);
    (void)rmdir(path);
}

static void forget_copies(struct restoring *self)
{
    const char *const places[] = {self->archive, self->settings, self->cli->ledger_path};
    char staged[STAGED_PATH_BYTES];
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        staged_path(places[i], staged);
        remove_staged(self, staged, 2); /* archive.restoring/ENTRY/FILE */
    }
}

static tide_status copy_ledger(struct restoring *self)
{
    struct cli *cli = self->cli;
    char from[CLI_PATH_BYTES];
    char to[STAGED_PATH_BYTES];
    tide_ledger *ledger = NULL;
    tide_status rc = backup_join(cli, from, self->dir, TIDE_STATE_FILE);
    if (rc != TIDE_OK || !exists(from) || cli->shared != NULL)
        return rc;
    staged_path(cli->ledger_path, to);
    rc = tide_db_copy(cli->world, from, to, cli->mem, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_db_whole(cli->world, to, cli->mem, &cli->err);
    const struct tide_ledger_options options = {.path = to,
                                                .run_id = "restore",
                                                .now_unix_ms = cli->now_unix_ms,
                                                .read_only = true,
                                                .must_exist = true};
    tide_auto_buf problems = tide_buf_in(cli->mem, 1 << 20);
    if (rc == TIDE_OK)
        rc = tide_ledger_open(cli->world, &options, &ledger, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_ledger_check(ledger, &problems, &cli->err);
    if (rc == TIDE_OK && problems.bytes > 0)
        rc = tide_error_set(&cli->err, TIDE_CORRUPT, "the ledger %.200s is damaged: %.150s", from,
                            tide_buf_cstr(&problems));
    if (ledger != NULL)
        tide_ledger_close(ledger, false);
    self->has_ledger = rc == TIDE_OK;
    return rc;
}

static tide_status copy_all(struct restoring *self)
{
    struct cli *cli = self->cli;
    char from[CLI_PATH_BYTES];
    char to[STAGED_PATH_BYTES];
    char settings[STAGED_PATH_BYTES];
    TIDE_TRY(mark_write(self, "copy"));
    forget_copies(self);
    tide_status rc = copy_ledger(self);
    if (rc == TIDE_OK)
        rc = backup_join(cli, from, self->dir, "archive");
    staged_path(self->archive, to);
    if (rc == TIDE_OK)
        rc = tide_dir_make(cli->world, to, &cli->err);
    if (rc == TIDE_OK && exists(from))
        rc = backup_archives(cli, from, to, true, &self->done);
    staged_path(self->settings, settings);
    if (rc == TIDE_OK) /* existing settings stay, unless everything is replaced */
        rc = backup_settings_stage(cli, self->dir, settings, self->replace, &self->done);
    cli_progress(cli, NULL);
    if (rc == TIDE_OK)
        rc = tide_userfile_settle(to, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_userfile_settle(cli->state_dir, &cli->err);
    if (rc == TIDE_OK)
        return TIDE_OK;
    forget_copies(self);
    (void)tide_file_remove(cli->world, self->pending, NULL);
    return cli_hint(cli, rc, "The home was not changed. Restore another copy, or free disk space.");
}

/* ---- moving ---- */

static tide_status put_aside(struct restoring *self, const char *place, bool say)
{
    struct cli *cli = self->cli;
    char aside[STAGED_PATH_BYTES + 32];
    if (!exists(place))
        return TIDE_OK;
    (void)snprintf(aside, sizeof aside, "%s.before-%" PRIu64, place, self->number);
    if (exists(aside))
        return cli_fail(cli, TIDE_EXISTS, "Move one of them elsewhere, and run the command again.",
                        "both %.150s and %.150s exist", place, aside);
    if (say)
        cli_print(cli, "%s is now %s\n", place, aside);
    return tide_userfile_replace(place, aside, &cli->err);
}

static tide_status move_one(struct restoring *self, const char *place)
{
    char staged[STAGED_PATH_BYTES];
    staged_path(place, staged);
    if (!exists(staged))
        return TIDE_OK; /* there was none, or it has been moved */
    TIDE_TRY(put_aside(self, place, true));
    return tide_userfile_replace(staged, place, &self->cli->err);
}

/* A file of the settings; its place exists if a crash came between the two renames. */
static tide_status move_setting(struct restoring *self, const char *flat, const char *staged)
{
    struct cli *cli = self->cli;
    char name[CLI_PATH_BYTES], place[CLI_PATH_BYTES];
    (void)snprintf(name, sizeof name, "%s", flat);
    for (char *slash = strchr(name, SETTINGS_SLASH); slash != NULL;
         slash = strchr(slash, SETTINGS_SLASH))
        *slash = '/';
    TIDE_TRY(backup_settings_place(cli, name, place));
    TIDE_TRY(backup_settings_folder(cli, place));
    TIDE_TRY(put_aside(self, place, true));
    return tide_userfile_replace(staged, place, &cli->err);
}

struct moving {
    struct restoring *self;
    const char *dir;
    tide_status rc;
};

static void move_entry(const char *flat, void *arg)
{
    struct moving *moving = arg;
    char staged[STAGED_PATH_BYTES];
    if (moving->rc != TIDE_OK)
        return;
    if ((size_t)snprintf(staged, sizeof staged, "%s/%s", moving->dir, flat) >= sizeof staged)
        moving->rc = cli_fail(moving->self->cli, TIDE_INVALID, "Use a shorter path.",
                              "the path is too long");
    else
        moving->rc = move_setting(moving->self, flat, staged);
}

static tide_status move_settings(struct restoring *self)
{
    char dir[STAGED_PATH_BYTES];
    staged_path(self->settings, dir);
    struct moving moving = {.self = self, .dir = dir};
    const tide_status rc =
        tide_dir_list(self->cli->world, dir, move_entry, &moving, &self->cli->err);
    if (rc == TIDE_NOT_FOUND) /* there were none, or they have been moved */
        return TIDE_OK;
    if (rc != TIDE_OK || moving.rc != TIDE_OK)
        return rc != TIDE_OK ? rc : moving.rc;
    (void)rmdir(dir);
    return TIDE_OK;
}

static tide_status move_all(struct restoring *self)
{
    struct cli *cli = self->cli;
    char staged[STAGED_PATH_BYTES];
    char beside[STAGED_PATH_BYTES];
    tide_status rc = self->moving ? TIDE_OK : mark_write(self, "move");
    if (rc == TIDE_OK)
        rc = move_one(self, self->archive);
    if (rc == TIDE_OK)
        rc = move_settings(self);
    /* The write-ahead log of the old ledger belongs to it, not to the new one. */
    staged_path(cli->ledger_path, staged);
    static const char *const logs[] = {"-wal", "-shm"};
    for (size_t i = 0; rc == TIDE_OK && exists(staged) && i < 2; i++) {
        (void)snprintf(beside, sizeof beside, "%s%s", cli->ledger_path, logs[i]);
        rc = put_aside(self, beside, false);
    }
    if (rc == TIDE_OK)
        rc = move_one(self, cli->ledger_path);
    if (rc == TIDE_OK)
        rc = tide_file_remove(cli->world, self->pending, &cli->err);
    return cli_hint(cli, rc, "Nothing is lost. Run the same command again to finish.");
}

/* ---- the command ---- */

static void tell(struct restoring *self)
{
    struct cli *cli = self->cli;
    char size[TIDE_SIZE_TEXT_BYTES];
    char units[400];
    tide_size_human(self->done.bytes, size);
    backup_units(cli, &self->done, units, sizeof units);
    if (self->moving)
        cli_print(cli, "finished the interrupted restore\n");
    else
        cli_print(cli, "restored from %s: %s; %u archive%s with %s, all read back\n", self->dir,
                  size, self->done.archives, self->done.archives == 1 ? "" : "s", units);
    if (!self->moving && !self->has_ledger)
        cli_print(cli, cli->shared != NULL
                           ? "The ledger is shared and was not changed.\n"
                           : "The copy has no ledger: add the accounts again; stored mail is "
                             "found.\n");
    cli_print(cli, "Sign-ins are not part of a copy: sign in again with `tidemark account add`.\n");
    tide_json_set_cstr(&cli->json, "dir", self->dir);
    tide_json_set_bool(&cli->json, "finished", true);
    tide_json_set_u64(&cli->json, "archives", self->done.archives);
    tide_json_set_u64(&cli->json, "bytes", self->done.bytes);
}

tide_status cli_restore(struct cli *cli)
{
    struct restoring self = {
        .cli = cli, .dir = cli->arguments[0], .replace = cli_flag(cli, "replace") != NULL};
    tide_json_array(&self.done.unknown);
    tide_status rc = cli_ledger_choose(cli);
    if (rc == TIDE_OK)
        rc = backup_join(cli, self.pending, cli->state_dir, CLI_RESTORE_PENDING);
    if (rc == TIDE_OK)
        rc = backup_join(cli, self.archive, cli->data_dir, "archive");
    if (rc == TIDE_OK)
        rc = backup_settings_place(cli, "config", self.settings);
    if (rc == TIDE_OK)
        rc = check_source(&self);
    /* An unfinished restore is not a home yet. */
    if (rc == TIDE_OK && !exists(self.pending))
        rc = check_home(&self);
    if (rc == TIDE_OK)
        rc = cli_lock(cli);
    if (rc == TIDE_OK)
        rc = mark_read(&self);
    if (rc == TIDE_OK && !self.moving)
        rc = copy_all(&self);
    if (rc == TIDE_OK)
        rc = move_all(&self);
    tide_json_set(&cli->json, "not_copied", &self.done.unknown);
    if (rc == TIDE_OK)
        tell(&self);
    return rc;
}
