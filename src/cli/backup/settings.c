#include "cli/backup/settings.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define OWN_FILE "config.yaml"

enum { SETTINGS_BYTES_MAX = 4 << 20 };

tide_status backup_settings_place(struct cli *cli, const char *name, char path[CLI_PATH_BYTES])
{
    const char *slash = strrchr(cli->config_path, '/');
    char folder[CLI_PATH_BYTES];
    (void)snprintf(folder, sizeof folder, "%.*s",
                   slash == NULL ? 1 : (int)(slash - cli->config_path),
                   slash == NULL ? "." : cli->config_path);
    return backup_join(cli, path, folder, name);
}

tide_status backup_settings_folder(struct cli *cli, const char *path)
{
    char folder[CLI_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return TIDE_OK;
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    return tide_dir_make(cli->world, folder, &cli->err);
}

/* The content as it is.  TIDE_NOT_FOUND: there is none. */
static tide_status copy_one(struct cli *cli, const char *from, const char *to,
                            struct backup_counts *counts)
{
    tide_auto_buf text = tide_buf_in(cli->mem, SETTINGS_BYTES_MAX);
    TIDE_TRY(tide_file_read(cli->world, from, SETTINGS_BYTES_MAX, &text, &cli->err));
    TIDE_TRY(backup_settings_folder(cli, to));
    TIDE_TRY(tide_file_replace(cli->world, to, tide_buf_text(&text), 0600, &cli->err));
    counts->copied++;
    counts->bytes += text.bytes;
    return TIDE_OK;
}

/* ---- every file ---- */

struct walk {
    struct cli *cli;
    const char *dir;    /* of the copy */
    const char *staged; /* NULL: it is made */
    bool replace;
    struct backup_counts *counts;
    uint64_t *units; /* of the system */
    tide_status rc;
};

static bool is_kept(const struct walk *walk, const char *place)
{
    struct stat info;
    if (walk->replace || lstat(place, &info) != 0)
        return false;
    cli_print(walk->cli, "%s is kept: it was there\n", place);
    return true;
}

static tide_status copy_named(struct walk *walk, const char *name, const char *in_copy)
{
    struct cli *cli = walk->cli;
    char place[CLI_PATH_BYTES], copy[CLI_PATH_BYTES], to[CLI_PATH_BYTES];
    char flat[CLI_PATH_BYTES];
    TIDE_TRY(backup_settings_place(cli, name, place));
    TIDE_TRY(backup_join(cli, copy, walk->dir, in_copy));
    if (walk->staged == NULL)
        return copy_one(cli, place, copy, walk->counts);
    if (is_kept(walk, place))
        return TIDE_NOT_FOUND;
    (void)snprintf(flat, sizeof flat, "%s", name);
    for (char *slash = strchr(flat, '/'); slash != NULL; slash = strchr(slash, '/'))
        *slash = SETTINGS_SLASH;
    TIDE_TRY(backup_join(cli, to, walk->staged, flat));
    return copy_one(cli, copy, to, walk->counts);
}

static void visit(const char *name, void *arg)
{
    struct walk *walk = arg;
    char in_copy[CLI_PATH_BYTES];
    if (walk->rc != TIDE_OK || strcmp(name, OWN_FILE) == 0)
        return;
    walk->rc = backup_join(walk->cli, in_copy, "config", name);
    if (walk->rc == TIDE_OK)
        walk->rc = copy_named(walk, name, in_copy);
    *walk->units += walk->rc == TIDE_OK;
    if (walk->rc == TIDE_NOT_FOUND) /* removed meanwhile, or kept */
        walk->rc = TIDE_OK;
}

/* A configuration that is wrong is copied as it is, with what can be known to belong to it. */
static tide_status walk_system(struct walk *walk, const struct tide_system *system,
                               const char *config_path)
{
    struct cli *cli = walk->cli;
    tide_error why = {TIDE_OK, 0, ""};
    const tide_status rc = system->settings_files(config_path, cli->mem, visit, walk, &why);
    if (rc == TIDE_INVALID && walk->rc == TIDE_OK) {
        (void)fprintf(stderr, "tidemark: warning: %.400s; files that it names may not be copied\n",
                      why.text);
        return TIDE_OK;
    }
    if (rc != TIDE_OK && walk->rc == TIDE_OK)
        cli->err = why;
    return walk->rc != TIDE_OK ? walk->rc : rc;
}

static tide_status walk_all(struct walk *walk)
{
    struct cli *cli = walk->cli;
    char config_path[CLI_PATH_BYTES];
    tide_status rc = copy_named(walk, OWN_FILE, OWN_FILE);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    if (walk->staged == NULL)
        (void)snprintf(config_path, sizeof config_path, "%s", cli->config_path);
    else
        TIDE_TRY(backup_join(cli, config_path, walk->dir, "config/" OWN_FILE));
    uint64_t not_counted = 0;
    rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && cli->systems[i] != NULL; i++) {
        /* One that copies its archives itself counts other things than files there. */
        walk->units = cli->systems[i]->backup == NULL ? &walk->counts->units[i] : &not_counted;
        if (cli->systems[i]->settings_files != NULL)
            rc = walk_system(walk, cli->systems[i], config_path);
    }
    if (rc == TIDE_OK)
        cli->err = (tide_error){TIDE_OK, 0, ""};
    return rc;
}

tide_status backup_settings(struct cli *cli, const char *dir, struct backup_counts *counts)
{
    struct walk walk = {.cli = cli, .dir = dir, .counts = counts};
    return walk_all(&walk);
}

tide_status backup_settings_stage(struct cli *cli, const char *dir, const char *staged,
                                  bool replace, struct backup_counts *counts)
{
    struct walk walk = {
        .cli = cli, .dir = dir, .staged = staged, .replace = replace, .counts = counts};
    return walk_all(&walk);
}
