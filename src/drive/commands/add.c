/* add.c - `tidemark drive add DIR`: joins a folder and a drive of an account (D10, S14). */
#include "cli/run/names.h"
#include "drive/commands/change.h"
#include "drive/commands/home.h"
#include "drive/ids.h"
#include "drive/local/scan.h"
#include "ledger/rows.h"
#include "world/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTHING_ADDED "Nothing was added."

/* ---- the folder ---- */

struct folder {
    char path[PATH_MAX];
    bool exists;
    uint64_t entries; /* at its top */
};

/* Whether `path` is `other` or below it. */
static bool is_below(const char *path, const char *other)
{
    const size_t bytes = strlen(other);
    return strncmp(path, other, bytes) == 0 &&
           (path[bytes] == '\0' || path[bytes] == '/' || (bytes > 0 && other[bytes - 1] == '/'));
}

/* The absolute path without links; of a folder that is not there yet by that of its parent. */
static tide_status folder_resolve(struct cli *cli, const char *dir, struct folder *folder)
{
    char parent[PATH_MAX];
    char whole[PATH_MAX];
    struct stat info;
    if (realpath(dir, folder->path) != NULL) {
        folder->exists = true;
        if (stat(folder->path, &info) == 0 && S_ISDIR(info.st_mode))
            return TIDE_OK;
        return cli_fail(cli, TIDE_INVALID, "Name a folder.", "%.1000s is not a folder", dir);
    }
    size_t bytes = strlen(dir);
    while (bytes > 1 && dir[bytes - 1] == '/')
        bytes--;
    if (errno != ENOENT || bytes >= sizeof parent || bytes == 0)
        return cli_fail(cli, TIDE_IO, "Name a folder that you can read.", "%.1000s: %s", dir,
                        strerror(errno));
    memcpy(parent, dir, bytes);
    parent[bytes] = '\0';
    char *slash = strrchr(parent, '/');
    const char *name = slash == NULL ? parent : slash + 1;
    if (slash != NULL)
        *slash = '\0';
    const char *above = slash == NULL ? "." : slash == parent ? "/" : parent;
    if (realpath(above, whole) == NULL || strcmp(name, "..") == 0 || strcmp(name, ".") == 0)
        return cli_fail(cli, TIDE_NOT_FOUND, "Make it first, or name another folder.",
                        "%.1000s is not there, and neither is the folder above it", dir);
    if ((size_t)snprintf(folder->path, sizeof folder->path, "%s/%s",
                         strcmp(whole, "/") == 0 ? "" : whole, name) >= sizeof folder->path)
        return cli_fail(cli, TIDE_INVALID, "Use a shorter path.", "the path is too long");
    return TIDE_OK;
}

static bool count_entry(tide_text name, void *arg)
{
    (void)name;
    ++*(uint64_t *)arg;
    return true;
}

/* A marker is made once; a folder that has one belongs to a drive, here or in another home. */
static tide_status folder_look(struct cli *cli, struct folder *folder)
{
    struct tide_entry marker;
    int dir = -1;
    if (access(folder->path, R_OK | W_OK | X_OK) != 0)
        return cli_fail(cli, TIDE_IO, "Change its permissions, or name another folder.",
                        "%.1000s cannot be read and written: %s", folder->path, strerror(errno));
    TIDE_TRY(tide_folder_open(folder->path, &dir, &cli->err));
    tide_status rc = tide_folder_list(dir, count_entry, &folder->entries, &cli->err);
    if (rc == TIDE_OK &&
        tide_folder_look(dir, TIDE_TEXT(TIDE_DRIVE_MARKER), &marker, NULL) != TIDE_NOT_FOUND)
        rc = cli_fail(cli, TIDE_EXISTS,
                      "If no drive uses it any more, here or in another home, delete that file and "
                      "run the command again.",
                      "%.1000s has the marker of a drive already: %s", folder->path,
                      TIDE_DRIVE_MARKER);
    tide_folder_close(dir);
    return rc;
}

/* The state of this program must not be synced with itself. */
static tide_status folder_refuse_own(struct cli *cli, const struct folder *folder)
{
    const char *const own[] = {cli->state_dir, cli->data_dir, cli->config_path};
    char real[PATH_MAX];
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        const char *path = realpath(own[i], real) == NULL ? own[i] : real;
        if (own[i][0] != '\0' && (is_below(path, folder->path) || is_below(folder->path, path)))
            return cli_fail(cli, TIDE_INVALID, "Name a folder that has only files to be synced.",
                            "%.1000s cannot be synced: tidemark keeps its own files there, in "
                            "%.1000s",
                            folder->path, path);
    }
    return TIDE_OK;
}

static tide_status folder_check(struct cli *cli, const char *dir, struct folder *folder)
{
    TIDE_TRY(folder_resolve(cli, dir, folder));
    if (strlen(folder->path) >= TIDE_DRIVE_DIR_BYTES)
        return cli_fail(cli, TIDE_INVALID, "Use a shorter path.", "the path is too long");
    for (tide_text rest = tide_text_of(folder->path); rest.bytes > 0;) {
        const size_t bytes = tide_utf8_bytes(rest);
        if (bytes == 0 || (unsigned char)rest.data[0] < 0x20)
            return cli_fail(cli, TIDE_INVALID, "Rename the folder.",
                            "the path of the folder is not plain UTF-8");
        rest.data += bytes;
        rest.bytes -= bytes;
    }
    TIDE_TRY(folder_refuse_own(cli, folder));
    return folder->exists ? folder_look(cli, folder) : TIDE_OK;
}

/* ---- names ---- */

static tide_status drive_name(struct cli *cli, const struct folder *folder,
                              struct tide_drive_row *row)
{
    const char *name = cli_flag(cli, "name");
    if (name == NULL)
        name = strrchr(folder->path, '/') + 1;
    bool plain = name[0] != '\0' && strlen(name) < sizeof row->name && name[0] != '-';
    for (const char *at = name; *at != '\0'; at++)
        plain = plain && (unsigned char)*at >= 0x20 && *at != '/' && *at != 0x7f;
    if (!plain)
        return cli_wrong(cli, "Give a short one with --name.",
                         "\"%.100s\" cannot be the name of a drive", name);
    (void)snprintf(row->name, sizeof row->name, "%s", name);
    return TIDE_OK;
}

static tide_status account_of(struct cli *cli, struct tide_drive_row *row)
{
    const char *wanted = cli_flag(cli, "account");
    struct cli_names names;
    tide_status rc = cli_names(cli, &tide_drive_system, &wanted, wanted == NULL ? 0 : 1, &names);
    if (rc == TIDE_OK && names.count > 1)
        rc = cli_wrong(cli, "Name one with --account.", "there are %zu OneDrive accounts",
                       names.count);
    if (rc == TIDE_OK && strlen(names.list[0]) >= sizeof row->account_name)
        rc = cli_fail(cli, TIDE_INVALID, "Add the account again with a shorter --name.",
                      "the name of the account is too long");
    if (rc == TIDE_OK)
        (void)snprintf(row->account_name, sizeof row->account_name, "%.127s", names.list[0]);
    cli_names_done(&names);
    return rc;
}

/* ---- OneDrive ---- */

struct online {
    struct tide_onedrive_drive drive;
    char id[TIDE_DRIVE_ID_BYTES_MAX]; /* as the server has it */
};

static tide_status ask_online(struct cli *cli, struct tide_drive_row *row, struct online *online)
{
    const char *wanted = cli_flag(cli, "drive");
    struct drive_graph graph;
    struct tide_onedrive_answer root = {.value = NULL};
    tide_status rc = drive_graph_open(cli, row->account_name, &graph);
    if (rc == TIDE_OK)
        rc = tide_onedrive_drive_get(graph.onedrive, NULL,
                                     wanted == NULL ? TIDE_TEXT("") : tide_text_of(wanted),
                                     cli_interruptible(cli), &online->drive, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_onedrive_get(graph.onedrive, NULL, tide_text_of(online->drive.id), TIDE_TEXT(""),
                               &root, &cli->err);
    if (rc == TIDE_OK) {
        char id[TIDE_DRIVE_LOOK_ID_BYTES];
        tide_drive_id_lower(root.item.id, id);
        (void)snprintf(row->root_id, sizeof row->root_id, "%.255s", id);
        tide_drive_id_of_drive(tide_text_of(online->drive.id), id);
        (void)snprintf(row->drive_id, sizeof row->drive_id, "%.255s", id);
        row->business = strcmp(online->drive.type, "personal") != 0;
    }
    tide_onedrive_answer_done(&root);
    drive_graph_close(&graph);
    if (rc == TIDE_GONE && wanted != NULL)
        return cli_fail(cli, TIDE_NOT_FOUND, NOTHING_ADDED " Check --drive.",
                        "%.100s cannot see a drive \"%.100s\"", row->account_name, wanted);
    return cli_hint(cli, rc, NOTHING_ADDED " Run the command again.");
}

/* The same drive twice would sync each file into both folders; that is fine, but surely meant
 * otherwise. */
struct same {
    const struct tide_drive_row *row;
    char name[TIDE_DRIVE_NAME_BYTES];
};

static void find_same(const struct tide_drive_row *other, void *arg)
{
    struct same *same = arg;
    /* Earlier versions kept all ids in lower case. */
    if (strcasecmp(other->drive_id, same->row->drive_id) == 0)
        memcpy(same->name, other->name, sizeof same->name);
}

static tide_status refuse_twice(struct cli *cli, const struct tide_drive_row *row)
{
    struct same same = {.row = row};
    TIDE_TRY(tide_drives_each(tide_ledger_rows(cli->ledger), find_same, &same, &cli->err));
    return same.name[0] == '\0'
               ? TIDE_OK
               : cli_fail(cli, TIDE_EXISTS,
                          "Remove that one first with `tidemark drive remove`; its files stay.",
                          "this OneDrive is synced already, as drive \"%s\"", same.name);
}

/* ---- adding ---- */

static void new_marker(struct cli *cli, struct tide_drive_row *row)
{
    (void)snprintf(row->marker, sizeof row->marker, "%016" PRIx64 "%016" PRIx64,
                   tide_world_random_u64(cli->world), tide_world_random_u64(cli->world));
}

/* The marker first: a drive without one is not synced.  What was made goes again if the row cannot be
 * written. */
static tide_status join(struct cli *cli, const struct folder *folder,
                        const struct tide_drive_row *row)
{
    char marker[PATH_MAX + 32];
    tide_json change;
    if (!folder->exists && mkdir(folder->path, 0777) != 0)
        return cli_fail(cli, TIDE_IO, NOTHING_ADDED " Make it yourself, or name another folder.",
                        "%.1000s cannot be made: %s", folder->path, strerror(errno));
    (void)snprintf(marker, sizeof marker, "%s/%s", folder->path, TIDE_DRIVE_MARKER);
    tide_status rc = tide_drive_marker_make(folder->path, row->marker, &cli->err);
    if (rc == TIDE_OK) {
        drive_change_begin(&change, "add", 0);
        drive_change_row(&change, row);
        rc = drive_change(cli, &change);
        if (rc != TIDE_OK)
            (void)unlink(marker);
    }
    if (rc != TIDE_OK && !folder->exists)
        (void)rmdir(folder->path);
    return cli_hint(cli, rc, NOTHING_ADDED);
}

static void show(struct cli *cli, const struct folder *folder, const struct tide_drive_row *row,
                 const struct online *online)
{
    const char *owner = online->drive.owner[0] == '\0' ? row->account_name : online->drive.owner;
    cli_print(cli, "added drive \"%s\": %s and the OneDrive of %s (%s)\n", row->name, row->dir,
              owner, tide_drive_mode_name(row->mode));
    if (folder->entries > 0)
        cli_print(cli, "The folder has files: those that are the same online are recognized by "
                       "their hashes, and not transferred.\n");
    cli_print(cli,
              "`tidemark drive ignore add %s PATTERN` leaves paths out, `tidemark drive plan %s` "
              "shows what a sync would do.\nNow run `tidemark drive sync %s`.\n",
              row->name, row->name, row->name);
    tide_json_set_cstr(&cli->json, "drive", row->name);
    tide_json_set_cstr(&cli->json, "dir", row->dir);
    tide_json_set_cstr(&cli->json, "account", row->account_name);
    tide_json_set_cstr(&cli->json, "drive_id", row->drive_id);
    tide_json_set_cstr(&cli->json, "type", online->drive.type);
    tide_json_set_cstr(&cli->json, "mode", tide_drive_mode_name(row->mode));
    tide_json_set_u64(&cli->json, "entries", folder->entries);
}

static tide_status refuse_shared(struct cli *cli)
{
    TIDE_TRY(cli_ledger_choose(cli));
    return cli->shared == NULL
               ? TIDE_OK
               : cli_fail(cli, TIDE_INVALID, "Use another --home for drives.",
                          "the ledger of this home is on PostgreSQL; a drive needs a home with a "
                          "ledger of its own, because its folder is on one machine");
}

tide_status cli_drive_add(struct cli *cli)
{
    struct tide_drive_row row = {.mode = TIDE_DRIVE_TWO_WAY};
    struct folder folder = {.path = ""};
    struct online online = {.id = ""};
    const char *mode = cli_flag(cli, "mode");
    if (mode != NULL && tide_drive_mode_of(mode, &row.mode, &cli->err) != TIDE_OK)
        return cli_wrong(cli, "See `tidemark drive add --help`.", "%s", cli->err.text);
    TIDE_TRY(refuse_shared(cli));
    TIDE_TRY(folder_check(cli, cli->arguments[0], &folder));
    (void)snprintf(row.dir, sizeof row.dir, "%.4095s", folder.path);
    TIDE_TRY(drive_name(cli, &folder, &row));
    TIDE_TRY(account_of(cli, &row));
    TIDE_TRY(tide_drives_free(tide_ledger_rows(cli->ledger), &row, &cli->err));
    TIDE_TRY(ask_online(cli, &row, &online));
    TIDE_TRY(refuse_twice(cli, &row));
    new_marker(cli, &row);
    TIDE_TRY(join(cli, &folder, &row));
    show(cli, &folder, &row, &online);
    return TIDE_OK;
}
