/* deletions.c - `tidemark drive deletions`: many deletions at once wait for consent (S15, S16). */
#include "drive/commands/change.h"
#include "drive/commands/home.h"
#include "drive/store/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES_MAX = 64 << 10 };

struct listing {
    struct cli *cli;
    const struct tide_drive_row *row;
    tide_rows db;
    tide_buf path;
    tide_json list;
    uint64_t here, online;
};

static void show_one(const struct tide_drive_deletion *deletion, void *arg)
{
    struct listing *listing = arg;
    const bool here = deletion->verb == TIDE_DRIVE_DEL_LOCAL;
    tide_json one;
    if (tide_drive_path_of(listing->db, deletion->item, &listing->path, NULL) != TIDE_OK) {
        tide_buf_clear(&listing->path);
        (void)tide_buf_add(&listing->path, deletion->name.data, deletion->name.bytes);
    }
    listing->here += here;
    listing->online += !here;
    tide_json_object(&one);
    tide_json_set_text(&one, "path", tide_buf_text(&listing->path));
    tide_json_set_cstr(&one, "delete", here ? "here" : "online");
    tide_json_append(&listing->list, &one);
    cli_cell(listing->cli, "%s", listing->row->name);
    cli_cell(listing->cli, "%s", here ? "here" : "online");
    cli_cell_text(listing->cli, tide_buf_text(&listing->path));
}

static void summary(struct listing *listing, uint64_t fingerprint)
{
    struct cli *cli = listing->cli;
    const char *name = listing->row->name;
    if (listing->here + listing->online == 0)
        return;
    cli_print(cli,
              "%s: %" PRIu64 " would be deleted here, because they are gone online; %" PRIu64
              " online, because they are gone here. Nothing else waits for them.\n"
              "  Delete them: `tidemark drive deletions accept %s --listed %" PRIu64 "`\n"
              "  Bring them back: `tidemark drive deletions restore %s --listed %" PRIu64 "`\n",
              name, listing->here, listing->online, name, fingerprint, name, fingerprint);
    cli->exit_code = CLI_EXIT_BAD_ITEMS;
}

static tide_status list_drive(struct listing *listing, tide_json *drives)
{
    struct cli *cli = listing->cli;
    char text[24];
    uint64_t fingerprint = 0;
    tide_json one;
    tide_json_object(&one);
    tide_json_array(&listing->list);
    listing->db = drive_rows(cli, listing->row->number);
    tide_status rc = tide_drive_deletions_each(listing->db, show_one, listing, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_drive_deletions_fingerprint(listing->db, &fingerprint, &cli->err);
    (void)snprintf(text, sizeof text, "%" PRIu64, fingerprint);
    tide_json_set_cstr(&one, "drive", listing->row->name);
    tide_json_set_cstr(&one, "listed", text);
    tide_json_set(&one, "deletions", &listing->list);
    tide_json_append(drives, &one);
    return rc;
}

static tide_status list(struct cli *cli)
{
    static const char *const headings[] = {"DRIVE", "DELETE", "PATH"};
    struct drive_list drives;
    tide_json all;
    uint64_t fingerprint = 0;
    struct listing *listings = tide_mem_array(cli->mem, DRIVES_MAX, sizeof *listings);
    if (listings == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    tide_json_array(&all);
    tide_status rc = drive_list_named(
        cli, cli->arguments + 1, cli->arguments_count > 1 ? cli->arguments_count - 1 : 0, &drives);
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    for (size_t i = 0; rc == TIDE_OK && i < drives.count; i++) {
        listings[i] = (struct listing){.cli = cli, .row = &drives.rows[i]};
        listings[i].path = tide_buf_in(cli->mem, PATH_BYTES_MAX);
        rc = list_drive(&listings[i], &all);
        tide_buf_done(&listings[i].path);
    }
    cli_table_end(cli, "No deletion waits for consent.");
    for (size_t i = 0; rc == TIDE_OK && i < drives.count; i++) {
        rc = tide_drive_deletions_fingerprint(drive_rows(cli, drives.rows[i].number), &fingerprint,
                                              &cli->err);
        if (rc == TIDE_OK)
            summary(&listings[i], fingerprint);
    }
    tide_json_set(&cli->json, "drives", &all);
    drive_list_done(&drives);
    tide_mem_free(cli->mem, listings, DRIVES_MAX * sizeof *listings);
    return rc;
}

/* The list may have grown since it was shown: only what was shown is meant. */
static tide_status decide(struct cli *cli, bool restore)
{
    const char *listed = cli_flag(cli, "listed");
    struct tide_drive_row row;
    tide_json change;
    uint64_t number = 0, now = 0;
    if (listed == NULL || !tide_text_to_u64(tide_text_of(listed), &number))
        return cli_wrong(cli, "`tidemark drive deletions list` shows it.",
                         "--listed NUMBER says which deletions are meant");
    if (cli->arguments_count != 2)
        return cli_wrong(cli, "`tidemark drive list` shows the drives.", "name one drive");
    TIDE_TRY(drive_one(cli, cli->arguments[1], &row));
    TIDE_TRY(tide_drive_deletions_fingerprint(drive_rows(cli, row.number), &now, &cli->err));
    if (now != number) /* the change looks again, in its transaction */
        return cli_fail(cli, TIDE_STALE,
                        "Nothing was decided. `tidemark drive deletions list` shows what waits.",
                        "the deletions that wait are others than those that were listed; list "
                        "them again");
    drive_change_begin(&change, restore ? "deletions_restore" : "deletions_accept", row.number);
    tide_json_set_cstr(&change, "fingerprint", listed);
    TIDE_TRY(cli_hint(cli, drive_change(cli, &change),
                      "Nothing was decided. `tidemark drive deletions list` shows what waits."));
    cli_print(cli,
              restore ? "%s: they come back with the next sync.\n"
                      : "%s: they are deleted with the next sync, within 24 hours; to the trash "
                        "here, to the recycle bin online.\n",
              row.name);
    tide_json_set_cstr(&cli->json, "drive", row.name);
    tide_json_set_cstr(&cli->json, "decided", restore ? "restore" : "accept");
    return TIDE_OK;
}

tide_status cli_drive_deletions(struct cli *cli)
{
    const char *what = cli->arguments_count == 0 ? "list" : cli->arguments[0];
    if (strcmp(what, "list") == 0)
        return list(cli);
    if (strcmp(what, "accept") == 0 || strcmp(what, "restore") == 0)
        return decide(cli, what[0] == 'r');
    return cli_wrong(cli, "See `tidemark drive deletions --help`.",
                     "\"%.60s\" is not list, accept or restore", what);
}
