/* list.c - `tidemark drive list|mode|remove`. */
#include "drive/commands/change.h"
#include "drive/commands/home.h"
#include "drive/local/scan.h"

/* ---- list ---- */

tide_status cli_drive_list(struct cli *cli)
{
    static const char *const headings[] = {"DRIVE", "ACCOUNT", "MODE", "KIND", "FOLDER"};
    struct drive_list drives;
    tide_json list;
    tide_json_array(&list);
    tide_status rc = drive_list_any(cli, NULL, 0, &drives);
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    for (size_t i = 0; rc == TIDE_OK && i < drives.count; i++) {
        const struct tide_drive_row *row = &drives.rows[i];
        tide_json one;
        cli_cell(cli, "%s", row->name);
        cli_cell(cli, "%s", row->account_name);
        cli_cell(cli, "%s", tide_drive_mode_name(row->mode));
        cli_cell(cli, "%s", row->parent != 0 ? "shared" : row->business ? "business" : "personal");
        cli_cell(cli, "%s", row->dir);
        tide_json_object(&one);
        tide_json_set_cstr(&one, "drive", row->name);
        tide_json_set_u64(&one, "number", row->number);
        tide_json_set_cstr(&one, "account", row->account_name);
        tide_json_set_cstr(&one, "mode", tide_drive_mode_name(row->mode));
        tide_json_set_cstr(&one, "kind", row->business ? "business" : "personal");
        tide_json_set_cstr(&one, "dir", row->dir);
        tide_json_set_cstr(&one, "drive_id", row->drive_id);
        drive_shared_json(row, &one);
        tide_json_append(&list, &one);
    }
    cli_table_end(cli, "There is no drive. Add one with `tidemark drive add DIR`.");
    tide_json_set(&cli->json, "drives", &list);
    drive_list_done(&drives);
    return rc;
}

/* ---- mode ---- */

tide_status cli_drive_mode(struct cli *cli)
{
    struct tide_drive_row row;
    tide_drive_mode mode = TIDE_DRIVE_TWO_WAY;
    tide_json change;
    if (tide_drive_mode_of(cli->arguments[1], &mode, &cli->err) != TIDE_OK)
        return cli_wrong(cli, "See `tidemark drive mode --help`.", "%s", cli->err.text);
    TIDE_TRY(drive_one(cli, cli->arguments[0], &row));
    drive_change_begin(&change, "mode", row.number);
    tide_json_set_cstr(&change, "mode", tide_drive_mode_name(mode));
    TIDE_TRY(drive_change(cli, &change));
    cli_print(cli, "%s is %s from its next sync on.\n", row.name, tide_drive_mode_name(mode));
    if (row.mode != TIDE_DRIVE_TWO_WAY && mode == TIDE_DRIVE_TWO_WAY)
        cli_print(cli,
                  "What was held back until now crosses then; `tidemark drive plan %s` shows "
                  "it.\n",
                  row.name);
    tide_json_set_cstr(&cli->json, "drive", row.name);
    tide_json_set_cstr(&cli->json, "mode", tide_drive_mode_name(mode));
    return TIDE_OK;
}

/* ---- remove ---- */

/* Its marker stays: else the drive around it would send its files as the user's own. */
static tide_status remove_shared(struct cli *cli, const struct tide_drive_row *row)
{
    tide_json change;
    drive_change_begin(&change, "remove", row->number);
    TIDE_TRY(cli_hint(cli, drive_change(cli, &change), "Run the command again."));
    cli_print(
        cli,
        "The shared folder \"%s\" is not synced any more; nothing was deleted, here or "
        "online. The files stay in %s.\nTo sync it again, put an empty folder in its place.\n",
        row->name, row->dir);
    tide_json_set_cstr(&cli->json, "removed", row->name);
    tide_json_set_cstr(&cli->json, "dir", row->dir);
    return TIDE_OK;
}

tide_status cli_drive_remove(struct cli *cli)
{
    struct tide_drive_row row;
    struct drive_list with; /* the drive, and the shared folders in it */
    tide_json change;
    TIDE_TRY(drive_one(cli, cli->arguments[0], &row));
    if (row.parent != 0)
        return remove_shared(cli, &row);
    const char *name = row.name;
    tide_status rc = drive_list_named(cli, &name, 1, &with);
    if (rc == TIDE_OK) {
        drive_change_begin(&change, "remove", row.number);
        rc = cli_hint(cli, drive_change(cli, &change), "Run the command again.");
    }
    bool unmarked = false;
    for (size_t i = 0; rc == TIDE_OK && i < with.count; i++) {
        const bool was = drive_marker_remove(&with.rows[i]);
        unmarked = with.rows[i].number == row.number ? was : unmarked;
    }
    drive_list_done(&with);
    TIDE_TRY(rc);
    cli_print(cli,
              "removed drive \"%s\"; nothing was deleted, here or online. The files stay in %s.\n",
              row.name, row.dir);
    if (!unmarked)
        cli_print(cli, "Its marker %s is not there, or is that of another drive.\n",
                  TIDE_DRIVE_MARKER);
    tide_json_set_cstr(&cli->json, "removed", row.name);
    tide_json_set_cstr(&cli->json, "dir", row.dir);
    return TIDE_OK;
}
