/* conflicts.c - `tidemark drive conflicts`: versions that were kept beside each other (D21, S9). */
#include "base/clocktext.h"
#include "drive/commands/change.h"
#include "drive/commands/home.h"
#include "drive/commands/resolve.h"
#include "drive/commands/words.h"
#include "drive/store/report.h"
#include "world/folder.h"

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
    uint64_t wanted; /* an id; 0: all */
    struct drive_conflict found;
    bool is_found;
};

/* ---- list ---- */

static void to_json(const struct listing *listing, const struct tide_drive_conflict *conflict,
                    tide_json *one)
{
    tide_json_object(one);
    tide_json_set_cstr(one, "drive", listing->row->name);
    tide_json_set_u64(one, "id", conflict->id);
    tide_json_set_cstr(one, "kind", drive_notice_name(conflict->notice));
    tide_json_set_text(one, "path", tide_buf_text(&listing->path));
    tide_json_set_text(one, "copy", conflict->copy);
    tide_json_set_u64(one, "at_unix_ms", conflict->at_ms);
}

static void show_one(const struct tide_drive_conflict *conflict, void *arg)
{
    struct listing *listing = arg;
    struct cli *cli = listing->cli;
    char when[32];
    tide_json one;
    drive_conflict_path(listing->db, conflict, &listing->path);
    to_json(listing, conflict, &one);
    tide_json_append(&listing->list, &one);
    cli_cell(cli, "%s", listing->row->name);
    cli_cell(cli, "%" PRIu64, conflict->id);
    cli_cell(cli, "%s", cli_time(conflict->at_ms, when));
    cli_cell_text(cli, tide_buf_text(&listing->path));
    cli_cell_text(cli, conflict->copy);
    cli_cell(cli, "%s", drive_notice_words(conflict->notice));
}

static tide_status list(struct cli *cli)
{
    static const char *const headings[] = {"DRIVE", "ID", "AT", "PATH", "COPY", "WHAT HAPPENED"};
    struct drive_list drives;
    struct listing listing = {.cli = cli};
    tide_status rc = drive_list_named(
        cli, cli->arguments + 1, cli->arguments_count > 1 ? cli->arguments_count - 1 : 0, &drives);
    listing.path = tide_buf_in(cli->mem, PATH_BYTES_MAX);
    tide_json_array(&listing.list);
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    for (size_t i = 0; rc == TIDE_OK && i < drives.count; i++) {
        listing.row = &drives.rows[i];
        listing.db = drive_rows(cli, listing.row->number);
        rc = tide_drive_conflicts_each(listing.db, show_one, &listing, &cli->err);
    }
    cli_table_end(cli, "There is no conflict.");
    if (json_array_size(listing.list.value) > 0)
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
    tide_json_set(&cli->json, "conflicts", &listing.list);
    tide_buf_done(&listing.path);
    drive_list_done(&drives);
    return rc;
}

/* ---- one of them ---- */

static void find_one(const struct tide_drive_conflict *conflict, void *arg)
{
    struct listing *listing = arg;
    if (conflict->id != listing->wanted)
        return;
    drive_conflict_path(listing->db, conflict, &listing->path);
    listing->is_found = drive_conflict_take(conflict, &listing->path, &listing->found);
}

/* "DRIVE ID", or "ID" of the only drive. */
static tide_status find(struct cli *cli, struct tide_drive_row *row, struct drive_conflict *found)
{
    struct listing listing = {.cli = cli, .row = row};
    const unsigned count = cli->arguments_count;
    if (count < 2 || count > 3)
        return cli_wrong(cli, "`tidemark drive conflicts list` shows them.",
                         "name a drive and the number of a conflict");
    TIDE_TRY(cli_number(cli, cli->arguments[count - 1], "the number", &listing.wanted));
    TIDE_TRY(drive_one(cli, count == 3 ? cli->arguments[1] : NULL, row));
    listing.db = drive_rows(cli, row->number);
    listing.path = tide_buf_in(cli->mem, PATH_BYTES_MAX);
    const tide_status rc = tide_drive_conflicts_each(listing.db, find_one, &listing, &cli->err);
    tide_buf_done(&listing.path);
    if (rc != TIDE_OK)
        return rc;
    *found = listing.found;
    return listing.is_found
               ? TIDE_OK
               : cli_fail(cli, TIDE_NOT_FOUND, "`tidemark drive conflicts list` shows them.",
                          "%s has no conflict %" PRIu64, row->name, listing.wanted);
}

static void show_file(struct cli *cli, const char *key, const char *words, const char *path,
                      bool there, const struct tide_entry *entry)
{
    char size[TIDE_SIZE_TEXT_BYTES];
    char when[32];
    tide_json one;
    tide_json_object(&one);
    tide_json_set_cstr(&one, "path", path);
    tide_json_set_bool(&one, "exists", there);
    if (there) {
        tide_size_human(entry->bytes, size);
        tide_json_set_u64(&one, "bytes", entry->bytes);
        tide_json_set_u64(&one, "modified_unix_ms", entry->mtime_ns / 1000000);
        cli_print(cli, "  %s: %s, %s, changed %s\n", words, path, size,
                  cli_time(entry->mtime_ns / 1000000, when));
    } else {
        cli_print(cli, "  %s: %s is no longer there\n", words, path);
    }
    tide_json_set(&cli->json, key, &one);
}

static tide_status show(struct cli *cli)
{
    struct tide_drive_row row;
    struct drive_conflict conflict;
    struct drive_versions versions;
    char when[32];
    TIDE_TRY(find(cli, &row, &conflict));
    TIDE_TRY(cli_hint(cli, drive_versions_open(&row, &conflict, &versions, &cli->err),
                      "Mount it, or put the folder back where it was."));
    cli_print(cli, "%s: %s %s (%s)\n", row.name, conflict.path, drive_notice_words(conflict.notice),
              cli_time(conflict.at_ms, when));
    show_file(cli, "original", "the version from OneDrive", conflict.path, versions.has_original,
              &versions.original);
    if (conflict.copy[0] != '\0')
        show_file(cli, "copy", "the version from here", conflict.copy, versions.has_copy,
                  &versions.copy);
    drive_versions_close(&versions);
    tide_json_set_cstr(&cli->json, "drive", row.name);
    tide_json_set_u64(&cli->json, "id", conflict.id);
    tide_json_set_cstr(&cli->json, "kind", drive_notice_name(conflict.notice));
    return TIDE_OK;
}

/* ---- resolve ---- */

static tide_status resolve(struct cli *cli)
{
    const char *word = cli_flag(cli, "keep");
    struct tide_drive_row row;
    struct drive_conflict conflict;
    tide_json change;
    drive_keep keep = DRIVE_KEEP_BOTH;
    if (word != NULL && !drive_keep_of(word, &keep))
        return cli_wrong(cli, "Give both, local or remote.", "--keep %.40s is not known", word);
    TIDE_TRY(find(cli, &row, &conflict));
    TIDE_TRY(cli_hint(cli, drive_resolve(cli, &row, &conflict, keep, &cli->err),
                      "Nothing was changed. `tidemark drive conflicts show` shows both versions."));
    drive_change_begin(&change, "conflict_end", row.number);
    tide_json_set_u64(&change, "id", conflict.id);
    TIDE_TRY(drive_change(cli, &change));
    cli_print(cli, "%s: conflict %" PRIu64 " is resolved; %s\n", row.name, conflict.id,
              keep == DRIVE_KEEP_BOTH    ? "both versions stay."
              : keep == DRIVE_KEEP_LOCAL ? "the version from here is sent with the next sync, the "
                                           "other one is in the trash."
                                         : "the version from OneDrive stays, the copy is in the "
                                           "trash.");
    tide_json_set_cstr(&cli->json, "drive", row.name);
    tide_json_set_u64(&cli->json, "resolved", conflict.id);
    tide_json_set_cstr(&cli->json, "kept", word == NULL ? "both" : word);
    return TIDE_OK;
}

tide_status cli_drive_conflicts(struct cli *cli)
{
    const char *what = cli->arguments_count == 0 ? "list" : cli->arguments[0];
    if (strcmp(what, "list") == 0)
        return list(cli);
    if (strcmp(what, "show") == 0)
        return show(cli);
    if (strcmp(what, "resolve") == 0)
        return resolve(cli);
    return cli_wrong(cli, "See `tidemark drive conflicts --help`.",
                     "\"%.60s\" is not list, show or resolve", what);
}
