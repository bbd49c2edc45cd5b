#include "drive/commands/home.h"

#include "cli/archive_here.h"
#include "drive/local/scan.h"
#include "drive/mounts.h"
#include "ledger/rows.h"
#include "net/oauth/microsoft.h"
#include "world/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- drives ---- */

static void take(const struct tide_drive_row *row, void *arg)
{
    struct drive_list *list = arg;
    void *rows = list->rows;
    list->full = list->full || !tide_mem_grow(list->mem, &rows, &list->capacity, list->count + 1,
                                              DRIVES_MAX, sizeof *list->rows);
    list->rows = rows;
    if (!list->full)
        list->rows[list->count++] = *row;
}

static tide_status no_drive(struct cli *cli, const char *name)
{
    if (name == NULL)
        return cli_fail(cli, TIDE_NOT_FOUND, "Add one with `tidemark drive add DIR`.",
                        "there is no drive");
    return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark drive list` shows the drives.",
                    "there is no drive \"%.100s\"", name);
}

static bool has(const struct drive_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->rows[i].name, name) == 0)
            return true;
    return false;
}

/* Leaves those that were named. */
static void keep(struct drive_list *list, const char *const *wanted, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        bool named = false;
        for (size_t j = 0; j < count; j++)
            named =
                named || strcmp(list->rows[i].name, wanted[j]) == 0 ||
                (list->rows[i].parent != 0 && strcmp(list->rows[i].parent_name, wanted[j]) == 0);
        if (named && kept != i)
            list->rows[kept] = list->rows[i];
        kept += named;
    }
    list->count = kept;
}

tide_status drive_list_any(struct cli *cli, const char *const *wanted, size_t count,
                           struct drive_list *list_out)
{
    *list_out = (struct drive_list){.mem = cli->mem};
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_drives_each(tide_ledger_rows(cli->ledger), take, list_out, &cli->err);
    if (rc == TIDE_NOT_FOUND) { /* no ledger yet */
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
        rc = TIDE_OK;
    }
    if (rc == TIDE_OK && list_out->full)
        rc = cli_fail(cli, TIDE_FULL, "Remove some with `tidemark drive remove`.",
                      "there are more than %d drives, or no memory for them", DRIVES_MAX);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        if (!has(list_out, wanted[i]))
            rc = no_drive(cli, wanted[i]);
    if (rc == TIDE_OK && count > 0)
        keep(list_out, wanted, count);
    return rc;
}

tide_status drive_list_named(struct cli *cli, const char *const *wanted, size_t count,
                             struct drive_list *list_out)
{
    TIDE_TRY(drive_list_any(cli, wanted, count, list_out));
    return list_out->count > 0 ? TIDE_OK : no_drive(cli, NULL);
}

tide_status drive_list_of_account(struct cli *cli, const char *account, struct drive_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->rows[i].account_name, account) == 0) {
            if (kept != i)
                list->rows[kept] = list->rows[i];
            kept++;
        }
    list->count = kept;
    return kept > 0 ? TIDE_OK
                    : cli_fail(cli, TIDE_NOT_FOUND, "`tidemark drive list` shows the drives.",
                               "%.200s has no drive", account);
}

static void take_again(const struct tide_drive_row *row, void *arg)
{
    struct drive_list *list = arg;
    bool wanted = false;
    for (size_t i = 0; i < list->count; i++) {
        if (list->rows[i].number == row->number) {
            list->rows[i] = *row;
            return;
        }
        wanted = wanted || (row->parent != 0 && list->rows[i].number == row->parent);
    }
    if (wanted && tide_drive_row_syncs(row))
        take(row, list);
}

tide_status drive_list_again(struct cli *cli, struct drive_list *list)
{
    return tide_drives_each(tide_ledger_rows(cli->ledger), take_again, list, &cli->err);
}

tide_status drive_list_synced(struct cli *cli, struct drive_list *list)
{
    size_t kept = 0;
    const struct tide_drive_row first = list->rows[0];
    for (size_t i = 0; i < list->count; i++)
        if (tide_drive_row_syncs(&list->rows[i]))
            list->rows[kept++] = list->rows[i];
    list->count = kept;
    return kept > 0 ? TIDE_OK
                    : cli_fail(cli, TIDE_NOT_FOUND, "`tidemark drive status` says more.",
                               "the shared folder \"%s\" is not synced: %s", first.name,
                               first.mount_why);
}

tide_status drive_one(struct cli *cli, const char *name, struct tide_drive_row *row_out)
{
    struct drive_list list;
    tide_status rc = drive_list_named(cli, &name, name == NULL ? 0 : 1, &list);
    size_t count = 0, at = 0;
    for (size_t i = 0; rc == TIDE_OK && i < list.count; i++)
        if (name == NULL ? list.rows[i].parent == 0 : strcmp(list.rows[i].name, name) == 0) {
            at = i;
            count++;
        }
    if (rc == TIDE_OK && count > 1)
        rc = cli_wrong(cli, "Name one; `tidemark drive list` shows them.", "there are %zu drives",
                       count);
    if (rc == TIDE_OK)
        *row_out = list.rows[at];
    drive_list_done(&list);
    return rc;
}

void drive_list_done(struct drive_list *list)
{
    if (list->mem != NULL)
        tide_mem_free(list->mem, list->rows, list->capacity * sizeof *list->rows);
    *list = (struct drive_list){.mem = NULL};
}

tide_rows drive_rows(struct cli *cli, uint32_t number)
{
    return tide_drives_rows(tide_ledger_rows(cli->ledger), number);
}

void drive_shared_json(const struct tide_drive_row *row, tide_json *json)
{
    if (row->parent == 0) {
        tide_json_set_null(json, "parent");
        tide_json_set_null(json, "shared");
        return;
    }
    tide_json_set_cstr(json, "parent", row->parent_name);
    tide_json_set_cstr(json, "shared", tide_drive_mount_word(row->mount));
}

/* ---- the folder ---- */

static void take_bytes(const void *bytes, size_t count, void *arg)
{
    (void)tide_buf_add(arg, bytes, count);
}

static bool is_marked(int root, const struct tide_drive_row *row, struct tide_entry *entry)
{
    tide_auto_buf text = tide_buf_heap(256);
    return tide_folder_read(root, TIDE_TEXT(TIDE_DRIVE_MARKER), take_bytes, &text, entry, NULL) ==
               TIDE_OK &&
           tide_text_equal(tide_buf_text(&text), tide_text_of(row->marker));
}

tide_status drive_folder_open(const struct tide_drive_row *row, int *root_out, tide_error *err)
{
    struct tide_entry entry;
    int root = -1;
    const tide_status rc = tide_folder_open(row->dir, &root, NULL);
    if (rc == TIDE_OK && is_marked(root, row, &entry)) {
        *root_out = root;
        return TIDE_OK;
    }
    tide_folder_close(root);
    return tide_error_set(
        err, TIDE_INVALID, "the folder of \"%s\", %.300s, is %s", row->name, row->dir,
        rc == TIDE_NOT_FOUND ? "not there"
                             : "not mounted, or another one: its "
                               "marker " TIDE_DRIVE_MARKER " is missing or different");
}

bool drive_marker_remove(const struct tide_drive_row *row)
{
    struct tide_entry entry;
    int root = -1;
    bool removed = false;
    if (tide_folder_open(row->dir, &root, NULL) == TIDE_OK && is_marked(root, row, &entry))
        removed = tide_folder_remove(root, TIDE_TEXT(TIDE_DRIVE_MARKER), &entry, NULL) == TIDE_OK;
    tide_folder_close(root);
    return removed;
}

bool drive_desktop_trash(char *path_out, size_t path_bytes)
{
    const char *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    if (data != NULL && data[0] == '/')
        return (size_t)snprintf(path_out, path_bytes, "%s/Trash", data) < path_bytes;
    return home != NULL && home[0] == '/' &&
           (size_t)snprintf(path_out, path_bytes, "%s/.local/share/Trash", home) < path_bytes;
}

/* ---- OneDrive ---- */

tide_status drive_graph_open(struct cli *cli, const char *account, struct drive_graph *graph_out)
{
    char archive_dir[CLI_PATH_BYTES];
    char secrets_dir[CLI_PATH_BYTES];
    char endpoint[TIDE_ENDPOINT_BYTES] = "";
    char secret[TIDE_SECRET_NAME_BYTES_MAX];
    char sign_in[300];
    *graph_out = (struct drive_graph){.secrets = NULL};
    TIDE_TRY(archive_here_places(cli, archive_dir, secrets_dir));
    TIDE_TRY(
        tide_system_account_look(&tide_drive_system, cli->ledger, account, endpoint, &cli->err));
    TIDE_TRY(tide_secrets_open(cli->world, secrets_dir, TIDE_SECRETS_BEST, cli->mem,
                               &graph_out->secrets, &cli->err));
    tide_system_secret_name(&tide_drive_system, account, secret);
    (void)snprintf(sign_in, sizeof sign_in, "tidemark account add onedrive %.200s", account);
    const struct tide_tokens_options tokens = {.provider = &tide_oauth_microsoft,
                                               .secret = secret,
                                               .account = account,
                                               .sign_in = sign_in};
    TIDE_TRY(tide_tokens_open(cli->world, graph_out->secrets, &tokens, cli->mem, &graph_out->tokens,
                              &cli->err));
    const struct tide_onedrive_options options = {.endpoint = endpoint[0] == '\0' ? NULL : endpoint,
                                                  .tokens = graph_out->tokens,
                                                  .world = cli->world};
    return tide_onedrive_open(&options, cli->mem, &graph_out->onedrive, &cli->err);
}

void drive_graph_close(struct drive_graph *graph)
{
    tide_onedrive_close(graph->onedrive);
    tide_tokens_close(graph->tokens);
    tide_secrets_close(graph->secrets);
    *graph = (struct drive_graph){.secrets = NULL};
}
